# run: opt --pass schedule_stages,lower
# output: not compared, only what it computes


@T.prim_func
def softmax(X: T.Buffer((5, 19), "float32"), Y: T.Buffer((5, 19), "float32")):
    M = T.alloc_buffer((5,), "float32")
    E = T.alloc_buffer((5, 19), "float32")
    S = T.alloc_buffer((5,), "float32")
    for i, k in T.grid(5, 19):
        with T.block("M"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.float32("-inf")
            M[vi] = T.max(M[vi], X[vi, vk])
    for i, j in T.grid(5, 19):
        with T.block("E"):
            vi, vj = T.axis.remap("SS", [i, j])
            E[vi, vj] = T.exp(X[vi, vj] - M[vi])
    for i, k in T.grid(5, 19):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = 0.0
            S[vi] = S[vi] + E[vi, vk]
    for i, j in T.grid(5, 19):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = E[vi, vj] / S[vi]
