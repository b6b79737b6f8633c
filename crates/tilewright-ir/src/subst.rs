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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::func::{Param, TensorFunc};
    use crate::stmt::{Stmt, StmtKind};
    use crate::visit::{accessed, fold_func};

    fn sample() -> (Var, Buffer, Stmt) {
        let (i, b) = (Var::index("i"), Buffer::with_extents("B", &[16], DType::F32));
        let body = Stmt::store(&b, vec![i.expr()], b.load([i.expr()]) + 1.0);
        (i.clone(), b, Stmt::serial(&i, Expr::i32(16), body))
    }

    #[test]
    fn a_fold_that_changes_nothing_returns_the_same_node() {
        let (_, _, s) = sample();
        assert!(Subst::default().stmt(&s).ptr_eq(&s));
    }

    #[test]
    fn refresh_gives_every_definition_a_new_identity() {
        let (i, b, s) = sample();
        let t = Subst::refresh().stmt(&s);
        let StmtKind::For { var, .. } = t.kind() else { panic!("{t:?}") };
        assert_ne!(*var, i);
        assert_eq!(accessed(&t), (vec![b.clone()], vec![b]));
    }

    #[test]
    fn a_scalar_parameter_is_renewed_in_shapes_before_it() {
        let n = Var::index("n");
        let a = Buffer::new("A", vec![n.expr()], DType::F32);
        let params = vec![Param::tensor(&a), Param::Scalar(n.clone())];
        let f = fold_func(&mut Subst::refresh(), &TensorFunc::new(params, Stmt::nop()));
        let [Param::Buffer { buffer, .. }, Param::Scalar(m)] = f.params.as_slice() else {
            panic!("{f:?}")
        };
        assert!(*m != n && buffer.shape[0].as_var() == Some(m));
    }

    #[test]
    fn substitution_reaches_shapes_of_inner_buffers() {
        let n = Var::index("n");
        let b = Buffer::new("B", vec![n.expr()], DType::F32);
        let s =
            Stmt::allocate(&b, Stmt::store(&b, vec![Expr::i32(0)], Expr::float(0.0, b.dtype())));
        let t = Subst::vars([(n, Expr::i32(7))]).stmt(&s);
        let StmtKind::Allocate { buffer, body, .. } = t.kind() else { panic!("{t:?}") };
        assert_eq!(buffer.const_shape(), Some(vec![7]));
        assert_eq!(accessed(body).1, vec![buffer.clone()]);
    }
}
