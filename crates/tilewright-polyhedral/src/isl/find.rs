//! Where libisl may lie on this machine.
//!
//! isl is not linked: it is a shared library that is found at run time. The places, in order:
//!
//! 1. the file that [`OVERRIDE`] names, and then nothing else,
//! 2. the directory of the running binary, and `../lib` from there,
//! 3. the library directories of Debian and Ubuntu (multiarch), Fedora, Arch, and Homebrew,
//! 4. whatever the dynamic linker finds under one of [`SONAMES`].
//!
//! This file only lists candidates. Whether one is an isl that can be used shows when it is loaded.

use std::ffi::OsString;
use std::path::PathBuf;

/// Environment variable that names the libisl to use: a file. When it is set, nothing else is
/// tried.
pub const OVERRIDE: &str = "TILEWRIGHT_ISL";

/// Names under which distributions ship the library, the one that is tested most first. The
/// number counts incompatible changes; all that we call is the same in each of these.
pub(crate) const SONAMES: [&str; 5] =
    ["libisl.so.23", "libisl.so.24", "libisl.so.22", "libisl.so", "libisl.dylib"];

/// Where to look, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Search {
    /// The user named a file.
    pub demanded: bool,
    /// Files to try; a bare name is left to the dynamic linker.
    pub files: Vec<PathBuf>,
}

impl Search {
    /// The search order for this process.
    pub fn from_env() -> Search {
        Search::new(std::env::var_os(OVERRIDE), std::env::current_exe().ok())
    }

    /// The search order for a value of [`OVERRIDE`] (empty counts as unset) and a binary.
    pub fn new(demanded: Option<OsString>, exe: Option<PathBuf>) -> Search {
        if let Some(file) = tilewright_dylib::demanded(demanded) {
            return Search { demanded: true, files: vec![file] };
        }
        let mut dirs = tilewright_dylib::beside(exe.as_deref());
        dirs.extend(tilewright_dylib::system("isl"));
        let in_dirs = dirs.iter().flat_map(|d| SONAMES.map(|n| d.join(n)));
        let files = in_dirs.filter(|f| f.is_file()).chain(SONAMES.map(PathBuf::from)).collect();
        Search { demanded: false, files }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demanded_file_is_the_only_one() {
        let s = Search::new(Some("/opt/my/libisl.so".into()), Some("/usr/bin/x".into()));
        assert_eq!(s, Search { demanded: true, files: vec!["/opt/my/libisl.so".into()] });
    }

    #[test]
    fn without_a_demand_the_linker_has_the_last_word() {
        let s = Search::new(Some("".into()), None);
        assert!(!s.demanded);
        let bare: Vec<_> = s.files.iter().rev().take(SONAMES.len()).rev().collect();
        assert_eq!(bare, SONAMES.map(PathBuf::from).iter().collect::<Vec<_>>());
    }
}
