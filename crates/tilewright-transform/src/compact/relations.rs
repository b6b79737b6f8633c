//! Accesses of a buffer compared with one another: whether they meet, by digits of a loop's variable, and by sets of the
//! cells that each touches.

use std::cell::OnceCell;

use tilewright_analysis::footprint::Cells;
use tilewright_ir::condition::parts;
use tilewright_ir::index::{Interval, Linear, Ranges, divided};
use tilewright_ir::{BinOp, Expr, ExprKind, Range, Var};
use tilewright_polyhedral::{AccessRelation, Domain, Engine};

use super::reach;

/// An access that is compared with others.
pub(super) struct Compared<'c> {
    pub cells: &'c Cells,
    pub axes: Vec<ComparedIndex>,
    /// As a relation, where intervals do not tell it apart.
    pub points: OnceCell<AccessRelation>,
}

/// An index of an access that is compared with others.
pub(super) struct ComparedIndex {
    pub terms: Option<IndexTerms>,
    pub ends: OnceCell<Option<(Linear, Linear)>>,
}

impl ComparedIndex {
    /// The least and the greatest value over the loops of the access.
    pub fn ends(&self, access: &Compared, ranges: &Ranges) -> Option<&(Linear, Linear)> {
        self.ends
            .get_or_init(|| reach::ends(&self.terms.as_ref()?.all, &access.cells.vars, ranges))
            .as_ref()
    }
}

/// Accesses as relations, made where intervals do not tell them apart, each once.
pub(super) struct Relations<'a> {
    /// The loop of which other iterations count, with its range.
    var: Option<(&'a Var, Option<Range>)>,
    engine: Engine,
    known: Vec<Expr>,
}

impl<'a> Relations<'a> {
    /// Accesses where some conditions hold, in the iterations of a loop, if one is asked about, that has a range.
    pub fn new(known: Vec<Expr>, var: Option<(&'a Var, Option<Range>)>) -> Self {
        Relations { var, engine: Engine::new(), known }
    }

    /// Whether a write and a read do not meet: at all, or in other iterations.
    pub fn are_disjoint(&self, w: &Compared, r: &Compared) -> bool {
        if !self.depends_on_var(w.cells) && !self.depends_on_var(r.cells)
            || matches!(self.var, Some((_, None)))
        {
            return false;
        }
        let engine = &self.engine;
        let [w, r] = [w, r]
            .map(|access| access.points.get_or_init(|| self.relation_of(access.cells, engine)));
        let (r, names) = r.elsewhere();
        match self.var.as_ref().map(|(var, _)| (var, names.get(*var))) {
            None => w.is_disjoint(&r, &[]),
            Some((var, Some(other))) => w.is_disjoint(&r, &[var.expr().not_equal(other)]),
            Some((_, None)) => false,
        }
    }

    /// Without the variable in an index, only guards could keep iterations apart.
    fn depends_on_var(&self, c: &Cells) -> bool {
        self.var
            .as_ref()
            .is_none_or(|(v, _)| c.indices.iter().chain(&c.guards).any(|e| e.mentions(v)))
    }

    fn relation_of(&self, c: &Cells, engine: &Engine) -> AccessRelation {
        let points = domain(engine, c, &self.known);
        let points = match &self.var {
            Some((var, Some(range))) => points.with_var(var, range),
            _ => points,
        };
        AccessRelation::new(&points, &c.indices)
    }
}

/// A linear index as the sum of what is known outside of a statement, a multiple of one variable,
/// and what differs inside.
pub(super) struct IndexTerms {
    pub all: Linear,
    pub outer: Linear,
    pub step: i128,
    /// The least and the greatest value of what differs inside, where they are known.
    pub inner: Option<Interval>,
    /// Whether both are reached, in loops that all run.
    pub reached: bool,
}

/// The points of an access, as far as memory does not decide about them.
pub(super) fn domain(engine: &Engine, cells: &Cells, known: &[Expr]) -> Domain {
    let mut cells = cells.clone();
    cells.guards.retain(|e| e.effects().constant());
    cells.domain(engine, known)
}

/// Whether two accesses are of one cell in one iteration at most: the quotient of the variable is an index of both,
/// and so are the digits of its remainder, or guards leave both the same one.
pub(super) fn is_told_by_digits(one: &Cells, other: &Cells, var: &Var) -> bool {
    let pairs = one.indices.iter().zip(&other.indices);
    let both: Vec<Digit> = pairs
        .filter_map(|(a, b)| Digit::of(a, var).filter(|d| Digit::of(b, var) == Some(*d)))
        .collect();
    let left = |cells, by| remainder_left(cells, var, by);
    both.iter().filter(|d| d.modulus.is_none()).any(|quotient| {
        let mut by = quotient.by;
        loop {
            if by == 1 || left(one, by).is_some_and(|rest| left(other, by) == Some(rest)) {
                return true;
            }
            // The quotient by less is that by more, and a digit.
            let next =
                both.iter().find(|d| d.modulus.and_then(|m| m.checked_mul(d.by)) == Some(by));
            match next {
                Some(digit) if digit.by < by => by = digit.by,
                _ => return false,
            }
        }
    })
}

/// A digit of a variable: the remainder of its quotient, or all of the quotient.
#[derive(Clone, Copy, PartialEq)]
struct Digit {
    by: i128,
    modulus: Option<i128>,
}

impl Digit {
    /// The digit that an expression is.
    fn of(e: &Expr, var: &Var) -> Option<Digit> {
        let (x, modulus) = match divided(e, BinOp::FloorMod) {
            Some((x, modulus)) => (x, Some(modulus)),
            None => (e, None),
        };
        let (x, by) = divided(x, BinOp::FloorDiv).unwrap_or((x, 1));
        (x.as_var() == Some(var) && by > 0).then_some(Digit { by, modulus })
    }
}

/// The only remainder of a variable by a number that the guards of an access leave.
fn remainder_left(cells: &Cells, var: &Var, by: i128) -> Option<i128> {
    let mut left = Interval::new(0, by - 1);
    for (part, holds) in cells.guards.iter().flat_map(|guard| parts(guard, true)) {
        let ExprKind::Binary(op @ (BinOp::Lt | BinOp::Ge), a, b) = part.kind() else { continue };
        let rest = divided(a, BinOp::FloorMod).filter(|(x, m)| x.as_var() == Some(var) && *m == by);
        let (Some(_), Some(n)) = (rest, b.as_int()) else { continue };
        let n = i128::from(n);
        left = left.meet(if (*op == BinOp::Lt) == holds {
            Interval::new(left.lo, n - 1)
        } else {
            Interval::new(n, left.hi)
        });
    }
    (left.lo == left.hi).then_some(left.lo)
}

/// Whether what differs inside of a statement takes all values between the least and the greatest one.
pub(super) fn is_dense(index: &IndexTerms, cells: &Cells) -> bool {
    let inner = index.all.terms.iter().filter_map(|(atom, by)| {
        let (_, range) = cells.vars.iter().find(|(v, _)| atom.as_var() == Some(v))?;
        Some((by.abs(), i128::from(range.extent.as_int()?)))
    });
    let mut steps: Vec<(i128, i128)> = inner.collect();
    steps.sort_unstable();
    let reach = steps.into_iter().try_fold(1i128, |reach, (by, count)| {
        (by <= reach).then(|| reach.saturating_add(by.saturating_mul(count - 1)))
    });
    reach.is_some()
}
