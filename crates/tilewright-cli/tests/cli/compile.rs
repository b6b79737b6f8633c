//! `compile`.

use std::process::Command;

use tilewright_driver::Tensor;
use tilewright_runtime::npz;

use super::{Done, Scratch, digits, reshape, tilewright};

/// Compiles the digits model for so many images.
fn compile_digits(images: usize, more: &[&str]) -> Done {
    let (model, dim) = (digits("digits.onnx"), format!("N={images}"));
    tilewright(&[&["compile", &model, "--dim", &dim], more].concat())
}

/// Runs the library on the images of a file, and writes what it gives to others.
const PROGRAM: &str = r#"
#include <stdio.h>
#include "digits.h"

static float image[DIGITS_INPUT_0_ELEMENTS];
static float logits[DIGITS_OUTPUT_0_ELEMENTS];
static float probabilities[DIGITS_OUTPUT_1_ELEMENTS];

static int write_all(const char *path, const void *from, size_t bytes) {
    FILE *file = fopen(path, "wb");
    return file && fwrite(from, 1, bytes, file) == bytes && fclose(file) == 0;
}

int main(int argc, char **argv) {
    if (argc != 4) return 10;
    FILE *file = fopen(argv[1], "rb");
    if (!file || fread(image, 1, sizeof image, file) != sizeof image) return 11;
    const void *inputs[DIGITS_INPUTS] = {image};
    void *outputs[DIGITS_OUTPUTS] = {logits, probabilities};
    int result = digits_run(inputs, outputs, NULL);
    if (result != 0) {
        fprintf(stderr, "%d: %s\n", result, digits_message(result));
        return 12;
    }
    if (sizeof logits != DIGITS_OUTPUT_0_BYTES) return 13;
    return write_all(argv[2], logits, sizeof logits)
        && write_all(argv[3], probabilities, sizeof probabilities) ? 0 : 14;
}
"#;

/// Compiles a C program and links it with a library beside it; where the program is.
fn link(scratch: &Scratch, standard: &str, source: &str, library: &str) -> String {
    let program = scratch.path("main");
    let standard = format!("-std={standard}");
    let built = Command::new("cc")
        .args([&*standard, "-Wall", "-Wextra", "-Werror", source, library])
        .args(["-lm", "-Wl,-rpath,$ORIGIN", "-o", &program])
        .output()
        .expect("there is a C compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program
}

#[test]
fn a_c_program_runs_the_library() {
    check_library("so");
}

#[test]
fn a_c_program_runs_a_static_library() {
    check_library("a");
}

/// Compares what a library of this form computes with what is expected.
fn check_library(form: &str) {
    let scratch = Scratch::new();
    let library = scratch.path(&format!("libdigits.{form}"));
    compile_digits(97, &["-o", &library]).code(0).complains("note: wrote ");
    // The header stands beside the library, under the library's name.
    std::fs::rename(scratch.path("libdigits.h"), scratch.path("digits.h")).expect("a header");

    let source = scratch.file("main.c", PROGRAM);
    let program = link(&scratch, "c99", &source, &library);

    let images = npz::read(digits("test_inputs.npz")).expect("it is there");
    let input = scratch.file("in.bin", images["image"].bytes());
    let outputs = ["logits", "probabilities"].map(|name| scratch.path(name));
    let ran = Command::new(&program).arg(&input).args(&outputs).output().expect("it starts");
    assert!(ran.status.success(), "{:?} {}", ran.status, String::from_utf8_lossy(&ran.stderr));

    let expected = npz::read(digits("test_expected.npz")).expect("it is there");
    for (name, path) in ["logits", "probabilities"].iter().zip(&outputs) {
        let bytes = std::fs::read(path).expect("the program wrote it");
        let expected = &expected[*name];
        let got = Tensor::from_bytes(expected.dtype(), expected.shape(), &bytes).expect("it fits");
        let tolerance = tilewright_driver::compare::Tolerance::default();
        let comparison = tilewright_driver::compare::compare(&got, expected, tolerance);
        assert!(comparison.agrees(), "{name}: {comparison}");
    }
}

/// Runs the library on the first images of a file, as many as the second argument says, and writes
/// the logits to another one.
const OPEN_PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include "digits.h"

static int64_t shapes[DIGITS_SHAPES];

int main(int argc, char **argv) {
    if (argc != 4 || DIGITS_SIZES != 1) return 10;
    const int64_t sizes[DIGITS_SIZES] = {[DIGITS_SIZE_0] = atoi(argv[2])};
    int result = digits_shapes(sizes, shapes);
    if (result != 0) {
        fprintf(stderr, "%d: %s\n", result, digits_message(result));
        return 12;
    }
    size_t bytes = (size_t)shapes[DIGITS_SHAPES_INPUT_0_BYTES];
    void *image = malloc(bytes);
    FILE *file = fopen(argv[1], "rb");
    if (!file || fread(image, 1, bytes, file) != bytes) return 11;
    size_t written = (size_t)shapes[DIGITS_SHAPES_OUTPUT_0_BYTES];
    void *logits = malloc(written);
    void *probabilities = malloc((size_t)shapes[DIGITS_SHAPES_OUTPUT_1_BYTES]);
    const int64_t *extents = shapes + DIGITS_SHAPES_OUTPUT_0;
    if (DIGITS_OUTPUT_0_RANK != 2 || extents[0] != sizes[0] || extents[1] != 10) return 13;
    const void *inputs[DIGITS_INPUTS] = {image};
    void *outputs[DIGITS_OUTPUTS] = {logits, probabilities};
    void *arena = aligned_alloc(64, (size_t)shapes[DIGITS_SHAPES_ARENA_BYTES]);
    if (digits_run(shapes, inputs, outputs, NULL) != 0) return 14;
    if (digits_run(shapes, inputs, outputs, arena) != 0) return 15;
    file = fopen(argv[3], "wb");
    return file && fwrite(logits, 1, written, file) == written && fclose(file) == 0 ? 0 : 16;
}
"#;

#[test]
fn a_library_of_open_sizes_runs_at_every_size() {
    runs_at_every_size(&[]);
}

#[test]
fn a_library_with_versions_runs_at_every_size() {
    let header = runs_at_every_size(&["--specialize", "N=2,97"]);
    assert!(header.contains("   N = 2\n   N = 97\n"), "{header}");
}

/// Checks the library that is compiled so; its header.
fn runs_at_every_size(more: &[&str]) -> String {
    let scratch = Scratch::new();
    let library = scratch.path("libdigits.so");
    let model = digits("digits.onnx");
    tilewright(&[&["compile", &model, "-o", &library], more].concat()).code(0);
    std::fs::rename(scratch.path("libdigits.h"), scratch.path("digits.h")).expect("a header");
    let source = scratch.file("main.c", OPEN_PROGRAM);
    let program = link(&scratch, "c11", &source, &library);

    let images = npz::read(digits("test_inputs.npz")).expect("it is there");
    let expected = npz::read(digits("test_expected.npz")).expect("it is there");
    let input = scratch.file("in.bin", images["image"].bytes());
    let output = scratch.path("logits");
    let run = |count: &str| {
        Command::new(&program).args([&input, count, &output]).output().expect("it starts")
    };
    for count in [1, 2, 13, 97] {
        let ran = run(&count.to_string());
        assert!(ran.status.success(), "{:?} {}", ran.status, String::from_utf8_lossy(&ran.stderr));
        let bytes = std::fs::read(&output).expect("the program wrote it");
        let whole = expected["logits"].as_slice::<f32>().expect("floats");
        let expected = Tensor::from_slice(&[count, 10], &whole[..count * 10]).expect("it fits");
        let got = Tensor::from_bytes(expected.dtype(), expected.shape(), &bytes).expect("it fits");
        let tolerance = tilewright_driver::compare::Tolerance::default();
        let comparison = tilewright_driver::compare::compare(&got, &expected, tolerance);
        assert!(comparison.agrees(), "{count}: {comparison}");
    }
    let refused = run("0");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(12), "{said}");
    assert!(said.contains("the size `N` must be at least 1 and at most 2^31 - 2^16"), "{said}");
    std::fs::read_to_string(scratch.path("digits.h")).expect("it was written")
}

/// A row of twice the column that an input says.
const PICK: &str = r#"
@T.prim_func
def pick(a: T.handle, at: T.Buffer((1,), "int32"), b: T.handle):
    n, m = T.int64(), T.int64()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi, at[0]] * T.float32(2)
"#;

/// Runs it with the sizes and the column that the arguments say; prints the result and the row.
const PICK_PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include "pick.h"

int main(int argc, char **argv) {
    if (argc != 4) return 10;
    const int64_t sizes[PICK_SIZES] = {atoi(argv[1]), atoi(argv[2])};
    const int32_t at = atoi(argv[3]);
    int64_t shapes[PICK_SHAPES];
    if (pick_shapes(sizes, shapes) != 0) return 11;
    float *a = malloc((size_t)shapes[PICK_SHAPES_INPUT_0_BYTES]);
    float *b = malloc((size_t)shapes[PICK_SHAPES_OUTPUT_0_BYTES]);
    for (int k = 0; k < sizes[0] * sizes[1]; ++k) a[k] = (float)k;
    const void *inputs[PICK_INPUTS] = {a, &at};
    void *outputs[PICK_OUTPUTS] = {b};
    int result = pick_run(shapes, inputs, outputs, NULL);
    printf("%d", result);
    if (result != 0) printf(" %s", pick_message(result));
    for (int k = 0; result == 0 && k < sizes[0]; ++k) printf(" %g", b[k]);
    return 0;
}
"#;

#[test]
fn versions_may_leave_other_sizes_open_and_say_their_own_failures() {
    let scratch = Scratch::new();
    let (model, library) = (scratch.file("pick.py", PICK), scratch.path("pick.so"));
    let compile = |more: &[&str]| {
        tilewright(&[&["compile", &model, "-o", &library, "--no-cache"], more].concat())
    };
    let built = || {
        let source = scratch.file("main.c", PICK_PROGRAM);
        let program = link(&scratch, "c11", &source, &library);
        move |arguments: [&str; 3]| {
            let ran = Command::new(&program).args(arguments).output().expect("it starts");
            assert!(ran.status.success(), "{:?}", ran.status);
            String::from_utf8(ran.stdout).expect("text")
        }
    };
    compile(&[]).code(0);
    let plain = built();
    let failure = plain(["3", "4", "7"]);
    assert!(failure.starts_with(|c: char| c.is_ascii_digit() && c != '0'), "{failure}");
    let number = |text: &str| text.split(' ').next().and_then(|n| n.parse::<i32>().ok());

    compile(&["--specialize", "n=3,5", "--specialize", "m=6"]).code(0);
    compile(&["--specialize", "n=3,5"]).code(0);
    let run = built();
    // Each version says the same message under a number of its own.
    let said = ["2", "3", "5"].map(|n| run([n, "4", "7"]));
    assert_eq!(said[0], failure);
    let numbers = said.each_ref().map(|text| number(text).expect("a number"));
    assert!(numbers[0] < numbers[1] && numbers[1] < numbers[2], "{said:?}");
    let message = |text: &str| text.split_once(' ').map(|(_, message)| message.to_owned());
    assert!(said.iter().all(|text| message(text) == message(&failure)), "{said:?}");
    assert_eq!(run(["3", "4", "1"]), "0 2 10 18");
    assert_eq!(run(["2", "3", "2"]), "0 4 10");
    assert_eq!(run(["5", "1", "0"]), "0 0 2 4 6 8");

    compile(&["--specialize", "k=3"]).code(2).complains("`k`");
    let object = scratch.path("pick.o");
    let refused = tilewright(&["compile", &model, "-o", &object, "--specialize", "n=3"]);
    refused.code(2).complains("--specialize is for libraries");
}

/// What is linked with a library asks for it by the name of its file.
#[cfg(target_os = "linux")]
#[test]
fn a_library_carries_the_name_of_its_file() {
    let scratch = Scratch::new();
    let library = scratch.path("libdigits-1.2.so");
    let done = ["compile", &digits("digits.onnx"), "-o", &library, "--name", "digits"];
    tilewright(&done).code(0);
    let program =
        scratch.file("main.c", "int digits_run(); int main() { return digits_run != 0 ? 0 : 1; }");
    let out = scratch.path("main");
    let linked = Command::new("cc").args([&program, &library, "-o", &out]).output();
    let linked = linked.expect("cc runs");
    assert!(linked.status.success(), "{}", String::from_utf8_lossy(&linked.stderr));
    let run = Command::new(&out).env("LD_LIBRARY_PATH", scratch.path("")).status();
    assert!(run.expect("it runs").success());
    // By its name, and not by its path: elsewhere it is found as well.
    std::fs::create_dir(scratch.path("elsewhere")).expect("a directory");
    let moved = scratch.path("elsewhere/libdigits-1.2.so");
    std::fs::rename(&library, &moved).expect("it can be moved");
    let run = Command::new(&out).env("LD_LIBRARY_PATH", scratch.path("elsewhere")).status();
    assert!(run.expect("it runs").success());
}

#[test]
fn an_object_has_a_header_and_the_symbols_of_its_name() {
    let scratch = Scratch::new();
    let object = scratch.path("x.o");
    compile_digits(1, &["--output", &object, "--name", "my_net"]).code(0);
    let bytes = std::fs::read(&object).expect("it was written");
    let symbol = b"my_net_run\0";
    assert!(bytes.windows(symbol.len()).any(|part| part == symbol));
    let header = std::fs::read_to_string(scratch.path("x.h")).expect("it was written");
    assert!(header.contains("my_net_run("), "{header}");
    compile_digits(1, &["-o", &object, "--name", "my-net"]).code(2).complains("`my-net`");
}

#[test]
fn llvm_ir_and_assembly_come_out_as_text() {
    let ir = compile_digits(1, &["--emit", "llvm-ir"]).code(0).says("define ");
    let ir = ir.says("@digits_run(");
    assert_eq!(ir.err, "");
    let raw = compile_digits(1, &["--emit", "llvm-ir", "--opt-level", "0"]).code(0);
    raw.says("@digits_run(");
    let assembly = compile_digits(1, &["--emit", "asm", "--cpu", "x86-64-v3"]).code(0);
    let assembly = assembly.says("digits_run:");
    assert!(!assembly.out.contains("zmm"), "AVX2 has no such registers");
    let scratch = Scratch::new();
    let path = scratch.path("x.ll");
    assert_eq!(compile_digits(1, &["-o", &path]).code(0).out, "");
    let written = std::fs::read_to_string(&path).expect("it was written");
    assert!(written.contains("@x_run("));
}

#[test]
fn text_of_a_model_runs_like_the_model() {
    let scratch = Scratch::new();
    let (inputs, expected) = (digits("test_inputs.npz"), digits("test_expected.npz"));
    for more in [
        &[][..],
        &["--after", "fuse"],
        &["--after", "legalize"],
        &["--after", "schedule"],
        &["--after", "lower"],
    ] {
        let path = scratch.path("digits.py");
        compile_digits(97, &[&["-o", &path], more].concat()).code(0);
        let run = ["run", &path, "--inputs", &inputs, "--expect", &expected];
        tilewright(&run).code(0).says("logits: agrees");
    }
    let lowered = compile_digits(1, &["--emit", "tvmscript", "--after", "lower"]).code(0);
    assert!(!lowered.out.contains("T.block"), "{}", lowered.out);
}

/// Data decide how large its output is.
const SIZES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cases/control/run_sizes.py");

#[test]
fn a_model_with_control_flow_is_a_library_or_text() {
    let scratch = Scratch::new();
    let library = scratch.path("libsizes.so");
    tilewright(&["compile", SIZES, "-o", &library]).code(0).complains("note: wrote ");
    let header = std::fs::read_to_string(scratch.path("libsizes.h")).expect("a header");
    for declared in ["int sizes_run(const int64_t *shapes, ", "sizes_results", "*sizes_output("] {
        assert!(header.contains(declared), "{header}");
    }
    for file in ["sizes.o", "sizes.ll"] {
        let done = tilewright(&["compile", SIZES, "-o", &scratch.path(file)]).code(2);
        done.complains("it is several plans").complains("help: compile it to a shared library");
    }
    let special = ["compile", SIZES, "-o", &library, "--specialize", "n=4"];
    tilewright(&special).code(2).complains("the library runs at every size");

    let meant = tilewright(&["run", SIZES, "--open", "--dim", "n=9"]).code(0).out;
    for stage in ["fuse", "legalize", "schedule", "lower"] {
        let path = scratch.path("sizes.py");
        tilewright(&["compile", SIZES, "-o", &path, "--after", stage]).code(0);
        let text = std::fs::read_to_string(&path).expect("it was written");
        assert!(text.contains("cls.main_1(R.shape([k]), x)"), "{text}");
        let done = tilewright(&["run", &path, "--open", "--dim", "n=9"]).code(0);
        assert_eq!(done.out, meant, "{stage}");
    }
}

#[test]
fn inputs_that_sizes_depend_on_are_compiled_in() {
    let scratch = Scratch::new();
    let model = reshape(&scratch);
    let shape = Tensor::from_slice(&[2], &[3i64, 2]).expect("a tensor");
    let inputs = scratch.path("in.npz");
    npz::write(&inputs, [("shape", &shape)]).expect("it can be written");
    let emit = ["compile", &model, "--emit", "tvmscript"];
    tilewright(&emit).code(2).complains("it depends on values that are not given: `shape`");
    let done = tilewright(&[&emit[..], &["--inputs", &inputs]].concat()).code(0);
    let done = done.complains("note: sizes depend on input `shape`: its value is compiled in\n");
    let done = done.says("\"fixed_inputs\": [\"shape\"]");
    let main = done.says("R.Tensor((3, 2), dtype=\"float32\")").out;
    assert!(!main.contains("shape: R.Tensor"), "{main}");
}

#[test]
fn what_cannot_be_written_is_refused() {
    compile_digits(1, &[]).code(2).complains("what to write is not said").complains("--emit");
    compile_digits(1, &["-o", "model.xyz"]).code(2).complains("what to write is not said");
    compile_digits(1, &["--emit", "so"]).code(2).complains("not written to standard output");
    compile_digits(1, &["-o", "/nowhere/x.ll"]).code(2).complains("/nowhere/x.ll");
    compile_digits(1, &["-o", "/nowhere/x.so"]).code(2).complains("/nowhere/x");
    compile_digits(1, &["--emit", "asm", "--after", "fuse"]).code(2).complains("--after is for");
    compile_digits(1, &["--emit", "spirv"]).code(2).complains("llvm-ir");
    compile_digits(1, &["--emit", "tvmscript", "--after", "x"]).code(2).complains("legalize");
    let model = digits("digits.onnx");
    tilewright(&["compile", &model, "--emit", "asm"]).code(0);
}

#[test]
fn a_range_of_a_size_holds_in_a_library_and_in_a_run() {
    let scratch = Scratch::new();
    let library = scratch.path("libdigits.so");
    let model = digits("digits.onnx");
    tilewright(&["compile", &model, "-o", &library, "--dim", "N=2..64"]).code(0);
    let header = std::fs::read_to_string(scratch.path("libdigits.h")).expect("it was written");
    assert!(header.contains("/* `N`, at least 2 and at most 64 */"), "{header}");
    let run = |dims: &[&str]| {
        let dims = dims.iter().flat_map(|dim| ["--dim", dim]);
        let args: Vec<&str> = ["run", &model, "--open"].into_iter().chain(dims).collect();
        tilewright(&args)
    };
    run(&["N=2..64", "N=64"]).code(0).says("64");
    run(&["N=2..64", "N=65"]).code(2).complains("it must be at least 2 and at most 64");
    run(&["N=2..64", "N=1"]).code(2).complains("it must be at least 2 and at most 64");
    run(&["N=64..2", "N=1"]).code(2).complains("64..2 is no range of sizes");
    let closed = tilewright(&["run", &model, "--dim", "N=2..64", "--dim", "N=1"]);
    closed.code(2).complains("the size of `N` is 1, which is not in the range 2..64");
}
