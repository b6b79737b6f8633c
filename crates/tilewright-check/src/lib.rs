//! Checks certificates: that two functions compute the same, for all data and all sizes.
//!
//! # What an accepted file proves
//!
//! Let the sizes have values for which no extent of a parameter of the first function is negative, and let
//! the first function do nothing illegal. Then the second one accesses only cells that exist, and stores the
//! same values to every cell of every parameter: they are the same expressions of the data that both were given,
//! operation by operation, so that they have the same bits whatever the operations compute. Where a line
//! `layout` stands for a parameter, a cell of the first function is the cell of the second one that the map says,
//! and what lies beyond the image of the map is not spoken of. Where the first function stores `T.undef()`, the
//! second one may store anything. Where a store `passes` its first operand on, the other one being zero in a sum
//! and so on, the sign of a zero may be another one.
//!
//! A text may be a graph function with the functions that it calls: its results are compared, and assumptions
//! about tensors that it makes itself are not used.
//!
//! It is a statement about the two texts in the file, whoever wrote them. It is given that assumptions of
//! both texts hold, that indices do not leave their types, and that parallel loops may run in order.
//!
//! This crate depends on nothing, so that whoever believes it needs to read nothing else: `set` and `proof` are
//! linear arithmetic, `reader`, `script`, `graph` and `program` read the functions, `certificate` the file, and `judge` has
//! the argument.

pub mod certificate;
mod constant;
mod graph;
pub mod judge;
mod oracle;
pub mod program;
pub mod proof;
pub mod reader;
mod script;
pub mod set;

use std::collections::HashMap;

use certificate::{Certificate, HEAD};
use judge::{Judged, Oracle, Wrong, judge};
use proof::Proof;
use set::{Row, System};

/// What was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Certificates in the file.
    pub rewrites: usize,
    /// Questions that were answered.
    pub steps: usize,
    /// Assumptions in the texts, which are taken as given.
    pub assumptions: usize,
}

/// The first thing that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line, from one.
    pub line: usize,
    pub message: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for Fault {}

/// Checks a file of certificates. Where several are of one function, each begins with the text at which the one
/// before ends, so that the last text computes what the first one does.
///
/// # Errors
/// The first line that is wrong.
pub fn check(text: &str) -> Result<Accepted, Fault> {
    let fault = |(line, message)| Fault { line, message };
    let lines: Vec<&str> = text.lines().collect();
    let mut starts: Vec<usize> = (0..lines.len()).filter(|k| lines[*k] == HEAD).collect();
    if starts.first() != Some(&0) {
        return Err(fault((1, format!("the file does not begin with `{HEAD}`"))));
    }
    let mut accepted = Accepted { rewrites: starts.len(), steps: 0, assumptions: 0 };
    let mut ends: HashMap<String, String> = HashMap::new();
    starts.push(lines.len());
    for range in starts.windows(2) {
        let (certificate, steps) =
            Certificate::parse(&lines[range[0]..range[1]], range[0] + 1).map_err(fault)?;
        let [before, after] = &certificate.programs;
        if ends.get(&before.name).is_some_and(|text| *text != certificate.texts[0]) {
            let what = format!("`{}` is not as the rewrite before left it", before.name);
            return Err(fault((range[0] + 2, what)));
        }
        let mut file = File { steps: &steps, at: 0 };
        judge(&certificate, &mut file).map_err(fault)?;
        if let Some((line, _)) = steps.get(file.at) {
            return Err(fault((*line, "nothing asks for this step".into())));
        }
        accepted.steps += file.at;
        accepted.assumptions += before.taken_as_given() + after.taken_as_given();
        ends.insert(after.name.clone(), certificate.texts[1].clone());
    }
    Ok(accepted)
}

/// The steps of a file, one after the other.
struct File<'a> {
    steps: &'a [(usize, String)],
    at: usize,
}

impl File<'_> {
    fn next(&mut self) -> Judged<(usize, &str)> {
        let last = self.steps.last().map_or(0, |(line, _)| *line);
        let step = self.steps.get(self.at);
        self.at += 1;
        step.map(|(line, text)| (*line, text.as_str()))
            .ok_or_else(|| Wrong::at(last, "a step is missing after this"))
    }
}

impl Oracle for File<'_> {
    fn proof(&mut self, _: &System, _: &[Vec<Row>], _: usize) -> Judged<(usize, Proof)> {
        let (line, text) = self.next()?;
        parse(text).map(|p| (line, p)).map_err(|e| Wrong::at(line, e))
    }

    fn void(&mut self, _: &System) -> Judged<Option<(usize, Proof)>> {
        let (line, text) = self.next()?;
        if text == "go" {
            return Ok(None);
        }
        parse(text).map(|p| Some((line, p))).map_err(|e| Wrong::at(line, e))
    }
}

fn parse(text: &str) -> Result<Proof, String> {
    let spaced = text.replace('(', " ( ").replace(')', " ) ");
    let words: Vec<String> = spaced.split_whitespace().map(str::to_owned).collect();
    let mut words = words.iter();
    let proof = Proof::parse(&mut words)?;
    if words.next().is_some() { Err("something stands after the proof".into()) } else { Ok(proof) }
}
