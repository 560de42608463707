//! From the attribute's tokens to the items it stands for. Every error is a `compile_error!` at the token to blame.

use std::path::PathBuf;

use pipec_compiler::diag::{Severity, has_errors, render_all};
use pipec_compiler::source::Sources;
use pipec_compiler::{backend, front};
use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Error, Expr, ExprLit, ItemStruct, Lit, LitStr, MetaNameValue, Token};

/// What to say when the attribute is not understood.
const USAGE: &str = "expected `#[pipeline(file = \"path\")]` or `#[pipeline(source = r#\"…\"#)]`";

/// `#[pipeline(…)] struct …;`
pub fn attribute(arguments: TokenStream, item: TokenStream) -> Result<TokenStream, Error> {
    let item: ItemStruct = syn::parse2(item)?;
    if !matches!(item.fields, syn::Fields::Unit) || !item.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &item.ident,
            "`#[pipeline]` stands before a unit struct, such as `struct Firewall;`",
        ));
    }
    let arguments = Punctuated::<MetaNameValue, Token![,]>::parse_terminated.parse2(arguments)?;
    let [argument] = arguments.iter().collect::<Vec<_>>()[..] else {
        return Err(Error::new_spanned(&item.ident, USAGE));
    };
    let Expr::Lit(ExprLit { lit: Lit::Str(literal), .. }) = &argument.value else {
        return Err(Error::new_spanned(&argument.value, "expected a string"));
    };
    let (name, text, tracked) = if argument.path.is_ident("file") {
        read(literal)?
    } else if argument.path.is_ident("source") {
        ("source.pipe".to_owned(), literal.value(), TokenStream::new())
    } else {
        return Err(Error::new_spanned(&argument.path, USAGE));
    };
    let program = compile(&name, text, literal)?;
    let abi = quote!(::pipec_runtime::abi);
    let compiled = backend::rust::tokens(&pipec_compiler::plan::plan(&program), &item.ident, &abi);
    Ok(quote! { #item #compiled #tracked })
}

/// The file's name and text, and an item that makes rustc look at it again when it changes.
fn read(literal: &LitStr) -> Result<(String, String, TokenStream), Error> {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let path = root.join(literal.value());
    let text = std::fs::read_to_string(&path).map_err(|error| {
        let message = format!("{}: {error}; the path counts from the folder of Cargo.toml", path.display());
        Error::new(literal.span(), message)
    })?;
    let tracked = path.to_string_lossy().into_owned();
    Ok((literal.value(), text, quote! { const _: &[u8] = include_bytes!(#tracked); }))
}

/// Compiles a program as far as the HIR. Warnings do not stop a build, and Rust has no way for a macro to show them.
fn compile(name: &str, text: String, blame: &LitStr) -> Result<pipec_compiler::hir::Program, Error> {
    let mut sources = Sources::default();
    let file = sources.add(name, text);
    let (program, mut diagnostics) = front(&mut sources, file, &[]);
    match program {
        Some(program) if !has_errors(&diagnostics) => Ok(program),
        _ => {
            diagnostics.retain(|diagnostic| diagnostic.severity == Severity::Error);
            let text = render_all(&diagnostics, &sources, false);
            Err(Error::new(blame.span(), format!("the pipeline does not compile\n\n{}", text.trim_end())))
        }
    }
}
