//! What computing a value takes and contains: the one walk that tells arithmetic on data from index
//! arithmetic.

use tilewright_ir::{BinOp, CallTarget, Expr, ExprKind, Visit, visit};

/// What an expression costs and contains.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Number of nodes.
    pub nodes: usize,
    /// Arithmetic on data; index arithmetic and loads are free.
    pub work: usize,
    /// Has calls of functions that cost more than a few instructions.
    pub heavy: bool,
    /// Chooses lazily.
    pub branches: bool,
    /// Has calls with unknown effects, or undefined values, which differ each time.
    pub opaque: bool,
    /// Is more than loads, constants, and selection by index.
    pub computes: bool,
    /// An index, or a condition on indices, has a division or remainder.
    pub divides: bool,
    /// Inside of an index or of a condition on indices.
    in_index: bool,
}

impl Cost {
    /// The cost of an expression.
    pub fn count(e: &Expr) -> Cost {
        let mut cost = Cost::default();
        cost.expr(e);
        cost
    }
}

impl Visit for Cost {
    fn expr(&mut self, e: &Expr) {
        use BinOp::*;
        self.nodes += 1;
        let outer = self.in_index;
        let work = match e.kind() {
            ExprKind::Binary(op, ..) => {
                let whole = matches!(op, FloorDiv | FloorMod | TruncDiv | TruncMod);
                self.divides |= outer && whole;
                if whole || *op == Div { 4 } else { 1 }
            }
            ExprKind::Not(_) | ExprKind::Cast(_) => 1,
            ExprKind::Call(CallTarget::Reinterpret(_), _) => 1,
            ExprKind::Call(CallTarget::Intrin(op), _) => {
                self.heavy |= op.cost() > 1;
                op.cost()
            }
            ExprKind::Call(..) | ExprKind::Undef => {
                self.opaque = true;
                0
            }
            _ => 0,
        };
        if !outer {
            self.work += work;
        }
        match e.kind() {
            ExprKind::Load(_, indices) => {
                self.in_index = true;
                indices.iter().for_each(|i| self.expr(i));
            }
            ExprKind::Select(c, t, f) | ExprKind::IfThenElse(c, t, f) => {
                self.branches |= matches!(e.kind(), ExprKind::IfThenElse(..));
                self.in_index |= !c.effects().loads;
                self.expr(c);
                self.in_index = outer;
                self.expr(t);
                self.expr(f);
            }
            ExprKind::Int(_) | ExprKind::Float(_) => {}
            _ => {
                self.computes |= !outer;
                visit::walk_expr(self, e);
            }
        }
        self.in_index = outer;
    }
}
