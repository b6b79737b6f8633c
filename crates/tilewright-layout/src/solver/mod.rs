//! The layouts of a whole model as an optimisation problem, solved exactly, with a proof.
//!
//! A [`Problem`] has tensors, each with layouts and the costs of conversions between these, and
//! calls, each with alternatives that read and write certain layouts. A conversion is paid once for
//! each tensor and layout. [`solve`] finds the choice that costs least, or the best one within a
//! time limit, and a lower bound with a [`Certificate`]; [`check`] verifies both without believing
//! the solver. [`evaluate`] is what any complete choice costs, [`greedy`] a choice to compare with, and [`ranked`]
//! the best choices in order.
//!
//! ```
//! use tilewright_layout::solver::{Alternative, Call, Cost, Options, Problem, Tensor, Use, check, solve};
//! let tensor = |name: &str, given| Tensor {
//!     name: name.into(),
//!     layouts: vec!["nchw".into(), "nhwc".into()],
//!     given,
//!     required: vec![],
//!     conversions: vec![vec![Cost::ZERO, 5.into()], vec![5.into(), Cost::ZERO]],
//! };
//! // Two calls read `x`, which is given as `nchw`; both are faster with `nhwc`.
//! let call = |name: &str, output| {
//!     let run = |name: &str, cost: u64, layout| Alternative {
//!         name: name.into(),
//!         cost: cost.into(),
//!         reads: vec![Use { tensor: 0, layout }],
//!         writes: vec![Use { tensor: output, layout }],
//!     };
//!     Call { name: name.into(), alternatives: vec![run("nchw", 10, 0), run("nhwc", 7, 1)] }
//! };
//! let tensors = vec![tensor("x", Some(0)), tensor("a", None), tensor("b", None)];
//! let problem = Problem { tensors, calls: vec![call("first", 1), call("second", 2)] };
//! let plan = solve(&problem, &Options::default())?;
//! // They share one conversion, which neither would pay for alone.
//! assert_eq!((plan.objective, plan.bound, plan.choices()), (19, 19, vec![1, 1]));
//! assert_eq!((plan.conversions.len(), plan.alternatives["greedy"]), (1, 20.into()));
//! check(&problem, &plan)?;
//! // What if `first` stays as it is?
//! let options = Options { fixed: [(0, 0)].into(), ..Options::default() };
//! assert_eq!(solve(&problem, &options)?.objective, 20);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Inside, the problem is a network of variables and tables whose sum is minimised
//! ([`Certificate`] defines it). Exact reductions and tree decompositions solve what has small
//! width; a search with bounds by message passing does the rest.
//!
//! **Architecture invariant:** nothing here knows a graph, a layout's meaning or a target: names and
//! integers come in. The checker shares types with the solver, and no code.

mod certificate;
mod check;
mod cost;
mod dual;
mod elimination;
mod encode;
mod evaluate;
mod improve;
mod json;
mod network;
mod plan;
mod problem;
mod ranked;
mod reduce;
mod search;
mod statistics;

pub use certificate::{Case, Certificate, Component, ProofStep};
pub use check::{CheckError, check};
pub use cost::Cost;
pub use evaluate::{evaluate, greedy};
pub use plan::{Conversion, Options, PlannedCall, PlannedTensor, Solution, solve};
pub use problem::{Alternative, Call, Error, MOST, Problem, Tensor, Use};
pub use ranked::{Ranking, ranked};
pub use statistics::Statistics;
