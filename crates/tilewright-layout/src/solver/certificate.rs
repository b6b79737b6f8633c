//! Proofs of lower bounds: scripts for a small machine, which `check` runs.
//!
//! The machine holds a cost network (Cooper, de Givry, Sanchez, Schiex, Zytnicki and Werner 2010,
//! "Soft arc consistency revisited"); `Certificate` says how it begins, and `ProofStep` what can be done
//! to it. A variable for each tensor and layout is what makes conversions that are paid once, however
//! many calls need them, a sum of tables over two variables each.

use serde::{Deserialize, Serialize};

/// The proof of a plan's bound, which is the target of the first list: a script for a small machine.
/// Lists refer to others by their index, so that they form a tree.
///
/// The machine holds a *cost network*: variables with finitely many live values, and tables over
/// some of them, whose sum is minimised; tables of the same variables are one table.
///
/// * Variable `c` is call `c`; its values are the alternatives, its own table their costs.
/// * After the calls comes a variable for each tensor and layout, in this order: 1 where the tensor
///   is wanted in that layout, 0 where not.
/// * For each call that reads the tensor in that layout in some alternative, a table of the two
///   forbids 0 with these alternatives. If the end of the graph requires the layout, 0 is forbidden.
/// * 1 costs the conversion from the layout in which the tensor is produced (nothing if it is the
///   same): a table with the call that writes the tensor, or by itself if the tensor is given.
///
/// What is fixed beforehand is the only live value of its call. Each [`ProofStep`] keeps this true: no
/// choice costs less than the least of the target and of what the network now costs at its
/// cheapest. At the end of a list the sum of the least entries of all tables is therefore a lower
/// bound, as far as it does not exceed the target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// Lists of steps; the first one is where the proof begins.
    pub lists: Vec<Vec<ProofStep>>,
}

/// An instruction of a proof. Variables and values have the numbers of the first network throughout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ProofStep {
    /// A value goes that another one replaces at no greater cost, whatever the others are: in each
    /// table, where the value is not forbidden, the other costs at most so much more, and these
    /// differences add up to nothing.
    Dominated {
        /// Whose value goes.
        variable: usize,
        /// The value that goes.
        value: usize,
        /// The value that replaces it, which is live.
        by: usize,
    },
    /// A value goes with which nothing costs less than the target: the sum over all tables of the
    /// least entry with this value.
    Exclude {
        /// Whose value goes.
        variable: usize,
        /// The value that goes.
        value: usize,
    },
    /// A variable goes: the tables that contain it become one table of their other variables, the
    /// minimum over its values of their sum (bucket elimination, Dechter 1999). If only one value is
    /// live, each of the tables loses the variable by itself.
    Eliminate {
        /// Which variable.
        variable: usize,
    },
    /// Costs move from a table to a variable's own table: what one loses at each value the other
    /// gains, so that no sum changes (equivalence-preserving transformations).
    Shift {
        /// The variables of the table that gives, in order.
        scope: Vec<usize>,
        /// Which of them receives.
        variable: usize,
        /// For each value of it; negative where the table receives.
        amounts: Vec<i64>,
    },
    /// The last of its list. Each live value of a variable is a case, and the bound is that of the
    /// worst case.
    Branch {
        /// Which variable.
        variable: usize,
        /// All its live values.
        cases: Vec<Case>,
    },
    /// The last of its list. The variables fall into components that no table connects; the bounds add up.
    Split {
        /// Together all variables that are left.
        parts: Vec<Component>,
    },
}

/// A case of [`ProofStep::Branch`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The only live value in this case.
    pub value: usize,
    /// The steps that follow; the target stays.
    pub list: usize,
}

/// A component of a [`ProofStep::Split`]: variables that no table connects with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Component {
    /// The variables of the component, in order.
    pub variables: Vec<usize>,
    /// The target of the component, which is what it is proven to cost at least.
    pub target: i64,
    /// The steps that follow.
    pub list: usize,
}
