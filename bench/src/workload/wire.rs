//! Two ports, each to the other, among any number of ports.

use super::Content;
use crate::frames;

const RULES: &str = "in_port=1 actions=output:2
in_port=2 actions=output:1
";

/// The same rules and frames for every number of ports.
pub fn make() -> Content {
    let frames = vec![frames::plain(); 1024];
    Content { rules: RULES.to_string(), frames: vec![frames.clone(), frames] }
}
