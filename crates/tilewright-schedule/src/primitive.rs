//! What a primitive is: its name, what it does, its typed arguments, what it returns, and how it
//! runs.
//!
//! A file declares its primitives with `primitives!`, which makes the methods of
//! [`crate::Schedule`] and a table `PRIMITIVES` of the file; the table of all of them is
//! [`all`]. Scripts call primitives by that table ([`Primitive::call`]), a trace keeps the
//! primitive and its arguments and prints and runs them again by it, and help and documentation
//! list it. The types of arguments are those of [`crate::argument`].

use std::fmt;
use std::sync::Arc;

use tilewright_ir::suggest::closest;
use tilewright_ir::{Error, Result, Source, Span};

use crate::argument::{Readable, Returns};
use crate::schedule::Schedule;
use crate::trace::Value;

/// A primitive.
pub struct Primitive {
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
    pub(crate) run: fn(&mut Schedule, Bound) -> Result<Vec<Value>>,
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
    /// Its name.
    pub name: &'static str,
    /// What it is where a script says nothing.
    pub default: bool,
    /// Whether the other value is accepted, too; it is refused otherwise.
    pub free: bool,
}

impl fmt::Debug for Primitive {
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

/// A value of a call, with its place in a script where it has one.
#[derive(Clone, Debug)]
pub struct Given {
    /// The value.
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
    fn place(&self, e: Error) -> Error {
        match &self.place {
            Some((source, span)) if e.diagnostic().span.is_none() => e.at(*span).in_source(source),
            _ => e,
        }
    }
}

/// The values of a call, one a parameter, in the order of the parameters.
pub(crate) struct Bound {
    primitive: &'static Primitive,
    values: std::vec::IntoIter<Option<Given>>,
    next: usize,
}

impl Bound {
    /// The next argument; `None` where its default is meant.
    pub(crate) fn next<T: Readable>(&mut self, sch: &Schedule) -> Result<Option<T>> {
        let param = &self.primitive.params[self.next];
        self.next += 1;
        let Some(given) = self.values.next().flatten() else { return Ok(None) };
        let read = T::read(&given.value, sch).map_err(|e| given.place(e))?;
        read.map(Some).ok_or_else(|| {
            given.place(Error::input(format!(
                "argument `{}` of `{}` is {}, expected {}",
                param.name(),
                self.primitive.name,
                given.value.describe(),
                param.takes()
            )))
        })
    }
}

impl Primitive {
    /// What it does, in a sentence or two.
    pub fn summary(&self) -> String {
        let lines: Vec<&str> = self.docs.iter().map(|l| l.trim()).collect();
        let paragraph: Vec<&str> = lines.into_iter().take_while(|l| !l.is_empty()).collect();
        paragraph.join(" ")
    }

    /// How it is called: `split(loop, factors, preserve_unit_iters=True)`.
    pub fn usage(&self) -> String {
        let param = |p: &Param| match (p.rest, p.default()) {
            (true, _) => format!("*{}", p.name()),
            (false, Some(value)) => format!("{}={value}", p.name()),
            (false, None) => p.name().to_owned(),
        };
        let flag = |f: &Flag| format!("{}={}", f.name, Value::Bool(f.default));
        let all: Vec<String> =
            self.params.iter().map(param).chain(self.flags.iter().map(flag)).collect();
        format!("{}({})", self.name, all.join(", "))
    }

    /// Calls it with the arguments of a script. A positional argument is the first one that no
    /// name gives.
    ///
    /// # Errors
    /// `Input` for arguments that do not fit, at their places; those of the primitive.
    pub fn call(
        &'static self,
        sch: &mut Schedule,
        positional: Vec<Given>,
        named: Vec<(Arc<str>, Given)>,
    ) -> Result<Vec<Value>> {
        let values = self.bind(positional, named)?;
        (self.run)(sch, Bound { primitive: self, values: values.into_iter(), next: 0 })
    }

    /// Calls it with a value for each parameter.
    pub(crate) fn apply(
        &'static self,
        sch: &mut Schedule,
        values: Vec<Value>,
    ) -> Result<Vec<Value>> {
        let values: Vec<Option<Given>> = values.into_iter().map(|v| Some(v.into())).collect();
        (self.run)(sch, Bound { primitive: self, values: values.into_iter(), next: 0 })
    }

    fn bind(
        &self,
        positional: Vec<Given>,
        mut named: Vec<(Arc<str>, Given)>,
    ) -> Result<Vec<Option<Given>>> {
        let known = |name: &str| {
            self.params.iter().any(|p| p.names.contains(&name))
                || self.flags.iter().any(|f| *f.name == *name)
        };
        if let Some((name, given)) = named.iter().find(|(name, _)| !known(name)) {
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
            let left_out = |g: &Given| param.default.is_some() && matches!(g.value, Value::None);
            let given = given.filter(|g| !left_out(g));
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
        match closest(name, names()) {
            Some(close) => e.help(format!("did you mean `{close}`?")),
            None => e,
        }
    }

    fn used(&self, e: Error) -> Error {
        e.note(format!("it is called as `{}`", self.usage()))
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

/// Every primitive, in the order of the subjects.
pub fn all() -> impl Iterator<Item = &'static Primitive> {
    crate::PRIMITIVES.iter().copied().flatten()
}

/// The primitive of this name.
///
/// # Errors
/// `Input` that lists those there are.
pub fn find(name: &str) -> Result<&'static Primitive> {
    let has = |p: &&Primitive| p.name == name || p.aliases.contains(&name);
    all().find(has).ok_or_else(|| {
        let names: Vec<&str> = all().map(|p| p.name).collect();
        let e = Error::input(format!("there is no primitive `{name}`"))
            .note(format!("the primitives are: {}", names.join(", ")));
        match closest(name, names) {
            Some(close) => e.help(format!("did you mean `{close}`?")),
            None => e,
        }
    })
}

/// All primitives with their arguments, as a page of Markdown.
pub fn page() -> String {
    let mut text = String::from(
        "# Primitives\n\nWhat a schedule script can call: `tilewright opt --schedule SCRIPT.py`. \
         Arguments are given by name or by position; blocks and loops may be given by their names \
         in the module. This page is made from the primitives themselves; `UPDATE_EXPECT=1 cargo \
         test -p tilewright --test it pages` writes it.\n\n\
         | call | returns | what it does |\n|---|---|---|\n",
    );
    for p in all() {
        text += &format!("| `{}` | {} | {} |\n", p.usage(), p.returns.text(), p.summary());
    }
    text += "\n| argument | of | what may be given |\n|---|---|---|\n";
    let mut rows: Vec<(String, String, Vec<&str>)> = Vec::new();
    for p in all() {
        for param in p.params {
            let names: Vec<String> = param.names.iter().map(|n| format!("`{n}`")).collect();
            let (names, takes) = (names.join(", "), param.takes());
            match rows.iter_mut().find(|(n, t, _)| (n, t) == (&names, &takes)) {
                Some((.., of)) => of.push(p.name),
                None => rows.push((names, takes, vec![p.name])),
            }
        }
    }
    for (names, takes, of) in rows {
        text += &format!("| {names} | `{}` | {takes} |\n", of.join("`, `"));
    }
    text += "\nSwitches of TVM's traces, which may be given as what they are here:\n\n\
             | switch | of | another value |\n|---|---|---|\n";
    for p in all() {
        for f in p.flags {
            let other = if f.free { "makes no difference" } else { "is refused" };
            let value = Value::Bool(f.default);
            text += &format!("| `{}={value}` | `{}` | {other} |\n", f.name, p.name);
        }
    }
    let also = all().flat_map(|p| p.aliases.iter().map(|a| format!("`{a}` is `{}`", p.name)));
    let also: Vec<String> = also.collect();
    text + &format!("\nOther names: {}.\n", also.join(", "))
}

/// A primitive that is being applied, with a value for each of its parameters.
pub(crate) struct Invocation {
    pub(crate) primitive: &'static Primitive,
    pub(crate) args: Vec<Value>,
}

impl Invocation {
    /// The step of the method of this name.
    pub(crate) fn new(method: &'static str, args: Vec<Value>) -> Result<Invocation> {
        let primitive = all().find(|p| p.name == method);
        let primitive = primitive
            .ok_or_else(|| Error::internal(format!("`{method}` is in no table of primitives")))?;
        Ok(Invocation { primitive, args })
    }
}

/// Declares the primitives of a file: methods of [`Schedule`], and the table `PRIMITIVES`.
///
/// ```text
/// primitives! {
///     /// Splits a loop into as many as there are factors.
///     split(l "loop": &LoopRef, factors: &[Option<Expr>]; preserve_unit_iters = true)
///         -> Vec<LoopRef>, edit |f| split(f, l, factors);
/// }
/// ```
///
/// The documentation of the method is that of the primitive; its first paragraph is what help
/// says. An argument may have other names in scripts (the first one is that of traces), and a
/// default, which only scripts use. `[rest]` before its name lets it take all that is left by
/// position, `[into]` lets the method take what converts to its type. After a semicolon come
/// switches of TVM's traces: `name = value` refuses the other value, `name = value or other` does
/// not. Then follows how it runs:
///
/// * `edit |f| ...`: what becomes of the function that the first argument is in, and what is
///   returned, see `Schedule::edit`;
/// * `ask |sch| ...`: what is known of the schedule, see `Schedule::ask`;
/// * `expand |sch| ...`: calls of other primitives, of which all are made or none, see
///   `Schedule::expand`;
/// * `run |sch, step| ...`: anything else that records the step, see `Schedule::run`.
macro_rules! primitives {
    ($(
        $(#[doc = $doc:literal])+
        $(#[alias($alias:literal)])?
        $method:ident (
            $( $([$mode:ident])? $arg:ident $($name:literal)* : $ty:ty $(= $default:expr)? ),*
            $( ; $($flag:ident = $value:literal $(or $other:literal)?),+ )?
        ) $(-> $out:ty)?, $how:ident |$($with:ident),+| $body:expr;
    )+) => {
        impl $crate::Schedule { $(
            $(#[doc = $doc])+
            pub fn $method(
                &mut self,
                $($arg: $crate::primitive::primitives!(@type $([$mode])? $ty)),*
            ) -> tilewright_ir::Result<$crate::primitive::primitives!(@out $($out)?)> {
                $(let $arg: $ty = $crate::primitive::primitives!(@own $([$mode])? $arg);)*
                let args = vec![$($crate::argument::Argument::record(&$arg)),*];
                let step = $crate::primitive::Invocation::new(stringify!($method), args)?;
                $crate::primitive::primitives!(
                    @$how self, step, [$($arg),*], |$($with),+| $body
                )
            }
        )+ }

        /// The primitives of this file.
        pub(crate) static PRIMITIVES: &[$crate::primitive::Primitive] = &[$(
            $crate::primitive::Primitive {
                name: stringify!($method),
                aliases: &[$($alias)?],
                params: &[$($crate::primitive::Param {
                    names: $crate::primitive::primitives!(@names $arg $($name)*),
                    rest: $crate::primitive::primitives!(@rest $([$mode])?),
                    takes: <<$ty as $crate::argument::Argument<'_>>::Owned
                        as $crate::argument::Readable>::takes,
                    default: $crate::primitive::primitives!(@default $ty $(, $default)?),
                }),*],
                flags: &[$($($crate::primitive::Flag {
                    name: stringify!($flag),
                    default: $value,
                    free: <[bool]>::len(&[$($other)?]) > 0,
                }),+)?],
                returns: <$crate::primitive::primitives!(@out $($out)?)
                    as $crate::argument::Output>::RETURNS,
                docs: &[$($doc),+],
                run: |_sch, mut _bound| {
                    $(let $arg = _bound.next(_sch)?;)*
                    let out = _sch.$method($(
                        $crate::primitive::primitives!(@lend $arg: $ty $(, $default)?)
                    ),*)?;
                    Ok($crate::argument::Output::values(&out))
                },
            }
        ),+];
    };

    (@type [into] $ty:ty) => { impl Into<$ty> };
    (@type [rest] $ty:ty) => { $ty };
    (@type $ty:ty) => { $ty };
    (@own [into] $arg:ident) => { $arg.into() };
    (@own $([rest])? $arg:ident) => { $arg };
    (@out) => { () };
    (@out $out:ty) => { $out };
    (@names $arg:ident) => { &[stringify!($arg)] };
    (@names $arg:ident $($name:literal)+) => { &[$($name),+] };
    (@rest [rest]) => { true };
    (@rest $([into])?) => { false };
    (@default $ty:ty) => { None };
    (@default $ty:ty, $default:expr) => {
        Some(|| {
            let default: $ty = $default;
            $crate::argument::Argument::record(&default)
        })
    };
    (@lend $arg:ident: $ty:ty) => {
        match &$arg {
            Some(value) => <$ty as $crate::argument::Argument<'_>>::lend(value),
            None => return Err(tilewright_ir::Error::internal("an argument is missing")),
        }
    };
    (@lend $arg:ident: $ty:ty, $default:expr) => {
        match &$arg {
            Some(value) => <$ty as $crate::argument::Argument<'_>>::lend(value),
            None => $default,
        }
    };

    (@edit $sch:ident, $step:ident, [$at:ident $(, $arg:ident)*], |$f:ident| $body:expr) => {
        $sch.edit(&$at, $step, |$f| $body)
    };
    (@$how:ident $sch:ident, $step:ident, [$($arg:ident),*], |$($with:ident),+| $body:expr) => {
        $sch.$how($step, |$($with),+| $body)
    };
}
pub(crate) use primitives;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_arguments_can_be_told_apart() {
        let mut names: Vec<&str> =
            all().flat_map(|p| std::iter::once(&p.name).chain(p.aliases)).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for p in all() {
            assert!(p.summary().ends_with('.'), "{p:?}: {}", p.summary());
            let params =
                p.params.iter().flat_map(|x| x.names).chain(p.flags.iter().map(|f| &f.name));
            let mut params: Vec<&&str> = params.collect();
            let count = params.len();
            params.sort_unstable();
            params.dedup();
            assert_eq!(params.len(), count, "{p:?}");
            assert!(p.params.iter().all(|x| !x.takes().is_empty()), "{p:?}");
            assert!(p.params.iter().rev().skip(1).all(|x| !x.rest), "{p:?}");
        }
    }
}
