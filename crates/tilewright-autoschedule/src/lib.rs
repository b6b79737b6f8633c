//! Automatic schedules: traces of primitives, found from the accesses of a function and a target.
//!
//! [`auto_schedule`] looks for contractions in a function in canonical form (see
//! `tilewright_analysis::stage`), chooses a register tile for each by a cost model, and makes its
//! loops by the primitives of `tilewright-schedule` alone, as it makes those of other reductions and of
//! elementwise functions and copies. So a schedule that was found can be printed, edited and replayed
//! like one that a person wrote. [`contractions`] and [`others`] are the two halves of it.
//!
//! * `canonical`: which statements of a function are stages, and which of these follow one another.
//! * `axes`: iteration variables that all accesses walk as one.
//! * [`contraction`]: contractions, recognised from their accesses.
//! * [`integer`]: products of integers, made products of what instructions multiply.
//! * [`groups`]: contractions in groups, made such that they are recognised.
//! * [`tile`]: the choice of a register tile, by a written cost model.
//! * [`generate`]: the trace of a contraction.
//! * `columns`: the few columns that whole vectors leave over.
//! * `order`: the loops around a tile.
//! * `parts`: what loops around a tile are taken apart into.
//! * `partial`: partial results in lanes, and how they are combined.
//! * `parallel`: which of its loops run in parallel.
//! * `transforms`: small linear transforms, computed tile by tile.
//! * `reduction`: other reductions, windows over padded images among them.
//! * `spatial`: stages without reduction.
//! * `padding`: what pads, as a box and a constant.
//! * `share`: how many loops threads share.
//! * `digits`: variables taken apart where quotients and remainders of them are.
//! * `transpose`: tiles of what is copied across.
//! * [`price`]: what a function costs, to compare layouts.
//! * [`options`]: the target as options of a pass.
//!
//! What an argument that is the same in every run may become is said by the attribute
//! [`FREE_LAYOUT`](tilewright_layout::marks::FREE_LAYOUT) of the function: the copy that such an argument is packed into is marked, so that
//! it can be lifted out of the function and made once.

mod axes;
mod canonical;
mod columns;
pub mod contraction;
mod digits;
pub mod generate;
pub mod groups;
pub mod integer;
pub mod options;
mod order;
mod padding;
mod parallel;
mod partial;
mod parts;
pub mod price;
mod reduction;
mod share;
mod spatial;
mod subdomains;
pub mod tile;
mod transforms;
mod transpose;
mod weave;

use std::sync::Arc;

use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::visit::Subst;
use tilewright_ir::{Buffer, Error, ExprKind, Fold, Module, Remarks, Result, TensorFunc};
use tilewright_schedule::{Schedule, Trace};
use tilewright_target::Target;
use tilewright_transform::lower::lower;
use tilewright_transform::names::unique_blocks;
use tilewright_transform::pass::{Pass, Run};

use crate::canonical::{follows, sole_reader};
use crate::contraction::{Contraction, is_free, steps};
use crate::groups::Apart;
use crate::options::{CPU, FEATURES, TRIPLE, target};
use crate::parts::alone;
use crate::tile::Tile;

/// `auto_schedule` by name.
pub const PASS: Pass = Pass {
    name: "auto_schedule",
    summary: "give stages in canonical form loops that suit a processor, by schedule primitives",
    options: &[&CPU, &FEATURES, &TRIPLE],
    run: Run::Traced(|module, given, why| {
        let (module, trace) = auto_schedule(module, &target(given)?, why)?;
        Ok((module, trace.to_string()))
    }),
};

/// `schedule_stages` by name.
pub const STAGES: Pass = Pass {
    name: "schedule_stages",
    summary: "give stages that are no contractions in tiles loops that suit a processor",
    options: &[&CPU, &FEATURES, &TRIPLE],
    run: Run::Tensor(|f, given, why| others(f, &target(given)?, why)),
};

/// The passes that make automatic schedules.
pub static PASSES: &[&Pass] = &[&PASS, &STAGES, &integer::PASS];

/// Schedules every function for a machine: contractions, other reductions, and what is no reduction. Second, what
/// was done, as one trace: applied to the same module it gives the same result.
///
/// Where a primitive refuses, reductions stay as they are, with a remark, and other stages have fewer
/// primitives applied. Stages that are marked to be lifted stay as they are.
///
/// # Errors
/// `Toolchain` where libisl is missing.
pub fn auto_schedule(
    module: &Module,
    target: &Target,
    why: &mut Remarks,
) -> Result<(Module, Trace)> {
    each(module, why, |name, func| {
        let (tiled, mut said) = function(name, func, target);
        let mut sch = tiled.unwrap_or_else(|| alone(name, func));
        said.extend(reduction::schedule(&mut sch, name, target));
        said.extend(spatial::schedule(&mut sch, name, false, target));
        (Some(sch), said)
    })
}

/// Schedules the contractions of every function, as [`auto_schedule`] does.
///
/// # Errors
/// As [`auto_schedule`].
pub fn contractions(
    module: &Module,
    target: &Target,
    why: &mut Remarks,
) -> Result<(Module, Trace)> {
    each(module, why, |name, func| function(name, func, target))
}

/// Gives the stages of a function that have no loops yet such that suit a machine, as [`auto_schedule`] does,
/// but for contractions in tiles; those that are marked have loops, too.
///
/// # Errors
/// [`Error::Internal`] alone: where a primitive refuses, stages have fewer primitives applied, with a
/// remark.
pub fn others(func: &TensorFunc, target: &Target, why: &mut Remarks) -> Result<TensorFunc> {
    let name: Arc<str> = "f".into();
    // Primitives find blocks by their names.
    let mut sch = alone(&name, &unique_blocks(func));
    why.extend(reduction::schedule(&mut sch, &name, target));
    why.extend(spatial::schedule(&mut sch, &name, true, target));
    Ok((**sch.func(&name)?).clone())
}

/// Replaces each function by what a schedule makes of it, and joins the traces.
fn each(
    module: &Module,
    why: &mut Remarks,
    schedule: impl Fn(&Arc<str>, &TensorFunc) -> (Option<Schedule>, Vec<Error>),
) -> Result<(Module, Trace)> {
    let mut out = module.clone();
    let mut trace = Trace::default();
    for (name, func) in module.tensors() {
        let (scheduled, said) = schedule(name, func);
        why.extend(said);
        let Some(sch) = scheduled.filter(|s| !s.trace().instructions.is_empty()) else { continue };
        trace.instructions.extend(sch.trace().instructions.iter().cloned());
        out.insert(name.clone(), (**sch.func(name)?).clone());
    }
    Ok((out, trace))
}

/// The schedule of the contractions of a function; `None` where there are none.
fn function(name: &Arc<str>, func: &TensorFunc, target: &Target) -> (Option<Schedule>, Vec<Error>) {
    if func.buffers().any(|b| !b.axis_separators.is_empty()) {
        return (None, Vec::new());
    }
    let mut said = Vec::new();
    // Groups stay together where one of them gets no tiles.
    if let Some(apart) = groups::apart(name, func) {
        let (found, why) = tiles(name, apart, target);
        said = why;
        if found.is_some() {
            return (found, said);
        }
    }
    let apart = Apart::none(name, func);
    match transforms::schedule(&apart.schedule, name, func, target) {
        Some(Ok(schedule)) => return (Some(schedule), said),
        Some(Err(e)) => said.push(e.context(format_args!("function `{name}`"))),
        None => {}
    }
    let (found, why) = tiles(name, apart, target);
    said.extend(why);
    (found, said)
}

/// The tiles of a function; `None` where there are none, or a contraction that was taken apart has
/// none.
fn tiles(name: &Arc<str>, apart: Apart, target: &Target) -> (Option<Schedule>, Vec<Error>) {
    let mut sch = apart.schedule;
    let Ok(func) = sch.func(name).cloned() else { return (None, Vec::new()) };
    let Some(stages) = open_stages(&func) else { return (None, Vec::new()) };
    let (mut changed, mut said) = (false, Vec::new());
    for k in 0..stages.len() {
        let is_free = |b: &Buffer| {
            let from = apart.copies.iter().find(|copy| copy.to == b.name);
            is_free(&func, from.map_or(b, |copy| &copy.from))
        };
        let found = contraction(&func, &stages, k, is_free).and_then(|(c, epilogue)| {
            let (c, tile) = price::chosen(c, &stages[k], target)?;
            Some((c, tile, epilogue.map(|e| e.name().clone())))
        });
        let needed = apart.blocks.contains(stages[k].name());
        let Some((c, tile, next)) = found else {
            if needed {
                return (None, said);
            }
            continue;
        };
        let copies: Vec<Arc<str>> = apart
            .copies
            .iter()
            .filter(|copy| c.operands.iter().any(|o| o.buffer.name == copy.to))
            .map(|copy| copy.block.clone())
            .collect();
        // What a refusal leaves half done is thrown away.
        let made = |c: &Contraction, tile: &Tile| -> Result<Schedule> {
            let mut trial = sch.clone();
            generate::tiled(&mut trial, name, c, tile, next.as_deref(), &copies, target)?;
            Ok(trial)
        };
        let mut trial = made(&c, &tile);
        if trial.is_err() && tile.along.is_some() {
            // What is left over of the columns is a tile like others then.
            trial = made(&c, &Tile { along: None, ..tile });
        }
        if trial.is_err() && tile.beyond(&c) {
            // Nothing is read beyond the last value then.
            let mut c = c;
            c.operands.iter_mut().for_each(|o| o.made = false);
            if let Some((c, tile)) = price::chosen(c, &stages[k], target) {
                trial = made(&c, &tile);
            }
        }
        match trial {
            Ok(trial) => (sch, changed) = (trial, true),
            Err(e) => {
                said.push(e.context(format_args!("function `{name}`")));
                if needed {
                    return (None, said);
                }
            }
        }
    }
    // Whether tiles of open sizes can be made code of depends on what is derived from them.
    if changed && !stages.iter().all(Stage::is_fixed) {
        let lowered = sch.func(name).and_then(|f| lower(f));
        if let Err(e) = lowered {
            said.push(e.context(format_args!("function `{name}`")));
            return (None, said);
        }
    }
    (changed.then_some(sch), said)
}

/// The contraction that a stage is, with the stage that alone reads its result, point by point.
/// `is_free` says which arguments have a free layout.
fn contraction<'a>(
    func: &TensorFunc,
    stages: &'a [Stage],
    k: usize,
    is_free: impl Fn(&Buffer) -> bool,
) -> Option<(Contraction, Option<&'a Stage>)> {
    let mut c = Contraction::of(&stages[k], is_free)?;
    let (allocs, _) = func.root_parts();
    for o in &mut c.operands {
        // What only moves is read where it comes from.
        let made =
            |s: &Stage| s.buffer == o.buffer && !matches!(s.value.kind(), ExprKind::Load(..));
        o.made = allocs.contains(&o.buffer) && stages[..k].iter().any(made);
    }
    let next = sole_reader(allocs, stages, k).filter(|(at, _)| *at == k + 1);
    let epilogue = next.and_then(|(_, next)| Some((next, follows(&stages[k], next)?)));
    let (next, map) = epilogue.unzip();
    if let (Some(next), Some(map)) = (next, map) {
        let mut rename = Subst::vars(map);
        let at: Vec<_> = next.indices.iter().map(|i| rename.expr(i)).collect();
        c.out = match steps(&next.buffer, &at, &c.axes) {
            Some(steps) => steps.into_iter().map(Some).collect(),
            None => vec![None; c.axes.len()],
        };
    }
    Some((c, next))
}
