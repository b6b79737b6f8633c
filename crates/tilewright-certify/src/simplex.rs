//! The simplex over fractions: factors for a contradiction of linear rows, or a point.
//!
//! The factors are solved for: `sum f_j * row_j` has no unknown, and the constant -1. That is a linear
//! program in its first phase; where it has no solution, its dual values are a point of the rows.
//! Numbers are fractions of 128 bits; where they are too large there is no answer.

use std::collections::BTreeSet;

use tilewright_check::set::Affine;

pub(crate) fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

/// Pivots of one program.
const PIVOTS: usize = 400;
/// Largest divisor of a cut.
const LARGEST: i128 = 1 << 16;

/// What is found of rows.
pub(crate) enum Outcome {
    /// Factors, one a row, whose sum is a contradiction.
    Factors(Vec<i128>),
    /// There is a rational point, with an unknown that is no integer there.
    Point(Option<Broken>),
}

/// An unknown that is no integer at a point.
pub(crate) struct Broken {
    pub unknown: usize,
    /// The next integer above.
    pub ceiling: i128,
    /// Sums of rows that are zero at the point, of which all coefficients can be divided by a number and the constant
    /// cannot (Gomory): the number, and the rows with their factors.
    pub cuts: Vec<(i128, Vec<(usize, i128)>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Fraction {
    num: i128,
    den: i128,
}

const ZERO: Fraction = Fraction { num: 0, den: 1 };

impl Fraction {
    fn new(num: i128, den: i128) -> Option<Fraction> {
        let g = gcd(num, den).max(1);
        let sign = if den < 0 { -1 } else { 1 };
        (den != 0).then_some(Fraction { num: sign * num / g, den: sign * den / g })
    }

    fn int(num: i128) -> Fraction {
        Fraction { num, den: 1 }
    }

    /// `self - a * b`.
    fn less(self, a: Fraction, b: Fraction) -> Option<Fraction> {
        if a.num == 0 || b.num == 0 {
            return Some(self);
        }
        let (num, den) = (a.num.checked_mul(b.num)?, a.den.checked_mul(b.den)?);
        let left = self.num.checked_mul(den)?;
        Fraction::new(left.checked_sub(num.checked_mul(self.den)?)?, self.den.checked_mul(den)?)
    }

    fn over(self, by: Fraction) -> Option<Fraction> {
        Fraction::new(self.num.checked_mul(by.den)?, self.den.checked_mul(by.num)?)
    }

    fn is_less(self, other: Fraction) -> Option<bool> {
        Some(self.num.checked_mul(other.den)? < other.num.checked_mul(self.den)?)
    }
}

/// Factors for a contradiction, or a point; `None` where numbers are too large. Rows are functions that are
/// zero, or not negative.
pub(crate) fn contradiction(list: &[(&Affine, bool)]) -> Option<Outcome> {
    let unknowns: BTreeSet<usize> =
        list.iter().flat_map(|(a, _)| a.terms.keys().copied()).collect();
    let unknowns: Vec<usize> = unknowns.into_iter().collect();
    // A column for each inequality, two for each equality.
    let mut columns: Vec<(usize, i128)> = Vec::new();
    for (at, (_, is_zero)) in list.iter().enumerate() {
        columns.push((at, 1));
        if *is_zero {
            columns.push((at, -1));
        }
    }
    let height = unknowns.len() + 1;
    let width = columns.len();
    // Each line: the columns, the artificial ones, the right side.
    let mut lines: Vec<Vec<Fraction>> = Vec::with_capacity(height);
    for line in 0..height {
        let mut values = vec![ZERO; width + height + 1];
        for (value, (at, sign)) in values.iter_mut().zip(&columns) {
            let of = list[*at].0;
            let entry = match unknowns.get(line) {
                Some(u) => of.terms.get(u).copied().unwrap_or(0),
                None => of.constant.checked_neg()?,
            };
            *value = Fraction::int(entry * sign);
        }
        values[width + line] = Fraction::int(1);
        values[width + height] = Fraction::int(i128::from(line + 1 == height));
        lines.push(values);
    }
    // The costs: one for each artificial column, all of which are in the basis.
    let mut costs = vec![ZERO; width + height + 1];
    for line in &lines {
        for (at, cost) in costs.iter_mut().enumerate() {
            if !(width..width + height).contains(&at) {
                *cost = cost.less(line[at], Fraction::int(1))?;
            }
        }
    }
    let mut basis: Vec<usize> = (width..width + height).collect();
    for _ in 0..PIVOTS {
        // Bland's rule ends always.
        let Some(enter) = (0..width).find(|at| costs[*at].num < 0) else {
            return outcome(&lines, &costs, &basis, &columns, &unknowns, list.len());
        };
        let mut leave: Option<(usize, Fraction)> = None;
        for (at, line) in lines.iter().enumerate().filter(|(_, l)| l[enter].num > 0) {
            let ratio = line[width + height].over(line[enter])?;
            let better = match leave {
                None => true,
                Some((other, least)) => {
                    ratio.is_less(least)? || ratio == least && basis[at] < basis[other]
                }
            };
            if better {
                leave = Some((at, ratio));
            }
        }
        let (leave, _) = leave?;
        let by = lines[leave][enter];
        for value in &mut lines[leave] {
            *value = value.over(by)?;
        }
        let pivot = lines[leave].clone();
        let others = lines.iter_mut().enumerate().filter(|(at, _)| *at != leave).map(|(_, l)| l);
        for line in others.chain([&mut costs]) {
            let factor = line[enter];
            if factor.num != 0 {
                for (value, p) in line.iter_mut().zip(&pivot) {
                    *value = value.less(factor, *p)?;
                }
            }
        }
        basis[leave] = enter;
    }
    None
}

/// What the last tableau says.
fn outcome(
    lines: &[Vec<Fraction>],
    costs: &[Fraction],
    basis: &[usize],
    columns: &[(usize, i128)],
    unknowns: &[usize],
    rows: usize,
) -> Option<Outcome> {
    let (height, width) = (lines.len(), columns.len());
    let right = width + height;
    if costs[right].num == 0 {
        let mut factors = vec![ZERO; rows];
        for (line, at) in lines.iter().zip(basis) {
            if let Some((row, sign)) = columns.get(*at) {
                factors[*row] = factors[*row].less(line[right], Fraction::int(-sign))?;
            }
        }
        let mut common = 1i128;
        for f in &factors {
            common = common.checked_mul(f.den / gcd(common, f.den))?;
        }
        let whole = factors.iter().map(|f| f.num.checked_mul(common / f.den));
        return Some(Outcome::Factors(whole.collect::<Option<_>>()?));
    }
    // A dual value is one less the cost of the artificial column; the last one is that of the constant.
    let dual = |line: usize| Fraction::int(1).less(costs[width + line], Fraction::int(1));
    let last = dual(height - 1)?;
    let mut found: Option<Broken> = None;
    for (line, unknown) in unknowns.iter().enumerate() {
        let value = ZERO.less(dual(line)?.over(last)?, Fraction::int(1))?;
        if value.den == 1 {
            continue;
        }
        let ceiling = value.num.div_euclid(value.den) + 1;
        let new = || Broken { unknown: *unknown, ceiling, cuts: Vec::new() };
        found.get_or_insert_with(new).cuts.extend(cut(lines, basis, columns, line));
    }
    Some(Outcome::Point(found))
}

/// The unknown of a line is a sum of the rows in the basis and a number. Without the whole parts of the factors, the
/// sum still has whole coefficients, and no whole constant where the unknown is none.
fn cut(
    lines: &[Vec<Fraction>],
    basis: &[usize],
    columns: &[(usize, i128)],
    line: usize,
) -> Option<(i128, Vec<(usize, i128)>)> {
    let width = columns.len();
    let mut common = 1i128;
    let mut parts = Vec::new();
    for (values, at) in lines.iter().zip(basis) {
        let factor = values[width + line];
        let Some((row, sign)) = columns.get(*at) else {
            // The unknown is no sum of rows alone; the last artificial column stands for the constant.
            if *at != width + lines.len() - 1 && factor.num != 0 {
                return None;
            }
            continue;
        };
        let part = Fraction::new(factor.num.rem_euclid(factor.den), factor.den)?;
        common = common.checked_mul(part.den / gcd(common, part.den))?;
        parts.push((*row, *sign, part));
    }
    let whole = parts.iter().filter(|(.., part)| part.num != 0);
    let whole = whole
        .map(|(row, sign, part)| Some((*row, part.num.checked_mul(common / part.den)? * sign)));
    Some((common, whole.collect::<Option<Vec<_>>>()?)).filter(|(by, _)| (2..=LARGEST).contains(by))
}
