//! The ports of a command line: `lan=tap:lan0` to a [`PortSpec`].
//!
//! In: text. Out: what the user asked for, checked as far as text alone can tell. Never: a look at the machine or at DPDK;
//! whether the device exists is found when the port is opened.
//!
//! ```text
//! port  = NAME "=" kind
//! kind  = "tap:" IFACE args | "af_packet:" IFACE args | "af_xdp:" IFACE args
//!       | "pci:" ADDRESS args
//!       | "vhost:" PATH args | "virtio-user:" PATH args | "memif:" PATH args
//!       | "ring" | "ring:" WORD
//!       | "null" | "null:" ARG args
//!       | "pcap:" [PATH] ["," PATH]
//!       | "devargs:" DEVARGS | "net_" DEVARGS
//! args  = ("," ARG)*            handed to the DPDK driver as they are
//! ```

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// One `--port` of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSpec {
    /// The port's name or number in the program.
    pub name: String,
    /// What stands behind it.
    pub kind: PortKind,
}

/// What stands behind a port. `args` are further arguments for the DPDK driver, comma-separated, or empty.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "a field's name says what it is")]
pub enum PortKind {
    /// A tap interface of the kernel, which is made.
    Tap { iface: String, args: String },
    /// An interface of the kernel, through an AF_PACKET socket.
    AfPacket { iface: String, args: String },
    /// An interface of the kernel, through AF_XDP.
    AfXdp { iface: String, args: String },
    /// A device on the PCI bus; the address has its domain.
    Pci { address: String, args: String },
    /// The host's end of a virtual machine's interface: a Unix socket that is made.
    Vhost { path: PathBuf, args: String },
    /// The guest's end of the same.
    VirtioUser { path: PathBuf, args: String },
    /// Shared memory with another process, agreed on over a Unix socket.
    Memif { path: PathBuf, args: String },
    /// Rings in memory: what is sent on a queue is received from the same queue.
    Ring { name: Option<String> },
    /// Receives empty frames without end and discards what is sent.
    Null { args: String },
    /// Reads one capture and writes another; without `rx` it receives nothing, without `tx` it discards what is sent.
    Pcap { rx: Option<PathBuf>, tx: Option<PathBuf> },
    /// Anything else DPDK knows, in its own words.
    Devargs { devargs: String },
}

/// A port that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No name before the kind.
    #[error("port `{text}`: expected NAME=KIND, such as `lan=tap:lan0`")]
    NoName {
        /// The whole argument.
        text: String,
    },
    /// A kind that does not exist.
    #[error("port `{port}`: unknown kind `{kind}`{}; expected one of {KINDS}", hint(kind))]
    UnknownKind {
        /// The port's name.
        port: String,
        /// What was found.
        kind: String,
    },
    /// A kind that exists, with an argument that cannot be.
    #[error("port `{port}`: expected {expected}, found `{found}`")]
    BadArgument {
        /// The port's name.
        port: String,
        /// The form that the kind has.
        expected: &'static str,
        /// What was found.
        found: String,
    },
    /// One name given to two ports.
    #[error("port `{port}` is given twice, as `{first}` and as `{second}`; each port needs one --port")]
    Duplicate {
        /// The name.
        port: String,
        /// The kind that came first.
        first: String,
        /// The kind that came second.
        second: String,
    },
}

const KINDS: &str = "tap:IFACE, af_packet:IFACE, af_xdp:IFACE, pci:ADDRESS, vhost:PATH, virtio-user:PATH, memif:PATH, ring, \
                     null, pcap:RX[,TX], devargs:DEVARGS";
const KIND_WORDS: [&str; 11] =
    ["tap", "af_packet", "af_xdp", "pci", "vhost", "virtio-user", "memif", "ring", "null", "pcap", "devargs"];
/// Names of interfaces are at most this long (IFNAMSIZ less the terminator).
const IFACE_MAX: usize = 15;
/// Paths of Unix sockets are at most this long (sun_path less the terminator).
const SOCKET_MAX: usize = 107;

/// Reads all `--port` arguments, in order; two ports of one name are an error.
pub fn parse_all<S: AsRef<str>>(texts: &[S]) -> Result<Vec<PortSpec>, SpecError> {
    let mut specs: Vec<PortSpec> = Vec::with_capacity(texts.len());
    for text in texts {
        let spec: PortSpec = text.as_ref().parse()?;
        if let Some(first) = specs.iter().find(|other| other.name == spec.name) {
            return Err(SpecError::Duplicate {
                port: spec.name,
                first: first.kind.to_string(),
                second: spec.kind.to_string(),
            });
        }
        specs.push(spec);
    }
    Ok(specs)
}

/// The number of each port among the ports of its kind, in the order given. A `null` port of number 0 is DPDK's `net_null0`,
/// so that EAL plug-ins find it by name.
pub fn numbers(specs: &[PortSpec]) -> Vec<u16> {
    let same = |a: &PortKind, b: &PortKind| std::mem::discriminant(a) == std::mem::discriminant(b);
    specs
        .iter()
        .enumerate()
        .map(|(i, spec)| specs[..i].iter().filter(|other| same(&other.kind, &spec.kind)).count() as u16)
        .collect()
}

impl FromStr for PortSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let name_is_good =
            |name: &str| !name.is_empty() && !name.contains(|c: char| c == ':' || c == ',' || c.is_whitespace());
        match text.split_once('=') {
            Some((name, kind)) if name_is_good(name) => {
                Ok(PortSpec { name: name.to_string(), kind: parse_kind(name, kind)? })
            }
            _ => Err(SpecError::NoName { text: text.to_string() }),
        }
    }
}

fn parse_kind(port: &str, text: &str) -> Result<PortKind, SpecError> {
    if text.starts_with("net_") {
        return parse_devargs(port, text);
    }
    let (word, rest) = text.split_once(':').unwrap_or((text, ""));
    match word {
        "tap" => parse_iface(port, rest, "tap:IFACE").map(|(iface, args)| PortKind::Tap { iface, args }),
        "af_packet" => {
            parse_iface(port, rest, "af_packet:IFACE").map(|(iface, args)| PortKind::AfPacket { iface, args })
        }
        "af_xdp" => parse_iface(port, rest, "af_xdp:IFACE").map(|(iface, args)| PortKind::AfXdp { iface, args }),
        "pci" => parse_pci(port, rest),
        "vhost" => parse_socket(port, rest, "vhost:PATH").map(|(path, args)| PortKind::Vhost { path, args }),
        "virtio-user" => {
            parse_socket(port, rest, "virtio-user:PATH").map(|(path, args)| PortKind::VirtioUser { path, args })
        }
        "memif" => parse_socket(port, rest, "memif:PATH").map(|(path, args)| PortKind::Memif { path, args }),
        "ring" => parse_ring(port, rest),
        "null" => parse_null(port, rest),
        "pcap" => parse_pcap(port, rest),
        "devargs" => parse_devargs(port, rest),
        _ => Err(SpecError::UnknownKind { port: port.to_string(), kind: word.to_string() }),
    }
}

fn bad<T>(port: &str, expected: &'static str, found: &str) -> Result<T, SpecError> {
    Err(SpecError::BadArgument { port: port.to_string(), expected, found: found.to_string() })
}

/// The first item of a comma-separated list, and the rest.
fn split_args(text: &str) -> (&str, &str) {
    text.split_once(',').unwrap_or((text, ""))
}

fn parse_iface(port: &str, text: &str, form: &'static str) -> Result<(String, String), SpecError> {
    let (iface, args) = split_args(text);
    let bad_char = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
    if iface.is_empty() {
        return bad(port, form, iface);
    }
    if iface.len() > IFACE_MAX || iface.contains(bad_char) || iface == "." || iface == ".." {
        return bad(port, "the name of an interface (1 to 15 characters, no space, `/` or `:`)", iface);
    }
    Ok((iface.to_string(), args.to_string()))
}

fn parse_socket(port: &str, text: &str, form: &'static str) -> Result<(PathBuf, String), SpecError> {
    let (path, args) = split_args(text);
    if path.is_empty() {
        return bad(port, form, path);
    }
    if path.len() > SOCKET_MAX {
        return bad(port, "the path of a Unix socket (at most 107 bytes)", path);
    }
    Ok((PathBuf::from(path), args.to_string()))
}

/// `0000:01:00.0` or, in domain 0, `01:00.0`.
fn parse_pci(port: &str, text: &str) -> Result<PortKind, SpecError> {
    let (address, args) = split_args(text);
    let address = match address.matches(':').count() {
        1 => format!("0000:{address}"),
        _ => address.to_string(),
    };
    let widths = [4, 2, 2, 1];
    let parts: Vec<&str> = address.split([':', '.']).collect();
    let is_hex = |part: &&str| part.chars().all(|c| c.is_ascii_hexdigit());
    let good = parts.iter().map(|part| part.len()).eq(widths)
        && parts.iter().all(is_hex)
        && address.rfind(':') < address.find('.');
    if !good {
        return bad(port, "pci:ADDRESS, such as `pci:0000:01:00.0`", &address);
    }
    Ok(PortKind::Pci { address: address.to_ascii_lowercase(), args: args.to_string() })
}

fn parse_ring(port: &str, text: &str) -> Result<PortKind, SpecError> {
    const NAME_MAX: usize = 12; // the rings are named ETH_RXTX0_net_ring_NAME in 28 characters
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if text.len() > NAME_MAX || !text.chars().all(good) {
        return bad(port, "`ring` or ring:NAME, NAME being at most 12 letters, digits, `_` or `-`", text);
    }
    Ok(PortKind::Ring { name: (!text.is_empty()).then(|| text.to_string()) })
}

fn parse_null(port: &str, text: &str) -> Result<PortKind, SpecError> {
    if !text.is_empty() && !text.split(',').all(|arg| arg.contains('=')) {
        return bad(port, "`null` or arguments of DPDK's null driver, such as `null:size=64,no-rx=1`", text);
    }
    Ok(PortKind::Null { args: text.to_string() })
}

fn parse_pcap(port: &str, text: &str) -> Result<PortKind, SpecError> {
    let (rx, tx) = split_args(text);
    if (rx.is_empty() && tx.is_empty()) || tx.contains(',') {
        return bad(port, "pcap:RX[,TX], such as `pcap:in.pcap,out.pcap`", text);
    }
    let path = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
    Ok(PortKind::Pcap { rx: path(rx), tx: path(tx) })
}

fn parse_devargs(port: &str, text: &str) -> Result<PortKind, SpecError> {
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) || text.contains(char::is_whitespace) {
        return bad(port, "devargs:DEVICE[,ARG=VALUE]…, such as `devargs:net_null0,size=128`", text);
    }
    Ok(PortKind::Devargs { devargs: text.to_string() })
}

/// `; did you mean …` where a known kind is two letters away or fewer.
fn hint(kind: &str) -> String {
    KIND_WORDS
        .iter()
        .map(|word| (distance(kind, word), word))
        .filter(|(distance, _)| *distance <= 2)
        .min()
        .map(|(_, word)| format!(" (did you mean `{word}`?)"))
        .unwrap_or_default()
}

/// Levenshtein's distance, by rows.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.kind)
    }
}

impl fmt::Display for PortKind {
    /// The form that the command line has.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = |path: &Option<PathBuf>| path.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
        let (head, args) = match self {
            PortKind::Tap { iface, args } => (format!("tap:{iface}"), args.clone()),
            PortKind::AfPacket { iface, args } => (format!("af_packet:{iface}"), args.clone()),
            PortKind::AfXdp { iface, args } => (format!("af_xdp:{iface}"), args.clone()),
            PortKind::Pci { address, args } => (format!("pci:{address}"), args.clone()),
            PortKind::Vhost { path, args } => (format!("vhost:{}", path.display()), args.clone()),
            PortKind::VirtioUser { path, args } => (format!("virtio-user:{}", path.display()), args.clone()),
            PortKind::Memif { path, args } => (format!("memif:{}", path.display()), args.clone()),
            PortKind::Ring { name: None } => ("ring".to_string(), String::new()),
            PortKind::Ring { name: Some(name) } => (format!("ring:{name}"), String::new()),
            PortKind::Null { args } if args.is_empty() => ("null".to_string(), String::new()),
            PortKind::Null { args } => (format!("null:{args}"), String::new()),
            PortKind::Pcap { rx, tx } => (format!("pcap:{}", path(rx)), path(tx)),
            PortKind::Devargs { devargs } => (format!("devargs:{devargs}"), String::new()),
        };
        match args.is_empty() {
            true => f.write_str(&head),
            false => write!(f, "{head},{args}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> PortKind {
        text.parse::<PortSpec>().unwrap().kind
    }

    fn error(text: &str) -> String {
        text.parse::<PortSpec>().unwrap_err().to_string()
    }

    #[test]
    fn every_kind_is_read_and_written_back() {
        let texts = [
            "lan=tap:lan0",
            "lan=tap:lan0,mac=fixed",
            "1=af_packet:eth0",
            "lan=af_packet:eth0.5,blocksz=8192,framesz=4096",
            "lan=af_xdp:eth0,start_queue=1",
            "wan=pci:0000:01:00.0",
            "vm=vhost:/tmp/vm.sock,client=1",
            "vm=virtio-user:./vm.sock",
            "peer=memif:/run/peer.sock,role=server,id=3",
            "lo=ring",
            "lo=ring:between",
            "a=null",
            "a=null:no-rx=1",
            "lan=pcap:in.pcap",
            "lan=pcap:in.pcap,out.pcap",
            "lan=pcap:,out.pcap",
            "x=devargs:net_bonding0,mode=1,slave=0000:01:00.0",
        ];
        for text in texts {
            assert_eq!(text.parse::<PortSpec>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn the_parts_land_where_they_belong() {
        let text = |s: &str| s.to_string();
        let spec: PortSpec = "lan=tap:lan0,mac=fixed".parse().unwrap();
        assert_eq!(spec.name, "lan");
        assert_eq!(spec.kind, PortKind::Tap { iface: text("lan0"), args: text("mac=fixed") });
        assert_eq!(kind("w=pci:01:0A.1"), PortKind::Pci { address: text("0000:01:0a.1"), args: String::new() });
        assert_eq!(kind("l=ring:x"), PortKind::Ring { name: Some(text("x")) });
        assert_eq!(kind("n=null:size=128,copy=1"), PortKind::Null { args: text("size=128,copy=1") });
        assert_eq!(kind("p=pcap:a,b"), PortKind::Pcap { rx: Some("a".into()), tx: Some("b".into()) });
        assert_eq!(kind("p=pcap:,b"), PortKind::Pcap { rx: None, tx: Some("b".into()) });
        assert_eq!(kind("m=memif:/s,role=server"), PortKind::Memif { path: "/s".into(), args: text("role=server") });
    }

    #[test]
    fn a_bare_driver_name_is_devargs() {
        assert_eq!(kind("x=net_null7,size=9"), PortKind::Devargs { devargs: "net_null7,size=9".to_string() });
        assert_eq!(kind("x=net_null7"), kind("x=devargs:net_null7"));
    }

    #[test]
    fn a_port_without_a_name_is_refused() {
        for text in ["", "lan", "tap:lan0", "=tap:lan0", "a b=null", "null:size=1"] {
            assert_eq!(error(text), format!("port `{text}`: expected NAME=KIND, such as `lan=tap:lan0`"));
        }
    }

    #[test]
    fn unknown_kinds_name_the_known_ones() {
        let message = error("lan=afpacket:eth0");
        assert!(
            message
                .starts_with("port `lan`: unknown kind `afpacket` (did you mean `af_packet`?); expected one of tap:"),
            "{message}"
        );
        assert!(error("lan=virtio_user:/s").contains("(did you mean `virtio-user`?)"));
        assert!(!error("lan=wireguard:x").contains("did you mean"));
    }

    #[test]
    fn bad_arguments_say_what_was_expected() {
        let cases = [
            ("p=tap", "port `p`: expected tap:IFACE, found ``"),
            ("p=tap:", "port `p`: expected tap:IFACE, found ``"),
            ("p=af_xdp:", "port `p`: expected af_xdp:IFACE, found ``"),
            ("p=vhost:,client=1", "port `p`: expected vhost:PATH, found ``"),
            ("p=pcap:", "port `p`: expected pcap:RX[,TX], such as `pcap:in.pcap,out.pcap`, found ``"),
            ("p=pcap:a,b,c", "port `p`: expected pcap:RX[,TX], such as `pcap:in.pcap,out.pcap`, found `a,b,c`"),
            ("p=pci:eth0", "port `p`: expected pci:ADDRESS, such as `pci:0000:01:00.0`, found `eth0`"),
            ("p=pci:0000.01:00:0", "port `p`: expected pci:ADDRESS, such as `pci:0000:01:00.0`, found `0000.01:00:0`"),
        ];
        for (text, message) in cases {
            assert_eq!(error(text), message);
        }
        for text in ["p=tap:a/b", "p=tap:sixteencharacter", "p=ring:a,b", "p=null:x", "p=devargs:", "p=devargs:,a=b"] {
            assert!(matches!(text.parse::<PortSpec>(), Err(SpecError::BadArgument { .. })), "{text}");
        }
        let long = format!("p=memif:{}", "x".repeat(108));
        assert!(error(&long).contains("at most 107 bytes"));
    }

    #[test]
    fn a_name_can_be_used_once() {
        let specs = parse_all(&["lan=ring", "wan=null"]).unwrap();
        assert_eq!(specs.len(), 2);
        assert_eq!(
            parse_all(&["lan=ring", "lan=null"]).unwrap_err().to_string(),
            "port `lan` is given twice, as `ring` and as `null`; each port needs one --port"
        );
    }

    #[test]
    fn ports_are_numbered_by_kind() {
        let specs = parse_all(&["a=null", "b=ring", "c=null:no-rx=1", "d=tap:x", "e=null"]).unwrap();
        assert_eq!(numbers(&specs), [0, 0, 1, 0, 2]);
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("tap", "tap"), 0);
        assert_eq!(distance("tpa", "tap"), 2);
        assert_eq!(distance("afpacket", "af_packet"), 1);
    }
}
