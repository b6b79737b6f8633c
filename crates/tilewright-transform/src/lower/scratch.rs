//! Allocations become scratch parameters, so that running a function allocates nothing.
//!
//! An allocation of constant size outside every loop, or a large one inside a serial loop,
//! becomes a trailing parameter; the attribute [`SCRATCH`] counts them. Its content is not
//! initialised when the function starts, nor at each iteration, which is what the allocation
//! promised. A large allocation inside a parallel loop, or one of open size, gets one copy for each
//! iteration of the outermost such loop. Where that has more iterations than it takes to keep threads busy
//! ([`COPIES`]), it becomes one over runs of iterations, which have a copy each: what a run uses again is still
//! in the cache. Runs that a thread executes one after the other use the copy of the first of them
//! (`T.first_of_task`). Small allocations inside loops stay: they live on the stack. Inside loops over threads all stay,
//! since each thread, or each group, has its own.

use tilewright_ir::hash::HashMap;

use tilewright_ir::func::SCRATCH;
use tilewright_ir::visit::{Subst, fold_stmt_children, free_vars};
use tilewright_ir::{
    Attr, Buffer, Dim, Error, Expr, Fold, ForKind, Intrin, Param, Range, Result, Stmt, StmtKind,
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

/// Most copies of an allocation that a parallel loop is given: enough that runs of its iterations balance over
/// threads.
pub const COPIES: usize = 32;

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
    /// Loops over threads around.
    threads: usize,
    /// Bytes that stay on the stack.
    stack: i64,
    /// The variables of loops and bindings around.
    inside: Vec<Var>,
    /// The outermost parallel loop around.
    parallel: Option<Parallel>,
    /// Buffers with one copy an iteration: the new buffer and the start of the copy.
    moved: HashMap<Buffer, (Buffer, Expr)>,
    out: Vec<Buffer>,
    error: Option<Error>,
}

/// A parallel loop, and how it would be one over runs of iterations.
#[derive(Clone)]
struct Parallel {
    /// The number of a run.
    run: Var,
    /// How many iterations there are, and how many a run has; `None` where that is known only inside of loops.
    counts: Option<[Dim; 2]>,
    /// Whether allocations have copies.
    is_copied: bool,
}

impl Parallel {
    /// `extent` is how many iterations there are, where that is known outside of all loops.
    fn new(var: &Var, range: &Range, extent: Option<Dim>) -> Self {
        // At least one, where there are no iterations, too.
        let counts = extent.map(|n| [n, n.floordiv(COPIES) + 1]);
        let is_short = extent.and_then(Dim::known).is_some_and(|n| n <= COPIES);
        let run = match is_short && range.min.as_int() == Some(0) {
            true => var.clone(),
            false => Var::new(format!("{}_run", var.name()), var.dtype()),
        };
        Parallel { run, counts, is_copied: false }
    }

    /// The loop over runs, with that over the iterations of each inside.
    fn over_runs(&self, s: &Stmt) -> Stmt {
        let StmtKind::For { var, range, kind, annotations, body } = s.kind() else {
            return s.clone();
        };
        let Some([count, length]) = self.counts.filter(|_| *var != self.run) else {
            return s.clone();
        };
        let [all, own] = [count, length].map(|n| n.typed(self.run.dtype()));
        let first = self.run.expr() * own.clone();
        let own = Range { min: range.min.clone() + first.clone(), extent: (all - first).min(own) };
        let runs = Range::upto(count.ceildiv(length).typed(self.run.dtype()));
        let each = StmtKind::For {
            var: var.clone(),
            range: own,
            kind: ForKind::Serial,
            annotations: annotations.clone(),
            body: body.clone(),
        };
        let all = StmtKind::For {
            var: self.run.clone(),
            range: runs,
            kind: kind.clone(),
            annotations: Default::default(),
            body: Stmt::spanned(each, s.span()),
        };
        Stmt::spanned(all, s.span())
    }
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
        if self.threads > 0 {
            if open {
                let text = format!(
                    "the size of the buffer `{}` of a thread is not a constant",
                    buffer.name
                );
                return Err(Error::unsupported(text));
            }
            return Ok(fold_stmt_children(self, s));
        }
        if let Some(bytes) = bytes {
            let stack = self.stack.saturating_add(bytes);
            if self.depth > 0 && bytes <= STACK_BYTES && stack <= ALL_STACK_BYTES {
                self.stack = stack;
                return Ok(fold_stmt_children(self, s));
            }
        }
        let Some(around) = self.parallel.clone() else {
            self.out.push(buffer.clone());
            return Ok(self.stmt(body));
        };
        let ([extent], Some([count, _])) = (&buffer.shape[..], around.counts) else {
            return Err(Error::unsupported(format!(
                "the buffer `{}` has one copy for each iteration of a parallel loop whose extent is known only inside of loops",
                buffer.name
            )));
        };
        if let Some(around) = &mut self.parallel {
            around.is_copied = true;
        }
        let copies = count.min(COPIES).typed(around.run.dtype());
        let dtype = extent::wider(extent.dtype(), copies.dtype());
        let size = extent::times(&extent.clone().cast(dtype), &copies.cast(dtype))?;
        let dtype = extent::wider(size.dtype(), around.run.dtype());
        let start = first_of_task(&around.run).cast(dtype) * extent.clone().cast(dtype);
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

/// Whether memory that is allocated in a statement is as large as a variable says, or another one that it gives a value.
fn is_of_memory(var: &Var, s: &Stmt) -> bool {
    let mut found = false;
    s.for_each(|s| match s.kind() {
        StmtKind::Allocate { buffer, .. } => {
            found |= buffer.shape.iter().any(|e| e.mentions(var));
        }
        StmtKind::Let { var: other, value, body } if value.mentions(var) => {
            found |= is_of_memory(other, body);
        }
        _ => {}
    });
    found
}

/// The number of the copy that an iteration of a parallel loop has: those that a thread runs one after the other share
/// one, which stays in the cache.
fn first_of_task(run: &Var) -> Expr {
    Expr::intrin(Intrin::FirstOfTask, vec![run.expr()])
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
                    let extent = Dim::from_expr(&range.extent);
                    let given = extent.filter(|_| self.is_given(&range.extent));
                    self.parallel = Some(Parallel::new(var, range, given));
                }
                let of_threads = usize::from(matches!(kind, ForKind::ThreadBinding(_)));
                self.depth += 1;
                self.threads += of_threads;
                self.inside.push(var.clone());
                let s = fold_stmt_children(self, s);
                self.inside.pop();
                self.threads -= of_threads;
                self.depth -= 1;
                match self.parallel.take_if(|_| outermost).filter(|p| p.is_copied) {
                    Some(parallel) => parallel.over_runs(&s),
                    None => s,
                }
            }
            // Who calls the function knows what the size is of, and not its name in here.
            StmtKind::Let { var, value, body }
                if self.is_given(value) && is_of_memory(var, body) =>
            {
                let body = Subst::vars([(var.clone(), value.clone())]).stmt(body);
                self.stmt(&body)
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
