//! What a complete choice costs, in the simplest code; and the greedy choice.

use std::collections::BTreeSet;

use crate::solver::{Conversion, Cost, Problem, Use};

/// The cost of a complete choice: `choices[c]` is the index of the alternative that call `c` runs.
/// Calls cost what their alternatives say; each layout of a tensor that someone needs, and in which
/// it is not produced, costs one conversion. Forbidden where anything of it is.
///
/// # Panics
/// If the problem is not valid, or there is not one index in range for each call.
pub fn evaluate(problem: &Problem, choices: &[usize]) -> Cost {
    assert_eq!(choices.len(), problem.calls.len(), "one choice for each call");
    let calls: Cost = chosen(problem, choices).map(|alternative| alternative.cost).sum();
    calls + paid(problem, choices).iter().map(|conversion| Cost::from(conversion.cost)).sum()
}

fn chosen<'p>(
    problem: &'p Problem,
    choices: &'p [usize],
) -> impl Iterator<Item = &'p crate::solver::Alternative> {
    problem.calls.iter().zip(choices).map(|(call, &choice)| &call.alternatives[choice])
}

/// A cost as a number, the largest one where it is forbidden.
pub(crate) fn units(cost: Cost) -> u64 {
    cost.get().unwrap_or(u64::MAX)
}

/// The layout in which each tensor is produced.
pub(crate) fn produced(problem: &Problem, choices: &[usize]) -> Vec<usize> {
    let mut layouts: Vec<usize> =
        problem.tensors.iter().map(|tensor| tensor.given.unwrap_or(0)).collect();
    for used in chosen(problem, choices).flat_map(|alternative| &alternative.writes) {
        layouts[used.tensor] = used.layout;
    }
    layouts
}

/// The conversions of a choice, each once, in order of tensors and layouts.
pub(crate) fn paid(problem: &Problem, choices: &[usize]) -> Vec<Conversion> {
    let produced = produced(problem, choices);
    let mut wanted: BTreeSet<Use> = BTreeSet::new();
    for alternative in chosen(problem, choices) {
        wanted.extend(&alternative.reads);
    }
    for (t, tensor) in problem.tensors.iter().enumerate() {
        wanted.extend(tensor.required.iter().map(|&layout| Use { tensor: t, layout }));
    }
    let converted = wanted.into_iter().filter(|used| used.layout != produced[used.tensor]);
    converted
        .map(|Use { tensor, layout }| {
            let from = produced[tensor];
            let cost = problem.tensors[tensor].conversions[from][layout];
            Conversion { tensor, from, to: layout, cost: units(cost) }
        })
        .collect()
}

/// The choice that takes each call in the order of the data and runs the alternative that is
/// cheapest with the conversions of what it reads, as far as these are not yet paid, and with those
/// of its results that the end of the graph requires. It may need something forbidden, although
/// another choice does not; `evaluate` says so.
///
/// # Panics
/// If the problem is not valid.
pub fn greedy(problem: &Problem) -> Vec<usize> {
    greedy_with(problem, |_| None)
}

/// As [`greedy`], where `fixed` says what is chosen already.
pub(crate) fn greedy_with(problem: &Problem, fixed: impl Fn(usize) -> Option<usize>) -> Vec<usize> {
    let mut produced: Vec<usize> =
        problem.tensors.iter().map(|tensor| tensor.given.unwrap_or(0)).collect();
    let mut there: BTreeSet<Use> = BTreeSet::new();
    let mut choices = vec![0; problem.calls.len()];
    for c in problem.order() {
        let call = &problem.calls[c];
        let price = |&a: &usize| {
            let alternative = &call.alternatives[a];
            let reads: BTreeSet<Use> = alternative.reads.iter().copied().collect();
            let inputs = reads
                .iter()
                .filter(|used| !there.contains(used))
                .map(|used| conversion(problem, used.tensor, produced[used.tensor], used.layout));
            let outputs = alternative.writes.iter().flat_map(|used| {
                let required = problem.tensors[used.tensor].required.iter();
                required.map(|&to| conversion(problem, used.tensor, used.layout, to))
            });
            alternative.cost + inputs.sum() + outputs.sum()
        };
        choices[c] = fixed(c)
            .unwrap_or_else(|| (0..call.alternatives.len()).min_by_key(price).unwrap_or_default());
        let alternative = &call.alternatives[choices[c]];
        there.extend(&alternative.reads);
        for used in &alternative.writes {
            produced[used.tensor] = used.layout;
        }
    }
    choices
}

fn conversion(problem: &Problem, tensor: usize, from: usize, to: usize) -> Cost {
    if from == to { Cost::ZERO } else { problem.tensors[tensor].conversions[from][to] }
}
