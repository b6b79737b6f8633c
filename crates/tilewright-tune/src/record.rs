//! Measurements and calibrations: what a file of them keeps.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::key::{Key, Scope};

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A function with a sum of products.
    Contraction,
    /// A function of another kind.
    Other,
    /// A conversion from one layout to another.
    Conversion,
    /// A whole model.
    Model,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Contraction, Kind::Other, Kind::Conversion, Kind::Model];

    /// Its name in a file.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Contraction => "contraction",
            Kind::Other => "other",
            Kind::Conversion => "conversion",
            Kind::Model => "model",
        }
    }

    /// The kind of a name.
    pub fn parse(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|k| k.name() == name)
    }
}

/// What came of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measured {
    /// The shortest time of a run, in nanoseconds.
    Nanoseconds(f64),
    /// It crashed, did not end, or could not be compiled.
    Failure(String),
}

/// The plan of layouts that a whole model was measured with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredPlan {
    /// What all plans of the model share.
    pub model: Key,
    /// The way that each call is computed in, as text.
    pub ways: String,
}

/// A measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Of what.
    pub key: String,
    /// The machine and the number of threads, in words.
    pub scope: String,
    /// What kind of thing it is.
    pub kind: Kind,
    /// What it is, for people.
    pub what: String,
    /// The cycles that were estimated for it.
    pub estimate: f64,
    /// What came of it.
    #[serde(flatten)]
    pub measured: Measured,
    /// When, in seconds since 1970.
    pub made: u64,
    /// For a whole model in planned layouts, which these are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<MeasuredPlan>,
}

impl Record {
    /// A measurement that is made now.
    pub fn now(
        key: &Key,
        scope: &Scope,
        kind: Kind,
        what: &str,
        estimate: f64,
        measured: Measured,
    ) -> Record {
        let made = now();
        let (key, scope, what) = (key.0.clone(), scope.text(), what.to_owned());
        Record { key, scope, kind, what, estimate, measured, made, plan: None }
    }

    /// Why it cannot be one; `None` where it can.
    pub fn fault(&self) -> Option<&'static str> {
        let time = match &self.measured {
            Measured::Nanoseconds(n) => *n,
            Measured::Failure(_) => 1.0,
        };
        if !is_hash(&self.key) {
            return Some("the key is not 64 hexadecimal digits");
        }
        if self.plan.as_ref().is_some_and(|plan| !is_hash(&plan.model.0)) {
            return Some("the model is not 64 hexadecimal digits");
        }
        if !(time.is_finite() && time > 0.0) {
            return Some("the time is not positive");
        }
        (!self.estimate.is_finite() || self.estimate < 0.0).then_some("the estimate is negative")
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// The constants of the cost model that a machine was calibrated to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The machine, in words.
    pub machine: String,
    /// The code that it ran, in words ([`Scope::code`]).
    pub scope: String,
    /// Nanoseconds of a cycle.
    pub cycle: f64,
    /// The constants by name, in cycles.
    pub costs: BTreeMap<String, f64>,
    /// When, in seconds since 1970.
    pub made: u64,
}

impl Calibration {
    /// A calibration that is made now.
    pub fn now(
        machine: &str,
        scope: &Scope,
        cycle: f64,
        costs: BTreeMap<String, f64>,
    ) -> Calibration {
        Calibration { machine: machine.to_owned(), scope: scope.code(), cycle, costs, made: now() }
    }

    /// Why it cannot be one; `None` where it can.
    pub fn fault(&self) -> Option<&'static str> {
        if !(self.cycle.is_finite() && self.cycle > 0.0) {
            return Some("the cycle is not positive");
        }
        (!self.costs.values().all(|n| n.is_finite() && *n > 0.0))
            .then_some("a cost is not positive")
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}
