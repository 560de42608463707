//! What was measured of a set, as one line of JSON. In: rows. Out: a line without its end. Never: a change of a figure.

use serde_json::json;

use crate::measure::Row;

/// The line of a set.
pub fn line(set: &str, rows: &[Row]) -> String {
    let row = |row: &Row| {
        json!({
            "structure": row.name,
            "ns": row.ns.0,
            "least": row.ns.1,
            "memory": row.memory,
            "build_ms": row.build_ms,
            "change_us": row.change_us,
            "worst": row.worst,
            "differ": row.differ,
        })
    };
    json!({ "set": set, "rows": rows.iter().map(row).collect::<Vec<_>>() }).to_string()
}
