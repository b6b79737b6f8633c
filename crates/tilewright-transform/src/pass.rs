//! What a pass is: its name, what it is for, its typed options, and how it runs.
//!
//! A pass says all of that in its own file, as a constant [`Pass`]. Tables of them are what the
//! command line, the stages of a compilation, help, documentation and tests read. Options are given
//! as text ([`Config`]), by `option` or by `pass.option`, and read here and nowhere else:
//!
//! ```
//! use tilewright_ir::{Module, Remarks};
//! use tilewright_transform::pass::{Config, Flag, Pass, Run, check};
//!
//! const TWICE: Flag = Flag { name: "twice", summary: "do it again", default: false };
//! const NOTHING: Pass = Pass {
//!     name: "nothing",
//!     summary: "leave everything as it is",
//!     options: &[&TWICE],
//!     run: Run::Tensor(|f, given, _| {
//!         let _again: bool = given.get(&TWICE)?;
//!         Ok(f.clone())
//!     }),
//! };
//!
//! let config = Config::new().with("nothing.twice", "true");
//! check(&config, &[&NOTHING], &[&NOTHING])?;
//! NOTHING.apply(&Module::new(), &config, &mut Remarks::new())?;
//! let wrong = check(&Config::new().with("twice", "maybe"), &[&NOTHING], &[&NOTHING]);
//! let text = "error: the option `nothing.twice` is 1 or 0, not `maybe`\n";
//! assert_eq!(wrong.expect_err("no switch").render(), text);
//! # Ok::<(), tilewright_ir::Error>(())
//! ```

use std::fmt;
use std::sync::Arc;

use tilewright_ir::{Error, Function, Module, Remarks, Result, TensorFunc};
use tilewright_polyhedral::budget;

/// A pass.
#[derive(Clone, Copy)]
pub struct Pass {
    pub name: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// The options that it takes.
    pub options: &'static [&'static dyn AnyOption],
    /// How it runs.
    pub run: Run,
}

/// How a pass runs. What it leaves as it is, and why, is added to the remarks.
#[derive(Clone, Copy)]
pub enum Run {
    /// On each tensor function by itself.
    Tensor(fn(&TensorFunc, &Given<'_>, &mut Remarks) -> Result<TensorFunc>),
    /// On a whole module.
    Module(fn(&Module, &Given<'_>, &mut Remarks) -> Result<Module>),
    /// On a whole module, where results may round otherwise, within what an option says.
    Rounding(fn(&Module, &Given<'_>, &mut Remarks) -> Result<Module>),
    /// On a whole module, by schedule primitives: second, the trace, as a script that does the same.
    Traced(fn(&Module, &Given<'_>, &mut Remarks) -> Result<(Module, String)>),
}

impl fmt::Debug for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Pass {
    /// Whether results are the same terms after the pass as before.
    pub fn is_exact(&self) -> bool {
        !matches!(self.run, Run::Rounding(_))
    }

    /// Runs the pass. Of the config, its own options count. A pass that spends its budget of
    /// questions on a function ends with a remark.
    ///
    /// # Errors
    /// Those of the pass; `Input` for an option that cannot be read.
    pub fn apply(&self, module: &Module, config: &Config, why: &mut Remarks) -> Result<Module> {
        Ok(self.apply_traced(module, config, why)?.0)
    }

    /// What a config gives to the pass.
    pub fn given<'a>(&'a self, config: &'a Config) -> Given<'a> {
        Given { pass: self, config }
    }

    /// The same, and the trace of a pass that schedules.
    ///
    /// # Errors
    /// As [`Pass::apply`].
    pub fn apply_traced(
        &self,
        module: &Module,
        config: &Config,
        why: &mut Remarks,
    ) -> Result<(Module, Option<String>)> {
        let given = self.given(config);
        let (result, spent) = budget::within(self.name, u64::MAX, || match self.run {
            Run::Tensor(change) => {
                each_tensor(module, |f| change(f, &given, why)).map(|new| (new, None))
            }
            Run::Module(change) | Run::Rounding(change) => {
                change(module, &given, why).map(|new| (new, None))
            }
            Run::Traced(change) => {
                change(module, &given, why).map(|(new, trace)| (new, Some(trace)))
            }
        });
        why.extend(spent.short.iter().map(|name| self.stopped(name)));
        result
    }

    /// The remark about a function for which the pass could not ask all that it wanted.
    fn stopped(&self, function: &str) -> Error {
        let what = format!("`{}` has spent its budget of questions on `{function}`", self.name);
        Error::refused(what).note("what was not decided by then stays as it was")
    }

    /// The key by which one of its options can always be given.
    pub fn key(&self, option: &str) -> String {
        format!("{}.{option}", self.name)
    }

    /// Whether a key means one of its options.
    fn means(&self, key: &str, option: &dyn AnyOption) -> bool {
        key == option.name() || key == self.key(option.name())
    }
}

/// Applies a change to every tensor function of a module, each with the budget of questions of one
/// pass ([`budget::PER_FUNCTION`]).
///
/// # Errors
/// Those of the change, with the function's name and the module's source.
fn each_tensor(
    module: &Module,
    mut change: impl FnMut(&TensorFunc) -> Result<TensorFunc>,
) -> Result<Module> {
    let mut new = module.clone();
    for (name, function) in &mut new.functions {
        if let Function::Tensor(f) = function {
            let (changed, _) = budget::within(name, budget::PER_FUNCTION, || change(f));
            let changed = changed.map_err(|e| {
                let e = e.context(format_args!("function `{name}`"));
                module.source.iter().fold(e, |e, source| e.in_source(source))
            })?;
            *f = Arc::new(changed);
        }
    }
    Ok(new)
}

/// Options as they were given: keys and values, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config(Vec<(String, String)>);

impl Config {
    /// Nothing given.
    pub fn new() -> Config {
        Config::default()
    }

    /// One more option.
    pub fn with(mut self, key: impl Into<String>, value: impl Into<String>) -> Config {
        self.0.push((key.into(), value.into()));
        self
    }
}

impl FromIterator<(String, String)> for Config {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Config {
        Config(pairs.into_iter().collect())
    }
}

/// The options that were given to a pass.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    pass: &'a Pass,
    config: &'a Config,
}

impl Given<'_> {
    /// The value of an option: the one that was given, or its default.
    ///
    /// # Errors
    /// `Input` with the option, the value and what is allowed; or that it is given twice, as two
    /// things.
    pub fn get<O: Typed>(&self, option: &O) -> Result<O::Value> {
        let mut found: Option<(&str, O::Value)> = None;
        let key = self.pass.key(option.head().0);
        let entries = self.config.0.iter().filter(|(key, _)| self.pass.means(key, option));
        for (_, text) in entries {
            let Some(value) = option.read(text) else {
                let allowed = Typed::allowed(option);
                return Err(Error::input(format!("the option `{key}` is {allowed}, not `{text}`")));
            };
            match &found {
                Some((first, other)) if *other != value => {
                    let what = format!("the option `{key}` is given as `{first}` and as `{text}`");
                    return Err(Error::input(what));
                }
                _ => found = Some((text, value)),
            }
        }
        Ok(found.map_or_else(|| option.default(), |(_, value)| value))
    }
}

/// An option whose values have a type.
pub trait Typed: Sync {
    /// What a pass gets.
    type Value: PartialEq;
    /// The name, and what it means.
    fn head(&self) -> (&'static str, &'static str);
    /// A value from its text; `None` if that is none.
    fn read(&self, text: &str) -> Option<Self::Value>;
    /// The value where none is given.
    fn default(&self) -> Self::Value;
    /// The default, as text.
    fn default_text(&self) -> String;
    /// What may be given, in words.
    fn allowed(&self) -> String;
}

/// An option of any type, as tables hold it.
pub trait AnyOption: Sync {
    /// Its name; the whole key is `pass.name`.
    fn name(&self) -> &'static str;
    /// What it means.
    fn summary(&self) -> &'static str;
    /// The value where none is given.
    fn default_value(&self) -> String;
    /// What may be given, in words.
    fn values(&self) -> String;
    /// Whether what was given can be read.
    ///
    /// # Errors
    /// Those of [`Given::get`].
    fn check(&self, given: &Given<'_>) -> Result<()>;
}

impl<O: Typed> AnyOption for O {
    fn name(&self) -> &'static str {
        self.head().0
    }
    fn summary(&self) -> &'static str {
        self.head().1
    }
    fn default_value(&self) -> String {
        self.default_text()
    }
    fn values(&self) -> String {
        self.allowed()
    }
    fn check(&self, given: &Given<'_>) -> Result<()> {
        given.get(self).map(drop)
    }
}

/// A switch.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    pub name: &'static str,
    /// What it means if it is on.
    pub summary: &'static str,
    /// Whether it is on by default.
    pub default: bool,
}

impl Typed for Flag {
    type Value = bool;
    fn head(&self) -> (&'static str, &'static str) {
        (self.name, self.summary)
    }
    fn read(&self, text: &str) -> Option<bool> {
        match text {
            "1" | "true" | "True" | "on" => Some(true),
            "0" | "false" | "False" | "off" => Some(false),
            _ => None,
        }
    }
    fn default(&self) -> bool {
        self.default
    }
    fn default_text(&self) -> String {
        u8::from(self.default).to_string()
    }
    fn allowed(&self) -> String {
        "1 or 0".to_owned()
    }
}

/// A whole number.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    pub name: &'static str,
    /// What it means.
    pub summary: &'static str,
    pub default: u32,
    /// The largest value.
    pub most: u32,
}

impl Typed for Number {
    type Value = u32;
    fn head(&self) -> (&'static str, &'static str) {
        (self.name, self.summary)
    }
    fn read(&self, text: &str) -> Option<u32> {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        text.parse().ok().filter(|v| digits && *v <= self.most)
    }
    fn default(&self) -> u32 {
        self.default
    }
    fn default_text(&self) -> String {
        self.default.to_string()
    }
    fn allowed(&self) -> String {
        format!("a number from 0 to {}", self.most)
    }
}

/// One of a few things by their names. The first one is the default.
#[derive(Clone, Copy, Debug)]
pub struct OneOf<T: 'static> {
    pub name: &'static str,
    /// What it means.
    pub summary: &'static str,
    /// The names, and what they stand for.
    pub of: &'static [(&'static str, T)],
    /// Its default: the first of them.
    pub default: T,
}

impl<T: Copy + PartialEq + Sync> Typed for OneOf<T> {
    type Value = T;
    fn head(&self) -> (&'static str, &'static str) {
        (self.name, self.summary)
    }
    fn read(&self, text: &str) -> Option<T> {
        self.of.iter().find(|(name, _)| *name == text).map(|(_, value)| *value)
    }
    fn default(&self) -> T {
        self.default
    }
    fn default_text(&self) -> String {
        let name = self.of.iter().find(|(_, value)| *value == self.default);
        name.map_or_else(String::new, |(name, _)| (*name).to_owned())
    }
    fn allowed(&self) -> String {
        let names: Vec<&str> = self.of.iter().map(|(name, _)| *name).collect();
        match names.split_last() {
            Some((last, first)) if !first.is_empty() => format!("{} or {last}", first.join(", ")),
            _ => names.concat(),
        }
    }
}

/// Text that the pass reads itself.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    pub name: &'static str,
    /// What it means.
    pub summary: &'static str,
    pub default: &'static str,
}

impl Typed for Text {
    type Value = String;
    fn head(&self) -> (&'static str, &'static str) {
        (self.name, self.summary)
    }
    fn read(&self, text: &str) -> Option<String> {
        Some(text.to_owned())
    }
    fn default(&self) -> String {
        self.default.to_owned()
    }
    fn default_text(&self) -> String {
        self.default.to_owned()
    }
    fn allowed(&self) -> String {
        "text".to_owned()
    }
}

/// The pass of this name in a table.
///
/// # Errors
/// `Input` that lists those there are.
pub fn find<'a>(table: &[&'a Pass], name: &str) -> Result<&'a Pass> {
    table.iter().copied().find(|p| p.name == name).ok_or_else(|| {
        let names: Vec<&str> = table.iter().map(|p| p.name).collect();
        let error = Error::input(format!("there is no pass `{name}`"))
            .note(format!("the passes are: {}", names.join(", ")));
        error.did_you_mean(name, names)
    })
}

/// Checks what was given to passes that are to run, of all that there are.
///
/// # Errors
/// `Input` for an option that none of them takes, one that is given as two things, and a value that
/// is none.
pub fn check(config: &Config, running: &[&Pass], all: &[&Pass]) -> Result<()> {
    for (key, _) in &config.0 {
        if running.iter().any(|p| p.options.iter().any(|o| p.means(key, *o))) {
            continue;
        }
        if let Some(other) = all.iter().find(|p| p.options.iter().any(|o| p.means(key, *o))) {
            let what = format!("`{key}` is an option of `{}`, which is not to run", other.name);
            return Err(Error::input(what));
        }
        let names: Vec<&str> = running.iter().map(|p| p.name).collect();
        let keys: Vec<String> =
            running.iter().flat_map(|p| p.options.iter().map(|o| p.key(o.name()))).collect();
        let short = running.iter().flat_map(|p| p.options.iter().map(|o| o.name()));
        let error = Error::input(format!("none of the passes has an option `{key}`"))
            .note(format!("the passes are: {}", names.join(", ")))
            .note(if keys.is_empty() {
                "they have no options".to_owned()
            } else {
                format!("their options are: {}", keys.join(", "))
            });
        return Err(error.did_you_mean(key, short.chain(keys.iter().map(String::as_str))));
    }
    for pass in running {
        let given = Given { pass, config };
        pass.options.iter().try_for_each(|o| o.check(&given))?;
    }
    Ok(())
}
