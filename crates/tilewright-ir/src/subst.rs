//! Substitution: variables by expressions, buffers by buffers.

use crate::hash::HashMap;

use crate::buffer::Buffer;
use crate::effects::var_bit;
use crate::expr::{Expr, ExprKind, Var};
use crate::visit::{Fold, fold_buffer, fold_expr_children};

/// Replaces free variables by expressions, and buffers by buffers.
///
/// Definitions inside the tree are left alone, unless their shape mentions a replaced variable:
/// such a buffer is derived anew. Variables are unique, so nothing is captured. What is shared in an
/// expression stays shared, and so takes time once.
#[derive(Clone, Default)]
pub struct Subst {
    /// Replacements of variables.
    pub vars: HashMap<Var, Expr>,
    /// Replacements of buffers.
    pub buffers: HashMap<Buffer, Buffer>,
    /// Also give every variable and buffer that is defined inside a new identity, so that a copy
    /// can stand beside the original.
    pub refresh: bool,
    /// The expression that is under way.
    memo: Memo,
}

/// What became of shared nodes, while one expression is folded.
#[derive(Clone, Default)]
struct Memo {
    depth: usize,
    /// The bits of the replaced variables.
    vars: u64,
    /// The result by the address of the node, which is kept for as long.
    done: HashMap<usize, (Expr, Expr)>,
}

impl Subst {
    /// Replaces variables.
    pub fn vars(pairs: impl IntoIterator<Item = (Var, Expr)>) -> Self {
        Subst { vars: pairs.into_iter().collect(), ..Default::default() }
    }

    /// Replaces buffers.
    pub fn buffers(pairs: impl IntoIterator<Item = (Buffer, Buffer)>) -> Self {
        Subst { buffers: pairs.into_iter().collect(), ..Default::default() }
    }

    /// Replaces nothing, and gives every definition a new identity.
    pub fn refresh() -> Self {
        Subst { refresh: true, ..Default::default() }
    }

    /// Whether an expression may hold something that is replaced.
    fn concerns(&self, e: &Expr) -> bool {
        let effects = e.effects();
        e.var_bits() & self.memo.vars != 0
            || effects.binds && self.refresh
            || effects.loads && !self.buffers.is_empty()
    }
}

impl Fold for Subst {
    fn expr(&mut self, e: &Expr) -> Expr {
        if self.memo.depth == 0 {
            // Beyond that, nearly every bit is set.
            self.memo.vars = if self.refresh || self.vars.len() > 64 {
                u64::MAX
            } else {
                self.vars.keys().fold(0, |bits, v| bits | var_bit(v))
            };
        }
        if !self.concerns(e) {
            return e.clone();
        }
        if let ExprKind::Var(v) = e.kind() {
            return self.vars.get(v).cloned().unwrap_or_else(|| e.clone());
        }
        let shared = e.is_shared();
        if shared && let Some((_, done)) = self.memo.done.get(&e.address()) {
            return done.clone();
        }
        self.memo.depth += 1;
        let new = fold_expr_children(self, e);
        self.memo.depth -= 1;
        match self.memo.depth {
            0 => self.memo.done.clear(),
            _ if shared => drop(self.memo.done.insert(e.address(), (e.clone(), new.clone()))),
            _ => {}
        }
        new
    }

    fn var_def(&mut self, v: &Var) -> Var {
        if !self.refresh {
            return v.clone();
        }
        let new = v.fresh();
        self.vars.insert(v.clone(), new.expr());
        new
    }

    fn buffer_def(&mut self, b: &Buffer) -> Buffer {
        if let Some(new) = self.buffers.get(b) {
            return new.clone();
        }
        let folded = fold_buffer(self, b);
        let data = self.vars.get(&b.data).and_then(|e| e.as_var().cloned());
        if folded.is_none() && data.is_none() && !self.refresh {
            return b.clone();
        }
        let new = folded.as_ref().unwrap_or(b).derive(|d| {
            if let Some(data) = data {
                d.data = data;
            } else if self.refresh {
                d.data = d.data.fresh();
            }
        });
        self.vars.insert(b.data.clone(), new.data.expr());
        self.buffers.insert(b.clone(), new.clone());
        new
    }

    fn buffer_use(&mut self, b: &Buffer) -> Buffer {
        self.buffers.get(b).cloned().unwrap_or_else(|| b.clone())
    }
}
