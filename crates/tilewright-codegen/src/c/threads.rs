//! Groups of threads: which loops run over them, and where the threads of a group wait for one another.
//!
//! A loop that is bound to `blockIdx` runs over groups, one bound to `threadIdx` over the threads of a
//! group. A thread runs one iteration of it, at each place where such a loop stands; where its extent is
//! less than the group has threads, the others leave it out.
//!
//! An explicit barrier is one, too: what it means says [`phases`](tilewright_ir::phases). A loop or condition
//! with one in it is a phase of its own, as one with a loop over threads in it.
//!
//! Threads wait for one another where two statements follow each other of which one has a loop over threads
//! in it: what the first wrote, another thread may read. So a program means the same as where its loops
//! over threads run one after the other, and one inside of another one of the same axis is work that all
//! threads share. A wait is refused where threads may not all come to it, since a condition or the extent of
//! a loop around it depends on the thread or on data.

use tilewright_ir::hash::HashSet;

use tilewright_ir::equal::same_expr;
use tilewright_ir::phases::{has_barrier, is_barrier};
use tilewright_ir::visit::free_vars;
use tilewright_ir::{Error, Expr, ForKind, Result, Stmt, StmtKind, Var};

/// What a thread axis numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ThreadAxis {
    Group(usize),
    Thread(usize),
}

impl ThreadAxis {
    /// The axis of a loop over threads, such as `threadIdx.x`.
    pub fn from_kind(kind: &ForKind) -> Result<ThreadAxis> {
        let thread = kind.thread_axis().map(ThreadAxis::Thread);
        thread.or_else(|| kind.group_axis().map(ThreadAxis::Group)).ok_or_else(|| {
            let name = kind.thread_name().unwrap_or_default();
            Error::unsupported(format!("there are no threads called `{name}`")).help(
                "bind loops to `blockIdx.x`, `blockIdx.y`, `blockIdx.z`, `threadIdx.x`, \
                 `threadIdx.y` or `threadIdx.z`",
            )
        })
    }

    /// The number of the own group or thread.
    pub fn number(self) -> String {
        match self {
            ThreadAxis::Group(k) => format!("get_group_id({k})"),
            ThreadAxis::Thread(k) => format!("get_local_id({k})"),
        }
    }
}

/// The extents of the axes of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Extents {
    /// How many groups there are along each axis; one where there is none.
    pub groups: [Option<Expr>; 3],
    /// How many threads a group has along each axis; zero where there is no such loop.
    pub threads: [i64; 3],
}

impl Extents {
    /// Those of the loops in a statement.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for unknown axes, groups of a size that is no constant, and two loops over
    /// groups along one axis that differ.
    pub(super) fn collect(s: &Stmt) -> Result<Extents> {
        let mut extents = Extents::default();
        let mut loops: Vec<(ForKind, Expr, Stmt)> = Vec::new();
        s.for_each(|s| {
            if let StmtKind::For { range, kind, .. } = s.kind()
                && kind.thread_name().is_some()
            {
                loops.push((kind.clone(), range.extent.clone(), s.clone()));
            }
        });
        for (kind, extent, s) in loops {
            let name = kind.thread_name().unwrap_or_default();
            match ThreadAxis::from_kind(&kind).map_err(|e| e.at(s.span()))? {
                ThreadAxis::Thread(k) => {
                    let n = extent.as_int().filter(|n| *n > 0).ok_or_else(|| {
                        Error::unsupported(format!(
                            "the extent of a loop over `{name}` is no constant"
                        ))
                        .at(s.span())
                    })?;
                    extents.threads[k] = extents.threads[k].max(n);
                }
                ThreadAxis::Group(k) => match &extents.groups[k] {
                    Some(other) if !same_expr(other, &extent) => {
                        let text = format!(
                            "two loops over `{name}` have the extents {other} and {extent}"
                        );
                        return Err(Error::unsupported(text).at(s.span()));
                    }
                    _ => extents.groups[k] = Some(extent),
                },
            }
        }
        Ok(extents)
    }

    /// Whether there are groups of threads.
    pub fn has_threads(&self) -> bool {
        self.threads.iter().any(|n| *n > 0)
    }
}

/// Whether a loop over the threads of a group is in a statement.
pub(super) fn runs_threads(s: &Stmt) -> bool {
    let mut found = false;
    s.for_each(|s| {
        found |= matches!(s.kind(), StmtKind::For { kind, .. } if kind.thread_axis().is_some());
    });
    found
}

/// Whether threads wait for one another somewhere inside of a statement, so that it is a phase of its own.
pub(super) fn has_phases(s: &Stmt) -> bool {
    runs_threads(s) || (!is_barrier_stmt(s) && has_barrier(s))
}

/// Whether a statement is nothing but a wait.
pub(super) fn is_barrier_stmt(s: &Stmt) -> bool {
    matches!(s.kind(), StmtKind::Evaluate(e) if is_barrier(e))
}

/// Variables whose values differ from thread to thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Varying(HashSet<Var>);

impl Varying {
    pub fn add(&mut self, var: &Var) {
        self.0.insert(var.clone());
    }

    /// Whether an expression may.
    pub fn has(&self, e: &Expr) -> bool {
        e.effects().loads || free_vars(e).iter().any(|v| self.0.contains(v))
    }
}
