//! Third step: the function without the guards that go, and all three steps for one guard.

use std::sync::Arc;

use tilewright_analysis::regions::{infer, same_region};
use tilewright_ir::visit::fold_stmt_children;
use tilewright_ir::{
    Block, DType, Error, Expr, Range, Region, Remarks, Result, Stmt, StmtKind, TensorFunc,
};
use tilewright_polyhedral::scop::{GuardId, Scop, rewrite};

use super::added::{Wrap, Wrapped};
use super::candidates::Candidates;
use super::guard::{OvercomputeOptions, guards};

impl Candidates<'_> {
    /// The function without the guards that are left.
    ///
    /// # Errors
    /// `Refused` where the type of an iteration variable does not hold the domain that it would
    /// have.
    pub fn without_guards(&self, func: &TensorFunc) -> Result<TensorFunc> {
        let wraps: Vec<Wrap> = self.left(&self.wraps).cloned().collect();
        let mut error = None;
        let body = rewrite(&func.body, &mut |place, s| {
            let goes = self.guards.contains_key(&GuardId { place, part: 0 });
            match s.kind() {
                StmtKind::If { then, .. } if goes => Some(then.clone()),
                StmtKind::Block { bindings, predicate, block } => {
                    let predicate = if goes { Expr::bool(true) } else { predicate.clone() };
                    let block = self.widened(place, block).unwrap_or_else(|e| {
                        error = Some(e);
                        block.clone()
                    });
                    let bindings = bindings.clone();
                    Some(Stmt::spanned(StmtKind::Block { bindings, predicate, block }, s.span()))
                }
                StmtKind::Store { .. } if wraps.iter().any(|(p, ..)| *p == place) => {
                    Some(fold_stmt_children(&mut Wrapped { place, wraps: &wraps }, s))
                }
                _ => None,
            }
        });
        error.map_or_else(|| Ok(TensorFunc { body, ..func.clone() }), Err)
    }

    /// What belongs to guards that go.
    fn left<'b, T>(&self, list: &'b [(GuardId, T)]) -> impl Iterator<Item = &'b T> {
        list.iter().filter(|(id, _)| self.guards.contains_key(id)).map(|(_, what)| what)
    }

    /// The block with domains for all values of its variables, and regions for all it touches.
    fn widened(&self, place: usize, block: &Arc<Block>) -> Result<Arc<Block>> {
        let mut new = (**block).clone();
        for (_, number, range) in self.left(&self.wider).filter(|(p, ..)| *p == place) {
            if let Some(iter) = new.iters.get_mut(*number) {
                iter.domain = join(&iter.domain, range, iter.var.dtype())?;
            }
        }
        let declares = new.reads.is_some() || new.writes.is_some();
        if let Some(StmtKind::Block { block: old, .. }) = self.scop.text.get(place).map(Stmt::kind)
            && declares
        {
            let ((reads, writes), before) = (infer(&new), infer(old));
            if !same_regions(&reads, &before.0) || !same_regions(&writes, &before.1) {
                (new.reads, new.writes) = (new.reads.map(|_| reads), new.writes.map(|_| writes));
            }
        }
        Ok(Arc::new(new))
    }
}

fn same_regions(a: &[Region], b: &[Region]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_region(a, b))
}

/// The smallest constant range around two.
fn join(a: &Range, b: &Range, dtype: DType) -> Result<Range> {
    match (constant_ends(a), constant_ends(b)) {
        (Some((lo, hi)), Some((start, end))) => Range::between(lo.min(start), hi.max(end), dtype)
            .ok_or_else(|| Error::refused(format!("`{dtype}` does not hold {lo}..{end}"))),
        _ => Ok(b.clone()),
    }
}

fn constant_ends(r: &Range) -> Option<(i64, i64)> {
    Some((r.min.as_int()?, r.min.as_int()?.checked_add(r.extent.as_int()?)?))
}

/// The function without the guard at a place; otherwise why it stays. `reads` says whether it
/// matters that what is read more may be read.
pub(super) fn without(
    func: &TensorFunc,
    place: usize,
    options: &OvercomputeOptions<'_>,
    reads: bool,
) -> Result<std::result::Result<TensorFunc, Error>> {
    let scop = Scop::extract(func);
    let id = GuardId { place, part: 0 };
    let everywhere = OvercomputeOptions { block: None, ..*options };
    let this = guards(&scop, &everywhere).into_iter().filter(|(g, _)| *g == id);
    let mut why = Remarks::new();
    let mut candidates = Candidates::collect(&scop, this, options, &mut why);
    candidates.decide(reads, &mut why);
    Ok(if candidates.guards.is_empty() {
        Err(why.pop().unwrap_or_else(|| Error::refused("it guards nothing")))
    } else {
        Ok(candidates.without_guards(func)?)
    })
}
