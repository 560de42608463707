//! What rustc shows of programs that are wrong: the compiler's text, at the token to blame.

#[test]
fn errors_are_at_their_tokens() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
