//! Selection of dot-product instructions.
//!
//! What [`TensorInstruction::implementation`] says of a machine's dot product is a sum of vectors of
//! `int32`: to an accumulator are added the products of `g` elements beside one another, which are
//! the same for all lanes, with the `g` neighbours that each lane has in the other operand.
//!
//! ```text
//! c[0:16] + (i32(a[k]) * i32(b[j:j+64:4]) + i32(a[k+1]) * i32(b[j+1:j+65:4]) + ...)
//! ```
//!
//! That is recognised here by types and places, whatever the order of terms and factors, and becomes
//! one instruction. Where anything differs, the sum is evaluated as it stands, which is the same value:
//! these instructions wrap, and none saturates.
//!
//! Sums of `float32` are recognised in the order in which the instruction adds, the last product first:
//! `c + f32(a[k+1]) * f32(b[j+1:j+33:2]) + f32(a[k]) * f32(b[j:j+32:2])`. Products of `bfloat16` are exact.
//! Here numbers below the normal ones are zeros (`docs/semantics.md`).
//!
//! [`TensorInstruction::implementation`]: tilewright_target::TensorInstruction::implementation

use tilewright_ir::index::Linear;
use tilewright_ir::{BinOp, Buffer, DType, Error, Expr, ExprKind, Result, TypeKind};

use super::code::{Scalar, Ty, Val};
use super::func::Func;
use super::machine::Dot;

/// Terms of a sum that is looked at: those of the largest group, and what they are added to.
const MOST: usize = 6;

/// A product of an element and a vector of them.
struct Product<'e> {
    one: Access<'e>,
    lanes: Access<'e>,
}

/// Elements of a buffer.
struct Access<'e> {
    buffer: &'e Buffer,
    /// The first one.
    at: &'e Expr,
    /// How far apart they are; 0 for one.
    step: i64,
}

/// A sum that an instruction computes.
struct Sum<'e> {
    dot: Dot,
    /// The first of the products.
    first: Product<'e>,
    /// What else is added.
    others: Vec<&'e Expr>,
}

impl Func<'_> {
    /// Whether a sum is what a dot-product instruction computes. Not inlined: expressions are evaluated
    /// by recursion, and what this needs would be in every frame.
    #[inline(never)]
    pub(super) fn is_dot(&self, e: &Expr) -> bool {
        self.find_dot(e).is_some()
    }

    fn find_dot<'e>(&self, e: &'e Expr) -> Option<Sum<'e>> {
        let (dtype, machine) = (e.dtype(), &self.code.shared.machine);
        if dtype.lanes == 1 || self.mask.is_some() {
            return None;
        }
        let dots: Vec<Dot> = machine
            .dots
            .iter()
            .filter(|d| d.lanes == dtype.lanes && d.sum == dtype.scalar())
            .copied()
            .collect();
        let mut terms = Vec::new();
        if dots.is_empty() || !addends(e, MOST, &mut terms) {
            return None;
        }
        if dtype.is_float() {
            return in_order(e, &dots);
        }
        let (products, others): (Vec<_>, Vec<_>) =
            terms.into_iter().map(|t| product(t).ok_or(t)).partition(std::result::Result::is_ok);
        let mut products: Vec<Product<'_>> = products.into_iter().flatten().collect();
        let others: Vec<&Expr> = others.into_iter().filter_map(std::result::Result::err).collect();
        let (dot, first) = dots.iter().find_map(|d| Some((*d, group(d, &products)?)))?;
        Some(Sum { dot, first: products.swap_remove(first), others })
    }

    /// The value of a sum that [`Func::is_dot`] accepts. Not inlined, as that.
    #[inline(never)]
    pub(super) fn dot(&mut self, e: &Expr) -> Result<Val> {
        let dtype = e.dtype();
        let Some(Sum { dot, first, others }) = self.find_dot(e) else {
            return Err(Error::internal("a sum that no instruction computes"));
        };
        let word = Ty::I32.with_lanes(dtype.lanes);
        let ty = if dtype.is_float() { word.with_scalar(Scalar::F32) } else { word };
        let mut sum = Val::zero(ty);
        for (k, other) in others.into_iter().enumerate() {
            let value = self.expr(other)?;
            sum = if k == 0 { value } else { self.code.bin("add", &sum, &value) };
        }
        let Product { one, lanes } = first;
        let element = self.words(one.buffer, one.at, 1)?;
        let one_value = self.code.splat(&element, dtype.lanes);
        let lanes_value = self.words(lanes.buffer, lanes.at, dtype.lanes)?;
        let swapped = dot.a.kind == TypeKind::Int && dot.b.kind == TypeKind::UInt;
        let (x, y) = if swapped { (lanes_value, one_value) } else { (one_value, lanes_value) };
        let each = (4 / dot.operand.bytes()) as u16;
        let operand = Ty { scalar: dot.operand, lanes: dtype.lanes * each };
        let [x, y] = [x, y].map(|v| {
            if v.ty == operand {
                v
            } else {
                self.code.emit(operand, format_args!("bitcast {v} to {operand}"))
            }
        });
        Ok(match dot.operand {
            Scalar::I16 => {
                let pairs = self.code.intrinsic(dot.intrinsic, &[], ty, &[&x, &y]);
                self.code.bin("add", &sum, &pairs)
            }
            _ => self.code.intrinsic(dot.intrinsic, &[], ty, &[&sum, &x, &y]),
        })
    }
}

/// A sum of floats whose products are added one after the other, the last one first.
fn in_order<'e>(e: &'e Expr, dots: &[Dot]) -> Option<Sum<'e>> {
    let (mut rest, mut products) = (e, Vec::new());
    let size = dots.first()?.group;
    while products.len() < size {
        let ExprKind::Binary(BinOp::Add, more, last) = rest.kind() else { return None };
        products.push(product(last)?);
        rest = more;
    }
    let dot = *dots.iter().find(|d| d.group == size && group(d, &products) == Some(0))?;
    Some(Sum { dot, first: products.swap_remove(0), others: vec![rest] })
}

/// The addends of a sum; `false` where there are more than `most`.
fn addends<'e>(e: &'e Expr, most: usize, out: &mut Vec<&'e Expr>) -> bool {
    match e.kind() {
        ExprKind::Binary(BinOp::Add, a, b) if e.dtype() == a.dtype() => {
            most > 1 && addends(a, most - 1, out) && addends(b, most - 1, out)
        }
        _ => {
            out.push(e);
            out.len() <= MOST
        }
    }
}

/// The product that a term is.
fn product(e: &Expr) -> Option<Product<'_>> {
    let ExprKind::Binary(BinOp::Mul, a, b) = e.kind() else { return None };
    let (a, b) = (elements(a)?, elements(b)?);
    match (a.step, b.step) {
        (0, 1..) => Some(Product { one: a, lanes: b }),
        (1.., 0) => Some(Product { one: b, lanes: a }),
        _ => None,
    }
}

/// Elements of a flat buffer that are widened to the type of sums.
fn elements(e: &Expr) -> Option<Access<'_>> {
    match e.kind() {
        ExprKind::Broadcast(x) | ExprKind::Cast(x) => elements(x),
        ExprKind::Load(buffer, indices)
            if (buffer.dtype().is_int() || buffer.dtype() == DType::BF16)
                && buffer.strides.is_empty() =>
        {
            let [index] = &indices[..] else { return None };
            let (at, step) = match index.kind() {
                ExprKind::Ramp(at, step) => (at, step.as_int().filter(|s| *s > 0)?),
                ExprKind::Broadcast(at) => (at, 0),
                _ if index.dtype().lanes == 1 => (index, 0),
                _ => return None,
            };
            Some(Access { buffer, at, step })
        }
        _ => None,
    }
}

/// The position of the first of the products that an instruction adds up, where these are all there are.
fn group(d: &Dot, all: &[Product<'_>]) -> Option<usize> {
    let head = all.first()?;
    let fits = head.one.buffer.dtype() == d.a
        && head.lanes.buffer.dtype() == d.b
        && usize::try_from(head.lanes.step) == Ok(d.group)
        && all.len() == d.group
        && all.iter().all(|p| same_stream(&p.one, &head.one) && same_stream(&p.lanes, &head.lanes));
    if !fits {
        return None;
    }
    // By how much each is behind the first: the same in both operands.
    let mut order = Vec::new();
    for (at, p) in all.iter().enumerate() {
        let by = distance(p.lanes.at, head.lanes.at)?;
        if distance(p.one.at, head.one.at)? != by {
            return None;
        }
        order.push((by, at));
    }
    order.sort_by_key(|(by, _)| *by);
    let (least, first) = *order.first()?;
    let beside = order.iter().zip(0..).all(|((by, _), k)| by - least == k);
    beside.then_some(first)
}

fn same_stream(a: &Access<'_>, b: &Access<'_>) -> bool {
    a.buffer == b.buffer && a.step == b.step
}

fn distance(a: &Expr, from: &Expr) -> Option<i128> {
    Linear::from_expr(a)?.plus(&Linear::from_expr(from)?, -1)?.as_constant()
}
