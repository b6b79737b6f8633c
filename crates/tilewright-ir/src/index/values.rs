//! The values of linear forms: intervals, of which one loop or one quotient alone would know less.
//!
//! Sizes that are open leave quotients in indices and extents, whose bounds one by one say nothing:
//! `w // 4 * 2 - w // 12 * 6` is between 0 and 4, since `w // 12` is `w // 4 // 3`, and `(w + 63) // 64 - w // 64`
//! is 0 or 1. Quotients of one number, up to what is added to it, are taken together ([`Linear::values`],
//! [`Linear::span`]); remainders are quotients, too. And the variable of a loop over an open extent is known by how
//! far it is from that: in `for i in range(n)` the form `n - i` is at least 1.

use crate::expr::{BinOp, Expr, ExprKind};
use crate::index::linear::{Linear, divided, gcd};
use crate::index::{Interval, Ranges};

/// Most loops whose ends are looked at, one of which may depend on another.
const LOOPS: usize = 8;

impl Linear {
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
}

/// Whether a term is a quotient or a remainder by a constant.
fn is_divided(atom: &Expr) -> bool {
    divided(atom, BinOp::FloorDiv).is_some() || divided(atom, BinOp::FloorMod).is_some()
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
