//! Types for the keyed tables of a program: a module that is called after its type, with a type for each table, its keys and
//! its actions, and accessors; all of it documented, so that `cargo doc` shows how entries are put in.

use pipec_compiler::backend;
use pipec_compiler::field::{Field, Kind};
use pipec_compiler::hir::{KeyPart, Keyed, KeyedAction, MatchKind, Program, Space};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::Visibility;

/// The module; nothing if the program has no keyed tables.
pub fn of(program: &Program, name: &Ident, visibility: &Visibility) -> TokenStream {
    let keyed: Vec<(&str, &Keyed)> =
        program.tables.iter().filter_map(|table| Some((table.name.as_str(), table.keyed.as_ref()?))).collect();
    if keyed.is_empty() {
        return TokenStream::new();
    }
    let module = ident(&snake(&name.to_string()));
    let tables = keyed.iter().map(|(table, keyed)| of_table(table, keyed));
    let accessors = keyed.iter().map(|(table, _)| {
        let (function, marker) = (ident(table), backend::rust::type_name(table));
        let doc = format!(" The table `{table}`.");
        quote! {
            #[doc = #doc]
            pub fn #function(&self) -> Typed<'_, #marker> {
                Typed::of(&self.0)
            }
        }
    });
    let ports = ports(program);
    let doc = format!(
        " The tables of [`{name}`] whose entries come from outside, as types.\n\n```text\nlet tables = {module}::Tables::of(offline.tables());\n\
         tables.{}().insert(key, action)?;\n```",
        keyed.first().map_or("", |(table, _)| table)
    );
    quote! {
        #[doc = #doc]
        #[allow(non_camel_case_types, unused, clippy::all)]
        #visibility mod #module {
            use ::std::net::{Ipv4Addr, Ipv6Addr};
            use ::std::ops::RangeInclusive;
            use ::std::sync::Arc;
            use ::pipec_runtime::abi::table::KeyMatch;
            use ::pipec_runtime::tables::typed::{Bits, Keyed, Typed, part};

            #ports

            /// The tables of a running program.
            pub struct Tables(Arc<::pipec_runtime::Tables>);

            impl Tables {
                /// The tables of a program that runs, or will: `Offline::tables`, or those that are given to a live run.
                pub fn of(tables: &Arc<::pipec_runtime::Tables>) -> Tables {
                    Tables(tables.clone())
                }
                #(#accessors)*
            }

            #(#tables)*
        }
    }
}

/// The program's ports as an enumeration.
fn ports(program: &Program) -> TokenStream {
    let names: Vec<Ident> = program.ports.iter().map(|port| backend::rust::type_name(&port.name)).collect();
    let docs = program.ports.iter().map(|port| format!(" `{}`, number {}.", port.name, port.number));
    let numbers: Vec<u128> = program.ports.iter().map(|port| port.number.into()).collect();
    let places: Vec<u128> = (0..names.len() as u128).collect();
    let Some(first) = names.first() else { return TokenStream::new() };
    quote! {
        /// A port of the program.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Port { #(#[doc = #docs] #names,)* }

        impl Bits for Port {
            fn bits(self) -> u128 {
                match self { #(Port::#names => #numbers,)* }
            }
            fn of_bits(bits: u128) -> Port {
                match bits { #(#numbers => Port::#names,)* _ => Port::#first }
            }
        }

        /// A port where packets come in.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct InPort(pub Port);

        impl Bits for InPort {
            fn bits(self) -> u128 {
                match self.0 { #(Port::#names => #places,)* }
            }
            fn of_bits(bits: u128) -> InPort {
                InPort(match bits { #(#places => Port::#names,)* _ => Port::#first })
            }
        }
    }
}

fn of_table(table: &str, keyed: &Keyed) -> TokenStream {
    let (module, marker) = (ident(table), backend::rust::type_name(table));
    let parts: Vec<&KeyPart> = keyed.key.iter().collect();
    let fields: Vec<Ident> = parts.iter().map(|part| ident(&part.name)).collect();
    let types: Vec<TokenStream> = parts.iter().map(|part| part_type(part)).collect();
    let single = parts.len() == 1;
    let docs = parts.iter().map(|part| format!(" `{}`, matched as {}.", part.name, part.kind.name()));
    let key = if single {
        let (ty, doc) = (&types[0], format!(" `{}`, matched as {}.", parts[0].name, parts[0].kind.name()));
        quote! { #[doc = #doc] pub type Key = #ty; }
    } else {
        quote! {
            /// A key, or what an entry wants of one.
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct Key { #(#[doc = #docs] pub #fields: #types,)* }
        }
    };
    let to = parts.iter().zip(&fields).map(|(part, field)| {
        let value = if single { quote!(key.clone()) } else { quote!(key.#field.clone()) };
        let (how, width) = (ident(part.kind.name()), part.read.place.width);
        match part.kind {
            MatchKind::Range => quote!(part::range(&#value)),
            _ => quote!(part::#how(#value, #width)),
        }
    });
    let from: Vec<TokenStream> = parts
        .iter()
        .enumerate()
        .map(|(k, p)| {
            let how = format_ident!("{}_of", p.kind.name());
            quote!(part::#how(&parts[#k]))
        })
        .collect();
    let back = if single { quote!(#(#from)*) } else { quote!(#module::Key { #(#fields: #from,)* }) };
    let actions: Vec<&KeyedAction> = keyed.actions.iter().filter(|action| action.entries).collect();
    let structs = actions.iter().filter(|action| !action.params.is_empty()).map(|action| of_action(action));
    let variants = actions.iter().map(|action| {
        let (name, doc) = (backend::rust::type_name(&action.name), format!(" `{}`", action.name));
        if action.params.is_empty() { quote!(#[doc = #doc] #name) } else { quote!(#[doc = #doc] #name(#name)) }
    });
    let to_action = actions.iter().map(|action| {
        let (variant, name) = (backend::rust::type_name(&action.name), &action.name);
        let params: Vec<Ident> = action.params.iter().map(|param| ident(&param.name)).collect();
        match params[..] {
            [] => quote!(#module::Action::#variant => (#name, vec![])),
            _ => quote!(#module::Action::#variant(action) => (#name, vec![#(action.#params.bits()),*])),
        }
    });
    let of_action = actions.iter().map(|action| {
        let (variant, name) = (backend::rust::type_name(&action.name), &action.name);
        let params = action.params.iter().enumerate().map(|(k, param)| {
            let field = ident(&param.name);
            quote!(#field: Bits::of_bits(args[#k]))
        });
        let n = action.params.len();
        match n {
            0 => quote!((#name, 0) => Some(#module::Action::#variant)),
            _ => quote!((#name, #n) => Some(#module::Action::#variant(#module::#variant { #(#params),* }))),
        }
    });
    let times = [("idle", keyed.idle_ns), ("hard", keyed.hard_ns)].into_iter().filter(|(_, ns)| *ns > 0);
    let times: String = times.map(|(what, ns)| format!(" {what} time-out: {} ms.", ns / 1_000_000)).collect();
    let made = if keyed.learned { " Packets make its entries." } else { "" };
    let doc = format!(" The table `{table}`: at most {} entries.{times}{made}", keyed.size);
    quote! {
        #[doc = #doc]
        pub struct #marker;

        impl Keyed for #marker {
            const NAME: &'static str = #table;
            type Key = #module::Key;
            type Action = #module::Action;
            fn key(key: &#module::Key) -> Vec<KeyMatch> {
                vec![#(#to),*]
            }
            fn key_of(parts: &[KeyMatch]) -> #module::Key {
                #back
            }
            fn action(action: &#module::Action) -> (&'static str, Vec<u128>) {
                match action { #(#to_action,)* }
            }
            fn action_of(name: &str, args: &[u128]) -> Option<#module::Action> {
                match (name, args.len()) { #(#of_action,)* _ => None }
            }
        }

        #[doc = #doc]
        pub mod #module {
            use super::*;

            #key

            /// What an entry does.
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub enum Action { #(#variants,)* }

            #(#structs)*
        }
    }
}

/// An action with parameters as a structure.
fn of_action(action: &KeyedAction) -> TokenStream {
    let name = backend::rust::type_name(&action.name);
    let fields = action.params.iter().map(|param| {
        let (field, ty, doc) = (ident(&param.name), base(param.kind, param.width), format!(" `{}`", param.name));
        quote!(#[doc = #doc] pub #field: #ty)
    });
    let doc = format!(" The arguments of `{}`.", action.name);
    quote! {
        #[doc = #doc]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct #name { #(#fields,)* }

        impl From<#name> for Action {
            fn from(action: #name) -> Action {
                Action::#name(action)
            }
        }
    }
}

fn part_type(part: &KeyPart) -> TokenStream {
    let base = match part.read.place.space {
        Space::Field(Field::InPort) => quote!(InPort),
        _ => base(part.value, part.read.place.width),
    };
    match part.kind {
        MatchKind::Exact => base,
        MatchKind::Lpm => quote!((#base, u8)),
        MatchKind::Ternary => quote!((#base, #base)),
        MatchKind::Range => quote!(RangeInclusive<#base>),
        MatchKind::Optional => quote!(Option<#base>),
    }
}

/// How values of a kind are written in Rust.
fn base(kind: Kind, width: u8) -> TokenStream {
    match kind {
        Kind::Mac => quote!([u8; 6]),
        Kind::Ipv4 => quote!(Ipv4Addr),
        Kind::Ipv6 => quote!(Ipv6Addr),
        Kind::Port => quote!(Port),
        Kind::Number | Kind::Flags => match width {
            ..=8 => quote!(u8),
            9..=16 => quote!(u16),
            17..=32 => quote!(u32),
            33..=64 => quote!(u64),
            _ => quote!(u128),
        },
    }
}

/// A name as an identifier of Rust.
fn ident(name: &str) -> Ident {
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let name = if name.starts_with(|c: char| c.is_ascii_digit()) { format!("n{name}") } else { name };
    syn::parse_str(&name).unwrap_or_else(|_| format_ident!("{name}_"))
}

/// `AccessGateway` as `access_gateway`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for (k, c) in name.chars().enumerate() {
        if c.is_ascii_uppercase() && k > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
