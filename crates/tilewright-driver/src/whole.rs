//! Plans of whole models: the best in order, as text that names each by its content, and which layouts
//! of a model were measured to be the fastest as a whole.
//!
//! The text of a plan says for each call that has a choice the hash of the layouts in which it reads and
//! writes its tensors. So a plan that was measured is found again in any later problem of the same model,
//! whatever its calls cost then; where a way of it is not there any more, it is passed over.

use std::time::Duration;
use tilewright_ir::hash::HashMap;

use tilewright_ir::{Error, Module, Result};
use tilewright_layout::IoLayout;
use tilewright_layout::begin;
use tilewright_layout::flow::Planned;
use tilewright_layout::policy::ConvLayout;
use tilewright_layout::solver::{Alternative, Call, Options, Problem, evaluate};
use tilewright_tune::Key;
use tilewright_tvmscript::{ConstTable, print_module_with};

use super::timings::Timings;

/// The fixed layouts to choose from, beside the model's own.
const POLICIES: &[ConvLayout] = ConvLayout::OF_BUFFERS;

/// How long the best plans of a graph function are enumerated.
const TIME: Duration = Duration::from_secs(5);

/// Layouts of a whole model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whole {
    /// The model's own for everything, or one policy for all convolutions.
    Fixed(Option<ConvLayout>),
    /// A plan, by its text.
    Plan(String),
}

/// A plan in the order of their costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// What it costs.
    pub cost: u64,
    /// Its text.
    pub ways: String,
}

/// The fixed layouts, the model's own first.
pub fn fixed() -> impl Iterator<Item = Option<ConvLayout>> {
    [None].into_iter().chain(POLICIES.iter().copied().map(Some))
}

/// What the command line calls a fixed layout.
pub fn fixed_name(layout: Option<ConvLayout>) -> String {
    layout.map_or("none".to_owned(), |policy| policy.to_string())
}

/// What the command line calls the plan at a place in the order of costs, from 0.
pub(crate) fn plan_name(place: usize) -> String {
    if place == 0 { "plan".to_owned() } else { format!("plan:{}", place + 1) }
}

/// The `count` plans of a module that cost least and differ in the layout of a convolution, the best
/// first; fewer where there are fewer, or where the time for them is over. `plans` are the best ones of
/// its graph functions.
///
/// # Errors
/// [`Error::Internal`] if a problem cannot be solved that was.
pub fn ranked(plans: &[Planned], count: usize) -> Result<Vec<Ranked>> {
    let mut all = vec![Ranked { cost: 0, ways: String::new() }];
    for planned in plans {
        let Planned { graph, problem, plan, anchors, .. } = planned;
        let options = Options { time_limit: TIME, ..Options::default() };
        let found = tilewright_layout::solver::ranked(problem, &options, anchors, count);
        let found =
            found.map_err(|e| Error::internal(format!("the best plans of a graph: {e}")))?;
        let mut list = vec![(plan.objective, plan.choices())];
        let others = found.list.into_iter();
        let others: Vec<_> =
            others.filter(|(_, c)| anchors.iter().any(|at| c[*at] != list[0].1[*at])).collect();
        list.extend(others);
        all = all
            .iter()
            .flat_map(|a| list.iter().map(|b| ranked_with(a, b, graph, problem)))
            .collect();
        all.sort_by_key(|r| r.cost);
        all.truncate(count);
    }
    Ok(all)
}

fn ranked_with(
    a: &Ranked,
    (cost, choice): &(u64, Vec<usize>),
    graph: &str,
    problem: &Problem,
) -> Ranked {
    Ranked { cost: a.cost + cost, ways: format!("{}{}\n", a.ways, line(graph, problem, choice)) }
}

/// The choice of a text for a graph function; `None` where it says none that is possible.
pub fn choice(ways: &str, graph: &str, problem: &Problem) -> Option<Vec<usize>> {
    let graph = hash(graph);
    let line = ways.lines().find_map(|line| line.strip_prefix(&*graph)?.strip_prefix(':'))?;
    let mut words = line.split_whitespace();
    let choice: Vec<usize> = problem
        .calls
        .iter()
        .map(|call| match call.alternatives.len() {
            1 => Some(0),
            _ => {
                let wanted = words.next()?;
                labels(problem, call).iter().position(|label| label == wanted)
            }
        })
        .collect::<Option<_>>()?;
    (words.next().is_none() && !evaluate(problem, &choice).is_forbidden()).then_some(choice)
}

/// A choice as text.
fn line(graph: &str, problem: &Problem, choice: &[usize]) -> String {
    let mut line = hash(graph) + ":";
    for (call, chosen) in problem.calls.iter().zip(choice) {
        if call.alternatives.len() > 1 {
            line.push(' ');
            line += &labels(problem, call)[*chosen];
        }
    }
    line
}

/// What tells the alternatives of a call apart; of equal ones, their order.
fn labels(problem: &Problem, call: &Call) -> Vec<String> {
    let mut count: HashMap<String, usize> = HashMap::default();
    call.alternatives.iter().map(|a| label_of(a, problem, &mut count)).collect()
}

fn use_names(uses: &[tilewright_layout::solver::Use], problem: &Problem) -> Vec<String> {
    uses.iter()
        .map(|u| {
            let tensor = &problem.tensors[u.tensor];
            format!("{:?} {:?}", tensor.name, tensor.layouts[u.layout])
        })
        .collect::<Vec<_>>()
}

fn label_of(a: &Alternative, problem: &Problem, count: &mut HashMap<String, usize>) -> String {
    let name = hash(&format!(
        "{:?} {:?} {:?}",
        a.name,
        use_names(&a.reads, problem),
        use_names(&a.writes, problem)
    ));
    let before = count.entry(name.clone()).or_default();
    *before += 1;
    if *before == 1 { name } else { format!("{name}.{before}") }
}

/// A short hash: it tells the few ways of one call apart.
fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..8].to_owned()
}

/// The text of a module without its constants, whose values do not matter for its time.
fn text(module: &Module) -> String {
    print_module_with(&begin(module), &mut ConstTable::default())
}

/// What all plans of a model share that are measured, and what each layout of it is kept under.
pub struct Keys<'a> {
    timings: &'a Timings,
    text: String,
}

impl<'a> Keys<'a> {
    /// Those of a module.
    pub fn new(module: &Module, timings: &'a Timings) -> Keys<'a> {
        Keys { timings, text: text(module) }
    }

    /// What all plans share.
    pub fn model(&self) -> Key {
        self.timings.scope().model(&self.text, "")
    }

    /// What the model in some layouts is kept under.
    pub(crate) fn of_layout(&self, whole: &Whole) -> Key {
        let scope = self.timings.scope();
        match whole {
            Whole::Fixed(layout) => scope.model(&self.text, &fixed_name(*layout)),
            Whole::Plan(ways) => scope.model(&self.text, ways),
        }
    }
}

/// The layouts that a module was measured in as a whole, with the nanoseconds of a run, the fastest
/// first. None where no plan of it was, and where inputs and outputs are not as the model has them: no
/// such run was measured.
pub fn measured(module: &Module, timings: &Timings, io: IoLayout) -> Vec<(f64, Whole)> {
    if !timings.has_models() || io != IoLayout::Logical {
        return Vec::new();
    }
    let keys = Keys::new(module, timings);
    let model = keys.model();
    let plans = timings.plans(&model).map(|(time, ways)| (time, Whole::Plan(ways.into())));
    let mut all: Vec<(f64, Whole)> = plans.collect();
    if all.is_empty() {
        return all;
    }
    all.extend(fixed().map(Whole::Fixed).filter_map(|whole| {
        let time = timings.nanoseconds(&keys.of_layout(&whole))?;
        Some((time, whole))
    }));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}
