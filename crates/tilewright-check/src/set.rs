//! Linear constraints over integers: what a certificate is checked with.
//!
//! A [`System`] is a conjunction of rows over numbered unknowns. `e // d` and `e % d` are written with an
//! unknown `q` for the quotient, and `0 <= e - d * q <= d - 1`: every value of the others gives it one
//! value, so that a constraint with quotients can be negated like any other. So is a product of unknowns, of which
//! nothing is known but what it is of.

use std::collections::{BTreeMap, HashMap};

use crate::program::{Expr, Var};
use crate::tree::Fine;

/// Alternatives of one condition.
const ALTERNATIVES: usize = 1 << 12;

/// A constant and coefficients of unknowns.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Affine {
    pub constant: i128,
    pub terms: BTreeMap<usize, i128>,
}

impl Affine {
    pub fn constant(constant: i128) -> Affine {
        Affine { constant, terms: BTreeMap::new() }
    }

    pub fn unknown(at: usize) -> Affine {
        Affine { constant: 0, terms: BTreeMap::from([(at, 1)]) }
    }

    /// `self + k * other`.
    pub fn plus(&self, other: &Affine, k: i128) -> Fine<Affine> {
        let mut out = self.clone();
        out.constant = sum(out.constant, other.constant, k)?;
        for (at, c) in &other.terms {
            let term = out.terms.entry(*at).or_default();
            *term = sum(*term, *c, k)?;
        }
        out.terms.retain(|_, c| *c != 0);
        Ok(out)
    }

    /// `-self - 1`: not negative where `self` is.
    pub fn complement(&self) -> Fine<Affine> {
        Affine::constant(-1).plus(self, -1)
    }
}

fn sum(a: i128, b: i128, k: i128) -> Fine<i128> {
    b.checked_mul(k).and_then(|p| a.checked_add(p)).ok_or_else(|| "a number is too large".into())
}

/// An affine function that is not negative, or zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub of: Affine,
    pub is_zero: bool,
}

impl Row {
    pub fn nonneg(of: Affine) -> Row {
        Row { of, is_zero: false }
    }

    pub fn zero(of: Affine) -> Row {
        Row { of, is_zero: true }
    }

    /// Whether some unknowns may satisfy it.
    fn may_hold(&self) -> bool {
        let Affine { constant, terms } = &self.of;
        !terms.is_empty() || *constant == 0 || *constant > 0 && !self.is_zero
    }

    /// The inequalities that say the same.
    pub fn sides(&self) -> Fine<Vec<Affine>> {
        let negative = Affine::default().plus(&self.of, -1)?;
        Ok(if self.is_zero { vec![self.of.clone(), negative] } else { vec![self.of.clone()] })
    }
}

/// The values of a program's variables, in unknowns.
pub type Place = HashMap<Var, Affine>;

/// A conjunction of rows.
#[derive(Clone, Debug, Default)]
pub struct System {
    pub unknowns: usize,
    pub rows: Vec<Row>,
    quotients: Vec<(Affine, i128, usize)>,
    /// Products of unknowns, in order, and the unknowns that these products are.
    products: Vec<(Vec<usize>, usize)>,
}

impl System {
    pub fn fresh(&mut self) -> Affine {
        self.unknowns += 1;
        Affine::unknown(self.unknowns - 1)
    }

    pub fn add(&mut self, rows: impl IntoIterator<Item = Row>) {
        self.rows.extend(rows);
    }

    /// `floor(of / by)` for a positive divisor.
    fn quotient(&mut self, of: &Affine, by: i128) -> Fine<Affine> {
        if of.terms.is_empty() {
            return Ok(Affine::constant(of.constant.div_euclid(by)));
        }
        if let Some((.., at)) = self.quotients.iter().find(|(e, d, _)| e == of && *d == by) {
            return Ok(Affine::unknown(*at));
        }
        let q = self.fresh();
        let rest = of.plus(&q, -by)?;
        let most = Affine::constant(by - 1).plus(&rest, -1)?;
        self.add([Row::nonneg(rest), Row::nonneg(most)]);
        self.quotients.push((of.clone(), by, self.unknowns - 1));
        Ok(q)
    }

    /// The product of two unknowns, which may be products themselves.
    fn times(&mut self, x: usize, y: usize) -> Affine {
        let of = |u| self.products.iter().find(|p| p.1 == u).map_or(vec![u], |p| p.0.clone());
        let mut factors = [of(x), of(y)].concat();
        factors.sort_unstable();
        if let Some((_, at)) = self.products.iter().find(|p| p.0 == factors) {
            return Affine::unknown(*at);
        }
        self.products.push((factors, self.unknowns));
        self.fresh()
    }

    fn product(&mut self, a: &Affine, b: &Affine) -> Fine<Affine> {
        let linear = a.plus(&Affine::constant(a.constant), -1)?;
        let mut out = Affine::default().plus(b, a.constant)?.plus(&linear, b.constant)?;
        for (x, k) in &a.terms {
            for (y, l) in &b.terms {
                out = out.plus(&self.times(*x, *y), sum(0, *k, *l)?)?;
            }
        }
        Ok(out)
    }

    /// An index expression at a place.
    pub fn affine(&mut self, e: &Expr, place: &Place) -> Fine<Affine> {
        let not = || Err(format!("`{e:?}` is not affine"));
        Ok(match e {
            Expr::Int(v) => Affine::constant(*v),
            Expr::Var(v) => {
                place.get(v).cloned().ok_or_else(|| format!("`{v}` is not known here"))?
            }
            Expr::Op(op, args) => match (op.as_str(), args.as_slice()) {
                ("cast.int32" | "cast.int64", [a]) => self.affine(a, place)?,
                (op @ ("+" | "-" | "*" | "//" | "%"), [a, b]) => {
                    let (a, b) = (self.affine(a, place)?, self.affine(b, place)?);
                    match op {
                        "+" => a.plus(&b, 1)?,
                        "-" => a.plus(&b, -1)?,
                        "*" => self.product(&a, &b)?,
                        _ if !b.terms.is_empty() || b.constant <= 0 => return not(),
                        "//" => self.quotient(&a, b.constant)?,
                        _ => a.plus(&self.quotient(&a, b.constant)?, -b.constant)?,
                    }
                }
                _ => return not(),
            },
            _ => return not(),
        })
    }

    /// Index expressions at a place.
    pub fn list(&mut self, list: &[Expr], place: &Place) -> Fine<Vec<Affine>> {
        list.iter().map(|e| self.affine(e, place)).collect()
    }

    /// A condition as alternatives, of which at least one holds where it does. Quotients are added here.
    pub fn alternatives(&mut self, e: &Expr, holds: bool, place: &Place) -> Fine<Vec<Vec<Row>>> {
        let Expr::Op(op, args) = e else { return Err(format!("`{e:?}` is no condition")) };
        Ok(match (op.as_str(), args.as_slice()) {
            ("true" | "false", []) => vec![Vec::new(); usize::from((op == "true") == holds)],
            ("not", [a]) => self.alternatives(a, !holds, place)?,
            (op @ ("and" | "or"), [a, b]) => {
                let a = self.alternatives(a, holds, place)?;
                let b = self.alternatives(b, holds, place)?;
                if (op == "and") == holds {
                    if a.len().saturating_mul(b.len()) > ALTERNATIVES {
                        return Err("a condition has too many alternatives".into());
                    }
                    let pairs = a.iter().flat_map(|x| b.iter().map(|y| [x.as_slice(), y].concat()));
                    pairs.collect()
                } else {
                    [a, b].concat()
                }
            }
            (op @ ("<" | "<=" | ">" | ">=" | "==" | "!="), [a, b]) => {
                let difference = self.affine(b, place)?.plus(&self.affine(a, place)?, -1)?;
                compared(op, holds, &difference)?
            }
            _ => return Err(format!("`{e:?}` is no condition of indices")),
        })
    }

    /// Whether a condition holds at a place of numbers.
    pub fn holds_at(e: &Expr, place: &Place) -> Fine<bool> {
        let alternatives = System::default().alternatives(e, true, place)?;
        Ok(alternatives.iter().any(|rows| rows.iter().all(Row::may_hold)))
    }

    /// The systems in which a condition holds, or does not.
    pub fn given(&self, e: &Expr, holds: bool, place: &Place) -> Fine<Vec<System>> {
        let mut base = self.clone();
        let alternatives = base.alternatives(e, holds, place)?;
        let with = |rows: Vec<Row>| {
            let mut system = base.clone();
            system.add(rows);
            system
        };
        Ok(alternatives.into_iter().map(with).collect())
    }
}

/// What a comparison of `a` and `b` says of `b - a`.
fn compared(op: &str, holds: bool, difference: &Affine) -> Fine<Vec<Vec<Row>>> {
    let above = Row::nonneg(difference.plus(&Affine::constant(1), -1)?);
    let least = Row::nonneg(difference.clone());
    let below = Row::nonneg(difference.complement()?);
    let most = Row::nonneg(Affine::default().plus(difference, -1)?);
    Ok(match (op, holds) {
        ("<", true) | (">=", false) => vec![vec![above]],
        ("<=", true) | (">", false) => vec![vec![least]],
        (">", true) | ("<=", false) => vec![vec![below]],
        (">=", true) | ("<", false) => vec![vec![most]],
        ("==", true) | ("!=", false) => vec![vec![Row::zero(difference.clone())]],
        _ => vec![vec![above], vec![below]],
    })
}
