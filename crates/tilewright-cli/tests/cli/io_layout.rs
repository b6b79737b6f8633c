//! `--io-layout physical`, and `plan --price`.

use std::process::Command;

use tilewright_driver::compare::{Tolerance, compare};
use tilewright_driver::{IoLayout, LayoutPolicy, Options, Sizes, Tensor, compile, load};
use tilewright_runtime::npz;
use tilewright_runtime::plan::Stored;

use super::{Scratch, digits, tilewright};

const PHYSICAL: [&str; 2] = ["--io-layout", "physical"];

#[test]
fn inputs_and_expected_outputs_stay_logical() {
    let (model, inputs) = (digits("digits.onnx"), digits("test_inputs.npz"));
    let expected = digits("test_expected.npz");
    for layout in ["plan", "nhwc", "nchw8c", "nchw16c", "none"] {
        let run = ["run", &model, "--inputs", &inputs, "--layout", layout, "--expect", &expected];
        let done = tilewright(&[&run[..], &PHYSICAL].concat()).code(0).says("logits: agrees");
        let is_stored = done.err.contains("note: input `image` is stored before the run as lambda");
        // What is planned depends on the machine.
        assert!(layout == "plan" || is_stored == (layout != "none"), "{layout}: {}", done.err);
    }
    let wrong = ["run", &model, "--io-layout", "round"];
    tilewright(&wrong).code(2).complains("expected logical or physical");
}

#[test]
fn a_plan_says_how_inputs_and_outputs_are_stored() {
    let model = digits("digits.onnx");
    let plan = |more: &[&str]| {
        let arguments = ["plan", &model, "--dim", "N=2", "--layout", "nchw8c"];
        tilewright(&[&arguments, more].concat()).code(0)
    };
    plan(&PHYSICAL)
        .says("input image: lambda i0, i1, i2, i3: [i0, i1 // 8, i2, i3, i1 % 8], [2, 1, 8, 8] in [2, 1, 8, 8, 8], 0 in the padding")
        .says("output logits: as in the model");
    assert!(!plan(&[]).out.contains("input image"));
    let planned = ["plan", &model, "--json"];
    let json = tilewright(&[&planned[..], &PHYSICAL].concat()).code(0).out;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["inputs"][0]["name"], "image");
    // What is planned depends on the machine.
    let stored = &json["inputs"][0]["stored"];
    let pad = if stored["padded"] == true { 0.0.into() } else { serde_json::Value::Null };
    assert_eq!(stored["pad"], pad);
    assert_eq!(json["outputs"][0]["stored"], serde_json::Value::Null);
    // What others pay for, this one need not.
    let logical: serde_json::Value =
        serde_json::from_str(&tilewright(&planned).code(0).out).expect("JSON");
    assert!(json["objective"].as_u64() <= logical["objective"].as_u64());
    // An input whose layout is free is none of the calls.
    assert_eq!(json["calls"].as_array().map(Vec::len), logical["calls"].as_array().map(Vec::len));
}

/// Runs a library whose input is stored in blocks of eight channels, padding included.
const PROGRAM: &str = r#"
#include <stdio.h>
#include "digits.h"

static float stored[DIGITS_INPUT_0_ELEMENTS];
static float logits[DIGITS_OUTPUT_0_ELEMENTS];
static float probabilities[DIGITS_OUTPUT_1_ELEMENTS];

int main(int argc, char **argv) {
    if (argc != 3) return 10;
    FILE *file = fopen(argv[1], "rb");
    if (!file || fread(stored, 1, sizeof stored, file) != sizeof stored) return 11;
    const void *inputs[DIGITS_INPUTS] = {stored};
    void *outputs[DIGITS_OUTPUTS] = {logits, probabilities};
    if (digits_run(inputs, outputs, NULL) != 0) return 12;
    file = fopen(argv[2], "wb");
    return file && fwrite(logits, 1, sizeof logits, file) == sizeof logits && fclose(file) == 0 ? 0 : 14;
}
"#;

#[test]
fn the_header_of_a_library_says_it_and_a_c_program_follows() {
    let scratch = Scratch::new();
    let (model, library) = (digits("digits.onnx"), scratch.path("libdigits.so"));
    let made = ["compile", &model, "--dim", "N=97", "--layout", "nchw8c", "-o", &library];
    tilewright(&[&made[..], &PHYSICAL].concat()).code(0);
    let header = std::fs::read_to_string(scratch.path("libdigits.h")).expect("a header");
    for part in [
        "/* input 0: `image`: float [97][1][8][8][8] */",
        "It stores a tensor of shape [97][1][8][8]",
        "lambda i0, i1, i2, i3: [i0, i1 // 8, i2, i3, i1 % 8]",
        "All cells that no element has must hold 0",
    ] {
        assert!(header.contains(part), "{part} is not in {header}");
    }
    std::fs::rename(scratch.path("libdigits.h"), scratch.path("digits.h")).expect("a header");
    let (source, program) = (scratch.file("main.c", PROGRAM), scratch.path("main"));
    let built = Command::new("cc")
        .args(["-std=c99", &source, &library, "-Wl,-rpath,$ORIGIN", "-o", &program])
        .output();
    let built = built.expect("there is a C compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    // By the map of the header, and not by this library's code.
    let images = npz::read(digits("test_inputs.npz")).expect("it is there")["image"].clone();
    let images = images.as_slice::<f32>().expect("floats");
    let mut stored = vec![0f32; 97 * 64 * 8];
    images.iter().enumerate().for_each(|(at, value)| stored[at * 8] = *value);
    let stored = Tensor::from_slice(&[97 * 64 * 8], &stored).expect("a tensor");
    let input = scratch.file("in.bin", stored.bytes());
    let ran = Command::new(&program).args([&input, &scratch.path("out.bin")]).output();
    assert!(ran.expect("it starts").status.success());
    let bytes = std::fs::read(scratch.path("out.bin")).expect("the program wrote it");
    let expected = npz::read(digits("test_expected.npz")).expect("it is there");
    let got =
        Tensor::from_bytes(tilewright_driver::DType::F32, &[97, 10], &bytes).expect("it fits");
    let comparison = compare(&got, &expected["logits"], Tolerance::default());
    assert!(comparison.agrees(), "{comparison}");
}

#[test]
fn an_executable_says_how_its_inputs_are_stored() {
    let module = load(digits("digits.onnx"), &Sizes::new().dim("N", 97)).expect("it loads");
    let layout = LayoutPolicy::Blocked(16);
    let options = Options::new().layout(layout).io_layout(IoLayout::Physical);
    let executable = compile(&module, &options).expect("it compiles");
    let port = &executable.inputs()[0];
    let stored: &Stored = port.stored.as_deref().expect("it is stored");
    assert_eq!(stored.logical, [97, 1, 8, 8]);
    assert_eq!(port.fixed().expect("numbers"), stored.physical());
    let images = npz::read(digits("test_inputs.npz")).expect("it is there")["image"].clone();
    let outputs = executable.run(&[stored.store(&images).expect("it fits")]).expect("it runs");
    let expected = npz::read(digits("test_expected.npz")).expect("it is there");
    let comparison = compare(&outputs[0], &expected["logits"], Tolerance::default());
    assert!(comparison.agrees(), "{comparison}");
    let error = executable.run(&[images]).expect_err("a logical tensor");
    let note = &error.diagnostic().notes[0];
    assert!(note.starts_with("it stores a tensor of shape [97, 1, 8, 8] as lambda"), "{note}");
}

#[test]
fn prices_are_of_sizes_that_are_no_multiple_and_come_sorted() {
    let model = digits("digits.onnx");
    let plan = ["plan", &model, "--dim", "N=8", "--cpu", "x86-64-v3", "--price"];
    let text = tilewright(&plan).code(0).says("sizes:\n").out;
    assert!(text.contains(" channels in "), "{text}");
    let json = tilewright(&[&plan[..], &["--json"]].concat()).code(0).out;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let list = json["price"].as_array().expect("a list");
    let saved: Vec<i64> = list.iter().map(|c| c["saved"].as_i64().expect("a number")).collect();
    assert!(!saved.is_empty() && saved.is_sorted_by(|a, b| a >= b), "{saved:?}");
    for change in list {
        let number = |key: &str| change[key].as_u64().expect("a number");
        assert_ne!(number("from"), number("to"));
        let objective = json["objective"].as_i64().expect("a number");
        assert_eq!(objective - change["cost"].as_i64().expect("a number"), change["saved"]);
    }
    // Thirteen and twenty-seven channels.
    let has = |from: u64, to: u64| list.iter().any(|c| c["from"] == from && c["to"] == to);
    assert!((has(13, 8) && has(13, 16)) || has(27, 24) || has(27, 16), "{text}");
    let other = ["plan", &model, "--layout", "nhwc", "--price"];
    tilewright(&other).code(2).complains("--price asks about the plan");
}
