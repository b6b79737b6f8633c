//! In which layouts each call of a graph can be computed, and what that costs.
//!
//! Convolutions have the layouts of every policy, and the logical one; each of their operands may also
//! be logical while the others are not. Every other call can be computed in the layouts that its
//! operands and results may come in, as far as its accesses propagate them
//! ([`crate::propagate`]): found by passing over the graph, forwards and backwards, until
//! there are no new ones.

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::{Binding, Buffer, Expr, GraphExpr, GraphFunc, GraphVar, TensorFunc};
use tilewright_runtime::parallel;

use super::carried::Carried;
use super::surroundings::{Costs, Surrounding, Surroundings};
use super::ways::{Layouts, StoredValue, Way};
use super::{Flow, Permuted, TiledLayout, extents, missing};
use crate::free::{constants, is_constant};
use crate::policy::ConvLayout;
use crate::propagate::Propagation;
use tilewright_graph::call_sizes::passes_sizes;
use tilewright_graph::normal::{needed, var};

/// Passes over the graph after which no more layouts are looked for.
const MOST_PASSES: usize = 8;

/// A binding of the graph with the ways to compute it.
pub(super) struct Node {
    pub(super) var: GraphVar,
    pub(super) ways: Vec<Way>,
}

/// A call whose layouts are open.
struct Open {
    node: usize,
    name: Arc<str>,
    func: Arc<TensorFunc>,
    args: Vec<GraphExpr>,
    outs: Vec<GraphVar>,
    buffers: Vec<Buffer>,
    /// Which arguments are constant.
    free: Vec<bool>,
    /// How arguments are other values with their axes in another order.
    permuted: Vec<Option<Permuted>>,
    around: Surrounding,
    found: Vec<(Vec<TiledLayout>, Option<ConvLayout>, Arc<Propagation>)>,
    /// Layouts of arguments and results whose propagation was tried.
    tried: HashSet<(usize, TiledLayout)>,
}

impl Open {
    /// The values of arguments and results that are not constant, with their positions; of an argument that is
    /// permuted, its root.
    fn values(&self) -> Vec<(usize, u64)> {
        let args = self.args.iter().zip(&self.free).enumerate().filter(|(_, (_, free))| !**free);
        let args = args.filter_map(|(k, (e, _))| match e {
            GraphExpr::Var(v) => Some((k, self.permuted[k].as_ref().map_or(v, |t| &t.root).id())),
            _ => None,
        });
        let outs = self.outs.iter().enumerate().map(|(k, v)| (self.args.len() + k, v.id()));
        args.chain(outs).collect()
    }

    /// A layout of an argument or result, as one of its value.
    fn of_value(&self, k: usize, layout: &TiledLayout) -> TiledLayout {
        match self.permuted.get(k) {
            Some(Some(permuted)) => permuted.to_root(layout),
            _ => layout.clone(),
        }
    }

    /// The layouts that an argument or result may come in beside its own.
    fn come(&self, k: usize, known: &[TiledLayout]) -> Vec<TiledLayout> {
        match self.permuted.get(k) {
            Some(Some(permuted)) => {
                let logical = TiledLayout::identity(&permuted.logical);
                let all = known.iter().chain([&logical]).map(|l| permuted.as_value(l));
                all.filter(|l| !l.is_identity()).collect()
            }
            _ => known.to_vec(),
        }
    }

    /// The call with all its arguments and results in some layouts.
    fn way(&self, layouts: &[TiledLayout], policy: Option<Option<ConvLayout>>, cost: f64) -> Way {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for (k, value) in self.values() {
            let place = StoredValue { value, layout: self.of_value(k, &layouts[k]) };
            let list = if k < self.args.len() { &mut reads } else { &mut writes };
            if !list.contains(&place) {
                list.push(place);
            }
        }
        Way { layouts: layouts.to_vec(), policy, reads, writes, cost }
    }
}

impl Flow<'_, '_> {
    /// Every binding of a graph that depends on its arguments, with the ways to compute it; at least
    /// one each.
    pub(super) fn nodes(
        &mut self,
        func: &GraphFunc,
        policies: &[ConvLayout],
        costs: &dyn Costs,
        around: &Surroundings,
    ) -> Vec<Node> {
        let constant = constants(func, true);
        let (mut nodes, mut open, mut layouts) = (Vec::new(), Vec::new(), Layouts::default());
        let (mut unmoved, mut carried) = (HashMap::default(), Vec::new());
        let items = self.open_items(func);
        for b in func.bindings() {
            if constant.contains(&b.var.id()) || items.contains(&b.var.id()) {
                continue;
            }
            if let Some(permuted) = self.permuted(&b.var) {
                let own = TiledLayout::identity(&extents(&b.var).unwrap_or_default());
                layouts.add(permuted.root.id(), &permuted.to_root(&own));
                continue;
            }
            if let Some(of) = self.regrouped.get(&b.var.id()) {
                let permuted = self.permuted(&of.from);
                carried.push(Carried::new(nodes.len(), &b.var, of, permuted));
                nodes.push(Node { var: b.var.clone(), ways: Vec::new() });
                continue;
            }
            let mut ways = self.fixed(b, &constant, &mut layouts);
            if ways.is_empty() {
                open.extend(self.open(b, nodes.len(), &constant, || around.of_call(b, costs)));
            }
            // A call that reads what only a conversion makes stays as it is, and takes its time.
            if let [way] = &mut ways[..]
                && let Some((name, f, free)) = self.unmoved(b, &constant)
            {
                let around = around.of_call(b, costs);
                let known = unmoved.entry((name.clone(), free.clone(), around.clone()));
                way.cost = *known.or_insert_with(|| around.cost(costs, &name, &f, &free));
            }
            nodes.push(Node { var: b.var.clone(), ways });
        }
        let mut memo = HashMap::default();
        for call in &mut open {
            self.anchored(call, policies, &mut layouts);
        }
        for _ in 0..MOST_PASSES {
            layouts.changed = false;
            let last = open.len();
            for k in (0..last).chain((0..last).rev()) {
                follow(&mut open[k], &mut layouts, &mut memo);
            }
            carried.iter_mut().for_each(|call| call.follow(&mut layouts));
            if !layouts.changed {
                break;
            }
        }
        for call in &mut carried {
            nodes[call.node].ways = call.ways();
        }
        for (call, ways) in open.iter().zip(priced(&open, costs)) {
            nodes[call.node].ways = ways;
        }
        nodes
    }

    /// The results of calls with several, whose layouts are open.
    fn open_items(&self, func: &GraphFunc) -> HashSet<u64> {
        let open = func.bindings().filter(|b| self.call(b).is_some());
        let items = open.filter_map(|b| self.items.get(&b.var.id()));
        items.flatten().map(GraphVar::id).collect()
    }

    /// The one way of a binding that has no choice; none for a call that may have several.
    fn fixed(&self, b: &Binding, constant: &HashSet<u64>, layouts: &mut Layouts) -> Vec<Way> {
        let id = b.var.id();
        if let Some((from, layout, ..)) = self.packs.get(&id) {
            layouts.add(from.id(), layout);
            let read = StoredValue { value: from.id(), layout: layout.clone() };
            return plain_way(vec![read], vec![logical_place(&b.var)]);
        }
        if let Some((from, layout)) = self.crops.get(&id) {
            layouts.add(id, layout);
            let write = StoredValue { value: id, layout: layout.clone() };
            return plain_way(vec![logical_place(from)], vec![write]);
        }
        if self.call(b).is_some() {
            return Vec::new();
        }
        let mut reads = Vec::new();
        needed(&b.value, &mut |v| {
            let place = self.logical(v);
            if !constant.contains(&v.id()) && !reads.contains(&place) {
                reads.push(place);
            }
        });
        plain_way(reads, vec![logical_place(&b.var)])
    }

    /// The function of a call that computes something and has no choice, and which arguments are
    /// constant.
    fn unmoved(
        &self,
        b: &Binding,
        constant: &HashSet<u64>,
    ) -> Option<(Arc<str>, Arc<TensorFunc>, Vec<bool>)> {
        let id = b.var.id();
        let moves = self.packs.contains_key(&id) || self.crops.contains_key(&id);
        let GraphExpr::CallTir { func, args, outs, scalars } = &b.value else { return None };
        let f = self.functions.get(func).filter(|_| !moves)?;
        let is_whole = passes_sizes(f, scalars) && f.buffers().count() == args.len() + outs.len();
        let free = args.iter().map(|a| is_constant(a, constant)).collect();
        is_whole.then(|| (func.clone(), f.clone(), free))
    }

    /// A call whose layouts are open.
    fn open(
        &self,
        b: &Binding,
        node: usize,
        constant: &HashSet<u64>,
        around: impl FnOnce() -> Surrounding,
    ) -> Option<Open> {
        let (func, outs) = self.call(b)?;
        let GraphExpr::CallTir { func: name, args, .. } = &b.value else { return None };
        let free = args.iter().map(|a| is_constant(a, constant));
        Some(Open {
            node,
            name: name.clone(),
            buffers: func.buffers().cloned().collect(),
            func,
            free: free.collect(),
            permuted: args.iter().map(|a| self.permuted(var(a)?)).collect(),
            around: around(),
            args: args.clone(),
            outs,
            found: Vec::new(),
            tried: HashSet::default(),
        })
    }

    /// A value as it is.
    pub(super) fn logical(&self, v: &GraphVar) -> StoredValue {
        let own = TiledLayout::identity(&extents(v).unwrap_or_default());
        let (value, layout) = self.rooted(v, &own);
        StoredValue { value: value.id(), layout }
    }

    /// The layouts that the policies say for a convolution: of all its operands, and of all but the
    /// data or the result.
    fn anchored(&mut self, call: &mut Open, policies: &[ConvLayout], layouts: &mut Layouts) {
        for policy in policies {
            let Some(given) = policy.layouts(&call.func) else {
                self.why.extend(missing(&call.name, &call.func, *policy));
                continue;
            };
            // Data, weights, result.
            let [mut logical_data, mut logical_result] = [given.clone(), given.clone()];
            for layout in [&mut logical_data[0].1, &mut logical_result[2].1] {
                *layout = TiledLayout::identity(&layout.logical);
            }
            for given in [given, logical_data, logical_result] {
                if let Ok(p) = Propagation::new(&call.func, &given) {
                    add(call, Arc::new(p), Some(*policy), layouts);
                }
            }
        }
    }
}

fn logical_place(v: &GraphVar) -> StoredValue {
    StoredValue { value: v.id(), layout: TiledLayout::identity(&extents(v).unwrap_or_default()) }
}

fn plain_way(reads: Vec<StoredValue>, writes: Vec<StoredValue>) -> Vec<Way> {
    vec![Way { layouts: Vec::new(), policy: None, reads, writes, cost: 0.0 }]
}

/// Adds a way to compute a call, unless it is there; the logical one always is.
fn add(call: &mut Open, p: Arc<Propagation>, policy: Option<ConvLayout>, layouts: &mut Layouts) {
    let all = p.params();
    let new = !all.iter().all(TiledLayout::is_identity) && call.found.iter().all(|f| f.0 != all);
    if new {
        for (k, value) in call.values() {
            layouts.add(value, &call.of_value(k, &all[k]));
        }
        call.found.push((all, policy, p));
    }
}

/// What follows from a layout of one operand of a function.
type Memo = HashMap<(Arc<str>, usize, TiledLayout), Option<Arc<Propagation>>>;

/// Looks for ways to compute a call in the layouts that its operands and results come in; a convolution, for
/// which the policies speak, in those that come through reshapes alone.
fn follow(call: &mut Open, layouts: &mut Layouts, memo: &mut Memo) {
    let is_anchor = call.found.iter().any(|f| f.1.is_some());
    for (k, value) in call.values() {
        for layout in call.come(k, layouts.of(value)) {
            let is_asked =
                !is_anchor || layouts.has_come_through(value, &call.of_value(k, &layout));
            if !is_asked || !call.tried.insert((k, layout.clone())) {
                continue;
            }
            let key = (call.name.clone(), k, layout);
            let propagation = memo.entry(key).or_insert_with_key(|(_, k, layout)| {
                let given = [(call.buffers[*k].clone(), layout.clone())];
                Propagation::new(&call.func, &given).ok().map(Arc::new)
            });
            if let Some(p) = propagation.clone() {
                add(call, p, None, layouts);
            }
        }
    }
}

/// A function in some layouts, `None` for its own, with the arguments that are constant, and what is
/// beside it.
type Job<'a> = (&'a str, Option<&'a [TiledLayout]>, &'a [bool], &'a Surrounding);

/// What each call costs in each way, equal ones priced once; ways whose code cannot be made are left
/// out.
fn priced(open: &[Open], costs: &dyn Costs) -> Vec<Vec<Way>> {
    let mut jobs: Vec<(&Open, Option<&Propagation>)> = Vec::new();
    let mut number: HashMap<Job<'_>, usize> = HashMap::default();
    for call in open {
        let ways = call.found.iter().map(|f| (Some(&f.0[..]), Some(&*f.2)));
        for (layouts, propagation) in ways.chain([(None, None)]) {
            number.entry((&call.name, layouts, &call.free, &call.around)).or_insert_with(|| {
                jobs.push((call, propagation));
                jobs.len() - 1
            });
        }
    }
    let prices = parallel::map(jobs.len(), |k| cost(jobs[k].0, jobs[k].1, costs));
    let price = |job: Job<'_>| number.get(&job).and_then(|k| prices[*k]);
    open.iter()
        .map(|call| {
            let is_anchor = call.found.iter().any(|f| f.1.is_some());
            let own: Vec<TiledLayout> = call.buffers.iter().map(TiledLayout::of_buffer).collect();
            let cost = price((&call.name, None, &call.free, &call.around)).unwrap_or_default();
            let own = call.way(&own, is_anchor.then_some(None), cost);
            let others = call.found.iter().filter_map(|(all, policy, _)| {
                let cost = price((&call.name, Some(all), &call.free, &call.around))?;
                Some(call.way(all, policy.map(Some), cost))
            });
            [own].into_iter().chain(others).collect()
        })
        .collect()
}

/// What a call costs in other layouts, or its own; `None` where its code cannot be made.
fn cost(call: &Open, propagation: Option<&Propagation>, costs: &dyn Costs) -> Option<f64> {
    let Some(propagation) = propagation else { return Some(cost_of_call(&call.func, call, costs)) };
    let pads: Vec<Option<Expr>> =
        call.buffers.iter().map(|b| Some(Expr::constant(0.0, b.dtype()))).collect();
    Some(cost_of_call(&propagation.build(&pads).ok()?.func, call, costs))
}

fn cost_of_call(func: &TensorFunc, call: &Open, costs: &dyn Costs) -> f64 {
    call.around.cost(costs, &call.name, func, &call.free)
}
