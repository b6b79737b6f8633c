//! Candidates of `tilewright tune` that crash, hang or take too long: each costs only itself.
//!
//! These tests wait for time limits. Their name lets them begin before most others, which run meanwhile.

use serde_json::Value;
use tempfile::TempDir;

use super::tune::{TUNED, json, text};
use super::{digits, tilewright};

#[test]
fn a_candidate_that_does_not_end_costs_only_itself() {
    let folder = TempDir::new().expect("a folder");
    let (model, file) = (digits("digits.onnx"), text(&folder.path().join("t")));
    let tune = |limit: &str| {
        let first = ["tune", &model, "--threads", "1", "--file", &file, "--budget", "10m"];
        json(&tilewright(&[&first[..], &["--json", "--limit", limit]].concat()).code(0))
    };
    // No process starts in so little time.
    let report = tune("1ms");
    let failed = report["failures"].as_array().expect("a list");
    let is_late = |f: &Value| f["why"].as_str().is_some_and(|why| why.contains("no answer within"));
    assert!(failed.iter().all(is_late), "{report}");
    let whole = |name: &str| failed.iter().any(|f| f["what"] == name);
    assert!(whole("plan") && whole("plan:8") && whole("nchw16c"), "{report}");
    let count = report["candidates"].as_u64().map(|n| n as usize + 12);
    assert_eq!((&report["new"], Some(failed.len())), (&Value::from(0), count), "{report}");
    // What failed is not tried again.
    assert_eq!(tune("30s")["failures"].as_array().map(Vec::len), Some(0));
}

/// Candidates that crash and that never end, in the program's own worker.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "only debug builds can be told to misbehave")]
fn candidates_that_crash_or_hang_cost_only_themselves() {
    let folder = TempDir::new().expect("a folder");
    let (model, file) = (digits("digits.onnx"), text(&folder.path().join("bad")));
    // A shape of a convolution that is measured.
    let records = TUNED.exported.lines();
    let records = records.map(|l| serde_json::from_str::<Value>(l).expect("JSON"));
    let what = records.filter(|r| r["kind"] == "contraction").map(|r| r["what"].clone());
    let what = what.max_by_key(|w| w.as_str().map(str::len)).expect("a convolution");
    let shape =
        what.as_str().and_then(|w| w.split_once('[')?.1.split_once(']')).expect("a shape").0;
    let mut command = super::program();
    command.args(["tune", &model, "--dim", "N=3", "--threads", "1", "--budget", "10m"]);
    command.args(["--limit", "10s", "--json", "--file", &file]);
    let misbehave = format!("crash=({shape})\nhang=\"layout\":\"nhwc\"");
    let done = command.env("TILEWRIGHT_TEST_MISBEHAVE", misbehave).output().expect("it runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let report: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let failed = report["failures"].as_array().expect("a list");
    let why =
        |text: &str| failed.iter().filter(|f| f["why"].as_str().unwrap().contains(text)).count();
    let (crashed, late) = (why("signal"), why("no answer within 10.0 s"));
    assert!(crashed >= 1 && late == 1 && crashed + late == failed.len(), "{report}");
    // All others are measured.
    let count = |report: &Value| report["new"].as_u64().expect("a number") as usize;
    let models = |report: &Value| report["models"].as_object().expect("models").len();
    assert_eq!(
        count(&report) + crashed,
        report["candidates"].as_u64().unwrap() as usize,
        "{report}"
    );
    assert!(count(&report) >= 1, "{report}");
    assert_eq!(models(&report), models(&TUNED.report) - 1, "{report}");
}
