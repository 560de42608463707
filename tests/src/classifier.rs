//! Which classifier a table of a program got, for tests that say so.

use pipec_compiler::explain::{Explanation, explain};
use pipec_compiler::hir::Program;
use pipec_compiler::plan::plan_reported;
use pipec_compiler::source::Sources;

/// A program with one table of these rules.
pub fn table(rules: &[String]) -> Program {
    let text = format!("pipeline p {{ port a, b; table t {{ {} else => drop; }} }}", rules.concat());
    let mut sources = Sources::default();
    let file = sources.add("p.pipe", text);
    let (program, diagnostics) = pipec_compiler::front(&mut sources, file, &[]);
    program.unwrap_or_else(|| panic!("{diagnostics:?}"))
}

/// What became of a program.
pub fn explanation(program: &Program) -> Explanation {
    let (plan, report) = plan_reported(program);
    explain(program, &plan, &report)
}

/// Panics unless the table has this classifier, wherever there is code for it: `direct`, `tree`, `chain`, `tuple-space`, `lpm` or
/// `bit-vector`.
#[macro_export]
macro_rules! assert_classifier {
    ($program:expr, $table:expr, $classifier:expr) => {{
        let explanation = $crate::classifier::explanation(&$program);
        let found = explanation.classifiers($table);
        assert_eq!(found, [$classifier], "table {}:\n{}", $table, explanation.text(Some($table)));
    }};
}
