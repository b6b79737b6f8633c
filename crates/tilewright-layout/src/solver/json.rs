//! Problems and plans as JSON, with the names of the types' fields as keys.

use crate::solver::{Error, Problem, Solution};

impl Problem {
    /// The problem as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers, texts and lists are JSON")
    }

    /// Reads a problem.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the text is not JSON of a problem, or the problem is not valid.
    pub fn from_json(text: &str) -> Result<Problem, Error> {
        let problem: Problem =
            serde_json::from_str(text).map_err(|error| Error::Invalid(error.to_string()))?;
        problem.validate()?;
        Ok(problem)
    }
}

impl Solution {
    /// The plan as JSON, the proof included.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers, texts and lists are JSON")
    }

    /// Reads a plan; whether it is one for a problem is what `check` says.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the text is not JSON of a plan.
    pub fn from_json(text: &str) -> Result<Solution, Error> {
        serde_json::from_str(text).map_err(|error| Error::Invalid(error.to_string()))
    }
}
