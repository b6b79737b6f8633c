//! Caches, by processor or as the system describes them.

use crate::features::{Arch, Features};

/// Sizes of the data caches that one core sees, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    pub line: usize,
    /// First level.
    pub l1: usize,
    /// Second level.
    pub l2: usize,
    /// Third level, which cores usually share; 0 where there is none or it is not known.
    pub l3: usize,
}

const KIB: usize = 1 << 10;

impl Caches {
    /// Those of a CPU by its name, or else what CPUs with such features usually have.
    pub(crate) fn detect(features: &Features, cpu: &str) -> Caches {
        // One that is not known has those of the one that it is like; with features of its own it is
        // another design.
        let known = features
            .arch()
            .family(cpu)
            .find(|c| c.caches != (0, 0) || !c.more.is_empty())
            .map(|c| c.caches);
        let (l1, l2) = match known.filter(|known| *known != (0, 0)) {
            Some(known) => known,
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
            let (Some(level), Some(kind), Some(size)) = (
                cache_fact("level", &directory),
                cache_fact("type", &directory),
                cache_fact("size", &directory),
            ) else {
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
            if let Some(line) =
                cache_fact("coherency_line_size", &directory).and_then(|line| bytes(&line))
            {
                caches.line = line;
            }
        }
        caches
    }
}

fn cache_fact(name: &str, directory: &str) -> Option<String> {
    std::fs::read_to_string(format!("{directory}/{name}")).ok()
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
    use crate::cpus::{AARCH64, X86_64};

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
        for c in X86_64.iter().chain(AARCH64) {
            let (l1, l2) = c.caches;
            assert!(l1 < l2 || c.caches == (0, 0), "{}", c.names);
        }
    }
}
