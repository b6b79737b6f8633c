//! Every error that a text can cause, as its user sees it.

use expect_test::{Expect, expect};
use tilewright_ir::{Source, Tensor};
use tilewright_tvmscript::{ConstTable, parse_module, parse_module_with};

mod graph;
mod tensor;
mod types;

/// The errors of several texts, one after the other.
fn check<S: AsRef<str>>(texts: impl IntoIterator<Item = S>, expected: Expect) {
    let render = |text: S| match parse_module(&Source::new("a.py", text.as_ref())) {
        Ok(_) => format!("no error:\n{}\n", text.as_ref()),
        Err(e) => e.render(),
    };
    let errors: Vec<String> = texts.into_iter().map(render).collect();
    expected.assert_eq(&errors.join("\n"));
}

/// `head`, and the lines indented by `width` below it.
fn below(head: &str, width: usize, lines: &str) -> String {
    let indented = lines.lines().map(|l| format!("{}{l}\n", " ".repeat(width)));
    head.to_owned() + &indented.collect::<String>()
}

/// Bodies of a tensor function of `A: float32[4, 4]`, `J: int32[16]`, `n: int32`, `x: float32` and
/// a handle.
fn bodies(lines: &[&str], expected: Expect) {
    let head = "@T.prim_func\ndef f(A: T.Buffer((4, 4), \"float32\"), J: T.Buffer((16,), \"int32\"), \
                n: T.int32, x: T.float32, h: T.handle):\n";
    check(lines.iter().map(|l| below(head, 4, l)), expected);
}

/// Blocks in a loop over `i` in such a function.
fn blocks(lines: &[&str], expected: Expect) {
    let head = "@T.prim_func\ndef f(A: T.Buffer((4, 4), \"float32\"), n: T.int32):\n    \
                for i in range(4):\n        with T.block(\"b\"):\n";
    check(lines.iter().map(|l| below(head, 12, l)), expected);
}

/// Parameters of a tensor function.
fn parameters(params: &[&str], expected: Expect) {
    let text = |p: &&str| format!("@T.prim_func\ndef f({p}):\n    pass\n");
    check(params.iter().map(text), expected);
}

/// Bodies of a graph function of `x: float32[4]`, beside a tensor function `copy`.
fn graphs(lines: &[&str], expected: Expect) {
    let head = "@I.ir_module\nclass M:\n    @T.prim_func\n    \
                def copy(A: T.Buffer((4,), \"float32\"), B: T.Buffer((4,), \"float32\")):\n        \
                B[0] = A[0]\n    @R.function\n    def main(x: R.Tensor((4,), \"float32\")):\n        \
                cls = M\n";
    check(lines.iter().map(|l| below(head, 8, l)), expected);
}

#[test]
fn python_syntax() {
    check(
        [
            "x = (1,\n",
            "x = 1]\n",
            "x = 'abc\n",
            "@T.prim_func\ndef f(:\n    pass\n",
            "@T.prim_func\ndef f()\n    pass\n",
            "@T.prim_func\ndef f():\n    pass\n  pass\n",
        ],
        expect![[r#"
            error: `(` is never closed
              --> a.py:1:5
               1 | x = (1,
                 |     ^

            error: `]` closes nothing
              --> a.py:1:6
               1 | x = 1]
                 |      ^

            error: the string is never closed
              --> a.py:1:5
               1 | x = 'abc
                 |     ^

            error: `(` is never closed
              --> a.py:2:6
               2 | def f(:
                 |      ^

            error: expected `:`, found newline
              --> a.py:2:8
               2 | def f()
                 |        ^

            error: unindent does not match any outer indentation level
              --> a.py:4:1
               4 |   pass
                 | ^^
        "#]],
    );
    bodies(
        &["A[0, 0] = T.if_then_else(n < 3 && n > 1, 1.0, 2.0)", "A[0, 0] = f\"{n}\""],
        expect![[r#"
            error: expected an expression
              --> a.py:3:37
               3 |     A[0, 0] = T.if_then_else(n < 3 && n > 1, 1.0, 2.0)
                 |                                     ^

            error: formatted strings are not part of TVMScript
              --> a.py:3:15
               3 |     A[0, 0] = f"{n}"
                 |               ^
        "#]],
    );
}

#[test]
fn modules_and_functions() {
    check(
        [
            "",
            "x = 1\n",
            "class M:\n    pass\n",
            "@I.ir_module\nclass M:\n    x = 1\n",
            "@I.ir_module\nclass M:\n    I.module_global_infos({})\n",
            "@I.ir_module\nclass M:\n    pass\n@I.ir_module\nclass N:\n    pass\n",
            "def f():\n    pass\n",
            "@T.primfunc\ndef f():\n    pass\n",
            "@something.else_\ndef f():\n    pass\n",
            "@T.prim_func\n@T.prim_func\ndef f():\n    pass\n",
            "@T.prim_func(True)\ndef f():\n    pass\n",
            "@T.prim_func(private=1)\ndef f():\n    pass\n",
            "@T.prim_func(public=True)\ndef f():\n    pass\n",
            "@R.function(pure=False)\ndef f():\n    return ()\n",
            "@T.prim_func\nasync def f():\n    pass\n",
            "@T.prim_func\ndef f():\n    pass\n@T.prim_func\ndef f():\n    pass\n",
        ],
        expect![[r#"
            error: the text has no module and no function
              --> a.py:1:1
               1 |
                 | ^
            help: write `@T.prim_func` or `@R.function` above a function

            error: expected a module or a function
              --> a.py:1:1
               1 | x = 1
                 | ^^^^^
            help: write `@I.ir_module` above a class, `@T.prim_func` or `@R.function` above a function

            error: the class `M` is not a module
              --> a.py:1:7
               1 | class M:
                 |       ^
            help: write `@I.ir_module` above it

            error: expected a function
              --> a.py:3:5
               3 |     x = 1
                 |     ^^^^^

            error: `I.module_global_infos` is not supported
              --> a.py:3:5
               3 |     I.module_global_infos({})
                 |     ^^^^^^^^^^^^^^^^^^^^^^^^^

            error: the text has two modules
              --> a.py:5:7
               5 | class N:
                 |       ^

            error: the function `f` has no decorator
              --> a.py:1:5
               1 | def f():
                 |     ^
            help: write `@T.prim_func` or `@R.function` above it

            error: unknown decorator
              --> a.py:1:2
               1 | @T.primfunc
                 |  ^^^^^^^^^^
            help: did you mean `@T.prim_func`?

            error: unknown decorator
              --> a.py:1:2
               1 | @something.else_
                 |  ^^^^^^^^^^^^^^^
            help: write `@T.prim_func` or `@R.function`

            error: a function has one decorator
              --> a.py:2:1
               2 | @T.prim_func
                 | ^^^^^^^^^^^^

            error: a decorator takes named arguments
              --> a.py:1:14
               1 | @T.prim_func(True)
                 |              ^^^^

            error: expected True or False
              --> a.py:1:22
               1 | @T.prim_func(private=1)
                 |                      ^

            error: unknown argument of a decorator
              --> a.py:1:14
               1 | @T.prim_func(public=True)
                 |              ^^^^^^^^^^^

            error: impure graph functions are not supported
              --> a.py:1:13
               1 | @R.function(pure=False)
                 |             ^^^^^^^^^^

            error: functions are not `async`
              --> a.py:2:11
               2 | async def f():
                 |           ^

            error: the function `f` is defined twice
              --> a.py:5:5
               5 | def f():
                 |     ^
        "#]],
    );
}

#[test]
fn values_in_wrong_places() {
    bodies(
        &[
            "J[0] = T.min(T.call_extern(\"void\", \"f\"), T.call_extern(\"void\", \"f\"))",
            "T.assume(h < h)",
            "T.assume((n < 1) + (n < 2) < 1)",
            "T.call_extern(\"int32\", n)",
            "T.func_attr({**n})",
            "T.func_attr({\"a\": 99999999999999999999})",
            "T.func_attr({\"map\": T.index_map(3)})",
            "T.buffer_store(A, 1.0, [0])",
            "n.x = 3",
            "J[0] = T.Ramp(n, 1, 70000)",
            "J[0] = T.Cast(n, 1)",
            "J[0] = (n, n)",
            "J[0] = T.min(n, J[0:4:])",
            "J[0] = +\"a\"",
            "J[0] = n.x",
            "J[0] = float(\"many\")",
            "J[0] = float(n)",
            "for i in range(0.5, 4):\n    pass",
            "for i in range(T.Broadcast(4, 4)):\n    pass",
            "with T.block(\"b\"), T.init():\n    pass",
            "J[0] = T.void(3)",
            "J[0] = T.int32x4(T.Broadcast(1, 8))",
            "J[0] = T.Let(n, where={**n})",
            "J[0] = T.Let(n, where={1: n})",
        ],
        expect![[r#"
            error: `T.min` does not take void
              --> a.py:3:12
               3 |     J[0] = T.min(T.call_extern("void", "f"), T.call_extern("void", "f"))
                 |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            help: use a value

            error: `<` does not take handle
              --> a.py:3:14
               3 |     T.assume(h < h)
                 |              ^^^^^
            help: use a number

            error: `+` does not take bool
              --> a.py:3:14
               3 |     T.assume((n < 1) + (n < 2) < 1)
                 |              ^^^^^^^^^^^^^^^^^
            help: convert it with T.Cast("int32", ...) first

            error: expected a string
              --> a.py:3:28
               3 |     T.call_extern("int32", n)
                 |                            ^

            error: expected `"key": value`
              --> a.py:3:20
               3 |     T.func_attr({**n})
                 |                    ^

            error: the number does not fit in 64 bits
              --> a.py:3:23
               3 |     T.func_attr({"a": 99999999999999999999})
                 |                       ^^^^^^^^^^^^^^^^^^^^

            error: expected `T.index_map(lambda i, ...: (...))`
              --> a.py:3:25
               3 |     T.func_attr({"map": T.index_map(3)})
                 |                         ^^^^^^^^^^^^^^

            error: expected 2 indices
              --> a.py:3:28
               3 |     T.buffer_store(A, 1.0, [0])
                 |                            ^^^

            error: expected a name or an element of a buffer
              --> a.py:3:5
               3 |     n.x = 3
                 |     ^^^

            error: 70000 is out of range here
              --> a.py:3:25
               3 |     J[0] = T.Ramp(n, 1, 70000)
                 |                         ^^^^^

            error: expected a data type, such as "float32"
              --> a.py:3:19
               3 |     J[0] = T.Cast(n, 1)
                 |                   ^

            error: expected an expression, found a tuple
              --> a.py:3:12
               3 |     J[0] = (n, n)
                 |            ^^^^^^

            error: expected int32, found int32x4
              --> a.py:3:12
               3 |     J[0] = T.min(n, J[0:4:])
                 |            ^^^^^^^^^^^^^^^^^

            error: this operator does not take a string
              --> a.py:3:12
               3 |     J[0] = +"a"
                 |            ^^^^

            error: unknown attribute `x`
              --> a.py:3:12
               3 |     J[0] = n.x
                 |            ^^^

            error: expected "inf" or "nan"
              --> a.py:3:18
               3 |     J[0] = float("many")
                 |                  ^^^^^^

            error: expected a number, found an expression of type int32
              --> a.py:3:12
               3 |     J[0] = float(n)
                 |            ^^^^^^^^

            error: expected integers, found float32
              --> a.py:3:20
               3 |     for i in range(0.5, 4):
                 |                    ^^^^^^

            error: the bounds of a loop are scalars
              --> a.py:3:20
               3 |     for i in range(T.Broadcast(4, 4)):
                 |                    ^^^^^^^^^^^^^^^^^

            error: a block is the last item of `with`
              --> a.py:3:5
               3 |     with T.block("b"), T.init():
                 |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^

            error: there is no value of type void
              --> a.py:3:12
               3 |     J[0] = T.void(3)
                 |            ^^^^^^^^^

            error: expected 4 lanes, found 8
              --> a.py:3:12
               3 |     J[0] = T.int32x4(T.Broadcast(1, 8))
                 |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^

            error: expected `x: value`
              --> a.py:3:12
               3 |     J[0] = T.Let(n, where={**n})
                 |            ^^^^^^^^^^^^^^^^^^^^^

            error: expected a variable
              --> a.py:3:28
               3 |     J[0] = T.Let(n, where={1: n})
                 |                            ^
        "#]],
    );
    graphs(
        &[
            "x[0]",
            "with R.dataflow():\n    R.output(R.add(x, x))",
            "y = R.call()",
            "y: R.Tensor((x,), \"float32\") = x",
            "y: R.Tensor((cls,), \"float32\") = x",
        ],
        expect![[r#"
            error: expected a binding
              --> a.py:9:9
               9 |         x[0]
                 |         ^^^^

            error: expected a variable
              --> a.py:10:22
              10 |             R.output(R.add(x, x))
                 |                      ^^^^^^^^^^^

            error: expected the name of an operator
              --> a.py:9:13
               9 |         y = R.call()
                 |             ^^^^^^^^

            error: `x` is a tensor, not a scalar expression
              --> a.py:9:22
               9 |         y: R.Tensor((x,), "float32") = x
                 |                      ^

            error: `cls` is the module
              --> a.py:9:22
               9 |         y: R.Tensor((cls,), "float32") = x
                 |                      ^^^
        "#]],
    );
}

#[test]
fn depth_and_size() {
    let chain = format!("J[0] = (n\n{})", "    + n\n".repeat(1000));
    let lets: String = (0..400).map(|i| format!("x{i} = n\n")).collect();
    let copies = (0..6).fold("n".to_owned(), |t, _| format!("T.Cast(\"int32\", 0 < {t} < 1)"));
    bodies(
        &[&chain, &lets, &format!("J[0] = {copies}")],
        expect![[r#"
            error: the expression is nested too deeply
              --> a.py:800:9
             800 |         + n
                 |         ^
            note: at most 800 nested brackets and chained operators are allowed

            error: statements are nested too deeply
              --> a.py:303:5
             303 |     x300 = n
                 |     ^^^^^^^^
            note: at most 300 loops, conditions, blocks and bindings may be around each other

            error: chained comparisons are nested too deeply
              --> a.py:3:108
               3 | ...  J[0] = T.Cast("int32", 0 < T.Cast("int32", 0 < T.Cast("int32", 0 < T.Cast("int32", 0 < T.Cast("int32", 0 < T.Cast("int32", 0 < n < 1) < 1) < 1) < 1) < 1) < 1)
                 |                                                                                                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        "#]],
    );
}

#[test]
fn a_table_of_constants() {
    let text = "@R.function\ndef f():\n    return R.const_ref(\"c\", R.Tensor((3,), \"int8\"))\n";
    let mut table = ConstTable::new();
    table.insert("c", Tensor::from_slice(&[2], &[1i8, 2]).unwrap_or_else(|e| panic!("{e}")));
    let e = parse_module_with(&Source::new("a.py", text), &table);
    expect![[r#"
        error: the constant `c` is a int8 tensor of shape [2]
          --> a.py:3:29
           3 |     return R.const_ref("c", R.Tensor((3,), "int8"))
             |                             ^^^^^^^^^^^^^^^^^^^^^^
    "#]]
    .assert_eq(&e.map_or_else(|e| e.render(), |_| String::new()));
}
