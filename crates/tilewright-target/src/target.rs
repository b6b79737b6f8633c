//! A target: what a machine offers to the code that is made for it.
//!
//! It is derived from the machine's names, and is the same wherever it is asked: a schedule for a
//! named processor does not depend on where it is made. Only [`Target::with_host`] asks the machine
//! that this process runs on, for what names do not say.

use tilewright_ir::{Result, TensorFunc};

use crate::caches::Caches;
use crate::costs::Costs;
use crate::features::{Arch, Features, SVE_LENGTHS, host_sve_bits};
use crate::memory::{self, MemoryScope};
use crate::tensor::{INSTRUCTIONS, TensorInstruction};
use crate::threads::ThreadGroups;

/// The vector registers of one core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vectors {
    /// Their widths in bytes, the widest first; at least one.
    pub bytes: &'static [usize],
    /// How many there are of the widest.
    pub registers: usize,
    /// Whether arithmetic takes one value in memory for all lanes; else it is loaded by an instruction of its
    /// own.
    pub broadcasts: bool,
    /// The bytes of elements whose lanes can be left out where vectors are loaded and stored.
    pub masks: &'static [usize],
    /// Whether the compiler of the target makes vectors of loops whose iterations lie side by side.
    pub by_compiler: bool,
}

impl Vectors {
    /// Whether lanes of elements of so many bytes can be left out where vectors are loaded and stored.
    pub fn leaves_out(&self, element_bytes: usize) -> bool {
        self.masks.contains(&element_bytes)
    }

    /// Whether masks lie in registers of their own, as with AVX-512 and SVE, and are not vectors themselves.
    pub fn has_mask_registers(&self) -> bool {
        !self.masks.is_empty() && self.registers >= 32
    }

    /// Elements of so many bytes in one of the widest registers, at least one.
    pub fn lanes(&self, element_bytes: usize) -> i64 {
        let widest = self.bytes.first().copied().unwrap_or(1);
        (widest / element_bytes.max(1)).max(1) as i64
    }

    fn from_features(features: &Features) -> Vectors {
        let (bytes, registers): (&[usize], usize) = match features.arch() {
            _ if features.has("avx512f") => (&[64, 32, 16], 32),
            _ if features.has("avx2") => (&[32, 16], 16),
            Arch::Aarch64 => match features.sve_bits() {
                Some(256) => (&[32, 16], 32),
                Some(_) => (&[64, 32, 16], 32),
                None => (&[16], 32),
            },
            Arch::Riscv64 if !features.has("v") => (&[8], 16),
            // Vectors are at least so long.
            Arch::Riscv64 if features.has("zvl512b") => (&[64, 32, 16], 32),
            Arch::Riscv64 if features.has("zvl256b") => (&[32, 16], 32),
            Arch::Riscv64 => (&[16], 32),
            // What every x86-64 has, and a guess for the others.
            Arch::X86_64 | Arch::Nvidia | Arch::Other => (&[16], 16),
        };
        let broadcasts = features.has("avx512f");
        let masks: &[usize] = match features.arch() {
            _ if features.has("avx512bw") && features.has("avx512vl") => &[2, 4, 8],
            _ if broadcasts || features.has("avx2") || features.sve_bits().is_some() => &[4, 8],
            _ => &[],
        };
        Vectors { bytes, registers, broadcasts, masks, by_compiler: true }
    }
}

/// A machine, by what it offers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Target {
    /// The family of machines, in LLVM's words: `x86_64-unknown-linux-gnu`. For a machine that LLVM
    /// does not know, whatever its backend calls it.
    pub triple: String,
    /// For example `znver4`, or empty for the oldest CPU of the triple.
    pub cpu: String,
    /// What is added to the CPU's features and taken away: `+avx512f,-avx512er`, or empty.
    pub features: String,
    /// All features together.
    known: Features,
    /// Vector registers.
    pub vectors: Vectors,
    pub caches: Caches,
    /// What work costs: as written, or as a machine was calibrated.
    pub costs: Costs,
    /// Cores; 1 where it is not known.
    pub cores: usize,
    pub scopes: Vec<MemoryScope>,
    /// Its groups of threads, where threads together are its vectors.
    pub groups: Option<ThreadGroups>,
    /// What a read from a texture costs, where one of as many bytes from a buffer costs 1: below that, values
    /// lie in textures where they can. `None` where there are none.
    pub texture_read: Option<f64>,
}

// No cost is NaN.
impl Eq for Target {}

impl Target {
    /// The machine of these names. What the names do not say is what such machines usually have.
    pub fn new(
        triple: impl Into<String>,
        cpu: impl Into<String>,
        features: impl Into<String>,
    ) -> Target {
        let (triple, cpu, features) = (triple.into(), cpu.into(), features.into());
        let known = Features::parse(&triple, &cpu, &features);
        let mut vectors = Vectors::from_features(&known);
        let caches = Caches::detect(&known, &cpu);
        let costs = Costs::written(&known);
        let mut scopes = MemoryScope::flat();
        let groups = ThreadGroups::of_family(&triple, &cpu);
        if groups.is_some() {
            // A thread computes single values.
            vectors.bytes = &[1];
            scopes.push(MemoryScope::new("shared", [1]));
        }
        Target {
            triple,
            cpu,
            features,
            known,
            vectors,
            caches,
            costs,
            cores: 1,
            scopes,
            groups,
            texture_read: None,
        }
    }

    /// The machine of a CPU's name under Linux, of whichever family has it.
    pub fn of_cpu(name: &str) -> Option<Target> {
        Arch::of_cpu(name).map(|arch| Target::new(arch.linux(), name, ""))
    }

    /// The machine that this process runs on, whose names are these: with its own caches, where the
    /// system says how large they are, and its cores.
    pub fn with_host(mut self) -> Target {
        // The system may let processes have shorter vectors than the processor has.
        if let Some((name, bits)) = SVE_LENGTHS.iter().find(|(name, _)| self.known.has(name))
            && host_sve_bits() != Some(*bits)
        {
            let comma = if self.features.is_empty() { "" } else { "," };
            let features = format!("{}{comma}-{name}", self.features);
            return Target::new(self.triple, self.cpu, features).with_host();
        }
        self.caches = Caches::host(self.caches);
        self.cores = crate::cores();
        self
    }

    /// The target with a further memory scope, or with one in the place of that of the same name.
    pub fn with_scope(mut self, scope: MemoryScope) -> Target {
        self.scopes.retain(|s| s.name != scope.name);
        self.scopes.push(scope);
        self
    }

    /// The memory of textures, where reads from it are cheaper.
    pub fn preferred_textures(&self) -> Option<&MemoryScope> {
        self.texture_read.filter(|cost| *cost < 1.0)?;
        self.scopes.iter().find(|s| &*s.name == "global.texture")
    }

    /// All features that code for it may use.
    pub fn known_features(&self) -> &Features {
        &self.known
    }

    /// The instructions that multiply tiles; none for most CPUs.
    pub fn tensor_instructions(&self) -> impl Iterator<Item = &'static TensorInstruction> {
        INSTRUCTIONS
            .iter()
            .filter(|i| i.arch == self.known.arch() && i.features.iter().all(|f| self.known.has(f)))
    }

    /// Whether the memory that a function uses is there: each buffer is in a scope of this
    /// target, with as many physical axes as the scope takes.
    ///
    /// # Errors
    /// [`Error::Unsupported`](tilewright_ir::Error::Unsupported) with the name of the buffer, at the
    /// first place where it is used.
    pub fn check_memory(&self, func: &TensorFunc) -> Result<()> {
        memory::check(&self.scopes, func)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX: &str = "x86_64-unknown-linux-gnu";

    #[test]
    fn the_widest_feature_counts() {
        assert_eq!(vectors_of(LINUX, "", "+avx2,+avx512f,-sse4a"), (64, 32));
        assert_eq!(vectors_of(LINUX, "", "+avx2,+avx512f,-avx512f"), (32, 16));
        assert_eq!(vectors_of(LINUX, "", "+avx2,-avx512f"), (32, 16));
        assert_eq!(vectors_of(LINUX, "", ""), (16, 16));
        assert_eq!(vectors_of(LINUX, "x86-64-v3", ""), (32, 16));
        assert_eq!(vectors_of(LINUX, "znver5", ""), (64, 32));
        assert_eq!(vectors_of("aarch64-apple-darwin", "", "+neon"), (16, 32));
        let arm = "aarch64-unknown-linux-gnu";
        assert_eq!(vectors_of(arm, "neoverse-v1", ""), (32, 32));
        assert_eq!(vectors_of(arm, "neoverse-v1", "-sve256b"), (16, 32));
        assert_eq!(vectors_of(arm, "", "+sve512b"), (64, 32));
        let riscv = "riscv64-unknown-linux-gnu";
        assert_eq!(vectors_of(riscv, "", "").0, 8, "pairs of registers");
        assert_eq!(vectors_of(riscv, "", "+v"), (16, 32));
        assert_eq!(vectors_of(riscv, "", "+v,+zvl256b"), (32, 32));
        assert_eq!(vectors_of(riscv, "sifive-x280", ""), (64, 32));
        assert_eq!(vectors_of(riscv, "sifive-x280", "-v").0, 8);
        let wide = Target::new(LINUX, "znver5", "").vectors;
        assert_eq!((wide.lanes(4), wide.lanes(0), wide.lanes(100)), (16, 64, 1));
    }

    fn vectors_of(triple: &str, cpu: &str, list: &str) -> (usize, usize) {
        let target = Target::new(triple, cpu, list);
        (target.vectors.bytes[0], target.vectors.registers)
    }

    #[test]
    fn tensor_instructions_follow_from_features() {
        assert!(instruction_names(LINUX, "x86-64", "").is_empty());
        assert_eq!(instruction_names(LINUX, "x86-64-v3", ""), ["vpmaddwd_256"]);
        assert_eq!(
            instruction_names(LINUX, "", "+amx-tile"),
            Vec::<&str>::new(),
            "no arithmetic by itself"
        );
        assert_eq!(instruction_names(LINUX, "", "+amx-bf16"), ["tdpbf16ps"]);
        assert_eq!(instruction_names(LINUX, "", "+amx-bf16,-amx-tile"), Vec::<&str>::new());
        assert_eq!(
            instruction_names(LINUX, "", "+amx-int8"),
            ["tdpbssd", "tdpbsud", "tdpbusd", "tdpbuud"]
        );
        assert!(instruction_names("aarch64-apple-darwin", "apple-a15", "").contains(&"bfmmla"));
        assert!(
            instruction_names("aarch64-apple-darwin", "", "+amx-bf16").is_empty(),
            "of another family"
        );
    }

    fn instruction_names(triple: &str, cpu: &str, list: &str) -> Vec<&'static str> {
        let target = Target::new(triple, cpu, list);
        target.tensor_instructions().map(|i| i.name).collect::<Vec<_>>()
    }

    #[test]
    fn a_named_target_is_the_same_everywhere_and_the_host_is_this_machine() {
        let named = Target::new(LINUX, "znver3", "");
        assert_eq!(named, Target::new(LINUX, "znver3", ""));
        assert_eq!(named.cores, 1);
        let arm = Target::new("aarch64-unknown-linux-gnu", "neoverse-v1", "").with_host();
        let length = arm.known_features().sve_bits();
        assert!(
            length.is_none() || length == host_sve_bits(),
            "a length that is not this machine's"
        );
        let host = named.clone().with_host();
        assert_eq!(host.cores, crate::cores());
        assert_eq!((host.vectors, host.scopes), (named.vectors, named.scopes));
        let Caches { l1, l2, .. } = host.caches;
        assert!(0 < l1 && l1 <= l2, "{:?}", host.caches);
    }
}
