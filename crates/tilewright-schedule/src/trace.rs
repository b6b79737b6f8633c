//! The record of a schedule: one instruction for each primitive that was applied.
//!
//! A trace prints as a script in the form that TVM prints, and running that script on the same
//! module gives the same result:
//!
//! ```python
//! def apply_trace(sch):
//!     b0 = sch.get_block(name="B", func_name="main")
//!     l1, l2 = sch.get_loops(block=b0)
//!     l3, l4 = sch.split(loop=l1, factors=[None, 16])
//! ```

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use tilewright_ir::text::{float_text, quote};
use tilewright_ir::{Buffer, DType, Error, Expr, Result, Var};

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

/// A lambda in a script: index maps and pad values. The number and types of its parameters are
/// known only when a primitive meets its buffer, so binding comes later.
#[derive(Clone)]
pub struct Lambda {
    bind: Arc<BindLambda>,
    text: Arc<str>,
}

type BindLambda = dyn Fn(&[DType], &[Buffer]) -> Result<LambdaBody> + Send + Sync;

/// A lambda with its parameters.
#[derive(Clone, Debug)]
pub struct LambdaBody {
    /// One variable a parameter, of the types asked for.
    pub params: Vec<Var>,
    /// What it returns; one item where it is not a list or tuple.
    pub items: Vec<LambdaItem>,
}

/// One item of what a lambda returns.
#[derive(Clone, Debug)]
pub enum LambdaItem {
    /// A value.
    Expr(Expr),
    /// A bare number, which takes the type of its surroundings.
    Number(f64),
    /// `None`.
    None,
    /// `AXIS_SEPARATOR`.
    Separator,
}

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

    /// The body over new parameters of these types.
    pub fn bind(&self, params: &[DType]) -> Result<LambdaBody> {
        self.bind_with(params, &[])
    }

    /// The body over new parameters of these types, where names of buffers mean these first: a pad
    /// value reads the buffer as it lies after the transformation.
    pub fn bind_with(&self, params: &[DType], buffers: &[Buffer]) -> Result<LambdaBody> {
        (self.bind)(params, buffers)
    }
}

impl fmt::Debug for Lambda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// An argument of an instruction.
#[derive(Clone, Debug)]
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

/// One applied primitive.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// Name of the primitive.
    pub name: &'static str,
    /// Arguments in order, each with its name; an empty name stands for a positional one.
    pub args: Vec<(&'static str, Value)>,
    /// What it returned.
    pub outputs: Vec<Value>,
}

/// Instructions in order.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The instructions.
    pub instructions: Vec<Instruction>,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = Handles::default();
        writeln!(f, "def apply_trace(sch):")?;
        for i in &self.instructions {
            let args: Vec<String> = i
                .args
                .iter()
                .map(|(name, value)| match *name {
                    "" => names.text(value),
                    name => format!("{name}={}", names.text(value)),
                })
                .collect();
            let outputs: Vec<String> = i.outputs.iter().map(|o| names.define(o)).collect();
            let result = match &outputs[..] {
                [] => String::new(),
                [one] if i.name != "get_loops" => format!("{one} = "),
                [one] => format!("{one}, = "),
                many => format!("{} = ", many.join(", ")),
            };
            writeln!(f, "    {result}sch.{}({})", i.name, args.join(", "))?;
        }
        if self.instructions.is_empty() {
            writeln!(f, "    pass")?;
        }
        Ok(())
    }
}

/// Names `b0`, `l1`, ... of what instructions returned; the latest one of a block or loop counts.
#[derive(Default)]
struct Handles {
    count: usize,
    blocks: HashMap<BlockRef, String>,
    loops: HashMap<LoopRef, String>,
}

impl Handles {
    fn define(&mut self, value: &Value) -> String {
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

    fn text(&self, value: &Value) -> String {
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

/// Arguments of a call from a script: by position and by name, each taken once.
pub struct Args {
    primitive: &'static str,
    positional: std::vec::IntoIter<Value>,
    named: Vec<(Arc<str>, Value)>,
}

impl Args {
    /// The arguments of a call of `primitive`.
    pub fn new(
        primitive: &'static str,
        positional: Vec<Value>,
        named: Vec<(Arc<str>, Value)>,
    ) -> Self {
        Args { primitive, positional: positional.into_iter(), named }
    }

    /// The next argument, given by any of these names or by position; `None` if it is missing.
    pub fn optional(&mut self, names: &[&str]) -> Option<Value> {
        match self.named.iter().position(|(n, _)| names.contains(&&**n)) {
            Some(k) => Some(self.named.remove(k).1),
            None => self.positional.next(),
        }
    }

    /// Like [`Args::optional`], where it must not be missing.
    pub fn required(&mut self, names: &[&str]) -> Result<Value> {
        self.optional(names).ok_or_else(|| {
            Error::input(format!("`{}` needs the argument `{}`", self.primitive, names[0]))
        })
    }

    /// All positional arguments that are left.
    pub fn rest(&mut self) -> Vec<Value> {
        self.positional.by_ref().collect()
    }

    /// An error for an argument of the wrong kind.
    pub fn wrong(&self, name: &str, expected: &str, found: &Value) -> Error {
        Error::input(format!(
            "argument `{name}` of `{}` is {}, expected {expected}",
            self.primitive,
            found.describe()
        ))
    }

    /// A block.
    pub fn block(&mut self) -> Result<BlockRef> {
        match self.required(&["block"])? {
            Value::Block(b) => Ok(b),
            other => Err(self.wrong("block", "a block", &other)),
        }
    }

    /// A loop.
    pub fn loop_ref(&mut self) -> Result<LoopRef> {
        match self.required(&["loop"])? {
            Value::Loop(l) => Ok(l),
            other => Err(self.wrong("loop", "a loop", &other)),
        }
    }

    /// An argument that is a loop.
    pub fn as_loop(&self, value: &Value) -> Result<LoopRef> {
        match value {
            Value::Loop(l) => Ok(l.clone()),
            other => Err(self.wrong("loops", "loops", other)),
        }
    }

    /// A truth value that is only given by name, if it is.
    pub fn named_bool(&mut self, name: &str) -> Result<Option<bool>> {
        match self.named.iter().any(|(n, _)| &**n == name) {
            true => self.bool_or(&[name], false).map(Some),
            false => Ok(None),
        }
    }

    /// A string.
    pub fn str(&mut self, names: &[&str]) -> Result<Arc<str>> {
        match self.required(names)? {
            Value::Str(s) => Ok(s),
            other => Err(self.wrong(names[0], "a string", &other)),
        }
    }

    /// A whole number.
    pub fn int(&mut self, names: &[&str]) -> Result<i64> {
        match self.required(names)? {
            Value::Int(v) => Ok(v),
            other => Err(self.wrong(names[0], "a whole number", &other)),
        }
    }

    /// A whole number, or a default where it is missing.
    pub fn int_or(&mut self, names: &[&str], default: i64) -> Result<i64> {
        match self.optional(names) {
            None | Some(Value::None) => Ok(default),
            Some(Value::Int(v)) => Ok(v),
            Some(other) => Err(self.wrong(names[0], "a whole number", &other)),
        }
    }

    /// A truth value, or a default where it is missing.
    pub fn bool_or(&mut self, names: &[&str], default: bool) -> Result<bool> {
        match self.optional(names) {
            None | Some(Value::None) => Ok(default),
            Some(Value::Bool(v)) => Ok(v),
            Some(Value::Int(v @ (0 | 1))) => Ok(v == 1),
            Some(other) => Err(self.wrong(names[0], "a truth value", &other)),
        }
    }

    /// Checks that every argument was taken.
    pub fn finish(mut self) -> Result<()> {
        if let Some((name, _)) = self.named.first() {
            return Err(Error::input(format!("`{}` has no argument `{name}`", self.primitive)));
        }
        match self.positional.next() {
            None => Ok(()),
            Some(_) => Err(Error::input(format!("too many arguments for `{}`", self.primitive))),
        }
    }
}
