//! Terms of integers and `bool` as expressions that integer sets understand.
//!
//! The sets compute with integers that do not wrap. A form is therefore an expression over `int64`
//! variables, one for each term that is not looked into, with what wraps spelled out:
//! `x + 1` of an `int32` that may be the largest one is
//! `(x + 1 + 2**31) % 2**32 - 2**31`. At 64 bits, where the constants do not fit, what leaves the
//! type is a variable of its own. So a form has the value of its term for all data.

use tilewright_ir::interval::Interval;
use tilewright_ir::{BinOp, DType, Expr, Intrin, Var};

use super::ranges::Ranges;
use super::term::{Fast, Node, Term, Terms};
use crate::scalar::Scalar;

/// Operators of a term that are looked through; what is deeper is a variable.
const DEPTH: usize = 48;

/// Operands of a list that are looked at; a longer list is a variable.
const OPERANDS: usize = 32;

/// Whether the values of a type are those of `int64` or fewer.
fn countable(dtype: DType) -> bool {
    Interval::of_type(dtype).is_some_and(|all| all.hi <= i128::from(i64::MAX))
}

/// Forms by term.
#[derive(Default)]
pub struct Forms {
    made: Fast<Term, Option<Expr>>,
    symbols: Vec<(Var, Term)>,
    /// What operators give for any data.
    free: Ranges,
}

impl Forms {
    /// The form of an integer or `bool`: an `int64` or `bool` expression. `None` where an arbitrary
    /// value occurs, which is another one at each use.
    pub fn of(&mut self, terms: &Terms, t: Term) -> Option<Expr> {
        self.at(terms, t, DEPTH)
    }

    /// The term that a variable of a form stands for.
    pub fn term(&self, v: &Var) -> Option<Term> {
        self.symbols.iter().find(|(w, _)| w == v).map(|(_, t)| *t)
    }

    fn at(&mut self, terms: &Terms, t: Term, depth: usize) -> Option<Expr> {
        if let Some(form) = self.made.get(&t) {
            return form.clone();
        }
        let form = match depth.checked_sub(1) {
            _ if !countable(terms.dtype(t)) => None,
            Some(below) if terms.dtype(t).is_bool() => self.condition(terms, t, below),
            Some(below) => self.integer(terms, t, below),
            None => self.symbol(terms, t),
        };
        self.made.insert(t, form.clone());
        form
    }

    /// A variable for a term.
    fn symbol(&mut self, terms: &Terms, t: Term) -> Option<Expr> {
        let dtype = terms.dtype(t);
        // The terms for arbitrary values have the smallest numbers.
        let arbitrary = |t: &Term| matches!(terms.node(*t), Node::Undef | Node::Unwritten);
        if terms.below([t]).iter().take(2).any(arbitrary) {
            return None;
        }
        let dtype = if dtype.is_bool() { DType::BOOL } else { DType::I64 };
        let var = Var::new(format!("t{}", t.0), dtype);
        self.symbols.push((var.clone(), t));
        Some(var.expr())
    }

    fn integer(&mut self, terms: &Terms, t: Term, depth: usize) -> Option<Expr> {
        let dtype = terms.dtype(t);
        let constant = |t: Term| match terms.node(t) {
            Node::Const(bits) => Some(Scalar::from_bits(bits, terms.dtype(t)).as_i128()),
            _ => None,
        };
        let exact = match terms.node(t) {
            Node::Const(_) => {
                let v = constant(t).and_then(|v| i64::try_from(v).ok());
                return v.map(|v| Expr::int(v, DType::I64)).or_else(|| self.symbol(terms, t));
            }
            Node::Binary(op, _, a, b) => {
                use BinOp::*;
                let affine = match op {
                    Add | Sub | Min | Max => true,
                    Mul => constant(a).is_some() || constant(b).is_some(),
                    FloorDiv | FloorMod | TruncDiv | TruncMod => {
                        constant(b).is_some_and(|k| k != 0)
                    }
                    _ => false,
                };
                match affine {
                    true => Expr::binary(op, self.at(terms, a, depth)?, self.at(terms, b, depth)?),
                    false => return self.symbol(terms, t),
                }
            }
            Node::Many(op, list) => {
                let list = terms.list(list).to_vec();
                let affine = match op {
                    BinOp::Add | BinOp::Min | BinOp::Max => true,
                    BinOp::Mul => list.iter().filter(|t| constant(**t).is_none()).count() <= 1,
                    _ => false,
                };
                if !affine || list.len() > OPERANDS {
                    return self.symbol(terms, t);
                }
                self.chain(terms, op, &list, depth)?
            }
            Node::Cast(from, a) if from.is_int() && countable(from) => self.at(terms, a, depth)?,
            Node::Cast(from, a) if from.is_bool() => {
                let (one, zero) = (Expr::int(1, DType::I64), Expr::int(0, DType::I64));
                Expr::select(self.at(terms, a, depth)?, one, zero)
            }
            Node::Ite(c, a, b) => {
                let c = self.at(terms, c, depth)?;
                Expr::select(c, self.at(terms, a, depth)?, self.at(terms, b, depth)?)
            }
            Node::Intrin(Intrin::Shr, _, a, by) => match constant(by) {
                Some(k) if (0..i128::from(dtype.bits.min(32))).contains(&k) => {
                    let k = Expr::int(1 << k, DType::I64);
                    Expr::binary(BinOp::FloorDiv, self.at(terms, a, depth)?, k)
                }
                _ => return self.symbol(terms, t),
            },
            Node::Intrin(Intrin::BitAnd, _, a, b) => {
                let mask = [(a, b), (b, a)].into_iter().find_map(|(x, mask)| {
                    let ones = constant(mask).filter(|m| *m >= 0 && m & (m + 1) == 0)?;
                    Some((x, i64::try_from(ones + 1).ok()?))
                });
                match mask {
                    Some((x, count)) => {
                        let count = Expr::int(count, DType::I64);
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
        let mut chain: Option<Expr> = None;
        for t in list {
            let part = self.at(terms, *t, depth)?;
            chain = Some(match chain {
                Some(sum) => Expr::binary(op, sum, part),
                None => part,
            });
        }
        chain
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
        if range.is_some_and(|r| r.within(whole)) {
            return Some(exact);
        }
        let int = |v: i64| Expr::int(v, DType::I64);
        if dtype.bits <= 32 {
            let least = i64::try_from(whole.lo).ok()?;
            let size = int(1 << dtype.bits);
            let shifted = Expr::binary(BinOp::Sub, exact, int(least));
            let rest = Expr::binary(BinOp::FloorMod, shifted, size);
            return Some(Expr::binary(BinOp::Add, rest, int(least)));
        }
        let other = self.symbol(terms, t)?;
        let (Ok(least), Ok(most)) = (i64::try_from(whole.lo), i64::try_from(whole.hi)) else {
            return Some(other);
        };
        let fits = Expr::binary(
            BinOp::And,
            Expr::binary(BinOp::Le, int(least), exact.clone()),
            Expr::binary(BinOp::Le, exact.clone(), int(most)),
        );
        Some(Expr::select(fits, exact, other))
    }

    fn condition(&mut self, terms: &Terms, t: Term, depth: usize) -> Option<Expr> {
        match terms.node(t) {
            Node::Const(bits) => Some(Expr::bool(bits != 0)),
            Node::Binary(op, of, a, b) => {
                let numbers = of.is_int() && countable(of);
                let compares = op.is_compare() && (numbers || (of.is_bool() && op == BinOp::Eq));
                if !compares && !op.is_logic() {
                    return self.symbol(terms, t);
                }
                let (a, b) = (self.at(terms, a, depth)?, self.at(terms, b, depth)?);
                Some(Expr::binary(op, a, b))
            }
            Node::Many(op, list) if op.is_logic() => {
                let list = terms.list(list).to_vec();
                match list.len() > OPERANDS {
                    true => self.symbol(terms, t),
                    false => self.chain(terms, op, &list, depth),
                }
            }
            Node::Not(a) => self.at(terms, a, depth).map(Expr::not_node),
            Node::Cast(from, a) if from.is_int() && countable(from) => {
                let a = self.at(terms, a, depth)?;
                Some(Expr::binary(BinOp::Ne, a, Expr::int(0, DType::I64)))
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
