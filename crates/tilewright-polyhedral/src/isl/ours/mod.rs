//! The objects of `object`, made of sets and relations of `presburger`.

mod flow;
mod functions;
mod sets;

use std::cell::{Cell, RefCell};
use std::ffi::c_uint;
use std::rc::Rc;

use presburger::{self as pb, Budget, Dim, Int, Stop};

use super::api::{Api, IN, PARAM};
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
        Ok(BasicSet { ctx: self.clone(), raw: self.known(all)? })
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
