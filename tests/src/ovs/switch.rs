//! Bridges, ports and rules, as the events of a case set them up. What is set up beyond these is a reason to leave out what
//! follows: it is named, not guessed at.

use std::collections::{BTreeMap, BTreeSet};

use super::Event;

/// A switch with its bridges.
#[derive(Debug, Default)]
pub struct Switch {
    /// Bridges by name.
    pub bridges: BTreeMap<String, Bridge>,
    /// Nanoseconds that the case has moved its clock on.
    pub warped_ns: u64,
    /// Ports whose frames were not recorded.
    pub unrecorded: BTreeSet<String>,
    /// How often connections were forgotten.
    pub flushed: u32,
    /// Why nothing that follows can be compared.
    pub beyond: Option<String>,
}

/// One bridge.
#[derive(Debug, Default)]
pub struct Bridge {
    /// OpenFlow numbers of its ports, by name; a bridge's own port is `LOCAL`.
    pub ports: BTreeMap<String, u32>,
    /// Its rules, a line each, in the order in which they were added.
    pub rules: Vec<String>,
    /// Rises with every change of the rules.
    pub version: u32,
    /// Why its rules are not known.
    pub unknown_rules: Option<String>,
    /// How it treats fragments, unless as usual.
    pub frags: Option<String>,
}

/// The rule of a bridge that stands alone, as it does unless told otherwise.
const STANDALONE: &str = "priority=0 actions=NORMAL";

/// OpenFlow's number of `LOCAL`.
pub const LOCAL: u32 = 65534;

/// OpenFlow's number of `CONTROLLER`.
pub const CONTROLLER: u32 = 65533;

impl Switch {
    /// Takes note of an event that sets something up.
    pub fn apply(&mut self, event: &Event) {
        if event.rc != 0 {
            return;
        }
        let result = match event.tool.as_str() {
            "ovs-vsctl" => self.vsctl(event),
            "ovs-ofctl" => self.ofctl(event),
            "ovs-appctl" => self.appctl(event),
            _ => Ok(()),
        };
        if let Err(beyond) = result {
            self.beyond.get_or_insert(beyond);
        }
    }

    /// The bridge that a port belongs to, and the port's number.
    pub fn port(&self, name: &str) -> Option<(&str, u32)> {
        self.bridges.iter().find_map(|(bridge, b)| b.ports.get(name).map(|number| (bridge.as_str(), *number)))
    }

    /// The port with this number in the datapath: the digits of its name, and 100 more for the port of a bridge.
    pub fn datapath_port(&self, number: u32) -> Option<(&str, u32)> {
        let names = self.bridges.values().flat_map(|bridge| bridge.ports.keys());
        let name = names.into_iter().find(|name| datapath_number(name) == Some(number))?;
        self.port(name)
    }

    fn vsctl(&mut self, event: &Event) -> Result<(), String> {
        for command in event.argv.split(|argument| argument == "--") {
            let words: Vec<&str> = command.iter().map(String::as_str).filter(|word| !word.starts_with("--")).collect();
            match words.as_slice() {
                [] | ["init" | "get" | "show" | "list" | "wait-until" | "list-ports", ..] => {}
                ["add-br", bridge] => {
                    let ports = BTreeMap::from([(bridge.to_string(), LOCAL)]);
                    let rules = vec![STANDALONE.into()];
                    self.bridges.insert(bridge.to_string(), Bridge { ports, rules, ..Bridge::default() });
                }
                ["del-br", bridge] => {
                    self.bridges.remove(*bridge);
                }
                ["add-port", bridge, port] => self.bridge(bridge)?.ports.insert(port.to_string(), 0).map_or((), drop),
                ["del-port", port] | ["del-port", _, port] => {
                    self.bridges.values_mut().for_each(|bridge| _ = bridge.ports.remove(*port));
                }
                ["set", table, name, settings @ ..] => self.set(&table.to_lowercase(), name, settings)?,
                [word, ..] => return Err(format!("ovs-vsctl {word} {}", words.get(1).unwrap_or(&""))),
            }
        }
        for bridge in self.bridges.values_mut() {
            // A first port that asks for no number gets 1; who gets which number of several is not said.
            let mut ports: Vec<_> = bridge.ports.values_mut().filter(|number| **number != LOCAL).collect();
            if let [number] = ports.as_mut_slice() {
                **number = (**number).max(1);
            }
        }
        Ok(())
    }

    fn set(&mut self, table: &str, name: &str, settings: &[&str]) -> Result<(), String> {
        for setting in settings {
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            match (table, key.replace('-', "_").as_str()) {
                ("bridge", "datapath_type" | "protocols" | "other_config:datapath_id" | "other_config:hwaddr") => {}
                ("bridge", "fail_mode") => {
                    let rules = &mut self.bridge(name)?.rules;
                    match value {
                        "secure" if *rules == [STANDALONE] => rules.clear(),
                        "standalone" if rules.is_empty() => rules.push(STANDALONE.into()),
                        _ => {}
                    }
                }
                ("interface", "type") if matches!(value, "dummy" | "dummy-pmd" | "internal") => {}
                ("interface", "ofport_request") => {
                    let number = value.parse().map_err(|_| setting.to_string())?;
                    for bridge in self.bridges.values_mut() {
                        bridge.ports.entry(name.to_string()).and_modify(|old| *old = number);
                    }
                }
                ("interface", "ifindex" | "mtu_request" | "options:ifindex") => {}
                ("interface", "options:pcap") => {
                    self.unrecorded.insert(name.into());
                }
                ("interface", "other_config:hwaddr") => {}
                ("interface", "options:stream") => return Err("ports joined by a cable".into()),
                ("interface", key) if key.starts_with("options:") && is_about_io(&key[8..]) => {}
                ("open_vswitch", key) if key.starts_with("other_config:") && !key.contains("vlan") => {}
                _ => {
                    return Err(format!(
                        "{table} {key}{}",
                        if key == "type" { format!("={value}") } else { String::new() }
                    ));
                }
            }
        }
        Ok(())
    }

    fn bridge(&mut self, name: &str) -> Result<&mut Bridge, String> {
        self.bridges.get_mut(name).ok_or_else(|| format!("bridge {name}"))
    }

    fn ofctl(&mut self, event: &Event) -> Result<(), String> {
        const CHANGES: [&str; 12] = [
            "add-flow",
            "add-flows",
            "replace-flows",
            "del-flows",
            "mod-flows",
            "set-frags",
            "mod-table",
            "mod-port",
            "bundle",
            "add-groups",
            "add-group",
            "add-meter",
        ];
        let Some((command, arguments)) = CHANGES.iter().find_map(|&word| Some((word, event.after(word)?))) else {
            return Ok(());
        };
        let [bridge, arguments @ ..] = arguments else { return Err(command.into()) };
        let bridge = self.bridge(bridge)?;
        let lines = match arguments.first().map(String::as_str) {
            Some("-") => event.stdin.clone().unwrap_or_default(),
            Some(file) if !["add-flow", "add-group", "add-meter"].contains(&command) => {
                event.files.get(file).cloned().unwrap_or_default()
            }
            Some(line) => line.to_string(),
            None => String::new(),
        };
        // How fast the controller is told is not what packets see.
        let seen = |line: &&str| !line.trim().is_empty() && !line.starts_with("meter=controller");
        let lines = lines.lines().filter(seen).map(str::to_string);
        match command {
            "add-flow" | "add-flows" | "add-group" | "add-groups" | "add-meter" => bridge.rules.extend(lines),
            "replace-flows" => {
                bridge.rules = lines.collect();
                bridge.unknown_rules = None;
            }
            "del-flows" if arguments.is_empty() => {
                bridge.rules.clear();
                bridge.unknown_rules = None;
            }
            "set-frags" => {
                bridge.frags = arguments.first().filter(|how| *how != "normal").cloned();
                return Ok(());
            }
            "mod-table" | "mod-port" => return Err(command.into()),
            _ => bridge.unknown_rules = Some(command.into()),
        }
        bridge.version += 1;
        Ok(())
    }

    fn appctl(&mut self, event: &Event) -> Result<(), String> {
        if let Some([ms, ..]) = event.after("time/warp") {
            self.warped_ns += ms.parse::<u64>().unwrap_or(0) * 1_000_000;
        }
        self.flushed += u32::from(event.after("dpctl/flush-conntrack").is_some());
        for word in ["fdb/flush", "fdb/add", "fdb/del", "netdev-dummy/set-admin-state"] {
            if event.after(word).is_some() {
                return Err(word.into());
            }
        }
        let continued = event.after("dpctl/ct-disable-tcp-seq-chk").or(event.after("dpctl/add-flow"));
        continued.map_or(Ok(()), |_| Err("dpctl".into()))
    }
}

/// Whether an option of an interface says where its frames come from or go, and nothing else.
fn is_about_io(option: &str) -> bool {
    matches!(option, "tx_pcap" | "rxq_pcap" | "pstream" | "n_rxq" | "numa_id" | "n_txq")
}

/// A port's number in the datapath.
pub fn datapath_number(name: &str) -> Option<u32> {
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    let digits = &digits[..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())];
    let number: u32 = digits.parse().ok()?;
    Some(if name.starts_with("br") { number + 100 } else { number })
}
