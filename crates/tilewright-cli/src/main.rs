//! The `tilewright` command.

use std::process::ExitCode;

/// Compiling allocates small values of short life all the time, on several threads.
#[cfg(not(target_family = "wasm"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Without its own path, it cannot start itself again; what has to says so.
    let program = std::env::current_exe().map(Into::into).into_iter().collect();
    ExitCode::from(tilewright_cli::run_command(std::env::args_os().collect(), program))
}
