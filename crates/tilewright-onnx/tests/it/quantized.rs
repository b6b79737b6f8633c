//! Operators of `com.microsoft` on integers that stand for numbers, with the results of ONNX Runtime.

use super::common::{float, int, ints};
use super::microsoft::{check, f, scalar, whole};

#[test]
fn products_of_integers() {
    check(
        "MatMulIntegerToFloat",
        &[
            whole(&[2, 2], &[1u8, 200, 30, 4]),
            whole(&[2, 3], &[5i8, -6, 7, 80, -9, 10]),
            scalar(0.5f32),
            scalar(0.25f32),
            whole(&[1], &[3u8]),
            whole(&[1], &[1i8]),
            f(&[3], 1),
        ],
        &["y0"],
        [],
        &[&[1943.0, -243.7, 220.1, 22.46, -24.03, 21.36]],
    );
    check(
        "DynamicQuantizeMatMul",
        &[
            f(&[2, 3], 1),
            whole(&[3, 2], &[5i8, -6, 7, 80, -9, 10]),
            scalar(0.25f32),
            whole(&[1], &[2i8]),
            f(&[2], 2),
        ],
        &["y0"],
        [],
        &[&[-0.4562, 19.01, -3.247, -15.48]],
    );
    check(
        "QGemm",
        &[
            whole(&[2, 2], &[1u8, 200, 30, 4]),
            scalar(0.5f32),
            whole(&[], &[3u8]),
            whole(&[3, 2], &[5i8, -6, 7, 80, -9, 10]),
            scalar(0.25f32),
            whole(&[], &[1i8]),
            whole(&[3], &[100i32, -200, 300]),
            scalar(16.0f32),
            whole(&[], &[100u8]),
        ],
        &["y0"],
        [int("transB", 1), float("alpha", 0.5)],
        &[&[95.0, 160.0, 108.0, 101.0, 100.0, 100.0]],
    );
    check(
        "QGemm",
        &[
            whole(&[2, 2], &[1u8, 200, 30, 4]),
            scalar(0.5f32),
            whole(&[], &[3u8]),
            whole(&[2, 3], &[5i8, -6, 7, 80, -9, 10]),
            scalar(0.25f32),
            whole(&[], &[1i8]),
        ],
        &["y0"],
        [],
        &[&[1944.0, -244.5, 220.1, 23.38, -24.88, 21.38]],
    );
    check(
        "MatMulNBits",
        &[
            f(&[2, 16], 1),
            whole(
                &[2, 1, 8],
                &[18u8, 52, 86, 120, 154, 188, 222, 240, 15, 237, 203, 169, 135, 101, 67, 33],
            ),
            f(&[2], 2),
        ],
        &["y0"],
        [int("K", 16), int("N", 2), int("bits", 4), int("block_size", 16)],
        &[&[-2.896, -17.05, -6.359, -5.099]],
    );
}

#[test]
fn integers_that_stand_for_numbers() {
    check(
        "QLinearAdd",
        &[
            whole(&[1, 2, 3], &[0u8, 50, 100, 150, 200, 250]),
            scalar(0.5f32),
            whole(&[], &[100u8]),
            whole(&[3], &[99u8, 101, 102]),
            scalar(0.125f32),
            whole(&[], &[100u8]),
            scalar(1.0f32),
            whole(&[], &[99u8]),
        ],
        &["y0"],
        [],
        &[&[49.0, 74.0, 99.0, 124.0, 149.0, 174.0]],
    );
    check(
        "QLinearMul",
        &[
            whole(&[1, 2, 3], &[0u8, 50, 100, 150, 200, 250]),
            scalar(0.5f32),
            whole(&[], &[100u8]),
            whole(&[3], &[99u8, 101, 103]),
            scalar(0.25f32),
            whole(&[], &[100u8]),
            scalar(1.0f32),
            whole(&[], &[99u8]),
        ],
        &["y0"],
        [],
        &[&[112.0, 93.0, 99.0, 93.0, 112.0, 155.0]],
    );
    check(
        "QLinearLeakyRelu",
        &[
            whole(&[1, 2, 3], &[0u8, 50, 100, 150, 200, 250]),
            scalar(0.5f32),
            whole(&[], &[100u8]),
            scalar(0.25f32),
            whole(&[], &[128u8]),
        ],
        &["y0"],
        [float("alpha", 0.25)],
        &[&[78.0, 103.0, 128.0, 228.0, 255.0, 255.0]],
    );
    check(
        "QLinearSigmoid",
        &[
            whole(&[1, 2, 3], &[0u8, 50, 100, 150, 200, 250]),
            scalar(0.03125f32),
            whole(&[], &[100u8]),
            scalar(0.00390625f32),
            whole(&[], &[0u8]),
        ],
        &["y0"],
        [],
        &[&[11.0, 44.0, 128.0, 212.0, 245.0, 254.0]],
    );
    check(
        "QLinearSoftmax",
        &[
            whole(&[1, 2, 3], &[0u8, 50, 100, 150, 200, 250]),
            scalar(0.015625f32),
            whole(&[], &[100u8]),
            scalar(0.00390625f32),
            whole(&[], &[0u8]),
        ],
        &["y0"],
        [int("opset", 13), int("axis", -1)],
        &[&[32.0, 70.0, 154.0, 32.0, 70.0, 154.0]],
    );
    check(
        "QLinearSoftmax",
        &[
            whole(&[1, 2, 3], &[0u8, 50, 100, 150, 200, 250]),
            scalar(0.015625f32),
            whole(&[], &[100u8]),
            scalar(0.00390625f32),
            whole(&[], &[0u8]),
        ],
        &["y0"],
        [int("opset", 11), int("axis", 1)],
        &[&[3.0, 6.0, 13.0, 29.0, 64.0, 140.0]],
    );
    check(
        "QLinearConcat",
        &[
            scalar(0.25f32),
            whole(&[], &[128u8]),
            whole(&[1, 2, 3], &[0u8, 50, 100, 150, 200, 250]),
            scalar(0.5f32),
            whole(&[], &[100u8]),
            whole(&[1, 1, 3], &[90u8, 100, 110]),
            scalar(0.75f32),
            whole(&[], &[90u8]),
        ],
        &["y0"],
        [int("axis", 1)],
        &[&[0.0, 28.0, 128.0, 228.0, 255.0, 255.0, 128.0, 158.0, 188.0]],
    );
    // Nearly as near to 115 as to 116, until the zero point is added.
    check(
        "QLinearAveragePool",
        &[
            whole(&[1, 1, 2, 2], &[47u8, 117, 195, 103]),
            scalar(0.02f32),
            whole(&[], &[128u8]),
            scalar(0.02f32),
            whole(&[], &[128u8]),
        ],
        &["y0"],
        [ints("kernel_shape", &[2, 2])],
        &[&[116.0]],
    );
    check(
        "QLinearAveragePool",
        &[
            whole(&[1, 1, 3, 4], &[0u8, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200, 255]),
            scalar(0.5f32),
            whole(&[], &[100u8]),
            scalar(0.25f32),
            whole(&[], &[128u8]),
        ],
        &["y0"],
        [ints("kernel_shape", &[2, 2]), ints("strides", &[1, 2]), ints("pads", &[0, 1, 0, 0])],
        &[&[8.0, 68.0, 168.0, 228.0]],
    );
    check(
        "QLinearAveragePool",
        &[
            whole(&[1, 1, 3, 4], &[0u8, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200, 255]),
            scalar(0.5f32),
            whole(&[], &[100u8]),
            scalar(0.25f32),
            whole(&[], &[128u8]),
        ],
        &["y0"],
        [
            ints("kernel_shape", &[2, 3]),
            ints("strides", &[2, 2]),
            ints("pads", &[0, 1, 0, 0]),
            int("count_include_pad", 1),
            int("ceil_mode", 1),
        ],
        &[&[61.0, 88.0, 175.0, 240.0]],
    );
    check(
        "QLinearGlobalAveragePool",
        &[
            whole(&[1, 2, 2, 2], &[0u8, 20, 40, 61, 80, 100, 120, 141]),
            scalar(0.5f32),
            whole(&[], &[100u8]),
            scalar(0.25f32),
            whole(&[], &[128u8]),
        ],
        &["y0"],
        [int("channels_last", 0)],
        &[&[0.0, 148.0]],
    );
    check(
        "QLinearGlobalAveragePool",
        &[
            whole(&[1, 2, 2, 2], &[0u8, 20, 40, 61, 80, 100, 120, 141]),
            scalar(0.5f32),
            whole(&[], &[100u8]),
            scalar(0.25f32),
            whole(&[], &[128u8]),
        ],
        &["y0"],
        [int("channels_last", 1)],
        &[&[48.0, 89.0]],
    );
    check(
        "NhwcMaxPool",
        &[whole(&[1, 2, 3, 2], &[0u8, 20, 40, 60, 80, 100, 120, 140, 160, 180, 200, 255])],
        &["y0"],
        [ints("kernel_shape", &[2, 2])],
        &[&[160.0, 180.0, 200.0, 255.0]],
    );
    check(
        "QuantizeLinear",
        &[f(&[2, 3], 1), scalar(0.0625f32), whole(&[], &[128u8])],
        &["y0"],
        [],
        &[&[113.0, 142.0, 128.0, 114.0, 113.0, 131.0]],
    );
    check(
        "DequantizeLinear",
        &[whole(&[2, 2], &[1i8, -2, 3, -4]), f(&[2], 1), whole(&[2], &[1i8, 0])],
        &["y0"],
        [int("axis", 0)],
        &[&[-0.0, 2.747, 2.539, -3.385]],
    );
}
