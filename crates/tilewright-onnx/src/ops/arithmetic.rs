//! Operators on elements: arithmetic, activations, comparisons, conversions.

use tilewright_ir::{DType, Dim, Error, Result, Tensor};
use tilewright_ops::check::Need;
use tilewright_ops::elementwise::{self, Binary, Unary, Variadic};
use tilewright_ops::{Operand, unequal_shapes};

use super::channels::each_channel;
use super::check::demand;
use super::narrow;
use super::one;
use super::value::{self, convert, scalar};
use crate::build::Builder;
use crate::data::Element;
use crate::imported::{Imported, operand};
use crate::node::{Node, required};
use crate::operator::{MANY, Operator, op, texts};
use crate::proto::DataType;

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[
    op("Abs", 7, 1, |n, b| unary(n, b, "abs", Unary::Abs)),
    op("Acos", 7, 1, |n, b| unary(n, b, "acos", Unary::Acos)),
    op("Acosh", 9, 1, |n, b| unary(n, b, "acosh", Unary::Acosh)),
    op("Add", 7, 2, |n, b| binary(n, b, "add", Binary::Add)),
    op("And", 7, 2, |n, b| binary(n, b, "and", Binary::And)),
    op("Asin", 7, 1, |n, b| unary(n, b, "asin", Unary::Asin)),
    op("Asinh", 9, 1, |n, b| unary(n, b, "asinh", Unary::Asinh)),
    op("Atan", 7, 1, |n, b| unary(n, b, "atan", Unary::Atan)),
    op("Atanh", 9, 1, |n, b| unary(n, b, "atanh", Unary::Atanh)),
    op("BitShift", 11, 2, bit_shift),
    op("BitwiseAnd", 18, 2, |n, b| binary(n, b, "bitwise_and", Binary::BitAnd)),
    op("BitwiseNot", 18, 1, |n, b| unary(n, b, "bitwise_not", Unary::BitNot)),
    op("BitwiseOr", 18, 2, |n, b| binary(n, b, "bitwise_or", Binary::BitOr)),
    op("BitwiseXor", 18, 2, |n, b| binary(n, b, "bitwise_xor", Binary::BitXor)),
    texts(op("Cast", 7, 1, cast)),
    op("CastLike", 15, 2, cast_like),
    op("Ceil", 7, 1, |n, b| unary(n, b, "ceil", Unary::Ceil)),
    op("Celu", 12, 1, |n, b| {
        with_floats(n, b, "celu", [("alpha", 1.0)], |[alpha]| Unary::Celu { alpha })
    }),
    op("Clip", 7, 3, clip),
    op("Cos", 7, 1, |n, b| unary(n, b, "cos", Unary::Cos)),
    op("Cosh", 9, 1, |n, b| unary(n, b, "cosh", Unary::Cosh)),
    op("Div", 7, 2, |n, b| division(n, b, "div", Binary::Div)),
    op("Dropout", 7, 3, dropout),
    op("Elu", 7, 1, |n, b| {
        with_floats(n, b, "elu", [("alpha", 1.0)], |[alpha]| Unary::Elu { alpha })
    }),
    op("Erf", 9, 1, |n, b| unary(n, b, "erf", Unary::Erf)),
    op("Exp", 7, 1, |n, b| unary(n, b, "exp", Unary::Exp)),
    op("Floor", 7, 1, |n, b| unary(n, b, "floor", Unary::Floor)),
    op("Gelu", 20, 1, gelu),
    op("Greater", 7, 2, |n, b| binary(n, b, "greater", Binary::Greater)),
    op("GreaterOrEqual", 12, 2, |n, b| binary(n, b, "greater_or_equal", Binary::GreaterEqual)),
    op("HardSigmoid", 7, 1, |n, b| {
        let floats = [("alpha", 0.2), ("beta", 0.5)];
        with_floats(n, b, "hard_sigmoid", floats, |[alpha, beta]| Unary::HardSigmoid {
            alpha,
            beta,
        })
    }),
    op("HardSwish", 14, 1, |n, b| unary(n, b, "hard_swish", Unary::HardSwish)),
    op("IsInf", 10, 1, is_inf),
    op("IsNaN", 9, 1, |n, b| unary(n, b, "is_nan", Unary::IsNan)),
    op("LeakyRelu", 7, 1, |n, b| {
        with_floats(n, b, "leaky_relu", [("alpha", 0.01)], |[alpha]| Unary::LeakyRelu { alpha })
    }),
    op("Less", 7, 2, |n, b| binary(n, b, "less", Binary::Less)),
    op("LessOrEqual", 12, 2, |n, b| binary(n, b, "less_or_equal", Binary::LessEqual)),
    op("Log", 7, 1, |n, b| unary(n, b, "log", Unary::Log)),
    op("Max", 7, MANY, |n, b| variadic(n, b, "max", Variadic::Max)),
    op("Mean", 7, MANY, |n, b| variadic(n, b, "mean", Variadic::Mean)),
    op("Min", 7, MANY, |n, b| variadic(n, b, "min", Variadic::Min)),
    op("Mish", 18, 1, |n, b| unary(n, b, "mish", Unary::Mish)),
    op("Mod", 10, 2, modulo),
    op("Mul", 7, 2, |n, b| binary(n, b, "mul", Binary::Mul)),
    op("Neg", 7, 1, |n, b| unary(n, b, "neg", Unary::Neg)),
    op("Not", 1, 1, |n, b| unary(n, b, "not", Unary::Not)),
    op("Or", 7, 2, |n, b| binary(n, b, "or", Binary::Or)),
    op("PRelu", 7, 2, |n, b| binary(n, b, "prelu", Binary::PRelu)),
    op("Pow", 7, 2, pow),
    op("Reciprocal", 7, 1, |n, b| unary(n, b, "reciprocal", Unary::Reciprocal)),
    op("Relu", 7, 1, |n, b| unary(n, b, "relu", Unary::Relu)),
    op("Round", 11, 1, |n, b| unary(n, b, "round", Unary::Round)),
    op("Selu", 7, 1, |n, b| {
        // The specification gives the defaults with this many digits, as float32.
        let floats = [("alpha", 1.673_263_2), ("gamma", 1.050_701)];
        with_floats(n, b, "selu", floats, |[alpha, gamma]| Unary::Selu { alpha, gamma })
    }),
    op("Shrink", 9, 1, |n, b| {
        let floats = [("lambd", 0.5), ("bias", 0.0)];
        with_floats(n, b, "shrink", floats, |[lambd, bias]| Unary::Shrink { lambd, bias })
    }),
    op("Sigmoid", 7, 1, |n, b| unary(n, b, "sigmoid", Unary::Sigmoid)),
    op("Sign", 9, 1, |n, b| unary(n, b, "sign", Unary::Sign)),
    op("Sin", 7, 1, |n, b| unary(n, b, "sin", Unary::Sin)),
    op("Sinh", 9, 1, |n, b| unary(n, b, "sinh", Unary::Sinh)),
    op("Softplus", 7, 1, |n, b| unary(n, b, "softplus", Unary::Softplus)),
    op("Softsign", 7, 1, |n, b| unary(n, b, "softsign", Unary::Softsign)),
    op("Sqrt", 7, 1, |n, b| unary(n, b, "sqrt", Unary::Sqrt)),
    op("Sub", 7, 2, |n, b| binary(n, b, "sub", Binary::Sub)),
    op("Sum", 7, MANY, |n, b| variadic(n, b, "sum", Variadic::Sum)),
    op("SwiGLU", 28, 2, swiglu),
    op("Swish", 24, 1, |n, b| {
        with_floats(n, b, "swish", [("alpha", 1.0)], |[alpha]| Unary::Swish { alpha })
    }),
    op("Tan", 7, 1, |n, b| unary(n, b, "tan", Unary::Tan)),
    op("Tanh", 7, 1, |n, b| unary(n, b, "tanh", Unary::Tanh)),
    op("ThresholdedRelu", 10, 1, |n, b| {
        let floats = [("alpha", 1.0)];
        with_floats(n, b, "thresholded_relu", floats, |[alpha]| Unary::ThresholdedRelu { alpha })
    }),
    op("Where", 9, 3, select),
    op("Xor", 7, 2, |n, b| binary(n, b, "xor", Binary::Xor)),
];

/// Operands that one function combines at most, so that expressions stay shallow.
const COMBINED: usize = 64;

/// Calls a function of one operand.
pub(crate) fn apply(
    b: &mut Builder,
    base: &'static str,
    op: Unary,
    x: &Imported,
) -> Result<Imported> {
    b.call_on(base, [x], op, |[x]| elementwise::unary(op, x))
}

/// Calls a function of two operands.
pub(crate) fn combine(
    b: &mut Builder,
    base: &'static str,
    op: Binary,
    x: &Imported,
    y: &Imported,
) -> Result<Imported> {
    let (x, y) = b.fitted(x, y);
    b.call_on(base, [&x, &y], op, |[x, y]| elementwise::binary(op, x, y))
}

/// An operator of one operand without attributes.
pub(crate) fn unary(
    node: &Node,
    b: &mut Builder,
    base: &'static str,
    op: Unary,
) -> Result<Vec<Imported>> {
    if matches!(op, Unary::Abs | Unary::HardSwish | Unary::Neg | Unary::Relu | Unary::Tanh) {
        return each_channel(node, b, |c, x| apply(c.b, base, op, x));
    }
    one(apply(b, base, op, node.input(0)?)?)
}

/// An operator of two operands without attributes.
pub(crate) fn binary(
    node: &Node,
    b: &mut Builder,
    base: &'static str,
    op: Binary,
) -> Result<Vec<Imported>> {
    one(combine(b, base, op, node.input(0)?, node.input(1)?)?)
}

/// An operator of any number of operands.
pub(crate) fn variadic(
    node: &Node,
    b: &mut Builder,
    base: &'static str,
    op: Variadic,
) -> Result<Vec<Imported>> {
    let inputs = node.all_inputs()?;
    if inputs.is_empty() {
        return Err(Error::model("there are no inputs"));
    }
    if inputs.len() > COMBINED && op == Variadic::Mean {
        return Err(Error::unsupported(format!(
            "the mean of {} inputs is not supported; of {COMBINED} it is",
            inputs.len()
        )));
    }
    let mut rest = inputs.into_iter();
    let mut group: Vec<Imported> = rest.by_ref().take(COMBINED).collect();
    loop {
        let value = if let ([x], true) = (group.as_slice(), op != Variadic::Mean) {
            // One operand comes back as it is, once its type is known to fit.
            let of = operand(x);
            elementwise::variadic(op, std::slice::from_ref(&of))?;
            x.clone()
        } else {
            let of: Vec<Operand> = group.iter().map(operand).collect();
            b.call(base, &(op, &of), &group, || elementwise::variadic(op, &of))?
        };
        group = vec![value.clone()];
        group.extend(rest.by_ref().take(COMBINED - 1));
        if group.len() == 1 {
            return one(value);
        }
    }
}

/// An operator of one operand with attributes that are numbers, each with its default.
fn with_floats<const N: usize>(
    node: &Node,
    b: &mut Builder,
    base: &'static str,
    floats: [(&'static str, f32); N],
    of: fn([f64; N]) -> Unary,
) -> Result<Vec<Imported>> {
    let mut values = [0.0; N];
    for (value, (name, default)) in values.iter_mut().zip(floats) {
        *value = node.float_or(name, default)?.into();
    }
    unary(node, b, base, of(values))
}

/// The second input, gated by the first.
pub(crate) fn swiglu(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (gate, x) = (node.input(0)?, node.input(1)?);
    if gate.shape() != x.shape() {
        let error = Error::model(format!("{} and {} differ", operand(gate), operand(x)));
        return Err(unequal_shapes(error, &gate.shape(), &x.shape()));
    }
    let alpha = node.float_or("alpha", 1.0)?.into();
    let gate = apply(b, "swish", Unary::Swish { alpha }, gate)?;
    one(combine(b, "mul", Binary::Mul, &gate, x)?)
}

pub(crate) fn gelu(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let tanh = node.choice("approximate", "none", &[("none", false), ("tanh", true)])?;
    unary(node, b, "gelu", Unary::Gelu { tanh })
}

pub(crate) fn is_inf(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let negative = node.flag("detect_negative", true)?;
    let positive = node.flag("detect_positive", true)?;
    unary(node, b, "is_inf", Unary::IsInf { negative, positive })
}

/// Bounds are attributes before opset 11, inputs after it.
pub(crate) fn clip(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    if node.opset < 11 {
        let low = Some(node.float_or("min", f32::MIN)?.into());
        let high = Some(node.float_or("max", f32::MAX)?.into());
        return one(apply(b, "clip", Unary::Clip { low, high }, x)?);
    }
    let (low, high) = (node.optional(1), node.optional(2));
    for (bound, what) in [(low, "min"), (high, "max")] {
        if let Some(bound) = bound
            && (bound.shape().iter().any(|&d| d != 1) || bound.dtype() != x.dtype())
        {
            return Err(Error::model(format!(
                "the input `{what}` must be one {}, but is {}",
                x.dtype(),
                operand(bound)
            )));
        }
    }
    if [low, high].iter().flatten().all(|bound| bound.constant().is_some()) {
        return one(apply(
            b,
            "clip",
            Unary::Clip { low: scalar_bound(low), high: scalar_bound(high) },
            x,
        )?);
    }
    let mut value = x.clone();
    for (bound, base, op) in [(low, "max", Binary::Max), (high, "min", Binary::Min)] {
        if let Some(bound) = bound {
            // A bound may have axes of extent one: it must not add axes.
            let bound = value::reshape_to::<Dim>(b, bound, &[])?;
            value = combine(b, base, op, &value, &bound)?;
        }
    }
    one(value)
}

fn scalar_bound(bound: Option<&Imported>) -> Option<tilewright_ops::Scalar> {
    bound.and_then(Imported::constant).map(scalar)
}

/// A power known at import may be done by multiplication.
pub(crate) fn pow(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, y) = (node.input(0)?, node.input(1)?);
    if let Some(power) = y.constant()
        && power.len() == 1
        && power.shape().len() <= x.rank()
        && x.dtype().is_float()
    {
        return one(apply(b, "pow", Unary::PowConst(power.get_f64(0)), x)?);
    }
    one(combine(b, "pow", Binary::Pow, x, y)?)
}

/// A division; integers must not be divided by zero.
pub(crate) fn division(
    node: &Node,
    b: &mut Builder,
    base: &'static str,
    op: Binary,
) -> Result<Vec<Imported>> {
    let (x, y) = (node.input(0)?, node.input(1)?);
    // Where nothing is divided, the divisors do not matter.
    if !y.dtype().is_int() || x.shape().iter().any(|d| *d == 0) {
        return binary(node, b, base, op);
    }
    let y = demand(node, b, "divisor", y, &Need::NonZero)?;
    one(combine(b, base, op, x, &y)?)
}

pub(crate) fn modulo(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    if node.switch("fmod")? {
        division(node, b, "fmod", Binary::Fmod)
    } else {
        division(node, b, "mod", Binary::Mod)
    }
}

pub(crate) fn bit_shift(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (left, right) = (Binary::ShiftLeft, Binary::ShiftRight);
    let all = [("LEFT", ("shift_left", left)), ("RIGHT", ("shift_right", right))];
    let (base, op) = node.choice("direction", "", &all)?;
    binary(node, b, base, op)
}

pub(crate) fn select(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (c, x, y) = (node.input(0)?, node.input(1)?, node.input(2)?);
    if !c.dtype().is_bool() {
        return Err(Error::model(format!("the condition is {}, not bool", c.dtype())));
    }
    one(b.call_on("where", [c, x, y], (), |[c, x, y]| elementwise::where_(&c.shape, x, y))?)
}

pub(crate) fn cast(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    if let Ok(text @ (Imported::Text(_) | Imported::Chosen { .. })) = node.input(0) {
        node.ignore("saturate");
        return match node.int("to")? {
            Some(to) if to == DataType::String as i64 => one(text.clone()),
            _ => Err(Error::unsupported("strings as numbers are not supported")),
        };
    }
    let to = required(node.element("to", Element::from_number)?, "attribute `to`")?;
    let from = b.input_type(node, 0)?;
    one(narrow::cast(node, b, node.input(0)?, from, to)?)
}

pub(crate) fn cast_like(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (from, to) = (b.input_type(node, 0)?, b.input_type(node, 1)?);
    one(narrow::cast(node, b, node.input(0)?, from, to)?)
}

pub(crate) fn identity(node: &Node, _: &mut Builder) -> Result<Vec<Imported>> {
    one(node.input(0)?.clone())
}

/// Passes its input through, as it does outside of training; nothing was dropped.
pub(crate) fn dropout(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    if node.opset < 12 {
        node.ignore("ratio");
    } else {
        node.ignore("seed");
        let training = node.constant_scalar(2, "training_mode")?;
        if training.is_some_and(|t| t.get_f64(0) != 0.0) {
            // Training that drops nothing is no different.
            let ratio = node.constant_scalar(1, "ratio")?;
            if ratio.is_none_or(|t| t.get_f64(0) != 0.0) {
                return Err(Error::unsupported("training is not supported"));
            }
        }
    }
    let x = node.input(0)?.clone();
    if node.output_count() < 2 {
        return one(x);
    }
    let yes = Tensor::from_bytes(DType::BOOL, &[1], &[1])?;
    let mask = value::full(b, &x.shape(), &yes)?;
    // The mask was of the data's type at first.
    let of = if node.opset < 10 { x.dtype() } else { DType::BOOL };
    let mask = convert(b, &mask, of)?;
    Ok(vec![x, mask])
}
