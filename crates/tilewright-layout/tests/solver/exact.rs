//! The optimum against brute force.

use std::time::Duration;

use tilewright_layout::solver::{
    Alternative, Call, Cost, Error, Options, Problem, Tensor, Use, check, evaluate, greedy, solve,
};

use crate::generate::{small, tangled};

/// The least cost over all choices that agree with what is fixed.
pub fn brute_force(problem: &Problem, options: &Options) -> Cost {
    let sizes: Vec<usize> = problem.calls.iter().map(|call| call.alternatives.len()).collect();
    let mut choices = vec![0; sizes.len()];
    let mut least = Cost::FORBIDDEN;
    loop {
        if options.fixed.iter().all(|(&c, &a)| choices[c] == a) {
            least = least.min(evaluate(problem, &choices));
        }
        let Some(c) = (0..sizes.len()).find(|&c| choices[c] + 1 < sizes[c]) else {
            return least;
        };
        choices[..c].fill(0);
        choices[c] += 1;
    }
}

/// Solves a problem, compares it with brute force and the checker; true if there is a plan.
fn compare(problem: &Problem, options: &Options, what: &str) -> bool {
    let least = brute_force(problem, options);
    match solve(problem, options) {
        Ok(plan) => {
            assert_eq!(Cost::from(plan.objective), least, "{what}");
            assert_eq!(plan.bound, plan.objective, "{what}");
            assert_eq!(plan.gap, 0.0, "{what}");
            assert_eq!(evaluate(problem, &plan.choices()), least, "{what}");
            check(problem, &plan).unwrap_or_else(|error| panic!("{what}: {error}"));
            true
        }
        Err(error) => {
            assert_eq!(error, Error::Infeasible, "{what}");
            assert_eq!(least, Cost::FORBIDDEN, "{what}");
            false
        }
    }
}

#[test]
fn a_thousand_small_problems() {
    let options = Options::default();
    let planned = (0..1000)
        .filter(|&seed| compare(&small(seed, 8), &options, &format!("seed {seed}")))
        .count();
    // The problems are of both sorts.
    assert!((500..990).contains(&planned), "{planned}");
}

/// Without memory for tables, the search has to do what elimination would.
#[test]
fn the_search_alone_is_exact() {
    let options = Options { memory_limit: 0, ..Options::default() };
    let mut branched = 0;
    for seed in 0..200 {
        let problem = tangled(seed, 6);
        compare(&problem, &options, &format!("seed {seed}"));
        if let Ok(plan) = solve(&problem, &options) {
            branched += usize::from(plan.statistics.nodes > 1);
        }
    }
    assert!(branched > 20, "{branched}");
}

#[test]
fn what_if_is_exact() {
    for seed in 0..200 {
        let problem = small(seed, 6);
        let c = seed as usize % problem.calls.len();
        for a in 0..problem.calls[c].alternatives.len() {
            let options = Options { fixed: [(c, a)].into(), ..Options::default() };
            if compare(&problem, &options, &format!("seed {seed}, call {c}, alternative {a}")) {
                let plan = solve(&problem, &options).expect("it was solved before");
                assert_eq!(plan.calls[c].choice, a);
            }
        }
    }
}

#[test]
fn greedy_is_never_better() {
    for seed in 0..300 {
        let problem = small(seed, 8);
        if let Ok(plan) = solve(&problem, &Options::default()) {
            let cost = evaluate(&problem, &greedy(&problem));
            assert!(cost >= plan.objective.into(), "seed {seed}");
            assert_eq!(plan.alternatives["greedy"], cost, "seed {seed}");
        }
    }
}

/// Without time the answer is what greedy finds or better, with a bound that is proven.
#[test]
fn without_time_the_bound_still_holds() {
    let options = Options { time_limit: Duration::ZERO, memory_limit: 0, ..Options::default() };
    let mut open = 0;
    for seed in 0..200 {
        let problem = tangled(seed, 6);
        let Ok(plan) = solve(&problem, &options) else { continue };
        let least = brute_force(&problem, &options);
        assert!(Cost::from(plan.objective) >= least, "seed {seed}");
        assert!(Cost::from(plan.bound) <= least, "seed {seed}");
        assert!(Cost::from(plan.objective) <= plan.alternatives["greedy"], "seed {seed}");
        check(&problem, &plan).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        open += usize::from(!plan.is_optimal());
    }
    assert!(open > 10, "{open}");
}

/// Two problems beside each other cost their sum, and have no plan if one of them has none.
#[test]
fn parts_that_nothing_connects() {
    let beside = |mut a: Problem, b: Problem| {
        let first = a.tensors.len();
        a.tensors.extend(b.tensors);
        let calls = b.calls.into_iter().map(|mut call| {
            for alternative in &mut call.alternatives {
                let uses = alternative.reads.iter_mut().chain(&mut alternative.writes);
                uses.for_each(|used| used.tensor += first);
            }
            call
        });
        a.calls.extend(calls);
        a
    };
    let options = Options { memory_limit: 0, ..Options::default() };
    let mut infeasible = 0;
    for seed in 0..150 {
        let parts = [tangled(seed, 4), small(seed, 5), tangled(seed + 1000, 5)];
        let least: Cost = parts.iter().map(|part| brute_force(part, &options)).sum();
        let problem = parts.into_iter().reduce(beside).expect("there are three");
        match solve(&problem, &options) {
            Ok(plan) => {
                assert_eq!((plan.objective.into(), plan.gap), (least, 0.0), "seed {seed}");
                check(&problem, &plan).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            }
            Err(error) => {
                assert_eq!((least, error), (Cost::FORBIDDEN, Error::Infeasible), "seed {seed}");
                infeasible += 1;
            }
        }
    }
    assert!((1..100).contains(&infeasible), "{infeasible}");
}

/// One call reads what 70 others write: rules that keep the optimum decide, whatever the number of neighbours.
#[test]
fn a_call_may_have_any_number_of_neighbours() {
    let count = 70;
    let tensors = (0..count).map(|k| Tensor {
        name: format!("t{k}"),
        layouts: vec!["a".into(), "b".into()],
        given: None,
        required: vec![],
        conversions: vec![vec![Cost::ZERO, 1.into()], vec![2.into(), Cost::ZERO]],
    });
    let used = |layout| (0..count).map(|tensor| Use { tensor, layout }).collect::<Vec<_>>();
    let alternative = |layout: usize, cost: u64, reads, writes| Alternative {
        name: ["a", "b"][layout].into(),
        cost: cost.into(),
        reads,
        writes,
    };
    let leaf = |tensor: usize| {
        let run = |layout, cost| alternative(layout, cost, vec![], vec![Use { tensor, layout }]);
        Call { name: format!("leaf {tensor}"), alternatives: vec![run(0, 0), run(1, 3)] }
    };
    let hub = |cost: u64| Call {
        name: "hub".into(),
        alternatives: vec![
            alternative(0, cost, used(0), vec![]),
            alternative(1, 2, used(1), vec![]),
        ],
    };
    for (cost, least) in [(71, 71), (73, 72)] {
        let calls = (0..count).map(leaf).chain([hub(cost)]).collect();
        let problem = Problem { tensors: tensors.clone().collect(), calls };
        let plan = solve(&problem, &Options::default()).expect("all is allowed");
        assert_eq!((plan.objective, plan.bound), (least, least));
        assert!(plan.statistics.nodes <= 1, "{} nodes", plan.statistics.nodes);
    }
}
