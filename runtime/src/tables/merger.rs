//! The thread that builds tables anew under their changes.
//!
//! It sleeps until a table has changes that lie above what was built, gives others a little time to come, and builds. It holds
//! no table while it sleeps, and ends with them.

use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Tables, lock};

/// How long few changes may wait.
const PATIENCE: Duration = Duration::from_millis(50);

/// The thread, once there is work for it.
#[derive(Default)]
pub(super) struct Merger {
    state: Arc<(Mutex<State>, Condvar)>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct State {
    work: bool,
    urgent: bool,
    ended: bool,
}

impl Merger {
    /// Whether there is work and no thread that will do it.
    pub fn is_needed(&self) -> bool {
        lock(&self.state.0).work && lock(&self.thread).is_none()
    }

    /// There is work: for a thread, if one can be had.
    pub fn wake(&self, tables: &Weak<Tables>, urgent: bool) {
        let mut thread = lock(&self.thread);
        if thread.is_none() {
            let (state, tables) = (self.state.clone(), tables.clone());
            *thread = std::thread::Builder::new().name("pipec-tables".into()).spawn(move || run(&state, &tables)).ok();
        }
        let (state, bell) = &*self.state;
        let mut state = lock(state);
        if !state.work || urgent && !state.urgent {
            state.work = true;
            state.urgent |= urgent;
            bell.notify_one();
        }
    }
}

impl Drop for Merger {
    fn drop(&mut self) {
        let (state, bell) = &*self.state;
        lock(state).ended = true;
        bell.notify_one();
        // The thread itself may have been the last to hold the tables.
        if let Some(thread) = lock(&self.thread).take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

fn run((state, bell): &(Mutex<State>, Condvar), tables: &Weak<Tables>) {
    loop {
        let idle = bell.wait_while(lock(state), |state| !state.work && !state.ended);
        let Ok(idle) = idle else { return };
        let Ok((mut state, _)) = bell.wait_timeout_while(idle, PATIENCE, |state| !state.urgent && !state.ended) else {
            return;
        };
        if state.ended {
            return;
        }
        (state.work, state.urgent) = (false, false);
        drop(state);
        let Some(tables) = tables.upgrade() else { return };
        tables.merge();
    }
}
