//! DPDK's SWX pipeline, `bench/c/swx.c`: on `wire`, Ethernet addresses, and five-tuple rules.
//!
//! In: rules of `.flows`, as the workloads have them. Out: entries in SWX's language. Never: a rule that is left out; a workload
//! with one that cannot be said is not applied for.

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::floor::Counts;
use super::{Engine, Sample, Setup};
use crate::Error;
use crate::process::Process;
use crate::workload::{Files, Kind};

/// How long it may take: a hundred thousand entries are read in slowly where the machine is busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// The engine.
#[derive(Default)]
pub struct Swx {
    program: PathBuf,
}

/// Which of its programs a workload is, if any.
fn program_of(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Wire => Some("wire"),
        Kind::L2 { .. } => Some("l2"),
        Kind::Acl { .. } => Some("acl"),
        _ => None,
    }
}

impl Engine for Swx {
    fn name(&self) -> String {
        "swx".to_string()
    }

    fn prepare(&mut self, setup: &Setup, files: &Files) -> Result<(), Error> {
        if program_of(files.workload.kind).is_none() {
            return Err(Error::NotApplicable);
        }
        self.program = setup.artifacts.swx()?;
        let text = fs::read_to_string(&files.rules).map_err(|error| Error::file(&files.rules, &error))?;
        let entries = files.folder.join("entries");
        fs::write(&entries, translate(files.workload.kind, &text)?).map_err(|error| Error::file(&entries, &error))
    }

    fn measure(&self, setup: &Setup, files: &Files) -> Result<Sample, Error> {
        let mut command = Command::new(&self.program);
        command.args(["-l", &setup.machine.cpu.to_string(), "--no-pci", "--no-telemetry"]).args(setup.machine.memory());
        command.arg("-d").arg(&setup.artifacts.plugin);
        command.args(files.devices().iter().flat_map(|device| ["--vdev", device]));
        command.arg("--").arg(program_of(files.workload.kind).unwrap_or("wire")).arg(files.folder.join("entries"));
        command.args([setup.warm, setup.measured].map(|time| time.as_secs_f64().to_string()));
        let process = Process::start("swx", command.env("REPLAY_DIR", &files.folder), &files.folder, &setup.stop)?;
        let mut process = process.patiently(PATIENCE);
        process.wait_for_frames(files.receiving)?;
        let share = setup.share(|| process.busy())?;
        let Counts { received, sent, seconds } = Counts::of("swx", &process.finish()?)?;
        Ok(Sample { received, sent, seconds, share })
    }
}

/// The entries for a workload's rules, a line each. The last rule of table 0 is what happens on a miss anyway.
fn translate(kind: Kind, rules: &str) -> Result<String, Error> {
    let line = match kind {
        Kind::L2 { .. } => l2,
        Kind::Acl { .. } => acl,
        _ => return Ok(String::new()),
    };
    let mut entries = String::new();
    for rule in rules.lines().filter(|rule| *rule != "table=0,priority=0 actions=drop") {
        let entry = line(rule).ok_or_else(|| Error::Failed(format!("swx: cannot say the rule `{rule}`")))?;
        entries += &(entry + "\n");
    }
    Ok(entries)
}

fn l2(rule: &str) -> Option<String> {
    let (matched, action) = rule.split_once(" actions=")?;
    let mac = matched.split(',').find_map(|part| part.strip_prefix("dl_dst="))?;
    Some(format!("match 0x{} action {}", mac.replace(':', ""), named(action)?))
}

fn acl(rule: &str) -> Option<String> {
    let (matched, action) = rule.split_once(" actions=")?;
    let (mut priority, mut protocol) = (None, None);
    let mut fields = [(0u64, 0u64); 4];
    for part in matched.split(',') {
        match part.split_once('=') {
            Some(("priority", number)) => priority = number.parse::<u32>().ok(),
            Some(("nw_src", prefix)) => fields[0] = address(prefix)?,
            Some(("nw_dst", prefix)) => fields[1] = address(prefix)?,
            Some(("tp_src", masked)) => fields[2] = number(masked)?,
            Some(("tp_dst", masked)) => fields[3] = number(masked)?,
            None if part == "tcp" => protocol = Some(6),
            None if part == "udp" => protocol = Some(17),
            _ => return None,
        }
    }
    let [from, to, from_port, to_port] = fields.map(|(value, mask)| format!("{value:#x}/{mask:#x}"));
    // 0 is the highest there.
    let (priority, protocol) = (65_535u32.checked_sub(priority?)?, protocol?);
    let action = named(action)?;
    Some(format!("match {from} {to} {protocol:#x}/0xff {from_port} {to_port} priority {priority} action {action}"))
}

fn named(action: &str) -> Option<&'static str> {
    match action {
        "output:2" => Some("forward"),
        "drop" => Some("reject"),
        _ => None,
    }
}

fn address(prefix: &str) -> Option<(u64, u64)> {
    let (address, length) = prefix.split_once('/')?;
    let address: Ipv4Addr = address.parse().ok()?;
    let mask = (0xffff_ffff_u64 << (32 - length.parse::<u32>().ok().filter(|length| *length <= 32)?)) & 0xffff_ffff;
    Some((u64::from(u32::from(address)) & mask, mask))
}

fn number(masked: &str) -> Option<(u64, u64)> {
    let hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let (value, mask) = masked.split_once('/')?;
    Some((hex(value)?, hex(mask)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    #[test]
    fn rules_are_said_in_its_language() {
        assert_eq!(
            l2("table=0,priority=10,dl_dst=02:20:ea:1a:a0:62 actions=output:2").unwrap(),
            "match 0x0220ea1aa062 action forward"
        );
        assert_eq!(
            acl("priority=200,tcp,nw_src=10.1.0.0/16,nw_dst=0.0.0.0/0,tp_dst=0x50/0xffff actions=drop").unwrap(),
            "match 0xa010000/0xffff0000 0x0/0x0 0x6/0xff 0x0/0x0 0x50/0xffff priority 65335 action reject"
        );
        assert_eq!(acl("priority=200,icmp actions=drop"), None);
        for name in ["l2-100", "acl-100", "wire"] {
            let workload: Workload = name.parse().unwrap();
            let rules = workload.make().rules;
            let entries = translate(workload.kind, &rules).unwrap();
            let expected = if name == "wire" { 0 } else { rules.lines().count() - 1 };
            assert_eq!(entries.lines().count(), expected, "{name}");
        }
    }
}
