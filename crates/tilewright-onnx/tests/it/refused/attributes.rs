//! Attributes and parameters that are refused.

use super::{node_says, single};
use crate::common::*;
use tilewright_onnx::proto::{AttributeProto, AttributeType};

#[test]
fn attributes_that_do_not_fit() {
    let s: &[&[i64]] = &[&[1, 2]];
    node_says(&single("Relu", 13, s, &[int("slope", 1)]), "attribute `slope` is not supported");
    node_says(
        &single("Softmax", 13, s, &[int("axis", 0), int("axis", 1)]),
        "attribute `axis` is given twice",
    );
    node_says(
        &single("Softmax", 13, s, &[float("axis", 1.0)]),
        "attribute `axis` is of kind Float, not Int",
    );
    let unknown = AttributeProto { r#type: 77, ..int("axis", 1) };
    node_says(&single("Softmax", 13, s, &[unknown]), "attribute `axis` is of kind 77, not Int");
    let reference = AttributeProto { ref_attr_name: "a".into(), ..int("axis", 1) };
    node_says(
        &single("Softmax", 13, s, &[reference]),
        "attribute `axis` refers to an attribute of a function, but stands in none",
    );
    let bytes = AttributeProto {
        name: "approximate".into(),
        r#type: AttributeType::String as i32,
        s: vec![0xff].into(),
        ..Default::default()
    };
    node_says(&single("Gelu", 20, s, &[bytes]), "attribute `approximate` is not valid UTF-8");
    // Files of the first version do not say the kind.
    let untyped = AttributeProto { r#type: 0, ..int("axis", 1) };
    assert!(single("Softmax", 13, s, &[untyped]).import().is_ok());
}

#[test]
fn values_of_attributes_that_are_not_supported() {
    let image: &[&[i64]] = &[&[1, 4, 8, 8]];
    let pool = ints("kernel_shape", &[2, 2]);
    for (op, opset, shapes, attributes, said) in [
        (
            "Gelu",
            20,
            image,
            vec![text("approximate", "x")],
            "attribute `approximate` = x is not supported",
        ),
        (
            "Mod",
            13,
            &[&[1][..], &[1]][..],
            vec![int("fmod", 2)],
            "attribute `fmod` = 2 is not supported",
        ),
        (
            "BitShift",
            13,
            &[&[1], &[1]],
            vec![text("direction", "UP")],
            "attribute `direction` = UP is not supported",
        ),
        (
            "MaxPool",
            13,
            image,
            vec![pool.clone(), text("auto_pad", "SAME")],
            "attribute `auto_pad` = SAME is not supported",
        ),
        (
            "MaxPool",
            13,
            image,
            vec![pool.clone(), int("storage_order", 2)],
            "attribute `storage_order` = 2 is not supported",
        ),
        (
            "MaxPool",
            13,
            image,
            vec![pool.clone(), ints("strides", &[0, 1])],
            "attribute `strides` = 0 is not supported",
        ),
        (
            "MaxPool",
            13,
            image,
            vec![pool.clone(), ints("pads", &[0, 0, -1, 0])],
            "attribute `pads` = -1 is not supported",
        ),
        (
            "LpPool",
            13,
            image,
            vec![pool.clone(), int("p", 0)],
            "attribute `p` = 0 is not supported",
        ),
        ("LpNormalization", 13, image, vec![int("p", 3)], "attribute `p` = 3 is not supported"),
        (
            "Pad",
            9,
            image,
            vec![ints("pads", &[0; 8]), text("mode", "wrap")],
            "attribute `mode` = wrap is not supported",
        ),
        (
            "DepthToSpace",
            13,
            image,
            vec![int("blocksize", 2), text("mode", "X")],
            "attribute `mode` = X is not supported",
        ),
        (
            "LayerNormalization",
            17,
            &[&[2, 3], &[3]],
            vec![int("stash_type", 10)],
            "attribute `stash_type` = 10 is not supported",
        ),
        (
            "Cast",
            13,
            image,
            vec![int("to", 8)],
            "attribute `to`: element type STRING is not supported",
        ),
        (
            "Cast",
            13,
            image,
            vec![int("to", 1 << 40)],
            "attribute `to`: there is no element type number -1",
        ),
        (
            "EyeLike",
            13,
            &[&[2, 2]],
            vec![int("dtype", 99)],
            "attribute `dtype`: there is no element type number 99",
        ),
    ] {
        node_says(&single(op, opset, shapes, &attributes), said);
    }
}

#[test]
fn parameters_that_contradict_each_other() {
    let image: &[&[i64]] = &[&[1, 4, 8, 8]];
    let conv: &[&[i64]] = &[&[1, 4, 8, 8], &[2, 4, 3, 3]];
    let pool = ints("kernel_shape", &[2, 2]);
    for (op, opset, shapes, attributes, said) in [
        ("Relu", 13, &[][..], vec![], "input 0 is missing"),
        (
            "Relu",
            13,
            &[&[1][..], &[1]],
            vec![],
            "there are 2 inputs, but the operator takes at most 1",
        ),
        (
            "Softmax",
            13,
            &[&[2, 3]],
            vec![int("axis", 2)],
            "there is no axis 2 in a tensor of 2 dimensions",
        ),
        (
            "Softmax",
            11,
            &[&[2, 3]],
            vec![int("axis", -3)],
            "there is no axis -3 in a tensor of 2 dimensions",
        ),
        (
            "Concat",
            13,
            &[&[2, 3], &[2, 4]],
            vec![int("axis", 0)],
            "float32[2, 3] and float32[2, 4] cannot be joined along axis 0",
        ),
        ("Concat", 13, &[&[2, 3]], vec![], "attribute `axis` is missing"),
        ("Sum", 13, &[], vec![], "there are no inputs"),
        ("Concat", 13, &[], vec![], "there are no inputs"),
        ("Transpose", 13, &[&[2, 3]], vec![ints("perm", &[0])], "the order [0] of 2 axes"),
        ("Transpose", 13, &[&[2, 3]], vec![ints("perm", &[0, 0])], "axis 0 is given twice"),
        (
            "Squeeze",
            11,
            &[&[2, 3]],
            vec![ints("axes", &[0])],
            "axis 0 of the shape [2, 3] is not 1 and cannot go",
        ),
        ("Squeeze", 11, &[&[2, 3], &[1]], vec![], "axes are no input before opset 13"),
        ("Unsqueeze", 11, &[&[2, 3]], vec![], "the axes are not given"),
        (
            "Unsqueeze",
            11,
            &[&[2, 3]],
            vec![ints("axes", &(0..32).collect::<Vec<_>>())],
            "a tensor of 34 dimensions is not supported; at most 32 are",
        ),
        ("ReduceMax", 13, &[&[2, 3], &[1]], vec![], "axes are no input before opset 18"),
        (
            "Split",
            11,
            &[&[2, 3]],
            vec![ints("split", &[1, 1])],
            "2 elements do not split into 1 outputs of the sizes [1, 1]",
        ),
        ("Split", 11, &[&[2, 3]], vec![ints("split", &[-1])], "the size -1 is negative"),
        (
            "Split",
            18,
            &[&[2, 3]],
            vec![int("num_outputs", 2)],
            "attribute `num_outputs` does not fit 1 outputs",
        ),
        ("Slice", 9, &[&[2, 3]], vec![ints("starts", &[0])], "`ends` is missing"),
        (
            "Slice",
            9,
            &[&[2, 3]],
            vec![ints("starts", &[0]), ints("ends", &[1, 2])],
            "starts, ends, axes and steps differ in length",
        ),
        (
            "Slice",
            9,
            &[&[2]],
            vec![ints("starts", &[0, 0]), ints("ends", &[1, 2])],
            "2 bounds for 1 axes",
        ),
        ("Pad", 9, &[&[2]], vec![ints("pads", &[1])], "1 amounts for 1 axes"),
        (
            "Pad",
            9,
            &[&[2]],
            vec![ints("pads", &[1, 1 << 40])],
            "the amounts [1, 1099511627776] are out of range",
        ),
        ("Pad", 9, &[&[2]], vec![], "`pads` is missing"),
        (
            "Conv",
            13,
            conv,
            vec![ints("kernel_shape", &[2, 2])],
            "attribute `kernel_shape` is [2, 2], but the weights have the shape [2, 4, 3, 3]",
        ),
        (
            "Conv",
            13,
            conv,
            vec![ints("strides", &[1])],
            "attribute `strides` has 1 numbers where 2 are needed",
        ),
        ("Conv", 13, conv, vec![int("group", 0)], "attribute `group` is 0"),
        (
            "Conv",
            13,
            &[&[1, 4, 8, 8], &[2, 4, 3]],
            vec![],
            "a window of 1 dimensions over 2 spatial dimensions",
        ),
        (
            "Conv",
            13,
            &[&[1, 4, 8, 8], &[2, 4, 3, 3], &[3]],
            vec![],
            "the bias is float32[3], where float32 of shape [2] is needed",
        ),
        (
            "ConvTranspose",
            13,
            &[&[1, 4, 8], &[4, 2, 3, 3]],
            vec![],
            "data of shape [1, 4, 8] and weights of shape [4, 2, 3, 3] do not fit",
        ),
        (
            "ConvTranspose",
            13,
            &[&[1, 4, 8, 8], &[4, 2, 3, 3]],
            vec![ints("output_shape", &[9])],
            "attribute `output_shape` is [9] for 2 spatial dimensions",
        ),
        (
            "ConvTranspose",
            13,
            &[&[1, 4, 8], &[4, 2, 3]],
            vec![ints("output_shape", &[1 << 40])],
            "an output of 1099511627776 cells cannot come about",
        ),
        ("Gemm", 9, &[&[2, 3], &[3, 2]], vec![], "input 2 is missing"),
        ("MaxPool", 13, &[&[1, 4]], vec![pool.clone()], "float32[1, 4] has no spatial dimensions"),
        ("MaxPool", 13, image, vec![], "attribute `kernel_shape` is missing"),
        (
            "BatchNormalization",
            13,
            &[&[1, 2], &[3], &[2], &[2], &[2]],
            vec![],
            "2 channels are normalised with 3 numbers",
        ),
        (
            "InstanceNormalization",
            13,
            &[&[1, 2, 3], &[3], &[2]],
            vec![],
            "scale and bias must be float32 of shape [2], but there is float32[3]",
        ),
        ("QuantizeLinear", 13, &[&[2, 3], &[2]], vec![], "2 scales for data of shape [2, 3]"),
        (
            "GroupNormalization",
            21,
            &[&[1, 4, 3], &[4], &[4]],
            vec![],
            "attribute `num_groups` must be a number above 0",
        ),
        ("LRN", 13, image, vec![], "attribute `size` must be a number above 0"),
        ("DepthToSpace", 13, image, vec![], "attribute `blocksize` must be a number above 0"),
        ("Cast", 13, image, vec![], "attribute `to` is missing"),
        ("Gather", 13, &[&[2], &[1]], vec![], "the index is float32, not an integer"),
        ("GatherND", 13, &[&[2], &[1]], vec![], "the index is float32, not an integer"),
        ("Where", 13, &[&[1], &[1], &[1]], vec![], "the condition is float32, not bool"),
        ("EyeLike", 13, &[&[2]], vec![], "the input must be a matrix, but has the shape [2]"),
        (
            "ReverseSequence",
            13,
            &[&[2, 3], &[3]],
            vec![int("batch_axis", 0)],
            "batch axis 0 and time axis 0 of 2 axes",
        ),
        (
            "ReverseSequence",
            13,
            &[&[2, 3], &[3]],
            vec![],
            "the lengths must be int64 of shape [3], but are float32[3]",
        ),
        ("Constant", 13, &[], vec![], "no value is given"),
        (
            "Constant",
            13,
            &[],
            vec![int("value_int", 1), float("value_float", 1.0)],
            "several values are given",
        ),
        (
            "Constant",
            13,
            &[],
            vec![text("value_text", "x")],
            "attribute `value_text` is not supported",
        ),
        (
            "Constant",
            13,
            &[],
            vec![tensor("value", float_tensor(&[2], &[1.0]))],
            "attribute `value`: a tensor of shape [2] has 2 elements, but `float_data` has 1",
        ),
    ] {
        node_says(&single(op, opset, shapes, &attributes), said);
    }
}
