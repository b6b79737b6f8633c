//! Reading a short text, with the place of what is wrong in it.

use std::sync::Arc;

use tilewright_ir::{Error, Result, Source, Span};

/// Largest number in a layout.
const MOST: i64 = 1 << 40;

/// A place in a text. Blanks between words mean nothing.
#[derive(Clone)]
pub(super) struct Cursor<'t> {
    source: &'t Arc<Source>,
    at: usize,
}

impl<'t> Cursor<'t> {
    pub fn new(source: &'t Arc<Source>) -> Cursor<'t> {
        let mut cursor = Cursor { source, at: 0 };
        cursor.skip_blanks();
        cursor
    }

    pub fn rest(&self) -> &'t str {
        self.source.text.get(self.at..).unwrap_or("")
    }

    /// The number of bytes before the place.
    pub fn at(&self) -> usize {
        self.at
    }

    pub fn is_at_end(&self) -> bool {
        self.rest().is_empty()
    }

    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Goes on behind some characters of the text.
    pub fn advance(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.source.text.len());
        self.skip_blanks();
    }

    /// Takes a word or a sign, if it is next.
    pub fn take(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        if is_next {
            self.advance(text.len());
        }
        is_next
    }

    pub fn expect(&mut self, text: &str) -> Result<()> {
        if self.take(text) {
            return Ok(());
        }
        Err(self.expected(&format!("`{text}`")))
    }

    /// The letters, digits, dots and underscores that are next.
    pub fn word(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.')))
            .unwrap_or(rest.len());
        self.advance(end);
        &rest[..end]
    }

    /// A whole number; `None` where no digit is next.
    pub fn number(&mut self) -> Result<Option<i64>> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        if end == 0 {
            return Ok(None);
        }
        let (start, digits) = (self.at, &rest[..end]);
        match digits.parse() {
            Ok(value @ 0..=MOST) => {
                self.advance(end);
                Ok(Some(value))
            }
            _ => Err(self.wrong(start, start + end, format!("`{digits}` is too large"))),
        }
    }

    pub fn whole_number(&mut self) -> Result<i64> {
        match self.number()? {
            Some(value) => Ok(value),
            None => Err(self.expected("a whole number")),
        }
    }

    /// `[1, 2, 3]`.
    pub fn numbers(&mut self) -> Result<Vec<i64>> {
        self.expect("[")?;
        let mut items = Vec::new();
        while !self.take("]") {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(self.whole_number()?);
        }
        Ok(items)
    }

    /// That the text goes on in another way than it has to.
    pub fn expected(&self, what: &str) -> Error {
        let found = match self.peek() {
            Some(c) => format!("there is `{c}`"),
            None => "the text ends".to_owned(),
        };
        let end = self.at + self.peek().map_or(0, char::len_utf8);
        self.wrong(self.at, end, format!("expected {what}, but {found}"))
    }

    /// That a part of the text is wrong.
    pub fn wrong(&self, start: usize, end: usize, message: impl Into<String>) -> Error {
        let span = Span::new(start as u32, end.max(start) as u32);
        Error::syntax(message).at(span).in_source(self.source)
    }

    /// That what was read from `start` on is wrong.
    pub fn wrong_since(&self, start: usize, message: impl Into<String>) -> Error {
        let read = self.source.text.get(start..self.at).unwrap_or("");
        self.wrong(start, start + read.trim_end().len(), message)
    }

    pub fn end(&self) -> Result<()> {
        if self.is_at_end() { Ok(()) } else { Err(self.expected("the end")) }
    }
}
