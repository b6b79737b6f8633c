//! `tilewright tune`: measurements with the program itself as the worker.

use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;
use tempfile::TempDir;

use super::{Done, digits, tilewright};

pub(super) fn json(done: &Done) -> Value {
    serde_json::from_str(&done.out).expect("JSON")
}

pub(super) fn text(path: &Path) -> String {
    path.to_str().expect("a name").to_owned()
}

/// The digits model, tuned once for all tests that begin with its measurements.
pub(super) struct Tuned {
    /// What `tune` said.
    pub(super) report: Value,
    /// The file of measurements.
    file: Vec<u8>,
    /// The exported records.
    pub(super) exported: String,
}

pub(super) static TUNED: LazyLock<Tuned> = LazyLock::new(|| {
    let folder = TempDir::new().expect("a folder");
    let [file, exported] = ["t.sqlite", "t.jsonl"].map(|name| text(&folder.path().join(name)));
    let model = digits("digits.onnx");
    let first = ["tune", &model, "--dim", "N=3", "--threads", "1", "--json", "--budget", "10m"];
    let files = ["--file", &file, "--export", &exported];
    Tuned {
        report: json(&tilewright(&[&first[..], &files].concat()).code(0)),
        file: std::fs::read(file).expect("measurements"),
        exported: std::fs::read_to_string(exported).expect("records"),
    }
});

#[test]
fn a_model_is_tuned_and_its_plan_uses_what_was_measured() {
    let folder = TempDir::new().expect("a folder");
    let at = |name: &str| text(&folder.path().join(name));
    let (model, file, exported) = (digits("digits.onnx"), at("t.sqlite"), at("t.jsonl"));
    let first = &TUNED.report;
    std::fs::write(&file, &TUNED.file).expect("a file");
    std::fs::write(&exported, &TUNED.exported).expect("a file");
    let tune = |more: &[&str]| {
        let first = ["tune", &model, "--dim", "N=3", "--threads", "1", "--json"];
        tilewright(&[&first[..], more].concat())
    };
    assert_eq!(first["measured"], first["candidates"], "{first}");
    assert_eq!(first["new"], first["candidates"], "{first}");
    assert_eq!(first["failures"].as_array().map(Vec::len), Some(0), "{first}");
    for layout in ["plan", "plan:2", "plan:8", "none", "nhwc", "nchw8c", "nchw16c"] {
        assert!(first["models"][layout].as_f64().is_some_and(|t| t > 0.0), "{layout}: {first}");
    }
    let again = json(&tune(&["--file", &file]).code(0));
    assert_eq!((&again["new"], &again["models"]), (&Value::from(0), &first["models"]));

    // Another file gets the same by what was exported.
    let other = at("other.sqlite");
    let merge = tilewright(&["tune", "--file", &other, "--import", &exported]);
    merge.code(0).complains("measurements were new");
    let known = json(&tune(&["--file", &other]).code(0));
    assert_eq!(known["new"], 0, "{known}");

    let plan = |tuning: &str| {
        let mut command = super::program();
        command.args(["plan", &model, "--dim", "N=3", "--threads", "1", "--json"]);
        let done = command.env("TILEWRIGHT_TUNING", tuning).output().expect("it runs");
        let plan: Value = serde_json::from_slice(&done.stdout).expect("JSON");
        let runs = plan["measured"].as_array().expect("a list").clone();
        (plan["unit"].as_str().expect("a unit").to_owned(), runs)
    };
    let (unit, runs) = plan(&other);
    let times: Vec<f64> = runs.iter().map(|r| r["nanoseconds"].as_f64().expect("ns")).collect();
    // Eight plans and four fixed layouts, the fastest first: that is what `run` takes.
    assert_eq!((&*unit, times.len(), times.is_sorted()), ("ns", 12, true), "{runs:?}");
    assert_eq!(plan("off"), ("cycles".to_owned(), Vec::new()));
    let mut run = super::program();
    run.args(["run", &model, "--dim", "N=3", "--threads", "1", "--layout", "plan:9"]);
    let done = run.output().expect("it runs");
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("plan:1 to plan:8"));
}

#[test]
fn a_machine_is_calibrated_and_plans_say_so() {
    let folder = TempDir::new().expect("a folder");
    let (model, file) = (digits("digits.onnx"), text(&folder.path().join("t")));
    let plan = |file: &str| {
        let mut command = super::program();
        command.args(["plan", &model, "--dim", "N=3", "--threads", "1", "--json"]);
        let done = command.env("TILEWRIGHT_TUNING", file).output().expect("it runs");
        let plan: Value = serde_json::from_slice(&done.stdout).expect("JSON");
        ["unit", "costs"].map(|key| plan[key].as_str().expect("text").to_owned())
    };
    assert_eq!(plan(&file), ["cycles", "written"]);
    let found = json(&tilewright(&["tune", "--calibrate", "--file", &file, "--json"]).code(0));
    let kernels = found["kernels"].as_array().expect("a list");
    assert!(kernels.len() > 40, "{found}");
    assert!(kernels.iter().all(|k| k["measured"].as_f64().is_some_and(|t| t > 0.0)), "{found}");
    assert!(found["cycle"].as_f64().is_some_and(|c| (0.05..=10.0).contains(&c)), "{found}");
    assert!(found["costs"]["fma"].as_f64().is_some_and(|c| c > 0.0), "{found}");
    // What is kept predicts at least as many kernels as the other constants.
    let near = |by: &str| {
        let is_near = |k: &&Value| {
            let [measured, predicted] =
                ["measured", by].map(|key| k[key].as_f64().expect("a time"));
            (predicted / measured - 1.0).abs() <= 0.2
        };
        kernels.iter().filter(is_near).count()
    };
    let [kept, other] = if found["fitted"].as_bool().expect("an answer") {
        ["fitted", "before"]
    } else {
        ["before", "fitted"]
    };
    assert!(near(kept) >= near(other), "{found}");
    #[cfg(target_os = "linux")]
    assert!(found["states"][1]["load"].as_f64().is_some_and(|load| load >= 0.0), "{found}");
    assert_eq!(plan(&file), ["ns", "calibrated"]);
    // A calibration goes with the measurements.
    let (exported, other) = (text(&folder.path().join("e")), text(&folder.path().join("o")));
    tilewright(&["tune", "--file", &file, "--export", &exported]).code(0);
    tilewright(&["tune", "--file", &other, "--import", &exported]).code(0);
    assert_eq!(plan(&other), ["ns", "calibrated"]);
    tilewright(&["tune", &model, "--cpu", "x86-64", "--calibrate", "--file", &file])
        .code(2)
        .complains("--cpu: only --calibrate without a model");
}

#[test]
fn a_budget_of_nothing_measures_next_to_nothing() {
    let folder = TempDir::new().expect("a folder");
    let (model, file) = (digits("digits.onnx"), text(&folder.path().join("t")));
    let done = tilewright(&["tune", &model, "--file", &file, "--budget", "0", "--json"]).code(0);
    let report = json(&done);
    assert!(report["new"].as_u64() < report["candidates"].as_u64(), "{report}");
}

#[test]
fn what_is_wrong_is_said() {
    let folder = TempDir::new().expect("a folder");
    let file = text(&folder.path().join("t"));
    tilewright(&["tune"]).code(2).complains("tune needs a model");
    let model = digits("digits.onnx");
    let budget = ["tune", &model, "--file", &file, "--budget", "soon"];
    tilewright(&budget).code(2).complains("expected a time such as 60s");
    tilewright(&["tune", "--file", &file, "--import", "/no/such"]).code(2).complains("/no/such");
    let wrong = text(&folder.path().join("wrong"));
    std::fs::write(&wrong, "{}\n").expect("a file");
    tilewright(&["tune", "--file", &file, "--import", &wrong]).code(2).complains("line 1");
    tilewright(&["tune", &model, "--file", &wrong]).code(2).complains("wrong");
    // Measuring on the way.
    let mut command = super::program();
    command.args(["run", &model, "--measure"]).env("TILEWRIGHT_TUNING", "off");
    let done = command.output().expect("it runs");
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("TILEWRIGHT_TUNING"));
}
