//! Text and numbers as the page has them.

use tilewright_ir::show::{shortened, visible};

/// Text for an element or a quoted attribute: characters that act are shown by their numbers, and
/// nothing in it is markup.
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(&shortened(text)).chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c => out.push(c),
        }
    }
    out
}

/// Text as a string of JSON that may stand in a `script` element: nothing in it ends the element.
pub fn json(text: &str) -> String {
    let quoted = serde_json::Value::from(visible(&shortened(text))).to_string();
    quoted.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// A number with three digits: `12.3 M`.
pub fn amount(n: u64) -> String {
    let x = n as f64;
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.into_iter().find(|(unit, _)| x >= *unit) {
        None => n.to_string(),
        Some((unit, name)) => {
            let x = x / unit;
            let digits = if x < 10.0 { 2 } else { usize::from(x < 100.0) };
            format!("{x:.digits$} {name}")
        }
    }
}

/// A time in nanoseconds with three digits: `12.3 ms`.
pub fn time(nanoseconds: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    match units.into_iter().find(|(unit, _)| nanoseconds >= *unit) {
        None => format!("{nanoseconds:.0} ns"),
        Some((unit, name)) => {
            let x = nanoseconds / unit;
            let digits = if x < 10.0 { 2 } else { usize::from(x < 100.0) };
            format!("{x:.digits$} {name}")
        }
    }
}

/// A share in percent.
pub fn share(x: f64) -> String {
    let percent = x * 100.0;
    match percent {
        ..0.001 => "0 %".to_owned(),
        ..0.1 => format!("{percent:.3} %"),
        _ => format!("{percent:.1} %"),
    }
}

pub fn plural(n: usize, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

/// A list as JSON.
pub fn list<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    format!("[{}]", items.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_markup() {
        let name = "</script><b a='\"&\u{202e}\n\\";
        assert_eq!(html(name), "&lt;/script&gt;&lt;b a=&#39;&quot;&amp;\\u{202e}\\n\\");
        let quoted = json(name);
        assert!(!quoted.contains(['<', '>', '&', '\n', '\u{202e}']), "{quoted}");
        assert_eq!(quoted, "\"\\u003c/script\\u003e\\u003cb a='\\\"\\u0026\\\\u{202e}\\\\n\\\\\"");
        assert!(html(&"x".repeat(100_000)).len() < 1000);
    }

    #[test]
    fn numbers_have_three_digits() {
        let all = [0, 999, 1000, 12_345, 123_456_789, 5_000_000_000].map(amount);
        assert_eq!(all, ["0", "999", "1.00 k", "12.3 k", "123 M", "5.00 G"]);
        assert_eq!([0.0, 0.0005, 0.1234, 1.5].map(share), ["0 %", "0.050 %", "12.3 %", "150.0 %"]);
    }
}
