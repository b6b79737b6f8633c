//! Minima and maxima that a loop carries from one iteration to the next.
//!
//! With masks a maximum that keeps `NaN` is two instructions, a test of one side and a maximum under its result:
//!
//! ```text
//! tested on the right:  x = load; k = is_number(x); x{k} = max(x, acc); acc = x
//! tested on the left:   k = is_number(acc); acc{k} = max(acc, [memory])
//! ```
//!
//! The first has the next iteration wait for one instruction, and what several maxima read is tested once; the second
//! is shorter. So a loop that carries many values at a time, and updates each of them once, has the second.

use tilewright_ir::equal::{loads_cell, same_expr};
use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, ForKind, Stmt, StmtKind, Var};

/// So many values, carried side by side, are work enough for the machine until the first is there again.
const MANY: i64 = 6;

/// Whether a loop with this body carries many minima and maxima, and each iteration updates each of them once.
pub(super) fn carries_many(body: &Stmt) -> bool {
    let mut carried = Carried::default();
    carried.stmt(body);
    carried.count >= MANY && !carried.again
}

/// The minima and maxima that a statement updates.
#[derive(Default)]
struct Carried<'a> {
    /// Loops around that are unrolled.
    around: Vec<(&'a Var, i64)>,
    cells: Vec<(&'a Buffer, &'a [Expr])>,
    /// How many vectors or values they are.
    count: i64,
    /// Whether one of them is updated again.
    again: bool,
}

impl<'a> Carried<'a> {
    fn stmt(&mut self, s: &'a Stmt) {
        match s.kind() {
            StmtKind::Seq(all) => all.iter().for_each(|s| self.stmt(s)),
            StmtKind::If { then, otherwise, .. } => {
                self.stmt(then);
                otherwise.iter().for_each(|s| self.stmt(s));
            }
            StmtKind::For { var, range, kind: ForKind::Unrolled, body, .. } => {
                if let Some(extent) = range.extent.as_int() {
                    self.around.push((var, extent));
                    self.stmt(body);
                    self.around.pop();
                }
            }
            StmtKind::Store { buffer, indices, value } => {
                let ExprKind::Binary(BinOp::Min | BinOp::Max, acc, _) = value.kind() else {
                    return;
                };
                if !loads_cell(acc, buffer, indices) {
                    return;
                }
                let is_same = |(other, at): &(&Buffer, &[Expr])| {
                    *other == buffer && at.iter().zip(indices).all(|(a, b)| same_expr(a, b))
                };
                let moves = |v: &Var| indices.iter().any(|i| i.mentions(v));
                self.again |= !self.around.iter().all(|(v, _)| moves(v));
                self.again = self.again || self.cells.iter().any(is_same);
                self.count += self.around.iter().map(|(_, n)| n).product::<i64>();
                self.cells.push((buffer, indices));
            }
            _ => {}
        }
    }
}
