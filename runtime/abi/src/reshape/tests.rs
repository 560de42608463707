//! Bytes come and go, and what covers them follows.

use std::sync::Arc;

use super::*;
use crate::table::EntryCounter;
use crate::{CtPoint, Emit};

/// An `Env` whose packets have some bytes free in front.
struct Roomy {
    room: usize,
}

impl Env for Roomy {
    fn ct_prepare(&mut self, _: &mut Ctx, _: &Burst, _: u32, _: u16) {}
    fn ct(&mut self, _: &mut Ctx, _: &mut Burst, _: usize, _: &CtPoint, _: u16) -> u32 {
        0
    }
    fn emit(&mut self, _: &mut Ctx, _: &mut Burst, _: usize, _: u16, _: Emit) {}
    fn flood(&mut self, _: &mut Ctx, _: &mut Burst, _: usize, _: u16, _: Emit) {}
    fn normal(&mut self, _: &mut Ctx, _: &mut Burst, _: usize, _: u16, _: Emit) {}
    fn emit_part(&mut self, _: &mut Ctx, _: &mut Burst, _: usize, _: u16, _: u16) {}
    fn controller(&mut self, _: &mut Ctx, _: &mut Burst, _: usize, _: u8, _: u16) {}
    fn meter(&mut self, _: &mut Ctx, _: &mut Burst, _: usize, _: u16) -> bool {
        true
    }
    fn live(&mut self, _: &mut Ctx, _: u16) -> bool {
        true
    }
    fn save(&mut self, _: &mut Ctx, _: &mut Burst, _: usize) {}
    fn restore(&mut self, _: &mut Ctx, _: &mut Burst, _: usize) {}
    fn fail(&mut self, _: &mut Ctx, _: &mut Burst, _: usize, _: DropReason) {}
    fn grow(&mut self, _: &mut Ctx, burst: &mut Burst, i: usize, at: usize, n: usize) -> bool {
        if n > self.room {
            return false;
        }
        self.room -= n;
        let (data, len) = (burst.bytes_mut(i).as_mut_ptr(), burst.frame_len(i));
        // SAFETY: `run` has so many bytes before the frame.
        unsafe { burst.replace(i, data.wrapping_sub(n), len + n as u32) };
        let data = burst.bytes_mut(i);
        data.copy_within(n..n + at, 0);
        data[at..at + n].fill(0);
        true
    }
}

const ROOM: usize = 128;

/// Does something with a frame, and gives what became of it.
fn run(frame: &[u8], room: usize, act: impl FnOnce(&mut Roomy, &mut Ctx, &mut Burst)) -> Vec<u8> {
    let mut bytes = [&[0; ROOM], frame].concat();
    let data = bytes[..].as_mut_ptr().wrapping_add(ROOM);
    let mut burst = Burst::new();
    burst.begin(0);
    // SAFETY: `bytes` outlives the burst and is touched by nobody else meanwhile.
    unsafe { burst.push(core::ptr::null_mut(), data, frame.len() as u32, 0) };
    act(&mut Roomy { room }, &mut Ctx::new(0, 0, Arc::default(), EntryCounter::new(0)), &mut burst);
    burst.bytes(0).to_vec()
}

/// A UDP packet over either version with right checksums, of a payload of `n` bytes.
fn udp(v6: bool, n: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    let len = (8 + n) as u8;
    if v6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, len, 17, 64]);
        frame.extend([0xfd; 32]);
    } else {
        frame.extend([8, 0, 0x45, 0, 0, 20 + len, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let sum = !fold(sum_words(&frame[14..34])) as u16;
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    }
    let (addresses, l4) = if v6 { (22, 54) } else { (26, 34) };
    frame.extend([4, 0, 0, 53, 0, len, 0, 0]);
    frame.extend((0..n).map(|byte| byte as u8 ^ 0x5a));
    let sum = !fold(sum_words(&frame[addresses..]) + 17 + u64::from(len)) as u16;
    frame[l4 + 6..l4 + 8].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// Whether the checksums and lengths of such a packet are right.
fn is_right(frame: &[u8], v6: bool) -> bool {
    let (addresses, l4) = if v6 { (22, 54) } else { (26, 34) };
    let len = frame.len() - l4;
    let ip = v6 && frame[18..20] == (len as u16).to_be_bytes()
        || !v6 && fold(sum_words(&frame[14..34])) == 0xffff && frame[16..18] == (len as u16 + 20).to_be_bytes();
    let udp = fold(sum_words(&frame[addresses..]) + 17 + len as u64) == 0xffff;
    ip && udp && frame[l4 + 4..l4 + 6] == (len as u16).to_be_bytes()
}

#[test]
fn what_is_put_in_and_taken_out_is_covered() {
    for (v6, payload, n) in [(false, 9, 4), (false, 10, 3), (true, 9, 7), (true, 20, 1), (false, 0, 5)] {
        let before = udp(v6, payload);
        assert!(is_right(&before, v6));
        let at = before.len() - payload;
        let grown = run(&before, ROOM, |env, ctx, burst| {
            assert_eq!(apply(env, ctx, burst, 0, Reshape::Insert, (at as u64, n), 1), 0);
            assert!(is_right(burst.bytes(0), v6));
            set_bits(burst.bytes_mut(0), at, 1, 7, 0x55, Some(1));
        });
        assert!(is_right(&grown, v6) && grown.len() == before.len() + n as usize && grown[at] == 0x55);
        let after = run(&grown, 0, |env, ctx, burst| {
            apply(env, ctx, burst, 0, Reshape::Remove, (at as u64, n), 1);
        });
        assert_eq!(after, before);
    }
}

#[test]
fn a_wrong_checksum_stays_wrong_and_none_stays_none() {
    for sum in [[0u8, 0], [0x12, 0x34]] {
        let mut frame = udp(false, 8);
        frame[40..42].copy_from_slice(&sum);
        let grown = run(&frame, ROOM, |env, ctx, burst| {
            apply(env, ctx, burst, 0, Reshape::Insert, (42, 4), 1);
        });
        assert!(!is_right(&grown, false) && fold(sum_words(&grown[14..34])) == 0xffff);
        assert_eq!(grown[40..42] == [0, 0], sum == [0, 0]);
    }
}

#[test]
fn bits_are_written_where_they_are_and_nowhere_else() {
    for (offset, width) in [(0, 1), (3, 13), (7, 1), (5, 64), (1, 127), (0, 128), (4, 3)] {
        let mut data = vec![0xaa; 40];
        let value = 0x0123_4567_89ab_cdef_1122_3344_5566_7788u128;
        set_bits(&mut data, 10, offset, width, value, None);
        for bit in 0..320usize {
            let now = data[bit / 8] >> (7 - bit % 8) & 1;
            let inside = bit.checked_sub(80 + offset as usize).filter(|k| *k < width as usize);
            let expected = inside.map_or(u8::from(bit % 2 == 0), |k| (value >> (width as usize - 1 - k) & 1) as u8);
            assert_eq!(now, expected, "bit {bit} of {width} at {offset}");
        }
    }
    let mut short = vec![0; 12];
    set_bits(&mut short, 10, 8, 16, u128::MAX, Some(1));
    assert_eq!(short, [0; 12]);
}

/// A stack for VXLAN over either version.
fn vxlan(v6: bool) -> Stack {
    let mut bytes = [0; MAX_STACK];
    let outer = udp(v6, 0);
    bytes[..outer.len()].copy_from_slice(&outer);
    let len = outer.len();
    bytes[len - 2..len].fill(0);
    bytes[len - 6..len - 4].copy_from_slice(&4789u16.to_be_bytes());
    bytes[len] = 8;
    let (len, udp) = (len as u16 + 8, len as u16 - 8);
    Stack { bytes, len, ip: 14, udp, length: 0, eth_type: 0, protocol: 0, v6: u8::from(v6), packet: 0 }
}

#[test]
fn a_tunnel_is_left_as_it_was_entered() {
    for v6 in [false, true] {
        let frame = udp(!v6, 21);
        let stack = vxlan(v6);
        let inside = run(&frame, ROOM, |env, ctx, burst| {
            assert_eq!(encap(env, ctx, burst, 0, &stack, 1), 0);
            finish(burst.bytes_mut(0), &stack);
        });
        assert_eq!(inside.len(), frame.len() + usize::from(stack.len));
        let l4 = usize::from(stack.udp);
        assert_eq!(inside[l4 + 4..l4 + 6], ((inside.len() - l4) as u16).to_be_bytes());
        match v6 {
            true => assert!(is_right(&inside, true)),
            false => assert!(fold(sum_words(&inside[14..34])) == 0xffff && inside[l4 + 6..l4 + 8] == [0, 0]),
        }
        let out = run(&inside, 0, |env, ctx, burst| {
            let at = (stack.len - 8).into();
            assert_eq!(apply(env, ctx, burst, 0, Reshape::Decap, (Tunnel::Vxlan as u64, at), 1), 0);
        });
        assert_eq!(out, frame);
    }
}

#[test]
fn without_room_nothing_changes() {
    let frame = udp(false, 8);
    let stack = vxlan(false);
    let same = run(&frame, 3, |env, ctx, burst| {
        for (what, shape) in [(Reshape::Insert, (42, 4)), (Reshape::Grow, (12, 4)), (Reshape::PushMpls, (0x8847, 0))] {
            assert_eq!(reason(apply(env, ctx, burst, 0, what, shape, 1)), DropReason::NoRoom);
        }
        assert_eq!(reason(encap(env, ctx, burst, 0, &stack, 1)), DropReason::NoRoom);
    });
    assert_eq!(same, frame);
}
