//! The types of what primitives take and return: how a value of a script becomes one, how a trace
//! keeps it, and what help says.

use std::fmt;
use std::sync::Arc;

use tilewright_ir::{Attr, DType, Error, Expr, Result, TensorFunc, extent};

use crate::cursor::{Cursor, InFunction};
use crate::schedule::Schedule;
use crate::value::{BlockRef, Lambda, LoopRef, Value};

/// A value that a script can give.
pub trait Readable: Sized {
    /// Whether one of them counts as a list of one.
    const ALONE: bool = false;

    /// What may be given, in words.
    fn takes() -> String;

    /// It from a value of a script; `None` where that is of another kind.
    ///
    /// # Errors
    /// Where the kind is right and the value is not: a name that nothing has, a number that is too
    /// large.
    fn read(value: &Value, sch: &Schedule) -> Result<Option<Self>>;

    /// It as a value of a trace.
    fn record(&self) -> Value;
}

/// A type of argument of a method, which borrows for `'a` from what was read.
pub trait Argument<'a>: Sized {
    /// What is read.
    type Owned: Readable;

    /// The argument.
    fn lend(owned: &'a Self::Owned) -> Self;

    /// It as a value of a trace.
    fn record(&self) -> Value;
}

impl<'a, T: Readable> Argument<'a> for &'a T {
    type Owned = T;
    fn lend(owned: &'a T) -> Self {
        owned
    }
    fn record(&self) -> Value {
        T::record(self)
    }
}

impl<'a, T: Readable> Argument<'a> for &'a [T] {
    type Owned = Vec<T>;
    fn lend(owned: &'a Vec<T>) -> Self {
        owned
    }
    fn record(&self) -> Value {
        Value::List(self.iter().map(T::record).collect())
    }
}

impl<'a> Argument<'a> for &'a str {
    type Owned = Arc<str>;
    fn lend(owned: &'a Arc<str>) -> Self {
        owned
    }
    fn record(&self) -> Value {
        Value::Str((*self).into())
    }
}

impl<'a, A: Argument<'a>> Argument<'a> for Option<A> {
    type Owned = Option<A::Owned>;
    fn lend(owned: &'a Option<A::Owned>) -> Self {
        owned.as_ref().map(A::lend)
    }
    fn record(&self) -> Value {
        self.as_ref().map_or(Value::None, A::record)
    }
}

/// Arguments that are passed as what is read.
macro_rules! by_value {
    ($($t:ty),*) => { $(
        impl $crate::argument::Argument<'_> for $t {
            type Owned = $t;
            fn lend(owned: &$t) -> $t {
                owned.clone()
            }
            fn record(&self) -> $crate::value::Value {
                $crate::argument::Readable::record(self)
            }
        }
    )* };
}
pub(crate) use by_value;
by_value!(bool, i64, usize, Attr, BlockOrLoop, OptionalName);

impl<T: Readable> Readable for Vec<T> {
    fn takes() -> String {
        format!("a list, each {}", T::takes())
    }
    fn read(value: &Value, sch: &Schedule) -> Result<Option<Self>> {
        match value {
            Value::List(items) => items.iter().map(|v| T::read(v, sch)).collect(),
            one if T::ALONE => Ok(T::read(one, sch)?.map(|one| vec![one])),
            _ => Ok(None),
        }
    }
    fn record(&self) -> Value {
        self.as_slice().record()
    }
}

impl<T: Readable> Readable for Option<T> {
    fn takes() -> String {
        format!("{} or None", T::takes())
    }
    fn read(value: &Value, sch: &Schedule) -> Result<Option<Self>> {
        match value {
            Value::None => Ok(Some(None)),
            some => Ok(T::read(some, sch)?.map(Some)),
        }
    }
    fn record(&self) -> Value {
        self.as_ref().map_or(Value::None, T::record)
    }
}

impl Readable for BlockRef {
    const ALONE: bool = true;
    fn takes() -> String {
        "a block".to_owned()
    }
    fn read(value: &Value, sch: &Schedule) -> Result<Option<Self>> {
        match value {
            Value::Block(b) => Ok(Some(sch.latest(b.clone()))),
            Value::Str(name) => sch.block_named(name).map(Some),
            _ => Ok(None),
        }
    }
    fn record(&self) -> Value {
        Value::Block(self.clone())
    }
}

impl Readable for LoopRef {
    const ALONE: bool = true;
    fn takes() -> String {
        "a loop".to_owned()
    }
    fn read(value: &Value, sch: &Schedule) -> Result<Option<Self>> {
        match value {
            Value::Loop(l) => Ok(Some(l.clone())),
            Value::Str(name) => sch.loop_named(name).map(Some),
            _ => Ok(None),
        }
    }
    fn record(&self) -> Value {
        Value::Loop(self.clone())
    }
}

/// A block or a loop; a name is first one of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockOrLoop {
    Block(BlockRef),
    Loop(LoopRef),
}

impl From<&BlockRef> for BlockOrLoop {
    fn from(b: &BlockRef) -> BlockOrLoop {
        BlockOrLoop::Block(b.clone())
    }
}

impl From<&LoopRef> for BlockOrLoop {
    fn from(l: &LoopRef) -> BlockOrLoop {
        BlockOrLoop::Loop(l.clone())
    }
}

impl InFunction for BlockOrLoop {
    fn func(&self) -> Option<&Arc<str>> {
        match self {
            BlockOrLoop::Block(b) => b.func(),
            BlockOrLoop::Loop(l) => l.func(),
        }
    }
    fn cursor(&self, func: &TensorFunc) -> Result<Cursor> {
        match self {
            BlockOrLoop::Block(b) => b.cursor(func),
            BlockOrLoop::Loop(l) => l.cursor(func),
        }
    }
}

impl fmt::Display for BlockOrLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockOrLoop::Block(b) => write!(f, "the block `{}`", b.name),
            BlockOrLoop::Loop(l) => write!(f, "the loop `{}`", l.var.name()),
        }
    }
}

impl Readable for BlockOrLoop {
    fn takes() -> String {
        "a block or a loop".to_owned()
    }
    fn read(value: &Value, sch: &Schedule) -> Result<Option<Self>> {
        let block = |v: &Value| Ok(BlockRef::read(v, sch)?.map(BlockOrLoop::Block));
        let the_loop = |v: &Value| Ok(LoopRef::read(v, sch)?.map(BlockOrLoop::Loop));
        match value {
            Value::Loop(_) => the_loop(value),
            Value::Str(_) => block(value).or_else(|e: Error| the_loop(value).map_err(|_: Error| e)),
            other => block(other),
        }
    }
    fn record(&self) -> Value {
        match self {
            BlockOrLoop::Block(b) => b.into(),
            BlockOrLoop::Loop(l) => l.into(),
        }
    }
}

impl Readable for Lambda {
    fn takes() -> String {
        "a lambda".to_owned()
    }
    fn read(value: &Value, _: &Schedule) -> Result<Option<Self>> {
        Ok(match value {
            Value::Lambda(l) => Some(l.clone()),
            _ => None,
        })
    }
    fn record(&self) -> Value {
        Value::Lambda(self.clone())
    }
}

impl Readable for Arc<str> {
    fn takes() -> String {
        "a string".to_owned()
    }
    fn read(value: &Value, _: &Schedule) -> Result<Option<Self>> {
        Ok(match value {
            Value::Str(s) => Some(s.clone()),
            _ => None,
        })
    }
    fn record(&self) -> Value {
        Value::Str(self.clone())
    }
}

impl Readable for bool {
    fn takes() -> String {
        "a truth value".to_owned()
    }
    fn read(value: &Value, _: &Schedule) -> Result<Option<Self>> {
        Ok(match value {
            Value::Bool(v) => Some(*v),
            Value::Int(v @ (0 | 1)) => Some(*v == 1),
            _ => None,
        })
    }
    fn record(&self) -> Value {
        Value::Bool(*self)
    }
}

impl Readable for i64 {
    fn takes() -> String {
        "a whole number".to_owned()
    }
    fn read(value: &Value, _: &Schedule) -> Result<Option<Self>> {
        Ok(match value {
            Value::Int(v) => Some(*v),
            _ => None,
        })
    }
    fn record(&self) -> Value {
        Value::Int(*self)
    }
}

impl Readable for usize {
    fn takes() -> String {
        "a position from zero".to_owned()
    }
    fn read(value: &Value, sch: &Schedule) -> Result<Option<Self>> {
        Ok(i64::read(value, sch)?.and_then(|v| usize::try_from(v).ok()))
    }
    fn record(&self) -> Value {
        Value::Int(i64::try_from(*self).unwrap_or(i64::MAX))
    }
}

/// A number: an expression, of `int32` where a whole number is given that fits.
impl Readable for Expr {
    fn takes() -> String {
        "a number".to_owned()
    }
    fn read(value: &Value, _: &Schedule) -> Result<Option<Self>> {
        match value {
            Value::Int(v) => extent::constant(i128::from(*v), DType::I32).map(Some),
            Value::Expr(e) => Ok(Some(e.clone())),
            _ => Ok(None),
        }
    }
    fn record(&self) -> Value {
        Value::from(self)
    }
}

/// Anything; the primitive says what fits.
impl Readable for Value {
    fn takes() -> String {
        "a number, an expression or a lambda".to_owned()
    }
    fn read(value: &Value, _: &Schedule) -> Result<Option<Self>> {
        Ok(Some(value.clone()))
    }
    fn record(&self) -> Value {
        self.clone()
    }
}

/// What an annotation holds.
impl Readable for Attr {
    fn takes() -> String {
        "a constant".to_owned()
    }
    fn read(value: &Value, sch: &Schedule) -> Result<Option<Self>> {
        Ok(Some(match value {
            Value::None => Attr::None,
            Value::Bool(b) => Attr::Bool(*b),
            Value::Int(k) => Attr::Int(*k),
            Value::Float(x) => Attr::Float(*x),
            Value::Str(s) => Attr::Str(s.clone()),
            Value::Expr(e) => Attr::Expr(e.clone()),
            Value::List(_) => return Ok(Vec::read(value, sch)?.map(Attr::List)),
            Value::Block(_) | Value::Loop(_) | Value::Lambda(_) => return Ok(None),
        }))
    }
    fn record(&self) -> Value {
        self.into()
    }
}

/// A name, where one is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptionalName(Option<Arc<str>>);

impl OptionalName {
    /// The name.
    pub fn get(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl<T: AsRef<str> + ?Sized> From<&T> for OptionalName {
    fn from(name: &T) -> OptionalName {
        OptionalName(Some(name.as_ref().into()))
    }
}

impl Readable for OptionalName {
    fn takes() -> String {
        Option::<Arc<str>>::takes()
    }
    fn read(value: &Value, sch: &Schedule) -> Result<Option<Self>> {
        Ok(Option::read(value, sch)?.map(OptionalName))
    }
    fn record(&self) -> Value {
        self.0.record()
    }
}
