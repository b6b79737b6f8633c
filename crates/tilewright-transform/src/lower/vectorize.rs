//! Vectorised loops become vector expressions.
//!
//! `for i in T.vectorized(n)` says that its iterations do not depend on one another, so its
//! statements may run one after the other, each for all `i` at once. In each statement `i`
//! becomes the ramp `min, min + 1, ...` of `n` lanes, and whatever meets it is broadcast. A condition
//! that differs between lanes is a mask of the stores that it guards, or of the loads of the value that it
//! chooses, where all that these access are neighbours that machines mask; one that is seen to be the same for all, as
//! `8 * k + i < 432` for the eight values of `i`, is asked once. A
//! statement that has no vector form (another condition or a loop bound that differs between lanes,
//! a call with effects, a store whose place is the same for every lane) runs as a
//! serial loop instead, as does a loop whose extent is not a constant.

use tilewright_ir::hash::HashMap;
use tilewright_ir::index::{Interval, Linear, Ranges, gcd, is_index};

use tilewright_ir::visit::{Subst, fold_func, fold_stmt_children};
use tilewright_ir::{
    BinOp, Buffer, CallTarget, DType, Expr, ExprKind, Fold, ForKind, Range, Stmt, StmtKind,
    TensorFunc, Var, extent,
};

use crate::pass::{Pass, Run};

/// `vectorize_loop` by name.
pub const PASS: Pass = Pass {
    name: "vectorize_loop",
    summary: "turn vectorised loops into vector expressions; buffers must be flat",
    options: &[],
    run: Run::Tensor(|f, _, _| Ok(vectorize_loops(f))),
};

/// Largest number of lanes; loops with more iterations stay serial.
const MAX_LANES: i64 = 1024;

/// Turns every vectorised loop of a function into vector expressions. Buffers must be flat.
pub fn vectorize_loops(func: &TensorFunc) -> TensorFunc {
    let mut ranges = Ranges::default();
    ranges.bind_sizes(func);
    fold_func(&mut Loops { ranges }, func)
}

struct Loops {
    /// What the loops around say of their variables.
    ranges: Ranges,
}

impl Fold for Loops {
    fn stmt(&mut self, s: &Stmt) -> Stmt {
        if let StmtKind::For { var, range, .. } = s.kind() {
            self.ranges.bind_loop(var, range);
        }
        // Inner loops first: an outer vectorised loop around vector code stays serial.
        let s = fold_stmt_children(self, s);
        let StmtKind::For { var, range, kind: ForKind::Vectorized, body, .. } = s.kind() else {
            return s;
        };
        match range.extent.as_int() {
            Some(1) => Stmt::let_in(var, range.min.clone(), body.clone()),
            Some(n) if (2..=MAX_LANES).contains(&n) => {
                let lanes = n as u16;
                let ramp = Expr::ramp(range.min.clone(), Expr::int(1, var.dtype()), lanes);
                let mut widen = Widen {
                    lanes,
                    values: HashMap::from_iter([(var.clone(), ramp)]),
                    var: var.clone(),
                    range: range.clone(),
                    ranges: &self.ranges,
                };
                widen.stmt(body).unwrap_or_else(|| serial(var, range, body.clone()))
            }
            _ => serial(var, range, body.clone()),
        }
    }
}

fn serial(var: &Var, range: &Range, body: Stmt) -> Stmt {
    Stmt::for_loop(var, range.clone(), ForKind::Serial, body)
}

/// Rewrites the body of one vectorised loop.
struct Widen<'a> {
    lanes: u16,
    /// The loop variable and what depends on it, by their vector values.
    values: HashMap<Var, Expr>,
    var: Var,
    range: Range,
    ranges: &'a Ranges,
}

impl Widen<'_> {
    /// The statement for all lanes: its vector form, or a serial loop around it. `None` where
    /// neither is possible, because a binding around it has only a vector value.
    fn stmt(&mut self, s: &Stmt) -> Option<Stmt> {
        if let Some(vector) = self.vector_stmt(s) {
            return Some(vector);
        }
        if self.values.len() > 1 {
            return None;
        }
        let var = self.var.fresh();
        let mut subst = Subst::vars([(self.var.clone(), var.expr())]);
        subst.refresh = true;
        Some(serial(&var, &self.range, subst.stmt(s)))
    }

    /// The vector form of a statement, if it has one.
    fn vector_stmt(&mut self, s: &Stmt) -> Option<Stmt> {
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => {
                let indices = self.place(buffer, indices)?;
                let value = self.expr(value)?;
                let last = indices.last()?;
                // Two lanes may update one cell: at once, one of the updates would be lost.
                let distinct = last.dtype().lanes == 1 || moves(last);
                if !distinct && reads(&value, buffer) {
                    return None;
                }
                match (last.dtype().lanes, value.dtype().lanes) {
                    (1, 1) => Some(Stmt::store(buffer, indices, value)),
                    (1, _) => None,
                    (_, 1) => Some(Stmt::store(buffer, indices, self.widen(value))),
                    _ => Some(Stmt::store(buffer, indices, value)),
                }
            }
            StmtKind::Seq(stmts) if !stmts.iter().any(binds) => {
                Some(Stmt::seq(stmts.iter().map(|s| self.stmt(s)).collect::<Option<Vec<_>>>()?))
            }
            StmtKind::For { range, body, .. } => {
                let range =
                    Range { min: self.scalar(&range.min)?, extent: self.scalar(&range.extent)? };
                Some(s.with_loop(range, self.stmt(body)?))
            }
            StmtKind::If { cond, then, otherwise } => {
                let cond = self.expr(cond)?;
                if cond.dtype().lanes > 1 {
                    let then = self.vector_stmt(then).filter(is_masked)?;
                    let alone = otherwise.is_none();
                    return alone.then(|| Stmt::new(StmtKind::If { cond, then, otherwise: None }));
                }
                let then = self.stmt(then)?;
                let otherwise = match otherwise {
                    Some(o) => Some(self.stmt(o)?),
                    None => None,
                };
                Some(Stmt::new(StmtKind::If { cond, then, otherwise }))
            }
            StmtKind::Let { var, value, body } => {
                let value = self.expr(value)?;
                if value.dtype().lanes == 1 {
                    return Some(Stmt::let_in(var, value, self.stmt(body)?));
                }
                let (wide, body) = self.with_vector(var, value.dtype(), |w| w.stmt(body));
                Some(Stmt::let_in(&wide, value, body?))
            }
            StmtKind::Evaluate(e) if e.as_int().is_some() => Some(s.clone()),
            _ => None,
        }
    }

    /// The indices of an access, of which only the last one may be a vector.
    fn place(&mut self, buffer: &Buffer, indices: &[Expr]) -> Option<Vec<Expr>> {
        let indices: Vec<Expr> = indices.iter().map(|i| self.expr(i)).collect::<Option<_>>()?;
        let (_, outer) = indices.split_last()?;
        let scalar = outer.iter().all(|i| i.dtype().lanes == 1) && buffer.dtype().lanes == 1;
        scalar.then_some(indices)
    }

    fn scalar(&mut self, e: &Expr) -> Option<Expr> {
        self.expr(e).filter(|e| e.dtype().lanes == 1)
    }

    /// Works where a variable is bound to a vector; first, the variable of that.
    fn with_vector<R>(&mut self, v: &Var, t: DType, work: impl FnOnce(&mut Self) -> R) -> (Var, R) {
        let wide = Var::new(v.name().clone(), t);
        self.values.insert(v.clone(), wide.expr());
        let result = work(self);
        self.values.remove(v);
        (wide, result)
    }

    fn widen(&self, e: Expr) -> Expr {
        if e.dtype().lanes == 1 { Expr::broadcast(e, self.lanes) } else { e }
    }

    fn pair(&mut self, a: &Expr, b: &Expr) -> Option<(Expr, Expr)> {
        let (a, b) = (self.expr(a)?, self.expr(b)?);
        if a.dtype().lanes == b.dtype().lanes {
            Some((a, b))
        } else {
            Some((self.widen(a), self.widen(b)))
        }
    }

    /// All of some conditions. What is the same in all lanes comes first, and what is not stays together: that part
    /// often is a mask that other rows need, too.
    fn conjunction(&mut self, all: &[Expr]) -> Option<Expr> {
        let all: Vec<Expr> = all.iter().map(|c| self.expr(c)).collect::<Option<_>>()?;
        let (same, vectors): (Vec<Expr>, Vec<Expr>) =
            all.into_iter().partition(|c| c.dtype().lanes == 1);
        let and = |a: Expr, b: Expr| Expr::binary(BinOp::And, a, b);
        let (same, vectors) = (same.into_iter().reduce(and), vectors.into_iter().reduce(and));
        match (same, vectors) {
            (Some(same), Some(vectors)) => Some(and(self.widen(same), vectors)),
            (same, vectors) => Some(same.or(vectors).unwrap_or_else(|| Expr::bool(true))),
        }
    }

    /// Whether a comparison of integers holds in all lanes or in none: what else stands on either side is a multiple of a
    /// number, and no lane comes over the next one.
    fn is_same_in_all_lanes(&self, op: BinOp, a: &Expr, b: &Expr) -> bool {
        // `a < b` is `difference < 0`, and `a >= b` the contrary; `a <= b` is `difference < 1`.
        let below = match op {
            BinOp::Lt | BinOp::Ge => 0,
            BinOp::Le | BinOp::Gt => 1,
            _ => return false,
        };
        let same = || {
            let (x, y) = (Linear::from_expr(a)?, Linear::from_expr(b)?);
            x.fits(self.ranges).and(y.fits(self.ranges))?;
            let mut difference = x.plus(&y, -1)?;
            let by = difference.coefficient(&self.var)?;
            let lanes = Interval::point(self.range.min.as_int()?.into());
            let lanes = lanes.plus(Interval::new(0, i128::from(self.lanes) - 1))?.times(by)?;
            difference.terms.retain(|(atom, _)| atom.as_var() != Some(&self.var));
            let unit = difference.terms.iter().fold(0, |unit, (_, k)| gcd(unit, *k));
            let rest =
                |lane: i128| (below - 1 - difference.constant - lane).checked_div_euclid(unit);
            Some(by != 0 && rest(lanes.lo)? == rest(lanes.hi)?)
        };
        self.values.len() == 1 && same() == Some(true)
    }

    /// The value for every lane: scalar where it is the same in each, `None` where there is no
    /// vector form.
    fn expr(&mut self, e: &Expr) -> Option<Expr> {
        if e.dtype().lanes != 1 {
            return None;
        }
        Some(match e.kind() {
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Str(_)
            | ExprKind::Undef
            | ExprKind::Ramp(..)
            | ExprKind::Broadcast(_) => e.clone(),
            ExprKind::Var(v) => self.values.get(v).cloned().unwrap_or_else(|| e.clone()),
            ExprKind::Cast(a) => {
                let x = self.expr(a)?;
                let to = e.dtype().with_lanes(x.dtype().lanes);
                wider_ramp(&x, to).unwrap_or_else(|| Expr::cast_node(x, to))
            }
            ExprKind::Not(a) => Expr::not_node(self.expr(a)?),
            ExprKind::Binary(BinOp::And, ..) if is_index(e) && !e.effects().partial => {
                self.conjunction(&e.conjuncts())?
            }
            ExprKind::Binary(op, a, b) if self.is_same_in_all_lanes(*op, a, b) => {
                Subst::vars([(self.var.clone(), self.range.min.clone())]).expr(e)
            }
            ExprKind::Binary(op, a, b) => {
                let (x, y) = self.pair(a, b)?;
                ramp_arithmetic(*op, &x, &y).unwrap_or_else(|| Expr::binary(*op, x, y))
            }
            ExprKind::Select(c, t, f) => {
                let c = self.expr(c)?;
                let (t, f) = self.pair(t, f)?;
                if c.dtype().lanes == t.dtype().lanes {
                    Expr::select(c, t, f)
                } else {
                    Expr::select(self.widen(c), self.widen(t), self.widen(f))
                }
            }
            ExprKind::IfThenElse(c, t, f) => {
                let c = self.expr(c)?;
                let (t, f) = self.pair(t, f)?;
                if c.dtype().lanes == 1 {
                    return Some(Expr::if_then_else(c, t, f));
                }
                let both = is_masked_value(&t) && is_masked_value(&f);
                both.then(|| Expr::if_then_else(c, self.widen(t), self.widen(f)))?
            }
            ExprKind::Load(buffer, indices) => Expr::load(buffer, self.place(buffer, indices)?),
            ExprKind::Call(target, args) => {
                let args: Vec<Expr> = args.iter().map(|a| self.expr(a)).collect::<Option<_>>()?;
                if args.iter().all(|a| a.dtype().lanes == 1) {
                    return Some(Expr::call(target.clone(), args, e.dtype()));
                }
                if !matches!(target, CallTarget::Intrin(_) | CallTarget::Reinterpret(_)) {
                    return None;
                }
                let args = args.into_iter().map(|a| self.widen(a)).collect();
                Expr::call(target.clone(), args, e.dtype().with_lanes(self.lanes))
            }
            ExprKind::Let(var, value, body) => {
                let value = self.expr(value)?;
                if value.dtype().lanes == 1 {
                    return Some(Expr::let_in(var.clone(), value, self.expr(body)?));
                }
                let (wide, body) = self.with_vector(var, value.dtype(), |w| w.expr(body));
                Expr::let_in(wide, value, body?)
            }
        })
    }
}

/// The distances of elements that vectors under a mask are loaded from: code generation reads the vectors that they
/// lie in, and shuffles.
const STRIDES: std::ops::RangeInclusive<i64> = 1..=4;

/// Whether machines can leave out lanes of vector statements: stores of neighbours, made of what lies close together
/// and of scalars, of 2, 4 or 8 bytes.
fn is_masked(s: &Stmt) -> bool {
    match s.kind() {
        StmtKind::Store { buffer, indices, value } => {
            let lanes = value.dtype().lanes;
            lanes > 1 && is_masked_value(value) && is_strided_within(buffer, indices, 1)
        }
        StmtKind::Seq(stmts) => stmts.iter().all(is_masked),
        _ => false,
    }
}

/// Whether machines can leave out lanes of a value: it is made of what lies close together, and of scalars.
fn is_masked_value(value: &Expr) -> bool {
    let mut loads = true;
    value.for_each_load(|b, at| loads &= is_strided_within(b, at, *STRIDES.end()));
    let calls = value.any(|e| {
        matches!(e.kind(), ExprKind::Call(target, _)
        if !matches!(target, CallTarget::Intrin(_) | CallTarget::Reinterpret(_)))
    });
    loads && !calls
}

fn is_strided_within(buffer: &Buffer, indices: &[Expr], most: i64) -> bool {
    let bytes = buffer.dtype().bytes();
    indices.last().is_some_and(|i| match stride(i) {
        Some(0) => i.dtype().lanes == 1,
        // Machines that leave out no lanes of halves take these alone apart, and compute with vectors.
        Some(n) => STRIDES.contains(&n) && n <= most && [2, 4, 8].contains(&bytes),
        None => false,
    })
}

/// By how much an index moves from lane to lane.
fn stride(index: &Expr) -> Option<i64> {
    match index.kind() {
        _ if index.dtype().lanes == 1 => Some(0),
        ExprKind::Broadcast(_) => Some(0),
        ExprKind::Ramp(_, step) => step.as_int(),
        ExprKind::Cast(a) if index.dtype().bits >= a.dtype().bits => stride(a),
        ExprKind::Binary(BinOp::Add, a, b) => stride(a)?.checked_add(stride(b)?),
        ExprKind::Binary(BinOp::Sub, a, b) => stride(a)?.checked_sub(stride(b)?),
        _ => None,
    }
}

/// Whether an index certainly differs from lane to lane.
fn moves(index: &Expr) -> bool {
    stride(index).is_some_and(|step| step != 0)
}

/// Whether a value reads the memory of a buffer.
fn reads(value: &Expr, buffer: &Buffer) -> bool {
    value.loads_from(|b| b.data == buffer.data)
}

/// Whether a statement is a binding whose body is the rest of its sequence.
fn binds(s: &Stmt) -> bool {
    matches!(
        s.kind(),
        StmtKind::Allocate { .. } | StmtKind::Constant { .. } | StmtKind::Declare { .. }
    )
}

/// Arithmetic of ramps and broadcast scalars stays a ramp, so that code generation sees the
/// stride: `x + ramp(b, s)` is `ramp(x + b, s)`, `x * ramp(b, s)` is `ramp(x * b, x * s)`.
fn ramp_arithmetic(op: BinOp, a: &Expr, b: &Expr) -> Option<Expr> {
    let lanes = a.dtype().lanes;
    if !a.dtype().is_int() {
        return None;
    }
    match (op, a.kind(), b.kind()) {
        (BinOp::Add, ExprKind::Ramp(x, s), ExprKind::Broadcast(y)) => {
            ramp_of(x + y, s.clone(), lanes)
        }
        (BinOp::Add, ExprKind::Broadcast(y), ExprKind::Ramp(x, s)) => {
            ramp_of(y + x, s.clone(), lanes)
        }
        (BinOp::Add, ExprKind::Ramp(x, s), ExprKind::Ramp(y, t)) => ramp_of(x + y, s + t, lanes),
        (BinOp::Sub, ExprKind::Ramp(x, s), ExprKind::Broadcast(y)) => {
            ramp_of(x - y, s.clone(), lanes)
        }
        (BinOp::Mul, ExprKind::Ramp(x, s), ExprKind::Broadcast(y)) => ramp_of(x * y, s * y, lanes),
        (BinOp::Mul, ExprKind::Broadcast(y), ExprKind::Ramp(x, s)) => ramp_of(y * x, y * s, lanes),
        _ => None,
    }
}

/// A ramp of constants, and a broadcast scalar, in a wider type of integers.
fn wider_ramp(x: &Expr, to: DType) -> Option<Expr> {
    let from = x.dtype();
    if !(from.is_int() && to.is_int() && to.bits > from.bits && to.kind == from.kind) {
        return None;
    }
    match x.kind() {
        ExprKind::Broadcast(y) => Some(Expr::broadcast(y.clone().cast(to.scalar()), to.lanes)),
        ExprKind::Ramp(base, stride) => {
            let (base, stride) = (base.as_int()?, stride.as_int()?);
            let last = stride.checked_mul(i64::from(to.lanes) - 1)?.checked_add(base)?;
            if !extent::holds(from.scalar(), last.into()) {
                return None;
            }
            let [base, stride] = [base, stride].map(|n| Expr::int(n, to.scalar()));
            Some(Expr::ramp(base, stride, to.lanes))
        }
        _ => None,
    }
}

fn ramp_of(base: Expr, stride: Expr, lanes: u16) -> Option<Expr> {
    Some(Expr::ramp(base, stride, lanes))
}
