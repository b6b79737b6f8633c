//! `rfactor`: a reduction in two steps, over one of its loops last.
//!
//! ```text
//! for i, ko, ki: with init: C[i] = 0                        rfactor(ki, factor_axis=1)
//!                C[i] += A[i, ko * 4 + ki]
//!
//! for i, ko, ki: with init: C_rf[i, ki] = 0
//!                C_rf[i, ki] += A[i, ko * 4 + ki]           ki is spatial here
//! for i, ki:     with init: C[i] = 0
//!                C[i] += C_rf[i, ki]
//! ```
//!
//! The order of the reduction changes, which the user has asked for. A partial result begins
//! with the neutral element of the operator, so that the initialisation counts once; for `min` and
//! `max` it may count often. Where a partial result may have nothing to combine (`ko * 4 + ki < n` for
//! an open `n`), all of them begin in a nest of their own, before the others.

use std::sync::Arc;

use tilewright_analysis::footprint::known_around;
use tilewright_ir::update::{Combine, reads_elsewhere, update};
use tilewright_ir::visit::{Subst, free_vars};
use tilewright_ir::{
    BinOp, Block, Buffer, Error, Expr, ExprKind, Fold, ForKind, IterKind, IterVar, Range, Result,
    Stmt, StmtKind, TensorFunc, Var,
};
use tilewright_polyhedral::{Engine, Proof};

use crate::copying::{Change, compact};
use crate::cursor::{
    BlockCursor, as_block, as_loop, block_cursor, find, loop_cursor, loop_ranges, runs,
};
use crate::inline::removed;
use crate::primitive::primitives;
use crate::reduction::{First, check_once, over_both};
use crate::schedule::Edited;
use crate::value::{BlockRef, LoopRef};
use tilewright_transform::names::fresh_block_name;

primitives! {
    /// Lets the reduction under a loop keep a partial result for each iteration, in a new axis of
    /// a new buffer (counted from the end where negative), and combine those afterwards. Returns
    /// the block that computes the partial results, `NAME_rf`; where some may have nothing to
    /// combine, they begin in a block before it, `NAME_rf_init`.
    ///
    /// # Errors
    /// `Refused` where the loop is not one of a reduction by `+`, `*`, `min` or `max` alone, the
    /// reduction does not begin where its loops do, or may have nothing to combine as a whole.
    rfactor(l "loop": &LoopRef, factor_axis: i64) -> BlockRef, edit |f| {
        let at = block_under(f, l)?;
        rfactor(f, &at, l, factor_axis).map_err(|e| e.at(at.stmt.span()))
    };
}

/// The only block under a loop.
fn block_under(func: &TensorFunc, l: &LoopRef) -> Result<BlockCursor> {
    let blocks = find(&loop_cursor(func, l)?.stmt, |s| as_block(s).is_some());
    let outermost = blocks.iter().filter(|s| s.around.iter().all(|a| as_block(a).is_none()));
    match outermost.filter_map(|s| as_block(&s.stmt)).collect::<Vec<_>>()[..] {
        [one] => block_cursor(func, &one.name),
        ref all => Err(Error::refused(format!(
            "{} blocks are under the loop `{}`, not one",
            all.len(),
            l.var
        ))),
    }
}

/// A reduction and what its loops are for.
struct Reduction<'a> {
    at: &'a BlockCursor,
    /// The loops that hold nothing else, outermost first.
    loops: &'a [Stmt],
    buffer: &'a Buffer,
    indices: &'a [Expr],
    value: &'a Expr,
    init: &'a Stmt,
    op: BinOp,
}

impl<'a> Reduction<'a> {
    fn new(at: &'a BlockCursor) -> Result<Self> {
        let (buffer, indices, value) = at.store()?;
        let Some(init) = &at.block.init else {
            return Err(at.refuse("has no initialisation"));
        };
        let op = update(buffer, indices, value)
            .and_then(Combine::binary)
            .filter(|op| matches!(op, BinOp::Add | BinOp::Mul | BinOp::Min | BinOp::Max));
        let Some(op) = op.filter(|_| !reads_elsewhere(buffer, indices, value)) else {
            let buffer = &buffer.name;
            return Err(
                at.refuse(format!("does not update `{buffer}` by `+`, `*`, `min` or `max`"))
            );
        };
        at.nothing_opaque()?;
        let gone = removed(at);
        let from = at.around.iter().position(|s| s.ptr_eq(&gone)).unwrap_or(at.around.len());
        let loops = &at.around[from..];
        if let Some(s) = loops.iter().find(|s| as_loop(s).is_none()) {
            return Err(at.refuse("runs under a condition").at(s.span()));
        }
        Ok(Reduction { at, loops, buffer, indices, value, init, op })
    }

    /// The variables that the bindings of one kind of iteration variables use.
    fn used(&self, kind: IterKind) -> Vec<Var> {
        self.at.of_kind(kind).flat_map(|(_, e)| free_vars(e)).collect()
    }

    /// What combining nothing gives.
    fn neutral(&self) -> Result<Expr> {
        let dtype = self.value.dtype();
        match (self.op, self.init.kind()) {
            (BinOp::Add, _) => Ok(Expr::constant(0.0, dtype)),
            (BinOp::Mul, _) => Ok(Expr::constant(1.0, dtype)),
            (_, StmtKind::Store { value, .. }) => Ok(value.clone()),
            _ => Err(Error::internal("the initialisation is not a store")),
        }
    }

    /// Conditions that hold for a cell, whatever the reduction.
    fn spatial_conditions(&self, reduced: &[Var]) -> Vec<Expr> {
        let mut all = self.at.predicate.conjuncts();
        all.retain(|e| !e.mentions_any(reduced));
        all
    }

    /// All of them.
    fn spatial_predicate(&self) -> Expr {
        Expr::all(self.spatial_conditions(&self.used(IterKind::Reduce)))
    }

    /// A statement in the loops without those of the reduction, but for one, which is serial.
    fn without_steps(&self, l: &LoopRef, body: Stmt) -> Stmt {
        let spatial = self.used(IterKind::Spatial);
        let nest = self.loops.iter().rev().fold(body, |body, s| match s.kind() {
            StmtKind::For { var, range, .. } if *var == l.var => {
                Stmt::for_loop(var, range.clone(), ForKind::Serial, body)
            }
            StmtKind::For { var, range, kind, .. } if spatial.contains(var) => {
                Stmt::for_loop(var, range.clone(), kind.clone(), body)
            }
            _ => body,
        });
        Subst::refresh().stmt(&nest)
    }
}

fn rfactor(
    func: &TensorFunc,
    cursor: &BlockCursor,
    l: &LoopRef,
    factor_axis: i64,
) -> Result<Edited<BlockRef>> {
    let r = Reduction::new(cursor)?;
    let outer = known_around(&cursor.around[..cursor.around.len() - r.loops.len()]);
    let takes_empty = func.takes_empty();
    let (range, begin) = check(&r, l, (&outer, takes_empty))?;
    let rank = i64::try_from(r.indices.len()).unwrap_or(i64::MAX);
    let at = if factor_axis < 0 { factor_axis + rank + 1 } else { factor_axis };
    let at = usize::try_from(at).ok().filter(|at| *at <= r.indices.len()).ok_or_else(|| {
        Error::refused(format!(
            "{factor_axis} is no place for a new axis among the {rank} of `{}`",
            r.buffer.name
        ))
    })?;
    let mut shape = r.buffer.shape.clone();
    shape.insert(at, range.extent.clone().cast(l.var.dtype()));
    let partial = compact(r.buffer, &format!("{}_rf", r.buffer.name), shape);
    let partial = partial.derive(|d| d.axis_separators.clear());
    let name = fresh_block_name(func, &format!("{}_rf", cursor.block.name));
    let mut nests = Vec::new();
    if begin == Begin::Before {
        let name = fresh_block_name(func, &format!("{name}_init"));
        nests.push(begun(&r, l, &range, &partial, at, name)?);
    }
    nests.push(factored(&r, l, &range, &partial, at, (&name, begin))?);
    nests.push(combined(&r, l, &range, &partial, at)?);
    let whole = r.loops.first().unwrap_or(&cursor.stmt).clone();
    let change = Change {
        scope: cursor.scope(),
        allocs: vec![partial],
        swap: vec![(whole, Stmt::seq(nests))],
        ..Change::default()
    };
    let out = BlockRef { func: l.func.clone(), name };
    Ok((change.apply(func), out))
}

/// Where partial results begin.
#[derive(Clone, Copy, PartialEq)]
enum Begin {
    /// With the first value that each combines.
    First,
    /// Before all of them, since some may combine none.
    Before,
}

/// Refuses where the two steps would not give the same; the values of the loop, and where partial results
/// begin.
fn check(
    r: &Reduction,
    l: &LoopRef,
    (outer, takes_empty): (&[Expr], bool),
) -> Result<(Range, Begin)> {
    let name = &r.at.block.name;
    let (spatial, reduced) = (r.used(IterKind::Spatial), r.used(IterKind::Reduce));
    let mut found = None;
    let mut dropped = Vec::new();
    for (v, range, _) in r.loops.iter().filter_map(as_loop) {
        if spatial.contains(v) && reduced.contains(v) {
            return Err(over_both(v));
        }
        let mut bounds = free_vars(&range.min);
        bounds.extend(free_vars(&range.extent));
        if let Some(other) = bounds.iter().find(|v| reduced.contains(v)) {
            return Err(Error::refused(format!(
                "the bounds of the loop `{v}` depend on the loop `{other}` of the reduction"
            )));
        }
        if !spatial.contains(v) {
            dropped.push(v.clone());
            let begins = runs(&range.extent) || takes_empty && reduced.contains(v);
            if !begins {
                return Err(Error::refused(format!("the loop `{v}` may run for no iteration")));
            }
        }
        if *v == l.var {
            found = Some((range.clone(), bounds));
        }
    }
    let Some((range, bounds)) = found.filter(|_| reduced.contains(&l.var)) else {
        return Err(Error::refused(format!(
            "the loop `{}` is not one of the reduction of the block `{name}`, or holds other \
             statements",
            l.var
        )));
    };
    if let Some(v) = reduced.iter().find(|v| !r.loops.iter().any(|s| s.loop_var() == Some(v))) {
        return Err(Error::refused(format!("the reduction of `{name}` goes on over `{v}`")));
    }
    if range.min.as_int() != Some(0)
        || bounds.iter().any(|v| r.loops.iter().any(|s| s.loop_var() == Some(v)))
    {
        return Err(Error::refused(format!(
            "the loop `{}` does not run from zero to a fixed end",
            l.var
        )));
    }
    let mut first = First::new(r.loops, &dropped);
    for (i, e) in r.at.of_kind(IterKind::Reduce) {
        if !first.expr_at(&e.clone().equal(i.domain.min.clone())).is_true() {
            return Err(Error::refused(format!(
                "`{}` is not known to begin at {} where the loops begin",
                i.var, i.domain.min
            )));
        }
    }
    check_once(r.at, r.init, r.loops, &dropped, outer)?;
    // A partial result begins where all other loops of the reduction do, and each result where all do.
    let whole = First::new(r.loops, &dropped).expr_at(&r.at.predicate);
    dropped.retain(|v| *v != l.var);
    let start = First::new(r.loops, &dropped).expr_at(&r.at.predicate);
    let guards = [outer.to_vec(), r.spatial_conditions(&reduced)].concat();
    if start.is_true() {
        return Ok((range, Begin::First));
    }
    let first = holds_after(&start, &|_| false, r, &dropped, &guards)?;
    if takes_empty && !first.is_yes() {
        return Ok((range, Begin::Before));
    }
    if !first.is_yes() && holds_after(&whole, &|v| *v == l.var, r, &dropped, &guards)?.is_yes() {
        return Ok((range, Begin::Before));
    }
    match first {
        Proof::Yes => Ok((range, Begin::First)),
        Proof::No { witness } => Err(Error::refused(format!(
            "a partial result of `{name}` would have no first value, where `{start}` does not hold"
        ))
        .note(format!("at {witness}"))),
        Proof::Unknown(why) => Err(Error::refused(format!(
            "it is not known whether each partial result of `{name}` has a first value"
        ))
        .note(why.to_string())),
    }
}

fn holds_after(
    cond: &Expr,
    fixed: &dyn Fn(&Var) -> bool,
    r: &Reduction<'_>,
    dropped: &[Var],
    guards: &[Expr],
) -> Result<Proof> {
    let mut kept = loop_ranges(r.loops);
    kept.retain(|(v, _)| !dropped.contains(v) && !fixed(v));
    Ok(Engine::new().domain_of(&kept, guards).prove(cond))
}

/// `indices` with one more.
fn with_axis(indices: &[Expr], at: usize, index: &Var) -> Vec<Expr> {
    let mut out = indices.to_vec();
    out.insert(at, index.expr());
    out
}

/// The nest that computes the partial results. Iteration variables over the loop become spatial
/// there, one for each loop in their bindings.
fn factored(
    r: &Reduction,
    l: &LoopRef,
    range: &Range,
    partial: &Buffer,
    at: usize,
    (name, begin): (&Arc<str>, Begin),
) -> Result<Stmt> {
    let own = block_var(&l.var);
    let mut iters =
        vec![IterVar { var: own.clone(), domain: range.clone(), kind: IterKind::Spatial }];
    let mut bindings = vec![l.var.expr()];
    let mut named = vec![(l.var.clone(), own.expr())];
    let mut gone = Subst::default();
    for (i, e) in r.at.pairs() {
        if i.kind != IterKind::Reduce || !free_vars(e).contains(&l.var) {
            iters.push(i.clone());
            bindings.push(e.clone());
            continue;
        }
        let used = free_vars(e);
        for (v, range, _) in r.loops.iter().filter_map(as_loop) {
            if used.contains(v) && named.iter().all(|(x, _)| x != v) {
                let var = block_var(v);
                named.push((v.clone(), var.expr()));
                iters.push(IterVar { var, domain: range.clone(), kind: IterKind::Reduce });
                bindings.push(v.expr());
            }
        }
        let value = Subst::vars(named.iter().cloned()).expr(e);
        gone.vars.insert(i.var.clone(), value.cast(i.var.dtype()));
    }
    let indices = with_axis(r.indices, at, &own);
    let value = r.value.replace(|e| match e.kind() {
        ExprKind::Load(b, _) if b == r.buffer => Some(Expr::load(partial, indices.clone())),
        _ => None,
    });
    let block = Block {
        name: name.clone(),
        iters,
        reads: None,
        writes: None,
        annotations: r.at.block.annotations.clone(),
        init: match begin {
            Begin::First => Some(Stmt::store(partial, indices.clone(), r.neutral()?)),
            Begin::Before => None,
        },
        body: gone.stmt(&Stmt::store(partial, indices, value)),
        ..Block::new("", Stmt::nop())
    };
    let body = Stmt::block(bindings, r.at.predicate.clone(), block);
    let nest = r.loops.iter().rev().fold(body, |body, s| s.with_body(body));
    Ok(Subst::refresh().stmt(&nest))
}

fn block_var(v: &Var) -> Var {
    Var::new(format!("v{v}"), v.dtype())
}

/// The nest that begins them.
fn begun(
    r: &Reduction,
    l: &LoopRef,
    range: &Range,
    partial: &Buffer,
    at: usize,
    name: Arc<str>,
) -> Result<Stmt> {
    let own = Var::new(format!("v{}", l.var.name()), l.var.dtype());
    let mut iters =
        vec![IterVar { var: own.clone(), domain: range.clone(), kind: IterKind::Spatial }];
    let mut bindings = vec![l.var.expr()];
    for (i, e) in r.at.of_kind(IterKind::Spatial) {
        iters.push(i.clone());
        bindings.push(e.clone());
    }
    let store = Stmt::store(partial, with_axis(r.indices, at, &own), r.neutral()?);
    let block = Block { name, iters, ..Block::new("", store) };
    Ok(r.without_steps(l, Stmt::block(bindings, r.spatial_predicate(), block)))
}

/// The nest that combines them.
fn combined(
    r: &Reduction,
    l: &LoopRef,
    range: &Range,
    partial: &Buffer,
    at: usize,
) -> Result<Stmt> {
    let own = Var::new(format!("v{}", l.var.name()), l.var.dtype());
    let mut iters =
        vec![IterVar { var: own.clone(), domain: range.clone(), kind: IterKind::Reduce }];
    let mut bindings = vec![l.var.expr()];
    for (i, e) in r.at.of_kind(IterKind::Spatial) {
        iters.push(i.clone());
        bindings.push(e.clone());
    }
    let (target, cell) = (
        Expr::load(r.buffer, r.indices.to_vec()),
        Expr::load(partial, with_axis(r.indices, at, &own)),
    );
    let block = Block {
        name: r.at.block.name.clone(),
        iters,
        annotations: r.at.block.annotations.clone(),
        init: Some(r.init.clone()),
        ..Block::new(
            "",
            Stmt::store(r.buffer, r.indices.to_vec(), Expr::binary(r.op, target, cell)),
        )
    };
    Ok(r.without_steps(l, Stmt::block(bindings, r.spatial_predicate(), block)))
}
