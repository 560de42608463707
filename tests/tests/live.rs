//! The firewall between two real hosts: network namespaces that talk through `pipec run`. The inside reaches the outside, the
//! outside opens nothing, and the counts say so. Left out, saying so, where network namespaces cannot be made.

#![allow(clippy::unwrap_used)] // also in what several tests share

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use pipec_tests::binary::{pipec, root};
use pipec_tests::live::dataplane::{Dataplane, Ended, Stats};
use pipec_tests::live::netns::Netns;
use rustix::process::Signal;

const INSIDE: &str = "10.0.0.1";
const OUTSIDE: &str = "10.0.0.2";
/// What taps are made by.
const TUN: &str = "/dev/net/tun";
/// How long an answer may take that comes.
const SOON: Duration = Duration::from_secs(10);
/// How long to wait for one that does not.
const LONG_ENOUGH: Duration = Duration::from_millis(700);
/// Echo requests sent either way.
const PINGS: u32 = 3;
/// Bytes sent over TCP either way: many bursts of full frames.
const BULK: usize = 300_000;

/// What a firewall's ports are made of.
#[derive(Clone, Copy)]
enum Ports {
    /// Taps, which the dataplane makes in its own namespace, and the hosts get.
    Tap,
    /// Ends of cables that exist before.
    AfPacket,
}

/// Two hosts with a firewall between them.
struct Site {
    inside: Netns,
    outside: Netns,
    // Declared before the namespace it runs in, so that it ends first.
    firewall: Dataplane,
    between: Netns,
}

impl Site {
    /// Builds it and starts the firewall on `workers` processors; nothing where that cannot be done here.
    fn new(ports: Ports, workers: usize, more: &[&str]) -> Option<Site> {
        let cpus = processors();
        if cpus.len() < workers {
            println!("left out: it takes {workers} processors");
            return None;
        }
        if matches!(ports, Ports::Tap) && !Path::new(TUN).exists() {
            println!("left out: there is no {TUN}");
            return None;
        }
        let namespaces = (|| Ok((Netns::new()?, Netns::new()?, Netns::new()?)))();
        let (inside, between, outside) = match namespaces {
            Ok(namespaces) => namespaces,
            Err(error) => {
                let error: String = error;
                println!("left out: {error}");
                return None;
            }
        };
        let kind = match ports {
            Ports::Tap => "tap",
            Ports::AfPacket => {
                between.cable("lan", &inside, "lan");
                between.cable("wan", &outside, "wan");
                "af_packet"
            }
        };
        let program = root().join("pipelines/firewall.pipe").display().to_string();
        let (lan, wan, cpus) = (format!("lan={kind}:lan"), format!("wan={kind}:wan"), cpus[..workers].join(","));
        let args = [&program, "--port", &lan, "--port", &wan, "--cpus", &cpus, "--eal", "--no-huge"];
        let firewall = Dataplane::start(&between, &pipec(), &[&args, more].concat());
        if let Ports::Tap = ports {
            between.give("lan", &inside);
            between.give("wan", &outside);
        }
        inside.address("lan", &format!("{INSIDE}/24"));
        outside.address("wan", &format!("{OUTSIDE}/24"));
        Some(Site { inside, outside, firewall, between })
    }

    /// Stops the firewall. What it made is gone with it.
    fn stop(self, ports: Ports, signal: Signal) -> String {
        let printed = self.firewall.stop(signal).good();
        if let Ports::Tap = ports {
            assert!(!self.inside.has("lan") && !self.outside.has("wan"), "the taps are gone");
        } else {
            assert!(self.between.has("lan") && self.between.has("wan"), "the cables are left");
        }
        printed
    }
}

/// Processors that this process may use.
fn processors() -> Vec<String> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    let ranges = list.split(',').map(|range| range.split_once('-').unwrap_or((range, range)));
    let number = |text: &str| text.parse::<u32>().unwrap();
    ranges.flat_map(|(low, high)| number(low)..=number(high)).map(|cpu| cpu.to_string()).collect()
}

/// Ping, TCP and UDP from the inside are answered by the outside.
fn inside_reaches_outside(site: &Site) {
    assert_eq!(site.inside.ping(OUTSIDE, PINGS), PINGS, "every ping is answered");

    let server = site.outside.enter(|| TcpListener::bind((OUTSIDE, 80)).unwrap());
    let served = std::thread::spawn(move || {
        let (mut stream, client) = server.accept().unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        stream.write_all(&bytes).unwrap();
        client
    });
    let mut client = site.inside.enter(|| TcpStream::connect_timeout(&format!("{OUTSIDE}:80").parse().unwrap(), SOON));
    let client = client.as_mut().unwrap();
    client.set_read_timeout(Some(SOON)).unwrap();
    let sent: Vec<u8> = (0..BULK).map(|i| (i % 251) as u8).collect();
    client.write_all(&sent).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut received = Vec::new();
    client.read_to_end(&mut received).unwrap();
    assert!(received == sent, "{} bytes come back as they were", received.len());
    assert_eq!(served.join().unwrap().ip().to_string(), INSIDE);

    let server = site.outside.enter(|| udp(OUTSIDE, 53));
    let client = site.inside.enter(|| udp(INSIDE, 1000));
    let mut bytes = [0; 64];
    for (question, answer) in [(&b"one"[..], &b"two"[..]), (b"three", b"four")] {
        client.send_to(question, (OUTSIDE, 53)).unwrap();
        let (n, from) = server.recv_from(&mut bytes).unwrap();
        assert_eq!((&bytes[..n], from.to_string()), (question, format!("{INSIDE}:1000")));
        server.send_to(answer, from).unwrap();
        let (n, from) = client.recv_from(&mut bytes).unwrap();
        assert_eq!((&bytes[..n], from.to_string()), (answer, format!("{OUTSIDE}:53")));
    }
}

/// Ping, TCP and UDP from the outside get no further than the firewall; how many packets were tried at the least.
fn outside_opens_nothing(site: &Site) -> u64 {
    assert_eq!(site.outside.ping(INSIDE, PINGS), 0, "no ping is answered");

    let server = site.inside.enter(|| TcpListener::bind((INSIDE, 22)).unwrap());
    let address = format!("{INSIDE}:22").parse().unwrap();
    let refused = site.outside.enter(|| TcpStream::connect_timeout(&address, LONG_ENOUGH)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TimedOut, "nobody answers: {refused}");
    server.set_nonblocking(true).unwrap();
    assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "nobody was asked");

    let server = site.inside.enter(|| udp(INSIDE, 53));
    let client = site.outside.enter(|| udp(OUTSIDE, 1000));
    client.send_to(b"anybody?", (INSIDE, 53)).unwrap();
    server.set_read_timeout(Some(LONG_ENOUGH)).unwrap();
    assert_eq!(server.recv_from(&mut [0; 64]).unwrap_err().kind(), ErrorKind::WouldBlock, "nothing arrives");

    u64::from(PINGS) + 2
}

fn udp(address: &str, port: u16) -> UdpSocket {
    let socket = UdpSocket::bind((address, port)).unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    socket
}

/// Both hosts try everything; the counts agree with what they saw.
fn firewall_stands(ports: Ports, workers: usize, signal: Signal) {
    let Some(site) = Site::new(ports, workers, &["--stats", "json"]) else { return };
    inside_reaches_outside(&site);
    let tried = outside_opens_nothing(&site);
    inside_reaches_outside(&site);
    let stats = Stats::read(&site.stop(ports, signal));

    assert_eq!(stats.ports.iter().map(|port| port.name.as_str()).collect::<Vec<_>>(), ["lan", "wan"]);
    assert_eq!(stats.workers.iter().map(|worker| worker.cpu.to_string()).collect::<Vec<_>>(), processors()[..workers]);
    stats.assert_balanced();
    let [lan, wan] = &stats.ports[..] else { panic!("{stats:?}") };
    assert!(lan.drops.is_empty(), "all that the inside sends passes: {stats:?}");
    assert_eq!(wan.drops.keys().collect::<Vec<_>>(), ["policy"], "{stats:?}");
    assert!(wan.drops["policy"] >= tried, "{tried} packets of the outside at least were dropped by a rule: {stats:?}");
    let bulk = 2 * (BULK / 1460) as u64;
    assert!(lan.rx_packets >= bulk && wan.rx_packets >= bulk, "all traffic passed here: {stats:?}");
}

#[test]
fn on_taps_with_one_worker() {
    firewall_stands(Ports::Tap, 1, Signal::INT);
}

#[test]
fn on_taps_with_two_workers() {
    firewall_stands(Ports::Tap, 2, Signal::TERM);
}

#[test]
fn on_cables_with_one_worker() {
    firewall_stands(Ports::AfPacket, 1, Signal::TERM);
}

#[test]
fn on_cables_with_two_workers() {
    firewall_stands(Ports::AfPacket, 2, Signal::INT);
}

#[test]
fn a_stopped_firewall_says_what_it_did() {
    for signal in [Signal::INT, Signal::TERM] {
        let Some(site) = Site::new(Ports::AfPacket, 1, &[]) else { return };
        assert_eq!(site.inside.ping(OUTSIDE, 1), 1);
        assert_eq!(site.outside.ping(INSIDE, 1), 0);
        let summary = site.stop(Ports::AfPacket, signal);
        for part in ["lan (1)", "wan (2)", "forwarded", "dropped 1", "policy"] {
            assert!(summary.contains(part), "{part} in\n{summary}");
        }
    }
}

/// A folder that everybody may read, with `pipec` and the firewall; removed behind the test.
struct Everybodys(PathBuf);

impl Everybodys {
    fn new() -> Everybodys {
        let folder = std::env::temp_dir().join(format!("pipec-live-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let everybodys = Everybodys(folder);
        std::fs::set_permissions(&everybodys.0, PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::copy(pipec(), everybodys.0.join("pipec")).unwrap();
        std::fs::copy(root().join("pipelines/firewall.pipe"), everybodys.0.join("firewall.pipe")).unwrap();
        everybodys
    }

    /// Runs the firewall without any rights.
    fn run(&self, ports: [&str; 2]) -> Ended {
        let program = self.0.join("pipec");
        let mut command = match rustix::process::geteuid().is_root() {
            true => {
                let mut setpriv = Command::new("setpriv");
                setpriv.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "--"]).arg(program);
                setpriv
            }
            false => Command::new(program),
        };
        command.args([
            "run",
            "firewall.pipe",
            "--port",
            ports[0],
            "--port",
            ports[1],
            "--secs",
            "0.2",
            "--stats",
            "json",
        ]);
        command.current_dir(&self.0).env_remove("XDG_RUNTIME_DIR");
        Dataplane::spawn(&mut command).wait()
    }
}

impl Drop for Everybodys {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn an_ordinary_user_may_run_what_needs_no_rights() {
    let everybodys = Everybodys::new();
    let stats = Stats::read(&everybodys.run(["lan=null", "wan=ring"]).good());
    assert!(stats.ports[0].rx_packets > 0, "{stats:?}");
    stats.assert_balanced();

    if !Path::new(TUN).exists() {
        return println!("left out: there is no {TUN}");
    }
    let ended = everybodys.run(["lan=tap:pipec-none", "wan=null"]);
    assert_eq!((ended.status, ended.out.as_str()), (Some(1), ""), "{ended:?}");
    let message = "error: port `lan=tap:pipec-none`: not permitted without CAP_NET_ADMIN";
    assert!(ended.err.starts_with(message) && ended.err.contains("run as root"), "{ended:?}");
    assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
}
