//! Costs: exact integers in one unit that the caller chooses (picoseconds, say), or forbidden.

use std::fmt;
use std::iter::Sum;
use std::ops::Add;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A cost, or the statement that something cannot be done. Forbidden is greater than every cost,
/// and what is forbidden stays so in a sum. In JSON a cost is an integer, and forbidden is `null`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(u64);

impl Cost {
    /// What costs nothing.
    pub const ZERO: Cost = Cost(0);
    /// What cannot be done.
    pub const FORBIDDEN: Cost = Cost(u64::MAX);

    /// The number, unless this is forbidden.
    pub fn get(self) -> Option<u64> {
        (self != Cost::FORBIDDEN).then_some(self.0)
    }

    /// Whether this cannot be done.
    pub fn is_forbidden(self) -> bool {
        self == Cost::FORBIDDEN
    }
}

/// The largest number of all means forbidden.
impl From<u64> for Cost {
    fn from(units: u64) -> Cost {
        Cost(units)
    }
}

impl From<Option<u64>> for Cost {
    fn from(units: Option<u64>) -> Cost {
        units.map_or(Cost::FORBIDDEN, Cost)
    }
}

/// Exact for the costs of a valid problem, whose total is limited; otherwise it ends at forbidden.
impl Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost(self.0.saturating_add(other.0))
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Cost>>(costs: I) -> Cost {
        costs.fold(Cost::ZERO, Add::add)
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Some(units) => units.fmt(f),
            None => f.pad("forbidden"),
        }
    }
}

impl fmt::Debug for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Cost, D::Error> {
        Option::<u64>::deserialize(deserializer).map(Cost::from)
    }
}
