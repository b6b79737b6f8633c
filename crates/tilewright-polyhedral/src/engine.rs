//! The engine of this thread, and how much it may work.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use tilewright_ir::{Expr, Var};

use crate::answer::{Known, Reason};
use crate::budget;
use crate::charged::Ctx;
use crate::form::Pred;
use crate::memory::{Answer, Question};
use crate::normalizer::Normalizer;

/// Operations that a question may take unless the caller says otherwise. Simple questions take
/// tens to hundreds; this many take about a second.
pub const DEFAULT_QUOTA: u64 = 4_000_000;

/// Questions for which sets were made.
static ASKED: AtomicU64 = AtomicU64::new(0);

/// Questions that were answered without sets.
static SPARED: AtomicU64 = AtomicU64::new(0);

/// How many questions were put to engines in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Questions {
    pub all: u64,
    /// Those for which sets were made; the others were seen at once, or asked before.
    pub by_sets: u64,
}

impl Questions {
    /// Those of all threads so far.
    pub fn so_far() -> Questions {
        let by_sets = ASKED.load(Ordering::Relaxed);
        Questions { all: by_sets + SPARED.load(Ordering::Relaxed), by_sets }
    }
}

thread_local! {
    /// What is given of the function that the work of this thread is about.
    static ABOUT: RefCell<About> = RefCell::default();
}

/// What is given of a function.
#[derive(Clone, Default)]
struct About {
    /// Its variables that hold data.
    data: Rc<BTreeSet<Var>>,
    /// Conditions on its sizes that hold in every call.
    facts: Rc<Vec<Pred>>,
}

/// Access to the set engine.
///
/// Everything is built from one: [`Engine::domain`] is the usual start. There is one context a
/// thread; engines of a thread share it, and what they make stays on the thread (no `Send`).
#[derive(Clone)]
pub struct Engine {
    pub(crate) ctx: Ctx,
    quota: u64,
    about: About,
}

impl Engine {
    /// The engine of this thread, with the default quota.
    #[allow(clippy::new_without_default)] // Two engines of different threads are not equal.
    pub fn new() -> Engine {
        thread_local! {
            static CTX: Ctx = Ctx::new();
        }
        let about = ABOUT.with_borrow(About::clone);
        Engine { ctx: CTX.with(Ctx::clone), quota: DEFAULT_QUOTA, about }
    }

    /// The same engine with another quota: operations that one question may take.
    pub fn with_quota(&self, operations: u64) -> Engine {
        Engine { quota: operations, ..self.clone() }
    }

    /// The same engine for expressions in which these variables hold data: any value of their type,
    /// on which arithmetic wraps. All others are loops and sizes, whose arithmetic stays in its type.
    ///
    /// ```
    /// # use tilewright_ir::Var;
    /// # use tilewright_polyhedral::Engine;
    /// let engine = Engine::new();
    /// let n = Var::index("n");
    /// let grows = (&n + 1).greater(&n);
    /// assert!(engine.domain().prove(&grows).is_yes());
    /// let engine = engine.with_data([n.clone()]);
    /// assert_eq!(engine.domain().prove(&grows).to_string(), "no, at n=2147483647");
    /// let small = engine.domain().with_guard(&n.expr().less(100));
    /// assert!(small.prove(&grows).is_yes());
    /// # Ok::<(), tilewright_ir::Error>(())
    /// ```
    pub fn with_data(&self, vars: impl IntoIterator<Item = Var>) -> Engine {
        self.of_data(vars.into_iter().collect())
    }

    /// The same engine for expressions in which these variables are sizes, and hold no data.
    pub fn with_sizes(&self, vars: impl IntoIterator<Item = Var>) -> Engine {
        let mut data = (*self.about.data).clone();
        for v in vars {
            data.remove(&v);
        }
        self.of_data(data)
    }

    fn of_data(&self, data: BTreeSet<Var>) -> Engine {
        Engine { about: About { data: Rc::new(data), ..self.about.clone() }, ..self.clone() }
    }

    /// The same engine for expressions of sizes of which some conditions always hold: every domain
    /// in which their variables are symbolic has no other points. A condition that has no normal form
    /// is left out.
    ///
    /// ```
    /// # use tilewright_ir::{Range, Var};
    /// # use tilewright_polyhedral::Engine;
    /// let engine = Engine::new();
    /// let n = Var::index("n");
    /// let some = n.expr().floordiv(8).greater_equal(0);
    /// assert!(engine.domain().prove(&some).is_no());
    /// let engine = engine.given(&[n.expr().greater_equal(0)]);
    /// assert!(engine.domain().prove(&some).is_yes());
    /// # Ok::<(), tilewright_ir::Error>(())
    /// ```
    pub fn given(&self, facts: &[Expr]) -> Engine {
        let mut normalizer = self.normalizer();
        let facts: BTreeSet<Pred> = facts.iter().filter_map(|f| normalizer.pred(f).ok()).collect();
        let facts = facts.into_iter().collect();
        Engine { about: About { facts: Rc::new(facts), ..self.about.clone() }, ..self.clone() }
    }

    /// Runs work about one function: every engine that it takes from [`Engine::new`] knows what this
    /// one does of data and sizes.
    pub fn about<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Restore(About);
        impl Drop for Restore {
            fn drop(&mut self) {
                ABOUT.set(std::mem::take(&mut self.0));
            }
        }
        let _restore = Restore(ABOUT.replace(self.about.clone()));
        work()
    }

    /// The conditions on sizes that always hold.
    pub(crate) fn facts(&self) -> &[Pred] {
        &self.about.facts
    }

    /// What brings expressions into normal form.
    pub(crate) fn normalizer(&self) -> Normalizer {
        Normalizer::new(&self.about.data)
    }

    /// Runs a question under the quota, and under the budget of the work that asks it. Questions
    /// that arise inside of one are parts of it.
    pub(crate) fn ask<T>(&self, work: impl FnOnce() -> Known<T>) -> Known<T> {
        if self.ctx.is_limited() {
            return work();
        }
        ASKED.fetch_add(1, Ordering::Relaxed);
        self.ctx.limited(self.open()?, work)
    }

    /// The operations that a question may take.
    fn open(&self) -> Known<u64> {
        budget::open(self.quota).map_err(|operations| Reason::Budget { operations }.into())
    }

    /// Declines a question for which nothing is left.
    pub(crate) fn affords(&self) -> Known<()> {
        if self.ctx.is_limited() { Ok(()) } else { self.open().map(drop) }
    }

    /// Makes what a question is about, under the quota, and charges nothing for it.
    pub(crate) fn prepare<T>(&self, work: impl FnOnce() -> Known<T>) -> Known<T> {
        if self.ctx.is_limited() {
            return work();
        }
        budget::outside_budgets(|| self.ctx.limited(self.quota, work))
    }

    /// Whether the answer to a question is seen without sets. If so, that was a question.
    pub(crate) fn sees(&self, answer: impl FnOnce() -> bool) -> Known<bool> {
        if self.ctx.is_limited() {
            return Ok(answer());
        }
        self.open()?;
        let seen = answer();
        if seen {
            SPARED.fetch_add(1, Ordering::Relaxed);
            budget::close(0);
        }
        Ok(seen)
    }

    /// The answer to a question: the one that it had before in this process, or the one that `work`
    /// finds; see [`crate::memory`].
    pub(crate) fn remembered<T: Answer>(
        &self,
        question: Option<Question>,
        work: impl FnOnce() -> Known<T>,
    ) -> Known<T> {
        let Some(question) = question.filter(|_| !self.ctx.is_limited()) else { return work() };
        let Some(asked) = question.asked() else { return work() };
        if let Some((answer, charge)) = asked.answer()
            && budget::pay(charge)
        {
            SPARED.fetch_add(1, Ordering::Relaxed);
            return Ok(answer);
        }
        let (answer, charge) = budget::charged(work);
        if let Ok(answer) = &answer {
            asked.keep(answer, charge);
        }
        answer
    }

    /// Operations that a question may take.
    pub(crate) fn quota(&self) -> u64 {
        self.quota
    }
}
