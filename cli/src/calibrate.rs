//! `pipec calibrate`: measures what the steps of look-ups cost on this machine, and keeps it for the choice of look-ups.
//!
//! In: the machine, or the file that was kept. Out: costs. Never: a guess from a file that is broken; that is told.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use pipec_abi::table::Costs;
use pipec_abi::table::calibrate::{Caches, calibrate};
use pipec_compiler::hir::Program;
use pipec_compiler::plan::{Plan, Report, plan_for};
use pipec_runtime::error::system;
use pipec_runtime::host;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Measure what look-ups cost on this machine, and keep it: from then on, programs are compiled for it
///
/// Takes about a second. Until it is run, and after --reset, costs of one server processor are taken, so that programs come
/// out the same everywhere.
#[derive(clap::Args)]
pub struct Args {
    /// Forget what was measured
    #[arg(long, conflicts_with = "show")]
    reset: bool,

    /// Print what is kept, and measure nothing
    #[arg(long)]
    show: bool,
}

/// Measures and keeps, or forgets, or shows.
pub fn run(args: &Args) -> Result<(), Failure> {
    let path = path()?;
    if args.reset {
        return reset(&path);
    }
    if args.show {
        let from = if path.exists() { format!("from {}", path.display()) } else { "defaults".to_string() };
        return Ok(host::print(&(table(&load()?) + &format!("\n{from}\n")))?);
    }
    let clock = Clock::start();
    let costs = calibrate(caches(Path::new("/sys/devices/system/cpu/cpu0/cache")), &|| clock.cycles());
    keep(&path, &costs)?;
    host::print(&format!(
        "{}\nkept in {}; `pipec calibrate --reset` goes back to the defaults\n",
        table(&costs),
        path.display()
    ))?;
    Ok(())
}

/// The costs that look-ups are chosen by: what was measured here, or else the defaults.
///
/// # Errors
/// When what was kept cannot be read or understood.
pub fn load() -> Result<Costs, Failure> {
    let path = path()?;
    match fs::read_to_string(&path) {
        Ok(text) => parse(&text).map_err(|what| {
            Failure::environment(format!(
                "{}: {what}; measure again by `pipec calibrate`, or go back to the defaults by `pipec calibrate --reset`",
                path.display()
            ))
        }),
        // What others keep where they let nobody look is not this user's.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => Ok(Costs::default()),
        Err(error) => Err(Failure::environment(format!(
            "{}: cannot read what `pipec calibrate` measured: {}; make the file readable for you, or remove it",
            path.display(),
            system(&error)
        ))),
    }
}

/// Plans a program for this machine.
///
/// # Errors
/// As [`load`].
pub fn plan(program: &Program) -> Result<(Plan, Report), Failure> {
    Ok(plan_for(program, &load()?))
}

/// Where costs are kept.
fn path() -> Result<PathBuf, Failure> {
    let base = etcetera::choose_base_strategy().map_err(|_| {
        Failure::environment("there is no folder for what `pipec calibrate` measures; set HOME or XDG_CONFIG_HOME")
    })?;
    Ok(base.config_dir().join("pipec").join("costs.toml"))
}

fn reset(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Ok(()) => Ok(host::print(&format!("{} is removed; the defaults hold\n", path.display()))?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok(host::print("nothing was measured; the defaults hold\n")?)
        }
        Err(error) => Err(Failure::environment(format!("{}: cannot remove it: {}", path.display(), system(&error)))),
    }
}

/// Writes the file whole or not at all.
fn keep(path: &Path, costs: &Costs) -> Result<(), Failure> {
    let new = path.with_extension("toml.new");
    let folder = path.parent().unwrap_or(path);
    let text = text(costs);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&new, text)).and_then(|()| fs::rename(&new, path));
    written.map_err(|error| {
        Failure::environment(format!(
            "{}: cannot keep what was measured: {}; make the folder writable for you, or name another by XDG_CONFIG_HOME",
            path.display(),
            system(&error)
        ))
    })
}

/// The file: cycles of the time-stamp counter, and bytes.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    cycles: Cycles,
    bytes: Bytes,
}

/// The costs in cycles, under their own names.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cycles {
    load_l1: f32,
    load_l2: f32,
    load_l3: f32,
    load_memory: f32,
    overlapped_l2: f32,
    overlapped_l3: f32,
    overlapped_memory: f32,
    mispredict: f32,
    hash_word: f32,
    compare_word: f32,
    vector_word: f32,
    call: f32,
}

/// The sizes of caches.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bytes {
    l1: usize,
    l2: usize,
    l3: usize,
}

impl From<Kept> for Costs {
    fn from(Kept { cycles, bytes }: Kept) -> Costs {
        Costs {
            load_l1: cycles.load_l1,
            load_l2: cycles.load_l2,
            load_l3: cycles.load_l3,
            load_memory: cycles.load_memory,
            overlapped_l2: cycles.overlapped_l2,
            overlapped_l3: cycles.overlapped_l3,
            overlapped_memory: cycles.overlapped_memory,
            mispredict: cycles.mispredict,
            hash_word: cycles.hash_word,
            compare_word: cycles.compare_word,
            vector_word: cycles.vector_word,
            call: cycles.call,
            l1_bytes: bytes.l1,
            l2_bytes: bytes.l2,
            l3_bytes: bytes.l3,
        }
    }
}

/// What is measured, for people: name and what it is, in the order of the file.
fn rows(costs: &Costs) -> [(&'static str, f32); 12] {
    [
        ("load_l1", costs.load_l1),
        ("load_l2", costs.load_l2),
        ("load_l3", costs.load_l3),
        ("load_memory", costs.load_memory),
        ("overlapped_l2", costs.overlapped_l2),
        ("overlapped_l3", costs.overlapped_l3),
        ("overlapped_memory", costs.overlapped_memory),
        ("mispredict", costs.mispredict),
        ("hash_word", costs.hash_word),
        ("compare_word", costs.compare_word),
        ("vector_word", costs.vector_word),
        ("call", costs.call),
    ]
}

const MEANINGS: [&str; 12] = [
    "a load from the first cache that the next step waits for",
    "the same from the second cache",
    "the same from the last cache",
    "the same from memory",
    "a load from the second cache, of several at once",
    "the same from the last cache",
    "the same from memory",
    "a jump that was not foreseen",
    "hashing a word of a key",
    "masking and comparing a word of a key",
    "joining a word of two bit vectors",
    "a call through a pointer",
];

fn caches_of(costs: &Costs) -> [(&'static str, usize); 3] {
    [("l1", costs.l1_bytes), ("l2", costs.l2_bytes), ("l3", costs.l3_bytes)]
}

fn text(costs: &Costs) -> String {
    let mut text =
        "# What steps of look-ups cost on this machine: measured by `pipec calibrate`.\n\n[cycles]\n".to_string();
    for ((name, cost), meaning) in rows(costs).into_iter().zip(MEANINGS) {
        text += &format!("{name} = {cost:.2} # {meaning}\n");
    }
    text += "\n[bytes] # of the caches\n";
    for (name, bytes) in caches_of(costs) {
        text += &format!("{name} = {bytes}\n");
    }
    text
}

fn table(costs: &Costs) -> String {
    let mut table = String::new();
    let defaults = Costs::default();
    for (((name, cost), (_, default)), meaning) in rows(costs).into_iter().zip(rows(&defaults)).zip(MEANINGS) {
        table += &format!("{name:<18} {cost:>7.1} cycles (default {default:>5.1})  {meaning}\n");
    }
    for ((name, bytes), (_, default)) in caches_of(costs).into_iter().zip(caches_of(&defaults)) {
        table += &format!("{name:<18} {:>7} KiB    (default {:>5})  of cache\n", bytes >> 10, default >> 10);
    }
    table
}

/// The costs in a file's text, which must be numbers that can be.
fn parse(text: &str) -> Result<Costs, String> {
    let kept: Kept = toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let place = line.map_or(String::new(), |line| format!("line {line}: "));
        format!("{place}{}", error.message())
    })?;
    let costs = Costs::from(kept);
    for (name, cost) in rows(&costs) {
        if !(cost.is_finite() && (0.0..=100_000.0).contains(&cost)) {
            return Err(format!("`{name}` is {cost}, expected a number of cycles from 0 to 100000"));
        }
    }
    for (name, bytes) in caches_of(&costs) {
        if !(1 << 10..=1 << 40).contains(&bytes) {
            return Err(format!("`{name}` is {bytes}, expected the bytes of a cache, at least 1024"));
        }
    }
    Ok(costs)
}

/// The sizes of caches as the system tells them; those of the defaults where it does not.
fn caches(folder: &Path) -> Caches {
    let mut caches = Caches::default();
    let read = |index: &Path, name: &str| fs::read_to_string(index.join(name)).unwrap_or_default().trim().to_string();
    let Ok(entries) = fs::read_dir(folder) else { return caches };
    let mut last = 0;
    for index in entries.flatten().map(|entry| entry.path()) {
        let (level, kind, size) = (read(&index, "level"), read(&index, "type"), read(&index, "size"));
        let Some(bytes) = size.strip_suffix('K').and_then(|kib| kib.parse::<usize>().ok()).map(|kib| kib << 10) else {
            continue;
        };
        match (level.as_str(), kind.as_str()) {
            ("1", "Data" | "Unified") => caches.l1 = bytes,
            ("2", "Data" | "Unified") => caches.l2 = bytes,
            (_, "Data" | "Unified") => last = last.max(bytes),
            _ => {}
        }
    }
    caches.l3 = if last > 0 { last } else { caches.l3.max(caches.l2) };
    caches
}

/// Cycles: of the time-stamp counter, or of one of 2 GHz where DPDK, which reads it, is left out.
struct Clock(#[cfg(not(feature = "dpdk"))] std::time::Instant);

impl Clock {
    #[cfg(feature = "dpdk")]
    fn start() -> Clock {
        Clock()
    }

    #[cfg(feature = "dpdk")]
    fn cycles(&self) -> u64 {
        pipec_runtime::io::dpdk::clock::cycles()
    }

    #[cfg(not(feature = "dpdk"))]
    fn start() -> Clock {
        Clock(std::time::Instant::now())
    }

    #[cfg(not(feature = "dpdk"))]
    fn cycles(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64 * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_back() {
        let costs = Costs { load_memory: 312.5, l3_bytes: 33_554_432, ..Costs::default() };
        assert_eq!(parse(&text(&costs)), Ok(costs));
        assert_eq!(rows(&Costs::default()).len(), MEANINGS.len());
    }

    #[test]
    fn what_is_broken_is_told_with_its_place() {
        let good = text(&Costs::default());
        let error = |text: &str| parse(text).unwrap_err();
        assert!(error("").contains("cycles"), "{}", error(""));
        assert!(error(&good.replace("load_l2 = ", "load_l2 = x")).starts_with("line 5: "), "{}", error("[cycles"));
        assert!(error(&good.replace("call = ", "cal = ")).contains("cal"));
        assert!(error(&good.replace("call = 3", "call = -3")).contains("`call` is -3"));
        assert!(error(&good.replace("l1 = 32768", "l1 = 3")).contains("`l1` is 3"));
    }

    #[test]
    fn caches_are_those_of_the_system() {
        let folder = std::env::temp_dir().join(format!("pipec-caches-{}", std::process::id()));
        let put = |index: &str, level: &str, kind: &str, size: &str| {
            let index = folder.join(index);
            fs::create_dir_all(&index).unwrap();
            for (name, text) in [("level", level), ("type", kind), ("size", size)] {
                fs::write(index.join(name), format!("{text}\n")).unwrap();
            }
        };
        put("index0", "1", "Data", "48K");
        put("index1", "1", "Instruction", "64K");
        put("index2", "2", "Unified", "1024K");
        put("index3", "3", "Unified", "32768K");
        assert_eq!(caches(&folder), Caches { l1: 48 << 10, l2: 1 << 20, l3: 32 << 20 });
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(caches(&folder), Caches::default());
    }
}
