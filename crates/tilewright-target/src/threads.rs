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
    /// What work costs.
    pub costs: GroupCosts,
}

/// What work costs on a machine with groups of threads: the constants of its cost model, whose cycles are those of the
/// whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupCosts {
    /// Processors, each of which runs groups of its own.
    pub processors: i64,
    /// Multiplications with additions of `float32` that start in a cycle.
    pub multiply_adds: i64,
    /// The same of floats of 16 bits by tensor instructions.
    pub tensor_multiply_adds: i64,
    /// Bytes that go between the machine and its memory in a cycle.
    pub bytes: i64,
    /// Cycles from one kernel to the next one.
    pub launch: i64,
}

impl GroupCosts {
    /// Those of a machine of which only the number of processors is known: as each one of an A100 (NVIDIA's data
    /// sheet: 64 multiplications and 1024 by tensor instructions a cycle, 1555 GB/s for 108 of them at 1.41 GHz).
    pub fn of_processors(processors: i64) -> GroupCosts {
        GroupCosts {
            processors,
            multiply_adds: 64 * processors,
            tensor_multiply_adds: 1024 * processors,
            bytes: 10 * processors,
            launch: 3500,
        }
    }

    /// Those of the largest GPU of an architecture. From `sm_90` on, they are those of an H100 (data sheet: 132
    /// processors at 1.755 GHz, 3350 GB/s); instructions of a warp get three fifths of the rate of its tensor cores.
    fn of_architecture(name: &str) -> GroupCosts {
        match version(name) {
            Some(90..) => GroupCosts {
                processors: 132,
                multiply_adds: 132 * 128,
                tensor_multiply_adds: 132 * 1228,
                bytes: 1909,
                launch: 4300,
            },
            _ => GroupCosts::of_processors(108),
        }
    }
}

impl ThreadGroups {
    /// Those of a family of machines, where it has any (CUDA C++ Programming Guide, table of technical
    /// specifications for each compute capability: the same from 5.0 on).
    pub(crate) fn of_family(triple: &str, cpu: &str) -> Option<ThreadGroups> {
        (triple == CUDA).then_some(ThreadGroups {
            warp: 32,
            banks: 32,
            segment: 128,
            registers: 255,
            shared: 48 << 10,
            threads: 1024,
            costs: GroupCosts::of_architecture(cpu),
        })
    }
}

/// Refuses what is no architecture of NVIDIA's GPUs; no name is the oldest that is known.
///
/// # Errors
/// [`Error::Input`] for other names.
pub fn check_architecture(name: &str) -> Result<()> {
    if version(name).is_some_and(|n| n >= 50) || name.is_empty() {
        return Ok(());
    }
    let error = Error::input(format!("`{name}` is no architecture of NVIDIA's GPUs"));
    Err(error.help("they are called `sm_80`, `sm_90`, from `sm_50` on"))
}

/// The number in the name of an architecture: 90 of `sm_90a`.
fn version(name: &str) -> Option<u32> {
    name.strip_prefix("sm_")?.trim_end_matches(['a', 'f']).parse().ok()
}
