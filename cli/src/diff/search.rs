//! Looks for packets that two programs treat differently.
//!
//! In: two programs and packets. Out: the shortest sequence found whose last packet comes out differently, or nothing. Both run
//! on the reference interpreter and see the same packets in the same order; ports belong together by name, or else by number.

use pipec_compiler::hir::{PortId, Program};
use pipec_compiler::probe::{Probe, Wanted, probes};
use pipec_compiler::source::Sources;
use pipec_runtime::Engine;
use pipec_runtime::conntrack::Config;
use pipec_runtime::offline::{Offline, Outcome};

use crate::engine::EngineName;
use crate::failure::Failure;
use crate::program::Loaded;

/// A moment to begin at; which one does not matter.
const START_NS: u64 = 1_000_000_000_000;
/// Runs that are spent on making a sequence shorter.
const MAX_RUNS: usize = 400;
/// Ports that answer a packet.
const MAX_ANSWERS: u16 = 3;

/// A packet as both programs get it.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Its port in the first program, and in the second.
    pub ports: (u16, u16),
    /// The packet as tests write it.
    pub text: String,
    frame: Vec<u8>,
}

/// Packets of which the last is treated differently.
pub struct Difference {
    /// The packets.
    pub packets: Vec<Sent>,
    /// What became of the last in both programs.
    pub outcomes: (Outcome, Outcome),
}

/// What a search came to.
pub struct Found {
    /// Packets that both programs ran.
    pub tried: usize,
    /// The first difference.
    pub difference: Option<Difference>,
}

/// Both programs, ready to run.
struct Pair<'a> {
    programs: (&'a Program, &'a Program),
    engines: (Engine, Engine),
}

/// Runs up to so many packets through both.
pub fn search(a: &Loaded, b: &Loaded, most: usize) -> Result<Found, Failure> {
    let engines = (EngineName::Eval.load(a)?, EngineName::Eval.load(b)?);
    let pair = Pair { programs: (&a.program, &b.program), engines };
    let packets = packets(&pair, most);
    let mut running = pair.start();
    for (i, sent) in packets.iter().enumerate() {
        let outcomes = running.send(sent);
        if pair.differ(&outcomes) {
            let difference = shortest(&pair, &packets[..=i]);
            return Ok(Found { tried: i + 1, difference: Some(difference) });
        }
    }
    Ok(Found { tried: packets.len(), difference: None })
}

/// The packets for both programs' rules, in turn; each with answers, which matter where connections or addresses are known.
fn packets(pair: &Pair<'_>, most: usize) -> Vec<Sent> {
    let (of_a, of_b) = (probes(pair.programs.0, most), probes(pair.programs.1, most));
    let mut found = vec![];
    let (mut of_a, mut of_b) = (of_a.into_iter(), of_b.into_iter());
    loop {
        let (next_a, next_b) = (of_a.next(), of_b.next());
        if next_a.is_none() && next_b.is_none() || found.len() >= most {
            break;
        }
        for (probe, first) in [(next_a, true), (next_b, false)] {
            let Some(Probe { port, packet }) = probe else { continue };
            let Some(ports) = pair.ports(port, first) else { continue };
            conversation(pair, ports, &packet, &mut found);
        }
    }
    found.truncate(most);
    found
}

/// A packet, answers to it from other ports, and it again.
fn conversation(pair: &Pair<'_>, ports: (u16, u16), packet: &Wanted, found: &mut Vec<Sent>) {
    let mut send = |ports: (u16, u16), packet: &Wanted| {
        let text = packet.text();
        let built = pipec_compiler::packet::parse_packet(&mut Sources::default(), &format!("p: {text}"));
        if let Ok((_, frame)) = built {
            found.push(Sent { ports, text, frame });
        }
    };
    send(ports, packet);
    // SYN and ACK answer a SYN, as far as no rule asks for other flags.
    let reply = packet.reply().with_flags(0x012);
    let others = (0..pair.programs.0.ports.len() as u16).filter(|port| *port != ports.0).take(usize::from(MAX_ANSWERS));
    for other in others.filter_map(|port| pair.ports(PortId(port), true)) {
        send(other, &reply);
    }
    send(ports, &packet.clone().with_flags(0x010));
}

impl Pair<'_> {
    /// A port of one program in both; nothing if only one has it.
    fn ports(&self, port: PortId, first: bool) -> Option<(u16, u16)> {
        let (own, other) = if first { self.programs } else { (self.programs.1, self.programs.0) };
        let known = own.ports.get(usize::from(port.0))?;
        let by_name = other.ports.iter().position(|p| p.name == known.name);
        let at = by_name.or_else(|| other.ports.iter().position(|p| p.number == known.number))? as u16;
        Some(if first { (port.0, at) } else { (at, port.0) })
    }

    fn start(&self) -> Running {
        let offline = |engine: &Engine| {
            let attached = vec![true; engine.meta().ports.len()];
            Offline::with_config(engine, &attached, Config { max_conns: 10_000, ..Config::default() })
        };
        Running { a: offline(&self.engines.0), b: offline(&self.engines.1) }
    }

    /// Whether other ports sent it, or sent something else. In which order several ports did is nobody's business.
    fn differ(&self, outcomes: &(Outcome, Outcome)) -> bool {
        let mut of_a: Vec<(u16, &[u8])> =
            outcomes.0.outputs.iter().map(|(port, sent)| (*port, sent.as_slice())).collect();
        let in_a = |port: u16| match self.ports(PortId(port), false) {
            _ if port == pipec_abi::CONTROLLER => port,
            ports => ports.map_or(u16::MAX, |ports| ports.0),
        };
        let mut of_b: Vec<(u16, &[u8])> =
            outcomes.1.outputs.iter().map(|(port, sent)| (in_a(*port), sent.as_slice())).collect();
        of_a.sort_by_key(|(port, _)| *port);
        of_b.sort_by_key(|(port, _)| *port);
        of_a != of_b
    }

    /// What becomes of the last packet of a sequence, if it differs.
    fn try_out(&self, packets: &[Sent]) -> Option<(Outcome, Outcome)> {
        let mut running = self.start();
        let last = packets.iter().map(|sent| running.send(sent)).last()?;
        self.differ(&last).then_some(last)
    }
}

/// Both programs with what they have learned.
struct Running {
    a: Offline,
    b: Offline,
}

impl Running {
    fn send(&mut self, sent: &Sent) -> (Outcome, Outcome) {
        let one =
            |offline: &mut Offline, port| offline.send(START_NS, &[(port, &sent.frame)]).pop().unwrap_or_default();
        (one(&mut self.a, sent.ports.0), one(&mut self.b, sent.ports.1))
    }
}

/// The shortest sequence that is found within some runs, of one whose last packet differs.
fn shortest(pair: &Pair<'_>, packets: &[Sent]) -> Difference {
    let mut runs = 0;
    let mut length = 1;
    let mut kept = packets.to_vec();
    while length < packets.len() && runs < MAX_RUNS {
        runs += 1;
        let end = &packets[packets.len() - length..];
        if pair.try_out(end).is_some() {
            kept = end.to_vec();
            break;
        }
        length *= 2;
    }
    // Parts are left out as long as the last packet still differs: halves first, then less, then one by one.
    let mut part = kept.len() / 2;
    while part > 0 && runs < MAX_RUNS {
        let mut at = 0;
        while at + part < kept.len() && runs < MAX_RUNS {
            runs += 1;
            let without = [&kept[..at], &kept[at + part..]].concat();
            if pair.try_out(&without).is_some() {
                kept = without;
            } else {
                at += part;
            }
        }
        part /= 2;
    }
    let outcomes = pair.try_out(&kept).unwrap_or_default();
    Difference { packets: kept, outcomes }
}
