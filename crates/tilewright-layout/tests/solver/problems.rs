//! Problems as JSON, and those that are refused.

use tilewright_layout::solver::{
    Alternative, Call, Cost, Error, MOST, Options, Problem, Solution, Tensor, Use, evaluate, solve,
};

use crate::generate::small;

fn tensor(name: &str, given: Option<usize>) -> Tensor {
    let conversions = vec![vec![Cost::ZERO, 5.into()], vec![7.into(), Cost::ZERO]];
    let layouts = vec!["rows".into(), "columns".into()];
    Tensor { name: name.into(), layouts, given, required: Vec::new(), conversions }
}

fn alternative(
    name: &str,
    cost: u64,
    reads: &[(usize, usize)],
    write: (usize, usize),
) -> Alternative {
    let used = |&(tensor, layout): &(usize, usize)| Use { tensor, layout };
    let reads = reads.iter().map(used).collect();
    Alternative { name: name.into(), cost: cost.into(), reads, writes: vec![used(&write)] }
}

/// `x` is given in rows; two calls read it, and are faster in columns.
fn shared() -> Problem {
    let call = |name: &str, output| {
        let rows = alternative("rows", 10, &[(0, 0)], (output, 0));
        let columns = alternative("columns", 7, &[(0, 1)], (output, 1));
        Call { name: name.into(), alternatives: vec![rows, columns] }
    };
    Problem {
        tensors: vec![tensor("x", Some(0)), tensor("a", None), tensor("b", None)],
        calls: vec![call("first", 1), call("second", 2)],
    }
}

/// One call alone would not pay for the conversion; the two share it.
#[test]
fn a_conversion_is_paid_once() {
    let problem = shared();
    let costs = [[0, 0], [0, 1], [1, 0], [1, 1]].map(|choices| evaluate(&problem, &choices));
    assert_eq!(costs, [20, 22, 22, 19].map(Cost::from));
    let plan = solve(&problem, &Options::default()).expect("nothing is forbidden");
    assert_eq!((plan.objective, plan.bound, plan.choices()), (19, 19, vec![1, 1]));
    assert_eq!(plan.alternatives["greedy"], 20.into());
    assert_eq!(plan.conversions.len(), 1);
    assert_eq!((plan.conversions[0].tensor, plan.conversions[0].cost), (0, 5));
}

#[test]
fn what_the_end_requires_is_converted() {
    let mut problem = shared();
    problem.tensors[1].required = vec![0, 1, 1];
    let plan = solve(&problem, &Options::default()).expect("nothing is forbidden");
    // Both layouts of `a`, whatever it is produced in: 5 from rows, or 7 from columns.
    assert_eq!((plan.objective, plan.choices()), (25, vec![0, 0]));
}

#[test]
fn json_keeps_everything() {
    for seed in 0..50 {
        let problem = small(seed, 6);
        assert_eq!(Problem::from_json(&problem.to_json()), Ok(problem.clone()), "seed {seed}");
        if let Ok(plan) = solve(&problem, &Options::default()) {
            assert_eq!(Solution::from_json(&plan.to_json()), Ok(plan), "seed {seed}");
        }
    }
}

#[test]
fn the_keys_of_json() {
    let text = solve(&shared(), &Options::default()).expect("nothing is forbidden").to_json();
    let value: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    for key in ["objective", "bound", "gap", "alternatives", "calls", "tensors", "conversions"] {
        assert!(value.get(key).is_some(), "{key}");
    }
    assert_eq!(value["alternatives"]["greedy"], 20);
    assert_eq!(value["calls"][0]["alternatives"]["rows"], 10);
    // What is forbidden is `null`.
    let mut problem = shared();
    problem.calls[0].alternatives[0].cost = Cost::FORBIDDEN;
    let value: serde_json::Value = serde_json::from_str(&problem.to_json()).expect("it is JSON");
    assert!(value["calls"][0]["alternatives"][0]["cost"].is_null());
}

/// What a change makes of the problem, which is refused with this text.
fn refused(change: impl FnOnce(&mut Problem), message: &str) {
    let mut problem = shared();
    change(&mut problem);
    let expected = Err(Error::Invalid(message.into()));
    assert_eq!(problem.validate(), expected);
    assert_eq!(Problem::from_json(&problem.to_json()).map(|_| ()), expected);
    assert_eq!(solve(&problem, &Options::default()).map(|_| ()), expected);
}

#[test]
fn errors_name_the_tensor_or_call() {
    refused(|p| p.tensors[1].layouts.clear(), "tensor `a` has no layout");
    refused(|p| p.tensors[0].given = Some(2), "tensor `x` has 2 layouts and no layout 2");
    refused(|p| p.tensors[2].required.push(9), "tensor `b` has 2 layouts and no layout 9");
    let matrix = "the conversions of tensor `b` are not a matrix of 2 by 2";
    refused(|p| drop(p.tensors[2].conversions.pop()), matrix);
    refused(|p| p.tensors[2].conversions[0].truncate(1), matrix);
    refused(|p| p.calls[1].alternatives.clear(), "call `second` has no alternative");
    refused(
        |p| p.calls[0].alternatives[1].reads[0].tensor = 3,
        "call `first`, alternative `columns`: there is no tensor 3",
    );
    refused(
        |p| p.calls[0].alternatives[0].writes[0].layout = 2,
        "call `first`, alternative `rows`: tensor `a` has no layout 2",
    );
    refused(
        |p| {
            let twice = p.calls[0].alternatives[0].writes[0];
            p.calls[0].alternatives[0].writes.push(twice);
        },
        "call `first`, alternative `rows` writes a tensor twice",
    );
    refused(
        |p| p.calls[0].alternatives[1].writes.clear(),
        "the alternatives of call `first` do not write the same tensors",
    );
    refused(
        |p| p.calls[1].alternatives = p.calls[0].alternatives.clone(),
        "tensor `a` is written by call `first` and by call `second`",
    );
    refused(|p| p.tensors[1].given = Some(0), "tensor `a` is given, and call `first` writes it");
    refused(|p| p.tensors[0].given = None, "tensor `x` is neither given nor written by a call");
    refused(|p| drop(p.calls.pop()), "tensor `b` is neither given nor written by a call");
    refused(
        |p| {
            p.calls[0].alternatives[0].reads[0].tensor = 2;
            p.calls[1].alternatives[1].reads[0].tensor = 1;
        },
        "call `first` depends on itself, or on a call that does",
    );
    refused(
        |p| p.calls[0].alternatives[0].cost = MOST.into(),
        &format!("all costs add up to {}, and {MOST} is the limit", MOST + 60),
    );
}

#[test]
fn what_is_fixed_must_be_there() {
    let fix = |c, a| {
        let options = Options { fixed: [(c, a)].into(), ..Options::default() };
        solve(&shared(), &options).map(|plan| plan.objective)
    };
    assert_eq!(fix(0, 0), Ok(20));
    assert_eq!(fix(2, 0), Err(Error::Invalid("there is no call 2 to fix".into())));
    assert_eq!(fix(1, 2), Err(Error::Invalid("call `second` has no alternative 2".into())));
}

#[test]
fn text_that_is_no_problem_is_refused() {
    for text in ["", "{}", "[]", r#"{"tensors": [], "calls": [], "more": 1}"#] {
        assert!(matches!(Problem::from_json(text), Err(Error::Invalid(_))), "{text}");
    }
    let empty = Problem::from_json(r#"{"tensors": [], "calls": []}"#).expect("nothing is wrong");
    assert_eq!(solve(&empty, &Options::default()).map(|plan| plan.objective), Ok(0));
}
