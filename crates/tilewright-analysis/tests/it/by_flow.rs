//! Pairs of functions whose outputs are, or are not, the same expressions of the inputs.

use tilewright_analysis::equivalence::by_flow;
use tilewright_ir::{Source, TensorFunc};
use tilewright_tvmscript::parse_module;

/// A function `f` of these parameters with this body.
fn func(params: &str, body: &str) -> TensorFunc {
    let mut text = format!("@T.prim_func\ndef f({params}):\n");
    for line in body.lines().filter(|l| !l.trim().is_empty()) {
        text += &format!("    {line}\n");
    }
    let module =
        parse_module(&Source::new("f.py", text)).unwrap_or_else(|e| panic!("{}", e.render()));
    module.tensor("f").expect("it is there").as_ref().clone()
}

#[track_caller]
fn check(params: &str, a: &str, b: &str, same: bool) {
    let (a, b) = (func(params, a), func(params, b));
    assert_eq!(by_flow(&a, &b), same);
    assert_eq!(by_flow(&b, &a), same);
    assert!(by_flow(&a, &a) || !same);
}

const TWO: &str = r#"A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")"#;

#[test]
fn memory_in_between_does_not_matter() {
    let a = r#"
n = T.int32()
t = T.alloc_buffer((n,), "float32")
for i in range(n):
    t[i] = A[i] * 2.0
for i in range(n):
    B[i] = t[i] + 1.0
"#;
    let b = r#"
n = T.int32()
for i in range(n):
    B[i] = A[i] * 2.0 + 1.0
"#;
    check(TWO, a, b, true);
    check(TWO, a, &b.replace("2.0", "3.0"), false);
    check(TWO, a, &b.replace("range(n)", "range(n - 1)"), false);
}

#[test]
fn tiles_that_make_their_padding_again() {
    let params = r#"A: T.Buffer((1000,), "int8"), B: T.Buffer((1000,), "int8")"#;
    let a = r#"
t = T.alloc_buffer((1004,), "int8")
for i in range(1004):
    t[i] = T.if_then_else(2 <= i and i < 1002, A[i - 2], T.int8(0))
for i, k in T.grid(1000, 5):
    with T.block("B"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            B[vi] = T.int8(0)
        B[vi] = B[vi] + t[vi + vk]
"#;
    let b = r#"
t = T.alloc_buffer((1004,), "int8")
for io in range(8):
    for i in range(132):
        if io * 128 + i < 1004:
            t[io * 128 + i] = T.int8(0)
    for i in range(132):
        if 2 <= io * 128 + i and io * 128 + i < 1002:
            t[io * 128 + i] = A[io * 128 + i - 2]
    for i in range(128):
        if io * 128 + i < 1000:
            B[io * 128 + i] = T.int8(0)
            for k in range(5):
                B[io * 128 + i] = B[io * 128 + i] + t[io * 128 + i + k]
"#;
    check(params, a, b, true);
    check(params, a, &b.replace("i - 2]", "i - 1]").replace("2 <= io", "1 <= io"), false);
    check(params, a, &b.replace("range(5)", "range(4)"), false);
    // The terms of the sum in another order.
    check(params, a, &b.replace("i + k]", "i + 4 - k]"), false);
}

#[test]
fn what_is_not_written_stays_what_it_was() {
    let params = r#"A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")"#;
    let a = "for i in range(5):\n    A[i] = A[i] + 1\nfor i in range(8):\n    B[i] = A[7 - i]";
    let b = "
for i in range(8):
    if i < 3:
        B[i] = A[7 - i]
for i in range(8):
    if i < 5:
        A[4 - i] = A[4 - i] + 1
for i in range(5):
    B[7 - i] = A[i]
";
    check(params, a, b, true);
    check(params, a, &b.replace("i < 3", "i < 2"), false);
    check(params, a, &b.replace("A[4 - i] + 1", "A[4 - i] + 2"), false);
}

#[test]
fn what_is_illegal_or_not_followed_is_not_called_equal() {
    let params = r#"A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")"#;
    for body in [
        // Out of range, unwritten, by data, divided by what may be zero, assumed, a broken promise.
        "for i in range(8):\n    B[i] = A[i + 1]",
        "t = T.alloc_buffer((8,), \"int32\")\nfor i in range(8):\n    B[i] = t[i]",
        "for i in range(8):\n    B[A[i]] = 1",
        "for i in range(8):\n    B[i] = A[i] // (i - 3)",
        "T.assume(A[0] == 0)\nfor i in range(8):\n    B[i] = A[0]",
        "for i in T.parallel(7):\n    B[i + 1] = B[i]",
        "for i in range(8):\n    B[i] = T.undef()",
    ] {
        let f = func(params, body);
        assert!(!by_flow(&f, &f), "{body}");
    }
}

#[test]
fn long_reductions_are_inductions() {
    let params = r#"A: T.Buffer((512, 512), "float32"), B: T.Buffer((512, 512), "float32"), C: T.Buffer((512, 512), "float32")"#;
    let a = "
for i, j in T.grid(512, 512):
    C[i, j] = T.float32(0)
for i, j, k in T.grid(512, 512, 512):
    C[i, j] = C[i, j] + A[i, k] * B[k, j]
";
    let b = "
for io, jo in T.grid(8, 16):
    t = T.alloc_buffer((64, 32), \"float32\")
    for i, j in T.grid(64, 32):
        t[i, j] = T.float32(0)
    for ko, i, ki, j in T.grid(64, 64, 8, 32):
        t[i, j] = t[i, j] + A[io * 64 + i, ko * 8 + ki] * B[ko * 8 + ki, jo * 32 + j]
    for i, j in T.grid(64, 32):
        C[io * 64 + i, jo * 32 + j] = t[i, j]
";
    check(params, a, b, true);
    check(params, a, &b.replace("B[ko * 8 + ki", "B[ko * 8 + 7 - ki"), false);
}
