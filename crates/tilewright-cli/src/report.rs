//! Draws errors: with colours and a frame around the source on a terminal, as plain text elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use tilewright_driver::Error;
use tilewright_ir::show::{is_hidden, visible, visible_lines};
use tilewright_ir::{Remarks, Source, Span};

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
    let spans = d.span.iter().chain(d.labels.iter().map(|(span, _)| span));
    let mut lines = spans.flat_map(|span| {
        let line = source.line_col(span.start).0;
        line.saturating_sub(1)..=line + 1
    });
    !source.text.contains(|c| is_hidden(c) && !matches!(c, '\n' | '\r' | '\t'))
        && lines.all(|line| source.line(line).len() <= LONG)
}

/// Text with a frame, and colours where they are wanted.
fn fancy(error: &Error, colours: bool) -> String {
    let d = error.diagnostic();
    let mut group = Group::with_title(Level::ERROR.primary_title(visible(&d.message)));
    // Without a source there is nothing to point into.
    if let (Some(source), true) = (&d.source, d.span.is_some() || !d.labels.is_empty()) {
        let main = d.span.map(|span| AnnotationKind::Primary.span(range_in(span, source)));
        let others = d.labels.iter().map(|(span, text)| {
            AnnotationKind::Context.span(range_in(*span, source)).label(visible(text).into_owned())
        });
        let snippet = Snippet::source(&source.text).path(visible(&source.name).into_owned());
        group = group.element(snippet.annotations(main.into_iter().chain(others)));
    }
    let notes = d.notes.iter().map(|text| Level::NOTE.message(visible_lines(text)));
    let help = d.help.as_deref().or(advice(error));
    let help = help.map(|text| Level::HELP.message(visible_lines(text)));
    let report = [group.elements(notes.chain(help))];
    let renderer = if colours { Renderer::styled() } else { Renderer::plain() };
    renderer.decor_style(DecorStyle::Unicode).render(&report) + "\n"
}

fn text_position(offset: u32, source: &Arc<Source>) -> usize {
    source.text.floor_char_boundary(offset as usize)
}

fn range_in(span: Span, source: &Arc<Source>) -> std::ops::Range<usize> {
    text_position(span.start, source)
        ..text_position(span.end, source).max(text_position(span.start, source))
}

/// What to do about a bug of ours.
fn advice(error: &Error) -> Option<&'static str> {
    let bug = matches!(error, Error::Internal(_)) && error.diagnostic().help.is_none();
    bug.then_some("this is a bug in tilewright; please report it with the file that shows it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use tilewright_ir::Source;

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
            error: unknown name `zz`
              ╭▸ a.py:2:6
              │
            1 │ x = 1
              │ ─ this one is known
            2 │ yy = zz
              │      ━━
              │
              ├ note: names are looked up from the inside out
              ╰ help: define it
        "#]]
        .assert_eq(&format!("on stderr:\n{}", fancy(&error(), false)));
        assert!(fancy(&error(), true).contains("\x1b["));
    }

    #[test]
    fn sources_that_act_or_have_long_lines_get_no_frame() {
        assert!(has_frame(&error()));
        for text in ["a = b\x1b[31m\n".to_owned(), "b".repeat(100_000)] {
            let e = error_in(text);
            assert!(!has_frame(&e));
            let shown = plain(&e);
            assert!(shown.len() < 600 && shown.lines().count() == 4, "{shown}");
            assert!(!shown.contains('\x1b'), "{shown}");
        }
        assert!(!fancy(&error_in("a = b".to_owned()), false).contains('\x1b'));
    }

    fn error_in(text: String) -> Error {
        let source = Source::new("a\x1b.py", text);
        Error::syntax("x\x1b[2J\nerror: y").at(Span::new(2, 4)).in_source(&source)
    }

    #[test]
    fn spans_past_the_end_are_drawn_all_the_same() {
        let source = Source::new("a.py", "x");
        let text = fancy(&Error::syntax("it ends").at(Span::new(7, 9)).in_source(&source), false);
        assert!(text.contains("it ends"), "{text}");
        let without = fancy(&Error::syntax("no source").at(Span::new(7, 9)), false);
        assert!(without.contains("no source"), "{without}");
        let inside = Source::new("a.py", "é = 1\n");
        let text = fancy(&Error::syntax("half").at(Span::new(1, 2)).in_source(&inside), false);
        assert!(text.contains("half"), "in the middle of a character: {text}");
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
