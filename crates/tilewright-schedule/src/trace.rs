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

pub use tilewright_ir::lambda::{LambdaBody, LambdaItem};

use crate::schedule::Schedule;

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
        let names: Vec<Arc<str>> = params.into_iter().map(Into::into).collect();
        let indices: Vec<Expr> = names.iter().map(|n| Var::index(n.clone()).expr()).collect();
        let items: Vec<String> = f(&indices).iter().map(LambdaItem::to_string).collect();
        let text = format!("lambda {}: [{}]", names.join(", "), items.join(", "));
        let over = move |dtypes: &[DType]| {
            let params: Vec<Var> =
                names.iter().zip(dtypes).map(|(n, d)| Var::new(n.clone(), *d)).collect();
            match params.len() == names.len() && dtypes.len() == names.len() {
                true => {
                    let at: Vec<Expr> = params.iter().map(Var::expr).collect();
                    Ok(LambdaBody { params, items: f(&at) })
                }
                false => Err(Error::input(format!(
                    "the function takes {} indices, not {}",
                    names.len(),
                    dtypes.len()
                ))),
            }
        };
        Lambda::new(text, over)
    }

    /// The body over new parameters of these types.
    pub fn bind(&self, params: &[DType]) -> Result<LambdaBody> {
        self.bind_with(params, &[])
    }

    /// The body over new parameters of these types, where names of buffers mean these first: a pad
    /// value reads the buffer as it lies after the transformation.
    pub fn bind_with(&self, params: &[DType], buffers: &[Buffer]) -> Result<LambdaBody> {
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
                [one] if !Schedule::returns_list(i.name) => format!("{one} = "),
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

    /// An error for an argument of the wrong kind.
    pub fn wrong(&self, name: &str, expected: &str, found: &Value) -> Error {
        Error::input(format!(
            "argument `{name}` of `{}` is {}, expected {expected}",
            self.primitive,
            found.describe()
        ))
    }

    /// A block, itself or by its name.
    pub fn block(&mut self, sch: &Schedule) -> Result<BlockRef> {
        let value = self.required(&["block"])?;
        self.as_block("block", value, sch)
    }

    /// Blocks, one or a list; none where the argument is missing.
    pub fn blocks(&mut self, name: &str, sch: &Schedule) -> Result<Vec<BlockRef>> {
        match self.optional(&[name]) {
            None | Some(Value::None) => Ok(Vec::new()),
            Some(Value::List(items)) => {
                items.into_iter().map(|v| self.as_block(name, v, sch)).collect()
            }
            Some(one) => Ok(vec![self.as_block(name, one, sch)?]),
        }
    }

    /// A loop, itself or by its name.
    pub fn loop_ref(&mut self, sch: &Schedule) -> Result<LoopRef> {
        let value = self.required(&["loop"])?;
        self.as_loop("loop", value, sch)
    }

    /// All positional arguments that are left, or the one called `loops`, as loops; lists among
    /// them count as what they hold.
    pub fn loops(&mut self, sch: &Schedule) -> Result<Vec<LoopRef>> {
        let named = self.named.iter().any(|(n, _)| &**n == "loops");
        match named {
            true => self.loop_list(sch),
            false => {
                let given = self.positional.by_ref().collect();
                self.as_loops(given, sch)
            }
        }
    }

    /// The argument `loops`.
    pub fn loop_list(&mut self, sch: &Schedule) -> Result<Vec<LoopRef>> {
        let given = self.required(&["loops"])?;
        self.as_loops(vec![given], sch)
    }

    fn as_loops(&self, given: Vec<Value>, sch: &Schedule) -> Result<Vec<LoopRef>> {
        let items = given.into_iter().flat_map(|v| match v {
            Value::List(items) => items,
            other => vec![other],
        });
        items.map(|v| self.as_loop("loops", v, sch)).collect()
    }

    /// A block as the argument `name`.
    pub fn as_block(&self, name: &str, value: Value, sch: &Schedule) -> Result<BlockRef> {
        match value {
            Value::Block(b) => Ok(sch.latest(b)),
            Value::Str(s) => sch.block_named(&s),
            other => Err(self.wrong(name, "a block", &other)),
        }
    }

    /// A loop as the argument `name`.
    pub fn as_loop(&self, name: &str, value: Value, sch: &Schedule) -> Result<LoopRef> {
        match value {
            Value::Loop(l) => Ok(l),
            Value::Str(s) => sch.loop_named(&s),
            other => Err(self.wrong(name, "a loop", &other)),
        }
    }

    /// A block or a loop; a name is first one of a block.
    pub fn block_or_loop(&mut self, sch: &Schedule) -> Result<Value> {
        let value = self.required(&["block_or_loop", "block", "loop"])?;
        match value {
            Value::Block(b) => Ok(Value::Block(sch.latest(b))),
            Value::Loop(_) => Ok(value),
            Value::Str(name) => match sch.block_named(&name) {
                Ok(b) => Ok(Value::Block(b)),
                Err(e) => sch.loop_named(&name).map(Value::Loop).map_err(|_| e),
            },
            other => Err(self.wrong("block_or_loop", "a block or a loop", &other)),
        }
    }

    /// A lambda.
    pub fn lambda(&mut self, name: &str) -> Result<Lambda> {
        match self.required(&[name])? {
            Value::Lambda(l) => Ok(l),
            other => Err(self.wrong(name, "a lambda", &other)),
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
