//! Tensor functions.
//!
//! A tensor parameter is `A: T.Buffer(...)` where its description is made of constants and
//! nothing asks for the handle itself; otherwise the parameter is the handle, and
//! `A = T.match_buffer(...)` describes the buffer after variables such as extents are declared.

use tilewright_ir::hash::HashSet;

use tilewright_ir::text::{Names, commas, quote};
use tilewright_ir::visit::{Visit, walk_attrs, walk_buffer, walk_expr, walk_func, walk_stmt};
use tilewright_ir::{Attrs, Block, Buffer, Expr, ExprKind, Param, Stmt, StmtKind, TensorFunc, Var};

use super::Printer;
use crate::ranges::with_ranges;

/// Variables that are used, in the order of the text, and those that are defined.
#[derive(Default)]
pub(super) struct Uses {
    used: Vec<Var>,
    seen: HashSet<Var>,
    defined: HashSet<Var>,
    /// Whether elements of buffers are read.
    loads: bool,
}

impl Uses {
    /// The variables that nothing defines, in the order of the text.
    pub(super) fn free(&self) -> Vec<Var> {
        self.used.iter().filter(|v| !self.defined.contains(*v)).cloned().collect()
    }
}

impl Visit for Uses {
    fn expr(&mut self, e: &Expr) {
        if let ExprKind::Var(v) = e.kind()
            && self.seen.insert(v.clone())
        {
            self.used.push(v.clone());
        }
        walk_expr(self, e);
    }

    fn var_def(&mut self, v: &Var) {
        self.defined.insert(v.clone());
    }

    fn buffer_use(&mut self, _: &Buffer) {
        self.loads = true;
    }

    fn buffer_def(&mut self, b: &Buffer) {
        self.defined.insert(b.data.clone());
        walk_buffer(self, b);
    }

    fn stmt(&mut self, s: &Stmt) {
        // A view does not define its pointer.
        if let StmtKind::Declare { buffer, body } = s.kind() {
            self.expr(&buffer.data.expr());
            walk_buffer(self, buffer);
            return self.stmt(body);
        }
        walk_stmt(self, s);
    }
}

/// Whether a buffer's description is not made of constants.
fn is_symbolic(b: &Buffer) -> bool {
    let mut uses = Uses::default();
    walk_buffer(&mut uses, b);
    uses.loads || !uses.used.is_empty()
}

impl Printer<'_> {
    /// The decorator of a function, with its name in the module and the one in the text, and those
    /// of its parameters in the text and their own.
    pub(super) fn decorator<'n>(
        &mut self,
        kind: &str,
        private: bool,
        (key, name): (&str, &str),
        params: impl Iterator<Item = (&'n str, &'n str)>,
    ) {
        let mut parts: Vec<String> = Vec::new();
        if private {
            parts.push("private=True".to_owned());
        }
        if key != name {
            parts.push(format!("name={}", quote(key)));
        }
        let renamed = params.filter(|(text, real)| text != real);
        let renamed =
            commas(renamed.map(|(text, real)| format!("{}: {}", quote(text), quote(real))));
        if !renamed.is_empty() {
            parts.push(format!("names={{{renamed}}}"));
        }
        if parts.is_empty() {
            self.line(&format!("@{kind}"))
        } else {
            self.line(&format!("@{kind}({})", commas(parts)))
        }
    }

    /// The attributes of a function, the ranges of its sizes among them.
    pub(super) fn func_attrs<'v>(
        &mut self,
        space: &str,
        attrs: &Attrs,
        sizes: impl Iterator<Item = &'v Var>,
    ) {
        let attrs = with_ranges(attrs, sizes.map(|v| (v, self.names.var(v))));
        if !attrs.is_empty() {
            let attrs = self.attrs(&attrs);
            self.line(&format!("{space}.func_attr({attrs})"));
        }
    }

    /// A function; `key` is its name in the module, `name` the one in the text.
    pub(super) fn tensor_func(&mut self, key: &str, name: &str, f: &TensorFunc) {
        let mut uses = Uses::default();
        walk_func(&mut uses, f);
        walk_attrs(&mut uses, &f.attrs);
        self.names.push();
        let mut names: Vec<(String, &str)> = Vec::new();
        let mut header = Vec::new();
        let mut matched = Vec::new();
        for p in &f.params {
            match p {
                Param::Scalar(v) => {
                    uses.defined.insert(v.clone());
                    let name = self.names.define(v);
                    header.push(format!("{name}: T.{}", v.dtype()));
                    names.push((name, v.name()));
                }
                Param::Buffer { handle, buffer } => {
                    uses.defined.insert(handle.clone());
                    let name = self.names.define_buffer(buffer);
                    names.push((name.clone(), &buffer.name));
                    if is_symbolic(buffer) || uses.seen.contains(handle) {
                        matched.push((header.len(), handle, buffer, name));
                        header.push(String::new());
                    } else {
                        let args = self.buffer_args(buffer, None);
                        header.push(format!("{name}: T.Buffer({args})"));
                    }
                }
            }
        }
        for (at, handle, _, buffer_name) in &matched {
            let hint = if handle.name().as_ref() == buffer_name.as_str() {
                format!("{buffer_name}_handle")
            } else {
                handle.name().to_string()
            };
            let name = self.names.define_as(handle, &hint);
            if let Some(text) = header.get_mut(*at) {
                *text = format!("{name}: T.handle");
            }
        }
        let names = names.iter().map(|(text, real)| (text.as_str(), *real));
        self.decorator("T.prim_func", f.private, (key, name), names);
        let ret = f.ret.map_or(String::new(), |d| format!(" -> T.{d}"));
        self.line(&format!("def {name}({}){ret}:", commas(header)));
        self.indent += 1;
        let free = uses.free();
        for v in &free {
            let name = self.names.define(v);
            self.line(&format!("{name} = T.{}()", v.dtype()));
        }
        for (_, handle, buffer, name) in matched {
            let handle = self.expr(&handle.expr());
            let args = self.buffer_args(buffer, None);
            self.line(&format!("{name} = T.match_buffer({handle}, {args})"));
        }
        self.func_attrs("T", &f.attrs, free.iter().chain(f.scalars()));
        match implicit_root(f) {
            Some(root) => {
                root.allocs.iter().for_each(|a| self.alloc(a));
                self.body(&root.body);
            }
            None => self.body(&f.body),
        }
        self.indent -= 1;
        self.names.pop();
    }
}

/// The root block, where its buffers can be printed as those of the function.
fn implicit_root(f: &TensorFunc) -> Option<&Block> {
    let StmtKind::Block { bindings, predicate, .. } = f.body.kind() else { return None };
    let root = f.root()?;
    let inner_root = TensorFunc::new(Vec::new(), root.body.clone()).root().is_some();
    let plain = root.is_plain_root() && bindings.is_empty() && predicate.is_true();
    (plain && !root.allocs.is_empty() && !inner_root).then_some(root)
}
