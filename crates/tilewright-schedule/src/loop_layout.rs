//! Primitives that give loops another iteration space: `transform_loops`, `fission` and `join_loops`.
//!
//! ```text
//! transform_loops([i], lambda i: [i // 4, i % 4])
//!
//! for i in range(14):              for i_0, i_1 in T.grid(4, 4):
//!     A[i // 4, i % 4] = i             if i_0 * 4 + i_1 < 14:
//!                                          A[i_0, i_1] = i_0 * 4 + i_1
//! ```
//!
//! Any injective index map may be given: splits, fusions, reorders, offsets, skews. Old indices
//! become the map's inverse; what the box has in addition is guarded. Every pair of iterations that
//! depend on each other must keep its order.
//!
//! ```text
//! join_loops(i, j)
//!
//! for i in range(3):               for i in range(5):
//!     A[i] = 1                         if i < 3:
//! for j in range(2):                       A[i] = 1
//!     B[j] = 2                         else:
//!                                          B[i - 3] = 2
//! ```
//!
//! What loops that were taken apart have in common, such as threads, is then shared among all their
//! iterations at once.

use tilewright_ir::visit::Subst;
use tilewright_ir::{
    DType, Error, Expr, Fold, ForKind, Range, Result, Stmt, StmtKind, TensorFunc, Var,
};
use tilewright_polyhedral::Engine;
use tilewright_polyhedral::dependence::{accesses, keeps_order};

use crate::cursor::{
    around, find, loop_cursor, loop_ranges, ranges_around, replace_in, the_block, within,
};
use crate::disjoint::require_disjoint;
use crate::loops::{Nest, guard_blocks, serial};
use crate::primitive::primitives;
use crate::schedule::Edited;
use crate::value::{BlockRef, Lambda, LoopRef};
use tilewright_layout::index_map::IndexMap;
use tilewright_layout::relayout::{Tidy, simplify_under};

primitives! {
    /// Lets loops that are directly inside one another, outermost first, run over the physical box
    /// of an index map of their variables. Returns the new loops.
    ///
    /// # Errors
    /// `Refused` where the loops are not nested so or run in a special way, the map is not
    /// injective, or iterations that depend on each other would change their order.
    transform_loops(loops: &[LoopRef], index_map: &Lambda) -> Vec<LoopRef>,
        edit |f| transform_loops(f, loops, index_map);

    /// The loops inside a block, in the order of the text.
    ///
    /// # Errors
    /// `Refused` where there is no such block.
    get_inner_loops(block: &BlockRef) -> Vec<LoopRef>, ask |sch| {
        let mut loops = Vec::new();
        the_block(sch.func(&block.func)?, block)?.stmt.for_each(|s| {
            loops.extend(s.loop_var().map(|var| LoopRef::new(&block.func, var)));
        });
        Ok(loops)
    };

    /// Splits the body of a loop in two: the statements before position `at`, and the rest, each
    /// in a loop of its own. The second one keeps the loop's variable.
    ///
    /// # Errors
    /// `Refused` where the body is not a sequence with such a position, or an iteration of the
    /// first part depends on an earlier one of the second.
    fission(l "loop": &LoopRef, at: usize) -> (LoopRef, LoopRef), edit |f| fission(f, l, at);

    /// Joins consecutive loops of one sequence, in their order, into one loop over the iterations
    /// of all, with a branch for each. The order of the iterations stays: this is the inverse of
    /// `loop_partition`. Returns the loop.
    ///
    /// # Errors
    /// `Refused` where the loops are fewer than two, are not one behind the other, or run in a special
    /// way.
    join_loops([rest] loops: &[LoopRef]) -> LoopRef, edit |f| join_loops(f, loops);
}

fn transform_loops(
    func: &TensorFunc,
    loops: &[LoopRef],
    lambda: &Lambda,
) -> Result<Edited<Vec<LoopRef>>> {
    let Nest { outer, loops: old, body } =
        Nest::find(func, loops, |s| serial(s, "transformed").map(drop))?;
    let ranges = loop_ranges(&old);
    let engine = Engine::new();
    let vars: Vec<Var> = ranges.iter().map(|(v, _)| v.clone()).collect();
    let boxes: Vec<(DType, Range)> = ranges.iter().map(|(v, r)| (v.dtype(), r.clone())).collect();
    let map = IndexMap::bind_over(lambda, &boxes)?;
    let at: Vec<Expr> = vars.iter().map(Var::expr).collect();
    let new_order = map.apply(&at);
    let nest = within(around(&engine, &outer), &old);
    let relation = nest.map(&new_order)?;
    if let Some(c) = relation.collision()? {
        return Err(Error::refused("the index map is not injective").note(c.to_string()));
    }
    let cells = map.cells();
    let image = relation.image(&cells)?;
    let inverse = relation.inverse(&cells)?;
    keeps_order(&nest, &accesses(&body, &nest)?, &vars, (&at, &new_order))?;
    let cell_ranges: Vec<(Var, Range)> = cells
        .iter()
        .zip(&image.shape)
        .map(|(c, e)| (c.clone(), Range::upto(e.clone().cast(c.dtype()))))
        .collect();
    let known = [ranges_around(&outer), cell_ranges.clone()].concat();
    let guard = if image.padding.is_false() {
        Expr::bool(true)
    } else {
        guard(&engine, &ranges, &inverse, &known, &image)?
    };
    let subst: Vec<(Var, Expr)> =
        vars.iter().zip(inverse).map(|(v, e)| (v.clone(), e.cast(v.dtype()))).collect();
    let body = Subst::vars(subst).stmt(&body);
    let guards = if guard.is_true() { Vec::new() } else { vec![guard.clone()] };
    let mut tidy = Tidy::new(&engine, known, cells.clone(), guards);
    let mut body = tidy.stmt(&body);
    if !guard.is_true() {
        body = guard_blocks(&body, &guard);
    }
    let new = Stmt::nest(cell_ranges.into_iter(), body);
    let refs = cells.iter().map(|var| LoopRef::new(&loops[0].func, var));
    Ok((replace_in(func, &outer.stmt, &new), refs.collect()))
}

/// Where in the box an iteration of the loops is: the ranges of the loops, of the inverse, where
/// that says it; or else the cells that are reached.
fn guard(
    engine: &Engine,
    ranges: &[(Var, Range)],
    inverse: &[Expr],
    known: &[(Var, Range)],
    image: &tilewright_polyhedral::Image,
) -> Result<Expr> {
    let reached = image.reached.condition(&image.cells)?;
    let mut to_cells =
        Subst::vars(ranges.iter().map(|(v, _)| v.clone()).zip(inverse.iter().cloned()));
    let domain = engine.domain_of(known, &[]);
    let mut parts: Vec<Expr> = Vec::new();
    for ((_, r), value) in ranges.iter().zip(inverse) {
        let min = to_cells.expr(&r.min).cast(value.dtype());
        let end = min.clone() + &to_cells.expr(&r.extent).cast(value.dtype());
        for part in [value.clone().greater_equal(min), value.clone().less(end)] {
            if !domain.proves(&part) {
                parts.push(part);
            }
        }
    }
    let all = parts.iter().cloned().reduce(|a, b| a.and(b));
    match all {
        Some(all) if domain.is_equal(&all, &reached) => {
            // Of one part, the simplest form; of several, each as it is.
            let single = parts.len() == 1;
            let simple = parts
                .iter()
                .map(|p| if single { p.clone() } else { simplify_part(engine, known, p) });
            Ok(simple.reduce(|a, b| a.and(b)).unwrap_or(reached))
        }
        _ => Ok(reached),
    }
}

/// A comparison in its simplest form, unless that is another kind of condition.
fn simplify_part(engine: &Engine, known: &[(Var, Range)], p: &Expr) -> Expr {
    let simple = simplify_under(engine, known, &[], p);
    match simple.kind() {
        tilewright_ir::ExprKind::Binary(op, ..) if op.is_compare() => simple,
        _ => p.clone(),
    }
}

fn fission(func: &TensorFunc, l: &LoopRef, at: usize) -> Result<Edited<(LoopRef, LoopRef)>> {
    let cursor = loop_cursor(func, l)?;
    let (var, range, body) = serial(&cursor.stmt, "split in two")?;
    let StmtKind::Seq(list) = body.kind() else {
        let what = format!("the body of the loop `{var}` is one statement");
        return Err(Error::refused(what));
    };
    if at == 0 || at >= list.len() {
        return Err(Error::refused(format!(
            "the body of the loop `{var}` has {} statements and cannot be split at {at}",
            list.len()
        )));
    }
    let (first, rest) = (Stmt::seq(list[..at].to_vec()), Stmt::seq(list[at..].to_vec()));
    let engine = Engine::new();
    let inside = around(&engine, &cursor).with_var(var, range);
    let (a, b) = (accesses(&first, &inside)?, accesses(&rest, &inside)?);
    // The first part of a later iteration would run before the rest of an earlier one.
    require_disjoint(&a, &b, std::slice::from_ref(var), |names| {
        let earlier = names.get(var).unwrap_or(var);
        vec![earlier.expr().less(var.expr())]
    })?;
    let mut copy = Subst::refresh();
    let new_var = var.fresh();
    copy.vars.insert(var.clone(), new_var.expr());
    let head = Stmt::for_loop(&new_var, range.clone(), ForKind::Serial, copy.stmt(&first));
    let new = Stmt::seq([head, cursor.stmt.with_body(rest)]);
    let out = (LoopRef::new(&l.func, &new_var), LoopRef::new(&l.func, var));
    Ok((replace_in(func, &cursor.stmt, &new), out))
}

fn join_loops(func: &TensorFunc, loops: &[LoopRef]) -> Result<Edited<LoopRef>> {
    let (Some(first), true) = (loops.first(), loops.len() > 1) else {
        return Err(Error::refused("it needs at least two loops"));
    };
    let cursor = loop_cursor(func, first)?;
    let sequence = cursor.around.last().and_then(|s| match s.kind() {
        StmtKind::Seq(list) => Some((s, list)),
        _ => None,
    });
    let at = sequence.and_then(|(_, list)| list.iter().position(|s| s.ptr_eq(&cursor.stmt)));
    let (Some((around_all, list)), Some(at)) = (sequence, at) else {
        return Err(not_directly_behind(loops[1].var.name()));
    };
    let engine = Engine::new();
    let outside = around(&engine, &cursor);
    let joined = first.var.fresh();
    // Of each loop: how many iterations come before its end, and what runs in one.
    let mut parts: Vec<(Expr, Stmt)> = Vec::new();
    let mut before = Expr::int(0, joined.dtype());
    for (k, l) in loops.iter().enumerate() {
        let Some(stmt) = list.get(at + k).filter(|s| s.loop_var() == Some(&l.var)) else {
            return Err(not_directly_behind(l.var.name()));
        };
        let (var, range, body) = serial(stmt, "joined with others")?;
        let zero = Expr::int(0, range.extent.dtype());
        let count = if outside.proves(&range.extent.clone().greater_equal(zero.clone())) {
            range.extent.clone()
        } else {
            range.extent.clone().max(zero)
        };
        // One iteration has a constant place.
        let value = match outside.proves(&range.extent.clone().less_equal(1)) {
            true => range.min.clone(),
            false => (joined.expr() - &before).cast(var.dtype()) + &range.min,
        };
        let body = Subst::vars([(var.clone(), value)]).stmt(body);
        before = before + count.cast(joined.dtype());
        parts.push((before.clone(), body));
    }
    let Some(body) =
        parts.into_iter().rev().fold(None, |rest, part| branch_before(rest, part, &joined))
    else {
        return Err(Error::internal("no loops"));
    };
    let all = Stmt::for_loop(&joined, Range::upto(before), ForKind::Serial, body);
    let left = list[..at].iter().cloned();
    let right = list[at + loops.len()..].iter().cloned();
    let new = Stmt::seq(left.chain([all]).chain(right));
    Ok((replace_in(func, around_all, &new), LoopRef::new(&first.func, &joined)))
}

fn not_directly_behind(name: &str) -> Error {
    Error::refused(format!("the loop `{name}` does not come directly behind another one"))
}

fn branch_before(rest: Option<Stmt>, (end, body): (Expr, Stmt), joined: &Var) -> Option<Stmt> {
    Some(match rest {
        None => body,
        Some(rest) => Stmt::if_else(joined.expr().less(end), body, rest),
    })
}

/// Where in a statement the loops are that have these variables.
pub(crate) fn is_loop_over(s: &Stmt, var: &Var) -> bool {
    !find(s, |s| s.loop_var() == Some(var)).is_empty()
}
