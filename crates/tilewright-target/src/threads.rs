//! Groups of threads, as machines have them whose vectors are threads: GPUs.

use tilewright_ir::{Error, Result};

/// What the triple of a target is for GPUs of NVIDIA; its CPU is their architecture, such as `sm_80`.
pub const CUDA: &str = "cuda";

/// What the groups of threads of a machine offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadGroups {
    /// Threads that run one instruction together.
    pub warp: i64,
    /// Banks of the memory that a group shares: words of 32 bits that are accessed at once.
    pub banks: i64,
    /// Bytes of global memory that one access moves.
    pub segment: i64,
    /// Registers of 32 bits that a thread may have.
    pub registers: i64,
    /// Bytes of memory that a group shares.
    pub shared: i64,
    /// Threads of the largest group.
    pub threads: i64,
}

impl ThreadGroups {
    /// Those of a family of machines, where it has any (CUDA C++ Programming Guide, table of technical
    /// specifications for each compute capability: the same from 5.0 on).
    pub(crate) fn of_family(triple: &str) -> Option<ThreadGroups> {
        (triple == CUDA).then_some(ThreadGroups {
            warp: 32,
            banks: 32,
            segment: 128,
            registers: 255,
            shared: 48 << 10,
            threads: 1024,
        })
    }
}

/// Refuses what is no architecture of NVIDIA's GPUs; no name is the oldest that is known.
///
/// # Errors
/// [`Error::Input`] for other names.
pub fn check_architecture(name: &str) -> Result<()> {
    let number = name.strip_prefix("sm_").map(|n| n.trim_end_matches(['a', 'f']));
    let known = number.and_then(|n| n.parse::<u32>().ok()).is_some_and(|n| n >= 50);
    if known || name.is_empty() {
        return Ok(());
    }
    let error = Error::input(format!("`{name}` is no architecture of NVIDIA's GPUs"));
    Err(error.help("they are called `sm_80`, `sm_90`, from `sm_50` on"))
}
