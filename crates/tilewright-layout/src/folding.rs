//! Padding that is written by the nest that writes the buffer.
//!
//! Where one loop nest writes all of a buffer, and nothing else, its loops run over the physical
//! box instead, and each of its stores selects between the pad value and its own:
//!
//! ```text
//! for i, k in T.grid(14, 8):                     for io, ii, k in T.grid(4, 4, 8):
//!     init: B[i] = 0                                 init: B[io, ii] = if_then_else(P, pad, 0)
//!     B[i] = B[i] + A[i, k]                          B[io, ii] = if_then_else(P, pad,
//!                                                        B[io, ii] + A[io * 4 + ii, k])
//! ```
//!
//! The loops that the indices of the stores depend on are replaced where they stand; others, as
//! those of a reduction, stay. For one cell the stores keep their order, and no store reads another
//! cell of the buffer, so every logical cell gets what it got.

use std::sync::Arc;
use tilewright_ir::hash::HashSet;

use tilewright_analysis::regions::infer;
use tilewright_ir::index::same_all;
use tilewright_ir::visit::{Subst, fold_stmt_children, free_vars};
use tilewright_ir::{
    Block, Buffer, Expr, ExprKind, Fold, ForKind, IterKind, IterVar, Range, Stmt, StmtKind,
    TensorFunc, Var,
};

use crate::padding::{Padding, last_writer, same_extent, scope_of, views};
use crate::relayout::Tidy;
use tilewright_transform::cursor::{as_block, find, with_block};

/// A nest of loops around stores of one cell.
struct Nest {
    /// Loops around the stores, outermost first.
    loops: Vec<(Var, Range)>,
    /// What is in the loops.
    inside: Stmt,
    /// The iteration variables of a block that is all that is in the loops, with their loops.
    iters: Vec<(IterVar, Var)>,
    /// The indices of all stores, of the loops.
    indices: Vec<Expr>,
    /// The positions of the loops on which the indices depend.
    used: std::ops::Range<usize>,
}

impl Padding<'_> {
    /// The one nest that writes the buffer, and a nest over the physical box in its place; `None`
    /// where the padding cannot be written so.
    pub fn fold_padding(&self, func: &TensorFunc) -> Option<(Stmt, Stmt)> {
        let buffers = views(func, self.old);
        if buffers.len() > 1 || !self.value.effects().constant() {
            return None;
        }
        let stmt = last_writer(&scope_of(func, self.old), &buffers);
        if self.count_stores(&stmt) != self.count_stores(&func.body) {
            return None;
        }
        let nest = Nest::find(&stmt, self.old)?;
        let made = self.over_box(&nest)?;
        Some((stmt, made))
    }

    fn count_stores(&self, s: &Stmt) -> usize {
        find(s, |s| is_store(s, self.old)).len()
    }

    fn over_box(&self, nest: &Nest) -> Option<Stmt> {
        let used = &nest.loops[nest.used.clone()];
        let inverse = self.inverse(used, &nest.indices)?;
        let back: Vec<(Var, Expr)> =
            used.iter().zip(inverse).map(|((v, _), e)| (v.clone(), e.cast(v.dtype()))).collect();
        let box_ranges = self.layout.ranges();
        let cells: Vec<Expr> = self.layout.cells.iter().map(Var::expr).collect();
        // Indices and values over loops, in place of the iteration variables of their block.
        let replaced = nest.iters.iter().filter(|(_, l)| is_used(l, used));
        let to_loops: Vec<(Var, Expr)> = replaced.map(|(i, l)| (i.var.clone(), l.expr())).collect();
        let mut stores = Stores {
            padding: self,
            indices: &nest.indices,
            cells: &cells,
            to_loops: Subst::vars(to_loops),
            back: Subst::vars(back),
        };
        let inside = match as_block(&nest.inside).filter(|_| !nest.iters.is_empty()) {
            None => stores.stmt(&nest.inside),
            Some(b) => {
                let cell_iters = self.layout.iters();
                let names = cell_iters.iter().map(|i| i.var.expr());
                let mut to_iters = Subst::vars(self.layout.cells.iter().cloned().zip(names));
                let init = b.init.as_ref().map(|init| to_iters.stmt(&stores.stmt(init)));
                let body = to_iters.stmt(&stores.stmt(&b.body));
                // The iteration variables of the box take the place of the first that goes.
                let (mut iters, mut bindings) = (Vec::new(), Vec::new());
                let mut pending = Some((cell_iters, cells.clone()));
                for (iter, l) in &nest.iters {
                    if !is_used(l, used) {
                        iters.push(iter.clone());
                        bindings.push(l.expr());
                    } else if let Some((more, at)) = pending.take() {
                        iters.extend(more);
                        bindings.extend(at);
                    }
                }
                let mut new = Block { iters, init, body, ..(**b).clone() };
                declare(&mut new, b);
                let new = Stmt::block(bindings, Expr::bool(true), new);
                Stmt::spanned(new.kind().clone(), nest.inside.span())
            }
        };
        let (outer, inner) = (&nest.loops[..nest.used.start], &nest.loops[nest.used.end..]);
        let loops = outer.iter().chain(&box_ranges).chain(inner);
        Some(Stmt::nest(loops.cloned(), inside))
    }

    /// The loop variables by the cells, if the loops write every logical cell exactly once.
    fn inverse(&self, loops: &[(Var, Range)], indices: &[Expr]) -> Option<Vec<Expr>> {
        let mut params = self.layout.map.params.iter();
        if !indices.iter().all(|i| params.next().is_some_and(|p| p.dtype() == i.dtype())) {
            return None;
        }
        // A loop for each axis, over just that axis.
        if loops.len() == indices.len()
            && let Some(found) =
                loops.iter().map(|l| self.axis_index(l, indices)).collect::<Option<Vec<Expr>>>()
        {
            return Some(found);
        }
        let domain = self.engine.domain_of(loops, &[]);
        let logical = domain.map(indices).ok()?;
        let names: Vec<Var> = indices.iter().map(|i| Var::new("i", i.dtype())).collect();
        let all: Vec<(Var, Range)> = names
            .iter()
            .zip(&self.old.shape)
            .map(|(v, e)| (v.clone(), Range::upto(e.clone().cast(v.dtype()))))
            .collect();
        let once = logical.collision().ok()?.is_none();
        let every = self.engine.domain_of(&all, &[]).to_set().ok()?;
        if !once || !every.is_within(&logical.range(&names).ok()?) {
            return None;
        }
        domain.map(&self.layout.map.apply(indices)).ok()?.inverse(&self.layout.cells).ok()
    }

    fn axis_index(&self, (v, r): &(Var, Range), indices: &[Expr]) -> Option<Expr> {
        let at = indices.iter().position(|i| i.as_var() == Some(v))?;
        let whole = r.min.as_int() == Some(0) && same_extent(&r.extent, &self.old.shape[at]);
        whole.then(|| self.known.inverse[at].clone())
    }
}

fn is_used(v: &Var, used: &[(Var, Range)]) -> bool {
    used.iter().any(|(u, _)| u == v)
}

fn is_store(s: &Stmt, to: &Buffer) -> bool {
    matches!(s.kind(), StmtKind::Store { buffer, .. } if buffer == to)
}

/// Declares regions where the block did before.
fn declare(new: &mut Block, before: &Block) {
    let (reads, writes) = infer(new);
    new.reads = before.reads.as_ref().map(|_| reads);
    new.writes = before.writes.as_ref().map(|_| writes);
}

/// Whether a loop runs, as far as is known, and without conditions on how.
fn runs(kind: &ForKind, range: &Range, annotated: bool) -> bool {
    *kind == ForKind::Serial && !annotated && range.extent.as_int().is_some_and(|n| n > 0)
}

impl Nest {
    /// The nest that a statement is; `None` where it is anything more.
    fn find(stmt: &Stmt, buffer: &Buffer) -> Option<Nest> {
        let mut at = stmt.clone();
        let mut loops: Vec<(Var, Range)> = Vec::new();
        while let StmtKind::For { var, range, kind, annotations, body } = at.kind() {
            if *kind != ForKind::Serial || !annotations.is_empty() {
                return None;
            }
            loops.push((var.clone(), range.clone()));
            at = body.clone();
        }
        let mut nest =
            Nest { loops, inside: at.clone(), iters: Vec::new(), indices: Vec::new(), used: 0..0 };
        let (mut init, mut body) = (None, at.clone());
        if let StmtKind::Block { bindings, predicate, block: b } = at.kind()
            && !b.iters.is_empty()
        {
            if !predicate.is_true() || !b.allocs.is_empty() || !b.matches.is_empty() {
                return None;
            }
            nest.iters = nest.stand_for_loops(b, bindings)?;
            (init, body) = (b.init.clone(), b.body.clone());
        }
        let to_loops = nest.iters.iter().map(|(i, l)| (i.var.clone(), l.expr()));
        let mut to_loops = Subst::vars(to_loops);
        for s in init.iter().chain([&body]) {
            nest.collect(&to_loops.stmt(s), buffer)?;
        }
        let free: Vec<_> = nest.indices.iter().flat_map(free_vars).collect();
        let positions: Vec<usize> =
            (0..nest.loops.len()).filter(|k| free.contains(&nest.loops[*k].0)).collect();
        nest.used = *positions.first()?..*positions.last()? + 1;
        if positions.len() != nest.used.len() {
            return None;
        }
        // The loops that stay and those that go do not bound one another, and those that stay run.
        for (k, (_, range)) in nest.loops.iter().enumerate() {
            let stays = !nest.used.contains(&k);
            let bound = bounded_by(range);
            let mixed = (0..nest.loops.len())
                .any(|j| nest.used.contains(&j) == stays && bound.contains(&nest.loops[j].0));
            if mixed || (stays && !runs(&ForKind::Serial, range, false)) {
                return None;
            }
        }
        Some(nest)
    }

    /// The iteration variables of a block with the loop that each one is; every loop is one.
    fn stand_for_loops(&self, b: &Block, bindings: &[Expr]) -> Option<Vec<(IterVar, Var)>> {
        let mut out: Vec<(IterVar, Var)> = Vec::new();
        for (iter, binding) in b.iters.iter().zip(bindings) {
            let (v, r) = self.loops.iter().find(|(v, _)| Some(v) == binding.as_var())?;
            let same = same_extent(&r.min, &iter.domain.min)
                && same_extent(&r.extent, &iter.domain.extent);
            let new = !out.iter().any(|(_, w)| w == v);
            if !same || !new || iter.kind == IterKind::Opaque || iter.var.dtype() != v.dtype() {
                return None;
            }
            out.push((iter.clone(), v.clone()));
        }
        (out.len() == self.loops.len()).then_some(out)
    }

    /// Takes the stores of a statement down, if it consists of stores of the one cell, whose values
    /// read no other cell of the buffer, in sequences, loops that run and plain blocks.
    fn collect(&mut self, s: &Stmt, buffer: &Buffer) -> Option<()> {
        match s.kind() {
            StmtKind::Store { buffer: b, indices, value } => {
                if self.indices.is_empty() {
                    self.indices = indices.clone();
                }
                let one = b == buffer && !indices.is_empty() && same_all(indices, &self.indices);
                let constant = indices.iter().all(|i| i.effects().constant());
                let plain = constant && reads_only(value, buffer, indices);
                (one && plain).then_some(())
            }
            StmtKind::Seq(list) => list.iter().try_for_each(|s| self.collect(s, buffer)),
            StmtKind::For { range, kind, annotations, body, .. } => {
                let apart =
                    !bounded_by(range).iter().any(|v| self.loops.iter().any(|(l, _)| l == v));
                if !apart || !runs(kind, range, !annotations.is_empty()) {
                    return None;
                }
                self.collect(body, buffer)
            }
            StmtKind::Block { predicate, block: b, .. } => {
                let plain = predicate.is_true() && b.iters.is_empty() && b.init.is_none();
                if !plain || !b.allocs.is_empty() || !b.matches.is_empty() {
                    return None;
                }
                self.collect(&b.body, buffer)
            }
            _ => None,
        }
    }
}

/// The variables that bound a loop.
fn bounded_by(r: &Range) -> HashSet<Var> {
    let mut free = free_vars(&r.min);
    free.extend(free_vars(&r.extent));
    free
}

/// Whether a value has no effect and reads the buffer at nothing but one cell.
fn reads_only(value: &Expr, buffer: &Buffer, at: &[Expr]) -> bool {
    !value.effects().calls
        && !value.any(|e| match e.kind() {
            ExprKind::Load(b, indices) => b == buffer && !same_all(indices, at),
            _ => false,
        })
}

/// Gives every store of a nest its place in the box, and the pad value in the padding.
struct Stores<'a> {
    padding: &'a Padding<'a>,
    /// The logical indices, of the loops.
    indices: &'a [Expr],
    cells: &'a [Expr],
    /// The iteration variables that go by their loops.
    to_loops: Subst,
    /// The loops that go by the cells.
    back: Subst,
}

impl Stores<'_> {
    fn value(&mut self, value: &Expr) -> Expr {
        let p = self.padding;
        let value = self.to_loops.expr(value).replace(|e| match e.kind() {
            ExprKind::Load(b, at) if b == p.old && same_all(at, self.indices) => {
                Some(Expr::load(p.new, self.cells.to_vec()))
            }
            _ => None,
        });
        let value = self.back.expr(&value);
        let padding = &p.known.padding;
        let data = vec![!padding.clone()];
        let cells = p.layout.cells.clone();
        let value = Tidy::new(p.engine, p.layout.ranges(), cells, data).expr(&value);
        Expr::if_then_else(padding.clone(), p.value.clone(), value)
    }
}

impl Fold for Stores<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::Store { value, .. } => {
                let value = self.value(value);
                let (buffer, indices) = (self.padding.new.clone(), self.cells.to_vec());
                Stmt::spanned(StmtKind::Store { buffer, indices, value }, s.span())
            }
            StmtKind::Block { block: b, .. } => {
                let bare = Block { reads: None, writes: None, ..(**b).clone() };
                let mut new = (*self.block(&Arc::new(bare))).clone();
                declare(&mut new, b);
                with_block(s, new)
            }
            _ => fold_stmt_children(self, s),
        }
    }
}
