//! A hash of tensor functions that agrees with structural equality.
//!
//! Variables and buffers are numbered by the order of their definition, so that names and
//! identities do not count; a variable bound by a `let` expression counts by its value, so that
//! the hash of an expression does not depend on where it occurs and shared parts are hashed once.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;

use crate::hash::HashMap;

use crate::buffer::Buffer;
use crate::expr::{Expr, ExprKind, Var};
use crate::func::{Param, TensorFunc};
use crate::stmt::{Attr, Attrs, Block, ForKind, Region, Stmt, StmtKind};
use crate::visit::{Visit, walk_block, walk_expr, walk_stmt};

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
    /// The number of a variable; free ones are numbered at their first use.
    fn var(&mut self, v: &Var) {
        let n = self.vars.len() as u64;
        self.vars.entry(v.clone()).or_insert(n).hash(&mut self.state);
    }

    fn count(&mut self, n: usize) {
        n.hash(&mut self.state);
    }

    fn attrs(&mut self, attrs: &Attrs, skip: &str) {
        for (key, value) in attrs.iter().filter(|(k, _)| &***k != skip) {
            key.hash(&mut self.state);
            self.attr(value);
        }
    }

    fn attr(&mut self, a: &Attr) {
        discriminant(a).hash(&mut self.state);
        match a {
            Attr::None => {}
            Attr::Bool(v) => v.hash(&mut self.state),
            Attr::Int(v) => v.hash(&mut self.state),
            Attr::Float(v) => float_bits(*v).hash(&mut self.state),
            Attr::Str(v) => v.hash(&mut self.state),
            Attr::Expr(e) => self.expr(e),
            Attr::List(items) => {
                self.count(items.len());
                items.iter().for_each(|a| self.attr(a));
            }
            Attr::Map(items) => {
                self.count(items.len());
                self.attrs(items, "");
            }
        }
    }
}

impl Visit for Finger {
    /// The hash of an expression goes into that of what it is a part of.
    fn expr(&mut self, e: &Expr) {
        let known = self.exprs.get(&e.address()).copied();
        let hash = known.unwrap_or_else(|| {
            let outer = std::mem::take(&mut self.state);
            (e.dtype(), discriminant(e.kind())).hash(&mut self.state);
            match e.kind() {
                ExprKind::Int(v) => v.hash(&mut self.state),
                ExprKind::Float(v) => float_bits(*v).hash(&mut self.state),
                ExprKind::Str(v) => v.hash(&mut self.state),
                ExprKind::Var(v) => self.var(v),
                ExprKind::Binary(op, ..) => op.hash(&mut self.state),
                ExprKind::Call(target, _) => target.hash(&mut self.state),
                _ => {}
            }
            match e.kind() {
                ExprKind::Let(v, value, body) => {
                    self.expr(value);
                    // The top bit keeps these apart from the numbers of other variables.
                    let value = self.exprs.get(&value.address()).map_or(0, |hash| hash | 1 << 63);
                    self.vars.insert(v.clone(), value);
                    self.expr(body);
                }
                _ => walk_expr(self, e),
            }
            let hash = std::mem::replace(&mut self.state, outer).finish();
            self.exprs.insert(e.address(), hash);
            hash
        });
        hash.hash(&mut self.state);
    }

    fn stmt(&mut self, s: &Stmt) {
        discriminant(s.kind()).hash(&mut self.state);
        // What the walk does not come to.
        match s.kind() {
            StmtKind::Store { indices: all, .. } | StmtKind::Block { bindings: all, .. } => {
                self.count(all.len());
            }
            StmtKind::Assert { message, values, .. } => {
                message.hash(&mut self.state);
                self.count(values.len());
            }
            StmtKind::For { kind, .. } => {
                discriminant(kind).hash(&mut self.state);
                if let ForKind::ThreadBinding(axis) = kind {
                    axis.hash(&mut self.state);
                }
            }
            StmtKind::If { otherwise, .. } => otherwise.is_some().hash(&mut self.state),
            StmtKind::Seq(stmts) => self.count(stmts.len()),
            StmtKind::Constant { value, .. } => {
                if value.dtype().is_float() {
                    (0..value.len())
                        .for_each(|i| float_bits(value.get_f64(i)).hash(&mut self.state))
                } else {
                    value.bytes().hash(&mut self.state)
                }
            }
            _ => {}
        }
        walk_stmt(self, s);
        if let StmtKind::For { annotations, .. } | StmtKind::Allocate { annotations, .. } = s.kind()
        {
            self.attrs(annotations, "");
        }
    }

    fn block(&mut self, b: &Block) {
        (b.iters.len(), b.allocs.len(), b.matches.len()).hash(&mut self.state);
        b.iters.iter().for_each(|i| i.kind.hash(&mut self.state));
        b.init.is_some().hash(&mut self.state);
        walk_block(self, b);
        self.attrs(&b.annotations, "");
    }

    fn region(&mut self, _: &Region) {}

    fn var_def(&mut self, v: &Var) {
        let n = self.vars.len() as u64;
        self.vars.insert(v.clone(), n);
        (v.dtype(), v.range()).hash(&mut self.state);
    }

    fn buffer_def(&mut self, b: &Buffer) {
        (b.dtype(), b.shape.len(), b.strides.len()).hash(&mut self.state);
        let offset = b.elem_offset.iter().filter(|e| e.as_int() != Some(0));
        b.shape.iter().chain(&b.strides).chain(offset).for_each(|e| self.expr(e));
        (&b.scope, &b.axis_separators, b.align, b.offset_factor).hash(&mut self.state);
        self.var(&b.data);
        let n = self.buffers.len() as u64;
        self.buffers.insert(b.clone(), n);
    }

    fn buffer_use(&mut self, b: &Buffer) {
        let n = self.buffers.len() as u64;
        self.buffers.entry(b.clone()).or_insert(n).hash(&mut self.state);
    }
}

/// Bits of a float, the same for every `NaN`.
fn float_bits(v: f64) -> u64 {
    if v.is_nan() { f64::NAN.to_bits() } else { v.to_bits() }
}
