//! Generated Rust: a plan as a type that implements `pipec_abi::Program`.
//!
//! In: a plan. Out: a token stream, or the text of a file. Each body becomes a function of the packet's number; values are
//! `let`s, blocks are labelled blocks. There is no `unsafe` in it, and nothing in it is chosen here.

mod stmt;

use pipec_abi::reshape::Stack;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};

use crate::plan::Plan;
use crate::plan::code::{External, Param, Stmt};

/// The plan as Rust items for the type `name`, with a path to the crate `pipec_abi`.
pub fn tokens(plan: &Plan, name: &Ident, abi: &TokenStream) -> TokenStream {
    let meta = plan.meta.to_json();
    let tables = plan.tables.iter().map(|table| proc_macro2::Literal::byte_string(table));
    let sets = plan.prepares.len();
    let vlan_limit = plan.vlan_limit;
    let n_stages = plan.stages.len();
    let prefix_fn = |name: &str, stmts: &[Stmt]| {
        let (name, body) = (format_ident!("{name}"), stmt::body(stmts, plan));
        quote! {
            #[inline(always)]
            fn #name<E: Env>(
                env: &mut E, ctx: &mut Ctx, burst: &mut Burst, i: usize, sets: &mut [u32; #sets],
                waiting: &mut [usize; #n_stages],
            ) -> u8 {
                #body
                0
            }
        }
    };
    let prefix = prefix_fn("prefix", &plan.prefix);
    let plain = plan.plain.iter().map(|stmts| prefix_fn("plain", stmts));
    let call_plain = plan.plain.iter().map(|_| {
        quote! {
            if header::is_plain_ipv4(burst.bytes(i)) {
                plain(env, ctx, burst, i, &mut sets, &mut waiting);
                continue;
            }
        }
    });
    let (stage_calls, stages) = stages(plan);
    let rows = rows(plan);
    let points: Vec<_> = plan.points.iter().map(|point| stmt::body(point, plan)).collect();
    let point_names: Vec<_> = (0..points.len()).map(|k| format_ident!("point_{k}")).collect();
    let pcs: Vec<u8> = (0..points.len()).map(|k| k as u8).collect();
    let entries: Vec<u16> = (1..=points.len()).map(|k| k as u16).collect();
    let functions = plan.functions.iter().enumerate().map(|(k, function)| {
        let function_name = function_name(k, &function.name);
        let body = stmt::body(&function.body, plan);
        let doc = format!(" Table `{}`.", function.name);
        quote! {
            #[doc = #doc]
            fn #function_name<E: Env>(env: &mut E, ctx: &mut Ctx, burst: &mut Burst, i: usize, lookup_port: u16) -> u8 {
                #body
                #[allow(unreachable_code)]
                0
            }
        }
    });
    let prepares = plan.prepares.iter().enumerate().map(|(k, zone)| {
        quote! { if sets[#k] != 0 { env.ct_prepare(ctx, burst, sets[#k], #zone); } }
    });
    let ct_points = plan.ct_points.iter().map(|p| {
        let pipec_abi::CtPoint { flags, mark, mark_mask, reserved, label, label_mask } = p;
        let ([lh, ll], [mh, ml]) = (label, label_mask);
        quote! {
            CtPoint {
                flags: #flags, mark: #mark, mark_mask: #mark_mask, reserved: #reserved,
                label: [#lh, #ll], label_mask: [#mh, #ml],
            }
        }
    });
    let n_ct_points = plan.ct_points.len();
    let stacks = stacks(plan);
    let tail = (!points.is_empty()).then(|| {
        quote! {
            for i in 0..burst.len() {
                match burst.pc(i) {
                    #(#pcs => { #point_names(env, ctx, burst, i); })*
                    _ => {}
                }
            }
        }
    });
    let externs = plan.externs.iter().map(external);
    let module = format_ident!("__pipec_{}", name);
    quote! {
        #[doc(hidden)]
        #[allow(non_snake_case, unused, unreachable_code)]
        #[allow(clippy::all)]
        mod #module {
            use super::#name;
            use #abi::ct::CtView;
            use #abi::edit::{self, Target, Ttl};
            use #abi::header::{self, L2, L3};
            use #abi::external::{Extern, Outcome};
            use #abi::reshape::{self, Reshape};
            use #abi::table::constant;
            use #abi::{Burst, CtPoint, Ctx, DropReason, Emit, Env, Flow, Gathered, Program, Verdict};

            impl Program for #name {
                const META: &'static str = #meta;
                const TABLES: &'static [&'static [u8]] = &[#(#tables),*];
                const EXTERNS: &'static [Extern] = &[#(#externs),*];

                fn run<E: Env>(env: &mut E, ctx: &mut Ctx, burst: &mut Burst, entry: u16) {
                    match entry {
                        0 => {
                            let mut sets = [0u32; #sets];
                            let mut waiting = [0usize; #n_stages];
                            for i in 0..burst.len() {
                                #(#call_plain)*
                                prefix(env, ctx, burst, i, &mut sets, &mut waiting);
                            }
                            #stage_calls
                            #(#prepares)*
                            #tail
                        }
                        #(#entries => for i in 0..burst.len() { #point_names(env, ctx, burst, i); },)*
                        _ => {}
                    }
                }
            }

            const VLAN_LIMIT: u32 = #vlan_limit;
            const CT_POINTS: [CtPoint; #n_ct_points] = [#(#ct_points),*];
            #stacks
            #rows

            #prefix
            #(#plain)*

            #stages

            #(
                #[inline(always)]
                fn #point_names<E: Env>(env: &mut E, ctx: &mut Ctx, burst: &mut Burst, i: usize) -> u8 {
                    #points
                    0
                }
            )*

            #(#functions)*
        }
    }
}

/// The look-ups of the whole burst: how they are called, and what follows each.
fn stages(plan: &Plan) -> (TokenStream, TokenStream) {
    let (sets, n_stages) = (plan.prepares.len(), plan.stages.len());
    let (mut calls, mut functions) = (TokenStream::new(), TokenStream::new());
    for (k, stage) in plan.stages.iter().enumerate() {
        let name = format_ident!("stage_{k}");
        let (table, width) = (usize::from(stage.table), usize::from(stage.width));
        let [lanes, keys, found, args] =
            [stage.lanes(), stage.keys(), stage.found(), stage.args()].map(|word| word as usize);
        let arg_words = usize::from(stage.open.unwrap_or(0));
        let look_up = if stage.open.is_some() { quote!(find_all) } else { quote!(lookup_all) };
        calls.extend(quote! {
            if waiting[#k] > 0 {
                let n = waiting[#k];
                ctx.#look_up(#table, Gathered {
                    n, width: #width, keys: #keys, found: #found, args: #args, arg_words: #arg_words,
                });
                for place in 0..n {
                    let i = ctx.scratch()[#lanes + place] as usize;
                    #name(env, ctx, burst, i, place, &mut sets, &mut waiting);
                }
            }
        });
        let body = stmt::stage_body(stage, plan);
        functions.extend(quote! {
            #[inline(always)]
            fn #name<E: Env>(
                env: &mut E, ctx: &mut Ctx, burst: &mut Burst, i: usize, place: usize, sets: &mut [u32; #sets],
                waiting: &mut [usize; #n_stages],
            ) -> u8 {
                #body
                0
            }
        });
    }
    (calls, functions)
}

/// Tables of constants, as bytes: those are quick to compile.
fn rows(plan: &Plan) -> TokenStream {
    let rows = plan.rows.iter().enumerate().map(|(k, rows)| {
        let name = stmt::rows_name(k as u16);
        let bytes: Vec<u8> = rows.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let bytes = proc_macro2::Literal::byte_string(&bytes);
        quote! { static #name: &[u8] = #bytes; }
    });
    quote! { #(#rows)* }
}

/// An action in Rust, which stands beside the program's type: its arguments come as words.
fn external(external: &External) -> TokenStream {
    let name = format_ident!("{}", external.name);
    let arguments = external.params.iter().enumerate().map(|(k, param)| match param {
        Param::Ipv4 => quote!(::core::net::Ipv4Addr::from(words[#k] as u32)),
        Param::Mac => quote!({
            let [_, _, mac @ ..] = words[#k].to_be_bytes();
            mac
        }),
        Param::Number(1..=8) => quote!(words[#k] as u8),
        Param::Number(9..=16) => quote!(words[#k] as u16),
        Param::Number(17..=32) => quote!(words[#k] as u32),
        Param::Number(_) => quote!(words[#k]),
    });
    quote! { |packet, words| Outcome::flow(super::#name(packet, #(#arguments),*)) }
}

/// Headers that are put in front of packets, if there are any.
fn stacks(plan: &Plan) -> Option<TokenStream> {
    let n = plan.stacks.len();
    let stacks = plan.stacks.iter().map(|stack| {
        let Stack { bytes, len, ip, udp, length, eth_type, protocol, v6, packet } = stack;
        quote! {
            reshape::Stack {
                bytes: [#(#bytes),*], len: #len, ip: #ip, udp: #udp, length: #length, eth_type: #eth_type,
                protocol: #protocol, v6: #v6, packet: #packet,
            }
        }
    });
    (n > 0).then(|| quote! { static STACKS: [reshape::Stack; #n] = [#(#stacks),*]; })
}

/// The plan as the text of a Rust file, whose type is called after the pipeline.
pub fn emit(plan: &Plan) -> String {
    let name = type_name(&plan.meta.name);
    let items = tokens(plan, &name, &quote!(pipec_abi));
    let doc = format!(" The pipeline `{}`, compiled.", plan.meta.name);
    let tokens = quote! {
        #[doc = #doc]
        pub struct #name;
        #items
    };
    let header = format!("// Generated by pipec from the pipeline `{}`. Do not edit.\n\n", plan.meta.name);
    match syn::parse2(tokens.clone()) {
        Ok(file) => header + &prettyplease::unparse(&file),
        Err(_) => header + &tokens.to_string(),
    }
}

/// The type's name for a pipeline: `access_gateway` is `AccessGateway`.
pub fn type_name(pipeline: &str) -> Ident {
    let mut name = String::new();
    let mut upper = true;
    for c in pipeline.chars() {
        if c.is_ascii_alphanumeric() {
            if name.is_empty() && c.is_ascii_digit() {
                name.push('P');
            }
            name.push(if upper { c.to_ascii_uppercase() } else { c });
            upper = false;
        } else {
            upper = true;
        }
    }
    Ident::new(if name.is_empty() { "Pipeline" } else { &name }, Span::call_site())
}

/// The name of a table's function; the number keeps names apart that look alike.
fn function_name(k: usize, table: &str) -> Ident {
    let table: String = table.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format_ident!("table_{k}_{table}")
}
