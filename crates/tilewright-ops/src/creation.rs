//! Tensors from nothing but parameters. The functions have one parameter, the result.

use tilewright_ir::{DType, Expr, Result, TensorFunc};

use crate::operand::{Scalar, require_number, working};
use crate::te::{self, Tensor};

const NONE: [Tensor; 0] = [];

/// One value everywhere.
pub fn full(shape: &[usize], value: Scalar, dtype: DType) -> Result<TensorFunc> {
    let out = te::compute("full", shape, |_| value.expr(dtype));
    te::func(NONE, [&out])
}

/// `start, start + delta, ...`: `count` numbers.
pub fn range(start: Scalar, delta: Scalar, count: usize, dtype: DType) -> Result<TensorFunc> {
    require_number("range", dtype)?;
    let work = working(dtype);
    let out = te::compute("range", &[count], |i| {
        (i[0].clone().cast(work) * delta.expr(work) + start.expr(work)).cast(dtype)
    });
    te::func(NONE, [&out])
}

/// Ones at `[i, i + k]`, zeros elsewhere.
pub fn eye(rows: usize, cols: usize, k: i64, dtype: DType) -> Result<TensorFunc> {
    // Diagonals outside of the matrix are all alike.
    let edge = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let k = k.clamp(-edge(rows), edge(cols));
    let out = te::compute("eye", &[rows, cols], |i| {
        let [one, zero] = [1, 0].map(|v| Scalar::Int(v).expr(dtype));
        Expr::select((&i[0] + k).equal(&i[1]), one, zero)
    });
    te::func(NONE, [&out])
}
