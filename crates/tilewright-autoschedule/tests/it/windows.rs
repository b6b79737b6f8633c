//! Windows over padded images against the interpreter: no copy of the image is made.

use tilewright_ir::{BinOp, ExprKind, ForKind, StmtKind, TensorFunc, Visit, visit};
use tilewright_transform::lower;

use crate::reductions::{auto, check, targets, text};

/// A window along one axis: its steps, by how much it moves, the distance of its steps, what is padded before
/// and after.
#[derive(Clone, Copy)]
struct Along(i64, i64, i64, [i64; 2]);

impl Along {
    fn results(&self, size: i64) -> i64 {
        let Along(steps, stride, dilation, pads) = self;
        (size + pads[0] + pads[1] - (steps - 1) * dilation - 1) / stride + 1
    }
}

/// What is done with a window.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Max,
    Sum,
    /// A sum of products with weights of each channel.
    Weighted,
}

/// A function that pads an image and reduces windows of it, with its channels `last` or first.
fn windows([c, h, w]: [i64; 3], last: bool, [a, b]: [Along; 2], kind: Kind) -> TensorFunc {
    let (oh, ow) = (a.results(h), b.results(w));
    let ([top, bottom], [left, right]) = (a.3, b.3);
    let (ph, pw) = (h + top + bottom, w + left + right);
    let order = |c: &str, h: &str, w: &str| {
        if last { format!("{h}, {w}, {c}") } else { format!("{c}, {h}, {w}") }
    };
    let shape = |h: i64, w: i64| order(&c.to_string(), &h.to_string(), &w.to_string());
    let (start, outside) = match kind {
        Kind::Max => ("T.float32('-inf')", "T.float32('-inf')"),
        _ => ("T.float32(0)", "T.float32(0)"),
    };
    let read = format!(
        "P[{}]",
        order(
            "vc",
            &format!("vi * {} + vk * {}", a.1, a.2),
            &format!("vj * {} + vl * {}", b.1, b.2)
        )
    );
    let out = format!("O[{}]", order("vc", "vi", "vj"));
    let update = match kind {
        Kind::Max => format!("T.max({out}, {read})"),
        Kind::Sum => format!("{out} + {read}"),
        Kind::Weighted => format!("{out} + {read} * W[vc, vk, vl]"),
    };
    text(&format!(
        "def f(X: T.Buffer(({}), 'float32'), W: T.Buffer(({c}, {}, {}), 'float32'), O: T.Buffer(({}), 'float32')):\n    \
             P = T.alloc_buffer(({}), 'float32')\n    \
             for {} in T.grid({}):\n        \
                 with T.block('P'):\n            \
                     {} = T.axis.remap('SSS', [{}])\n            \
                     P[{}] = T.if_then_else(vi >= {top} and vi < {} and vj >= {left} and vj < {}, X[{}], {outside})\n    \
             for {}, k, l in T.grid({}, {}, {}):\n        \
                 with T.block('O'):\n            \
                     {}, vk, vl = T.axis.remap('SSSRR', [{}, k, l])\n            \
                     with T.init():\n                {out} = {start}\n            \
                     {out} = {update}\n",
        shape(h, w),
        a.0,
        b.0,
        shape(oh, ow),
        shape(ph, pw),
        order("c", "i", "j"),
        shape(ph, pw),
        order("vc", "vi", "vj"),
        order("c", "i", "j"),
        order("vc", "vi", "vj"),
        top + h,
        left + w,
        order("vc", &format!("vi - {top}"), &format!("vj - {left}")),
        order("c", "i", "j"),
        shape(oh, ow),
        a.0,
        b.0,
        order("vc", "vi", "vj"),
        order("c", "i", "j"),
    ))
}

/// Cells of the largest buffer that a function allocates.
pub fn largest(func: &TensorFunc) -> i64 {
    struct Largest(i64);
    impl Visit for Largest {
        fn stmt(&mut self, s: &tilewright_ir::Stmt) {
            if let StmtKind::Allocate { buffer, .. } = s.kind() {
                let cells = buffer.const_shape().map_or(i64::MAX, |s| s.iter().product());
                self.0 = self.0.max(cells);
            }
            visit::walk_stmt(self, s);
        }
    }
    let mut largest = Largest(0);
    largest.stmt(&func.body);
    largest.0
}

/// How many parallel loops are inside of one another.
fn depth_of_parallel(func: &TensorFunc) -> usize {
    #[derive(Default)]
    struct Depth {
        now: usize,
        most: usize,
    }
    impl Visit for Depth {
        fn stmt(&mut self, s: &tilewright_ir::Stmt) {
            let is_parallel = matches!(s.kind(), StmtKind::For { kind: ForKind::Parallel, .. });
            self.now += usize::from(is_parallel);
            self.most = self.most.max(self.now);
            visit::walk_stmt(self, s);
            self.now -= usize::from(is_parallel);
        }
    }
    let mut depth = Depth::default();
    depth.stmt(&func.body);
    depth.most
}

/// Windows of all kinds: steps, strides, distances and padding that differ before and after.
const ALONG: [Along; 6] = [
    Along(3, 1, 1, [1, 1]),
    Along(3, 2, 1, [0, 1]),
    Along(2, 3, 1, [1, 0]),
    Along(3, 1, 2, [2, 2]),
    Along(5, 2, 1, [4, 3]),
    Along(1, 1, 1, [0, 2]),
];

#[test]
fn vectors_of_channels_read_the_image() {
    for (k, a) in ALONG.into_iter().enumerate() {
        let b = ALONG[(k * 5 + 1) % ALONG.len()];
        for kind in [Kind::Max, Kind::Sum, Kind::Weighted] {
            for c in [32, 35] {
                check(&windows([c, 9, 7], true, [a, b], kind), 0.0);
            }
        }
    }
    let both = [ALONG[0], ALONG[1]];
    for kind in [Kind::Max, Kind::Sum] {
        let func = windows([64, 20, 20], true, both, kind);
        // What is left are the sums of a tile.
        assert!(targets().iter().all(|t| largest(&auto(&func, t)) <= 128));
    }
}

#[test]
fn windows_larger_than_the_image_have_bounds_everywhere() {
    let wide = Along(7, 1, 1, [3, 3]);
    check(&windows([32, 3, 2], true, [wide, wide], Kind::Max), 0.0);
    check(&windows([3, 3, 2], false, [wide, wide], Kind::Max), 0.0);
}

#[test]
fn vectors_of_pixels_read_padded_bands() {
    for (k, a) in ALONG.into_iter().enumerate() {
        let b = ALONG[(k * 5 + 1) % ALONG.len()];
        for kind in [Kind::Max, Kind::Sum, Kind::Weighted] {
            check(&windows([3, 9, 29], false, [a, b], kind), 0.0);
        }
    }
    // Images that a band does not hold: the last band has fewer rows.
    for a in [ALONG[0], ALONG[1], ALONG[3], ALONG[4]] {
        for kind in [Kind::Max, Kind::Weighted] {
            let func = windows([2, 71, 61], false, [a, ALONG[0]], kind);
            check(&func, 0.0);
            assert!(targets().iter().all(|t| largest(&auto(&func, t)) <= 12 * 256));
        }
    }
}

#[test]
fn threads_share_bands_and_not_what_is_in_one() {
    // A band alone would be enough work to be shared.
    let func = windows([8, 52, 52], false, [ALONG[0], ALONG[0]], Kind::Weighted);
    check(&func, 0.0);
    assert!(targets().iter().all(|t| depth_of_parallel(&auto(&func, t)) == 1));
}

#[test]
fn padding_that_counts_is_read() {
    // Padding that is larger than what a maximum starts from, and that is no zero of a sum.
    let both = [ALONG[0], ALONG[0]];
    for (kind, from) in [(Kind::Max, "-inf"), (Kind::Sum, "0")] {
        let func = windows([32, 6, 6], true, both, kind);
        let printed = tilewright_tvmscript::print_module(&{
            let mut module = tilewright_ir::Module::new();
            module.insert("f", func);
            module
        });
        let outside = match from {
            "0" => printed.replacen("T.float32(0.0))", "T.float32(2.0))", 1),
            _ => printed.replacen("T.float32(\"-inf\"))", "T.float32(2.0))", 1),
        };
        assert_ne!(printed, outside);
        let source = tilewright_ir::Source::new("test.py", outside);
        let module = tilewright_tvmscript::parse_module(&source).expect("it reads");
        check(module.tensor("f").expect("a function"), 0.0);
    }
}

#[test]
fn a_band_of_one_row_is_in_the_loop_over_rows() {
    // Channels in groups, whose image is padded for one group at a time, with vectors along the results of a group.
    let func = text(
        "def f(X: T.Buffer((40, 24, 18), 'float32'), W: T.Buffer((3, 3, 5, 88), 'float32'), \
         O: T.Buffer((24, 18, 88), 'float32')):\n    \
             P = T.alloc_buffer((40, 26, 20), 'float32')\n    \
             for c, i, j in T.grid(40, 26, 20):\n        \
                 with T.block('P'):\n            \
                     vc, vi, vj = T.axis.remap('SSS', [c, i, j])\n            \
                     P[vc, vi, vj] = T.if_then_else(vi >= 1 and vi < 25 and vj >= 1 and vj < 19, \
                         X[vc, vi - 1, vj - 1], T.float32(0))\n    \
             for i, j, g, o, c, k, l in T.grid(24, 18, 8, 11, 5, 3, 3):\n        \
                 with T.block('O'):\n            \
                     vi, vj, vg, vo, vc, vk, vl = T.axis.remap('SSSSRRR', [i, j, g, o, c, k, l])\n            \
                     with T.init():\n                O[vi, vj, vg * 11 + vo] = T.float32(0)\n            \
                     O[vi, vj, vg * 11 + vo] = O[vi, vj, vg * 11 + vo] \
                         + P[vg * 5 + vc, vi + vk, vj + vl] * W[vk, vl, vc, vg * 11 + vo]\n",
    );
    check(&func, 1e-5);
    let lowered = lower(&auto(&func, &targets()[0])).expect("lowers");
    lowered.body.for_each(|s| {
        if let StmtKind::Store { value, .. } = s.kind() {
            let weighted = value.any(|e| {
                matches!(e.kind(), ExprKind::Binary(BinOp::Mul, a, b)
                if a.loads_from(|_| true) && b.loads_from(|_| true))
            });
            assert!(!weighted || value.dtype().lanes > 1, "{value}");
        }
    });
}
