//! A schedule: a module under change, and the trace of what was done to it.
//!
//! A primitive either changes the module and is recorded, or refuses with a reason and changes
//! nothing. Primitives are methods of [`Schedule`], declared in the module of their subject; see
//! [`crate::primitive`].

use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::AtOnce;
use tilewright_ir::stmt::MAX_NESTING;
use tilewright_ir::well_formed::check_open_module;
use tilewright_ir::{Error, Function, Module, Result, Stmt, TensorFunc};
use tilewright_polyhedral::Engine;
use tilewright_polyhedral::at_once;
use tilewright_polyhedral::sizes::about;

use tilewright_transform::products::with_products_as_sizes;

use crate::cursor::{Cursor, InFunction, around, as_loop, find, the_block};
use crate::signature::{Output, Signature};
use crate::trace::{Instruction, Trace};
use crate::value::{BlockRef, Value};

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
}

/// A primitive that is being applied, with a value for each of its parameters.
pub(crate) struct Invocation {
    pub(crate) primitive: &'static Signature,
    pub(crate) args: Vec<Value>,
}

/// The function that a primitive leaves behind, and what it returns.
pub(crate) type Edited<T = ()> = (TensorFunc, T);

impl Schedule {
    /// A schedule for a module.
    pub fn new(module: Module, permissions: Permissions) -> Self {
        Schedule { module, trace: Trace::default(), permissions, renamed: HashMap::default() }
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

    /// Goes on with a function in which products of open sizes that are its extents by now are sizes of their own
    /// ([`with_products_as_sizes`]); afterwards they stand in their place again. Where a primitive refuses, the schedule
    /// is not to be used.
    ///
    /// # Errors
    /// Those of `then`.
    pub fn with_products_as_sizes(
        &mut self,
        name: &Arc<str>,
        then: impl FnOnce(&mut Schedule) -> Result<()>,
    ) -> Result<()> {
        let func = self.func(name)?.clone();
        let made = with_products_as_sizes(&func, |func| {
            self.module.insert(name.clone(), Function::Tensor(Arc::new(func.clone())));
            then(self)?;
            Ok((**self.func(name)?).clone())
        })?;
        self.module.insert(name.clone(), Function::Tensor(Arc::new(made)));
        Ok(())
    }

    /// Edits the function that something is in, and records that, unless iterations of a loop that
    /// run at once would depend on each other then. A refusal that says no other place is about
    /// that something. The new function is checked in debug builds.
    pub(crate) fn edit<T: Output>(
        &mut self,
        at: &impl InFunction,
        step: Invocation,
        edit: impl FnOnce(&TensorFunc) -> Result<Edited<T>>,
    ) -> Result<T> {
        self.edit_cells(at, step, |old| {
            let out = edit(old)?;
            keeps_promises(old, &out.0)?;
            Ok(out)
        })
    }

    /// The same for an edit after which any two accesses touch one cell where they did before: what runs at once then
    /// still may, and is not asked again.
    pub(crate) fn edit_cells<T: Output>(
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
        let (new, out) = about(old, || -> Result<Edited<T>> {
            let out = edit(old)?;
            stays_small(old, &out.0)?;
            crate::widths::check(old, &out.0)?;
            Ok(out)
        })
        .map_err(|e| match at.cursor(old) {
            Ok(cursor) => e.at(cursor.stmt.span()),
            Err(_) => e,
        })
        .map_err(|e| self.place_error(e).context(format!("`{name}`")))?;
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
        let out = ask(self).map_err(|e| self.place_error(e))?;
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
        while self.func(&block.func).is_ok_and(|f| the_block(f, &block).is_err())
            && let Some(new) = self.renamed.get(&block)
        {
            block = new.clone();
        }
        block
    }

    fn place_error(&self, e: Error) -> Error {
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
    let at_once = find(&new.body, |s| AtOnce::of_loop(s).is_some());
    for cursor in at_once.iter().filter(|s| before.iter().all(|b| !b.stmt.ptr_eq(&s.stmt))) {
        let Some(how) = AtOnce::of_loop(&cursor.stmt) else { continue };
        let engine = Engine::new();
        let Err(dependent) = check_loop(cursor, &engine, how) else { continue };
        let assumed = match same_loop(&cursor.stmt, &before) {
            Some(was) => is_unproven(was, &engine, how),
            // A copy of a loop.
            None => !dependent.certain && before.iter().any(|b| is_unproven(b, &engine, how)),
        };
        if !assumed {
            return Err(at_once::error(&cursor.stmt, dependent, Error::refused));
        }
    }
    Ok(())
}

fn same_loop<'a>(s: &Stmt, before: &'a [Cursor]) -> Option<&'a Cursor> {
    let var = as_loop(s).map(|l| l.0);
    before.iter().find(|b| as_loop(&b.stmt).map(|l| l.0) == var)
}

/// Whether a loop promises so, and it is not proven.
fn is_unproven(l: &Cursor, engine: &Engine, how: AtOnce) -> bool {
    AtOnce::of_loop(&l.stmt) == Some(how) && check_loop(l, engine, how).is_err()
}

fn check_loop(cursor: &Cursor, engine: &Engine, how: AtOnce) -> Result<(), at_once::Dependent> {
    at_once::check(&cursor.stmt, &around(engine, cursor), how)
}
