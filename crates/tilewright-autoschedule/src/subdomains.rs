//! Boxes that the domain of a stage is cut into, so that in each of them quotients are whole, conditions of
//! several variables are decided, and minima and maxima have no two sides. Along axes of open sizes, they are cut
//! where a choice between two values is decided.

use std::collections::BTreeSet;
use tilewright_ir::hash::HashMap;

use crate::padding::{Iters, ranges};
use tilewright_analysis::stage::Extent;
use tilewright_ir::index::{Linear, Ranges, simplify, simplify_indices};
use tilewright_ir::visit::Subst;
use tilewright_ir::{BinOp, Dim, Expr, ExprKind, Fold, IterKind, Var};
use tilewright_schedule::decompose_padding::{Bounds, box_of};

/// A box of the domain of a stage: variables with their extents, and what is added to them.
pub struct Subdomain {
    /// The variables, from zero.
    pub iters: Iters,
    /// Where they start, where that is not zero.
    starts: HashMap<Var, Dim>,
}

impl Subdomain {
    /// A value and indices of the stage, over this box.
    pub fn at(&self, value: &Expr, indices: &[Expr]) -> (Expr, Vec<Expr>) {
        let starts = self.starts.iter().map(|(v, at)| (v.clone(), v.expr() + at.typed(v.dtype())));
        let (mut subst, ranges) = (Subst::vars(starts), ranges(&self.iters));
        let indices = indices.iter().map(|i| simplify(&subst.expr(i), &ranges)).collect();
        (simplify_indices(&subst.expr(value), &ranges), indices)
    }
}

/// The most subdomains of a stage.
const MOST: usize = 16;

/// The boxes that the domain of a stage is cut into.
pub struct Subdomains {
    /// Where the pieces of each variable start, and how many values they have.
    pub pieces: Vec<Vec<(Dim, Dim)>>,
    /// The boxes: one for each choice of pieces, those of the last variable side by side.
    pub all: Vec<Subdomain>,
}

/// The subdomains of a stage. A variable is cut where the first and the last whole quotient of it begin and end,
/// and where a condition that needs another variable as well is decided, such as that of padding in
/// blocks: of `i * 16 + j < 65`, with `j < 16`, only `i = 4` leaves something open. The innermost one is cut
/// where minima and maxima of it change sides, too, as those of mirrored padding do. A variable of open extent is cut
/// where the condition of a choice of values begins and ceases to hold, or behind its last whole quotient.
pub fn subdomains(iters: &Iters, value: &Expr, indices: &[Expr]) -> Subdomains {
    let extents: HashMap<&Var, i64> = iters
        .iter()
        .filter_map(|(v, extent, _)| Some((v, i64::try_from(extent.known()?).ok()?)))
        .collect();
    let mut cuts: HashMap<Var, BTreeSet<i64>> = HashMap::default();
    let mut cut = |v: &Var, at: i64| {
        if extents.get(v).is_some_and(|n| (1..*n).contains(&at)) {
            cuts.entry(v.clone()).or_default().insert(at);
        }
    };
    let mut quotients: HashMap<Var, BTreeSet<i64>> = HashMap::default();
    let innermost = iters.last().and_then(|(v, ..)| Some((v, *extents.get(v)?)));
    for e in [value].into_iter().chain(indices) {
        e.any(|e| {
            let ExprKind::Binary(op, x, y) = e.kind() else { return false };
            match op {
                BinOp::FloorDiv | BinOp::FloorMod => {
                    if let (Some((v, shift)), Some(c @ 2..)) = (Linear::shifted(x), y.as_int()) {
                        let first = (c - shift.rem_euclid(c)) % c;
                        if let Some(n) = extents.get(&v) {
                            cut(&v, first);
                            cut(&v, first + (n - first).max(0) / c * c);
                        } else if first == 0 {
                            quotients.entry(v).or_default().insert(c);
                        }
                    }
                }
                BinOp::Lt | BinOp::Ge => decided(x, y, &extents, &mut cut),
                BinOp::Le | BinOp::Gt => decided(y, x, &extents, &mut cut),
                BinOp::Min | BinOp::Max => {
                    if let Some((v, n)) = innermost
                        && e.dtype().is_int()
                        && let Some(turns) = turns(e, v, n)
                    {
                        turns.into_iter().for_each(|at| cut(v, at));
                        return true;
                    }
                }
                _ => {}
            }
            false
        });
    }
    let mut chosen: HashMap<Var, [Dim; 2]> = HashMap::default();
    indices.iter().chain([value]).for_each(|e| choices(e, iters, &mut chosen));
    let mut subdomains = vec![Subdomain { iters: Vec::new(), starts: HashMap::default() }];
    let mut all = Vec::new();
    for (v, extent, kind) in iters {
        let places: Vec<Dim> = match (cuts.get(v), chosen.get(v)) {
            (Some(places), _) => places.iter().map(|at| at.dim()).collect(),
            (None, Some(ends)) => ends.iter().copied().filter(|at| *at != *extent).collect(),
            (None, None) => {
                quotients.get(v).and_then(|all| whole(*extent, all)).into_iter().collect()
            }
        };
        let places = Some(places).filter(|all| (all.len() + 1) * subdomains.len() <= MOST);
        let places = places.unwrap_or_default();
        let ends = places.iter().copied().chain([*extent]);
        let starts = [Dim::from(0)].into_iter().chain(places.iter().copied()).zip(ends);
        let pieces = starts.map(|(from, to)| (from, to - from)).filter(|(_, count)| *count != 0);
        let pieces: Vec<(Dim, Dim)> = pieces.collect();
        let pieces = if pieces.is_empty() { vec![(Dim::from(0), *extent)] } else { pieces };
        subdomains = subdomains
            .iter()
            .flat_map(|p| pieces.iter().map(|x| with_part(p, x, v, kind)))
            .collect();
        all.push(pieces);
    }
    Subdomains { pieces: all, all: subdomains }
}

/// Where the last whole quotient by divisors of one another ends; `None` where nothing is left behind it.
fn whole(extent: Dim, divisors: &BTreeSet<i64>) -> Option<Dim> {
    let last = divisors.last().filter(|last| divisors.iter().all(|c| *last % c == 0))?;
    let rest = extent.modulo(last.dim());
    (rest != 0).then(|| extent - rest)
}

fn with_part(
    around: &Subdomain,
    (start, extent): &(Dim, Dim),
    v: &Var,
    kind: &IterKind,
) -> Subdomain {
    let mut starts = around.starts.clone();
    if *start != 0 {
        starts.insert(v.clone(), *start);
    }
    let more = (v.clone(), *extent, *kind);
    Subdomain { iters: around.iters.iter().cloned().chain([more]).collect(), starts }
}

/// For each variable of open extent that alone decides a choice of values the first value for which its condition
/// holds, and the end of these.
fn choices(e: &Expr, iters: &Iters, found: &mut HashMap<Var, [Dim; 2]>) {
    let vars: Vec<&Var> = iters.iter().map(|i| &i.0).collect();
    e.any(|e| {
        let ExprKind::Select(cond, ..) = e.kind() else { return false };
        let Ok(bounds) = box_of(cond, &vars, |k| Ok(iters[k].1)) else { return false };
        for ((v, extent, _), bounds) in iters.iter().zip(bounds) {
            let Some(Bounds { from, end }) = bounds.filter(|_| extent.known().is_none()) else {
                continue;
            };
            if end.at_least(from.dim()) && extent.at_least(end) {
                found.entry(v.clone()).or_insert([from.dim(), end]);
            }
        }
        false
    });
}

/// Where `x < y` begins or ceases to depend on others than the variable that moves it most; nothing where
/// it depends on one variable.
fn decided(x: &Expr, y: &Expr, extents: &HashMap<&Var, i64>, cut: &mut impl FnMut(&Var, i64)) {
    if !x.dtype().is_int() || x.dtype().lanes != 1 {
        return;
    }
    let (Some(x), Some(y)) = (Linear::from_expr(x), Linear::from_expr(y)) else { return };
    let Some(sum) = x.plus(&y, -1) else { return };
    let mut terms = Vec::new();
    for (atom, k) in &sum.terms {
        let Some((v, n)) = atom.as_var().and_then(|v| Some((v, *extents.get(v)?))) else { return };
        terms.push((v, n, *k));
    }
    terms.sort_by_key(|(_, _, k)| std::cmp::Reverse(k.abs()));
    let [(v, _, k), others @ ..] = &terms[..] else { return };
    if others.is_empty() {
        return;
    }
    // The least and the greatest of all else; the sum is negative where the condition holds.
    let ends = others.iter().map(|(_, n, k)| (i128::from(*n) - 1) * k);
    let least = sum.constant + ends.clone().filter(|e| *e < 0).sum::<i128>();
    let most = sum.constant + ends.filter(|e| *e > 0).sum::<i128>();
    for end in [least, most] {
        // The least `v` with `k*v + end >= 0`, or the one behind the last.
        let at = if *k > 0 { -end.div_euclid(*k) } else { end.div_euclid(-k) + 1 };
        i64::try_from(at).into_iter().for_each(|at| cut(v, at));
    }
}

/// Where a value of a variable below `n` turns: in between it is linear, or what it is made of is. `None` where it
/// depends on something else.
fn turns(e: &Expr, v: &Var, n: i64) -> Option<BTreeSet<i64>> {
    let (op, x, y) = match e.kind() {
        ExprKind::Binary(op, x, y) => (op, x, y),
        ExprKind::Var(_) | ExprKind::Int(_) => return Some(BTreeSet::new()),
        _ => return None,
    };
    let mut all = turns(x, v, n)?;
    all.append(&mut turns(y, v, n)?);
    match op {
        BinOp::Add | BinOp::Sub | BinOp::Mul => return Some(all),
        BinOp::Min | BinOp::Max => {}
        _ => return None,
    }
    let difference = x.clone() - y.clone();
    let starts: Vec<i64> = [0].into_iter().chain(all.iter().copied()).collect();
    let ends = starts.iter().skip(1).copied().chain([n]);
    for (from, to) in starts.iter().zip(ends) {
        let (first, last) =
            (difference_at(*from, v, &difference)?, difference_at(to - 1, v, &difference)?);
        if first.signum() * last.signum() < 0 {
            // The first place at which the sign is another one, or the difference is zero.
            let steps = (to - 1 - from).checked_mul(first.checked_abs()?)?;
            let rise = last.checked_sub(first)?.checked_abs()?;
            all.insert(from + (steps + rise - 1) / rise);
        }
    }
    Some(all)
}

fn difference_at(k: i64, v: &Var, difference: &Expr) -> Option<i64> {
    let here = Subst::vars([(v.clone(), Expr::int(k, v.dtype()))]).expr(difference);
    simplify(&here, &Ranges::default()).as_int()
}
