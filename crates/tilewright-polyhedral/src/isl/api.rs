//! The library: where its functions ([`super::object`]) are looked up.

use std::ffi::{CStr, c_int, c_uint};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tilewright_dylib::Library;
use tilewright_ir::Error;

use super::find::{OVERRIDE, Search};
use super::object::Functions;

/// `isl_dim_type`: the constant.
pub(crate) const CONSTANT: c_uint = 0;
/// `isl_dim_type`: parameters.
pub(crate) const PARAM: c_uint = 1;
/// `isl_dim_type`: input of a map.
pub(crate) const IN: c_uint = 2;
/// `isl_dim_type`: dimensions of a set; output of a map.
pub(crate) const SET: c_uint = 3;
/// `isl_dim_type`: integer divisions.
pub(crate) const DIV: c_uint = 4;
/// `ISL_ON_ERROR_CONTINUE`: a failing call returns null, prints nothing and does not abort.
pub(crate) const ON_ERROR_CONTINUE: c_int = 1;
/// `isl_error_quota`.
pub(crate) const ERROR_QUOTA: c_int = 6;

/// A library that is loaded and checked.
pub(crate) struct Api {
    pub functions: Functions,
    pub version: String,
    pub file: PathBuf,
    /// Keeps the functions alive.
    _library: Library,
}

impl Api {
    /// The library of this process; it is looked for once.
    pub fn get() -> Result<&'static Api, Error> {
        static API: OnceLock<Result<Api, Error>> = OnceLock::new();
        API.get_or_init(|| Api::search(&Search::from_env())).as_ref().map_err(Clone::clone)
    }

    /// The first library of a search that can be used.
    pub fn search(search: &Search) -> Result<Api, Error> {
        let mut refused = Vec::new();
        for file in &search.files {
            match Api::load(file) {
                Ok(api) => return Ok(api),
                Err(reason) => refused.push(format!("{}: {reason}", file.display())),
            }
        }
        let error = if search.demanded {
            Error::toolchain(format!("the isl library that {OVERRIDE} names is unusable"))
        } else {
            Error::toolchain("the isl library (libisl) was not found")
        };
        // Of the bare names, what the dynamic linker says about the first one is enough.
        let worth = |r: &&String| search.demanded || r.starts_with('/');
        Err(refused.iter().filter(worth).fold(error, |e, r| e.note(r.clone())).help(INSTALL))
    }

    fn load(file: &Path) -> Result<Api, String> {
        // SAFETY: loading isl runs no code of its own; a file that the user names is theirs to
        // vouch for.
        let library = unsafe { tilewright_dylib::open(file) }?;
        // SAFETY: the types are those of isl's headers; the library is kept beside the functions.
        let functions = unsafe { Functions::resolve(&library) }
            .map_err(|reason| format!("not an isl from 0.22 on: {reason}"))?;
        // SAFETY: returns a static text.
        let version = unsafe { CStr::from_ptr((functions.isl_version)()) };
        let version = version.to_string_lossy().trim().to_owned();
        Ok(Api { functions, version, file: file.to_path_buf(), _library: library })
    }
}

/// How to get the library.
const INSTALL: &str = "install isl: `apt install libisl23` (Debian, Ubuntu), `dnf install isl` \
    (Fedora), `pacman -S libisl` (Arch), `brew install isl` (macOS); or name the file in \
    TILEWRIGHT_ISL";

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(files: &[&str], demanded: bool) -> Error {
        let files = files.iter().map(PathBuf::from).collect();
        match Api::search(&Search { demanded, files }) {
            Ok(_) => panic!("found"),
            Err(e) => e,
        }
    }

    #[test]
    fn a_missing_library_says_how_to_get_it() {
        let e = failure(&["libisl-that-is-not-there.so"], false);
        assert!(matches!(e, Error::Toolchain(_)));
        assert_eq!(e.to_string(), "the isl library (libisl) was not found");
        let help = e.diagnostic().help.clone().unwrap_or_default();
        for part in ["apt install libisl23", "dnf install", "pacman -S", "brew install", OVERRIDE] {
            assert!(help.contains(part), "{part} in {help}");
        }
    }

    #[test]
    fn a_demanded_file_that_is_no_library_is_named() {
        let e = failure(&["/dev/null"], true);
        assert_eq!(e.to_string(), "the isl library that TILEWRIGHT_ISL names is unusable");
        assert!(e.diagnostic().notes.iter().any(|n| n.starts_with("/dev/null: ")), "{e:?}");
    }
}
