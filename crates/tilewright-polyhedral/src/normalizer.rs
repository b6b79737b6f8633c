//! Expressions into normal form.
//!
//! [`Normalizer`] walks an expression once, with a memo for shared nodes, and gives its
//! [`Sum`] or [`Pred`]. Lets are looked through, vectors are read lane by lane, and what integer
//! sets do not know becomes an atom.
//!
//! Forms are trees without sharing: an expression is measured as the text that it stands for
//! ([`Expr::size`], with the values of lets in place), and a form by its nodes ([`MAX_NODES`]).
//!
//! **Wrapping.** Machine integers wrap, and forms are of integers. This is the one place that knows
//! both: where the arithmetic of a node may leave its type, its form is a remainder.
//!
//! * Narrow and unsigned arithmetic may leave it.
//! * So may that on *data*: elements of buffers, results of calls, and the variables that the engine
//!   was told of ([`Engine::with_data`](crate::Engine::with_data)).
//! * Arithmetic of 32 and 64 bits on loops and sizes stays in its type (`docs/semantics.md`,
//!   *Values*).
//!
//! Ranges of types decide at once that nothing wraps (the sum of two elements of `int8` in `int32`);
//! where that takes a guard, the engine reduces the remainder under it.
//!
//! **Bits.** Operations on bits by constants, and of two numbers of which one has few digits, are sums of
//! digits ([`crate::bitwise`]). How many digits a variable has the domain says, where there is one.
//!
//! **Limits.** Coefficients are kept in 128 bits; what does not fit, and expressions of more than [`MAX_NODES`] nodes or
//! deeper than [`MAX_DEPTH`], are [`Reason::TooLarge`]. Divisions of vectors by vectors that are
//! not constant are opaque.

use std::collections::BTreeSet;
use std::rc::Rc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::extent::holds;
use tilewright_ir::visit::{Fold, Subst};
use tilewright_ir::{BinOp, CallTarget, DType, Expr, ExprKind, Intrin, TypeKind, Var};

use crate::answer::{Known, Reason};
use crate::bitwise::{Bitwise, bitwise, digits};
use crate::form::{Atom, Nature, Pred, Sum, Term, too_large};
use crate::product::{common_factor, monomial, without_remainders};
use crate::quick::ends;
use crate::render;

/// Most nodes of an expression, and of its form, as text: shared ones count each time.
pub(crate) const MAX_NODES: usize = 20_000;
/// Deepest nesting of an expression.
pub(crate) const MAX_DEPTH: usize = 400;
/// Operations on bits, and sums of them, inside one another of which it is asked what they are at most.
const MAX_BITS_DEPTH: usize = 8;
/// Most terms that multiplying out may give.
const MAX_PRODUCT_TERMS: usize = 64;

/// Brings expressions into normal form.
#[derive(Default)]
pub(crate) struct Normalizer {
    /// Variables that hold data.
    data: Rc<BTreeSet<Var>>,
    depth: usize,
    /// Forms by the address of the node; `kept` keeps the nodes alive.
    sums: HashMap<usize, Sum>,
    preds: HashMap<usize, Pred>,
    kept: Vec<Expr>,
    /// The lane of vector values, and how many there are.
    pub lane: Option<(Var, u16)>,
    /// What holds wherever the expressions are used; it bounds operands of bit operations.
    guards: Rc<Vec<Pred>>,
}

impl Normalizer {
    /// With the variables that hold data.
    pub fn new(data: &Rc<BTreeSet<Var>>) -> Normalizer {
        Normalizer { data: data.clone(), ..Normalizer::default() }
    }

    /// For expressions that are used only where these conditions hold.
    pub fn under(self, guards: &Rc<Vec<Pred>>) -> Normalizer {
        Normalizer { guards: guards.clone(), ..self }
    }

    /// A variable.
    fn var(&self, v: &Var) -> Atom {
        Atom::of_var(v, self.data.contains(v))
    }

    /// What a type makes of the result of arithmetic.
    fn in_type(&self, value: Sum, t: DType) -> Known<Sum> {
        let narrow = t.kind == TypeKind::UInt || t.bits < 32;
        if narrow || !value.stays_in(t) { value.wrapped(t) } else { Ok(value) }
    }

    fn enter(&mut self, e: &Expr) -> Known<()> {
        self.depth += 1;
        if e.size() as usize > MAX_NODES || self.depth > MAX_DEPTH {
            Err(Reason::TooLarge.into())
        } else {
            Ok(())
        }
    }

    /// The form of an integer expression; that of a `bool` is 0 or 1.
    pub fn sum(&mut self, e: &Expr) -> Known<Sum> {
        match e.kind() {
            ExprKind::Int(_) => return self.sum_node(e),
            ExprKind::Var(v) if v.dtype().is_int() => return Ok(Sum::atom(self.var(v))),
            _ => {}
        }
        if let Some(known) = self.sums.get(&e.address()) {
            return Ok(known.clone());
        }
        self.enter(e)?;
        let sum = self.sum_node(e)?;
        self.depth -= 1;
        self.sums.insert(e.address(), sum.clone());
        self.kept.push(e.clone());
        Ok(sum)
    }

    fn sum_node(&mut self, e: &Expr) -> Known<Sum> {
        let t = e.dtype();
        if t.is_bool() {
            let p = self.pred(e)?;
            return Ok(Sum::select(p, Sum::constant(1), Sum::constant(0)));
        }
        if !t.is_int() {
            return Err(Reason::Mismatch(format!("`{e}` is not an integer")).into());
        }
        let lane_type = t.scalar();
        Ok(match e.kind() {
            ExprKind::Int(v) => Sum::constant(match t.kind {
                TypeKind::UInt => i128::from(*v as u64),
                _ => i128::from(*v),
            }),
            ExprKind::Var(v) if t.lanes == 1 => Sum::atom(self.var(v)),
            ExprKind::Cast(a) if a.dtype().is_int() || a.dtype().is_bool() => {
                let sum = self.sum(a)?;
                let from = a.dtype().scalar();
                let holds =
                    lane_type.min_int() <= from.min_int() && from.max_int() <= lane_type.max_int();
                if holds { sum } else { sum.wrapped(lane_type)? }
            }
            ExprKind::Cast(a) if a.as_float().is_some() => {
                let whole = a.as_float().filter(|v| v.is_finite()).map(|v| v.trunc() as i128);
                let whole = whole.filter(|v| holds(lane_type, *v));
                whole.map_or_else(|| self.opaque(e), Sum::constant)
            }
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (self.sum(a)?, self.sum(b)?);
                let value = self.binary(*op, a, b, e)?.unwrap_or_else(|| self.opaque(e));
                match op {
                    BinOp::Min | BinOp::Max => value,
                    _ => self.in_type(value, lane_type)?,
                }
            }
            ExprKind::Select(c, yes, no) | ExprKind::IfThenElse(c, yes, no) => {
                let cond = self.pred(c)?;
                Sum::select(cond, self.sum(yes)?, self.sum(no)?)
            }
            ExprKind::Call(CallTarget::Intrin(op), args) => match self.call(*op, args)? {
                Some(value) => self.in_type(value, lane_type)?,
                None => self.opaque(e),
            },
            ExprKind::Let(v, value, body) => self.sum(&substitute(v, value, body))?,
            ExprKind::Broadcast(a) => self.sum(a)?,
            ExprKind::Ramp(base, stride) => {
                let lane = match &self.lane {
                    Some((lane, lanes)) if *lanes == t.lanes => lane.clone(),
                    Some(_) => return Ok(self.opaque(e)),
                    None => {
                        let lane = Var::index("lane");
                        self.lane = Some((lane.clone(), t.lanes));
                        lane
                    }
                };
                let (base, stride) = (self.sum(base)?, self.sum(stride)?);
                match self.product(&stride, &Sum::var(&lane))? {
                    Some(offset) => self.in_type(base.plus(&offset, 1)?, lane_type)?,
                    None => self.opaque(e),
                }
            }
            _ => self.opaque(e),
        })
    }

    fn binary(&mut self, op: BinOp, a: Sum, b: Sum, e: &Expr) -> Known<Option<Sum>> {
        Ok(Some(match op {
            BinOp::Add => a.plus(&b, 1)?,
            BinOp::Sub => a.plus(&b, -1)?,
            // Factors that wrapped differ by multiples of a number by which the product wraps, too.
            BinOp::Mul => return self.product(&a.unwrapped(e.dtype())?, &b.unwrapped(e.dtype())?),
            BinOp::Min => a.min(b)?,
            BinOp::Max => a.max(b)?,
            BinOp::FloorDiv | BinOp::FloorMod | BinOp::TruncDiv | BinOp::TruncMod => {
                let floor = matches!(op, BinOp::FloorDiv | BinOp::FloorMod);
                let modulo = matches!(op, BinOp::FloorMod | BinOp::TruncMod);
                match b.as_constant() {
                    Some(0) => return Ok(None),
                    Some(k) => {
                        let abs = too_large(k.checked_abs())?;
                        let negated = k < 0;
                        match (floor, modulo) {
                            // x // -k = -x // k,  x % -k = -(-x % k)
                            (true, false) if negated => a.scaled(-1)?.div(abs)?,
                            (true, true) if negated => a.scaled(-1)?.modulo(abs)?.scaled(-1)?,
                            (true, false) => a.div(k)?,
                            (true, true) => a.modulo(k)?,
                            // truncdiv(x, -k) = -truncdiv(x, k),  truncmod(x, -k) = truncmod(x, k)
                            (false, false) if negated => a.trunc(abs, false)?.scaled(-1)?,
                            (false, _) => a.trunc(abs, modulo)?,
                        }
                    }
                    None if floor && a == b => Sum::constant(i128::from(!modulo)),
                    None => {
                        let t = e.dtype().scalar();
                        // (u + c * (s % b)) % b = (u + c*s) % b
                        if let Some(a) =
                            if floor && modulo { without_remainders(&a, &b)? } else { None }
                        {
                            let Some(e) = render_binary(&a, &b, op, t) else { return Ok(None) };
                            return self.binary(op, a, b, &e);
                        }
                        // g*p // (g*q) = p // q,  g*p % (g*q) = g * (p % q): g is not zero here.
                        if let Some((g, p, q)) = common_factor(&a, &b) {
                            let Some(e) = render_binary(&p, &q, op, t) else { return Ok(None) };
                            return match self.binary(op, p, q, &e)? {
                                Some(r) if modulo => self.product(&g, &r),
                                rest => Ok(rest),
                            };
                        }
                        // One name for the lanes of vectors and for scalars.
                        let lane =
                            if e.dtype().lanes == 1 { None } else { render_binary(&a, &b, op, t) };
                        let e = lane.as_ref().unwrap_or(e);
                        if !floor {
                            return Ok(Some(self.opaque(e)));
                        }
                        let expr = e.clone();
                        let nature =
                            if modulo { Nature::Remainder(a, b) } else { Nature::Quotient(a, b) };
                        Sum::atom(Atom::term(expr, nature))
                    }
                }
            }
            _ => return Ok(None),
        }))
    }

    /// The product, multiplied out; `None` if that is too long.
    fn product(&mut self, a: &Sum, b: &Sum) -> Known<Option<Sum>> {
        if let Some(k) = a.as_constant() {
            return b.scaled(k).map(Some);
        }
        if let Some(k) = b.as_constant() {
            return a.scaled(k).map(Some);
        }
        if a.terms.len().saturating_mul(b.terms.len()) > MAX_PRODUCT_TERMS {
            return Ok(None);
        }
        let mut out = Sum::constant(too_large(a.constant.checked_mul(b.constant))?);
        out = out.plus(&Sum { constant: 0, terms: a.terms.clone() }, b.constant)?;
        out = out.plus(&Sum { constant: 0, terms: b.terms.clone() }, a.constant)?;
        for (x, cx) in &a.terms {
            for (y, cy) in &b.terms {
                let Some(term) = monomial(x, y) else { return Ok(None) };
                let k = too_large(cx.checked_mul(*cy))?;
                out = out.plus(&Sum::term(term), k)?;
            }
        }
        Ok(Some(out))
    }

    fn call(&mut self, op: Intrin, args: &[Expr]) -> Known<Option<Sum>> {
        let [first, rest @ ..] = args else { return Ok(None) };
        let x = match op {
            Intrin::Abs | Intrin::Shl | Intrin::Shr | Intrin::BitNot => self.sum(first)?,
            Intrin::BitAnd | Intrin::BitOr | Intrin::BitXor => self.sum(first)?,
            op if op.is_hint() => self.sum(first)?,
            _ => return Ok(None),
        };
        let by_digits = match op {
            Intrin::BitAnd => Some(Bitwise::And),
            Intrin::BitOr => Some(Bitwise::Or),
            Intrin::BitXor => Some(Bitwise::Xor),
            _ => None,
        };
        if let (Some(op), [second]) = (by_digits, rest) {
            let y = self.sum(second)?;
            let most = [args.first().and_then(|e| self.most(e, 0)), self.most(second, 0)];
            let found = bitwise(op, &x, &y, most)?;
            return found.map(within_size).transpose();
        }
        let k = rest.first().and_then(|e| e.as_int());
        Ok(match (op, k) {
            (op, _) if op.is_hint() => Some(x),
            (Intrin::Abs, _) => Some(within_size(x.clone().max(x.scaled(-1)?)?)?),
            (Intrin::Shl, Some(k @ 0..=62)) => Some(x.scaled(1 << k)?),
            (Intrin::Shr, Some(k @ 0..=62)) => Some(x.div(1 << k)?),
            (Intrin::BitNot, None) => Some(x.scaled(-1)?.offset(-1)?),
            _ => None,
        })
    }

    /// The greatest value of an expression that is never negative, where its form or its operations on
    /// bits tell it: those keep to the digits of their operands, which the sums that they are do not
    /// show term by term.
    fn most(&mut self, e: &Expr, depth: usize) -> Option<i128> {
        let sum = self.sum(e).ok()?;
        if let (Some(0..), Some(most)) = ends(&*self.guards, &sum) {
            return Some(most);
        }
        if depth > MAX_BITS_DEPTH {
            return None;
        }
        match e.kind() {
            ExprKind::Binary(BinOp::Add, a, b) => {
                let sum = self.most(a, depth + 1)?.checked_add(self.most(b, depth + 1)?);
                sum.filter(|n| holds(e.dtype(), *n))
            }
            ExprKind::Call(CallTarget::Intrin(op), args) => {
                let [a, b] = args.as_slice() else { return None };
                let (a, b) = (self.most(a, depth + 1), self.most(b, depth + 1));
                match op {
                    Intrin::BitAnd => [a, b].into_iter().flatten().min(),
                    Intrin::BitOr | Intrin::BitXor => {
                        1i128.checked_shl(digits(a?.max(b?))).map(|n| n - 1)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The form of a condition.
    pub fn pred(&mut self, e: &Expr) -> Known<Pred> {
        if let Some(known) = self.preds.get(&e.address()) {
            return Ok(known.clone());
        }
        self.enter(e)?;
        let pred = self.pred_node(e)?;
        self.depth -= 1;
        self.preds.insert(e.address(), pred.clone());
        self.kept.push(e.clone());
        Ok(pred)
    }

    fn pred_node(&mut self, e: &Expr) -> Known<Pred> {
        if e.dtype().is_int() {
            let sum = self.sum(e)?;
            return Pred::eq(sum).negate();
        }
        if !e.dtype().is_bool() {
            return Err(Reason::Mismatch(format!("`{e}` is not a condition")).into());
        }
        Ok(match e.kind() {
            ExprKind::Int(v) => Pred::Bool(*v != 0),
            ExprKind::Var(v) if v.dtype().lanes == 1 => Pred::Flag(self.var(v), true),
            ExprKind::Cast(a) if a.dtype().is_int() || a.dtype().is_bool() => self.pred(a)?,
            ExprKind::Cast(a) if a.as_float().is_some() => Pred::Bool(a.as_float() != Some(0.0)),
            ExprKind::Not(a) => self.pred(a)?.negate()?,
            ExprKind::Binary(BinOp::And, a, b) => Pred::and([self.pred(a)?, self.pred(b)?]),
            ExprKind::Binary(BinOp::Or, a, b) => Pred::or([self.pred(a)?, self.pred(b)?]),
            ExprKind::Binary(op, a, b) if op.is_compare() => {
                let t = a.dtype();
                if t.is_bool() && matches!(op, BinOp::Eq | BinOp::Ne) {
                    let (a, b) = (self.pred(a)?, self.pred(b)?);
                    // They are equal where one differs from the opposite of the other.
                    let b = if *op == BinOp::Eq { b.negate()? } else { b };
                    bounded(Pred::differ(a, b)?)?
                } else if t.is_int() || t.is_bool() {
                    let d = self.sum(a)?.plus(&self.sum(b)?, -1)?;
                    match op {
                        BinOp::Eq => Pred::eq(d),
                        BinOp::Ne => Pred::eq(d).negate()?,
                        BinOp::Ge => Pred::ge(d),
                        BinOp::Gt => Pred::ge(d.offset(-1)?),
                        BinOp::Le => Pred::ge(d.scaled(-1)?),
                        _ => Pred::ge(d.scaled(-1)?.offset(-1)?),
                    }
                } else {
                    self.flag(e)
                }
            }
            ExprKind::Select(c, yes, no) | ExprKind::IfThenElse(c, yes, no) => {
                let c = self.pred(c)?;
                let not = c.negate()?;
                let sides = [Pred::and([c, self.pred(yes)?]), Pred::and([not, self.pred(no)?])];
                bounded(Pred::or(sides))?
            }
            ExprKind::Call(CallTarget::Intrin(op), args) if op.is_hint() && args.len() == 1 => {
                self.pred(&args[0])?
            }
            ExprKind::Let(v, value, body) => self.pred(&substitute(v, value, body))?,
            ExprKind::Broadcast(a) => self.pred(a)?,
            _ => self.flag(e),
        })
    }

    fn opaque(&self, e: &Expr) -> Sum {
        let data = !self.data.is_empty() && e.mentions_any(&*self.data);
        Sum::atom(Atom::opaque(e.clone(), data))
    }

    fn flag(&self, e: &Expr) -> Pred {
        Pred::Flag(Atom::term(e.clone(), Nature::Opaque), true)
    }
}

fn render_binary(p: &Sum, q: &Sum, op: BinOp, t: DType) -> Option<Expr> {
    Some(Expr::binary(op, render::sum(p, t)?, render::sum(q, t)?))
}

/// The body of a let with the value in place; the value is shared where it occurs more than once.
fn substitute(v: &Var, value: &Expr, body: &Expr) -> Expr {
    Subst::vars([(v.clone(), value.clone())]).expr(body)
}

/// A sum in which parts stand twice, unless it has become too large.
pub(crate) fn within_size(s: Sum) -> Known<Sum> {
    if s.has_nodes(MAX_NODES) { Err(Reason::TooLarge.into()) } else { Ok(s) }
}

/// The same for a condition.
fn bounded(p: Pred) -> Known<Pred> {
    if p.has_nodes(MAX_NODES) { Err(Reason::TooLarge.into()) } else { Ok(p) }
}

/// Remainders as differences, and numerators with coefficients in `0..k`, so that what is equal
/// cancels.
pub(crate) fn canonical(s: &Sum) -> Known<Sum> {
    let mut out = Sum::constant(s.constant);
    for (t, c) in &s.terms {
        let part = match t {
            Term::Mod(inner, k) => {
                let inner = canonical(inner)?;
                within_size(inner.clone().plus(&canonical_div(&inner, *k)?, -k)?)?
            }
            Term::Div(inner, k) => canonical_div(&canonical(inner)?, *k)?,
            t => Sum::term(t.clone()),
        };
        out = out.plus(&part, *c)?;
    }
    Ok(out)
}

fn canonical_div(s: &Sum, k: i128) -> Known<Sum> {
    let mut whole = Sum::constant(s.constant.div_euclid(k));
    let mut rest = Sum::constant(s.constant.rem_euclid(k));
    for (t, c) in &s.terms {
        whole = whole.plus(&Sum::term(t.clone()), c.div_euclid(k))?;
        rest = rest.plus(&Sum::term(t.clone()), c.rem_euclid(k))?;
    }
    whole.plus(&rest.div(k)?, 1)
}
