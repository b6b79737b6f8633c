//! The target as options of a pass. Not this machine's: the result of a pass does not depend on where
//! it runs.

use tilewright_ir::Result;
use tilewright_target::Target;
use tilewright_transform::pass::{Given, Text};

/// The architecture to schedule for.
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
