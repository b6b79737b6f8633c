//! What the kernels of a function cost on a machine with groups of threads.
//!
//! A kernel takes as long as its arithmetic or as its bytes, whichever takes longer. Arithmetic is counted as its tile
//! does it; where a thread has a cell, each load of a reduction takes the time of [`LOAD`] products. Bytes of a buffer
//! count once, since caches keep what several groups read. Where neighbouring threads access cells that lie apart, the
//! rest of what an access moves counts too. A machine that has too few groups or threads is not used whole.
//!
//! All cycles are those of the whole machine ([`GroupCosts`](tilewright_target::GroupCosts)).

use tilewright_ir::hash::HashSet;

use tilewright_ir::{Buffer, Expr, IterKind, TensorFunc};
use tilewright_target::{Target, TensorInstruction, ThreadGroups};

use super::follow::Follow;
use super::grid::stride;
use super::instructions::instructions;
use super::shared_tile::LOAD;
use super::{Threads, Way};
use crate::canonical::Stages;
use crate::price::memory;
use crate::price::operations::operations;

/// Threads that hide how long an access takes, on each processor.
const RESIDENT: f64 = 512.0;

/// The parts of a segment of memory that can be moved alone.
const SECTORS: i64 = 4;

/// What a kernel costs beside its start.
pub(crate) struct KernelCost {
    /// In cycles of the whole machine.
    pub cycles: f64,
    /// Whether it is a contraction in tiles.
    pub is_tiled: bool,
}

/// The kernels that a function gets, beside what is made of arguments that are the same in every run (`is_once`).
/// What is in registers (`is_near`) is not read, and nothing takes the place of that; `None` for a function whose
/// statements are no stages.
pub(crate) fn kernels(
    func: &TensorFunc,
    target: &Target,
    groups: &ThreadGroups,
    is_once: &dyn Fn(&Buffer) -> bool,
    is_near: &dyn Fn(&Buffer) -> bool,
) -> Option<Vec<KernelCost>> {
    let all = Stages::of_any_memory(func)?;
    let instructions = instructions(target);
    // Reductions come first, and have these stages in their kernels.
    let mut within = HashSet::default();
    let mut kernels = Vec::new();
    for (k, stage) in all.each(true).chain(all.each(false)) {
        if within.contains(&k) || is_once(&stage.buffer) {
            continue;
        }
        let follow = Follow::recognise(&all, k, stage);
        within.extend(follow.epilogue.iter().chain(&follow.pads).map(|one| one.0));
        let kernel = Kernel { threads: Threads { stage, follow, groups }, is_near };
        kernels.push(kernel.cost(&instructions));
    }
    Some(kernels)
}

/// A kernel whose cost is asked for.
struct Kernel<'a> {
    threads: Threads<'a>,
    is_near: &'a dyn Fn(&Buffer) -> bool,
}

impl Kernel<'_> {
    fn cost(&self, instructions: &[&'static TensorInstruction]) -> KernelCost {
        let costs = &self.threads.groups.costs;
        let way = self.threads.ways(instructions).0.into_iter().next().unwrap_or(Way::Cells);
        let cycles = self.arithmetic(&way).max(self.bytes(&way) / costs.bytes as f64);
        let is_tiled = matches!(way, Way::Warps(..) | Way::Shared(..) | Way::Tile(..));
        KernelCost { cycles, is_tiled }
    }

    fn count(&self, kind: IterKind) -> f64 {
        let extents = self.threads.stage.dims().filter(|d| d.2 == kind);
        extents.into_iter().map(|d| d.1.estimate() as f64).product()
    }

    /// What the arithmetic takes.
    fn arithmetic(&self, way: &Way) -> f64 {
        let Threads { stage, groups, .. } = &self.threads;
        let costs = &groups.costs;
        let cells = self.count(IterKind::Spatial);
        let points = cells * self.count(IterKind::Reduce);
        // How many times longer than on a busy machine it takes with so many threads.
        let busy = costs.processors as f64 * RESIDENT;
        let waits = |threads: f64| (busy / threads.max(1.0)).max(1.0);
        let products = match way {
            Way::Warps(tile, c) => {
                let rate = costs.multiply_adds as f64 / costs.tensor_multiply_adds as f64;
                tile.cost(c, groups) * tile.products() * rate
            }
            Way::Shared(tile, c) => tile.cost(c, groups),
            Way::Tile(tile) => {
                let [u, v] = [tile.rows.1, tile.columns.1].map(|n| n as f64);
                points * (LOAD as f64 * (u + v) / (u * v)).max(1.0) * waits(cells / (u * v))
            }
            Way::Rows(rows) => points * LOAD as f64 * waits(cells * rows.threads() as f64),
            Way::Across(_) | Way::Cells => {
                let loads = stage.loads().iter().filter(|l| l.0 != stage.buffer).count();
                let loads = if stage.is_reduction() { loads as i64 * LOAD } else { 0 };
                points * (loads as f64 + operations(&stage.value)) * waits(cells)
            }
        };
        products / costs.multiply_adds as f64
    }

    /// The bytes that it moves.
    fn bytes(&self, way: &Way) -> f64 {
        let Follow { stage, epilogue, pads } = &self.threads.follow;
        let last = epilogue.map_or(*stage, |(_, e)| e);
        let mut loads = stage.loads();
        let made = pads.iter().map(|(_, pad)| &pad.buffer).chain([&stage.buffer]);
        let made: HashSet<&Buffer> = made.collect();
        loads.extend(pads.iter().flat_map(|(_, pad)| pad.loads()));
        loads.extend(epilogue.iter().flat_map(|(_, e)| e.loads()));
        let is_near = |b: &Buffer| made.contains(b) || (self.is_near)(b);
        // What takes the place of an operand in registers is stored instead of that.
        let replaces = loads.iter().any(|(b, _)| (self.is_near)(b));
        let stored = !replaces && !(self.is_near)(&last.buffer);
        let mut seen = HashSet::default();
        let each = loads.iter().filter(|(b, _)| !is_near(b) && seen.insert(b.clone()));
        let bytes = |b: &Buffer| memory::bytes(b).unwrap_or(0.0);
        let loaded: f64 = each.map(|(b, at)| bytes(b) * self.apart(way, b, at)).sum();
        let store = if stored { bytes(&last.buffer) } else { 0.0 };
        loaded + store * self.apart(way, &last.buffer, &last.indices)
    }

    /// How many bytes are moved for each one that an access is for.
    fn apart(&self, way: &Way, buffer: &Buffer, at: &[Expr]) -> f64 {
        if !matches!(way, Way::Cells) {
            return 1.0;
        }
        let spatial = self.threads.stage.dims().filter(|d| d.2 == IterKind::Spatial && d.1 != 1);
        let Some((var, ..)) = spatial.last() else { return 1.0 };
        let most = self.threads.groups.segment / SECTORS / buffer.dtype().bytes().max(1) as i64;
        stride(buffer, at, var).map_or(most, |s| s.abs().min(most)).max(1) as f64
    }
}
