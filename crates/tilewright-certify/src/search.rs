//! Finds the proofs that a certificate's questions need.
//!
//! Equalities with a coefficient 1 are substituted, and what is left is a linear program: either
//! factors whose sum of rows is a contradiction (Farkas), which the simplex finds by solving for them, or a
//! rational point. A constant that a common divisor of the coefficients does not divide is rounded (a cut), also of
//! sums of rows that the basis of the simplex gives (Gomory 1958); an unknown that is no integer at the point is split.

use std::collections::BTreeMap;

use tilewright_check::judge::{Answer, Oracle};
use tilewright_check::proof::Proof;
use tilewright_check::set::{Affine, Row, System};

use crate::simplex::{Broken, Outcome, contradiction, gcd};

/// Splits inside of each other.
const DEPTH: usize = 24;
/// Linear programs after which a search that found nothing is no short one.
const SHORT: usize = 8;
/// Linear programs for one question, with rounded sums and without.
const PROGRAMS: [usize; 2] = [300, 1000];

/// Searches for proofs, and keeps them as lines of a file.
#[derive(Default)]
pub struct Search {
    pub steps: Vec<String>,
}

impl Oracle for Search {
    fn answer(&mut self, system: &System, targets: Option<&[Vec<Row>]>) -> Answer {
        let rows = &system.rows;
        let proof = match targets {
            Some(targets) => {
                let found = tried(|left| cover(rows, targets, DEPTH, left));
                Some(found.ok_or("no proof was found of what this needs")?)
            }
            None => tried(|left| void(rows, DEPTH, left)),
        };
        self.steps.push(proof.as_ref().map_or_else(|| "(go)".to_owned(), text));
        Ok((0, proof))
    }
}

/// What may still be done for one question.
struct Effort {
    /// Linear programs.
    programs: usize,
    /// Whether sums of rows that the simplex gives are rounded: most questions are decided by these, and some where
    /// digits are added by splits alone.
    by_basis: bool,
}

/// A proof with rounded sums, or else without. Where the first search was short, there is a point.
fn tried(search: impl Fn(&mut Effort) -> Option<Proof>) -> Option<Proof> {
    let [with, without] = PROGRAMS;
    let mut first = Effort { programs: with, by_basis: true };
    let found = search(&mut first);
    let is_long = with - first.programs > SHORT;
    let again = || search(&mut Effort { programs: without, by_basis: false });
    found.or_else(|| is_long.then(again).flatten())
}

/// A proof as it stands in a certificate.
fn text(proof: &Proof) -> String {
    let pairs = |factors: &[(usize, i128)]| -> String {
        factors.iter().map(|(at, k)| format!(" {at}:{k}")).collect()
    };
    match proof {
        Proof::Sum(factors) => format!("(sum{})", pairs(factors)),
        Proof::Cut(by, factors, rest) => format!("(cut {by}{} {})", pairs(factors), text(rest)),
        Proof::Split(on, yes, no) => {
            let terms: Vec<(usize, i128)> = on.terms.iter().map(|(at, k)| (*at, *k)).collect();
            format!("(split {}{} {} {})", on.constant, pairs(&terms), text(yes), text(no))
        }
        Proof::In(at, proofs) => {
            let proofs: Vec<String> = proofs.iter().map(|p| format!(" {}", text(p))).collect();
            format!("(in {at}{})", proofs.concat())
        }
    }
}

fn with(rows: &[Row], row: Affine) -> Vec<Row> {
    let mut rows = rows.to_vec();
    rows.push(Row::nonneg(row));
    rows
}

/// A proof that every point is in a target.
fn cover(rows: &[Row], targets: &[Vec<Row>], depth: usize, left: &mut Effort) -> Option<Proof> {
    let depth = depth.checked_sub(1)?;
    if let Some(proof) = void(rows, DEPTH, left) {
        return Some(proof);
    }
    let mut open: Option<Affine> = None;
    for (at, target) in targets.iter().enumerate() {
        let mut sides = Vec::new();
        for row in target {
            sides.extend(row.sides().ok()?);
        }
        let mut proofs = Vec::new();
        for side in &sides {
            let Some(proof) = void(&with(rows, side.complement().ok()?), DEPTH, left) else {
                // A split by what holds nowhere leads to nothing.
                if open.is_none() && void(&with(rows, side.clone()), DEPTH, left).is_none() {
                    open = Some(side.clone());
                }
                break;
            };
            proofs.push(proof);
        }
        if proofs.len() == sides.len() {
            return Some(Proof::In(at, proofs));
        }
    }
    let on = open.filter(|_| targets.len() > 1)?;
    let yes = cover(&with(rows, on.clone()), targets, depth, left)?;
    let no = cover(&with(rows, on.complement().ok()?), targets, depth, left)?;
    Some(Proof::Split(on, Box::new(yes), Box::new(no)))
}

/// Rows by their numbers, each with a factor.
type Factors = BTreeMap<usize, i128>;

/// A row that follows from others, with their factors.
#[derive(Clone)]
pub(crate) struct Derived {
    pub of: Affine,
    pub is_zero: bool,
    factors: Factors,
    /// Those by which the negative of an equality follows.
    back: Factors,
}

impl Derived {
    /// `self + k * other`, where `other` is an equality, or `k` is not negative and `self` is none.
    pub fn plus(&mut self, other: &Derived, k: i128) -> Option<()> {
        self.of = self.of.plus(&other.of, k).ok()?;
        add(&mut self.factors, other, k)?;
        if self.is_zero { add(&mut self.back, other, k.checked_neg()?) } else { Some(()) }
    }

    pub fn nothing(is_zero: bool) -> Derived {
        let (factors, back) = Default::default();
        Derived { of: Affine::default(), is_zero, factors, back }
    }

    fn scaled(&self, k: i128) -> Option<Derived> {
        let mut out = Derived::nothing(self.is_zero);
        out.plus(self, k)?;
        Some(out)
    }

    fn sum(&self) -> Proof {
        Proof::Sum(self.factors.iter().map(|(at, f)| (*at, *f)).collect())
    }

    pub fn content(&self) -> i128 {
        self.of.terms.values().fold(0, |g, c| gcd(g, *c))
    }
}

/// Adds the factors of a row that is taken `k` times.
fn add(to: &mut Factors, row: &Derived, k: i128) -> Option<()> {
    for (at, f) in if k < 0 { &row.back } else { &row.factors } {
        let old = to.get(at).copied().unwrap_or(0);
        to.insert(*at, f.checked_mul(k.checked_abs()?)?.checked_add(old)?);
    }
    to.retain(|_, f| *f != 0);
    Some(())
}

/// Rows that a proof adds before it goes on: each with its divisor, and the factors of the rows that it is of.
type Cuts = Vec<(i128, Vec<(usize, i128)>)>;

/// A proof that begins with cuts, without those that it does not use; they come after `base` rows.
fn wrapped(base: usize, cuts: Cuts, mut proof: Proof) -> Proof {
    for (k, (by, factors)) in cuts.into_iter().enumerate().rev() {
        proof = if uses(&proof, base + k) {
            Proof::Cut(by, factors, Box::new(proof))
        } else {
            without(proof, base + k)
        };
    }
    proof
}

/// Whether a proof uses a row.
fn uses(proof: &Proof, row: usize) -> bool {
    let has = |factors: &[(usize, i128)]| factors.iter().any(|(at, _)| *at == row);
    match proof {
        Proof::Sum(factors) => has(factors),
        Proof::Cut(_, factors, rest) => has(factors) || uses(rest, row),
        Proof::Split(_, yes, no) => uses(yes, row) || uses(no, row),
        Proof::In(_, parts) => parts.iter().any(|p| uses(p, row)),
    }
}

/// The proof where a row that it does not use is not there: later ones have lower numbers.
fn without(proof: Proof, row: usize) -> Proof {
    let fewer = |factors: Vec<(usize, i128)>| {
        factors.into_iter().map(|(at, f)| (at - usize::from(at > row), f)).collect()
    };
    let part = |p: Box<Proof>| Box::new(without(*p, row));
    match proof {
        Proof::Sum(factors) => Proof::Sum(fewer(factors)),
        Proof::Cut(by, factors, rest) => Proof::Cut(by, fewer(factors), part(rest)),
        Proof::Split(on, yes, no) => Proof::Split(on, part(yes), part(no)),
        Proof::In(at, parts) => Proof::In(at, parts.into_iter().map(|p| without(p, row)).collect()),
    }
}

/// Rounds of cuts by the ends of unknowns, and of those by the basis of the simplex, before unknowns are split.
const ROUNDS: [usize; 2] = [2, 6];

/// What is being refuted: rows, and what follows from them.
pub(crate) struct Refutation {
    rows: Vec<Row>,
    base: usize,
    cuts: Cuts,
    pub work: Vec<Derived>,
}

/// A proof that rows have no common integer point; `None` where none is found.
fn void(rows: &[Row], depth: usize, left: &mut Effort) -> Option<Proof> {
    let depth = depth.checked_sub(1)?;
    let derived = |(at, r): (usize, &Row)| Derived {
        of: r.of.clone(),
        is_zero: r.is_zero,
        factors: BTreeMap::from([(at, 1)]),
        back: if r.is_zero { BTreeMap::from([(at, -1)]) } else { BTreeMap::new() },
    };
    let work = rows.iter().enumerate().map(derived).collect();
    let mut r = Refutation { rows: rows.to_vec(), base: rows.len(), cuts: Vec::new(), work };
    let rounds = if left.by_basis { ROUNDS[0] + ROUNDS[1] } else { ROUNDS[0] };
    for round in 0..=rounds {
        left.programs = left.programs.checked_sub(1)?;
        if let Some(sum) = r.tighten()? {
            return Some(wrapped(r.base, r.cuts, sum));
        }
        let list: Vec<(&Affine, bool)> = r.work.iter().map(|d| (&d.of, d.is_zero)).collect();
        match contradiction(&list)? {
            Outcome::Factors(factors) => {
                let mut sum = Derived::nothing(false);
                for (d, k) in r.work.iter().zip(factors) {
                    sum.plus(d, k)?;
                }
                return Some(wrapped(r.base, r.cuts, sum.sum()));
            }
            Outcome::Point(None) => return None,
            Outcome::Point(Some(Broken { unknown, ceiling, cuts })) => {
                if round < 3 && r.join_digits(true)? {
                    continue;
                }
                if round < ROUNDS[0] && r.round_by_bounds()? {
                    continue;
                }
                if round < rounds && left.by_basis && r.round_by_basis(&cuts) {
                    continue;
                }
                let on = Affine::unknown(unknown).plus(&Affine::constant(ceiling), -1).ok()?;
                let no = void(&with(&r.rows, on.complement().ok()?), depth, left)?;
                let yes = void(&with(&r.rows, on.clone()), depth, left)?;
                let split = Proof::Split(on, Box::new(yes), Box::new(no));
                return Some(wrapped(r.base, r.cuts, split));
            }
        }
    }
    None
}

impl Refutation {
    /// Adds a row that is another one divided by what its coefficients have in common, rounded down.
    pub fn cut(&mut self, d: &Derived, by: i128) -> Derived {
        let mut of = d.of.clone();
        of.constant = of.constant.div_euclid(by);
        of.terms.values_mut().for_each(|c| *c /= by);
        self.cuts.push((by, d.factors.iter().map(|(at, f)| (*at, *f)).collect()));
        self.rows.push(Row::nonneg(of.clone()));
        let factors = BTreeMap::from([(self.rows.len() - 1, 1)]);
        Derived { of, factors, ..Derived::nothing(false) }
    }

    /// Uses equalities up and rounds constants; a proof where that meets a contradiction.
    fn tighten(&mut self) -> Option<Option<Proof>> {
        loop {
            substitute(&mut self.work)?;
            let mut rounded = false;
            for at in 0..self.work.len() {
                let d = self.work[at].clone();
                if d.of.terms.is_empty() {
                    match d.of.constant {
                        c if c < 0 => return Some(Some(d.sum())),
                        c if c > 0 && d.is_zero => return Some(Some(d.scaled(-1)?.sum())),
                        _ => continue,
                    }
                }
                let g = d.content();
                if g < 2 {
                    continue;
                }
                if d.is_zero {
                    // An equality that no integers satisfy is rounded from both sides; others are joined again.
                    let mut sum = self.cut(&d, g);
                    let other = self.cut(&d.scaled(-1)?, g);
                    if d.of.constant % g != 0 {
                        sum.plus(&other, 1)?;
                        return Some(Some(sum.sum()));
                    }
                    self.work[at] = sum;
                    self.work.push(other);
                    rounded = true;
                    continue;
                }
                self.work[at] = self.cut(&d, g);
                rounded = true;
            }
            if !rounded && !self.join_opposites()? && !self.join_digits(false)? {
                break;
            }
        }
        self.work.retain(|d| !d.of.terms.is_empty());
        // Of rows that differ in the constant alone, one says more.
        self.work.sort_by(|a, b| (&a.of.terms, a.of.constant).cmp(&(&b.of.terms, b.of.constant)));
        self.work.dedup_by(|b, a| a.of.terms == b.of.terms && !a.is_zero && !b.is_zero);
        Some(None)
    }

    /// Makes equalities of inequalities that are opposite; whether there were some.
    fn join_opposites(&mut self) -> Option<bool> {
        let mut known: BTreeMap<Affine, Factors> = BTreeMap::new();
        let mut joined = Vec::new();
        for d in self.work.iter().filter(|d| !d.is_zero && !d.of.terms.is_empty()) {
            let negative = Affine::default().plus(&d.of, -1).ok()?;
            match known.remove(&negative) {
                Some(back) => {
                    let (of, factors) = (d.of.clone(), d.factors.clone());
                    joined.push((negative, Derived { of, is_zero: true, factors, back }));
                }
                None => drop(known.insert(d.of.clone(), d.factors.clone())),
            }
        }
        for (negative, eq) in &joined {
            self.work.retain(|d| d.is_zero || d.of != eq.of && d.of != *negative);
            self.work.push(eq.clone());
        }
        Some(!joined.is_empty())
    }

    /// Rounds rows in which some unknowns are replaced by their ends, so that what is left has a common divisor;
    /// whether a row is new.
    fn round_by_bounds(&mut self) -> Option<bool> {
        let mut added = Vec::new();
        for d in self.work.clone().iter().filter(|d| !d.is_zero) {
            let mut divisors: Vec<i128> = d.of.terms.values().map(|c| c.abs()).collect();
            divisors.sort_unstable();
            divisors.dedup();
            for by in divisors.into_iter().filter(|g| *g > 1) {
                let Some(sum) = self.at_ends(d, by) else { continue };
                if sum.of.terms.is_empty() || sum.of.constant % by == 0 {
                    continue;
                }
                let rest: BTreeMap<usize, i128> =
                    sum.of.terms.iter().map(|(u, c)| (*u, c / by)).collect();
                let constant = sum.of.constant.div_euclid(by);
                let known = self.work.iter().chain(&added);
                let mut known = known.filter(|k: &&Derived| k.of.terms == rest);
                if !known.any(|k| k.of.constant <= constant) {
                    added.push(self.cut(&sum, by));
                }
            }
        }
        let is_new = !added.is_empty();
        self.work.extend(added);
        Some(is_new)
    }

    /// Rounds sums of rows that the simplex found; whether a row is new.
    fn round_by_basis(&mut self, cuts: &[(i128, Vec<(usize, i128)>)]) -> bool {
        let mut added = Vec::new();
        for (by, rows) in cuts {
            let mut sum = Derived::nothing(false);
            let whole = rows.iter().try_for_each(|(at, k)| sum.plus(self.work.get(*at)?, *k));
            let divides = sum.of.terms.values().all(|c| c % by == 0);
            if whole.is_none() || !divides || sum.of.constant % by == 0 {
                continue;
            }
            added.push(self.cut(&sum, *by));
        }
        let is_new = !added.is_empty();
        self.work.extend(added);
        is_new
    }

    /// A row in which the unknowns whose coefficients a number does not divide are at their ends.
    fn at_ends(&self, d: &Derived, by: i128) -> Option<Derived> {
        let mut sum = d.clone();
        for (unknown, c) in d.of.terms.iter().filter(|(_, c)| *c % by != 0) {
            // A row `end - u >= 0` for a positive coefficient, or `u - end >= 0`.
            let end = self.work.iter().find(|b| {
                b.of.terms.len() == 1 && b.of.terms.get(unknown) == Some(&-c.signum()) && !b.is_zero
            })?;
            sum.plus(end, c.abs())?;
        }
        Some(sum)
    }
}

/// Uses equalities with a coefficient 1 up.
fn substitute(work: &mut Vec<Derived>) -> Option<()> {
    while let Some((at, unknown)) = work.iter().enumerate().find_map(|(at, d)| {
        let unit = d.of.terms.iter().find(|(_, c)| c.abs() == 1).map(|(u, _)| *u);
        unit.filter(|_| d.is_zero).map(|u| (at, u))
    }) {
        let eq = work.swap_remove(at);
        let sign = eq.of.terms[&unknown];
        for d in work.iter_mut() {
            if let Some(c) = d.of.terms.get(&unknown).copied() {
                d.plus(&eq, -c * sign)?;
            }
        }
    }
    Some(())
}
