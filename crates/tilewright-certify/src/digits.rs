//! Bit operations on indices as sums of binary digits, which a certificate can be checked with.
//!
//! A digit of `x` is `x // 2^j % 2`, negative numbers included. `(x // 2^j + y // 2^j) % 2` is that of `x ^ y`,
//! `(x // 2^j % 2 + y // 2^j % 2) // 2` that of `x & y`, and `x | y` is `x + y - (x & y)`. Shifts multiply and divide.

use tilewright_ir::{DType, Expr, ExprKind, Intrin};

use crate::tree::{Writer, Written};

/// Most digits of which there is a term each.
const MOST: u32 = 16;

impl Writer<'_> {
    /// A bit operation on indices as arithmetic; `None` for another operation, for data, and where both operands
    /// may have many digits.
    pub(crate) fn digits(&self, op: Intrin, args: &[Expr]) -> Written<Option<String>> {
        let [x, y] = args else { return Ok(None) };
        let is_index = |e: &Expr| {
            let plain = e.dtype() == DType::I32 || e.dtype() == DType::I64;
            plain && !e.any(|part| matches!(part.kind(), ExprKind::Load(..)))
        };
        if !is_index(x) || !is_index(y) {
            return Ok(None);
        }
        let shift = y.as_int().and_then(|by| 1i64.checked_shl(u32::try_from(by).ok()?));
        let shift = shift.filter(|by| *by > 0);
        let few = [x, y].map(|e| self.width(e)).into_iter().flatten().min();
        let (a, b) = (self.expr(x)?, self.expr(y)?);
        // The sum of terms for the digits, lowest first.
        let sum = |term: &dyn Fn(i64) -> String| {
            let digits = few.filter(|n| (1..=MOST).contains(n))?;
            let terms = (0..digits).map(|j| match 1i64 << j {
                1 => term(1),
                weight => format!("({weight} * {})", term(weight)),
            });
            terms.reduce(|a, b| format!("({a} + {b})"))
        };
        let apart = self
            .ranges
            .possible_ones(x)
            .zip(self.ranges.possible_ones(y))
            .is_some_and(|(x, y)| x & y == 0);
        let both = || sum(&|w| format!("(((({a} // {w}) % 2) + (({b} // {w}) % 2)) // 2)"));
        Ok(match op {
            Intrin::Shl => shift.map(|by| format!("({a} * {by})")),
            Intrin::Shr => shift.map(|by| format!("({a} // {by})")),
            Intrin::BitAnd => match (x.as_int(), y.as_int()) {
                (_, Some(mask @ 0..)) => Some(masked(&a, mask)),
                (Some(mask @ 0..), _) => Some(masked(&b, mask)),
                _ => both(),
            },
            Intrin::BitOr | Intrin::BitXor if apart => Some(format!("({a} + {b})")),
            Intrin::BitOr => both().map(|both| format!("(({a} + {b}) - {both})")),
            Intrin::BitXor => {
                let differing = sum(&|w| format!("((({a} // {w}) + ({b} // {w})) % 2)"));
                // What lies above the digits of one stays as the other has it.
                let wide = [(x, &a), (y, &b)]
                    .into_iter()
                    .find(|(e, _)| self.width(e) > few || self.width(e).is_none());
                differing.zip(few).map(|(sum, n)| match wide {
                    Some((_, e)) => format!("(({e} - ({e} % {})) + {sum})", 1i64 << n),
                    None => sum,
                })
            }
            _ => None,
        })
    }

    /// The binary digits of an index that is never negative and has at most so many.
    fn width(&self, e: &Expr) -> Option<u32> {
        self.ranges.possible_ones(e).map(|ones| 64 - ones.leading_zeros()).filter(|n| *n <= MOST)
    }
}

/// The digits of an index where a mask has ones: a term for each run of them.
fn masked(e: &str, mut mask: i64) -> String {
    let (mut low, mut terms) = (0, Vec::new());
    while mask != 0 {
        let zeros = mask.trailing_zeros();
        let ones = (mask >> zeros).trailing_ones();
        low += zeros;
        terms.push(format!("((({e} // {}) % {}) * {})", 1i64 << low, 1i64 << ones, 1i64 << low));
        low += ones;
        mask = mask >> zeros >> ones;
    }
    let sum = terms.into_iter().reduce(|a, b| format!("({a} + {b})"));
    sum.unwrap_or_else(|| "0".into())
}
