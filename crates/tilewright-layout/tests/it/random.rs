//! Random graphs of conversions and work: chains, diamonds, several layouts and pad values. They
//! compute the same with all passes on and off, and no conversion is left that could go.

use std::fmt::Write as _;

use tilewright_graph::fold::interpret;
use tilewright_interp::{Fill, Interpreter, Output, RunOptions, State};
use tilewright_ir::{BindingBlock, GraphExpr, GraphFunc, Module, Remarks, Source, Tensor, random};
use tilewright_layout::{Conversion, Leave, Recognised, cancel_layout, fold_constant, lift_layout};
use tilewright_tvmscript::{parse_module, print_module};

const GRAPHS: u64 = 1000;

/// splitmix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        random::bits(&mut self.0)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// A layout: logical and physical shape, what a physical cell takes and where, and what a logical
/// cell takes.
struct TiledLayout {
    name: &'static str,
    logical: &'static [usize],
    physical: &'static [usize],
    source: &'static str,
    data: &'static str,
    back: &'static str,
}

const LAYOUTS: [TiledLayout; 9] = [
    TiledLayout {
        name: "split",
        logical: &[6],
        physical: &[2, 4],
        source: "i * 4 + j",
        data: "i * 4 + j < 6",
        back: "i // 4, i % 4",
    },
    TiledLayout {
        name: "middle",
        logical: &[6],
        physical: &[8],
        source: "i - 1",
        data: "1 <= i and i < 7",
        back: "i + 1",
    },
    TiledLayout {
        name: "end",
        logical: &[6],
        physical: &[8],
        source: "i",
        data: "i < 6",
        back: "i",
    },
    TiledLayout {
        name: "view",
        logical: &[6],
        physical: &[3, 2],
        source: "i * 2 + j",
        data: "",
        back: "i // 2, i % 2",
    },
    TiledLayout {
        name: "inner",
        logical: &[6],
        physical: &[2, 3],
        source: "j * 2 + i",
        data: "",
        back: "i % 2, i // 2",
    },
    TiledLayout {
        name: "turn",
        logical: &[3, 3],
        physical: &[3, 3],
        source: "j, i",
        data: "",
        back: "j, i",
    },
    TiledLayout {
        name: "flip",
        logical: &[3, 3],
        physical: &[3, 3],
        source: "2 - i, j",
        data: "",
        back: "2 - i, j",
    },
    TiledLayout {
        name: "wide",
        logical: &[3, 3],
        physical: &[3, 4],
        source: "i, j",
        data: "j < 3",
        back: "i, j",
    },
    TiledLayout {
        name: "tall",
        logical: &[3, 3],
        physical: &[4, 3],
        source: "j, i",
        data: "i < 3",
        back: "j, i",
    },
];

const SHAPES: [&[usize]; 8] = [&[6], &[8], &[2, 4], &[3, 2], &[2, 3], &[3, 3], &[3, 4], &[4, 3]];

const PADS: [(&str, &str); 4] = [
    ("zero", "T.float32(0)"),
    ("one", "T.float32(1)"),
    ("minus", "T.float32(-1)"),
    ("any", "T.undef()"),
];

const UNARY: [(&str, &str); 5] = [
    ("negate", "T.float32(0) - x[{}]"),
    ("twice", "x[{}] * T.float32(2)"),
    ("add_one", "x[{}] + T.float32(1)"),
    ("relu", "T.max(x[{}], T.float32(0))"),
    ("vanish", "x[{}] * T.float32(0)"),
];

const BINARY: [(&str, &str); 2] = [("add", "x[{}] + z[{}]"), ("multiply", "x[{}] * z[{}]")];

fn tuple(shape: &[usize]) -> String {
    let all: Vec<String> = shape.iter().map(usize::to_string).collect();
    format!("({},)", all.join(", "))
}

fn name(prefix: &str, shape: &[usize]) -> String {
    shape.iter().fold(prefix.to_owned(), |name, d| format!("{name}_{d}"))
}

fn buffers(list: &[(&str, &[usize])]) -> String {
    let one = |(n, s): &(&str, &[usize])| format!("{n}: T.Buffer({}, \"float32\")", tuple(s));
    list.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// `for i, j in T.grid(2, 3):`, and the indices.
fn nest(shape: &[usize]) -> (String, &'static str) {
    match shape {
        [a, b] => (format!("for i, j in T.grid({a}, {b}):"), "i, j"),
        _ => (format!("for i in range({}):", shape[0]), "i"),
    }
}

/// Functions with their text.
type Library = Vec<(String, String)>;

fn function(out: &mut Library, name: &str, params: &[(&str, &[usize])], body: &str) {
    let mut text = format!("    @T.prim_func\n    def {name}({}):\n", buffers(params));
    body.lines().for_each(|l| {
        let _ = writeln!(text, "        {l}");
    });
    out.push((name.to_owned(), text));
}

/// Every function that a graph may call.
fn library() -> Library {
    let mut out = Library::new();
    for l in &LAYOUTS {
        let (over, at) = nest(l.physical);
        let (back_over, back_at) = nest(l.logical);
        let load = format!("x[{}]", l.source);
        let pads: Vec<(&str, String)> = match l.data {
            "" => vec![("pack", format!("{over}\n    y[{at}] = {load}"))],
            data => PADS
                .iter()
                .map(|(n, v)| {
                    (*n, format!("{over}\n    y[{at}] = T.if_then_else({data}, {load}, {v})"))
                })
                .chain([("none", format!("{over}\n    if {data}:\n        y[{at}] = {load}"))])
                .collect(),
        };
        for (pad, body) in &pads {
            let params = [("x", l.logical), ("y", l.physical)];
            function(&mut out, &format!("{}_{pad}", l.name), &params, body);
        }
        let crop = format!("{back_over}\n    y[{back_at}] = x[{}]", l.back);
        function(
            &mut out,
            &format!("{}_back", l.name),
            &[("x", l.physical), ("y", l.logical)],
            &crop,
        );
        // Work in the layout, with conversions at entry and exit.
        let value = if l.data.is_empty() { "pack" } else { "zero" };
        let body = pads.iter().find(|p| p.0 == value).map_or("", |p| &p.1);
        let marked = |loops: &str, store: &str, mark: &str| {
            format!(
                "{loops}\n    with T.block(\"{mark}\"):\n        T.block_attr({{\"{mark}\": \"layout\"}})\n        {store}"
            )
        };
        let pre = body.split_once("\n    ").map_or("", |b| b.1).replace("y[", "P[");
        let staged = format!(
            "P = T.alloc_buffer({}, \"float32\")\nQ = T.alloc_buffer({}, \"float32\")\n{}\n{over}\n    Q[{at}] = P[{at}] + P[{at}]\n{}",
            tuple(l.physical),
            tuple(l.physical),
            marked(&over, &pre, "preproc"),
            marked(&back_over, &format!("y[{back_at}] = Q[{}]", l.back), "postproc"),
        );
        function(
            &mut out,
            &format!("{}_staged", l.name),
            &[("x", l.logical), ("y", l.logical)],
            &staged,
        );
    }
    for shape in SHAPES {
        let (over, at) = nest(shape);
        for (op, value) in UNARY {
            let body = format!("{over}\n    y[{at}] = {}", value.replace("{}", at));
            function(&mut out, &name(op, shape), &[("x", shape), ("y", shape)], &body);
        }
        for (op, value) in BINARY {
            let body = format!("{over}\n    y[{at}] = {}", value.replace("{}", at));
            function(
                &mut out,
                &name(op, shape),
                &[("x", shape), ("z", shape), ("y", shape)],
                &body,
            );
        }
        let body = format!("y[0] = T.float32(0)\n{over}\n    y[0] = y[0] + x[{at}]");
        function(&mut out, &name("total", shape), &[("x", shape), ("y", &[1])], &body);
    }
    out
}

/// A graph over the library, as text.
fn graph(random: &mut Random) -> String {
    let mut values: Vec<(String, Vec<usize>)> =
        vec![("x".into(), vec![6]), ("s".into(), vec![3, 3])];
    let mut body = String::new();
    let number = |r: &mut Random| ["1.0", "2.0", "-1.5", "0.0"][r.below(4)].to_owned();
    if random.below(2) == 0 {
        let list: Vec<String> = (0..6).map(|_| number(random)).collect();
        let _ = writeln!(body, "            w = R.const([{}], \"float32\")", list.join(", "));
        values.push(("w".into(), vec![6]));
    }
    let mut totals = Vec::new();
    for k in 0..4 + random.below(12) {
        // Mostly from what came last, so that chains are long.
        let at = match random.below(3) {
            0 => random.below(values.len()),
            _ => values.len() - 1,
        };
        let (arg, shape) = values[at].clone();
        let pack: Vec<&TiledLayout> = LAYOUTS.iter().filter(|l| l.logical == shape).collect();
        let crop: Vec<&TiledLayout> = LAYOUTS.iter().filter(|l| l.physical == shape).collect();
        // Work in a layout and crops of it; conversions of what is logical.
        let (packs, crops) = match (pack.is_empty(), crop.is_empty()) {
            (true, _) => (0, 4),
            (_, true) => (6, 6),
            _ => (3, 6),
        };
        let (func, args, to): (String, Vec<String>, Vec<usize>) = match random.below(12) {
            k if k < packs => {
                let l = random.of(&pack);
                let pad = match (l.data, random.below(8)) {
                    ("", _) => "pack",
                    (_, 0..=3) => "zero",
                    (_, 4) => "none",
                    (_, k) => PADS[k - 4].0,
                };
                (format!("{}_{pad}", l.name), vec![arg], l.physical.to_vec())
            }
            k if k < crops => {
                let l = random.of(&crop);
                (format!("{}_back", l.name), vec![arg], l.logical.to_vec())
            }
            6 if !pack.is_empty() => {
                (format!("{}_staged", random.of(&pack).name), vec![arg], shape)
            }
            7 => {
                let same: Vec<&(String, Vec<usize>)> =
                    values.iter().filter(|v| v.1 == shape).collect();
                let other = random.of(&same).0.clone();
                (name(random.of(&BINARY).0, &shape), vec![arg, other], shape)
            }
            8 => (name("total", &shape), vec![arg], vec![1]),
            _ => (name(random.of(&UNARY).0, &shape), vec![arg], shape),
        };
        let var = if to == [1] { format!("t{k}") } else { format!("v{k}") };
        let ty = format!("R.Tensor({}, \"float32\")", tuple(&to));
        let args = format!("({},)", args.join(", "));
        let _ =
            writeln!(body, "            {var} = R.call_tir(cls.{func}, {args}, out_sinfo={ty})");
        if to == [1] { totals.push(var) } else { values.push((var, to)) }
    }
    let mut outputs = totals;
    outputs.push(values[values.len() - 1].0.clone());
    outputs.push(random.of(&values).0.clone());
    let outputs = outputs.join(", ");
    format!(
        "    @R.function\n    def main(x: R.Tensor((6,), \"float32\"), s: R.Tensor((3, 3), \"float32\")):\n        \
         cls = Module\n        with R.dataflow():\n{body}            R.output({outputs})\n        return ({outputs})\n"
    )
}

fn run(module: &Module, inputs: &[Tensor]) -> Result<Vec<Output>, String> {
    let options = RunOptions { fill: Fill::Random(3), ..RunOptions::default() };
    let run = Interpreter::new(module, options).and_then(|mut i| i.run("main", inputs));
    run.map_err(|e| e.render())
}

fn inputs(random: &mut Random) -> Vec<Tensor> {
    let mut tensor = |shape: &[usize]| {
        let element = |r: &mut Random| match r.below(12) {
            0 => f32::INFINITY,
            k => k as f32 - 5.5,
        };
        let values: Vec<f32> = (0..shape.iter().product()).map(|_| element(random)).collect();
        Tensor::from_slice(shape, &values).expect("small")
    };
    vec![tensor(&[6]), tensor(&[3, 3])]
}

/// Where the first result has a value, the second one has the same.
fn agree(old: &[Output], new: &[Output]) -> bool {
    let cell = |o: &Output, i: usize| {
        let state = o.states.as_ref().map_or(State::Value, |s| s[i]);
        (state, o.tensor.get_f64(i))
    };
    let same = |old: &Output, new: &Output, i: usize| match (cell(old, i), cell(new, i)) {
        ((State::Value, a), (State::Value, b)) => a == b || (a.is_nan() && b.is_nan()),
        ((State::Value, _), _) => false,
        _ => true,
    };
    old.len() == new.len()
        && old.iter().zip(new).all(|(old, new)| (0..old.tensor.len()).all(|i| same(old, new, i)))
}

/// The conversions that a graph function calls, with the variables that they go between.
fn conversions(module: &Module, f: &GraphFunc) -> Vec<(GraphExpr, GraphExpr, Conversion)> {
    let mut known = Recognised::default();
    let mut found = Vec::new();
    for b in f.bindings() {
        if let GraphExpr::CallTir { func, args, .. } = &b.value {
            let callee = module.tensor(func).expect("it is there");
            if let Some(c) = known.call(func, callee, &b.value) {
                found.push((args[0].clone(), b.var.expr(), (*c).clone()));
            }
        }
    }
    found
}

fn id(e: &GraphExpr) -> Option<u64> {
    match e {
        GraphExpr::Var(v) => Some(v.id()),
        _ => None,
    }
}

/// Whether a conversion gives its argument back on some inputs.
fn changes_nothing(module: &Module, f: &GraphFunc, from: &GraphExpr, to: &GraphExpr) -> bool {
    let block = BindingBlock {
        outputs: [from, to]
            .iter()
            .filter_map(|e| match e {
                GraphExpr::Var(v) if f.params.iter().all(|p| p != v) => Some(v.clone()),
                _ => None,
            })
            .collect(),
        ..f.blocks[0].clone()
    };
    let mut probe = module.clone();
    let ret = GraphExpr::Tuple(vec![from.clone(), to.clone()]);
    let mut attrs = f.attrs.clone();
    attrs.remove("output_names");
    probe.insert("main", GraphFunc { blocks: vec![block], ret, attrs, ..f.clone() });
    (0..3).all(|seed| {
        let got = run(&probe, &inputs(&mut Random(seed))).expect("runs");
        agree(&got[1..], &got[..1])
    })
}

#[test]
fn random_graphs_compute_the_same_and_nothing_is_left_to_cancel() {
    let library = library();
    let (mut tried, mut graphs, mut before, mut after) = (0u64, 0, 0, 0);
    while graphs < GRAPHS {
        tried += 1;
        let mut random = Random(tried);
        let main = graph(&mut random);
        let called = library.iter().filter(|f| main.contains(&format!("cls.{},", f.0)));
        let functions: String = called.map(|f| f.1.as_str()).collect();
        let text = format!("@I.ir_module\nclass Module:\n{functions}\n{main}");
        let source = Source::new("graph.py", text.clone());
        let module = parse_module(&source).unwrap_or_else(|e| panic!("{}\n{text}", e.render()));
        let given = inputs(&mut random);
        // What reads cells that are never written means nothing.
        let Ok(expected) = run(&module, &given) else { continue };
        graphs += 1;
        let leave = [Leave::Value, Leave::Undef, Leave::Nothing][random.below(3)];
        let mut why = Remarks::new();
        let all = |m: &Module, why: &mut Remarks| {
            let m = lift_layout(m, leave, why)?;
            let m = fold_constant(&m, usize::MAX, &mut interpret, why)?;
            cancel_layout(&m, why)
        };
        let done = all(&module, &mut why).unwrap_or_else(|e| panic!("{}", e.render()));
        let main = |m: &Module| {
            let script = print_module(m);
            script.split_once("    @R.function").map_or(script.clone(), |s| s.1.to_owned())
        };
        let shown = || format!("graph {tried}\n{}\nbecame\n{}", main(&module), main(&done));
        let got = run(&done, &given).unwrap_or_else(|e| panic!("{e}\n{}", shown()));
        assert!(agree(&expected, &got), "{}", shown());
        let f = done.graph("main").expect("it is there");
        let left = conversions(&done, f);
        before += conversions(&module, module.graph("main").expect("it is there")).len();
        after += left.len();
        for (from, to, c) in &left {
            assert!(!c.is_identity(), "{c}\n{}", shown());
            // A view before or after is free; everything else is one conversion.
            if let Some((_, _, first)) = left.iter().find(|l| id(&l.1) == id(from)) {
                assert!(first.is_view() || c.is_view(), "{first} and {c}\n{}", shown());
                let both = first.then(c).expect("composes");
                assert!(!both.is_identity(), "{first} and {c}\n{}", shown());
            }
            if c.takes_own_cells() {
                let needless = changes_nothing(&done, f, from, to);
                assert!(!needless, "{c}\n{}\n{why:#?}", shown());
            }
        }
    }
    assert!(before > 2 * after, "of {before} conversions {after} are left");
}
