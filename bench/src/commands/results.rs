//! `pipec-bench results`: everything in one run, written to a folder.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use pipec_bench::artifacts::Artifacts;
use pipec_bench::engine::{Kind, Setup};
use pipec_bench::instructions::{available, count};
use pipec_bench::machine::{self, Machine};
use pipec_bench::process::{self, Stop};
use pipec_bench::report::Report;
use pipec_bench::results::{Counted, Part, Parts, Results, Run};
use pipec_bench::workload::{Files, Workload};
use pipec_bench::{Error, latency, live, lookups, rounds};

use super::OnCpu;
use super::schedule::{Job, Schedule};

/// Measure everything in one run, and write figures, a page and plots to a folder, and to the book
///
/// A run that was interrupted goes on where it was when it is started again, unless the commit or the work tree has changed.
#[derive(clap::Args)]
pub struct Args {
    /// Where to write them; the book is written only with what lies in the usual place
    #[arg(long, value_name = "FOLDER", default_value = default_folder())]
    out: PathBuf,

    /// Only a few workloads, for a moment each: to see that everything works
    #[arg(long)]
    quick: bool,

    /// Only parts whose names contain this, such as `latency` or `acl-1000`; the results have nothing else
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,

    /// Measure all anew, although an interrupted run has measured some of it
    #[arg(long)]
    anew: bool,

    /// What to measure with [default: those that say something about a workload]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    engines: Vec<Kind>,

    /// Measure nothing; write page and plots anew from the figures that are there
    #[arg(long, conflicts_with_all = ["quick", "engines", "anew", "only"])]
    again: bool,

    #[command(flatten)]
    on: OnCpu,
}

fn default_folder() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/results")
}

/// Measures and writes.
pub fn run(args: &Args, stop: Stop) -> Result<ExitCode, Error> {
    if args.again {
        write(&Results::read(&args.out)?, &args.out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut schedule = Schedule::new(args.quick, &args.engines)?;
    if let Some(text) = &args.only {
        schedule.jobs.retain(|job| job.to_string().contains(text));
    }
    eprintln!("building pipec and the traffic source");
    let artifacts = Artifacts::build()?;
    let machine = Machine::prepare(args.on.cpu, &stop)?;
    let file = artifacts.folder.join("results-so-far.json");
    let of = format!("{:016x}", of(args));
    let kept = Parts::read(&file, &of).filter(|_| !args.anew);
    let parts = kept.unwrap_or_else(|| Parts { of, load: machine::load(), ..Parts::default() });
    let setup = Setup { machine, artifacts, warm: schedule.time, measured: schedule.time, stop };
    let mut runner = Runner { schedule: &schedule, setup, file, parts, failed: Vec::new() };
    if let Err(error) = runner.all() {
        if matches!(error, Error::Interrupted) && !runner.parts.parts.is_empty() {
            eprintln!("what was measured is kept; the same command goes on from there");
        }
        return Err(error);
    }
    let results = runner.results(&args.out);
    write(&results, &args.out)?;
    let _ = std::fs::remove_file(&runner.file); // all of it is in the results now
    eprintln!("written to {}", args.out.display());
    eprintln!("{}", results.spread());
    let failed = &results.forward.failed;
    failed.iter().for_each(|line| eprintln!("failed: {line}"));
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes the folder, and the book's page where the folder is the usual one.
fn write(results: &Results, folder: &Path) -> Result<(), Error> {
    results.write(folder)?;
    if folder == Path::new(default_folder()) {
        results.write_book(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../book/src"))?;
    }
    Ok(())
}

/// Does jobs one after the other, and keeps what they measured.
struct Runner<'a> {
    schedule: &'a Schedule,
    setup: Setup,
    file: PathBuf,
    parts: Parts,
    failed: Vec<String>,
}

impl Runner<'_> {
    /// All jobs that are not done yet.
    fn all(&mut self) -> Result<(), Error> {
        let done = |job: &Job, parts: &Parts| parts.parts.contains_key(&job.to_string());
        let jobs = &self.schedule.jobs;
        let mut left: Duration =
            jobs.iter().filter(|job| !done(job, &self.parts)).map(|job| self.schedule.estimate(job)).sum();
        if !self.parts.parts.is_empty() {
            eprintln!(
                "{} of {} parts were measured before; --anew measures them again",
                self.parts.parts.len(),
                jobs.len()
            );
        }
        eprintln!("this takes about {}", minutes(left));
        // What was estimated and what it took: the machine may be slower or faster than the one that estimates are from.
        let (mut estimated, start) = (Duration::ZERO, Instant::now());
        for (i, job) in jobs.iter().enumerate() {
            if done(job, &self.parts) {
                continue;
            }
            self.setup.stop.wait(Duration::ZERO)?;
            match self.part(job) {
                Ok(part) => {
                    self.parts.parts.insert(job.to_string(), part);
                    self.parts.write(&self.file)?;
                }
                Err(_) if self.setup.stop.asked() => return Err(Error::Interrupted),
                Err(error) => self.failed.push(format!("{job}: {error}")),
            }
            let estimate = self.schedule.estimate(job);
            (estimated, left) = (estimated + estimate, left.saturating_sub(estimate));
            let pace = start.elapsed().as_secs_f64() / estimated.as_secs_f64();
            eprintln!("[{} of {}] {job}: done; about {} left", i + 1, jobs.len(), minutes(left.mul_f64(pace)));
        }
        Ok(())
    }

    /// Does one job.
    fn part(&mut self, job: &Job) -> Result<Part, Error> {
        let tell = &mut |line: &str| eprintln!("  {line}");
        let (rounds, time) = (self.schedule.rounds, self.schedule.time);
        Ok(match job {
            Job::Instructions(workload) => Part::Instructions(self.instructions(*workload)?),
            Job::Live(program) => Part::Live(live::measure(program, 5)?),
            Job::Forward(workload, kinds) => {
                self.setup.warm = self.schedule.warm(*workload);
                let outcome = rounds::measure(&self.setup, &[*workload], None, kinds, rounds, tell)?;
                if let Some(failed) = outcome.failed.first()
                    && outcome.measured.is_empty()
                {
                    return Err(Error::Failed(failed.clone()));
                }
                Part::Forward(outcome)
            }
            Job::Latency(workload, kinds) => {
                let (rows, left_out) = latency::measure(&self.setup, &[*workload], kinds, rounds, tell)?;
                Part::Latency(rows, left_out)
            }
            Job::Updates(kind) => {
                let Setup { artifacts, machine, stop, .. } = &self.setup;
                Part::Updates(super::updates::elsewhere(artifacts, *kind, None, rounds, time, Some(machine.cpu), stop)?)
            }
            Job::Lookups(set) => Part::Lookups(lookups::measure(
                &self.setup.artifacts,
                set,
                if rounds > 1 { 15 } else { 3 },
                &self.setup.stop,
            )?),
            Job::Connections => Part::Connections(lookups::new_connections(&self.setup.artifacts, &self.setup.stop)?),
        })
    }

    /// Ours, compiled in memory; nothing where there is nothing to count with.
    fn instructions(&self, workload: Workload) -> Result<Vec<Counted>, Error> {
        if available().is_err() {
            return Ok(Vec::new());
        }
        let files = Files::write(workload, &self.setup.artifacts.folder)?;
        let count = count(&self.setup.artifacts, &files, &Kind::Jit, Duration::from_secs(1), &self.setup.stop)?;
        let engine = Kind::Jit.engine().name();
        Ok(vec![Counted { workload: workload.to_string(), engine, ours: count.ours, driver: count.driver }])
    }

    /// All parts together, in the order of the jobs.
    fn results(&mut self, folder: &Path) -> Results {
        let before = Results::read(folder).ok();
        let mut run = Run { commit: commit(), ..Run::default() };
        for job in &self.schedule.jobs {
            if let Some(part) = self.parts.parts.remove(&job.to_string()) {
                run.add(part);
            }
        }
        if let Err(error) = available() {
            run.outcome.skipped.push(format!("instructions: {error}"));
        }
        run.outcome.failed.append(&mut self.failed);
        // Where things lie on this machine is nobody's concern.
        if let Some(target) = self.setup.artifacts.folder.parent().map(|target| target.display().to_string()) {
            let lines = run.outcome.failed.iter_mut().chain(&mut run.outcome.skipped);
            lines.for_each(|line| *line = line.replace(&target, "target"));
        }
        let Machine { tsc_hz, hugepages, .. } = self.setup.machine;
        let load = [self.parts.load, machine::load()];
        let forward = Report::new(std::mem::take(&mut run.outcome), machine::processor(), tsc_hz, hugepages, load);
        run.results(forward).beside(before.as_ref())
    }
}

/// A time for people.
fn minutes(time: Duration) -> String {
    let minutes = time.as_secs_f64() / 60.0;
    if minutes < 1.5 { format!("{:.0} s", time.as_secs_f64()) } else { format!("{minutes:.0} minutes") }
}

fn git(args: &[&str]) -> Option<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    process::run(Command::new("git").args(args).current_dir(folder)).map(|text| text.trim().to_string()).ok()
}

/// What a run measures: the commit, how the work tree differs, the options.
fn of(args: &Args) -> u64 {
    let mut hasher = DefaultHasher::new();
    let source = [".", ":!bench/results", ":!book"];
    git(&["rev-parse", "HEAD"]).hash(&mut hasher);
    git(&[&["-C", "..", "diff", "HEAD", "--"][..], &source].concat()).hash(&mut hasher);
    (args.quick, &args.only, format!("{:?}", args.engines), args.on.cpu).hash(&mut hasher);
    hasher.finish()
}

/// The commit of this workspace, with `+` where the work tree differs from it.
fn commit() -> String {
    let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) else { return "unknown".to_string() };
    let others = [":!bench/results", ":!book/src/benchmarks.md", ":!book/src/benchmarks"];
    let changed =
        git(&[&["-C", "..", "status", "--porcelain", "--untracked-files=no", "--", "."][..], &others].concat());
    if changed.is_some_and(|text| !text.is_empty()) { commit + "+" } else { commit }
}
