//! `plan --html`.

use super::{Scratch, digits, reshape, tilewright};

#[test]
fn a_plan_is_written_as_a_page() {
    let scratch = Scratch::new();
    let (model, path) = (digits("digits.onnx"), scratch.path("report.html"));
    tilewright(&["plan", &model, "--html", &path]).code(0).says("conversions, ");
    let page = std::fs::read_to_string(&path).expect("the page is there");
    for part in [
        "<!doctype html>",
        "<title>digits.onnx: plan of layouts</title>",
        "<caption>Totals</caption>",
        "greedy: call by call",
        "lower bound",
        "<svg id=\"s0\" ",
        "aria-label=\"Call ",
        "aria-label=\"Tensor ",
        "aria-label=\"Input ",
        "aria-label=\"Result probabilities",
        "<template id=m0><table",
        "<script type=\"application/json\" id=data>",
        "float32[",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.ends_with("</html>\n"));
    assert!(page.len() < 500_000, "{}", page.len());
}

#[test]
fn a_page_of_a_model_without_a_choice_is_one_too() {
    let scratch = Scratch::new();
    let (model, path) = (reshape(&scratch), scratch.path("report.html"));
    let shape = scratch.path("shape.npy");
    let value = tilewright::Tensor::from_slice(&[2], &[2i64, 3]).expect("a tensor");
    tilewright::unstable::runtime::npy::write(&shape, &value).expect("it can be written");
    let given = format!("shape={shape}");
    tilewright(&["plan", &model, "--input", &given, "--html", &path]).code(0);
    let page = std::fs::read_to_string(&path).expect("the page is there");
    assert!(page.contains("No conversion is left at run time."), "{page}");
}

#[test]
fn a_page_is_of_the_plan_and_needs_a_place() {
    let model = digits("digits.onnx");
    let done = tilewright(&["plan", &model, "--layout", "nhwc", "--html", "x.html"]);
    done.code(2).complains("--html shows the plan, not one layout");
    let scratch = Scratch::new();
    let path = scratch.path("not/there.html");
    tilewright(&["plan", &model, "--html", &path]).code(2).complains("not/there.html");
}
