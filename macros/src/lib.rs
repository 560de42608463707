//! `#[pipeline]` and `pipeline!`: a table program becomes a type of the crate that names it. Thin over the compiler; see
//! `pipec_runtime`, which re-exports them, for what to do with the type.

mod blame;
mod block;
mod doc;
mod expand;
mod files;
mod tables;

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
/// A file may be `.pipe` or `.flows`; the crate is built again when it changes, or a file that it uses. What is wrong with a
/// program is an error at the file's name or at the source, with the place in the program in its text. Warnings come as uses
/// of something deprecated: Rust has no other way.
#[proc_macro_attribute]
pub fn pipeline(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::attribute(arguments.into(), item.into()).unwrap_or_else(|error| error.into_compile_error()).into()
}

/// Compiles the program between its braces into a unit struct that is called after the pipeline.
///
/// ```text
/// use pipec_runtime::inline::pipeline;
///
/// pipeline! {
///     /// Two ports, and what comes in by one leaves by the other.
///     pub pipeline wire {
///         port a, b;
///         table t {
///             in_port == a => output(b);
///             in_port == b => output(a);
///         }
///     }
/// }
/// // struct Wire
/// ```
/// The text is the one of `.pipe` files, and every mistake is an error at its token. Rust's lexer sees it first and refuses
/// a few literals of addresses, such as `00:1e:00:00:00:01` and `0b:00:00:00:00:01`: these stand between quotes.
#[proc_macro]
pub fn pipeline_block(input: TokenStream) -> TokenStream {
    expand::block(input.into()).unwrap_or_else(|error| error.into_compile_error()).into()
}
