//! Diagnostics as comments below the lines that they point to.

use std::collections::BTreeMap;

/// How a comment begins that shows a diagnostic, or a place of one.
const STARTS: [&str; 3] = ["error: ", "remark: ", "here: "];

/// A text without diagnostics.
pub fn strip(text: &str) -> String {
    let mut kept = String::new();
    let mut inside = false;
    for line in text.lines() {
        let comment = line.trim_start();
        let starts = comment
            .strip_prefix('#')
            .map(|rest| rest.trim_start_matches('^'))
            .is_some_and(|rest| {
                STARTS.iter().any(|s| rest.strip_prefix(' ').is_some_and(|r| r.starts_with(s)))
            });
        let goes_on = comment.starts_with("# note: ") || comment.starts_with("# help: ");
        inside = starts || (inside && goes_on);
        if !inside {
            kept += line;
            kept.push('\n');
        }
    }
    kept
}

/// A text with the errors and remarks that a command printed about it.
pub fn annotate(text: &str, printed: &str) -> Result<String, String> {
    // Comments by the line that they follow; line 0 stands for no place.
    let mut comments: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let lines: Vec<&str> = printed.lines().collect();
    let starts = |line: &str| STARTS[..2].iter().any(|s| line.starts_with(s));
    let first = lines.iter().position(|line| starts(line)).unwrap_or(lines.len());
    for diagnostic in lines[first..].chunk_by(|_, next| !starts(next)) {
        place(diagnostic, &mut comments)?;
    }
    let mut annotated = String::new();
    for (i, line) in text.lines().enumerate() {
        annotated += line;
        annotated.push('\n');
        for comment in comments.remove(&(i + 1)).into_iter().flatten() {
            annotated += &comment;
            annotated.push('\n');
        }
    }
    // Without a place, or with one past the end.
    for comment in comments.into_values().flatten() {
        annotated += &comment;
        annotated.push('\n');
    }
    Ok(annotated)
}

/// The comments of one diagnostic, by the line that they follow.
fn place(printed: &[&str], comments: &mut BTreeMap<usize, Vec<String>>) -> Result<(), String> {
    let mut lines = printed.iter();
    let message = lines.next().copied().unwrap_or_default();
    let mut first: Option<(usize, usize)> = None;
    let mut rest = Vec::new();
    while let Some(line) = lines.next() {
        let Some(place) = line.strip_prefix("  --> ") else {
            rest.push(line);
            continue;
        };
        let bad = || format!("a place that cannot be read: {line}");
        let mut parts = place.rsplitn(3, ':');
        let mut number = || parts.next().and_then(|part| part.parse::<usize>().ok());
        let (column, row) = (number().ok_or_else(bad)?, number().ok_or_else(bad)?);
        let _source = lines.next();
        let carets = lines.next().and_then(|line| line.split_once("| ")).ok_or_else(bad)?.1;
        let carets = carets.trim_start();
        let width = carets.chars().take_while(|c| *c == '^').count();
        let label = carets.trim_start_matches('^').trim();
        let text = match (label, first) {
            ("", None) => message.to_owned(),
            (label, _) => format!("here: {label}"),
        };
        let mark = format!("#{}", "^".repeat(width.saturating_sub(1)));
        let comment = format!("{}{mark} {text}", " ".repeat(column - 1));
        comments.entry(row).or_default().push(comment);
        first = first.or(Some((row, column)));
    }
    let (row, column) = first.unwrap_or((0, 1));
    let indent = " ".repeat(column - 1);
    let at = comments.entry(row).or_default();
    if !at.last().is_some_and(|c| c.ends_with(&format!(" {message}"))) {
        at.push(format!("{indent}# {message}"));
    }
    at.extend(rest.iter().map(|line| format!("{indent}# {line}")));
    Ok(())
}

/// A test of this module.
pub fn diagnostics_go_in_and_out() {
    let text = "def f():\n    B[0] = C[0]\n    pass\n";
    let printed = "error: unknown name `C`\n  --> <stdin>:2:12\n   2 |     B[0] = C[0]\n     \
                   |            ^^^^\n  --> <stdin>:1:1\n   1 | def f():\n     | ^ in here\n\
                   note: there is only B\nhelp: define it\n";
    let annotated = annotate(text, printed).expect("a diagnostic");
    assert_eq!(
        annotated,
        "def f():\n# here: in here\n    B[0] = C[0]\n           #^^^ error: unknown name `C`\n\
         \x20          # note: there is only B\n           # help: define it\n    pass\n"
    );
    assert_eq!(strip(&annotated), text);
    let without = annotate("x\n", "error: no place\nhelp: none\n").expect("a diagnostic");
    assert_eq!(without, "x\n# error: no place\n# help: none\n");
    assert_eq!(strip(&without), "x\n");
    let two = "note: random\nremark: `x` stays\n  --> <stdin>:1:1\n   1 | x\n     | ^\nnote: why\n\
               remark: all of it\nnote: because\n";
    let annotated = annotate("x\ny\n", two).expect("remarks");
    assert_eq!(
        annotated,
        "x\n# remark: `x` stays\n# note: why\ny\n# remark: all of it\n# note: because\n"
    );
    assert_eq!(strip(&annotated), "x\ny\n");
}
