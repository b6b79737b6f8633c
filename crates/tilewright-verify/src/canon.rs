//! One form for terms that differ only by what holds for all data, or by what is assumed.
//!
//! Integers wrap and so are a ring: sums and products of them become polynomials with sorted
//! monomials, where products of sums are spread out as long as that stays small, and `a == b` asks
//! whether `a - b` is zero. Minima, maxima and logic become lists of sorted operands.
//!
//! Of floats only what is exact is used: `x + x` is `2 * x`, `x - y` is `x + -1 * y`, and a
//! division by a power of two is a product with its inverse. Where reassociation is asked for, their
//! sums and products become lists as well.

use tilewright_ir::{BinOp, DType};

use tilewright_ir::scalar;
use tilewright_ir::scalar::Scalar;

use super::term::{Fast, Node, Term, Terms, Val, Wrong};

/// Operands after which a chain is not spread out any further.
const OPERANDS: usize = 1 << 16;

/// Monomials up to which a product of sums is spread out.
const MONOMIALS: usize = 64;

/// Factors in order, and the bits of the coefficient.
type Monomial = (Vec<Term>, u64);

/// Rewrites terms.
pub struct Canon<'t> {
    pub terms: &'t mut Terms,
    /// Sums and products of floats are reordered, too.
    pub reassociate: bool,
    /// Terms whose value is assumed.
    pub assumed: &'t Fast<Term, u64>,
    done: Fast<Term, Val>,
}

impl<'t> Canon<'t> {
    /// A rewriter that knows these values.
    pub fn new(terms: &'t mut Terms, reassociate: bool, assumed: &'t Fast<Term, u64>) -> Self {
        Canon { terms, reassociate, assumed, done: Fast::default() }
    }

    /// Operator and type of a chain.
    fn chain(&self, t: Term) -> Option<(BinOp, DType)> {
        let Node::Binary(op, dtype, ..) = self.terms.node(t) else { return None };
        let free = !dtype.is_float() || self.reassociate;
        match op {
            BinOp::Add | BinOp::Mul => free.then_some((op, dtype)),
            // `a - b` is `a + -1 * b`.
            BinOp::Sub => free.then_some((BinOp::Add, dtype)),
            BinOp::Min | BinOp::Max | BinOp::And | BinOp::Or => Some((op, dtype)),
            _ => None,
        }
    }

    /// Brings the roots, and what is below them, into canonical form.
    pub fn prepare(&mut self, roots: &[Term]) -> Result<(), Wrong> {
        let below = self.terms.below(roots.iter().copied());
        // The inner parts of a chain need no form of their own.
        let mut heads: Fast<Term, ()> = roots.iter().map(|t| (*t, ())).collect();
        for &t in &below {
            let chain = self.chain(t);
            let mut children = Vec::new();
            self.terms.children(t, |c| children.push(c));
            for c in children {
                if chain.is_none() || self.chain(c) != chain {
                    heads.insert(c, ());
                }
            }
        }
        for t in below {
            if heads.contains_key(&t) && !self.done.contains_key(&t) {
                let v = match self.rewrite(t) {
                    // What has no value under the assumptions stays as it was.
                    Err(Wrong::Fault(_)) => Val::Term(t),
                    made => made?,
                };
                self.done.insert(t, v);
            }
        }
        Ok(())
    }

    /// The canonical form of a prepared term.
    pub fn get(&self, v: Val) -> Val {
        match v {
            Val::Known(_) => v,
            Val::Term(t) => self.done.get(&t).copied().unwrap_or(v),
        }
    }

    fn form(&self, t: Term) -> Val {
        self.get(self.terms.val(t))
    }

    fn rewrite(&mut self, t: Term) -> Result<Val, Wrong> {
        if let Some(bits) = self.assumed.get(&t) {
            return Ok(Val::Known(*bits));
        }
        if let Some((op, dtype)) = self.chain(t) {
            let operands = self.operands(t, op, dtype);
            return self.combine(op, dtype, operands);
        }
        let dtype = self.terms.dtype(t);
        match self.terms.node(t) {
            Node::Binary(op, of, [a, b]) => {
                let (a, b) = (self.form(a), self.form(b));
                if of.is_float() {
                    self.exact(op, of, a, b)
                } else if op == BinOp::Eq && of.is_int() {
                    self.equal(of, a, b)
                } else {
                    self.terms.binary(op, of, a, b)
                }
            }
            Node::Not(a) => {
                let a = self.form(a);
                self.terms.not(a)
            }
            Node::Cast(from, a) => {
                let a = self.form(a);
                self.terms.cast(from, dtype, a)
            }
            Node::Bits(from, a) => {
                let a = self.form(a);
                self.terms.reinterpret(from, dtype, a)
            }
            Node::Ite(c, x, y) => {
                let (c, x, y) = (self.form(c), self.form(x), self.form(y));
                self.terms.ite(c, x, y, dtype)
            }
            Node::Intrin(op, of, [a, b]) => {
                let (a, b) = (self.form(a), self.form(b));
                self.terms.intrin(op, of, a, b)
            }
            Node::Many(op, list) => {
                let list = self.terms.list(list).to_vec();
                let operands = list.into_iter().map(|t| (self.form(t), false)).collect();
                self.combine(op, dtype, operands)
            }
            _ => Ok(self.terms.val(t)),
        }
    }

    /// The operands of a chain, each with whether it is subtracted.
    fn operands(&self, t: Term, op: BinOp, dtype: DType) -> Vec<(Val, bool)> {
        let mut operands = Vec::new();
        let mut left = vec![(t, false)];
        let mut count = 0usize;
        while let Some((t, minus)) = left.pop() {
            count += 1;
            match self.terms.node(t) {
                Node::Binary(this, _, [a, b])
                    if self.chain(t) == Some((op, dtype)) && count + left.len() < OPERANDS =>
                {
                    left.push((a, minus));
                    left.push((b, minus ^ (this == BinOp::Sub)));
                }
                _ => operands.push((self.form(t), minus)),
            }
        }
        operands
    }

    fn combine(
        &mut self,
        op: BinOp,
        dtype: DType,
        operands: Vec<(Val, bool)>,
    ) -> Result<Val, Wrong> {
        match op {
            BinOp::Add | BinOp::Mul if !dtype.is_float() => self.ring(op, dtype, operands),
            _ => {
                let mut all = Vec::with_capacity(operands.len());
                for (v, minus) in operands {
                    all.push(if minus { self.negative(v, dtype)? } else { v });
                }
                self.listed(op, dtype, all)
            }
        }
    }

    /// A chain of an associative and commutative operator as a list of sorted operands.
    fn listed(&mut self, op: BinOp, dtype: DType, operands: Vec<Val>) -> Result<Val, Wrong> {
        let mut constant: Option<Val> = None;
        let mut rest: Vec<Term> = Vec::with_capacity(operands.len());
        for v in operands {
            let parts = match v {
                Val::Term(t) => match self.terms.node(t) {
                    Node::Many(inner, list) if inner == op && self.terms.dtype(t) == dtype => {
                        self.terms.list(list).iter().map(|t| self.terms.val(*t)).collect()
                    }
                    _ => vec![v],
                },
                Val::Known(_) => vec![v],
            };
            for v in parts {
                match (v, constant) {
                    (Val::Term(t), _) => rest.push(t),
                    (v, None) => constant = Some(v),
                    (v, Some(c)) => constant = Some(self.terms.binary(op, dtype, c, v)?),
                }
            }
        }
        rest.sort_unstable();
        match op {
            BinOp::Add => rest = self.counted(rest, dtype)?,
            BinOp::Mul => {}
            _ => rest.dedup(),
        }
        let mut keep = constant;
        if let Some(Val::Known(bits)) = constant {
            if (op == BinOp::And && is_number(0, dtype, bits))
                || (op == BinOp::Or && is_number(1, dtype, bits))
            {
                return Ok(Val::Known(bits));
            }
            let neutral = match op {
                BinOp::Add | BinOp::Or => is_number(0, dtype, bits),
                BinOp::Mul | BinOp::And => is_number(1, dtype, bits),
                _ => false,
            };
            keep = constant.filter(|_| !neutral || rest.is_empty());
        }
        if rest.iter().any(|t| self.terms.node(*t) == Node::Undef) {
            return Ok(Terms::undef());
        }
        if let Some(c) = keep {
            let c = self.terms.term(c, dtype)?;
            rest.insert(0, c);
        }
        match rest.as_slice() {
            [] => Ok(Val::Known(0)),
            [one] => Ok(self.terms.val(*one)),
            _ => self.terms.many(op, dtype, rest),
        }
    }

    /// Sorted terms of a sum of floats, of which equal ones become a product with their number.
    fn counted(&mut self, operands: Vec<Term>, dtype: DType) -> Result<Vec<Term>, Wrong> {
        let mut out = Vec::with_capacity(operands.len());
        for run in operands.chunk_by(|a, b| a == b) {
            let Some(&t) = run.first() else { continue };
            if run.len() == 1 {
                out.push(t);
                continue;
            }
            let count = Val::Known(scalar::from_f64(run.len() as f64, dtype));
            let v = self.listed(BinOp::Mul, dtype, vec![count, Val::Term(t)])?;
            out.push(self.terms.term(v, dtype)?);
        }
        out.sort_unstable();
        Ok(out)
    }

    /// `-1 * v` for a float.
    fn negative(&mut self, v: Val, dtype: DType) -> Result<Val, Wrong> {
        let minus_one = Val::Known(scalar::from_f64(-1.0, dtype));
        if self.reassociate {
            return self.listed(BinOp::Mul, dtype, vec![minus_one, v]);
        }
        if let Val::Term(t) = v
            && let Node::Binary(BinOp::Mul, _, [a, b]) = self.terms.node(t)
        {
            // The sign of a constant factor is exact, and that of zero does not matter.
            let (a, b) = (self.terms.val(a), self.terms.val(b));
            if let (Val::Known(c), x) | (x, Val::Known(c)) = (a, b) {
                let c = 0.0 - scalar::to_f64(c, dtype);
                let c = Val::Known(scalar::from_f64(c, dtype));
                return self.terms.binary(BinOp::Mul, dtype, c, x);
            }
        }
        self.terms.binary(BinOp::Mul, dtype, minus_one, v)
    }

    /// An operator on floats, in a form that rounds alike.
    fn exact(&mut self, op: BinOp, dtype: DType, a: Val, b: Val) -> Result<Val, Wrong> {
        match (op, b) {
            (BinOp::Sub, _) => {
                let b = self.negative(b, dtype)?;
                self.exact(BinOp::Add, dtype, a, b)
            }
            (BinOp::Mul, _) if minus(a, dtype) => self.negative(b, dtype),
            (BinOp::Mul, _) if minus(b, dtype) => self.negative(a, dtype),
            (BinOp::Add, Val::Term(_)) if a == b => {
                let two = Val::Known(scalar::from_f64(2.0, dtype));
                self.terms.binary(BinOp::Mul, dtype, two, a)
            }
            (BinOp::Div, Val::Known(bits)) => match inverse(bits, dtype) {
                Some(inverse) if self.reassociate => {
                    self.listed(BinOp::Mul, dtype, vec![a, Val::Known(inverse)])
                }
                Some(inverse) => self.terms.binary(BinOp::Mul, dtype, a, Val::Known(inverse)),
                None => self.terms.binary(op, dtype, a, b),
            },
            _ => self.terms.binary(op, dtype, a, b),
        }
    }

    /// A sum or product of integers as a polynomial.
    fn ring(&mut self, op: BinOp, dtype: DType, operands: Vec<(Val, bool)>) -> Result<Val, Wrong> {
        // Two arbitrary values do not cancel, and a product with zero is none.
        let zero = op == BinOp::Mul && operands.iter().any(|(v, _)| *v == Val::Known(0));
        if !zero && operands.iter().any(|(v, _)| *v == Terms::undef()) {
            return Ok(Terms::undef());
        }
        let mut sum: Vec<Monomial> = Vec::new();
        if op == BinOp::Add {
            for (v, minus) in operands {
                let sign = Scalar::int(if minus { -1 } else { 1 }, dtype).bits();
                for (factors, c) in self.monomials(v) {
                    sum.push((factors, times(sign, c, dtype)?));
                }
            }
            return self.polynomial(sum, dtype);
        }
        let factors: Vec<(Val, Vec<Monomial>)> =
            operands.into_iter().map(|(v, _)| (v, self.monomials(v))).collect();
        let count = factors.iter().try_fold(1usize, |n, (_, f)| n.checked_mul(f.len()));
        let wide = count.is_none_or(|n| n > MONOMIALS);
        sum.push((Vec::new(), Scalar::int(1, dtype).bits()));
        for (v, factor) in factors {
            let factor = match v {
                Val::Term(t) if wide && factor.len() > 1 => {
                    vec![(vec![t], Scalar::int(1, dtype).bits())]
                }
                _ => factor,
            };
            let mut product = Vec::with_capacity(sum.len() * factor.len());
            for (a, c) in &sum {
                for (b, d) in &factor {
                    let mut factors = [a.as_slice(), b.as_slice()].concat();
                    factors.sort_unstable();
                    product.push((factors, times(*c, *d, dtype)?));
                }
            }
            sum = product;
        }
        self.polynomial(sum, dtype)
    }

    /// The monomials of a canonical integer.
    fn monomials(&self, v: Val) -> Vec<Monomial> {
        match v {
            Val::Known(bits) => vec![(Vec::new(), bits)],
            Val::Term(t) => match self.terms.node(t) {
                Node::Many(BinOp::Add, list) => {
                    self.terms.list(list).iter().map(|t| self.monomial(*t)).collect()
                }
                _ => vec![self.monomial(t)],
            },
        }
    }

    fn monomial(&self, t: Term) -> (Vec<Term>, u64) {
        match self.terms.node(t) {
            Node::Const(bits) => (Vec::new(), bits),
            Node::Many(BinOp::Mul, list) => {
                let list = self.terms.list(list);
                match list.split_first().map(|(c, rest)| (self.terms.val(*c), rest)) {
                    Some((Val::Known(c), rest)) => (rest.to_vec(), c),
                    _ => (list.to_vec(), 1),
                }
            }
            _ => (vec![t], 1),
        }
    }

    /// The sum of monomials, like ones collected.
    fn polynomial(&mut self, mut sum: Vec<Monomial>, dtype: DType) -> Result<Val, Wrong> {
        sum.sort_unstable();
        let mut parts = Vec::new();
        for like in sum.chunk_by(|(a, _), (b, _)| a == b) {
            let mut coefficient = 0;
            for (_, c) in like {
                coefficient = fold(BinOp::Add, coefficient, *c, dtype)?;
            }
            let Some((factors, _)) = like.first().filter(|_| coefficient != 0) else { continue };
            let constant = self.terms.term(Val::Known(coefficient), dtype)?;
            let part = match (factors.as_slice(), coefficient) {
                ([], _) => constant,
                ([one], 1) => *one,
                (_, 1) => self.many(BinOp::Mul, factors.clone(), dtype)?,
                _ => {
                    let factors = [&[constant], factors.as_slice()].concat();
                    self.many(BinOp::Mul, factors, dtype)?
                }
            };
            parts.push(part);
        }
        match parts.as_slice() {
            [] => Ok(Val::Known(0)),
            [one] => Ok(self.terms.val(*one)),
            _ => self.terms.many(BinOp::Add, dtype, parts),
        }
    }

    fn many(&mut self, op: BinOp, operands: Vec<Term>, dtype: DType) -> Result<Term, Wrong> {
        let v = self.terms.many(op, dtype, operands)?;
        self.terms.term(v, dtype)
    }

    /// Whether two integers are equal: `x == y` of two monomials where one has the coefficient one,
    /// and else whether a difference is zero, where the last coefficient is the smaller one of it and
    /// its negative.
    fn equal(&mut self, dtype: DType, a: Val, b: Val) -> Result<Val, Wrong> {
        let difference = self.ring(BinOp::Add, dtype, vec![(a, false), (b, true)])?;
        let mut parts = self.monomials(difference);
        let minus_one = Scalar::int(-1, dtype).bits();
        let alone = parts
            .iter()
            .position(|(factors, c)| !factors.is_empty() && (*c == 1 || *c == minus_one))
            .filter(|_| parts.len() <= 2);
        let mut left = Vec::new();
        let sign = match alone {
            Some(at) => {
                let (factors, c) = parts.remove(at);
                left.push((factors, 1));
                times(c, minus_one, dtype)?
            }
            None => {
                let last = parts.last().map_or(0, |(_, c)| *c);
                if last <= times(last, minus_one, dtype)? { 1 } else { minus_one }
            }
        };
        for (_, c) in &mut parts {
            *c = times(*c, sign, dtype)?;
        }
        let (left, right) = (self.polynomial(left, dtype)?, self.polynomial(parts, dtype)?);
        self.terms.binary(BinOp::Eq, dtype, left, right)
    }
}

fn is_number(n: u64, dtype: DType, bits: u64) -> bool {
    if dtype.is_float() { scalar::to_f64(bits, dtype) == n as f64 } else { bits == n }
}

fn fold(op: BinOp, a: u64, b: u64, dtype: DType) -> Result<u64, Wrong> {
    scalar::binary(op, dtype, a, b).map_err(Wrong::Fault)
}

fn times(a: u64, b: u64, dtype: DType) -> Result<u64, Wrong> {
    fold(BinOp::Mul, a, b, dtype)
}

/// Whether a value is minus one.
fn minus(v: Val, dtype: DType) -> bool {
    matches!(v, Val::Known(bits) if scalar::to_f64(bits, dtype) == -1.0)
}

/// The inverse of a power of two, where it is exact and no subnormal number.
fn inverse(bits: u64, dtype: DType) -> Option<u64> {
    let c = scalar::to_f64(bits, dtype);
    let exact = scalar::from_f64(1.0 / c, dtype);
    let smallest = if dtype.kind == tilewright_ir::TypeKind::Float && dtype.bits == 16 {
        2f64.powi(-14)
    } else {
        2f64.powi(-126)
    };
    let power = c.abs().to_bits() << 12 == 0 && c.is_normal();
    let normal =
        [c, scalar::to_f64(exact, dtype)].iter().all(|x| x.is_finite() && x.abs() >= smallest);
    (power && normal).then_some(exact)
}
