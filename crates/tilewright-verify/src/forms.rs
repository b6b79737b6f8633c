//! Terms of integers and `bool` as expressions that integer sets understand.
//!
//! The sets compute with integers that do not wrap. A form is therefore an expression over `int64`
//! variables, one for each term that is not looked into, with what wraps spelled out:
//! `x + 1` of an `int32` that may be the largest one is
//! `(x + 1 + 2**31) % 2**32 - 2**31`. At 64 bits, where the constants do not fit, what leaves the
//! type is a variable of its own. So a form has the value of its term for all data. The sets wrap
//! unsigned numbers themselves, so forms of `uint64` are `uint64` expressions.
//!
//! Products of unknowns are no part of integer sets. Integers that wrap are a ring, so a product of
//! sums is the sum of its monomials, each of which is a variable for its factors in any order:
//! `x * (y + 1)` and `y * x + x` have one form.

use std::rc::Rc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::index::Interval;
use tilewright_ir::{BinOp, DType, Expr, Intrin, Var};

use super::ranges::Ranges;
use super::term::{Fast, Node, Term, Terms};
use tilewright_ir::scalar::Scalar;

/// Operators of a term that are looked through; what is deeper is a variable.
const DEPTH: usize = 48;

/// Operands of a list that are looked at; a longer list is a variable.
const OPERANDS: usize = 32;

/// Monomials up to which a product of sums is spread out.
const MONOMIALS: usize = 32;

/// The type of the forms of a type.
fn form_type(dtype: DType) -> DType {
    match dtype {
        _ if dtype.is_bool() => DType::BOOL,
        DType::U64 => DType::U64,
        _ => DType::I64,
    }
}

/// Factors in order, and the coefficient.
type Monomial = (Vec<Term>, i128);

/// Forms by term.
#[derive(Default)]
pub struct Forms {
    made: Fast<Term, Option<Expr>>,
    /// Variables by the sum of monomials whose value in a type they stand for.
    vars: HashMap<(Rc<[Monomial]>, DType), Var>,
    /// The same the other way round.
    symbols: HashMap<Var, (Rc<[Monomial]>, DType)>,
    spread: Fast<Term, Option<Rc<[Monomial]>>>,
    /// What operators give for any data.
    free: Ranges,
}

impl Forms {
    /// The form of an integer or `bool`: an `int64`, `uint64` or `bool` expression. `None` where an
    /// arbitrary value occurs, which is another one at each use.
    pub fn form(&mut self, terms: &Terms, t: Term) -> Option<Expr> {
        self.at(terms, t, DEPTH)
    }

    /// The term that a variable of a form stands for, unless it is a sum or a product.
    pub fn term(&self, v: &Var) -> Option<Term> {
        match &*self.symbols.get(v)?.0 {
            [(factors, 1)] if factors.len() == 1 => factors.first().copied(),
            _ => None,
        }
    }

    /// The type of the values that a variable of a form has.
    pub fn dtype(&self, v: &Var) -> Option<DType> {
        self.symbols.get(v).map(|(_, dtype)| *dtype)
    }

    fn at(&mut self, terms: &Terms, t: Term, depth: usize) -> Option<Expr> {
        if let Some(form) = self.made.get(&t) {
            return form.clone();
        }
        let form = match depth.checked_sub(1) {
            _ if Interval::of_type(terms.dtype(t)).is_none() => None,
            Some(below) if terms.dtype(t).is_bool() => self.condition(terms, t, below),
            Some(below) => self.integer(terms, t, below),
            None => self.symbol(terms, t),
        };
        self.made.insert(t, form.clone());
        form
    }

    /// A variable for a term.
    fn symbol(&mut self, terms: &Terms, t: Term) -> Option<Expr> {
        (!arbitrary(terms, t)).then(|| self.variable(Rc::from([(vec![t], 1)]), terms.dtype(t)))
    }

    /// The variable for the value that a type makes of a sum.
    fn variable(&mut self, sum: Rc<[Monomial]>, dtype: DType) -> Expr {
        let key = (sum, dtype);
        if let Some(known) = self.vars.get(&key) {
            return known.expr();
        }
        let var = Var::new(format!("s{}", self.vars.len()), form_type(dtype));
        self.symbols.insert(var.clone(), key.clone());
        self.vars.insert(key, var.clone());
        var.expr()
    }

    /// The monomials of an integer; `None` where they are too many.
    fn monomials(&mut self, terms: &Terms, t: Term, depth: usize) -> Option<Rc<[Monomial]>> {
        if let Some(known) = self.spread.get(&t) {
            return known.clone();
        }
        let below = depth.checked_sub(1)?;
        let dtype = terms.dtype(t);
        let mut parts = |operands: &[Term]| -> Option<Vec<Rc<[Monomial]>>> {
            operands.iter().map(|t| self.monomials(terms, *t, below)).collect()
        };
        let all = match terms.operator(t) {
            Some((BinOp::Add, _, operands)) => parts(operands).map(|parts| parts.concat()),
            Some((BinOp::Sub, _, operands)) => parts(operands).map(|parts| {
                let signed = parts.iter().zip([1, -1]);
                let each = signed.flat_map(|(part, sign)| part.iter().map(move |m| (m, sign)));
                each.map(|((factors, c), sign)| (factors.clone(), c * sign)).collect()
            }),
            Some((BinOp::Mul, _, operands)) => parts(operands).and_then(|parts| {
                parts
                    .iter()
                    .try_fold(vec![(Vec::new(), 1)], |all, part| multiply(&all, part, dtype))
            }),
            _ => Some(match terms.constant(t) {
                Some(c) => vec![(Vec::new(), c)],
                None => vec![(vec![t], 1)],
            }),
        };
        let all = all.map(|all| collected(all, dtype)).filter(|all| all.len() <= MONOMIALS);
        let all: Option<Rc<[Monomial]>> = all.map(Rc::from);
        self.spread.insert(t, all.clone());
        all
    }

    /// A product of unknowns: the sum of its monomials.
    fn polynomial(&mut self, terms: &Terms, t: Term, depth: usize) -> Option<Expr> {
        let dtype = terms.dtype(t);
        if arbitrary(terms, t) {
            return None;
        }
        let Some(monomials) = self.monomials(terms, t, depth) else { return self.symbol(terms, t) };
        let of = form_type(dtype);
        let mut sum: Option<Expr> = None;
        let mut range = Some(Interval::point(0));
        for (factors, c) in monomials.iter() {
            let (factors, c) = (factors.as_slice(), *c);
            let own = match *factors {
                [] => Some(Interval::point(1)),
                [t] => self.free.interval(terms, t),
                _ => Interval::of_type(dtype),
            };
            let part = own.and_then(|r| r.times(c));
            range = range.zip(part).and_then(|(a, b)| a.plus(b));
            let c = Expr::int(c as i64, of);
            let part = match *factors {
                [] => c,
                [t] => Expr::binary(BinOp::Mul, self.at(terms, t, depth)?, c),
                _ => {
                    let product = self.variable(Rc::from([(factors.to_vec(), 1)]), dtype);
                    Expr::binary(BinOp::Mul, product, c)
                }
            };
            sum = sum.map(|sum| Expr::binary(BinOp::Add, sum, part.clone())).or(Some(part));
        }
        let sum = sum.unwrap_or_else(|| Expr::int(0, of));
        self.reduced(terms, t, sum, range, dtype)
    }

    fn integer(&mut self, terms: &Terms, t: Term, depth: usize) -> Option<Expr> {
        let dtype = terms.dtype(t);
        let of = form_type(dtype);
        if let Some((op, _, operands)) = terms.operator(t) {
            use BinOp::*;
            let unknowns = operands.iter().filter(|t| terms.constant(**t).is_none()).count();
            let affine = match op {
                // What leaves 64 bits has no form but that of the whole sum.
                Add | Sub | Mul if dtype == DType::I64 => {
                    return self.polynomial(terms, t, depth);
                }
                Mul if unknowns > 1 => return self.polynomial(terms, t, depth),
                Add | Sub | Min | Max | Mul => true,
                FloorDiv | FloorMod | TruncDiv | TruncMod => {
                    operands.get(1).and_then(|k| terms.constant(*k)).is_some_and(|k| k != 0)
                }
                _ => false,
            };
            if !affine || operands.len() > OPERANDS {
                return self.symbol(terms, t);
            }
            let exact = self.chain(terms, op, operands, depth)?;
            let range = self.free.unwrapped(terms, t);
            return self.reduced(terms, t, exact, range, dtype);
        }
        let exact = match terms.node(t) {
            Node::Const(bits) => {
                return Some(Expr::int(Scalar::from_bits(bits, dtype).as_i128() as i64, of));
            }
            // What the type of the form does not hold is taken modulo its width by the sets.
            Node::Cast(from, a) if from.is_int() && form_type(from) != of => {
                let inner = Expr::cast_node(self.at(terms, a, depth)?, dtype);
                return Some(if dtype == of { inner } else { Expr::cast_node(inner, of) });
            }
            Node::Cast(from, a) if from.is_int() => self.at(terms, a, depth)?,
            Node::Cast(from, a) if from.is_bool() => {
                let (one, zero) = (Expr::int(1, of), Expr::int(0, of));
                Expr::select(self.at(terms, a, depth)?, one, zero)
            }
            Node::Ite(c, a, b) => {
                let c = self.at(terms, c, depth)?;
                Expr::select(c, self.at(terms, a, depth)?, self.at(terms, b, depth)?)
            }
            Node::Intrin(Intrin::Shr, _, [a, by]) => match terms.constant(by) {
                Some(k) if (0..i128::from(dtype.bits.min(32))).contains(&k) => {
                    let k = Expr::int(1 << k, of);
                    Expr::binary(BinOp::FloorDiv, self.at(terms, a, depth)?, k)
                }
                _ => return self.symbol(terms, t),
            },
            Node::Intrin(Intrin::BitAnd, _, [a, b]) => {
                let mask = [(a, b), (b, a)].into_iter().find_map(|(x, mask)| {
                    let ones = terms.constant(mask).filter(|m| *m >= 0 && m & (m + 1) == 0)?;
                    Some((x, i64::try_from(ones + 1).ok()?))
                });
                match mask {
                    Some((x, count)) => {
                        let count = Expr::int(count, of);
                        Expr::binary(BinOp::FloorMod, self.at(terms, x, depth)?, count)
                    }
                    None => return self.symbol(terms, t),
                }
            }
            Node::Undef | Node::Unwritten => return None,
            _ => return self.symbol(terms, t),
        };
        let range = self.free.unwrapped(terms, t);
        self.reduced(terms, t, exact, range, dtype)
    }

    fn chain(&mut self, terms: &Terms, op: BinOp, list: &[Term], depth: usize) -> Option<Expr> {
        let parts: Option<Vec<Expr>> = list.iter().map(|t| self.at(terms, *t, depth)).collect();
        parts?.into_iter().reduce(|all, part| Expr::binary(op, all, part))
    }

    /// The value that a type makes of an integer in a range.
    fn reduced(
        &mut self,
        terms: &Terms,
        t: Term,
        exact: Expr,
        range: Option<Interval>,
        dtype: DType,
    ) -> Option<Expr> {
        let whole = Interval::of_type(dtype)?;
        if form_type(dtype) == DType::U64 || range.is_some_and(|r| r.within(whole)) {
            return Some(exact);
        }
        if dtype.bits <= 32 {
            let least = i64::try_from(whole.lo).ok()?;
            let size = int64(1 << dtype.bits);
            let shifted = Expr::binary(BinOp::Sub, exact, int64(least));
            let rest = Expr::binary(BinOp::FloorMod, shifted, size);
            return Some(Expr::binary(BinOp::Add, rest, int64(least)));
        }
        // One variable for all terms that wrap to the same value.
        let other = match self.monomials(terms, t, DEPTH) {
            Some(sum) if !arbitrary(terms, t) => self.variable(sum, dtype),
            _ => self.symbol(terms, t)?,
        };
        let (Ok(least), Ok(most)) = (i64::try_from(whole.lo), i64::try_from(whole.hi)) else {
            return Some(other);
        };
        let fits = Expr::binary(
            BinOp::And,
            Expr::binary(BinOp::Le, int64(least), exact.clone()),
            Expr::binary(BinOp::Le, exact.clone(), int64(most)),
        );
        Some(Expr::select(fits, exact, other))
    }

    fn condition(&mut self, terms: &Terms, t: Term, depth: usize) -> Option<Expr> {
        if let Some((op, of, operands)) = terms.operator(t) {
            let compares = op.is_compare() && (of.is_int() || (of.is_bool() && op == BinOp::Eq));
            return if (compares || op.is_logic()) && operands.len() <= OPERANDS {
                self.chain(terms, op, operands, depth)
            } else {
                self.symbol(terms, t)
            };
        }
        match terms.node(t) {
            Node::Const(bits) => Some(Expr::bool(bits != 0)),
            Node::Not(a) => self.at(terms, a, depth).map(Expr::not_node),
            Node::Cast(from, a) if from.is_int() => {
                let a = self.at(terms, a, depth)?;
                let zero = Expr::int(0, a.dtype());
                Some(Expr::binary(BinOp::Ne, a, zero))
            }
            Node::Ite(c, a, b) => {
                let c = self.at(terms, c, depth)?;
                Some(Expr::select(c, self.at(terms, a, depth)?, self.at(terms, b, depth)?))
            }
            Node::Undef | Node::Unwritten => None,
            _ => self.symbol(terms, t),
        }
    }
}

fn int64(v: i64) -> Expr {
    Expr::int(v, DType::I64)
}

/// Whether an arbitrary value is a part of a term. Those have the smallest numbers of all terms.
fn arbitrary(terms: &Terms, t: Term) -> bool {
    terms.below([t]).iter().take(2).any(|t| matches!(terms.node(*t), Node::Undef | Node::Unwritten))
}

/// The product of two sums, of which each wraps; `None` where it has too many monomials.
fn multiply(a: &[Monomial], b: &[Monomial], dtype: DType) -> Option<Vec<Monomial>> {
    if a.len().saturating_mul(b.len()) > MONOMIALS {
        return None;
    }
    let mut all = Vec::new();
    for (x, c) in a {
        for (y, d) in b {
            let mut factors = [x.as_slice(), y.as_slice()].concat();
            factors.sort_unstable();
            all.push((factors, c.checked_mul(*d)?));
        }
    }
    Some(collected(all, dtype))
}

/// Monomials with like ones added, and coefficients as values of the type.
fn collected(mut all: Vec<Monomial>, dtype: DType) -> Vec<Monomial> {
    all.sort_unstable();
    let like = all.chunk_by(|(a, _), (b, _)| a == b);
    let sums = like.filter_map(|like| {
        let (factors, _) = like.first()?;
        let c = like.iter().fold(0i128, |sum, (_, c)| sum.wrapping_add(*c));
        let c = Scalar::int(c as i64, dtype).as_i128();
        (c != 0).then(|| (factors.clone(), c))
    });
    sums.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{Integers, Path};
    use crate::term::{Val, Wrong};

    /// What the sets say of `x * (y + 1) - 3`, of `(x - 3) + y * x` and of `x * y`: whether the first
    /// two are equal, whether the first and the last are, and whether `5 < second` follows from
    /// `5 < first`.
    fn distributes(dtype: DType) -> Result<(bool, bool, Option<bool>), Wrong> {
        let mut terms = Terms::new(1 << 10);
        let (x, y) = (terms.input(0, 0, dtype)?, terms.input(0, 1, dtype)?);
        let next = terms.binary(BinOp::Add, dtype, y, known_int(1, dtype))?;
        let product = terms.binary(BinOp::Mul, dtype, x, next)?;
        let a = terms.binary(BinOp::Sub, dtype, product, known_int(3, dtype))?;
        let less = terms.binary(BinOp::Sub, dtype, x, known_int(3, dtype))?;
        let plain = terms.binary(BinOp::Mul, dtype, y, x)?;
        let b = terms.binary(BinOp::Add, dtype, less, plain)?;
        let first = terms.binary(BinOp::Lt, dtype, known_int(5, dtype), a)?;
        let second = terms.binary(BinOp::Lt, dtype, known_int(5, dtype), b)?;
        let (a, b, plain) = (
            term_of(&mut terms, a, dtype)?,
            term_of(&mut terms, b, dtype)?,
            term_of(&mut terms, plain, dtype)?,
        );
        let first = term_of(&mut terms, first, DType::BOOL)?;
        let second = term_of(&mut terms, second, DType::BOOL)?;
        let mut with = Integers::new(u64::MAX, true);
        let mut path = Path::default();
        let equal = path.equal(&mut with, &terms, a, b);
        let wrong = path.equal(&mut with, &terms, a, plain);
        path.enter(&terms, first, true);
        Ok((equal, wrong, path.truth(&mut with, &terms, second)))
    }

    fn known_int(v: i64, dtype: DType) -> Val {
        Val::Known(Scalar::int(v, dtype).bits())
    }

    fn term_of(terms: &mut Terms, v: Val, dtype: DType) -> Result<Term, Wrong> {
        terms.term(v, dtype)
    }

    #[test]
    fn products_distribute_in_every_type() {
        for dtype in [DType::I8, DType::U8, DType::I32, DType::U32, DType::I64, DType::U64] {
            assert_eq!(distributes(dtype), Ok((true, false, Some(true))), "{dtype}");
        }
    }
}
