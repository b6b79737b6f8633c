//! Measured times beside those of a plan.
//!
//! A profile says how long each kernel of a run takes, under the name of the value that it makes. A
//! kernel computes the call of that name, and the calls before it whose results no kernel leaves in
//! memory: those that were fused into it. Further kernels of one name convert the value; a conversion
//! without one is done by the kernel that reads its result, or else by the one that makes the value.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tilewright_driver::{Error, Result};
use tilewright_graph::winograd;
use tilewright_layout::flow::Planned;
use tilewright_layout::solver::Use;

/// How near a prediction has to be to count as right.
const NEAR: f64 = 0.2;

/// Nanoseconds of the shortest kernel whose prediction is judged. Clocks tick every 10 to 40 ns, so that what
/// they say of shorter ones is off by about as much as [`NEAR`] itself.
const SHORTEST: f64 = 200.0;

/// How long the kernels of a run take: `run --profile=FILE` writes it, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Threads of the run.
    pub threads: usize,
    /// Runs that were measured.
    pub runs: u32,
    /// The calls of kernels, in their order.
    pub steps: Vec<TimedCall>,
}

/// A call of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimedCall {
    /// The value of the graph function that it makes.
    pub value: String,
    /// The kernel.
    pub func: String,
    /// The median of the runs, in nanoseconds.
    pub median: f64,
    /// The least of the runs, in nanoseconds.
    pub least: f64,
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// [`Error::Input`] if the text is none.
    pub fn parse(text: &str) -> Result<Profile> {
        let profile: Profile = serde_json::from_str(text)
            .map_err(|e| Error::input(format!("no profile of `run --profile=FILE`: {e}")))?;
        match profile.steps.iter().find(|s| !is_time(s.median) || !is_time(s.least)) {
            Some(step) => {
                let what = format!("the time of `{}` is no number of nanoseconds", step.value);
                Err(Error::input(what))
            }
            None => Ok(profile),
        }
    }

    /// The profile in which a convolution by transforms, of which this lists the values, is one kernel: its
    /// time is that of the two before it as well, which make what it reads and nothing else.
    #[must_use]
    pub fn joined(mut self, by_transforms: &[&str]) -> Profile {
        let mut steps: Vec<TimedCall> = Vec::with_capacity(self.steps.len());
        for mut step in self.steps {
            let parts = steps.len().saturating_sub(2);
            if by_transforms.contains(&&*step.value)
                && let [data, sums] = &steps[parts..]
                && data.value.ends_with(winograd::TRANSFORMED)
                && sums.value.ends_with(winograd::PRODUCTS)
            {
                step.median += data.median + sums.median;
                step.least += data.least + sums.least;
                steps.truncate(parts);
            }
            steps.push(step);
        }
        self.steps = steps;
        self
    }

    /// The profile as JSON.
    pub fn text(&self) -> String {
        json!(self).to_string() + "\n"
    }
}

fn is_time(time: f64) -> bool {
    time.is_finite() && time >= 0.0
}

/// A kernel of a plan that was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// The call whose result it leaves, and the calls that are fused into it, by index.
    pub calls: Vec<usize>,
    /// The conversions that it does on the way, by index.
    pub conversions: Vec<usize>,
    /// What the plan says that the calls cost.
    pub own: u64,
    /// What it says that all of these cost: of several conversions, which are done at once, the one that
    /// costs most, with elementwise work between them.
    pub predicted: u64,
    /// The median of the runs, in nanoseconds.
    pub nanoseconds: f64,
}

/// What was measured of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// The kernels that compute calls.
    pub kernels: Vec<Kernel>,
    /// Nanoseconds of each conversion of the plan, by index; `None` where no kernel makes it alone.
    pub conversions: Vec<Option<f64>>,
    /// The kernels that belong to no call and no conversion of the plan.
    pub others: Vec<TimedCall>,
    /// Nanoseconds of a unit of the plan's costs: 1 where these are nanoseconds, else the median of the
    /// kernels.
    pub scale: f64,
}

impl Times {
    /// What a profile says of a plan, whose costs are nanoseconds where `is_time`.
    pub fn new(planned: &Planned, profile: &Profile, is_time: bool) -> Times {
        let (problem, plan) = (&planned.problem, &planned.plan);
        let calls = &problem.calls[..planned.calls()];
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for (c, call) in calls.iter().enumerate().rev() {
            places.entry(&call.name).or_default().push(c);
        }
        // Of calls that share a name, a kernel leaves the result of the last: what comes before is fused
        // into it.
        let mut kernels: HashMap<&str, usize> = HashMap::new();
        for step in &profile.steps {
            *kernels.entry(&step.value).or_default() += 1;
        }
        for (name, calls) in &mut places {
            let count = kernels.get(name).copied().unwrap_or_default();
            // The last are on top. Those that fusion leaves apart are kernels, before others are.
            let mut kept: Vec<usize> =
                calls.iter().copied().filter(|c| planned.results.contains(c)).take(count).collect();
            let others = calls.iter().copied().filter(|c| !planned.results.contains(c));
            kept.extend(others.take(count - kept.len()));
            kept.sort_by_key(|c| std::cmp::Reverse(*c));
            *calls = kept;
        }
        // The kernel that computes each call, and those of conversions by the value's name.
        let mut steps: BTreeMap<usize, &TimedCall> = BTreeMap::new();
        let mut moves: HashMap<&str, Vec<&TimedCall>> = HashMap::new();
        for step in &profile.steps {
            match places.get_mut(&*step.value).and_then(Vec::pop) {
                Some(call) => drop(steps.insert(call, step)),
                None => moves.entry(&step.value).or_default().push(step),
            }
        }
        let mut producer: HashMap<usize, usize> = HashMap::new();
        for (c, call) in plan.calls.iter().enumerate().take(calls.len()) {
            let writes = &calls[c].alternatives[call.choice].writes;
            producer.extend(writes.iter().map(|used| (used.tensor, c)));
        }
        let mut times = Times { scale: 1.0, ..Times::default() };
        for (c, step) in &steps {
            let (mut members, mut next) = (vec![*c], 0);
            while let Some(&member) = members.get(next) {
                next += 1;
                let reads = &calls[member].alternatives[plan.calls[member].choice].reads;
                for before in reads.iter().filter_map(|used| producer.get(&used.tensor)) {
                    if !steps.contains_key(before) && !members.contains(before) {
                        members.push(*before);
                    }
                }
            }
            let own = members.iter().map(|m| plan.calls[*m].cost).sum();
            let nanoseconds = step.median;
            let conversions = Vec::new();
            times.kernels.push(Kernel {
                calls: members,
                conversions,
                own,
                predicted: own,
                nanoseconds,
            });
        }
        for (at, conversion) in plan.conversions.iter().enumerate() {
            let all = moves.get_mut(&*problem.tensors[conversion.tensor].name);
            let step = all.filter(|all| planned.moves(conversion) && !all.is_empty());
            times.conversions.push(step.map(|all| all.remove(0).median));
            if conversion.cost == 0 || times.conversions[at].is_some() {
                continue;
            }
            let wanted = Use { tensor: conversion.tensor, layout: conversion.to };
            let reads = |k: &Kernel| {
                k.calls
                    .iter()
                    .any(|c| calls[*c].alternatives[plan.calls[*c].choice].reads.contains(&wanted))
            };
            // A kernel that only moves data makes it in the layout in which it is read.
            let mut before = producer.get(&conversion.tensor);
            while let Some(c) =
                before.filter(|c| !steps.contains_key(c) && plan.calls[**c].cost == 0)
            {
                let reads = &calls[*c].alternatives[plan.calls[*c].choice].reads;
                before = reads.first().and_then(|used| producer.get(&used.tensor));
            }
            let all = || times.kernels.iter();
            let mover = all()
                .position(|k| before == k.calls.first() && (k.own == 0 || is_moving(k, planned)));
            let reader =
                || Some(all().position(reads)?).filter(|_| all().filter(|k| reads(k)).count() == 1);
            let kernel = mover.or_else(reader).or_else(|| {
                all().position(|k| {
                    producer.get(&conversion.tensor).is_some_and(|c| k.calls.contains(c))
                })
            });
            if let Some(kernel) = kernel {
                let kernel = &mut times.kernels[kernel];
                kernel.conversions.push(at);
                // Several are one movement, and so is elementwise work between them.
                let most = kernel.conversions.iter().map(|c| plan.conversions[*c].cost).max();
                let is_between = is_moving(kernel, planned) && kernel.conversions.len() > 1;
                kernel.predicted = if is_between {
                    kernel.own.max(most.unwrap_or(0))
                } else {
                    kernel.own + most.unwrap_or(0)
                };
            }
        }
        let mut others: Vec<&TimedCall> = moves.into_values().flatten().collect();
        others.sort_by_key(|step| profile.steps.iter().position(|s| s == *step));
        times.others = others.into_iter().cloned().collect();
        if !is_time {
            let known = times.kernels.iter().filter(|k| k.predicted > 0 && k.nanoseconds > 0.0);
            let mut ratios: Vec<f64> = known.map(|k| k.nanoseconds / k.predicted as f64).collect();
            ratios.sort_by(f64::total_cmp);
            times.scale = ratios.get(ratios.len() / 2).copied().unwrap_or(1.0);
        }
        times
    }

    /// The kernel that a call is computed in, and whether it leaves the call's own result.
    pub fn kernel(&self, call: usize) -> Option<(&Kernel, bool)> {
        let found = self.kernels.iter().find(|k| k.calls.contains(&call))?;
        Some((found, found.calls[0] == call))
    }

    /// Nanoseconds that are predicted of a cost.
    pub fn predicted(&self, cost: u64) -> f64 {
        cost as f64 * self.scale
    }

    /// How many kernels are predicted within a fifth of their time, of how many whose cost is known and whose
    /// time a clock can tell: 0.2 us and more.
    pub fn near(&self) -> (usize, usize) {
        let known = self.kernels.iter().filter(|k| k.predicted > 0 && k.nanoseconds >= SHORTEST);
        (
            known
                .clone()
                .filter(|k| (self.predicted(k.predicted) / k.nanoseconds - 1.0).abs() <= NEAR)
                .count(),
            known.count(),
        )
    }

    /// Nanoseconds of all kernels.
    pub fn total(&self) -> f64 {
        let kernels = self.kernels.iter().map(|k| k.nanoseconds);
        let conversions = self.conversions.iter().flatten().copied();
        let others = self.others.iter().map(|s| s.median);
        kernels.chain(conversions).chain(others).sum()
    }
}

/// What converts its operand on the way is no sum of products.
fn is_moving(k: &Kernel, planned: &Planned) -> bool {
    !k.conversions.is_empty() && !k.calls.iter().any(|c| planned.anchors.contains(c))
}

/// Adds to a plan for tools what was measured of it: `profile`, with a list of kernels.
pub fn add_times(object: &mut Value, planned: &Planned, times: &Times) {
    for (k, time) in times.conversions.iter().enumerate() {
        object["conversions"][k]["measured"] = json!(time);
    }
    let (near, known) = times.near();
    object["profile"] = json!({
        "kernels": times.kernels.iter().map(|k| kernel_json(k, planned, times)).collect::<Vec<_>>(), "scale": times.scale,
        "near": near, "known": known, "nanoseconds": times.total(), "others": times.others,
    });
}

fn kernel_json(k: &Kernel, planned: &Planned, times: &Times) -> Value {
    json!({
        "value": call_name(&k.calls[0], planned), "fused": k.calls[1..].iter().map(|c| call_name(c, planned)).collect::<Vec<_>>(),
        "conversions": k.conversions,
        "cost": k.predicted, "predicted": times.predicted(k.predicted),
        "measured": k.nanoseconds,
    })
}

fn call_name(c: &usize, planned: &Planned) -> String {
    planned.problem.calls[*c].name.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_layout::TiledLayout;
    use tilewright_layout::solver::{
        Alternative, Call, Cost, Options, Problem, Tensor, Use, solve,
    };

    /// A chain of calls `a`, `b`, `c` from an input `x`, each of one cost.
    fn chain() -> Planned {
        let own = TiledLayout::identity(&[2, 2]);
        let other = TiledLayout::blocked(&[2, 2], &[1, 0], &[]).expect("a layout");
        let tensors = ["x", "a", "b", "c"].map(|n| tensor_of(n, (n == "x").then_some(0)));
        let calls = vec![call_of(0, "a", 1000), call_of(1, "b", 200), call_of(2, "c", 3000)];
        let problem = Problem { tensors: tensors.into(), calls };
        let plan = solve(&problem, &Options::default()).expect("a plan");
        let layouts = vec![vec![own, other]; 4];
        let (graph, anchors, free_results) = ("main".into(), Vec::new(), Vec::new());
        Planned {
            graph,
            problem,
            plan,
            layouts,
            anchors,
            results: Vec::new(),
            free_inputs: 0,
            free_results,
            reordered: Vec::new(),
        }
    }

    fn tensor_of(name: &str, given: Option<usize>) -> Tensor {
        Tensor {
            name: name.into(),
            layouts: vec!["own".into(), "other".into()],
            given,
            required: Vec::new(),
            conversions: vec![vec![Cost::ZERO, 500.into()], vec![500.into(), Cost::ZERO]],
        }
    }

    fn call_of(k: usize, name: &str, cost: u64) -> Call {
        Call {
            name: name.into(),
            alternatives: vec![Alternative {
                name: "only".into(),
                cost: cost.into(),
                reads: vec![Use { tensor: k, layout: usize::from(k == 0) }],
                writes: vec![Use { tensor: k + 1, layout: 0 }],
            }],
        }
    }

    fn profile(steps: &[(&str, f64)]) -> Profile {
        Profile { threads: 1, runs: 3, steps: steps.iter().map(step_of).collect() }
    }

    fn step_of((value, time): &(&str, f64)) -> TimedCall {
        TimedCall { value: (*value).into(), func: "f".into(), median: *time, least: *time }
    }

    #[test]
    fn fused_calls_conversions_and_others_are_told_apart() {
        let planned = chain();
        let given =
            profile(&[("x", 600.0), ("b", 1100.0), ("c", 3100.0), ("c", 50.0), ("d", 70.0)]);
        let times = Times::new(&planned, &given, true);
        let kernels = [(vec![1, 0], 1200, 1100.0), (vec![2], 3000, 3100.0)];
        let kernels = kernels.map(|(calls, predicted, nanoseconds)| Kernel {
            calls,
            conversions: Vec::new(),
            own: predicted,
            predicted,
            nanoseconds,
        });
        assert_eq!(times.kernels, kernels);
        assert_eq!(times.conversions, [Some(600.0)]);
        let others: Vec<(&str, f64)> = times.others.iter().map(|s| (&*s.value, s.median)).collect();
        assert_eq!(others, [("c", 50.0), ("d", 70.0)]);
        assert_eq!((times.near(), times.total()), ((2, 2), 4920.0));
        let (kernel, own) = times.kernel(0).expect("it was measured");
        assert_eq!((kernel.calls[0], own), (1, false));
        assert!(times.kernel(2).is_some_and(|(_, own)| own));
        let mut object = json!({"conversions": [{"value": "x"}]});
        add_times(&mut object, &planned, &times);
        assert_eq!(object["conversions"][0]["measured"], 600.0);
        assert_eq!(object["profile"]["kernels"][0]["fused"], json!(["a"]));
    }

    #[test]
    fn of_calls_with_one_name_the_last_are_kernels() {
        let mut planned = chain();
        for call in &mut planned.problem.calls {
            call.name = "v".into();
        }
        for (given, expected) in [
            // The first one converts the input on the way.
            (&[("v", 4700.0)][..], &[&[2, 1, 0][..]][..]),
            (&[("v", 1700.0), ("v", 3000.0)], &[&[1, 0], &[2]]),
            (&[("v", 1500.0), ("v", 200.0), ("v", 3000.0)], &[&[0], &[1], &[2]]),
        ] {
            let times = Times::new(&planned, &profile(given), true);
            let calls: Vec<&[usize]> = times.kernels.iter().map(|k| &*k.calls).collect();
            assert_eq!(calls, expected);
            assert_eq!(times.near(), (given.len(), given.len()));
        }
    }

    #[test]
    fn a_conversion_without_a_kernel_is_part_of_the_one_that_reads_it() {
        let times = Times::new(&chain(), &profile(&[("b", 1100.0), ("c", 3100.0)]), true);
        let all: Vec<_> = times
            .kernels
            .iter()
            .map(|k| (k.calls.clone(), k.conversions.clone(), k.predicted))
            .collect();
        assert_eq!(all, [(vec![1, 0], vec![0], 1700), (vec![2], vec![], 3000)]);
        assert_eq!(times.conversions, [None]);
    }

    #[test]
    fn cycles_are_compared_by_the_median_kernel() {
        let given = profile(&[("a", 750.0), ("b", 1000.0), ("c", 1500.0)]);
        let times = Times::new(&chain(), &given, false);
        assert_eq!((times.scale, times.near()), (0.5, (2, 3)));
    }

    #[test]
    fn a_convolution_by_transforms_is_one_kernel() {
        let parts = |n: f64| [("f_transformed", 100.0), ("f_products", 700.0), ("b", n)];
        let other = [("f_products", 50.0), ("c", 3100.0)];
        let given = profile(&[&[("a", 400.0)][..], &parts(200.0), &other].concat());
        let of = |p: Profile| -> Vec<(String, f64)> {
            p.steps.into_iter().map(|s| (s.value, s.median)).collect()
        };
        let joined = given.clone().joined(&["b", "c"]);
        let left = [("a", 400.0), ("b", 1000.0), ("f_products", 50.0), ("c", 3100.0)];
        assert_eq!(of(joined), left.map(|(name, time)| (name.to_owned(), time)));
        assert_eq!(given.clone().joined(&["c"]), given);
    }

    #[test]
    fn a_profile_is_read_as_it_was_written() {
        let given = profile(&[("a", 50.5), ("\"<b>", 0.0)]);
        assert_eq!(Profile::parse(&given.text()).expect("it reads"), given);
        assert!(Profile::parse("{}").is_err());
        let wrong = given.text().replace("50.5", "-1");
        let error = Profile::parse(&wrong).expect_err("no time").to_string();
        assert!(error.contains("`a`"), "{error}");
    }
}
