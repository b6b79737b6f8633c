//! The simplex tableau: rational feasibility, optima and redundancy.
//!
//! Every unknown is either a column (its value in the current vertex is zero) or a row, an affine
//! function of the columns with a denominator of its own. Constraints are unknowns that must not be
//! negative. Bland's rule chooses pivots, so that no run is endless.
//!
//! This is the one place whose numbers grow without end. It works on 128 bits, whose products of 64
//! bits are single instructions, and where those do not suffice the whole question is asked again in
//! big integers: see [`exact`].

use num_bigint::BigInt;

use crate::num::{self, Budget, Int, Res, Stop};

/// A number of a tableau; `None` is an overflow.
pub(crate) trait Num: Clone + PartialEq {
    /// How many operations one with such numbers counts for.
    const COST: usize;
    fn from_int(v: Int) -> Self;
    fn to_int(&self) -> Option<Int>;
    fn sign(&self) -> i8;
    fn times(&self, by: &Self) -> Option<Self>;
    fn plus(&self, by: &Self) -> Option<Self>;
    fn negated(&self) -> Option<Self>;
    fn gcd(&self, with: &Self) -> Self;
    /// The quotient by a divisor of it.
    fn by(&self, divisor: &Self) -> Self;
    fn is_one(&self) -> bool;
    /// The quotient, rounded down; the divisor is positive.
    fn floored(&self, divisor: &Self) -> Self;
}

impl Num for Int {
    const COST: usize = 1;
    fn from_int(v: Int) -> Self {
        v
    }
    fn to_int(&self) -> Option<Int> {
        Some(*self)
    }
    fn sign(&self) -> i8 {
        self.signum() as i8
    }
    #[inline]
    fn times(&self, by: &Self) -> Option<Self> {
        num::mul(*self, *by).ok()
    }
    #[inline]
    fn plus(&self, by: &Self) -> Option<Self> {
        self.checked_add(*by)
    }
    fn negated(&self) -> Option<Self> {
        self.checked_neg()
    }
    fn gcd(&self, with: &Self) -> Self {
        num::gcd(*self, *with)
    }
    fn by(&self, divisor: &Self) -> Self {
        self / divisor
    }
    fn is_one(&self) -> bool {
        *self == 1
    }
    fn floored(&self, divisor: &Self) -> Self {
        num::floor_div(*self, *divisor)
    }
}

impl Num for BigInt {
    const COST: usize = 64;
    fn from_int(v: Int) -> Self {
        BigInt::from(v)
    }
    fn to_int(&self) -> Option<Int> {
        Int::try_from(self).ok()
    }
    fn sign(&self) -> i8 {
        match BigInt::sign(self) {
            num_bigint::Sign::Minus => -1,
            num_bigint::Sign::NoSign => 0,
            num_bigint::Sign::Plus => 1,
        }
    }
    fn times(&self, by: &Self) -> Option<Self> {
        Some(self * by)
    }
    fn plus(&self, by: &Self) -> Option<Self> {
        Some(self + by)
    }
    fn negated(&self) -> Option<Self> {
        Some(-self)
    }
    fn gcd(&self, with: &Self) -> Self {
        let (mut a, mut b) = (self.clone(), with.clone());
        while Num::sign(&b) != 0 {
            let rest = &a % &b;
            (a, b) = (b, rest);
        }
        if Num::sign(&a) < 0 { -a } else { a }
    }
    fn by(&self, divisor: &Self) -> Self {
        self / divisor
    }
    fn is_one(&self) -> bool {
        *self == BigInt::from(1)
    }
    fn floored(&self, divisor: &Self) -> Self {
        let quotient = self / divisor;
        let rest = self - &quotient * divisor;
        if Num::sign(&rest) < 0 { quotient - 1 } else { quotient }
    }
}

/// Runs a question of a tableau in 128 bits, and in big integers where those do not suffice.
macro_rules! exact {
    (|$N:ident| $body:expr) => {{
        let first = {
            type $N = $crate::num::Int;
            $body
        };
        match first {
            Err($crate::num::Stop::TooLarge) => {
                type $N = num_bigint::BigInt;
                $body
            }
            answer => answer,
        }
    }};
}
pub(crate) use exact;

/// Where an unknown is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TableauPlace {
    Row(usize),
    Col(usize),
}

#[derive(Clone, Debug)]
struct Unknown {
    place: TableauPlace,
    /// Whether it must not be negative.
    restricted: bool,
}

/// A tableau over `vars` variables, the first unknowns.
#[derive(Clone)]
pub(crate) struct Tableau<'b, N> {
    budget: &'b Budget,
    unknowns: Vec<Unknown>,
    vars: usize,
    /// Rows: denominator, constant, a coefficient a column.
    rows: Vec<Vec<N>>,
    row_of: Vec<usize>,
    col_of: Vec<usize>,
    empty: bool,
}

/// A rational number with positive denominator.
pub(crate) type Ratio<N> = (N, N);

fn big<T>(v: Option<T>) -> Res<T> {
    v.ok_or(Stop::TooLarge)
}

impl<'b, N: Num> Tableau<'b, N> {
    pub fn new(vars: usize, budget: &'b Budget) -> Self {
        Tableau {
            budget,
            unknowns: (0..vars)
                .map(|at| Unknown { place: TableauPlace::Col(at), restricted: false })
                .collect(),
            vars,
            rows: Vec::new(),
            row_of: Vec::new(),
            col_of: (0..vars).collect(),
            empty: false,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.empty
    }

    fn columns(&self) -> usize {
        self.col_of.len()
    }

    /// Adds an unknown that is an affine function of the variables: constant first.
    fn add_function(&mut self, constant: &N, coefficients: &[N]) -> Res<usize> {
        self.budget.charge(N::COST * (1 + self.rows.len() / 8))?;
        let mut row = vec![N::from_int(0); 2 + self.columns()];
        row[0] = N::from_int(1);
        row[1] = constant.clone();
        for (v, c) in coefficients.iter().enumerate() {
            if c.sign() == 0 {
                continue;
            }
            match self.unknowns[v].place {
                TableauPlace::Col(at) => {
                    let more = big(row[0].times(c))?;
                    row[2 + at] = big(row[2 + at].plus(&more))?;
                }
                TableauPlace::Row(at) => {
                    let other = &self.rows[at];
                    // row / d + c * other / e, over the common denominator.
                    let (d, e) = (row[0].clone(), other[0].clone());
                    let g = d.gcd(&e);
                    let (up, mult) = (e.by(&g), big(c.times(&d.by(&g)))?);
                    row[0] = big(d.times(&up))?;
                    for (v, o) in row.iter_mut().zip(other).skip(1) {
                        let a = if up.is_one() { v.clone() } else { big(v.times(&up))? };
                        *v = if o.sign() == 0 { a } else { big(a.plus(&big(o.times(&mult))?))? };
                    }
                }
            }
        }
        normalize(&mut row);
        let unknown = self.unknowns.len();
        self.unknowns
            .push(Unknown { place: TableauPlace::Row(self.rows.len()), restricted: false });
        self.row_of.push(unknown);
        self.rows.push(row);
        Ok(unknown)
    }

    /// Adds `row >= 0`, a constant and coefficients; no point is left where [`Tableau::is_empty`]
    /// says so afterwards.
    pub fn add(&mut self, row: &[Int]) -> Res<usize> {
        let row: Vec<N> = row.iter().map(|v| N::from_int(*v)).collect();
        self.add_row(&row)
    }

    /// [`Tableau::add`] of numbers of the tableau.
    pub fn add_row(&mut self, row: &[N]) -> Res<usize> {
        let unknown = self.add_function(&row[0], &row[1..])?;
        self.restrict(unknown)?;
        Ok(unknown)
    }

    /// Demands that an unknown is not negative.
    fn restrict(&mut self, unknown: usize) -> Res<()> {
        if !self.raise(unknown)? {
            self.empty = true;
        }
        self.unknowns[unknown].restricted = true;
        Ok(())
    }

    /// Moves to a vertex at which an unknown is not negative; whether there is one.
    fn raise(&mut self, unknown: usize) -> Res<bool> {
        loop {
            let TableauPlace::Row(at) = self.unknowns[unknown].place else { return Ok(true) };
            if self.rows[at][1].sign() >= 0 {
                return Ok(true);
            }
            let Some((col, up)) = self.improving(at, true) else { return Ok(false) };
            match self.blocking(col, up, Some(at))? {
                None => self.pivot(at, col)?,
                Some(row) => {
                    // The unknown itself reaches zero first where its ratio is no larger.
                    let (mine, other) = (&self.rows[at], &self.rows[row]);
                    let a = big(mine[1].times(&other[2 + col]))?;
                    let b = big(other[1].times(&mine[2 + col]))?;
                    // |mine.b / mine.c| <= |other.b / other.c|
                    let less = compare_abs(&a, &b)?;
                    let row = if less <= 0 { at } else { row };
                    self.pivot(row, col)?;
                }
            }
        }
    }

    /// A column whose move makes a row larger (or smaller), and whether it moves up.
    fn improving(&self, at: usize, larger: bool) -> Option<(usize, bool)> {
        let row = &self.rows[at];
        let mut best: Option<(usize, usize, bool)> = None;
        for col in 0..self.columns() {
            let sign = row[2 + col].sign();
            if sign == 0 {
                continue;
            }
            let up = (sign > 0) == larger;
            let unknown = self.col_of[col];
            if (up || !self.unknowns[unknown].restricted) && best.is_none_or(|(u, ..)| unknown < u)
            {
                best = Some((unknown, col, up));
            }
        }
        best.map(|(_, col, up)| (col, up))
    }

    /// The restricted row that first reaches zero where a column moves.
    fn blocking(&self, col: usize, up: bool, but: Option<usize>) -> Res<Option<usize>> {
        let mut best: Option<usize> = None;
        for (at, row) in self.rows.iter().enumerate() {
            let sign = row[2 + col].sign();
            let unknown = self.row_of[at];
            if Some(at) == but
                || sign == 0
                || (sign > 0) == up
                || !self.unknowns[unknown].restricted
            {
                continue;
            }
            let Some(old) = best else {
                best = Some(at);
                continue;
            };
            let other = &self.rows[old];
            let a = big(row[1].times(&other[2 + col]))?;
            let b = big(other[1].times(&row[2 + col]))?;
            let less = compare_abs(&a, &b)?;
            if less < 0 || (less == 0 && unknown < self.row_of[old]) {
                best = Some(at);
            }
        }
        Ok(best)
    }

    /// Exchanges a row and a column.
    fn pivot(&mut self, at: usize, col: usize) -> Res<()> {
        let width = 2 + self.columns();
        self.budget.charge(N::COST * (1 + self.rows.len() * width / 16))?;
        let c = 2 + col;
        {
            let row = &mut self.rows[at];
            let (d, p) = (row[0].clone(), row[c].clone());
            // y = (b + sum a_j x_j + p x_c) / d  ==>  x_c = (d y - b - sum a_j x_j) / p
            if p.sign() > 0 {
                for v in row[1..].iter_mut() {
                    *v = big(v.negated())?;
                }
                (row[0], row[c]) = (p, d);
            } else {
                row[0] = big(p.negated())?;
                row[c] = big(d.negated())?;
            }
            normalize(row);
        }
        let pivot = std::mem::take(&mut self.rows[at]);
        let mut done = Ok(());
        for (i, row) in self.rows.iter_mut().enumerate() {
            if i == at || row[c].sign() == 0 {
                continue;
            }
            done = add_pivot(row, &pivot, c);
            if done.is_err() {
                break;
            }
        }
        self.rows[at] = pivot;
        done?;
        let (row, column) = (self.row_of[at], self.col_of[col]);
        self.unknowns[row].place = TableauPlace::Col(col);
        self.unknowns[column].place = TableauPlace::Row(at);
        self.row_of[at] = column;
        self.col_of[col] = row;
        Ok(())
    }

    /// The values of the variables at the current vertex.
    pub fn vertex(&self) -> Vec<Ratio<N>> {
        self.unknowns[..self.vars]
            .iter()
            .map(|u| match u.place {
                TableauPlace::Col(_) => (N::from_int(0), N::from_int(1)),
                TableauPlace::Row(at) => {
                    let (a, d) = (&self.rows[at][1], &self.rows[at][0]);
                    let g = if d.is_one() { N::from_int(1) } else { d.gcd(a) };
                    if g.is_one() { (a.clone(), d.clone()) } else { (a.by(&g), d.by(&g)) }
                }
            })
            .collect()
    }

    /// The least value of an affine function; `None` where it has none. There is a point.
    pub fn minimum(&mut self, function: &[Int]) -> Res<Option<Ratio<N>>> {
        let row: Vec<N> = function.iter().map(|v| N::from_int(*v)).collect();
        let unknown = self.add_function(&row[0], &row[1..])?;
        let found = self.lower(unknown, |_| false)?;
        let value = match self.unknowns[unknown].place {
            TableauPlace::Col(_) => (N::from_int(0), N::from_int(1)),
            TableauPlace::Row(at) => (self.rows[at][1].clone(), self.rows[at][0].clone()),
        };
        self.forget(unknown)?;
        Ok(found.then_some(value))
    }

    /// Moves an unknown that is not restricted down as far as it goes, or until `enough`; whether it
    /// came to an end.
    fn lower(&mut self, unknown: usize, enough: impl Fn(&[N]) -> bool) -> Res<bool> {
        loop {
            match self.unknowns[unknown].place {
                TableauPlace::Col(col) => match self.blocking(col, false, None)? {
                    None => return Ok(false),
                    Some(row) => self.pivot(row, col)?,
                },
                TableauPlace::Row(at) => {
                    if enough(&self.rows[at]) {
                        return Ok(true);
                    }
                    let Some((col, up)) = self.improving(at, false) else { return Ok(true) };
                    match self.blocking(col, up, Some(at))? {
                        None => return Ok(false),
                        Some(row) => self.pivot(row, col)?,
                    }
                }
            }
        }
    }

    /// Removes an unknown, the last one, that restricts nothing.
    fn forget(&mut self, unknown: usize) -> Res<()> {
        debug_assert_eq!(unknown + 1, self.unknowns.len());
        if let TableauPlace::Col(col) = self.unknowns[unknown].place {
            // Some row depends on it: the one that it was exchanged with.
            let row = match self.blocking(col, true, None)? {
                Some(row) => Some(row),
                None => match self.blocking(col, false, None)? {
                    Some(row) => Some(row),
                    None => self.rows.iter().position(|r| r[2 + col].sign() != 0),
                },
            };
            if let Some(row) = row {
                self.pivot(row, col)?;
            }
        }
        if let TableauPlace::Row(at) = self.unknowns[unknown].place {
            self.rows.swap_remove(at);
            self.row_of.swap_remove(at);
            if let Some(moved) = self.row_of.get(at) {
                self.unknowns[*moved].place = TableauPlace::Row(at);
            }
            self.unknowns.pop();
        }
        Ok(())
    }

    /// Whether a constraint follows from the others; one that does is none any more.
    pub fn drop_redundant(&mut self, unknown: usize) -> Res<bool> {
        self.unknowns[unknown].restricted = false;
        let bounded = self.lower(unknown, |row| row[1].sign() < 0)?;
        let negative = match self.unknowns[unknown].place {
            TableauPlace::Col(_) => false,
            TableauPlace::Row(at) => self.rows[at][1].sign() < 0,
        };
        if bounded && !negative {
            return Ok(true);
        }
        self.restrict(unknown)?;
        Ok(false)
    }
}

/// `row + row[c] * pivot`, where the pivot has its old column's meaning.
fn add_pivot<N: Num>(row: &mut [N], pivot: &[N], c: usize) -> Res<()> {
    let (d, a) = (pivot[0].clone(), std::mem::replace(&mut row[c], N::from_int(0)));
    if d.is_one() {
        for (v, p) in row.iter_mut().zip(pivot).skip(1) {
            if p.sign() != 0 {
                *v = big(v.plus(&big(p.times(&a))?))?;
            }
        }
        return Ok(());
    }
    for (v, p) in row.iter_mut().zip(pivot).skip(1) {
        let kept = if v.sign() == 0 { N::from_int(0) } else { big(v.times(&d))? };
        *v = if p.sign() == 0 { kept } else { big(kept.plus(&big(p.times(&a))?))? };
    }
    row[0] = big(row[0].times(&d))?;
    normalize(row);
    Ok(())
}

fn normalize<N: Num>(row: &mut [N]) {
    let mut g = row[0].clone();
    for v in &row[1..] {
        if g.is_one() {
            return;
        }
        if v.sign() != 0 {
            g = g.gcd(v);
        }
    }
    if !g.is_one() {
        row.iter_mut().for_each(|v| *v = v.by(&g));
    }
}

fn compare_abs<N: Num>(a: &N, b: &N) -> Res<i8> {
    let a = if a.sign() < 0 { big(a.negated())? } else { a.clone() };
    let b = if b.sign() < 0 { big(b.negated())? } else { b.clone() };
    Ok(big(a.plus(&big(b.negated())?))?.sign())
}
