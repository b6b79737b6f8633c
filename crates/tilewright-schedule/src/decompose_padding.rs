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

use tilewright_analysis::index::{Ranges, simplify, simplify_indices};
use tilewright_analysis::stage::Extent;
use tilewright_ir::linear::Linear;
use tilewright_ir::visit::Subst;
use tilewright_ir::{
    BinOp, Block, Buffer, Dim, Error, Expr, ExprKind, Fold, IterKind, IterVar, Range, Result, Stmt,
    StmtKind, TensorFunc, Var,
};

use crate::cache::the_block;
use crate::cursor::{Cursor, as_loop, fresh_block_name, loop_cursor, replace_in};
use crate::primitive::primitives;
use crate::schedule::Edited;
use crate::value::{BlockRef, LoopRef};
use tilewright_analysis::footprint::{Footprint, fed, known_around, touches, view_of};

primitives! {
    /// Splits a block that copies with padding at a loop into a fill with the pad value and a
    /// copy of what is inside. Returns the block that fills; the copy keeps the name.
    ///
    /// # Errors
    /// `Refused` where something else in the loop may see the fill, the block is not one store of
    /// a padded value, the pad value reads memory, or the condition is not a box whose bounds are
    /// constants, or open sizes above.
    decompose_padding(block: &BlockRef, l "loop": &LoopRef) -> BlockRef,
        edit |f| decompose(f, block, l);
}

/// Where a condition holds: `from <= var < end`.
struct Bounds {
    from: i64,
    end: Dim,
}

fn decompose(func: &TensorFunc, block: &BlockRef, l: &LoopRef) -> Result<Edited<BlockRef>> {
    let (cursor, b) = the_block(func, block)?;
    let outer = loop_cursor(func, l)?;
    let StmtKind::Block { bindings, predicate, .. } = cursor.stmt.kind() else {
        return Err(Error::internal("a block cursor is no block"));
    };
    let refuse = |why: String| Error::refused(why).at(cursor.stmt.span());
    let of_block = |why: &str| refuse(format!("the block `{}` {why}", b.name));
    let Some(first) = cursor.around.iter().position(|s| s.ptr_eq(&outer.stmt)) else {
        return Err(of_block(&format!("is not in the loop `{}`", l.var.name())));
    };
    let nest = &cursor.around[first..];
    let plain = |s: &&Stmt| as_loop(s).is_none() && !matches!(s.kind(), StmtKind::Seq(_));
    if let Some(s) = nest.iter().find(plain) {
        return Err(Error::refused(format!(
            "between the loop `{}` and the block `{}` stand not only loops",
            l.var.name(),
            b.name
        ))
        .at(s.span()));
    }
    let StmtKind::Store { buffer, indices, value } = b.body.kind() else {
        return Err(of_block("does not consist of one store"));
    };
    if b.init.is_some() || !b.allocs.is_empty() || !b.matches.is_empty() {
        return Err(of_block("has an initialisation, allocations or views"));
    }
    // Loops of one iteration stand for zero.
    let ones: Vec<(Var, Expr)> = cursor
        .around
        .iter()
        .filter_map(as_loop)
        .filter(|(_, r, _)| r.min.as_int() == Some(0) && r.extent.as_int() == Some(1))
        .map(|(v, ..)| (v.clone(), Expr::int(0, v.dtype())))
        .collect();
    let mut ones = Subst::vars(ones);
    let plain = |e: &Expr| simplify(e, &Ranges::default());
    let bindings: Vec<Expr> = bindings.iter().map(|e| plain(&ones.expr(e))).collect();
    let predicate = ones.expr(predicate);
    // A condition that always holds is padding of no cells.
    let is_choice = |e: &Expr| matches!(e.kind(), ExprKind::IfThenElse(..) | ExprKind::Select(..));
    let decided = decided(value, &b.iters, &bindings, &cursor);
    let value = if is_choice(&decided) { &decided } else { value };
    let (ExprKind::IfThenElse(cond, inside, pad) | ExprKind::Select(cond, inside, pad)) =
        value.kind()
    else {
        return Err(of_block("does not store an `if_then_else`"));
    };
    if !pad.effects().constant() || pad.effects().intrinsics {
        return Err(refuse(format!("the pad value `{pad}` is not a constant")));
    }
    if value.loads_from(|b| *b == *buffer || b.data == buffer.data) {
        return Err(of_block(&format!("reads `{}`, which it writes", buffer.name)));
    }
    for iter in &b.iters {
        if iter.kind != IterKind::Spatial {
            return Err(of_block(&format!("has `{}`, which is not spatial", iter.var.name())));
        }
        let point = iter.domain.extent.as_int() == Some(1);
        if !point && !indices.iter().any(|i| i.as_var() == Some(&iter.var)) {
            return Err(of_block(&format!(
                "may write a cell for several values of `{}`, which is not an index of `{}`",
                iter.var.name(),
                buffer.name
            )));
        }
    }
    unseen(func, &cursor, first, buffer)?;
    // The loops that serve the block alone, and the statement that they make with it.
    let alone = nest.iter().rposition(|s| as_loop(s).is_none()).map_or(0, |k| k + 1);
    let own_nest = &nest[alone..];
    let element = own_nest.first().unwrap_or(&cursor.stmt).clone();

    let bounds = box_of(cond, &b.iters).map_err(|e| e.at(cursor.stmt.span()))?;

    // The fill: everything as it was, with the pad value.
    let name = fresh_block_name(func, &format!("{}_pad_const", b.name));
    let fill = Block {
        name: name.clone(),
        reads: None,
        writes: None,
        body: Stmt::store(buffer, indices.clone(), pad.clone()),
        ..(*b).clone()
    };
    let fill = Stmt::block(bindings.clone(), predicate.clone(), fill);
    let loops = nest.iter().filter(|s| as_loop(s).is_some());
    let fill = loops.rev().fold(fill, |body, s| s.with_body(body));
    let fill = Subst::refresh().stmt(&fill);

    // The copy: each variable from its lower bound.
    let mut moved = Subst::default();
    let mut ranges = Ranges::default();
    let mut iters = Vec::new();
    let mut new_bindings = Vec::new();
    let mut inner_predicate = Expr::bool(true);
    let mut extents: Vec<(Var, Expr)> = Vec::new();
    for (k, (iter, bound)) in b.iters.iter().zip(&bounds).enumerate() {
        let Some(Bounds { from, end }) = bound else {
            ranges.bind_loop(&iter.var, &iter.domain);
            iters.push(iter.clone());
            new_bindings.push(bindings[k].clone());
            continue;
        };
        let at = &bindings[k];
        let own = shifted(at).filter(|(v, _)| {
            let elsewhere = bindings.iter().enumerate().any(|(j, e)| j != k && e.mentions(v))
                || predicate.mentions(v)
                || nest.iter().filter_map(as_loop).any(|(_, r, _)| r.extent.mentions(v));
            !elsewhere
        });
        // Such a loop runs over the bounds alone.
        let own = own.and_then(|(v, shift)| {
            let mut loops = own_nest.iter().filter_map(as_loop);
            let (_, r, _) = loops.find(|(x, r, _)| **x == v && r.min.as_int() == Some(0))?;
            let (n, all) = (Dim::of(&r.extent)?, Dim::of(&iter.domain.extent)?);
            let last = n + usize::try_from(shift).ok()?;
            all.at_least(last).then(|| (v, (*from).max(shift), (*end).min(last)))
        });
        let (from, end) = own.as_ref().map_or((*from, *end), |(_, from, end)| (*from, *end));
        let count = end - from.dim();
        if count == 0 {
            return Err(refuse(format!("the condition `{cond}` never holds")));
        }
        let is_loop = |v: &Var| cursor.around.iter().filter_map(as_loop).any(|(l, ..)| l == v);
        if let Some(v) = end.vars().iter().find(|v| is_loop(v)) {
            return Err(of_block(&format!("is padded up to the loop variable `{}`", v.name())));
        }
        let dtype = iter.var.dtype();
        let extent = count.typed(dtype);
        let var = iter.var.fresh();
        ranges.bind_loop(&var, &Range::upto(extent.clone()));
        moved.vars.insert(iter.var.clone(), var.expr() + from);
        let domain = Range::upto(extent.clone());
        iters.push(IterVar { var, domain, kind: iter.kind });
        match own {
            Some((v, ..)) => {
                new_bindings.push(v.expr().cast(at.dtype()));
                extents.push((v.clone(), extent.cast(v.dtype())));
            }
            None => {
                if from > 0 {
                    inner_predicate =
                        inner_predicate.and(Expr::int(from, at.dtype()).less_equal(at));
                }
                if Dim::of(&iter.domain.extent) != Some(end) {
                    inner_predicate = inner_predicate.and(at.clone().less(end.typed(at.dtype())));
                }
                new_bindings.push(plain(&(at.clone() - from)));
            }
        }
    }
    let inner_predicate = Expr::all(std::iter::once(inner_predicate).chain(predicate.conjuncts()));
    let store = Stmt::store(
        buffer,
        indices.iter().map(|i| simplify(&moved.expr(i), &ranges)).collect(),
        simplify_indices(&moved.expr(inside), &ranges),
    );
    let copy = Block { iters, reads: None, writes: None, body: store, ..(*b).clone() };
    let copy = Stmt::spanned(
        Stmt::block(new_bindings, inner_predicate, copy).kind().clone(),
        cursor.stmt.span(),
    );
    let copy = own_nest.iter().rev().fold(copy, |body, s| match as_loop(s) {
        Some((var, range, _)) => {
            let extent = extents.iter().find(|(v, _)| v == var);
            let extent = extent.map_or_else(|| range.extent.clone(), |(_, e)| e.clone());
            s.with_loop(Range { min: range.min.clone(), extent }, body)
        }
        None => body,
    });
    let rest = crate::cursor::replace(&outer.stmt, &element, &copy);
    let new = replace_in(func, &outer.stmt, &Stmt::seq([fill, rest]));
    Ok((new, BlockRef { func: block.func.clone(), name }))
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
        let values = outside.of(at).meet(inside.of(&iter.var.expr()));
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

/// `v` and `c` of `v + c`.
fn shifted(e: &Expr) -> Option<(Var, i64)> {
    let form = Linear::of(e)?;
    match &form.terms[..] {
        [(atom, 1)] => Some((atom.as_var()?.clone(), i64::try_from(form.constant).ok()?)),
        _ => None,
    }
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
        let written = Footprint::of(element, buffer).writes;
        for (other, s) in list.iter().enumerate().filter(|(n, _)| *n != at) {
            let (reads, writes) = touches(s, buffer);
            let own = || Footprint::of(s, buffer).reads;
            let why = match (reads, writes) {
                (_, true) => "writes",
                (true, _) if other < at => "reads, before the block does,",
                (true, _) if !fed(buffer, &own(), &written, &known)? => {
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

/// The bounds that a condition sets to each variable, where they are tighter than its domain.
fn box_of(cond: &Expr, iters: &[IterVar]) -> Result<Vec<Option<Bounds>>> {
    let mut out: Vec<Option<Bounds>> = iters.iter().map(|_| None).collect();
    for part in cond.conjuncts().into_iter().filter(|part| !part.is_true()) {
        let (k, from, end) = bound_of(&part, iters).ok_or_else(|| {
            Error::refused(format!(
                "the condition `{part}` is no constant bound of one iteration variable"
            ))
        })?;
        let iter = &iters[k];
        let (Some(0), Some(n)) = (iter.domain.min.as_int(), Dim::of(&iter.domain.extent)) else {
            return Err(Error::refused(format!(
                "the extent {} of `{}` is no size from zero",
                iter.domain.extent,
                iter.var.name()
            )));
        };
        let old = out[k].get_or_insert(Bounds { from: 0, end: n });
        old.from = old.from.max(from.unwrap_or(0));
        old.end = old.end.min(end.unwrap_or(n));
        if old.end - old.from.dim() == 0 {
            return Err(Error::refused(format!("the condition `{cond}` never holds")));
        }
    }
    for (b, iter) in out.iter_mut().zip(iters) {
        let whole = |b: &Bounds| b.from == 0 && Dim::of(&iter.domain.extent) == Some(b.end);
        if b.as_ref().is_some_and(whole) {
            *b = None;
        }
    }
    Ok(out)
}

/// Which variable a comparison bounds: its first value, or the one after its last.
fn bound_of(e: &Expr, iters: &[IterVar]) -> Option<(usize, Option<i64>, Option<Dim>)> {
    let ExprKind::Binary(op, a, b) = e.kind() else { return None };
    let k = iters.iter().position(|i| a.mentions(&i.var) || b.mentions(&i.var))?;
    // Brought to `factor * var + sizes + constant >= 0`.
    let (greater, less, apart) = match op {
        BinOp::Ge => (a, b, 0),
        BinOp::Gt => (a, b, 1),
        BinOp::Le => (b, a, 0),
        BinOp::Lt => (b, a, 1),
        _ => return None,
    };
    let mut form = Linear::of(greater)?.plus(&Linear::of(less)?, -1)?;
    let at = form.terms.iter().position(|(atom, _)| atom.as_var() == Some(&iters[k].var))?;
    let (_, factor) = form.terms.remove(at);
    form.constant -= apart;
    let constant = form.constant;
    let number = |v: i128| i64::try_from(v).ok();
    match (form.terms.is_empty(), factor) {
        (true, 1..) => Some((k, Some(number((factor - 1 - constant).div_euclid(factor))?), None)),
        (true, _) => Some((k, None, Some(number(constant.div_euclid(-factor) + 1)?.dim()))),
        // Below an open size.
        (false, -1) => {
            form.constant += 1;
            let end = form.to_expr()?;
            let other = iters.iter().any(|i| end.mentions(&i.var));
            Some((k, None, Some(Dim::of(&end).filter(|_| !other)?)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_as_boxes() {
        let (i, j) = (Var::index("i"), Var::index("j"));
        let iter = |v: &Var, n| IterVar {
            var: v.clone(),
            domain: Range::upto(Expr::i32(n)),
            kind: IterKind::Spatial,
        };
        let iters = [iter(&i, 20), iter(&j, 10)];
        let text = |e: Expr| match box_of(&e, &iters) {
            Ok(list) => list
                .iter()
                .map(|b| b.as_ref().map_or("-".into(), |b| format!("{}..{}", b.from, b.end)))
                .collect::<Vec<_>>()
                .join(" "),
            Err(e) => e.to_string(),
        };
        let at_least = i.expr().greater_equal(6);
        assert_eq!(text(at_least.clone().and(i.expr().less(14))), "6..14 -");
        assert_eq!(text((&i * 2 + 1).greater(6).and(Expr::i32(3).greater(&j))), "3..20 0..3");
        assert_eq!(text((Expr::i32(7) - &j * 2).greater_equal(0)), "- 0..4");
        assert_eq!(text(i.expr().less(20)), "- -");
        assert_eq!(
            text(at_least.and(i.expr().less(5))),
            "the condition `i >= 6 and i < 5` never holds"
        );
        assert_eq!(
            text(i.expr().less(&j)),
            "the condition `i < j` is no constant bound of one iteration variable"
        );
    }
}
