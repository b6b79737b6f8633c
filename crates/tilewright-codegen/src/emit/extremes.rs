//! Minima and maxima that a loop carries from one iteration to the next.
//!
//! With masks a maximum that keeps `NaN` is two instructions, a test of one side and a maximum under its result:
//!
//! ```text
//! tested on the right:  x = load; k = is_number(x); x{k} = max(x, acc); acc = x
//! tested on the left:   k = is_number(acc); acc{k} = max(acc, [memory])
//! ```
//!
//! The first has the next iteration wait for one instruction, the second is shorter. So a loop that carries
//! many values at a time, of which none waits long for its turn, has the second.

use tilewright_ir::equal::loads_cell;
use tilewright_ir::{BinOp, ExprKind, ForKind, Stmt, StmtKind, Var};

/// So many values, carried side by side, are work enough for the machine until the first is there again.
const MANY: i64 = 6;

/// Whether a loop with this body carries many minima and maxima, and each iteration updates each of them once.
pub(super) fn carries_many(body: &Stmt) -> bool {
    carried(body, &mut Vec::new()) >= MANY
}

/// How many vectors or values of minima and maxima a statement updates once; `around` are loops that are unrolled.
fn carried(s: &Stmt, around: &mut Vec<(Var, i64)>) -> i64 {
    match s.kind() {
        StmtKind::Seq(all) => all.iter().map(|s| carried(s, around)).sum(),
        StmtKind::If { then, otherwise, .. } => {
            carried(then, around) + otherwise.as_ref().map_or(0, |s| carried(s, around))
        }
        StmtKind::For { var, range, kind: ForKind::Unrolled, body, .. } => {
            let Some(extent) = range.extent.as_int() else { return 0 };
            around.push((var.clone(), extent));
            let count = carried(body, around);
            around.pop();
            count
        }
        StmtKind::Store { buffer, indices, value } => {
            let ExprKind::Binary(BinOp::Min | BinOp::Max, acc, _) = value.kind() else { return 0 };
            let each = |v: &Var| indices.iter().any(|i| i.mentions(v));
            let once = loads_cell(acc, buffer, indices) && around.iter().all(|(v, _)| each(v));
            if once { around.iter().map(|(_, n)| n).product() } else { 0 }
        }
        _ => 0,
    }
}
