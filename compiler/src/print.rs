//! From the tree back to text, in one canonical form: parsing it again gives the same tree.
//!
//! Parentheses only where the precedence of operators needs them; the layout is that of [`format`](crate::format). Comments are
//! not in the tree, so they are not in the text either.

mod keyed;

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::ast::{
    Action, ActionKind, Arg, Arith, Comparison, Expected, Expr, ExprKind, Group, Item, Layer, Like, Meter, Name,
    Packet, Pipeline, Radix, Rule, Spanned, Step, Var,
};

/// A whole program.
pub fn pipeline(pipeline: &Pipeline) -> String {
    let mut out = format!("pipeline {} {{\n", pipeline.name.node);
    let mut before: Option<&Item> = None;
    for item in &pipeline.items {
        let has_body = |item: &Item| {
            matches!(item, Item::Action(_) | Item::Table(_) | Item::Test(_) | Item::Group(_) | Item::Meter(_))
        };
        if before.is_some_and(|before| has_body(before) || has_body(item)) {
            out.push('\n');
        }
        print_item(item, &mut out);
        before = Some(item);
    }
    out.push_str("}\n");
    crate::format::layout(&out).unwrap_or(out)
}

/// A rule on one line, without the semicolon.
pub fn rule(rule: &Rule) -> String {
    let mut out = String::new();
    if let Some(priority) = &rule.priority {
        let _ = write!(out, "priority {}: ", expr(priority));
    }
    match &rule.cond {
        Some(cond) => print_expr(cond, 0, &mut out),
        None => out.push_str("else"),
    }
    out.push_str(" =>");
    if !rule.actions.is_empty() {
        out.push(' ');
        print_actions(&rule.actions, &mut out);
    }
    out
}

/// Actions on one line.
pub fn actions(actions: &[Action]) -> String {
    let mut out = String::new();
    print_actions(actions, &mut out);
    out
}

/// A condition or value.
pub fn expr(expr: &Expr) -> String {
    let mut out = String::new();
    print_expr(expr, 0, &mut out);
    out
}

fn print_item(item: &Item, out: &mut String) {
    match item {
        Item::Ports(ports) => {
            let ports = ports.iter().map(|port| match &port.number {
                Some(number) => format!("{} = {}", port.name.node, expr(number)),
                None => port.name.node.clone(),
            });
            line(out, 1, &format!("port {};", ports.collect::<Vec<_>>().join(", ")));
        }
        Item::Const(item) => line(out, 1, &format!("const {} = {};", item.name.node, expr(&item.value))),
        Item::Set(set) => line(out, 1, &format!("set {} = {};", set.name.node, elements(&set.elements))),
        Item::Option(item) => line(out, 1, &format!("option {} = {};", item.name.node, expr(&item.value))),
        Item::Vars(vars) => line(out, 1, &format!("var {};", declarations(vars))),
        Item::Action(action) => {
            line(out, 1, &format!("action {}({}) {{", action.name.node, declarations(&action.params)));
            for action in &action.body {
                let mut text = String::new();
                print_action(action, &mut text);
                line(out, 2, &(text + ";"));
            }
            line(out, 1, "}");
        }
        Item::Extern(item) => {
            line(out, 1, &format!("extern action {}({});", item.name.node, declarations(&item.params)));
        }
        Item::Table(table) => {
            let head = if table.name.node == "start" { "start".into() } else { format!("table {}", table.name.node) };
            line(out, 1, &format!("{head} {{"));
            for each in &table.keyed {
                keyed::statement(&each.node, out);
            }
            for each in &table.rules {
                line(out, 2, &(rule(&each.node) + ";"));
            }
            line(out, 1, "}");
        }
        Item::Use(path) => line(out, 1, &format!("use {};", string(&path.node))),
        Item::Group(group) => print_group(group, out),
        Item::Meter(meter) => print_meter(meter, out),
        Item::Header(header) => {
            let after = header.after.iter().map(|(parent, cond)| match cond {
                Some(cond) => format!("{} if {}", parent.node, expr(cond)),
                None => parent.node.clone(),
            });
            let after = after.collect::<Vec<_>>().join(", ");
            let fields = declarations(&header.fields);
            line(out, 1, &format!("header {} {{ {fields} }} after {after};", header.name.node));
        }
        Item::Test(test) => {
            line(out, 1, &format!("test {} {{", string(&test.name.node)));
            for step in &test.steps {
                line(out, 2, &print_step(step));
            }
            line(out, 1, "}");
        }
    }
}

fn print_group(group: &Group, out: &mut String) {
    line(out, 1, &format!("group {} {} {{", group.name.node, group.kind.node));
    if let Some(hash) = &group.hash {
        line(out, 2, &format!("hash {};", hash.iter().map(expr).collect::<Vec<_>>().join(", ")));
    }
    for bucket in &group.buckets {
        let mut text = String::from("bucket ");
        if let Some(weight) = &bucket.node.weight {
            text += &format!("weight {} ", expr(weight));
        }
        if let Some(watch) = &bucket.node.watch {
            text += &format!("watch {} ", watch.node);
        }
        text += "{ ";
        print_actions(&bucket.node.actions, &mut text);
        line(out, 2, &(text + if bucket.node.actions.is_empty() { "}" } else { " }" }));
    }
    line(out, 1, "}");
}

fn print_meter(meter: &Meter, out: &mut String) {
    line(out, 1, &format!("meter {} {{", meter.name.node));
    if let Some((rate, unit)) = &meter.rate {
        line(out, 2, &format!("rate {} {};", expr(rate), unit.node));
    }
    if let Some(burst) = &meter.burst {
        line(out, 2, &format!("burst {};", expr(burst)));
    }
    line(out, 1, "}");
}

fn line(out: &mut String, level: usize, text: &str) {
    for _ in 0..level {
        out.push_str("    ");
    }
    out.push_str(text);
    out.push('\n');
}

fn declarations(vars: &[Var]) -> String {
    let vars = vars.iter().map(|var| format!("{}: {}", var.name.node, var.ty.node));
    vars.collect::<Vec<_>>().join(", ")
}

fn print_step(step: &Spanned<Step>) -> String {
    match &step.node {
        Step::Send { count, port, packet } => {
            format!("send {}{} {};", print_count(count.as_ref()), port.node, print_packet(packet))
        }
        Step::Expect(ends) => {
            let ends: Vec<String> = ends.iter().map(|end| print_expected(&end.node)).collect();
            format!("expect {};", ends.join(", "))
        }
        Step::After { ns } => {
            format!("after {};", time(*ns))
        }
    }
}

fn print_count(count: Option<&Spanned<u64>>) -> String {
    count.map_or(String::new(), |count| format!("{} ", count.node))
}

fn print_expected(end: &Expected) -> String {
    let mut out = print_count(end.count.as_ref()) + &end.name.node;
    if let Some(reason) = &end.reason {
        out += &format!("({})", reason.node);
    }
    match &end.like {
        None => out,
        Some(Like::Where(cond)) => format!("{out} where {}", expr(cond)),
        Some(Like::Equal(packet)) => format!("{out} == {}", print_packet(packet)),
    }
}

/// A time in the largest unit that divides it.
pub fn time(ns: u64) -> String {
    let fits = crate::parse::UNITS.iter().rev().find(|(_, unit)| ns.is_multiple_of(*unit) && ns > 0);
    let (name, unit) = fits.copied().unwrap_or(("s", 1_000_000_000));
    format!("{} {name}", ns / unit)
}

fn print_packet(packet: &Packet) -> String {
    let layers = packet.layers.iter().map(|layer| match &layer.node {
        Layer::Payload(text) => string(text),
        Layer::Header(name, args) => format!("{}({})", name.node, print_args(args)),
    });
    layers.collect::<Vec<_>>().join(" / ")
}

fn print_args(args: &[Arg]) -> String {
    let args = args.iter().map(|arg| match &arg.name {
        Some(name) => format!("{} = {}", name.node, expr(&arg.value)),
        None => expr(&arg.value),
    });
    args.collect::<Vec<_>>().join(", ")
}

fn print_actions(actions: &[Action], out: &mut String) {
    for (i, action) in actions.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        print_action(action, out);
    }
}

fn print_action(action: &Action, out: &mut String) {
    match &action.node {
        ActionKind::Goto(name) => out.push_str(&format!("goto {}", name.node)),
        ActionKind::Call(name) => out.push_str(&format!("call {}", name.node)),
        ActionKind::Clone(actions) if actions.is_empty() => out.push_str("clone { }"),
        ActionKind::Clone(actions) => {
            out.push_str("clone { ");
            print_actions(actions, out);
            out.push_str(" }");
        }
        ActionKind::Assign(name, value) => {
            out.push_str(&name.node);
            out.push_str(" = ");
            print_expr(value, 0, out);
        }
        ActionKind::Learn(name, key, action) => {
            out.push_str(&format!("learn {}({}) => {}", name.node, print_args(key), keyed::action(action)));
        }
        ActionKind::Push(name, args) => print_named("push", name, args, out),
        ActionKind::Pop(name, args) => print_named("pop", name, args, out),
        ActionKind::Encap(packet) => out.push_str(&format!("encap {}", print_packet(packet))),
        ActionKind::Decap(name) => out.push_str(&format!("decap {}", name.node)),
        ActionKind::Run(name, None) => out.push_str(&name.node),
        ActionKind::Run(name, Some(args)) => out.push_str(&format!("{}({})", name.node, print_args(args))),
    }
}

/// `push vlan(vid = 5)` and its like.
fn print_named(word: &str, name: &Name, args: &Option<Vec<Arg>>, out: &mut String) {
    out.push_str(&format!("{word} {}", name.node));
    if let Some(args) = args {
        out.push_str(&format!("({})", print_args(args)));
    }
}

fn elements(list: &[Expr]) -> String {
    if list.is_empty() {
        return "{ }".into();
    }
    format!("{{ {} }}", list.iter().map(expr).collect::<Vec<_>>().join(", "))
}

/// How tight an expression binds; from 0 for `||`.
fn level(kind: &ExprKind) -> u8 {
    match kind {
        ExprKind::Or(_) => 0,
        ExprKind::And(_) => 1,
        ExprKind::Compare(..) => 2,
        ExprKind::Range(..) => 3,
        ExprKind::Arith(Arith::BitOr, ..) => 4,
        ExprKind::Arith(Arith::BitXor, ..) => 5,
        ExprKind::Arith(Arith::BitAnd, ..) => 6,
        ExprKind::Arith(Arith::Shl | Arith::Shr, ..) => 7,
        ExprKind::Arith(Arith::Add | Arith::Sub, ..) => 8,
        ExprKind::Slash(..) => 9,
        _ => 10,
    }
}

/// How tight the left side of an operator has to bind: as the operator, but after a row that is as long as rows may be.
fn left_level(left: &Expr, own: u8) -> u8 {
    let mut row = 0;
    let mut next = left;
    while level(&next.node) == own
        && let ExprKind::Arith(_, left, _) | ExprKind::Slash(left, _) = &next.node
    {
        row += 1;
        next = left;
    }
    own + u8::from(row > 0 && row % crate::parse::MAX_CHAIN == 0)
}

/// Prints an expression that has to bind at least as tight as `least`.
fn print_expr(expr: &Expr, least: u8, out: &mut String) {
    let own = level(&expr.node);
    let parentheses = own < least;
    if parentheses {
        out.push('(');
    }
    let mut list = |list: &[Expr], separator: &str| {
        for (i, part) in list.iter().enumerate() {
            if i > 0 {
                out.push_str(separator);
            }
            print_expr(part, own + 1, out);
        }
    };
    match &expr.node {
        ExprKind::Or(parts) => list(parts, " || "),
        ExprKind::And(parts) => list(parts, " && "),
        ExprKind::Compare(op, left, right) => {
            print_expr(left, own + 1, out);
            out.push_str(&format!(" {} ", Comparison::name(*op)));
            print_expr(right, own + 1, out);
        }
        ExprKind::Range(low, high) => {
            print_expr(low, own + 1, out);
            out.push_str("..=");
            print_expr(high, own + 1, out);
        }
        ExprKind::Arith(op, left, right) => {
            print_expr(left, left_level(left, own), out);
            out.push_str(&if *op == Arith::BitOr { "|".to_string() } else { format!(" {} ", op.name()) });
            print_expr(right, own + 1, out);
        }
        ExprKind::Slash(left, right) => {
            print_expr(left, left_level(left, own), out);
            out.push('/');
            print_expr(right, own + 1, out);
        }
        ExprKind::Not(inner) => {
            // Few `!` stand in a row, but parentheses nest deep.
            out.push('!');
            print_expr(inner, if matches!(inner.node, ExprKind::Not(_)) { own + 1 } else { own }, out);
        }
        kind => out.push_str(&literal(kind)),
    }
    if parentheses {
        out.push(')');
    }
}

fn literal(kind: &ExprKind) -> String {
    match kind {
        ExprKind::Number { value, radix: Radix::Decimal } => value.to_string(),
        ExprKind::Number { value, radix: Radix::Hex } => format!("{value:#x}"),
        ExprKind::Number { value, radix: Radix::Binary } => format!("{value:#b}"),
        ExprKind::Mac(bits) => {
            let groups: Vec<String> = bits.to_be_bytes()[2..].iter().map(|byte| format!("{byte:02x}")).collect();
            groups.join(":")
        }
        ExprKind::Ipv4(bits) => Ipv4Addr::from(*bits).to_string(),
        ExprKind::Ipv6(bits) => Ipv6Addr::from(*bits).to_string(),
        ExprKind::Text(text) => string(text),
        ExprKind::Path(name) => name.clone(),
        ExprKind::Elements(list) => elements(list),
        ExprKind::Call(name, args) => {
            format!("{}({})", name.node, args.iter().map(expr).collect::<Vec<_>>().join(", "))
        }
        _ => unreachable!("operators are printed by their caller"),
    }
}

/// A string with its quotes.
fn string(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0' => out.push_str("\\0"),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c => out.push(c),
        }
    }
    out + "\""
}
