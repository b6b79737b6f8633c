//! Layouts carried through reshapes and transposes: every cell keeps its place in memory.

use tilewright_graph::fold::interpret;
use tilewright_graph::view::relabels;
use tilewright_ir::{DType, Dim, Expr, Tensor, TensorFunc, dim, random};
use tilewright_layout::TiledLayout;
use tilewright_layout::conversion::Conversion;
use tilewright_layout::regroup::Regrouping;
use tilewright_layout::tiled::Split;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        (random::bits(&mut self.0) % n as u64) as usize
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for k in (1..list.len()).rev() {
            list.swap(k, self.below(k + 1));
        }
    }

    /// Neighbours of a list as one, at random.
    fn grouped(&mut self, digits: &[usize]) -> Vec<Dim> {
        let mut shape: Vec<usize> = Vec::new();
        for digit in digits {
            match shape.last_mut().filter(|_| self.below(2) == 0) {
                Some(last) => *last *= digit,
                None => shape.push(*digit),
            }
        }
        dim::shape(&shape)
    }

    fn layout(&mut self, shape: &[Dim], pads: bool) -> TiledLayout {
        let split = |n: &Dim, r: &mut Random| {
            let size = n.known().unwrap_or_default();
            let block = 2 + r.below(4);
            match r.below(2) == 0 && (pads || size.is_multiple_of(block)) {
                true => Split::blocks(*n, block as i64),
                false => Split::plain(*n),
            }
        };
        let splits: Vec<Split> = shape.iter().map(|n| split(n, self)).collect();
        let digits = splits.iter().enumerate();
        let mut order: Vec<(usize, usize)> =
            digits.flat_map(|(d, s)| (0..s.digits.len()).map(move |k| (d, k))).collect();
        self.shuffle(&mut order);
        TiledLayout { logical: shape.to_vec(), splits, order }
    }
}

fn run(func: &TensorFunc, x: &Tensor) -> Tensor {
    let mut made = interpret(func, std::slice::from_ref(x)).expect("the function runs");
    made.remove(0)
}

/// What a tensor holds in memory in a layout, -1 in the padding.
fn stored(layout: &TiledLayout, x: &Tensor) -> Vec<u8> {
    let pad = Expr::constant(-1.0, DType::F32);
    run(&layout.pack(DType::F32, Some(&pad)), x).bytes().to_vec()
}

#[test]
fn carried_layouts_are_the_same_memory() {
    let (mut r, mut carried, mut refused) = (Random(35), 0, 0);
    for _ in 0..400 {
        let digits: Vec<usize> = (0..1 + r.below(4)).map(|_| 1 + r.below(6)).collect();
        let from = r.grouped(&digits);
        let regrouping = match r.below(3) {
            0 => Regrouping::of_shapes(&from, &r.grouped(&digits)),
            way => {
                let packed = r.layout(&from, false).pack(DType::F32, None);
                let there =
                    Conversion::recognise(&packed).and_then(|c| Regrouping::of_conversion(&c));
                if way == 1 { there } else { there.map(Regrouping::inverse) }
            }
        };
        // Conversions of axes of one index are not always recognised.
        let Some(regrouping) = regrouping else { continue };
        let shape = dim::known(regrouping.from()).expect("known sizes");
        let cells: Vec<f32> = (0..shape.iter().product()).map(|k: usize| k as f32).collect();
        let x = Tensor::from_slice(&shape, &cells).expect("a tensor");
        let y = run(&regrouping.func("regroup", DType::F32), &x);
        let layout = r.layout(regrouping.from(), true);
        let Some(to) = regrouping.carry(&layout) else {
            refused += 1;
            continue;
        };
        carried += 1;
        assert_eq!(stored(&layout, &x), stored(&to, &y), "{regrouping:?}: {layout} as {to}");
        // And back: the same memory again.
        let back = regrouping.clone().inverse().carry(&to).expect("the way back");
        assert_eq!(stored(&back, &x), stored(&to, &y), "{regrouping:?}: {to} as {back}");
    }
    assert!(carried > 100 && refused > 20, "{carried} carried, {refused} refused");
}

#[test]
fn rows_without_common_digits_are_not_regrouped() {
    let [a, b] = [[4, 6], [6, 4]].map(|shape| dim::shape(&shape));
    assert_eq!(Regrouping::of_shapes(&a, &b), None);
    let [a, b] = [[4, 9], [12, 3]].map(|shape| dim::shape(&shape));
    let there = Regrouping::of_shapes(&a, &b).expect("digits 4, 3, 3");
    assert!(relabels(&there.func("regroup", DType::F32)));
}

/// Heads of open rows: `[t, h * d]` whose heads come first is `[h, t, d]` as it is.
#[test]
fn heads_are_an_order_of_digits() {
    let t = Dim::open(&tilewright_ir::Var::index("t"));
    let (from, to) = (vec![t, Dim::from(320)], vec![t, Dim::from(5), Dim::from(64)]);
    let split = Regrouping::of_shapes(&from, &to).expect("digits t, 5, 64");
    let heads = TiledLayout { order: vec![(1, 0), (0, 0), (2, 0)], ..TiledLayout::identity(&to) };
    let rows = split.inverse().carry(&heads).expect("an order of digits");
    assert_eq!(rows.to_string(), "lambda i0, i1: [i1 // 64, i0, i1 % 64]");
}
