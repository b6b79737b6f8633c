//! How passes make functions of stages, and what they ask of them.

use std::sync::Arc;

use tilewright_analysis::Stage;
use tilewright_ir::visit::Subst;
use tilewright_ir::{
    Buffer, DType, Dim, Expr, ExprKind, Fold, IterKind, Param, Stmt, TensorFunc, TensorType, Var,
    dim,
};

use crate::call_sizes::outside;

/// An iteration variable of a stage, with its extent and kind.
pub type Iter = (Var, Dim, IterKind);

/// Variables for the cells of a tensor of a shape: `prefix`, and the number of the axis.
pub fn cells(prefix: &str, shape: &[Dim]) -> Vec<Iter> {
    shape
        .iter()
        .enumerate()
        .map(|(k, d)| (Var::index(format!("{prefix}{k}")), d.inside(), IterKind::Spatial))
        .collect()
}

/// The cell that such variables name.
pub fn at(iters: &[Iter]) -> Vec<Expr> {
    iters.iter().map(|i| i.0.expr()).collect()
}

/// A buffer of a shape, which may be one of a graph.
pub fn buffer(name: impl Into<Arc<str>>, shape: &[Dim], dtype: DType) -> Buffer {
    Buffer::new(name, shape.iter().map(|d| d.expr()).collect(), dtype)
}

/// A function of one argument and one result, which one stage computes.
pub fn one_stage(
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
pub fn stored(of: &Stage, to: &Buffer, value: Expr, init: Option<Expr>) -> Stage {
    let iters: Vec<Iter> = of.dims().map(|(v, n, kind)| (v.clone(), n, kind)).collect();
    Stage::build(of.name().clone(), &iters, to, of.indices.clone(), value, init)
}

/// A buffer, and the indices at which it is accessed.
pub type Access = (Buffer, Vec<Expr>);

/// What an expression loads, if it is a load.
pub fn load(e: &Expr) -> Option<(&Buffer, &[Expr])> {
    match e.kind() {
        ExprKind::Load(b, at) => Some((b, at)),
        _ => None,
    }
}

/// Every access of a stage: the store, then the loads.
pub fn accesses(stage: &Stage) -> Vec<Access> {
    let mut all = vec![(stage.buffer.clone(), stage.indices.clone())];
    all.extend(stage.loads());
    all
}

/// Steps to the next place of some extents, the last one fastest; after the last place comes the first.
pub fn advance(at: &mut [usize], extents: &[usize]) {
    for (i, n) in at.iter_mut().zip(extents).rev() {
        *i += 1;
        if *i < *n {
            return;
        }
        *i = 0;
    }
}

/// The place of a buffer among the parameters of a function.
pub fn param(func: &TensorFunc, b: &Buffer) -> Option<usize> {
    func.params.iter().position(|p| p.buffer() == Some(b))
}

/// The first stage that sums up products of elements from zero on, and the loads of both factors.
pub fn sum_of_products(stages: &[Stage]) -> Option<(usize, [Access; 2])> {
    stages.iter().enumerate().find_map(|(k, s)| {
        let zero = s.init.as_ref()?.as_float() == Some(0.0);
        let [a, b] = s.factors().filter(|_| zero)?;
        let [a, b] = [load(&a)?, load(&b)?].map(|(b, at)| (b.clone(), at.to_vec()));
        Some((k, [a, b]))
    })
}

/// A stage with variables of its own.
pub fn fresh(stage: &Stage) -> Stmt {
    Subst::refresh().stmt(&stage.stmt)
}

/// A function of some stages whose last parameter is its result, with the sizes that another takes.
pub fn function(
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

/// The arguments of a function that are read, and their buffers; its last parameter is its result.
pub fn kept(
    func: &TensorFunc,
    read: impl Fn(&Buffer) -> bool,
) -> Option<(Vec<usize>, Vec<Buffer>)> {
    let inputs = func.buffers().count().checked_sub(1)?;
    let given = func.params[..inputs].iter().enumerate();
    let read = given.filter_map(|(k, p)| Some((k, p.buffer().filter(|b| read(b))?.clone())));
    Some(read.unzip())
}

/// The type of what a function makes.
pub fn result_type(func: &TensorFunc) -> Option<TensorType> {
    let out = func.buffers().last()?;
    Some(outside(&dim::of_shape(&out.shape)?, out.dtype()))
}
