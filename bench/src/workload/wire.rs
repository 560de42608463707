//! Two ports, each to the other, among any number of ports; and one to many.

use super::Content;
use crate::frames;

const RULES: &str = "in_port=1 actions=output:2
in_port=2 actions=output:1
";

/// What port 1 receives goes to ports 2 and up.
pub fn flood(copies: u32) -> Content {
    let outputs: Vec<String> = (2..=copies + 1).map(|port| format!("output:{port}")).collect();
    let rules = format!("in_port=1 actions={}\n", outputs.join(","));
    Content { rules, frames: vec![vec![frames::plain(); 1024]] }
}

/// The same rules and frames for every number of ports.
pub fn make() -> Content {
    let frames = vec![frames::plain(); 1024];
    Content { rules: RULES.to_string(), frames: vec![frames.clone(), frames] }
}
