//! Calls: built-in functions, C functions, and the little else that can be called.
//!
//! A call of a C function passes integers, `bool`, `float32`, `float64`, pointers (`A.data`, or
//! `T.address_of(A[i])`) and text as C does. It may have any effect, so nothing that was read
//! before is taken for known after it.

use std::sync::Arc;

use tilewright_ir::visit::Subst;
use tilewright_ir::{DType, Error, Expr, ExprKind, Fold, Intrin, Result, TypeKind};

use super::code::{Ty, Val};
use super::func::Func;
use super::math::intrinsic::{self, Whole};
use super::names::is_identifier;
use super::types::{is_narrow_float, register};
use tilewright_ir::index::Interval;

impl Func<'_> {
    pub(super) fn call_intrinsic(&mut self, e: &Expr, op: Intrin, args: &[Expr]) -> Result<Val> {
        if args.len() != op.arity() {
            return Err(Error::malformed(format!(
                "`T.{}` takes {} arguments and is given {}",
                op.name(),
                op.arity(),
                args.len()
            )));
        }
        let dtype = args.first().map_or(DType::VOID, Expr::dtype);
        if args.iter().any(|a| a.dtype() != dtype) {
            return Err(Error::malformed(format!("the arguments of `{e}` differ in type")));
        }
        // Where a thread began, the variable of the loop had the value that its first iteration has.
        let first = match (op, &self.task) {
            (Intrin::FirstOfTask, Some((var, first))) => {
                let mut begin = Subst::vars([(var.clone(), first.expr())]);
                Some(args.iter().map(|a| begin.expr(a)).collect::<Vec<Expr>>())
            }
            _ => None,
        };
        let args = first.as_deref().unwrap_or(args);
        let values = args.iter().map(|a| self.expr(a)).collect::<Result<Vec<Val>>>()?;
        let done = match dtype.is_float() {
            _ if !op.operands().admit(dtype) => None,
            true => self.float_intrinsic(op, args, &values, dtype),
            false => self.int_intrinsic(op, args, values, dtype),
        };
        done.ok_or_else(|| {
            Error::unsupported(format!("`T.{}` does not take values of type {dtype}", op.name()))
        })
    }

    fn float_intrinsic(
        &mut self,
        op: Intrin,
        args: &[Expr],
        values: &[Val],
        dtype: DType,
    ) -> Option<Val> {
        let c = &mut self.code;
        let power = match (op, values, args) {
            (Intrin::Pow, [x, _], [_, exponent]) => constant_power(c, x, exponent),
            _ => None,
        };
        let value = match power {
            Some(value) => value,
            None => intrinsic::of_floats(c, op, values)?,
        };
        Some(if op.is_exact() || op.is_predicate() { value } else { self.rounded(&value, dtype) })
    }

    fn int_intrinsic(
        &mut self,
        op: Intrin,
        args: &[Expr],
        values: Vec<Val>,
        dtype: DType,
    ) -> Option<Val> {
        let amount = args.get(1).map_or(Interval::all(dtype), |a| self.ranges.interval(a));
        let mut values = values.into_iter();
        let x = values.next()?;
        let in_width = amount.lo >= 0 && amount.hi < i128::from(x.ty.scalar.bits());
        let y = values.next().unwrap_or_else(|| x.clone());
        intrinsic::of_ints(&mut self.code, op, &Whole { x, y, dtype, in_width })
    }

    /// Text as a pointer to a constant that ends with a zero byte.
    pub(super) fn string(&mut self, text: &str) -> Val {
        let bytes: Vec<u8> = text.bytes().chain([0]).collect();
        self.code.bytes("str", 1, &bytes)
    }

    /// A call of a C function; `None` where it has no result.
    pub(super) fn call_extern(
        &mut self,
        name: &Arc<str>,
        args: &[Expr],
        ret: DType,
    ) -> Result<Option<Val>> {
        if !is_identifier(name) {
            return Err(Error::unsupported(format!(
                "`{name}` is called, but is not the name of a C function"
            )));
        }
        let values = args.iter().map(|a| self.expr(a)).collect::<Result<Vec<Val>>>()?;
        let mut types = Vec::new();
        let mut written = Vec::new();
        for (arg, value) in args.iter().zip(&values) {
            let attr = c_attribute(name, arg.dtype())?;
            types.push(format!("{}{attr}", value.ty));
            written.push(format!("{}{attr} {}", value.ty, value.text));
        }
        let (types, written) = (types.join(", "), written.join(", "));
        let (attr, ty) = match ret {
            DType::VOID => (String::new(), None),
            _ => (c_attribute(name, ret)?, Some(register(ret)?)),
        };
        let result = ty.map_or("void".to_owned(), |t| t.to_string());
        let front = if attr.is_empty() { String::new() } else { format!("{} ", attr.trim()) };
        let shared = self.code.shared;
        shared.declare(name, || format!("declare {front}{result} @{name}({types})"));
        let call = |f: &mut Self| {
            let text = format_args!("call {front}{result} @{name}({written})");
            Ok(match ty {
                Some(ty) => f.code.emit(ty, text),
                None => {
                    f.code.line(text);
                    Val::zero(Ty::I32)
                }
            })
        };
        let value = match self.mask.clone() {
            Some(mask) if mask.lanes() != 1 => {
                let any = self.code.any(&mask);
                self.guarded(&any, ty.unwrap_or(Ty::I32), call)?
            }
            _ => call(self)?,
        };
        self.effect();
        Ok(ty.map(|_| value))
    }

    /// `T.address_of(A[i])`; nothing else that is not a built-in has a meaning in native code.
    pub(super) fn call_opaque(&mut self, name: &str, args: &[Expr]) -> Result<Val> {
        match (name, args) {
            ("address_of", [load]) => {
                if let ExprKind::Load(buffer, indices) = load.kind() {
                    return self.element_address(buffer, indices);
                }
                Err(Error::malformed("`T.address_of` takes an element of a buffer"))
            }
            _ => Err(Error::unsupported(format!("native code cannot call `T.{name}`"))),
        }
    }
}

/// How C passes a type that is narrower than `int`.
fn c_attribute(name: &str, dtype: DType) -> Result<String> {
    let narrow = dtype.bits < 32;
    Ok(match dtype.kind {
        _ if dtype.lanes != 1 || is_narrow_float(dtype) || dtype.kind == TypeKind::Void => {
            return Err(Error::unsupported(format!(
                "a value of type {dtype} cannot go to or from the C function `{name}`"
            )));
        }
        TypeKind::Int if narrow => " signext".to_owned(),
        TypeKind::UInt if narrow => " zeroext".to_owned(),
        TypeKind::Bool => " zeroext".to_owned(),
        _ => String::new(),
    })
}

/// Powers with a constant exponent that need no logarithm.
fn constant_power(c: &mut super::code::Code<'_>, x: &Val, exponent: &Expr) -> Option<Val> {
    let exponent = match exponent.kind() {
        ExprKind::Broadcast(e) => e.as_float()?,
        _ => exponent.as_float()?,
    };
    let one = Val::float(x.ty, 1.0);
    Some(match exponent {
        0.0 => one,
        1.0 => x.clone(),
        2.0 => c.bin("fmul", x, x),
        3.0 => {
            let square = c.bin("fmul", x, x);
            c.bin("fmul", &square, x)
        }
        -1.0 => c.bin("fdiv", &one, x),
        0.5 => {
            // Unlike the square root, the power of -0 is 0 and that of minus infinity is infinity.
            let root = c.math("sqrt", &[x]);
            let root = c.bin("fadd", &root, &Val::float(x.ty, 0.0));
            let infinity = Val::float(x.ty, f64::INFINITY);
            let negative = Val::float(x.ty, f64::NEG_INFINITY);
            c.select_cmp("fcmp oeq", x, &negative, &infinity, &root)
        }
        _ => return None,
    })
}
