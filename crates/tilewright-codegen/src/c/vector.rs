//! Vectors: expressions of several lanes as values of OpenCL C's vector types.
//!
//! `float16` and its siblings compute all lanes at once. What they do not have (lanes in another number,
//! 16-bit floats, divisions of integers, choices that are lazy by lane) is written lane by lane in a loop,
//! the whole statement together: a function here gives `None` for it.

use tilewright_ir::index::Linear;
use tilewright_ir::{BinOp, Buffer, CallTarget, DType, Expr, ExprKind, Intrin, Result, TypeKind};

use super::types;
use super::writer::Writer;
use crate::across_rows::first_and_step;

/// Text of a value, where vectors have it.
pub(super) type Text = Result<Option<String>>;

/// The text behind `?`, or `None` for the whole.
macro_rules! have {
    ($text:expr) => {
        match $text? {
            Some(text) => text,
            None => return Ok(None),
        }
    };
}

/// The name of a vector type; `None` where there is none of so many lanes, or of 16-bit floats and truths.
pub(super) fn vector_type(dtype: DType) -> Result<Option<String>> {
    let scalar = dtype.scalar();
    if !matches!(dtype.lanes, 2 | 4 | 8 | 16) || types::narrow(scalar).is_some() || scalar.is_bool()
    {
        return Ok(None);
    }
    Ok(Some(format!("{}{}", types::value(scalar)?, dtype.lanes)))
}

/// The integers of as many bits and lanes, which say where a comparison holds.
fn mask_type(bits: u8, lanes: u16) -> String {
    let name = match bits {
        8 => "char",
        16 => "short",
        64 => "long",
        _ => "int",
    };
    format!("{name}{lanes}")
}

impl Writer {
    /// Stores a vector; whether vectors have all that it takes.
    pub(super) fn vector_store(
        &mut self,
        buffer: &Buffer,
        indices: &[Expr],
        value: &Expr,
    ) -> Result<bool> {
        if !self.has_vectors() || vector_type(value.dtype())?.is_none() {
            return Ok(false);
        }
        let Some((first, step)) = cells_of_lanes(buffer, indices) else { return Ok(false) };
        let lanes = value.dtype().lanes;
        let (before, text) = self.captured(|w| {
            let Some(text) = w.vector(value)? else { return Ok(None) };
            Ok(Some((text, w.cell(buffer, &first)?)))
        })?;
        let Some((text, cell)) = text else { return Ok(false) };
        self.braced("", |w| {
            w.out += &before;
            let ty = types::value(value.dtype())?;
            if w.is_own_vector(buffer, &first, step, lanes)? {
                w.line(format_args!("*({ty}{lanes}*)&{cell} = {text};"));
                return Ok(());
            }
            if step == 1 {
                let space = w.place(buffer)?.space;
                let text = w.vector_stored(ty, lanes, space, &text, &format!("&{cell}"));
                w.line(text);
                return Ok(());
            }
            let name = w.name("v");
            w.line(format_args!("const {ty}{lanes} {name} = {text};"));
            for lane in 0..lanes {
                let at = i64::from(lane) * step;
                w.line(format_args!("(&{cell})[{at}] = {name}.s{lane:x};"));
            }
            Ok(())
        })?;
        Ok(true)
    }

    /// Whether all lanes are computed here, and by vectors.
    pub(super) fn has_vectors(&self) -> bool {
        self.arithmetic.vectors && self.mask.is_none() && self.lane.is_none()
    }

    /// Gives a variable of several lanes its value, in the array of them; whether vectors have it.
    pub(super) fn vector_define(&mut self, name: &str, value: &Expr) -> Result<bool> {
        if !self.has_vectors() {
            return Ok(false);
        }
        let (before, text) = self.captured(|w| w.vector(value))?;
        let Some(text) = text else { return Ok(false) };
        self.braced("", |w| {
            w.out += &before;
            let ty = types::value(value.dtype())?;
            let text = w.vector_stored(ty, value.dtype().lanes, "", &text, name);
            w.line(text);
            Ok(())
        })?;
        Ok(true)
    }

    /// The value of an expression in all of its lanes.
    pub(super) fn vector(&mut self, e: &Expr) -> Text {
        if let Some(known) = self.known_vector(e) {
            return Ok(Some(known));
        }
        let ty = have!(vector_type(e.dtype()));
        self.check_type(e.dtype(), None)?;
        self.enter()?;
        let text = self.vector_node(e, &ty);
        self.leave();
        let text = have!(text);
        if e.is_shared() && !matches!(e.kind(), ExprKind::Broadcast(_)) {
            Ok(Some(self.remember_vector(e, &ty, &text)))
        } else {
            Ok(Some(text))
        }
    }

    fn vector_node(&mut self, e: &Expr, ty: &str) -> Text {
        let dtype = e.dtype();
        let lanes = dtype.lanes;
        Ok(Some(match e.kind() {
            ExprKind::Broadcast(a) if a.dtype().lanes == 1 => format!("({ty})({})", self.expr(a)?),
            ExprKind::Undef => format!("({ty})(0)"),
            ExprKind::Ramp(base, stride) => {
                let wide = types::value(types::unsigned(dtype))?;
                let (base, stride) = (self.expr(base)?, self.expr(stride)?);
                let numbers: Vec<String> = (0..lanes).map(|k| k.to_string()).collect();
                let numbers = numbers.join(", ");
                format!(
                    "as_{ty}(({wide}{lanes})({base}) + ({wide}{lanes})({numbers}) * ({wide}{lanes})({stride}))"
                )
            }
            ExprKind::Var(v) => {
                let Some(name) = self.vars.get(v).cloned() else { return Ok(None) };
                self.vector_loaded(types::value(dtype)?, lanes, "", &name)
            }
            ExprKind::Load(buffer, indices) => have!(self.vector_load(buffer, indices, ty)),
            ExprKind::Binary(op, a, b) => have!(self.vector_binary(e, *op, a, b, ty)),
            ExprKind::Cast(a) => have!(self.vector_cast(a, dtype, ty)),
            ExprKind::Select(c, t, f) => {
                let (t, f) = (have!(self.vector(t)), have!(self.vector(f)));
                let mask = have!(self.vector_mask(c, dtype.bits, lanes));
                format!("({mask} ? {t} : {f})")
            }
            ExprKind::Call(CallTarget::Intrin(op), args) => {
                have!(self.vector_intrinsic(*op, args, ty))
            }
            ExprKind::Let(var, value, body) => {
                self.define(var, value)?;
                have!(self.vector(body))
            }
            _ => return Ok(None),
        }))
    }

    /// A vector at any element of memory.
    pub(super) fn vector_loaded(
        &mut self,
        ty: &str,
        lanes: u16,
        space: &str,
        from: &str,
    ) -> String {
        self.helpers.name("lanes", &format!("{ty}{lanes}"));
        format!("VLOAD({lanes}, {ty}, {space}, {from})")
    }

    /// What writes one there.
    fn vector_stored(
        &mut self,
        ty: &str,
        lanes: u16,
        space: &str,
        value: &str,
        to: &str,
    ) -> String {
        self.helpers.name("lanes", &format!("{ty}{lanes}"));
        format!("VSTORE({lanes}, {ty}, {space}, ({value}), {to});")
    }

    fn vector_load(&mut self, buffer: &Buffer, indices: &[Expr], ty: &str) -> Text {
        let lanes = indices.iter().map(|i| i.dtype().lanes).max().unwrap_or(1);
        if self.place(buffer)?.image {
            return self.texel(buffer, indices, ty);
        }
        let Some((first, step)) = cells_of_lanes(buffer, indices) else { return Ok(None) };
        let cell = self.cell(buffer, &first)?;
        let is_own = self.is_own_vector(buffer, &first, step, lanes)?;
        Ok(Some(match step {
            1 if is_own => format!("(*({ty}*)&{cell})"),
            1 => {
                let space = self.place(buffer)?.space;
                self.vector_loaded(types::value(buffer.dtype())?, lanes, space, &format!("&{cell}"))
            }
            0 => format!("({ty})({cell})"),
            // All that is read lies between the first element and the last one.
            2 if lanes > 2 => {
                let (scalar, name) = (types::memory(buffer.dtype())?, self.name("from"));
                let (value, space) = (types::value(buffer.dtype())?, self.place(buffer)?.space);
                self.line(format_args!("const {space} {scalar}* {name} = &{cell};"));
                let first = self.vector_loaded(value, lanes, space, &name);
                let last = format!("{name} + {}", lanes - 1);
                let last = self.vector_loaded(value, lanes, space, &last);
                format!("({ty})({first}.even, {last}.odd)")
            }
            _ => {
                let (scalar, name) = (types::memory(buffer.dtype())?, self.name("from"));
                let space = self.place(buffer)?.space;
                self.line(format_args!("const {space} {scalar}* {name} = &{cell};"));
                let all = (0..i64::from(lanes)).map(|k| format!("{name}[{}]", k * step));
                format!("({ty})({})", all.collect::<Vec<_>>().join(", "))
            }
        }))
    }

    /// Whether cells are one of the vectors that memory of a thread, which is aligned, is made of. Compilers
    /// keep such vectors in registers; `vload16` may take them in parts.
    fn is_own_vector(
        &self,
        buffer: &Buffer,
        first: &[Expr],
        step: i64,
        lanes: u16,
    ) -> Result<bool> {
        let place = self.place(buffer)?;
        let own =
            place.space.is_empty() && !place.image && step == 1 && place.dtype == buffer.dtype();
        Ok(own && is_multiple(buffer, first, i128::from(lanes)))
    }

    fn vector_binary(&mut self, e: &Expr, op: BinOp, a: &Expr, b: &Expr, ty: &str) -> Text {
        let dtype = a.dtype();
        if op.is_compare() || op.is_logic() {
            return Ok(None);
        }
        if let Some((x, y, c)) = self.product_and_sum(op, a, b) {
            let minus = if op == BinOp::Sub { "-" } else { "" };
            let of_product = c.ptr_eq(a);
            let (x, y, c) = (have!(self.vector(x)), have!(self.vector(y)), have!(self.vector(c)));
            let (before, behind) = if of_product { (minus, "") } else { ("", minus) };
            return Ok(Some(format!("fma({before}{x}, {y}, {behind}{c})")));
        }
        let (x, y) = (have!(self.vector(a)), have!(self.vector(b)));
        let symbol = op.symbol();
        Ok(Some(match (dtype.kind, op) {
            (TypeKind::Float, BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div) => {
                format!("({x} {symbol} {y})")
            }
            (TypeKind::Float, BinOp::Min | BinOp::Max) => {
                format!("{}({x}, {y})", self.helpers.name(&format!("v{symbol}"), ty))
            }
            (TypeKind::Int | TypeKind::UInt, BinOp::Add | BinOp::Sub | BinOp::Mul) => {
                if dtype.kind == TypeKind::UInt || self.ranges.stays(e) {
                    return Ok(Some(format!("({x} {symbol} {y})")));
                }
                let wide = format!("as_{}{}", types::value(types::unsigned(dtype))?, dtype.lanes);
                format!("as_{ty}({wide}({x}) {symbol} {wide}({y}))")
            }
            (TypeKind::Int | TypeKind::UInt, BinOp::Min | BinOp::Max) => {
                format!("{symbol}({x}, {y})")
            }
            _ => return Ok(None),
        }))
    }

    fn vector_cast(&mut self, a: &Expr, to: DType, ty: &str) -> Text {
        let from = a.dtype();
        if from.is_bool() && to.kind != TypeKind::BFloat {
            let mask = have!(self.vector_mask(a, to.bits, to.lanes));
            return Ok(Some(format!("({mask} ? ({ty})(1) : ({ty})(0))")));
        }
        // Conversions to integers saturate.
        if from.is_float() && to.is_int() {
            return Ok(None);
        }
        let x = have!(self.vector(a));
        Ok(Some(if from == to { x } else { format!("convert_{ty}({x})") }))
    }

    /// Where a truth holds: all bits of integers of a width, or none.
    fn vector_mask(&mut self, e: &Expr, bits: u8, lanes: u16) -> Text {
        let of = mask_type(bits, lanes);
        Ok(Some(match e.kind() {
            _ if e.dtype().lanes == 1 => format!("({of})(-(int)({}))", self.expr(e)?),
            ExprKind::Broadcast(a) if a.dtype().lanes == 1 => {
                format!("({of})(-(int)({}))", self.expr(a)?)
            }
            ExprKind::Not(a) => format!("(~{})", have!(self.vector_mask(a, bits, lanes))),
            ExprKind::Binary(op @ (BinOp::And | BinOp::Or), a, b) => {
                let x = have!(self.vector_mask(a, bits, lanes));
                let y = have!(self.vector_mask(b, bits, lanes));
                format!("({x} {} {y})", if *op == BinOp::And { "&" } else { "|" })
            }
            ExprKind::Binary(op, a, b) if op.is_compare() && !a.dtype().is_bool() => {
                let (x, y) = (have!(self.vector(a)), have!(self.vector(b)));
                let text = format!("({x} {} {y})", op.symbol());
                if a.dtype().bits == bits { text } else { format!("convert_{of}({text})") }
            }
            _ => return Ok(None),
        }))
    }

    fn vector_intrinsic(&mut self, op: Intrin, args: &[Expr], ty: &str) -> Text {
        let dtype = args.first().map_or(DType::VOID, Expr::dtype);
        let mut x = Vec::new();
        for a in args {
            x.push(have!(self.vector(a)));
        }
        let Some(a) = x.first() else { return Ok(None) };
        if !dtype.is_float() {
            let symbol = match op {
                Intrin::BitAnd => "&",
                Intrin::BitOr => "|",
                Intrin::BitXor => "^",
                Intrin::Likely | Intrin::IgnoreLoopPartition | Intrin::FirstOfTask => {
                    return Ok(Some(a.clone()));
                }
                _ => return Ok(None),
            };
            return Ok(Some(format!("({a} {symbol} {})", x[1])));
        }
        Ok(Some(match op {
            Intrin::IsNan | Intrin::IsInf | Intrin::IsFinite => return Ok(None),
            Intrin::Rsqrt => format!("(({ty})(1) / sqrt({a}))"),
            Intrin::Sigmoid => format!("(({ty})(1) / (({ty})(1) + exp(-{a})))"),
            Intrin::Abs => format!("fabs({a})"),
            Intrin::NearbyInt => format!("rint({a})"),
            _ => format!("{}({})", op.name(), x.join(", ")),
        }))
    }
}

/// The value of an index in the first lane, and how much more it is in the next; `None` where lanes do not
/// differ evenly.
pub(super) fn lanes_of_index(e: &Expr) -> Option<(Expr, i64)> {
    let (first, step) = first_and_step(e)?;
    Some((first, step.as_int()?))
}

/// The weight of each axis in the offset of a cell, where it is known.
fn weights(buffer: &Buffer) -> Vec<Option<i64>> {
    if !buffer.strides.is_empty() {
        return buffer.strides.iter().map(Expr::as_int).collect();
    }
    let mut weight = Some(1i64);
    let mut all = Vec::new();
    for extent in buffer.shape.iter().rev() {
        all.push(weight);
        weight = weight.zip(extent.as_int()).and_then(|(w, n)| w.checked_mul(n));
    }
    all.reverse();
    all
}

/// The cell of the first lane of an access, and how many cells the next lane is behind; `None` where lanes
/// do not lie evenly.
pub(super) fn cells_of_lanes(buffer: &Buffer, indices: &[Expr]) -> Option<(Vec<Expr>, i64)> {
    let (mut all, mut step) = (Vec::new(), 0i64);
    for (index, weight) in indices.iter().zip(weights(buffer)) {
        let (first, by) = lanes_of_index(index)?;
        if by != 0 {
            step = step.checked_add(by.checked_mul(weight?)?)?;
        }
        all.push(first);
    }
    Some((all, step))
}

/// Whether a cell has an offset that a number divides.
pub(super) fn is_multiple(buffer: &Buffer, indices: &[Expr], of: i128) -> bool {
    let begins = buffer.elem_offset.as_ref().is_none_or(|o| o.as_int() == Some(0));
    let divides = |(index, weight): (&Expr, Option<i64>)| {
        let all = weight.and_then(|w| Linear::from_expr(index)?.times(i128::from(w)));
        all.is_some_and(|l| l.constant % of == 0 && l.terms.iter().all(|(_, k)| k % of == 0))
    };
    begins && indices.iter().zip(weights(buffer)).all(divides)
}
