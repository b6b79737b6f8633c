//! Convolutions that become products for tensor instructions, and products by those, against the interpreter.

use proptest::prelude::*;
use tilewright_analysis::open_stages;
use tilewright_autoschedule::integer::expand;
use tilewright_autoschedule::others;
use tilewright_ir::{Remarks, StmtKind, TensorFunc};
use tilewright_target::{TENSOR_INSTRUCTION, Target};

use crate::reductions::{inputs, run, text};

fn gpu() -> Target {
    Target::new("cuda", "sm_80", "+fma,+mma")
}

/// A convolution.
#[derive(Clone, Debug)]
struct Case {
    /// Of data and weights.
    types: [&'static str; 2],
    sum: &'static str,
    batch: i64,
    groups: i64,
    /// In a group.
    channels: [i64; 2],
    image: [i64; 2],
    window: [i64; 2],
    stride: i64,
    pad: i64,
    channels_last: bool,
    /// What reads the sums: nothing, their relu, or their transpose.
    follow: u8,
}

impl Case {
    fn function(&self) -> TensorFunc {
        let Case { types, sum, batch: n, groups: g, pad, stride: s, .. } = self;
        let ([c, o], [kh, kw]) = (self.channels, self.window);
        let [h, w] = self.image;
        let (ph, pw) = (h + 2 * pad, w + 2 * pad);
        let (oh, ow) = ((ph - kh) / s + 1, (pw - kw) / s + 1);
        // Axes of groups and channels, and of an image.
        let order = |c: &str, h: &str, w: &str| {
            if self.channels_last { format!("{h}, {w}, {c}") } else { format!("{c}, {h}, {w}") }
        };
        let shape =
            |c: i64, h: i64, w: i64| order(&format!("{g}, {c}"), &h.to_string(), &w.to_string());
        let image = format!("({n}, {})", shape(c, h, w));
        let padded = format!("({n}, {})", shape(c, ph, pw));
        let sums = format!("({n}, {})", shape(o, oh, ow));
        let is_float = types[0].contains("float");
        let zero = if is_float { "T.float32(0)".to_owned() } else { "0".to_owned() };
        let nothing = if is_float { format!("T.{}(0)", types[0]) } else { zero.clone() };
        let read = order("vg, vc", &format!("vi * {s} + vk"), &format!("vj * {s} + vl"));
        let at = order("vg, vo", "vi", "vj");
        let (last, map) = match self.follow {
            0 => (sums.clone(), String::new()),
            1 => (
                sums.clone(),
                format!(
                    "    for b, v, x, y, z in T.grid{sums}:\n        \
                     with T.block('relu'):\n            \
                         vb, vv, vx, vy, vz = T.axis.remap('SSSSS', [b, v, x, y, z])\n            \
                         D[vb, vv, vx, vy, vz] = T.max(O[vb, vv, vx, vy, vz], {zero})\n"
                ),
            ),
            _ => {
                let [v, x, y, z] =
                    if self.channels_last { [oh, ow, *g, o] } else { [*g, o, oh, ow] };
                (
                    format!("({z}, {x}, {n}, {y}, {v})"),
                    format!(
                        "    for z, x, b, y, v in T.grid({z}, {x}, {n}, {y}, {v}):\n        \
                         with T.block('turned'):\n            \
                             vz, vx, vb, vy, vv = T.axis.remap('SSSSS', [z, x, b, y, v])\n            \
                             D[vz, vx, vb, vy, vv] = O[vb, vv, vx, vy, vz] + O[vb, vv, vx, vy, vz]\n"
                    ),
                )
            }
        };
        let (own, alloc) = match self.follow {
            0 => ("D", String::new()),
            _ => ("O", format!("    O = T.alloc_buffer({sums}, '{sum}')\n")),
        };
        let inside = order("vg, vc", &format!("vy - {pad}"), &format!("vx - {pad}"));
        let [x, weights] = types;
        let placed = order("vg, vc", "vy", "vx");
        let (bottom, right) = (h + pad, w + pad);
        text(&format!(
            "def f(X: T.Buffer({image}, '{x}'), W: T.Buffer(({g}, {o}, {c}, {kh}, {kw}), '{weights}'), D: T.Buffer({last}, '{sum}')):\n{alloc}    \
                 P = T.alloc_buffer({padded}, '{x}')\n    \
                 for b, g, c, y, x in T.grid({n}, {g}, {c}, {ph}, {pw}):\n        \
                     with T.block('P'):\n            \
                         vb, vg, vc, vy, vx = T.axis.remap('SSSSS', [b, g, c, y, x])\n            \
                         P[vb, {placed}] = T.if_then_else({pad} <= vy and vy < {bottom} and {pad} <= vx and vx < {right}, X[vb, {inside}], {nothing})\n    \
                 for b, g, o, i, j, c, k, l in T.grid({n}, {g}, {o}, {oh}, {ow}, {c}, {kh}, {kw}):\n        \
                     with T.block('conv'):\n            \
                         vb, vg, vo, vi, vj, vc, vk, vl = T.axis.remap('SSSSSRRR', [b, g, o, i, j, c, k, l])\n            \
                         with T.init():\n                {own}[vb, {at}] = {zero}\n            \
                         {own}[vb, {at}] = {own}[vb, {at}] + T.Cast('{sum}', P[vb, {read}]) * T.Cast('{sum}', W[vg, vo, vc, vk, vl])\n{map}"
        ))
    }
}

/// How many loops an instruction of a warp computes.
fn instructions(func: &TensorFunc) -> usize {
    let mut count = 0;
    func.body.for_each(|s| {
        if let StmtKind::For { annotations, .. } = s.kind() {
            count += usize::from(annotations.contains_key(TENSOR_INSTRUCTION));
        }
    });
    count
}

/// A function, and what it becomes, store the same.
fn check(case: &Case) {
    let func = case.function();
    let inputs = inputs(&func).expect("inputs");
    let expected = run(func.clone(), &inputs).expect("the function runs");
    let same = |what: &str, func: &TensorFunc| {
        let found = run(func.clone(), &inputs).unwrap_or_else(|e| panic!("{what}: {}", e.render()));
        assert!(found.same(&expected), "{what} is different: {case:?}");
    };
    let product = expand(&func, &gpu()).unwrap_or_else(|| panic!("it is no product: {case:?}"));
    same("the product", &product);
    let stages = open_stages(&product).expect("stages");
    let sum = stages.iter().find(|s| s.is_reduction()).expect("a sum");
    let more = i64::from(case.batch > 1) + i64::from(case.groups > 1);
    assert!(sum.dims().count() as i64 <= 3 + more, "{case:?}");
    let mut why = Remarks::new();
    let scheduled = others(&product, &gpu(), &mut why).expect("a schedule");
    assert!(why.is_empty(), "{}: {case:?}", why[0].render());
    // The product, and the fragments of both factors.
    assert_eq!(instructions(&scheduled), 3, "{case:?}");
    same("the schedule", &scheduled);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn convolutions_are_products_for_tensor_instructions(
        (types, sum) in prop_oneof![
            Just((["float16", "float16"], "float32")),
            Just((["bfloat16", "bfloat16"], "float32")),
            Just((["int8", "int8"], "int32")),
            Just((["uint8", "int8"], "int32")),
            Just((["int8", "uint8"], "int32")),
        ],
        (batch, groups) in (1i64..3, 1i64..3),
        channels in [8i64..12, 8i64..20],
        more in [2i64..6, 4i64..7],
        window in [1i64..4, 1i64..4],
        (stride, pad) in (1i64..3, 0i64..2),
        channels_last in any::<bool>(),
        follow in 0u8..3,
    ) {
        let image = [window[0] + more[0] * stride, window[1] + more[1] * stride];
        let case = Case { types, sum, batch, groups, channels, image, window, stride, pad, channels_last, follow };
        check(&case);
    }
}
