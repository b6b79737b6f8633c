//! Barriers: what it means that the threads of a group wait for one another.
//!
//! `T.tvm_storage_sync` ends a phase. The loops over threads (`threadIdx`) around it end before it and begin
//! again after it: what was written before it, every thread may read after it.
//!
//! ```text
//! for t in threads:             for t in threads:
//!     S[t] = A[t]                   S[t] = A[t]
//!     barrier             is    for t in threads:
//!     B[t] = S[15 - t]              B[t] = S[15 - t]
//! ```
//!
//! [`split`] writes a function so: the result has no barriers, and everything that knows loops whose
//! iterations run at once knows what it means. Serial loops and conditions between the threads and a barrier
//! come to stand around the phases, which is right where all threads take the same way: their bounds and
//! conditions depend neither on the thread nor on memory. That is the proof that all threads come to a
//! barrier; where it fails, the function is refused. Memory that belongs to a thread and lives over a barrier
//! gets an axis for each loop over threads around it.
//!
//! A loop or a condition with a barrier in it is a phase of its own: threads wait for one another before and
//! after it, and where another iteration begins. Code for devices does the same.

use crate::hash::HashSet;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::error::{Error, Result};
use crate::expr::{CallTarget, Expr, ExprKind, Var};
use crate::func::TensorFunc;
use crate::stmt::{Block, ForKind, Range, Stmt, StmtKind};
use crate::visit::{Fold, free_vars};

/// Whether an expression is where the threads of a group wait for one another.
pub fn is_barrier(e: &Expr) -> bool {
    matches!(e.kind(), ExprKind::Call(CallTarget::Opaque(name), _) if &**name == "tvm_storage_sync")
}

/// A function without barriers that does the same; `None` where it has none.
///
/// # Errors
/// [`Error::Unsupported`] at a barrier that threads may not all come to, and where memory that lives over
/// one has no constant shape, or is viewed in another way.
pub fn split(func: &TensorFunc) -> Result<Option<TensorFunc>> {
    if !has_barrier(&func.body) {
        return Ok(None);
    }
    let body =
        Phases { extents: group_extents(&func.body), around: Vec::new() }.stmt(&func.body)?;
    Ok(Some(TensorFunc { body, ..func.clone() }))
}

/// Whether there is a barrier in a statement.
pub fn has_barrier(s: &Stmt) -> bool {
    let mut found = false;
    s.for_each(|s| found |= matches!(s.kind(), StmtKind::Evaluate(e) if is_barrier(e)));
    found
}

/// The most threads that a group in a statement has along each axis: at least 1, `None` where one is not known.
pub fn group_extents(s: &Stmt) -> [Option<i64>; 3] {
    let mut extents = [Some(1); 3];
    s.for_each(|s| {
        if let (Some(axis), StmtKind::For { range, .. }) = (thread_axis(s), s.kind()) {
            let most = extents[axis].zip(range.extent.as_int());
            extents[axis] = most.map(|(most, extent)| most.max(extent));
        }
    });
    extents
}

/// The axis of a loop over the threads of a group.
fn thread_axis(s: &Stmt) -> Option<usize> {
    match s.kind() {
        StmtKind::For { kind, .. } => kind.thread_axis(),
        _ => None,
    }
}

/// What is around the statement that is split.
struct Phases {
    extents: [Option<i64>; 3],
    /// Loops over threads, and bindings inside of them, outermost first.
    around: Vec<Stmt>,
}

impl Phases {
    /// The phases of a statement, as the threads around it run it.
    fn stmt(&mut self, s: &Stmt) -> Result<Stmt> {
        if !has_barrier(s) {
            return Ok(self.run(s));
        }
        self.split(s).map_err(|e| e.at(s.span()))
    }

    /// A statement without a barrier, which the threads around run.
    fn run(&self, s: &Stmt) -> Stmt {
        self.around.iter().rev().fold(s.clone(), |body, outer| outer.with_body(body))
    }

    fn split(&mut self, s: &Stmt) -> Result<Stmt> {
        match s.kind() {
            StmtKind::Evaluate(_) => Ok(Stmt::nop()),
            StmtKind::Seq(stmts) => self.sequence(stmts),
            StmtKind::For { range, body, .. } if thread_axis(s).is_some() => {
                let most = thread_axis(s).and_then(|axis| self.extents[axis]);
                if most.is_none() || range.extent.as_int() != most || self.runs(thread_axis(s)) {
                    return Err(unreached(
                        "a loop over fewer threads, or one of an axis that runs",
                    ));
                }
                self.around.push(s.clone());
                let body = self.stmt(body);
                self.around.pop();
                body
            }
            StmtKind::For { range, kind, body, .. } => {
                match kind {
                    ForKind::Serial | ForKind::Unrolled | ForKind::ThreadBinding(_) => {}
                    _ if self.around.is_empty() => {}
                    _ => return Err(unreached("a loop whose iterations run at once")),
                }
                self.check_same([&range.min, &range.extent], "the bounds of a loop")?;
                Ok(s.with_body(self.stmt(body)?))
            }
            StmtKind::If { cond, then, otherwise } => {
                self.check_same([cond], "a condition")?;
                let (cond, then) = (cond.clone(), self.stmt(then)?);
                let otherwise = otherwise.as_ref().map(|s| self.stmt(s)).transpose()?;
                Ok(Stmt::spanned(StmtKind::If { cond, then, otherwise }, s.span()))
            }
            StmtKind::Let { value, body, .. } if !self.around.is_empty() => {
                if value.effects().loads {
                    return Err(Error::unsupported(
                        "a value that is read from memory is used behind a barrier",
                    )
                    .help("store it in local memory"));
                }
                self.around.push(s.clone());
                let body = self.stmt(body);
                self.around.pop();
                body
            }
            StmtKind::Allocate { buffer, annotations, body } if !self.around.is_empty() => {
                let (buffer, body) = if &*buffer.scope == "shared" {
                    (buffer.clone(), body.clone())
                } else {
                    self.expand(buffer, body)?
                };
                let (annotations, body) = (annotations.clone(), self.stmt(&body)?);
                Ok(Stmt::spanned(StmtKind::Allocate { buffer, annotations, body }, s.span()))
            }
            StmtKind::Block { bindings, predicate, block } if self.around.is_empty() => {
                self.check_same([predicate], "the predicate of a block")?;
                let mut block = Block::clone(block);
                if block.init.as_ref().is_some_and(has_barrier) {
                    return Err(unreached("the initialisation of a block"));
                }
                block.body = self.stmt(&block.body)?;
                let (bindings, predicate) = (bindings.clone(), predicate.clone());
                let block = Arc::new(block);
                Ok(Stmt::spanned(StmtKind::Block { bindings, predicate, block }, s.span()))
            }
            StmtKind::Block { block, .. } => Err(Error::unsupported(format!(
                "a barrier stands in the block `{}`, which each thread runs by itself",
                block.name
            ))
            .help(
                "let the block stand around the loops over threads, or lower the function first",
            )),
            StmtKind::Let { body, .. }
            | StmtKind::Allocate { body, .. }
            | StmtKind::Constant { body, .. }
            | StmtKind::Declare { body, .. } => Ok(s.with_body(self.stmt(body)?)),
            StmtKind::Store { .. } | StmtKind::Assume(_) | StmtKind::Assert { .. } => {
                Err(Error::internal("a barrier in a statement that has no parts"))
            }
        }
    }

    /// Statements in order: those between two barriers are one phase.
    fn sequence(&mut self, stmts: &[Stmt]) -> Result<Stmt> {
        let (mut phases, mut phase) = (Vec::new(), Vec::new());
        for s in stmts {
            if !has_barrier(s) {
                phase.push(s.clone());
                continue;
            }
            phases.extend(self.phase(&mut phase));
            phases.push(self.stmt(s)?);
        }
        phases.extend(self.phase(&mut phase));
        Ok(Stmt::seq(phases))
    }

    fn phase(&self, stmts: &mut Vec<Stmt>) -> Option<Stmt> {
        (!stmts.is_empty()).then(|| self.run(&Stmt::seq(std::mem::take(stmts))))
    }

    /// Whether a loop over threads along an axis is around.
    fn runs(&self, axis: Option<usize>) -> bool {
        self.around.iter().any(|s| thread_axis(s).is_some() && thread_axis(s) == axis)
    }

    /// Refuses expressions that are not the same for all threads.
    fn check_same<'e>(&self, all: impl IntoIterator<Item = &'e Expr>, what: &str) -> Result<()> {
        let own: HashSet<&Var> = self.around.iter().filter_map(bound_var).collect();
        let differs = |e: &Expr| e.effects().loads || free_vars(e).iter().any(|v| own.contains(v));
        if !self.around.is_empty() && all.into_iter().any(differs) {
            return Err(unreached(what));
        }
        Ok(())
    }

    /// Memory of a thread as memory of all threads around, and what uses it.
    fn expand(&self, buffer: &Buffer, body: &Stmt) -> Result<(Buffer, Stmt)> {
        let loops = self.around.iter().filter_map(|s| match s.kind() {
            StmtKind::For { var, range, .. } => Some((var, range)),
            _ => None,
        });
        let mut at = Vec::new();
        let mut shape: Vec<Expr> = Vec::new();
        for (var, Range { min, extent }) in loops {
            at.push(var.expr() - min.clone());
            shape.push(extent.clone());
        }
        let mut viewed = !buffer.strides.is_empty() || buffer.elem_offset.is_some();
        body.for_each(|s| {
            if let StmtKind::Declare { buffer: view, .. } = s.kind() {
                viewed |= view.data == buffer.data;
            }
        });
        if viewed {
            let text = format!("buffer `{}` lives over a barrier, and is viewed", buffer.name);
            return Err(Error::unsupported(text));
        }
        let count = shape.len();
        let expanded = buffer.derive_storage(|data| {
            data.shape.splice(0..0, shape);
            data.axis_separators.iter_mut().for_each(|k| *k += count);
        });
        let body = Expanded { old: buffer, new: &expanded, at }.stmt(body);
        Ok((expanded, body))
    }
}

/// The variable that a loop or binding defines.
fn bound_var(s: &Stmt) -> Option<&Var> {
    match s.kind() {
        StmtKind::For { var, .. } | StmtKind::Let { var, .. } => Some(var),
        _ => None,
    }
}

fn unreached(what: &str) -> Error {
    Error::unsupported("threads wait for one another where they may not all come to")
        .note(format!("what decides it: {what}"))
        .help("a condition around, or the extent of a loop, depends on the thread or on data")
}

/// Accesses to a buffer that got axes.
struct Expanded<'a> {
    old: &'a Buffer,
    new: &'a Buffer,
    at: Vec<Expr>,
}

impl Fold for Expanded<'_> {
    fn access(&mut self, b: &Buffer, indices: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
        if b.data != self.old.data {
            return None;
        }
        let indices: Vec<Expr> = indices.iter().map(|e| self.expr(e)).collect();
        Some((self.new.clone(), self.at.iter().cloned().chain(indices).collect()))
    }

    fn buffer_use(&mut self, b: &Buffer) -> Buffer {
        if b.data == self.old.data { self.new.clone() } else { b.clone() }
    }
}
