//! The best choices in order, each of which differs from the others in a call that counts.
//!
//! All choices but the best one fall into sets by the first call, of those that count, in which they
//! differ from it (Lawler 1972): the calls before it are as in the best one, and it is not. The best of
//! each set is solved for, and where it is taken its set is divided in the same way. A set is looked at
//! only for choices that cost less than the last of the list so far.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::solver::encode::encode;
use crate::solver::search::Search;
use crate::solver::{Cost, Error, Options, Problem, evaluate, solve};

/// A list of choices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranking {
    /// What each costs, and the alternatives of the calls, by index; the best first.
    pub list: Vec<(u64, Vec<usize>)>,
    /// Whether no other choice belongs in front of the last one: false where the time was over.
    pub is_exact: bool,
}

/// A set of choices with its best one.
struct Subspace {
    cost: u64,
    choice: Vec<usize>,
    /// How many of the calls that count have one alternative in this set.
    fixed: usize,
    /// The alternatives that the call after these does not have.
    without: Vec<usize>,
}

/// The `count` best choices that differ in the calls `of`; less where there are less.
///
/// # Errors
/// As [`solve`].
///
/// # Panics
/// If `of` names a call that is not there.
pub fn ranked(
    problem: &Problem,
    options: &Options,
    of: &[usize],
    count: usize,
) -> Result<Ranking, Error> {
    let deadline = Instant::now() + options.time_limit;
    let best = solve(problem, options)?;
    let first =
        Subspace { cost: best.objective, choice: best.choices(), fixed: 0, without: Vec::new() };
    let mut ranking = Ranking { list: Vec::new(), is_exact: best.is_optimal() };
    let mut subspaces = vec![first];
    while ranking.list.len() < count && !subspaces.is_empty() {
        let at = (0..subspaces.len()).min_by_key(|p| subspaces[*p].cost).unwrap_or_default();
        let subspace = subspaces.swap_remove(at);
        ranking.list.push((subspace.cost, subspace.choice.clone()));
        let left = count - ranking.list.len();
        for k in subspace.fixed..of.len() {
            let mut without =
                if k == subspace.fixed { subspace.without.clone() } else { Vec::new() };
            without.push(subspace.choice[of[k]]);
            // Of what is known, so many are enough.
            subspaces.sort_by_key(|p| p.cost);
            subspaces.truncate(left);
            let worst = subspaces.last().filter(|_| subspaces.len() == left).map(|p| p.cost);
            let upper = worst.map_or(Cost::FORBIDDEN, Cost::from);
            if left == 0 {
                break;
            }
            let kept = of[..k].iter().map(|c| (*c, vec![subspace.choice[*c]]));
            let all = problem.calls[of[k]].alternatives.len();
            let others = (0..all).filter(|a| !without.contains(a)).collect();
            let mut kept: BTreeMap<usize, Vec<usize>> = kept.chain([(of[k], others)]).collect();
            kept.extend(options.fixed.iter().map(|(c, a)| (*c, vec![*a])));
            if kept[&of[k]].is_empty() || kept[&of[k]].iter().any(|a| without.contains(a)) {
                continue;
            }
            let (found, complete) = least(problem, options, &kept, upper, deadline);
            ranking.is_exact &= complete;
            if let Some(choice) = found
                && let Some(cost) = evaluate(problem, &choice).get()
            {
                subspaces.push(Subspace { cost, choice, fixed: k, without });
            }
        }
    }
    Ok(ranking)
}

/// The best choice among some alternatives that costs less than `upper`, and whether there certainly
/// is no better one.
fn least(
    problem: &Problem,
    options: &Options,
    kept: &BTreeMap<usize, Vec<usize>>,
    upper: Cost,
    deadline: Instant,
) -> (Option<Vec<usize>>, bool) {
    let mut network = encode(problem);
    for (c, alternatives) in kept {
        network.keep(*c, alternatives);
    }
    let mut search = Search::new(network.variables.len(), options.memory_limit);
    let answer = search.run(network, upper, deadline);
    (answer.choice.map(|choice| choice[..problem.calls.len()].to_vec()), answer.complete)
}
