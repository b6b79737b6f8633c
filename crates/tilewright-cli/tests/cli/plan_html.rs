//! `plan --html`, and measured times in plans.

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
    let value = tilewright_driver::Tensor::from_slice(&[2], &[2i64, 3]).expect("a tensor");
    tilewright_runtime::npy::write(&shape, &value).expect("it can be written");
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

#[test]
fn measured_times_stand_beside_those_of_the_plan() {
    let scratch = Scratch::new();
    let model = digits("digits.onnx");
    let [profile, path] = ["profile.json", "report.html"].map(|name| scratch.path(name));
    let option = format!("--profile={profile}");
    let run = ["run", &model, "--dim", "N=3", "--threads", "1", "--seconds", "0.01", &option];
    tilewright(&run).code(0).complains("profile: ");
    let plan = ["plan", &model, "--dim", "N=3", "--threads", "1", "--profile", &profile];
    let done = tilewright(&[&plan[..], &["--html", &path]].concat()).code(0);
    let done = done.says("; measured").says(", predicted ").says("predicted within 20 %");
    assert!(!done.out.contains("not in the plan"), "{}", done.out);
    let page = std::fs::read_to_string(&path).expect("the page is there");
    for part in ["A run was measured: ", "its kernel predicted", "\"measured\":["] {
        assert!(page.contains(part), "{part}");
    }
    let done = tilewright(&[&plan[..], &["--json"]].concat()).code(0);
    let plan: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
    let kernels = plan["profile"]["kernels"].as_array().expect("a list");
    assert!(kernels.len() > 3, "{}", plan["profile"]);
    let calls = plan["calls"].as_array().expect("a list");
    for kernel in kernels {
        assert!(kernel["measured"].as_f64().is_some_and(|t| t >= 0.0), "{kernel}");
        assert!(calls.iter().any(|call| call["name"] == kernel["value"]), "{kernel}");
    }
    assert_eq!(plan["profile"]["others"], serde_json::json!([]));
}

#[test]
fn a_profile_of_something_else_is_refused() {
    let scratch = Scratch::new();
    let model = digits("digits.onnx");
    let none = scratch.file("none.json", "{}");
    tilewright(&["plan", &model, "--profile", &none]).code(2).complains("none.json");
    let other = r#"{"threads":1,"runs":3,"steps":[{"value":"?","func":"f","median":1,"least":1}]}"#;
    let other = scratch.file("other.json", other);
    let done = tilewright(&["plan", &model, "--profile", &other]);
    done.code(2).complains("no kernel of it makes a value of this model");
    let done = tilewright(&["plan", &model, "--profile", &other, "--layout", "nhwc"]);
    done.code(2).complains("--profile is compared with the plan");
}
