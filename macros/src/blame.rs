//! From diagnostics to what rustc shows: each error a `compile_error!` at the token to blame, each warning a warning there.

use std::ops::Range;

use pipec_compiler::diag::{Diagnostic, Severity};
use pipec_compiler::source::{Sources, Span};
use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::quote_spanned;
use syn::Error;

/// Where the program's text stands in Rust's source.
pub enum Place {
    /// In a file or a string, which this token names: the text of messages has to show the place.
    Elsewhere(proc_macro2::Span),
    /// Token by token in the macro's own input: each with its bytes of the program's text.
    Tokens(Vec<(Range<usize>, proc_macro2::Span)>),
}

impl Place {
    /// The first and the last token of a place in the program.
    fn tokens(&self, span: Span) -> (proc_macro2::Span, proc_macro2::Span) {
        match self {
            Place::Elsewhere(token) => (*token, *token),
            Place::Tokens(tokens) => {
                let range = span.range();
                let from = tokens.partition_point(|(token, _)| token.end <= range.start);
                let to = tokens.partition_point(|(token, _)| token.start < range.end.max(range.start + 1));
                let last = tokens.len().saturating_sub(1);
                let at =
                    |i: usize| tokens.get(i.min(last)).map_or_else(proc_macro2::Span::call_site, |(_, span)| *span);
                (at(from), at(to.saturating_sub(1).max(from)))
            }
        }
    }

    /// What a diagnostic says: with excerpts where rustc cannot show them.
    fn text(&self, diagnostic: &Diagnostic, sources: &Sources) -> String {
        let elsewhere = matches!(self, Place::Elsewhere(_)) || diagnostic.labels.iter().any(|(span, _)| span.file != 0);
        if elsewhere {
            return format!("the pipeline does not compile\n\n{}", diagnostic.render(sources, false).trim_end());
        }
        let mut text = format!("{} [{}]", diagnostic.message, diagnostic.code);
        for (i, (span, label)) in diagnostic.labels.iter().enumerate().filter(|(_, (_, label))| !label.is_empty()) {
            if i == 0 {
                text += &format!("\n{label}");
            } else {
                let there = sources.text(*span).lines().next().unwrap_or_default();
                text += &format!("\n`{there}`: {label}");
            }
        }
        for help in &diagnostic.help {
            text += &format!("\nhelp: {help}");
        }
        text
    }
}

/// All errors as one, and the items that make rustc warn; an error if any diagnostic is one.
pub fn report(diagnostics: &[Diagnostic], sources: &Sources, place: &Place) -> Result<TokenStream, Error> {
    let (mut errors, mut warnings): (Option<Error>, TokenStream) = (None, TokenStream::new());
    for diagnostic in diagnostics {
        // What is wrong in another file is said where this one comes in, if it does.
        let here = diagnostic.labels.iter().map(|(span, _)| *span).find(|span| span.file == 0);
        let (first, last) = place.tokens(here.unwrap_or_default());
        let text = place.text(diagnostic, sources);
        if diagnostic.severity == Severity::Warning {
            warnings.extend(warning(&text, first));
            continue;
        }
        let token = |span| TokenTree::Ident(Ident::new("_blamed", span));
        let error = Error::new_spanned(TokenStream::from_iter([token(first), token(last)]), text);
        match &mut errors {
            Some(errors) => errors.combine(error),
            None => errors = Some(error),
        }
    }
    errors.map_or(Ok(warnings), Err)
}

/// Rust lets no macro warn; the use of something deprecated is the way that is left. `#[allow(deprecated)]` silences it.
fn warning(text: &str, at: proc_macro2::Span) -> TokenStream {
    let text = text.strip_prefix("the pipeline does not compile\n\n").unwrap_or(text);
    quote_spanned! { at =>
        const _: () = {
            #[deprecated(note = #text)]
            #[allow(non_upper_case_globals)]
            const the_pipeline: () = ();
            the_pipeline
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_the_tokens_that_it_touches() {
        let tokens = "a bb ccc".parse::<TokenStream>().expect("tokens").into_iter();
        let spans: Vec<_> = tokens.map(|token| token.span()).collect();
        let place = Place::Tokens(vec![(0..1, spans[0]), (2..4, spans[1]), (5..8, spans[2])]);
        let columns = |range: Range<usize>| {
            let (first, last) = place.tokens(Span::new(0, range));
            (first.start().column, last.end().column)
        };
        assert_eq!(columns(2..4), (2, 4));
        assert_eq!(columns(0..3), (0, 4));
        assert_eq!(columns(3..8), (2, 8));
        assert_eq!(columns(8..8), (5, 8), "behind the end: the last token");
    }
}
