//! A loop over rows around a loop over cells that lie one behind the other is one loop over cells.
//!
//! ```text
//! for i, j in T.grid(n, 8):                              for i in range(n * 8):
//!     B[0] = T.max(B[0], A[i * 8 + j])           →           B[0] = T.max(B[0], A[i])
//! ```
//!
//! The iterations and their order stay. LLVM makes vectors of neighbouring cells of such a loop, where it
//! collects cells of many rows otherwise. Functions that were scheduled have the loops that they are meant to have.

use tilewright_ir::index::{Linear, Ranges, simplify};
use tilewright_ir::visit::{fold_expr_children, fold_stmt_children};
use tilewright_ir::{DType, Expr, ExprKind, Fold, ForKind, Range, Stmt, StmtKind, TensorFunc, Var};

use crate::partition::is_scheduled;

/// A function with flat memory and without such pairs of loops.
pub(super) fn join_rows(func: &TensorFunc) -> TensorFunc {
    if is_scheduled(func) {
        return func.clone();
    }
    TensorFunc { body: JoinRows.stmt(&func.body), ..func.clone() }
}

struct JoinRows;

impl Fold for JoinRows {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let s = fold_stmt_children(self, s);
        joined(&s).unwrap_or(s)
    }
}

/// One loop in the place of two; `None` where they are no rows and cells, or stay two.
fn joined(s: &Stmt) -> Option<Stmt> {
    let (row, rows, inside) = loop_from_zero(s)?;
    let (cell, cells, body) = loop_from_zero(inside)?;
    let (dtype, width) = (row.dtype(), cells.as_int()?);
    let fits = match rows.as_int() {
        Some(rows) => {
            let all = rows.checked_mul(width);
            all.is_some_and(|all| Range::between(0, all, dtype).is_some())
        }
        // As many cells as memory has.
        None => dtype == DType::I64,
    };
    let narrower = dtype == DType::I64 && cell.dtype() == DType::I32;
    if !fits || width < 2 || dtype != cell.dtype() && !narrower {
        return None;
    }
    let mut places = Places { row, cell, width, place: row.fresh(), others: false };
    let body = places.stmt(body);
    let range = Range::upto(rows.clone() * width);
    (!places.others).then(|| Stmt::for_loop(&places.place, range, ForKind::Serial, body))
}

/// The variable, the extent and the body of a serial loop that begins at zero.
fn loop_from_zero(s: &Stmt) -> Option<(&Var, &Expr, &Stmt)> {
    match s.kind() {
        StmtKind::For { var, range, kind: ForKind::Serial, body, .. }
            if range.min.as_int() == Some(0) =>
        {
            Some((var, &range.extent, body))
        }
        _ => None,
    }
}

/// Puts the number of a cell in the place of its row and its number there.
struct Places<'a> {
    row: &'a Var,
    cell: &'a Var,
    /// Cells of a row.
    width: i64,
    place: Var,
    /// Whether there is something else that a row or a number is used for.
    others: bool,
}

impl Places<'_> {
    /// The same index by the place, where it tells cells apart by it.
    fn place(&self, e: &Expr) -> Option<Expr> {
        let form = Linear::from_expr(e)?;
        let (rows, cells) = (form.coefficient(self.row)?, form.coefficient(self.cell)?);
        if rows != cells.checked_mul(self.width.into())? {
            return None;
        }
        // That of a cell so far from the first one of the first row.
        let there = First { row: self.row, cell: self.cell, place: &self.place }.expr(e);
        (!there.mentions(self.cell)).then(|| simplify(&there, &Ranges::default()))
    }
}

impl Fold for Places<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        if self.others || !e.mentions(self.row) && !e.mentions(self.cell) {
            return e.clone();
        }
        let is_index = e.dtype() == DType::I64 || e.dtype() == DType::I32;
        if let Some(new) = self.place(e).filter(|_| is_index) {
            return new;
        }
        self.others |= e.as_var().is_some();
        fold_expr_children(self, e)
    }
}

/// Puts the first row in the place of a row, and a place in that of a cell's number, which may have a narrower type.
struct First<'a> {
    row: &'a Var,
    cell: &'a Var,
    place: &'a Var,
}

impl Fold for First<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        let is = |e: &Expr, v: &Var| e.as_var() == Some(v);
        match e.kind() {
            _ if is(e, self.row) => Expr::int(0, self.row.dtype()),
            ExprKind::Cast(of) if is(of, self.cell) && e.dtype() == self.place.dtype() => {
                self.place.expr()
            }
            _ if is(e, self.cell) && self.cell.dtype() == self.place.dtype() => self.place.expr(),
            _ => fold_expr_children(self, e),
        }
    }
}
