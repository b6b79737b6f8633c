//! Networks of many calls.

use tilewright_layout::solver::{Cost, Options, check, evaluate, solve};

use crate::generate::network;

#[test]
fn networks_are_planned_optimally() {
    for (seed, calls, layers) in [(1, 60, 4), (2, 120, 6), (3, 250, 8)] {
        let problem = network(seed, calls, layers);
        let plan = solve(&problem, &Options::default()).expect("nothing is forbidden");
        assert!(plan.is_optimal(), "seed {seed}: {}", plan.gap);
        assert_eq!(evaluate(&problem, &plan.choices()), plan.objective.into());
        assert!(Cost::from(plan.objective) < plan.alternatives["greedy"], "seed {seed}");
        check(&problem, &plan).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// Every rule has something to do in these networks.
#[test]
fn the_statistics_say_what_was_done() {
    let problem = network(3, 250, 8);
    let statistics = solve(&problem, &Options::default()).expect("nothing is forbidden").statistics;
    let layouts = problem.tensors.iter().map(|tensor| tensor.layouts.len());
    assert_eq!(statistics.variables, problem.calls.len() + layouts.sum::<usize>());
    assert!(statistics.dominated > 0 && statistics.degree[2] > 0, "{statistics:?}");
    assert!(statistics.decomposed > 0 && statistics.width > 2, "{statistics:?}");
    assert!(statistics.rounds > 0 && statistics.seconds > 0.0, "{statistics:?}");
}

/// Fixed to what is chosen anyway a call costs nothing more, and to anything else no less.
#[test]
fn what_if_prices_are_never_negative() {
    let problem = network(1, 60, 4);
    let plan = solve(&problem, &Options::default()).expect("nothing is forbidden");
    for c in (0..problem.calls.len()).step_by(7) {
        for a in 0..problem.calls[c].alternatives.len() {
            let options = Options { fixed: [(c, a)].into(), ..Options::default() };
            let other = solve(&problem, &options).expect("nothing is forbidden");
            assert!(other.is_optimal());
            assert!(other.objective >= plan.objective, "call {c}, alternative {a}");
            if a == plan.calls[c].choice {
                assert_eq!(other.objective, plan.objective, "call {c}");
            }
        }
    }
}
