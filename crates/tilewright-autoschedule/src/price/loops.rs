//! The price of a stage in loops without tiles.
//!
//! Its loops walk axes that all accesses walk as one (`crate::axes`), by vectors where they
//! move by at most one cell along an axis, or by a few: the innermost one, of a reduction any.

use tilewright_ir::hash::HashSet;

use crate::axes::{Access, FusedAxis, fuse, loose_vars};
use crate::reduction::choice::STRIDES;
use tilewright_analysis::Stage;
use tilewright_ir::index::Affine;
use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, IterKind};
use tilewright_target::Target;
use tilewright_target::costs::{MANY, SMALL};

use super::memory::{Operands, access, bytes, cells};
use super::operations::operations;
use crate::digits::{Digits, digits};
use crate::padding::iters;
use crate::parts::INTERLEAVED;
use crate::sides::vectors_of_side;
use crate::tile::LINE_BYTES;
use crate::transpose::Tile as Square;

/// Cycles of a stage without tiles, of which so many of the steps of a reduction run.
pub(super) fn untiled(stage: &Stage, run: f64, target: &Target, operands: &Operands) -> f64 {
    Loops::new(stage, target).cycles(run, operands)
}

/// A stage as its loops have it.
struct Loops<'a> {
    stage: &'a Stage,
    target: &'a Target,
    /// What combines, of a reduction.
    op: Option<BinOp>,
    value: Expr,
    /// The result.
    store: Access,
    /// Loads, and the store last.
    accesses: Vec<Access>,
    axes: Vec<FusedAxis>,
    /// Those of a vector.
    lanes: i64,
}

/// Vectors along an axis.
struct Vectors {
    /// How many there are for each element.
    each: f64,
    kind: IterKind,
}

/// How long accesses of a vector take.
struct Far {
    /// From where the stage has it, and from memory.
    here: f64,
    memory: f64,
}

impl<'a> Loops<'a> {
    fn new(stage: &'a Stage, target: &'a Target) -> Self {
        let reduction = stage.reduction();
        let op = reduction.as_ref().map(|r| r.op);
        let iters = iters(stage);
        let (iters, value, indices) = match reduction {
            Some(reduction) => (iters, reduction.value, stage.indices.clone()),
            None => {
                let Digits { iters, value, indices, .. } =
                    digits(&iters, stage.value.clone(), stage.indices.clone());
                (iters, value, indices)
            }
        };
        let mut accesses = Access::loads(&value);
        let lanes = accesses.iter().map(|a| a.buffer.dtype().bytes()).max().unwrap_or(1);
        let lanes = target.vectors.lanes(lanes.max(stage.buffer.dtype().bytes()));
        let store = Access::new(&stage.buffer, &indices);
        accesses.push(store.clone());
        // Padding is made apart, without its conditions.
        let loose = match value.kind() {
            ExprKind::IfThenElse(..) => HashSet::default(),
            _ => loose_vars(&value),
        };
        let axes = fuse(&iters, &accesses, &loose);
        Loops { stage, target, op, value, store, accesses, axes, lanes }
    }

    fn cycles(&self, run: f64, operands: &Operands) -> f64 {
        let costs = &self.target.costs;
        let all: f64 = self.axes.iter().map(|a| a.extent.estimate() as f64).product();
        let buffers: HashSet<&Buffer> = self.accesses.iter().map(|a| &a.buffer).collect();
        let cold: f64 =
            buffers.iter().filter(|b| operands.cold.contains(b)).filter_map(|b| bytes(b)).sum();
        let touched: f64 = buffers.iter().filter_map(|b| bytes(b)).sum();
        // What the same kernel makes for a reduction is in registers.
        let made = buffers.iter().filter(|b| operands.joined.contains(b));
        let made: f64 = made.filter_map(|b| bytes(b)).sum();
        // What is read and written takes as long as its bytes do.
        let bytes_of_vector = self.target.vectors.lanes(1) as f64;
        let here = access(touched, self.target) * bytes_of_vector / LINE_BYTES;
        let memory = costs.weight_far * bytes_of_vector;
        let far = Far { here: here.max(costs.load), memory };
        let work = operations(&self.value) * costs.operation;
        let is_product = self.is_product();
        let reduced = self.axes.iter().filter(|a| a.kind == IterKind::Reduce);
        let steps_of_sum: f64 = reduced.map(|a| a.extent.estimate() as f64).product();
        // What a vector takes, and an element where there are none.
        let [vector, element] = match self.op {
            Some(BinOp::Max | BinOp::Min) => [run * costs.extreme; 2],
            Some(_) if is_product => [run * costs.reduce; 2],
            Some(_) if steps_of_sum < MANY => [run * costs.sum_few; 2],
            Some(_) => [costs.sum; 2],
            None => [self.elementwise(&far, operands), self.accesses.len() as f64 * costs.element],
        };
        // A step of a sum waits for the one before, unless vectors run along it.
        let chain =
            if is_product && self.op.is_some() { steps_of_sum * costs.latency } else { 0.0 };
        let candidates = match self.op {
            Some(_) => &self.axes[..],
            None => self.axes.last().map_or(&[][..], std::slice::from_ref),
        };
        let (each, kind) = (1.0 / self.lanes as f64, IterKind::Spatial);
        let all_lanes = self.is_shuffled().then_some(Vectors { each, kind });
        let vectors = candidates.iter().filter_map(|axis| self.along(axis));
        let vectors = vectors.chain(all_lanes).map(|v| {
            let least = if v.kind == IterKind::Reduce { 0.0 } else { chain };
            (all * v.each * (vector + work)).max(least)
        });
        let cycles = vectors.fold((all * (element + work)).max(chain), f64::min);
        // What a reduction reads several times comes from far once.
        let cell = self.stage.buffer.dtype().bytes() as f64;
        match self.op {
            Some(_) if !is_product => {
                let near = self.vector_count((touched - cold - made).max(0.0), cell)
                    * (far.here - costs.load);
                cycles + near + self.vector_count(cold, cell) * (far.memory - costs.load)
            }
            _ => cycles,
        }
    }

    fn vector_count(&self, bytes: f64, cell: f64) -> f64 {
        bytes / (self.lanes as f64 * cell)
    }

    /// Whether several operands are read.
    fn is_product(&self) -> bool {
        self.accesses.len() > 2
    }

    /// By how much an access moves along an axis; `None` where it does not move evenly.
    fn step(access: &Access, axis: &FusedAxis) -> Option<i64> {
        axis.step(access.offset.as_ref()?)
    }

    /// The vectors along an axis; `None` where there are none.
    fn along(&self, axis: &FusedAxis) -> Option<Vectors> {
        let n = axis.extent.estimate();
        if !self.accesses.iter().all(|a| self.is_even(a, axis)) {
            return None;
        }
        let (whole, rest) = (n / self.lanes, n % self.lanes);
        let (count, fewest) = match axis.kind {
            // A vector of partial results is added up, for many sums at once unless they wait for products;
            // what is left is added one by one.
            IterKind::Reduce => {
                let end = if self.is_product() { self.lanes } else { self.lanes / 2 };
                (whole + rest + end, 2 * self.lanes)
            }
            // The last vector of a reduction may begin earlier.
            _ if self.op.is_some() && whole > 0 => (whole + rest.min(1), self.lanes.min(4)),
            _ => (whole + i64::from((rest as u64).count_ones()), self.lanes.min(4)),
        };
        let mut each = count as f64 / n as f64;
        if self.op.is_some() && axis.kind == IterKind::Spatial && self.is_side(axis) {
            each = vectors_of_side(n, self.lanes);
        }
        (n >= fewest).then_some(Vectors { each, kind: axis.kind })
    }

    /// Whether an axis is as long as a single open size says.
    fn is_side(&self, axis: &FusedAxis) -> bool {
        axis.extent.known().is_none() && axis.parts.len() == 1
    }

    fn is_even(&self, a: &Access, axis: &FusedAxis) -> bool {
        match Self::step(a, axis) {
            Some(0 | 1) => true,
            // What lies a few cells apart is shuffled.
            Some(step) => self.op.is_some() && STRIDES.contains(&step),
            None => false,
        }
    }

    /// What the accesses of a vector of elementwise work take.
    fn elementwise(&self, far: &Far, operands: &Operands) -> f64 {
        let costs = &self.target.costs;
        let loads = &self.accesses[..self.accesses.len() - 1];

        // What is read twice is loaded once.
        let others = (0..loads.len()).filter(|k| {
            !self.is_joined(&loads[*k], operands)
                && loads[..*k].iter().all(|other| !is_same_load(other, &loads[*k]))
        });
        let each = others.map(|k| {
            if self.is_small(&loads[k]) {
                costs.vector_kept
            } else if operands.cold.contains(&loads[k].buffer) {
                far.memory
            } else {
                far.here
            }
        });
        let loaded: f64 = each.sum();
        let stored = match self.value.kind() {
            _ if operands.reduced => 0.0,
            _ if loads.iter().any(|load| self.is_joined(load, operands)) => costs.joined,
            // Padding is written first, over all of it: zeros at the speed of `memset`.
            ExprKind::IfThenElse(_, _, pad) if !is_zero(pad) => 2.0 * far.here,
            _ => far.here,
        };
        loaded + stored
    }

    fn is_joined(&self, load: &Access, operands: &Operands) -> bool {
        is_same_cell(load, &self.store) && !operands.apart.contains(&load.buffer)
    }

    fn is_small(&self, load: &Access) -> bool {
        let [all, own] = [&self.stage.buffer, &load.buffer].map(cells);
        all.zip(own).is_some_and(|(all, own)| all >= own * SMALL)
    }

    /// Whether vectors are interleaved, or squares transposed.
    fn is_shuffled(&self) -> bool {
        let interleaved = match &self.axes[..] {
            [.., _, last] => {
                last.extent.known().is_some_and(|n| n <= INTERLEAVED)
                    && self
                        .accesses
                        .iter()
                        .any(|a| Self::step(a, &self.axes[self.axes.len() - 2]) == Some(1))
            }
            _ => false,
        };
        self.op.is_none()
            && (interleaved
                || Square::recognise(
                    self.stage,
                    &self.value,
                    &self.axes,
                    &self.accesses,
                    self.target,
                )
                .is_some())
    }
}

/// Whether an expression is the number zero.
fn is_zero(e: &Expr) -> bool {
    e.as_int() == Some(0) || matches!(e.kind(), ExprKind::Float(value) if *value == 0.0)
}

/// Whether two accesses certainly load one cell.
fn is_same_load(a: &Access, b: &Access) -> bool {
    a.buffer == b.buffer && is_same_cell(a, b)
}

/// Whether two accesses are certainly at the same place of their buffers, whatever the iteration.
fn is_same_cell(a: &Access, b: &Access) -> bool {
    let (Some(a), Some(b)) = (&a.offset, &b.offset) else { return false };
    a.constant() == b.constant()
        && is_affine(a)
        && is_affine(b)
        && a.vars().all(|(v, k)| b.coefficient(v) == Some(k))
        && b.vars().all(|(v, k)| a.coefficient(v) == Some(k))
}

fn is_affine(a: &Affine) -> bool {
    a.opaque().next().is_none()
}
