//! Sets, relations and functions of `presburger` whose operations are charged to a question.
//!
//! An operation of `presburger` takes a budget, and says why it stops. Here the budget is that of the
//! question which this thread asks ([`Ctx::limited`]), a stop is an [`Unknown`] with its reason, and
//! an operation on the pairs of parts of two unions is refused where there are very many pairs.

mod function;
mod map;
mod set;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use presburger::{self as pb, Budget, Stop};

use crate::answer::{Known, Reason, Unknown};
use crate::budget;

pub(crate) use function::PwAff;
pub(crate) use map::{Map, Source, last_writers};
pub(crate) use set::{Constraint, Ends, Set};

/// What limits questions.
#[derive(Clone)]
pub(crate) struct Ctx(Rc<CtxData>);

struct CtxData {
    budget: RefCell<Rc<Budget>>,
    limit: Cell<Option<u64>>,
}

impl Ctx {
    pub fn new() -> Ctx {
        let budget = RefCell::new(Rc::new(Budget::unlimited()));
        Ctx(Rc::new(CtxData { budget, limit: Cell::new(None) }))
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

    /// The answer of an operation.
    pub fn known<T>(&self, answer: pb::Res<T>) -> Known<T> {
        answer.map_err(|stop| self.why(stop))
    }

    /// All points of a space.
    pub fn universe(&self, space: &pb::Space) -> Set {
        Set::new(self, pb::Relation::universe(space))
    }

    /// No point of a space.
    pub fn empty(&self, space: &pb::Space) -> Set {
        Set::new(self, pb::Relation::empty(space))
    }

    /// The points at which affine functions are zero, and others not negative. A row is a constant and
    /// a coefficient for each dimension.
    pub fn conjunction(
        &self,
        space: &pb::Space,
        zero: &[Vec<i128>],
        not_negative: &[Vec<i128>],
    ) -> Known<Set> {
        let points = pb::Relation::of_constraints(space, zero, not_negative);
        Ok(Set::new(self, self.known(points)?))
    }

    /// An affine function, defined everywhere.
    pub fn function(&self, space: &pb::Space, row: Vec<i128>) -> PwAff {
        PwAff::new(self, pb::PwAff::new(space, pb::Aff::new(row)))
    }
}

/// Pairs of parts, each counted by the square of its dimensions, that one operation looks at.
const MAX_PAIRS: usize = 1 << 16;

/// The dimensions up to which all pairs count alike.
const FEW_DIMS: usize = 4;

/// Whether an operation on the pairs of parts of two unions is one that ends soon.
///
/// # Errors
/// [`Reason::ManyParts`].
fn few_pairs(one: &pb::Relation, other: &pb::Relation) -> Known<()> {
    let (m, n) = (one.count(), other.count());
    let dims = one.space().total().max(other.space().total());
    let weight = dims.max(FEW_DIMS) * dims.max(FEW_DIMS);
    if m.saturating_mul(n).saturating_mul(weight) <= MAX_PAIRS || m * n <= 1 {
        return Ok(());
    }
    Err(Reason::ManyParts { parts: m.max(n), dims }.into())
}

/// A union in fewer parts; one of very many parts as it is.
fn coalesced(ctx: &Ctx, union: &pb::Relation) -> Known<pb::Relation> {
    if few_pairs(union, union).is_err() {
        return Ok(union.clone());
    }
    ctx.known(union.coalesce(&ctx.budget()))
}
