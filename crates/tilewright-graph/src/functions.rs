//! The tensor functions of a module while graph functions are rewritten: new ones join under free
//! names, equal ones are shared, and those that are no longer called are removed. And how passes make
//! functions of stages.

use std::collections::HashMap;
use std::sync::Arc;

use tilewright_analysis::Stage;
use tilewright_ir::equal::{Equality, fingerprint, tensor_funcs};
use tilewright_ir::visit::Subst;
use tilewright_ir::{
    Buffer, Error, Fold, Function, GraphExpr, GraphFunc, Module, Param, Result, Stmt, TensorFunc,
    TensorType, dim,
};
use tilewright_schedule::names::UniqueNames;

use crate::call_sizes::outside;

/// A stage with variables of its own.
pub(crate) fn fresh(stage: &Stage) -> Stmt {
    Subst::refresh().stmt(&stage.stmt)
}

/// A function of some stages whose last parameter is its result, with the sizes that another takes.
pub(crate) fn function(
    of: &TensorFunc,
    params: &[Buffer],
    allocs: Vec<Buffer>,
    body: Vec<Stmt>,
) -> TensorFunc {
    let params = params.iter().map(Param::tensor).collect();
    let mut new = TensorFunc::new(params, Stmt::nop()).with_root(allocs, Stmt::seq(body));
    new.pass_sizes(of.shape_vars().into_iter().chain(of.scalars().cloned()));
    new
}

/// The type of what a function makes.
pub(crate) fn result_type(func: &TensorFunc) -> Option<TensorType> {
    let out = func.buffers().last()?;
    Some(outside(&dim::of_shape(&out.shape)?, out.dtype()))
}

pub(crate) struct Functions<'m> {
    module: &'m Module,
    names: UniqueNames,
    added: Vec<(Arc<str>, Arc<TensorFunc>)>,
    /// Positions of added functions, by fingerprint.
    by_print: HashMap<u64, Vec<usize>>,
}

impl<'m> Functions<'m> {
    pub fn new(module: &'m Module) -> Self {
        let mut names = UniqueNames::default();
        module.functions.keys().for_each(|n| names.reserve(n.clone()));
        Functions { module, names, added: Vec::new(), by_print: HashMap::new() }
    }

    /// The tensor function of this name, added or not.
    pub fn get(&self, name: &str) -> Option<&Arc<TensorFunc>> {
        match self.module.functions.get(name) {
            Some(Function::Tensor(f)) => Some(f),
            _ => self.added.iter().find(|(n, _)| **n == *name).map(|(_, f)| f),
        }
    }

    /// Adds a function, or finds an equal one that was added before.
    pub fn add(&mut self, func: TensorFunc, name: &str) -> Arc<str> {
        let print = fingerprint(&func);
        for at in self.by_print.get(&print).into_iter().flatten() {
            let (name, old) = &self.added[*at];
            if tensor_funcs(old, &func, &Equality::loose()).is_ok() {
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
        let scalars = found.size_arguments().map_err(|v| {
            Error::internal(format!("`{}` of `{func}` is no size of the graph", v.name()))
        })?;
        Ok(GraphExpr::CallTir { func, args, outs, scalars })
    }

    /// The module with some graph functions rewritten, and those tensor functions that are called or
    /// were not called before either, each as `keep` gives it.
    pub fn finish(
        self,
        graphs: &HashMap<Arc<str>, GraphFunc>,
        keep: impl Fn(&Arc<str>, &Arc<TensorFunc>) -> Arc<TensorFunc>,
    ) -> Module {
        let mut called: HashMap<Arc<str>, bool> = HashMap::new();
        let mut note = |func: &GraphFunc, now: bool| {
            func.for_each_expr(&mut |e| {
                if let GraphExpr::CallTir { func, .. } = e {
                    *called.entry(func.clone()).or_default() |= now;
                }
            });
        };
        for (name, g) in self.module.graphs() {
            note(g, false);
            note(graphs.get(name).unwrap_or(g), true);
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
