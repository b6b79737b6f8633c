//! Integers that may be negative and depend on open sizes: bounds that count from the end,
//! differences of sizes.

use std::fmt;
use std::sync::Arc;

use super::expression::form_of;
use super::{Dim, Form};
use crate::dtype::DType;
use crate::error::Result;
use crate::expr::Expr;

/// The integers of an expression that is known but for open sizes. Unlike a [`Dim`] it may be
/// negative: a bound that counts from the end, a difference of sizes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Integer {
    Number(i64),
    /// An expression of open sizes, in the normal form of sizes.
    Open(Dim),
}

impl Integer {
    /// The integer that an expression stands for; `None` where it is none: loads, and what is no
    /// arithmetic.
    pub fn from_expr(e: &Expr) -> Option<Integer> {
        Integer::new(form_of(e)?)
    }

    fn new(form: Form) -> Option<Integer> {
        Some(match form.as_number() {
            Some(n) => Integer::Number(i64::try_from(n).ok()?),
            None => Integer::Open(form.dim()),
        })
    }

    fn form(self) -> Arc<Form> {
        match self {
            Integer::Number(n) => Arc::new(Form::number(n.into())),
            Integer::Open(d) => d.form(),
        }
    }

    /// The number, where it is one.
    pub fn number(self) -> Option<i64> {
        match self {
            Integer::Number(n) => Some(n),
            Integer::Open(d) => d.number(),
        }
    }

    /// The size, where it is no negative number.
    pub fn dim(self) -> Option<Dim> {
        match self {
            Integer::Number(n) => usize::try_from(n).ok().map(Dim::from),
            Integer::Open(d) => Some(d),
        }
    }

    /// The number.
    ///
    /// # Errors
    /// `Unsupported` where it is open; `what` needs it.
    pub fn fixed(self, what: &str) -> Result<i64> {
        match self {
            Integer::Number(n) => Ok(n),
            Integer::Open(d) => Ok(i64::try_from(d.fixed(what)?).unwrap_or(i64::MAX)),
        }
    }

    /// The sum; `None` beyond 64 bits.
    pub fn plus(self, other: impl Into<Integer>) -> Option<Integer> {
        Integer::new(self.form().plus(&other.into().form(), 1))
    }

    /// The difference; `None` beyond 64 bits.
    pub fn minus(self, other: impl Into<Integer>) -> Option<Integer> {
        Integer::new(self.form().plus(&other.into().form(), -1))
    }

    /// The product; `None` beyond 64 bits.
    pub fn times(self, other: impl Into<Integer>) -> Option<Integer> {
        Integer::new(self.form().times(&other.into().form()))
    }

    /// The quotient, rounded down; `None` where the divisor may be zero or less.
    pub fn floordiv(self, by: impl Into<Integer>) -> Option<Integer> {
        let by = by.into();
        if by.is_less(1) != Some(false) {
            return None;
        }
        let (a, b) = (self.form(), by.form());
        // Of what may be negative: as much as the larger one of both, less what is left out.
        let (zero, minus) = (Form::default(), Form::default().plus(&a, -1));
        Integer::new(match self.is_less(0) {
            Some(false) => a.floordiv(&b),
            _ => {
                let up = a.choice(&zero, true).floordiv(&b);
                let down = minus.choice(&zero, true).plus(&b, 1).plus(&Form::number(1), -1);
                up.plus(&down.floordiv(&b), -1)
            }
        })
    }

    /// The quotient, rounded towards zero; `None` where the divisor may be zero or less.
    pub fn truncdiv(self, by: impl Into<Integer>) -> Option<Integer> {
        let by = by.into();
        if by.is_less(1) != Some(false) {
            return None;
        }
        Integer::new(self.form().truncdiv(&by.form()))
    }

    /// The larger one; `None` beyond 64 bits.
    pub fn max(self, other: impl Into<Integer>) -> Option<Integer> {
        Integer::new(self.form().choice(&other.into().form(), true))
    }

    /// The smaller one; `None` beyond 64 bits.
    pub fn min(self, other: impl Into<Integer>) -> Option<Integer> {
        Integer::new(self.form().choice(&other.into().form(), false))
    }

    /// Whether it is less than another for all open sizes, or for none; `None` where neither is
    /// certain.
    pub fn is_less(self, other: impl Into<Integer>) -> Option<bool> {
        let (a, b) = (self.form(), other.into().form());
        let difference = b.plus(&a, -1);
        if difference.plus(&Form::number(1), -1).is_never_negative() {
            return Some(true);
        }
        a.plus(&b, -1).is_never_negative().then_some(false)
    }

    /// Whether it equals another for all open sizes, or for none; `None` where neither is
    /// certain.
    pub fn equals(self, other: impl Into<Integer>) -> Option<bool> {
        let other = other.into();
        if self == other {
            return Some(true);
        }
        let apart = self.is_less(other) == Some(true) || other.is_less(self) == Some(true);
        apart.then_some(false)
    }

    /// As an `int32` expression, for use inside of a tensor function.
    pub fn expr(self) -> Expr {
        match self {
            Integer::Number(n) => Expr::int(n, DType::I32),
            Integer::Open(d) => d.expr(),
        }
    }

    /// As an `int64` expression for use inside of a tensor function.
    pub fn long(self) -> Expr {
        match self {
            Integer::Number(n) => Expr::int(n, DType::I64),
            Integer::Open(d) => d.long(),
        }
    }
}

impl From<i64> for Integer {
    fn from(n: i64) -> Integer {
        Integer::Number(n)
    }
}

impl From<Dim> for Integer {
    fn from(d: Dim) -> Integer {
        d.number().map_or(Integer::Open(d), Integer::Number)
    }
}

impl fmt::Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Integer::Number(n) => write!(f, "{n}"),
            Integer::Open(d) => write!(f, "{d}"),
        }
    }
}

impl fmt::Debug for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
