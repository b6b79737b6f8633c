//! The instructions that code for a processor may use, from the processor's names.

use std::collections::BTreeSet;

use tilewright_ir::suggest::closest;
use tilewright_ir::{Error, Result};

use crate::cpus::{self, Cpu};
use crate::threads::{CUDA, check_architecture};

/// A family of processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
    /// 64-bit RISC-V.
    Riscv64,
    /// GPUs of NVIDIA.
    Nvidia,
    /// One whose CPUs and features are not known here.
    Other,
}

impl Arch {
    pub fn from_triple(triple: &str) -> Arch {
        match triple.split('-').next().unwrap_or_default() {
            "x86_64" => Arch::X86_64,
            "aarch64" | "arm64" => Arch::Aarch64,
            "riscv64" => Arch::Riscv64,
            CUDA => Arch::Nvidia,
            _ => Arch::Other,
        }
    }

    /// The family that has a CPU of this name.
    pub fn of_cpu(name: &str) -> Option<Arch> {
        [Arch::X86_64, Arch::Aarch64, Arch::Riscv64]
            .into_iter()
            .find(|a| a.find_cpu(name).is_some())
    }

    /// A machine of the family under Linux, in LLVM's words.
    pub(crate) fn linux(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86_64-unknown-linux-gnu",
            Arch::Aarch64 => "aarch64-unknown-linux-gnu",
            Arch::Riscv64 => "riscv64-unknown-linux-gnu",
            Arch::Nvidia | Arch::Other => "",
        }
    }

    fn cpus(self) -> &'static [Cpu] {
        match self {
            Arch::X86_64 => cpus::X86_64,
            Arch::Aarch64 => cpus::AARCH64,
            Arch::Riscv64 => cpus::RISCV64,
            Arch::Nvidia | Arch::Other => &[],
        }
    }

    /// A CPU, and those that it is like, the nearest first.
    pub(crate) fn family(self, cpu: &str) -> impl Iterator<Item = &'static Cpu> {
        std::iter::successors(self.find_cpu(cpu), move |c| self.find_cpu(c.like))
    }

    fn find_cpu(self, name: &str) -> Option<&'static Cpu> {
        self.cpus().iter().find(|c| c.names().any(|n| n == name))
    }

    /// Features by name that are known here: those of the CPUs, those that no CPU has unless the system
    /// lets it ([`SYSTEM`]), and lengths of vectors that none of the CPUs has.
    fn features(self) -> impl Iterator<Item = &'static str> {
        let system = match self {
            Arch::X86_64 => SYSTEM,
            Arch::Riscv64 => LENGTHS,
            Arch::Aarch64 | Arch::Nvidia | Arch::Other => &[],
        };
        let sve = SVE_LENGTHS.iter().map(|(name, _)| *name).filter(move |_| self == Arch::Aarch64);
        let stated = self.cpus().iter().flat_map(|c| c.more.split_whitespace());
        stated.chain(system.iter().copied()).chain(sve)
    }
}

/// Features of x86-64 that the system has to allow, so that no CPU has them by its name alone.
const SYSTEM: &[&str] = &["amx-bf16", "amx-complex", "amx-fp16", "amx-int8", "amx-tile"];

/// The least length of RISC-V's vectors in bits, as a feature, the shortest first. Each brings the one
/// before it.
pub(crate) const LENGTHS: &[&str] = &["zvl128b", "zvl256b", "zvl512b", "zvl1024b"];

/// The exact length of SVE's vectors in bits, as a feature. LLVM has no such features: code gets the length as
/// `vscale_range`, and vectors of that many bits become SVE's. Without one of these, vectors are NEON's.
pub const SVE_LENGTHS: &[(&str, usize)] =
    &[("sve256b", 256), ("sve512b", 512), ("sve1024b", 1024), ("sve2048b", 2048)];

/// The length of SVE's vectors on the machine that this process runs on, in bits; `None` where the system does
/// not say one. Source: Linux, `/proc/sys/abi/sve_default_vector_length` (bytes).
pub fn host_sve_bits() -> Option<usize> {
    if !cfg!(target_arch = "aarch64") {
        return None;
    }
    let text = std::fs::read_to_string("/proc/sys/abi/sve_default_vector_length").ok()?;
    text.trim().parse::<usize>().ok()?.checked_mul(8)
}

/// Features that need others: the second column holds prefixes of names, or whole names with `=`.
const NEEDS: &[(&str, &str)] = &[
    ("avx512", "=avx512f"),
    ("=avx512f", "=avx2"),
    ("=avx512f", "=fma"),
    ("=avx512f", "=f16c"),
    ("=avx2", "=avx"),
    ("=fma", "=avx"),
    ("=f16c", "=avx"),
    ("avxvnni", "=avx2"),
    ("=avxifma", "=avx2"),
    ("=avxneconvert", "=avx2"),
    ("=fma4", "=avx"),
    ("=xop", "=fma4"),
    ("=amx-bf16", "=amx-tile"),
    ("=amx-complex", "=amx-tile"),
    ("=amx-fp16", "=amx-tile"),
    ("=amx-int8", "=amx-tile"),
    ("=sve2", "=sve"),
    ("=sve256b", "=sve"),
    ("=sve512b", "=sve"),
    ("=sve1024b", "=sve"),
    ("=sve2048b", "=sve"),
    ("=v", "=zvl128b"),
    ("=zvl1024b", "=zvl512b"),
    ("=zvl512b", "=zvl256b"),
    ("=zvl256b", "=zvl128b"),
    ("=zvfh", "=v"),
    ("=zvfh", "=zfhmin"),
    ("=zfh", "=zfhmin"),
];

/// Whether a pattern of [`NEEDS`] means a feature.
fn means(pattern: &str, feature: &str) -> bool {
    match pattern.strip_prefix('=') {
        Some(name) => name == feature,
        None => feature.starts_with(pattern),
    }
}

/// The features that code for a processor may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Features {
    arch: Arch,
    on: BTreeSet<String>,
}

impl Features {
    /// Those of a CPU, and then the list, of which the last mention of a feature counts. A feature
    /// brings those that it needs, and without one those go that need it. An unknown CPU has none.
    pub fn parse(triple: &str, cpu: &str, list: &str) -> Features {
        let arch = Arch::from_triple(triple);
        let mut features = Features { arch, on: BTreeSet::new() };
        for cpu in arch.family(cpu) {
            features.on.extend(cpu.more.split_whitespace().map(str::to_owned));
        }
        for item in list.split(',') {
            match (item.strip_prefix('+'), item.strip_prefix('-')) {
                (Some(name), _) => features.add(name),
                (_, Some(name)) => features.remove(name),
                _ => {}
            }
        }
        features
    }

    fn add(&mut self, name: &str) {
        if name.is_empty() || !self.on.insert(name.to_owned()) {
            return;
        }
        let is_length = |name: &str| SVE_LENGTHS.iter().any(|(length, _)| *length == name);
        if is_length(name) {
            // Vectors have one length.
            self.on.retain(|f| f == name || !is_length(f));
        }
        for (_, needed) in NEEDS.iter().filter(|(what, _)| means(what, name)) {
            // A feature does not need itself.
            let needed = needed.trim_start_matches('=');
            if needed != name {
                self.add(needed);
            }
        }
    }

    fn remove(&mut self, name: &str) {
        if !self.on.remove(name) {
            return;
        }
        for (what, _) in NEEDS.iter().filter(|(_, needed)| means(needed, name)) {
            let with: Vec<String> = self.on.iter().filter(|f| means(what, f)).cloned().collect();
            with.iter().for_each(|f| self.remove(f));
        }
    }

    /// Whether a feature is there, by LLVM's name.
    pub fn has(&self, name: &str) -> bool {
        self.on.contains(name)
    }

    /// The exact length of SVE's vectors in bits, where it is known.
    pub fn sve_bits(&self) -> Option<usize> {
        SVE_LENGTHS.iter().find(|(name, _)| self.has(name)).map(|(_, bits)| *bits)
    }

    /// The family.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// The features that code for this processor may use and `host` does not have, by name.
    pub fn missing_in(&self, host: &Features) -> Vec<String> {
        self.on.difference(&host.on).cloned().collect()
    }
}

/// A list of features as LLVM takes it: its names alone.
pub fn for_llvm(list: &str) -> String {
    let mut items = Vec::new();
    for item in list.split(',') {
        let length = SVE_LENGTHS.iter().any(|(length, _)| item.get(1..) == Some(length));
        match item.starts_with('+') {
            true if length => items.push("+sve"),
            _ if length => {}
            _ => items.push(item),
        }
    }
    items.join(",")
}

/// Whether LLVM of a version knows a CPU and each of a list of features. `known` is a further list
/// of features that it knows: what it says of the machine that it runs on.
///
/// # Errors
/// [`Error::Input`] with the nearest name that there is, and for a list that is none.
pub fn check(triple: &str, cpu: &str, list: &str, llvm: u32, known: Option<&str>) -> Result<()> {
    if triple == CUDA {
        return check_architecture(cpu);
    }
    let arch = Arch::from_triple(triple);
    let known_cpus = arch.cpus().iter().filter(|c| c.since <= llvm);
    let names: Vec<&str> = known_cpus.flat_map(Cpu::names).collect();
    if !cpu.is_empty() && cpu != "generic" && !names.contains(&cpu) {
        let error = unknown_name("CPU", cpu, &names, triple);
        return Err(match arch.family(cpu).next() {
            Some(later) => error.note(format!("LLVM knows it from version {} on", later.since)),
            None => error,
        });
    }
    let mut features: BTreeSet<&str> = arch.features().collect();
    let known = known.unwrap_or_default().split(',');
    features.extend(known.filter_map(|f| f.strip_prefix(['+', '-'])));
    for item in list.split(',').filter(|_| !list.is_empty()) {
        let Some(name) = item.strip_prefix(['+', '-']) else {
            return Err(Error::input(format!(
                "`{}` in a list of CPU features has no sign",
                item.escape_debug()
            ))
            .help("write +NAME for a feature that is there and -NAME for one that is not"));
        };
        if !features.contains(name) {
            let names: Vec<&str> = features.iter().copied().collect();
            return Err(unknown_name("feature", name, &names, triple));
        }
    }
    Ok(())
}

fn unknown_name(what: &str, name: &str, names: &[&str], triple: &str) -> Error {
    let error = Error::input(format!("{triple} has no {what} `{}`", name.escape_debug()));
    match closest(name, names.iter().copied()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX: &str = "x86_64-unknown-linux-gnu";

    #[test]
    fn a_cpu_has_its_features_and_the_last_mention_counts() {
        assert!(
            features_of("znver4", "").has("avx512bf16") && features_of("znver4", "").has("fma")
        );
        assert!(!features_of("znver3", "").has("avx512f"));
        assert!(features_of("", "+f16c").has("avx"), "what it needs comes along");
        assert!(!features_of("", "+f16c,-f16c").has("f16c"));
        assert!(features_of("", "-avx512f,+avx512f").has("avx512f"));
        let without = features_of("znver4", "-avx2");
        assert!(!without.has("avx512vl") && !without.has("avx512f") && without.has("fma"));
        assert_eq!(features_of("nonsense", ""), features_of("", ""));
    }

    fn features_of(cpu: &str, list: &str) -> Features {
        Features::parse(LINUX, cpu, list)
    }

    #[test]
    fn the_vectors_of_sve_have_one_exact_length() {
        let bits = |cpu: &str, list: &str| {
            Features::parse("aarch64-unknown-linux-gnu", cpu, list).sve_bits()
        };
        assert_eq!((bits("neoverse-v1", ""), bits("a64fx", "")), (Some(256), Some(512)));
        assert_eq!(bits("neoverse-v2", ""), None, "vectors of NEON are as long");
        assert_eq!(bits("neoverse-v1", "+sve512b"), Some(512), "the list counts");
        assert_eq!(bits("neoverse-v1", "-sve"), None, "it needs what is gone");
        assert_eq!(bits("", "+sve256b,-sve256b"), None);
        assert!(Features::parse("aarch64", "", "+sve256b").has("sve"));
        assert_eq!(for_llvm("+sve256b,+i8mm"), "+sve,+i8mm");
        assert_eq!(for_llvm("+i8mm,-sve256b"), "+i8mm");
        assert!(check("aarch64-unknown-linux-gnu", "", "+sve1024b", 19, None).is_ok());
        assert!(check(LINUX, "", "+sve1024b", 19, None).is_err(), "of another family");
    }

    #[test]
    fn every_cpu_is_like_one_that_is_there() {
        for arch in [Arch::X86_64, Arch::Aarch64, Arch::Riscv64] {
            let cpus = arch.cpus();
            for (k, cpu) in cpus.iter().enumerate() {
                let above: Vec<&str> = cpus[..k].iter().flat_map(Cpu::names).collect();
                assert!(cpu.like.is_empty() || above.contains(&cpu.like), "{}", cpu.names);
                assert!(cpu.names().all(|name| !above.contains(&name)), "{}", cpu.names);
            }
        }
    }

    #[test]
    fn the_levels_of_x86_are_what_their_definition_says() {
        assert_eq!(level(3).missing_in(&level(4)), Vec::<String>::new());
        assert_eq!(
            level(4).missing_in(&level(3)),
            ["avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"]
        );
        assert!(
            ["avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"]
                .iter()
                .all(|f| level(3).has(f))
        );
    }

    fn level(n: u32) -> Features {
        Features::parse(LINUX, &format!("x86-64-v{n}"), "")
    }

    #[test]
    fn names_that_llvm_does_not_know_are_refused_with_the_nearest() {
        for (cpu, list) in [("", ""), ("znver4", "+avx512f,-fma"), ("generic", "-amx-tile")] {
            assert_eq!(check_text(cpu, list), "");
        }
        assert_eq!(
            check_text("znver9", ""),
            "error: x86_64-unknown-linux-gnu has no CPU `znver9`\nhelp: did you mean `znver1`?\n"
        );
        assert_eq!(
            check_text("znver5", ""),
            "error: x86_64-unknown-linux-gnu has no CPU `znver5`\n\
             note: LLVM knows it from version 20 on\nhelp: did you mean `znver1`?\n"
        );
        assert!(check_text("i386", "").contains("no CPU `i386`"), "it has no 64-bit mode");
        assert!(check_text("", "+avx512g").contains("did you mean `avx512f`?"));
        assert!(check_text("", "+nonsense").contains("no feature `nonsense`"));
        assert!(check_text("", "avx2").contains("`avx2` in a list of CPU features has no sign"));
        assert!(check_text("", "+avx2,,+fma").contains("has no sign"));
        assert!(check_text("a\nb", "").contains("no CPU `a\\nb`"));
        assert!(check_riscv("", "").is_ok() && check_riscv("sifive-u74", "").is_ok());
        assert!(check_riscv("", "+v,+zvl1024b").is_ok(), "a length that no CPU here has");
        let near = check_riscv("sifive-u75", "").expect_err("there is none").render();
        assert!(near.contains("did you mean `sifive-u74`?"), "{near}");
        let near = check_riscv("", "+zvl250b").expect_err("there is none").render();
        assert!(near.contains("did you mean `zvl256b`?"), "{near}");
    }

    fn check_text(cpu: &str, list: &str) -> String {
        match check(LINUX, cpu, list, 19, Some("+amx-tile,-sm4")) {
            Ok(()) => String::new(),
            Err(e) => e.render(),
        }
    }

    fn check_riscv(cpu: &str, list: &str) -> Result<()> {
        check("riscv64-unknown-linux-gnu", cpu, list, 19, None)
    }
}
