//! What an open size may be: from the least to the most, both included.
//!
//! A size is at least 1 and at most [`MAX_CELLS`] unless its variable says less. Proofs use the range, and what
//! runs a program refuses sizes outside of it.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// Most cells of a tensor of open size: compiled functions count them in `int32`, and what runs
/// them checks it. Less than that type counts, by what tiles and padding add to a size: sums such as
/// `(n + 63) // 64` then stay in the type, which proofs of accesses need.
pub const MAX_CELLS: usize = (1 << 31) - (1 << 16);

/// What a size that nothing is known of is taken for in decisions about speed: many small numbers divide it.
pub const USUAL_SIZE: usize = 240;

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
}

impl SizeRange {
    /// Every size that a program can run at.
    pub const ALL: SizeRange = SizeRange { least: 1, most: MAX_CELLS };

    /// Every size that data may decide while a program runs.
    pub const WITH_ZERO: SizeRange = SizeRange { least: 0, most: MAX_CELLS };

    /// From the least to the most, which is itself a size of the range.
    ///
    /// # Errors
    /// [`Error::Input`] for a range without sizes, or beyond [`SizeRange::ALL`].
    pub fn new(least: usize, most: usize) -> Result<SizeRange> {
        let range = SizeRange { least, most };
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
        match self.most {
            MAX_CELLS => format!("at least {least} and at most 2^31 - 2^16"),
            most => format!("at least {least} and at most {most}"),
        }
    }

    /// Whether a size is one of them.
    pub fn contains(self, size: usize) -> bool {
        (self.least..=self.most).contains(&size)
    }
}

impl fmt::Display for SizeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.least, self.most)
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
