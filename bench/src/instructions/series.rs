//! Workloads that must cost the same whatever grows: ports, classes, rules; and traffic that was made to be dear.
//!
//! In: counts. Out: by how much the dearest of a series is above the cheapest. Never: a verdict.

/// Workloads of which one thing grows.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    /// What grows.
    pub what: &'static str,
    /// The workloads' names.
    pub workloads: &'static [&'static str],
    /// The most that the dearest may be above the cheapest, where that is an aim.
    pub aim: Option<f64>,
}

/// All series.
pub const ALL: &[Series] = &[
    Series { what: "ports", workloads: &["ports-2", "ports-16", "ports-32"], aim: Some(0.03) },
    Series {
        what: "classes",
        workloads: &["classes-10000-1", "classes-10000-5", "classes-10000-10", "classes-10000-20"],
        aim: Some(0.03),
    },
    Series { what: "addresses", workloads: &["l2-10", "l2-1000", "l2-100000"], aim: None },
    Series { what: "prefixes", workloads: &["l3-1000", "l3-10000"], aim: None },
    Series { what: "rules", workloads: &["acl-100", "acl-1000"], aim: None },
    Series { what: "streams", workloads: &["firewall-100", "firewall-1000", "firewall-10000"], aim: None },
    Series { what: "attack over the rules of acl-1000", workloads: &["random-1000", "attack-1000"], aim: Some(0.05) },
    Series {
        what: "colliding hashes over the addresses of l2-1000",
        workloads: &["strangers-1000", "collide-1000"],
        aim: Some(0.05),
    },
];

/// By how much the dearest count is above the cheapest, as a share.
pub fn spread(counts: &[f64]) -> f64 {
    let (min, max) = counts.iter().fold((f64::INFINITY, 0.0), |(min, max), count| (count.min(min), count.max(max)));
    max / min - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    #[test]
    fn series_name_workloads() {
        for name in ALL.iter().flat_map(|series| series.workloads) {
            assert!(name.parse::<Workload>().is_ok(), "{name}");
        }
    }

    #[test]
    fn a_spread_is_of_the_extremes() {
        assert!((spread(&[100.0, 90.0, 99.0]) - 1.0 / 9.0).abs() < 1e-9);
        assert_eq!(spread(&[5.0]), 0.0);
    }
}
