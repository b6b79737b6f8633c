//! Normal forms of integer expressions and conditions.
//!
//! A small algebra connects the IR and the engine. A [`Sum`] is
//! `constant + sum(coefficient * term)`, where a [`Term`] is an [`Atom`] or one of the functions
//! that integer sets know: floor and truncating division and remainder by a constant, `min`,
//! `max`, and selection by a condition ([`Pred`]). Everything else is an atom: a variable, or a
//! term that is not affine (a product of variables, a division by a variable, an element of a
//! buffer, a comparison of floats), of which only its identity and some facts are known.
//!
//! Forms are values with an order of their own, so that equal sums are equal structures:
//! `4*i + j` and `j + i*4` have one form, `n*m + m` and `(n + 1)*m` too. Identities that hold for
//! all integers are applied on the way (`(4*i + j) // 4 = i + j // 4`,
//! `(x // a) // b = x // (a*b)`); those that need a domain are [`crate::simplify`]'s.
//!
//! [`crate::normalizer`] makes forms from expressions; [`crate::product`] is the algebra of products.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use tilewright_ir::index::gcd;
use tilewright_ir::text::{Names, expr_to_string};

use tilewright_ir::{Buffer, DType, Expr, TypeKind, Var};

use crate::answer::{Known, Reason, Unknown};

/// Something whose value is an integer that the algebra does not look into.
#[derive(Clone, Debug)]
pub(crate) struct Atom(Rc<AtomData>);

#[derive(Debug)]
struct AtomData {
    key: Key,
    expr: Expr,
    nature: Nature,
    data: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    Var(u64),
    Term(String),
}

/// What is known of an atom's value.
#[derive(Debug)]
pub(crate) enum Nature {
    /// A variable.
    Var(Var),
    /// A product of at least two terms.
    Product(Vec<Term>),
    /// `a // b` for a `b` that is not constant.
    Quotient(Sum, Sum),
    /// `a % b` for a `b` that is not constant.
    Remainder(Sum, Sum),
    /// Only its type.
    Opaque,
}

impl PartialEq for Atom {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}
impl Eq for Atom {}
impl PartialOrd for Atom {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Atom {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.key.cmp(&other.0.key)
    }
}
impl Hash for Atom {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.key.hash(state);
    }
}

impl Atom {
    /// A variable.
    pub fn var(v: &Var) -> Atom {
        Atom::of_var(v, false)
    }

    /// A variable; `data` as of [`Atom::is_data`].
    pub fn of_var(v: &Var, data: bool) -> Atom {
        let nature = Nature::Var(v.clone());
        Atom(Rc::new(AtomData { key: Key::Var(v.id()), expr: v.expr(), nature, data }))
    }

    /// A term that the algebra does not look into. It is data if one of its parts is, and where it
    /// is read from memory or computed by what is no arithmetic of integers.
    pub fn term(expr: Expr, nature: Nature) -> Atom {
        /// Names by identity, so that equal text is the same value.
        struct Ids;
        impl Names for Ids {
            fn var(&mut self, v: &Var) -> String {
                format!("v{}", v.id())
            }
            fn buffer(&mut self, b: &Buffer) -> String {
                format!("b{}", b.id())
            }
        }
        static FRESH: AtomicU64 = AtomicU64::new(0);
        let mut key = expr_to_string(&expr, &mut Ids);
        if expr.effects().impure() {
            key = format!("#{} {key}", FRESH.fetch_add(1, Ordering::Relaxed));
        }
        let effects = expr.effects();
        let data = match &nature {
            Nature::Product(parts) => parts.iter().any(Term::is_data),
            Nature::Quotient(x, y) | Nature::Remainder(x, y) => x.is_data() || y.is_data(),
            Nature::Var(_) | Nature::Opaque => !effects.constant() || effects.floats,
        };
        Atom(Rc::new(AtomData { key: Key::Term(key), expr, nature, data }))
    }

    /// An opaque term of operands of which some are data, or none.
    pub fn opaque(expr: Expr, data: bool) -> Atom {
        let mut atom = Atom::term(expr, Nature::Opaque);
        if let Some(inner) = Rc::get_mut(&mut atom.0) {
            inner.data |= data;
        }
        atom
    }

    /// Whether the value is data: any of its type. Arithmetic on it wraps, while that on loops and
    /// sizes stays in its type.
    pub fn is_data(&self) -> bool {
        self.0.data
    }

    /// The value as an expression.
    pub fn expr(&self) -> &Expr {
        &self.0.expr
    }

    /// What is known of the value.
    pub fn nature(&self) -> &Nature {
        &self.0.nature
    }

    /// The variable, if the atom is one.
    pub fn as_var(&self) -> Option<&Var> {
        match &self.0.nature {
            Nature::Var(v) => Some(v),
            _ => None,
        }
    }

    /// A name that is the same for equal atoms, and for no others.
    pub fn name(&self) -> String {
        match &self.0.key {
            Key::Var(id) => format!("v{id}"),
            Key::Term(text) => text.clone(),
        }
    }

    /// Smallest and largest value by type alone, for types that say something.
    pub fn narrow_range(&self) -> Option<(i128, i128)> {
        let t = self.0.expr.dtype();
        let narrow = t.is_bool() || t.bits < 32 || t.kind == TypeKind::UInt;
        if narrow { Some((t.min_int()?, t.max_int()?)) } else { None }
    }

    /// Smallest and largest value by type alone: of narrow types, and of data. A product is that of
    /// integers, before it wraps.
    pub fn type_range(&self) -> Option<(i128, i128)> {
        let t = self.0.expr.dtype();
        let whole = self.0.data && !self.is_product();
        self.narrow_range().or_else(|| whole.then(|| Some((t.min_int()?, t.max_int()?))).flatten())
    }

    /// Whether the value is a product, which no type bounds.
    pub fn is_product(&self) -> bool {
        matches!(self.0.nature, Nature::Product(_))
    }

    /// Whether the value can differ between points that agree in everything but `vars`, or from
    /// one moment to the next.
    pub fn varies_with(&self, vars: &BTreeSet<Var>) -> bool {
        !self.0.expr.effects().constant() || self.0.expr.mentions_any(vars)
    }
}

/// What a sum is made of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Term {
    Atom(Atom),
    /// `sum // k` with `k > 1`.
    Div(Box<Sum>, i128),
    /// `sum % k` with `k > 1`.
    Mod(Box<Sum>, i128),
    /// `truncdiv(sum, k)` with `k > 1`.
    TruncDiv(Box<Sum>, i128),
    /// `truncmod(sum, k)` with `k > 1`.
    TruncMod(Box<Sum>, i128),
    /// The smaller.
    Min(Box<Sum>, Box<Sum>),
    /// The larger.
    Max(Box<Sum>, Box<Sum>),
    /// The first sum where the condition holds, else the second.
    Select(Box<Pred>, Box<Sum>, Box<Sum>),
}

/// `constant + sum(coefficient * term)`; no coefficient is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Sum {
    pub terms: BTreeMap<Term, i128>,
    pub constant: i128,
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Pred {
    /// Always or never.
    Bool(bool),
    /// The sum is at least zero.
    Ge(Sum),
    /// The sum is zero.
    Eq(Sum),
    /// The sum is not zero.
    Ne(Sum),
    /// An atom of type `bool` is true, or is false.
    Flag(Atom, bool),
    /// All hold.
    And(Vec<Pred>),
    /// One holds.
    Or(Vec<Pred>),
}

/// A number, or the reason why there is none.
pub(crate) fn too_large<T>(value: Option<T>) -> Known<T> {
    value.ok_or_else(|| Unknown::from(Reason::TooLarge))
}

impl Sum {
    pub fn constant(constant: i128) -> Sum {
        Sum { constant, terms: BTreeMap::new() }
    }

    pub fn term(term: Term) -> Sum {
        Sum { constant: 0, terms: BTreeMap::from([(term, 1)]) }
    }

    pub fn atom(atom: Atom) -> Sum {
        Sum::term(Term::Atom(atom))
    }

    pub fn var(v: &Var) -> Sum {
        Sum::atom(Atom::var(v))
    }

    pub fn as_constant(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The only term, where the sum is that.
    pub fn as_term(&self) -> Option<&Term> {
        let single = self.constant == 0 && self.terms.len() == 1;
        self.terms.iter().next().filter(|(_, c)| single && **c == 1).map(|(t, _)| t)
    }

    /// `self + k * other`.
    pub fn plus(mut self, other: &Sum, k: i128) -> Known<Sum> {
        self.constant = add_scaled(self.constant, other.constant, k)?;
        for (term, c) in &other.terms {
            let old = self.terms.get(term).copied().unwrap_or(0);
            match add_scaled(old, *c, k)? {
                0 => drop(self.terms.remove(term)),
                new => drop(self.terms.insert(term.clone(), new)),
            }
        }
        Ok(self)
    }

    pub fn scaled(&self, k: i128) -> Known<Sum> {
        Sum::default().plus(self, k)
    }

    pub fn offset(mut self, k: i128) -> Known<Sum> {
        self.constant = too_large(self.constant.checked_add(k))?;
        Ok(self)
    }

    /// The greatest common divisor of the coefficients; zero for a constant.
    pub fn content(&self) -> i128 {
        self.terms.values().fold(0, |g, c| gcd(g, *c))
    }

    /// Splits into `k * quotient + rest`, where no coefficient of the rest is a multiple of `k` and
    /// its constant is in `0..k`.
    pub fn split(&self, k: i128) -> (Sum, Sum) {
        let mut quotient = Sum::constant(self.constant.div_euclid(k));
        let mut rest = Sum::constant(self.constant.rem_euclid(k));
        for (term, c) in &self.terms {
            let to = if c % k == 0 { &mut quotient } else { &mut rest };
            to.terms.insert(term.clone(), if c % k == 0 { c / k } else { *c });
        }
        (quotient, rest)
    }

    /// `self // k` for `k > 0`.
    pub fn div(&self, k: i128) -> Known<Sum> {
        if k == 1 {
            return Ok(self.clone());
        }
        let (quotient, rest) = self.split(k);
        if rest.terms.is_empty() {
            return Ok(quotient);
        }
        let g = gcd(rest.content(), k);
        if g > 1 {
            // floor((g*x + c) / k) = floor((x + floor(c/g)) / (k/g))
            let (inner, _) = rest.split(g);
            return quotient.plus(&inner.div(k / g)?, 1);
        }
        if let (Some((Term::Div(inner, j), 1)), 1) =
            (rest.terms.iter().next().map(|(t, c)| (t, *c)), rest.terms.len())
        {
            // floor((floor(x/j) + c) / k) = floor((x + c*j) / (j*k))
            let numerator = inner.as_ref().clone().plus(&Sum::constant(rest.constant), *j)?;
            return quotient.plus(&numerator.div(too_large(j.checked_mul(k))?)?, 1);
        }
        quotient.plus(&Sum::term(Term::Div(Box::new(rest), k)), 1)
    }

    /// `self % k` for `k > 0`.
    pub fn modulo(&self, k: i128) -> Known<Sum> {
        if k == 1 {
            return Ok(Sum::default());
        }
        let mut rest = Sum::constant(self.constant.rem_euclid(k));
        for (term, c) in &self.terms {
            if c % k != 0 {
                rest.terms.insert(term.clone(), c % k);
            }
        }
        let within = rest.type_range().is_some_and(|(lo, hi)| lo >= 0 && hi < k);
        if rest.terms.is_empty() || within {
            return Ok(rest);
        }
        // x % j differs from x by a multiple of k, where that divides j.
        let wraps = |(t, c): (&Term, &i128)| match t {
            Term::Mod(inner, j) if j % k == 0 => Some((t.clone(), inner.clone(), *c)),
            _ => None,
        };
        if let Some((t, inner, c)) = rest.terms.iter().find_map(wraps) {
            rest.terms.remove(&t);
            return rest.plus(&inner, c)?.modulo(k);
        }
        let g = gcd(rest.content(), gcd(rest.constant, k));
        if g > 1 {
            let (inner, _) = rest.split(g);
            return inner.modulo(k / g)?.scaled(g);
        }
        Ok(Sum::term(Term::Mod(Box::new(rest), k)))
    }

    /// `truncdiv(self, k)` or `truncmod(self, k)` for `k > 0`.
    pub fn trunc(self, k: i128, modulo: bool) -> Known<Sum> {
        if let Some(c) = self.as_constant() {
            return Ok(Sum::constant(if modulo { c % k } else { c / k }));
        }
        Ok(match (k, modulo) {
            (1, true) => Sum::default(),
            (1, false) => self,
            (_, true) => Sum::term(Term::TruncMod(Box::new(self), k)),
            (_, false) => Sum::term(Term::TruncDiv(Box::new(self), k)),
        })
    }

    pub fn min(self, other: Sum) -> Known<Sum> {
        self.extremum(other, true)
    }

    pub fn max(self, other: Sum) -> Known<Sum> {
        self.extremum(other, false)
    }

    fn extremum(self, other: Sum, smaller: bool) -> Known<Sum> {
        if let Some(d) = self.clone().plus(&other, -1)?.as_constant() {
            return Ok(if (d <= 0) == smaller { self } else { other });
        }
        // min(x + s, y + s) = min(x, y) + s
        let shared = self.terms.iter().filter(|(t, c)| other.terms.get(t) == Some(c));
        let shared: BTreeMap<Term, i128> = shared.map(|(t, c)| (t.clone(), *c)).collect();
        if !shared.is_empty() {
            let shared = Sum { constant: 0, terms: shared };
            let (a, b) = (self.plus(&shared, -1)?, other.plus(&shared, -1)?);
            return a.extremum(b, smaller)?.plus(&shared, 1);
        }
        // min(min(x, a), b) = min(x, min(a, b)) for constants a and b
        for (nested, k) in [(&self, &other), (&other, &self)] {
            let inner = match nested.as_term() {
                Some(Term::Min(x, y)) if smaller => Some((x, y)),
                Some(Term::Max(x, y)) if !smaller => Some((x, y)),
                _ => None,
            };
            if let (Some((x, y)), Some(_)) = (inner, k.as_constant())
                && y.as_constant().is_some()
            {
                let constant = (**y).clone().extremum(k.clone(), smaller)?;
                return (**x).clone().extremum(constant, smaller);
            }
        }
        // A constant goes to the right.
        let ordered = (self.terms.is_empty(), &self) <= (other.terms.is_empty(), &other);
        let (a, b) = if ordered { (self, other) } else { (other, self) };
        let (a, b) = (Box::new(a), Box::new(b));
        Ok(Sum::term(if smaller { Term::Min(a, b) } else { Term::Max(a, b) }))
    }

    pub fn select(cond: Pred, yes: Sum, no: Sum) -> Sum {
        match cond {
            Pred::Bool(true) => yes,
            Pred::Bool(false) => no,
            _ if yes == no => yes,
            _ => Sum::term(Term::Select(Box::new(cond), Box::new(yes), Box::new(no))),
        }
    }

    /// Bounds that follow from the types of the atoms alone.
    pub fn type_range(&self) -> Option<(i128, i128)> {
        let (low, high) = self.ends(&|a| a.type_range().unzip());
        low.zip(high)
    }

    /// The ends of the sum, where those of its atoms say such.
    pub fn ends(&self, of: &dyn Fn(&Atom) -> Ends) -> Ends {
        let mut sum = (Some(self.constant), Some(self.constant));
        for (term, c) in &self.terms {
            let (low, high) = term.ends(of);
            let (low, high) = if *c > 0 { (low, high) } else { (high, low) };
            sum = (add_scaled_end(sum.0, low, c), add_scaled_end(sum.1, high, c));
        }
        sum
    }

    /// The value in an integer type: itself where it fits by the ranges of types, else reduced
    /// modulo the type's width.
    pub fn wrapped(self, t: DType) -> Known<Sum> {
        let (Some(lo), Some(hi)) = (t.min_int(), t.max_int()) else { return Ok(self) };
        if self.type_range().is_some_and(|(l, h)| lo <= l && h <= hi) {
            return Ok(self);
        }
        let width = hi - lo + 1;
        self.offset(-lo)?.modulo(width)?.offset(lo)
    }

    /// A sum that is the same modulo the width of a type, without remainders by multiples of that.
    pub fn unwrapped(&self, t: DType) -> Known<Sum> {
        let (Some(lo), Some(hi)) = (t.min_int(), t.max_int()) else { return Ok(self.clone()) };
        let mut sum = Sum::constant(self.constant);
        for (term, c) in &self.terms {
            sum = match term {
                Term::Mod(inner, j) if j % (hi - lo + 1) == 0 => sum.plus(inner, *c)?,
                term => sum.plus(&Sum::term(term.clone()), *c)?,
            };
        }
        Ok(sum)
    }

    /// Whether an atom of it is data; see [`Atom::is_data`].
    pub fn is_data(&self) -> bool {
        self.terms.keys().any(Term::is_data)
    }

    /// Whether arithmetic in a type gives the value: it does where no data occur, and where the
    /// types of the data bound it.
    pub fn stays_in(&self, t: DType) -> bool {
        self.type_range().map_or_else(
            || !self.is_data(),
            |(lo, hi)| t.min_int() <= Some(lo) && Some(hi) <= t.max_int(),
        )
    }

    /// Calls `f` for every atom, also those inside of terms.
    pub fn atoms(&self, f: &mut dyn FnMut(&Atom)) {
        self.walk(&mut each_atom(f));
    }

    /// Whether the sum has at least this many nodes, each counted where it occurs. Takes no more
    /// time than that.
    pub fn has_nodes(&self, limit: usize) -> bool {
        !self.walk(&mut count(limit))
    }

    /// Calls `f` for every node, with the atom if it is one, until that says no; whether it did not.
    fn walk(&self, f: &mut Each<'_>) -> bool {
        f(None) && self.terms.keys().all(|t| t.walk(f))
    }

    /// With other atoms in the place of those for which `new` has one.
    pub fn renamed(&self, new: &dyn Fn(&Atom) -> Option<Atom>) -> Known<Sum> {
        let mut out = Sum::constant(self.constant);
        for (term, c) in &self.terms {
            let term = match term {
                Term::Atom(a) => Term::Atom(new(a).unwrap_or_else(|| a.clone())),
                Term::Div(s, k) => Term::Div(boxed_renamed(s, new)?, *k),
                Term::Mod(s, k) => Term::Mod(boxed_renamed(s, new)?, *k),
                Term::TruncDiv(s, k) => Term::TruncDiv(boxed_renamed(s, new)?, *k),
                Term::TruncMod(s, k) => Term::TruncMod(boxed_renamed(s, new)?, *k),
                Term::Min(a, b) => Term::Min(boxed_renamed(a, new)?, boxed_renamed(b, new)?),
                Term::Max(a, b) => Term::Max(boxed_renamed(a, new)?, boxed_renamed(b, new)?),
                Term::Select(c, a, b) => Term::Select(
                    Box::new(c.renamed(new)?),
                    boxed_renamed(a, new)?,
                    boxed_renamed(b, new)?,
                ),
            };
            out = out.plus(&Sum::term(term), *c)?;
        }
        Ok(out)
    }
}

fn add_scaled(a: i128, b: i128, k: i128) -> Known<i128> {
    too_large(b.checked_mul(k).and_then(|b| a.checked_add(b)))
}

fn add_scaled_end(all: Option<i128>, end: Option<i128>, c: &i128) -> Option<i128> {
    all?.checked_add(end?.checked_mul(*c)?)
}

fn boxed_renamed(s: &Sum, new: &dyn Fn(&Atom) -> Option<Atom>) -> Known<Box<Sum>> {
    Ok(Box::new(s.renamed(new)?))
}

/// What a walk of a form does at each node.
type Each<'a> = dyn FnMut(Option<&Atom>) -> bool + 'a;

/// Visits the atoms.
fn each_atom(f: &mut dyn FnMut(&Atom)) -> impl FnMut(Option<&Atom>) -> bool {
    move |a| {
        a.into_iter().for_each(&mut *f);
        true
    }
}

/// Goes on to fewer nodes than a limit.
fn count(limit: usize) -> impl FnMut(Option<&Atom>) -> bool {
    let mut nodes = 0;
    move |_| {
        nodes += 1;
        nodes < limit
    }
}

/// Least and greatest value, where there are such.
pub(crate) type Ends = (Option<i128>, Option<i128>);

impl Term {
    /// The ends of the term, where those of its atoms say such.
    pub fn ends(&self, of: &dyn Fn(&Atom) -> Ends) -> Ends {
        match self {
            Term::Atom(a) => of(a),
            Term::Mod(_, k) => (Some(0), Some(k - 1)),
            Term::TruncMod(_, k) => (Some(1 - k), Some(k - 1)),
            Term::Div(s, k) => map_ends(s.ends(of), &|v| v.div_euclid(*k)),
            Term::TruncDiv(s, k) => map_ends(s.ends(of), &|v| v / k),
            Term::Min(a, b) => {
                let (a, b) = (a.ends(of), b.ends(of));
                (zip_with(a.0, b.0, i128::min), a.1.into_iter().chain(b.1).min())
            }
            Term::Max(a, b) => {
                let (a, b) = (a.ends(of), b.ends(of));
                (a.0.max(b.0), zip_with(a.1, b.1, i128::max))
            }
            Term::Select(_, a, b) => {
                let (a, b) = (a.ends(of), b.ends(of));
                (zip_with(a.0, b.0, i128::min), zip_with(a.1, b.1, i128::max))
            }
        }
    }

    /// What it is a product of.
    pub fn factors(&self) -> &[Term] {
        match self {
            Term::Atom(a) => match a.nature() {
                Nature::Product(parts) => parts,
                _ => std::slice::from_ref(self),
            },
            _ => std::slice::from_ref(self),
        }
    }

    fn is_data(&self) -> bool {
        !self.walk(&mut |a| !a.is_some_and(Atom::is_data))
    }

    fn walk(&self, f: &mut Each<'_>) -> bool {
        match self {
            Term::Atom(a) => f(Some(a)),
            Term::Div(s, _) | Term::Mod(s, _) | Term::TruncDiv(s, _) | Term::TruncMod(s, _) => {
                f(None) && s.walk(f)
            }
            Term::Min(a, b) | Term::Max(a, b) => f(None) && a.walk(f) && b.walk(f),
            Term::Select(c, a, b) => f(None) && c.walk(f) && a.walk(f) && b.walk(f),
        }
    }
}

fn map_ends((low, high): Ends, f: &dyn Fn(i128) -> i128) -> (Option<i128>, Option<i128>) {
    (low.map(f), high.map(f))
}

/// Of two values, one is known to be the least only where both have ends.
fn zip_with(a: Option<i128>, b: Option<i128>, f: fn(i128, i128) -> i128) -> Option<i128> {
    a.zip(b).map(|(a, b)| f(a, b))
}

impl Pred {
    /// `sum >= 0`.
    pub fn ge(sum: Sum) -> Pred {
        match sum.content() {
            0 => Pred::Bool(sum.constant >= 0),
            1 => Pred::Ge(sum),
            g => Pred::Ge(sum.split(g).0),
        }
    }

    /// `sum == 0`.
    pub fn eq(sum: Sum) -> Pred {
        // A product is zero where one of its factors is.
        if let (0, 1, Some(t)) = (sum.constant, sum.terms.len(), sum.terms.keys().next())
            && t.factors().len() > 1
        {
            return Pred::or(t.factors().iter().map(|f| Pred::eq(Sum::term(f.clone()))));
        }
        let g = sum.content();
        match g {
            0 => Pred::Bool(sum.constant == 0),
            _ if sum.constant % g != 0 => Pred::Bool(false),
            _ => Pred::Eq(Pred::signed(sum.split(g).0)),
        }
    }

    /// The one of `sum` and `-sum` whose first coefficient is positive.
    fn signed(sum: Sum) -> Sum {
        match sum.terms.values().next() {
            Some(c) if *c < 0 => sum.scaled(-1).unwrap_or(sum),
            _ => sum,
        }
    }

    pub fn and(parts: impl IntoIterator<Item = Pred>) -> Pred {
        Pred::join(parts, true)
    }

    pub fn or(parts: impl IntoIterator<Item = Pred>) -> Pred {
        Pred::join(parts, false)
    }

    /// The conjunction, or the disjunction: that of which `neutral` is no part.
    fn join(parts: impl IntoIterator<Item = Pred>, neutral: bool) -> Pred {
        let mut all = Vec::new();
        for p in parts {
            match (p, neutral) {
                (Pred::Bool(value), _) if value == neutral => {}
                (p @ Pred::Bool(_), _) => return p,
                (Pred::And(inner), true) | (Pred::Or(inner), false) => {
                    inner.into_iter().for_each(|p| push_new(&mut all, p));
                }
                (p, _) => push_new(&mut all, p),
            }
        }
        match all.len() {
            0 => Pred::Bool(neutral),
            1 => all.swap_remove(0),
            _ if neutral => Pred::And(all),
            _ => Pred::Or(all),
        }
    }

    /// `least <= sum <= greatest`.
    pub fn between(sum: &Sum, (least, greatest): (i128, i128)) -> Known<Pred> {
        let above = Pred::ge(sum.clone().offset(too_large(least.checked_neg())?)?);
        Ok(Pred::and([above, Pred::ge(Sum::constant(greatest).plus(sum, -1)?)]))
    }

    /// Where one of two conditions holds and the other one does not.
    pub fn differ(a: Pred, b: Pred) -> Known<Pred> {
        let (not_a, not_b) = (a.negate()?, b.negate()?);
        Ok(Pred::or([Pred::and([a, not_b]), Pred::and([not_a, b])]))
    }

    /// Where the condition does not hold.
    pub fn negate(&self) -> Known<Pred> {
        Ok(match self {
            Pred::Bool(b) => Pred::Bool(!b),
            Pred::Ge(s) => Pred::ge(s.scaled(-1)?.offset(-1)?),
            Pred::Eq(s) => Pred::Ne(s.clone()),
            Pred::Ne(s) => Pred::Eq(s.clone()),
            Pred::Flag(a, value) => Pred::Flag(a.clone(), !value),
            Pred::And(parts) => Pred::or(negate_all(parts)?),
            Pred::Or(parts) => Pred::and(negate_all(parts)?),
        })
    }

    /// Calls `f` for every atom.
    pub fn atoms(&self, f: &mut dyn FnMut(&Atom)) {
        self.walk(&mut each_atom(f));
    }

    /// Whether the condition has at least this many nodes.
    pub fn has_nodes(&self, limit: usize) -> bool {
        !self.walk(&mut count(limit))
    }

    fn walk(&self, f: &mut Each<'_>) -> bool {
        match self {
            Pred::Bool(_) => f(None),
            Pred::Flag(a, _) => f(Some(a)),
            Pred::Ge(s) | Pred::Eq(s) | Pred::Ne(s) => f(None) && s.walk(f),
            Pred::And(parts) | Pred::Or(parts) => f(None) && parts.iter().all(|p| p.walk(f)),
        }
    }

    /// With other atoms in the place of those for which `new` has one; sums may become constant.
    pub fn renamed(&self, new: &dyn Fn(&Atom) -> Option<Atom>) -> Known<Pred> {
        Ok(match self {
            Pred::Bool(_) => self.clone(),
            Pred::Ge(s) => Pred::ge(s.renamed(new)?),
            Pred::Eq(s) => Pred::eq(s.renamed(new)?),
            Pred::Ne(s) => Pred::eq(s.renamed(new)?).negate()?,
            Pred::Flag(a, value) => Pred::Flag(new(a).unwrap_or_else(|| a.clone()), *value),
            Pred::And(parts) => Pred::and(rename_all(parts, new)?),
            Pred::Or(parts) => Pred::or(rename_all(parts, new)?),
        })
    }
}

fn negate_all(parts: &[Pred]) -> Known<Vec<Pred>> {
    parts.iter().map(Pred::negate).collect::<Known<Vec<_>>>()
}

fn rename_all(parts: &[Pred], new: &dyn Fn(&Atom) -> Option<Atom>) -> Known<Vec<Pred>> {
    parts.iter().map(|p| p.renamed(new)).collect::<Known<Vec<_>>>()
}

fn push_new(list: &mut Vec<Pred>, p: Pred) {
    if !list.contains(&p) {
        list.push(p);
    }
}
