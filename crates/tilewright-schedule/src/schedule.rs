//! A schedule: a module under change, and the trace of what was done to it.
//!
//! A primitive either changes the module and is recorded, or refuses with a reason and changes
//! nothing. Primitives are methods of [`Schedule`], declared in the module of their subject; see
//! [`crate::primitive`].

use std::collections::HashMap;
use std::sync::Arc;

use tilewright_analysis::at_once;
use tilewright_ir::AtOnce;
use tilewright_ir::stmt::MAX_NESTING;
use tilewright_ir::well_formed::check_open_module;
use tilewright_ir::{Block, Error, Function, Module, Result, Stmt, StmtKind, TensorFunc, data};
use tilewright_sets::Engine;

use crate::argument::{InFunction, Output};
use crate::cursor::{Cursor, around, as_block, as_loop, find};
use crate::primitive::Invocation;
use crate::trace::{BlockRef, Instruction, LoopRef, Trace};

/// What the caller of a schedule allows.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    /// Arguments of functions may be transformed: their callers are changed too, or there are
    /// none. Without it the interface of a function stays as it is.
    pub change_interface: bool,
}

/// An instruction: what it computes, and how it is asked for, over the same parameters.
#[derive(Clone, Debug)]
pub struct Intrinsic {
    /// What it computes, in plain loops.
    pub desc: Arc<TensorFunc>,
    /// What takes the place of such loops.
    pub implementation: Arc<TensorFunc>,
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

/// The function that a primitive leaves behind, and what it returns.
pub(crate) type Edited<T = ()> = (TensorFunc, T);

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

    /// Edits the function that something is in, and records that, unless iterations of a loop that
    /// run at once would depend on each other then. The new function is checked in debug builds.
    pub(crate) fn edit<T: Output>(
        &mut self,
        at: &impl InFunction,
        step: Invocation,
        edit: impl FnOnce(&TensorFunc) -> Result<Edited<T>>,
    ) -> Result<T> {
        let name = step.primitive.name;
        let Some(func) = at.func() else {
            return Err(Error::refused(format!("`{name}` needs at least one loop")));
        };
        let old = self.func(func)?;
        let checked = || -> Result<Edited<T>> {
            let out = edit(old)?;
            stays_small(old, &out.0)?;
            crate::widths::check(old, &out.0)?;
            keeps_promises(old, &out.0)?;
            Ok(out)
        };
        let (new, out) = Engine::about(data::variables(old), checked)
            .map_err(|e| self.placed(e).context(format!("`{name}`")))?;
        if cfg!(debug_assertions) {
            let mut alone = Module::new();
            alone.insert(func.clone(), new.clone());
            check_open_module(&alone).map_err(|e| {
                Error::internal(format!("`{name}` made a function that is not well formed: {e}"))
            })?;
        }
        self.module.functions.insert(func.clone(), Function::from(new));
        self.record(step, &out);
        Ok(out)
    }

    /// Finds something out, and records what.
    pub(crate) fn ask<T: Output>(
        &mut self,
        step: Invocation,
        ask: impl FnOnce(&Schedule) -> Result<T>,
    ) -> Result<T> {
        let out = ask(self).map_err(|e| self.placed(e))?;
        self.record(step, &out);
        Ok(out)
    }

    /// Applies other primitives: all, or none where one is refused.
    pub(crate) fn expand<T>(
        &mut self,
        step: Invocation,
        expand: impl FnOnce(&mut Schedule) -> Result<T>,
    ) -> Result<T> {
        let mut trial = self.clone();
        let out = expand(&mut trial);
        let out = out.map_err(|e| e.context(format!("`{}`", step.primitive.name)))?;
        *self = trial;
        Ok(out)
    }

    /// Does something that records the step itself.
    pub(crate) fn run<T>(
        &mut self,
        step: Invocation,
        run: impl FnOnce(&mut Schedule, Invocation) -> Result<T>,
    ) -> Result<T> {
        run(self, step)
    }

    fn record(&mut self, step: Invocation, out: &impl Output) {
        let Invocation { primitive, args } = step;
        self.trace.instructions.push(Instruction { primitive, args, outputs: out.values() });
    }

    /// A block goes by another name from now on.
    pub(crate) fn rename(&mut self, old: &BlockRef, new: BlockRef) {
        self.renamed.insert(old.clone(), new);
    }

    /// The block by the name that it has now.
    pub fn latest(&self, mut block: BlockRef) -> BlockRef {
        let gone =
            |b: &BlockRef| self.func(&b.func).is_ok_and(|f| block_cursor(f, &b.name).is_err());
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
}

/// Most nodes of a scheduled function as text.
const MAX_SIZE: u32 = 1 << 20;

/// Refuses what makes a function too deep to walk over, or too long to print.
fn stays_small(old: &TensorFunc, new: &TensorFunc) -> Result<()> {
    let (depth, size) = (new.body.nesting(), new.body.size());
    if depth as usize > MAX_NESTING && depth > old.body.nesting() {
        return Err(Error::refused(format!(
            "{depth} loops, conditions, blocks and bindings would be around each other, at most \
             {MAX_NESTING} may be"
        )));
    }
    if size > MAX_SIZE && size > old.body.size() {
        return Err(Error::refused(format!(
            "the function would have {size} nodes, at most {MAX_SIZE} are allowed"
        )));
    }
    Ok(())
}

/// Checks that the iterations of loops that run at once do not depend on each other after an edit.
///
/// That must be proven. A promise that could not be proven before the edit either is taken
/// as true, as long as the edit does not break it for certain.
fn keeps_promises(old: &TensorFunc, new: &TensorFunc) -> Result<()> {
    let before = find(&old.body, |s| as_loop(s).is_some());
    let same_loop = |s: &Stmt| {
        let var = as_loop(s).map(|l| l.0);
        before.iter().find(|b| as_loop(&b.stmt).map(|l| l.0) == var)
    };
    let at_once = find(&new.body, |s| AtOnce::of_loop(s).is_some());
    let changed = |s: &&Cursor| before.iter().all(|b| !b.stmt.ptr_eq(&s.stmt));
    for cursor in at_once.iter().filter(changed) {
        let Some(how) = AtOnce::of_loop(&cursor.stmt) else { continue };
        let engine = Engine::new()?;
        let ask = |cursor: &Cursor| at_once::check(&cursor.stmt, &around(&engine, cursor), how);
        let Err(dependent) = ask(cursor) else { continue };
        let unproven = |b: &Cursor| AtOnce::of_loop(&b.stmt) == Some(how) && ask(b).is_err();
        let assumed = match same_loop(&cursor.stmt) {
            Some(was) => unproven(was),
            // A copy of a loop.
            None => !dependent.certain && before.iter().any(unproven),
        };
        if !assumed {
            return Err(at_once::error(&cursor.stmt, dependent, Error::refused));
        }
    }
    Ok(())
}

/// Where the block of this name is.
pub(crate) fn block_cursor(func: &TensorFunc, name: &str) -> Result<Cursor> {
    let mut cursors = find(&func.body, |s| as_block(s).is_some_and(|b| &*b.name == name));
    match cursors.len() {
        1 => Ok(cursors.swap_remove(0)),
        0 => {
            let all = find(&func.body, |s| as_block(s).is_some());
            let names: Vec<&str> =
                all.iter().filter_map(|s| as_block(&s.stmt)).map(|b| &*b.name).collect();
            Err(Error::refused(format!("there is no block `{name}`"))
                .note(format!("the function has the blocks: {}", names.join(", "))))
        }
        n => {
            let labels = cursors.iter().filter_map(|s| s.stmt.span());
            let e = Error::refused(format!("{n} blocks are called `{name}`"))
                .at(cursors[0].stmt.span());
            Err(labels.skip(1).fold(e, |e, span| e.label(span, "another one")))
        }
    }
}

/// Where the loop with this variable is.
pub(crate) fn loop_cursor(func: &TensorFunc, l: &LoopRef) -> Result<Cursor> {
    let mut cursors = find(&func.body, |s| as_loop(s).is_some_and(|(v, ..)| *v == l.var));
    match cursors.len() {
        1 => Ok(cursors.swap_remove(0)),
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
