//! `pipec trace`: what happens to packets, rule by rule.
//!
//! In: a program and packets. Out: a text: tables entered, rules taken with their places, actions and what they changed,
//! what came out. The packets of one command see each other's connections. The reference interpreter runs them.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pipec_abi::{Burst, CtPoint, Ctx, Env, Flow, ct::state};
use pipec_compiler::eval::{Eval, Event};
use pipec_compiler::field::Kind;
use pipec_compiler::hir::{Place, PortId, Space};
use pipec_compiler::packet::parse_packet;
use pipec_compiler::source::Sources;
use pipec_runtime::Engine;
use pipec_runtime::engine::Interpret;
use pipec_runtime::host::print;
use pipec_runtime::offline::{Offline, Outcome};

use crate::engine::with_externs;
use crate::failure::Failure;
use crate::messages;
use crate::program::{self, Loaded};
use crate::rules;

/// Show which rules packets take, which actions, and what comes out
#[derive(clap::Args)]
pub struct Args {
    /// The program (.pipe, or .flows with rules of ovs-ofctl); - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// A packet, as in a test: 'PORT: ipv4(src = 10.0.0.1, dst = 8.8.8.8) / udp(dst = 53)', or 'PORT: HEX'; further packets
    /// follow on the same connections
    #[arg(required = true, value_name = "PACKET")]
    packets: Vec<String>,
}

/// A moment to begin at; which one does not matter.
const START_NS: u64 = 1_000_000_000_000;

/// Runs the packets one by one.
pub fn trace(args: &Args, color: bool) -> Result<(), Failure> {
    let numbers: Vec<u32> = args.packets.iter().filter_map(|p| p.split_once(':')?.0.trim().parse().ok()).collect();
    let loaded = program::load(&args.file, &numbers, color)?;
    let packets = args.packets.iter().map(|text| packet(&loaded, text, color)).collect::<Result<Vec<_>, _>>()?;
    let eval = Eval::new(loaded.program.clone());
    let meta = eval.meta();
    let tracer = Arc::new(Tracer { eval, events: Mutex::default() });
    let engine = with_externs(Engine::interpreter(meta, tracer.clone()), &loaded.program)?;
    let mut offline = Offline::new(&engine);
    let mut text = String::new();
    for (port, frame) in packets {
        let outcomes = offline.send(START_NS, &[(port.0, &frame)]);
        let events = std::mem::take(&mut *tracer.events.lock().unwrap_or_else(PoisonError::into_inner));
        let _ = writeln!(text, "{}: {} bytes", port_name(&loaded, port), frame.len()); // writing to a string does not fail
        Telling { loaded: &loaded, text: &mut text, at: Indent::table(1), calls: vec![], clones: vec![] }
            .events(&events);
        for outcome in &outcomes {
            end(&loaded, &mut text, &frame, outcome);
        }
    }
    Ok(print(&text)?)
}

/// The reference interpreter, which notes what happens.
struct Tracer {
    eval: Eval,
    events: Mutex<Vec<Event>>,
}

impl Interpret for Tracer {
    fn run(&self, env: &mut dyn Env, ctx: &mut Ctx, burst: &mut Burst) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        self.eval.run_traced(env, ctx, burst, &mut |event| events.push(event));
    }
}

/// `PORT: PACKET`, or `PORT: HEX`.
fn packet(loaded: &Loaded, text: &str, color: bool) -> Result<(PortId, Vec<u8>), Failure> {
    let Some((name, packet)) = text.split_once(':') else {
        let form = "expected PORT: PACKET, such as 'lan: ipv4(dst = 8.8.8.8) / udp(dst = 53)'";
        return Err(Failure::usage(format!("{text}: {form}")));
    };
    let port = find_port(loaded, name.trim())?;
    if let Some(frame) = hex(packet.trim()) {
        return Ok((port, frame));
    }
    // A port that is a number is no name in the language; another name of that length keeps the places in messages.
    let stand_in: String = name.chars().map(|c| if c.is_ascii_digit() { 'p' } else { c }).collect();
    let mut sources = Sources::default();
    let parsed = parse_packet(&mut sources, &format!("{stand_in}:{packet}"));
    let (_, frame) = parsed.map_err(|diagnostics| {
        messages::tell(&diagnostics, &sources, color);
        Failure::Told(2)
    })?;
    Ok((port, frame))
}

fn find_port(loaded: &Loaded, name: &str) -> Result<PortId, Failure> {
    let ports = &loaded.program.ports;
    let by_name = ports.iter().position(|port| port.name == name);
    let found = by_name.or_else(|| ports.iter().position(|port| port.number.to_string() == name));
    found.map(|port| PortId(port as u16)).ok_or_else(|| {
        let names: Vec<String> = ports.iter().map(|port| format!("`{}`", port.name)).collect();
        Failure::usage(format!("there is no port `{name}` in {}; it has {}", loaded.program.name, names.join(", ")))
    })
}

/// The bytes of a frame in hexadecimal digits; they begin with an Ethernet header.
fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    let whole = digits.len() >= 28 && digits.len().is_multiple_of(2);
    whole.then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

fn port_name(loaded: &Loaded, port: PortId) -> &str {
    &loaded.program.ports[usize::from(port.0)].name
}

/// How deep tables, and actions, are indented.
#[derive(Clone, Copy)]
struct Indent {
    table: usize,
    action: usize,
}

impl Indent {
    /// A table, and what its rules do.
    fn table(table: usize) -> Indent {
        Indent { table, action: table + 2 }
    }
}

/// Writes events as lines, indented by how deep tables and clones stand in each other.
struct Telling<'a> {
    loaded: &'a Loaded,
    text: &'a mut String,
    /// Where lines are indented to.
    at: Indent,
    /// Where they were when each call and each clone that is open began.
    calls: Vec<Indent>,
    clones: Vec<Indent>,
}

impl Telling<'_> {
    fn events(&mut self, events: &[Event]) {
        for event in events {
            self.event(*event);
        }
    }

    fn say(&mut self, level: usize, line: impl AsRef<str>) {
        let indent = 2 * level;
        let _ = writeln!(self.text, "{:indent$}{}", "", line.as_ref()); // writing to a string does not fail
    }

    fn action(&mut self, line: impl AsRef<str>) {
        self.say(self.at.action, line);
    }

    fn event(&mut self, event: Event) {
        let loaded = self.loaded;
        match event {
            Event::Packet(_) => {}
            Event::Call => {
                self.calls.push(self.at);
                self.at = Indent::table(self.at.action);
            }
            Event::Return => self.at = self.calls.pop().unwrap_or(self.at),
            Event::Table { table, in_port, .. } => {
                let seen =
                    in_port.map_or(String::new(), |port| format!(", in_port seen as {}", port_name(loaded, port)));
                self.at = Indent::table(self.at.table);
                self.say(self.at.table, format!("table {}{seen}", rules::table(loaded, table)));
            }
            Event::Rule(table, rule) => {
                let rule = &loaded.program.table(table).rules[rule];
                self.say(
                    self.at.table + 1,
                    format!("{}: {}", rules::place(loaded, rule), rule.text.trim_end_matches(';')),
                );
            }
            Event::Miss(_) => self.say(self.at.table + 1, "no rule matches"),
            Event::Output(port) => self.action(format!("output({})", port_name(loaded, port))),
            Event::LeftOut(port) => {
                self.action(format!("output({}) is left out: the packet came in by it", port_name(loaded, port)));
            }
            Event::InPort(port) => self.action(format!("in_port: back to {}", port_name(loaded, port))),
            Event::Flood => self.action("flood"),
            Event::All => self.action("all"),
            Event::Normal => self.action("normal"),
            Event::Set { place, value, before, after } => self.set(place, value, before, after),
            Event::DecTtl(Some(ttl)) => self.action(format!("dec_ttl: {ttl} left")),
            Event::DecTtl(None) => self.action("dec_ttl: not an IP packet, nothing to do"),
            Event::Expired => self.action("dec_ttl: no TTL left, these actions end"),
            Event::Ct { point, zone, view } => {
                let asked = ct_arguments(&point, zone);
                let mut came = state_names(view.state);
                if view.mark != 0 {
                    came += &format!(", mark {:#x}", view.mark);
                }
                if view.label != [0, 0] {
                    came += &format!(", label {:#x}", u128::from(view.label[0]) << 64 | u128::from(view.label[1]));
                }
                self.action(format!("ct({asked}): {came}"));
            }
            Event::CtClear => self.action("ct_clear"),
            Event::Clone => {
                self.action("clone");
                self.clones.push(self.at);
                self.at = Indent { table: self.at.action + 1, action: self.at.action + 1 };
            }
            Event::CloneEnd => self.at = self.clones.pop().unwrap_or(self.at),
            Event::Extern { action, flow } => {
                let name = self.loaded.program.externs.get(usize::from(action)).map_or("?", |e| e.name.as_str());
                let then = if flow == Flow::Drop { ": the packet ends" } else { "" };
                self.action(format!("{name} (in Rust){then}"));
            }
            Event::Exit => self.action("exit"),
            Event::Reason(reason) => self.action(format!("dropped unless sent: {}", reason.name())),
            Event::Failed(reason) => self.action(format!("given up: {} ({})", reason.name(), reason.describe())),
            Event::End(_) => {}
        }
    }

    fn set(&mut self, place: Place, value: u128, before: u128, after: u128) {
        let name = place_name(self.loaded, place);
        let show = |value| place_value(place, value);
        match before == after && value != after {
            true => self.action(format!("{name} = {}: the packet has no such field, nothing to do", show(value))),
            false => self.action(format!("{name} = {} (was {})", show(after), show(before))),
        }
    }
}

/// What became of a packet.
fn end(loaded: &Loaded, text: &mut String, frame: &[u8], outcome: &Outcome) {
    let mut say = |line: String| {
        let _ = writeln!(text, "  -> {line}"); // writing to a string does not fail
    };
    for (port, sent) in &outcome.outputs {
        let port = port_name(loaded, PortId(*port));
        match sent == frame {
            true => say(format!("{port}: as it came")),
            false => say(format!(
                "{port}: {} bytes: {}",
                sent.len(),
                sent.iter().map(|b| format!("{b:02x}")).collect::<String>()
            )),
        }
    }
    if let Some(reason) = outcome.drop {
        say(format!("drop: {} ({})", reason.name(), reason.describe().trim_end_matches('.')));
    } else if outcome.outputs.is_empty() {
        say("consumed".to_string());
    }
}

fn ct_arguments(point: &CtPoint, zone: u16) -> String {
    let mut parts = vec![];
    if point.flags & CtPoint::COMMIT != 0 {
        parts.push("commit".to_string());
    }
    if point.flags & CtPoint::FORCE != 0 {
        parts.push("force".to_string());
    }
    parts.push(format!("zone = {zone}"));
    if point.mark_mask != 0 {
        parts.push(format!("mark = {:#x}/{:#x}", point.mark, point.mark_mask));
    }
    if point.label_mask != [0, 0] {
        let wide = |halves: [u64; 2]| u128::from(halves[0]) << 64 | u128::from(halves[1]);
        parts.push(format!("label = {:#x}/{:#x}", wide(point.label), wide(point.label_mask)));
    }
    parts.join(", ")
}

/// `ct.state` in words.
fn state_names(bits: u32) -> String {
    const NAMES: [(u32, &str); 8] = [
        (state::NEW, "new"),
        (state::EST, "est"),
        (state::REL, "rel"),
        (state::RPL, "rpl"),
        (state::INV, "inv"),
        (state::TRK, "trk"),
        (state::SNAT, "snat"),
        (state::DNAT, "dnat"),
    ];
    let names: Vec<&str> = NAMES.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name).collect();
    if names.is_empty() { "nothing known".to_string() } else { names.join(" ") }
}

fn place_name(loaded: &Loaded, place: Place) -> String {
    let range = || format!("[{}..{}]", place.offset, place.offset + u16::from(place.width));
    match place.space {
        Space::Field(field) if place == Place::field(field) => field.name().to_string(),
        Space::Field(field) => field.name().to_string() + &range(),
        Space::Meta => match loaded.program.variables.iter().find(|variable| variable.place == place) {
            Some(variable) => variable.name.clone(),
            None => "metadata".to_string() + &range(),
        },
    }
}

/// A value as programs write it.
fn place_value(place: Place, value: u128) -> String {
    let kind = match place.space {
        Space::Field(field) if place == Place::field(field) => field.kind(),
        _ => Kind::Flags,
    };
    match kind {
        Kind::Mac => {
            let bytes = value.to_be_bytes();
            bytes[10..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
        }
        Kind::Ipv4 => std::net::Ipv4Addr::from(value as u32).to_string(),
        Kind::Ipv6 => std::net::Ipv6Addr::from(value).to_string(),
        Kind::Number => value.to_string(),
        _ => format!("{value:#x}"),
    }
}
