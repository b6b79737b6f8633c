//! What an expression of the text stands for, and how types meet.
//!
//! Python evaluates arithmetic on plain numbers itself (`4 * 4` is the number 16), and a plain
//! number that meets a typed expression takes its type. So a [`TextValue`] is either typed or still a
//! plain Python literal. A literal that meets nothing becomes `int32` (`int64` in graph functions
//! or where it does not fit), `float32` or `bool`. Typed operands of different types meet by TVM's
//! rules: a scalar is broadcast to the lanes of the other, integers go to the wider width (signed
//! if either is), an integer meets a float as that float, and the wider float wins.

use std::sync::Arc;

use tilewright_ir::scalar::{self, Scalar};
use tilewright_ir::{BinOp, Buffer, DType, Error, Expr, Result, TypeKind, extent};

/// The value of an expression of the text.
#[derive(Clone, Debug)]
pub(crate) enum TextValue {
    /// An expression that has a type.
    Typed(Expr),
    /// A plain integer.
    Int(i128),
    /// A plain float.
    Float(f64),
    /// `True` or `False`.
    Bool(bool),
    /// `T.undef()` without a type.
    Undef,
    /// Text.
    Str(Arc<str>),
    None,
    /// A buffer itself, not an element.
    Buffer(Buffer),
}

impl TextValue {
    /// What this is, for messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            TextValue::Typed(e) => format!("an expression of type {}", e.dtype()),
            TextValue::Int(v) => format!("the number {v}"),
            TextValue::Float(v) => format!("the number {v:?}"),
            TextValue::Bool(true) => "True".to_owned(),
            TextValue::Bool(false) => "False".to_owned(),
            TextValue::Undef => "T.undef()".to_owned(),
            TextValue::Str(_) => "a string".to_owned(),
            TextValue::None => "None".to_owned(),
            TextValue::Buffer(b) => format!("the buffer `{}`", b.name),
        }
    }

    /// Refuses what is no operand.
    pub(crate) fn operand(&self) -> Result<()> {
        match self {
            TextValue::Str(_) | TextValue::None | TextValue::Buffer(_) => {
                let message = format!("expected an expression, found {}", self.describe());
                Err(Error::syntax(message))
            }
            _ => Ok(()),
        }
    }

    /// Whether this is a plain number or truth value, or an untyped undef.
    fn is_literal(&self) -> bool {
        matches!(
            self,
            TextValue::Int(_) | TextValue::Float(_) | TextValue::Bool(_) | TextValue::Undef
        )
    }

    /// The expression, with the default type for a literal; `int` is the default integer type.
    /// A buffer stands for its pointer.
    pub(crate) fn typed(self, int: DType) -> Result<Expr> {
        Ok(match self {
            TextValue::Typed(e) => e,
            TextValue::Int(v) => match (i32::try_from(v), i64::try_from(v), u64::try_from(v)) {
                (Ok(v), ..) => Expr::int(i64::from(v), int),
                (_, Ok(v), _) => Expr::int(v, DType::I64),
                (.., Ok(v)) => Expr::int(v as i64, DType::U64),
                _ => return Err(Error::syntax(format!("{v} does not fit in 64 bits"))),
            },
            TextValue::Float(v) => Expr::float(v, DType::F32),
            TextValue::Bool(v) => Expr::bool(v),
            TextValue::Undef => Expr::undef(int),
            TextValue::Str(s) => Expr::str(s),
            TextValue::Buffer(b) => b.data.expr(),
            TextValue::None => return Err(Error::syntax("expected an expression, found None")),
        })
    }

    /// The expression as a value of a type: literals take the type, others are converted.
    pub(crate) fn convert(self, to: DType, int: DType) -> Result<Expr> {
        let scalar = to.scalar();
        let literal = match &self {
            TextValue::Int(v) if scalar.is_float() => Some(Expr::float(*v as f64, scalar)),
            TextValue::Int(v) if scalar.is_bool() => Some(Expr::bool(*v != 0)),
            TextValue::Int(v) if scalar.is_int() => Some(int_literal(*v, scalar)?),
            TextValue::Float(v) if scalar.is_float() => Some(Expr::float(*v, scalar)),
            TextValue::Float(v) if scalar.is_int() && v.fract() == 0.0 && v.abs() < 1e18 => {
                Some(int_literal(*v as i128, scalar)?)
            }
            TextValue::Bool(v) if scalar.is_float() => {
                Some(Expr::float(f64::from(u8::from(*v)), scalar))
            }
            TextValue::Bool(v) if scalar.is_int() || scalar.is_bool() => {
                Some(Expr::int(i64::from(*v), scalar))
            }
            TextValue::Undef => return Ok(Expr::undef(to)),
            _ => None,
        };
        let value = match literal {
            Some(e) => e,
            None => self.typed(int)?,
        };
        let from = value.dtype();
        if from == to {
            return Ok(value);
        }
        let (a, b) = (from.kind, to.kind);
        let bare = [TypeKind::Handle, TypeKind::Void];
        if bare.contains(&a) || bare.contains(&b) || (from.lanes != to.lanes && from.lanes != 1) {
            return Err(Error::syntax(format!("expected {to}, found {from}")));
        }
        let value = if from.scalar() == scalar {
            value
        } else {
            Expr::cast_node(value, to.with_lanes(from.lanes))
        };
        Ok(if from.lanes == to.lanes { value } else { Expr::broadcast(value, to.lanes) })
    }

    /// The value as a condition.
    pub(crate) fn condition(self, int: DType) -> Result<Expr> {
        let e = match self {
            TextValue::Int(v @ 0..=1) => Expr::bool(v == 1),
            TextValue::Undef => Expr::undef(DType::BOOL),
            other => other.typed(int)?,
        };
        if e.dtype().is_bool() {
            Ok(e)
        } else {
            Err(Error::syntax(format!("expected a condition, found {}", e.dtype()))
                .help("write a comparison, such as `x != 0`"))
        }
    }
}

/// The value of an integer constant.
pub(crate) fn constant_value(e: &Expr) -> Option<i128> {
    let v = e.as_int().filter(|_| e.dtype().is_int())?;
    Some(match e.dtype().kind {
        TypeKind::UInt => i128::from(v as u64),
        _ => i128::from(v),
    })
}

/// A constant of an integer type, checked to fit.
pub(crate) fn int_literal(v: i128, dtype: DType) -> Result<Expr> {
    if extent::holds(dtype, v) {
        Ok(Expr::int(v as i64, dtype))
    } else {
        Err(Error::syntax(format!("{v} does not fit in {dtype}")))
    }
}

/// Two operands of one type.
pub(crate) fn unify(a: TextValue, b: TextValue, int: DType) -> Result<(Expr, Expr)> {
    match (&a, &b) {
        (TextValue::Typed(x), y) if y.is_literal() => {
            if let Some(to) = literal_type(y, x.dtype()) {
                return Ok((a.typed(int)?, b.convert(to, int)?));
            }
        }
        (x, TextValue::Typed(y)) if x.is_literal() => {
            if let Some(to) = literal_type(x, y.dtype()) {
                return Ok((a.convert(to, int)?, b.typed(int)?));
            }
        }
        (TextValue::Undef, y) if y.is_literal() && !matches!(y, TextValue::Undef) => {
            let y = b.typed(int)?;
            return Ok((Expr::undef(y.dtype()), y));
        }
        (x, TextValue::Undef) if x.is_literal() => {
            let x = a.typed(int)?;
            let dtype = x.dtype();
            return Ok((x, Expr::undef(dtype)));
        }
        _ => {}
    }
    let (a, b) = (a.typed(int)?, b.typed(int)?);
    let to = common(a.dtype(), b.dtype())?;
    Ok((TextValue::Typed(a).convert(to, int)?, TextValue::Typed(b).convert(to, int)?))
}

/// The type that a literal takes beside a typed operand; `None` where the two meet as if the
/// literal had its default type.
fn literal_type(literal: &TextValue, other: DType) -> Option<DType> {
    let takes = match literal {
        TextValue::Int(v) => {
            other.is_float() || other.is_int() && int_literal(*v, other.scalar()).is_ok()
        }
        TextValue::Float(_) => other.is_float(),
        TextValue::Bool(_) => other.is_bool(),
        TextValue::Undef => other.kind != TypeKind::Handle,
        _ => false,
    };
    takes.then_some(other)
}

/// The type at which two typed operands meet.
fn common(a: DType, b: DType) -> Result<DType> {
    let lanes = match (a.lanes, b.lanes) {
        (x, y) if x == y => x,
        (1, y) => y,
        (x, 1) => x,
        _ => return Err(do_not_match(a, b)),
    };
    let (x, y) = (a.scalar(), b.scalar());
    if x == y {
        return Ok(x.with_lanes(lanes));
    }
    if is_bare(x) || is_bare(y) {
        return Err(do_not_match(a, b));
    }
    let scalar = match (x.is_float(), y.is_float()) {
        (true, false) => x,
        (false, true) => y,
        (true, true) if x.bits == y.bits => DType::F32,
        (true, true) => {
            if x.bits > y.bits {
                x
            } else {
                y
            }
        }
        (false, false) => {
            let bits = x.bits.max(y.bits);
            let kind = match (x.kind, y.kind) {
                (TypeKind::Bool, k) | (k, TypeKind::Bool) => k,
                (p, q) if p == q => p,
                _ => TypeKind::Int,
            };
            DType { kind, bits, lanes: 1 }
        }
    };
    Ok(scalar.with_lanes(lanes))
}

fn do_not_match(a: DType, b: DType) -> Error {
    Error::syntax(format!("the types {a} and {b} do not go together"))
}

fn is_bare(d: DType) -> bool {
    matches!(d.kind, TypeKind::Handle | TypeKind::Void)
}

/// A binary operator on two values: folded where both are plain numbers, as Python would.
pub(crate) fn binary(op: BinOp, a: TextValue, b: TextValue, int: DType) -> Result<TextValue> {
    if let Some(v) = fold(op, &a, &b)? {
        return Ok(v);
    }
    if op.is_logic() {
        let (a, b) = (a.condition(int)?, b.condition(int)?);
        let to = common(a.dtype(), b.dtype())?;
        let a = TextValue::Typed(a).convert(to, int)?;
        return Ok(TextValue::Typed(Expr::binary(op, a, TextValue::Typed(b).convert(to, int)?)));
    }
    let (a, b) = unify(a, b, int)?;
    let dtype = a.dtype();
    let wrong = |help: &str| {
        let space = if op.is_infix() { "" } else { "T." };
        let message = format!("`{space}{}` does not take {dtype}", op.symbol());
        Err(Error::syntax(message).help(help))
    };
    let arithmetic = !op.is_compare() && !matches!(op, BinOp::Min | BinOp::Max);
    match op {
        _ if matches!(dtype.kind, TypeKind::Void) => wrong("use a value"),
        BinOp::Eq | BinOp::Ne => Ok(()),
        _ if dtype.kind == TypeKind::Handle => wrong("use a number"),
        BinOp::Div if !dtype.is_float() => {
            wrong("write `//` for floor division or T.truncdiv for truncating division")
        }
        BinOp::FloorDiv | BinOp::FloorMod | BinOp::TruncDiv | BinOp::TruncMod
            if !dtype.is_int() =>
        {
            wrong("write `/` for the division of floats and T.fmod for its remainder")
        }
        _ if arithmetic && dtype.is_bool() => wrong("convert it with T.Cast(\"int32\", ...) first"),
        _ => Ok(()),
    }?;
    Ok(TextValue::Typed(Expr::binary(op, a, b)))
}

/// Python's arithmetic on plain numbers; `None` where an operand is not one, or where Python has no
/// such operator.
fn fold(op: BinOp, a: &TextValue, b: &TextValue) -> Result<Option<TextValue>> {
    match (a, b) {
        (TextValue::Bool(x), TextValue::Bool(y)) if op.is_logic() => {
            let value = scalar::exact(op, i128::from(*x), i128::from(*y));
            Ok(value.map(|v| TextValue::Bool(v != 0)))
        }
        _ if op.is_logic() || !op.is_infix() => Ok(None),
        (TextValue::Int(x), TextValue::Int(y)) if op != BinOp::Div => {
            match scalar::exact(op, *x, *y) {
                Some(v) if op.is_compare() => Ok(Some(TextValue::Bool(v != 0))),
                Some(v) => Ok(Some(TextValue::Int(v))),
                None if *y == 0 => Err(Error::syntax("division by zero")),
                None => Err(Error::syntax("the number is too large")),
            }
        }
        _ => match number_of(a).zip(number_of(b)) {
            Some((_, 0.0)) if op == BinOp::Div => Err(Error::syntax("division by zero")),
            Some((x, y)) => {
                let value = Scalar::binary(op, x.into(), y.into()).ok();
                Ok(value.map(|v| {
                    if v.dtype().is_bool() {
                        TextValue::Bool(v.bits() != 0)
                    } else {
                        TextValue::Float(v.as_f64())
                    }
                }))
            }
            None => Ok(None),
        },
    }
}

fn number_of(v: &TextValue) -> Option<f64> {
    match v {
        TextValue::Int(v) => Some(*v as f64),
        TextValue::Float(v) => Some(*v),
        _ => None,
    }
}
