//! Sums of products in Einstein's notation.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::{Dim, Error, Expr, Result, TensorFunc};

use crate::operand::{
    Operand, accumulator, placeholders, require_number, require_same, rounded, unequal, working,
};
use crate::te::{self, Axis, Reducer};

/// An axis: a letter, or one that the dots stand for, counted from the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Dots(std::cmp::Reverse<usize>),
    Letter(char),
}

/// The product of the operands, summed over the labels that the result does not have, such as
/// `bij,bjk->bik`. `...` stands for leading axes that broadcast; a label that comes twice in one
/// operand walks its diagonal; without `->` the result has the labels that come once, sorted.
/// Parameters: the operands, the result. Types: floats and integers, all equal.
pub fn einsum(equation: &str, operands: &[Operand]) -> Result<TensorFunc> {
    let name = "einsum";
    let wrong = |why: String| Error::input(format!("{name}: `{equation}`: {why}"));
    let Some(first) = operands.first() else {
        return Err(wrong("there is no operand".to_owned()));
    };
    require_number(name, first.dtype)?;
    let text: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match text.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (text.as_str(), None),
    };
    let terms: Vec<&str> = left.split(',').collect();
    if terms.len() != operands.len() {
        let (terms, operands) = (terms.len(), operands.len());
        return Err(wrong(format!("it has {terms} terms for {operands} operands")));
    }

    let mut extents: BTreeMap<Label, Dim> = BTreeMap::new();
    let mut labels = Vec::new();
    for (term, x) in terms.iter().zip(operands) {
        require_same(name, first.dtype, x.dtype)?;
        let own = parse(term, Some(x.rank())).map_err(wrong)?;
        for (&label, &d) in own.iter().zip(&x.shape) {
            let known = extents.entry(label).or_insert(d);
            // Only the axes of the dots broadcast.
            let stretches = matches!(label, Label::Dots(_)) && (d == 1 || *known == 1);
            match (*known == d, stretches) {
                (true, _) => {}
                (false, true) => *known = if d == 1 { *known } else { d },
                (false, false) => {
                    let (label, known) = (spelled(&label), *known);
                    let error = wrong(format!("axis `{label}` has {known} and {d} elements"));
                    return Err(unequal(error, [(known, d)]));
                }
            }
        }
        labels.push(own);
    }
    let dots = extents.keys().filter(|l| matches!(l, Label::Dots(_))).count();
    let result: Vec<Label> = match right {
        Some(right) => {
            let rank = right.replace("...", "").chars().count() + dots;
            let rank = right.contains("...").then_some(rank);
            parse(right, rank).map_err(wrong)?
        }
        None => extents
            .keys()
            .copied()
            .filter(|l| {
                matches!(l, Label::Dots(_))
                    || labels.iter().flatten().filter(|m| *m == l).count() == 1
            })
            .collect(),
    };
    if result.iter().collect::<BTreeSet<_>>().len() != result.len() {
        return Err(wrong("a label comes twice in the result".to_owned()));
    }
    if let Some(Label::Letter(l)) = result.iter().find(|l| !extents.contains_key(l)) {
        return Err(wrong(format!("no operand has the label `{l}` of the result")));
    }

    let inputs = placeholders(operands);
    let summed: Vec<(Label, Axis)> = extents
        .iter()
        .filter(|(l, _)| !result.contains(l))
        .map(|(l, &d)| (*l, te::reduce_axis(d, spelled(l))))
        .collect();
    let outer = result.iter().map(|l| te::axis(extents[l], spelled(l)));
    let work = working(first.dtype);
    let acc = te::compute_over(accumulator(name, first.dtype), outer, |i| {
        let position = |l: &Label| {
            let outer = result.iter().position(|r| r == l).map(|k| i[k].clone());
            outer
                .or_else(|| summed.iter().find(|(s, _)| s == l).map(|(_, a)| a.expr()))
                .unwrap_or_else(|| Expr::i32(0))
        };
        let factors = inputs.iter().zip(&labels).map(|(x, labels)| {
            let at = labels
                .iter()
                .zip(x.shape())
                .map(|(l, &d)| if d == extents[l] { position(l) } else { Expr::i32(0) });
            x.at(at).cast(work)
        });
        let product = factors.reduce(|a, b| a * b);
        // There is an operand, so there is a factor.
        let product = product.unwrap_or_else(|| Expr::constant(1.0, work));
        te::reduce(Reducer::Sum, product, summed.iter().map(|(_, a)| a))
    });
    te::func(&inputs, [&rounded(name, acc, first.dtype)])
}

/// Name of an axis.
fn spelled(label: &Label) -> String {
    match label {
        Label::Letter(c) => c.to_string(),
        Label::Dots(k) => format!("b{}", k.0),
    }
}

/// The labels of one term. `rank` says how many axes the dots stand for; without it there must be
/// none.
fn parse(term: &str, rank: Option<usize>) -> std::result::Result<Vec<Label>, String> {
    let (before, behind) = match term.split_once("...") {
        Some((before, behind)) => (letters_of(before)?, Some(letters_of(behind)?)),
        None => (letters_of(term)?, None),
    };
    let named = before.len() + behind.as_ref().map_or(0, Vec::len);
    let dots = match (&behind, rank) {
        (Some(_), Some(rank)) if named <= rank => rank - named,
        (None, Some(rank)) if named == rank => 0,
        (None, None) => 0,
        _ => {
            let rank = rank.unwrap_or(0);
            return Err(format!("the term `{term}` does not have {rank} axes"));
        }
    };
    let dots = (0..dots).rev().map(|k| Label::Dots(std::cmp::Reverse(k)));
    Ok(before.into_iter().chain(dots).chain(behind.unwrap_or_default()).collect())
}

fn letters_of(text: &str) -> Result<Vec<Label>, String> {
    match text.chars().find(|c| !c.is_ascii_alphabetic()) {
        Some(c) => Err(format!("`{c}` is no label")),
        None => Ok(text.chars().map(Label::Letter).collect()),
    }
}
