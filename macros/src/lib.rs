//! `#[pipeline]`: a table program becomes a type of the crate that names it. Thin over the compiler; see `pipec_runtime`,
//! which re-exports it, for what to do with the type.

mod expand;

use proc_macro::TokenStream;

/// Compiles a program into the unit struct below it, which then implements `pipec_abi::Program`.
///
/// ```text
/// use pipec_runtime::pipeline;
///
/// #[pipeline(file = "pipelines/firewall.pipe")] // from the folder of the crate's Cargo.toml on
/// pub struct Firewall;
///
/// #[pipeline(source = r#"pipeline wire { port a, b; table t { in_port == a => output(b); in_port == b => output(a); } }"#)]
/// pub struct Wire;
/// ```
/// A file may be `.pipe` or `.flows`; the crate is built again when it changes. What is wrong with a program is an error at
/// the file's name or at the source, with the place in the program in its text.
#[proc_macro_attribute]
pub fn pipeline(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::attribute(arguments.into(), item.into()).unwrap_or_else(|error| error.into_compile_error()).into()
}
