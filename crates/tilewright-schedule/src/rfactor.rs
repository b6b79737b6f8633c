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
//! `max` it may count often.

use std::sync::Arc;

use tilewright_analysis::footprint::known_around;
use tilewright_ir::update::{Combine, reads_elsewhere, update};
use tilewright_ir::visit::{Subst, free_vars};
use tilewright_ir::{
    BinOp, Block, Buffer, Error, Expr, ExprKind, Fold, ForKind, IterKind, IterVar, Range, Result,
    Stmt, StmtKind, TensorFunc, Var,
};
use tilewright_sets::{Engine, Proof};

use crate::cache::the_block;
use crate::copying::Change;
use crate::cursor::{Cursor, as_block, as_loop, find, fresh_block_name, loop_cursor};
use crate::inline::removed;
use crate::primitive::primitives;
use crate::reduction::{First, check_once};
use crate::schedule::Edited;
use crate::value::{BlockRef, LoopRef};

primitives! {
    /// Lets the reduction under a loop keep a partial result for each iteration, in a new axis of
    /// a new buffer (counted from the end where negative), and combine those afterwards. Returns
    /// the block that computes the partial results, `NAME_rf`.
    ///
    /// # Errors
    /// `Refused` where the loop is not one of a reduction by `+`, `*`, `min` or `max` alone, the
    /// reduction does not begin where its loops do, or a partial result would not begin.
    rfactor(l "loop": &LoopRef, factor_axis: i64) -> BlockRef, edit |f| rfactor(f, l, factor_axis);
}

/// The only block under a loop.
fn block_under(func: &TensorFunc, l: &LoopRef) -> Result<(Cursor, Arc<Block>)> {
    let target = loop_cursor(func, l)?;
    let blocks = find(&target.stmt, |s| as_block(s).is_some());
    let outermost: Vec<&Cursor> =
        blocks.iter().filter(|s| s.around.iter().all(|a| as_block(a).is_none())).collect();
    match outermost[..] {
        [one] => {
            let name = as_block(&one.stmt).map(|b| b.name.clone());
            let name = name.ok_or_else(|| Error::internal("a block cursor is no block"))?;
            the_block(func, &BlockRef { func: l.func.clone(), name })
        }
        _ => Err(Error::refused(format!(
            "{} blocks are under the loop `{}`, not one",
            outermost.len(),
            l.var.name()
        ))
        .at(target.stmt.span())),
    }
}

/// A reduction and what its loops are for.
struct Reduction<'a> {
    block: &'a Block,
    bindings: &'a [Expr],
    predicate: &'a Expr,
    /// The loops that hold nothing else, outermost first.
    loops: Vec<&'a Stmt>,
    buffer: &'a Buffer,
    indices: &'a [Expr],
    value: &'a Expr,
    init: &'a Stmt,
    op: BinOp,
}

impl<'a> Reduction<'a> {
    fn new(cursor: &'a Cursor, block: &'a Block) -> Result<Self> {
        let refuse = |why: String| Err(Error::refused(why));
        let StmtKind::Block { bindings, predicate, .. } = cursor.stmt.kind() else {
            return Err(Error::internal("a block cursor is no block"));
        };
        let name = &block.name;
        let StmtKind::Store { buffer, indices, value } = block.body.kind() else {
            return refuse(format!("the block `{name}` does not consist of one store"));
        };
        let Some(init) = &block.init else {
            return refuse(format!("the block `{name}` has no initialisation"));
        };
        let op = update(buffer, indices, value)
            .and_then(Combine::binary)
            .filter(|op| matches!(op, BinOp::Add | BinOp::Mul | BinOp::Min | BinOp::Max));
        let Some(op) = op.filter(|_| !reads_elsewhere(buffer, indices, value)) else {
            return refuse(format!(
                "the block `{name}` does not update `{}` by `+`, `*`, `min` or `max`",
                buffer.name
            ));
        };
        if !block.allocs.is_empty() || !block.matches.is_empty() {
            return refuse(format!("the block `{name}` allocates or views buffers"));
        }
        if let Some(i) = block.iters.iter().find(|i| i.kind == IterKind::Opaque) {
            return refuse(format!("`{}` of `{name}` is opaque", i.var.name()));
        }
        let gone = removed(cursor);
        let from =
            cursor.around.iter().position(|s| s.ptr_eq(&gone)).unwrap_or(cursor.around.len());
        let loops: Vec<&Stmt> = cursor.around[from..].iter().collect();
        if let Some(s) = loops.iter().find(|s| as_loop(s).is_none()) {
            return Err(
                Error::refused(format!("the block `{name}` runs under a condition")).at(s.span())
            );
        }
        Ok(Reduction { block, bindings, predicate, loops, buffer, indices, value, init, op })
    }

    fn pairs(&self, kind: IterKind) -> impl Iterator<Item = (&'a IterVar, &'a Expr)> {
        self.block.iters.iter().zip(self.bindings).filter(move |(i, _)| i.kind == kind)
    }

    /// The variables that the bindings of one kind of iteration variables use.
    fn used(&self, kind: IterKind) -> Vec<Var> {
        self.pairs(kind).flat_map(|(_, e)| free_vars(e)).collect()
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
        let mut all = self.predicate.conjuncts();
        all.retain(|e| free_vars(e).iter().all(|v| !reduced.contains(v)));
        all
    }
}

fn rfactor(func: &TensorFunc, l: &LoopRef, factor_axis: i64) -> Result<Edited<BlockRef>> {
    let (cursor, block) = block_under(func, l)?;
    let span = cursor.stmt.span();
    let r = Reduction::new(&cursor, &block).map_err(|e| e.at(span))?;
    let outer = known_around(&cursor.around[..cursor.around.len() - r.loops.len()]);
    let range = check(&r, l, &outer).map_err(|e| e.at(span))?;
    let rank = i64::try_from(r.indices.len()).unwrap_or(i64::MAX);
    let at = if factor_axis < 0 { factor_axis + rank + 1 } else { factor_axis };
    let at = usize::try_from(at).ok().filter(|at| *at <= r.indices.len()).ok_or_else(|| {
        Error::refused(format!(
            "{factor_axis} is no place for a new axis among the {rank} of `{}`",
            r.buffer.name
        ))
        .at(span)
    })?;
    let partial = r.buffer.derive_storage(|d| {
        d.name = format!("{}_rf", r.buffer.name).into();
        d.shape.insert(at, range.extent.clone().cast(l.var.dtype()));
        d.strides = Vec::new();
        d.elem_offset = None;
        d.offset_factor = 0;
        d.axis_separators = Vec::new();
    });
    let name = fresh_block_name(func, &format!("{}_rf", block.name));
    let first = factored(&r, l, &range, &partial, at, &name)?;
    let second = combined(&r, l, &range, &partial, at)?;
    let whole = r.loops.first().copied().unwrap_or(&cursor.stmt).clone();
    let change = Change {
        scope: cursor.scope(),
        allocs: vec![partial],
        swap: vec![(whole, Stmt::seq([first, second]))],
        ..Change::default()
    };
    let out = BlockRef { func: l.func.clone(), name };
    Ok((change.apply(func), out))
}

/// Refuses where the two steps would not give the same; the values of the loop.
fn check(r: &Reduction, l: &LoopRef, outer: &[Expr]) -> Result<Range> {
    let refuse = |why: String| Err(Error::refused(why));
    let name = &r.block.name;
    let (spatial, reduced) = (r.used(IterKind::Spatial), r.used(IterKind::Reduce));
    let mut found = None;
    let mut dropped = Vec::new();
    for s in &r.loops {
        let Some((v, range, _)) = as_loop(s) else { continue };
        if spatial.contains(v) && reduced.contains(v) {
            return refuse(format!(
                "the loop `{}` is over spatial and reduction variables at once",
                v.name()
            ));
        }
        let mut bounds = free_vars(&range.min);
        bounds.extend(free_vars(&range.extent));
        if let Some(other) = bounds.iter().find(|v| reduced.contains(v)) {
            return refuse(format!(
                "the bounds of the loop `{}` depend on the loop `{}` of the reduction",
                v.name(),
                other.name()
            ));
        }
        if !spatial.contains(v) {
            dropped.push(v.clone());
            if range.extent.as_int().is_none_or(|n| n < 1) {
                return refuse(format!("the loop `{}` may run for no iteration", v.name()));
            }
        }
        if *v == l.var {
            found = Some((range.clone(), bounds));
        }
    }
    let inside = |v: &Var| r.loops.iter().filter_map(|s| as_loop(s)).any(|(x, ..)| x == v);
    let Some((range, bounds)) = found.filter(|_| reduced.contains(&l.var)) else {
        return refuse(format!(
            "the loop `{}` is not one of the reduction of the block `{name}`, or holds other \
             statements",
            l.var.name()
        ));
    };
    if let Some(v) = reduced.iter().find(|v| !inside(v)) {
        return refuse(format!("the reduction of `{name}` goes on over `{}`", v.name()));
    }
    if range.min.as_int() != Some(0) || bounds.iter().any(inside) {
        return refuse(format!(
            "the loop `{}` does not run from zero to a fixed end",
            l.var.name()
        ));
    }
    let loops: Vec<&Stmt> = r.loops.clone();
    let mut first = First::of(&loops, &dropped);
    for (i, e) in r.pairs(IterKind::Reduce) {
        if !first.expr_at(&e.clone().equal(i.domain.min.clone())).is_true() {
            return refuse(format!(
                "`{}` is not known to begin at {} where the loops begin",
                i.var.name(),
                i.domain.min
            ));
        }
    }
    check_once(r.block, r.bindings, r.init, &loops, &dropped, r.predicate, outer)?;
    // A partial result begins where all other loops of the reduction do.
    dropped.retain(|v| *v != l.var);
    let start = First::of(&loops, &dropped).expr_at(r.predicate);
    if start.is_true() {
        return Ok(range);
    }
    let kept: Vec<(Var, Range)> = loops
        .iter()
        .filter_map(|s| as_loop(s))
        .filter(|(v, ..)| !dropped.contains(v))
        .map(|(v, range, _)| (v.clone(), range.clone()))
        .collect();
    let guards = [outer.to_vec(), r.spatial_conditions(&reduced)].concat();
    match Engine::new()?.domain_of(&kept, &guards).prove(&start) {
        Proof::Yes => Ok(range),
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
    name: &Arc<str>,
) -> Result<Stmt> {
    let variable = |v: &Var| Var::new(format!("v{}", v.name()), v.dtype());
    let own = variable(&l.var);
    let mut iters =
        vec![IterVar { var: own.clone(), domain: range.clone(), kind: IterKind::Spatial }];
    let mut bindings = vec![l.var.expr()];
    let mut named = vec![(l.var.clone(), own.expr())];
    let mut gone = Subst::default();
    for (i, e) in r.block.iters.iter().zip(r.bindings) {
        if i.kind != IterKind::Reduce || !free_vars(e).contains(&l.var) {
            iters.push(i.clone());
            bindings.push(e.clone());
            continue;
        }
        let used = free_vars(e);
        for (v, range, _) in r.loops.iter().filter_map(|s| as_loop(s)) {
            if used.contains(v) && named.iter().all(|(x, _)| x != v) {
                let var = variable(v);
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
        annotations: r.block.annotations.clone(),
        init: Some(Stmt::store(partial, indices.clone(), r.neutral()?)),
        body: gone.stmt(&Stmt::store(partial, indices, value)),
        ..Block::new("", Stmt::nop())
    };
    let body = Stmt::block(bindings, r.predicate.clone(), block);
    let nest = r.loops.iter().rev().fold(body, |body, s| s.with_body(body));
    Ok(Subst::refresh().stmt(&nest))
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
    for (i, e) in r.pairs(IterKind::Spatial) {
        iters.push(i.clone());
        bindings.push(e.clone());
    }
    let (target, cell) = (
        Expr::load(r.buffer, r.indices.to_vec()),
        Expr::load(partial, with_axis(r.indices, at, &own)),
    );
    let block = Block {
        name: r.block.name.clone(),
        iters,
        annotations: r.block.annotations.clone(),
        init: Some(r.init.clone()),
        ..Block::new(
            "",
            Stmt::store(r.buffer, r.indices.to_vec(), Expr::binary(r.op, target, cell)),
        )
    };
    let spatial = r.used(IterKind::Spatial);
    let reduced = r.used(IterKind::Reduce);
    let predicate = Expr::all(r.spatial_conditions(&reduced));
    let body = Stmt::block(bindings, predicate, block);
    let nest = r.loops.iter().rev().fold(body, |body, s| match s.kind() {
        StmtKind::For { var, range, .. } if *var == l.var => {
            Stmt::for_loop(var, range.clone(), ForKind::Serial, body)
        }
        StmtKind::For { var, range, kind, .. } if spatial.contains(var) => {
            Stmt::for_loop(var, range.clone(), kind.clone(), body)
        }
        _ => body,
    });
    Ok(Subst::refresh().stmt(&nest))
}
