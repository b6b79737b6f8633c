//! Values that are known ones in another form.
//!
//! An optimiser has values lie in another order for several calls, and transposes them back where others read them, or
//! never. It has bytes with a sign be bytes without one. Such a value has no equal in the first graph, but what it is in
//! the form of that graph may have one: in an order that one of both graphs transposes to, with or without a sign. Then it is
//! that value, in its own form: calls after it begin there, and not where the form was changed.

use std::collections::BTreeSet;

use tilewright_graph::stages::{buffer, cells, one_stage};
use tilewright_ir::{DType, Dim, Expr, GraphType, TensorFunc, TensorType, dim};

use tilewright_layout::{Conversion, TiledLayout};

use crate::values::{Graph, Value};

/// For each axis of a transpose, the axis of what it transposes.
type Order = Vec<usize>;

/// Another form of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Form {
    /// An order of its axes.
    order: Option<Order>,
    /// Whether its bytes have a sign where those of the value have none, or the other way round.
    sign: bool,
}

impl Form {
    fn back(&self) -> Form {
        Form { order: self.order.as_deref().map(inverse), ..*self }
    }

    /// The type of a value in this form; `None` where it has no such form.
    fn of(&self, ty: &TensorType) -> Option<TensorType> {
        let shape = match &self.order {
            None => ty.shape.clone(),
            Some(order) if order.len() == ty.shape.len() => {
                order.iter().map(|k| ty.shape[*k].clone()).collect()
            }
            Some(_) => return None,
        };
        let dtype = if self.sign { other_sign(ty.dtype)? } else { ty.dtype };
        Some(TensorType { shape, dtype })
    }

    /// The function that gives tensors of a type this form.
    fn func(&self, from: &TensorType) -> Option<TensorFunc> {
        let to = self.of(from)?;
        let [x, y] = [(from, "x"), (&to, "form")]
            .map(|(ty, name)| Some(buffer(name, &dim::of_shape(&ty.shape)?, ty.dtype)));
        let (x, y) = (x?, y?);
        let shape: Vec<Dim> = dim::of_shape(&to.shape)?;
        let iters = cells("v", &shape);
        let index: Vec<Expr> = iters.iter().map(|i| i.0.expr()).collect();
        let place = match &self.order {
            None => index.clone(),
            Some(order) => inverse(order).iter().map(|k| index[*k].clone()).collect(),
        };
        let mut value = x.load(place);
        if self.sign {
            let by = Expr::int(if from.dtype == DType::I8 { 128 } else { -128 }, DType::I32);
            value = (value.cast(DType::I32) + by).cast(to.dtype);
        }
        Some(one_stage("form", &iters, [&x, &y], index, value))
    }
}

fn other_sign(dtype: DType) -> Option<DType> {
    match dtype {
        DType::I8 => Some(DType::U8),
        DType::U8 => Some(DType::I8),
        _ => None,
    }
}

impl Graph<'_> {
    /// The forms that values of a graph may have where another one has them in another form.
    pub(crate) fn forms(&self, other: &Graph<'_>) -> Vec<Form> {
        let orders: BTreeSet<Order> = self.orders().union(&other.orders()).cloned().collect();
        let orders = [None].into_iter().chain(orders.into_iter().map(Some));
        let all =
            orders.flat_map(|order| [false, true].map(|sign| Form { order: order.clone(), sign }));
        all.filter(|form| form.sign || form.order.is_some()).collect()
    }

    /// The orders in which calls transpose values, and those that take them back.
    fn orders(&self) -> BTreeSet<Order> {
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

    fn tensor_type(&self, at: usize) -> Option<&TensorType> {
        match self.nodes[at].declared.as_ref()? {
            GraphType::Tensor(ty) => Some(ty),
            _ => None,
        }
    }

    /// The type of a value in another form.
    pub(crate) fn type_in(&self, at: usize, form: &Form) -> Option<GraphType> {
        Some(GraphType::Tensor(form.of(self.tensor_type(at)?)?))
    }

    /// Adds a value in another form.
    pub(crate) fn add_form(&mut self, of: usize, form: &Form) -> Option<usize> {
        let ty = self.type_in(of, form)?;
        let func = form.func(self.tensor_type(of)?)?;
        Some(self.add_call(&[of], &ty, "form", func))
    }

    /// Has a value be one that was made from it in another form, back in its own.
    pub(crate) fn has_form(&mut self, at: usize, form: &Form, made: usize) -> Option<()> {
        let back = form.back().func(self.tensor_type(made)?)?;
        self.is_made(at, made, back);
        Some(())
    }
}

fn inverse(order: &[usize]) -> Order {
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(k, from)| back[*from] = k);
    back
}

/// The order in which a function transposes; `None` where it does something else.
fn order(func: &TensorFunc) -> Option<Order> {
    let moved = Conversion::recognise(func).filter(|c| c.is_total() && c.keeps_all())?;
    let layout = TiledLayout::of_pack(&moved).filter(|layout| !layout.is_identity())?;
    layout.axes()
}
