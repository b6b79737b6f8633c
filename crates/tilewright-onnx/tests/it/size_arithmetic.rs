//! Sizes as exporters compute them: what is equal is one size, what an operator needs beyond is checked when
//! the model runs, and no other size is refused.

use tilewright_interp::run_module;
use tilewright_ir::{Dim, GraphType, Module, Tensor, dim, well_formed};
use tilewright_onnx::ImportOptions;
use tilewright_onnx::proto::{AttributeProto, DataType, TensorProto};

use super::common::*;

type Sizes<'a> = &'a [(&'a str, usize)];

fn imported(m: &M, ranges: &[(&str, usize, usize)]) -> Module {
    let range = |(name, least, most): &(&str, usize, usize)| {
        ((*name).to_owned(), dim::SizeRange::new(*least, *most).expect("a range"))
    };
    let ranges = ranges.iter().map(range).collect();
    let module = m.import_with(&ImportOptions { ranges, ..Default::default() });
    let module = module.unwrap_or_else(|e| panic!("{}", e.render()));
    well_formed::check_module(&module).unwrap_or_else(|e| panic!("{}", e.render()));
    module
}

/// Numbers for the inputs of a model at some sizes, and what the model imported with these computes.
fn expected(m: &M, sizes: Sizes) -> (Vec<Tensor>, Vec<Tensor>) {
    let dims = sizes.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
    let fixed = m.import_with(&ImportOptions { dims, ..Default::default() });
    let fixed = fixed.unwrap_or_else(|e| panic!("{sizes:?}: {}", e.render()));
    let inputs = inputs(&fixed);
    let want = run_module(&fixed, "main", &inputs);
    (inputs, want.unwrap_or_else(|e| panic!("{sizes:?}: {}", e.render())))
}

fn inputs(module: &Module) -> Vec<Tensor> {
    let main = module.graph("main").expect("a graph");
    let one = |(k, ty): (usize, &GraphType)| {
        let ty = ty.as_tensor().expect("a tensor");
        let shape = ty.const_shape().expect("no open size");
        let t = sample(&shape, k as u32 + 1);
        if ty.dtype.is_bool() {
            let bits: Vec<bool> = (0..t.len()).map(|i| t.get_f64(i) > 0.0).collect();
            Tensor::from_bools(&shape, &bits).expect("a tensor")
        } else {
            t
        }
    };
    main.params.iter().map(|p| p.ty()).enumerate().map(one).collect()
}

/// The model with open sizes computes at each of some sizes what it computes where these are known.
fn agrees(m: &M, ranges: &[(&str, usize, usize)], cases: &[Sizes]) -> Module {
    let open = imported(m, ranges);
    for sizes in cases {
        let (inputs, want) = expected(m, sizes);
        let got = run_module(&open, "main", &inputs);
        let got = got.unwrap_or_else(|e| panic!("{sizes:?}: {}", e.render()));
        assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(&want) {
            assert_eq!(got.shape(), want.shape(), "{sizes:?}");
            assert!(distance(got, want) <= 1e-5, "{sizes:?}: {} apart", distance(got, want));
        }
    }
    open
}

/// What a run on inputs of such shapes says, which ends with an error.
fn refused(module: &Module, shapes: &[&[usize]]) -> String {
    let inputs: Vec<Tensor> = shapes.iter().map(|s| sample(s, 1)).collect();
    let said = run_module(module, "main", &inputs).err();
    said.unwrap_or_else(|| panic!("it runs at {shapes:?}")).render()
}

fn n_of(axis: i64) -> M {
    model().opset(15).input("x", [D::S("B"), D::S("N"), D::N(6)]).node_with(
        "Shape",
        &["x"],
        &["n"],
        [int("start", axis), int("end", axis + 1)],
    )
}

const N: &[Sizes] =
    &[&[("B", 1), ("N", 1)], &[("B", 2), ("N", 6)], &[("B", 1), ("N", 31)], &[("B", 3), ("N", 70)]];

#[test]
fn halvings_are_one_division() {
    for count in [1usize, 2, 5] {
        let mut m = n_of(1).node_with("Transpose", &["x"], &["p0"], [ints("perm", &[0, 2, 1])]);
        for k in 0..count {
            let (from, to) = (format!("p{k}"), format!("p{}", k + 1));
            let pool = [ints("kernel_shape", &[3]), ints("strides", &[2]), ints("pads", &[1, 1])];
            m = m.node_with("MaxPool", &[&from], &[&to], pool);
        }
        let m = m
            .ints("more", &[(1 << count) - 1])
            .ints("by", &[1 << count])
            .ints("head", &[-1, 6])
            .node("Add", &["n", "more"], &["n1"])
            .node("Div", &["n1", "by"], &["n2"])
            .node_with("Concat", &["head", "n2"], &["to"], [int("axis", 0)])
            .node("Reshape", &[&format!("p{count}"), "to"], &["y"])
            .output("y");
        let open = agrees(&m, &[], N);
        assert!(!open.has_control("main"), "nothing is left to check");
    }
}

#[test]
fn a_sum_beside_an_inferred_size_cancels() {
    for tail in [&[-1i64, 2][..], &[3, -1], &[3, 2]] {
        let m = n_of(1)
            .ints("pads", &[0, 1, 0, 0, 0, 0])
            .ints("tail", tail)
            .node("Pad", &["x", "pads"], &["f"])
            .node_with("Shape", &["f"], &["s"], [int("start", 0), int("end", 2)])
            .node_with("Concat", &["s", "tail"], &["to"], [int("axis", 0)])
            .node("Reshape", &["f", "to"], &["y"])
            .output("y");
        assert!(!agrees(&m, &[], N).has_control("main"));
    }
    let m = model()
        .opset(15)
        .input("p", [D::S("B"), D::N(6), D::S("P"), D::N(2)])
        .input("k", [D::S("B"), D::N(6), D::S("S"), D::N(2)])
        .ints("first", &[-1])
        .ints("two", &[2])
        .node_with("Concat", &["p", "k"], &["c"], [int("axis", 2)])
        .node_with("Shape", &["c"], &["n"], [int("start", 2), int("end", 3)])
        .node_with("Concat", &["first", "n", "two"], &["to"], [int("axis", 0)])
        .node("Reshape", &["c", "to"], &["y"])
        .output("y");
    let cases: &[Sizes] = &[&[("B", 2), ("P", 3), ("S", 4)], &[("B", 1), ("P", 1), ("S", 1)]];
    assert!(!agrees(&m, &[], cases).has_control("main"));
}

#[test]
fn a_shape_that_is_not_proved_is_checked_with_the_node() {
    // As many elements as `N * N` has, at some sizes.
    let m = model()
        .opset(15)
        .input("x", [D::S("N"), D::S("M")])
        .node_with("Shape", &["x"], &["n"], [int("end", 1)])
        .ints("last", &[4, -1])
        .node_with("Concat", &["n", "last"], &["to"], [int("axis", 0)])
        .node("Reshape", &["x", "to"], &["y"])
        .output("y");
    let open = agrees(&m, &[], &[&[("N", 2), ("M", 4)], &[("N", 5), ("M", 12)]]);
    let said = refused(&open, &[&[3, 6]]);
    assert!(said.contains("node 2 (Reshape, opset 15) needs"), "{said}");
    assert!(said.contains("`M` is a multiple of 4"), "{said}");
    let m = model()
        .opset(15)
        .input("x", [D::S("N")])
        .input("y", [D::S("M"), D::N(2)])
        .node_with("Shape", &["y"], &["n"], [int("end", 1)])
        .ints("last", &[-1])
        .node_with("Concat", &["n", "last"], &["to"], [int("axis", 0)])
        .node("Reshape", &["x", "to"], &["z"])
        .output("z");
    let open =
        agrees(&m, &[], &[&[("N", 6), ("M", 3)], &[("N", 6), ("M", 1)], &[("N", 4), ("M", 4)]]);
    let said = refused(&open, &[&[5], &[3, 2]]);
    assert!(said.contains("node 2 (Reshape, opset 15) needs"), "{said}");
}

#[test]
fn two_names_of_one_size_become_one_in_any_operator() {
    let two = || {
        model()
            .opset(15)
            .input("x", [D::S("s17"), D::N(4)])
            .input("y", [D::S("s75"), D::N(4)])
            .node_with("Transpose", &["x"], &["t"], [ints("perm", &[1, 0])])
            .floats("zero", &[], &[0.0])
            .node("Less", &["x", "zero"], &["c"])
            .ints("one", &[1])
            .node("Unsqueeze", &["y", "one"], &["u"])
            .node_with("Shape", &["x"], &["s"], [])
    };
    let cases: &[Sizes] = &[&[("s17", 3), ("s75", 3)], &[("s17", 1), ("s75", 1)]];
    for (op, inputs) in [
        ("Add", &["x", "y"][..]),
        ("MatMul", &["t", "y"]),
        ("Where", &["c", "x", "y"]),
        ("Reshape", &["u", "s"]),
        ("Concat", &["x", "y"]),
    ] {
        let axis = (op == "Concat").then(|| int("axis", 1));
        let m = two().node_with(op, inputs, &["z"], axis).output("z");
        let open = agrees(&m, &[], cases);
        assert!(!open.has_control("main"), "{op}");
        let said = refused(&open, &[&[3, 4], &[2, 4]]);
        assert!(said.contains(&format!("({op}, opset 15) needs")), "{op}: {said}");
        assert!(said.contains("s17") && said.contains("s75"), "{op}: {said}");
    }
    // Operands that are no operands of a broadcast.
    let image = model()
        .opset(17)
        .input("x", [D::S("s17"), D::N(3), D::N(4), D::N(5)])
        .input("y", [D::S("s75"), D::N(2), D::N(2), D::N(2)])
        .node("GridSample", &["x", "y"], &["z"])
        .output("z");
    let boxes = model()
        .opset(17)
        .input("x", [D::N(1), D::S("s17"), D::N(4)])
        .input("y", [D::N(1), D::N(2), D::S("s75")])
        .ints("most", &[3])
        .node("NonMaxSuppression", &["x", "y", "most"], &["z"])
        .output("z");
    let picked = model()
        .opset(17)
        .input("x", [D::S("s17"), D::N(4)])
        .input("y", [D::S("s75"), D::N(4)])
        .node_with("ArgMax", &["y"], &["at"], [int("axis", 1)])
        .node_with("GatherElements", &["x", "at"], &["z"], [int("axis", 1)])
        .output("z");
    for (m, [x, y]) in [
        (picked, [&[2, 4][..], &[3, 4]]),
        (image, [&[3, 3, 4, 5], &[2, 2, 2, 2]]),
        (boxes, [&[1, 3, 4], &[1, 2, 2]]),
    ] {
        let open = agrees(&m, &[], cases);
        let said = refused(&open, &[x, y]);
        assert!(said.contains("s17") && said.contains("s75"), "{said}");
    }
    // Ranges of both names meet.
    let m = two().node("Add", &["x", "y"], &["z"]).output("z");
    let open = agrees(&m, &[("s17", 1, 8), ("s75", 2, 20)], &[&[("s17", 3), ("s75", 3)]]);
    for n in [1, 9] {
        refused(&open, &[&[n, 4], &[n, 4]]);
    }
}

#[test]
fn two_names_of_one_size_become_one_where_indices_and_lengths_meet_data() {
    // The positions of the largest elements of the second input, as columns or as a list.
    let columns = |m: M| m.node_with("ArgMax", &["y"], &["at"], [int("axis", 1)]);
    let list = |m: M| {
        let how = [int("axis", 1), int("keepdims", 0)];
        m.node_with("ArgMax", &["y"], &["at"], how)
    };
    let own_columns = |m: M| m.node_with("ArgMax", &["x"], &["at"], [int("axis", 1)]);
    let plain = |m: M| m;
    type Case<'a> = (
        &'a [usize],
        &'a [usize],
        &'a dyn Fn(M) -> M,
        &'a str,
        &'a [&'a str],
        Option<AttributeProto>,
    );
    let cases: [Case; 11] = [
        (&[4], &[1], &own_columns, "ScatterElements", &["x", "at", "y"], Some(int("axis", 1))),
        (&[4], &[1], &columns, "ScatterND", &["x", "at", "x"], None),
        (&[4], &[4], &columns, "GatherND", &["x", "at"], Some(int("batch_dims", 1))),
        (&[4], &[4], &list, "NegativeLogLikelihoodLoss", &["x", "at"], None),
        (&[4], &[4], &plain, "PRelu", &["x", "y"], None),
        (&[4], &[2], &plain, "Gemm", &["x", "weights", "y"], None),
        (&[2, 3, 4], &[3, 2], &plain, "RotaryEmbedding", &["x", "y", "y"], None),
        (&[2, 3, 4], &[2, 3, 4], &plain, "Attention", &["x", "y", "y"], None),
        (&[5, 4], &[2, 4], &plain, "TensorScatter", &["x", "y"], Some(int("axis", 1))),
        (&[4], &[], &plain, "DequantizeLinear", &["bytes", "y"], Some(int("axis", 0))),
        (&[4, 2], &[4], &list, "ReverseSequence", &["x", "at"], Some(int("batch_axis", 0))),
    ];
    for (own, other, before, op, inputs, attribute) in cases {
        let named = |name, rest: &[usize]| {
            let rest = rest.iter().map(|d| D::N(*d as i64));
            [D::S(name)].into_iter().chain(rest).collect::<Vec<_>>()
        };
        let m = model()
            .opset(24)
            .input("x", named("s17", own))
            .input("y", named("s75", other))
            .floats("weights", &[4, 2], &[0.5, -1.0, 2.0, 0.25, 1.0, 3.0, -2.0, 0.75])
            .node_with("Cast", &["x"], &["bytes"], [int("to", DataType::Int8 as i64)]);
        let time = (op == "ReverseSequence").then(|| int("time_axis", 1));
        let m = before(m).node_with(op, inputs, &["z"], attribute.into_iter().chain(time));
        let m = m.output("z");
        let open = agrees(&m, &[], &[&[("s17", 3), ("s75", 3)], &[("s17", 1), ("s75", 1)]]);
        assert!(!open.has_control("main"), "{op}");
        let said = refused(&open, &[&[&[3], own].concat(), &[&[2], other].concat()]);
        assert!(said.contains(&format!("({op}, opset 24) needs")), "{op}: {said}");
        assert!(said.contains("s17") && said.contains("s75"), "{op}: {said}");
    }
}

#[test]
fn a_table_that_is_cut_to_a_length_bounds_it() {
    let m = n_of(1)
        .floats("table", &[1, 20, 6], &[0.5; 120])
        .ints("zero", &[0])
        .ints("one", &[1])
        .node("Slice", &["table", "zero", "n", "one"], &["p"])
        .node("Add", &["x", "p"], &["y"])
        .output("y");
    let sizes: &[Sizes] = &[&[("B", 2), ("N", 20)], &[("B", 1), ("N", 1)], &[("B", 1), ("N", 7)]];
    for range in [None, Some(("N", 1, 20)), Some(("N", 1, 512))] {
        let open = agrees(&m, range.as_slice(), sizes);
        assert!(!open.has_control("main"));
        let said = refused(&open, &[&[2, 21, 6]]);
        assert!(said.contains("the size of `N` is 21, which is not in the range 1..20"), "{said}");
        if range != Some(("N", 1, 20)) {
            let why = "node 2 (Add, opset 15) needs";
            assert!(
                said.contains(why) && said.contains("so `N` is at least 1 and at most 20"),
                "{said}"
            );
        }
    }
}

#[test]
fn a_range_refuses_nothing_that_none_takes() {
    let m = n_of(1)
        .ints("one", &[1])
        .ints("two", &[2])
        .ints("three", &[3])
        .node("Sub", &["n", "three"], &["d"])
        .node("Div", &["d", "two"], &["q"])
        .node("Add", &["q", "one"], &["k"])
        .node("Slice", &["x", "one", "k", "one"], &["y"])
        .output("y");
    let sizes: &[Sizes] = &[&[("B", 2), ("N", 11)], &[("B", 1), ("N", 6)], &[("B", 1), ("N", 7)]];
    for range in [None, Some(("N", 4, 1000)), Some(("N", 6, 1000))] {
        agrees(&m, range.as_slice(), sizes);
    }
}

#[test]
fn pads_of_what_is_missing() {
    for mode in ["constant", "edge", "reflect"] {
        let m = n_of(1)
            .node_with("Transpose", &["x"], &["t"], [ints("perm", &[0, 2, 1])])
            .floats("scales", &[3], &[1.0, 1.0, 2.0])
            .ints("zeros", &[0, 0, 0, 0, 0])
            .node_with(
                "MaxPool",
                &["t"],
                &["p"],
                [ints("kernel_shape", &[2]), ints("strides", &[2])],
            )
            .node_with(
                "Resize",
                &["p", "", "scales"],
                &["u"],
                [
                    text("coordinate_transformation_mode", "asymmetric"),
                    text("nearest_mode", "floor"),
                ],
            )
            .node_with("Shape", &["u"], &["k"], [int("start", 2)])
            .node("Sub", &["n", "k"], &["d"])
            .node_with("Concat", &["zeros", "d"], &["pads"], [int("axis", 0)])
            .node_with("Pad", &["u", "pads"], &["y"], [text("mode", mode)])
            .node("Add", &["t", "y"], &["z"])
            .output("z");
        let open = agrees(
            &m,
            &[],
            &[&[("B", 1), ("N", 9)], &[("B", 2), ("N", 4)], &[("B", 1), ("N", 33)]],
        );
        assert!(!open.has_control("main"), "{mode}");
    }
}

#[test]
fn blocks_divide_a_size_or_the_run_ends_with_the_node() {
    let m = model()
        .input("x", [D::N(1), D::N(2), D::S("H"), D::S("W")])
        .node_with("SpaceToDepth", &["x"], &["y"], [int("blocksize", 2)])
        .output("y");
    let open = agrees(&m, &[], &[&[("H", 2), ("W", 8)], &[("H", 6), ("W", 2)]]);
    let said = refused(&open, &[&[1, 2, 6, 7]]);
    assert!(said.contains("node 0 (SpaceToDepth, opset 13) needs"), "{said}");
    assert!(said.contains("`W` is a multiple of 2"), "{said}");
    // Channels are divided, too, or are what blocks become.
    for mode in ["DCR", "CRD"] {
        let m = model()
            .input("x", [D::N(1), D::S("C"), D::N(2), D::N(3)])
            .node_with("DepthToSpace", &["x"], &["y"], [int("blocksize", 2), text("mode", mode)])
            .output("y");
        let open = agrees(&m, &[], &[&[("C", 4)], &[("C", 12)]]);
        let said = refused(&open, &[&[1, 6, 2, 3]]);
        assert!(said.contains("node 0 (DepthToSpace, opset 13) needs"), "{said}");
        assert!(said.contains("`C` is a multiple of 4"), "{said}");
        let m = model()
            .opset(28)
            .input("x", [D::N(1), D::S("C"), D::N(4), D::N(6)])
            .node_with("SpaceToDepth", &["x"], &["y"], [int("blocksize", 2), text("mode", mode)])
            .output("y");
        agrees(&m, &[], &[&[("C", 1)], &[("C", 3)]]);
    }
    // TensorFlow's batches of parts: the batch is where channels are.
    let turned = || [ints("perm", &[1, 0, 2, 3])];
    let m = model()
        .input("x", [D::S("N"), D::N(2), D::N(4), D::N(6)])
        .node_with("Transpose", &["x"], &["t"], turned())
        .node_with("SpaceToDepth", &["t"], &["parts"], [int("blocksize", 2)])
        .node_with("Transpose", &["parts"], &["batch"], turned())
        .node("Relu", &["batch"], &["r"])
        .node_with("Transpose", &["r"], &["u"], turned())
        .node_with("DepthToSpace", &["u"], &["whole"], [int("blocksize", 2)])
        .node_with("Transpose", &["whole"], &["y"], turned())
        .output("y");
    agrees(&m, &[], &[&[("N", 1)], &[("N", 3)]]);
    // Of a size that no variable is alone.
    let m = model()
        .input("x", [D::N(1), D::N(2), D::S("H"), D::N(4)])
        .node_with(
            "MaxPool",
            &["x"],
            &["p"],
            [ints("kernel_shape", &[1, 1]), ints("strides", &[2, 1])],
        )
        .node_with("SpaceToDepth", &["p"], &["y"], [int("blocksize", 2)])
        .output("y");
    let open = agrees(&m, &[], &[&[("H", 3)], &[("H", 4)], &[("H", 15)]]);
    assert!(refused(&open, &[&[1, 2, 5, 4]]).contains("(SpaceToDepth, opset 13) needs"));
}

#[test]
fn what_is_joined_after_halvings_decides_remainders() {
    // Of a detector: the level above is doubled and joined with the one below, twice.
    let m = model().opset(18).input("x", [D::S("B"), D::N(2), D::S("H"), D::S("W")]).floats(
        "scales",
        &[4],
        &[1.0, 1.0, 2.0, 2.0],
    );
    let halved = |m: M, from: &str, to: &str| {
        let pool = [ints("kernel_shape", &[3, 3]), ints("strides", &[2, 2]), ints("pads", &[1; 4])];
        m.node_with("MaxPool", &[from], &[to], pool)
    };
    let m = halved(halved(halved(m, "x", "p1"), "p1", "p2"), "p2", "p3");
    let m = m
        .node("Resize", &["p3", "", "scales"], &["u3"])
        .node_with("Concat", &["u3", "p2"], &["c2"], [int("axis", 1)])
        .node("Resize", &["c2", "", "scales"], &["u2"])
        .node_with("Concat", &["u2", "p1"], &["y"], [int("axis", 1)])
        .output("y");
    let cases: &[Sizes] = &[
        &[("B", 1), ("H", 8), ("W", 16)],
        &[("B", 2), ("H", 7), ("W", 31)],
        &[("B", 1), ("H", 24), ("W", 7)],
    ];
    let open = agrees(&m, &[], cases);
    assert!(!open.has_control("main"), "the inputs' sizes say it");
    let said = refused(&open, &[&[1, 2, 6, 8]]);
    assert!(said.contains("needs"), "{said}");
    assert!(said.contains("a multiple of 8 or at most 1 less"), "{said}");
    // A range that a caller gives is kept beside it.
    let open = agrees(&m, &[("H", 7, 64)], &cases[1..2]);
    assert!(refused(&open, &[&[1, 2, 72, 8]]).contains("7..64"));
}

#[test]
fn parts_need_not_be_equal() {
    let m = |opset: i64| {
        let count = (opset >= 18).then(|| int("num_outputs", 2));
        model()
            .opset(opset)
            .input("x", [D::S("N"), D::N(2)])
            .node_with("Split", &["x"], &["a", "b"], count)
            .output("a")
            .output("b")
    };
    agrees(&m(18), &[], &[&[("N", 5)], &[("N", 6)], &[("N", 2)]]);
    let open = agrees(&m(13), &[], &[&[("N", 4)], &[("N", 2)]]);
    assert!(refused(&open, &[&[3, 2]]).contains("node 0 (Split, opset 13) needs"));
}

#[test]
fn only_the_sizes_that_matter_must_be_known() {
    let m = model()
        .opset(17)
        .input("x", [D::S("B"), D::N(8), D::N(1)])
        .node_with("DFT", &["x"], &["y"], [int("axis", 1)])
        .output("y");
    agrees(&m, &[], &[&[("B", 2)], &[("B", 1)]]);
    let m = model()
        .opset(17)
        .input("x", [D::S("B"), D::S("L"), D::N(1)])
        .floats("w", &[8], &[0.5; 8])
        .constant(TensorProto { name: "step".into(), ..int_tensor(&[], &[4]) })
        .node("STFT", &["x", "step", "w"], &["y"])
        .output("y");
    agrees(&m, &[], &[&[("B", 2), ("L", 16)], &[("B", 1), ("L", 8)], &[("B", 1), ("L", 21)]]);
    let m = model()
        .opset(18)
        .input("x", [D::S("B"), D::N(12), D::N(4)])
        .ints("size", &[4, 4])
        .ints("block", &[2, 2])
        .node_with("Col2Im", &["x", "size", "block"], &["y"], [ints("strides", &[2, 2])])
        .output("y");
    agrees(&m, &[], &[&[("B", 2)], &[("B", 1)]]);
    for mode in ["linear", "cubic"] {
        let m = model()
            .opset(18)
            .input("x", [D::N(1), D::N(2), D::S("H"), D::S("W")])
            .ints("to", &[1, 2, 5, 7])
            .node_with(
                "Resize",
                &["x", "", "", "to"],
                &["y"],
                [text("mode", mode), int("antialias", 1)],
            )
            .output("y");
        agrees(&m, &[], &[&[("H", 9), ("W", 12)], &[("H", 3), ("W", 50)], &[("H", 5), ("W", 7)]]);
    }
}

#[test]
fn equal_expressions_of_equal_data_select_equally_many() {
    let picked = || {
        model()
            .typed_input("keep", DataType::Bool, ["N"])
            .input("x", [D::S("N"), D::N(4)])
            .input("y", [D::S("N")])
            .ints("one", &[1])
            .node("NonZero", &["keep"], &["i"])
            .node("NonZero", &["keep"], &["j"])
            .node_with("Transpose", &["i"], &["i1"], [ints("perm", &[1, 0])])
            .node_with("Transpose", &["j"], &["j1"], [ints("perm", &[1, 0])])
            .node("GatherND", &["x", "i1"], &["a"])
            .node("GatherND", &["y", "j1"], &["b"])
            .node("Unsqueeze", &["b", "one"], &["b1"])
    };
    for (op, inputs) in [
        ("Add", ["a", "b1"]),
        ("Concat", ["a", "b1"]),
        ("MatMul", ["b", "a"]),
        ("Less", ["a", "b1"]),
    ] {
        let axis = (op == "Concat").then(|| int("axis", 1));
        let m = picked().node_with(op, &inputs, &["z"], axis).output("z");
        agrees(&m, &[], &[&[("N", 5)], &[("N", 9)]]);
    }
}

#[test]
fn a_stretch_to_a_size_that_data_decide_keeps_an_extent_that_data_decide() {
    // What a mask selects is stretched to the number of its true elements, and written where they are.
    let m = model()
        .typed_input("keep", DataType::Bool, ["N"])
        .input("x", [D::S("N"), D::N(4)])
        .node("NonZero", &["keep"], &["i"])
        .node_with("Transpose", &["i"], &["i1"], [ints("perm", &[1, 0])])
        .node("GatherND", &["x", "i1"], &["a"])
        .node("Neg", &["a"], &["b"])
        .node_with("Cast", &["keep"], &["ones"], [int("to", DataType::Int64 as i64)])
        .ints("first", &[0])
        .node("ReduceSum", &["ones", "first"], &["count"])
        .ints("columns", &[4])
        .node_with("Concat", &["count", "columns"], &["shape"], [int("axis", 0)])
        .node("Expand", &["b", "shape"], &["c"])
        .node("ScatterND", &["x", "i1", "c"], &["y"])
        .output("y");
    agrees(&m, &[], &[&[("N", 5)], &[("N", 9)]]);
}

#[test]
fn what_is_known_of_a_shape_stays_known_beside_what_data_decide() {
    // The rows of a square, as many as a root says: the sizes around it are those of `x`.
    let square = |last: i64| {
        model()
            .opset(17)
            .input("x", [D::S("B"), D::S("N"), D::N(4)])
            .node_with("Shape", &["x"], &["b"], [int("start", 0), int("end", 1)])
            .node_with("Shape", &["x"], &["n"], [int("start", 1), int("end", 2)])
            .node_with("Cast", &["n"], &["wide"], [int("to", DataType::Float as i64)])
            .node("Sqrt", &["wide"], &["root"])
            .node_with("Cast", &["root"], &["side"], [int("to", DataType::Int64 as i64)])
            .ints("last", &[last])
            .node_with("Concat", &["b", "side", "side", "last"], &["to"], [int("axis", 0)])
            .node("Reshape", &["x", "to"], &["y"])
    };
    let cases: &[Sizes] = &[&[("B", 2), ("N", 9)], &[("B", 1), ("N", 1)], &[("B", 3), ("N", 16)]];
    for last in [4, -1] {
        // The scale needs the last axis to be known; the channels do in the convolution.
        let m = square(last)
            .floats("scale", &[4], &[1.5, -1.0, 0.5, 2.0])
            .node_with("LayerNormalization", &["y", "scale"], &["z"], [int("axis", -1)])
            .node_with("Transpose", &["z"], &["t"], [ints("perm", &[0, 3, 1, 2])])
            .floats("w", &[2, 4, 1, 1], &[1.0, 0.5, -1.0, 2.0, -0.5, 1.5, 0.25, 1.0])
            .node("Conv", &["t", "w"], &["c"])
            .output("c");
        agrees(&m, &[], cases);
    }

    // Chosen element by element: -1 stands for what is there.
    let m = square(4)
        .ints("minus", &[-1])
        .node_with("Concat", &["side", "minus", "minus"], &["wanted"], [int("axis", 0)])
        .ints("ones", &[1, 1, 1])
        .ints("minuses", &[-1, -1, -1])
        .node("Equal", &["wanted", "minuses"], &["kept"])
        .node("Where", &["kept", "ones", "wanted"], &["shape"])
        .floats("row", &[1, 1, 4], &[1.0, 2.0, 3.0, 4.0])
        .node("Expand", &["row", "shape"], &["rows"])
        .floats("w", &[4, 1], &[1.0, 0.5, -1.0, 2.0])
        .node("MatMul", &["rows", "w"], &["z"])
        .output("z")
        .output("y");
    agrees(&m, &[], cases);
}

#[test]
fn random_numbers_of_open_sizes_are_those_of_fixed_ones() {
    let seed = || float("seed", 7.0);
    let m = model()
        .opset(15)
        .input("x", [D::S("B"), D::S("N"), D::N(3)])
        .node_with("RandomNormalLike", &["x"], &["a"], [seed(), float("scale", 2.0)])
        .node_with("RandomUniformLike", &["x"], &["b"], [seed(), float("low", -1.0)])
        .node_with("Bernoulli", &["b"], &["c"], [seed()])
        .node("Add", &["a", "b"], &["y"])
        .output("y")
        .output("c");
    agrees(&m, &[], &N[..3]);
}

#[test]
fn sizes_that_grow_with_each_step_stay_short() {
    // Two parts in the other order: their sizes repeat that of the whole, which is made of parts itself.
    let mut m = model().opset(15).input("y0", [D::N(1), D::S("N")]);
    for (name, value) in [("three", 3), ("two", 2), ("zero", 0), ("end", 1 << 40), ("axis", 1)] {
        m = m.ints(name, &[value]);
    }
    for k in 0..10 {
        let [y, n, less, at, a, b] = ["y", "n", "less", "at", "a", "b"].map(|s| format!("{s}{k}"));
        m = m
            .node_with("Shape", &[&y], &[&n], [int("start", 1), int("end", 2)])
            .node("Sub", &[&n, "three"], &[&less])
            .node("Div", &[&less, "two"], &[&at])
            .node("Slice", &[&y, "zero", &at, "axis"], &[&a])
            .node("Slice", &[&y, &at, "end", "axis"], &[&b])
            .node_with("Concat", &[&b, &a], &[&format!("y{}", k + 1)], [int("axis", 1)]);
    }
    agrees(&m.output("y10"), &[], &[&[("N", 9)], &[("N", 40)]]);
}

#[test]
fn sizes_by_floats_are_what_exact_ones_say() {
    let by_floats = |op: &str, number: f32, back: &str| {
        model()
            .opset(15)
            .input("x", [D::S("B"), D::N(2), D::S("N")])
            .node_with("Shape", &["x"], &["n"], [int("start", 2), int("end", 3)])
            .node_with("Cast", &["n"], &["wide"], [int("to", DataType::Float as i64)])
            .floats("number", &[1], &[number])
            .node(op, &["wide", "number"], &["more"])
            .node(back, if back == "Sub" { &["more", "number"] } else { &["more"] }, &["whole"])
            .node_with("Cast", &["whole"], &["size"], [int("to", DataType::Int64 as i64)])
            .ints("zero", &[0])
            .ints("axis", &[2])
            .node("Slice", &["x", "zero", "size", "axis"], &["part"])
    };
    let cases: &[Sizes] = &[&[("B", 2), ("N", 9)], &[("B", 1), ("N", 2)], &[("B", 3), ("N", 16)]];
    for (op, number, back) in [("Mul", 0.5, "Floor"), ("Div", 2.0, "Floor")] {
        // Half of the length as a pool makes it.
        let m = by_floats(op, number, back)
            .node_with(
                "MaxPool",
                &["x"],
                &["half"],
                [ints("kernel_shape", &[2]), ints("strides", &[2])],
            )
            .node("Add", &["part", "half"], &["y"])
            .output("y");
        let open = agrees(&m, &[], cases);
        let main = open.graph("main").expect("a graph");
        let mut vars = main.blocks.iter().flat_map(|b| &b.bindings).map(|b| &b.var);
        let ty = vars.find(|v| **v.name() == *"y").and_then(|v| v.ty().as_tensor());
        let ty = ty.expect("the result is a tensor that is bound");
        let sizes = ty.shape.iter().map(|e| Dim::from_expr(e).expect("a size").to_string());
        assert_eq!(sizes.collect::<Vec<_>>(), ["B", "2", "N // 2"]);
    }
    // A float that holds no odd number of this size: the run sees that the length is another one.
    let m = by_floats("Add", 16_777_216.0, "Sub").node("Add", &["part", "x"], &["y"]).output("y");
    let open = agrees(&m, &[], &[&[("B", 2), ("N", 8)]]);
    let said = refused(&open, &[&[1, 2, 7]]);
    assert!(said.contains('8') && said.contains('7'), "{said}");
}

#[test]
fn a_stretch_to_a_size_that_must_be_a_number_is_checked() {
    // `min(n + 3, m) - n` is 3 where the table is as long as what is padded, which no operand says.
    let m = model()
        .opset(17)
        .input("x", [D::S("N"), D::N(2)])
        .input("y", [D::S("M"), D::N(2)])
        .node_with("Shape", &["x"], &["n"], [int("end", 1)])
        .node_with("Shape", &["y"], &["m"], [int("end", 1)])
        .ints("three", &[3])
        .node("Add", &["n", "three"], &["more"])
        .node("Min", &["more", "m"], &["end"])
        .node("Sub", &["end", "n"], &["rest"])
        .ints("columns", &[2])
        .node_with("Concat", &["rest", "columns"], &["shape"], [int("axis", 0)])
        .ints("axis", &[0])
        .ints("zero", &[0])
        .node("Slice", &["y", "zero", "three", "axis"], &["first"])
        .node("Expand", &["first", "shape"], &["z"])
        .output("z");
    let open = agrees(&m, &[("M", 3, 100)], &[&[("N", 5), ("M", 8)], &[("N", 2), ("M", 11)]]);
    let message = refused(&open, &[&[5, 2], &[7, 2]]);
    assert!(message.contains("(Expand"), "{message}");
}

/// A table of seven rows is cut to `N`, its first half taken, and three rows: that these are all is right for six and
/// seven.
#[test]
fn parts_that_a_run_adds_up_are_checked_at_the_node() {
    let values: Vec<f32> = (0..7).map(|i| i as f32).collect();
    let m = model()
        .input("x", ["N"])
        .floats("table", &[7], &values)
        .ints("zero", &[0])
        .ints("one", &[1])
        .ints("two", &[2])
        .ints("three", &[3])
        .node("Shape", &["x"], &["n"])
        .node("Slice", &["table", "zero", "n"], &["rows"])
        .node("Shape", &["rows"], &["count"])
        .node("Add", &["count", "one"], &["more"])
        .node("Div", &["more", "two"], &["half"])
        .node_with("Concat", &["half", "three"], &["sizes"], [int("axis", 0)])
        .node("Split", &["rows", "sizes"], &["first", "last"])
        .output("first")
        .output("last");
    let open = imported(&m, &[]);
    let zeros = |n: usize| Tensor::from_slice(&[n], &vec![0.0f32; n]).expect("a tensor");
    for (n, first) in [(6, 3), (7, 4), (9, 4)] {
        let out = run_module(&open, "main", &[zeros(n)]).expect("it runs");
        assert_eq!(out[0].as_slice(), Some(&values[..first]));
        assert_eq!(out[1].as_slice(), Some(&values[first..first + 3]));
    }
    let said = run_module(&open, "main", &[zeros(4)]).expect_err("2 + 3 is not 4").render();
    assert!(said.contains("(Split, opset 13) needs `T.min(7, N)`"), "{said}");
}
