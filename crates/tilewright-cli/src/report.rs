//! Draws errors: with colours and a frame around the source on a terminal, as plain text elsewhere.

use std::fmt;
use std::io::{IsTerminal, Write};

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode,
};
use tilewright_driver::Error;
use tilewright_ir::Remarks;
use tilewright_ir::show::{is_hidden, visible, visible_lines};

/// Draws an error on standard error.
pub fn draw(error: &Error) {
    let mut to = std::io::stderr();
    let text = match to.is_terminal() {
        true if has_frame(error) => {
            fancy(error, std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()))
        }
        _ => plain(error),
    };
    let _ = to.write_all(text.as_bytes());
}

/// Says on standard error what was left as it was, and why.
pub fn remarks(why: &Remarks) {
    let mut to = std::io::stderr();
    for remark in why {
        let _ = to.write_all(remark.render_as("remark").as_bytes());
    }
}

/// Text without a frame.
fn plain(error: &Error) -> String {
    let mut text = error.render();
    if let Some(advice) = advice(error) {
        text += &format!("help: {advice}\n");
    }
    text
}

/// Whether the source can be drawn as it is: no line around a place is long, and nothing in it acts
/// on a terminal.
fn has_frame(error: &Error) -> bool {
    const LONG: usize = 400;
    let d = error.diagnostic();
    let Some(source) = &d.source else { return true };
    let acts = |c: char| is_hidden(c) && !matches!(c, '\n' | '\r' | '\t');
    let spans = d.span.iter().chain(d.labels.iter().map(|(span, _)| span));
    let mut lines = spans.flat_map(|span| {
        let line = source.line_col(span.start).0;
        line.saturating_sub(1)..=line + 1
    });
    !source.text.contains(acts) && lines.all(|line| source.line(line).len() <= LONG)
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
        let inside = |span: tilewright_ir::Span| {
            let len = source.map_or(0, |s| s.text.len());
            let start = (span.start as usize).min(len);
            (start, (span.end as usize).clamp(start, len) - start)
        };
        let main = d.span.map(|s| LabeledSpan::new_primary_with_span(None, inside(s)));
        let others = d
            .labels
            .iter()
            .map(|(s, t)| LabeledSpan::new_with_span(Some(visible(t).into_owned()), inside(*s)));
        let help = d.help.as_deref().or(advice(error));
        let help: Vec<String> =
            d.notes.iter().map(String::as_str).chain(help).map(visible_lines).collect();
        Drawn {
            message: visible(&d.message).into_owned(),
            source: source.map(|s| NamedSource::new(visible(&s.name), s.text.clone())),
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
    use tilewright_ir::{Source, Span};

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
    fn sources_that_act_or_have_long_lines_get_no_frame() {
        let of = |text: String| {
            let source = Source::new("a\x1b.py", text);
            Error::syntax("x\x1b[2J\nerror: y").at(Span::new(2, 4)).in_source(&source)
        };
        assert!(has_frame(&error()));
        for text in ["a = b\x1b[31m\n".to_owned(), "b".repeat(100_000)] {
            let e = of(text);
            assert!(!has_frame(&e));
            let shown = plain(&e);
            assert!(shown.len() < 600 && shown.lines().count() == 4, "{shown}");
            assert!(!shown.contains('\x1b'), "{shown}");
        }
        assert!(!fancy(&of("a = b".to_owned()), false).contains('\x1b'));
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
