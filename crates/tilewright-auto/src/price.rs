//! What a function costs, as an estimate to compare layouts by.
//!
//! A contraction in tiles costs what its tile does ([`crate::tile`]). Everything else is counted by
//! its iterations: one vector at a time where a loop walks along all that it touches, and one
//! element at a time where none does. What comes from farther than the second cache takes longer, and so
//! do functions that are computed by many operations. Products of 8-bit integers are priced as what they become
//! ([`crate::integer`]). An open size counts as its estimate ([`Dim::estimate`]).
//!
//! [`Dim::estimate`]: tilewright_ir::Dim::estimate

use std::collections::HashSet;

use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::visit::{Visit, walk_expr};
use tilewright_ir::{BinOp, Buffer, CallTarget, Expr, ExprKind, IterKind, TensorFunc, dim};
use tilewright_schedule::PRE;
use tilewright_schedule::auto::affine::Affine;
use tilewright_schedule::auto::axes::{Access, Axis, fuse, loose_vars};
use tilewright_schedule::auto::pack::PHASES;
use tilewright_target::Target;

use crate::contraction::Contraction;
use crate::integer::expand_with;
use crate::tile::Tile;
use crate::{contraction, groups, tile};

/// Cycles of an access of one element where there are no vectors.
const ACCESS: f64 = 1.0;
/// Cycles of an access of a vector that nothing was computed from before, where all that a stage reads
/// and writes takes up to half of the second cache, up to three of it, and more (measured: medians of
/// concatenations).
const VECTOR: [f64; 3] = [2.1, 2.5, 3.6];
/// Cycles of an access of a vector of a small operand, such as one number a channel, which stays in
/// the first cache (measured: normalisations behind concatenations).
const CACHED: f64 = 0.85;
/// How many times larger than an operand a result is for which it is small.
const SMALL: f64 = 8.0;
/// Cycles for a byte of the weights of a contraction, which a run reads once: from the third cache,
/// where all weights of a graph stay from run to run, and from memory (measured: 0.039 for a product
/// with a vector of 4 MB of 12 MB, 0.103 to 0.114 for 4 to 411 MB of 300 to 600 MB).
const WEIGHTS: [f64; 2] = [0.04, 0.107];
/// Cycles of a load or a step of arithmetic that waits for weights from memory meanwhile, for a byte of
/// them (measured: convolutional models).
const WAIT: f64 = 0.04;
/// Cycles of a vector of elementwise work whose operand is still in a register: it joins the function
/// that makes the operand, and its result takes the place of that.
const JOINED: f64 = 0.25;
/// The part of a call's cost that such work has: it may stand alone, or be joined.
const JOINED_CALL: f64 = 0.5;
/// Cycles of an element that is copied so that vectors can be read.
const COPY: f64 = 0.5;
/// Cycles of a step of a reduction of products, whose result stays in a register (measured: grouped
/// convolutions).
const REDUCE: f64 = 0.7;
/// The same for a sum of many steps, which waits for the one before (measured: averages of whole images).
const SUM: f64 = 1.45;
/// Steps of a sum from which it is one of many.
const MANY: f64 = 32.0;
/// The same for a maximum or minimum, which says what becomes of NaN (measured: 1.5 to 2.2 for pooling
/// of what lies in the second cache).
const EXTREME: f64 = 1.6;
/// Cycles of an operation on vectors, of functions that take many ([`Intrin::cost`]), and of a division.
const OPERATION: f64 = 0.6;
/// Operations of a division.
const DIVISION: usize = 4;
/// Cycles that a call costs beside its work: where all weights of a graph stay in the second cache, and
/// where its code and arguments come from farther (measured: medians of the shortest kernels).
const CALL: [f64; 2] = [130.0, 500.0];
/// Cycles for a byte that a conversion reads or writes, by the cells that lie one behind the other both
/// before and after it, from this many on (measured: medians of 96 conversions of convolutional models,
/// on one core, in cycles of contractions; half of each kind lie between 0.6 and 1.8 times the median).
const CONVERT: [(i64, f64); 3] = [(64, 0.04), (4, 0.12), (1, 0.20)];

/// What a function costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Estimated cycles of a call.
    pub cycles: f64,
    /// Whether it holds a contraction that is computed in tiles.
    pub tiled: bool,
}

/// Estimated cycles of a conversion that reads and writes some bytes; `run` is the number of cells that
/// lie one behind the other both before and after it.
pub fn conversion(bytes: u64, run: i64) -> f64 {
    let each = CONVERT.into_iter().find(|(least, _)| run >= *least).unwrap_or(CONVERT[2]).1;
    CALL[1] + bytes as f64 * each
}

/// What a call of a function costs. `free` says for each argument whether it is the same in every run;
/// `constants` are the bytes of all constants that a run reads.
pub fn price(func: &TensorFunc, free: &[bool], constants: u64, target: &Target) -> Price {
    let is_free = |b: &Buffer| {
        let at = func.params.iter().position(|p| p.buffer() == Some(b));
        at.and_then(|at| free.get(at)).copied().unwrap_or(false)
    };
    // What runs is the expanded function, without what is made once.
    let expanded = expand_with(func, target, &is_free);
    let func = expanded.as_ref().unwrap_or(func);
    let once = made_once(func, &is_free);
    let is_free = |b: &Buffer| is_free(b) || once.contains(b);
    let mut price = grouped(func, is_free, target).unwrap_or_else(|| plain(func, is_free, target));
    if price.tiled {
        let bytes: f64 = func.buffers().filter(|b| is_free(b)).filter_map(bytes).sum();
        // Other cores use the third cache, too.
        let stays = (target.caches.l3 / 2).max(target.caches.l2);
        price.cycles = match constants <= stays as u64 {
            true => price.cycles.max(bytes * WEIGHTS[0]),
            false => (price.cycles + bytes * WAIT).max(bytes * WEIGHTS[1]),
        };
    }
    let is_near = constants <= target.caches.l2 as u64;
    let call = CALL[usize::from(!is_near)];
    price.cycles += if is_joined(func) { call * JOINED_CALL } else { call };
    price
}

/// Whether a function is elementwise work that joins the function which makes its operand.
fn is_joined(func: &TensorFunc) -> bool {
    let stages = open_stages(func);
    let Some([stage]) = stages.as_deref() else { return false };
    let result = Access::new(&stage.buffer, &stage.indices);
    let loads = || Access::loads(&stage.value).into_iter();
    stage.reduction().is_none() && loads().any(|load| is_same_cell(&load, &result))
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

/// The cycles of a function whose contractions in groups get tiles; `None` where they do not.
fn grouped(func: &TensorFunc, is_free: impl Fn(&Buffer) -> bool, target: &Target) -> Option<Price> {
    let name = "f".into();
    let apart = groups::apart(&name, func)?;
    let func = apart.schedule.func(&name).ok()?;
    let copy = |b: &Buffer| apart.copies.iter().find(|copy| copy.to == b.name);
    let free = |b: &Buffer| is_free(copy(b).map_or(b, |copy| &copy.from));
    let mut price = Price { cycles: 0.0, tiled: true };
    let stages = open_stages(func)?;
    for k in 0..stages.len() {
        let tile =
            contraction(func, &stages, k, free).and_then(|(c, _)| chosen(c, &stages[k], target));
        price.cycles += match tile {
            Some((_, tile)) => tile.price,
            None if apart.blocks.contains(stages[k].name()) => return None,
            // What is copied apart is read where it lies.
            None if copy(&stages[k].buffer).is_some() || free(&stages[k].buffer) => 0.0,
            None => untiled(&stages[k], target),
        };
    }
    Some(price)
}

fn plain(func: &TensorFunc, is_free: impl Fn(&Buffer) -> bool, target: &Target) -> Price {
    let Some(stages) = open_stages(func) else {
        let all = func.buffers().filter_map(cells).sum::<f64>();
        return Price { cycles: all * ACCESS, tiled: false };
    };
    let mut price = Price { cycles: 0.0, tiled: false };
    for k in 0..stages.len() {
        if is_free(&stages[k].buffer) {
            continue;
        }
        let tile = contraction(func, &stages, k, &is_free)
            .and_then(|(c, _)| chosen(c, &stages[k], target));
        price.tiled |= tile.is_some();
        price.cycles += tile.map_or_else(|| untiled(&stages[k], target), |(_, tile)| tile.price);
    }
    price
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
/// [`tilewright_schedule::auto`] stay where they take less; but tiles of whole vectors of channels have
/// their padding computed for them alone (measured: 0.75 to 1.03 of the time of these loops).
pub(crate) fn chosen(
    c: Contraction,
    stage: &Stage,
    target: &Target,
) -> Option<(Contraction, Tile)> {
    let (c, tile) = tile::choose(c, target)?;
    let batch = |k: usize| c.operands.iter().all(|o| o.steps[k] != 0) && c.axes[k].extent > 1;
    let alone = c.axes_where(IterKind::Spatial, batch).is_empty();
    let whole = tile.both(&c) && c.axes[tile.vector_axis].extent % tile.width == 0;
    (alone || whole || tile.price < untiled(stage, target)).then_some((c, tile))
}

/// Cycles of a stage without tiles. Its loops walk axes that all accesses walk as one
/// ([`tilewright_schedule::auto`]), by vectors where they move by at most one cell along an axis: the
/// innermost one, of a reduction any. Steps of a few cells are copied first.
pub(crate) fn untiled(stage: &Stage, target: &Target) -> f64 {
    let reduction = stage.reduction();
    let value = reduction.as_ref().map_or(&stage.value, |r| &r.value);
    let mut accesses = Access::loads(value);
    let lanes = accesses.iter().map(|a| a.buffer.dtype().bytes()).max().unwrap_or(1);
    let lanes = target.vectors.lanes(lanes.max(stage.buffer.dtype().bytes()));
    accesses.push(Access::new(&stage.buffer, &stage.indices));
    let iters: Vec<_> = stage.dims().map(|(v, n, kind)| (v.clone(), n, kind)).collect();
    // Padding is made apart, without its conditions.
    let loose = match value.kind() {
        ExprKind::IfThenElse(..) => HashSet::new(),
        _ => loose_vars(value),
    };
    let axes = fuse(&iters, &accesses, &loose);
    let all: f64 = axes.iter().map(|a| a.extent.estimate() as f64).product();
    let steps = |axis: &Axis| -> Option<Vec<i64>> {
        accesses.iter().map(|a| axis.step(a.offset.as_ref()?)).collect()
    };
    // What an element costs in vectors along an axis, with what is copied for it in all.
    let along = |axis: &Axis| {
        let n = axis.extent.estimate();
        let copied = |(a, step): (&Access, i64)| match step {
            0 | 1 => Some(0.0),
            step if reduction.is_some() && PHASES.contains(&step) => Some(cells(&a.buffer)? * COPY),
            _ => None,
        };
        let copies = accesses.iter().zip(steps(axis)?).map(copied).sum::<Option<f64>>()?;
        let (whole, rest) = (n / lanes, n % lanes);
        let (count, fewest) = match axis.kind {
            // A vector of partial results is added up, and what is left is added one by one.
            IterKind::Reduce => (whole + rest + lanes, 2 * lanes),
            _ => (whole + i64::from((rest as u64).count_ones()), lanes.min(4)),
        };
        (n >= fewest).then_some((count as f64 / n as f64, copies))
    };
    let candidates = match reduction {
        Some(_) => &axes[..],
        None => axes.last().map_or(&[][..], std::slice::from_ref),
    };
    let touched: HashSet<&Buffer> = accesses.iter().map(|a| &a.buffer).collect();
    let touched: f64 = touched.into_iter().filter_map(bytes).sum();
    let far = match touched / target.caches.l2 as f64 {
        part if part <= 0.5 => 0,
        part if part <= 3.0 => 1,
        _ => 2,
    };
    let work = operations(value) * OPERATION;
    let is_product = accesses.len() > 2;
    let reduced = axes.iter().filter(|a| a.kind == IterKind::Reduce);
    let steps_of_sum: f64 = reduced.map(|a| a.extent.estimate() as f64).product();
    // What a vector takes, and an element where there are none.
    let [vector, element] = match reduction.as_ref().map(|r| r.op) {
        Some(BinOp::Max | BinOp::Min) => [EXTREME; 2],
        Some(_) if is_product || steps_of_sum < MANY => [REDUCE; 2],
        Some(_) => [SUM; 2],
        None => {
            let loads = &accesses[..accesses.len() - 1];
            let result = Access::new(&stage.buffer, &stage.indices);
            let joined = loads.iter().position(|load| is_same_cell(load, &result));
            let is_small = |load: &Access| {
                let [all, own] = [&stage.buffer, &load.buffer].map(cells);
                all.zip(own).is_some_and(|(all, own)| all >= own * SMALL)
            };
            let access = |load: &Access| if is_small(load) { CACHED } else { VECTOR[far] };
            let others = loads.iter().enumerate().filter(|(k, _)| Some(*k) != joined);
            let loaded: f64 = others.map(|(_, load)| access(load)).sum();
            let stored = if joined.is_some() { JOINED } else { VECTOR[far] };
            [loaded + stored, accesses.len() as f64 * ACCESS]
        }
    };
    let cost = |(each, copies): (f64, f64)| all * each * (vector + work) + copies;
    let vectors = candidates.iter().filter_map(along).map(cost);
    let cycles = vectors.fold(all * (element + work), f64::min);
    // What a reduction reads several times comes from far once.
    let lines = touched / (lanes as f64 * stage.buffer.dtype().bytes() as f64);
    match reduction {
        Some(_) if !is_product => cycles + lines * (VECTOR[far] - VECTOR[0]),
        _ => cycles,
    }
}

/// How many operations an expression takes beside simple ones, which run while memory is waited for.
fn operations(e: &Expr) -> f64 {
    struct Operations(usize);
    impl Visit for Operations {
        fn expr(&mut self, e: &Expr) {
            self.0 += match e.kind() {
                ExprKind::Binary(BinOp::Div, ..) if e.dtype().is_float() => DIVISION,
                ExprKind::Call(CallTarget::Intrin(op), _) if op.cost() > 1 => op.cost(),
                _ => 0,
            };
            walk_expr(self, e);
        }
    }
    let mut all = Operations(0);
    all.expr(e);
    all.0 as f64
}

/// Whether two accesses are certainly at the same place of their buffers, whatever the iteration.
fn is_same_cell(a: &Access, b: &Access) -> bool {
    let (Some(a), Some(b)) = (&a.offset, &b.offset) else { return false };
    let within = |a: &Affine, b: &Affine| a.vars().all(|(v, k)| b.coefficient(v) == Some(k));
    let is_affine = |a: &Affine| a.opaque().next().is_none();
    a.constant() == b.constant() && is_affine(a) && is_affine(b) && within(a, b) && within(b, a)
}
