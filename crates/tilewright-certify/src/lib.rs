//! Writes certificates that `tilewright-check` accepts.
//!
//! Nothing here is believed: the last writers (`flow`) and the pairs of equal loads (`claims`) are found with the
//! engine of sets, the proofs of what the checker asks (`search`) by linear programs, and the checker
//! verifies all of it. The checker's own reader reads the functions, so that both number statements alike.

mod claims;
mod flow;
mod search;
mod sets;
mod simplex;

use std::collections::HashMap;
use std::fmt::Write as _;

use tilewright_check::certificate::{Certificate, From, HEAD, Load, axes, programs, stores};
use tilewright_check::judge::judge;
use tilewright_check::program::{Expr, Program, Var};
use tilewright_check::reader::Parsed;

use crate::claims::Claims;
use crate::search::Search;
use crate::sets::Names;

/// A certificate that a function computes what another one does. Each text has one function; a line of
/// `layouts` is one of the file (`layout 0 (i, j) to (...) and back (...) to (...)`).
///
/// # Errors
/// Why none was found, which is no proof that the functions differ.
pub fn certify(before: &str, after: &str, layouts: &[String]) -> Result<String, String> {
    let mut head =
        format!("{HEAD}\nbefore\n{}\nafter\n{}\nbecause\n", before.trim_end(), after.trim_end());
    let first = 3;
    let second = first + before.trim_end().lines().count() + 1;
    let both = programs([before, after], [first, second]).map_err(|e| shown(&head, e))?;
    for line in layouts {
        writeln!(head, "{line}").map_err(|e| e.to_string())?;
    }
    let read = parse(&head).map_err(|e| shown(&head, e))?;
    let names = names(&both);
    let mut found = Claims::new(&names, &both, &read.layouts);
    let mut claims = found.collect()?;
    for line in found.of_constants()? {
        writeln!(head, "{line}").map_err(|e| e.to_string())?;
    }
    // What cells of constants hold is known from now on.
    let read = parse(&head).map_err(|e| shown(&head, e))?;
    if !read.cells.is_empty() {
        found = Claims::new(&names, &read.programs, &read.layouts);
        claims = found.collect()?;
    }
    for flow in &found.flows {
        let place = load(&names, &both[flow.side], flow.side, flow.load);
        writeln!(head, "reads {place}").map_err(|e| e.to_string())?;
        for piece in &flow.pieces {
            let condition = names.text(&piece.condition);
            let list =
                |at: &[Expr]| at.iter().map(|e| names.text(e)).collect::<Vec<_>>().join(", ");
            let line = match &piece.from {
                From::Given => format!("given where {condition}"),
                From::Store(stmt, at) => format!("from {stmt} ({}) where {condition}", list(at)),
                From::Known(fact, at) => format!("known {fact} ({}) where {condition}", list(at)),
            };
            writeln!(head, "{line}").map_err(|e| e.to_string())?;
        }
    }
    for pass in &found.passes {
        let place = load(&names, &both[pass.side], pass.side, Load { stmt: pass.stmt, read: 0 });
        let condition = names.text(&pass.condition);
        writeln!(head, "passes {place} where {condition}").map_err(|e| e.to_string())?;
    }
    for claim in &claims {
        let [a, b] = [0, 1].map(|side| load(&names, &both[side], side, claim.loads[side]));
        writeln!(head, "equal {a} {b} where {}", names.text(&claim.condition))
            .map_err(|e| e.to_string())?;
    }
    let certificate = parse(&head).map_err(|e| shown(&head, e))?;
    head.push_str("steps\n");
    let mut search = Search::default();
    judge(&certificate, &mut search).map_err(|e| shown(&head, e))?;
    for step in &search.steps {
        writeln!(head, "{step}").map_err(|e| e.to_string())?;
    }
    Ok(head)
}

/// What is wrong, with the line that it is about.
fn shown(head: &str, (line, message): (usize, String)) -> String {
    match line.checked_sub(1).and_then(|k| head.lines().nth(k)) {
        Some(text) => format!("{message}: `{}`", text.trim()),
        None => message,
    }
}

/// A certificate as far as it is known, without steps.
fn parse(text: &str) -> Parsed<Certificate> {
    let lines: Vec<&str> = text.lines().chain(["steps"]).collect();
    Certificate::parse(&lines, 1).map(|(certificate, _)| certificate)
}

/// Names for all variables: sizes keep theirs, loops are counted.
fn names(both: &[Program; 2]) -> Names {
    let mut of: HashMap<Var, String> = HashMap::new();
    let mut params: Vec<String> = Vec::new();
    for (name, v) in both.iter().flat_map(|p| &p.sizes) {
        of.insert(*v, name.clone());
        if !params.contains(name) {
            params.push(name.clone());
        }
    }
    for (side, p) in both.iter().enumerate() {
        let facts = p.facts.iter().flat_map(|f| &f.loops);
        for v in p.stmts.iter().flat_map(|s| &s.loops).chain(facts) {
            let count = of.len();
            let free =
                |name: String| if params.contains(&name) { format!("{name}_") } else { name };
            of.entry(*v).or_insert_with(|| free(format!("{}{count}", ["x", "y"][side])));
        }
    }
    let rank = both.iter().flat_map(|p| &p.constants).map(|c| c.shape.len()).max().unwrap_or(0);
    of.extend(axes(rank).into_iter().enumerate().map(|(k, v)| (v, format!("c_{k}"))));
    let mut names = Names::new(params, of);
    for p in both {
        let reads = p.stmts.iter().flat_map(|s| &s.reads);
        let reads = reads.flat_map(|r| r.indices.iter().chain([&r.condition]));
        let stores = p.stmts.iter().flat_map(|s| s.indices.iter().chain([&s.condition]));
        let facts = p.facts.iter().flat_map(|f| f.indices.iter().chain([&f.condition]));
        let values = p.stmts.iter().flat_map(|s| &s.value);
        reads.chain(stores).chain(facts).chain(values).for_each(|e| names.learn_products(e));
    }
    names
}

fn load(names: &Names, program: &Program, side: usize, load: Load) -> String {
    let side = ["before", "after"][side];
    let stmt = match load.stmt.checked_sub(stores(program)) {
        Some(k) => format!("out{k}"),
        None => load.stmt.to_string(),
    };
    let loops = &program.stmts[load.stmt].loops;
    let loops: Vec<String> = loops.iter().map(|v| names.text(&Expr::Var(*v))).collect();
    format!("{side} {stmt}.{} ({})", load.read, loops.join(", "))
}
