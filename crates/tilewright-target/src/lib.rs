//! Targets: what a machine offers, and the interface of the backends that make code for it.
//!
//! A processor is named as LLVM names it: a triple, a CPU, and a list of features (`+avx2,-fma`)
//! that adds to those of the CPU or takes away from them. This crate is the one place that reads
//! such names:
//!
//! * [`features`]: the instructions that code may use; [`check`] refuses names that LLVM does not
//!   know (it would ignore them, or end the process).
//! * [`target`]: a [`Target`], which says what a machine offers: vectors, registers, caches, cores,
//!   tensor instructions, memory scopes.
//! * [`costs`]: the constants of the cost model, as they are written or calibrated.
//! * [`tensor`]: tensor instructions, with the layouts that they take their operands in.
//! * [`memory`]: memory scopes, with the physical ranks that they take.
//! * [`backend`]: lowered functions in, something that runs out; [`abi`]: what kernels and their
//!   callers agree on; [`device`]: memory that the host does not address.
//!
//! ```
//! use tilewright_target::{Features, Target};
//! let linux = "x86_64-unknown-linux-gnu";
//! let features = Features::parse(linux, "x86-64-v3", "+gfni,-avx");
//! assert!(features.has("bmi2") && features.has("gfni") && !features.has("fma"));
//! assert_eq!(Target::new(linux, "x86-64-v3", "").vectors.lanes(4), 8);
//! assert!(tilewright_target::check(linux, "x86-64-v7", "", 22, None).is_err());
//! ```
//!
//! **Architecture invariant:** schedules, graph passes and the runtime ask a [`Target`] or a
//! [`Backend`], and know no processor by its name.

pub mod abi;
pub mod backend;
mod caches;
pub mod costs;
mod cpus;
pub mod device;
pub mod features;
pub mod memory;
pub mod target;
pub mod tensor;
mod threads;

pub use backend::{Backend, Code, CodeOptions, OptLevel};
pub use caches::Caches;
pub use costs::{Costs, PARALLEL_WORK, UPDATES};
pub use device::{Device, DeviceIdentity, DeviceMemory};
pub use features::{Arch, Features, SVE_LENGTHS, check, for_llvm, host_sve_bits};
pub use memory::MemoryScope;
pub use target::{Target, Vectors};
pub use tensor::{
    LOAD_MATRIX, MATRIX_ROW, TENSOR_INSTRUCTION, TensorInstruction, Tile, WarpOperand, instruction,
};
pub use threads::{
    ASYNC_COPY, CUDA, DOUBLE_BUFFER, EXCHANGED_ROWS, EXPECTED, ExchangedRows, GroupCosts,
    ThreadGroups, check_architecture,
};

/// Cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What the machine does at a moment, as far as the system says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct State {
    /// How many threads ran or waited for a core, on average over the last minute.
    pub load: Option<f64>,
    /// The fastest core's clock, in megahertz.
    pub clock: Option<f64>,
}

impl State {
    /// The state now.
    pub fn now() -> State {
        State {
            load: first_number(&read_or_empty("/proc/loadavg")),
            clock: fastest_clock(&read_or_empty("/proc/cpuinfo")),
        }
    }
}

fn read_or_empty(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

fn fastest_clock(cpuinfo: &str) -> Option<f64> {
    let clocks = cpuinfo.lines().filter_map(|line| line.strip_prefix("cpu MHz")?.split_once(": "));
    clocks.filter_map(|(_, clock)| clock.trim().parse().ok()).max_by(f64::total_cmp)
}

/// The machine that this process runs on, in words that tell machines apart: its processor and its
/// caches, as far as the system says.
pub fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let name = name.map_or(std::env::consts::ARCH, |(_, name)| name.trim());
    let Caches { l1, l2, l3, .. } = Caches::host(Caches { line: 0, l1: 0, l2: 0, l3: 0 });
    format!("{name}, caches of {l1}, {l2} and {l3} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_read_from_the_texts_of_the_system() {
        assert_eq!(first_number("3.88 3.46 1.86 4/120 999\n"), Some(3.88));
        let cores =
            "processor\t: 0\ncpu MHz\t\t: 2600.000\n\nprocessor\t: 1\ncpu MHz\t\t: 3100.5\n";
        assert_eq!(fastest_clock(cores), Some(3100.5));
        assert_eq!((first_number(""), fastest_clock("model name\t: x\n")), (None, None));
    }
}
