//! `tilewright verify`: do two modules compute the same outputs for every input?

use std::io::Write;
use std::path::PathBuf;

use tilewright_driver::verify;
use tilewright_verify::VerifyOptions;

use super::answer::{Answer, Outcome, talk};
use super::sizes::{Extent, extent, read_module, sizes};

/// Decide whether two modules compute the same outputs for every input: exit code 0 if they do, 1
/// and the first element that differs if not, 3 and the reason if that cannot be said.
///
/// Functions are paired by name, or by being the entries of the modules; parameters by position.
/// Equality is a proof for all data at the shapes of the functions, and for all values of scalar
/// parameters. Functions of the same statements, with expressions that are provably equal, are equal
/// at all sizes. Otherwise sizes that are open are tried: 0, 1 and some that do not divide one
/// another. That finds differences, and is no proof: where there is none the answer is undecided, and
/// says which sizes were tried. Where ranges are given (`--dim n=1..64`) and have few sizes, all of
/// them are compared, which is a proof for the ranges. What the first module leaves arbitrary may be anything in the second.
#[derive(clap::Args)]
pub struct Arguments {
    /// TVMScript, an ONNX model, or `-` for TVMScript from standard input.
    a: PathBuf,
    /// The same.
    b: PathBuf,
    /// Sums and products of floats count as equal in any order.
    #[arg(long)]
    reassociate: bool,
    /// Floats count as real numbers where models are compared call by call: sums and products in any order, divisions by
    /// constants as products, and constants that were rounded differently as one. Says by how much they differ.
    #[arg(long)]
    real: bool,
    /// A size that the modules leave open, or its range (`n=1..64`, both ends included), for all sizes
    /// of which the proof is to hold; may be given several times.
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = extent)]
    dims: Vec<(String, Extent)>,
    /// Give up after this many expressions and statements.
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
}

pub fn execute(arguments: &Arguments, out: &mut impl Write) -> Outcome {
    let (a, b) = (read_module(&arguments.a)?, read_module(&arguments.b)?);
    let Arguments { reassociate, real: reals, .. } = *arguments;
    let mut options = VerifyOptions { reassociate, reals, ..VerifyOptions::default() };
    options.steps = arguments.steps.unwrap_or(options.steps);
    let given = sizes(&arguments.dims)?;
    let verified = verify::verify(&a, &b, &given, &options)?;
    verified.notes.iter().for_each(|note| talk!("{note}"));
    out.write_all(verified.text.as_bytes())?;
    Ok(match verified.answer {
        verify::Answer::Equal => Answer::Yes,
        verify::Answer::Differ => Answer::No,
        verify::Answer::Undecided => Answer::Undecided,
    })
}
