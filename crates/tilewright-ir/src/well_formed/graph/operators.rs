//! The operators on lists, optionals and shapes.

use std::fmt::Display;

use crate::control::{MATCH_CAST, TENSOR_TO_SHAPE, is_control_operator};
use crate::error::{Error, Result};
use crate::graph::{GraphExpr, GraphType, TensorType};
use crate::list::ListOp;

/// Whether a value brings sizes that nothing before it says.
pub(super) fn brings_sizes(value: &GraphExpr) -> bool {
    match value {
        GraphExpr::If(_) | GraphExpr::Loop(_) => true,
        GraphExpr::Call { op, .. } => is_control_operator(op),
        _ => false,
    }
}

/// The type of the result of an operator on lists, optionals or shapes, where it follows from those
/// of the arguments.
pub(super) fn operator(op: &str, args: &[Option<GraphType>]) -> Result<Option<GraphType>> {
    match (op, ListOp::find(op)) {
        (MATCH_CAST, _) => check_count(1, 1, args, op).map(|()| None),
        (TENSOR_TO_SHAPE, _) => {
            check_count(1, 1, args, op)?;
            let ok = match &args[0] {
                Some(GraphType::Tensor(t)) => t.dtype.is_int() && t.shape.len() == 1,
                other => other.is_none(),
            };
            require(ok, || format!("`{op}` takes a list of integers"))?;
            Ok(None)
        }
        (_, Some(list)) => {
            let (least, most) = list.arity();
            check_count(least, most, args, op)?;
            Ok(list.scalar().map(|dtype| GraphType::Tensor(TensorType::fixed(&[], dtype))))
        }
        _ => Ok(None),
    }
}

fn check_count(least: usize, most: usize, args: &[Option<GraphType>], op: &str) -> Result<()> {
    require((least..=most).contains(&args.len()), || {
        let wanted = match (least, most) {
            (a, b) if a == b => format!("{a}"),
            (a, usize::MAX) => format!("at least {a}"),
            (a, b) => format!("{a} to {b}"),
        };
        format!("`{op}` takes {wanted} arguments, not {}", args.len())
    })
}

pub(super) fn malformed<T>(message: impl Display) -> Result<T> {
    Err(Error::malformed(message.to_string()))
}

pub(super) fn require(ok: bool, message: impl FnOnce() -> String) -> Result<()> {
    if ok { Ok(()) } else { malformed(message()) }
}
