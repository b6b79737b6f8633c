//! Element types of less than a byte, and floats of a byte.

use crate::common::*;
use tilewright_interp::run_module;
use tilewright_ir::{DType, Tensor, well_formed};
use tilewright_onnx::proto::{DataType, TensorProto};

/// The only output of a model for these inputs.
fn run(m: &M, inputs: &[Tensor]) -> Tensor {
    let module = m.import().unwrap_or_else(|e| panic!("{}", e.render()));
    well_formed::check_module(&module).unwrap_or_else(|e| panic!("{}", e.render()));
    let outputs = run_module(&module, "main", inputs);
    outputs.unwrap_or_else(|e| panic!("{}", e.render())).remove(0)
}

fn floats(t: &Tensor) -> Vec<f64> {
    (0..t.len()).map(|i| t.get_f64(i)).collect()
}

/// A constant whose elements are packed into bytes.
fn packed(name: &str, of: DataType, dims: &[i64], bytes: &[u8]) -> TensorProto {
    TensorProto {
        name: name.into(),
        data_type: of as i32,
        dims: dims.to_vec(),
        raw_data: Some(bytes.to_vec().into()),
        ..Default::default()
    }
}

#[test]
fn weights_of_four_bits_are_moved_and_dequantised_by_blocks() {
    // [[1, -8], [7, -1], [2, 3]], transposed to two rows of three.
    let weights = packed("w", DataType::Int4, &[3, 2], &[0x81, 0xf7, 0x32]);
    let m = model()
        .opset(21)
        .input("x", [1, 2])
        .constant(weights)
        .floats("s", &[2, 2], &[0.5, 2.0, 1.0, 4.0])
        .node("Transpose", &["w"], &["t"])
        .node_with("DequantizeLinear", &["t", "s"], &["f"], [int("axis", 1), int("block_size", 2)])
        .node("MatMul", &["x", "f"], &["y"])
        .output("y");
    let x = Tensor::from_slice(&[1, 2], &[1.0f32, 10.0]).expect("a tensor");
    // Rows [0.5, 3.5, 4] and [-8, -1, 12].
    assert_eq!(floats(&run(&m, &[x])), [-79.5, -6.5, 124.0]);
}

/// Weights in blocks along what a product sums up are not expanded, whichever way they come to it.
#[test]
fn products_with_weights_in_blocks_read_them_packed() {
    // [[1, -8], [7, -1], [2, 3]] less [[1, -1], [0, 1]], in blocks of two rows.
    let base = || {
        let x = Tensor::from_slice(&[1, 3], &[1.0f32, 10.0, 100.0]).expect("a tensor");
        let m = model()
            .opset(21)
            .input("x", [1, 3])
            .constant(packed("w", DataType::Int4, &[3, 2], &[0x81, 0xf7, 0x32]))
            .constant(packed("z", DataType::Int4, &[2, 2], &[0xf1, 0x10]))
            .floats("s", &[2, 2], &[0.5, 2.0, 1.0, 4.0]);
        (m, x)
    };
    let turned = |m: M| {
        m.node("Transpose", &["w"], &["wt"]).node("Transpose", &["s"], &["st"]).node(
            "Transpose",
            &["z"],
            &["zt"],
        )
    };
    let by_rows = [int("axis", 0), int("block_size", 2)];
    let by_columns = [int("axis", 1), int("block_size", 2)];
    // Columns [0, 3, 2] and [-14, 0, 8].
    let expected = [230.0, 786.0];
    let plain = |m: M| {
        m.node_with("DequantizeLinear", &["w", "s", "z"], &["f"], by_rows.clone()).node(
            "MatMul",
            &["x", "f"],
            &["y"],
        )
    };
    let transposed = |m: M| {
        turned(m)
            .node_with("DequantizeLinear", &["wt", "st", "zt"], &["t"], by_columns.clone())
            .node("Transpose", &["t"], &["f"])
            .node("MatMul", &["x", "f"], &["y"])
    };
    let gemm = |m: M| {
        turned(m)
            .node_with("DequantizeLinear", &["wt", "st", "zt"], &["t"], by_columns.clone())
            .node_with("Gemm", &["x", "t"], &["y"], [int("transB", 1)])
    };
    let ways: [&dyn Fn(M) -> M; 3] = [&plain, &transposed, &gemm];
    for (at, way) in ways.into_iter().enumerate() {
        let (m, x) = base();
        let m = way(m).output("y");
        assert_eq!(floats(&run(&m, &[x])), expected, "{at}");
        let module = m.import().expect("a module");
        assert!(module.tensor("product_of_blocks").is_ok(), "{at}");
    }
    // Scales of columns and of all are those of blocks, unless something is quantised in a run.
    let of_columns = |quantised: bool| {
        let (m, x) = base();
        let m = m.floats("c", &[2], &[0.5, 2.0]).floats("one", &[], &[1.0]);
        let m = m.node_with("DequantizeLinear", &["w", "c"], &["f"], [int("axis", 1)]);
        let m = if quantised {
            m.node("QuantizeLinear", &["x", "one"], &["q"])
                .node("DequantizeLinear", &["q", "one"], &["r"])
                .node("MatMul", &["r", "f"], &["y"])
        } else {
            m.node("MatMul", &["x", "f"], &["y"])
        };
        let m = m.output("y");
        // Columns [0.5, 3.5, 1] and [-16, -2, 6].
        assert_eq!(floats(&run(&m, &[x])), [135.5, 564.0]);
        m.import().expect("a module").tensor("product_of_blocks").is_ok()
    };
    assert_eq!([false, true].map(of_columns), [true, false]);
    // What something else reads as well, and factors that are no weights for a product, are numbers.
    let (m, x) = base();
    let m = plain(m).node("Neg", &["f"], &["g"]).output("y").output("g");
    assert_eq!(floats(&run(&m, &[x])), expected);
    let (m, x) = base();
    let scaled = [int("transB", 0), float("alpha", 2.0)];
    let m = m
        .node_with("DequantizeLinear", &["w", "s", "z"], &["f"], by_rows.clone())
        .node_with("Gemm", &["x", "f"], &["y"], scaled)
        .output("y");
    assert_eq!(floats(&run(&m, &[x])), [460.0, 1572.0]);
}

#[test]
fn values_are_quantised_to_the_range_of_few_bits() {
    for (of, expected) in [
        (DataType::Uint4, [0.0, 0.0, 2.0, 15.0]),
        (DataType::Int4, [-8.0, -2.0, 2.0, 7.0]),
        (DataType::Int2, [-2.0, -2.0, 1.0, 1.0]),
        (DataType::Uint2, [0.0, 0.0, 2.0, 3.0]),
    ] {
        let m = model()
            .opset(25)
            .input("x", [4])
            .floats("s", &[], &[0.5])
            .node_with("QuantizeLinear", &["x", "s"], &["q"], [int("output_dtype", of as i64)])
            .node_with("Cast", &["q"], &["y"], [int("to", DataType::Float as i64)])
            .output("y");
        let x = Tensor::from_slice(&[4], &[-30.0f32, -1.0, 1.25, 30.0]).expect("a tensor");
        assert_eq!(floats(&run(&m, &[x])), expected, "{of:?}");
    }
}

#[test]
fn floats_of_eight_bits_are_their_bits_outside() {
    let m = model()
        .opset(23)
        .input("x", [5])
        .node_with("Cast", &["x"], &["y"], [int("to", DataType::Float8e4m3fn as i64)])
        .output("y");
    let x = Tensor::from_slice(&[5], &[0.0f32, 1.0, -1.5, 1e4, 0.07]).expect("a tensor");
    let bits = run(&m, std::slice::from_ref(&x));
    assert_eq!(bits.as_slice::<u8>(), Some(&[0, 0x38, 0xbc, 0x7e, 0x19][..]));
    let without = [int("to", DataType::Float8e4m3fn as i64), int("saturate", 0)];
    let m = model().opset(23).input("x", [5]).node_with("Cast", &["x"], &["y"], without);
    let bits = run(&m.output("y"), &[x]);
    assert_eq!(bits.as_slice::<u8>(), Some(&[0, 0x38, 0xbc, 0x7f, 0x19][..]));
    let m = model()
        .opset(23)
        .typed_input("x", DataType::Float8e5m2, [3])
        .node("Identity", &["x"], &["same"])
        .node_with("Cast", &["same"], &["y"], [int("to", DataType::Float16 as i64)])
        .output("y");
    let x = Tensor::from_slice(&[3], &[0x3cu8, 0xc0, 0x7c]).expect("a tensor");
    let y = run(&m, &[x]);
    assert_eq!((y.dtype(), floats(&y)), (DType::F16, vec![1.0, -2.0, f64::INFINITY]));
}

#[test]
fn what_does_not_know_narrow_elements_refuses_them() {
    let m = model()
        .opset(21)
        .typed_input("x", DataType::Int4, [4])
        .node("Add", &["x", "x"], &["y"])
        .output("y");
    let said = m.refused();
    assert!(said.contains("(Add, opset 21)"), "{said}");
    assert!(said.contains("elements of type int4 are not supported, which input 0 has"), "{said}");
    assert!(said.contains("help: convert them to float32 before"), "{said}");
    let same = || model().node("Identity", &["x"], &["s"]).output("s");
    let m = model()
        .opset(21)
        .typed_input("x", DataType::Int4, [4])
        .typed_input("c", DataType::Bool, [1])
        .node_with(
            "If",
            &["c"],
            &["y"],
            [graph("then_branch", same()), graph("else_branch", same())],
        )
        .output("y");
    let said = m.refused();
    assert!(said.contains("int4 are not supported as results of branches and loops"), "{said}");
    let m = model().opset(21).constant(packed("w", DataType::Uint4, &[3], &[1]));
    let said = m.node("Identity", &["w"], &["y"]).output("y").refused();
    assert!(said.contains("2 bytes are needed for uint8 of shape [2], but there are 1"), "{said}");
}
