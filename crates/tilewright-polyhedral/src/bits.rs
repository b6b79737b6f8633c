//! Maps that are linear in binary digits: XOR swizzles, Morton order, reversal of bits.
//!
//! The digits of what a map gives are sums of digits of its arguments over the field of two
//! elements, and a constant. `j ^ (i % 8)` has the digits `j_k + i_k`, and interleaving the digits of two
//! numbers only moves them. Such a map is a matrix: elimination gives its inverse, or two arguments
//! with one image, and in time that does not depend on how many points there are.
//!
//! What is linear follows from the expression: `^`, shifts, masks, division and remainder by powers of
//! two, and sums in which no digit is carried. Digits of expressions are exact wherever the
//! variables are not negative and have no more digits than is said.
//!
//! ```
//! use tilewright_ir::{Expr, Intrin, Var};
//! use tilewright_polyhedral::bits::BitMap;
//! let (i, j) = (Var::index("i"), Var::index("j"));
//! let swizzled = Expr::intrin(Intrin::BitXor, vec![j.expr(), i.expr().floormod(8)]);
//! let map = BitMap::from_indices(&[(i.clone(), 5), (j, 3)], &[i.expr(), swizzled]).unwrap();
//! let (row, column) = (Var::index("row"), Var::index("column"));
//! let inverse = map.inverse(&[row, column]).unwrap();
//! let text: Vec<String> = inverse.values.iter().map(|e| e.to_string()).collect();
//! assert_eq!(text, ["row", "T.bitwise_xor(row % 8, column)"]);
//! ```
//!
//! Triton's linear layouts are such maps (Zhou et al. 2025, "Linear Layouts: Robust Code Generation of
//! Efficient Tensor Computation Using F2").

use tilewright_ir::{BinOp, CallTarget, DType, Expr, ExprKind, Intrin, Var};

/// Most digits of all arguments together, and of all results.
const MAX_DIGITS: u32 = 128;

/// Deepest nesting of an expression that is looked into.
const MAX_DEPTH: usize = 200;

/// A digit: the sum of some digits of the arguments, one bit each, and a constant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digit {
    /// Which digits of the arguments, counted through all of them, lowest first.
    pub of: u128,
    /// Whether one is added.
    pub constant: bool,
}

impl Digit {
    fn plus(self, other: Digit) -> Digit {
        Digit { of: self.of ^ other.of, constant: self.constant ^ other.constant }
    }

    fn is_zero(self) -> bool {
        self == Digit::default()
    }
}

/// Numbers by their digits: how many each variable has.
#[derive(Clone, Debug)]
struct Numbers(Vec<(Var, u32)>);

impl Numbers {
    /// The place of a variable's lowest digit, and how many digits it has.
    fn place(&self, v: &Var) -> Option<(u32, u32)> {
        let at = self.0.iter().position(|(w, _)| w == v)?;
        let before = self.0[..at].iter().map(|(_, n)| n).sum();
        Some((before, self.0[at].1))
    }
}

/// A map from numbers to numbers that is linear in their digits.
#[derive(Clone, Debug)]
pub struct BitMap {
    params: Numbers,
    /// The digits of each result, lowest first.
    results: Vec<Vec<Digit>>,
}

/// The inverse of a [`BitMap`] on its image.
#[derive(Clone, Debug)]
pub struct BitInverse {
    /// The arguments as expressions of the results.
    pub values: Vec<Expr>,
    /// What holds at no result of the map, and at all others one of them does.
    pub outside: Vec<Expr>,
}

impl BitMap {
    /// The map that some expressions are of variables that are below `2^digits`. `None` where it is
    /// not seen to be linear, or has too many digits.
    pub fn from_indices(params: &[(Var, u32)], indices: &[Expr]) -> Option<BitMap> {
        let total = params.iter().try_fold(0u32, |sum, (_, n)| sum.checked_add(*n))?;
        if total > MAX_DIGITS {
            return None;
        }
        let params = Numbers(params.to_vec());
        let results = indices.iter().map(|e| digits(&params, e, 0)).collect::<Option<Vec<_>>>()?;
        let map = BitMap { params, results };
        (map.results.iter().map(Vec::len).sum::<usize>() <= MAX_DIGITS as usize).then_some(map)
    }

    /// The map that gives the sum of the basis elements of those digits that are one: `bases` has one
    /// element for each digit of all arguments, lowest first, each with one number a result.
    pub fn from_bases(params: &[(Var, u32)], bases: &[Vec<u64>], results: usize) -> Option<BitMap> {
        let total: u32 = params.iter().map(|(_, n)| n).sum();
        if total > MAX_DIGITS || bases.len() != total as usize {
            return None;
        }
        let results: Vec<Vec<Digit>> = (0..results)
            .map(|result| {
                let values = bases.iter().map(|b| b.get(result).copied().unwrap_or(0));
                let length = values.clone().map(|v| 64 - v.leading_zeros()).max().unwrap_or(0);
                (0..length)
                    .map(|j| {
                        let ones = values.clone().enumerate().filter(|(_, v)| v >> j & 1 == 1);
                        Digit { of: ones.map(|(at, _)| 1u128 << at).sum(), constant: false }
                    })
                    .collect()
            })
            .collect();
        let map = BitMap { params: Numbers(params.to_vec()), results };
        (map.results.iter().map(Vec::len).sum::<usize>() <= MAX_DIGITS as usize).then_some(map)
    }

    /// How many digits each result has.
    pub fn lengths(&self) -> Vec<u32> {
        self.results.iter().map(|r| r.len() as u32).collect()
    }

    /// The results as expressions of the arguments.
    pub fn expressions(&self, dtype: DType) -> Vec<Expr> {
        self.results.iter().map(|r| write(&self.params, r, dtype)).collect()
    }

    /// What the digit of an argument adds to the results; `None` where zero is not sent to zeros.
    pub fn basis(&self, digit: u32) -> Option<Vec<u64>> {
        let linear = self.results.iter().flatten().all(|d| !d.constant);
        if linear { self.results.iter().map(|r| basis_value(r, digit)).collect() } else { None }
    }

    /// The greatest value of a result over arguments below some extents, of which those of `None` are open and count
    /// as large as the result has use for; `None` where the arguments are too many to be tried.
    pub fn greatest(&self, result: usize, extents: &[Option<i64>], most: u64) -> Option<i64> {
        let digits = self.results.get(result)?;
        let used = digits.iter().fold(0, |all, d| all | d.of);
        // Arguments that do not matter are zero.
        let mut at = 0;
        let mut axes: Vec<(u32, u64)> = Vec::new();
        let mut count = 1u64;
        for ((_, width), extent) in self.params.0.iter().zip(extents) {
            let used = used.checked_shr(at).unwrap_or(0) & ones(*width);
            if used != 0 {
                let extent = match extent {
                    Some(extent) => u64::try_from(*extent).ok()?,
                    None => 1u64.checked_shl(128 - used.leading_zeros())?,
                };
                count = count.checked_mul(extent).filter(|n| *n <= most)?;
                axes.push((at, extent));
            }
            at += width;
        }
        let value = |mut point: u64| {
            let mut bits = 0u128;
            for (first, extent) in &axes {
                bits |= u128::from(point % extent) << first;
                point /= extent;
            }
            digits
                .iter()
                .enumerate()
                .map(|(j, d)| {
                    let odd = (d.of & bits).count_ones() % 2 == 1;
                    i64::from(odd != d.constant) << j
                })
                .sum::<i64>()
        };
        (digits.len() < 63).then(|| (0..count).map(value).max())?
    }

    /// Arguments, not all zero, that have the image of zeros, each below its extent; those of `None` are
    /// open.
    pub fn collision(&self, extents: &[Option<i64>]) -> Option<Vec<i64>> {
        /// Most of the kernel that is looked through.
        const TRIED: u32 = 14;
        let kernel = self.kernel();
        let tried = 1u64 << (kernel.len() as u32).min(TRIED);
        (1..tried).find_map(|choice| {
            let chosen = kernel.iter().enumerate().filter(|(k, _)| choice >> k & 1 == 1);
            let bits = chosen.fold(0u128, |sum, (_, z)| sum ^ z);
            let values = self.numbers(bits)?;
            values.iter().zip(extents).all(|(v, n)| n.is_none_or(|n| *v < n)).then_some(values)
        })
    }

    /// Arguments by their digits.
    fn numbers(&self, bits: u128) -> Option<Vec<i64>> {
        let mut at = 0;
        self.params
            .0
            .iter()
            .map(|(_, width)| {
                let value = bits.checked_shr(at).unwrap_or(0) & ones(*width);
                at += width;
                i64::try_from(value).ok()
            })
            .collect()
    }

    /// The rows of the matrix, reduced: each with the digits of the results that it is the sum of.
    fn reduced(&self) -> Vec<Row> {
        let digits = self.results.iter().flatten().enumerate();
        let mut rows: Vec<Row> = digits.map(|(at, d)| Row { left: *d, of: 1 << at }).collect();
        let mut done = 0;
        for column in 0..self.params.0.iter().map(|(_, n)| n).sum() {
            let Some(pivot) = (done..rows.len()).find(|k| has_column(&rows[*k], column)) else {
                continue;
            };
            rows.swap(done, pivot);
            let row = rows[done];
            for (at, other) in rows.iter_mut().enumerate() {
                if at != done && has_column(other, column) {
                    *other = Row { left: other.left.plus(row.left), of: other.of ^ row.of };
                }
            }
            done += 1;
        }
        rows
    }

    /// A basis of the differences of arguments that do not change the results.
    fn kernel(&self) -> Vec<u128> {
        let rows = self.reduced();
        let pivots: Vec<(u32, u128)> = rows
            .iter()
            .filter(|r| r.left.of != 0)
            .map(|r| (r.left.of.trailing_zeros(), r.left.of))
            .collect();
        let total: u32 = self.params.0.iter().map(|(_, n)| n).sum();
        (0..total)
            .filter(|c| pivots.iter().all(|(p, _)| p != c))
            .map(|c| {
                let forced = pivots.iter().filter(|(_, row)| row >> c & 1 == 1);
                forced.fold(1u128 << c, |z, (p, _)| z | 1 << p)
            })
            .collect()
    }

    /// The inverse in terms of variables for the results; `None` where two arguments with that many
    /// digits have one image.
    pub fn inverse(&self, cells: &[Var]) -> Option<BitInverse> {
        let lengths = self.lengths();
        let numbers = Numbers(cells.iter().cloned().zip(lengths).collect());
        let rows = self.reduced();
        let mut values = Vec::new();
        let mut at = 0;
        for (v, width) in &self.params.0 {
            let digits = (0..*width)
                .map(|j| {
                    let row = rows.iter().find(|r| r.left.of == 1u128 << (at + j))?;
                    Some(Digit { of: row.of, constant: row.left.constant })
                })
                .collect::<Option<Vec<Digit>>>()?;
            values.push(write(&numbers, &digits, v.dtype()));
            at += width;
        }
        let dtype = cells.first().map_or(DType::I32, Var::dtype);
        let outside = rows.iter().filter(|r| r.left.of == 0).map(|r| {
            let parity = parity(&numbers, r.of, dtype);
            parity.not_equal(i64::from(r.left.constant))
        });
        Some(BitInverse { values, outside: outside.collect() })
    }
}

fn basis_value(r: &[Digit], digit: u32) -> Option<u64> {
    let ones = r.iter().enumerate().filter(|(_, d)| d.of >> digit & 1 == 1);
    ones.map(|(j, _)| 1u64.checked_shl(j as u32)).sum::<Option<u64>>()
}

fn has_column(r: &Row, column: u32) -> bool {
    r.left.of >> column & 1 == 1
}

/// A row of a matrix during elimination.
#[derive(Clone, Copy)]
struct Row {
    left: Digit,
    /// The digits of the results whose sum it is.
    of: u128,
}

/// So many ones.
fn ones(width: u32) -> u128 {
    1u128.checked_shl(width).map_or(u128::MAX, |v| v - 1)
}

/// The digits of an expression.
fn digits(numbers: &Numbers, e: &Expr, depth: usize) -> Option<Vec<Digit>> {
    if depth > MAX_DEPTH || !e.dtype().is_int() || e.dtype().lanes != 1 {
        return None;
    }
    let of = |e: &Expr| digits(numbers, e, depth + 1);
    let found: Vec<Digit> = match e.kind() {
        ExprKind::Int(v) => {
            let bits = u64::try_from(*v).ok()?;
            (0..64 - bits.leading_zeros())
                .map(|j| Digit { of: 0, constant: bits >> j & 1 == 1 })
                .collect()
        }
        ExprKind::Var(v) => {
            let (first, width) = numbers.place(v)?;
            (first..first + width).map(|at| Digit { of: 1 << at, constant: false }).collect()
        }
        ExprKind::Cast(a) if a.dtype().is_int() && a.dtype().bits <= e.dtype().bits => of(a)?,
        ExprKind::Binary(BinOp::Add, a, b) => without_carry(of(a)?, of(b)?)?,
        ExprKind::Binary(BinOp::Mul, a, b) => {
            let (x, k) = match (a.as_int(), b.as_int()) {
                (_, Some(k)) => (of(a)?, k),
                (Some(k), _) => (of(b)?, k),
                _ => return None,
            };
            let k = u64::try_from(k).ok()?;
            let parts = (0..64).filter(|j| k >> j & 1 == 1).map(|j| shifted(&x, j));
            parts.map(Some).reduce(|a, b| without_carry(a?, b?)).unwrap_or(Some(Vec::new()))?
        }
        ExprKind::Binary(BinOp::FloorDiv | BinOp::FloorMod, a, b) => {
            let x = of(a)?;
            let quotient = matches!(e.kind(), ExprKind::Binary(BinOp::FloorDiv, ..));
            match power_of_two(b) {
                Some(k) if quotient => dropped(x, k),
                Some(k) => truncated(x, k),
                // What is below the divisor.
                None if i128::from(b.as_int()?) > ones(x.len() as u32) as i128 => {
                    if quotient {
                        Vec::new()
                    } else {
                        x
                    }
                }
                None => return None,
            }
        }
        ExprKind::Call(CallTarget::Intrin(op), args) => match (op, args.as_slice()) {
            (op, [a]) if op.is_hint() => of(a)?,
            (Intrin::BitXor, [a, b]) => each(&of(a)?, &of(b)?, |p, q| Some(p.plus(q)))?,
            (Intrin::BitAnd, [a, b]) => each(&of(a)?, &of(b)?, and)?,
            (Intrin::BitOr, [a, b]) => {
                each(&of(a)?, &of(b)?, |p, q| Some(p.plus(q).plus(and(p, q)?)))?
            }
            (Intrin::Shl, [a, b]) => {
                shifted(&of(a)?, usize::try_from(b.as_int()?).ok().filter(|k| *k < 63)?)
            }
            (Intrin::Shr, [a, b]) => dropped(of(a)?, usize::try_from(b.as_int()?).ok()?),
            _ => return None,
        },
        _ => return None,
    };
    let zeros = found.iter().rev().take_while(|d| d.is_zero()).count();
    let length = found.len() - zeros;
    // The value has to be one of the type.
    (length < e.dtype().bits as usize).then(|| truncated(found, length))
}

fn power_of_two(e: &Expr) -> Option<usize> {
    let k = e.as_int().filter(|k| *k > 0)?;
    (k & (k - 1) == 0).then(|| k.trailing_zeros() as usize)
}

fn dropped(x: Vec<Digit>, k: usize) -> Vec<Digit> {
    x.into_iter().skip(k).collect()
}

fn truncated(x: Vec<Digit>, k: usize) -> Vec<Digit> {
    x.into_iter().take(k).collect()
}

fn shifted(x: &[Digit], k: usize) -> Vec<Digit> {
    [vec![Digit::default(); k].as_slice(), x].concat()
}

/// Digit by digit.
fn each(
    x: &[Digit],
    y: &[Digit],
    op: impl Fn(Digit, Digit) -> Option<Digit>,
) -> Option<Vec<Digit>> {
    (0..x.len().max(y.len())).map(|j| op(digit_at(x, j), digit_at(y, j))).collect()
}

fn digit_at(n: &[Digit], j: usize) -> Digit {
    n.get(j).copied().unwrap_or_default()
}

/// The product of two digits, where it is linear.
fn and(p: Digit, q: Digit) -> Option<Digit> {
    match (p, q) {
        (Digit { of: 0, constant }, other) | (other, Digit { of: 0, constant }) => {
            Some(if constant { other } else { Digit::default() })
        }
        (p, q) if p == q => Some(p),
        (p, q) if p.of == q.of => Some(Digit::default()),
        _ => None,
    }
}

/// The sum of two numbers that have no digit in common.
fn without_carry(x: Vec<Digit>, y: Vec<Digit>) -> Option<Vec<Digit>> {
    each(&x, &y, |p, q| if p.is_zero() || q.is_zero() { Some(p.plus(q)) } else { None })
}

/// A part of a number: some of its digits, moved.
struct Field {
    var: Var,
    width: u32,
    /// How many places lower the digits are in the result.
    down: i64,
    /// The digits of the result that they are.
    to: u128,
}

impl Field {
    fn write(&self, dtype: DType) -> Expr {
        let value = self.var.expr().cast(dtype);
        let low = self.to.trailing_zeros();
        let length = 128 - self.to.leading_zeros() - low;
        let from = (i64::from(low) + self.down).max(0) as u32;
        if self.to >> low == ones(length) {
            let mut part = value;
            if from > 0 {
                part = part.floordiv(1i64 << from);
            }
            if from + length < self.width {
                part = part.floormod(1i64 << length);
            }
            return if low > 0 { part * (1i64 << low) } else { part };
        }
        let mask = |bits: u128| Expr::int(bits as i64, dtype);
        let and = |value: Expr, bits: u128| Expr::intrin(Intrin::BitAnd, vec![value, mask(bits)]);
        match self.down {
            0 => and(value, self.to),
            1.. => and(value.floordiv(1i64 << self.down), self.to),
            _ => and(value, self.to >> -self.down) * (1i64 << -self.down),
        }
    }
}

/// A number with these digits, of at most 63.
fn write(numbers: &Numbers, digits: &[Digit], dtype: DType) -> Expr {
    let mut fields: Vec<Field> = Vec::new();
    for (j, digit) in digits.iter().enumerate() {
        let mut first = 0;
        for (var, width) in &numbers.0 {
            for at in (0..*width).filter(|at| digit.of >> (first + at) & 1 == 1) {
                let down = i64::from(at) - j as i64;
                match fields.iter_mut().find(|f| f.var == *var && f.down == down) {
                    Some(field) => field.to |= 1 << j,
                    None => {
                        fields.push(Field { var: var.clone(), width: *width, down, to: 1 << j })
                    }
                }
            }
            first += width;
        }
    }
    fields.sort_by_key(|f| (std::cmp::Reverse(f.to.count_ones()), std::cmp::Reverse(f.to)));
    // Fields that have no digit in common are added.
    let mut groups: Vec<(u128, Expr)> = Vec::new();
    for field in &fields {
        let value = field.write(dtype);
        match groups.iter_mut().find(|(taken, _)| taken & field.to == 0) {
            Some((taken, sum)) => {
                *taken |= field.to;
                *sum = sum.clone() + value;
            }
            None => groups.push((field.to, value)),
        }
    }
    let ones = digits.iter().enumerate().filter(|(_, d)| d.constant);
    let constant: i64 = ones.map(|(j, _)| 1i64 << j).sum();
    let sum = groups.into_iter().map(|(_, e)| e).reduce(xor);
    let number = Expr::int(constant, dtype);
    match sum {
        Some(sum) if constant != 0 => xor(sum, number),
        Some(sum) => sum,
        None => number,
    }
}

fn xor(a: Expr, b: Expr) -> Expr {
    Expr::intrin(Intrin::BitXor, vec![a, b])
}

/// Whether an odd number of these digits is one: 0 or 1.
fn parity(numbers: &Numbers, of: u128, dtype: DType) -> Expr {
    let mut parts = Vec::new();
    let mut first = 0;
    for (var, width) in &numbers.0 {
        for at in (0..*width).filter(|at| of >> (first + at) & 1 == 1) {
            let digit = Field { var: var.clone(), width: *width, down: i64::from(at), to: 1 };
            parts.push(digit.write(dtype));
        }
        first += width;
    }
    let count = parts.len();
    let sum = parts.into_iter().reduce(|a, b| a + b).unwrap_or_else(|| Expr::int(0, dtype));
    if count > 1 { sum.floormod(2) } else { sum }
}
