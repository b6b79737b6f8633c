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
    let at = |i: usize| Span::new(i as u32, (i + 1).min(bytes.len()) as u32);
    let mut levels = vec![Level::default()];
    let mut depth = 0usize; // sum over `levels` of one plus chain, logic and sticky
    let mut indents: Vec<usize> = Vec::new();
    let mut tokens = 0usize;
    let mut line_start = true;
    let mut i = 0;
    while let Some(&c) = bytes.get(i) {
        if line_start && levels.len() == 1 {
            let (width, end) = indentation(bytes, i);
            i = end;
            line_start = false;
            if !matches!(bytes.get(i), None | Some(b'\n' | b'\r' | b'#')) {
                while indents.last().is_some_and(|&w| w >= width) {
                    indents.pop();
                }
                indents.push(width);
                if indents.len() > limits.indent {
                    return Err(Error::syntax("the code is indented too deeply").at(at(i)));
                }
            }
            continue;
        }
        let start = i;
        i += 1;
        let Some(level) = levels.last_mut() else { break };
        match c {
            b'\n' | b'\r' => {
                line_start = true;
                if levels.len() == 1 {
                    levels[0] = Level::default();
                    depth = 0;
                }
                continue;
            }
            b' ' | b'\t' | 0x0c => continue,
            b'#' => {
                while bytes.get(i).is_some_and(|c| !matches!(c, b'\n' | b'\r')) {
                    i += 1;
                }
                continue;
            }
            b'\\' => {
                // A continued line: its end is not the end of the statement.
                if bytes.get(i) == Some(&b'\r') {
                    i += 1;
                }
                if bytes.get(i) == Some(&b'\n') {
                    i += 1;
                }
                continue;
            }
            b'"' | b'\'' => i = string_end(bytes, start)?,
            b'(' | b'[' | b'{' => {
                level.chain += 1;
                levels.push(Level { open: (c, start), ..Level::default() });
                depth += 2;
            }
            b')' | b']' | b'}' => {
                let (open, from) = level.open;
                let closes = matches!((open, c), (b'(', b')') | (b'[', b']') | (b'{', b'}'));
                if !closes {
                    let error = Error::syntax(format!("`{}` closes nothing", c as char));
                    let error = error.at(at(start));
                    return Err(match open {
                        0 => error,
                        _ => error.label(at(from), format!("`{}` is still open", open as char)),
                    });
                }
                depth = depth.saturating_sub(1 + level.chain + level.logic + level.sticky);
                levels.pop();
            }
            b',' => {
                depth = depth.saturating_sub(level.chain + level.logic);
                (level.chain, level.logic) = (0, 0);
            }
            b':' if bytes.get(i) == Some(&b'=') => {
                i += 1;
                level.sticky += 1;
                depth += 1;
            }
            b':' | b';' => {}
            c if c.is_ascii_alphanumeric() || c == b'_' || c >= 0x80 => {
                while bytes
                    .get(i)
                    .is_some_and(|&c| c.is_ascii_alphanumeric() || c == b'_' || c >= 0x80)
                {
                    i += 1;
                }
                let word = text.get(start..i).unwrap_or("");
                if matches!(bytes.get(i), Some(b'"' | b'\'')) && word.len() <= 2 {
                    if word.contains(['f', 'F', 't', 'T']) {
                        return Err(Error::syntax("formatted strings are not part of TVMScript")
                            .at(Span::new(start as u32, i as u32)));
                    }
                    i = string_end(bytes, i)?;
                } else if OPENERS.contains(&word) {
                    level.sticky += 1;
                    depth += 1;
                } else if matches!(word, "and" | "or") {
                    depth = depth.saturating_sub(level.chain) + 1;
                    level.chain = 0;
                    level.logic += 1;
                } else if JOINERS.contains(&word) {
                    level.chain += 1;
                    depth += 1;
                }
            }
            _ => {
                // `//`, `<=`, `**`, ... are one operator.
                if bytes.get(i).is_some_and(|&d| d == b'=' || d == c && b"*/<>".contains(&c)) {
                    i += 1;
                }
                level.chain += 1;
                depth += 1;
            }
        }
        tokens += 1;
        if depth > limits.depth {
            return Err(Error::syntax("the expression is nested too deeply").at(at(start)).note(
                format!(
                    "at most {} nested brackets and chained operators are allowed",
                    limits.depth
                ),
            ));
        }
        if tokens > limits.tokens {
            return Err(Error::syntax(format!("the text has more than {} tokens", limits.tokens)));
        }
    }
    match levels.last() {
        Some(Level { open: (open @ 1.., from), .. }) => {
            Err(Error::syntax(format!("`{}` is never closed", *open as char)).at(at(*from)))
        }
        _ => Ok(()),
    }
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
            Some(&c) if c == quote => match triple {
                false => return Ok(i + 1),
                true if bytes.get(i + 1) == Some(&quote) && bytes.get(i + 2) == Some(&quote) => {
                    return Ok(i + 3);
                }
                true => i += 1,
            },
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
        let message =
            |text| check(text, &limits).map_or_else(|e| e.to_string(), |()| "fine".to_owned());
        assert_eq!(message("x = 1 + 2 + 3 + 4 + 5"), "the text is longer than 20 bytes");
        assert_eq!(message("x=1+2+3+4"), "the text has more than 6 tokens");
        assert_eq!(message("x = 1 # + 2 + 3 + 4"), "fine");
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
