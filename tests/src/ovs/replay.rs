//! The stimuli of a case on our engines. Frames that a case receives, and look-ups that it traces, go through the same rules on
//! each engine; ports and bytes of what comes out are compared with what came out of Open vSwitch.
//!
//! A rule whose actions we do not have sends to a port of its own instead: a packet that takes such a rule is left out, all
//! others can be compared, since what a rule does plays no part in which rule is taken.

use std::collections::BTreeMap;

use pipec_compiler::diag::Severity;
use pipec_compiler::flows::front_flows;
use pipec_compiler::hir::{Action, Program};
use pipec_compiler::source::Sources;
use pipec_runtime::engine::Engine;
use pipec_runtime::offline::Offline;

use super::compose::Key;
use super::switch::{Bridge, CONTROLLER, LOCAL, Switch};
use super::{Case, Event};

/// The port that stands for an action we do not have.
const BEYOND: u32 = 65_000;

/// How an engine is made of a program.
pub type Make<'a> = (&'a str, &'a dyn Fn(&Program) -> Engine);

/// What came of the stimuli of all cases.
#[derive(Debug, Default)]
pub struct Summary {
    /// Stimuli that were compared, and cases that have one.
    pub compared: usize,
    /// See [`Summary::compared`].
    pub cases: usize,
    /// Stimuli left out, by reason.
    pub left_out: BTreeMap<String, usize>,
    /// Differences: the place of the case, the number of the event, and what differs.
    pub differences: Vec<(String, usize, String)>,
}

/// What came out: frames, or nothing known of them, by port number, in order.
type Outputs = BTreeMap<u32, Vec<Vec<u8>>>;

/// A bridge's rules on each engine, with the state they have.
struct Running {
    version: u32,
    program: Program,
    engines: Vec<(String, Offline)>,
    /// Whether packets leave something behind that later ones see.
    stateful: bool,
    /// Whether any packet has been sent.
    used: bool,
    /// How often connections had been forgotten.
    flushed: u32,
    /// Why its state is not that of Open vSwitch any more.
    lost: Option<String>,
}

/// Replays a case.
pub fn replay(case: &Case, makes: &[Make], summary: &mut Summary) {
    let mut switch = Switch::default();
    let mut running: BTreeMap<String, Running> = BTreeMap::new();
    let compared = summary.compared;
    for (at, event) in case.events.iter().enumerate() {
        let now_ns = 1_000_000_000_000 + switch.warped_ns + at as u64 * 1_000_000;
        let stimulus = event.after("netdev-dummy/receive").is_some() || event.after("ofproto/trace").is_some();
        if event.tool != "ovs-appctl" || !stimulus || event.rc != 0 {
            switch.apply(event);
            continue;
        }
        let result = match &switch.beyond {
            Some(beyond) => Err(format!("set-up: {beyond}")),
            None => stimulate(&switch, &mut running, event, makes, now_ns),
        };
        match result {
            Ok(None) => summary.compared += 1,
            Ok(Some(difference)) => {
                summary.compared += 1;
                summary.differences.push((case.place.clone(), at, difference));
            }
            Err(reason) => *summary.left_out.entry(reason).or_default() += 1,
        }
    }
    summary.cases += usize::from(summary.compared > compared);
}

/// One stimulus: what differs, or why it is left out.
fn stimulate(
    switch: &Switch,
    running: &mut BTreeMap<String, Running>,
    event: &Event,
    makes: &[Make],
    now_ns: u64,
) -> Result<Option<String>, String> {
    let stimulus = Stimulus::read(switch, event)?;
    let bridge = &switch.bridges[&stimulus.bridge];
    if let Some(reason) = &bridge.unknown_rules {
        return Err(format!("rules: {reason}"));
    }
    if let Some(how) = &bridge.frags {
        return Err(format!("fragments: {how}"));
    }
    if bridge.ports.values().any(|number| *number == 0) {
        return Err("set-up: a port without a number".into());
    }
    let old = running.remove(&stimulus.bridge);
    let lost = old.as_ref().filter(|old| old.version != bridge.version && old.used && old.stateful);
    let lost = lost.map(|_| "state: rules changed".to_string());
    let mut runs = match old.filter(|old| old.version == bridge.version && knows(old, stimulus.in_port)) {
        Some(old) => old,
        None => start(bridge, stimulus.in_port, makes)?,
    };
    runs.flushed = if runs.used { runs.flushed } else { switch.flushed };
    if runs.flushed != switch.flushed {
        runs.engines.iter().for_each(|(_, offline)| offline.conntrack().flush());
        runs.flushed = switch.flushed;
    }
    if runs.stateful {
        runs.lost = runs.lost.or(lost).or(stimulus.no_side_effects.then(|| "state: a trace without effects".into()));
    }
    let result = match &runs.lost {
        Some(lost) => Err(lost.clone()),
        None => compare(&mut runs, &stimulus, now_ns),
    };
    if result.is_err() && runs.stateful {
        runs.lost.get_or_insert("state: a packet before was left out".into());
    }
    running.insert(stimulus.bridge, runs);
    result
}

/// Whether the running program has this port.
fn knows(running: &Running, in_port: u32) -> bool {
    running.program.ports.iter().any(|port| port.number == in_port)
}

/// A packet, and what came out of Open vSwitch.
struct Stimulus {
    bridge: String,
    in_port: u32,
    frames: Vec<Vec<u8>>,
    expected: Expected,
    /// It changed no state of Open vSwitch.
    no_side_effects: bool,
}

enum Expected {
    /// Frames by port, of all ports but `LOCAL`.
    Frames(Outputs),
    /// Ports in the order in which they were sent to.
    Ports(Vec<u32>),
}

impl Stimulus {
    fn read(switch: &Switch, event: &Event) -> Result<Stimulus, String> {
        match event.after("netdev-dummy/receive") {
            Some(arguments) => Stimulus::received(switch, event, arguments),
            None => Stimulus::traced(switch, event),
        }
    }

    fn received(switch: &Switch, event: &Event, arguments: &[String]) -> Result<Stimulus, String> {
        let [name, arguments @ ..] = arguments else { return Err("stimulus: no frame".into()) };
        let (bridge, in_port) = switch.port(name).ok_or("stimulus: a port that is not known")?;
        let mut frames = Vec::new();
        let mut left = arguments.iter().peekable();
        while let Some(text) = left.next() {
            let mut len = None;
            if left.next_if(|option| *option == "--len").is_some() {
                len = left.next().and_then(|len| len.parse().ok());
            } else if text.starts_with('-') {
                return Err(format!("stimulus: {text}"));
            }
            let hex: String = text.chars().filter(|c| *c != ' ').collect();
            frames.push(match bytes(&hex) {
                Some(frame) => frame,
                None => Key::parse(text).map_err(|unknown| format!("stimulus: {unknown}"))?.frame(len),
            });
        }
        if switch.bridges[bridge].ports.keys().any(|port| switch.unrecorded.contains(port)) {
            return Err("stimulus: outputs not recorded".into());
        }
        let mut outputs = Outputs::new();
        for (capture, frames) in event.tx.as_ref().ok_or("stimulus: outputs not recorded")? {
            let port = capture.trim_start_matches("rec-").trim_end_matches("-tx.pcap");
            let (_, number) = switch.port(port).ok_or("stimulus: an output of a port that is not known")?;
            if capture.starts_with("rec-") || !outputs.contains_key(&number) {
                outputs.insert(number, frames.iter().filter_map(|frame| bytes(frame)).collect());
            }
        }
        let expected = Expected::Frames(outputs);
        Ok(Stimulus { bridge: bridge.into(), in_port, frames, expected, no_side_effects: false })
    }

    fn traced(switch: &Switch, event: &Event) -> Result<Stimulus, String> {
        let arguments = event.after("ofproto/trace").ok_or("stimulus: no trace")?;
        let (generate, arguments): (Vec<&String>, Vec<&String>) = arguments.iter().partition(|a| *a == "-generate");
        let none = String::new();
        let (datapath, flow, hex) = match arguments[..] {
            [flow] => (&none, flow, None),
            [datapath, flow] => (datapath, flow, None),
            [datapath, flow, hex] => (datapath, flow, bytes(hex)),
            _ => return Err("stimulus: a trace of another form".into()),
        };
        let key = Key::parse(flow).map_err(|unknown| format!("stimulus: {unknown}"))?;
        let port = key.in_port.clone().unwrap_or("0".into());
        let (bridge, in_port) = match (switch.bridges.get(datapath), port.parse::<u32>()) {
            (None, Ok(number)) => switch.datapath_port(number).ok_or("stimulus: a port that is not known")?,
            (Some(_), Ok(number)) => (datapath.as_str(), number),
            (Some(bridge), Err(_)) if port == "LOCAL" => {
                (datapath.as_str(), *bridge.ports.get(datapath).unwrap_or(&LOCAL))
            }
            _ => switch.port(&port).ok_or("stimulus: a port that is not known")?,
        };
        let out = event.out.as_deref().unwrap_or_default();
        let actions = out.lines().rev().find_map(|line| line.strip_prefix("Datapath actions: "));
        let actions = actions.ok_or("stimulus: a trace without actions")?;
        let ports: Option<Vec<u32>> = match actions {
            "drop" => Some(vec![]),
            _ => actions.split(',').map(|n| Some(switch.datapath_port(n.parse().ok()?)?.1)).collect(),
        };
        let expected = Expected::Ports(ports.ok_or("stimulus: a trace with actions that change the packet")?);
        let no_side_effects = generate.is_empty();
        let frames = vec![hex.unwrap_or_else(|| key.frame(None))];
        Ok(Stimulus { bridge: bridge.into(), in_port, frames, expected, no_side_effects })
    }
}

/// Loads a bridge's rules into each engine.
fn start(bridge: &Bridge, in_port: u32, makes: &[Make]) -> Result<Running, String> {
    let mut ports: Vec<u32> = bridge.ports.values().copied().collect();
    ports.push(in_port);
    let program = program(&bridge.rules, &ports)?;
    let attached: Vec<bool> =
        program.ports.iter().map(|port| port.number == BEYOND || ports.contains(&port.number)).collect();
    let engines = makes.iter().map(|(name, make)| (name.to_string(), Offline::with_ports(&make(&program), &attached)));
    let (engines, version) = (engines.collect(), bridge.version);
    let stateful = program.tables.iter().flat_map(|table| &table.rules).any(|rule| leaves_state(&rule.actions));
    Ok(Running { version, program, engines, stateful, used: false, flushed: 0, lost: None })
}

/// The program of some rules, with those that we cannot follow replaced.
fn program(rules: &[String], ports: &[u32]) -> Result<Program, String> {
    let read = |text: String| {
        let mut sources = Sources::default();
        let file = sources.add("rules", text);
        front_flows(&sources, file, ports)
    };
    if let (Some(program), _) = read(rules.join("\n")) {
        return Ok(program);
    }
    let mut lines = Vec::new();
    for rule in rules {
        let (_, diagnostics) = read(rule.clone());
        let mut errors = diagnostics.iter().filter(|d| d.severity == Severity::Error).peekable();
        if errors.peek().is_none() {
            lines.push(rule.clone());
            continue;
        }
        // Errors that may stand for an action we do not have; a match must be understood.
        let actions = |code| matches!(code, "unsupported-action" | "unsupported-field" | "read-only-field");
        let behind = rule.find("action").unwrap_or(0);
        let other = errors.find(|error| !actions(error.code) || (error.span().start as usize) < behind);
        if let Some(error) = other {
            return Err(format!("rules: {}", error.message));
        }
        lines.push(format!("{}actions=output:{BEYOND}", &rule[..behind]));
    }
    let (program, diagnostics) = read(lines.join("\n"));
    program.ok_or_else(|| format!("rules: {}", diagnostics.first().map_or("", |d| &d.message)))
}

/// Whether actions leave something behind that later packets see.
fn leaves_state(actions: &[Action]) -> bool {
    actions.iter().any(|action| match action {
        Action::Ct(_) | Action::Normal => true,
        Action::Clone(actions) => leaves_state(actions),
        _ => false,
    })
}

/// Sends the packet to each engine; what differs.
fn compare(running: &mut Running, stimulus: &Stimulus, now_ns: u64) -> Result<Option<String>, String> {
    let ports: Vec<u32> = running.program.ports.iter().map(|port| port.number).collect();
    let in_port = ports.iter().position(|number| *number == stimulus.in_port).ok_or("stimulus: port")? as u16;
    running.used = true;
    let mut differences = Vec::new();
    let mut beyond = false;
    for (name, offline) in &mut running.engines {
        let frames: Vec<_> = stimulus.frames.iter().map(|frame| (in_port, frame)).collect();
        let outcomes = offline.send(now_ns, &frames);
        let reasons: Vec<_> = outcomes.iter().map(|outcome| outcome.drop).collect();
        let sent = outcomes.into_iter().flat_map(|outcome| outcome.outputs);
        let sent: Vec<(u32, Vec<u8>)> =
            sent.map(|(port, frame)| (ports.get(usize::from(port)).copied().unwrap_or(CONTROLLER), frame)).collect();
        beyond |= sent.iter().any(|(port, _)| *port == BEYOND);
        let difference = match &stimulus.expected {
            Expected::Frames(expected) => {
                let mut found = Outputs::new();
                for (port, frame) in sent.into_iter().filter(|(port, _)| ![LOCAL, CONTROLLER].contains(port)) {
                    found.entry(port).or_default().push(frame);
                }
                (found != *expected).then(|| format!("{} but {}", show(expected), show(&found)))
            }
            Expected::Ports(expected) => {
                // Across ports the order of a flood is free.
                let sorted = |mut ports: Vec<u32>| {
                    ports.sort_unstable();
                    ports
                };
                let found: Vec<u32> = sent.iter().map(|(port, _)| *port).collect();
                let same = sorted(found.clone()) == sorted(expected.clone());
                (!same).then(|| format!("ports {expected:?} but {found:?}"))
            }
        };
        let frame = show(&Outputs::from([(stimulus.in_port, stimulus.frames.clone())]));
        differences.extend(difference.map(|difference| format!("{name}: {frame} gives {difference}, {reasons:?}")));
    }
    if beyond {
        return Err("rules: an action that we do not have is met".into());
    }
    Ok((!differences.is_empty()).then(|| differences.join("; ")))
}

/// Bytes of a text in hex.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.bytes().all(|byte| byte.is_ascii_hexdigit()) && text.len().is_multiple_of(2) && !text.is_empty();
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).ok();
    if digits { (0..text.len()).step_by(2).map(byte).collect() } else { None }
}

fn show(outputs: &Outputs) -> String {
    let hex = |frame: &Vec<u8>| frame.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let port = |(port, frames): (&u32, &Vec<Vec<u8>>)| frames.iter().map(|f| format!("{port}:{}", hex(f))).collect();
    let all: Vec<Vec<String>> = outputs.iter().map(port).collect();
    if all.is_empty() { "nothing".into() } else { all.concat().join(" ") }
}
