//! Simplification of a whole function by what is known at each place.
//!
//! Known are the ranges of loops and block iteration variables, the conditions that guard a place,
//! let bindings, assumptions and assertions that came before, and that extents are not negative.
//! Under that, the exact sets of [`tilewright_sets`] simplify indices and conditions:
//!
//! * a branch whose condition is decided becomes one of its sides; two equal sides become one;
//! * a loop without iterations goes, one of a single iteration becomes its body;
//! * a store of what its cell just gave, and what does nothing, go.
//!
//! **Never more is evaluated than before.** An expression in which something is evaluated only
//! sometimes (`and`, `or`, `if_then_else`) and that loads or may divide by zero is simplified part
//! by part, in its order. What may have effects or is undefined (calls of C functions, `T.undef()`)
//! is left alone.
//!
//! **Facts about memory** hold until a write may touch their buffer: a store to it or to a view of
//! it, a loop around the place that has such a store, a call that may do anything.
//!
//! **Arithmetic of data wraps.** Index arithmetic stays in its type (the assumption of the sets).
//! Where elements of buffers are computed with, and in stored values, that is not taken for
//! granted: such an expression is simplified only if bounds show that no operation overflows; in a
//! stored value without loads, also if there are no bounds.
//!
//! Inside of a block only the domains of its variables are known, not what they are bound to, so
//! that the block still stands for itself afterwards. Bindings of `let` stay; loops with
//! annotations and loops for threads stay too, for whoever looks for them.

use std::collections::HashSet;
use std::sync::Arc;

use tilewright_ir::visit::{
    Subst, accessed, fold_block_children, fold_expr_children, fold_range, fold_stmt_children,
    walk_expr,
};
use tilewright_ir::{
    BinOp, Block, CallTarget, Error, Expr, ExprKind, Fold, ForKind, Range, Result, Stmt, StmtKind,
    TensorFunc, TypeKind, Var, Visit, equal,
};
use tilewright_sets::{Domain, Engine, cost};

/// Simplifies a function.
///
/// # Errors
/// `Toolchain` where libisl is missing; `Refused` for an assumption that is provably false at a
/// place that is reached, with its place.
pub fn simplify(func: &TensorFunc) -> Result<TensorFunc> {
    let mut base = Engine::new()?.domain();
    for dim in func.buffers().flat_map(|b| &b.shape) {
        if dim.as_int().is_none() && Traits::of(dim).pure {
            base = base.with_guard(&dim.clone().greater_equal(0));
        }
    }
    let mut s = Simplify { base, facts: Vec::new(), now: None, data: false, error: None };
    let body = s.stmt(&func.body);
    match s.error {
        Some(e) => Err(e),
        None => Ok(TensorFunc { body, ..func.clone() }),
    }
}

/// What matters about an expression before it is given to the sets.
struct Traits {
    /// No effects, and the same value each time.
    pure: bool,
    /// Calls something that may do anything.
    calls: bool,
    /// Reads memory.
    loads: bool,
    /// Has parts that are evaluated only sometimes.
    lazy: bool,
    /// Divides by something that may be zero.
    divides: bool,
}

impl Traits {
    fn of(e: &Expr) -> Traits {
        let mut t = Traits { pure: true, calls: false, loads: false, lazy: false, divides: false };
        t.expr(e);
        t
    }

    /// Whether evaluating all of it in any order does nothing that evaluating it as it stands
    /// does not.
    fn free_order(&self) -> bool {
        self.pure && !(self.lazy && (self.loads || self.divides))
    }
}

impl Visit for Traits {
    fn expr(&mut self, e: &Expr) {
        match e.kind() {
            ExprKind::Undef => self.pure = false,
            ExprKind::Call(CallTarget::Extern(_) | CallTarget::Opaque(_), _) => {
                (self.pure, self.calls) = (false, true);
            }
            ExprKind::Load(..) => self.loads = true,
            ExprKind::Binary(BinOp::And | BinOp::Or, ..) | ExprKind::IfThenElse(..) => {
                self.lazy = true;
            }
            ExprKind::Binary(op, _, by) => {
                let divides = matches!(
                    op,
                    BinOp::FloorDiv | BinOp::FloorMod | BinOp::TruncDiv | BinOp::TruncMod
                );
                self.divides |= divides && by.as_int().is_none_or(|k| k == 0);
            }
            _ => {}
        }
        walk_expr(self, e);
    }
}

/// Whether a statement calls something that may do anything.
fn has_effects(s: &Stmt) -> bool {
    let mut traits = Traits { pure: true, calls: false, loads: false, lazy: false, divides: false };
    traits.stmt(s);
    traits.calls
}

/// Pointers of the buffers that an expression loads from.
fn memory(e: &Expr) -> HashSet<Var> {
    struct Memory(HashSet<Var>);
    impl Visit for Memory {
        fn expr(&mut self, e: &Expr) {
            if let ExprKind::Load(b, _) = e.kind() {
                self.0.insert(b.data.clone());
            }
            walk_expr(self, e);
        }
    }
    let mut memory = Memory(HashSet::new());
    memory.expr(e);
    memory.0
}

/// Whether an operation of an expression may leave its type, where that is not ruled out by the
/// expression being index arithmetic.
struct Overflow<'a> {
    domain: &'a Domain,
    /// Whether the expression is a stored value.
    data: bool,
    found: bool,
}

impl Visit for Overflow<'_> {
    fn expr(&mut self, e: &Expr) {
        let t = e.dtype();
        // Narrow and unsigned arithmetic is exact in the sets.
        let may_grow = t.kind == TypeKind::Int && t.bits >= 32;
        if let ExprKind::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul, ..) = e.kind()
            && may_grow
        {
            let loads = Traits::of(e).loads;
            if loads || self.data {
                let inside = match self.domain.bounds(e) {
                    Ok((Some(lo), Some(hi))) => {
                        t.min_int() <= Some(lo.into()) && Some(i128::from(hi)) <= t.max_int()
                    }
                    _ => !loads,
                };
                self.found |= !inside;
            }
        }
        // Indices are index arithmetic.
        if !self.found && !matches!(e.kind(), ExprKind::Load(..)) {
            walk_expr(self, e);
        }
    }
}

/// Multiplies constants into sums: `(i * 4 + j) * 16` is `i * 64 + j * 16`.
struct Expand;

impl Fold for Expand {
    fn expr(&mut self, e: &Expr) -> Expr {
        if let ExprKind::Load(..) = e.kind() {
            return e.clone();
        }
        let e = fold_expr_children(self, e);
        match e.kind() {
            ExprKind::Binary(BinOp::Mul, a, b) => match (a.as_int(), b.as_int()) {
                (None, Some(k)) => scaled(a, k).unwrap_or(e),
                (Some(k), None) => scaled(b, k).unwrap_or(e),
                _ => e,
            },
            _ => e,
        }
    }
}

/// `e * k` with the factor at the leaves of the sum; `None` where the factor gets too large.
fn scaled(e: &Expr, k: i64) -> Option<Expr> {
    Some(match e.kind() {
        ExprKind::Int(v) => {
            let value = v.checked_mul(k)?;
            let fits = e.dtype().min_int() <= Some(value.into())
                && Some(i128::from(value)) <= e.dtype().max_int();
            fits.then(|| Expr::int(value, e.dtype()))?
        }
        ExprKind::Binary(BinOp::Add, a, b) => scaled(a, k)? + scaled(b, k)?,
        ExprKind::Binary(BinOp::Sub, a, b) => scaled(a, k)? - scaled(b, k)?,
        ExprKind::Binary(BinOp::Mul, a, b) => match (a.as_int(), b.as_int()) {
            (None, Some(_)) => a * scaled(b, k)?,
            (Some(_), None) => b * scaled(a, k)?,
            _ => e * k,
        },
        _ => e * k,
    })
}

struct Simplify {
    /// What holds here whatever is written.
    base: Domain,
    /// What holds here as long as these pointers are not written to.
    facts: Vec<(Expr, HashSet<Var>)>,
    /// Both together, once it was asked for.
    now: Option<Domain>,
    /// Whether this is part of a stored value.
    data: bool,
    error: Option<Error>,
}

impl Simplify {
    fn domain(&mut self) -> Domain {
        let (base, facts) = (&self.base, &self.facts);
        let build = || facts.iter().fold(base.clone(), |d, (fact, _)| d.with_guard(fact));
        self.now.get_or_insert_with(build).clone()
    }

    /// Whether an operation may leave its type where that matters; see [`Overflow`].
    fn overflows(&mut self, e: &Expr, data: bool) -> bool {
        if !data && !Traits::of(e).loads {
            return false;
        }
        let mut overflow = Overflow { domain: &self.domain(), data, found: false };
        overflow.expr(e);
        overflow.found
    }

    /// Takes a condition as given from here on.
    fn learn(&mut self, cond: &Expr) {
        if let ExprKind::Binary(BinOp::And, a, b) = cond.kind() {
            self.learn(a);
            self.learn(b);
        } else if Traits::of(cond).pure && cond.dtype().lanes == 1 && !self.overflows(cond, false) {
            let reads = memory(cond);
            if reads.is_empty() {
                self.base = self.base.with_guard(cond);
            } else {
                self.facts.push((cond.clone(), reads));
            }
            self.now = None;
        }
    }

    /// Takes a binding as given.
    fn bind(&mut self, var: &Var, value: &Expr) {
        if (var.dtype().is_int() || var.dtype().is_bool()) && var.dtype().lanes == 1 {
            self.learn(&Expr::binary(BinOp::Eq, var.expr(), value.clone()));
        }
    }

    /// Forgets what a statement may have changed.
    fn forget(&mut self, s: &Stmt) {
        if self.facts.is_empty() {
            return;
        }
        let known = self.facts.len();
        match has_effects(s) {
            true => self.facts.clear(),
            false => {
                let written: HashSet<Var> = accessed(s).1.iter().map(|b| b.data.clone()).collect();
                self.facts.retain(|(_, reads)| reads.is_disjoint(&written));
            }
        }
        if self.facts.len() < known {
            self.now = None;
        }
    }

    /// Runs with what is learned on the way forgotten afterwards.
    fn scoped<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let saved = (self.base.clone(), self.facts.clone(), self.now.clone());
        let result = work(self);
        (self.base, self.facts, self.now) = saved;
        result
    }

    /// An index, a bound or a condition.
    fn index(&mut self, e: &Expr) -> Expr {
        self.within(false, |s| s.expr(e))
    }

    /// A value that is stored or passed on.
    fn value(&mut self, e: &Expr) -> Expr {
        self.within(true, |s| s.expr(e))
    }

    fn within<R>(&mut self, data: bool, work: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.data, data);
        let result = work(self);
        self.data = outer;
        result
    }

    /// The simplest form of an expression whose parts may be evaluated in any order.
    fn simplest(&mut self, e: &Expr) -> Expr {
        if e.as_int().is_some() || (e.as_var().is_some() && !e.dtype().is_bool()) {
            return e.clone();
        }
        if self.overflows(e, self.data) {
            return e.clone();
        }
        let domain = self.domain();
        let plain = domain.simplify(e);
        if !e.dtype().is_int() {
            return plain;
        }
        let expanded = Expand.expr(e);
        if expanded.ptr_eq(e) {
            return plain;
        }
        let expanded = domain.simplify(&expanded);
        if cost(&expanded) <= cost(&plain) { expanded } else { plain }
    }

    /// `a and b` (`value` false) or `a or b` (`value` true): the side that is evaluated second is
    /// simplified under the first.
    fn logic(&mut self, e: &Expr, op: BinOp, a: &Expr, b: &Expr) -> Expr {
        let decided = op == BinOp::Or;
        let a2 = self.expr(a);
        let b2 = self.scoped(|s| {
            s.learn(&if decided { !a2.clone() } else { a2.clone() });
            s.expr(b)
        });
        match (a2.as_int(), b2.as_int()) {
            (Some(v), _) if (v != 0) == decided => Expr::bool(decided),
            (Some(_), _) => b2,
            (_, Some(v)) if (v != 0) != decided => a2,
            (_, Some(_)) if Traits::of(&a2).pure => Expr::bool(decided),
            _ if a2.ptr_eq(a) && b2.ptr_eq(b) => e.clone(),
            _ => Expr::binary(op, a2, b2),
        }
    }

    fn for_loop(&mut self, s: &Stmt) -> Stmt {
        let StmtKind::For { var, range, kind, annotations, body } = s.kind() else {
            return s.clone();
        };
        let range = self.within(false, |s| fold_range(s, range));
        let pure = Traits::of(&range.min).pure && Traits::of(&range.extent).pure;
        let marked = !annotations.is_empty() || matches!(kind, ForKind::ThreadBinding(_));
        if range.is_point() && pure && !marked {
            return self.stmt(&Subst::vars([(var.clone(), range.min)]).stmt(body));
        }
        let new = self.scoped(|s| {
            s.forget(body);
            s.base = s.base.with_var(var, &range);
            s.now = None;
            match pure && s.domain().is_empty().is_yes() {
                true => Stmt::nop(),
                false => s.stmt(body),
            }
        });
        self.forget(body);
        if new.is_nop() && pure {
            return new;
        }
        let (var, kind, annotations) = (var.clone(), kind.clone(), annotations.clone());
        Stmt::spanned(StmtKind::For { var, range, kind, annotations, body: new }, s.span())
    }

    fn branch(&mut self, s: &Stmt) -> Stmt {
        let StmtKind::If { cond, then, otherwise } = s.kind() else { return s.clone() };
        let cond = self.index(cond);
        if let Some(taken) = cond.as_int() {
            return match (taken != 0, otherwise) {
                (true, _) => self.stmt(then),
                (false, Some(otherwise)) => self.stmt(otherwise),
                (false, None) => Stmt::nop(),
            };
        }
        let negated = !cond.clone();
        let yes = self.scoped(|s| {
            s.learn(&cond);
            s.stmt(then)
        });
        let no = otherwise.as_ref().map(|otherwise| {
            self.scoped(|s| {
                s.learn(&negated);
                s.stmt(otherwise)
            })
        });
        self.forget(s);
        let no = no.filter(|no| !no.is_nop());
        let pure = Traits::of(&cond).pure;
        match no {
            None if yes.is_nop() && pure => yes,
            Some(no) if yes.is_nop() && pure => {
                let cond = self.index(&negated);
                Stmt::spanned(StmtKind::If { cond, then: no, otherwise: None }, s.span())
            }
            Some(no) if pure && equal::stmts(&yes, &no, &equal::Options::default()).is_ok() => yes,
            no => Stmt::spanned(StmtKind::If { cond, then: yes, otherwise: no }, s.span()),
        }
    }

    fn store(&mut self, s: &Stmt) -> Stmt {
        let StmtKind::Store { buffer, indices, value } = s.kind() else { return s.clone() };
        let indices: Vec<Expr> = indices.iter().map(|i| self.index(i)).collect();
        let value = self.value(value);
        let same = match value.kind() {
            ExprKind::Load(from, at) if from == buffer => {
                let domain = self.domain();
                indices.iter().chain(at).all(|i| Traits::of(i).pure)
                    && indices
                        .iter()
                        .zip(at)
                        .all(|(a, b)| equal::same_expr(a, b) || domain.equal(a, b).is_yes())
            }
            _ => false,
        };
        if same {
            return Stmt::nop();
        }
        self.forget(s);
        Stmt::spanned(StmtKind::Store { buffer: buffer.clone(), indices, value }, s.span())
    }

    fn assume(&mut self, s: &Stmt, cond: &Expr) {
        if !Traits::of(cond).pure || self.overflows(cond, false) {
            return;
        }
        let domain = self.domain();
        if domain.prove(&!cond.clone()).is_yes() && domain.is_empty().is_no() {
            self.error.get_or_insert_with(|| {
                Error::refused(format!("the assumption `{cond}` is false here")).at(s.span())
            });
        }
        self.learn(cond);
    }
}

impl Fold for Simplify {
    fn expr(&mut self, e: &Expr) -> Expr {
        let t = e.dtype();
        let traits = Traits::of(e);
        if traits.calls {
            return e.clone();
        }
        if t.lanes == 1 && (t.is_int() || t.is_bool()) && traits.free_order() {
            let inner = if traits.loads { fold_expr_children(self, e) } else { e.clone() };
            return self.simplest(&inner);
        }
        match e.kind() {
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) if t.lanes == 1 => {
                self.logic(e, *op, a, b)
            }
            ExprKind::IfThenElse(cond, a, b) => {
                let cond2 = self.index(cond);
                if let Some(taken) = cond2.as_int() {
                    return self.expr(if taken != 0 { a } else { b });
                }
                let x = self.scoped(|s| {
                    s.learn(&cond2);
                    s.expr(a)
                });
                let y = self.scoped(|s| {
                    s.learn(&!cond2.clone());
                    s.expr(b)
                });
                match cond2.ptr_eq(cond) && x.ptr_eq(a) && y.ptr_eq(b) {
                    true => e.clone(),
                    false => Expr::if_then_else(cond2, x, y),
                }
            }
            ExprKind::Select(cond, a, b) if cond.dtype().lanes == 1 => {
                let cond = self.index(cond);
                match cond.as_int() {
                    Some(0) if Traits::of(a).pure => self.expr(b),
                    Some(v) if v != 0 && Traits::of(b).pure => self.expr(a),
                    _ => Expr::select(cond, self.expr(a), self.expr(b)),
                }
            }
            ExprKind::Load(..) => self.within(false, |s| fold_expr_children(s, e)),
            ExprKind::Let(var, value, body) => {
                let value = self.expr(value);
                let body = self.scoped(|s| {
                    s.bind(var, &value);
                    s.expr(body)
                });
                Expr::let_in(var.clone(), value, body)
            }
            _ => fold_expr_children(self, e),
        }
    }

    fn stmt(&mut self, s: &Stmt) -> Stmt {
        if !self.facts.is_empty() && has_effects(s) {
            self.facts.clear();
            self.now = None;
        }
        match s.kind() {
            StmtKind::Store { .. } => self.store(s),
            StmtKind::For { .. } => self.for_loop(s),
            StmtKind::If { .. } => self.branch(s),
            StmtKind::Let { var, value, body } => {
                let value = self.index(value);
                self.bind(var, &value);
                let body = self.stmt(body);
                match body.is_nop() && Traits::of(&value).pure {
                    true => body,
                    false => {
                        Stmt::spanned(StmtKind::Let { var: var.clone(), value, body }, s.span())
                    }
                }
            }
            StmtKind::Allocate { .. } | StmtKind::Constant { .. } | StmtKind::Declare { .. } => {
                let new = fold_stmt_children(self, s);
                match new.kind() {
                    StmtKind::Allocate { body, .. }
                    | StmtKind::Constant { body, .. }
                    | StmtKind::Declare { body, .. }
                        if body.is_nop() =>
                    {
                        Stmt::nop()
                    }
                    _ => new,
                }
            }
            StmtKind::Block { bindings, predicate, block } => {
                let bindings: Vec<Expr> = bindings.iter().map(|b| self.index(b)).collect();
                let predicate = self.index(predicate);
                if predicate.is_false() {
                    return Stmt::nop();
                }
                let block = self.scoped(|s| s.block(block));
                self.forget(s);
                Stmt::spanned(StmtKind::Block { bindings, predicate, block }, s.span())
            }
            StmtKind::Assume(cond) => {
                self.assume(s, cond);
                s.clone()
            }
            StmtKind::Assert { cond, message } => {
                let cond = self.index(cond);
                if cond.is_true() {
                    return Stmt::nop();
                }
                self.learn(&cond);
                Stmt::spanned(StmtKind::Assert { cond, message: message.clone() }, s.span())
            }
            StmtKind::Evaluate(_) => self.within(true, |f| fold_stmt_children(f, s)),
            StmtKind::Seq(_) => fold_stmt_children(self, s),
        }
    }

    fn block(&mut self, b: &Arc<Block>) -> Arc<Block> {
        for iter in &b.iters {
            let domain: Range = fold_range(self, &iter.domain);
            self.base = self.base.with_var(&iter.var, &domain);
            self.now = None;
        }
        fold_block_children(self, b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::{Buffer, DType, IterKind, IterVar, Param};

    fn run(params: &[&Buffer], body: Stmt) -> Stmt {
        let params = params.iter().map(|b| Param::tensor(b)).collect();
        simplify(&TensorFunc::new(params, body)).expect("libisl is there, nothing is refused").body
    }

    fn ints(name: &str) -> Buffer {
        Buffer::with_extents(name, &[16], DType::I32)
    }

    fn set(b: &Buffer, at: i32, value: i32) -> Stmt {
        Stmt::store(b, vec![Expr::i32(at)], Expr::i32(value))
    }

    /// `T.assume(A[0] < 5)`, then `between`, then `if A[0] < 7: B[0] = 1`: whether the guard went.
    fn guard_goes(a: &Buffer, b: &Buffer, between: Stmt) -> bool {
        let first = || a.load([Expr::i32(0)]);
        let assume = Stmt::new(StmtKind::Assume(first().less(5)));
        let guarded = Stmt::guard(first().less(7), set(b, 0, 1));
        let out = run(&[a, b], Stmt::seq([assume, between, guarded]));
        let StmtKind::Seq(parts) = out.kind() else { panic!("{out:?}") };
        matches!(parts.last().map(Stmt::kind), Some(StmtKind::Store { .. }))
    }

    #[test]
    fn facts_about_memory_end_with_writes_to_it() {
        let (a, b) = (ints("A"), ints("B"));
        assert!(guard_goes(&a, &b, set(&b, 3, 0)));
        assert!(!guard_goes(&a, &b, set(&a, 3, 0)));
        let view = a.derive(|d| d.shape = vec![Expr::i32(8)]);
        let other = Stmt::new(StmtKind::Declare { buffer: view.clone(), body: set(&view, 3, 0) });
        assert!(!guard_goes(&a, &b, other));
        let call = Expr::call(CallTarget::Extern("anything".into()), vec![], DType::I32);
        assert!(!guard_goes(&a, &b, Stmt::new(StmtKind::Evaluate(call))));
    }

    #[test]
    fn an_effect_inside_of_a_condition_is_neither_moved_nor_dropped() {
        let b = ints("B");
        let call = Expr::call(CallTarget::Extern("ask".into()), vec![], DType::BOOL);
        let cond = Expr::binary(BinOp::And, call, Expr::bool(false));
        let branch = Stmt::new(StmtKind::If { cond, then: Stmt::nop(), otherwise: None });
        let out = run(&[&b], branch.clone());
        let same = equal::stmts(&out, &branch, &equal::Options::default());
        assert!(same.is_ok(), "{same:?}");
    }

    #[test]
    fn data_may_wrap_where_bounds_do_not_rule_it_out() {
        let (a, b) = (ints("A"), ints("B"));
        let i = Var::index("i");
        let wide = a.load([i.expr()]);
        let small = Buffer::with_extents("S", &[16], DType::I8);
        let narrow = small.load([i.expr()]).cast(DType::I32);
        let halved = |value: Expr| {
            let value = Expr::binary(BinOp::FloorDiv, value * 2, Expr::i32(2));
            let body = Stmt::store(&b, vec![i.expr()], value);
            let out = run(&[&a, &b, &small], Stmt::serial(&i, Expr::i32(16), body));
            let StmtKind::For { body, .. } = out.kind() else { panic!("{out:?}") };
            let StmtKind::Store { value, .. } = body.kind() else { panic!("{body:?}") };
            matches!(value.kind(), ExprKind::Binary(BinOp::FloorDiv, ..))
        };
        assert!(halved(wide));
        assert!(!halved(narrow));
        // 15 * 2^30 is beyond int32.
        assert!(!halved(i.expr() * 5) && halved(i.expr() * (1 << 30)));
    }

    #[test]
    fn a_block_does_not_lean_on_its_bindings() {
        let b = ints("B");
        let (i, v) = (Var::index("i"), Var::index("v"));
        let body = Stmt::guard(v.expr().less(4), Stmt::store(&b, vec![v.expr()], Expr::i32(1)));
        let mut block = Block::new("B", body);
        let domain = Range::upto(Expr::i32(16));
        block.iters.push(IterVar { var: v, domain, kind: IterKind::Spatial });
        let block = Stmt::block(vec![i.expr()], Expr::bool(true), block);
        let out = run(&[&b], Stmt::serial(&i, Expr::i32(4), block));
        let StmtKind::For { body, .. } = out.kind() else { panic!("{out:?}") };
        let StmtKind::Block { block, .. } = body.kind() else { panic!("{body:?}") };
        assert!(matches!(block.body.kind(), StmtKind::If { .. }));
    }

    #[test]
    fn an_assumption_that_is_false_is_an_error_only_where_it_is_reached() {
        let b = ints("B");
        let n = Var::index("n");
        let assume = |low: i32| {
            let lies = Stmt::new(StmtKind::Assume(n.expr().less(3)));
            let body = Stmt::seq([lies, set(&b, 0, 1)]);
            let inner = Stmt::guard(n.expr().greater_equal(i64::from(low)), body);
            let params = vec![Param::tensor(&b), Param::Scalar(n.clone())];
            simplify(&TensorFunc::new(params, inner))
        };
        let error = assume(5).expect_err("refused").render();
        assert!(error.contains("the assumption `n < 3` is false here"), "{error}");
        assert!(assume(2).is_ok());
    }
}
