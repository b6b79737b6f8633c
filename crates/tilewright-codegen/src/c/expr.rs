//! Expressions as C text, of one lane.
//!
//! What is lazy stays lazy: a side of a choice that needs lines of its own is written inside of a branch.

use tilewright_ir::{
    BinOp, Buffer, CallTarget, DType, Error, Expr, ExprKind, Intrin, Result, TypeKind,
};

use super::types;
use super::writer::Writer;
use crate::emit::shared_parts;

/// A text of more bytes gets a variable of its own.
const LONG: usize = 200;

impl Writer {
    /// The value of an expression, in the lane that is written where it has several.
    pub(super) fn expr(&mut self, e: &Expr) -> Result<String> {
        if let Some(known) = self.known(e) {
            return Ok(known);
        }
        self.check_type(e.dtype(), None)?;
        if let Some(lane) = &self.lane
            && e.dtype().lanes > 1
            && e.dtype().lanes != lane.lanes
        {
            return Err(Error::unsupported(format!(
                "`{e}` has {} lanes where {} are computed",
                e.dtype().lanes,
                lane.lanes
            )));
        }
        self.enter()?;
        let text = self.node(e)?;
        self.leave();
        let leaf = matches!(e.kind(), ExprKind::Var(_) | ExprKind::Int(_) | ExprKind::Float(_));
        if !leaf && (e.is_shared() || text.len() > LONG) {
            self.remember(e, &text)
        } else {
            Ok(text)
        }
    }

    fn node(&mut self, e: &Expr) -> Result<String> {
        let dtype = e.dtype();
        match e.kind() {
            ExprKind::Int(v) => Ok(types::int(*v, dtype)),
            ExprKind::Float(v) => {
                Ok(types::float(tilewright_ir::scalar::round_to(*v, dtype), dtype))
            }
            ExprKind::Var(v) => {
                let name = self.vars.get(v).cloned().ok_or_else(|| {
                    Error::malformed(format!(
                        "variable `{}` is used where it is not defined",
                        v.name()
                    ))
                })?;
                match &self.lane {
                    Some(lane) if dtype.lanes > 1 => Ok(format!("{name}[{}]", lane.name)),
                    _ => Ok(name),
                }
            }
            ExprKind::Cast(a) => {
                let x = self.expr(a)?;
                self.cast(&x, a.dtype(), dtype)
            }
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) if a.dtype().is_bool() => {
                let x = self.expr(a)?;
                let (before, y) = self.captured(|w| w.expr(b))?;
                let and = *op == BinOp::And;
                if before.is_empty() {
                    return Ok(format!("({x} {} {y})", if and { "&&" } else { "||" }));
                }
                let name = self.name("b");
                self.line(format_args!("bool {name} = {x};"));
                let head = if and { format!("if ({name})") } else { format!("if (!{name})") };
                self.branch(&head, &name, &before, &y);
                Ok(name)
            }
            ExprKind::Binary(op, a, b) => self.binary(e, *op, a, b),
            ExprKind::Not(a) => Ok(format!("(!{})", self.expr(a)?)),
            ExprKind::Select(c, t, f) => {
                let (c, t, f) = (self.expr(c)?, self.expr(t)?, self.expr(f)?);
                Ok(format!("({c} ? {t} : {f})"))
            }
            ExprKind::IfThenElse(c, t, f) => {
                self.if_then_else(types::value(dtype)?, c, [t, f], &Writer::expr)
            }
            ExprKind::Load(buffer, indices) => self.load(buffer, indices),
            ExprKind::Call(CallTarget::Intrin(op), args) => self.intrinsic(*op, args),
            ExprKind::Call(CallTarget::Reinterpret(_), args) => match args.as_slice() {
                [a] => self.reinterpret(a, dtype),
                _ => Err(Error::malformed("`T.reinterpret` takes one value")),
            },
            ExprKind::Call(CallTarget::Extern(name) | CallTarget::Opaque(name), _) => {
                Err(Error::unsupported(format!("code for a device cannot call `{name}`")))
            }
            ExprKind::Let(var, value, body) => {
                self.define(var, value)?;
                self.expr(body)
            }
            ExprKind::Ramp(base, stride) => {
                let (base, stride) = (self.expr(base)?, self.expr(stride)?);
                let lane = self.lane.as_ref().map_or("0", |lane| lane.name.as_str());
                let scalar = dtype.scalar();
                if self.ranges.stays(e) && scalar == DType::I32 {
                    let step =
                        if stride == "1" { lane.to_owned() } else { format!("{lane} * {stride}") };
                    return Ok(format!("({base} + {step})"));
                }
                let (ty, wide) = (types::value(scalar)?, types::value(types::unsigned(scalar))?);
                Ok(format!("(({ty})(({wide}){base} + ({wide}){lane} * ({wide}){stride}))"))
            }
            ExprKind::Broadcast(a) if a.dtype().lanes == 1 => self.expr(a),
            ExprKind::Broadcast(a) => {
                Err(Error::unsupported(format!("`{a}` is a vector and cannot be broadcast")))
            }
            // Any fixed value is a valid choice.
            ExprKind::Undef => Ok(format!("(({})0)", types::value(dtype)?)),
            ExprKind::Str(_) => Err(Error::unsupported("code for a device has no text")),
        }
    }

    /// Gives a variable the value of an expression: an array, where that has several lanes and none is
    /// written.
    pub(super) fn define(&mut self, var: &tilewright_ir::Var, value: &Expr) -> Result<()> {
        let range = self.ranges.interval(value);
        let lanes = value.dtype().lanes;
        let ty = types::value(value.dtype())?;
        let name = self.name(var.name());
        if lanes == 1 {
            let text = self.expr(value)?;
            self.line(format_args!("const {ty} {name} = {text};"));
        } else if let Some(lane) = self.lane.clone() {
            self.line(format_args!("{ty} {name}[{lanes}];"));
            let text = self.expr(value)?;
            self.line(format_args!("{name}[{}] = {text};", lane.name));
        } else {
            self.line(format_args!("{ty} {name}[{lanes}];"));
            if !self.vector_define(&name, value)? {
                self.each_lane(lanes, |w, lane| {
                    let text = w.expr(value)?;
                    w.line(format_args!("{name}[{lane}] = {text};"));
                    Ok(())
                })?;
            }
        }
        self.ranges.bind(var, range);
        self.vars.insert(var.clone(), name);
        Ok(())
    }

    /// A branch that computes a value into a variable.
    fn branch(&mut self, head: &str, name: &str, before: &str, value: &str) {
        self.line(format_args!("{head} {{"));
        self.out += before;
        self.indent += 1;
        self.line(format_args!("{name} = {value};"));
        self.indent -= 1;
        self.line("}");
    }

    pub(super) fn if_then_else(
        &mut self,
        ty: &str,
        cond: &Expr,
        [t, f]: [&Expr; 2],
        side: &dyn Fn(&mut Self, &Expr) -> Result<String>,
    ) -> Result<String> {
        if cond.is_true() || cond.is_false() {
            return side(self, if cond.is_true() { t } else { f });
        }
        let c = self.expr(cond)?;
        for common in shared_parts(t, f) {
            self.expr(&common)?;
        }
        let (first, x) = self.captured(|w| side(w, t))?;
        let (second, y) = self.captured(|w| side(w, f))?;
        if first.is_empty() && second.is_empty() {
            return Ok(format!("({c} ? {x} : {y})"));
        }
        let name = self.name("c");
        self.line(format_args!("{ty} {name};"));
        self.branch(&format!("if ({c})"), &name, &first, &x);
        self.branch("else", &name, &second, &y);
        Ok(name)
    }

    pub(super) fn binary(&mut self, e: &Expr, op: BinOp, a: &Expr, b: &Expr) -> Result<String> {
        let dtype = a.dtype();
        if let Some(text) = self.fused(op, a, b)? {
            return Ok(text);
        }
        let (x, y) = (self.expr(a)?, self.expr(b)?);
        if op.is_compare() {
            return Ok(format!("({x} {} {y})", op.symbol()));
        }
        match dtype.kind {
            TypeKind::Bool => {
                let op = match op {
                    BinOp::And | BinOp::Mul | BinOp::Min => "&&",
                    BinOp::Or | BinOp::Add | BinOp::Max => "||",
                    BinOp::Sub => "!=",
                    _ => return Err(self.undefined(e, dtype)),
                };
                Ok(format!("({x} {op} {y})"))
            }
            TypeKind::Int | TypeKind::UInt => self.integer(e, op, (a, &x), (b, &y)),
            TypeKind::Float | TypeKind::BFloat => {
                let ty = types::value(dtype)?;
                let value = match op {
                    BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div => {
                        format!("({x} {} {y})", op.symbol())
                    }
                    BinOp::Min | BinOp::Max => {
                        let name = self.helpers.name(op.symbol(), ty);
                        return Ok(format!("{name}({x}, {y})"));
                    }
                    _ => return Err(self.undefined(e, dtype)),
                };
                Ok(self.rounded(value, dtype))
            }
            TypeKind::Handle | TypeKind::Void => Err(self.undefined(e, dtype)),
        }
    }

    fn undefined(&self, e: &Expr, dtype: DType) -> Error {
        Error::unsupported(format!("`{e}` is not defined for values of type {dtype}"))
    }

    /// The product and the summand of a sum that may round once: what is multiplied, by what, and the rest.
    pub(super) fn product_and_sum<'e>(
        &self,
        op: BinOp,
        a: &'e Expr,
        b: &'e Expr,
    ) -> Option<(&'e Expr, &'e Expr, &'e Expr)> {
        let wide = a.dtype().is_float() && a.dtype().bits >= 32;
        if !(self.contract && wide && self.arithmetic.fma && matches!(op, BinOp::Add | BinOp::Sub))
        {
            return None;
        }
        match (a.kind(), b.kind()) {
            (_, ExprKind::Binary(BinOp::Mul, x, y)) => Some((x, y, a)),
            (ExprKind::Binary(BinOp::Mul, x, y), _) => Some((x, y, b)),
            _ => None,
        }
    }

    /// A sum with a product that rounds once.
    fn fused(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Result<Option<String>> {
        let Some((x, y, c)) = self.product_and_sum(op, a, b) else { return Ok(None) };
        let minus = if op == BinOp::Sub { "-" } else { "" };
        let (before, behind) = if c.ptr_eq(a) { (minus, "") } else { ("", minus) };
        let (c, x, y) = (self.expr(c)?, self.expr(x)?, self.expr(y)?);
        Ok(Some(format!("fma({before}{x}, {y}, {behind}{c})")))
    }

    fn integer(
        &mut self,
        e: &Expr,
        op: BinOp,
        (a, x): (&Expr, &str),
        (b, y): (&Expr, &str),
    ) -> Result<String> {
        let dtype = a.dtype().scalar();
        let ty = types::value(dtype)?;
        match op {
            BinOp::Add | BinOp::Sub | BinOp::Mul => {
                let op = op.symbol();
                if dtype.bits >= 32 && (dtype.kind == TypeKind::UInt || self.ranges.stays(e)) {
                    return Ok(format!("({x} {op} {y})"));
                }
                // Signed arithmetic that may wrap, which C does not define.
                let wide =
                    types::value(types::unsigned(DType { bits: dtype.bits.max(32), ..dtype }))?;
                Ok(format!("(({ty})(({wide}){x} {op} ({wide}){y}))"))
            }
            BinOp::Min | BinOp::Max => {
                let name = self.helpers.name(op.symbol(), ty);
                Ok(format!("{name}({x}, {y})"))
            }
            BinOp::FloorDiv | BinOp::FloorMod | BinOp::TruncDiv | BinOp::TruncMod => {
                let quotient = matches!(op, BinOp::FloorDiv | BinOp::TruncDiv);
                let (ra, rb) = (self.ranges.interval(a), self.ranges.interval(b));
                if ra.lo >= 0 && rb.lo > 0 && dtype.bits >= 32 {
                    return Ok(format!("({x} {} {y})", if quotient { "/" } else { "%" }));
                }
                let kind = match op {
                    BinOp::FloorDiv => "floordiv",
                    BinOp::FloorMod => "floormod",
                    BinOp::TruncDiv => "truncdiv",
                    _ => "truncmod",
                };
                let name = self.helpers.name(kind, ty);
                Ok(format!("{name}({x}, {y})"))
            }
            _ => Err(self.undefined(e, dtype)),
        }
    }

    /// A value that was computed as `float`, rounded to a 16-bit type.
    fn rounded(&mut self, value: String, dtype: DType) -> String {
        match types::narrow(dtype) {
            Some(kind) => format!("{}({value})", self.helpers.name("round", kind)),
            None => value,
        }
    }

    /// Conversion: as the interpreter, see [`tilewright_ir::scalar::cast`].
    fn cast(&mut self, x: &str, from: DType, to: DType) -> Result<String> {
        use TypeKind::{BFloat, Bool, Float, Int, UInt};
        let (from, to) = (from.scalar(), to.scalar());
        if from == to {
            return Ok(x.to_owned());
        }
        let ty = types::value(to)?;
        Ok(match (from.kind, to.kind) {
            (_, Bool) => format!("({x} != 0)"),
            (Bool | Int | UInt, Int | UInt) => format!("(({ty}){x})"),
            (Float | BFloat, Int | UInt) => {
                let kind = if from.bits == 64 { "from_double" } else { "from_float" };
                format!("{}({x})", self.helpers.name(kind, ty))
            }
            (Int | UInt, Float | BFloat) if types::narrow(to).is_some() && from.bits > 16 => {
                // More bits than a `float` has: it must not round first.
                let odd = self.helpers.name("odd", types::value(from)?);
                self.rounded(format!("{odd}({x})"), to)
            }
            (Float, Float | BFloat) if from.bits == 64 && types::narrow(to).is_some() => {
                let odd = self.helpers.name("odd", "double");
                self.rounded(format!("{odd}({x})"), to)
            }
            (_, Float | BFloat) => self.rounded(format!("(({ty}){x})"), to),
            _ => {
                return Err(Error::unsupported(format!(
                    "there is no conversion from {from} to {to}"
                )));
            }
        })
    }

    /// The bits of a value as those of another type.
    fn reinterpret(&mut self, a: &Expr, to: DType) -> Result<String> {
        let (from, to) = (a.dtype().scalar(), to.scalar());
        let x = self.expr(a)?;
        let x = match types::narrow(from) {
            Some(kind) => format!("{}({x})", self.helpers.name("put", kind)),
            None => x,
        };
        if let Some(kind) = types::narrow(to) {
            return Ok(format!("{}((ushort){x})", self.helpers.name("get", kind)));
        }
        let ty = types::value(to)?;
        if to.bits < 32 || (from.is_int() && to.is_int()) {
            return Ok(format!("(({ty}){x})"));
        }
        Ok(format!("as_{ty}({x})"))
    }

    fn intrinsic(&mut self, op: Intrin, args: &[Expr]) -> Result<String> {
        let dtype = args.first().map_or(DType::VOID, Expr::dtype).scalar();
        if args.len() != op.arity() || !op.operands().admit(dtype) {
            return Err(Error::unsupported(format!(
                "`T.{}` does not take values of type {dtype}",
                op.name()
            )));
        }
        let x = args.iter().map(|a| self.expr(a)).collect::<Result<Vec<String>>>()?;
        if !dtype.is_float() {
            return self.of_integers(op, &x, dtype);
        }
        let one = types::float(1.0, dtype);
        let a = &x[0];
        let value = match op {
            Intrin::IsNan => return Ok(format!("(isnan({a}) != 0)")),
            Intrin::IsInf => return Ok(format!("(isinf({a}) != 0)")),
            Intrin::IsFinite => return Ok(format!("(isfinite({a}) != 0)")),
            Intrin::Rsqrt => format!("({one} / sqrt({a}))"),
            Intrin::Sigmoid => format!("({one} / ({one} + exp(-{a})))"),
            Intrin::Abs => format!("fabs({a})"),
            Intrin::NearbyInt => format!("rint({a})"),
            _ => format!("{}({})", op.name(), x.join(", ")),
        };
        Ok(if op.is_exact() { value } else { self.rounded(value, dtype) })
    }

    fn of_integers(&mut self, op: Intrin, x: &[String], dtype: DType) -> Result<String> {
        let ty = types::value(dtype)?;
        let a = &x[0];
        Ok(match op {
            Intrin::BitAnd => infix("&", x, a, ty),
            Intrin::BitOr => infix("|", x, a, ty),
            Intrin::BitXor => infix("^", x, a, ty),
            Intrin::BitNot if dtype.is_bool() => format!("(!{a})"),
            Intrin::BitNot => format!("(({ty})~{a})"),
            Intrin::Shl | Intrin::Shr => {
                let kind = if op == Intrin::Shl { "shl" } else { "shr" };
                format!("{}({a}, {})", self.helpers.name(kind, ty), x[1])
            }
            Intrin::Popcount => format!("(({ty})popcount({a}))"),
            Intrin::Clz => format!("((int)clz(({}){a}))", types::value(types::unsigned(dtype))?),
            Intrin::Pow => format!("{}({a}, {})", self.helpers.name("pow", ty), x[1]),
            Intrin::Abs if dtype.kind == TypeKind::UInt => a.clone(),
            Intrin::Abs => format!("{}({a})", self.helpers.name("abs", ty)),
            Intrin::Likely | Intrin::IgnoreLoopPartition | Intrin::FirstOfTask => a.clone(),
            _ => {
                let text = format!("`T.{}` does not take values of type {dtype}", op.name());
                return Err(Error::unsupported(text));
            }
        })
    }

    /// The element of a buffer, as it stands in memory.
    pub(super) fn cell(&mut self, buffer: &Buffer, indices: &[Expr]) -> Result<String> {
        if buffer.dtype().lanes != 1 {
            return Err(Error::unsupported(format!(
                "buffer `{}` has elements of several lanes",
                buffer.name
            )));
        }
        let mut at = match &buffer.elem_offset {
            Some(offset) if offset.as_int() != Some(0) => Some(self.expr(offset)?),
            _ => None,
        };
        let mut weight: Option<Expr> = None;
        for (axis, index) in indices.iter().enumerate().rev() {
            let x = self.expr(index)?;
            let stride = buffer.strides.get(axis).or(weight.as_ref());
            let term = match stride.filter(|s| s.as_int() != Some(1)) {
                Some(s) => format!("(long){x} * (long){}", self.expr(s)?),
                None => x,
            };
            at = Some(match at {
                Some(at) => format!("{at} + {term}"),
                None => term,
            });
            let extent = buffer.shape[axis].clone();
            weight = Some(match weight {
                Some(w) => w * extent,
                None => extent,
            });
        }
        let at = at.unwrap_or_else(|| "0".to_owned());
        let ty = types::memory(buffer.dtype())?;
        let place = self.place(buffer)?;
        if types::memory(place.dtype)? == ty {
            return Ok(format!("{}[{at}]", place.name));
        }
        Ok(format!("(({} {ty}*){})[{at}]", place.space, place.name))
    }

    fn load(&mut self, buffer: &Buffer, indices: &[Expr]) -> Result<String> {
        if self.place(buffer)?.image {
            return self.channel(buffer, indices);
        }
        let cell = self.cell(buffer, indices)?;
        Ok(match types::narrow(buffer.dtype()) {
            Some(kind) => format!("{}({cell})", self.helpers.name("get", kind)),
            None if buffer.dtype().is_bool() => format!("({cell} != 0)"),
            None => cell,
        })
    }
}

fn infix(op: &str, x: &[String], a: &str, ty: &str) -> String {
    format!("(({ty})({a} {op} {}))", x[1])
}
