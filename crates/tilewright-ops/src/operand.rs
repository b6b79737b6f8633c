//! What operators have in common: operands, constants, axes and broadcasting.

use std::fmt;
use std::sync::Arc;

use tilewright_ir::dim::Fact;
use tilewright_ir::{DType, Dim, Error, Expr, Intrin, Result, TensorFunc, dim};

use crate::te::{self, Tensor};

/// Shape and element type of an operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Operand {
    /// Extents, outermost first.
    pub shape: Vec<Dim>,
    /// Element type.
    pub dtype: DType,
}

impl Operand {
    /// An operand of this shape and type.
    pub fn new<D: Into<Dim> + Copy>(shape: &[D], dtype: DType) -> Self {
        Operand { shape: te::dims(shape), dtype }
    }

    /// A `float32` operand.
    pub fn f32<D: Into<Dim> + Copy>(shape: &[D]) -> Self {
        Self::new(shape, DType::F32)
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// A te input of this shape and type.
    pub(crate) fn placeholder(&self, name: &str) -> Tensor {
        te::placeholder(name, &self.shape, self.dtype)
    }

    /// The extents, for an operator that needs numbers.
    pub(crate) fn fixed(&self, op: &str) -> Result<Vec<usize>> {
        dim::fixed(&self.shape, op)
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)
    }
}

/// A constant in an operator's parameters. It takes the type of the tensor that it meets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// An integer; one above `i64::MAX` by its bits.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// An open size.
    Size(Dim),
}

impl Scalar {
    /// The constant in a type: integers become floats exactly or rounded, floats are truncated
    /// and saturate, and anything but zero is true.
    pub fn expr(self, dtype: DType) -> Expr {
        match self {
            Scalar::Size(d) => d.long().cast(dtype),
            Scalar::Int(v) if dtype.is_float() => Expr::float(v as f64, dtype),
            Scalar::Int(v) => Expr::int(v, dtype),
            Scalar::Float(v) if dtype.is_float() => Expr::float(v, dtype),
            Scalar::Float(v) if dtype.is_bool() => Expr::bool(v != 0.0),
            Scalar::Float(v) => {
                let low = dtype.min_int().unwrap_or(0);
                let high = dtype.max_int().unwrap_or(0);
                Expr::int((v as i128).clamp(low, high) as i64, dtype)
            }
        }
    }
}

impl From<i64> for Scalar {
    fn from(v: i64) -> Self {
        Scalar::Int(v)
    }
}

impl From<f64> for Scalar {
    fn from(v: f64) -> Self {
        Scalar::Float(v)
    }
}

impl From<f32> for Scalar {
    fn from(v: f32) -> Self {
        Scalar::Float(f64::from(v))
    }
}

/// The position of an axis that may count from the end (-1 is the last one). An error names the
/// operator.
pub(crate) fn normalize_axis(op: &str, axis: i64, rank: usize) -> Result<usize> {
    let at = if axis < 0 { axis.saturating_add_unsigned(rank as u64) } else { axis };
    match usize::try_from(at) {
        Ok(at) if at < rank => Ok(at),
        _ => Err(Error::input(format!("{op}: there is no axis {axis} among {rank} axes"))),
    }
}

/// The positions of axes that may count from the end, sorted; an axis that comes twice is an
/// error.
pub(crate) fn normalize_axes(op: &str, axes: &[i64], rank: usize) -> Result<Vec<usize>> {
    let mut at: Vec<usize> =
        axes.iter().map(|&a| normalize_axis(op, a, rank)).collect::<Result<_>>()?;
    at.sort_unstable();
    match at.windows(2).find(|w| w[0] == w[1]) {
        Some(w) => Err(Error::input(format!("{op}: the axis {} comes twice", w[0]))),
        None => Ok(at),
    }
}

/// The shape that shapes broadcast to, after the rules of numpy: aligned at the last axis, and an
/// extent of one stretches. An error names the operator.
///
/// An open size fits itself and one. It also fits a size that is one wherever it has elements itself, as
/// `min(1, n)` is for `n`: what is cut off at the end of an axis that may be empty. Two other open sizes do
/// not fit.
pub fn broadcast_shapes<S: AsRef<[Dim]>>(op: &str, shapes: &[S]) -> Result<Vec<Dim>> {
    let rank = shapes.iter().map(|s| s.as_ref().len()).max().unwrap_or(0);
    let mut out = vec![Dim::from(1); rank];
    for s in shapes.iter().map(AsRef::as_ref) {
        for (o, &d) in out.iter_mut().skip(rank - s.len()).zip(s) {
            match *o {
                other if other == d || stretches(d, other) => {}
                one if stretches(one, d) => *o = d,
                other => {
                    let all: Vec<&[Dim]> = shapes.iter().map(AsRef::as_ref).collect();
                    let error =
                        Error::input(format!("{op}: the shapes {all:?} do not broadcast together"));
                    // What is at most one must be one, rather than as much as the other one.
                    let single = [other, d].into_iter().find(|s| Dim::from(1).at_least(*s));
                    return Err(unequal(error, [single.map_or((other, d), |s| (s, Dim::from(1)))]));
                }
            }
        }
    }
    Ok(out)
}

/// Whether an extent stretches to another one at all sizes: it is one, or both are zero.
fn stretches(one: Dim, to: Dim) -> bool {
    one == 1 || one.known().is_none() && Dim::from(1).at_least(one) && one.at_least(to.min(1))
}

/// Two sizes that would have to be equal: the cause of an error ([`Error::cause`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unequal(pub Dim, pub Dim);

/// The error for sizes that would have to be equal in pairs, of which one pair is not.
pub fn unequal(error: Error, pairs: impl IntoIterator<Item = (Dim, Dim)>) -> Error {
    match pairs.into_iter().find(|(a, b)| a != b) {
        Some((a, b)) => advice(error, &[a, b]).because(Unequal(a, b)),
        None => error,
    }
}

/// The error for shapes that would have to be equal, and are not.
pub fn unequal_shapes(error: Error, a: &[Dim], b: &[Dim]) -> Error {
    let fits = a.len() == b.len();
    unequal(error, a.iter().copied().zip(b.iter().copied()).filter(|_| fits))
}

/// Says how to make sizes known that are not equal as expressions, but may be equal as numbers.
pub fn advice(error: Error, sizes: &[Dim]) -> Error {
    let mut names: Vec<String> = Vec::new();
    for var in sizes.iter().flat_map(|d| d.vars()) {
        let flag = format!("--dim {}=SIZE", var.name());
        if !names.contains(&flag) {
            names.push(flag);
        }
    }
    if names.is_empty() {
        return error;
    }
    let mut help = format!("if they are equal, give the sizes: {}", names.join(" "));
    if let [a, b] = sizes
        && let Some(Fact::Within(v, least, most)) = Fact::of_equal(*a, *b, &|_| true)
    {
        help += &format!("; or the range in which they are: --dim {}={least}..{most}", v.name());
    }
    error.help(help)
}

/// The index into a tensor of shape `shape`, which broadcasts to `out`, at `i` in the latter.
pub(crate) fn broadcast_index<D, E>(shape: &[D], i: &[Expr], out: &[E]) -> Vec<Expr>
where
    D: Into<Dim> + Copy,
    E: Into<Dim> + Copy,
{
    let skip = out.len() - shape.len();
    let axes = shape.iter().zip(&out[skip..]).zip(&i[skip..]);
    axes.map(|((&d, &own), i)| if d.into() == own.into() { i.clone() } else { Expr::i32(0) })
        .collect()
}

/// The element of `t` at `i`, where `t`'s shape broadcasts to `out`.
pub(crate) fn at_broadcast(t: &Tensor, i: &[Expr], out: &[Dim]) -> Expr {
    t.at(broadcast_index(t.shape(), i, out))
}

/// A size as a number of a floating-point type.
pub(crate) fn float_size(d: Dim, dtype: DType) -> Expr {
    match d.known() {
        Some(d) => Expr::float(d as f64, dtype),
        None => d.expr().cast(dtype),
    }
}

/// The type in which an operator computes on `dtype`: `float32` for narrower floats.
pub(crate) fn working(dtype: DType) -> DType {
    if dtype.is_float() && dtype.bits < 32 { DType::F32 } else { dtype }
}

/// Name of the tensor in which a result of a type accumulates: the result itself, unless its type
/// is too narrow.
pub(crate) fn accumulator(name: &str, dtype: DType) -> String {
    if working(dtype) == dtype { name.to_owned() } else { format!("{name}_acc") }
}

/// The tensor in the type of the result: itself, or rounded by a stage of its own.
pub(crate) fn rounded(name: &str, t: Tensor, dtype: DType) -> Tensor {
    if t.dtype() == dtype { t } else { te::compute(name, t.shape(), |i| t.at(i).cast(dtype)) }
}

/// Refuses a type, naming the operator and what it takes.
pub(crate) fn unsupported_type(op: &str, dtype: DType, takes: &str) -> Error {
    Error::unsupported(format!("{op}: {dtype} is not supported")).help(format!("it takes {takes}"))
}

/// Number of positions along some axes of a shape; the largest number where it is larger.
pub(crate) fn positions(shape: &[Dim], axes: &[usize]) -> Dim {
    dim::product(axes.iter().map(|&a| shape[a]))
}

/// A float divided by a number of elements: a product with the reciprocal, which is one division for all of them.
pub(crate) fn shared(sum: Expr, count: Dim) -> Expr {
    match count.known() {
        Some(count) => sum * (1.0 / count as f64),
        None => {
            let work = sum.dtype();
            sum * (Expr::float(1.0, work) / count.expr().cast(work))
        }
    }
}

/// A size as an index.
pub(crate) fn int(n: impl Into<Dim>) -> Expr {
    n.into().expr()
}

/// A call of an intrinsic of one operand.
pub(crate) fn call(f: Intrin, e: Expr) -> Expr {
    Expr::intrin(f, vec![e])
}

/// The first of some operands, of which there must be one.
pub(crate) fn first<'a>(op: &str, operands: &'a [Operand]) -> Result<&'a Operand> {
    operands.first().ok_or_else(|| Error::input(format!("{op}: there is no operand")))
}

/// Inputs of these shapes and types, by their number.
pub(crate) fn placeholders(operands: &[Operand]) -> Vec<Tensor> {
    operands.iter().enumerate().map(|(k, x)| x.placeholder(&format!("x{k}"))).collect()
}

/// A function whose result is a value of each element.
pub(crate) fn pointwise(
    name: impl Into<Arc<str>>,
    x: &Operand,
    value: impl Fn(Expr) -> Expr,
) -> Result<TensorFunc> {
    let t = x.placeholder("x");
    let out = te::compute(name, &x.shape, |i| value(t.at(i)));
    te::func([&t], [&out])
}

/// Requires that the shape of zero points is that of one number, or of one for each of `count`
/// positions.
pub(crate) fn require_zero_point(
    op: &str,
    shape: Option<&[Dim]>,
    count: Dim,
    help: &str,
) -> Result<()> {
    match shape {
        Some(shape) if !shape.is_empty() && *shape != [1] && *shape != [count] => {
            Err(Error::unsupported(format!("{op}: a zero point of shape {shape:?}")).help(help))
        }
        _ => Ok(()),
    }
}

/// The zero point of one of `count` positions.
pub(crate) fn zero_at(zero: &Tensor, at: &Expr, count: Dim) -> Expr {
    zero.at(broadcast_index(zero.shape(), std::slice::from_ref(at), &[count]))
}

/// An integer less its zero point, if there is one, in `int32`.
pub(crate) fn centred(value: Expr, zero: &Option<Tensor>, at: &Expr, count: Dim) -> Expr {
    let value = value.cast(DType::I32);
    zero.iter().fold(value, |v, z| v - zero_at(z, at, count).cast(DType::I32))
}

/// Whether a value comes before another one in the order in which `NaN` is equal to itself, and comes after
/// all numbers.
pub(crate) fn before(a: Expr, b: Expr) -> Expr {
    let less = a.clone().less(b.clone());
    if a.dtype().is_float() {
        less.or(call(Intrin::IsNan, b).and(!call(Intrin::IsNan, a)))
    } else {
        less
    }
}

/// Requires a floating-point type.
pub(crate) fn require_float(op: &str, dtype: DType) -> Result<()> {
    if dtype.is_float() {
        Ok(())
    } else {
        Err(unsupported_type(op, dtype, "floating-point numbers"))
    }
}

/// Requires a number: integer or floating point.
pub(crate) fn require_number(op: &str, dtype: DType) -> Result<()> {
    if dtype.is_float() || dtype.is_int() {
        Ok(())
    } else {
        Err(unsupported_type(op, dtype, "integers and floating-point numbers"))
    }
}

/// Requires equal types.
pub(crate) fn require_same(op: &str, a: DType, b: DType) -> Result<()> {
    if a == b { Ok(()) } else { Err(Error::input(format!("{op}: the types {a} and {b} differ"))) }
}

/// The name of an operator from an enum's `Debug` text: `LeakyRelu { .. }` is `leaky_relu`.
pub(crate) fn snake(op: impl fmt::Debug) -> String {
    let text = format!("{op:?}");
    let word = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("op");
    let mut out = String::new();
    for c in word.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use tilewright_ir::Var;

    use super::*;

    #[test]
    fn shapes_broadcast_from_the_last_axis() {
        assert_eq!(broadcast_of(&[&[3, 1, 5], &[4, 1]]), Ok(vec![3, 4, 5]));
        assert_eq!(broadcast_of(&[&[], &[2], &[1]]), Ok(vec![2]));
        assert_eq!(broadcast_of(&[&[0], &[1]]), Ok(vec![0]));
        let refused = "add: the shapes [[2, 3], [3, 3]] do not broadcast together";
        assert_eq!(broadcast_of(&[&[2, 3], &[3, 3]]), Err(refused.to_owned()));
    }

    #[test]
    fn what_is_one_where_it_has_elements_stretches() {
        let [n, m] = ["n", "m"].map(|name| Dim::open(&Var::new(name, DType::I64)));
        let rows = n.floordiv(8);
        let last = [rows.min(1), m];
        assert_eq!(broadcast_shapes("add", &[&[rows, m][..], &last]).ok(), Some(vec![rows, m]));
        assert_eq!(broadcast_shapes("add", &[&last[..], &[rows, m]]).ok(), Some(vec![rows, m]));
        // `m` may have elements where `n // 8` is zero: then the last row must be there.
        let e = broadcast_shapes("add", &[&[m, m][..], &last]).expect_err("not at all sizes");
        assert_eq!(e.cause(), Some(&Unequal(rows.min(1), Dim::from(1))));
    }

    fn broadcast_of(s: &[&[usize]]) -> Result<Vec<usize>, String> {
        let shapes: Vec<Vec<Dim>> = s.iter().map(|s| te::dims(s)).collect();
        let shape = broadcast_shapes("add", &shapes).map_err(|e| e.to_string())?;
        Ok(dim::known(&shape).unwrap_or_default())
    }

    #[test]
    fn axes_count_from_either_end() {
        assert_eq!(normalize_axis("f", -1, 3).ok(), Some(2));
        assert_eq!(normalize_axes("f", &[-1, 0], 3).ok(), Some(vec![0, 2]));
        for bad in [3, -4, i64::MIN, i64::MAX] {
            let e = normalize_axis("f", bad, 3).map_err(|e| e.to_string());
            assert_eq!(e, Err(format!("f: there is no axis {bad} among 3 axes")));
        }
        let e = normalize_axes("f", &[1, -2], 3).map_err(|e| e.to_string());
        assert_eq!(e, Err("f: the axis 1 comes twice".to_owned()));
    }

    #[test]
    fn scalars_take_a_type() {
        assert_eq!(scalar_text(Scalar::Int(3), DType::F32), "T.float32(3.0)");
        assert_eq!(scalar_text(Scalar::Float(-3.9), DType::I32), "-3");
        assert_eq!(scalar_text(Scalar::Float(300.0), DType::U8), "T.uint8(255)");
        assert_eq!(scalar_text(Scalar::Float(0.5), DType::BOOL), "T.bool(True)");
        assert_eq!(scalar_text(Scalar::Int(-1), DType::U64), "T.uint64(18446744073709551615)");
    }

    fn scalar_text(s: Scalar, d: DType) -> String {
        s.expr(d).to_string()
    }

    #[test]
    fn names_of_operators() {
        #[derive(Debug)]
        enum Op {
            Relu,
            #[allow(dead_code)]
            LeakyRelu {
                alpha: f64,
            },
        }
        assert_eq!(snake(Op::Relu), "relu");
        assert_eq!(snake(Op::LeakyRelu { alpha: 0.5 }), "leaky_relu");
    }
}
