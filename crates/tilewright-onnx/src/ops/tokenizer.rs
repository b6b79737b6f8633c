//! `com.microsoft.Tokenizer`: strings into tokens, as ONNX Runtime takes them apart; converters of text features write
//! it. Strings are known at import, and so are their tokens.
//!
//! Patterns are those of RE2 with its longest matches: classes (`\w`) are ASCII's, and of the matches that begin
//! first the longest counts (`a|ab` takes both letters of `ab`). The engine here prefers the first alternative, so
//! the end of a match is searched for by itself, among all of them.

use regex_automata::nfa::thompson::pikevm::{Builder as Matcher, Cache, Config, PikeVM};
use regex_automata::nfa::thompson::{Compiler, Config as Limits};
use regex_automata::{Anchored, Input, MatchKind};
use tilewright_ir::{Error, Result};

use super::one;
use super::text::{PATTERN_BYTES, limited, texts};
use crate::build::Builder;
use crate::imported::Imported;
use crate::node::Node;
use crate::operator::{self, Operator, op};
use crate::texts::Texts;

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[operator::texts(op("Tokenizer", 1, 1, tokenize))];

/// What stands before the tokens of a string, and behind them, where they are marked.
const MARKS: [&str; 2] = ["\u{2}", "\u{3}"];

/// How tokens are found.
enum Rule {
    /// Each character is one.
    Characters,
    /// What is between matches, of one pattern after the other.
    Separators(Vec<Pattern>),
    /// The matches.
    Tokens(Box<Pattern>),
}

/// A pattern, and what its search needs.
struct Pattern {
    /// Finds where a match begins.
    first: PikeVM,
    /// Finds where the longest match from there ends.
    longest: PikeVM,
    caches: [Cache; 2],
}

impl Pattern {
    fn new(pattern: &str, attribute: &str) -> Result<Pattern> {
        let refused = |e: String| {
            Error::model(format!("attribute `{attribute}` is not a regular expression: {pattern}"))
                .note(e)
        };
        let nfa = Compiler::new()
            .configure(Limits::new().nfa_size_limit(Some(PATTERN_BYTES)))
            .build(&with_ascii_classes(pattern))
            .map_err(|e| refused(std::error::Error::source(&e).unwrap_or(&e).to_string()))?;
        let matcher = |kind| {
            let config = Config::new().match_kind(kind);
            let built = Matcher::new().configure(config).build_from_nfa(nfa.clone());
            built.map_err(|e| refused(e.to_string()))
        };
        let (first, longest) = (matcher(MatchKind::LeftmostFirst)?, matcher(MatchKind::All)?);
        let caches = [first.create_cache(), longest.create_cache()];
        Ok(Pattern { first, longest, caches })
    }

    /// The leftmost longest match in a text from a position on; the text before it is seen by `\b` and `^`.
    fn find(&mut self, text: &str, from: usize) -> Option<(usize, usize)> {
        let [first, longest] = &mut self.caches;
        let found = self.first.find(first, Input::new(text).range(from..))?;
        let begin = found.start();
        let input = Input::new(text).range(begin..).anchored(Anchored::Yes);
        let end = self.longest.find(longest, input).map_or(found.end(), |m| m.end());
        Some((begin, end))
    }

    /// All matches that are not empty, from left to right.
    fn matches(&mut self, text: &str) -> Vec<(usize, usize)> {
        let (mut from, mut all) = (0, Vec::new());
        while let Some((begin, end)) = self.find(text, from) {
            if begin < end {
                all.push((begin, end));
                from = end;
                continue;
            }
            // Behind an empty match the next character is passed over.
            let Some(next) = text[end..].chars().next() else { break };
            from = end + next.len_utf8();
        }
        all
    }

    /// What is between matches, where it is not empty.
    fn between<'t>(&mut self, text: &'t str) -> Vec<&'t str> {
        let (mut from, mut parts) = (0, Vec::new());
        for (begin, end) in self.matches(text) {
            parts.push(&text[from..begin]);
            from = end;
        }
        parts.push(&text[from..]);
        parts.retain(|part| !part.is_empty());
        parts
    }
}

impl Rule {
    fn of(node: &Node) -> Result<Rule> {
        let expression = node.text("tokenexp")?;
        let separators = node.texts("separators")?;
        if let Some(pattern) = expression {
            if pattern.is_empty() {
                return Err(Error::model("attribute `tokenexp` is empty"));
            }
            // Any character, the end of a line too.
            return match pattern {
                "." => Ok(Rule::Characters),
                _ => Ok(Rule::Tokens(Box::new(Pattern::new(pattern, "tokenexp")?))),
            };
        }
        let separators = separators.filter(|all| !all.is_empty()).ok_or_else(|| {
            Error::model("it has neither attribute `separators` nor `tokenexp`, and one is needed")
        })?;
        if separators.len() == 1 && separators[0].is_empty() {
            return Ok(Rule::Characters);
        }
        let patterns = separators.iter().map(|pattern| {
            let mut compiled = Pattern::new(pattern, "separators")?;
            if compiled.find("", 0).is_some() {
                return Err(Error::unsupported(format!(
                    "attribute `separators` has `{pattern}`, which separates by nothing"
                )));
            }
            Ok(compiled)
        });
        patterns.collect::<Result<_>>().map(Rule::Separators)
    }

    fn tokens<'t>(&mut self, text: &'t str) -> Vec<&'t str> {
        match self {
            Rule::Characters => text.split("").filter(|c| !c.is_empty()).collect(),
            Rule::Separators(all) => all.iter_mut().fold(vec![text], |parts, pattern| {
                parts.into_iter().flat_map(|part| pattern.between(part)).collect()
            }),
            Rule::Tokens(pattern) => {
                pattern.matches(text).into_iter().map(|(begin, end)| &text[begin..end]).collect()
            }
        }
    }
}

/// A pattern whose classes `\w`, `\d` and `\s` hold characters of ASCII only, and in whose brackets only `[:class:]`
/// has a meaning of its own.
fn with_ascii_classes(pattern: &str) -> String {
    let mut out = String::new();
    let mut rest = pattern.chars().peekable();
    let mut inside = false;
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some(class) => out.push_str(&escaped(class, inside)),
                None => out.push('\\'),
            },
            '[' if !inside => {
                inside = true;
                out.push('[');
                if rest.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                // The first bracket does not close.
                if rest.next_if_eq(&']').is_some() {
                    out.push_str(r"\]");
                }
            }
            '[' if rest.peek() == Some(&':') => {
                out.push('[');
                for c in rest.by_ref() {
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            '[' | '&' | '~' if inside => out.extend(['\\', c]),
            ']' => {
                inside = false;
                out.push(']');
            }
            c => out.push(c),
        }
    }
    out
}

/// What stands for a character behind a backslash.
fn escaped(c: char, inside: bool) -> String {
    let members = match c.to_ascii_lowercase() {
        'w' => "0-9A-Za-z_",
        'd' => "0-9",
        's' => r"\t\n\f\r ",
        'b' if !inside && c == 'b' => return r"(?-u:\b)".to_owned(),
        _ => return format!("\\{c}"),
    };
    match (c.is_ascii_uppercase(), inside) {
        (false, true) => members.to_owned(),
        (false, false) => format!("[{members}]"),
        (true, _) => format!("[^{members}]"),
    }
}

/// Tokens along a new last axis, as long as the string with the most of them.
fn tokenize(node: &Node, _: &mut Builder) -> Result<Vec<Imported>> {
    let x = texts(node, 0)?;
    if !matches!(x.shape().len(), 1 | 2) {
        let shape = x.shape();
        return Err(Error::model(format!("the shape is {shape:?}, where [C] or [N, C] is needed")));
    }
    let missing = |name: &str| Error::model(format!("attribute `{name}` is needed"));
    let marked = node.int("mark")?.ok_or_else(|| missing("mark"))? != 0;
    let filler = node.text("pad_value")?.ok_or_else(|| missing("pad_value"))?;
    let least = match node.int("mincharnum")? {
        None => return Err(missing("mincharnum")),
        Some(least) => usize::try_from(least).ok().filter(|n| *n > 0).ok_or_else(|| {
            Error::model(format!("attribute `mincharnum` is {least}, and at least 1 is needed"))
        })?,
    };
    let mut rule = Rule::of(node)?;
    if matches!(rule, Rule::Characters) && least > 1 {
        return Err(Error::model(format!(
            "attribute `mincharnum` is {least}, where each character is a token"
        )));
    }
    let mut all: Vec<Vec<&str>> = x.values().iter().map(|text| rule.tokens(text)).collect();
    all.iter_mut().for_each(|tokens| tokens.retain(|t| t.chars().count() >= least));
    if marked && all.iter().any(|tokens| !tokens.is_empty()) {
        for tokens in &mut all {
            tokens.insert(0, MARKS[0]);
            tokens.push(MARKS[1]);
        }
    }
    let width = all.iter().map(Vec::len).max().unwrap_or(0);
    limited(all.len().checked_mul(width), 0)?;
    let mut values = Vec::with_capacity(all.len() * width);
    for mut tokens in all {
        tokens.resize(width, filler);
        values.extend(tokens.into_iter().map(str::to_owned));
    }
    // Without any string there is no axis of tokens.
    let has_rows = !x.values().is_empty() || x.shape().len() > 1;
    let shape = if has_rows { [x.shape(), &[width]].concat() } else { x.shape().to_vec() };
    one(Imported::Text(Texts::new(&shape, values)?))
}
