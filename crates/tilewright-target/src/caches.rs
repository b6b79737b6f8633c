//! Caches, by processor or as the system describes them.

use crate::cpus::Cpu;
use crate::features::{Arch, Features};

/// Sizes of the data caches that one core sees, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// A line.
    pub line: usize,
    /// First level.
    pub l1: usize,
    /// Second level.
    pub l2: usize,
    /// Third level, which cores usually share; 0 where there is none or it is not known.
    pub l3: usize,
}

const KIB: usize = 1 << 10;

/// Processors by LLVM's name, with the KiB of their first and second level. A processor that is
/// not here has those of the one that it has all features of, and no more. The third level differs from
/// model to model of one name.
const KNOWN: &[(&str, usize, usize)] = &[
    ("core2", 32, 4096),
    ("nehalem", 32, 256),
    ("sandybridge", 32, 256),
    ("ivybridge", 32, 256),
    ("haswell", 32, 256),
    ("broadwell", 32, 256),
    ("skylake", 32, 256),
    ("skylake-avx512", 32, 1024),
    ("cascadelake", 32, 1024),
    ("cooperlake", 32, 1024),
    ("cannonlake", 32, 256),
    ("icelake-client", 48, 512),
    ("icelake-server", 48, 1280),
    ("tigerlake", 48, 1280),
    ("rocketlake", 48, 512),
    ("alderlake", 48, 1280),
    ("raptorlake", 48, 2048),
    ("sapphirerapids", 48, 2048),
    ("emeraldrapids", 48, 2048),
    ("znver1", 32, 512),
    ("znver2", 32, 512),
    ("znver3", 32, 512),
    ("znver4", 32, 1024),
    ("znver5", 48, 1024),
    ("neoverse-n1", 64, 1024),
    ("neoverse-n2", 64, 1024),
    ("neoverse-v1", 64, 1024),
    ("neoverse-v2", 64, 2048),
    ("a64fx", 64, 8192),
];

impl Caches {
    /// Those of a CPU by its name, or else what CPUs with such features usually have.
    pub(crate) fn of(features: &Features, cpu: &str) -> Caches {
        let row = |c: &Cpu| KNOWN.iter().find(|(name, ..)| *name == c.name);
        let mut known = None;
        for c in features.arch().family(cpu) {
            known = row(c);
            // One with features of its own is another design.
            if known.is_some() || !c.more.is_empty() {
                break;
            }
        }
        let (l1, l2) = match known {
            Some((_, l1, l2)) => (*l1, *l2),
            None if features.has("avx512f") => (32, 1024),
            None if features.has("avx2") => (32, 512),
            None if features.arch() == Arch::Aarch64 => (64, 512),
            None => (32, 256),
        };
        Caches { line: 64, l1: l1 * KIB, l2: l2 * KIB, l3: 0 }
    }

    /// Those of the machine that this process runs on, where its system says so; `usual` where not.
    pub(crate) fn host(usual: Caches) -> Caches {
        let mut caches = usual;
        for index in 0..8 {
            let directory = format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
            let read = |name: &str| std::fs::read_to_string(format!("{directory}/{name}")).ok();
            let (Some(level), Some(kind), Some(size)) = (read("level"), read("type"), read("size"))
            else {
                break;
            };
            let Some(size) = bytes(&size) else { continue };
            match (level.trim(), kind.trim()) {
                (_, "Instruction") => {}
                ("1", _) => caches.l1 = size,
                ("2", _) => caches.l2 = size,
                ("3", _) => caches.l3 = size,
                _ => {}
            }
            if let Some(line) = read("coherency_line_size").and_then(|line| bytes(&line)) {
                caches.line = line;
            }
        }
        caches
    }
}

/// A size as Linux writes it: `32K`, `1M`, `64`; `None` for 0 and what is none.
fn bytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let (number, unit) = match text.strip_suffix(['K', 'M']) {
        Some(number) if text.ends_with('K') => (number, KIB),
        Some(number) => (number, KIB * KIB),
        None => (text, 1),
    };
    number.parse::<usize>().ok()?.checked_mul(unit).filter(|n| *n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;

    #[test]
    fn sizes_are_read_as_the_system_writes_them() {
        assert_eq!(bytes("32K\n"), Some(32768));
        assert_eq!((bytes("2M"), bytes("64")), (Some(2 << 20), Some(64)));
        for wrong in ["", "K", "0K", "-1", "18446744073709551615K", "1 K"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_processor_has_the_caches_of_the_nearest_that_is_known() {
        let l2 = |triple: &str, cpu: &str, list: &str| Target::new(triple, cpu, list).caches.l2;
        let linux = "x86_64-unknown-linux-gnu";
        assert_eq!(l2(linux, "znver3", ""), 512 * KIB);
        assert_eq!(l2(linux, "znver4", ""), 1024 * KIB);
        assert_eq!(l2(linux, "graniterapids", ""), 2048 * KIB, "like emeraldrapids");
        assert_eq!(l2(linux, "", "+avx2"), 512 * KIB);
        assert_eq!(l2(linux, "x86-64-v4", ""), 1024 * KIB);
        assert_eq!(l2("riscv64-unknown-linux-gnu", "", ""), 256 * KIB);
        for (name, l1, l2) in KNOWN {
            let there = |arch: Arch| arch.family(name).next().is_some();
            assert!(there(Arch::X86_64) || there(Arch::Aarch64), "{name}");
            assert!(l1 < l2, "{name}");
        }
    }
}
