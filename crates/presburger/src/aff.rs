//! Quasi-affine functions, and functions that are such piece by piece.

use std::sync::Arc;

use crate::basic::{Basic, Quotient};
use crate::coalesce::coalesce;
use crate::hull::equations;
use crate::matrix::{content, substitute, value};
use crate::num::{Budget, Int, Res, Stop, add, gcd, mul, neg};
use crate::relation::{Dim, Relation, Set, Space, is_universe, least};

/// An affine function of dimensions and of explicit divisions, over a denominator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Aff {
    /// The dimensions and divisions; no constraint.
    frame: Basic,
    row: Vec<Int>,
    den: Int,
}

/// A function that is quasi-affine on each of some sets without a common point, and undefined
/// elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PwAff {
    space: Space,
    pieces: Arc<Vec<(Set, Aff)>>,
}

impl Aff {
    /// The affine function of all dimensions of a space: the constant, and a coefficient a
    /// dimension, parameters first.
    pub fn new(row: Vec<Int>) -> Aff {
        Aff { frame: Basic::universe(row.len() - 1), row, den: 1 }
    }

    /// The function with another constant.
    pub fn with_constant(mut self, value: Int) -> Aff {
        self.row[0] = value;
        self
    }

    /// The function with another coefficient of a dimension.
    pub fn with_coefficient(mut self, dim: usize, value: Int) -> Aff {
        self.row[1 + dim] = value;
        self
    }

    /// The constant of the numerator.
    pub fn constant(&self) -> Int {
        self.row[0]
    }

    /// A coefficient of the numerator.
    pub fn coefficient(&self, dim: usize) -> Int {
        self.row[1 + dim]
    }

    /// The coefficient of a division in the numerator.
    pub fn div_coefficient(&self, div: usize) -> Int {
        self.row[self.frame.div_col(div)]
    }

    pub fn denominator(&self) -> Int {
        self.den
    }

    /// The number of dimensions.
    pub fn dims(&self) -> usize {
        self.frame.dims
    }

    /// The number of divisions.
    pub fn divs(&self) -> usize {
        self.frame.divs.len()
    }

    /// What division `at` is the floor of.
    pub fn div(&self, at: usize) -> Aff {
        let def = self.frame.divs.row(at);
        let mut inner =
            Aff { frame: self.frame.clone(), row: def[1..].to_vec(), den: def[0].max(1) };
        inner.prune();
        inner
    }

    pub(crate) fn of_parts(frame: Basic, row: Vec<Int>, den: Int) -> Aff {
        let mut out = Aff { frame, row, den };
        out.prune();
        // Where a number is too large it is right as it is.
        out.simplified().unwrap_or(out)
    }

    /// The same function with each division in its shortest form.
    fn simplified(&self) -> Res<Aff> {
        if !self.frame.all_explicit() {
            return Ok(self.clone());
        }
        let (dims, n) = (self.frame.dims, self.frame.divs.len());
        let mut simple = Aff::new(self.row[..1 + dims].to_vec());
        let mut known: Vec<Aff> = Vec::new();
        for div in 0..n {
            let def = self.frame.divs.row(div);
            let mut inner = Aff::new(def[1..2 + dims].to_vec());
            for (e, c) in known.iter().zip(&def[2 + dims..]) {
                if *c != 0 {
                    inner = inner.add_scaled(e, *c)?;
                }
            }
            let e = inner.scale_down(def[0])?.floor()?;
            let c = self.row[self.frame.div_col(div)];
            if c != 0 {
                simple = simple.add_scaled(&e, c)?;
            }
            known.push(e);
        }
        simple.scale_down(self.den)
    }

    /// The columns, the numerator in them, and the denominator.
    pub(crate) fn parts(&self) -> (&Basic, &[Int], Int) {
        (&self.frame, &self.row, self.den)
    }

    /// The same function without a dimension that it does not depend on.
    pub(crate) fn without_dim(&self, dim: usize) -> Res<Aff> {
        let mut out = self.clone();
        if out.row[1 + dim] != 0 || out.frame.divs.rows().any(|d| d[2 + dim] != 0) {
            return Err(Stop::NoForm);
        }
        out.row.remove(1 + dim);
        out.frame.remove_dim(dim);
        Ok(out)
    }

    /// Drops what is not used.
    fn prune(&mut self) {
        let g = gcd(content(&self.row), self.den);
        if g > 1 {
            self.row.iter_mut().for_each(|v| *v /= g);
            self.den /= g;
        }
        for div in (0..self.frame.divs.len()).rev() {
            let col = self.frame.div_col(div);
            if self.row[col] == 0 && self.frame.divs.rows().all(|d| d[1 + col] == 0) {
                self.frame.remove_div(div);
                self.row.remove(col);
            }
        }
    }

    /// Another function in these columns, to which its divisions are added.
    fn align(&mut self, other: &Aff) -> Vec<Int> {
        let place = self.frame.take_divs(&other.frame.divs);
        self.row.resize(self.frame.width(), 0);
        self.frame.adopt(&other.row, &place)
    }

    /// `self + k * other`.
    pub fn add_scaled(&self, other: &Aff, k: Int) -> Res<Aff> {
        let mut out = self.clone();
        let row = out.align(other);
        let g = gcd(out.den, other.den);
        let (up, across) = (other.den / g, mul(k, out.den / g)?);
        for (v, o) in out.row.iter_mut().zip(&row) {
            *v = add(mul(*v, up)?, mul(*o, across)?)?;
        }
        out.den = mul(out.den, up)?;
        out.prune();
        Ok(out)
    }

    /// The product with an integer.
    pub fn scale(&self, k: Int) -> Res<Aff> {
        let mut out = self.clone();
        for v in &mut out.row {
            *v = mul(*v, k)?;
        }
        out.prune();
        Ok(out)
    }

    /// The quotient by a positive integer, a fraction.
    pub fn scale_down(&self, k: Int) -> Res<Aff> {
        let mut out = self.clone();
        out.den = mul(out.den, k)?;
        out.prune();
        Ok(out)
    }

    /// The greatest integer that is not above.
    pub fn floor(&self) -> Res<Aff> {
        let mut out = self.clone();
        if out.den == 1 {
            return Ok(out);
        }
        let mut def = vec![out.den];
        def.extend_from_slice(&out.row);
        let mut whole = vec![0; out.row.len()];
        loop {
            if let Some(q) = Quotient::from_definition(&def)? {
                for (w, q) in whole.iter_mut().zip(&q.whole) {
                    *w = add(*w, *q)?;
                }
                def[0] = q.den;
                def[1..].copy_from_slice(&q.rest);
            }
            // floor((floor(f / a) + c) / b) = floor((f + a c) / (a b))
            let first = 1 + out.frame.dims;
            let inner = (first..out.row.len()).find(|k| def[1 + k] != 0);
            let Some(k) = inner.filter(|k| {
                def[0] != 1
                    && def[1 + k] == 1
                    && def[2..].iter().enumerate().all(|(i, v)| i + 1 == *k || *v == 0)
            }) else {
                break;
            };
            let (b, c) = (def[0], def[1]);
            let inner = out.frame.divs.row(k - first).to_vec();
            def.copy_from_slice(&inner);
            def[1] = add(def[1], mul(inner[0], c)?)?;
            def[0] = mul(inner[0], b)?;
        }
        out.row = whole;
        out.den = 1;
        if def[0] != 1 {
            let col = match out.frame.divs.rows().position(|d| d == def.as_slice()) {
                Some(at) => out.frame.div_col(at),
                None => {
                    let col = out.frame.add_div();
                    let div = out.frame.divs.len() - 1;
                    def.push(0);
                    out.frame.set_def(div, def[0], &def[1..]);
                    out.row.push(0);
                    col
                }
            };
            out.row[col] = add(out.row[col], 1)?;
        }
        out.prune();
        Ok(out)
    }

    /// `self - k * floor(self / k)`.
    pub fn modulo(&self, k: Int) -> Res<Aff> {
        self.add_scaled(&self.scale_down(k)?.floor()?, neg(k)?)
    }

    /// The value at a point; `None` where it is no integer.
    pub fn at(&self, point: &[Int]) -> Res<Option<Int>> {
        let mut point = point.to_vec();
        for def in self.frame.divs.rows() {
            let v = value(&def[1..], &point)?;
            point.push(crate::num::floor_div(v, def[0]));
        }
        let v = value(&self.row, &point)?;
        Ok((v % self.den == 0).then_some(v / self.den))
    }

    /// Whether it is zero as it is written.
    fn is_zero(&self) -> bool {
        self.row.iter().all(|v| *v == 0)
    }

    /// The points at which it is zero, or not negative.
    fn condition(&self, space: &Space, equal: bool) -> Res<Set> {
        let mut basic = self.frame.clone();
        if equal {
            basic.eqs.push(&self.row)
        } else {
            basic.ineqs.push(&self.row)
        }
        basic.normalize()?;
        Ok(Relation::new(space.clone(), vec![basic]))
    }

    /// The points at which it is not negative.
    pub fn nonneg(&self, space: &Space) -> Res<Set> {
        self.condition(space, false)
    }

    /// The points at which it is zero.
    pub fn zero(&self, space: &Space) -> Res<Set> {
        self.condition(space, true)
    }

    /// A simpler function that is the same on a set.
    fn gist(&self, set: &Set, budget: &Budget) -> Res<Aff> {
        let (dims, n) = (self.frame.dims, self.frame.divs.len());
        // The divisions as further dimensions.
        let mut parts = Vec::new();
        for p in set.parts.iter() {
            let mut p = p.clone();
            p.insert_dims(dims, n);
            for div in 0..n {
                for row in self.frame.div_rows(div)? {
                    let mut row = row;
                    row.resize(p.width(), 0);
                    p.ineqs.push(&row);
                }
            }
            parts.push(p);
        }
        let Some(eqs) = equations(&parts, dims + n, budget)? else { return Ok(self.clone()) };
        let mut out = self.clone();
        for eq in eqs.iter().rev() {
            let Some(k) = eq.iter().rposition(|v| *v != 0).filter(|k| *k > 0) else { continue };
            if eq[k].abs() != 1 {
                continue;
            }
            let mut expr = eq.clone();
            if expr[k] > 0 {
                crate::matrix::negate(&mut expr)?;
            }
            expr[k] = 0;
            substitute(&mut out.row, k, &expr)?;
            // Definitions look back, as the equation does.
            for div in 0..n {
                if k < out.frame.div_col(div) {
                    let def = out.frame.divs.row_mut(div);
                    substitute(&mut def[1..], k, &expr)?;
                }
            }
        }
        out.simplified()
    }
}

impl PwAff {
    /// A function that is defined everywhere.
    pub fn new(space: &Space, aff: Aff) -> PwAff {
        PwAff::of_pieces(space.clone(), vec![(Relation::universe(space), aff)])
    }

    pub(crate) fn of_pieces(space: Space, pieces: Vec<(Set, Aff)>) -> PwAff {
        PwAff { space, pieces: Arc::new(pieces) }
    }

    /// The space of the points.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The pieces: where, and which function.
    pub fn pieces(&self) -> &[(Set, Aff)] {
        &self.pieces
    }

    /// An operation on the functions alone.
    fn map(&self, f: impl Fn(&Aff) -> Res<Aff>) -> Res<PwAff> {
        let pieces = self.pieces.iter().map(|(s, a)| Ok((s.clone(), f(a)?)));
        Ok(PwAff::of_pieces(self.space.clone(), pieces.collect::<Res<_>>()?))
    }

    /// An operation on each pair of pieces with a common point.
    fn pairs(
        &self,
        other: &PwAff,
        budget: &Budget,
        mut f: impl FnMut(Set, &Aff, &Aff, &mut Vec<(Set, Aff)>) -> Res<()>,
    ) -> Res<PwAff> {
        let mut pieces = Vec::new();
        let many = self.pieces.len() > 1 || other.pieces.len() > 1;
        for (s, a) in self.pieces.iter() {
            for (t, b) in other.pieces.iter() {
                budget.charge(1)?;
                let both = s.intersect(t, budget)?;
                if both.is_nothing() || many && both.is_empty(budget)? {
                    continue;
                }
                f(both, a, b, &mut pieces)?;
            }
        }
        Ok(PwAff::of_pieces(self.space.clone(), pieces))
    }

    /// The sum, where both are defined.
    pub fn add(&self, other: &PwAff, budget: &Budget) -> Res<PwAff> {
        self.pairs(other, budget, |set, a, b, out| {
            out.push((set, a.add_scaled(b, 1)?));
            Ok(())
        })
    }

    /// The negative.
    pub fn neg(&self) -> Res<PwAff> {
        self.scale(-1)
    }

    /// The product with an integer.
    pub fn scale(&self, k: Int) -> Res<PwAff> {
        self.map(|a| a.scale(k))
    }

    /// The quotient by a positive integer, a fraction.
    pub fn scale_down(&self, k: Int) -> Res<PwAff> {
        self.map(|a| a.scale_down(k))
    }

    /// Rounded down.
    pub fn floor(&self) -> Res<PwAff> {
        self.map(Aff::floor)
    }

    /// The remainder from zero by a positive integer.
    pub fn modulo(&self, k: Int) -> Res<PwAff> {
        self.map(|a| a.modulo(k))
    }

    /// The smaller of both, where both are defined.
    pub fn min(&self, other: &PwAff, budget: &Budget) -> Res<PwAff> {
        self.extremum(other, false, budget)
    }

    /// The greater of both, where both are defined.
    pub fn max(&self, other: &PwAff, budget: &Budget) -> Res<PwAff> {
        self.extremum(other, true, budget)
    }

    fn extremum(&self, other: &PwAff, greater: bool, budget: &Budget) -> Res<PwAff> {
        self.pairs(other, budget, |set, a, b, out| {
            // Where the first one is taken.
            let d = if greater { a.add_scaled(b, -1)? } else { b.add_scaled(a, -1)? };
            let first = set.intersect(&d.nonneg(set.space())?, budget)?;
            // d < 0 over its denominator: -numerator - 1 >= 0.
            let mut opposite = d.scale(d.den)?.scale(-1)?;
            opposite.row[0] = add(opposite.row[0], -1)?;
            let second = set.intersect(&opposite.nonneg(set.space())?, budget)?;
            for (set, aff) in [(first, a), (second, b)] {
                if !set.is_empty(budget)? {
                    out.push((set, aff.clone()));
                }
            }
            Ok(())
        })
    }

    /// The function on a part of its points.
    pub fn intersect_domain(&self, set: &Set, budget: &Budget) -> Res<PwAff> {
        let mut pieces = Vec::new();
        for (s, a) in self.pieces.iter() {
            let both = s.intersect(set, budget)?;
            if !both.is_nothing() {
                pieces.push((both, a.clone()));
            }
        }
        Ok(PwAff::of_pieces(self.space.clone(), pieces))
    }

    /// Where it is defined.
    pub fn domain(&self) -> Set {
        let empty = Relation::empty(&self.space);
        self.pieces.iter().fold(empty, |all, (s, _)| all.union(s))
    }

    /// The sum where both are defined, and the one that is defined elsewhere.
    pub fn union_add(&self, other: &PwAff, budget: &Budget) -> Res<PwAff> {
        let mut pieces = (*self.add(other, budget)?.pieces).clone();
        for (one, two) in [(self, other), (other, self)] {
            let there = two.domain();
            for (s, a) in one.pieces.iter() {
                let alone = s.subtract(&there, budget)?;
                if !alone.is_nothing() {
                    pieces.push((alone, a.clone()));
                }
            }
        }
        Ok(PwAff::of_pieces(self.space.clone(), pieces))
    }

    /// The union over the pieces of where a condition holds.
    fn condition(&self, budget: &Budget, f: impl Fn(&Aff) -> Res<Vec<Set>>) -> Res<Set> {
        let mut out = Relation::empty(&self.space);
        for (s, a) in self.pieces.iter() {
            for part in f(a)? {
                out = out.union(&s.intersect(&part, budget)?);
            }
        }
        Ok(out)
    }

    /// The points at which it is not negative.
    pub fn nonneg(&self, budget: &Budget) -> Res<Set> {
        self.condition(budget, |a| Ok(vec![a.nonneg(&self.space)?]))
    }

    /// The points at which it is zero.
    pub fn zero(&self, budget: &Budget) -> Res<Set> {
        self.condition(budget, |a| Ok(vec![a.zero(&self.space)?]))
    }

    /// The points at which it is defined and not zero.
    pub fn non_zero(&self, budget: &Budget) -> Res<Set> {
        self.condition(budget, |a| {
            let (mut above, mut below) = (a.clone(), a.clone());
            crate::matrix::negate(&mut below.row)?;
            above.row[0] = add(above.row[0], -1)?;
            below.row[0] = add(below.row[0], -1)?;
            Ok(vec![below.nonneg(&self.space)?, above.nonneg(&self.space)?])
        })
    }

    /// A simpler function that is the same inside of a context.
    pub fn gist(&self, context: &Set, budget: &Budget) -> Res<PwAff> {
        if is_universe(context) && matches!(&self.pieces[..], [(s, _)] if is_universe(s)) {
            return Ok(self.clone());
        }
        let mut pieces = Vec::new();
        for (s, a) in self.pieces.iter() {
            let inside = s.intersect(context, budget)?;
            if inside.is_empty(budget)? {
                continue;
            }
            let aff = a.gist(&inside, budget)?;
            let s = if is_universe(s) { s.clone() } else { s.gist(context, budget)? };
            pieces.push((s, aff));
        }
        Ok(PwAff::of_pieces(self.space.clone(), pieces))
    }

    /// Pieces with one function become one.
    pub fn coalesce(&self, budget: &Budget) -> Res<PwAff> {
        let mut pieces: Vec<(Set, Aff)> = Vec::new();
        for (s, a) in self.pieces.iter() {
            let mut same = None;
            for (at, (_, b)) in pieces.iter().enumerate() {
                if a == b || a.add_scaled(b, -1)?.is_zero() {
                    same = Some(at);
                    break;
                }
            }
            match same {
                Some(at) => pieces[at].0 = pieces[at].0.union(s),
                None => pieces.push((s.clone(), a.clone())),
            }
        }
        for (s, _) in &mut pieces {
            if s.count() > 1 {
                *s = Relation::new(self.space.clone(), coalesce(&s.parts, budget)?);
            }
        }
        Ok(PwAff::of_pieces(self.space.clone(), pieces))
    }

    /// The least value, or the greatest, as a numerator and a denominator.
    ///
    /// # Errors
    /// [`Stop::Empty`] and [`Stop::Unbounded`], among others.
    pub fn extreme_value(&self, greatest: bool, budget: &Budget) -> Res<(Int, Int)> {
        let mut best: Option<(Int, Int)> = None;
        for (s, a) in self.pieces.iter() {
            for p in s.parts.iter() {
                let mut p = p.clone();
                let place = p.take_divs(&a.frame.divs);
                let mut f = p.adopt(&a.row, &place);
                if greatest {
                    crate::matrix::negate(&mut f)?;
                }
                let v = match least(&p, &f, budget) {
                    Ok((v, _)) => v,
                    Err(Stop::Empty) => continue,
                    Err(e) => return Err(e),
                };
                let less = match best {
                    None => true,
                    Some((w, d)) => mul(v, d)? < mul(w, a.den)?,
                };
                if less {
                    best = Some((v, a.den));
                }
            }
        }
        let (v, d) = best.ok_or(Stop::Empty)?;
        let g = gcd(v, d);
        Ok((if greatest { neg(v / g)? } else { v / g }, d / g))
    }

    /// The relation from each point to the value.
    pub fn graph(&self) -> Res<Relation> {
        let dims = self.space.dim(Dim::Out);
        let total = self.space.total();
        let space = self.space.with(dims, 1);
        let mut parts = Vec::new();
        for (s, a) in self.pieces.iter() {
            for p in s.parts.iter() {
                let mut p = p.clone();
                let place = p.take_divs(&a.frame.divs);
                let mut row = p.adopt(&a.row, &place);
                p.insert_dims(total, 1);
                row.insert(1 + total, neg(a.den)?);
                p.eqs.push(&row);
                p.normalize()?;
                parts.push(p);
            }
        }
        Ok(Relation::new(space, parts))
    }
}
