//! Which functions of a module are conversions, each looked at once.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use tilewright_ir::{GraphExpr, TensorFunc};

use super::conversion::Conversion;
use tilewright_graph::call_sizes::fits;

/// The functions that have been looked at, by name.
#[derive(Default)]
pub struct Recognised(HashMap<Arc<str>, Option<Rc<Conversion>>>);

impl Recognised {
    /// The conversion that a function is.
    pub fn func(&mut self, name: &Arc<str>, f: &TensorFunc) -> Option<Rc<Conversion>> {
        if let Some(found) = self.0.get(name) {
            return found.clone();
        }
        let found = Conversion::recognise(f).map(Rc::new);
        self.0.insert(name.clone(), found.clone());
        found
    }

    /// The conversion that a call does: of a tensor of the function's type, without scalars other
    /// than sizes.
    pub fn call(
        &mut self,
        name: &Arc<str>,
        f: &TensorFunc,
        call: &GraphExpr,
    ) -> Option<Rc<Conversion>> {
        let GraphExpr::CallTir { args, outs, .. } = call else { return None };
        let one = args.len() == 1 && outs.len() == 1;
        if one && fits(f, call) { self.func(name, f) } else { None }
    }
}
