//! Draws errors: with colours and a frame around the source on a terminal, as plain text elsewhere.

use std::fmt;
use std::io::{IsTerminal, Write};

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode,
};
use tilewright::Error;

/// Draws an error on standard error.
pub fn draw(error: &Error) {
    let mut to = std::io::stderr();
    let text = match to.is_terminal() {
        true => fancy(error, std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())),
        false => plain(error),
    };
    let _ = to.write_all(text.as_bytes());
}

/// Text without a frame.
fn plain(error: &Error) -> String {
    let mut text = error.render();
    if let Some(advice) = advice(error) {
        text += &format!("help: {advice}\n");
    }
    text
}

/// Text with a frame, and colours where they are wanted.
fn fancy(error: &Error, colours: bool) -> String {
    let theme = if colours { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let mut text = String::new();
    let handler = GraphicalReportHandler::new_themed(theme);
    match handler.render_report(&mut text, &Drawn::new(error)) {
        Ok(()) => text,
        Err(fmt::Error) => plain(error),
    }
}

/// What to do about a bug of ours.
fn advice(error: &Error) -> Option<&'static str> {
    let bug = matches!(error, Error::Internal(_)) && error.diagnostic().help.is_none();
    bug.then_some("this is a bug in tilewright; please report it with the file that shows it")
}

/// An error in the form that miette draws.
#[derive(Debug)]
struct Drawn {
    message: String,
    source: Option<NamedSource<String>>,
    labels: Vec<LabeledSpan>,
    help: Option<String>,
}

impl Drawn {
    fn new(error: &Error) -> Self {
        let d = error.diagnostic();
        let source = d.source.as_ref();
        let inside = |span: tilewright::ir::Span| {
            let len = source.map_or(0, |s| s.text.len());
            let start = (span.start as usize).min(len);
            (start, (span.end as usize).clamp(start, len) - start)
        };
        let main = d.span.map(|s| LabeledSpan::new_primary_with_span(None, inside(s)));
        let others =
            d.labels.iter().map(|(s, t)| LabeledSpan::new_with_span(Some(t.clone()), inside(*s)));
        let notes = d.notes.iter().map(String::as_str);
        let help = d.help.as_deref().or(advice(error));
        let help: Vec<&str> = notes.chain(help).collect();
        Drawn {
            message: d.message.clone(),
            source: source.map(|s| NamedSource::new(&s.name, s.text.clone())),
            labels: main.into_iter().chain(others).collect(),
            help: (!help.is_empty()).then(|| help.join("\n")),
        }
    }
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Drawn {}

impl Diagnostic for Drawn {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|s| s as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        // Without a source there is nothing to point into.
        let labels = self.source.is_some().then_some(&self.labels)?;
        Some(Box::new(labels.iter().cloned()))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use tilewright::ir::{Source, Span};

    fn error() -> Error {
        let source = Source::new("a.py", "x = 1\nyy = zz\n");
        Error::syntax("unknown name `zz`")
            .at(Span::new(11, 13))
            .label(Span::new(0, 1), "this one is known")
            .in_source(&source)
            .note("names are looked up from the inside out")
            .help("define it")
    }

    #[test]
    fn a_terminal_gets_a_frame() {
        // A line at the margin keeps the indentation of the others.
        expect![[r#"
            on stderr:
              × unknown name `zz`
               ╭─[a.py:2:6]
             1 │ x = 1
               · ┬
               · ╰── this one is known
             2 │ yy = zz
               ·      ──
               ╰────
              help: names are looked up from the inside out
                    define it
        "#]]
        .assert_eq(&format!("on stderr:\n{}", fancy(&error(), false)));
        assert!(fancy(&error(), true).contains("\x1b["));
    }

    #[test]
    fn spans_past_the_end_are_drawn_all_the_same() {
        let source = Source::new("a.py", "x");
        let text = fancy(&Error::syntax("it ends").at(Span::new(7, 9)).in_source(&source), false);
        assert!(text.contains("it ends"), "{text}");
        let without = fancy(&Error::syntax("no source").at(Span::new(7, 9)), false);
        assert!(without.contains("no source"), "{without}");
    }

    #[test]
    fn a_bug_says_what_to_do() {
        expect![[r#"
            error: a loop without a body
            help: this is a bug in tilewright; please report it with the file that shows it
        "#]]
        .assert_eq(&plain(&Error::internal("a loop without a body")));
        assert!(fancy(&Error::internal("x"), false).contains("please report it"));
    }
}
