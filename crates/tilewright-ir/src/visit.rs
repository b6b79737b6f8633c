//! The one recursion scheme: [`Visit`] looks at every node, [`Fold`] rebuilds the tree.
//!
//! Implement the trait and override the nodes that matter; call the `walk_*` or `fold_*_children`
//! function of the same name to go on below. A fold keeps the parts that it did not change: an
//! untouched subtree comes back as the same node in memory.
//!
//! ```
//! use tilewright_ir::{Expr, Visit, Var, visit};
//! struct Count(usize);
//! impl Visit for Count {
//!     fn expr(&mut self, e: &Expr) {
//!         self.0 += 1;
//!         visit::walk_expr(self, e);
//!     }
//! }
//! let mut count = Count(0);
//! count.expr(&(Var::index("i").expr() * 4 + 1));
//! assert_eq!(count.0, 5);
//! ```

use crate::hash::HashSet;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::expr::{Expr, ExprKind, Var};
use crate::func::{Param, TensorFunc};
use crate::stmt::{Attr, Attrs, Block, IterVar, MatchRegion, Range, Region, Stmt, StmtKind};

pub use crate::subst::Subst;

/// Looks at every node, outermost first, in the order of the text.
pub trait Visit {
    /// An expression.
    fn expr(&mut self, e: &Expr) {
        walk_expr(self, e);
    }
    /// A statement.
    fn stmt(&mut self, s: &Stmt) {
        walk_stmt(self, s);
    }
    /// The block of a block statement; its bindings and predicate have been visited.
    fn block(&mut self, b: &Block) {
        walk_block(self, b);
    }
    /// A variable at its definition.
    fn var_def(&mut self, _v: &Var) {}
    /// A buffer at its definition.
    fn buffer_def(&mut self, b: &Buffer) {
        walk_buffer(self, b);
    }
    /// A buffer where it is named by a load, a store or a region.
    fn buffer_use(&mut self, _b: &Buffer) {}
    /// What a block declares to read or write.
    fn region(&mut self, r: &Region) {
        walk_region(self, r);
    }
    /// A load before its indices, or a store after its value.
    fn access(&mut self, _b: &Buffer, _indices: &[Expr], _write: bool) {}
}

/// Visits the parts of an expression.
pub fn walk_expr<V: Visit + ?Sized>(v: &mut V, e: &Expr) {
    walk_expr_kind(v, e.kind());
}

/// [`walk_expr`] for a node that is being made.
pub(crate) fn walk_expr_kind<V: Visit + ?Sized>(v: &mut V, kind: &ExprKind) {
    match kind {
        ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Str(_)
        | ExprKind::Var(_)
        | ExprKind::Undef => {}
        ExprKind::Cast(a) | ExprKind::Not(a) | ExprKind::Broadcast(a) => v.expr(a),
        ExprKind::Binary(_, a, b) | ExprKind::Ramp(a, b) => {
            v.expr(a);
            v.expr(b);
        }
        ExprKind::Select(c, t, f) | ExprKind::IfThenElse(c, t, f) => {
            v.expr(c);
            v.expr(t);
            v.expr(f);
        }
        ExprKind::Load(b, indices) => {
            v.buffer_use(b);
            v.access(b, indices, false);
            indices.iter().for_each(|i| v.expr(i));
        }
        ExprKind::Call(_, args) => args.iter().for_each(|a| v.expr(a)),
        ExprKind::Let(var, value, body) => {
            v.expr(value);
            v.var_def(var);
            v.expr(body);
        }
    }
}

/// Visits the expressions in a buffer's shape, strides and offset.
pub fn walk_buffer<V: Visit + ?Sized>(v: &mut V, b: &Buffer) {
    b.shape.iter().chain(&b.strides).chain(&b.elem_offset).for_each(|e| v.expr(e));
}

/// Visits the bounds of a range.
pub fn walk_range<V: Visit + ?Sized>(v: &mut V, r: &Range) {
    v.expr(&r.min);
    v.expr(&r.extent);
}

/// Visits a region.
pub fn walk_region<V: Visit + ?Sized>(v: &mut V, r: &Region) {
    v.buffer_use(&r.buffer);
    r.ranges.iter().for_each(|r| walk_range(v, r));
}

fn walk_attr<V: Visit + ?Sized>(v: &mut V, a: &Attr) {
    match a {
        Attr::Expr(e) => v.expr(e),
        Attr::List(items) => items.iter().for_each(|a| walk_attr(v, a)),
        Attr::Map(items) => items.values().for_each(|a| walk_attr(v, a)),
        Attr::None | Attr::Bool(_) | Attr::Int(_) | Attr::Float(_) | Attr::Str(_) => {}
    }
}

/// Visits the expressions among annotations.
pub fn walk_attrs<V: Visit + ?Sized>(v: &mut V, attrs: &Attrs) {
    attrs.values().for_each(|a| walk_attr(v, a));
}

/// Visits the parts of a block.
pub fn walk_block<V: Visit + ?Sized>(v: &mut V, b: &Block) {
    for iter in &b.iters {
        walk_range(v, &iter.domain);
        v.var_def(&iter.var);
    }
    b.allocs.iter().for_each(|a| v.buffer_def(a));
    for m in &b.matches {
        walk_region(v, &m.source);
        v.buffer_def(&m.buffer);
    }
    b.reads.iter().chain(&b.writes).flatten().for_each(|r| v.region(r));
    walk_attrs(v, &b.annotations);
    b.init.iter().for_each(|s| v.stmt(s));
    v.stmt(&b.body);
}

/// Visits the parts of a statement.
pub fn walk_stmt<V: Visit + ?Sized>(v: &mut V, s: &Stmt) {
    walk_stmt_kind(v, s.kind());
}

/// [`walk_stmt`] for a node that is being made.
pub(crate) fn walk_stmt_kind<V: Visit + ?Sized>(v: &mut V, kind: &StmtKind) {
    match kind {
        StmtKind::Store { buffer, indices, value } => {
            v.buffer_use(buffer);
            indices.iter().for_each(|i| v.expr(i));
            v.expr(value);
            v.access(buffer, indices, true);
        }
        StmtKind::For { var, range, annotations, body, .. } => {
            walk_range(v, range);
            walk_attrs(v, annotations);
            v.var_def(var);
            v.stmt(body);
        }
        StmtKind::If { cond, then, otherwise } => {
            v.expr(cond);
            v.stmt(then);
            otherwise.iter().for_each(|s| v.stmt(s));
        }
        StmtKind::Let { var, value, body } => {
            v.expr(value);
            v.var_def(var);
            v.stmt(body);
        }
        StmtKind::Seq(stmts) => stmts.iter().for_each(|s| v.stmt(s)),
        StmtKind::Allocate { buffer, annotations, body } => {
            v.buffer_def(buffer);
            walk_attrs(v, annotations);
            v.stmt(body);
        }
        StmtKind::Constant { buffer, body, .. } | StmtKind::Declare { buffer, body } => {
            v.buffer_def(buffer);
            v.stmt(body);
        }
        StmtKind::Block { bindings, predicate, block } => {
            bindings.iter().for_each(|e| v.expr(e));
            v.expr(predicate);
            v.block(block);
        }
        StmtKind::Assume(e) | StmtKind::Evaluate(e) => v.expr(e),
        StmtKind::Assert { cond, values, .. } => {
            v.expr(cond);
            values.iter().for_each(|e| v.expr(e));
        }
    }
}

/// Visits the parameters' buffers and the body of a function.
pub fn walk_func<V: Visit + ?Sized>(v: &mut V, f: &TensorFunc) {
    for p in &f.params {
        match p {
            Param::Buffer { buffer, .. } => v.buffer_def(buffer),
            Param::Scalar(var) => v.var_def(var),
        }
    }
    v.stmt(&f.body);
}

/// Rebuilds the tree. Definitions are folded before what they scope over.
pub trait Fold {
    /// An expression.
    fn expr(&mut self, e: &Expr) -> Expr {
        fold_expr_children(self, e)
    }
    /// A statement.
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        fold_stmt_children(self, s)
    }
    /// The block of a block statement.
    fn block(&mut self, b: &Arc<Block>) -> Arc<Block> {
        fold_block_children(self, b)
    }
    /// A variable at its definition.
    fn var_def(&mut self, v: &Var) -> Var {
        v.clone()
    }
    /// A buffer at its definition.
    fn buffer_def(&mut self, b: &Buffer) -> Buffer {
        b.clone()
    }
    /// A buffer where it is named by a load, a store or a region.
    fn buffer_use(&mut self, b: &Buffer) -> Buffer {
        b.clone()
    }
    /// Another cell for a load or a store, in the place of the parts of this one.
    fn access(&mut self, _b: &Buffer, _indices: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
        None
    }
}

/// The folded parts of one node, and whether all of them are what they were.
struct Parts<'f, F: ?Sized> {
    fold: &'f mut F,
    same: bool,
}

impl<'f, F: Fold + ?Sized> Parts<'f, F> {
    fn new(fold: &'f mut F) -> Self {
        Parts { fold, same: true }
    }

    fn expr(&mut self, e: &Expr) -> Expr {
        let new = self.fold.expr(e);
        self.same &= new.ptr_eq(e);
        new
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        let new = self.fold.stmt(s);
        self.same &= new.ptr_eq(s);
        new
    }

    fn var_def(&mut self, v: &Var) -> Var {
        let new = self.fold.var_def(v);
        self.same &= new == *v;
        new
    }

    fn buffer_def(&mut self, b: &Buffer) -> Buffer {
        let new = self.fold.buffer_def(b);
        self.same &= new == *b;
        new
    }

    fn buffer_use(&mut self, b: &Buffer) -> Buffer {
        let new = self.fold.buffer_use(b);
        self.same &= new == *b;
        new
    }

    /// The parts of a cell: those of another one, where the fold says one.
    fn cell(&mut self, b: &Buffer, indices: &[Expr]) -> (Buffer, Vec<Expr>) {
        match self.fold.access(b, indices) {
            None => (self.buffer_use(b), self.exprs(indices)),
            Some(other) => {
                self.same = false;
                other
            }
        }
    }

    fn list<T>(&mut self, items: &[T], mut fold: impl FnMut(&mut Self, &T) -> T) -> Vec<T> {
        items.iter().map(|item| fold(self, item)).collect()
    }

    fn exprs(&mut self, items: &[Expr]) -> Vec<Expr> {
        self.list(items, Self::expr)
    }

    fn range(&mut self, r: &Range) -> Range {
        Range { min: self.expr(&r.min), extent: self.expr(&r.extent) }
    }

    fn region(&mut self, r: &Region) -> Region {
        Region { buffer: self.buffer_use(&r.buffer), ranges: self.list(&r.ranges, Self::range) }
    }

    fn regions(&mut self, regions: &Option<Vec<Region>>) -> Option<Vec<Region>> {
        regions.as_ref().map(|r| self.list(r, Self::region))
    }

    fn attr(&mut self, a: &Attr) -> Attr {
        match a {
            Attr::Expr(e) => Attr::Expr(self.expr(e)),
            Attr::List(items) => Attr::List(self.list(items, Self::attr)),
            Attr::Map(items) => Attr::Map(self.attrs(items)),
            Attr::None | Attr::Bool(_) | Attr::Int(_) | Attr::Float(_) | Attr::Str(_) => a.clone(),
        }
    }

    fn attrs(&mut self, attrs: &Attrs) -> Attrs {
        attrs.iter().map(|(k, a)| (k.clone(), self.attr(a))).collect()
    }
}

/// Folds the bounds of a range.
pub fn fold_range<F: Fold + ?Sized>(f: &mut F, r: &Range) -> Range {
    Parts::new(f).range(r)
}

/// Rebuilds an expression from its folded parts, with the type that follows from them.
pub fn fold_expr_children<F: Fold + ?Sized>(f: &mut F, e: &Expr) -> Expr {
    let mut p = Parts::new(f);
    let kind = match e.kind() {
        ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Str(_)
        | ExprKind::Var(_)
        | ExprKind::Undef => return e.clone(),
        ExprKind::Cast(a) => ExprKind::Cast(p.expr(a)),
        ExprKind::Not(a) => ExprKind::Not(p.expr(a)),
        ExprKind::Broadcast(a) => ExprKind::Broadcast(p.expr(a)),
        ExprKind::Binary(op, a, b) => ExprKind::Binary(*op, p.expr(a), p.expr(b)),
        ExprKind::Ramp(a, b) => ExprKind::Ramp(p.expr(a), p.expr(b)),
        ExprKind::Select(c, t, o) => ExprKind::Select(p.expr(c), p.expr(t), p.expr(o)),
        ExprKind::IfThenElse(c, t, o) => ExprKind::IfThenElse(p.expr(c), p.expr(t), p.expr(o)),
        ExprKind::Load(b, indices) => {
            let (buffer, indices) = p.cell(b, indices);
            ExprKind::Load(buffer, indices)
        }
        ExprKind::Call(target, args) => ExprKind::Call(target.clone(), p.exprs(args)),
        ExprKind::Let(var, value, body) => {
            let value = p.expr(value);
            ExprKind::Let(p.var_def(var), value, p.expr(body))
        }
    };
    if p.same {
        e.clone()
    } else {
        let dtype = kind.dtype(e.dtype());
        Expr::new(kind, dtype)
    }
}

/// Rebuilds a block from its folded parts.
pub fn fold_block_children<F: Fold + ?Sized>(f: &mut F, b: &Arc<Block>) -> Arc<Block> {
    let mut p = Parts::new(f);
    let new = Block {
        name: b.name.clone(),
        iters: p.list(&b.iters, |p, i| {
            let domain = p.range(&i.domain);
            IterVar { var: p.var_def(&i.var), domain, kind: i.kind }
        }),
        allocs: p.list(&b.allocs, Parts::buffer_def),
        matches: p.list(&b.matches, |p, m| {
            let source = p.region(&m.source);
            MatchRegion { buffer: p.buffer_def(&m.buffer), source }
        }),
        reads: p.regions(&b.reads),
        writes: p.regions(&b.writes),
        annotations: p.attrs(&b.annotations),
        init: b.init.as_ref().map(|s| p.stmt(s)),
        body: p.stmt(&b.body),
    };
    if p.same { b.clone() } else { Arc::new(new) }
}

/// Rebuilds a statement from its folded parts; it keeps its place in the source.
pub fn fold_stmt_children<F: Fold + ?Sized>(f: &mut F, s: &Stmt) -> Stmt {
    let mut p = Parts::new(f);
    // Parts are folded in the order in which they stand here.
    let kind = match s.kind() {
        StmtKind::Store { buffer, indices, value } => {
            let (buffer, indices) = p.cell(buffer, indices);
            StmtKind::Store { buffer, indices, value: p.expr(value) }
        }
        StmtKind::For { var, range, kind, annotations, body } => StmtKind::For {
            range: p.range(range),
            kind: kind.clone(),
            annotations: p.attrs(annotations),
            var: p.var_def(var),
            body: p.stmt(body),
        },
        StmtKind::If { cond, then, otherwise } => StmtKind::If {
            cond: p.expr(cond),
            then: p.stmt(then),
            otherwise: otherwise.as_ref().map(|o| p.stmt(o)),
        },
        StmtKind::Let { var, value, body } => {
            StmtKind::Let { value: p.expr(value), var: p.var_def(var), body: p.stmt(body) }
        }
        StmtKind::Seq(stmts) => {
            let seq = Stmt::seq(p.list(stmts, Parts::stmt));
            match seq.kind() {
                _ if p.same => return s.clone(),
                StmtKind::Seq(_) => seq.kind().clone(),
                _ => return seq,
            }
        }
        StmtKind::Allocate { buffer, annotations, body } => StmtKind::Allocate {
            buffer: p.buffer_def(buffer),
            annotations: p.attrs(annotations),
            body: p.stmt(body),
        },
        StmtKind::Constant { buffer, value, body } => StmtKind::Constant {
            buffer: p.buffer_def(buffer),
            value: value.clone(),
            body: p.stmt(body),
        },
        StmtKind::Declare { buffer, body } => {
            StmtKind::Declare { buffer: p.buffer_def(buffer), body: p.stmt(body) }
        }
        StmtKind::Block { bindings, predicate, block } => {
            let (bindings, predicate) = (p.exprs(bindings), p.expr(predicate));
            let new = p.fold.block(block);
            p.same &= Arc::ptr_eq(&new, block);
            StmtKind::Block { bindings, predicate, block: new }
        }
        StmtKind::Assume(e) => StmtKind::Assume(p.expr(e)),
        StmtKind::Evaluate(e) => StmtKind::Evaluate(p.expr(e)),
        StmtKind::Assert { cond, message, values } => StmtKind::Assert {
            cond: p.expr(cond),
            message: message.clone(),
            values: p.exprs(values),
        },
    };
    if p.same { s.clone() } else { Stmt::spanned(kind, s.span()) }
}

/// The buffer with folded extents, strides and offset; `None` where they stay as they are.
pub fn fold_buffer<F: Fold + ?Sized>(f: &mut F, b: &Buffer) -> Option<Buffer> {
    let mut p = Parts::new(f);
    let (shape, strides) = (p.exprs(&b.shape), p.exprs(&b.strides));
    let offset = b.elem_offset.as_ref().map(|e| p.expr(e));
    (!p.same).then(|| b.derive(|d| (d.shape, d.strides, d.elem_offset) = (shape, strides, offset)))
}

/// Folds the parameters' buffers and the body of a function.
pub fn fold_func<F: Fold + ?Sized>(f: &mut F, func: &TensorFunc) -> TensorFunc {
    // Scalars first: the shape of a tensor may name a scalar that comes after it.
    let scalars: Vec<Option<Var>> =
        func.params.iter().map(|p| p.scalar().map(|v| f.var_def(v))).collect();
    let params = func
        .params
        .iter()
        .zip(scalars)
        .map(|(p, scalar)| match p {
            Param::Buffer { handle, buffer } => {
                Param::Buffer { handle: f.var_def(handle), buffer: f.buffer_def(buffer) }
            }
            Param::Scalar(v) => Param::Scalar(scalar.unwrap_or_else(|| v.clone())),
        })
        .collect();
    let body = f.stmt(&func.body);
    TensorFunc { params, body, ..func.clone() }
}

/// Variables that an expression reads and does not bind itself.
pub fn free_vars(e: &Expr) -> HashSet<Var> {
    let (mut free, mut bound) = (HashSet::default(), HashSet::default());
    e.for_each(|part| {
        match part.kind() {
            ExprKind::Var(v) => drop(free.insert(v.clone())),
            ExprKind::Let(v, ..) => drop(bound.insert(v.clone())),
            _ => {}
        }
        part.var_bits() != 0 || part.effects().binds
    });
    free.retain(|v| !bound.contains(v));
    free
}

/// Buffers that a statement loads from and stores to, each once, in the order of the text.
/// Declared regions do not count, and a call may do more than this shows.
pub fn accessed(s: &Stmt) -> (Vec<Buffer>, Vec<Buffer>) {
    #[derive(Default)]
    struct Accessed {
        reads: Vec<Buffer>,
        writes: Vec<Buffer>,
    }
    impl Visit for Accessed {
        fn expr(&mut self, e: &Expr) {
            e.for_each_load(|b, _| {
                if !self.reads.contains(b) {
                    self.reads.push(b.clone());
                }
            });
        }
        fn stmt(&mut self, s: &Stmt) {
            if let StmtKind::Store { buffer, .. } = s.kind()
                && !self.writes.contains(buffer)
            {
                self.writes.push(buffer.clone());
            }
            walk_stmt(self, s);
        }
        fn block(&mut self, b: &Block) {
            for iter in &b.iters {
                walk_range(self, &iter.domain);
            }
            b.init.iter().for_each(|s| self.stmt(s));
            self.stmt(&b.body);
        }
    }
    let mut a = Accessed::default();
    a.stmt(s);
    (a.reads, a.writes)
}
