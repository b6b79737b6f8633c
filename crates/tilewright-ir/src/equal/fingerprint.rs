//! A hash of tensor functions that agrees with structural equality.
//!
//! Variables and buffers are numbered by the order of their definition, so that names and
//! identities do not count; a variable bound by a `let` expression counts by its value, so that
//! the hash of an expression does not depend on where it occurs and shared parts are hashed once.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::buffer::Buffer;
use crate::expr::{Expr, ExprKind, Var};
use crate::func::{Param, TensorFunc};
use crate::stmt::{Attr, Attrs, Block, ForKind, Range, Stmt, StmtKind};

/// A hash such that well-formed functions that are equal under any [`Equality`] of
/// [`tensor_funcs`] have equal hashes: names, regions, spans and the function's own name do not
/// count. It is the same in every run of the same build.
///
/// [`Equality`]: crate::equal::Equality
/// [`tensor_funcs`]: crate::equal::tensor_funcs
pub fn fingerprint(f: &TensorFunc) -> u64 {
    let mut h = Finger::default();
    f.params.len().hash(&mut h.state);
    for p in &f.params {
        if let Param::Scalar(v) = p {
            h.var_def(v);
        }
    }
    for p in &f.params {
        if let Param::Buffer { handle, buffer } = p {
            h.var_def(handle);
            h.buffer_def(buffer);
        }
    }
    h.attrs(&f.attrs, "global_symbol");
    f.ret.hash(&mut h.state);
    h.stmt(&f.body);
    h.state.finish()
}

#[derive(Default)]
struct Finger {
    state: DefaultHasher,
    vars: HashMap<Var, u64>,
    buffers: HashMap<Buffer, u64>,
    /// Hashes of expressions by the address of their node.
    exprs: HashMap<usize, u64>,
}

impl Finger {
    fn var_def(&mut self, v: &Var) {
        let n = self.vars.len() as u64;
        self.vars.insert(v.clone(), n);
        v.dtype().hash(&mut self.state);
        v.range().hash(&mut self.state);
    }

    /// The number of a variable; free ones are numbered at their first use.
    fn var(&mut self, v: &Var) -> u64 {
        let n = self.vars.len() as u64;
        *self.vars.entry(v.clone()).or_insert(n)
    }

    fn buffer_def(&mut self, b: &Buffer) {
        b.dtype().hash(&mut self.state);
        self.exprs(&b.shape);
        self.exprs(&b.strides);
        let offset = b.elem_offset.iter().filter(|e| e.as_int() != Some(0));
        offset.for_each(|e| self.put(e));
        (&b.scope, &b.axis_separators, b.align, b.offset_factor).hash(&mut self.state);
        let data = self.var(&b.data);
        data.hash(&mut self.state);
        let n = self.buffers.len() as u64;
        self.buffers.insert(b.clone(), n);
    }

    fn buffer(&mut self, b: &Buffer) -> u64 {
        let n = self.buffers.len() as u64;
        *self.buffers.entry(b.clone()).or_insert(n)
    }

    fn put(&mut self, e: &Expr) {
        let h = self.expr(e);
        h.hash(&mut self.state);
    }

    fn exprs(&mut self, items: &[Expr]) {
        items.len().hash(&mut self.state);
        items.iter().for_each(|e| self.put(e));
    }

    fn expr(&mut self, e: &Expr) -> u64 {
        if let Some(h) = self.exprs.get(&e.address()) {
            return *h;
        }
        let mut s = DefaultHasher::new();
        e.dtype().hash(&mut s);
        std::mem::discriminant(e.kind()).hash(&mut s);
        match e.kind() {
            ExprKind::Int(v) => v.hash(&mut s),
            ExprKind::Float(v) => float_bits(*v).hash(&mut s),
            ExprKind::Str(v) => v.hash(&mut s),
            ExprKind::Var(v) => self.var(v).hash(&mut s),
            ExprKind::Undef => {}
            ExprKind::Cast(a) | ExprKind::Not(a) | ExprKind::Broadcast(a) => {
                self.expr(a).hash(&mut s);
            }
            ExprKind::Binary(op, a, b) => (op, self.expr(a), self.expr(b)).hash(&mut s),
            ExprKind::Ramp(a, b) => (self.expr(a), self.expr(b)).hash(&mut s),
            ExprKind::Select(c, t, f) | ExprKind::IfThenElse(c, t, f) => {
                (self.expr(c), self.expr(t), self.expr(f)).hash(&mut s);
            }
            ExprKind::Load(b, indices) => {
                self.buffer(b).hash(&mut s);
                indices.iter().for_each(|i| self.expr(i).hash(&mut s));
            }
            ExprKind::Call(target, args) => {
                target.hash(&mut s);
                args.iter().for_each(|a| self.expr(a).hash(&mut s));
            }
            ExprKind::Let(v, value, body) => {
                let value = self.expr(value);
                // The top bit keeps these apart from the numbers of other variables.
                self.vars.insert(v.clone(), value | (1 << 63));
                (value, self.expr(body)).hash(&mut s);
            }
        }
        let h = s.finish();
        self.exprs.insert(e.address(), h);
        h
    }

    fn range(&mut self, r: &Range) {
        self.put(&r.min);
        self.put(&r.extent);
    }

    fn attrs(&mut self, attrs: &Attrs, skip: &str) {
        for (key, value) in attrs.iter().filter(|(k, _)| &***k != skip) {
            key.hash(&mut self.state);
            self.attr(value);
        }
    }

    fn attr(&mut self, a: &Attr) {
        std::mem::discriminant(a).hash(&mut self.state);
        match a {
            Attr::None => {}
            Attr::Bool(v) => v.hash(&mut self.state),
            Attr::Int(v) => v.hash(&mut self.state),
            Attr::Float(v) => float_bits(*v).hash(&mut self.state),
            Attr::Str(v) => v.hash(&mut self.state),
            Attr::Expr(e) => self.put(e),
            Attr::List(items) => {
                items.len().hash(&mut self.state);
                items.iter().for_each(|a| self.attr(a));
            }
            Attr::Map(items) => {
                items.len().hash(&mut self.state);
                self.attrs(items, "");
            }
        }
    }

    fn stmt(&mut self, s: &Stmt) {
        std::mem::discriminant(s.kind()).hash(&mut self.state);
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => {
                let b = self.buffer(buffer);
                b.hash(&mut self.state);
                self.exprs(indices);
                self.put(value);
            }
            StmtKind::For { var, range, kind, annotations, body } => {
                self.range(range);
                std::mem::discriminant(kind).hash(&mut self.state);
                if let ForKind::ThreadBinding(axis) = kind {
                    axis.hash(&mut self.state);
                }
                self.attrs(annotations, "");
                self.var_def(var);
                self.stmt(body);
            }
            StmtKind::If { cond, then, otherwise } => {
                self.put(cond);
                self.stmt(then);
                otherwise.is_some().hash(&mut self.state);
                otherwise.iter().for_each(|s| self.stmt(s));
            }
            StmtKind::Let { var, value, body } => {
                self.put(value);
                self.var_def(var);
                self.stmt(body);
            }
            StmtKind::Seq(stmts) => {
                stmts.len().hash(&mut self.state);
                stmts.iter().for_each(|s| self.stmt(s));
            }
            StmtKind::Allocate { buffer, annotations, body } => {
                self.buffer_def(buffer);
                self.attrs(annotations, "");
                self.stmt(body);
            }
            StmtKind::Constant { buffer, value, body } => {
                self.buffer_def(buffer);
                match value.dtype().is_float() {
                    true => (0..value.len())
                        .for_each(|i| float_bits(value.get_f64(i)).hash(&mut self.state)),
                    false => value.bytes().hash(&mut self.state),
                }
                self.stmt(body);
            }
            StmtKind::Declare { buffer, body } => {
                self.buffer_def(buffer);
                self.stmt(body);
            }
            StmtKind::Block { bindings, predicate, block } => {
                self.exprs(bindings);
                self.put(predicate);
                self.block(block);
            }
            StmtKind::Assume(e) | StmtKind::Evaluate(e) => self.put(e),
            StmtKind::Assert { cond, message, values } => {
                self.put(cond);
                self.exprs(values);
                message.hash(&mut self.state);
            }
        }
    }

    fn block(&mut self, b: &Block) {
        (b.iters.len(), b.allocs.len(), b.matches.len()).hash(&mut self.state);
        for iter in &b.iters {
            self.range(&iter.domain);
            iter.kind.hash(&mut self.state);
            self.var_def(&iter.var);
        }
        b.allocs.iter().for_each(|a| self.buffer_def(a));
        for m in &b.matches {
            let source = self.buffer(&m.source.buffer);
            source.hash(&mut self.state);
            m.source.ranges.iter().for_each(|r| self.range(r));
            self.buffer_def(&m.buffer);
        }
        self.attrs(&b.annotations, "");
        b.init.is_some().hash(&mut self.state);
        b.init.iter().for_each(|s| self.stmt(s));
        self.stmt(&b.body);
    }
}

/// Bits of a float, the same for every `NaN`.
fn float_bits(v: f64) -> u64 {
    if v.is_nan() { f64::NAN.to_bits() } else { v.to_bits() }
}
