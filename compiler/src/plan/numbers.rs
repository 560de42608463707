//! OpenFlow's numbers of ports and the program's dense ones, each from the other, as expressions: a search tree over runs of
//! numbers that go up together.

use super::code::{Expr, Op};

/// Numbers that go up by one as what they are mapped to does.
#[derive(Clone, Copy)]
struct Run {
    from: u64,
    len: u64,
    to: u64,
}

/// The OpenFlow number of a dense one that is in range.
pub fn number_of(port: Expr, numbers: &[u32]) -> Expr {
    let pairs = numbers.iter().enumerate().map(|(dense, &number)| (dense as u64, u64::from(number)));
    mapped(&port, &runs(pairs), true)
}

/// The dense number of an OpenFlow number, and one more; 0 if there is no such port. The number is at hand: it is used often.
pub fn port_of(number: &Expr, numbers: &[u32]) -> Expr {
    let mut pairs: Vec<_> =
        numbers.iter().enumerate().map(|(dense, &number)| (u64::from(number), dense as u64 + 1)).collect();
    pairs.sort_unstable();
    mapped(number, &runs(pairs.into_iter()), false)
}

fn runs(pairs: impl Iterator<Item = (u64, u64)>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (from, to) in pairs {
        match runs.last_mut() {
            Some(run) if run.from + run.len == from && run.to + run.len == to => run.len += 1,
            _ => runs.push(Run { from, len: 1, to }),
        }
    }
    runs
}

/// What a value is mapped to; 0 outside of all runs, unless it is surely in one.
fn mapped(value: &Expr, runs: &[Run], surely: bool) -> Expr {
    match runs {
        [] => Expr::Const(0),
        [run] => {
            let to = value.clone().with(Op::Sub, run.from).with(Op::Add, run.to);
            let inside = value.clone().with(Op::Sub, run.from).with(Op::Lt, run.len);
            if surely { to } else { guard(inside, to) }
        }
        _ => {
            let (below, above) = runs.split_at(runs.len() / 2);
            let less = value.clone().with(Op::Lt, above[0].from);
            let low = guard(less.clone(), mapped(value, below, surely));
            low.op(Op::Or, guard(less.with(Op::Eq, 0), mapped(value, above, surely)))
        }
    }
}

fn guard(cond: Expr, value: Expr) -> Expr {
    match cond {
        Expr::Const(0) => Expr::Const(0),
        Expr::Const(_) => value,
        cond => Expr::Guard(Box::new(cond), Box::new(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_numbers_are_mapped_at_once() {
        let numbers = [1, 2, 3, 10, 7, 8];
        for (dense, &number) in numbers.iter().enumerate() {
            assert_eq!(number_of(Expr::Const(dense as u64), &numbers), Expr::Const(u64::from(number)));
            assert_eq!(port_of(&Expr::Const(u64::from(number)), &numbers), Expr::Const(dense as u64 + 1));
        }
        for number in [0, 4, 6, 9, 11, u64::MAX] {
            assert_eq!(port_of(&Expr::Const(number), &numbers), Expr::Const(0));
        }
    }
}
