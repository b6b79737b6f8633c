//! How much a piece of work may ask.
//!
//! Every question has a quota of its own ([`crate::DEFAULT_QUOTA`]), but a pass asks as many
//! questions as its function has places, pairs of accesses or branches. [`within`] runs such a piece
//! of work with a limit for all of its questions together. Once that is spent, each further
//! question is answered with [`Reason::Budget`](crate::Reason::Budget) at once: what is not known
//! stays as it is, and the work ends soon, with a result that holds.
//!
//! What is counted are operations of the set engine, and `QUESTION` more for each question: what
//! forming it takes; the operations of a hard question count more (`charge`). So the same
//! work stops at the same place on every machine. The budget is one of the thread, as the engine is.
//!
//! A condition on a domain is charged as a question without operations. What it takes to make the
//! set of a domain of such conditions is not counted (only limited): it depends on what was asked
//! before whether that is necessary (`memory`).

use std::cell::RefCell;

/// What a question costs apart from the operations of the engine.
const QUESTION: u64 = 256;

/// Operations at which a question costs twice what they are.
const HARD: u64 = 1 << 14;

/// Most that a question is charged beyond its operations.
const MOST: u64 = 1_000_000;

/// What one pass may spend on one function: sixty thousand simple questions, or a few hard ones.
pub const PER_FUNCTION: u64 = 16_000_000;

/// What a piece of work took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Operations, as they are counted.
    pub operations: u64,
    /// Questions that were looked into.
    pub questions: u64,
    /// Questions that were not, because the budget was spent.
    pub declined: u64,
    /// The names of the pieces of work inside of this one whose budget was spent.
    pub short: Vec<String>,
}

#[derive(Default)]
struct Budget {
    limit: u64,
    spent: Spent,
}

thread_local! {
    /// The pieces of work that are under way, outermost first.
    static BUDGETS: RefCell<Vec<Budget>> = const { RefCell::new(Vec::new()) };
}

/// Runs a piece of work whose questions may take `limit` operations together, and no more than what
/// is left to the work around it. `name` is what [`Spent::short`] calls it.
pub fn within<R>(name: &str, limit: u64, work: impl FnOnce() -> R) -> (R, Spent) {
    /// Ends the work, also where it panics: what it spent counts for the work around it.
    struct Open;
    impl Drop for Open {
        fn drop(&mut self) {
            BUDGETS.with_borrow_mut(|budgets| {
                if let Some(inner) = budgets.pop()
                    && let Some(outer) = budgets.last_mut()
                {
                    outer.spent.operations += inner.spent.operations;
                    outer.spent.questions += inner.spent.questions;
                    outer.spent.declined += inner.spent.declined;
                    outer.spent.short.extend(inner.spent.short);
                }
            });
        }
    }
    let limit = limit.min(left());
    BUDGETS.with_borrow_mut(|budgets| budgets.push(Budget { limit, ..Budget::default() }));
    let open = Open;
    let result = work();
    let spent = BUDGETS.with_borrow_mut(|budgets| {
        let spent = budgets.last_mut().map(|b| &mut b.spent)?;
        if spent.declined > 0 && spent.short.is_empty() && !name.is_empty() {
            spent.short.push(name.to_owned());
        }
        Some(spent.clone())
    });
    drop(open);
    (result, spent.unwrap_or_default())
}

/// Runs a part of a piece of work with a limit of its own, so that something is left to the other parts. What is
/// declined in it counts as declined to the whole.
pub fn share<R>(limit: u64, work: impl FnOnce() -> R) -> R {
    within("", limit, work).0
}

/// Runs work that the pieces of work under way do not pay for.
pub(crate) fn outside_budgets<R>(work: impl FnOnce() -> R) -> R {
    struct Restore(Vec<Budget>);
    impl Drop for Restore {
        fn drop(&mut self) {
            BUDGETS.set(std::mem::take(&mut self.0));
        }
    }
    let _restore = Restore(BUDGETS.take());
    work()
}

/// Runs work, and says what it was charged.
pub(crate) fn charged<R>(work: impl FnOnce() -> R) -> (R, u64) {
    let Some(before) = spent_so_far() else {
        let (result, spent) = within("", u64::MAX, work);
        return (result, spent.operations);
    };
    let result = work();
    (result, spent_so_far().unwrap_or(before) - before)
}

fn spent_so_far() -> Option<u64> {
    BUDGETS.with_borrow(|budgets| budgets.last().map(|b| b.spent.operations))
}

/// Charges a question that is not asked again. Whether that much is left; if not, nothing is charged.
pub(crate) fn pay(charge: u64) -> bool {
    let affordable = charge <= left();
    BUDGETS.with_borrow_mut(|budgets| match budgets.last_mut() {
        Some(b) if affordable => {
            b.spent.questions += 1;
            b.spent.operations += charge;
        }
        _ => {}
    });
    affordable
}

/// What the work under way may still spend.
fn left() -> u64 {
    BUDGETS.with_borrow(|budgets| {
        budgets.last().map_or(u64::MAX, |b| b.limit.saturating_sub(b.spent.operations))
    })
}

/// The operations that a question may take which would take up to `quota`; `None` where nothing is
/// left, and the question is declined. The limit that ends the work, if that is less than the quota.
pub(crate) fn open(quota: u64) -> Result<u64, u64> {
    let left = left();
    BUDGETS.with_borrow_mut(|budgets| match budgets.last_mut() {
        Some(b) if left == 0 => {
            b.spent.declined += 1;
            Err(b.limit)
        }
        _ => Ok(quota.min(left)),
    })
}

/// Counts a question that took so many operations.
pub(crate) fn close(operations: u64) {
    BUDGETS.with_borrow_mut(|budgets| {
        if let Some(b) = budgets.last_mut() {
            b.spent.questions += 1;
            b.spent.operations += charge(operations);
        }
    });
}

/// What a question of so many operations is charged. An operation of a hard question, on sets of many
/// parts or dimensions, takes up to a hundred times as long as one of a simple question: the charge
/// grows with the square, up to a limit.
pub fn charge(operations: u64) -> u64 {
    QUESTION + operations + (operations.saturating_mul(operations) / HARD).min(MOST)
}

/// Whether what a question takes has to be counted.
pub(crate) fn counts() -> bool {
    BUDGETS.with_borrow(|budgets| !budgets.is_empty())
}
