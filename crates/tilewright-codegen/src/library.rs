//! Libraries with a C interface, shared or static.
//!
//! A library holds the kernels of a plan, the function that runs them, and the constants; it needs
//! the C library and nothing else. It is made by the C compiler (`$CC`; else `cc`, or for another machine
//! the one that gcc's packages call by its triple) from the object file that LLVM makes, an assembler file
//! that includes the constants, and a small C file with the interface that [`crate::header::library`]
//! describes.
//!
//! Where sizes are open, there may be versions for some sizes: plans of their own, with kernels and
//! constants of their own. Constants that are equal are there once. `NAME_shapes` finds the version
//! from the extents that it has computed; the numbers of a version lie behind those of the plan for
//! all sizes.
//!
//! A model with control flow is a program over pieces ([`Control`]): it is written as tables, which a
//! executor in C runs, and each piece is a plan with kernels and constants of its own.

mod control;
mod given;

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::{Error, Result, Tensor, TensorFunc, tensor};
use tilewright_target::Target;

use crate::cache::ObjectCache;
use crate::emit::{assertions, check_prefix};
use crate::entry::Planned;
use crate::header::Version;
use crate::llvm::{Llvm, OptLevel};
use crate::{entry, header, kernels};

pub use control::signature;
pub use given::{Control, Library, Program};

/// Most bytes of constants: code reaches them by offsets of 32 bits.
const MAX_CONSTANTS: usize = (1 << 31) - (1 << 26);

/// All constants of a library, each once.
pub(crate) struct Constants<'a> {
    /// With where they begin, at 64-byte boundaries.
    pub all: Vec<(usize, &'a [u8])>,
    /// For each program, where each of its constants begins.
    pub of: Vec<Vec<usize>>,
    /// Where those begin that are used beside the programs.
    pub others: Vec<usize>,
    /// Where the last one ends.
    total: usize,
}

impl<'a> Constants<'a> {
    pub fn new(
        programs: impl IntoIterator<Item = Program<'a>>,
        others: impl IntoIterator<Item = &'a Tensor>,
    ) -> Constants<'a> {
        let mut constants =
            Constants { all: Vec::new(), of: Vec::new(), others: Vec::new(), total: 0 };
        let mut at: HashMap<&[u8], usize> = HashMap::default();
        for program in programs {
            let own = program.plan.constants().iter().map(|c| constants.place(c, &mut at));
            let own = own.collect();
            constants.of.push(own);
        }
        for constant in others {
            let start = constants.place(constant, &mut at);
            constants.others.push(start);
        }
        constants
    }

    /// Where a constant starts, behind the others if it is not among them.
    fn place(&mut self, constant: &'a Tensor, at: &mut HashMap<&'a [u8], usize>) -> usize {
        let bytes = constant.bytes();
        *at.entry(bytes).or_insert_with(|| {
            let start = self.total;
            self.total = start.saturating_add(bytes.len()).next_multiple_of(tensor::ALIGN);
            self.all.push((start, bytes));
            start
        })
    }

    /// All of them, one behind the other.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.total];
        for (at, from) in &self.all {
            bytes[*at..at + from.len()].copy_from_slice(from);
        }
        bytes
    }
}

/// A library.
pub struct Built {
    /// Its file.
    pub library: Vec<u8>,
    /// The C header.
    pub header: String,
}

/// The programs of a library in C.
struct Programs {
    /// Their functions.
    declared: String,
    /// Their constants.
    tables: String,
    /// What their results mean, as cases.
    messages: String,
    /// Where the results of each begin, and where the last ones end.
    bases: Vec<usize>,
}

impl Library<'_> {
    /// [`FileBackend::shared`](crate::files::FileBackend::shared), by LLVM.
    ///
    /// # Errors
    /// See there.
    pub fn build(&self, llvm: &'static Llvm, cache: &ObjectCache) -> Result<Built> {
        let (linker, header) = self.parts(llvm, cache)?;
        Ok(Built { library: linker.link(self.link)?, header })
    }

    /// [`FileBackend::archive`](crate::files::FileBackend::archive), by LLVM.
    ///
    /// # Errors
    /// See there.
    pub fn archive(&self, llvm: &'static Llvm, cache: &ObjectCache) -> Result<Built> {
        if !self.link.is_empty() {
            return Err(Error::unsupported(
                "a static library holds no other libraries and objects",
            )
            .help("link them with the program that is linked with it"));
        }
        let (linker, header) = self.parts(llvm, cache)?;
        Ok(Built { library: linker.archive()?, header })
    }

    /// What it is made from, and its header.
    fn parts(&self, llvm: &'static Llvm, cache: &ObjectCache) -> Result<(Linker, String)> {
        check_prefix(self.name)?;
        let own = self.control.map(|c| control::constants(&c.program.body)).unwrap_or_default();
        let constants = Constants::new(self.programs(), own);
        check_size(constants.total)?;
        let bytes = constants.bytes();
        // The functions with the kernels' interface have prefixes of their own, and stay inside.
        let modules = self.programs().enumerate().map(|(k, program)| {
            let Program { plan, funcs } = program;
            entry::parts_of_program(&self.inner(k), plan, funcs, self.target)
        });
        let modules = modules.collect::<Result<Vec<_>>>()?.concat();
        let how = (self.target, OptLevel::Full);
        let objects = kernels::objects_of(llvm, cache, &modules, how, &|_| {})?;
        let general = self.program.plan;
        let versions = if self.control.is_some() { &[] } else { self.versions };
        let versions = versions.iter().map(|p| Version::new(general, p.plan));
        let versions = versions.collect::<Result<Vec<_>>>()?;

        let header = match self.control.filter(|c| control::is_decided(c.program)) {
            None => header::library(general, &versions, self.control.is_some(), self.name)?,
            Some(c) => header::results(general, &c.program.signature.outputs, self.name)?,
        };
        let mut linker = Linker::new(self.target, &["-O2", "-fwrapv"])?;
        linker.name(self.soname);
        linker.file("interface.h", header.as_bytes())?;
        linker.file("constants.bin", &bytes)?;
        linker.part("interface.c", self.interface(&constants, &versions)?.as_bytes())?;
        linker.part("constants.S", self.assembler().as_bytes())?;
        for (k, object) in objects.iter().enumerate() {
            linker.part(&format!("kernels_{k}.o"), object)?;
        }
        Ok((linker, header))
    }

    /// The program for all sizes, and those for some, or the pieces of control flow.
    fn programs(&self) -> impl Iterator<Item = Program<'_>> {
        let others = self.control.map_or(self.versions, |control| control.pieces);
        std::iter::once(self.program).chain(others.iter().copied())
    }

    /// The prefix of what one of the programs defines.
    fn inner(&self, k: usize) -> String {
        match k {
            0 => format!("{}_plan", self.name),
            k => format!("{}_plan_{k}", self.name),
        }
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

    /// What is declared for the programs.
    fn declarations(&self, constants: &Constants<'_>) -> Result<Programs> {
        let name = self.name;
        let (mut declared, mut tables, mut messages) =
            (String::new(), String::new(), String::new());
        // The results of a program come behind those of the ones before it.
        let (mut base, mut bases) = (0, Vec::new());
        for (k, Program { plan, funcs }) in self.programs().enumerate() {
            let inner = self.inner(k);
            let _ = write!(tables, "static const void *const constants_{k}[] = {{");
            for at in &constants.of[k] {
                let _ = write!(tables, "{name}_constants + {at}, ");
            }
            tables += "0};\n";
            messages += &cases_of_messages(plan, funcs, base);
            bases.push(base);
            base += (plan.called().len() + 1) * entry::STEP;
            check_results(base)?;
            let heap = match plan.shapes() {
                Some(_) => {
                    let symbol = entry::shapes_symbol(&inner);
                    let _ = writeln!(
                        declared,
                        "int32_t {symbol}(const {name}_context *, const int64_t *, int64_t *);"
                    );
                    "const int64_t *, "
                }
                None => "",
            };
            let _ = writeln!(
                declared,
                "int32_t {}(const {name}_context *, {heap}const void *const *, void *const *,
                const void *const *, void *);",
                entry::symbol(&inner)
            );
        }
        bases.push(base);
        Ok(Programs { declared, tables, messages, bases })
    }

    /// The function that computes sizes, where they are open, and the code that runs the program, or the
    /// version, for these sizes.
    fn choice(&self, bases: &[usize], versions: &[Version]) -> (String, String) {
        let name = self.name;
        let shapes = self.program.plan.shapes();
        let passed = if shapes.is_some() { "shapes, " } else { "" };
        let mut shape_func = String::new();
        let mut chosen = format!("    int result = {};\n", self.run_call(0, passed));
        if let Some(shapes) = shapes {
            let general = entry::shapes_symbol(&self.inner(0));
            if !versions.is_empty() {
                shape_func += "/* The version for these sizes; 0 for the program for all sizes. */
static int version(const int64_t *shapes) {\n";
                for (k, version) in (1..).zip(versions) {
                    let tests: Vec<String> = version
                        .extents
                        .iter()
                        .map(|(at, extent)| format!("shapes[{at}] == {extent}"))
                        .collect();
                    let _ = writeln!(shape_func, "    if ({}) return {k};", tests.join(" && "));
                }
                shape_func += "    return 0;\n}\n\n";
            }
            let _ = write!(
                shape_func,
                "PUBLIC int {name}_shapes(const int64_t *sizes, int64_t *shapes) {{
    int result = {general}(&context, sizes, shapes);
"
            );
            if !versions.is_empty() {
                shape_func +=
                    "    if (result != 0) return result;\n    switch (version(shapes)) {\n";
                chosen = "    int result = 0;\n    switch (version(shapes)) {\n".to_owned();
            }
            for (k, (program, version)) in (1..).zip(self.versions.iter().zip(versions)) {
                let own = match program.plan.shapes() {
                    None => "",
                    Some(_) => &format!("shapes + {}, ", shapes.count),
                };
                let _ = write!(
                    chosen,
                    "    case {k}:\n    result = {};\n{}    break;\n",
                    self.run_call(k, own),
                    result_base(k, bases)
                );
                let bytes = match (program.plan, program.plan.shapes()) {
                    (Planned::Fixed(plan), _) => plan.arena_bytes.to_string(),
                    (_, None) => "0".to_owned(),
                    (_, Some(own)) => format!("shapes[{}]", shapes.count + own.arena_bytes),
                };
                let _ = writeln!(shape_func, "    case {k}: {{");
                if program.plan.shapes().is_some() {
                    let sizes = version.sizes.iter().map(|at| format!("shapes[{at}], "));
                    let _ = write!(
                        shape_func,
                        "    const int64_t left[] = {{{}0}};
    result = {}(&context, left, shapes + {});\n{}",
                        sizes.collect::<String>(),
                        entry::shapes_symbol(&self.inner(k)),
                        shapes.count,
                        result_base(k, bases)
                    );
                }
                let _ = writeln!(shape_func, "    shapes[{}] = {bytes};", shapes.arena_bytes);
                shape_func += "    break;\n    }\n";
            }
            if !versions.is_empty() {
                shape_func += "    }\n";
                let _ = write!(
                    chosen,
                    "    default:\n    result = {};\n    }}\n",
                    self.run_call(0, passed)
                );
            }
            shape_func += "    return result;\n}\n\n";
        }
        (shape_func, chosen)
    }

    fn run_call(&self, k: usize, heap: &str) -> String {
        let inner = entry::symbol(&self.inner(k));
        format!("{inner}(&context, {heap}inputs, outputs, constants_{k}, arena)")
    }

    /// The C file.
    fn interface(&self, constants: &Constants<'_>, versions: &[Version]) -> Result<String> {
        let (name, upper) = (self.name, self.name.to_ascii_uppercase());
        let Programs { declared, tables, mut messages, bases } = self.declarations(constants)?;
        let base = bases.last().copied().unwrap_or(0);
        // Where sizes are open, what a run takes before its inputs.
        let (parameter, arena) = match self.program.plan.shapes() {
            Some(shapes) => {
                ("const int64_t *shapes, ", format!("(size_t)shapes[{}]", shapes.arena_bytes))
            }
            None => ("", format!("{upper}_ARENA_BYTES")),
        };
        let (shape_func, chosen) = self.choice(&bases, versions);
        let mut functions = String::new();
        let run = match self.control {
            None => format!(
                "PUBLIC int {name}_run({parameter}const void *const *inputs, void *const *outputs, void *arena) {{
    void *own = NULL;
    size_t bytes = {arena};
    if (arena == NULL && bytes > 0) {{
        if (posix_memalign(&own, 64, bytes) != 0) return {upper}_NO_MEMORY;
        arena = own;
    }}
{chosen}    free(own);
    return result;
}}
"
            ),
            Some(control) => {
                let code = control::code(self, control, &bases, &constants.others)?;
                check_results(base + code.messages.len())?;
                for (k, text) in code.messages.iter().enumerate() {
                    let text = c_string(text);
                    let _ = writeln!(messages, "    case {}: return {text};", base + k + 1);
                }
                functions = code.functions;
                code.run
            }
        };
        Ok(format!(
            "#include \"interface.h\"
#include <stdlib.h>

#define PUBLIC __attribute__((visibility(\"default\")))

extern const unsigned char {name}_constants[];
{declared}
{tables}static {name}_context context;

{functions}{shape_func}{run}
PUBLIC const char *{name}_message(int result) {{
    switch (result) {{
{messages}    default: return NULL;
    }}
}}

PUBLIC void {name}_set_parallel({name}_parallel_for parallel_for, void *user) {{
    context.parallel_for = parallel_for;
    context.user = user;
}}
"
        ))
    }
}

/// What the results of a plan mean, which begin behind `base`, as cases in C.
pub(crate) fn cases_of_messages(
    plan: &Planned,
    funcs: &[(Arc<str>, &TensorFunc)],
    base: usize,
) -> String {
    let called = plan.called();
    let steps = called
        .iter()
        .map(|name| (format!("{name}: "), funcs.iter().find(|(n, _)| n == *name).map(|(_, f)| *f)));
    let shape_func = plan.shapes().map(|s| (String::new(), Some(&s.func)));
    let mut cases = String::new();
    for (n, (prefix, func)) in steps.chain(shape_func).enumerate() {
        for (k, assertion) in func.into_iter().flat_map(assertions).enumerate() {
            let result = base + n * entry::STEP + k + 1;
            let text = c_string(&format!("{prefix}{}", assertion.text(None)));
            let _ = writeln!(cases, "    case {result}: return {text};");
        }
    }
    cases
}

/// A result of one of the programs as one of the library.
fn result_base(k: usize, bases: &[usize]) -> String {
    match bases[k] {
        0 => String::new(),
        base => format!("    if (result > 0) result += {base};\n"),
    }
}

/// Whether an `int` tells so many results apart.
pub(crate) fn check_results(count: usize) -> Result<()> {
    match i32::try_from(count) {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::unsupported("more kernel calls than results of a run can tell apart")),
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

/// What a library is made from, in a directory of its own.
pub(crate) struct Linker {
    directory: tempfile::TempDir,
    compiler: Compiler,
    /// How what is C is compiled.
    flags: Vec<OsString>,
    /// Files that are compiled or linked.
    parts: Vec<OsString>,
    /// What a shared library is called.
    name: Vec<OsString>,
    is_apple: bool,
}

impl Linker {
    /// Nothing yet, for a machine, and how what is C is compiled.
    pub fn new(target: &Target, flags: &[&str]) -> Result<Linker> {
        let directory = tempfile::tempdir().map_err(|e| io("a temporary directory", &e))?;
        let flags = flags.iter().copied().chain(["-fPIC", "-fvisibility=hidden"]);
        Ok(Linker {
            directory,
            compiler: Compiler::for_triple(&target.triple),
            flags: flags.map(Into::into).collect(),
            parts: Vec::new(),
            name: Vec::new(),
            is_apple: target.triple.contains("-apple-"),
        })
    }

    /// Says by which name programs that are linked with a shared library ask for it.
    pub fn name(&mut self, name: Option<&OsStr>) {
        let Some(name) = name else { return };
        let option = if self.is_apple { "-install_name" } else { "-soname" };
        let linker = OsStr::new("-Xlinker");
        self.name = [linker, OsStr::new(option), linker, name].map(Into::into).to_vec();
    }

    /// Writes a file that others read.
    pub fn file(&self, name: &str, content: &[u8]) -> Result<()> {
        let path = self.directory.path().join(name);
        std::fs::write(&path, content).map_err(|e| io(&path.display().to_string(), &e))
    }

    /// Writes a file that is linked.
    pub fn part(&mut self, name: &str, content: &[u8]) -> Result<()> {
        self.parts.push(name.into());
        self.file(name, content)
    }

    /// Links the parts and further objects and libraries into a shared library.
    pub fn link(self, others: &[PathBuf]) -> Result<Vec<u8>> {
        let mut arguments = self.flags.clone();
        arguments.extend(["-shared", "-o", "library"].map(Into::into));
        arguments.extend(self.name.iter().chain(&self.parts).cloned());
        for path in others {
            // The linker would wait for what writes to a pipe.
            tilewright_dylib::check_plain(path).map_err(Error::io)?;
            let absolute = std::path::absolute(path);
            arguments.push(absolute.map_err(|e| io(&path.display().to_string(), &e))?.into());
        }
        arguments.push("-lm".into());
        self.compiler.run(self.directory.path(), &arguments)?;
        self.read_library()
    }

    /// Compiles the parts into a static library.
    pub fn archive(self) -> Result<Vec<u8>> {
        let directory = self.directory.path();
        let sources: Vec<_> = self
            .parts
            .iter()
            .filter(|part| Path::new(part).extension() != Some(OsStr::new("o")))
            .cloned()
            .collect();
        self.compiler.run(directory, &[&self.flags[..], &["-c".into()], &sources[..]].concat())?;
        let objects = self.parts.iter().map(|part| Path::new(part).with_extension("o").into());
        // That of the compiler: it knows the machine's object files.
        let tool = self.compiler.run(directory, &["-print-prog-name=ar".into()])?;
        let arguments = ["rcs".into(), "library".into()].into_iter().chain(objects);
        run_tool("archiver", OsStr::new(tool.trim()), directory, &arguments.collect::<Vec<_>>())?;
        self.read_library()
    }

    fn read_library(&self) -> Result<Vec<u8>> {
        let library = self.directory.path().join("library");
        std::fs::read(&library).map_err(|e| io(&library.display().to_string(), &e))
    }
}

/// The C compiler for a machine.
struct Compiler {
    program: OsString,
    /// What to do where it is not there.
    help: String,
}

impl Compiler {
    /// That of the environment, else the one that gcc's packages have for a triple.
    fn for_triple(triple: &str) -> Compiler {
        let named = std::env::var_os("CC").filter(|c| !c.is_empty());
        let Some(cross) = cross_compiler(triple) else {
            let help =
                "install gcc or clang, or name the compiler in the environment variable CC".into();
            return Compiler { program: named.unwrap_or_else(|| "cc".into()), help };
        };
        let help = format!(
            "install `{cross}`, or name a C compiler for {triple} in the environment variable CC"
        );
        Compiler { program: named.unwrap_or_else(|| cross.into()), help }
    }

    /// Runs it in a directory; what it says on its standard output.
    fn run(&self, directory: &Path, arguments: &[OsString]) -> Result<String> {
        let output = run_tool("C compiler", &self.program, directory, arguments);
        output.map_err(|e| if e.diagnostic().notes.is_empty() { e.help(&self.help) } else { e })
    }
}

/// What gcc's packages call the compiler for another machine than this one: the triple without the
/// vendor, and `-gcc`. `None` for this machine's own triple.
fn cross_compiler(triple: &str) -> Option<String> {
    use std::env::consts::{ARCH, OS};
    let (arch, rest) = triple.split_once('-')?;
    let own = if arch == "arm64" { "aarch64" } else { arch };
    let system = if OS == "macos" { "apple" } else { OS };
    if own == ARCH && rest.contains(system) {
        return None;
    }
    let system = rest.split_once('-').map_or(rest, |(_, system)| system);
    Some(format!("{arch}-{system}-gcc"))
}

/// Runs a tool in a directory; what it says on its standard output.
fn run_tool(
    what: &str,
    program: &OsStr,
    directory: &Path,
    arguments: &[OsString],
) -> Result<String> {
    let shown = program.to_string_lossy();
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .env("LC_ALL", "C")
        .output()
        .map_err(|e| Error::toolchain(format!("the {what} `{shown}` cannot be run: {e}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    Err(Error::toolchain(format!("the {what} `{shown}` failed: {}", output.status))
        .note(message.trim_end()))
}

fn io(what: &str, error: &std::io::Error) -> Error {
    Error::io(format!("cannot write {what}: {error}"))
}

/// A C string literal.
pub(crate) fn c_string(text: &str) -> String {
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
        let compiler = Compiler { program: "cc".into(), help: String::new() };
        let error = compiler.run(directory.path(), &arguments);
        let error = error.expect_err("there is no such file");
        assert!(matches!(error, Error::Toolchain(_)));
        let text = error.render();
        assert!(text.contains("failed: ") && text.contains("missing_file.c"), "{text}");
    }

    #[test]
    fn a_compiler_that_is_not_there_is_an_error_with_help() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let compiler = Compiler { program: "no-such-cc".into(), help: "install gcc".into() };
        let error = compiler.run(directory.path(), &[]);
        let error = error.expect_err("there is no such compiler");
        assert!(matches!(error, Error::Toolchain(_)));
        let text = error.render();
        assert!(text.contains("the C compiler `no-such-cc` cannot be run: "), "{text}");
        assert!(text.contains("help: install gcc"), "{text}");
    }

    #[test]
    fn another_machine_has_a_compiler_of_its_own() {
        assert_eq!(compiler_for("riscv64-unknown-linux-gnu"), "riscv64-linux-gnu-gcc");
        let own = Llvm::get().expect("an LLVM").host().triple;
        assert_eq!(compiler_for(&own), "", "{own}");
    }

    fn compiler_for(triple: &str) -> String {
        cross_compiler(triple).unwrap_or_default()
    }

    #[test]
    fn too_many_constants_are_refused() {
        assert!(check_size(MAX_CONSTANTS).is_ok());
        let error = check_size(MAX_CONSTANTS + 1).expect_err("too many");
        assert!(matches!(error, Error::Unsupported(_)));
        assert!(error.render().contains("help: compile to an object file"), "{}", error.render());
    }
}
