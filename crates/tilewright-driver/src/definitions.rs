//! Calls of the second graph on top of calls of the first one.
//!
//! A value of the second graph may be one that the first graph has on the way to what the second one reads: a quantised
//! number, of which the second graph has what was read from it and quantises that again. Seen from the values that both
//! graphs have at this place it is nothing new, and no group of the first graph. So the call is copied, with what
//! the first graph says of the values that it reads in their place.

use tilewright_ir::hash::HashMap;

use crate::values::{Graph, Value};

impl Graph<'_> {
    /// A copy of a call that reads what another graph makes, where `known` says which of its values is the same; and which
    /// new values are which of the other graph. `None` where that says no more.
    pub(crate) fn on_definitions(
        &mut self,
        at: usize,
        other: &Graph<'_>,
        known: &dyn Fn(usize) -> Option<usize>,
    ) -> Option<(usize, HashMap<usize, usize>)> {
        let Value::Call { args, scalars, outs: 1, .. } = &self.nodes[at].value else { return None };
        if !scalars.is_empty() || !self.nodes[at].bodies.is_empty() {
            return None;
        }
        let (args, mut places) = (args.clone(), HashMap::default());
        let mut is_new = false;
        let mut copied = Vec::with_capacity(args.len());
        for arg in args {
            let made = known(arg).filter(|n| other.nodes[*n].bodies.is_empty());
            let Some((func, inputs)) = made.and_then(|n| other.single(n)) else {
                copied.push(arg);
                continue;
            };
            let func = (**other.callee(func)?).clone();
            let mut operands = Vec::with_capacity(inputs.len());
            for input in inputs {
                let operand = self.add_copy(&other.nodes[*input]);
                places.insert(operand, *input);
                operands.push(operand);
            }
            let ty = self.nodes[arg].declared.clone()?;
            copied.push(self.add_call(&operands, &ty, "definition", func));
            is_new = true;
        }
        let (Value::Call { func, .. }, Some(ty)) =
            (&self.nodes[at].value, self.nodes[at].declared.clone())
        else {
            return None;
        };
        let func = (**self.callee(func)?).clone();
        is_new.then(|| (self.add_call(&copied, &ty, "copy", func), places))
    }
}
