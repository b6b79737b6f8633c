//! What a question is answered with.
//!
//! A question about integers has three answers: yes, no (with a point that shows it), and unknown
//! (with the reason). [`Known`] is the result of everything that computes; its error is
//! [`Unknown`], never a wrong value. A pass that gets [`Unknown`] leaves the code as it is and can
//! show the reason.

use std::fmt;

use tilewright_ir::{Error, Expr, Var};

/// A value, or the reason why it is not known.
pub type Known<T> = Result<T, Unknown>;

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The engine was given this many operations, and they were not enough.
    Quota {
        /// The limit, in internal operations of the engine.
        operations: u64,
    },
    /// The work that asks had a budget for all of its questions, and it is spent; see
    /// [`crate::budget`].
    Budget {
        /// The limit, as it is counted.
        operations: u64,
    },
    /// The answer depends on the values of these terms, which are not affine: products of
    /// variables, divisions by variables, elements of buffers.
    NotAffine {
        /// The terms as text.
        terms: Vec<String>,
    },
    /// Sets are unions of so many parts that an operation on them would take long, whatever its
    /// quota.
    ManyParts {
        /// Parts of the larger one.
        parts: usize,
        /// Dimensions, symbolic sizes among them.
        dims: usize,
    },
    /// A number does not fit 64 bits, or an expression is too large or too deep.
    TooLarge,
    /// The question itself does not fit: sets over different variables, a value where a condition
    /// is wanted.
    Mismatch(String),
    /// The quantity has no bound.
    Unbounded,
    /// There is no such value: the minimum of an empty set.
    Empty,
    /// No closed form was found.
    NoClosedForm,
    /// The engine reports a failure of its own.
    Engine(String),
}

/// The third answer, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown(Box<Reason>);

impl Unknown {
    pub fn reason(&self) -> &Reason {
        &self.0
    }
}

impl From<Reason> for Unknown {
    fn from(reason: Reason) -> Unknown {
        Unknown(Box::new(reason))
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Reason::Quota { operations } => {
                write!(f, "not decided within {operations} operations")
            }
            Reason::Budget { .. } => f.write_str("the budget of questions is spent"),
            Reason::NotAffine { terms } => {
                write!(f, "depends on {}, which is not affine", terms.join(", "))
            }
            Reason::ManyParts { parts, dims } => {
                write!(f, "a set has too many parts: {parts} in {dims} dimensions")
            }
            Reason::TooLarge => f.write_str("an integer or expression is too large"),
            Reason::Mismatch(what) => f.write_str(what),
            Reason::Unbounded => f.write_str("there is no bound"),
            Reason::Empty => f.write_str("the set is empty"),
            Reason::NoClosedForm => f.write_str("no closed form was found"),
            Reason::Engine(message) => write!(f, "the set engine failed: {message}"),
        }
    }
}

impl From<Unknown> for Error {
    /// A refusal with the reason as its message.
    fn from(unknown: Unknown) -> Error {
        Error::refused(unknown.to_string())
    }
}

/// A point, by variable: `io=3, ii=2`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    /// Values of variables, in the order of the domain, symbolic sizes last.
    pub values: Vec<(Var, i64)>,
}

impl Witness {
    /// The value of a variable.
    pub fn get(&self, var: &Var) -> Option<i64> {
        self.values.iter().find(|(v, _)| v == var).map(|(_, value)| *value)
    }
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (var, value)) in self.values.iter().enumerate() {
            write!(f, "{}{}={value}", if i > 0 { ", " } else { "" }, var.name())?;
        }
        Ok(())
    }
}

/// Whether a fact holds everywhere in a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// It holds at every point.
    Yes,
    /// It fails, for example here.
    No {
        /// A point of the domain where the fact does not hold.
        witness: Witness,
    },
    /// Not decided.
    Unknown(Unknown),
}

impl Proof {
    /// Whether it is proven.
    pub fn is_yes(&self) -> bool {
        matches!(self, Proof::Yes)
    }

    /// Whether it is refuted.
    pub fn is_no(&self) -> bool {
        matches!(self, Proof::No { .. })
    }

    /// The point that refutes it.
    pub fn witness(&self) -> Option<&Witness> {
        match self {
            Proof::No { witness } => Some(witness),
            _ => None,
        }
    }
}

impl From<Known<Proof>> for Proof {
    fn from(known: Known<Proof>) -> Proof {
        known.unwrap_or_else(Proof::Unknown)
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Proof::Yes => f.write_str("yes"),
            Proof::No { witness } => write!(f, "no, at {witness}"),
            Proof::Unknown(unknown) => write!(f, "unknown: {unknown}"),
        }
    }
}

/// The text of a term for a reason.
pub(crate) fn not_affine<'a>(terms: impl IntoIterator<Item = &'a Expr>) -> Unknown {
    let terms = terms.into_iter().map(|e| format!("`{}`", tilewright_ir::text::brief(e)));
    Reason::NotAffine { terms: terms.collect() }.into()
}
