//! Conversions of constants that are moved element by element hold what their functions say.

use tilewright_graph::fold::interpret;
use tilewright_ir::{DType, Error, Source, Tensor, TensorFunc};
use tilewright_layout::fold::moving_directly;
use tilewright_tvmscript::parse_module;

fn func(dtype: DType, from: &[usize], to: &[usize], body: &str) -> TensorFunc {
    let shape = |extents: &[usize]| extents.iter().map(|n| format!("{n},")).collect::<String>();
    let text = format!(
        "@T.prim_func\ndef f(x: T.Buffer(({}), \"{dtype}\"), y: T.Buffer(({}), \"{dtype}\")):\n    {}\n",
        shape(from),
        shape(to),
        body.trim().replace('\n', "\n    ")
    );
    let module = parse_module(&Source::new("f.py", text.clone()))
        .unwrap_or_else(|e| panic!("{}\n{text}", e.render()));
    (**module.tensors().next().expect("a function").1).clone()
}

/// Moves elements all of which differ in their low bytes, and compares with the interpreter.
fn check(dtype: DType, from: &[usize], to: &[usize], body: &str) {
    let f = func(dtype, from, to, body);
    let count = from.iter().product::<usize>() as u64;
    let bytes = (0..count).flat_map(|k| (1000 + k).to_le_bytes()[..dtype.bytes()].to_vec());
    let x = Tensor::from_bytes(dtype, from, &bytes.collect::<Vec<u8>>()).expect("a tensor");
    // What is not moved directly is an error.
    let mut refuse = |_: &TensorFunc, _: &[Tensor]| Err(Error::internal("it is run"));
    let moved = moving_directly(&mut refuse)(&f, std::slice::from_ref(&x));
    let moved = moved.unwrap_or_else(|e| panic!("{from:?} to {to:?}: {}", e.render()));
    let run = interpret(&f, &[x]).expect("it runs");
    assert!(moved[0].same(&run[0]), "{from:?} to {to:?}");
}

#[test]
fn rows_and_blocks_of_rows() {
    let weights = "
for o, i, h, w, k in T.grid(3, 5, 3, 3, 16):
    y[o, i, h, w, k] = x[16 * o + k, i, h, w]";
    for dtype in [DType::F32, DType::F16, DType::I8, DType::F64] {
        check(dtype, &[48, 5, 3, 3], &[3, 5, 3, 3, 16], weights);
    }
    let transposed = "for i, j in T.grid(40, 33):\n    y[i, j] = x[j, i]";
    check(DType::F32, &[33, 40], &[40, 33], transposed);
    let same = "for i, j in T.grid(40, 33):\n    y[i, j] = x[i, j]";
    check(DType::F32, &[40, 33], &[40, 33], same);
    check(DType::F32, &[17], &[9], "for i in range(9):\n    y[i] = x[2 * i]");
    let backwards = "for i, j in T.grid(18, 3):\n    y[i, j] = x[17 - i, 2 - j]";
    check(DType::F32, &[18, 3], &[18, 3], backwards);
}

#[test]
fn more_than_one_part() {
    // The ends of parts are within rows that follow one another evenly.
    let body = "for i, j, k in T.grid(1404, 35, 16):\n    y[i, j, k] = x[k, i, j]";
    check(DType::F32, &[16, 1404, 35], &[1404, 35, 16], body);
}

#[test]
fn cells_without_a_source() {
    let rows = "
for i, j, k in T.grid(4, 3, 5):
    y[i, j, k] = T.if_then_else(j < 2, x[i, j, k], T.float32(7))";
    check(DType::F32, &[4, 2, 5], &[4, 3, 5], rows);
    let blocks = "
for i, j, k in T.grid(2, 20, 5):
    y[i, j, k] = T.if_then_else(5 * i + k < 7, x[5 * i + k, j], T.float32(7))";
    check(DType::F32, &[7, 20], &[2, 20, 5], blocks);
    let within = "
for i, j, k in T.grid(4, 20, 3):
    y[i, j, k] = T.if_then_else(k < 2, x[i, j, k], T.float32(7))";
    check(DType::F32, &[4, 20, 2], &[4, 20, 3], within);
}
