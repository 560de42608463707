//! DPDK's environment (EAL): its start, once in a process, and the threads it knows.
//!
//! In: how much memory, which PCI devices, the user's own arguments. Out: a handle that everything else stands on. Never:
//! a thread of its own that polls, or a change to the calling thread's affinity: workers are ordinary threads that register.
//!
//! Memory: with enough free hugepages `--in-memory`, which needs no mount; otherwise ordinary pages by `--no-huge`. Neither
//! leaves files behind, so that several processes and ordinary users do not meet. An argument of the user's that decides
//! the same question replaces ours.

use std::ffi::{CString, c_char, c_int};
use std::fs;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::error::{Error, errno_text, last_errno};
use super::log;
use crate::io::spec::{PortKind, PortSpec};

/// How to start the EAL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EalOptions {
    /// Memory for packet buffers and rings, in MiB; 0 is 256. See [`Pool::memory_mib`](super::Pool::memory_mib).
    pub memory_mib: u32,
    /// Addresses of the PCI devices to use; no other is touched.
    pub pci: Vec<String>,
    /// One memory file for all segments, which virtio-user ports need to share hugepages.
    pub single_file_segments: bool,
    /// The user's own arguments, handed over as they are.
    pub args: Vec<String>,
}

impl EalOptions {
    /// What these ports need.
    pub fn for_ports(specs: &[PortSpec]) -> EalOptions {
        let mut options = EalOptions::default();
        for spec in specs {
            match &spec.kind {
                PortKind::Pci { address, args } if args.is_empty() => options.pci.push(address.clone()),
                PortKind::Pci { address, args } => options.pci.push(format!("{address},{args}")),
                PortKind::VirtioUser { .. } => options.single_file_segments = true,
                PortKind::Devargs { devargs } if devargs.contains("virtio_user") => options.single_file_segments = true,
                PortKind::Devargs { devargs } if is_pci(devargs) => options.pci.push(devargs.clone()),
                _ => {}
            }
        }
        options
    }
}

/// The started EAL; clones are handles of the same one. It ends when the last handle, pool and port is dropped.
#[derive(Debug, Clone)]
pub struct Eal {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    hugepages: bool,
    /// Whether no device or other process reads packet buffers by itself.
    private: bool,
    /// Ids of the ports that are open.
    open_ports: Mutex<Vec<u16>>,
}

static STARTED: AtomicBool = AtomicBool::new(false);

impl Eal {
    /// Starts the EAL. In a process this can be done once, even after it has ended.
    pub fn start(options: &EalOptions) -> Result<Eal, Error> {
        if STARTED.swap(true, Ordering::AcqRel) {
            return Err(Error::EalStarted);
        }
        let affinity = affinity();
        let args = arguments(options, free_hugepage_mib(), &cpus(&affinity));
        tracing::debug!(target: "dpdk", "EAL arguments: {}", args.join(" "));
        log::install();
        let mark = log::mark();
        let (result, written) = log::capture(|| init(&args));
        set_affinity(&affinity);
        if result < 0 {
            return Err(start_error(options, &written, &log::complaints(mark)));
        }
        log::replay(&written);
        // SAFETY: the EAL has started.
        let hugepages = unsafe { dpdk_sys::rte_eal_has_hugepages() } != 0;
        let private = !hugepages && is_private(options);
        Ok(Eal { inner: Arc::new(Inner { hugepages, private, open_ports: Mutex::new(Vec::new()) }) })
    }

    /// Whether packet buffers lie in hugepages.
    pub fn has_hugepages(&self) -> bool {
        self.inner.hugepages
    }

    /// Whether packet buffers may lie in memory of our own, since no device or other process reads them by itself.
    pub(super) fn memory_is_private(&self) -> bool {
        self.inner.private
    }

    /// Makes the calling thread known to DPDK, so that it gets caches of its own in pools. A thread that polls ports must do
    /// this first; when it pins itself does not matter.
    pub fn register_thread(&self) -> Result<RegisteredThread, Error> {
        // SAFETY: reads a thread-local variable.
        let known = unsafe { dpdk_sys::shim_lcore_id() } < dpdk_sys::RTE_MAX_LCORE;
        if !known {
            // SAFETY: the EAL has started.
            let result = unsafe { dpdk_sys::rte_thread_register() };
            if result < 0 {
                return Err(Error::Thread { reason: errno_text(last_errno()) });
            }
        }
        Ok(RegisteredThread { ours: !known, _eal: self.clone(), _not_send: PhantomData })
    }

    /// The last processor that this process may run on.
    pub fn last_cpu() -> u32 {
        cpu_numbers(&affinity()).last().copied().unwrap_or(0)
    }

    /// Pins the calling thread to a processor.
    pub fn pin_thread(cpu: u32) -> Result<(), Error> {
        let allowed = affinity();
        let numbers = cpu_numbers(&allowed);
        if !numbers.contains(&cpu) {
            return Err(Error::Cpu { cpu, allowed: cpus(&allowed) });
        }
        // SAFETY: a set of processors is plain words; all zeros is the empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the number is within the set's size, since it came from one.
        unsafe { libc::CPU_SET(cpu as usize, &mut set) };
        set_affinity(&set);
        Ok(())
    }

    /// Notes that a port is open; false when it already is.
    pub(super) fn claim_port(&self, id: u16) -> bool {
        let mut ports = self.inner.open_ports.lock().unwrap_or_else(PoisonError::into_inner);
        let free = !ports.contains(&id);
        if free {
            ports.push(id);
        }
        free
    }

    /// Notes that a port is closed.
    pub(super) fn release_port(&self, id: u16) {
        self.inner.open_ports.lock().unwrap_or_else(PoisonError::into_inner).retain(|open| *open != id);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: the EAL has started, and no handle, pool or port is left.
        unsafe { dpdk_sys::rte_eal_cleanup() };
    }
}

/// A thread known to DPDK, until this is dropped, on the same thread.
#[derive(Debug)]
pub struct RegisteredThread {
    /// Whether dropping this makes the thread unknown again.
    ours: bool,
    _eal: Eal,
    _not_send: PhantomData<*const ()>,
}

impl Drop for RegisteredThread {
    fn drop(&mut self) {
        if self.ours {
            // SAFETY: this thread registered; it cannot be another, since the type is not `Send`.
            unsafe { dpdk_sys::rte_thread_unregister() };
        }
    }
}

/// `rte_eal_init`, whose arguments may be kept by DPDK for good.
fn init(args: &[String]) -> c_int {
    let strings = args.iter().map(|arg| CString::new(arg.replace('\0', "")).unwrap_or_default());
    let mut argv: Vec<*mut c_char> = strings.map(CString::into_raw).collect();
    let argc = argv.len() as c_int;
    argv.push(std::ptr::null_mut());
    // SAFETY: `argc` strings that are never freed, and a null pointer after them.
    unsafe { dpdk_sys::rte_eal_init(argc, argv.leak().as_mut_ptr()) }
}

/// The command line for the EAL.
fn arguments(options: &EalOptions, free_hugepage_mib: u64, cpus: &str) -> Vec<String> {
    let given = |names: &[&str]| options.args.iter().any(|arg| names.iter().any(|name| is_option(arg, name)));
    let memory_mib = if options.memory_mib == 0 { 256 } else { options.memory_mib };
    let mut args = vec!["pipec".to_string()];
    let mut push = |arg: &str| args.push(arg.to_string());
    if !given(&["-l", "-c", "-s", "-S", "--lcores"]) {
        push("--lcores");
        push(&format!("0@({cpus})")); // one DPDK thread, which is the caller, on all processors
    }
    let own_memory = ["--no-huge", "--in-memory", "--huge-dir", "--legacy-mem", "--file-prefix", "--proc-type"];
    let no_huge = given(&["--no-huge"]) || (!given(&own_memory) && free_hugepage_mib < u64::from(memory_mib));
    if no_huge {
        for arg in ["--no-huge", "--no-shconf"] {
            if !given(&[arg]) {
                push(arg);
            }
        }
        if !given(&["-m", "--socket-mem"]) {
            push("-m");
            push(&memory_mib.saturating_mul(2).to_string()); // a buffer a page; filled only as far as it is used
        }
        if is_private(options) && !given(&["--iova-mode"]) {
            push("--iova-mode=va"); // nothing here has to do with physical addresses
        }
    } else if !given(&own_memory) {
        push("--in-memory");
    }
    if options.single_file_segments && !no_huge && !given(&["--single-file-segments"]) {
        push("--single-file-segments");
    }
    if !given(&["--telemetry", "--no-telemetry"]) {
        push("--no-telemetry");
    }
    for device in &options.pci {
        push("-a");
        push(device);
    }
    if options.pci.is_empty() && !given(&["--no-pci", "-a", "--allow", "-b", "--block"]) {
        push("--no-pci");
    }
    args.extend(options.args.iter().cloned());
    args
}

/// Whether these are the arguments of a PCI device, which begin with its address.
fn is_pci(devargs: &str) -> bool {
    devargs.split(',').next().is_some_and(|name| name.contains(':'))
}

/// Whether all devices are of a kind that hands packets over by copying.
fn is_private(options: &EalOptions) -> bool {
    let shares = |arg: &String| {
        ["-a", "--allow", "--vdev"].iter().any(|name| is_option(arg, name)) || arg.contains("virtio_user")
    };
    options.pci.is_empty() && !options.single_file_segments && !options.args.iter().any(shares)
}

/// Whether an argument is this option, alone or with its value attached.
fn is_option(arg: &str, name: &str) -> bool {
    match name.starts_with("--") {
        true => arg == name || arg.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')),
        false => arg.starts_with(name),
    }
}

fn start_error(options: &EalOptions, written: &str, complaints: &str) -> Error {
    let own = written.lines().take_while(|line| !line.starts_with("Usage:"));
    let reason = log::reasons(own.chain(complaints.split("; ")));
    let reason = if reason.is_empty() { errno_text(last_errno()) } else { reason };
    let args = options.args.join(" ");
    let help = if written.contains("Usage:") {
        format!("correct the arguments given to it ({args})")
    } else if reason.to_ascii_lowercase().contains("memory") {
        "free some memory or hugepages, or ask for fewer packet buffers".to_string()
    } else if !args.is_empty() {
        format!("look at the arguments given to it ({args}), or try without them")
    } else {
        "run with RUST_LOG=dpdk=debug to see its whole log".to_string()
    };
    Error::EalStart { reason, help }
}

/// What the free hugepages of all sizes hold, in MiB.
fn free_hugepage_mib() -> u64 {
    let number = |path: &Path| fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let Ok(sizes) = fs::read_dir("/sys/kernel/mm/hugepages") else {
        return 0;
    };
    sizes
        .flatten()
        .filter_map(|size| {
            let name = size.file_name();
            let kib: u64 = name.to_str()?.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
            Some(kib * number(&size.path().join("free_hugepages"))? / 1024)
        })
        .sum()
}

/// The processors the calling thread may run on.
fn affinity() -> libc::cpu_set_t {
    // SAFETY: a set of processors is plain words; all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the size given.
    unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    set
}

fn set_affinity(set: &libc::cpu_set_t) {
    // SAFETY: the kernel reads the size given.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) };
}

/// The processors of a set.
fn cpu_numbers(set: &libc::cpu_set_t) -> Vec<u32> {
    // SAFETY: the number is within the set's size.
    let is_set = |cpu: &u32| unsafe { libc::CPU_ISSET(*cpu as usize, set) };
    (0..libc::CPU_SETSIZE as u32).filter(is_set).collect()
}

/// A set of processors as the EAL reads it: `0,1,5`.
fn cpus(set: &libc::cpu_set_t) -> String {
    let numbers: Vec<String> = cpu_numbers(set).iter().map(u32::to_string).collect();
    if numbers.is_empty() { "0".to_string() } else { numbers.join(",") }
}

impl Eal {
    /// What to do when memory runs out.
    pub(super) fn memory_help(&self) -> String {
        match self.has_hugepages() {
            true => "free or add hugepages (sysctl vm.nr_hugepages), or ask for fewer packet buffers".to_string(),
            false => "start with more memory (--eal -m --eal MIB), or ask for fewer packet buffers".to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(options: &EalOptions, free: u64) -> String {
        arguments(options, free, "0,1").join(" ")
    }

    #[test]
    fn hugepages_are_used_where_they_suffice() {
        let mut options = EalOptions::default();
        let without = "pipec --lcores 0@(0,1) --no-huge --no-shconf -m 512 --iova-mode=va --no-telemetry --no-pci";
        assert_eq!(line(&options, 0), without);
        assert_eq!(line(&options, 255), without);
        assert_eq!(line(&options, 256), "pipec --lcores 0@(0,1) --in-memory --no-telemetry --no-pci");
        options.memory_mib = 64;
        options.single_file_segments = true;
        assert_eq!(
            line(&options, 64),
            "pipec --lcores 0@(0,1) --in-memory --single-file-segments --no-telemetry --no-pci"
        );
        assert!(line(&options, 0).contains("-m 128 "));
    }

    #[test]
    fn the_users_arguments_replace_ours() {
        let with = |args: &[&str], free: u64| {
            line(&EalOptions { args: args.iter().map(|arg| arg.to_string()).collect(), ..EalOptions::default() }, free)
        };
        assert_eq!(
            with(&["--no-huge", "-m", "99"], 9999),
            "pipec --lcores 0@(0,1) --no-shconf --iova-mode=va --no-telemetry --no-pci --no-huge -m 99"
        );
        assert_eq!(with(&["-l0-3", "--in-memory"], 0), "pipec --no-telemetry --no-pci -l0-3 --in-memory");
        assert_eq!(
            with(&["--file-prefix=x", "-a", "0000:01:00.0"], 0),
            "pipec --lcores 0@(0,1) --no-telemetry --file-prefix=x -a 0000:01:00.0"
        );
        assert_eq!(
            with(&["-d", "./x.so"], 256),
            "pipec --lcores 0@(0,1) --in-memory --no-telemetry --no-pci -d ./x.so"
        );
    }

    #[test]
    fn only_the_pci_devices_asked_for_are_touched() {
        let specs = crate::io::spec::parse_all(&["a=pci:01:00.0", "b=pci:02:00.1,x=1", "c=null"]).unwrap();
        let options = EalOptions::for_ports(&specs);
        assert!(line(&options, 0).ends_with("--no-telemetry -a 0000:01:00.0 -a 0000:02:00.1,x=1"));
        let specs = crate::io::spec::parse_all(&["a=devargs:01:00.0,x=1"]).unwrap();
        assert_eq!(EalOptions::for_ports(&specs).pci, ["01:00.0,x=1"]);
        let specs = crate::io::spec::parse_all(&["a=virtio-user:/s"]).unwrap();
        assert!(EalOptions::for_ports(&specs).single_file_segments);
    }

    #[test]
    fn a_refused_argument_is_named_without_the_usage() {
        let options = EalOptions { args: vec!["--bogus".to_string()], ..EalOptions::default() };
        let written = "pipec: unrecognized option '--bogus'\n\nUsage: pipec [options]\nEAL common options:\n";
        let error = start_error(&options, written, "EAL: FATAL: Invalid 'command line' arguments.");
        assert_eq!(
            error.to_string(),
            "DPDK's EAL does not start: pipec: unrecognized option '--bogus'; EAL: Invalid 'command line' \
             arguments.; correct the arguments given to it (--bogus)"
        );
    }

    #[test]
    fn the_affinity_is_read_as_a_list() {
        // SAFETY: a set of processors is plain words; all zeros is the empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        for cpu in [0, 3] {
            // SAFETY: the number is within the set's size.
            unsafe { libc::CPU_SET(cpu, &mut set) };
        }
        assert_eq!(cpus(&set), "0,3");
        assert!(!cpus(&affinity()).is_empty());
    }
}
