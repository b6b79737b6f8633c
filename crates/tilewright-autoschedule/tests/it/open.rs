//! Contractions and reductions of open sizes: every operator and element type gets the loops that fixed sizes
//! get, and the same results at sizes around those of tiles.

use tilewright_autoschedule::{TileCheck, UNTILED, contractions, others};
use tilewright_interp::run_module;
use tilewright_ir::control::NEEDS_ELEMENTS;
use tilewright_ir::index::Affine;
use tilewright_ir::visit::{Subst, Visit, walk_stmt};
use tilewright_ir::{
    Attr, BinOp, DType, Dim, Expr, ExprKind, Fold, ForKind, Module, Remarks, Stmt, StmtKind,
    Tensor, TensorFunc, Var,
};
use tilewright_ops::Operand;
use tilewright_ops::contraction::{Conv, conv, matmul};
use tilewright_ops::movement::{DepthOrder, depth_to_space, transpose};
use tilewright_ops::pad::{PadMode, pad};
use tilewright_ops::pool::{Pool, average_pool, max_pool};
use tilewright_ops::reduce::{Reduction, reduce};
use tilewright_target::Target;
use tilewright_transform::lower;
use tilewright_transform::lower::bounds;
use tilewright_transform::products::with_products_as_sizes;

use crate::reductions::{targets, text};

/// Small whole numbers for the arguments of a function at a size, in an order without a period.
fn inputs(func: &TensorFunc, size: i64) -> Vec<Tensor> {
    let mut seed = 7u64;
    let sizes = func.sizes().into_iter().map(|v| (v.clone(), Expr::int(size, v.dtype())));
    let mut fill = Subst::vars(sizes);
    let mut buffers: Vec<_> = func.buffers().cloned().collect();
    buffers.pop();
    let all = buffers.iter().map(|b| {
        let extent =
            |d: &Expr| Dim::from_expr(&fill.expr(d)).and_then(Dim::known).expect("an extent");
        let shape: Vec<usize> = b.shape.iter().map(extent).collect();
        let mut next = |_| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as i64 % 5 - 2
        };
        let values: Vec<i64> = (0..shape.iter().product()).map(&mut next).collect();
        let doubles: Vec<f64> = values.iter().map(|v| *v as f64).collect();
        let floats: Vec<f32> = values.iter().map(|v| *v as f32).collect();
        let bytes = values.iter().flat_map(|v| half(*v).to_le_bytes());
        match b.dtype() {
            DType::F64 => Tensor::from_slice(&shape, &doubles),
            DType::F32 => Tensor::from_slice(&shape, &floats),
            dtype => Tensor::from_bytes(dtype, &shape, &bytes.collect::<Vec<u8>>()),
        }
        .expect("a tensor")
    });
    all.collect()
}

/// The bits of a small whole number in 16-bit floats.
fn half(value: i64) -> u16 {
    let size = match value.abs() {
        0 => 0,
        1 => 0x3c00,
        _ => 0x4000,
    };
    if value < 0 { size | 0x8000 } else { size }
}

fn run(func: &TensorFunc, inputs: &[Tensor]) -> Tensor {
    let mut module = Module::new();
    module.insert("main", func.clone());
    let mut out = run_module(&module, "main", inputs).unwrap_or_else(|e| panic!("{}", e.render()));
    out.swap_remove(0)
}

/// A function as the pipeline schedules it; every contraction has tiles.
fn scheduled(what: &str, func: &TensorFunc, target: &Target) -> TensorFunc {
    let mut func = func.clone();
    func.attrs.insert(NEEDS_ELEMENTS.into(), Attr::Int(1));
    let mut module = Module::new();
    module.insert("main", func);
    let mut why = Remarks::new();
    let (tiled, _) = contractions(&module, target, TileCheck::Lower, &mut why).expect("a schedule");
    let tiled = tiled.tensor("main").expect("a function");
    let made = others(tiled, target, &mut why).expect("a schedule");
    // A refused tile is followed by the next.
    assert!(!made.attrs.contains_key(UNTILED), "{what}");
    made
}

/// Counts the products that are added up in vectors.
#[derive(Default)]
struct Products {
    /// How many loops over lanes are around, which code generation makes vectors of.
    lanes: usize,
    vectors: usize,
}

impl Visit for Products {
    fn stmt(&mut self, s: &Stmt) {
        if let StmtKind::Store { value, .. } = s.kind()
            && let ExprKind::Binary(BinOp::Add, _, product) = value.kind()
            && product.any(|e| {
                matches!(e.kind(), ExprKind::Binary(BinOp::Mul, a, b)
                if e.dtype().is_float() && [a, b].iter().all(|x| x.loads_from(|_| true)))
            })
        {
            match (value.dtype().lanes, self.lanes) {
                (1, 0) => {}
                _ => self.vectors += 1,
            }
        }
        let lane = matches!(s.kind(), StmtKind::For { kind: ForKind::Vectorized, .. });
        self.lanes += usize::from(lane);
        walk_stmt(self, s);
        self.lanes -= usize::from(lane);
    }
}

/// Counts the loops over lanes that have no vector form: of constant extent, with a condition for each lane.
#[derive(Default)]
struct Singles(usize);

impl Visit for Singles {
    fn stmt(&mut self, s: &Stmt) {
        if let StmtKind::For { var, range, kind: ForKind::Serial, body, .. } = s.kind()
            && range.extent.as_int().is_some_and(|n| n > 1)
            && let StmtKind::If { cond, .. } = body.kind()
        {
            self.0 += usize::from(cond.mentions(var));
        }
        walk_stmt(self, s);
    }
}

/// Checks as [`check`] does, and that a machine with masks runs no lane by itself and asks for no index.
fn check_vectors(what: &str, func: &TensorFunc, sizes: &[i64]) {
    check(what, func, false, sizes);
    let made = scheduled(what, func, &targets()[0]);
    let lowered = lower(&made).expect("lowers");
    let mut singles = Singles::default();
    singles.stmt(&lowered.body);
    assert_eq!((singles.0, bounds::count(&lowered)), (0, 0), "{what}");
    let mut lanes = false;
    lowered.body.for_each(|s| {
        if let StmtKind::Store { value, .. } = s.kind() {
            lanes |= value.dtype().lanes > 1;
        }
    });
    assert!(lanes, "{what} has no vectors");
}

/// Schedules a function for every machine, and runs it at sizes; its products are vectors where they are
/// `tiled`.
fn check(what: &str, func: &TensorFunc, tiled: bool, sizes: &[i64]) {
    for target in &targets() {
        let made = scheduled(what, func, target);
        let lowered = lower(&made).expect("lowers");
        let mut products = Products::default();
        products.stmt(&lowered.body);
        assert!(products.vectors > 0 || !tiled, "{what} for {}: no vectors", target.cpu);
        for size in sizes {
            let inputs = inputs(func, *size);
            let (found, expected) = (run(&lowered, &inputs), run(func, &inputs));
            assert_eq!(found.shape(), expected.shape(), "{what} at {size}");
            for i in 0..found.len() {
                let (x, y) = (found.get_f64(i), expected.get_f64(i));
                let near = (x - y).abs() <= 1e-6 * (1.0 + y.abs());
                assert!(near, "{what} for {} at {size}: element {i} is {x}, not {y}", target.cpu);
            }
        }
    }
}

/// An open size, or a number in its place.
fn size(name: &str, open: bool) -> Dim {
    if open { Dim::open(&Var::index(name)) } else { Dim::from(21) }
}

const SIZES: [i64; 6] = [1, 2, 5, 8, 16, 21];

#[test]
fn products_of_every_type_have_tiles() {
    for dtype in [DType::F32, DType::F64, DType::F16] {
        // Columns of whole vectors, of one column more, and fewer than a vector's and a half.
        for columns in [48usize, 33, 23] {
            for open in [false, true] {
                let n = size("n", open);
                let a = Operand::new(&[n, 9.into()], dtype);
                let b = Operand::new(&[Dim::from(9), columns.into()], dtype);
                let f = matmul(&a, &b).expect("a product");
                let sizes = if open { &SIZES[..] } else { &[21] };
                check(&format!("{dtype} {n} x 9 x {columns}"), &f, true, sizes);
            }
        }
    }
}

#[test]
fn products_of_open_reductions_and_columns_have_tiles() {
    let (n, m) = (size("n", true), size("m", true));
    for (k, columns) in [(n, Dim::from(40)), (Dim::from(24), n)] {
        let a = Operand::f32(&[2.into(), m, k]);
        let b = Operand::f32(&[Dim::from(2), k, columns]);
        let f = matmul(&a, &b).expect("a product");
        check(&format!("{m} x {k} x {columns}"), &f, true, &SIZES);
    }
}

#[test]
fn products_of_inputs_without_a_batch_have_tiles() {
    let (n, m) = (size("n", true), size("m", true));
    // Columns that no tile divides, and open ones.
    for (k, columns) in [(n, Dim::from(37)), (Dim::from(24), n)] {
        let f = matmul(&Operand::f32(&[m, k]), &Operand::f32(&[k, columns])).expect("a product");
        let what = format!("{m} x {k} x {columns}");
        check(&what, &f, true, &[1, 3, 15, 16, 17, 33, 48]);
        let lowered = lower(&scheduled(&what, &f, &targets()[0])).expect("lowers");
        let mut masked = Masked::default();
        masked.stmt(&lowered.body);
        assert_eq!(masked.found, 0, "{what}: lanes of sums are left out");
    }
}

/// Counts the products that are added up under a condition for each lane.
#[derive(Default)]
struct Masked {
    found: usize,
}

impl Visit for Masked {
    fn stmt(&mut self, s: &Stmt) {
        if let StmtKind::If { cond, .. } = s.kind()
            && cond.dtype().lanes > 1
        {
            let mut products = Products::default();
            products.stmt(s);
            self.found += products.vectors;
        }
        walk_stmt(self, s);
    }
}

#[test]
fn products_of_rows_of_several_open_axes_have_tiles() {
    let [a, b, c] = ["a", "b", "c"].map(|name| size(name, true));
    let x = Operand::f32(&[a, b, c, 9.into()]);
    let w = Operand::f32(&[Dim::from(9), 40.into()]);
    check("rows of three axes", &matmul(&x, &w).expect("a product"), true, &[1, 2, 3]);
    for axes in [&[3][..], &[0, 1, 2]] {
        let f = reduce(Reduction::Sum, &x, axes, false).expect("a reduction");
        check(&format!("sums over {axes:?} of rows"), &f, false, &[1, 2, 3]);
    }
}

#[test]
fn what_a_multiple_of_an_open_size_is_in_range_of_is_not_asked_again() {
    let n = size("n", true);
    let x = Operand::f32(&[n * Dim::from(55), 9.into()]);
    let rows = matmul(&x, &Operand::f32(&[Dim::from(9), 16.into()])).expect("a product");
    // The padded image is larger than the image.
    let image = Operand::f32(&[n, 64.into(), 56.into(), 56.into()]);
    let mut c = Conv::new(image, Operand::f32(&[Dim::from(64), 64.into(), 3.into(), 3.into()]));
    (c.pads_begin, c.pads_end) = (vec![1; 2], vec![1; 2]);
    let image = conv(&c).expect("a convolution");
    for (what, func) in [("rows", rows), ("an image", image)] {
        let made = scheduled(what, &func, &targets()[0]);
        assert_eq!(bounds::count(&lower(&made).expect("lowers")), 0, "{what}");
    }
}

#[test]
fn what_stands_for_a_size_is_as_large_in_prices() {
    let h = size("h", true);
    let quarter = h.floordiv(Dim::from(4));
    let q = Dim::open(&Var::standing_for("q", DType::I32, quarter));
    assert_eq!((h.estimate(), quarter.estimate(), q.estimate()), (240, 60, 60));
    assert_eq!((q * q).estimate(), 3600);
}

#[test]
fn multiples_of_products_of_sizes_have_whole_tiles() {
    // All pixels of 32 channels, as one axis.
    let pixels = size("h", true) * size("w", true) * Dim::from(32);
    let x = Operand::f32(&[size("b", true), pixels]);
    let func = reduce(Reduction::Mean, &x, &[0], false).expect("a reduction");
    for target in &targets() {
        let made = with_products_as_sizes(&func, |f| Ok(scheduled("pixels", f, target)));
        let lowered = lower(&made.expect("a schedule")).expect("lowers");
        let mut singles = Singles::default();
        singles.stmt(&lowered.body);
        assert_eq!((singles.0, bounds::count(&lowered)), (0, 0), "for {}", target.cpu);
    }
}

#[test]
fn images_that_were_halved_are_in_range_as_others_are() {
    // What is known of `(h + 3) // 4` beside `(h + 1) // 2` is that it is half of it.
    let half = |name| (size(name, true) + Dim::from(1)).floordiv(Dim::from(2));
    let image = Operand::f32(&[size("b", true), 12.into(), half("h"), half("w")]);
    let mut c = Conv::new(image, Operand::f32(&[Dim::from(12), 1.into(), 3.into(), 3.into()]));
    (c.groups, c.strides) = (12, vec![2; 2]);
    (c.pads_begin, c.pads_end) = (vec![1; 2], vec![1; 2]);
    let func = conv(&c).expect("a convolution");
    for target in &targets() {
        let made = with_products_as_sizes(&func, |f| Ok(scheduled("an image", f, target)));
        let lowered = lower(&made.expect("a schedule")).expect("lowers");
        assert_eq!(bounds::count(&lowered), 0, "for {}", target.cpu);
    }
}

#[test]
fn convolutions_of_open_images_have_vectors() {
    // Channels in and out, groups, window, stride, dilation.
    let cases = [
        (9, 33, 1, 3, 1, 1),
        (7, 40, 1, 1, 1, 1),
        (16, 17, 1, 3, 2, 1),
        (6, 20, 1, 5, 1, 2),
        (12, 12, 12, 3, 1, 1),
        (12, 12, 12, 5, 2, 1),
        (12, 12, 12, 3, 1, 2),
        (12, 12, 12, 3, 1, 3),
        (12, 36, 2, 3, 1, 1),
    ];
    for (from, to, groups, window, stride, dilation) in cases {
        let image = [size("b", true), from.into(), size("h", true), size("w", true)];
        let weight = [to, from / groups, window, window];
        let mut c = Conv::new(Operand::f32(&image), Operand::f32(&weight));
        c.groups = groups;
        c.strides = vec![stride; 2];
        c.dilations = vec![dilation; 2];
        c.pads_begin = vec![window / 2 * dilation; 2];
        c.pads_end = c.pads_begin.clone();
        let f = conv(&c).expect("a convolution");
        let what = format!("{from} to {to} in {groups}, window {window}, {stride}, {dilation}");
        check(&what, &f, false, &[1, 2, 9]);
    }
}

/// Vectors of 17 channels would be half empty.
#[test]
fn few_channels_leave_vectors_to_the_side_of_an_image() {
    for window in [3, 1] {
        let image = [Dim::from(1), 8.into(), size("h", true), size("w", true)];
        let mut c = Conv::new(Operand::f32(&image), Operand::f32(&[17, 8, window, window]));
        (c.pads_begin, c.pads_end) = (vec![window / 2; 2], vec![window / 2; 2]);
        let f = conv(&c).expect("a convolution");
        let what = format!("8 to 17, window {window}");
        check(&what, &f, true, &[1, 9, 17, 33]);
        let lowered = lower(&scheduled(&what, &f, &targets()[0])).expect("lowers");
        let (mut vectors, mut others) = (0, 0);
        lowered.body.for_each(|s| {
            if let StmtKind::Store { buffer, value, .. } = s.kind()
                && f.buffers().any(|b| b.data == buffer.data)
            {
                *(if value.dtype().lanes > 1 { &mut vectors } else { &mut others }) += 1;
            }
        });
        assert!(vectors > 0 && others == 0, "{what}: {vectors} stores of vectors, {others} others");
    }
}

/// A convolution of 64 channels, which come last, of small images.
fn channels_last(stride: usize) -> TensorFunc {
    let [to_height, to_width] = ["h", "w"].map(|n| format!("(({n} + {stride} - 1) // {stride})"));
    text(&format!(
        "def f(x: T.handle, W: T.Buffer((3, 3, 64, 64), 'float32'), o: T.handle):\n    \
             T.func_attr({{'tir_var_upper_bound': {{'n': 2, 'h': 9, 'w': 9}}}})\n    \
             n, h, w = T.int32(), T.int32(), T.int32()\n    \
             X = T.match_buffer(x, (n, h, w, 64), 'float32')\n    \
             O = T.match_buffer(o, (n, {to_height}, {to_width}, 64), 'float32')\n    \
             P = T.alloc_buffer((n, h + 2, w + 2, 64), 'float32')\n    \
             for n_, h_, w_, c in T.grid(n, h + 2, w + 2, 64):\n        \
                 with T.block('pad'):\n            \
                     vn, vh, vw, vc = T.axis.remap('SSSS', [n_, h_, w_, c])\n            \
                     P[vn, vh, vw, vc] = T.if_then_else(vh >= 1 and vh < h + 1 and vw >= 1 and vw < w + 1, X[vn, vh - 1, vw - 1, vc], T.float32(0))\n    \
             for n_, h_, w_, k, c, kh, kw in T.grid(n, {to_height}, {to_width}, 64, 64, 3, 3):\n        \
                 with T.block('conv'):\n            \
                     vn, vh, vw, vk, vc, vkh, vkw = T.axis.remap('SSSSRRR', [n_, h_, w_, k, c, kh, kw])\n            \
                     with T.init():\n                O[vn, vh, vw, vk] = T.float32(0)\n            \
                     O[vn, vh, vw, vk] = O[vn, vh, vw, vk] + P[vn, vh * {stride} + vkh, vw * {stride} + vkw, vc] * W[vkh, vkw, vc, vk]\n"
    ))
}

#[test]
fn tiles_of_windows_go_on_where_a_row_of_an_open_image_ends() {
    for stride in [1, 2] {
        let func = channels_last(stride);
        for target in &targets() {
            let what = format!("stride {stride} for {}", target.cpu);
            let made = with_products_as_sizes(&func, |f| Ok(scheduled(&what, f, target)));
            let made = made.expect("a schedule");
            // The sums are those of a number of pixels.
            let (allocs, _) = made.root_parts();
            let mut extents = allocs.iter().flat_map(|b| &b.shape).filter_map(Dim::from_expr);
            assert!(extents.any(|n| n.known().is_none() && n.products() == [n]), "{what}");
            let lowered = lower(&made).expect("lowers");
            assert_eq!(bounds::count(&lowered), 0, "{what}");
            for size in [1, 2] {
                let given = inputs(&func, size);
                let (found, expected) = (run(&lowered, &given), run(&func, &given));
                // Sums of small whole numbers have no rounding.
                assert_eq!(found.bytes(), expected.bytes(), "{what} at {size}");
            }
        }
    }
}

#[test]
fn reductions_over_open_axes_have_vectors() {
    let shape = [size("b", true), 5.into(), size("h", true), size("w", true)];
    let x = Operand::f32(&shape);
    for axes in [&[3][..], &[2, 3], &[0, 2, 3], &[1], &[2], &[0]] {
        for op in [Reduction::Sum, Reduction::Max, Reduction::Mean] {
            let f = reduce(op, &x, axes, false).expect("a reduction");
            check(&format!("{op:?} over {axes:?}"), &f, false, &[1, 3, 8, 21]);
        }
    }
}

#[test]
fn windows_of_open_images_have_vectors() {
    let x = || Operand::f32(&[size("b", true), 3.into(), size("h", true), size("w", true)]);
    for (window, stride, border) in [(3, 1, 1), (3, 2, 1), (2, 2, 0), (2, 1, 0)] {
        let mut p = Pool::new(x(), &[window; 2]);
        p.strides = vec![stride; 2];
        p.pads_begin = vec![border; 2];
        p.pads_end = vec![border; 2];
        let what = format!("window {window}, stride {stride}, {border} beside");
        let sizes = [5, 19];
        check_vectors(&format!("maxima, {what}"), &max_pool(&p).expect("a pool"), &sizes);
        let f = average_pool(&p, true).expect("a pool");
        check_vectors(&format!("averages, {what}"), &f, &sizes);
    }
}

#[test]
fn windows_of_open_images_are_read_from_the_image() {
    let image = || Operand::f32(&[size("b", true), 2.into(), size("h", true), size("w", true)]);
    let [mut depthwise, mut wide] = [3usize, 7].map(|k| {
        let mut c = Conv::new(image(), Operand::f32(&[Dim::from(2), 1.into(), k.into(), k.into()]));
        (c.groups, c.pads_begin, c.pads_end) = (2, vec![k / 2; 2], vec![k / 2; 2]);
        c
    });
    let mut pool = Pool::new(image(), &[3; 2]);
    (pool.pads_begin, pool.pads_end) = (vec![1; 2], vec![0, 1]);
    // What is beside the image takes memory only where many vectors are read, or cells that are apart.
    let in_place = |what: &str, f: TensorFunc, wanted: bool| {
        check_vectors(what, &f, &[1, 4, 18]);
        let lowered = lower(&scheduled(what, &f, &targets()[0])).expect("lowers");
        assert_eq!(lowered.scratch_count() == 0, wanted, "{what}");
    };
    in_place("a maximum", max_pool(&pool).expect("a pool"), true);
    in_place("a depthwise convolution", conv(&depthwise).expect("a convolution"), true);
    in_place("a wide window", conv(&wide).expect("a convolution"), false);
    (depthwise.strides, wide.strides) = (vec![2; 2], vec![2, 1]);
    in_place("a depthwise convolution by twos", conv(&depthwise).expect("a convolution"), false);
    in_place("a wide window by twos", conv(&wide).expect("a convolution"), false);
}

#[test]
fn windows_of_many_steps_add_up_many_sums_at_a_time() {
    let target = &targets()[0];
    let sums = 8 * target.vectors.lanes(4);
    for (window, dilation) in [(7usize, 1), (5, 2)] {
        let image = Operand::f32(&[size("b", true), 3.into(), size("h", true), size("w", true)]);
        let weight = Operand::f32(&[3, 1, window, window].map(Dim::from));
        let mut c = Conv::new(image, weight);
        let pad = dilation * (window / 2);
        (c.groups, c.pads_begin, c.pads_end) = (3, vec![pad; 2], vec![pad; 2]);
        c.dilations = vec![dilation; 2];
        let (what, f) = (format!("{window} by {dilation}"), conv(&c).expect("a convolution"));
        check_vectors(&what, &f, &[1, 7, 18]);
        let mut most = 0;
        lower(&scheduled(&what, &f, target)).expect("lowers").body.for_each(|s| {
            if let StmtKind::Allocate { buffer, .. } = s.kind()
                && &*buffer.scope == "local"
                && let Some(shape) = buffer.const_shape()
            {
                most = most.max(shape.iter().product());
            }
        });
        assert!(most >= sums, "{what}: {most} sums, each of which waits for itself");
    }
}

#[test]
fn moves_of_open_tensors_have_vectors() {
    // A batch is usually small, and may be large.
    let batch = Var::usually("b", DType::I32, Var::index("b").range(), 2);
    let x = Operand::f32(&[Dim::open(&batch), 20.into(), size("h", true), size("w", true)]);
    let sizes = [1, 3, 16, 21];
    for order in [[0, 2, 3, 1], [0, 1, 3, 2], [3, 1, 2, 0]] {
        let f = transpose(&x, &order).expect("a transpose");
        check_vectors(&format!("transpose {order:?}"), &f, &sizes);
    }
    for order in [DepthOrder::Dcr, DepthOrder::Crd] {
        check("blocks", &depth_to_space(&x, 2, order).expect("a move"), false, &sizes);
    }
    let (before, after) = ([0, 0, 2, 3], [0, 0, 1, 2]);
    let f = pad(&x, &before, &after, PadMode::Constant(0.0.into())).expect("a pad");
    check_vectors("pad", &f, &sizes);
    // Also of images that are smaller than what is put beside them.
    for mode in [PadMode::Edge, PadMode::Reflect, PadMode::Wrap] {
        let f = pad(&x, &before, &after, mode).expect("a pad");
        check(&format!("pad {mode:?}"), &f, false, &sizes);
        let lowered = lower(&scheduled("pad", &f, &targets()[0])).expect("lowers");
        assert_eq!((copies_rows(&lowered), bounds::count(&lowered)), (true, 0), "pad {mode:?}");
    }
}

/// Whether a loop copies neighbours, as many as there are: what moves through it does so one by one.
fn copies_rows(func: &TensorFunc) -> bool {
    let mut found = false;
    func.body.for_each(|s| {
        if let StmtKind::For { var, range, body, .. } = s.kind()
            && range.extent.as_int().is_none()
            && let StmtKind::Store { value, .. } = body.kind()
            && let ExprKind::Load(_, at) = value.kind()
        {
            let step = |i: &Expr| Affine::from_expr(i).and_then(|i| i.coefficient(var));
            found |= at.iter().all(|i| step(i) == Some(1));
        }
    });
    found
}

/// Counts the reductions of one input, in vectors: under a condition for each lane, and without.
#[derive(Default)]
struct Updates {
    /// How many conditions on lanes are around.
    masks: usize,
    masked: usize,
    whole: usize,
    /// The most lanes of one.
    lanes: usize,
}

impl Visit for Updates {
    fn stmt(&mut self, s: &Stmt) {
        match s.kind() {
            StmtKind::If { cond, .. } if cond.dtype().lanes > 1 => {
                self.masks += 1;
                walk_stmt(self, s);
                self.masks -= 1;
            }
            StmtKind::Store { value, .. }
                if matches!(value.kind(), ExprKind::Binary(BinOp::Max, ..)) =>
            {
                *(if self.masks > 0 { &mut self.masked } else { &mut self.whole }) += 1;
                self.lanes = self.lanes.max(value.dtype().lanes as usize);
            }
            _ => walk_stmt(self, s),
        }
    }
}

#[test]
fn columns_behind_whole_tiles_have_a_version_for_each_number_of_vectors() {
    let (n, m) = (size("n", true), size("m", true));
    let f = reduce(Reduction::Max, &Operand::f32(&[3.into(), n, m]), &[1], false);
    let f = f.expect("a reduction");
    check("a maximum of rows", &f, false, &[1, 15, 16, 17, 32, 49, 64, 70, 100]);
    let lowered = lower(&scheduled("a maximum of rows", &f, &targets()[0])).expect("lowers");
    let mut updates = Updates::default();
    updates.stmt(&lowered.body);
    // Tiles of eight vectors and of four, and versions of one to four, of which the last one alone leaves out lanes.
    assert_eq!((updates.whole, updates.masked), (2 + 3, 4));
    assert_eq!(updates.lanes, 16);
}

/// The extents of the unrolled loops of a function.
fn unrolled(func: &TensorFunc) -> Vec<i64> {
    let mut found = Vec::new();
    func.body.for_each(|s| {
        if let StmtKind::For { range, kind: ForKind::Unrolled, .. } = s.kind() {
            found.extend(range.extent.as_int());
        }
    });
    found
}

#[test]
fn rows_of_two_vectors_leave_registers_for_their_values() {
    let f = matmul(&Operand::f32(&[1024, 64]), &Operand::f32(&[64, 24])).expect("a product");
    let made = unrolled(&scheduled("1024 x 64 x 24", &f, &targets()[0]));
    assert!(made.contains(&2) && made.iter().all(|n| *n <= 10), "{made:?}");
}

#[test]
fn columns_of_more_than_half_a_vector_are_padded_to_one() {
    for columns in [9usize, 12, 15] {
        let f = matmul(&Operand::f32(&[70, 40]), &Operand::f32(&[40, columns])).expect("a product");
        let what = format!("70 x 40 x {columns}");
        check(&what, &f, true, &[1]);
        let made = unrolled(&scheduled(&what, &f, &targets()[0]));
        assert!(made.iter().any(|n| *n >= 8), "{what}: no rows in a tile: {made:?}");
    }
}
