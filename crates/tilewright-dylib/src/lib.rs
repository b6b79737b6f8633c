//! Shared libraries that are not linked but found and loaded at run time: where they may lie, and
//! the look-up of their functions.
//!
//! Every library is looked for in the same order: the file that an environment variable names, and
//! then nothing else ([`demanded`]); beside the running binary ([`beside`]); what is particular to
//! the library; the directories of the system ([`system`]).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[cfg(any(unix, windows))]
pub use libloading::Library;
#[cfg(not(any(unix, windows)))]
pub use none::Library;

/// A machine that loads no libraries, such as WebAssembly.
#[cfg(not(any(unix, windows)))]
mod none {
    /// No library is open there.
    pub enum Library {}

    impl Library {
        /// Looks a function up.
        ///
        /// # Safety
        /// Nothing to keep: there is no library.
        pub unsafe fn get<T>(&self, _: impl AsRef<[u8]>) -> Result<&T, String> {
            match *self {}
        }
    }
}

/// The file that the value of an environment variable names; an empty one counts as unset.
pub fn demanded(value: Option<OsString>) -> Option<PathBuf> {
    value.filter(|file| !file.is_empty()).map(PathBuf::from)
}

/// The directory of a binary, and `../lib` from there.
pub fn beside(binary: Option<&Path>) -> Vec<PathBuf> {
    let Some(dir) = binary.and_then(Path::parent) else { return Vec::new() };
    let lib = dir.parent().map(|up| up.join("lib"));
    std::iter::once(dir.to_path_buf()).chain(lib).collect()
}

/// The library directories of Debian and Ubuntu (multiarch), Fedora and Arch, and those of a
/// package of Homebrew, on Apple silicon and on Intel.
pub fn system(package: &str) -> Vec<PathBuf> {
    let dirs = [
        format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH),
        "/usr/lib64".to_owned(),
        "/usr/lib".to_owned(),
        "/usr/local/lib".to_owned(),
        format!("/opt/homebrew/opt/{package}/lib"),
        format!("/usr/local/opt/{package}/lib"),
    ];
    dirs.map(PathBuf::from).to_vec()
}

/// Refuses a path that leads to something else than a plain file: opening a pipe would wait.
///
/// # Errors
/// That it does.
pub fn check_plain(path: &Path) -> Result<(), String> {
    match path.metadata() {
        Ok(found) if !found.is_file() => Err(format!("{}: it is not a plain file", path.display())),
        // A name without a folder is no path yet.
        _ => Ok(()),
    }
}

/// Opens a library so that its symbols stay its own: another one of its kind may be in the process
/// already. A bare name is left to the dynamic linker.
///
/// # Errors
/// What the dynamic linker says.
///
/// # Safety
/// Runs the constructors of the library, which the caller vouches for.
pub unsafe fn open(path: &Path) -> Result<Library, String> {
    check_plain(path)?;
    #[cfg(unix)]
    let opened = {
        use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
        // SAFETY: the caller's promise.
        unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map(Into::into)
    };
    #[cfg(windows)]
    // SAFETY: the caller's promise.
    let opened = unsafe { Library::new(path) };
    // The error itself does not say which library, or why; its cause does.
    #[cfg(any(unix, windows))]
    return opened.map_err(|error: libloading::Error| match std::error::Error::source(&error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    });
    #[cfg(not(any(unix, windows)))]
    Err(format!("{}: this machine loads no libraries", path.display()))
}

/// What is made of the first library of these files that opens and has what is needed.
///
/// # Errors
/// Why each of them is none.
///
/// # Safety
/// As [`open`], for each file.
pub unsafe fn open_first<T>(
    files: Vec<PathBuf>,
    mut make: impl FnMut(Library, &Path) -> Result<T, String>,
) -> Result<T, Vec<String>> {
    let mut tried = Vec::new();
    for file in files {
        // SAFETY: the caller's promise.
        let made = unsafe { open(&file) }.and_then(|library| {
            make(library, &file).map_err(|why| format!("{}: {why}", file.display()))
        });
        match made {
            Ok(made) => return Ok(made),
            Err(why) => tried.push(why),
        }
    }
    Err(tried)
}

/// Whether a library is in the process already; true where that cannot be asked.
///
/// Another part of the process may use what is loaded, so global settings of such a library are better left alone.
pub fn is_loaded(path: &Path) -> bool {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        use libloading::os::unix::{Library, RTLD_LAZY};
        /// `RTLD_NOLOAD`: opens nothing that is not open.
        const ONLY_LOADED: std::ffi::c_int = if cfg!(target_os = "macos") { 0x10 } else { 4 };
        // SAFETY: nothing is loaded, so no constructor runs; of what is loaded one more handle is taken and given
        // back.
        unsafe { Library::open(Some(path), RTLD_LAZY | ONLY_LOADED) }.is_ok()
    }
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    {
        let _ = path;
        true
    }
}

/// `struct Functions` of the functions of a library, under their own names and with the types that
/// its headers give them, and `Functions::resolve`, which looks all of them up.
///
/// ```
/// tilewright_dylib::functions! {
///     abs: fn(std::ffi::c_int) -> std::ffi::c_int;
/// }
/// # #[cfg(target_os = "linux")]
/// # fn main() {
/// // SAFETY: the C library, with the type of its header.
/// let library = unsafe { tilewright_dylib::open("libc.so.6".as_ref()) }.expect("it is there");
/// let functions = unsafe { Functions::resolve(&library) }.expect("it has `abs`");
/// assert_eq!(unsafe { (functions.abs)(-3) }, 3);
/// # }
/// # #[cfg(not(target_os = "linux"))]
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        /// The functions, under their own names.
        #[allow(non_snake_case)]
        pub(crate) struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// Looks every function up.
            ///
            /// # Safety
            /// The library has these functions with these types, and they are not called after it
            /// is closed.
            pub(crate) unsafe fn resolve(library: &$crate::Library) -> Result<Functions, String> {
                // SAFETY: the caller's promise.
                unsafe {
                    Ok(Functions {
                        $($name: *library
                            .get(concat!(stringify!($name), "\0"))
                            .map_err(|_| concat!("it does not export ", stringify!($name)))?,)*
                    })
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_demand_is_none() {
        assert_eq!(demanded(Some(OsString::new())), None);
        assert_eq!(demanded(Some("/a/libx.so".into())), Some("/a/libx.so".into()));
    }

    #[test]
    fn a_binary_has_its_directory_and_lib_beside_it() {
        let dirs = beside(Some(Path::new("/opt/t/bin/tilewright")));
        assert_eq!(dirs, [PathBuf::from("/opt/t/bin"), "/opt/t/lib".into()]);
        assert!(beside(None).is_empty());
    }

    #[test]
    fn a_missing_library_says_why() {
        // SAFETY: there is no such library.
        let error = unsafe { open(Path::new("libthat-is-not-there.so")) }.map(drop);
        let error = error.expect_err("it is not there");
        assert!(error.contains("libthat-is-not-there.so"), "{error}");
    }
}
