//! The program, as all tests run it.

use std::process::Command;

/// The program, with a cache that is not the user's, and without measurements: tests run at the same
/// time, and the plans of one must not change by what another measures.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    command.env("TILEWRIGHT_CACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"));
    command.env("TILEWRIGHT_TUNING", "off");
    command
}
