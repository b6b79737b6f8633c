//! A node whose operands have two sizes that must be equal, where nothing says that they are: it is looked at again with
//! one in the place of the other, and a run checks that.

use tilewright_ir::dim::Integer;
use tilewright_ir::{Dim, Result};

use crate::build::Builder;
use crate::imported::Imported;
use crate::node::Node;

/// The node with operands of which two sizes are equal, which a run sees to; nothing where none has
/// such an extent.
pub(super) fn with_equal<'a>(
    builder: &mut Builder,
    node: &Node<'a>,
    a: Dim,
    b: Dim,
) -> Result<Option<Node<'a>>> {
    if Integer::from(a).equals(b) == Some(false) {
        return Ok(None);
    }
    let [a_decided, b_decided] = [a, b].map(|d| builder.is_decided(d));
    let (first, second) = match (a.known(), b.known()) {
        (Some(_), Some(_)) => return Ok(None),
        // What is known of a size is better than what is computed, where an operand has that.
        (Some(_), None) => ((b, a), Some((a, b))),
        (None, Some(_)) => ((a, b), Some((b, a))),
        // Of one that data decide and another one, that one is taken.
        (None, None) if a_decided && !b_decided => ((a, b), Some((b, a))),
        (None, None) => ((b, a), Some((a, b))),
    };
    for (from, to) in [first].into_iter().chain(second) {
        let mut again: Option<Node<'a>> = None;
        for at in 0..node.input_count() {
            let Some(value @ Imported::Var { shape, .. }) = node.optional(at) else { continue };
            // A number may be the size of several axes, of which one is meant.
            let found = shape.iter().filter(|d| **d == from).count();
            if found == 1 || found > 1 && from.known().is_none() {
                let shape = shape.iter().map(|d| if *d == from { to } else { *d }).collect();
                let value = builder.with_shape(value, shape, None);
                again = Some(again.as_ref().unwrap_or(node).with_input(at, value)?);
            }
        }
        if again.is_some() {
            return Ok(again);
        }
    }
    Ok(None)
}
