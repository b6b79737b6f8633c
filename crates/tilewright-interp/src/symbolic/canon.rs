//! One form for terms that differ only in the order of operands, or by what is assumed.
//!
//! Sums and products of integers, minima, maxima and logic become lists of sorted operands: this
//! holds for all data. Sums and products of floats do only where reassociation is asked for.

use tilewright_ir::{BinOp, DType};

use crate::scalar;

use super::term::{Fast, Node, Term, Terms, Val, Wrong};

/// Operands after which a chain is not spread out any further.
const OPERANDS: usize = 1 << 16;

/// Rewrites terms.
pub struct Canon<'t> {
    pub terms: &'t mut Terms,
    /// Sums and products of floats are reordered, too.
    pub reassociate: bool,
    /// Inputs whose value is assumed.
    pub assumed: &'t Fast<Term, u64>,
    done: Fast<Term, Val>,
}

impl<'t> Canon<'t> {
    /// A rewriter that knows these inputs.
    pub fn new(terms: &'t mut Terms, reassociate: bool, assumed: &'t Fast<Term, u64>) -> Self {
        Canon { terms, reassociate, assumed, done: Fast::default() }
    }

    /// Operator and type of a chain.
    fn chain(&self, t: Term) -> Option<(BinOp, DType)> {
        let Node::Binary(op, dtype, ..) = self.terms.node(t) else { return None };
        let free = match op {
            BinOp::Add | BinOp::Mul => !dtype.is_float() || self.reassociate,
            BinOp::Min | BinOp::Max | BinOp::And | BinOp::Or => true,
            // `a - b` is `a + -1 * b`.
            BinOp::Sub => !dtype.is_float(),
            _ => false,
        };
        free.then_some((if op == BinOp::Sub { BinOp::Add } else { op }, dtype))
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
                let v = self.rewrite(t)?;
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
            return self.spread(t, op, dtype);
        }
        let dtype = self.terms.dtype(t);
        let made = match self.terms.node(t) {
            Node::Binary(op, of, a, b) => {
                let (a, b) = (self.form(a), self.form(b));
                self.terms.binary(op, of, a, b)
            }
            Node::Not(a) => {
                let a = self.form(a);
                self.terms.not(a)
            }
            Node::Cast(from, a) => {
                let a = self.form(a);
                self.terms.cast(from, dtype, a)
            }
            Node::Ite(c, x, y) => {
                let (c, x, y) = (self.form(c), self.form(x), self.form(y));
                self.terms.ite(c, x, y, dtype)
            }
            Node::Intrin(op, of, a, b) => {
                let (a, b) = (self.form(a), self.form(b));
                self.terms.intrin(op, of, a, b)
            }
            Node::Many(op, list) => {
                let list = self.terms.list(list).to_vec();
                return self.again(op, dtype, &list);
            }
            _ => Ok(self.terms.val(t)),
        };
        match made {
            // What has no value under the assumptions stays as it was.
            Err(Wrong::Fault(_)) => Ok(Val::Term(t)),
            made => made,
        }
    }

    /// A list whose operands may have changed.
    fn again(&mut self, op: BinOp, dtype: DType, list: &[Term]) -> Result<Val, Wrong> {
        let mut all: Option<Val> = None;
        for t in list {
            let v = self.form(*t);
            all = Some(match all {
                Some(sum) => self.terms.binary(op, dtype, sum, v)?,
                None => v,
            });
        }
        match all {
            Some(Val::Term(t)) if self.chain(t) == Some((op, dtype)) => self.spread(t, op, dtype),
            Some(v) => Ok(v),
            None => Err(Wrong::Full),
        }
    }

    /// A chain as a list of sorted operands.
    fn spread(&mut self, t: Term, op: BinOp, dtype: DType) -> Result<Val, Wrong> {
        let mut operands: Vec<Term> = Vec::new();
        let mut constant: Option<Val> = None;
        // Terms to spread out, each with whether it is subtracted.
        let mut left = vec![(t, false)];
        let mut count = 0usize;
        while let Some((t, minus)) = left.pop() {
            count += 1;
            if let Node::Binary(this, _, a, b) = self.terms.node(t)
                && self.chain(t) == Some((op, dtype))
                && count + left.len() < OPERANDS
            {
                left.push((a, minus));
                left.push((b, minus ^ (this == BinOp::Sub)));
                continue;
            }
            let mut v = self.form(t);
            if minus {
                let minus_one = Val::Known(crate::Scalar::int(-1, dtype).bits());
                v = self.terms.binary(BinOp::Mul, dtype, minus_one, v)?;
                if let Val::Term(t) = v {
                    // A product of its own, flat as any other.
                    v = self.product(t, dtype)?;
                }
            }
            match v {
                Val::Known(_) => {
                    constant = Some(match constant {
                        Some(c) => self.terms.binary(op, dtype, c, v)?,
                        None => v,
                    });
                }
                Val::Term(t) => match self.terms.node(t) {
                    Node::Many(inner, list) if inner == op && self.terms.dtype(t) == dtype => {
                        operands.extend_from_slice(self.terms.list(list));
                    }
                    _ => operands.push(t),
                },
            }
        }
        operands.sort_unstable();
        // A constant inside of a list that was merged comes to the others.
        let mut rest = Vec::with_capacity(operands.len() + 1);
        for t in operands {
            match self.terms.val(t) {
                v @ Val::Known(_) => {
                    constant = Some(match constant {
                        Some(c) => self.terms.binary(op, dtype, c, v)?,
                        None => v,
                    });
                }
                Val::Term(t) => rest.push(t),
            }
        }
        if matches!(op, BinOp::Min | BinOp::Max | BinOp::And | BinOp::Or) {
            rest.dedup();
        }
        if let (BinOp::Add, false) = (op, dtype.is_float()) {
            self.cancel(&mut rest, dtype)?;
        }
        let mut keep = constant;
        if let Some(Val::Known(bits)) = constant {
            let n = match dtype.is_float() {
                true => scalar::to_f64(bits, dtype),
                false => bits as i64 as f64,
            };
            let decides = match op {
                BinOp::Mul => !dtype.is_float() && bits == 0,
                BinOp::And => bits == 0,
                BinOp::Or => bits == 1,
                _ => false,
            };
            if decides {
                return Ok(Val::Known(bits));
            }
            let neutral = match op {
                BinOp::Add | BinOp::Or => n == 0.0,
                BinOp::Mul | BinOp::And => n == 1.0,
                _ => false,
            };
            if neutral && !rest.is_empty() {
                keep = None;
            }
        }
        if rest.iter().any(|t| self.terms.node(*t) == Node::Undef) {
            return Ok(Terms::undef());
        }
        let Some(&first) = rest.first() else {
            return Ok(keep.unwrap_or(Val::Known(0)));
        };
        if rest.len() == 1 && keep.is_none() {
            return Ok(self.terms.val(first));
        }
        if let Some(c) = keep {
            let c = self.terms.term(c, dtype)?;
            rest.insert(0, c);
        }
        self.terms.many(op, dtype, rest)
    }

    /// A product of a constant and a canonical term, as a list.
    fn product(&mut self, t: Term, dtype: DType) -> Result<Val, Wrong> {
        let Node::Binary(BinOp::Mul, _, a, b) = self.terms.node(t) else {
            return Ok(Val::Term(t));
        };
        let mut constant = Val::Known(1);
        let mut rest = Vec::new();
        for t in [a, b] {
            let parts = match self.terms.node(t) {
                Node::Many(BinOp::Mul, list) => self.terms.list(list).to_vec(),
                _ => vec![t],
            };
            for t in parts {
                match self.terms.val(t) {
                    v @ Val::Known(_) => {
                        constant = self.terms.binary(BinOp::Mul, dtype, constant, v)?;
                    }
                    Val::Term(t) => rest.push(t),
                }
            }
        }
        rest.sort_unstable();
        if constant == Val::Known(1) {
            match rest.as_slice() {
                [one] => return Ok(Val::Term(*one)),
                _ => return self.terms.many(BinOp::Mul, dtype, rest),
            }
        }
        let constant = self.terms.term(constant, dtype)?;
        rest.insert(0, constant);
        self.terms.many(BinOp::Mul, dtype, rest)
    }

    /// Takes away pairs of an integer and its negative.
    fn cancel(&mut self, operands: &mut Vec<Term>, dtype: DType) -> Result<(), Wrong> {
        let minus_one = Val::Known(crate::Scalar::int(-1, dtype).bits());
        let mut at = 0;
        while at < operands.len() {
            let Some(&t) = operands.get(at) else { break };
            let negative = match self.terms.node(t) {
                Node::Many(BinOp::Mul, list) => {
                    let list = self.terms.list(list);
                    let first = list.first().map(|t| self.terms.val(*t));
                    match (first == Some(minus_one), list) {
                        (true, [_, one]) => Some(*one),
                        (true, [_, rest @ ..]) => {
                            let rest = rest.to_vec();
                            match self.terms.many(BinOp::Mul, dtype, rest)? {
                                Val::Term(t) => Some(t),
                                Val::Known(_) => None,
                            }
                        }
                        _ => None,
                    }
                }
                _ => None,
            };
            let pair = negative.and_then(|n| operands.binary_search(&n).ok());
            match pair {
                Some(other) => {
                    operands.remove(at.max(other));
                    operands.remove(at.min(other));
                    at = 0;
                }
                None => at += 1,
            }
        }
        Ok(())
    }
}
