//! The guards of a function that overcompute may remove, and which of them are asked for.

use std::collections::BTreeMap;

use tilewright_analysis::neutral::Floats;
use tilewright_ir::index;
use tilewright_ir::index::Ranges;
use tilewright_ir::{BinOp, Expr, ExprKind, ForKind, Span, Stmt, StmtKind, TensorFunc};
use tilewright_polyhedral::scop::{GuardId, Scop};

/// What to try.
#[derive(Clone, Copy, Debug, Default)]
pub struct OvercomputeOptions<'a> {
    /// Only guards of this block: inside of it, or around nothing else.
    pub block: Option<&'a str>,
    /// Take indices modulo the extent where only their range prevents the removal of a guard.
    pub wrap_indices: bool,
    /// Only guards that hold for at least half of what they guard, as those do that a split leaves,
    /// and those of vectorised loops, which run in whole vectors anyway. What is run more then
    /// costs little.
    pub tails: bool,
    /// What may be in memory. Zero times infinity is not zero: a product with padding of zeros is
    /// known only where the other side is finite.
    pub floats: Floats,
}

/// A function with its SCoP.
pub(super) struct Analysed {
    pub func: TensorFunc,
    pub scop: Scop,
}

impl Analysed {
    pub fn new(func: &TensorFunc) -> Analysed {
        Analysed { func: func.clone(), scop: Scop::extract(func) }
    }
}

/// A guard that might go.
pub(super) struct Guard {
    /// Number of guards around it.
    pub depth: usize,
    /// The statements under it.
    pub stmts: Vec<usize>,
    pub cond: Expr,
    pub span: Option<Span>,
}

/// The guards of a program that are asked for.
pub(super) fn guards(scop: &Scop, options: &OvercomputeOptions<'_>) -> BTreeMap<GuardId, Guard> {
    let mut all: BTreeMap<GuardId, Guard> = BTreeMap::new();
    for (k, stmt) in scop.stmts.iter().enumerate() {
        for (depth, (id, g)) in stmt.guards.iter().filter_map(|g| Some((g.id?, g))).enumerate() {
            let s = scop.text.get(id.place);
            if id.part > 0
                || matches!(s.map(Stmt::kind), Some(StmtKind::If { otherwise: Some(_), .. }))
            {
                continue;
            }
            let guard = all.entry(id).or_insert_with(|| Guard {
                depth,
                stmts: Vec::new(),
                cond: g.cond.clone(),
                span: s.and_then(Stmt::span),
            });
            guard.stmts.push(k);
        }
    }
    if let Some(name) = options.block {
        all.retain(|_, g| {
            g.stmts
                .iter()
                .all(|k| scop.stmts.get(*k).is_some_and(|s| s.blocks.iter().any(|b| **b == *name)))
        });
    }
    if options.tails {
        all.retain(|_, g| is_tail(scop, g));
    }
    all
}

/// Whether a guard holds mostly, or is in a vectorised loop.
fn is_tail(scop: &Scop, guard: &Guard) -> bool {
    let Some(stmt) = guard.stmts.first().and_then(|k| scop.stmts.get(*k)) else { return false };
    let mut ranges = Ranges::default();
    stmt.loops.iter().for_each(|l| ranges.bind_loop(&l.var, &l.range));
    let vectors = stmt.loops.iter().filter(|l| l.kind == ForKind::Vectorized).map(|l| &l.var);
    guard
        .cond
        .conjuncts()
        .iter()
        .all(|c| holds_mostly(c, &ranges).unwrap_or(false) || c.mentions_any(vectors.clone()))
}

/// Whether a comparison of linear indices holds for at least half of the values that their
/// difference has.
fn holds_mostly(cond: &Expr, ranges: &Ranges) -> Option<bool> {
    let ExprKind::Binary(op, a, b) = cond.kind() else { return None };
    let (x, y) = (index::linear(a, ranges)?, index::linear(b, ranges)?);
    let (d, below) = match op {
        BinOp::Lt => (x.plus(&y, -1)?, 0),
        BinOp::Le => (x.plus(&y, -1)?, 1),
        BinOp::Gt => (y.plus(&x, -1)?, 0),
        BinOp::Ge => (y.plus(&x, -1)?, 1),
        _ => return None,
    };
    let values = d.bounds(ranges)?;
    Some(below - values.lo > values.hi - below)
}
