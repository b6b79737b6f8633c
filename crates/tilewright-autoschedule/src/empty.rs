//! Reductions that may be over nothing, behind their schedule.
//!
//! A reduction is initialised by its first iteration, which a reduction over nothing does not have. Where a function
//! takes tensors without elements (`takes_empty`), what no primitive has taken apart by then is initialised in front of
//! the loops of the reduction.

use std::sync::Arc;

use tilewright_ir::{Expr, IterKind, Result, Stmt, StmtKind, dim};
use tilewright_schedule::Schedule;

/// Takes such reductions apart.
///
/// # Errors
/// What the primitive refuses.
pub(crate) fn initialise(sch: &mut Schedule, func: &Arc<str>) -> Result<()> {
    let body = sch.func(func)?.clone();
    if !body.takes_empty() {
        return Ok(());
    }
    let mut found: Vec<(Arc<str>, Vec<Expr>)> = Vec::new();
    body.body.for_each(|s| found.extend(over_nothing(s)));
    for (name, values) in found {
        let block = sch.get_block(&name, func)?;
        let loops = sch.get_loops(&block)?;
        let reduces = |var| values.iter().any(|value| value.mentions(var));
        if let Some(outermost) = loops.iter().find(|l| reduces(&l.var)) {
            sch.decompose_reduction(&block, outermost)?;
        }
    }
    Ok(())
}

/// The name of a block that its first iteration initialises, and that may have none, with the values of the variables
/// over which it reduces.
fn over_nothing(s: &Stmt) -> Option<(Arc<str>, Vec<Expr>)> {
    let StmtKind::Block { bindings, block, .. } = s.kind() else { return None };
    block.init.as_ref()?;
    let reduced = block.iters.iter().zip(bindings).filter(|(i, _)| i.kind == IterKind::Reduce);
    let extents: Vec<Expr> = reduced.clone().map(|(i, _)| i.domain.extent.clone()).collect();
    let are_some = dim::of_shape(&extents).is_some_and(|all| all.iter().all(|n| n.at_least(1)));
    let values = reduced.map(|(_, value)| value.clone());
    (!are_some).then(|| (block.name.clone(), values.collect()))
}
