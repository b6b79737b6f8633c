//! Where libLLVM may lie on this machine.
//!
//! LLVM is not linked: it is a shared library found at run time. A [`Search`] is an ordered list of
//! places, and is walked lazily, because the later places cost something (a process, large
//! directories) and the first one usually answers. The order is
//!
//! 1. the file that [`OVERRIDE`] names, and then nothing else,
//! 2. the directory that a package brings ([`bundle`]),
//! 3. the directory of the running binary, and `../lib` from there,
//! 4. the sysroot of the Rust toolchain that built this crate,
//! 5. the sysroot of the `rustc` on the path,
//! 6. every toolchain of rustup,
//! 7. the versioned directories of the distributions (`/usr/lib/llvm-19/lib`), newest first,
//! 8. the system's library directories.
//!
//! This file only lists files. Whether one is an LLVM that can be used shows when it is loaded.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Environment variable that names the libLLVM to use: a file. When it is set, nothing else is
/// tried.
pub const OVERRIDE: &str = "TILEWRIGHT_LLVM";

/// The oldest LLVM that is accepted: the first whose C interface reports its version.
pub(crate) const OLDEST_MAJOR: u32 = 16;
/// The newest major version for which the distributions' versioned directories are looked at.
const NEWEST_MAJOR: u32 = 24;

/// The directory that a package brings.
static BUNDLE: OnceLock<PathBuf> = OnceLock::new();

/// Says where the package that this code is part of has libraries of its own: an extension module runs
/// in a binary that is not ours. What is said first counts, and what LLVM's first use comes before counts
/// for nothing.
pub fn bundle(directory: PathBuf) {
    let _ = BUNDLE.set(directory);
}

/// An ordered list of places in which libLLVM may lie.
#[derive(Debug, Clone)]
pub struct Search {
    places: Vec<SearchPath>,
}

#[derive(Debug, Clone)]
enum SearchPath {
    /// The file that the user named.
    Named(PathBuf),
    /// A directory that may hold libraries.
    Directory(&'static str, PathBuf),
    /// The `lib` directory of the sysroot of a `rustc`, which has to be asked for it.
    SysrootOf(PathBuf),
    /// rustup's directory of toolchains.
    Toolchains(PathBuf),
    /// One directory per major version, whose name goes between the two parts.
    Versioned(&'static str, &'static str),
}

/// One place that was looked at, and the libraries it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// Why this place was looked at, in words for the user.
    pub origin: &'static str,
    /// The directory, or the file where the user named one.
    pub place: PathBuf,
    /// The shared libraries there that are named like libLLVM, newest version first.
    pub found: Vec<PathBuf>,
}

impl Search {
    /// The search order for this process.
    pub fn from_env() -> Search {
        let exe = std::env::current_exe().ok();
        Search::new(|name| std::env::var_os(name), BUNDLE.get().cloned(), exe)
    }

    /// The search order under the environment variables `var`, for the binary `exe` and what its package
    /// brings.
    ///
    /// An environment variable that is set to the empty string counts as unset.
    pub fn new(
        var: impl Fn(&str) -> Option<OsString>,
        bundle: Option<PathBuf>,
        exe: Option<PathBuf>,
    ) -> Search {
        if let Some(file) = tilewright_dylib::demanded(var(OVERRIDE)) {
            return Search { places: vec![SearchPath::Named(file)] };
        }
        let [rustc, rustup_home, home] = ["RUSTC", "RUSTUP_HOME", "HOME"]
            .map(|name| var(name).filter(|value| !value.is_empty()));
        let mut places = Vec::new();
        places.extend(bundle.map(|dir| SearchPath::Directory("brought by the package", dir)));
        for dir in tilewright_dylib::beside(exe.as_deref()) {
            places.push(SearchPath::Directory("beside the binary", dir));
        }
        if let Some(sysroot) = option_env!("TILEWRIGHT_BUILD_SYSROOT") {
            let lib = Path::new(sysroot).join("lib");
            places.push(SearchPath::Directory("toolchain that built tilewright", lib));
        }
        places.push(SearchPath::SysrootOf(rustc.unwrap_or_else(|| "rustc".into()).into()));
        let rustup = rustup_home
            .map(PathBuf::from)
            .or_else(|| home.map(|home| Path::new(&home).join(".rustup")));
        if let Some(rustup) = rustup {
            places.push(SearchPath::Toolchains(rustup.join("toolchains")));
        }
        // Debian and Ubuntu, Alpine, Fedora.
        places.push(SearchPath::Versioned("/usr/lib/llvm-", "/lib"));
        places.push(SearchPath::Versioned("/usr/lib/llvm", "/lib"));
        places.push(SearchPath::Versioned("/usr/lib64/llvm", "/lib64"));
        for dir in tilewright_dylib::system("llvm") {
            places.push(SearchPath::Directory("system libraries", dir));
        }
        // Windows.
        if let Some(programs) = var("ProgramFiles").filter(|value| !value.is_empty()) {
            let bin = Path::new(&programs).join("LLVM").join("bin");
            places.push(SearchPath::Directory("installed LLVM", bin));
        }
        Search { places }
    }

    /// A search of these directories only, in this order.
    #[cfg(test)]
    pub(super) fn directories(dirs: impl IntoIterator<Item = PathBuf>) -> Search {
        Search {
            places: dirs
                .into_iter()
                .map(|dir| SearchPath::Directory("given directory", dir))
                .collect(),
        }
    }

    /// The file that the user demanded through [`OVERRIDE`], if one is.
    pub(crate) fn demanded(&self) -> Option<&Path> {
        match self.places.as_slice() {
            [SearchPath::Named(file)] => Some(file),
            _ => None,
        }
    }

    /// Looks at one place after the other. A directory that does not exist yields an empty result;
    /// it is for the caller to say so or not.
    pub fn walk(&self) -> impl Iterator<Item = Looked> + '_ {
        self.places.iter().flat_map(SearchPath::look)
    }
}

impl SearchPath {
    fn look(&self) -> Vec<Looked> {
        match self {
            SearchPath::Named(file) => {
                vec![Looked { origin: OVERRIDE, place: file.clone(), found: vec![file.clone()] }]
            }
            SearchPath::Directory(origin, dir) => vec![look_in(origin, dir.clone())],
            SearchPath::SysrootOf(rustc) => {
                let origin = "toolchain of rustc";
                match sysroot_of(rustc) {
                    Some(sysroot) => vec![look_in(origin, sysroot.join("lib"))],
                    None => vec![Looked { origin, place: rustc.clone(), found: Vec::new() }],
                }
            }
            SearchPath::Toolchains(dir) => {
                let mut toolchains: Vec<_> = std::fs::read_dir(dir)
                    .map(|entries| {
                        entries.flatten().map(|entry| entry.path().join("lib")).collect()
                    })
                    .unwrap_or_default();
                // From behind: `stable` before `nightly` before numbered toolchains.
                toolchains.sort_by(|a, b| b.cmp(a));
                look_in_all("toolchain of rustup", toolchains, dir.clone())
            }
            SearchPath::Versioned(before, after) => {
                let dirs = (OLDEST_MAJOR..=NEWEST_MAJOR).rev();
                let dirs = dirs.map(|major| PathBuf::from(format!("{before}{major}{after}")));
                let all = format!("{before}{{{OLDEST_MAJOR}..{NEWEST_MAJOR}}}{after}");
                look_in_all("versioned LLVM package", dirs.filter(|dir| dir.is_dir()), all.into())
            }
        }
    }
}

/// Looks in each directory; where there is none, reports `instead` as a place that holds nothing.
fn look_in_all(
    origin: &'static str,
    dirs: impl IntoIterator<Item = PathBuf>,
    instead: PathBuf,
) -> Vec<Looked> {
    let looked: Vec<_> = dirs.into_iter().map(|dir| look_in(origin, dir)).collect();
    if looked.is_empty() {
        return vec![Looked { origin, place: instead, found: Vec::new() }];
    }
    looked
}

fn look_in(origin: &'static str, dir: PathBuf) -> Looked {
    let mut found: Vec<PathBuf> = std::fs::read_dir(&dir)
        .map(|entries| {
            entries
                .flatten()
                .filter(|entry| is_libllvm_name(&entry.file_name()))
                .map(|entry| entry.path())
                .filter(|path| is_shared_object(path))
                .collect()
        })
        .unwrap_or_default();
    // Newest first; of one version, the longest name is the file itself rather than a link to it.
    found.sort_by_cached_key(|path| {
        let name = path.file_name().unwrap_or_default().to_os_string();
        std::cmp::Reverse((major_in_name(&name).unwrap_or(0), name.len(), name))
    });
    Looked { origin, place: dir, found }
}

/// How LLVM's own installer for Windows calls it.
const LLVM_OF_WINDOWS: &str = "LLVM-C.dll";

/// Is this the name of LLVM itself, and not of one of its components (`libLLVMCore.so`) or of a
/// library on top of it (`libLLVMSPIRVLib.so.16`)?
fn is_libllvm_name(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let Some(rest) = name.strip_prefix("libLLVM") else { return name == LLVM_OF_WINDOWS };
    let is_library =
        rest.contains(".so") || [".dylib", ".dll"].iter().any(|end| rest.ends_with(end));
    rest.starts_with(['.', '-']) && is_library
}

/// The major version that a libLLVM's file name claims: 22 for
/// `libLLVM.so.22.1-rust-1.95.0-stable`.
pub(crate) fn major_in_name(name: &OsStr) -> Option<u32> {
    let name = name.to_string_lossy();
    let digits = name.strip_prefix("libLLVM")?.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// Tells a shared library from a linker script: the Rust toolchain has one of those beside its
/// libLLVM, with a name like a library's.
fn is_shared_object(path: &Path) -> bool {
    const ELF: [u8; 4] = *b"\x7fELF";
    const MACH_O_64: [u8; 4] = [0xcf, 0xfa, 0xed, 0xfe];
    const MACH_O_FAT: [u8; 4] = [0xca, 0xfe, 0xba, 0xbe];
    /// Libraries of Windows begin as programs of DOS do.
    const DOS: [u8; 2] = *b"MZ";
    let mut magic = [0; 4];
    if tilewright_dylib::check_plain(path).is_err() {
        return false;
    }
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && ([ELF, MACH_O_64, MACH_O_FAT].contains(&magic) || magic.starts_with(&DOS))
}

fn sysroot_of(rustc: &Path) -> Option<PathBuf> {
    let output = Command::new(rustc)
        .args(["--print", "sysroot"])
        // rustup's `rustc` would otherwise download the toolchain that a file in this directory
        // asks for.
        .env("RUSTUP_AUTO_INSTALL", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let sysroot = String::from_utf8(output.stdout).ok()?;
    let sysroot = sysroot.trim();
    (output.status.success() && !sysroot.is_empty()).then(|| PathBuf::from(sysroot))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::hash::HashMap;

    fn search(vars: &[(&str, &str)], exe: Option<&str>) -> Search {
        let vars: HashMap<_, _> = vars.iter().copied().collect();
        let bundle = vars.get("bundle").map(PathBuf::from);
        Search::new(|name| vars.get(name).map(OsString::from), bundle, exe.map(PathBuf::from))
    }

    fn library(dir: &Path, name: &str) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, b"\x7fELF and no more").expect("a temporary file can be written");
        path
    }

    #[test]
    fn the_override_is_the_only_place() {
        let search = search(&[(OVERRIDE, "/nowhere/libLLVM.so"), ("HOME", "/root")], Some("/a/b"));
        let looked: Vec<_> = search.walk().collect();
        assert_eq!(looked.len(), 1);
        assert_eq!(looked[0].found, [PathBuf::from("/nowhere/libLLVM.so")]);
        assert_eq!(search.demanded(), Some(Path::new("/nowhere/libLLVM.so")));
    }

    #[test]
    fn an_empty_override_is_none() {
        let search = search(&[(OVERRIDE, "")], None);
        assert_eq!(search.demanded(), None);
        assert!(search.places.len() > 5);
    }

    #[test]
    fn places_come_in_the_documented_order() {
        let home = tempfile::tempdir().expect("a temporary directory");
        let toolchains = home.path().join(".rustup/toolchains");
        for name in ["1.95.0", "nightly", "stable"] {
            std::fs::create_dir_all(toolchains.join(name)).expect("a directory can be made");
        }
        let home_text = home.path().to_str().expect("a temporary path is text");
        let search = search(
            &[("HOME", home_text), ("RUSTC", "/nonexistent/rustc"), ("bundle", "/opt/py/lib")],
            Some("/opt/tw/bin/tilewright"),
        );
        let looked: Vec<_> = search.walk().map(|looked| looked.place).collect();
        let at = |path: &Path| {
            looked
                .iter()
                .position(|place| place == path)
                .unwrap_or_else(|| panic!("{path:?} was not looked at"))
        };
        // A real directory where such a package is installed, a pattern where none is.
        let versioned = looked
            .iter()
            .position(|place| place.to_string_lossy().starts_with("/usr/lib/llvm-"))
            .expect("they are looked at");
        let order = [
            at(Path::new("/opt/py/lib")),
            at(Path::new("/opt/tw/bin")),
            at(Path::new("/opt/tw/lib")),
            at(&Path::new(env!("TILEWRIGHT_BUILD_SYSROOT")).join("lib")),
            at(Path::new("/nonexistent/rustc")),
            at(&toolchains.join("stable/lib")),
            at(&toolchains.join("nightly/lib")),
            at(&toolchains.join("1.95.0/lib")),
            versioned,
            at(Path::new("/usr/lib64")),
        ];
        assert!(order.is_sorted(), "{order:?}");
    }

    #[test]
    fn later_places_are_not_looked_at_before_they_are_needed() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let rustc = dir.path().join("rustc");
        let asked = dir.path().join("asked");
        let script =
            format!("#!/bin/sh\ntouch {}\necho {}\n", asked.display(), dir.path().display());
        std::fs::write(&rustc, script).expect("a temporary file can be written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&rustc, mode).expect("permissions can be set");
        let search = Search {
            places: vec![
                SearchPath::Directory("first", dir.path().into()),
                SearchPath::SysrootOf(rustc),
            ],
        };
        let mut walk = search.walk();
        assert!(walk.next().is_some());
        assert!(!asked.exists());
        assert_eq!(walk.next().map(|looked| looked.place), Some(dir.path().join("lib")));
        assert!(asked.exists());
    }

    #[test]
    fn a_directory_yields_libraries_newest_first_without_linker_scripts_and_components() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let dir = dir.path();
        let old = library(dir, "libLLVM-9.so.1");
        let new = library(dir, "libLLVM.so.22.1-rust-1.95.0-stable");
        let middle = library(dir, "libLLVM-16.so.1");
        let plain = library(dir, "libLLVM.so");
        library(dir, "libLLVMCore.so.16");
        library(dir, "libLLVMSPIRVLib.so.16");
        library(dir, "libclang.so.16");
        library(dir, "libLLVM-16.a");
        std::fs::write(
            dir.join("libLLVM-22-rust-1.95.0-stable.so"),
            "INPUT(libLLVM.so.22.1-rust-1.95.0-stable)",
        )
        .expect("a temporary file can be written");
        assert_eq!(look_in("test", dir.into()).found, [new, middle, old, plain]);
    }

    #[test]
    fn libraries_of_windows_are_found_where_programs_are_installed() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let programs = dir.path().to_str().expect("the folder has a name in letters");
        let bin = dir.path().join("LLVM").join("bin");
        std::fs::create_dir_all(&bin).expect("a folder can be made");
        for name in ["LLVM-C.dll", "libclang.dll", "LTO.dll"] {
            std::fs::write(bin.join(name), b"MZ and no more").expect("a file can be written");
        }
        let search = search(&[("ProgramFiles", programs), ("RUSTC", "/nowhere/rustc")], None);
        let looked = search.walk().last().expect("places are looked at");
        assert_eq!((looked.place, looked.found), (bin.clone(), vec![bin.join("LLVM-C.dll")]));
    }

    #[test]
    fn the_major_version_is_read_from_a_name() {
        for (name, major) in [
            ("libLLVM-14.so.1", Some(14)),
            ("libLLVM.so.19.1", Some(19)),
            ("libLLVM-C.so.20", Some(20)),
            ("libLLVM.so.22.1-rust-1.95.0-stable", Some(22)),
            ("libLLVM.dylib", None),
            ("libc.so.6", None),
            ("libLLVM.so.99999999999", None),
        ] {
            assert_eq!(major_in_name(OsStr::new(name)), major, "{name}");
        }
    }
}
