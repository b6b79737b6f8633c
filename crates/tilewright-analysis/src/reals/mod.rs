//! Whether two tensor functions are equal in the reals: sums and products in any order, divisions by constants as
//! products, constants of floats up to their rounding.
//!
//! Stages are compared one by one, by the offsets of what they access (`offsets`). What a stage stores is a
//! polynomial over *atoms* (`polynomial`): elements of buffers, and functions of polynomials. Atoms of both functions
//! have one numbering, and two are one where their parts are equal. A constant factor of all that a sum adds up goes
//! out of the sum, to where the sum is read.
//!
//! Coefficients are compared as floats are: two that differ by at most [`ROUNDING`] of the larger one count as
//! one number that was rounded differently, and the largest such difference is said. Everything else must be
//! the same; a no says nothing.

use tilewright_ir::hash::HashMap;

use tilewright_ir::index::{Ranges, simplify, simplify_indices};
use tilewright_ir::visit::Subst;
use tilewright_ir::{
    BinOp, Buffer, CallTarget, DType, Dim, Expr, ExprKind, Fold, Intrin, IterKind, Tensor,
    TensorFunc, Var, dim,
};

use crate::stage::Stage;

mod clamp;
mod conditions;
mod inline;
mod known;
mod offsets;
mod polynomial;
mod rounding;
mod steps;
mod whole;

pub use inline::inlined;
use known::{Constant, Number, Offset};
use offsets::Flat;
pub use polynomial::ROUNDING;
use polynomial::{Poly, constant, number, plus, times};
use steps::Step;

/// The largest power that is multiplied out.
const POWER: f64 = 4.0;

/// The largest difference of two tensors of floats of one shape, as a part of the largest value; `None` where they are
/// no roundings of the same numbers.
pub fn rounding_of(a: &Tensor, b: &Tensor) -> Option<f64> {
    if a.dtype() != b.dtype() || a.shape() != b.shape() || !a.dtype().is_float() {
        return None;
    }
    let both = || (0..a.len()).map(|k| (a.get_f64(k), b.get_f64(k)));
    let largest = both().fold(0.0, |most: f64, (x, y)| most.max(x.abs()).max(y.abs()));
    let mut worst: f64 = 0.0;
    for (x, y) in both() {
        if x == y || x.is_nan() && y.is_nan() {
            continue;
        }
        let part = (x - y).abs() / largest;
        if part.is_nan() || part > ROUNDING {
            return None;
        }
        worst = worst.max(part);
    }
    Some(worst)
}

/// The largest difference of two coefficients where the functions are equal in the reals; `None` where that is not
/// seen.
pub fn equal_in_reals(a: &TensorFunc, b: &TensorFunc) -> Option<f64> {
    equal_with_constants((a, &[]), (b, &[]))
}

/// [`equal_in_reals`] where the last inputs of each function, before the result, are constants.
pub fn equal_with_constants(
    a: (&TensorFunc, &[Tensor]),
    b: (&TensorFunc, &[Tensor]),
) -> Option<f64> {
    let mut reals = Reals::default();
    let mut sides = Vec::new();
    for (side, (func, constants)) in [a, b].into_iter().enumerate() {
        sides.push(reals.side(side, func, constants)?);
    }
    let [x, y] = &sides[..] else { return None };
    let is_alike = x.params == y.params && x.stages.len() == y.stages.len();
    let (left, right) = (&x.result, &y.result);
    if !is_alike || left.number != right.number {
        return None;
    }
    let mut worst = reals.worst;
    worst = worst.max(reals.difference_of_numbers(&left.factor, &right.factor)?);
    worst = worst.max(reals.difference_of_numbers(&left.shift, &right.shift)?);
    worst = worst.max(steps::differences(&left.steps, &right.steps)?);
    for (x, y) in x.stages.iter().zip(&y.stages) {
        if x.dims != y.dims || x.indices != y.indices || x.sum != y.sum {
            return None;
        }
        reals.dims = x.dims.iter().map(|(n, _)| *n).collect();
        worst = worst.max(reals.differences(&x.value, &y.value)?);
    }
    Some(worst)
}

/// The number that a function of one result makes of anything, in the reals: a softmax over one element gives 1. `None`
/// where it makes others, or that is not seen.
pub fn number_made(func: &TensorFunc) -> Option<f64> {
    let result = func.buffers().last()?;
    let stages = inlined(func)?;
    let (last, before) = stages.split_last()?;
    let is_whole = last.buffer == *result && last.init.is_none() && last.covers_buffer().is_some();
    if !is_whole || before.iter().any(|stage| stage.buffer == *result) {
        return None;
    }
    let mut reals = Reals::default();
    let inputs = func.buffers().count().checked_sub(1)?;
    for (number, buffer) in func.buffers().take(inputs).enumerate() {
        reals.know(0, buffer, &Elements::Made(Made::plain(number)));
    }
    for (k, stage) in before.iter().enumerate() {
        reals.know(0, &stage.buffer, &Elements::Made(Made::plain(inputs + k)));
    }
    number(&reals.stage(0, last)?.value)
}

/// What is not taken apart.
#[derive(Clone, Debug, PartialEq)]
enum Atom {
    /// Anything that is equal where its text is.
    Text(String),
    /// The element of a buffer at some indices.
    Element(usize, Vec<String>),
    /// That of a constant.
    Constant(usize, Offset),
    /// A function of polynomials.
    Of(String, Vec<Poly>),
}

/// A stage without names: what it stores, but for a factor and what is added.
struct Normal {
    dims: Vec<(Dim, IterKind)>,
    indices: Vec<String>,
    /// The indices with those along axes of one element.
    at: Vec<Expr>,
    /// The operator and the first value, where it combines several.
    sum: Option<(BinOp, u64)>,
    value: Poly,
    /// Whether what it stores is that in the reals, as far as types of integers go.
    is_exact: bool,
    /// Between which integers it lies, if it is one.
    whole: Option<(i128, i128)>,
}

impl Normal {
    /// Whether it combines something, for each element.
    fn is_some(&self) -> bool {
        self.dims.iter().all(|(n, _)| n.known().is_some_and(|n| n > 0))
    }
}

/// What the elements of a buffer are.
#[derive(Clone)]
enum Elements {
    Made(Made),
    /// Those of a constant.
    Constant(usize),
}

/// Elements of parameters by position, then of what stages make, in order; times a factor, with a number added, and
/// what is then done to each.
#[derive(Clone)]
struct Made {
    number: usize,
    factor: Number,
    shift: Number,
    steps: Vec<Step>,
}

impl Made {
    fn plain(number: usize) -> Made {
        Made { number, factor: (1.0, None), shift: (0.0, None), steps: Vec::new() }
    }

    fn is_plain(&self) -> bool {
        self.factor == (1.0, None) && self.shift == (0.0, None) && self.steps.is_empty()
    }
}

/// A function without names.
struct Side {
    /// The type and rank of each parameter but those that are constants.
    params: Vec<(DType, usize)>,
    stages: Vec<Normal>,
    result: Made,
}

/// What is known of both functions.
#[derive(Default)]
struct Reals {
    atoms: Vec<Atom>,
    buffers: [HashMap<Buffer, Elements>; 2],
    /// Buffers by offsets.
    flat: Flat,
    constants: Vec<Constant>,
    /// The axes of the stage that is looked at: their extents, and their numbers by variable.
    dims: Vec<Dim>,
    axes: HashMap<u64, usize>,
    /// Atoms that are integers, with the least and the largest one.
    integers: HashMap<usize, (i128, i128)>,
    /// What stages make, by number, that is an integer where it is multiplied by a factor, with the least and the largest one.
    integer_elements: HashMap<usize, (f64, i128, i128)>,
    /// The largest difference of coefficients of atoms that count as one.
    worst: f64,
}

impl Reals {
    /// A function without names, of which the last inputs are constants.
    fn side(&mut self, side: usize, func: &TensorFunc, constants: &[Tensor]) -> Option<Side> {
        let all: Vec<&Buffer> = func.buffers().collect();
        let (result, inputs) = all.split_last()?;
        let (inputs, known) = inputs.split_at(inputs.len().checked_sub(constants.len())?);
        for (number, buffer) in inputs.iter().enumerate() {
            self.know(side, buffer, &Elements::Made(Made::plain(number)));
        }
        for (t, buffer) in constants.iter().zip(known) {
            let constant = Elements::Constant(self.know_constant(t));
            self.know(side, buffer, &constant);
        }
        let mut stages: Vec<Normal> = Vec::new();
        for stage in inlined(func)? {
            // Factors are those of all elements.
            if self.buffers[side].contains_key(&stage.buffer) {
                return None;
            }
            let next = self.stage(side, &stage)?;
            // What is only a multiple of what is there is that, with a factor.
            let made = match self.line(&next, &stages, inputs.len()) {
                Some(made) => made,
                None => {
                    let (next, made) = self.normal(side, next, inputs.len() + stages.len())?;
                    stages.push(next);
                    made
                }
            };
            self.know(side, &stage.buffer, &Elements::Made(made));
        }
        let Elements::Made(made) = self.buffers[side].get(*result)? else { return None };
        let params = inputs.iter().chain([result]).map(|b| (b.dtype(), b.rank())).collect();
        Some(Side { params, stages, result: made.clone() })
    }

    /// Notes what the elements of a buffer are.
    fn know(&mut self, side: usize, buffer: &Buffer, what: &Elements) {
        let flat = self.flat.of(buffer).into_iter().chain([buffer.clone()]);
        self.buffers[side].extend(flat.map(|b| (b, what.clone())));
    }

    /// The elements of an earlier stage of which a stage stores multiples at the same places.
    fn line(&mut self, stage: &Normal, before: &[Normal], inputs: usize) -> Option<Made> {
        if stage.sum.is_some() {
            return None;
        }
        let (steps, value) = self.peeled(stage.value.clone(), false);
        let (atom, factor, shift) = self.line_of(&stage.at, &value)?;
        let Atom::Element(number, at) = &self.atoms[atom] else { return None };
        let other = before.get(number.checked_sub(inputs)?)?;
        // It reads as many cells as were stored, and each of them is where it stores: all, then.
        let cells = |of: &Normal| {
            let spatial = of.dims.iter().filter(|(_, kind)| *kind == IterKind::Spatial);
            dim::product(spatial.map(|(n, _)| *n))
        };
        let is_same = stage.indices == *at && cells(stage) == cells(other);
        is_same.then_some(Made { number: *number, factor, shift, steps })
    }

    /// A stage without what all that it combines has in common, which is known of its elements.
    fn normal(&mut self, side: usize, mut next: Normal, number: usize) -> Option<(Normal, Made)> {
        let mut made = Made::plain(number);
        let mut whole = next.whole.map(|(low, high)| (1.0, low, high));
        match next.sum {
            _ if !next.is_exact => {}
            Some((op @ (BinOp::Max | BinOp::Min), first)) => {
                let is_most = op == BinOp::Max;
                let first = f64::from_bits(first);
                let first = if is_most { steps::lowest(first) } else { first };
                next.sum = Some((op, first.to_bits()));
                if is_most && let Some(most) = self.out_of_maximum(&next, first) {
                    next.sum = Some((op, f64::NEG_INFINITY.to_bits()));
                    (next.value, made.steps, whole) = (most.of, most.steps, None);
                    (made.factor.0, made.shift.0) = most.line;
                } else if let Some((factor, shift)) = plain_line(&next.value)
                    && !self.has_constants(&next.value)
                {
                    next.value = plus(next.value, &constant(-shift), 1.0);
                    next.value = times(&next.value, &constant(1.0 / factor))?;
                    let mut first = (first - shift) / factor;
                    whole = self.ends_of_integer(&next.value);
                    // Nothing that is combined is beyond it.
                    if let Some((_, low, high)) = whole.filter(|_| next.is_some()) {
                        first = match op {
                            BinOp::Max if first <= low as f64 => f64::NEG_INFINITY,
                            BinOp::Min if first >= high as f64 => f64::INFINITY,
                            _ => first,
                        };
                    }
                    whole = whole.filter(|_| first.is_infinite());
                    next.sum = Some((op, first.to_bits()));
                    (made.factor.0, made.shift.0) = (factor, shift);
                }
            }
            Some((op, first)) if op != BinOp::Add || first != 0 => {}
            sum => {
                let kinds = next.dims.iter().map(|(_, kind)| *kind != IterKind::Spatial);
                let reduced: Vec<bool> = kinds.collect();
                let split = match sum {
                    Some(_) => self.out_of_sum(&next.at, &reduced, &next.value),
                    None => None,
                };
                match split {
                    Some(split) => {
                        let scale = (1.0, split.scale);
                        next.value = self.divided_by(side, &split.rest, &scale, &next.at)?;
                        next.value = times(&next.value, &constant(1.0 / split.factor))?;
                        made.factor = (split.factor, scale.1);
                        made.shift = split.shift;
                    }
                    // What constants multiply is told where it is read.
                    None if self.has_constants(&next.value) => {}
                    None => {
                        let factor = *next.value.values().next()?;
                        next.value = times(&next.value, &constant(1.0 / factor))?;
                        made.factor.0 = factor;
                    }
                }
                let stored = self.ends_of_stage(&next.value, sum, &next.dims);
                whole = match (stored, &made.factor, &made.shift) {
                    (Some((low, high)), ..) => Some((1.0, low, high)),
                    (None, (factor, None), (0.0, None)) => whole.map(|(_, a, b)| (*factor, a, b)),
                    _ => None,
                };
            }
        }
        if let Some(whole) = whole {
            self.integer_elements.insert(number, whole);
        }
        Some((next, made))
    }

    fn stage(&mut self, side: usize, stage: &Stage) -> Option<Normal> {
        let (value, sum) = match &stage.init {
            None => (stage.value.clone(), None),
            Some(first) => {
                let reduction = stage.reduction()?;
                (reduction.value, Some((reduction.op, starts(first)?.to_bits())))
            }
        };
        let (axes, at, value) = offsets::normal(stage, &value, &mut self.flat);
        // An axis of one element says nothing.
        let (single, axes): (Vec<_>, Vec<_>) = axes.into_iter().partition(|(_, n, _)| *n == 1);
        let named = axes.iter().enumerate();
        let named: Vec<(Var, Var)> =
            named.map(|(k, (v, ..))| (v.clone(), Var::new(format!("i{k}"), v.dtype()))).collect();
        self.axes = named.iter().enumerate().map(|(k, (_, new))| (new.id(), k)).collect();
        let named = named.into_iter().map(|(old, new)| (old, new.expr()));
        let first = single.iter().map(|(v, ..)| (v.clone(), Expr::int(0, v.dtype())));
        let mut names = Subst::vars(named.chain(first));
        let ranges = Ranges::default();
        let at: Vec<Expr> = at.iter().map(|e| simplify(&names.expr(e), &ranges)).collect();
        let buffer = self.flat.of(&stage.buffer).unwrap_or_else(|| stage.buffer.clone());
        let mut indices: Vec<String> = long(&buffer, &at).map(ToString::to_string).collect();
        let value = simplify_indices(&names.expr(&value), &ranges);
        let dims: Vec<_> = axes.into_iter().map(|(_, n, kind)| (n, kind)).collect();
        self.dims = dims.iter().map(|(n, _)| *n).collect();
        let is_exact = match sum {
            None => true,
            Some((BinOp::Max | BinOp::Min, _)) if value.dtype().is_float() => true,
            Some((BinOp::Max | BinOp::Min, _)) => self.whole(side, &value).is_some(),
            Some(_) => self.is_exact_sum(side, &value, &dims),
        };
        if !is_exact {
            // What is added up may leave the type, and is then another number than in another type.
            indices.push(format!("in {}", value.dtype()));
        }
        let poly = self.poly(side, &value)?;
        let whole = self.ends_of_stage(&poly, sum, &dims);
        Some(Normal { dims, indices, at, sum, value: poly, is_exact, whole })
    }

    /// The number of an atom.
    fn atom(&mut self, atom: Atom) -> usize {
        let known = self.atoms.iter().enumerate().find_map(|(k, other)| {
            let rounding = match (other, &atom) {
                (Atom::Constant(n, a), Atom::Constant(m, b)) if n == m && a == b => Some(0.0),
                (Atom::Text(a), Atom::Text(b)) if a == b => Some(0.0),
                (Atom::Element(n, a), Atom::Element(m, b)) if n == m && a == b => Some(0.0),
                (Atom::Of(f, p), Atom::Of(g, q)) if f == g && p.len() == q.len() => {
                    let mut all = p.iter().zip(q).map(|(p, q)| self.differences(p, q));
                    all.try_fold(0.0, |most: f64, part| Some(most.max(part?)))
                }
                _ => None,
            };
            Some((k, rounding?))
        });
        match known {
            Some((k, rounding)) => {
                self.worst = self.worst.max(rounding);
                k
            }
            None => {
                self.atoms.push(atom);
                self.atoms.len() - 1
            }
        }
    }

    fn of_atom(&mut self, atom: Atom) -> Poly {
        Poly::from([(vec![(self.atom(atom), 1)], 1.0)])
    }

    /// An expression as a polynomial; of integers and conditions as an atom.
    fn poly(&mut self, side: usize, e: &Expr) -> Option<Poly> {
        if conditions::is_of_floats(e) {
            return self.poly_of_condition(side, e);
        }
        if !e.dtype().is_float() {
            return match self.whole(side, e) {
                Some(whole) => Some(whole.value),
                None => {
                    let text = self.text(side, e)?;
                    Some(self.of_atom(Atom::Text(text)))
                }
            };
        }
        match e.kind() {
            ExprKind::Float(_) => Some(constant(e.as_float()?)),
            ExprKind::Load(buffer, at) => {
                let known = self.buffers[side].get(buffer)?.clone();
                self.element(side, &known, buffer, at)
            }
            // Rounding on the way is none of the reals'.
            ExprKind::Cast(inner) if inner.dtype().is_float() => self.poly(side, inner),
            ExprKind::Cast(inner) => self.poly(side, inner),
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (self.poly(side, a)?, self.poly(side, b)?);
                self.binary(*op, a, b)
            }
            ExprKind::Select(c, t, f) | ExprKind::IfThenElse(c, t, f) => {
                let c = self.poly_of_condition(side, c)?;
                let (t, f) = (self.poly(side, t)?, self.poly(side, f)?);
                Some(self.choice(c, t, f))
            }
            ExprKind::Call(CallTarget::Intrin(op), args) => {
                let args =
                    args.iter().map(|a| self.poly(side, a)).collect::<Option<Vec<Poly>>>()?;
                self.intrin(*op, args)
            }
            _ => None,
        }
    }

    /// The element of a buffer.
    fn element(
        &mut self,
        side: usize,
        known: &Elements,
        buffer: &Buffer,
        at: &[Expr],
    ) -> Option<Poly> {
        match known {
            Elements::Constant(id) => {
                // A constant has one axis, or none.
                let mut offset = Offset::default();
                for index in long(buffer, at) {
                    if offset != Offset::default() {
                        return None;
                    }
                    offset = self.offset(side, index)?;
                }
                Some(self.element_of_constant(*id, offset))
            }
            Elements::Made(made) => {
                let places: Option<Vec<String>> =
                    long(buffer, at).map(|i| self.text(side, i)).collect();
                let element = self.of_atom(Atom::Element(made.number, places?));
                let factor = self.number_at(side, &made.factor, at)?;
                let shift = self.number_at(side, &made.shift, at)?;
                let line = plus(times(&element, &factor)?, &shift, 1.0);
                made.steps.iter().try_fold(line, |x, step| self.after(step, x))
            }
        }
    }

    fn binary(&mut self, op: BinOp, a: Poly, b: Poly) -> Option<Poly> {
        match op {
            BinOp::Add => Some(plus(a, &b, 1.0)),
            BinOp::Sub => Some(plus(a, &b, -1.0)),
            BinOp::Mul => times(&a, &b),
            BinOp::Div => {
                let inverse = self.inverse(&b)?;
                times(&a, &inverse)
            }
            BinOp::Min | BinOp::Max => {
                if let Some(inside) = self.within(op, &a, &b) {
                    return Some(inside);
                }
                let is_least = op == BinOp::Min;
                let both = [a, b];
                let pick = |v: &[f64]| if is_least { v[0].min(v[1]) } else { v[0].max(v[1]) };
                if let Some(known) = self.evaluated(&both, pick) {
                    return Some(known);
                }
                let [a, b] = both;
                if let Some(held) = self.with_number(op, &a, &b) {
                    return Some(held);
                }
                // A positive factor of both goes out.
                let factor = [&a, &b].into_iter().find_map(|p| p.values().next()).map(|c| c.abs());
                let has_known = self.has_constants(&a) || self.has_constants(&b);
                let factor = factor.filter(|_| !has_known).unwrap_or(1.0);
                let inside = constant(1.0 / factor);
                let mut parts = vec![times(&a, &inside)?, times(&b, &inside)?];
                // Which one comes first does not matter.
                parts.sort_by_cached_key(|p| self.coefficients(p).into_keys().collect::<Vec<_>>());
                let largest = self.of_atom(Atom::Of(format!("{op:?}"), parts));
                times(&largest, &constant(factor))
            }
            _ => None,
        }
    }

    /// One over a polynomial, which is not zero where it is divided by.
    fn inverse(&mut self, p: &Poly) -> Option<Poly> {
        let (first, factor) = p.iter().next()?;
        if p.len() == 1 {
            let powers = first.iter().map(|(atom, power)| (*atom, -power)).collect();
            return Some(Poly::from([(powers, 1.0 / factor)]));
        }
        if let Some(known) = self.evaluated(std::slice::from_ref(p), |v| 1.0 / v[0]) {
            return Some(known);
        }
        let factor = if self.has_constants(p) { &1.0 } else { factor };
        let normal = p.iter().map(|(m, c)| (m.clone(), c / factor)).collect();
        let sum = self.atom(Atom::Of("sum".to_owned(), vec![normal]));
        Some(Poly::from([(vec![(sum, -1)], 1.0 / factor)]))
    }

    fn intrin(&mut self, op: Intrin, args: Vec<Poly>) -> Option<Poly> {
        let root = |reals: &mut Reals, p: Poly| reals.of_atom(Atom::Of("Sqrt".to_owned(), vec![p]));
        match (op, &args[..]) {
            _ if op.is_hint() => args.into_iter().next(),
            (Intrin::NearbyInt | Intrin::Round, [x]) => {
                let x = x.clone();
                self.rounded(op, x)
            }
            (Intrin::Rsqrt, [x]) => {
                let root = root(self, x.clone());
                self.inverse(&root)
            }
            (Intrin::Sigmoid, [x]) => {
                let minus = times(x, &constant(-1.0))?;
                let power = self.of_atom(Atom::Of(format!("{:?}", Intrin::Exp), vec![minus]));
                self.inverse(&plus(power, &constant(1.0), 1.0))
            }
            (Intrin::Pow, [x, y]) => match number(y) {
                Some(0.5) => Some(root(self, x.clone())),
                Some(n) if n.fract() == 0.0 && (1.0..=POWER).contains(&n) => {
                    (1..n as usize).try_fold(x.clone(), |all, _| times(&all, x))
                }
                _ => Some(self.of_atom(Atom::Of(format!("{op:?}"), args))),
            },
            _ => Some(self.of_atom(Atom::Of(format!("{op:?}"), args))),
        }
    }

    /// An expression of integers as text, in which buffers have their numbers.
    fn text(&self, side: usize, e: &Expr) -> Option<String> {
        let mut known = true;
        let mut texts = Vec::new();
        e.for_each_load(|buffer, at| match self.buffers[side].get(buffer) {
            _ if !(buffer.dtype().is_int() || buffer.dtype().is_bool()) => known = false,
            Some(Elements::Made(made)) if made.is_plain() => {
                texts.push(format!("{}{at:?}", made.number));
            }
            Some(Elements::Constant(id)) => texts.push(format!("constant {id}{at:?}")),
            _ => known = false,
        });
        // Names of buffers say nothing, their numbers in order do.
        let plain =
            if texts.is_empty() { e.to_string() } else { format!("{e} of {}", texts.join(", ")) };
        known.then_some(plain)
    }
}

/// The positive factor of what is not added, and the number that is.
fn plain_line(p: &Poly) -> Option<(f64, f64)> {
    let added = p.get(&Vec::new()).copied().unwrap_or(0.0);
    let (_, factor) = p.iter().find(|(m, _)| !m.is_empty())?;
    (factor.is_finite() && added.is_finite()).then_some((factor.abs(), added))
}

/// The number that a reduction begins with.
fn starts(e: &Expr) -> Option<f64> {
    e.as_float().or_else(|| e.as_int().map(|v| v as f64))
}

/// The indices along axes of more than one element.
fn long<'e>(buffer: &'e Buffer, at: &'e [Expr]) -> impl Iterator<Item = &'e Expr> {
    let all = at.iter().zip(&buffer.shape);
    all.filter(|(_, extent)| extent.as_int() != Some(1)).map(|(index, _)| index)
}
