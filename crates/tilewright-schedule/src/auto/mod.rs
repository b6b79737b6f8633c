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

use tilewright_analysis::{Stage, stages};
use tilewright_ir::{Stmt, TensorFunc};
use tilewright_target::Target;
use tilewright_transform::pass::{Pass, Run, Text};

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

/// `auto_schedule` by name.
pub const PASS: Pass = Pass {
    name: "auto_schedule",
    summary: "give functions in canonical form loops that suit a processor",
    options: &[&CPU, &FEATURES, &TRIPLE],
    run: Run::Tensor(|f, given, _| {
        let (triple, cpu, list) = (given.get(&TRIPLE)?, given.get(&CPU)?, given.get(&FEATURES)?);
        tilewright_target::check(&triple, &cpu, &list, u32::MAX, None)?;
        Ok(auto(f, &Target::new(triple, cpu, list)))
    }),
};

/// A function with the same interface and results, whose loops suit the target.
///
/// The order of a floating-point reduction may change (vectors of partial results). A function with
/// a loop of more iterations than `int32` counts stays as it is, and so does one with a buffer of
/// several physical axes: these loops are for flat memory. Whether the target has other memory is
/// for its backend to say.
pub fn auto(func: &TensorFunc, target: &Target) -> TensorFunc {
    let Some(stages) = stages(func) else { return func.clone() };
    if stages.iter().flat_map(Stage::iters).any(|(_, extent, _)| !emit::fits(extent)) {
        return func.clone();
    }
    let (allocs, _) = func.root_parts();
    if func.buffers().chain(allocs).any(|b| !b.axis_separators.is_empty()) {
        return func.clone();
    }
    let mut allocs = allocs.to_vec();
    let mut views = emit::Views::default();
    let mut out = Vec::new();
    let mut k = 0;
    while k < stages.len() {
        let stage = &stages[k];
        k += 1;
        if !stage.is_reduction() {
            out.push(spatial::schedule(stage, &mut views));
            continue;
        }
        let epilogue = stages.get(k).filter(|next| {
            let used_once = |s: &Stage| s.loads().iter().all(|(b, _)| *b != stage.buffer);
            allocs.contains(&stage.buffer)
                && stages[k + 1..].iter().all(used_once)
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
