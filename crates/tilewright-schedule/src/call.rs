//! Primitives by name: what a schedule script can call.
//!
//! One table maps names to handlers; each handler stands beside its primitive and takes its
//! arguments from [`Args`].

use std::sync::Arc;

use tilewright_ir::{Error, Result, Stmt};

use crate::buffer_arg::Side;
use crate::schedule::{Schedule, loop_site};
use crate::site::{as_block, as_loop, find};
use crate::trace::{Args, BlockRef, LoopRef, Value};
use crate::{
    block_layout, cache, compute, decompose_padding, inline, loop_layout, loops, pad_einsum, parts,
    reduction, reindex_cache, reverse_compute, rfactor, sequential_buffer_access, storage,
    tensorize, transform_layout,
};

type Handler = fn(&mut Schedule, Args) -> Result<Vec<Value>>;

/// Every primitive; several names may stand for one.
const PRIMITIVES: &[(&str, Handler)] = &[
    ("get_block", get_block),
    ("get_sblock", get_block),
    ("get_loops", get_loops),
    ("work_on", work_on),
    ("split", loops::split_call),
    ("fuse", loops::fuse_call),
    ("reorder", loops::reorder_call),
    ("parallel", loops::parallel_call),
    ("vectorize", loops::vectorize_call),
    ("unroll", loops::unroll_call),
    ("bind", loops::bind_call),
    ("cache_read", |s, a| cache::cache_call(s, a, Side::Read)),
    ("cache_write", |s, a| cache::cache_call(s, a, Side::Write)),
    ("cache_inplace", cache::cache_inplace_call),
    ("transform_layout", transform_layout::transform_layout_call),
    ("set_axis_separator", transform_layout::set_axis_separator_call),
    ("transform_block_layout", block_layout::transform_block_layout_call),
    ("transform_loops", loop_layout::transform_loops_call),
    ("fission", loop_layout::fission_call),
    ("hoist_expression", parts::hoist_expression_call),
    ("reduce_loop_extents", parts::reduce_loop_extents_call),
    ("loop_partition", parts::loop_partition_call),
    ("merge_loops", parts::merge_loops_call),
    ("remove_branching_through_overcompute", parts::remove_branching_call),
    ("remove_overcompute_through_branching", parts::remove_overcompute_call),
    ("get_inner_loops", loop_layout::get_inner_loops_call),
    ("sequential_buffer_access", sequential_buffer_access::sequential_buffer_access_call),
    ("decompose_padding", decompose_padding::decompose_padding_call),
    ("pad_einsum", pad_einsum::pad_einsum_call),
    ("set_scope", storage::set_scope_call),
    ("annotate", storage::annotate_call),
    ("unannotate", storage::unannotate_call),
    ("reindex_cache_read", |s, a| reindex_cache::reindex_cache_call(s, a, Side::Read)),
    ("reindex_cache_write", |s, a| reindex_cache::reindex_cache_call(s, a, Side::Write)),
    ("compute_at", compute::compute_at_call),
    ("reverse_compute_at", reverse_compute::reverse_compute_at_call),
    ("compute_inline", inline::compute_inline_call),
    ("reverse_compute_inline", inline::reverse_compute_inline_call),
    ("tensorize", tensorize::tensorize_call),
    ("rfactor", rfactor::rfactor_call),
    ("decompose_reduction", reduction::decompose_reduction_call),
];

impl Schedule {
    /// The names that [`Schedule::call`] knows.
    pub fn primitives() -> impl Iterator<Item = &'static str> {
        PRIMITIVES.iter().map(|(name, _)| *name)
    }

    /// Calls a primitive by name. Blocks and loops may be given by their names: those of the
    /// function that the script works on, see [`Schedule::current`].
    ///
    /// # Errors
    /// [`Error::Input`] for a name or arguments that do not fit; those of the primitive.
    pub fn call(
        &mut self,
        name: &str,
        positional: Vec<Value>,
        named: Vec<(Arc<str>, Value)>,
    ) -> Result<Vec<Value>> {
        let Some((name, handler)) = PRIMITIVES.iter().find(|(n, _)| *n == name) else {
            let known: Vec<&str> = Schedule::primitives().collect();
            return Err(Error::input(format!("there is no primitive `{name}`"))
                .note(format!("the primitives are: {}", known.join(", "))));
        };
        handler(self, Args::new(name, positional, named))
    }

    /// Whether a primitive returns a list, also where there is one element or none: a script unpacks
    /// or indexes what it gives.
    pub fn returns_list(name: &str) -> bool {
        matches!(
            name,
            "get_loops"
                | "get_inner_loops"
                | "split"
                | "fission"
                | "loop_partition"
                | "transform_loops"
        )
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
        crate::schedule::block_site(self.func(&func)?, name)?;
        Ok(BlockRef { func, name: name.into() })
    }

    /// The loop over a variable of this name in the function that the script means.
    pub(crate) fn loop_named(&self, name: &str) -> Result<LoopRef> {
        let is_meant = |s: &Stmt| as_loop(s).is_some_and(|(v, ..)| &**v.name() == name);
        let func = self.owner(is_meant)?;
        let sites = find(&self.func(&func)?.body, is_meant);
        match (sites.len(), sites.first().and_then(|s| as_loop(&s.stmt))) {
            (1, Some((var, ..))) => {
                let l = LoopRef { func: func.clone(), var: var.clone() };
                loop_site(self.func(&func)?, &l).map(|_| l)
            }
            (0, _) => Err(Error::refused(format!("there is no loop `{name}`"))),
            (n, _) => Err(Error::refused(format!("{n} loops are called `{name}`"))),
        }
    }
}

fn get_block(sch: &mut Schedule, mut args: Args) -> Result<Vec<Value>> {
    let name = args.str(&["name"])?;
    let func = match args.optional(&["func_name"]) {
        None | Some(Value::None) => None,
        Some(Value::Str(s)) => Some(s),
        Some(other) => return Err(args.wrong("func_name", "a string", &other)),
    };
    args.finish()?;
    // A trace calls a bare function `main`.
    let func = match func {
        Some(f) if sch.module().functions.contains_key(&*f) => f,
        Some(f) if &*f != "main" => {
            return Err(sch
                .module()
                .tensor(&f)
                .err()
                .unwrap_or_else(|| Error::input(format!("there is no function `{f}`"))));
        }
        _ => sch.current()?,
    };
    Ok(vec![Value::from(&sch.get_block(&name, &func)?)])
}

fn get_loops(sch: &mut Schedule, mut args: Args) -> Result<Vec<Value>> {
    let block = args.block(sch)?;
    args.finish()?;
    Ok(sch.get_loops(&block)?.iter().map(Value::from).collect())
}

/// `sch.work_on(name)`: traces say it, and every reference here carries its function.
fn work_on(sch: &mut Schedule, mut args: Args) -> Result<Vec<Value>> {
    let name = args.str(&["func_name"])?;
    args.finish()?;
    sch.func(&name).map(|_| Vec::new())
}
