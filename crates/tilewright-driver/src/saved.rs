//! Compiled modules as files that start without the backend that made them.
//!
//! A file holds the lowered module as text, its constants as bytes, and the kernels as a shared
//! library, and the same for each version that there is for some sizes; whoever opens it plans memory anew from the module, which is quick and always the same.
//! So nothing of a plan is in the file, and the file is as stable as TVMScript. What runs a model with
//! control flow is derived from the text as well: its entry is a graph function that calls pieces
//! (`tilewright_graph::control`).
//!
//! | bytes | what |
//! |---|---|
//! | 16 | `TILEWRIGHT MODEL` |
//! | 4, 4 | version of the format; 0 |
//! | 32 | BLAKE3 of the header with its length |
//! | 8 | length of the header |
//! | | the header, JSON: `Header`, with the BLAKE3 of each section |
//! | | the sections, each at a multiple of 64, zeros between them |
//!
//! The library is code: a file is opened only by those who trust where it is from. The checksums find
//! damage, and no forgery.

use std::io::Write;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tilewright_codegen::packed;
use tilewright_ir::{DType, Error, Lowered, Result, Source, Tensor, tensor};
use tilewright_runtime::{Executable, Pool};
use tilewright_target::Target;
use tilewright_tvmscript::{ConstTable, parse_module_with, print_module_with};

use super::options::Options;
use super::program::Program;

const MAGIC: &[u8; 16] = b"TILEWRIGHT MODEL";
const VERSION: u32 = 4;
/// Where the header begins: behind magic, version, checksum and its own length.
const HEADER: usize = 16 + 8 + 32 + 8;

/// Whatever who saves a program wants to find again.
pub type Note = serde_json::Value;

/// What stands in front of the sections.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    /// The machine: its triple, its processor, and what that has.
    triple: String,
    cpu: String,
    features: String,
    /// Threads of a run, unless said otherwise; none for one a core.
    threads: Option<usize>,
    /// Whatever who saved it wants to find again.
    note: Note,
    /// What runs at all sizes, then the versions for some.
    programs: Vec<Code>,
    constants: Vec<Constant>,
}

/// A lowered module and its kernels.
#[derive(Debug, Serialize, Deserialize)]
struct Code {
    module: Section,
    library: Section,
}

/// A range of bytes, counted from the end of the header.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Section {
    at: usize,
    count: usize,
    /// BLAKE3, in hexadecimal digits.
    hash: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Constant {
    name: String,
    dtype: String,
    shape: Vec<usize>,
    bytes: Section,
}

/// The content of a file, whose sections stay where they are.
pub struct Content {
    head: Vec<u8>,
    parts: Vec<Tensor>,
}

impl Content {
    /// The content for a lowered module, and for its versions for some sizes behind it; `note` is what
    /// [`Opened::note`] gives back.
    ///
    /// # Errors
    /// [`Error::Toolchain`] if there is no C compiler; those of code generation.
    pub fn new(programs: &[&Lowered], options: &Options, note: Note) -> Result<Content> {
        let target = options.resolve_target()?;
        let mut table = ConstTable::default();
        let programs = programs
            .iter()
            .map(|lowered| {
                let text = print_module_with(lowered, &mut table);
                // What is read back is compiled: its places are those in the text of the file.
                let program = read(text.clone(), &table)?;
                let functions = program.called();
                let library = options.with_code_options(|code| {
                    options.backend.pack(&program.module, &functions, &target, code)
                })?;
                Ok((text, library))
            })
            .collect::<Result<Vec<_>>>()?;
        Content::pack(&programs, &table, &target, options, note)
    }

    /// The content for a lowered module without its kernels, for [`open_program`].
    ///
    /// # Errors
    /// Those of [`Options::resolve_target`].
    pub(crate) fn without_code(
        lowered: &Lowered,
        options: &Options,
        note: Note,
    ) -> Result<Content> {
        let mut table = ConstTable::default();
        let text = print_module_with(lowered, &mut table);
        Content::pack(&[(text, Vec::new())], &table, &options.resolve_target()?, options, note)
    }

    /// The content for texts of modules with their kernels.
    fn pack(
        programs: &[(String, Vec<u8>)],
        table: &ConstTable,
        target: &Target,
        options: &Options,
        note: Note,
    ) -> Result<Content> {
        let (mut parts, mut end) = (Vec::new(), 0usize);
        let mut add = |tensor: Tensor| {
            let (at, count) = (end, tensor.bytes().len());
            let hash = blake3::hash(tensor.bytes()).to_hex().to_string();
            end = (at + count).next_multiple_of(tensor::ALIGN);
            parts.push(tensor);
            Section { at, count, hash }
        };
        let bytes = |bytes: &[u8]| Tensor::from_bytes(DType::U8, &[bytes.len()], bytes);
        let header = Header {
            triple: target.triple.clone(),
            cpu: target.cpu.clone(),
            features: target.features.clone(),
            threads: options.threads,
            note,
            programs: programs
                .iter()
                .map(|(text, library)| {
                    let module = add(bytes(text.as_bytes())?);
                    Ok(Code { module, library: add(bytes(library)?) })
                })
                .collect::<Result<_>>()?,
            constants: table
                .iter()
                .map(|(name, t)| Constant {
                    name: name.to_string(),
                    dtype: t.dtype().to_string(),
                    shape: t.shape().to_vec(),
                    bytes: add(t.clone()),
                })
                .collect(),
        };
        let mut header = serde_json::to_vec(&header)
            .map_err(|e| Error::internal(format!("a header as JSON: {e}")))?;
        // So that the sections begin at a multiple of 64.
        header.resize((HEADER + header.len()).next_multiple_of(tensor::ALIGN) - HEADER, b' ');
        let mut counted = (header.len() as u64).to_le_bytes().to_vec();
        counted.extend_from_slice(&header);
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&VERSION.to_le_bytes());
        head.extend_from_slice(&[0; 4]);
        head.extend_from_slice(blake3::hash(&counted).as_bytes());
        head.extend_from_slice(&counted);
        Ok(Content { head, parts })
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        let parts = self.parts.iter().map(|t| t.bytes().len().next_multiple_of(tensor::ALIGN));
        self.head.len() + parts.sum::<usize>()
    }

    /// Whether there are none; there always are.
    pub fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    /// Writes the bytes.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        out.write_all(&self.head)?;
        for part in &self.parts {
            let count = part.bytes().len();
            out.write_all(part.bytes())?;
            out.write_all(&[0; tensor::ALIGN][..count.next_multiple_of(tensor::ALIGN) - count])?;
        }
        Ok(())
    }
}

/// The module of a text, and its plan.
fn read(text: String, table: &ConstTable) -> Result<Program> {
    let module = parse_module_with(&Source::new("<saved>", text), table)?;
    Program::plan(Lowered::new(module)?)
}

/// The executable of a file's content, with everything checked; `threads` are those of a run, instead of
/// those that the file says. Constants stay in the memory of the content.
///
/// # Errors
/// [`Error::Model`] if this is no such file, or a damaged one; [`Error::Unsupported`] if this machine
/// lacks features that the code uses, or the file is of another version.
///
/// # Safety
/// The content is what [`Content::write`] wrote: the code in it is run.
pub unsafe fn open(content: &Tensor, threads: Option<usize>) -> Result<Executable> {
    // SAFETY: the contract is the same.
    unsafe { open_noted(content, threads, Check::All) }.map(|opened| opened.executable)
}

/// Which checksums are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// All of them.
    All,
    /// Those of the header, the module and the code. The constants are known to be right.
    Code,
}

/// What was opened.
pub struct Opened {
    /// It runs.
    pub executable: Executable,
    /// What was noted when it was saved.
    pub note: Note,
}

/// As [`open`], with what was noted when the file was saved, and as much checked as is said.
///
/// # Errors
/// As [`open`].
///
/// # Safety
/// As [`open`].
pub(crate) unsafe fn open_noted(
    content: &Tensor,
    threads: Option<usize>,
    check: Check,
) -> Result<Opened> {
    let Sections { header, programs, table } = sections(content, check)?;
    check_host(&Target::new(&*header.triple, &*header.cpu, &*header.features))?;
    let threads = threads.or(header.threads).unwrap_or_else(tilewright_target::cores);
    let mut executables = Vec::new();
    for (text, library) in programs {
        let program = read(text.to_owned(), &table)?;
        // SAFETY: by contract the library was made from these functions, for a machine whose features
        // this one has.
        executables.push(unsafe {
            let code = packed::open(library, &program.module, &program.called())?;
            program.executable(code, Pool::shared(threads)?)
        }?);
    }
    let mut executables = executables.into_iter();
    let executable = executables.next().ok_or_else(nothing)?;
    let executable = executable.with_versions(executables.collect())?;
    Ok(Opened { executable, note: header.note })
}

fn nothing() -> Error {
    Error::model("the file is damaged: there is no program in it")
}

/// The program of a file's content, and what was noted when it was saved; its kernels are not looked
/// at.
///
/// # Errors
/// [`Error::Model`] if this is no such file, or a damaged one.
pub fn open_program(content: &Tensor, check: Check) -> Result<(Program, Note)> {
    let Sections { header, programs, table } = sections(content, check)?;
    let (text, _) = programs.first().ok_or_else(nothing)?;
    Ok((read((*text).to_owned(), &table)?, header.note))
}

/// The sections of a file's content, read.
struct Sections<'a> {
    header: Header,
    /// Texts of modules, and their kernels.
    programs: Vec<(&'a str, &'a [u8])>,
    /// Constants, which stay in the memory of the content.
    table: ConstTable,
}

fn sections(content: &Tensor, check: Check) -> Result<Sections<'_>> {
    let all = content.bytes();
    let (header, end) = header(all)?;
    let mut last = end;
    let mut hashing = Hashing { content, read: 0 };
    let mut bytes_of = |p: &Section, checked: bool| {
        let start =
            end.checked_add(p.at).filter(|start| *start >= last).ok_or_else(broken_header)?;
        let stop = start.checked_add(p.count).ok_or_else(broken_header)?;
        let (gap, bytes) = (all.get(last..start), all.get(start..stop));
        let (gap, bytes) = gap.zip(bytes).ok_or_else(broken_header)?;
        last = stop;
        let is_right = gap.len() < tensor::ALIGN && gap.iter().all(|b| *b == 0);
        if is_right && (!checked || hashing.hash(bytes) == p.hash) {
            Ok(bytes)
        } else {
            Err(Error::model("the file is damaged: its checksum is wrong"))
        }
    };
    // In their order.
    let mut programs = Vec::new();
    for program in &header.programs {
        let text = bytes_of(&program.module, true)?;
        let text = std::str::from_utf8(text).map_err(|_| broken_header())?;
        programs.push((text, bytes_of(&program.library, true)?));
    }
    let mut table = ConstTable::default();
    for c in &header.constants {
        let bytes = bytes_of(&c.bytes, check == Check::All)?;
        let dtype: DType = c.dtype.parse()?;
        if tensor::byte_count(dtype, &c.shape) != Some(bytes.len()) {
            return Err(broken_header());
        }
        let owner = Arc::new(content.clone());
        let start = std::ptr::NonNull::from(bytes).cast();
        // SAFETY: the bytes are those of the owner, which is not written while it is shared.
        let tensor = unsafe { Tensor::from_foreign(dtype, &c.shape, start, owner) }?;
        table.insert(&*c.name, tensor);
    }
    let rest = &all[last..];
    if !all.len().is_multiple_of(tensor::ALIGN) {
        return Err(Error::model("the file is damaged: it ends in the middle"));
    }
    if rest.len() >= tensor::ALIGN || rest.iter().any(|b| *b != 0) {
        return Err(Error::model("the file is damaged: it goes on behind its end"));
    }
    Ok(Sections { header, programs, table })
}

/// Hashes parts of a file's content, whose pages are let go of on the way: a check of all weights needs no memory
/// for them, and those that a run does not read soon are not kept.
struct Hashing<'a> {
    content: &'a Tensor,
    /// Bytes that were read since the last time.
    read: usize,
}

impl Hashing<'_> {
    fn hash(&mut self, part: &[u8]) -> String {
        /// Bytes between two times.
        const PIECE: usize = 1 << 24;
        let mut hasher = blake3::Hasher::new();
        for piece in part.chunks(PIECE) {
            hasher.update(piece);
            self.read += piece.len();
            if self.read >= PIECE {
                self.content.release();
                self.read = 0;
            }
        }
        hasher.finalize().to_hex().to_string()
    }
}

fn broken_header() -> Error {
    Error::model("the file is damaged: its header does not fit")
}

/// The header of a file, if its checksum is right, and where it ends.
fn header(all: &[u8]) -> Result<(Header, usize)> {
    if !all.starts_with(MAGIC) {
        return Err(Error::model("this is no compiled model of Tilewright"));
    }
    let head: &[u8; HEADER] = all.first_chunk().ok_or_else(ends_early)?;
    let version = u32::from_le_bytes([head[16], head[17], head[18], head[19]]);
    if version != VERSION {
        let what = format!("a compiled model of version {version}, and this reads {VERSION}");
        return Err(Error::unsupported(what).help("compile the model again"));
    }
    if head[20..24] != [0; 4] {
        return Err(broken_checksum());
    }
    let length = head.last_chunk().map(|b| u64::from_le_bytes(*b));
    let end = length.and_then(|n| HEADER.checked_add(usize::try_from(n).ok()?));
    let end = end.filter(|end| *end <= all.len()).ok_or_else(ends_early)?;
    if *blake3::hash(&all[HEADER - 8..end]).as_bytes() != head[24..56] {
        return Err(broken_checksum());
    }
    let header = serde_json::from_slice(&all[HEADER..end])
        .map_err(|e| Error::model(format!("the file is damaged: its header does not fit: {e}")))?;
    Ok((header, end))
}

fn ends_early() -> Error {
    Error::model("the file is damaged: it ends too early")
}

fn broken_checksum() -> Error {
    Error::model("the file is damaged: its checksum is wrong")
}

/// Refuses code for features that this machine lacks. No backend is asked; a feature that is not known
/// here counts as there.
fn check_host(target: &Target) -> Result<()> {
    let (arch, system) = target.triple.split_once('-').unwrap_or_default();
    let own = match std::env::consts::ARCH {
        "aarch64" => ["aarch64", "arm64"],
        own => [own, own],
    };
    if !own.contains(&arch) {
        let what = format!("the code is for {arch}, and this machine is {}", own[0]);
        return Err(Error::unsupported(what));
    }
    let own = match std::env::consts::OS {
        "macos" => "apple",
        own => own,
    };
    if !system.contains(own) {
        let what = format!("the code is for {}, and this system is {own}", target.triple);
        return Err(Error::unsupported(what));
    }
    let missing: Vec<&str> = detected()
        .into_iter()
        .filter(|(name, is_there)| !is_there && target.known_features().has(name))
        .map(|(name, _)| name)
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Error::unsupported(format!(
            "the code uses {}, which this machine lacks",
            missing.join(", ")
        ))
        .help("compile the model here, or for an older processor"))
    }
}

/// Features by the names of targets, and whether this machine has them.
fn detected() -> Vec<(&'static str, bool)> {
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! ask {
            ($($name:tt)*) => { vec![$(($name, std::arch::is_x86_feature_detected!($name))),*] };
        }
        let mut found = ask!(
            "avx" "avx2" "fma" "f16c" "bmi2" "popcnt" "lzcnt" "movbe" "sse3" "ssse3" "sse4.1" "sse4.2"
            "avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl" "avx512vnni" "avx512bf16" "avx512vbmi"
            "avx512ifma" "avx512vbmi2" "avx512bitalg" "avx512vpopcntdq" "gfni" "vaes" "vpclmulqdq"
            "avx512fp16" "avxvnni" "avxvnniint8" "avxifma"
        );
        // The name of targets is another one.
        found.push(("bmi", std::arch::is_x86_feature_detected!("bmi1")));
        found
    }
    #[cfg(target_arch = "aarch64")]
    {
        macro_rules! ask {
            ($($name:tt)*) => { vec![$(($name, std::arch::is_aarch64_feature_detected!($name))),*] };
        }
        let mut found = ask!("dotprod" "bf16" "i8mm" "sve" "sve2" "lse" "rdm");
        let own = tilewright_target::host_sve_bits();
        let lengths = tilewright_target::SVE_LENGTHS.iter();
        found.extend(lengths.map(|(name, bits)| (*name, own == Some(*bits))));
        found
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_another_machine_is_refused_with_what_is_missing() {
        let (arch, system) = (std::env::consts::ARCH, std::env::consts::OS);
        let own =
            |features: &str| Target::new(format!("{arch}-unknown-{system}-gnu"), "", features);
        if system == "linux" {
            assert_eq!(refusal_of(own("")), "");
            let other = refusal_of(Target::new(format!("{arch}-pc-windows-msvc"), "", ""));
            assert!(other.contains(", and this system is linux"), "{other}");
        }
        let other = refusal_of(Target::new("riscv64-unknown-linux-gnu", "", ""));
        assert!(other.contains("the code is for riscv64, and this machine is"), "{other}");
        for (name, is_there) in detected() {
            let said = refusal_of(own(&format!("+{name}")));
            // What a feature needs may be missing, too.
            assert!(is_there || said.contains(name), "{name}: {said}");
        }
    }

    fn refusal_of(target: Target) -> String {
        match check_host(&target) {
            Ok(()) => String::new(),
            Err(error) => error.render(),
        }
    }
}
