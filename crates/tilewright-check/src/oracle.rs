//! Who answers the questions of a certificate, and what is wrong with one.

use crate::proof::Proof;
use crate::set::{Row, System};

/// What is wrong, and in which line, as far as it is in one.
pub struct Wrong {
    pub line: Option<usize>,
    pub message: String,
}

/// See [`Wrong`].
pub type Judged<T> = Result<T, Wrong>;

impl Wrong {
    /// Something wrong with a line.
    pub fn at(line: usize, message: impl Into<String>) -> Wrong {
        Wrong { line: Some(line), message: message.into() }
    }
}

impl std::convert::From<String> for Wrong {
    fn from(message: String) -> Wrong {
        Wrong { line: None, message }
    }
}

impl std::convert::From<&str> for Wrong {
    fn from(message: &str) -> Wrong {
        message.to_owned().into()
    }
}

/// Gives proofs, in the order in which they are asked for.
pub trait Oracle {
    /// A proof that every point is in one of the targets, and the line where it stands; `about` is the line that
    /// asks.
    ///
    /// # Errors
    /// There is none.
    fn proof(
        &mut self,
        system: &System,
        targets: &[Vec<Row>],
        about: usize,
    ) -> Judged<(usize, Proof)>;

    /// A proof that there is no point; `None` to go on with what follows from one.
    ///
    /// # Errors
    /// The file ends.
    fn void(&mut self, system: &System) -> Judged<Option<(usize, Proof)>>;
}
