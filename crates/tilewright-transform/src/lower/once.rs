//! Loops of at most one iteration, as open sizes say, are conditions.
//!
//! ```text
//! for j in range((n + 1) // 2 * 2 - n):        if (n + 1) // 2 * 2 - n > 0:
//!     row[n + j] = 0.0                    →        row[n] = 0.0
//! ```
//!
//! Of a loop that stores zeros LLVM makes a call, which takes longer than the rest of a short row.

use tilewright_ir::index::{Ranges, linear};
use tilewright_ir::visit::{Subst, fold_stmt_children};
use tilewright_ir::{Expr, Fold, ForKind, Range, Stmt, StmtKind, TensorFunc};

/// A lowered function without such loops.
pub(super) fn loops_to_conditions(func: &TensorFunc) -> TensorFunc {
    let mut ranges = Ranges::default();
    ranges.bind_sizes(func);
    TensorFunc { body: Once { ranges }.stmt(&func.body), ..func.clone() }
}

struct Once {
    ranges: Ranges,
}

impl Once {
    /// Whether an extent is known to be one at most, and not to be a number.
    fn is_one_at_most(&self, extent: &Expr) -> bool {
        let open = extent.as_int().is_none() && extent.effects().constant();
        let extent = open.then(|| linear(extent, &self.ranges)).flatten();
        extent.and_then(|e| e.span(&self.ranges)).is_some_and(|values| values.hi <= 1)
    }
}

impl Fold for Once {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let StmtKind::For { var, range: Range { min, extent }, kind, body, .. } = s.kind() else {
            return fold_stmt_children(self, s);
        };
        if *kind != ForKind::Serial || !self.is_one_at_most(extent) {
            self.ranges.bind_loop(var, &Range { min: min.clone(), extent: extent.clone() });
            return fold_stmt_children(self, s);
        }
        let body = Subst::vars([(var.clone(), min.clone())]).stmt(body);
        Stmt::guard(extent.clone().greater(0), self.stmt(&body))
    }
}
