//! How large a value can get: whether arithmetic of floats stays finite.
//!
//! What is in memory may be promised to be finite; what is computed from it may overflow all the
//! same. `magnitude` bounds the absolute value of an expression from below upwards: a load that is
//! finite is at most the largest value of its type, so that its negation, its half, a minimum or a
//! choice of such values are finite, and a sum, a product or `exp` of them is not known to be, while
//! `exp(tanh(x))` is. Bounds of computed values have one percent of slack for rounding.

use tilewright_ir::hash::HashMap;

use tilewright_ir::scalar::round_to;
use tilewright_ir::{BinOp, Buffer, CallTarget, DType, Expr, ExprKind};

/// Which memory holds nothing but finite numbers.
pub type Finite<'a> = &'a dyn Fn(&Buffer) -> bool;

/// A bound of the absolute value of a number, rounded as its type is; `None` if it may be infinite
/// or `NaN`, or is no number. Takes time linear in the number of nodes.
pub fn magnitude(e: &Expr, finite: Finite<'_>) -> Option<f64> {
    Bounds { finite, known: HashMap::default() }.bound(e)
}

/// The largest finite value of a type, negative ones counted by their absolute value.
fn largest(t: DType) -> Option<f64> {
    t.max_float().or_else(|| {
        Some((t.min_int()?.unsigned_abs() as f64).max(t.max_int()?.unsigned_abs() as f64))
    })
}

struct Bounds<'a> {
    finite: Finite<'a>,
    known: HashMap<usize, Option<f64>>,
}

impl Bounds<'_> {
    fn bound(&mut self, e: &Expr) -> Option<f64> {
        if let Some(known) = self.known.get(&e.address()) {
            return *known;
        }
        let t = e.dtype();
        let bound = match e.kind() {
            // Integers wrap: every value is finite.
            _ if !t.is_float() => largest(t),
            _ => self.float(e),
        };
        let bound = bound.filter(|v| round_to(*v, t).is_finite());
        self.known.insert(e.address(), bound);
        bound
    }

    fn float(&mut self, e: &Expr) -> Option<f64> {
        match e.kind() {
            ExprKind::Float(v) => v.is_finite().then(|| v.abs()),
            ExprKind::Load(b, _) => (self.finite)(b).then(|| largest(e.dtype())).flatten(),
            ExprKind::Cast(a) | ExprKind::Broadcast(a) => self.bound(a),
            ExprKind::Select(_, a, b) | ExprKind::IfThenElse(_, a, b) => {
                Some(self.bound(a)?.max(self.bound(b)?))
            }
            ExprKind::Binary(op, a, b) => {
                let (x, y) = (self.bound(a)?, self.bound(b)?);
                match op {
                    BinOp::Min | BinOp::Max => Some(x.max(y)),
                    BinOp::Add | BinOp::Sub if y == 0.0 => Some(x),
                    BinOp::Add | BinOp::Sub if x == 0.0 => Some(y),
                    // A product with a number up to one does not grow.
                    BinOp::Mul if x <= 1.0 => Some(with_slack(x * y).min(y)),
                    BinOp::Mul if y <= 1.0 => Some(with_slack(x * y).min(x)),
                    BinOp::Add | BinOp::Sub => Some(with_slack(x + y)),
                    BinOp::Mul => Some(with_slack(x * y)),
                    BinOp::Div => match b.kind() {
                        ExprKind::Float(by) if by.abs() >= 1.0 => Some(x),
                        ExprKind::Float(by) if *by != 0.0 => Some(with_slack(x / by.abs())),
                        _ => None,
                    },
                    _ => None,
                }
            }
            ExprKind::Call(CallTarget::Intrin(f), args) => {
                let bound = f.bound(self.bound(args.first()?)?)?;
                Some(if f.is_exact() { bound } else { with_slack(bound) })
            }
            _ => None,
        }
    }
}

fn with_slack(v: f64) -> f64 {
    v * 1.01
}
