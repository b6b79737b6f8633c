//! Traces of functions whose arguments lie in textures.
//!
//! A texture is written by whole texels, so the loop over the channels of one is innermost where it is stored, and a
//! thread computes a texel, as a vector:
//!
//! ```text
//! for pixels (shared, or groups and threads):
//!     sums[0:4] = 0
//!     for the reduction axes: sums[0:4] += value(0:4)
//!     B[.., 0:4] = epilogue(sums[0:4])
//! ```
//!
//! What pads an image that is read by windows is computed where it is read: of its guard is left what the border of
//! the texture does not do (`use_border`).

use std::sync::Arc;

use tilewright_analysis::Stage;
use tilewright_ir::{Error, Expr, IterKind, Result, TensorFunc};
use tilewright_schedule::compute::Position;
use tilewright_schedule::{BlockRef, LoopRef, Schedule};
use tilewright_target::Target;

use crate::canonical::{Stages, follows};
use crate::padding::{iters, padding};
use crate::parts::{innermost, split};
use crate::share::fused;

/// Threads of a group: two warps, of which many groups run at a time. Each has few registers.
const GROUP: i64 = 64;

/// Channels of a texel.
const CHANNELS: usize = 4;

/// Whether an argument of a function lies in memory of several physical axes.
pub(crate) fn has_textures(func: &TensorFunc) -> bool {
    func.buffers().any(|b| !b.axis_separators.is_empty())
}

/// Schedules the stages of a function. Says why where a primitive refuses: such a stage runs as one thread.
pub(crate) fn schedule(sch: &mut Schedule, func: &Arc<str>, target: &Target) -> Vec<Error> {
    let mut remarks = Vec::new();
    inline_pads(sch, func);
    let Some(all) = sch.func(func).ok().and_then(|f| Stages::of_any_memory(f)) else {
        return remarks;
    };
    for reductions in [true, false] {
        for (k, stage) in all.each(reductions) {
            let is_epilogue = k > 0 && all.get(k - 1).is_some_and(Stage::is_reduction) && {
                all.epilogue(k - 1).is_some_and(|e| e.stmt.ptr_eq(&stage.stmt))
            };
            if is_epilogue || stage.dims().any(|d| d.1 == 0) {
                continue;
            }
            let texels = Texels { stage, epilogue: all.epilogue(k), target };
            // What a refusal leaves half done is thrown away.
            let mut trial = sch.clone();
            match texels.nest(&mut trial, func) {
                Ok(()) => *sch = trial,
                Err(e) => remarks.push(e.context(format_args!("function `{func}`"))),
            }
        }
    }
    remarks
}

/// Lets windows read where padding is by a guard.
fn inline_pads(sch: &mut Schedule, func: &Arc<str>) {
    let Some(all) = sch.func(func).ok().and_then(|f| Stages::of_any_memory(f)) else { return };
    for (pad, _) in all.pairs() {
        let Some(stage) = all.get(pad) else { continue };
        if padding(&iters(stage), &stage.value).is_none() {
            continue;
        }
        let mut trial = sch.clone();
        let inlined =
            trial.get_block(stage.name(), func).and_then(|block| trial.compute_inline(&block));
        if inlined.is_ok() {
            *sch = trial;
        }
    }
}

/// A stage whose cells are texels of threads.
struct Texels<'a> {
    stage: &'a Stage,
    /// What alone reads the result of a reduction, cell by cell.
    epilogue: Option<&'a Stage>,
    target: &'a Target,
}

impl Texels<'_> {
    /// The position of the axis that runs along the channels of a texel, among those of the stage: that of the last
    /// index where the result is stored at last.
    fn channels(&self) -> Option<usize> {
        let last = |stage: &Stage| stage.indices.last().and_then(Expr::as_var).cloned();
        let last = match self.epilogue.filter(|_| self.stage.is_reduction()) {
            Some(epilogue) => {
                let own = follows(self.stage, epilogue)?;
                own.get(&last(epilogue)?)?.as_var()?.clone()
            }
            None => last(self.stage)?,
        };
        let mut dims = self.stage.dims();
        dims.position(|(v, n, kind)| *v == last && n == CHANNELS && kind == IterKind::Spatial)
    }

    /// The loops of the stage.
    fn nest(&self, sch: &mut Schedule, func: &Arc<str>) -> Result<()> {
        let block = sch.get_block(self.stage.name(), func)?;
        let finish = match (self.stage.is_reduction(), self.epilogue) {
            (false, _) => None,
            (true, Some(epilogue)) => {
                sch.set_scope(&block, 0usize, "local")?;
                Some(sch.get_block(epilogue.name(), func)?)
            }
            (true, None) => {
                let finish = sch.cache_write(&block, 0usize, "local", &[])?;
                // Registers have one physical axis.
                sch.set_axis_separator(&block, ("write", 0usize), &[])?;
                Some(finish)
            }
        };
        let loops = sch.get_loops(&block)?;
        let cells = self.stage.dims().filter(|d| d.2 == IterKind::Spatial).count();
        let (spatial, steps) = loops.split_at(cells.min(loops.len()));
        let channels = self.channels();
        let outer: Vec<LoopRef> = (0..spatial.len())
            .filter(|k| Some(*k) != channels)
            .map(|k| spatial[k].clone())
            .collect();
        let inner: Vec<LoopRef> = channels.iter().map(|k| spatial[*k].clone()).collect();
        if outer.is_empty() {
            return Err(Error::refused(format!("`{}` has one texel", block.name)));
        }
        sch.reorder(&[&outer[..], steps, &inner].concat())?;
        let texel = self.shared(sch, &outer)?;
        if let Some(finish) = &finish {
            sch.reverse_compute_at(finish, &texel.at, false, Position::default())?;
            if let Some(first) = steps.first() {
                let init = sch.decompose_reduction(&block, first)?;
                if !inner.is_empty() {
                    vectorize_last(sch, &init)?;
                    vectorize_last(sch, finish)?;
                }
            }
        }
        // A texel is a vector of its channels.
        inner.iter().try_for_each(|l| sch.vectorize(l))?;
        match texel.threads {
            Some([groups, threads]) => {
                sch.bind(&threads, "threadIdx.x")?;
                sch.bind(&groups, "blockIdx.x")
            }
            None => sch.parallel(&texel.around),
        }
    }

    /// Loops over texels, shared by threads when all else is in its place.
    fn shared(&self, sch: &mut Schedule, outer: &[LoopRef]) -> Result<TexelLoop> {
        if let Some(groups) = &self.target.groups {
            let all = fused(sch, outer)?;
            let wide = GROUP.clamp(groups.warp, groups.threads.max(groups.warp));
            let [group, thread] = split(sch, &all, None, wide)?;
            let threads = Some([group.clone(), thread.clone()]);
            return Ok(TexelLoop { at: thread, around: group, threads });
        }
        match outer {
            [around @ .., at] if !around.is_empty() => {
                let around = fused(sch, around)?;
                Ok(TexelLoop { at: at.clone(), around, threads: None })
            }
            _ => {
                let one = fused(sch, outer)?;
                Ok(TexelLoop { at: one.clone(), around: one, threads: None })
            }
        }
    }
}

/// Makes vectors of the innermost loop of a block, which runs along channels.
fn vectorize_last(sch: &mut Schedule, block: &BlockRef) -> Result<()> {
    let channels = innermost(sch, block)?;
    sch.vectorize(&channels)
}

/// Loops over texels.
struct TexelLoop {
    /// The innermost one.
    at: LoopRef,
    /// The one that processors share.
    around: LoopRef,
    /// Those over groups, and over threads of one, where there are groups of threads.
    threads: Option<[LoopRef; 2]>,
}
