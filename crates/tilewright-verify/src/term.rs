//! Terms: what a cell holds as a function of the inputs, each different term stored once.
//!
//! Terms are built through constructors that normalise what is equal for all data: constants fold
//! as in the interpreter, neutral elements go, operands of commutative operators are ordered.
//! A comparison of integers has one form: `x <= c` with a constant, `<` or `<=` of two terms in
//! order, `==`, or the negation of one of these, so that `p < 3`, `p <= 2` and `not 3 <= p` are one
//! term. Floats follow the rule that
//! `x + 0`, `x * 1` and the sign of zero do not matter. Nothing is reassociated here.
//!
//! The children of a term have smaller numbers than the term itself, so that walks over all terms
//! go by number and need no recursion.

use std::cell::RefCell;
use tilewright_ir::hash::HashMap;

use rustc_hash::FxHashMap;
use tilewright_ir::{BinOp, DType, Intrin};

use tilewright_ir::scalar::{self, Fault, Scalar};

/// A map whose keys are few integers.
pub type Fast<K, V> = FxHashMap<K, V>;

/// Number of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term(pub u32);

/// What a term is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// Bits as in [`tilewright_ir::scalar`].
    Const(u64),
    /// An element of an input: parameter, and position in row-major order.
    Input(u32, u32),
    /// Some arbitrary value; every use is another one.
    Undef,
    /// What is in memory that was never written.
    Unwritten,
    /// An operator on two operands of the type that is given.
    Binary(BinOp, DType, [Term; 2]),
    /// Negation of a `bool`.
    Not(Term),
    /// Conversion from a type.
    Cast(DType, Term),
    /// The bits of a value of a type.
    Bits(DType, Term),
    /// A selection.
    Ite(Term, Term, Term),
    /// An intrinsic of operands of a type; functions of one argument have it twice.
    Intrin(Intrin, DType, [Term; 2]),
    /// An associative and commutative operator on many operands, by number.
    Many(BinOp, u32),
}

/// A term that is known, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Val {
    /// Bits as in [`tilewright_ir::scalar`].
    Known(u64),
    /// A term that is no constant.
    Term(Term),
}

/// Why a term cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The operator has no value for its operands.
    Fault(Fault),
    /// There are too many terms.
    Full,
}

type TermResult<T> = Result<T, Wrong>;

pub struct Terms {
    nodes: Vec<(Node, DType)>,
    known: Fast<(Node, DType), Term>,
    lists: Vec<Vec<Term>>,
    list_numbers: HashMap<Vec<Term>, u32>,
    limit: usize,
    /// The number of the last walk over terms, and by term that of the last one that came there.
    seen: RefCell<(u64, Vec<u64>)>,
}

/// `Undef`, the term with number 0.
const UNDEF: Term = Term(0);
/// `Unwritten`, the term with number 1.
const UNWRITTEN: Term = Term(1);

impl Terms {
    /// A store for this many terms.
    pub fn new(limit: usize) -> Self {
        let fixed = [(Node::Undef, DType::VOID), (Node::Unwritten, DType::VOID)];
        Terms {
            nodes: fixed.to_vec(),
            known: Fast::default(),
            lists: Vec::new(),
            list_numbers: HashMap::default(),
            limit: limit.min(u32::MAX as usize),
            seen: RefCell::default(),
        }
    }

    /// How many terms there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// How many more there may be.
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.nodes.len())
    }

    /// What a term is.
    pub fn node(&self, t: Term) -> Node {
        self.nodes.get(t.0 as usize).map_or(Node::Undef, |n| n.0)
    }

    /// The type of its value.
    pub fn dtype(&self, t: Term) -> DType {
        self.nodes.get(t.0 as usize).map_or(DType::VOID, |n| n.1)
    }

    /// The integer or truth value that a constant is.
    pub fn constant(&self, t: Term) -> Option<i128> {
        match self.node(t) {
            Node::Const(bits) => Some(Scalar::from_bits(bits, self.dtype(t)).as_i128()),
            _ => None,
        }
    }

    /// The operator that a term is, with the type of its operands; of more than two it is associative.
    pub fn operator(&self, t: Term) -> Option<(BinOp, DType, &[Term])> {
        match &self.nodes.get(t.0 as usize)?.0 {
            Node::Binary(op, dtype, operands) => Some((*op, *dtype, operands)),
            Node::Many(op, list) => Some((*op, self.dtype(t), self.list(*list))),
            _ => None,
        }
    }

    /// The operands of [`Node::Many`].
    pub fn list(&self, number: u32) -> &[Term] {
        self.lists.get(number as usize).map_or(&[], Vec::as_slice)
    }

    fn intern(&mut self, node: Node, dtype: DType) -> TermResult<Term> {
        if let Some(t) = self.known.get(&(node, dtype)) {
            return Ok(*t);
        }
        if self.nodes.len() >= self.limit {
            return Err(Wrong::Full);
        }
        let t = Term(self.nodes.len() as u32);
        self.nodes.push((node, dtype));
        self.known.insert((node, dtype), t);
        Ok(t)
    }

    fn intern_term(&mut self, node: Node, dtype: DType) -> TermResult<Val> {
        self.intern(node, dtype).map(Val::Term)
    }

    /// An arbitrary value.
    pub fn undef() -> Val {
        Val::Term(UNDEF)
    }

    /// The content of memory that was never written.
    pub fn unwritten() -> Val {
        Val::Term(UNWRITTEN)
    }

    /// An element of an input.
    pub fn input(&mut self, param: u32, element: u32, dtype: DType) -> TermResult<Val> {
        self.intern_term(Node::Input(param, element), dtype)
    }

    /// The term of a value.
    pub fn term(&mut self, v: Val, dtype: DType) -> TermResult<Term> {
        match v {
            Val::Term(t) => Ok(t),
            Val::Known(bits) => self.intern(Node::Const(bits), dtype),
        }
    }

    /// The value of a term: known, where it is a constant.
    pub fn val(&self, t: Term) -> Val {
        match self.node(t) {
            Node::Const(bits) => Val::Known(bits),
            _ => Val::Term(t),
        }
    }

    /// An operator on two operands of a type.
    pub fn binary(&mut self, op: BinOp, dtype: DType, a: Val, b: Val) -> TermResult<Val> {
        if let (Val::Known(x), Val::Known(y)) = (a, b) {
            return scalar::binary(op, dtype, x, y).map(Val::Known).map_err(Wrong::Fault);
        }
        match op {
            BinOp::Gt => return self.binary(BinOp::Lt, dtype, b, a),
            BinOp::Ge => return self.binary(BinOp::Le, dtype, b, a),
            BinOp::Ne => {
                let equal = self.binary(BinOp::Eq, dtype, a, b)?;
                return self.not(equal);
            }
            BinOp::Lt | BinOp::Le
                if dtype.is_int() && a != Terms::undef() && b != Terms::undef() =>
            {
                return self.order(op == BinOp::Lt, dtype, a, b);
            }
            _ => {}
        }
        if let Some(v) = self.neutral(op, dtype, a, b) {
            return Ok(v);
        }
        if a == Terms::undef() || b == Terms::undef() {
            return Ok(Terms::undef());
        }
        let divides =
            matches!(op, BinOp::FloorDiv | BinOp::FloorMod | BinOp::TruncDiv | BinOp::TruncMod);
        if divides && b == Val::Known(0) {
            return Err(Wrong::Fault(Fault::DivisionByZero));
        }
        let (mut x, mut y) = (self.term(a, dtype)?, self.term(b, dtype)?);
        if commutes(op) && y < x {
            std::mem::swap(&mut x, &mut y);
        }
        let to = if op.is_compare() || op.is_logic() { DType::BOOL } else { dtype };
        self.intern_term(Node::Binary(op, dtype, [x, y]), to)
    }

    /// `a < b` or `a <= b` of integers.
    fn order(&mut self, strict: bool, dtype: DType, a: Val, b: Val) -> TermResult<Val> {
        let (Some(least), Some(most)) = (dtype.min_int(), dtype.max_int()) else {
            return Ok(Terms::undef());
        };
        match (a, b) {
            (Val::Known(x), Val::Known(y)) => {
                let op = if strict { BinOp::Lt } else { BinOp::Le };
                scalar::binary(op, dtype, x, y).map(Val::Known).map_err(Wrong::Fault)
            }
            (Val::Known(_), Val::Term(_)) => reversed(self, strict, dtype, b, a),
            (Val::Term(x), Val::Known(c)) => {
                let c = Scalar::from_bits(c, dtype).as_i128() - i128::from(strict);
                match c {
                    c if c < least => Ok(Val::Known(0)),
                    c if c >= most => Ok(Val::Known(1)),
                    c if c == least => self.binary(BinOp::Eq, dtype, a, known_number(c, dtype)),
                    c if c + 1 == most => {
                        let last = self.binary(BinOp::Eq, dtype, a, known_number(most, dtype))?;
                        self.not(last)
                    }
                    c => {
                        let c = self.term(known_number(c, dtype), dtype)?;
                        self.intern_term(Node::Binary(BinOp::Le, dtype, [x, c]), DType::BOOL)
                    }
                }
            }
            (Val::Term(x), Val::Term(y)) if x == y => Ok(Val::Known(u64::from(!strict))),
            (Val::Term(x), Val::Term(y)) if y < x => reversed(self, strict, dtype, b, a),
            (Val::Term(x), Val::Term(y)) => {
                let op = if strict { BinOp::Lt } else { BinOp::Le };
                self.intern_term(Node::Binary(op, dtype, [x, y]), DType::BOOL)
            }
        }
    }

    /// The result of an operator that does not need a term of its own.
    fn neutral(&self, op: BinOp, dtype: DType, a: Val, b: Val) -> Option<Val> {
        let float = dtype.is_float();
        let is = |v: Val, n: i64| match v {
            Val::Known(bits) if float => scalar::to_f64(bits, dtype) == n as f64,
            Val::Known(bits) => bits == n as u64,
            Val::Term(_) => false,
        };
        let same = a == b && a != Terms::undef();
        let zero = Val::Known(0);
        match op {
            BinOp::Add if is(a, 0) => Some(b),
            BinOp::Add | BinOp::Sub if is(b, 0) => Some(a),
            BinOp::Sub if same && !float => Some(zero),
            BinOp::Mul if !float && (is(a, 0) || is(b, 0)) => Some(zero),
            BinOp::Mul if is(a, 1) => Some(b),
            BinOp::Mul | BinOp::Div | BinOp::FloorDiv | BinOp::TruncDiv if is(b, 1) => Some(a),
            BinOp::FloorMod | BinOp::TruncMod if is(b, 1) && a != Terms::undef() => Some(zero),
            BinOp::Min | BinOp::Max if same => Some(a),
            BinOp::And if is(a, 0) || is(b, 0) => Some(zero),
            BinOp::And if is(a, 1) => Some(b),
            BinOp::And if is(b, 1) || same => Some(a),
            BinOp::Or if is(a, 1) || is(b, 1) => Some(Val::Known(1)),
            BinOp::Or if is(a, 0) => Some(b),
            BinOp::Or if is(b, 0) || same => Some(a),
            BinOp::Eq | BinOp::Le if same && !float => Some(Val::Known(1)),
            // Of floats too: nothing is below itself.
            BinOp::Lt if same => Some(zero),
            _ => None,
        }
    }

    /// The negation of a `bool`.
    pub fn not(&mut self, a: Val) -> TermResult<Val> {
        let t = match a {
            Val::Known(bits) => return Ok(Val::Known(u64::from(bits == 0))),
            Val::Term(t) => t,
        };
        match self.node(t) {
            Node::Undef => Ok(a),
            Node::Not(inner) => Ok(self.val(inner)),
            _ => self.intern_term(Node::Not(t), DType::BOOL),
        }
    }

    /// A conversion.
    pub fn cast(&mut self, from: DType, to: DType, a: Val) -> TermResult<Val> {
        match a {
            _ if from == to || a == Terms::undef() => Ok(a),
            Val::Known(bits) => Ok(Val::Known(scalar::cast(bits, from, to))),
            Val::Term(t) => self.intern_term(Node::Cast(from, t), to),
        }
    }

    /// The bits of a value as one of another type.
    pub fn reinterpret(&mut self, from: DType, to: DType, a: Val) -> TermResult<Val> {
        match a {
            _ if from == to || a == Terms::undef() => Ok(a),
            Val::Known(bits) => Ok(Val::Known(scalar::reinterpret(bits, from, to))),
            Val::Term(t) => match self.node(t) {
                Node::Bits(first, inner) => {
                    let inner = self.val(inner);
                    self.reinterpret(first, to, inner)
                }
                _ => self.intern_term(Node::Bits(from, t), to),
            },
        }
    }

    /// `c ? t : f`.
    pub fn ite(&mut self, c: Val, t: Val, f: Val, dtype: DType) -> TermResult<Val> {
        let c = match c {
            Val::Known(0) => return Ok(f),
            Val::Known(_) => return Ok(t),
            Val::Term(c) => c,
        };
        if let Node::Not(inner) = self.node(c) {
            let inner = self.val(inner);
            return self.ite(inner, f, t, dtype);
        }
        let (t, f) = (self.picked(t, true, c), self.picked(f, false, c));
        if t == f {
            return Ok(t);
        }
        if c == UNDEF {
            return Ok(Terms::undef());
        }
        if dtype == DType::BOOL {
            match (t, f) {
                (Val::Known(1), Val::Known(0)) => return Ok(Val::Term(c)),
                (Val::Known(0), Val::Known(1)) => return self.not(Val::Term(c)),
                _ => {}
            }
        }
        let (t, f) = (self.term(t, dtype)?, self.term(f, dtype)?);
        self.intern_term(Node::Ite(c, t, f), dtype)
    }

    fn picked(&self, v: Val, truth: bool, c: Term) -> Val {
        match v {
            Val::Term(n) => match self.node(n) {
                Node::Ite(d, t, f) if d == c => self.val(if truth { t } else { f }),
                _ => v,
            },
            Val::Known(_) => v,
        }
    }

    /// An intrinsic on operands of a type; the second is the first again where there is none.
    pub fn intrin(&mut self, op: Intrin, dtype: DType, a: Val, b: Val) -> TermResult<Val> {
        if op.is_hint() {
            return Ok(a);
        }
        if let (Val::Known(x), Val::Known(y)) = (a, b) {
            return scalar::intrinsic(op, dtype, x, y).map(Val::Known).map_err(Wrong::Fault);
        }
        if a == Terms::undef() || b == Terms::undef() {
            return Ok(Terms::undef());
        }
        let (mut x, mut y) = (self.term(a, dtype)?, self.term(b, dtype)?);
        if op.commutes() && y < x {
            std::mem::swap(&mut x, &mut y);
        }
        let to = op.result(dtype);
        self.intern_term(Node::Intrin(op, dtype, [x, y]), to)
    }

    /// An associative and commutative operator on operands in order, of which there are two or
    /// more.
    pub fn many(&mut self, op: BinOp, dtype: DType, operands: Vec<Term>) -> TermResult<Val> {
        let number = match self.list_numbers.get(&operands) {
            Some(n) => *n,
            None => {
                let n = self.lists.len() as u32;
                self.lists.push(operands.clone());
                self.list_numbers.insert(operands, n);
                n
            }
        };
        self.intern_term(Node::Many(op, number), dtype)
    }

    /// Gives each child of a term to a function.
    pub fn children(&self, t: Term, mut f: impl FnMut(Term)) {
        match self.node(t) {
            Node::Const(_) | Node::Input(..) | Node::Undef | Node::Unwritten => {}
            Node::Not(a) | Node::Cast(_, a) | Node::Bits(_, a) => f(a),
            Node::Binary(_, _, both) | Node::Intrin(_, _, both) => both.into_iter().for_each(f),
            Node::Ite(a, b, c) => [a, b, c].into_iter().for_each(f),
            Node::Many(_, list) => self.list(list).iter().copied().for_each(f),
        }
    }

    /// All terms below the roots, roots included, children before their parents.
    pub fn below(&self, roots: impl IntoIterator<Item = Term>) -> Vec<Term> {
        let (walk, seen) = &mut *self.seen.borrow_mut();
        *walk += 1;
        seen.resize(self.nodes.len(), 0);
        let mut left: Vec<Term> = roots.into_iter().collect();
        let mut found = Vec::new();
        while let Some(t) = left.pop() {
            if let Some(seen) = seen.get_mut(t.0 as usize)
                && std::mem::replace(seen, *walk) != *walk
            {
                found.push(t);
                self.children(t, |c| left.push(c));
            }
        }
        found.sort_unstable();
        found
    }
}

fn reversed(terms: &mut Terms, strict: bool, dtype: DType, b: Val, a: Val) -> Result<Val, Wrong> {
    let other = terms.order(!strict, dtype, b, a)?;
    terms.not(other)
}

fn known_number(v: i128, dtype: DType) -> Val {
    Val::Known(Scalar::int(v as i64, dtype).bits())
}

/// Whether the operands may be exchanged, up to which `NaN` it is.
fn commutes(op: BinOp) -> bool {
    matches!(
        op,
        BinOp::Add
            | BinOp::Mul
            | BinOp::Min
            | BinOp::Max
            | BinOp::And
            | BinOp::Or
            | BinOp::Eq
            | BinOp::Ne
    )
}

/// Whether a value may be anything.
pub fn free(terms: &Terms, v: Val) -> bool {
    match v {
        Val::Term(t) => matches!(terms.node(t), Node::Undef | Node::Unwritten),
        Val::Known(_) => false,
    }
}
