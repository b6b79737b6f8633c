//! Writes certificates that `tilewright-check` accepts.
//!
//! Functions are written as trees (`tree`). The last writers (`flow`) and the pairs of equal loads (`claims`) are
//! found with the engine of sets, the proofs of what the checker asks (`search`) by linear programs. Nothing of that is
//! believed: the checker reads the trees, so that both number statements alike, and verifies all of it.

mod claims;
mod digits;
mod flow;
mod residues;
mod search;
mod sets;
mod simplex;
mod tree;

use std::cell::Cell;

use tilewright_check::HEAD;
use tilewright_check::certificate::{Certificate, From, Load, programs};
use tilewright_check::judge::judge;
use tilewright_check::program::{Expr, Program};
use tilewright_check::tree::{Placed, Tree};

use crate::claims::{Claims, Style};
use crate::search::Search;
use crate::sets::{Names, list, text};

pub use crate::tree::{layout, tree};

/// A certificate that a function computes what another one does. Each text is a [`tree`]; `layouts` are reasons
/// of the file, see [`layout`].
///
/// # Errors
/// Why none was found, which is no proof that the functions differ.
pub fn certify(before: &str, after: &str, layouts: &[String]) -> Result<String, String> {
    let guessed = Cell::new(false);
    let by = |style| certified(before, after, layouts, style, &guessed);
    by(Style::Matched)
        .or_else(|why| if guessed.get() { by(Style::Short) } else { Err(why) })
        .or_else(|why| by(Style::Full).map_err(|_| why))
}

/// The same, with claims of one style. Says whether one was guessed, also where there is no certificate.
fn certified(
    before: &str,
    after: &str,
    layouts: &[String],
    style: Style,
    guessed: &Cell<bool>,
) -> Result<String, String> {
    let head = format!("{HEAD}\n{}\n{}\n", before.trim_end(), after.trim_end());
    let trees = Tree::parse(&head).map_err(|e| quoted(&head, e))?;
    let [_, first, second] = trees.as_slice() else { return Err("each text is one tree".into()) };
    let both = programs([first, second]).map_err(|e| quoted(&head, e))?;
    let mut reasons = layouts.to_vec();
    let parse = |reasons: &[String]| -> Result<Certificate, String> {
        let text = reasons.join("\n");
        let read = |trees: Vec<Tree>| Certificate::read([first, second], &trees);
        Tree::parse(&text).and_then(read).map_err(|e| quoted(&text, e))
    };
    let read = parse(&reasons)?;
    let names = names(&both);
    let mut found = Claims::new(&names, &both, &read.layouts, style);
    let collected = found.collect();
    guessed.set(guessed.get() || found.guessed);
    let mut claims = collected?;
    reasons.extend(found.of_constants()?);
    // What cells of constants hold is known from now on.
    let read = parse(&reasons)?;
    if !read.cells.is_empty() {
        found = Claims::new(&names, &read.programs, &read.layouts, style);
        claims = found.collect()?;
    }
    let sides = ["before", "after"];
    for flow in &found.flows {
        let Load { side, stmt, read } = flow.load;
        reasons.push(format!("(reads {} {stmt} {read}", sides[side]));
        for piece in &flow.pieces {
            let condition = text(&piece.condition);
            reasons.push(match &piece.from {
                From::Given => format!("(given {condition})"),
                From::Store(stmt, at) => format!("(from {stmt} {} {condition})", list(at)),
                From::Known(fact, at) => format!("(known {fact} {} {condition})", list(at)),
            });
        }
        reasons.push(")".into());
    }
    for pass in &found.passes {
        let (side, condition) = (sides[pass.side], text(&pass.condition));
        reasons.push(format!("(passes {side} {} {condition})", pass.stmt));
    }
    for claim in &claims {
        let ([a, b], condition) = (claim.loads, text(&claim.condition));
        reasons.push(format!("(equal {} {} {} {} {condition})", a.stmt, a.read, b.stmt, b.read));
    }
    let reasons = reasons.join("\n");
    let whole = format!("{head}(because\n{reasons}\n)\n(steps\n");
    let mut search = Search::default();
    judged(&format!("{whole})"), &mut search).map_err(|e| quoted(&whole, e))?;
    Ok(format!("{whole}{}\n)\n", search.steps.join("\n")))
}

/// What is wrong, with the line of a text that it is about.
fn quoted(text: &str, (line, message): (usize, String)) -> String {
    match text.lines().nth(line.max(1) - 1) {
        Some(text) if text != HEAD => format!("{message}: `{}`", text.trim()),
        _ => message,
    }
}

/// Judges a certificate whose steps are being searched.
fn judged(text: &str, search: &mut Search) -> Placed<()> {
    let trees = Tree::parse(text)?;
    let [_, before, after, Tree::List(_, reasons), _] = trees.as_slice() else {
        return Err((1, "a reason is no tree".into()));
    };
    judge(&Certificate::read([before, after], reasons.get(1..).unwrap_or_default())?, search)
}

/// Names for sets: sizes, and products of sizes.
fn names(both: &[Program; 2]) -> Names {
    let mut params: Vec<String> = Vec::new();
    for v in both.iter().flat_map(|p| &p.sizes) {
        if params.iter().all(|p| **p != **v) {
            params.push(v.to_string());
        }
    }
    let mut names = Names::new(params);
    for p in both {
        let accesses = p.stmts.iter().flat_map(|s| s.reads.iter().chain([&s.to]));
        let accesses = accesses.chain(p.facts.iter().map(|f| &f.of));
        let indices = accesses.flat_map(|a| a.indices.iter().chain([&a.condition]));
        let values = p.stmts.iter().map(|s| &s.value);
        indices.chain(values).for_each(|e: &Expr| names.learn_products(e));
    }
    names
}
