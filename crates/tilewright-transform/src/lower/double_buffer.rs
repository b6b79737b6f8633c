//! Loops whose groups of threads fill shared memory for the next iteration while they compute with that of this one.
//!
//! ```text
//! for k in range(n):                         fill(S2[0], 0)
//!     fill(S, k)                             tvm_storage_sync()
//!     tvm_storage_sync()                     for k in range(n):
//!     use(S, k)                         →        if k + 1 < n:
//!     tvm_storage_sync()                             fill(S2[(k + 1) % 2], k + 1)
//!                                                use(S2[k % 2], k)
//!                                                tvm_storage_sync()
//! ```
//!
//! The schedule asks for it by the annotation [`DOUBLE_BUFFER`] of the loop. It changes nothing that is computed where
//! each iteration fills the same cells, whatever else is read lies in memory that `use` leaves alone, and nothing but
//! this loop accesses the shared memory: an iteration then reads what it has filled itself. The two halves are never
//! written and read between the same barriers. Of memory that is filled so a thread needs nothing before the next
//! barrier ([`ASYNC_COPY`]).

use tilewright_ir::phases::is_barrier;
use tilewright_ir::visit::{Subst, accessed, fold_func, fold_stmt_children, walk_stmt};
use tilewright_ir::{
    Attr, Buffer, CallTarget, DType, Error, Expr, ExprKind, Fold, ForKind, Remarks, Stmt, StmtKind,
    TensorFunc, Var, Visit,
};
use tilewright_target::{ASYNC_COPY, DOUBLE_BUFFER, LOAD_MATRIX, instruction};

/// A function whose loops that ask for it fill two halves; it says where one does not.
pub(super) fn double_buffer(func: TensorFunc, why: &mut Remarks) -> TensorFunc {
    let mut loops = Vec::new();
    func.body.for_each(|s| {
        if let StmtKind::For { annotations, .. } = s.kind()
            && annotations.contains_key(DOUBLE_BUFFER)
        {
            loops.push(s.clone());
        }
    });
    loops.into_iter().fold(func, |func, s| match Filled::recognise(&func, &s) {
        Ok(filled) => fold_func(&mut Halves { filled: &filled }, &func),
        Err(text) => {
            let StmtKind::For { var, .. } = s.kind() else { return func };
            why.push(Error::refused(format!(
                "the loop `{}` fills no two halves: {text}",
                var.name()
            )));
            func
        }
    })
}

/// A loop that fills shared memory, and what it does with that.
struct Filled {
    at: Stmt,
    var: Var,
    count: i64,
    fill: Stmt,
    /// What follows the barrier behind that, up to the last one.
    rest: Stmt,
    barrier: Stmt,
    /// Each buffer, and the one of two halves that takes its place.
    buffers: Vec<(Buffer, Buffer)>,
}

impl Filled {
    fn recognise(func: &TensorFunc, s: &Stmt) -> Result<Filled, &'static str> {
        let StmtKind::For { var, range, kind: ForKind::Serial, body, .. } = s.kind() else {
            return Err("it is not serial");
        };
        let count = range.extent.as_int().filter(|n| *n > 1 && range.min.as_int() == Some(0));
        let count = count.ok_or("it is not known to have several iterations from zero on")?;
        let StmtKind::Seq(list) = body.kind() else { return Err("it has one part") };
        let waits = |s: &Stmt| matches!(s.kind(), StmtKind::Evaluate(e) if is_barrier(e));
        let first = list.iter().position(waits).ok_or("it has no barrier")?;
        let Some((last, inner)) = list.split_last().filter(|(last, _)| waits(last)) else {
            return Err("it does not end with a barrier");
        };
        if first + 1 > inner.len() {
            return Err("it has one barrier");
        }
        let (fill, rest) =
            (Stmt::seq(inner[..first].to_vec()), Stmt::seq(inner[first + 1..].to_vec()));
        let (reads, writes) = accessed(&fill);
        let (_, later) = accessed(&rest);
        let disturbed = |b: &Buffer| writes.iter().chain(&later).any(|w| w.data == b.data);
        if reads.iter().any(disturbed) {
            return Err("what it fills memory with is written in it");
        }
        if writes.iter().any(|b| *b.scope != *"shared" || later.iter().any(|w| w.data == b.data)) {
            return Err("it does not fill shared memory first, and then only read it");
        }
        if rest.any_expr(is_unknown) {
            return Err("a call in it may write what it fills memory with");
        }
        let mut cells = SameCells { changing: vec![var.clone()], differ: false };
        cells.stmt(&fill);
        if cells.differ {
            return Err("its iterations may fill different cells");
        }
        let alone =
            |b: &Buffer| accesses(&func.body, |x| x.data == b.data) == accesses(s, |x| x == b);
        if !writes.iter().all(alone) {
            return Err("others access the memory that it fills");
        }
        let two = |b: &Buffer| {
            let plain =
                b.strides.is_empty() && b.elem_offset.is_none() && b.axis_separators.is_empty();
            plain.then(|| b.derive_storage(|d| d.shape.insert(0, Expr::i32(2))))
        };
        let buffers = writes.iter().map(|b| Some((b.clone(), two(b)?))).collect::<Option<Vec<_>>>();
        let buffers = buffers.ok_or("the memory that it fills has a layout of its own")?;
        let (at, var, barrier) = (s.clone(), var.clone(), last.clone());
        Ok(Filled { at, var, count, fill, rest, barrier, buffers })
    }

    /// The prologue and the loop.
    fn write(&self) -> Stmt {
        let k = self.var.expr();
        let number = |n: i64| Expr::int(n, self.var.dtype());
        let next = k.clone() + number(1);
        let fill = |at: &Expr| {
            let s = self.in_half(&self.fill, &k.clone().floormod(2));
            let mut subst = Subst::vars([(self.var.clone(), at.clone())]);
            subst.refresh = true;
            subst.stmt(&s)
        };
        let cond = next.clone().less(number(self.count));
        let ahead = Stmt::guard(cond, fill(&next));
        let rest = self.in_half(&self.rest, &k.clone().floormod(2));
        let body = Stmt::seq([ahead, rest, self.barrier.clone()]);
        let mut kind = self.at.with_body(body).kind().clone();
        if let StmtKind::For { annotations, .. } = &mut kind {
            annotations.remove(DOUBLE_BUFFER);
        }
        let ahead = Stmt::spanned(kind, self.at.span());
        Stmt::seq([fill(&number(0)), self.barrier.clone(), ahead])
    }

    /// A part of the loop with one half of the memory.
    fn in_half(&self, s: &Stmt, half: &Expr) -> Stmt {
        InHalf { buffers: &self.buffers, half: half.clone() }.stmt(s)
    }
}

/// Whether a call may write memory that does not say so: of instructions of a warp it is known.
fn is_unknown(e: &Expr) -> bool {
    match e.kind() {
        ExprKind::Call(CallTarget::Extern(name), _) => {
            !name.starts_with(LOAD_MATRIX) && instruction(name).is_none()
        }
        ExprKind::Call(CallTarget::Opaque(_), _) => !is_barrier(e),
        _ => false,
    }
}

/// How many accesses to buffers of which something holds are in a statement.
fn accesses(s: &Stmt, which: impl Fn(&Buffer) -> bool) -> usize {
    struct Count<F> {
        which: F,
        count: usize,
    }
    impl<F: Fn(&Buffer) -> bool> Visit for Count<F> {
        fn access(&mut self, b: &Buffer, _: &[Expr], _: bool) {
            self.count += usize::from((self.which)(b));
        }
    }
    let mut count = Count { which, count: 0 };
    count.stmt(s);
    count.count
}

/// Whether a statement stores to the same cells in each iteration of a loop.
struct SameCells {
    /// The variable of the loop, and what depends on it.
    changing: Vec<Var>,
    differ: bool,
}

impl SameCells {
    fn changes(&self, e: &Expr) -> bool {
        e.mentions_any(&self.changing)
    }
}

impl Visit for SameCells {
    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::Store { indices, .. } => {
                self.differ |= indices.iter().any(|i| self.changes(i));
            }
            StmtKind::For { range, .. } => {
                self.differ |= self.changes(&range.min) || self.changes(&range.extent);
                walk_stmt(self, s);
            }
            StmtKind::If { cond, .. } => {
                self.differ |= self.changes(cond);
                walk_stmt(self, s);
            }
            StmtKind::Let { var, value, .. } => {
                if self.changes(value) {
                    self.changing.push(var.clone());
                }
                walk_stmt(self, s);
            }
            StmtKind::Seq(_) => walk_stmt(self, s),
            _ => self.differ = true,
        }
    }
}

/// Puts accesses into one half of the memory that takes the place of buffers.
struct InHalf<'a> {
    buffers: &'a [(Buffer, Buffer)],
    half: Expr,
}

impl Fold for InHalf<'_> {
    fn access(&mut self, buffer: &Buffer, indices: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
        let (_, two) = self.buffers.iter().find(|(from, _)| from == buffer)?;
        let half = self.half.clone().cast(indices.last().map_or(DType::I32, Expr::dtype));
        let own = indices.iter().map(|i| self.expr(i));
        Some((two.clone(), std::iter::once(half).chain(own.collect::<Vec<_>>()).collect()))
    }
}

/// Puts the loop that fills halves into the place of the one that filled all, and makes the memory of it two halves.
struct Halves<'a> {
    filled: &'a Filled,
}

impl Fold for Halves<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        e.clone()
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        if s.ptr_eq(&self.filled.at) {
            return self.filled.write();
        }
        let StmtKind::Allocate { buffer, annotations, body } = s.kind() else {
            return fold_stmt_children(self, s);
        };
        let two = self.filled.buffers.iter().find(|(from, _)| from == buffer);
        let Some((_, two)) = two else { return fold_stmt_children(self, s) };
        let mut annotations = annotations.clone();
        annotations.insert(ASYNC_COPY.into(), Attr::Int(1));
        let (buffer, body) = (two.clone(), self.stmt(body));
        Stmt::spanned(StmtKind::Allocate { buffer, annotations, body }, s.span())
    }
}
