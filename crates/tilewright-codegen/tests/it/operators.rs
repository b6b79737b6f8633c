//! Every operator, conversion and intrinsic on every type, scalar and vector, against the
//! interpreter's definition of them, on values that include all special ones.

use crate::common::*;
use tilewright_codegen::llvm::{Llvm, OptLevel, Target};
use tilewright_interp::scalar::{self, Scalar};
use tilewright_ir::{BinOp, Buffer, DType, Expr, Intrin, Stmt, Tensor, TypeKind, Var};

const INTS: [DType; 8] =
    [DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64];
const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

const BINARY: [BinOp; 18] = [
    BinOp::Add,
    BinOp::Sub,
    BinOp::Mul,
    BinOp::Div,
    BinOp::FloorDiv,
    BinOp::FloorMod,
    BinOp::TruncDiv,
    BinOp::TruncMod,
    BinOp::Min,
    BinOp::Max,
    BinOp::Eq,
    BinOp::Ne,
    BinOp::Lt,
    BinOp::Le,
    BinOp::Gt,
    BinOp::Ge,
    BinOp::And,
    BinOp::Or,
];

/// Number of elements; a multiple of every number of lanes below.
const N: usize = 32 * 48;

fn all_types() -> Vec<DType> {
    [&[DType::BOOL][..], &INTS, &FLOATS].concat()
}

/// A fixed sequence of numbers without pattern.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
    let x = *state ^ (*state >> 33);
    x.wrapping_mul(0xff51_afd7_ed55_8ccd) ^ (x >> 29)
}

/// Values of a type: all special ones, small ones, and bit patterns.
fn values(dtype: DType, seed: u64) -> Vec<Scalar> {
    let mut state = seed;
    let mut out: Vec<Scalar> = Vec::new();
    match dtype.kind {
        TypeKind::Bool => out.extend([0, 1].map(|v| Scalar::int(v, dtype))),
        TypeKind::Int | TypeKind::UInt => {
            let (low, high) = (dtype.min_int().unwrap_or(0), dtype.max_int().unwrap_or(0));
            for v in [low, low + 1, -2, -1, 0, 1, 2, 3, 7, 8, high - 1, high, low / 2, high / 2] {
                out.push(Scalar::int(v as i64, dtype));
            }
        }
        _ => {
            for v in [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 255.5, -300.25, 65504.0]
            {
                out.push(Scalar::float(v, dtype));
            }
            for v in
                [65519.0, 65520.0, 1e-7, -6e-8, 2.9e-8, 1e38, -1e300, 1e-40, 1e-310, 2e9, -3e18]
            {
                out.push(Scalar::float(v, dtype));
            }
            for v in [2147483648.0, 9.3e18, 1.9e19, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
                out.push(Scalar::float(v, dtype));
            }
        }
    }
    // Each special value meets each in the other operand, which repeats with another period.
    let special = out.clone();
    while out.len() < N {
        let x = random(&mut state);
        out.push(match (dtype.kind, x % 4) {
            (_, 0) => special[(x >> 8) as usize % special.len()],
            (TypeKind::Bool, _) => Scalar::int((x >> 8 & 1) as i64, dtype),
            (TypeKind::Int | TypeKind::UInt, 1) => Scalar::int((x >> 8) as i64 % 20 - 5, dtype),
            (TypeKind::Int | TypeKind::UInt, _) => Scalar::int((x >> 3) as i64, dtype),
            (_, 1) => Scalar::float(((x >> 8) as i64 % 4000) as f64 / 128.0 - 10.0, dtype),
            _ => {
                let bits = (x ^ x << 17) & (u64::MAX >> (64 - dtype.bits));
                Scalar::from_bits(bits, dtype)
            }
        });
    }
    out
}

fn tensor(values: &[Scalar], dtype: DType) -> Tensor {
    let bytes: Vec<u8> =
        values.iter().flat_map(|v| v.bits().to_le_bytes()[..dtype.bytes()].to_vec()).collect();
    Tensor::from_bytes(dtype, &[values.len()], &bytes).expect("a tensor")
}

/// The bits of an element as the interpreter holds them.
fn bits(t: &Tensor, i: usize) -> u64 {
    if t.dtype().is_float() {
        let n = t.dtype().bytes();
        let mut bits = [0; 8];
        bits[..n].copy_from_slice(&t.bytes()[i * n..(i + 1) * n]);
        u64::from_le_bytes(bits)
    } else {
        t.get_i128(i) as u64
    }
}

/// How close a result has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Match {
    /// The same bits; any `NaN` for a `NaN`.
    Exact,
    /// The same, but `-0.0` is `0.0`.
    Zeros,
    /// A relative error of so many units in the last place.
    Units(f64),
}

fn matches(got: u64, expected: u64, dtype: DType, how: Match) -> bool {
    if got == expected {
        return true;
    }
    if !dtype.is_float() {
        return false;
    }
    let (x, y) = (scalar::to_f64(got, dtype), scalar::to_f64(expected, dtype));
    if x.is_nan() || y.is_nan() {
        return x.is_nan() && y.is_nan();
    }
    match how {
        Match::Exact => false,
        Match::Zeros => x == y,
        Match::Units(units) => {
            let (digits, least) = match (dtype.kind, dtype.bits) {
                (TypeKind::BFloat, _) => (7, -133),
                (_, 16) => (10, -24),
                (_, 32) => (23, -149),
                _ => (52, -1074),
            };
            let unit = (y.abs() * 2f64.powi(-digits)).max(2f64.powi(least));
            let finite = x.is_finite() && y.is_finite();
            finite && (x - y).abs() <= units * unit
        }
    }
}

type Build<'a> = Box<dyn Fn(&[Expr]) -> Expr + 'a>;
/// The bits of a result from those of the operands; `None` where there is none.
type Define<'a> = Box<dyn Fn(&[u64]) -> Option<u64> + 'a>;

/// One result: a name for messages, its type, the expression, and the definition.
struct Case<'a> {
    name: String,
    dtype: DType,
    build: Build<'a>,
    define: Define<'a>,
    how: Match,
}

/// Computes all cases on the inputs in one function and compares every element.
fn check(inputs: &[Tensor], cases: &[Case<'_>], lanes: u16, target: &Target) {
    let n = N as i64;
    let from: Vec<Buffer> = inputs.iter().map(|t| buffer("A", &[n], t.dtype())).collect();
    let outs: Vec<Buffer> = cases.iter().map(|c| buffer("B", &[n], c.dtype)).collect();
    let i = Var::index("i");
    let at = match lanes {
        1 => i.expr(),
        _ => Expr::ramp(&i * i64::from(lanes), Expr::i32(1), lanes),
    };
    let loads: Vec<Expr> = from.iter().map(|b| b.load([at.clone()])).collect();
    let stores =
        cases.iter().zip(&outs).map(|(c, b)| Stmt::store(b, vec![at.clone()], (c.build)(&loads)));
    let extent = Expr::int(n / i64::from(lanes), DType::I32);
    let body = Stmt::serial(&i, extent, Stmt::seq(stores));
    let buffers: Vec<&Buffer> = from.iter().chain(&outs).collect();
    let native = compile_for(&func(&buffers, body), target, OptLevel::Less);
    let mut tensors: Vec<Tensor> = inputs.to_vec();
    tensors.extend(cases.iter().map(|c| zeros(c.dtype, &[N])));
    assert_eq!(native.call(&mut tensors), 0);
    for (case, got) in cases.iter().zip(&tensors[inputs.len()..]) {
        let mut defined = 0;
        for k in 0..N {
            let x: Vec<u64> = inputs.iter().map(|t| bits(t, k)).collect();
            let Some(expected) = (case.define)(&x) else { continue };
            defined += 1;
            let got = bits(got, k);
            let shown: Vec<String> = inputs
                .iter()
                .map(|t| Scalar::from_bits(bits(t, k), t.dtype()).to_string())
                .collect();
            assert!(
                matches(got, expected, case.dtype, case.how),
                "{} ({lanes} lanes, features `{}`) of {}: {} is not {}",
                case.name,
                target.features.len(),
                shown.join(", "),
                Scalar::from_bits(got, case.dtype),
                Scalar::from_bits(expected, case.dtype),
            );
        }
        assert!(defined > N / 8, "{}: {defined}", case.name);
    }
}

/// Checks plain loops on this machine and one without extensions, and vectors of two sizes.
fn check_all(inputs: &[Tensor], cases: &[Case<'_>]) {
    let host = Llvm::get().expect("an LLVM").host();
    check(inputs, cases, 1, &host);
    check(inputs, cases, 16, &host);
    check(inputs, cases, 1, &baseline());
    check(inputs, cases, 3, &baseline());
}

#[test]
fn operators_of_two_operands() {
    for dtype in all_types() {
        let mut cases = Vec::new();
        for op in BINARY {
            // A type has an operator where its definition has a value for ones.
            let one = Scalar::int(1, DType::I32);
            let one = scalar::cast(one.bits(), DType::I32, dtype);
            let division = dtype.is_bool()
                && matches!(
                    op,
                    BinOp::FloorDiv | BinOp::FloorMod | BinOp::TruncDiv | BinOp::TruncMod
                );
            let logic = op.is_logic() && !dtype.is_bool();
            if scalar::binary(op, dtype, one, one).is_err() || division || logic {
                continue;
            }
            cases.push(Case {
                name: format!("{dtype} {op:?}"),
                dtype: if op.is_compare() { DType::BOOL } else { dtype },
                build: Box::new(move |x| Expr::binary(op, x[0].clone(), x[1].clone())),
                define: Box::new(move |x| scalar::binary(op, dtype, x[0], x[1]).ok()),
                how: match op {
                    BinOp::Min | BinOp::Max => Match::Zeros,
                    _ => Match::Exact,
                },
            });
        }
        assert!(cases.len() >= 9, "{dtype} {}", cases.len());
        let inputs = [tensor(&values(dtype, 1), dtype), tensor(&values(dtype, 2)[5..], dtype)];
        let inputs = inputs.map(|t| pad(&t));
        check_all(&inputs, &cases);
    }
}

/// The tensor with `N` elements: its first ones again at the end.
fn pad(t: &Tensor) -> Tensor {
    let n = t.dtype().bytes() * N;
    let bytes: Vec<u8> = t.bytes().iter().cycle().take(n).copied().collect();
    Tensor::from_bytes(t.dtype(), &[N], &bytes).expect("a tensor")
}

#[test]
fn operators_with_a_constant() {
    // Constant divisors and bounds take ways of their own.
    for dtype in [INTS.as_slice(), &FLOATS].concat() {
        let constants: &[f64] = match dtype.is_float() {
            true => &[0.0, 6.0, -1.5, f64::INFINITY, f64::NAN],
            false if dtype.kind == TypeKind::Int => {
                &[-128.0, -8.0, -7.0, -1.0, 1.0, 2.0, 5.0, 8.0, 64.0]
            }
            false => &[1.0, 2.0, 7.0, 16.0, 200.0],
        };
        let ops: &[BinOp] = if dtype.is_float() {
            &[BinOp::Min, BinOp::Max, BinOp::Mul]
        } else {
            &[BinOp::FloorDiv, BinOp::FloorMod, BinOp::TruncDiv, BinOp::TruncMod, BinOp::Min]
        };
        let mut cases = Vec::new();
        for &op in ops {
            for &k in constants {
                for left in [false, true] {
                    if left && !dtype.is_float() {
                        continue;
                    }
                    let constant = if dtype.is_float() {
                        Expr::float(k, dtype)
                    } else {
                        Expr::int(k as i64, dtype)
                    };
                    let at = if dtype.is_float() {
                        Scalar::float(k, dtype)
                    } else {
                        Scalar::int(k as i64, dtype)
                    };
                    let pair = move |x: u64| if left { (at.bits(), x) } else { (x, at.bits()) };
                    cases.push(Case {
                        name: format!("{dtype} {op:?} {k} {left}"),
                        dtype,
                        build: Box::new(move |x| {
                            let lanes = x[0].dtype().lanes;
                            let constant = constant.clone();
                            let k = if lanes == 1 {
                                constant
                            } else {
                                Expr::broadcast(constant, lanes)
                            };
                            if left {
                                Expr::binary(op, k, x[0].clone())
                            } else {
                                Expr::binary(op, x[0].clone(), k)
                            }
                        }),
                        define: Box::new(move |x| {
                            let (a, b) = pair(x[0]);
                            scalar::binary(op, dtype, a, b).ok()
                        }),
                        how: if dtype.is_float() && op != BinOp::Mul {
                            Match::Zeros
                        } else {
                            Match::Exact
                        },
                    });
                }
            }
        }
        check_all(&[tensor(&values(dtype, 3), dtype)], &cases);
    }
}

#[test]
fn conversions() {
    for from in all_types() {
        let cases: Vec<Case<'_>> = all_types()
            .into_iter()
            .map(|to| Case {
                name: format!("{from} to {to}"),
                dtype: to,
                build: Box::new(move |x| {
                    Expr::cast_node(x[0].clone(), to.with_lanes(x[0].dtype().lanes))
                }),
                define: Box::new(move |x| Some(scalar::cast(x[0], from, to))),
                how: Match::Exact,
            })
            .collect();
        check_all(&[tensor(&values(from, 4), from)], &cases);
    }
}

#[test]
fn selection_and_negation() {
    for dtype in all_types() {
        let (yes, no) = (tensor(&values(dtype, 5), dtype), tensor(&values(dtype, 6), dtype));
        let cond = tensor(&values(DType::BOOL, 7), DType::BOOL);
        let pick = |name: &str, lazy: bool| Case {
            name: format!("{name} {dtype}"),
            dtype,
            build: Box::new(move |x: &[Expr]| {
                let [c, t, f] = [0, 1, 2].map(|k: usize| x[k].clone());
                if lazy { Expr::if_then_else(c, t, f) } else { Expr::select(c, t, f) }
            }) as Build<'_>,
            define: Box::new(|x: &[u64]| Some(if x[0] != 0 { x[1] } else { x[2] })) as Define<'_>,
            how: Match::Exact,
        };
        let not = Case {
            name: "not".to_owned(),
            dtype: DType::BOOL,
            build: Box::new(|x| Expr::not_node(x[0].clone())),
            define: Box::new(|x| Some(u64::from(x[0] == 0))),
            how: Match::Exact,
        };
        check_all(&[cond, yes, no], &[pick("select", false), pick("if_then_else", true), not]);
    }
}

#[test]
fn intrinsics() {
    for dtype in all_types() {
        let mut cases = Vec::new();
        for &op in Intrin::ALL {
            let one = scalar::cast(1, DType::I32, dtype);
            let known = scalar::intrinsic(op, dtype, one, one).is_ok();
            if !known {
                continue;
            }
            cases.push(Case {
                name: format!("{dtype} {}", op.name()),
                dtype: op.result(dtype),
                build: Box::new(move |x| Expr::intrin(op, x[..op.arity()].to_vec())),
                define: Box::new(move |x| {
                    // The interpreter's library gives numbers for some arguments below 1.
                    let outside = op == Intrin::Acosh && scalar::to_f64(x[0], dtype) < 1.0;
                    let value = scalar::intrinsic(op, dtype, x[0], x[1]).ok();
                    value.filter(|_| !outside)
                }),
                how: tolerance(op, dtype),
            });
        }
        assert!(!cases.is_empty());
        let inputs =
            [tensor(&values(dtype, 8), dtype), pad(&tensor(&values(dtype, 9)[3..], dtype))];
        // Shifts and powers want small second operands as well.
        let small: Vec<Scalar> = (0..N)
            .map(|k| {
                let k = (k % 11) as i64;
                Scalar::from_bits(scalar::cast(k as u64, DType::I64, dtype), dtype)
            })
            .collect();
        check_all(&[inputs[0].clone(), tensor(&small, dtype)], &cases);
        let faults = |c: &Case<'_>| {
            !["pow", "shift_left", "shift_right"].iter().any(|n| c.name.ends_with(n))
        };
        let cases: Vec<Case<'_>> =
            cases.into_iter().filter(|c| dtype.is_float() || faults(c)).collect();
        check_all(&inputs, &cases);
    }
}

fn tolerance(op: Intrin, dtype: DType) -> Match {
    use Intrin::*;
    match op {
        _ if !dtype.is_float() => Match::Exact,
        _ if op.is_exact() || op.is_predicate() => Match::Exact,
        Sqrt | Fmod => Match::Exact,
        // Our own in float32, the C library's against another one's in float64.
        _ if dtype.bits == 16 => Match::Units(1.0),
        _ if dtype.bits == 32 => Match::Units(2.5),
        _ => Match::Units(8.0),
    }
}
