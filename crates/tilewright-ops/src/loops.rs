//! Functions with loops of their own, for what is no list of stages: a block for each cell of the result.

use tilewright_ir::visit::{Subst, fold_func};
use tilewright_ir::well_formed::check_tensor;
use tilewright_ir::{
    Block, Buffer, DType, Dim, Expr, Intrin, IterKind, IterVar, Param, Range, Result, Stmt,
    TensorFunc, Var, dim,
};

/// An index.
pub(crate) fn number(n: usize) -> Expr {
    Expr::int(n as i64, DType::I32)
}

/// A call of an intrinsic of one operand.
pub(crate) fn call(f: Intrin, e: Expr) -> Expr {
    Expr::intrin(f, vec![e])
}

/// Names for values, in order, around what sees them.
pub(crate) struct Lets(pub(crate) Vec<(Var, Expr)>);

impl Lets {
    /// Gives a value a name.
    pub(crate) fn add(&mut self, name: &str, value: Expr) -> Expr {
        let var = Var::new(name, value.dtype());
        let named = var.expr();
        self.0.push((var, value));
        named
    }

    /// A statement that sees all names.
    pub(crate) fn around(self, body: Stmt) -> Stmt {
        self.0.into_iter().rev().fold(body, |s, (var, value)| Stmt::let_in(&var, value, s))
    }
}

/// Parameters for the open sizes of buffers that are no extent of a parameter by themselves.
pub(crate) fn size_params(params: &[&Buffer], allocs: &[Buffer]) -> Vec<Param> {
    let sizes = |b: &Buffer| b.shape.iter().filter_map(Dim::of).collect::<Vec<_>>();
    let extents: Vec<Dim> = params.iter().flat_map(|b| sizes(b)).collect();
    let mut open: Vec<Var> =
        extents.iter().copied().chain(allocs.iter().flat_map(sizes)).flat_map(Dim::vars).collect();
    open.sort();
    open.dedup();
    open.retain(|v| !extents.contains(&Dim::open(v)));
    open.iter().map(|v| Param::Scalar(dim::narrow(v))).collect()
}

/// A block for each cell of the result.
pub(crate) fn cells(
    name: &str,
    params: &[&Buffer],
    shape: &[Dim],
    allocs: Vec<Buffer>,
    body: impl FnOnce(&[Expr]) -> Stmt,
) -> Result<TensorFunc> {
    let inner: Vec<Var> = (0..shape.len()).map(|a| Var::index(format!("v{a}"))).collect();
    let outer: Vec<Var> = (0..shape.len()).map(|a| Var::index(format!("i{a}"))).collect();
    let at: Vec<Expr> = inner.iter().map(Var::expr).collect();
    let mut block = Block::new(name, body(&at));
    block.allocs = allocs;
    block.iters = inner
        .iter()
        .zip(shape)
        .map(|(v, &d)| IterVar {
            var: v.clone(),
            domain: Range::upto(d.expr()),
            kind: IterKind::Spatial,
        })
        .collect();
    let body = Stmt::block(outer.iter().map(Var::expr).collect(), Expr::bool(true), block);
    let loops = outer.iter().zip(shape).rev();
    let body = loops.fold(body, |s, (v, &d)| Stmt::serial(v, d.expr(), s));
    let sizes = size_params(params, &[]);
    let params = params.iter().map(|b| Param::tensor(b)).chain(sizes).collect();
    let func = TensorFunc::new(params, Stmt::nop()).with_root(Vec::new(), body);
    // Several loops may have been written with one variable.
    let func = fold_func(&mut Subst::refresh(), &func);
    check_tensor(name, &func)?;
    Ok(func)
}
