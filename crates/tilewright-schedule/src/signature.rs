//! What is said of a primitive: its name, its arguments, what it returns; and how the arguments of a
//! call become a value for each parameter.

use std::fmt;
use std::sync::Arc;

use tilewright_ir::{Error, Result, Source, Span};

use crate::value::{BlockRef, LoopRef, Value};

/// The name, the arguments and the results of a primitive.
pub struct Signature {
    /// Its name: that of the method, of the call in a script and of the entry in a trace.
    pub name: &'static str,
    /// Other names by which a script may call it.
    pub aliases: &'static [&'static str],
    /// Its arguments, in order.
    pub params: &'static [Param],
    /// Switches of TVM's traces that say what happens anyway; only scripts have them.
    pub flags: &'static [Flag],
    /// What it returns.
    pub returns: Returns,
    pub(crate) docs: &'static [&'static str],
}

/// An argument of a primitive.
pub struct Param {
    /// The name that traces use, and others by which a script may give it.
    pub names: &'static [&'static str],
    /// Whether it takes all arguments by position that are left.
    pub rest: bool,
    pub(crate) takes: fn() -> String,
    pub(crate) default: Option<fn() -> Value>,
}

/// A switch that a script may give and that changes nothing.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    pub name: &'static str,
    /// What it is where a script says nothing.
    pub default: bool,
    /// Whether the other value is accepted, too; it is refused otherwise.
    pub free: bool,
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Debug for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Param {
    /// The name that traces use.
    pub fn name(&self) -> &'static str {
        self.names[0]
    }

    /// What may be given, in words.
    pub fn takes(&self) -> String {
        (self.takes)()
    }

    /// What it is where a call does not give it; `None` where it must be given.
    pub fn default(&self) -> Option<Value> {
        self.default.map(|value| value())
    }
}

/// What a primitive returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    Nothing,
    Block,
    Loop,
    /// Blocks, in a list.
    Blocks,
    /// Loops, in a list.
    Loops,
}

impl Returns {
    /// Whether it is a list, also where that has one element or none: a script unpacks or indexes
    /// it.
    pub fn is_list(self) -> bool {
        matches!(self, Returns::Blocks | Returns::Loops)
    }

    /// What it is, in words.
    pub fn text(self) -> &'static str {
        match self {
            Returns::Nothing => "",
            Returns::Block => "block",
            Returns::Loop => "loop",
            Returns::Blocks => "blocks",
            Returns::Loops => "loops",
        }
    }
}

/// A type that primitives return.
pub(crate) trait Output {
    const RETURNS: Returns;
    fn values(&self) -> Vec<Value>;
}

impl Output for () {
    const RETURNS: Returns = Returns::Nothing;
    fn values(&self) -> Vec<Value> {
        Vec::new()
    }
}

impl Output for BlockRef {
    const RETURNS: Returns = Returns::Block;
    fn values(&self) -> Vec<Value> {
        vec![self.into()]
    }
}

impl Output for LoopRef {
    const RETURNS: Returns = Returns::Loop;
    fn values(&self) -> Vec<Value> {
        vec![self.into()]
    }
}

impl Output for (BlockRef, BlockRef) {
    const RETURNS: Returns = Returns::Blocks;
    fn values(&self) -> Vec<Value> {
        vec![(&self.0).into(), (&self.1).into()]
    }
}

impl Output for (LoopRef, LoopRef) {
    const RETURNS: Returns = Returns::Loops;
    fn values(&self) -> Vec<Value> {
        vec![(&self.0).into(), (&self.1).into()]
    }
}

impl Output for Vec<LoopRef> {
    const RETURNS: Returns = Returns::Loops;
    fn values(&self) -> Vec<Value> {
        self.iter().map(Value::from).collect()
    }
}

/// A value of a call, with its place in a script where it has one.
#[derive(Clone, Debug)]
pub struct Given {
    pub value: Value,
    /// Where it is in the text.
    pub place: Option<(Arc<Source>, Span)>,
}

impl From<Value> for Given {
    fn from(value: Value) -> Given {
        Given { value, place: None }
    }
}

impl Given {
    /// An error at the place of the value, unless it has one already.
    pub(crate) fn place(&self, e: Error) -> Error {
        match &self.place {
            Some((source, span)) if e.diagnostic().span.is_none() => e.at(*span).in_source(source),
            _ => e,
        }
    }
}

impl Signature {
    /// What it does, in a sentence or two.
    pub fn summary(&self) -> String {
        let lines: Vec<&str> = self.docs.iter().map(|l| l.trim()).collect();
        let paragraph: Vec<&str> = lines.into_iter().take_while(|l| !l.is_empty()).collect();
        paragraph.join(" ")
    }

    /// How it is called: `split(loop, factors, preserve_unit_iters=True)`.
    pub fn usage(&self) -> String {
        let all: Vec<String> = self
            .params
            .iter()
            .map(param_text)
            .chain(self.flags.iter().map(|f| format!("{}={}", f.name, Value::Bool(f.default))))
            .collect();
        format!("{}({})", self.name, all.join(", "))
    }

    /// A value for each parameter; `None` where its default is meant. A positional argument is the
    /// first one that no name gives.
    ///
    /// # Errors
    /// `Input` for arguments that do not fit, at their places.
    pub(crate) fn bind(
        &self,
        positional: Vec<Given>,
        mut named: Vec<(Arc<str>, Given)>,
    ) -> Result<Vec<Option<Given>>> {
        if let Some((name, given)) = named.iter().find(|(name, _)| {
            !self.params.iter().any(|p| p.names.contains(&&**name))
                && !self.flags.iter().any(|f| *f.name == **name)
        }) {
            return Err(given.place(self.unknown(name)));
        }
        let mut positional = positional.into_iter();
        let mut values = Vec::new();
        for param in self.params {
            let by_name = named.iter().position(|(n, _)| param.names.contains(&&**n));
            let given = match by_name {
                Some(k) => Some(named.remove(k).1),
                None if param.rest => Some(together(positional.by_ref())),
                None => positional.next(),
            };
            // `None` stands for what is meant where nothing is said.
            let given =
                given.filter(|g| !(param.default.is_some() && matches!(g.value, Value::None)));
            if given.is_none() && param.default.is_none() {
                let what = format!("`{}` needs the argument `{}`", self.name, param.name());
                return Err(self.used(Error::input(what)));
            }
            values.push(given);
        }
        let all_by_position = self.params.iter().all(|p| !p.rest);
        for flag in self.flags {
            let given = match named.iter().position(|(n, _)| **n == *flag.name) {
                Some(k) => Some(named.remove(k).1),
                None if all_by_position => positional.next(),
                None => None,
            };
            given.map_or(Ok(()), |given| self.check_flag(flag, &given))?;
        }
        if let Some((name, given)) = named.first() {
            return Err(given.place(self.unknown(name)));
        }
        match positional.next() {
            None => Ok(values),
            Some(given) => {
                let e = Error::input(format!("too many arguments for `{}`", self.name));
                Err(given.place(self.used(e)))
            }
        }
    }

    fn check_flag(&self, flag: &Flag, given: &Given) -> Result<()> {
        let value = match given.value {
            Value::None => flag.default,
            Value::Bool(v) => v,
            Value::Int(v @ (0 | 1)) => v == 1,
            ref other => {
                return Err(given.place(Error::input(format!(
                    "argument `{}` of `{}` is {}, expected a truth value",
                    flag.name,
                    self.name,
                    other.describe()
                ))));
            }
        };
        if value != flag.default && !flag.free {
            let what = format!("`{}={}` is not supported", flag.name, Value::Bool(value));
            return Err(given.place(Error::refused(what)));
        }
        Ok(())
    }

    /// The error for an argument by a name that no parameter has, or that is given twice.
    fn unknown(&self, name: &str) -> Error {
        let names = || {
            let params = self.params.iter().flat_map(|p| p.names.iter().copied());
            params.chain(self.flags.iter().map(|f| f.name))
        };
        if names().any(|n| n == name) {
            return Error::input(format!("`{}` gets the argument `{name}` twice", self.name));
        }
        let e = self.used(Error::input(format!("`{}` has no argument `{name}`", self.name)));
        e.did_you_mean(name, names())
    }

    fn used(&self, e: Error) -> Error {
        e.note(format!("it is called as `{}`", self.usage()))
    }
}

fn param_text(p: &Param) -> String {
    match (p.rest, p.default()) {
        (true, _) => format!("*{}", p.name()),
        (false, Some(value)) => format!("{}={value}", p.name()),
        (false, None) => p.name().to_owned(),
    }
}

/// Several values as one list, in which lists count as what they hold.
fn together(values: impl Iterator<Item = Given>) -> Given {
    let mut all = Vec::new();
    let mut place: Option<(Arc<Source>, Span)> = None;
    for given in values {
        place = match (place, given.place) {
            (Some((source, a)), Some((_, b))) => Some((source, Span { end: b.end, ..a })),
            (a, b) => a.or(b),
        };
        match given.value {
            Value::List(items) => all.extend(items),
            one => all.push(one),
        }
    }
    Given { value: Value::List(all), place }
}
