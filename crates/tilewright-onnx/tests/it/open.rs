//! Models whose sizes stay open: with the sizes filled in, their modules compute what the models
//! imported with these sizes do.

use crate::common::*;
use tilewright_graph::sizes::{self, Sizes};
use tilewright_interp::run_module;
use tilewright_ir::{DType, GraphType, Module, Result, Tensor, dim, well_formed};
use tilewright_onnx::ImportOptions;
use tilewright_onnx::proto::{AttributeProto, DataType, TensorProto};

/// Numbers for the parameters of a module without open sizes; integers are small positions.
fn inputs(module: &Module) -> Result<Vec<Tensor>> {
    let main = module.graph("main")?;
    let mut all = Vec::new();
    for (k, p) in main.params.iter().enumerate() {
        let GraphType::Tensor(ty) = p.ty() else { panic!("{p:?}") };
        let shape = ty.const_shape().unwrap_or_else(|| panic!("an open size in {:?}", p.ty()));
        let t = sample(&shape, k as u32 + 1);
        all.push(match ty.dtype {
            DType::F32 => t,
            DType::BOOL => {
                let bits: Vec<u8> = (0..t.len()).map(|i| u8::from(t.get_f64(i) > 0.0)).collect();
                Tensor::from_bytes(DType::BOOL, &shape, &bits)?
            }
            _ => {
                let of: Vec<i64> =
                    (0..t.len()).map(|i| (t.get_f64(i).abs() * 4.0) as i64).collect();
                Tensor::from_slice(&shape, &of)?
            }
        });
    }
    Ok(all)
}

/// Compares a model at several sizes. The module of the open model comes back.
pub(crate) fn agrees(m: &M, cases: &[&[(&str, usize)]]) -> Module {
    let open = m.import().unwrap_or_else(|e| panic!("{}", e.render()));
    well_formed::check_module(&open).unwrap_or_else(|e| panic!("{}", e.render()));
    assert!(!sizes::open(&open).is_empty(), "no size is open");
    for case in cases {
        let compare = || -> Result<()> {
            let given = case.iter().fold(Sizes::new(), |s, (name, size)| s.dim(*name, *size));
            let filled = sizes::fill(&open, &given)?;
            assert!(sizes::open(&filled).is_empty());
            well_formed::check_module(&filled)?;
            let dims = case.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
            let fixed = m.import_with(&ImportOptions { dims, ..Default::default() })?;
            let args = inputs(&fixed)?;
            let (got, want) =
                (run_module(&filled, "main", &args)?, run_module(&fixed, "main", &args)?);
            assert_eq!(got.len(), want.len());
            for (got, want) in got.iter().zip(&want) {
                assert_eq!(got.shape(), want.shape(), "{case:?}");
                let (far, large) = (distance(got, want), 1.0 + largest(want));
                assert!(far <= 1e-5 * large, "{case:?}: {far} apart");
            }
            Ok(())
        };
        compare().unwrap_or_else(|e| panic!("{case:?}: {}", e.render()));
    }
    open
}

fn largest(t: &Tensor) -> f64 {
    (0..t.len()).map(|i| t.get_f64(i).abs()).fold(0.0, f64::max)
}

/// The shape of the first result, as text.
pub(crate) fn result_type(module: &Module) -> String {
    let main = module.graph("main").unwrap_or_else(|e| panic!("{e}"));
    let ty = match &main.ret_ty {
        Some(GraphType::Tuple(items)) => items.first(),
        other => other.as_ref(),
    };
    let Some(GraphType::Tensor(ty)) = ty else { panic!("{:?}", main.ret_ty) };
    let size = |e| tilewright_ir::Dim::from_expr(e).map_or("?".to_owned(), |d| d.to_string());
    ty.shape.iter().map(size).collect::<Vec<_>>().join(", ")
}

const N: &[&[(&str, usize)]] = &[&[("N", 1)], &[("N", 2)], &[("N", 5)], &[("N", 8)]];

/// A node on `x` of shape `[2, N, 6]`, with constants.
fn one(
    op: &str,
    constants: &[(&str, &[i64])],
    attributes: impl IntoIterator<Item = AttributeProto>,
) -> M {
    let mut m = model().input("x", [D::N(2), D::S("N"), D::N(6)]);
    let mut names = vec!["x"];
    for (name, values) in constants {
        m = m.ints(name, values);
        names.push(name);
    }
    m.node_with(op, &names, &["y"], attributes).output("y")
}

#[test]
fn elementwise_operators_stretch_ones() {
    let m = model()
        .input("x", [D::S("N"), D::N(1), D::S("M")])
        .input("y", [D::N(3), D::S("M")])
        .input("z", [D::N(1), D::N(1)])
        .node("Add", &["x", "y"], &["a"])
        .node("Mul", &["a", "z"], &["b"])
        .node("Relu", &["b"], &["c"])
        .node("Less", &["c", "x"], &["d"])
        .node("Where", &["d", "b", "c"], &["e"])
        .output("e");
    let open = agrees(&m, &[&[("N", 2), ("M", 5)], &[("N", 1), ("M", 1)], &[("N", 7), ("M", 3)]]);
    assert_eq!(result_type(&open), "N, 3, M");
}

/// The shape of a parameter, as text.
fn param_type(module: &Module, name: &str) -> String {
    let main = module.graph("main").unwrap_or_else(|e| panic!("{e}"));
    let param = main.params.iter().find(|p| **p.name() == *name);
    let Some(GraphType::Tensor(ty)) = param.map(|p| p.ty()) else { panic!("no tensor `{name}`") };
    let size = |e| tilewright_ir::Dim::from_expr(e).map_or("?".to_owned(), |d| d.to_string());
    ty.shape.iter().map(size).collect::<Vec<_>>().join(", ")
}

#[test]
fn sizes_that_operators_need_to_be_equal_are_one() {
    let sum = |y: &str| {
        model()
            .input("x", [D::S("N"), D::N(3)])
            .input("y", [D::S(if y == "M" { "M" } else { "N" }), D::N(3)])
            .node("Add", &["x", "y"], &["z"])
            .output("z")
    };
    let open = sum("M").import().unwrap_or_else(|e| panic!("{}", e.render()));
    assert_eq!((param_type(&open, "y"), result_type(&open)), ("N, 3".into(), "N, 3".into()));
    // A mask over what was and what comes, as models of text have it that generate word by word.
    let m = model()
        .input("past", [D::S("batch"), D::S("past"), D::N(4)])
        .input("x", [D::S("batch_1"), D::S("length"), D::N(4)])
        .input("mask", [D::S("batch_2"), D::S("past + length")])
        .ints("last", &[2])
        .node_with("Concat", &["past", "x"], &["all"], [int("axis", 1)])
        .node_with("ReduceSum", &["all", "last"], &["sums"], [int("keepdims", 0)])
        .node("Add", &["sums", "mask"], &["y"])
        .output("y");
    let open = m.import().unwrap_or_else(|e| panic!("{}", e.render()));
    assert_eq!(param_type(&open, "x"), "batch, length, 4");
    assert_eq!(param_type(&open, "mask"), "batch, past + length");
    assert_eq!(result_type(&open), "batch, past + length");
    // Of products, the factor that differs.
    let m = model()
        .input("x", [D::S("N"), D::S("L"), D::N(6)])
        .input("y", [D::S("N"), D::S("K"), D::N(2), D::N(3)])
        .node("Shape", &["y"], &["s"])
        .node("Reshape", &["x", "s"], &["r"])
        .node("Add", &["r", "y"], &["z"])
        .output("z");
    let open = m.import().unwrap_or_else(|e| panic!("{}", e.render()));
    assert_eq!(param_type(&open, "y"), param_type(&open, "x").replace('6', "2, 3"));
    // A batch that goes is one.
    let m = model()
        .input("x", [D::S("N"), D::S("L")])
        .ints("first", &[0])
        .node("Squeeze", &["x", "first"], &["y"])
        .output("y");
    let open = m.import().unwrap_or_else(|e| panic!("{}", e.render()));
    assert_eq!(param_type(&open, "x"), "1, L");
}

#[test]
fn the_last_row_of_rows_that_may_be_none_stretches() {
    // As models of images normalise positions: the last one, of every eighth row, is one row or none.
    let m = model()
        .input("x", [D::S("H"), D::N(3)])
        .ints("begins", &[0])
        .ints("ends", &[i64::MAX])
        .ints("axes", &[0])
        .ints("steps", &[1])
        .ints("last", &[-1])
        .node("Shape", &["x"], &["s"])
        .ints("eight", &[8])
        .ints("first", &[0])
        .node_with("Gather", &["s", "first"], &["h"], [int("axis", 0)])
        .node("Div", &["h", "eight"], &["rows"])
        .node("Slice", &["x", "begins", "rows", "axes", "steps"], &["part"])
        .node("Slice", &["part", "last", "ends", "axes", "steps"], &["end"])
        .node("Add", &["part", "end"], &["sum"])
        .node("Mul", &["end", "sum"], &["y"])
        .output("y");
    let open = agrees(&m, &[&[("H", 8)], &[("H", 7)], &[("H", 45)], &[("H", 1)]]);
    assert_eq!((param_type(&open, "x"), result_type(&open)), ("H, 3".into(), "H // 8, 3".into()));
}

#[test]
fn sizes_that_may_differ_are_refused() {
    // What is said of a size is kept.
    let m = model()
        .input("x", [D::N(4), D::N(3)])
        .input("y", [D::S("M"), D::N(3)])
        .node("Add", &["x", "y"], &["z"])
        .output("z");
    let small = dim::SizeRange::new(5, 9).unwrap_or_else(|e| panic!("{e}"));
    let small = [("M".to_owned(), small)].into_iter().collect();
    let e = m.import_with(&ImportOptions { ranges: small, ..Default::default() });
    let said = e.err().map(|e| e.render()).unwrap_or_default();
    assert!(said.contains("do not broadcast together"), "{said}");
}

#[test]
fn operators_that_need_numbers_say_so() {
    let said = one("LRN", &[], [int("size", 3)]).refused();
    assert!(said.contains("the size `N` must be known when the program is compiled"), "{said}");
    assert!(said.contains("help: give it: --dim N=SIZE"), "{said}");
}

#[test]
fn determinants_of_as_many_matrices_as_there_are() {
    let m = model().input("x", [D::S("N"), D::N(3), D::N(3)]).node("Det", &["x"], &["y"]);
    agrees(&m.output("y"), N);
}

/// As Keras writes the norm of a layer: examples are channels, and statistics come from them.
#[test]
fn as_many_channels_as_there_are_examples() {
    let m = model()
        .input("x", [D::N(2), D::S("N"), D::N(6)])
        .node_with("ReduceMean", &["x"], &["mean"], [ints("axes", &[0, 2]), int("keepdims", 0)])
        .node("Abs", &["mean"], &["var"])
        .node("Neg", &["mean"], &["bias"])
        .node("BatchNormalization", &["x", "mean", "bias", "mean", "var"], &["y"])
        .output("y");
    agrees(&m, N);
}

/// A step that no axis is as long as takes one element, as TensorFlow writes `x[i]`.
#[test]
fn steps_that_are_longer_than_the_axis() {
    for step in [70_000, 1_000_000_000, i64::from(i32::MAX), i64::MAX] {
        let far: [(&str, &[i64]); 4] =
            [("s", &[2]), ("e", &[i64::MAX]), ("a", &[1]), ("t", &[step])];
        agrees(&one("Slice", &far, []), N);
        let back: [(&str, &[i64]); 4] =
            [("s", &[-1]), ("e", &[i64::MIN]), ("a", &[1]), ("t", &[-step])];
        agrees(&one("Slice", &back, []), N);
    }
}

#[test]
fn the_best_of_an_open_axis() {
    for axis in [1, 2] {
        agrees(&one("TopK", &[("k", &[1])], [int("axis", axis)]), N);
    }
}

#[test]
fn reductions_and_normalisations() {
    for (op, axis) in [
        ("ReduceMax", 1),
        ("ReduceMean", 1),
        ("ReduceSumSquare", 1),
        ("ReduceL2", 2),
        ("ReduceLogSumExp", 1),
    ] {
        agrees(&one(op, &[], [ints("axes", &[axis])]), N);
    }
    agrees(&one("ReduceSum", &[("axes", &[1, 2])], []), N);
    for axis in [0, 1, 2] {
        agrees(&one("Softmax", &[], [int("axis", axis)]), N);
        agrees(&one("LogSoftmax", &[], [int("axis", axis)]), N);
        agrees(&one("ArgMax", &[], [int("axis", axis)]), N);
        agrees(&one("CumSum", &[("axis", &[axis])], [int("reverse", axis % 2)]), N);
    }
    agrees(&one("Softmax", &[], [int("axis", 1)]).opset(12), N);
    agrees(&one("InstanceNormalization", &[], []).floats_of_channels(), N);
    for axis in [-1, 1] {
        let wide = if axis == 1 { vec![1, 6] } else { vec![6] };
        let m = model()
            .opset(17)
            .input("x", [D::N(2), D::S("N"), D::N(6)])
            .floats("s", &wide, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
            .node_with("LayerNormalization", &["x", "s"], &["y"], [int("axis", axis)])
            .output("y");
        agrees(&m, N);
    }
}

impl M {
    /// Scale and bias of two channels for the only node, whose data become `[N, 2, 6]`.
    fn floats_of_channels(self) -> M {
        let mut m = model()
            .input("x", [D::S("N"), D::N(2), D::S("L")])
            .floats("s", &[2], &[1.0, 2.0])
            .floats("b", &[2], &[0.5, -0.5])
            .node_with("InstanceNormalization", &["x", "s", "b"], &["y"], [])
            .output("y");
        m.graph.input[0] = value("x", DataType::Float, [D::S("N"), D::N(2), D::N(6)]);
        m
    }
}

#[test]
fn data_that_move() {
    agrees(&one("Transpose", &[], [ints("perm", &[1, 2, 0])]), N);
    agrees(&one("Flatten", &[], [int("axis", 2)]), N);
    for shape in [&[0i64, -1][..], &[2, -1, 2, 3], &[-1, 6], &[1, 0, 2, -1], &[-1]] {
        agrees(&one("Reshape", &[("shape", shape)], []), N);
    }
    agrees(&one("Unsqueeze", &[("axes", &[1, 4])], []), N);
    agrees(&one("Tile", &[("repeats", &[2, 3, 1])], []), N);
    agrees(&one("Expand", &[("shape", &[4, 1, 1, 6])], []), N);
    agrees(&one("Pad", &[("pads", &[0, 1, 2, 0, 3, 0])], []), N);
    agrees(&one("Pad", &[("pads", &[0, 1, 2, 0, 3, 0])], [text("mode", "edge")]), N);
    let reflect = one("Pad", &[("pads", &[0, 1, 2, 0, 1, 0])], [text("mode", "reflect")]);
    agrees(&reflect, &[&[("N", 2)], &[("N", 3)], &[("N", 7)]]);
    for (start, end, step) in
        [(0, -1, 1), (1, i64::MAX, 1), (-1, i64::MIN, -1), (-3, -1, 1), (1, 3, 1), (0, 7, 2)]
    {
        let given: &[(&str, &[i64])] =
            &[("starts", &[start]), ("ends", &[end]), ("axes", &[1]), ("steps", &[step])];
        agrees(&one("Slice", given, []), N);
    }
    agrees(&one("Gather", &[("at", &[0, -1, 0])], [int("axis", 1)]), N);
    agrees(&one("Gather", &[("at", &[5, 1])], [int("axis", 2)]), N);
    let m = model()
        .input("x", [D::N(2), D::S("N")])
        .input("y", [D::N(2), D::S("M")])
        .node_with("Concat", &["x", "y", "x"], &["z"], [int("axis", 1)])
        .output("z");
    let open = agrees(&m, &[&[("N", 2), ("M", 3)], &[("N", 5), ("M", 1)]]);
    assert_eq!(result_type(&open), "2, N * 2 + M");
    let m = model()
        .input("x", [D::S("N"), D::N(6)])
        .ints("sizes", &[1, 5])
        .node_with("Split", &["x", "sizes"], &["a", "b"], [int("axis", 1)])
        .node("Shape", &["x"], &["s"])
        .node_with("Concat", &["b", "a", "b"], &["z"], [int("axis", 1)])
        .output("z");
    agrees(&m, N);
}

/// Sizes of images of which some do not fit steps and windows.
pub(crate) const HW: &[&[(&str, usize)]] = &[
    &[("H", 1), ("W", 9)],
    &[("H", 2), ("W", 3)],
    &[("H", 5), ("W", 8)],
    &[("H", 6), ("W", 7)],
    &[("H", 11), ("W", 4)],
];

#[test]
fn padding_that_the_size_decides() {
    let w = sample(&[3, 2, 3, 3], 5);
    for (pad, step) in [("SAME_UPPER", 2), ("SAME_LOWER", 2), ("SAME_UPPER", 3), ("SAME_LOWER", 1)]
    {
        let steps = || [text("auto_pad", pad), ints("strides", &[step, step])];
        let pooled = || {
            let [a, b] = steps();
            [a, b, ints("kernel_shape", &[3, 2])]
        };
        let m = model()
            .input("x", [D::N(1), D::N(2), D::S("H"), D::S("W")])
            .floats("w", &[3, 2, 3, 3], w.as_slice::<f32>().unwrap_or_default())
            .floats("v", &[3, 2, 1, 1], &[0.5; 6])
            .node_with("Conv", &["x", "w"], &["a"], steps())
            .node_with("Conv", &["x", "v"], &["b"], steps())
            .node("Add", &["a", "b"], &["y"])
            .node_with("MaxPool", &["x"], &["p"], pooled())
            .node_with("AveragePool", &["x"], &["q"], pooled())
            .output("y")
            .output("p")
            .output("q");
        let open = agrees(&m, HW);
        // As many as steps fit, whatever the window: so sums of results are sums.
        let size = |d: &str| match step {
            1 => d.to_owned(),
            _ => format!("({d} + {}) // {step}", step - 1),
        };
        assert_eq!(result_type(&open), format!("1, 3, {}, {}", size("H"), size("W")));
    }
}

#[test]
fn products_of_matrices() {
    let m = model()
        .input("x", [D::S("B"), D::S("N"), D::N(4)])
        .input("y", [D::N(4), D::S("M")])
        .node("MatMul", &["x", "y"], &["a"])
        .node_with("Transpose", &["a"], &["t"], [ints("perm", &[0, 2, 1])])
        .node("MatMul", &["a", "t"], &["z"])
        .output("z");
    let open = agrees(&m, &[&[("B", 2), ("N", 3), ("M", 5)], &[("B", 1), ("N", 1), ("M", 1)]]);
    assert_eq!(result_type(&open), "B, N, N");
    let m = model()
        .input("x", [D::N(4), D::S("N")])
        .floats("w", &[4, 3], &[0.5; 12])
        .floats("b", &[3], &[1.0, 2.0, 3.0])
        .node_with("Gemm", &["x", "w", "b"], &["y"], [int("transA", 1)])
        .output("y");
    agrees(&m, N);
    let m = model()
        .input("x", [D::S("N"), D::N(3), D::S("M")])
        .input("y", [D::S("N"), D::S("M"), D::N(5)])
        .node_with("Einsum", &["x", "y"], &["z"], [text("equation", "bij,bjk->kb")])
        .output("z");
    agrees(&m, &[&[("N", 2), ("M", 3)], &[("N", 1), ("M", 4)]]);
}

#[test]
fn shape_arithmetic_stays_symbolic() -> Result<()> {
    // The last two axes become one, and a row of zeros as long as the batch goes before.
    let m = model()
        .input("x", [D::S("N"), D::S("M"), D::N(4)])
        .ints("zero", &[0])
        .ints("one", &[1])
        .ints("minus", &[-1])
        .ints("four", &[4])
        .node("Shape", &["x"], &["s"])
        .node("Gather", &["s", "zero"], &["n"])
        .node("Gather", &["s", "one"], &["m"])
        .node("Mul", &["m", "four"], &["wide"])
        .node_with("Concat", &["n", "wide"], &["shape"], [int("axis", 0)])
        .node("Reshape", &["x", "shape"], &["flat"])
        .node_with("Concat", &["one", "wide"], &["row"], [int("axis", 0)])
        .node("ConstantOfShape", &["row"], &["zeros"])
        .node_with("Concat", &["zeros", "flat"], &["all"], [int("axis", 0)])
        .node("Equal", &["shape", "minus"], &["unknown"])
        .node("Where", &["unknown", "minus", "shape"], &["again"])
        .node("Reshape", &["all", "minus"], &["line"])
        .node("Add", &["n", "one"], &["more"])
        .node_with("Concat", &["more", "m", "four"], &["last"], [int("axis", 0)])
        .node("Reshape", &["line", "last"], &["y"])
        .node("Expand", &["flat", "again"], &["same"])
        .output("y")
        .output("same");
    let open = agrees(&m, &[&[("N", 2), ("M", 3)], &[("N", 1), ("M", 1)], &[("N", 4), ("M", 5)]]);
    assert_eq!(result_type(&open), "N + 1, M, 4");
    let main = open.graph("main")?;
    // No call is left that computes a shape.
    assert!(main.bindings().count() <= 6, "{}", main.bindings().count());
    Ok(())
}

#[test]
fn sizes_may_be_data() {
    let m = model()
        .input("x", [D::S("N"), D::S("M")])
        .ints("two", &[2])
        .node("Shape", &["x"], &["s"])
        .node("Size", &["x"], &["count"])
        .node("Mul", &["s", "two"], &["t"])
        .node_with("Cast", &["t"], &["f"], [int("to", 1)])
        .node_with("ReduceSum", &["f"], &["sum"], [int("keepdims", 0)])
        .node("Mul", &["x", "sum"], &["y"])
        .output("y")
        .output("t")
        .output("count");
    agrees(&m, &[&[("N", 2), ("M", 3)], &[("N", 1), ("M", 5)]]);
}

#[test]
fn positions_are_ranges() {
    let m = model()
        .typed_input("ids", DataType::Int64, [D::S("N"), D::S("L")])
        .floats("words", &[5, 4], &[0.25; 20])
        .floats("places", &[9, 4], &[0.5; 36])
        .ints("zero", &[0])
        .constant(tilewright_onnx::proto::TensorProto {
            name: "at".into(),
            ..int_tensor(&[], &[1])
        })
        .constant(tilewright_onnx::proto::TensorProto {
            name: "first".into(),
            ..int_tensor(&[], &[0])
        })
        .constant(tilewright_onnx::proto::TensorProto {
            name: "step".into(),
            ..int_tensor(&[], &[1])
        })
        .node("Shape", &["ids"], &["s"])
        .node("Gather", &["s", "at"], &["l"])
        .node("Range", &["first", "l", "step"], &["r"])
        .node("Unsqueeze", &["r", "zero"], &["p"])
        .node("Expand", &["p", "s"], &["all"])
        .node("Gather", &["words", "ids"], &["w"])
        .node("Gather", &["places", "all"], &["q"])
        .node("Add", &["w", "q"], &["y"])
        .output("y");
    let open = agrees(&m, &[&[("N", 2), ("L", 3)], &[("N", 1), ("L", 9)]]);
    assert_eq!(result_type(&open), "N, L, 4");
}

/// A transformer encoder layer as exporters write it, with batch and length open.
fn encoder() -> M {
    let (hidden, heads, size, inner) = (8i64, 2i64, 4i64, 12i64);
    let weights = |m: M, name: &str, rows: i64, columns: i64, seed: u32| {
        let t = sample(&[rows as usize, columns as usize], seed);
        m.floats(name, &[rows, columns], t.as_slice::<f32>().unwrap_or_default())
    };
    let mut m = model().opset(17).input("x", [D::S("batch"), D::S("length"), D::N(hidden)]);
    m = m.typed_input("mask", DataType::Int64, [D::S("batch"), D::S("length")]);
    for (k, name) in ["wq", "wk", "wv", "wo"].into_iter().enumerate() {
        m = weights(m, name, hidden, hidden, 10 + k as u32);
    }
    m = weights(m, "w1", hidden, inner, 20);
    m = weights(m, "w2", inner, hidden, 21);
    m = m
        .floats("gamma", &[hidden], &[1.5; 8])
        .floats("beta", &[hidden], &[0.25; 8])
        .floats("scale", &[], &[0.5])
        .floats("low", &[], &[-10000.0])
        .floats("unit", &[], &[1.0])
        .ints("heads", &[heads])
        .ints("size", &[size])
        .ints("whole", &[hidden])
        .ints("axes", &[1, 2]);
    let scalar = |m: M, name: &str, v: i64| {
        m.constant(tilewright_onnx::proto::TensorProto {
            name: name.into(),
            ..int_tensor(&[], &[v])
        })
    };
    m = scalar(m, "zero", 0);
    m = scalar(m, "one", 1);
    m = m.ints("first", &[0]);
    m = m
        .node("Shape", &["x"], &["s"])
        .node_with("Gather", &["s", "zero"], &["b0"], [int("axis", 0)])
        .node("Unsqueeze", &["b0", "first"], &["b"])
        .node_with("Gather", &["s", "one"], &["l0"], [int("axis", 0)])
        .node("Unsqueeze", &["l0", "first"], &["l"])
        .node_with("Concat", &["b", "l", "heads", "size"], &["split"], [int("axis", 0)])
        .node_with("Concat", &["b", "l", "whole"], &["join"], [int("axis", 0)]);
    for (name, w) in [("q", "wq"), ("k", "wk"), ("v", "wv")] {
        let order = if name == "k" { [0, 2, 3, 1] } else { [0, 2, 1, 3] };
        let [flat, parts, turned] = ["flat", "parts", "turned"].map(|s| format!("{name}_{s}"));
        m = m
            .node("MatMul", &["x", w], &[&flat])
            .node("Reshape", &[&flat, "split"], &[&parts])
            .node_with("Transpose", &[&parts], &[&turned], [ints("perm", &order)]);
    }
    m.node("MatMul", &["q_turned", "k_turned"], &["raw"])
        .node("Mul", &["raw", "scale"], &["scores"])
        .node("Unsqueeze", &["mask", "axes"], &["m4"])
        .node_with("Cast", &["m4"], &["mf"], [int("to", 1)])
        .node("Sub", &["unit", "mf"], &["off"])
        .node("Mul", &["off", "low"], &["bias"])
        .node("Add", &["scores", "bias"], &["masked"])
        .node_with("Softmax", &["masked"], &["p"], [int("axis", -1)])
        .node("MatMul", &["p", "v_turned"], &["mixed"])
        .node_with("Transpose", &["mixed"], &["back"], [ints("perm", &[0, 2, 1, 3])])
        .node("Reshape", &["back", "join"], &["joined"])
        .node("MatMul", &["joined", "wo"], &["o"])
        .node("Add", &["x", "o"], &["r1"])
        .node_with("LayerNormalization", &["r1", "gamma", "beta"], &["n1"], [int("axis", -1)])
        .node("MatMul", &["n1", "w1"], &["h1"])
        .node("Erf", &["h1"], &["e"])
        .node("Mul", &["h1", "e"], &["h2"])
        .node("MatMul", &["h2", "w2"], &["h3"])
        .node("Add", &["n1", "h3"], &["r2"])
        .node_with("LayerNormalization", &["r2", "gamma", "beta"], &["y"], [int("axis", -1)])
        .output("y")
}

#[test]
fn a_transformer_encoder_layer() -> Result<()> {
    let open = agrees(
        &encoder(),
        &[
            &[("batch", 1), ("length", 1)],
            &[("batch", 2), ("length", 7)],
            &[("batch", 3), ("length", 4)],
        ],
    );
    assert_eq!(result_type(&open), "batch, length, 8");
    // No function takes a size that its operands say.
    for name in open.functions.keys().filter(|n| &***n != "main") {
        let f = open.tensor(name)?;
        assert_eq!(f.params.len(), f.buffers().count(), "{name}");
    }
    Ok(())
}

/// One import gives one size to all dimensions of a name, and fixed ones are as before.
#[test]
fn some_sizes_may_be_given() -> Result<()> {
    let dims = [("length".to_owned(), 5)].into();
    let module = encoder().import_with(&ImportOptions { dims, ..Default::default() })?;
    assert_eq!(result_type(&module), "batch, 5, 8");
    assert_eq!(sizes::open(&module).len(), 1);
    assert!(dim::is_known(&dim::shape(&[5])));
    Ok(())
}

#[test]
fn states_of_a_known_batch_fix_the_open_one() {
    let gru = || {
        let (w, r) = (sample(&[1, 12, 3], 5), sample(&[1, 12, 4], 6));
        model()
            .input("x", [D::S("T"), D::S("N"), D::N(3)])
            .floats("w", &[1, 12, 3], w.as_slice().expect("floats"))
            .floats("r", &[1, 12, 4], r.as_slice().expect("floats"))
    };
    let size = || [int("hidden_size", 4)];
    let lengths = TensorProto {
        name: "lengths".into(),
        dims: vec![2],
        data_type: DataType::Int32 as i32,
        int32_data: vec![5, 3],
        ..Default::default()
    };
    let state =
        gru().input("h", [1, 2, 4]).node_with("GRU", &["x", "w", "r", "", "", "h"], &["y"], size());
    let ends =
        gru().constant(lengths).node_with("GRU", &["x", "w", "r", "", "lengths"], &["y"], size());
    for m in [state.output("y"), ends.output("y")] {
        let open = agrees(&m, &[&[("T", 5)], &[("T", 7)]]);
        assert_eq!(result_type(&open), "T, 1, 2, 4");
    }
}

/// Spectra of an open number of points, real and complex, of all bins and of half of them, and back; a length that is
/// given cuts or fills them.
#[test]
fn spectra_of_open_numbers_of_points() {
    let sizes: &[&[(&str, usize)]] = &[&[("N", 2), ("S", 7)], &[("N", 1), ("S", 12)]];
    for (parts, inverse, onesided, length) in
        [(1, 0, 0, false), (1, 0, 1, false), (2, 0, 0, false), (2, 1, 0, false), (1, 0, 1, true)]
    {
        let m = model().opset(17).input("x", ["N".into(), "S".into(), D::from(3), D::from(parts)]);
        let inputs: &[&str] = if length { &["x", "length"] } else { &["x"] };
        let flags = [int("axis", 1), int("inverse", inverse), int("onesided", onesided)];
        let m = m.ints("length", &[9]).node_with("DFT", inputs, &["y"], flags).output("y");
        agrees(&m, sizes);
    }
}
