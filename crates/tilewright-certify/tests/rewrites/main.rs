//! Certificates of rewrites, and faults that a pass could have: no certificate is found of those, and one of
//! the right rewrite is refused for the wrong text.

mod cases;

use tilewright_certify::{certify, tree};
use tilewright_check::check;
use tilewright_ir::Source;
use tilewright_tvmscript::parse_module;

use crate::cases::{REWRITES, Rewrite};

/// The tree of a script.
fn written(script: &str) -> Result<String, String> {
    let bare = script.trim_start().starts_with("def ");
    let script = format!("{}{}", if bare { "@T.prim_func\n" } else { "" }, script.trim_start());
    let module = parse_module(&Source::new("rewrite.py", script)).map_err(|e| e.to_string())?;
    tree(&module)
}

/// A certificate that two scripts compute the same.
fn certified(before: &str, after: &str, layouts: &[&str]) -> Result<String, String> {
    let layouts: Vec<String> = layouts.iter().map(|l| (*l).to_owned()).collect();
    certify(&written(before)?, &written(after)?, &layouts)
}

fn certificate(r: &Rewrite, after: &str) -> Result<String, String> {
    certified(r.before, after, r.layouts)
}

/// The text of a wrong pass: the last store to a buffer is another one.
fn with_fault(r: &Rewrite, store: &str) -> String {
    let mut lines: Vec<String> = r.after.trim_end().lines().map(str::to_owned).collect();
    let to = lines.iter().rposition(|l| l.trim_start().starts_with(&store[..2]));
    let line = &mut lines[to.expect("a store")];
    let indent = line.len() - line.trim_start().len();
    *line = format!("{}{store}", " ".repeat(indent));
    lines.join("\n")
}

#[test]
fn right_rewrites_have_certificates() {
    for r in REWRITES {
        let text = certificate(r, r.after).unwrap_or_else(|e| panic!("{}: {e}", r.what));
        let accepted = check(&text).unwrap_or_else(|e| panic!("{}: {e:?}", r.what));
        assert!(accepted.steps > 0 && accepted.rewrites.len() == 1, "{}", r.what);
    }
}

#[test]
fn faults_of_passes_have_none() {
    let mut forged_ones = 0;
    for r in REWRITES {
        let right = certificate(r, r.after).expect("it is right");
        for fault in r.faults {
            let wrong = with_fault(r, fault);
            assert!(certificate(r, &wrong).is_err(), "{}: {fault}", r.what);
            // Nor does the certificate of the right text hold for the wrong one.
            let Ok(other) = written(&wrong) else { continue };
            let forged = right.replace(&written(r.after).expect("it is right"), &other);
            assert_ne!(forged, right);
            assert!(check(&forged).is_err(), "{}: {fault}", r.what);
            forged_ones += 1;
        }
    }
    // Of some faults there is no tree.
    assert!(forged_ones > 30, "{forged_ones}");
}

/// Every number in the stores of the second text, one greater: another function, or one that accesses what does
/// not exist.
#[test]
fn another_number_in_the_text_is_refused() {
    let mut refused = 0;
    for r in REWRITES {
        let right = certificate(r, r.after).expect("it is right");
        let start = right.match_indices("(function ").nth(1).expect("the second tree").0;
        let end = right.find("(because\n").expect("the reasons");
        for (at, digit) in right[start..end].char_indices().filter(|(_, c)| c.is_ascii_digit()) {
            let at = start + at;
            let is_part = |c: char| c.is_alphanumeric() || "._".contains(c);
            if right[..at].ends_with(is_part) || right[at + 1..].starts_with(is_part) {
                continue;
            }
            let other = digit.to_digit(10).map_or(0, |d| d + 1);
            let changed = format!("{}{other}{}", &right[..at], &right[at + 1..]);
            // Memory that is too large computes the same, and so do loops that are too long around a guard.
            let line = right[..at].rsplit('\n').next().unwrap_or_default();
            if !line.trim_start().starts_with("(store") {
                continue;
            }
            let line = changed.lines().nth(right[..at].lines().count() - 1).unwrap_or_default();
            let (fault, why) = check(&changed).expect_err(line);
            assert!(fault >= 1 && fault <= changed.lines().count(), "{why}");
            refused += 1;
        }
    }
    assert!(refused > 12, "{refused}");
}

/// Reasons and steps that are left out or changed places are refused with a line of the file.
#[test]
fn missing_lines_are_refused() {
    for r in REWRITES {
        let right = certificate(r, r.after).expect("it is right");
        let lines: Vec<&str> = right.lines().collect();
        let because = lines.iter().position(|l| *l == "(because").expect("the reasons");
        for leave in because + 1..lines.len() {
            let mut fewer = lines.clone();
            fewer.remove(leave);
            let (fault, why) = check(&fewer.join("\n")).expect_err(lines[leave]);
            assert!(fault <= fewer.len(), "{why}");
        }
    }
}

/// Zeros that nothing says, other numbers, and zeros somewhere else do not let a guard go.
#[test]
fn an_assumption_has_to_say_it() {
    let r = &REWRITES[1];
    let right = certificate(r, r.after).expect("it is right");
    let assumed = "T.assume(io * 4 + ii < 14 or A[i, io, ii] == T.float32(0.0))";
    for other in [
        "pass",
        "T.assume(io * 4 + ii < 14 or A[i, io, ii] == T.float32(1.0))",
        "T.assume(io * 4 + ii < 15 or A[i, io, ii] == T.float32(0.0))",
        "T.assume(io * 4 + ii < 14 or A[i, ii, io] == T.float32(0.0))",
        "T.assume(io * 4 + ii < 14 or A[i, io, ii] <= T.float32(0.0))",
    ] {
        let texts = [r.before, r.after].map(|t| t.trim().replace(assumed, other));
        assert!(certified(&texts[0], &texts[1], &[]).is_err(), "{other}");
        let mut forged = right.clone();
        for (text, right) in texts.iter().zip([r.before, r.after]) {
            let [right, other] = [right, text].map(|t| written(t).expect("a tree"));
            assert_ne!(right, other);
            forged = forged.replace(&right, &other);
        }
        assert!(check(&forged).is_err(), "{other}");
    }
}

#[test]
fn a_maximum_has_to_begin_with_what_is_passed_over() {
    let with = |first: i64, most: i64| {
        format!(
            "
def f(A: T.Buffer((8,), \"int32\"), B: T.Buffer((1,), \"int32\")):
    for i in range(8):
        T.assume(i < 5 or A[i] == -9)
    B[0] = {first}
    for i in range({most}):
        B[0] = T.max(B[0], A[i])
"
        )
    };
    let rewrite = |first| certified(&with(first, 5), &with(first, 8), &[]);
    assert!(check(&rewrite(-9).expect("it begins with it")).is_ok());
    assert!(rewrite(-10).is_err(), "the padding is greater");
}

#[test]
fn rewrites_of_one_function_are_a_chain() {
    let r = &REWRITES[2];
    let (first, second) =
        (certificate(r, r.after).expect("right"), certificate(r, r.before).expect("right"));
    // From the end of the first rewrite nothing leads to the start of the second one.
    let (_, why) = check(&format!("{first}{second}")).expect_err("no chain");
    assert!(why.contains("is not as the rewrite before left it"), "{why}");
    let back = certified(r.after, r.after, &[]).expect("right");
    assert_eq!(check(&format!("{first}{back}")).expect("a chain").rewrites.len(), 2);
}

#[test]
fn a_map_that_is_not_injective_is_refused() {
    let r = &REWRITES[7];
    let wrong = "(layout 0 (i) (0 ((i + 3) % 8)) (o k) ((((o * 8) + k) - 3)))";
    let why = certified(r.before, r.after, &[wrong, r.layouts[1]]);
    let why = why.expect_err("it is wrong");
    assert!(why.contains("layout 0"), "{why}");
    // A name that stands for two axes is none.
    let twice = "(layout 0 (i) (i 0) (o o) ((o * 8)))";
    let why = certified(r.before, r.after, &[twice, r.layouts[1]]);
    assert!(why.expect_err("it is wrong").contains("there twice"));
    let why = certified(r.before, r.after, &r.layouts[..1]);
    assert!(why.expect_err("it has no map").contains("parameter 1 has other axes and no map"));
}

/// Whatever a file holds, the checker ends with an answer.
#[test]
fn files_of_any_content_get_an_answer() {
    let mut state = 38u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below.max(1)
    };
    const WORDS: [&str; 12] = [
        "(",
        ")",
        "[",
        ":",
        "-",
        "0",
        "99999999999999999999999999999999999999",
        "load",
        "i'",
        "\n",
        "for",
        "equal",
    ];
    for r in REWRITES {
        let right = certificate(r, r.after).expect("it is right");
        for _ in 0..150 {
            let mut text = right.clone();
            for _ in 0..1 + random(3) {
                let (at, end) = (random(text.len()), random(6));
                let end = (at + end).min(text.len());
                text.replace_range(at..end, WORDS[random(WORDS.len())]);
            }
            if let Err((fault, why)) = check(&text) {
                assert!(fault <= text.lines().count() + 1, "{why}");
            }
        }
    }
    let right = certificate(&REWRITES[2], REWRITES[2].after).expect("it is right");
    let store = "(store B (i) (load A i))";
    assert!(right.contains(store));
    for (open, close) in
        [("(- ", ")"), ("(for i 0 1 ", ")"), ("(if (true) (", ") ())"), ("(in 0 ", ")")]
    {
        for many in [290, 590, 100_000] {
            let deep = format!("{}{store}{}", open.repeat(many), close.repeat(many));
            let text = right.replacen(store, &deep, 1);
            assert!(check(&text).is_err() || open.starts_with("(if") && many < 300);
            let steps = format!("(steps\n{deep}\n");
            assert!(check(&right.replacen("(steps\n", &steps, 1)).is_err());
        }
    }
    let long = format!("{}\n    B[0] = A[0]{}", REWRITES[2].after.trim(), " + A[0]".repeat(5_000));
    assert!(certified(&long, &long, &[]).is_err());
}
