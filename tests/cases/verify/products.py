# run: verify
# Products of unknowns commute and distribute over sums, also where they wrap: what is written under
# one condition is read under the same one in another form.


@T.prim_func
def f(A: T.Buffer((3,), "int32"), n: T.int32, m: T.int32, P: T.Buffer((2,), "uint64"), Q: T.Buffer((2,), "int8")):
    t = T.alloc_buffer((3,), "int32")
    if n * (m + 1) > 5:
        t[0] = 1
    if n + m * n > 5:
        A[0] = t[0]
    if (P[0] - P[1]) * (P[0] + P[1]) < T.uint64(9):
        t[1] = 2
    if P[0] * P[0] - P[1] * P[1] < T.uint64(9):
        A[1] = t[1]
    if (Q[0] + Q[1]) * (Q[0] + Q[1]) == T.int8(1):
        t[2] = 3
    if Q[0] * Q[0] + T.int8(2) * Q[1] * Q[0] + Q[1] * Q[1] == T.int8(1):
        A[2] = t[2]

# ---- other
@T.prim_func
def f(A: T.Buffer((3,), "int32"), n: T.int32, m: T.int32, P: T.Buffer((2,), "uint64"), Q: T.Buffer((2,), "int8")):
    if n * m + n > 5:
        A[0] = 1
    if P[0] * P[0] - P[1] * P[1] < T.uint64(9):
        A[1] = 2
    if (Q[0] + Q[1]) * (Q[0] + Q[1]) == T.int8(1):
        A[2] = 3

# ---- expected
