//! Guards of reads from textures go where the border of the texture gives what the guard does.
//!
//! ```text
//! if_then_else(1 <= w and w < 9, X[r, w * 4 + c - 4], 0.0)      →     X[r, w * 4 + c - 4]
//! ```
//!
//! A read out of range of a texture gives zero ([`Buffer::border`]). Where a part of the guard fails while
//! the others hold, the read is out of range of one physical axis for certain, and the guard gives zero
//! there, that part goes: neither padding nor a condition is needed. A part stays where there is a point at
//! which the read would give another cell, or where the guard gives another value; the remark says which.
//!
//! This runs on lowered functions, whose buffers have the axes of their memory, after all accesses were
//! proved or asserted to be in range.

use tilewright_ir::condition::parts;
use tilewright_ir::visit::fold_expr_children;
use tilewright_ir::{Buffer, Error, Expr, ExprKind, Fold, Remarks, Result, Span, Stmt, TensorFunc};
use tilewright_polyhedral::scope::{Scope, Scoped, fold_scoped, under};

use crate::pass::{Pass, Run};

/// `use_border` by name.
pub const PASS: Pass = Pass {
    name: "use_border",
    summary: "guards of reads from textures go where the border gives the same",
    options: &[],
    run: Run::Tensor(|f, _, why| use_border(f, why)),
};

/// Lets reads of textures go out of range where that gives what their guards give.
///
/// # Errors
/// Those of [`Scope::at_entry`].
pub fn use_border(func: &TensorFunc, why: &mut Remarks) -> Result<TensorFunc> {
    let mut reads = false;
    func.body.any_expr(|e| {
        reads |= matches!(e.kind(), ExprKind::Load(b, _) if b.border().is_some());
        reads
    });
    if !reads {
        return Ok(func.clone());
    }
    let mut border = Border { scope: Scope::at_entry(func), why, at: func.span };
    Ok(TensorFunc { body: border.stmt(&func.body), ..func.clone() })
}

struct Border<'a> {
    scope: Scope,
    why: &'a mut Remarks,
    at: Option<Span>,
}

impl Scoped for Border<'_> {
    fn scope(&mut self) -> &mut Scope {
        &mut self.scope
    }
}

impl Fold for Border<'_> {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let outside = self.at;
        self.at = s.span().or(outside);
        let new = fold_scoped(self, s);
        self.at = outside;
        new
    }

    fn expr(&mut self, e: &Expr) -> Expr {
        let (ExprKind::IfThenElse(cond, read, other) | ExprKind::Select(cond, read, other)) =
            e.kind()
        else {
            return fold_expr_children(self, e);
        };
        let ExprKind::Load(buffer, indices) = read.kind() else {
            let then = under(self, cond, true, |f| f.expr(read));
            let otherwise = under(self, cond, false, |f| f.expr(other));
            let cond = self.expr(cond);
            return match e.kind() {
                ExprKind::Select(..) => Expr::select(cond, then, otherwise),
                _ => Expr::if_then_else(cond, then, otherwise),
            };
        };
        match buffer.border() {
            Some(border) => {
                self.unguarded(cond, (buffer, indices), other, border).unwrap_or_else(|| e.clone())
            }
            None => fold_expr_children(self, e),
        }
    }
}

impl Border<'_> {
    /// The read with fewer conditions; `None` where all of them stay.
    fn unguarded(
        &mut self,
        cond: &Expr,
        (buffer, indices): (&Buffer, &[Expr]),
        other: &Expr,
        border: f64,
    ) -> Option<Expr> {
        let value = other.as_float().or_else(|| other.as_int().map(|v| v as f64));
        if value != Some(border) {
            self.remark(format!(
                "the guard `{cond}` of a read of `{}` stays: out of range the texture gives {border}, and the guard gives {other}",
                buffer.name
            ));
            return None;
        }
        let mut kept = parts(cond, true);
        let count = kept.len();
        let mut k = 0;
        while k < kept.len() {
            let (part, holds) = kept.remove(k);
            if self.is_outside(&kept, (&part, holds), buffer, indices) {
                continue;
            }
            kept.insert(k, (part, holds));
            k += 1;
        }
        if kept.len() == count {
            return None;
        }
        let read = Expr::load(buffer, indices.to_vec());
        let cond = kept.into_iter().map(|(part, holds)| part.being(holds)).reduce(Expr::and);
        Some(match cond {
            None => read,
            Some(cond) => Expr::if_then_else(cond, read, other.clone()),
        })
    }

    /// Whether a read is out of range wherever one part of its guard fails and the others hold.
    fn is_outside(
        &mut self,
        others: &[(Expr, bool)],
        (part, holds): (&Expr, bool),
        buffer: &Buffer,
        indices: &[Expr],
    ) -> bool {
        let mut scope = self.scope.clone();
        let fails = (part.clone(), !holds);
        let learned = others.iter().chain([&fails]);
        let all_known =
            learned.fold(true, |known, (part, holds)| scope.learn(part, *holds) && known);
        let mut outside = Expr::bool(false);
        for (index, extent) in indices.iter().zip(&buffer.shape) {
            let (Some(index), Some(extent)) = (scope.index(index), scope.index(extent)) else {
                self.remark(format!(
                    "the guard `{part}` of a read of `{}` stays: memory decides its index",
                    buffer.name
                ));
                return false;
            };
            outside = outside.or(index.clone().less(0).or(index.greater_equal(extent)));
        }
        let proof = scope.domain().prove(&outside);
        if all_known && proof.is_yes() {
            return true;
        }
        let name = &buffer.name;
        let error = match proof.witness().filter(|_| all_known) {
            Some(point) => Error::refused(format!(
                "the guard `{part}` of a read of `{name}` stays: where it fails, the read is inside of the texture"
            ))
            .note(format!("at {point}")),
            None => Error::refused(format!(
                "the guard `{part}` of a read of `{name}` stays: it is not known whether the read is outside of the texture where it fails"
            )),
        };
        self.why.push(error.at(self.at));
        false
    }

    fn remark(&mut self, text: String) {
        self.why.push(Error::refused(text).at(self.at));
    }
}
