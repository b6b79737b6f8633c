//! Files from nowhere: importing ends, in bounded time and memory, with a module or an error.
//!
//! `TILEWRIGHT_FUZZ_ITERS` sets the number of files a test (default 3000).

use std::panic::catch_unwind;
use std::time::{Duration, Instant};

use crate::common::*;
use prost::Message;
use tilewright_graph::sizes::{self, Sizes};
use tilewright_interp::{Interpreter, RunOptions};
use tilewright_ir::{DType, Error, Module, Tensor, well_formed};
use tilewright_onnx::proto::{AttributeProto, DataType, ModelProto, TensorProto};
use tilewright_onnx::{ImportOptions, import_bytes, supported_ops};

/// Longest time for one file; small ones take about a millisecond.
const PATIENCE: Duration = Duration::from_secs(10);

/// A stream of numbers from a seed (Marsaglia's xorshift64*).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize) % bound.max(1)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

fn iterations() -> u64 {
    std::env::var("TILEWRIGHT_FUZZ_ITERS").ok().and_then(|v| v.parse().ok()).unwrap_or(3000)
}

/// Small budgets, so that a file that asks for much is refused early.
fn options() -> ImportOptions {
    ImportOptions { constant_bytes: 8 << 20, constant_steps: 1 << 16, ..Default::default() }
}

/// Largest memory that this process ever had, in bytes, where the system tells.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kb| kb << 10)
}

/// Imports the files that `make` gives, one a seed, and checks what comes out. Two threads share the seeds.
fn survive(make: impl Fn(&mut Random) -> Vec<u8> + std::panic::RefUnwindSafe + Sync) {
    let count = iterations();
    let every_second = |first: u64| {
        let (mut imported, mut slowest) = (0u64, Duration::ZERO);
        for seed in (first..count).step_by(2) {
            let start = Instant::now();
            imported += u64::from(survives(seed, &make));
            let took = start.elapsed();
            assert!(took < PATIENCE, "seed {seed}: {took:?}");
            slowest = slowest.max(took);
        }
        (imported, slowest)
    };
    let (even, odd) = std::thread::scope(|threads| {
        let other = threads.spawn(|| every_second(1));
        (every_second(0), other.join().expect("the other half survives"))
    });
    let (imported, slowest) = (even.0 + odd.0, even.1.max(odd.1));
    println!("{imported} of {count} were imported, the slowest file took {slowest:?}");
    assert!(imported > 0, "no file is valid, so not much is tried");
    if let Some(peak) = peak() {
        println!("{} MiB of memory at most", peak >> 20);
        assert!(peak < 1 << 30, "{peak} bytes of memory");
    }
}

/// Imports the file of a seed, and checks what comes out. Whether it was imported.
fn survives(
    seed: u64,
    make: &(impl Fn(&mut Random) -> Vec<u8> + std::panic::RefUnwindSafe),
) -> bool {
    let result = catch_unwind(|| {
        let bytes = make(&mut Random::new(seed));
        import_bytes("fuzz", bytes, &options())
    });
    let Ok(result) = result else { panic!("seed {seed}: a panic") };
    match result {
        Ok(module) => check(&module, seed),
        Err(Error::Internal(d)) => panic!("seed {seed}: {d}"),
        Err(e) => {
            assert!(e.to_string().starts_with("`fuzz`: "), "seed {seed}: {e}");
            return false;
        }
    }
    true
}

/// What comes out is well formed, and running it on some numbers does nothing illegal.
fn check(module: &Module, seed: u64) {
    if let Err(e) = well_formed::check_module(module) {
        panic!("seed {seed}: {}", e.render());
    }
    // Sizes that stay open are small ones. With some, a window does not fit, say.
    let given = sizes::open(module).iter().fold(Sizes::new(), |s, name| s.dim(&**name, 3));
    let module = match sizes::fill(module, &given) {
        Ok(filled) if well_formed::check_module(&filled).is_ok() => &filled.clone(),
        _ => return,
    };
    let main = module.graph("main").unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    let mut inputs = Vec::new();
    for param in &main.params {
        let ty = param.ty().as_tensor().unwrap_or_else(|| panic!("seed {seed}: {param:?}"));
        let shape = ty.const_shape().unwrap_or_else(|| panic!("seed {seed}: {param:?}"));
        if shape.iter().product::<usize>() > 1 << 16 {
            return;
        }
        // Small numbers, none zero, so that integers may be divided.
        let ones = sample(&shape, seed as u32);
        let mut t = Tensor::zeros(ty.dtype, &shape).unwrap_or_else(|e| panic!("{e}"));
        match ty.dtype {
            DType::F32 => t = ones,
            _ => t.bytes_mut().chunks_exact_mut(ty.dtype.bytes()).for_each(|c| c[0] = 1),
        }
        inputs.push(t);
    }
    let limits = RunOptions { steps: Some(1 << 18), memory: 1 << 26, ..Default::default() };
    let mut interpreter =
        Interpreter::new(module, limits).unwrap_or_else(|e| panic!("seed {seed}: {}", e.render()));
    match interpreter.run("main", &inputs) {
        Ok(outputs) => {
            let missing = outputs.iter().find_map(|o| o.first_missing().map(|m| (&o.name, m)));
            assert!(missing.is_none(), "seed {seed}: {missing:?}");
        }
        Err(e) => {
            let said = e.to_string();
            // The check of data that must lie within bounds is such a case too, and so are lists, which
            // the interpreter gives as values of a graph only.
            let allowed = [
                "division by zero",
                "negative power",
                "steps",
                "memory",
                "lies outside of",
                "a part is not positive",
                "the lengths of the parts",
                "there is no position",
                "there is a list where a tensor is needed",
            ];
            assert!(allowed.iter().any(|a| said.contains(a)), "seed {seed}: {}", e.render());
        }
    }
}

/// A valid model with something of everything.
fn valid() -> M {
    model()
        .opset(17)
        .input("x", [1, 2, 6, 6])
        .typed_input("n", DataType::Int64, [3])
        .floats("w", &[4, 2, 3, 3], &(0..72).map(|v| v as f32 / 7.0).collect::<Vec<_>>())
        .floats("c", &[4], &[0.5, 1.0, 1.5, 2.0])
        .ints("two", &[2])
        .node_with(
            "Conv",
            &["x", "w", "c"],
            &["a"],
            [ints("pads", &[1, 1, 0, 0]), ints("strides", &[2, 1]), int("group", 1)],
        )
        .node_with(
            "BatchNormalization",
            &["a", "c", "c", "c", "c"],
            &["b"],
            [float("epsilon", 1e-3)],
        )
        .node("Relu", &["b"], &["r"])
        .node_with(
            "MaxPool",
            &["r"],
            &["p"],
            [ints("kernel_shape", &[2, 2]), text("auto_pad", "SAME_UPPER")],
        )
        .node("Shape", &["p"], &["s"])
        .node_with("Constant", &[], &["zero"], [tensor("value", int_tensor(&[1], &[0]))])
        .node_with("Gather", &["s", "zero"], &["g"], [int("axis", 0)])
        .node_with("Constant", &[], &["minus"], [ints("value_ints", &[-1])])
        .node_with("Concat", &["g", "minus"], &["t"], [int("axis", 0)])
        .node("Reshape", &["p", "t"], &["flat"])
        .node("Softmax", &["flat"], &["y"])
        .node("Mul", &["n", "two"], &["m"])
        .node("ConstantOfShape", &["t2"], &["k"])
        .ints("t2", &[1, 3])
        .node("Expand", &["k", "t2"], &["e"])
        .node_with("Cast", &["e"], &["ei"], [int("to", 7)])
        .node("Add", &["ei", "m"], &["z"])
        .output("y")
        .output("z")
}

#[test]
fn bytes_that_were_changed() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/digits/digits.onnx");
    let digits = std::fs::read(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    // Its batch is open; here it is one image.
    let mut digits =
        ModelProto::decode(digits.as_slice()).unwrap_or_else(|e| panic!("{path}: {e}"));
    let input = digits.graph.iter_mut().flat_map(|g| &mut g.input).next();
    *input.unwrap_or_else(|| panic!("{path}")) = value("image", DataType::Float, [1, 1, 8, 8]);
    let files = [valid().bytes(), digits.encode_to_vec()];
    survive(|r| {
        let mut bytes = files[usize::from(r.below(8) == 0)].clone();
        // Most of a file is weights; what matters stands at its ends.
        let place = |r: &mut Random, now: usize| match r.below(3) {
            0 => r.below(now),
            1 => r.below(now.min(4000)),
            _ => now - 1 - r.below(now.min(600)),
        };
        for _ in 0..=r.below(4) {
            let at = place(r, bytes.len());
            match r.below(8) {
                0 => bytes[at] ^= 1 << r.below(8),
                1 => bytes[at] = r.pick(&[0, 1, 0x7f, 0x80, 0xff]),
                2 => bytes.insert(at, r.below(256) as u8),
                3 => drop(bytes.remove(at)),
                4 if r.below(8) == 0 => bytes.truncate(at),
                5 => {
                    let end = (at + r.below(32)).min(bytes.len());
                    let part = bytes[at..end].to_vec();
                    let to = r.below(bytes.len());
                    bytes.splice(to..to, part);
                }
                // A number or a letter in place, so that the structure stays.
                _ => bytes[at] = bytes[at].wrapping_add(r.pick(&[1, 2, 0xff])),
            }
            if bytes.is_empty() {
                bytes.push(0);
            }
        }
        bytes
    });
}

const NAMES: [&str; 14] =
    ["x", "y", "f", "n", "b", "l0", "l1", "l2", "w", "s", "o0", "o1", "o2", ""];

/// Sizes at the edges of everything.
fn number(r: &mut Random) -> i64 {
    match r.below(12) {
        0 => r.pick(&[i64::MAX, i64::MIN, 1 << 31, -(1 << 31), 1 << 40, 1 << 20]),
        1 | 2 => -(r.below(4) as i64),
        _ => r.below(6) as i64,
    }
}

fn numbers(r: &mut Random) -> Vec<i64> {
    (0..r.below(6)).map(|_| number(r)).collect()
}

fn shape(r: &mut Random) -> Vec<i64> {
    (0..r.below(5))
        .map(|_| if r.below(30) == 0 { number(r) } else { 1 + r.below(4) as i64 })
        .collect()
}

/// The attributes of operators that have some.
const ATTRIBUTES: [(&[&str], &[&str]); 22] = [
    (
        &["Conv", "ConvTranspose"],
        &["auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"],
    ),
    (&["ConvTranspose"], &["output_shape", "output_padding"]),
    (
        &["MaxPool", "AveragePool", "LpPool"],
        &["auto_pad", "ceil_mode", "kernel_shape", "pads", "strides"],
    ),
    (
        &["Softmax", "LogSoftmax", "Hardmax", "Concat", "Flatten", "Gather", "GatherElements"],
        &["axis"],
    ),
    (&["ScatterElements", "ScatterND"], &["axis", "reduction"]),
    (
        &["ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp"],
        &["axes", "keepdims"],
    ),
    (&["ArgMax", "ArgMin"], &["axis", "keepdims", "select_last_index"]),
    (&["CumSum"], &["exclusive", "reverse"]),
    (&["Transpose"], &["perm"]),
    (&["Squeeze", "Unsqueeze", "MeanVarianceNormalization"], &["axes"]),
    (&["Slice"], &["axes", "starts", "ends"]),
    (&["Split"], &["axis", "split", "num_outputs"]),
    (&["Pad"], &["mode", "pads"]),
    (&["DepthToSpace", "SpaceToDepth"], &["blocksize"]),
    (&["GatherND"], &["batch_dims"]),
    (&["ReverseSequence"], &["batch_axis", "time_axis"]),
    (&["Gemm"], &["transA", "transB", "alpha"]),
    (&["Cast"], &["to"]),
    (&["Shape"], &["start", "end"]),
    (&["LRN"], &["size"]),
    (&["LayerNormalization", "RMSNormalization", "LpNormalization"], &["axis"]),
    (&["GroupNormalization"], &["num_groups"]),
];

fn random_attribute(r: &mut Random, name: &str) -> AttributeProto {
    const LISTS: [&str; 11] = [
        "axes",
        "perm",
        "pads",
        "strides",
        "dilations",
        "kernel_shape",
        "split",
        "starts",
        "ends",
        "output_shape",
        "output_padding",
    ];
    let pads = ["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"];
    match name {
        "alpha" => float(name, number(r) as f32),
        "auto_pad" => text(name, r.pick(&pads)),
        "mode" => text(name, r.pick(&["constant", "edge", "reflect", "wrap"])),
        "reduction" => text(name, r.pick(&["none", "add", "mul", "min", "max"])),
        "to" => int(name, 1 + r.below(16) as i64),
        _ if LISTS.contains(&name) => ints(name, &numbers(r)),
        _ => int(name, number(r)),
    }
}

/// A model to which nodes are added while they fit, so that parameters that fit by luck meet.
fn random(r: &mut Random) -> Vec<u8> {
    let ops: Vec<&str> = supported_ops().filter(|o| o.domain.is_empty()).map(|o| o.name).collect();
    let mut m = model().opset(9 + r.below(20) as i64);
    let same = shape(r);
    m = m.input("x", same.clone());
    m = m.input("y", if r.below(2) == 0 { same.clone() } else { shape(r) });
    let whole = [DataType::Int64, DataType::Int32, DataType::Uint8];
    m = m.typed_input("n", r.pick(&whole), same.clone());
    m = m.typed_input("b", DataType::Bool, same.clone());
    for name in ["l0", "l1", "l2"] {
        let values = numbers(r);
        m = m.ints(name, &values);
    }
    let dims: Vec<i64> = (0..r.below(5)).map(|_| 1 + r.below(3) as i64).collect();
    let count = dims.iter().product::<i64>() as usize;
    m = m.floats("w", &dims, &vec![0.5; count]).floats("f", &[], &[2.0]);
    m = m.constant(TensorProto { name: "s".into(), ..int_tensor(&[], &[number(r)]) });
    for k in 0..10 {
        let op = r.pick(&ops);
        let count = 1 + r.below(4);
        let inputs: Vec<&str> = (0..count)
            .map(|i| match i {
                _ if m.graph.node.len() > 1 && r.below(3) == 0 => "o1",
                0 => r.pick(&NAMES[..5]),
                _ => r.pick(&NAMES),
            })
            .collect();
        let mut attributes = Vec::new();
        for (_, names) in ATTRIBUTES.iter().filter(|(ops, _)| ops.contains(&op)) {
            for name in *names {
                if r.below(2) == 0 {
                    attributes.push(random_attribute(r, name));
                }
            }
        }
        let name = format!("o{}", m.graph.node.len());
        let more = format!("more{}", m.graph.node.len());
        let outputs = [name.as_str(), &more];
        let wider = m
            .copy()
            .node_with(op, &inputs, &outputs[..1 + r.below(6) / 5], attributes)
            .output(&name);
        let fits = wider.import_with(&options()).is_ok();
        // The last one may be any.
        if fits || (k == 9 && r.below(4) == 0) {
            m = wider;
        }
    }
    m.bytes()
}

#[test]
fn nodes_with_any_parameters() {
    survive(random);
}
