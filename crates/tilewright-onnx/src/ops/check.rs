//! Data that must be within bounds: what is known is checked at once, the rest when the model runs.

use tilewright_ir::{Error, Result};
use tilewright_ops::check::{Need, checked};

use crate::build::{Builder, operand};
use crate::node::{Node, Value};

/// The same integers, which end the run where one does not meet the need. `what` an element is is
/// for the message, as in `index`.
///
/// # Errors
/// [`Error::Model`] for what is no integer, and for a known one that does not meet the need.
pub(crate) fn demand(
    node: &Node,
    b: &mut Builder,
    what: &str,
    x: &Value,
    need: &Need,
) -> Result<Value> {
    if !x.dtype().is_int() {
        return Err(Error::model(format!("the {what} is {}, not an integer", x.dtype())));
    }
    if let Value::Const(t) = x {
        return match need.violated_by(t) {
            None => Ok(x.clone()),
            Some(0) if *need == Need::NonZero => Err(Error::model(format!("a {what} {need}"))),
            Some(v) => Err(Error::model(format!("the {what} {v} {need}"))),
        };
    }
    let of = operand(x);
    let label = node.label.replace("{}", "{ }");
    let message = match need {
        Need::NonZero => format!("{label}: a {what} {need}"),
        Need::Within(_) => format!("{label}: the {what} {{}} {need}"),
    };
    // Where no number of the type fails, there is nothing to do.
    let Some(func) = checked(&of, need, &message)? else { return Ok(x.clone()) };
    b.call("check", &message, std::slice::from_ref(x), || Ok(func))
}
