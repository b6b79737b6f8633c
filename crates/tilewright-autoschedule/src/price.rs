//! What a function costs, as an estimate to compare layouts by.
//!
//! A contraction in tiles costs what its tile does ([`crate::tile`]). Everything else is counted by
//! its iterations: one vector at a time where a loop walks along all that it touches, and one
//! element at a time where none does. What comes from farther than the second cache takes longer, and so
//! do functions that are computed by many operations. Products of 8-bit integers are priced as what they become
//! ([`crate::integer`]), those with weights in blocks by their tiles. An open size counts as its estimate
//! ([`Dim::estimate`]).
//!
//! [`Dim::estimate`]: tilewright_ir::Dim::estimate

pub(crate) mod loops;
pub(crate) mod memory;
pub(crate) mod operations;
pub(crate) mod statements;

use tilewright_ir::hash::{HashMap, HashSet};

use crate::reduction::window::{self, Way};
use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::visit::accessed;
use tilewright_ir::{Buffer, IterKind, TensorFunc};
use tilewright_layout::marks::PRE;
use tilewright_target::Target;
use tilewright_target::costs::{ROW, SHARE, SQUARE_CELL};

use crate::blocks::{self, TiledProduct};
use crate::contraction::Contraction;
use crate::integer::expand_with;
use crate::threads::price::{KernelCost, kernels};
use crate::tile::{LINE_BYTES, Tile};
use crate::{contraction, groups, tile, transforms};
use loops::untiled;
use memory::{Operands, access, bytes, call, cells, with_weights};
pub(crate) use operations::operations_of;

/// What a function costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Estimated cycles of a call.
    pub cycles: f64,
    /// Whether it holds a contraction that is computed in tiles.
    pub tiled: bool,
}

/// Estimated cycles of a conversion that reads and writes some bytes. `cells` are the bytes of its cells, and
/// of the smallest ones that the same kernel makes of them; `run` is the number of cells that lie one behind
/// the other both before and after it, `constants` the bytes of all constants that a run reads.
pub fn conversion(bytes: u64, cells: [usize; 2], run: i64, constants: u64, target: &Target) -> f64 {
    if let Some(groups) = &target.groups {
        return groups.costs.launch as f64 + bytes as f64 / groups.costs.bytes as f64;
    }
    let [cell, smallest] = cells;
    let (costs, bytes) = (&target.costs, bytes as f64);
    let lines = bytes / LINE_BYTES;
    // Small cells are moved one by one.
    let all = bytes / cell.max(1) as f64;
    let shuffles = match cell.min(smallest) {
        _ if run >= ROW => all / run as f64 * costs.convert_row,
        SQUARE_CELL.. => lines * costs.convert_square,
        _ => all * costs.convert_cell,
    };
    // Where no cell moves, a kernel only ends and another one begins.
    let begin =
        if run as f64 * 2.0 >= all { call(bytes, constants, target) } else { costs.call_far };
    begin + lines * access(bytes, target) + shuffles
}

/// Whether caches no longer hold a value after a run has read and written so many other bytes.
pub fn evicts(bytes: u64, target: &Target) -> bool {
    bytes > (target.caches.l3 / SHARE).max(target.caches.l2) as u64
}

/// What the price of a function depends on beside it, for each argument; what is not said is not so.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside<'a> {
    /// Whether it is the same in every run.
    pub free: &'a [bool],
    /// Whether the same kernel makes it: then elementwise work finds it in registers.
    pub joined: &'a [bool],
    /// Whether it comes from memory, since much was touched after it was used last.
    pub cold: &'a [bool],
    /// Whether the same kernel reads the result, and stores nothing in its place.
    pub reduced: bool,
    /// Whether another call began the kernel, of which this one reads nothing.
    pub further: bool,
}

/// What a call of a function costs. `free` says for each argument whether it is the same in every run;
/// `constants` are the bytes of all constants that a run reads.
pub fn price(func: &TensorFunc, free: &[bool], constants: u64, target: &Target) -> Price {
    let form = KernelLoops::from_func(func, &Beside { free, ..Beside::default() }, target);
    Price { cycles: form.cycles(constants, target), tiled: form.is_tiled() }
}

/// A function in the loops that it gets, whose cost can be asked for many constants of the cost model.
pub struct KernelLoops {
    components: Vec<Component>,
    /// Bytes of arguments that are the same in every run.
    weights: f64,
    /// Bytes of all arguments and results.
    bytes: f64,
    /// Whether it is part of a kernel that calls before it begin.
    is_joined: bool,
    operands: Operands,
}

/// A part of a function whose price is a summand of the price of all.
enum Component {
    /// A contraction in tiles.
    Tiles(Box<(Contraction, Tile)>),
    /// A product with weights in blocks, in tiles.
    Blocks(f64),
    /// A stage without tiles, and the part of its steps that run.
    Loops(Stage, f64),
    /// One whose result is used while it is in the first cache.
    Near(Stage),
    /// What costs so many cycles wherever its operands are: small transforms, and loops that are no stages.
    Cycles(f64),
    /// A kernel of groups of threads.
    Kernel(KernelCost),
}

impl KernelLoops {
    /// The loops that a function gets on a target.
    pub fn from_func(func: &TensorFunc, beside: &Beside<'_>, target: &Target) -> KernelLoops {
        let Beside { free, joined, cold, reduced, further } = *beside;
        let is_free = |b: &Buffer| {
            let at = func.params.iter().position(|p| p.buffer() == Some(b));
            at.and_then(|at| free.get(at)).copied().unwrap_or(false)
        };
        // What runs is the expanded function, without what is made once.
        let blocked =
            if target.groups.is_none() { blocks::price(func, &is_free, target) } else { None };
        let expanded = if blocked.is_some() { None } else { expand_with(func, target, &is_free) };
        let func = expanded.as_ref().unwrap_or(func);
        let once = made_once(func, &is_free);
        let is_free = |b: &Buffer| is_free(b) || once.contains(b);
        let of_threads = target.groups.as_ref().and_then(|groups| {
            let results = if reduced { accessed(&func.body).1 } else { Vec::new() };
            let near = [buffers_that(joined, true, func), results].concat();
            let all = kernels(func, target, groups, &is_free, &|b| near.contains(b))?;
            Some(all.into_iter().map(Component::Kernel).collect())
        });
        let components = of_threads
            .or_else(|| blocked.is_none().then(|| grouped(func, is_free, target)).flatten())
            .unwrap_or_else(|| plain(func, is_free, blocked.as_ref(), target));
        let weights = func.buffers().filter(|b| is_free(b)).filter_map(bytes).sum();
        let is_joined = further || joined.contains(&true);
        let (apart, joined) = (buffers_that(joined, false, func), buffers_that(joined, true, func));
        let operands = Operands { apart, joined, cold: buffers_that(cold, true, func), reduced };
        let bytes = func.buffers().filter_map(bytes).sum();
        KernelLoops { components, weights, bytes, is_joined, operands }
    }

    /// Whether it holds a contraction that is computed in tiles.
    pub fn is_tiled(&self) -> bool {
        self.components.iter().any(|one| match one {
            Component::Tiles(..) | Component::Blocks(_) => true,
            Component::Kernel(kernel) => kernel.is_tiled,
            _ => false,
        })
    }

    /// What a call of it costs; `constants` are the bytes of all constants that a run reads.
    pub fn cycles(&self, constants: u64, target: &Target) -> f64 {
        let mut operands = self.operands.clone();
        let each = self.components.iter().map(|component| match component {
            Component::Tiles(both) => tile::cycles(&both.0, target, &both.1),
            Component::Near(stage) => near(stage, target),
            Component::Loops(stage, run) => {
                let cycles = untiled(stage, *run, target, &operands);
                // The first stage that reads an operand brings it nearer.
                let loads = stage.loads();
                operands.cold.retain(|b| loads.iter().all(|load| load.0 != *b));
                cycles
            }
            Component::Cycles(cycles) | Component::Blocks(cycles) => *cycles,
            Component::Kernel(kernel) => kernel.cycles,
        });
        let cycles: f64 = each.sum();
        if let Some(groups) = &target.groups {
            let kernels = self.components.len() as f64;
            let begun = if self.is_joined { kernels - 1.0 } else { kernels };
            return cycles + begun.max(0.0) * groups.costs.launch as f64;
        }
        let cycles = with_weights(cycles, self.weights, constants, target);
        cycles + if self.is_joined { 0.0 } else { call(self.bytes, constants, target) }
    }
}

fn buffers_that(all: &[bool], so: bool, func: &TensorFunc) -> Vec<Buffer> {
    let found = (0..func.params.len()).filter(|k| all.get(*k).copied().unwrap_or(false) == so);
    found.filter_map(|k| func.params[k].buffer().cloned()).collect()
}

/// The buffers that marked stages make of what is the same in every run.
fn made_once(func: &TensorFunc, is_free: &dyn Fn(&Buffer) -> bool) -> HashSet<Buffer> {
    let mut made: HashSet<Buffer> = HashSet::default();
    for stage in open_stages(func).into_iter().flatten() {
        if stage.block.annotations.contains_key(PRE)
            && stage
                .loads()
                .iter()
                .all(|l| l.0 == stage.buffer || is_free(&l.0) || made.contains(&l.0))
        {
            made.insert(stage.buffer.clone());
        }
    }
    made
}

/// The components of a function whose contractions in groups get tiles; `None` where they do not.
fn grouped(
    func: &TensorFunc,
    is_free: impl Fn(&Buffer) -> bool,
    target: &Target,
) -> Option<Vec<Component>> {
    let name = "f".into();
    let apart = groups::split_groups(&name, func)?;
    let func = apart.schedule.func(&name).ok()?;
    let copy = |b: &Buffer| apart.copies.iter().find(|copy| copy.to == b.name);
    let free = |b: &Buffer| is_free(copy(b).map_or(b, |copy| &copy.from));
    let mut parts = Vec::new();
    let stages = open_stages(func)?;
    for k in 0..stages.len() {
        let tile =
            contraction(func, &stages, k, free).and_then(|(c, _)| chosen(c, &stages[k], target));
        match tile {
            Some(both) => parts.push(Component::Tiles(Box::new(both))),
            None if apart.blocks.contains(stages[k].name()) => return None,
            // What is copied apart is read where it lies.
            None if copy(&stages[k].buffer).is_some() || free(&stages[k].buffer) => {}
            None => parts.push(Component::Loops(stages[k].clone(), 1.0)),
        }
    }
    Some(parts)
}

fn plain(
    func: &TensorFunc,
    is_free: impl Fn(&Buffer) -> bool,
    blocked: Option<&TiledProduct>,
    target: &Target,
) -> Vec<Component> {
    let Some(stages) = open_stages(func) else {
        return vec![Component::Cycles(statements::statements(func, target))];
    };
    let (cycles, tiled) = transforms::price(func, &stages, target);
    let mut parts = vec![Component::Cycles(cycles)];
    parts.extend(blocked.map(|product| Component::Blocks(product.cycles)));
    let mut ways = window::ways(func, target);
    for k in (0..stages.len()).rev() {
        let is_tiled = tiled.iter().any(|s| s.stmt.ptr_eq(&stages[k].stmt));
        let is_blocked = blocked.is_some_and(|product| product.stages.contains(&k));
        if is_free(&stages[k].buffer) || is_tiled || is_blocked {
            continue;
        }
        let tile = contraction(func, &stages, k, &is_free)
            .and_then(|(c, _)| chosen(c, &stages[k], target));
        parts.push(match (tile, ways.get(&k)) {
            (Some(both), _) => {
                // Its loops are others: what pads for it is a stage of its own.
                ways.retain(|_, (reader, _)| *reader != k);
                Component::Tiles(Box::new(both))
            }
            (None, Some((_, Way::Bounds { .. }))) => continue,
            (None, Some((_, Way::Bands))) => Component::Near(stages[k].clone()),
            (None, None) => Component::Loops(stages[k].clone(), run_within(k, &ways)),
        });
    }
    parts
}

/// The part of the steps of a reduction that bounds leave.
fn run_within(k: usize, ways: &HashMap<usize, (usize, Way)>) -> f64 {
    let inside = ways.values().filter(|way| way.0 == k).map(|way| match way.1 {
        Way::Bounds { inside } => inside,
        Way::Bands => 1.0,
    });
    inside.product()
}

/// Cycles of a stage that pads bands of an image, which are read soon.
fn near(stage: &Stage, target: &Target) -> f64 {
    let lanes = target.vectors.lanes(stage.buffer.dtype().bytes()) as f64;
    let share = target.vectors.lanes(1) as f64 / LINE_BYTES;
    2.0 * cells(&stage.buffer).unwrap_or(0.0) / lanes * target.costs.vector_first * share
}

/// The tile that a contraction gets, where its loops are made as they are chosen.
pub(crate) fn chosen(
    c: Contraction,
    stage: &Stage,
    target: &Target,
) -> Option<(Contraction, Tile)> {
    candidates(c, stage, target).into_iter().next()
}

/// The tiles that a contraction may get, the cheapest first. Where groups or windows leave little to use
/// again, the loops of `crate::reduction` stay where they take less; but tiles of whole vectors of
/// channels have their padding computed for them alone (measured: 0.75 to 1.03 of the time of these loops).
pub(crate) fn candidates(
    c: Contraction,
    stage: &Stage,
    target: &Target,
) -> Vec<(Contraction, Tile)> {
    let mut all = crate::candidates::candidates(c, target);
    let plain = untiled(stage, 1.0, target, &Operands::default());
    // Where the best one does not pay, none does.
    let some = all.iter().take_while(|(c, tile)| pays(c, tile, plain)).count();
    all.truncate(some);
    all
}

fn pays(c: &Contraction, tile: &Tile, plain: f64) -> bool {
    let alone = c
        .axes_where(IterKind::Spatial, |k| {
            c.operands.iter().all(|o| o.steps[k] != 0) && c.axes[k].extent > 1
        })
        .is_empty();
    let divides = tile.columns(c).1 == 0;
    let whole = tile.both(c) && (divides || tile.exact(c));
    alone || whole || tile.price < plain
}
