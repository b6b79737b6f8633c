//! Texts of functions with holes for the numbers that they compute indices with.
//!
//! Kernels of one network often differ in such numbers alone: in how many channels there are, and in the strides
//! and bounds that follow from them. So a function is written as a template, and [`family`](super::family)
//! decides which templates become one function that takes the number as an argument. Marks in the text say where
//! something is filled in; no name and no constant contains them, since all that comes from a program is
//! written as a C identifier, a number or an escape.

use std::fmt::Write;

/// Encloses the position of a number and its type.
const NUMBER: char = '\u{1}';
/// Where an argument list takes the number of a family.
pub(super) const ARGUMENT: char = '\u{2}';
/// Encloses what is written in families alone.
pub(super) const ONLY_IN_FAMILIES: char = '\u{3}';
/// The symbol of the function.
pub(super) const SYMBOL: &str = "\u{4}";
/// Encloses the number of a metadata node, counted from the first one of the function.
const NODE: char = '\u{5}';
/// Where values are computed that the whole function uses.
pub(super) const PROLOGUE: char = '\u{6}';

/// What a number of a template is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Use {
    /// An operand, of this type.
    Operand(&'static str),
    /// How many bytes lie behind a pointer: fewer may be said.
    Bytes,
}

/// A number that may differ between functions of one form.
pub(super) type Number = (i64, Use);

/// The mark for the number at a position.
pub(super) fn number(position: usize) -> String {
    format!("{NUMBER}{position}{NUMBER}")
}

/// The mark for a metadata node.
pub(super) fn node(id: usize) -> String {
    format!("{NODE}{id}{NODE}")
}

/// What is filled in for a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// The same everywhere.
    Fixed(i64),
    /// `factor * n + offset` of the number that the family takes.
    Varies { factor: i64, offset: i64 },
}

/// What fills a template.
#[derive(Clone, Copy)]
pub(super) struct Filling<'a> {
    pub symbol: &'a str,
    /// The number of the function's first metadata node in the module.
    pub first_node: usize,
    pub numbers: &'a [(Filled, Use)],
    /// The number of the family, as an operand; `None` for a function alone.
    pub argument: Option<&'a str>,
}

impl Filling<'_> {
    /// The text of a template.
    pub fn fill(&self, template: &str) -> String {
        let mut out = String::with_capacity(template.len());
        let mut rest = template;
        let mut prologue = None;
        let mut used: Vec<usize> = Vec::new();
        while let Some(at) = rest.find(|c| c <= '\u{6}') {
            out.push_str(&rest[..at]);
            let mark = rest[at..].chars().next().unwrap_or(NUMBER);
            rest = &rest[at + 1..];
            match mark {
                ARGUMENT => {
                    if let Some(n) = self.argument {
                        let _ = write!(out, ", i64 {n}");
                    }
                }
                PROLOGUE => prologue = Some(out.len()),
                NUMBER | NODE | ONLY_IN_FAMILIES => {
                    let (inside, after) = rest.split_once(mark).unwrap_or((rest, ""));
                    rest = after;
                    match mark {
                        ONLY_IN_FAMILIES if self.argument.is_some() => out.push_str(inside),
                        ONLY_IN_FAMILIES => {}
                        NODE => {
                            let id = inside.parse().unwrap_or(0) + self.first_node;
                            let _ = write!(out, "{id}");
                        }
                        _ => self.number(inside.parse().unwrap_or(0), &mut out, &mut used),
                    }
                }
                _ => out.push_str(self.symbol),
            }
        }
        out.push_str(rest);
        if let Some(at) = prologue {
            out.insert_str(at, &self.definitions(&used));
        }
        out
    }

    fn number(&self, position: usize, out: &mut String, used: &mut Vec<usize>) {
        let _ = match self.numbers.get(position) {
            Some((Filled::Varies { .. }, Use::Operand(ty))) => {
                if !used.contains(&position) {
                    used.push(position);
                }
                write!(out, "%n.{position}.{ty}")
            }
            Some((Filled::Fixed(value), _)) => write!(out, "{value}"),
            Some((Filled::Varies { .. }, Use::Bytes)) | None => Ok(()),
        };
    }

    /// Computes the numbers that a function uses from the one that it takes.
    fn definitions(&self, used: &[usize]) -> String {
        let mut out = String::new();
        for position in used {
            let Some((Filled::Varies { factor, offset }, Use::Operand(ty))) =
                self.numbers.get(*position)
            else {
                continue;
            };
            let name = format!("%n.{position}");
            let _ = writeln!(out, "  {name}.times = mul nsw i64 %n, {factor}");
            if *ty == "i64" {
                let _ = writeln!(out, "  {name}.i64 = add nsw i64 {name}.times, {offset}");
            } else {
                let _ = writeln!(out, "  {name}.wide = add nsw i64 {name}.times, {offset}");
                let _ = writeln!(out, "  {name}.{ty} = trunc i64 {name}.wide to {ty}");
            }
        }
        out
    }
}

/// Numbers as they are.
pub(super) fn fixed(numbers: &[Number]) -> Vec<(Filled, Use)> {
    numbers.iter().map(|(value, what)| (Filled::Fixed(*value), *what)).collect()
}
