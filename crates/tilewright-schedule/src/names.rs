//! Which function, block or loop a name of a script means.

use std::sync::Arc;

use tilewright_ir::{Error, Result, Stmt};

use crate::cursor::{as_block, block_cursor, find, the_loop};
use crate::schedule::Schedule;
use crate::value::{BlockRef, LoopRef};

impl Schedule {
    /// The function of a name. A trace calls a bare function `main`.
    pub(crate) fn function(&self, name: Option<&str>) -> Result<Arc<str>> {
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
        let func = self.owner(|s| has_loop_var(s, name))?;
        let cursors = find(&self.func(&func)?.body, |s| has_loop_var(s, name));
        match &cursors[..] {
            [] => Err(Error::refused(format!("there is no loop `{name}`"))),
            [one] => Ok(LoopRef::new(&func, the_loop(&one.stmt)?.0)),
            all => Err(Error::refused(format!("{} loops are called `{name}`", all.len()))),
        }
    }
}

fn has_loop_var(s: &Stmt, name: &str) -> bool {
    s.loop_var().is_some_and(|v| &**v.name() == name)
}
