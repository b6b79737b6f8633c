//! A schedule: a module under change, and the trace of what was done to it.
//!
//! A primitive either changes the module and is recorded, or refuses with a reason and changes
//! nothing. Primitives are methods of [`Schedule`], in the module of their subject; scripts call
//! them by name through [`Schedule::call`].

use std::collections::HashMap;
use std::sync::Arc;

use tilewright_analysis::at_once::{self, AtOnce};
use tilewright_ir::well_formed::check_open_module;
use tilewright_ir::{Block, Error, Function, Module, Result, Stmt, StmtKind, TensorFunc};
use tilewright_sets::Engine;

use crate::loop_layout::around;
use crate::site::{Site, as_block, as_loop, find};
use crate::tensorize::Intrinsic;
use crate::trace::{BlockRef, Instruction, LoopRef, Trace, Value};

/// What the caller of a schedule allows.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    /// Arguments of functions may be transformed: their callers are changed too, or there are
    /// none. Without it the interface of a function stays as it is.
    pub change_interface: bool,
}

/// A module under change.
#[derive(Clone, Debug)]
pub struct Schedule {
    module: Module,
    trace: Trace,
    permissions: Permissions,
    /// Blocks that have another name now.
    renamed: HashMap<BlockRef, BlockRef>,
    /// Instructions that were registered.
    pub(crate) intrinsics: HashMap<Arc<str>, Intrinsic>,
}

/// What an instruction returns, and the function that it leaves behind.
pub(crate) type Edited = (TensorFunc, Vec<Value>);

impl Schedule {
    /// A schedule for a module.
    pub fn new(module: Module, permissions: Permissions) -> Self {
        Schedule {
            module,
            trace: Trace::default(),
            permissions,
            renamed: HashMap::new(),
            intrinsics: HashMap::new(),
        }
    }

    /// The module as it is now.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// What was done so far.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// What the caller allows.
    pub fn permissions(&self) -> &Permissions {
        &self.permissions
    }

    /// The function of this name as it is now.
    pub fn func(&self, name: &str) -> Result<&Arc<TensorFunc>> {
        self.module.tensor(name)
    }

    /// Applies an edit to a function and records it, unless iterations of a loop that run at once
    /// would depend on each other then. The new function is checked in debug builds.
    pub(crate) fn edit(
        &mut self,
        func: &Arc<str>,
        name: &'static str,
        args: Vec<(&'static str, Value)>,
        edit: impl FnOnce(&TensorFunc, &Permissions) -> Result<Edited>,
    ) -> Result<Vec<Value>> {
        let old = self.func(func)?;
        let (new, outputs) = edit(old, &self.permissions)
            .and_then(|out| {
                crate::widths::check(old, &out.0)?;
                keeps_promises(old, &out.0)?;
                Ok(out)
            })
            .map_err(|e| self.placed(e).context(format!("`{name}`")))?;
        if cfg!(debug_assertions) {
            let mut alone = Module::new();
            alone.insert(func.clone(), new.clone());
            check_open_module(&alone).map_err(|e| {
                Error::internal(format!("`{name}` made a function that is not well formed: {e}"))
            })?;
        }
        self.module.functions.insert(func.clone(), Function::from(new));
        self.record(name, args, outputs.clone());
        Ok(outputs)
    }

    /// Records an instruction that leaves the module as it is.
    pub(crate) fn record(
        &mut self,
        name: &'static str,
        args: Vec<(&'static str, Value)>,
        outputs: Vec<Value>,
    ) {
        self.trace.instructions.push(Instruction { name, args, outputs });
    }

    /// A block goes by another name from now on.
    pub(crate) fn rename(&mut self, old: &BlockRef, new: BlockRef) {
        self.renamed.insert(old.clone(), new);
    }

    /// The block by the name that it has now.
    pub fn latest(&self, mut block: BlockRef) -> BlockRef {
        let gone = |b: &BlockRef| self.func(&b.func).is_ok_and(|f| block_site(f, &b.name).is_err());
        while gone(&block)
            && let Some(new) = self.renamed.get(&block)
        {
            block = new.clone();
        }
        block
    }

    fn placed(&self, e: Error) -> Error {
        match &self.module.source {
            Some(source) if e.diagnostic().span.is_some() => e.in_source(source),
            _ => e,
        }
    }

    /// The block of this name.
    ///
    /// # Errors
    /// `Refused` where there is none, or several.
    pub fn get_block(&mut self, name: &str, func: &str) -> Result<BlockRef> {
        let (func, _) =
            self.module.functions.get_key_value(func).map(|(k, _)| (k.clone(), ())).ok_or_else(
                || self.func(func).err().unwrap_or_else(|| Error::input("no function")),
            )?;
        block_site(self.func(&func)?, name).map_err(|e| self.placed(e))?;
        let block = BlockRef { func: func.clone(), name: name.into() };
        let args = vec![("name", name.into()), ("func_name", Value::Str(func))];
        self.record("get_block", args, vec![(&block).into()]);
        Ok(block)
    }

    /// The loops around a block up to the block that encloses it, outermost first.
    pub fn get_loops(&mut self, block: &BlockRef) -> Result<Vec<LoopRef>> {
        let site = block_site(self.func(&block.func)?, &block.name)?;
        let loops: Vec<LoopRef> = site
            .loops()
            .iter()
            .filter_map(|s| as_loop(s))
            .map(|(var, ..)| LoopRef { func: block.func.clone(), var: var.clone() })
            .collect();
        let outputs = loops.iter().map(Value::from).collect();
        self.record("get_loops", vec![("block", block.into())], outputs);
        Ok(loops)
    }
}

/// Checks that the iterations of loops that run at once do not depend on each other after an edit.
///
/// Where a loop that ran one iteration after the other no longer does, that must be proven. Where
/// it ran so already, the edit must not make iterations depend on each other that did not.
fn keeps_promises(old: &TensorFunc, new: &TensorFunc) -> Result<()> {
    let before = find(&old.body, |s| as_loop(s).is_some());
    let same_loop = |s: &Stmt| {
        let var = as_loop(s).map(|l| l.0);
        before.iter().find(|b| as_loop(&b.stmt).map(|l| l.0) == var)
    };
    let at_once = find(&new.body, |s| AtOnce::of_loop(s).is_some());
    let changed = |s: &&Site| before.iter().all(|b| !b.stmt.ptr_eq(&s.stmt));
    for site in at_once.iter().filter(changed) {
        let Some(how) = AtOnce::of_loop(&site.stmt) else { continue };
        let engine = Engine::new()?;
        let ask = |site: &Site| at_once::check(&site.stmt, &around(&engine, site), how);
        let Err(dependent) = ask(site) else { continue };
        let was = same_loop(&site.stmt);
        let promised = was.is_none_or(|b| AtOnce::of_loop(&b.stmt) == Some(how));
        let broken = || was.is_some_and(|b| ask(b).is_err());
        if promised && (!dependent.certain || broken()) {
            continue;
        }
        return Err(at_once::error(&site.stmt, dependent, Error::refused));
    }
    Ok(())
}

/// Where the block of this name is.
pub(crate) fn block_site(func: &TensorFunc, name: &str) -> Result<Site> {
    let mut sites = find(&func.body, |s| as_block(s).is_some_and(|b| &*b.name == name));
    match sites.len() {
        1 => Ok(sites.swap_remove(0)),
        0 => {
            let all = find(&func.body, |s| as_block(s).is_some());
            let names: Vec<&str> =
                all.iter().filter_map(|s| as_block(&s.stmt)).map(|b| &*b.name).collect();
            Err(Error::refused(format!("there is no block `{name}`"))
                .note(format!("the function has the blocks: {}", names.join(", "))))
        }
        n => {
            let labels = sites.iter().filter_map(|s| s.stmt.span());
            let e =
                Error::refused(format!("{n} blocks are called `{name}`")).at(sites[0].stmt.span());
            Err(labels.skip(1).fold(e, |e, span| e.label(span, "another one")))
        }
    }
}

/// Where the loop with this variable is.
pub(crate) fn loop_site(func: &TensorFunc, l: &LoopRef) -> Result<Site> {
    let mut sites = find(&func.body, |s| as_loop(s).is_some_and(|(v, ..)| *v == l.var));
    match sites.len() {
        1 => Ok(sites.swap_remove(0)),
        0 => Err(Error::refused(format!("the loop `{}` no longer exists", l.var.name()))),
        n => Err(Error::refused(format!("the loop `{}` exists {n} times", l.var.name()))),
    }
}

/// A name for a new block that no block of the function has: `base`, `base_1`, ...
pub(crate) fn fresh_block_name(func: &TensorFunc, base: &str) -> Arc<str> {
    let taken = |name: &str| {
        !find(&func.body, |s| as_block(s).is_some_and(|b| &*b.name == name)).is_empty()
    };
    let mut name = base.to_owned();
    let mut k = 0;
    while taken(&name) {
        k += 1;
        name = format!("{base}_{k}");
    }
    name.into()
}

/// The same block statement with another block.
pub(crate) fn with_block(s: &Stmt, block: Block) -> Stmt {
    match s.kind() {
        StmtKind::Block { bindings, predicate, .. } => Stmt::spanned(
            StmtKind::Block {
                bindings: bindings.clone(),
                predicate: predicate.clone(),
                block: Arc::new(block),
            },
            s.span(),
        ),
        _ => s.clone(),
    }
}
