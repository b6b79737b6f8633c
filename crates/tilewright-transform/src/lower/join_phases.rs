//! Phases of a group of threads between which a thread keeps memory of its own become one nest over threads, with
//! barriers between the phases.
//!
//! ```text
//! acc = alloc((16, 4), "local")              for t in thread_binding(16):
//! for t in thread_binding(16):                   acc = alloc((4,), "local")      # after `compact`
//!     acc[t, ..] = 0                             acc[..] = 0
//! for k in range(n):                             tvm_storage_sync()
//!     for t in thread_binding(16):          →    for k in range(n):
//!         S[t] = A[k, t]                             S[t] = A[k, t]
//!     for t in thread_binding(16):                   tvm_storage_sync()
//!         acc[t, ..] += S[..]                        acc[..] += S[..]
//! for t in thread_binding(16):                       tvm_storage_sync()
//!     C[t, ..] = acc[t, ..]                      C[t, ..] = acc[..]
//! ```
//!
//! Both mean the same: a barrier cuts a loop over threads into phases ([`phases`](tilewright_ir::phases)), which
//! are those that were there. Only then can sums be registers of a thread while others fill shared memory.

use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::{Subst, accessed};
use tilewright_ir::{
    Buffer, CallTarget, DType, Expr, Fold, ForKind, Range, Stmt, StmtKind, TensorFunc, Var,
};

use tilewright_polyhedral::scope::{Scope, Scoped, fold_scoped};

use crate::lower::warp_registers::{LANES, has_instructions, in_lanes};

/// A function whose groups keep memory of threads over phases; the same where there are none.
pub(super) fn join_phases(func: &TensorFunc) -> Option<TensorFunc> {
    let mut fold = JoinPhases { joined: false, scope: Scope::at_entry(func) };
    let body = fold.stmt(&func.body);
    fold.joined.then(|| TensorFunc { body, ..func.clone() })
}

struct JoinPhases {
    joined: bool,
    scope: Scope,
}

impl Scoped for JoinPhases {
    fn scope(&mut self) -> &mut Scope {
        &mut self.scope
    }
}

impl Fold for JoinPhases {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        match s.kind() {
            StmtKind::For { var, range, kind, body, .. } if kind.group_axis().is_some() => {
                let mut inside = self.scope.clone();
                inside.enter(var, range);
                if let Some(body) = joined(body, &inside) {
                    self.joined = true;
                    return s.with_body(body);
                }
                fold_scoped(self, s)
            }
            _ => fold_scoped(self, s),
        }
    }
}

/// A loop over threads.
#[derive(Clone)]
struct ThreadLoop {
    var: Var,
    range: Range,
    kind: ForKind,
}

impl ThreadLoop {
    /// Whether its threads are the lanes of warps.
    fn is_of_lanes(&self) -> bool {
        self.kind.thread_axis() == Some(0)
            && self.range.min.as_int() == Some(0)
            && self.range.extent.as_int() == Some(LANES)
    }
}

/// Loops over threads around a statement, outermost first, and what is inside of them.
fn threads_of(s: &Stmt) -> (Vec<ThreadLoop>, Stmt) {
    let (mut loops, mut at) = (Vec::new(), s.clone());
    while let StmtKind::For { var, range, kind, body, .. } = at.kind()
        && kind.thread_axis().is_some()
    {
        loops.push(ThreadLoop { var: var.clone(), range: range.clone(), kind: kind.clone() });
        at = body.clone();
    }
    (loops, at)
}

fn runs_threads(s: &Stmt) -> bool {
    let mut found = false;
    s.for_each(|s| {
        found |= matches!(s.kind(), StmtKind::For { kind, .. } if kind.thread_axis().is_some());
    });
    found
}

/// What a group does, as one nest over its threads; `None` where it keeps no memory of threads over phases, or
/// does anything but phases of the same threads.
fn joined(body: &Stmt, around: &Scope) -> Option<Stmt> {
    let mut phases = Vec::new();
    collect_phases(body, &mut phases);
    let of_warps = has_instructions(body);
    let axes = phases.iter().map(|p| threads_of(p).0).max_by_key(Vec::len)?;
    let keeps = |b: &Buffer| *b.scope == *"local";
    let mut kept: Vec<Vec<Buffer>> = Vec::new();
    for phase in &phases {
        let (reads, writes) = accessed(phase);
        kept.push(reads.into_iter().chain(writes).filter(keeps).collect());
    }
    let shares = |k: usize| kept[..k].iter().flatten().any(|b| kept[k].contains(b));
    if !of_warps && !(1..phases.len()).any(shares) {
        return None;
    }
    let axes: Vec<ThreadLoop> =
        axes.into_iter().map(|l| ThreadLoop { var: l.var.fresh(), ..l }).collect();
    let mut join = Join { axes: &axes, shared: Vec::new() };
    let inside = join.stmt(body)?;
    let inside = match axes.iter().find(|a| a.is_of_lanes()) {
        Some(lanes) if of_warps => in_lanes(&inside, &lanes.var, around)?,
        _ if of_warps => return None,
        _ => inside,
    };
    let nest = axes
        .iter()
        .rev()
        .fold(inside, |inside, l| Stmt::for_loop(&l.var, l.range.clone(), l.kind.clone(), inside));
    Some(join.shared.iter().rev().fold(nest, |inside, alloc| alloc.with_body(inside)))
}

/// The outermost loops over threads in a statement, in order.
fn collect_phases(s: &Stmt, into: &mut Vec<Stmt>) {
    match s.kind() {
        StmtKind::For { kind, .. } if kind.thread_axis().is_some() => into.push(s.clone()),
        StmtKind::Seq(list) => list.iter().for_each(|s| collect_phases(s, into)),
        StmtKind::For { body, .. } | StmtKind::Allocate { body, .. } => collect_phases(body, into),
        _ => {}
    }
}

struct Join<'a> {
    axes: &'a [ThreadLoop],
    /// Allocations of shared memory, which stand around the threads.
    shared: Vec<Stmt>,
}

impl Join<'_> {
    fn stmt(&mut self, s: &Stmt) -> Option<Stmt> {
        match s.kind() {
            StmtKind::Seq(list) => {
                let mut all: Vec<Stmt> = Vec::new();
                // What threads have done since they waited for one another.
                let mut since: Vec<Stmt> = Vec::new();
                let (mut parts, mut registers) = (Vec::new(), Vec::new());
                list.iter().try_for_each(|s| self.flatten(s, &mut parts, &mut registers))?;
                for s in &parts {
                    let inside = self.stmt(s)?;
                    if since.iter().any(|before| meet(before, s)) {
                        all.push(barrier());
                        since.clear();
                    }
                    since.push(s.clone());
                    all.push(inside);
                }
                let all = Stmt::seq(all);
                Some(registers.iter().rev().fold(all, |inside, alloc| alloc.with_body(inside)))
            }
            StmtKind::For { kind, .. } if kind.thread_axis().is_some() => self.phase(s),
            StmtKind::For { .. } if !runs_threads(s) && has_instructions(s) => Some(s.clone()),
            // All threads run the same iterations.
            StmtKind::For { kind: ForKind::Serial | ForKind::Unrolled, range, body, .. }
                if runs_threads(body)
                    && range.min.effects().constant()
                    && range.extent.effects().constant() =>
            {
                let inside = self.stmt(body)?;
                let inside = if meet(body, body) { Stmt::seq([inside, barrier()]) } else { inside };
                Some(s.with_body(inside))
            }
            StmtKind::Allocate { buffer, body, .. } if runs_threads(body) => {
                let inside = self.stmt(body)?;
                match &*buffer.scope {
                    "local" => Some(s.with_body(inside)),
                    "shared" => {
                        self.shared.push(s.clone());
                        Some(inside)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The statements of a sequence, with those behind an allocation in it, which then stands around all: between
    /// which of them threads wait is seen for each.
    fn flatten(
        &mut self,
        s: &Stmt,
        parts: &mut Vec<Stmt>,
        registers: &mut Vec<Stmt>,
    ) -> Option<()> {
        match s.kind() {
            StmtKind::Seq(list) => list.iter().try_for_each(|s| self.flatten(s, parts, registers)),
            StmtKind::Allocate { buffer, body, .. } if runs_threads(body) => {
                match &*buffer.scope {
                    "local" => registers.push(s.clone()),
                    "shared" => self.shared.push(s.clone()),
                    _ => return None,
                }
                self.flatten(body, parts, registers)
            }
            _ => {
                parts.push(s.clone());
                Some(())
            }
        }
    }

    /// A phase, whose threads are those of the joint nest.
    fn phase(&self, s: &Stmt) -> Option<Stmt> {
        let (loops, inside) = threads_of(s);
        // What an instruction computes is in no loop over the lanes, which run it together.
        let all = has_instructions(&inside) && self.axes.iter().any(ThreadLoop::is_of_lanes);
        let missing = self.axes.len().checked_sub(loops.len())?;
        // What fills registers alone is done by all threads along an axis: each has its own.
        let (reads, writes) = accessed(&inside);
        let own = writes.iter().all(|b| *b.scope == *"local" && !reads.contains(b));
        if (missing != usize::from(all) && !own) || runs_threads(&inside) {
            return None;
        }
        let mut vars = Vec::new();
        for l in &loops {
            let axis = self.axes.iter().find(|a| a.kind == l.kind)?;
            let same = same_expr(&axis.range.extent, &l.range.extent)
                && same_expr(&axis.range.min, &l.range.min)
                && axis.var.dtype() == l.var.dtype();
            if !same {
                return None;
            }
            vars.push((l.var.clone(), axis.var.expr()));
        }
        Some(Subst::vars(vars).stmt(&inside))
    }
}

/// Whether a statement accesses what another one writes in memory that threads share: one that reads what is read
/// needs no wait, and registers are no one else's.
fn meet(first: &Stmt, second: &Stmt) -> bool {
    let shared = |b: &&Buffer| *b.scope != *"local";
    let ((read, written), (reads, writes)) = (accessed(first), accessed(second));
    let meets = |one: &[Buffer], other: &[Buffer]| {
        one.iter().filter(shared).any(|b| other.iter().any(|o| o.data == b.data))
    };
    meets(&written, &reads) || meets(&written, &writes) || meets(&read, &writes)
}

/// The threads of a group wait for one another.
fn barrier() -> Stmt {
    let target = CallTarget::Opaque("tvm_storage_sync".into());
    Stmt::new(StmtKind::Evaluate(Expr::call(target, vec![Expr::str("shared")], DType::HANDLE)))
}
