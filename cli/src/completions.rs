//! `pipec completions` and `pipec man`: what shells and `man` want to know about the command line, from the command line
//! itself.

use std::path::PathBuf;

use clap::CommandFactory;
use clap_complete::Shell;
use pipec_runtime::error::system;
use pipec_runtime::host::print;

use crate::Cli;
use crate::failure::Failure;

/// Print completions for a shell, such as `pipec completions bash > ~/.local/share/bash-completion/completions/pipec`
#[derive(clap::Args)]
pub struct Args {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

/// Print the manual page, or write the pages of all subcommands to a folder
#[derive(clap::Args)]
pub struct ManArgs {
    /// Where to write them, such as ~/.local/share/man/man1; it is made if it is not there
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Prints completions.
pub fn completions(args: &Args) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "pipec", &mut script);
    Ok(print(&String::from_utf8_lossy(&script))?)
}

/// Prints the manual page, or writes all pages.
pub fn man(args: &ManArgs) -> Result<(), Failure> {
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        let made = clap_mangen::Man::new(Cli::command()).render(&mut page);
        made.map_err(|error| Failure::environment(format!("cannot make the manual page: {}", system(&error))))?;
        return Ok(print(&String::from_utf8_lossy(&page))?);
    };
    let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
    written.map_err(|error| {
        let help = "choose a folder that you may write";
        Failure::environment(format!("{}: cannot write manual pages: {}; {help}", folder.display(), system(&error)))
    })
}
