//! Linear quantisation: integers that stand for `(q - zero_point) * scale`.

use tilewright_ir::{DType, Dim, Error, Expr, Intrin, Result, TensorFunc, TypeKind};

use crate::contraction::Product;
use crate::operand::{
    Operand, call, centred, normalize_axis, require_float, require_zero_point, unsupported_type,
    working,
};
use crate::te;

/// Scale and zero point of a quantised tensor: one pair for all, or one for each position along
/// an axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Quantization {
    pub scale: DType,
    /// The axis with pairs of its own, which may count from the end; nothing for one pair.
    pub axis: Option<i64>,
    /// Whether there is a zero point; without, it is zero.
    pub zero_point: bool,
    /// Bits of the integers, where they have fewer than their type.
    pub bits: Option<u32>,
}

fn require_integer(op: &str, dtype: DType) -> Result<()> {
    if dtype.is_int() && dtype.bits <= 32 {
        Ok(())
    } else {
        Err(unsupported_type(op, dtype, "integers of up to 32 bits"))
    }
}

/// `round(x / scale) + zero_point`, ties to even, saturated to the integer type `to`. Parameters:
/// `x`, scale, the zero point (of type `to`) if there is one, the result.
pub fn quantize_linear(x: &Operand, q: &Quantization, to: DType) -> Result<TensorFunc> {
    let name = "quantize_linear";
    require_float(name, x.dtype)?;
    require_integer(name, to)?;
    if to.bits > 16 {
        return Err(unsupported_type(name, to, "integers of up to 16 bits"));
    }
    let work = working(x.dtype);
    let (low, high) = match q.bits {
        None => (te::lowest(to), te::highest(to)),
        Some(bits) if to.kind == TypeKind::Int => {
            let half = 1i64 << (bits - 1);
            (Expr::int(-half, to), Expr::int(half - 1, to))
        }
        Some(bits) => (Expr::int(0, to), Expr::int((1i64 << bits) - 1, to)),
    };
    scaled(name, x, q, Some(to), |x, scale, zero| {
        let value = call(Intrin::NearbyInt, x.cast(work) / scale.cast(work));
        let value = zero.into_iter().fold(value, |v, z| v + z.cast(work));
        value.max(low.clone().cast(work)).min(high.clone().cast(work)).cast(to)
    })
}

/// `x / scale`. Parameters: `x`, scale, the result, of the type of `x`. Where there is a zero point,
/// which is zero then and no parameter, adding it makes all zeros positive.
pub fn divide_by_scale(x: &Operand, q: &Quantization) -> Result<TensorFunc> {
    let name = "divide_by_scale";
    require_float(name, x.dtype)?;
    let work = working(x.dtype);
    scaled(name, x, q, None, |value, scale, _| {
        let ratio = value.cast(work) / scale.cast(work);
        let zero = Expr::constant(0.0, work);
        let ratio = if q.zero_point {
            Expr::select(ratio.clone().equal(zero.clone()), zero, ratio)
        } else {
            ratio
        };
        ratio.cast(x.dtype)
    })
}

/// `x * scale`. Parameters: `x`, scale, the result, of the scale's type.
pub fn multiply_by_scale(x: &Operand, q: &Quantization) -> Result<TensorFunc> {
    let name = "multiply_by_scale";
    require_float(name, x.dtype)?;
    let work = working(q.scale);
    scaled(name, x, q, None, |x, scale, _| (x.cast(work) * scale.cast(work)).cast(q.scale))
}

/// `(x - zero_point) * scale`, of the scale's type. Parameters: `x`, scale, the zero point (of
/// `x`'s type) if there is one, the result.
pub fn dequantize_linear(x: &Operand, q: &Quantization) -> Result<TensorFunc> {
    let name = "dequantize_linear";
    require_integer(name, x.dtype)?;
    let work = working(q.scale);
    scaled(name, x, q, Some(x.dtype), |x, scale, zero| {
        // The difference of two 16-bit numbers fits; 32-bit ones wrap, as in ONNX Runtime.
        let wide = x.cast(DType::I32);
        let value = zero.into_iter().fold(wide, |v, z| v - z.cast(DType::I32));
        (value.cast(work) * scale.cast(work)).cast(q.scale)
    })
}

/// A function of an element, its scale and its zero point, which is a parameter of some type where
/// there is one.
fn scaled(
    name: &str,
    x: &Operand,
    q: &Quantization,
    zero: Option<DType>,
    value: impl Fn(Expr, Expr, Option<Expr>) -> Expr,
) -> Result<TensorFunc> {
    require_float(name, q.scale)?;
    let axis = q.axis.map(|axis| normalize_axis(name, axis, x.rank())).transpose()?;
    let shape: Vec<Dim> = axis.map(|a| x.shape[a]).into_iter().collect();
    let t = x.placeholder("x");
    let scale = te::placeholder("scale", &shape, q.scale);
    let zero = zero.filter(|_| q.zero_point).map(|d| te::placeholder("zero_point", &shape, d));
    let out = te::compute(name, &x.shape, |i| {
        let along = axis.map(|a| i[a].clone());
        value(t.at(i), scale.at(along.clone()), zero.as_ref().map(|zero| zero.at(along)))
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
    if a.rank() < 2 || b.rank() < 2 {
        return Err(Error::unsupported(format!("{name}: {a} times {b}"))
            .help("both sides need two axes or more"));
    }
    let product = Product::new(name, a, b)?;
    let [m, n] = [product.rows, product.cols].map(|d| d.unwrap_or(Dim::from(1)));
    for (zero, count) in [(a_zero, m), (b_zero, n)] {
        require_zero_point(name, zero, count, "it is one number, or one for each row or column")?;
    }
    let (x, y) = (a.placeholder("a"), b.placeholder("b"));
    let x_zero = a_zero.map(|s| te::placeholder("a_zero_point", s, a.dtype));
    let y_zero = b_zero.map(|s| te::placeholder("b_zero_point", s, b.dtype));
    let first = Expr::i32(0);
    let out = product.sums(
        name.to_owned(),
        |at, row| centred(x.at(at), &x_zero, row.unwrap_or(&first), m),
        |at, col| centred(y.at(at), &y_zero, col.unwrap_or(&first), n),
    );
    te::func([x, y].into_iter().chain(x_zero).chain(y_zero), [&out])
}
