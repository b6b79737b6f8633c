//! What commands say: on standard error while they run, and by their exit code.

use std::io;

use tilewright_driver::Error;

/// What a command has to say by its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done, or the answer is yes.
    Yes,
    /// The answer is no.
    No,
    /// There is no answer.
    Undecided,
}

/// Why a command ended early.
pub enum Failure {
    /// It refused.
    Error(Box<Error>),
    /// Standard output cannot be written.
    Output(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(Box::new(error))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

/// What a command gives.
pub type Outcome = Result<Answer, Failure>;

/// Says something on standard error, on one line. What cannot be said is not said.
macro_rules! talk {
    ($($part:tt)*) => {{
        use std::io::Write as _;
        use tilewright_ir::show::{shortened, visible};
        let text = format!($($part)*);
        let _ = writeln!(std::io::stderr(), "{}", visible(&shortened(&text)));
    }};
}
pub(crate) use talk;
