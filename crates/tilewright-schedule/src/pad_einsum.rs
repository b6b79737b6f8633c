//! `pad_einsum`: the iterations of a contraction rounded up to multiples.
//!
//! ```text
//! for i, j, k in grid(128, n, 128): C[i, j] += A[i, k] * B[j, k]        padding [32, 32, 32]
//!
//! B_pad[j, k] = if_then_else(j < n, B[j, k], 0)                         over (n + 31)//32*32 rows
//! for i, j, k in grid(128, (n + 31)//32*32, 128): C_pad[i, j] += A[i, k] * B_pad[j, k]
//! C[i, j] = C_pad[i, j]                                                 over n columns
//! ```
//!
//! The iterations that are added to an axis of the output write cells of their own, which are never
//! read. What is read at such a variable and others together, as windows are, is padded by what the added
//! iterations read farther. Those added to a reduction, or to any other variable that is no index of the output, must
//! add nothing: every value there has to be zero, which is checked by the form of the value. A product of floats counts as zero only where both sides
//! are, since zero times infinity is not. Where a reduction may be empty, the block may write
//! nothing; then nothing is copied back either.

use std::sync::Arc;

use tilewright_ir::equal::loads_cell;
use tilewright_ir::index::Affine;
use tilewright_ir::visit::{Subst, free_vars};
use tilewright_ir::{
    BinOp, Block, Buffer, Error, Expr, ExprKind, Fold, IterKind, IterVar, Range, Result, Stmt,
    TensorFunc, TypeKind, Var, extent,
};

use crate::copying::{Change, cell_block, compact};
use crate::cursor::{BlockCursor, as_loop, runs, the_block, the_loop};
use crate::primitive::primitives;
use crate::schedule::Edited;
use crate::value::BlockRef;
use tilewright_layout::padding::same_extent;
use tilewright_transform::names::fresh_block_name;

primitives! {
    /// Rounds the extent of each iteration variable of a block up to a multiple, with padded
    /// copies of the buffers for which that makes a difference.
    ///
    /// # Errors
    /// `Refused` where there is not one positive multiple for each variable, the block is not
    /// directly in loops that are bound to its variables one by one, an access that would be
    /// padded is neither at the plain variable over the whole axis nor moves forward evenly along
    /// spatial variables, or an added iteration of a reduction might not add zero.
    pad_einsum(block: &BlockRef, padding: &[i64]), edit |f| pad_einsum(f, block, padding);
}

/// An iteration variable with its loop.
struct PaddedAxis {
    iter: IterVar,
    /// The extent after padding.
    padded: Expr,
    /// Whether that is another one.
    grows: bool,
}

fn pad_einsum(func: &TensorFunc, block: &BlockRef, padding: &[i64]) -> Result<Edited> {
    let cursor = the_block(func, block)?;
    let b = &cursor.block;
    if padding.len() != b.iters.len() {
        return Err(Error::refused(format!(
            "{} multiples for the {} iteration variables of `{}`",
            padding.len(),
            b.iters.len(),
            b.name
        )));
    }
    if let Some(p) = padding.iter().find(|p| **p <= 0) {
        return Err(Error::refused(format!("the multiple {p} is not positive")));
    }
    let (out, indices, value) = cursor.store()?;
    if !cursor.predicate.is_true() {
        return Err(cursor.refuse("runs under a predicate"));
    }
    let loops = own_loops(&cursor)?;
    let axes = axes_of(&cursor, padding)?;
    check_added(b, out, indices, value, &axes)?;
    let inputs = padded_inputs(value, out, &axes)?;
    let out_pads = pads_of(out, indices, &axes, false)?;
    let pads_output = out_pads.iter().any(Option::is_some);
    if pads_output {
        check_output(&cursor, out, indices, &axes)?;
    }

    // The padded copies.
    let mut allocs = Vec::new();
    let mut stmts = Vec::new();
    let mut to = Vec::new();
    for (buffer, pads) in &inputs {
        let pad = padded_buffer(buffer, pads);
        let name = fresh_block_name(func, &pad.name);
        let zero = Expr::constant(0.0, buffer.dtype());
        stmts.push(copy_block(name, &pad, &pad.shape, Expr::bool(true), |at| {
            let mut inside = Expr::bool(true);
            for ((v, p), extent) in at.iter().zip(pads).zip(&buffer.shape) {
                if p.is_some() {
                    inside = inside.and(v.clone().less(extent));
                }
            }
            (buffer.clone(), Expr::if_then_else(inside, buffer.load(at.to_vec()), zero))
        }));
        allocs.push(pad.clone());
        to.push((buffer.clone(), pad));
    }
    let mut back = None;
    if pads_output {
        let pad = padded_buffer(out, &out_pads);
        let name = fresh_block_name(func, &pad.name);
        let begins = cursor.block.init.is_some() && func.takes_empty();
        let when = writes(indices, &axes, begins)?;
        back = Some(copy_block(name, out, &out.shape, when, |at| {
            (pad.clone(), pad.load(at.to_vec()))
        }));
        allocs.push(pad.clone());
        to.push((out.clone(), pad));
    }
    // The nest with its new extents.
    let mut rename = Subst::buffers(to);
    let mut new = (**b).clone();
    for (iter, axis) in new.iters.iter_mut().zip(&axes) {
        iter.domain = Range::upto(axis.padded.clone());
    }
    new.reads = None;
    new.writes = None;
    new.init = b.init.as_ref().map(|s| rename.stmt(s));
    new.body = rename.stmt(&b.body);
    let mut nest = Stmt::block(cursor.bindings.clone(), cursor.predicate.clone(), new);
    for s in loops.iter().rev() {
        let (v, range, _) = the_loop(s)?;
        let axis = axes.iter().zip(&cursor.bindings).find(|(_, e)| e.as_var() == Some(v));
        let extent =
            axis.map_or_else(|| range.extent.clone(), |(a, _)| a.padded.clone().cast(v.dtype()));
        nest = s.with_loop(Range { min: range.min.clone(), extent }, nest);
    }
    stmts.push(nest);
    stmts.extend(back);
    let change = Change {
        scope: cursor.scope(),
        allocs,
        swap: vec![(loops[0].clone(), Stmt::seq(stmts))],
        ..Change::default()
    };
    Ok((change.apply(func), ()))
}

/// The loops around a block that it alone is in and that are bound to its variables, outermost first.
fn own_loops(cursor: &BlockCursor) -> Result<&[Stmt]> {
    // The loops, from the block outwards, as long as they hold nothing else.
    let outside = cursor.around.iter().rposition(|s| as_loop(s).is_none()).map_or(0, |k| k + 1);
    let loops = &cursor.around[outside..];
    let mut vars: Vec<Var> = Vec::new();
    for (iter, e) in cursor.pairs() {
        match bound_loop(e, iter, loops) {
            Some(v) if !vars.contains(&v) => vars.push(v),
            _ if e.as_int() == Some(0) && iter.domain.extent.as_int() == Some(1) => {}
            _ => {
                return Err(cursor.refuse(format!(
                    "binds `{}` to `{e}`, which is not a loop of its own directly around the \
                     block with the same extent",
                    iter.var
                )));
            }
        }
    }
    let Some(first) = loops.iter().position(|s| s.loop_var().is_some_and(|v| vars.contains(v)))
    else {
        return Err(cursor.refuse("is not in a loop"));
    };
    let loops = &loops[first..];
    if let Some(v) = loops.iter().filter_map(Stmt::loop_var).find(|v| !vars.contains(v)) {
        let why = format!("is in the loop `{v}`, which it does not use");
        return Err(cursor.refuse(why));
    }
    Ok(loops)
}

fn bound_loop(e: &Expr, iter: &IterVar, loops: &[Stmt]) -> Option<Var> {
    let v = e.as_var()?;
    let (_, range, _) = loops.iter().filter_map(as_loop).find(|(x, ..)| *x == v)?;
    let zero = range.min.as_int() == Some(0) && iter.domain.min.as_int() == Some(0);
    (zero && same_extent(&range.extent, &iter.domain.extent)).then(|| v.clone())
}

/// The iteration variables of a block, with the extents that they are rounded up to.
fn axes_of(cursor: &BlockCursor, padding: &[i64]) -> Result<Vec<PaddedAxis>> {
    let axes: Vec<PaddedAxis> = cursor
        .block
        .iters
        .iter()
        .zip(padding)
        .map(|(iter, p)| {
            let extent = &iter.domain.extent;
            let padded = round_up(extent, *p)?;
            if extent::wider(iter.var.dtype(), padded.dtype()) != iter.var.dtype() {
                return Err(Error::refused(format!(
                    "`{}`, which is {}, would have {padded} values",
                    iter.var,
                    iter.var.dtype()
                )));
            }
            Ok(PaddedAxis { iter: iter.clone(), grows: !same_extent(&padded, extent), padded })
        })
        .collect::<Result<_>>()?;
    if let Some(a) = axes.iter().find(|a| a.grows && a.iter.kind == IterKind::Opaque) {
        return Err(cursor.refuse(format!("has the opaque variable `{}`", a.iter.var.name())));
    }
    let mut pairs = axes.iter().zip(&cursor.bindings);
    if let Some((a, e)) = pairs.find(|(a, e)| a.grows && e.as_var().is_none()) {
        let var = a.iter.var.name();
        return Err(cursor.refuse(format!("binds `{var}` to `{e}`, not to a loop")));
    }
    Ok(axes)
}

/// The buffers that are read and padded, with the new extents of their axes.
fn padded_inputs(
    value: &Expr,
    out: &Buffer,
    axes: &[PaddedAxis],
) -> Result<Vec<(Buffer, Vec<Option<Expr>>)>> {
    let mut inputs: Vec<(Buffer, Vec<Option<Expr>>)> = Vec::new();
    for (buffer, at) in loads(value) {
        if buffer == *out {
            continue;
        }
        let pads = pads_of(&buffer, &at, axes, true)?;
        match inputs.iter().find(|(x, _)| *x == buffer) {
            None => inputs.push((buffer, pads)),
            Some((_, other)) => {
                if !other.iter().zip(&pads).all(|(a, b)| same_padding(a, b)) {
                    return Err(Error::refused(format!(
                        "two accesses of `{buffer}` would be padded in two ways"
                    )));
                }
            }
        }
    }
    inputs.retain(|(_, pads)| pads.iter().any(Option::is_some));
    Ok(inputs)
}

fn same_padding(a: &Option<Expr>, b: &Option<Expr>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => same_extent(a, b),
        (a, b) => a.is_none() == b.is_none(),
    }
}

/// The smallest multiple that is not less.
fn round_up(extent: &Expr, multiple: i64) -> Result<Expr> {
    if multiple == 1 { Ok(extent.clone()) } else { extent::round_up(extent, multiple) }
}

fn loads(value: &Expr) -> Vec<(Buffer, Vec<Expr>)> {
    let mut all = Vec::new();
    value.for_each_load(|b, at| all.push((b.clone(), at.to_vec())));
    all
}

/// The new extent of each axis of a buffer, where it gets one. Windows may be read.
fn pads_of(
    buffer: &Buffer,
    indices: &[Expr],
    axes: &[PaddedAxis],
    windows: bool,
) -> Result<Vec<Option<Expr>>> {
    indices
        .iter()
        .zip(&buffer.shape)
        .map(|(i, extent)| {
            let vars = free_vars(i);
            let Some(axis) = axes.iter().find(|a| a.grows && vars.contains(&a.iter.var)) else {
                return Ok(None);
            };
            let IterVar { var, domain, .. } = &axis.iter;
            if i.as_var() != Some(var) {
                let longer = windows.then(|| windowed(i, extent, axes)).flatten();
                return longer.map(Some).ok_or_else(|| {
                    Error::refused(format!(
                        "`{buffer}` is accessed at `{i}`, not at `{var}` alone, which is to be padded"
                    ))
                });
            }
            if !same_extent(extent, &domain.extent) {
                return Err(Error::refused(format!(
                    "an axis of `{buffer}` has the extent {extent}, and `{var}`, by which it is \
                     accessed, the extent {}",
                    domain.extent
                )));
            }
            Ok(Some(axis.padded.clone().cast(extent.dtype())))
        })
        .collect()
}

/// The extent of an axis that is read at an index of several variables, so that all iterations are in it: longer by
/// the steps that added ones take. `None` where one of those that grow is no spatial one, or the index does not move
/// forward evenly along it.
fn windowed(index: &Expr, extent: &Expr, axes: &[PaddedAxis]) -> Option<Expr> {
    let form = Affine::from_expr(index)?;
    let mut longer = extent.clone();
    for PaddedAxis { iter, padded, .. } in axes.iter().filter(|a| a.grows) {
        let step = form.coefficient(&iter.var)?;
        if step < 0 || step > 0 && iter.kind != IterKind::Spatial {
            return None;
        }
        if step > 0 {
            let added = padded.clone() - iter.domain.extent.clone();
            longer = longer + added.cast(extent.dtype()) * step;
        }
    }
    Some(longer)
}

/// A padded output is copied back as a whole, so the block must write it as a whole and need
/// nothing of what was in it.
fn check_output(
    cursor: &BlockCursor,
    out: &Buffer,
    indices: &[Expr],
    axes: &[PaddedAxis],
) -> Result<()> {
    let mut seen: Vec<&Var> = Vec::new();
    for (i, extent) in indices.iter().zip(&out.shape) {
        let axis = i.as_var().and_then(|v| axes.iter().find(|a| a.iter.var == *v));
        let whole = axis.is_some_and(|a| {
            a.iter.kind == IterKind::Spatial
                && !seen.contains(&&a.iter.var)
                && same_extent(extent, &a.iter.domain.extent)
        });
        if !whole {
            return Err(cursor.refuse(format!(
                "does not write every cell of `{out}`: index `{i}` of an axis of extent {extent}"
            )));
        }
        seen.extend(axis.map(|a| &a.iter.var));
    }
    let (_, _, value) = cursor.store()?;
    if cursor.block.init.is_none() && value.loads_from(|b| b == out) {
        let why = format!("reads `{out}` without an initialisation");
        return Err(cursor.refuse(why));
    }
    Ok(())
}

/// When the block writes the cells that it says: when no loop is empty that they do not depend on. A reduction over
/// nothing may write what it begins with.
fn writes(indices: &[Expr], axes: &[PaddedAxis], takes_empty: bool) -> Result<Expr> {
    let mut when = Vec::new();
    for PaddedAxis { iter, .. } in axes {
        let extent = &iter.domain.extent;
        let begins = takes_empty && iter.kind == IterKind::Reduce;
        let moves = indices.iter().any(|i| i.as_var() == Some(&iter.var));
        if !moves && !begins && !runs(extent) {
            when.push(extent.clone().greater(0));
        }
    }
    Ok(Expr::all(when))
}

/// Added iterations that write no cells of their own must add zero, whatever kind of variable it is.
fn check_added(
    b: &Block,
    out: &Buffer,
    indices: &[Expr],
    value: &Expr,
    axes: &[PaddedAxis],
) -> Result<()> {
    let again: Vec<&PaddedAxis> = axes
        .iter()
        .filter(|a| a.grows && !indices.iter().any(|i| i.as_var() == Some(&a.iter.var)))
        .collect();
    if let Some(a) = again.iter().find(|a| a.iter.kind != IterKind::Reduce && b.init.is_some()) {
        return Err(Error::refused(format!(
            "the block `{}` would begin its sums again in the padding of `{}`, which is no index of \
             `{out}`",
            b.name,
            a.iter.var.name()
        )));
    }
    let added: Vec<&Var> = again.iter().map(|a| &a.iter.var).collect();
    let Some(first) = added.first() else { return Ok(()) };
    let term = match value.kind() {
        ExprKind::Binary(BinOp::Add, acc, term) if loads_cell(acc, out, indices) => term,
        ExprKind::Binary(BinOp::Add, term, acc) if loads_cell(acc, out, indices) => term,
        ExprKind::Binary(BinOp::Sub, acc, term) if loads_cell(acc, out, indices) => term,
        _ => {
            return Err(Error::refused(format!(
                "the block `{}` does not add up, and what the padding of `{first}` adds must be zero",
                b.name
            )));
        }
    };
    for v in added {
        if !is_zero(term, v, out) {
            return Err(Error::refused(format!(
                "`{term}` is not known to be zero where `{v}` is in the padding"
            ))
            .note("a product of floats is zero for certain where both sides are"));
        }
    }
    Ok(())
}

/// Whether a value is zero where loads that use a variable are; those of the output are not.
fn is_zero(e: &Expr, v: &Var, out: &Buffer) -> bool {
    match e.kind() {
        ExprKind::Load(b, indices) => b != out && indices.iter().any(|i| i.as_var() == Some(v)),
        ExprKind::Int(k) => *k == 0,
        ExprKind::Float(x) => *x == 0.0,
        ExprKind::Cast(a) => is_zero(a, v, out),
        ExprKind::Binary(BinOp::Mul, a, b) => {
            let exact = matches!(e.dtype().kind, TypeKind::Int | TypeKind::UInt);
            if exact {
                is_zero(a, v, out) || is_zero(b, v, out)
            } else {
                is_zero(a, v, out) && is_zero(b, v, out)
            }
        }
        ExprKind::Binary(BinOp::Add | BinOp::Sub | BinOp::Min | BinOp::Max, a, b)
        | ExprKind::Select(_, a, b)
        | ExprKind::IfThenElse(_, a, b) => is_zero(a, v, out) && is_zero(b, v, out),
        _ => false,
    }
}

fn padded_buffer(buffer: &Buffer, pads: &[Option<Expr>]) -> Buffer {
    let pairs = buffer.shape.iter().zip(pads);
    let shape = pairs.map(|(old, new)| new.as_ref().unwrap_or(old).clone()).collect();
    compact(buffer, &format!("{buffer}_pad"), shape)
}

/// A block that stores, under a condition, for every cell of `to` within the extents, the value
/// that `value` gives together with the buffer that it reads.
fn copy_block(
    name: Arc<str>,
    to: &Buffer,
    extents: &[Expr],
    when: Expr,
    value: impl FnOnce(&[Expr]) -> (Buffer, Expr),
) -> Stmt {
    let axes: Vec<(Var, Var, Expr)> = extents
        .iter()
        .enumerate()
        .map(|(k, e)| {
            let dtype = e.dtype();
            (Var::new(format!("i{k}"), dtype), Var::new(format!("v{k}"), dtype), e.clone())
        })
        .collect();
    let at: Vec<Expr> = axes.iter().map(|(_, v, _)| v.expr()).collect();
    let (from, value) = value(&at);
    let iters = axes.iter().map(|(_, v, e)| IterVar::spatial(v, Range::upto(e.clone()))).collect();
    let block = cell_block(&name, iters, (&from, &at), (to, at.clone()), value);
    let bindings = axes.iter().map(|(i, ..)| i.expr()).collect();
    let loops = axes.iter().map(|(i, _, e)| (i.clone(), Range::upto(e.clone())));
    Stmt::nest(loops, Stmt::block(bindings, when, block))
}
