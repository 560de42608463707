//! Labels of MPLS: one more in front of the others, or one less (P8, P9).

use super::{Outcome, failed, grown};
use crate::header;
use crate::{Burst, Ctx, DropReason, Env};

/// Labels that are looked at, at the most; frames may have more, but none can be pushed or popped then.
const MAX_LABELS: usize = 3;
/// Set in the last label of a stack.
const BOTTOM: u64 = 0x100;

fn is_mpls(eth_type: u16) -> bool {
    matches!(eth_type, 0x8847 | 0x8848)
}

/// Labels at `at`, up to the bottom of the stack and at most [`MAX_LABELS`]; and whether the bottom was met.
fn labels(data: &[u8], at: usize) -> (usize, bool) {
    for n in 0..MAX_LABELS {
        if data.len() < at + 4 * n + 4 {
            return (n, true);
        }
        if header::load32(data, at + 4 * n) & BOTTOM != 0 {
            return (n + 1, true);
        }
    }
    (MAX_LABELS, false)
}

/// The new label is that of the outer one; without one it is explicit null, with traffic class and TTL of IP, else 64.
pub fn push<E: Env + ?Sized>(
    env: &mut E,
    ctx: &mut Ctx,
    burst: &mut Burst,
    i: usize,
    eth_type: u16,
    vlan_limit: u32,
) -> Outcome {
    let data = burst.bytes(i);
    let l2 = header::l2(data, vlan_limit);
    let at = l2.end();
    let label = if is_mpls(l2.eth_type()) && labels(data, at).0 > 0 {
        if labels(data, at).0 == MAX_LABELS {
            return failed(DropReason::MplsLabels);
        }
        header::load32(data, at) & !BOTTOM
    } else {
        let (v4, v6) = (l2.eth_type() == header::IPV4, l2.eth_type() == header::IPV6);
        let whole = header::l3(data, l2).has_rest();
        let (class, ttl) = match (v4 || v6, whole) {
            (false, _) => (0, 64),
            (true, false) => (0, 0),
            _ if v4 => (header::load8(data, at + 1) >> 2 & 7, header::load8(data, at + 8)),
            _ => (header::load16(data, at) >> 6 & 7, header::load8(data, at + 7)),
        };
        u64::from(v6) << 13 | class << 9 | BOTTOM | ttl
    };
    let done = env.grow(ctx, burst, i, at, 4);
    if done {
        let data = burst.bytes_mut(i);
        header::store::<2>(data, at - 2, u64::from(eth_type));
        header::store::<4>(data, at, label);
    }
    grown(done)
}

/// Nothing where there is no label.
pub fn pop<E: Env + ?Sized>(
    env: &mut E,
    ctx: &mut Ctx,
    burst: &mut Burst,
    i: usize,
    eth_type: u16,
    vlan_limit: u32,
) -> Outcome {
    let data = burst.bytes(i);
    let l2 = header::l2(data, vlan_limit);
    let at = l2.end();
    if !is_mpls(l2.eth_type()) {
        return 0;
    }
    match labels(data, at) {
        (0, _) => return 0,
        (_, false) => return failed(DropReason::MplsLabels),
        _ => {}
    }
    env.shrink(ctx, burst, i, at, 4);
    header::store::<2>(burst.bytes_mut(i), at - 2, u64::from(eth_type));
    0
}
