//! The automatic schedule for CPUs, as far as it writes loops of its own.
//!
//! [`auto()`] gives the reductions of a function in canonical form (see `tilewright_analysis::stage`)
//! loops that suit a processor: axes fused where memory allows it, register tiles, the outer
//! loops in parallel. It looks only at the structure and the accesses, never at names. Statements of
//! another form stay as they are: their own loops are their schedule. So do stages without reduction
//! that no reduction takes in ([`left`]).
//!
//! * [`affine`], [`axes`]: accesses as affine functions, and the fusion of variables into axes.
//! * [`padding`]: what pads, as a box and a constant.
//! * [`reduce`]: loops for reductions.
//! * [`tiles`], [`slide`]: tiles along an axis, and rows of windows that overlap.
//! * [`pack`]: strided loads made contiguous by a layout of their own.
//! * [`window`]: windows over padded images, of which no copy is made.
//! * [`emit`]: building blocks of loops.

pub mod affine;
pub mod axes;
pub mod emit;
pub mod pack;
pub mod padding;
pub mod reduce;
pub mod slide;
pub mod tiles;
pub mod window;

use std::collections::{HashMap, HashSet};

use tilewright_analysis::Stage;
use tilewright_analysis::stage::stage;
use tilewright_ir::visit::accessed;
use tilewright_ir::{Buffer, Dim, Result, Stmt, StmtKind, TensorFunc};
use tilewright_target::Target;
use tilewright_transform::pass::{Given, Text};

use crate::auto::window::Windows;

/// The architecture to schedule for. Not this machine's: the result of a pass does not depend on
/// where it runs.
pub const TRIPLE: Text = Text {
    name: "triple",
    summary: "the target, as LLVM names it",
    default: "x86_64-unknown-linux-gnu",
};

/// The features of the processor to schedule for.
pub const FEATURES: Text =
    Text { name: "features", summary: "CPU features in LLVM's notation", default: "+avx2,+fma" };

/// The processor to schedule for.
pub const CPU: Text = Text { name: "cpu", summary: "the processor, as LLVM names it", default: "" };

/// The target that the options of a pass say.
///
/// # Errors
/// `Input` for a processor or a feature that there is not.
pub fn target(given: &Given<'_>) -> Result<Target> {
    let (triple, cpu, list) = (given.get(&TRIPLE)?, given.get(&CPU)?, given.get(&FEATURES)?);
    tilewright_target::check(&triple, &cpu, &list, u32::MAX, None)?;
    Ok(Target::new(triple, cpu, list))
}

/// The statements of a function, and which of them are stages.
struct Stages<'a> {
    allocs: &'a [Buffer],
    list: Vec<Stmt>,
    stages: Vec<Option<Stage>>,
}

impl<'a> Stages<'a> {
    /// `None` for a function that stays as it is.
    fn of(func: &'a TensorFunc) -> Option<Self> {
        let (allocs, body) = func.root_parts();
        if func.root().is_some_and(|r| !r.is_plain_root()) {
            return None;
        }
        let list = match body.kind() {
            StmtKind::Seq(list) => list.clone(),
            _ => vec![body.clone()],
        };
        let stages: Vec<Option<Stage>> = list.iter().map(stage).collect();
        let iters = stages.iter().flatten().flat_map(Stage::dims);
        // Variables of the loops that are made here are `int32`.
        let counted = iters.map(|(_, extent, _)| extent).all(Dim::fits_int32);
        let flat = func.buffers().chain(allocs).all(|b| b.axis_separators.is_empty());
        (counted && flat).then_some(Stages { allocs, list, stages })
    }

    fn has_reductions(&self) -> bool {
        self.stages.iter().flatten().any(Stage::is_reduction)
    }

    /// For each statement the stage behind it that maps the reduction which it is.
    fn epilogues(&self) -> Vec<Option<&Stage>> {
        let Stages { allocs, list, stages } = self;
        let epilogue = |k: usize| {
            let stage = stages[k].as_ref().filter(|s| s.is_reduction())?;
            stages.get(k + 1).and_then(Option::as_ref).filter(|next| {
                let unread = |s: &Stmt| !accessed(s).0.contains(&stage.buffer);
                allocs.contains(&stage.buffer)
                    && list[k + 2..].iter().all(unread)
                    && reduce::follows(stage, next).is_some()
            })
        };
        (0..list.len()).map(epilogue).collect()
    }

    /// The stages that pad an image, with the reduction that does without it, by their numbers.
    fn windows(&self) -> Vec<(usize, usize, Windows<'_>)> {
        let pairs = window::pairs(&self.list, &self.stages, |b| self.allocs.contains(b));
        let windows = pairs.into_iter().filter_map(|(pad, reader)| {
            let (made, stage) = (self.stages[pad].as_ref()?, self.stages[reader].as_ref()?);
            Some((pad, reader, Windows::of(made, stage)?))
        });
        windows.collect()
    }
}

/// The stages without reduction that [`auto`] leaves as they are, in order: those that no reduction
/// takes in.
pub fn left(func: &TensorFunc, target: &Target) -> Vec<Stage> {
    let Some(all) = Stages::of(func) else { return Vec::new() };
    let mut taken: HashSet<usize> = HashSet::new();
    if all.has_reductions() {
        let epilogues = all.epilogues();
        for (pad, reader, windows) in all.windows() {
            if windows.serves(epilogues[reader], target) {
                taken.extend([pad].into_iter().chain(epilogues[reader].map(|_| reader + 1)));
            }
        }
        for (k, stage) in all.stages.iter().enumerate() {
            if let (Some(stage), Some(next)) = (stage, epilogues[k])
                && reduce::has_loops(stage, Some(next))
            {
                taken.insert(k + 1);
            }
        }
    }
    let stages = all.stages.into_iter().enumerate().filter(|(k, _)| !taken.contains(k));
    stages.filter_map(|(_, s)| s).filter(|s| !s.is_reduction()).collect()
}

/// A function with the same interface and results, whose reductions have loops that suit the target.
///
/// The order of a floating-point reduction may change (vectors of partial results). Statements of
/// another form stay as they are: their own loops are their schedule. So do a function with a loop of
/// more iterations than `int32` counts and one with a buffer of several physical axes: these loops
/// are for flat memory. Whether the target has other memory is for its backend to say.
pub fn auto(func: &TensorFunc, target: &Target) -> TensorFunc {
    let Some(all) = Stages::of(func).filter(Stages::has_reductions) else { return func.clone() };
    let mut views = emit::Views::default();
    let epilogues = all.epilogues();
    let windows = all.windows().into_iter().filter_map(|(pad, reader, windows)| {
        let stmt = windows.schedule(epilogues[reader], target, &mut views)?;
        Some((reader, (pad, stmt)))
    });
    let windows: HashMap<usize, (usize, Stmt)> = windows.collect();
    let mut allocs = all.allocs.to_vec();
    let mut out = Vec::new();
    let mut k = 0;
    while k < all.list.len() {
        let at = k;
        k += 1;
        let Some(stage) = &all.stages[at] else {
            out.push(all.list[at].clone());
            continue;
        };
        if windows.values().any(|w| w.0 == at) {
            allocs.retain(|b| *b != stage.buffer);
            continue;
        }
        let of_window = windows.get(&at).map(|w| w.1.clone());
        match of_window.or_else(|| reduce::schedule(stage, epilogues[at], target, &mut views)) {
            Some(stmt) => {
                if epilogues[at].is_some() {
                    allocs.retain(|b| *b != stage.buffer);
                    k += 1;
                }
                out.push(stmt);
            }
            None => out.push(stage.stmt.clone()),
        }
    }
    let body = views.define(Stmt::seq(out));
    let body = allocs.iter().rev().fold(body, |body, b| Stmt::allocate(b, body));
    TensorFunc { body, ..func.clone() }
}
