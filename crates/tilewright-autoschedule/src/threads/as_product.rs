//! Convolutions as products of matrices, for instructions that multiply tiles: all pixels are one axis, and so is all
//! that is summed up.
//!
//! ```text
//! out[n, o, h, w] += w[o, c, y, x] * a[n, c, h + y, w + x]
//!     →   left[o, k] = w[o, k // 9, k % 9 // 3, k % 3]
//!         right[n, k, p] = a[n, k // 9, p // W + k % 9 // 3, p % W + k % 3]
//!         product[n, o, p] += left[o, k] * right[n, k, p]
//!         out[n, o, p // W, p % W] = product[n, o, p]
//! ```
//!
//! The copies exist part by part, where a group shares them (`warp_tile`). What padded an operand is computed with
//! its copy, and what alone reads the result is computed over the new axes.

use std::cmp::Reverse;

use tilewright_ir::hash::HashMap;

use tilewright_analysis::stage::Extent;
use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::index::simplify_indices;
use tilewright_ir::visit::Subst;
use tilewright_ir::{Buffer, Expr, ExprKind, Fold, IterKind, Stmt, TensorFunc, Var};
use tilewright_target::{Target, TensorInstruction};

use super::instructions::{instructions, takes};
use crate::canonical::{follows, pre, sole_reader};
use crate::contraction::{Contraction, ContractionAxis, as_one};
use crate::padding::{Iters, moves, ranges};

/// The fewest rows and columns of a product that is worth an instruction for tiles of them.
const FEWEST: i64 = 8;

/// The function with its convolutions of narrow numbers as products; `None` where there are none, or the target has
/// no instruction of a warp for them. `is_free` says which buffers are the same in every run.
pub(crate) fn as_products(
    func: &TensorFunc,
    target: &Target,
    is_free: &dyn Fn(&Buffer) -> bool,
) -> Option<TensorFunc> {
    target.groups.as_ref()?;
    let instructions = instructions(target);
    let stages = open_stages(func)?;
    let (allocs, _) = func.root_parts();
    let (mut allocs, mut gone) = (allocs.to_vec(), Vec::new());
    let (mut stmts, mut k, mut found) = (Vec::new(), 0, false);
    while let Some(stage) = stages.get(k) {
        match Convolution::recognise(&allocs, &stages, k, &instructions, is_free) {
            Some(convolution) => {
                found = true;
                let next = convolution.next.is_some();
                gone.extend(convolution.pads.iter().flatten().map(|p| p.buffer.clone()));
                gone.extend(next.then(|| stage.buffer.clone()));
                convolution.write(&mut stmts, &mut allocs);
                k += 1 + usize::from(next);
            }
            None => {
                stmts.push((stage.buffer.clone(), stage.stmt.clone()));
                k += 1;
            }
        }
    }
    stmts.retain(|(buffer, _)| !gone.contains(buffer));
    allocs.retain(|b| !gone.contains(b));
    found.then(|| func.with_root(allocs, Stmt::seq(stmts.into_iter().map(|s| s.1))))
}

/// A sum of products of which several axes become one.
struct Convolution<'a> {
    stage: &'a Stage,
    /// What alone reads the result, cell by cell, and the variable of the sum that each of its own stands for.
    next: Option<(&'a Stage, HashMap<Var, Expr>)>,
    contraction: Contraction,
    /// The operand that rows move.
    left: usize,
    /// The axes that become rows, columns, and what is summed up, the slowest one first.
    merged: [Vec<usize>; 3],
    /// What pads each operand for it alone.
    pads: [Option<&'a Stage>; 2],
}

// Places in `Convolution::merged`.
const ROWS: usize = 0;
const COLUMNS: usize = 1;
const ALONG: usize = 2;

impl<'a> Convolution<'a> {
    fn recognise(
        allocs: &[Buffer],
        stages: &'a [Stage],
        k: usize,
        instructions: &[&'static TensorInstruction],
        is_free: &dyn Fn(&Buffer) -> bool,
    ) -> Option<Convolution<'a>> {
        let stage = &stages[k];
        let c = Contraction::of_any_type(stage, is_free)?;
        let (right, column) = c.columns()?;
        let (left, row) = (1 - right, c.rows(right)?);
        let is_open = c.axes.iter().any(ContractionAxis::is_open);
        if is_open || !instructions.iter().any(|i| takes(i, &c, left)) {
            return None;
        }
        let merged = [run(&c, left, row), run(&c, right, column), c.summed(left)];
        let is_plain = merged.iter().all(|axes| axes.len() == 1) && !c.slides(0) && !c.slides(1);
        let is_small = merged.iter().any(|axes| c.count(axes) < FEWEST);
        if is_plain || is_small {
            return None;
        }
        let pads = [0, 1].map(|o| pad(allocs, stages, k, &c.operands[o].buffer));
        let next = sole_reader(allocs, stages, k).filter(|(at, _)| *at == k + 1);
        let next = next.and_then(|(_, next)| Some((next, follows(stage, next)?)));
        Some(Convolution { stage, next, contraction: c, left, merged, pads })
    }

    /// The place of an axis among those that are merged.
    fn place(&self, axis: usize) -> Option<usize> {
        self.merged.iter().position(|axes| axes.contains(&axis))
    }

    /// Appends the stages that take the place of the sum, of what pads it, and of what reads it, each with the buffer
    /// that it writes.
    fn write(&self, stmts: &mut Vec<(Buffer, Stmt)>, allocs: &mut Vec<Buffer>) {
        let Convolution { stage, contraction: c, .. } = self;
        let axes = NewAxes::of(self);
        let mut push = |stage: &Stage, is_once: bool| {
            let stmt = if is_once { pre(stage) } else { Subst::refresh().stmt(&stage.stmt) };
            stmts.push((stage.buffer.clone(), stmt));
        };
        let mut factors = Vec::new();
        for (o, place) in [(self.left, ROWS), (1 - self.left, COLUMNS)] {
            let copy = self.copy(o, place, &axes);
            push(&copy, c.operands[o].free);
            factors.push(copy.buffer.load(copy.indices.clone()).cast(c.dtype));
            allocs.push(copy.buffer);
        }
        let cells = axes.of_result(self);
        let extents: Vec<i64> = cells.iter().map(|(_, n)| *n).collect();
        let name = format!("{}_product", stage.buffer.name);
        let out = Buffer::with_extents(name, &extents, c.dtype);
        let at: Vec<Expr> = cells.iter().map(|(v, _)| v.expr()).collect();
        let result = out.load(at.clone());
        let mut iters = spatial(&cells);
        let (along, count) = axes.merged[ALONG].clone();
        iters.push((along, count.dim(), IterKind::Reduce));
        let product = factors.into_iter().reduce(|x, y| x * y).map(|p| result.clone() + p);
        let Some(value) = product else { return };
        let zero = stage.init.clone();
        push(&Stage::build(stage.name().clone(), &iters, &out, at, value, zero), false);
        push(&self.result(&axes, &result), false);
        allocs.push(out);
    }

    /// The stage that copies an operand along its new axes, those that are neighbours in memory last.
    fn copy(&self, o: usize, place: usize, axes: &NewAxes) -> Stage {
        let c = &self.contraction;
        let operand = &c.operands[o];
        let moving = |k: &usize| operand.steps[*k] != 0;
        // The step along the axis whose values are nearest to one another, the longest of such.
        let nearest = |place: usize| {
            let steps = self.merged[place].iter().filter(|k| moving(k));
            let steps = steps.map(|k| (operand.steps[*k].abs(), Reverse(c.axes[*k].extent)));
            steps.min().unwrap_or((i64::MAX, Reverse(0)))
        };
        let mut all: Vec<(Var, i64)> =
            axes.kept.iter().filter(|(k, _)| moving(k)).map(|(_, axis)| axis.clone()).collect();
        let mut own = [place, ALONG];
        own.sort_by_key(|place| Reverse(nearest(*place)));
        all.extend(own.map(|place| axes.merged[place].clone()));
        let name = format!("{}_{}", operand.buffer.name, ["rows", "columns"][place]);
        let extents: Vec<i64> = all.iter().map(|(_, n)| *n).collect();
        let to = Buffer::with_extents(name.clone(), &extents, operand.buffer.dtype());
        let mut values = Subst::vars(axes.values.clone());
        let from: Vec<Expr> = operand.indices.iter().map(|e| values.expr(e)).collect();
        let value = match self.pads[o] {
            Some(pad) => {
                let vars = pad.indices.iter().zip(&from);
                let vars = vars.filter_map(|(i, at)| Some((i.as_var()?.clone(), at.clone())));
                Subst::vars(vars).expr(&pad.value)
            }
            None => operand.buffer.load(from),
        };
        let iters = spatial(&all);
        let value = simplify_indices(&value, &ranges(&iters));
        let at = all.iter().map(|(v, _)| v.expr()).collect();
        Stage::build(name, &iters, &to, at, value, None)
    }

    /// The stage that stores the result where it was stored, or what reads it there.
    fn result(&self, axes: &NewAxes, result: &Expr) -> Stage {
        let Convolution { stage, .. } = self;
        let Some((next, map)) = &self.next else {
            let iters = spatial(&axes.of_result(self));
            let mut values = Subst::vars(axes.values.clone());
            let at: Vec<Expr> = stage.indices.iter().map(|e| values.expr(e)).collect();
            let name = format!("{}_result", stage.name());
            return Stage::build(name, &iters, &stage.buffer, at, result.clone(), None);
        };
        let of = |v: &Var| axes.values.get(map.get(v)?.as_var()?).cloned();
        let zero = |v: &Var| Expr::int(0, v.dtype());
        let values = next.dims().map(|(v, ..)| (v.clone(), of(v).unwrap_or_else(|| zero(v))));
        let mut values = Subst::vars(values);
        let mut cells: Vec<(Var, i64)> = Vec::new();
        for (v, ..) in next.dims() {
            let axis = map.get(v).and_then(Expr::as_var).and_then(|s| axes.of_variable(self, s));
            cells.extend(axis.filter(|axis| !cells.contains(axis)));
        }
        let value = values.expr(&next.value);
        let value = value.replace(|e| match e.kind() {
            ExprKind::Load(b, _) if *b == stage.buffer => Some(result.clone()),
            _ => None,
        });
        let iters = spatial(&cells);
        let value = simplify_indices(&value, &ranges(&iters));
        let at: Vec<Expr> = next.indices.iter().map(|e| values.expr(e)).collect();
        Stage::build(next.name().clone(), &iters, &next.buffer, at, value, None)
    }
}

/// The axes of a product.
struct NewAxes {
    /// Rows, columns, and what is summed up.
    merged: [(Var, i64); 3],
    /// The other axes of more than one value, by their positions in the contraction.
    kept: Vec<(usize, (Var, i64))>,
    /// What the variables of the convolution are in terms of the new ones.
    values: HashMap<Var, Expr>,
}

impl NewAxes {
    fn of(convolution: &Convolution<'_>) -> NewAxes {
        let Convolution { contraction: c, merged, .. } = convolution;
        let names = ["rows", "columns", "along"].into_iter().zip(merged);
        let new: Vec<(Var, i64)> =
            names.map(|(name, axes)| (Var::index(name), c.count(axes))).collect();
        let mut values = HashMap::default();
        for ((var, count), axes) in new.iter().zip(merged) {
            // Digits, the slowest one first.
            let mut inside = *count;
            for k in axes {
                let axis = &c.axes[*k];
                let around = inside;
                inside /= axis.extent;
                let digit = if around == *count { var.expr() } else { var.expr().floormod(around) };
                let digit = if inside == 1 { digit } else { digit.floordiv(inside) };
                values.insert(axis.var.clone(), digit.cast(axis.var.dtype()));
            }
        }
        let mut kept = Vec::new();
        for (k, axis) in c.axes.iter().enumerate() {
            if convolution.place(k).is_some() {
                continue;
            }
            let var = axis.var.fresh();
            let value = if axis.extent == 1 { Expr::int(0, var.dtype()) } else { var.expr() };
            values.insert(axis.var.clone(), value);
            kept.extend((axis.extent > 1).then_some((k, (var, axis.extent))));
        }
        let [rows, columns, along] = [ROWS, COLUMNS, ALONG].map(|place| new[place].clone());
        NewAxes { merged: [rows, columns, along], kept, values }
    }

    /// The new axis that a variable of the convolution is a part of.
    fn of_variable(&self, convolution: &Convolution<'_>, v: &Var) -> Option<(Var, i64)> {
        let k = convolution.contraction.axes.iter().position(|a| a.var == *v)?;
        match convolution.place(k) {
            Some(place) => Some(self.merged[place].clone()),
            None => self.kept.iter().find(|(at, _)| *at == k).map(|(_, axis)| axis.clone()),
        }
    }

    /// The axes of the result, in its order.
    fn of_result(&self, convolution: &Convolution<'_>) -> Vec<(Var, i64)> {
        let mut all: Vec<(Var, i64)> = Vec::new();
        for index in &convolution.stage.indices {
            let axis = index.as_var().and_then(|v| self.of_variable(convolution, v));
            all.extend(axis.filter(|axis| !all.contains(axis)));
        }
        all
    }
}

/// The axes that one operand alone moves along and the result walks as one with an axis, the slowest one first.
fn run(c: &Contraction, operand: usize, axis: usize) -> Vec<usize> {
    let all = c.alone(operand);
    let mut run = vec![axis];
    let as_one = |slow: usize, fast: usize| match (c.out[slow], c.out[fast]) {
        (Some(s), Some(f)) => as_one(s, f, c.axes[fast].extent),
        _ => false,
    };
    while let Some(slow) = all.iter().find(|k| !run.contains(k) && as_one(**k, run[0])) {
        run.insert(0, *slow);
    }
    while let Some(fast) = all.iter().find(|k| !run.contains(k) && as_one(run[run.len() - 1], **k))
    {
        run.push(*fast);
    }
    run
}

/// The stage that only moves what an operand holds, with a constant around it, for one reader alone.
fn pad<'a>(
    allocs: &[Buffer],
    stages: &'a [Stage],
    reader: usize,
    buffer: &Buffer,
) -> Option<&'a Stage> {
    let k = stages[..reader].iter().position(|s| s.buffer == *buffer)?;
    let pad = &stages[k];
    let alone = sole_reader(allocs, stages, k).is_some_and(|(at, _)| at == reader);
    let loads = pad.loads();
    let stays = !stages[k..reader].iter().any(|s| loads.iter().any(|l| l.0 == s.buffer));
    let all = pad.covers_buffer()?.iter().all(Option::is_some);
    (alone && stays && all && moves(&pad.value)).then_some(pad)
}

/// Axes as spatial iteration variables.
fn spatial(axes: &[(Var, i64)]) -> Iters {
    axes.iter().map(|(v, n)| (v.clone(), n.dim(), IterKind::Spatial)).collect()
}
