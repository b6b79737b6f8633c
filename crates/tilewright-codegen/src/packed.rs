//! Kernels as a shared library that runs without LLVM.
//!
//! The library exports one table, the addresses of the kernels in the order in which they were asked
//! for, and their number; everything else stays inside. It is linked by the C compiler, as
//! [`crate::library`] is, and loaded by the system. Who loads it brings the functions that it was made
//! from: what their assertions say is not in it.

use std::fmt::Write;
use std::io::Write as _;
use std::sync::Arc;

use tilewright_dylib::Library;
use tilewright_ir::{Error, Lowered, Result};
use tilewright_target::{Code, CodeOptions, Target};

use crate::emit;
use crate::kernels::{Kernel, Kernels, objects};
use crate::library::Linker;
use crate::llvm::Llvm;

/// The exported symbols.
const TABLE: &str = "tilewright_kernels";
const COUNT: &str = "tilewright_kernel_count";

/// A shared library with the kernels of these functions.
///
/// # Errors
/// [`Error::Toolchain`] if there is no LLVM or C compiler, or it fails; those of code generation.
pub fn build(
    module: &Lowered,
    functions: &[Arc<str>],
    target: &Target,
    options: &CodeOptions<'_>,
) -> Result<Vec<u8>> {
    let objects = objects(Llvm::get()?, module, functions, target, options)?;
    let mut linker = Linker::new(target, &[])?;
    linker.part("table.c", table(functions).as_bytes())?;
    for (k, object) in objects.iter().enumerate() {
        linker.part(&format!("{k}.o"), object)?;
    }
    linker.link(options.link)
}

/// The C file with the table.
fn table(functions: &[Arc<str>]) -> String {
    let mut text = String::from(
        "#include <stdint.h>\n#define PUBLIC __attribute__((visibility(\"default\")))\n\
         typedef int32_t kernel(const void *, const uint64_t *);\n",
    );
    let symbols: Vec<String> = functions.iter().map(|f| emit::symbol(emit::PREFIX, f)).collect();
    for symbol in &symbols {
        let _ = writeln!(text, "extern __attribute__((visibility(\"hidden\"))) kernel {symbol};");
    }
    // A model may move values only, and have no kernels.
    let list: String = symbols.iter().map(|symbol| format!("{symbol}, ")).collect();
    let _ = writeln!(text, "PUBLIC kernel *const {TABLE}[] = {{{list}0}};");
    let _ = writeln!(text, "PUBLIC const uint64_t {COUNT} = {};", symbols.len());
    text
}

/// The code of a library that [`build`] made from the same functions of the same module.
///
/// # Errors
/// [`Error::Io`] if it cannot be written to a temporary file, [`Error::Toolchain`] if the system
/// does not load it, [`Error::Model`] if it holds another number of kernels.
///
/// # Safety
/// The library is one that [`build`] made from these functions, for features that this machine has.
pub unsafe fn open(
    library: &[u8],
    module: &Lowered,
    functions: &[Arc<str>],
) -> Result<Arc<dyn Code>> {
    let mut file = tempfile::Builder::new().suffix(".so").tempfile().map_err(io_failed)?;
    file.write_all(library).and_then(|()| file.flush()).map_err(io_failed)?;
    // Closed, since some systems do not load what is open for writing; gone once it is loaded.
    let path = file.into_temp_path();
    // SAFETY: by contract the library is one of ours, whose constructors do nothing.
    let loaded: Library = unsafe { tilewright_dylib::open(&path) }
        .map_err(|text| Error::toolchain(format!("the system does not load it: {text}")))?;
    drop(path);
    // SAFETY: `build` gives the symbol this type.
    let count = unsafe {
        let count = loaded.get::<*const u64>(COUNT.as_bytes()).map_err(|e| no_table(&e))?;
        **count
    };
    if count != functions.len() as u64 {
        let what = format!("{count} kernels for {} functions", functions.len());
        return Err(Error::model(what));
    }
    // SAFETY: as above; the table is as long as the count says.
    let kernels: Vec<Kernel> = unsafe {
        let table = loaded.get::<*const Kernel>(TABLE.as_bytes()).map_err(|e| no_table(&e))?;
        std::slice::from_raw_parts(*table, functions.len()).to_vec()
    };
    Ok(Arc::new(Kernels::new(module, functions, kernels, Box::new(loaded))?))
}

fn io_failed(e: std::io::Error) -> Error {
    Error::io(format!("cannot write a temporary file: {e}"))
}

fn no_table(e: &dyn std::fmt::Display) -> Error {
    Error::model(format!("no table of kernels: {e}"))
}
