//! Vectors, one lane at a time.

use tilewright_ir::{BinOp, CallTarget, Expr, ExprKind, Var};

/// The value of one lane of a vector expression, as a scalar expression; a scalar one is the same
/// in each lane. `None` where it has no such form.
pub fn lane_of(e: &Expr, lane: &Var) -> Option<Expr> {
    if e.dtype().lanes == 1 {
        return Some(e.clone());
    }
    let one = e.dtype().scalar();
    Some(match e.kind() {
        ExprKind::Broadcast(x) => x.clone(),
        ExprKind::Ramp(base, stride) => {
            let step = Expr::binary(BinOp::Mul, stride.clone(), lane.expr().cast(one));
            Expr::binary(BinOp::Add, base.clone(), step)
        }
        ExprKind::Binary(op, a, b) => Expr::binary(*op, lane_of(a, lane)?, lane_of(b, lane)?),
        ExprKind::Not(a) => Expr::not_node(lane_of(a, lane)?),
        ExprKind::Cast(a) => Expr::cast_node(lane_of(a, lane)?, one),
        ExprKind::Call(CallTarget::Reinterpret(to), args) => {
            Expr::reinterpret_node(lane_of(args.first()?, lane)?, *to)
        }
        ExprKind::Select(c, t, f) => {
            Expr::select(lane_of(c, lane)?, lane_of(t, lane)?, lane_of(f, lane)?)
        }
        ExprKind::IfThenElse(c, t, f) => {
            Expr::if_then_else(lane_of(c, lane)?, lane_of(t, lane)?, lane_of(f, lane)?)
        }
        ExprKind::Load(buffer, indices) if buffer.dtype().lanes == 1 => {
            Expr::load(buffer, indices.iter().map(|e| lane_of(e, lane)).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}
