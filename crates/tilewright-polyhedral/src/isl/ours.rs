//! The objects of `object`, made of sets and relations of `presburger`.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_int, c_uint};
use std::rc::Rc;

use presburger::{self as pb, Budget, Dim, Int, Source, Stop};

use super::api::{Api, DIV, IN, PARAM};
use crate::answer::{Known, Reason, Unknown};
use crate::budget;

/// What limits questions.
#[derive(Clone)]
pub(crate) struct Ctx(Rc<CtxData>);

struct CtxData {
    api: &'static Api,
    budget: RefCell<Rc<Budget>>,
    limit: Cell<Option<u64>>,
    coalesces: Cell<bool>,
}

impl Ctx {
    pub fn new(api: &'static Api) -> Ctx {
        let budget = RefCell::new(Rc::new(Budget::unlimited()));
        Ctx(Rc::new(CtxData { api, budget, limit: Cell::new(None), coalesces: Cell::new(true) }))
    }

    pub fn library(&self) -> &'static Api {
        self.0.api
    }

    /// Whether a limit is in force.
    pub fn is_limited(&self) -> bool {
        self.0.limit.get().is_some()
    }

    fn budget(&self) -> Rc<Budget> {
        self.0.budget.borrow().clone()
    }

    /// Runs `work` with at most this many operations, and counts them for the budget; a limit that is
    /// in force already goes on counting.
    pub fn limited<T>(&self, operations: u64, work: impl FnOnce() -> T) -> T {
        struct Release<'a>(&'a Ctx);
        impl Drop for Release<'_> {
            fn drop(&mut self) {
                if budget::counts() {
                    budget::close(self.0.budget().spent());
                }
                *self.0.0.budget.borrow_mut() = Rc::new(Budget::unlimited());
                self.0.0.limit.set(None);
            }
        }
        if self.is_limited() {
            return work();
        }
        self.0.limit.set(Some(operations));
        *self.0.budget.borrow_mut() = Rc::new(Budget::new(operations.max(1)));
        let _release = Release(self);
        work()
    }

    /// Runs `work` with unions as they are: coalescing them does nothing.
    pub fn without_coalescing<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Restore<'a>(&'a Cell<bool>, bool);
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.0.set(self.1);
            }
        }
        let coalesces = &self.0.coalesces;
        let _restore = Restore(coalesces, coalesces.replace(false));
        work()
    }

    fn why(&self, stop: Stop) -> Unknown {
        match (stop, self.0.limit.get()) {
            (Stop::Budget, Some(operations)) => Reason::Quota { operations }.into(),
            (Stop::Budget, None) => Reason::Quota { operations: u64::MAX }.into(),
            (Stop::TooLarge, _) => Reason::TooLarge.into(),
            (Stop::Unbounded, _) => Reason::Unbounded.into(),
            (Stop::Empty, _) => Reason::Empty.into(),
            (Stop::NoForm, _) => Reason::NoClosedForm.into(),
        }
    }

    fn known<T>(&self, answer: pb::Res<T>) -> Known<T> {
        answer.map_err(|stop| self.why(stop))
    }

    /// An integer of any size.
    pub fn val(&self, value: i128) -> Known<Val> {
        Ok(Val(Some(value)))
    }

    /// The space of sets with these parameters and a number of dimensions.
    pub fn space<'a>(
        &self,
        params: impl ExactSizeIterator<Item = &'a str>,
        dims: usize,
    ) -> Known<Space> {
        Ok(Space { ctx: self.clone(), raw: pb::Space::named(params, 0, dims) })
    }

    /// The points of a space at which functions are zero, and others not negative. A row is a constant
    /// and a coefficient for each dimension.
    pub fn basic_set(
        &self,
        space: &Space,
        zero: &[Vec<i128>],
        not_negative: &[Vec<i128>],
    ) -> Known<BasicSet> {
        let all = pb::Relation::of_constraints(&space.raw, zero, not_negative);
        BasicSet::made(self, self.known(all)?)
    }
}

/// An integer; none where there is no such value.
#[derive(Clone)]
pub(crate) struct Val(Option<Int>);

impl Val {
    /// The value, if it is an integer of 64 bits.
    pub fn to_i64(&self) -> Option<i64> {
        self.0.and_then(|v| i64::try_from(v).ok())
    }

    /// The value, or the reason why it is no number of ours.
    pub fn int(&self) -> Known<i64> {
        self.to_i64().ok_or_else(|| Reason::TooLarge.into())
    }

    fn whole(&self) -> Known<Int> {
        self.0.ok_or_else(|| Reason::TooLarge.into())
    }
}

/// A least and a greatest value, where there is one.
pub(crate) type Ends = (Option<i64>, Option<i64>);

macro_rules! object {
    ($(#[$doc:meta])* $Name:ident: $raw:ty) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub(crate) struct $Name {
            ctx: Ctx,
            raw: $raw,
        }
    };
}

object! {
    /// Parameters and dimensions.
    Space: pb::Space
}
object! {
    /// A space, as that of affine functions.
    LocalSpace: pb::Space
}
object! {
    /// A piecewise affine function, undefined outside its pieces.
    PwAff: pb::PwAff
}
object! {
    /// A union of basic sets.
    Set: pb::Set
}
object! {
    /// A conjunction of constraints.
    BasicSet: pb::Set
}

/// An affine function with integer divisions.
#[derive(Clone)]
pub(crate) struct Aff {
    ctx: Ctx,
    space: pb::Space,
    raw: pb::Aff,
}

/// `aff >= 0` or `aff == 0`.
#[derive(Clone)]
pub(crate) struct Constraint {
    aff: Aff,
    is_equality: bool,
}

/// A relation, with the names of its tuples.
#[derive(Clone)]
pub(crate) struct Map {
    ctx: Ctx,
    raw: pb::Relation,
    names: [Option<String>; 2],
}

/// A point of a set.
pub(crate) struct Point {
    params: usize,
    values: Option<Vec<Int>>,
}

/// A tuple of piecewise affine functions.
pub(crate) struct PwMultiAff {
    values: Vec<PwAff>,
}

/// Relations of several spaces.
#[derive(Clone)]
pub(crate) struct UnionMap {
    maps: Vec<Map>,
}

/// Reads, writes and a schedule.
pub(crate) struct AccessInfo {
    sink: UnionMap,
    must: UnionMap,
    may: UnionMap,
    schedule: UnionMap,
}

/// The result of a flow analysis.
pub(crate) struct Flow {
    must: UnionMap,
    may: UnionMap,
    rest: UnionMap,
}

fn dim(kind: c_uint) -> Dim {
    match kind {
        PARAM => Dim::Param,
        IN => Dim::In,
        _ => Dim::Out,
    }
}

impl Space {
    pub fn local(self) -> Known<LocalSpace> {
        Ok(LocalSpace { ctx: self.ctx, raw: self.raw })
    }

    pub fn universe(self) -> Known<Set> {
        Ok(Set { raw: pb::Relation::universe(&self.raw), ctx: self.ctx })
    }

    pub fn empty(self) -> Known<Set> {
        Ok(Set { raw: pb::Relation::empty(&self.raw), ctx: self.ctx })
    }

    pub fn empty_union(self) -> Known<UnionMap> {
        Ok(UnionMap { maps: Vec::new() })
    }
}

impl LocalSpace {
    pub fn zero(self) -> Known<Aff> {
        let raw = pb::Aff::new(vec![0; 1 + self.raw.total()]);
        Ok(Aff { ctx: self.ctx, space: self.raw, raw })
    }
}

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

impl UnionMap {
    pub fn union(mut self, other: UnionMap) -> Known<UnionMap> {
        for map in other.maps {
            match self.maps.iter_mut().find(|m| m.names == map.names) {
                Some(known) => known.raw = known.raw.union(&map.raw),
                None => self.maps.push(map),
            }
        }
        Ok(self)
    }

    pub fn sink(self) -> Known<AccessInfo> {
        let none = || UnionMap { maps: Vec::new() };
        Ok(AccessInfo { sink: self, must: none(), may: none(), schedule: none() })
    }

    /// The relations, one a space.
    pub fn list(&self) -> Known<Vec<Map>> {
        Ok(self.maps.clone())
    }
}

impl AccessInfo {
    pub fn must_source(self, writes: UnionMap) -> Known<AccessInfo> {
        Ok(AccessInfo { must: writes, ..self })
    }

    pub fn may_source(self, writes: UnionMap) -> Known<AccessInfo> {
        Ok(AccessInfo { may: writes, ..self })
    }

    pub fn schedule(self, order: UnionMap) -> Known<AccessInfo> {
        Ok(AccessInfo { schedule: order, ..self })
    }

    /// The flow into the sink, which is one relation.
    pub fn flow(self) -> Known<Flow> {
        let none = || UnionMap { maps: Vec::new() };
        let Some(sink) = self.sink.maps.first() else {
            return Ok(Flow { must: none(), may: none(), rest: none() });
        };
        let lost = || Unknown::from(Reason::Engine("an access without a time".into()));
        let time = |map: &Map| {
            let found = self.schedule.maps.iter().find(|m| m.names[0] == map.names[0]);
            found.map(|m| m.raw.clone()).ok_or_else(lost)
        };
        let writes = || {
            let must = self.must.maps.iter().map(|m| (m, true));
            must.chain(self.may.maps.iter().map(|m| (m, false)))
        };
        let sources = writes()
            .map(|(m, is_certain)| Ok(Source { cells: m.raw.clone(), time: time(m)?, is_certain }));
        let sources = sources.collect::<Known<Vec<_>>>()?;
        let ctx = &sink.ctx;
        let flow = pb::last_writers(&sink.raw, &time(sink)?, &sources, &ctx.budget());
        let flow = ctx.known(flow)?;
        let named = |raws: Vec<pb::Relation>| {
            let pairs = writes().zip(raws).map(|((m, _), raw)| Map {
                ctx: ctx.clone(),
                raw,
                names: [m.names[0].clone(), sink.names[0].clone()],
            });
            UnionMap { maps: pairs.collect() }
        };
        let rest = Map { ctx: ctx.clone(), raw: flow.rest, names: sink.names.clone() };
        Ok(Flow {
            must: named(flow.certain),
            may: named(flow.possible),
            rest: UnionMap { maps: vec![rest] },
        })
    }
}

impl Flow {
    pub fn must(&self) -> Known<UnionMap> {
        Ok(self.must.clone())
    }

    pub fn may(&self) -> Known<UnionMap> {
        Ok(self.may.clone())
    }

    pub fn may_no_source(&self) -> Known<UnionMap> {
        Ok(self.rest.clone())
    }
}
