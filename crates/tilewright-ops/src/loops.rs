//! Functions with loops of their own, for what is no list of stages: a block for each cell of the result.

use tilewright_ir::visit::{Subst, fold_func};
use tilewright_ir::well_formed::check_tensor;
use tilewright_ir::{
    Block, Buffer, DType, Dim, Expr, IterVar, Param, Range, Result, Stmt, TensorFunc, Var, dim,
};

use crate::te::{self, Tensor};

/// A loop over a size.
pub(crate) fn each(name: &str, extent: impl Into<Dim>, body: impl FnOnce(&Expr) -> Stmt) -> Stmt {
    let var = Var::index(name);
    let body = body(&var.expr());
    Stmt::serial(&var, extent.into().expr(), body)
}

/// A statement that sees a value under a name.
pub(crate) fn with(name: &str, value: Expr, body: impl FnOnce(&Expr) -> Stmt) -> Stmt {
    let var = Var::new(name, value.dtype());
    let body = body(&var.expr());
    Stmt::let_in(&var, value, body)
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

/// A buffer of one cell.
pub(crate) fn one_cell(name: &str, dtype: DType) -> Buffer {
    Buffer::with_extents(name, &[1], dtype)
}

/// What a cell holds.
pub(crate) fn load(buffer: &Buffer, at: &[&Expr]) -> Expr {
    Expr::load(buffer, at.iter().map(|e| (*e).clone()).collect())
}

/// Puts a value into a cell.
pub(crate) fn store(buffer: &Buffer, at: &[&Expr], value: Expr) -> Stmt {
    Stmt::store(buffer, at.iter().map(|e| (*e).clone()).collect(), value)
}

/// What the one cell of a buffer holds.
pub(crate) fn get(cell: &Buffer) -> Expr {
    Expr::load(cell, vec![Expr::i32(0)])
}

/// Stores into the one cell of a buffer.
pub(crate) fn set(cell: &Buffer, value: Expr) -> Stmt {
    Stmt::store(cell, vec![Expr::i32(0)], value)
}

/// The buffers of tensors that functions can have.
pub(crate) fn buffers<const N: usize>(tensors: [Tensor; N]) -> Result<[Buffer; N]> {
    tensors.iter().try_for_each(te::check_type)?;
    Ok(tensors.map(|t| t.buffer().clone()))
}

/// A function of buffers with a body of its own. Sizes that no extent of a parameter says are numbers
/// behind them.
pub(crate) fn function(
    name: &str,
    params: &[&Buffer],
    sizes: impl IntoIterator<Item = Var>,
    body: Stmt,
) -> Result<TensorFunc> {
    let params = params.iter().map(|b| Param::tensor(b)).collect();
    let func = TensorFunc::new(params, Stmt::nop()).with_root(Vec::new(), body);
    // Several loops may have been written with one variable.
    let mut func = fold_func(&mut Subst::refresh(), &func);
    func.pass_sizes(sizes);
    check_tensor(name, &func)?;
    Ok(func)
}

/// A block for each cell of the result.
pub(crate) fn cells(
    name: &str,
    params: &[&Buffer],
    shape: &[Dim],
    allocs: Vec<Buffer>,
    body: impl FnOnce(&[Expr]) -> Stmt,
) -> Result<TensorFunc> {
    let axes: Vec<(usize, Dim)> = shape.iter().copied().enumerate().collect();
    cells_along(name, params, &axes, allocs, body)
}

/// [`cells`] along some axes, each with its number.
pub(crate) fn cells_along(
    name: &str,
    params: &[&Buffer],
    axes: &[(usize, Dim)],
    allocs: Vec<Buffer>,
    body: impl FnOnce(&[Expr]) -> Stmt,
) -> Result<TensorFunc> {
    let inner: Vec<Var> = axes.iter().map(|(a, _)| Var::index(format!("v{a}"))).collect();
    let outer: Vec<Var> = axes.iter().map(|(a, _)| Var::index(format!("i{a}"))).collect();
    let at: Vec<Expr> = inner.iter().map(Var::expr).collect();
    let extents = params.iter().copied().chain(&allocs).flat_map(|b| b.shape.iter());
    let mut sizes: Vec<Var> = extents.filter_map(Dim::from_expr).flat_map(Dim::vars).collect();
    sizes.sort();
    sizes.dedup();
    let mut block = Block::new(name, body(&at));
    block.allocs = allocs;
    block.iters = inner
        .iter()
        .zip(axes)
        .map(|(v, (_, d))| IterVar::spatial(v, Range::upto(d.expr())))
        .collect();
    let body = Stmt::block(outer.iter().map(Var::expr).collect(), Expr::bool(true), block);
    let loops = outer.iter().zip(axes).rev();
    let body = loops.fold(body, |s, (v, (_, d))| Stmt::serial(v, d.expr(), s));
    function(name, params, sizes.iter().map(dim::narrow), body)
}
