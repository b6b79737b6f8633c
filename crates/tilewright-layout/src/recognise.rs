//! Which functions of a module are conversions, each looked at once.
//!
//! Plans of one model are made several times, and ask about the same functions each time: what a function is, is
//! remembered by its body.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::{Buffer, GraphExpr, Stmt, TensorFunc};

use super::conversion::Conversion;
use super::regroup::Regrouping;
use tilewright_graph::call_sizes::fits;
use tilewright_graph::view::relabels;

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

/// Whether a function only puts all elements of its argument into another order: its result is not the same memory.
pub fn reorders(f: &TensorFunc) -> bool {
    let moves = conversion(f).is_some_and(|c| c.is_total() && c.keeps_all());
    moves && !relabels(f)
}

/// The functions that have been looked at, by name.
#[derive(Default)]
pub struct Recognised {
    conversions: HashMap<Arc<str>, Option<Rc<Conversion>>>,
    regroupings: HashMap<Arc<str>, Option<Rc<Regrouping>>>,
}

impl Recognised {
    /// The conversion that a function is.
    pub fn func(&mut self, name: &Arc<str>, f: &TensorFunc) -> Option<Rc<Conversion>> {
        if let Some(found) = self.conversions.get(name) {
            return found.clone();
        }
        let found = conversion(f);
        self.conversions.insert(name.clone(), found.clone());
        found
    }

    /// How the result of a call is its argument under other axes that are not those of the argument in another order.
    pub fn regrouping(
        &mut self,
        name: &Arc<str>,
        f: &TensorFunc,
        call: &GraphExpr,
    ) -> Option<Rc<Regrouping>> {
        if !takes_one(f, call) {
            return None;
        }
        if let Some(found) = self.regroupings.get(name) {
            return found.clone();
        }
        let found = Regrouping::of_view(f).or_else(|| {
            let conversion = self.func(name, f)?;
            Regrouping::of_conversion(&conversion)
        });
        let found = found.filter(|r| !r.permutes()).map(Rc::new);
        self.regroupings.insert(name.clone(), found.clone());
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
        if takes_one(f, call) { self.func(name, f) } else { None }
    }
}

/// Whether a call makes one tensor of one, with sizes alone beside it.
fn takes_one(f: &TensorFunc, call: &GraphExpr) -> bool {
    let GraphExpr::CallTir { args, outs, .. } = call else { return false };
    args.len() == 1 && outs.len() == 1 && fits(f, call)
}
