//! Captures, written and read back, whole, damaged and strange.

use super::writer::SNAP_LEN;
use super::*;

/// A folder of its own for one test, removed behind it.
pub(crate) struct Scratch(pub PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        let folder = std::env::temp_dir().join(format!("pipec-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// One number in the byte order under test.
fn word(big: bool, value: u32) -> [u8; 4] {
    if big { value.to_be_bytes() } else { value.to_le_bytes() }
}

fn half(big: bool, value: u16) -> [u8; 2] {
    if big { value.to_be_bytes() } else { value.to_le_bytes() }
}

/// A pcap file: packets as seconds, fraction, original length, frame.
fn pcap(big: bool, magic: u32, link: u32, packets: &[(u32, u32, u32, &[u8])]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(word(big, magic));
    file.extend(half(big, 2));
    file.extend(half(big, 4));
    for value in [0, 0, 65535, link] {
        file.extend(word(big, value));
    }
    for (sec, frac, had, frame) in packets {
        for value in [*sec, *frac, frame.len() as u32, *had] {
            file.extend(word(big, value));
        }
        file.extend(*frame);
    }
    file
}

fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let len = word(big, body.len() as u32 + 12);
    [&word(big, kind)[..], &len, &body, &len].concat()
}

fn section(big: bool) -> Vec<u8> {
    let body = [&word(big, 0x1a2b_3c4d)[..], &half(big, 1), &half(big, 0), &[0xff; 8]].concat();
    block(big, 0x0a0d_0d0a, &body)
}

/// An interface's description, with the resolution of its stamps if it says one.
fn interface(big: bool, link: u16, resolution: Option<u8>) -> Vec<u8> {
    let mut body = [&half(big, link)[..], &half(big, 0), &word(big, 0)].concat();
    if let Some(code) = resolution {
        body.extend([&half(big, 9)[..], &half(big, 1), &[code, 0, 0, 0], &[0; 4]].concat());
    }
    block(big, 1, &body)
}

fn enhanced(big: bool, interface: u32, ticks: u64, frame: &[u8]) -> Vec<u8> {
    let len = frame.len() as u32;
    let words = [interface, (ticks >> 32) as u32, ticks as u32, len, len].map(|value| word(big, value));
    block(big, 6, &[&words.concat()[..], frame].concat())
}

fn read(path: &Path) -> (Vec<Packet>, Option<String>) {
    let mut packets = Vec::new();
    for next in Capture::open(path).unwrap() {
        match next {
            Ok(packet) => packets.push(packet),
            Err(error) => return (packets, Some(error.to_string())),
        }
    }
    (packets, None)
}

fn packet(stamp_ns: u64, frame: &[u8]) -> Packet {
    Packet { stamp_ns: Some(stamp_ns), frame: frame.to_vec() }
}

fn open_error(path: &Path) -> String {
    Capture::open(path).err().map(|error| error.to_string()).expect("an error")
}

#[test]
fn pcap_is_read_in_both_orders_and_resolutions() {
    let scratch = Scratch::new("pcap-orders");
    for big in [false, true] {
        for (magic, unit_ns, resolution) in [(0xa1b2_c3d4, 1000, Resolution::Micro), (0xa1b2_3c4d, 1, Resolution::Nano)]
        {
            let path = scratch.file("a.pcap", &pcap(big, magic, 1, &[(5, 7, 3, b"abc"), (6, 0, 2, b"de")]));
            assert_eq!(Capture::open(&path).unwrap().resolution(), resolution);
            let expected = vec![packet(5_000_000_000 + 7 * unit_ns, b"abc"), packet(6_000_000_000, b"de")];
            assert_eq!(read(&path), (expected, None));
        }
    }
}

#[test]
fn pcapng_is_read_with_the_clock_of_each_interface() {
    let scratch = Scratch::new("pcapng");
    for big in [false, true] {
        let file = [
            section(big),
            interface(big, 1, None),
            interface(big, 1, Some(9)),
            interface(big, 1, Some(0x80 | 1)),
            enhanced(big, 0, 5, b"micro"),
            block(big, 5, &[0; 12]),
            enhanced(big, 1, 5, b"nano"),
            enhanced(big, 2, 3, b"halves"),
            block(big, 3, &[&word(big, 4)[..], b"bare"].concat()),
        ];
        let path = scratch.file("a.pcapng", &file.concat());
        assert_eq!(Capture::open(&path).unwrap().resolution(), Resolution::Nano);
        let (packets, error) = read(&path);
        assert_eq!(error, None);
        let expected = [
            packet(5000, b"micro"),
            packet(5, b"nano"),
            packet(1_500_000_000, b"halves"),
            Packet { stamp_ns: None, frame: b"bare".to_vec() },
        ];
        assert_eq!(packets, expected);
    }
}

#[test]
fn a_capture_that_breaks_off_gives_what_is_whole() {
    let scratch = Scratch::new("truncated");
    let file = pcap(false, 0xa1b2_c3d4, 1, &[(1, 0, 4, b"good"), (2, 0, 4, b"lost")]);
    for cut in 1..20 {
        let path = scratch.file("a.pcap", &file[..file.len() - cut]);
        let (packets, error) = read(&path);
        assert_eq!(packets, [packet(1_000_000_000, b"good")]);
        let error = error.expect("an error");
        assert!(error.contains("a.pcap: the capture breaks off in the middle of packet 2, after 1 packet;"), "{error}");
    }
    let path = scratch.file("a.pcap", &file[..10]);
    assert!(open_error(&path).contains("breaks off in the middle of packet 1, after 0 packets"));
    let file = [section(false), interface(false, 1, None), enhanced(false, 0, 0, b"good"), vec![6, 0, 0, 0]].concat();
    let (packets, error) = read(&scratch.file("a.pcapng", &file));
    assert_eq!((packets.len(), error.is_some()), (1, true));
}

#[test]
fn what_is_no_capture_of_ethernet_is_refused_with_the_remedy() {
    let scratch = Scratch::new("refused");
    let cases: [(&[u8], &[&str]); 5] = [
        (b"", &["empty", "tcpdump -w"]),
        (b"hello", &["not a capture", "pcap or pcapng"]),
        (b"\x1f\x8b\x08\x00", &["compressed", "gunzip"]),
        (&pcap(false, 0xa1b2_c3d4, 113, &[]), &["link type 113 (Linux cooked)", "not on `any`"]),
        (
            &[section(true), interface(true, 101, None), enhanced(true, 0, 0, b"E")].concat(),
            &["link type 101", "packet 1"],
        ),
    ];
    for (bytes, parts) in cases {
        let error = open_error(&scratch.file("a.pcap", bytes));
        for part in parts {
            assert!(error.contains(part), "{part} in {error}");
        }
    }
    let error = open_error(&scratch.0.join("none.pcap"));
    assert!(
        error.contains("none.pcap: cannot open the capture: no such file or directory; see that the path"),
        "{error}"
    );
    let error = open_error(&scratch.0);
    assert!(error.contains("is a directory"), "{error}");
}

#[test]
fn damage_inside_is_told_with_its_place() {
    let scratch = Scratch::new("damaged");
    let file =
        [section(false), interface(false, 1, None), enhanced(false, 0, 0, b"good"), enhanced(false, 7, 0, b"bad")];
    let (packets, error) = read(&scratch.file("a.pcapng", &file.concat()));
    assert_eq!(packets.len(), 1);
    assert!(error.expect("an error").contains("damaged behind 1 packet: the next packet is of interface 7"));
}

#[test]
fn frames_cut_short_are_counted() {
    let scratch = Scratch::new("cut");
    let file = pcap(false, 0xa1b2_c3d4, 1, &[(1, 0, 4, b"full"), (1, 0, 90, b"cut"), (1, 0, 80, b"cut")]);
    let mut capture = Capture::open(&scratch.file("a.pcap", &file)).unwrap();
    assert_eq!(capture.by_ref().count(), 3);
    assert_eq!(capture.cut(), Some(Cut { first: 2, have: 3, had: 90, count: 2 }));
}

#[test]
fn what_is_written_is_read_back_and_has_the_same_bytes() {
    let scratch = Scratch::new("written");
    for (resolution, magic, stamp_ns) in
        [(Resolution::Micro, 0xa1b2_c3d4, 3_000_004_000), (Resolution::Nano, 0xa1b2_3c4d, 3_000_004_005)]
    {
        let path = scratch.0.join("out.pcap");
        let mut writer = Writer::create(&path, resolution).unwrap();
        writer.write(stamp_ns, b"frame").unwrap();
        writer.finish().unwrap();
        let fraction = if resolution == Resolution::Nano { 4005 } else { 4 };
        let mut expected = pcap(false, magic, 1, &[(3, fraction, 5, b"frame")]);
        expected[16..20].copy_from_slice(&SNAP_LEN.to_le_bytes());
        assert_eq!(std::fs::read(&path).unwrap(), expected);
        assert_eq!(read(&path), (vec![packet(stamp_ns, b"frame")], None));
    }
    let error = Writer::create(&scratch.0.join("none/out.pcap"), Resolution::Micro).err().unwrap().to_string();
    assert!(
        error.contains("out.pcap: cannot write the capture: no such file or directory; make its folder first"),
        "{error}"
    );
}
