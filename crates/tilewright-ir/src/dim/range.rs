//! What an open size may be: from the least to the most, both included, with certain remainders.
//!
//! A size is at least 1 and at most [`MAX_CELLS`] unless its variable says less. Proofs use the range, and what
//! runs a program refuses sizes outside of it.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::expr::Expr;

/// Most cells of a tensor of open size: compiled functions count them in `int32`, and what runs
/// them checks it. Less than that type counts, by what tiles and padding add to a size: sums such as
/// `(n + 63) // 64` then stay in the type, which proofs of accesses need.
pub const MAX_CELLS: usize = (1 << 31) - (1 << 16);

/// What a size that nothing is known of is taken for in decisions about speed: many small numbers divide it.
pub const USUAL_SIZE: usize = 240;

/// The sizes next to multiples of a number: from some below a multiple to some above it.
///
/// An image that is halved five times, rounded up, and doubled once is as large as one that is halved four times where
/// its size is a multiple of 32, or at most 15 less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Remainders {
    /// The number, at least 1.
    pub modulus: usize,
    /// How far below a multiple the smallest of these sizes is; less than the number.
    pub below: usize,
    /// How many there are for each multiple.
    pub count: usize,
}

impl Remainders {
    /// Every size.
    pub const ALL: Remainders = Remainders { modulus: 1, below: 0, count: 1 };

    /// Those next to multiples of a number whose remainders are in this list, in order; `None` where they are not
    /// neighbours, or none.
    pub fn of(modulus: usize, remainders: &[usize]) -> Option<Remainders> {
        let count = remainders.len();
        let gap = |k: usize| {
            let next = remainders[(k + 1) % count];
            (next + modulus - remainders[k]) % modulus
        };
        if count == modulus {
            return Some(Remainders::ALL);
        }
        // The first of a run is the one behind the one gap.
        let gaps: Vec<usize> = (0..count).filter(|k| gap(*k) != 1).collect();
        let first = match gaps.as_slice() {
            [k] => remainders[(k + 1) % count],
            _ => return None,
        };
        Some(Remainders { modulus, below: (modulus - first) % modulus, count })
    }

    /// Whether a size is one of them.
    pub fn contains(self, size: usize) -> bool {
        (size + self.below) % self.modulus < self.count
    }

    /// The condition that an expression of integers is one of them; `None` where every size is.
    pub fn condition(self, size: Expr) -> Option<Expr> {
        let remainder = || (size + self.below as i64).floormod(self.modulus as i64);
        (self.modulus > 1).then(|| remainder().less(self.count as i64))
    }

    /// In words: `a multiple of 32 or at most 7 less`.
    pub fn words(self) -> String {
        let Remainders { modulus, below, count } = self;
        match (count - 1).checked_sub(below) {
            Some(0) if below == 0 => format!("a multiple of {modulus}"),
            Some(0) => format!("a multiple of {modulus} or at most {below} less"),
            Some(above) if below == 0 => {
                format!("a multiple of {modulus} or at most {above} more")
            }
            Some(above) => {
                format!("a multiple of {modulus}, at most {below} less, or at most {above} more")
            }
            None if count == 1 => format!("{below} less than a multiple of {modulus}"),
            None => {
                let least = below + 1 - count;
                format!("{least} to {below} less than a multiple of {modulus}")
            }
        }
    }
}

/// A range of sizes.
///
/// ```
/// use tilewright_ir::dim::SizeRange;
/// let range: SizeRange = "1..512".parse()?;
/// assert!(range.contains(512) && !range.contains(513));
/// # Ok::<(), tilewright_ir::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SizeRange {
    least: usize,
    most: usize,
    remainders: Remainders,
}

impl SizeRange {
    /// Every size that a program can run at.
    pub const ALL: SizeRange = SizeRange { least: 1, most: MAX_CELLS, remainders: Remainders::ALL };

    /// Every size that data may decide while a program runs.
    pub const WITH_ZERO: SizeRange =
        SizeRange { least: 0, most: MAX_CELLS, remainders: Remainders::ALL };

    /// From the least to the most, which is itself a size of the range.
    ///
    /// # Errors
    /// [`Error::Input`] for a range without sizes, or beyond [`SizeRange::ALL`].
    pub fn new(least: usize, most: usize) -> Result<SizeRange> {
        let range = SizeRange { least, most, remainders: Remainders::ALL };
        if least <= most && most <= MAX_CELLS && most > 0 {
            Ok(range)
        } else {
            Err(Error::input(format!("{range} is no range of sizes"))
                .note(format!("a size is at least 0 and at most {MAX_CELLS}")))
        }
    }

    /// The smallest size.
    pub fn least(self) -> usize {
        self.least
    }

    /// The largest size.
    pub fn most(self) -> usize {
        self.most
    }

    /// Those of its sizes with these remainders; what was known of remainders is no longer.
    pub fn with_remainders(self, remainders: Remainders) -> SizeRange {
        SizeRange { remainders, ..self }
    }

    /// The remainders of its sizes.
    pub fn remainders(self) -> Remainders {
        self.remainders
    }

    /// Its size that is closest to another one, and not below that unless it must be.
    pub fn next(self, size: usize) -> usize {
        let inside = size.clamp(self.least, self.most);
        let candidates = inside..=self.most.min(inside + self.remainders.modulus);
        candidates.into_iter().find(|n| self.contains(*n)).unwrap_or_else(|| {
            (self.least..=inside).rev().find(|n| self.contains(*n)).unwrap_or(inside)
        })
    }

    /// The error where a size of this name is none of them.
    pub fn outside(self, name: &str, size: usize) -> Error {
        Error::input(format!("the size of `{name}` is {size}, which is not in the range {self}"))
    }

    /// The range in words: `at least 1 and at most 512`.
    pub fn limits(self) -> String {
        self.limits_from(self.least)
    }

    /// The range in words, from another least size.
    pub fn limits_from(self, least: usize) -> String {
        let ends = match self.most {
            MAX_CELLS => format!("at least {least} and at most 2^31 - 2^16"),
            most => format!("at least {least} and at most {most}"),
        };
        match self.remainders {
            Remainders::ALL => ends,
            remainders => format!("{ends}, and {}", remainders.words()),
        }
    }

    /// Whether a size is one of them.
    pub fn contains(self, size: usize) -> bool {
        (self.least..=self.most).contains(&size) && self.remainders.contains(size)
    }
}

impl fmt::Display for SizeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.least, self.most)?;
        match self.remainders {
            Remainders::ALL => Ok(()),
            remainders => write!(f, " and {}", remainders.words()),
        }
    }
}

impl FromStr for SizeRange {
    type Err = Error;

    /// Reads `LEAST..MOST`.
    fn from_str(text: &str) -> Result<SizeRange> {
        let ends = text.split_once("..").map(|(a, b)| (a.parse(), b.parse()));
        match ends {
            Some((Ok(0), Ok(_))) => {
                Err(Error::input(format!("`{text}` is no range of open sizes"))
                    .note("an open size is at least 1; a size of 0 is given as a number"))
            }
            Some((Ok(least), Ok(most))) => SizeRange::new(least, most),
            _ => Err(Error::input(format!("`{text}` is no range of sizes: expected LEAST..MOST"))),
        }
    }
}
