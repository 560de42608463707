//! What was measured of a set, as one line of JSON. In: rows. Out: a line without its end. Never: a name that needs quoting.

use crate::measure::Row;

/// The line of a set.
pub fn line(set: &str, rows: &[Row]) -> String {
    let or_null = |number: Option<String>| number.unwrap_or_else(|| "null".to_string());
    let row = |row: &Row| {
        format!(
            "{{\"structure\": \"{}\", \"ns\": {:.2}, \"least\": {:.2}, \"memory\": {}, \"build_ms\": {:.2}, \
             \"change_us\": {}, \"worst\": {}, \"differ\": {}}}",
            row.name,
            row.ns.0,
            row.ns.1,
            row.memory,
            row.build_ms,
            or_null(row.change_us.map(|us| format!("{us:.2}"))),
            or_null(row.worst.map(|worst| worst.to_string())),
            row.differ,
        )
    };
    let rows: Vec<String> = rows.iter().map(row).collect();
    format!("{{\"set\": \"{set}\", \"rows\": [{}]}}", rows.join(", "))
}
