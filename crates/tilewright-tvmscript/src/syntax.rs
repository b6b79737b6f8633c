//! Python syntax: from text to ruff's tree, with everything hostile turned away first.
//!
//! ruff's parser copes with any nesting, but its tree is dropped recursively, and so are ours. A
//! scan over the bytes therefore bounds, before any tree exists, how deep the tree can get, and
//! how many tokens there are. At any place the depth is at most the sum over the open brackets of
//! one plus the number of operators since the last comma at that level; keywords that open a
//! nested construct (`lambda`, `if`, ...) count until the end of the line, because a comma does
//! not end what they opened. Indentation has a limit of its own. Strings with expressions inside
//! (f-strings) are refused, since the scan could not see through them.
//!
//! ruff recovers from errors and gives a tree all the same. The few errors that the loose code of
//! design documents makes, and that leave no doubt about what is meant, are let through.

use ruff_python_ast as ast;
use ruff_python_parser::{Mode, ParseErrorType, ParseOptions, parse_unchecked};
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::{Error, Result, Span};

/// What a text may have.
struct Limits {
    /// Deepest expression: nested brackets plus chained operators.
    depth: usize,
    /// Deepest indentation, in blocks.
    indent: usize,
    /// Longest text in bytes. Constants may be stored in the text, so this is generous.
    bytes: usize,
    /// Most tokens; what the tree needs in memory is proportional to them.
    tokens: usize,
}

const LIMITS: Limits = Limits { depth: 800, indent: 100, bytes: 1 << 30, tokens: 4_000_000 };

/// The span of a node.
pub(crate) fn span(node: &impl Ranged) -> Span {
    range_span(node.range())
}

/// An error at a node.
pub(crate) fn error(node: &impl Ranged, message: impl Into<String>) -> Error {
    Error::syntax(message).at(span(node))
}

fn range_span(range: TextRange) -> Span {
    Span::new(range.start().to_u32(), range.end().to_u32())
}

/// The statements of a text.
pub(crate) fn parse_suite(text: &str) -> Result<Vec<ast::Stmt>> {
    check(text, &LIMITS)?;
    match parse(text, Mode::Module)? {
        ast::Mod::Module(m) => Ok(m.body.into_iter().collect()),
        ast::Mod::Expression(_) => Err(Error::internal("an expression instead of a module")),
    }
}

/// The expression that a text is.
pub(crate) fn parse_expression(text: &str) -> Result<ast::Expr> {
    check(text, &LIMITS)?;
    match parse(text, Mode::Expression)? {
        ast::Mod::Expression(e) => Ok(*e.body),
        ast::Mod::Module(_) => Err(Error::internal("a module instead of an expression")),
    }
}

fn parse(text: &str, mode: Mode) -> Result<ast::Mod> {
    let parsed = parse_unchecked(text, ParseOptions::from(mode));
    let bad = parsed.errors().iter().find(|e| !tolerated(&e.error));
    match bad {
        None => Ok(parsed.into_syntax()),
        Some(e) => {
            let message = e.error.to_string();
            let mut chars = message.chars();
            let lower = chars.next().into_iter().flat_map(char::to_lowercase);
            let message: String = lower.chain(chars).collect();
            Err(Error::syntax(message).at(range_span(e.location)))
        }
    }
}

/// Errors that leave no doubt about what is meant.
fn tolerated(error: &ParseErrorType) -> bool {
    matches!(error, ParseErrorType::PositionalAfterKeywordArgument)
}

/// Keywords after which a nested construct goes on past the next comma.
const OPENERS: &[&str] = &[
    "async", "await", "case", "class", "def", "elif", "else", "except", "finally", "for", "if",
    "lambda", "match", "not", "try", "while", "with", "yield",
];
/// Keywords that join two operands.
const JOINERS: &[&str] = &["in", "is", "from", "as"];

/// One open bracket, or the line itself.
#[derive(Clone, Copy, Default)]
struct Level {
    /// Opening byte and its place; zero for the line itself.
    open: (u8, usize),
    /// Operators since the last comma, `and` or `or`.
    chain: usize,
    /// How many `and` and `or` since the last comma.
    logic: usize,
    /// Constructs that a comma does not end.
    sticky: usize,
}

/// Refuses texts whose tree would be too deep or too large; see the head of this file.
fn check(text: &str, limits: &Limits) -> Result<()> {
    if text.len() > limits.bytes {
        return Err(Error::syntax(format!("the text is longer than {} bytes", limits.bytes)));
    }
    let bytes = text.as_bytes();
    let (line, open, indents) = (Level::default(), Vec::new(), Vec::new());
    let mut scan = Scan { text, bytes, limits, i: 0, line, open, depth: 0, indents };
    let (mut tokens, mut line_start) = (0usize, true);
    while let Some(&c) = bytes.get(scan.i) {
        if line_start && scan.open.is_empty() {
            scan.indent()?;
            line_start = false;
            continue;
        }
        let start = scan.i;
        scan.i += 1;
        if matches!(c, b'\n' | b'\r') {
            line_start = true;
            scan.end_line();
            continue;
        }
        if scan.skip(c) {
            continue;
        }
        scan.token(c, start)?;
        tokens += 1;
        if scan.depth > limits.depth {
            let error = Error::syntax("the expression is nested too deeply").at(scan.at(start));
            return Err(error.note(format!(
                "at most {} nested brackets and chained operators are allowed",
                limits.depth
            )));
        }
        if tokens > limits.tokens {
            return Err(Error::syntax(format!("the text has more than {} tokens", limits.tokens)));
        }
    }
    match scan.open.last() {
        Some(Level { open: (open, from), .. }) => {
            let error = Error::syntax(format!("`{}` is never closed", *open as char));
            Err(error.at(scan.at(*from)))
        }
        None => Ok(()),
    }
}

/// A text that is being checked.
struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    limits: &'a Limits,
    /// The next byte.
    i: usize,
    line: Level,
    /// The open brackets.
    open: Vec<Level>,
    /// The sum over all levels: one for each bracket, and all that its level counts.
    depth: usize,
    /// The widths of the blocks around.
    indents: Vec<usize>,
}

impl Scan<'_> {
    fn at(&self, i: usize) -> Span {
        Span::new(i as u32, (i + 1).min(self.bytes.len()) as u32)
    }

    /// The innermost bracket, or the line.
    fn level(&mut self) -> &mut Level {
        self.open.last_mut().unwrap_or(&mut self.line)
    }

    /// Takes the white space at the start of a line, which opens and closes blocks.
    fn indent(&mut self) -> Result<()> {
        let (width, end) = indentation(self.bytes, self.i);
        self.i = end;
        if !matches!(self.bytes.get(end), None | Some(b'\n' | b'\r' | b'#')) {
            while self.indents.last().is_some_and(|&w| w >= width) {
                self.indents.pop();
            }
            self.indents.push(width);
            if self.indents.len() > self.limits.indent {
                return Err(Error::syntax("the code is indented too deeply").at(self.at(end)));
            }
        }
        Ok(())
    }

    /// Ends a statement, unless a bracket is open.
    fn end_line(&mut self) {
        if self.open.is_empty() {
            self.line = Level::default();
            self.depth = 0;
        }
    }

    /// Takes what is no token and begins with a byte, and says whether there was something.
    fn skip(&mut self, c: u8) -> bool {
        match c {
            b' ' | b'\t' | 0x0c => {}
            b'#' => {
                while self.bytes.get(self.i).is_some_and(|c| !matches!(c, b'\n' | b'\r')) {
                    self.i += 1;
                }
            }
            b'\\' => {
                // A continued line: its end is not the end of the statement.
                for end in [b'\r', b'\n'] {
                    self.i += usize::from(self.bytes.get(self.i) == Some(&end));
                }
            }
            _ => return false,
        }
        true
    }

    /// Takes a token that begins with a byte.
    fn token(&mut self, c: u8, start: usize) -> Result<()> {
        match c {
            b'"' | b'\'' => self.i = string_end(self.bytes, start)?,
            b'(' | b'[' | b'{' => {
                self.level().chain += 1;
                self.open.push(Level { open: (c, start), ..Level::default() });
                self.depth += 2;
            }
            b')' | b']' | b'}' => self.close(c, start)?,
            b',' => {
                let level = self.level();
                let counted = level.chain + level.logic;
                (level.chain, level.logic) = (0, 0);
                self.depth = self.depth.saturating_sub(counted);
            }
            b':' if self.bytes.get(self.i) == Some(&b'=') => {
                self.i += 1;
                self.level().sticky += 1;
                self.depth += 1;
            }
            b':' | b';' => {}
            c if is_word(c) => self.word(start)?,
            _ => {
                // `//`, `<=`, `**`, ... are one operator.
                let next = self.bytes.get(self.i);
                self.i +=
                    usize::from(next.is_some_and(|&d| d == b'=' || d == c && b"*/<>".contains(&c)));
                self.level().chain += 1;
                self.depth += 1;
            }
        }
        Ok(())
    }

    /// Closes a bracket, which must be the one that was opened last.
    fn close(&mut self, c: u8, start: usize) -> Result<()> {
        let level = *self.level();
        let (open, from) = level.open;
        if !matches!((open, c), (b'(', b')') | (b'[', b']') | (b'{', b'}')) {
            let error = Error::syntax(format!("`{}` closes nothing", c as char));
            let error = error.at(self.at(start));
            return Err(match open {
                0 => error,
                _ => error.label(self.at(from), format!("`{}` is still open", open as char)),
            });
        }
        self.depth = self.depth.saturating_sub(1 + level.chain + level.logic + level.sticky);
        self.open.pop();
        Ok(())
    }

    /// Takes a name, a keyword or a number, or a string with a prefix.
    fn word(&mut self, start: usize) -> Result<()> {
        while self.bytes.get(self.i).is_some_and(|&c| is_word(c)) {
            self.i += 1;
        }
        let word = self.text.get(start..self.i).unwrap_or("");
        if matches!(self.bytes.get(self.i), Some(b'"' | b'\'')) && word.len() <= 2 {
            if word.contains(['f', 'F', 't', 'T']) {
                return Err(Error::syntax("formatted strings are not part of TVMScript")
                    .at(Span::new(start as u32, self.i as u32)));
            }
            self.i = string_end(self.bytes, self.i)?;
        } else if OPENERS.contains(&word) {
            self.level().sticky += 1;
            self.depth += 1;
        } else if matches!(word, "and" | "or") {
            let level = self.level();
            let chain = std::mem::take(&mut level.chain);
            level.logic += 1;
            self.depth = self.depth.saturating_sub(chain) + 1;
        } else if JOINERS.contains(&word) {
            self.level().chain += 1;
            self.depth += 1;
        }
        Ok(())
    }
}

/// Whether a byte may be in a name or a number.
fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c >= 0x80
}

/// Width of the white space at the start of a line (a tab goes to the next multiple of eight),
/// and where it ends.
fn indentation(bytes: &[u8], mut i: usize) -> (usize, usize) {
    let mut width = 0usize;
    loop {
        match bytes.get(i) {
            Some(b' ') => width += 1,
            Some(b'\t') => width = (width / 8 + 1) * 8,
            Some(0x0c) => width = 0,
            _ => return (width, i),
        }
        i += 1;
    }
}

/// Where the string that starts with the quote at `start` ends.
fn string_end(bytes: &[u8], start: usize) -> Result<usize> {
    let quote = bytes.get(start).copied().unwrap_or(b'"');
    let triple = bytes.get(start + 1) == Some(&quote) && bytes.get(start + 2) == Some(&quote);
    let mut i = start + if triple { 3 } else { 1 };
    loop {
        match bytes.get(i) {
            Some(b'\\') => i += 2,
            Some(&c) if c == quote => {
                if !triple {
                    return Ok(i + 1);
                }
                if bytes.get(i + 1) == Some(&quote) && bytes.get(i + 2) == Some(&quote) {
                    return Ok(i + 3);
                }
                i += 1;
            }
            Some(b'\n' | b'\r') if !triple => break,
            Some(_) => i += 1,
            None => break,
        }
    }
    Err(Error::syntax("the string is never closed").at(Span::new(start as u32, (start + 1) as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        parse_suite(text).map_or_else(|e| e.to_string(), |_| "fine".to_owned())
    }

    #[test]
    fn depth_counts_what_nests_and_not_what_stands_side_by_side() {
        let list = format!("x = [{}]", "[-1, f(2 + 3)], ".repeat(5000));
        assert_eq!(message(&list), "fine");
        assert_eq!(message(&"x = 1 + 2\n".repeat(5000)), "fine");
        assert_eq!(message(&format!("x = y{}", " and a + 2 * b < c - 1".repeat(700))), "fine");
        let deep = "the expression is nested too deeply";
        assert_eq!(message(&format!("x = {}1{}", "(".repeat(3000), ")".repeat(3000))), deep);
        assert_eq!(message(&format!("x = {}1", "-".repeat(3000))), deep);
        assert_eq!(message(&format!("x = 1{}", " + 1".repeat(3000))), deep);
        assert_eq!(message(&format!("x = 1{}", "()".repeat(3000))), deep);
        assert_eq!(message(&format!("x = y{}", " or y and y".repeat(3000))), deep);
        assert_eq!(message(&format!("x = {}1", "lambda a, b: ".repeat(3000))), deep);
        assert_eq!(message(&"if a, b: ".repeat(3000)), deep);
        assert_eq!(message(&format!("x = 1{}", " \\\n + 1".repeat(3000))), deep);
        let blocks: String = (0..200).map(|i| format!("{}if x:\n", " ".repeat(i))).collect();
        assert_eq!(message(&blocks), "the code is indented too deeply");
    }

    #[test]
    fn size_is_limited() {
        let limits = Limits { bytes: 20, tokens: 6, ..LIMITS };
        assert_eq!(limited("x = 1 + 2 + 3 + 4 + 5", &limits), "the text is longer than 20 bytes");
        assert_eq!(limited("x=1+2+3+4", &limits), "the text has more than 6 tokens");
        assert_eq!(limited("x = 1 # + 2 + 3 + 4", &limits), "fine");
    }

    fn limited(text: &str, limits: &Limits) -> String {
        check(text, limits).map_or_else(|e| e.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn brackets_and_strings_must_close() {
        assert_eq!(message("x = (1,\ny = 2"), "`(` is never closed");
        assert_eq!(message("x = (1]"), "`]` closes nothing");
        assert_eq!(message("x = 'abc\n"), "the string is never closed");
        assert_eq!(message("x = \"\"\"abc\n"), "the string is never closed");
        assert_eq!(message("x = f'{1}'"), "formatted strings are not part of TVMScript");
        assert_eq!(message("x = '(((' # ((("), "fine");
        assert_eq!(message("x = r'\\''"), "fine");
    }

    #[test]
    fn the_first_error_of_the_syntax_is_reported() {
        assert_eq!(message("f(a=1, 2)"), "fine");
        assert_eq!(message("x = 1 +"), "expected an expression");
        assert_eq!(message("with f()\n  x"), "expected `:`, found newline");
    }
}
