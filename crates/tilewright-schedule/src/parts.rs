//! Passes that work on a part of a function: one block, one loop, two loops.
//!
//! Each primitive is the pass of the same name in `tilewright_transform`. Where the pass would leave
//! everything as it is, the primitive refuses with the pass's reason.

use tilewright_ir::{Error, Expr, Remarks, Result, Stmt, TensorFunc};
use tilewright_transform::hoist::Hoist;
use tilewright_transform::overcompute::{self, Floats};
use tilewright_transform::{extents, hoist, merge, partition};

use crate::loops::{factors, keep_units, loops_of};
use crate::schedule::{Schedule, block_site, loop_site};
use crate::trace::{Args, BlockRef, LoopRef, Value};

impl Schedule {
    /// Moves conditions and bindings of a block's body out of the loops in it that they do not
    /// depend on. The bits are those of [`Hoist::from_bits`].
    ///
    /// # Errors
    /// `Refused` where nothing can be moved; `Input` for unknown bits.
    pub fn hoist_expression(
        &mut self,
        block: &BlockRef,
        conditionals: i64,
        let_bindings: i64,
    ) -> Result<()> {
        let args = vec![
            ("block", block.into()),
            ("hoisted_conditionals", conditionals.into()),
            ("hoisted_let_bindings", let_bindings.into()),
        ];
        self.edit(&block.func, "hoist_expression", args, |func, _| {
            let what = Hoist::from_bits(conditionals, let_bindings)?;
            on_block(func, block, |f, s, why| hoist::hoist_expression(f, Some(s), what, why))
        })?;
        Ok(())
    }

    /// Lets the loops of a block's body run only over the iterations that do something.
    ///
    /// # Errors
    /// `Refused` where no range can be reduced.
    pub fn reduce_loop_extents(&mut self, block: &BlockRef) -> Result<()> {
        let args = vec![("block", block.into())];
        self.edit(&block.func, "reduce_loop_extents", args, |func, _| {
            on_block(func, block, |f, s, why| extents::reduce_loop_extents(f, Some(s), why))
        })?;
        Ok(())
    }

    /// Takes a loop apart into consecutive loops: of `factors` iterations, of which one may be open,
    /// and what is left over; without factors where the conditions in it change. The parts, in
    /// order.
    ///
    /// # Errors
    /// `Refused` where no condition changes at one place, or the factors do not fit.
    pub fn loop_partition(
        &mut self,
        l: &LoopRef,
        factors: Option<&[Option<Expr>]>,
    ) -> Result<Vec<LoopRef>> {
        let mut args = vec![("loop", l.into())];
        if let Some(factors) = factors {
            args.push(("factors", factors.iter().map(|f| f.as_ref().map(Value::from)).collect()));
        }
        let out = self.edit(&l.func, "loop_partition", args, |func, _| {
            let site = loop_site(func, l)?;
            let mut parts = Vec::new();
            let new = changed(func, &site.stmt, |why| {
                let (new, vars) = partition::partition_loop(func, &site.stmt, factors, why)?;
                parts = vars;
                Ok(new)
            })?;
            let as_value = |var| Value::Loop(LoopRef { func: l.func.clone(), var });
            Ok((new, parts.into_iter().map(as_value).collect()))
        })?;
        Ok(loops_of(out))
    }

    /// Lets loops over the same range, in one sequence, run together as the first of them.
    ///
    /// # Errors
    /// `Refused` where iterations that depend on each other would change their order, with a pair
    /// of them, or the loops are not alike.
    pub fn merge_loops(&mut self, loops: &[LoopRef]) -> Result<LoopRef> {
        let [first, others @ ..] = loops else {
            return Err(Error::refused("`merge_loops` needs at least two loops"));
        };
        if others.is_empty() {
            return Err(Error::refused("`merge_loops` needs at least two loops"));
        }
        let args = loops.iter().map(|l| ("", l.into())).collect();
        self.edit(&first.func, "merge_loops", args, |func, _| {
            let mut new = func.clone();
            for l in others {
                let (a, b) = (loop_site(&new, first)?, loop_site(&new, l)?);
                new = merge::merge_loops(&new, &a.stmt, &b.stmt)?;
            }
            Ok((new, vec![first.into()]))
        })?;
        Ok(first.clone())
    }
}

impl Schedule {
    /// Removes guards in and around a block where running without them changes nothing. With
    /// `wrap_indices`, an index that would leave its range is taken modulo the extent. `floats` says
    /// what may be in memory.
    ///
    /// # Errors
    /// `Refused` where every guard has to stay.
    pub fn remove_branching_through_overcompute(
        &mut self,
        block: &BlockRef,
        wrap_indices: bool,
        floats: Floats,
    ) -> Result<()> {
        let args = vec![
            ("block", block.into()),
            ("wrap_indices", Value::Bool(wrap_indices)),
            ("finite", Value::Bool(floats == Floats::Finite)),
        ];
        self.edit(&block.func, "remove_branching_through_overcompute", args, |func, _| {
            let options = overcompute::Options {
                block: Some(&block.name),
                wrap_indices,
                floats,
                ..Default::default()
            };
            on_block(func, block, |f, _, why| overcompute::remove_branching(f, &options, why))
        })?;
        Ok(())
    }

    /// Puts guards around loop bodies in a block that change nothing where the guards are false.
    ///
    /// # Errors
    /// `Refused` where there is no such guard.
    pub fn remove_overcompute_through_branching(&mut self, block: &BlockRef) -> Result<()> {
        let args = vec![("block", block.into())];
        self.edit(&block.func, "remove_overcompute_through_branching", args, |func, _| {
            let name = Some(&*block.name);
            on_block(func, block, |f, _, why| overcompute::remove_overcompute(f, name, why))
        })?;
        Ok(())
    }
}

/// Runs a pass on the body of a block.
fn on_block(
    func: &TensorFunc,
    block: &BlockRef,
    pass: impl FnOnce(&TensorFunc, &Stmt, &mut Remarks) -> Result<TensorFunc>,
) -> Result<(TensorFunc, Vec<Value>)> {
    let site = block_site(func, &block.name)?;
    let new = changed(func, &site.stmt, |why| pass(func, &site.stmt, why))?;
    Ok((new, Vec::new()))
}

/// What a pass makes of a function, if that is something else.
fn changed(
    func: &TensorFunc,
    at: &Stmt,
    pass: impl FnOnce(&mut Remarks) -> Result<TensorFunc>,
) -> Result<TensorFunc> {
    let mut why = Remarks::new();
    let new = pass(&mut why)?;
    match new.body.ptr_eq(&func.body) {
        false => Ok(new),
        true => Err(why
            .into_iter()
            .next()
            .unwrap_or_else(|| Error::refused("there is nothing to change").at(at.span()))),
    }
}

/// `hoist_expression(block, hoisted_conditionals=7, hoisted_let_bindings=7)` of a script.
pub(crate) fn hoist_expression_call(sch: &mut Schedule, mut args: Args) -> Result<Vec<Value>> {
    let block = args.block(sch)?;
    let conditionals = args.int_or(&["hoisted_conditionals"], 7)?;
    let bindings = args.int_or(&["hoisted_let_bindings"], 7)?;
    args.finish()?;
    sch.hoist_expression(&block, conditionals, bindings)?;
    Ok(Vec::new())
}

/// `reduce_loop_extents(block)` of a script.
pub(crate) fn reduce_loop_extents_call(sch: &mut Schedule, mut args: Args) -> Result<Vec<Value>> {
    let block = args.block(sch)?;
    args.finish()?;
    sch.reduce_loop_extents(&block)?;
    Ok(Vec::new())
}

/// `loop_partition(loop, factors=None)` of a script.
pub(crate) fn loop_partition_call(sch: &mut Schedule, mut args: Args) -> Result<Vec<Value>> {
    let l = args.loop_ref(sch)?;
    let given = match args.optional(&["factors"]) {
        None | Some(Value::None) => None,
        Some(given) => Some(factors(given, &l, &args)?),
    };
    keep_units(&mut args)?;
    args.finish()?;
    Ok(sch.loop_partition(&l, given.as_deref())?.iter().map(Value::from).collect())
}

/// `merge_loops(loop, loop, ...)` of a script.
pub(crate) fn merge_loops_call(sch: &mut Schedule, mut args: Args) -> Result<Vec<Value>> {
    let loops = args.loops(sch)?;
    args.finish()?;
    Ok(vec![Value::from(&sch.merge_loops(&loops)?)])
}

/// `remove_branching_through_overcompute(block, wrap_indices=False, finite=False)` of a script.
pub(crate) fn remove_branching_call(sch: &mut Schedule, mut args: Args) -> Result<Vec<Value>> {
    let block = args.block(sch)?;
    let wrap_indices = args.bool_or(&["wrap_indices"], false)?;
    let finite = args.bool_or(&["finite"], false)?;
    args.finish()?;
    let floats = if finite { Floats::Finite } else { Floats::Any };
    sch.remove_branching_through_overcompute(&block, wrap_indices, floats)?;
    Ok(Vec::new())
}

/// `remove_overcompute_through_branching(block)` of a script.
pub(crate) fn remove_overcompute_call(sch: &mut Schedule, mut args: Args) -> Result<Vec<Value>> {
    let block = args.block(sch)?;
    args.finish()?;
    sch.remove_overcompute_through_branching(&block)?;
    Ok(Vec::new())
}
