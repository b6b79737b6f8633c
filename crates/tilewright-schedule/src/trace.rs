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

use std::fmt;

use crate::signature::Signature;
use crate::value::{Handles, Value};

/// One applied primitive.
#[derive(Clone, Debug)]
pub struct Instruction {
    pub primitive: &'static Signature,
    /// A value for each of its parameters.
    pub args: Vec<Value>,
    /// What it returned.
    pub outputs: Vec<Value>,
}

impl Instruction {
    /// Its arguments as text; those that have their defaults are left out.
    fn arguments(&self, names: &Handles) -> String {
        let mut all = Vec::new();
        for (param, value) in self.primitive.params.iter().zip(&self.args) {
            let text = names.text(value);
            match (value, param.rest) {
                (Value::List(items), true) => all.extend(items.iter().map(|v| names.text(v))),
                _ if param.default().is_some_and(|d| d.to_string() == text) => {}
                _ => all.push(format!("{}={text}", param.name())),
            }
        }
        all.join(", ")
    }
}

/// Instructions in order.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub instructions: Vec<Instruction>,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = Handles::default();
        writeln!(f, "def apply_trace(sch):")?;
        for i in &self.instructions {
            let args = i.arguments(&names);
            let outputs: Vec<String> = i.outputs.iter().map(|o| names.define(o)).collect();
            let result = match &outputs[..] {
                [] => String::new(),
                [one] if !i.primitive.returns.is_list() => format!("{one} = "),
                [one] => format!("{one}, = "),
                many => format!("{} = ", many.join(", ")),
            };
            writeln!(f, "    {result}sch.{}({args})", i.primitive.name)?;
        }
        if self.instructions.is_empty() {
            writeln!(f, "    pass")?;
        }
        Ok(())
    }
}
