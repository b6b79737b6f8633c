//! Numbers of shape arithmetic: integers that are known but for open sizes, over a number.
//!
//! Exporters compute sizes by floats, too: half of a length, rounded down. These numbers are what the floats are
//! as long as they are exact, which is so up to some size.

use tilewright_ir::dim::Integer;

/// An integer that is known but for open sizes, over a number of at least one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    above: Integer,
    below: i64,
}

/// The largest number below.
const MOST_BELOW: i64 = 1 << 16;

impl Ratio {
    /// The number that a float is, where it is a fraction of small numbers.
    pub(crate) fn from_float(v: f64) -> Option<Ratio> {
        let powers =
            std::iter::successors(Some(1i64), |n| Some(n * 2).filter(|n| *n <= MOST_BELOW));
        powers.map(|below| (v * below as f64, below)).find_map(|(above, below)| {
            let small = above.fract() == 0.0 && above.abs() < f64::from(i32::MAX);
            small.then(|| Ratio { above: Integer::from(above as i64), below })
        })
    }

    /// The integer, where it is one.
    pub(crate) fn integer(self) -> Option<Integer> {
        (self.below == 1).then_some(self.above)
    }

    /// The number, where it is an integer without open sizes.
    pub(crate) fn number(self) -> Option<i64> {
        self.integer()?.number()
    }

    fn new(above: Integer, below: i64) -> Option<Ratio> {
        if below == 1 {
            return Some(Ratio { above, below });
        }
        let whole = above.floordiv(below)?;
        if whole.times(below)? == above {
            return Some(whole.into());
        }
        (below <= MOST_BELOW).then_some(Ratio { above, below })
    }

    /// Both over one number.
    fn together(self, other: Ratio) -> Option<(Integer, Integer, i64)> {
        let below = self.below.checked_mul(other.below)?;
        Some((self.above.times(other.below)?, other.above.times(self.below)?, below))
    }

    pub(crate) fn plus(self, other: Ratio) -> Option<Ratio> {
        let (a, b, below) = self.together(other)?;
        Ratio::new(a.plus(b)?, below)
    }

    pub(crate) fn minus(self, other: Ratio) -> Option<Ratio> {
        let (a, b, below) = self.together(other)?;
        Ratio::new(a.minus(b)?, below)
    }

    pub(crate) fn times(self, other: Ratio) -> Option<Ratio> {
        Ratio::new(self.above.times(other.above)?, self.below.checked_mul(other.below)?)
    }

    /// The quotient; `None` where the divisor is no positive number.
    pub(crate) fn over(self, other: Ratio) -> Option<Ratio> {
        let by = other.above.number().filter(|n| *n > 0)?;
        Ratio::new(self.above.times(other.below)?, self.below.checked_mul(by)?)
    }

    /// Rounded down.
    pub(crate) fn floor(self) -> Option<Integer> {
        self.above.floordiv(self.below)
    }

    /// Rounded up.
    pub(crate) fn ceil(self) -> Option<Integer> {
        self.above.plus(self.below - 1)?.floordiv(self.below)
    }

    /// Rounded towards zero, as conversions to integers do.
    pub(crate) fn trunc(self) -> Option<Integer> {
        self.above.truncdiv(self.below)
    }

    pub(crate) fn max(self, other: Ratio) -> Option<Ratio> {
        let (a, b, below) = self.together(other)?;
        Ratio::new(a.max(b)?, below)
    }

    pub(crate) fn min(self, other: Ratio) -> Option<Ratio> {
        let (a, b, below) = self.together(other)?;
        Ratio::new(a.min(b)?, below)
    }

    /// Whether it is less for all open sizes, or for none; `None` where neither is certain.
    pub(crate) fn is_less(self, other: Ratio) -> Option<bool> {
        let (a, b, _) = self.together(other)?;
        a.is_less(b)
    }

    /// Whether both are equal for all open sizes, or for none; `None` where neither is certain.
    pub(crate) fn equals(self, other: Ratio) -> Option<bool> {
        let (a, b, _) = self.together(other)?;
        a.equals(b)
    }
}

impl From<Integer> for Ratio {
    fn from(above: Integer) -> Ratio {
        Ratio { above, below: 1 }
    }
}

impl From<i64> for Ratio {
    fn from(n: i64) -> Ratio {
        Integer::from(n).into()
    }
}

#[cfg(test)]
mod tests {
    use tilewright_ir::{DType, Dim, Var};

    use super::*;

    #[test]
    fn floats_of_sizes_are_rounded_as_quotients() {
        let n = Integer::from(Dim::open(&Var::new("n", DType::I64)));
        let [half, most] = [0.5, 0.75].map(|v| Ratio::from_float(v).expect("a small fraction"));
        let halved = Ratio::from(n).times(half).expect("small");
        assert_eq!((halved.integer(), halved.floor()), (None, n.floordiv(2)));
        assert_eq!(halved.ceil(), n.plus(1).and_then(|n| n.floordiv(2)));
        assert_eq!(halved.plus(halved).and_then(Ratio::integer), Some(n));
        let part = Ratio::from(n).times(most).and_then(Ratio::floor);
        assert_eq!(part, n.times(3).and_then(|n| n.floordiv(4)));
        assert_eq!(Ratio::from(n).over(3.into()).and_then(Ratio::trunc), n.floordiv(3));
        assert_eq!(halved.is_less(n.into()), Some(true));
        // A third is no number of a float.
        assert_eq!(Ratio::from_float(f64::from(1.0f32 / 3.0)), None);
        assert_eq!(Ratio::from_float(f64::NAN), None);
        assert_eq!(Ratio::from_float(-2.5).and_then(Ratio::floor), Some(Integer::from(-3)));
    }
}
