//! A worker as the tables know it: which version it has come to.
//!
//! A worker looks at one number at the beginning of a burst. Where it has changed, the worker says that it has come to it, so
//! that what was left before can be used again, and takes the newest root if that has changed, too. A worker without work
//! says that it rests: nothing waits for it then.

use std::sync::Arc;

use pipec_abi::Ctx;
use pipec_abi::table::{EntryCounter, Root};

use super::{Tables, lock};
use crate::sync::{AtomicU64, Ordering, Padded, fence, try_lock};

/// A worker that is in no burst.
const RESTS: u64 = u64::MAX;

/// The version that each worker has come to.
#[derive(Default)]
pub(super) struct Readers(Vec<Arc<Padded<AtomicU64>>>);

impl Readers {
    /// The version that all have come to, if none is there that knows `newest`.
    pub fn all_have(&mut self, newest: u64) -> u64 {
        self.0.retain(|seen| Arc::strong_count(seen) > 1);
        fence(Ordering::SeqCst);
        self.0.iter().map(|seen| seen.0.load(Ordering::Acquire)).min().unwrap_or(newest).min(newest)
    }
}

/// What a worker reads tables with.
pub(crate) struct Reader {
    tables: Arc<Tables>,
    seen: Arc<Padded<AtomicU64>>,
    version: u64,
    root_version: u64,
}

impl Reader {
    /// For one more worker, which rests; the root and the counters for its context.
    pub fn new(tables: &Arc<Tables>) -> (Reader, Arc<Root>, Arc<[EntryCounter]>) {
        let seen = Arc::new(Padded(AtomicU64::new(RESTS)));
        lock(&tables.readers).0.push(seen.clone());
        let root = tables.root();
        let reader = Reader { tables: tables.clone(), seen, version: RESTS, root_version: root.version };
        (reader, root, tables.new_counters())
    }

    /// A burst begins.
    #[inline(always)]
    pub fn begin(&mut self, ctx: &mut Ctx) {
        if self.tables.version() != self.version {
            self.come(ctx);
        }
    }

    #[cold]
    fn come(&mut self, ctx: &mut Ctx) {
        let version = self.tables.version();
        if self.version == RESTS {
            self.seen.0.store(version, Ordering::Release);
            // Whoever frees sees that this worker rests no more, or this worker sees what was done before.
            fence(Ordering::SeqCst);
            let root = self.tables.root();
            self.take(ctx, root);
        } else if self.tables.root_version.load(Ordering::Acquire) != self.root_version {
            // Where a root is just being put in its place, the old one does for another burst.
            let Some(root) = try_lock(&self.tables.root).map(|root| root.clone()) else { return };
            self.take(ctx, root);
        }
        self.seen.0.store(version, Ordering::Release);
        self.version = version;
    }

    fn take(&mut self, ctx: &mut Ctx, root: Arc<Root>) {
        if root.version != self.root_version {
            self.root_version = root.version;
            ctx.set_root(root);
        }
    }

    /// No burst will come for a while.
    pub fn rest(&mut self) {
        if self.version != RESTS {
            self.version = RESTS;
            self.seen.0.store(RESTS, Ordering::Release);
        }
    }
}
