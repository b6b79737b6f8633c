//! A small interval analysis of integer expressions.
//!
//! It knows what values variables can have (loop variables between their bounds, sizes not
//! negative) and answers with an interval that holds all values of an expression: never too small,
//! often too large. Arithmetic that may leave its type gives the whole type.
//!
//! [`Ranges::exact`] answers only where every variable below has known values and no operation
//! below leaves its type; so [`Ranges::leaves`] can say that an operation is one that wraps.
//!
//! Code generation asks which divisions are plain unsigned ones and which loads may be done early,
//! schedules ask which index arithmetic needs 64 bits.

use std::cell::{Ref, RefCell};

use crate::hash::HashMap;

use crate::dim::SizeRange;
use crate::dtype::{DType, TypeKind};
use crate::equal::same_expr;
use crate::expr::{BinOp, CallTarget, Expr, ExprKind, Intrin, Var};
use crate::index::Linear;
use crate::stmt::Range;

/// `lo..=hi`; empty where `lo > hi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The smallest value.
    pub lo: i128,
    /// The largest value.
    pub hi: i128,
}

impl Interval {
    /// The interval between two values, both of them in it.
    pub fn new(lo: i128, hi: i128) -> Interval {
        Interval { lo, hi }
    }

    /// One value.
    pub fn point(value: i128) -> Interval {
        Interval { lo: value, hi: value }
    }

    /// All values of a type of integers or of `bool`; `None` for other types.
    pub fn of_type(dtype: DType) -> Option<Interval> {
        Some(Interval { lo: dtype.min_int()?, hi: dtype.max_int()? })
    }

    /// All values of a type; everything for types without integers.
    pub fn all(dtype: DType) -> Interval {
        let everything = Interval { lo: i64::MIN.into(), hi: u64::MAX.into() };
        Interval::of_type(dtype).unwrap_or(everything)
    }

    /// The smallest interval that holds both.
    pub fn union(self, other: Interval) -> Interval {
        Interval { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// What is in both.
    pub fn meet(self, other: Interval) -> Interval {
        Interval { lo: self.lo.max(other.lo), hi: self.hi.min(other.hi) }
    }

    /// The value, where there is one only.
    pub fn as_point(self) -> Option<i128> {
        (self.lo == self.hi).then_some(self.lo)
    }

    /// Whether nothing is in it.
    pub fn is_empty(self) -> bool {
        self.lo > self.hi
    }

    /// Whether a value is in it.
    pub fn contains(self, value: i128) -> bool {
        (self.lo..=self.hi).contains(&value)
    }

    /// Whether all of it is in another one.
    pub fn within(self, other: Interval) -> bool {
        self.lo >= other.lo && self.hi <= other.hi
    }

    /// The values of `self + other`; `None` beyond `i128`.
    pub fn plus(self, other: Interval) -> Option<Interval> {
        let (lo, hi) = (self.lo.checked_add(other.lo)?, self.hi.checked_add(other.hi)?);
        Some(Interval { lo, hi })
    }

    /// The values of `self * by`; `None` beyond `i128`.
    pub fn times(self, by: i128) -> Option<Interval> {
        Interval::binary(BinOp::Mul, self, Interval::point(by))
    }

    /// The values of `a op b` in arithmetic that does not wrap; `None` where nothing is known.
    pub fn binary(op: BinOp, a: Interval, b: Interval) -> Option<Interval> {
        Some(match op {
            BinOp::Add => a.plus(b)?,
            BinOp::Sub => Interval { lo: a.lo.checked_sub(b.hi)?, hi: a.hi.checked_sub(b.lo)? },
            BinOp::Mul => {
                let ends = [(a.lo, b.lo), (a.lo, b.hi), (a.hi, b.lo), (a.hi, b.hi)];
                let mut ends = ends.into_iter().map(|(x, y)| x.checked_mul(y).map(Interval::point));
                let first = ends.next()??;
                ends.try_fold(first, |all, end| Some(all.union(end?)))?
            }
            BinOp::Min => Interval { lo: a.lo.min(b.lo), hi: a.hi.min(b.hi) },
            BinOp::Max => Interval { lo: a.lo.max(b.lo), hi: a.hi.max(b.hi) },
            _ if b.lo <= 0 => return None,
            BinOp::FloorDiv => Interval {
                lo: a.lo.div_euclid(if a.lo >= 0 { b.hi } else { b.lo }),
                hi: a.hi.div_euclid(if a.hi >= 0 { b.lo } else { b.hi }),
            },
            BinOp::TruncDiv => Interval {
                lo: a.lo / if a.lo >= 0 { b.hi } else { b.lo },
                hi: a.hi / if a.hi >= 0 { b.lo } else { b.hi },
            },
            BinOp::FloorMod => match b.as_point() {
                Some(k) if a.lo.div_euclid(k) == a.hi.div_euclid(k) => {
                    Interval { lo: a.lo.rem_euclid(k), hi: a.hi.rem_euclid(k) }
                }
                _ if a.lo < 0 => Interval { lo: 0, hi: b.hi - 1 },
                _ if a.hi < b.lo => a,
                _ => Interval { lo: 0, hi: a.hi.min(b.hi - 1) },
            },
            BinOp::TruncMod if -b.lo < a.lo && a.hi < b.lo => a,
            BinOp::TruncMod => {
                Interval { lo: a.lo.max(1 - b.hi).min(0), hi: a.hi.min(b.hi - 1).max(0) }
            }
            _ => return None,
        })
    }
}

/// What is known about variables.
#[derive(Clone, Debug, Default)]
pub struct Ranges(RefCell<VarRanges>);

#[derive(Clone, Debug, Default)]
struct VarRanges {
    /// The values of variables, and whether their bounds are known as they are, not only by a type.
    vars: HashMap<Var, (Interval, bool)>,
    /// Extents of buffers, with their values.
    extents: Vec<(Expr, Interval)>,
    /// The ranges of loops whose ends depend on sizes.
    loops: HashMap<Var, Range>,
    /// What is not negative by the conditions around ([`Ranges::under`]).
    guards: Vec<Linear>,
    /// By the address of the node, which the node beside it keeps alive, and whether the values are
    /// those of [`Ranges::exact`].
    memo: HashMap<(usize, bool), (Expr, Option<Interval>)>,
}

impl Ranges {
    /// Says what values a variable has. An empty interval is taken as unknown.
    pub fn bind(&mut self, var: &Var, values: Interval) {
        self.bind_as(var, values, false);
    }

    /// Says that the values of a variable are those of an interval that is [`Ranges::exact`].
    pub fn bind_exact(&mut self, var: &Var, values: Interval) {
        self.bind_as(var, values, true);
    }

    fn bind_as(&self, var: &Var, values: Interval, tight: bool) {
        let known = &mut *self.0.borrow_mut();
        let before = if values.is_empty() {
            known.vars.remove(var)
        } else {
            known.vars.insert(var.clone(), (values, tight))
        };
        if before.is_some_and(|b| b != (values, tight)) {
            known.memo.clear();
        }
    }

    /// Says through which range a loop with open ends runs, or that its ends are numbers.
    pub(super) fn bind_ends(&mut self, var: &Var, range: Option<Range>) {
        let known = self.0.get_mut();
        match range {
            Some(range) => drop(known.loops.insert(var.clone(), range)),
            None => drop(known.loops.remove(var)),
        }
    }

    /// The range of a loop with open ends.
    pub(super) fn ends(&self, var: &Var) -> Option<Range> {
        let known = self.0.borrow();
        known.loops.get(var).cloned()
    }

    /// What is not negative by the conditions around.
    pub(super) fn guards(&self) -> Ref<'_, Vec<Linear>> {
        Ref::map(self.0.borrow(), |known| &known.guards)
    }

    pub(super) fn push_guard(&self, form: Linear) {
        self.0.borrow_mut().guards.push(form);
    }

    pub(super) fn truncate_guards(&self, count: usize) {
        self.0.borrow_mut().guards.truncate(count);
    }

    /// Says what values an extent has that is no variable, wherever it is computed.
    pub(super) fn bind_extent(&mut self, extent: &Expr, values: Interval) {
        let known = self.0.get_mut();
        known.extents.push((extent.clone(), values));
        known.memo.clear();
    }

    /// The values of an extent.
    fn extent(&self, e: &Expr) -> Option<Interval> {
        let ExprKind::Binary(..) = e.kind() else { return None };
        let known = self.0.borrow();
        let same = known.extents.iter().filter(|(extent, _)| same_expr(extent, e));
        same.map(|(_, values)| *values).reduce(Interval::meet)
    }

    /// Says that a variable is a size: not negative, and where its range says more, in that.
    pub fn bind_size(&mut self, var: &Var) {
        let all = Interval::all(var.dtype());
        let known = match var.range() {
            SizeRange::ALL => Interval { lo: 0, hi: all.hi },
            range => Interval { lo: range.least() as i128, hi: range.most() as i128 },
        };
        self.bind(var, known);
    }

    /// The values that an expression can have, in any of its lanes.
    pub fn interval(&self, e: &Expr) -> Interval {
        self.known(e, false).unwrap_or_else(|| Interval::all(e.dtype()))
    }

    /// The values of an expression in which every variable has known bounds and no operation may
    /// leave its type; `None` for any other.
    pub fn exact(&self, e: &Expr) -> Option<Interval> {
        self.known(e, true)
    }

    fn known(&self, e: &Expr, exact: bool) -> Option<Interval> {
        let key = (e.address(), exact);
        if let Some((_, known)) = self.0.borrow().memo.get(&key) {
            return *known;
        }
        let all = Interval::all(e.dtype());
        let mut found = self.node(e, exact).filter(|i| i.within(all));
        if !exact && let Some(values) = self.extent(e) {
            found = Some(found.map_or(values, |i| i.meet(values)));
        }
        self.0.borrow_mut().memo.insert(key, (e.clone(), found));
        found
    }

    /// The values that a sum, difference or product of signed integers would have if its type held
    /// them, where the operands are [`Ranges::exact`] and the type does not.
    pub fn leaves(&self, e: &Expr) -> Option<Interval> {
        let grows = matches!(e.kind(), ExprKind::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul, ..));
        if !grows || e.dtype().kind != TypeKind::Int {
            return None;
        }
        let all = Interval::all(e.dtype());
        self.node(e, true).filter(|i| !i.within(all))
    }

    /// Whether the machine's value of an expression is that of exact arithmetic on its operands.
    pub fn stays(&self, e: &Expr) -> bool {
        let all = Interval::all(e.dtype());
        self.node(e, false).is_some_and(|i| i.within(all))
    }

    fn child(&self, e: &Expr, exact: bool) -> Option<Interval> {
        if exact { self.exact(e) } else { Some(self.interval(e)) }
    }

    fn node(&self, e: &Expr, exact: bool) -> Option<Interval> {
        Some(match e.kind() {
            ExprKind::Int(v) => {
                let unsigned = e.dtype().min_int() == Some(0);
                Interval::point(if unsigned { (*v as u64).into() } else { (*v).into() })
            }
            ExprKind::Var(v) => {
                let (values, tight) = *self.0.borrow().vars.get(v)?;
                return (tight || !exact).then_some(values);
            }
            ExprKind::Cast(a) if a.dtype().is_int() || a.dtype().is_bool() => {
                self.child(a, exact)?
            }
            ExprKind::Broadcast(a) => self.child(a, exact)?,
            ExprKind::Select(_, t, f) | ExprKind::IfThenElse(_, t, f) => {
                self.child(t, exact)?.union(self.child(f, exact)?)
            }
            ExprKind::Let(var, value, body) => {
                let value = self.child(value, exact)?;
                self.bind_as(var, value, exact);
                self.child(body, exact)?
            }
            ExprKind::Ramp(base, stride) => {
                let (base, stride) = (self.child(base, exact)?, self.child(stride, exact)?);
                let last = i128::from(e.dtype().lanes) - 1;
                base.plus(stride.times(last)?.union(Interval::point(0)))?
            }
            ExprKind::Call(CallTarget::Intrin(op), args) => match (op, args.as_slice()) {
                (op, [a]) if op.is_hint() || *op == Intrin::FirstOfTask => self.child(a, exact)?,
                (Intrin::BitAnd, [a, b]) => {
                    let (a, b) = (self.child(a, exact)?, self.child(b, exact)?);
                    let bounds = [a, b].into_iter().filter(|i| i.lo >= 0);
                    Interval { lo: 0, hi: bounds.map(|i| i.hi).min()? }
                }
                (Intrin::BitOr | Intrin::BitXor, [a, b]) => {
                    let (a, b) = (self.child(a, exact)?, self.child(b, exact)?);
                    if a.lo < 0 || b.lo < 0 {
                        return None;
                    }
                    let digits = 128 - a.hi.max(b.hi).leading_zeros();
                    Interval { lo: 0, hi: 1i128.checked_shl(digits)? - 1 }
                }
                (Intrin::Shr, [a, b]) => {
                    let (a, b) = (self.child(a, exact)?, self.child(b, exact)?);
                    if a.lo < 0 {
                        return None;
                    }
                    let in_width = b.lo >= 0 && b.hi < i128::from(e.dtype().bits);
                    Interval { lo: 0, hi: if in_width { a.hi >> b.lo } else { a.hi } }
                }
                _ => return None,
            },
            ExprKind::Binary(op, a, b) if a.dtype().is_int() => {
                // A remainder has bounds of its own; a variable is what it is, whatever that may be.
                let is_bounded = matches!(op, BinOp::FloorMod) && a.as_var().is_some();
                let values = self.child(a, exact && !is_bounded)?;
                return Interval::binary(*op, values, self.child(b, exact)?);
            }
            _ => return None,
        })
    }
}
