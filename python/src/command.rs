//! The command `tilewright`, as pip installs it, and where the package has libraries of its own.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;

/// Says in which directory of the package libLLVM may lie.
#[pyfunction]
pub fn bundle(directory: PathBuf) {
    tilewright_codegen::llvm::find::bundle(directory);
}

/// Runs the command by its arguments, its name among them, and gives its exit code. `program` starts it in
/// another process, with further arguments.
#[pyfunction]
pub fn run_command(py: Python<'_>, arguments: Vec<OsString>, program: Vec<OsString>) -> u8 {
    py.detach(|| tilewright_cli::run_command(arguments, program))
}
