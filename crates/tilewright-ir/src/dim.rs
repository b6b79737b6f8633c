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

mod expression;
mod fact;
mod form;
mod integer;
mod order;
mod range;

use crate::hash::{HashMap, HashSet};
use std::fmt;
use std::ops::{Add, Mul, Sub};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::expr::{BinOp, Expr, Var};

pub use fact::Fact;
use form::{Atom, Form};
pub use integer::Integer;
pub use range::{MAX_CELLS, Remainders, SizeRange, USUAL_SIZE};

/// By how much a size is taken to be larger than usual where another one would be nothing ([`Dim::estimate`]).
const LARGER: usize = 16;

/// Usual sizes below this are those of batches.
const FEW: usize = 8;

/// A size: a number, or an expression of open sizes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dim(Repr);

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Repr {
    Known(usize),
    /// The position of its form in the table.
    Open(u32),
}

#[derive(Default)]
struct Table {
    forms: Vec<Arc<Form>>,
    places: HashMap<Arc<Form>, u32>,
    /// The `int32` variables that stand for open sizes inside of tensor functions.
    narrow: HashMap<Var, Var>,
    /// The open sizes that these stand for.
    wide: HashMap<Var, Var>,
    /// Forms of which it was asked whether they are never negative, and the answers.
    signs: HashMap<Form, bool>,
    /// What is known of sizes by their parts.
    extremes: HashMap<Dim, order::Extremes>,
    /// Quotients, rounded down, by numerator and divisor.
    quotients: HashMap<(Dim, Dim), Dim>,
    /// What is left of such divisions.
    remainders: HashMap<(Dim, Dim), Dim>,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an operation makes of two sizes, computed once a process.
fn remember(
    of: fn(&mut Table) -> &mut HashMap<(Dim, Dim), Dim>,
    operands: (Dim, Dim),
    compute: impl FnOnce() -> Dim,
) -> Dim {
    if let Some(known) = of(&mut table()).get(&operands) {
        return *known;
    }
    let result = compute();
    of(&mut table()).insert(operands, result);
    result
}

impl Form {
    fn dim(self) -> Dim {
        if let Some(other) = self.without_halves() {
            return other.dim();
        }
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
        let by = by.into();
        match (self.0, by.0) {
            (_, Repr::Known(0)) => self,
            (Repr::Known(a), Repr::Known(b)) => Dim::from(a / b),
            _ => remember(
                |table| &mut table.quotients,
                (self, by),
                || self.form().floordiv(&by.form()).dim(),
            ),
        }
    }

    /// What is left of a division that rounds down.
    pub fn modulo(self, by: impl Into<Dim>) -> Dim {
        let by = by.into();
        match (self.0, by.0) {
            (_, Repr::Known(0)) => Dim::from(0),
            (Repr::Known(a), Repr::Known(b)) => Dim::from(a % b),
            _ => remember(
                |table| &mut table.remainders,
                (self, by),
                || self.form().plus(&self.form().floordiv(&by.form()).times(&by.form()), -1).dim(),
            ),
        }
    }

    /// The smallest `q` with `q * by >= self`.
    pub fn ceildiv(self, by: impl Into<Dim>) -> Dim {
        let by = by.into();
        if self.known().is_none() && by.known().is_some_and(|n| n as i128 >= form::LONG) {
            // The first one, and those behind it: no term is larger than the size.
            return (self.max(1) - 1).floordiv(by) + self.min(1);
        }
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
        self.form().choice(&other.form(), larger).dim()
    }

    /// Whether it is certainly at least this.
    pub fn at_least(self, other: impl Into<Dim>) -> bool {
        self.form().plus(&other.into().form(), -1).is_never_negative()
    }

    /// The open sizes that it is made of, each once.
    pub fn vars(self) -> Vec<Var> {
        let mut found = Vec::new();
        self.parts(&mut |atom| match atom {
            Atom::Var(v) if !found.contains(v) => found.push(v.clone()),
            _ => {}
        });
        found
    }

    /// Shows the atoms of it and of all its parts, those of a part that it has several times once.
    fn parts(self, visit: &mut dyn FnMut(&Atom)) {
        self.parts_unseen(&mut HashSet::default(), visit);
    }

    fn parts_unseen(self, seen: &mut HashSet<Dim>, visit: &mut dyn FnMut(&Atom)) {
        if self.known().is_some() || !seen.insert(self) {
            return;
        }
        for atom in self.form().0.iter().flat_map(|t| &t.0) {
            visit(atom);
            if let Atom::Div(a, b) | Atom::Max(a, b) | Atom::Min(a, b) = atom {
                a.parts_unseen(seen, visit);
                b.parts_unseen(seen, visit);
            }
        }
    }

    /// The products of several factors that are terms of it, without their numbers; none where a term is taken
    /// away, so that each of them is at most as large as the size.
    pub fn products(self) -> Vec<Dim> {
        let form = self.form();
        if form.0.iter().any(|t| t.1 < 0) {
            return Vec::new();
        }
        let products = form.0.iter().filter(|(atoms, _)| atoms.len() > 1);
        products.map(|(atoms, _)| Form(vec![(atoms.clone(), 1)]).dim()).collect()
    }

    /// Whether it is an open size, or a quotient, a remainder, a maximum or a minimum of such: no multiple, product or
    /// sum.
    pub fn is_single(self) -> bool {
        matches!(&self.form().0[..], [(atoms, 1)] if atoms.len() == 1)
    }

    /// Whether it is a product of open sizes, or a multiple of one, and nothing is added.
    pub fn is_product(self) -> bool {
        matches!(&self.form().0[..], [(atoms, 1..)] if atoms.len() > 1)
    }

    /// Whether several of its terms are products of open sizes, as those of `(h - 2) * (w - 2)` are.
    pub fn is_polynomial(self) -> bool {
        self.form().0.iter().filter(|(atoms, _)| atoms.len() > 1).count() > 1
    }

    /// Whether none of its terms is a product.
    pub fn is_linear(self) -> bool {
        self.form().0.iter().all(|(atoms, _)| atoms.len() <= 1)
    }

    /// The least and the most that it can be as the size of a tensor, as far as its parts say it.
    pub fn range(self) -> SizeRange {
        let (low, high) = self.form().bounds().unwrap_or((0, i128::MAX));
        let [low, high] = [low, high]
            .map(|n: i128| usize::try_from(n.max(0)).unwrap_or(MAX_CELLS).min(MAX_CELLS));
        SizeRange::new(low, high).unwrap_or(SizeRange::WITH_ZERO)
    }

    /// What must be at least so much for the size to have a value, innermost first: the size
    /// itself, and what quotients, remainders and minima are taken of. Numbers are left out.
    pub fn demands(self) -> Vec<(Dim, usize)> {
        let mut found = Vec::new();
        self.collect_demands(0, &mut found);
        found
    }

    fn collect_demands(self, least: usize, found: &mut Vec<(Dim, usize)>) {
        if self.known().is_some() || found.contains(&(self, least)) {
            return;
        }
        for atom in self.form().0.iter().flat_map(|t| &t.0) {
            match atom {
                Atom::Var(_) => {}
                Atom::Div(a, b) => {
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
        found.push((self, least));
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

    /// What is divided and by which number, where it is a quotient and nothing else.
    pub fn quotient(self) -> Option<(Dim, usize)> {
        match &self.form().0[..] {
            [(atoms, 1)] => match &atoms[..] {
                [Atom::Div(a, by)] => Some((*a, by.known()?)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The two sizes of which it is the smaller one ([`BinOp::Min`]) or the larger one ([`BinOp::Max`]), and nothing
    /// else.
    pub fn extremum(self) -> Option<(BinOp, Dim, Dim)> {
        match &self.form().0[..] {
            [(atoms, 1)] => match &atoms[..] {
                [Atom::Min(a, b)] => Some((BinOp::Min, *a, *b)),
                [Atom::Max(a, b)] => Some((BinOp::Max, *a, *b)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The size with others in the place of open ones; those that `of` does not know stay.
    pub fn substitute(self, of: &dyn Fn(&Var) -> Option<Dim>) -> Dim {
        self.mapped(&|atom| match atom {
            Atom::Var(v) => of(v),
            _ => None,
        })
    }

    /// The size with others in the place of atoms; of those that `of` does not know, the parts.
    fn mapped(self, of: &dyn Fn(&Atom) -> Option<Dim>) -> Dim {
        let form = match self.0 {
            Repr::Known(_) => return self,
            Repr::Open(_) => self.form(),
        };
        form.mapped_atoms(of, &mut HashMap::default()).dim()
    }

    /// A number for decisions about speed, and nothing else: the size where all open ones are as large as usual
    /// ([`Var::usual`]), or what of their range is next to that. A variable that stands for another size is as large
    /// as that. What would be at most one cell then, as the frames of a short sound are, is taken for that of larger
    /// sizes: nobody runs a model for so little.
    pub fn estimate(self) -> i64 {
        let usual = self.at_usual(1);
        let larger = match usual {
            None | Some(0 | 1) if self.known().is_none() => self.at_usual(LARGER),
            _ => None,
        };
        larger.or(usual).unwrap_or(i64::MAX)
    }

    /// The size where all open ones are so many times as large as usual; batches are not. `None` for no size.
    fn at_usual(self, times: usize) -> Option<i64> {
        let value = self.value(&|v| {
            let stands_for = v.stands_for().and_then(|d| d.at_usual(times));
            let usual = match stands_for.and_then(|n| usize::try_from(n).ok()) {
                Some(n) => n,
                None if v.usual() < FEW => v.usual(),
                None => v.usual() * times,
            };
            Some(v.range().next(usual))
        });
        value.map(|n| n as i64)
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
    /// The form with others in the place of atoms; of those that `of` does not know, the parts. Parts are shared:
    /// each is looked at once, and then `known`.
    fn mapped_atoms(
        &self,
        of: &dyn Fn(&Atom) -> Option<Dim>,
        known: &mut HashMap<Dim, Form>,
    ) -> Form {
        let mut sum = Form::default();
        for (atoms, c) in &self.0 {
            let mut product = Form::number(*c);
            for atom in atoms {
                let mut at = |d: &Dim| match known.get(d) {
                    Some(form) => form.clone(),
                    None => {
                        let form = d.form().mapped_atoms(of, known);
                        known.insert(*d, form.clone());
                        form
                    }
                };
                let value = match (of(atom), atom) {
                    (Some(d), _) => d.form().as_ref().clone(),
                    (None, Atom::Var(_)) => Form::atom(atom.clone()),
                    (None, Atom::Div(a, b)) => match (at(a), at(b)) {
                        (a, by) if by.as_number() == Some(0) => a,
                        (a, by) => a.floordiv(&by),
                    },
                    (None, Atom::Max(a, b)) => at(a).choice(&at(b), true),
                    (None, Atom::Min(a, b)) => at(a).choice(&at(b), false),
                };
                product = product.times(&value);
            }
            sum = sum.plus(&product, 1);
        }
        sum
    }

    fn value(&self, of: &dyn Fn(&Var) -> Option<usize>) -> Option<i128> {
        self.0.iter().try_fold(0i128, |sum, (atoms, c)| {
            let product = atoms.iter().try_fold(*c, |p, atom| {
                let size = |d: &Dim| d.value(of).map(|n| n as i128);
                let value = match atom {
                    Atom::Var(v) => of(v)? as i128,
                    // What is divided is a size itself.
                    Atom::Div(a, b) => size(a)?.checked_div(size(b)?)?,
                    // The larger one of a difference and zero: one of them may be negative.
                    Atom::Max(a, b) => a.form().value(of)?.max(b.form().value(of)?),
                    Atom::Min(a, b) => size(a)?.min(size(b)?),
                };
                p.checked_mul(value)
            })?;
            sum.checked_add(product)
        })
    }
}

/// The `int32` variable that stands for an open size inside of tensor functions.
pub fn narrow(var: &Var) -> Var {
    let mut table = table();
    let narrow = if var.dtype() == DType::I32 {
        var.clone()
    } else {
        table
            .narrow
            .entry(var.clone())
            .or_insert_with(|| {
                Var::usually(var.name().clone(), DType::I32, var.range(), var.usual())
            })
            .clone()
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
    extents.iter().map(Dim::from_expr).collect()
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
