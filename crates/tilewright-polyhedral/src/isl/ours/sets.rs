//! Sets and relations.

use std::ffi::{CStr, c_int, c_uint};

use presburger::{self as pb, Budget, Dim, Stop};

use super::{
    Aff, BasicSet, Constraint, Ctx, Ends, Map, Point, PwAff, PwMultiAff, Set, UnionMap, Val, dim,
};
use crate::answer::{Known, Reason};
use crate::isl::api::IN;

impl Point {
    pub fn is_void(&self) -> Known<bool> {
        Ok(self.values.is_none())
    }

    pub fn coordinate(&self, _: c_uint, at: c_int) -> Known<Val> {
        let values = self.values.as_ref();
        Ok(Val(values.and_then(|v| v.get(self.params + at as usize)).copied()))
    }
}

/// Pairs of parts, each counted by the square of its dimensions, that one operation looks at.
const MAX_PAIRS: usize = 1 << 16;

/// The dimensions up to which all pairs count alike.
const FEW_DIMS: usize = 4;

/// Whether an operation on the pairs of parts of two unions is one that ends soon.
fn few_pairs(one: &pb::Relation, other: &pb::Relation) -> Known<()> {
    let (m, n) = (one.count(), other.count());
    let dims = one.space().total().max(other.space().total()).max(FEW_DIMS);
    if m.saturating_mul(n).saturating_mul(dims * dims) <= MAX_PAIRS || m * n <= 1 {
        return Ok(());
    }
    let dims = one.space().total().max(other.space().total());
    Err(Reason::ManyParts { parts: m.max(n), dims }.into())
}

/// Operations on a set under the budget of the context.
macro_rules! sets {
    ($($name:ident($($arg:ident: $A:ty),*) $R:ty $(, pairs $few:ident)? = $with:expr;)*) => { $(
        pub fn $name(self $(, $arg: $A)*) -> Known<$R> {
            $(few_pairs(&self.raw, &$few.raw)?;)?
            let budget = self.ctx.budget();
            let operation: fn(&pb::Relation, &Budget $(, $A)*) -> pb::Res<pb::Relation> = $with;
            let raw = operation(&self.raw, &budget $(, $arg)*);
            <$R>::made(&self.ctx, self.ctx.known(raw)?)
        }
    )* };
}

impl Set {
    fn made(ctx: &Ctx, raw: pb::Relation) -> Known<Set> {
        Ok(Set { ctx: ctx.clone(), raw })
    }

    sets! {
        union(other: Set) Set = |s, _, other| Ok(s.union(&other.raw));
        detect_equalities() Set = |s, b| s.detect_equalities(b);
        remove_redundancies() Set = |s, b| s.remove_redundancies(b);
        compute_divs() Set = |s, b| s.compute_divs(b);
        pointwise() Set = |s, _| Ok(s.clone());
        add_dims(kind: c_uint, n: c_uint) Set = |s, _, kind, n| {
            let kind = dim(kind);
            Ok(s.insert_dims(kind, s.dim(kind), n as usize))
        };
        insert_dims(kind: c_uint, at: c_uint, n: c_uint) Set = |s, _, kind, at, n| {
            Ok(s.insert_dims(dim(kind), at as usize, n as usize))
        };
        project_out(kind: c_uint, at: c_uint, n: c_uint) Set = |s, b, kind, at, n| {
            s.project_out(dim(kind), at as usize, n as usize, b)
        };
        move_dims(_tokind: c_uint, to: c_uint, from_kind: c_uint, from: c_uint, n: c_uint) Set =
            |s, _, to_kind, to, from_kind, from, n| {
                let (to, from, n) = (to as usize, from as usize, n as usize);
                Ok(s.move_dims(dim(to_kind), to, dim(from_kind), from, n))
            };
        lexmin() Set = |s, b| s.lexicographic(false, b);
        lexmax() Set = |s, b| s.lexicographic(true, b);
        flatten() Set = |s, _| Ok(s.clone());
        identity() Map = |s, _| s.identity();
        affine_hull() BasicSet = |s, b| s.affine_hull(b);
        nothing() Map = |s, _| Ok(s.to_nothing());
        intersect(other: Set) Set, pairs other = |s, b, other| s.intersect(&other.raw, b);
        subtract(other: Set) Set, pairs other = |s, b, other| s.subtract(&other.raw, b);
        gist(context: Set) Set, pairs context = |s, b, context| s.gist(&context.raw, b);
        apply(map: Map) Set, pairs map = |s, b, map| s.apply(&map.raw, b);
    }

    /// All other points; [`Reason::ManyParts`] for a union of very many parts.
    pub fn complement(self) -> Known<Set> {
        few_pairs(&self.raw, &self.raw)?;
        let raw = self.raw.complement(&self.ctx.budget());
        Set::made(&self.ctx, self.ctx.known(raw)?)
    }

    /// The union in fewer parts, where that does not take long.
    pub fn coalesce(self) -> Known<Set> {
        if !self.ctx.0.coalesces.get() || few_pairs(&self.raw, &self.raw).is_err() {
            return Ok(self);
        }
        let raw = self.raw.coalesce(&self.ctx.budget());
        Set::made(&self.ctx, self.ctx.known(raw)?)
    }

    pub fn sample(self) -> Known<Point> {
        let values = self.ctx.known(self.raw.sample(&self.ctx.budget()))?;
        Ok(Point { params: self.raw.dim(Dim::Param), values })
    }

    fn extreme(&self, at: c_int, greatest: bool) -> Known<PwAff> {
        let raw = self.raw.extreme(at as usize, greatest, &self.ctx.budget());
        Ok(PwAff { ctx: self.ctx.clone(), raw: self.ctx.known(raw)? })
    }

    pub fn dim_min(self, at: c_int) -> Known<PwAff> {
        self.extreme(at, false)
    }

    pub fn dim_max(self, at: c_int) -> Known<PwAff> {
        self.extreme(at, true)
    }

    /// The ends of a dimension; none where it has no bound that is a number.
    pub fn ends(&self, at: usize) -> Known<Ends> {
        let end = |greatest: bool| {
            let end = self.raw.extreme_value(Dim::Out, at, greatest, &self.ctx.budget());
            match end {
                Ok(v) => Ok(i64::try_from(v).ok()),
                Err(Stop::Empty | Stop::Unbounded) => Ok(None),
                Err(stop) => Err(self.ctx.why(stop)),
            }
        };
        Ok((end(false)?, end(true)?))
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

    pub fn dim(&self, kind: c_uint) -> Known<usize> {
        Ok(self.raw.dim(dim(kind)))
    }

    pub fn basic_sets(&self) -> Known<usize> {
        Ok(self.raw.count())
    }

    /// The names of all parameters.
    pub fn param_names(&self) -> Known<Vec<String>> {
        let lost = || Reason::Engine("no name".into()).into();
        let named = |i| self.raw.space().param(i).map(str::to_owned).ok_or_else(lost);
        (0..self.raw.dim(Dim::Param)).map(named).collect()
    }

    /// The conjunctions whose union this is.
    pub fn parts(&self) -> Known<Vec<BasicSet>> {
        let part = |raw| BasicSet { ctx: self.ctx.clone(), raw };
        Ok(self.raw.split().into_iter().map(part).collect())
    }
}

impl BasicSet {
    fn made(ctx: &Ctx, raw: pb::Relation) -> Known<BasicSet> {
        Ok(BasicSet { ctx: ctx.clone(), raw })
    }

    pub fn set(self) -> Known<Set> {
        Set::made(&self.ctx, self.raw)
    }

    /// The constraints, without those that only define divisions. All divisions must be known
    /// ([`Set::compute_divs`]).
    pub fn constraints(&self) -> Known<Vec<Constraint>> {
        let space = self.raw.space();
        let constraint = |(raw, is_equality)| Constraint {
            aff: Aff { ctx: self.ctx.clone(), space: space.clone(), raw },
            is_equality,
        };
        Ok(self.raw.constraints().into_iter().flatten().map(constraint).collect())
    }
}

impl Constraint {
    pub fn aff(&self) -> Known<Aff> {
        Ok(self.aff.clone())
    }

    pub fn is_equality(&self) -> Known<bool> {
        Ok(self.is_equality)
    }
}

impl Map {
    fn made(ctx: &Ctx, raw: pb::Relation) -> Known<Map> {
        Ok(Map { ctx: ctx.clone(), raw, names: [None, None] })
    }

    sets! {
        flat_range_product(other: Map) Map = |m, b, other| m.flat_range_product(&other.raw, b);
        reverse() Map = |m, _| Ok(m.reverse());
        union(other: Map) Map = |m, _, other| Ok(m.union(&other.raw));
        domain() Set = |m, b| m.domain(b);
        range() Set = |m, b| m.range(b);
        reset_tuple(kind: c_uint) Map = |m, _, _| Ok(m.clone());
        wrap() Set = |m, _| Ok(m.wrap());
        move_dims(_tokind: c_uint, to: c_uint, from_kind: c_uint, from: c_uint, n: c_uint) Map =
            |m, _, to_kind, to, from_kind, from, n| {
                let (to, from, n) = (to as usize, from as usize, n as usize);
                Ok(m.move_dims(dim(to_kind), to, dim(from_kind), from, n))
            };
        insert_dims(kind: c_uint, at: c_uint, n: c_uint) Map = |m, _, kind, at, n| {
            Ok(m.insert_dims(dim(kind), at as usize, n as usize))
        };
        project_out(kind: c_uint, at: c_uint, n: c_uint) Map = |m, b, kind, at, n| {
            m.project_out(dim(kind), at as usize, n as usize, b)
        };
        on_domain(domain: Set) Map, pairs domain = |m, b, domain| {
            m.intersect_domain(&domain.raw, b)
        };
        then(other: Map) Map, pairs other = |m, b, other| m.then(&other.raw, b);
        subtract(other: Map) Map, pairs other = |m, b, other| m.subtract(&other.raw, b);
        intersect(other: Map) Map, pairs other = |m, b, other| m.intersect(&other.raw, b);
        intersect_range(range: Set) Map, pairs range = |m, b, range| {
            m.intersect_range(&range.raw, b)
        };
        subtract_range(range: Set) Map, pairs range = |m, b, range| {
            m.subtract_range(&range.raw, b)
        };
    }

    /// The union in fewer parts, where that does not take long.
    pub fn coalesce(self) -> Known<Map> {
        if !self.ctx.0.coalesces.get() || few_pairs(&self.raw, &self.raw).is_err() {
            return Ok(self);
        }
        let raw = self.raw.coalesce(&self.ctx.budget());
        Map::made(&self.ctx, self.ctx.known(raw)?)
    }

    /// Names parameter `at`.
    pub fn name_param(self, at: usize, name: &str) -> Known<Map> {
        Ok(Map { raw: self.raw.with_param_name(at, name), ..self })
    }

    /// Each output as a function of the inputs.
    pub fn function(self) -> Known<PwMultiAff> {
        let mut values = Vec::new();
        for at in 0..self.raw.dim(Dim::Out) {
            let raw = self.ctx.known(self.raw.function(at, &self.ctx.budget()))?;
            values.push(PwAff { ctx: self.ctx.clone(), raw });
        }
        Ok(PwMultiAff { values })
    }

    /// Names a tuple.
    pub fn set_tuple(mut self, kind: c_uint, name: &CStr) -> Known<Map> {
        self.names[usize::from(kind != IN)] = Some(name.to_string_lossy().into_owned());
        Ok(self)
    }

    pub fn tuple(&self, kind: c_uint) -> Known<Option<String>> {
        Ok(self.names[usize::from(kind != IN)].clone())
    }

    pub fn union_map(self) -> Known<UnionMap> {
        Ok(UnionMap { maps: vec![self] })
    }

    pub fn is_subset(&self, other: &Map) -> Known<bool> {
        few_pairs(&self.raw, &other.raw)?;
        self.ctx.known(self.raw.is_subset(&other.raw, &self.ctx.budget()))
    }

    pub fn is_injective(&self) -> Known<bool> {
        self.ctx.known(self.raw.is_injective(&self.ctx.budget()))
    }

    pub fn is_empty(&self) -> Known<bool> {
        self.ctx.known(self.raw.is_empty(&self.ctx.budget()))
    }
}
