//! Statements and expressions of a plan as Rust.

use pipec_abi::Emit;
use pipec_abi::header::proto;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Lifetime;

use super::function_name;
use crate::plan::Plan;
use crate::plan::code::{Base, CtPart, Expr, Label, Op, Stage, Stmt, Value};

/// A body: its statements, in a function with `env`, `ctx`, `burst` and `i`.
pub fn body(stmts: &[Stmt], plan: &Plan) -> TokenStream {
    let stmts = stmts.iter().map(|s| stmt(s, plan));
    quote! { #(#stmts)* }
}

/// The body of a stage: the statements behind the values it takes over.
pub fn stage_body(stage: &Stage, plan: &Plan) -> TokenStream {
    let of = |first: u32, row: u16| {
        let at = (first + u32::from(row) * pipec_abi::BURST as u32) as usize;
        quote!(ctx.scratch()[#at + place])
    };
    let taken = stage.body.iter().map_while(|s| match s {
        Stmt::Let(value, Expr::Found) => Some((value, of(stage.found(), 0))),
        Stmt::Let(value, Expr::Carried(row)) => Some((value, of(stage.kept(), *row))),
        _ => None,
    });
    let taken = taken.map(|(value, word)| {
        let value = name(*value);
        quote! { let #value: u64 = #word; }
    });
    let taken: Vec<_> = taken.collect();
    let rest = body(&stage.body[taken.len()..], plan);
    let args = stage.args() as usize;
    quote! {
        const ARGS: usize = #args;
        #(#taken)*
        #rest
    }
}

/// The name of a table of constants.
pub fn rows_name(rows: u16) -> proc_macro2::Ident {
    format_ident!("ROWS_{rows}")
}

fn name(value: Value) -> proc_macro2::Ident {
    format_ident!("v{}", value.0)
}

fn lifetime(label: Label) -> Lifetime {
    Lifetime::new(&format!("'b{}", label.0), proc_macro2::Span::call_site())
}

fn how(how: Emit) -> TokenStream {
    match how {
        Emit::Share => quote!(Emit::Share),
        Emit::Copy => quote!(Emit::Copy),
    }
}

fn variant(reason: impl std::fmt::Debug) -> proc_macro2::Ident {
    format_ident!("{}", format!("{reason:?}"))
}

fn stmt(stmt: &Stmt, plan: &Plan) -> TokenStream {
    match stmt {
        Stmt::Let(value, e) => {
            let (value, e) = (name(*value), expr(e));
            quote! { let #value: u64 = #e; }
        }
        Stmt::If { cond, then, otherwise } => {
            let (cond, then) = (condition(cond), body(then, plan));
            if otherwise.is_empty() {
                return quote! { if #cond { #then } };
            }
            let otherwise = body(otherwise, plan);
            quote! { if #cond { #then } else { #otherwise } }
        }
        Stmt::Block(label, stmts) => {
            let (label, stmts) = (lifetime(*label), body(stmts, plan));
            quote! { #label: { #stmts } }
        }
        Stmt::Break(label) => {
            let label = lifetime(*label);
            quote! { break #label; }
        }
        Stmt::Return(code) => quote! { return #code; },
        Stmt::Count(counter) => {
            let counter = *counter as usize;
            quote! { ctx.count(#counter, burst.frame_len(i)); }
        }
        Stmt::CountAt { base, place } => {
            let (base, place) = (*base as usize, name(*place));
            quote! { ctx.count(#base + #place as u32 as usize, burst.frame_len(i)); }
        }
        Stmt::Lookup { result, table, key } => {
            let (result, table, key) = (name(*result), usize::from(*table), key.iter().map(expr));
            quote! {
                let key = [#(#key),*];
                let #result = ctx.lookup(#table, &key);
            }
        }
        Stmt::Gather { stage, key, carry } => {
            let k = usize::from(*stage);
            let place = &plan.stages[k];
            let [lanes, keys, kept] = [place.lanes(), place.keys(), place.kept()].map(|word| word as usize);
            let width = key.len();
            let (words, parts): (Vec<usize>, Vec<TokenStream>) = key.iter().map(expr).enumerate().unzip();
            let carry = carry.iter().enumerate().map(|(row, value)| {
                let (value, row) = (name(*value), kept + row * pipec_abi::BURST);
                quote! { scratch[#row + n] = #value; }
            });
            quote! {
                let n = waiting[#k];
                let key = [#(#parts),*];
                let scratch = ctx.scratch();
                scratch[#lanes + n] = i as u64;
                #(scratch[#keys + n * #width + #words] = key[#words];)*
                #(#carry)*
                waiting[#k] = n + 1;
            }
        }
        Stmt::VerdictOf(word) => {
            let word = expr(word);
            quote! { { let word = #word; burst.set_verdict(i, Verdict(word as u16)); } }
        }
        Stmt::Switch { value, cases } => {
            let value = name(*value);
            let (last, others) = cases.split_last().unwrap_or((const { &Vec::new() }, &[]));
            let arms = others.iter().enumerate().map(|(k, stmts)| {
                let (k, stmts) = (k as u64, body(stmts, plan));
                quote! { #k => { #stmts } }
            });
            let last = body(last, plan);
            quote! { match #value >> 32 { #(#arms)* _ => { #last } } }
        }
        Stmt::External { dropped, action, arguments } => {
            let (dropped, action, arguments) = (name(*dropped), usize::from(*action), arguments.iter().map(expr));
            quote! {
                let arguments = [#(#arguments),*];
                let #dropped = u64::from(ctx.external(#action, burst, i, &arguments) == Flow::Drop);
            }
        }
        Stmt::Verdict(word) => quote! { burst.set_verdict(i, Verdict(#word)); },
        Stmt::DropIfUnsent(reason) => {
            let reason = variant(reason);
            quote! { burst.drop_if_unsent(i, DropReason::#reason); }
        }
        Stmt::Suspend { point, prepare } => {
            let prepare = prepare.map(|set| {
                let set = usize::from(set);
                quote! { sets[#set] |= 1 << i; }
            });
            quote! { burst.suspend(i, #point); #prepare }
        }
        Stmt::Ct { state, point, zone } => {
            let (state, point, zone) = (name(*state), usize::from(*point), expr(zone));
            quote! {
                let zone = (#zone) as u16;
                let #state = u64::from(env.ct(ctx, burst, i, &CT_POINTS[#point], zone));
            }
        }
        Stmt::CtClear => quote! { *ctx.ct(i) = CtView::CLEAR; },
        Stmt::Emit { port, how: h } => {
            let h = how(*h);
            quote! { env.emit(ctx, burst, i, #port, #h); }
        }
        Stmt::EmitIn { how: h } => {
            let h = how(*h);
            quote! { env.emit(ctx, burst, i, burst.in_port(i), #h); }
        }
        Stmt::Flood { how: h } => {
            let h = how(*h);
            quote! { env.flood(ctx, burst, i, burst.in_port(i), #h); }
        }
        Stmt::Normal { how: h } => {
            let h = how(*h);
            quote! { env.normal(ctx, burst, i, burst.in_port(i), #h); }
        }
        Stmt::Set { target, high, low } => {
            let (target, limit, value) = (variant(target), plan.vlan_limit, wide(high, low));
            quote! {
                {
                    let value = #value;
                    edit::set(burst.bytes_mut(i), Target::#target, value, #limit);
                }
            }
        }
        Stmt::Store { base, offset, bytes, value } => {
            let (at, bytes, value) = (address(*base, *offset), usize::from(*bytes), expr(value));
            quote! { { let value = #value; header::store::<#bytes>(burst.bytes_mut(i), #at, value); } }
        }
        Stmt::DecTtl { expired } => {
            let (expired, limit) = (name(*expired), plan.vlan_limit);
            quote! { let #expired = u64::from(edit::dec_ttl(burst.bytes_mut(i), #limit) == Ttl::Expired); }
        }
        Stmt::SetVar { word, value } => {
            let (word, value) = (usize::from(*word), expr(value));
            quote! { { let value = #value; ctx.vars(i)[#word] = value; } }
        }
        Stmt::Call { result, function, in_port } => {
            let k = usize::from(*function);
            let (result, callee) = (name(*result), function_name(k, &plan.functions[k].name));
            let port = in_port.map_or(quote!(burst.in_port(i)), |port| quote!(#port));
            quote! {
                let port = #port;
                let #result = u64::from(#callee(env, ctx, burst, i, port));
            }
        }
        Stmt::Clear => quote! {
            ctx.start_packet();
            ctx.vars(i).fill(0);
            *ctx.ct(i) = CtView::CLEAR;
        },
        Stmt::Enter { exceeded, back } => {
            let exceeded = name(*exceeded);
            quote! { let #exceeded = u64::from(ctx.enter(#back)); }
        }
        Stmt::Depth(value) => {
            let value = name(*value);
            quote! { let #value = u64::from(ctx.depth()); }
        }
        Stmt::SetDepth(value) => {
            let value = name(*value);
            quote! { ctx.set_depth(#value as u32); }
        }
        Stmt::Save => quote! { env.save(ctx, burst, i); },
        Stmt::Restore => quote! { env.restore(ctx, burst, i); },
        Stmt::EmitTo { port, how: h } => {
            let (port, h) = (expr(port), how(*h));
            quote! { { let port = (#port) as u16; env.emit(ctx, burst, i, port, #h); } }
        }
        Stmt::EmitPart { port, max_len } => {
            let port = expr(port);
            quote! { { let port = (#port) as u16; env.emit_part(ctx, burst, i, port, #max_len); } }
        }
        Stmt::Controller { reason, max_len } => quote! { env.controller(ctx, burst, i, #reason, #max_len); },
        Stmt::Meter { passes, meter } => {
            let passes = name(*passes);
            quote! { let #passes = u64::from(env.meter(ctx, burst, i, #meter)); }
        }
        Stmt::Live { alive, port } => {
            let alive = name(*alive);
            quote! { let #alive = u64::from(env.live(ctx, #port)); }
        }
        Stmt::SetCt(parts) => {
            let [state, zone, mark, high, low] = parts.map(name);
            quote! {
                *ctx.ct(i) = CtView {
                    state: #state as u32, zone: #zone as u32, mark: #mark as u32, reserved: 0, label: [#high, #low],
                };
            }
        }
        Stmt::Find { result, table, key, ordered } => {
            let (result, key) = (name(*result), key.iter().map(expr));
            let find = if *ordered {
                quote!(env.find(ctx, burst, i, #table, &key))
            } else {
                let table = usize::from(*table);
                quote!(ctx.find(#table, &key))
            };
            quote! {
                let key = [#(#key),*];
                let #result = #find;
            }
        }
        Stmt::CountEntry { first, place } => {
            let (first, place) = (*first as usize, name(*place));
            quote! { ctx.count_entry(#first + #place as u32 as usize, burst.frame_len(i)); }
        }
        Stmt::Learn { table, key, action, args } => {
            let (key, args) = (key.iter().map(expr), args.iter().map(expr));
            quote! {
                {
                    let key = [#(#key),*];
                    let args = [#(#args),*];
                    env.learn(ctx, burst, i, #table, &key, #action, &args);
                }
            }
        }
        Stmt::Fail(reason) => {
            let reason = variant(reason);
            quote! { env.fail(ctx, burst, i, DropReason::#reason); }
        }
        Stmt::Reshape { failed, what, a, b } => {
            let (failed, what, a, b, limit) = (name(*failed), variant(what), expr(a), expr(b), plan.vlan_limit);
            quote! {
                let shape = (#a, #b);
                let #failed = u64::from(reshape::apply(env, ctx, burst, i, Reshape::#what, shape, #limit));
            }
        }
        Stmt::Encap { failed, stack } => {
            let (failed, stack, limit) = (name(*failed), usize::from(*stack), plan.vlan_limit);
            quote! { let #failed = u64::from(reshape::encap(env, ctx, burst, i, &STACKS[#stack], #limit)); }
        }
        Stmt::Finish { stack } => {
            let stack = usize::from(*stack);
            quote! { reshape::finish(burst.bytes_mut(i), &STACKS[#stack]); }
        }
        Stmt::FailWith(failed) => {
            let failed = name(*failed);
            quote! { env.fail(ctx, burst, i, reshape::reason(#failed as u32)); }
        }
        Stmt::SetBits { at, offset, width, high, low, covered } => {
            let (at, offset, width) = (expr(at), u32::from(*offset), u32::from(*width));
            let value = wide(high, low);
            let limit = plan.vlan_limit;
            let covered = if *covered { quote!(Some(#limit)) } else { quote!(None) };
            quote! {
                {
                    let (at, value) = (#at as usize, #value);
                    reshape::set_bits(burst.bytes_mut(i), at, #offset, #width, value, #covered);
                }
            }
        }
    }
}

/// Two words as one number.
fn wide(high: &Expr, low: &Expr) -> TokenStream {
    let low = expr(low);
    match high {
        Expr::Const(0) => quote! { u128::from(#low) },
        high => {
            let high = expr(high);
            quote! { u128::from(#high) << 64 | u128::from(#low) }
        }
    }
}

fn expr(e: &Expr) -> TokenStream {
    match e {
        Expr::Const(value) => {
            let value = proc_macro2::Literal::u64_suffixed(*value);
            quote!(#value)
        }
        Expr::Value(value) => {
            let value = name(*value);
            quote!(#value)
        }
        Expr::Arg(word) => {
            let word = usize::from(*word);
            quote!(ctx.arg(#word))
        }
        Expr::FoundArg(word) => {
            let row = usize::from(*word) * pipec_abi::BURST;
            quote!(ctx.scratch()[ARGS + #row + place])
        }
        Expr::Found | Expr::Carried(_) => unreachable!("a stage takes these over at its start"),
        Expr::Row { rows, at, stride, word } => {
            let (rows, at) = (rows_name(*rows), name(*at));
            let (stride, word) = (usize::from(*stride), usize::from(*word));
            quote!(constant(#rows, #at as u32 as usize * #stride + #word))
        }
        Expr::Len => quote!(u64::from(burst.frame_len(i))),
        Expr::InPort => quote!(u64::from(burst.in_port(i))),
        Expr::LookupPort => quote!(u64::from(lookup_port)),
        Expr::Load { base, offset, bytes } => {
            let load = format_ident!("load{}", u32::from(*bytes) * 8);
            let at = address(*base, *offset);
            quote!(header::#load(burst.bytes(i), #at))
        }
        Expr::Var(word) => {
            let word = usize::from(*word);
            quote!(ctx.vars(i)[#word])
        }
        Expr::Ct(part) => match part {
            CtPart::State => quote!(u64::from(ctx.ct(i).state)),
            CtPart::Zone => quote!(u64::from(ctx.ct(i).zone)),
            CtPart::Mark => quote!(u64::from(ctx.ct(i).mark)),
            CtPart::LabelHigh => quote!(ctx.ct(i).label[0]),
            CtPart::LabelLow => quote!(ctx.ct(i).label[1]),
        },
        Expr::L2 => quote!(header::l2(burst.bytes(i), VLAN_LIMIT).0),
        Expr::L3 { plain: true, .. } => quote!(header::plain_l3(burst.bytes(i)).0),
        Expr::L3 { l2, .. } => {
            let l2 = name(*l2);
            quote!(header::l3(burst.bytes(i), L2(#l2)).0)
        }
        Expr::L4 { l3, proto, .. } => {
            let l3 = name(*l3);
            let parser = match *proto {
                Some(proto::TCP) => quote!(l4_of_tcp),
                Some(proto::UDP) => quote!(l4_of_udp),
                _ => quote!(l4),
            };
            quote!(header::#parser(burst.bytes(i), L3(#l3)).0)
        }
        Expr::Arp(l2) => {
            let l2 = name(*l2);
            quote!(u64::from(header::arp(burst.bytes(i), L2(#l2))))
        }
        Expr::Nd(l3) => {
            let l3 = name(*l3);
            quote!(header::nd(burst.bytes(i), L3(#l3)).0)
        }
        Expr::Op(op, a, b) => {
            let (x, y) = (expr(a), expr(b));
            match op {
                Op::And => quote!((#x & #y)),
                Op::Or => quote!((#x | #y)),
                Op::Add => quote!(#x.wrapping_add(#y)),
                Op::Sub => quote!(#x.wrapping_sub(#y)),
                Op::Shl => quote!((#x << #y)),
                Op::Shr => quote!((#x >> #y)),
                Op::Xor => quote!((#x ^ #y)),
                Op::Mul => quote!(#x.wrapping_mul(#y)),
                Op::Eq | Op::Ne | Op::Lt | Op::Le => {
                    let c = condition(e);
                    quote!(u64::from(#c))
                }
            }
        }
        Expr::Log2(of) => {
            let of = expr(of);
            quote!(u64::from((#of | 1).ilog2()))
        }
        Expr::LoadIf { cond, base, offset, bytes } => {
            let (cond, at, bytes) = (condition(cond), address(*base, *offset), usize::from(*bytes));
            quote!(header::load_if::<#bytes>(#cond, burst.bytes(i), #at))
        }
        Expr::Guard(cond, value) => {
            let (cond, value) = (condition(cond), expr(value));
            quote!((if #cond { #value } else { 0 }))
        }
    }
}

fn address(base: Base, offset: u16) -> TokenStream {
    let offset = usize::from(offset);
    match base {
        Base::Frame => quote!(#offset),
        Base::At(value) => {
            let value = name(value);
            quote!(#value as usize + #offset)
        }
    }
}

/// The expression as a `bool`: whether it is not 0.
fn condition(e: &Expr) -> TokenStream {
    if let Expr::Op(op, a, b) = e {
        let (x, y) = (expr(a), expr(b));
        match op {
            Op::Eq if is_condition(a) && **b == Expr::Const(0) => {
                let c = condition(a);
                return quote!(!(#c));
            }
            Op::Eq => return quote!(#x == #y),
            Op::Ne => return quote!(#x != #y),
            Op::Lt => return quote!(#x < #y),
            Op::Le => return quote!(#x <= #y),
            _ => {}
        }
    }
    let e = expr(e);
    quote!(#e != 0)
}

/// Whether an expression is 0 or 1.
fn is_condition(e: &Expr) -> bool {
    matches!(e, Expr::Op(Op::Eq | Op::Ne | Op::Lt | Op::Le, ..))
}
