//! Shared libraries with a C interface.
//!
//! A library holds the kernels of a plan, the function that runs them, and the constants; it needs
//! the C library and nothing else. It is linked by the C compiler (`$CC`, else `cc`) from the
//! object file that LLVM makes, an assembler file that includes the constants, and a small C file
//! with the interface that [`crate::header::library`] describes.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tilewright_ir::{Error, Result, TensorFunc, tensor};
use tilewright_target::Target;

use crate::cache::ObjectCache;
use crate::emit::{assertions, check_prefix};
use crate::entry::Planned;
use crate::llvm::{Llvm, OptLevel};
use crate::{entry, header};

/// Most bytes of constants: code reaches them by offsets of 32 bits.
const MAX_CONSTANTS: usize = (1 << 31) - (1 << 26);

/// What a library is made from.
pub struct Library<'a> {
    /// Prefix of all symbols, a C identifier.
    pub name: &'a str,
    /// What to run.
    pub plan: &'a Planned,
    /// The lowered functions that the plan calls.
    pub funcs: &'a [(Arc<str>, &'a TensorFunc)],
    /// Objects and libraries with the C functions that the functions call.
    pub link: &'a [PathBuf],
    /// The machine, which has to be one that the C compiler generates code for.
    pub target: &'a Target,
}

/// A shared library.
pub struct Built {
    /// Its file.
    pub library: Vec<u8>,
    /// The C header.
    pub header: String,
}

impl Library<'_> {
    /// Makes the library and its header.
    ///
    /// # Errors
    /// [`Error::Toolchain`] if there is no C compiler or it fails, [`Error::Io`] if a temporary file
    /// cannot be written, [`Error::Input`] if the name is not a C identifier,
    /// [`Error::Unsupported`] for constants of 2 GB and more; and those of code generation.
    pub fn build(&self, llvm: &'static Llvm, cache: &ObjectCache) -> Result<Built> {
        check_prefix(self.name)?;
        let constants = self.constants()?;
        // The function with the kernels' interface has a prefix of its own, and stays inside.
        let inner = format!("{}_plan", self.name);
        let hidden = entry::Visibility::Hidden;
        let ir = entry::program_with(&inner, self.plan, self.funcs, self.target, hidden)?;
        let object = cache.compile(llvm, &ir, self.target, OptLevel::Full)?;

        let directory = tempfile::tempdir().map_err(|e| io("a temporary directory", &e))?;
        let directory = directory.path();
        let part = |name: &str, content: &[u8]| {
            let path = directory.join(name);
            std::fs::write(&path, content).map_err(|e| io(&path.display().to_string(), &e))?;
            Ok::<PathBuf, Error>(path)
        };
        let header = header::library(self.plan, self.name)?;
        part("interface.h", header.as_bytes())?;
        part("constants.bin", &constants)?;
        let object = part("kernels.o", &object.bytes)?;
        let interface = part("interface.c", self.interface(&inner).as_bytes())?;
        let assembler = part("constants.S", self.assembler().as_bytes())?;

        let mut arguments: Vec<OsString> = vec![
            "-shared".into(),
            "-fPIC".into(),
            "-O2".into(),
            "-fvisibility=hidden".into(),
            "-o".into(),
            "library".into(),
            interface.into(),
            assembler.into(),
            object.into(),
        ];
        for path in self.link {
            let path =
                std::path::absolute(path).map_err(|e| io(&path.display().to_string(), &e))?;
            arguments.push(path.into());
        }
        arguments.push("-lm".into());
        compile(&compiler(), directory, &arguments)?;
        let library = directory.join("library");
        let library =
            std::fs::read(&library).map_err(|e| io(&library.display().to_string(), &e))?;
        Ok(Built { library, header })
    }

    /// All constants, each at a 64-byte boundary.
    fn constants(&self) -> Result<Vec<u8>> {
        let offsets = self.offsets();
        let total = offsets.last().copied().unwrap_or(0);
        check_size(total)?;
        let mut bytes = vec![0; total];
        for (constant, &at) in self.plan.constants().iter().zip(&offsets) {
            let from = constant.bytes();
            bytes[at..at + from.len()].copy_from_slice(from);
        }
        Ok(bytes)
    }

    /// Where each constant begins, and where the last one ends.
    fn offsets(&self) -> Vec<usize> {
        let mut at = 0usize;
        let mut offsets = vec![0];
        for constant in self.plan.constants() {
            at = at.saturating_add(constant.bytes().len()).next_multiple_of(tensor::ALIGN);
            offsets.push(at);
        }
        offsets
    }

    fn assembler(&self) -> String {
        let name = self.name;
        format!(
            "#ifdef __APPLE__
#define SYMBOL _{name}_constants
    .const
#else
#define SYMBOL {name}_constants
    .section .rodata
    .hidden SYMBOL
#endif
    .globl SYMBOL
    .balign 64
SYMBOL:
    .incbin \"constants.bin\"
    .byte 0
#if defined(__linux__) && defined(__ELF__)
    .section .note.GNU-stack,\"\",%progbits
#endif
"
        )
    }

    /// The C file.
    fn interface(&self, inner: &str) -> String {
        let (name, upper) = (self.name, self.name.to_ascii_uppercase());
        let mut constants = String::new();
        for at in self.offsets().iter().take(self.plan.constants().len()) {
            let _ = write!(constants, "{name}_constants + {at}, ");
        }
        let mut messages = String::new();
        let called = self.plan.called();
        let shapes = self.plan.shapes();
        let of = |name: &Arc<str>| self.funcs.iter().find(|(n, _)| n == name).map(|(_, f)| *f);
        let steps = called.iter().map(|name| (format!("{name}: "), of(name)));
        let shape_func = shapes.map(|s| (String::new(), Some(&s.func)));
        for (n, (prefix, func)) in steps.chain(shape_func).enumerate() {
            for (k, assertion) in func.into_iter().flat_map(assertions).enumerate() {
                let result = n * entry::STEP + k + 1;
                let text = c_string(&format!("{prefix}{}", assertion.text(None)));
                let _ = writeln!(messages, "    case {result}: return {text};");
            }
        }
        // Where sizes are open, what a run takes before its inputs.
        let (declared, parameter, passed, arena, shape_func) = match shapes {
            Some(shapes) => (
                "const int64_t *, ",
                "const int64_t *shapes, ",
                "shapes, ",
                format!("(size_t)shapes[{}]", shapes.arena_bytes),
                format!(
                    "int32_t {0}(const {name}_context *, const int64_t *, int64_t *);

PUBLIC int {name}_shapes(const int64_t *sizes, int64_t *shapes) {{
    return {0}(&context, sizes, shapes);
}}

",
                    entry::shapes_symbol(inner)
                ),
            ),
            None => ("", "", "", format!("{upper}_ARENA_BYTES"), String::new()),
        };
        format!(
            "#include \"interface.h\"
#include <stdlib.h>

#define PUBLIC __attribute__((visibility(\"default\")))

extern const unsigned char {name}_constants[];
int32_t {entry}(const {name}_context *, {declared}const void *const *, void *const *,
                const void *const *, void *);

static const void *const constants[] = {{{constants}0}};
static {name}_context context;

{shape_func}PUBLIC int {name}_run({parameter}const void *const *inputs, void *const *outputs, void *arena) {{
    void *own = NULL;
    size_t bytes = {arena};
    if (arena == NULL && bytes > 0) {{
        if (posix_memalign(&own, 64, bytes) != 0) return {upper}_NO_MEMORY;
        arena = own;
    }}
    int result = {entry}(&context, {passed}inputs, outputs, constants, arena);
    free(own);
    return result;
}}

PUBLIC const char *{name}_message(int result) {{
    switch (result) {{
{messages}    default: return NULL;
    }}
}}

PUBLIC void {name}_set_parallel({name}_parallel_for parallel_for, void *user) {{
    context.parallel_for = parallel_for;
    context.user = user;
}}
",
            entry = entry::symbol(inner),
        )
    }
}

/// Whether a library can hold so many bytes of constants.
fn check_size(total: usize) -> Result<()> {
    if total <= MAX_CONSTANTS {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "{total} bytes of constants in a shared library, at most {MAX_CONSTANTS} are possible"
    ))
    .help("compile to an object file, whose caller provides the constants"))
}

/// The C compiler that the environment asks for.
pub(crate) fn compiler() -> OsString {
    std::env::var_os("CC").filter(|c| !c.is_empty()).unwrap_or_else(|| "cc".into())
}

/// Runs a C compiler in a directory.
pub(crate) fn compile(compiler: &OsStr, directory: &Path, arguments: &[OsString]) -> Result<()> {
    let shown = compiler.to_string_lossy().into_owned();
    let output = Command::new(compiler)
        .args(arguments)
        .current_dir(directory)
        .env("LC_ALL", "C")
        .output()
        .map_err(|e| {
            Error::toolchain(format!("the C compiler `{shown}` cannot be run: {e}"))
                .help("install gcc or clang, or name the compiler in the environment variable CC")
        })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::toolchain(format!("the C compiler `{shown}` failed: {}", output.status))
        .note(said.trim_end()))
}

fn io(what: &str, error: &std::io::Error) -> Error {
    Error::io(format!("cannot write {what}: {error}"))
}

/// A C string literal.
fn c_string(text: &str) -> String {
    let mut out = String::from("\"");
    for b in text.bytes() {
        match b {
            b'"' | b'\\' | b'?' => {
                out.push('\\');
                out.push(char::from(b));
            }
            b' '..=b'~' => out.push(char::from(b)),
            _ => {
                let _ = write!(out, "\\{b:03o}");
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_a_literal() {
        assert_eq!(c_string("a \"b\" \\ \n é??/"), r#""a \"b\" \\ \012 \303\251\?\?/""#);
    }

    #[test]
    fn a_compiler_that_fails_says_why() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let arguments = ["-o".into(), "x".into(), "missing_file.c".into()];
        let error = compile(OsStr::new("cc"), directory.path(), &arguments);
        let error = error.expect_err("there is no such file");
        assert!(matches!(error, Error::Toolchain(_)));
        let text = error.render();
        assert!(text.contains("failed: ") && text.contains("missing_file.c"), "{text}");
    }

    #[test]
    fn a_compiler_that_is_not_there_is_an_error_with_help() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let error = compile(OsStr::new("no-such-cc"), directory.path(), &[]);
        let error = error.expect_err("there is no such compiler");
        assert!(matches!(error, Error::Toolchain(_)));
        let text = error.render();
        assert!(text.contains("the C compiler `no-such-cc` cannot be run: "), "{text}");
        assert!(text.contains("help: install gcc or clang"), "{text}");
    }

    #[test]
    fn too_many_constants_are_refused() {
        assert!(check_size(MAX_CONSTANTS).is_ok());
        let error = check_size(MAX_CONSTANTS + 1).expect_err("too many");
        assert!(matches!(error, Error::Unsupported(_)));
        assert!(error.render().contains("help: compile to an object file"), "{}", error.render());
    }
}
