//! Relations: unions of conjunctions over parameters, inputs and outputs.
//!
//! A set is a relation without inputs; its dimensions are the outputs. Values are immutable, cheap to
//! clone, and can be compared and hashed by how they are written (not by the points that they have:
//! that is [`Relation::is_equal`]).

use std::sync::Arc;

use crate::aff::Aff;
use crate::basic::{Basic, complement};
use crate::eliminate::{explicit, lazily};
use crate::ends::Narrowing;
use crate::matrix::negate;
use crate::num::{Budget, Int, Res, Stop};
use crate::subtract;

/// A kind of dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// A symbolic constant.
    Param,
    /// An input of a relation.
    In,
    /// An output of a relation; a dimension of a set.
    Out,
}

/// How many dimensions there are, and what the parameters are called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Space {
    pub(crate) params: Arc<Vec<Option<String>>>,
    pub(crate) ins: usize,
    pub(crate) outs: usize,
}

impl Space {
    /// The space of sets with so many parameters without names.
    pub fn set(params: usize, dims: usize) -> Space {
        Space { params: Arc::new(vec![None; params]), ins: 0, outs: dims }
    }

    /// The space of relations with named parameters.
    pub fn named<S: Into<String>>(
        params: impl IntoIterator<Item = S>,
        ins: usize,
        outs: usize,
    ) -> Space {
        let params = params.into_iter().map(|p| Some(p.into())).collect();
        Space { params: Arc::new(params), ins, outs }
    }

    /// The number of dimensions of a kind.
    pub fn dim(&self, kind: Dim) -> usize {
        match kind {
            Dim::Param => self.params.len(),
            Dim::In => self.ins,
            Dim::Out => self.outs,
        }
    }

    /// The place of the first dimension of a kind among all.
    pub(crate) fn first(&self, kind: Dim) -> usize {
        match kind {
            Dim::Param => 0,
            Dim::In => self.params.len(),
            Dim::Out => self.params.len() + self.ins,
        }
    }

    /// The number of all dimensions.
    pub fn total(&self) -> usize {
        self.params.len() + self.ins + self.outs
    }

    /// The name of a parameter.
    pub fn param(&self, at: usize) -> Option<&str> {
        self.params.get(at)?.as_deref()
    }

    pub(crate) fn with(&self, ins: usize, outs: usize) -> Space {
        Space { params: self.params.clone(), ins, outs }
    }

    fn count(&mut self, kind: Dim, more: isize) {
        match kind {
            Dim::Param => {}
            Dim::In => self.ins = self.ins.saturating_add_signed(more),
            Dim::Out => self.outs = self.outs.saturating_add_signed(more),
        }
    }
}

/// A union of conjunctions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Relation {
    pub(crate) space: Space,
    pub(crate) parts: Arc<Vec<Basic>>,
}

/// A set: a relation without inputs.
pub type Set = Relation;

impl Relation {
    pub(crate) fn new(space: Space, parts: Vec<Basic>) -> Relation {
        let mut kept: Vec<Basic> = Vec::with_capacity(parts.len());
        for p in parts {
            if p.is_universe() {
                return Relation { space, parts: Arc::new(vec![p]) };
            }
            if !p.void && !kept.contains(&p) {
                kept.push(p);
            }
        }
        Relation { space, parts: Arc::new(kept) }
    }

    /// Everything.
    pub fn universe(space: &Space) -> Relation {
        Relation::new(space.clone(), vec![Basic::universe(space.total())])
    }

    /// Nothing.
    pub fn empty(space: &Space) -> Relation {
        Relation::new(space.clone(), Vec::new())
    }

    /// The points at which each of some affine functions is zero, and each of others is not
    /// negative. A function is its constant and a coefficient a dimension, parameters first.
    ///
    /// # Errors
    /// [`Stop::TooLarge`].
    pub fn of_constraints(space: &Space, eqs: &[Vec<Int>], ineqs: &[Vec<Int>]) -> Res<Relation> {
        let mut basic = Basic::universe(space.total());
        eqs.iter().for_each(|r| basic.eqs.push(r));
        ineqs.iter().for_each(|r| basic.ineqs.push(r));
        basic.normalize()?;
        Ok(Relation::new(space.clone(), vec![basic]))
    }

    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The number of dimensions of a kind.
    pub fn dim(&self, kind: Dim) -> usize {
        self.space.dim(kind)
    }

    /// The number of conjunctions.
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// Whether it is written without any conjunction. [`Relation::is_empty`] tells whether it has a
    /// point.
    pub fn is_nothing(&self) -> bool {
        self.parts.is_empty()
    }

    /// The same relation with another name for a parameter.
    pub fn with_param_name(&self, at: usize, name: &str) -> Relation {
        let mut params = (*self.space.params).clone();
        if let Some(slot) = params.get_mut(at) {
            *slot = Some(name.to_owned());
        }
        let space = Space { params: Arc::new(params), ..self.space.clone() };
        Relation { space, parts: self.parts.clone() }
    }

    /// Each conjunction as a relation.
    pub fn split(&self) -> Vec<Relation> {
        self.parts.iter().map(|p| Relation::new(self.space.clone(), vec![p.clone()])).collect()
    }

    fn map_parts(&self, space: Space, mut f: impl FnMut(&Basic) -> Res<Basic>) -> Res<Relation> {
        let parts = self.parts.iter().map(&mut f).collect::<Res<Vec<_>>>()?;
        Ok(Relation::new(space, parts))
    }

    /// The points of either.
    pub fn union(&self, other: &Relation) -> Relation {
        if self.parts.is_empty() || self.parts == other.parts {
            return Relation { space: self.space.clone(), parts: other.parts.clone() };
        }
        if other.parts.is_empty() {
            return self.clone();
        }
        let parts = self.parts.iter().chain(other.parts.iter()).cloned().collect();
        Relation::new(self.space.clone(), parts)
    }

    /// The points of both.
    ///
    /// # Errors
    /// [`Stop`], as of every operation.
    pub fn intersect(&self, other: &Relation, budget: &Budget) -> Res<Relation> {
        if is_universe(other) || self.parts == other.parts {
            return Ok(self.clone());
        }
        if is_universe(self) {
            return Ok(Relation { space: self.space.clone(), parts: other.parts.clone() });
        }
        self.pairs(other, self.space.clone(), budget, Basic::intersect)
    }

    /// The results of an operation on each pair of parts. What of many has no point is dropped.
    fn pairs(
        &self,
        other: &Relation,
        space: Space,
        budget: &Budget,
        mut f: impl FnMut(&Basic, &Basic) -> Res<Basic>,
    ) -> Res<Relation> {
        let many = self.parts.len() > 1 || other.parts.len() > 1;
        let mut parts = Vec::with_capacity(self.parts.len() * other.parts.len());
        for a in self.parts.iter() {
            for b in other.parts.iter() {
                budget.charge(1 + (a.ineqs.len() + b.ineqs.len()) / 8)?;
                let both = f(a, b)?;
                if !(both.void || many && both.is_empty(budget)?) {
                    parts.push(both);
                }
            }
        }
        Ok(Relation::new(space, parts))
    }

    /// The points of the first that are not of the other.
    pub fn subtract(&self, other: &Relation, budget: &Budget) -> Res<Relation> {
        Ok(Relation::new(
            self.space.clone(),
            subtract::subtract(&self.parts, &other.parts, budget)?,
        ))
    }

    /// All other points.
    pub fn complement(&self, budget: &Budget) -> Res<Relation> {
        Relation::universe(&self.space).subtract(self, budget)
    }

    /// Whether there is no point, for any value of the parameters.
    pub fn is_empty(&self, budget: &Budget) -> Res<bool> {
        for p in self.parts.iter() {
            if !p.is_empty(budget)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Without conjunctions that have no point.
    pub(crate) fn without_empty(&self, budget: &Budget) -> Res<Relation> {
        let mut parts = Vec::with_capacity(self.parts.len());
        for p in self.parts.iter() {
            if !p.is_empty(budget)? {
                parts.push(p.clone());
            }
        }
        Ok(Relation::new(self.space.clone(), parts))
    }

    /// The constraints of each conjunction, whose divisions must be explicit
    /// ([`Relation::compute_divs`]): functions, and whether each is zero (or else not negative).
    /// That divisions are what they are is not among them.
    pub fn constraints(&self) -> Vec<Vec<(Aff, bool)>> {
        self.parts
            .iter()
            .map(|p| {
                let mut frame = p.clone();
                frame.eqs.clear();
                frame.ineqs.clear();
                let eqs = p.eqs.rows().map(|r| (aff_of(r, &frame), true));
                eqs.chain(p.ineqs.rows().map(|r| (aff_of(r, &frame), false))).collect()
            })
            .collect()
    }

    /// Some point: the values of all dimensions, parameters first.
    pub fn sample(&self, budget: &Budget) -> Res<Option<Vec<Int>>> {
        for p in self.parts.iter() {
            if let Some(mut point) = p.point(budget)? {
                point.truncate(self.space.total());
                return Ok(Some(point));
            }
        }
        Ok(None)
    }

    /// Whether every point is one of the other.
    pub fn is_subset(&self, other: &Relation, budget: &Budget) -> Res<bool> {
        subtract::is_subset(&self.parts, &other.parts, budget)
    }

    /// Whether both have the same points.
    pub fn is_equal(&self, other: &Relation, budget: &Budget) -> Res<bool> {
        Ok(self.parts == other.parts
            || (self.is_subset(other, budget)? && other.is_subset(self, budget)?))
    }

    /// Whether no point is in both.
    pub fn is_disjoint(&self, other: &Relation, budget: &Budget) -> Res<bool> {
        for a in self.parts.iter() {
            for b in other.parts.iter() {
                budget.charge(1 + (a.ineqs.len() + b.ineqs.len()) / 8)?;
                if !a.intersect(b)?.is_empty(budget)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// More dimensions of a kind, without a bound. Parameters have no name.
    pub fn insert_dims(&self, kind: Dim, at: usize, n: usize) -> Relation {
        let mut space = self.space.clone();
        if kind == Dim::Param {
            let mut params = (*space.params).clone();
            params.splice(at..at, std::iter::repeat_n(None, n));
            space.params = Arc::new(params);
        }
        space.count(kind, n as isize);
        let column = self.space.first(kind) + at;
        let more = |p: &Basic| {
            let mut p = p.clone();
            p.insert_dims(column, n);
            p
        };
        Relation { space, parts: Arc::new(self.parts.iter().map(more).collect()) }
    }

    /// Dimensions moved to another kind. Those that become parameters have no name.
    pub fn move_dims(
        &self,
        to_kind: Dim,
        to: usize,
        from_kind: Dim,
        from: usize,
        n: usize,
    ) -> Relation {
        let first = self.space.first(from_kind) + from;
        let mut space = self.space.clone();
        let mut params = (*space.params).clone();
        if from_kind == Dim::Param {
            params.drain(from..from + n);
        }
        if to_kind == Dim::Param {
            params.splice(to..to, std::iter::repeat_n(None, n));
        }
        space.params = Arc::new(params);
        space.count(from_kind, -(n as isize));
        space.count(to_kind, n as isize);
        let target = space.first(to_kind) + to;
        let moved = first..first + n;
        let mut order: Vec<usize> =
            (0..self.space.total()).filter(|c| !moved.contains(c)).collect();
        order.splice(target..target, moved);
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, old)| places[*old] = new);
        let parts = self.parts.iter().map(|p| p.permuted(&places)).collect();
        Relation { space, parts: Arc::new(parts) }
    }

    /// Without some dimensions: what is a point for any values of them.
    pub fn project_out(&self, kind: Dim, at: usize, n: usize, budget: &Budget) -> Res<Relation> {
        let mut space = self.space.clone();
        if kind == Dim::Param {
            let mut params = (*space.params).clone();
            params.drain(at..at + n);
            space.params = Arc::new(params);
        }
        space.count(kind, -(n as isize));
        let column = self.space.first(kind) + at;
        self.map_parts(space, |p| hidden(p.clone(), column, n, budget))
    }

    /// Inputs and outputs exchanged.
    pub fn reverse(&self) -> Relation {
        let (p, ins, outs) = (self.space.params.len(), self.space.ins, self.space.outs);
        let mut to: Vec<usize> = (0..p).collect();
        to.extend(p + outs..p + outs + ins);
        to.extend(p..p + outs);
        let parts = self.parts.iter().map(|b| b.permuted(&to)).collect();
        Relation { space: self.space.with(outs, ins), parts: Arc::new(parts) }
    }

    /// The inputs that have an output.
    pub fn domain(&self, budget: &Budget) -> Res<Set> {
        let all = self.project_out(Dim::Out, 0, self.space.outs, budget)?;
        Ok(Relation { space: self.space.with(0, self.space.ins), parts: all.parts })
    }

    /// The outputs.
    pub fn range(&self, budget: &Budget) -> Res<Set> {
        self.project_out(Dim::In, 0, self.space.ins, budget)
    }

    /// The pairs whose input is in a set.
    pub fn intersect_domain(&self, set: &Set, budget: &Budget) -> Res<Relation> {
        let wide = set.insert_dims(Dim::Out, set.space.outs, self.space.outs);
        let wide = Relation { space: self.space.clone(), parts: wide.parts };
        self.intersect(&wide, budget)
    }

    /// A set of outputs as the relation of everything with them.
    fn as_range(&self, set: &Set) -> Relation {
        let wide = set.insert_dims(Dim::Out, 0, self.space.ins);
        Relation { space: self.space.clone(), parts: wide.parts }
    }

    /// The pairs whose output is in a set.
    pub fn intersect_range(&self, set: &Set, budget: &Budget) -> Res<Relation> {
        self.intersect(&self.as_range(set), budget)
    }

    /// The pairs whose output is not in a set.
    pub fn subtract_range(&self, set: &Set, budget: &Budget) -> Res<Relation> {
        self.subtract(&self.as_range(set), budget)
    }

    /// The values that a relation gives for the points of this set.
    pub fn apply(&self, map: &Relation, budget: &Budget) -> Res<Set> {
        // A set is a relation from the empty tuple.
        self.then(map, budget)
    }

    /// The relation from each point of this set to the empty tuple.
    pub fn to_nothing(&self) -> Relation {
        Relation { space: self.space.with(self.space.outs, 0), parts: self.parts.clone() }
    }

    /// This relation, and then another one on what it gives.
    pub fn then(&self, other: &Relation, budget: &Budget) -> Res<Relation> {
        let (p, ins, mid, outs) =
            (self.space.params.len(), self.space.ins, self.space.outs, other.space.outs);
        let space = self.space.with(ins, outs);
        self.pairs(other, space, budget, |a, b| {
            let (mut a, mut b) = (a.clone(), b.clone());
            a.insert_dims(p + ins + mid, outs);
            b.insert_dims(p, ins);
            a.conjoin(&b);
            hidden(a, p + ins, mid, budget)
        })
    }

    /// `x -> (y, z)` of `x -> y` and `x -> z`.
    pub fn flat_range_product(&self, other: &Relation, budget: &Budget) -> Res<Relation> {
        let (p, ins) = (self.space.params.len(), self.space.ins);
        let (mine, theirs) = (self.space.outs, other.space.outs);
        let space = self.space.with(ins, mine + theirs);
        self.pairs(other, space, budget, |a, b| {
            let (mut a, mut b) = (a.clone(), b.clone());
            a.insert_dims(p + ins + mine, theirs);
            b.insert_dims(p + ins, mine);
            a.intersect(&b)
        })
    }

    /// The set of pairs, inputs first.
    pub fn wrap(&self) -> Set {
        let space = self.space.with(0, self.space.ins + self.space.outs);
        Relation { space, parts: self.parts.clone() }
    }

    /// The relation from each point of this set to itself.
    pub fn identity(&self) -> Res<Relation> {
        let (p, n) = (self.space.params.len(), self.space.outs);
        let space = self.space.with(n, n);
        self.map_parts(space, |b| {
            let mut b = b.clone();
            b.insert_dims(p + n, n);
            for k in 0..n {
                let row = b.eqs.push_zero();
                row[1 + p + k] = -1;
                row[1 + p + n + k] = 1;
            }
            b.normalize()?;
            Ok(b)
        })
    }

    /// A set that only says something of parameters, as a set of no dimensions.
    pub fn params(&self, budget: &Budget) -> Res<Set> {
        let inner = self.project_out(Dim::Out, 0, self.space.outs, budget)?;
        inner.project_out(Dim::In, 0, self.space.ins, budget)
    }

    /// With explicit divisions only; parts may become more.
    pub fn compute_divs(&self, budget: &Budget) -> Res<Relation> {
        if self.parts.iter().all(Basic::all_explicit) {
            return Ok(self.clone());
        }
        let mut parts = Vec::new();
        for p in self.parts.iter() {
            parts.extend(explicit(p, budget)?);
        }
        Ok(Relation::new(self.space.clone(), parts))
    }

    /// Whether no two inputs have one output, for the same parameters.
    pub fn is_injective(&self, budget: &Budget) -> Res<bool> {
        let (p, n) = (self.space.params.len(), self.space.ins);
        for (i, a) in self.parts.iter().enumerate() {
            let alone = inputs_are_given(a, p..p + n);
            for b in &self.parts[i + usize::from(alone)..] {
                // Columns: parameters, both inputs, outputs.
                let (mut first, mut second) = (a.clone(), b.clone());
                first.insert_dims(p + n, n);
                second.insert_dims(p, n);
                first.conjoin(&second);
                first.normalize()?;
                // They differ first in dimension k.
                for k in 0..n {
                    let mut row = vec![0; first.width()];
                    row[1 + p + k] = 1;
                    row[1 + p + n + k] = -1;
                    let mut less = complement(&row)?;
                    if !first.is_empty_with(&less, false, budget)? {
                        return Ok(false);
                    }
                    if !std::ptr::eq(a, b) {
                        less = row.clone();
                        less[0] -= 1;
                        if !first.is_empty_with(&less, false, budget)? {
                            return Ok(false);
                        }
                    }
                    first.eqs.push(&row);
                    first.normalize()?;
                    if first.void {
                        break;
                    }
                }
            }
        }
        Ok(true)
    }

    /// The least value of a dimension over all parameters, or the greatest.
    ///
    /// # Errors
    /// [`Stop::Empty`] and [`Stop::Unbounded`], among others.
    pub fn extreme_value(&self, kind: Dim, at: usize, greatest: bool, budget: &Budget) -> Res<Int> {
        let column = 1 + self.space.first(kind) + at;
        let mut best: Option<Int> = None;
        for p in self.parts.iter() {
            let mut f = vec![0; p.width()];
            f[column] = if greatest { -1 } else { 1 };
            match least(p, &f, budget) {
                Ok((v, _)) => best = Some(best.map_or(v, |b| b.min(v))),
                Err(Stop::Empty) => {}
                Err(e) => return Err(e),
            }
        }
        let best = best.ok_or(Stop::Empty)?;
        if greatest { crate::num::neg(best) } else { Ok(best) }
    }

    /// Whether the dimensions (not the parameters) have least and greatest values.
    pub fn is_bounded(&self, budget: &Budget) -> Res<bool> {
        let params = self.space.params.len();
        for p in self.parts.iter() {
            // The directions without end, with all parameters at rest.
            let mut cone = p.clone();
            let kept: Vec<Vec<Int>> = (0..params)
                .map(|k| {
                    let mut row = vec![0; cone.width()];
                    row[1 + k] = 1;
                    row
                })
                .collect();
            for div in 0..cone.divs.len() {
                cone.forget_div(div)?;
            }
            cone.eqs.rows_mut().chain(cone.ineqs.rows_mut()).for_each(|r| r[0] = 0);
            kept.iter().for_each(|r| cone.eqs.push(r));
            // Rows say so one after the other, most often.
            let mut rows = cone.ineqs.clone();
            for row in cone.eqs.rows() {
                rows.push(row);
                let at = rows.len();
                rows.push(row);
                negate(rows.row_mut(at))?;
            }
            let narrowing = Narrowing::new(&rows, cone.width() - 1);
            let mut ends = narrowing.free();
            let mut dims = params..self.space.total();
            if narrowing.narrow(&mut ends) && dims.all(|k| ends.range(k).is_some())
                || p.is_empty(budget)?
            {
                continue;
            }
            for k in params..self.space.total() {
                for sign in [1, -1] {
                    let mut row = vec![0; cone.width()];
                    (row[0], row[1 + k]) = (-1, sign);
                    if !cone.is_empty_with(&row, false, budget)? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// The lexicographically least point of a set (or greatest), as a set of that point, for each
    /// value of the parameters.
    pub fn lexicographic(&self, greatest: bool, budget: &Budget) -> Res<Set> {
        if !self.space.params.is_empty() {
            return self.lexicographic_by_params(greatest, budget);
        }
        let mut best: Option<Vec<Int>> = None;
        for p in self.parts.iter() {
            let Some(point) = lex_point(p, self.space.total(), greatest, budget)? else { continue };
            if best.as_ref().is_none_or(|b| if greatest { point > *b } else { point < *b }) {
                best = Some(point);
            }
        }
        let Some(point) = best else { return Ok(Relation::empty(&self.space)) };
        let mut eqs = Vec::new();
        for (k, v) in point.iter().enumerate() {
            let mut row = vec![0; 1 + point.len()];
            (row[0], row[1 + k]) = (crate::num::neg(*v)?, 1);
            eqs.push(row);
        }
        Relation::of_constraints(&self.space, &eqs, &[])
    }

    /// Dimension by dimension, what has something better is dropped.
    fn lexicographic_by_params(&self, greatest: bool, budget: &Budget) -> Res<Set> {
        if !self.is_bounded_that_way(greatest, budget)? {
            return Err(Stop::Unbounded);
        }
        let first = self.space.first(Dim::In);
        let mut rest = self.clone();
        for k in 0..self.space.ins + self.space.outs {
            rest = rest.only_extreme(first + k, greatest, budget)?;
        }
        Ok(rest)
    }

    /// Whether each dimension has an end on one side for each value of the parameters.
    fn is_bounded_that_way(&self, greatest: bool, budget: &Budget) -> Res<bool> {
        let params = self.space.params.len();
        for p in self.parts.iter() {
            let mut cone = p.clone();
            for div in 0..cone.divs.len() {
                cone.forget_div(div)?;
            }
            cone.eqs.rows_mut().chain(cone.ineqs.rows_mut()).for_each(|r| r[0] = 0);
            for k in 0..self.space.total() {
                if k < params {
                    let row = cone.eqs.push_zero();
                    row[1 + k] = 1;
                } else {
                    let mut row = vec![0; cone.width()];
                    (row[0], row[1 + k]) = (-1, if greatest { 1 } else { -1 });
                    if !cone.is_empty_with(&row, false, budget)? {
                        return Ok(false);
                    }
                    let row = cone.eqs.push_zero();
                    row[1 + k] = 1;
                }
            }
        }
        Ok(true)
    }

    /// The points at which the value of column `k` is the best of all points that agree in the
    /// columns before it.
    pub(crate) fn only_extreme(&self, k: usize, greatest: bool, budget: &Budget) -> Res<Relation> {
        let total = self.space.total();
        let mut worse = Vec::new();
        for p in self.parts.iter() {
            // Columns: all, and the better value with whatever comes behind it.
            let mut p = p.clone();
            p.insert_dims(k, 1);
            let row = p.ineqs.push_zero();
            (row[0], row[1 + k], row[2 + k]) = if greatest { (-1, -1, 1) } else { (-1, 1, -1) };
            let mut p = hidden(p, k + 1, total - k, budget)?;
            p.insert_dims(k + 1, total - k - 1);
            worse.push(p);
        }
        let parts = subtract::subtract(&self.parts, &worse, budget)?;
        Ok(Relation::new(self.space.clone(), parts))
    }
}

/// Whether one conjunction demands nothing.
pub(crate) fn is_universe(r: &Relation) -> bool {
    matches!(&r.parts[..], [p] if p.is_universe())
}

fn aff_of(r: &[Int], frame: &Basic) -> Aff {
    Aff::of_parts(frame.clone(), r.to_vec(), 1)
}

/// Makes dimensions divisions that exist, and eliminates what is cheap to eliminate.
pub(crate) fn hidden(mut basic: Basic, at: usize, n: usize, budget: &Budget) -> Res<Basic> {
    basic.hide_dims(at, n)?;
    lazily(basic, budget)
}

/// The least value of a function of all columns, and a point.
pub(crate) fn least(basic: &Basic, function: &[Int], budget: &Budget) -> Res<(Int, Vec<Int>)> {
    if basic.void {
        return Err(Stop::Empty);
    }
    basic.system()?.minimum(function, budget)
}

fn lex_point(basic: &Basic, dims: usize, greatest: bool, budget: &Budget) -> Res<Option<Vec<Int>>> {
    let mut rest = basic.clone();
    let mut out = Vec::with_capacity(dims);
    for k in 0..dims {
        let mut f = vec![0; rest.width()];
        f[1 + k] = if greatest { -1 } else { 1 };
        let v = match least(&rest, &f, budget) {
            Ok((v, _)) => {
                if greatest {
                    crate::num::neg(v)?
                } else {
                    v
                }
            }
            Err(Stop::Empty) => return Ok(None),
            Err(e) => return Err(e),
        };
        out.push(v);
        let row = rest.eqs.push_zero();
        (row[0], row[1 + k]) = (crate::num::neg(v)?, 1);
        rest.normalize()?;
    }
    Ok(Some(out))
}

/// Whether equalities give each of these dimensions, one after the other, by the others.
fn inputs_are_given(part: &Basic, inputs: std::ops::Range<usize>) -> bool {
    let mut left: Vec<usize> = inputs.map(|k| 1 + k).collect();
    loop {
        let before = left.len();
        for row in part.eqs.rows().filter(|r| r[1 + part.dims..].iter().all(|v| *v == 0)) {
            let mut mentioned = left.iter().enumerate().filter(|(_, k)| row[**k] != 0);
            if let (Some((at, _)), None) = (mentioned.next(), mentioned.next()) {
                left.swap_remove(at);
            }
        }
        if left.is_empty() || left.len() == before {
            return left.is_empty();
        }
    }
}
