//! What stands around quantised products, found from what functions compute.

use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::index::{Linear, same_all};
use tilewright_ir::scalar::Scalar;
use tilewright_ir::{
    BinOp, Buffer, CallTarget, DType, Expr, ExprKind, Fold, Intrin, IterKind, TensorFunc, Var,
    visit,
};

use crate::stages::{load, param, sum_of_products};

/// `x` in `x.astype(dtype)`, and `x` itself where it has the type.
fn uncast(e: &Expr) -> &Expr {
    match e.kind() {
        ExprKind::Cast(inner) => inner,
        _ => e,
    }
}

/// The axis of a stage's result by which a list of numbers is read there: `Some(None)` for one number
/// that is read everywhere.
fn list_axis(stage: &Stage, list: &Buffer, at: &[Expr]) -> Option<Option<usize>> {
    match at {
        [] => Some(None),
        [zero] if zero.as_int() == Some(0) => Some(None),
        [index] => {
            let v = index.as_var()?;
            let axis = stage.indices.iter().position(|i| i.as_var() == Some(v))?;
            let same = list.shape[0].as_int() == stage.buffer.shape[axis].as_int();
            (same && list.shape[0].as_int().is_some()).then_some(Some(axis))
        }
        _ => None,
    }
}

/// Leaves the left operand of an operator, where the test of both operands is true.
pub(super) struct Left<F>(pub BinOp, pub F);

impl<F: Fn(&Expr, &Expr) -> bool> Fold for Left<F> {
    fn expr(&mut self, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::Binary(op, a, b) if *op == self.0 && (self.1)(a, b) => a.clone(),
            _ => visit::fold_expr_children(self, e),
        }
    }
}

/// The one stage of a function that computes each element of its one result from the same elements.
fn map(func: &TensorFunc) -> Option<Stage> {
    let stages = open_stages(func)?;
    let [stage] = &stages[..] else { return None };
    let result = func.buffers().last()?;
    let whole = stage.buffer == *result && stage.covers_buffer().is_some();
    (whole && !stage.is_reduction()).then(|| stage.clone())
}

/// A function `(x - zero) * scale` of integers `x`: the numbers that these stand for.
#[derive(Clone, Debug)]
pub(super) struct Dequantise {
    /// The integers, among the parameters.
    pub x: usize,
    /// The scale: one, or a list along the axis.
    pub scale: usize,
    /// The zero point, as the scale.
    pub zero: Option<usize>,
    pub axis: Option<usize>,
}

impl Dequantise {
    pub fn recognise(func: &TensorFunc) -> Option<Dequantise> {
        let stage = map(func)?;
        let ExprKind::Binary(BinOp::Mul, a, b) = stage.value.kind() else { return None };
        dequantise_of(a, b, &stage, func).or_else(|| dequantise_of(b, a, &stage, func))
    }
}

fn dequantise_of(
    wide: &Expr,
    scale: &Expr,
    stage: &Stage,
    func: &TensorFunc,
) -> Option<Dequantise> {
    let (list, at) = load(scale)?;
    let integers = match wide.kind() {
        ExprKind::Cast(e) if e.dtype() == DType::I32 => e,
        _ => return None,
    };
    if wide.dtype() != DType::F32 || list.dtype() != DType::F32 {
        return None;
    }
    let axis = list_axis(stage, list, at)?;
    let (x, zero) = match integers.kind() {
        ExprKind::Binary(BinOp::Sub, x, zero) => (x, Some(load(uncast(zero))?)),
        _ => (integers, None),
    };
    let (x, at) = load(uncast(x))?;
    let whole = same_all(at, &stage.indices) && x.shape.len() == stage.buffer.shape.len();
    let zero = match zero {
        None => None,
        Some((list, at)) => {
            let same = list_axis(stage, list, at)? == axis && list.dtype() == x.dtype();
            Some(param(func, list).filter(|_| same)?)
        }
    };
    let (x, is_int) = (param(func, x)?, x.dtype().is_int());
    let scale = param(func, list)?;
    (whole && is_int).then_some(Dequantise { x, scale, zero, axis })
}

/// A function `round(x / scale) + zero`, saturated to all values of a type of 8 bits, with one scale.
#[derive(Clone, Debug)]
pub(super) struct Quantise {
    pub x: usize,
    pub scale: usize,
    pub zero: Option<usize>,
    pub to: DType,
}

impl Quantise {
    pub fn recognise(func: &TensorFunc) -> Option<Quantise> {
        let stage = map(func)?;
        let to = stage.value.dtype();
        let ExprKind::Cast(bounded) = stage.value.kind() else { return None };
        let ExprKind::Binary(BinOp::Min, value, high) = bounded.kind() else { return None };
        let ExprKind::Binary(BinOp::Max, value, low) = value.kind() else { return None };
        let range = match to {
            DType::I8 => (-128.0, 127.0),
            DType::U8 => (0.0, 255.0),
            _ => return None,
        };
        if (constant_number(low)?, constant_number(high)?) != range {
            return None;
        }
        let (rounded, zero) = match value.kind() {
            ExprKind::Binary(BinOp::Add, rounded, zero) => (rounded, Some(load(uncast(zero))?)),
            _ => (value, None),
        };
        let ExprKind::Call(CallTarget::Intrin(Intrin::NearbyInt), ratio) = rounded.kind() else {
            return None;
        };
        let ExprKind::Binary(BinOp::Div, x, scale) = ratio.first()?.kind() else { return None };
        let ((x, at), (scale, scale_at)) = (load(x)?, load(scale)?);
        let zero = match zero {
            None => None,
            Some((list, at)) => Some(
                param(func, list).filter(|_| is_scalar(list, at, &stage) && list.dtype() == to)?,
            ),
        };
        let fits = same_all(at, &stage.indices)
            && is_scalar(scale, scale_at, &stage)
            && [x, scale].iter().all(|b| b.dtype() == DType::F32);
        let (x, scale) = (param(func, x)?, param(func, scale)?);
        fits.then_some(Quantise { x, scale, zero, to })
    }
}

fn constant_number(e: &Expr) -> Option<f64> {
    match e.kind() {
        ExprKind::Cast(of) => Some(Scalar::constant(of)?.as_f64()),
        _ => Some(Scalar::constant(e)?.as_f64()),
    }
}

fn is_scalar(list: &Buffer, at: &[Expr], stage: &Stage) -> bool {
    list_axis(stage, list, at) == Some(None)
}

/// A factor of a sum of products.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    /// The parameter that it comes from.
    pub param: usize,
    /// The stage that pads it with zeros, among those of the function.
    pub pad: Option<usize>,
    /// What is multiplied: the parameter, or what the padding made of it.
    pub buffer: Buffer,
    pub at: Vec<Expr>,
}

/// A function that starts with a sum of products of two of its parameters in `float32`.
#[derive(Clone, Debug)]
pub(super) struct Product {
    pub stages: Vec<Stage>,
    /// The stage of the sum.
    pub sum: usize,
    pub operands: [Operand; 2],
}

impl Product {
    pub fn recognise(func: &TensorFunc) -> Option<Product> {
        if func.ret.is_some() || func.size_arguments().is_err() {
            return None;
        }
        let stages = open_stages(func)?;
        let (sum, [left, right]) = sum_of_products(&stages)?;
        let [left, right] = [left, right].map(|(buffer, at): (Buffer, Vec<Expr>)| {
            if let Some(param) = param(func, &buffer) {
                return Some(Operand { param, pad: None, buffer, at });
            }
            let mut makers = (0..stages.len()).filter(|k| stages[*k].buffer == buffer);
            let (Some(pad), None) = (makers.next(), makers.next()) else { return None };
            let alone = pad < sum
                && stages.iter().filter(|s| s.value.loads_from(|from| *from == buffer)).count()
                    == 1;
            let ExprKind::IfThenElse(_, inside, zero) = stages[pad].value.kind() else {
                return None;
            };
            let param = param(func, load(inside)?.0)?;
            let padded = alone && zero.as_float() == Some(0.0) && !stages[pad].is_reduction();
            padded.then_some(Operand { param, pad: Some(pad), buffer, at })
        });
        let operands = [left?, right?];
        // Nothing else stands before the sum, and its result is written nowhere else.
        let pads: Vec<usize> = operands.iter().filter_map(|o| o.pad).collect();
        let writers = stages.iter().filter(|s| s.buffer == stages[sum].buffer).count();
        let fits = (0..sum).all(|k| pads.contains(&k))
            && writers == 1
            && operands[0].param != operands[1].param
            && stages[sum].buffer.dtype() == DType::F32
            && operands.iter().all(|o| o.buffer.dtype() == DType::F32);
        fits.then_some(Product { stages, sum, operands })
    }

    /// The sum.
    pub fn stage(&self) -> &Stage {
        &self.stages[self.sum]
    }

    /// Whether an expression is the same for the whole of each sum.
    pub fn is_outside(&self, e: &Expr) -> bool {
        let reduced: Vec<&Var> = self.stage().reduce().map(|r| r.0).collect();
        !e.mentions_any(reduced)
    }

    /// The most products in a sum, where that is known.
    pub fn steps(&self) -> Option<u64> {
        self.stage()
            .dims()
            .filter(|d| d.2 == IterKind::Reduce)
            .try_fold(1u64, |all, (_, n, _)| all.checked_mul(u64::try_from(n.known()?).ok()?))
    }
}

/// Whether a function gives only elements of its parameters, the largest ones among them: what it makes
/// of numbers that integers stand for, it makes of the integers. Its `float32` parameters and results
/// may have any other type. Cells that are none of theirs hold the least number, and are read only by
/// maxima.
pub(super) fn selects(func: &TensorFunc) -> bool {
    let plain = func.ret.is_none() && func.size_arguments().is_ok();
    let Some(stages) = open_stages(func).filter(|_| plain) else { return false };
    let (allocs, _) = func.root_parts();
    let floats = func.buffers().chain(allocs).all(|b| b.dtype() == DType::F32);
    let padded: Vec<&Buffer> =
        stages.iter().filter(|s| !moves(&s.value, false)).map(|s| &s.buffer).collect();
    floats && stages.iter().all(|s| is_selection(s, &padded, &stages, allocs))
}

/// Whether an expression gives elements, and the places of conditions on indices; the least number as
/// well, where that counts as one.
fn moves(e: &Expr, least: bool) -> bool {
    match e.kind() {
        ExprKind::Load(_, at) => !at.iter().any(|i| i.effects().loads),
        ExprKind::Select(c, t, f) | ExprKind::IfThenElse(c, t, f) => {
            !c.effects().loads && moves(t, least) && moves(f, least)
        }
        _ => least && is_least(e),
    }
}

fn is_selection(s: &Stage, padded: &[&Buffer], stages: &[Stage], allocs: &[Buffer]) -> bool {
    match s.reduction() {
        Some(r) => {
            let starts = s.init.as_ref().is_some_and(is_least);
            let reads = padded.iter().filter(|b| r.value.loads_from(|l| l == **b));
            r.op == BinOp::Max
                && starts
                && moves(&r.value, false)
                && reads.copied().all(|b| reaches_inside(stages, s, b))
        }
        None => {
            let reads_padding = s.loads().iter().any(|l| padded.contains(&&l.0));
            let inner = allocs.contains(&s.buffer);
            !s.is_reduction() && moves(&s.value, inner) && !reads_padding
        }
    }
}

/// The least number of `float32`.
pub(super) fn is_least(e: &Expr) -> bool {
    e.dtype() == DType::F32 && e.as_float() == Some(f64::NEG_INFINITY)
}

/// How many cells along each axis are padding, where a stage pads by conditions on single axes; `None`
/// for other stages.
fn padding(maker: &Stage) -> Option<Vec<i64>> {
    let ExprKind::IfThenElse(inside, value, _) = maker.value.kind() else { return None };
    load(value)?;
    maker.covers_buffer()?;
    let extents = maker.buffer.const_shape()?;
    let (mut before, mut after) = (vec![0; extents.len()], vec![0; extents.len()]);
    for condition in inside.conjuncts() {
        let ExprKind::Binary(op, v, bound) = condition.kind() else { return None };
        let (v, bound) = (v.as_var()?, bound.as_int()?);
        let d = maker.indices.iter().position(|i| i.as_var() == Some(v))?;
        match op {
            BinOp::Ge => before[d] = bound.max(before[d]),
            BinOp::Lt => after[d] = (extents[d] - bound).max(after[d]),
            _ => return None,
        }
    }
    Some(before.into_iter().zip(after).map(|(b, a)| b + a).collect())
}

/// Whether every window of a maximum over padded cells has a cell that is none of the padding: along
/// each padded axis it reads neighbours, more of them than there are padding cells.
fn reaches_inside(stages: &[Stage], stage: &Stage, padded: &Buffer) -> bool {
    let mut makers = stages.iter().filter(|s| s.buffer == *padded);
    let (Some(maker), None) = (makers.next(), makers.next()) else { return false };
    let Some(padding) = padding(maker) else { return false };
    let reads = stage.loads().into_iter().filter(|l| l.0 == *padded);
    reads.into_iter().all(|(_, at)| (0..at.len()).all(|d| slides_along(&at, d, &padding, stage)))
}

fn slides_along(at: &[Expr], d: usize, padding: &[i64], stage: &Stage) -> bool {
    padding[d] == 0
        || stage.reduce().any(|(v, n)| {
            let step = Linear::from_expr(&at[d]).and_then(|l| l.coefficient(v));
            step == Some(1) && n > padding[d]
        })
}

/// A function that computes `x / scale` of an element, with one scale, and reads both nowhere else.
pub(super) struct Division {
    pub x: usize,
    pub scale: usize,
    stage: Stage,
}

impl Division {
    pub fn recognise(func: &TensorFunc) -> Option<Division> {
        let stage = map(func)?;
        let mut found = None;
        stage.value.any(|e| {
            if let ExprKind::Binary(BinOp::Div, a, b) = e.kind()
                && let (Some((x, at)), Some((scale, one))) = (load(a), load(b))
                && same_all(at, &stage.indices)
                && list_axis(&stage, scale, one) == Some(None)
                && x.dtype() == DType::F32
            {
                found = found.take().or_else(|| Some((x.clone(), scale.clone())));
            }
            false
        });
        let (x, scale) = found?;
        let loads = stage.loads();
        let once = [&x, &scale].iter().all(|b| loads.iter().filter(|l| l.0 == **b).count() == 1);
        let (x, scale) = (param(func, &x)?, param(func, &scale)?);
        once.then_some(Division { x, scale, stage })
    }

    /// The function without the division and without the scale among its parameters.
    pub fn without(&self, func: &TensorFunc) -> Option<TensorFunc> {
        let scale = func.params[self.scale].buffer()?;
        let is_scale = |_: &Expr, by: &Expr| load(by).is_some_and(|(b, _)| b == scale);
        let value = Left(BinOp::Div, is_scale).expr(&self.stage.value);
        let mut params = func.params.clone();
        params.remove(self.scale);
        let (allocs, _) = func.root_parts();
        let new = TensorFunc { params, ..func.clone() };
        Some(new.with_root(allocs.to_vec(), self.stage.with_value(value).stmt))
    }
}

/// The one parameter of `max(x, 0)` and `min(x, 0)`: what divides the result by a positive number may
/// divide the parameter.
pub(super) fn clips_at_zero(func: &TensorFunc) -> bool {
    let Some(stage) = map(func) else { return false };
    match stage.value.kind() {
        ExprKind::Binary(BinOp::Max | BinOp::Min, x, zero) => {
            let own = load(x).is_some_and(|(b, at)| {
                b.dtype() == DType::F32 && same_all(at, &stage.indices) && b != &stage.buffer
            });
            own && zero.as_float() == Some(0.0)
        }
        _ => false,
    }
}

/// The axis of the result that is an axis of the one parameter of a function that only reorders.
pub(super) fn moved_axis(func: &TensorFunc, axis: usize) -> Option<usize> {
    let stage = map(func)?;
    let (b, at) = load(&stage.value)?;
    let v = at.get(axis)?.as_var()?;
    let to = stage.indices.iter().position(|i| i.as_var() == Some(v))?;
    let same = b.shape[axis].as_int() == stage.buffer.shape[to].as_int();
    (same && b.shape[axis].as_int().is_some()).then_some(to)
}
