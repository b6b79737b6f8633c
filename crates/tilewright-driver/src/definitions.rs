//! Calls of the second graph on top of calls of the first one.
//!
//! A value of the second graph may be one that the first graph has on the way to what the second one reads: a quantised
//! number, of which the second graph has what was read from it and quantises that again. Or the first graph has it by
//! another way from farther back: a product whose weights took on a scale. Seen from the values that both graphs have at
//! this place it is no group of the first graph. So the call is copied, with what the first graph says of the values that
//! it reads in their place.

use tilewright_ir::hash::HashMap;

use crate::values::{Graph, Value};

/// A copy of a call, on top of what another graph says of the values that it reads.
pub(crate) struct Copied {
    pub(crate) at: usize,
    /// New values that are values of the other graph: these, by those.
    pub(crate) same: HashMap<usize, usize>,
    /// How many calls of the other graph are part of it.
    pub(crate) calls: usize,
}

impl Graph<'_> {
    /// A copy of a call on top of so many calls of another graph in a row, where `known` says which value of that one is the
    /// same; `None` where it has another form.
    pub(crate) fn on_definitions(
        &mut self,
        at: usize,
        other: &Graph<'_>,
        known: &dyn Fn(usize) -> Option<usize>,
        depth: usize,
    ) -> Option<Copied> {
        let (func, args) = self.single(at).filter(|_| self.nodes[at].bodies.is_empty())?;
        let (func, args) = ((**self.callee(func)?).clone(), args.to_vec());
        let ty = self.nodes[at].declared.clone()?;
        let mut copied = Copied { at, same: HashMap::default(), calls: 0 };
        let mut made = HashMap::default();
        let mut operands = Vec::with_capacity(args.len());
        for arg in args {
            operands.push(match known(arg) {
                Some(n) => self.define(other, n, depth, &mut made, &mut copied),
                None => arg,
            });
        }
        copied.at = self.add_call(&operands, &ty, "copy", func);
        Some(copied)
    }

    /// Adds a value of another graph: what it is made of, for so many calls in a row.
    fn define(
        &mut self,
        other: &Graph<'_>,
        n: usize,
        depth: usize,
        made: &mut HashMap<usize, usize>,
        copied: &mut Copied,
    ) -> usize {
        if let Some(known) = made.get(&n) {
            return *known;
        }
        let node = &other.nodes[n];
        let call = other.single(n).filter(|_| depth > 0 && node.bodies.is_empty());
        let call = call.and_then(|(func, inputs)| Some((other.callee(func)?, inputs)));
        let new = match (call, &node.declared) {
            (Some((func, inputs)), Some(ty)) => {
                let inputs = inputs.iter().map(|i| self.define(other, *i, depth - 1, made, copied));
                let inputs: Vec<usize> = inputs.collect();
                copied.calls += 1;
                self.add_call(&inputs, ty, "definition", (**func).clone())
            }
            _ => {
                let value = match &node.value {
                    Value::Constant(t) => Value::Constant(t.clone()),
                    _ => Value::Opaque,
                };
                let new = self.add_copy(node, value);
                copied.same.insert(new, n);
                new
            }
        };
        made.insert(n, new);
        new
    }
}
