//! Passes that work on a part of a function: one block, one loop, two loops.
//!
//! Each primitive is the pass of the same name in `tilewright_transform`. Where the pass would
//! leave everything as it is, the primitive refuses with the pass's reason.

use tilewright_ir::{Error, Expr, Remarks, Result, Stmt, TensorFunc};
use tilewright_transform::hoist::Hoist;
use tilewright_transform::overcompute::{self, Floats};
use tilewright_transform::{extents, hoist, merge, partition, versions};

use crate::cursor::{loop_cursor, the_block};
use crate::primitive::primitives;
use crate::schedule::Edited;
use crate::value::{BlockRef, LoopRef};

primitives! {
    /// Moves conditions and bindings of a block's body out of the loops in it that they do not
    /// depend on. The bits say from where: those of the pass of this name.
    ///
    /// # Errors
    /// `Refused` where nothing can be moved; `Input` for unknown bits.
    hoist_expression(
        block: &BlockRef,
        hoisted_conditionals: i64 = 7,
        hoisted_let_bindings: i64 = 7
    ), edit |f| {
        let what = Hoist::from_bits(hoisted_conditionals, hoisted_let_bindings)?;
        on_block(f, block, |f, s, why| Ok(hoist::hoist_expression(f, Some(s), what, why)))
    };

    /// Lets the loops of a block's body run only over the iterations that do something.
    ///
    /// # Errors
    /// `Refused` where no range can be reduced.
    reduce_loop_extents(block: &BlockRef), edit |f| {
        on_block(f, block, |f, s, why| Ok(extents::reduce_loop_extents(f, Some(s), why)))
    };

    /// Splits a loop into consecutive loops: of `factors` iterations, one of which may be open, and
    /// of the rest; without factors, at the places where conditions in it change. Returns the
    /// parts, in order.
    ///
    /// # Errors
    /// `Refused` where no condition changes at one place, or the factors do not fit.
    loop_partition(
        l "loop": &LoopRef,
        factors: Option<&[Option<Expr>]> = None;
        preserve_unit_iters = true, disable_predication = false
    ) -> Vec<LoopRef>, edit |f| {
        let cursor = loop_cursor(f, l)?;
        let mut parts = Vec::new();
        let new = changed(f, |why| {
            let (new, vars) = partition::partition_loop(f, &cursor.stmt, factors, why)?;
            parts = vars;
            Ok(new)
        })?;
        Ok((new, parts.iter().map(|var| LoopRef::new(&l.func, var)).collect()))
    };

    /// Makes versions of a loop for values that an expression of sizes and of loops around it may have, and one for any
    /// others where there may be some; each runs where the expression has its value, and loops in it that do nothing
    /// from the iteration of that number on end there. Returns the loops, in order.
    ///
    /// # Errors
    /// `Refused` where the expression depends on memory, or the copies are too many.
    loop_versions(l "loop": &LoopRef, value: &Expr, cases: &[i64]) -> Vec<LoopRef>, edit |f| {
        let cursor = loop_cursor(f, l)?;
        let (new, vars) = versions::version_loop(f, &cursor.stmt, value, cases)?;
        Ok((new, vars.iter().map(|var| LoopRef::new(&l.func, var)).collect()))
    };

    /// Lets loops over the same range, in one sequence, run together as the first of them.
    ///
    /// # Errors
    /// `Refused` where iterations that depend on each other would change their order, with a pair
    /// of them, or the loops are not alike.
    merge_loops([rest] loops: &[LoopRef]) -> LoopRef, edit |f| match loops {
        [first, others @ ..] if !others.is_empty() => {
            let mut new = f.clone();
            for l in others {
                let (a, b) = (loop_cursor(&new, first)?, loop_cursor(&new, l)?);
                new = merge::merge_loops(&new, &a.stmt, &b.stmt)?;
            }
            Ok((new, first.clone()))
        }
        _ => Err(Error::refused("it needs at least two loops")),
    };

    /// Removes guards in and around a block where running without them changes nothing. With
    /// `wrap_indices`, an index that would leave its range is taken modulo the extent; `finite`
    /// says that no float in memory is infinite or `NaN`.
    ///
    /// # Errors
    /// `Refused` where every guard has to stay.
    remove_branching_through_overcompute(
        block: &BlockRef,
        wrap_indices: bool = false,
        finite: bool = false
    ), edit |f| {
        let floats = if finite { Floats::Finite } else { Floats::Any };
        let options = overcompute::OvercomputeOptions {
            block: Some(&block.name),
            wrap_indices,
            floats,
            ..overcompute::OvercomputeOptions::default()
        };
        on_block(f, block, |f, _, why| overcompute::remove_branching(f, &options, why))
    };

    /// Puts guards around loop bodies in a block that change nothing where the guards are false.
    ///
    /// # Errors
    /// `Refused` where there is no such guard.
    remove_overcompute_through_branching(block: &BlockRef), edit |f| {
        let name = Some(&*block.name);
        on_block(f, block, |f, _, why| overcompute::remove_overcompute(f, name, why))
    };
}

/// Runs a pass on the body of a block.
fn on_block(
    func: &TensorFunc,
    block: &BlockRef,
    pass: impl FnOnce(&TensorFunc, &Stmt, &mut Remarks) -> Result<TensorFunc>,
) -> Result<Edited> {
    let cursor = the_block(func, block)?;
    Ok((changed(func, |why| pass(func, &cursor.stmt, why))?, ()))
}

/// What a pass makes of a function, if that is something else.
fn changed(
    func: &TensorFunc,
    pass: impl FnOnce(&mut Remarks) -> Result<TensorFunc>,
) -> Result<TensorFunc> {
    let mut why = Remarks::new();
    let new = pass(&mut why)?;
    if new.body.ptr_eq(&func.body) {
        Err(why.into_iter().next().unwrap_or_else(|| Error::refused("there is nothing to change")))
    } else {
        Ok(new)
    }
}
