//! Errors as text: the place in the source, notes, and long texts.

use tilewright_ir::{Error, Source, Span};

#[test]
fn long_texts_are_shortened_wherever_they_come_in() {
    let long = || format!("`{}`", "x".repeat(1 << 20));
    let e = Error::syntax(long()).note(long()).help(long()).label(Span::new(0, 1), long());
    let e = e.context(long()).in_source(&Source::new("a.py", "x")).at(Span::new(0, 1));
    assert!(e.to_string().len() < 600 && e.render().len() < 2000, "{}", e.render());
}

#[test]
fn a_context_stands_once() {
    let e = Error::input("no").context("function `f`").context("function `f`");
    assert_eq!(e.to_string(), "function `f`: no");
    assert_eq!(e.context("function `g`").to_string(), "function `g`: function `f`: no");
}

#[test]
fn render_points_at_the_place() {
    let source = Source::new("a.py", "x = 1\nyy = zz\n");
    let e = Error::syntax("unknown name `zz`")
        .at(Span::new(11, 13))
        .in_source(&source)
        .help("define it");
    assert_eq!(
        e.render(),
        "error: unknown name `zz`\n  --> a.py:2:6\n   2 | yy = zz\n     |      ^^\nhelp: define it\n"
    );
}

#[test]
fn the_first_place_stays() {
    let e = Error::input("x").at(Span::new(1, 2)).at(Span::new(5, 6)).at(None);
    assert_eq!(e.diagnostic().span, Some(Span::new(1, 2)));
}
