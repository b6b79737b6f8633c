//! The values of scripts and traces: what a primitive takes and returns.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use tilewright_ir::text::{float_text, quote};
use tilewright_ir::{Attr, Buffer, DType, Error, Expr, Result, Var};

pub use tilewright_ir::lambda::{LambdaBody, LambdaItem};

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

/// Most items of a lambda: axes of a buffer, or loops of a nest.
const MAX_ITEMS: usize = 64;

/// A lambda in a script: index maps and pad values. The number and types of its parameters are
/// known only when a primitive meets its buffer, so binding comes later.
#[derive(Clone)]
pub struct Lambda {
    bind: Arc<BindLambda>,
    text: Arc<str>,
}

type BindLambda = dyn Fn(&[DType], &[Buffer]) -> Result<LambdaBody> + Send + Sync;

impl Lambda {
    /// A lambda from its text and a function that binds parameters of the given types; with a
    /// star parameter it takes any number of them, otherwise another number is an error.
    pub fn new(
        text: impl Into<Arc<str>>,
        bind: impl Fn(&[DType]) -> Result<LambdaBody> + Send + Sync + 'static,
    ) -> Self {
        Lambda::over_buffers(text, move |dtypes, _| bind(dtypes))
    }

    /// Like [`Lambda::new`], for a body that may read buffers by name: those that it is given come
    /// before all others of the same name.
    pub fn over_buffers(
        text: impl Into<Arc<str>>,
        bind: impl Fn(&[DType], &[Buffer]) -> Result<LambdaBody> + Send + Sync + 'static,
    ) -> Self {
        Lambda { bind: Arc::new(bind), text: text.into() }
    }

    /// A lambda of Rust, over parameters with these names.
    pub fn from_fn<N: Into<Arc<str>>>(
        params: impl IntoIterator<Item = N>,
        f: impl Fn(&[Expr]) -> Vec<LambdaItem> + Send + Sync + 'static,
    ) -> Self {
        Lambda::over_vars(params.into_iter().map(|n| Var::index(n)).collect(), f)
    }

    /// The same, printed in terms of variables.
    pub(crate) fn over_vars(
        vars: Vec<Var>,
        f: impl Fn(&[Expr]) -> Vec<LambdaItem> + Send + Sync + 'static,
    ) -> Self {
        let over = move |params: &[Var]| f(&params.iter().map(Var::expr).collect::<Vec<_>>());
        let names: Vec<&str> = vars.iter().map(|v| &**v.name()).collect();
        let items: Vec<String> = over(&vars).iter().map(LambdaItem::to_string).collect();
        let text = format!("lambda {}: [{}]", names.join(", "), items.join(", "));
        Lambda::new(text, move |dtypes| match dtypes.len() == vars.len() {
            true => {
                let pairs = vars.iter().zip(dtypes);
                let params: Vec<Var> = pairs.map(|(v, d)| Var::new(v.name().clone(), *d)).collect();
                Ok(LambdaBody { items: over(&params), params })
            }
            false => {
                let (takes, given) = (vars.len(), dtypes.len());
                Err(Error::input(format!("the function takes {takes} indices, not {given}")))
            }
        })
    }

    /// An index map of Rust, over so many indices `i0`, `i1` and so on.
    pub fn over_indices(
        rank: usize,
        map: impl Fn(&[Expr]) -> Vec<Expr> + Send + Sync + 'static,
    ) -> Self {
        let names = (0..rank).map(|d| format!("i{d}"));
        Lambda::from_fn(names, move |at| map(at).into_iter().map(LambdaItem::Expr).collect())
    }

    /// The body over new parameters of these types.
    pub fn bind(&self, params: &[DType]) -> Result<LambdaBody> {
        self.bind_with(params, &[])
    }

    /// The body over new parameters of these types, where names of buffers mean these first: a pad
    /// value reads the buffer as it lies after the transformation.
    pub(crate) fn bind_with(&self, params: &[DType], buffers: &[Buffer]) -> Result<LambdaBody> {
        let body = (self.bind)(params, buffers)?;
        match body.items.len() > MAX_ITEMS {
            true => Err(Error::input(format!(
                "the lambda gives {} items, at most {MAX_ITEMS} are allowed",
                body.items.len()
            ))),
            false => Ok(body),
        }
    }
}

impl fmt::Debug for Lambda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
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
    /// A block.
    Block(BlockRef),
    /// A loop.
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
            Attr::Map(items) => {
                let pair = |k: &Arc<str>, v: &Attr| vec![Value::Str(k.clone()), v.into()];
                items.iter().map(|(k, v)| Value::List(pair(k, v))).collect()
            }
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
            Value::Lambda(l) => l.text.to_string(),
        }
    }
}
