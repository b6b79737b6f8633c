//! Numbers, and what a question may cost.
//!
//! Coefficients are kept in 128 bits and multiplied in 64 where both factors have no more: one
//! machine instruction, which nearly all products of index arithmetic take. What leaves 128 bits
//! stops a question with [`Stop::TooLarge`] where it would have to be stored; the tableau, whose
//! numbers grow by far the most, goes on in big integers (`tableau`).

use std::cell::Cell;
use std::fmt;

/// A coefficient or coordinate.
pub type Int = i128;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The budget is spent.
    Budget,
    /// A number does not fit 128 bits.
    TooLarge,
    /// The quantity that is asked for has no bound.
    Unbounded,
    /// The quantity that is asked for does not exist: the least element of an empty set.
    Empty,
    /// The relation is not a function that can be written piece by piece.
    NoForm,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stop::Budget => "the budget of operations is spent",
            Stop::TooLarge => "a number is too large",
            Stop::Unbounded => "there is no bound",
            Stop::Empty => "the set is empty",
            Stop::NoForm => "the relation is not written as a function",
        })
    }
}

impl std::error::Error for Stop {}

/// A value, or why there is none.
pub type Res<T> = Result<T, Stop>;

/// How many operations questions may still take. An operation is about what one row of a small
/// system costs; the count is the same on every machine.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    spent: Cell<u64>,
}

impl Budget {
    /// A budget of so many operations.
    pub fn new(operations: u64) -> Budget {
        Budget { limit: operations, spent: Cell::new(0) }
    }

    /// No limit.
    pub fn unlimited() -> Budget {
        Budget::new(u64::MAX)
    }

    /// What was spent so far.
    pub fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// Counts operations.
    pub(crate) fn charge(&self, operations: usize) -> Res<()> {
        let spent = self.spent.get().saturating_add(operations as u64);
        self.spent.set(spent);
        if spent > self.limit { Err(Stop::Budget) } else { Ok(()) }
    }
}

fn small(a: Int) -> bool {
    a as i64 as Int == a
}

#[inline]
pub(crate) fn mul(a: Int, b: Int) -> Res<Int> {
    if small(a) && small(b) {
        return Ok(Int::from(a as i64) * Int::from(b as i64));
    }
    a.checked_mul(b).ok_or(Stop::TooLarge)
}

#[inline]
pub(crate) fn add(a: Int, b: Int) -> Res<Int> {
    a.checked_add(b).ok_or(Stop::TooLarge)
}

#[inline]
pub(crate) fn neg(a: Int) -> Res<Int> {
    a.checked_neg().ok_or(Stop::TooLarge)
}

/// `a + b * c`.
#[inline]
pub(crate) fn add_mul(a: Int, b: Int, c: Int) -> Res<Int> {
    add(a, mul(b, c)?)
}

/// The greatest common divisor; that of zeros is zero.
pub(crate) fn gcd(a: Int, b: Int) -> Int {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        if let (Ok(x), Ok(y)) = (u64::try_from(a), u64::try_from(b)) {
            return Int::from(gcd_small(x, y));
        }
        (a, b) = (b, a % b);
    }
    // Only the least number of all has no positive counterpart, and no operation makes it.
    a as Int
}

fn gcd_small(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The quotient, rounded down; the divisor is positive.
#[inline]
pub(crate) fn floor_div(a: Int, b: Int) -> Int {
    if small(a) && small(b) {
        return Int::from((a as i64).wrapping_div_euclid(b as i64));
    }
    a.div_euclid(b)
}

/// The quotient, rounded up; the divisor is positive.
#[inline]
pub(crate) fn ceil_div(a: Int, b: Int) -> Int {
    -floor_div(-a, b)
}

/// The remainder from zero; the divisor is positive.
#[inline]
pub(crate) fn floor_mod(a: Int, b: Int) -> Int {
    if small(a) && small(b) {
        return Int::from((a as i64).wrapping_rem_euclid(b as i64));
    }
    a.rem_euclid(b)
}

/// The nearest integer to a quotient; the divisor is positive.
pub(crate) fn round_div(a: Int, b: Int) -> Int {
    let down = floor_div(a, b);
    if (a - down * b) * 2 > b { down + 1 } else { down }
}
