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

use std::collections::HashSet;
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
    b.reads.iter().chain(&b.writes).flatten().for_each(|r| walk_region(v, r));
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

/// Folds each element; `None` if none changed.
fn fold_list<T>(
    items: &[T],
    mut fold: impl FnMut(&T) -> T,
    same: impl Fn(&T, &T) -> bool,
) -> Option<Vec<T>> {
    let mut changed = false;
    let folded: Vec<T> = items
        .iter()
        .map(|old| {
            let new = fold(old);
            changed |= !same(old, &new);
            new
        })
        .collect();
    changed.then_some(folded)
}

pub(crate) fn fold_exprs<F: Fold + ?Sized>(f: &mut F, items: &[Expr]) -> Option<Vec<Expr>> {
    fold_list(items, |e| f.expr(e), Expr::ptr_eq)
}

/// Rebuilds an expression from its folded parts, with the type that follows from them.
pub fn fold_expr_children<F: Fold + ?Sized>(f: &mut F, e: &Expr) -> Expr {
    let same = |pairs: &[(&Expr, &Expr)]| pairs.iter().all(|(a, b)| a.ptr_eq(b));
    match e.kind() {
        ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Str(_)
        | ExprKind::Var(_)
        | ExprKind::Undef => e.clone(),
        ExprKind::Cast(a) => {
            let x = f.expr(a);
            if x.ptr_eq(a) { e.clone() } else { Expr::cast_node(x, e.dtype()) }
        }
        ExprKind::Not(a) => {
            let x = f.expr(a);
            if x.ptr_eq(a) { e.clone() } else { Expr::not_node(x) }
        }
        ExprKind::Broadcast(a) => {
            let x = f.expr(a);
            if x.ptr_eq(a) { e.clone() } else { Expr::broadcast(x, e.dtype().lanes) }
        }
        ExprKind::Binary(op, a, b) => {
            let (x, y) = (f.expr(a), f.expr(b));
            if same(&[(&x, a), (&y, b)]) { e.clone() } else { Expr::binary(*op, x, y) }
        }
        ExprKind::Ramp(a, b) => {
            let (x, y) = (f.expr(a), f.expr(b));
            if same(&[(&x, a), (&y, b)]) { e.clone() } else { Expr::ramp(x, y, e.dtype().lanes) }
        }
        ExprKind::Select(c, t, o) => {
            let (x, y, z) = (f.expr(c), f.expr(t), f.expr(o));
            match same(&[(&x, c), (&y, t), (&z, o)]) {
                true => e.clone(),
                false => Expr::select(x, y, z),
            }
        }
        ExprKind::IfThenElse(c, t, o) => {
            let (x, y, z) = (f.expr(c), f.expr(t), f.expr(o));
            match same(&[(&x, c), (&y, t), (&z, o)]) {
                true => e.clone(),
                false => Expr::if_then_else(x, y, z),
            }
        }
        ExprKind::Load(b, indices) => {
            if let Some((buffer, indices)) = f.access(b, indices) {
                return Expr::load(&buffer, indices);
            }
            let buffer = f.buffer_use(b);
            match (buffer == *b, fold_exprs(f, indices)) {
                (true, None) => e.clone(),
                (_, new) => Expr::load(&buffer, new.unwrap_or_else(|| indices.clone())),
            }
        }
        ExprKind::Call(target, args) => match fold_exprs(f, args) {
            None => e.clone(),
            Some(new) => {
                let lanes = new.iter().map(|a| a.dtype().lanes).max().unwrap_or(1);
                Expr::call(target.clone(), new, e.dtype().with_lanes(lanes.max(e.dtype().lanes)))
            }
        },
        ExprKind::Let(var, value, body) => {
            let x = f.expr(value);
            let v = f.var_def(var);
            let y = f.expr(body);
            match v == *var && same(&[(&x, value), (&y, body)]) {
                true => e.clone(),
                false => Expr::let_in(v, x, y),
            }
        }
    }
}

fn same_range(a: &Range, b: &Range) -> bool {
    a.min.ptr_eq(&b.min) && a.extent.ptr_eq(&b.extent)
}

fn same_region(a: &Region, b: &Region) -> bool {
    a.buffer == b.buffer && a.ranges.iter().zip(&b.ranges).all(|(a, b)| same_range(a, b))
}

/// Folds the bounds of a range.
pub fn fold_range<F: Fold + ?Sized>(f: &mut F, r: &Range) -> Range {
    Range { min: f.expr(&r.min), extent: f.expr(&r.extent) }
}

/// Folds a region.
fn fold_region<F: Fold + ?Sized>(f: &mut F, r: &Region) -> Region {
    let buffer = f.buffer_use(&r.buffer);
    Region { buffer, ranges: r.ranges.iter().map(|r| fold_range(f, r)).collect() }
}

fn fold_attr<F: Fold + ?Sized>(f: &mut F, a: &Attr) -> Attr {
    match a {
        Attr::Expr(e) => Attr::Expr(f.expr(e)),
        Attr::List(items) => Attr::List(items.iter().map(|a| fold_attr(f, a)).collect()),
        Attr::Map(items) => Attr::Map(fold_attrs(f, items)),
        Attr::None | Attr::Bool(_) | Attr::Int(_) | Attr::Float(_) | Attr::Str(_) => a.clone(),
    }
}

/// Folds the expressions among annotations.
fn fold_attrs<F: Fold + ?Sized>(f: &mut F, attrs: &Attrs) -> Attrs {
    attrs.iter().map(|(k, a)| (k.clone(), fold_attr(f, a))).collect()
}

/// Whether annotations hold no expressions, so that folding cannot change them.
fn attrs_are_plain(attrs: &Attrs) -> bool {
    attrs.values().all(|a| !matches!(a, Attr::Expr(_) | Attr::List(_) | Attr::Map(_)))
}

/// Rebuilds a block from its folded parts.
pub fn fold_block_children<F: Fold + ?Sized>(f: &mut F, b: &Arc<Block>) -> Arc<Block> {
    let same_iter = |a: &IterVar, b: &IterVar| a.var == b.var && same_range(&a.domain, &b.domain);
    let iters = fold_list(
        &b.iters,
        |i| {
            let domain = fold_range(f, &i.domain);
            IterVar { var: f.var_def(&i.var), domain, kind: i.kind }
        },
        same_iter,
    );
    let allocs = fold_list(&b.allocs, |a| f.buffer_def(a), |a, b| a == b);
    let matches = fold_list(
        &b.matches,
        |m| {
            let source = fold_region(f, &m.source);
            MatchRegion { buffer: f.buffer_def(&m.buffer), source }
        },
        |a, b| a.buffer == b.buffer && same_region(&a.source, &b.source),
    );
    let mut regions = |r: &Option<Vec<Region>>| {
        r.as_ref().and_then(|r| fold_list(r, |r| fold_region(f, r), same_region))
    };
    let (reads, writes) = (regions(&b.reads), regions(&b.writes));
    let annotations = (!attrs_are_plain(&b.annotations)).then(|| fold_attrs(f, &b.annotations));
    let init = b.init.as_ref().map(|s| f.stmt(s));
    let body = f.stmt(&b.body);
    let init_same = match (&init, &b.init) {
        (Some(x), Some(y)) => x.ptr_eq(y),
        _ => true,
    };
    if iters.is_none()
        && allocs.is_none()
        && matches.is_none()
        && reads.is_none()
        && writes.is_none()
        && annotations.is_none()
        && init_same
        && body.ptr_eq(&b.body)
    {
        return b.clone();
    }
    Arc::new(Block {
        name: b.name.clone(),
        iters: iters.unwrap_or_else(|| b.iters.clone()),
        reads: reads.or_else(|| b.reads.clone()),
        writes: writes.or_else(|| b.writes.clone()),
        annotations: annotations.unwrap_or_else(|| b.annotations.clone()),
        allocs: allocs.unwrap_or_else(|| b.allocs.clone()),
        matches: matches.unwrap_or_else(|| b.matches.clone()),
        init,
        body,
    })
}

/// Rebuilds a statement from its folded parts; it keeps its place in the source.
pub fn fold_stmt_children<F: Fold + ?Sized>(f: &mut F, s: &Stmt) -> Stmt {
    let rebuilt = |kind| Stmt::spanned(kind, s.span());
    match s.kind() {
        StmtKind::Store { buffer, indices, value } => {
            if let Some((buffer, indices)) = f.access(buffer, indices) {
                return rebuilt(StmtKind::Store { buffer, indices, value: f.expr(value) });
            }
            let b = f.buffer_use(buffer);
            let i = fold_exprs(f, indices);
            let v = f.expr(value);
            if b == *buffer && i.is_none() && v.ptr_eq(value) {
                return s.clone();
            }
            let indices = i.unwrap_or_else(|| indices.clone());
            rebuilt(StmtKind::Store { buffer: b, indices, value: v })
        }
        StmtKind::For { var, range, kind, annotations, body } => {
            let r = fold_range(f, range);
            let a = (!attrs_are_plain(annotations)).then(|| fold_attrs(f, annotations));
            let v = f.var_def(var);
            let b = f.stmt(body);
            if same_range(&r, range) && a.is_none() && v == *var && b.ptr_eq(body) {
                return s.clone();
            }
            rebuilt(StmtKind::For {
                var: v,
                range: r,
                kind: kind.clone(),
                annotations: a.unwrap_or_else(|| annotations.clone()),
                body: b,
            })
        }
        StmtKind::If { cond, then, otherwise } => {
            let c = f.expr(cond);
            let t = f.stmt(then);
            let o = otherwise.as_ref().map(|o| f.stmt(o));
            let o_same = match (&o, otherwise) {
                (Some(x), Some(y)) => x.ptr_eq(y),
                _ => true,
            };
            if c.ptr_eq(cond) && t.ptr_eq(then) && o_same {
                return s.clone();
            }
            rebuilt(StmtKind::If { cond: c, then: t, otherwise: o })
        }
        StmtKind::Let { var, value, body } => {
            let x = f.expr(value);
            let v = f.var_def(var);
            let b = f.stmt(body);
            if x.ptr_eq(value) && v == *var && b.ptr_eq(body) {
                return s.clone();
            }
            rebuilt(StmtKind::Let { var: v, value: x, body: b })
        }
        StmtKind::Seq(stmts) => match fold_list(stmts, |s| f.stmt(s), Stmt::ptr_eq) {
            None => s.clone(),
            Some(new) => {
                let seq = Stmt::seq(new);
                match seq.kind() {
                    StmtKind::Seq(_) => rebuilt(seq.kind().clone()),
                    _ => seq,
                }
            }
        },
        StmtKind::Allocate { buffer, annotations, body } => {
            let b = f.buffer_def(buffer);
            let a = (!attrs_are_plain(annotations)).then(|| fold_attrs(f, annotations));
            let x = f.stmt(body);
            if b == *buffer && a.is_none() && x.ptr_eq(body) {
                return s.clone();
            }
            let annotations = a.unwrap_or_else(|| annotations.clone());
            rebuilt(StmtKind::Allocate { buffer: b, annotations, body: x })
        }
        StmtKind::Constant { buffer, value, body } => {
            let b = f.buffer_def(buffer);
            let x = f.stmt(body);
            if b == *buffer && x.ptr_eq(body) {
                return s.clone();
            }
            rebuilt(StmtKind::Constant { buffer: b, value: value.clone(), body: x })
        }
        StmtKind::Declare { buffer, body } => {
            let b = f.buffer_def(buffer);
            let x = f.stmt(body);
            if b == *buffer && x.ptr_eq(body) {
                return s.clone();
            }
            rebuilt(StmtKind::Declare { buffer: b, body: x })
        }
        StmtKind::Block { bindings, predicate, block } => {
            let bs = fold_exprs(f, bindings);
            let p = f.expr(predicate);
            let b = f.block(block);
            if bs.is_none() && p.ptr_eq(predicate) && Arc::ptr_eq(&b, block) {
                return s.clone();
            }
            let bindings = bs.unwrap_or_else(|| bindings.clone());
            rebuilt(StmtKind::Block { bindings, predicate: p, block: b })
        }
        StmtKind::Assume(e) => {
            let x = f.expr(e);
            if x.ptr_eq(e) { s.clone() } else { rebuilt(StmtKind::Assume(x)) }
        }
        StmtKind::Evaluate(e) => {
            let x = f.expr(e);
            if x.ptr_eq(e) { s.clone() } else { rebuilt(StmtKind::Evaluate(x)) }
        }
        StmtKind::Assert { cond, message, values } => {
            let c = f.expr(cond);
            match (c.ptr_eq(cond), fold_exprs(f, values)) {
                (true, None) => s.clone(),
                (_, new) => {
                    let (message, values) =
                        (message.clone(), new.unwrap_or_else(|| values.clone()));
                    rebuilt(StmtKind::Assert { cond: c, message, values })
                }
            }
        }
    }
}

/// The buffer with folded extents, strides and offset; `None` where they stay as they are.
pub fn fold_buffer<F: Fold + ?Sized>(f: &mut F, b: &Buffer) -> Option<Buffer> {
    let shape = fold_exprs(f, &b.shape);
    let strides = fold_exprs(f, &b.strides);
    let offset = b.elem_offset.as_ref().map(|e| (e, f.expr(e)));
    let offset = offset.filter(|(old, new)| !old.ptr_eq(new)).map(|(_, new)| new);
    if shape.is_none() && strides.is_none() && offset.is_none() {
        return None;
    }
    Some(b.derive(|d| {
        d.shape = shape.unwrap_or_else(|| d.shape.clone());
        d.strides = strides.unwrap_or_else(|| d.strides.clone());
        d.elem_offset = offset.or_else(|| d.elem_offset.clone());
    }))
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
    let (mut free, mut bound) = (HashSet::new(), HashSet::new());
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
