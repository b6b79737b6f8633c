//! `decompose_padding`: a padded copy as a fill with the pad value and a copy without conditions.
//!
//! ```text
//! for i in range(140): y[i] = if_then_else(6 <= i and i < 134, x[i - 6], 0)
//!
//! for i in range(140): y[i] = 0
//! for i in range(128): y[i + 6] = x[i]
//! ```
//!
//! The condition must be a box: bounds of single iteration variables by constants, above also by open
//! sizes, once what the loops
//! around decide is left out, as where a partition leaves a variable one value. Each variable
//! shrinks to its bounds and starts at zero; so does its loop, where the loop is at or below the
//! given one and serves that variable alone. Elsewhere the bounds become the predicate of the
//! block. A cell is written for one value of the variables only, so the fill can never destroy
//! what another iteration has copied without that one copying it again.
//!
//! The loop may hold more than the block, as after a `compute_at`. Then the fill, in loops of its
//! own, runs before all of it, and the copy stays where the block was. That is the same where no
//! other statement in the loop writes the buffer, and each one that reads it reads only what the
//! block has written in the same iteration: what the fill leaves in other cells is not seen.

use std::sync::Arc;

use tilewright_analysis::stage::Extent;
use tilewright_ir::index::{Linear, Ranges, simplify, simplify_indices};
use tilewright_ir::visit::Subst;
use tilewright_ir::{
    BinOp, Block, Buffer, Dim, Error, Expr, ExprKind, Fold, IterKind, IterVar, Range, Result, Stmt,
    StmtKind, TensorFunc, Var,
};

use crate::cursor::{BlockCursor, Cursor, as_loop, loop_cursor, replace, replace_in, the_block};
use crate::primitive::primitives;
use crate::schedule::Edited;
use crate::value::{BlockRef, LoopRef};
use tilewright_analysis::footprint::{Footprint, fed, known_around, touches, view_of};
use tilewright_transform::names::fresh_block_name;

primitives! {
    /// Splits a block that copies with padding at a loop into a fill with the pad value and a copy
    /// of the inside. Returns the block that fills; the copy keeps the name.
    ///
    /// # Errors
    /// `Refused` where something else in the loop may see the fill, the block is not one store of
    /// a padded value, the pad value reads memory, or the condition is not a box whose bounds are
    /// constants, or open sizes above.
    decompose_padding(block: &BlockRef, l "loop": &LoopRef) -> BlockRef,
        edit |f| decompose(f, block, l);
}

/// Where a condition holds: `from <= var < end`.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The first value.
    pub from: i64,
    /// The one after the last.
    pub end: Dim,
}

fn decompose(func: &TensorFunc, block: &BlockRef, l: &LoopRef) -> Result<Edited<BlockRef>> {
    let cursor = the_block(func, block)?;
    let outer = loop_cursor(func, l)?;
    let first = nest_from(&cursor, &outer.stmt, l)?;
    let padded = Padded::find(&cursor, &cursor.around[first..])?;
    padded.writes_each_cell_once()?;
    unseen(func, &cursor, first, padded.buffer)?;
    let iters = &cursor.block.iters;
    let vars: Vec<&Var> = iters.iter().map(|i| &i.var).collect();
    let bounds = box_of(&padded.cond, &vars, |k| {
        let domain = &iters[k].domain;
        let size = Dim::from_expr(&domain.extent).filter(|_| domain.min.as_int() == Some(0));
        size.ok_or_else(|| {
            let (extent, var) = (&domain.extent, vars[k].name());
            Error::refused(format!("the extent {extent} of `{var}` is no size from zero"))
        })
    })?;

    let name = fresh_block_name(func, &format!("{block}_pad_const"));
    let fill = padded.fill(name.clone());
    let copy = padded.copy(&bounds)?;
    let element = padded.own_nest().first().unwrap_or(&cursor.stmt);
    let rest = replace(&outer.stmt, element, &copy);
    let new = replace_in(func, &outer.stmt, &Stmt::seq([fill, rest]));
    Ok((new, BlockRef { func: block.func.clone(), name }))
}

/// The place of a loop among those around a block.
///
/// # Errors
/// `Refused` where it is not around it, or where other statements than loops stand between them.
fn nest_from(cursor: &BlockCursor, outer: &Stmt, l: &LoopRef) -> Result<usize> {
    let Some(first) = cursor.around.iter().position(|s| s.ptr_eq(outer)) else {
        return Err(cursor.refuse(format!("is not in the loop `{}`", l.var.name())));
    };
    match cursor.around[first..].iter().find(is_plain) {
        None => Ok(first),
        Some(s) => Err(Error::refused(format!(
            "between the loop `{}` and the block `{}` stand not only loops",
            l.var, cursor.block.name
        ))
        .at(s.span())),
    }
}

fn is_plain(s: &&Stmt) -> bool {
    as_loop(s).is_none() && !matches!(s.kind(), StmtKind::Seq(_))
}

fn simplified(e: &Expr) -> Expr {
    simplify(e, &Ranges::default())
}

/// A block that stores `if_then_else(cond, inside, pad)`.
struct Padded<'a> {
    cursor: &'a BlockCursor,
    /// The statements around the block from the given loop on.
    nest: &'a [Stmt],
    buffer: &'a Buffer,
    indices: &'a [Expr],
    /// The values of the block's variables, where loops of one iteration stand for zero.
    bindings: Vec<Expr>,
    predicate: Expr,
    cond: Expr,
    inside: Expr,
    pad: Expr,
}

impl<'a> Padded<'a> {
    fn find(cursor: &'a BlockCursor, nest: &'a [Stmt]) -> Result<Padded<'a>> {
        let (buffer, indices, value) = cursor.store()?;
        if cursor.block.init.is_some() {
            return Err(cursor.refuse("has an initialisation"));
        }
        let ones = cursor
            .around
            .iter()
            .filter_map(as_loop)
            .filter(|(_, r, _)| r.min.as_int() == Some(0) && r.extent.as_int() == Some(1))
            .map(|(v, ..)| (v.clone(), Expr::int(0, v.dtype())));
        let mut ones = Subst::vars(ones);
        let bindings: Vec<Expr> =
            cursor.bindings.iter().map(|e| simplified(&ones.expr(e))).collect();
        let predicate = ones.expr(&cursor.predicate);
        let decided = decided(value, &cursor.block.iters, &bindings, cursor);
        // A condition that always holds is padding of no cells.
        let value = if matches!(&decided.kind(), ExprKind::IfThenElse(..) | ExprKind::Select(..)) {
            &decided
        } else {
            value
        };
        let (ExprKind::IfThenElse(cond, inside, pad) | ExprKind::Select(cond, inside, pad)) =
            value.kind()
        else {
            return Err(cursor.refuse("does not store an `if_then_else`"));
        };
        if !pad.effects().constant() || pad.effects().intrinsics {
            return Err(Error::refused(format!("the pad value `{pad}` is not a constant")));
        }
        if value.loads_from(|b| *b == *buffer || b.data == buffer.data) {
            return Err(cursor.refuse(format!("reads `{buffer}`, which it writes")));
        }
        let [cond, inside, pad] = [cond, inside, pad].map(Expr::clone);
        Ok(Padded { cursor, nest, buffer, indices, bindings, predicate, cond, inside, pad })
    }

    /// The loops that serve the block alone.
    fn own_nest(&self) -> &'a [Stmt] {
        let shared = self.nest.iter().rposition(|s| as_loop(s).is_none());
        &self.nest[shared.map_or(0, |k| k + 1)..]
    }

    /// Checks that no cell is written for two values of the block's variables.
    fn writes_each_cell_once(&self) -> Result<()> {
        for iter in &self.cursor.block.iters {
            if iter.kind != IterKind::Spatial {
                let why = format!("has `{}`, which is not spatial", iter.var.name());
                return Err(self.cursor.refuse(why));
            }
            let point = iter.domain.extent.as_int() == Some(1);
            if !point && !self.indices.iter().any(|i| i.as_var() == Some(&iter.var)) {
                return Err(self.cursor.refuse(format!(
                    "may write a cell for several values of `{}`, which is not an index of `{}`",
                    iter.var, self.buffer.name
                )));
            }
        }
        Ok(())
    }

    /// The fill: everything as it was, with the pad value.
    fn fill(&self, name: Arc<str>) -> Stmt {
        let fill = Block {
            name,
            reads: None,
            writes: None,
            body: Stmt::store(self.buffer, self.indices.to_vec(), self.pad.clone()),
            ..(*self.cursor.block).clone()
        };
        let fill = Stmt::block(self.bindings.clone(), self.predicate.clone(), fill);
        let loops = self.nest.iter().filter(|s| as_loop(s).is_some());
        let fill = loops.rev().fold(fill, |body, s| s.with_body(body));
        Subst::refresh().stmt(&fill)
    }

    /// The copy, in the loops that serve the block alone: each variable from its lower bound.
    fn copy(&self, bounds: &[Option<Bounds>]) -> Result<Stmt> {
        let mut made = Shrunk::default();
        for (k, bound) in bounds.iter().enumerate() {
            self.shrink(&mut made, k, bound.as_ref())?;
        }
        let Shrunk { mut moved, ranges, iters, bindings, predicate, extents } = made;
        let predicate = Expr::all(predicate.into_iter().chain(self.predicate.conjuncts()));
        let store = Stmt::store(
            self.buffer,
            self.indices.iter().map(|i| simplify(&moved.expr(i), &ranges)).collect(),
            simplify_indices(&moved.expr(&self.inside), &ranges),
        );
        let block = (*self.cursor.block).clone();
        let copy = Block { iters, reads: None, writes: None, body: store, ..block };
        let at = BlockCursor { bindings, predicate, ..self.cursor.clone() };
        let copy = at.with_block(copy);
        Ok(self.own_nest().iter().rev().fold(copy, |body, s| match as_loop(s) {
            Some((var, range, _)) => {
                let extent = extents.iter().find(|(v, _)| v == var);
                let extent = extent.map_or_else(|| range.extent.clone(), |(_, e)| e.clone());
                s.with_loop(Range { min: range.min.clone(), extent }, body)
            }
            None => body,
        }))
    }

    /// Adds the variable at a position to the copy: within its bounds, if there are some.
    fn shrink(&self, made: &mut Shrunk, k: usize, bound: Option<&Bounds>) -> Result<()> {
        let (iter, at) = (&self.cursor.block.iters[k], &self.bindings[k]);
        let Some(bound) = bound else {
            made.ranges.bind_loop(&iter.var, &iter.domain);
            made.iters.push(iter.clone());
            made.bindings.push(at.clone());
            return Ok(());
        };
        let own = self.own_loop(k, bound);
        let &Bounds { from, end } = own.as_ref().map_or(bound, |(_, within)| within);
        let count = end - from.dim();
        if count == 0 {
            return Err(Error::refused(format!("the condition `{}` never holds", self.cond)));
        }
        if let Some(v) =
            end.vars().iter().find(|v| self.cursor.around.iter().any(|s| s.loop_var() == Some(v)))
        {
            let why = format!("is padded up to the loop variable `{v}`");
            return Err(self.cursor.refuse(why));
        }
        let dtype = iter.var.dtype();
        let extent = count.typed(dtype);
        let var = iter.var.fresh();
        made.ranges.bind_loop(&var, &Range::upto(extent.clone()));
        made.moved.vars.insert(iter.var.clone(), var.expr() + from);
        let domain = Range::upto(extent.clone());
        made.iters.push(IterVar { var, domain, kind: iter.kind });
        match own {
            Some((v, _)) => {
                made.bindings.push(v.expr().cast(at.dtype()));
                made.extents.push((v.clone(), extent.cast(v.dtype())));
            }
            None => {
                if from > 0 {
                    made.predicate.push(Expr::int(from, at.dtype()).less_equal(at));
                }
                if Dim::from_expr(&iter.domain.extent) != Some(end) {
                    made.predicate.push(at.clone().less(end.typed(at.dtype())));
                }
                made.bindings.push(simplified(&(at.clone() - from)));
            }
        }
        Ok(())
    }

    /// The loop that serves the variable at a position alone, and the bounds in which it runs then.
    fn own_loop(&self, k: usize, bound: &Bounds) -> Option<(Var, Bounds)> {
        let (v, shift) = Linear::shifted(&self.bindings[k])?;
        let mut others = self.bindings.iter().enumerate().filter(|(j, _)| *j != k);
        if others.any(|(_, e)| e.mentions(&v))
            || self.predicate.mentions(&v)
            || self.nest.iter().filter_map(as_loop).any(|(_, r, _)| r.extent.mentions(&v))
        {
            return None;
        }
        let mut loops = self.own_nest().iter().filter_map(as_loop);
        let (_, r, _) = loops.find(|(x, r, _)| **x == v && r.min.as_int() == Some(0))?;
        let n = Dim::from_expr(&r.extent)?;
        let all = Dim::from_expr(&self.cursor.block.iters[k].domain.extent)?;
        let last = n + usize::try_from(shift).ok()?;
        all.at_least(last)
            .then(|| (v, Bounds { from: bound.from.max(shift), end: bound.end.min(last) }))
    }
}

/// A copy whose variables run within bounds.
#[derive(Default)]
struct Shrunk {
    /// What the block's variables are, in the new ones.
    moved: Subst,
    ranges: Ranges,
    iters: Vec<IterVar>,
    bindings: Vec<Expr>,
    /// The conditions that loops do not make true.
    predicate: Vec<Expr>,
    /// The extents of loops that become shorter.
    extents: Vec<(Var, Expr)>,
}

/// The value of a block, with the conditions that are left open where the loops around it say what its
/// variables are.
fn decided(value: &Expr, iters: &[IterVar], bindings: &[Expr], cursor: &Cursor) -> Expr {
    let (mut outside, mut inside) = (Ranges::default(), Ranges::default());
    for (v, range, _) in cursor.around.iter().filter_map(as_loop) {
        outside.bind_loop(v, range);
    }
    let mut fixed = Subst::default();
    for (iter, at) in iters.iter().zip(bindings) {
        inside.bind_loop(&iter.var, &iter.domain);
        let values = outside.interval(at).meet(inside.interval(&iter.var.expr()));
        if values.is_empty() {
            continue;
        }
        inside.bind(&iter.var, values);
        if let Some(value) = values.as_point().and_then(|n| i64::try_from(n).ok()) {
            fixed.vars.insert(iter.var.clone(), Expr::int(value, iter.var.dtype()));
        }
    }
    simplify_indices(&fixed.expr(value), &inside)
}

/// Refuses where another statement in the loop, the one at `first` around the block, writes the
/// buffer or may read what the block has not written in the same iteration.
fn unseen(func: &TensorFunc, cursor: &Cursor, first: usize, buffer: &Buffer) -> Result<()> {
    let shared = cursor.around[first..].iter().any(|s| matches!(s.kind(), StmtKind::Seq(_)));
    if let Some(view) = view_of(&func.body, buffer).filter(|_| shared) {
        let (view, name) = (&view.name, &buffer.name);
        return Err(Error::refused(format!("`{view}` is a view of the memory of `{name}`")));
    }
    for (k, s) in cursor.around.iter().enumerate().skip(first) {
        let StmtKind::Seq(list) = s.kind() else { continue };
        let element = cursor.around.get(k + 1).unwrap_or(&cursor.stmt);
        let at = list.iter().position(|e| e.ptr_eq(element)).unwrap_or(0);
        let known = known_around(&cursor.around[..k]);
        let written = Footprint::collect(element, buffer).writes;
        for (other, s) in list.iter().enumerate().filter(|(n, _)| *n != at) {
            let (reads, writes) = touches(s, buffer);
            let why = match (reads, writes) {
                (_, true) => "writes",
                (true, _) if other < at => "reads, before the block does,",
                (true, _)
                    if !fed(buffer, &Footprint::collect(s, buffer).reads, &written, &known) =>
                {
                    "may read, of what the block has not written in the same iteration,"
                }
                _ => continue,
            };
            let name = &buffer.name;
            return Err(Error::refused(format!(
                "the fill would run before all of the loop, in which another statement {why} `{name}`"
            ))
            .at(s.span())
            .help("decompose at a loop around the block alone"));
        }
    }
    Ok(())
}

/// The bounds that a condition sets to each of some variables, which run from zero to an extent, where they are
/// tighter than that.
///
/// # Errors
/// `Refused` where a part of the condition is no bound of one variable, the extent of a variable is
/// none, or the condition never holds.
pub fn box_of(
    cond: &Expr,
    vars: &[&Var],
    extent: impl Fn(usize) -> Result<Dim>,
) -> Result<Vec<Option<Bounds>>> {
    let mut out: Vec<Option<Bounds>> = vars.iter().map(|_| None).collect();
    for part in cond.conjuncts().into_iter().filter(|part| !part.is_true()) {
        let (k, from, end) = bound_of(&part, vars).ok_or_else(|| {
            Error::refused(format!(
                "the condition `{part}` is no constant bound of one iteration variable"
            ))
        })?;
        let n = extent(k)?;
        let old = out[k].get_or_insert(Bounds { from: 0, end: n });
        old.from = old.from.max(from.unwrap_or(0));
        old.end = old.end.min(end.unwrap_or(n));
        if old.end - old.from.dim() == 0 {
            return Err(Error::refused(format!("the condition `{cond}` never holds")));
        }
    }
    for (k, b) in out.iter_mut().enumerate() {
        b.take_if(|b| b.from == 0 && extent(k).is_ok_and(|n| n == b.end));
    }
    Ok(out)
}

/// Which variable a comparison bounds: its first value, or the one after its last.
fn bound_of(e: &Expr, vars: &[&Var]) -> Option<(usize, Option<i64>, Option<Dim>)> {
    let ExprKind::Binary(op, a, b) = e.kind() else { return None };
    let k = vars.iter().position(|v| a.mentions(v) || b.mentions(v))?;
    // Brought to `factor * var + sizes + constant >= 0`.
    let (greater, less, apart) = match op {
        BinOp::Ge => (a, b, 0),
        BinOp::Gt => (a, b, 1),
        BinOp::Le => (b, a, 0),
        BinOp::Lt => (b, a, 1),
        _ => return None,
    };
    let mut form = Linear::from_expr(greater)?.plus(&Linear::from_expr(less)?, -1)?;
    let at = form.terms.iter().position(|(atom, _)| atom.as_var() == Some(vars[k]))?;
    let (_, factor) = form.terms.remove(at);
    form.constant -= apart;
    let constant = form.constant;
    match (form.terms.is_empty(), factor) {
        (true, 1..) => {
            Some((k, Some(i64::try_from((factor - 1 - constant).div_euclid(factor)).ok()?), None))
        }
        (true, _) => {
            Some((k, None, Some(i64::try_from(constant.div_euclid(-factor) + 1).ok()?.dim())))
        }
        // Below an open size.
        (false, -1) => {
            form.constant += 1;
            let end = form.to_expr()?;
            let other = vars.iter().any(|v| end.mentions(v));
            Some((k, None, Some(Dim::from_expr(&end).filter(|_| !other)?)))
        }
        _ => None,
    }
}
