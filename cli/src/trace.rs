//! `pipec trace`: what happens to packets, rule by rule.
//!
//! In: a program and packets. Out: a text: tables entered, rules taken with their places, actions and what they changed,
//! what came out. The packets of one command see each other's connections. The reference interpreter runs them.

mod json;
mod keyed;
mod outcome;
mod packets;

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pipec_abi::{Burst, CtPoint, Ctx, Env, Flow, ct::state};
use pipec_compiler::eval::{Eval, Event};
use pipec_compiler::hir::{Cond, Place, PortId, Program, Rule};
use pipec_compiler::packet::describe;
use pipec_compiler::words;
use pipec_runtime::Engine;
use pipec_runtime::engine::Interpret;
use pipec_runtime::host::print;
use pipec_runtime::offline::{Offline, Outcome};

use crate::engine::with_externs;
use crate::failure::Failure;
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
    #[arg(required_unless_present = "pcap", value_name = "PACKET")]
    packets: Vec<String>,

    /// For each table also what its rules see of the packet, and why rules before the one that is taken do not hold
    #[arg(long)]
    why: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Take packets of a capture, behind those given as text
    #[arg(long, value_name = "CAPTURE", requires = "port")]
    pcap: Option<PathBuf>,

    /// Which packet of the capture, counted from 1 (repeatable, in the order in which they are to be run)
    #[arg(long = "packet", value_name = "N", requires = "pcap", default_value = "1")]
    numbers: Vec<u64>,

    /// The port that packets of the capture come in by
    #[arg(long, value_name = "PORT", requires = "pcap")]
    port: Option<String>,
}

/// A moment to begin at; which one does not matter.
const START_NS: u64 = 1_000_000_000_000;

/// Runs the packets one by one.
pub fn trace(args: &Args, color: bool) -> Result<(), Failure> {
    let mut numbers: Vec<u32> = args.packets.iter().filter_map(|p| p.split_once(':')?.0.trim().parse().ok()).collect();
    numbers.extend(args.port.iter().filter_map(|port| port.parse::<u32>().ok()));
    let loaded = program::load(&args.file, &numbers, color)?;
    let packets = args.packets.iter().map(|text| packets::packet(&loaded, text, color));
    let mut packets = packets.collect::<Result<Vec<_>, _>>()?;
    if let (Some(path), Some(port)) = (&args.pcap, &args.port) {
        let port = packets::find_port(&loaded, port)?;
        packets.extend(packets::captured(path, &args.numbers)?.into_iter().map(|frame| (port, frame)));
    }
    let eval = Eval::new(loaded.program.clone());
    let (meta, tables) = (eval.meta(), eval.tables());
    let tracer = Arc::new(Tracer { eval, reasons: args.why, events: Mutex::default() });
    let engine = with_externs(Engine::interpreter(meta, &tables, tracer.clone()), &loaded.program)?;
    let mut offline = Offline::new(&engine);
    let mut text = String::new();
    let mut traced = Vec::new();
    for (port, frame) in packets {
        let outcomes = offline.send(START_NS, &[(port.0, &frame)]);
        let events = std::mem::take(&mut *tracer.events.lock().unwrap_or_else(PoisonError::into_inner));
        if args.json {
            traced.extend(outcomes.iter().map(|outcome| json::packet(&loaded, port, &frame, &events, outcome)));
            continue;
        }
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}: {} bytes", port_name(&loaded, port), frame.len());
        if args.why || args.pcap.is_some() {
            let _ = writeln!(text, "  {}", describe(&frame));
        }
        Telling { loaded: &loaded, text: &mut text, at: Indent::table(1), calls: vec![], clones: vec![] }
            .events(&events);
        for outcome in &outcomes {
            end(&loaded, &mut text, &frame, outcome);
        }
    }
    if args.json {
        let json = serde_json::to_string_pretty(&serde_json::json!({ "packets": traced }));
        text = json.map_err(|error| Failure::environment(format!("cannot write JSON: {error}")))? + "\n";
    }
    Ok(print(&text)?)
}

/// The reference interpreter, which notes what happens.
struct Tracer {
    eval: Eval,
    reasons: bool,
    events: Mutex<Vec<Event>>,
}

impl Interpret for Tracer {
    fn run(&self, env: &mut dyn Env, ctx: &mut Ctx, burst: &mut Burst) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let mut note = |event| events.push(event);
        if self.reasons {
            self.eval.run_explained(env, ctx, burst, &mut note);
        } else {
            self.eval.run_traced(env, ctx, burst, &mut note);
        }
    }
}

fn port_name(loaded: &Loaded, port: PortId) -> &str {
    if port.0 == pipec_abi::CONTROLLER {
        return "controller";
    }
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
            self.event(event);
        }
    }

    fn say(&mut self, level: usize, line: impl AsRef<str>) {
        let indent = 2 * level;
        let _ = writeln!(self.text, "{:indent$}{}", "", line.as_ref()); // writing to a string does not fail
    }

    fn action(&mut self, line: impl AsRef<str>) {
        self.say(self.at.action, line);
    }

    fn event(&mut self, event: &Event) {
        let loaded = self.loaded;
        match event.clone() {
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
            Event::Key(table, key) => self.say(self.at.table + 1, keyed::key(loaded, table, &key)),
            Event::NoKey(_, header) => {
                let name = loaded.program.header_name(header);
                self.say(self.at.table + 1, format!("not looked up: the packet has no {name}"));
            }
            Event::Entry { table, slot, rule, args } => {
                self.say(self.at.table + 1, keyed::entry(loaded, table, slot, rule, &args));
            }
            Event::Learn { table, key, rule, args } => self.action(keyed::learn(loaded, table, &key, rule, &args)),
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
            Event::Reshape { action, header, values, more } => {
                let what = reshaped(&loaded.program, action, header, &values);
                let same =
                    if action == "dec_mpls_ttl" { "the packet has no label" } else { "the frame is as long as before" };
                self.action(if more == 0 { format!("{what}: {same}") } else { format!("{what}: {more:+} bytes") });
            }
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
            Event::Seen { read, value } => {
                let (name, value) =
                    (words::place(&loaded.program, read.place), words::value(&loaded.program, read.place, value));
                self.say(self.at.table + 1, format!("{name} is {value}"));
            }
            Event::Tried { table, rule, atom, value } => {
                let rule = &loaded.program.table(table).rules[rule];
                let text = format!("not {}: {}", rules::place(loaded, rule), rule.text.trim_end_matches(';'));
                self.say(self.at.table + 1, text);
                self.say(self.at.table + 2, reason_why(&loaded.program, rule, atom, value));
            }
            Event::NoPort(number) => self.action(format!("output to port {number}, which there is not: left out")),
            Event::Part(port, max_len) => {
                self.action(format!("output({}, max_len = {max_len})", port_name(loaded, port)));
            }
            Event::Mirror(port) => self.action(format!("mirror({}): a copy", port_name(loaded, port))),
            Event::Controller(reason, max_len) => {
                let part = if max_len == u16::MAX { String::new() } else { format!(", at most {max_len} bytes") };
                self.action(format!("controller: a copy{part}, reason {reason}"));
            }
            Event::Count(counter) => {
                self.action(format!("count({})", loaded.program.counters[usize::from(counter.0)]));
            }
            Event::Bucket(group, Some(bucket)) => {
                let group = loaded.program.group(group);
                self.action(format!("group({}): bucket {} of {}", group.name, bucket + 1, group.buckets.len()));
            }
            Event::Bucket(group, None) => {
                let name = &loaded.program.group(group).name;
                self.action(format!("group({name}): no bucket to choose, nothing to do"));
            }
            Event::Meter(meter, passes) => {
                let meter = &loaded.program.meters[usize::from(meter.0)];
                let what = if passes { "slow enough" } else { "too fast, the packet ends" };
                self.action(format!("meter({}): {what}", meter.name));
            }
        }
    }

    fn set(&mut self, place: Place, value: u128, before: u128, after: u128) {
        let name = words::place(&self.loaded.program, place);
        let show = |value| words::value(&self.loaded.program, place, value);
        match before == after && value != after {
            true => self.action(format!("{name} = {}: the packet has no such field, nothing to do", show(value))),
            false => self.action(format!("{name} = {} (was {})", show(after), show(before))),
        }
    }
}

/// An action that changes the headers, with what it wrote: `push chain(path = 2)`.
fn reshaped(program: &Program, action: &str, header: Option<u16>, values: &[(Place, u128)]) -> String {
    let name = header.and_then(|header| program.headers.get(usize::from(header))).map(|header| header.name.as_str());
    let name = name.filter(|name| !action.ends_with(name));
    let mut text = action.to_string() + &name.map_or(String::new(), |name| format!(" {name}"));
    let one = |(place, value): &(Place, u128)| {
        let (field, value) = (words::place(program, *place), words::value(program, *place, *value));
        // In `push` the header is named already.
        let field =
            field.split_once('.').filter(|_| action.starts_with("push")).map_or(field.as_str(), |(_, field)| field);
        format!("{field} = {value}")
    };
    if !values.is_empty() {
        let _ = write!(text, "({})", values.iter().map(one).collect::<Vec<_>>().join(", ")); // does not fail
    }
    text
}

/// What became of a packet.
fn end(loaded: &Loaded, text: &mut String, frame: &[u8], outcome: &Outcome) {
    // Writing to a string does not fail.
    macro_rules! say {
        ($line:expr) => {
            let _ = writeln!(text, "  -> {}", $line);
        };
    }
    for (port, sent) in &outcome.outputs {
        let port = port_name(loaded, PortId(*port));
        match sent == frame {
            true => {
                say!(format!("{port}: as it came"));
            }
            false => {
                let hex: String = sent.iter().map(|b| format!("{b:02x}")).collect();
                say!(format!("{port}: {} bytes: {hex}", sent.len()));
                for change in outcome::changes(&loaded.program, frame, sent) {
                    let side = |side: Option<String>| side.unwrap_or_else(|| "not there".to_string());
                    let _ = writeln!(text, "     {}: {} -> {}", change.field, side(change.before), side(change.after));
                }
            }
        }
    }
    if let Some(reason) = outcome.drop {
        say!(format!("drop: {} ({})", reason.name(), reason.describe().trim_end_matches('.')));
    } else if outcome.outputs.is_empty() {
        say!("consumed");
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

/// Why a rule does not hold, by the first of its tests that does not come out as it should.
fn reason_why(program: &Program, rule: &Rule, atom: usize, value: u128) -> String {
    let wanted = words::atom_wanted(&rule.cond, atom);
    match words::atom(&rule.cond, atom) {
        Some(test @ Cond::Compare(read, _)) => {
            let (text, value) = (words::cond(program, test), words::value(program, read.place, value));
            format!("{}: it is {value}", if wanted { text } else { format!("!({text})") })
        }
        Some(Cond::Has(header)) if wanted => format!("{}: the packet has none", program.header_name(*header)),
        Some(Cond::Has(header)) => format!("!{}: the packet has one", program.header_name(*header)),
        Some(test) => format!("{} is {}", words::cond(program, test), !wanted),
        None => "it never holds".to_string(),
    }
}
