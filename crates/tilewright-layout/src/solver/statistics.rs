//! What the solver counts on its way.

use serde::{Deserialize, Serialize};

/// What the solver did. Variables are calls, and tensors wanted in a layout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    /// Variables of the problem.
    pub variables: usize,
    /// Values that went because another one is as good in every case.
    pub dominated: usize,
    /// Values that went because they are not allowed with anything, or cost more than a known plan.
    pub excluded: usize,
    /// Variables that went because one value was left.
    pub single: usize,
    /// Variables that went by the rules for 0, 1 and 2 neighbours.
    pub degree: [usize; 3],
    /// Variables that went by a tree decomposition.
    pub decomposed: usize,
    /// The width of the widest tree decomposition that was used.
    pub width: usize,
    /// Variables that were left when the search first branched; 0 where no branch was needed.
    pub searched: usize,
    /// Nodes of the search.
    pub nodes: usize,
    /// Rounds of message passing.
    pub rounds: usize,
    /// Time in seconds.
    pub seconds: f64,
}
