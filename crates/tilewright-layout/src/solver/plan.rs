//! The answer, and how it is reached.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::solver::certificate::Certificate;
use crate::solver::encode::encode;
use crate::solver::evaluate::{greedy_with, paid, produced, units};
use crate::solver::search::Search;
use crate::solver::statistics::Statistics;
use crate::solver::{Cost, Error, Problem, evaluate};

/// Limits, and what is chosen beforehand.
#[derive(Clone, Debug)]
pub struct Options {
    /// After so long the best plan found so far is the answer, with the bound proven so far.
    pub time_limit: Duration,
    /// Bytes that the tables of the tree decomposition may take together. Where it would take more,
    /// the search branches.
    pub memory_limit: usize,
    /// Calls (by index) whose alternative (by index) is not free: the question "what if".
    pub fixed: BTreeMap<usize, usize>,
}

impl Default for Options {
    /// 30 seconds, 64 MiB, nothing fixed.
    fn default() -> Options {
        let (time_limit, memory_limit) = (Duration::from_secs(30), 64 << 20);
        Options { time_limit, memory_limit, fixed: BTreeMap::new() }
    }
}

/// A choice for each call, with what follows from it and the proof of how good it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Solution {
    /// What the choice costs.
    pub objective: u64,
    /// No choice (with what is fixed) costs less.
    pub bound: u64,
    /// How far the objective may be from the least one: `(objective - bound) / objective`; 0 if the
    /// plan is optimal.
    pub gap: f64,
    /// The costs of other complete choices by name, for comparison. The solver fills in `greedy`;
    /// whoever knows fixed policies adds them.
    pub alternatives: BTreeMap<String, Cost>,
    /// What each call runs, by the index of the call.
    pub calls: Vec<PlannedCall>,
    /// In which layout each tensor is produced, by the index of the tensor.
    pub tensors: Vec<PlannedTensor>,
    /// The conversions that are paid, in order of tensors and layouts.
    pub conversions: Vec<Conversion>,
    /// What was fixed beforehand: pairs of a call and an alternative.
    pub fixed: BTreeMap<usize, usize>,
    /// The proof of the bound, for `check`.
    pub certificate: Certificate,
    /// How the solver got there.
    pub statistics: Statistics,
}

/// What a call runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedCall {
    /// The call's name.
    pub name: String,
    /// The index of the alternative that is chosen.
    pub choice: usize,
    /// Its name.
    pub chosen: String,
    /// What it costs, conversions apart.
    pub cost: u64,
    /// The costs of all its alternatives, conversions apart; of two of one name the last one's.
    pub alternatives: BTreeMap<String, Cost>,
}

/// How a tensor lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedTensor {
    /// The tensor's name.
    pub name: String,
    /// The index of the layout in which it is produced.
    pub layout: usize,
    pub layout_name: String,
}

/// A conversion that is paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conversion {
    /// Which tensor, by index.
    pub tensor: usize,
    /// The layout in which it is produced, by index.
    pub from: usize,
    /// The layout that it is converted to, by index.
    pub to: usize,
    pub cost: u64,
}

impl Solution {
    /// The index of the alternative that each call runs.
    pub fn choices(&self) -> Vec<usize> {
        self.calls.iter().map(|call| call.choice).collect()
    }

    /// Whether nothing costs less.
    pub fn is_optimal(&self) -> bool {
        self.objective == self.bound
    }
}

/// The plan that costs least, or the best one that was found in time, with a proven lower bound.
///
/// # Errors
/// [`Error::Invalid`] if the problem or what is fixed is not valid; [`Error::Infeasible`] if every
/// plan needs something forbidden; [`Error::TimedOut`] if no plan was found within the limit.
pub fn solve(problem: &Problem, options: &Options) -> Result<Solution, Error> {
    let start = Instant::now();
    problem.validate()?;
    for (&c, &a) in &options.fixed {
        let call = problem.calls.get(c);
        let call = call.ok_or_else(|| Error::Invalid(format!("there is no call {c} to fix")))?;
        if a >= call.alternatives.len() {
            return Err(Error::Invalid(format!("call `{}` has no alternative {a}", call.name)));
        }
    }
    let greedy = greedy_with(problem, |c| options.fixed.get(&c).copied());
    let greedy_cost = evaluate(problem, &greedy);
    let mut network = encode(problem);
    for (&c, &a) in &options.fixed {
        network.keep(c, &[a]);
    }
    let variables = network.variables.len();
    let deadline = start.checked_add(options.time_limit).unwrap_or(start);
    let mut search = Search::new(variables, options.memory_limit);
    let outcome = search.run(network, greedy_cost, deadline);
    let choices = match outcome.choice {
        Some(choice) => choice[..problem.calls.len()].to_vec(),
        None if !greedy_cost.is_forbidden() => greedy,
        None if outcome.complete => return Err(Error::Infeasible),
        None => return Err(Error::TimedOut),
    };
    let mut plan = describe(problem, &choices);
    plan.bound = outcome.bound.min(plan.objective);
    plan.gap = match plan.objective {
        0 => 0.0,
        objective => (objective - plan.bound) as f64 / objective as f64,
    };
    plan.alternatives.insert("greedy".into(), greedy_cost);
    plan.fixed.clone_from(&options.fixed);
    plan.certificate = Certificate { lists: search.lists };
    plan.statistics = search.statistics;
    plan.statistics.variables = variables;
    plan.statistics.seconds = start.elapsed().as_secs_f64();
    Ok(plan)
}

/// What follows from a choice that is allowed; bound and proof are left out.
fn describe(problem: &Problem, choices: &[usize]) -> Solution {
    let calls = problem.calls.iter().zip(choices).map(|(call, &choice)| PlannedCall {
        name: call.name.clone(),
        choice,
        chosen: call.alternatives[choice].name.clone(),
        cost: units(call.alternatives[choice].cost),
        alternatives: call.alternatives.iter().map(|a| (a.name.clone(), a.cost)).collect(),
    });
    let layouts = produced(problem, choices);
    let tensors = problem.tensors.iter().zip(layouts).map(|(tensor, layout)| PlannedTensor {
        name: tensor.name.clone(),
        layout,
        layout_name: tensor.layouts[layout].clone(),
    });
    Solution {
        objective: units(evaluate(problem, choices)),
        bound: 0,
        gap: 0.0,
        alternatives: BTreeMap::new(),
        calls: calls.collect(),
        tensors: tensors.collect(),
        conversions: paid(problem, choices),
        fixed: BTreeMap::new(),
        certificate: Certificate::default(),
        statistics: Statistics::default(),
    }
}
