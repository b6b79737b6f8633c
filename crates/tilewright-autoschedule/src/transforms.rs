//! Small linear transforms: stages that are computed for a tile, along axes of a few values each.
//!
//! Such a *chain* is recognised from its accesses. A stage makes a buffer that one other stage alone
//! reads, at several constant places along an axis: all values along it are needed at once. What is
//! computed may be a *choice*: a chain of selections by a variable of few values.
//!
//! ```text
//! half[t, x, j, c] = x == 0 ? d[4*t, j, c] - d[4*t + 2, j, c] : ...
//! out[t, x, y, c] = y == 0 ? half[t, x, 0, c] - half[t, x, 2, c] : ...
//! ```
//!
//! The axes along which places are constant, and those of choices, are *small*. The loops over them are
//! innermost but for the lanes, and are unrolled, so that each copy has its own combination, and what is
//! between the stages stays in registers and the first cache (`compute_at`):
//!
//! ```text
//! for other axes, vectors of lanes:          split, reorder, loop_partition
//!     for small axes, lanes: half = ..       compute_at, set_scope, unroll, vectorize
//!     for small axes, lanes: out = ..        unroll, vectorize
//! ```
//!
//! A last stage that reads the result of the chain place by place joins it. What pads the data is computed
//! for a row of tiles at a time. Transforms write and read more than they compute, so that they cost what
//! the bytes do ([`price`]).

use std::sync::Arc;
use tilewright_ir::hash::HashSet;

use crate::share::{share, shared};
use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::index::Linear;
use tilewright_ir::{BinOp, Buffer, Dim, Expr, ExprKind, IterKind, Result, TensorFunc, Var, dim};
use tilewright_schedule::compute::Position;
use tilewright_schedule::{LoopRef, Schedule};
use tilewright_target::PARALLEL_WORK;
use tilewright_target::Target;

use crate::canonical::{reads, sole_reader};
use crate::parts::{TileBlocks, computed_at, number, partition, split};

/// The most copies of a stage.
const COPIES: i64 = 64;

/// Stages that are computed tile by tile.
struct Chain<'a> {
    /// What pads the data of the first stage.
    pad: Option<&'a Stage>,
    /// The stages, each with its small variables.
    stages: Vec<(&'a Stage, Vec<Var>)>,
}

/// The variable of a choice.
fn choice(stage: &Stage) -> Option<Var> {
    let ExprKind::Select(cond, ..) = stage.value.kind() else { return None };
    let ExprKind::Binary(BinOp::Eq, v, k) = cond.kind() else { return None };
    k.as_int()?;
    v.as_var().cloned()
}

/// The one stage that reads what a stage writes, which nothing outside of the function does.
fn reader<'a>(func: &TensorFunc, stages: &'a [Stage], k: usize) -> Option<&'a Stage> {
    let (at, one) = sole_reader(func.root_parts().0, stages, k)?;
    let writers = stages.iter().filter(|s| s.buffer == stages[k].buffer).count();
    (at > k && writers == 1 && stages[k].covers_buffer().is_some()).then_some(one)
}

/// The chains of a function.
fn chains<'a>(func: &TensorFunc, stages: &'a [Stage]) -> Vec<Chain<'a>> {
    let mut found: Vec<Chain<'a>> = Vec::new();
    for (k, first) in stages.iter().enumerate() {
        let Some(chain) = chain(func, stages, k, first) else { continue };
        let mut taken = found.iter().flat_map(|c| &c.stages);
        if !taken.any(|s| chain.stages.iter().any(|c| c.0.stmt.ptr_eq(&s.0.stmt))) {
            found.push(chain);
        }
    }
    found
}

fn chain<'a>(
    func: &TensorFunc,
    stages: &'a [Stage],
    k: usize,
    first: &'a Stage,
) -> Option<Chain<'a>> {
    let second = reader(func, stages, k)?;
    let places = reads(second, &first.buffer);
    let axes = first.covers_buffer()?;
    // Along which axes all values are read at once.
    let gathered = (0..axes.len())
        .filter(|d| {
            let all: Option<HashSet<i64>> = places.iter().map(|at| at[*d].as_int()).collect();
            all.is_some_and(|all| all.len() > 1)
        })
        .filter_map(|d| axes[d].clone());
    let mut small: Vec<Var> = gathered.collect();
    if small.is_empty() || first.is_reduction() || second.is_reduction() {
        return None;
    }
    small.extend(choice(first));
    let mut list = vec![(first, small)];
    let mut next = Some(second);
    while let Some(stage) = next {
        let (before, small) = list.last()?;
        // What is small before is small in a reader of single places.
        let axes = before.covers_buffer()?;
        let mut own: Vec<Var> = choice(stage).into_iter().collect();
        for at in reads(stage, &before.buffer) {
            for (index, axis) in at.iter().zip(&axes) {
                let is_small = axis.as_ref().is_some_and(|v| small.contains(v));
                match index.as_var() {
                    Some(v) if is_small && !own.contains(v) => own.push(v.clone()),
                    Some(_) => {}
                    None if index.as_int().is_some() => {}
                    None => return None,
                }
            }
        }
        list.push((stage, own));
        next = position_of(stage, stages)
            .and_then(|k| reader(func, stages, k))
            .filter(|s| list.len() < 3 && !s.is_reduction());
        if let Some(s) = next
            && reads(s, &stage.buffer).iter().flatten().any(|i| i.as_var().is_none())
        {
            next = None;
        }
    }
    let pad = stages[..k].iter().find(|s| is_pad_of_first(s, stages, func, first));
    list.iter().all(has_few_copies).then_some(Chain { pad, stages: list })
}

fn is_pad_of_first(s: &&Stage, stages: &[Stage], func: &TensorFunc, first: &Stage) -> bool {
    let alone = position_of(s, stages).and_then(|k| reader(func, stages, k));
    let is_first = alone.is_some_and(|r| r.stmt.ptr_eq(&first.stmt));
    is_first && !s.is_reduction() && !reads(first, &s.buffer).is_empty()
}

fn position_of(s: &Stage, stages: &[Stage]) -> Option<usize> {
    stages.iter().position(|o| o.stmt.ptr_eq(&s.stmt))
}

fn has_few_copies((stage, small): &(&Stage, Vec<Var>)) -> bool {
    let extents = stage.dims().filter(|d| small.contains(d.0));
    let count: Option<i64> = extents.map(|d| d.1.number()).product();
    count.is_some_and(|n| n <= COPIES)
}

/// The schedule of the chains of a function; `None` where there are none, or a primitive refuses.
pub(crate) fn schedule(
    sch: &Schedule,
    name: &Arc<str>,
    func: &TensorFunc,
    target: &Target,
) -> Option<Result<Schedule>> {
    let stages = open_stages(func)?;
    let chains = chains(func, &stages);
    if chains.is_empty() {
        return None;
    }
    let mut sch = sch.clone();
    let made = chains.iter().try_for_each(|chain| chain.schedule(&mut sch, name, target));
    Some(made.map(|()| sch))
}

/// Estimated cycles of the stages of chains in a function, and these stages.
pub(crate) fn price<'a>(
    func: &TensorFunc,
    stages: &'a [Stage],
    target: &Target,
) -> (f64, Vec<&'a Stage>) {
    let costs = &target.costs;
    let (mut cycles, mut all) = (0.0, Vec::new());
    let [mut loaded, mut stored] = [0.0; 2];
    let mut read = HashSet::default();
    for chain in chains(func, stages) {
        let lanes = chain.lanes(target);
        let each = lanes
            .map_or(costs.transform_element, |(_, lanes)| costs.transform_vector / lanes as f64);
        for (k, (stage, _)) in chain.stages.iter().enumerate() {
            let made: f64 = stage.dims().map(|d| d.1.estimate() as f64).product();
            cycles += made * each;
            if k + 1 == chain.stages.len() {
                stored += made * stage.buffer.dtype().bytes() as f64;
            }
            for (b, _) in stage
                .loads()
                .into_iter()
                .filter(|l| !chain.stages.iter().any(|s| s.0.buffer == l.0))
            {
                if read.insert(b.clone()) {
                    loaded += cell_estimate(&b) * b.dtype().bytes() as f64;
                }
            }
            all.push(*stage);
        }
        all.extend(chain.pad);
    }
    let [load, store] = if loaded + stored > target.caches.l3 as f64 {
        [costs.transform_read_far, costs.transform_write_far]
    } else {
        [costs.transform_read, costs.transform_write]
    };
    (cycles + loaded * load + stored * store, all)
}

fn cell_estimate(b: &Buffer) -> f64 {
    let cells = dim::of_shape(&b.shape).map(|s| dim::product(s).estimate());
    cells.unwrap_or(0) as f64
}

impl Chain<'_> {
    /// The axis of the last stage that lanes of vectors are along, and how many lanes there are: the
    /// innermost one of the result, where all that is read lies so as well, or has no such axis.
    fn lanes(&self, target: &Target) -> Option<(usize, i64)> {
        let (last, small) = self.stages.last()?;
        let lanes = target.vectors.lanes(last.buffer.dtype().bytes());
        let v = last.indices.last()?.as_var().filter(|v| !small.contains(v))?;
        let at = last.dims().position(|d| d.0 == v)?;
        let extent = last.dims().nth(at)?.1.number()?;
        (extent >= lanes && self.lies_along(last, v)).then_some((at, lanes))
    }

    /// Whether what a stage of the chain and those before it read lies along a variable.
    fn lies_along(&self, stage: &Stage, v: &Var) -> bool {
        stage.loads().iter().all(|(b, at)| {
            let others = at.split_last().map_or(&[][..], |(_, others)| others);
            let along = !others.iter().any(|i| i.mentions(v))
                && at.last().is_none_or(|i| i.as_var() == Some(v) || !i.mentions(v));
            // The same axis of the stage that makes it.
            let maker = self.stages.iter().find(|s| s.0.buffer == *b).map(|s| s.0);
            let before = maker.is_none_or(|maker| {
                let axis = maker.indices.last().and_then(Expr::as_var);
                at.last().is_none_or(|index| index.as_var() != Some(v))
                    || axis.is_some_and(|v| self.lies_along(maker, v))
            });
            along && before
        })
    }

    fn schedule(&self, sch: &mut Schedule, func: &Arc<str>, target: &Target) -> Result<()> {
        let Some(((last, small), before)) = self.stages.split_last() else { return Ok(()) };
        let finish = sch.get_block(last.name(), func)?;
        let loops = sch.get_loops(&finish)?;
        let dims: Vec<(&Var, i64)> = last.dims().map(|(v, n, _)| (v, n.estimate())).collect();
        let found = self.lanes(target);
        let lane = found.map(|(lane, _)| lane);
        let (extent, lanes) = found.map_or((1, 1), |(k, lanes)| (dims[k].1, lanes));
        let (mut outer, mut inner) = (Vec::new(), Vec::new());
        for (k, l) in loops.iter().enumerate() {
            if small.contains(dims[k].0) {
                inner.push(l.clone());
            } else if Some(k) != lane {
                outer.push(l.clone());
            }
        }
        if let Some(k) = lane {
            if extent > lanes {
                let [vectors, lane] = split(sch, &loops[k], None, lanes)?;
                outer.push(vectors);
                inner.push(lane);
            } else {
                inner.push(loops[k].clone())
            }
        }
        sch.reorder(&[&outer[..], &inner].concat())?;
        let mut blocks = Vec::new();
        if let Some(around) = outer.last() {
            for (stage, _) in before.iter().rev() {
                let block = sch.get_block(stage.name(), func)?;
                sch.compute_at(&block, around, false, Position::default())?;
                sch.set_scope(&block, 0usize, "local")?;
                blocks.insert(0, block);
            }
        }
        blocks.push(finish);
        let band = self.band(sch, func, &outer, &dims, small, lane)?;
        let mut parts = vec![TileBlocks::whole(blocks)];
        if extent % lanes != 0 {
            let full = [number(extent / lanes), number(1)];
            partition(sch, &mut parts, outer.len() - 1, &full)?;
        }
        for part in &parts {
            for block in &part.blocks {
                let loops = sch.get_loops(block)?;
                let inside = loops.get(outer.len()..).unwrap_or_default();
                let (lane, rest) = match (lane, inside.split_last()) {
                    (Some(_), Some((lane, rest))) => (Some(lane), rest),
                    _ => (None, inside),
                };
                if let Some(lane) = lane.filter(|_| !part.ragged) {
                    sch.vectorize(lane)?;
                }
                rest.iter().try_for_each(|l| sch.unroll(l))?;
            }
        }
        let work: i64 = dims.iter().map(|d| d.1).product();
        if work >= PARALLEL_WORK {
            let inside = outer.len().saturating_sub(1);
            let first = parts.first().and_then(|p| p.blocks.last());
            let loops = first.map(|b| sch.get_loops(b)).transpose()?.unwrap_or_default();
            let around = loops.get(..band.unwrap_or(inside).min(inside)).unwrap_or_default();
            let extents = last.dims().enumerate();
            let extents = extents.filter(|(k, d)| Some(*k) != lane && !small.contains(d.0));
            let extents: Vec<Dim> = extents.map(|(_, d)| d.1).collect();
            share(sch, &around[..shared(&extents, around.len(), work)])?;
        }
        Ok(())
    }

    /// Computes what pads the data in the loop over the first axis along which tiles are read. Returns
    /// how many loops are around what is computed there.
    fn band(
        &self,
        sch: &mut Schedule,
        func: &Arc<str>,
        outer: &[LoopRef],
        dims: &[(&Var, i64)],
        small: &[Var],
        lane: Option<usize>,
    ) -> Result<Option<usize>> {
        let (Some(pad), Some((first, _))) = (self.pad, self.stages.first()) else {
            return Ok(None);
        };
        let tiled =
            first.dims().position(|d| d.2 == IterKind::Spatial && is_strided(d.0, first, pad));
        let places = (0..dims.len()).filter(|k| Some(*k) != lane && !small.contains(dims[*k].0));
        let Some(depth) = tiled.map(|k| self.rank_before(k)).filter(|d| *d < places.count()) else {
            return Ok(None);
        };
        let block = sch.get_block(pad.name(), func)?;
        let made = computed_at(sch, &block, &outer[depth], depth)?;
        Ok(made.map(|_| depth + 1))
    }

    /// The last stage has the axes that are not small in the same order.
    fn rank_before(&self, k: usize) -> usize {
        let (stage, own) = &self.stages[0];
        stage.dims().take(k).filter(|d| !own.contains(d.0)).count()
    }
}

/// Whether an index of the padded data moves by more than a place along an axis, as along that of a tile.
fn is_strided(v: &Var, first: &Stage, pad: &Stage) -> bool {
    reads(first, &pad.buffer)
        .iter()
        .flatten()
        .any(|i| Linear::from_expr(i).and_then(|i| i.coefficient(v)).is_some_and(|c| c > 1))
}
