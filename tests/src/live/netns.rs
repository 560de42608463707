//! A network namespace, and what runs in it. It lives as long as a process that holds it, which ends with the test.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// What an interface computes in place of its sender: a dataplane must get frames as a cable would carry them.
const OFFLOADS: [&str; 10] = ["rx", "off", "tx", "off", "tso", "off", "gso", "off", "gro", "off"];

/// A network namespace without IPv6, so that nothing is sent in it that a test does not send.
#[derive(Debug)]
pub struct Netns {
    /// Ends when its standard input closes.
    holder: Child,
}

impl Netns {
    /// Makes a namespace; why it cannot be made, where it cannot.
    ///
    /// # Errors
    /// Without the rights, or where the kernel has none.
    pub fn new() -> Result<Netns, String> {
        let hold = "mount -t sysfs sysfs /sys && echo ready && exec cat";
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "sh", "-c", hold]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let holder = command.spawn().map_err(|error| format!("cannot run `unshare`: {error}"))?;
        let mut netns = Netns { holder };
        let mut line = String::new();
        if let Some(out) = &mut netns.holder.stdout {
            BufReader::new(out).read_line(&mut line).map_err(|error| error.to_string())?;
        }
        if line != "ready\n" {
            return Err("cannot make a network namespace; this takes root's rights".to_string());
        }
        netns.enter(|| {
            for which in ["all", "default"] {
                let path = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
                if Path::new(&path).exists() {
                    std::fs::write(&path, "1").map_err(|error| format!("cannot write {path}: {error}"))?;
                }
            }
            Ok::<(), String>(())
        })?;
        netns.ip(&["link", "set", "lo", "up"]);
        Ok(netns)
    }

    /// Runs `f` on a thread in the namespace: sockets that it makes and programs that it starts are of the namespace.
    ///
    /// # Panics
    /// When `f` does, or the namespace is gone.
    pub fn enter<T: Send>(&self, f: impl FnOnce() -> T + Send) -> T {
        let enter = || {
            let netns = File::open(self.path()).expect("the namespace is held");
            move_into_link_name_space(netns.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may enter it");
            f()
        };
        match std::thread::scope(|scope| scope.spawn(enter).join()) {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// A command that will run in the namespace, with its view of `/sys`, and end with the thread that starts it.
    pub fn command(&self, program: &Path) -> Command {
        let pid = self.holder.id();
        let mut command = Command::new("nsenter");
        command.args([format!("--net=/proc/{pid}/ns/net"), format!("--mount=/proc/{pid}/ns/mnt")]);
        command.args(["setpriv", "--pdeathsig", "KILL", "--"]).arg(program);
        command
    }

    /// Runs `ip` with these arguments.
    ///
    /// # Panics
    /// When that fails.
    pub fn ip(&self, args: &[&str]) {
        self.run("ip", args);
    }

    /// Joins an interface of this namespace with one of another by a cable. Frames on it are whole, as on a real one.
    pub fn cable(&self, name: &str, far: &Netns, far_name: &str) {
        let far_pid = far.holder.id().to_string();
        self.ip(&["link", "add", name, "type", "veth", "peer", "name", far_name, "netns", &far_pid]);
        for (netns, name) in [(self, name), (far, far_name)] {
            netns.run("ethtool", &[&["-K", name], &OFFLOADS[..]].concat());
            netns.ip(&["link", "set", name, "up"]);
        }
    }

    /// Moves an interface to another namespace.
    pub fn give(&self, name: &str, to: &Netns) {
        self.ip(&["link", "set", name, "netns", &to.holder.id().to_string()]);
    }

    /// Gives an interface an address (`10.0.0.1/24`) and brings it up.
    pub fn address(&self, name: &str, address: &str) {
        self.ip(&["address", "add", address, "dev", name]);
        self.ip(&["link", "set", name, "up"]);
    }

    /// Whether the namespace has an interface of this name.
    pub fn has(&self, name: &str) -> bool {
        self.output("ip", &["link", "show", "dev", name]).status.success()
    }

    /// Sends `count` echo requests, five a second, and waits at most two seconds for answers; how many came.
    pub fn ping(&self, to: &str, count: u32) -> u32 {
        let output = self.output("ping", &["-n", "-q", "-i", "0.2", "-W", "2", "-c", &count.to_string(), to]);
        let text = String::from_utf8_lossy(&output.stdout);
        let received = text.lines().find_map(|line| line.split(", ").find_map(|part| part.strip_suffix(" received")));
        received.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("ping said: {output:?}"))
    }

    fn run(&self, program: &str, args: &[&str]) {
        let output = self.output(program, args);
        assert!(output.status.success(), "{program} {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr));
    }

    fn output(&self, program: &str, args: &[&str]) -> Output {
        let started = self.enter(|| Command::new(program).args(args).stdin(Stdio::null()).output());
        started.unwrap_or_else(|error| panic!("cannot run `{program}`: {error}"))
    }

    fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.holder.id())
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
