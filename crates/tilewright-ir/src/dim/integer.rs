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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Var;

    #[test]
    fn integers_may_be_negative() {
        let n = Dim::open(&Var::new("n", DType::I64));
        let (size, three) = (Integer::from(n), Integer::from(3));
        let less = three.minus(size).expect("in range");
        assert_eq!((less.number(), less.is_less(three), less.is_less(0)), (None, Some(true), None));
        assert_eq!(Integer::from(-1).plus(size), size.minus(1));
        assert_eq!(Integer::from(n).minus(n), Some(Integer::from(0)));
        assert_eq!(Integer::from(-1).dim(), None);
        assert_eq!(size.equals(-1), Some(false));
        assert_eq!((size.equals(1), size.is_less(1), size.is_less(2)), (None, Some(false), None));
        assert_eq!(size.max(-5), Some(size));
        assert_eq!(size.min(-5), Some(Integer::from(-5)));
        assert_eq!(size.times(2).and_then(|d| d.floordiv(2)), Some(size));
        assert_eq!(size.times(2).and_then(|d| d.floordiv(n - 1)), None);
        // Rounded down, a negative number is another one than rounded towards zero.
        for at in 1..9usize {
            let value = |i: Integer| match i {
                Integer::Number(v) => i128::from(v),
                Integer::Open(d) => d.form().value(&|_| Some(at)).expect("it is known"),
            };
            let less = size.minus(4).expect("in range");
            let by = at as i128 - 4;
            assert_eq!(less.floordiv(3).map(value), Some(by.div_euclid(3)), "{at}");
            assert_eq!(less.truncdiv(3).map(value), Some(by / 3), "{at}");
            assert_eq!(less.max(-2).map(value), Some(by.max(-2)), "{at}");
            assert_eq!(less.min(2).map(value), Some(by.min(2)), "{at}");
        }
        assert_eq!(Integer::from_expr(&Expr::int(-7, DType::I64)), Some(Integer::from(-7)));
        assert_eq!(Integer::from(i64::MAX).plus(1), None);
        let error = less.fixed("a stride").expect_err("it is open").to_string();
        assert!(error.contains("a stride: the size"), "{error}");
    }
}
