//! Linear forms of integer expressions: `constant + sum(coefficient * atom)`.
//!
//! An atom is a variable or a term that is not looked into (`k % 2`, an element of a buffer, a
//! product of variables). Coefficients are exact (`i128`), so a form is an integer; the machine's
//! value is that integer reduced to the type. Both are the same wherever the interval of the form
//! fits the type ([`Linear::fits`]).
//!
//! [`Linear::from_expr`] only multiplies out. What needs to know the values of variables (division,
//! remainder) is the simplifier's, and what needs exact sets is the crate's of integer sets.
//!
//! Sizes that are open leave quotients in indices and extents, whose bounds one by one say nothing:
//! `w // 4 * 2 - w // 12 * 6` is between 0 and 4, since `w // 12` is `w // 4 // 3`, and `(w + 63) // 64 - w // 64`
//! is 0 or 1. Quotients of one number, up to what is added to it, are taken together ([`Linear::values`],
//! [`Linear::span`]); remainders are quotients, too. And the variable of a loop over an open extent is known by how
//! far it is from that: in `for i in range(n)` the form `n - i` is at least 1.

use std::cmp::Reverse;

use crate::control::NEEDS_ELEMENTS;
use crate::dim::{self, MAX_CELLS};
use crate::dtype::DType;
use crate::equal::same_expr;
use crate::expr::{BinOp, Expr, ExprKind, Var};
use crate::func::TensorFunc;
use crate::index::{Interval, Ranges};
use crate::stmt::Range;
use crate::visit::accessed;

/// `sum of coefficient * atom + constant`, of one integer type.
#[derive(Clone, Debug)]
pub struct Linear {
    /// Atoms, each once, with coefficients other than zero.
    pub terms: Vec<(Expr, i128)>,
    /// What is added.
    pub constant: i128,
    /// The type that values are taken in.
    pub dtype: DType,
}

/// Coefficients beyond this are not followed; sums and products of two stay in `i128`.
pub const LIMIT: i128 = 1 << 62;

/// Most loops whose ends are looked at, one of which may depend on another.
const LOOPS: usize = 8;

/// Whether sums and products in a type are taken as those of integers: in narrower types and in
/// unsigned ones they wrap in earnest.
fn is_ring(dtype: DType) -> bool {
    matches!(dtype, DType::I32 | DType::I64)
}

impl Linear {
    /// `v` and `c` of an expression that is `v + c`.
    pub fn shifted(e: &Expr) -> Option<(Var, i64)> {
        let sum = Linear::from_expr(e)?;
        match &sum.terms[..] {
            [(atom, 1)] => Some((atom.as_var()?.clone(), i64::try_from(sum.constant).ok()?)),
            _ => None,
        }
    }

    pub fn constant(value: i128, dtype: DType) -> Linear {
        Linear { terms: Vec::new(), constant: value, dtype }
    }

    /// A term that is not looked into.
    pub fn atom(e: Expr) -> Linear {
        let dtype = e.dtype();
        match e.as_int() {
            Some(v) => Linear::constant(i128::from(v), dtype),
            None => Linear { terms: vec![(e, 1)], constant: 0, dtype },
        }
    }

    /// The form of an integer expression, with sums, differences, products by constants and
    /// widening casts multiplied out; `None` where a coefficient gets too large.
    pub fn from_expr(e: &Expr) -> Option<Linear> {
        match e.kind() {
            ExprKind::Binary(op, a, b) if is_ring(e.dtype()) => match op {
                BinOp::Add => Linear::from_expr(a)?.plus(&Linear::from_expr(b)?, 1),
                BinOp::Sub => Linear::from_expr(a)?.plus(&Linear::from_expr(b)?, -1),
                BinOp::Mul => {
                    let (x, y) = (Linear::from_expr(a)?, Linear::from_expr(b)?);
                    match (x.as_constant(), y.as_constant()) {
                        (Some(k), _) => y.times(k),
                        (_, Some(k)) => x.times(k),
                        _ => Some(Linear::atom(e.clone())),
                    }
                }
                _ => Some(Linear::atom(e.clone())),
            },
            ExprKind::Cast(a) if e.dtype() == DType::I64 && a.dtype() == DType::I32 => {
                Some(Linear { dtype: DType::I64, ..Linear::from_expr(a)? })
            }
            _ => Some(Linear::atom(e.clone())),
        }
    }

    /// The value, where it is one number.
    pub fn as_constant(&self) -> Option<i128> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The coefficient of a variable; `None` where it is in a term that is not looked into.
    pub fn coefficient(&self, var: &Var) -> Option<i128> {
        let mut found = 0;
        for (atom, c) in &self.terms {
            match atom.as_var() {
                Some(v) if v == var => found = *c,
                Some(_) => {}
                None if atom.mentions(var) => return None,
                None => {}
            }
        }
        Some(found)
    }

    /// `self + other * by`; `None` where a coefficient gets too large.
    pub fn plus(mut self, other: &Linear, by: i128) -> Option<Linear> {
        for (atom, c) in &other.terms {
            let c = c.checked_mul(by)?;
            match self.terms.iter_mut().find(|(a, _)| same_expr(a, atom)) {
                Some((_, old)) => *old = old.checked_add(c)?,
                None => self.terms.push((atom.clone(), c)),
            }
        }
        self.terms.retain(|t| t.1 != 0);
        self.constant = self.constant.checked_add(other.constant.checked_mul(by)?)?;
        (self.terms.iter().all(|t| is_small(t.1)) && is_small(self.constant)).then_some(self)
    }

    /// `self * by`; `None` where a coefficient gets too large.
    pub fn times(&self, by: i128) -> Option<Linear> {
        Linear::constant(0, self.dtype).plus(self, by)
    }

    /// The values of the form as an integer; `None` beyond `i128`.
    pub fn values(&self, ranges: &Ranges) -> Option<Interval> {
        self.unguarded(ranges).map(|all| self.under_guards(all, ranges))
    }

    /// The values whatever the conditions around.
    pub(super) fn unguarded(&self, ranges: &Ranges) -> Option<Interval> {
        let all = self.whatever_loops(ranges)?;
        Some(self.within_loops(ranges).map_or(all, |i| i.meet(all)))
    }

    /// The values by the ends of loops whose extents are open; `None` where it has no variable of one.
    fn within_loops(&self, ranges: &Ranges) -> Option<Interval> {
        let mut vars = self.terms.iter().filter_map(|(atom, _)| atom.as_var());
        vars.find(|v| ranges.ends(v).is_some())?;
        let [least, most] = [false, true].map(|most| self.at_ends(ranges, most));
        let (least, most) = (least?.whatever_loops(ranges)?, most?.whatever_loops(ranges)?);
        Some(Interval { lo: least.lo, hi: most.hi })
    }

    /// The least or the most that the form is in all iterations of loops whose extents are open.
    fn at_ends(&self, ranges: &Ranges, most: bool) -> Option<Linear> {
        let mut now = self.clone();
        for _ in 0..LOOPS {
            let found = now
                .terms
                .iter()
                .enumerate()
                .find_map(|(at, (atom, _))| Some((at, ranges.ends(atom.as_var()?)?)));
            let Some((at, range)) = found else { return Some(now) };
            let (_, by) = now.terms.remove(at);
            let mut end = Linear::from_expr(&range.min)?;
            end.one_by_one(ranges).filter(|i| end.holds(*i))?;
            if (by > 0) == most {
                let extent = Linear::from_expr(&range.extent)?;
                extent.one_by_one(ranges).filter(|i| extent.holds(*i))?;
                end = end.plus(&extent, 1)?.plus(&Linear::constant(1, self.dtype), -1)?;
            }
            now = now.plus(&end, by)?;
        }
        None
    }

    /// Whether its type holds all values of an interval.
    fn holds(&self, values: Interval) -> bool {
        Interval::of_type(self.dtype).is_some_and(|all| values.within(all))
    }

    /// The values by those of variables.
    fn whatever_loops(&self, ranges: &Ranges) -> Option<Interval> {
        let one_by_one = self.one_by_one(ranges)?;
        let quotients = self.terms.iter().filter(|(atom, _)| is_divided(atom)).count();
        if quotients == 0 || self.terms.len() < 2 {
            return Some(one_by_one);
        }
        // A dividend that wraps is another number.
        let together = together(self, &|atom| Some(ranges.interval(atom)), &|x| {
            let of_type = Interval::of_type(x.dtype);
            x.one_by_one(ranges).zip(of_type).is_some_and(|(i, all)| i.within(all))
        });
        Some(together.map_or(one_by_one, |i| i.meet(one_by_one)))
    }

    /// The values by those of each term.
    fn one_by_one(&self, ranges: &Ranges) -> Option<Interval> {
        self.terms.iter().try_fold(Interval::point(self.constant), |sum, (atom, c)| {
            sum.plus(ranges.interval(atom).times(*c)?)
        })
    }

    /// The values of the form, where its terms have known bounds one by one, or as pairs of quotients; `None`
    /// where only their types bound some. Index arithmetic is taken to stay in its type, so that what is divided
    /// is an integer.
    pub fn span(&self, ranges: &Ranges) -> Option<Interval> {
        together(
            self,
            &|e| {
                ranges.exact(e).or_else(|| {
                    Some(ranges.interval(e)).filter(|i| i.hi - i.lo < i128::from(i16::MAX))
                })
            },
            &|_| true,
        )
    }

    /// The same, where the bounds of every atom are known, and not only by its type.
    pub fn bounds(&self, ranges: &Ranges) -> Option<Interval> {
        self.terms
            .iter()
            .all(|(atom, _)| ranges.exact(atom).is_some())
            .then(|| self.values(ranges))
            .flatten()
    }

    /// The values, where all of them are values of the type.
    pub fn fits(&self, ranges: &Ranges) -> Option<Interval> {
        self.values(ranges).filter(|i| Interval::of_type(self.dtype).is_some_and(|t| i.within(t)))
    }

    /// The expression; `None` where a coefficient does not fit the type.
    pub fn to_expr(&self) -> Option<Expr> {
        let constant = self.number_of(self.constant)?;
        // What is added comes first: `5 - i`, not `i * -1 + 5`. Large steps come before small
        // ones, so that one sum has one text.
        let (mut plus, mut minus) = (Vec::new(), Vec::new());
        let mut terms: Vec<&(Expr, i128)> = self.terms.iter().collect();
        terms.sort_by_key(|(atom, c)| (Reverse(c.abs()), atom.as_var().map_or(u64::MAX, Var::id)));
        for (atom, c) in terms {
            let term = atom * self.number_of(*c)?;
            if *c > 0 { plus.push(term) } else { minus.push(term) }
        }
        match self.constant {
            0 => {}
            c if c > 0 => plus.push(constant),
            _ => minus.push(constant),
        }
        let sum = plus.into_iter().reduce(|a, b| a + b);
        let sum = sum.unwrap_or_else(|| Expr::int(0, self.dtype));
        Some(minus.into_iter().fold(sum, |a, b| a - b))
    }

    fn number_of(&self, v: i128) -> Option<Expr> {
        let v = v.checked_abs()?;
        let fits = self.dtype.max_int().is_some_and(|max| v <= max);
        Some(Expr::int(i64::try_from(v).ok().filter(|_| fits)?, self.dtype))
    }
}

fn is_small(v: i128) -> bool {
    v.abs() <= LIMIT
}

impl Ranges {
    /// Says that a variable runs through a range.
    pub fn bind_loop(&mut self, var: &Var, range: &Range) {
        let is_tight = self.exact(&range.min).is_some() && self.exact(&range.extent).is_some();
        let (min, extent) = (self.of_sum(&range.min), self.of_sum(&range.extent));
        let values = Interval { lo: min.lo, hi: min.hi + (extent.hi - 1).max(0) };
        let values = values.meet(Interval::all(var.dtype()));
        if is_tight {
            self.bind_exact(var, values)
        } else {
            self.bind(var, values)
        }
        self.bind_ends(var, (!is_tight).then(|| range.clone()));
    }

    /// [`Ranges::interval`], with the quotients of a sum taken together.
    fn of_sum(&self, e: &Expr) -> Interval {
        let plain = self.interval(e);
        let sum = Linear::from_expr(e).filter(|sum| sum.terms.len() > 1);
        match sum.and_then(|sum| sum.fits(self)) {
            Some(values) => values.meet(plain),
            None => plain,
        }
    }

    /// Says what the shapes of a function's arguments say of its sizes: no extent is negative, or zero where
    /// what is only read has elements ([`NEEDS_ELEMENTS`]), and no tensor of open size has more than
    /// [`MAX_CELLS`] cells, so that no extent, and no size that one is or exceeds by a number, has more.
    pub fn bind_sizes(&mut self, func: &TensorFunc) {
        func.sizes().iter().for_each(|v| self.bind_size(v));
        self.bind_cells(&func.buffers().map(|b| &b.shape[..]).collect::<Vec<_>>());
        let needs_elements = func.attrs.contains_key(NEEDS_ELEMENTS);
        let written = if needs_elements { accessed(&func.body).1 } else { Vec::new() };
        let least_of = |b| i128::from(needs_elements && !written.contains(b));
        for b in func.buffers() {
            let sums = b.shape.iter().filter(|e| e.as_int().is_none() && e.as_var().is_none());
            for e in sums {
                self.bind_extent(e, Interval { lo: least_of(b), hi: MAX_CELLS as i128 });
                self.bind_terms(e);
            }
        }
        for b in func.buffers() {
            let least = least_of(b);
            for (v, by) in
                b.shape.iter().filter(|e| e.as_int().is_none()).filter_map(Linear::shifted)
            {
                let hi = Interval::all(v.dtype()).hi;
                self.narrow(&v, Interval { lo: (least - i128::from(by)).max(0), hi });
            }
        }
    }

    /// Says that memory of open size, which who calls a function gives, has at most [`MAX_CELLS`] cells.
    pub fn bind_memory(&mut self, shape: &[Expr]) {
        self.bind_cells(&[shape]);
    }

    /// Says that no tensor of these shapes has more than [`MAX_CELLS`] cells, of the sizes that an extent is or
    /// exceeds by a number.
    fn bind_cells(&mut self, shapes: &[&[Expr]]) {
        let cells = shapes.iter().filter_map(|shape| dim::of_shape(shape)).map(dim::product);
        for (v, most) in cells.flat_map(|cells| cells.limits(MAX_CELLS)) {
            let is_extent =
                |e: &Expr| Linear::shifted(e).is_some_and(|(size, by)| size == v && by >= 0);
            if shapes.iter().any(|shape| shape.iter().any(is_extent)) {
                self.narrow(&v, Interval { lo: 0, hi: most as i128 });
            }
        }
    }

    /// Says that an extent of at most [`MAX_CELLS`] cells has no larger term, where none is negative: in `n * 3`, `n`
    /// is at most a third of them.
    fn bind_terms(&mut self, extent: &Expr) {
        let Some(Linear { terms, constant: constant @ 0.., .. }) = Linear::from_expr(extent) else {
            return;
        };
        let grows = |(atom, by): &(Expr, i128)| *by > 0 && self.interval(atom).lo >= 0;
        if terms.len() > 1 && !terms.iter().all(grows) {
            return;
        }
        for (atom, by) in &terms {
            let values = Interval { lo: 0, hi: (MAX_CELLS as i128 - constant).max(0) / by.max(&1) };
            match atom.as_var() {
                Some(v) => self.narrow(v, values),
                // Of a multiple of a product the product is an atom.
                None => self.bind_extent(atom, values),
            }
        }
    }

    /// Says that the values of a variable are in an interval as well.
    fn narrow(&mut self, var: &Var, values: Interval) {
        let known = self.interval(&var.expr());
        self.bind(var, known.meet(values));
    }
}

/// Whether a term is a quotient or a remainder by a constant.
fn is_divided(atom: &Expr) -> bool {
    divided(atom, BinOp::FloorDiv).is_some() || divided(atom, BinOp::FloorMod).is_some()
}

/// `y` and `e` of `y // e`, or of `y % e` as `op` says, with a positive constant `e`.
pub fn divided(atom: &Expr, op: BinOp) -> Option<(&Expr, i128)> {
    match atom.kind() {
        ExprKind::Binary(found, y, e) if *found == op => {
            e.as_int().filter(|e| *e > 0).map(|e| (y, i128::from(e)))
        }
        _ => None,
    }
}

/// The values of a form whose quotients are taken together; `of` gives those of a term, and `fits` says whether
/// a dividend stays in its type.
fn together(
    form: &Linear,
    of: &dyn Fn(&Expr) -> Option<Interval>,
    fits: &dyn Fn(&Linear) -> bool,
) -> Option<Interval> {
    // What is divided may be a sum of quotients, too.
    let deep = |atom: &Expr| {
        let plain = of(atom);
        match (plain, of_dividend(atom, of, fits)) {
            (Some(one), Some(other)) => Some(one.meet(other)),
            (one, other) => one.or(other),
        }
    };
    let plain = by_pairs(form, &deep, fits);
    // Some remainders have partners as quotients, and some quotients of sums what these are made of.
    let apart = quotients_of_remainders(form, fits);
    let by_quotients = apart.as_ref().and_then(|form| by_pairs(form, &deep, fits));
    let by_dividends = by_dividends(apart.as_ref().unwrap_or(form), &deep, fits);
    let all = [plain, by_quotients, by_dividends].into_iter().flatten();
    all.reduce(Interval::meet)
}

/// Nodes of a quotient whose dividend is looked into.
const LARGEST: u32 = 100;

/// The values of a quotient or remainder of a sum, by those of the sum.
fn of_dividend(
    atom: &Expr,
    of: &dyn Fn(&Expr) -> Option<Interval>,
    fits: &dyn Fn(&Linear) -> bool,
) -> Option<Interval> {
    let ExprKind::Binary(op @ (BinOp::FloorDiv | BinOp::FloorMod), x, _) = atom.kind() else {
        return None;
    };
    let (_, by) = divided(atom, *op).filter(|_| atom.size() <= LARGEST)?;
    let x = Linear::from_expr(x).filter(|x| x.terms.len() > 1 && fits(x))?;
    Interval::binary(*op, together(&x, of, fits)?, Interval::point(by))
}

/// What a form is multiplied by at most, so that dividends take the place of quotients.
const MULTIPLE: i128 = 1 << 10;

/// The values of a form by those of the sums that are divided in it, where there are some. What a quotient lacks, the
/// whole form is multiplied by first: `(x + y) // 2 - y` is half of `x + y - 2 * y`, less `0` or `1` of it.
fn by_dividends(
    form: &Linear,
    of: &dyn Fn(&Expr) -> Option<Interval>,
    fits: &dyn Fn(&Linear) -> bool,
) -> Option<Interval> {
    let sums: Vec<Option<(Linear, i128)>> =
        form.terms.iter().map(|(atom, _)| divided_sum(atom, fits)).collect();
    let lacks = |(sum, (_, c)): (&Option<(Linear, i128)>, &(Expr, i128))| match sum {
        Some((_, m)) => m / gcd(*c, *m),
        None => 1,
    };
    let all = sums.iter().zip(&form.terms).map(lacks).try_fold(1i128, |all, lacks| {
        let all = (all / gcd(all, lacks)).checked_mul(lacks)?;
        Some(all).filter(|all| *all <= MULTIPLE)
    });
    let multiples = [Some(1), all.filter(|all| *all > 1)];
    let found =
        multiples.into_iter().flatten().filter_map(|by| multiplied(form, &sums, by, of, fits));
    found.reduce(Interval::meet)
}

/// The same, multiplied by a number: then `c * (x // m)` is `c / m * x`, less `c / m` of `0` to `m - 1`, where `m`
/// divides `c`.
fn multiplied(
    form: &Linear,
    sums: &[Option<(Linear, i128)>],
    by: i128,
    of: &dyn Fn(&Expr) -> Option<Interval>,
    fits: &dyn Fn(&Linear) -> bool,
) -> Option<Interval> {
    let mut out = Linear::constant(form.constant.checked_mul(by)?, form.dtype);
    let (mut more, mut found) = (Interval::point(0), false);
    for ((atom, c), sum) in form.terms.iter().zip(sums) {
        let c = c.checked_mul(by)?;
        match sum.as_ref().filter(|(_, m)| c % m == 0) {
            Some((x, m)) => {
                out = out.plus(x, c / m)?;
                more = more.plus(Interval::new(1 - m, 0).times(c / m)?)?;
                found = true;
            }
            None => out = out.plus(&Linear::atom(atom.clone()), c)?,
        }
    }
    if !found {
        return None;
    }
    let values = by_pairs(&out, of, fits)?.plus(more)?;
    Some(Interval::new(-values.lo.checked_neg()?.div_euclid(by), values.hi.div_euclid(by)))
}

/// `x` and `m` of a quotient `x // m`, where `x` is a sum.
fn divided_sum(atom: &Expr, fits: &dyn Fn(&Linear) -> bool) -> Option<(Linear, i128)> {
    let (x, m) = divided(atom, BinOp::FloorDiv)?;
    let x = Linear::from_expr(x).filter(|x| x.terms.len() > 1 && fits(x))?;
    Some((x, m))
}

fn by_pairs(
    form: &Linear,
    of: &dyn Fn(&Expr) -> Option<Interval>,
    fits: &dyn Fn(&Linear) -> bool,
) -> Option<Interval> {
    let mut terms: Vec<Quotient> =
        form.terms.iter().map(|(atom, by)| Quotient::new(atom, *by, fits)).collect();
    let mut sum = Interval::point(form.constant);
    while let Some(Pair { coarse, fine, by, values }) = pair(&terms) {
        sum = sum.plus(values.times(by)?)?;
        terms[fine].times -= by;
        terms.remove(coarse);
        terms.retain(|t| t.times != 0);
    }
    terms.iter().try_fold(sum, |sum, t| sum.plus(of(t.atom)?.times(t.times)?))
}

/// Most steps that remainders are taken apart in.
const REMAINDERS: usize = 8;

/// The form with `x - x // m * m` in the place of each `x % m`, also where that is divided by a divisor of `m`;
/// `None` where there is none.
fn quotients_of_remainders(form: &Linear, fits: &dyn Fn(&Linear) -> bool) -> Option<Linear> {
    let mut now = form.clone();
    for step in 0..REMAINDERS {
        let apart = now
            .terms
            .iter()
            .enumerate()
            .find_map(|(k, t)| Some((k, remainder_as_quotients(&t.0, fits)?)));
        let Some((k, apart)) = apart else { return (step > 0).then_some(now) };
        let (_, by) = now.terms.remove(k);
        now = now.plus(&apart, by)?;
    }
    Some(now)
}

/// A remainder as quotients: `x % m` itself, or where it is a part of what is divided:
/// `(c * (x % m) + y) // k = (c * x + y) // k - c * m // k * (x // m)` where `k` divides `c * m`.
fn remainder_as_quotients(atom: &Expr, fits: &dyn Fn(&Linear) -> bool) -> Option<Linear> {
    if let Some((x, m)) = divided(atom, BinOp::FloorMod) {
        let x = whole_form(x, fits)?;
        return x.clone().plus(&quotient_of(&x, m)?, m.checked_neg()?);
    }
    let (sum, k) = divided(atom, BinOp::FloorDiv)?;
    let mut sum = whole_form(sum, fits)?;
    let (at, (x, m)) = sum.terms.iter().enumerate().find_map(|(at, (atom, c))| {
        let (x, m) = divided(atom, BinOp::FloorMod)?;
        (c.checked_mul(m)? % k == 0).then_some((at, (whole_form(x, fits)?, m)))
    })?;
    let (_, c) = sum.terms.remove(at);
    let rest = quotient_of(&sum.plus(&x, c)?, k)?;
    rest.plus(&quotient_of(&x, m)?, -(c * m / k))
}

fn quotient_of(x: &Linear, m: i128) -> Option<Linear> {
    let by = Expr::int(i64::try_from(m).ok()?, x.dtype);
    Some(match x.as_constant() {
        Some(c) => Linear::constant(c.div_euclid(m), x.dtype),
        None => Linear::atom(Expr::binary(BinOp::FloorDiv, x.to_expr()?, by)),
    })
}

fn whole_form(x: &Expr, fits: &dyn Fn(&Linear) -> bool) -> Option<Linear> {
    Linear::from_expr(x).filter(|x| fits(x))
}

/// A term as `times * (x // m)`; `m` is one where it is no quotient.
struct Quotient<'a> {
    atom: &'a Expr,
    times: i128,
    x: Linear,
    m: i128,
}

impl Quotient<'_> {
    fn new<'a>(atom: &'a Expr, times: i128, fits: &dyn Fn(&Linear) -> bool) -> Quotient<'a> {
        let (x, m) = of_one(atom, fits).unwrap_or_else(|| (Linear::atom(atom.clone()), 1));
        Quotient { atom, times, x, m }
    }
}

/// `x` and `m` of a quotient; `(y // a + c) // m` is `(y + c * a) // (a * m)`.
fn of_one(atom: &Expr, fits: &dyn Fn(&Linear) -> bool) -> Option<(Linear, i128)> {
    let (x, m) = divided(atom, BinOp::FloorDiv)?;
    let x = Linear::from_expr(x).filter(|x| fits(x))?;
    if let [(inner, 1)] = &x.terms[..]
        && let Some((y, a)) = of_one(inner, fits)
    {
        let more = Linear::constant(x.constant.checked_mul(a)?, x.dtype);
        return Some((y.plus(&more, 1)?, a.checked_mul(m)?));
    }
    Some((x, m))
}

/// Two terms of which one bounds the other.
struct Pair {
    /// The position of `-by * k * ((x + b) // (m * k))`.
    coarse: usize,
    /// That of `(by + more) * ((x + a) // m)`.
    fine: usize,
    by: i128,
    /// The values of `(x + a) // m - k * ((x + b) // (m * k))`.
    values: Interval,
}

/// The first such pair.
fn pair(terms: &[Quotient]) -> Option<Pair> {
    let all = || (0..terms.len()).flat_map(|i| (0..terms.len()).map(move |j| (i, j)));
    all().filter(|(coarse, fine)| coarse != fine).find_map(|(coarse, fine)| {
        let (large, small) = (&terms[coarse], &terms[fine]);
        if large.m % small.m != 0 {
            return None;
        }
        let k = large.m / small.m;
        let by = -large.times / k;
        if large.times % k != 0
            || by.signum() != small.times.signum()
            || by.abs() > small.times.abs()
        {
            return None;
        }
        // `(x + b) // m` is `(x + a) // m + d`.
        let more = large.x.clone().plus(&small.x, -1)?.as_constant()?;
        let (low, high) = (more.div_euclid(small.m), -(-more).div_euclid(small.m));
        Some(Pair { coarse, fine, by, values: Interval::new(-high, k - 1 - low) })
    })
}

/// The greatest common divisor; zero of nothing.
pub fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i128::try_from(a).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::visit::{Fold, Subst};
    use crate::{Buffer, Param, Stmt, index};

    fn span(e: Expr) -> Option<(i128, i128)> {
        let form = Linear::from_expr(&e).expect("small");
        form.span(&Ranges::default()).map(|i| (i.lo, i.hi))
    }

    #[test]
    fn quotients_of_one_number_are_taken_together() {
        let w = Var::index("w");
        let over = |n: i64| w.expr().floordiv(n);
        assert_eq!(span(over(4) * 2 - over(12) * 6), Some((0, 4)));
        assert_eq!(span(over(2) - (&w + 10).floordiv(12) * 6), Some((-5, 0)));
        assert_eq!(span((&w + 10).floordiv(12) - over(12)), Some((0, 1)));
        assert_eq!(span((&w + 63).floordiv(64) - over(64)), Some((0, 1)));
        assert_eq!(span(&w - over(3) * 3), Some((0, 2)));
        assert_eq!(span(&w - over(6) * 6 - w.expr().floormod(2)), Some((0, 4)));
        assert_eq!(span(w.expr() * 2 - over(3) * 3), None, "one `w` is left");
        assert_eq!(span(over(5) - over(3)), None);
    }

    #[test]
    fn quotients_of_quotients_and_of_remainders_are_those_of_one_number() {
        let w = Var::index("w");
        let half = || (&w + 1).floordiv(2);
        assert_eq!(span(half().floordiv(6) - (&w + 1).floordiv(12)), Some((0, 0)));
        assert_eq!(span(half() - half().floordiv(6) * 6), Some((0, 5)));
        assert_eq!(span((half() + 5).floordiv(6) - (&w + 1).floordiv(12)), Some((0, 1)));
        let few = (w.expr().floormod(32) + 7 - w.expr().floormod(8)).floordiv(8);
        assert_eq!(span(few - w.expr().floordiv(8) + w.expr().floordiv(32) * 4), Some((0, 0)));
        let part = (&w + 1).floormod(12).floordiv(2);
        assert_eq!(span(half() - (&w + 1).floordiv(12) * 6 - part), Some((0, 0)));
        // A remainder that is divided by what does not divide its divisor.
        let thirds = || w.expr().floordiv(3);
        assert_eq!(span(w.expr().floormod(3).floordiv(2)), Some((0, 1)));
        assert_eq!(span((w.expr() + thirds()).floordiv(2) - thirds() * 2), Some((0, 1)));
        let left = || w.expr() - w.expr().floordiv(8) * 8;
        assert_eq!(span((left() + 4).floordiv(3) * 3), Some((3, 9)));
        assert_eq!(span((left() + 4).floordiv(3) * 2 - left()), Some((-1, 2)));
        // A part of what tiles of six leave over.
        let left = || half() - (&w + 1).floordiv(12) * 6;
        assert_eq!(span(left().floordiv(4)), Some((0, 1)));
        assert_eq!(span(left() - left().floordiv(4) * 4), Some((0, 3)));
    }

    #[test]
    fn a_product_that_is_an_extent_is_no_more_than_the_cells_of_a_tensor() {
        let [h, w, i] = ["h", "w", "i"].map(Var::index);
        let cells = h.expr() * &w * 65;
        let x = Buffer::new("x", vec![cells.clone()], DType::F32);
        let func = TensorFunc::new(vec![Param::tensor(&x)], Stmt::seq([]));
        let mut ranges = Ranges::default();
        ranges.bind_sizes(&func);
        assert!(ranges.interval(&cells).hi <= MAX_CELLS as i128);
        ranges.bind_loop(&i, &Range::upto(cells.floordiv(64) + 1));
        assert!(ranges.stays(&(i.expr() * 64 + 63)));
    }

    #[test]
    fn a_term_of_an_extent_is_no_more_than_the_extent() {
        let [n, m, k] = ["n", "m", "k"].map(Var::index);
        let shape = vec![n.expr() * 55, m.expr() * 3 + k.expr() * 2 + 5];
        let x = Buffer::new("x", shape.clone(), DType::F32);
        let func = TensorFunc::new(vec![Param::tensor(&x)], Stmt::seq([]));
        let mut ranges = Ranges::default();
        ranges.bind_sizes(&func);
        let most = |v: &Var| ranges.interval(&v.expr()).hi;
        let cells = MAX_CELLS as i128;
        assert_eq!(most(&n), cells / 55);
        assert_eq!((most(&m), most(&k)), ((cells - 5) / 3, (cells - 5) / 2));
        assert!(ranges.stays(&shape[0]));
        // Memory of its own may be larger than what the function is given.
        ranges.bind_memory(&[n.expr(), Expr::i32(1000)]);
        assert_eq!(ranges.interval(&n.expr()).hi, cells / 1000);
    }

    #[test]
    fn a_size_that_an_extent_exceeds_by_a_number_is_bounded() {
        let [n, w] = ["n", "w"].map(Var::index);
        let x = Buffer::new("x", vec![n.expr(), &w + 1, Expr::i32(252)], DType::F32);
        let func = TensorFunc::new(vec![Param::tensor(&x)], Stmt::seq([]));
        let mut ranges = Ranges::default();
        ranges.bind_sizes(&func);
        assert!(ranges.interval(&w.expr()).hi <= (MAX_CELLS / 252) as i128);
        assert!(ranges.stays(&(w.expr() * 2 + 2)));
    }

    #[test]
    fn a_dividend_that_may_wrap_is_not_taken_together() {
        let [w, n] = ["w", "n"].map(Var::index);
        let mut ranges = Ranges::default();
        ranges.bind(&n, Interval::new(0, 1 << 20));
        let one = |v: &Var| Linear::from_expr(&((v + 63).floordiv(64) - v.expr().floordiv(64)));
        assert_eq!(one(&n).and_then(|l| l.values(&ranges)), Some(Interval::new(0, 1)));
        let wide = one(&w).and_then(|l| l.values(&ranges)).expect("an interval");
        assert!(wide.hi > 1, "{wide:?}");
        // The loop that takes what is left over has one iteration at most.
        let i = Var::index("i");
        let extent = (&n + 63).floordiv(64) - n.expr().floordiv(64);
        ranges.bind_loop(&i, &Range::upto(extent));
        assert_eq!(ranges.interval(&i.expr()), Interval::new(0, 0));
    }

    proptest! {
        #[test]
        fn a_span_holds_every_value(
            parts in proptest::collection::vec(
                (-9i64..9, 1i64..13, 1i64..5, -6i64..7, 0u8..7), 1..5),
            constant in -5i64..5,
        ) {
            let w = Var::index("w");
            let one = |(a, m, n, c, kind): &(i64, i64, i64, i64, u8)| {
                let of = &w + *a;
                let term = match kind {
                    0 => of.floormod(*m),
                    1 => of.floordiv(*m),
                    2 => (of.floordiv(*n) + *a).floordiv(*m),
                    4 => (of.clone() + of.floordiv(*m) * *a).floordiv(*n),
                    5 => of.floormod(*m).floordiv(*n),
                    3 => (of.clone().floordiv(*n) - of.floordiv(*n * *m) * *m).floordiv(*n),
                    _ => (of.clone().floormod(*m * *n) * 2 - of.floormod(*m) + *a).floordiv(*n),
                };
                term * *c
            };
            let e = parts.iter().map(one).fold(Expr::i32(constant as i32), |a, b| a + b);
            let form = Linear::from_expr(&e).expect("small");
            let mut ranges = Ranges::default();
            ranges.bind(&w, Interval::new(0, 299));
            let found = [form.span(&Ranges::default()), form.values(&ranges)];
            for value in 0..300 {
                let at = Subst::vars([(w.clone(), Expr::i32(value))]).expr(&e);
                let at = index::simplify(&at, &Ranges::default()).as_int().expect("a number");
                for found in found.into_iter().flatten() {
                    prop_assert!(found.contains(at.into()), "{e}: {at} {found:?}");
                }
            }
        }
    }

    #[test]
    fn sums_are_multiplied_out_and_written_in_one_order() {
        let [i, j] = ["i", "j"].map(Var::index);
        let form = Linear::from_expr(&((&i * 3 + &j - 5) * 4 + &i)).expect("small");
        assert_eq!((form.coefficient(&i), form.coefficient(&j)), (Some(13), Some(4)));
        assert_eq!(form.to_expr().map(|e| e.to_string()).as_deref(), Some("i * 13 + j * 4 - 20"));
        assert_eq!(Linear::from_expr(&(i.expr() - &i)).and_then(|l| l.as_constant()), Some(0));
    }

    #[test]
    fn what_is_not_linear_hides_its_variables() {
        let [i, j] = ["i", "j"].map(Var::index);
        let form = Linear::from_expr(&(i.expr().floordiv(2) * 6 + &j)).expect("small");
        assert_eq!((form.coefficient(&i), form.coefficient(&j)), (None, Some(1)));
        assert_eq!(form.terms[0].1, 6);
        let narrow = Var::new("k", DType::I8);
        let form = Linear::from_expr(&(narrow.expr() + narrow.expr())).expect("small");
        assert_eq!(form.coefficient(&narrow), None);
    }

    #[test]
    fn a_form_fits_where_its_interval_does() {
        let i = Var::index("i");
        let mut ranges = Ranges::default();
        ranges.bind(&i, Interval::new(0, 65535));
        let far = Linear::from_expr(&(&i * 65536)).expect("small");
        assert_eq!(far.values(&ranges), Some(Interval::new(0, 65535 << 16)));
        assert_eq!(far.fits(&ranges), None);
        assert!(Linear::from_expr(&(&i * 32767)).and_then(|l| l.fits(&ranges)).is_some());
    }

    #[test]
    fn loops_know_their_open_ends() {
        let [n, i, j] = ["n", "i", "j"].map(Var::index);
        let mut ranges = Ranges::default();
        ranges.bind_size(&n);
        let values = |e: Expr, ranges: &Ranges| {
            let form = Linear::from_expr(&e).expect("a form");
            form.values(ranges).map(|i| (i.lo, i.hi)).expect("values")
        };
        // `for i in range(n): for j in range(i, n)`.
        ranges.bind_loop(&i, &Range::upto(n.expr()));
        assert_eq!(values(n.expr() - &i, &ranges).0, 1);
        assert_eq!(values(i.expr() - &n + 3, &ranges).1, 2);
        ranges.bind_loop(&j, &Range { min: i.expr(), extent: n.expr() - &i });
        assert_eq!(values(j.expr() - &i, &ranges).0, 0);
        assert_eq!(values(n.expr() - &j, &ranges).0, 1);
        // Another loop over the same variable, of which the ends are numbers.
        ranges.bind_loop(&i, &Range::upto(Expr::i32(5)));
        assert!(values(n.expr() - &i, &ranges).0 < 0);
    }
}
