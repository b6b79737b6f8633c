//! Linear forms of integer expressions: `constant + sum(coefficient * atom)`.
//!
//! An atom is a variable or a term that is not looked into (`k % 2`, an element of a buffer, a
//! product of variables). Coefficients are exact (`i128`), so a form is an integer; the machine's
//! value is that integer reduced to the type. Both are the same wherever the interval of the form
//! fits the type ([`Linear::fits`]).
//!
//! [`Linear::from_expr`] only multiplies out. What needs to know the values of variables (division,
//! remainder) is the simplifier's, and what needs exact sets is the crate's of integer sets.

use std::cmp::Reverse;

use crate::dtype::DType;
use crate::equal::same_expr;
use crate::expr::{BinOp, Expr, ExprKind, Var};

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

/// `y` and `e` of `y // e`, or of `y % e` as `op` says, with a positive constant `e`.
pub fn divided(atom: &Expr, op: BinOp) -> Option<(&Expr, i128)> {
    match atom.kind() {
        ExprKind::Binary(found, y, e) if *found == op => {
            e.as_int().filter(|e| *e > 0).map(|e| (y, i128::from(e)))
        }
        _ => None,
    }
}

/// `op`, `y` and `e` of a quotient `y // e` or a remainder `y % e` by an `e` that is no number, such as an open size.
pub fn divided_by_size(e: &Expr) -> Option<(BinOp, &Expr, &Expr)> {
    match e.kind() {
        ExprKind::Binary(op @ (BinOp::FloorDiv | BinOp::FloorMod), y, by) => {
            by.as_int().is_none().then_some((*op, y, by))
        }
        _ => None,
    }
}

/// The greatest common divisor; zero of nothing.
pub fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i128::try_from(a).unwrap_or(1)
}
