//! What is aimed at, in cycles a packet. Shown beside figures, never tested. All were set on one class of machine (a time-stamp
//! counter of 2 GHz); elsewhere the ratios to the floor say more.

use crate::workload::Workload;

/// The aims for one workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Target {
    /// What the first version must reach.
    pub first: Option<u32>,
    /// What is meant to be reached.
    pub target: Option<u32>,
    /// What would be best.
    pub mark: Option<u32>,
}

/// Workload, first, target, mark.
const TABLE: &[(&str, Option<u32>, Option<u32>, Option<u32>)] = &[
    ("wire", Some(90), Some(60), Some(52)),
    ("firewall-100", Some(170), Some(130), Some(100)),
    ("firewall-1000", Some(180), Some(140), Some(110)),
    ("firewall-10000", None, Some(165), Some(135)),
    ("firewall-100000", None, Some(230), Some(190)),
    ("fwtcp-1000", None, Some(180), Some(135)), // firewall-1000 and 40, or 25, for checksums
];

/// The aims for a workload; none where none were set.
pub fn target(workload: Workload) -> Target {
    let name = workload.to_string();
    let row = TABLE.iter().find(|row| row.0 == name);
    row.map_or(Target::default(), |row| Target { first: row.1, target: row.2, mark: row.3 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_a_workload() {
        for row in TABLE {
            let workload: Workload = row.0.parse().unwrap();
            assert_eq!(target(workload).target, row.2);
        }
        assert_eq!(target("firewall-7".parse().unwrap()), Target::default());
    }
}
