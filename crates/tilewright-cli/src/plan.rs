//! `tilewright plan`: which layout conversions a model is left with, and why.

use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

use tilewright::unstable::graph::layout::Left;
use tilewright::unstable::ir::Remarks;
use tilewright::unstable::ir::show::{is_hidden, visible};
use tilewright::unstable::layout;

use super::given::Given;
use super::native::policy;
use super::{Answer, Outcome, report};

/// Show which layout conversions a model is left with, and why.
#[derive(clap::Args)]
pub struct Arguments {
    /// An ONNX model, or TVMScript with a graph function, or `-` for TVMScript from standard input.
    model: PathBuf,
    /// The layout of convolutions; everything else follows where it can.
    #[arg(long, value_name = "none|nhwc|nchw8c|nchw16c", default_value = "none")]
    layout: String,
    #[command(flatten)]
    given: Given,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Say on standard error what could not follow, and why.
    #[arg(long)]
    explain: bool,
}

pub fn execute(arguments: &Arguments, out: &mut impl Write) -> Outcome {
    let policy = policy(&arguments.layout)?;
    let module = arguments.given.load(&arguments.model)?.0;
    let mut why = Remarks::new();
    let left = match policy {
        None => Vec::new(),
        Some(policy) => layout::apply(&module, policy, &mut why)?.1,
    };
    if arguments.explain {
        report::remarks(&why);
    }
    match arguments.json {
        true => writeln!(out, "{}", json(&left))?,
        false => {
            for l in &left {
                writeln!(out, "{}: {} bytes", visible(&l.value), l.bytes)?;
                writeln!(out, "  from {}\n  to   {}", l.from, l.to)?;
                writeln!(out, "  because {}", visible(&l.reason))?;
            }
            let bytes: u64 = left.iter().map(|l| l.bytes).sum();
            writeln!(out, "{} conversions, {bytes} bytes", left.len())?;
        }
    }
    Ok(Answer::Yes)
}

/// The list as JSON, one conversion a line.
fn json(left: &[Left]) -> String {
    let mut text = String::from("[");
    for (n, l) in left.iter().enumerate() {
        let sep = if n == 0 { "" } else { "," };
        let (from, to) = (l.from.to_string(), l.to.to_string());
        let _ = write!(
            text,
            "{sep}\n  {{\"value\": {}, \"from\": {}, \"to\": {}, \"bytes\": {}, \"reason\": {}}}",
            quoted(&l.value),
            quoted(&from),
            quoted(&to),
            l.bytes,
            quoted(&l.reason)
        );
    }
    text + if left.is_empty() { "]" } else { "\n]" }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if is_hidden(c) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out + "\""
}
