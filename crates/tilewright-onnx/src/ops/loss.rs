//! Losses: what a model says against what was right.

use tilewright_ir::{Error, Result};
use tilewright_ops::{unequal, unequal_shapes};

use super::compose::{Compose, int};
use crate::build::Builder;
use crate::imported::{Imported, operand};
use crate::node::Node;
use crate::operator::{Operator, op};

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[
    op("NegativeLogLikelihoodLoss", 12, 3, negative_log_likelihood),
    op("SoftmaxCrossEntropyLoss", 12, 3, softmax_cross_entropy),
];

/// Minus the logarithm of the probability of the right class. `p` are the logarithms, the classes
/// along axis 1.
fn likelihood(node: &Node, c: &mut Compose, p: &Imported) -> Result<Imported> {
    let (target, weight) = (node.input(1)?, node.optional(2));
    let mut left = p.shape().to_vec();
    let misfit = || Error::model(format!("classes {} for {}", operand(target), operand(p)));
    if left.len() < 2 || !target.dtype().is_int() {
        return Err(misfit());
    }
    let classes = left.remove(1);
    if left != target.shape() {
        return Err(unequal_shapes(misfit(), &left, &target.shape()));
    }
    if let Some(w) = weight.filter(|w| w.shape() != [classes]) {
        let own = w.shape().first().copied().filter(|_| w.rank() == 1);
        return Err(unequal(misfit(), own.map(|own| (own, classes))));
    }
    let reduction = node.text_or("reduction", "mean")?;
    let zero = c.number(p.dtype(), 0.0)?;
    // Where a class does not count, another one is looked up.
    let mut right = target.clone();
    let mut ignored = None;
    if let Some(which) = node.int("ignore_index")? {
        let which = c.number(target.dtype(), which as f64)?;
        let none = c.op("Equal", &[target, &which])?;
        let first = c.number(target.dtype(), 0.0)?;
        right = c.op("Where", &[&none, &first, target])?;
        ignored = Some(none);
    }
    let mut one_class = p.shape().to_vec();
    one_class[1] = 1.into();
    let at = c.reshape(&right, &one_class)?;
    let found = c.with("GatherElements", &[p, &at], [int("axis", 1)])?;
    let found = c.reshape(&found, &left)?;
    let mut loss = c.op("Neg", &[&found])?;
    let mut factor = match weight {
        Some(w) => Some(c.with("Gather", &[w, &right], [int("axis", 0)])?),
        None => None,
    };
    if let Some(ignored) = &ignored {
        let one = c.number(p.dtype(), 1.0)?;
        let of = factor.as_ref().unwrap_or(&one);
        factor = Some(c.op("Where", &[ignored, &zero, of])?);
        loss = c.op("Where", &[ignored, &zero, &loss])?;
    }
    if let Some(factor) = &factor {
        loss = c.op("Mul", &[&loss, factor])?;
    }
    let all: Vec<usize> = (0..loss.rank()).collect();
    match reduction {
        "none" => Ok(loss),
        "sum" => c.reduce("ReduceSum", &loss, &all, false),
        "mean" => match factor {
            None => c.reduce("ReduceMean", &loss, &all, false),
            Some(factor) => {
                let sum = c.reduce("ReduceSum", &loss, &all, false)?;
                let count = c.reduce("ReduceSum", &factor, &all, false)?;
                c.op("Div", &[&sum, &count])
            }
        },
        other => Err(node.unsupported_value("reduction", other, "none, sum, mean")),
    }
}

pub(crate) fn negative_log_likelihood(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let mut c = Compose::new(node, b);
    Ok(vec![likelihood(node, &mut c, node.input(0)?)?])
}

pub(crate) fn softmax_cross_entropy(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let mut c = Compose::new(node, b);
    let p = c.with("LogSoftmax", &[node.input(0)?], [int("axis", 1)])?;
    Ok(vec![likelihood(node, &mut c, &p)?, p])
}
