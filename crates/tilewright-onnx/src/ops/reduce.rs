//! Reductions, positions of extremes, running sums.

use tilewright_ir::dim::Integer;
use tilewright_ir::{Error, Result, TensorFunc};
use tilewright_ops::Operand;
use tilewright_ops::reduce::{self, Arg, Reduction};

use super::one;
use crate::build::Builder;
use crate::imported::{Imported, operand};
use crate::node::{Node, axes, axis, required};
use crate::operator::{Operator, op};

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[
    op("ArgMax", 7, 1, |n, b| arg_reduce(n, b, "argmax", Arg::Max)),
    op("ArgMin", 7, 1, |n, b| arg_reduce(n, b, "argmin", Arg::Min)),
    op("CumProd", 26, 2, |n, b| cumulative(n, b, "cumprod", reduce::cumprod)),
    op("CumSum", 11, 2, |n, b| cumulative(n, b, "cumsum", reduce::cumsum)),
    op("ReduceL1", 7, 2, |n, b| reduce(n, b, "reduce_l1", Reduction::L1, 18)),
    op("ReduceL2", 7, 2, |n, b| reduce(n, b, "reduce_l2", Reduction::L2, 18)),
    op("ReduceLogSum", 7, 2, |n, b| reduce(n, b, "reduce_log_sum", Reduction::LogSum, 18)),
    op("ReduceLogSumExp", 7, 2, |n, b| {
        reduce(n, b, "reduce_log_sum_exp", Reduction::LogSumExp, 18)
    }),
    op("ReduceMax", 7, 2, |n, b| reduce(n, b, "reduce_max", Reduction::Max, 18)),
    op("ReduceMean", 7, 2, |n, b| reduce(n, b, "reduce_mean", Reduction::Mean, 18)),
    op("ReduceMin", 7, 2, |n, b| reduce(n, b, "reduce_min", Reduction::Min, 18)),
    op("ReduceProd", 7, 2, |n, b| reduce(n, b, "reduce_prod", Reduction::Prod, 18)),
    op("ReduceSum", 7, 2, |n, b| reduce(n, b, "reduce_sum", Reduction::Sum, 13)),
    op("ReduceSumSquare", 7, 2, |n, b| reduce(n, b, "reduce_sum_square", Reduction::SumSquare, 18)),
    op("TopK", 10, 2, top_k),
];

/// The axes are an attribute before the opset `inputs_from`, an input from then on.
pub(crate) fn reduce(
    node: &Node,
    b: &mut Builder,
    base: &'static str,
    op: Reduction,
    inputs_from: i64,
) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let keep = node.flag("keepdims", true)?;
    let given = node.axes(inputs_from)?;
    let none_is_none = node.opset >= inputs_from && node.flag("noop_with_empty_axes", false)?;
    let rank = x.rank();
    let over = match given {
        Some(list) if !list.is_empty() => axes(&list, rank)?,
        _ if none_is_none => Vec::new(),
        _ => (0..rank).collect(),
    };
    let over: Vec<i64> = over.into_iter().map(|a| a as i64).collect();
    one(b.call_on(base, [x], (op, &over, keep), |[x]| reduce::reduce(op, x, &over, keep))?)
}

pub(crate) fn arg_reduce(
    node: &Node,
    b: &mut Builder,
    base: &'static str,
    op: Arg,
) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let at = axis(node.int_or("axis", 0)?, x.rank())? as i64;
    let keep = node.flag("keepdims", true)?;
    let last = node.opset >= 12 && node.flag("select_last_index", false)?;
    one(b.call_on(base, [x], (op, at, keep, last), |[x]| {
        reduce::arg_reduce(op, x, at, keep, last)
    })?)
}

/// The number of elements is an input; the opsets before 11 know the largest only.
pub(crate) fn top_k(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let at = axis(node.int_or("axis", -1)?, x.rank())?;
    let extent = x.shape()[at];
    let count = required(node.integer(1, "K")?, "the input `K`")?.dim();
    let count = count.filter(|k| Integer::from(extent).is_less(*k) != Some(true));
    let count = count.ok_or_else(|| {
        Error::model(format!("the input `K` does not fit {} elements", x.shape()[at]))
    })?;
    let largest = node.opset < 11 || node.flag("largest", true)?;
    // Without an order asked for, any order will do.
    node.ignore("sorted");
    let (of, at) = (operand(x), at as i64);
    b.call_many("top_k", &(&of, at, count, largest), [x], || reduce::top_k(&of, at, count, largest))
}

/// A running sum or product.
pub(crate) fn cumulative(
    node: &Node,
    b: &mut Builder,
    base: &'static str,
    make: fn(&Operand, i64, bool, bool) -> Result<TensorFunc>,
) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let at = required(node.constant_int(1, "axis")?, "the input `axis`")?;
    let at = axis(at, x.rank())? as i64;
    let exclusive = node.flag("exclusive", false)?;
    let reverse = node.flag("reverse", false)?;
    one(b.call_on(base, [x], (at, exclusive, reverse), |[x]| make(x, at, exclusive, reverse))?)
}
