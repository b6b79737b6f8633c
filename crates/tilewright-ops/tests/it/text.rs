//! Tensor functions as short text, to compare their structure.

use std::fmt::Write;

use tilewright_ir::{Block, Expr, IterKind, Param, Stmt, StmtKind, TensorFunc, Visit, visit};

/// Loops, blocks and stores of a function, one a line.
#[derive(Default)]
struct Text {
    out: String,
    depth: usize,
}

impl Text {
    fn line(&mut self, text: impl std::fmt::Display) {
        let _ = writeln!(self.out, "{:1$}{text}", "", 2 * self.depth);
    }
}

impl Visit for Text {
    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::For { var, range, .. } => {
                self.line(format!("{} < {}", var.name(), range.extent))
            }
            StmtKind::Store { buffer, indices, value } => {
                self.line(format!("{} = {value}", Expr::load(buffer, indices.clone())));
            }
            _ => {}
        }
        self.depth += 1;
        visit::walk_stmt(self, s);
        self.depth -= 1;
    }

    fn block(&mut self, b: &Block) {
        let kind = |k| match k {
            IterKind::Spatial => 'S',
            IterKind::Reduce => 'R',
            IterKind::Opaque => 'O',
        };
        let iters = b.iters.iter().map(|i| format!(" {}:{}", kind(i.kind), i.var.name()));
        self.line(format!("block {}{}", b.name, iters.collect::<String>()));
        for a in &b.allocs {
            self.line(format!("alloc {} {}{:?}", a.name, a.dtype(), a.shape));
        }
        if let Some(init) = &b.init {
            self.line("init");
            self.stmt(init);
        }
        self.stmt(&b.body);
    }
}

/// Parameters, then loops, blocks and stores.
pub fn text(func: &TensorFunc) -> String {
    let mut text = Text::default();
    for p in &func.params {
        match p {
            Param::Buffer { buffer: b, .. } => {
                text.line(format!("param {} {}{:?}", b.name, b.dtype(), b.shape));
            }
            Param::Scalar(v) => text.line(format!("param {}", v.name())),
        }
    }
    text.stmt(&func.body);
    text.out
}
