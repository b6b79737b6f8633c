//! Guards go where running without them changes nothing (RFC 0077, "overcompute").
//!
//! ```text
//! for io, ii in grid(4, 4):
//!     if 4 * io + ii < 14:                 # goes: what B[3, 2] and B[3, 3] get
//!         B[io, ii] = f(io, ii)            # without it is overwritten below
//! for io, ii in grid(4, 4):                # before anything reads it
//!     if io == 3 and ii >= 2:
//!         B[io, ii] = 0
//! ```
//!
//! Without a guard, its body has more instances: those where the condition is false. They may be
//! added if they are no-ops (rule 4 of `docs/semantics.md`), each store for one of three reasons:
//!
//! * nothing but other added instances reads what it writes, because it is overwritten (by
//!   `T.undef()` too) or is freed before;
//! * it writes the value that its cell holds;
//! * what it reads is known, from assumptions and other stores, and makes the value that of the
//!   cell: zero in a sum, one in a product, minus infinity in a maximum
//!   ([`tilewright_analysis::neutral`]).
//!
//! An update `B[i] = f(B[i])` passes on what its cell holds, so that its users are the readers of the
//! cell later, until something else is written: neither its read nor its write has to be followed.
//!
//! Guards are tried together (`trial`), the innermost ones first.
//!
//! Of a guard that stays, parts may go (`parts`).
//!
//! An `if` with two sides, and an `if_then_else` in a stored value, are one side alone if that does
//! the same as the other where the other runs (`sides`).
//!
//! Where added instances may not run at all (`added`), or would read cells that may hold nothing
//! (those of an argument too, unless they are read anyway, or an assumption permits it), or would use
//! copies of such cells (`copies`), the guard stays too. Every guard that stays has a remark with the missing fact and a point at which it is
//! missing.

mod added;
mod branch;
mod copies;
mod parts;
mod sides;
mod trial;
mod unchanged;

pub use self::branch::{PASS as WAY_BACK, remove_overcompute};

use std::collections::BTreeMap;

use tilewright_ir::{
    BinOp, Error, Expr, ExprKind, ForKind, Remarks, Result, Span, Stmt, StmtKind, TensorFunc,
};

use self::trial::Trial;
use crate::pass::{Flag, Pass, Run};
use tilewright_analysis::index;
pub use tilewright_analysis::neutral::Floats;
use tilewright_analysis::scop::{GuardId, Scop};
use tilewright_ir::interval::Ranges;

/// Whether floats may be taken to be finite.
const FINITE: Flag = Flag {
    name: "finite",
    summary: "floats in memory are neither infinite nor NaN, so that zero times one is zero",
    default: false,
};

/// Whether indices may change.
const WRAP: Flag = Flag {
    name: "wrap_indices",
    summary: "take indices modulo the extent where only their range is in the way",
    default: false,
};

/// `remove_branching_through_overcompute` by name.
pub const PASS: Pass = Pass {
    name: "remove_branching_through_overcompute",
    summary: "remove guards whose bodies may run everywhere, because that changes nothing",
    options: &[
        &FINITE,
        &WRAP,
        &Flag { name: "use_dataflow_analysis", summary: "no effect: always done", default: true },
    ],
    run: Run::Tensor(|f, given, why| {
        let floats = if given.get(&FINITE)? { Floats::Finite } else { Floats::Any };
        let wrap_indices = given.get(&WRAP)?;
        let options = OvercomputeOptions { wrap_indices, floats, ..OvercomputeOptions::default() };
        remove_branching(f, &options, why)
    }),
};

/// `use_assume_to_reduce_branches` by name.
pub const ASSUME: Pass = Pass {
    name: "use_assume_to_reduce_branches",
    summary: "remove_branching_through_overcompute, by the name that TVM has for a part of it",
    options: &[],
    run: Run::Tensor(|f, _, why| remove_branching(f, &OvercomputeOptions::default(), why)),
};

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

/// Removes the guards that may go.
///
/// # Errors
/// `Toolchain` where libisl is missing.
pub fn remove_branching(
    func: &TensorFunc,
    options: &OvercomputeOptions<'_>,
    why: &mut Remarks,
) -> Result<TensorFunc> {
    let mut now = Analysed::of(func)?;
    let mut depth = None;
    loop {
        let guards = guards(&now.scop, options);
        let deepest = guards.values().map(|g| g.depth).filter(|d| depth.is_none_or(|k| *d < k));
        // Sides last: a constant that one of them stores is of use to the guards.
        let Some(deepest) = deepest.max() else {
            let now = parts::remove_parts(now, options, why)?;
            return match options.tails {
                true => Ok(now.func),
                false => sides::one_side(now, options, why),
            };
        };
        depth = Some(deepest);
        let these = guards.into_iter().filter(|(_, g)| g.depth == deepest);
        let mut trial = Trial::new(&now.scop, these, options);
        trial.settle(true);
        why.append(&mut trial.remarks);
        if !trial.guards.is_empty() {
            now = Analysed::of(&trial.without_guards(&now.func)?)?;
        }
    }
}

/// A function with its SCoP.
struct Analysed {
    func: TensorFunc,
    scop: Scop,
}

impl Analysed {
    fn of(func: &TensorFunc) -> Result<Analysed> {
        Ok(Analysed { func: func.clone(), scop: Scop::of(func)? })
    }
}

/// The function without the guard at a place; otherwise why it stays. `reads` says whether it
/// matters that what is read more may be read.
fn without(
    func: &TensorFunc,
    place: usize,
    options: &OvercomputeOptions<'_>,
    reads: bool,
) -> Result<std::result::Result<TensorFunc, Error>> {
    let scop = Scop::of(func)?;
    let id = GuardId { place, part: 0 };
    let everywhere = OvercomputeOptions { block: None, ..*options };
    let this = guards(&scop, &everywhere).into_iter().filter(|(g, _)| *g == id);
    let mut trial = Trial::new(&scop, this, options);
    trial.settle(reads);
    Ok(match trial.guards.is_empty() {
        false => Ok(trial.without_guards(func)?),
        true => Err(trial.remarks.pop().unwrap_or_else(|| Error::refused("it guards nothing"))),
    })
}

/// A guard that might go.
struct Guard {
    /// Number of guards around it.
    depth: usize,
    /// The statements under it.
    stmts: Vec<usize>,
    cond: Expr,
    span: Option<Span>,
}

/// The guards of a program that are asked for.
fn guards(scop: &Scop, options: &OvercomputeOptions<'_>) -> BTreeMap<GuardId, Guard> {
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
        let inside =
            |k: &usize| scop.stmts.get(*k).is_some_and(|s| s.blocks.iter().any(|b| **b == *name));
        all.retain(|_, g| g.stmts.iter().all(inside));
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
