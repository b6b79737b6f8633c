//! What operators of `ai.onnx.ml` make of scores: probabilities, and the labels of classes.

use tilewright_ir::{DType, Dim, Error, Result, Tensor};

use super::compose::{Compose, int};
use super::value;
use crate::imported::Imported;
use crate::node::Node;
use crate::texts::Texts;

/// The attribute `post_transform`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transform {
    None,
    Softmax,
    Logistic,
    /// Softmax of the scores that are not zero; those stay about zero.
    SoftmaxZero,
    /// The quantile function of the normal distribution, as ONNX Runtime approximates it.
    Probit,
}

impl Transform {
    /// What a node says by a name.
    pub(crate) fn read(node: &Node) -> Result<Transform> {
        let all = [
            ("NONE", Transform::None),
            ("SOFTMAX", Transform::Softmax),
            ("LOGISTIC", Transform::Logistic),
            ("SOFTMAX_ZERO", Transform::SoftmaxZero),
            ("PROBIT", Transform::Probit),
        ];
        node.choice("post_transform", "NONE", &all)
    }

    /// What a node says by a number.
    pub(crate) fn numbered(node: &Node) -> Result<Transform> {
        let all = [
            Transform::None,
            Transform::Softmax,
            Transform::Logistic,
            Transform::SoftmaxZero,
            Transform::Probit,
        ];
        let at = node.int_or("post_transform", 0)?;
        let found = usize::try_from(at).ok().and_then(|at| all.get(at));
        found.copied().ok_or_else(|| node.unsupported_value("post_transform", at, "0 to 4"))
    }

    /// Of all scores `[N, C]` of a row.
    pub(crate) fn apply(self, c: &mut Compose, x: &Imported) -> Result<Imported> {
        match self {
            Transform::None => Ok(x.clone()),
            Transform::Softmax => c.with("Softmax", &[x], [int("axis", -1)]),
            Transform::Logistic => c.op("Sigmoid", &[x]),
            Transform::SoftmaxZero => softmax_zero(c, x),
            Transform::Probit => probit(c, x),
        }
    }

    /// Of the only score of a row: one number has no share of a sum, and is no logarithm of odds.
    pub(crate) fn apply_alone(self, c: &mut Compose, x: &Imported) -> Result<Imported> {
        match self {
            Transform::Probit => probit(c, x),
            _ => Ok(x.clone()),
        }
    }

    /// Of two classes, from the score `[N, 1]` of the second one; that of the first one is what is left of
    /// one, or for a score that is no `probability` its negative.
    pub(crate) fn both(
        self,
        c: &mut Compose,
        score: &Imported,
        probability: bool,
    ) -> Result<Imported> {
        let first = match (self, probability) {
            (Transform::Probit, _) => {
                return Err(Error::unsupported(
                    "`PROBIT` of one score for two classes is not supported",
                )
                .note("ONNX Runtime leaves the second score undefined"));
            }
            (Transform::Logistic, _) | (_, false) => c.op("Neg", &[score])?,
            (_, true) => {
                let unit = c.number(score.dtype(), 1.0)?;
                c.op("Sub", &[&unit, score])?
            }
        };
        let both = c.concat(&[&first, score], 1)?;
        match self {
            Transform::Logistic => c.op("Sigmoid", &[&both]),
            _ => Ok(both),
        }
    }
}

fn softmax_zero(c: &mut Compose, x: &Imported) -> Result<Imported> {
    let axis = x.rank().saturating_sub(1);
    let top = c.reduce("ReduceMax", x, &[axis], true)?;
    let shifted = c.op("Sub", &[x, &top])?;
    let share = c.op("Exp", &[&shifted])?;
    let least = c.number(x.dtype(), 1e-7)?;
    let size = c.op("Abs", &[x])?;
    let counts = c.op("Greater", &[&size, &least])?;
    let zero = c.number(x.dtype(), 0.0)?;
    let counted = c.op("Where", &[&counts, &share, &zero])?;
    let total = c.reduce("ReduceSum", &counted, &[axis], true)?;
    let below = c.op("Neg", &[&top])?;
    let factor = c.op("Exp", &[&below])?;
    let small = c.op("Mul", &[x, &factor])?;
    let all = c.op("Where", &[&counts, &share, &small])?;
    c.op("Div", &[&all, &total])
}

/// An operator on a value and a number.
fn with_number(c: &mut Compose, x: &Imported, op: &str, number: f64) -> Result<Imported> {
    let number = c.number(x.dtype(), number)?;
    c.op(op, &[x, &number])
}

/// `sqrt(2) * erfinv(2 * x - 1)` by Winitzki's approximation.
fn probit(c: &mut Compose, x: &Imported) -> Result<Imported> {
    const A: f64 = 0.147;
    let dtype = x.dtype();

    let twice = with_number(c, x, "Mul", 2.0)?;
    let at = with_number(c, &twice, "Sub", 1.0)?;
    let square = c.op("Mul", &[&at, &at])?;
    let rest = c.op("Neg", &[&square])?;
    let rest = with_number(c, &rest, "Add", 1.0)?;
    let log = c.op("Log", &[&rest])?;
    let half = with_number(c, &log, "Mul", 0.5)?;
    let v = with_number(c, &half, "Add", 2.0 / (std::f64::consts::PI * A))?;
    let w = with_number(c, &log, "Mul", 1.0 / A)?;
    let v2 = c.op("Mul", &[&v, &v])?;
    let under = c.op("Sub", &[&v2, &w])?;
    let root = c.op("Sqrt", &[&under])?;
    let inner = c.op("Sub", &[&root, &v])?;
    let size = c.op("Sqrt", &[&inner])?;
    let size = with_number(c, &size, "Mul", std::f64::consts::SQRT_2)?;
    let below = c.op("Neg", &[&size])?;
    let zero = c.number(dtype, 0.0)?;
    let negative = c.op("Less", &[&at, &zero])?;
    c.op("Where", &[&negative, &below, &size])
}

/// The labels of classes.
pub(crate) enum Labels {
    Numbers(Vec<i64>),
    Texts(Texts),
}

impl Labels {
    /// One of two attributes of a node.
    pub(crate) fn read(node: &Node, [texts, numbers]: [&'static str; 2]) -> Result<Labels> {
        let found = [
            node.texts(texts)?
                .filter(|t| !t.is_empty())
                .map(|t| Texts::new(&[t.len()], t).map(Labels::Texts))
                .transpose()?,
            node.ints(numbers)?.filter(|v| !v.is_empty()).map(Labels::Numbers),
        ];
        let mut found = found.into_iter().flatten();
        match (found.next(), found.next()) {
            (Some(labels), None) => Ok(labels),
            _ => Err(Error::model(format!("one of `{texts}` and `{numbers}` is needed"))),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Labels::Numbers(v) => v.len(),
            Labels::Texts(t) => t.values().len(),
        }
    }

    /// The labels of classes `[N]`.
    pub(crate) fn at(&self, c: &mut Compose, classes: &Imported) -> Result<Imported> {
        match self {
            Labels::Numbers(list) => {
                let list = value::list(list)?;
                c.with("Gather", &[&list, classes], [int("axis", 0)])
            }
            Labels::Texts(texts) => Imported::chosen(classes, texts),
        }
    }
}

/// The place of the largest score of each row `[N, C]`, the first of equal ones.
pub(crate) fn best(c: &mut Compose, scores: &Imported) -> Result<Imported> {
    c.with("ArgMax", &[scores], [int("axis", 1), int("keepdims", 0)])
}

/// One where a score `[N, 1]` is above a bound, zero elsewhere: `int64[N]`.
pub(crate) fn above(c: &mut Compose, score: &Imported, bound: f64) -> Result<Imported> {
    let bound = c.number(score.dtype(), bound)?;
    let above = c.op("Greater", &[score, &bound])?;
    let count = score.shape().first().copied().unwrap_or(Dim::from(1));
    let above = c.reshape(&above, &[count])?;
    c.cast(&above, DType::I64)
}

/// Numbers as a row that is added to each row, or multiplied with it.
pub(crate) fn row(dtype: DType, values: &[f32]) -> Result<Imported> {
    let values: Vec<f64> = values.iter().map(|v| f64::from(*v)).collect();
    value::constant(dtype, &[1, values.len()], &values)
}

/// A matrix of numbers.
pub(crate) fn matrix(
    dtype: DType,
    rows: usize,
    columns: usize,
    values: &[f32],
) -> Result<Imported> {
    if rows.checked_mul(columns) != Some(values.len()) {
        return Err(Error::model(format!(
            "{} coefficients where {rows} x {columns} are needed",
            values.len()
        )));
    }
    let all = Tensor::from_slice(&[rows, columns], values)?;
    crate::fold::cast(&all, dtype).map(Imported::Const)
}

/// The rows of features `[N, F]` of a value, which may be one row without the first axis.
pub(crate) fn features(c: &mut Compose, x: &Imported, dtype: DType) -> Result<Imported> {
    let x = match x.shape()[..] {
        [count] => c.reshape(x, &[Dim::from(1), count])?,
        [_, _] => x.clone(),
        _ => {
            return Err(Error::model(format!(
                "{} has neither one axis nor two",
                crate::imported::operand(x)
            )));
        }
    };
    c.cast(&x, dtype)
}
