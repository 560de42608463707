//! Live networks: namespaces, and a dataplane that runs between them. Nothing here outlives the test, even when the test is
//! killed: what was started gets a signal when its starter is gone, and namespaces go with it.
//!
//! ```text
//! netns      a network namespace, and what runs in it
//! dataplane  `pipec run`, from its start to its counts
//! ```

pub mod dataplane;
pub mod netns;

use std::time::{Duration, Instant};

/// How long anything may take that has to happen.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until something holds.
///
/// # Panics
/// When it does not in [`PATIENCE`].
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
