//! The checker refuses what is not so.

use tilewright_layout::solver::{
    CheckError, Cost, Options, Problem, ProofStep, Solution, check, solve,
};

use crate::generate::{Random, network, small, tangled};

/// A problem with its optimal plan.
fn solved(problem: Problem, memory_limit: usize) -> Option<(Problem, Solution)> {
    let options = Options { memory_limit, ..Options::default() };
    let plan = solve(&problem, &options).ok()?;
    check(&problem, &plan).expect("the plan is right");
    Some((problem, plan))
}

fn refused_plan(
    problem: &Problem,
    plan: &Solution,
    change: impl FnOnce(&mut Solution),
    what: &str,
) {
    let mut wrong = plan.clone();
    change(&mut wrong);
    let answer = check(problem, &wrong);
    assert!(matches!(answer, Err(CheckError::Solution(_))), "{what}: {answer:?}");
}

#[test]
fn what_a_plan_says_must_follow_from_its_choice() {
    let (problem, plan) = solved(network(1, 40, 3), 1 << 20).expect("nothing is forbidden");
    assert!(plan.conversions.len() > 1);
    let c = 5;
    let other = (plan.calls[c].choice + 1) % problem.calls[c].alternatives.len();
    let refused = |change: &dyn Fn(&mut Solution), what| {
        refused_plan(&problem, &plan, |plan| change(plan), what);
    };
    refused(&|plan| plan.objective += 1, "objective");
    refused(&|plan| plan.objective -= 1, "objective below the bound");
    refused(&|plan| plan.gap = 0.5, "gap");
    refused(&|plan| plan.calls[c].choice = other, "choice");
    refused(&|plan| plan.calls[c].choice = 99, "choice out of range");
    refused(&|plan| plan.calls[c].cost += 1, "cost of a call");
    refused(&|plan| plan.calls[c].name.push('x'), "name of a call");
    refused(&|plan| drop(plan.calls.pop()), "calls");
    refused(&|plan| plan.fixed = [(c, other)].into(), "fixed");
    refused(&|plan| plan.tensors[3].layout ^= 1, "layout");
    refused(&|plan| plan.tensors[3].layout_name.push('x'), "name of a layout");
    refused(&|plan| plan.conversions.truncate(1), "missing conversion");
    refused(&|plan| plan.conversions.push(plan.conversions[0]), "conversion that nobody needs");
    refused(&|plan| plan.conversions[0].to = 77, "conversion out of range");
    refused(&|plan| plan.conversions[0].from ^= 1, "conversion from elsewhere");
    refused(&|plan| plan.conversions[0].cost -= 1, "cost of a conversion");
}

/// A plan for a fixed choice is optimal for that alone.
#[test]
fn a_bound_with_something_fixed_is_no_bound_without() {
    let problem = network(1, 40, 3);
    let best = solve(&problem, &Options::default()).expect("nothing is forbidden");
    let mut worse = 0;
    for a in 0..problem.calls[7].alternatives.len() {
        let options = Options { fixed: [(7, a)].into(), ..Options::default() };
        let mut plan = solve(&problem, &options).expect("nothing is forbidden");
        assert_eq!(check(&problem, &plan), Ok(()));
        plan.fixed.clear();
        if plan.objective > best.objective {
            worse += 1;
            assert!(matches!(check(&problem, &plan), Err(CheckError::Proof(_))), "{a}");
        }
    }
    assert!(worse > 2);
}

/// Changes one thing in a proof.
fn change(random: &mut Random, plan: &mut Solution) -> bool {
    let lists = &mut plan.certificate.lists;
    let list = random.index(lists.len());
    let count = lists.len();
    let steps = &mut lists[list];
    if steps.is_empty() {
        return false;
    }
    let k = random.index(steps.len());
    let length = steps.len();
    match (random.index(4), &mut steps[k]) {
        (0, _) => drop(steps.remove(k)),
        (1, _) => steps.swap(k, random.index(length)),
        (2, ProofStep::Eliminate { variable }) => {
            let value = random.index(2);
            steps[k] = ProofStep::Exclude { variable: *variable, value };
        }
        (_, ProofStep::Dominated { value, by, .. }) => std::mem::swap(value, by),
        (_, ProofStep::Exclude { value, .. }) => *value ^= 1,
        (_, ProofStep::Eliminate { variable }) => *variable ^= 1,
        (_, ProofStep::Shift { amounts, .. }) => {
            let k = random.index(amounts.len());
            amounts[k] += random.below(2000) as i64 - 1000;
        }
        (2, ProofStep::Branch { cases, .. }) => drop(cases.pop()),
        (_, ProofStep::Branch { cases, .. }) => cases[0].list = random.index(count + 1),
        (2, ProofStep::Split { parts }) => drop(parts.pop()),
        (_, ProofStep::Split { parts }) => parts[0].target += 1 + random.below(50) as i64,
    }
    true
}

/// However a proof is changed, it never shows more than what is so; and changes do matter.
#[test]
fn no_proof_shows_a_bound_beyond_the_optimum() {
    let (mut kept, mut refused) = (0, 0);
    for seed in 0..150 {
        let problem = if seed % 2 == 0 { small(seed, 8) } else { tangled(seed, 5) };
        let Some((problem, plan)) = solved(problem, 0) else { continue };
        let mut random = Random::new(seed);
        for _ in 0..20 {
            let mut wrong = plan.clone();
            if !(0..1 + random.index(2)).all(|_| change(&mut random, &mut wrong)) {
                continue;
            }
            match check(&problem, &wrong) {
                Ok(()) => kept += 1,
                Err(CheckError::Proof(_)) => refused += 1,
                Err(error) => panic!("seed {seed}: {error}"),
            }
            // The gap follows from the bound, so that the proof alone is wrong.
            wrong.bound += 1;
            let answer = check(&problem, &wrong);
            assert!(matches!(answer, Err(CheckError::Proof(_))), "seed {seed}: {answer:?}");
        }
    }
    assert!(kept > 100 && refused > 100, "{kept} {refused}");
}

/// The proof that was right for one problem, for the same one with one cost less.
#[test]
fn a_proof_belongs_to_its_problem() {
    let (problem, plan) = solved(network(2, 40, 3), 1 << 20).expect("nothing is forbidden");
    // What is chosen costs less: the plan is no longer what it says.
    let mut cheaper = problem.clone();
    let choice = plan.calls[4].choice;
    cheaper.calls[4].alternatives[choice].cost = Cost::ZERO;
    assert!(matches!(check(&cheaper, &plan), Err(CheckError::Solution(_))));
    // All that is not chosen costs nothing: another plan is better, and the proof must not hold.
    let mut rival = problem.clone();
    for (call, planned) in rival.calls.iter_mut().zip(&plan.calls) {
        for (a, alternative) in call.alternatives.iter_mut().enumerate() {
            if a != planned.choice {
                alternative.cost = Cost::ZERO;
            }
        }
    }
    assert!(matches!(check(&rival, &plan), Err(CheckError::Proof(_))));
}

#[test]
fn a_proof_is_a_tree() {
    let find = |memory, wanted: fn(&ProofStep) -> bool| {
        let mut solved = (0..).filter_map(|seed| solved(tangled(seed, 6), memory));
        let has = |plan: &Solution| plan.certificate.lists.iter().flatten().any(wanted);
        solved.find(|(_, plan)| has(plan)).expect("some problem needs it")
    };
    let (problem, plan) = find(0, |step| matches!(step, ProofStep::Branch { .. }));
    let wrong = |change: &dyn Fn(&mut Vec<Vec<ProofStep>>), what: &str| {
        let mut wrong = plan.clone();
        change(&mut wrong.certificate.lists);
        let answer = check(&problem, &wrong);
        let Err(CheckError::Proof(text)) = &answer else { panic!("{what}: {answer:?}") };
        assert!(text.contains(what), "{text}");
    };
    let branching = |lists: &Vec<Vec<ProofStep>>| {
        let branches =
            |steps: &Vec<ProofStep>| matches!(steps.last(), Some(ProofStep::Branch { .. }));
        lists.iter().position(branches).expect("there is one")
    };
    let change = |lists: &mut Vec<Vec<ProofStep>>,
                  change: &dyn Fn(&mut Vec<tilewright_layout::solver::Case>)| {
        let list = branching(lists);
        if let Some(ProofStep::Branch { cases, .. }) = lists[list].last_mut() {
            change(cases);
        }
    };
    wrong(&|lists| change(lists, &|cases| cases[0].list = 0), "used twice");
    wrong(&|lists| change(lists, &|cases| cases[0].list = usize::MAX), "there is no list");
    wrong(&|lists| change(lists, &|cases| cases.truncate(1)), "is no case");
    let after = |lists: &mut Vec<Vec<ProofStep>>| {
        let list = branching(lists);
        lists[list].push(ProofStep::Eliminate { variable: 0 });
    };
    wrong(&after, "follow");
    wrong(&|lists| lists.clear(), "there is no list 0");
}
