//! The program `pipec`: one file a subcommand. It alone reads files and prints; all else is in the libraries.
//!
//! A program that `pipec build` made is this program with a library behind it; then it is that pipeline and nothing else.

mod build;
mod bundle;
mod calibrate;
mod check;
mod completions;
mod coverage;
mod diff;
mod dump;
mod engine;
mod explain;
mod externs;
mod failure;
mod files;
mod fmt;
mod graph;
mod lsp;
mod messages;
mod probe;
mod program;
mod replay;
mod rules;
mod run;
mod test;
mod trace;

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

/// Compiles OpenFlow-like table programs into dataplanes, and runs them
#[derive(Parser)]
#[command(name = "pipec", version)]
struct Cli {
    /// When to colour diagnostics
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    color: Color,

    /// Look here for files that programs name, besides beside the program; may be repeated, PIPEC_PATH comes after
    #[arg(short = 'I', long = "include", global = true, value_name = "DIR")]
    include: Vec<std::path::PathBuf>,

    /// The Rust source of the program's `extern` actions
    #[arg(long = "extern", global = true, value_name = "FILE.rs")]
    externs: Option<std::path::PathBuf>,

    /// How to show messages about programs
    #[arg(long, global = true, value_name = "FORMAT", value_enum, default_value_t)]
    message_format: messages::Format,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Check(check::Args),
    Run(run::Args),
    Replay(replay::Args),
    Build(build::Args),
    Test(test::Args),
    Trace(trace::Args),
    Fmt(fmt::Args),
    Dump(dump::Args),
    Lsp(lsp::Args),
    Completions(completions::Args),
    Man(completions::ManArgs),
    Explain(explain::Args),
    Graph(graph::Args),
    Calibrate(calibrate::Args),
    Diff(diff::Args),
}

/// When to colour diagnostics.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Color {
    /// When standard error is a terminal and NO_COLOR is not set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    fn wanted(self) -> bool {
        use std::io::IsTerminal;
        match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
        }
    }
}

fn main() -> ExitCode {
    match bundle::own_program() {
        Ok(None) => {}
        Ok(Some(engine)) => return pipec_runtime::host::main(&engine),
        Err(error) => return pipec_runtime::host::finish(Err(error)),
    }
    let cli = Cli::parse();
    messages::choose(cli.message_format);
    let color = cli.color.wanted();
    files::search_path(cli.include);
    cli.externs.into_iter().for_each(externs::set);
    let result = match cli.command {
        Command::Check(args) => check::check(&args, color),
        Command::Run(args) => run::run(&args, color),
        Command::Replay(args) => replay::replay(&args, color),
        Command::Build(args) => build::build(&args, color),
        Command::Test(args) => test::test(&args, color),
        Command::Trace(args) => trace::trace(&args, color),
        Command::Fmt(args) => fmt::fmt(&args, color),
        Command::Lsp(args) => lsp::lsp(&args),
        Command::Dump(args) => dump::dump(&args, color),
        Command::Completions(args) => completions::completions(&args),
        Command::Man(args) => completions::man(&args),
        Command::Diff(args) => diff::diff(&args, color),
        Command::Graph(args) => graph::graph(&args, color),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Explain(args) => explain::explain(&args, color),
    };
    messages::finish(result)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_holds_together() {
        super::Cli::command().debug_assert();
    }
}
