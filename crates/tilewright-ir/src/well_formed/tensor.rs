//! The rules of tensor functions.

use crate::hash::HashSet;
use std::fmt::Display;
use std::iter::once;

use crate::buffer::Buffer;
use crate::dtype::{DType, TypeKind};
use crate::equal::describe;
use crate::error::{Error, Result};
use crate::expr::{BinOp, CallTarget, Expr, ExprKind, Var};
use crate::func::{Param, TensorFunc};
use crate::intrinsic::Operands;
use crate::scalar::{round_to, wrap};
use crate::stmt::{Block, MatchRegion, Range, Region, Stmt, StmtKind};
use crate::tensor::Tensor;
use crate::text::{brief, commas};
use crate::visit::{Visit, free_vars, walk_attrs, walk_buffer, walk_expr, walk_range, walk_stmt};

/// Levels of an expression.
pub const EXPR_DEPTH: usize = 1500;

/// Levels of a statement.
pub const STMT_DEPTH: usize = 500;

fn binary_operands(op: BinOp) -> Operands {
    use BinOp::*;
    match op {
        Add | Sub | Mul | Min | Max | Lt | Le | Gt | Ge => Operands::Number,
        Div => Operands::Float,
        FloorDiv | FloorMod | TruncDiv | TruncMod => Operands::Int,
        Eq | Ne => Operands::Any,
        And | Or => Operands::Bool,
    }
}

/// Checks a function; `open` says that integers and `bool`s need no definition.
pub fn check(func: &TensorFunc, open: bool) -> Result<()> {
    if let Some(Param::Scalar(v)) = func.split_params().1.iter().find(|p| p.buffer().is_none()) {
        let message = format!("the scratch parameter `{}` is no tensor", v.name());
        return Err(Error::malformed(message));
    }
    let mut c = Checker { open, ..Checker::default() };
    c.params(&func.params);
    c.stmt(&func.body);
    c.error.map_or(Ok(()), Err)
}

/// Something in scope.
enum Def {
    Var(Var),
    Buffer(Buffer),
}

#[derive(Default)]
struct Checker {
    error: Option<Error>,
    /// Definitions in scope, innermost last.
    stack: Vec<Def>,
    vars: HashSet<Var>,
    buffers: HashSet<Buffer>,
    /// Everything that statements have defined so far.
    ever_vars: HashSet<Var>,
    ever_buffers: HashSet<Buffer>,
    /// Nodes of the current statement that keep the rules, so that shared parts are checked once.
    checked: HashSet<usize>,
    /// The statement that is being checked.
    stmt: Option<Stmt>,
    /// Pointers to memory that nothing writes.
    constants: HashSet<Var>,
    /// Whether the next buffer definition brings memory of its own.
    owns: bool,
    /// Whether integers and `bool`s need no definition.
    open: bool,
    /// Levels of expressions and statements around.
    expr_depth: usize,
    stmt_depth: usize,
}

impl Checker {
    fn fail(&mut self, message: impl Display) {
        if self.error.is_some() {
            return;
        }
        let e = Error::malformed(message.to_string());
        self.error = Some(match &self.stmt {
            Some(s) => e.note(format!("in {}", describe(s))).at(s.span()),
            None => e,
        });
    }

    fn require(&mut self, ok: bool, message: impl FnOnce() -> String) {
        if !ok {
            self.fail(message());
        }
    }

    fn leave(&mut self, mark: usize) {
        for def in self.stack.drain(mark..) {
            match def {
                Def::Var(v) => self.vars.remove(&v),
                Def::Buffer(b) => self.buffers.remove(&b),
            };
        }
    }

    fn enter_var(&mut self, v: &Var) {
        if self.vars.insert(v.clone()) {
            self.stack.push(Def::Var(v.clone()));
        }
    }

    /// A definition by a statement.
    fn define(&mut self, v: &Var) {
        let new = self.ever_vars.insert(v.clone());
        self.require(new, || format!("variable `{}` is defined twice", v.name()));
        self.enter_var(v);
    }

    fn define_buffer(&mut self, b: &Buffer) {
        let new = self.ever_buffers.insert(b.clone());
        self.require(new, || format!("buffer `{}` is defined twice", b.name));
        if self.buffers.insert(b.clone()) {
            self.stack.push(Def::Buffer(b.clone()));
        }
    }

    fn params(&mut self, params: &[Param]) {
        for p in params {
            if let Param::Scalar(v) = p {
                let ok = v.dtype().lanes == 1 && v.dtype().kind != TypeKind::Void;
                self.require(ok, || format!("parameter `{}` is a {}", v.name(), v.dtype()));
                self.define(v);
            }
        }
        // Extents may name a variable that only a later parameter binds.
        for b in params.iter().filter_map(Param::buffer) {
            self.bind(b.shape.iter().chain(&b.strides).chain(&b.elem_offset));
        }
        for p in params {
            if let Param::Buffer { handle, buffer } = p {
                let ok = handle.dtype() == DType::HANDLE;
                self.require(ok, || format!("`{}` is no handle", handle.name()));
                self.define(handle);
                self.owns = true;
                self.buffer_def(buffer);
            }
        }
    }

    /// Defines the variables that stand alone.
    fn bind<'e>(&mut self, items: impl Iterator<Item = &'e Expr>) {
        for v in items.filter_map(Expr::as_var) {
            if !self.ever_vars.contains(v) {
                self.define(v);
            }
        }
    }

    fn one_bool(&mut self, what: &str, e: &Expr) {
        self.require(e.dtype() == DType::BOOL, || {
            format!("{what} `{}` is {}, not bool", brief(e), e.dtype())
        });
    }

    /// An index, a bound or an extent.
    fn index(&mut self, what: &str, e: &Expr) {
        self.require(e.dtype().is_int(), || {
            format!("{what} `{}` is {}, not an integer", brief(e), e.dtype())
        });
        self.require(!e.effects().arbitrary, || {
            format!("{what} `{}` contains T.undef()", brief(e))
        });
    }

    fn scalar_index(&mut self, what: &str, e: &Expr) {
        self.index(what, e);
        self.require(e.dtype().lanes == 1, || {
            format!("{what} `{}` is {}, not a scalar", brief(e), e.dtype())
        });
    }

    fn range(&mut self, what: &str, r: &Range, var: &Var) {
        let ok = var.dtype().is_int() && var.dtype().lanes == 1;
        self.require(ok, || format!("{what} `{}` is {}, not an integer", var.name(), var.dtype()));
        for e in [&r.min, &r.extent] {
            self.index("bound", e);
            self.require(e.dtype() == var.dtype(), || {
                format!(
                    "bound `{}` of `{}` is {}, but the variable is {}",
                    brief(e),
                    var.name(),
                    e.dtype(),
                    var.dtype()
                )
            });
        }
    }

    /// The indices of a load or store; the type of what is there.
    fn access(&mut self, buffer: &Buffer, indices: &[Expr], text: &dyn Fn() -> String) -> DType {
        let (rank, n) = (buffer.rank(), indices.len());
        self.require(rank == n, || {
            format!("`{}` has {n} indices, but `{}` has {rank} axes", text(), buffer.name)
        });
        for (axis, index) in indices.iter().enumerate() {
            self.index("index", index);
            self.require(axis + 1 == n || index.dtype().lanes == 1, || {
                format!("index `{}` has lanes and is not the last one", brief(index))
            });
        }
        let lanes = indices.last().map_or(1, |i| i.dtype().lanes);
        let lanes = lanes.checked_mul(buffer.dtype().lanes);
        self.require(lanes.is_some(), || format!("`{}` has too many lanes", text()));
        buffer.dtype().with_lanes(lanes.unwrap_or(1))
    }

    fn region(&mut self, r: &Region) {
        let (rank, n) = (r.buffer.rank(), r.ranges.len());
        let name = &r.buffer.name;
        self.buffer_use(&r.buffer);
        self.require(rank == n, || {
            format!("a region of `{name}` has {n} ranges, but the buffer has {rank} axes")
        });
        for range in &r.ranges {
            self.scalar_index("bound", &range.min);
            self.scalar_index("bound", &range.extent);
            walk_range(self, range);
        }
    }

    fn view(&mut self, m: &MatchRegion) {
        self.region(&m.source);
        let (view, source) = (&m.buffer, &m.source.buffer);
        self.require(view.dtype() == source.dtype(), || {
            let (v, s) = (view.dtype(), source.dtype());
            format!("view `{}` is {v}, but `{}` is {s}", view.name, source.name)
        });
        let extents: Vec<&Expr> = m.source.ranges.iter().map(|r| &r.extent).collect();
        let left_out = extents.len().checked_sub(view.rank());
        let fits = left_out.is_some_and(|n| {
            let (front, back) = extents.split_at(n);
            front.iter().all(|e| e.as_int().is_none_or(|v| v == 1))
                && back.iter().zip(&view.shape).all(|(x, y)| may_be_equal(x, y))
        });
        self.require(fits, || {
            let x = commas(view.shape.iter().map(brief));
            let y = commas(extents.iter().map(|e| brief(e)));
            format!(
                "view `{}` has shape ({x}), but the region of `{}` has ({y})",
                view.name, source.name
            )
        });
        if self.constants.contains(&source.data) {
            self.constants.insert(view.data.clone());
        }
        self.bind(view.strides.iter().chain(&view.elem_offset));
        self.owns = !self.vars.contains(&view.data);
        self.buffer_def(view);
    }

    fn constant(&mut self, b: &Buffer, value: &Tensor) {
        let extents = b.const_shape().unwrap_or_default();
        let shape: Vec<usize> = extents.iter().filter_map(|n| usize::try_from(*n).ok()).collect();
        let fits = b.dtype() == value.dtype() && b.rank() == shape.len() && shape == value.shape();
        self.require(fits, || {
            let (name, t, s) = (&b.name, value.dtype(), value.shape());
            format!("constant `{name}` is not of the type {t} and the shape {s:?} of its value")
        });
        let compact = b.strides.is_empty() && b.elem_offset.is_none();
        self.require(compact, || format!("constant `{}` has strides or an offset", b.name));
        self.constants.insert(b.data.clone());
    }

    /// Whether the operands of a node fit; a message if not.
    fn operands(&mut self, e: &Expr, kinds: Operands, operands: &[&Expr]) {
        let Some(first) = operands.first().map(|e| e.dtype()) else { return };
        for x in operands {
            self.require(x.dtype() == first, || {
                format!("`{}` has operands of types {first} and {}", brief(e), x.dtype())
            });
        }
        self.require(kinds.admit(first), || {
            format!("`{}` takes {}, not {first}", brief(e), kinds.text())
        });
    }

    fn node(&mut self, e: &Expr) {
        let dtype = e.dtype();
        // Calls say theirs themselves.
        let mut expected = e.kind().dtype(dtype);
        match e.kind() {
            ExprKind::Int(v) => {
                let ok = dtype.lanes == 1 && Operands::Bits.admit(dtype) && wrap(*v, dtype) == *v;
                self.require(ok, || format!("constant {v} does not fit the type {dtype}"));
            }
            ExprKind::Float(v) => {
                let same = v.is_nan() || round_to(*v, dtype) == *v;
                let ok = dtype.lanes == 1 && dtype.is_float() && same;
                self.require(ok, || format!("constant {v:?} does not fit the type {dtype}"));
            }
            ExprKind::Str(_) => {
                self.fail(format!("text {} stands outside of a call", brief(e)));
            }
            ExprKind::Var(v) => {
                let defined = self.vars.contains(v);
                let ever = self.ever_vars.contains(v);
                let free = self.open && !ever && Operands::Bits.admit(v.dtype());
                self.require(defined || free, || {
                    if ever {
                        format!("variable `{}` is used outside of its scope", v.name())
                    } else {
                        format!("variable `{}` is not defined", v.name())
                    }
                });
            }
            ExprKind::Cast(a) => {
                let ok = Operands::Any.admit(dtype)
                    && Operands::Any.admit(a.dtype())
                    && dtype.lanes == a.dtype().lanes;
                self.require(ok, || format!("`{}` converts from {}", brief(e), a.dtype()));
            }
            ExprKind::Binary(op, a, b) => {
                self.operands(e, binary_operands(*op), &[a, b]);
            }
            ExprKind::Not(a) => self.operands(e, Operands::Bool, &[a]),
            ExprKind::Select(c, t, f) | ExprKind::IfThenElse(c, t, f) => {
                let lanes = c.dtype().lanes;
                let ok = c.dtype().is_bool() && (lanes == 1 || lanes == t.dtype().lanes);
                self.require(ok, || {
                    format!("condition `{}` of `{}` is {}", brief(c), brief(e), c.dtype())
                });
                self.require(t.dtype() == f.dtype(), || {
                    let (t, f) = (t.dtype(), f.dtype());
                    format!("`{}` has values of types {t} and {f}", brief(e))
                });
            }
            ExprKind::Load(b, indices) => {
                self.buffer_use(b);
                self.access(b, indices, &|| brief(e));
            }
            ExprKind::Call(CallTarget::Intrin(op), args) => {
                self.require(args.len() == op.arity(), || {
                    let (n, m) = (op.arity(), args.len());
                    format!("`{}`: T.{} takes {n} arguments, not {m}", brief(e), op.name())
                });
                self.operands(e, op.operands(), &args.iter().collect::<Vec<_>>());
                expected = args.first().map_or(dtype, |first| op.result(first.dtype()));
            }
            ExprKind::Call(CallTarget::Reinterpret(to), args) => {
                let from = args.first().map(Expr::dtype);
                self.require(
                    args.len() == 1 && from.is_some_and(|from| is_reinterpreted(from, to, dtype)),
                    || {
                        let from = from.unwrap_or(DType::VOID);
                        format!("`{}` takes the bits of a {from} for those of a {to}", brief(e))
                    },
                );
                expected = dtype;
            }
            ExprKind::Call(..) => expected = dtype,
            ExprKind::Let(v, value, _) => {
                self.require(v.dtype() == value.dtype(), || {
                    let (v, t) = (v.name(), value.dtype());
                    format!("variable `{v}` of `{}` is bound to a value of type {t}", brief(e))
                });
            }
            ExprKind::Ramp(base, stride) => {
                self.operands(e, Operands::Int, &[base, stride]);
                self.lanes(e, base);
            }
            ExprKind::Broadcast(value) => self.lanes(e, value),
            ExprKind::Undef => {
                let ok = Operands::Any.admit(dtype);
                self.require(ok, || format!("`{}` has no values", brief(e)));
            }
        }
        self.require(dtype == expected, || {
            format!("`{}` is of type {expected}, but its node says {dtype}", brief(e))
        });
    }

    fn lanes(&mut self, e: &Expr, operand: &Expr) {
        self.require(operand.dtype().lanes == 1, || {
            format!("`{}` takes scalars, not {}", brief(e), operand.dtype())
        });
        self.require(e.dtype().lanes >= 2, || format!("`{}` makes fewer than 2 lanes", brief(e)));
    }

    fn stmt_rules(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => {
                let text = || format!("{}[{}]", buffer.name, commas(indices.iter().map(brief)));
                self.require(!self.constants.contains(&buffer.data), || {
                    format!("`{}` is written, but its memory is a constant", text())
                });
                let expected = self.access(buffer, indices, &text);
                self.require(value.dtype() == expected, || {
                    let (v, t) = (brief(value), value.dtype());
                    format!("value `{v}` is {t}, but `{}` is {expected}", text())
                });
            }
            StmtKind::For { var, range, .. } => self.range("loop variable", range, var),
            StmtKind::If { cond, then, otherwise } if cond.dtype().lanes > 1 => {
                let lanes = cond.dtype().lanes;
                self.require(cond.dtype() == DType::BOOL.with_lanes(lanes), || {
                    format!("condition `{}` is {}, not bool", brief(cond), cond.dtype())
                });
                let fits = once(then).chain(otherwise).all(|s| stores_lanes(s, lanes));
                self.require(fits, || {
                    let cond = brief(cond);
                    format!("`{cond}` differs between {lanes} lanes, and guards more than stores of these")
                });
            }
            StmtKind::If { cond, .. } => self.one_bool("condition", cond),
            StmtKind::Let { var, value, .. } => {
                if value.as_var().is_some_and(|v| self.constants.contains(v)) {
                    self.constants.insert(var.clone());
                }
                self.require(var.dtype() == value.dtype(), || {
                    let (v, t) = (brief(value), value.dtype());
                    format!("`{}` is {}, but its value `{v}` is {t}", var.name(), var.dtype())
                });
            }
            StmtKind::Seq(stmts) => {
                self.require(stmts.len() >= 2, || {
                    format!("a sequence has {} statements", stmts.len())
                });
                let nested = stmts.iter().any(|s| matches!(s.kind(), StmtKind::Seq(_)));
                self.require(!nested, || "a sequence holds a sequence".to_owned());
            }
            StmtKind::Block { bindings, predicate, block } => {
                let (name, n, m) = (&block.name, bindings.len(), block.iters.len());
                self.require(!name.is_empty(), || "a block has no name".to_owned());
                self.require(n == m, || {
                    format!("block `{name}` has {m} iteration variables and {n} bindings")
                });
                for (value, iter) in bindings.iter().zip(&block.iters) {
                    self.scalar_index("binding", value);
                    let (v, t) = (&iter.var, value.dtype());
                    self.require(v.dtype() == t, || {
                        let (value, want) = (brief(value), v.dtype());
                        format!("`{}` is {want}, but its binding `{value}` is {t}", v.name())
                    });
                }
                self.one_bool("predicate", predicate);
                // They stand outside of the block, where its variables have no values.
                for e in bindings.iter().chain([predicate]) {
                    let free = free_vars(e);
                    if let Some(i) = block.iters.iter().find(|i| free.contains(&i.var)) {
                        let (e, v) = (brief(e), i.var.name());
                        self.fail(format!(
                            "`{e}` stands around block `{name}`, and `{v}` is known only inside of it"
                        ));
                    }
                }
            }
            StmtKind::Assume(e) => self.one_bool("assumption", e),
            StmtKind::Assert { cond, values, .. } => {
                self.one_bool("assertion", cond);
                values.iter().for_each(|e| self.scalar_index("value of an assertion", e));
            }
            StmtKind::Constant { buffer, value, .. } => self.constant(buffer, value),
            StmtKind::Allocate { .. } | StmtKind::Declare { .. } | StmtKind::Evaluate(_) => {}
        }
    }
}

fn is_reinterpreted(from: DType, to: &DType, dtype: DType) -> bool {
    Operands::Number.admit(*to)
        && Operands::Number.admit(from)
        && from.bits == to.bits
        && dtype == to.with_lanes(from.lanes)
}

/// Whether a statement only stores vectors of so many lanes.
fn stores_lanes(s: &Stmt, lanes: u16) -> bool {
    match s.kind() {
        StmtKind::Store { value, .. } => value.dtype().lanes == lanes,
        StmtKind::Seq(stmts) => stmts.iter().all(|s| stores_lanes(s, lanes)),
        _ => false,
    }
}

impl Visit for Checker {
    fn expr(&mut self, e: &Expr) {
        if self.error.is_some() || self.checked.contains(&e.address()) {
            return;
        }
        if self.expr_depth >= EXPR_DEPTH {
            return self.fail(format!("an expression is nested deeper than {EXPR_DEPTH} levels"));
        }
        self.expr_depth += 1;
        let mark = self.stack.len();
        match e.kind() {
            ExprKind::Call(_, args) => {
                args.iter()
                    .filter(|a| !matches!(a.kind(), ExprKind::Str(_)))
                    .for_each(|a| self.expr(a));
            }
            ExprKind::Let(v, value, body) => {
                self.expr(value);
                let free = !self.vars.contains(v);
                self.require(free, || format!("variable `{}` is defined twice", v.name()));
                self.enter_var(v);
                self.expr(body);
                // What was checked inside may name the variable.
                self.checked.clear();
            }
            _ => walk_expr(self, e),
        }
        self.expr_depth -= 1;
        self.leave(mark);
        self.node(e);
        self.checked.insert(e.address());
    }

    fn stmt(&mut self, s: &Stmt) {
        if self.error.is_some() {
            return;
        }
        self.checked.clear();
        let mark = self.stack.len();
        if self.stmt_depth >= STMT_DEPTH {
            return self.fail(format!("statements are nested deeper than {STMT_DEPTH} levels"));
        }
        self.stmt_depth += 1;
        let outer = self.stmt.replace(s.clone());
        self.stmt_rules(s);
        self.owns = matches!(s.kind(), StmtKind::Allocate { .. } | StmtKind::Constant { .. });
        walk_stmt(self, s);
        self.stmt_depth -= 1;
        self.leave(mark);
        self.stmt = outer;
        self.error = self.error.take().map(|e| e.at(s.span()));
    }

    fn block(&mut self, b: &Block) {
        for iter in &b.iters {
            self.range("iteration variable", &iter.domain, &iter.var);
            walk_range(self, &iter.domain);
        }
        b.iters.iter().for_each(|i| self.define(&i.var));
        for buffer in &b.allocs {
            self.owns = true;
            self.buffer_def(buffer);
        }
        b.matches.iter().for_each(|m| self.view(m));
        b.reads.iter().chain(&b.writes).flatten().for_each(|r| self.region(r));
        walk_attrs(self, &b.annotations);
        b.init.iter().chain([&b.body]).for_each(|s| self.stmt(s));
    }

    fn var_def(&mut self, v: &Var) {
        self.define(v);
    }

    fn buffer_def(&mut self, b: &Buffer) {
        let name = &b.name;
        let kind = b.dtype();
        let ok = Operands::Any.admit(kind) || kind.kind == TypeKind::Handle;
        self.require(ok, || format!("buffer `{name}` has elements of type {kind}"));
        for e in &b.shape {
            self.scalar_index(&format!("extent of buffer `{name}`"), e);
            self.require(e.as_int().is_none_or(|v| v >= 0), || {
                format!("buffer `{name}` has the extent {}", brief(e))
            });
        }
        for e in b.strides.iter().chain(&b.elem_offset) {
            self.scalar_index(&format!("stride or offset of buffer `{name}`"), e);
        }
        let (rank, n) = (b.rank(), b.strides.len());
        self.require(n == 0 || n == rank, || {
            format!("buffer `{name}` has {n} strides and {rank} axes")
        });
        let separators = &b.axis_separators;
        let ok = separators.is_sorted() && separators.iter().all(|&s| s <= rank);
        self.require(ok, || {
            format!("axis separators {separators:?} of buffer `{name}` do not fit {rank} axes")
        });
        walk_buffer(self, b);
        let ok = b.data.dtype() == DType::HANDLE;
        self.require(ok, || format!("the pointer of buffer `{name}` is no handle"));
        if self.owns {
            self.define(&b.data)
        } else {
            let known = self.vars.contains(&b.data);
            self.require(known, || {
                format!("buffer `{name}` is a view of memory that is not defined")
            });
        }
        self.owns = false;
        self.define_buffer(b);
    }

    fn buffer_use(&mut self, b: &Buffer) {
        let (known, ever) = (self.buffers.contains(b), self.ever_buffers.contains(b));
        self.require(known, || {
            if ever {
                format!("buffer `{}` is used outside of its scope", b.name)
            } else {
                format!("buffer `{}` is not defined", b.name)
            }
        });
    }
}

/// Whether two extents are not known to differ.
pub fn may_be_equal(a: &Expr, b: &Expr) -> bool {
    match (a.as_int(), b.as_int()) {
        (Some(x), Some(y)) => x == y,
        _ => true,
    }
}
