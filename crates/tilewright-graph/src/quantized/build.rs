//! The functions that quantised products are made of.

use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_analysis::Stage;
use tilewright_ir::visit::Subst;
use tilewright_ir::{BinOp, Buffer, DType, Expr, ExprKind, Fold, TensorFunc, Var, dim, visit};

use super::recognise::{Left, Product, is_least};
use crate::stages::{Iter, at, cells, fresh, function, kept, load, param, stored};

fn with_type(b: &Buffer, name: &str, dtype: DType) -> Buffer {
    b.derive_storage(|d| {
        d.name = name.into();
        d.dtype = dtype;
    })
}

/// What an operand of integers is made of.
pub(super) struct Integers {
    /// The type of 8 bits.
    pub dtype: DType,
    /// Extents of the zero point, where there is one: none, or as many as there are along the axis.
    pub zero: Option<Option<usize>>,
    /// The axis of the operand with zero points of their own.
    pub axis: Option<usize>,
}

/// The sum of products of integers less their zero points. Parameters: the operands, each followed by
/// its zero point if it has one, the sums in `int32`.
pub(super) fn sums(func: &TensorFunc, p: &Product, of: &[Integers; 2]) -> Option<TensorFunc> {
    let (mut params, mut allocs, mut body) = (Vec::new(), Vec::new(), Vec::new());
    let [left, right] = [0, 1].map(|k: usize| -> Option<Expr> {
        let (o, i) = (&p.operands[k], &of[k]);
        let given = func.params[o.param].buffer()?;
        let integers = with_type(given, &given.name, i.dtype);
        params.push(integers.clone());
        let zero = i.zero.map(|count| {
            let extents: Vec<i64> = count.iter().filter_map(|n| i64::try_from(*n).ok()).collect();
            let name = format!("{}_zero_point", given.name);
            Buffer::with_extents(name, &extents, i.dtype)
        });
        params.extend(zero.clone());
        let source = match o.pad {
            None => integers.clone(),
            Some(k) => {
                let pad = &p.stages[k];
                let ExprKind::IfThenElse(inside, value, _) = pad.value.kind() else { return None };
                let ExprKind::Load(_, at) = value.kind() else { return None };
                let to = with_type(&pad.buffer, &pad.buffer.name, i.dtype);
                // Padding stands for zero.
                let fill = zero.as_ref().map_or_else(|| Expr::int(0, i.dtype), |z| z.load([]));
                let value = Expr::if_then_else(inside.clone(), integers.load(at.clone()), fill);
                allocs.push(to.clone());
                body.push(fresh(&stored(pad, &to, value, None)));
                to
            }
        };
        let value = source.load(o.at.clone()).cast(DType::I32);
        Some(
            zero.into_iter()
                .fold(value, |v, z| v - z.load(i.axis.map(|d| o.at[d].clone())).cast(DType::I32)),
        )
    });
    let stage = p.stage();
    let out = with_type(&stage.buffer, "sums", DType::I32);
    let iters: Vec<Iter> = stage.dims().map(|(v, n, kind)| (v.clone(), n, kind)).collect();
    let at = stage.indices.clone();
    let value = out.load(at.clone()) + left? * right?;
    let name: Arc<str> = format!("{}_integer", stage.name()).into();
    let new = Stage::build(name, &iters, &out, at, value, Some(Expr::i32(0)));
    body.push(fresh(&new));
    params.push(out);
    Some(function(func, &params, allocs, body))
}

/// What follows a sum in its function, and reads it and an addend that integers stand for.
pub(super) struct Addend {
    /// The parameter.
    pub param: usize,
    /// Where it is read, by the variables of `axes`.
    at: Vec<Expr>,
    /// The variables of the sum's axes there.
    axes: Vec<Var>,
    /// The stage, among those of the function.
    stage: usize,
}

impl Addend {
    /// The addend of the sums: the stage behind them reads them once, in a sum with a parameter.
    pub fn recognise(func: &TensorFunc, p: &Product) -> Option<Addend> {
        let sums = &p.stage().buffer;
        let stage = p.sum + 1;
        let next = p.stages.get(stage)?;
        let reads = p.stages[stage..].iter().flat_map(|s| s.loads()).filter(|l| l.0 == *sums);
        if reads.count() != 1 || next.is_reduction() {
            return None;
        }
        let mut found = None;
        next.value.any(|e| {
            if let ExprKind::Binary(BinOp::Add, a, b) = e.kind()
                && let (ExprKind::Load(x, at), ExprKind::Load(y, list)) = (a.kind(), b.kind())
                && x == sums
            {
                found = Some((at.clone(), y.clone(), list.clone()));
            }
            false
        });
        let (at, addend, list) = found?;
        let axes: Vec<Var> = at.iter().map(|i| i.as_var().cloned()).collect::<Option<_>>()?;
        let distinct = (0..axes.len()).all(|k| !axes[..k].contains(&axes[k]));
        let param = param(func, &addend)?;
        let inside = list.iter().all(|i| visit::free_vars(i).iter().all(|v| axes.contains(v)));
        (distinct && inside).then_some(Addend { param, at: list, axes, stage })
    }

    /// The axis of the sums along which an axis of the addend runs.
    pub fn axis(&self, d: usize) -> Option<usize> {
        let v = self.at.get(d)?.as_var()?;
        self.axes.iter().position(|a| a == v)
    }

    /// The function that adds the integers. Parameters: the sums, the addend in `int32`, the result.
    pub fn build(&self, func: &TensorFunc, p: &Product) -> Option<TensorFunc> {
        let sums = &p.stage().buffer;
        let [x, out] = ["sums", "biased"].map(|name| with_type(sums, name, DType::I32));
        let given = func.params[self.param].buffer()?;
        let addend = with_type(given, &given.name, DType::I32);
        let iters = cells("v", &dim::of_shape(&sums.shape)?);
        let at = at(&iters);
        let map = Subst::vars(self.axes.iter().cloned().zip(at.iter().cloned()));
        let list: Vec<Expr> = self.at.iter().map(|e| map.clone().expr(e)).collect();
        let value = x.load(at.clone()) + addend.load(list);
        let stage = Stage::build("biased", &iters, &out, at, value, None);
        Some(function(func, &[x, addend, out], Vec::new(), vec![fresh(&stage)]))
    }
}

/// The numbers that sums stand for, and what follows them in their function: `sums * factors`, where
/// each factor is one number or a list along an axis of the sums (its extent). Without the addend
/// where one is given. Parameters: the sums, the factors, the parameters of `func` that are returned,
/// the result. Second, those parameters; third, whether nothing but the factors follows.
pub(super) fn rescaled(
    func: &TensorFunc,
    p: &Product,
    factors: &[Option<usize>],
    without: Option<&Addend>,
) -> Option<(TensorFunc, Vec<usize>, bool)> {
    let stage = p.stage();
    let mut rest: Vec<Stage> = p.stages[p.sum + 1..].to_vec();
    if let Some(addend) = without {
        let at = addend.stage - p.sum - 1;
        let is_sum = |sum: &Expr, _: &Expr| load(sum).is_some_and(|(b, _)| *b == stage.buffer);
        rest[at] = rest[at].with_value(Left(BinOp::Add, is_sum).expr(&rest[at].value));
    }
    let result = func.buffers().last()?.clone();
    // A copy of the sums is these.

    let mut target = stage.buffer.clone();
    if let [only] = &rest[..]
        && matches!(only.value.kind(), ExprKind::Load(b, at)
            if *b == stage.buffer && tilewright_ir::index::same_all(at, &only.indices))
        && only.buffer == result
        && only.covers_buffer().is_some()
    {
        rest.clear();
        target = result.clone();
    }
    let sums = with_type(&stage.buffer, "sums", DType::I32);
    let shape = dim::of_shape(&stage.buffer.shape)?;
    let iters = cells("v", &shape);
    let at = at(&iters);
    let mut value = sums.load(at.clone()).cast(DType::F32);
    let mut params = vec![sums];
    for (k, axis) in factors.iter().enumerate() {
        let extents = match axis {
            Some(d) => vec![shape[*d].number()?],
            None => Vec::new(),
        };
        let factor = Buffer::with_extents(format!("factor_{k}"), &extents, DType::F32);
        value = value * factor.load(axis.map(|d| at[d].clone()));
        params.push(factor);
    }
    let new = Stage::build("rescaled", &iters, &target, at, value, None);
    let mut body = vec![fresh(&new)];
    body.extend(rest.iter().map(|s| s.stmt.clone()));
    let (kept, given) = kept(func, |b| rest.iter().any(|s| s.loads().iter().any(|l| l.0 == *b)))?;
    params.extend(given);
    params.push(result.clone());
    let pads: Vec<&Buffer> =
        p.operands.iter().filter(|o| o.pad.is_some()).map(|o| &o.buffer).collect();
    let (allocs, _) = func.root_parts();
    let allocs = allocs
        .iter()
        .filter(|b| !pads.contains(b) && (**b != stage.buffer || target == stage.buffer))
        .cloned()
        .collect();
    Some((function(func, &params, allocs, body), kept, rest.is_empty()))
}

/// A function that only selects elements, on integers.
pub(super) fn on_integers(func: &TensorFunc, dtype: DType) -> TensorFunc {
    struct Integers {
        dtype: DType,
        buffers: HashMap<Buffer, Buffer>,
    }
    impl Integers {
        fn buffer(&mut self, b: &Buffer) -> Buffer {
            let dtype = self.dtype;
            self.buffers.entry(b.clone()).or_insert_with(|| with_type(b, &b.name, dtype)).clone()
        }
    }
    impl Fold for Integers {
        fn buffer_use(&mut self, b: &Buffer) -> Buffer {
            self.buffer(b)
        }

        fn expr(&mut self, e: &Expr) -> Expr {
            if is_least(e) {
                Expr::int(self.dtype.min_int().unwrap_or(0) as i64, self.dtype)
            } else {
                // Every selection has the type of what is selected.
                visit::fold_expr_children(self, e)
            }
        }
    }
    let mut fold = Integers { dtype, buffers: HashMap::default() };
    let stages = tilewright_analysis::open_stages(func).unwrap_or_default();
    let body = stages
        .iter()
        .map(|s| {
            let to = fold.buffer(&s.buffer);
            let (value, init) = (fold.expr(&s.value), s.init.as_ref().map(|e| fold.expr(e)));
            fresh(&stored(s, &to, value, init))
        })
        .collect();
    let params: Vec<Buffer> = func.buffers().map(|b| fold.buffer(b)).collect();
    let (allocs, _) = func.root_parts();
    let allocs = allocs.iter().map(|b| fold.buffer(b)).collect();
    function(func, &params, allocs, body)
}

/// `(x - zero) * scale` in `float32`, with one scale, or a list along an axis. Parameters: `x`, the
/// scale, the zero point if there is one, the result. `func` is what gives the result.
pub(super) fn dequantised(
    func: &TensorFunc,
    dtype: DType,
    zero: bool,
    axis: Option<usize>,
) -> Option<TensorFunc> {
    let of = func.buffers().last()?;
    let x = with_type(of, "x", dtype);
    let out = with_type(of, "numbers", DType::F32);
    let extents: Vec<i64> = match axis {
        Some(d) => vec![*of.const_shape()?.get(d)?],
        None => Vec::new(),
    };
    let scale = Buffer::with_extents("scale", &extents, DType::F32);
    let zero = zero.then(|| Buffer::with_extents("zero_point", &extents, dtype));
    let iters = cells("v", &dim::of_shape(&of.shape)?);
    let at = at(&iters);
    let value = zero.iter().fold(x.load(at.clone()).cast(DType::I32), |v, z| {
        v - own_value(z, axis, &at).cast(DType::I32)
    });
    let value = value.cast(DType::F32) * own_value(&scale, axis, &at);
    let stage = Stage::build("dequantised", &iters, &out, at.clone(), value, None);
    let params: Vec<Buffer> = [x, scale].into_iter().chain(zero).chain([out]).collect();
    Some(function(func, &params, Vec::new(), vec![fresh(&stage)]))
}

fn own_value(b: &Buffer, axis: Option<usize>, at: &[Expr]) -> Expr {
    b.load(axis.map(|d| at[d].clone()))
}
