//! Tensors from nothing but parameters. The functions have one parameter, the result.

use tilewright_ir::dim::Integer;
use tilewright_ir::{DType, Dim, Error, Expr, Result, TensorFunc};

use crate::operand::{Scalar, require_number, working};
use crate::te::{self, Stage, Tensor};

const NONE: [Tensor; 0] = [];

/// One value everywhere.
pub fn full<D: Into<Dim> + Copy>(shape: &[D], value: Scalar, dtype: DType) -> Result<TensorFunc> {
    let out = te::compute("full", shape, |_| value.expr(dtype));
    te::func(NONE, [&out])
}

/// `start, start + delta, ...`: `count` numbers.
pub fn range(
    start: Scalar,
    delta: Scalar,
    count: impl Into<Dim>,
    dtype: DType,
) -> Result<TensorFunc> {
    require_number("range", dtype)?;
    let work = working(dtype);
    let out = te::compute("range", &[count.into()], |i| {
        (i[0].clone().cast(work) * delta.expr(work) + start.expr(work)).cast(dtype)
    });
    te::func(NONE, [&out])
}

/// The `k`-th diagonal of a matrix; those outside of it are all alike.
pub(crate) fn diagonal(k: i64, rows: Dim, cols: Dim) -> i64 {
    k.clamp(-edge_of(rows), edge_of(cols))
}

fn edge_of(n: Dim) -> i64 {
    n.known().map_or(1 << 30, |n| i64::try_from(n).unwrap_or(i64::MAX))
}

/// Ones at `[i, i + k]`, zeros elsewhere.
pub fn eye(rows: impl Into<Dim>, cols: impl Into<Dim>, k: i64, dtype: DType) -> Result<TensorFunc> {
    let (rows, cols) = (rows.into(), cols.into());
    let k = diagonal(k, rows, cols);
    let out = te::compute("eye", &[rows, cols], |i| {
        let [one, zero] = [1, 0].map(|v| Scalar::Int(v).expr(dtype));
        Expr::select((&i[0] + k).equal(&i[1]), one, zero)
    });
    te::func(NONE, [&out])
}

/// Integers that are known but for open sizes, in row-major order, as a tensor.
///
/// # Errors
/// [`Error::Input`] where their number does not fit the shape.
pub fn integers(shape: &[usize], values: &[Integer], dtype: DType) -> Result<TensorFunc> {
    let name = "sizes";
    require_number(name, dtype)?;
    if shape.iter().product::<usize>() != values.len() {
        let count = values.len();
        return Err(Error::input(format!("{name}: {count} numbers for the shape {shape:?}")));
    }
    let out = te::stages(name, shape, dtype, |out| {
        let mut stages = Vec::with_capacity(values.len());
        for (at, value) in values.iter().enumerate() {
            let mut rest = at;
            let mut index: Vec<Expr> = Vec::with_capacity(shape.len());
            for &d in shape.iter().rev() {
                index.push(Expr::int((rest % d) as i64, DType::I32));
                rest /= d;
            }
            index.reverse();
            stages.push(Stage::new(out, [], index, value.long().cast(dtype)));
        }
        stages
    });
    te::func(NONE, [&out])
}
