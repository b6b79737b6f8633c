use tilewright_ir::{DType, Tensor};
use tilewright_ops::Operand;
use tilewright_ops::blocks::{Weights, Zero, integer_product, product, quantize};
use tilewright_ops::cache::{Along, append_rows};

use crate::nd::{Nd, check, refused, run};

/// The third axis, to whose end rows are written.
const ROWS: Along = Along { axis: 2, circular: false };

/// Integers in rows, packed: the first one in the lowest bits of a byte.
fn packed(values: &Nd, bits: u32) -> Tensor {
    let per = 8 / bits as usize;
    let (rows, count) = (values.shape[0], values.shape[1]);
    let width = count.div_ceil(per);
    let byte = |at: usize| {
        let (row, byte) = (at / width, at % width);
        let places = (0..per).filter(|h| byte * per + h < count);
        let value = |h: usize| (values.at(&[row, byte * per + h]) as u32) << (h as u32 * bits);
        places.map(value).sum::<u32>() as u8
    };
    let bytes: Vec<u8> = (0..rows * width).map(byte).collect();
    Tensor::from_slice(&[rows, width], &bytes).expect("a tensor")
}

fn reshaped(t: &Tensor, shape: &[usize]) -> Tensor {
    Tensor::from_bytes(t.dtype(), shape, t.bytes()).expect("a tensor")
}

/// Weights, their operands, and the numbers that they stand for.
fn weights(n: usize, k: usize, bits: u32, block: usize, zero: Zero) -> (Weights, Vec<Tensor>, Nd) {
    let w = Weights { n, k, bits, block, scale: DType::F32, zero };
    let (blocks, high) = (w.blocks(), (1i64 << bits) - 1);
    let q = Nd::integers(&[n, blocks * block], 1, 0, high);
    let scales = Nd::integers(&[n, blocks], 2, 1, 9).map(|v| v / 16.0);
    let zeros = match zero {
        Zero::Middle => Nd::build(&[n, blocks], |_| f64::from(1 << (bits - 1))),
        Zero::Packed(_) => Nd::integers(&[n, blocks], 3, 0, high),
        Zero::Float(_) => Nd::integers(&[n, blocks], 3, 0, 4 * high).map(|v| v / 4.0),
    };
    let numbers = Nd::build(&[n, k], |i| {
        let at = [i[0], i[1] / block];
        (q.at(i) - zeros.at(&at)) * scales.at(&at)
    });
    let bytes = reshaped(&packed(&q, bits), &[n, blocks, block * bits as usize / 8]);
    let mut all = vec![bytes, scales.f32()];
    all.extend(match zero {
        Zero::Middle => None,
        Zero::Packed(_) => Some(packed(&zeros, bits)),
        Zero::Float(dtype) => Some(zeros.tensor(dtype)),
    });
    (w, all, numbers)
}

fn cases() -> impl Iterator<Item = (usize, usize, u32, usize, Zero)> {
    let zeros = |bits: u32, blocks: usize| {
        let bytes = blocks.div_ceil(8 / bits as usize);
        [Zero::Middle, Zero::Packed(bytes), Zero::Float(DType::F32)]
    };
    let sizes = [(3, 40usize, 4u32, 16usize), (5, 64, 4, 32), (2, 33, 2, 16), (4, 50, 8, 32)];
    sizes.into_iter().flat_map(move |(n, k, bits, block)| {
        zeros(bits, k.div_ceil(block)).map(|zero| (n, k, bits, block, zero))
    })
}

#[test]
fn products_are_those_of_the_numbers_that_weights_stand_for() {
    for (n, k, bits, block, zero) in cases() {
        let (w, operands, numbers) = weights(n, k, bits, block, zero);
        let x = Nd::integers(&[2, k], 4, -8, 8).map(|v| v / 4.0);
        let expected = Nd::build(&[2, n], |i| {
            (0..k).map(|at| x.at(&[i[0], at]) * numbers.at(&[i[1], at])).sum()
        });
        let inputs: Vec<Tensor> = [x.f32()].into_iter().chain(operands).collect();
        check(product(&Operand::f32(&[2, k]), &w), &inputs, &[(&expected, DType::F32)]);
    }
}

#[test]
fn products_of_integers_are_scaled_by_blocks() {
    for (n, k, bits, block, zero) in cases() {
        let (w, operands, numbers) = weights(n, k, bits, block, zero);
        let blocks = w.blocks();
        // Behind the last number are zeros.
        let q = Nd::integers(&[2, blocks, block], 5, -127, 127);
        let q =
            Nd::build(&q.shape.clone(), |i| if i[1] * block + i[2] < k { q.at(i) } else { 0.0 });
        let scales = Nd::integers(&[2, blocks], 6, 1, 5).map(|v| v / 64.0);
        let expected = Nd::build(&[2, n], |i| {
            let one = |at: usize| {
                let b = at / block;
                q.at(&[i[0], b, at % block]) * scales.at(&[i[0], b]) * numbers.at(&[i[1], at])
            };
            (0..k).map(one).sum()
        });
        let inputs: Vec<Tensor> =
            [q.tensor(DType::I8), scales.f32()].into_iter().chain(operands).collect();
        let func = integer_product(2usize.into(), &w);
        check(func, &inputs, &[(&expected, DType::F32)]);
    }
}

#[test]
fn numbers_become_integers_with_the_largest_of_a_block_at_127() {
    // A block of zeros is one of scale zero.
    let x = Nd::build(&[2, 40], |i| if i[1] < 16 { 0.0 } else { (i[1] as f64 - 24.0) / 8.0 });
    let largest =
        |b: usize| (b * 16..40.min(b * 16 + 16)).map(|at| x.at(&[0, at]).abs()).fold(0.0, f64::max);
    let scales = Nd::build(&[2, 3], |i| largest(i[1]) / 127.0);
    let integers = Nd::build(&[2, 3, 16], |i| {
        let at = i[1] * 16 + i[2];
        if at < 40 && largest(i[1]) > 0.0 {
            (x.at(&[i[0], at]) / scales.at(&i[..2])).round_ties_even()
        } else {
            0.0
        }
    });
    let got = run(quantize(&Operand::f32(&[2, 40]), 16), &[x.f32()]);
    assert_eq!(got[0].bytes(), integers.tensor(DType::I8).bytes());
    for k in 0..6 {
        assert!((got[1].get_f64(k) - scales.f32().get_f64(k)).abs() < 1e-7, "{k}");
    }
}

#[test]
fn rows_follow_those_of_a_cache() {
    let (old, rows) = (Nd::random(&[2, 1, 5, 3], 1), Nd::random(&[2, 1, 2, 3], 2));
    let starts = [3usize, 1];
    let expected = Nd::build(&[2, 1, 6, 3], |i| {
        let [b, h, at, d] = [i[0], i[1], i[2], i[3]];
        match at.checked_sub(starts[b]) {
            None => old.at(&[b, h, at, d]),
            Some(k) if k < 2 => rows.at(&[b, h, k, d]),
            Some(_) if at < 5 => old.at(&[b, h, at, d]),
            Some(_) => 0.0,
        }
    });
    let of = |t: &Nd| Operand::f32(&t.shape);
    let at = Tensor::from_slice(&[2], &[3i32, 1]).expect("a tensor");
    let func = append_rows(&of(&old), &of(&rows), 6usize.into(), ROWS);
    check(func, &[old.f32(), rows.f32(), at], &[(&expected, DType::F32)]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let w = Weights { n: 2, k: 20, bits: 4, block: 16, scale: DType::F32, zero: Zero::Packed(0) };
    let x = Operand::f32(&[3, 20]);
    let messages = [
        refused(product(&x, &w)),
        refused(product(&x, &Weights { bits: 3, ..w.clone() })),
        refused(product(&Operand::f32(&[3, 19]), &Weights { zero: Zero::Middle, ..w.clone() })),
        refused(integer_product(3usize.into(), &Weights { block: 0, ..w })),
        refused(quantize(&Operand::new(&[3, 20], DType::I8), 16)),
        refused(append_rows(&x, &x, 4usize.into(), ROWS)),
    ];
    let expected = [
        "0 bytes do not hold the zero points of 2 blocks",
        "weights of 3 bits",
        "weights for 20",
        "blocks of 0 weights",
        "quantize_blocks of int8[3, 20]",
        "append_rows: float32[3, 20] in float32[3, 20] along axis 2",
    ];
    for (message, part) in messages.iter().zip(expected) {
        assert!(message.contains(part), "{message}");
    }
}
