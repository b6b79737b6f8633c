//! Why a call is computed as it is: what each other way would cost the whole model, in a sentence.

use std::collections::BTreeMap;
use std::time::Duration;

use tilewright_layout::flow::Planned;
use tilewright_layout::solver::{Options, solve};

use crate::function::Kinds;
use crate::writing::{amount, share};

/// How long each question to the solver may take; after that the best plan that was found counts, which
/// costs at least as much as the best.
const LIMIT: Duration = Duration::from_secs(1);

/// What the whole model costs if a call is computed in each of its ways; `None` where that is impossible.
pub(crate) fn totals(planned: &Planned, call: usize) -> Vec<Option<u64>> {
    let ways = 0..planned.problem.calls[call].alternatives.len();
    let chosen = planned.plan.calls[call].choice;
    ways.map(|way| {
        if way == chosen {
            return Some(planned.plan.objective);
        }
        let fixed = BTreeMap::from([(call, way)]);
        let options = Options { time_limit: LIMIT, fixed, ..Options::default() };
        solve(&planned.problem, &options).ok().map(|plan| plan.objective)
    })
    .collect()
}

/// Why the chosen way of a call wins, by what each way costs the model.
pub(crate) fn sentence(
    planned: &Planned,
    call: usize,
    totals: &[Option<u64>],
    kinds: &Kinds,
    unit: &str,
) -> String {
    let ways = &planned.problem.calls[call].alternatives;
    let chosen = planned.plan.calls[call].choice;

    let rivals = (0..ways.len()).filter(|way| *way != chosen);
    let rival = rivals.filter_map(|way| Some((totals[way]?, way))).min();
    let Some((total, rival)) = rival else {
        return "No other way of it is possible here.".to_owned();
    };
    let plan = planned.plan.objective;
    let [winner, other] = [chosen, rival].map(|way| kinds.way(&ways[way].name));
    let same = if winner == other { " that reads other layouts" } else { "" };
    if total <= plan {
        return format!(
            "{other}{same} costs the whole model the same, so that the choice does not matter here."
        );
    }
    let (own, others) = (ways[chosen].cost.get(), ways[rival].cost.get());
    let own = i128::from(others.unwrap_or(0)) - i128::from(own.unwrap_or(0));
    let around = i128::from(total - plan) - own;
    let text = |n: i128| amount(u64::try_from(n.unsigned_abs()).unwrap_or(u64::MAX));
    let reason = match (own, around) {
        (0, _) => format!(
            "the call costs the same, and conversions and other calls {} more",
            text(around)
        ),
        (1.., 0) => format!("the call costs {} more, and all else the same", text(own)),
        (1.., 1..) => format!(
            "the call costs {} more, and conversions and other calls {} more",
            text(own),
            text(around)
        ),
        (1.., _) => format!(
            "the call costs {} more, and conversions and other calls only {} less",
            text(own),
            text(around)
        ),
        _ => format!(
            "the call costs {} less, but conversions and other calls {} more",
            text(own),
            text(around)
        ),
    };
    let mut sentence = format!(
        "The best other way is {other}{same}, with which the whole model costs {} {unit} more ({}): {reason}.",
        amount(total - plan),
        share((total - plan) as f64 / plan.max(1) as f64)
    );
    let wasted = [chosen, rival].map(|way| {
        let used = ways[way].reads.iter().chain(&ways[way].writes);
        let waste = used.map(|u| planned.layouts[u.tensor][u.layout].waste());
        waste.fold(0.0, f64::max)
    });
    for (name, part) in [winner, other].into_iter().zip(wasted) {
        if part > 0.0 {
            sentence += &format!(" With {name}, up to {} of a tensor is padding.", share(part));
        }
    }
    sentence
}
