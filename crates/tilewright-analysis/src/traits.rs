//! What matters about an expression before it is given to the sets.

use std::collections::HashSet;

use tilewright_ir::visit::{fold_expr_children, walk_expr};
use tilewright_ir::{BinOp, Buffer, CallTarget, Expr, ExprKind, Fold, TypeKind, Visit};
use tilewright_sets::Domain;

/// What evaluating an expression may do.
pub struct Traits {
    /// No effects, and the same value each time.
    pub pure: bool,
    /// Calls something that may do anything.
    pub calls: bool,
    /// Reads memory.
    pub loads: bool,
    /// Computes with floating point.
    pub floats: bool,
    /// Has parts that are evaluated only sometimes.
    lazy: bool,
    /// Divides by something that may be zero.
    divides: bool,
}

impl Traits {
    const NONE: Traits = Traits {
        pure: true,
        calls: false,
        loads: false,
        floats: false,
        lazy: false,
        divides: false,
    };

    /// Of an expression, its parts included.
    pub fn of(e: &Expr) -> Traits {
        let mut t = Traits::NONE;
        t.expr(e);
        t
    }

    /// No effects, the same value each time, and no memory.
    pub fn plain(&self) -> bool {
        self.pure && !self.loads
    }

    /// Whether evaluating all of it in any order does nothing that evaluating it as it stands
    /// does not.
    pub fn free_order(&self) -> bool {
        self.pure && !(self.lazy && (self.loads || self.divides))
    }
}

impl Visit for Traits {
    fn expr(&mut self, e: &Expr) {
        self.floats |= e.dtype().is_float();
        match e.kind() {
            ExprKind::Undef => self.pure = false,
            ExprKind::Call(CallTarget::Extern(_) | CallTarget::Opaque(_), _) => {
                (self.pure, self.calls) = (false, true);
            }
            ExprKind::Load(..) => self.loads = true,
            ExprKind::Binary(BinOp::And | BinOp::Or, ..) | ExprKind::IfThenElse(..) => {
                self.lazy = true;
            }
            ExprKind::Binary(op, _, by) => {
                let divides = matches!(
                    op,
                    BinOp::FloorDiv | BinOp::FloorMod | BinOp::TruncDiv | BinOp::TruncMod
                );
                self.divides |= divides && by.as_int().is_none_or(|k| k == 0);
            }
            _ => {}
        }
        walk_expr(self, e);
    }
}

/// Whether an expression has no effects and reads no memory.
pub fn is_plain(e: &Expr) -> bool {
    Traits::of(e).plain()
}

/// Buffers that an expression loads from.
pub fn loaded(e: &Expr) -> HashSet<Buffer> {
    struct Loaded(HashSet<Buffer>);
    impl Visit for Loaded {
        fn expr(&mut self, e: &Expr) {
            if let ExprKind::Load(b, _) = e.kind() {
                self.0.insert(b.clone());
            }
            walk_expr(self, e);
        }
    }
    let mut loaded = Loaded(HashSet::new());
    loaded.expr(e);
    loaded.0
}

/// Whether an operation of an expression may leave its type, where that is not ruled out by the
/// expression being index arithmetic. In a stored value (`data`) it is ruled out by bounds only.
pub fn overflows(e: &Expr, domain: &Domain, data: bool) -> bool {
    let mut overflow = Overflow { domain, data, found: false };
    overflow.expr(e);
    overflow.found
}

struct Overflow<'a> {
    domain: &'a Domain,
    data: bool,
    found: bool,
}

impl Visit for Overflow<'_> {
    fn expr(&mut self, e: &Expr) {
        let t = e.dtype();
        // Narrow and unsigned arithmetic is exact in the sets.
        let may_grow = t.kind == TypeKind::Int && t.bits >= 32;
        if let ExprKind::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul, ..) = e.kind()
            && may_grow
        {
            let loads = Traits::of(e).loads;
            if loads || self.data {
                let inside = match self.domain.bounds(e) {
                    Ok((Some(lo), Some(hi))) => {
                        t.min_int() <= Some(lo.into()) && Some(i128::from(hi)) <= t.max_int()
                    }
                    _ => !loads,
                };
                self.found |= !inside;
            }
        }
        // Indices are index arithmetic.
        if !self.found && !matches!(e.kind(), ExprKind::Load(..)) {
            walk_expr(self, e);
        }
    }
}

/// Multiplies constants into sums: `(i * 4 + j) * 16` is `i * 64 + j * 16`.
pub struct Expand;

impl Fold for Expand {
    fn expr(&mut self, e: &Expr) -> Expr {
        if let ExprKind::Load(..) = e.kind() {
            return e.clone();
        }
        let e = fold_expr_children(self, e);
        match e.kind() {
            ExprKind::Binary(BinOp::Mul, a, b) => match (a.as_int(), b.as_int()) {
                (None, Some(k)) => scaled(a, k).unwrap_or(e),
                (Some(k), None) => scaled(b, k).unwrap_or(e),
                _ => e,
            },
            _ => e,
        }
    }
}

/// `e * k` with the factor at the leaves of the sum; `None` where the factor gets too large.
fn scaled(e: &Expr, k: i64) -> Option<Expr> {
    Some(match e.kind() {
        ExprKind::Int(v) => {
            let value = v.checked_mul(k)?;
            let fits = e.dtype().min_int() <= Some(value.into())
                && Some(i128::from(value)) <= e.dtype().max_int();
            fits.then(|| Expr::int(value, e.dtype()))?
        }
        ExprKind::Binary(BinOp::Add, a, b) => scaled(a, k)? + scaled(b, k)?,
        ExprKind::Binary(BinOp::Sub, a, b) => scaled(a, k)? - scaled(b, k)?,
        ExprKind::Binary(BinOp::Mul, a, b) => match (a.as_int(), b.as_int()) {
            (None, Some(_)) => a * scaled(b, k)?,
            (Some(_), None) => b * scaled(a, k)?,
            _ => e * k,
        },
        _ => e * k,
    })
}
