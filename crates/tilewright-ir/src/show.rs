//! Text from outside, made fit to print.
//!
//! Names in models, paths and scripts are arbitrary. A terminal acts on control characters in them,
//! and shows text in another order after some others, so that what a user reads is not what is
//! there. Wherever text from outside is printed, such characters are escaped.
//!
//! Names, literals and expressions are also as long as their author likes. A message quotes only so
//! much of each that it can be read ([`shortened`]).

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character acts instead of being seen: controls (C0, DEL, C1), those that change the
/// direction of text, and those that end a line.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text on one line, with hidden characters escaped as in Rust: `\n`, `\u{1b}`.
///
/// ```
/// use tilewright_ir::show::visible;
/// assert_eq!(visible("a\x1b[31m\nb"), r"a\u{1b}[31m\nb");
/// assert_eq!(visible("gpu_0/data:0 é"), "gpu_0/data:0 é");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    if text.contains(is_hidden) {
        let mut out = String::with_capacity(text.len() + 8);
        text.chars().for_each(|c| escape(&mut out, c));
        out.into()
    } else {
        text.into()
    }
}

/// As [`visible`], with the ends of lines kept; what follows one is indented, so that it cannot be
/// taken for the next message.
pub fn visible_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(visible).collect();
    lines.join("\n  ")
}

/// As [`visible`], with one character for each, so that places stay where they are: controls by
/// their pictures (`␛`), a tab by a space, others by `�`.
fn pictures(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\t' => ' ',
            '\x7f' => '\u{2421}',
            c if (c as u32) < 0x20 => char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}'),
            c if is_hidden(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Most characters of one part of a message, and how many of them stay at its ends where it is longer.
const PART: usize = 240;
const HEAD: usize = 140;
const TAIL: usize = 60;

/// Most parts of a message, and how many of them stay at its end where there are more.
const PARTS: usize = 600;
const LAST_PARTS: usize = 100;

/// A message with `...` in the middle of each quoted part (`` `between these` ``) and of each word
/// that is long, and in the middle of the message where it has very many of them.
///
/// ```
/// use tilewright_ir::show::shortened;
/// let long = format!("`{}` is no number, line 3", "9".repeat(100_000));
/// let short = shortened(&long);
/// assert!(short.len() < 300 && short.ends_with("999` is no number, line 3"));
/// assert_eq!(shortened("`A` is no number"), "`A` is no number");
/// ```
pub fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= PART {
        return text.into();
    }
    // Quoted parts are whole, and what is between them is taken by words.
    let mut parts: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(from) = rest.find('`') {
        let Some(length) = rest[from + 1..].find('`') else { break };
        parts.extend(rest[..from].split_inclusive(char::is_whitespace));
        parts.push(&rest[from..from + length + 2]);
        rest = &rest[from + length + 2..];
    }
    parts.extend(rest.split_inclusive(char::is_whitespace));
    let middle = match parts.len().checked_sub(PARTS) {
        Some(1..) => PARTS - LAST_PARTS..parts.len() - LAST_PARTS,
        _ => 0..0,
    };
    let mut out = String::new();
    for (k, part) in parts.iter().enumerate() {
        if middle.start == k && !middle.is_empty() {
            out.push_str("... ");
        }
        if middle.contains(&k) {
            continue;
        }
        match part.chars().count() {
            ..=PART => out.push_str(part),
            n => {
                out.extend(part.chars().take(HEAD));
                out.push_str("...");
                out.extend(part.chars().skip(n - TAIL));
            }
        }
    }
    out.into()
}

fn escape(out: &mut String, c: char) {
    match c {
        '\n' | '\r' | '\t' => out.extend(c.escape_default()),
        c if is_hidden(c) => out.extend(c.escape_unicode()),
        c => out.push(c),
    }
}

/// How many characters of a source line are shown at most, and how many before the place.
const SHOWN: usize = 160;
const BEFORE: usize = 40;

/// A line of a source, shortened around a place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The text, with `...` where some is left out.
    pub text: String,
    /// Characters before the place, in the text.
    pub before: usize,
    /// Characters of the place, at least one.
    pub width: usize,
}

impl Excerpt {
    /// The line around the characters `at..at + width`, counted from 0.
    pub fn new(line: &str, at: usize, width: usize) -> Excerpt {
        let count = line.chars().count();
        let width = width.max(1);
        if count <= SHOWN {
            return Excerpt { text: pictures(line), before: at, width };
        }
        let from = at.saturating_sub(BEFORE).min(count.saturating_sub(SHOWN));
        let part: String = line.chars().skip(from).take(SHOWN).collect();
        let left = if from > 0 { "..." } else { "" };
        let right = if from + SHOWN < count { "..." } else { "" };
        let before = at.min(count) - from;
        Excerpt {
            text: format!("{left}{}{right}", pictures(&part)),
            before: left.len() + before,
            width: width.min(SHOWN.saturating_sub(before).max(1)),
        }
    }

    /// Two lines: the text after its number, and marks under the place with a remark.
    pub fn render(&self, line: usize, remark: &str) -> String {
        let mut out = format!("{line:4} | {}\n", self.text);
        let pad = " ".repeat(self.before);
        let _ = writeln!(out, "     | {pad}{} {remark}", "^".repeat(self.width));
        out
    }
}
