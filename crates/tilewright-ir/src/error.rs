//! The one way to report an error.
//!
//! [`Error`] is an enum whose variant says what kind of thing went wrong (and so which exit code
//! or reaction fits); each variant carries one [`Diagnostic`] with the message, the place in the
//! source where there is one, notes and help. Build one with the variant's constructor and
//! refine it:
//!
//! ```
//! use tilewright_ir::{Error, Span};
//! let e = Error::syntax("expected an index").at(Span::new(4, 7)).help("write `A[i]`");
//! assert_eq!(e.to_string(), "expected an index");
//! ```

use std::any::Any;
use std::fmt;
use std::panic::RefUnwindSafe;
use std::sync::Arc;

use crate::show::{Excerpt, shortened, visible, visible_lines};
use crate::suggest::closest;

/// Result with the project's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something was left as it was: refusals of what would only have been an improvement, each
/// with the fact that was missing and a witness where there is one.
pub type Remarks = Vec<Error>;

/// A half-open range of byte offsets in a [`Source`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes `start..end`.
    pub fn new(start: u32, end: u32) -> Self {
        Span { start, end }
    }
}

/// A named source text that spans point into.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// File name, or a name such as `<stdin>`.
    pub name: String,
    /// The whole text.
    pub text: String,
}

impl Source {
    /// A shared source.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Arc<Self> {
        Arc::new(Source { name: name.into(), text: text.into() })
    }

    /// One-based line and column (in characters) of a byte offset; offsets past the end clamp.
    pub fn line_col(&self, offset: u32) -> (usize, usize) {
        let mut at = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &self.text[..at];
        let line = before.matches('\n').count() + 1;
        let col = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
        (line, col)
    }

    /// One-based line and column of the beginning of a span, and the line around it.
    pub fn excerpt(&self, span: Span) -> (usize, usize, Excerpt) {
        let (line, col) = self.line_col(span.start);
        let covered = self.text.get(span.start as usize..span.end as usize).unwrap_or("");
        let width = covered.lines().next().unwrap_or("").chars().count();
        (line, col, Excerpt::new(self.line(line), col - 1, width))
    }

    /// The text of a one-based line, without its end of line.
    pub fn line(&self, line: usize) -> &str {
        self.text.lines().nth(line.saturating_sub(1)).unwrap_or("")
    }
}

/// What an [`Error`] says, and where. Its constructors shorten what the texts quote.
#[derive(Clone, Debug, Default)]
pub struct Diagnostic {
    /// One sentence, lower case, without a final full stop.
    pub message: String,
    /// The text that the spans point into.
    pub source: Option<Arc<Source>>,
    /// The place that the message is about.
    pub span: Option<Span>,
    /// Further places, each with what it shows.
    pub labels: Vec<(Span, String)>,
    /// Facts that explain the message: the missing fact, a witness point.
    pub notes: Vec<String>,
    /// What the user can do.
    pub help: Option<String>,
    /// What went wrong as a value, for callers that can do something about it.
    pub cause: Option<Cause>,
}

/// A value of any type that an error carries.
#[derive(Clone)]
pub struct Cause(Arc<dyn Any + Send + Sync + RefUnwindSafe>);

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cause")
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Everything that can go wrong, by kind.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A text that does not parse.
    #[error("{0}")]
    Syntax(Box<Diagnostic>),
    /// A function or module that breaks a rule of the IR.
    #[error("{0}")]
    Malformed(Box<Diagnostic>),
    /// A model file that is truncated, corrupt or inconsistent.
    #[error("{0}")]
    Model(Box<Diagnostic>),
    /// Something valid that is not covered: an operator, attribute, type or target feature.
    #[error("{0}")]
    Unsupported(Box<Diagnostic>),
    /// Data or arguments from the user that do not fit: a missing input, a wrong shape.
    #[error("{0}")]
    Input(Box<Diagnostic>),
    /// A transformation that refuses, with its reason.
    #[error("{0}")]
    Refused(Box<Diagnostic>),
    /// A program that did something illegal while it ran in the interpreter.
    #[error("{0}")]
    Execution(Box<Diagnostic>),
    /// LLVM, a C compiler or another tool is missing or failed.
    #[error("{0}")]
    Toolchain(Box<Diagnostic>),
    /// A file could not be read or written.
    #[error("{0}")]
    Io(Box<Diagnostic>),
    /// A bug of ours; the message says which invariant broke.
    #[error("{0}")]
    Internal(Box<Diagnostic>),
}

/// What is the same for every variant: how it is made, and its diagnostic.
macro_rules! variants {
    ($($name:ident $variant:ident),*) => {
        $(
            #[doc = concat!("A new [`Error::", stringify!($variant), "`] with this message.")]
            pub fn $name(message: impl Into<String>) -> Self {
                let message = short(message.into());
                Error::$variant(Box::new(Diagnostic { message, ..Default::default() }))
            }
        )*

        /// The message with its place.
        pub fn diagnostic(&self) -> &Diagnostic {
            match self {
                $(Error::$variant(d))|* => d,
            }
        }

        fn edit(mut self, edit: impl FnOnce(&mut Diagnostic)) -> Self {
            match &mut self {
                $(Error::$variant(d))|* => edit(d),
            }
            self
        }
    };
}

/// What a diagnostic keeps of a text: what it quotes may be of any length.
fn short(text: String) -> String {
    match shortened(&text) {
        std::borrow::Cow::Borrowed(_) => text,
        std::borrow::Cow::Owned(short) => short,
    }
}

impl Error {
    variants!(
        syntax Syntax, malformed Malformed, model Model, unsupported Unsupported, input Input,
        refused Refused, execution Execution, toolchain Toolchain, io Io, internal Internal
    );

    /// Points at a place; an error that already has one keeps it.
    pub fn at(self, span: impl Into<Option<Span>>) -> Self {
        let span = span.into();
        self.edit(|d| d.span = d.span.or(span))
    }

    /// Attaches the source that the spans point into; an error that already has one keeps it.
    pub fn in_source(self, source: &Arc<Source>) -> Self {
        self.edit(|d| {
            d.source.get_or_insert_with(|| source.clone());
        })
    }

    /// Adds a further place.
    pub fn label(self, span: Span, text: impl Into<String>) -> Self {
        self.edit(|d| d.labels.push((span, short(text.into()))))
    }

    /// Adds a fact that explains the message.
    pub fn note(self, note: impl Into<String>) -> Self {
        self.edit(|d| d.notes.push(short(note.into())))
    }

    /// Says what the user can do; a later help replaces an earlier one.
    pub fn help(self, help: impl Into<String>) -> Self {
        self.edit(|d| d.help = Some(short(help.into())))
    }

    /// Offers the name that was meant, where one among some is close to a word.
    pub fn did_you_mean<'a>(self, word: &str, among: impl IntoIterator<Item = &'a str>) -> Self {
        match closest(word, among) {
            Some(near) => self.help(format!("did you mean `{near}`?")),
            None => self,
        }
    }

    /// Says what went wrong as a value, for [`Error::cause`].
    pub fn because<T: Any + Send + Sync + RefUnwindSafe>(self, cause: T) -> Self {
        self.edit(|d| d.cause = Some(Cause(Arc::new(cause))))
    }

    /// What went wrong, where it is said as a value of this type.
    pub fn cause<T: Any>(&self) -> Option<&T> {
        let cause: &dyn Any = &*self.diagnostic().cause.as_ref()?.0;
        cause.downcast_ref()
    }

    /// Puts `context: ` before the message, unless it stands there already.
    pub fn context(self, context: impl fmt::Display) -> Self {
        let context = format!("{context}: ");
        self.edit(|d| {
            if !d.message.starts_with(&context) {
                d.message = short(format!("{context}{}", d.message));
            }
        })
    }

    /// Plain text with the source line, a caret below the span, notes and help.
    ///
    /// The command line draws the same facts with colours; this form is for tests and logs.
    pub fn render(&self) -> String {
        self.render_as("error")
    }

    /// [`Error::render`] with another word before the message: `remark` for [`Remarks`].
    pub fn render_as(&self, level: &str) -> String {
        use fmt::Write;
        let d = self.diagnostic();
        let mut out = format!("{level}: {}\n", visible(&d.message));
        let places = d.span.map(|s| (s, "")).into_iter();
        let places = places.chain(d.labels.iter().map(|(s, t)| (*s, t.as_str())));
        if let Some(source) = &d.source {
            for (span, text) in places {
                let (line, col, excerpt) = source.excerpt(span);
                let _ = writeln!(out, "  --> {}:{line}:{col}", visible(&source.name));
                out += &excerpt.render(line, &visible(text));
            }
        }
        let out = d.notes.iter().fold(out, |out, n| out + "note: " + &visible_lines(n) + "\n");
        let out = d.help.iter().fold(out, |out, h| out + "help: " + &visible_lines(h) + "\n");
        out.lines().map(|l| l.trim_end().to_owned() + "\n").collect()
    }
}
