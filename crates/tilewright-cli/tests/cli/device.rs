//! `compile --target opencl`: kernels, and a C program that runs them. Without the headers of OpenCL, or
//! without a device, these tests say so and pass; with `TILEWRIGHT_TEST_DEVICE=1` they fail without a device.

use std::path::Path;
use std::process::{Command, Output};

use tilewright_driver::Tensor;
use tilewright_driver::compare::{Tolerance, compare};
use tilewright_runtime::npz;

use super::{Scratch, digits, tilewright};

/// `main FOLDER SIZE...`: runs the model `m` twice on the inputs `in.0`, ..., and writes `out.0`, ...
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include "m.h"

static int fail(int result) {
    const char *message = m_message(result);
    fprintf(stderr, "%d: %s\n", result, message != NULL ? message : "");
    return 1;
}

int main(int argc, char **argv) {
    const char *folder = argv[1];
    cl_platform_id platform;
    cl_device_id device;
    cl_int error;
    if (clGetPlatformIDs(1, &platform, NULL) != 0) return 10;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != 0) return 11;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    if (error != 0) return 12;
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &error);
    if (error != 0) return 13;
#ifdef M_SIZES
    static int64_t shapes[M_SHAPES];
    int64_t sizes[M_SIZES];
    if (argc != 2 + M_SIZES) return 14;
    for (int k = 0; k < M_SIZES; k++) sizes[k] = atoi(argv[2 + k]);
    int bad = m_shapes(sizes, shapes);
    if (bad != 0) return fail(bad);
    const size_t in[] = {(size_t)shapes[M_SHAPES_INPUT_0_BYTES]};
    const size_t out[] = {(size_t)shapes[M_SHAPES_OUTPUT_0_BYTES], (size_t)shapes[M_SHAPES_OUTPUT_1_BYTES]};
#else
    if (argc != 2) return 14;
    const size_t in[] = {M_INPUT_0_BYTES
#if M_INPUTS > 1
    , M_INPUT_1_BYTES
#endif
    };
    const size_t out[] = {M_OUTPUT_0_BYTES};
#endif
    void *inputs[M_INPUTS], *outputs[M_OUTPUTS];
    char path[4096];
    for (int k = 0; k < M_INPUTS; k++) {
        sprintf(path, "%s/in.%d", folder, k);
        FILE *file = fopen(path, "rb");
        inputs[k] = malloc(in[k]);
        if (!file || fread(inputs[k], 1, in[k], file) != in[k] || fclose(file) != 0) return 15;
    }
    for (int k = 0; k < M_OUTPUTS; k++) outputs[k] = malloc(out[k]);
    m_program *program;
    int result = m_open(context, device, folder, &program);
    for (int run = 0; result == 0 && run < 2; run++) {
#ifdef M_SIZES
        result = m_run(program, queue, shapes, (const void *const *)inputs, outputs);
#else
        result = m_run(program, queue, (const void *const *)inputs, outputs);
#endif
    }
    if (result != 0) {
        if (m_log(program) != NULL) fprintf(stderr, "%s\n", m_log(program));
        m_close(program);
        return fail(result);
    }
    m_close(program);
    for (int k = 0; k < M_OUTPUTS; k++) {
        sprintf(path, "%s/out.%d", folder, k);
        FILE *file = fopen(path, "wb");
        if (!file || fwrite(outputs[k], 1, out[k], file) != out[k] || fclose(file) != 0) return 16;
    }
    return 0;
}
"#;

/// Whether there is a device with headers; else why not is said.
fn is_there() -> bool {
    if let Err(e) = tilewright_driver::Options::new().on("opencl") {
        assert!(std::env::var_os("TILEWRIGHT_TEST_DEVICE").is_none(), "{e}");
        eprintln!("a test of C code for a device did not run: {e}");
        return false;
    }
    let headers = Path::new("/usr/include/CL/cl.h").exists();
    if !headers {
        eprintln!("a test of C code for a device did not run: /usr/include/CL/cl.h is not there");
    }
    headers
}

/// A model for a device and the C program around it.
struct Built(Scratch);

impl Built {
    /// Compiles a model and the program.
    fn new(model: &str, more: &[&str]) -> Built {
        let scratch = Scratch::new();
        Built::inside(scratch, model, more)
    }

    fn inside(scratch: Scratch, model: &str, more: &[&str]) -> Built {
        let kernels = scratch.path("m.cl");
        let compile = ["compile", model, "--target", "opencl", "-o", &kernels];
        tilewright(&[&compile, more].concat()).code(0).complains("m.c, ");
        let main = scratch.file("main.c", PROGRAM);
        let built = Command::new("cc")
            .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations"])
            .args([&main, &scratch.path("m.c"), "-l:libOpenCL.so.1", "-o", &scratch.path("main")])
            .output()
            .expect("there is a C compiler");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Built(scratch)
    }

    fn run(&self, inputs: &[&[u8]], sizes: &[usize]) -> Output {
        for (k, bytes) in inputs.iter().enumerate() {
            self.0.file(&format!("in.{k}"), bytes);
        }
        let folder = self.0.path(".");
        let sizes = sizes.iter().map(usize::to_string);
        Command::new(self.0.path("main")).arg(folder).args(sizes).output().expect("it starts")
    }

    /// The output of this number after a run that succeeds.
    fn output(&self, k: usize, like: &Tensor, ran: &Output) -> Tensor {
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{:?} {said}", ran.status);
        let bytes = std::fs::read(self.0.path(&format!("out.{k}"))).expect("it was written");
        Tensor::from_bytes(like.dtype(), like.shape(), &bytes).expect("it fits")
    }
}

#[test]
fn a_c_program_runs_a_model_at_every_size() {
    if !is_there() {
        return;
    }
    let built = Built::new(&digits("digits.onnx"), &[]);
    let images = npz::read(digits("test_inputs.npz")).expect("it is there");
    let expected = npz::read(digits("test_expected.npz")).expect("it is there");
    for count in [1, 97, 13] {
        let bytes = &images["image"].bytes()[..count * 4 * 64];
        let ran = built.run(&[bytes], &[count]);
        for (k, name) in ["logits", "probabilities"].iter().enumerate() {
            let whole = expected[*name].as_slice::<f32>().expect("floats");
            let expected = Tensor::from_slice(&[count, 10], &whole[..count * 10]).expect("it fits");
            let comparison =
                compare(&built.output(k, &expected, &ran), &expected, Tolerance::default());
            assert!(comparison.agrees(), "{name} of {count}: {comparison}");
        }
    }
    let refused = built.run(&[&[0; 256]], &[0]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("the size `N` must be at least 1"), "{said}");
    std::fs::write(built.0.path("m.bin"), b"short").expect("it can be written");
    let refused = built.run(&[&[0; 256]], &[1]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("-20000: the files of the model"), "{said}");
}

/// Twice the input in a texture with a border, then the sum of what lies left of it in a group of threads,
/// then what another input points to.
const SCRIPT: &str = r#"
@T.prim_func
def f(A: T.Buffer((2, 5, 8, 4), "float32"), I: T.Buffer((5,), "int32"), B: T.Buffer((2, 5, 8, 4), "float32")):
    X = T.alloc_buffer((2, 5, 8, 4), "float32", scope="global.texture", axis_separators=[2])
    Y = T.alloc_buffer((2, 5, 8, 4), "float32")
    for n, h, w, c in T.grid(2, 5, 8, 4):
        with T.block("X"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            X[vn, vh, vw, vc] = A[vn, vh, vw, vc] * T.float32(2)
    for n in T.thread_binding(2, thread="blockIdx.x"):
        for w in T.thread_binding(8, thread="threadIdx.x"):
            for h, c in T.grid(5, 4):
                with T.block("Y"):
                    vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
                    Y[vn, vh, vw, vc] = X[vn, vh, vw, vc] + T.if_then_else(1 <= vw, X[vn, vh, vw - 1, vc], T.float32(0))
    for n, h, w, c in T.grid(2, 5, 8, 4):
        with T.block("B"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            B[vn, vh, vw, vc] = Y[vn, I[vh], vw, vc]
"#;

#[test]
fn a_c_program_uses_textures_and_groups_and_says_which_assertion_failed() {
    if !is_there() {
        return;
    }
    let scratch = Scratch::new();
    let model = scratch.file("f.py", SCRIPT);
    let built = Built::inside(scratch, &model, &["--no-schedule"]);
    let a: Vec<f32> = (0..320).map(|k| k as f32).collect();
    let a = Tensor::from_slice(&[2, 5, 8, 4], &a).expect("it fits");
    let rows = |last: i32| Tensor::from_slice(&[5], &[4, 3, 2, 1, last]).expect("it fits");
    let ran = built.run(&[a.bytes(), rows(0).bytes()], &[]);
    let b = built.output(0, &a, &ran);
    for k in 0..320 {
        let (n, h, w, c) = (k / 160, k / 32 % 5, k / 4 % 8, k % 4);
        let at = |w: usize| a.get_f64(((n * 5 + 4 - h) * 8 + w) * 4 + c);
        let expected = 2.0 * (at(w) + if w > 0 { at(w - 1) } else { 0.0 });
        assert_eq!(b.get_f64(k), expected, "{n} {h} {w} {c}");
    }
    let failed = built.run(&[a.bytes(), rows(7).bytes()], &[]);
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert_eq!(failed.status.code(), Some(1), "{said}");
    assert!(said.contains("is out of range: axis 1 has extent 5"), "{said}");
}

#[test]
fn kernels_are_a_file_of_their_own() {
    if !is_there() {
        return;
    }
    let scratch = Scratch::new();
    let model = digits("digits.onnx");
    let compile = ["compile", &model, "--target", "opencl", "--emit", "cl"];
    let text = tilewright(&compile).code(0).out;
    let helpers: Vec<&str> = text.lines().filter(|line| line.starts_with("static ")).collect();
    let different: std::collections::HashSet<&&str> = helpers.iter().collect();
    assert_eq!(helpers.len(), different.len(), "a helper is there once: {helpers:?}");
    assert!(text.matches("__kernel void ").count() > 3, "{text}");
    let out = scratch.path("m.txt");
    tilewright(&[&compile[..], &["-o", &out]].concat())
        .code(2)
        .complains("kernels are a file `.cl`");
}
