//! Data that must be within bounds: what is known is checked at once, the rest when the model runs.

use tilewright_ir::{Error, Result};
use tilewright_ops::check::{Need, checked};

use crate::build::Builder;
use crate::imported::{Imported, operand};
use crate::node::Node;

/// The same integers, which end the run where one does not meet the need. `what` an element is is
/// for the message, as in `index`.
///
/// # Errors
/// [`Error::Model`] for what is no integer, and for a known one that does not meet the need.
pub(crate) fn demand(
    node: &Node,
    b: &mut Builder,
    what: &str,
    x: &Imported,
    need: &Need,
) -> Result<Imported> {
    if !x.dtype().is_int() {
        return Err(Error::model(format!("the {what} is {}, not an integer", x.dtype())));
    }
    if let Imported::Const(t) = x {
        match need.violated_by(what, t) {
            None if need.is_open_for(t) => {}
            None => return Ok(x.clone()),
            Some(said) => return Err(Error::model(said)),
        }
    }
    if let Imported::Sizes(s) = x {
        let along = s.shape.last().copied().unwrap_or(1).max(1);
        let all = s.values.iter().enumerate();
        if all.into_iter().all(|(i, v)| need.is_met_by(*v, i % along) == Some(true)) {
            return Ok(x.clone());
        }
    }
    // Where no number of the type fails, there is nothing to do.
    let of = operand(x);
    let Some(func) = checked(&of, need, &node.label, what)? else { return Ok(x.clone()) };
    // An operator that is made of others checks several operands under one name.
    let key = format!("{}: {what} {need} {of}", node.label);
    b.call("check", &key, [x], || Ok(func))
}
