//! Who reads and writes the memory of the values of a graph function.

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::{Binding, Function, GraphExpr, GraphFunc, GraphVar, Module, TensorFunc};

use tilewright_graph::legalize::Origins;
use tilewright_graph::marks::{PARTS, SLICE};
use tilewright_graph::normal::needed;

/// A graph function, and who reads and writes the values of calls. Values that are views of each other
/// are one: their *origin*.
pub(super) struct Users<'a> {
    pub(super) module: &'a Module,
    pub(super) func: &'a GraphFunc,
    pub(super) origins: Origins<'a>,
    /// The origins that calls compute.
    pub(super) computed: HashSet<u64>,
    /// The origins that the caller gives.
    pub(super) given: HashSet<u64>,
    /// The origins that must lie as they are: what others than calls read.
    pub(super) kept: HashSet<u64>,
    /// The origins that lie where the caller wants them.
    pub(super) results: HashSet<u64>,
    /// By origin, the variables that have its memory.
    pub(super) views: HashMap<u64, Vec<GraphVar>>,
    /// By origin, the calls that read or write it: positions of the binding and of the tensor
    /// among the parameters.
    pub(super) users: HashMap<u64, Vec<(usize, usize)>>,
    /// By the variable of a call with several results, its items.
    pub(super) items: HashMap<u64, Vec<(usize, GraphVar)>>,
}

impl<'a> Users<'a> {
    pub(super) fn collect(module: &'a Module, func: &'a GraphFunc) -> Users<'a> {
        let mut graph = Users {
            module,
            func,
            origins: Origins::new(module),
            computed: HashSet::default(),
            given: func.params.iter().map(GraphVar::id).collect(),
            kept: HashSet::default(),
            results: HashSet::default(),
            views: HashMap::default(),
            users: HashMap::default(),
            items: HashMap::default(),
        };
        let mut calls: HashMap<u64, (usize, usize)> = HashMap::default();
        for (n, b) in func.bindings().enumerate() {
            graph.origins.bind(b);
            let origin = graph.origins.find(&b.var).id();
            match &b.value {
                value if graph.origins.is_view(value) => {
                    graph.views.entry(origin).or_default().push(b.var.clone());
                }
                GraphExpr::CallTir { args, outs, .. } => {
                    for (k, arg) in args.iter().enumerate() {
                        if let GraphExpr::Var(v) = arg {
                            let origin = graph.origins.find(v).id();
                            graph.users.entry(origin).or_default().push((n, k));
                        }
                    }
                    // What was placed before stays where it is.
                    if graph.call(b).is_some_and(|(_, f, _)| {
                        f.attrs.contains_key(PARTS) || f.attrs.contains_key(SLICE)
                    }) {
                        graph.keep(&b.value);
                        graph.kept.insert(b.var.id());
                    }
                    calls.insert(b.var.id(), (n, args.len()));
                    if outs.len() == 1 && b.var.ty().as_tensor().is_some() {
                        graph.compute(&b.var, (n, args.len()));
                    }
                }
                GraphExpr::Item(of, k) => {
                    if let GraphExpr::Var(v) = &**of
                        && let Some((n, args)) = calls.get(&v.id())
                    {
                        graph.items.entry(v.id()).or_default().push((*k, b.var.clone()));
                        graph.compute(&b.var, (*n, args + k));
                    }
                }
                value => graph.keep(value),
            }
        }
        needed(&func.ret, &mut |v| graph.results.extend([graph.origins.find(v).id()]));
        graph
    }

    fn compute(&mut self, var: &GraphVar, by: (usize, usize)) {
        self.computed.insert(var.id());
        self.views.entry(var.id()).or_default().push(var.clone());
        self.users.entry(var.id()).or_default().push(by);
    }

    fn keep(&mut self, value: &GraphExpr) {
        needed(value, &mut |v| self.kept.extend([self.origins.find(v).id()]));
    }

    /// The function that a binding calls, its arguments and its results.
    pub(super) fn call(
        &self,
        b: &'a Binding,
    ) -> Option<(&'a Arc<str>, &'a TensorFunc, &'a [GraphExpr])> {
        let GraphExpr::CallTir { func, args, .. } = &b.value else { return None };
        match self.module.functions.get(func) {
            Some(Function::Tensor(f)) => Some((func, f, args)),
            _ => None,
        }
    }

    /// Whether the memory of a value may lie in that of another one.
    pub(super) fn may_move(&self, origin: u64) -> bool {
        self.may_hold(origin) && !self.results.contains(&origin)
    }

    /// Whether others may lie in the memory of a value that a call computes.
    pub(super) fn may_hold(&self, origin: u64) -> bool {
        self.computed.contains(&origin) && !self.kept.contains(&origin)
    }

    /// The results of a call, by position, as far as anything names them.
    pub(super) fn results_of(&self, b: &'a Binding, count: usize) -> Vec<Option<&GraphVar>> {
        let items = self.items.get(&b.var.id());
        match b.var.ty().as_tensor() {
            Some(_) => vec![Some(&b.var)],
            None => (0..count)
                .map(|k| {
                    items.and_then(|items| items.iter().find(|(at, _)| *at == k)).map(|(_, v)| v)
                })
                .collect(),
        }
    }
}
