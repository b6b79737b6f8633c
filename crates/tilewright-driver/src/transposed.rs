//! Values that are transposes of known ones.
//!
//! An optimiser has values lie in another order for several calls, and transposes them back where others read them, or
//! never. Such a value has no equal in the first graph, but its transpose, in an order that one of both graphs
//! transposes to, may have one. Then it is that value, transposed back: calls after it begin there, and not where the
//! order was changed.

use std::collections::BTreeSet;

use tilewright_analysis::stage::open_stages;
use tilewright_graph::stages::{buffer, cells, load, one_stage};
use tilewright_ir::{DType, Dim, Expr, GraphType, TensorFunc, TensorType, dim};

use crate::values::{Graph, Value};

/// For each axis of a transpose, the axis of what it transposes.
pub(crate) type Order = Vec<usize>;

impl Graph<'_> {
    /// The orders in which calls transpose values, and those that take them back.
    pub(crate) fn orders(&self) -> BTreeSet<Order> {
        let mut all = BTreeSet::new();
        for node in &self.nodes {
            if let Value::Call { func, args, scalars, outs: 1, .. } = &node.value
                && args.len() == 1
                && scalars.is_empty()
                && let Some(order) = self.callee(func).and_then(|f| order(f))
            {
                all.insert(inverse(&order));
                all.insert(order);
            }
        }
        all
    }

    /// The type of a value in another order; `None` where that is no order of its axes, or is its own.
    pub(crate) fn transposed_type(&self, at: usize, order: &[usize]) -> Option<GraphType> {
        let GraphType::Tensor(ty) = self.nodes[at].declared.as_ref()? else { return None };
        if ty.shape.len() != order.len() {
            return None;
        }
        let shape = order.iter().map(|k| ty.shape[*k].clone()).collect();
        Some(GraphType::Tensor(TensorType { shape, ..ty.clone() }))
    }

    /// Adds the transpose of a value.
    pub(crate) fn add_transpose(&mut self, of: usize, order: &[usize]) -> Option<usize> {
        let ty = self.transposed_type(of, order)?;
        let func = self.transpose(of, order)?;
        Some(self.add_call(of, &ty, "transpose", func))
    }

    /// Has a value be what a transpose of it is, taken back.
    pub(crate) fn is_transposed(
        &mut self,
        at: usize,
        transpose: usize,
        order: &[usize],
    ) -> Option<()> {
        let back = self.transpose(transpose, &inverse(order))?;
        self.is_made(at, transpose, back);
        Some(())
    }

    /// The function that transposes a value.
    fn transpose(&self, of: usize, order: &[usize]) -> Option<TensorFunc> {
        let GraphType::Tensor(ty) = self.nodes[of].declared.as_ref()? else { return None };
        Some(transpose(ty.dtype, &dim::of_shape(&ty.shape)?, order))
    }
}

fn inverse(order: &[usize]) -> Order {
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(k, from)| back[*from] = k);
    back
}

/// The function that transposes tensors of a shape.
fn transpose(dtype: DType, shape: &[Dim], order: &[usize]) -> TensorFunc {
    let made: Vec<Dim> = order.iter().map(|k| shape[*k]).collect();
    let [from, to] = [buffer("x", shape, dtype), buffer("transposed", &made, dtype)];
    let iters = cells("v", &made);
    let index: Vec<Expr> = iters.iter().map(|i| i.0.expr()).collect();
    let place: Vec<Expr> = inverse(order).iter().map(|k| index[*k].clone()).collect();
    one_stage("transposed", &iters, [&from, &to], index, from.load(place))
}

/// The order in which a function transposes; `None` where it does something else.
fn order(func: &TensorFunc) -> Option<Order> {
    let stages = open_stages(func)?;
    let ([stage], params) = (&stages[..], func.buffers().collect::<Vec<_>>()) else {
        return None;
    };
    let [from, to] = params[..] else { return None };
    let (read, places) = load(&stage.value).filter(|_| stage.init.is_none())?;
    let is_whole = read == from && stage.buffer == *to && stage.covers_buffer().is_some();
    if !is_whole || from.rank() != to.rank() {
        return None;
    }
    // Where each axis of what is stored is read.
    let axes: Option<Order> = stage
        .indices
        .iter()
        .map(|index| {
            let var = index.as_var()?;
            places.iter().position(|p| p.as_var() == Some(var))
        })
        .collect();
    let axes = axes?;
    let is_all = (0..from.rank()).all(|k| axes.contains(&k));
    let is_changed = axes.iter().enumerate().any(|(k, from)| k != *from);
    let [wide, narrow] = [dim::of_shape(&to.shape)?, dim::of_shape(&from.shape)?];
    let is_same = axes.iter().zip(&wide).all(|(k, extent)| narrow[*k] == *extent);
    (is_all && is_changed && is_same).then_some(axes)
}
