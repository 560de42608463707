//! `pipec run` in a namespace, from its start to its counts.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;

use super::netns::Netns;
use super::wait_until;

/// A running dataplane.
#[derive(Debug)]
pub struct Dataplane {
    child: Child,
}

/// What a run that has ended came to.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status, where it was not killed.
    pub status: Option<i32>,
    /// What it printed.
    pub out: String,
    /// What it complained of.
    pub err: String,
}

/// What `--stats json` prints, as far as tests read it.
#[derive(Debug, Deserialize)]
pub struct Stats {
    /// The ports, in the program's order.
    pub ports: Vec<Port>,
    /// Drops at all ports.
    pub drops: BTreeMap<String, u64>,
    /// The workers.
    pub workers: Vec<Worker>,
}

/// One port's counts.
#[derive(Debug, Deserialize)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Packets dropped, by reason.
    pub drops: BTreeMap<String, u64>,
}

/// One worker's counts.
#[derive(Debug, Deserialize)]
pub struct Worker {
    /// Its processor.
    pub cpu: u32,
    /// Packets it received.
    pub packets: u64,
}

impl Dataplane {
    /// Starts `pipec run` in a namespace, and waits until its workers run.
    ///
    /// # Panics
    /// When it ends instead; says what it complained of.
    pub fn start(netns: &Netns, pipec: &Path, args: &[&str]) -> Dataplane {
        let mut command = netns.command(pipec);
        command.arg("run").args(args);
        let mut dataplane = Dataplane::spawn(&mut command);
        wait_until("the dataplane's workers run", || {
            if dataplane.child.try_wait().is_ok_and(|status| status.is_some()) {
                panic!("it did not start: {:?}", dataplane.ended());
            }
            dataplane.has_workers()
        });
        dataplane
    }

    /// Starts a program.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn spawn(command: &mut Command) -> Dataplane {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
        Dataplane { child }
    }

    /// Sends a signal, and waits for the end.
    ///
    /// # Panics
    /// When it does not end in time.
    pub fn stop(mut self, signal: Signal) -> Ended {
        kill_process(Pid::from_child(&self.child), signal).expect("the dataplane runs");
        self.wait()
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// When it does not come in time.
    pub fn wait(&mut self) -> Ended {
        wait_until("the dataplane ends", || self.child.try_wait().is_ok_and(|status| status.is_some()));
        self.ended()
    }

    /// Whether a thread of the process is a worker's.
    fn has_workers(&self) -> bool {
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{}/task", self.child.id())) else { return false };
        let names = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        names.into_iter().any(|name| name.starts_with("worker-"))
    }

    fn ended(&mut self) -> Ended {
        let status = self.child.wait().expect("it is our child").code();
        let text = |stream: Option<&mut dyn std::io::Read>| {
            let mut text = String::new();
            if let Some(stream) = stream {
                stream.read_to_string(&mut text).expect("what it prints is text");
            }
            text
        };
        let out = text(self.child.stdout.as_mut().map(|out| out as _));
        let err = text(self.child.stderr.as_mut().map(|err| err as _));
        Ended { status, out, err }
    }
}

impl Drop for Dataplane {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// It ended well and complained of nothing; what it printed.
    #[track_caller]
    pub fn good(self) -> String {
        assert!(self.status == Some(0) && self.err.is_empty(), "{self:?}");
        self.out
    }
}

impl Stats {
    /// Reads what `--stats json` printed.
    ///
    /// # Panics
    /// When it is something else.
    pub fn read(json: &str) -> Stats {
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
    }

    /// Panics unless every packet received was sent or dropped. Holds for programs that send no packet to several ports.
    pub fn assert_balanced(&self) {
        let sum = |count: fn(&Port) -> u64| self.ports.iter().map(count).sum::<u64>();
        let dropped: u64 = self.drops.values().sum();
        assert_eq!(
            sum(|port| port.rx_packets),
            sum(|port| port.tx_packets) + dropped,
            "received, sent + dropped: {self:?}"
        );
        assert_eq!(sum(|port| port.drops.values().sum()), dropped, "drops of all ports, of each: {self:?}");
        assert_eq!(
            self.workers.iter().map(|worker| worker.packets).sum::<u64>(),
            sum(|port| port.rx_packets),
            "{self:?}"
        );
    }
}
