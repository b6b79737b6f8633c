//! Whether the iterations of a parallel loop are worth waking other threads for, where sizes are open.
//!
//! A loop of known sizes is parallel because it is worth it. How much work a loop of open sizes is shows when the sizes
//! are known: then it is computed, from the extents of the loops inside, and too little of it stays on one thread.

use std::ops::{Add, Mul};
use tilewright_ir::hash::HashSet;

use tilewright_ir::visit::{Visit, free_vars, walk_expr};
use tilewright_ir::{BinOp, Buffer, CallTarget, DType, Expr, ExprKind, Range, Stmt, StmtKind, Var};
use tilewright_target::{PARALLEL_WORK, UPDATES};

/// What a store of one cell costs, where no vector is stored.
const SCALAR: f64 = 4.0;

/// How many instructions of a function, such as `exp`, take as long as a store.
const INSTRUCTIONS: f64 = 8.0;

/// The condition that a loop of open sizes is worth being shared; `None` for one of known sizes, or where that is not
/// found.
pub(super) fn is_worth(var: &Var, range: &Range, body: &Stmt) -> Option<Expr> {
    let mut work = Work { inside: HashSet::default() };
    work.inside.insert(var.clone());
    match Amount::of(&range.extent) * work.of(body)? {
        Amount::Known(_) => None,
        Amount::Open(all) => Some(all.greater_equal(float(PARALLEL_WORK as f64))),
    }
}

fn float(n: f64) -> Expr {
    Expr::float(n, DType::F64)
}

/// A number of stores, in `float64`: products of extents may be large.
enum Amount {
    Known(f64),
    Open(Expr),
}

impl Amount {
    fn of(e: &Expr) -> Amount {
        match e.as_int() {
            Some(n) => Amount::Known(n as f64),
            None => Amount::Open(e.clone().cast(DType::F64)),
        }
    }

    fn expr(self) -> Expr {
        match self {
            Amount::Known(n) => float(n),
            Amount::Open(e) => e,
        }
    }

    fn max(self, other: Amount) -> Amount {
        match (self, other) {
            (Amount::Known(a), Amount::Known(b)) => Amount::Known(a.max(b)),
            (a, b) => Amount::Open(a.expr().max(b.expr())),
        }
    }
}

impl Add for Amount {
    type Output = Amount;

    fn add(self, other: Amount) -> Amount {
        match (self, other) {
            (Amount::Known(a), Amount::Known(b)) => Amount::Known(a + b),
            (Amount::Known(0.0), a) | (a, Amount::Known(0.0)) => a,
            (a, b) => Amount::Open(a.expr() + b.expr()),
        }
    }
}

impl Mul for Amount {
    type Output = Amount;

    fn mul(self, other: Amount) -> Amount {
        match (self, other) {
            (Amount::Known(a), Amount::Known(b)) => Amount::Known(a * b),
            (Amount::Known(1.0), a) | (a, Amount::Known(1.0)) => a,
            (a, b) => Amount::Open(a.expr() * b.expr()),
        }
    }
}

/// Counts the stores of statements.
struct Work {
    /// Variables that are not known outside of the loop.
    inside: HashSet<Var>,
}

impl Work {
    /// The work of a statement; `None` where that depends on what is not known outside.
    fn of(&mut self, s: &Stmt) -> Option<Amount> {
        Some(match s.kind() {
            StmtKind::Store { buffer, value, .. } => Amount::Known(of_store(buffer, value)),
            StmtKind::For { var, range, body, .. } => {
                let times = self.most(&range.extent)?;
                self.inside.insert(var.clone());
                times * self.of(body)?
            }
            StmtKind::Let { var, body, .. } => {
                self.inside.insert(var.clone());
                self.of(body)?
            }
            StmtKind::If { then, otherwise, .. } => {
                let then = self.of(then)?;
                match otherwise {
                    Some(otherwise) => then.max(self.of(otherwise)?),
                    None => then,
                }
            }
            StmtKind::Seq(list) => {
                list.iter().try_fold(Amount::Known(0.0), |sum, s| Some(sum + self.of(s)?))?
            }
            StmtKind::Allocate { body, .. }
            | StmtKind::Constant { body, .. }
            | StmtKind::Declare { body, .. } => self.of(body)?,
            StmtKind::Assert { .. } => Amount::Known(0.0),
            _ => return None,
        })
    }

    /// What an extent is at most, in terms of what is known outside.
    fn most(&self, extent: &Expr) -> Option<Amount> {
        if !extent.effects().loads && free_vars(extent).iter().all(|v| !self.inside.contains(v)) {
            return Some(Amount::of(extent));
        }
        match extent.kind() {
            ExprKind::Binary(BinOp::Min, a, b) => self.most(a).or_else(|| self.most(b)),
            ExprKind::Cast(x) => self.most(x),
            _ => None,
        }
    }
}

/// A store of a vector counts as its lanes.
fn of_store(buffer: &Buffer, value: &Expr) -> f64 {
    let mut functions = Functions { instructions: 0, updates: false, buffer };
    functions.expr(value);
    let lanes = value.dtype().lanes;
    let one = match lanes {
        1 => SCALAR,
        // Vectors of sums stay in registers.
        _ if functions.updates => 1.0 / UPDATES as f64,
        _ => 1.0,
    };
    f64::from(lanes) * (one + functions.instructions as f64 / INSTRUCTIONS)
}

/// What a value takes beside a few instructions.
struct Functions<'a> {
    instructions: usize,
    /// Whether it reads the buffer to which it is stored.
    updates: bool,
    buffer: &'a Buffer,
}

impl Visit for Functions<'_> {
    fn expr(&mut self, e: &Expr) {
        match e.kind() {
            ExprKind::Call(CallTarget::Intrin(op), _) if op.cost() > 1 => {
                self.instructions += op.cost();
            }
            ExprKind::Load(from, _) => self.updates |= from.data == self.buffer.data,
            _ => {}
        }
        walk_expr(self, e);
    }
}
