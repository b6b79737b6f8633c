//! Copies of what loops that become statements repeat, where the copies have no conditions left.
//!
//! ```text
//! for p in unroll(4):                     for r in unroll(1): sums[r] += x[0]
//!     for r in unroll(2):             →   for r in unroll(2): sums[r] += x[1]
//!         if r <= p and p - r < 3:        ...
//!             sums[r] += x[p]
//! ```
//!
//! Such a loop would become statements when code is generated. Here its conditions are decided before
//! anything asks what holds where they do. Where they are parts of a condition beside masks of lanes, copies are
//! made when nothing asks any more. The pass `unroll_loop` does it with every such loop.

use tilewright_ir::hash::HashSet;

use tilewright_ir::visit::{Subst, fold_func, fold_stmt_children, free_vars, walk_stmt};
use tilewright_ir::{Expr, Fold, ForKind, Range, Stmt, StmtKind, TensorFunc, Var, Visit};

use crate::pass::{Number, Pass, Run};

/// The most copies of what loops inside of one another repeat.
const COPIES: Number = Number {
    name: "copies",
    summary: "the most copies of what loops inside of one another repeat",
    default: 256,
    most: 65_536,
};

/// `unroll_loop` by name.
pub const PASS: Pass = Pass {
    name: "unroll_loop",
    summary: "turn unrolled loops from zero to a number into a statement for each iteration",
    options: &[&COPIES],
    run: Run::Tensor(|f, given, _| {
        let most = given.get(&COPIES)?;
        Ok(fold_func(&mut Unroll { wanted: &|_| true, most, copies: 1 }, f))
    }),
};

/// A function without loops that become statements and alone decide a condition, or one of its `parts`; `None` where
/// it has none.
pub(super) fn unroll_conditions(func: &TensorFunc, parts: bool) -> Option<TensorFunc> {
    let mut found = Decisive { parts, ..Decisive::default() };
    found.stmt(&func.body);
    let mut unroll =
        Unroll { wanted: &|v| found.vars.contains(v), most: COPIES.default, copies: 1 };
    (!found.vars.is_empty()).then(|| fold_func(&mut unroll, func))
}

/// The number of iterations of a loop that becomes statements, from zero on.
fn iterations(s: &Stmt) -> Option<(&Var, i64, &Stmt)> {
    let StmtKind::For { var, range: Range { min, extent }, kind, body, .. } = s.kind() else {
        return None;
    };
    let known = min.as_int() == Some(0) && *kind == ForKind::Unrolled;
    known.then(|| extent.as_int()).flatten().map(|n| (var, n, body))
}

/// Loops that become statements, of which conditions depend and on nothing else.
#[derive(Default)]
struct Decisive {
    /// Whether parts of a condition count as one.
    parts: bool,
    around: Vec<Var>,
    vars: HashSet<Var>,
}

impl Visit for Decisive {
    fn stmt(&mut self, s: &Stmt) {
        if let StmtKind::If { cond, .. } = s.kind() {
            let all = if self.parts { cond.conjuncts() } else { vec![cond.clone()] };
            for cond in all.iter().filter(|c| c.loaded_buffers().is_empty()) {
                let vars = free_vars(cond);
                if vars.iter().all(|v| self.around.contains(v)) {
                    self.vars.extend(vars);
                }
            }
        }
        let var = iterations(s).map(|(var, ..)| var.clone());
        let inside = var.is_some();
        self.around.extend(var);
        walk_stmt(self, s);
        if inside {
            self.around.pop();
        }
    }
}

/// Copies what loops repeat, of those whose variable is wanted.
struct Unroll<'a> {
    wanted: &'a dyn Fn(&Var) -> bool,
    most: u32,
    /// How many copies the loops around make.
    copies: i64,
}

impl Fold for Unroll<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let Some((var, count, body)) = iterations(s).filter(|l| (self.wanted)(l.0)) else {
            return fold_stmt_children(self, s);
        };
        let copies = self.copies.saturating_mul(count);
        if copies > i64::from(self.most) {
            return fold_stmt_children(self, s);
        }
        let around = std::mem::replace(&mut self.copies, copies);
        let body = self.stmt(body);
        self.copies = around;
        Stmt::seq((0..count).map(|k| {
            let mut copy = Subst::vars([(var.clone(), Expr::int(k, var.dtype()))]);
            copy.refresh = true;
            copy.stmt(&body)
        }))
    }
}
