//! Hostile and unusual sizes: refused with a place, or handled within the stack of a thread.

use tilewright_ir::{Module, Result, Source, equal};
use tilewright_tvmscript::{parse_module, print_module};

fn parse(text: impl Into<String>) -> Result<Module> {
    parse_module(&Source::new("a.py", text))
}

/// Reads, prints, reads again and compares.
fn round_trip(text: String) {
    let module = parse(text).unwrap_or_else(|e| panic!("{}", e.render()));
    let again = parse(print_module(&module)).unwrap_or_else(|e| panic!("{}", e.render()));
    if let Err(d) = equal::modules(&module, &again, &equal::Equality::default()) {
        panic!("{d}");
    }
}

fn func(body: &str) -> String {
    format!("@T.prim_func\ndef f(A: T.Buffer((16,), \"int32\"), n: T.int32):\n{body}")
}

/// The largest size that is accepted, by doubling and halving.
fn largest(text: impl Fn(usize) -> String) -> usize {
    let fits = |n: usize| parse(text(n)).is_ok();
    let mut bad = 1;
    while fits(bad) {
        bad *= 2;
        assert!(bad < 1 << 20, "nothing is refused");
    }
    let mut good = bad / 2;
    while bad - good > 1 {
        let middle = (good + bad) / 2;
        if fits(middle) { good = middle } else { bad = middle }
    }
    good
}

/// Whatever is accepted can be printed, compared and dropped on the small stack of a test; half of
/// it reads back, although the printed text may nest deeper than the original.
fn check_limit(at_least: usize, text: impl Fn(usize) -> String) {
    let n = largest(&text);
    assert!(n >= at_least, "only {n} are accepted");
    if let Ok(module) = parse(text(n)) {
        assert!(print_module(&module).len() > n);
        assert!(equal::modules(&module, &module, &equal::Equality::default()).is_ok());
    }
    round_trip(text(n / 2));
    assert!(parse(text(20 * n)).is_err());
}

#[test]
fn chains_of_operators() {
    check_limit(500, |n| func(&format!("    A[0] = n{}\n", " + n".repeat(n))));
    check_limit(250, |n| func(&format!("    A[0] = n{}\n", " - (n".repeat(n) + &")".repeat(n))));
}

#[test]
fn nested_calls_and_brackets() {
    check_limit(200, |n| {
        func(&format!("    A[0] = {}n{}\n", "T.max(n, ".repeat(n), ")".repeat(n)))
    });
    check_limit(200, |n| func(&format!("    A[0] = {}n{}\n", "A[".repeat(n), "]".repeat(n))));
    check_limit(200, |n| func(&format!("    A[0] = {}n\n", "-".repeat(n))));
    check_limit(200, |n| func(&format!("    T.assume({}n == 0)\n", "not ".repeat(n))));
}

#[test]
fn nested_statements() {
    let indented = |n: usize, line: &str, last: &str| -> String {
        let lines: String = (0..n).map(|i| format!("{}{line}\n", " ".repeat(i + 4))).collect();
        func(&format!("{lines}{}{last}\n", " ".repeat(n + 4)))
    };
    check_limit(90, |n| indented(n, "if n > 0:", "A[0] = 1"));
    check_limit(90, |n| indented(n, "for i in range(4):", "A[0] = 1"));
    check_limit(45, |n| indented(n, "with T.block(\"b\"):", "A[0] = 1"));
}

#[test]
fn bindings_one_after_the_other() {
    check_limit(250, |n| {
        let lines: String = (0..n).map(|i| format!("    x{i} = n + {i}\n")).collect();
        func(&format!("{lines}    A[0] = x0\n"))
    });
    check_limit(250, |n| {
        let vars: Vec<String> = (0..n).map(|i| format!("i{i}")).collect();
        let ones = vec!["1"; n].join(", ");
        func(&format!("    for {} in T.grid({ones}):\n        A[0] = 1\n", vars.join(", ")))
    });
    check_limit(90, |n| {
        let arms: String =
            (0..n).map(|i| format!("    elif n == {i}:\n        A[0] = {i}\n")).collect();
        func(&format!("    if n < 0:\n        A[0] = 1\n{arms}"))
    });
}

#[test]
fn nested_graph_values() {
    check_limit(100, |n| {
        let value = format!("{}x{}", "R.nn.relu(".repeat(n), ")".repeat(n));
        format!("@R.function\ndef f(x: R.Tensor((4,), \"float32\")):\n    return {value}\n")
    });
    check_limit(100, |n| {
        let list = "[".repeat(n) + "1" + &"]".repeat(n);
        format!("@R.function\ndef f():\n    R.func_attr({{\"a\": {list}}})\n    return ()\n")
    });
}

#[test]
fn long_texts_are_not_deep_texts() {
    let stores: String =
        (0..20_000).map(|i| format!("    A[{}] = {i} + n * 2\n", i % 16)).collect();
    round_trip(func(&stores));
    let bindings: String =
        (0..3000).map(|i| format!("    y{} = R.nn.relu(y{i})\n", i + 1)).collect();
    round_trip(format!(
        "@R.function\ndef f(y0: R.Tensor((4,), \"float32\")):\n{bindings}    return y3000\n"
    ));
}

#[test]
fn copies_do_not_multiply() {
    // Each level of a chained comparison writes its middle twice.
    let nested = |n: usize| {
        let text = (0..n).fold("n".to_owned(), |t, _| format!("T.Cast(\"int32\", 0 <= {t} < 9)"));
        func(&format!("    A[0] = {text}\n"))
    };
    assert!(parse(nested(3)).is_ok());
    let error = parse(nested(60)).map_or_else(|e| e.to_string(), |_| String::new());
    assert_eq!(error, "chained comparisons are nested too deeply");
}
