//! Linear models and support vector machines of `ai.onnx.ml`.

use tilewright_ir::{DType, Dim, Error, Result};
use tilewright_ops::coupling;

use super::compose::{Compose, int};
use super::one;
use super::scores::{self, Labels, Transform, features, matrix, row};
use crate::build::Builder;
use crate::imported::Imported;
use crate::node::{Node, required};
use crate::operator::{Operator, op, until};

/// Those of the domain `ai.onnx.ml`; their versions are those of the domain.
pub(crate) static OPERATORS: &[Operator] = &[
    until(5, op("LinearClassifier", 1, 1, linear_classifier)),
    until(5, op("LinearRegressor", 1, 1, linear_regressor)),
    until(5, op("SVMClassifier", 1, 1, svm_classifier)),
    until(5, op("SVMRegressor", 1, 1, svm_regressor)),
];

const F32: DType = DType::F32;

/// Products of rows of features `[N, F]` with so many rows of coefficients `[R, F]`: `[N, R]`.
fn products(c: &mut Compose, x: &Imported, rows: usize, values: &[f32]) -> Result<Imported> {
    let columns = x.shape()[1].fixed("a product with coefficients")?;
    let w = matrix(F32, rows, columns, values)?;
    let w = c.transpose(&w, &[1, 0])?;
    c.op("MatMul", &[x, &w])
}

fn coefficients(node: &Node) -> Result<Vec<f32>> {
    required(node.floats("coefficients")?, "the attribute `coefficients`")
}

/// The sums of products and intercepts of so many results.
fn linear(node: &Node, c: &mut Compose, results: usize) -> Result<Imported> {
    let x = features(c, node.input(0)?, F32)?;
    let y = products(c, &x, results, &coefficients(node)?)?;
    match node.floats("intercepts")?.filter(|v| !v.is_empty()) {
        None => Ok(y),
        Some(list) if list.len() == results => c.op("Add", &[&y, &row(F32, &list)?]),
        Some(list) => Err(Error::model(format!(
            "attribute `intercepts` has {} numbers for {results} results",
            list.len()
        ))),
    }
}

pub(crate) fn linear_regressor(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let targets = node.size_or("targets", 1)?;
    let transform = Transform::read(node)?;
    let y = linear(node, c, targets)?;
    one(match targets {
        1 => transform.apply_alone(c, &y)?,
        _ => transform.apply(c, &y)?,
    })
}

pub(crate) fn linear_classifier(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let transform = Transform::read(node)?;
    node.ignore("multi_class");
    let labels = Labels::read(node, ["classlabels_strings", "classlabels_ints"])?;
    let columns = match node.input(0)?.shape().last() {
        Some(d) => d.fixed(node.op())?,
        None => return Err(Error::model("there is no row of features")),
    };
    let count = coefficients(node)?.len().checked_div(columns).unwrap_or(0);
    if count == 0 || (count != labels.len() && (count, labels.len()) != (1, 2)) {
        return Err(Error::model(format!(
            "coefficients of {count} classes for {} labels",
            labels.len()
        )));
    }
    let sums = linear(node, c, count)?;
    if count == 1 && labels.len() == 2 {
        let second = scores::above(c, &sums, 0.0)?;
        let all = transform.both(c, &sums, true)?;
        return Ok(vec![labels.at(c, &second)?, all]);
    }
    let best = scores::best(c, &sums)?;
    Ok(vec![labels.at(c, &best)?, transform.apply(c, &sums)?])
}

/// The kernel of a support vector machine.
struct Kernel<'a> {
    kind: &'a str,
    gamma: f64,
    coef: f64,
    degree: f64,
}

impl<'a> Kernel<'a> {
    fn read(node: &Node<'a>) -> Result<Kernel<'a>> {
        let params = node.floats("kernel_params")?.unwrap_or_default();
        let kind = node.text_or("kernel_type", "LINEAR")?;
        if !["LINEAR", "POLY", "RBF", "SIGMOID"].contains(&kind) {
            return Err(node.unsupported_value("kernel_type", kind, "LINEAR, POLY, RBF, SIGMOID"));
        }
        Ok(Kernel {
            kind,
            gamma: param(0, &params),
            coef: param(1, &params),
            degree: param(2, &params),
        })
    }

    /// The values `[N, V]` of rows of features `[N, F]` with so many vectors.
    fn of_rows(
        &self,
        c: &mut Compose,
        x: &Imported,
        vectors: usize,
        values: &[f32],
    ) -> Result<Imported> {
        if self.kind == "RBF" {
            // Of differences, whose squares lose less than those of the vectors.
            let (rows, columns) = (x.shape()[0], x.shape()[1]);
            let fixed = columns.fixed("a product with coefficients")?;
            let v = matrix(F32, vectors, fixed, values)?;
            let x = c.reshape(x, &[rows, Dim::from(1), columns])?;
            let apart = c.op("Sub", &[&x, &v])?;
            let distance = c.reduce("ReduceSumSquare", &apart, &[2], false)?;
            let exponent = with_number(c, &distance, "Mul", -self.gamma)?;
            return c.op("Exp", &[&exponent]);
        }
        let dot = products(c, x, vectors, values)?;
        if self.kind == "LINEAR" {
            return Ok(dot);
        }
        let scaled = with_number(c, &dot, "Mul", self.gamma)?;
        let moved = with_number(c, &scaled, "Add", self.coef)?;
        match self.kind {
            "POLY" => with_number(c, &moved, "Pow", self.degree),
            _ => c.op("Tanh", &[&moved]),
        }
    }
}

fn param(at: usize, params: &[f32]) -> f64 {
    f64::from(params.get(at).copied().unwrap_or(0.0))
}

fn with_number(c: &mut Compose, x: &Imported, op: &str, v: f64) -> Result<Imported> {
    let v = c.number(F32, v)?;
    c.op(op, &[x, &v])
}

fn rho(node: &Node, count: usize) -> Result<Vec<f32>> {
    let rho = node.floats("rho")?.unwrap_or_else(|| vec![0.0; count]);
    if rho.len() >= count {
        Ok(rho)
    } else {
        Err(Error::model(format!("attribute `rho` has {} of {count} numbers", rho.len())))
    }
}

pub(crate) fn svm_regressor(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    node.ignore("post_transform");
    let x = features(c, node.input(0)?, F32)?;
    let (kernel, weights) = (Kernel::read(node)?, coefficients(node)?);
    let vectors = node.size_or("n_supports", 0)?;
    let support = node.floats("support_vectors")?.unwrap_or_default();
    let rho = rho(node, 1)?;
    let sum = match vectors {
        0 => products(c, &x, 1, &weights)?,
        _ => {
            let values = kernel.of_rows(c, &x, vectors, &support)?;
            let w = matrix(F32, vectors, 1, &weights)?;
            c.op("MatMul", &[&values, &w])?
        }
    };
    let y = c.op("Add", &[&sum, &row(F32, &rho[..1])?])?;
    if !node.flag("one_class", false)? {
        return one(y);
    }
    let [zero, inside, outside] = [0.0, 1.0, -1.0].map(|v| c.number(F32, v));
    let is_inside = c.op("Greater", &[&y, &zero?])?;
    one(c.op("Where", &[&is_inside, &inside?, &outside?])?)
}

pub(crate) fn svm_classifier(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let transform = Transform::read(node)?;
    let labels = Labels::read(node, ["classlabels_strings", "classlabels_ints"])?;
    let x = features(c, node.input(0)?, F32)?;
    let (kernel, weights) = (Kernel::read(node)?, coefficients(node)?);
    let support = node.floats("support_vectors")?.unwrap_or_default();
    let per_class = node.ints("vectors_per_class")?.unwrap_or_default();
    let (a, by) = (node.floats("prob_a")?, node.floats("prob_b")?);
    let classes = labels.len();
    if support.is_empty() {
        let sums = products(c, &x, classes, &weights)?;
        let sums = c.op("Add", &[&sums, &row(F32, &rho(node, 1)?[..1])?])?;
        let mut best = scores::best(c, &sums)?;
        if classes == 2 {
            best = second_if_above(c, &sums, &best, weights.iter().all(|w| *w >= 0.0))?;
        }
        return Ok(vec![labels.at(c, &best)?, transform.apply(c, &sums)?]);
    }
    let counts: Vec<usize> = per_class
        .iter()
        .filter_map(|v| usize::try_from(*v).ok().filter(|v| *v < 1 << 24))
        .collect();
    let vectors: usize = counts.iter().sum();
    if counts.len() != classes || classes < 2 || weights.len() != (classes - 1) * vectors {
        return Err(Error::model(format!(
            "{} coefficients for {per_class:?} vectors of {classes} classes",
            weights.len()
        )));
    }
    let values = kernel.of_rows(c, &x, vectors, &support)?;
    let pairs: Vec<(usize, usize)> =
        (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j))).collect();
    let rho = rho(node, pairs.len())?;
    // The coefficients of each pair: those of the vectors of both classes.
    let starts: Vec<usize> = (0..classes).map(|k| counts[..k].iter().sum()).collect();
    let mut table = vec![0f32; pairs.len() * vectors];
    for (at, &(i, j)) in pairs.iter().enumerate() {
        for (own, other) in [(i, j - 1), (j, i)] {
            let span = starts[own]..starts[own] + counts[own];
            let from = &weights[other * vectors..][span.clone()];
            table[at * vectors..][span].copy_from_slice(from);
        }
    }
    let table = matrix(F32, pairs.len(), vectors, &table)?;
    let table = c.transpose(&table, &[1, 0])?;
    let sums = c.op("MatMul", &[&values, &table])?;
    let sums = c.op("Add", &[&sums, &row(F32, &rho[..pairs.len()])?])?;
    let label = voted(c, &sums, &pairs, classes)?;
    let label = labels.at(c, &label)?;
    let all = match (a.filter(|v| !v.is_empty()), by) {
        (Some(a), Some(by)) if a.len() == pairs.len() && by.len() == pairs.len() => {
            let all = probabilities(c, &sums, &pairs, classes, &a, &by)?;
            transform.apply(c, &all)?
        }
        (Some(_), _) => {
            let count = pairs.len();
            return Err(Error::model(format!("`prob_a` and `prob_b` need {count} numbers each")));
        }
        (None, _) if classes == 2 => {
            let share = matches!(transform, Transform::Softmax | Transform::SoftmaxZero);
            transform.both(c, &sums, share)?
        }
        (None, _) => transform.apply(c, &sums)?,
    };
    Ok(vec![label, all])
}

/// The second of two classes where the better score of both `[N, 2]` says yes, as ONNX Runtime reads scores
/// without support vectors; the better one elsewhere.
fn second_if_above(
    c: &mut Compose,
    sums: &Imported,
    best: &Imported,
    likely: bool,
) -> Result<Imported> {
    let top = c.reduce("ReduceMax", sums, &[1], false)?;
    let (bound, op) = if likely { (0.5, "GreaterOrEqual") } else { (0.0, "Greater") };
    let bound = c.number(F32, bound)?;
    let above = c.op(op, &[&top, &bound])?;
    let second = c.number(tilewright_ir::DType::I64, 1.0)?;
    c.op("Where", &[&above, &second, best])
}

/// The class with the most votes of pairs, the first of equal ones.
fn voted(
    c: &mut Compose,
    sums: &Imported,
    pairs: &[(usize, usize)],
    classes: usize,
) -> Result<Imported> {
    // A vote for the first class of each pair, or for the second one.
    let (mut first, mut second) =
        (vec![0f32; pairs.len() * classes], vec![0f32; pairs.len() * classes]);
    for (at, &(i, j)) in pairs.iter().enumerate() {
        first[at * classes + i] = 1.0;
        second[at * classes + j] = 1.0;
    }
    let zero = c.number(F32, 0.0)?;
    let won = c.op("Greater", &[sums, &zero])?;
    let lost = c.op("Not", &[&won])?;
    let mut votes = None;
    for (side, table) in [(won, first), (lost, second)] {
        let side = c.cast(&side, F32)?;
        let table = matrix(F32, pairs.len(), classes, &table)?;
        let own = c.op("MatMul", &[&side, &table])?;
        votes = Some(match votes {
            None => own,
            Some(votes) => c.op("Add", &[&votes, &own])?,
        });
    }
    let votes = votes.ok_or_else(|| Error::internal("there are no votes"))?;
    scores::best(c, &votes)
}

/// Probabilities of all classes from the sums of pairs, by Platt's scaling and pairwise coupling.
fn probabilities(
    c: &mut Compose,
    sums: &Imported,
    pairs: &[(usize, usize)],
    classes: usize,
    a: &[f32],
    b: &[f32],
) -> Result<Imported> {
    let scaled = c.op("Mul", &[sums, &row(F32, a)?])?;
    let moved = c.op("Add", &[&scaled, &row(F32, b)?])?;
    let down = c.op("Neg", &[&moved])?;
    let likely = c.op("Sigmoid", &[&down])?;
    let [low, high] = [1e-7, 1.0 - 1e-7].map(|v| c.number(F32, v));
    let likely = c.op("Clip", &[&likely, &low?, &high?])?;
    let unit = c.number(F32, 1.0)?;
    let rest = c.op("Sub", &[&unit, &likely])?;
    // The place of each pair and its mirror image; a class has no pair with itself.
    let zero = c.number(F32, 0.0)?;
    let first = c.slice(&likely, 1, 0, 1)?;
    let none = c.op("Mul", &[&first, &zero])?;
    let all = c.concat(&[&none, &likely, &rest], 1)?;
    let mut places = vec![0i64; classes * classes];
    for (at, &(i, j)) in pairs.iter().enumerate() {
        places[i * classes + j] = 1 + at as i64;
        places[j * classes + i] = (1 + pairs.len() + at) as i64;
    }
    let places = super::value::list(&places)?;
    let table = c.with("Gather", &[&all, &places], [int("axis", 1)])?;
    let rows = table.shape()[0];
    let table = c.reshape(&table, &[rows, Dim::from(classes), Dim::from(classes)])?;
    c.b.call_on("coupled", [&table], (), |[pairs]| coupling::coupled(pairs))
}
