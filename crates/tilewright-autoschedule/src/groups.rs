//! Contractions in groups, with an axis of memory for groups and one for what is in a group.
//!
//! A convolution in groups stores to channel `g * 17 + c`, and reads its weights there: two iteration
//! variables walk one axis of memory, which no tile can be cut from. Primitives take the axis of the
//! sums apart, that of what follows, and that of a copy of the weights:
//!
//! ```text
//! acc[g * 17 + c, y, x] += data[g * 5 + k, y, x] * w[g * 17 + c, k]      y[c] = acc[c] + bias[c]
//!
//! w_apart[g, c, k] = w[g * 17 + c, k]
//! acc[g, c, y, x] += data[g * 5 + k, y, x] * w_apart[g, c, k]            y[g * 17 + c] = acc[g, c] + ..
//! ```
//!
//! Then groups are a batch. The copy goes again, into the place where the weights are packed, or read.

use std::sync::Arc;

use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::index::Affine;
use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, Result, TensorFunc, Var};
use tilewright_schedule::Schedule;
use tilewright_schedule::value::Lambda;

use crate::canonical::{reads, sole_reader};
use crate::parts::{alone, copied, lay_out, packed, written};

/// A function whose contractions in groups are apart.
pub struct SplitGroups {
    /// The schedule that made it so.
    pub schedule: Schedule,
    /// The blocks that copy operands.
    pub copies: Vec<Copy>,
    /// The contractions.
    pub blocks: Vec<Arc<str>>,
}

/// A copy of an operand with one axis more.
pub struct Copy {
    pub block: Arc<str>,
    /// What is copied.
    pub from: Buffer,
    /// Where it is copied to.
    pub to: Arc<str>,
}

/// The function with all its contractions in groups apart; `None` where there are none, or a primitive
/// refuses.
pub fn split_groups(name: &Arc<str>, func: &TensorFunc) -> Option<SplitGroups> {
    let stages = open_stages(func)?;
    if !stages.iter().any(|s| groups(s).is_some()) {
        return None;
    }
    let mut all = SplitGroups::none(name, func);
    for k in 0..stages.len() {
        let Some(groups) = groups(&stages[k]) else { continue };
        all.split(name, func, &stages, k, groups).ok()?;
    }
    Some(all)
}

impl SplitGroups {
    /// A function in which there is nothing to take apart.
    pub fn none(name: &Arc<str>, func: &TensorFunc) -> SplitGroups {
        SplitGroups { schedule: alone(name, func), copies: Vec::new(), blocks: Vec::new() }
    }

    fn split(
        &mut self,
        name: &Arc<str>,
        func: &TensorFunc,
        stages: &[Stage],
        k: usize,
        groups: Groups,
    ) -> Result<()> {
        let (sch, stage) = (&mut self.schedule, &stages[k]);
        let block = sch.get_block(stage.name(), name)?;
        let rank = stage.indices.len();
        let (next, at, iters) = match reader(func, stages, k, groups.axis) {
            Some((next, at)) => (sch.get_block(next.name(), name)?, at, next.loops.len()),
            None => (sch.cache_write(&block, 0usize, "global", &[])?, groups.axis, rank),
        };
        let sums = groups.split(rank, groups.axis);
        lay_out(sch, &block, &sums)?;
        sch.transform_block_layout(&next, &groups.split(iters, at))?;
        self.blocks.push(stage.name().clone());
        for (from, axis) in operands(stage, groups) {
            let copy = copied(sch, &block, &from)?;
            packed(sch, &copy, &groups.split(from.rank(), axis), false)?;
            let to = written(sch, &copy)?;
            self.copies.push(Copy { block: copy.name.clone(), from, to });
        }
        Ok(())
    }
}

/// What groups and a variable in them make an axis of memory of.
#[derive(Clone, Copy)]
struct Groups {
    /// The axis of the result.
    axis: usize,
    /// How many cells a group has along it.
    size: i64,
    /// How many groups.
    count: i64,
}

impl Groups {
    /// The map that takes one of some indices apart.
    fn split(self, rank: usize, axis: usize) -> Lambda {
        Lambda::over_indices(rank, move |at| {
            (0..rank)
                .flat_map(|d| {
                    if d == axis {
                        vec![at[d].clone().floordiv(self.size), at[d].clone().floormod(self.size)]
                    } else {
                        vec![at[d].clone()]
                    }
                })
                .collect()
        })
    }
}

/// The groups of a sum of products that has some.
fn groups(stage: &Stage) -> Option<Groups> {
    let reduction = stage.reduction().filter(|r| r.op == BinOp::Add)?;
    if !matches!(reduction.value.kind(), ExprKind::Binary(BinOp::Mul, ..)) {
        return None;
    }
    (0..stage.indices.len()).find_map(|axis| {
        let (count, size) = digits(stage, &stage.indices[axis])?;
        let whole = stage.buffer.shape[axis].as_int() == Some(count * size);
        whole.then_some(Groups { axis, size, count })
    })
}

/// The extents of two spatial variables that an index counts through, the slower one first.
fn digits(stage: &Stage, index: &Expr) -> Option<(i64, i64)> {
    let of =
        Affine::from_expr(index).filter(|a| a.constant() == 0 && a.opaque().next().is_none())?;
    let mut vars: Vec<(&Var, i64)> = of.vars().collect();
    vars.sort_by_key(|(_, step)| -step);
    let [(slow, size), (fast, 1)] = vars[..] else { return None };
    (extent_of(fast, stage)? == size && size > 1).then_some((extent_of(slow, stage)?, size))
}

fn extent_of(v: &Var, stage: &Stage) -> Option<i64> {
    stage.spatial().find(|(s, _)| *s == v).map(|(_, extent)| extent)
}

/// The operands that have an axis of the same groups.
fn operands(stage: &Stage, groups: Groups) -> Vec<(Buffer, usize)> {
    let Some(reduction) = stage.reduction() else { return Vec::new() };
    let mut found = Vec::new();
    reduction.value.for_each_load(|b, at| {
        let axis = at.iter().zip(&b.shape).position(|(index, extent)| {
            extent.as_int() == Some(groups.count * groups.size)
                && digits(stage, index) == Some((groups.count, groups.size))
        });
        found.extend(axis.map(|axis| (b.clone(), axis)));
    });
    found
}

/// The stage that alone reads the sums, each at its own place, and which of its iteration variables
/// runs along an axis of them.
fn reader<'a>(
    func: &TensorFunc,
    stages: &'a [Stage],
    k: usize,
    axis: usize,
) -> Option<(&'a Stage, usize)> {
    let (_, next) = sole_reader(func.root_parts().0, stages, k).filter(|(at, _)| *at == k + 1)?;
    let at = reads(next, &stages[k].buffer);
    let var = at.first()?.get(axis)?.as_var()?.clone();
    let same = at.iter().all(|at| at[axis].as_var() == Some(&var));
    let position = next.dims().position(|(v, ..)| *v == var)?;
    (same && !next.is_reduction()).then_some((next, position))
}
