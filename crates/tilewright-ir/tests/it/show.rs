//! Text from outside: hidden characters are escaped, long texts are shortened.

use tilewright_ir::show::{Excerpt, is_hidden, shortened, visible, visible_lines};

#[test]
fn every_character_that_acts_is_escaped() {
    let text = "\0\x07\x1b\x7f\u{9b}\u{85}\u{202e}\u{2066}\u{200f}\u{2028}\r\t";
    let shown = visible(text);
    assert!(shown.is_ascii() && !shown.contains(is_hidden), "{shown}");
    assert_eq!(visible("\u{202e}x"), "\\u{202e}x");
    let pictured = Excerpt::new(text, 0, 1).text;
    assert_eq!(pictured.chars().count(), text.chars().count());
    assert!(!pictured.contains(is_hidden), "{pictured}");
    assert_eq!(visible_lines("a\nerror: b\x1b"), "a\n  error: b\\u{1b}");
}

#[test]
fn what_a_message_quotes_is_shortened_and_the_rest_stays() {
    let (name, number) = ("n \u{e9}".repeat(9_000), "7".repeat(9_000));
    let text = format!("`{name}` is {number}, not `int8`, in `a` of `b`");
    let short = shortened(&text);
    assert!(short.chars().count() < 3 * 240, "{short}");
    assert!(short.starts_with("`n \u{e9}n") && short.ends_with("77, not `int8`, in `a` of `b`"));
    assert_eq!(shortened(&short), short);
    // A quote without an end is none, and a long list keeps both ends.
    let open = format!("a ` in {}", "word ".repeat(100));
    assert_eq!(shortened(&open), open);
    let list = (0..100_000).map(|k| format!("{k}, ")).collect::<String>();
    let short = shortened(&list);
    assert!(short.len() < 8 * 600 && short.starts_with("0, 1, ") && short.ends_with("99999, "));
    assert!(short.contains("499, ... 99900, "), "{short}");
}

#[test]
fn long_lines_are_shortened_around_the_place() {
    let line = format!("{}HERE{}", "a".repeat(70_000), "b".repeat(30_000));
    let e = Excerpt::new(&line, 70_000, 4);
    assert!(e.text.len() < 200 && e.text.starts_with("...a") && e.text.ends_with("b..."));
    assert_eq!(&e.text[e.before..e.before + e.width], "HERE");
    // A place as long as the line is cut, one at its end is shown.
    let e = Excerpt::new(&line, 0, line.len());
    assert!(e.before == 0 && e.width <= 160 && e.text.ends_with("a..."));
    let e = Excerpt::new(&line, line.len() - 2, 2);
    assert_eq!(&e.text[e.before..], "bb");
    let e = Excerpt::new(&line, line.len(), 0);
    assert_eq!((e.before, e.width), (e.text.len(), 1));
    assert_eq!(Excerpt::new("x = y", 4, 1).text, "x = y");
}
