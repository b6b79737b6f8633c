//! Bit operations as sums that integer sets know.
//!
//! A digit of `x` is `x // 2^j % 2`, in two's complement of any width, so that negative numbers need no
//! case of their own. With digits `p` and `q` of two numbers, `(p + q) % 2` is the digit of `x ^ y`, and
//! since `p` is `x // 2^j` but for a multiple of two, that is `(x // 2^j + y // 2^j) % 2`; `(p + q) // 2` is the
//! digit of `x & y`. So a swizzle is one affine piece with divisions, and no case is split.
//!
//! By a constant, runs of ones are taken together: `x & 12` is `x // 4 % 4 * 4`. Of two numbers that
//! vary, one has to be between zero and a power of two: its digits are those that matter.

use crate::answer::Known;
use crate::form::{Sum, too_large};

/// Most digits of which a number that varies may have an effect.
const MAX_DIGITS: u32 = 24;

/// An operation on the digits of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bitwise {
    And,
    Or,
    Xor,
}

/// The number of digits of a number that is not negative.
pub(crate) fn digits(n: i128) -> u32 {
    128 - n.leading_zeros()
}

/// The result of an operation on two numbers. `most` are their greatest values, where they are known and
/// never negative; `None` where neither is known to have few digits.
pub(crate) fn bitwise(
    op: Bitwise,
    x: &Sum,
    y: &Sum,
    most: [Option<i128>; 2],
) -> Known<Option<Sum>> {
    let both = match (x.as_constant(), y.as_constant()) {
        (_, Some(mask)) => masked(x, mask)?,
        (Some(mask), _) => masked(y, mask)?,
        _ if x == y => x.clone(),
        _ => {
            let [first, second] = most.map(|most| most.map(digits));
            let few = [first, second].into_iter().flatten().min();
            let Some(few) = few.filter(|n| *n <= MAX_DIGITS) else { return Ok(None) };
            return match op {
                Bitwise::And => shared(x, y, few),
                Bitwise::Xor => differing(x, y, few, second == Some(few)),
                // x | y = x + y - (x & y)
                Bitwise::Or => x.clone().plus(y, 1)?.plus(&shared_digits(x, y, few)?, -1).map(Some),
            };
        }
    };
    let sum = x.clone().plus(y, 1)?;
    Ok(Some(match op {
        Bitwise::And => both,
        Bitwise::Or => sum.plus(&both, -1)?,
        Bitwise::Xor => sum.plus(&both, -2)?,
    }))
}

fn shared(x: &Sum, y: &Sum, digits: u32) -> Known<Option<Sum>> {
    shared_digits(x, y, digits).map(Some)
}

/// `x & y`, where one of them has so many digits.
fn shared_digits(x: &Sum, y: &Sum, digits: u32) -> Known<Sum> {
    let mut out = Sum::default();
    for j in 0..digits {
        let both = binary_digit(x, j)?.plus(&binary_digit(y, j)?, 1)?.div(2)?;
        out = out.plus(&both, 1 << j)?;
    }
    Ok(out)
}

fn binary_digit(s: &Sum, j: u32) -> Known<Sum> {
    s.div(1 << j)?.modulo(2)
}

/// `x ^ y`, where one of them has so many digits: `y`, or else `x`.
fn differing(x: &Sum, y: &Sum, digits: u32, second: bool) -> Known<Option<Sum>> {
    let long = if second { x } else { y };
    // What lies above the digits stays.
    let mut out = long.clone().plus(&long.modulo(1 << digits)?, -1)?;
    for j in 0..digits {
        let digit = x.div(1 << j)?.plus(&y.div(1 << j)?, 1)?.modulo(2)?;
        out = out.plus(&digit, 1 << j)?;
    }
    Ok(Some(out))
}

/// `x & mask`, by the runs of ones of the mask.
fn masked(x: &Sum, mask: i128) -> Known<Sum> {
    if mask < 0 {
        // What the complement of the mask takes goes.
        return x.clone().plus(&masked(x, !mask)?, -1);
    }
    let mut out = Sum::default();
    let mut at = 0;
    while mask >> at != 0 {
        let low = at + (mask >> at).trailing_zeros();
        let width = (mask >> low).trailing_ones();
        out =
            out.plus(&x.div(one_shifted(low)?)?.modulo(one_shifted(width)?)?, one_shifted(low)?)?;
        at = low + width;
    }
    Ok(out)
}

fn one_shifted(by: u32) -> Known<i128> {
    too_large(1i128.checked_shl(by).filter(|v| *v > 0))
}
