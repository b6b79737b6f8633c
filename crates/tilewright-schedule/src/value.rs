//! The values of scripts and traces: what a primitive takes and returns.

use std::fmt;
use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::text::{float_text, quote};
use tilewright_ir::{Attr, DType, Expr, Var};

pub use tilewright_ir::lambda::{Lambda, LambdaBody, LambdaItem};

/// A block, by function and name. Names of blocks are unique within a scheduled function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockRef {
    /// Name of the function in the module.
    pub func: Arc<str>,
    /// Name of the block.
    pub name: Arc<str>,
}

/// A loop, by function and loop variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LoopRef {
    /// Name of the function in the module.
    pub func: Arc<str>,
    /// The loop variable.
    pub var: Var,
}

impl LoopRef {
    /// The loop over a variable in a function.
    pub fn new(func: &Arc<str>, var: &Var) -> LoopRef {
        LoopRef { func: func.clone(), var: var.clone() }
    }
}

/// The name of the block.
impl fmt::Display for BlockRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The name of the variable.
impl fmt::Display for LoopRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.var.fmt(f)
    }
}

/// An argument of an instruction.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// Text.
    Str(Arc<str>),
    /// An expression.
    Expr(Expr),
    /// A list or tuple.
    List(Vec<Value>),
    Block(BlockRef),
    Loop(LoopRef),
    /// A function of indices.
    Lambda(Lambda),
}

impl Value {
    /// What kind of thing it is, for messages.
    pub fn describe(&self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Bool(_) => "a truth value",
            Value::Int(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Str(_) => "a string",
            Value::Expr(_) => "an expression",
            Value::List(_) => "a list",
            Value::Block(_) => "a block",
            Value::Loop(_) => "a loop",
            Value::Lambda(_) => "a lambda",
        }
    }
}

impl From<&BlockRef> for Value {
    fn from(b: &BlockRef) -> Value {
        Value::Block(b.clone())
    }
}
impl From<&LoopRef> for Value {
    fn from(l: &LoopRef) -> Value {
        Value::Loop(l.clone())
    }
}
impl From<&str> for Value {
    fn from(s: &str) -> Value {
        Value::Str(s.into())
    }
}
impl From<i64> for Value {
    fn from(v: i64) -> Value {
        Value::Int(v)
    }
}
impl From<bool> for Value {
    fn from(v: bool) -> Value {
        Value::Bool(v)
    }
}
impl From<&Expr> for Value {
    fn from(e: &Expr) -> Value {
        match e.as_int() {
            Some(v) if e.dtype() == DType::I32 => Value::Int(v),
            _ => Value::Expr(e.clone()),
        }
    }
}
impl From<&Attr> for Value {
    fn from(v: &Attr) -> Value {
        match v {
            Attr::None => Value::None,
            Attr::Bool(b) => Value::Bool(*b),
            Attr::Int(v) => Value::Int(*v),
            Attr::Float(v) => Value::Float(*v),
            Attr::Str(s) => Value::Str(s.clone()),
            Attr::Expr(e) => Value::from(e),
            Attr::List(items) => items.iter().collect(),
            Attr::Map(items) => items
                .iter()
                .map(|(k, v)| Value::List(vec![Value::Str(k.clone()), v.into()]))
                .collect(),
        }
    }
}
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(v: Option<T>) -> Value {
        v.map_or(Value::None, Into::into)
    }
}
impl<T: Into<Value>> FromIterator<T> for Value {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Value {
        Value::List(items.into_iter().map(Into::into).collect())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Handles::default().text(self))
    }
}

/// Names `b0`, `l1`, ... of what instructions returned; the latest one of a block or loop counts.
#[derive(Default)]
pub(crate) struct Handles {
    count: usize,
    blocks: HashMap<BlockRef, String>,
    loops: HashMap<LoopRef, String>,
}

impl Handles {
    /// A new name for what an instruction returned.
    pub(crate) fn define(&mut self, value: &Value) -> String {
        let letter = if matches!(value, Value::Block(_)) { 'b' } else { 'l' };
        let name = format!("{letter}{}", self.count);
        self.count += 1;
        match value {
            Value::Block(b) => {
                self.blocks.insert(b.clone(), name.clone());
            }
            Value::Loop(l) => {
                self.loops.insert(l.clone(), name.clone());
            }
            _ => {}
        }
        name
    }

    /// A value as text.
    pub(crate) fn text(&self, value: &Value) -> String {
        match value {
            Value::None => "None".into(),
            Value::Bool(true) => "True".into(),
            Value::Bool(false) => "False".into(),
            Value::Int(v) => v.to_string(),
            Value::Float(v) => float_text(*v, DType::F64),
            Value::Str(s) => quote(s),
            Value::Expr(e) => e.to_string(),
            Value::List(items) => {
                let items: Vec<String> = items.iter().map(|v| self.text(v)).collect();
                format!("[{}]", items.join(", "))
            }
            // A block or loop that no instruction of this trace returned goes by its name.
            Value::Block(b) => self.blocks.get(b).cloned().unwrap_or_else(|| quote(&b.name)),
            Value::Loop(l) => self.loops.get(l).cloned().unwrap_or_else(|| quote(l.var.name())),
            Value::Lambda(l) => format!("{l:?}"),
        }
    }
}
