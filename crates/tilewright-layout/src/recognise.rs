//! Which functions of a module are conversions, each looked at once.
//!
//! Plans of one model are made several times, and ask about the same functions each time: what a function is, is
//! remembered by its body.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use tilewright_ir::{Buffer, GraphExpr, Stmt, TensorFunc};

use super::conversion::Conversion;
use tilewright_graph::call_sizes::fits;

/// Most functions that are remembered; then all are forgotten.
const MOST: usize = 1 << 10;

/// A function's statement, which is kept so that no other one has its address, its parameters, and what it is.
type Known = (Stmt, Vec<Buffer>, Option<Rc<Conversion>>);

thread_local! {
    /// By the address of the statement.
    static REMEMBERED: RefCell<HashMap<usize, Known>> = RefCell::default();
}

/// The conversion that a function is ([`Conversion::recognise`]).
pub(crate) fn conversion(f: &TensorFunc) -> Option<Rc<Conversion>> {
    let at = f.body.address();
    let known = REMEMBERED.with_borrow(|all| {
        let known = all.get(&at).filter(|(_, buffers, _)| f.buffers().eq(buffers));
        known.map(|(_, _, found)| found.clone())
    });
    known.unwrap_or_else(|| {
        let found = Conversion::recognise(f).map(Rc::new);
        let buffers = f.buffers().cloned().collect();
        REMEMBERED.with_borrow_mut(|all| {
            if all.len() >= MOST {
                all.clear();
            }
            all.insert(at, (f.body.clone(), buffers, found.clone()));
        });
        found
    })
}

/// The functions that have been looked at, by name.
#[derive(Default)]
pub struct Recognised(HashMap<Arc<str>, Option<Rc<Conversion>>>);

impl Recognised {
    /// The conversion that a function is.
    pub fn func(&mut self, name: &Arc<str>, f: &TensorFunc) -> Option<Rc<Conversion>> {
        if let Some(found) = self.0.get(name) {
            return found.clone();
        }
        let found = conversion(f);
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
