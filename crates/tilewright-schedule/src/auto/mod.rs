//! The automatic schedule for CPUs.
//!
//! [`auto`] gives a function in canonical form (see `tilewright_analysis::stage`) loops that
//! suit a processor: axes fused where memory allows it, reductions in register tiles, the outer
//! loops in parallel. It looks only at the structure and the accesses, never at names. A function
//! of another form comes back as it is: its own loops are its schedule.
//!
//! * [`affine`], [`axes`]: accesses as affine functions, and the fusion of variables into axes.
//! * [`spatial`], [`reduce`]: loops for the two kinds of stages.
//! * [`pack`]: strided loads made contiguous by a layout of their own.
//! * [`emit`]: building blocks of loops.

pub mod affine;
pub mod axes;
pub mod emit;
pub mod pack;
pub mod reduce;
pub mod spatial;

use tilewright_analysis::Stage;
use tilewright_analysis::stage::stage;
use tilewright_ir::visit::accessed;
use tilewright_ir::{Result, Stmt, StmtKind, TensorFunc};
use tilewright_target::Target;
use tilewright_transform::pass::{Given, Pass, Run, Text};

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

/// `schedule_stages` by name.
pub const PASS: Pass = Pass {
    name: "schedule_stages",
    summary: "give stages in canonical form loops that suit a processor",
    options: &[&CPU, &FEATURES, &TRIPLE],
    run: Run::Tensor(|f, given, _| Ok(auto(f, &target(given)?))),
};

/// The target that the options of a pass say.
///
/// # Errors
/// `Input` for a processor or a feature that there is not.
pub fn target(given: &Given<'_>) -> Result<Target> {
    let (triple, cpu, list) = (given.get(&TRIPLE)?, given.get(&CPU)?, given.get(&FEATURES)?);
    tilewright_target::check(&triple, &cpu, &list, u32::MAX, None)?;
    Ok(Target::new(triple, cpu, list))
}

/// A function with the same interface and results, whose stages have loops that suit the target.
///
/// The order of a floating-point reduction may change (vectors of partial results). Statements of
/// another form stay as they are: their own loops are their schedule. So do a function with a loop of
/// more iterations than `int32` counts and one with a buffer of several physical axes: these loops
/// are for flat memory. Whether the target has other memory is for its backend to say.
pub fn auto(func: &TensorFunc, target: &Target) -> TensorFunc {
    let (allocs, body) = func.root_parts();
    if func.root().is_some_and(|r| !r.is_plain_root()) {
        return func.clone();
    }
    let list = match body.kind() {
        StmtKind::Seq(list) => list.clone(),
        _ => vec![body.clone()],
    };
    let stages: Vec<Option<Stage>> = list.iter().map(stage).collect();
    let iters = stages.iter().flatten().flat_map(Stage::dims);
    let counted = iters.map(|(_, extent, _)| extent).all(emit::fits);
    let flat = func.buffers().chain(allocs).all(|b| b.axis_separators.is_empty());
    if !counted || !flat || stages.iter().all(Option::is_none) {
        return func.clone();
    }
    let mut allocs = allocs.to_vec();
    let mut views = emit::Views::default();
    let mut out = Vec::new();
    let mut k = 0;
    while k < list.len() {
        let stmt = &list[k];
        let found = &stages[k];
        k += 1;
        let Some(stage) = found else {
            out.push(stmt.clone());
            continue;
        };
        if !stage.is_reduction() {
            out.push(spatial::schedule(stage, &mut views));
            continue;
        }
        let epilogue = stages.get(k).and_then(Option::as_ref).filter(|next| {
            let unread = |s: &Stmt| !accessed(s).0.contains(&stage.buffer);
            allocs.contains(&stage.buffer)
                && list[k + 1..].iter().all(unread)
                && reduce::follows(stage, next).is_some()
        });
        match reduce::schedule(stage, epilogue, target, &mut views) {
            Some(stmt) => {
                if epilogue.is_some() {
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
