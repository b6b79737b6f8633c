//! Trees of words: the one notation of a certificate.
//!
//! A tree is a word, or trees in brackets. Words end at brackets and at spaces, and lines mean nothing but the
//! place of a fault.

/// A number that became too large, or something that has another form than is expected.
pub type Fine<T> = Result<T, String>;

/// A wrong line, by its number in the file.
pub type Placed<T> = Result<T, (usize, String)>;

/// Brackets inside of each other.
const DEEPEST: usize = 600;

#[derive(Clone, Debug)]
pub enum Tree<'a> {
    Word(&'a str),
    /// The line where it begins, and what stands in its brackets.
    List(usize, Vec<Tree<'a>>),
}

pub use Tree::{List, Word};

impl<'a> Tree<'a> {
    /// The trees of a text, whose first line has number one.
    ///
    /// # Errors
    /// A bracket without its other one, or too many inside of each other.
    pub fn parse(text: &'a str) -> Placed<Vec<Tree<'a>>> {
        let mut open: Vec<(usize, Vec<Tree>)> = Vec::new();
        let mut inside = Vec::new();
        let ends = |c: char| c.is_whitespace() || "()".contains(c);
        for (number, line) in (1..).zip(text.lines()) {
            for part in line.split_inclusive(ends) {
                let word = part.trim_end_matches(ends);
                inside.extend((!word.is_empty()).then_some(Word(word)));
                if part.ends_with('(') {
                    open.push((number, std::mem::take(&mut inside)));
                } else if part.ends_with(')') {
                    let Some((start, outside)) = open.pop() else {
                        return Err((number, "a bracket is closed that is not open".into()));
                    };
                    let list = List(start, std::mem::replace(&mut inside, outside));
                    inside.push(list);
                }
                if open.len() > DEEPEST {
                    return Err((number, format!("more than {DEEPEST} brackets are open")));
                }
            }
        }
        match open.pop() {
            Some((start, _)) => Err((start, "a bracket is not closed".into())),
            None => Ok(inside),
        }
    }

    /// The line, and what stands in its brackets.
    pub(crate) fn list(&self) -> Fine<(usize, &[Tree<'a>])> {
        match self {
            List(line, inside) => Ok((*line, inside)),
            Word(word) => Err(format!("`{word}` stands where a list is expected")),
        }
    }

    pub(crate) fn number<T: std::str::FromStr>(&self) -> Fine<T> {
        match self {
            Word(word) => word.parse().map_err(|_| format!("`{word}` is not a number here")),
            List(..) => Err("a list stands where a number is expected".into()),
        }
    }
}

/// Equal trees; the lines where they stand may be others.
impl PartialEq for Tree<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Word(a), Word(b)) => a == b,
            (List(_, a), List(_, b)) => a == b,
            _ => false,
        }
    }
}
