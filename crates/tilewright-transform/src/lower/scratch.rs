//! Allocations become scratch parameters, so that running a function allocates nothing.
//!
//! An allocation of constant size outside every loop, or a large one inside a serial loop,
//! becomes a trailing parameter; the attribute [`SCRATCH`] counts them. Its content is not
//! initialised when the function starts, nor at each iteration, which is what the allocation
//! promised. A large allocation inside a parallel loop, or one of open size, gets one copy for each
//! iteration of the outermost such loop. Small allocations inside loops stay: they live on the stack.

use std::collections::HashMap;

use tilewright_ir::func::SCRATCH;
use tilewright_ir::visit::{fold_stmt_children, free_vars};
use tilewright_ir::{
    Attr, Buffer, Dim, Error, Expr, Fold, ForKind, Param, Range, Result, Stmt, StmtKind,
    TensorFunc, Var, extent,
};

use crate::pass::{Pass, Run};

/// `lift_scratch` by name.
pub const PASS: Pass = Pass {
    name: "lift_scratch",
    summary: "turn allocations outside of parallel work into parameters; buffers must be flat",
    options: &[],
    run: Run::Tensor(|f, _, _| lift_scratch(f)),
};

/// Largest allocation, in bytes, that stays on the stack inside a loop.
pub const STACK_BYTES: i64 = 16 * 1024;

/// Most bytes of all of them in one function; backends may refuse twice as many.
pub(crate) const ALL_STACK_BYTES: i64 = 32 * 1024;

/// Moves allocations to trailing parameters. Buffers must be flat.
///
/// # Errors
/// `Unsupported` for an allocation whose size is known only inside of loops.
pub fn lift_scratch(func: &TensorFunc) -> Result<TensorFunc> {
    let mut lift = Lift::default();
    let body = lift.stmt(&func.body);
    if let Some(e) = lift.error {
        return Err(e);
    }
    let mut func = TensorFunc { body, ..func.clone() };
    if !lift.out.is_empty() {
        let count = lift.out.len() as i64 + func.scratch_count() as i64;
        func.params.extend(lift.out.iter().map(Param::tensor));
        func.attrs.insert(SCRATCH.into(), Attr::Int(count));
    }
    Ok(func)
}

#[derive(Default)]
struct Lift {
    depth: usize,
    /// Bytes that stay on the stack.
    stack: i64,
    /// The variables of loops and bindings around.
    inside: Vec<Var>,
    /// The outermost parallel loop around.
    parallel: Option<(Var, Range)>,
    /// Buffers with one copy an iteration: the new buffer and the start of the copy.
    moved: HashMap<Buffer, (Buffer, Expr)>,
    out: Vec<Buffer>,
    error: Option<Error>,
}

impl Lift {
    fn allocate(&mut self, buffer: &Buffer, s: &Stmt, body: &Stmt) -> Result<Stmt> {
        let bytes = buffer.const_shape().and_then(|shape| {
            shape.iter().try_fold(buffer.dtype().bytes() as i64, |n, d| n.checked_mul(*d))
        });
        // Memory of open size is given by who calls the function, who knows the sizes.
        let open = buffer.const_shape().is_none() && buffer.shape.iter().all(|e| self.is_given(e));
        if bytes.is_none() && !open {
            let text = format!("the size of the buffer `{}` is not a constant", buffer.name);
            return Err(Error::unsupported(text));
        }
        if let Some(bytes) = bytes {
            let stack = self.stack.saturating_add(bytes);
            if self.depth > 0 && bytes <= STACK_BYTES && stack <= ALL_STACK_BYTES {
                self.stack = stack;
                return Ok(fold_stmt_children(self, s));
            }
        }
        let Some((var, range)) = self.parallel.clone() else {
            self.out.push(buffer.clone());
            return Ok(self.stmt(body));
        };
        let ([extent], true) = (&buffer.shape[..], self.is_given(&range.extent)) else {
            return Err(Error::unsupported(format!(
                "the buffer `{}` has one copy for each iteration of a parallel loop whose extent is known only inside of loops",
                buffer.name
            )));
        };
        let dtype = extent::wider(extent.dtype(), range.extent.dtype());
        let size = extent::times(&extent.clone().cast(dtype), &range.extent.clone().cast(dtype))?;
        let dtype = extent::wider(size.dtype(), var.dtype());
        let start = (var.expr() - range.min).cast(dtype) * extent.clone().cast(dtype);
        let whole = buffer.derive_storage(|d| d.shape = vec![size]);
        self.out.push(whole.clone());
        self.moved.insert(buffer.clone(), (whole, start));
        Ok(self.stmt(body))
    }

    /// Whether a size is known outside of all loops.
    fn is_given(&self, size: &Expr) -> bool {
        Dim::from_expr(size).is_some() && !free_vars(size).iter().any(|v| self.inside.contains(v))
    }
}

impl Fold for Lift {
    fn access(&mut self, b: &Buffer, indices: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
        let (whole, start) = self.moved.get(b).cloned()?;
        Some((whole, indices.iter().map(|i| &start + self.expr(i)).collect()))
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::For { var, range, kind, .. } => {
                let outermost = *kind == ForKind::Parallel && self.parallel.is_none();
                if outermost {
                    self.parallel = Some((var.clone(), range.clone()));
                }
                self.depth += 1;
                self.inside.push(var.clone());
                let s = fold_stmt_children(self, s);
                self.inside.pop();
                self.depth -= 1;
                if outermost {
                    self.parallel = None;
                }
                s
            }
            StmtKind::Let { var, .. } => {
                self.inside.push(var.clone());
                let s = fold_stmt_children(self, s);
                self.inside.pop();
                s
            }
            StmtKind::Allocate { buffer, body, .. } => {
                self.allocate(buffer, s, body).unwrap_or_else(|e| {
                    self.error.get_or_insert(e.at(s.span()));
                    s.clone()
                })
            }
            _ => fold_stmt_children(self, s),
        }
    }
}
