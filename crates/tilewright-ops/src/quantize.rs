//! Linear quantisation: integers that stand for `(q - zero_point) * scale`.

use tilewright_ir::{DType, Dim, Error, Expr, Intrin, Result, TensorFunc, TypeKind};

use crate::operand::{
    Operand, broadcast_index, broadcast_shapes, normalize_axis, require_float, unequal,
    unsupported_type, working,
};
use crate::te::{self, Reducer, Tensor};

/// Scale and zero point of a quantised tensor: one pair for all, or one for each position along
/// an axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Quantization {
    /// Type of the scale.
    pub scale: DType,
    /// The axis with pairs of its own, which may count from the end; nothing for one pair.
    pub axis: Option<i64>,
    /// Whether there is a zero point; without, it is zero.
    pub zero_point: bool,
    /// Bits of the integers, where they have fewer than their type.
    pub bits: Option<u32>,
}

impl Quantization {
    /// Shape of scale and zero point for a tensor, and the index into them.
    fn shape(&self, op: &str, x: &[Dim]) -> Result<(Vec<Dim>, Option<usize>)> {
        match self.axis {
            None => Ok((Vec::new(), None)),
            Some(axis) => {
                let axis = normalize_axis(op, axis, x.len())?;
                Ok((vec![x[axis]], Some(axis)))
            }
        }
    }
}

fn require_integer(op: &str, dtype: DType) -> Result<()> {
    match dtype.is_int() && dtype.bits <= 32 {
        true => Ok(()),
        false => Err(unsupported_type(op, dtype, "integers of up to 32 bits")),
    }
}

fn pick(t: &Tensor, axis: Option<usize>, i: &[Expr]) -> Expr {
    t.at(axis.map(|a| i[a].clone()))
}

/// `round(x / scale) + zero_point`, ties to even, saturated to the integer type `to`. Parameters:
/// `x`, scale, the zero point (of type `to`) if there is one, the result.
pub fn quantize_linear(x: &Operand, q: &Quantization, to: DType) -> Result<TensorFunc> {
    let name = "quantize_linear";
    require_float(name, x.dtype)?;
    require_float(name, q.scale)?;
    require_integer(name, to)?;
    if to.bits > 16 {
        return Err(unsupported_type(name, to, "integers of up to 16 bits"));
    }
    let (shape, axis) = q.shape(name, &x.shape)?;
    let t = x.placeholder("x");
    let scale = te::placeholder("scale", &shape, q.scale);
    let zero = q.zero_point.then(|| te::placeholder("zero_point", &shape, to));
    let work = working(x.dtype);
    let out = te::compute(name, &x.shape, |i| {
        let ratio = t.at(i).cast(work) / pick(&scale, axis, i).cast(work);
        let value = Expr::intrin(Intrin::NearbyInt, vec![ratio]);
        let value = zero.iter().fold(value, |v, z| v + pick(z, axis, i).cast(work));
        let (low, high) = match q.bits {
            None => (te::lowest(to), te::highest(to)),
            Some(bits) if to.kind == TypeKind::Int => {
                let half = 1i64 << (bits - 1);
                (Expr::int(-half, to), Expr::int(half - 1, to))
            }
            Some(bits) => (Expr::int(0, to), Expr::int((1i64 << bits) - 1, to)),
        };
        value.max(low.cast(work)).min(high.cast(work)).cast(to)
    });
    te::func([t, scale].into_iter().chain(zero), [&out])
}

/// `x / scale`. Parameters: `x`, scale, the result, of the type of `x`. Where there is a zero point,
/// which is zero then and no parameter, adding it makes all zeros positive.
pub fn divide_by_scale(x: &Operand, q: &Quantization) -> Result<TensorFunc> {
    scaled("divide_by_scale", x, q, x.dtype, |x, scale| {
        let ratio = x / scale;
        let zero = Expr::constant(0.0, ratio.dtype());
        match q.zero_point {
            true => Expr::select(ratio.clone().equal(zero.clone()), zero, ratio),
            false => ratio,
        }
    })
}

/// `x * scale`. Parameters: `x`, scale, the result, of the scale's type.
pub fn multiply_by_scale(x: &Operand, q: &Quantization) -> Result<TensorFunc> {
    scaled("multiply_by_scale", x, q, q.scale, |x, scale| x * scale)
}

fn scaled(
    name: &str,
    x: &Operand,
    q: &Quantization,
    to: DType,
    value: impl Fn(Expr, Expr) -> Expr,
) -> Result<TensorFunc> {
    require_float(name, x.dtype)?;
    require_float(name, q.scale)?;
    let (shape, axis) = q.shape(name, &x.shape)?;
    let t = x.placeholder("x");
    let scale = te::placeholder("scale", &shape, q.scale);
    let work = working(to);
    let out = te::compute(name, &x.shape, |i| {
        value(t.at(i).cast(work), pick(&scale, axis, i).cast(work)).cast(to)
    });
    te::func([t, scale], [&out])
}

/// `(x - zero_point) * scale`, of the scale's type. Parameters: `x`, scale, the zero point (of
/// `x`'s type) if there is one, the result.
pub fn dequantize_linear(x: &Operand, q: &Quantization) -> Result<TensorFunc> {
    let name = "dequantize_linear";
    require_integer(name, x.dtype)?;
    require_float(name, q.scale)?;
    let (shape, axis) = q.shape(name, &x.shape)?;
    let t = x.placeholder("x");
    let scale = te::placeholder("scale", &shape, q.scale);
    let zero = q.zero_point.then(|| te::placeholder("zero_point", &shape, x.dtype));
    let work = working(q.scale);
    let out = te::compute(name, &x.shape, |i| {
        // The difference of two 16-bit numbers fits; 32-bit ones wrap, as in ONNX Runtime.
        let wide = t.at(i).cast(DType::I32);
        let value = zero.iter().fold(wide, |v, z| v - pick(z, axis, i).cast(DType::I32));
        (value.cast(work) * pick(&scale, axis, i).cast(work)).cast(q.scale)
    });
    te::func([t, scale].into_iter().chain(zero), [&out])
}

/// The product of two matrices (or batches of them) of 8-bit integers less their zero points, in
/// `int32`. Parameters: `a`, `b`, the zero points that there are, the result. A zero point is one
/// number (shape `[]` or `[1]`), or one for each row of `a` or column of `b`.
pub fn matmul_integer(
    a: &Operand,
    b: &Operand,
    a_zero: Option<&[Dim]>,
    b_zero: Option<&[Dim]>,
) -> Result<TensorFunc> {
    let name = "matmul_integer";
    for x in [a, b] {
        if !matches!(x.dtype.kind, TypeKind::Int | TypeKind::UInt) || x.dtype.bits != 8 {
            return Err(unsupported_type(name, x.dtype, "int8 and uint8"));
        }
    }
    let ([a_batch @ .., m, k], [b_batch @ .., bk, n]) = (a.shape.as_slice(), b.shape.as_slice())
    else {
        return Err(Error::unsupported(format!("{name}: {a} times {b}"))
            .help("both sides need two axes or more"));
    };
    if k != bk {
        let error =
            Error::input(format!("{name}: {a} times {b}: the inner extents {k} and {bk} differ"));
        return Err(unequal(error, [(*k, *bk)]));
    }
    for (zero, count) in [(a_zero, m), (b_zero, n)] {
        if let Some(shape) = zero
            && !(shape.is_empty() || shape == [1])
            && shape != [*count]
        {
            return Err(Error::unsupported(format!("{name}: a zero point of shape {shape:?}"))
                .help("it is one number, or one for each row or column"));
        }
    }
    let batch = broadcast_shapes(name, &[a_batch, b_batch])?;
    let (x, y) = (a.placeholder("a"), b.placeholder("b"));
    let x_zero = a_zero.map(|s| te::placeholder("a_zero_point", s, a.dtype));
    let y_zero = b_zero.map(|s| te::placeholder("b_zero_point", s, b.dtype));
    let kaxis = te::reduce_axis(*k, "k");
    let axes = (0..).zip(&batch).map(|(n, &d)| te::axis(d, format!("b{n}")));
    let axes = axes.chain([te::axis(*m, "i"), te::axis(*n, "j")]);
    let out = te::compute_over(name, axes, |i| {
        let (outer, inner) = i.split_at(batch.len());
        let (row, col) = (&inner[0], &inner[1]);
        let wide = |value: Expr, zero: &Option<Tensor>, at: &Expr, count: Dim| {
            let value = value.cast(DType::I32);
            let Some(zero) = zero else { return value };
            let at = broadcast_index(zero.shape(), std::slice::from_ref(at), &[count]);
            value - zero.at(at).cast(DType::I32)
        };
        let xi = broadcast_index(a_batch, outer, &batch).into_iter();
        let yi = broadcast_index(b_batch, outer, &batch).into_iter();
        let xv = x.at(xi.chain([row.clone(), kaxis.expr()]));
        let yv = y.at(yi.chain([kaxis.expr(), col.clone()]));
        te::reduce(Reducer::Sum, wide(xv, &x_zero, row, *m) * wide(yv, &y_zero, col, *n), [&kaxis])
    });
    te::func([x, y].into_iter().chain(x_zero).chain(y_zero), [&out])
}
