//! Open vSwitch with DPDK: a fresh database and daemon for each run, since what earlier rules left behind slows later ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Engine, Sample, Setup, Smc, number_after};
use crate::artifacts::{find, missing};
use crate::process::{self, Process};
use crate::workload::Files;
use crate::{Error, latency};

/// Where Debian has the daemon that can do DPDK, and the schema of its database.
const DAEMON: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// The engine.
pub struct Ovs {
    smc: Smc,
}

impl Ovs {
    /// With the signature-match cache or without.
    pub fn new(smc: Smc) -> Ovs {
        Ovs { smc }
    }
}

impl Engine for Ovs {
    fn name(&self) -> String {
        match self.smc {
            Smc::On => "ovs-smc".to_string(),
            Smc::Off => "ovs".to_string(),
        }
    }

    fn prepare(&mut self, setup: &Setup, _files: &Files) -> Result<(), Error> {
        let installed = Path::new(DAEMON).is_file() && Path::new(SCHEMA).is_file() && find("ovs-vsctl").is_some();
        if !installed {
            return Err(missing("Open vSwitch with DPDK", "openvswitch-switch-dpdk"));
        }
        if !setup.machine.hugepages {
            return Err(Error::Missing(
                "hugepages for Open vSwitch are missing (as root: sysctl vm.nr_hugepages=512)".to_string(),
            ));
        }
        Ok(())
    }

    fn measure(&self, setup: &Setup, files: &Files) -> Result<Sample, Error> {
        let folder = Folder::create()?;
        let (mut switch, _database) = self.start(setup, files, &folder, Ask::Cycles)?;
        switch.wait_for_frames(files.receiving)?;
        setup.stop.wait(setup.warm)?;
        folder.appctl("dpif-netdev/pmd-stats-clear")?;
        let share = setup.share_from_now(|| switch.busy())?;
        let shown = folder.appctl("dpif-netdev/pmd-perf-show")?;
        sample(&shown, share)
            .ok_or_else(|| Error::Failed(format!("Open vSwitch: its statistics cannot be read: {shown}")))
    }

    fn latency(&self, setup: &Setup, files: &Files) -> Result<latency::Figures, Error> {
        let folder = Folder::create()?;
        let (mut switch, _database) = self.start(setup, &files.through_rings(), &folder, Ask::Latency)?;
        latency::wait(&mut switch)
    }
}

/// What is asked of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    Cycles,
    Latency,
}

impl Ovs {
    /// Starts database and daemon, with the workload's rules and ports.
    fn start(&self, setup: &Setup, files: &Files, folder: &Folder, ask: Ask) -> Result<(Process, Process), Error> {
        let started = self.daemons(setup, files, folder, ask)?;
        folder.vsctl(&["add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev", "fail-mode=secure"])?;
        let rules = files.rules.to_string_lossy();
        folder.run("ovs-ofctl", &["-O", "OpenFlow13", "add-flows", &folder.path("br0.mgmt"), &rules])?;
        for (i, device) in files.devices().iter().enumerate() {
            let (port, device) = (format!("p{i}"), format!("options:dpdk-devargs={device}"));
            let number = format!("ofport_request={}", i + 1);
            let add = ["add-port", "br0", &port, "--", "set", "Interface", &port, "type=dpdk", &device, &number];
            folder.vsctl(&add)?;
        }
        Ok(started)
    }

    /// Starts the database and the daemon.
    fn daemons(&self, setup: &Setup, files: &Files, folder: &Folder, ask: Ask) -> Result<(Process, Process), Error> {
        let database = folder.path("conf.db");
        folder.run("ovsdb-tool", &["create", &database, SCHEMA])?;
        let mut command = folder.command("ovsdb-server");
        command.arg(&database).arg(format!("--remote=punix:{}", folder.path("db.sock")));
        command.args([format!("--unixctl={}", folder.path("db.ctl")), "-vconsole:off".to_string()]);
        let mut server = Process::start("ovsdb-server", &mut command, &folder.0, &setup.stop)?;
        let socket = PathBuf::from(folder.path("db.sock"));
        server.wait_for("its socket was there", |_, _| socket.exists().then_some(()))?;
        folder.vsctl(&["--no-wait", "init"])?;
        let (cpu, other) = (1u64 << setup.machine.cpu, 1u64 << setup.machine.other_cpu);
        let smc = self.smc == Smc::On;
        let plugin = setup.artifacts.plugin.display();
        folder.vsctl(&[
            "--no-wait",
            "set",
            "Open_vSwitch",
            ".",
            "other_config:dpdk-init=true",
            "other_config:dpdk-socket-mem=512",
            &format!("other_config:pmd-cpu-mask={cpu:#x}"),
            &format!("other_config:dpdk-lcore-mask={other:#x}"),
            &format!("other_config:smc-enable={smc}"),
            &format!("other_config:dpdk-extra=\"--in-memory --no-pci -d {plugin}\""),
        ])?;
        let mut command = folder.command(DAEMON);
        command.arg(format!("unix:{}", folder.path("db.sock"))).arg(format!("--unixctl={}", folder.path("sw.ctl")));
        command.arg("-vconsole:warn").env("REPLAY_DIR", &files.folder);
        if ask == Ask::Latency {
            latency::ask(&mut command, setup);
        }
        Ok((Process::start("ovs-vswitchd", &mut command, &folder.0, &setup.stop)?, server))
    }
}

/// Packets and time, of what `pmd-perf-show` prints of its one thread.
fn sample(text: &str, share: f64) -> Option<Sample> {
    Some(Sample {
        received: number_after(text, "Rx packets")? as u64,
        sent: number_after(text, "Tx packets")? as u64,
        seconds: number_after(text, "Measurement duration")?,
        share,
    })
}

/// A folder for one daemon; its sockets have short paths. It goes away when this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn create() -> Result<Folder, Error> {
        let path = std::env::temp_dir().join(format!("pipec-bench-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path); // of an interrupted process that had this number
        fs::create_dir(&path).map_err(|error| Error::file(&path, &error))?;
        Ok(Folder(path))
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    /// A command of Open vSwitch's that keeps its files here.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(find(program).unwrap_or_else(|| program.into()));
        for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"] {
            command.env(variable, &self.0);
        }
        command
    }

    fn run(&self, program: &str, args: &[&str]) -> Result<String, Error> {
        process::run(self.command(program).args(args))
    }

    fn vsctl(&self, args: &[&str]) -> Result<String, Error> {
        let database = format!("--db=unix:{}", self.path("db.sock"));
        self.run("ovs-vsctl", &[&["--timeout=30", &database], args].concat())
    }

    fn appctl(&self, what: &str) -> Result<String, Error> {
        self.run("ovs-appctl", &["-t", &self.path("sw.ctl"), what])
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0); // the system clears its temporary folder in the end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_read() {
        let text = "Time: 16:00:00.123
Measurement duration: 1.002 s

pmd thread numa_id 0 core_id 1:

  Iterations:               123  (0.10 us/it)
  Rx packets:          10002000  (9982 Kpps, 200 cycles/pkt)
  Tx packets:          10001000  (9981 Kpps)
";
        let found = sample(text, 0.5).unwrap();
        assert_eq!(found, Sample { received: 10_002_000, sent: 10_001_000, seconds: 1.002, share: 0.5 });
        assert_eq!(sample("", 1.0), None);
    }
}
