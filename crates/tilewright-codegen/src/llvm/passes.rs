//! The passes of LLVM that optimise kernels.
//!
//! A kernel comes with its loops, vectors and unroll factors decided, its helpers marked to be inlined, and calls to
//! nothing else. So the passes are those over functions of LLVM's own second level, in its order, and none
//! between functions: these take a tenth of LLVM's time for kernels of fixed sizes, and a third for those of open
//! ones, and change no kernel. The third level takes loops apart that the schedule left whole, so that more
//! code takes longer to compile and runs no faster.
//!
//! Some passes of the second level are left out, since loops count from zero in a type that holds their indices, and
//! conditions that values decide are gone: `indvars`, `sccp`, `bdce`, and `correlated-propagation` for a second time.
//! Together they take a sixth of LLVM's time; without them kernels take 0.98 to 1.05 of theirs. Some that look as
//! needless are not: without the first `correlated-propagation` and `loop-load-elim` `TopK` takes 2.8 times as long,
//! and without `loop-unroll` recurrences do (`bench/compile.py`, `bench/sweep.py`).

use std::ffi::{CStr, c_int};

use super::OptLevel;

/// First major version whose `instcombine` reports that it would find more to do, unless told not to.
const VERIFIES_FIXPOINT: u32 = 18;

macro_rules! kernels {
    ($combine:literal) => {
        concat!(
            "always-inline,",
            "function(sroa,early-cse<memssa>,simplifycfg,correlated-propagation,", $combine, ",reassociate,",
            "loop-mssa(loop-instsimplify,loop-simplifycfg,licm,loop-rotate,licm,simple-loop-unswitch<nontrivial>),",
            "simplifycfg,", $combine, ",loop(loop-idiom,loop-deletion,loop-unroll-full),",
            "sroa,gvn,", $combine, ",adce,dse,loop-mssa(licm),",
            "simplifycfg,", $combine, "),",
            "function(loop(loop-rotate,loop-deletion),loop-vectorize,loop-load-elim,", $combine, ",simplifycfg,",
            "slp-vectorizer,vector-combine,", $combine, ",loop-unroll<O2>,sroa,", $combine, ",loop-mssa(licm),",
            "instsimplify,div-rem-pairs,simplifycfg),",
            "globaldce,constmerge\0"
        )
    };
}

/// LLVM's text for the passes of a level in a major version, empty for none.
///
/// The texts are fixed, and those that this version knows: a malformed one may end the process.
pub(crate) fn pipeline(level: OptLevel, major: u32) -> &'static CStr {
    let text = match level {
        OptLevel::None => "\0",
        OptLevel::Less => "default<O1>\0",
        _ if major < VERIFIES_FIXPOINT => kernels!("instcombine"),
        _ => kernels!("instcombine<no-verify-fixpoint>"),
    };
    CStr::from_bytes_with_nul(text.as_bytes()).unwrap_or_default()
}

/// `LLVMCodeGenOptLevel` of a level.
pub(crate) fn code_level(level: OptLevel) -> c_int {
    match level {
        OptLevel::None => 0,
        OptLevel::Less => 1,
        _ => 3,
    }
}
