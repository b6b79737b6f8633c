//! The tensor functions of a module while graph functions are rewritten: new ones join under free
//! names, equal ones are shared, and those that are no longer called are removed.

use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::equal::{Equality, fingerprint, tensor_funcs};
use tilewright_ir::{
    Binding, Error, Function, GraphExpr, GraphFunc, GraphType, GraphVar, Module, Result, Span,
    TensorFunc, TensorType,
};
use tilewright_transform::names::UniqueNames;

use crate::call_sizes::call;
use crate::normal::changed_graphs;

/// A result whose error points into the text of a module.
pub fn located<T>(module: &Module, result: Result<T>) -> Result<T> {
    result.map_err(|e| module.source.iter().fold(e, |e, source| e.in_source(source)))
}

/// The module with what `change` makes of its tensor functions.
pub fn each_tensor(
    module: &Module,
    mut change: impl FnMut(&Arc<str>, &mut Arc<TensorFunc>),
) -> Module {
    let mut out = module.clone();
    for (name, function) in &mut out.functions {
        if let Function::Tensor(f) = function {
            change(name, f);
        }
    }
    out
}

/// The module with what `change` makes of its dataflow graph functions, which are given to it in normal
/// form ([`changed_graphs`]), and with the functions that it adds and calls.
///
/// # Errors
/// Those of [`normalize`](crate::normal::normalize), and of `change`.
pub fn rewritten<'m>(
    module: &'m Module,
    mut change: impl FnMut(&mut Functions<'m>, &GraphFunc) -> Result<GraphFunc>,
) -> Result<Module> {
    let mut functions = Functions::new(module);
    let graphs = changed_graphs(module, |_, normal| change(&mut functions, normal))?;
    Ok(functions.finish(&graphs, |_, f| f.clone()))
}

/// The tensor functions of a module and those that a pass adds, equal ones once.
pub struct Functions<'m> {
    module: &'m Module,
    names: UniqueNames,
    added: Vec<(Arc<str>, Arc<TensorFunc>)>,
    /// Positions of added functions, by fingerprint.
    by_print: HashMap<u64, Vec<usize>>,
}

impl<'m> Functions<'m> {
    /// Those of a module.
    pub fn new(module: &'m Module) -> Self {
        let mut names = UniqueNames::default();
        module.functions.keys().for_each(|n| names.reserve(n.clone()));
        Functions { module, names, added: Vec::new(), by_print: HashMap::default() }
    }

    /// The tensor function of this name, added or not.
    pub fn get(&self, name: &str) -> Option<&Arc<TensorFunc>> {
        match self.module.functions.get(name) {
            Some(Function::Tensor(f)) => Some(f),
            _ => self.added.iter().find(|(n, _)| **n == *name).map(|(_, f)| f),
        }
    }

    /// Adds a function, or finds an equal one that was added before and takes the same sizes: a call passes
    /// those that the function's own variables stand for.
    pub fn add(&mut self, func: TensorFunc, name: &str) -> Arc<str> {
        let print = fingerprint(&func);
        for at in self.by_print.get(&print).into_iter().flatten() {
            let (name, old) = &self.added[*at];
            if old.scalars().eq(func.scalars())
                && tensor_funcs(old, &func, &Equality::loose()).is_ok()
            {
                return name.clone();
            }
        }
        let name = self.names.take(name);
        self.by_print.entry(print).or_default().push(self.added.len());
        self.added.push((name.clone(), Arc::new(func)));
        name
    }

    /// The call of a function, which takes no scalars but sizes of the graph.
    ///
    /// # Errors
    /// `Internal` for a function that is not there, or takes others.
    pub fn call(
        &self,
        func: Arc<str>,
        args: Vec<GraphExpr>,
        outs: Vec<TensorType>,
    ) -> Result<GraphExpr> {
        let found = self.get(&func).ok_or_else(|| Error::internal("a function is gone"))?;
        call(found, func, args, outs)
    }

    /// The binding of a variable to the call of a function that gives what its type says.
    ///
    /// # Errors
    /// As [`Functions::call`].
    pub fn called(
        &self,
        func: Arc<str>,
        args: Vec<GraphExpr>,
        var: &GraphVar,
        span: Option<Span>,
    ) -> Result<Binding> {
        let types = match var.ty() {
            GraphType::Tuple(types) => &types[..],
            one => std::slice::from_ref(one),
        };
        let outs = types.iter().filter_map(|ty| ty.as_tensor().cloned()).collect();
        Ok(Binding { var: var.clone(), value: self.call(func, args, outs)?, span })
    }

    /// The same for a function that is added.
    ///
    /// # Errors
    /// As [`Functions::call`].
    pub fn made(
        &mut self,
        (func, name): (TensorFunc, &str),
        args: Vec<GraphExpr>,
        var: &GraphVar,
        span: Option<Span>,
    ) -> Result<Binding> {
        let func = self.add(func, name);
        self.called(func, args, var, span)
    }

    /// Adds the functions to a module.
    pub fn join(self, module: &mut Module) {
        self.added.into_iter().for_each(|(name, f)| {
            module.functions.insert(name, Function::Tensor(f));
        });
    }

    /// The module with some graph functions rewritten, and those tensor functions that are called or
    /// were not called before either, each as `keep` gives it.
    pub fn finish(
        self,
        graphs: &HashMap<Arc<str>, GraphFunc>,
        keep: impl Fn(&Arc<str>, &Arc<TensorFunc>) -> Arc<TensorFunc>,
    ) -> Module {
        let mut called: HashMap<Arc<str>, bool> = HashMap::default();

        for (name, g) in self.module.graphs() {
            for (g, now) in [(&**g, false), (graphs.get(name).unwrap_or(g), true)] {
                g.for_each_expr(&mut |e| {
                    if let GraphExpr::CallTir { func, .. } = e {
                        *called.entry(func.clone()).or_default() |= now;
                    }
                });
            }
        }
        let mut out = Module { functions: Default::default(), ..self.module.clone() };
        for (name, func) in &self.module.functions {
            match func {
                Function::Graph(g) => {
                    let new = graphs.get(name).cloned().map_or(g.clone(), Arc::new);
                    out.functions.insert(name.clone(), Function::Graph(new));
                }
                Function::Tensor(f) if called.get(name) != Some(&false) => {
                    out.functions.insert(name.clone(), Function::Tensor(keep(name, f)));
                }
                Function::Tensor(_) => {}
            }
        }
        for (name, func) in self.added {
            if called.get(&name) == Some(&true) {
                out.functions.insert(name, Function::Tensor(func));
            }
        }
        out
    }
}
