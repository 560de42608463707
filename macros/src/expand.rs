//! From the macros' tokens to the items they stand for.

use std::sync::Arc;

use pipec_compiler::diag::has_errors;
use pipec_compiler::hir::Program;
use pipec_compiler::source::Sources;
use pipec_compiler::{backend, front};
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, ExprLit, ItemStruct, Lit, LitStr, MetaNameValue, Token, Visibility};

use crate::blame::{self, Place};
use crate::block::Block;
use crate::doc;
use crate::tables;

use crate::files::Files;

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
    let is_file = argument.path.is_ident("file");
    let (name, text) = if is_file {
        read(literal)?
    } else if argument.path.is_ident("source") {
        ("source.pipe".to_owned(), literal.value())
    } else {
        return Err(Error::new_spanned(&argument.path, USAGE));
    };
    let Compiled { program, sources, warnings } = compile(&name, text, &Place::Elsewhere(literal.span()))?;
    let tracked = tracked(&sources, is_file);
    let compiled = items(&program, &item.ident, &item.vis);
    let doc = doc::of(&program);
    Ok(quote! { #[doc = #doc] #item #compiled #tracked #warnings })
}

/// `pipeline! { pub pipeline firewall { … } }`
pub fn block(input: TokenStream) -> Result<TokenStream, Error> {
    let head = |input: ParseStream| -> Result<(Vec<Attribute>, Visibility, TokenStream), Error> {
        Ok((input.call(Attribute::parse_outer)?, input.parse()?, input.parse()?))
    };
    let (attributes, visibility, rest) = head.parse2(input)?;
    let block = Block::of(rest);
    let Compiled { program, sources, warnings } = compile("pipeline!", block.text, &Place::Tokens(block.tokens))?;
    let tracked = tracked(&sources, false);
    let name = backend::rust::type_name(&program.name);
    let compiled = items(&program, &name, &visibility);
    let doc = doc::of(&program);
    Ok(quote! { #(#attributes)* #[doc = #doc] #visibility struct #name; #compiled #tracked #warnings })
}

fn items(program: &Program, name: &Ident, visibility: &Visibility) -> TokenStream {
    let code = backend::rust::tokens(&pipec_compiler::plan::plan(program), name, &quote!(::pipec_runtime::abi));
    let tables = tables::of(program, name, visibility);
    quote! { #code #tables }
}

/// The file's name and text.
fn read(literal: &LitStr) -> Result<(String, String), Error> {
    let path = Files::of_this_crate().path(&literal.value());
    let text = std::fs::read_to_string(&path).map_err(|error| {
        let message = format!("{}: {error}; the path counts from the folder of Cargo.toml", path.display());
        Error::new(literal.span(), message)
    })?;
    Ok((literal.value(), text))
}

/// Items that make rustc look again at the files a program was made of when they change.
fn tracked(sources: &Sources, first_is_file: bool) -> TokenStream {
    let files = Files::of_this_crate();
    let named = sources.files().iter().skip(usize::from(!first_is_file));
    let paths: Vec<String> = named.map(|file| files.path(&file.name).to_string_lossy().into_owned()).collect();
    let search = (sources.files().len() > 1).then(|| quote! { const _: Option<&str> = option_env!("PIPEC_PATH"); });
    quote! { #(const _: &[u8] = include_bytes!(#paths);)* #search }
}

/// A program as far as the HIR, the files it was made of, and what makes rustc show its warnings.
struct Compiled {
    program: Program,
    sources: Sources,
    warnings: TokenStream,
}

fn compile(name: &str, text: String, place: &Place) -> Result<Compiled, Error> {
    let mut sources = Sources::with_loader(Arc::new(Files::of_this_crate()));
    let file = sources.add(name, text);
    let (program, diagnostics) = front(&mut sources, file, &[]);
    let warnings = blame::report(&diagnostics, &sources, place)?;
    match program {
        Some(program) if !has_errors(&diagnostics) => Ok(Compiled { program, sources, warnings }),
        _ => Err(Error::new(proc_macro2::Span::call_site(), "the pipeline does not compile")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places and texts of the errors that tokens give.
    fn errors(expand: impl Fn(TokenStream) -> Result<TokenStream, Error>, text: &str) -> Vec<(String, String)> {
        let error = expand(text.parse().expect("tokens")).expect_err("it is wrong");
        let place = |error: &Error| error.span().source_text().unwrap_or_default();
        error.into_iter().map(|error| (place(&error), error.to_string())).collect()
    }

    #[test]
    fn each_error_of_a_block_is_at_its_token() {
        let found = errors(block, "pipeline p { port a, b; table t { foo => output(b); ip => output(nowhere); } }");
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!((found[0].0.as_str(), found[1].0.as_str()), ("foo", "nowhere"));
        assert!(found[0].1.contains("[unknown-"), "{}", found[0].1);
    }

    #[test]
    fn a_block_becomes_a_documented_struct() {
        let items = block(
            "/// Mine.\npub pipeline two_ports { port a, b; table t { else => output(b); } }".parse().expect("tokens"),
        );
        let text = items.unwrap_or_else(|e| panic!("{e}")).to_string();
        for part in ["Mine.", "pub struct TwoPorts ;", "Table `t`"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn errors_of_a_source_show_the_place_in_their_text() {
        let expand = |item| attribute("source = \"pipeline p { port a; table t { foo => drop; } }\"".parse()?, item);
        let found = errors(expand, "struct P;");
        assert!(found[0].1.contains("source.pipe:1:") && found[0].1.contains("foo => drop"), "{found:?}");
    }

    #[test]
    fn warnings_are_uses_of_something_deprecated() {
        let text = "pipeline p { port a, b; table t { ip => output(b); ipv4.ttl == 3 => drop; } }";
        let items = block(text.parse().expect("tokens")).unwrap_or_else(|e| panic!("{e}"));
        assert!(items.to_string().contains("deprecated (note ="), "{items}");
    }

    fn expand(argument: TokenStream) -> String {
        let item = quote! { struct Wire; };
        attribute(argument, item).unwrap_or_else(|error| error.into_compile_error()).to_string()
    }

    #[test]
    fn every_file_of_a_program_is_tracked() {
        let source = "pipeline wire { port a, b; use \"../pipelines/bad/parts/names.pipe\"; \
            table t { ipv4.src in hosts && ip.ttl > LIMIT => output(b); } }";
        let text = expand(quote! { source = #source });
        assert!(text.contains("include_bytes") && text.contains("parts/names.pipe"), "{text}");
        assert!(text.contains("option_env ! (\"PIPEC_PATH\")"), "{text}");
        let text = expand(quote! { file = "../pipelines/firewall.pipe" });
        assert!(text.contains("include_bytes") && !text.contains("option_env"), "{text}");
    }

    #[test]
    fn a_mistake_is_shown_with_its_place_in_the_file_it_is_in() {
        let source = "pipeline wire { port a; const LIMIT = 1; use \"../pipelines/bad/parts/names.pipe\"; \
            table t { ip.ttl > LIMIT => drop; } }";
        let text = expand(quote! { source = #source });
        assert!(text.contains("compile_error") && text.contains("parts/names.pipe:1:7"), "{text}");
    }
}
