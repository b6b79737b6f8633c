//! Models of images whose batch, height and width stay open: windows, resizes, and what is looked up in them.

use crate::common::*;
use crate::open::{HW, agrees, result_type};
use tilewright_ir::Function;
use tilewright_ir::visit::accessed;
use tilewright_onnx::proto::DataType;

/// An image of three channels with open batch, height and width.
fn image() -> M {
    let weights = |m: M, name: &str, shape: &[usize], seed: u32| {
        let t = sample(shape, seed);
        let dims: Vec<i64> = shape.iter().map(|&d| d as i64).collect();
        m.floats(name, &dims, t.as_slice::<f32>().unwrap_or_default())
    };
    let mut m = model().input("x", [D::S("N"), D::N(3), D::S("H"), D::S("W")]);
    m = weights(m, "w", &[4, 3, 3, 3], 3);
    m = weights(m, "d", &[4, 1, 3, 3], 4);
    m = weights(m, "t", &[4, 2, 2, 2], 5);
    m.floats("b", &[4], &[0.5, 1.0, -0.5, 0.25])
}

const IMAGES: &[&[(&str, usize)]] = &[
    &[("N", 1), ("H", 8), ("W", 8)],
    &[("N", 2), ("H", 5), ("W", 11)],
    &[("N", 1), ("H", 16), ("W", 7)],
];

#[test]
fn windows_over_open_images() {
    let pads = || ints("pads", &[1, 1, 1, 1]);
    for attributes in [
        vec![],
        vec![pads()],
        vec![pads(), ints("strides", &[2, 2])],
        vec![ints("strides", &[2, 1]), ints("dilations", &[1, 2]), ints("pads", &[0, 2, 1, 2])],
        vec![text("auto_pad", "SAME_UPPER")],
    ] {
        agrees(
            &image().node_with("Conv", &["x", "w", "b"], &["y"], attributes).output("y"),
            IMAGES,
        );
    }
    let conv = || image().node_with("Conv", &["x", "w", "b"], &["c"], [pads()]);
    let grouped = [pads(), int("group", 4), ints("strides", &[2, 2])];
    agrees(&conv().node_with("Conv", &["c", "d"], &["y"], grouped).output("y"), IMAGES);
    for attributes in [
        vec![ints("strides", &[2, 2])],
        vec![ints("strides", &[3, 2]), ints("output_padding", &[1, 1])],
        vec![ints("strides", &[1, 1]), ints("pads", &[1, 0, 0, 1])],
        vec![ints("strides", &[2, 2]), text("auto_pad", "SAME_LOWER")],
    ] {
        agrees(
            &conv().node_with("ConvTranspose", &["c", "t"], &["y"], attributes).output("y"),
            IMAGES,
        );
    }
    let kernel = || ints("kernel_shape", &[3, 3]);
    for op in ["MaxPool", "AveragePool"] {
        for attributes in [
            vec![kernel()],
            vec![kernel(), pads(), ints("strides", &[2, 2])],
            vec![kernel(), ints("strides", &[2, 2]), int("ceil_mode", 1)],
            vec![kernel(), pads(), ints("strides", &[3, 2]), int("ceil_mode", 1)],
        ] {
            agrees(&image().node_with(op, &["x"], &["y"], attributes).output("y"), IMAGES);
        }
    }
    for (wide, border) in [(3, 0), (2, 0), (3, 1)] {
        let how = || {
            let strides = ints("strides", &[2, 2]);
            let pads = ints("pads", &[border; 4]);
            [ints("kernel_shape", &[wide, wide]), strides, pads, int("ceil_mode", 1)]
        };
        let m = image()
            .node_with("MaxPool", &["x"], &["half"], how())
            .node_with("AveragePool", &["half"], &["quarter"], how())
            .node_with("MaxPool", &["quarter"], &["y"], how())
            .output("y");
        agrees(&m, &[&[("N", 2), ("H", 17), ("W", 22)], &[("N", 1), ("H", 16), ("W", 31)]]);
    }
    let include = [kernel(), pads(), ints("strides", &[2, 2]), int("count_include_pad", 1)];
    agrees(&image().node_with("AveragePool", &["x"], &["y"], include).output("y"), IMAGES);
    for op in ["GlobalAveragePool", "GlobalMaxPool"] {
        agrees(&image().node(op, &["x"], &["y"]).output("y"), IMAGES);
    }
    for mode in ["asymmetric", "half_pixel"] {
        let m = image()
            .floats("scales", &[4], &[1.0, 1.0, 2.0, 3.0])
            .node_with(
                "Resize",
                &["x", "", "scales"],
                &["y"],
                [text("coordinate_transformation_mode", mode), text("nearest_mode", "floor")],
            )
            .output("y");
        agrees(&m, IMAGES);
    }
    agrees(
        &image().node_with("DepthToSpace", &["w4"], &["y"], [int("blocksize", 2)]).of_depth(),
        IMAGES,
    );
}

impl M {
    /// The only node on four channels that a convolution makes.
    fn of_depth(mut self) -> M {
        let node = self.graph.node.pop().expect("a node");
        let mut m = self.node_with("Conv", &["x", "w", "b"], &["w4"], []);
        m.graph.node.push(node);
        m.output("y")
    }
}

#[test]
fn resizes_of_open_images() {
    let image = || model().opset(19).input("x", [D::N(1), D::N(2), D::S("H"), D::S("W")]);
    let ways = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"];
    for way in ways.into_iter().chain(["half_pixel_symmetric", "tf_half_pixel_for_nn"]) {
        for (mode, scales) in [
            ("nearest", [2.0, 1.5]),
            ("linear", [2.0, 0.7]),
            ("cubic", [1.25, 3.0]),
            ("linear", [1.0, 2.0]),
        ] {
            let m = image()
                .floats("scales", &[4], &[1.0, 1.0, scales[0], scales[1]])
                .node_with(
                    "Resize",
                    &["x", "", "scales"],
                    &["y"],
                    [text("mode", mode), text("coordinate_transformation_mode", way)],
                )
                .output("y");
            agrees(&m, &HW[1..]);
        }
    }
    // By a half and a quarter, to each neighbour: where coordinates alone decide, there are no tables.
    for way in ways.into_iter().chain(["half_pixel_symmetric", "tf_half_pixel_for_nn"]) {
        for nearest in ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"] {
            let how = [text("coordinate_transformation_mode", way), text("nearest_mode", nearest)];
            let m = image()
                .floats("scales", &[4], &[1.0, 1.0, 0.5, 0.25])
                .node_with("Resize", &["x", "", "scales"], &["y"], how)
                .output("y");
            let sizes: [&[_]; 3] =
                [&[("H", 2), ("W", 4)], &[("H", 9), ("W", 11)], &[("H", 16), ("W", 37)]];
            let open = agrees(&m, &sizes);
            let written = open.functions.values().flat_map(|f| match f {
                Function::Tensor(f) => accessed(&f.body).1,
                Function::Graph(_) => Vec::new(),
            });
            let tables = written.filter(|b| b.name.starts_with("index_")).count();
            let closed = ["half_pixel", "asymmetric", "tf_half_pixel_for_nn"].contains(&way);
            assert_eq!(tables, if closed { 0 } else { 2 }, "{way} {nearest}");
        }
    }
    // Of an open batch, to the size of another image, and to one that is known.
    for mode in ["nearest", "linear", "cubic"] {
        let m = model()
            .opset(19)
            .input("x", [D::S("N"), D::N(2), D::S("H"), D::S("W")])
            .floats("scales", &[4], &[1.0, 1.0, 2.0, 1.5])
            .node_with("Resize", &["x", "", "scales"], &["y"], [text("mode", mode)])
            .output("y");
        agrees(&m, IMAGES);
        let how = || [text("mode", mode), int("exclude_outside", i64::from(mode == "cubic"))];
        let m = image()
            .input("z", [D::N(1), D::N(2), D::S("P"), D::S("Q")])
            .ints("fixed", &[1, 2, 5, 6])
            .node("Shape", &["z"], &["s"])
            .node_with("Resize", &["x", "", "", "s"], &["a"], how())
            .node_with("Resize", &["x", "", "", "fixed"], &["y"], how())
            .node("Add", &["a", "z"], &["b"])
            .output("b")
            .output("y");
        let open = agrees(
            &m,
            &[
                &[("H", 2), ("W", 3), ("P", 4), ("Q", 5)],
                &[("H", 7), ("W", 6), ("P", 3), ("Q", 1)],
                &[("H", 1), ("W", 1), ("P", 2), ("Q", 8)],
            ],
        );
        assert_eq!(result_type(&open), "1, 2, P, Q");
    }
}

#[test]
fn images_looked_up_where_data_say() {
    let image = || model().opset(20).input("x", [D::N(2), D::N(3), D::S("H"), D::S("W")]);
    for max in ["avg", "max"] {
        let m = image()
            .input("regions", [D::S("R"), D::N(4)])
            .typed_input("of", DataType::Int64, [D::S("R")])
            .node_with(
                "RoiAlign",
                &["x", "regions", "of"],
                &["y"],
                [text("mode", max), int("output_height", 3), float("spatial_scale", 5.0)],
            )
            .output("y");
        let open = agrees(&m, &[&[("H", 4), ("W", 5), ("R", 3)], &[("H", 1), ("W", 7), ("R", 1)]]);
        assert_eq!(result_type(&open), "R, 3, 3, 1");
    }
    for (mode, outside, align) in [
        ("linear", "zeros", 0),
        ("nearest", "border", 1),
        ("cubic", "reflection", 0),
        ("linear", "reflection", 1),
    ] {
        let how = [text("mode", mode), text("padding_mode", outside), int("align_corners", align)];
        let m = image()
            .input("grid", [D::N(2), D::S("P"), D::S("Q"), D::N(2)])
            .node_with("GridSample", &["x", "grid"], &["y"], how)
            .output("y");
        let sizes: &[&[(&str, usize)]] =
            &[&[("H", 4), ("W", 5), ("P", 3), ("Q", 2)], &[("H", 1), ("W", 3), ("P", 1), ("Q", 6)]];
        assert_eq!(result_type(&agrees(&m, sizes)), "2, 3, P, Q");
    }
    let m = image()
        .input("offset", [D::N(2), D::N(8), D::S("H"), D::S("W")])
        .floats("w", &[2, 3, 2, 2], &[0.25; 24])
        .node_with("DeformConv", &["x", "w", "offset"], &["y"], [ints("pads", &[0, 0, 1, 1])])
        .output("y");
    agrees(&m, &HW[1..]);
}

#[test]
fn a_convolutional_net() {
    // Blocks with batch normalisation, a branch that is upsampled to the size of another, columns that
    // become a sequence.
    let m = image()
        .floats("gamma", &[4], &[1.0, 2.0, 0.5, 1.5])
        .floats("beta", &[4], &[0.0, 0.5, -0.5, 1.0])
        .floats("mean", &[4], &[0.1, 0.2, 0.3, 0.4])
        .floats("var", &[4], &[1.0, 0.5, 2.0, 1.5])
        .floats("scales", &[4], &[1.0, 1.0, 2.0, 2.0])
        .ints("columns", &[0, 0, -1])
        .node_with("Conv", &["x", "w", "b"], &["c1"], [ints("pads", &[1, 1, 1, 1])])
        .node("BatchNormalization", &["c1", "gamma", "beta", "mean", "var"], &["n1"])
        .node("Relu", &["n1"], &["r1"])
        .node_with(
            "MaxPool",
            &["r1"],
            &["p1"],
            [ints("kernel_shape", &[2, 2]), ints("strides", &[2, 2])],
        )
        .node_with("Conv", &["p1", "d"], &["c2"], [ints("pads", &[1, 1, 1, 1]), int("group", 4)])
        .node("Sigmoid", &["c2"], &["gate"])
        .node("Mul", &["c2", "gate"], &["g2"])
        .node_with(
            "Resize",
            &["g2", "", "scales"],
            &["up"],
            [text("coordinate_transformation_mode", "asymmetric"), text("nearest_mode", "floor")],
        )
        .node("GlobalAveragePool", &["up"], &["mean1"])
        .node("Sub", &["up", "mean1"], &["centred"])
        .node("Reshape", &["centred", "columns"], &["flat"])
        .node_with("Transpose", &["flat"], &["sequence"], [ints("perm", &[0, 2, 1])])
        .node_with("Softmax", &["sequence"], &["y"], [int("axis", -1)])
        .output("y");
    let open = agrees(&m, IMAGES);
    assert_eq!(result_type(&open), "N, H // 2 * (W // 2) * 4, 4");
}
