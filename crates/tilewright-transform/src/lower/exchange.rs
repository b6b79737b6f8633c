//! Shared memory whose rows have their parts exchanged, so that the lanes of a warp meet in no bank.
//!
//! ```text
//! S[i * 32 + j]     →     S[i * 32 + (j // 8 ^ i // 2 % 4) * 8 + j % 8]
//! ```
//!
//! The schedule asks for it by the annotation [`EXCHANGED_ROWS`] of a loop. It is a layout, one to one within each row,
//! and comes last, since nothing that is proved of such memory depends on where its cells lie. Rows lie one after the
//! other along the last axis of a buffer, or are that axis. `ldmatrix`, which takes the first of the elements of a
//! part, reads what it did before.

use tilewright_ir::hash::HashMap;

use tilewright_ir::visit::{fold_func, fold_stmt_children};
use tilewright_ir::{
    Buffer, CallTarget, Error, Expr, ExprKind, Fold, Remarks, Stmt, StmtKind, TensorFunc,
};
use tilewright_target::{EXCHANGED_ROWS, ExchangedRows, LOAD_MATRIX, MATRIX_ROW};

/// A function whose shared memory lies as its loops ask for; it says where that is not possible.
pub(super) fn exchange_rows(func: TensorFunc, why: &mut Remarks) -> TensorFunc {
    let mut asked = Vec::new();
    let mut buffers = Vec::new();
    func.body.for_each(|s| match s.kind() {
        StmtKind::For { annotations, .. } => {
            asked.extend(
                annotations.get(EXCHANGED_ROWS).into_iter().flat_map(ExchangedRows::of_attr),
            );
        }
        StmtKind::Allocate { buffer, .. } => buffers.push(buffer.clone()),
        _ => {}
    });
    let mut rows = HashMap::default();
    for (name, exchanged) in asked {
        let mut of_name = buffers.iter().filter(|b| b.name == name);
        let found = of_name.next().filter(|b| fits(b, &exchanged) && of_name.next().is_none());
        match found.filter(|b| !is_passed(&func.body, b, exchanged.part)) {
            Some(buffer) => {
                rows.insert(buffer.clone(), exchanged);
            }
            None => why.push(Error::refused(format!("the rows of `{name}` are not exchanged"))),
        }
    }
    if rows.is_empty() { func } else { fold_func(&mut Exchange { rows }, &func) }
}

/// Whether rows lie one after the other along the last axis.
fn fits(b: &Buffer, rows: &ExchangedRows) -> bool {
    let last = b.const_shape().and_then(|shape| shape.last().copied());
    let plain = b.strides.is_empty() && b.elem_offset.is_none() && b.axis_separators.is_empty();
    plain && &*b.scope == "shared" && last.is_some_and(|n| n % rows.row == 0)
}

/// Whether a call gets the address of an element, and may access others from there than those of a part.
fn is_passed(s: &Stmt, buffer: &Buffer, part: i64) -> bool {
    let row = MATRIX_ROW / (buffer.dtype().bytes() as i64).max(1);
    s.any_expr(|e| match e.kind() {
        ExprKind::Call(CallTarget::Intrin(_) | CallTarget::Reinterpret(_), _) => false,
        ExprKind::Call(target, args) => {
            let is_row =
                matches!(target, CallTarget::Extern(name) if name.starts_with(LOAD_MATRIX));
            let passed =
                |a: &Expr| matches!(a.kind(), ExprKind::Load(b, _) if b.data == buffer.data);
            !(is_row && part % row == 0) && args.iter().any(passed)
        }
        ExprKind::Var(v) => *v == buffer.data,
        _ => false,
    })
}

struct Exchange {
    rows: HashMap<Buffer, ExchangedRows>,
}

impl Fold for Exchange {
    fn access(&mut self, buffer: &Buffer, indices: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
        let rows = *self.rows.get(buffer)?;
        let mut indices: Vec<Expr> = indices.iter().map(|i| self.expr(i)).collect();
        let last = indices.pop()?;
        let each = buffer.const_shape()?.last()? / rows.row;
        let before = indices.last().map(|i| i.clone() * each);
        indices.push(rows.place(before.as_ref(), &last));
        Some((buffer.clone(), indices))
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let folded = fold_stmt_children(self, s);
        let mut kind = folded.kind().clone();
        if let StmtKind::For { annotations, .. } = &mut kind
            && annotations.remove(EXCHANGED_ROWS).is_some()
        {
            return Stmt::spanned(kind, s.span());
        }
        folded
    }
}
