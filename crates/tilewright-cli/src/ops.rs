//! `tilewright ops`: which operators are supported.

use std::io::Write;

use super::answer::{Answer, Outcome};

/// List the operators that are supported: name, with its domain unless that is ONNX's own, oldest and
/// newest version of the domain (of ONNX itself for `com.microsoft`).
#[derive(clap::Args)]
pub struct Arguments {
    /// The operators of ONNX, which are all that there are.
    #[arg(long)]
    onnx: bool,
}

pub fn execute(_: &Arguments, out: &mut impl Write) -> Outcome {
    for op in tilewright_onnx::supported_ops() {
        let dot = if op.domain.is_empty() { "" } else { "." };
        writeln!(out, "{}{dot}{} {} {}", op.domain, op.name, op.min, op.max)?;
    }
    Ok(Answer::Yes)
}
