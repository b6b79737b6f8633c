//! Expressions.
//!
//! A node that is shared in the tree is evaluated once where its value is still valid: known
//! values are kept in scopes that follow the branches, and are forgotten after each statement,
//! because a statement may change what a load gives.
//!
//! What is lazy stays lazy. A branch is made only where a side must not be evaluated (it reads
//! memory that may not be there, or calls a function) or costs much; otherwise both sides are
//! evaluated and one is selected, which lets LLVM vectorise. Where the condition is a vector, the
//! sides are evaluated under a *mask*: their loads touch only the lanes that take part.

use tilewright_ir::equal::same_expr;
use tilewright_ir::hash::HashSet;
use tilewright_ir::visit::walk_expr;
use tilewright_ir::{BinOp, CallTarget, DType, Error, Expr, ExprKind, Result, Visit};

use super::arith::{self, Operands};
use super::code::{Scalar, Ty, Val};
use super::func::Func;
use super::half;
use super::memory::{iota, touches_memory};
use super::types::{memory, register};

/// A side of a choice that has at most this many operations is evaluated without a branch.
const CHEAP: usize = 12;

/// Deepest nesting of nodes.
const MAX_DEPTH: usize = 2000;

/// Most nodes that one function evaluates. (A tree that shares its parts can stand for far more
/// than it holds.)
const MAX_NODES: usize = 500_000;

impl Func<'_> {
    /// The value of an expression in its register type.
    pub(super) fn expr(&mut self, e: &Expr) -> Result<Val> {
        if let Some(v) = self.known(e) {
            return Ok(v);
        }
        self.enter()?;
        let effects = self.effects;
        let v = self.node(e)?;
        self.leave();
        let expected = register(e.dtype())?;
        if v.ty != expected {
            return Err(Error::malformed(format!(
                "`{e}` has the type {} but its parts give {}",
                e.dtype(),
                v.ty
            )));
        }
        if self.effects == effects {
            self.remember(e, &v);
        }
        Ok(v)
    }

    /// Counts nesting and nodes, so that a hostile program is an error and not the end of the stack
    /// or of memory.
    pub(super) fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        self.nodes += 1;
        if self.depth > MAX_DEPTH {
            let text = format!("the code is nested deeper than {MAX_DEPTH} nodes");
            return Err(Error::unsupported(text));
        }
        if self.nodes > MAX_NODES {
            let text = format!("the code evaluates more than {MAX_NODES} nodes");
            return Err(Error::unsupported(text));
        }
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    fn node(&mut self, e: &Expr) -> Result<Val> {
        let dtype = e.dtype();
        match e.kind() {
            ExprKind::Int(v) => {
                let ty = register(dtype)?;
                if ty.is_float() || ty.scalar == Scalar::Ptr {
                    Err(Error::malformed(format!(
                        "the integer constant `{e}` cannot have the type {dtype}"
                    )))
                } else {
                    Ok(Val::int(ty, *v))
                }
            }
            ExprKind::Float(v) => {
                let ty = register(dtype)?;
                if ty.is_float() {
                    Ok(Val::float(ty, tilewright_ir::scalar::round_to(*v, dtype)))
                } else {
                    Err(Error::malformed(format!(
                        "the float constant `{e}` cannot have the type {dtype}"
                    )))
                }
            }
            ExprKind::Str(text) => Ok(self.string(text)),
            ExprKind::Var(v) => self.env.get(v).cloned().ok_or_else(|| {
                Error::malformed(format!("variable `{}` is used where it is not defined", v.name()))
            }),
            ExprKind::Cast(a) => {
                let from = a.dtype();
                let (v, ty) = (self.expr(a)?, register(dtype)?);
                let same_lanes = from.lanes == dtype.lanes;
                let cast = same_lanes.then(|| arith::cast(&mut self.code, &v, from, dtype, ty));
                cast.flatten().ok_or_else(|| {
                    Error::unsupported(format!("there is no conversion from {from} to {dtype}"))
                })
            }
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) if a.dtype().is_bool() => {
                self.lazy_logic(*op, a, b)
            }
            ExprKind::Binary(op, a, b) => self.binary(e, *op, a, b, false),
            ExprKind::Not(a) => {
                let v = self.expr(a)?;
                Ok(self.code.not(&v))
            }
            ExprKind::Select(cond, t, f) => {
                let (cond, t, f) = (self.expr(cond)?, self.expr(t)?, self.expr(f)?);
                self.choose(e, &cond, &t, &f)
            }
            ExprKind::IfThenElse(cond, t, f) => self.if_then_else(e, cond, t, f),
            ExprKind::Load(buffer, indices) => self.load(buffer, indices, dtype),
            ExprKind::Call(CallTarget::Intrin(op), args) => self.call_intrinsic(e, *op, args),
            ExprKind::Call(CallTarget::Reinterpret(_), args) => self.reinterpret(args, dtype),
            ExprKind::Call(CallTarget::Extern(name), args) => {
                let result = self.call_extern(name, args, dtype)?;
                result
                    .ok_or_else(|| Error::malformed(format!("the call of `{name}` gives no value")))
            }
            ExprKind::Call(CallTarget::Opaque(name), args) => self.call_opaque(name, args),
            ExprKind::Let(var, value, body) => {
                self.bind_to(var, value)?;
                self.expr(body)
            }
            ExprKind::Ramp(base, stride) => {
                let ty = register(dtype)?;
                let (base, stride) = (self.expr(base)?, self.expr(stride)?);
                if base.lanes() != 1 || stride.lanes() != 1 || ty.is_float() || ty.lanes < 2 {
                    return Err(Error::malformed(format!("`{e}` is not a ramp of integers")));
                }
                let c = &mut self.code;
                let (base, stride) = (c.splat(&base, ty.lanes), c.splat(&stride, ty.lanes));
                let steps = c.bin("mul", &stride, &iota(ty));
                Ok(c.bin("add", &base, &steps))
            }
            ExprKind::Broadcast(a) => {
                let v = self.expr(a)?;
                match v.lanes() {
                    1 => Ok(self.code.splat(&v, dtype.lanes)),
                    _ => Err(Error::unsupported(format!(
                        "`{a}` is a vector and cannot be broadcast"
                    ))),
                }
            }
            // Any fixed value is a valid choice.
            ExprKind::Undef => Ok(Val::zero(register(dtype)?)),
        }
    }

    /// The bits of a value as those of another type. Not inlined, so that the frames of the recursion
    /// stay small.
    #[inline(never)]
    fn reinterpret(&mut self, args: &[Expr], dtype: DType) -> Result<Val> {
        let [a] = args else {
            return Err(Error::malformed("`T.reinterpret` takes one value"));
        };
        let (v, from) = (self.expr(a)?, a.dtype());
        // As it lies in memory, which is where a type has its own bits.
        let v = self.in_memory(&v, from);
        let to = memory(dtype, self.code.shared.machine.half)?;
        let v = if v.ty.scalar == to { v } else { self.code.convert("bitcast", &v, to) };
        Ok(self.in_register(&v, dtype))
    }

    /// An operator of two operands; `reassoc` as in [`Operands`].
    pub(super) fn binary(
        &mut self,
        e: &Expr,
        op: BinOp,
        a: &Expr,
        b: &Expr,
        reassoc: bool,
    ) -> Result<Val> {
        if op == BinOp::Add && self.is_dot(e) {
            return self.dot(e);
        }
        let dtype = a.dtype();
        let (x, y) = (self.expr(a)?, self.expr(b)?);
        if dtype != b.dtype() {
            return Err(Error::malformed(format!(
                "the operands of `{e}` have the types {dtype} and {}",
                b.dtype()
            )));
        }
        let operands = Operands {
            a: &x,
            b: &y,
            dtype,
            ranges: (self.ranges.interval(a), self.ranges.interval(b)),
            constant: (is_number(a), is_number(b)),
            reassoc,
            is_one_of_many: self.many_extremes,
        };
        arith::binary(&mut self.code, op, &operands).ok_or_else(|| {
            Error::unsupported(format!("`{e}` is not defined for values of type {dtype}"))
        })
    }

    fn choose(&mut self, e: &Expr, cond: &Val, t: &Val, f: &Val) -> Result<Val> {
        let lanes_fit = cond.lanes() == 1 || cond.lanes() == t.lanes();
        if cond.ty.scalar == Scalar::I1 && t.ty == f.ty && lanes_fit {
            Ok(self.code.select(cond, t, f))
        } else {
            Err(Error::malformed(format!("the types in `{e}` do not fit together")))
        }
    }

    /// `and` and `or`, whose right side is evaluated only where the left one does not decide.
    fn lazy_logic(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Result<Val> {
        let x = self.expr(a)?;
        let name = if op == BinOp::And { "and" } else { "or" };
        if a.dtype() != b.dtype() {
            return Err(Error::malformed(format!("`{a}` and `{b}` differ in their lanes")));
        }
        if self.is_speculative(b, &loads_of(a)) {
            let y = self.expr(b)?;
            return Ok(self.code.bin(name, &x, &y));
        }
        // Where the left side leaves it open, the result is the right side.
        let open = if op == BinOp::And { x.clone() } else { self.code.not(&x) };
        if x.lanes() != 1 {
            let y = self.masked(&open, |f| f.expr(b))?;
            return Ok(self.code.bin(name, &x, &y));
        }
        let decided = Val::int(Ty::I1, i64::from(op == BinOp::Or));
        self.branching(&open, |f| f.expr(b), |_| Ok(decided))
    }

    fn if_then_else(&mut self, e: &Expr, cond: &Expr, t: &Expr, f: &Expr) -> Result<Val> {
        if cond.is_true() || cond.is_false() {
            return self.expr(if cond.is_true() { t } else { f });
        }
        let c = self.expr(cond)?;
        if self.is_speculative(t, &[]) && self.is_speculative(f, &[]) {
            let (t, f) = (self.expr(t)?, self.expr(f)?);
            return self.choose(e, &c, &t, &f);
        }
        for common in shared_parts(t, f) {
            self.expr(&common)?;
        }
        if c.lanes() != 1 {
            return self.choose_lanes(e, &c, t, f);
        }
        self.branching(&c, |func| func.expr(t), |func| func.expr(f))
    }

    /// A choice by lanes, each side under its mask. The lanes that take part decide alone: what others become is not
    /// seen, and what is loaded under the mask by which it is chosen needs no choice where it is zero else.
    fn choose_lanes(&mut self, e: &Expr, c: &Val, t: &Expr, f: &Expr) -> Result<Val> {
        let x = self.masked(c, |func| func.expr(t))?;
        let not = self.code.not(c);
        let y = self.masked(&not, |func| func.expr(f))?;
        let taken = match self.mask.clone() {
            Some(mask) if mask.ty == c.ty => self.code.bin("and", &mask, c),
            _ => c.clone(),
        };
        self.choose(e, &taken, &x, &y)
    }

    /// Evaluates one of two sides.
    pub(super) fn branching(
        &mut self,
        cond: &Val,
        then: impl FnOnce(&mut Self) -> Result<Val>,
        otherwise: impl FnOnce(&mut Self) -> Result<Val>,
    ) -> Result<Val> {
        let [t, f, end] = ["then", "else", "end"].map(|hint| self.code.new_label(hint));
        self.code.branch(cond, &t, &f);
        self.code.begin(&t);
        let x = self.scoped(then)?;
        let x_from = self.code.label();
        self.code.jump(&end);
        self.code.begin(&f);
        let y = self.scoped(otherwise)?;
        let y_from = self.code.label();
        self.code.jump(&end);
        self.code.begin(&end);
        if x.ty == y.ty {
            Ok(self.code.phi(&[(&x, &x_from), (&y, &y_from)]))
        } else {
            Err(Error::malformed("the two sides of a choice have different types"))
        }
    }

    /// Evaluates something only if `cond`, a scalar, holds; zero otherwise.
    pub(super) fn guarded(
        &mut self,
        cond: &Val,
        ty: Ty,
        then: impl FnOnce(&mut Self) -> Result<Val>,
    ) -> Result<Val> {
        self.branching(cond, then, |_| Ok(Val::zero(ty)))
    }

    /// Evaluates something for the lanes where `lanes` holds, and the mask around does.
    pub(super) fn masked<T>(
        &mut self,
        lanes: &Val,
        inside: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let outer = self.mask.take();
        let inner = match &outer {
            Some(m) if m.ty == lanes.ty => self.code.bin("and", m, lanes),
            Some(m) if m.lanes() != 1 => {
                return Err(Error::unsupported(format!(
                    "a condition of {} lanes cannot stand under one of {}",
                    lanes.lanes(),
                    m.lanes()
                )));
            }
            _ => lanes.clone(),
        };
        self.mask = Some(inner);
        let some = std::mem::take(&mut self.first_lane);
        let result = self.scoped(inside);
        (self.mask, self.first_lane) = (outer, some);
        result
    }

    /// Whether an expression may be evaluated where its value is not asked for, at little cost:
    /// no calls with effects, loads only where they are inside their buffer, few operations; what was loaded already,
    /// `done`, costs nothing. (Operators are defined for all operands, see [`super::arith`].)
    fn is_speculative(&mut self, e: &Expr, done: &[Expr]) -> bool {
        struct Cost<'a> {
            operations: usize,
            loads: Vec<Expr>,
            done: &'a [Expr],
        }
        impl Visit for Cost<'_> {
            fn expr(&mut self, e: &Expr) {
                if self.done.iter().any(|load| same_expr(e, load)) {
                    return;
                }
                self.operations += match e.kind() {
                    ExprKind::Int(_)
                    | ExprKind::Float(_)
                    | ExprKind::Str(_)
                    | ExprKind::Var(_)
                    | ExprKind::Undef
                    | ExprKind::Broadcast(_)
                    | ExprKind::Ramp(..) => 0,
                    ExprKind::Binary(op, ..) => match op {
                        BinOp::FloorDiv | BinOp::FloorMod | BinOp::TruncDiv | BinOp::TruncMod => 4,
                        BinOp::Div => 4,
                        _ => 1,
                    },
                    ExprKind::Call(CallTarget::Reinterpret(_), _)
                    | ExprKind::Cast(_)
                    | ExprKind::Not(_)
                    | ExprKind::Select(..)
                    | ExprKind::IfThenElse(..)
                    | ExprKind::Let(..) => 1,
                    ExprKind::Load(..) => {
                        self.loads.push(e.clone());
                        2
                    }
                    ExprKind::Call(CallTarget::Intrin(op), _) => op.cost(),
                    ExprKind::Call(..) => CHEAP + 1,
                };
                if self.operations <= CHEAP {
                    walk_expr(self, e);
                }
            }
        }
        let mut cost = Cost { operations: 0, loads: Vec::new(), done };
        cost.expr(e);
        cost.operations <= CHEAP
            && cost.loads.iter().all(|load| match load.kind() {
                ExprKind::Load(b, indices) => self.is_inside(b, indices),
                _ => false,
            })
    }

    /// Rounds a result that was computed in the register type.
    pub(super) fn rounded(&mut self, v: &Val, dtype: DType) -> Val {
        half::round(&mut self.code, v, dtype)
    }

    /// A condition that LLVM may rely on. What reads memory, calls or is a vector is dropped:
    /// evaluating it would cost more than it tells.
    pub(super) fn assume(&mut self, e: &Expr) -> Result<()> {
        if touches_memory(e) || e.dtype() != DType::BOOL || !self.is_speculative(e, &[]) {
            return Ok(());
        }
        let v = self.expr(e)?;
        if self.mask.is_none() {
            self.code.intrinsic_void("assume", &[], &[&v]);
        }
        Ok(())
    }
}

/// The largest parts that are evaluated on both sides of a choice, whatever else happens there:
/// they are computed before the choice instead of twice.
pub(crate) fn shared_parts(t: &Expr, f: &Expr) -> Vec<Expr> {
    let (mut first, mut second, mut found) = (HashSet::default(), HashSet::default(), Vec::new());
    certain(t, &mut |e| first.insert(e.address()));
    certain(f, &mut |e| {
        let (new, shared) = (second.insert(e.address()), first.contains(&e.address()));
        found.extend((new && shared).then(|| e.clone()));
        new && !shared
    });
    found
}

/// What an expression certainly reads from memory.
fn loads_of(e: &Expr) -> Vec<Expr> {
    let mut loads = Vec::new();
    certain(e, &mut |e| {
        loads.extend(matches!(e.kind(), ExprKind::Load(..)).then(|| e.clone()));
        true
    });
    loads
}

/// Calls back for what an expression certainly evaluates, but for variables and numbers; the parts of a
/// node come only if the answer is `true`. Bodies of bindings are left out, because what they bind is
/// not there outside.
fn certain(e: &Expr, each: &mut dyn FnMut(&Expr) -> bool) {
    e.for_each(|e| {
        let leaf = matches!(e.kind(), ExprKind::Var(_) | ExprKind::Int(_) | ExprKind::Float(_));
        let first = match e.kind() {
            _ if leaf || !each(e) => return false,
            ExprKind::IfThenElse(first, ..)
            | ExprKind::Binary(BinOp::And | BinOp::Or, first, _)
            | ExprKind::Let(_, first, _) => first,
            _ => return true,
        };
        certain(first, each);
        false
    });
}

/// Whether an expression is a floating-point constant that is not `NaN`.
fn is_number(e: &Expr) -> bool {
    match e.kind() {
        ExprKind::Float(v) => !v.is_nan(),
        ExprKind::Broadcast(a) => is_number(a),
        _ => false,
    }
}
