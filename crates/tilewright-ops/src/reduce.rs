//! Axes that go: sums, extremes, their positions; and running sums.

use tilewright_ir::{BinOp, DType, Dim, Error, Expr, Intrin, Result, TensorFunc};

use crate::operand::{
    Operand, accumulator, call, normalize_axes, normalize_axis, positions, require_float,
    require_number, rounded, shared, snake, working,
};
use crate::te::{self, Axis, Reducer, Stage, Tensor};
pub use crate::top_k::top_k;

/// What becomes of the values along the axes that go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The largest; of `bool` whether any is true.
    Max,
    /// The smallest; of `bool` whether all are true.
    Min,
    /// Their product.
    Prod,
    /// Sum of magnitudes.
    L1,
    /// Square root of the sum of squares.
    L2,
    /// Sum of squares.
    SumSquare,
    /// Logarithm of the sum.
    LogSum,
    /// Logarithm of the sum of exponentials.
    LogSumExp,
}

/// Reduces over the axes, which may count from the end; none leaves every element on its own.
/// Parameters: `x`, the result, whose reduced axes are gone or (`keepdims`) have extent one.
/// `float32` is summed in `float64`.
pub fn reduce(op: Reduction, x: &Operand, axes: &[i64], keepdims: bool) -> Result<TensorFunc> {
    let name = format!("reduce_{}", snake(op));
    let dtype = x.dtype;
    match op {
        Reduction::Max | Reduction::Min if dtype.is_bool() => {}
        Reduction::LogSum | Reduction::LogSumExp => require_float(&name, dtype)?,
        _ => require_number(&name, dtype)?,
    }
    let axes = normalize_axes(&name, axes, x.rank())?;
    let count = positions(&x.shape, &axes);
    if op == Reduction::Mean && dtype.is_int() && count == 0 {
        return Err(Error::input(format!("{name}: {x} has no elements to take the mean of")));
    }
    let t = x.placeholder("x");
    let out = reduced(&name, op, &t, &axes, keepdims);
    te::func([&t], [&out])
}

/// A reduction as tensors: `name` is the result, and stages before it start with that name.
pub(crate) fn reduced(
    name: &str,
    op: Reduction,
    x: &Tensor,
    axes: &[usize],
    keepdims: bool,
) -> Tensor {
    let dtype = x.dtype();
    let exact = matches!(op, Reduction::Max | Reduction::Min);
    let summed = !exact && !matches!(op, Reduction::Prod | Reduction::LogSumExp);
    let work = match dtype {
        // Truth values are compared as bytes.
        DType::BOOL => DType::U8,
        // Long sums lose digits, and models take differences of them (a variance as the mean of
        // squares less the square of the mean).
        DType::F32 if summed => DType::F64,
        _ => working(dtype),
    };
    let acc_type = if exact && !dtype.is_bool() { dtype } else { work };
    let value = |i: &[Expr]| x.at(i).cast(acc_type);
    let count = positions(x.shape(), axes);
    let run = |name: String, reducer, f: &dyn Fn(&[Expr]) -> Expr| {
        fold(name, x.shape(), axes, keepdims, reducer, f)
    };

    let square = |i: &[Expr]| value(i) * value(i);
    let acc_name = if acc_type == dtype { name.to_owned() } else { accumulator_name(name) };
    match op {
        Reduction::Sum | Reduction::Max | Reduction::Min | Reduction::Prod => {
            let reducer = match op {
                Reduction::Sum => Reducer::Sum,
                Reduction::Max => Reducer::Max,
                Reduction::Min => Reducer::Min,
                _ => Reducer::Prod,
            };
            rounded(name, run(acc_name, reducer, &value), dtype)
        }
        Reduction::Mean => {
            let acc = run(accumulator_name(name), Reducer::Sum, &value);
            te::compute(name, acc.shape(), |i| {
                let sum = acc.at(i);
                let mean = if dtype.is_float() {
                    shared(sum, count)
                } else {
                    Expr::binary(BinOp::TruncDiv, sum, count.max(1).long().cast(dtype))
                };
                mean.cast(dtype)
            })
        }
        Reduction::SumSquare => rounded(name, run(acc_name, Reducer::Sum, &square), dtype),
        Reduction::L1 => rounded(
            name,
            run(acc_name, Reducer::Sum, &|i| match dtype.min_int() {
                Some(0) => value(i),
                _ => call(Intrin::Abs, value(i)),
            }),
            dtype,
        ),
        Reduction::L2 => {
            let root = if dtype.is_float() { work } else { DType::F64 };
            let acc = run(accumulator_name(name), Reducer::Sum, &square);
            te::compute(name, acc.shape(), |i| call(Intrin::Sqrt, acc.at(i).cast(root)).cast(dtype))
        }
        Reduction::LogSum => {
            let acc = run(accumulator_name(name), Reducer::Sum, &value);
            te::compute(name, acc.shape(), |i| call(Intrin::Log, acc.at(i)).cast(dtype))
        }
        Reduction::LogSumExp => {
            let top = run(format!("{name}_max"), Reducer::Max, &value);
            let sum = run(format!("{name}_sum"), Reducer::Sum, &|i| {
                call(
                    Intrin::Exp,
                    value(i) - finite_or_zero(top.at(kept_index(i, axes, keepdims)), work),
                )
            });
            te::compute(name, sum.shape(), |i| {
                (call(Intrin::Log, sum.at(i)) + finite_or_zero(top.at(i), work)).cast(dtype)
            })
        }
    }
}

fn accumulator_name(name: &str) -> String {
    format!("{name}_acc")
}

/// An infinite maximum would make the difference NaN.
fn finite_or_zero(e: Expr, work: DType) -> Expr {
    let finite = call(Intrin::IsFinite, e.clone());
    Expr::select(finite, e, Expr::float(0.0, work))
}

/// A stage that reduces `f` over some axes of a shape. `f` takes an index of that shape. The
/// axes go, or stay with extent one.
pub(crate) fn fold(
    name: impl Into<std::sync::Arc<str>>,
    shape: &[Dim],
    axes: &[usize],
    keepdims: bool,
    reducer: Reducer,
    f: impl Fn(&[Expr]) -> Expr,
) -> Tensor {
    let over: Vec<Axis> =
        axes.iter().map(|&a| te::reduce_axis(shape[a], format!("k{a}"))).collect();
    let outer = (0..shape.len()).filter(|a| keepdims || !axes.contains(a)).map(|a| {
        let extent = if axes.contains(&a) { Dim::from(1) } else { shape[a] };
        te::axis(extent, format!("i{a}"))
    });
    te::compute_over(name, outer, |i| {
        let mut kept = i.iter();
        let index: Vec<Expr> = (0..shape.len())
            .map(|a| {
                let at = axes.iter().position(|&b| b == a);
                let own = if keepdims || at.is_none() { kept.next() } else { None };
                // An axis that stays has an index in `i`.
                at.map(|k| over[k].expr()).or(own.cloned()).unwrap_or_else(|| Expr::i32(0))
            })
            .collect();
        te::reduce(reducer, f(&index), &over)
    })
}

/// The index, in what [`fold`] gives, of the element for the full index `i`.
pub(crate) fn kept_index(i: &[Expr], axes: &[usize], keepdims: bool) -> Vec<Expr> {
    i.iter()
        .enumerate()
        .filter_map(|(a, e)| match (axes.contains(&a), keepdims) {
            (false, _) => Some(e.clone()),
            (true, true) => Some(Expr::i32(0)),
            (true, false) => None,
        })
        .collect()
}

/// Which position [`arg_reduce`] looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arg {
    /// That of the largest value.
    Max,
    /// That of the smallest value.
    Min,
}

/// The position along an axis of the extreme value: the first such position, or the last. A
/// `NaN` counts as the extreme. Parameters: `x`, the `int64` result.
pub fn arg_reduce(
    op: Arg,
    x: &Operand,
    axis: i64,
    keepdims: bool,
    select_last: bool,
) -> Result<TensorFunc> {
    let name = format!("arg_{}", snake(op));
    require_number(&name, x.dtype)?;
    let axis = normalize_axis(&name, axis, x.rank())?;
    if x.shape[axis] == 0 {
        return Err(Error::input(format!("{name}: {x} has no elements along axis {axis}")));
    }
    let t = x.placeholder("x");
    let out = extreme_at(&name, op, &t, axis, keepdims, select_last);
    te::func([&t], [&out])
}

/// The `int64` position of an extreme, in stages: the extreme, then the first or last position that has it,
/// counted in `int32` where that counts the axis, since twice as many of these fit a vector.
pub(crate) fn extreme_at(
    name: &str,
    op: Arg,
    x: &Tensor,
    axis: usize,
    keepdims: bool,
    select_last: bool,
) -> Tensor {
    let reducer = match op {
        Arg::Max => Reducer::Max,
        Arg::Min => Reducer::Min,
    };
    let axes = [axis];
    let extreme = fold(format!("{name}_value"), x.shape(), &axes, keepdims, reducer, |i| x.at(i));
    let first_or_last = if select_last { Reducer::Max } else { Reducer::Min };
    let counted = if x.shape()[axis].fits_int32() { DType::I32 } else { DType::I64 };
    let stage = if counted == DType::I64 { name.to_owned() } else { format!("{name}_at") };
    let at = fold(stage, x.shape(), &axes, keepdims, first_or_last, |i| {
        let value = x.at(i);
        let mut found = value.clone().equal(extreme.at(kept_index(i, &axes, keepdims)));
        if x.dtype().is_float() {
            found = found.or(call(Intrin::IsNan, value));
        }
        Expr::select(found, i[axis].clone().cast(counted), first_or_last.identity(counted))
    });
    if counted == DType::I64 {
        return at;
    }
    te::compute(name, at.shape(), |i| at.at(i).cast(DType::I64))
}

/// Sums of the elements up to each position along an axis, from the end if `reverse`, without
/// the position's own element if `exclusive`. Parameters: `x`, the result of the same shape.
pub fn cumsum(x: &Operand, axis: i64, exclusive: bool, reverse: bool) -> Result<TensorFunc> {
    cumulative("cumsum", Reducer::Sum, x, axis, exclusive, reverse)
}

/// Products of the elements up to each position along an axis; all else as for [`cumsum`].
pub fn cumprod(x: &Operand, axis: i64, exclusive: bool, reverse: bool) -> Result<TensorFunc> {
    cumulative("cumprod", Reducer::Prod, x, axis, exclusive, reverse)
}

fn cumulative(
    name: &str,
    reducer: Reducer,
    x: &Operand,
    axis: i64,
    exclusive: bool,
    reverse: bool,
) -> Result<TensorFunc> {
    require_number(name, x.dtype)?;
    let axis = normalize_axis(name, axis, x.rank())?;
    let t = x.placeholder("x");
    let work = working(x.dtype);
    let acc = te::stages(accumulator(name, x.dtype), &x.shape, work, |out| {
        let axes = te::axes_along(&x.shape, |a| a == axis);
        // The position, and the one before it in the direction of the scan.
        let step = axes[axis].expr();
        let mut at: Vec<Expr> = axes.iter().map(Axis::expr).collect();
        let mut before = at.clone();
        if reverse {
            at[axis] = x.shape[axis].expr() - 1 - &step;
            before[axis] = &at[axis] + 1;
        } else {
            before[axis] = &step - 1;
        }
        let nothing = reducer.identity(work);
        let so_far = out.load(before.clone());
        let value = if exclusive {
            let all = reducer.combine(so_far, t.at(before).cast(work));
            Expr::if_then_else(step.greater(0), all, nothing)
        } else {
            let so_far = Expr::if_then_else(step.greater(0), so_far, nothing);
            reducer.combine(so_far, t.at(&at).cast(work))
        };
        vec![Stage::new(out, axes, at, value)]
    });
    te::func([&t], [&rounded(name, acc, x.dtype)])
}
