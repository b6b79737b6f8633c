//! Operators of `com.microsoft`, with the results of ONNX Runtime.

use tilewright_interp::run_module;
use tilewright_ir::tensor::Element;
use tilewright_ir::{DType, Tensor, well_formed};
use tilewright_onnx::proto::{AttributeProto, DataType};
use tilewright_onnx::{ImportOptions, import_bytes};

use super::common::{
    D, M, distance, float, floats, foreign, int, ints, model, sample, text, value,
};

/// An input, or none.
pub type Given = Option<Tensor>;

pub fn f(shape: &[usize], seed: u32) -> Given {
    Some(sample(shape, seed))
}

pub fn scalar(v: f32) -> Given {
    Some(Tensor::from_slice(&[], &[v]).expect("a number"))
}

pub fn whole<T: Element>(shape: &[usize], values: &[T]) -> Given {
    Some(Tensor::from_slice(shape, values).expect("as many as there are"))
}

pub fn none() -> Given {
    None
}

/// The number of an element type in a file.
fn data_type(t: &Tensor) -> DataType {
    match t.dtype() {
        DType::I8 => DataType::Int8,
        DType::U8 => DataType::Uint8,
        DType::I32 => DataType::Int32,
        DType::I64 => DataType::Int64,
        _ => DataType::Float,
    }
}

/// Compares the outputs of a node with what is expected, row by row; an output without a name is not there.
#[track_caller]
pub fn check<const N: usize>(
    op: &str,
    inputs: &[Given],
    outputs: &[&str],
    attributes: [AttributeProto; N],
    expected: &[&[f64]],
) {
    let names: Vec<String> = (0..inputs.len()).map(|k| format!("x{k}")).collect();
    let listed = inputs.iter().zip(&names);
    let used: Vec<&str> = listed.map(|(x, name)| if x.is_some() { name } else { "" }).collect();
    let mut m: M = model().node_with(op, &used, outputs, attributes);
    let mut options = ImportOptions::default();
    for (given, name) in inputs.iter().zip(&names) {
        let Some(tensor) = given else { continue };
        let shape = tensor.shape().iter().map(|d| *d as i64);
        m.graph.input.push(value(name, data_type(tensor), shape));
        options.values.insert(name.clone(), tensor.clone());
    }
    m = outputs.iter().filter(|name| !name.is_empty()).fold(m, |m, name| m.output(name));
    let domain = if op == "SimplifiedLayerNormalization" { "" } else { "com.microsoft" };
    let bytes = foreign(domain, &m, &[("", 17), ("com.microsoft", 1)]);
    let module = import_bytes("m", bytes, &options);
    let module = module.unwrap_or_else(|e| panic!("{op}: {}", e.render()));
    well_formed::check_module(&module).unwrap_or_else(|e| panic!("{op}: {}", e.render()));
    // Those that had to be known are no inputs any more.
    let params = &module.graph("main").expect("the graph").params;
    let args: Vec<Tensor> = params.iter().map(|p| options.values[&**p.name()].clone()).collect();
    let found = run_module(&module, "main", &args);
    let found = found.unwrap_or_else(|e| panic!("{op}: {}", e.render()));
    assert_eq!(found.len(), expected.len(), "{op}");
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.len(), expected.len(), "{op}: {found:?}");
        for (k, v) in expected.iter().enumerate() {
            let near = (found.get_f64(k) - v).abs() <= 2e-4 + 1e-3 * v.abs();
            assert!(near, "{op}: {found:?}, not {expected:?}, at {k}");
        }
    }
}

#[test]
fn activations_with_what_stands_before_them() {
    check(
        "Gelu",
        &[f(&[1, 2, 3], 1)],
        &["y0"],
        [],
        &[&[-0.1648, 0.678, -0.005565, -0.1655, -0.163, 0.1093]],
    );
    check(
        "BiasGelu",
        &[f(&[1, 2, 3], 1), f(&[3], 2)],
        &["y0"],
        [],
        &[&[-0.06602, 1.406, -0.05427, -0.06738, -0.1101, 0.04323]],
    );
    check(
        "FastGelu",
        &[f(&[1, 2, 3], 1)],
        &["y0"],
        [],
        &[&[-0.1649, 0.6779, -0.005565, -0.1656, -0.1631, 0.1093]],
    );
    check(
        "FastGelu",
        &[f(&[1, 2, 3], 1), f(&[3], 2)],
        &["y0"],
        [],
        &[&[-0.06609, 1.406, -0.05427, -0.06746, -0.1101, 0.04323]],
    );
    check(
        "QuickGelu",
        &[f(&[1, 2, 3], 1)],
        &["y0"],
        [],
        &[&[-0.1592, 0.6841, -0.005562, -0.1598, -0.1578, 0.1102]],
    );
    check(
        "QuickGelu",
        &[f(&[1, 2, 3], 1)],
        &["y0"],
        [float("alpha", 0.5)],
        &[&[-0.3548, 0.5113, -0.005599, -0.3513, -0.3623, 0.0995]],
    );
}

#[test]
fn products_with_what_stands_around_them() {
    check(
        "FusedMatMul",
        &[f(&[3, 2], 1), f(&[2, 3], 2)],
        &["y0"],
        [float("alpha", 0.5), int("transA", 1), int("transB", 1)],
        &[&[0.4467, 0.4369, -0.6768, 0.2063]],
    );
    check(
        "FusedMatMul",
        &[f(&[2, 2, 3], 3), f(&[2, 3, 2], 4)],
        &["y0"],
        [float("alpha", 2.0)],
        &[&[1.108, -0.4931, -0.9501, 0.604, 0.4621, 0.8378, 1.839, 1.165]],
    );
    check(
        "FusedMatMul",
        &[f(&[2, 2, 3], 3), f(&[2, 2, 3], 4)],
        &["y0"],
        [int("transBatchA", 1), int("transB", 1)],
        &[&[0.8473, 0.4282, -0.6097, -0.3008, 0.07074, -0.02239, 0.974, 0.4271]],
    );
    check(
        "TransposeMatMul",
        &[f(&[3, 2], 1), f(&[3, 2], 2)],
        &["y0"],
        [int("transA", 1)],
        &[&[1.465, 0.1939, -0.7736, 0.4656]],
    );
    check(
        "FusedGemm",
        &[f(&[2, 3], 1), f(&[2, 3], 2), f(&[2], 3)],
        &["y0"],
        [float("alpha", 0.5), float("beta", 2.0), int("transB", 1), text("activation", "Relu")],
        &[&[0.0, 0.6855, 0.0, 1.231]],
    );
    check(
        "FusedGemm",
        &[f(&[2, 3], 1), f(&[2, 3], 2), f(&[2], 3)],
        &["y0"],
        [
            float("alpha", 0.5),
            float("beta", 2.0),
            int("transB", 1),
            text("activation", "LeakyRelu"),
            float("activation_alpha", 0.25),
        ],
        &[&[-0.2444, 0.6855, -0.396, 1.231]],
    );
    check(
        "FusedGemm",
        &[f(&[2, 3], 1), f(&[2, 3], 2), f(&[2], 3)],
        &["y0"],
        [
            float("alpha", 0.5),
            float("beta", 2.0),
            int("transB", 1),
            text("activation", "Elu"),
            float("activation_alpha", 0.5),
        ],
        &[&[-0.3119, 0.6855, -0.3974, 1.231]],
    );
    check(
        "FusedGemm",
        &[f(&[2, 3], 1), f(&[2, 3], 2), f(&[2], 3)],
        &["y0"],
        [
            float("alpha", 0.5),
            float("beta", 2.0),
            int("transB", 1),
            text("activation", "HardSigmoid"),
            float("activation_alpha", 0.5),
            float("activation_beta", 0.25),
        ],
        &[&[0.0, 0.5927, 0.0, 0.8656]],
    );
}

#[test]
fn convolutions_with_what_stands_behind_them() {
    check(
        "FusedConv",
        &[f(&[1, 2, 3, 3], 1), f(&[2, 2, 3, 3], 2), f(&[2], 3)],
        &["y0"],
        [ints("kernel_shape", &[3, 3]), ints("pads", &[1, 1, 0, 0]), text("activation", "Relu")],
        &[&[0.5866, 0.2021, 0.8622, 0.9957, 1.742, 0.0, 0.0, 0.1616]],
    );
    check(
        "FusedConv",
        &[f(&[1, 2, 3, 3], 1), f(&[2, 2, 3, 3], 2), f(&[2], 3)],
        &["y0"],
        [
            ints("kernel_shape", &[3, 3]),
            ints("pads", &[1, 1, 0, 0]),
            text("activation", "LeakyRelu"),
            floats("activation_params", &[0.25]),
        ],
        &[&[0.5866, 0.2021, 0.8622, 0.9957, 1.742, -0.05603, -0.1847, 0.1616]],
    );
    check(
        "FusedConv",
        &[f(&[1, 2, 3, 3], 1), f(&[2, 2, 3, 3], 2), f(&[2], 3)],
        &["y0"],
        [
            ints("kernel_shape", &[3, 3]),
            ints("pads", &[1, 1, 0, 0]),
            text("activation", "HardSwish"),
        ],
        &[&[0.3507, 0.1079, 0.555, 0.6631, 1.377, -0.1037, -0.2784, 0.08515]],
    );
    check(
        "FusedConv",
        &[f(&[1, 2, 3, 3], 1), f(&[2, 2, 3, 3], 2), f(&[2], 3)],
        &["y0"],
        [
            ints("kernel_shape", &[3, 3]),
            ints("pads", &[1, 1, 0, 0]),
            text("activation", "HardSigmoid"),
            floats("activation_params", &[0.5, 0.25]),
        ],
        &[&[0.5433, 0.351, 0.6811, 0.7478, 1.0, 0.1379, 0.0, 0.3308]],
    );
    check(
        "FusedConv",
        &[f(&[1, 2, 3, 3], 1), f(&[2, 2, 3, 3], 2), f(&[2], 3)],
        &["y0"],
        [
            ints("kernel_shape", &[3, 3]),
            ints("pads", &[1, 1, 0, 0]),
            text("activation", "Clip"),
            floats("activation_params", &[-0.125, 0.25]),
        ],
        &[&[0.25, 0.2021, 0.25, 0.25, 0.25, -0.125, -0.125, 0.1616]],
    );
    check(
        "FusedConv",
        &[f(&[1, 2, 3, 3], 1), f(&[2, 1, 3, 3], 2), f(&[2], 3), f(&[1, 2, 2, 2], 4)],
        &["y0"],
        [
            ints("kernel_shape", &[3, 3]),
            ints("pads", &[1, 1, 0, 0]),
            int("group", 2),
            text("activation", "Relu"),
        ],
        &[&[0.0, 0.2048, 0.0, 0.06878, 0.5462, 0.0, 1.926, 1.54]],
    );
}

#[test]
fn normalised_sums() {
    check(
        "SkipLayerNormalization",
        &[f(&[1, 2, 4], 1), f(&[1, 2, 4], 2), f(&[4], 3), f(&[4], 4)],
        &["y0"],
        [float("epsilon", 1e-05)],
        &[&[0.1943, 1.002, -0.3419, -0.8113, 0.2168, 0.4501, -0.1839, 0.6624]],
    );
    check(
        "SkipLayerNormalization",
        &[f(&[1, 2, 4], 1), f(&[1, 2, 4], 2), f(&[4], 3), f(&[4], 4), f(&[4], 5)],
        &["y0", "", "", "y3"],
        [],
        &[
            &[0.3621, 0.9667, -0.3015, -0.4561, 0.2555, 0.496, -0.1865, 0.615],
            &[-2.528, 1.604, -0.5214, -0.5725, -2.389, -0.5565, -1.65, 0.4481],
        ],
    );
    check(
        "SkipLayerNormalization",
        &[f(&[1, 2, 4], 1), f(&[2, 4], 2), f(&[4], 3)],
        &["y0"],
        [],
        &[&[0.9788, 0.7163, -0.03806, -0.3901, 1.001, 0.1647, 0.1199, 1.084]],
    );
    check(
        "SkipSimplifiedLayerNormalization",
        &[f(&[1, 2, 4], 1), f(&[1, 2, 4], 2), f(&[4], 3), f(&[4], 5)],
        &["y0", "", "", "y3"],
        [],
        &[
            &[1.354, 0.4899, 0.06957, -0.2783, 1.324, -0.1758, 0.2276, 0.2253],
            &[-2.528, 1.604, -0.5214, -0.5725, -2.389, -0.5565, -1.65, 0.4481],
        ],
    );
    check(
        "SimplifiedLayerNormalization",
        &[f(&[1, 2, 4], 1), f(&[4], 3)],
        &["y0"],
        [int("axis", -1), float("epsilon", 1e-05)],
        &[&[0.9851, 0.5193, 0.00301, -0.8817, 1.231, 0.1415, 0.1363, 0.8449]],
    );
    check(
        "EmbedLayerNormalization",
        &[
            whole(&[1, 3], &[2i32, 0, 1]),
            whole(&[1, 3], &[0i32, 1, 1]),
            f(&[3, 4], 1),
            f(&[5, 4], 2),
            f(&[2, 4], 3),
            f(&[4], 4),
            f(&[4], 5),
            whole(&[1, 3], &[1i32, 1, 0]),
        ],
        &["y0", "y1", "y2"],
        [],
        &[
            &[
                0.4333, 0.3567, -0.3033, 0.02079, 0.2191, 0.409, -0.6679, 0.7184, 0.4702, 0.09464,
                -0.5013, -0.1113,
            ],
            &[2.0],
            &[
                -0.9077, 1.086, 0.06664, 1.094, -2.09, 0.1213, -0.08057, -1.629, -2.019, -0.3485,
                0.02498, 1.007,
            ],
        ],
    );
    check(
        "EmbedLayerNormalization",
        &[
            whole(&[1, 2], &[2i32, 0]),
            none(),
            f(&[3, 4], 1),
            f(&[5, 4], 2),
            none(),
            f(&[4], 4),
            f(&[4], 5),
            none(),
            whole(&[1, 2], &[3i32, 1]),
        ],
        &["y0", "y1"],
        [],
        &[&[-0.8996, -0.2312, -0.8627, 0.6442, -0.01274, 0.5351, -0.4787, 0.7667], &[0.0]],
    );
}

#[test]
fn attention_with_its_projection() {
    check(
        "Attention",
        &[f(&[2, 2, 3], 1), f(&[3, 12], 2), f(&[12], 3)],
        &["y0"],
        [int("num_heads", 2)],
        &[&[
            0.2153, 1.125, 1.268, 0.0008099, 0.8446, 1.619, 1.324, 0.01294, -0.4882, 0.8309,
            0.7007, 0.4364, -0.4934, 0.8385, 0.697, 0.4371,
        ]],
    );
    check(
        "Attention",
        &[f(&[2, 2, 3], 1), f(&[3, 12], 2), f(&[12], 3), whole(&[2, 2], &[1i32, 0, 1, 1])],
        &["y0"],
        [int("num_heads", 2), int("unidirectional", 1)],
        &[&[
            -0.1523, 0.8372, 0.906, -0.07799, -0.1523, 0.8372, 0.906, -0.07799, -0.5704, 0.9491,
            0.6454, 0.4458, -0.4934, 0.8385, 0.697, 0.4371,
        ]],
    );
    check(
        "Attention",
        &[f(&[2, 2, 3], 1), f(&[3, 12], 2), f(&[12], 3), whole(&[2], &[1i32, 2])],
        &["y0"],
        [int("num_heads", 2), float("scale", 0.25)],
        &[&[
            -0.1523, 0.8372, 0.906, -0.07799, -0.1523, 0.8372, 0.906, -0.07799, -0.4913, 0.8354,
            0.6982, 0.4368, -0.4931, 0.838, 0.6969, 0.4371,
        ]],
    );
    check(
        "Attention",
        &[f(&[2, 2, 3], 1), f(&[3, 12], 2), f(&[12], 3), whole(&[4], &[1i32, 2, 0, 1])],
        &["y0"],
        [int("num_heads", 2)],
        &[&[
            -0.1523, 0.8372, 0.906, -0.07799, -0.1523, 0.8372, 0.906, -0.07799, -0.4155, 0.7265,
            0.7483, 0.4283, -0.4155, 0.7265, 0.7483, 0.4283,
        ]],
    );
    check(
        "Attention",
        &[f(&[2, 2, 3], 1), f(&[3, 12], 2), f(&[12], 3), none(), none(), f(&[1, 2, 2, 2], 5)],
        &["y0"],
        [int("num_heads", 2), float("mask_filter_value", -500.0)],
        &[&[
            0.483, 1.335, 1.276, 0.002603, 1.043, 1.775, 1.185, -0.01728, -0.4583, 0.788, 0.7018,
            0.4362, -0.4637, 0.7957, 0.6783, 0.4402,
        ]],
    );
    check(
        "Attention",
        &[f(&[1, 1, 3], 1), f(&[3, 6], 2), f(&[6], 3), none(), f(&[2, 1, 1, 2, 2], 4)],
        &["y0", "y1"],
        [int("num_heads", 1)],
        &[
            &[0.02347, 0.2697],
            &[
                -0.7845, 0.2854, -0.3039, -0.4212, -0.6296, 0.2737, -0.2314, -0.9149, 0.3495,
                0.5615, -0.08919, 1.198,
            ],
        ],
    );
    check(
        "Attention",
        &[f(&[1, 2, 3], 1), f(&[3, 8], 2), f(&[8], 3)],
        &["y0"],
        [int("num_heads", 2), ints("qkv_hidden_sizes", &[2, 2, 4])],
        &[&[0.05042, 0.7626, 1.279, 0.7619, 0.2073, 0.9919, 1.516, 0.5113]],
    );
}

#[test]
fn attention_of_several_heads() {
    check(
        "MultiHeadAttention",
        &[f(&[1, 2, 4], 1), f(&[1, 3, 4], 2), f(&[1, 3, 4], 3)],
        &["y0"],
        [int("num_heads", 2)],
        &[&[-0.5732, 0.4549, 0.5146, 0.2735, -0.4832, 0.4405, 0.5532, 0.3308]],
    );
    check(
        "MultiHeadAttention",
        &[
            f(&[1, 2, 4], 1),
            f(&[1, 3, 4], 2),
            f(&[1, 3, 4], 3),
            f(&[12], 4),
            whole(&[1, 3], &[1i32, 0, 1]),
            f(&[1, 1, 2, 3], 5),
        ],
        &["y0"],
        [int("num_heads", 2), float("scale", 0.25)],
        &[&[0.1453, 0.7072, 0.7414, 0.7007, 0.05053, 0.6776, 0.5924, 0.7597]],
    );
    check(
        "MultiHeadAttention",
        &[f(&[1, 2, 4], 1), f(&[1, 3, 4], 2), f(&[1, 3, 4], 3)],
        &["y0"],
        [int("num_heads", 2), int("unidirectional", 1)],
        &[&[-0.8282, 0.4723, -0.2063, 0.7516, -0.4832, 0.4405, 0.5532, 0.3308]],
    );
    check(
        "MultiHeadAttention",
        &[
            f(&[1, 1, 4], 1),
            f(&[1, 1, 4], 2),
            f(&[1, 1, 4], 3),
            none(),
            none(),
            none(),
            f(&[1, 2, 2, 2], 4),
            f(&[1, 2, 2, 2], 5),
        ],
        &["y0", "y1", "y2"],
        [int("num_heads", 2)],
        &[
            &[-0.724, 0.3276, -0.07028, 0.08653],
            &[
                -0.7845, 0.2854, -0.3039, -0.4212, -0.8719, 0.6593, -0.2314, -0.9149, 0.3495,
                0.5615, -0.1088, -0.07567,
            ],
            &[
                -0.7409, 0.09849, -0.4014, 0.4061, -0.8282, 0.4723, 0.005703, 0.05018, -0.06112,
                -0.8223, -0.2063, 0.7516,
            ],
        ],
    );
    check(
        "MultiHeadAttention",
        &[f(&[1, 2, 4], 1), f(&[1, 2, 3, 2], 2), f(&[1, 2, 3, 2], 3)],
        &["y0"],
        [int("num_heads", 2)],
        &[&[-0.6145, 0.4616, 0.5039, 0.3237, -0.5638, 0.426, 0.642, 0.306]],
    );
    check(
        "RotaryEmbedding",
        &[f(&[1, 2, 4], 1), whole(&[1, 2], &[2i64, 0]), f(&[3, 1], 2), f(&[3, 1], 3)],
        &["y0"],
        [int("interleaved", 0), int("num_heads", 2)],
        &[&[0.2742, 0.09685, -0.1851, 0.1005, 0.9793, 0.6152, 0.9556, -0.2747]],
    );
    check(
        "RotaryEmbedding",
        &[f(&[1, 1, 2, 4], 1), whole(&[1], &[1i64]), f(&[3, 2], 2), f(&[3, 2], 3)],
        &["y0"],
        [int("interleaved", 1)],
        &[&[0.2742, 0.09685, 0.6795, 0.05989, 0.7543, 0.3077, 0.2683, -0.6527]],
    );
}

/// The names of an input's sizes, and the input.
type Named = (&'static [&'static str], Given);

/// A node whose inputs have names of their own for sizes that are equal computes what it computes where sizes are
/// known.
#[track_caller]
fn agrees_open<const N: usize>(
    op: &str,
    inputs: &[Named],
    outputs: &[&str],
    attributes: [AttributeProto; N],
) {
    let names: Vec<String> = (0..inputs.len()).map(|k| format!("x{k}")).collect();
    let listed = inputs.iter().zip(&names);
    let used: Vec<&str> =
        listed.map(|((_, x), name)| if x.is_some() { name } else { "" }).collect();
    let node = model().node_with(op, &used, outputs, attributes);
    let (mut open, mut fixed, mut args) = (node.copy(), node, Vec::new());
    for ((dims, given), name) in inputs.iter().zip(&names) {
        let Some(tensor) = given else { continue };
        let dims = dims.iter().map(|d| d.parse().map_or(D::S(d), D::N));
        open.graph.input.push(value(name, data_type(tensor), dims));
        let shape = tensor.shape().iter().map(|d| *d as i64);
        fixed.graph.input.push(value(name, data_type(tensor), shape));
        args.push(tensor.clone());
    }
    let [found, expected] = [open, fixed].map(|m| {
        let m = outputs.iter().fold(m, |m, name| m.output(name));
        let bytes = foreign("com.microsoft", &m, &[("", 17), ("com.microsoft", 1)]);
        let module = import_bytes("m", bytes, &ImportOptions::default());
        let module = module.unwrap_or_else(|e| panic!("{op}: {}", e.render()));
        well_formed::check_module(&module).unwrap_or_else(|e| panic!("{op}: {}", e.render()));
        run_module(&module, "main", &args).unwrap_or_else(|e| panic!("{op}: {}", e.render()))
    });
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found.shape(), expected.shape(), "{op}");
        assert!(distance(found, expected) <= 1e-5, "{op}");
    }
}

#[test]
fn masks_positions_and_caches_may_have_other_names_of_the_same_sizes() {
    let x: Named = (&["b", "s", "4"], f(&[2, 3, 4], 1));
    let w: Named = (&["4", "12"], f(&[4, 12], 2));
    let bias: Named = (&["12"], f(&[12], 3));
    let masks: [Named; 2] =
        [(&["c", "t"], whole(&[2, 3], &[1i32, 1, 0, 1, 1, 1])), (&["c"], whole(&[2], &[2i32, 3]))];
    for mask in masks {
        let inputs = [x.clone(), w.clone(), bias.clone(), mask];
        agrees_open("Attention", &inputs, &["y"], [int("num_heads", 2)]);
    }
    let positions: Named = (&["c", "t"], whole(&[2, 3], &[0i64, 1, 4, 2, 0, 3]));
    let [cos, sin]: [Named; 2] = [2, 3].map(|seed| (&["5", "2"][..], f(&[5, 2], seed)));
    let heads: Named = (&["b", "2", "s", "4"], f(&[2, 2, 3, 4], 1));
    agrees_open("RotaryEmbedding", &[heads, positions, cos, sin], &["y"], []);
    let inputs: [Named; 7] = [
        (&["b", "1", "8"], f(&[2, 1, 8], 1)),
        (&["c", "1", "4"], f(&[2, 1, 4], 2)),
        (&["d", "1", "4"], f(&[2, 1, 4], 3)),
        (&["e", "1", "p", "4"], f(&[2, 1, 3, 4], 4)),
        (&["g", "1", "q", "4"], f(&[2, 1, 3, 4], 5)),
        (&["h"], whole(&[2], &[1i32, 2])),
        (&[], whole(&[], &[3i32])),
    ];
    let how = [int("num_heads", 2), int("kv_num_heads", 1)];
    agrees_open("GroupQueryAttention", &inputs, &["y", "keys", "values"], how);
}

#[test]
fn other_names_of_operators() {
    check(
        "CDist",
        &[f(&[2, 3], 1), f(&[2, 3], 2)],
        &["y0"],
        [text("metric", "euclidean")],
        &[&[0.2153, 1.952, 1.63, 1.346]],
    );
    check(
        "CDist",
        &[f(&[2, 3], 1), f(&[2, 3], 2)],
        &["y0"],
        [text("metric", "sqeuclidean")],
        &[&[0.04636, 3.809, 2.657, 1.812]],
    );
    check(
        "Trilu",
        &[f(&[2, 3], 1)],
        &["y0"],
        [int("upper", 0)],
        &[&[-0.9155, 0.0, 0.0, -0.9029, -0.9428, 0.0]],
    );
    check(
        "ExpandDims",
        &[f(&[2, 2], 1), whole(&[], &[1i32])],
        &["y0"],
        [],
        &[&[-0.9155, 0.8462, -0.01123, -0.9029]],
    );
    check(
        "Pad",
        &[f(&[1, 2], 1), whole(&[4], &[0i64, 1, 1, 0]), scalar(0.5f32)],
        &["y0"],
        [text("mode", "constant")],
        &[&[0.5, -0.9155, 0.8462, 0.5, 0.5, 0.5]],
    );
    check(
        "Range",
        &[scalar(1.0f32), scalar(3.0f32), scalar(0.75f32)],
        &["y0"],
        [],
        &[&[1.0, 1.75, 2.5]],
    );
    check("Range", &[scalar(1.0f32), scalar(3.0f32)], &["y0"], [], &[&[1.0, 2.0]]);
    check(
        "GridSample",
        &[f(&[1, 1, 2, 3], 1), f(&[1, 1, 2, 2], 2)],
        &["y0"],
        [text("mode", "bicubic"), text("padding_mode", "border")],
        &[&[-0.8806, -0.03583]],
    );
    check(
        "GridSample",
        &[f(&[1, 1, 2, 3], 1), f(&[1, 1, 2, 2], 2)],
        &["y0"],
        [text("mode", "bilinear"), int("align_corners", 1)],
        &[&[-0.8709, -0.08169]],
    );
    check(
        "GatherND",
        &[f(&[2, 3], 1), whole(&[2, 2], &[0i64, 2, 1, 0])],
        &["y0"],
        [],
        &[&[-0.01123, -0.9029]],
    );
}

#[test]
fn rows_go_through_the_experts_that_they_choose() {
    let scores = || whole(&[2, 2], &[1.0f32, 0.0, 0.0, 1.0]);
    let layers = [
        whole(&[2, 1, 2], &[1.0f32, 1.0, 2.0, 1.0]),
        whole(&[2, 1], &[0.0f32, 0.5]),
        whole(&[2, 2, 1], &[1.0f32, 2.0, -1.0, 0.5]),
    ];
    let [first, bias, second] = layers;
    let x = || whole(&[2, 2], &[1.0f32, 2.0, 3.0, -1.0]);
    // One expert a row, and both with the weights of a softmax.
    let normal = int("normalize_routing_weights", 1);
    check(
        "MoE",
        &[x(), scores(), first.clone(), bias.clone(), second.clone()],
        &["y0"],
        [int("k", 1), normal.clone()],
        &[&[3.0, 6.0, -5.5, 2.75]],
    );
    check(
        "MoE",
        &[x(), scores(), first, bias, second],
        &["y0"],
        [int("k", 2), normal.clone(), text("activation_type", "identity")],
        &[&[0.9829, 4.991, -3.483, 3.086]],
    );
    // Weights of ones and twos, by a sixteenth.
    let integers = || {
        let bytes: Vec<u8> = [0x99u8, 0xaa].iter().flat_map(|b| [*b; 16 * 8]).collect();
        whole(&[2, 16, 8], &bytes)
    };
    let scales = || whole(&[2, 16, 1], &[1.0f32 / 16.0; 32]);
    let rows: Vec<f32> = [1.0, 2.0].iter().flat_map(|v| [*v; 16]).collect();
    let expected: Vec<f64> = [1.0, 8.0].iter().flat_map(|v| [*v; 16]).collect();
    for level in [0, 4] {
        check(
            "QMoE",
            &[
                whole(&[1, 2, 16], &rows),
                scores(),
                integers(),
                scales(),
                none(),
                integers(),
                scales(),
            ],
            &["y0"],
            [
                int("k", 1),
                normal.clone(),
                int("block_size", 16),
                int("weights_prepacked", 0),
                int("accuracy_level", level),
            ],
            &[&expected],
        );
    }
}

/// Channels of a block on this machine.
fn block() -> usize {
    #[cfg(target_arch = "x86_64")]
    if !std::arch::is_x86_feature_detected!("avx512f") {
        return 8;
    }
    16
}

/// Weights `[outputs, inputs, 1, 1]` in blocks, filled up with zeros: inputs in blocks, too, where they are whole ones.
fn in_blocks(w: &[f32], [outputs, inputs]: [usize; 2]) -> Vec<f32> {
    let b = block();
    let each = if inputs.is_multiple_of(b) { b } else { 1 };
    let mut all = Vec::new();
    for o in 0..outputs.div_ceil(b) {
        for i in 0..inputs / each {
            for (inner, outer) in (0..each).flat_map(|i| (0..b).map(move |o| (i, o))) {
                let (o, i) = (o * b + outer, i * each + inner);
                all.push(if o < outputs { w[o * inputs + i] } else { 0.0 });
            }
        }
    }
    all
}

#[test]
fn channels_in_blocks_are_those_of_plain_convolutions() {
    let b = block();
    let whole = b as i64;
    // Three channels to one block, and that to some channels that are none.
    let (first, second) = (sample(&[b, 3, 1, 1], 1), sample(&[5, b, 1, 1], 2));
    let (x, y) =
        (first.as_slice::<f32>().expect("floats"), second.as_slice::<f32>().expect("floats"));
    let bias: Vec<f32> = (0..b).map(|k| if k < 5 { k as f32 - 2.0 } else { 0.0 }).collect();
    let kernel = || ints("kernel_shape", &[1, 1]);
    let domain = "com.microsoft.nchwc";
    let blocked = model()
        .input("x", [1, 3, 4, 5])
        .floats("w", &[whole, 3, 1, 1], &in_blocks(x, [b, 3]))
        .floats("v", &[whole, whole, 1, 1], &in_blocks(y, [5, b]))
        .floats("bias", &[whole], &bias)
        .node_with("Conv", &["x", "w"], &["a"], [kernel(), text("activation", "Sigmoid")])
        .node_with("MaxPool", &["a"], &["p"], [ints("kernel_shape", &[2, 2])])
        .node_with("Conv", &["p", "v", "bias"], &["c"], [kernel(), text("activation", "Relu")])
        .node_with("ReorderOutput", &["c"], &["y"], [int("channels", 5)])
        .output("y");
    let plain = model()
        .input("x", [1, 3, 4, 5])
        .floats("w", &[whole, 3, 1, 1], x)
        .floats("v", &[5, whole, 1, 1], y)
        .floats("bias", &[5], &bias[..5])
        .node_with("Conv", &["x", "w"], &["s"], [kernel()])
        .node("Sigmoid", &["s"], &["a"])
        .node_with("MaxPool", &["a"], &["p"], [ints("kernel_shape", &[2, 2])])
        .node_with("Conv", &["p", "v", "bias"], &["c"], [kernel()])
        .node("Relu", &["c"], &["y"])
        .output("y");
    let run = |bytes: Vec<u8>| {
        let module = import_bytes("m", bytes, &ImportOptions::default()).expect("it is supported");
        let outputs = run_module(&module, "main", &[sample(&[1, 3, 4, 5], 3)]).expect("it runs");
        outputs[0].clone()
    };
    let blocked = foreign(domain, &blocked, &[(domain, 1)]);
    assert!(distance(&run(blocked), &run(plain.bytes())) < 1e-6);
}

/// What makes zeros of zeros leaves channels of zeros behind the others: convolutions before and behind it compute
/// those that there are.
#[test]
fn functions_that_keep_zeros_keep_channels_that_are_none() {
    let b = block();
    let whole = b as i64;
    let (first, second) = (sample(&[5, 3, 1, 1], 1), sample(&[7, 5, 1, 1], 2));
    let (x, y) =
        (first.as_slice::<f32>().expect("floats"), second.as_slice::<f32>().expect("floats"));
    // Inputs that are none have weights of zero.
    let wide: Vec<f32> =
        y.chunks(5).flat_map(|row| [row, &vec![0.0; b - 5][..]].concat()).collect();
    let kernel = || ints("kernel_shape", &[1, 1]);
    let domain = "com.microsoft.nchwc";
    for (own, op) in [("ai.onnx", "Relu"), ("ai.onnx", "Tanh"), ("com.microsoft", "QuickGelu")] {
        let mut blocked = model()
            .input("x", [1, 3, 4, 5])
            .floats("w", &[whole, 3, 1, 1], &in_blocks(x, [5, 3]))
            .floats("v", &[whole, whole, 1, 1], &in_blocks(&wide, [7, b]))
            .node_with("Conv", &["x", "w"], &["a"], [kernel()])
            .node(op, &["a"], &["g"])
            .node_with("Conv", &["g", "v"], &["c"], [kernel()])
            .node_with("ReorderOutput", &["c"], &["y"], [int("channels", 7)])
            .output("y");
        blocked.graph.node[1].domain = own.into();
        let mut plain = model()
            .input("x", [1, 3, 4, 5])
            .floats("w", &[5, 3, 1, 1], x)
            .floats("v", &[7, 5, 1, 1], y)
            .node_with("Conv", &["x", "w"], &["a"], [kernel()])
            .node(op, &["a"], &["g"])
            .node_with("Conv", &["g", "v"], &["y"], [kernel()])
            .output("y");
        plain.graph.node[1].domain = own.into();
        let versions = [("", 17), (domain, 1), ("com.microsoft", 1)];
        let import = |bytes: Vec<u8>| {
            import_bytes("m", bytes, &ImportOptions::default()).unwrap_or_else(|e| panic!("{e}"))
        };
        let modules = [foreign(domain, &blocked, &versions), foreign("ai.onnx", &plain, &versions)];
        let modules = modules.map(import);
        let calls = modules.each_ref().map(|m| m.graph("main").expect("it").bindings().count());
        assert_eq!(calls[0], calls[1], "{op}");
        let given = [sample(&[1, 3, 4, 5], 3)];
        let [of_blocks, expected] =
            modules.map(|m| run_module(&m, "main", &given).expect("it runs")[0].clone());
        assert!(distance(&of_blocks, &expected) < 1e-6, "{op}");
    }
}
