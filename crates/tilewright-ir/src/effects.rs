//! What evaluating an expression, or running a statement, does besides giving a value.
//!
//! [`Effects`] is a set of facts that follows from the node and from the effects of its parts. Each
//! node keeps its own since it was made ([`Expr::effects`], [`Stmt::effects`]), so asking takes
//! constant time, also where nodes are shared. A fact holds if any part has it, whether or not
//! that part is evaluated: without it, nothing of its kind happens.

use std::ops::{BitOr, BitOrAssign};

use crate::demand;
use crate::dtype::DType;
use crate::expr::{BinOp, CallTarget, Expr, ExprKind, Var};
use crate::stmt::{Block, Stmt, StmtKind};
use crate::visit::{Visit, walk_expr_kind, walk_stmt_kind};

/// What an expression or a statement may do. A fact that does not stand is certain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Calls a C function, or what is kept without being understood: that may do anything.
    pub calls: bool,
    /// Contains `T.undef()`, whose value may be another one each time.
    pub arbitrary: bool,
    /// Reads memory.
    pub loads: bool,
    /// Contains an operation that is not defined for all operands: a division of integers, a shift,
    /// a power; see [`demand`](crate::demand::demand).
    pub partial: bool,
    /// Has parts that are evaluated only sometimes: `and`, `or`, `if_then_else`.
    pub lazy: bool,
    /// Computes with floating point.
    pub floats: bool,
    /// Binds variables inside of an expression.
    pub binds: bool,
    /// Calls built-in functions.
    pub intrinsics: bool,
    /// Stores to a buffer.
    pub stores: bool,
    /// Asserts a condition, which may end the run.
    pub asserts: bool,
    /// Assumes a condition.
    pub assumes: bool,
}

impl Effects {
    /// Whether two evaluations may differ although memory is the same, or change something.
    pub fn impure(self) -> bool {
        self.calls || self.arbitrary
    }

    /// Whether the value is the same wherever its variables are.
    pub fn constant(self) -> bool {
        !self.impure() && !self.loads
    }

    /// Whether evaluating it where it was not evaluated before may stop the program or read outside
    /// of a buffer.
    pub fn may_fail(self) -> bool {
        self.calls || self.loads || self.partial
    }

    /// Whether evaluating all parts in any order does nothing that evaluating them as they stand
    /// does not: no part that could fail is evaluated only sometimes.
    pub fn free_order(self) -> bool {
        !(self.impure() || self.lazy && self.may_fail())
    }

    /// Of a node of an expression alone.
    fn of_node(kind: &ExprKind, dtype: DType) -> Effects {
        let partial = demand::is_partial(kind, dtype);
        let mut own = Effects { floats: dtype.is_float(), partial, ..Effects::default() };
        match kind {
            ExprKind::Undef => own.arbitrary = true,
            ExprKind::Call(CallTarget::Intrin(_) | CallTarget::Reinterpret(_), _) => {
                own.intrinsics = true;
            }
            ExprKind::Call(CallTarget::Extern(_) | CallTarget::Opaque(_), _) => own.calls = true,
            ExprKind::Load(..) => own.loads = true,
            ExprKind::Let(..) => own.binds = true,
            ExprKind::IfThenElse(..) | ExprKind::Binary(BinOp::And | BinOp::Or, ..) => {
                own.lazy = true;
            }
            _ => {}
        }
        own
    }

    /// Of a statement alone, without its parts.
    fn of_stmt_node(kind: &StmtKind) -> Effects {
        Effects {
            stores: matches!(kind, StmtKind::Store { .. }),
            asserts: matches!(kind, StmtKind::Assert { .. }),
            assumes: matches!(kind, StmtKind::Assume(_)),
            ..Effects::default()
        }
    }
}

impl BitOr for Effects {
    type Output = Effects;
    fn bitor(self, other: Effects) -> Effects {
        Effects {
            calls: self.calls || other.calls,
            arbitrary: self.arbitrary || other.arbitrary,
            loads: self.loads || other.loads,
            partial: self.partial || other.partial,
            lazy: self.lazy || other.lazy,
            floats: self.floats || other.floats,
            binds: self.binds || other.binds,
            intrinsics: self.intrinsics || other.intrinsics,
            stores: self.stores || other.stores,
            asserts: self.asserts || other.asserts,
            assumes: self.assumes || other.assumes,
        }
    }
}

impl BitOrAssign for Effects {
    fn bitor_assign(&mut self, other: Effects) {
        *self = *self | other;
    }
}

impl Stmt {
    /// What evaluating the expressions of the statement itself may do, without the statements and
    /// blocks inside of it.
    pub fn own_effects(&self) -> Effects {
        struct Own(Effects);
        impl Visit for Own {
            fn expr(&mut self, e: &Expr) {
                self.0 |= e.effects();
            }
            fn stmt(&mut self, _: &Stmt) {}
            fn block(&mut self, _: &Block) {}
        }
        let mut own = Own(Effects::default());
        walk_stmt_kind(&mut own, self.kind());
        own.0
    }
}

/// What a node keeps of itself and its parts from the time when it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summary {
    pub effects: Effects,
    /// See [`Expr::size`] and [`Stmt::size`].
    pub size: u32,
    /// See [`Stmt::nesting`].
    pub nesting: u32,
    /// A bit for each variable that is read, see [`var_bit`].
    pub vars: u64,
}

impl Summary {
    pub fn from_kind(kind: &ExprKind, dtype: DType) -> Summary {
        let vars = if let ExprKind::Var(v) = kind { var_bit(v) } else { 0 };
        let effects = Effects::of_node(kind, dtype);
        let mut summary = Summary { effects, size: 1, nesting: 0, vars };
        walk_expr_kind(&mut summary, kind);
        summary
    }

    pub(crate) fn of_stmt(kind: &StmtKind) -> Summary {
        let effects = Effects::of_stmt_node(kind);
        let mut summary = Summary { effects, size: 1, nesting: 0, vars: 0 };
        walk_stmt_kind(&mut summary, kind);
        let is_level = !matches!(
            kind,
            StmtKind::Seq(_)
                | StmtKind::Store { .. }
                | StmtKind::Evaluate(_)
                | StmtKind::Assume(_)
                | StmtKind::Assert { .. }
        );
        summary.nesting = summary.nesting.saturating_add(is_level.into());
        summary
    }

    fn add(&mut self, part: Summary) {
        self.effects |= part.effects;
        self.size = self.size.saturating_add(part.size);
        self.nesting = self.nesting.max(part.nesting);
        self.vars |= part.vars;
    }
}

impl Visit for Summary {
    fn expr(&mut self, e: &Expr) {
        self.add(e.summary());
    }
    fn stmt(&mut self, s: &Stmt) {
        self.add(s.summary());
    }
}

/// One of 64 bits for a variable: a set of bits that lacks it is of a set that lacks the variable.
pub(crate) fn var_bit(v: &Var) -> u64 {
    1 << (v.id() % 64)
}
