"""Direct cases of the evaluator: what a text means, and which texts are illegal."""

import math
import unittest

import numpy

import oracle
import programs
import reduction
import schedules
import wide
from evaluator import Module, Runtime, run_graph
from memory import ARBITRARY, UNWRITTEN, Fault, Unsupported
from structure import structure


def run(text, *arrays, permissive=False, given=None, copies=False):
    """The cells of the arguments after running `main`."""
    module = Module("@T.prim_func\n" + text if text.startswith("def") else text)
    rt = Runtime(permissive)
    rt.copies = copies
    known = given or [None] * len(arrays)
    arguments = [Module.argument(rt, i, a, g) for i, (a, g) in enumerate(zip(arrays, known))]
    module.run("main", arguments, rt)
    return [a.memory.cells for a in arguments if not numpy.isscalar(a)]


def body(*lines, header='A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")'):
    return f"def main({header}):\n" + "\n".join("    " + line for line in lines) + "\n"


def ints(*values, dtype="int32"):
    return numpy.array(values, dtype=dtype)


def value(expression, dtype="int32", a=(0, 0, 0, 0), source="int32"):
    """An expression over `A`, stored to a cell of another buffer."""
    text = body(
        f"B[0] = {expression}",
        header=f'A: T.Buffer((4,), "{source}"), B: T.Buffer((1,), "{dtype}")',
    )
    return run(text, numpy.array(a, dtype=source), numpy.zeros(1, dtype=dtype))[1][0]


class Arithmetic(unittest.TestCase):
    def test_integers_wrap_at_their_width(self):
        self.assertEqual(value("A[0] + 1", a=(2**31 - 1, 0, 0, 0)), -(2**31))
        self.assertEqual(value("A[0] * A[0]", a=(65536, 0, 0, 0)), 0)
        low = numpy.array((200, 100, 0, 0), dtype="uint8")
        self.assertEqual(value("A[0] + A[1]", "uint8", low, "uint8"), 44)
        self.assertEqual(value("A[0] - A[1]", "int8", (-100, 100, 0, 0), "int8"), 56)
        self.assertEqual(value('T.Cast("int8", A[0])', "int8", (300, 0, 0, 0)), 44)

    def test_both_divisions(self):
        self.assertEqual(value("A[0] // 4", a=(-7, 0, 0, 0)), -2)
        self.assertEqual(value("A[0] % 4", a=(-7, 0, 0, 0)), 1)
        self.assertEqual(value("T.truncdiv(A[0], 4)", a=(-7, 0, 0, 0)), -1)
        self.assertEqual(value("T.truncmod(A[0], 4)", a=(-7, 0, 0, 0)), -3)
        self.assertEqual(value("A[0] // A[1]", a=(-(2**31), -1, 0, 0)), -(2**31))

    def test_division_by_zero_is_a_fault(self):
        for e in ("A[0] // A[1]", "A[0] % A[1]", "T.truncdiv(A[0], A[1])", "T.truncmod(1, A[1])"):
            with self.assertRaisesRegex(Fault, "division by zero"):
                value(e)
        self.assertEqual(value("T.if_then_else(A[0] != 0, 1 // A[0], 7)"), 7)
        with self.assertRaisesRegex(Fault, "division by zero"):
            value("T.Select(A[0] != 0, 1 // A[0], 7)")

    def test_floats_round_to_their_type(self):
        a = (16777216.0, 1.0, 0.0, 0.0)
        self.assertEqual(value("A[0] + A[1]", "float32", a, "float32"), 16777216.0)
        self.assertEqual(value("A[0] + A[1]", "float64", a, "float64"), 16777217.0)
        third = value("A[1] / T.float32(3.0)", "float32", a, "float32")
        self.assertEqual(third, float(numpy.float32(1) / numpy.float32(3)))
        big = value("A[0] * A[0]", "float32", (1e30, 0, 0, 0), "float32")
        self.assertEqual(big, math.inf)

    def test_nan_in_extremes(self):
        for e in ("T.min(A[0], A[1])", "T.max(A[1], A[0])"):
            self.assertTrue(math.isnan(value(e, "float32", (math.nan, 1, 0, 0), "float32")))
        least = value("T.min(A[0], A[1])", "float32", (0.0, -0.0, 0, 0), "float32")
        self.assertEqual(math.copysign(1, least), -1)

    def test_casts(self):
        for x, expected in ((1.9, 1), (-1.9, -1), (math.nan, 0), (1e20, 2**31 - 1)):
            got = value('T.Cast("int32", A[0])', "int32", (x, 0, 0, 0), "float32")
            self.assertEqual(got, expected)
        self.assertIs(value('T.Cast("bool", A[0])', "bool", (3, 0, 0, 0)), True)
        self.assertEqual(value('T.Cast("float32", A[0] < 1)', "float32"), 1.0)

    def test_logic_evaluates_what_it_needs(self):
        self.assertIs(value("A[0] != 0 and 1 // A[0] > 0", "bool"), False)
        self.assertIs(value("A[0] == 0 or 1 // A[0] > 0", "bool"), True)
        self.assertIs(value("not A[0] < 1 < 2", "bool"), False)

    def test_intrinsics(self):
        self.assertEqual(value("T.exp(A[0])", "float32", (0, 0, 0, 0), "float32"), 1.0)
        self.assertEqual(value("T.exp(A[0])", "float32", (1e9, 0, 0, 0), "float32"), math.inf)
        self.assertTrue(math.isnan(value("T.sqrt(A[0])", "float32", (-1, 0, 0, 0), "float32")))
        self.assertEqual(value("T.log(A[0])", "float32", (0, 0, 0, 0), "float32"), -math.inf)
        self.assertEqual(value("T.shift_right(A[0], 1)", a=(-3, 0, 0, 0)), -2)
        self.assertEqual(value("T.abs(A[0])", a=(-(2**31), 0, 0, 0)), -(2**31))
        with self.assertRaisesRegex(Fault, "shift"):
            value("T.shift_left(1, A[0])", a=(32, 0, 0, 0))

    def test_plain_numbers_take_the_type_of_what_they_meet(self):
        self.assertEqual(value("A[0] + 255", "uint8", (1, 0, 0, 0), "uint8"), 0)
        with self.assertRaises(Unsupported):
            value("A[0] + T.int64(1)")


class Memory(unittest.TestCase):
    def test_range(self):
        for index in ("4", "0 - 1", "A[0]"):
            with self.assertRaisesRegex(Fault, "out of range"):
                value(f"A[{index}]", a=(9, 0, 0, 0))

    def test_reads_of_what_nobody_wrote(self):
        text = body('C = T.alloc_buffer((4,), "int32")', "C[0] = 1", "B[0] = C[{}]")
        self.assertEqual(run(text.format(0), ints(0, 0, 0, 0), ints(0, 0, 0, 0))[1][0], 1)
        with self.assertRaisesRegex(Fault, "uninitialised"):
            run(text.format(1), ints(0, 0, 0, 0), ints(0, 0, 0, 0))
        got = run(text.format(1), ints(0, 0, 0, 0), ints(0, 0, 0, 0), permissive=True)
        self.assertIs(got[1][0], ARBITRARY)

    def test_cells_of_arguments_that_are_not_given(self):
        text = body("for i in range(4):", "    B[i] = T.if_then_else(i < 3, A[i], 0)")
        got = run(text, ints(1, 2, 3, 4), ints(0, 0, 0, 0), given=[{0, 1, 2}, set()])
        self.assertEqual(got[1], [1, 2, 3, 0])
        with self.assertRaisesRegex(Fault, "uninitialised"):
            run(text, ints(1, 2, 3, 4), ints(0, 0, 0, 0), given=[{0, 1}, set()])

    def test_copies_of_nothing(self):
        text = body('C = T.alloc_buffer((1,), "int32")', "C[0] = A[3]", "B[0] = 1")
        arrays = ints(1, 2, 3, 4), ints(0, 0, 0, 0)
        with self.assertRaisesRegex(Fault, "uninitialised"):
            run(text, *arrays, given=[set(), None])
        self.assertEqual(run(text, *arrays, given=[set(), None], copies=True)[1][0], 1)
        read = text + "    B[1] = C[0] + 0\n"
        with self.assertRaisesRegex(Fault, "uninitialised"):
            run(read, *arrays, given=[set(), None], copies=True)

    def test_arbitrary_values(self):
        undef = 'T.undef(dtype="int32")'
        self.assertIs(value(f"{undef} - {undef}"), ARBITRARY)
        self.assertEqual(value(f"0 * {undef}"), 0)
        self.assertIs(value(f"T.min({undef}, 3)"), ARBITRARY)
        self.assertIs(value('T.float32(0) * T.undef(dtype="float32")', "float32"), ARBITRARY)
        with self.assertRaisesRegex(Fault, "arbitrary"):
            value(f"A[{undef}]")
        with self.assertRaisesRegex(Fault, "arbitrary"):
            run(body(f"if {undef} > 0:", "    B[0] = 1"), ints(0, 0, 0, 0), ints(0, 0, 0, 0))

    def test_allocations_are_new_each_time(self):
        text = body(
            "for i in range(2):",
            '    with T.block("b"):',
            "        v = T.axis.spatial(2, i)",
            '        C = T.alloc_buffer((1,), "int32")',
            "        if v == 0:",
            "            C[0] = 1",
            "        B[v] = C[0]",
        )
        with self.assertRaisesRegex(Fault, "uninitialised"):
            run(text, ints(0, 0, 0, 0), ints(0, 0, 0, 0))

    def test_views(self):
        text = body(
            'V = T.decl_buffer((2, 2), "int32", data=A.data, strides=[1, 2])',
            'W = T.match_buffer(A[1:3], (2,), "int32")',
            "B[0] = V[1, 0] * 10 + V[0, 1]",
            "B[1] = W[1]",
        )
        self.assertEqual(run(text, ints(1, 2, 3, 4), ints(0, 0, 0, 0))[1][:2], [23, 3])

    def test_constants(self):
        text = body('K = T.allocate_const([1, 2, 3], "int32", [3])', "B[0] = K[2]")
        self.assertEqual(run(text, ints(0, 0, 0, 0), ints(0, 0, 0, 0))[1][0], 3)
        with self.assertRaises(Fault):
            run(text + "    K[0] = 1\n", ints(0, 0, 0, 0), ints(0, 0, 0, 0))


class Statements(unittest.TestCase):
    def test_blocks_initialise_and_obey_their_predicate(self):
        text = body(
            "for i, k0, k1 in T.grid(2, 2, 2):",
            '    with T.block("sum"):',
            "        v = T.axis.spatial(2, i)",
            "        r = T.axis.reduce(3, k0 * 2 + k1)",
            "        T.where(k0 * 2 + k1 < 3)",
            "        with T.init():",
            "            B[v] = 100",
            "        B[v] = B[v] * 2 + A[r]",
        )
        self.assertEqual(run(text, ints(1, 2, 3, 4), ints(7, 7, 7, 7))[1], [811, 811, 7, 7])
        with self.assertRaisesRegex(Fault, "axis"):
            run(
                text.replace("T.where(k0 * 2 + k1 < 3)", "pass"), ints(1, 2, 3, 4), ints(7, 7, 7, 7)
            )

    def test_remap_takes_the_first_value_of_the_loop(self):
        text = body(
            "for i in range(2):",
            "    for k in range(1, 3):",
            '        with T.block("sum"):',
            '            v, r = T.axis.remap("SR", [i, k])',
            "            with T.init():",
            "                B[v] = 0",
            "            B[v] = B[v] + A[r]",
        )
        self.assertEqual(run(text, ints(1, 2, 3, 4), ints(9, 9, 9, 9))[1], [5, 5, 9, 9])

    def test_bindings(self):
        text = body(
            "x: T.int32 = A[0] + 1",
            "with T.LetStmt(x * 2) as y:",
            "    B[0] = y",
            "B[1] = T.Let(z * z, where={z: x + 1})",
        )
        self.assertEqual(run(text, ints(1, 0, 0, 0), ints(0, 0, 0, 0))[1][:2], [4, 9])

    def test_branches_and_loops(self):
        text = body(
            "for i in T.serial(1, 4):",
            "    if A[i] > 2:",
            "        B[i] = 1",
            "    elif A[i] > 1:",
            "        B[i] = 2",
            "    else:",
            "        B[i] = 3",
        )
        self.assertEqual(run(text, ints(9, 1, 2, 3), ints(0, 0, 0, 0))[1], [0, 3, 2, 1])

    def test_promises(self):
        for line, kind in (
            ("T.assume(A[0] == 1)", "assumption"),
            ("assert A[0] == 1, 'x'", "assertion"),
        ):
            run(body(line), ints(1, 0, 0, 0), ints(0, 0, 0, 0))
            with self.assertRaisesRegex(Fault, kind):
                run(body(line), ints(0, 0, 0, 0), ints(0, 0, 0, 0))

    def test_permission_to_read(self):
        text = body(
            'C = T.alloc_buffer((2,), "int32")',
            "C[0] = 1",
            "for i in range(2):",
            '    T.assume(i < 1 or C[i] == T.undef(dtype="int32"))',
            "for i in range(2):",
            "    B[i] = C[i]",
        )
        got = run(text, ints(0, 0, 0, 0), ints(0, 0, 0, 0))[1]
        self.assertEqual(got[0], 1)
        self.assertIs(got[1], ARBITRARY)

    def test_vectors(self):
        text = body(
            "B[T.Ramp(0, 1, 4)] = A[T.Ramp(3, -1, 4)] + T.Broadcast(A[0], 4)",
            "A[T.Ramp(0, 1, 2)] = A[T.Ramp(1, 1, 2)]",
        )
        got = run(text, ints(1, 2, 3, 4), ints(0, 0, 0, 0))
        self.assertEqual(got, [[2, 3, 3, 4], [5, 4, 3, 2]])

    def test_open_sizes(self):
        text = (
            "@T.prim_func\ndef main(a: T.handle, b: T.handle, k: T.int32):\n"
            "    n = T.int32()\n"
            '    A = T.match_buffer(a, (n,), "int32")\n'
            '    B = T.match_buffer(b, (n,), "int32")\n'
            "    for i in range(n):\n"
            "        B[i] = A[n - 1 - i] * k\n"
        )
        self.assertEqual(run(text, ints(1, 2, 3), ints(0, 0, 0), 2)[1], [6, 4, 2])

    def test_scratch_of_a_lowered_function(self):
        text = body(
            'T.func_attr({"tilewright.workspace": 1})',
            "C[0] = A[0]",
            "B[0] = C[{}]",
            header='A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32"), '
            'C: T.Buffer((2,), "int32")',
        )
        self.assertEqual(run(text.replace("{}", "0"), ints(5, 0, 0, 0), ints(0, 0, 0, 0))[1][0], 5)
        with self.assertRaisesRegex(Fault, "uninitialised"):
            run(text.replace("{}", "1"), ints(5, 0, 0, 0), ints(0, 0, 0, 0))


class Loops(unittest.TestCase):
    def loop(self, kind, *lines):
        return body(f"for i in {kind}:", *("    " + line for line in lines))

    def test_independent_iterations(self):
        for kind in (
            "T.parallel(4)",
            "T.vectorized(4)",
            'T.thread_binding(4, thread="threadIdx.x")',
        ):
            text = self.loop(kind, "B[i] = A[3 - i]")
            self.assertEqual(run(text, ints(1, 2, 3, 4), ints(0, 0, 0, 0))[1], [4, 3, 2, 1])

    def test_conflicts(self):
        for lines in (
            ("B[0] = A[i]",),
            ("B[i] = B[3 - i]",),
            ("if i > 0:", "    B[i] = B[i - 1] + A[i]"),
        ):
            for kind in ("T.parallel(4)", "T.vectorized(4)"):
                with self.assertRaisesRegex(Fault, "order: iterations"):
                    run(self.loop(kind, *lines), ints(1, 2, 3, 4), ints(0, 0, 0, 0))
            run(self.loop("T.unroll(4)", *lines), ints(1, 2, 3, 4), ints(0, 0, 0, 0))

    def test_memory_of_an_iteration_is_its_own(self):
        text = self.loop(
            "T.parallel(4)", 'C = T.decl_buffer((1,), "int32")', "C[0] = A[i]", "B[i] = C[0]"
        )
        self.assertEqual(run(text, ints(1, 2, 3, 4), ints(0, 0, 0, 0))[1], [1, 2, 3, 4])

    def test_the_same_work_may_be_done_twice(self):
        for lines in (("B[0] = A[0]",), ("B[0] = 7", "A[i] = B[0]")):
            for kind in ("T.parallel(4)", "T.vectorized(4)"):
                run(self.loop(kind, *lines), ints(1, 2, 3, 4), ints(0, 0, 0, 0))
        for lines in (("A[i] = B[0]", "B[0] = 7"), ("B[0] = 7", "B[0] = B[0] + 1")):
            with self.assertRaisesRegex(Fault, "order: iterations"):
                run(self.loop("T.parallel(4)", *lines), ints(1, 2, 3, 4), ints(0, 0, 0, 0))

    def test_updates_of_a_vectorised_loop(self):
        for e in ("B[0] + A[i]", "A[i] + B[0]", "B[0] - A[i]", "T.max(B[0], A[i])"):
            text = self.loop("T.vectorized(4)", f"B[0] = {e}")
            run(text, ints(1, 2, 3, 4), ints(0, 0, 0, 0))
        for e in ("A[i] - B[0]", "B[0] * 2 + A[i]", "B[0] + B[i]"):
            with self.assertRaisesRegex(Fault, "order: iterations"):
                text = self.loop("T.vectorized(4)", f"B[0] = {e}")
                run(text, ints(1, 2, 3, 4), ints(0, 0, 0, 0))

    def test_a_sum_may_be_vectorised_and_not_parallel(self):
        text = self.loop(
            "T.vectorized(4)",
            'with T.block("sum"):',
            "    r = T.axis.reduce(4, i)",
            "    with T.init():",
            "        B[0] = 0",
            "    B[0] = B[0] + A[r]",
        )
        self.assertEqual(run(text, ints(1, 2, 3, 4), ints(0, 0, 0, 0))[1][0], 10)
        with self.assertRaisesRegex(Fault, "order"):
            run(text.replace("vectorized", "parallel"), ints(1, 2, 3, 4), ints(0, 0, 0, 0))


class Graphs(unittest.TestCase):
    TEXT = """
@I.ir_module
class Module:
    @T.prim_func
    def half(A: T.Buffer((2,), "int32"), B: T.Buffer((2,), "int32"), C: T.Buffer((1,), "int32")):
        for i in range(2):
            B[i] = A[i] + 1
        C[0] = A[1]

    @R.function
    def main(x: R.Tensor((2,), "int32")):
        cls = Module
        with R.dataflow():
            w = R.const([5, 6], "int32")
            y = R.call_tir(cls.half, (w,), out_sinfo=[
                R.Tensor((2,), "int32"), R.Tensor((1,), "int32")])
            a = y[0]
            z = R.call_tir(cls.half, (x,), out_sinfo=[
                R.Tensor((2,), "int32"), R.Tensor((1,), "int32")])
            b = z[1]
            R.output(a, b)
        return (a, b)
"""

    def test_calls(self):
        results = run_graph(Module(self.TEXT), "main", [ints(1, 2)])
        self.assertEqual([cells for cells, _, _ in results], [[6, 7], [2]])

    def test_results_are_compared(self):
        good = Module(self.TEXT)
        self.assertIsNone(oracle.graph_failure(good, good, "main", [ints(1, 2)]))
        bad = Module(self.TEXT.replace("A[i] + 1", "A[i] + 2"))
        found = oracle.graph_failure(good, bad, "main", [ints(1, 2)])
        self.assertEqual(found.message, "result 0[0] was 6 and is 7")

    def test_what_a_callee_leaves_out_nobody_wrote(self):
        text = self.TEXT.replace("for i in range(2)", "for i in range(1)")
        results = run_graph(Module(text), "main", [ints(1, 2)])
        self.assertIs(results[0][0][1], UNWRITTEN)


class Comparison(unittest.TestCase):
    BEFORE = body("for i in range(4):", "    if i < 3:", "        B[i] = A[i]")

    def failure(self, before, after, *arrays, **options):
        before, after = Module("@T.prim_func\n" + before), Module("@T.prim_func\n" + after)
        reference = oracle.Reference(before, "main", list(arrays))
        return reference.failure(after, "main", **options)

    def kind(self, after, before=None):
        found = self.failure(before or self.BEFORE, after, ints(1, 2, 3, 4), ints(5, 6, 7, 8))
        return found and found.kind

    def test_equal(self):
        self.assertIsNone(self.kind(self.BEFORE))
        self.assertIsNone(self.kind(body("for i in range(3):", "    B[i] = A[i]")))

    def test_a_cell_that_was_left_alone(self):
        self.assertEqual(self.kind(body("for i in range(4):", "    B[i] = 0")), "value")

    def test_a_read_that_the_original_does_not_make(self):
        after = body("for i in range(4):", "    B[i] = T.Select(i < 3, A[i], B[i])")
        self.assertEqual(self.kind(after), "uninitialised")

    def test_another_value(self):
        after = body("for i in range(3):", "    B[i] = A[i] + 1")
        self.assertEqual(self.kind(after), "value")

    def test_arbitrary_values_may_become_anything_and_not_the_other_way(self):
        undef = body("for i in range(4):", '    B[i] = T.undef(dtype="int32")')
        zero = body("for i in range(4):", "    B[i] = 0")
        self.assertIsNone(self.kind(zero, undef))
        self.assertEqual(self.kind(undef, zero), "value")

    def test_illegal_originals_are_no_reference(self):
        with self.assertRaises(oracle.Illegal):
            self.failure(body("B[0] = A[4]"), self.BEFORE, ints(1, 2, 3, 4), ints(5, 6, 7, 8))

    def test_assumptions_are_made_true(self):
        text = body("for i in range(4):", "    T.assume(i < 2 or A[i] == 9)", "    B[i] = A[i]")
        module = Module("@T.prim_func\n" + text)
        reference = oracle.Reference(module, "main", [ints(1, 2, 3, 4), ints(0, 0, 0, 0)])
        self.assertEqual(reference.cells[1], [1, 2, 9, 9])

    def test_sums_of_floats_in_another_order(self):
        header = 'A: T.Buffer((4,), "float32"), B: T.Buffer((1,), "float32")'
        before = body("B[0] = A[0] + A[1] + A[2]", header=header)
        after = body("B[0] = A[0] + (A[1] + A[2])", header=header)
        arrays = numpy.array([16777216.0, 1.0, 1.0, 0], "float32"), numpy.zeros(1, "float32")
        self.assertEqual(self.failure(before, after, *arrays).kind, "value")
        self.assertIsNone(self.failure(before, after, *arrays, tolerance=1e-4))

    def test_layouts_of_arguments(self):
        layout = schedules.Layout([(lambda i: [(i + 1) // 3, (i + 1) % 3], (2, 3), None)])
        array, given = layout.physical(ints(1, 2, 3, 4), {0, 1, 2})
        self.assertEqual(array.tolist(), [[0, 1, 2], [3, 4, 0]])
        self.assertEqual(given, {1, 2, 3})
        self.assertEqual(layout.logical([9, 1, 2, 3, 4, 9], (4,)), [1, 2, 3, 4])


class Generators(unittest.TestCase):
    def test_the_same_seed_gives_the_same_program(self):
        self.assertEqual(programs.program("a"), programs.program("a"))
        self.assertNotEqual(programs.program("a"), programs.program("b"))

    def test_most_programs_are_legal(self):
        legal = 0
        for seed in range(60):
            module = Module(programs.program(seed, style=["any", "pipeline"][seed % 2]))
            try:
                arrays = oracle.data(module.tensors["main"], seed)
                oracle.Reference(module, "main", arrays)
                legal += 1
            except oracle.Illegal:
                pass
        self.assertGreater(legal, 45)

    def test_structure(self):
        text = body(
            "for i in T.serial(1, 4):",
            '    with T.block("b"):',
            "        v = T.axis.spatial(4, i)",
            "        B[v] = T.if_then_else(v < 2, A[v], 0)",
        )
        found = structure(text)
        block = found.blocks[0]
        self.assertEqual((block.name, block.kinds, block.has_if), ("b", "S", True))
        self.assertEqual([(l.name, l.extent) for l in block.loops], [("i", 3)])
        self.assertEqual((block.reads, block.writes), (["A"], ["B"]))

    def test_iterations_of_large_programs_are_counted(self):
        header = ", ".join(f'{name}: T.Buffer((65537, 70000), "int32")' for name in "AB")
        store = "B[{0}, j] = A[{0}, j] + 1"
        peeled = [
            "for j in range(70000):",
            "    " + store.format("0"),
            "    for i in range({}):",
            "        " + store.format("i + 1"),
        ]
        for extent, expected in [(65536, None), (65535, "value")]:
            text = "\n".join(peeled).format(extent).split("\n")
            text = "@T.prim_func\n" + body(*text, header=header)
            found = wide.failure(text, [65537, 70000], 1)
            self.assertEqual(found and found.kind, expected)

    def test_reduction_offers_smaller_programs(self):
        text = "@T.prim_func\n" + body("B[0] = A[0] + 1", "if A[0] > 0:", "    B[1] = 2")
        smaller = list(reduction.candidates(text))
        self.assertTrue(any("B[0]" not in s for s in smaller))
        self.assertTrue(any("if" not in s and "B[1]" in s for s in smaller))
        self.assertTrue(any("B[0] = A[0]\n" in s for s in smaller))


if __name__ == "__main__":
    unittest.main()
