//! Compiled modules as files that start without LLVM.
//!
//! A file holds the lowered module as text, its constants as bytes, and the kernels as a shared
//! library; whoever opens it plans memory anew from the module, which is quick and always the same.
//! So nothing of a plan is in the file, and the file is as stable as TVMScript.
//!
//! | bytes | what |
//! |---|---|
//! | 16 | `TILEWRIGHT MODEL` |
//! | 4, 4 | version of the format; 0 |
//! | 32 | BLAKE3 of all that follows |
//! | 8 | length of the header |
//! | | the header, JSON: `Header` |
//! | | the parts, each at a multiple of 64 |
//!
//! The library is code: a file is opened only by those who trust where it is from. The checksum finds
//! damage, and no forgery.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tilewright_codegen::packed;
use tilewright_ir::{DType, Error, Lowered, Module, OpenPlan, Result, Source, Tensor, tensor};
use tilewright_runtime::{Executable, Pool, file};
use tilewright_script::{ConstTable, parse_module_with, print_module_with};
use tilewright_target::Target;

use super::compile::lower_program;
use super::pipeline::Options;

const MAGIC: &[u8; 16] = b"TILEWRIGHT MODEL";
const VERSION: u32 = 1;
/// Where the header begins: behind magic, version, checksum and its own length.
const HEADER: usize = 16 + 8 + 32 + 8;

/// What stands in front of the parts.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    /// The machine, in LLVM's words.
    triple: String,
    cpu: String,
    features: String,
    /// Threads of a run, unless said otherwise; 0 for one a core.
    threads: usize,
    module: Part,
    library: Part,
    constants: Vec<Constant>,
}

/// A range of bytes, counted from the end of the header.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Part {
    at: usize,
    count: usize,
}

#[derive(Debug, Serialize, Deserialize)]
struct Constant {
    name: String,
    dtype: String,
    shape: Vec<usize>,
    bytes: Part,
}

/// Parts one after the other, each at a multiple of 64.
#[derive(Default)]
struct Parts(Vec<u8>);

impl Parts {
    fn add(&mut self, bytes: &[u8]) -> Part {
        self.0.resize(self.0.len().next_multiple_of(tensor::ALIGN), 0);
        let part = Part { at: self.0.len(), count: bytes.len() };
        self.0.extend_from_slice(bytes);
        part
    }
}

/// Compiles a module and gives the bytes of a file.
///
/// # Errors
/// Those of [`compile`](super::compile::compile), and [`Error::Toolchain`] if there is no C compiler.
pub fn bytes(module: &Module, options: &Options) -> Result<Vec<u8>> {
    let (backend, target) = (&options.backend, options.target()?);
    backend.check_target(&target)?;
    let laid_out = match options.layout {
        Some(layout) => Some(options.lay_out(layout, module)?),
        None => None,
    };
    let lowered = lower_program(laid_out.as_ref().unwrap_or(module), options)?.module;
    let mut table = ConstTable::default();
    let text = print_module_with(&lowered, &mut table);
    // What is read back is compiled: its places are those in the text of the file.
    let (module, plan) = read(text.clone(), &table)?;
    let library =
        options.with_code_options(|o| packed::build(&module, &plan.functions(), &target, o))?;
    let mut parts = Parts::default();
    let constant = |(name, t): (&Arc<str>, &Tensor), parts: &mut Parts| Constant {
        name: name.to_string(),
        dtype: t.dtype().to_string(),
        shape: t.shape().to_vec(),
        bytes: parts.add(t.bytes()),
    };
    let header = Header {
        triple: target.triple.clone(),
        cpu: target.cpu.clone(),
        features: target.features.clone(),
        threads: options.threads,
        module: parts.add(text.as_bytes()),
        library: parts.add(&library),
        constants: table.iter().map(|entry| constant(entry, &mut parts)).collect(),
    };
    let mut header = serde_json::to_vec(&header)
        .map_err(|e| Error::internal(format!("a header as JSON: {e}")))?;
    // So that the parts begin at a multiple of 64.
    header.resize((HEADER + header.len()).next_multiple_of(tensor::ALIGN) - HEADER, b' ');
    let mut body = (header.len() as u64).to_le_bytes().to_vec();
    body.extend_from_slice(&header);
    body.extend_from_slice(&parts.0);
    let mut all = MAGIC.to_vec();
    all.extend_from_slice(&VERSION.to_le_bytes());
    all.extend_from_slice(&[0; 4]);
    all.extend_from_slice(blake3::hash(&body).as_bytes());
    all.extend_from_slice(&body);
    Ok(all)
}

/// The module of a text, and its plan.
fn read(text: String, table: &ConstTable) -> Result<(Lowered, OpenPlan)> {
    let module = parse_module_with(&Source::new("<saved>", text), table)?;
    let module = Lowered::new(module)?;
    let plan = tilewright_graph::plan_memory(&module, module.entry()?)?;
    Ok((module, plan))
}

/// Compiles a module into a file.
///
/// # Errors
/// Those of [`bytes`], and [`Error::Io`] if the file cannot be written.
pub fn save(module: &Module, options: &Options, path: impl AsRef<Path>) -> Result<()> {
    file::check(path.as_ref())?;
    file::write(path, &bytes(module, options)?)
}

/// The executable of a file's content; `threads` are those of a run, instead of those that the file
/// says. Constants stay in the memory of the content.
///
/// # Errors
/// [`Error::Model`] if this is no such file, or a damaged one; [`Error::Unsupported`] if this machine
/// lacks features that the code uses, or the file is of another version.
///
/// # Safety
/// The content is what [`bytes`] gave: the code in it is run.
pub unsafe fn open(content: &Tensor, threads: Option<usize>) -> Result<Executable> {
    let all = content.bytes();
    let body = checked(all)?;
    let broken = || Error::model("the file is damaged: its header does not fit");
    let length = body.first_chunk().map(|b| u64::from_le_bytes(*b)).ok_or_else(broken)?;
    let end = usize::try_from(length).ok().and_then(|n| HEADER.checked_add(n));
    let end = end.filter(|end| *end <= all.len()).ok_or_else(broken)?;
    let header: Header = serde_json::from_slice(&all[HEADER..end]).map_err(|_| broken())?;
    let part = |p: Part| {
        let start = end.checked_add(p.at)?;
        all.get(start..start.checked_add(p.count)?)
    };
    let target = Target::new(&*header.triple, &*header.cpu, &*header.features);
    check_host(&target)?;
    let mut table = ConstTable::default();
    for c in &header.constants {
        let bytes = part(c.bytes).ok_or_else(broken)?;
        let dtype: DType = c.dtype.parse()?;
        if tensor::byte_count(dtype, &c.shape) != Some(bytes.len()) {
            return Err(broken());
        }
        let owner = Arc::new(content.clone());
        let start = std::ptr::NonNull::from(bytes).cast();
        // SAFETY: the bytes are those of the owner, which is not written while it is shared.
        let tensor = unsafe { Tensor::from_foreign(dtype, &c.shape, start, owner) }?;
        table.insert(&*c.name, tensor);
    }
    let text = part(header.module).and_then(|b| std::str::from_utf8(b).ok()).ok_or_else(broken)?;
    let (module, plan) = read(text.to_owned(), &table)?;
    let library = part(header.library).ok_or_else(broken)?;
    let threads = match threads.unwrap_or(header.threads) {
        0 => tilewright_target::cores(),
        n => n,
    };
    // SAFETY: by contract the library was made from these functions, for a machine whose features
    // this one has; the plan is one for them.
    unsafe {
        let code = packed::open(library, &module, &plan.functions())?;
        Executable::new(plan, code, Pool::shared(threads)?)
    }
}

/// What stands behind the checksum, if that is right.
fn checked(all: &[u8]) -> Result<&[u8]> {
    let Some((magic, rest)) = all.split_first_chunk::<16>().filter(|(m, _)| *m == MAGIC) else {
        return Err(Error::model("this is no compiled model of Tilewright"));
    };
    let _ = magic;
    let short = || Error::model("the file is damaged: it ends too early");
    let (version, rest) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        let what = format!("a compiled model of version {version}, and this reads {VERSION}");
        return Err(Error::unsupported(what).help("compile the model again"));
    }
    let (_, rest) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    let (sum, body) = rest.split_first_chunk::<32>().ok_or_else(short)?;
    match blake3::hash(body) == *sum {
        true => Ok(body),
        false => Err(Error::model("the file is damaged: its checksum is wrong")),
    }
}

/// Refuses code for features that this machine lacks. LLVM is not asked; a feature that is not known
/// here counts as there.
fn check_host(target: &Target) -> Result<()> {
    let arch = target.triple.split('-').next().unwrap_or_default();
    let own = match std::env::consts::ARCH {
        "aarch64" => ["aarch64", "arm64"],
        own => [own, own],
    };
    if !own.contains(&arch) {
        let what = format!("the code is for {arch}, and this machine is {}", own[0]);
        return Err(Error::unsupported(what));
    }
    let missing: Vec<&str> = detected()
        .into_iter()
        .filter(|(name, is_there)| !is_there && target.known_features().has(name))
        .map(|(name, _)| name)
        .collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Error::unsupported(format!(
            "the code uses {}, which this machine lacks",
            missing.join(", ")
        ))
        .help("compile the model here, or for an older processor")),
    }
}

/// Features by LLVM's names, and whether this machine has them.
fn detected() -> Vec<(&'static str, bool)> {
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! ask {
            ($($name:tt)*) => { vec![$(($name, std::arch::is_x86_feature_detected!($name))),*] };
        }
        ask!(
            "avx" "avx2" "fma" "f16c" "bmi2" "popcnt" "lzcnt" "sse3" "ssse3" "sse4.1" "sse4.2" "avx512f"
            "avx512bw" "avx512cd" "avx512dq" "avx512vl" "avx512vnni" "avx512bf16" "avx512vbmi"
            "avx512ifma" "avx512vbmi2" "avx512bitalg" "avx512vpopcntdq" "gfni" "vaes" "vpclmulqdq" "avx512fp16"
        )
    }
    #[cfg(target_arch = "aarch64")]
    {
        macro_rules! ask {
            ($($name:tt)*) => { vec![$(($name, std::arch::is_aarch64_feature_detected!($name))),*] };
        }
        ask!("dotprod" "bf16" "i8mm" "sve" "sve2" "lse" "rdm")
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    Vec::new()
}
