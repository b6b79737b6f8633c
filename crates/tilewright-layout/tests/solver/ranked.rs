//! The best choices in order, against all of them.

use std::collections::BTreeMap;

use tilewright_layout::solver::{Options, Problem, evaluate, ranked};

use crate::generate::{small, tangled};

/// For each projection to some calls the least cost, in order.
fn brute_force(problem: &Problem, of: &[usize], fixed: &BTreeMap<usize, usize>) -> Vec<u64> {
    let sizes: Vec<usize> = problem.calls.iter().map(|call| call.alternatives.len()).collect();
    let mut choices = vec![0; sizes.len()];
    let mut least: BTreeMap<Vec<usize>, u64> = BTreeMap::new();
    loop {
        if let Some(cost) = evaluate(problem, &choices).get()
            && fixed.iter().all(|(c, a)| choices[*c] == *a)
        {
            let part = of.iter().map(|c| choices[*c]).collect();
            let known = least.entry(part).or_insert(cost);
            *known = cost.min(*known);
        }
        let Some(c) = (0..sizes.len()).find(|&c| choices[c] + 1 < sizes[c]) else { break };
        choices[..c].fill(0);
        choices[c] += 1;
    }
    let mut all: Vec<u64> = least.into_values().collect();
    all.sort_unstable();
    all
}

fn compare(problem: &Problem, of: &[usize], options: &Options, count: usize, what: &str) -> bool {
    let expected = brute_force(problem, of, &options.fixed);
    let Ok(ranking) = ranked(problem, options, of, count) else {
        assert!(expected.is_empty(), "{what}");
        return false;
    };
    assert!(ranking.is_exact, "{what}");
    let costs: Vec<u64> = ranking.list.iter().map(|l| l.0).collect();
    assert_eq!(costs, expected[..count.min(expected.len())], "{what}");
    let mut parts: Vec<Vec<usize>> =
        ranking.list.iter().map(|(_, c)| of.iter().map(|k| c[*k]).collect()).collect();
    for (cost, choice) in &ranking.list {
        assert_eq!(evaluate(problem, choice).get(), Some(*cost), "{what}");
        assert!(options.fixed.iter().all(|(c, a)| choice[*c] == *a), "{what}");
    }
    parts.sort();
    parts.dedup();
    assert_eq!(parts.len(), costs.len(), "{what}: two are the same");
    true
}

#[test]
fn the_best_choices_of_random_problems_are_those_of_brute_force() {
    let mut planned = 0;
    for seed in 0..300 {
        let problem = small(seed, 6);
        let calls = problem.calls.len();
        let all: Vec<usize> = (0..calls).collect();
        let some: Vec<usize> = all.iter().copied().filter(|c| (seed >> c) & 1 == 0).collect();
        for (of, count) in [(&all, 5), (&some, 3), (&all, 1), (&Vec::new(), 4)] {
            let what = format!("seed {seed}, {count} of {of:?}");
            planned += usize::from(compare(&problem, of, &Options::default(), count, &what));
        }
        let fixed = [(seed as usize % calls, 0)].into();
        compare(
            &problem,
            &all,
            &Options { fixed, ..Options::default() },
            4,
            &format!("{seed}, fixed"),
        );
    }
    assert!(planned > 600, "{planned}");
}

#[test]
fn the_search_alone_ranks_as_well() {
    let options = Options { memory_limit: 0, ..Options::default() };
    for seed in 0..60 {
        let problem = tangled(seed, 5);
        let all: Vec<usize> = (0..problem.calls.len()).collect();
        compare(&problem, &all, &options, 6, &format!("seed {seed}"));
    }
}
