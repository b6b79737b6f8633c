//! Arithmetic of expressions as Rust's operators: both sides are brought to one type, and constants and
//! neutral elements of integers are folded. Nothing here folds floating point.

use std::ops;

use crate::dtype::{DType, TypeKind};
use crate::expr::{BinOp, Expr, Var};
use crate::scalar::eval_int;

impl Expr {
    /// `self // other` of integers.
    pub fn floordiv(self, other: impl IntoExpr) -> Expr {
        apply(BinOp::FloorDiv, self, other)
    }
    /// `self % other` of integers, with the sign of `other`.
    pub fn floormod(self, other: impl IntoExpr) -> Expr {
        apply(BinOp::FloorMod, self, other)
    }
    /// The smaller of both.
    pub fn min(self, other: impl IntoExpr) -> Expr {
        apply(BinOp::Min, self, other)
    }
    /// The larger of both.
    pub fn max(self, other: impl IntoExpr) -> Expr {
        apply(BinOp::Max, self, other)
    }
    /// `self == other`.
    pub fn equal(self, other: impl IntoExpr) -> Expr {
        apply(BinOp::Eq, self, other)
    }
    /// `self != other`.
    pub fn not_equal(self, other: impl IntoExpr) -> Expr {
        apply(BinOp::Ne, self, other)
    }
    /// `self < other`.
    pub fn less(self, other: impl IntoExpr) -> Expr {
        apply(BinOp::Lt, self, other)
    }
    /// `self <= other`.
    pub fn less_equal(self, other: impl IntoExpr) -> Expr {
        apply(BinOp::Le, self, other)
    }
    /// `self > other`.
    pub fn greater(self, other: impl IntoExpr) -> Expr {
        apply(BinOp::Gt, self, other)
    }
    /// `self >= other`.
    pub fn greater_equal(self, other: impl IntoExpr) -> Expr {
        apply(BinOp::Ge, self, other)
    }
    /// Both, of `bool`.
    pub fn and(self, other: impl IntoExpr) -> Expr {
        apply(BinOp::And, self, other)
    }
    /// Either, of `bool`.
    pub fn or(self, other: impl IntoExpr) -> Expr {
        apply(BinOp::Or, self, other)
    }
}

/// What may stand on the right of an operator: an expression, a variable, or a number that takes
/// the type of the left side.
pub trait IntoExpr {
    /// The expression, given the type of the other operand.
    fn into_expr(self, like: DType) -> Expr;
}

impl IntoExpr for Expr {
    fn into_expr(self, _: DType) -> Expr {
        self
    }
}
impl IntoExpr for &Expr {
    fn into_expr(self, _: DType) -> Expr {
        self.clone()
    }
}
impl IntoExpr for &Var {
    fn into_expr(self, _: DType) -> Expr {
        self.expr()
    }
}
impl IntoExpr for i64 {
    /// A number that does not fit `int32` is one of `int64`: it must not become another number.
    fn into_expr(self, like: DType) -> Expr {
        let scalar = if like.is_float() {
            Expr::float(self as f64, like.scalar())
        } else if narrows(self, like) {
            Expr::int(self, DType::I64)
        } else {
            Expr::int(self, like.scalar())
        };
        splat(scalar, like.lanes)
    }
}
impl IntoExpr for f64 {
    fn into_expr(self, like: DType) -> Expr {
        splat(Expr::constant(self, like.scalar()), like.lanes)
    }
}

fn splat(value: Expr, lanes: u16) -> Expr {
    if value.dtype().lanes == lanes { value } else { Expr::broadcast(value, lanes) }
}

/// Whether `int32`, the type of most indices, would change the value of a constant of `int64`.
fn narrows(value: i64, to: DType) -> bool {
    to.scalar() == DType::I32 && i32::try_from(value).is_err()
}

/// Brings two operands to one type: scalars are broadcast; integers take the wider width, a
/// number with a float becomes that float, and a constant takes the type of the other side, unless
/// that is `int32` and does not hold it.
fn match_types(a: Expr, b: Expr) -> (Expr, Expr) {
    let lanes = a.dtype().lanes.max(b.dtype().lanes);
    let (a, b) = (splat(a, lanes), splat(b, lanes));
    let (x, y) = (a.dtype(), b.dtype());
    if x == y {
        return (a, b);
    }
    let to = match (is_constant_of(&a, y), is_constant_of(&b, x)) {
        (true, false) if rank_of(x).0 <= rank_of(y).0 => y,
        (false, true) if rank_of(y).0 <= rank_of(x).0 => x,
        _ if rank_of(x) >= rank_of(y) => x,
        _ => y,
    };
    (convert(a, to), convert(b, to))
}

fn rank_of(d: DType) -> (i32, u8) {
    match d.kind {
        TypeKind::Bool => (0, 1),
        TypeKind::UInt => (1, d.bits),
        TypeKind::Int => (1, d.bits),
        _ => (2, d.bits),
    }
}

fn is_constant_of(e: &Expr, to: DType) -> bool {
    e.as_int().is_some_and(|v| !narrows(v, to))
}

/// [`Expr::cast`], where an integer constant also becomes a float constant.
fn convert(e: Expr, to: DType) -> Expr {
    match e.as_int() {
        Some(v) if to.is_float() && to.lanes == 1 => Expr::float(v as f64, to),
        _ => e.cast(to),
    }
}

fn apply(op: BinOp, a: Expr, b: impl IntoExpr) -> Expr {
    let b = b.into_expr(a.dtype());
    let (a, b) = match_types(a, b);
    fold_binary(op, &a, &b).unwrap_or_else(|| Expr::binary(op, a, b))
}

/// The value of an operator on two integer or `bool` constants of one scalar type, or an operand
/// that a neutral element leaves; `None` where there is nothing to fold (division by zero stays).
pub fn fold_binary(op: BinOp, a: &Expr, b: &Expr) -> Option<Expr> {
    use BinOp::*;
    let dtype = a.dtype();
    if !(dtype.is_int() || dtype.is_bool()) || dtype.lanes != 1 || b.dtype() != dtype {
        return None;
    }
    match (a.as_int(), b.as_int()) {
        (Some(x), Some(y)) => {
            let value = eval_int(op, x, y, dtype)?;
            let to = if op.is_compare() || op.is_logic() { DType::BOOL } else { dtype };
            Some(Expr::int(value, to))
        }
        (Some(0), None) => match op {
            Add | Or => Some(b.clone()),
            Mul | And => Some(a.clone()),
            _ => None,
        },
        (Some(1), None) => match op {
            Mul | And => Some(b.clone()),
            Or if dtype.is_bool() => Some(a.clone()),
            _ => None,
        },
        (None, Some(0)) => match op {
            Add | Sub | Or => Some(a.clone()),
            Mul | And => Some(b.clone()),
            _ => None,
        },
        (None, Some(1)) => match op {
            Mul | FloorDiv | TruncDiv | And => Some(a.clone()),
            FloorMod | TruncMod => Some(Expr::int(0, dtype)),
            Or if dtype.is_bool() => Some(b.clone()),
            _ => None,
        },
        _ => None,
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident),*) => { $(
        impl<R: IntoExpr> ops::$trait<R> for Expr {
            type Output = Expr;
            fn $method(self, other: R) -> Expr { apply(BinOp::$op, self, other) }
        }
        impl<R: IntoExpr> ops::$trait<R> for &Expr {
            type Output = Expr;
            fn $method(self, other: R) -> Expr { apply(BinOp::$op, self.clone(), other) }
        }
        impl<R: IntoExpr> ops::$trait<R> for &Var {
            type Output = Expr;
            fn $method(self, other: R) -> Expr { apply(BinOp::$op, self.expr(), other) }
        } )*
    };
}
operators!(Add add Add, Sub sub Sub, Mul mul Mul, Div div Div);

impl ops::Not for Expr {
    type Output = Expr;
    fn not(self) -> Expr {
        match self.as_int() {
            Some(v) if self.dtype().lanes == 1 => Expr::bool(v == 0),
            _ => Expr::not_node(self),
        }
    }
}

impl ops::Neg for Expr {
    type Output = Expr;
    /// `0 - x` of integers and `-1 * x` of floats, so that `-0.0` comes out right.
    fn neg(self) -> Expr {
        let dtype = self.dtype();
        match (self.as_int(), self.as_float()) {
            (Some(v), _) => Expr::int(v.wrapping_neg(), dtype),
            (_, Some(v)) => Expr::float(-v, dtype),
            _ if dtype.is_float() => self * -1.0,
            _ => 0i64.into_expr(dtype) - self,
        }
    }
}

impl From<&Var> for Expr {
    fn from(var: &Var) -> Expr {
        var.expr()
    }
}
