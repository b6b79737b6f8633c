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
//! * [`blocks`]: products with weights of a few bits, in tiles.
//! * [`integer`]: products of integers, turned into products that instructions compute.
//! * [`groups`]: contractions in groups, made such that they are recognised.
//! * `halves`: products of 16-bit floats, whose factors are widened once.
//! * [`tile`]: register tiles, and what they cost by a written model.
//! * `candidates`: the choice of a tile.
//! * [`generate`]: the trace of a contraction.
//! * `columns`: the few columns that whole vectors leave over.
//! * `open_rows`: tiles of an open number of rows.
//! * `order`: the loops around a tile.
//! * `parts`: what loops around a tile are taken apart into.
//! * `partial`: partial results in lanes, and how they are combined.
//! * `parallel`: which of its loops run in parallel.
//! * `transforms`: small linear transforms, computed tile by tile.
//! * `reduction`: other reductions, windows over padded images among them.
//! * `sides`: how long sides of images of open sizes are taken to be.
//! * `spatial`: stages without reduction.
//! * `padding`: what pads, as a box and a constant.
//! * `share`: how many loops threads share.
//! * `threads`: stages on machines with groups of threads.
//! * `texels`: functions whose arguments lie in textures.
//! * [`shared`]: layouts of shared memory without bank conflicts.
//! * `digits`: variables taken apart where quotients and remainders of them are.
//! * `transpose`: tiles of what is copied across.
//! * `empty`: reductions that may be over nothing.
//! * [`price`]: what a function costs, to compare layouts.
//! * [`options`]: the target as options of a pass.
//!
//! What an argument that is the same in every run may become is said by the attribute
//! [`FREE_LAYOUT`](tilewright_layout::marks::FREE_LAYOUT) of the function: the copy that such an argument is packed into is marked, so that
//! it can be lifted out of the function and made once.

pub mod axes;
pub mod blocks;
mod candidates;
mod canonical;
mod columns;
pub mod contraction;
mod digits;
mod empty;
pub mod generate;
pub mod groups;
mod halves;
pub mod integer;
mod merge;
mod open_rows;
pub mod options;
mod order;
mod padding;
mod parallel;
mod partial;
mod parts;
mod plain;
pub mod price;
mod reduction;
mod share;
pub mod shared;
mod sides;
mod spatial;
mod subdomains;
mod texels;
mod threads;
pub mod tile;
mod transforms;
mod transpose;
mod weave;

use std::sync::Arc;

use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::visit::Subst;
use tilewright_ir::{Attr, Buffer, Error, ExprKind, Fold, Module, Remarks, Result, TensorFunc};
use tilewright_schedule::{Schedule, Trace};
use tilewright_target::Target;
use tilewright_transform::lower::lower;
use tilewright_transform::names::unique_blocks;
use tilewright_transform::pass::{Pass, Run};

use crate::canonical::{follows, refusal, sole_reader};
use crate::contraction::{Contraction, is_free, places, steps};
use crate::groups::SplitGroups;
use crate::options::{CPU, FEATURES, TRIPLE, target};
use crate::parts::alone;
use crate::price::candidates;
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
    run: Run::Tensor(|f, given, why| {
        let made = others(f, &target(given)?, why)?;
        Ok(with_code(f, made, why, &|f| lower(f).map(drop)))
    }),
};

/// The passes that make automatic schedules.
pub static PASSES: &[&Pass] = &[&PASS, &STAGES, &integer::PASS, &shared::PASS];

/// Schedules every function for a machine: contractions, other reductions, and what is no reduction. Second, what
/// was done, as one trace: applied to the same module it gives the same result.
///
/// Where a primitive refuses, reductions stay as they are, with a remark, and other stages have fewer
/// primitives applied. Stages that are marked to be lifted stay as they are.
pub fn auto_schedule(
    module: &Module,
    target: &Target,
    why: &mut Remarks,
) -> Result<(Module, Trace)> {
    each(module, why, |name, func| {
        let mut sch = alone(name, func);
        if let Some(remarks) = by_threads(&mut sch, name, target) {
            return Tiled { schedule: Some(sch), remarks, untiled: Vec::new() };
        }
        let Tiled { schedule, mut remarks, .. } = function(name, func, target, TileCheck::Lower);
        let mut sch = schedule.unwrap_or(sch);
        remarks.extend(reduction::schedule(&mut sch, name, target).0);
        remarks.extend(spatial::schedule(&mut sch, name, false, target));
        Tiled { schedule: Some(sch), remarks, untiled: Vec::new() }
    })
}

/// The attribute of a function that says of which contractions a primitive refused every tile, and of which other
/// reductions every way, so that their loops are plain ones, and why: a list of texts.
pub const UNTILED: &str = "untiled";

/// How it is known that code can be made of a contraction of open sizes in tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileCheck {
    /// The function is lowered with each tile, and a tile that fails is refused.
    Lower,
    /// The caller lowers what comes out; where that fails, it asks again with [`TileCheck::Lower`].
    ByCaller,
}

/// Schedules the contractions of every function, as [`auto_schedule`] does. A function keeps what was refused
/// of a contraction without tiles ([`UNTILED`]).
///
/// # Errors
/// As [`auto_schedule`].
pub fn contractions(
    module: &Module,
    target: &Target,
    check: TileCheck,
    why: &mut Remarks,
) -> Result<(Module, Trace)> {
    // Threads compute tiles where all other loops are made.
    if target.groups.is_some() {
        return Ok((module.clone(), Trace::default()));
    }
    each(module, why, |name, func| function(name, func, target, check))
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
    let widened = if target.groups.is_none() { halves::widen_once(func, target) } else { None };
    let mut sch = alone(&name, &unique_blocks(widened.as_ref().unwrap_or(func)));
    let mut plain = Vec::new();
    match by_threads(&mut sch, &name, target) {
        Some(remarks) => why.extend(remarks),
        None => {
            let (remarks, untiled) = reduction::schedule(&mut sch, &name, target);
            plain = untiled;
            why.extend(remarks);
            why.extend(spatial::schedule(&mut sch, &name, true, target));
        }
    }
    if let Err(e) = empty::initialise(&mut sch, &name) {
        let mut func = func.clone();
        say_untiled(&mut func, vec![refusal("all", &e)]);
        why.push(e.context("its loops stay as they are"));
        return Ok(func);
    }
    let mut made = (**sch.func(&name)?).clone();
    made = plain::share_plain(&made, target).unwrap_or(made);
    say_untiled(&mut made, plain);
    Ok(made)
}

/// Schedules a function whose arguments lie in textures, or one for a machine with groups of threads; `None` for
/// any other, else what was refused.
fn by_threads(sch: &mut Schedule, name: &Arc<str>, target: &Target) -> Option<Vec<Error>> {
    if sch.func(name).is_ok_and(|f| texels::has_textures(f)) {
        return Some(texels::schedule(sch, name, target));
    }
    target.groups.as_ref().map(|groups| threads::schedule(sch, name, groups, target))
}

/// What [`others`] made of a function; the function itself, with a remark, where only of that code can be made, as
/// `lower` says: memory of open sizes that no pass can make smaller has no place in a kernel.
pub fn with_code(
    func: &TensorFunc,
    made: TensorFunc,
    why: &mut Remarks,
    lower: &dyn Fn(&TensorFunc) -> Result<()>,
) -> TensorFunc {
    if made.sizes().is_empty() {
        return made;
    }
    let Err(e) = lower(&made) else { return made };
    if lower(func).is_err() {
        return made;
    }
    let mut plain = func.clone();
    say_untiled(&mut plain, vec![refusal("all", &e)]);
    why.push(e.context("its loops stay as they are"));
    plain
}

/// Replaces each function by what a schedule makes of it, and joins the traces.
fn each(
    module: &Module,
    why: &mut Remarks,
    schedule: impl Fn(&Arc<str>, &TensorFunc) -> Tiled,
) -> Result<(Module, Trace)> {
    let mut out = module.clone();
    let mut trace = Trace::default();
    for (name, func) in module.tensors() {
        let Tiled { schedule, remarks, untiled } = schedule(name, func);
        why.extend(remarks);
        let sch = schedule.filter(|s| !s.trace().instructions.is_empty());
        let mut made = match &sch {
            Some(sch) => (**sch.func(name)?).clone(),
            None if untiled.is_empty() => continue,
            None => (**func).clone(),
        };
        trace.instructions.extend(sch.into_iter().flat_map(|s| s.trace().instructions.clone()));
        say_untiled(&mut made, untiled);
        out.insert(name.clone(), made);
    }
    Ok((out, trace))
}

/// Adds to what [`UNTILED`] says.
fn say_untiled(func: &mut TensorFunc, texts: Vec<String>) {
    if texts.is_empty() {
        return;
    }
    let mut all = match func.attrs.get(UNTILED) {
        Some(Attr::List(all)) => all.clone(),
        _ => Vec::new(),
    };
    all.extend(texts.into_iter().map(|text| Attr::Str(text.into())));
    func.attrs.insert(UNTILED.into(), Attr::List(all));
}

/// What became of the contractions of a function.
#[derive(Default)]
struct Tiled {
    /// The schedule; `None` where there is nothing to do.
    schedule: Option<Schedule>,
    /// What was refused.
    remarks: Vec<Error>,
    /// The contractions of which every tile was refused, and the reason.
    untiled: Vec<String>,
}

/// The schedule of the contractions of a function.
fn function(name: &Arc<str>, func: &TensorFunc, target: &Target, check: TileCheck) -> Tiled {
    if func.buffers().any(|b| !b.axis_separators.is_empty()) {
        return Tiled::default();
    }
    let mut remarks = Vec::new();
    let plain = SplitGroups::none(name, func);
    match blocks::schedule::schedule(&plain.schedule, name, func, target) {
        Some(Ok(schedule)) => {
            return Tiled { schedule: Some(schedule), remarks, untiled: Vec::new() };
        }
        Some(Err(e)) => remarks.push(e.context(format_args!("function `{name}`"))),
        None => {}
    }
    // Groups stay together where one of them gets no tiles.
    if let Some(apart) = groups::split_groups(name, func) {
        let found = tiles(name, apart, target, check);
        if found.schedule.is_some() {
            return found;
        }
        remarks.extend(found.remarks);
    }
    let apart = plain;
    match transforms::schedule(&apart.schedule, name, func, target) {
        Some(Ok(schedule)) => {
            return Tiled { schedule: Some(schedule), remarks, untiled: Vec::new() };
        }
        Some(Err(e)) => remarks.push(e.context(format_args!("function `{name}`"))),
        None => {}
    }
    let mut found = tiles(name, apart, target, check);
    found.remarks.splice(0..0, remarks);
    found
}

/// The tiles of a function; no schedule where there are none, or a contraction that was taken apart has
/// none.
fn tiles(name: &Arc<str>, apart: SplitGroups, target: &Target, check: TileCheck) -> Tiled {
    let mut sch = apart.schedule.clone();
    let Ok(func) = sch.func(name).cloned() else { return Tiled::default() };
    let Some(stages) = open_stages(&func) else { return Tiled::default() };
    let tiling = Tiling { name, func: &func, stages: &stages, apart: &apart, target, check };
    let (mut changed, mut tiled) = (false, Tiled::default());
    for (k, stage) in stages.iter().enumerate() {
        let (made, refused) = tiling.of_stage(&sch, k);
        if let (None, Some(first)) = (&made, refused.first()) {
            tiled.untiled.push(refusal(stage.name(), first));
        }
        let refused = refused.into_iter();
        tiled.remarks.extend(refused.map(|e| e.context(format_args!("function `{name}`"))));
        match made {
            Some(trial) => (sch, changed) = (trial, true),
            None if apart.blocks.contains(stage.name()) => return tiled,
            None => {}
        }
    }
    Tiled { schedule: changed.then_some(sch), ..tiled }
}

/// Most tiles of a contraction that are tried.
const TRIES: usize = 6;

/// The tiles of a function in the making.
struct Tiling<'a> {
    name: &'a Arc<str>,
    func: &'a TensorFunc,
    stages: &'a [Stage],
    apart: &'a SplitGroups,
    target: &'a Target,
    check: TileCheck,
}

impl Tiling<'_> {
    /// A schedule with tiles for a stage: the cheapest that no primitive refuses. `None` where there are none.
    /// Second, what was refused.
    fn of_stage(&self, sch: &Schedule, k: usize) -> (Option<Schedule>, Vec<Error>) {
        let mut refused = Vec::new();
        let Some((c, next)) = contraction(self.func, self.stages, k, |b| self.is_free(b)) else {
            return (None, refused);
        };
        let next = next.map(|e| e.name().clone());
        for (c, tile) in candidates(c, &self.stages[k], self.target).iter().take(TRIES) {
            match self.schedule_tile(sch, c, tile, next.as_deref()) {
                Ok(trial) => return (Some(trial), refused),
                Err(e) => refused.push(e.context(tile.text(c))),
            }
        }
        (None, refused)
    }

    fn is_free(&self, b: &Buffer) -> bool {
        let from = self.apart.copies.iter().find(|copy| copy.to == b.name);
        is_free(self.func, from.map_or(b, |copy| &copy.from))
    }

    /// A schedule with a tile for a contraction; what a refusal leaves half done is thrown away.
    fn schedule_tile(
        &self,
        sch: &Schedule,
        c: &Contraction,
        tile: &Tile,
        next: Option<&str>,
    ) -> Result<Schedule> {
        let copies = self
            .apart
            .copies
            .iter()
            .filter(|copy| c.operands.iter().any(|o| o.buffer.name == copy.to));
        let copies: Vec<Arc<str>> = copies.map(|copy| copy.block.clone()).collect();
        let mut trial = sch.clone();
        generate::tiled(&mut trial, self.name, c, tile, next, &copies, self.target)?;
        let func = trial.func(self.name)?;
        // It depends on what is derived from the tiles.
        if self.check == TileCheck::Lower && !func.sizes().is_empty() {
            lower(func)?;
        }
        Ok(trial)
    }
}

/// The contraction that a stage is, with the stage that alone reads its result, point by point.
/// `is_free` says which arguments have a free layout.
fn contraction<'a>(
    func: &TensorFunc,
    stages: &'a [Stage],
    k: usize,
    is_free: impl Fn(&Buffer) -> bool,
) -> Option<(Contraction, Option<&'a Stage>)> {
    let mut c = Contraction::recognise(&stages[k], is_free)?;
    let (allocs, _) = func.root_parts();
    for o in &mut c.operands {
        // What only moves is read where it comes from.
        o.made = allocs.contains(&o.buffer)
            && stages[..k]
                .iter()
                .any(|s| s.buffer == o.buffer && !matches!(s.value.kind(), ExprKind::Load(..)));
    }
    let next = sole_reader(allocs, stages, k).filter(|(at, _)| *at == k + 1);
    let epilogue = next.and_then(|(_, next)| Some((next, follows(&stages[k], next)?)));
    let (next, map) = epilogue.unzip();
    if let (Some(next), Some(map)) = (next, map) {
        let mut rename = Subst::vars(map);
        let at: Vec<_> = next.indices.iter().map(|i| rename.expr(i)).collect();
        c.places = places(&next.buffer, &at, &c.axes);
        c.out = match steps(&next.buffer, &at, &c.axes) {
            Some(steps) => steps.into_iter().map(Some).collect(),
            None => vec![None; c.axes.len()],
        };
    }
    Some((c, next))
}
