//! An engine's process: started, watched, ended.
//!
//! In: a command. Out: what it wrote, and how much of a processor its busiest thread had. Never: a process that outlives its
//! handle.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{str, thread};

use crate::Error;

/// How often a process or a file is looked at.
const PAUSE: Duration = Duration::from_millis(10);
/// How long a start, or an end, may take unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether the user wants to stop.
#[derive(Clone, Debug, Default)]
pub struct Stop(pub Arc<AtomicBool>);

impl Stop {
    /// Whether the user wants to stop.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits, unless the user wants to stop.
    ///
    /// # Errors
    /// When the user does.
    pub fn wait(&self, time: Duration) -> Result<(), Error> {
        let end = Instant::now() + time;
        loop {
            if self.asked() {
                return Err(Error::Interrupted);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}

/// A running process, whose output goes to files. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    out: PathBuf,
    log: PathBuf,
    stop: Stop,
    patience: Duration,
}

impl Process {
    /// Starts a command; standard output and error go to `NAME.out` and `NAME.log` in `folder`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(name: &str, command: &mut Command, folder: &Path, stop: &Stop) -> Result<Process, Error> {
        let [out, log] = ["out", "log"].map(|end| folder.join(format!("{name}.{end}")));
        let create = |path: &Path| File::create(path).map_err(|error| Error::file(path, &error));
        command.stdin(Stdio::piped()).stdout(create(&out)?).stderr(create(&log)?);
        let child = command.spawn().map_err(|error| {
            Error::Failed(format!("{}: cannot be started: {error}", command.get_program().to_string_lossy()))
        })?;
        Ok(Process { name: name.to_string(), child, out, log, stop: stop.clone(), patience: PATIENCE })
    }

    /// The process, whose start or end may take so long.
    #[must_use]
    pub fn patiently(mut self, patience: Duration) -> Process {
        self.patience = patience;
        self
    }

    /// Its standard input.
    pub fn stdin(&mut self) -> Option<&mut ChildStdin> {
        self.child.stdin.as_mut()
    }

    /// What it has written to standard output.
    pub fn output(&self) -> String {
        fs::read(&self.out).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    fn log(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Waits until `found` finds something in what it wrote to standard output and to standard error.
    ///
    /// # Errors
    /// When it ends before, or takes too long.
    pub fn wait_for<T>(&mut self, what: &str, found: impl Fn(&str, &str) -> Option<T>) -> Result<T, Error> {
        let start = Instant::now();
        loop {
            let status = self.child.try_wait().ok().flatten(); // before reading: what it wrote last is read too
            if let Some(found) = found(&self.output(), &self.log()) {
                return Ok(found);
            }
            if let Some(status) = status {
                return Err(self.failure(&format!("ended ({status}) before {what}")));
            }
            if start.elapsed() > self.patience {
                return Err(self.failure(&format!("waited {} s in vain for {what}", self.patience.as_secs())));
            }
            self.stop.wait(PAUSE)?;
        }
    }

    /// Waits until so many of its ports have their frames.
    ///
    /// # Errors
    /// When that does not happen.
    pub fn wait_for_frames(&mut self, ports: u32) -> Result<(), Error> {
        let told = |log: &str| log.matches(" frames over ").count() >= ports as usize;
        self.wait_for("its ports had their frames", |_, log| told(log).then_some(()))
    }

    /// Waits for its end, and takes what it wrote to standard output.
    ///
    /// # Errors
    /// When it fails, or takes too long.
    pub fn finish(mut self) -> Result<String, Error> {
        let start = Instant::now();
        loop {
            match self.child.try_wait().ok().flatten() {
                Some(status) if status.success() => return Ok(self.output()),
                Some(status) => return Err(self.failure(&format!("failed ({status})"))),
                None if start.elapsed() > self.patience => return Err(self.failure("does not end")),
                None => self.stop.wait(PAUSE)?,
            }
        }
    }

    fn failure(&self, what: &str) -> Error {
        let log = self.log();
        let lines: Vec<&str> = log.lines().filter(|line| !line.starts_with("EAL: Detected")).collect();
        let last = lines[lines.len().saturating_sub(4)..].join("\n    ");
        Error::Failed(format!("{} {what}; its last words, of {}:\n    {last}", self.name, self.log.display()))
    }

    /// How long its threads have had a processor, until now.
    pub fn busy(&self) -> Busy {
        busy(self.child.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended by itself
        let _ = self.child.wait();
    }
}

/// How long the threads of a process have had a processor, until now.
pub fn busy(process: u32) -> Busy {
    let mut threads = BTreeMap::new();
    let tasks = fs::read_dir(format!("/proc/{process}/task"));
    for task in tasks.into_iter().flatten().flatten() {
        let spent = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        if let Some(ns) = spent.split(' ').next().and_then(|ns| ns.parse().ok()) {
            threads.insert(task.file_name().to_string_lossy().into_owned(), ns);
        }
    }
    Busy { at: Instant::now(), threads }
}

/// When each thread of a process had had how much of a processor.
#[derive(Clone, Debug)]
pub struct Busy {
    at: Instant,
    /// Nanoseconds by thread; empty where the kernel does not say.
    threads: BTreeMap<String, u64>,
}

/// The share of the time since `before` that a process's busiest thread had a processor, by the last of these looks at which
/// the thread was there; 1 where the kernel does not say.
pub fn share(before: &Busy, looks: &[Busy]) -> f64 {
    let most = |look: &Busy| {
        let spent =
            |(thread, now): (&String, &u64)| now.saturating_sub(before.threads.get(thread).copied().unwrap_or(0));
        look.threads.iter().map(spent).max().unwrap_or(0)
    };
    let last = looks.iter().max_by_key(|look| most(look)).filter(|look| most(look) > 0); // a thread's time only grows
    last.map_or(1.0, |look| {
        let wall = look.at.duration_since(before.at).as_nanos().max(1);
        (most(look) as f64 / wall as f64).min(1.0)
    })
}

/// Runs a command to its end, and takes its standard output.
///
/// # Errors
/// When it cannot be started or fails, with what it said.
pub fn run(command: &mut Command) -> Result<String, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let Output { status, stdout, stderr } = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::Failed(format!("{program}: cannot be started: {error}")))?;
    match status.success() {
        true => Ok(String::from_utf8_lossy(&stdout).into_owned()),
        false => Err(failed(&program, status, &stderr)),
    }
}

fn failed(program: &str, status: ExitStatus, stderr: &[u8]) -> Error {
    let said = str::from_utf8(stderr).unwrap_or("").trim();
    Error::Failed(format!("{program} failed ({status}): {said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(at: Instant, threads: &[(&str, u64)]) -> Busy {
        Busy { at, threads: threads.iter().map(|(name, ns)| (name.to_string(), *ns)).collect() }
    }

    #[test]
    fn a_share_is_the_busiest_threads() {
        let start = Instant::now();
        let end = start + Duration::from_secs(1);
        let before = busy(start, &[("1", 900_000_000), ("2", 100)]);
        let middle = busy(start + Duration::from_millis(500), &[("1", 900_000_000), ("2", 150_000_100)]);
        let after = busy(end, &[("1", 900_000_000), ("2", 250_000_100), ("3", 10)]);
        let gone = busy(end, &[("1", 900_100_000)]);
        assert!((share(&before, &[middle.clone(), after]) - 0.25).abs() < 1e-9);
        assert!((share(&before, &[middle, gone]) - 0.3).abs() < 1e-9, "as long as it was there");
        assert_eq!(share(&before, &[busy(end, &[])]), 1.0, "nothing known");
    }

    #[test]
    fn what_fails_is_told_with_its_words() {
        let error = run(Command::new("sh").args(["-c", "echo no luck >&2; exit 3"])).unwrap_err().to_string();
        assert!(error.contains("no luck") && error.contains('3'), "{error}");
        assert!(run(&mut Command::new("/no/such/program")).is_err());
        assert_eq!(run(Command::new("sh").args(["-c", "echo yes"])).unwrap(), "yes\n");
    }

    #[test]
    fn a_process_is_watched_to_its_end() {
        let folder = std::env::temp_dir().join(format!("pipec-bench-test-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let start = |name: &str, script: &str| {
            let mut command = Command::new("sh");
            Process::start(name, command.args(["-c", script]), &folder, &Stop::default()).unwrap()
        };
        let mut good = start("good", "echo here; read line; echo $line");
        good.wait_for("a word", |out, _| out.contains("here").then_some(())).unwrap();
        std::io::Write::write_all(good.stdin().unwrap(), b"there\n").unwrap();
        assert_eq!(good.finish().unwrap(), "here\nthere\n");
        let mut bad = start("bad", "echo broken >&2; exit 1");
        let error = bad.wait_for("a word", |out, _| out.contains("here").then_some(())).unwrap_err().to_string();
        assert!(error.contains("bad ended") && error.contains("broken"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
