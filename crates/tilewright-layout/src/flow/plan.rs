//! `plan_layout`: the layouts of a whole graph, chosen at once.
//!
//! What each call costs in each layout ([`super::candidates`]), and what the conversions between them
//! cost, is one problem, which is solved exactly ([`solver`](crate::solver)). The flow then computes every
//! call as the solution says.

use std::sync::Arc;
use std::time::Duration;
use tilewright_ir::hash::{HashMap, HashSet};

use crate::solver;
use tilewright_ir::{Error, GraphFunc, GraphVar, Module, Remarks, Result, TensorFunc, dim};

use super::candidates::Node;
use super::surroundings::{Costs, Moved, Surroundings};
use super::versions::{moved_bytes, touched};
use super::ways::{StoredValue, Way};
use super::{Anchor, Ends, Flow, FlowOptions, IoLayout, Left, TiledLayout, extents};
use crate::free::constants;
use crate::policy::ConvLayout;
use tilewright_graph::call_sizes::unify_sizes;
use tilewright_graph::functions::Functions;
use tilewright_graph::normal::{changed_graphs, needed};

/// What [`plan_layout`] may do.
pub struct PlanOptions<'a> {
    /// The layouts of convolutions to choose from, beside the logical one.
    pub policies: &'a [ConvLayout],
    /// What calls and conversions cost.
    pub costs: &'a dyn Costs,
    /// For each graph function, after which the best plan found is taken.
    pub time_limit: Duration,
    /// Whether the layouts of inputs and outputs of the module's entry are to be chosen as well.
    pub io: IoLayout,
    /// What is chosen already, by the name of a graph function and its problem: an alternative for each
    /// call. Where there is nothing, the choice that costs least is taken.
    pub decided: &'a dyn Fn(&str, &solver::Problem) -> Option<Vec<usize>>,
}

/// The plan of a graph function.
pub struct Planned {
    /// The name of the graph function.
    pub graph: Arc<str>,
    /// What was to be decided, in the unit of the costs.
    pub problem: solver::Problem,
    /// What was decided.
    pub plan: solver::Solution,
    /// The layouts of each tensor of the problem.
    pub layouts: Vec<Vec<TiledLayout>>,
    /// The problem's calls whose layouts the policies say: convolutions.
    pub anchors: Vec<usize>,
    /// The problem's calls that make the results of kernels, as far as fusion is not stopped by
    /// conversions.
    pub results: Vec<usize>,
    /// How many of the problem's calls, the last ones, are inputs whose layout was to be chosen.
    pub free_inputs: usize,
    /// The tensors of the problem that are results whose layout was to be chosen.
    pub free_results: Vec<usize>,
    /// The values that are others under other axes: what transposes and reshapes make.
    pub reordered: Vec<Reordered>,
}

/// A value that is another one under other axes.
pub struct Reordered {
    pub name: Arc<str>,
    /// That of the other one.
    pub of: Arc<str>,
    /// The layout of the other one in which both are the same memory.
    pub layout: TiledLayout,
    /// What became of the call that makes it.
    pub went: Went,
}

/// What became of a transpose or a reshape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Went {
    /// Both values lie in memory as the model has them.
    View,
    /// What makes the other value stores it so.
    Writer,
    /// What reads the value takes it from where the other one is.
    Readers,
    /// Cells are moved for it, or for another reader of the same layout.
    Copied,
}

impl Went {
    /// For people: what became of it.
    pub fn what(self) -> &'static str {
        match self {
            Went::View => "a view",
            Went::Writer => "its writer stores it so",
            Went::Readers => "its readers take it so",
            Went::Copied => "copied",
        }
    }
}

impl Planned {
    /// Whether a conversion of the plan moves cells at run time. Others are free, or cost what they keep
    /// apart: a kernel that ends there and another that begins.
    pub fn moves(&self, conversion: &solver::Conversion) -> bool {
        let layouts = &self.layouts[conversion.tensor];
        let ends = [conversion.from, conversion.to].map(|layout| layouts[layout].is_row_major());
        conversion.cost > 0 && ends != [true; 2]
    }

    /// How many of the problem's calls are calls of the graph function.
    pub fn calls(&self) -> usize {
        self.problem.calls.len() - self.free_inputs
    }
}

/// Chooses the layouts of every graph function, and computes it in them. Second, the plans, and the
/// conversions that are left at run time.
///
/// # Errors
/// Those of [`flow_layout`](super::flow_layout).
pub fn plan_layout(
    module: &Module,
    options: &PlanOptions<'_>,
    why: &mut Remarks,
) -> Result<(Module, Vec<Planned>, Vec<Left>)> {
    let module = &unify_sizes(module)?;
    let mut functions = Functions::new(module);
    let (mut left, mut plans) = (Vec::new(), Vec::new());
    let entry = module.entry().ok();
    let graphs = changed_graphs(module, |graph, normal| {
        // Other graph functions are called with what the model has.
        let is_free = options.io == IoLayout::Physical && entry == Some(graph);
        let flow_options = FlowOptions { regroups: true, ..FlowOptions::default() };
        let mut trial = Flow::new(normal, &flow_options, &mut functions, why)?;
        let around = Surroundings::new(module, normal);
        let nodes = trial.nodes(normal, options.policies, options.costs, &around);
        let costs = options.costs;
        let asked = problem(normal, &nodes, costs, &around, is_free, &|v| trial.logical(v));
        let Asked { problem, layouts, tensors } = asked;
        let decided = (options.decided)(graph, &problem);
        let plan = solved(&problem, &nodes, options, decided)?;
        let of_nodes = (&nodes[..], &plan, &layouts[..]);
        let reordered = reordered_values(&trial, normal, of_nodes, &tensors);
        let mut chosen: HashMap<u64, &Way> = HashMap::default();
        for (node, call) in nodes.iter().zip(&plan.calls) {
            let way = &node.ways[call.choice];
            if !way.layouts.is_empty() {
                chosen.insert(node.var.id(), way);
            }
        }
        let anchors = |v: &GraphVar, f: &TensorFunc| {
            let way = chosen.get(&v.id())?;
            let layouts = f.buffers().cloned().zip(way.layouts.iter().cloned()).collect();
            Some(Anchor { layouts, zero: way.policy.is_some() })
        };
        // The layout in which the solution has a value.
        let of = |v: &GraphVar| {
            let tensor = *tensors.get(&v.id()).filter(|_| can_be_stored(v))?;
            Some(layouts[tensor][plan.tensors[tensor].layout].clone())
        };
        let ends = if is_free { Ends::Chosen(&of) } else { Ends::Logical };
        let flow_options =
            FlowOptions { anchors: &anchors, inputs: ends, outputs: ends, regroups: true };
        let new = Flow::new(normal, &flow_options, &mut functions, why)?.run(normal, &mut left);
        let free_inputs = problem.calls.len() - nodes.len();
        let mut free_results = Vec::new();
        needed(&normal.ret, &mut |v| match tensors.get(&v.id()) {
            Some(t) if is_free && can_be_stored(v) && !normal.params.contains(v) => {
                free_results.push(*t);
            }
            _ => {}
        });
        let anchors = (0..nodes.len())
            .filter(|k| nodes[*k].ways.iter().any(|w| w.policy.is_some()))
            .collect();
        let made = around.results(normal);
        let results = (0..nodes.len()).filter(|k| made.contains(&nodes[*k].var.id())).collect();
        plans.push(Planned {
            graph: graph.clone(),
            problem,
            plan,
            layouts,
            anchors,
            results,
            free_inputs,
            free_results,
            reordered,
        });
        new
    })?;
    Ok((functions.finish(&graphs, |_, f| f.clone()), plans, left))
}

/// The values of a graph that are others under other axes, but for constants, and what a solution makes of them.
fn reordered_values(
    flow: &Flow<'_, '_>,
    func: &GraphFunc,
    (nodes, plan, layouts): (&[Node], &solver::Solution, &[Vec<TiledLayout>]),
    tensors: &HashMap<u64, usize>,
) -> Vec<Reordered> {
    let constant = constants(func, true);
    let chosen: HashMap<u64, &Way> = nodes
        .iter()
        .zip(&plan.calls)
        .map(|(node, call)| (node.var.id(), &node.ways[call.choice]))
        .collect();
    // Whether cells are moved from or to a layout of a value.
    let is_copied = |v: u64, layout: Option<&TiledLayout>| {
        let Some(tensor) = tensors.get(&v) else { return false };
        let of = &layouts[*tensor];
        plan.conversions.iter().filter(|c| c.tensor == *tensor).any(|c| {
            let moves = !of[c.from].is_row_major() || !of[c.to].is_row_major();
            moves && layout.is_none_or(|to| of[c.to] == *to)
        })
    };
    let made_in = |v: u64| {
        let tensor = *tensors.get(&v)?;
        Some(&layouts[tensor][plan.tensors[tensor].layout])
    };
    let all = func.bindings().filter(|b| !constant.contains(&b.var.id()));
    let reordered = all.filter_map(|b| {
        let id = b.var.id();
        let (of, layout, went) = if let Some(of) = flow.regrouped.get(&id) {
            let [from, to] = &chosen.get(&id)?.layouts[..] else { return None };
            let (root, at_root) = flow.rooted(&of.from, from);
            let went = match (from.is_row_major(), to.is_row_major()) {
                _ if is_copied(root.id(), Some(&at_root)) || is_copied(id, None) => Went::Copied,
                (true, true) => Went::View,
                (false, true) => Went::Writer,
                _ => Went::Readers,
            };
            (of.from.clone(), from.clone(), went)
        } else {
            let permuted = flow.permuted(&b.var)?;
            let layout = permuted.to_root(&TiledLayout::identity(&extents(&b.var)?));
            let went = match made_in(permuted.root.id()) {
                Some(made) if *made == layout => Went::Writer,
                _ if is_copied(permuted.root.id(), Some(&layout)) => Went::Copied,
                _ => Went::Readers,
            };
            (permuted.root, layout, went)
        };
        Some(Reordered { name: b.var.name().clone(), of: of.name().clone(), layout, went })
    });
    reordered.collect()
}

/// Whether an input or result may be stored in another layout than the model's own: its size is not
/// open.
fn can_be_stored(v: &GraphVar) -> bool {
    extents(v).is_some_and(|shape| dim::is_known(&shape))
}

/// The solution of a problem, or the one that is decided, with what each policy would cost.
fn solved(
    problem: &solver::Problem,
    nodes: &[Node],
    options: &PlanOptions<'_>,
    decided: Option<Vec<usize>>,
) -> Result<solver::Solution> {
    let given = solver::Options { time_limit: options.time_limit, ..Default::default() };
    if let Some(choice) = decided {
        let fixed = choice.into_iter().enumerate().collect();
        return solver::solve(problem, &solver::Options { fixed, ..given }).map_err(solver_failed);
    }
    let mut plan = solver::solve(problem, &given).map_err(solver_failed)?;
    // The best that each policy can do for all convolutions.
    let all = options.policies.iter().map(|p| (p.to_string(), Some(*p)));
    for (name, policy) in all.chain([("none".to_owned(), None)]) {
        let mut same = given.clone();
        for (k, node) in nodes.iter().enumerate() {
            let way = node.ways.iter().position(|w| w.policy == Some(policy));
            match (policy, way) {
                (_, Some(way)) => same.fixed.insert(k, way),
                // Nothing is changed at all.
                (None, None) => same.fixed.insert(k, 0),
                (Some(_), None) => None,
            };
        }
        if let Ok(fixed) = solver::solve(problem, &same) {
            plan.alternatives.insert(name, fixed.objective.into());
        }
    }
    Ok(plan)
}

fn solver_failed(e: solver::Error) -> Error {
    Error::internal(format!("the layouts of a graph: {e}"))
}

/// What is asked of the solver.
struct Asked {
    problem: solver::Problem,
    /// Of its tensors.
    layouts: Vec<Vec<TiledLayout>>,
    /// Its tensors, by the values that they are.
    tensors: HashMap<u64, usize>,
}

/// The layouts of values, and the calls, as the solver takes them. Where the layouts of inputs and
/// outputs are free, a call without a price makes each input. `as_is` says where a value is as the model has it.
fn problem(
    func: &GraphFunc,
    nodes: &[Node],
    costs: &dyn Costs,
    around: &Surroundings,
    is_free: bool,
    as_is: &dyn Fn(&GraphVar) -> StoredValue,
) -> Asked {
    let mut tensors = Tensors::default();
    for p in &func.params {
        tensors.arrive(p, true);
    }
    // Constants are made by no call, and converted when compiling.
    let made = nodes.iter().flat_map(|node| &node.ways[0].writes);
    let made: HashSet<u64> = made.map(|place| place.value).collect();
    for b in func.bindings().filter(|b| made.contains(&b.var.id())) {
        tensors.arrive(&b.var, false);
    }
    let calls = nodes.iter().map(|node| {
        let alternatives = node.ways.iter().map(|way| solver::Alternative {
            name: name(way),
            cost: whole(way.cost),
            reads: uses_of(&way.reads, &mut tensors),
            writes: uses_of(&way.writes, &mut tensors),
        });
        let alternatives = alternatives.collect();
        solver::Call { name: node.var.name().to_string(), alternatives }
    });
    let mut calls: Vec<solver::Call> = calls.collect();
    needed(&func.ret, &mut |v| {
        let place = as_is(v);
        // An input that is also a result stays as it is, and so does what is another value permuted.
        let is_own = place.value == v.id();
        if is_free && is_own && can_be_stored(v) && !func.params.contains(v) {
            return;
        }
        if let Some(used) = tensors.place(&place) {
            let required = &mut tensors.list[used.tensor].required;
            if !required.contains(&used.layout) {
                required.push(used.layout);
            }
        }
    });
    if is_free {
        let params = func.params.iter().filter(|p| can_be_stored(p));
        calls.extend(params.filter_map(|p| tensors.free(p)));
    }
    tensors.finish(func, calls, costs, around)
}

fn uses_of(places: &[StoredValue], tensors: &mut Tensors) -> Vec<solver::Use> {
    places.iter().filter_map(|place| tensors.place(place)).collect()
}

/// A cost as the solver takes it.
fn whole(cost: f64) -> solver::Cost {
    (cost.clamp(0.0, solver::MOST as f64) as u64).into()
}

/// Bounds the costs of a problem such that the sum of all fits the solver: what takes longer than an even share is as
/// bad as that. Of open sizes, which are estimated to be large, few calls reach it.
fn bound(problem: &mut solver::Problem) {
    let conversions = problem.tensors.iter_mut().flat_map(|t| t.conversions.iter_mut().flatten());
    let runs = problem.calls.iter_mut().flat_map(|c| &mut c.alternatives).map(|a| &mut a.cost);
    let all: Vec<&mut solver::Cost> = conversions.chain(runs).collect();
    let most = solver::MOST / (all.len() as u64).max(1);
    for cost in all {
        if cost.get().is_some_and(|units| units > most) {
            *cost = most.into();
        }
    }
}

/// What an alternative is called.
fn name(way: &Way) -> String {
    let physical = way.layouts.iter().find(|l| !l.is_identity());
    match (way.policy, physical) {
        (Some(Some(policy)), _) => policy.to_string(),
        (_, None) => "logical".to_owned(),
        (_, Some(layout)) => layout.to_string(),
    }
}

/// The values of a graph function by number.
#[derive(Default)]
struct Tensors {
    list: Vec<solver::Tensor>,
    vars: Vec<GraphVar>,
    layouts: Vec<Vec<TiledLayout>>,
    number: HashMap<u64, usize>,
}

impl Tensors {
    fn arrive(&mut self, v: &GraphVar, given: bool) {
        self.number.insert(v.id(), self.list.len());
        let layout = TiledLayout::identity(&extents(v).unwrap_or_default());
        self.list.push(solver::Tensor {
            name: v.name().to_string(),
            layouts: vec![layout.to_string()],
            given: given.then_some(0),
            required: Vec::new(),
            conversions: Vec::new(),
        });
        self.vars.push(v.clone());
        self.layouts.push(vec![layout]);
    }

    fn place(&mut self, place: &StoredValue) -> Option<solver::Use> {
        let tensor = *self.number.get(&place.value)?;
        let all = &mut self.layouts[tensor];
        let layout = all.iter().position(|l| *l == place.layout).unwrap_or_else(|| {
            all.push(place.layout.clone());
            self.list[tensor].layouts.push(place.layout.to_string());
            all.len() - 1
        });
        Some(solver::Use { tensor, layout })
    }

    /// A call that gives an input in any layout in which it is read; none for one that has to be as
    /// it is.
    fn free(&mut self, p: &GraphVar) -> Option<solver::Call> {
        let tensor = *self.number.get(&p.id())?;
        let given = &mut self.list[tensor];
        if given.layouts.len() < 2 || !given.required.is_empty() {
            return None;
        }
        given.given = None;
        let alternatives = given.layouts.iter().enumerate().map(|(layout, name)| {
            let (name, writes) = (name.clone(), vec![solver::Use { tensor, layout }]);
            solver::Alternative { name, cost: solver::Cost::ZERO, reads: Vec::new(), writes }
        });
        Some(solver::Call { name: given.name.clone(), alternatives: alternatives.collect() })
    }

    /// The problem, with what conversions cost, of the values that calls read or make.
    /// What a kernel reads in registers that makes it is written and read where it is converted, even where
    /// that moves no cell.
    fn finish(
        mut self,
        func: &GraphFunc,
        calls: Vec<solver::Call>,
        costs: &dyn Costs,
        around: &Surroundings,
    ) -> Asked {
        let (in_registers, cells) = (around.in_registers(func), around.smallest_cells(func));
        for (k, tensor) in self.list.iter_mut().enumerate() {
            let dtype = self.vars[k].ty().as_tensor().map(|t| t.dtype);
            let kept = in_registers.contains(&self.vars[k].id());
            let all = &self.layouts[k];
            for from in all {
                let row = all.iter().map(|to| {
                    let bytes = match moved_bytes(&self.vars[k], from, to) {
                        0 if kept && from != to => touched(&self.vars[k], from, to),
                        bytes => bytes,
                    };
                    let Some(dtype) = dtype.filter(|_| bytes > 0) else {
                        return solver::Cost::ZERO;
                    };
                    let smallest = cells.get(&self.vars[k].id()).copied().unwrap_or(dtype.bytes());
                    let constants = around.constants;
                    whole(costs.conversion(&Moved { dtype, from, to, bytes, smallest, constants }))
                });
                tensor.conversions.push(row.collect());
            }
        }
        let mut problem = solver::Problem { tensors: self.list, calls };
        bound(&mut problem);
        Asked { problem, layouts: self.layouts, tensors: self.number }
    }
}
