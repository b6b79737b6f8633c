//! Arithmetic of each type against Rust's own.

use half::{bf16, f16};
use proptest::prelude::*;
use tilewright_interp::RunOptions;
use tilewright_interp::scalar::{self, Scalar};
use tilewright_ir::tensor::Element;
use tilewright_ir::{BinOp, DType, Expr, Intrin, Stmt, Tensor, Var};

use crate::build::*;

/// A function of floats.
type Function = fn(f64) -> f64;

/// Applies an expression of `A[i]` and `B[i]` to all elements.
fn map2<T: Element, R: Element>(a: &[T], b: &[T], f: impl Fn(Expr, Expr) -> Expr) -> Vec<R> {
    let n = a.len() as i64;
    let (x, y) = (buffer("A", &[n], T::DTYPE), buffer("B", &[n], T::DTYPE));
    let i = Var::index("i");
    let value = f(x.load([i.expr()]), y.load([i.expr()]));
    // `bool` comes back as a byte.
    let value = if value.dtype().is_bool() { value.cast(R::DTYPE) } else { value };
    let out = buffer("C", &[n], R::DTYPE);
    let body = serial(&i, n, Stmt::store(&out, vec![i.expr()], value));
    let outputs = run(&func(&[&x, &y, &out], body), &[tensor(a), tensor(b)]);
    let outputs = outputs.unwrap_or_else(|e| panic!("{}", e.render()));
    outputs[0].as_slice::<R>().unwrap_or_else(|| panic!("{outputs:?}")).to_vec()
}

fn map<T: Element, R: Element>(a: &[T], f: impl Fn(Expr) -> Expr) -> Vec<R> {
    map2(a, a, |x, _| f(x))
}

fn op(op: BinOp) -> impl Fn(Expr, Expr) -> Expr {
    move |a, b| Expr::binary(op, a, b)
}

/// All pairs of some numbers.
fn pairs<T: Copy>(values: &[T]) -> (Vec<T>, Vec<T>) {
    values.iter().flat_map(|&a| values.iter().map(move |&b| (a, b))).unzip()
}

macro_rules! int_tests {
    ($($name:ident $t:ty),*) => { $(
        #[test]
        fn $name() {
            let (a, b) = pairs::<$t>(&[0, 1, 2, 3, 7, 100, <$t>::MAX, <$t>::MAX - 1, <$t>::MIN,
                <$t>::MIN + 1, <$t>::MAX / 2, (0 as $t).wrapping_sub(3)]);
            let zip = || a.iter().copied().zip(b.iter().copied());
            let with = |f: fn($t, $t) -> $t| zip().map(|(x, y)| f(x, y)).collect::<Vec<_>>();
            let test = |f: fn($t, $t) -> bool| {
                zip().map(|(x, y)| u8::from(f(x, y))).collect::<Vec<_>>()
            };
            assert_eq!(map2::<$t, $t>(&a, &b, op(BinOp::Add)), with(<$t>::wrapping_add));
            assert_eq!(map2::<$t, $t>(&a, &b, op(BinOp::Sub)), with(<$t>::wrapping_sub));
            assert_eq!(map2::<$t, $t>(&a, &b, op(BinOp::Mul)), with(<$t>::wrapping_mul));
            assert_eq!(map2::<$t, $t>(&a, &b, op(BinOp::Min)), with(<$t>::min));
            assert_eq!(map2::<$t, $t>(&a, &b, op(BinOp::Max)), with(<$t>::max));
            assert_eq!(map2::<$t, u8>(&a, &b, op(BinOp::Lt)), test(|x, y| x < y));
            assert_eq!(map2::<$t, u8>(&a, &b, op(BinOp::Ge)), test(|x, y| x >= y));
            assert_eq!(map2::<$t, u8>(&a, &b, op(BinOp::Eq)), test(|x, y| x == y));
            assert_eq!(map2::<$t, u8>(&a, &b, op(BinOp::Ne)), test(|x, y| x != y));
            let (a, b): (Vec<$t>, Vec<$t>) = zip().filter(|(_, b)| *b != 0).unzip();
            let zip = || a.iter().copied().zip(b.iter().copied());
            let with = |f: fn($t, $t) -> $t| zip().map(|(x, y)| f(x, y)).collect::<Vec<_>>();
            assert_eq!(map2::<$t, $t>(&a, &b, op(BinOp::TruncDiv)), with(<$t>::wrapping_div));
            assert_eq!(map2::<$t, $t>(&a, &b, op(BinOp::TruncMod)), with(<$t>::wrapping_rem));
            let floor = |x: $t, y: $t| {
                let (x, y) = (x as i128, y as i128);
                x.div_euclid(y) - i128::from(y < 0 && x.rem_euclid(y) != 0)
            };
            let want: Vec<$t> = zip().map(|(x, y)| floor(x, y) as $t).collect();
            assert_eq!(map2::<$t, $t>(&a, &b, op(BinOp::FloorDiv)), want);
            let want: Vec<$t> =
                zip().map(|(x, y)| (x as i128 - y as i128 * floor(x, y)) as $t).collect();
            assert_eq!(map2::<$t, $t>(&a, &b, op(BinOp::FloorMod)), want);
            // Bits.
            let bits = |f| move |x, y| Expr::intrin(f, vec![x, y]);
            assert_eq!(map2::<$t, $t>(&a, &b, bits(Intrin::BitAnd)), with(|x, y| x & y));
            assert_eq!(map2::<$t, $t>(&a, &b, bits(Intrin::BitOr)), with(|x, y| x | y));
            assert_eq!(map2::<$t, $t>(&a, &b, bits(Intrin::BitXor)), with(|x, y| x ^ y));
            let not: Vec<$t> = a.iter().map(|x| !x).collect();
            assert_eq!(map::<$t, $t>(&a, |x| Expr::intrin(Intrin::BitNot, vec![x])), not);
            let ones: Vec<$t> = a.iter().map(|x| x.count_ones() as $t).collect();
            assert_eq!(map::<$t, $t>(&a, |x| Expr::intrin(Intrin::Popcount, vec![x])), ones);
            let by: Vec<$t> = (0..<$t>::BITS as $t).collect();
            let x = vec![<$t>::MAX / 3; by.len()];
            let want: Vec<$t> = by.iter().map(|b| (<$t>::MAX / 3) << b).collect();
            assert_eq!(map2::<$t, $t>(&x, &by, bits(Intrin::Shl)), want);
            let x = vec![<$t>::MIN.wrapping_sub(5); by.len()];
            let want: Vec<$t> = by.iter().map(|b| <$t>::MIN.wrapping_sub(5) >> b).collect();
            assert_eq!(map2::<$t, $t>(&x, &by, bits(Intrin::Shr)), want);
            let e: Vec<$t> = vec![5; a.len()];
            let want: Vec<$t> = a.iter().map(|x| x.wrapping_pow(5)).collect();
            assert_eq!(map2::<$t, $t>(&a, &e, bits(Intrin::Pow)), want);
        }
    )* };
}
int_tests!(int8 i8, int16 i16, int32 i32, int64 i64, uint8 u8, uint16 u16, uint32 u32, uint64 u64);

const FLOATS: [f64; 14] = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    0.1,
    3.0e-39,
    65504.0,
    1.0e30,
    -7.25,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    1.0 / 3.0,
    1.0e-45,
];

fn ieee_min(x: f64, y: f64) -> f64 {
    match () {
        () if x.is_nan() || y.is_nan() => f64::NAN,
        () if x == y && x == 0.0 => {
            if x.is_sign_negative() {
                x
            } else {
                y
            }
        }
        () => x.min(y),
    }
}

macro_rules! float_tests {
    ($($name:ident $t:ty, $from:expr, $to:expr);*) => { $(
        #[test]
        fn $name() {
            let from: fn(f64) -> $t = $from;
            let to: fn($t) -> f64 = $to;
            let values: Vec<$t> = FLOATS.iter().map(|&v| from(v)).collect();
            let (a, b) = pairs(&values);
            let same = |x: Vec<$t>, f: &dyn Fn($t, $t) -> $t| {
                for ((x, a), b) in x.iter().zip(&a).zip(&b) {
                    let (x, want) = (to(*x), to(f(*a, *b)));
                    let ok = x.to_bits() == want.to_bits() || (x.is_nan() && want.is_nan());
                    assert!(ok, "{:?}, {:?}: {x:?}, not {want:?}", to(*a), to(*b));
                }
            };
            same(map2(&a, &b, op(BinOp::Add)), &|x, y| x + y);
            same(map2(&a, &b, op(BinOp::Sub)), &|x, y| x - y);
            same(map2(&a, &b, op(BinOp::Mul)), &|x, y| x * y);
            same(map2(&a, &b, op(BinOp::Div)), &|x, y| x / y);
            same(map2(&a, &b, op(BinOp::Min)), &|x, y| from(ieee_min(to(x), to(y))));
            same(map2(&a, &b, op(BinOp::Max)), &|x, y| from(-ieee_min(-to(x), -to(y))));
            let test = |f: fn(&$t, &$t) -> bool| {
                a.iter().zip(&b).map(|(x, y)| u8::from(f(x, y))).collect::<Vec<_>>()
            };
            assert_eq!(map2::<$t, u8>(&a, &b, op(BinOp::Lt)), test(|x, y| x < y));
            assert_eq!(map2::<$t, u8>(&a, &b, op(BinOp::Le)), test(|x, y| x <= y));
            assert_eq!(map2::<$t, u8>(&a, &b, op(BinOp::Eq)), test(|x, y| x == y));
            assert_eq!(map2::<$t, u8>(&a, &b, op(BinOp::Ne)), test(|x, y| x != y));
            let call = |f| move |x| Expr::intrin(f, vec![x]);
            let whether = |f: fn(f64) -> bool| {
                a.iter().map(|x| u8::from(f(to(*x)))).collect::<Vec<_>>()
            };
            assert_eq!(map::<$t, u8>(&a, call(Intrin::IsNan)), whether(f64::is_nan));
            assert_eq!(map::<$t, u8>(&a, call(Intrin::IsInf)), whether(f64::is_infinite));
            assert_eq!(map::<$t, u8>(&a, call(Intrin::IsFinite)), whether(f64::is_finite));
            let unary = |f: Intrin, g: fn(f64) -> f64| {
                same(map(&a, call(f)), &|x, _| from(g(to(x))));
            };
            unary(Intrin::Sqrt, f64::sqrt);
            unary(Intrin::Abs, f64::abs);
            unary(Intrin::Floor, f64::floor);
            unary(Intrin::Ceil, f64::ceil);
            unary(Intrin::Trunc, f64::trunc);
            unary(Intrin::Round, f64::round);
            unary(Intrin::NearbyInt, f64::round_ties_even);
            let fmod = |x, y| Expr::intrin(Intrin::Fmod, vec![x, y]);
            same(map2(&a, &b, fmod), &|x, y| from(to(x) % to(y)));
        }
    )* };
}
float_tests!(
    float32 f32, |v| v as f32, f64::from;
    float64 f64, |v| v, |v| v;
    float16 f16, f16::from_f64, f16::to_f64;
    bfloat16 bf16, bf16::from_f64, bf16::to_f64
);

#[test]
fn each_operation_rounds() {
    // In f32 the sum of 2^24 and 1 is 2^24; in f64 it is not.
    let big = [16_777_216.0f32];
    let twice = |x: Expr| (x + 1.0) + 1.0;
    assert_eq!(map::<f32, f32>(&big, twice), [16_777_216.0]);
    // Each of both additions to 2048 rounds in f16.
    let big = [f16::from_f32(2048.0)];
    assert_eq!(map::<f16, f16>(&big, twice), [f16::from_f32(2048.0)]);
    // No multiplication and addition in one.
    let x = [1.0f32 + f32::EPSILON];
    let square = x[0] * x[0];
    assert_eq!(map::<f32, f32>(&x, |x| &x * &x - f64::from(square)), [0.0]);
}

#[test]
fn functions_are_rounded_once() {
    let x: Vec<f32> = (-40..40).map(|i| i as f32 / 8.0 + 0.01).collect();
    let table: [(Intrin, Function); 14] = [
        (Intrin::Exp, f64::exp),
        (Intrin::Exp2, f64::exp2),
        (Intrin::Log, f64::ln),
        (Intrin::Log2, f64::log2),
        (Intrin::Log10, f64::log10),
        (Intrin::Log1p, f64::ln_1p),
        (Intrin::Sin, f64::sin),
        (Intrin::Cos, f64::cos),
        (Intrin::Tan, f64::tan),
        (Intrin::Tanh, f64::tanh),
        (Intrin::Atan, f64::atan),
        (Intrin::Sinh, f64::sinh),
        (Intrin::Cosh, f64::cosh),
        (Intrin::Sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
    ];
    for (f, g) in table {
        let got: Vec<f32> = map(&x, |x| Expr::intrin(f, vec![x]));
        for (x, got) in x.iter().zip(got) {
            let want = g(f64::from(*x)) as f32;
            let close = got == want || (got.is_nan() && want.is_nan());
            assert!(close, "{}({x}) = {got}, not {want}", f.name());
        }
    }
    let y: Vec<f32> = x.iter().map(|x| x.abs()).collect();
    let got: Vec<f32> = map2(&y, &x, |x, y| Expr::intrin(Intrin::Pow, vec![x, y]));
    for ((y, x), got) in y.iter().zip(&x).zip(got) {
        assert_eq!(got, f64::from(*y).powf(f64::from(*x)) as f32);
    }
    let got: Vec<f32> = map2(&y, &x, |x, y| Expr::intrin(Intrin::Atan2, vec![x, y]));
    for ((y, x), got) in y.iter().zip(&x).zip(got) {
        assert_eq!(got, f64::from(*y).atan2(f64::from(*x)) as f32);
    }
    // Values of erf from Abramowitz and Stegun, table 7.1.
    let got: Vec<f64> = map(&[0.5f64, 1.0, 2.0], |x| Expr::intrin(Intrin::Erf, vec![x]));
    for (got, want) in got.iter().zip([0.520_499_877_8, 0.842_700_792_9, 0.995_322_265_0]) {
        assert!((got - want).abs() < 1e-10, "{got}");
    }
    let inverse: [(Intrin, Function); 7] = [
        (Intrin::Asin, f64::asin),
        (Intrin::Acos, f64::acos),
        (Intrin::Atanh, f64::atanh),
        (Intrin::Asinh, f64::asinh),
        (Intrin::Acosh, |x| (x + 1.0).acosh()),
        (Intrin::Rsqrt, |x| 1.0 / x.sqrt()),
        (Intrin::Exp10, |x| 10f64.powf(x)),
    ];
    let x: Vec<f64> = (1..20).map(|i| f64::from(i) / 21.0).collect();
    for (f, g) in inverse {
        let shift = if f == Intrin::Acosh { 1.0 } else { 0.0 };
        let got: Vec<f64> = map(&x, |x| Expr::intrin(f, vec![x + shift]));
        for (x, got) in x.iter().zip(got) {
            assert!((got - g(*x)).abs() <= 4.0 * f64::EPSILON * g(*x).abs(), "{}({x})", f.name());
        }
    }
}

fn cast<T: Element, R: Element>(values: &[T]) -> Vec<R> {
    map(values, |x| Expr::cast_node(x, R::DTYPE))
}

#[test]
fn conversions() {
    let floats = [
        0.0f32,
        -0.9,
        2.5,
        -2.5,
        300.0,
        -300.0,
        3.0e9,
        -3.0e9,
        1e20,
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
    ];
    assert_eq!(cast::<f32, i32>(&floats), floats.map(|v| v as i32));
    assert_eq!(cast::<f32, i64>(&floats), floats.map(|v| v as i64));
    assert_eq!(cast::<f32, i8>(&floats), floats.map(|v| v as i8));
    assert_eq!(cast::<f32, u8>(&floats), floats.map(|v| v as u8));
    assert_eq!(cast::<f32, u32>(&floats), floats.map(|v| v as u32));
    assert_eq!(cast::<f32, u64>(&floats), floats.map(|v| v as u64));
    let wide = floats.map(f64::from);
    assert_eq!(cast::<f64, i16>(&wide), wide.map(|v| v as i16));
    let ints = [0i64, 1, -1, 255, 256, i64::MAX, i64::MIN, (1 << 53) + 1, (1 << 24) + 1];
    assert_eq!(cast::<i64, i8>(&ints), ints.map(|v| v as i8));
    assert_eq!(cast::<i64, u16>(&ints), ints.map(|v| v as u16));
    assert_eq!(cast::<i64, u64>(&ints), ints.map(|v| v as u64));
    assert_eq!(cast::<i64, f32>(&ints), ints.map(|v| v as f32));
    assert_eq!(cast::<i64, f64>(&ints), ints.map(|v| v as f64));
    let large = [u64::MAX, 1 << 63, 7];
    assert_eq!(cast::<u64, f32>(&large), large.map(|v| v as f32));
    assert_eq!(cast::<u64, i32>(&large), large.map(|v| v as i32));
    // Between the neighbours 1 and 1 + 2^-7 of bfloat16, just above the middle.
    let above = (1i64 << 60) + (1 << 52) + 1;
    let next = bf16::from_f64(((1i64 << 60) + (1 << 53)) as f64);
    assert_eq!(cast::<i64, bf16>(&[above, -above]), [next, -next]);
    let above = 1.0 + 0.5f64.powi(11) + 0.5f64.powi(40);
    assert_eq!(cast::<f64, f16>(&[above]), [f16::from_f64(1.0 + 0.5f64.powi(10))]);
    assert_eq!(cast::<i64, f16>(&[65519, 65520]), [f16::MAX, f16::INFINITY]);
    let as_bool = |x: Expr| x.cast(DType::BOOL).cast(DType::U8);
    assert_eq!(map::<f32, u8>(&[0.0, -0.0, f32::NAN, 0.5], as_bool), [0, 0, 1, 1]);
    assert_eq!(map::<i32, u8>(&[0, -1, 256], as_bool), [0, 1, 1]);
}

#[test]
fn bool_in_memory_is_one_byte() {
    let (a, b, i) =
        (buffer("A", &[4], DType::BOOL), buffer("B", &[4], DType::BOOL), Var::index("i"));
    let x = || a.load([i.expr()]);
    let value = (!x()).or(i.expr().less(1)).and(x().equal(Expr::bool(false)).or(Expr::bool(false)));
    let body = serial(&i, 4, Stmt::store(&b, vec![i.expr()], value));
    let a_value =
        Tensor::from_bools(&[4], &[true, false, true, false]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(values(&func(&[&a, &b], body), &[a_value]), [0.0, 1.0, 0.0, 1.0]);
}

#[test]
fn vectors_work_lane_by_lane() {
    let (a, b) = (buffer("A", &[8], DType::F32), buffer("B", &[8], DType::F32));
    let ramp = |base, stride| Expr::ramp(Expr::i32(base), Expr::i32(stride), 4);
    // All lanes are read before the first is written.
    let reverse = Stmt::store(&b, vec![ramp(0, 1)], a.load([ramp(7, -2)]) * 10.0);
    let rotate = Stmt::store(&b, vec![ramp(4, 1)], b.load([ramp(0, 1)]));
    let swap = Stmt::store(&b, vec![ramp(0, 1)], b.load([ramp(3, -1)]));
    let f = func(&[&a, &b], Stmt::seq([reverse, rotate, swap]));
    assert_eq!(values(&f, &[iota(&[8])]), [10.0, 30.0, 50.0, 70.0, 70.0, 50.0, 30.0, 10.0]);
    let v = Var::new("v", DType::F32.with_lanes(4));
    let mask = ramp(0, 1).less(2);
    let body = Expr::select(mask, v.expr() + 1.0, Expr::broadcast(a.load([Expr::i32(3)]), 4));
    let value = Expr::let_in(v.clone(), a.load([ramp(0, 2)]), body);
    let f = func(&[&a, &b], Stmt::store(&b, vec![ramp(0, 1)], value));
    let out = run_with(&f, &[iota(&[8])], &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let first: Vec<f64> = (0..4).map(|i| out[0].tensor.get_f64(i)).collect();
    assert_eq!(first, [1.0, 3.0, 3.0, 3.0]);
    // The same with a variable of a statement, and a vector element.
    let w = Var::new("w", DType::F32.with_lanes(4));
    let body = Stmt::let_in(&w, a.load([ramp(0, 2)]), Stmt::store(&b, vec![ramp(0, 1)], w.expr()));
    let out = run_with(&func(&[&a, &b], body), &[iota(&[8])], &RunOptions::default());
    let out = out.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((0..4).map(|i| out[0].tensor.get_f64(i)).collect::<Vec<_>>(), [0.0, 2.0, 4.0, 6.0]);
}

#[test]
fn elements_with_lanes() {
    let (a, b) = (buffer("A", &[8], DType::F32), buffer("B", &[8], DType::F32));
    let pairs = buffer("P", &[4], DType::F32.with_lanes(2));
    let (i, j) = (Var::index("i"), Var::index("j"));
    let two = Expr::ramp(&i * 2, Expr::i32(1), 2);
    let fill = serial(&i, 4, Stmt::store(&pairs, vec![i.expr()], a.load([two])));
    let four = Expr::ramp(&j * 4, Expr::i32(1), 4);
    let both = Expr::ramp(&j * -2 + 3, Expr::i32(-1), 2);
    let copy = serial(&j, 2, Stmt::store(&b, vec![four], pairs.load([both])));
    let f = func(&[&a, &b], Stmt::nop()).with_root(vec![pairs], Stmt::seq([fill, copy]));
    assert_eq!(values(&f, &[iota(&[8])]), [6.0, 7.0, 4.0, 5.0, 2.0, 3.0, 0.0, 1.0]);
}

/// A random expression of `int32` over two loop variables, with constants of all sizes.
fn int_expr() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        Just(Tree::I),
        Just(Tree::J),
        (-5i64..20).prop_map(Tree::Const),
        prop_oneof![Just(i64::from(i32::MAX)), Just(i64::from(i32::MIN)), Just(1 << 20)]
            .prop_map(Tree::Const),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let ops = [
            BinOp::Add,
            BinOp::Sub,
            BinOp::Mul,
            BinOp::FloorDiv,
            BinOp::FloorMod,
            BinOp::TruncDiv,
            BinOp::TruncMod,
            BinOp::Min,
            BinOp::Max,
            BinOp::Lt,
            BinOp::Eq,
            BinOp::Or,
        ];
        prop_oneof![
            (proptest::sample::select(ops.to_vec()), inner.clone(), inner.clone())
                .prop_map(|(op, a, b)| Tree::Op(op, Box::new(a), Box::new(b))),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(c, a, b)| Tree::If(
                Box::new(c),
                Box::new(a),
                Box::new(b)
            )),
            (inner.clone(), any::<bool>()).prop_map(|(a, wide)| Tree::Wide(Box::new(a), wide)),
        ]
    })
}

/// What [`int_expr`] makes: an expression that the test evaluates by itself.
#[derive(Clone, Debug)]
enum Tree {
    I,
    J,
    Const(i64),
    Op(BinOp, Box<Tree>, Box<Tree>),
    If(Box<Tree>, Box<Tree>, Box<Tree>),
    Wide(Box<Tree>, bool),
}

impl Tree {
    fn expr(&self, i: &Var, j: &Var) -> Expr {
        match self {
            Tree::I => i.expr(),
            Tree::J => j.expr(),
            Tree::Const(c) => Expr::int(*c, DType::I32),
            Tree::Op(op, a, b) => {
                let (a, b) = (a.expr(i, j), b.expr(i, j));
                match op {
                    BinOp::Or => {
                        let (a, b) = (a.less(3), b.less(3));
                        Expr::binary(*op, a, b).cast(DType::I32)
                    }
                    _ if op.is_compare() => Expr::binary(*op, a, b).cast(DType::I32),
                    _ => Expr::binary(*op, a, b),
                }
            }
            Tree::If(c, a, b) => {
                Expr::if_then_else(c.expr(i, j).less(2), a.expr(i, j), b.expr(i, j))
            }
            Tree::Wide(a, wide) => {
                let to = if *wide { DType::I64 } else { DType::U8 };
                Expr::cast_node(Expr::cast_node(a.expr(i, j), to), DType::I32)
            }
        }
    }

    /// The value, or `None` where it has none.
    fn value(&self, i: i64, j: i64) -> Option<i64> {
        let apply = |op, a: i64, b: i64| {
            scalar::binary(op, DType::I32, a as u64, b as u64).ok().map(|v| v as i64)
        };
        match self {
            Tree::I => Some(i),
            Tree::J => Some(j),
            Tree::Const(c) => Some(*c),
            Tree::Op(BinOp::Or, a, b) => {
                let a = a.value(i, j)?;
                Some(i64::from(a < 3 || b.value(i, j)? < 3))
            }
            Tree::Op(op, a, b) => apply(*op, a.value(i, j)?, b.value(i, j)?),
            Tree::If(c, a, b) => {
                if c.value(i, j)? < 2 {
                    a.value(i, j)
                } else {
                    b.value(i, j)
                }
            }
            Tree::Wide(a, wide) => {
                let to = if *wide { DType::I64 } else { DType::U8 };
                let bits = scalar::cast(a.value(i, j)? as u64, DType::I32, to);
                Some(scalar::cast(bits, to, DType::I32) as i64)
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Ranges and affine forms never change a value.
    #[test]
    fn integers_are_exact(tree in int_expr()) {
        let (i, j) = (Var::index("i"), Var::index("j"));
        let b = buffer("B", &[5, 3], DType::I32);
        let store = Stmt::store(&b, vec![i.expr(), j.expr()], tree.expr(&i, &j));
        let f = func(&[&b], serial(&i, 5, serial(&j, 3, store)));
        let all = || (0..5i64).flat_map(|i| (0..3i64).map(move |j| (i, j)));
        let want: Option<Vec<f64>> =
            all().map(|(i, j)| tree.value(i, j).map(|v| v as f64)).collect();
        match (run(&f, &[]), want) {
            (Ok(outputs), Some(want)) => {
                let got: Vec<f64> = (0..15).map(|i| outputs[0].get_f64(i)).collect();
                prop_assert_eq!(got, want);
            }
            (Err(e), None) => prop_assert!(e.to_string().contains("division by zero"), "{e}"),
            (got, want) => prop_assert!(false, "{got:?} against {want:?}"),
        }
    }

    /// The bits of a float survive a copy, and a conversion to `f64` and back.
    #[test]
    fn copies_keep_every_bit(bits in proptest::collection::vec(any::<u32>(), 1..8)) {
        let values: Vec<f32> = bits.iter().map(|b| f32::from_bits(*b)).collect();
        let back: Vec<u32> = map::<f32, f32>(&values, |x| x).iter().map(|v| v.to_bits()).collect();
        prop_assert_eq!(back, bits);
    }

    /// Scalars of every type convert as Rust's `as` does.
    #[test]
    fn casts_follow_rust(v in any::<i64>(), f in any::<f64>()) {
        let to = |s: Scalar, t| Scalar::from_bits(scalar::cast(s.bits(), s.dtype(), t), t);
        prop_assert_eq!(to(v.into(), DType::I8).as_i128(), i128::from(v as i8));
        prop_assert_eq!(to(v.into(), DType::U32).as_i128(), i128::from(v as u32));
        prop_assert_eq!(to(v.into(), DType::F32).as_f64(), f64::from(v as f32));
        prop_assert_eq!(to(f.into(), DType::I16).as_i128(), i128::from(f as i16));
        prop_assert_eq!(to(f.into(), DType::U64).as_i128(), i128::from(f as u64));
        let single = to(f.into(), DType::F32).as_f64();
        prop_assert!(single == f64::from(f as f32) || f.is_nan());
    }
}
