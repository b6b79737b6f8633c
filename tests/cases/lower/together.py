# run: opt --pass lower
# semantics: not compared, because random indices are out of range
# Assertions about data, which are asked for many iterations together; few of them are not, and none that keep others
# from being asked.
@T.prim_func
def rows(x: T.Buffer((3, 100), "int64"), y: T.Buffer((3, 100), "int64"), z: T.Buffer((20,), "int64")):
    for i, j in T.grid(3, 100):
        assert x[i, j] >= T.int64(0), ("{} is negative", x[i, j])
        y[i, j] = x[i, j]
    for k in range(20):
        assert x[0, k] >= T.int64(1), ("{} is not positive", x[0, k])
        z[k] = x[0, k]
    for k in range(100):
        assert k < 3 or x[0, k] >= T.int64(1), "not positive"
        assert x[1, k] >= T.int64(1), "not positive"
        y[2, k] = x[0, k]

@T.prim_func
def open(a: T.handle, b: T.handle):
    n = T.int32()
    x = T.match_buffer(a, (n,), "int64")
    y = T.match_buffer(b, (n,), "int64")
    for i in T.parallel(n):
        assert x[i] >= T.int64(0), ("{} is negative", x[i])
        y[i] = x[i]

# ---- expected
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def rows(x: T.Buffer((3, 100), "int64"), y: T.Buffer((3, 100), "int64"), z: T.Buffer((20,), "int64")):
        x_1 = T.decl_buffer((300,), "int64", data=x.data)
        y_1 = T.decl_buffer((300,), "int64", data=y.data)
        with T.decl_buffer((1,), "int32", scope="local") as holds:
            holds[0] = 1
            for i in range(300):
                holds[0] = T.min(holds[0], T.Cast("int32", x_1[i] >= T.int64(0)))
            if holds[0] < 1:
                for i in range(300):
                    assert x_1[i] >= T.int64(0), ("{} is negative", x_1[i])
            for i in range(300):
                y_1[i] = x_1[i]
        for k in range(20):
            assert x_1[k] >= T.int64(1), ("{} is not positive", x_1[k])
            z[k] = x_1[k]
        for k in range(100):
            assert k < 3 or x_1[k] >= T.int64(1), "not positive"
            assert x_1[100 + k] >= T.int64(1), "not positive"
            y_1[200 + k] = x_1[k]

    @T.prim_func
    def open(a: T.handle, b: T.handle):
        n = T.int32()
        x = T.match_buffer(a, (n,), "int64")
        y = T.match_buffer(b, (n,), "int64")
        size: T.int32 = n // 1024 + T.min(n % 1024, 1)
        if n < 32:
            for i in T.parallel(n):
                assert x[i] >= T.int64(0), ("{} is negative", x[i])
                y[i] = x[i]
        else:
            for tile in T.parallel(size):
                holds = T.decl_buffer((1,), "int32", scope="local")
                holds[0] = 1
                for i in range(tile * 1024, tile * 1024 + T.min(n - tile * 1024, 1024)):
                    holds[0] = T.min(holds[0], T.Cast("int32", x[i] >= T.int64(0)))
                if holds[0] < 1:
                    for i in range(tile * 1024, tile * 1024 + T.min(n - tile * 1024, 1024)):
                        assert x[i] >= T.int64(0), ("{} is negative", x[i])
                for i in range(tile * 1024, tile * 1024 + T.min(n - tile * 1024, 1024)):
                    y[i] = x[i]
