//! Text through both front ends: it ends with a program or with errors that can be shown, what is parsed can be printed and
//! parsed again, and what is accepted can be compiled.

use pipec_compiler::diag::{has_errors, render_all};
use pipec_compiler::flows::front_flows;
use pipec_compiler::hir::Program;
use pipec_compiler::source::Sources;
use pipec_compiler::{front_pipe, parse, print};

use crate::engines::{eval, jit};
use crate::program_tests::failures;

/// Rules beyond which a program is not compiled, for the sake of time.
const MOST_RULES: usize = 200;

/// A text as a `.pipe` program.
pub fn parse_pipe(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut sources = Sources::default();
    let file = sources.add("fuzz.pipe", text.as_ref());
    let (program, diagnostics) = front_pipe(&mut sources, file);
    let _shown = render_all(&diagnostics, &sources, false);
    assert_eq!(program.is_none(), has_errors(&diagnostics), "a program, or errors");

    let mut found = vec![];
    if let Some(tree) = parse::pipe(&text, file, &mut found).filter(|_| !has_errors(&found)) {
        let printed = print::pipeline(&tree);
        let again = parse::pipe(&printed, file, &mut found).unwrap_or_else(|| panic!("cannot be read back: {printed}"));
        assert_eq!(print::pipeline(&again), printed, "printing again gives the same");
    }
    if let Some(program) = program {
        compile(&program);
    }
}

/// A text as rules of `ovs-ofctl`.
pub fn parse_flows(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut sources = Sources::default();
    let file = sources.add("fuzz.flows", text.as_ref());
    let (program, diagnostics) = front_flows(&sources, file, &[1, 2]);
    let _shown = render_all(&diagnostics, &sources, false);
    assert_eq!(program.is_none(), has_errors(&diagnostics), "a program, or errors");
    if let Some(program) = program {
        compile(&program);
    }
}

/// Compiles a program; its tests fail or hold on both engines alike.
fn compile(program: &Program) {
    if program.tables.iter().map(|table| table.rules.len()).sum::<usize>() <= MOST_RULES {
        assert_eq!(failures(program, &eval(program)), failures(program, &jit(program)), "tests on eval, on jit");
    }
}
