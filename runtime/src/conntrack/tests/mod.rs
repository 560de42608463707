//! Tests of the tracker as a whole: frames in, states out.

pub mod frames;
mod invalid;
mod life;
mod model;
mod other;
mod related;
mod tcp;
mod workers;

use std::sync::Arc;

use pipec_abi::ct::state::{DNAT, EST, INV, NEW, REL, RPL, SNAT, TRK};
use pipec_abi::{Burst, CtPoint, CtView};

use super::{Config, Conntrack, Tracker};

/// A second, in nanoseconds.
const S: u64 = 1_000_000_000;

/// A look without a commit, and a commit.
const LOOK: CtPoint = CtPoint { flags: 0, mark: 0, mark_mask: 0, reserved: 0, label: [0; 2], label_mask: [0; 2] };
const COMMIT: CtPoint = CtPoint { flags: CtPoint::COMMIT, ..LOOK };
const FORCE: CtPoint = CtPoint { flags: CtPoint::COMMIT | CtPoint::FORCE, ..LOOK };

/// A commit that sets the mark.
fn mark(mark: u32) -> CtPoint {
    CtPoint { mark, mark_mask: u32::MAX, ..COMMIT }
}

/// One worker, and its clock.
struct Net {
    ct: Arc<Conntrack>,
    tracker: Tracker,
    now_ns: u64,
}

impl Net {
    fn new() -> Net {
        Net::with(Config { max_conns: 1000, ..Config::default() })
    }

    fn with(config: Config) -> Net {
        let ct = Arc::new(Conntrack::new(&config));
        Net { tracker: Tracker::new(ct.clone()), ct, now_ns: 1_000 * S }
    }

    fn wait(&mut self, seconds: u64) {
        self.now_ns += seconds * S;
    }

    /// Tracks one frame as a burst of its own.
    fn view(&mut self, frame: &[u8], point: &CtPoint, zone: u16) -> CtView {
        self.burst(&[frame], |_, tracker, burst, view| {
            tracker.ct(view, burst, 0, point, zone);
        })[0]
    }

    /// Tracks one frame in zone 0; its state in words.
    fn ct(&mut self, frame: &[u8], point: &CtPoint) -> String {
        words(self.view(frame, point, 0).state)
    }

    /// Tracks a burst of frames in zone 0, all prepared first.
    fn together(&mut self, frames: &[(&[u8], &CtPoint)]) -> Vec<String> {
        let bytes: Vec<_> = frames.iter().map(|(frame, _)| *frame).collect();
        let all = (1u64 << frames.len()) - 1;
        let mut prepared = false;
        let views = self.burst(&bytes, |i, tracker, burst, view| {
            if !core::mem::replace(&mut prepared, true) {
                tracker.prepare(burst, all as u32, 0);
            }
            tracker.ct(view, burst, i, frames[i].1, 0);
        });
        views.into_iter().map(|view| words(view.state)).collect()
    }

    /// Runs `act` on each packet of a burst.
    fn burst(
        &mut self,
        frames: &[&[u8]],
        mut act: impl FnMut(usize, &mut Tracker, &mut Burst, &mut CtView),
    ) -> Vec<CtView> {
        let mut bytes: Vec<Vec<u8>> = frames.iter().map(|frame| frame.to_vec()).collect();
        let mut burst = burst_of(&mut bytes, self.now_ns);
        self.tracker.begin(self.now_ns);
        let mut views = vec![CtView::CLEAR; frames.len()];
        for (i, view) in views.iter_mut().enumerate() {
            act(i, &mut self.tracker, &mut burst, view);
        }
        views
    }

    fn dump(&self) -> Vec<String> {
        self.ct.dump(self.now_ns).iter().map(|dump| format!("{dump:#}")).collect()
    }
}

/// A burst over frames, which must not be touched while it is used.
fn burst_of(frames: &mut [Vec<u8>], now_ns: u64) -> Burst {
    let mut burst = Burst::new();
    burst.begin(now_ns);
    for frame in frames {
        // SAFETY: callers keep the frames until they are done with the burst.
        unsafe { burst.push(core::ptr::null_mut(), frame.as_mut_ptr(), frame.len() as u32, 0) };
    }
    burst
}

/// A state as a rule would match it: `est+rpl`; `trk` goes without saying.
fn words(state: u32) -> String {
    let names = [(NEW, "new"), (EST, "est"), (REL, "rel"), (RPL, "rpl"), (INV, "inv"), (SNAT, "snat"), (DNAT, "dnat")];
    assert!(state & TRK != 0, "{state:#x}");
    let set: Vec<_> = names.iter().filter(|(bit, _)| state & bit != 0).map(|(_, name)| *name).collect();
    set.join("+")
}
