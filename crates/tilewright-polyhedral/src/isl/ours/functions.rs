//! Affine functions, and functions by pieces.

use std::ffi::{c_int, c_uint};

use presburger::{self as pb, Budget, Dim, Stop};

use super::{Aff, Ctx, Map, PwAff, PwMultiAff, Set, Val};
use crate::answer::{Known, Reason, Unknown};
use crate::isl::api::{DIV, PARAM};

impl Aff {
    fn place(&self, kind: c_uint, at: c_int) -> usize {
        match kind {
            PARAM => at as usize,
            _ => self.space.dim(Dim::Param) + at as usize,
        }
    }

    pub fn piecewise(self) -> Known<PwAff> {
        Ok(PwAff { raw: pb::PwAff::new(&self.space, self.raw), ctx: self.ctx })
    }

    pub fn set_constant_si(self, value: c_int) -> Known<Aff> {
        self.set_constant_val(Val(Some(value.into())))
    }

    pub fn set_constant_val(self, value: Val) -> Known<Aff> {
        Ok(Aff { raw: self.raw.with_constant(value.whole()?), ..self })
    }

    pub fn set_coefficient_si(self, kind: c_uint, at: c_int, value: c_int) -> Known<Aff> {
        self.set_coefficient_val(kind, at, Val(Some(value.into())))
    }

    pub fn set_coefficient_val(self, kind: c_uint, at: c_int, value: Val) -> Known<Aff> {
        let place = self.place(kind, at);
        Ok(Aff { raw: self.raw.with_coefficient(place, value.whole()?), ..self })
    }

    pub fn scale(self, by: Val) -> Known<Aff> {
        let raw = self.ctx.known(self.raw.scale(by.whole()?))?;
        Ok(Aff { raw, ..self })
    }

    pub fn constant(&self) -> Known<Val> {
        Ok(Val(Some(self.raw.constant())))
    }

    pub fn coefficient(&self, kind: c_uint, at: c_int) -> Known<Val> {
        Ok(Val(Some(match kind {
            DIV => self.raw.div_coefficient(at as usize),
            _ => self.raw.coefficient(self.place(kind, at)),
        })))
    }

    pub fn denominator(&self) -> Known<Val> {
        Ok(Val(Some(self.raw.denominator())))
    }

    /// What a division is the floor of.
    pub fn div(&self, at: c_int) -> Known<Aff> {
        Ok(Aff { raw: self.raw.div(at as usize), ..self.clone() })
    }

    /// The number of divisions.
    pub fn dim(&self, _: c_uint) -> Known<usize> {
        Ok(self.raw.divs())
    }
}

/// An operation on functions under the budget of the context.
macro_rules! functions {
    ($($name:ident($($arg:ident: $A:ty),*) $with:expr;)*) => { $(
        pub fn $name(self $(, $arg: $A)*) -> Known<PwAff> {
            let budget = self.ctx.budget();
            let operation: fn(&pb::PwAff, &Budget $(, $A)*) -> Result<pb::PwAff, Fail> = $with;
            let raw = operation(&self.raw, &budget $(, $arg)*);
            Ok(PwAff { raw: raw.map_err(|e| e.why(&self.ctx))?, ctx: self.ctx })
        }
    )* };
}

/// A failure, of whichever side.
enum Fail {
    Stop(Stop),
    Unknown(Unknown),
}

impl Fail {
    fn why(self, ctx: &Ctx) -> Unknown {
        match self {
            Fail::Stop(stop) => ctx.why(stop),
            Fail::Unknown(why) => why,
        }
    }
}

impl From<Stop> for Fail {
    fn from(stop: Stop) -> Fail {
        Fail::Stop(stop)
    }
}

impl From<Unknown> for Fail {
    fn from(why: Unknown) -> Fail {
        Fail::Unknown(why)
    }
}

impl PwAff {
    functions! {
        add(other: PwAff) |f, b, other| Ok(f.add(&other.raw, b)?);
        neg() |f, _| Ok(f.neg()?);
        scale(by: Val) |f, _, by| Ok(f.scale(by.whole()?)?);
        scale_down(by: Val) |f, _, by| Ok(f.scale_down(by.whole()?)?);
        modulo(by: Val) |f, _, by| Ok(f.modulo(by.whole()?)?);
        floor() |f, _| Ok(f.floor()?);
        min(other: PwAff) |f, b, other| Ok(f.min(&other.raw, b)?);
        max(other: PwAff) |f, b, other| Ok(f.max(&other.raw, b)?);
        on_domain(domain: Set) |f, b, domain| Ok(f.intersect_domain(&domain.raw, b)?);
        union_add(other: PwAff) |f, b, other| Ok(f.union_add(&other.raw, b)?);
        gist(context: Set) |f, b, context| Ok(f.gist(&context.raw, b)?);
        coalesce() |f, b| Ok(f.coalesce(b)?);
    }

    fn set(self, raw: pb::Res<pb::Set>) -> Known<Set> {
        Ok(Set { raw: self.ctx.known(raw)?, ctx: self.ctx })
    }

    pub fn nonneg(self) -> Known<Set> {
        let raw = self.raw.nonneg(&self.ctx.budget());
        self.set(raw)
    }

    pub fn zero(self) -> Known<Set> {
        let raw = self.raw.zero(&self.ctx.budget());
        self.set(raw)
    }

    pub fn non_zero(self) -> Known<Set> {
        let raw = self.raw.non_zero(&self.ctx.budget());
        self.set(raw)
    }

    fn extreme(&self, greatest: bool) -> Known<Val> {
        match self.raw.extreme_value(greatest, &self.ctx.budget()) {
            Ok((v, d)) => Ok(Val((d == 1).then_some(v))),
            Err(Stop::Empty | Stop::Unbounded) => Ok(Val(None)),
            Err(stop) => Err(self.ctx.why(stop)),
        }
    }

    pub fn min_val(self) -> Known<Val> {
        self.extreme(false)
    }

    pub fn max_val(self) -> Known<Val> {
        self.extreme(true)
    }

    pub fn graph(self) -> Known<Map> {
        let raw = self.ctx.known(self.raw.graph())?;
        Ok(Map { ctx: self.ctx, raw, names: [None, None] })
    }

    pub fn pieces(&self) -> Known<usize> {
        Ok(self.raw.pieces().len())
    }

    /// The pieces: where, and which function.
    pub fn list(&self) -> Known<Vec<(Set, Aff)>> {
        let ctx = || self.ctx.clone();
        let pieces = self.raw.pieces().iter().map(|(s, a)| {
            let aff = Aff { ctx: ctx(), space: self.raw.space().clone(), raw: a.clone() };
            (Set { ctx: ctx(), raw: s.clone() }, aff)
        });
        Ok(pieces.collect())
    }
}

impl PwMultiAff {
    pub fn at(&self, at: c_int) -> Known<PwAff> {
        self.values.get(at as usize).cloned().ok_or_else(|| Reason::NoClosedForm.into())
    }
}
