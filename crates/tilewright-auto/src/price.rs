//! What a function costs, as an estimate to compare layouts by.
//!
//! A contraction in tiles costs what its tile does ([`crate::tile`]). Everything else is counted by
//! its iterations: one vector at a time where a loop walks along all that it touches, and one
//! element at a time where none does. What comes from farther than the second cache takes longer, and so
//! do functions that are computed by many operations. Products of 8-bit integers are priced as what they become
//! ([`crate::integer`]). An open size counts as its estimate ([`Dim::estimate`]).
//!
//! [`Dim::estimate`]: tilewright_ir::Dim::estimate

mod loops;
mod statements;

use std::collections::{HashMap, HashSet};

use crate::reduction::window::{self, Way};
use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::{Buffer, IterKind, TensorFunc, dim};
use tilewright_schedule::PRE;
use tilewright_target::Target;
use tilewright_target::costs::{ROW, SHARE, SQUARE_CELL};

use crate::contraction::Contraction;
use crate::integer::expand_with;
use crate::tile::{LINE_BYTES, Tile};
use crate::{contraction, groups, tile, transforms};
use loops::untiled;

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
    let begin = match run as f64 * 2.0 >= all {
        true => call(bytes, constants, target),
        false => costs.call_far,
    };
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

/// The part of the constants of a graph, which have so many bytes, that comes from memory in each run: none
/// where they fill half of the last cache, and all where they are larger than it by as much.
fn from_memory(constants: u64, target: &Target) -> f64 {
    let cache = target.caches.l3.max(2 * target.caches.l2) as f64;
    (constants as f64 / cache - 0.5).clamp(0.0, 1.0)
}

/// What is so much where all comes from a cache, and so much where all comes from memory.
fn between(near: f64, far: f64, part: f64) -> f64 {
    near + (far - near) * part
}

/// What a kernel of so many bytes costs beside its work; `constants` are the bytes of all constants that a
/// run reads.
fn call(bytes: f64, constants: u64, target: &Target) -> f64 {
    let costs = &target.costs;
    let most = match constants <= target.caches.l2 as u64 {
        true => costs.call_near,
        false => between(costs.call_far, costs.call_memory, from_memory(constants, target)),
    };
    // What is small is there after a few misses.
    most.min(costs.call_near + bytes / LINE_BYTES * costs.call_line)
}

/// An access of a line of what was made shortly before, where so many bytes are read and written in all.
fn access(touched: f64, target: &Target) -> f64 {
    let costs = &target.costs;
    match touched {
        _ if touched <= target.caches.l1 as f64 => costs.vector_first,
        _ if touched <= target.caches.l2 as f64 * 0.5 => costs.vector_near,
        _ if touched <= target.caches.l2 as f64 * 3.0 => costs.vector_second,
        _ => costs.vector_far,
    }
}

/// What a call of a function costs. `free` says for each argument whether it is the same in every run;
/// `constants` are the bytes of all constants that a run reads.
pub fn price(func: &TensorFunc, free: &[bool], constants: u64, target: &Target) -> Price {
    let form = Form::of(func, &Beside { free, ..Beside::default() }, target);
    Price { cycles: form.cycles(constants, target), tiled: form.is_tiled() }
}

/// A function in the loops that it gets, whose cost can be asked for many constants of the cost model.
pub struct Form {
    parts: Vec<Part>,
    /// Bytes of arguments that are the same in every run.
    weights: f64,
    /// Bytes of all arguments and results.
    bytes: f64,
    /// Whether it is part of a kernel that calls before it begin.
    is_joined: bool,
    operands: Operands,
}

/// Where operands are.
#[derive(Clone, Default)]
struct Operands {
    /// Those that other kernels make.
    apart: Vec<Buffer>,
    /// Those that the same kernel makes.
    joined: Vec<Buffer>,
    /// Those that come from memory.
    cold: Vec<Buffer>,
    /// Whether the result is stored nowhere.
    reduced: bool,
}

/// What the stages of a function cost.
enum Part {
    /// A contraction in tiles.
    Tiles(Box<(Contraction, Tile)>),
    /// A stage without tiles, and the part of its steps that run.
    Loops(Stage, f64),
    /// One whose result is used while it is in the first cache.
    Near(Stage),
    /// Small transforms, which cost so many cycles.
    Transforms(f64),
    /// Loops that are no stages, which cost so many cycles.
    Statements(f64),
}

impl Form {
    /// The loops that a function gets on a target.
    pub fn of(func: &TensorFunc, beside: &Beside<'_>, target: &Target) -> Form {
        let Beside { free, joined, cold, reduced, further } = *beside;
        let is_free = |b: &Buffer| {
            let at = func.params.iter().position(|p| p.buffer() == Some(b));
            at.and_then(|at| free.get(at)).copied().unwrap_or(false)
        };
        // What runs is the expanded function, without what is made once.
        let expanded = expand_with(func, target, &is_free);
        let func = expanded.as_ref().unwrap_or(func);
        let once = made_once(func, &is_free);
        let is_free = |b: &Buffer| is_free(b) || once.contains(b);
        let parts = grouped(func, is_free, target).unwrap_or_else(|| plain(func, is_free, target));
        let weights = func.buffers().filter(|b| is_free(b)).filter_map(bytes).sum();
        let among = |all: &[bool], so: bool| {
            let found =
                (0..func.params.len()).filter(|k| all.get(*k).copied().unwrap_or(false) == so);
            found.filter_map(|k| func.params[k].buffer().cloned()).collect()
        };
        let is_joined = further || joined.contains(&true);
        let (apart, joined) = (among(joined, false), among(joined, true));
        let operands = Operands { apart, joined, cold: among(cold, true), reduced };
        let bytes = func.buffers().filter_map(bytes).sum();
        Form { parts, weights, bytes, is_joined, operands }
    }

    /// Whether it holds a contraction that is computed in tiles.
    pub fn is_tiled(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Tiles(..)))
    }

    /// What a call of it costs; `constants` are the bytes of all constants that a run reads.
    pub fn cycles(&self, constants: u64, target: &Target) -> f64 {
        let costs = &target.costs;
        let mut operands = self.operands.clone();
        let mut one = |part: &Part| match part {
            Part::Tiles(both) => tile::cycles(&both.0, target, &both.1),
            Part::Near(stage) => near(stage, target),
            Part::Loops(stage, run) => {
                let cycles = untiled(stage, *run, target, &operands);
                // The first stage that reads an operand brings it nearer.
                let loads = stage.loads();
                operands.cold.retain(|b| loads.iter().all(|load| load.0 != *b));
                cycles
            }
            Part::Transforms(cycles) | Part::Statements(cycles) => *cycles,
        };
        let cycles: f64 = self.parts.iter().map(&mut one).sum();
        let near = cycles.max(self.weights * costs.weight_near);
        let far = (cycles + self.weights * costs.wait).max(self.weights * costs.weight_far);
        let cycles = between(near, far, from_memory(constants, target));
        cycles + if self.is_joined { 0.0 } else { call(self.bytes, constants, target) }
    }
}

/// The buffers that marked stages make of what is the same in every run.
fn made_once(func: &TensorFunc, is_free: &dyn Fn(&Buffer) -> bool) -> HashSet<Buffer> {
    let mut made: HashSet<Buffer> = HashSet::new();
    for stage in open_stages(func).into_iter().flatten() {
        let of_free = |b: &Buffer| *b == stage.buffer || is_free(b) || made.contains(b);
        if stage.block.annotations.contains_key(PRE) && stage.loads().iter().all(|l| of_free(&l.0))
        {
            made.insert(stage.buffer.clone());
        }
    }
    made
}

/// The parts of a function whose contractions in groups get tiles; `None` where they do not.
fn grouped(
    func: &TensorFunc,
    is_free: impl Fn(&Buffer) -> bool,
    target: &Target,
) -> Option<Vec<Part>> {
    let name = "f".into();
    let apart = groups::apart(&name, func)?;
    let func = apart.schedule.func(&name).ok()?;
    let copy = |b: &Buffer| apart.copies.iter().find(|copy| copy.to == b.name);
    let free = |b: &Buffer| is_free(copy(b).map_or(b, |copy| &copy.from));
    let mut parts = Vec::new();
    let stages = open_stages(func)?;
    for k in 0..stages.len() {
        let tile =
            contraction(func, &stages, k, free).and_then(|(c, _)| chosen(c, &stages[k], target));
        match tile {
            Some(both) => parts.push(Part::Tiles(Box::new(both))),
            None if apart.blocks.contains(stages[k].name()) => return None,
            // What is copied apart is read where it lies.
            None if copy(&stages[k].buffer).is_some() || free(&stages[k].buffer) => {}
            None => parts.push(Part::Loops(stages[k].clone(), 1.0)),
        }
    }
    Some(parts)
}

fn plain(func: &TensorFunc, is_free: impl Fn(&Buffer) -> bool, target: &Target) -> Vec<Part> {
    let Some(stages) = open_stages(func) else {
        return vec![Part::Statements(statements::statements(func, target))];
    };
    let (cycles, tiled) = transforms::price(func, &stages, target);
    let mut parts = vec![Part::Transforms(cycles)];
    let mut ways = window::ways(func, target);
    // The part of the steps of a reduction that bounds leave.
    let run = |k: usize, ways: &HashMap<usize, (usize, Way)>| {
        let inside = ways.values().filter(|way| way.0 == k).map(|way| match way.1 {
            Way::Bounds { inside } => inside,
            Way::Bands => 1.0,
        });
        inside.product()
    };
    for k in (0..stages.len()).rev() {
        let is_tiled = tiled.iter().any(|s| s.stmt.ptr_eq(&stages[k].stmt));
        if is_free(&stages[k].buffer) || is_tiled {
            continue;
        }
        let tile = contraction(func, &stages, k, &is_free)
            .and_then(|(c, _)| chosen(c, &stages[k], target));
        parts.push(match (tile, ways.get(&k)) {
            (Some(both), _) => {
                // Its loops are others: what pads for it is a stage of its own.
                ways.retain(|_, (reader, _)| *reader != k);
                Part::Tiles(Box::new(both))
            }
            (None, Some((_, Way::Bounds { .. }))) => continue,
            (None, Some((_, Way::Bands))) => Part::Near(stages[k].clone()),
            (None, None) => Part::Loops(stages[k].clone(), run(k, &ways)),
        });
    }
    parts
}

/// Cycles of a stage that pads bands of an image, which are read soon.
fn near(stage: &Stage, target: &Target) -> f64 {
    let lanes = target.vectors.lanes(stage.buffer.dtype().bytes()) as f64;
    let share = target.vectors.lanes(1) as f64 / LINE_BYTES;
    2.0 * cells(&stage.buffer).unwrap_or(0.0) / lanes * target.costs.vector_first * share
}

/// How many cells a buffer has; estimated where its size is open.
fn cells(buffer: &Buffer) -> Option<f64> {
    let shape = dim::of_shape(&buffer.shape)?;
    Some(shape.into_iter().map(|d| d.estimate() as f64).product())
}

/// How many bytes a buffer has; estimated where its size is open.
fn bytes(buffer: &Buffer) -> Option<f64> {
    Some(cells(buffer)? * buffer.dtype().bytes() as f64)
}

/// The tile that a contraction gets. Where groups or windows leave little to use again, the loops of
/// `crate::reduction` stay where they take less; but tiles of whole vectors of channels have
/// their padding computed for them alone (measured: 0.75 to 1.03 of the time of these loops).
pub(crate) fn chosen(
    c: Contraction,
    stage: &Stage,
    target: &Target,
) -> Option<(Contraction, Tile)> {
    let (c, tile) = tile::choose(c, target)?;
    let batch = |k: usize| c.operands.iter().all(|o| o.steps[k] != 0) && c.axes[k].extent > 1;
    let alone = c.axes_where(IterKind::Spatial, batch).is_empty();
    let divides = c.axes[tile.vector_axis].extent % tile.width == 0;
    let whole = tile.both(&c) && (divides || tile.exact(&c));
    (alone || whole || tile.price < untiled(stage, 1.0, target, &Operands::default()))
        .then_some((c, tile))
}
