//! `tilewright check`: is a certificate right?

use std::io::Write;
use std::path::PathBuf;

use tilewright_runtime::file;

use super::answer::{Answer, Outcome, talk};

/// Check a certificate: exit code 0 if it is accepted, 1 and its first wrong line if not.
///
/// An accepted file proves that each rewrite in it keeps what a function computes: for all data and sizes
/// for which the text before does nothing illegal, the text after it stores the same values, bit for bit, and
/// accesses only cells that exist. `opt --certificate` writes such files. The checker shares no code with passes or
/// with the engine of sets.
#[derive(clap::Args)]
pub struct Arguments {
    /// What `opt --certificate` wrote.
    file: PathBuf,
}

pub fn execute(arguments: &Arguments, out: &mut impl Write) -> Outcome {
    let text = file::read_text(&arguments.file)?;
    match tilewright_check::check(&text) {
        Ok(accepted) => {
            let tilewright_check::Accepted { rewrites, steps, assumptions } = accepted;
            writeln!(
                out,
                "accepted: {}, {}",
                counted(rewrites, "rewrite"),
                counted(steps, "step")
            )?;
            if assumptions > 0 {
                talk!(
                    "note: {} in the texts are taken as given",
                    counted(assumptions, "assumption")
                );
            }
            Ok(Answer::Yes)
        }
        Err(fault) => {
            writeln!(out, "{}:{}: {}", arguments.file.display(), fault.line, fault.message)?;
            Ok(Answer::No)
        }
    }
}

fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
