//! The tensor functions of a module while graph functions are rewritten: new ones join under free
//! names, equal ones are shared, and those that are no longer called are removed. And how passes make
//! functions of stages.

use std::collections::HashMap;
use std::sync::Arc;

use tilewright_analysis::Stage;
use tilewright_ir::equal::{Equality, fingerprint, tensor_funcs};
use tilewright_ir::visit::Subst;
use tilewright_ir::{
    BinOp, Binding, Buffer, DType, Dim, Error, Expr, ExprKind, Fold, Function, GraphExpr,
    GraphFunc, GraphVar, IterKind, Module, Param, Result, Span, Stmt, TensorFunc, TensorType, Var,
    dim,
};
use tilewright_schedule::names::UniqueNames;

use crate::call_sizes::outside;

/// An iteration variable of a stage, with its extent and kind.
pub(crate) type Iter = (Var, Dim, IterKind);

/// Variables for the cells of a tensor of a shape: `prefix`, and the number of the axis.
pub(crate) fn cells(prefix: &str, shape: &[Dim]) -> Vec<Iter> {
    let iter =
        |(k, d): (usize, &Dim)| (Var::index(format!("{prefix}{k}")), d.inside(), IterKind::Spatial);
    shape.iter().enumerate().map(iter).collect()
}

/// The cell that such variables name.
pub(crate) fn at(iters: &[Iter]) -> Vec<Expr> {
    iters.iter().map(|i| i.0.expr()).collect()
}

/// A buffer of a shape, which may be one of a graph.
pub(crate) fn buffer(name: impl Into<Arc<str>>, shape: &[Dim], dtype: DType) -> Buffer {
    Buffer::new(name, shape.iter().map(|d| d.expr()).collect(), dtype)
}

/// A function of one argument and one result, which one stage computes.
pub(crate) fn one_stage(
    name: &str,
    iters: &[Iter],
    [from, to]: [&Buffer; 2],
    indices: Vec<Expr>,
    value: Expr,
) -> TensorFunc {
    let stage = Stage::build(name, iters, to, indices, value, None);
    let mut func = TensorFunc::new([from, to].map(Param::tensor).to_vec(), stage.stmt);
    func.pass_sizes(func.shape_vars());
    func
}

/// A stage that stores another value at the same indices of another buffer.
pub(crate) fn stored(of: &Stage, to: &Buffer, value: Expr, init: Option<Expr>) -> Stage {
    let iters: Vec<Iter> = of.dims().map(|(v, n, kind)| (v.clone(), n, kind)).collect();
    Stage::build(of.name().clone(), &iters, to, of.indices.clone(), value, init)
}

/// What an expression loads, if it is a load.
pub(crate) fn load(e: &Expr) -> Option<(&Buffer, &[Expr])> {
    match e.kind() {
        ExprKind::Load(b, at) => Some((b, at)),
        _ => None,
    }
}

/// Every access of a stage: the store, then the loads.
pub(crate) fn accesses(stage: &Stage) -> Vec<(Buffer, Vec<Expr>)> {
    let mut all = vec![(stage.buffer.clone(), stage.indices.clone())];
    all.extend(stage.loads());
    all
}

/// Steps to the next place of some extents, the last one fastest; after the last place comes the first.
pub(crate) fn advance(at: &mut [usize], extents: &[usize]) {
    for (i, n) in at.iter_mut().zip(extents).rev() {
        *i += 1;
        if *i < *n {
            return;
        }
        *i = 0;
    }
}

/// The place of a buffer among the parameters of a function.
pub(crate) fn param(func: &TensorFunc, b: &Buffer) -> Option<usize> {
    func.params.iter().position(|p| p.buffer() == Some(b))
}

/// The first stage that sums up products of elements from zero on, and the loads of both factors.
pub(crate) fn sum_of_products(stages: &[Stage]) -> Option<(usize, [(Buffer, Vec<Expr>); 2])> {
    stages.iter().enumerate().find_map(|(k, s)| {
        let zero = s.init.as_ref()?.as_float() == Some(0.0);
        let sum = s.reduction().filter(|r| zero && r.op == BinOp::Add)?;
        let ExprKind::Binary(BinOp::Mul, a, b) = sum.value.kind() else { return None };
        let [a, b] = [load(a)?, load(b)?].map(|(b, at)| (b.clone(), at.to_vec()));
        Some((k, [a, b]))
    })
}

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

    /// The binding of a variable to the call of a function that gives its one value.
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
        let outs = var.ty().as_tensor().cloned().into_iter().collect();
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
