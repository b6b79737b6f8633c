//! `tilewright check`: is a certificate right?

use std::io::Write;
use std::path::PathBuf;

use tilewright_check::tree::Tree;
use tilewright_check::{Accepted, check};
use tilewright_driver::certificate::trees;
use tilewright_driver::{Sizes, load};
use tilewright_runtime::file;

use super::answer::{Answer, Outcome, talk};

/// Check a certificate: exit code 0 if it is accepted, 1 and its first wrong line if not.
///
/// An accepted file proves that each rewrite in it keeps what a function computes: for all data and sizes
/// for which the tree before does nothing illegal, the tree after it stores the same values, bit for bit, and
/// accesses only cells that exist. `opt --certificate` writes such files. The checker shares no code with passes or
/// with the engine of sets. With `--before` and `--after`, the file also has to lead from the functions of one
/// module to those of another one, whose trees are written again.
#[derive(clap::Args)]
pub struct Arguments {
    /// What `opt --certificate` wrote.
    file: PathBuf,
    /// The module before all rewrites
    #[arg(long, value_name = "FILE", requires = "after")]
    before: Option<PathBuf>,
    /// The module after all rewrites
    #[arg(long, value_name = "FILE", requires = "before")]
    after: Option<PathBuf>,
}

pub fn execute(arguments: &Arguments, out: &mut impl Write) -> Outcome {
    let text = file::read_text(&arguments.file)?;
    let path = arguments.file.display();
    let accepted = match check(&text) {
        Ok(accepted) => accepted,
        Err((line, message)) => {
            writeln!(out, "{path}:{line}: {message}")?;
            return Ok(Answer::No);
        }
    };
    if let (Some(before), Some(after)) = (&arguments.before, &arguments.after) {
        let [before, after] = [before, after].map(|path| load(path, &Sizes::new()));
        if let Err(why) = leads(&accepted, &trees(&before?), &trees(&after?)) {
            writeln!(out, "{path}: {why}")?;
            return Ok(Answer::No);
        }
    }
    let (rewrites, steps) = (accepted.rewrites.len(), accepted.steps);
    writeln!(out, "accepted: {}, {}", counted(rewrites, "rewrite"), counted(steps, "step"))?;
    if accepted.assumptions > 0 {
        let assumptions = counted(accepted.assumptions, "assumption");
        talk!("note: {assumptions} in the functions are taken as given");
    }
    Ok(Answer::Yes)
}

/// The functions of a module: names, and trees or why there are none.
type Functions<N> = [(N, Result<String, String>)];

/// Whether each function of the first module is that of the second one, or the rewrites lead from the one to
/// the other.
fn leads<N: AsRef<str>>(
    accepted: &Accepted,
    before: &Functions<N>,
    after: &Functions<N>,
) -> Result<(), String> {
    let names = [before, after].map(|all| all.iter().map(|(n, _)| n.as_ref()).collect::<Vec<_>>());
    if names[0] != names[1] {
        return Err("the modules have other functions".into());
    }
    for ((name, before), (_, after)) in before.iter().zip(after) {
        let name = name.as_ref();
        let [before, after] = [before, after].map(|tree| match tree {
            Ok(tree) => Ok(tree),
            Err(why) => Err(format!("`{name}` has no tree: {why}")),
        });
        let (before, after) = (before?, after?);
        if before == after {
            continue;
        }
        let is_of = |tree: &Tree| matches!(tree, Tree::List(_, parts) if parts.get(1) == Some(&Tree::Word(name)));
        let mut rewrites = accepted.rewrites.iter().filter(|pair| is_of(&pair[0]));
        let first = rewrites.next();
        let last = rewrites.next_back().or(first);
        let is = |tree: Option<&Tree>, text: &str| {
            tree.is_some() && Tree::parse(text).is_ok_and(|trees| trees.first() == tree)
        };
        if !is(first.map(|pair| &pair[0]), before) || !is(last.map(|pair| &pair[1]), after) {
            return Err(format!("no rewrites lead from `{name}` to what it is after"));
        }
    }
    Ok(())
}

fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
