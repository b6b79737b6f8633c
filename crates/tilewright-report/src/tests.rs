use std::collections::BTreeMap;

use tilewright_driver::{Module, Target};
use tilewright_ir::Dim;
use tilewright_layout::Left;
use tilewright_layout::flow::Planned;
use tilewright_layout::solver::{Alternative, Call, Options, Problem, Tensor, solve};

use super::*;
use crate::function::tag;

/// A convolution in channels last, between an input and a result that are logical; `name` is part of
/// every name.
fn planned(name: &str) -> Planned {
    let logical = TiledLayout::identity(&[1, 3, 4, 5]);
    let last = TiledLayout::blocked(&[1, 3, 4, 5], &[0, 2, 3, 1], &[]).expect("a layout");
    let tensor = |which: &str, given, required: &[usize]| Tensor {
        name: format!("{which}{name}"),
        layouts: vec![logical.to_string(), last.to_string()],
        given,
        required: required.to_vec(),
        conversions: vec![vec![Cost::ZERO, 700.into()], vec![800.into(), Cost::ZERO]],
    };
    let call = Call {
        name: format!("y{name}"),
        alternatives: vec![way_of("logical", 9_000, 0), way_of("nhwc", 1_000, 1)],
    };
    let problem = Problem {
        tensors: vec![tensor("x", Some(0), &[]), tensor("y", None, &[0])],
        calls: vec![call],
    };
    let plan = solve(&problem, &Options::default()).expect("a plan");
    let layouts = vec![vec![logical.clone(), last.clone()], vec![logical, last]];
    let graph = format!("main{name}").into();
    let anchors = Vec::new();
    Planned {
        graph,
        problem,
        plan,
        layouts,
        anchors,
        results: Vec::new(),
        free_inputs: 0,
        free_results: Vec::new(),
        reordered: Vec::new(),
    }
}

fn way_of(name: &str, cost: u64, layout: usize) -> Alternative {
    Alternative {
        name: name.into(),
        cost: cost.into(),
        reads: vec![Use { tensor: 0, layout }],
        writes: vec![Use { tensor: 1, layout }],
    }
}

fn page_of(name: &str) -> String {
    let left = vec![Left {
        value: format!("x{name}").into(),
        from: TiledLayout::identity(&[1, 3, 4, 5]),
        to: TiledLayout::blocked(&[1, 3, 4, 5], &[0, 2, 3, 1], &[]).expect("a layout"),
        cells: Dim::from(120),
        width: 4,
        reason: format!("{name} is given so"),
    }];
    let plans = [planned(name)];
    page(&Report {
        model: name,
        module: &Module::new(),
        after: None,
        plans: &plans,
        left: &left,
        scopes: &BTreeMap::from([(name.into(), "global.texture".into())]),
        unit: "cycles",
        times: &[],
        about: &vec![("Machine", format!("a machine for {name}"))],
    })
}

/// What is between two texts, once.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = text.split_once(from).expect("it starts");
    rest.split_once(to).expect("it ends").0
}

#[test]
fn names_are_text_wherever_they_are() {
    let plain = page_of("&name");
    let hostile = page_of("</script><svg onload=\"x()\">&'\u{202e}`");
    // The same elements, whatever the names.
    for part in ["<", "<script", "</script>", "<svg", "onload=\"", "\u{202e}"] {
        assert_eq!(count(&plain, part), count(&hostile, part), "{part}");
    }
    assert!(
        hostile.contains("&lt;/script&gt;&lt;svg onload=&quot;x()&quot;&gt;&amp;&#39;\\u{202e}`")
    );
    for text in [plain, hostile] {
        let data = between(&text, "<script type=\"application/json\" id=data>", "</script>");
        let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(data["graphs"][0]["calls"][0]["ways"].as_array().map(Vec::len), Some(2));
    }
    let text = page_of("</script>&");
    let data = between(&text, "id=data>", "</script>");
    let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
    assert_eq!(data["graphs"][0]["tensors"][0]["name"], "x</script>&");
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn a_page_shows_what_was_decided() {
    let text = page_of("");
    // Of 1,000 cycles and two conversions.
    assert!(
        text.contains("<tr class=chosen><th scope=row>plan<td class=n>2.50 k<td class=n>100.0 %")
    );
    assert!(text.contains("It is proven that no choice costs less."));
    assert!(text.contains("<dl class=about><dt>Machine<dd>a machine for </dl>"));
    let data = between(&text, "id=data>", "</script>");
    let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
    let call = &data["graphs"][0]["calls"][0];
    assert_eq!(
        call["why"].as_str(),
        Some(
            "The best other way is logical, with which the whole model costs 6.50 k cycles more \
             (260.0 %): the call costs 8.00 k more, and conversions and other calls only 1.50 k less."
        )
    );
    assert_eq!([&call["ways"][0]["total"], &call["ways"][1]["total"]], [9_000, 2_500]);
    assert!(text.contains("1 call, 2 conversions at run time"), "{text}");
    assert!(text.contains("aria-label=\"Call y: nhwc, 1.00 k cycles\""));
    assert!(text.contains("aria-label=\"Conversion of x from logical to nhwc: 700 cycles\""));
    assert!(text.contains("aria-label=\"Tensor y: nhwc, [1,3,4,5]\""));
    assert!(text.contains("<td>logical<td>nhwc<td class=n>700<td> is given so"));
    let data = between(&text, "id=data>", "</script>");
    let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
    let x = &data["graphs"][0]["tensors"][0];
    let made = &data["layouts"][x["layouts"][1].as_u64().expect("a number") as usize];
    assert_eq!(made["map"], "lambda i0, i1, i2, i3: [i0, i2, i3, i1]");
    assert_eq!(made["shape"], "1 × 4 × 5 × 3");
    for table in made["tables"].as_array().expect("tables") {
        assert!(text.contains(&format!("<template id=m{table}><table")));
    }
}

#[test]
fn a_page_needs_nothing_else() {
    let text = page_of("x");
    for part in ["src=", "<link", "@import", "url(", "<base", "<iframe"] {
        assert!(!text.contains(part), "{part}");
    }
    // The name of a format of XML, which is not loaded.
    assert_eq!(text.replace("http://www.w3.org/2000/svg", "").matches("://").count(), 0);
    let empty = page(&Report {
        model: "m",
        module: &Module::new(),
        after: None,
        plans: &[],
        times: &[],
        left: &[],
        scopes: &BTreeMap::new(),
        unit: "ns",
        about: &Vec::new(),
    });
    assert!(empty.contains("there is nothing to plan"));
}

#[test]
fn choices_that_cost_the_same_do_not_matter() {
    let mut one = planned("");
    let mut problem = one.problem.clone();
    problem.calls[0].alternatives = vec![way_of("logical", 1_000, 0), way_of("nhwc", 1_000, 1)];
    for tensor in &mut problem.tensors {
        tensor.conversions = vec![vec![Cost::ZERO; 2]; 2];
    }
    one.plan = solve(&problem, &Options::default()).expect("a plan");
    one.plan.alternatives.insert("none".to_owned(), one.plan.objective.into());
    one.problem = problem;
    let plans = [one];
    let (module, left, about) = (&Module::new(), &[], &Vec::new());
    let (model, after, times, unit) = ("m", None, &[], "ns");
    let scopes = &BTreeMap::new();
    let plans = &plans;
    let text = page(&Report { model, module, after, plans, left, scopes, unit, times, about });
    assert!(text.contains("cost the same: layouts do not matter here."), "{text}");
    assert!(text.contains("costs the whole model the same, so that the choice does not matter"));
}

#[test]
fn layouts_have_short_names() {
    assert_eq!(tag_of(&[1, 65, 3, 3], &[0, 1, 2, 3, 1], &[(1, 16)]), "aBcd16b");
    assert_eq!(tag_of(&[2, 3], &[1, 0], &[]), "ba");
}

fn tag_of(shape: &[i64], axes: &[usize], blocks: &[(usize, i64)]) -> String {
    tag(&TiledLayout::blocked(shape, axes, blocks).expect("a layout"))
}

#[test]
fn steps_lead_from_the_function_to_its_schedule() {
    let text = r#"
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T
@I.ir_module
class Module:
    @T.prim_func
    def matmul(A: T.Buffer((13, 40), "float32"), B: T.Buffer((40, 21), "float32"), C: T.Buffer((13, 21), "float32")):
        for i, j, k in T.grid(13, 21, 40):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    @R.function
    def main(a: R.Tensor((13, 40), "float32"), b: R.Tensor((40, 21), "float32")):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.matmul, (a, b), out_sinfo=R.Tensor((13, 21), "float32"))
            R.output(y)
        return y
"#;
    let module =
        tilewright_driver::parse(text, &tilewright_driver::Sizes::new()).expect("a module");
    let target = Target::new("x86_64-unknown-linux-gnu", "x86-64-v3", "");
    let mut steps = Steps::default();
    assert_eq!(steps.of_graph(&module, "main", &target), HashMap::from([("y".to_owned(), 0)]));
    let table = serde_json::from_str::<serde_json::Value>(&steps.lines()).expect("JSON");
    let function = serde_json::from_str::<serde_json::Value>(&steps.functions[0]).expect("JSON");
    let all = |list: &serde_json::Value| -> Vec<serde_json::Value> {
        list.as_array()
            .expect("a list")
            .iter()
            .map(|k| table[k.as_u64().expect("a number") as usize].clone())
            .collect()
    };
    let mut lines = all(&function[0]);
    assert!(lines.iter().any(|l| l.as_str().is_some_and(|l| l.contains("T.axis.remap(\"SSR\""))));
    let count = function[1].as_array().expect("steps").len();
    assert!(count > 5, "{count} steps");
    for step in function[1].as_array().expect("steps") {
        assert!(step[0].as_str().is_some_and(|calls| calls.contains("sch.")));
        for hunk in step[1].as_array().expect("hunks").iter().rev() {
            let [from, removed] = [0, 1].map(|k| hunk[k].as_u64().expect("a number") as usize);
            lines.splice(from..from + removed, all(&hunk[2]));
        }
    }
    let text: Vec<&str> = lines.iter().filter_map(|l| l.as_str()).collect();
    assert!(text.join("\n").contains("T.vectorized(8)"), "{}", text.join("\n"));
}
