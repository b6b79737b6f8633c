//! Tensor functions: `@T.prim_func`.
//!
//! A binding (`x: T.int32 = ...`, `A = T.decl_buffer(...)`, `i = T.launch_thread(...)`) holds for
//! the rest of its suite, and becomes a statement around that rest. A suite is read in one pass
//! into pieces and closed from its end.
//!
//! `T.alloc_buffer` has two meanings. In the older dialect it allocates in the block (or the
//! function) whose suite it is in. In the newer one that is `T.sblock_alloc_buffer`, and
//! `T.alloc_buffer` is memory for the rest of the suite, as `T.decl_buffer` without `data` is.

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use ruff_python_ast as ast;
use ruff_python_ast::visitor::{Visitor, walk_expr};
use ruff_text_size::Ranged;
use tilewright_ir::stmt::MAX_NESTING;
use tilewright_ir::{
    Attrs, Block, Buffer, CallTarget, DType, Error, Expr, ForKind, IterKind, IterVar, MatchRegion,
    Param, Range, Region, Result, Span, Stmt, StmtKind, TensorFunc, Var,
};

use crate::args::{Args, elements, parameters, string};
use crate::env::Item;
use crate::expr::{ExprParser, Index, Space};
use crate::functions::FuncHead;
use crate::value::{TextValue, unify};

mod blocks;
mod buffers;
mod params;
mod scopes;

use self::blocks::axis_kind;
pub(crate) use self::blocks::axis_names;
pub(crate) use self::params::{declared_types, define_dimensions};
pub(crate) use self::scopes::LOOPS;

/// Where a suite is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// Directly in the function.
    Function,
    /// Directly in a block.
    Block,
    /// In a loop, a condition, ...
    Inner,
}

/// A block whose suite is read.
struct Frame {
    block: Block,
    bindings: Vec<Expr>,
    predicate: Option<Expr>,
}

impl Frame {
    /// Whether a view that the body declares occurs in the regions of the block, so that it has to
    /// be declared around it, and can be.
    fn names_outside(&self, view: &Buffer) -> bool {
        let b = &self.block;
        let own = b.allocs.iter().chain(b.matches.iter().map(|m| &m.buffer));
        let mut parts = view.shape.iter().chain(&view.strides).chain(&view.elem_offset);
        b.reads.iter().chain(&b.writes).flatten().any(|r| r.buffer == *view)
            && own.into_iter().all(|b| b.data != view.data)
            && parts.all(|e| e.as_int().is_some())
    }
}

enum Piece {
    Stmt(Stmt),
    /// A binding that holds for the rest of its suite, which becomes its body.
    Around(Stmt),
}

/// Reads one tensor function.
pub(crate) struct TensorParser<'a> {
    x: &'a mut ExprParser,
    newer: bool,
    head: &'a FuncHead,
    loops: HashMap<Var, Range>,
    /// Handles are scalars until they have their buffers.
    params: Vec<Param>,
    blocks: Vec<Frame>,
    attrs: Attrs,
    allocs: Vec<Buffer>,
    /// Buffers whose offset the text names: it gets a variable of its own.
    offsets: HashSet<String>,
    depth: usize,
}

/// Reads a function. `newer` is the dialect; see the head of this file.
pub(crate) fn tensor_func(
    x: &mut ExprParser,
    text: &str,
    newer: bool,
    head: &FuncHead,
    f: &ast::StmtFunctionDef,
) -> Result<TensorFunc> {
    x.env.push();
    let mut parser = TensorParser {
        x,
        newer,
        head,
        loops: HashMap::default(),
        params: Vec::new(),
        blocks: Vec::new(),
        attrs: Attrs::new(),
        allocs: Vec::new(),
        offsets: named_offsets(text, f),
        depth: 0,
    };
    let result = parser.function(f);
    x.env.pop();
    result
}

/// Names `A` of which the function says `A.elem_offset`.
fn named_offsets(text: &str, f: &ast::StmtFunctionDef) -> HashSet<String> {
    let span = crate::syntax::span(f);
    let body = text.get(span.start as usize..span.end as usize).unwrap_or("");
    body.match_indices(".elem_offset")
        .map(|(at, _)| {
            let before = body.get(..at).unwrap_or("");
            let name = before.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next();
            name.unwrap_or("").to_owned()
        })
        .collect()
}

/// Statements one after the other, nothing dropped.
fn sequence(stmts: Vec<Stmt>) -> Stmt {
    let mut flat = Vec::with_capacity(stmts.len());
    for s in stmts {
        match s.kind() {
            StmtKind::Seq(inner) => flat.extend(inner.iter().cloned()),
            _ => flat.push(s),
        }
    }
    match (flat.pop(), flat.is_empty()) {
        (None, _) => Stmt::nop(),
        (Some(only), true) => only,
        (Some(last), false) => {
            let span = flat.first().and_then(Stmt::span);
            flat.push(last);
            Stmt::spanned(StmtKind::Seq(flat), span)
        }
    }
}

impl TensorParser<'_> {
    fn function(&mut self, f: &ast::StmtFunctionDef) -> Result<TensorFunc> {
        self.x.find_ranges(&f.body);
        self.parameters(f)?;
        let ret = match f.returns.as_deref() {
            None | Some(ast::Expr::NoneLiteral(_)) => None,
            Some(e) => Some(self.x.dtype(e)?).filter(|d| *d != DType::VOID),
        };
        let body = sequence(self.suite(&f.body, Level::Function)?);
        let span = crate::syntax::span(&f.name);
        let mut func = TensorFunc::new(std::mem::take(&mut self.params), body);
        func.attrs = std::mem::take(&mut self.attrs);
        func.ret = ret;
        func.private = self.head.private;
        func.span = Some(span);
        if !self.allocs.is_empty() {
            let (before, inner) = func.root_parts();
            let allocs = before.iter().chain(&self.allocs).cloned().collect();
            let inner = inner.clone();
            func = func.with_root(allocs, inner);
            if func.body.span().is_none() {
                func.body = Stmt::spanned(func.body.kind().clone(), Some(span));
            }
        }
        Ok(func)
    }

    /// Goes one level deeper.
    fn deeper(&mut self, at: Span) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            Err(Error::syntax("statements are nested too deeply").at(at).note(format!(
                "at most {MAX_NESTING} loops, conditions, blocks and bindings may be around each other"
            )))
        } else {
            Ok(())
        }
    }

    /// Reads what is one scope: what it defines is not known after it.
    fn scoped<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = self.depth;
        self.x.env.push();
        let result = read(self);
        self.x.env.pop();
        self.depth = before;
        result
    }

    /// Statements with a common indentation, in a scope of their own.
    fn suite(&mut self, stmts: &[ast::Stmt], level: Level) -> Result<Vec<Stmt>> {
        let pieces = self.scoped(|p| {
            let mut pieces = Vec::new();
            stmts.iter().try_for_each(|s| p.statement(s, level, &mut pieces)).map(|()| pieces)
        })?;
        // From the end, with the statements of the tail in reverse order.
        let mut tail: Vec<Stmt> = Vec::new();
        for piece in pieces.into_iter().rev() {
            match piece {
                Piece::Stmt(s) => tail.push(s),
                Piece::Around(binding) => {
                    tail.reverse();
                    let body = sequence(std::mem::take(&mut tail));
                    tail.push(binding.with_body(body));
                }
            }
        }
        tail.reverse();
        Ok(tail)
    }

    /// A binding whose body is what follows.
    fn around(&mut self, binding: StmtKind, span: Span, out: &mut Vec<Piece>) -> Result<()> {
        self.deeper(span)?;
        out.push(Piece::Around(Stmt::spanned(binding, Some(span))));
        Ok(())
    }

    fn statement(&mut self, s: &ast::Stmt, level: Level, out: &mut Vec<Piece>) -> Result<()> {
        let span = self.x.span(s);
        let mut push = |kind| out.push(Piece::Stmt(Stmt::spanned(kind, Some(span))));
        match s {
            ast::Stmt::Pass(_) => Ok(()),
            ast::Stmt::Expr(e) => self.expression(&e.value, span, level, out),
            ast::Stmt::Assign(a) => match a.targets.as_slice() {
                [target] => self.assign(target, None, &a.value, span, level, out),
                _ => Err(Error::syntax("expected one target of the assignment").at(span)),
            },
            ast::Stmt::AnnAssign(a) => match &a.value {
                Some(value) => self.assign(&a.target, Some(&a.annotation), value, span, level, out),
                None => self.declare(&a.target, &a.annotation),
            },
            ast::Stmt::AugAssign(a) => {
                let ast::Expr::Subscript(target) = &*a.target else {
                    return Err(self.x.error(&*a.target, "expected an element of a buffer"));
                };
                let buffer = self.x.buffer(&target.value)?;
                let indices = self.x.point(&buffer, target)?;
                let old = Expr::load(&buffer, indices.clone());
                let dtype = old.dtype();
                let right = self.x.value(&a.value)?;
                let value = self.x.operator(a.op, TextValue::Typed(old), right);
                let value = value.and_then(|v| v.convert(dtype, self.x.int));
                let value = value.map_err(|err| err.at(span))?;
                push(StmtKind::Store { buffer, indices, value });
                Ok(())
            }
            ast::Stmt::For(f) => {
                let stmt = self.for_loop(f)?;
                out.push(Piece::Stmt(stmt));
                Ok(())
            }
            ast::Stmt::If(i) => {
                let stmt = self.scoped(|p| p.branches(i))?;
                out.push(Piece::Stmt(stmt));
                Ok(())
            }
            ast::Stmt::With(w) => self.with(w, level, out),
            ast::Stmt::Assert(a) => {
                let (message, values) = match a.msg.as_deref() {
                    None => ("".into(), Vec::new()),
                    Some(ast::Expr::Tuple(t)) if !t.elts.is_empty() => {
                        let values = t.elts[1..].iter().map(|e| self.x.expr(e));
                        (string(&t.elts[0])?.into(), values.collect::<Result<_>>()?)
                    }
                    Some(e) => (string(e)?.into(), Vec::new()),
                };
                push(StmtKind::Assert { cond: self.x.condition(&a.test)?, message, values });
                Ok(())
            }
            ast::Stmt::Return(r) => {
                let args = match r.value.as_deref() {
                    None | Some(ast::Expr::NoneLiteral(_)) => Vec::new(),
                    Some(e) => vec![self.x.expr(e)?],
                };
                let call = Expr::call(CallTarget::Opaque("ret".into()), args, DType::HANDLE);
                push(StmtKind::Evaluate(call));
                Ok(())
            }
            ast::Stmt::While(_) => {
                Err(Error::unsupported("`while` loops are not supported").at(keyword(span, 5)))
            }
            _ => Err(Error::syntax("expected a statement of a tensor function").at(span)),
        }
    }

    /// A call, or another expression, that is a statement.
    fn expression(
        &mut self,
        e: &ast::Expr,
        span: Span,
        level: Level,
        out: &mut Vec<Piece>,
    ) -> Result<()> {
        let mut push = |kind| {
            out.push(Piece::Stmt(Stmt::spanned(kind, Some(span))));
            Ok(())
        };
        let c = match e {
            ast::Expr::StringLiteral(_) | ast::Expr::EllipsisLiteral(_) => return Ok(()),
            ast::Expr::Call(c) => c,
            _ => return push(StmtKind::Evaluate(self.x.expr(e)?)),
        };
        let Some((Space::T | Space::Bare, name)) = self.x.path(&c.func) else {
            return push(StmtKind::Evaluate(self.x.expr(e)?));
        };
        match name.as_str() {
            "evaluate" => {
                let args = Args::bind(c, "T.evaluate", &["value"])?;
                push(StmtKind::Evaluate(self.x.argument(args.need("value")?)?))
            }
            "assume" => {
                let args = Args::bind(c, "T.assume", &["condition"])?;
                push(StmtKind::Assume(self.x.condition(args.need("condition")?)?))
            }
            "buffer_store" => {
                let args = Args::bind(c, "T.buffer_store", &["buffer", "value", "indices"])?;
                let buffer = self.x.buffer(args.need("buffer")?)?;
                let at = args.need("indices")?;
                let indices: Vec<Expr> =
                    elements(at).iter().map(|e| self.x.integer(e)).collect::<Result<_>>()?;
                if indices.len() != buffer.rank() {
                    return Err(self.x.error(at, format!("expected {} indices", buffer.rank())));
                }
                let dtype = Expr::load(&buffer, indices.clone()).dtype();
                let value = self.x.expr_of(args.need("value")?, dtype)?;
                push(StmtKind::Store { buffer, indices, value })
            }
            "launch_thread" => {
                let binding = self.launch_thread(c, None)?;
                self.around(binding, span, out)
            }
            "func_attr" => {
                let args = Args::bind(c, "T.func_attr", &["attrs"])?;
                let at = args.need("attrs")?;
                let attrs = self.x.func_attrs(at)?;
                match level {
                    Level::Function => {
                        self.attrs.extend(attrs);
                        Ok(())
                    }
                    _ => Err(self.x.error(at, "`T.func_attr` belongs directly in the function")),
                }
            }
            "reads" | "writes" | "where" | "block_attr" | "sblock_attr" => {
                self.block_clause(&name, c, level)
            }
            "attr" | "realize" | "prefetch" => Err(unsupported(&name).at(span)),
            _ => push(StmtKind::Evaluate(self.x.expr(e)?)),
        }
    }

    fn assign(
        &mut self,
        target: &ast::Expr,
        annotation: Option<&ast::Expr>,
        value: &ast::Expr,
        span: Span,
        level: Level,
        out: &mut Vec<Piece>,
    ) -> Result<()> {
        match target {
            ast::Expr::Subscript(s) => {
                let buffer = self.x.buffer(&s.value)?;
                let indices = self.x.point(&buffer, s)?;
                let dtype = Expr::load(&buffer, indices.clone()).dtype();
                let value = self.x.expr_of(value, dtype)?;
                let kind = StmtKind::Store { buffer, indices, value };
                out.push(Piece::Stmt(Stmt::spanned(kind, Some(span))));
                Ok(())
            }
            ast::Expr::Name(n) => {
                if let ast::Expr::Call(c) = value
                    && self.special(&n.id, c, span, level, out)?
                {
                    return Ok(());
                }
                self.let_binding(&n.id, annotation, value, span, out)
            }
            ast::Expr::Tuple(_) | ast::Expr::List(_) => match value {
                ast::Expr::Call(c) if self.is_call(c, "axis.remap") => {
                    self.remap(elements(target), c, level)
                }
                // `N, C = T.int64(), T.int64()`: one after the other, each seeing those before it.
                ast::Expr::Tuple(_) | ast::Expr::List(_) => {
                    let (targets, values) = (elements(target), elements(value));
                    if targets.len() != values.len() {
                        let (n, m) = (targets.len(), values.len());
                        let message = format!("{n} names on the left, {m} values on the right");
                        return Err(Error::syntax(message).at(span));
                    }
                    if let Some(used) = self.uses(targets, values) {
                        let message = "a value may not use a name that is assigned beside it";
                        return Err(self.x.error(used, message));
                    }
                    for (target, value) in targets.iter().zip(values) {
                        self.assign(target, annotation, value, span, level, out)?;
                    }
                    Ok(())
                }
                _ => Err(self
                    .x
                    .error(value, "expected `T.axis.remap(...)`, or a value for each name")),
            },
            _ => Err(self.x.error(target, "expected a name or an element of a buffer")),
        }
    }

    /// A value of a tuple that uses the name of another target, or that reads memory while elements
    /// are stored: Python computes all values before it assigns any.
    fn uses<'e>(&self, targets: &[ast::Expr], values: &'e [ast::Expr]) -> Option<&'e ast::Expr> {
        struct Find<'a> {
            names: HashSet<&'a str>,
            stores: bool,
            found: bool,
        }
        impl<'a> Visitor<'a> for Find<'_> {
            fn visit_expr(&mut self, e: &'a ast::Expr) {
                match e {
                    ast::Expr::Name(n) => self.found |= self.names.contains(n.id.as_str()),
                    ast::Expr::Subscript(_) => self.found |= self.stores,
                    _ => {}
                }
                walk_expr(self, e);
            }
        }
        let names = targets.iter().filter_map(ast::Expr::as_name_expr);
        let mut find = Find {
            names: names.map(|n| n.id.as_str()).collect(),
            stores: targets.iter().any(ast::Expr::is_subscript_expr),
            found: false,
        };
        values.iter().find(|e| {
            find.visit_expr(e);
            find.found
        })
    }

    fn is_call(&self, c: &ast::ExprCall, name: &str) -> bool {
        matches!(self.x.path(&c.func), Some((Space::T, n)) if n == name)
    }

    /// `x: T.int32` without a value declares a variable.
    fn declare(&mut self, target: &ast::Expr, annotation: &ast::Expr) -> Result<()> {
        let ast::Expr::Name(n) = target else {
            return Err(self.x.error(target, "expected a name"));
        };
        if let Some(dtype) = self.annotated(annotation)? {
            self.x.declare_var(&n.id, dtype);
        }
        Ok(())
    }

    /// The type of an annotation: `T.int32`, `T.let[T.int32]`, `T.handle("float32")`; `None` for
    /// `T.let`, which leaves it open.
    fn annotated(&self, e: &ast::Expr) -> Result<Option<DType>> {
        let is_let = |e| matches!(self.x.path(e), Some((Space::T, n)) if n == "let");
        let scalar = match e {
            e if is_let(e) => return Ok(None),
            ast::Expr::Subscript(s) if is_let(&s.value) => &*s.slice,
            e => e,
        };
        match self.scalar_type(scalar)? {
            Some(dtype) => Ok(Some(dtype)),
            None => Err(self.x.error(e, "expected a type of a scalar")),
        }
    }

    fn let_binding(
        &mut self,
        name: &str,
        annotation: Option<&ast::Expr>,
        value: &ast::Expr,
        span: Span,
        out: &mut Vec<Piece>,
    ) -> Result<()> {
        let dtype = match annotation {
            Some(a) => self.annotated(a)?,
            None => None,
        };
        let value = match dtype {
            Some(dtype) => self.x.expr_of(value, dtype)?,
            None => self.x.expr(value)?,
        };
        let binding = self.let_value(name, value);
        self.around(binding, span, out)
    }

    /// `name = value`, without a body.
    fn let_value(&mut self, name: &str, value: Expr) -> StmtKind {
        let var = self.x.env.define(name, value.dtype());
        StmtKind::Let { var, value, body: Stmt::nop() }
    }

    /// Right-hand sides that are not values: buffers, block axes, declarations. Says whether the
    /// call was one.
    fn special(
        &mut self,
        name: &str,
        c: &ast::ExprCall,
        span: Span,
        level: Level,
        out: &mut Vec<Piece>,
    ) -> Result<bool> {
        if let ast::Expr::Attribute(a) = &*c.func
            && a.attr.as_str() == "view"
            && let ast::Expr::Name(owner) = &*a.value
            && let Some(Item::Buffer(b)) = self.x.env.get(&owner.id)
        {
            let b = b.clone();
            let buffer = self.view(name, &b, c)?;
            self.around(StmtKind::Declare { buffer, body: Stmt::nop() }, span, out)?;
            return Ok(true);
        }
        let Some((Space::T, callee)) = self.x.path(&c.func) else { return Ok(false) };
        let what = format!("T.{callee}");
        if let Some(kind) = callee.strip_prefix("axis.").and_then(axis_kind) {
            return self.axis(name, kind, c, level).map(|()| true);
        }
        match callee.as_str() {
            "match_buffer" => self.match_buffer(name, c, level)?,
            "alloc_buffer" | "sblock_alloc_buffer" => {
                let (buffer, annotations) = self.alloc(name, &callee, c)?;
                let older = !self.newer || callee == "sblock_alloc_buffer";
                match (older && annotations.is_empty(), level) {
                    (true, Level::Function) => self.allocs.push(buffer),
                    (true, Level::Block) => self.frame(span)?.block.allocs.push(buffer),
                    _ => self.around(allocation(buffer, annotations), span, out)?,
                }
            }
            "allocate" | "alloc_local" | "alloc_shared" | "allocate_const" | "decl_buffer"
            | "buffer_decl" | "Buffer" => {
                let binding = self.memory(name, &callee, c)?;
                self.around(binding, span, out)?;
            }
            "launch_thread" => {
                let binding = self.launch_thread(c, Some(name))?;
                self.around(binding, span, out)?;
            }
            "env_thread" => {
                let args = Args::bind(c, what, &["thread_tag", "dtype"])?;
                let tag = string(args.need("thread_tag")?)?;
                self.x.env.insert(name, Item::Thread(tag.into()));
            }
            "axis.scan" => return Err(unsupported("axis.scan").at(span)),
            "axis.remap" => {
                let target = ast::Expr::Name(ast::ExprName {
                    node_index: ast::AtomicNodeIndex::NONE,
                    range: c.range(),
                    id: name.into(),
                    ctx: ast::ExprContext::Store,
                });
                self.remap(std::slice::from_ref(&target), c, level)?;
            }
            "var" | "Var" | "SizeVar" => {
                let names: &[&str] =
                    if callee == "var" { &["dtype", "name"] } else { &["name", "dtype"] };
                let args = Args::bind(c, what, names)?;
                let dtype = self.x.dtype(args.need("dtype")?)?;
                self.x.declare_var(name, dtype);
            }
            _ => match callee.parse::<DType>() {
                Ok(dtype) if c.arguments.args.is_empty() || dtype == DType::HANDLE => {
                    let is_declaration =
                        c.arguments.args.iter().all(|e| e.is_string_literal_expr());
                    if !is_declaration {
                        return Ok(false);
                    }
                    self.x.declare_var(name, dtype);
                }
                _ => return Ok(false),
            },
        }
        Ok(true)
    }
}

/// Memory for a buffer, without a body.
fn allocation(buffer: Buffer, annotations: Attrs) -> StmtKind {
    StmtKind::Allocate { buffer, annotations, body: Stmt::nop() }
}

fn keyword(span: Span, length: u32) -> Span {
    Span::new(span.start, (span.start + length).min(span.end))
}

fn unsupported(name: &str) -> Error {
    Error::unsupported(format!("`T.{name}` is not supported"))
}
