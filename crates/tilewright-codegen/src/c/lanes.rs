//! Vectors of as many lanes as C's vector types do not have, as several that it has: twelve are eight and four.

use tilewright_ir::{Buffer, CallTarget, Expr, ExprKind};

/// The lanes of C's vectors, the most first.
const SIZES: [u16; 4] = [16, 8, 4, 2];

/// Where parts of a vector are stored, and their values; `None` where it is one of C's, or a part has no value of its
/// own.
pub(super) fn parts(
    buffer: &Buffer,
    indices: &[Expr],
    value: &Expr,
) -> Option<Vec<(Vec<Expr>, Expr)>> {
    let lanes = value.dtype().lanes;
    if lanes < 2 || SIZES.contains(&lanes) || buffer.dtype().is_bool() {
        return None;
    }
    let (mut parts, mut from) = (Vec::new(), 0);
    while from < lanes {
        let count = SIZES.into_iter().find(|n| *n <= lanes - from).unwrap_or(1);
        let at = indices.iter().map(|i| part(i, from, count)).collect::<Option<_>>()?;
        parts.push((at, part(value, from, count)?));
        from += count;
    }
    Some(parts)
}

/// So many lanes of an expression, from one on.
fn part(e: &Expr, from: u16, count: u16) -> Option<Expr> {
    if e.dtype().lanes == 1 {
        return Some(e.clone());
    }
    let of = |e: &Expr| part(e, from, count);
    Some(match e.kind() {
        ExprKind::Ramp(base, step) => {
            let first = base.clone() + step.clone() * i64::from(from);
            if count == 1 { first } else { Expr::ramp(first, step.clone(), count) }
        }
        ExprKind::Broadcast(a) if count == 1 => a.clone(),
        ExprKind::Broadcast(a) => Expr::broadcast(a.clone(), count),
        ExprKind::Cast(a) => Expr::cast_node(of(a)?, e.dtype().with_lanes(count)),
        ExprKind::Not(a) => Expr::not_node(of(a)?),
        ExprKind::Binary(op, a, b) => Expr::binary(*op, of(a)?, of(b)?),
        ExprKind::Select(c, t, f) => Expr::select(of(c)?, of(t)?, of(f)?),
        ExprKind::IfThenElse(c, t, f) if c.dtype().lanes == 1 => {
            Expr::if_then_else(c.clone(), of(t)?, of(f)?)
        }
        ExprKind::Load(b, at) => Expr::load(b, at.iter().map(of).collect::<Option<Vec<_>>>()?),
        ExprKind::Call(target @ CallTarget::Intrin(_), args) => {
            let args = args.iter().map(of).collect::<Option<Vec<_>>>()?;
            Expr::call(target.clone(), args, e.dtype().with_lanes(count))
        }
        _ => return None,
    })
}
