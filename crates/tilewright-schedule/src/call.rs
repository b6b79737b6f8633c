//! Which function, block or loop a name of a script means.

use std::sync::Arc;

use tilewright_ir::{Error, Result, Stmt};

use crate::argument::OptionalName;
use crate::cursor::{as_block, as_loop, find};
use crate::primitive::{self, Given, primitives};
use crate::schedule::{Schedule, block_cursor, loop_cursor};
use crate::trace::{BlockRef, LoopRef, Trace, Value};

primitives! {
    /// The block of this name, in the function that is called so or else in the one that a script
    /// means: `main`, or the only tensor function.
    ///
    /// # Errors
    /// `Refused` where there is none, or several; `Input` where there is no such function.
    #[alias("get_sblock")]
    get_block(name: &str, [into] func_name: OptionalName = OptionalName::default()) -> BlockRef, ask |sch| {
        let func = sch.function(func_name.get())?;
        block_cursor(sch.func(&func)?, name)?;
        Ok(BlockRef { func, name: name.into() })
    };

    /// The loops around a block up to the block that encloses it, outermost first.
    ///
    /// # Errors
    /// `Refused` where there is no such block.
    get_loops(block: &BlockRef) -> Vec<LoopRef>, ask |sch| {
        let loops = block_cursor(sch.func(&block.func)?, &block.name)?.loops();
        let loops = loops.iter().filter_map(as_loop);
        Ok(loops.map(|(var, ..)| LoopRef { func: block.func.clone(), var: var.clone() }).collect())
    };

    /// Says which function comes next. Traces say it; every block and loop carries its function, so
    /// that nothing follows from it.
    ///
    /// # Errors
    /// `Input` where there is no such function.
    work_on(func_name: &str), ask |sch| sch.func(func_name).map(|_| ());
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
        primitive::find(name)?.call(self, positional, named)
    }

    /// Applies what a trace of another schedule says, whose module was the same when it began.
    ///
    /// # Errors
    /// Those of the primitives; what was applied before stays.
    pub fn replay(&mut self, trace: &Trace) -> Result<()> {
        let mut known: Vec<(Value, Value)> = Vec::new();
        for i in &trace.instructions {
            let args = i.args.iter().map(|v| in_place_of(v, &known)).collect();
            let outputs = i.primitive.apply(self, args)?;
            known.extend(i.outputs.iter().cloned().zip(outputs));
        }
        Ok(())
    }

    /// The function of a name. A trace calls a bare function `main`.
    fn function(&self, name: Option<&str>) -> Result<Arc<str>> {
        match name {
            Some(name) => match self.module().functions.get_key_value(name) {
                Some((name, _)) => Ok(name.clone()),
                None if name == "main" => self.current(),
                None => self.func(name).map(|_| name.into()),
            },
            None => self.current(),
        }
    }

    /// The function that names in a script refer to: `main`, or the only tensor function.
    pub fn current(&self) -> Result<Arc<str>> {
        let module = self.module();
        if let Some((name, _)) = module.tensors().find(|(n, _)| &***n == "main") {
            return Ok(name.clone());
        }
        let mut all = module.tensors();
        match (all.next(), all.next()) {
            (Some((name, _)), None) => Ok(name.clone()),
            (None, _) => Err(Error::input("the module has no tensor function to schedule")),
            _ => Err(Error::input(
                "the module has several tensor functions and none is called `main`",
            )),
        }
    }

    /// The function in which a script means what `is_meant` finds: [`Schedule::current`], or where
    /// there is none the only one that has it.
    fn owner(&self, is_meant: impl Fn(&Stmt) -> bool) -> Result<Arc<str>> {
        self.current().or_else(|e| {
            let mut owners =
                self.module().tensors().filter(|(_, f)| !find(&f.body, &is_meant).is_empty());
            match (owners.next(), owners.next()) {
                (Some((name, _)), None) => Ok(name.clone()),
                _ => Err(e.help("say which: `sch.get_block(name, func_name=...)`")),
            }
        })
    }

    /// The block of this name in the function that the script means.
    pub(crate) fn block_named(&self, name: &str) -> Result<BlockRef> {
        let func = self.owner(|s| as_block(s).is_some_and(|b| &*b.name == name))?;
        block_cursor(self.func(&func)?, name)?;
        Ok(BlockRef { func, name: name.into() })
    }

    /// The loop over a variable of this name in the function that the script means.
    pub(crate) fn loop_named(&self, name: &str) -> Result<LoopRef> {
        let is_meant = |s: &Stmt| as_loop(s).is_some_and(|(v, ..)| &**v.name() == name);
        let func = self.owner(is_meant)?;
        let cursors = find(&self.func(&func)?.body, is_meant);
        match (cursors.len(), cursors.first().and_then(|s| as_loop(&s.stmt))) {
            (1, Some((var, ..))) => {
                let l = LoopRef { func: func.clone(), var: var.clone() };
                loop_cursor(self.func(&func)?, &l).map(|_| l)
            }
            (0, _) => Err(Error::refused(format!("there is no loop `{name}`"))),
            (n, _) => Err(Error::refused(format!("{n} loops are called `{name}`"))),
        }
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
