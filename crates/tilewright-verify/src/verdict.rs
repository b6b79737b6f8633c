//! What is asked and answered.

use std::sync::Arc;

use tilewright_ir::{DType, Span};

use tilewright_interp::Uninitialised;

/// How to compare.
#[derive(Clone, Debug)]
pub struct VerifyOptions {
    /// Sums and products of floats count as equal in any order.
    pub reassociate: bool,
    /// Graphs are compared with floats as real numbers, where calls are compared by groups: divisions by constants are
    /// products, and constants may have been rounded differently.
    pub reals: bool,
    /// Number of different terms, over both functions.
    pub terms: usize,
    /// Number of expressions and statements that are evaluated, over both functions.
    pub steps: u64,
    /// Number of elements of all memories together.
    pub memory: usize,
    /// Reading what was never written.
    pub uninitialised: Uninitialised,
    /// Conditions on integers are decided by integer sets; without, by intervals and orders only.
    pub sets: bool,
    /// Where terms decide nothing soon, both functions run on data.
    pub samples: bool,
}

impl Default for VerifyOptions {
    /// No reassociation, 8 million terms, 400 million steps, 64 million elements; what was never
    /// written may not be read.
    fn default() -> Self {
        VerifyOptions {
            reassociate: false,
            reals: false,
            terms: 8 << 20,
            steps: 400_000_000,
            memory: 64 << 20,
            uninitialised: Uninitialised::Refuse,
            sets: true,
            samples: true,
        }
    }
}

/// The answer.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// The same outputs for every input.
    Equal(Proof),
    /// Not the same outputs for some input.
    Differ(Box<Difference>),
    /// It cannot be said.
    Undecided(Undecided),
}

/// What was proven.
#[derive(Clone, Debug)]
pub struct Proof {
    /// Number of elements that were compared.
    pub cells: usize,
    /// Number of different terms.
    pub terms: usize,
    /// Assumptions on the inputs that the first and the second function rely on.
    pub relied: [Vec<String>; 2],
}

/// The first element that differs.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The output, and the place of the element in it.
    pub cell: String,
    /// What the functions have there, abbreviated.
    pub terms: [String; 2],
    /// What that is for the inputs of the witness.
    pub values: [String; 2],
    /// Inputs that show it: elements with their values. At most eight are listed.
    pub inputs: Vec<(String, String)>,
}

/// Why it cannot be said.
#[derive(Clone, Debug)]
pub struct Undecided {
    /// The reason.
    pub why: String,
    /// The function that it is about: the first (`false`) or the second.
    pub second: Option<bool>,
    /// The place in its source.
    pub span: Option<Span>,
}

/// A parameter or result, as the outside sees it.
pub(super) struct Port {
    pub(super) name: Arc<str>,
    pub(super) dtype: DType,
    /// `None` for scalars.
    pub(super) shape: Option<Vec<usize>>,
}
