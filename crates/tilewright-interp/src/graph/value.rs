//! Values of graph functions, and operators on lists, optionals and shapes.

use std::sync::Arc;

use tilewright_ir::control::{MATCH_CAST, TENSOR_TO_SHAPE};
use tilewright_ir::list::{self, Item, ListOp};
use tilewright_ir::{Attrs, Error, Result, Tensor};

use crate::State;

/// A value of a graph function.
#[derive(Clone)]
pub(super) enum GraphValue {
    Tensor(Tensor, Option<Arc<Vec<State>>>),
    Tuple(Vec<GraphValue>),
    /// A list or an optional.
    Item(Item),
    /// Sizes.
    Shape(Vec<i64>),
}

/// What an operator on lists, optionals or shapes gives.
pub(super) fn operator(op: &str, args: Vec<GraphValue>, attrs: &Attrs) -> Result<GraphValue> {
    let mut args = args.into_iter();
    match ListOp::find(op) {
        Some(list) => {
            let items: Result<Vec<Item>> = args.map(GraphValue::item).collect();
            Ok(GraphValue::Item(list.apply(items?, attrs)?).plain())
        }
        None if op == MATCH_CAST => args.next().ok_or_else(|| Error::internal("a cast of nothing")),
        None if op == TENSOR_TO_SHAPE => {
            let t = match args.next() {
                Some(GraphValue::Tensor(t, None)) => t,
                _ => return Err(Error::input("a shape is made of integers that are written")),
            };
            (0..t.len())
                .map(|k| {
                    i64::try_from(t.get_i128(k))
                        .ok()
                        .filter(|n| *n >= 0)
                        .ok_or_else(|| Error::execution(format!("{} is no size", t.get_i128(k))))
                })
                .collect::<Result<_>>()
                .map(GraphValue::Shape)
        }
        None => Err(Error::internal(format!("`{op}` is no operator on lists"))),
    }
}

impl GraphValue {
    /// As what lists hold.
    pub(super) fn item(self) -> Result<Item> {
        match self {
            GraphValue::Tensor(t, None) => Ok(Item::Tensor(t)),
            GraphValue::Tensor(_, Some(_)) => Err(Error::execution(
                "a tensor with elements that nothing wrote is put into a list",
            )),
            GraphValue::Item(item) => Ok(item),
            GraphValue::Tuple(_) | GraphValue::Shape(_) => {
                Err(Error::input("a tuple or a shape is put into a list"))
            }
        }
    }

    pub(super) fn plain(self) -> GraphValue {
        match self {
            GraphValue::Item(Item::Tensor(t)) => GraphValue::Tensor(t, None),
            other => other,
        }
    }

    /// One number.
    pub(super) fn integer(self) -> Result<i64> {
        match self {
            GraphValue::Tensor(t, None) => list::integer(&t),
            _ => Err(Error::execution("a condition or number of iterations is not written")),
        }
    }
}
