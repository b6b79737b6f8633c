//! `tilewright ops`: which operators are supported.

use std::io::Write;

use super::{Answer, Outcome};

/// List the operators of ONNX that are supported: name, oldest and newest opset.
#[derive(clap::Args)]
pub struct Arguments {
    /// The operators of ONNX, which are all that there are.
    #[arg(long)]
    onnx: bool,
}

pub fn execute(_: &Arguments, out: &mut impl Write) -> Outcome {
    for op in tilewright::unstable::onnx::supported_ops() {
        writeln!(out, "{} {} {}", op.name, op.min, op.max)?;
    }
    Ok(Answer::Yes)
}
