//! Whether all uses of a buffer can be seen: accesses by its indices, each to a cell of its own.

use tilewright_analysis::footprint::{touches, uses_pointer};
use tilewright_ir::visit::{walk_expr, walk_stmt};
use tilewright_ir::{Block, Buffer, CallTarget, Expr, ExprKind, Stmt, StmtKind, Visit};

/// Why not every use of a buffer is an access by its indices to a cell of its own.
pub(super) fn hidden(buffer: &Buffer, body: &Stmt) -> Option<String> {
    struct Uses<'a> {
        buffer: &'a Buffer,
        found: Option<String>,
    }
    impl Visit for Uses<'_> {
        fn expr(&mut self, e: &Expr) {
            if let ExprKind::Call(CallTarget::Opaque(name), args) = e.kind()
                && args.iter().any(|a| matches!(a.kind(), ExprKind::Load(b, _) if b == self.buffer))
            {
                self.found = Some(format!("`{name}` may take the address of an element"));
            }
            walk_expr(self, e);
        }
        fn stmt(&mut self, s: &Stmt) {
            if let StmtKind::Block { block, .. } = s.kind()
                && touches(s, self.buffer) != (false, false)
            {
                self.found = Some(format!("block \"{}\" uses it", block.name));
            }
            walk_stmt(self, s);
        }
        fn block(&mut self, _: &Block) {}
    }
    if uses_pointer(body, buffer) {
        return Some("its memory is also seen through a pointer, or another buffer".to_owned());
    }
    if buffer.elem_offset.is_some() {
        return Some("it starts within its memory".to_owned());
    }
    // Row-major with gaps: then an index names one cell.
    let mut next: Option<(i64, i64)> = None;
    for (extent, stride) in buffer.shape.iter().zip(&buffer.strides).rev() {
        let least = next.map_or(Some(1), |(e, s): (i64, i64)| e.checked_mul(s));
        match (extent.as_int(), stride.as_int(), least) {
            (Some(e), Some(s), Some(least)) if s >= least => next = Some((e, s)),
            _ => return Some("two indices may name one cell of its strides".to_owned()),
        }
    }
    let mut uses = Uses { buffer, found: None };
    uses.stmt(body);
    uses.found
}
