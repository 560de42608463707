//! Frames as a receive queue reads them: one after the other in slots of whole cache lines.
//!
//! In: a capture. Out: slots, each a frame and, in its last two bytes, the frame's length; the share of a queue. Never: a frame
//! that is longer than [`LONGEST`], or empty frames alone.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use pcap_file::pcap::PcapReader;

/// The longest frame, in bytes: what the mbufs of any DPDK program hold.
pub const LONGEST: usize = 1536;

/// A cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// By what the frames are shared among queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Split {
    /// Both directions of a connection to one queue.
    Symmetric,
    /// Each direction by itself.
    Asymmetric,
}

/// At least one frame.
pub struct Frames {
    lines: Vec<Line>,
    /// Lines a slot.
    stride: usize,
}

impl Frames {
    /// Reads a capture.
    pub fn read(path: &Path) -> Result<Frames, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let mut reader = PcapReader::new(BufReader::new(file)).map_err(|error| error.to_string())?;
        let mut frames = Vec::new();
        while let Some(packet) = reader.next_packet() {
            let packet = packet.map_err(|error| error.to_string())?;
            if packet.data.len() > LONGEST {
                return Err(format!("frame {} is longer than {LONGEST} bytes", frames.len()));
            }
            frames.push(packet.data.into_owned());
        }
        match frames.is_empty() {
            true => Err("no frames".to_string()),
            false => Ok(Frames::of(frames.iter().map(Vec::as_slice))),
        }
    }

    /// These frames; a blank one if there is none.
    fn of<'a>(frames: impl Iterator<Item = &'a [u8]> + Clone) -> Frames {
        let longest = frames.clone().map(<[u8]>::len).max().unwrap_or(0);
        let stride = (longest + 2).div_ceil(64);
        let mut all = Frames { lines: Vec::with_capacity(frames.clone().count().max(1) * stride), stride };
        crate::receive::ask_for_huge_pages(all.lines.spare_capacity_mut());
        for frame in frames {
            all.push(frame);
        }
        if all.lines.is_empty() {
            all.stride = 1;
            all.push(&[0; 60]);
        }
        all
    }

    fn push(&mut self, frame: &[u8]) {
        let at = self.lines.len();
        self.lines.resize(at + self.stride, Line([0; 64]));
        for (line, bytes) in self.lines[at..].iter_mut().zip(frame.chunks(64)) {
            line.0[..bytes.len()].copy_from_slice(bytes);
        }
        let length = (frame.len() as u16).to_ne_bytes(); // at most LONGEST
        self.lines[at + self.stride - 1].0[62..].copy_from_slice(&length);
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.lines.len() / self.stride
    }

    /// Bytes a slot.
    pub fn stride(&self) -> usize {
        self.stride * 64
    }

    /// All slots. Each begins with its frame and ends with the frame's length in two bytes; it is at least as long as the
    /// frame's length rounded up to 16.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: initialised lines, which are 64 bytes each without padding.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.lines.len() * 64) }
    }

    /// A frame.
    pub fn frame(&self, at: usize) -> &[u8] {
        let slot = &self.bytes()[at * self.stride()..][..self.stride()];
        let length = u16::from_ne_bytes([slot[slot.len() - 2], slot[slot.len() - 1]]);
        &slot[..usize::from(length)]
    }

    /// What queue number `queue` of `queues` receives of these.
    pub fn share(&self, queue: u32, queues: u32, split: Split) -> Frames {
        let all = (0..self.count()).map(|at| self.frame(at));
        Frames::of(all.filter(|frame| tuple_hash(frame, split) % queues == queue))
    }
}

/// A hash of an IPv4 frame's addresses and ports; the same for all other frames.
fn tuple_hash(frame: &[u8], split: Split) -> u32 {
    let word = |at: usize| u32::from_ne_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
    let half = |at: usize| u32::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
    let (from, to) = match frame.len() >= 38 && frame[12..14] == [8, 0] {
        true => (word(26).wrapping_add(half(34)), word(30).wrapping_add(half(36))),
        false => (0, 0),
    };
    let mut x = match split {
        Split::Symmetric => from ^ to,
        Split::Asymmetric => from.wrapping_mul(31).wrapping_add(to),
    };
    x = (x ^ x >> 16).wrapping_mul(0x7feb_352d);
    x = (x ^ x >> 15).wrapping_mul(0x846c_a68b);
    x ^ x >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(from: [u8; 6], to: [u8; 6]) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12] = 8;
        frame[26..30].copy_from_slice(&from[..4]);
        frame[30..34].copy_from_slice(&to[..4]);
        frame[34..36].copy_from_slice(&from[4..]);
        frame[36..38].copy_from_slice(&to[4..]);
        frame
    }

    #[test]
    fn frames_come_back_as_they_went_in() {
        for length in [0, 1, 60, 61, 62, 63, 64, 126, 127, 1514, LONGEST] {
            let frame: Vec<u8> = (0..length).map(|i| i as u8 | 1).collect();
            let frames = Frames::of([frame.as_slice(), &[7; 3]].into_iter());
            assert_eq!(frames.count(), 2);
            assert_eq!(frames.frame(0), frame);
            assert_eq!(frames.frame(1), [7; 3]);
            assert!(length.next_multiple_of(16) <= frames.stride());
        }
    }

    #[test]
    fn queues_share_all_frames_and_directions_meet() {
        let ends = |i: u16| ([10, 0, 0, 1, (i >> 8) as u8, i as u8], [10, 9, 0, 1, 0, 80]);
        let there: Vec<Vec<u8>> = (0..500).map(|i| udp(ends(i).0, ends(i).1)).collect();
        let back: Vec<Vec<u8>> = (0..500).map(|i| udp(ends(i).1, ends(i).0)).collect();
        let (lan, wan) = (Frames::of(there.iter().map(Vec::as_slice)), Frames::of(back.iter().map(Vec::as_slice)));
        let count = |frames: &Frames, queue| frames.share(queue, 2, Split::Symmetric).count();
        assert_eq!(count(&lan, 0) + count(&lan, 1), 500);
        assert!(count(&lan, 0) > 100 && count(&lan, 1) > 100, "both queues work");
        assert_eq!(count(&lan, 0), count(&wan, 0));
        for (a, b) in there.iter().zip(&back) {
            assert_eq!(tuple_hash(a, Split::Symmetric), tuple_hash(b, Split::Symmetric));
        }
        assert!(
            there.iter().zip(&back).any(|(a, b)| tuple_hash(a, Split::Asymmetric) != tuple_hash(b, Split::Asymmetric))
        );
        assert_eq!(lan.share(5, 1000, Split::Symmetric).frame(0).len(), 60, "a queue without frames gets a blank one");
    }
}
