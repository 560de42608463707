//! What is aimed at, in cycles a packet. Shown beside figures, never tested. All were set on one class of machine (a time-stamp
//! counter of 2 GHz); elsewhere the ratios to the floor say more.

use crate::workload::Workload;

/// The aims for one workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Target {
    /// What the first version must reach.
    pub first: Option<u32>,
    /// What is meant to be reached.
    pub target: Option<u32>,
    /// What would be best.
    pub mark: Option<u32>,
}

const TABLE: &[(&str, Target)] = &[
    ("wire", Target { first: Some(90), target: Some(60), mark: Some(52) }),
    ("firewall-100", Target { first: Some(170), target: Some(130), mark: Some(100) }),
    ("firewall-1000", Target { first: Some(180), target: Some(140), mark: Some(110) }),
    ("firewall-10000", Target { first: None, target: Some(165), mark: Some(135) }),
    ("firewall-100000", Target { first: None, target: Some(230), mark: Some(190) }),
    ("classes-100000-20", Target { first: None, target: Some(135), mark: Some(110) }),
    ("classes-1000000-20", Target { first: None, target: Some(185), mark: Some(150) }),
    ("l2-10", Target { first: None, target: Some(75), mark: Some(65) }),
    ("l2-1000", Target { first: None, target: Some(85), mark: Some(75) }),
    ("l2-100000", Target { first: None, target: Some(140), mark: Some(110) }),
    ("l3-1000", Target { first: None, target: Some(90), mark: Some(80) }),
    ("l3-10000", Target { first: None, target: Some(105), mark: Some(90) }),
    ("acl-100", Target { first: None, target: Some(110), mark: Some(95) }),
    ("acl-1000", Target { first: None, target: Some(160), mark: Some(130) }),
    ("flood-4", Target { first: None, target: Some(160), mark: None }), // wire and 25 a copy
    ("ports-2", Target { first: None, target: Some(60), mark: Some(52) }),
    ("ports-64", Target { first: None, target: Some(60), mark: Some(52) }),
    ("ports-256", Target { first: None, target: Some(60), mark: Some(52) }),
    ("fwtcp-1000", Target { first: None, target: Some(180), mark: Some(135) }), // firewall-1000 and 40, or 25, for checksums
];

/// The aims for a workload; none where none were set.
pub fn target(workload: Workload) -> Target {
    let name = workload.to_string();
    let row = TABLE.iter().find(|row| row.0 == name);
    row.map_or(Target::default(), |row| row.1)
}

/// The workloads that aims were set for.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|row| row.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_a_workload() {
        for row in TABLE {
            let workload: Workload = row.0.parse().unwrap();
            assert_eq!(target(workload), row.1);
        }
        assert_eq!(target("firewall-7".parse().unwrap()), Target::default());
    }
}
