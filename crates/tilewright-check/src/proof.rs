//! Proofs that a set of integers lies in others, as they stand in a certificate.
//!
//! Rows are counted from zero: those of the system, then those that the proof adds. A proof is one of
//!
//! * `(sum 0:2 3:1)`: the sum of rows by factors, not negative for inequalities, has no unknown and is
//!   negative, so that there is no point (Farkas);
//! * `(cut 4 0:1 2:3 P)`: all coefficients of the sum can be divided by 4, so that the constant may
//!   be rounded down; `P` may use the new row (Gomory, Chvátal);
//! * `(split 3 2:-1 0:1 P Q)`: `3 - u2 + u0` is not negative in `P`, or else negative in `Q`;
//! * `(in 1 P ...)`: every point is in target 1; for each of its inequalities in order, a proof that there is
//!   no point outside. An equality counts as two.

use crate::set::{Affine, Row, System};
use crate::tree::{Fine, Tree, Word};

/// A proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    Sum(Vec<(usize, i128)>),
    Cut(i128, Vec<(usize, i128)>, Box<Proof>),
    Split(Affine, Box<Proof>, Box<Proof>),
    In(usize, Vec<Proof>),
}

impl Proof {
    /// Whether every point of a system is in one of the targets; without targets, that there is no point.
    pub(crate) fn verify(&self, system: &System, targets: &[Vec<Row>]) -> Fine<()> {
        self.run(&mut system.rows.clone(), targets)
    }

    fn run(&self, rows: &mut Vec<Row>, targets: &[Vec<Row>]) -> Fine<()> {
        let before = rows.len();
        match self {
            Proof::Sum(factors) => {
                let sum = combined(rows, factors)?;
                if !sum.terms.is_empty() || sum.constant >= 0 {
                    return Err("the sum of the rows is no contradiction".into());
                }
            }
            Proof::Cut(by, factors, rest) => {
                let mut sum = combined(rows, factors)?;
                if *by < 1 || sum.terms.values().any(|c| c % by != 0) {
                    return Err(format!("the sum of the rows cannot be divided by {by}"));
                }
                sum.constant = sum.constant.div_euclid(*by);
                sum.terms.values_mut().for_each(|c| *c /= by);
                rows.push(Row::nonneg(sum));
                rest.run(rows, targets)?;
            }
            Proof::Split(on, yes, no) => {
                rows.push(Row::nonneg(on.clone()));
                yes.run(rows, targets)?;
                rows.truncate(before);
                rows.push(Row::nonneg(on.complement()?));
                no.run(rows, targets)?;
            }
            Proof::In(at, proofs) => {
                let target = targets.get(*at).ok_or_else(|| format!("there is no target {at}"))?;
                let mut sides = Vec::new();
                for row in target {
                    sides.extend(row.sides()?);
                }
                if sides.len() != proofs.len() {
                    return Err(format!("target {at} has {} inequalities", sides.len()));
                }
                for (side, proof) in sides.iter().zip(proofs) {
                    rows.push(Row::nonneg(side.complement()?));
                    proof.run(rows, &[])?;
                    rows.truncate(before);
                }
            }
        }
        rows.truncate(before);
        Ok(())
    }

    pub(crate) fn read(tree: &Tree) -> Fine<Proof> {
        let part = |tree| Proof::read(tree).map(Box::new);
        Ok(match tree.list()?.1 {
            [Word("sum"), factors @ ..] => Proof::Sum(pairs(factors)?),
            [Word("cut"), by, factors @ .., rest] => {
                Proof::Cut(by.number()?, pairs(factors)?, part(rest)?)
            }
            [Word("split"), constant, terms @ .., yes, no] => {
                let mut on = Affine::constant(constant.number()?);
                for (at, factor) in pairs(terms)? {
                    on = on.plus(&Affine::unknown(at), factor)?;
                }
                Proof::Split(on, part(yes)?, part(no)?)
            }
            [Word("in"), at, proofs @ ..] => {
                Proof::In(at.number()?, proofs.iter().map(Proof::read).collect::<Fine<_>>()?)
            }
            _ => return Err("no step of a proof".into()),
        })
    }
}

/// Rows or unknowns with their factors.
fn pairs(trees: &[Tree]) -> Fine<Vec<(usize, i128)>> {
    let pair = |tree: &Tree| {
        let Word(word) = tree else { return None };
        let (at, factor) = word.split_once(':')?;
        Some((at.parse().ok()?, factor.parse().ok()?))
    };
    trees.iter().map(|t| pair(t).ok_or_else(|| "no row with its factor".to_owned())).collect()
}

fn combined(rows: &[Row], factors: &[(usize, i128)]) -> Fine<Affine> {
    let mut sum = Affine::default();
    for (at, factor) in factors {
        let row = rows.get(*at).ok_or_else(|| format!("there is no row {at}"))?;
        if *factor < 0 && !row.is_zero {
            return Err(format!("row {at} is an inequality with a negative factor"));
        }
        sum = sum.plus(&row.of, *factor)?;
    }
    Ok(sum)
}
