//! Compiled expressions.
//!
//! An expression becomes a closure over the machine, typed where its type has a fast form: small
//! integers and `bool` as `i64`, `float32`, `float64`. Everything else (other types, and whatever
//! may be arbitrary) is a [`Cell`] and follows [`crate::scalar`]. Where something goes wrong, the
//! machine notes it, the expression goes on with zero, and the statement stops.
//!
//! Vectors are evaluated lane by lane: [`Machine::lane`] says which.
//!
//! An integer that is a sum of multiples of variables stays in that form ([`Affine`]), as long as
//! the ranges of the variables show that no intermediate result wraps. Indices are such sums
//! nearly always, and the ranges mostly show that they are within bounds, too.

use tilewright_ir::DType;

use crate::machine::{Cell, Machine};

/// A compiled expression or statement.
pub type Code<T> = Box<dyn Fn(&mut Machine<'_>) -> T + Send + Sync>;

/// A compiled value.
pub enum ValueCode {
    /// Integers but `uint64`, and `bool`.
    Int(Int),
    /// `float32`.
    F32(Code<f32>),
    /// `float64`.
    F64(Code<f64>),
    /// Anything.
    Cell(Code<Cell>),
}

/// A compiled integer and the range of its values.
pub struct Int {
    /// How to compute it.
    pub code: IntCode,
    /// Smallest value.
    pub lo: i64,
    /// Largest value.
    pub hi: i64,
}

/// How to compute an integer.
pub enum IntCode {
    /// A sum of multiples of variables.
    Affine(Affine),
    /// Anything.
    Code(Code<i64>),
}

/// `base + coefficient * variable + ...`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Affine {
    /// The constant.
    pub base: i64,
    /// Slots of variables, each once, with their coefficients.
    pub terms: Vec<(usize, i64)>,
}

impl Affine {
    /// The value.
    #[inline]
    pub fn eval(&self, m: &Machine<'_>) -> i64 {
        self.terms.iter().fold(self.base, |sum, &(slot, c)| {
            sum.wrapping_add((m.frame[slot] as i64).wrapping_mul(c))
        })
    }

    /// `self + factor * other`; `None` where a coefficient does not fit.
    pub fn plus(&self, other: &Affine, factor: i64) -> Option<Affine> {
        let mut sum = self.clone();
        sum.base = sum.base.checked_add(other.base.checked_mul(factor)?)?;
        for &(slot, c) in &other.terms {
            let c = c.checked_mul(factor)?;
            match sum.terms.iter_mut().find(|(s, _)| *s == slot) {
                Some((_, d)) => *d = d.checked_add(c)?,
                None => sum.terms.push((slot, c)),
            }
        }
        sum.terms.retain(|&(_, c)| c != 0);
        Some(sum)
    }

    /// The coefficient of a variable.
    pub fn coefficient(&self, slot: usize) -> i64 {
        self.terms.iter().find(|(s, _)| *s == slot).map_or(0, |(_, c)| *c)
    }

    /// The value, where there are no variables.
    pub fn as_const(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.base)
    }

    /// The slot, where this is the value of one variable.
    pub fn as_slot(&self) -> Option<usize> {
        match (self.base, self.terms.as_slice()) {
            (0, [(slot, 1)]) => Some(*slot),
            _ => None,
        }
    }

    fn code(self) -> Code<i64> {
        let base = self.base;
        match *self.terms.as_slice() {
            [] => Box::new(move |_| base),
            [(s, 1)] if base == 0 => Box::new(move |m| m.frame[s] as i64),
            [(s, c)] => Box::new(move |m| (m.frame[s] as i64).wrapping_mul(c).wrapping_add(base)),
            _ => Box::new(move |m| self.eval(m)),
        }
    }
}

impl Int {
    pub fn constant(value: i64) -> Self {
        let code = IntCode::Affine(Affine { base: value, terms: Vec::new() });
        Int { code, lo: value, hi: value }
    }

    /// One that is computed, within a range.
    pub fn computed((lo, hi): (i64, i64), code: Code<i64>) -> Self {
        Int { code: IntCode::Code(code), lo, hi }
    }

    /// The value, where it is known.
    pub fn as_const(&self) -> Option<i64> {
        match &self.code {
            IntCode::Affine(a) => a.as_const(),
            IntCode::Code(_) => None,
        }
    }

    /// The sum of multiples of variables, where it is one.
    pub fn affine(&self) -> Option<&Affine> {
        match &self.code {
            IntCode::Affine(a) => Some(a),
            IntCode::Code(_) => None,
        }
    }

    /// The value.
    #[inline]
    pub fn eval(&self, m: &mut Machine<'_>) -> i64 {
        match &self.code {
            IntCode::Affine(a) => a.eval(m),
            IntCode::Code(code) => code(m),
        }
    }

    /// As a closure.
    pub fn code(self) -> Code<i64> {
        match self.code {
            IntCode::Affine(a) => a.code(),
            IntCode::Code(code) => code,
        }
    }
}

impl ValueCode {
    /// As a cell.
    pub fn cell(self) -> Code<Cell> {
        match self {
            ValueCode::Int(i) => {
                let code = i.code();
                Box::new(move |m| Cell::new(code(m) as u64))
            }
            ValueCode::F32(code) => Box::new(move |m| Cell::new(u64::from(code(m).to_bits()))),
            ValueCode::F64(code) => Box::new(move |m| Cell::new(code(m).to_bits())),
            ValueCode::Cell(code) => code,
        }
    }

    /// As an integer; an arbitrary value is an error at run time.
    pub fn int(self) -> Int {
        let any = (i64::MIN, i64::MAX);
        match self {
            ValueCode::Int(i) => i,
            ValueCode::F32(code) => Int::computed(any, Box::new(move |m| code(m) as i64)),
            ValueCode::F64(code) => Int::computed(any, Box::new(move |m| code(m) as i64)),
            ValueCode::Cell(code) => Int::computed(
                any,
                Box::new(move |m| {
                    let cell = code(m);
                    if cell.undef {
                        m.fail("an index, a bound or a condition depends on an arbitrary value");
                    }
                    cell.bits as i64
                }),
            ),
        }
    }
}

/// The range of an integer type.
pub fn range_of(dtype: DType) -> (i64, i64) {
    (clamped(dtype.min_int(), i64::MIN), clamped(dtype.max_int(), i64::MAX))
}

fn clamped(v: Option<i128>, other: i64) -> i64 {
    v.map_or(other, |v| i64::try_from(v).unwrap_or(other))
}
