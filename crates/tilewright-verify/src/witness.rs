//! Data on which two terms have different values.
//!
//! Terms of another form may still be equal. That they are not is only said with inputs, within
//! what the programs assume, for which the interpreter's arithmetic gives different results.

use tilewright_ir::tensor::index_of;
use tilewright_ir::{BinOp, DType, TypeKind};

use tilewright_interp::machine::Fill;
use tilewright_ir::scalar::{self, Scalar};

use super::term::{Fast, Node, Term, Terms, Val};

/// How many sets of inputs are tried.
const SAMPLES: u64 = 48;

/// The value of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// Bits as in [`tilewright_ir::scalar`].
    Bits(u64),
    /// Any value.
    Undef,
    /// An operator had no value: the program stops.
    Fault,
}

/// Inputs that tell two terms apart.
pub struct Witness {
    /// Which of the pairs.
    pub pair: usize,
    pub values: (Worth, Worth),
    /// Inputs that the pair uses, with their values.
    pub inputs: Vec<(Term, u64)>,
}

/// What is known of the inputs.
pub struct Given<'a> {
    /// Conditions that hold.
    pub constraints: &'a [Term],
    /// Inputs that have a value.
    pub assumed: &'a Fast<Term, u64>,
    /// Values of some inputs for which a pair may differ, to be tried first.
    pub hints: &'a [Vec<(Term, u64)>],
}

/// Searches for inputs on which one of the pairs (with the type of its values) differs.
pub fn find(
    terms: &Terms,
    pairs: &[(Term, Term, DType)],
    given: &Given<'_>,
    reassociate: bool,
) -> Option<Witness> {
    let Given { constraints, assumed, hints } = *given;
    let roots = pairs.iter().flat_map(|(a, b, _)| [*a, *b]).chain(constraints.iter().copied());
    let below = terms.below(roots);
    let constants = constants(terms, &below);
    let mut worth = vec![Worth::Undef; terms.len()];
    let mut random = Fill::Random(1);
    // That of the first pair for which there is one.
    let mut best: Option<Witness> = None;
    let hints = hints.iter().filter(|h| !h.is_empty()).take(SAMPLES as usize);
    for (sample, hint) in (0..SAMPLES).map(|s| (s, None)).chain(hints.map(|h| (0, Some(h)))) {
        for &t in &below {
            let hinted = hint.and_then(|h| h.iter().find(|(of, _)| *of == t));
            let w = match terms.node(t) {
                Node::Input(..) => Worth::Bits(match (assumed.get(&t), hinted) {
                    (Some(bits), _) | (None, Some((_, bits))) => *bits,
                    (None, None) => {
                        draw(&mut random, terms.dtype(t), sample, reassociate, &constants)
                    }
                }),
                _ => evaluate(terms, t, &worth),
            };
            if let Some(to) = worth.get_mut(t.0 as usize) {
                *to = w;
            }
        }
        if constraints.iter().any(|c| worth_of(*c, &worth) != Worth::Bits(1)) {
            continue;
        }
        let before = best.as_ref().map_or(pairs.len(), |w| w.pair);
        for (pair, &(a, b, dtype)) in pairs.iter().enumerate().take(before) {
            let values = (worth_of(a, &worth), worth_of(b, &worth));
            let differs = match values {
                (Worth::Undef | Worth::Fault, _) | (_, Worth::Fault) => false,
                (Worth::Bits(_), Worth::Undef) => true,
                (Worth::Bits(x), Worth::Bits(y)) => !agree(x, y, dtype, reassociate),
            };
            if differs {
                let inputs = terms.below([a, b]).into_iter();
                let inputs = inputs.filter_map(|t| match (terms.node(t), worth_of(t, &worth)) {
                    (Node::Input(..), Worth::Bits(bits)) => Some((t, bits)),
                    _ => None,
                });
                best = Some(Witness { pair, values, inputs: inputs.collect() });
                break;
            }
        }
        if best.as_ref().is_some_and(|w| w.pair == 0) {
            break;
        }
    }
    best
}

fn worth_of(t: Term, worth: &[Worth]) -> Worth {
    worth.get(t.0 as usize).copied().unwrap_or(Worth::Undef)
}

/// Integers that occur, each with its neighbours, among which a condition may change.
fn constants(terms: &Terms, below: &[Term]) -> Vec<i64> {
    let mut found = Vec::new();
    for &t in below {
        let dtype = terms.dtype(t);
        if let (Node::Const(bits), true) = (terms.node(t), dtype.is_int())
            && (bits as i64).unsigned_abs() < 1 << 16
        {
            found.extend([-1, 0, 1].map(|d| bits as i64 + d));
        }
        if found.len() > 3 * SAMPLES as usize {
            break;
        }
    }
    found
}

/// A value of a type: small whole numbers at first, then fractions, then anything, and in the second
/// half of the samples integers out of some that are given.
pub fn draw(random: &mut Fill, dtype: DType, sample: u64, tame: bool, constants: &[i64]) -> u64 {
    let raw = random.next(DType::U64);
    if sample >= SAMPLES / 2 && sample.is_multiple_of(2) && dtype.is_int() && !constants.is_empty()
    {
        let at = (raw >> 8) as usize % constants.len();
        if let Some(v) = constants.get(at) {
            return Scalar::int(*v, dtype).bits();
        }
    }
    let small = (raw % 17) as i64 - 8;
    match dtype.kind {
        TypeKind::Bool => raw & 1,
        TypeKind::Float | TypeKind::BFloat => {
            let fraction = (raw >> 11) as f64 / (1u64 << 53) as f64;
            let value = match sample % 4 {
                // The zero that is drawn is positive.
                0 => small as f64,
                1 => fraction * 4.0 - 2.0,
                _ if tame => small as f64 / 4.0,
                2 => (fraction - 0.5) * 1e4,
                _ => match raw % 8 {
                    0 => f64::INFINITY,
                    1 => f64::NEG_INFINITY,
                    2 => f64::NAN,
                    3 => 0.0,
                    _ => small as f64,
                },
            };
            scalar::from_f64(value, dtype)
        }
        // The ends of the type and what is next to them, where sums wrap.
        TypeKind::UInt | TypeKind::Int if sample % 4 == 3 && raw % 16 < 8 => {
            let offset = (raw >> 8) as i64 % 2;
            let end = if raw.is_multiple_of(2) { dtype.min_int() } else { dtype.max_int() };
            let inward = if raw.is_multiple_of(2) { offset } else { -offset };
            let value = end.unwrap_or_default() + i128::from(inward);
            Scalar::int(value as i64, dtype).bits()
        }
        TypeKind::UInt if sample % 4 != 3 => Scalar::int(small.abs(), dtype).bits(),
        _ if sample % 4 != 3 => Scalar::int(small, dtype).bits(),
        _ => Scalar::int(raw as i64, dtype).bits(),
    }
}

/// Whether two values count as the same.
pub fn agree(x: u64, y: u64, dtype: DType, reassociate: bool) -> bool {
    if x == y || !dtype.is_float() {
        return x == y;
    }
    let (x, y) = (scalar::to_f64(x, dtype), scalar::to_f64(y, dtype));
    if x == y || (x.is_nan() && y.is_nan()) {
        return true;
    }
    if !reassociate {
        return false;
    }
    // Another order may round differently, or overflow.
    let tolerance = match dtype.bits {
        64 => 1e-8,
        32 => 1e-3,
        _ => 0.1,
    };
    !x.is_finite() || !y.is_finite() || (x - y).abs() <= tolerance * x.abs().max(y.abs()).max(1.0)
}

/// The value of a term whose children have values.
fn evaluate(terms: &Terms, t: Term, worth: &[Worth]) -> Worth {
    match terms.node(t) {
        Node::Const(bits) => Worth::Bits(bits),
        Node::Input(..) | Node::Undef | Node::Unwritten => Worth::Undef,
        Node::Binary(op, dtype, [a, b]) => match (op, worth_of(a, worth), worth_of(b, worth)) {
            (BinOp::And, Worth::Bits(0), _) => Worth::Bits(0),
            (BinOp::Or, Worth::Bits(1), _) => Worth::Bits(1),
            (_, a, b) => of_both(a, b, &|x, y| scalar::binary(op, dtype, x, y)),
        },
        Node::Not(a) => {
            of_both(worth_of(a, worth), worth_of(a, worth), &|x, _| Ok(u64::from(x == 0)))
        }
        Node::Cast(from, a) => of_both(worth_of(a, worth), worth_of(a, worth), &|x, _| {
            Ok(scalar::cast(x, from, terms.dtype(t)))
        }),
        Node::Bits(from, a) => of_both(worth_of(a, worth), worth_of(a, worth), &|x, _| {
            Ok(scalar::reinterpret(x, from, terms.dtype(t)))
        }),
        Node::Ite(c, x, y) => match worth_of(c, worth) {
            Worth::Bits(0) => worth_of(y, worth),
            Worth::Bits(_) => worth_of(x, worth),
            other => other,
        },
        Node::Intrin(op, dtype, [a, b]) => {
            of_both(worth_of(a, worth), worth_of(b, worth), &|x, y| {
                scalar::intrinsic(op, dtype, x, y)
            })
        }
        Node::Many(op, list) => {
            let list = terms.list(list);
            let mut parts = list.iter().map(|t| worth_of(*t, worth));
            let first = parts.next().unwrap_or(Worth::Undef);
            let dtype = terms.dtype(t);
            parts.fold(first, |a, b| of_both(a, b, &|x, y| scalar::binary(op, dtype, x, y)))
        }
    }
}

fn of_both(a: Worth, b: Worth, f: &dyn Fn(u64, u64) -> Result<u64, scalar::Fault>) -> Worth {
    match (a, b) {
        (Worth::Bits(a), Worth::Bits(b)) => f(a, b).map_or(Worth::Fault, Worth::Bits),
        (Worth::Fault, _) | (_, Worth::Fault) => Worth::Fault,
        _ => Worth::Undef,
    }
}

/// A term as text, abbreviated; `names` are those of the parameters, with their shapes.
pub fn text(terms: &Terms, v: Val, dtype: DType, names: &[(String, Vec<usize>)]) -> String {
    let t = match v {
        Val::Known(bits) => return Scalar::from_bits(bits, dtype).to_string(),
        Val::Term(t) => t,
    };
    let mut budget = 24;
    write(terms, t, names, 8, &mut budget)
}

fn write(
    terms: &Terms,
    t: Term,
    names: &[(String, Vec<usize>)],
    depth: usize,
    budget: &mut usize,
) -> String {
    if depth == 0 || *budget == 0 {
        return "...".to_owned();
    }
    *budget -= 1;
    let mut sub = |t: Term| write(terms, t, names, depth - 1, budget);
    match terms.node(t) {
        Node::Const(bits) => Scalar::from_bits(bits, terms.dtype(t)).to_string(),
        Node::Input(param, at) => {
            let Some((name, shape)) = names.get(param as usize) else {
                return format!("input {param}");
            };
            format!("{name}{}", index_text(at as usize, shape))
        }
        Node::Undef => "undef".to_owned(),
        Node::Unwritten => "never written".to_owned(),
        Node::Not(a) => match terms.node(a) {
            Node::Binary(op @ (BinOp::Lt | BinOp::Le), dtype, [a, b]) if dtype.is_int() => {
                let op = if op == BinOp::Lt { BinOp::Ge } else { BinOp::Gt };
                binary_text(op, &[sub(a), sub(b)])
            }
            _ => format!("not {}", sub(a)),
        },
        Node::Bits(_, a) => format!("bits of {} as {}", sub(a), terms.dtype(t)),
        Node::Cast(_, a) => format!("{}({})", terms.dtype(t), sub(a)),
        Node::Ite(c, a, b) => {
            let (c, a, b) = (sub(c), sub(a), sub(b));
            format!("({a} if {c} else {b})")
        }
        Node::Intrin(op, _, [a, b]) => match op.arity() {
            1 => format!("{}({})", op.name(), sub(a)),
            _ => format!("{}({}, {})", op.name(), sub(a), sub(b)),
        },
        Node::Binary(op, ..) | Node::Many(op, _) => {
            let list = terms.operator(t).map_or(&[][..], |(_, _, list)| list);
            let mut parts: Vec<String> = list.iter().take(6).map(|t| sub(*t)).collect();
            if list.len() > 6 {
                parts.push("...".to_owned());
            }
            binary_text(op, &parts)
        }
    }
}

fn binary_text(op: BinOp, parts: &[String]) -> String {
    if op.is_infix() {
        format!("({})", parts.join(&format!(" {} ", op.symbol())))
    } else {
        format!("{}({})", op.symbol(), parts.join(", "))
    }
}

/// The indices of a position in row-major order, as in `[1, 2]`, or nothing for a scalar.
pub fn index_text(at: usize, shape: &[usize]) -> String {
    match shape {
        [] => String::new(),
        _ => format!("{:?}", index_of(at, shape)),
    }
}
