//! Sizes of axes that may be open: a number, or an expression of sizes that are known when the
//! program runs.
//!
//! A [`Dim`] is in normal form: a sum of products, whose factors are open sizes and terms that are
//! not looked into (quotients, remainders, larger and smaller ones). Equal forms are one form, so
//! two sizes that are equal as polynomials compare equal; two that compare different may still be
//! equal for some values. Operators compute the shapes of their results in `Dim`s.
//!
//! **Every open size is at least one**, and in the range of its variable ([`Var::range`]). What runs a
//! program checks that; a quotient may be zero.
//!
//! Forms are kept in one table of the process for as long as it runs, so that a `Dim` is as small as
//! a number and can be copied. A table grows with the number of different sizes of all programs.

mod integer;
mod range;

use std::collections::HashMap;
use std::fmt;
use std::ops::{Add, Mul, Sub};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::{BinOp, Expr, ExprKind, Var};

pub use integer::Integer;
pub use range::{MAX_CELLS, SizeRange};

/// A size: a number, or an expression of open sizes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dim(Repr);

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Repr {
    Known(usize),
    /// The position of its form in the table.
    Open(u32),
}

/// A factor of a product that is no number.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Atom {
    Var(Var),
    /// The quotient of a size by another, rounded down.
    Div(Dim, Dim),
    Mod(Dim, Dim),
    Max(Dim, Dim),
    Min(Dim, Dim),
}

/// Products of atoms, each with a coefficient other than zero, sorted; numbers have no atom.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Form(Vec<(Vec<Atom>, i128)>);

#[derive(Default)]
struct Table {
    forms: Vec<Arc<Form>>,
    places: HashMap<Arc<Form>, u32>,
    /// The `int32` variables that stand for open sizes inside of tensor functions.
    narrow: HashMap<Var, Var>,
    /// The open sizes that these stand for.
    wide: HashMap<Var, Var>,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Form {
    fn number(value: i128) -> Form {
        Form(if value == 0 { Vec::new() } else { vec![(Vec::new(), value)] })
    }

    fn atom(atom: Atom) -> Form {
        Form(vec![(vec![atom], 1)])
    }

    fn as_number(&self) -> Option<i128> {
        match self.0.as_slice() {
            [] => Some(0),
            [(atoms, value)] if atoms.is_empty() => Some(*value),
            _ => None,
        }
    }

    /// `self + other * by`.
    fn plus(&self, other: &Form, by: i128) -> Form {
        let mut terms = self.0.clone();
        for (atoms, c) in &other.0 {
            let c = c.saturating_mul(by);
            match terms.binary_search_by(|t| t.0.cmp(atoms)) {
                Ok(at) => terms[at].1 = terms[at].1.saturating_add(c),
                Err(at) => terms.insert(at, (atoms.clone(), c)),
            }
        }
        terms.retain(|t| t.1 != 0);
        Form(terms)
    }

    fn times(&self, other: &Form) -> Form {
        let mut product = Form::default();
        for (a, x) in &self.0 {
            for (b, y) in &other.0 {
                let mut atoms: Vec<Atom> = a.iter().chain(b).cloned().collect();
                atoms.sort();
                product = product.plus(&Form(vec![(atoms, x.saturating_mul(*y))]), 1);
            }
        }
        product
    }

    /// The terms that a product divides, divided by it, and the others; `None` where the divisor
    /// is a sum.
    fn divided(&self, by: &Form) -> Option<(Form, Form)> {
        let [(divisor, d)] = by.0.as_slice() else { return None };
        let (mut quotient, mut rest) = (Form::default(), Form::default());
        for (atoms, c) in &self.0 {
            let mut left = atoms.clone();
            let all = divisor.iter().all(|atom| {
                let found = left.iter().position(|a| a == atom);
                found.map(|at| left.remove(at)).is_some()
            });
            if all && c % d == 0 {
                quotient = quotient.plus(&Form(vec![(left, c / d)]), 1);
            } else if all && divisor.is_empty() && left.is_empty() {
                // A number: the part that divides, and what is left of it.
                quotient = quotient.plus(&Form::number(c.div_euclid(*d)), 1);
                rest = rest.plus(&Form::number(c.rem_euclid(*d)), 1);
            } else {
                rest = rest.plus(&Form(vec![(atoms.clone(), *c)]), 1);
            }
        }
        Some((quotient, rest))
    }

    fn dim(self) -> Dim {
        if let Some(value) = self.as_number() {
            return Dim(Repr::Known(usize::try_from(value.max(0)).unwrap_or(usize::MAX)));
        }
        let mut table = table();
        if let Some(at) = table.places.get(&self) {
            return Dim(Repr::Open(*at));
        }
        let form = Arc::new(self);
        let at = u32::try_from(table.forms.len()).unwrap_or(u32::MAX);
        table.forms.push(form.clone());
        table.places.insert(form, at);
        Dim(Repr::Open(at))
    }
}

impl Dim {
    /// The open size that a variable stands for.
    pub fn open(var: &Var) -> Dim {
        Form::atom(Atom::Var(var.clone())).dim()
    }

    /// The number, where it is one.
    pub fn known(self) -> Option<usize> {
        match self.0 {
            Repr::Known(n) => Some(n),
            Repr::Open(_) => None,
        }
    }

    /// The number as arithmetic with signs takes it; `None` where it is open, or larger than all of these.
    pub fn number(self) -> Option<i64> {
        self.known().and_then(|n| i64::try_from(n).ok())
    }

    /// Whether `int32` holds it, as far as it is known: open sizes are counted in `int32`.
    pub fn fits_int32(self) -> bool {
        self.known().is_none_or(|n| i32::try_from(n).is_ok())
    }

    /// The number.
    ///
    /// # Errors
    /// `Unsupported` where it is open; `what` needs it.
    pub fn fixed(self, what: &str) -> Result<usize> {
        self.known().ok_or_else(|| {
            let names: Vec<String> =
                self.vars().iter().map(|v| format!("--dim {}=SIZE", v.name())).collect();
            Error::unsupported(format!(
                "{what}: the size `{self}` must be known when the program is compiled"
            ))
            .help(format!("give it: {}", names.join(" ")))
        })
    }

    fn form(self) -> Arc<Form> {
        match self.0 {
            Repr::Known(n) => Arc::new(Form::number(n as i128)),
            Repr::Open(at) => table().forms[at as usize].clone(),
        }
    }

    /// The quotient, rounded down. A divisor of zero counts as one.
    pub fn floordiv(self, by: impl Into<Dim>) -> Dim {
        self.divided(by.into()).0
    }

    /// What is left of a division that rounds down.
    pub fn modulo(self, by: impl Into<Dim>) -> Dim {
        self.divided(by.into()).1
    }

    fn divided(self, by: Dim) -> (Dim, Dim) {
        if by == 0 || by == 1 {
            return (self, Dim::from(0));
        }
        let (form, divisor) = (self.form(), by.form());
        let Some((quotient, rest)) = form.divided(&divisor).filter(|(_, r)| *r != *form) else {
            if form == divisor {
                return (Dim::from(1), Dim::from(0));
            }
            let atom = |make: fn(Dim, Dim) -> Atom| Form::atom(make(self, by)).dim();
            return (atom(Atom::Div), atom(Atom::Mod));
        };
        // Less than the divisor: a number is, if the divisor is one.
        if let Some(n) = rest.as_number()
            && (n == 0 || divisor.as_number().is_some_and(|d| (0..d).contains(&n)))
        {
            return (quotient.dim(), Form::number(n).dim());
        }
        // A rest that may be negative is no size; the terms stay together then.
        if rest.0.iter().any(|t| t.1 < 0) {
            let atom = |make: fn(Dim, Dim) -> Atom| Form::atom(make(self, by)).dim();
            return (atom(Atom::Div), atom(Atom::Mod));
        }
        let more = rest.dim();
        let (q, r) = more.divided(by);
        // The quotient alone may be a negative number.
        (quotient.plus(&q.form(), 1).dim(), r)
    }

    /// The smallest `q` with `q * by >= self`.
    pub fn ceildiv(self, by: impl Into<Dim>) -> Dim {
        let by = by.into();
        (self + by - 1).floordiv(by)
    }

    /// The larger one.
    pub fn max(self, other: impl Into<Dim>) -> Dim {
        self.choice(other.into(), true)
    }

    /// The smaller one.
    pub fn min(self, other: impl Into<Dim>) -> Dim {
        self.choice(other.into(), false)
    }

    fn choice(self, other: Dim, larger: bool) -> Dim {
        let (x, y) = (self.form(), other.form());
        let difference = x.plus(&y, -1);
        if difference.is_never_negative() {
            return if larger { self } else { other };
        }
        if y.plus(&x, -1).is_never_negative() {
            return if larger { other } else { self };
        }
        let (a, b) = if self <= other { (self, other) } else { (other, self) };
        Form::atom(if larger { Atom::Max(a, b) } else { Atom::Min(a, b) }).dim()
    }

    /// Whether it is certainly at least this.
    pub fn at_least(self, other: impl Into<Dim>) -> bool {
        self.form().plus(&other.into().form(), -1).is_never_negative()
    }

    /// The open sizes that it is made of, each once.
    pub fn vars(self) -> Vec<Var> {
        let mut found = Vec::new();
        self.collect(&mut found);
        found
    }

    fn collect(self, found: &mut Vec<Var>) {
        for atom in self.form().0.iter().flat_map(|t| &t.0) {
            match atom {
                Atom::Var(v) if found.contains(v) => {}
                Atom::Var(v) => found.push(v.clone()),
                Atom::Div(a, b) | Atom::Mod(a, b) | Atom::Max(a, b) | Atom::Min(a, b) => {
                    a.collect(found);
                    b.collect(found);
                }
            }
        }
    }

    /// The size as an `int32` expression, for use inside of a tensor function. Open sizes are
    /// variables, the same ones in every function ([`narrow`]).
    pub fn expr(self) -> Expr {
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

    /// The size as an expression of a type of integers, of its own variables.
    pub fn typed(self, dtype: DType) -> Expr {
        self.build(&|v| v.expr().cast(dtype), dtype)
    }

    /// What must be at least so much for the size to have a value, innermost first: the size
    /// itself, and what quotients, remainders and minima are taken of. Numbers are left out.
    pub fn demands(self) -> Vec<(Dim, usize)> {
        let mut found = Vec::new();
        self.collect_demands(0, &mut found);
        found
    }

    fn collect_demands(self, least: usize, found: &mut Vec<(Dim, usize)>) {
        if self.known().is_some() {
            return;
        }
        for atom in self.form().0.iter().flat_map(|t| &t.0) {
            match atom {
                Atom::Var(_) => {}
                Atom::Div(a, b) | Atom::Mod(a, b) => {
                    a.collect_demands(0, found);
                    b.collect_demands(1, found);
                }
                Atom::Min(a, b) => {
                    a.collect_demands(0, found);
                    b.collect_demands(0, found);
                }
                // One of both may be negative; what they are made of may not.
                Atom::Max(a, b) => {
                    for side in [a, b] {
                        let mut inner = Vec::new();
                        side.collect_demands(0, &mut inner);
                        inner.retain(|(d, _)| d != side);
                        found.extend(inner);
                    }
                }
            }
        }
        if !found.contains(&(self, least)) {
            found.push((self, least));
        }
    }

    /// A `float64` expression of the open sizes that is at least as large as every sum on the way
    /// to the size, where its [`demands`](Dim::demands) have such bounds too: below 2^62, 64 bits
    /// hold them all.
    pub fn ceiling(self) -> Expr {
        let number = |n: f64| Expr::float(n, DType::F64);
        let size = |v: &Var| v.expr().cast(DType::F64);
        let form = self.form();
        let terms = form.0.iter().map(|(atoms, c)| {
            atoms.iter().fold(number(c.unsigned_abs() as f64), |product, atom| {
                product
                    * match atom {
                        Atom::Var(v) => size(v),
                        Atom::Div(a, _) => a.ceiling(),
                        Atom::Mod(_, b) => b.ceiling(),
                        Atom::Max(a, b) | Atom::Min(a, b) => a.ceiling().max(b.ceiling()),
                    }
            })
        });
        terms.reduce(|sum, term| sum + term).unwrap_or_else(|| number(0.0))
    }

    fn build(self, var: &dyn Fn(&Var) -> Expr, dtype: DType) -> Expr {
        let form = match self.0 {
            Repr::Known(n) => return Expr::int(n as i64, dtype),
            Repr::Open(_) => self.form(),
        };
        let number = |n: i128| Expr::int(n as i64, dtype);
        let (mut sum, mut constant): (Option<Expr>, i128) = (None, 0);
        for (atoms, c) in &form.0 {
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

    /// The size that an expression of integers stands for; `None` where it is none: negative
    /// numbers, loads, and what is no arithmetic.
    pub fn of(e: &Expr) -> Option<Dim> {
        Some(match form_of(e)?.as_number() {
            Some(n) => Dim::from(usize::try_from(n).ok()?),
            None => form_of(e)?.dim(),
        })
    }

    /// For each open size the most that it can be where this one is at most `limit`; nothing where
    /// that is not plain.
    pub fn limits(self, limit: usize) -> Vec<(Var, usize)> {
        let form = self.form();
        let less: i128 = form.0.iter().filter(|t| t.1 < 0).map(|t| -t.1).sum();
        // What is taken away must be a number.
        if form.0.iter().any(|(atoms, c)| *c < 0 && !atoms.is_empty()) {
            return Vec::new();
        }
        let most = (limit as i128).saturating_add(less);
        let mut found: Vec<(Var, usize)> = Vec::new();
        for (atoms, c) in form.0.iter().filter(|t| t.1 > 0) {
            if atoms.iter().any(|a| !matches!(a, Atom::Var(_))) {
                continue;
            }
            for atom in atoms {
                let Atom::Var(v) = atom else { continue };
                let most = usize::try_from(most / c).unwrap_or(usize::MAX);
                match found.iter_mut().find(|(x, _)| x == v) {
                    Some((_, old)) => *old = most.min(*old),
                    None => found.push((v.clone(), most)),
                }
            }
        }
        found
    }

    /// The size of a graph that a size inside of a tensor function is: the way back of
    /// [`Dim::inside`].
    pub fn outside(self) -> Dim {
        self.substitute(&|v| open_size(v).map(|v| Dim::open(&v)))
    }

    /// The size with others in the place of open ones; those that `of` does not know stay.
    pub fn substitute(self, of: &dyn Fn(&Var) -> Option<Dim>) -> Dim {
        let form = match self.0 {
            Repr::Known(_) => return self,
            Repr::Open(_) => self.form(),
        };
        let at = |d: &Dim| d.substitute(of);
        let mut sum = Form::default();
        for (atoms, c) in &form.0 {
            let product = atoms.iter().fold(Form::number(*c), |product, atom| {
                let value = match atom {
                    Atom::Var(v) => of(v).unwrap_or_else(|| Dim::open(v)),
                    Atom::Div(a, b) => at(a).floordiv(at(b)),
                    Atom::Mod(a, b) => at(a).modulo(at(b)),
                    Atom::Max(a, b) => at(a).max(at(b)),
                    Atom::Min(a, b) => at(a).min(at(b)),
                };
                product.times(&value.form())
            });
            sum = sum.plus(&product, 1);
        }
        sum.dim()
    }

    /// A number for decisions about speed, and nothing else: the size where all open ones are 240,
    /// which many small numbers divide, or what of their range is next to that.
    pub fn estimate(self) -> i64 {
        let usual = |v: &Var| 240.clamp(v.range().least(), v.range().most());
        self.value(&|v| Some(usual(v))).map_or(i64::MAX, |n| n as i64)
    }

    /// The size, inside of a tensor function, that a size of a graph is: its open ones are the
    /// variables that [`narrow`] gives.
    pub fn inside(self) -> Dim {
        self.substitute(&|v| Some(Dim::open(&narrow(v))))
    }

    /// The size for values of the open ones; `None` where one is missing, or the size is negative
    /// or beyond 63 bits.
    pub fn value(self, of: &dyn Fn(&Var) -> Option<usize>) -> Option<usize> {
        let value = match self.0 {
            Repr::Known(n) => return Some(n),
            Repr::Open(_) => self.form().value(of)?,
        };
        usize::try_from(value).ok().filter(|n| *n <= i64::MAX as usize)
    }
}

impl Form {
    fn value(&self, of: &dyn Fn(&Var) -> Option<usize>) -> Option<i128> {
        self.0.iter().try_fold(0i128, |sum, (atoms, c)| {
            let product = atoms.iter().try_fold(*c, |p, atom| {
                let size = |d: &Dim| d.value(of).map(|n| n as i128);
                let value = match atom {
                    Atom::Var(v) => of(v)? as i128,
                    // What is divided is a size itself.
                    Atom::Div(a, b) => size(a)?.checked_div(size(b)?)?,
                    Atom::Mod(a, b) => size(a)?.checked_rem(size(b)?)?,
                    // The larger one of a difference and zero: one of them may be negative.
                    Atom::Max(a, b) => a.form().value(of)?.max(b.form().value(of)?),
                    Atom::Min(a, b) => size(a)?.min(size(b)?),
                };
                p.checked_mul(value)
            })?;
            sum.checked_add(product)
        })
    }

    /// Whether it is at least zero for all values of open sizes, as far as coefficients say it:
    /// each negative number is outweighed by a term that is at least as large.
    fn is_never_negative(&self) -> bool {
        let product = |atoms: &[Atom], end: &dyn Fn(SizeRange) -> usize| {
            let ends = atoms.iter().map(|atom| match atom {
                Atom::Var(v) => Some(end(v.range()) as i128),
                Atom::Div(..) | Atom::Mod(..) | Atom::Max(..) | Atom::Min(..) => None,
            });
            ends.into_iter().try_fold(1i128, |all, end| Some(all.saturating_mul(end?)))
        };
        let least: i128 = self
            .0
            .iter()
            .map(|(atoms, c)| match *c {
                c if c < 0 => product(atoms, &SizeRange::most)
                    .map_or(i128::MIN / 2, |most| c.saturating_mul(most)),
                c => product(atoms, &SizeRange::least).map_or(0, |least| c.saturating_mul(least)),
            })
            .fold(0, i128::saturating_add);
        least >= 0
    }
}

impl Atom {
    fn build(&self, var: &dyn Fn(&Var) -> Expr, dtype: DType) -> Expr {
        let e = |d: &Dim| d.build(var, dtype);
        match self {
            Atom::Var(v) => var(v),
            Atom::Div(a, b) => e(a).floordiv(e(b)),
            Atom::Mod(a, b) => e(a).floormod(e(b)),
            Atom::Max(a, b) => e(a).max(e(b)),
            Atom::Min(a, b) => e(a).min(e(b)),
        }
    }
}

fn form_of(e: &Expr) -> Option<Form> {
    let size = |e: &Expr| Dim::of(e);
    Some(match e.kind() {
        ExprKind::Int(v) => Form::number(i128::from(*v)),
        ExprKind::Var(v) if v.dtype().is_int() => Form::atom(Atom::Var(v.clone())),
        ExprKind::Cast(a) if e.dtype().is_int() && a.dtype().is_int() => form_of(a)?,
        ExprKind::Binary(op, a, b) => match op {
            BinOp::Add => form_of(a)?.plus(&form_of(b)?, 1),
            BinOp::Sub => form_of(a)?.plus(&form_of(b)?, -1),
            BinOp::Mul => form_of(a)?.times(&form_of(b)?),
            BinOp::FloorDiv | BinOp::TruncDiv => {
                size(a)?.floordiv(size(b)?).form().as_ref().clone()
            }
            BinOp::FloorMod | BinOp::TruncMod => size(a)?.modulo(size(b)?).form().as_ref().clone(),
            BinOp::Max => size(a)?.max(size(b)?).form().as_ref().clone(),
            BinOp::Min => size(a)?.min(size(b)?).form().as_ref().clone(),
            _ => return None,
        },
        _ => return None,
    })
}

/// The `int32` variable that stands for an open size inside of tensor functions.
pub fn narrow(var: &Var) -> Var {
    let mut table = table();
    let narrow = match var.dtype() == DType::I32 {
        true => var.clone(),
        false => {
            let make = || Var::size(var.name().clone(), DType::I32, var.range());
            table.narrow.entry(var.clone()).or_insert_with(make).clone()
        }
    };
    table.wide.entry(narrow.clone()).or_insert_with(|| var.clone());
    narrow
}

/// The open size that a variable inside of a tensor function stands for ([`narrow`]); `None` for
/// other variables.
pub fn open_size(var: &Var) -> Option<Var> {
    table().wide.get(var).cloned()
}

/// Whether no size is open.
pub fn is_known(shape: &[Dim]) -> bool {
    shape.iter().all(|d| d.known().is_some())
}

/// The product of sizes.
pub fn product(sizes: impl IntoIterator<Item = Dim>) -> Dim {
    sizes.into_iter().fold(Dim::from(1), |all, d| all * d)
}

/// The numbers, where all sizes are known.
pub fn known(shape: &[Dim]) -> Option<Vec<usize>> {
    shape.iter().map(|d| d.known()).collect()
}

/// The numbers of a shape.
///
/// # Errors
/// `Unsupported` where one is open; `what` needs it.
pub fn fixed(shape: &[Dim], what: &str) -> Result<Vec<usize>> {
    shape.iter().map(|d| d.fixed(what)).collect()
}

/// The sizes that the extents of a buffer or tensor stand for.
pub fn of_shape(extents: &[Expr]) -> Option<Vec<Dim>> {
    extents.iter().map(Dim::of).collect()
}

/// A shape of numbers.
pub fn shape(extents: &[usize]) -> Vec<Dim> {
    extents.iter().map(|d| Dim::from(*d)).collect()
}

impl From<usize> for Dim {
    fn from(n: usize) -> Dim {
        Dim(Repr::Known(n))
    }
}

impl PartialEq<usize> for Dim {
    fn eq(&self, other: &usize) -> bool {
        self.known() == Some(*other)
    }
}

/// Numbers are computed as such, and open sizes by their forms.
macro_rules! arithmetic {
    ($($(#[$doc:meta])* $trait:ident $method:ident $numbers:ident $forms:expr;)*) => { $(
        $(#[$doc])*
        impl<T: Into<Dim>> $trait<T> for Dim {
            type Output = Dim;
            fn $method(self, other: T) -> Dim {
                let other = other.into();
                let forms: fn(&Form, &Form) -> Form = $forms;
                match (self.0, other.0) {
                    (Repr::Known(a), Repr::Known(b)) => Dim::from(a.$numbers(b)),
                    _ => forms(&self.form(), &other.form()).dim(),
                }
            }
        } )*
    };
}
arithmetic! {
    Add add saturating_add |a, b| a.plus(b, 1);
    /// Below zero, a difference of numbers is zero.
    Sub sub saturating_sub |a, b| a.plus(b, -1);
    Mul mul saturating_mul Form::times;
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Repr::Known(n) => write!(f, "{n}"),
            Repr::Open(_) => write!(f, "{}", self.expr()),
        }
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(name: &str) -> Dim {
        Dim::open(&Var::new(name, DType::I64))
    }

    #[test]
    fn equal_polynomials_are_one_size() {
        let (n, m) = (open("n"), open("m"));
        assert_eq!((n + 1) * m, m + n * m);
        assert_eq!(n + m - n, m);
        assert_eq!((n * 12 * m).floordiv(m * 4), n * 3);
        assert_eq!((n * 12 + 5).floordiv(4), n * 3 + 1);
        assert_eq!((n * 12 + 5).modulo(4), Dim::from(1));
        assert_ne!(n, open("n"));
        assert_eq!(n - n, Dim::from(0));
    }

    #[test]
    fn what_is_not_decided_is_a_term() {
        let n = open("n");
        let half = (n + 1).floordiv(2);
        assert_eq!(half, n.ceildiv(2));
        assert_eq!(half.to_string(), "(n + 1) // 2");
        assert_eq!((n - 1).floordiv(2) + 1, half);
        for (at, out) in [(1, 1), (2, 1), (33, 17), (34, 17)] {
            assert_eq!(((n - 1).floordiv(2) + 1).value(&|_| Some(at)), Some(out));
        }
        assert_eq!((half * 2).floordiv(2), half);
        // Windows of two and three cells, two apart.
        assert_eq!((n - 2).floordiv(2) + 1, n.floordiv(2));
        assert_eq!((n - 1).floordiv(2) + 1, half);
        assert_eq!(((n - 1).floordiv(2) + 1).value(&|_| Some(8)), Some(4));
        assert_eq!(n.max(1), n);
        assert_eq!(n.min(7).to_string(), "T.min(7, n)");
        assert!(n.at_least(1) && !n.at_least(2) && (n + 1).at_least(2));
        let value = |d: Dim, at: usize| d.value(&|_| Some(at));
        assert_eq!((value(half, 6), value(half, 7)), (Some(3), Some(4)));
        assert_eq!(value(n - 3, 2), None);
        assert_eq!(value((n - 5).floordiv(2) + 1, 1), None);
        let rest = (n - 3).max(0);
        assert_eq!((value(rest, 2), value(rest, 3), value(rest, 8)), (Some(0), Some(0), Some(5)));
    }

    #[test]
    fn a_size_demands_what_its_parts_need() {
        let (n, m) = (open("n"), open("m"));
        let steps = (n - 5).floordiv(m - 1);
        assert_eq!((steps + 1).demands(), [(n - 5, 0), (m - 1, 1), (steps + 1, 0)]);
        assert_eq!((n - 3).max(0).demands(), [((n - 3).max(0), 0)]);
        assert_eq!(Dim::from(4).demands(), []);
        let ceiling = (n * m * 3 - 2).ceiling().to_string();
        assert_eq!(
            ceiling,
            "T.float64(2.0) + T.float64(3.0) * T.Cast(\"float64\", n) * T.Cast(\"float64\", m)"
        );
    }

    #[test]
    fn variables_of_functions_stand_for_sizes() {
        let var = Var::new("n", DType::I64);
        let n = Dim::open(&var);
        let inside = narrow(&var);
        assert_eq!((open_size(&inside), open_size(&Var::index("n"))), (Some(var), None));
        assert_eq!(Dim::of(&(n * 2).expr()).map(Dim::outside), Some(n * 2));
        assert_eq!((Dim::open(&inside).outside(), n.inside()), (n, Dim::open(&inside)));
    }

    #[test]
    fn expressions_are_read_back() {
        let n = open("n");
        for d in [n * 3 + 1, (n * n).floordiv(5), n.modulo(4) + 2, (n - 1).max(4)] {
            assert_eq!(Dim::of(&d.wide()), Some(d));
        }
        assert_eq!(Dim::of(&Expr::i32(-1)), None);
    }
}
