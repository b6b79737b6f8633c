//! Sets.

use presburger::{self as pb, Dim, Stop};

use super::{Ctx, Map, PwAff, coalesced, few_pairs};
use crate::answer::{Known, Reason};

/// A union of conjunctions.
#[derive(Clone)]
pub(crate) struct Set {
    pub(super) ctx: Ctx,
    pub(super) raw: pb::Set,
}

/// A least and a greatest value, where there is one.
pub(crate) type Ends = (Option<i64>, Option<i64>);

/// An affine function that is zero, or not negative.
pub(crate) struct Constraint {
    pub function: pb::Aff,
    pub is_equality: bool,
}

impl Set {
    pub(super) fn new(ctx: &Ctx, raw: pb::Set) -> Set {
        Set { ctx: ctx.clone(), raw }
    }

    fn adopt(&self, raw: pb::Res<pb::Set>) -> Known<Set> {
        Ok(Set::new(&self.ctx, self.ctx.known(raw)?))
    }

    pub fn union(&self, other: &Set) -> Set {
        Set::new(&self.ctx, self.raw.union(&other.raw))
    }

    pub fn intersect(&self, other: &Set) -> Known<Set> {
        few_pairs(&self.raw, &other.raw)?;
        self.adopt(self.raw.intersect(&other.raw, &self.ctx.budget()))
    }

    pub fn subtract(&self, other: &Set) -> Known<Set> {
        few_pairs(&self.raw, &other.raw)?;
        self.adopt(self.raw.subtract(&other.raw, &self.ctx.budget()))
    }

    pub fn complement(&self) -> Known<Set> {
        few_pairs(&self.raw, &self.raw)?;
        self.adopt(self.raw.complement(&self.ctx.budget()))
    }

    /// The image under a relation.
    pub fn apply(&self, map: &Map) -> Known<Set> {
        few_pairs(&self.raw, &map.raw)?;
        self.adopt(self.raw.apply(&map.raw, &self.ctx.budget()))
    }

    /// A shorter set with the same points of `context`.
    pub fn gist(&self, context: &Set) -> Known<Set> {
        few_pairs(&self.raw, &context.raw)?;
        self.adopt(self.raw.gist(&context.raw, &self.ctx.budget()))
    }

    /// The points that satisfy every linear equation which all points satisfy.
    pub fn affine_hull(&self) -> Known<Set> {
        self.adopt(self.raw.affine_hull(&self.ctx.budget()))
    }

    /// The union in fewer parts, where that does not take long.
    pub fn coalesce(&self) -> Known<Set> {
        Ok(Set::new(&self.ctx, coalesced(&self.ctx, &self.raw)?))
    }

    /// The same set with its equalities written as such.
    pub fn detect_equalities(&self) -> Known<Set> {
        self.adopt(self.raw.detect_equalities(&self.ctx.budget()))
    }

    /// The same set without constraints that follow from others.
    pub fn remove_redundancies(&self) -> Known<Set> {
        self.adopt(self.raw.remove_redundancies(&self.ctx.budget()))
    }

    /// The same set in which every variable that exists is a division of others.
    pub fn compute_divs(&self) -> Known<Set> {
        self.adopt(self.raw.compute_divs(&self.ctx.budget()))
    }

    /// `n` dimensions without constraints more, in front of dimension `at`.
    pub fn insert_dims(&self, at: usize, n: usize) -> Set {
        Set::new(&self.ctx, self.raw.insert_dims(Dim::Out, at, n))
    }

    /// `n` dimensions without constraints more, behind all others.
    pub fn append_dims(&self, n: usize) -> Set {
        self.insert_dims(self.raw.dim(Dim::Out), n)
    }

    /// The set without `n` dimensions from `at` on.
    pub fn project_out(&self, at: usize, n: usize) -> Known<Set> {
        self.adopt(self.raw.project_out(Dim::Out, at, n, &self.ctx.budget()))
    }

    /// Dimension `from` as dimension `to`, which is not behind it.
    pub fn move_dim(&self, from: usize, to: usize) -> Set {
        if from == to {
            return self.clone();
        }
        // Within one kind nothing moves; by way of the parameters it does.
        let apart = self.raw.move_dims(Dim::Param, 0, Dim::Out, from, 1);
        Set::new(&self.ctx, apart.move_dims(Dim::Out, to, Dim::Param, 0, 1))
    }

    /// The first `n` dimensions as parameters.
    pub fn dims_to_params(&self, n: usize) -> Set {
        Set::new(&self.ctx, self.raw.move_dims(Dim::Param, 0, Dim::Out, 0, n))
    }

    /// The parameters as dimensions, in front of dimension `at`.
    pub fn params_to_dims(&self, at: usize) -> Set {
        let n = self.raw.dim(Dim::Param);
        Set::new(&self.ctx, self.raw.move_dims(Dim::Out, at, Dim::Param, 0, n))
    }

    /// The lexicographically least point, as a function of parameters.
    pub fn lexmin(&self) -> Known<Set> {
        self.adopt(self.raw.lexicographic(false, &self.ctx.budget()))
    }

    /// The lexicographically greatest point, as a function of parameters.
    pub fn lexmax(&self) -> Known<Set> {
        self.adopt(self.raw.lexicographic(true, &self.ctx.budget()))
    }

    /// The relation of each point with itself.
    pub fn identity(&self) -> Known<Map> {
        Ok(Map::new(&self.ctx, self.ctx.known(self.raw.identity())?))
    }

    /// The relation from each point to the tuple without elements.
    pub fn to_nothing(&self) -> Map {
        Map::new(&self.ctx, self.raw.to_nothing())
    }

    /// Some point, parameters first.
    pub fn sample(&self) -> Known<Option<Vec<i128>>> {
        self.ctx.known(self.raw.sample(&self.ctx.budget()))
    }

    /// The least or greatest value of a dimension, as a function of parameters.
    pub fn extreme(&self, at: usize, greatest: bool) -> Known<PwAff> {
        let raw = self.raw.extreme(at, greatest, &self.ctx.budget());
        Ok(PwAff::new(&self.ctx, self.ctx.known(raw)?))
    }

    /// The ends of a dimension; none where it has no bound that is a number.
    pub fn ends(&self, at: usize) -> Known<Ends> {
        Ok((self.end(at, false)?, self.end(at, true)?))
    }

    fn end(&self, at: usize, greatest: bool) -> Known<Option<i64>> {
        match self.raw.extreme_value(Dim::Out, at, greatest, &self.ctx.budget()) {
            Ok(v) => Ok(i64::try_from(v).ok()),
            Err(Stop::Empty | Stop::Unbounded) => Ok(None),
            Err(stop) => Err(self.ctx.why(stop)),
        }
    }

    pub fn is_equal(&self, other: &Set) -> Known<bool> {
        few_pairs(&self.raw, &other.raw)?;
        self.ctx.known(self.raw.is_equal(&other.raw, &self.ctx.budget()))
    }

    pub fn is_subset(&self, other: &Set) -> Known<bool> {
        few_pairs(&self.raw, &other.raw)?;
        self.ctx.known(self.raw.is_subset(&other.raw, &self.ctx.budget()))
    }

    pub fn is_empty(&self) -> Known<bool> {
        self.ctx.known(self.raw.is_empty(&self.ctx.budget()))
    }

    pub fn is_bounded(&self) -> Known<bool> {
        self.ctx.known(self.raw.is_bounded(&self.ctx.budget()))
    }

    /// The number of dimensions.
    pub fn dims(&self) -> usize {
        self.raw.dim(Dim::Out)
    }

    /// The number of conjunctions.
    pub fn count(&self) -> usize {
        self.raw.count()
    }

    /// The names of all parameters.
    pub fn param_names(&self) -> Known<Vec<String>> {
        (0..self.raw.dim(Dim::Param))
            .map(|at| self.raw.space().param(at).map(str::to_owned).ok_or_else(unnamed_param))
            .collect()
    }

    /// The constraints of each conjunction, without those that only define divisions. All divisions
    /// must be known ([`Set::compute_divs`]).
    pub fn constraints(&self) -> Vec<Vec<Constraint>> {
        self.raw
            .constraints()
            .into_iter()
            .map(|part| {
                part.into_iter()
                    .map(|(function, is_equality)| Constraint { function, is_equality })
                    .collect()
            })
            .collect()
    }
}

fn unnamed_param() -> crate::Unknown {
    Reason::Engine("a parameter without a name".into()).into()
}
