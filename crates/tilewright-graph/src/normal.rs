//! The normal form of a graph function, which all passes here start from.
//!
//! One block, a dataflow block unless there are operators that may have effects; every binding is a
//! constant, one item of a call's several results, or a call whose arguments are variables and
//! literals (constants, shapes, numbers; see [`GraphExpr::is_literal`]) or tuples of such; no
//! variable is another name of a value; calls of other graph functions are expanded; what is
//! not used is gone. The result is a variable, a literal, or a tuple of them.

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::{
    Attr, Binding, BindingBlock, Error, Function, GraphExpr, GraphFunc, GraphType, GraphVar,
    Module, Result, Tensor, equal, graph,
};
use tilewright_transform::names::UniqueNames;

use crate::calls::{Env, Resolve, tuple_item};

/// The normal form of a graph function of a module.
///
/// # Errors
/// `Unsupported` for graph functions that call themselves, `Malformed` for an item of what is not
/// a tuple, or a wrong number of arguments.
pub fn normalize(module: &Module, name: &str, func: &GraphFunc) -> Result<GraphFunc> {
    let mut n = Normalize {
        env: Env::new(module, name, None),
        bindings: Vec::new(),
        kept: HashSet::default(),
    };
    let ret = n.body(func)?;
    // Variables of several values are taken apart.
    let ret = map_results(&ret, &mut |e| match e.ty() {
        GraphType::Tuple(types) => {
            let items = (0..types.len()).map(|k| n.item(e.clone(), k));
            Ok(GraphExpr::Tuple(items.collect::<Result<_>>()?))
        }
        _ => Ok(e.clone()),
    })?;
    let mut used = needed_ids([&ret]);
    used.extend(&n.kept);
    let bindings = drop_unused(n.bindings, used);
    let mut new =
        GraphFunc { blocks: block(n.kept.is_empty(), bindings, &ret), ret, ..func.clone() };
    set_output_names(&mut new, func);
    Ok(new)
}

/// The graph function with other bindings, which are one block as in the normal form, and another result.
pub fn one_block(func: &GraphFunc, bindings: Vec<Binding>, ret: GraphExpr) -> GraphFunc {
    let dataflow = func.blocks.iter().all(|b| b.dataflow);
    GraphFunc { blocks: block(dataflow, bindings, &ret), ret, ..func.clone() }
}

/// A graph function in normal form with what `of` pushes in the place of each binding.
pub fn each_binding(
    func: &GraphFunc,
    mut of: impl FnMut(&Binding, &mut Vec<Binding>) -> Result<()>,
) -> Result<GraphFunc> {
    let mut bindings = Vec::new();
    for b in func.bindings() {
        of(b, &mut bindings)?;
    }
    Ok(one_block(func, bindings, func.ret.clone()))
}

/// A block of some bindings, none where there are none, before a result.
fn block(dataflow: bool, bindings: Vec<Binding>, ret: &GraphExpr) -> Vec<BindingBlock> {
    let bound: HashSet<u64> = bindings.iter().map(|b| b.var.id()).collect();
    let mut outputs: Vec<GraphVar> = Vec::new();
    let mut seen: HashSet<u64> = HashSet::default();
    needed(ret, &mut |v| {
        if dataflow && bound.contains(&v.id()) && seen.insert(v.id()) {
            outputs.push(v.clone());
        }
    });
    if bindings.is_empty() {
        Vec::new()
    } else {
        vec![BindingBlock { dataflow, bindings, outputs }]
    }
}

/// The dataflow graph functions of a module in which `change` changes something, or the normal form has other
/// bindings, in normal form; `change` is given them in that. The others stay as they are written, and so
/// do those with control flow, whose pieces ([`control`](crate::control)) are such functions.
/// One without names for its outputs gets none: see [`name_outputs`].
///
/// # Errors
/// Those of [`normalize`], and of `change`.
pub fn changed_graphs(
    module: &Module,
    mut change: impl FnMut(&Arc<str>, &GraphFunc) -> Result<GraphFunc>,
) -> Result<HashMap<Arc<str>, GraphFunc>> {
    let mut graphs = HashMap::default();
    for (name, func) in dataflow_graphs(module) {
        let normal = normalize(module, name, func)?;
        let mut new = normalize(module, name, &change(name, &normal)?)?;
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
pub fn dataflow_graphs(module: &Module) -> impl Iterator<Item = (&Arc<str>, &Arc<GraphFunc>)> {
    module.graphs().filter(|(name, _)| !module.has_control(name))
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
            let old = f.clone();
            set_output_names(Arc::make_mut(f), &old);
        }
    }
    out
}

/// Gives the outputs of a graph function the names that those of another one have.
fn set_output_names(func: &mut GraphFunc, of: &GraphFunc) {
    let names = output_names(of, results(&func.ret).len());
    let names = Attr::List(names.into_iter().map(Attr::Str).collect());
    func.attrs.insert(OUTPUT_NAMES.into(), names);
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

/// The variable that an expression is.
pub fn var(e: &GraphExpr) -> Option<&GraphVar> {
    match e {
        GraphExpr::Var(v) => Some(v),
        _ => None,
    }
}

/// Calls `f` for every variable that an expression reads.
pub fn needed(e: &GraphExpr, f: &mut dyn FnMut(&GraphVar)) {
    e.for_each(&mut |e| {
        if let GraphExpr::Var(v) = e {
            f(v);
        }
    });
}

/// The variables that expressions read, by their ids.
pub fn needed_ids<'e>(all: impl IntoIterator<Item = &'e GraphExpr>) -> HashSet<u64> {
    let mut ids = HashSet::default();
    for e in all {
        needed(e, &mut |v| ids.extend([v.id()]));
    }
    ids
}

/// The tensors that variables of a graph function are bound to.
#[derive(Default)]
pub struct Constants(HashMap<u64, Tensor>);

impl Constants {
    /// Those of a graph function in normal form.
    pub fn collect(func: &GraphFunc) -> Constants {
        Constants(
            func.bindings()
                .filter_map(|b| match &b.value {
                    GraphExpr::Const(t) => Some((b.var.id(), t.clone())),
                    _ => None,
                })
                .collect(),
        )
    }

    /// The tensor that an argument is.
    pub fn get<'a>(&'a self, e: &'a GraphExpr) -> Option<&'a Tensor> {
        match e {
            GraphExpr::Const(t) => Some(t),
            _ => self.0.get(&var(e)?.id()),
        }
    }

    /// The bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.0.values().map(|t| t.byte_len() as u64).sum()
    }
}

/// A result with another value in the place of each.
pub fn map_results(
    ret: &GraphExpr,
    of: &mut dyn FnMut(&GraphExpr) -> Result<GraphExpr>,
) -> Result<GraphExpr> {
    match ret {
        GraphExpr::Tuple(items) => {
            let items = items.iter().map(|e| map_results(e, of)).collect::<Result<_>>()?;
            Ok(GraphExpr::Tuple(items))
        }
        one => of(one),
    }
}

/// The values of a result in order: a tuple's items, or the one value.
pub fn results(ret: &GraphExpr) -> Vec<&GraphExpr> {
    match ret {
        GraphExpr::Tuple(items) => items.iter().flat_map(results).collect(),
        other => vec![other],
    }
}

/// The bindings without those that none of some values needs.
pub fn drop_unused(bindings: Vec<Binding>, mut used: HashSet<u64>) -> Vec<Binding> {
    let mut out: Vec<Binding> = Vec::new();
    for b in bindings.into_iter().rev() {
        if used.contains(&b.var.id()) {
            used.extend(needed_ids([&b.value]));
            out.push(b);
        }
    }
    out.reverse();
    out
}

struct Normalize<'m> {
    env: Env<'m>,
    bindings: Vec<Binding>,
    /// Calls that stay even if their results are not read: unknown operators outside of dataflow
    /// regions.
    kept: HashSet<u64>,
}

impl<'m> Resolve<'m> for Normalize<'m> {
    fn env(&mut self) -> &mut Env<'m> {
        &mut self.env
    }

    fn item(&mut self, of: GraphExpr, k: usize) -> Result<GraphExpr> {
        self.bound_item(of, k, None)
    }

    fn call(&mut self, e: &GraphExpr) -> Result<GraphExpr> {
        if e.is_literal() { Ok(e.clone()) } else { self.bind_value(e, None) }
    }

    fn body(&mut self, func: &GraphFunc) -> Result<GraphExpr> {
        for block in &func.blocks {
            for b in &block.bindings {
                self.env.span = b.span;
                // The variable of the binding stays the one that is bound, but each expansion of
                // a function binds variables of its own.
                let var = if self.env.is_outermost() {
                    b.var.clone()
                } else {
                    GraphVar::new(b.var.name().clone(), b.var.ty().clone())
                };
                if b.value.is_control() {
                    return Err(Error::unsupported("control flow inside of a piece of a graph")
                        .help("compile the module, or call the function from one without")
                        .at(b.span));
                }
                let value = match &b.value {
                    GraphExpr::Const(_) | GraphExpr::CallTir { .. } | GraphExpr::Call { .. } => {
                        self.bind_value(&b.value, Some(var))?
                    }
                    GraphExpr::Item(of, k) => {
                        let of = self.value(of)?;
                        self.bound_item(of, *k, Some(var)).map_err(|e| e.at(b.span))?
                    }
                    other => self.value(other)?,
                };
                if !block.dataflow
                    && matches!(b.value, GraphExpr::Call { .. })
                    && let GraphExpr::Var(v) = &value
                {
                    self.kept.insert(v.id());
                }
                self.env.values.insert(b.var.id(), value);
            }
        }
        self.env.span = func.span;
        self.value(&func.ret)
    }
}

impl Normalize<'_> {
    fn bind(&mut self, var: GraphVar, value: GraphExpr) -> GraphExpr {
        self.bindings.push(Binding { var: var.clone(), value, span: self.env.span });
        GraphExpr::Var(var)
    }

    /// An item of a value, bound to `var` where it has one.
    fn bound_item(&mut self, of: GraphExpr, k: usize, var: Option<GraphVar>) -> Result<GraphExpr> {
        match of {
            GraphExpr::Tuple(items) => tuple_item(&items, k),
            GraphExpr::Var(v) => {
                let ty = match v.ty() {
                    GraphType::Tuple(types) => tuple_item(types, k)?,
                    GraphType::Opaque(text) => GraphType::Opaque(text.clone()),
                    GraphType::Tensor(_) | GraphType::Shape(_) => {
                        let e = format!("`{}` is no tuple and has no items", v.name());
                        return Err(Error::malformed(e));
                    }
                };
                let var = var.unwrap_or_else(|| GraphVar::new(format!("{}_{k}", v.name()), ty));
                Ok(self.bind(var, GraphExpr::Item(Box::new(GraphExpr::Var(v)), k)))
            }
            _ => Err(Error::malformed("item of a value that is not a tuple")),
        }
    }

    /// Binds a constant or a call, to `var` where it has one; or expands a graph function.
    fn bind_value(&mut self, e: &GraphExpr, var: Option<GraphVar>) -> Result<GraphExpr> {
        match e {
            GraphExpr::CallTir { func, args, outs, scalars } => {
                let args = self.values(args)?;
                let var = var.unwrap_or_else(|| GraphVar::new(func.clone(), e.ty()));
                let (func, outs) = (func.clone(), outs.clone());
                Ok(self
                    .bind(var, GraphExpr::CallTir { func, args, outs, scalars: scalars.clone() }))
            }
            GraphExpr::Call { op, args, attrs } => {
                let args = self.values(args)?;
                if let Some(name) = graph::callee(op) {
                    return self.expand(name, args, |_, _, _| {});
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
}
