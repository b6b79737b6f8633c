//! Types, names and calls.

use super::*;

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
