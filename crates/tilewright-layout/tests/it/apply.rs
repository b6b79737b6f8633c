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

/// A tensor all of whose elements differ in their low bytes.
fn numbered(dtype: DType, shape: &[usize]) -> Tensor {
    let count = shape.iter().product::<usize>() as u64;
    let bytes = (0..count).flat_map(|k| (1000 + k).to_le_bytes()[..dtype.bytes()].to_vec());
    Tensor::from_bytes(dtype, shape, &bytes.collect::<Vec<u8>>()).expect("a tensor")
}

/// What a conversion makes of a tensor; what is not moved directly is an error.
fn moved(f: &TensorFunc, x: &Tensor) -> Tensor {
    let mut refuse = |_: &TensorFunc, _: &[Tensor]| Err(Error::internal("it is run"));
    let made = moving_directly(&mut refuse)(f, std::slice::from_ref(x));
    let made = made.unwrap_or_else(|e| panic!("{:?}: {}", x.shape(), e.render()));
    made.into_iter().next().expect("a result")
}

/// Moves elements, and compares with the interpreter.
fn check(dtype: DType, from: &[usize], to: &[usize], body: &str) {
    check_chain(dtype, &[from, to], &[body]);
}

/// The same for conversions one after the other.
fn check_chain(dtype: DType, shapes: &[&[usize]], bodies: &[&str]) {
    let x = numbered(dtype, shapes[0]);
    let (mut all, mut each) = (x.clone(), x);
    for (shapes, body) in shapes.windows(2).zip(bodies) {
        let f = func(dtype, shapes[0], shapes[1], body);
        all = moved(&f, &all);
        each = interpret(&f, &[each]).expect("it runs").remove(0);
    }
    assert!(all.same(&each), "{shapes:?}");
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

#[test]
fn several_conversions_move_once() {
    let pack = "
for o, i, h, w, k in T.grid(5, 65, 3, 3, 16):
    y[o, i, h, w, k] = T.if_then_else(16 * o + k < 65, x[16 * o + k, i, h, w], T.float32(PAD))";
    // Tiles of 16 become tiles of 8, behind the others.
    let again = "
for i, h, w, o, k in T.grid(65, 3, 3, 9, 8):
    y[i, h, w, o, k] = x[o // 2, i, h, w, o % 2 * 8 + k]";
    let pad = "
for i, h, w, o, k in T.grid(66, 3, 3, 9, 8):
    y[i, h, w, o, k] = T.if_then_else(i < 65, x[i, h, w, o, k], T.float32(PAD))";
    let crop = "
for i, h, w, j in T.grid(65, 3, 3, 65):
    y[i, h, w, j] = x[i, h, w, j // 8, j % 8]";
    let shapes: [&[usize]; 5] = [
        &[65, 65, 3, 3],
        &[5, 65, 3, 3, 16],
        &[65, 3, 3, 9, 8],
        &[66, 3, 3, 9, 8],
        &[65, 3, 3, 65],
    ];
    // Paddings of one value, and of two.
    let (zero, seven) = (pack.replace("PAD", "0"), pack.replace("PAD", "7"));
    for last in [pad.replace("PAD", "0"), pad.replace("PAD", "7")] {
        for first in [&zero, &seven] {
            check_chain(DType::F32, &shapes[..3], &[first, again]);
            check_chain(DType::F32, &shapes[..4], &[first, again, &last]);
        }
    }
    // By itself, the last one is not affine.
    check_chain(DType::F32, &shapes, &[&zero, again, &pad.replace("PAD", "0"), crop]);
    let x = numbered(DType::F32, shapes[0]);
    let first = moved(&func(DType::F32, shapes[0], shapes[1], &zero), &x);
    let both = moved(&func(DType::F32, shapes[1], shapes[2], again), &first);
    let bytes = both.bytes().len();
    // The second one took the elements from `x`: the first one is not made.
    assert!(first.origin().is_some() && both.origin().is_none() && bytes == both.byte_len());
}

#[test]
fn axes_in_every_order() {
    let (names, extents) = (["a", "b", "c", "d"], [19usize, 10, 3, 4]);
    let orders = (0..256).map(|k| [k / 64, k / 16 % 4, k / 4 % 4, k % 4]);
    let orders = orders.filter(|order| (0..4).all(|axis| order.contains(&axis)));
    for order in orders {
        let list = |text: &dyn Fn(usize) -> String| order.map(text).join(", ");
        let to = order.map(|k| extents[k]);
        let grid = format!(
            "for {} in T.grid({}):",
            list(&|k| names[k].into()),
            list(&|k| extents[k].to_string())
        );
        let permuted = format!("{grid}\n    y[{}] = x[a, b, c, d]", list(&|k| names[k].into()));
        check(DType::F32, &extents, &to, &permuted);
        // The first axis in tiles of 8, whose last one has padding, with the place in a tile as the last axis.
        let tiled = order.map(|k| if k == 0 { 3 } else { extents[k] });
        let grid = format!(
            "for {}, e in T.grid({}, 8):",
            list(&|k| names[k].into()),
            list(&|k| if k == 0 { "3".into() } else { extents[k].to_string() })
        );
        let body = format!(
            "{grid}\n    y[{}, e] = T.if_then_else(8 * a + e < 19, x[8 * a + e, b, c, d], T.float32(7))",
            list(&|k| names[k].into())
        );
        check(DType::F32, &extents, &[&tiled[..], &[8]].concat(), &body);
    }
}
