//! The layouts of a whole model as an optimisation problem, solved exactly.

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
mod reduce;
mod search;

pub use certificate::{Case, Certificate, Part, Step};
pub use check::{CheckError, check};
pub use cost::Cost;
pub use evaluate::{evaluate, greedy};
pub use plan::{Conversion, Options, Plan, PlannedCall, PlannedTensor, Statistics, solve};
pub use problem::{Alternative, Call, Error, MOST, Problem, Tensor, Use};
