//! From the list of places to one library that works.
//!
//! The first file that loads is used. What became of every other one is kept, for the error message
//! if there is none in the end, and for [`Llvm::survey`](super::Llvm::survey).

use std::path::{Path, PathBuf};
use tilewright_ir::hash::HashMap;

use tilewright_ir::Error;

use super::api::too_old_by_name;
use super::find::{Looked, OLDEST_MAJOR, OVERRIDE, Search};

/// A place in which LLVM was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchedPath {
    /// Why it was looked at, in words for the user.
    pub origin: &'static str,
    /// The directory, or the file where the user named one.
    pub place: PathBuf,
    /// The libraries that it holds, and what became of each.
    pub files: Vec<(PathBuf, Status)>,
}

/// What became of a library that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It is the one in use.
    Used,
    /// It cannot be used, for this reason.
    Refused(String),
    /// It is another name of this file, which was met before.
    SameAs(PathBuf),
    /// It was not tried, because an earlier one is in use.
    NotNeeded,
}

/// A walk over a [`Search`], and what came of it: a library `L`, or none.
pub(super) struct Loading<L> {
    pub library: Option<L>,
    search: Search,
    places: Vec<SearchedPath>,
    /// Each file that was met, without links, to the name under which it was.
    seen: HashMap<PathBuf, PathBuf>,
}

impl<L> Loading<L> {
    /// Walks until `load` gives a library for a file.
    pub fn new(search: Search, mut load: impl FnMut(&Path) -> Result<L, String>) -> Self {
        let mut library = None;
        let (mut places, mut seen) = (Vec::new(), HashMap::default());
        for looked in search.walk() {
            places.push(examine(looked, &mut seen, |file| {
                if library.is_some() {
                    return not_tried(file);
                }
                match load(file) {
                    Ok(loaded) => {
                        library = Some(loaded);
                        Status::Used
                    }
                    Err(reason) => Status::Refused(reason),
                }
            }));
            if library.is_some() {
                break;
            }
        }
        Loading { library, search, places, seen }
    }

    /// Every place of the search, also those after the library that is in use.
    pub fn survey(&self) -> Vec<SearchedPath> {
        let mut places = self.places.clone();
        if self.library.is_some() {
            let mut seen = self.seen.clone();
            let rest = self.search.walk().skip(places.len());
            places.extend(rest.map(|looked| examine(looked, &mut seen, not_tried)));
        }
        places
    }

    /// Why there is no LLVM.
    pub fn error(&self) -> Error {
        let refusals =
            self.places.iter().flat_map(|place| &place.files).filter_map(|file| match file {
                (path, Status::Refused(reason)) => Some((path, reason)),
                _ => None,
            });
        if let Some(file) = self.search.demanded() {
            let reason = refusals.map(|(_, reason)| reason.as_str()).next().unwrap_or("not found");
            return Error::toolchain(format!(
                "cannot use the LLVM that {OVERRIDE} names: {}: {reason}",
                file.display()
            ))
            .help(format!(
                "name a libLLVM of version {OLDEST_MAJOR} or newer, or unset {OVERRIDE}"
            ));
        }
        let mut error = Error::toolchain("found no LLVM that can be used");
        for (path, reason) in refusals {
            error = error.note(format!("{}: {reason}", path.display()));
        }
        let mut empty: Vec<(&str, String)> = Vec::new();
        for place in self.places.iter().filter(|place| place.files.is_empty()) {
            let name = place.place.display().to_string();
            match empty.last_mut() {
                Some((origin, names)) if *origin == place.origin => {
                    names.push_str(", ");
                    names.push_str(&name);
                }
                _ => empty.push((place.origin, name)),
            }
        }
        for (origin, names) in empty {
            error = error.note(format!("no libLLVM in {names} ({origin})"));
        }
        error.help(format!(
            "install a Rust toolchain with rustup (it contains libLLVM), or a package: libllvm19 \
             (Debian, Ubuntu; any from libllvm{OLDEST_MAJOR} on), llvm-libs (Fedora, Arch), llvm \
             (Homebrew); or set {OVERRIDE} to the path of a libLLVM"
        ))
    }
}

/// What becomes of the files of one place; `status` says it of each that was not met before.
fn examine(
    looked: Looked,
    seen: &mut HashMap<PathBuf, PathBuf>,
    mut status: impl FnMut(&Path) -> Status,
) -> SearchedPath {
    let files = looked
        .found
        .into_iter()
        .map(|file| {
            let status = match first_name(&file, seen) {
                Some(first) => Status::SameAs(first),
                None => status(&file),
            };
            (file, status)
        })
        .collect();
    SearchedPath { origin: looked.origin, place: looked.place, files }
}

/// The status of a file behind the library in use.
fn not_tried(file: &Path) -> Status {
    too_old_by_name(file).map_or(Status::NotNeeded, Status::Refused)
}

/// The name under which this very file was met before; if it was not, remembers this one.
fn first_name(file: &Path, seen: &mut HashMap<PathBuf, PathBuf>) -> Option<PathBuf> {
    let resolved = file.canonicalize().ok()?;
    if let Some(first) = seen.get(&resolved) {
        return Some(first.clone());
    }
    seen.insert(resolved, file.to_path_buf());
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llvm::Llvm;
    use std::ffi::OsString;

    fn directory() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary directory")
    }

    fn demand(file: &Path) -> Loading<Llvm> {
        Loading::llvm(Search::new(
            |name| (name == OVERRIDE).then(|| OsString::from(file)),
            None,
            None,
        ))
    }

    /// A file that looks like a library from outside and is none.
    fn broken_library(dir: &Path, name: &str) -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, b"\x7fELF and no more").expect("a temporary file can be written");
        path
    }

    #[test]
    fn no_library_anywhere_says_where_it_looked_and_what_to_install() {
        let (empty, broken) = (directory(), directory());
        let file = broken_library(broken.path(), "libLLVM-19.so");
        broken_library(broken.path(), "libLLVM-14.so");
        let dirs = [empty.path().into(), "/nonexistent".into(), broken.path().into()];
        let loading = Loading::llvm(Search::directories(dirs));
        assert!(loading.library.is_none());
        let text = loading.error().render();
        assert!(text.starts_with("error: found no LLVM that can be used\n"), "{text}");
        for part in [
            &format!("note: {}: ", file.display()),
            "libLLVM-14.so: LLVM 14 is too old: 16 or newer is needed\n",
            &format!("note: no libLLVM in {}, /nonexistent (", empty.path().display()),
            "rustup",
            "libllvm19 (Debian, Ubuntu",
            "TILEWRIGHT_LLVM",
        ] {
            assert!(text.contains(part), "`{part}` is not in {text}");
        }
    }

    #[test]
    fn a_bad_override_is_an_error_and_nothing_else_is_tried() {
        let dir = directory();
        let broken = broken_library(dir.path(), "libLLVM.so");
        let old = broken_library(dir.path(), "libLLVM-15.so.1");
        for (file, reason) in [
            (dir.path().join("missing.so"), "No such file"),
            (dir.path().to_path_buf(), "not a file"),
            (broken, "libLLVM.so"),
            (old, "LLVM 15 is too old: 16 or newer is needed"),
        ] {
            let loading = demand(&file);
            assert!(loading.library.is_none());
            assert_eq!(loading.survey().len(), 1);
            let text = loading.error().render();
            let start = format!(
                "error: cannot use the LLVM that TILEWRIGHT_LLVM names: {}: ",
                file.display()
            );
            assert!(text.starts_with(&start) && text.contains(reason), "{text}");
            assert!(text.contains("help: name a libLLVM of version 16 or newer"), "{text}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_library_that_is_not_llvm_is_refused() {
        let dir = directory();
        let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux says what is mapped");
        let mut mapped = maps.lines().filter_map(|line| line.split_whitespace().last());
        let libc = mapped.find(|path| path.contains("libc.so")).expect("the C library is loaded");
        let link = dir.path().join("libLLVM.so");
        std::os::unix::fs::symlink(libc, &link).expect("a link can be made");
        let text = demand(&link).error().render();
        assert!(
            text.contains("not an LLVM from 16 on: it does not export LLVMGetVersion"),
            "{text}"
        );
    }

    #[test]
    fn another_name_of_a_file_is_not_tried_again() {
        let dir = directory();
        let file = broken_library(dir.path(), "libLLVM.so.19.1");
        let link = dir.path().join("libLLVM-19.so");
        std::os::unix::fs::symlink(&file, &link).expect("a link can be made");
        let loading = Loading::llvm(Search::directories([dir.path().into()]));
        let files = &loading.survey()[0].files;
        assert!(matches!(&files[0], (path, Status::Refused(_)) if *path == file), "{files:?}");
        assert_eq!(files[1], (link, Status::SameAs(file)));
    }

    #[test]
    fn the_first_file_that_loads_is_used_and_the_survey_goes_on_behind_it() {
        let dirs = [directory(), directory()];
        let [first, second] = dirs.each_ref().map(tempfile::TempDir::path);
        let bad = broken_library(first, "libLLVM.so.22.1");
        let good = broken_library(first, "libLLVM.so.20.1");
        let older = broken_library(first, "libLLVM.so.19.1");
        let other = broken_library(second, "libLLVM-18.so");
        let old = broken_library(second, "libLLVM-14.so");
        let link = second.join("libLLVM-20.so");
        std::os::unix::fs::symlink(&good, &link).expect("a link can be made");
        let mut tried = Vec::new();
        let search = Search::directories([first.into(), second.into()]);
        let loading = Loading::new(search, |file| {
            tried.push(file.to_path_buf());
            if *file == bad { Err("it is bad".into()) } else { Ok(file.to_path_buf()) }
        });
        assert_eq!(tried, [&bad, &good].map(PathBuf::clone));
        assert_eq!(loading.library.as_ref(), Some(&good));
        let files: Vec<_> = loading.survey().into_iter().map(|place| place.files).collect();
        assert_eq!(
            files[0],
            [
                (bad, Status::Refused("it is bad".into())),
                (good.clone(), Status::Used),
                (older, Status::NotNeeded),
            ]
        );
        let too_old = Status::Refused("LLVM 14 is too old: 16 or newer is needed".into());
        assert_eq!(
            files[1],
            [(link, Status::SameAs(good)), (other, Status::NotNeeded), (old, too_old)]
        );
    }
}
