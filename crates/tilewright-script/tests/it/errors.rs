//! Every error that a text can cause, as its user sees it.

use expect_test::{Expect, expect};
use tilewright_ir::{Source, Tensor};
use tilewright_script::{ConstTable, parse_expr, parse_module, parse_module_with};

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
fn types_of_parameters() {
    parameters(
        &[
            "A",
            "A: T.Bufer((4,))",
            "A: int",
            "A: T.Buffer",
            "A: T.Buffer(dtype=\"float32\")",
            "A: T.Buffer((4,), \"float33\")",
            "A: T.Buffer((4.5,), \"float32\")",
            "A: T.Buffer((4,), \"float32\", color=3)",
            "A: T.Buffer((4,), \"float32\", strides=(1, 2))",
            "A: T.Buffer((4,), \"float32\", buffer_type=\"auto\")",
            "A: T.Buffer((\"n +\",), \"float32\")",
            "n: T.int32 = 3",
            "*args",
        ],
        expect![[r#"
            error: the parameter `A` needs a type
              --> a.py:2:7
               2 | def f(A):
                 |       ^
            help: write `A: T.Buffer((16,), "float32")` or `A: T.int32`

            error: expected the type of a parameter
              --> a.py:2:10
               2 | def f(A: T.Bufer((4,))):
                 |          ^^^^^^^^^^^^^
            help: write T.Buffer(shape, dtype), T.handle, or a type such as T.int32

            error: expected the type of a parameter
              --> a.py:2:10
               2 | def f(A: int):
                 |          ^^^
            help: write T.Buffer(shape, dtype), T.handle, or a type such as T.int32

            error: expected `T.Buffer(shape, dtype)`
              --> a.py:2:10
               2 | def f(A: T.Buffer):
                 |          ^^^^^^^^

            error: `T.Buffer` needs the argument `shape`
              --> a.py:2:10
               2 | def f(A: T.Buffer(dtype="float32")):
                 |          ^^^^^^^^^^^^^^^^^^^^^^^^^
            help: the parameters are T.Buffer(shape, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type, axis_separators, layout)

            error: unknown data type `float33`
              --> a.py:2:25
               2 | def f(A: T.Buffer((4,), "float33")):
                 |                         ^^^^^^^^^
            help: data types are bool, int8..int64, uint8..uint64, float16, float32, float64, bfloat16, handle, void, with `xN` for N lanes

            error: expected an integer, found float32
              --> a.py:2:20
               2 | def f(A: T.Buffer((4.5,), "float32")):
                 |                    ^^^

            error: `T.Buffer` has no parameter `color`
              --> a.py:2:36
               2 | def f(A: T.Buffer((4,), "float32", color=3)):
                 |                                    ^^^^^
            help: the parameters are T.Buffer(shape, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type, axis_separators, layout)

            error: the buffer has 1 axes and 2 strides
              --> a.py:2:44
               2 | def f(A: T.Buffer((4,), "float32", strides=(1, 2))):
                 |                                            ^^^^^^

            error: broadcasting buffers are not supported
              --> a.py:2:48
               2 | def f(A: T.Buffer((4,), "float32", buffer_type="auto")):
                 |                                                ^^^^^^

            error: in this string: expected an expression
              --> a.py:2:20
               2 | def f(A: T.Buffer(("n +",), "float32")):
                 |                    ^^^^^

            error: parameters have no defaults
              --> a.py:2:20
               2 | def f(n: T.int32 = 3):
                 |                    ^

            error: `*` and `**` parameters are not supported
              --> a.py:2:6
               2 | def f(*args):
                 |      ^^^^^^^
        "#]],
    );
}

#[test]
fn names_and_calls() {
    bodies(
        &[
            "A[0, 0] = value",
            "count = 1\nJ[0] = coumt",
            "J[0] = T.flordiv(n, 2)",
            "J[0] = T.mystery(n, 2)",
            "J[0] = mystery(n)",
            "J[0] = T.serial(3)",
            "J[0] = T.axis",
            "J[0] = R.add(n, n)",
            "J[0] = I.module(n)",
            "J[0] = n.foo()",
            "J[0] = nn.foo()",
            "J[0] = n(3)",
            "J[0] = A.shape",
            "J[0] = T.floordiv(n)",
            "J[0] = T.floordiv(n, 2, 3, 4)",
            "J[0] = T.floordiv(n, b=2, b=3)",
            "J[0] = T.floordiv(n, c=3)",
            "J[0] = T.floordiv(*J)",
            "J[0] = T.floordiv(**J)",
            "T.call_extern()",
            "T.call_extern(\"int32\", \"f\", color=3)",
        ],
        expect![[r#"
            error: unknown name `value`
              --> a.py:3:15
               3 |     A[0, 0] = value
                 |               ^^^^^

            error: unknown name `coumt`
              --> a.py:4:12
               4 |     J[0] = coumt
                 |            ^^^^^
            help: did you mean `count`?

            error: unknown function `T.flordiv`
              --> a.py:3:12
               3 |     J[0] = T.flordiv(n, 2)
                 |            ^^^^^^^^^
            help: did you mean `T.floordiv`?

            error: unknown function `T.mystery`
              --> a.py:3:12
               3 |     J[0] = T.mystery(n, 2)
                 |            ^^^^^^^^^
            help: a call that is only passed on is written T.call_intrin("int32", "mystery", ...)

            error: unknown function `mystery`
              --> a.py:3:12
               3 |     J[0] = mystery(n)
                 |            ^^^^^^^^^^

            error: `T.serial` cannot be used as an expression
              --> a.py:3:12
               3 |     J[0] = T.serial(3)
                 |            ^^^^^^^^^^^

            error: `T.axis` is not a value
              --> a.py:3:12
               3 |     J[0] = T.axis
                 |            ^^^^^^

            error: `R.add` belongs in a graph function
              --> a.py:3:12
               3 |     J[0] = R.add(n, n)
                 |            ^^^^^^^^^^^

            error: `I.module` belongs in a module
              --> a.py:3:12
               3 |     J[0] = I.module(n)
                 |            ^^^^^^^^^^^

            error: unknown method `foo`
              --> a.py:3:12
               3 |     J[0] = n.foo()
                 |            ^^^^^^^

            error: unknown name `nn`
              --> a.py:3:12
               3 |     J[0] = nn.foo()
                 |            ^^^^^^^^

            error: this cannot be called
              --> a.py:3:12
               3 |     J[0] = n(3)
                 |            ^^^^

            error: a buffer has no attribute `shape` here
              --> a.py:3:12
               3 |     J[0] = A.shape
                 |            ^^^^^^^
            help: `data` and `elem_offset` can be used

            error: `T.floordiv` needs the argument `b`
              --> a.py:3:12
               3 |     J[0] = T.floordiv(n)
                 |            ^^^^^^^^^^^^^
            help: the parameters are T.floordiv(a, b, span)

            error: `T.floordiv` takes at most 3 positional arguments
              --> a.py:3:32
               3 |     J[0] = T.floordiv(n, 2, 3, 4)
                 |                                ^
            help: the parameters are T.floordiv(a, b, span)

            error: `T.floordiv` gets `b` twice
              --> a.py:3:31
               3 |     J[0] = T.floordiv(n, b=2, b=3)
                 |                               ^

            error: `T.floordiv` has no parameter `c`
              --> a.py:3:26
               3 |     J[0] = T.floordiv(n, c=3)
                 |                          ^
            help: the parameters are T.floordiv(a, b, span)

            error: `*` arguments are not supported
              --> a.py:3:23
               3 |     J[0] = T.floordiv(*J)
                 |                       ^^

            error: `**` arguments are not supported
              --> a.py:3:23
               3 |     J[0] = T.floordiv(**J)
                 |                       ^^^

            error: `T.call_extern` needs the name of a function
              --> a.py:3:5
               3 |     T.call_extern()
                 |     ^^^^^^^^^^^^^^^
            help: write T.call_extern(dtype, name, args...)

            error: `T.call_extern` has no such parameter
              --> a.py:3:33
               3 |     T.call_extern("int32", "f", color=3)
                 |                                 ^^^^^^^
            help: write T.call_extern(dtype, name, args...)
        "#]],
    );
}

#[test]
fn types() {
    bodies(
        &[
            "A[0, 0] = x // 2",
            "J[0] = n / 2",
            "J[0] = n + h",
            "if n:\n    J[0] = 1",
            "T.assume(n == 0 and x)",
            "J[0] = 1 // 0",
            "J[0] = 99999999999999999999999",
            "J[0] = 5000000000",
            "J[0] = T.int8(300)",
            "J[0] = T.int32(1.5)",
            "J[0] = T.int32(\"inf\")",
            "J[0] = T.int32()",
            "J[0] = h",
            "J[0] = T.Cast(\"int32\", h)",
            "J[0] = \"text\"",
            "J[0] = None",
            "J[0] = A",
            "J[0] = [1, 2]",
            "J[0] = 1 if n > 0 else 2",
            "J[0] = n @ n",
            "J[0] = n in J",
            "J[0] = 2j",
            "J[0] = T.exp(h)",
            "J[0] = T.infinity(\"int32\")",
            "J[0] = T.Broadcast(n, 1)",
            "J[0] = T.Ramp(n, 1, n)",
            "J[0] = T.Ramp(T.Ramp(n, 1, 4), 1, 4)",
            "J[0] = T.Let(n, where=3)",
        ],
        expect![[r#"
            error: `//` does not take float32
              --> a.py:3:15
               3 |     A[0, 0] = x // 2
                 |               ^^^^^^
            help: write `/` for the division of floats and T.fmod for its remainder

            error: `/` does not take int32
              --> a.py:3:12
               3 |     J[0] = n / 2
                 |            ^^^^^
            help: write `//` for floor division or T.truncdiv for truncating division

            error: the types int32 and handle do not go together
              --> a.py:3:12
               3 |     J[0] = n + h
                 |            ^^^^^

            error: expected a condition, found int32
              --> a.py:3:8
               3 |     if n:
                 |        ^
            help: write a comparison, such as `x != 0`

            error: expected a condition, found float32
              --> a.py:3:25
               3 |     T.assume(n == 0 and x)
                 |                         ^
            help: write a comparison, such as `x != 0`

            error: division by zero
              --> a.py:3:12
               3 |     J[0] = 1 // 0
                 |            ^^^^^^

            error: the number does not fit in 64 bits
              --> a.py:3:12
               3 |     J[0] = 99999999999999999999999
                 |            ^^^^^^^^^^^^^^^^^^^^^^^

            error: 5000000000 does not fit in int32
              --> a.py:3:12
               3 |     J[0] = 5000000000
                 |            ^^^^^^^^^^

            error: 300 does not fit in int8
              --> a.py:3:12
               3 |     J[0] = T.int8(300)
                 |            ^^^^^^^^^^^

            error: not a constant of type int32
              --> a.py:3:20
               3 |     J[0] = T.int32(1.5)
                 |                    ^^^

            error: expected int32, found a string
              --> a.py:3:20
               3 |     J[0] = T.int32("inf")
                 |                    ^^^^^

            error: `T.int32()` declares a variable
              --> a.py:3:12
               3 |     J[0] = T.int32()
                 |            ^^^^^^^^^
            help: write `n = T.int32()`

            error: expected int32, found handle
              --> a.py:3:12
               3 |     J[0] = h
                 |            ^

            error: handle cannot be converted to int32
              --> a.py:3:12
               3 |     J[0] = T.Cast("int32", h)
                 |            ^^^^^^^^^^^^^^^^^^

            error: expected int32, found a string
              --> a.py:3:12
               3 |     J[0] = "text"
                 |            ^^^^^^

            error: expected an expression, found None
              --> a.py:3:12
               3 |     J[0] = None
                 |            ^^^^

            error: expected int32, found the buffer `A`
              --> a.py:3:12
               3 |     J[0] = A
                 |            ^

            error: expected an expression, found a list
              --> a.py:3:12
               3 |     J[0] = [1, 2]
                 |            ^^^^^^

            error: `a if c else b` is not an expression here
              --> a.py:3:12
               3 |     J[0] = 1 if n > 0 else 2
                 |            ^^^^^^^^^^^^^^^^^
            help: write T.if_then_else(c, a, b), or T.Select(c, a, b) to evaluate both

            error: `@` is not an operator of scalars
              --> a.py:3:12
               3 |     J[0] = n @ n
                 |            ^^^^^

            error: `is` and `in` do not compare values
              --> a.py:3:12
               3 |     J[0] = n in J
                 |            ^^^^^^

            error: complex numbers are not values
              --> a.py:3:12
               3 |     J[0] = 2j
                 |            ^^

            error: `T.exp` does not take handle
              --> a.py:3:12
               3 |     J[0] = T.exp(h)
                 |            ^^^^^^^^

            error: `T.infinity` of int32 does not exist
              --> a.py:3:23
               3 |     J[0] = T.infinity("int32")
                 |                       ^^^^^^^

            error: a vector has at least two lanes, found 1
              --> a.py:3:27
               3 |     J[0] = T.Broadcast(n, 1)
                 |                           ^

            error: expected a constant integer
              --> a.py:3:25
               3 |     J[0] = T.Ramp(n, 1, n)
                 |                         ^

            error: expected a scalar, found int32x4
              --> a.py:3:12
               3 |     J[0] = T.Ramp(T.Ramp(n, 1, 4), 1, 4)
                 |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

            error: expected `{variable: value}`
              --> a.py:3:27
               3 |     J[0] = T.Let(n, where=3)
                 |                           ^
        "#]],
    );
}

#[test]
fn buffers_and_indices() {
    bodies(
        &[
            "A[0] = 1.0",
            "A[0, x] = 1.0",
            "n[0] = 1",
            "J[0:n] = 1",
            "J[0:4] = T.Broadcast(1, 8)",
            "B = T.match_buffer(n, (4,))",
            "B = T.match_buffer(h, (4,))\nC = T.match_buffer(h, (4,))",
            "B = T.match_buffer(shape=(4,))\nC = T.match_buffer(shape=(4,))",
            "B = T.match_buffer(h)",
            "B = T.match_buffer(A[0:2, 0:2], (2, 2))",
            "B = T.decl_buffer((4,), data=n)",
            "B = T.allocate_const([1.0, 2.0], \"float32\", [3])",
            "B = T.allocate_const([1.5], \"int32\", [1])",
            "B = T.allocate_const([1.0], [1])",
            "B = T.allocate([4], \"float32\", \"global\", condition=n > 0)",
            "T.reads(A[0, 0])",
            "B = T.alloc_buffer((4,), \"float32\", data=A.data)",
            "B = T.Buffer((4,), \"float32\")",
            "B = T.decl_buffer((4,), \"float32\", layout=n)",
        ],
        expect![[r#"
            error: `A` has 2 axes, found 1 index
              --> a.py:3:5
               3 |     A[0] = 1.0
                 |     ^^^^

            error: expected an integer, found float32
              --> a.py:3:10
               3 |     A[0, x] = 1.0
                 |          ^

            error: expected a buffer, found an expression of type int32
              --> a.py:3:5
               3 |     n[0] = 1
                 |     ^

            error: the number of elements of this slice is not known
              --> a.py:3:7
               3 |     J[0:n] = 1
                 |       ^^^
            help: write `a:a + n` with a constant n, or T.Ramp(a, step, n)

            error: expected int32x4, found int32x8
              --> a.py:3:14
               3 |     J[0:4] = T.Broadcast(1, 8)
                 |              ^^^^^^^^^^^^^^^^^

            error: `n` is not a handle among the parameters
              --> a.py:3:24
               3 |     B = T.match_buffer(n, (4,))
                 |                        ^

            error: `h` has its buffer already
              --> a.py:4:9
               4 |     C = T.match_buffer(h, (4,))
                 |         ^^^^^^^^^^^^^^^^^^^^^^^

            error: every handle of the function has its buffer already
              --> a.py:4:9
               4 |     C = T.match_buffer(shape=(4,))
                 |         ^^^^^^^^^^^^^^^^^^^^^^^^^^

            error: `T.match_buffer` needs the argument `shape`
              --> a.py:3:9
               3 |     B = T.match_buffer(h)
                 |         ^^^^^^^^^^^^^^^^^

            error: a view of a region belongs directly in a block
              --> a.py:3:9
               3 |     B = T.match_buffer(A[0:2, 0:2], (2, 2))
                 |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

            error: expected a pointer
              --> a.py:3:34
               3 |     B = T.decl_buffer((4,), data=n)
                 |                                  ^
            help: write `A.data`, or the name of a handle

            error: a tensor of shape [2] cannot take the shape [3]
              --> a.py:3:49
               3 |     B = T.allocate_const([1.0, 2.0], "float32", [3])
                 |                                                 ^^^

            error: expected int32, found the number 1.5
              --> a.py:3:27
               3 |     B = T.allocate_const([1.5], "int32", [1])
                 |                           ^^^

            error: `T.allocate_const` needs the argument `extents`
              --> a.py:3:9
               3 |     B = T.allocate_const([1.0], [1])
                 |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
            help: the parameters are T.allocate_const(value, dtype, extents, b64, scope, align, offset_factor, axis_separators)

            error: allocation under a condition is not supported
              --> a.py:3:56
               3 |     B = T.allocate([4], "float32", "global", condition=n > 0)
                 |                                                        ^^^^^

            error: `T.reads` belongs directly in a block
              --> a.py:3:5
               3 |     T.reads(A[0, 0])
                 |     ^^^^^^^^^^^^^^^^
            help: write it as a statement of `with T.block(...):`

            error: an allocation makes its own pointer
              --> a.py:3:46
               3 |     B = T.alloc_buffer((4,), "float32", data=A.data)
                 |                                              ^^^^^^
            help: a view of other memory is T.decl_buffer(shape, dtype, data=...)

            error: `T.Buffer` needs the argument `data`
              --> a.py:3:9
               3 |     B = T.Buffer((4,), "float32")
                 |         ^^^^^^^^^^^^^^^^^^^^^^^^^
            help: the parameters are T.Buffer(shape, dtype, data, strides, elem_offset, scope, align, offset_factor, buffer_type, axis_separators, layout, annotations)

            error: layouts of buffers are not supported
              --> a.py:3:47
               3 |     B = T.decl_buffer((4,), "float32", layout=n)
                 |                                               ^
        "#]],
    );
}

#[test]
fn clauses_of_blocks() {
    blocks(
        &[
            "vi = T.axis.spatial(4, i)\nT.where(i < 2)\nT.where(i < 3)",
            "T.reads(A[0, 0])\nT.reads(A[0, 1])",
            "T.reads(A[0:4:2, 0])",
            "T.reads(n)",
            "T.block_attr(3)",
            "T.block_attr({\"a\": 1, \"a\": 2})",
            "vi, vj = T.axis.remap(\"S\", [i])",
            "vi = T.axis.remap(\"X\", [i])",
            "vi = T.axis.remap(\"S\", [n])",
            "vi = T.axis.spatial((0, 4, 5), i)",
            "vi = T.axis.spatial(4.5, i)",
            "vi = T.axis.spatial(4)",
            "vi = T.axis.scan(4, i)",
            "vi = T.axis.spatial(4, i, dtype=\"int64\")",
            "for j in range(4):\n    vj = T.axis.spatial(4, j)",
            "for j in range(4):\n    T.where(j < 2)",
            "with T.init():\n    A[0, 0] = 0.0\nwith T.init():\n    A[0, 0] = 1.0",
            "for j in range(4):\n    with T.init():\n        A[0, 0] = 0.0",
        ],
        expect![[r#"
            error: `T.where` stands twice in this block
              --> a.py:7:13
               7 |             T.where(i < 3)
                 |             ^^^^^^^^^^^^^^

            error: `T.reads` stands twice in this block
              --> a.py:6:13
               6 |             T.reads(A[0, 1])
                 |             ^^^^^^^^^^^^^^^^

            error: regions have no steps
              --> a.py:5:23
               5 |             T.reads(A[0:4:2, 0])
                 |                       ^^^^^

            error: expected a buffer, found an expression of type int32
              --> a.py:5:21
               5 |             T.reads(n)
                 |                     ^

            error: expected a dictionary
              --> a.py:5:26
               5 |             T.block_attr(3)
                 |                          ^
            help: write {"key": value}

            error: the key `a` stands twice
              --> a.py:5:35
               5 |             T.block_attr({"a": 1, "a": 2})
                 |                                   ^^^

            error: expected 2 kinds and bindings, found 1 and 1
              --> a.py:5:22
               5 |             vi, vj = T.axis.remap("S", [i])
                 |                      ^^^^^^^^^^^^^^^^^^^^^^

            error: unknown kind `X` of a block axis
              --> a.py:5:31
               5 |             vi = T.axis.remap("X", [i])
                 |                               ^^^
            help: S is spatial, R is reduce, O is opaque

            error: expected the variable of a loop
              --> a.py:5:37
               5 |             vi = T.axis.remap("S", [n])
                 |                                     ^
            help: write `T.axis.spatial(extent, value)` for another value

            error: expected an extent or `(begin, end)`
              --> a.py:5:33
               5 |             vi = T.axis.spatial((0, 4, 5), i)
                 |                                 ^^^^^^^^^

            error: expected an integer, found float32
              --> a.py:5:33
               5 |             vi = T.axis.spatial(4.5, i)
                 |                                 ^^^

            error: `T.axis.spatial` needs the argument `binding`
              --> a.py:5:18
               5 |             vi = T.axis.spatial(4)
                 |                  ^^^^^^^^^^^^^^^^^
            help: the parameters are T.axis.spatial(dom, binding, dtype)

            error: `T.axis.scan` is not supported
              --> a.py:5:13
               5 |             vi = T.axis.scan(4, i)
                 |             ^^^^^^^^^^^^^^^^^^^^^^

            error: the type of the axis is int32
              --> a.py:5:45
               5 |             vi = T.axis.spatial(4, i, dtype="int64")
                 |                                             ^^^^^^^

            error: a block axis belongs directly in a block
              --> a.py:6:22
               6 |                 vj = T.axis.spatial(4, j)
                 |                      ^^^^^^^^^^^^^^^^^^^^

            error: `T.where` belongs directly in a block
              --> a.py:6:17
               6 |                 T.where(j < 2)
                 |                 ^^^^^^^^^^^^^^
            help: write it as a statement of `with T.block(...):`

            error: `T.init` stands twice in this block
              --> a.py:7:13
               7 |             with T.init():
                 |             ^^^^^^^^^^^^^

            error: `T.init` belongs directly in a block
              --> a.py:6:17
               6 |                 with T.init():
                 |                 ^^^^^^^^^^^^^
        "#]],
    );
    bodies(
        &[
            "with T.block([4, 4], \"b\") as [i, j]:\n    pass",
            "with T.block(\"b\", no_realize=True):\n    pass",
            "for i in range(3):\n    T.func_attr({\"a\": 1})",
        ],
        expect![[r#"
            error: blocks with extents in the header are not supported
              --> a.py:3:18
               3 |     with T.block([4, 4], "b") as [i, j]:
                 |                  ^^^^^^
            help: write `vi = T.axis.spatial(16, i)` in the block

            error: blocks without bindings are not supported
              --> a.py:3:34
               3 |     with T.block("b", no_realize=True):
                 |                                  ^^^^

            error: `T.func_attr` belongs directly in the function
              --> a.py:4:21
               4 |         T.func_attr({"a": 1})
                 |                     ^^^^^^^^
        "#]],
    );
}

#[test]
fn scopes_and_statements() {
    bodies(
        &[
            "for i in J:\n    pass",
            "for i in T.sereal(3):\n    pass",
            "for i, j in T.grid(3):\n    pass",
            "for i in range(x):\n    pass",
            "for i in range(0, 8, 2):\n    pass",
            "for i in T.thread_binding(4):\n    pass",
            "for A[0, 0] in range(4):\n    pass",
            "for i in range(4):\n    pass\nelse:\n    pass",
            "while n > 0:\n    pass",
            "with n:\n    pass",
            "with T.serial(3):\n    pass",
            "with T.attr(n, \"key\", 3):\n    pass",
            "T.attr(n, \"key\", 3)",
            "with T.LetStmt(n + 1):\n    pass",
            "with T.allocate([4], \"float32\"):\n    pass",
            "a, b = n",
            "a = b = n",
            "n += 1",
            "a: T.Buffer = n",
            "del n",
            "def g():\n    pass",
            "t = T.env_thread(\"threadIdx.x\")\nJ[0] = t",
            "T.launch_thread(n, 4)",
        ],
        expect![[r#"
            error: expected a kind of loop
              --> a.py:3:14
               3 |     for i in J:
                 |              ^
            help: write range, T.serial, T.parallel, T.vectorized, T.unroll, T.thread_binding or T.grid

            error: expected a kind of loop
              --> a.py:3:14
               3 |     for i in T.sereal(3):
                 |              ^^^^^^^^^^^
            help: write range, T.serial, T.parallel, T.vectorized, T.unroll, T.thread_binding or T.grid

            error: 2 loop variables for 1 extents
              --> a.py:3:5
               3 |     for i, j in T.grid(3):
                 |     ^^^^^^^^^^^^^^^^^^^^^

            error: expected an integer, found float32
              --> a.py:3:20
               3 |     for i in range(x):
                 |                    ^

            error: loops have the step 1
              --> a.py:3:26
               3 |     for i in range(0, 8, 2):
                 |                          ^

            error: `T.thread_binding` needs the argument `thread`
              --> a.py:3:14
               3 |     for i in T.thread_binding(4):
                 |              ^^^^^^^^^^^^^^^^^^^
            help: write T.thread_binding(extent, thread="threadIdx.x")

            error: expected a name
              --> a.py:3:9
               3 |     for A[0, 0] in range(4):
                 |         ^^^^^^^

            error: a loop has no `async` and no `else`
              --> a.py:3:5
               3 |     for i in range(4):
                 |     ^^^^^^^^^^^^^^^^^

            error: `while` loops are not supported
              --> a.py:3:5
               3 |     while n > 0:
                 |     ^^^^^

            error: expected a block or another scope
              --> a.py:3:10
               3 |     with n:
                 |          ^
            help: write T.block, T.init, T.launch_thread, T.LetStmt, T.allocate, T.decl_buffer or T.Assert

            error: expected a block or another scope
              --> a.py:3:10
               3 |     with T.serial(3):
                 |          ^^^^^^^^^^^
            help: write T.block, T.init, T.launch_thread, T.LetStmt, T.allocate, T.decl_buffer or T.Assert

            error: `T.attr` is not supported
              --> a.py:3:5
               3 |     with T.attr(n, "key", 3):
                 |     ^^^^^^^^^^^^^^^^^^^^^^^^

            error: `T.attr` is not supported
              --> a.py:3:5
               3 |     T.attr(n, "key", 3)
                 |     ^^^^^^^^^^^^^^^^^^^

            error: expected `with T.LetStmt(value) as x`
              --> a.py:3:5
               3 |     with T.LetStmt(n + 1):
                 |     ^^^^^^^^^^^^^^^^^^^^^

            error: expected `with T.allocate(...) as A`
              --> a.py:3:5
               3 |     with T.allocate([4], "float32"):
                 |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

            error: expected `T.axis.remap(...)`, or a value for each name
              --> a.py:3:12
               3 |     a, b = n
                 |            ^

            error: expected one target of the assignment
              --> a.py:3:5
               3 |     a = b = n
                 |     ^^^^^^^^^

            error: expected an element of a buffer
              --> a.py:3:5
               3 |     n += 1
                 |     ^

            error: expected a type of a scalar
              --> a.py:3:8
               3 |     a: T.Buffer = n
                 |        ^^^^^^^^

            error: expected a statement of a tensor function
              --> a.py:3:5
               3 |     del n
                 |     ^^^^^

            error: expected a statement of a tensor function
              --> a.py:3:5
               3 |     def g():
                 |     ^^^^^^^^

            error: the thread axis `t` has no extent yet
              --> a.py:4:12
               4 |     J[0] = t
                 |            ^
            help: write `T.launch_thread(t, extent)` first

            error: expected a thread axis
              --> a.py:3:21
               3 |     T.launch_thread(n, 4)
                 |                     ^
        "#]],
    );
}

#[test]
fn graph_functions() {
    graphs(
        &[
            "y = x + 1",
            "y = R.call_tir(cls.cpy, (x,), R.Tensor((4,), \"float32\"))\nreturn z",
            "y = R.call_tir((x,), out_sinfo=R.Tensor((4,), \"float32\"))",
            "y = R.call_tir(cls.copy, (x,), out_sinfo=R.Object)",
            "y = cpy(x)",
            "y = x.foo(x)",
            "y = R.const([[1.0], [2.0, 3.0]], \"float32\")",
            "y = R.const([1, 300], \"int8\")",
            "y = R.const([1.5], \"int8\")",
            "y = R.const(b64=\"!\", shape=(1,), dtype=\"int8\")",
            "y = R.const(b64=\"AAAA\", shape=(1,), dtype=\"int8\")",
            "y = R.const(shape=(128, 128))",
            "y = R.const_ref(\"c7\", R.Tensor((1,), \"int8\"))",
            "y = metadata[\"relax.expr.Constant\"][0]",
            "y: R.Tensr((4,)) = x",
            "y: T.int32 = x",
            "y: R.Tensor((4,), \"float32\", vdevice=\"cuda\") = x",
            "y: R.Tensor((4,), \"float32\")",
            "y = 1.0",
            "y = R.Tensor((4,), \"float32\")",
            "y = R.nn.relu(a=x)",
            "y, z = x",
            "if x:\n    y = x",
            "with T.block(\"b\"):\n    y = x",
            "with R.dataflow():\n    return x",
            "with R.dataflow():\n    R.output(1.0)",
            "return x\ny = x",
            "del x",
            "y = x[0:1]",
        ],
        expect![[r#"
            error: expected a tensor
              --> a.py:9:13
               9 |         y = x + 1
                 |             ^^^^^

            error: unknown name `z`
              --> a.py:10:16
              10 |         return z
                 |                ^

            error: expected the name of a function
              --> a.py:9:24
               9 |         y = R.call_tir((x,), out_sinfo=R.Tensor((4,), "float32"))
                 |                        ^^^^
            help: write `cls.name`

            error: expected the type of a tensor with its shape
              --> a.py:9:50
               9 |         y = R.call_tir(cls.copy, (x,), out_sinfo=R.Object)
                 |                                                  ^^^^^^^^

            error: unknown function `cpy`
              --> a.py:9:13
               9 |         y = cpy(x)
                 |             ^^^
            help: did you mean `copy`?

            error: this cannot be called in a graph function
              --> a.py:9:13
               9 |         y = x.foo(x)
                 |             ^^^^^

            error: the lists of a constant have different lengths
              --> a.py:9:29
               9 |         y = R.const([[1.0], [2.0, 3.0]], "float32")
                 |                             ^^^^^^^^^^

            error: 300 does not fit in int8
              --> a.py:9:25
               9 |         y = R.const([1, 300], "int8")
                 |                         ^^^

            error: expected int8, found the number 1.5
              --> a.py:9:22
               9 |         y = R.const([1.5], "int8")
                 |                      ^^^

            error: the text is not base 64
              --> a.py:9:25
               9 |         y = R.const(b64="!", shape=(1,), dtype="int8")
                 |                         ^^^

            error: 3 bytes do not fill a int8 tensor of shape [1]
              --> a.py:9:25
               9 |         y = R.const(b64="AAAA", shape=(1,), dtype="int8")
                 |                         ^^^^^^

            error: a constant needs its elements
              --> a.py:9:13
               9 |         y = R.const(shape=(128, 128))
                 |             ^^^^^^^^^^^^^^^^^^^^^^^^^
            help: write R.const([[1.0, 2.0]], "float32"); a value that is not known is a parameter of the function

            error: the constant `c7` is not in the table of constants
              --> a.py:9:25
               9 |         y = R.const_ref("c7", R.Tensor((1,), "int8"))
                 |                         ^^^^

            error: the metadata of this text has no such constant
              --> a.py:9:13
               9 |         y = metadata["relax.expr.Constant"][0]
                 |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

            error: unknown type `R.Tensr`
              --> a.py:9:12
               9 |         y: R.Tensr((4,)) = x
                 |            ^^^^^^^^^^^^^
            help: did you mean `R.Tensor`?

            error: expected the type of a tensor
              --> a.py:9:12
               9 |         y: T.int32 = x
                 |            ^^^^^^^
            help: write R.Tensor((2, 3), dtype="float32")

            error: devices of tensors are not supported
              --> a.py:9:46
               9 |         y: R.Tensor((4,), "float32", vdevice="cuda") = x
                 |                                              ^^^^^^

            error: `y` needs a value
              --> a.py:9:9
               9 |         y: R.Tensor((4,), "float32")
                 |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^

            error: expected a tensor, found a number
              --> a.py:9:13
               9 |         y = 1.0
                 |             ^^^
            help: write R.const(1.0, "float32")

            error: expected a tensor, found a type
              --> a.py:9:13
               9 |         y = R.Tensor((4,), "float32")
                 |             ^^^^^^^^^^^^^^^^^^^^^^^^^

            error: tensors are passed by position
              --> a.py:9:23
               9 |         y = R.nn.relu(a=x)
                 |                       ^^^

            error: expected one name on the left
              --> a.py:9:9
               9 |         y, z = x
                 |         ^^^^^^^^

            error: conditions in graph functions are not supported
              --> a.py:9:12
               9 |         if x:
                 |            ^

            error: expected `with R.dataflow():`
              --> a.py:9:9
               9 |         with T.block("b"):
                 |         ^^^^^^^^^^^^^^^^^^

            error: `return` belongs after the dataflow region
              --> a.py:10:13
              10 |             return x
                 |             ^^^^^^^^

            error: expected a tensor, found a number
              --> a.py:10:22
              10 |             R.output(1.0)
                 |                      ^^^
            help: write R.const(1.0, "float32")

            error: nothing may follow `return`
              --> a.py:10:9
              10 |         y = x
                 |         ^^^^^

            error: expected a statement of a graph function
              --> a.py:9:9
               9 |         del x
                 |         ^^^^^

            error: expected an expression, found a slice
              --> a.py:9:15
               9 |         y = x[0:1]
                 |               ^^^
        "#]],
    );
    check(
        [
            "metadata = 3\n@R.function\ndef f():\n    return ()\n",
            "metadata = load_json(\"{}\")\n@R.function\ndef f():\n    return ()\n",
            "@R.function\ndef f(x: R.Tensor((4,)) = 3):\n    return x\n",
            "@R.function\ndef f(*x):\n    return x\n",
        ],
        expect![[r#"
            error: expected `tvm.ir.load_json("...")`
              --> a.py:1:12
               1 | metadata = 3
                 |            ^

            error: the metadata cannot be understood
              --> a.py:1:12
               1 | metadata = load_json("{}")
                 |            ^^^^^^^^^^^^^^^

            error: parameters have no defaults
              --> a.py:2:27
               2 | def f(x: R.Tensor((4,)) = 3):
                 |                           ^

            error: `*` and `**` parameters are not supported
              --> a.py:2:6
               2 | def f(*x):
                 |      ^^^^
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

#[test]
fn a_single_expression() {
    let render = |text: &str| {
        parse_expr(&Source::new("<expr>", text), []).map_or_else(|e| e.render(), |e| e.to_string())
    };
    expect![[r#"
        error: expected an expression
          --> <expr>:1:9
           1 | i // 4 +
             |         ^
        error: unknown name `i`
          --> <expr>:1:1
           1 | i // 4
             | ^
    "#]]
    .assert_eq(&(render("i // 4 +") + &render("i // 4")));
}
