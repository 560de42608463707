//! What the tests of the command line share: a folder for each, runs of the program, captures.

#![allow(dead_code, clippy::unwrap_used)] // each test file uses its part of it; all of it is test code

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of its own for one test, removed behind it.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Runs `pipec` in the folder.
    pub fn pipec<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, args: I) -> Ran {
        self.run(Path::new(env!("CARGO_BIN_EXE_pipec")), args)
    }

    /// Runs a program in the folder. What is built is kept for all tests.
    pub fn run<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, program: &Path, args: I) -> Ran {
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.0);
        command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
        Ran::from(command.output().unwrap())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a run came to.
#[derive(Debug)]
pub struct Ran {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { status: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Ran {
    /// It ended well; what it printed.
    #[track_caller]
    pub fn good(self) -> String {
        assert_eq!(self.status, 0, "{self:?}");
        self.out
    }

    /// It ended with this status and one message that has these parts, and did not panic.
    #[track_caller]
    pub fn bad(self, status: i32, parts: &[&str]) {
        assert_eq!(self.status, status, "{self:?}");
        assert!(!self.err.contains("panicked"), "{self:?}");
        for part in parts {
            assert!(self.err.contains(part), "`{part}` in {}", self.err);
        }
    }
}

/// A packet of a capture: seconds, microseconds, frame.
pub type Packet = (u32, u32, Vec<u8>);

/// A capture with a link type.
pub fn pcap_of(link: u32, packets: &[Packet]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(0xa1b2_c3d4_u32.to_le_bytes());
    file.extend([2, 0, 4, 0]);
    for value in [0, 0, 65535, link] {
        file.extend(value.to_le_bytes());
    }
    for (sec, micro, frame) in packets {
        for value in [*sec, *micro, frame.len() as u32, frame.len() as u32] {
            file.extend(value.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// A capture of Ethernet.
pub fn pcap(packets: &[Packet]) -> Vec<u8> {
    pcap_of(1, packets)
}

/// An IPv4 UDP frame between two hosts, by the last bytes of their addresses, without a UDP checksum.
pub fn udp(src: u8, dst: u8, sport: u16, dport: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, dst, 2, 0, 0, 0, 0, src, 8, 0];
    let mut ip = [0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, src, 10, 0, 0, dst];
    let sum: u32 = ip.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(ip);
    frame.extend(sport.to_be_bytes());
    frame.extend(dport.to_be_bytes());
    frame.extend([0, 26, 0, 0]);
    frame.resize(60, 0x55);
    frame
}

/// An ARP request of a host for another.
pub fn arp(src: u8, dst: u8) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, src, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, src, 10, 0, 0, src]);
    frame.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, dst]);
    frame.resize(60, 0);
    frame
}

/// Hosts on `lan` may open connections, `wan` may only answer.
pub const FIREWALL: &str = include_str!("../../../pipelines/firewall.pipe");

/// What `lan` and `wan` receive: two conversations, attempts from outside, ARP.
pub fn conversations() -> (Vec<u8>, Vec<u8>) {
    let (mut lan, mut wan) = (vec![], vec![]);
    for i in 0..20 {
        let host = 1 + (i % 4) as u8;
        lan.push((10, i * 100, udp(host, 200, 1000, 53)));
        wan.push((10, i * 100, udp(200, host, 53, 1000)));
        wan.push((10, i * 100 + 50, udp(201, host, 7, 7 + i as u16)));
    }
    lan.push((11, 0, arp(1, 200)));
    wan.push((11, 0, arp(200, 1)));
    wan.push((12, 5, vec![0; 60]));
    (pcap(&lan), pcap(&wan))
}
