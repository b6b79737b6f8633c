//! Proofs that a set of integers lies in others, as they stand in a certificate.
//!
//! Rows are counted from zero: those of the system, then those that the proof adds. A proof is one of
//!
//! * `(sum 0:2 3:1)`: the sum of rows by factors, not negative for inequalities, has no unknown and is
//!   negative, so that there is no point (Farkas);
//! * `(cut 4 0:1 2:3 P)`: all coefficients of the sum can be divided by 4, so that the constant may
//!   be rounded down; `P` may use the new row (Gomory, Chvátal);
//! * `(split 3 -1:2 0:1 P Q)`: `3 - u2 + u0` is not negative in `P`, or else negative in `Q`;
//! * `(in 1 P ...)`: every point is in target 1; for each of its inequalities in order, a proof that there is
//!   no point outside. An equality counts as two.

use crate::set::{Affine, Row, System};

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
    ///
    /// # Errors
    /// The first step that is wrong.
    pub fn verify(&self, system: &System, targets: &[Vec<Row>]) -> Result<(), String> {
        self.run(&mut system.rows.clone(), targets)
    }

    fn run(&self, rows: &mut Vec<Row>, targets: &[Vec<Row>]) -> Result<(), String> {
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

    /// Reads a proof from words; brackets are words of their own.
    ///
    /// # Errors
    /// What is no proof.
    pub fn parse(words: &mut std::slice::Iter<'_, String>) -> Result<Proof, String> {
        const DEEPEST: usize = 400;
        Proof::read(words, DEEPEST)
    }

    fn read(words: &mut std::slice::Iter<'_, String>, depth: usize) -> Result<Proof, String> {
        let depth = depth.checked_sub(1).ok_or("the proof is too deep")?;
        expect(words, "(")?;
        let kind = words.next().ok_or("the proof ends")?.clone();
        let first = match kind.as_str() {
            "sum" => 0,
            _ => number(words.next().ok_or("the proof ends")?)?,
        };
        let mut pairs = Vec::new();
        while let Some((at, factor)) = words.as_slice().first().and_then(|w| w.split_once(':')) {
            pairs.push((number(at)?, number(factor)?));
            words.next();
        }
        let mut parts = Vec::new();
        while words.as_slice().first().is_some_and(|w| w == "(") {
            parts.push(Proof::read(words, depth)?);
        }
        expect(words, ")")?;
        let index = |v: i128| usize::try_from(v).map_err(|_| format!("{v} is no number of a row"));
        let by_row = |pairs: &[(i128, i128)]| {
            pairs.iter().map(|(at, f)| Ok((index(*at)?, *f))).collect::<Result<Vec<_>, String>>()
        };
        let mut left = parts.into_iter();
        let proof = match (kind.as_str(), left.next(), left.next()) {
            ("in", one, two) => {
                let proofs = one.into_iter().chain(two).chain(left.by_ref()).collect();
                Proof::In(index(first)?, proofs)
            }
            ("sum", None, _) => Proof::Sum(by_row(&pairs)?),
            ("cut", Some(rest), None) => Proof::Cut(first, by_row(&pairs)?, Box::new(rest)),
            ("split", Some(yes), Some(no)) => {
                let mut on = Affine::constant(first);
                for (factor, at) in &pairs {
                    on = on.plus(&Affine::unknown(index(*at)?), *factor)?;
                }
                Proof::Split(on, Box::new(yes), Box::new(no))
            }
            _ => return Err(format!("`{kind}` is no step of a proof, or has other parts")),
        };
        if left.next().is_some() { Err(format!("`{kind}` has too many parts")) } else { Ok(proof) }
    }
}

impl std::fmt::Display for Proof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Proof::Sum(factors) => {
                f.write_str("(sum")?;
                factors.iter().try_for_each(|(at, k)| write!(f, " {at}:{k}"))?;
            }
            Proof::Cut(by, factors, rest) => {
                write!(f, "(cut {by}")?;
                factors.iter().try_for_each(|(at, k)| write!(f, " {at}:{k}"))?;
                write!(f, " {rest}")?;
            }
            Proof::Split(on, yes, no) => {
                write!(f, "(split {}", on.constant)?;
                on.terms.iter().try_for_each(|(at, k)| write!(f, " {k}:{at}"))?;
                write!(f, " {yes} {no}")?;
            }
            Proof::In(at, proofs) => {
                write!(f, "(in {at}")?;
                proofs.iter().try_for_each(|p| write!(f, " {p}"))?;
            }
        }
        f.write_str(")")
    }
}

fn combined(rows: &[Row], factors: &[(usize, i128)]) -> Result<Affine, String> {
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

fn expect(words: &mut std::slice::Iter<'_, String>, word: &str) -> Result<(), String> {
    match words.next() {
        Some(w) if w == word => Ok(()),
        Some(w) => Err(format!("`{w}` stands where `{word}` is expected")),
        None => Err(format!("`{word}` is missing at the end")),
    }
}

fn number(word: &str) -> Result<i128, String> {
    word.parse().map_err(|_| format!("`{word}` is no number"))
}
