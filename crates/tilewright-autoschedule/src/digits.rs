//! Digits of iteration variables.
//!
//! A variable of which quotients and remainders are taken by what divides its extent becomes several, one
//! for each digit, so that accesses are affine: `i // 4` and `i % 4` of `i < 12` are `j` and `k` with
//! `i = j * 4 + k`. Before, the domain of a stage is cut into boxes, in which quotients are whole
//! ([`subdomains`](crate::subdomains)).

use std::collections::BTreeSet;
use tilewright_ir::hash::HashMap;

use crate::padding::{Iters, ranges};
use tilewright_analysis::stage::Extent;
use tilewright_ir::index::{simplify, simplify_indices};
use tilewright_ir::visit::Subst;
use tilewright_ir::{BinOp, Dim, Expr, ExprKind, Fold, Var};

/// A stage over digits of its variables.
pub struct Digits {
    /// The digits, in the order of the variables, the slowest one of each first.
    pub iters: Iters,
    /// How many digits each variable has.
    pub counts: Vec<usize>,
    pub value: Expr,
    /// Where it is stored.
    pub indices: Vec<Expr>,
}

/// Iteration variables of which quotients or remainders are taken as digits: `i // 4` and `i % 4` of
/// `i < 12` as `j` and `k` with `i = j * 4 + k`.
pub fn digits(iters: &Iters, value: Expr, indices: Vec<Expr>) -> Digits {
    let bound = ranges(iters);
    let value = simplify_indices(&value, &bound);
    let indices: Vec<Expr> = indices.iter().map(|i| simplify(i, &bound)).collect();
    let mut found: HashMap<Var, BTreeSet<i64>> = HashMap::default();
    for e in [&value].into_iter().chain(&indices) {
        e.any(|e| {
            if let ExprKind::Binary(op, x, c) = e.kind()
                && matches!(op, BinOp::FloorDiv | BinOp::FloorMod)
                && let (Some((v, place)), Some(c @ 2..)) = (digit(x), c.as_int())
                && let Some(c) = place.checked_mul(c)
            {
                found.entry(v).or_default().insert(c);
            }
            false
        });
    }
    let mut split: Iters = Vec::new();
    let mut counts = Vec::new();
    let mut values = HashMap::default();
    for (v, extent, kind) in iters {
        // Each place divides the next, and the last one the extent, which may be open.
        let places = found.get(v).and_then(|places| {
            let all: Vec<i64> = [1].into_iter().chain(places.iter().copied()).collect();
            let next = all.iter().skip(1).map(|n| n.dim()).chain([*extent]);
            let sizes = all.iter().zip(next).map(|(place, next)| {
                let whole = next.modulo(place.dim()) == 0;
                whole.then(|| (*place, next.floordiv(place.dim())))
            });
            sizes.collect::<Option<Vec<(i64, Dim)>>>()
        });
        let Some(places) = places else {
            split.push((v.clone(), *extent, *kind));
            counts.push(1);
            continue;
        };
        counts.push(places.len());
        let mut sum = Expr::int(0, v.dtype());
        for (k, (place, size)) in places.into_iter().enumerate().rev() {
            let digit = Var::new(format!("{}_{k}", v.name()), v.dtype());
            sum = sum + digit.expr() * Expr::int(place, v.dtype());
            split.push((digit, size, *kind));
        }
        values.insert(v.clone(), sum);
    }
    if values.is_empty() {
        return Digits { iters: split, counts, value, indices };
    }
    let ranges = ranges(&split);
    let mut subst = Subst::vars(values);
    let value = simplify_indices(&subst.expr(&value), &ranges);
    let indices = indices.iter().map(|i| simplify(&subst.expr(i), &ranges)).collect();
    Digits { iters: split, counts, value, indices }
}

/// `v` and `c` of `v // c`, `(v // a) // b` and so on.
fn digit(e: &Expr) -> Option<(Var, i64)> {
    match e.kind() {
        ExprKind::Var(v) => Some((v.clone(), 1)),
        ExprKind::Binary(BinOp::FloorDiv, x, c) => {
            let (v, place) = digit(x)?;
            Some((v, c.as_int().filter(|c| *c > 0)?.checked_mul(place)?))
        }
        _ => None,
    }
}
