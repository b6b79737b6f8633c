//! Checks certificates: that two functions compute the same, for all data and all sizes.
//!
//! # What an accepted file proves
//!
//! Let the sizes have values for which no extent of a parameter of the first function is negative, and let
//! the first function do nothing illegal. Then the second one accesses only cells that exist, and stores the
//! same values to every cell of every parameter and result: they are the same expressions of the data that both
//! were given, operation by operation, so that they have the same bits whatever the operations compute. Where a
//! reason `layout` stands for a parameter, a cell of the first function is the cell of the second one that the map
//! says, and what lies beyond the image of the map is not spoken of. Where the first function stores `(undef)`, or
//! hands on what nothing was written to, the second one may store anything. Where a store `passes` its first operand on, the other one being zero in a
//! sum and so on, the sign of a zero may be another one.
//!
//! It is a statement about the two trees in the file, whoever wrote them ([`program`] says what they mean). It is
//! given that assumptions in both hold, that indices do not leave their types, and that loops may run in order.
//!
//! That the trees are those of two scripts is not proved here. `tilewright check FILE --before A --after B` writes them
//! again and compares; whoever believes that believes the parser of scripts and the writer of trees, too.
//!
//! This crate depends on nothing, so that whoever believes it needs to read nothing else: `set` and `proof` are
//! linear arithmetic, `tree`, `program` and `certificate` read the file, and `judge` has the argument.

pub mod certificate;
pub mod judge;
pub mod program;
pub mod proof;
pub mod set;
pub mod tree;

use std::collections::HashMap;

use certificate::Certificate;
use judge::{Answer, Oracle, Wrong, judge};
use proof::Proof;
use set::{Row, System};
use tree::{List, Placed, Tree, Word};

/// What a certificate begins with.
pub const HEAD: &str = "tilewright-certificate-2";

/// What was accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted<'a> {
    /// The functions of each certificate in the file.
    pub rewrites: Vec<[Tree<'a>; 2]>,
    /// Questions that were answered.
    pub steps: usize,
    /// Assumptions in the functions, which are taken as given.
    pub assumptions: usize,
}

/// Checks a file of certificates. Where several are of one function, each begins with the tree at which the one
/// before ends, so that the last tree computes what the first one does.
///
/// # Errors
/// The first line that is wrong.
pub fn check(text: &str) -> Placed<Accepted<'_>> {
    let trees = Tree::parse(text)?;
    let mut accepted = Accepted { rewrites: Vec::new(), steps: 0, assumptions: 0 };
    let mut ends: HashMap<String, &Tree> = HashMap::new();
    let mut rest = &trees[..];
    let mut line = 1;
    while accepted.rewrites.is_empty() || !rest.is_empty() {
        let [Word(HEAD), before, after, List(_, reasons), List(start, steps), others @ ..] = rest
        else {
            return Err((line, format!("no `{HEAD}` with its four parts")));
        };
        let ([Word("because"), reasons @ ..], [Word("steps"), steps @ ..]) =
            (&reasons[..], &steps[..])
        else {
            return Err((*start, "no `because` with its `steps`".into()));
        };
        let certificate = Certificate::read([before, after], reasons)?;
        let [first, second] = &certificate.programs;
        if ends.get(&first.name).is_some_and(|end| *end != before) {
            let what = format!("`{}` is not as the rewrite before left it", first.name);
            return Err((before.list().map_or(1, |(line, _)| line), what));
        }
        let mut file = File { steps, at: 0, line: *start };
        judge(&certificate, &mut file)?;
        if file.at < steps.len() {
            return Err((file.line, "nothing asks for the step after this".into()));
        }
        line = file.line;
        accepted.steps += steps.len();
        accepted.assumptions += first.assumptions + second.assumptions;
        accepted.rewrites.push([before.clone(), after.clone()]);
        ends.insert(second.name.clone(), after);
        rest = others;
    }
    Ok(accepted)
}

/// The steps of a file, one after the other.
struct File<'a> {
    steps: &'a [Tree<'a>],
    at: usize,
    line: usize,
}

impl Oracle for File<'_> {
    fn answer(&mut self, _: &System, _: Option<&[Vec<Row>]>) -> Answer {
        let step = self.steps.get(self.at);
        let step = step.ok_or_else(|| Wrong::at(self.line, "a step is missing after this"))?;
        self.at += 1;
        let (line, parts) = step.list().map_err(|e| Wrong::at(self.line, e))?;
        self.line = line;
        match parts {
            [Word("go")] => Ok((line, None)),
            _ => Ok((line, Some(Proof::read(step).map_err(|e| Wrong::at(line, e))?))),
        }
    }
}
