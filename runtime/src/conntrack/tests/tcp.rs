//! TCP: a test a rule.

use super::frames::*;
use super::*;

/// A client at A and a server at B, with sequence numbers counted from each one's first.
struct Talk {
    net: Net,
    isn: [u32; 2],
    window: u16,
    options: &'static [u8],
}

const CLIENT: usize = 0;
const SERVER: usize = 1;

impl Talk {
    fn new() -> Talk {
        Talk::with(Config { max_conns: 100, ..Config::default() })
    }

    fn with(config: Config) -> Talk {
        Talk { net: Net::with(config), isn: [0xffff_fff0, 0x7fff_fff0], window: 1000, options: &[] }
    }

    /// One that has shaken hands.
    fn open() -> Talk {
        Talk::new().shake()
    }

    fn shake(mut self) -> Talk {
        assert_eq!(self.send(CLIENT, SYN, 0, 0, 0), "new");
        assert_eq!(self.send(SERVER, SYN | ACK, 0, 1, 0), "est+rpl");
        assert_eq!(self.send(CLIENT, ACK, 1, 1, 0), "est");
        self
    }

    /// Sends a segment and commits; `seq` and `ack` are relative.
    fn send(&mut self, from: usize, flags: u8, seq: u32, ack: u32, len: usize) -> String {
        self.send_with(from, flags, seq, ack, len, self.options)
    }

    fn send_with(&mut self, from: usize, flags: u8, seq: u32, ack: u32, len: usize, options: &[u8]) -> String {
        let frame = self.frame(from, flags, seq, ack, len, options);
        self.net.ct(&frame, &COMMIT)
    }

    fn frame(&self, from: usize, flags: u8, seq: u32, ack: u32, len: usize, options: &[u8]) -> Vec<u8> {
        let ends = [(A, 40000), (B, 80)];
        let ((src, from_port), (dst, to)) = (ends[from], ends[1 - from]);
        let seq = self.isn[from].wrapping_add(seq);
        let ack = if flags & ACK != 0 { self.isn[1 - from].wrapping_add(ack) } else { 0 };
        Tcp { src, dst, from: from_port, to, flags, seq, ack, window: self.window, options, len }.frame()
    }

    /// State and time left, as a dump tells.
    fn status(&self) -> (String, u64) {
        let dump = &self.net.ct.dump(self.net.now_ns)[0];
        let text = dump.to_string();
        let state = text.split("state=").nth(1).unwrap().trim_end_matches(')').to_string();
        (state, dump.left_ns / S)
    }
}

#[test]
fn t2_what_may_begin_a_connection() {
    for flags in [SYN, ACK, RST, RST | ACK, PSH | ACK, FIN | ACK] {
        let mut talk = Talk::new();
        assert_eq!(talk.send(CLIENT, flags, 0, 5, 0), "new", "flags {flags:#x}");
        assert_eq!(talk.status(), ("SYN_SENT".into(), 30));
        let mut talk = Talk::with(Config { loose: false, max_conns: 10, ..Config::default() });
        assert_eq!(talk.send(CLIENT, flags, 0, 5, 0), if flags == SYN { "new" } else { "inv" }, "flags {flags:#x}");
    }
    let mut talk = Talk::new();
    assert_eq!(talk.send(SERVER, SYN | ACK, 0, 1, 0), "inv");
    assert_eq!(talk.net.ct.len(), 0);
}

#[test]
fn d3_established_takes_a_packet_in_each_direction() {
    let mut talk = Talk::new();
    assert_eq!(talk.send(CLIENT, SYN, 0, 0, 0), "new");
    assert_eq!(talk.send(CLIENT, ACK, 1, 1, 0), "new");
    assert_eq!(talk.send(CLIENT, ACK, 1, 1, 10), "new");
    assert_eq!(talk.send(SERVER, SYN | ACK, 0, 1, 0), "est+rpl");
    assert_eq!(talk.send(CLIENT, ACK, 11, 1, 10), "est");
}

#[test]
fn t3_a_connection_is_picked_up_in_its_middle() {
    let mut talk = Talk::new();
    talk.window = 100; // scaled by who knows what
    assert_eq!(talk.send(CLIENT, ACK, 5_000_000, 900_000_000, 1000), "new");
    assert_eq!(talk.send(SERVER, ACK, 900_000_000, 5_001_000, 1400), "est+rpl");
    assert_eq!(talk.send(SERVER, ACK, 901_000_000, 5_001_000, 1400), "est+rpl", "within a window scaled by 14");
    assert_eq!(talk.send(CLIENT, ACK, 5_001_000, 900_001_400, 1000), "est");
    assert_eq!(talk.send(SERVER, ACK, 990_000_000, 5_001_000, 0), "est+rpl", "empty segments count for nothing");
    assert_eq!(talk.send(SERVER, ACK, 990_000_000, 5_001_000, 1), "inv");
}

#[test]
fn t3_the_first_acknowledgement_of_an_end_may_be_anything() {
    let mut talk = Talk::new();
    assert_eq!(talk.send(CLIENT, ACK, 100, 50, 0), "new");
    assert_eq!(talk.send(SERVER, ACK, 3_000_000, 2_000_000_000, 10), "est+rpl");
    let mut talk = Talk::open();
    assert_eq!(talk.send(SERVER, ACK, 1, 200_000, 0), "inv", "later ones may not");
    assert_eq!(talk.send(SERVER, ACK, 1, u32::MAX - 200_000, 0), "inv");
}

#[test]
fn t4_a_syn_may_be_sent_again() {
    let mut talk = Talk::new();
    assert_eq!(talk.send(CLIENT, SYN, 0, 0, 0), "new");
    talk.net.wait(29);
    assert_eq!(talk.send(CLIENT, SYN, 0, 0, 0), "new");
    talk.net.wait(29);
    assert_eq!(talk.send(CLIENT, SYN, 77_000, 0, 0), "new", "with another number too");
    assert_eq!(talk.send(SERVER, SYN | ACK, 0, 77_001, 0), "est+rpl");
    assert_eq!(talk.send(CLIENT, ACK, 77_001, 1, 10), "est");
    assert_eq!(talk.net.ct.len(), 1);
}

#[test]
fn t4_both_ends_may_open_at_once() {
    let mut talk = Talk::new();
    assert_eq!(talk.send(CLIENT, SYN, 0, 0, 0), "new");
    assert_eq!(talk.send(SERVER, SYN, 0, 0, 0), "new", "without rpl");
    assert_eq!(talk.send(CLIENT, SYN | ACK, 0, 1, 0), "est");
    assert_eq!(talk.send(SERVER, SYN | ACK, 0, 1, 0), "est+rpl");
    assert_eq!(talk.send(CLIENT, ACK, 1, 1, 5), "est");
    assert_eq!(talk.status().0, "ESTABLISHED");
}

#[test]
fn t5_a_port_is_used_again() {
    for closer in [CLIENT, SERVER] {
        let mut talk = Talk::open();
        assert_eq!(talk.send(CLIENT, RST, 1, 0, 0), "est");
        assert_eq!(talk.status(), ("TIME_WAIT".into(), 30));
        talk.isn = [5, 6];
        if closer == CLIENT {
            assert_eq!(talk.send(CLIENT, SYN, 0, 0, 0), "new");
            assert_eq!(talk.send(SERVER, SYN | ACK, 0, 1, 0), "est+rpl");
        } else {
            assert_eq!(talk.send(SERVER, SYN, 0, 0, 0), "new");
            assert_eq!(talk.send(CLIENT, SYN | ACK, 0, 1, 0), "est+rpl", "now the server began it");
        }
        let stats = talk.net.ct.stats();
        assert_eq!((stats.live, stats.created, stats.replaced), (1, 2, 1));
    }
}

#[test]
fn t5_not_before_both_ends_are_done() {
    let mut talk = Talk::open();
    assert_eq!(talk.send(CLIENT, SYN, 500_000, 0, 0), "inv", "far off");
    assert_eq!(talk.send(CLIENT, SYN, 1, 0, 0), "est", "near by: the server will tell");
    assert_eq!(talk.send(CLIENT, FIN | ACK, 2, 1, 0), "est");
    assert_eq!(talk.send(SERVER, ACK, 1, 3, 0), "est+rpl");
    assert_eq!(talk.send(CLIENT, SYN, 500_000, 0, 0), "inv", "the server has not closed");
    assert_eq!(talk.net.ct.stats().created, 1);
}

#[test]
fn t5_without_a_commit_the_old_connection_is_gone_all_the_same() {
    let mut talk = Talk::open();
    talk.send(CLIENT, RST, 1, 0, 0);
    let syn = talk.frame(CLIENT, SYN, 9_000_000, 0, 0, &[]);
    assert_eq!(talk.net.ct(&syn, &LOOK), "new");
    assert_eq!(talk.net.ct.len(), 0);
}

#[test]
fn t6_a_segment_must_be_inside_the_window() {
    let mut talk = Talk::open();
    assert_eq!(talk.send(CLIENT, ACK, 1, 1, 1000), "est", "exactly the window");
    assert_eq!(talk.send(CLIENT, ACK, 1001, 1, 1), "inv", "one beyond it");
    assert_eq!(talk.send(SERVER, ACK, 1, 1001, 0), "est+rpl");
    assert_eq!(talk.send(CLIENT, ACK, 1001, 1, 1), "est", "acknowledged: the window moves");
    assert_eq!(talk.send(CLIENT, ACK, 2, 1, 10), "est", "one window back");
    assert_eq!(talk.send(CLIENT, ACK, 1, 1, 10), "inv", "more than one window back");
}

#[test]
fn t6_an_acknowledgement_must_be_near() {
    const SLACK: u32 = 0xffff + 1500;
    let mut talk = Talk::open();
    assert_eq!(talk.send(SERVER, ACK, 1, SLACK, 0), "est+rpl");
    assert_eq!(talk.send(SERVER, ACK, 1, SLACK + 1, 0), "inv");
    assert_eq!(talk.send(SERVER, ACK, 1, 0u32.wrapping_sub(SLACK), 0), "est+rpl");
    assert_eq!(talk.send(SERVER, ACK, 1, 0u32.wrapping_sub(SLACK + 1), 0), "inv");
}

#[test]
fn t6_a_reset_must_be_exact() {
    for (seq, expected) in [(u32::MAX, "est"), (0, "est"), (1, "est"), (2, "inv"), (u32::MAX - 1, "inv"), (500, "inv")]
    {
        let mut talk = Talk::open();
        assert_eq!(talk.send(CLIENT, RST, seq, 0, 0), expected, "at {seq}");
        let state = if expected == "est" { "TIME_WAIT" } else { "ESTABLISHED" };
        assert_eq!(talk.status().0, state);
    }
    let mut talk = Talk::open();
    talk.send(CLIENT, ACK, 1, 1, 500);
    assert_eq!(talk.send(CLIENT, RST, 1, 0, 0), "inv", "behind what was sent");
    assert_eq!(talk.send(CLIENT, RST, 501, 0, 0), "est");
    let mut talk = Talk::new();
    talk.send(CLIENT, SYN, 0, 0, 0);
    assert_eq!(talk.send(SERVER, RST | ACK, 0, 1, 0), "est+rpl", "a refused connection");
    assert_eq!(talk.status(), ("TIME_WAIT".into(), 30));
}

#[test]
fn t6_a_reset_may_acknowledge_nothing() {
    let mut talk = Talk::open();
    let mut frame = talk.frame(CLIENT, RST | ACK, 1, 0, 0, &[]);
    let zero = Tcp {
        src: A,
        dst: B,
        from: 40000,
        to: 80,
        flags: RST | ACK,
        seq: talk.isn[0].wrapping_add(1),
        ack: 0,
        window: 0,
        options: &[],
        len: 0,
    };
    frame.copy_from_slice(&zero.frame());
    assert_eq!(talk.net.ct(&frame, &LOOK), "est");
}

#[test]
fn t6_the_second_rule_forgives_stragglers_of_a_closed_connection() {
    let mut talk = Talk::open();
    talk.send(CLIENT, RST, 1, 0, 0);
    assert_eq!(talk.send(SERVER, ACK, 30_000, 1, 10), "est+rpl");
    assert_eq!(talk.send(SERVER, ACK, 200_000, 1, 10), "inv");
}

#[test]
fn t7_windows_are_scaled_if_both_ends_say_so() {
    let scaled = || {
        let mut talk = Talk::new();
        talk.options = &[1, 3, 3, 7];
        talk.send(CLIENT, SYN, 0, 0, 0);
        talk
    };
    let mut talk = scaled();
    talk.send(SERVER, SYN | ACK, 0, 1, 0);
    talk.options = &[];
    assert_eq!(talk.send(CLIENT, ACK, 1, 1, 0), "est");
    assert_eq!(talk.send(SERVER, ACK, 1, 1, 0), "est+rpl");
    assert_eq!(talk.send(CLIENT, ACK, 1 + 127_000, 1, 1000), "est", "a window of 1000 << 7");
    assert_eq!(talk.send(CLIENT, ACK, 2 + 127_000, 1, 1000), "inv");
    let mut talk = scaled();
    talk.options = &[];
    talk.send(SERVER, SYN | ACK, 0, 1, 0);
    talk.send(CLIENT, ACK, 1, 1, 0);
    assert_eq!(talk.send(CLIENT, ACK, 1, 1, 1000), "est");
    assert_eq!(talk.send(CLIENT, ACK, 1001, 1, 1), "inv", "the server does not scale");
    assert_eq!(talk.send(SERVER, ACK, 1, 1001, 1000), "est+rpl");
    assert_eq!(talk.send(SERVER, ACK, 1001, 1001, 25), "inv", "so the client does not either, but for rounding");
    assert_eq!(talk.send(SERVER, ACK, 1001, 1001, 24), "est+rpl");
}

#[test]
fn t7_the_window_of_a_syn_is_not_scaled() {
    let mut talk = Talk::new();
    talk.options = &[1, 3, 3, 14];
    talk.window = 60_000;
    talk.send(CLIENT, SYN, 0, 0, 0);
    talk.send(SERVER, SYN | ACK, 0, 1, 0);
    talk.options = &[];
    talk.window = 3; // 3 << 14 is less than 60,000
    assert_eq!(talk.send(CLIENT, ACK, 1, 1, 1000), "est");
    assert_eq!(talk.send(CLIENT, ACK, 1 + 65_536, 1, 1), "inv", "60,000 rounded up to whole units");
    assert_eq!(talk.send(CLIENT, ACK, 65_536, 1, 1), "est");
}

#[test]
fn t7_options_that_lie_about_their_length() {
    for options in [
        &[3, 0, 3, 0][..],
        &[3, 1, 1, 1],
        &[1, 1, 1, 3],
        &[3, 255, 7, 0],
        &[8, 40, 0, 0],
        &[5, 3, 0, 0],
        &[2],
        &[3, 4, 7, 7],
    ] {
        let mut talk = Talk::new();
        assert_eq!(talk.send_with(CLIENT, SYN, 0, 0, 0, options), "new");
        assert_eq!(talk.send_with(SERVER, SYN | ACK, 0, 1, 0, &[3, 3, 7, 0]), "est+rpl");
        assert_eq!(talk.send_with(CLIENT, ACK, 1, 1, 1000, options), "est");
        assert_eq!(talk.send(CLIENT, ACK, 1001, 1, 1), "inv", "not scaled: {options:?}");
    }
}

#[test]
fn t8_and_t9_states_and_time_outs() {
    let mut talk = Talk::new();
    let mut step = |from, flags, seq, ack, state: &str, left| {
        talk.send(from, flags, seq, ack, 0);
        assert_eq!(talk.status(), (state.to_string(), left));
    };
    step(CLIENT, SYN, 0, 0, "SYN_SENT", 30);
    step(SERVER, SYN | ACK, 0, 1, "ESTABLISHED", 30);
    step(CLIENT, ACK, 1, 1, "ESTABLISHED", 86_400);
    step(CLIENT, FIN | ACK, 1, 1, "CLOSING", 900);
    step(SERVER, ACK, 1, 2, "FIN_WAIT_2", 900);
    step(SERVER, FIN | ACK, 1, 2, "FIN_WAIT_2", 45);
    step(CLIENT, ACK, 2, 2, "FIN_WAIT_2", 30);
}

#[test]
fn t9_connections_expire() {
    for (seconds, expected) in [(86_399, "est"), (86_400, "new")] {
        let mut talk = Talk::open();
        talk.net.wait(seconds);
        assert_eq!(talk.send(CLIENT, ACK, 1, 1, 0), expected);
    }
    let mut talk = Talk::new();
    talk.send(CLIENT, SYN, 0, 0, 0);
    talk.net.wait(30);
    assert_eq!(talk.send(SERVER, SYN | ACK, 0, 1, 0), "inv");
}

#[test]
fn t9_invalid_segments_do_not_prolong_a_life() {
    let mut talk = Talk::open();
    talk.net.wait(50_000);
    assert_eq!(talk.send(CLIENT, ACK, 500_000, 1, 10), "inv");
    assert_eq!(talk.status(), ("ESTABLISHED".into(), 36_400));
}

#[test]
fn t10_windows_need_not_be_enforced() {
    let mut talk = Talk::with(Config { seq_check: false, max_conns: 10, ..Config::default() }).shake();
    assert_eq!(talk.send(CLIENT, ACK, 9_000_000, 1, 10), "est");
    assert_eq!(talk.send(CLIENT, RST, 5, 0, 0), "est");
    assert_eq!(talk.status().0, "TIME_WAIT");
}

#[test]
fn t11_padding_is_not_payload() {
    let mut talk = Talk::open();
    talk.window = 7;
    talk.send(SERVER, ACK, 1, 1, 0);
    let mut frame = talk.frame(CLIENT, ACK, 995, 1, 6, &[]);
    frame.resize(300, 0);
    assert_eq!(talk.net.ct(&frame, &LOOK), "est", "six bytes up to the edge");
}

#[test]
fn d14_the_right_edge_counts_selective_acknowledgements() {
    let sack = |talk: &Talk, left: u32, right: u32| {
        let mut options = vec![1, 1, 5, 10];
        options.extend(talk.isn[CLIENT].wrapping_add(left).to_be_bytes());
        options.extend(talk.isn[CLIENT].wrapping_add(right).to_be_bytes());
        options
    };
    for (permitted, selective, expected) in [(true, true, "est"), (false, true, "inv"), (true, false, "inv")] {
        let mut talk = Talk::new();
        talk.options = if permitted { &[4, 2, 0, 0] } else { &[] };
        talk = talk.shake();
        talk.options = &[];
        // Segment 1..101 is lost; 101..1001 arrived.
        assert_eq!(talk.send(CLIENT, ACK, 1, 1, 1000), "est");
        let options = if selective { sack(&talk, 101, 1001) } else { Vec::new() };
        assert_eq!(talk.send_with(SERVER, ACK, 1, 1, 0, &options), "est+rpl");
        assert_eq!(talk.send(CLIENT, ACK, 1001, 1, 1000), expected);
    }
    let mut talk = Talk::new();
    talk.options = &[4, 2, 0, 0];
    talk = talk.shake();
    talk.options = &[];
    let options = sack(&talk, 5_000, 600_000);
    assert_eq!(talk.send_with(SERVER, ACK, 1, 1, 0, &options), "est+rpl");
    assert_eq!(talk.send(CLIENT, ACK, 1001, 1, 1000), "inv", "what was not sent cannot be acknowledged");
}

#[test]
fn time_stamps_are_skipped() {
    let mut talk = Talk::open();
    let stamp = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    for n in 0..100 {
        assert_eq!(talk.send_with(CLIENT, ACK, 1 + n * 500, 1, 500, &stamp), "est");
        assert_eq!(talk.send_with(SERVER, ACK, 1, 501 + n * 500, 0, &stamp), "est+rpl");
    }
}

#[test]
fn a_long_transfer_crosses_the_end_of_the_numbers() {
    let mut talk = Talk::open();
    talk.isn = [0u32.wrapping_sub(2_000), 5];
    talk = Talk { net: Net::new(), ..talk }.shake();
    for n in 0..10 {
        assert_eq!(talk.send(CLIENT, ACK, 1 + n * 1000, 1, 1000), "est", "segment {n}");
        assert_eq!(talk.send(SERVER, ACK, 1, 1001 + n * 1000, 0), "est+rpl");
    }
}
