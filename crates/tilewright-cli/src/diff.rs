//! `tilewright diff`: are two modules structurally equal?

use std::io::Write;
use std::path::PathBuf;

use tilewright_driver::Module;
use tilewright_ir::equal::{self, Difference};
use tilewright_ir::show::{shortened, visible};
use tilewright_ir::{Source, Span};

use super::answer::{Answer, Outcome};
use super::sizes::read_module;

/// Compare two modules: exit code 0 if they are structurally equal, 1 and the first difference if
/// not.
///
/// Names of variables, buffers, functions and blocks do not count, except those of variables that
/// nothing defines.
#[derive(clap::Args)]
pub struct Arguments {
    /// TVMScript, an ONNX model, or `-` for TVMScript from standard input.
    a: PathBuf,
    /// The same.
    b: PathBuf,
    /// Names of functions and blocks, the order of functions and the declared regions of blocks
    /// count, too.
    #[arg(long)]
    strict: bool,
}

pub fn execute(arguments: &Arguments, out: &mut impl Write) -> Outcome {
    let (a, b) = (read_module(&arguments.a)?, read_module(&arguments.b)?);
    let options =
        if arguments.strict { equal::Equality::texts() } else { equal::Equality::loose() };
    match equal::modules(&a, &b, &options) {
        Ok(()) => Ok(Answer::Yes),
        Err(difference) => {
            write_difference(&difference, &a, &b, out)?;
            Ok(Answer::No)
        }
    }
}

fn write_difference(
    difference: &Difference,
    a: &Module,
    b: &Module,
    out: &mut impl Write,
) -> std::io::Result<()> {
    writeln!(out, "{}", visible(&shortened(&difference.to_string())))?;
    write_place(difference.left_span, a.source.as_deref(), out)?;
    write_place(difference.right_span, b.source.as_deref(), out)
}

/// The first line of what a span covers.
fn write_place(
    span: Option<Span>,
    source: Option<&Source>,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let (Some(span), Some(source)) = (span, source) else { return Ok(()) };
    let (line, column, excerpt) = source.excerpt(span);
    writeln!(out, "  --> {}:{line}:{column}", visible(&source.name))?;
    writeln!(out, "{line:4} | {}", excerpt.text)
}
