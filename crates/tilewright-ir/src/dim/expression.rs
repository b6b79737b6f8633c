//! Sizes as expressions of integers, and expressions read back as sizes.
//!
//! Parts of expressions are shared, and asked for again at each level of what they are in: what a part is, is
//! remembered by its node.

use crate::hash::HashMap;
use std::cell::RefCell;
use std::ops::{Add, Mul};

use super::form::{Atom, Form};
use super::{Dim, Repr, narrow};
use crate::dtype::DType;
use crate::expr::{BinOp, Expr, ExprKind, Var};

/// What a ceiling is computed in: expressions of sizes, or numbers.
trait Ceiling: Add<Output = Self> + Mul<Output = Self> + Sized {
    fn number(n: f64) -> Self;
    fn larger(self, other: Self) -> Self;
}

impl Ceiling for Expr {
    fn number(n: f64) -> Self {
        Expr::float(n, DType::F64)
    }

    fn larger(self, other: Self) -> Self {
        self.max(other)
    }
}

impl Ceiling for f64 {
    fn number(n: f64) -> Self {
        n
    }

    fn larger(self, other: Self) -> Self {
        self.max(other)
    }
}

impl Dim {
    /// The size as an `int32` expression, for use inside of a tensor function. Open sizes are
    /// variables, the same ones in every function ([`narrow`]).
    pub fn expr(self) -> Expr {
        if self.subtracts_products() {
            return self.long().cast(DType::I32);
        }
        self.build(&|v| narrow(v).expr(), DType::I32)
    }

    /// The size as an `int64` expression of the variables of [`Dim::expr`], for use inside of a
    /// tensor function where the size is data.
    pub fn long(self) -> Expr {
        self.build(&|v| narrow(v).expr().cast(DType::I64), DType::I64)
    }

    /// The size as an `int64` expression of its own variables, for use in a graph.
    pub fn wide(self) -> Expr {
        self.typed(DType::I64)
    }

    /// The size as the number that a call passes for an `int32` parameter.
    pub fn argument(self) -> Expr {
        self.wide().cast(DType::I32)
    }

    /// The size as an expression of a type of integers, of its own variables. Where it is a difference of
    /// products, these may be far larger than the size: an `int32` one is then computed in 64 bits, whose
    /// [`ceiling`](Dim::ceiling) is checked when the sizes are known.
    pub fn typed(self, dtype: DType) -> Expr {
        if dtype == DType::I32 && self.subtracts_products() {
            return self.wide().cast(dtype);
        }
        self.build(&|v| v.expr().cast(dtype), dtype)
    }

    /// Whether products of sizes are subtracted anywhere on the way to the size.
    fn subtracts_products(self) -> bool {
        if self.known().is_some() {
            return false;
        }
        self.form().0.iter().any(|(atoms, c)| {
            *c < 0 && atoms.len() > 1
                || atoms.iter().any(|atom| match atom {
                    Atom::Var(_) => false,
                    Atom::Div(a, b) | Atom::Max(a, b) | Atom::Min(a, b) => {
                        a.subtracts_products() || b.subtracts_products()
                    }
                })
        })
    }

    /// A `float64` expression of the open sizes that is at least as large as every sum on the way
    /// to the size, where its [`demands`](Dim::demands) have such bounds too: below 2^62, 64 bits
    /// hold them all.
    pub fn ceiling(self) -> Expr {
        self.ceiling_of(&|v| v.expr().cast(DType::F64))
    }

    /// Its [`ceiling`](Dim::ceiling) where all open sizes are as large as their ranges allow: no sum on the way to the
    /// size is larger.
    pub fn most(self) -> f64 {
        self.ceiling_of(&|v| v.range().most() as f64)
    }

    fn ceiling_of<T: Ceiling>(self, var: &dyn Fn(&Var) -> T) -> T {
        let form = self.form();
        let terms = form.0.iter().map(|(atoms, c)| {
            atoms.iter().fold(T::number(c.unsigned_abs() as f64), |product, atom| {
                product
                    * match atom {
                        Atom::Var(v) => var(v),
                        Atom::Div(a, _) => a.ceiling_of(var),
                        Atom::Max(a, b) | Atom::Min(a, b) => {
                            a.ceiling_of(var).larger(b.ceiling_of(var))
                        }
                    }
            })
        });
        terms.reduce(|sum, term| sum + term).unwrap_or_else(|| T::number(0.0))
    }

    fn build(self, var: &dyn Fn(&Var) -> Expr, dtype: DType) -> Expr {
        match self.0 {
            Repr::Known(n) => Expr::int(n as i64, dtype),
            Repr::Open(_) => self.form().build(var, dtype),
        }
    }

    /// The size that an expression of integers stands for; `None` where it is none: negative
    /// numbers, loads, and what is no arithmetic.
    pub fn from_expr(e: &Expr) -> Option<Dim> {
        let form = form_of(e)?;
        Some(match form.as_number() {
            Some(n) => Dim::from(usize::try_from(n).ok()?),
            None => form.dim(),
        })
    }
}

impl Form {
    fn build(&self, var: &dyn Fn(&Var) -> Expr, dtype: DType) -> Expr {
        let number = |n: i128| Expr::int(n as i64, dtype);
        if let Some((times, a, b, rest)) = self.remainder() {
            let of = a.build(var, dtype).floormod(b.build(var, dtype));
            let of = if times == 1 { of } else { of * number(times) };
            return match rest.as_number() {
                Some(0) => of,
                _ => rest.build(var, dtype) + of,
            };
        }
        let (mut sum, mut constant): (Option<Expr>, i128) = (None, 0);
        for (atoms, c) in &self.0 {
            let Some((first, rest)) = atoms.split_first() else {
                constant = *c;
                continue;
            };
            let product =
                rest.iter().fold(first.build(var, dtype), |p, atom| p * atom.build(var, dtype));
            sum = Some(match (sum, *c) {
                (None, 1) => product,
                (None, c) => product * number(c),
                (Some(sum), 1) => sum + product,
                (Some(sum), -1) => sum - product,
                (Some(sum), c) if c < 0 => sum - product * number(-c),
                (Some(sum), c) => sum + product * number(c),
            });
        }
        match sum {
            None => number(constant),
            Some(sum) if constant > 0 => sum + number(constant),
            Some(sum) if constant < 0 => sum - number(-constant),
            Some(sum) => sum,
        }
    }

    /// A remainder in it: how often, of which division, and the other terms.
    fn remainder(&self) -> Option<(i128, Dim, Dim, Form)> {
        self.0.iter().find_map(|(atoms, c)| {
            let [Atom::Div(a, b)] = atoms.as_slice() else { return None };
            let by =
                b.known().and_then(|b| i128::try_from(b).ok()).filter(|b| *c < 0 && c % b == 0)?;
            let (times, of) = (-c / by, a.form());
            let all = of.0.iter().all(|(t, k)| t.is_empty() || self.coefficient(t) >= times * *k);
            all.then(|| {
                (
                    times,
                    *a,
                    *b,
                    self.plus(&of, -times).plus(&Form::atom(Atom::Div(*a, *b)), times * by),
                )
            })
        })
    }
}

impl Atom {
    fn build(&self, var: &dyn Fn(&Var) -> Expr, dtype: DType) -> Expr {
        let e = |d: &Dim| d.build(var, dtype);
        match self {
            Atom::Var(v) => var(v),
            Atom::Div(a, b) => e(a).floordiv(e(b)),
            Atom::Max(a, b) => e(a).max(e(b)),
            Atom::Min(a, b) => e(a).min(e(b)),
        }
    }
}

/// Nodes of an expression from which on its form is remembered.
const LARGE: u32 = 4;

/// Most forms that are remembered; then all are forgotten.
const MOST: usize = 1 << 14;

/// Forms by the address of the node, which is kept alive for as long.
type Remembered = HashMap<usize, (Expr, Option<Form>)>;

thread_local! {
    static REMEMBERED: RefCell<Remembered> = RefCell::default();
}

/// The form of an expression of integers; `None` for loads and what is no arithmetic.
pub(super) fn form_of(e: &Expr) -> Option<Form> {
    if e.size() < LARGE {
        return computed(e);
    }
    let known = REMEMBERED.with_borrow(|all| all.get(&e.address()).map(|(_, form)| form.clone()));
    known.unwrap_or_else(|| {
        let form = computed(e);
        REMEMBERED.with_borrow_mut(|all| {
            if all.len() >= MOST {
                all.clear();
            }
            all.insert(e.address(), (e.clone(), form.clone()));
        });
        form
    })
}

fn computed(e: &Expr) -> Option<Form> {
    Some(match e.kind() {
        ExprKind::Int(v) => Form::number(i128::from(*v)),
        ExprKind::Var(v) if v.dtype().is_int() => Form::atom(Atom::Var(v.clone())),
        ExprKind::Cast(a) if e.dtype().is_int() && a.dtype().is_int() => form_of(a)?,
        ExprKind::Binary(op, a, b) => match op {
            BinOp::Add => form_of(a)?.plus(&form_of(b)?, 1),
            BinOp::Sub => form_of(a)?.plus(&form_of(b)?, -1),
            BinOp::Mul => form_of(a)?.times(&form_of(b)?),
            BinOp::FloorDiv | BinOp::TruncDiv => {
                Dim::from_expr(a)?.floordiv(Dim::from_expr(b)?).form().as_ref().clone()
            }
            BinOp::FloorMod | BinOp::TruncMod => {
                Dim::from_expr(a)?.modulo(Dim::from_expr(b)?).form().as_ref().clone()
            }
            BinOp::Max => form_of(a)?.choice(&form_of(b)?, true),
            BinOp::Min => form_of(a)?.choice(&form_of(b)?, false),
            _ => return None,
        },
        _ => return None,
    })
}
