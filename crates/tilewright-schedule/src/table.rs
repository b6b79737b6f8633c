//! The table of all primitives, and what reads it: calls by name, traces that run again, and the
//! page of documentation.

use std::sync::Arc;

use tilewright_ir::{Error, Result};

use crate::primitive::Primitive;
use crate::schedule::Schedule;
use crate::signature::{Given, Signature};
use crate::trace::Trace;
use crate::value::Value;
use crate::{
    block_layout, cache, call, compute, decompose_padding, inline, loop_layout, loops, pad_einsum,
    parts, reduction, reindex_cache, reverse_compute, rfactor, sequential_buffer_access, storage,
    tensorize, transform_layout,
};

/// The primitives, by subject.
static PRIMITIVES: &[&[Primitive]] = &[
    call::PRIMITIVES,
    loops::PRIMITIVES,
    loop_layout::PRIMITIVES,
    compute::PRIMITIVES,
    reverse_compute::PRIMITIVES,
    inline::PRIMITIVES,
    cache::PRIMITIVES,
    reindex_cache::PRIMITIVES,
    reduction::PRIMITIVES,
    rfactor::PRIMITIVES,
    tensorize::PRIMITIVES,
    transform_layout::PRIMITIVES,
    block_layout::PRIMITIVES,
    sequential_buffer_access::PRIMITIVES,
    pad_einsum::PRIMITIVES,
    decompose_padding::PRIMITIVES,
    parts::PRIMITIVES,
    storage::PRIMITIVES,
];

/// Every primitive, in the order of the subjects.
pub fn all() -> impl Iterator<Item = &'static Primitive> {
    PRIMITIVES.iter().copied().flatten()
}

/// What is said of each, in the same order.
pub fn signatures() -> impl Iterator<Item = &'static Signature> {
    all().map(|p| &p.signature)
}

/// The primitive of this name.
///
/// # Errors
/// `Input` that lists those there are.
pub fn find(name: &str) -> Result<&'static Primitive> {
    all().find(|p| p.signature.name == name || p.signature.aliases.contains(&name)).ok_or_else(
        || {
            let names: Vec<&str> = signatures().map(|p| p.name).collect();
            Error::input(format!("there is no primitive `{name}`"))
                .note(format!("the primitives are: {}", names.join(", ")))
                .did_you_mean(name, names)
        },
    )
}

/// A primitive at work, on a page: all in the form that scripts and modules are read in.
#[derive(Clone, Debug)]
pub struct Example {
    /// What it shows, in a sentence.
    pub caption: String,
    /// The function before.
    pub before: String,
    /// What a script says.
    pub script: String,
    /// The function after.
    pub after: String,
}

/// All primitives with their arguments and an example of each (by its name), as a page of Markdown.
pub fn page(example: &dyn Fn(&str) -> Option<Example>) -> String {
    let mut text = String::from(
        "# Primitives\n\nThe calls of a schedule script (`tilewright opt --schedule SCRIPT.py`). \
         Arguments are given by name or by position; blocks and loops may be given by their names \
         in the module. This page is made from the primitives themselves, and its examples are \
         the cases in `tests/cases/primitives/examples`; `UPDATE_EXPECT=1 cargo test -p \
         tilewright-driver --test it pages` writes it.\n\n\
         | call | returns | what it does |\n|---|---|---|\n",
    );
    for p in signatures() {
        text += &format!("| `{}` | {} | {} |\n", p.usage(), p.returns.text(), p.summary());
    }
    text += "\n| argument | of | what may be given |\n|---|---|---|\n";
    let mut rows: Vec<(String, String, Vec<&str>)> = Vec::new();
    for p in signatures() {
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
    for p in signatures() {
        for f in p.flags {
            let other = if f.free { "makes no difference" } else { "is refused" };
            let value = Value::Bool(f.default);
            text += &format!("| `{}={value}` | `{}` | {other} |\n", f.name, p.name);
        }
    }
    let also =
        signatures().flat_map(|p| p.aliases.iter().map(|a| format!("`{a}` is `{}`", p.name)));
    let also: Vec<String> = also.collect();
    text += &format!("\nOther names: {}.\n\n## Before and after\n", also.join(", "));
    for p in signatures() {
        let Some(Example { caption, before, script, after }) = example(p.name) else { continue };
        text += &format!(
            "\n### {}\n\n{caption}\n\n```python\n{before}\n```\n\n```python\n# the schedule\n{script}\n```\n\n\
             ```python\n# after\n{after}\n```\n",
            p.name
        );
    }
    text
}

impl Schedule {
    /// Calls a primitive by name. Blocks and loops may be given by their names: those of the
    /// function that the script works on, see [`Schedule::current`].
    ///
    /// # Errors
    /// [`Error::Input`] for a name or arguments that do not fit; those of the primitive.
    pub fn call(
        &mut self,
        name: &str,
        positional: Vec<Given>,
        named: Vec<(Arc<str>, Given)>,
    ) -> Result<Vec<Value>> {
        find(name)?.call(self, positional, named)
    }

    /// Applies what a trace of another schedule says, whose module was the same when it began.
    ///
    /// # Errors
    /// Those of the primitives; what was applied before stays.
    pub fn replay(&mut self, trace: &Trace) -> Result<()> {
        let mut known: Vec<(Value, Value)> = Vec::new();
        for i in &trace.instructions {
            let args = i.args.iter().map(|v| in_place_of(v, &known)).collect();
            let outputs = find(i.primitive.name)?.apply(self, args)?;
            known.extend(i.outputs.iter().cloned().zip(outputs));
        }
        Ok(())
    }
}

/// The value that a second run has for one of the first.
fn in_place_of(v: &Value, known: &[(Value, Value)]) -> Value {
    let same = |k: &Value| match (k, v) {
        (Value::Loop(a), Value::Loop(b)) => a == b,
        (Value::Block(a), Value::Block(b)) => a == b,
        _ => false,
    };
    match v {
        Value::List(items) => items.iter().map(|v| in_place_of(v, known)).collect(),
        v => {
            known.iter().rev().find(|(k, _)| same(k)).map_or_else(|| v.clone(), |(_, n)| n.clone())
        }
    }
}
