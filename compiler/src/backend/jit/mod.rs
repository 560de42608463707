//! The JIT: a plan as machine code, by Cranelift.
//!
//! In: a plan. Out: a [`Jit`], which owns its code and frees it on drop. The code loops over the burst itself, resolves no
//! symbol (everything it calls stands in the table of the context), and reads packets without a test: `plan` has asked for
//! loads only where the bytes are.

mod body;
mod code;
mod entry;
mod expr;
mod lookups;
mod parse;
mod shapes;

pub use code::{Error, Jit};

use cranelift_codegen::ir::UserFuncName;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_module::{Linkage, Module};
use pipec_abi::CtPoint;
use pipec_abi::reshape::Stack;

use crate::plan::Plan;

/// Compiles a plan for this machine.
///
/// # Errors
/// When Cranelift does not know this machine, or refuses what we made (which would be our fault).
pub fn compile(plan: &Plan) -> Result<Jit, Error> {
    build(plan, None)
}

/// [`compile`], with every function shown to `show`, the entry first: its CLIF, and its machine code as assembly.
///
/// # Errors
/// As [`compile`].
pub fn compile_showing(plan: &Plan, show: &mut Show<'_>) -> Result<Jit, Error> {
    build(plan, Some(show))
}

/// What is shown a function: CLIF and assembly.
pub type Show<'s> = dyn FnMut(&str, &str) + 's;

fn build(plan: &Plan, mut show: Option<&mut Show<'_>>) -> Result<Jit, Error> {
    let mut module = code::new_module()?;
    let ct_points: Box<[CtPoint]> = plan.ct_points.clone().into();
    let stacks: Box<[Stack]> = plan.stacks.clone().into();
    let rows: Box<[Box<[u64]>]> = plan.rows.iter().map(|rows| rows.words.clone().into()).collect();
    let entry_signature = entry::signature(&module);
    let entry_id = module.declare_function("pipec_run", Linkage::Export, &entry_signature)?;
    let table_signature = body::table_signature(&module);
    let tables = (0..plan.functions.len())
        .map(|k| Ok(module.declare_function(&format!("pipec_table_{k}"), Linkage::Local, &table_signature)?))
        .collect::<Result<Vec<_>, Error>>()?;

    let mut context = module.make_context();
    let mut builder_context = FunctionBuilderContext::new();
    let ids = std::iter::once(entry_id).chain(tables.iter().copied());
    for (k, id) in ids.enumerate() {
        context.func.signature = if k == 0 { entry_signature.clone() } else { table_signature.clone() };
        context.func.name = UserFuncName::user(0, id.as_u32());
        let callees: Vec<_> = tables.iter().map(|t| module.declare_func_in_func(*t, &mut context.func)).collect();
        let mut builder = FunctionBuilder::new(&mut context.func, &mut builder_context);
        let shared = body::Shared {
            plan,
            tables: &callees,
            ct_points: ct_points.as_ptr() as i64,
            stacks: stacks.as_ptr() as i64,
            rows: &rows,
        };
        match k {
            0 => entry::build(&mut builder, &shared),
            k => body::build_table(&mut builder, &shared, &plan.functions[k - 1]),
        }
        builder.seal_all_blocks();
        builder.finalize(module.target_config());
        context.set_disasm(show.is_some());
        let clif = show.is_some().then(|| context.func.display().to_string());
        module.define_function(id, &mut context)?;
        if let (Some(show), Some(clif)) = (&mut show, clif) {
            let asm = context.compiled_code().and_then(|code| code.vcode.clone());
            show(&clif, &asm.unwrap_or_default());
        }
        module.clear_context(&mut context);
    }
    module.finalize_definitions()?;
    Ok(Jit::new(module, entry_id, (ct_points, stacks, rows)))
}
