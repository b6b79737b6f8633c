//! The normal form of a graph function, which all passes here start from.
//!
//! One block, a dataflow block unless there are operators that may have effects; every binding is a
//! constant, one item of a call's several results, or a call whose arguments are variables and
//! literals (constants, shapes, numbers; see [`GraphExpr::is_literal`]) or tuples of such; no
//! variable is another name of a value; calls of other graph functions are expanded; what is
//! not used is gone. The result is a variable, a literal, or a tuple of them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tilewright_ir::{
    Attr, Binding, BindingBlock, Error, Function, GraphExpr, GraphFunc, GraphType, GraphVar,
    Module, Result, Span, equal,
};

use crate::calls::{CallStack, MAX_DEPTH};
use crate::control::has_control;

/// The normal form of a graph function of a module.
///
/// # Errors
/// `Unsupported` for graph functions that call themselves, `Malformed` for an item of what is not
/// a tuple, or a wrong number of arguments.
pub fn normalize(module: &Module, name: &str, func: &GraphFunc) -> Result<GraphFunc> {
    let mut n = Normalize {
        module,
        values: HashMap::new(),
        bindings: Vec::new(),
        calls: CallStack::new(name),
        depth: 0,
        span: None,
        kept: HashSet::new(),
    };
    let ret = n.body(func)?;
    let ret = n.spread(ret)?;
    let bindings = drop_unused(n.bindings, &ret, &n.kept);
    let bound: HashSet<u64> = bindings.iter().map(|b| b.var.id()).collect();
    let mut outputs: Vec<GraphVar> = Vec::new();
    let dataflow = n.kept.is_empty();
    let mut seen: HashSet<u64> = HashSet::new();
    needed(&ret, &mut |v| {
        if dataflow && bound.contains(&v.id()) && seen.insert(v.id()) {
            outputs.push(v.clone());
        }
    });
    let blocks = match bindings.is_empty() {
        true => Vec::new(),
        false => vec![BindingBlock { dataflow, bindings, outputs }],
    };
    let mut attrs = func.attrs.clone();
    let names = output_names(func, results(&ret).len());
    attrs.insert(OUTPUT_NAMES.into(), Attr::List(names.into_iter().map(Attr::Str).collect()));
    Ok(GraphFunc { blocks, ret, attrs, ..func.clone() })
}

/// The dataflow graph functions of a module in which `change` changes something, or the normal form has other
/// bindings, in normal form; `change` is given them in that. The others stay as they are written, and so
/// do those with control flow, whose pieces ([`control`](crate::control)) are such functions.
/// One without names for its outputs gets none: see [`name_outputs`].
///
/// # Errors
/// Those of [`normalize`], and of `change`.
pub(crate) fn changed_graphs(
    module: &Module,
    mut change: impl FnMut(&GraphFunc) -> Result<GraphFunc>,
) -> Result<HashMap<Arc<str>, GraphFunc>> {
    let mut graphs = HashMap::new();
    for (name, func) in dataflow_graphs(module) {
        let normal = normalize(module, name, func)?;
        let mut new = normalize(module, name, &change(&normal)?)?;
        let same = normal.bindings().count() == func.bindings().count()
            && equal::graph_funcs(&normal, &new, &equal::Equality::default()).is_ok();
        if !func.attrs.contains_key(OUTPUT_NAMES) {
            new.attrs.remove(OUTPUT_NAMES);
        }
        if !same {
            graphs.insert(name.clone(), new);
        }
    }
    Ok(graphs)
}

/// The graph functions of a module without control flow, also in what they call.
pub(crate) fn dataflow_graphs(
    module: &Module,
) -> impl Iterator<Item = (&Arc<str>, &Arc<GraphFunc>)> {
    module.graphs().filter(|(name, _)| !has_control(module, name))
}

/// Attribute of a graph function with the names of its results.
const OUTPUT_NAMES: &str = "output_names";

/// Gives the outputs of every graph function their names, which later steps keep: what is returned
/// may become another variable, or a constant.
pub fn name_outputs(module: &Module) -> Module {
    let mut out = module.clone();
    for function in out.functions.values_mut() {
        if let Function::Graph(f) = function
            && !f.attrs.contains_key(OUTPUT_NAMES)
        {
            let names = output_names(f, results(&f.ret).len());
            let mut named = (**f).clone();
            let names = Attr::List(names.into_iter().map(Attr::Str).collect());
            named.attrs.insert(OUTPUT_NAMES.into(), names);
            *f = Arc::new(named);
        }
    }
    out
}

/// Names of the `count` results of a graph function: those of its attribute `output_names`, else
/// those of the returned variables, else `output`; each made different from those before it.
pub fn output_names(func: &GraphFunc, count: usize) -> Vec<Arc<str>> {
    let given: Vec<Arc<str>> = match func.attrs.get(OUTPUT_NAMES) {
        Some(Attr::List(names)) => names
            .iter()
            .map(|n| match n {
                Attr::Str(s) => s.clone(),
                _ => "output".into(),
            })
            .collect(),
        _ => results(&func.ret)
            .into_iter()
            .map(|r| match r {
                GraphExpr::Var(v) => v.name().clone(),
                _ => "output".into(),
            })
            .collect(),
    };
    let mut names = UniqueNames::default();
    (0..count).map(|k| names.take(given.get(k).map_or("output", |n| n))).collect()
}

/// Names that are all different: `base`, `base_1`, `base_2`, ...
#[derive(Default)]
pub(crate) struct UniqueNames {
    taken: HashSet<Arc<str>>,
    next: HashMap<Arc<str>, usize>,
}

impl UniqueNames {
    /// Says that a name is taken.
    pub(crate) fn reserve(&mut self, name: Arc<str>) {
        self.taken.insert(name);
    }

    /// A name that was not taken, and is now.
    pub(crate) fn take(&mut self, base: &str) -> Arc<str> {
        if !self.taken.contains(base) {
            let name: Arc<str> = base.into();
            self.taken.insert(name.clone());
            return name;
        }
        let next = self.next.entry(base.into()).or_insert(1);
        loop {
            let name: Arc<str> = format!("{base}_{next}").into();
            *next += 1;
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// Calls `f` for every variable that an expression reads.
pub(crate) fn needed(e: &GraphExpr, f: &mut dyn FnMut(&GraphVar)) {
    match e {
        GraphExpr::Var(v) => f(v),
        GraphExpr::Const(_) => {}
        GraphExpr::CallTir { args, .. } | GraphExpr::Call { args, .. } | GraphExpr::Tuple(args) => {
            args.iter().for_each(|a| needed(a, f));
        }
        GraphExpr::Item(of, _) => needed(of, f),
        GraphExpr::If(_) | GraphExpr::Loop(_) => {
            e.operands().into_iter().for_each(|e| needed(e, f));
            for body in e.bodies() {
                body.bindings().for_each(|b| needed(&b.value, f));
                needed(&body.ret, f);
            }
        }
    }
}

/// The values of a result in order: a tuple's items, or the one value.
pub fn results(ret: &GraphExpr) -> Vec<&GraphExpr> {
    match ret {
        GraphExpr::Tuple(items) => items.iter().flat_map(results).collect(),
        other => vec![other],
    }
}

fn drop_unused(bindings: Vec<Binding>, ret: &GraphExpr, kept: &HashSet<u64>) -> Vec<Binding> {
    let mut used: HashSet<u64> = kept.clone();
    needed(ret, &mut |v| {
        used.insert(v.id());
    });
    let mut out: Vec<Binding> = Vec::new();
    for b in bindings.into_iter().rev() {
        if used.contains(&b.var.id()) {
            needed(&b.value, &mut |v| {
                used.insert(v.id());
            });
            out.push(b);
        }
    }
    out.reverse();
    out
}

struct Normalize<'m> {
    module: &'m Module,
    /// What variables stand for: a variable, a constant of a binding that is kept, or a tuple.
    values: HashMap<u64, GraphExpr>,
    bindings: Vec<Binding>,
    /// Graph functions that are being expanded.
    calls: CallStack,
    depth: usize,
    span: Option<Span>,
    /// Calls that stay even if their results are not read: unknown operators outside of dataflow
    /// regions.
    kept: HashSet<u64>,
}

impl Normalize<'_> {
    fn body(&mut self, func: &GraphFunc) -> Result<GraphExpr> {
        for block in &func.blocks {
            for b in &block.bindings {
                self.span = b.span;
                // The variable of the binding stays the one that is bound, but each expansion of
                // a function binds variables of its own.
                let var = match self.calls.is_outermost() {
                    true => b.var.clone(),
                    false => GraphVar::new(b.var.name().clone(), b.var.ty().clone()),
                };
                if b.value.is_control() {
                    return Err(Error::unsupported("control flow inside of a piece of a graph")
                        .help("compile the module, or call the function from one without")
                        .at(b.span));
                }
                let value = match &b.value {
                    GraphExpr::Const(_) | GraphExpr::CallTir { .. } | GraphExpr::Call { .. } => {
                        self.call(&b.value, Some(var))?
                    }
                    GraphExpr::Item(of, k) => {
                        let of = self.value(of)?;
                        self.item(of, *k, Some(var))?
                    }
                    other => self.value(other)?,
                };
                if !block.dataflow
                    && matches!(b.value, GraphExpr::Call { .. })
                    && let GraphExpr::Var(v) = &value
                {
                    self.kept.insert(v.id());
                }
                self.values.insert(b.var.id(), value);
            }
        }
        self.span = func.span;
        self.value(&func.ret)
    }

    fn bind(&mut self, var: GraphVar, value: GraphExpr) -> GraphExpr {
        self.bindings.push(Binding { var: var.clone(), value, span: self.span });
        GraphExpr::Var(var)
    }

    /// A variable, a constant, or a tuple of such.
    fn value(&mut self, e: &GraphExpr) -> Result<GraphExpr> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::unsupported(format!(
                "graph expressions nested deeper than {MAX_DEPTH}"
            ))
            .at(self.span));
        }
        let value = match e {
            GraphExpr::Var(v) => self.values.get(&v.id()).cloned().unwrap_or_else(|| e.clone()),
            literal if literal.is_literal() => e.clone(),
            GraphExpr::Const(_) => e.clone(),
            GraphExpr::Tuple(items) => {
                GraphExpr::Tuple(items.iter().map(|i| self.value(i)).collect::<Result<_>>()?)
            }
            GraphExpr::Item(of, k) => {
                let of = self.value(of)?;
                self.item(of, *k, None)?
            }
            GraphExpr::CallTir { .. } | GraphExpr::Call { .. } => self.call(e, None)?,
            GraphExpr::If(_) | GraphExpr::Loop(_) => {
                return Err(Error::internal("control flow in an expression").at(self.span));
            }
        };
        self.depth -= 1;
        Ok(value)
    }

    fn item(&mut self, of: GraphExpr, k: usize, var: Option<GraphVar>) -> Result<GraphExpr> {
        let wrong = |n: usize| Error::malformed(format!("item {k} of a tuple of {n}"));
        match of {
            GraphExpr::Tuple(items) => {
                items.get(k).cloned().ok_or_else(|| wrong(items.len()).at(self.span))
            }
            GraphExpr::Var(v) => {
                let ty = match v.ty() {
                    GraphType::Tuple(types) => {
                        types.get(k).cloned().ok_or_else(|| wrong(types.len()).at(self.span))?
                    }
                    GraphType::Opaque(text) => GraphType::Opaque(text.clone()),
                    GraphType::Tensor(_) | GraphType::Shape(_) => {
                        let e = format!("`{}` is no tuple and has no items", v.name());
                        return Err(Error::malformed(e).at(self.span));
                    }
                };
                let var = var.unwrap_or_else(|| GraphVar::new(format!("{}_{k}", v.name()), ty));
                Ok(self.bind(var, GraphExpr::Item(Box::new(GraphExpr::Var(v)), k)))
            }
            _ => Err(Error::malformed("item of a value that is not a tuple").at(self.span)),
        }
    }

    /// Binds a constant or a call, to `var` where it has one; or expands a graph function.
    fn call(&mut self, e: &GraphExpr, var: Option<GraphVar>) -> Result<GraphExpr> {
        let args = |n: &mut Self, args: &[GraphExpr]| -> Result<Vec<GraphExpr>> {
            args.iter().map(|a| n.value(a)).collect()
        };
        match e {
            GraphExpr::CallTir { func, args: a, outs, scalars } => {
                let args = args(self, a)?;
                let var = var.unwrap_or_else(|| {
                    let mut types = outs.iter().cloned().map(GraphType::Tensor);
                    let ty = match (outs.len(), types.next()) {
                        (1, Some(one)) => one,
                        (_, first) => GraphType::Tuple(first.into_iter().chain(types).collect()),
                    };
                    GraphVar::new(func.clone(), ty)
                });
                let (func, outs) = (func.clone(), outs.clone());
                Ok(self
                    .bind(var, GraphExpr::CallTir { func, args, outs, scalars: scalars.clone() }))
            }
            GraphExpr::Call { op, args: a, attrs } => {
                let args = args(self, a)?;
                if let Some(name) = op.strip_prefix("cls.") {
                    return self.expand(name, args);
                }
                let ty = GraphType::Opaque(op.clone());
                let var = var.unwrap_or_else(|| GraphVar::new(op.clone(), ty));
                Ok(self.bind(var, GraphExpr::Call { op: op.clone(), args, attrs: attrs.clone() }))
            }
            GraphExpr::Const(_) => Ok(match var {
                Some(var) => self.bind(var, e.clone()),
                None => e.clone(),
            }),
            other => self.value(other),
        }
    }

    /// The result of a call of a graph function.
    fn expand(&mut self, name: &str, args: Vec<GraphExpr>) -> Result<GraphExpr> {
        let func = self.calls.enter(self.module, name, args.len(), self.span)?;
        let values = func.params.iter().map(GraphVar::id).zip(args).collect();
        let outer = std::mem::replace(&mut self.values, values);
        let (span, depth) = (self.span, std::mem::take(&mut self.depth));
        let ret = self.body(&func)?;
        self.values = outer;
        self.calls.leave();
        (self.span, self.depth) = (span, depth);
        Ok(ret)
    }

    /// The result of a function, with variables of several values taken apart.
    fn spread(&mut self, e: GraphExpr) -> Result<GraphExpr> {
        Ok(match e {
            GraphExpr::Tuple(items) => {
                GraphExpr::Tuple(items.into_iter().map(|i| self.spread(i)).collect::<Result<_>>()?)
            }
            GraphExpr::Var(v) => match v.ty() {
                GraphType::Tuple(types) => {
                    let of = GraphExpr::Var(v.clone());
                    let items = (0..types.len()).map(|k| self.item(of.clone(), k, None));
                    GraphExpr::Tuple(items.collect::<Result<_>>()?)
                }
                _ => GraphExpr::Var(v),
            },
            other => other,
        })
    }
}
