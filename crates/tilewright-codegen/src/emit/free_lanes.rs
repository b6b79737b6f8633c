//! Memory of a function with lanes that no access touches.
//!
//! ```text
//! if ramp(j, 1, 16) < n:  sums[ramp(k * 16, 1, 16)] = sums[ramp(k * 16, 1, 16)] + x[ramp(j, 1, 16)]
//! if ramp(j, 1, 16) < n:  out[ramp(j, 1, 16)] = sums[ramp(k * 16, 1, 16)]
//! ```
//!
//! Every access of `sums` is a whole vector at a multiple of its lanes, under one mask that is the same while the
//! memory lives: a lane that the mask leaves out is left out everywhere, and what is there is never seen. Then a
//! store writes the whole vector, without a selection between what was there and what is new. Parts of a condition
//! that hold for all lanes or none are beside this: they are branches.

use tilewright_ir::hash::HashSet;

use tilewright_ir::equal::same_expr;
use tilewright_ir::index::Linear;
use tilewright_ir::visit::{Visit, walk_expr, walk_stmt};
use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, Stmt, StmtKind, Var};

/// Whether masks leave out the same lanes of a buffer wherever the statements behind its allocation access it.
pub(super) fn has_free_lanes(buffer: &Buffer, behind: &Stmt) -> bool {
    let mut found = Accesses {
        buffer,
        masks: Vec::new(),
        agreed: None,
        bound: HashSet::default(),
        differ: false,
    };
    found.stmt(behind);
    let fixed = |(masks, _): &(Vec<Expr>, u16)| {
        masks.iter().all(|m| !m.effects().loads && !m.mentions_any(&found.bound))
    };
    !found.differ && found.agreed.as_ref().is_some_and(fixed)
}

struct Accesses<'a> {
    buffer: &'a Buffer,
    /// The conditions around that differ between lanes.
    masks: Vec<Expr>,
    /// The masks of the accesses so far, and their lanes.
    agreed: Option<(Vec<Expr>, u16)>,
    /// What is bound behind the allocation, and may change while the memory lives.
    bound: HashSet<Var>,
    differ: bool,
}

impl Visit for Accesses<'_> {
    fn stmt(&mut self, s: &Stmt) {
        if let StmtKind::If { cond, then, otherwise: None } = s.kind()
            && cond.dtype().lanes > 1
        {
            self.expr(cond);
            let around = self.masks.len();
            differing(cond, &mut self.masks);
            self.stmt(then);
            self.masks.truncate(around);
            return;
        }
        walk_stmt(self, s);
    }

    fn expr(&mut self, e: &Expr) {
        self.differ |= e.as_var() == Some(&self.buffer.data);
        walk_expr(self, e);
    }

    fn var_def(&mut self, v: &Var) {
        self.bound.insert(v.clone());
    }

    fn access(&mut self, b: &Buffer, indices: &[Expr], _write: bool) {
        if b.data != self.buffer.data {
            return;
        }
        let lanes = match indices {
            [index] => lanes_of_whole_vector(index),
            _ => None,
        };
        match (&self.agreed, lanes) {
            (_, None) => self.differ = true,
            (None, Some(lanes)) => {
                self.differ |= self.masks.is_empty();
                self.agreed = Some((self.masks.clone(), lanes));
            }
            (Some((masks, known)), Some(lanes)) => {
                let same = masks.len() == self.masks.len()
                    && masks.iter().zip(&self.masks).all(|(a, b)| same_expr(a, b));
                self.differ |= *known != lanes || !same;
            }
        }
    }
}

/// The parts of a condition that are not the same for all lanes.
fn differing(cond: &Expr, out: &mut Vec<Expr>) {
    match cond.kind() {
        ExprKind::Broadcast(_) => {}
        ExprKind::Binary(BinOp::And, a, b) => {
            differing(a, out);
            differing(b, out);
        }
        _ => out.push(cond.clone()),
    }
}

/// The lanes of neighbours that begin at a multiple of their number.
fn lanes_of_whole_vector(index: &Expr) -> Option<u16> {
    let ExprKind::Ramp(base, step) = index.kind() else { return None };
    let (lanes, base) = (index.dtype().lanes, Linear::from_expr(base)?);
    let by = i128::from(lanes);
    let is_multiple = base.constant % by == 0 && base.terms.iter().all(|(_, k)| k % by == 0);
    (step.as_int() == Some(1) && is_multiple).then_some(lanes)
}
