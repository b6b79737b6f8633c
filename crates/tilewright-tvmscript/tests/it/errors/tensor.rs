//! Tensor functions.

use super::*;

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
