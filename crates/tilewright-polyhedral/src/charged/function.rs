//! Functions that are given piece by piece.

use presburger::{self as pb, Stop};

use super::{Ctx, Map, Set};
use crate::answer::Known;

/// A piecewise affine function, undefined outside its pieces.
#[derive(Clone)]
pub(crate) struct PwAff {
    ctx: Ctx,
    raw: pb::PwAff,
}

impl PwAff {
    pub(super) fn new(ctx: &Ctx, raw: pb::PwAff) -> PwAff {
        PwAff { ctx: ctx.clone(), raw }
    }

    fn adopt(&self, raw: pb::Res<pb::PwAff>) -> Known<PwAff> {
        Ok(PwAff::new(&self.ctx, self.ctx.known(raw)?))
    }

    fn made_set(&self, raw: pb::Res<pb::Set>) -> Known<Set> {
        Ok(Set::new(&self.ctx, self.ctx.known(raw)?))
    }

    /// The sum, where both are defined.
    pub fn add(&self, other: &PwAff) -> Known<PwAff> {
        self.adopt(self.raw.add(&other.raw, &self.ctx.budget()))
    }

    pub fn neg(&self) -> Known<PwAff> {
        self.adopt(self.raw.neg())
    }

    pub fn scale(&self, by: i128) -> Known<PwAff> {
        self.adopt(self.raw.scale(by))
    }

    /// The quotient by a positive number, rounded down.
    pub fn floor_div(&self, by: i128) -> Known<PwAff> {
        self.adopt(self.raw.scale_down(by).and_then(|f| f.floor()))
    }

    /// The remainder from zero of a division by a positive number.
    pub fn modulo(&self, by: i128) -> Known<PwAff> {
        self.adopt(self.raw.modulo(by))
    }

    pub fn min(&self, other: &PwAff) -> Known<PwAff> {
        self.adopt(self.raw.min(&other.raw, &self.ctx.budget()))
    }

    pub fn max(&self, other: &PwAff) -> Known<PwAff> {
        self.adopt(self.raw.max(&other.raw, &self.ctx.budget()))
    }

    pub fn intersect_domain(&self, domain: &Set) -> Known<PwAff> {
        self.adopt(self.raw.intersect_domain(&domain.raw, &self.ctx.budget()))
    }

    /// The sum where both are defined, and the one that is defined elsewhere.
    pub fn union_add(&self, other: &PwAff) -> Known<PwAff> {
        self.adopt(self.raw.union_add(&other.raw, &self.ctx.budget()))
    }

    /// A simpler function with the same values at the points of `context`.
    pub fn gist(&self, context: &Set) -> Known<PwAff> {
        self.adopt(self.raw.gist(&context.raw, &self.ctx.budget()))
    }

    /// The same function in fewer pieces.
    pub fn coalesce(&self) -> Known<PwAff> {
        self.adopt(self.raw.coalesce(&self.ctx.budget()))
    }

    /// Where the function is not negative.
    pub fn nonneg(&self) -> Known<Set> {
        self.made_set(self.raw.nonneg(&self.ctx.budget()))
    }

    /// Where the function is zero.
    pub fn zero(&self) -> Known<Set> {
        self.made_set(self.raw.zero(&self.ctx.budget()))
    }

    /// Where the function is defined and not zero.
    pub fn non_zero(&self) -> Known<Set> {
        self.made_set(self.raw.non_zero(&self.ctx.budget()))
    }

    /// The least or greatest value; none where there is none that is an integer of 64 bits.
    pub fn extreme_value(&self, greatest: bool) -> Known<Option<i64>> {
        match self.raw.extreme_value(greatest, &self.ctx.budget()) {
            Ok((value, denominator)) => Ok(i64::try_from(value).ok().filter(|_| denominator == 1)),
            Err(Stop::Empty | Stop::Unbounded) => Ok(None),
            Err(stop) => Err(self.ctx.why(stop)),
        }
    }

    /// The relation from each point to the value.
    pub fn graph(&self) -> Known<Map> {
        Ok(Map::new(&self.ctx, self.ctx.known(self.raw.graph())?))
    }

    /// The pieces: where, and which function.
    pub fn pieces(&self) -> impl ExactSizeIterator<Item = (Set, &pb::Aff)> {
        self.raw.pieces().iter().map(|(set, aff)| (Set::new(&self.ctx, set.clone()), aff))
    }
}
