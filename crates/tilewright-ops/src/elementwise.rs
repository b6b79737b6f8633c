//! One element of the result from one element of each operand.

use tilewright_ir::{BinOp, DType, Dim, Error, Expr, Intrin, Result, TensorFunc, TypeKind};

use crate::operand::{
    Operand, Scalar, at_broadcast, broadcast_shapes, call, first, placeholders, pointwise,
    require_float, require_number, require_same, snake, unequal_shapes, unsupported_type, working,
};
use crate::te;

/// Operators of one operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unary {
    /// The operand itself.
    Identity,
    /// `max(x, 0)`.
    Relu,
    /// `x` where it is not negative, else `alpha * x`.
    LeakyRelu {
        /// Slope below zero.
        alpha: f64,
    },
    /// `x` where it is above `alpha`, else 0.
    ThresholdedRelu {
        /// The threshold.
        alpha: f64,
    },
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `max(0, min(1, alpha * x + beta))`.
    HardSigmoid {
        /// Slope.
        alpha: f64,
        /// Value at zero.
        beta: f64,
    },
    /// `x * max(0, min(1, x / 6 + 1/2))`.
    HardSwish,
    /// `x * sigmoid(alpha * x)`.
    Swish {
        /// Factor inside of the sigmoid.
        alpha: f64,
    },
    /// `x * tanh(softplus(x))`.
    Mish,
    /// `log(1 + exp(x))`.
    Softplus,
    /// `x / (1 + |x|)`.
    Softsign,
    /// `x` where it is not negative, else `alpha * (exp(x) - 1)`.
    Elu {
        /// Minus the limit at minus infinity.
        alpha: f64,
    },
    /// `gamma * x` where `x` is positive, else `gamma * alpha * (exp(x) - 1)`.
    Selu {
        /// Factor below zero.
        alpha: f64,
        /// Factor everywhere.
        gamma: f64,
    },
    /// `max(0, x) + min(0, alpha * (exp(x / alpha) - 1))`.
    Celu {
        /// Minus the limit at minus infinity.
        alpha: f64,
    },
    /// `x * Phi(x)` with the distribution function of the normal distribution.
    Gelu {
        /// Whether to approximate by `tanh`.
        tanh: bool,
    },
    /// `min(max(x, low), high)`, with the bounds that are given. `NaN` stays.
    Clip {
        /// Lower bound.
        low: Option<Scalar>,
        /// Upper bound; it wins over the lower one.
        high: Option<Scalar>,
    },
    /// `x + bias` below `-lambd`, `x - bias` above `lambd`, 0 between.
    Shrink {
        /// The threshold.
        lambd: f64,
        /// What moves towards zero.
        bias: f64,
    },
    /// `x` to a constant power.
    PowConst(f64),
    /// Hyperbolic tangent.
    Tanh,
    /// e to the power x.
    Exp,
    /// Natural logarithm.
    Log,
    /// Square root.
    Sqrt,
    /// `1 / x`.
    Reciprocal,
    /// `-x`.
    Neg,
    /// Magnitude.
    Abs,
    /// -1, 0 or 1; `NaN` of `NaN`.
    Sign,
    /// Gauss error function.
    Erf,
    /// Largest integral value not above.
    Floor,
    /// Smallest integral value not below.
    Ceil,
    /// Nearest integral value, ties to even.
    Round,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// Tangent.
    Tan,
    /// Arc sine.
    Asin,
    /// Arc cosine.
    Acos,
    /// Arc tangent.
    Atan,
    /// Hyperbolic sine.
    Sinh,
    /// Hyperbolic cosine.
    Cosh,
    /// Inverse hyperbolic sine.
    Asinh,
    /// Inverse hyperbolic cosine.
    Acosh,
    /// Inverse hyperbolic tangent.
    Atanh,
    /// Negation of `bool`.
    Not,
    /// Bitwise complement of integers.
    BitNot,
    /// Whether `NaN`; gives `bool`.
    IsNan,
    /// Whether infinite, of the signs that are asked for; gives `bool`.
    IsInf {
        /// Whether minus infinity counts.
        negative: bool,
        /// Whether infinity counts.
        positive: bool,
    },
}

/// `out = op(x)`. Parameters: `x`, the result of the same shape.
///
/// Most operators take floats only; identity, relu, clip, abs, sign, neg and constant powers take
/// integers too (neg and relu signed ones), and the logical ones what their name says.
pub fn unary(op: Unary, x: &Operand) -> Result<TensorFunc> {
    check_unary(op, x.dtype)?;
    pointwise(snake(op), x, |e| apply_unary(op, e))
}

fn check_unary(op: Unary, dtype: DType) -> Result<()> {
    let name = snake(op);
    match op {
        Unary::Identity => Ok(()),
        Unary::Relu | Unary::Neg => check_signed(dtype, &name),
        Unary::Clip { .. } | Unary::Abs | Unary::Sign => require_number(&name, dtype),
        Unary::PowConst(p) if dtype.is_int() && (p < 0.0 || p.fract() != 0.0) => {
            Err(Error::unsupported(format!("{name}: {dtype} to the power {p}"))
                .help("integers take powers that are integral and not negative"))
        }
        Unary::PowConst(_) => require_number(&name, dtype),
        Unary::Not if dtype != DType::BOOL => Err(unsupported_type(&name, dtype, "bool")),
        Unary::Not => Ok(()),
        Unary::BitNot if !dtype.is_int() => Err(unsupported_type(&name, dtype, "integers")),
        Unary::BitNot => Ok(()),
        _ => require_float(&name, dtype),
    }
}

fn check_signed(dtype: DType, name: &str) -> Result<()> {
    if dtype.kind == TypeKind::UInt {
        Err(unsupported_type(name, dtype, "signed numbers"))
    } else {
        require_number(name, dtype)
    }
}

/// A value, or `low` where it is negative.
fn where_negative(x: &Expr, low: Expr) -> Expr {
    Expr::select(x.clone().less(Expr::constant(0.0, x.dtype())), low, x.clone())
}

/// The operator on a value of a type that [`check_unary`] lets through.
pub(crate) fn apply_unary(op: Unary, value: Expr) -> Expr {
    let dtype = value.dtype();
    let work = working(dtype);
    let x = value.cast(work);

    let y = match op {
        Unary::Identity => x,
        Unary::Relu => x.max(Expr::constant(0.0, work)),
        Unary::LeakyRelu { alpha } => where_negative(&x, Expr::constant(alpha, work) * &x),
        Unary::ThresholdedRelu { alpha } => {
            Expr::select(x.clone().greater(alpha), x, Expr::constant(0.0, work))
        }
        Unary::Sigmoid => call(Intrin::Sigmoid, x),
        Unary::HardSigmoid { alpha, beta } => (x * alpha + beta).min(1.0).max(0.0),
        Unary::HardSwish => &x * (&x * (1.0 / 6.0) + 0.5).min(1.0).max(0.0),
        Unary::Swish { alpha: 1.0 } => &x * call(Intrin::Sigmoid, x.clone()),
        Unary::Swish { alpha } => &x * call(Intrin::Sigmoid, &x * alpha),
        Unary::Mish => &x * call(Intrin::Tanh, softplus(&x)),
        Unary::Softplus => softplus(&x),
        Unary::Softsign => &x / (call(Intrin::Abs, x.clone()) + 1.0),
        Unary::Elu { alpha } => where_negative(&x, (call(Intrin::Exp, x.clone()) - 1.0) * alpha),
        Unary::Selu { alpha, gamma } => {
            where_negative(&x, (call(Intrin::Exp, x.clone()) - 1.0) * alpha) * gamma
        }
        Unary::Celu { alpha } => {
            let low = (call(Intrin::Exp, &x / alpha) - 1.0) * alpha;
            x.max(0.0) + low.min(0.0)
        }
        Unary::Gelu { tanh: false } => {
            let erf = call(Intrin::Erf, &x * std::f64::consts::FRAC_1_SQRT_2);
            x * 0.5 * (erf + 1.0)
        }
        Unary::Gelu { tanh: true } => {
            let inner = (&x + &x * &x * &x * 0.044715) * (2.0 / std::f64::consts::PI).sqrt();
            x * 0.5 * (call(Intrin::Tanh, inner) + 1.0)
        }
        Unary::Clip { low, high } => {
            let x = low.iter().fold(x, |x, b| x.max(b.expr(work)));
            high.iter().fold(x, |x, b| x.min(b.expr(work)))
        }
        Unary::Shrink { lambd, bias } => {
            let high = Expr::select(x.clone().greater(lambd), &x - bias, Expr::constant(0.0, work));
            Expr::select(x.clone().less(-lambd), &x + bias, high)
        }
        Unary::PowConst(p) => pow_const(x, p),
        Unary::Tanh => call(Intrin::Tanh, x),
        Unary::Exp => call(Intrin::Exp, x),
        Unary::Log => call(Intrin::Log, x),
        Unary::Sqrt => call(Intrin::Sqrt, x),
        Unary::Reciprocal => Expr::constant(1.0, work) / x,
        Unary::Neg => -x,
        Unary::Abs if dtype.kind == TypeKind::UInt => x,
        Unary::Abs => call(Intrin::Abs, x),
        Unary::Sign => {
            let zero = Expr::constant(0.0, work);
            // Zero and NaN are their own signs.
            let low = match dtype.kind {
                TypeKind::UInt => x.clone(),
                _ => Expr::select(
                    x.clone().less(zero.clone()),
                    Expr::constant(-1.0, work),
                    x.clone(),
                ),
            };
            Expr::select(x.greater(zero), Expr::constant(1.0, work), low)
        }
        Unary::Erf => call(Intrin::Erf, x),
        Unary::Floor => call(Intrin::Floor, x),
        Unary::Ceil => call(Intrin::Ceil, x),
        Unary::Round => call(Intrin::NearbyInt, x),
        Unary::Sin => call(Intrin::Sin, x),
        Unary::Cos => call(Intrin::Cos, x),
        Unary::Tan => call(Intrin::Tan, x),
        Unary::Asin => call(Intrin::Asin, x),
        Unary::Acos => call(Intrin::Acos, x),
        Unary::Atan => call(Intrin::Atan, x),
        Unary::Sinh => call(Intrin::Sinh, x),
        Unary::Cosh => call(Intrin::Cosh, x),
        Unary::Asinh => call(Intrin::Asinh, x),
        Unary::Acosh => call(Intrin::Acosh, x),
        Unary::Atanh => call(Intrin::Atanh, x),
        Unary::Not => return !x,
        Unary::BitNot => call(Intrin::BitNot, x),
        Unary::IsNan => return call(Intrin::IsNan, x),
        Unary::IsInf { negative: true, positive: true } => return call(Intrin::IsInf, x),
        Unary::IsInf { negative, positive } => {
            return when_wanted(negative, f64::NEG_INFINITY, &x).or(when_wanted(
                positive,
                f64::INFINITY,
                &x,
            ));
        }
    };
    y.cast(dtype)
}

/// log(1 + exp(x)) without overflow.
fn softplus(x: &Expr) -> Expr {
    let tail = call(Intrin::Exp, -call(Intrin::Abs, x.clone()));
    x.clone().max(0.0) + call(Intrin::Log1p, tail)
}

fn when_wanted(wanted: bool, v: f64, x: &Expr) -> Expr {
    if wanted { x.clone().equal(v) } else { Expr::bool(false) }
}

/// `x` to a constant power, with multiplications and roots where they say the same.
pub(crate) fn pow_const(x: Expr, power: f64) -> Expr {
    match power {
        0.0 => Expr::constant(1.0, x.dtype()),
        0.5 => call(Intrin::Sqrt, x.clone()),
        1.0 => x,
        2.0 => &x * &x,
        3.0 => &x * &x * &x,
        -1.0 => Expr::constant(1.0, x.dtype()) / &x,
        -0.5 => Expr::constant(1.0, x.dtype()) / call(Intrin::Sqrt, x.clone()),
        _ => {
            let power = Expr::constant(power, x.dtype());
            Expr::intrin(Intrin::Pow, vec![x, power])
        }
    }
}

/// Conversion. Parameters: `x`, the result of the same shape and type `to`. Floats become
/// integers by truncation, and `bool` by comparison with zero.
pub fn cast(x: &Operand, to: DType) -> Result<TensorFunc> {
    pointwise("cast", x, |e| e.cast(to))
}

/// The bits of each element as one of another type of the same width, `bool` apart. Parameters:
/// `x`, the result of the same shape and type `to`.
///
/// # Errors
/// `Input` for types of different widths, and for `bool`.
pub fn reinterpret(x: &Operand, to: DType) -> Result<TensorFunc> {
    if x.dtype.bits != to.bits || !is_number(x.dtype) || !is_number(to) {
        return Err(Error::input(format!("reinterpret: the bits of {} are none of {to}", x.dtype)));
    }
    pointwise("reinterpret", x, |e| Expr::reinterpret(e, to))
}

fn is_number(d: DType) -> bool {
    d.is_int() || d.is_float()
}

/// Operators of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// `a * b`.
    Mul,
    /// `a / b`; of integers truncated towards zero.
    Div,
    /// `a` to the power `b`; the types may differ, and the result has that of `a`.
    Pow,
    /// The smaller; `NaN` if either is.
    Min,
    /// The larger; `NaN` if either is.
    Max,
    /// Remainder with the sign of `b`.
    Mod,
    /// Remainder with the sign of `a`.
    Fmod,
    /// `a == b`; gives `bool`.
    Equal,
    /// `a < b`; gives `bool`.
    Less,
    /// `a <= b`; gives `bool`.
    LessEqual,
    /// `a > b`; gives `bool`.
    Greater,
    /// `a >= b`; gives `bool`.
    GreaterEqual,
    /// Both, of `bool`.
    And,
    /// Either, of `bool`.
    Or,
    /// One of the two, of `bool`.
    Xor,
    /// Bitwise and of integers.
    BitAnd,
    /// Bitwise or of integers.
    BitOr,
    /// Bitwise exclusive or of integers.
    BitXor,
    /// `a` shifted left by `b`, of integers; by more bits than there are gives 0, and so does a
    /// negative `b`.
    ShiftLeft,
    /// `a` shifted right by `b`, of integers, with copies of the sign; by more bits than there
    /// are, or a negative number, leaves only those.
    ShiftRight,
    /// `a` where it is not negative, else `b * a`.
    PRelu,
}

/// `out = op(a, b)` with numpy's broadcasting. Parameters: `a`, `b`, the result.
pub fn binary(op: Binary, a: &Operand, b: &Operand) -> Result<TensorFunc> {
    let name = snake(op);
    check_binary(op, &name, a.dtype, b.dtype)?;
    let shape = broadcast_shapes(&name, &[&a.shape, &b.shape])?;
    if op == Binary::PRelu && shape != a.shape {
        let error = Error::input(format!(
            "{name}: a slope of shape {:?} does not broadcast to {:?}",
            b.shape, a.shape
        ));
        return Err(unequal_shapes(error, &shape, &a.shape));
    }
    let (x, y) = (a.placeholder("a"), b.placeholder("b"));
    let out = te::compute(name, &shape, |i| {
        apply_binary(op, at_broadcast(&x, i, &shape), at_broadcast(&y, i, &shape))
    });
    te::func([&x, &y], [&out])
}

fn check_binary(op: Binary, name: &str, a: DType, b: DType) -> Result<()> {
    use Binary::*;
    if op == Pow {
        require_number(name, a)?;
        return require_number(name, b);
    }
    require_same(name, a, b)?;
    match op {
        Equal => check_type(a.is_bool() || a.is_int() || a.is_float(), "numbers and bool", name, a),
        And | Or | Xor => check_type(a.is_bool(), "bool", name, a),
        BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight => {
            check_type(a.is_int(), "integers", name, a)
        }
        PRelu => check_type(a.kind != TypeKind::UInt && !a.is_bool(), "signed numbers", name, a),
        _ => require_number(name, a),
    }
}

fn check_type(holds: bool, takes: &str, name: &str, a: DType) -> Result<()> {
    if holds { Ok(()) } else { Err(unsupported_type(name, a, takes)) }
}

/// The operator on values of types that [`check_binary`] lets through.
fn apply_binary(op: Binary, a: Expr, b: Expr) -> Expr {
    let dtype = a.dtype();
    let node = |op: BinOp| Expr::binary(op, a.clone(), b.clone());

    match op {
        Binary::Add => node(BinOp::Add),
        Binary::Sub => node(BinOp::Sub),
        Binary::Mul => node(BinOp::Mul),
        Binary::Div if dtype.is_float() => node(BinOp::Div),
        Binary::Div => node(BinOp::TruncDiv),
        Binary::Pow => {
            // An integer to a fractional power is computed in floating point.
            let work =
                if dtype.is_int() && b.dtype().is_float() { DType::F64 } else { working(dtype) };
            Expr::intrin(Intrin::Pow, vec![a.cast(work), b.cast(work)]).cast(dtype)
        }
        Binary::Min => node(BinOp::Min),
        Binary::Max => node(BinOp::Max),
        Binary::Mod if dtype.is_float() => {
            let work = working(dtype);
            let (a, b) = (a.cast(work), b.cast(work));
            let rest = Expr::intrin(Intrin::Fmod, vec![a, b.clone()]);
            // The truncating remainder is off by one divisor where the signs differ.
            let differs = rest.clone().less(0.0).not_equal(b.clone().less(0.0));
            let moved = Expr::select(differs, &rest + &b, rest.clone());
            let nothing =
                Expr::select(b.less(0.0), -Expr::constant(0.0, work), Expr::constant(0.0, work));
            Expr::select(rest.equal(0.0), nothing, moved).cast(dtype)
        }
        Binary::Mod => node(BinOp::FloorMod),
        Binary::Fmod if dtype.is_float() => {
            let work = working(dtype);
            Expr::intrin(Intrin::Fmod, vec![a.cast(work), b.cast(work)]).cast(dtype)
        }
        Binary::Fmod => node(BinOp::TruncMod),
        Binary::Equal => node(BinOp::Eq),
        Binary::Less => node(BinOp::Lt),
        Binary::LessEqual => node(BinOp::Le),
        Binary::Greater => node(BinOp::Gt),
        Binary::GreaterEqual => node(BinOp::Ge),
        Binary::And => node(BinOp::And),
        Binary::Or => node(BinOp::Or),
        Binary::Xor => node(BinOp::Ne),
        Binary::BitAnd => Expr::intrin(Intrin::BitAnd, vec![a, b]),
        Binary::BitOr => Expr::intrin(Intrin::BitOr, vec![a, b]),
        Binary::BitXor => Expr::intrin(Intrin::BitXor, vec![a, b]),
        Binary::ShiftLeft | Binary::ShiftRight => {
            let bits = i64::from(dtype.bits);
            // A negative distance counts as a large one.
            let inside = b.clone().less(bits).and(b.clone().greater_equal(0));
            let zero = Expr::constant(0.0, dtype);
            let last = Expr::int(bits - 1, dtype);
            let by = Expr::select(inside.clone(), b.clone(), last);
            match op {
                Binary::ShiftLeft => {
                    Expr::select(inside, Expr::intrin(Intrin::Shl, vec![a.clone(), by]), zero)
                }
                _ if dtype.kind == TypeKind::UInt => {
                    Expr::select(inside, Expr::intrin(Intrin::Shr, vec![a.clone(), by]), zero)
                }
                _ => Expr::intrin(Intrin::Shr, vec![a.clone(), by]),
            }
        }
        Binary::PRelu => {
            let negative = a.clone().less(Expr::constant(0.0, dtype));
            Expr::select(negative, node(BinOp::Mul), a.clone())
        }
    }
}

/// Operators of any number of operands of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variadic {
    /// Their sum.
    Sum,
    /// Their mean; floats only.
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

/// All operands combined, with numpy's broadcasting. Parameters: the operands, the result.
pub fn variadic(op: Variadic, operands: &[Operand]) -> Result<TensorFunc> {
    let name = snake(op);
    let first = first(&name, operands)?;
    for x in operands {
        require_same(&name, first.dtype, x.dtype)?;
    }
    match op {
        Variadic::Mean => require_float(&name, first.dtype)?,
        _ => require_number(&name, first.dtype)?,
    }
    let shapes: Vec<&[Dim]> = operands.iter().map(|x| x.shape.as_slice()).collect();
    let shape = broadcast_shapes(&name, &shapes)?;
    let inputs = placeholders(operands);
    let work = match op {
        Variadic::Sum | Variadic::Mean => working(first.dtype),
        Variadic::Min | Variadic::Max => first.dtype,
    };
    let out = te::compute(name, &shape, |i| {
        let values = inputs.iter().map(|x| at_broadcast(x, i, &shape).cast(work));
        let combined = values.reduce(|a, b| match op {
            Variadic::Sum | Variadic::Mean => Expr::binary(BinOp::Add, a, b),
            Variadic::Min => Expr::binary(BinOp::Min, a, b),
            Variadic::Max => Expr::binary(BinOp::Max, a, b),
        });
        // There is an operand, so there is a value.
        let combined = combined.unwrap_or_else(|| Expr::constant(0.0, work));
        match op {
            Variadic::Mean => (combined * (1.0 / operands.len() as f64)).cast(first.dtype),
            _ => combined.cast(first.dtype),
        }
    });
    te::func(&inputs, [&out])
}

/// `out = c ? a : b` with numpy's broadcasting. Parameters: `c` (`bool`, of shape `cond`), `a`,
/// `b` (of one type), the result.
pub fn where_<D: Into<Dim> + Copy>(cond: &[D], a: &Operand, b: &Operand) -> Result<TensorFunc> {
    let cond = &te::dims(cond)[..];
    require_same("where", a.dtype, b.dtype)?;
    let shape = broadcast_shapes("where", &[cond, &a.shape[..], &b.shape])?;
    let c = te::placeholder("c", cond, DType::BOOL);
    let (x, y) = (a.placeholder("a"), b.placeholder("b"));
    let out = te::compute("where", &shape, |i| {
        Expr::select(
            at_broadcast(&c, i, &shape),
            at_broadcast(&x, i, &shape),
            at_broadcast(&y, i, &shape),
        )
    });
    te::func([&c, &x, &y], [&out])
}
