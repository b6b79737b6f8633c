//! Compiling expressions.

use std::sync::Arc;

use tilewright_ir::scalar::{eval_int, wrap};
use tilewright_ir::update::is_cell;
use tilewright_ir::{
    BinOp, Buffer, CallTarget, DType, Error, Expr, ExprKind, Intrin, Result, TypeKind, Var,
};

use crate::alias::permission;
use crate::code::{Affine, Code, Int, IntCode, ValueCode, range_of};
use crate::compile::{Bound, Compiler, some};
use crate::machine::{Cell, Machine};
use crate::place::Access;
use crate::race::Act;
use crate::scalar::{self, Scalar};

/// Whether values of a type are computed as `i64`.
fn is_small(dtype: DType) -> bool {
    dtype.is_bool() || (dtype.is_int() && dtype.scalar() != DType::U64)
}

impl Compiler<'_> {
    /// Compiles an expression.
    pub fn value(&mut self, e: &Expr) -> Result<ValueCode> {
        self.spend()?;
        let dtype = e.dtype().scalar();
        Ok(match e.kind() {
            ExprKind::Int(v) if dtype == DType::U64 => constant(*v as u64),
            ExprKind::Int(v) => ValueCode::Int(Int::constant(*v)),
            ExprKind::Float(v) => float_constant(*v, dtype),
            ExprKind::Str(_) => return Err(Error::unsupported("text outside of a call")),
            ExprKind::Var(v) => self.variable(v)?,
            ExprKind::Cast(a) => {
                let value = self.value(a)?;
                convert(value, a.dtype().scalar(), dtype)
            }
            ExprKind::Binary(op, a, b) => return self.binary(*op, e, a, b),
            ExprKind::Not(a) => match self.value(a)? {
                ValueCode::Cell(code) => ValueCode::Cell(Box::new(move |m| {
                    let c = code(m);
                    Cell { bits: c.bits ^ 1, ..c }
                })),
                value => {
                    let code = value.int().code();
                    ValueCode::Int(truth(Box::new(move |m| code(m) ^ 1)))
                }
            },
            ExprKind::Select(c, t, f) => {
                let (c, t, f) = (self.value(c)?, self.value(t)?, self.value(f)?);
                select(c, t, f)
            }
            ExprKind::IfThenElse(c, t, f) => {
                let c = self.value(c)?.int().code();
                let (t, f) = (self.value(t)?, self.value(f)?);
                if_then_else(c, t, f)
            }
            ExprKind::Load(b, indices) => self.load(b, indices)?,
            ExprKind::Call(CallTarget::Intrin(op), args) => self.intrinsic(*op, args)?,
            ExprKind::Call(CallTarget::Reinterpret(_), args) => {
                let [a] = args.as_slice() else {
                    return Err(Error::internal("`T.reinterpret` takes one value"));
                };
                let (value, from) = (self.value(a)?, a.dtype().scalar());
                of_bits(value, dtype, move |bits| scalar::reinterpret(bits, from, dtype))
            }
            ExprKind::Call(CallTarget::Extern(name), args) => self.external(name, e, args)?,
            ExprKind::Call(CallTarget::Opaque(name), _) => {
                return Err(Error::unsupported(format!(
                    "the interpreter does not know what T.{name} does"
                )));
            }
            ExprKind::Let(v, value, body) => self.let_in(v, value, body)?,
            ExprKind::Ramp(base, stride) => {
                let base = self.value(base)?.int().code();
                let stride = self.value(stride)?.int().code();
                let code = move |m: &mut Machine<'_>| {
                    let step = stride(m).wrapping_mul(m.lane as i64);
                    wrap(base(m).wrapping_add(step), dtype)
                };
                if is_small(dtype) {
                    ValueCode::Int(Int::computed(range_of(dtype), Box::new(code)))
                } else {
                    ValueCode::Cell(Box::new(move |m| Cell::new(code(m) as u64)))
                }
            }
            ExprKind::Broadcast(a) => self.value(a)?,
            ExprKind::Undef => {
                ValueCode::Cell(Box::new(move |m| Cell { bits: m.fill.next(dtype), undef: true }))
            }
        })
    }

    /// Compiles an integer or `bool`.
    pub fn int(&mut self, e: &Expr) -> Result<Int> {
        Ok(self.value(e)?.int())
    }

    fn variable(&self, v: &Var) -> Result<ValueCode> {
        let Some(bound) = self.vars.get(v) else {
            return Err(Error::unsupported(format!("`{}` has no value that computes", v.name())));
        };
        let Bound { slot, lo, hi, ref affine } = *bound;
        if let Some(affine) = affine {
            let code = IntCode::Affine(affine.clone());
            return Ok(ValueCode::Int(Int { code, lo, hi }));
        }
        let dtype = v.dtype();
        let at = move |m: &Machine<'_>| slot + m.lane;
        let vector = dtype.lanes > 1;
        if self.memories.undef_vars.contains(v) {
            return Ok(ValueCode::Cell(Box::new(move |m| {
                let slot = if vector { at(m) } else { slot };
                Cell { bits: m.frame[slot], undef: m.undef[slot] }
            })));
        }
        Ok(match dtype.scalar() {
            d if is_small(d) && vector => {
                ValueCode::Int(Int::computed((lo, hi), Box::new(move |m| m.frame[at(m)] as i64)))
            }
            d if is_small(d) => {
                let code = IntCode::Affine(Affine { base: 0, terms: vec![(slot, 1)] });
                ValueCode::Int(Int { code, lo, hi })
            }
            DType::F32 if vector => {
                ValueCode::F32(Box::new(move |m| f32::from_bits(m.frame[at(m)] as u32)))
            }
            DType::F32 => ValueCode::F32(Box::new(move |m| f32::from_bits(m.frame[slot] as u32))),
            DType::F64 if vector => {
                ValueCode::F64(Box::new(move |m| f64::from_bits(m.frame[at(m)])))
            }
            DType::F64 => ValueCode::F64(Box::new(move |m| f64::from_bits(m.frame[slot]))),
            _ if vector => ValueCode::Cell(Box::new(move |m| Cell::new(m.frame[at(m)]))),
            _ => ValueCode::Cell(Box::new(move |m| Cell::new(m.frame[slot]))),
        })
    }

    fn binary(&mut self, op: BinOp, e: &Expr, a: &Expr, b: &Expr) -> Result<ValueCode> {
        if self.assuming
            && let Some((buffer, indices)) = permission(e)
        {
            let access = self.access(&buffer, &indices)?;
            return Ok(ValueCode::Cell(Box::new(move |m| {
                access.permit(m);
                Cell::new(1)
            })));
        }
        let dtype = a.dtype().scalar();
        let (x, y) = (self.value(a)?, self.value(b)?);
        Ok(match (x, y) {
            (ValueCode::Int(x), ValueCode::Int(y)) => ValueCode::Int(int_binary(op, dtype, x, y)),
            (ValueCode::F32(x), ValueCode::F32(y)) => float32_binary(op, x, y),
            (ValueCode::F64(x), ValueCode::F64(y)) => float64_binary(op, x, y),
            (x, y) => ValueCode::Cell(cell_binary(op, dtype, x.cell(), y.cell())),
        })
    }

    /// Compiles an access to a buffer.
    pub fn access(&mut self, buffer: &Buffer, indices: &[Expr]) -> Result<Access> {
        let indices: Result<Vec<Int>> = indices.iter().map(|i| self.int(i)).collect();
        let Some(place) = self.places.get(buffer) else {
            return Err(Error::internal(format!("buffer `{}` has no place", buffer.name)));
        };
        let info = self.memories.info.get(place.memory);
        let cell = info.filter(|i| i.tracked).map(|i| i.cell);
        Ok(Access::new(place, indices?, cell))
    }

    /// Compiles an access that reads.
    fn read_access(&mut self, buffer: &Buffer, indices: &[Expr]) -> Result<Access> {
        let watching = if self
            .updating
            .as_ref()
            .is_some_and(|(b, at)| is_cell(b, at, &Expr::load(buffer, indices.to_vec())))
        {
            None
        } else {
            self.watching(buffer, Act::Read)
        };
        Ok(self.access(buffer, indices)?.watched(watching))
    }

    fn load(&mut self, buffer: &Buffer, indices: &[Expr]) -> Result<ValueCode> {
        let info = self.memories.info.get(self.memories.number(buffer));
        let undef = info.is_some_and(|info| info.undef);
        let access = self.read_access(buffer, indices)?;
        let dtype = buffer.dtype().scalar();
        if undef {
            return Ok(ValueCode::Cell(Box::new(move |m| access.load(m))));
        }
        macro_rules! small {
            ($t:ty) => {{
                ValueCode::Int(Int::computed(
                    range_of(dtype),
                    Box::new(move |m| {
                        access.read(m).map_or(0, |b| i64::from(<$t>::from_le_bytes(b)))
                    }),
                ))
            }};
        }
        Ok(match dtype {
            DType::F32 => {
                ValueCode::F32(Box::new(move |m| access.read(m).map_or(0.0, f32::from_le_bytes)))
            }
            DType::F64 => {
                ValueCode::F64(Box::new(move |m| access.read(m).map_or(0.0, f64::from_le_bytes)))
            }
            DType::BOOL => ValueCode::Int(truth(Box::new(move |m| {
                access.read::<1>(m).map_or(0, |b| i64::from(b[0] != 0))
            }))),
            DType::I8 => small!(i8),
            DType::I16 => small!(i16),
            DType::I32 => small!(i32),
            DType::I64 => small!(i64),
            DType::U8 => small!(u8),
            DType::U16 => small!(u16),
            DType::U32 => small!(u32),
            _ => ValueCode::Cell(Box::new(move |m| access.load(m))),
        })
    }

    /// Compiles a value that is only stored: a load, or one side of a choice, may be `None`, which
    /// is an unwritten cell.
    pub fn copied(&mut self, e: &Expr) -> Result<Code<Option<Cell>>> {
        Ok(match e.kind() {
            ExprKind::Load(b, indices) => {
                let access = self.read_access(b, indices)?;
                Box::new(move |m| access.copy(m))
            }
            ExprKind::IfThenElse(c, t, f) => {
                let c = self.value(c)?.int().code();
                let (t, f) = (self.copied(t)?, self.copied(f)?);
                Box::new(move |m| if c(m) != 0 { t(m) } else { f(m) })
            }
            ExprKind::Select(c, t, f) => {
                let c = self.value(c)?.cell();
                let (t, f) = (self.copied(t)?, self.copied(f)?);
                Box::new(move |m| {
                    let (c, t, f) = (c(m), t(m), f(m));
                    let value = if c.bits != 0 { t } else { f };
                    value.map(|v| Cell { undef: v.undef || c.undef, ..v })
                })
            }
            _ => some(self.value(e)?),
        })
    }

    fn intrinsic(&mut self, op: Intrin, args: &[Expr]) -> Result<ValueCode> {
        let [first, rest @ ..] = args else {
            return Err(Error::internal("an intrinsic without arguments"));
        };
        let dtype = first.dtype().scalar();
        let a = self.value(first)?;
        if op.is_hint() {
            return Ok(a);
        }
        let mut undef = matches!(a, ValueCode::Cell(_));
        let a = match (a, op.of_float()) {
            (ValueCode::F32(a), Some(f)) => {
                return Ok(ValueCode::F32(match op {
                    Intrin::Abs => Box::new(move |m| a(m).abs()),
                    Intrin::Sqrt => Box::new(move |m| a(m).sqrt()),
                    _ => Box::new(move |m| f(f64::from(a(m))) as f32),
                }));
            }
            (ValueCode::F64(a), Some(f)) => return Ok(ValueCode::F64(Box::new(move |m| f(a(m))))),
            (a, _) => a.cell(),
        };
        let b = match rest.first() {
            Some(b) => {
                let b = self.value(b)?;
                undef |= matches!(b, ValueCode::Cell(_));
                b.cell()
            }
            None => Box::new(|_: &mut Machine<'_>| Cell::new(0)),
        };
        let to = op.result(dtype);
        let code: Code<Cell> = Box::new(move |m| {
            let (a, b) = (a(m), b(m));
            let undef = a.undef || b.undef;
            match scalar::intrinsic(op, dtype, a.bits, b.bits) {
                Ok(bits) => Cell { bits, undef },
                Err(_) if undef => Cell { bits: m.fill.next(to), undef },
                Err(fault) => {
                    m.fail(fault.text());
                    Cell::new(0)
                }
            }
        });
        Ok(typed(code, to, undef))
    }

    fn external(&mut self, name: &Arc<str>, e: &Expr, args: &[Expr]) -> Result<ValueCode> {
        let dtype = e.dtype();
        if dtype.lanes > 1 || args.iter().any(|a| a.dtype().lanes > 1) {
            return Err(Error::unsupported(format!("a call of `{name}` on vectors")));
        }
        let Some(function) = self.options.externs.get(name).cloned() else {
            return Err(Error::unsupported(format!(
                "the interpreter does not know the external function `{name}`"
            ))
            .help("give it one of this name among the options"));
        };
        let mut codes = Vec::new();
        for a in args {
            if matches!(a.kind(), ExprKind::Str(_)) || a.dtype().kind == TypeKind::Handle {
                return Err(Error::unsupported(format!(
                    "a call of `{name}` with an argument that is no number"
                )));
            }
            codes.push((self.value(a)?.cell(), a.dtype()));
        }
        let name = name.clone();
        let code: Code<Cell> = Box::new(move |m| {
            let mut values = Vec::with_capacity(codes.len());
            for (code, dtype) in &codes {
                let cell = code(m);
                if cell.undef {
                    m.fail(format!("an argument of `{name}` is an arbitrary value"));
                }
                values.push(Scalar::from_bits(cell.bits, *dtype));
            }
            if m.trap.is_some() {
                return Cell::new(0);
            }
            match function(&values) {
                Ok(value) if value.dtype() == dtype || dtype.kind == TypeKind::Void => {
                    return Cell::new(value.bits());
                }
                Ok(value) => m.fail(format!("`{name}` gave a {}, not a {dtype}", value.dtype())),
                Err(e) => m.fail(format!("`{name}` failed: {e}")),
            }
            Cell::new(0)
        });
        Ok(typed(code, dtype.scalar(), false))
    }

    fn let_in(&mut self, v: &Var, value: &Expr, body: &Expr) -> Result<ValueCode> {
        fn after<T: 'static>(set: Code<()>, body: Code<T>) -> Code<T> {
            Box::new(move |m| {
                set(m);
                body(m)
            })
        }
        let set = self.bind(v, value)?;
        Ok(match self.value(body)? {
            ValueCode::Int(body) => {
                ValueCode::Int(Int::computed((body.lo, body.hi), after(set, body.code())))
            }
            ValueCode::F32(body) => ValueCode::F32(after(set, body)),
            ValueCode::F64(body) => ValueCode::F64(after(set, body)),
            ValueCode::Cell(body) => ValueCode::Cell(after(set, body)),
        })
    }

    /// Compiles the binding of a variable: the current lane, where it has lanes.
    pub fn bind(&mut self, v: &Var, value: &Expr) -> Result<Code<()>> {
        let vector = v.dtype().lanes > 1;
        let undef = self.memories.undef_vars.contains(v);
        let value = self.value(value)?;
        let (lo, hi) = match &value {
            ValueCode::Int(i) => (i.lo, i.hi),
            _ => range_of(v.dtype()),
        };
        let slot = self.define(v, lo, hi);
        let code = value.cell();
        Ok(Box::new(move |m| {
            let cell = code(m);
            let slot = if vector { slot + m.lane } else { slot };
            m.frame[slot] = cell.bits;
            if undef {
                m.undef[slot] = cell.undef;
            }
        }))
    }
}

/// A `bool`.
fn truth(code: Code<i64>) -> Int {
    Int::computed((0, 1), code)
}

fn constant(bits: u64) -> ValueCode {
    ValueCode::Cell(Box::new(move |_| Cell::new(bits)))
}

fn float_constant(value: f64, dtype: DType) -> ValueCode {
    match dtype {
        DType::F32 => {
            let value = value as f32;
            ValueCode::F32(Box::new(move |_| value))
        }
        DType::F64 => ValueCode::F64(Box::new(move |_| value)),
        _ => constant(scalar::from_f64(value, dtype)),
    }
}

/// A value of a type that is computed from the bits of another one.
fn of_bits(
    value: ValueCode,
    dtype: DType,
    of: impl Fn(u64) -> u64 + Send + Sync + 'static,
) -> ValueCode {
    let undef = matches!(value, ValueCode::Cell(_));
    let code = value.cell();
    let code: Code<Cell> = Box::new(move |m| {
        let c = code(m);
        Cell { bits: of(c.bits), undef: c.undef }
    });
    typed(code, dtype, undef)
}

/// A cell in the form that its type has, if it is never arbitrary.
fn typed(code: Code<Cell>, dtype: DType, undef: bool) -> ValueCode {
    match dtype {
        _ if undef => ValueCode::Cell(code),
        d if is_small(d) => {
            ValueCode::Int(Int::computed(range_of(d), Box::new(move |m| code(m).bits as i64)))
        }
        DType::F32 => ValueCode::F32(Box::new(move |m| f32::from_bits(code(m).bits as u32))),
        DType::F64 => ValueCode::F64(Box::new(move |m| f64::from_bits(code(m).bits))),
        _ => ValueCode::Cell(code),
    }
}

fn convert(value: ValueCode, from: DType, to: DType) -> ValueCode {
    if from == to {
        return value;
    }
    match (value, to) {
        (ValueCode::Int(i), DType::F32) => {
            let code = i.code();
            ValueCode::F32(Box::new(move |m| code(m) as f32))
        }
        (ValueCode::Int(i), DType::F64) => {
            let code = i.code();
            ValueCode::F64(Box::new(move |m| code(m) as f64))
        }
        (ValueCode::Int(i), to) if to.is_int() && is_small(to) => {
            let (lo, hi) = range_of(to);
            if lo <= i.lo && i.hi <= hi {
                return ValueCode::Int(i);
            }
            let code = i.code();
            ValueCode::Int(Int::computed((lo, hi), Box::new(move |m| wrap(code(m), to))))
        }
        (ValueCode::Int(i), DType::BOOL) => {
            let code = i.code();
            ValueCode::Int(truth(Box::new(move |m| i64::from(code(m) != 0))))
        }
        (ValueCode::F32(code), DType::F64) => ValueCode::F64(Box::new(move |m| f64::from(code(m)))),
        (ValueCode::F64(code), DType::F32) => ValueCode::F32(Box::new(move |m| code(m) as f32)),
        (value, to) => of_bits(value, to, move |bits| scalar::cast(bits, from, to)),
    }
}

/// A choice of two values of one form, or of cells: `code` computes it from the codes `t` and `f`.
macro_rules! choice {
    ($t:ident, $f:ident => $code:expr) => {
        match ($t, $f) {
            (ValueCode::Int($t), ValueCode::Int($f)) => {
                let range = ($t.lo.min($f.lo), $t.hi.max($f.hi));
                let ($t, $f) = ($t.code(), $f.code());
                ValueCode::Int(Int::computed(range, Box::new($code)))
            }
            (ValueCode::F32($t), ValueCode::F32($f)) => ValueCode::F32(Box::new($code)),
            (ValueCode::F64($t), ValueCode::F64($f)) => ValueCode::F64(Box::new($code)),
            ($t, $f) => {
                let ($t, $f) = ($t.cell(), $f.cell());
                ValueCode::Cell(Box::new($code))
            }
        }
    };
}

fn select(c: ValueCode, t: ValueCode, f: ValueCode) -> ValueCode {
    if let ValueCode::Int(c) = c {
        let c = c.code();
        return choice!(t, f => move |m: &mut Machine<'_>| {
            let (c, t, f) = (c(m), t(m), f(m));
            if c != 0 { t } else { f }
        });
    }
    let (c, t, f) = (c.cell(), t.cell(), f.cell());
    ValueCode::Cell(Box::new(move |m| {
        let (c, t, f) = (c(m), t(m), f(m));
        let value = if c.bits != 0 { t } else { f };
        Cell { undef: value.undef || c.undef, ..value }
    }))
}

fn if_then_else(c: Code<i64>, t: ValueCode, f: ValueCode) -> ValueCode {
    choice!(t, f => move |m: &mut Machine<'_>| if c(m) != 0 { t(m) } else { f(m) })
}

fn int_binary(op: BinOp, dtype: DType, a: Int, b: Int) -> Int {
    if let (Some(x), Some(y)) = (a.as_const(), b.as_const()) {
        let to = if op.is_compare() || op.is_logic() { DType::BOOL } else { dtype };
        if let Some(value) = eval_int(op, x, y, dtype) {
            return Int::constant(wrap(value, to));
        }
    }
    let (least, most) = range_of(dtype);
    if op.is_compare() {
        return compare(op, a.code(), b.code());
    }
    macro_rules! arithmetic {
        ($range:expr, $affine:expr, $method:ident) => {{
            let range = $range;
            let affine: Option<Affine> = range.and($affine);
            match (range, affine) {
                (Some((lo, hi)), Some(a)) => Int { code: IntCode::Affine(a), lo, hi },
                (Some(range), None) => {
                    let (a, b) = (a.code(), b.code());
                    Int::computed(range, Box::new(move |m| a(m).$method(b(m))))
                }
                (None, _) => {
                    let (a, b) = (a.code(), b.code());
                    Int::computed((least, most), Box::new(move |m| wrap(a(m).$method(b(m)), dtype)))
                }
            }
        }};
    }
    match op {
        BinOp::Add => arithmetic!(
            corner_range(|x, y| x + y, &a, &b, least, most),
            affine_sum(1, &a, &b),
            wrapping_add
        ),
        BinOp::Sub => arithmetic!(
            corner_range(|x, y| x - y, &a, &b, least, most),
            affine_sum(-1, &a, &b),
            wrapping_sub
        ),
        BinOp::Mul => {
            let zero = Affine::default();
            let scaled = match (a.as_const(), b.as_const()) {
                (_, Some(c)) => a.affine().and_then(|x| zero.plus(x, c)),
                (Some(c), _) => b.affine().and_then(|x| zero.plus(x, c)),
                _ => None,
            };
            arithmetic!(corner_range(|x, y| x * y, &a, &b, least, most), scaled, wrapping_mul)
        }
        BinOp::FloorDiv | BinOp::FloorMod | BinOp::TruncDiv | BinOp::TruncMod => {
            divide(op, dtype, a, b)
        }
        BinOp::Min => {
            let range = (a.lo.min(b.lo), a.hi.min(b.hi));
            let (a, b) = (a.code(), b.code());
            Int::computed(range, Box::new(move |m| a(m).min(b(m))))
        }
        BinOp::Max => {
            let range = (a.lo.max(b.lo), a.hi.max(b.hi));
            let (a, b) = (a.code(), b.code());
            Int::computed(range, Box::new(move |m| a(m).max(b(m))))
        }
        BinOp::And => {
            let (a, b) = (a.code(), b.code());
            truth(Box::new(move |m| if a(m) != 0 { b(m) } else { 0 }))
        }
        BinOp::Or => {
            let (a, b) = (a.code(), b.code());
            truth(Box::new(move |m| if a(m) != 0 { 1 } else { b(m) }))
        }
        _ => truth(Box::new(|m| {
            m.fail(scalar::Fault::NoSuchOperator.text());
            0
        })),
    }
}

fn corner_range(
    f: fn(i128, i128) -> i128,
    a: &Int,
    b: &Int,
    least: i64,
    most: i64,
) -> Option<(i64, i64)> {
    // The exact result's range; it is also that of the wrapped one if it fits the type.
    let (al, ah, bl, bh) = (i128::from(a.lo), i128::from(a.hi), i128::from(b.lo), i128::from(b.hi));
    let all = [f(al, bl), f(al, bh), f(ah, bl), f(ah, bh)];
    let lo = all.iter().copied().min().unwrap_or(i128::MIN);
    let hi = all.iter().copied().max().unwrap_or(i128::MAX);
    let fits = i128::from(least) <= lo && hi <= i128::from(most);
    fits.then_some((lo as i64, hi as i64))
}

fn affine_sum(factor: i64, a: &Int, b: &Int) -> Option<Affine> {
    a.affine().zip(b.affine()).and_then(|(x, y)| x.plus(y, factor))
}

/// A comparison of two values of one form.
fn compare<T: PartialOrd + 'static>(op: BinOp, a: Code<T>, b: Code<T>) -> Int {
    truth(match op {
        BinOp::Eq => Box::new(move |m| i64::from(a(m) == b(m))),
        BinOp::Ne => Box::new(move |m| i64::from(a(m) != b(m))),
        BinOp::Lt => Box::new(move |m| i64::from(a(m) < b(m))),
        BinOp::Le => Box::new(move |m| i64::from(a(m) <= b(m))),
        BinOp::Gt => Box::new(move |m| i64::from(a(m) > b(m))),
        _ => Box::new(move |m| i64::from(a(m) >= b(m))),
    })
}

fn divide(op: BinOp, dtype: DType, a: Int, b: Int) -> Int {
    let (least, most) = range_of(dtype);
    let remainder = matches!(op, BinOp::FloorMod | BinOp::TruncMod);
    // Both kinds of division agree where nothing is negative, the usual case of indices.
    if let Some(d) = b.as_const().filter(|d| *d > 0)
        && a.lo >= 0
    {
        let range = match remainder {
            true if a.hi < d => return a,
            true => (0, d - 1),
            false => (a.lo / d, a.hi / d),
        };
        let (a, d) = (a.code(), d as u64);
        let shift = d.trailing_zeros();
        return match (remainder, d.is_power_of_two()) {
            (true, true) => Int::computed(range, Box::new(move |m| (a(m) as u64 & (d - 1)) as i64)),
            (false, true) => Int::computed(range, Box::new(move |m| (a(m) as u64 >> shift) as i64)),
            (true, false) => Int::computed(range, Box::new(move |m| (a(m) as u64 % d) as i64)),
            (false, false) => Int::computed(range, Box::new(move |m| (a(m) as u64 / d) as i64)),
        };
    }
    let range = match (op, b.as_const()) {
        (BinOp::FloorMod, Some(d)) if d > 0 => (0, d - 1),
        (BinOp::FloorDiv, Some(d)) if d > 0 => (a.lo.div_euclid(d), a.hi.div_euclid(d)),
        _ => (least, most),
    };
    let (a, b) = (a.code(), b.code());
    Int::computed(
        range,
        Box::new(move |m| {
            let (x, y) = (a(m), b(m));
            eval_int(op, x, y, dtype).unwrap_or_else(|| {
                m.fail(scalar::Fault::DivisionByZero.text());
                0
            })
        }),
    )
}

macro_rules! float_binary {
    ($name:ident, $t:ty, $variant:ident, $min:path, $max:path) => {
        fn $name(op: BinOp, a: Code<$t>, b: Code<$t>) -> ValueCode {
            match op {
                _ if op.is_compare() => ValueCode::Int(compare(op, a, b)),
                BinOp::Add => ValueCode::$variant(Box::new(move |m| a(m) + b(m))),
                BinOp::Sub => ValueCode::$variant(Box::new(move |m| a(m) - b(m))),
                BinOp::Mul => ValueCode::$variant(Box::new(move |m| a(m) * b(m))),
                BinOp::Div => ValueCode::$variant(Box::new(move |m| a(m) / b(m))),
                BinOp::Min => ValueCode::$variant(Box::new(move |m| $min(a(m), b(m)))),
                BinOp::Max => ValueCode::$variant(Box::new(move |m| $max(a(m), b(m)))),
                _ => ValueCode::$variant(Box::new(|m| {
                    m.fail(scalar::Fault::NoSuchOperator.text());
                    0.0
                })),
            }
        }
    };
}
float_binary!(float32_binary, f32, F32, scalar::minimum32, scalar::maximum32);
float_binary!(float64_binary, f64, F64, scalar::minimum, scalar::maximum);

/// An operator on cells. A result is arbitrary if an operand is, unless every value of that
/// operand gives the same result: an integer zero times anything, false and anything, true or
/// anything.
fn cell_binary(op: BinOp, dtype: DType, a: Code<Cell>, b: Code<Cell>) -> Code<Cell> {
    if op.is_logic() {
        // The value that decides on its own.
        let decides = u64::from(op == BinOp::Or);
        return Box::new(move |m| {
            let a = a(m);
            if !a.undef && a.bits == decides {
                return a;
            }
            let b = b(m);
            if a.undef && (b.undef || b.bits != decides) {
                Cell { bits: b.bits, undef: true }
            } else {
                b
            }
        });
    }
    let divides =
        matches!(op, BinOp::FloorDiv | BinOp::FloorMod | BinOp::TruncDiv | BinOp::TruncMod);
    let int = dtype.is_int();
    Box::new(move |m| {
        let (a, b) = (a(m), b(m));
        if divides && b.undef {
            m.fail("division by an arbitrary value");
        }
        let undef = match op {
            BinOp::Mul if int => {
                (a.undef && (b.undef || b.bits != 0)) || (b.undef && (a.undef || a.bits != 0))
            }
            _ => a.undef || b.undef,
        };
        match scalar::binary(op, dtype, a.bits, b.bits) {
            _ if op == BinOp::Mul && int && (a.undef || b.undef) && !undef => Cell::new(0),
            Ok(bits) => Cell { bits, undef },
            Err(fault) => {
                m.fail(fault.text());
                Cell::new(0)
            }
        }
    })
}
