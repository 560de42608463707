//! `pipec dump`: a program as one stage of the compiler leaves it to the next.
//!
//! In: a program. Out: text for people who work on the compiler, or want to know what it makes of a table; its form is not
//! stable.

use std::path::PathBuf;

use clap::ValueEnum;
use pipec_compiler::ast::Item;
use pipec_compiler::backend::jit;
use pipec_compiler::plan::Plan;
use pipec_compiler::show::show;
use pipec_compiler::source::Sources;
use pipec_runtime::host::print;

use crate::build::library;
use crate::calibrate;
use crate::failure::Failure;
use crate::messages;
use crate::program;

/// Show a program as a stage of the compiler leaves it
#[derive(clap::Args)]
pub struct Args {
    /// The program (.pipe, or .flows with rules of ovs-ofctl); - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The stage
    #[arg(long, value_enum)]
    stage: Stage,

    /// Of this table only; from the plan on, of tables that have code of their own
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
}

/// A stage of the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stage {
    /// The program as it is written
    Ast,
    /// The program after names are resolved
    Hir,
    /// Code for one packet, the same for both back ends
    Plan,
    /// Generated Rust
    Rust,
    /// What Cranelift is given
    Clif,
    /// Machine code for this machine, as assembly
    Asm,
}

/// Prints the stage.
pub fn dump(args: &Args, color: bool) -> Result<(), Failure> {
    if args.stage == Stage::Ast {
        return ast(args, color);
    }
    let loaded = program::load(&args.file, &[], color)?;
    let text = match (args.stage, &args.table) {
        (Stage::Hir, None) => show(&*loaded.program),
        (Stage::Hir, Some(name)) => {
            let table = loaded.program.tables.iter().find(|table| table.name == *name);
            show(table.ok_or_else(|| no_table(name, loaded.program.tables.iter().map(|table| table.name.as_str())))?)
        }
        (Stage::Plan, None) => show(&calibrate::plan(&loaded.program)?.0),
        (Stage::Plan, Some(name)) => {
            let (plan, _) = calibrate::plan(&loaded.program)?;
            show(&plan.functions[function(&plan, name)?])
        }
        (Stage::Rust, None) => library::source(&loaded.program)?,
        (Stage::Rust, Some(_)) => return Err(Failure::usage("--table goes with every stage but rust")),
        (Stage::Clif | Stage::Asm | Stage::Ast, name) => {
            machine_code(args.stage, &calibrate::plan(&loaded.program)?.0, name)?
        }
    };
    Ok(print(&(text.trim_end().to_string() + "\n"))?)
}

fn ast(args: &Args, color: bool) -> Result<(), Failure> {
    let text = program::read(&args.file)?;
    let name = program::name(&args.file, &text)?;
    if name.ends_with(".flows") {
        let message = "rules of ovs-ofctl have no tree; their first stage is hir";
        return Err(Failure::usage(format!("{}: {message}", args.file.display())));
    }
    let mut diagnostics = vec![];
    let pipeline = pipec_compiler::parse::pipe(&text, 0, &mut diagnostics);
    let mut sources = Sources::default();
    sources.add(name, text);
    messages::tell(&diagnostics, &sources, color);
    let Some(pipeline) = pipeline.filter(|_| !pipec_compiler::diag::has_errors(&diagnostics)) else {
        return Err(Failure::Told(2));
    };
    let shown = match &args.table {
        None => show(&pipeline),
        Some(name) => {
            let mut tables = pipeline.items.iter().filter_map(|item| match item {
                Item::Table(table) => Some(table),
                _ => None,
            });
            let names = tables.clone().map(|table| table.name.node.as_str());
            show(tables.find(|table| table.name.node == *name).ok_or_else(|| no_table(name, names))?)
        }
    };
    Ok(print(&shown)?)
}

fn machine_code(stage: Stage, plan: &Plan, table: &Option<String>) -> Result<String, Failure> {
    let wanted = table.as_ref().map(|name| function(plan, name)).transpose()?;
    let mut text = String::new();
    let mut next = 0;
    let compiled = jit::compile_showing(plan, &mut |clif, asm| {
        // The entry comes first, then the functions.
        let name = match next {
            0 => "the entry: all that is in no table below".to_string(),
            k => format!("table {}", plan.functions[k - 1].name),
        };
        if wanted.is_none_or(|wanted| wanted + 1 == next) {
            text += &format!("; {name}\n{}\n\n", if stage == Stage::Clif { clif } else { asm }.trim_end());
        }
        next += 1;
    });
    compiled.map_err(|error| Failure::environment(error.to_string()))?;
    Ok(text)
}

/// The function of a table.
fn function(plan: &Plan, name: &str) -> Result<usize, Failure> {
    let place = plan.functions.iter().position(|function| function.name == name);
    place.ok_or_else(|| no_table(name, plan.functions.iter().map(|function| function.name.as_str())))
}

fn no_table<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Failure {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    let known = match names.as_slice() {
        [] => "no table has code of its own: they are part of the entry, which is shown without --table".to_string(),
        names => format!("there are {}", names.join(", ")),
    };
    Failure::usage(format!("--table {name}: there is no such table at this stage; {known}"))
}
