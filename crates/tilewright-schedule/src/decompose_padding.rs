//! `decompose_padding`: a padded copy as a fill with the pad value and a copy without conditions.
//!
//! ```text
//! for i in range(140): y[i] = if_then_else(6 <= i and i < 134, x[i - 6], 0)
//!
//! for i in range(140): y[i] = 0
//! for i in range(128): y[i + 6] = x[i]
//! ```
//!
//! The condition must be a box: bounds of single iteration variables by constants. Each variable
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
use tilewright_ir::interval::Interval;
use tilewright_ir::linear::Linear;
use tilewright_ir::visit::Subst;
use tilewright_ir::{
    BinOp, Block, Buffer, Error, Expr, ExprKind, Fold, IterKind, IterVar, Range, Result, Stmt,
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
    /// a padded value, the pad value reads memory, or the condition is not a box with constant
    /// bounds.
    decompose_padding(block: &BlockRef, l "loop": &LoopRef) -> BlockRef,
        edit |f| decompose(f, block, l);
}

/// Where a condition holds: `from <= var < end`.
struct Bounds {
    from: i64,
    end: i64,
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
        let dtype = iter.var.dtype();
        let extent = Expr::int(end - from, dtype);
        let var = iter.var.fresh();
        ranges.bind(&var, Interval::new(0, i128::from(end - from - 1)));
        moved.vars.insert(iter.var.clone(), var.expr() + *from);
        let domain = Range::upto(extent.clone());
        iters.push(IterVar { var, domain, kind: iter.kind });
        let at = &bindings[k];
        let own = at.as_var().filter(|v| {
            let elsewhere = bindings.iter().enumerate().any(|(j, e)| j != k && e.mentions(v))
                || predicate.mentions(v)
                || nest.iter().filter_map(as_loop).any(|(_, r, _)| r.extent.mentions(v));
            let whole = own_nest.iter().filter_map(as_loop).any(|(x, r, _)| {
                x == *v
                    && r.min.as_int() == Some(0)
                    && r.extent.as_int() == iter.domain.extent.as_int()
            });
            whole && !elsewhere
        });
        match own {
            Some(v) => {
                extents.push((v.clone(), extent.cast(v.dtype())));
                new_bindings.push(at.clone());
            }
            None => {
                if *from > 0 {
                    inner_predicate =
                        inner_predicate.and(Expr::int(*from, at.dtype()).less_equal(at));
                }
                if iter.domain.extent.as_int() != Some(*end) {
                    inner_predicate = inner_predicate.and(at.clone().less(*end));
                }
                new_bindings.push(plain(&(at.clone() - *from)));
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
    for part in cond.conjuncts() {
        let (k, from, end) = bound_of(&part, iters).ok_or_else(|| {
            Error::refused(format!(
                "the condition `{part}` is no constant bound of one iteration variable"
            ))
        })?;
        let iter = &iters[k];
        let (Some(0), Some(n)) = (iter.domain.min.as_int(), iter.domain.extent.as_int()) else {
            return Err(Error::refused(format!(
                "the extent {} of `{}` is not a constant from zero",
                iter.domain.extent,
                iter.var.name()
            )));
        };
        let old = out[k].get_or_insert(Bounds { from: 0, end: n });
        old.from = old.from.max(from.unwrap_or(0));
        old.end = old.end.min(end.unwrap_or(n));
        if old.from >= old.end {
            return Err(Error::refused(format!("the condition `{cond}` never holds")));
        }
    }
    for (b, iter) in out.iter_mut().zip(iters) {
        let whole = |b: &Bounds| b.from == 0 && iter.domain.extent.as_int() == Some(b.end);
        if b.as_ref().is_some_and(whole) {
            *b = None;
        }
    }
    Ok(out)
}

/// Which variable a comparison bounds: its first value, or the one after its last.
fn bound_of(e: &Expr, iters: &[IterVar]) -> Option<(usize, Option<i64>, Option<i64>)> {
    let ExprKind::Binary(op, a, b) = e.kind() else { return None };
    let k = iters.iter().position(|i| a.mentions(&i.var) || b.mentions(&i.var))?;
    // Brought to `factor * var + constant >= 0`.
    let (greater, less, apart) = match op {
        BinOp::Ge => (a, b, 0),
        BinOp::Gt => (a, b, 1),
        BinOp::Le => (b, a, 0),
        BinOp::Lt => (b, a, 1),
        _ => return None,
    };
    let form = Linear::of(greater)?.plus(&Linear::of(less)?, -1)?;
    let [(atom, factor)] = &form.terms[..] else { return None };
    let constant = form.constant - apart;
    let number = |v: i128| i64::try_from(v).ok();
    match (atom.as_var() == Some(&iters[k].var), *factor > 0) {
        (false, _) => None,
        (_, true) => Some((k, Some(number((factor - 1 - constant).div_euclid(*factor))?), None)),
        (_, false) => Some((k, None, Some(number(constant.div_euclid(-factor) + 1)?))),
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
