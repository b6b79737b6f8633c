//! Graph functions.

use super::*;

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

            error: a condition needs an `else`
              --> a.py:9:12
               9 |         if x:
                 |            ^
            help: bind the same name at the end of both branches

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
