//! Constants whose elements are known.
//!
//! An element of such a constant is an atom of its own. What stands before the other atoms of a polynomial, a sum of
//! products of elements of constants, is a *coefficient*: a function of the axes of the stage, and of the indices that data
//! decide. Two coefficients are one where their values are, for all values of these. So weights that were dequantised,
//! and those that are multiplied as integers and scaled behind the sum, are the same, and whatever else an optimiser
//! computes of constants beforehand.
//!
//! What all that a sum adds up has in common for one element of the result goes out of the sum ([`Each`]), as does what
//! is added for each.

use std::collections::BTreeMap;

use tilewright_ir::index::Linear;
use tilewright_ir::{Expr, Tensor};

use super::polynomial::{Monomial, Poly, constant, plus};
use super::{Atom, ROUNDING, Reals};

/// Most elements of constants, times terms, that are computed for one coefficient.
const ELEMENTS: usize = 1 << 24;

/// A constant, as it lies in memory.
pub(super) struct Constant {
    values: Vec<f64>,
    /// The largest magnitude of what was added up to an element.
    size: f64,
    /// The least and the largest element, where all are integers.
    pub(super) whole: Option<(i128, i128)>,
}

/// What an offset counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Counted {
    Axis(usize),
    /// An expression of integers, as text.
    Other(String),
}

/// An offset without names: a [`Linear`] form of axes by their numbers, and of other expressions by their texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Offset {
    steps: BTreeMap<Counted, i64>,
    base: i64,
}

impl Offset {
    fn add(&mut self, other: &Offset, factor: i64) -> Option<()> {
        self.base = self.base.checked_add(other.base.checked_mul(factor)?)?;
        for (counted, step) in &other.steps {
            let sum = self.steps.entry(counted.clone()).or_default();
            *sum = sum.checked_add(step.checked_mul(factor)?)?;
        }
        self.steps.retain(|_, step| *step != 0);
        Some(())
    }
}

/// A number for each element of a buffer: a constant, and of which indices its offset is made.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Each {
    constant: usize,
    by: Vec<(usize, i64)>,
}

/// A sum of products of elements of constants with numbers.
pub(super) type Coefficient = Vec<(Monomial, f64)>;

/// What is counted, and up to where.
pub(super) type Grid = Vec<(Counted, usize)>;

impl Reals {
    /// The number of a constant.
    pub(super) fn know_constant(&mut self, t: &Tensor) -> usize {
        self.constant((0..t.len()).map(|k| t.get_f64(k)).collect(), 0.0)
    }

    fn constant(&mut self, values: Vec<f64>, size: f64) -> usize {
        if let Some(known) = self.constants.iter().position(|c| c.values == values) {
            return known;
        }
        let size = values.iter().fold(size, |most, v| most.max(v.abs()));
        // Beyond, floats have no fractions.
        let is_whole = values.iter().all(|v| v.fract() == 0.0 && v.abs() < 9e15);
        let ends = values.iter().map(|v| *v as i128);
        let whole = Option::zip(ends.clone().min(), ends.max()).filter(|_| is_whole);
        self.constants.push(Constant { values, size, whole });
        self.constants.len() - 1
    }

    /// The element of a constant at an offset.
    pub(super) fn element_of_constant(&mut self, id: usize, at: Offset) -> Poly {
        self.of_atom(Atom::Constant(id, at))
    }

    /// What an index counts.
    pub(super) fn offset(&self, side: usize, e: &Expr) -> Option<Offset> {
        let sum = Linear::from_expr(e)?;
        let mut all = Offset { base: i64::try_from(sum.constant).ok()?, ..Offset::default() };
        for (atom, step) in &sum.terms {
            let axis = atom.as_var().and_then(|v| self.axes.get(&v.id()));
            let counted = match axis {
                Some(axis) => Counted::Axis(*axis),
                None => Counted::Other(self.text(side, atom)?),
            };
            let one = Offset { steps: BTreeMap::from([(counted, 1)]), base: 0 };
            all.add(&one, i64::try_from(*step).ok()?)?;
        }
        Some(all)
    }

    fn as_constant(&self, atom: usize) -> Option<(&Constant, &Offset)> {
        match &self.atoms[atom] {
            Atom::Constant(id, at) => Some((&self.constants[*id], at)),
            _ => None,
        }
    }

    /// Whether elements of constants are part of a polynomial.
    pub(super) fn has_constants(&self, p: &Poly) -> bool {
        p.keys().flatten().any(|(atom, _)| self.as_constant(*atom).is_some())
    }

    /// Whether a polynomial is made of constants alone, and is no number.
    fn is_constant(&self, p: &Poly) -> bool {
        p.keys().flatten().all(|(atom, _)| self.as_constant(*atom).is_some())
    }

    /// The coefficients of a polynomial, by the other atoms.
    pub(super) fn coefficients(&self, p: &Poly) -> BTreeMap<Monomial, Coefficient> {
        let mut all: BTreeMap<Monomial, Coefficient> = BTreeMap::new();
        for (m, c) in p {
            let is_known = |(atom, _): &&(usize, i32)| self.as_constant(*atom).is_some();
            let (known, others): (Monomial, Monomial) = m.iter().partition(is_known);
            all.entry(others).or_default().push((known, *c));
        }
        all
    }

    /// The polynomial whose coefficient this is.
    fn joined(others: &Monomial, coefficient: &Coefficient) -> Poly {
        let each = coefficient.iter().map(|(m, c)| {
            let mut all = [m.clone(), others.clone()].concat();
            all.sort_unstable();
            (all, *c)
        });
        each.collect()
    }

    /// What coefficients depend on; `None` where its extent is not known.
    pub(super) fn grid<'c>(&self, of: impl IntoIterator<Item = &'c Coefficient>) -> Option<Grid> {
        let mut grid: BTreeMap<Counted, usize> = BTreeMap::new();
        for (atom, _) in of.into_iter().flatten().flat_map(|(m, _)| m) {
            let (constant, at) = self.as_constant(*atom)?;
            for (counted, step) in &at.steps {
                let extent = match counted {
                    Counted::Axis(k) => self.dims.get(*k)?.known()?,
                    // An index is within what it is an index of.
                    Counted::Other(_) => {
                        constant.values.len().div_ceil(usize::try_from(*step).ok()?)
                    }
                };
                let known = grid.entry(counted.clone()).or_insert(extent);
                *known = extent.min(*known);
            }
        }
        Some(grid.into_iter().collect())
    }

    /// The values of a coefficient, the last of what is counted fastest, and the largest magnitude of what was added up.
    pub(super) fn values(&self, of: &Coefficient, grid: &Grid) -> Option<(Vec<f64>, f64)> {
        let count = grid.iter().try_fold(1usize, |n, (_, m)| n.checked_mul(*m))?;
        if count.checked_mul(of.len().max(1))? > ELEMENTS {
            return None;
        }
        let (mut all, mut size) = (vec![0.0; count], 0.0);
        for (m, c) in of {
            let mut largest = c.abs();
            let mut factors = Vec::new();
            for (atom, power) in m {
                let (constant, at) = self.as_constant(*atom)?;
                let step = |counted| at.steps.get(counted).copied().unwrap_or(0);
                let steps: Vec<i64> = grid.iter().map(|(counted, _)| step(counted)).collect();
                largest *= match power {
                    1.. => constant.size.powi(*power),
                    _ => {
                        let powers = constant.values.iter().map(|v| v.abs().powi(*power));
                        powers.fold(0.0, f64::max)
                    }
                };
                factors.push((&constant.values, at.base, steps, *power));
            }
            size += largest;
            let mut at = vec![0; grid.len()];
            for slot in &mut all {
                let mut value = *c;
                for (values, offset, _, power) in &factors {
                    let element = *values.get(usize::try_from(*offset).ok()?)?;
                    value *= if *power == 1 { element } else { element.powi(*power) };
                }
                *slot += value;
                for (k, (_, extent)) in grid.iter().enumerate().rev() {
                    at[k] += 1;
                    let is_end = at[k] == *extent;
                    let moved = if is_end { 1 - i64::try_from(*extent).ok()? } else { 1 };
                    for (_, offset, steps, _) in &mut factors {
                        *offset += moved * steps[k];
                    }
                    if !is_end {
                        break;
                    }
                    at[k] = 0;
                }
            }
        }
        Some((all, size))
    }

    /// The constant that has some values on a grid.
    fn on_grid(&mut self, grid: &Grid, values: Vec<f64>, size: f64) -> Option<Poly> {
        let (mut steps, mut step) = (BTreeMap::new(), 1);
        for (counted, extent) in grid.iter().rev() {
            steps.insert(counted.clone(), step);
            step *= i64::try_from(*extent).ok()?;
        }
        let id = self.constant(values, size);
        Some(self.element_of_constant(id, Offset { steps, base: 0 }))
    }

    /// A function of constants alone; `None` where other things are part of it, or numbers are all.
    pub(super) fn evaluated(&mut self, of: &[Poly], f: impl Fn(&[f64]) -> f64) -> Option<Poly> {
        let is_known = of.iter().all(|p| self.is_constant(p));
        if !is_known || !of.iter().any(|p| self.has_constants(p)) {
            return None;
        }
        let of: Vec<Coefficient> =
            of.iter().map(|p| p.iter().map(|(m, c)| (m.clone(), *c)).collect()).collect();
        let grid = self.grid(&of)?;
        let columns: Option<Vec<Vec<f64>>> =
            of.iter().map(|c| Some(self.values(c, &grid)?.0)).collect();
        let columns = columns?;
        let rows = (0..columns.first()?.len())
            .map(|k| f(&columns.iter().map(|c| c[k]).collect::<Vec<f64>>()));
        let values: Vec<f64> = rows.collect();
        self.on_grid(&grid, values, 0.0)
    }

    /// The largest difference of coefficients, as a part of the larger one, or of the largest element of a constant; `None`
    /// where the polynomials are not equal but for rounding.
    pub(super) fn differences(&self, p: &Poly, q: &Poly) -> Option<f64> {
        if !self.has_constants(p) && !self.has_constants(q) {
            return super::polynomial::differences(p, q);
        }
        let (mut ps, mut qs) = (self.coefficients(p), self.coefficients(q));
        let mut worst: f64 = 0.0;
        let all: Vec<Monomial> = ps.keys().chain(qs.keys()).cloned().collect();
        for others in all {
            let (x, y) = (ps.remove(&others), qs.remove(&others));
            if x.is_none() && y.is_none() || x == y {
                continue;
            }
            let (x, y) = (x.unwrap_or_default(), y.unwrap_or_default());
            let grid = self.grid([&x, &y])?;
            let ((x, a), (y, b)) = (self.values(&x, &grid)?, self.values(&y, &grid)?);
            for (x, y) in x.iter().zip(&y).filter(|(x, y)| x != y) {
                let part = (x - y).abs() / a.max(b);
                if part.is_nan() || part > ROUNDING {
                    return None;
                }
                worst = worst.max(part);
            }
        }
        Some(worst)
    }

    /// A coefficient as a number for each element of the buffer that is stored at some indices.
    fn each(&mut self, at: &[Expr], of: &Poly) -> Option<(f64, Option<Each>)> {
        if let Some(number) = super::number(of) {
            return Some((number, None));
        }
        let of: Coefficient = of.iter().map(|(m, c)| (m.clone(), *c)).collect();
        let grid = self.grid([&of])?;
        let (values, size) = self.values(&of, &grid)?;
        if let [number] = values[..] {
            return Some((number, None));
        }
        // The axes, as they are among the indices.
        let mut by = Vec::new();
        let mut step = 1;
        for (counted, extent) in grid.iter().rev() {
            let is_axis = |e: &Expr| {
                let axis = e.as_var().and_then(|v| self.axes.get(&v.id()));
                axis.is_some_and(|k| Counted::Axis(*k) == *counted)
            };
            let Some(place) = at.iter().position(is_axis) else {
                return self.each_along(at, &grid, &values, size);
            };
            by.push((place, step));
            step *= i64::try_from(*extent).ok()?;
        }
        by.sort_unstable();
        let constant = self.constant(values, size);
        Some((1.0, Some(Each { constant, by })))
    }

    /// The same where one index is a sum of multiples of axes.
    fn each_along(
        &mut self,
        at: &[Expr],
        grid: &Grid,
        values: &[f64],
        size: f64,
    ) -> Option<(f64, Option<Each>)> {
        let [place] = at else { return None };
        let place = self.offset(0, place)?;
        if place.base != 0 {
            return None;
        }
        // From what the index counts to what the values count.
        let mut axes: Vec<(i64, usize, usize)> = Vec::new();
        for (counted, step) in &place.steps {
            let Counted::Axis(k) = counted else { return None };
            let mut inside = grid.iter().rev().take_while(|(c, _)| c != counted);
            let is_used = grid.iter().any(|(c, _)| c == counted);
            let own = inside.try_fold(1usize, |n, (_, m)| n.checked_mul(*m))?;
            axes.push((*step, self.dims.get(*k)?.known()?, if is_used { own } else { 0 }));
        }
        let is_whole = grid.iter().all(|(c, _)| place.steps.contains_key(c));
        axes.sort_unstable();
        // Digits of a number: each element is stored once.
        let mut count = 1i64;
        for (step, extent, _) in &axes {
            if *step != count {
                return None;
            }
            count = count.checked_mul(i64::try_from(*extent).ok()?)?;
        }
        let count = usize::try_from(count).ok().filter(|n| is_whole && *n <= ELEMENTS)?;
        let spread = (0..count).map(|mut n| {
            let places = axes.iter().map(|(_, extent, own)| {
                let digit = n % extent;
                n /= extent;
                digit * own
            });
            values.get(places.sum::<usize>()).copied()
        });
        let spread: Vec<f64> = spread.collect::<Option<_>>()?;
        let constant = self.constant(spread, size);
        Some((1.0, Some(Each { constant, by: vec![(0, 1)] })))
    }

    /// What is added up: the rest, the number by which it is multiplied and the one that is added, both for each element of
    /// what is stored at some indices; `None` where nothing of that can be told.
    pub(super) fn out_of_sum(&mut self, at: &[Expr], reduced: &[bool], p: &Poly) -> Option<Split> {
        let mut all = self.coefficients(p);
        let shift = match all.get(&Vec::new()) {
            None => Some((0.0, None)),
            Some(added) => {
                let added = self.summed(reduced, added);
                added.and_then(|added| self.each(at, &added))
            }
        };
        if shift.is_some() {
            all.remove(&Vec::new());
        }
        let shift = shift.unwrap_or((0.0, None));
        let first = all.values().next()?.clone();
        let (factor, scale) = match &first[..] {
            [(m, c)] if m.is_empty() => (*c, None),
            _ => {
                let of = self.largest(reduced, &first)?;
                self.each(at, &of)?
            }
        };
        let mut rest = Poly::new();
        for (others, coefficient) in &all {
            rest = plus(rest, &Reals::joined(others, coefficient), 1.0);
        }
        Some(Split { rest, factor, scale, shift })
    }

    /// What a coefficient adds up to along the axes that are reduced.
    fn summed(&mut self, reduced: &[bool], of: &Coefficient) -> Option<Poly> {
        let mut times = 1.0;
        let grid = self.grid([of])?;
        for (k, _) in reduced.iter().enumerate().filter(|(_, is)| **is) {
            if !grid.iter().any(|(counted, _)| *counted == Counted::Axis(k)) {
                times *= self.dims.get(k)?.known()? as f64;
            }
        }
        if grid.is_empty() {
            let sum: f64 = self.values(of, &grid)?.0.iter().sum();
            return Some(constant(sum * times));
        }
        let (kept, values, size) = self.along(reduced, &grid, of, |sum, v| sum + v)?;
        let values = values.into_iter().map(|v| v * times).collect();
        let count: usize = grid.iter().map(|(_, n)| *n).product();
        self.on_grid(&kept, values, size * times * count as f64)
    }

    /// The element of the largest magnitude along the axes that are reduced; 1 where all are zero.
    fn largest(&mut self, reduced: &[bool], of: &Coefficient) -> Option<Poly> {
        let grid = self.grid([of])?;
        let more = |most: f64, v: f64| if v.abs() > most.abs() { v } else { most };
        let (kept, values, _) = self.along(reduced, &grid, of, more)?;
        let values = values.into_iter().map(|v| if v == 0.0 { 1.0 } else { v }).collect();
        self.on_grid(&kept, values, 0.0)
    }

    /// Combines the values of a coefficient along the axes that are reduced.
    fn along(
        &self,
        reduced: &[bool],
        grid: &Grid,
        of: &Coefficient,
        f: impl Fn(f64, f64) -> f64,
    ) -> Option<(Grid, Vec<f64>, f64)> {
        let (mut outer, mut inner) = (Grid::new(), Grid::new());
        for (counted, extent) in grid {
            match counted {
                Counted::Axis(k) if reduced.get(*k) == Some(&true) => &mut inner,
                Counted::Axis(_) => &mut outer,
                // It may depend on any axis.
                Counted::Other(_) => return None,
            }
            .push((counted.clone(), *extent));
        }
        let each: usize = inner.iter().map(|(_, n)| *n).product();
        let sorted = [outer.clone(), inner].concat();
        let (values, size) = self.values(of, &sorted)?;
        let combined = values.chunks(each.max(1)).map(|c| c.iter().fold(0.0, |a, v| f(a, *v)));
        Some((outer, combined.collect(), size))
    }

    /// The numbers that a polynomial of one other atom multiplies it with and adds, for each element of what is stored at
    /// some indices: the atom, the factor and the shift.
    pub(super) fn line_of(&mut self, at: &[Expr], p: &Poly) -> Option<(usize, Number, Number)> {
        let mut all = self.coefficients(p);
        let added = all.remove(&Vec::new()).unwrap_or_default();
        let (others, factor) = all.pop_first().filter(|_| all.is_empty())?;
        let [(atom, 1)] = others[..] else { return None };
        let none = Monomial::new();
        let (factor, added) = (Reals::joined(&none, &factor), Reals::joined(&none, &added));
        Some((atom, self.each(at, &factor)?, self.each(at, &added)?))
    }

    /// The offset of the number for an element.
    pub(super) fn offset_of_each(&self, side: usize, each: &Each, at: &[Expr]) -> Option<Offset> {
        let mut all = Offset::default();
        for (place, step) in &each.by {
            all.add(&self.offset(side, at.get(*place)?)?, *step)?;
        }
        Some(all)
    }

    /// A number for each element as a polynomial, at some indices.
    pub(super) fn number_at(&mut self, side: usize, n: &Number, at: &[Expr]) -> Option<Poly> {
        Some(match &n.1 {
            None => constant(n.0),
            Some(each) => {
                let offset = self.offset_of_each(side, each, at)?;
                let element = self.element_of_constant(each.constant, offset);
                super::times(&element, &constant(n.0))?
            }
        })
    }

    /// The largest difference of two numbers for each element, as a part of the largest one.
    pub(super) fn difference_of_numbers(&self, a: &Number, b: &Number) -> Option<f64> {
        let values = |n: &Number| -> (Vec<f64>, f64) {
            match &n.1 {
                None => (vec![n.0], n.0.abs()),
                Some(each) => {
                    let constant = &self.constants[each.constant];
                    let values = constant.values.iter().map(|v| v * n.0).collect();
                    (values, constant.size * n.0.abs())
                }
            }
        };
        let is_alike = match (&a.1, &b.1) {
            (Some(x), Some(y)) => x.by == y.by,
            _ => true,
        };
        let ((x, large), (y, larger)) = (values(a), values(b));
        if !is_alike || x.is_empty() || y.is_empty() {
            return None;
        }
        let count = x.len().max(y.len());
        if x.len() != y.len() && x.len().min(y.len()) != 1 {
            return None;
        }
        let mut worst: f64 = 0.0;
        for k in 0..count {
            let (x, y) = (x[k % x.len()], y[k % y.len()]);
            if x != y {
                let part = (x - y).abs() / large.max(larger);
                if part.is_nan() || part > ROUNDING {
                    return None;
                }
                worst = worst.max(part);
            }
        }
        Some(worst)
    }

    /// A polynomial over what elements are divided by.
    pub(super) fn divided_by(
        &mut self,
        side: usize,
        p: &Poly,
        n: &Number,
        at: &[Expr],
    ) -> Option<Poly> {
        let by = self.number_at(side, n, at)?;
        let inverse = self.inverse(&by)?;
        super::times(p, &inverse)
    }
}

/// A number, times another one for each element.
pub(super) type Number = (f64, Option<Each>);

/// What a sum adds up, in parts.
pub(super) struct Split {
    pub(super) rest: Poly,
    pub(super) factor: f64,
    pub(super) scale: Option<Each>,
    pub(super) shift: Number,
}
