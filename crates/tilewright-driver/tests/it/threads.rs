//! Schedules for groups of threads: what threads compute is what the function says, on the interpreter, which
//! reports races, and on a device of OpenCL where there is one.

use tilewright_autoschedule::auto_schedule;
use tilewright_driver::random::Random;
use tilewright_driver::{Module, Sizes, Target, Tensor, compile, parse, print};
use tilewright_interp::{Arg, RunOptions, run_func};
use tilewright_ir::{DType, Remarks};

/// A function, with the shapes of its arguments; the last one is written.
struct Case {
    text: &'static str,
    shapes: &'static [&'static [usize]],
}

const CASES: [Case; 13] = [
    Case {
        text: r#"
@T.prim_func
def main(A: T.Buffer((5, 131), "float32"), B: T.Buffer((131,), "float32"), C: T.Buffer((5, 131), "float32")):
    for i, j in T.grid(5, 131):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * B[vj]
"#,
        shapes: &[&[5, 131], &[131], &[5, 131]],
    },
    Case {
        text: r#"
@T.prim_func
def main(A: T.Buffer((33, 47), "float32"), C: T.Buffer((47, 33), "float32")):
    for i, j in T.grid(47, 33):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vj, vi]
"#,
        shapes: &[&[33, 47], &[47, 33]],
    },
    Case {
        text: r#"
@T.prim_func
def main(A: T.Buffer((13, 29), "float32"), C: T.Buffer((13,), "float32")):
    M = T.alloc_buffer((13,), "float32")
    for i, j in T.grid(13, 29):
        with T.block("M"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                M[vi] = T.float32(-1)
            M[vi] = T.max(M[vi], A[vi, vj])
    for i in range(13):
        with T.block("C"):
            vi = T.axis.spatial(13, i)
            C[vi] = T.exp(M[vi])
"#,
        shapes: &[&[13, 29], &[13]],
    },
    Case {
        text: r#"
@T.prim_func
def main(A: T.Buffer((127, 11), "float32"), B: T.Buffer((11, 131), "float32"), C: T.Buffer((127, 131), "float32")):
    for i, j, k in T.grid(127, 131, 11):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"#,
        shapes: &[&[127, 11], &[11, 131], &[127, 131]],
    },
    Case {
        text: r#"
@T.prim_func
def main(A: T.Buffer((3, 64, 7), "float32"), B: T.Buffer((3, 7, 96), "float32"), C: T.Buffer((3, 64, 96), "float32")):
    for n, i, j, k in T.grid(3, 64, 96, 7):
        with T.block("C"):
            vn, vi, vj, vk = T.axis.remap("SSSR", [n, i, j, k])
            with T.init():
                C[vn, vi, vj] = T.float32(0)
            C[vn, vi, vj] = C[vn, vi, vj] + A[vn, vi, vk] * B[vn, vk, vj]
"#,
        shapes: &[&[3, 64, 7], &[3, 7, 96], &[3, 64, 96]],
    },
    Case {
        text: r#"
@T.prim_func
def main(A: T.Buffer((3, 11, 13), "float32"), B: T.Buffer((6, 3, 3, 3), "float32"), C: T.Buffer((6, 9, 11), "float32")):
    for o, h, w, c, y, x in T.grid(6, 9, 11, 3, 3, 3):
        with T.block("C"):
            vo, vh, vw, vc, vy, vx = T.axis.remap("SSSRRR", [o, h, w, c, y, x])
            with T.init():
                C[vo, vh, vw] = T.float32(0)
            C[vo, vh, vw] = C[vo, vh, vw] + A[vc, vh + vy, vw + vx] * B[vo, vc, vy, vx]
"#,
        shapes: &[&[3, 11, 13], &[6, 3, 3, 3], &[6, 9, 11]],
    },
    // Rows that the threads of a group share.
    Case {
        text: r#"
@T.prim_func
def main(A: T.Buffer((7, 1000), "float32"), C: T.Buffer((7,), "float32")):
    for i, j in T.grid(7, 1000):
        with T.block("C"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vj]
"#,
        shapes: &[&[7, 1000], &[7]],
    },
    // Columns, with some threads along the rows.
    Case {
        text: r#"
@T.prim_func
def main(A: T.Buffer((300, 3, 70), "float32"), C: T.Buffer((3, 70), "float32")):
    for j, k, i in T.grid(3, 70, 300):
        with T.block("C"):
            vj, vk, vi = T.axis.remap("SSR", [j, k, i])
            with T.init():
                C[vj, vk] = T.float32(-3)
            C[vj, vk] = T.max(C[vj, vk], A[vi, vj, vk])
"#,
        shapes: &[&[300, 3, 70], &[3, 70]],
    },
    // A softmax: rows with two axes, and what follows them.
    Case {
        text: r#"
@T.prim_func
def main(A: T.Buffer((4, 9, 11), "float32"), C: T.Buffer((4, 9, 11), "float32")):
    M = T.alloc_buffer((4,), "float32")
    S = T.alloc_buffer((4,), "float32")
    for i, j, k in T.grid(4, 9, 11):
        with T.block("M"):
            vi, vj, vk = T.axis.remap("SRR", [i, j, k])
            with T.init():
                M[vi] = T.float32(-100)
            M[vi] = T.max(M[vi], A[vi, vj, vk])
    for i, j, k in T.grid(4, 9, 11):
        with T.block("S"):
            vi, vj, vk = T.axis.remap("SRR", [i, j, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + T.exp(A[vi, vj, vk] - M[vi])
    for i, j, k in T.grid(4, 9, 11):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            C[vi, vj, vk] = T.exp(A[vi, vj, vk] - M[vi]) / S[vi]
"#,
        shapes: &[&[4, 9, 11], &[4, 9, 11]],
    },
    // What is copied across has axes between.
    Case {
        text: r#"
@T.prim_func
def main(A: T.Buffer((2, 40, 3, 50), "float32"), C: T.Buffer((2, 50, 3, 40), "float32")):
    for n, i, k, j in T.grid(2, 50, 3, 40):
        with T.block("C"):
            vn, vi, vk, vj = T.axis.remap("SSSS", [n, i, k, j])
            C[vn, vi, vk, vj] = A[vn, vj, vk, vi] * T.float32(2)
"#,
        shapes: &[&[2, 40, 3, 50], &[2, 50, 3, 40]],
    },
    // A convolution with what pads the image and what follows: one kernel, whose tiles are of several rows.
    Case {
        text: r#"
@T.prim_func
def main(A: T.Buffer((2, 17, 9, 11), "float32"), B: T.Buffer((21, 17, 3, 3), "float32"), D: T.Buffer((21,), "float32"), C: T.Buffer((2, 21, 9, 11), "float32")):
    P = T.alloc_buffer((2, 17, 11, 13), "float32")
    S = T.alloc_buffer((2, 21, 9, 11), "float32")
    for n, c, h, w in T.grid(2, 17, 11, 13):
        with T.block("P"):
            vn, vc, vh, vw = T.axis.remap("SSSS", [n, c, h, w])
            P[vn, vc, vh, vw] = T.if_then_else(vh >= 1 and vh < 10 and vw >= 1 and vw < 12, A[vn, vc, vh - 1, vw - 1], T.float32(0))
    for n, o, h, w, c, y, x in T.grid(2, 21, 9, 11, 17, 3, 3):
        with T.block("S"):
            vn, vo, vh, vw, vc, vy, vx = T.axis.remap("SSSSRRR", [n, o, h, w, c, y, x])
            with T.init():
                S[vn, vo, vh, vw] = T.float32(0)
            S[vn, vo, vh, vw] = S[vn, vo, vh, vw] + P[vn, vc, vh + vy, vw + vx] * B[vo, vc, vy, vx]
    for n, o, h, w in T.grid(2, 21, 9, 11):
        with T.block("C"):
            vn, vo, vh, vw = T.axis.remap("SSSS", [n, o, h, w])
            C[vn, vo, vh, vw] = T.max(S[vn, vo, vh, vw] + D[vo], T.float32(0))
"#,
        shapes: &[&[2, 17, 9, 11], &[21, 17, 3, 3], &[21], &[2, 21, 9, 11]],
    },
    // Windows two cells apart, channels last, and a result in another order.
    Case {
        text: r#"
@T.prim_func
def main(A: T.Buffer((21, 33, 16), "float32"), B: T.Buffer((3, 3, 16, 40), "float32"), C: T.Buffer((40, 10, 16), "float32")):
    S = T.alloc_buffer((10, 16, 40), "float32")
    for h, w, o, y, x, c in T.grid(10, 16, 40, 3, 3, 16):
        with T.block("S"):
            vh, vw, vo, vy, vx, vc = T.axis.remap("SSSRRR", [h, w, o, y, x, c])
            with T.init():
                S[vh, vw, vo] = T.float32(0)
            S[vh, vw, vo] = S[vh, vw, vo] + A[vh * 2 + vy, vw * 2 + vx, vc] * B[vy, vx, vc, vo]
    for o, h, w in T.grid(40, 10, 16):
        with T.block("C"):
            vo, vh, vw = T.axis.remap("SSS", [o, h, w])
            C[vo, vh, vw] = T.exp(S[vh, vw, vo] * T.float32(0.125))
"#,
        shapes: &[&[21, 33, 16], &[3, 3, 16, 40], &[40, 10, 16]],
    },
    // A product large enough that threads have many sums.
    Case {
        text: r#"
@T.prim_func
def main(A: T.Buffer((300, 9), "float32"), B: T.Buffer((9, 270), "float32"), C: T.Buffer((300, 270), "float32")):
    for i, j, k in T.grid(300, 270, 9):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"#,
        shapes: &[&[300, 9], &[9, 270], &[300, 270]],
    },
];

impl Case {
    fn inputs(&self) -> Vec<Tensor> {
        let mut random = Random::new(7);
        let inputs = &self.shapes[..self.shapes.len() - 1];
        inputs.iter().map(|s| random.tensor(DType::F32, s).expect("a tensor")).collect()
    }

    /// What the interpreter makes of a module.
    fn interpreted(&self, module: &Module) -> Vec<f32> {
        let f = module.tensor("main").expect("a function");
        let mut args: Vec<Arg> = self.inputs().into_iter().map(Arg::Tensor).collect();
        args.push(Arg::Fresh(self.shapes.last().map(|s| s.to_vec())));
        let outcome = run_func(f, &args, &RunOptions::default());
        let mut outputs = outcome.unwrap_or_else(|e| panic!("{}", e.render())).outputs;
        let tensor = outputs.pop().expect("an output").into_tensor().expect("it is written");
        tensor.as_slice::<f32>().expect("floats").to_vec()
    }
}

fn gpu() -> Target {
    Target::new("cuda", "sm_80", "+fp64,+fma")
}

#[test]
fn threads_compute_what_the_function_says() {
    let device = super::device::device().map(|options| options.schedule(false));
    for case in &CASES {
        let module = parse(case.text, &Sizes::new()).expect("a module");
        let mut why = Remarks::new();
        let (scheduled, trace) = auto_schedule(&module, &gpu(), &mut why).expect("a schedule");
        let text = print(&scheduled);
        assert!(text.contains("blockIdx.x") && text.contains("threadIdx.x"), "{text}");
        assert!(!trace.instructions.is_empty());
        let expected = case.interpreted(&module);
        let threads = case.interpreted(&scheduled);
        assert!(near(&threads, &expected), "{text}");
        let Some(options) = &device else { continue };
        let executable = compile(&scheduled, options).unwrap_or_else(|e| panic!("{}", e.render()));
        let out = executable.run(&case.inputs()).unwrap_or_else(|e| panic!("{}", e.render()));
        assert!(near(out[0].as_slice::<f32>().expect("floats"), &expected), "{text}");
    }
}

fn near(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| (x - y).abs() <= 1e-5 * (1.0 + y.abs()))
}

/// Sums of a ragged product are a tile in registers of a thread, beyond whose end nothing is stored.
#[test]
fn products_are_computed_in_tiles_of_registers() {
    let large = CASES[3].text.replace("127", "509").replace("131", "515");
    let module = parse(&large, &Sizes::new()).expect("a module");
    let mut why = Remarks::new();
    let (scheduled, _) = auto_schedule(&module, &gpu(), &mut why).expect("a schedule");
    assert_eq!(refused(&why), "");
    let text = print(&scheduled);
    assert!(text.contains("scope=\"local\"") && text.contains("threadIdx.y"), "{text}");
    let unrolled = [2, 4, 8].map(|n| text.matches(&format!("T.unroll({n})")).count());
    assert_eq!(unrolled.iter().sum::<usize>(), 6, "{text}");
}

/// What primitives refused; other remarks say which layouts shared memory has.
fn refused(why: &Remarks) -> String {
    let all = why.iter().map(|e| e.render());
    all.filter(|text| text.contains("function `main`")).collect()
}

/// Which loops a case gets, and what was refused.
fn scheduled(case: &Case) -> (String, String) {
    let module = parse(case.text, &Sizes::new()).expect("a module");
    let mut why = Remarks::new();
    let (scheduled, _) = auto_schedule(&module, &gpu(), &mut why).expect("a schedule");
    (print(&scheduled), refused(&why))
}

/// Rows, columns and copies across go through memory that a group shares, and nothing is refused on the way.
#[test]
fn groups_share_rows_and_tiles() {
    for case in &CASES[6..] {
        let (text, why) = scheduled(case);
        assert_eq!(why, "", "{text}");
        assert!(text.contains("scope=\"shared\""), "{text}");
    }
    let (text, why) = scheduled(&CASES[1]);
    assert!(why.is_empty() && text.contains("scope=\"shared\""), "{text}");
}

/// What pads the operand of a contraction and what follows its sums are in its kernel.
#[test]
fn convolutions_are_one_kernel() {
    for case in &CASES[10..] {
        let (text, _) = scheduled(case);
        assert_eq!(text.matches("blockIdx.x").count(), 1, "{text}");
    }
}
