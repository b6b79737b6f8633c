//! Operators on values: arithmetic, division, comparisons, conversions.
//!
//! Integers wrap. Nothing here is undefined in LLVM's sense whatever the operands are: a division
//! whose divisor may be zero gives some value there, and the smallest integer divided by -1 is
//! itself. Floating-point products may round together with the sum that accumulates them, and
//! minimum and maximum of `-0.0` and `0.0` is either; nothing else is relaxed.

use tilewright_ir::{BinOp, DType, TypeKind};

use super::code::{Code, Scalar, Shared, Ty, Val};
use super::half;
use super::types::{is_narrow_float, is_signed};
use tilewright_ir::index::Interval;

/// An operator on two operands of the type `dtype`. The intervals hold the operands' values.
pub(super) struct Operands<'a> {
    pub a: &'a Val,
    pub b: &'a Val,
    pub dtype: DType,
    /// Values of both, for integers.
    pub ranges: (Interval, Interval),
    /// Whether an operand is a constant that is not `NaN`: the left, the right.
    pub constant: (bool, bool),
    /// Whether a floating-point sum may be reordered with its neighbours.
    pub reassoc: bool,
    /// Whether the loop around carries many minima and maxima side by side.
    pub is_one_of_many: bool,
}

/// The value of an operator; `None` where the type does not have it.
pub(super) fn binary(c: &mut Code<'_>, op: BinOp, x: &Operands<'_>) -> Option<Val> {
    let dtype = x.dtype;
    if op.is_compare() {
        return Some(compare(c, op, x));
    }
    match dtype.kind {
        TypeKind::Bool => logic(c, op, x.a, x.b),
        TypeKind::Int | TypeKind::UInt => integer(c, op, x),
        TypeKind::Float | TypeKind::BFloat => float(c, op, x),
        TypeKind::Handle | TypeKind::Void => None,
    }
}

/// Comparison; with `NaN` only `!=` holds.
fn compare(c: &mut Code<'_>, op: BinOp, x: &Operands<'_>) -> Val {
    let kind = match (op, is_signed(x.dtype)) {
        (BinOp::Ne, _) if x.dtype.is_float() => "fcmp u",
        _ if x.dtype.is_float() => "fcmp o",
        (BinOp::Eq | BinOp::Ne, _) => "icmp ",
        (_, true) => "icmp s",
        (_, false) => "icmp u",
    };
    let name = match op {
        BinOp::Eq => "eq",
        BinOp::Ne => "ne",
        BinOp::Lt => "lt",
        BinOp::Le => "le",
        BinOp::Gt => "gt",
        _ => "ge",
    };
    c.cmp(&format!("{kind}{name}"), x.a, x.b)
}

/// Arithmetic of `bool` is that of 0 and 1, where everything but 0 counts as 1.
fn logic(c: &mut Code<'_>, op: BinOp, a: &Val, b: &Val) -> Option<Val> {
    let op = match op {
        BinOp::And | BinOp::Mul | BinOp::Min => "and",
        BinOp::Or | BinOp::Add | BinOp::Max => "or",
        BinOp::Sub => "xor",
        _ => return None,
    };
    Some(c.bin(op, a, b))
}

fn integer(c: &mut Code<'_>, op: BinOp, x: &Operands<'_>) -> Option<Val> {
    let (a, b, signed) = (x.a, x.b, is_signed(x.dtype));

    match op {
        BinOp::Add => Some(c.bin("add", a, b)),
        BinOp::Sub => Some(c.bin("sub", a, b)),
        BinOp::Mul => Some(c.bin("mul", a, b)),
        BinOp::Min => Some(c.math(if signed { "smin" } else { "umin" }, &[a, b])),
        BinOp::Max => Some(c.math(if signed { "smax" } else { "umax" }, &[a, b])),
        BinOp::FloorDiv | BinOp::FloorMod | BinOp::TruncDiv | BinOp::TruncMod => {
            Some(divide(c, op, x))
        }
        _ => None,
    }
}

/// The four divisions of integers.
fn divide(c: &mut Code<'_>, op: BinOp, x: &Operands<'_>) -> Val {
    let (a, ty) = (x.a, x.a.ty);
    if ty.scalar.bits() < 32 {
        // All values are `int32` values, and the low bits of the result are the result.
        let extend = if is_signed(x.dtype) { "sext" } else { "zext" };
        let (a, b) = (c.convert(extend, a, Scalar::I32), c.convert(extend, x.b, Scalar::I32));
        let dtype = DType::I32.with_lanes(x.dtype.lanes);
        let wide = divide(c, op, &Operands { a: &a, b: &b, dtype, ..*x });
        return c.convert("trunc", &wide, ty.scalar);
    }
    let quotient = matches!(op, BinOp::FloorDiv | BinOp::TruncDiv);
    let floor = matches!(op, BinOp::FloorDiv | BinOp::FloorMod);
    let (ra, rb) = x.ranges;
    let constant = rb.lo == rb.hi && rb.lo != 0;
    let b = if constant { Val::int(ty, rb.lo as i64) } else { x.b.clone() };
    let unsigned = !is_signed(x.dtype) || (ra.lo >= 0 && rb.lo >= 0);
    if unsigned && constant {
        return c.bin(if quotient { "udiv" } else { "urem" }, a, &b);
    }
    if floor && constant && rb.lo > 0 && rb.lo & (rb.lo - 1) == 0 {
        let shift = i64::from(rb.lo.trailing_zeros());
        return if quotient {
            c.bin("ashr", a, &Val::int(ty, shift))
        } else {
            c.bin("and", a, &Val::int(ty, (rb.lo - 1) as i64))
        };
    }
    let q = match constant {
        true if rb.lo == -1 => c.bin("sub", &Val::zero(ty), a),
        true => c.bin("sdiv", a, &b),
        false => variable_quotient(c, x, unsigned),
    };
    if quotient && (unsigned || !floor) {
        return q;
    }
    let product = c.bin("mul", &q, &b);
    let r = c.bin("sub", a, &product);
    if unsigned || !floor {
        return r;
    }
    // Towards minus infinity: one less where the remainder has not the divisor's sign.
    let zero = Val::zero(ty);
    let off = c.cmp("icmp ne", &r, &zero);
    let signs = c.bin("xor", &r, &b);
    let differ = c.cmp("icmp slt", &signs, &zero);
    let off = c.bin("and", &off, &differ);
    if quotient {
        let off = c.convert("sext", &off, ty.scalar);
        return c.bin("add", &q, &off);
    }
    let more = c.select(&off, &b, &zero);
    c.bin("add", &r, &more)
}

/// A float as an integer of fewer than 32 bits, which saturates, with zero for `NaN`. By way of
/// `int32`, since LLVM takes vectors apart that it converts to such integers directly.
fn narrowed(c: &mut Code<'_>, v: &Val, to: DType, ty: Ty) -> Val {
    let bits = ty.scalar.bits();
    let (least, most) = if is_signed(to) {
        (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1)
    } else {
        (0, (1i64 << bits) - 1)
    };
    let [least, most] = [least, most].map(|limit| Val::float(v.ty, limit as f64));
    let zero = Val::zero(v.ty);
    let v = c.select_cmp("fcmp ord", v, &zero, v, &zero);
    let v = c.select_cmp("fcmp ogt", &v, &least, &v, &least);
    let v = c.select_cmp("fcmp olt", &v, &most, &v, &most);
    let wide = c.convert("fptosi", &v, Scalar::I32);
    c.convert("trunc", &wide, ty.scalar)
}

/// A float as an `int32` or `int64`, which saturates, with zero for `NaN`. LLVM takes vectors apart that it converts
/// so by its own operation.
fn saturated(c: &mut Code<'_>, v: &Val, ty: Ty) -> Val {
    let end = (ty.scalar.bits() as f64 - 1.0).exp2();
    let least = -end;
    // The last number before the end that the type of the float has, and whether it is the largest integer.
    let (last, is_exact) = match (v.ty.scalar, ty.scalar) {
        (Scalar::F64, Scalar::I32) => (f64::from(i32::MAX), true),
        (Scalar::F64, _) => (end.next_down(), false),
        _ => (f64::from((end as f32).next_down()), false),
    };
    let [least, last, end] = [least, last, end].map(|limit| Val::float(v.ty, limit));
    let zero = Val::zero(v.ty);
    let inside = c.select_cmp("fcmp ord", v, &zero, v, &zero);
    let inside = c.select_cmp("fcmp ogt", &inside, &least, &inside, &least);
    let inside = c.select_cmp("fcmp olt", &inside, &last, &inside, &last);
    let whole = c.convert("fptosi", &inside, ty.scalar);
    if is_exact {
        return whole;
    }
    let most = if ty.scalar == Scalar::I32 { i64::from(i32::MAX) } else { i64::MAX };
    let beyond = c.cmp("fcmp oge", v, &end);
    c.select(&beyond, &Val::int(ty, most), &whole)
}

/// The truncated quotient by a divisor that is not constant: some value for a divisor of zero, and
/// the smallest integer for it divided by -1.
///
/// Never a division instruction in the middle of other code: those may trap, so LLVM's vectoriser
/// has to guard each one, and where all operands are the same for every lane it guards the one
/// division for all lanes by the condition of the first (LLVM 22). Up to 32 bits the quotient of
/// two `double` is exact after truncation, because a quotient that is not an integer differs from
/// the next one by more than 2^-32 of itself; and that vectorises. 64 bits go through a function
/// that cannot fail, so that it may be called unconditionally.
fn variable_quotient(c: &mut Code<'_>, x: &Operands<'_>, unsigned: bool) -> Val {
    let (a, b, ty) = (x.a, x.b, x.a.ty);
    let (ra, rb) = x.ranges;
    if ty.scalar == Scalar::I64 {
        let name = if unsigned { "udiv" } else { "sdiv" };
        let name = format!("tw.{name}.{}", ty.suffix());
        c.shared.helper(&name, |shared| quotient_function(shared, &name, ty, unsigned));
        return c.call(&name, ty, &[a, b]);
    }
    let b = nonzero(c, b, rb);
    let (to, from) = if is_signed(x.dtype) { ("sitofp", "fptosi") } else { ("uitofp", "fptoui") };
    let (p, q) = (c.convert(to, a, Scalar::F64), c.convert(to, &b, Scalar::F64));
    let value = c.bin("fdiv", &p, &q);
    if is_signed(x.dtype) && ra.contains(i32::MIN.into()) && rb.contains(-1) {
        // 2^31 is not an `int32`.
        let value = c.convert(from, &value, Scalar::I64);
        return c.convert("trunc", &value, Scalar::I32);
    }
    c.convert(from, &value, Scalar::I32)
}

/// A function for the quotient of 64-bit integers that has a value for all operands.
fn quotient_function(shared: &Shared, name: &str, ty: Ty, unsigned: bool) -> String {
    let mut c = Code::new(shared);
    let [a, b] = ["%a", "%b"].map(|name| {
        let v = Val::new(ty, name);
        c.emit(ty, format_args!("freeze {v}"))
    });
    let all = Interval { lo: i128::MIN, hi: i128::MAX };
    let mut divisor = nonzero(&mut c, &b, all);
    let q = if unsigned {
        c.bin("udiv", &a, &divisor)
    } else {
        let minus_one = c.cmp("icmp eq", &b, &Val::int(ty, -1));
        divisor = c.select(&minus_one, &Val::int(ty, 1), &divisor);
        let q = c.bin("sdiv", &a, &divisor);
        let negated = c.bin("sub", &Val::zero(ty), &a);
        c.select(&minus_one, &negated, &q)
    };
    c.line(format_args!("ret {q}"));
    c.finish(&format!("define internal {ty} @{name}({ty} %a, {ty} %b) #3"))
}

/// The divisor, or 1 instead of 0.
fn nonzero(c: &mut Code<'_>, b: &Val, range: Interval) -> Val {
    if !range.contains(0) {
        return b.clone();
    }
    c.select_cmp("icmp eq", b, &Val::zero(b.ty), &Val::int(b.ty, 1), b)
}

fn float(c: &mut Code<'_>, op: BinOp, x: &Operands<'_>) -> Option<Val> {
    let (a, b) = (x.a, x.b);
    let flags = match (is_narrow_float(x.dtype), x.reassoc, c.contract) {
        (true, ..) | (false, false, false) => "",
        (false, true, _) => " reassoc contract",
        (false, false, true) => " contract",
    };
    let value = match op {
        BinOp::Add => c.bin(&format!("fadd{flags}"), a, b),
        BinOp::Sub => c.bin(&format!("fsub{flags}"), a, b),
        BinOp::Mul => c.bin(&format!("fmul{flags}"), a, b),
        BinOp::Div => c.bin("fdiv", a, b),
        BinOp::Min => return Some(extreme(c, "minimum", "fcmp olt", x)),
        BinOp::Max => return Some(extreme(c, "maximum", "fcmp ogt", x)),
        _ => return None,
    };
    Some(half::round(c, &value, x.dtype))
}

/// Minimum or maximum, `NaN` if either is.
///
/// Against a constant, one comparison that a `NaN` fails gives that, and is one instruction on
/// x86; otherwise it is LLVM's intrinsic, three instructions there, which the vectoriser knows as
/// a reduction. Vectors with masks take two: the instruction gives its second operand where one is `NaN`,
/// and is left out where the first is ([`super::extremes`] says which side that is).
fn extreme(c: &mut Code<'_>, intrinsic: &str, better: &str, x: &Operands<'_>) -> Val {
    let (a, b) = match x.constant {
        _ if c.shared.machine.nan_min_max => return c.extreme(intrinsic, x.a, x.b),
        (true, _) => (x.a, x.b),
        (_, true) => (x.b, x.a),
        _ if !c.shared.machine.masks.is_empty() && x.a.ty.lanes > 1 => {
            // Reductions have what they add to on the left.
            let (tested, other) = if x.is_one_of_many { (x.a, x.b) } else { (x.b, x.a) };
            let either = c.select_cmp(better, tested, other, tested, other);
            return c.select_cmp("fcmp ord", tested, tested, &either, tested);
        }
        _ => return c.extreme(intrinsic, x.a, x.b),
    };
    c.select_cmp(better, a, b, a, b)
}

/// Conversion between types of equal lanes; `None` where there is none.
///
/// Integers wrap; floating point to integer rounds towards zero, takes the nearest value of the
/// type outside its range, and 0 for `NaN`; to `bool` compares with zero.
pub(super) fn cast(c: &mut Code<'_>, v: &Val, from: DType, to: DType, ty: Ty) -> Option<Val> {
    use TypeKind::{BFloat, Bool, Float, Handle, Int, UInt};
    if from == to {
        return Some(v.clone());
    }
    Some(match (from.kind, to.kind) {
        (Bool, Bool) | (Handle, Handle) => v.clone(),
        (Int | UInt | Handle, Bool) => c.cmp("icmp ne", v, &Val::zero(v.ty)),
        (Float | BFloat, Bool) => c.cmp("fcmp une", v, &Val::zero(v.ty)),
        (Bool, Int | UInt) => c.convert("zext", v, ty.scalar),
        (Bool, Float | BFloat) => c.convert("uitofp", v, ty.scalar),
        (Int | UInt, Int | UInt) if to.bits == from.bits => v.clone(),
        (Int | UInt, Int | UInt) if to.bits < from.bits => c.convert("trunc", v, ty.scalar),
        (Int, Int | UInt) => c.convert("sext", v, ty.scalar),
        (UInt, Int | UInt) => c.convert("zext", v, ty.scalar),
        (Int | UInt, Float | BFloat) => {
            let op = if is_signed(from) { "sitofp" } else { "uitofp" };
            if to.kind == BFloat && from.bits > 16 {
                // More bits than a `float` has: it must not round first.
                let v = if from.bits == 64 { sticky(c, v, from) } else { v.clone() };
                let wide = c.convert(op, &v, Scalar::F64);
                let odd = half::round_to_odd(c, &wide);
                half::round(c, &odd, to)
            } else {
                let wide = c.convert(op, v, ty.scalar);
                half::round(c, &wide, to)
            }
        }
        (Float | BFloat, Int | UInt) if ty.scalar.bits() < 32 && v.ty.scalar != Scalar::Half => {
            narrowed(c, v, to, ty)
        }
        (Float | BFloat, Int) if to.bits >= 32 && v.ty.scalar != Scalar::Half => {
            saturated(c, v, ty)
        }
        (Float | BFloat, Int | UInt) => {
            let op = if is_signed(to) { "fptosi.sat" } else { "fptoui.sat" };
            c.intrinsic(op, &[ty, v.ty], ty, &[v])
        }
        (Float | BFloat, Float | BFloat) => match (v.ty.scalar, ty.scalar) {
            (Scalar::F32, Scalar::F64) => c.convert("fpext", v, Scalar::F64),
            (Scalar::F64, Scalar::F32) if is_narrow_float(to) => {
                let odd = half::round_to_odd(c, v);
                half::round(c, &odd, to)
            }
            (Scalar::F64, Scalar::F32) => c.convert("fptrunc", v, Scalar::F32),
            _ => half::round(c, v, to),
        },
        (Handle, Int | UInt) => c.convert("ptrtoint", v, ty.scalar),
        (Int | UInt, Handle) => c.convert("inttoptr", v, ty.scalar),
        _ => return None,
    })
}

/// A 64-bit integer with the bits that a `double` has no room for folded into bit 12: it is set
/// where one below it is. Rounding to fewer bits afterwards gives the same result.
fn sticky(c: &mut Code<'_>, v: &Val, dtype: DType) -> Val {
    let ty = v.ty;
    let low = c.bin("and", v, &Val::int(ty, 0xfff));
    let inexact = c.cmp("icmp ne", &low, &Val::zero(ty));
    let inexact = c.convert("zext", &inexact, Scalar::I64);
    let inexact = c.bin("shl", &inexact, &Val::int(ty, 12));
    let high = c.bin("and", v, &Val::int(ty, -0x1000));
    let folded = c.bin("or", &high, &inexact);
    let limit = 1i64 << 53;
    let shifted = if is_signed(dtype) { c.bin("add", v, &Val::int(ty, limit)) } else { v.clone() };
    let bound = if is_signed(dtype) { 2 * limit } else { limit };
    c.select_cmp("icmp ult", &shifted, &Val::int(ty, bound), v, &folded)
}
