//! `tilewright ops`: which operators are supported.

use std::io::Write;

use super::{Answer, Outcome};

/// List the operators that are supported.
#[derive(clap::Args)]
pub struct Arguments {
    /// The operators of ONNX: name, oldest and newest opset.
    #[arg(long, required = true)]
    onnx: bool,
}

pub fn execute(_: &Arguments, out: &mut impl Write) -> Outcome {
    for op in tilewright::onnx::supported_ops() {
        writeln!(out, "{} {} {}", op.name, op.min, op.max)?;
    }
    Ok(Answer::Yes)
}
