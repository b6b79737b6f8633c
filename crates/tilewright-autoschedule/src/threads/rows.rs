//! Reductions by the threads of a group.
//!
//! ```text
//! for groups of cells:                              # X cells a group, T threads for each
//!     for t in T, x in X: sum = op over every T-th step; P[t][x] = sum       (shared)
//!     for u in T / 16, x in X: Q[u][x] = op over P[u + 16 ..][x]             (shared, where T > 16)
//!     for x in X: B[x] = op over Q[..][x]
//! ```
//!
//! Where a reduction axis runs along memory, so do the threads of a warp (`X` is 1); where a spatial one does,
//! these are along it, and some more share the steps. Threads wait for one another between the loops. This changes
//! the order of the reduction.
//!
//! The cost model: one thread a cell reads `steps` values one after the other. Threads that share them pay where
//! there are fewer cells than keep the machine busy, or where neighbouring threads would read far from one another,
//! a segment of memory each.

use tilewright_analysis::Stage;
use tilewright_ir::{BinOp, Error, IterKind, Result};
use tilewright_schedule::compute::Position;
use tilewright_schedule::{BlockRef, LoopRef, Schedule};
use tilewright_target::ThreadGroups;

use super::grid::{GROUP, bind, known, stride};
use crate::parts::{innermost, split};
use crate::share::fused;

/// Threads that keep a GPU busy, where each computes a cell.
const BUSY: i64 = 64 * 32;

/// Partial results that one thread combines.
const COMBINED: i64 = 16;

/// How a group reduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rows {
    /// Cells of a group.
    cells: i64,
    /// Threads for each.
    threads: i64,
}

impl Rows {
    /// How a group reduces a stage; `None` where a thread a cell is as good.
    pub fn recognise(stage: &Stage, groups: &ThreadGroups) -> Option<Rows> {
        let reduction = stage.reduction()?;
        if !matches!(reduction.op, BinOp::Add | BinOp::Mul | BinOp::Min | BinOp::Max) {
            return None;
        }
        let product = |kind: IterKind| {
            let extents = stage.dims().filter(|d| d.2 == kind).map(|d| known(d.1));
            extents.into_iter().try_fold(1i64, |n, extent| n.checked_mul(extent?))
        };
        let (cells, steps) = (product(IterKind::Spatial)?, product(IterKind::Reduce)?);
        let loads: Vec<_> = stage.loads().into_iter().filter(|l| l.0 != stage.buffer).collect();
        let runs_along = |kind: IterKind| {
            stage
                .dims()
                .filter(|d| d.2 == kind && d.1 != 1)
                .any(|(var, ..)| loads.iter().any(|(b, at)| stride(b, at, var) == Some(1)))
        };
        let (warp, most) = (groups.warp, GROUP.min(groups.threads));
        if runs_along(IterKind::Reduce) {
            // Each thread has a few steps.
            let threads = power_below(steps / 2).min(most);
            return (threads >= warp).then_some(Rows { cells: 1, threads });
        }
        let threads = power_below(steps / 2).min(most / warp);
        let few = cells < BUSY && threads > 1 && runs_along(IterKind::Spatial);
        few.then_some(Rows { cells: warp, threads })
    }

    /// Threads for a cell.
    pub fn threads(&self) -> i64 {
        self.threads
    }

    /// The loops of the stage.
    pub fn nest(&self, sch: &mut Schedule, block: &BlockRef, stage: &Stage) -> Result<()> {
        let count = stage.dims().filter(|d| d.2 == IterKind::Spatial).count();
        let loops = sch.get_loops(block)?;
        let (cells, steps) = loops.split_at(count.min(loops.len()));
        let Some((last, others)) = cells.split_last().filter(|_| !steps.is_empty()) else {
            return Err(Error::refused(format!("`{}` has one cell or no steps", block.name)));
        };
        let steps = fused(sch, steps)?;
        let [_, thread] = split(sch, &steps, None, self.threads)?;
        if self.cells > 1 {
            let [far, _] = split(sch, last, None, self.cells)?;
            fused(sch, &[others, &[far]].concat())?;
        } else {
            fused(sch, cells)?;
        }
        let partial = sch.rfactor(&thread, 0)?;
        sch.set_scope(&partial, 0usize, "shared")?;
        let mut loops = sch.get_loops(&partial)?;
        let (Some(thread), Some(step)) = (loops.pop(), loops.pop()) else {
            return Err(Error::internal("partial results without loops"));
        };
        let group = loops.remove(0);
        sch.reorder(&[&[group.clone(), thread.clone()], &loops[..], &[step]].concat())?;
        let mut bound = self.bound([thread.clone()].into_iter().chain(loops).collect());
        let inner = bound.last().map_or(thread, |b| b.0.clone());
        in_register(sch, &partial, &inner)?;
        if self.threads > COMBINED {
            let left = self.threads / COMBINED;
            let of = innermost(sch, block)?;
            let [_, thread] = split(sch, &of, None, left)?;
            let combined = sch.rfactor(&thread, 0)?;
            sch.set_scope(&combined, 0usize, "shared")?;
            sch.reverse_compute_at(&combined, &group, false, Position::default())?;
            let mut own = sch.get_loops(&combined)?.split_off(1);
            own.pop();
            let Some(inner) = own.last().cloned() else {
                return Err(Error::internal("combined results without loops"));
            };
            bound.extend(self.bound(own));
            in_register(sch, &combined, &inner)?;
        }
        // What is left is combined by one thread a cell.
        sch.reverse_compute_at(block, &group, false, Position::default())?;
        let own = sch.get_loops(block)?.split_off(1);
        if self.cells > 1
            && let Some(cell) = own.first()
        {
            bound.push((cell.clone(), "threadIdx.x"));
            in_register(sch, block, cell)?;
        }
        bound.push((group, "blockIdx.x"));
        bind(sch, &bound)
    }

    /// What the loop over the threads of a cell, and that over cells where there is one, are bound to.
    fn bound(&self, loops: Vec<LoopRef>) -> Vec<(LoopRef, &'static str)> {
        let axes: &[&str] =
            if self.cells > 1 { &["threadIdx.y", "threadIdx.x"] } else { &["threadIdx.x"] };
        loops.into_iter().zip(axes.iter().copied()).collect()
    }
}

/// Lets a thread keep its result in a register, behind a loop over threads.
fn in_register(sch: &mut Schedule, block: &BlockRef, inner: &LoopRef) -> Result<()> {
    let around = sch.get_loops(block)?;
    let at = around.iter().position(|l| l == inner);
    let Some(first) = at.and_then(|at| around.get(at + 1)).cloned() else {
        return Err(Error::internal("a loop is not around the steps of its block"));
    };
    let finish = sch.cache_write(block, 0usize, "local", &[])?;
    sch.reverse_compute_at(&finish, inner, false, Position::default())?;
    // Where steps are no multiple of threads, a result begins in its first step.
    let mut trial = sch.clone();
    if trial.decompose_reduction(block, &first).is_ok() {
        *sch = trial;
    }
    Ok(())
}

/// The largest power of two up to a number, and 1 below that.
fn power_below(n: i64) -> i64 {
    1 << (n.max(1) as u64).ilog2()
}
