//! Axes of a contraction that tiles walk as one become one loop, before there are tiles.
//!
//! ```text
//! for n, h, w, c: sums[n, h, w, c] += ...      for p, c: sums[p, c] += ...     with p in range(n * h * w)
//! ```

use tilewright_ir::{Block, Buffer, Dim, Error, Expr, ExprKind, Range, Result, StmtKind, Var};
use tilewright_polyhedral::sizes;
use tilewright_schedule::{BlockRef, Schedule};

use crate::contraction::Contraction;
use crate::parts::{block, in_groups, lay_out, written};

/// Makes the merged axes of a contraction one loop each, in its block and in the one that reads its sums, and one axis
/// of these. Returns the contraction that it then is; `None` where nothing is merged.
pub(crate) fn merge(
    sch: &mut Schedule,
    update: &BlockRef,
    finish: &BlockRef,
    c: &Contraction,
) -> Result<Option<Contraction>> {
    if c.axes.iter().all(|a| a.iters.len() == 1) {
        return Ok(None);
    }
    let sums = written(sch, update)?;
    let reader = block(sch, finish)?;
    let mut at = None;
    reader.body.any_expr(|e| {
        if let ExprKind::Load(b, indices) = e.kind()
            && b.name == sums
        {
            at = Some(indices.to_vec());
        }
        at.is_some()
    });
    let at = at.ok_or_else(|| Error::internal("a block does not read the sums"))?;
    let dim = |iter: usize| c.dims.iter().position(|d| *d == Some(iter));
    let of_sums = groups(c, c.dims.len(), dim);
    let of_block = groups(c, c.rank(), Some);
    let of_reader = groups(c, reader.iters.len(), |iter| axis_of(at.get(dim(iter)?)?, &reader));
    let place = |all: &[Group], k: usize| all.iter().position(|g| g.iter().any(|(d, _)| *d == k));
    let mut merged = c.clone();
    for axis in &mut merged.axes {
        let first = axis.iters.first().and_then(|(k, _)| place(&of_block, *k));
        axis.iters = vec![(first.unwrap_or_default(), axis.dim)];
    }
    merged.dims = of_sums
        .iter()
        .map(|g| g.first().and_then(|(d, _)| c.dims[*d]).and_then(|k| place(&of_block, k)))
        .collect();
    lay_out(sch, update, &in_groups(c.dims.len(), of_sums))?;
    sch.transform_block_layout(update, &in_groups(c.rank(), of_block))?;
    sch.transform_block_layout(finish, &in_groups(reader.iters.len(), of_reader))?;
    Ok(Some(merged))
}

/// A merged contraction with the extents that its block has, where products of open sizes are sizes of their own.
pub(crate) fn with_sizes_of(mut c: Contraction, block: &Block) -> Contraction {
    for axis in &mut c.axes {
        let at = axis.iters.first().and_then(|(at, _)| block.iters.get(*at));
        if let Some(dim) = at.and_then(|i| Dim::from_expr(&i.domain.extent)) {
            axis.dim = dim;
            axis.iters.iter_mut().for_each(|i| i.1 = dim);
        }
    }
    c
}

/// Refuses blocks that read or write at digits of a number of pixels where these are not seen to be in range: each
/// would be checked when the function runs.
pub(crate) fn digits_in_range(sch: &Schedule, blocks: &[&BlockRef]) -> Result<()> {
    for name in blocks {
        let func = sch.func(&name.func)?;
        let block = block(sch, name)?;
        let ranges: Vec<(Var, Range)> =
            block.iters.iter().map(|i| (i.var.clone(), i.domain.clone())).collect();
        let domain = sizes::engine(func).domain_of(&ranges, &[]);
        let in_range = |(i, n): (&Expr, &Expr)| {
            !i.effects().partial
                || domain.proves(&i.clone().greater_equal(0))
                    && domain.proves(&i.clone().less(n.clone().cast(i.dtype())))
        };
        let mut beyond = None;
        let mut look = |b: &Buffer, indices: &[Expr]| {
            let bad = indices.iter().zip(&b.shape).find(|pair| !in_range(*pair));
            beyond = beyond.take().or(bad.map(|(i, n)| (b.name.clone(), i.clone(), n.clone())));
        };
        block.body.for_each(|s| {
            if let StmtKind::Store { buffer, indices, .. } = s.kind() {
                look(buffer, indices);
            }
        });
        block.body.any_expr(|e| {
            if let ExprKind::Load(b, indices) = e.kind() {
                look(b, indices);
            }
            false
        });
        if let Some((buffer, index, extent)) = beyond {
            let text = format!("pixels of `{buffer}` would be checked one by one");
            return Err(Error::refused(text)
                .note(format!("`{index}` is not seen to be in range of an axis of {extent}")));
        }
    }
    Ok(())
}

/// Indices that become one, the slowest first, with their extents.
type Group = Vec<(usize, Dim)>;

/// The indices of so many that become one each, and the others alone, in their order; `place` says which index an
/// iteration variable is.
fn groups(c: &Contraction, rank: usize, place: impl Fn(usize) -> Option<usize>) -> Vec<Group> {
    let of_axis = |iters: &[(usize, Dim)]| -> Group {
        iters.iter().filter_map(|(i, n)| Some((place(*i)?, *n))).collect()
    };
    let mut all: Vec<Group> = c.axes.iter().map(|a| of_axis(&a.iters)).collect();
    all.retain(|g| g.len() > 1);
    let alone = (0..rank).filter(|d| all.iter().all(|g| g.iter().all(|(at, _)| at != d)));
    let alone: Vec<Group> = alone.map(|d| vec![(d, Dim::from(1))]).collect();
    all.extend(alone);
    all.sort_by_key(|g| g.first().map(|(d, _)| *d));
    all
}

fn axis_of(index: &Expr, reader: &Block) -> Option<usize> {
    reader.iters.iter().position(|i| index.as_var() == Some(&i.var))
}
