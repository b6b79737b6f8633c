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

mod inline;
mod offsets;
mod polynomial;
mod whole;

pub use inline::inlined;
use offsets::Flat;
pub use polynomial::ROUNDING;
use polynomial::{Monomial, Poly, constant, differences, number, plus, times};

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

/// The factor by which a tensor is another one, where one of them is no float, and the largest difference that
/// rounding makes, as a part of each element; `None` where there is none.
pub fn multiple_of(a: &Tensor, b: &Tensor) -> Option<(f64, f64)> {
    if a.shape() != b.shape() || a.dtype().is_float() == b.dtype().is_float() {
        return None;
    }
    let both = || (0..a.len()).map(|k| (a.get_f64(k), b.get_f64(k)));
    let (x, y) = both().max_by(|(_, x), (_, y)| x.abs().total_cmp(&y.abs()))?;
    let factor = x / y;
    let mut worst: f64 = 0.0;
    for (x, y) in both() {
        if x != y * factor {
            let part = (x - y * factor).abs() / x.abs().max((y * factor).abs());
            if part.is_nan() || part > ROUNDING {
                return None;
            }
            worst = worst.max(part);
        }
    }
    (factor.is_finite() && factor != 0.0).then_some((factor, worst))
}

/// The largest difference of two coefficients where the functions are equal in the reals; `None` where that is not
/// seen.
pub fn equal_in_reals(a: &TensorFunc, b: &TensorFunc) -> Option<f64> {
    equal_with_multiples(a, b, &HashMap::default())
}

/// [`equal_in_reals`] where some inputs of the second function, by position, are multiples of those of the
/// first.
pub fn equal_with_multiples(
    a: &TensorFunc,
    b: &TensorFunc,
    multiples: &HashMap<usize, f64>,
) -> Option<f64> {
    let mut reals = Reals::default();
    let mut sides = Vec::new();
    let none = HashMap::default();
    for (side, (func, multiples)) in [(a, &none), (b, multiples)].into_iter().enumerate() {
        sides.push(reals.side(side, func, multiples)?);
    }
    for (params, ..) in &mut sides {
        // These may have another type.
        for number in multiples.keys() {
            params.get_mut(*number)?.0 = DType::F64;
        }
    }
    let [(params, first, x), (others, second, y)] = &sides[..] else { return None };
    if params != others || first.len() != second.len() || x.0 != y.0 {
        return None;
    }
    let mut worst = reals.worst.max(differences(&constant(x.1), &constant(y.1))?);
    for (x, y) in first.iter().zip(second) {
        if x.dims != y.dims || x.indices != y.indices || x.sum != y.sum {
            return None;
        }
        worst = worst.max(differences(&x.value, &y.value)?);
    }
    Some(worst)
}

/// What is not taken apart.
#[derive(Clone, Debug, PartialEq)]
enum Atom {
    /// Anything that is equal where its text is.
    Text(String),
    /// The element of a buffer at some indices.
    Element(usize, Vec<String>),
    /// A function of polynomials.
    Of(String, Vec<Poly>),
}

/// A stage without names: what it stores, but for a factor.
struct Normal {
    dims: Vec<(Dim, IterKind)>,
    indices: Vec<String>,
    /// The operator and the first value, where it combines several.
    sum: Option<(BinOp, u64)>,
    value: Poly,
    /// Whether what it stores is that in the reals, as far as types of integers go.
    is_exact: bool,
}

/// The type and rank of each parameter, the stages, and the number and factor of the result.
type Side = (Vec<(DType, usize)>, Vec<Normal>, (usize, f64));

/// What is known of both functions.
#[derive(Default)]
struct Reals {
    atoms: Vec<Atom>,
    /// For both functions, the number of each buffer and the factor of its elements: parameters by position, then
    /// what stages make, in order.
    buffers: [HashMap<Buffer, (usize, f64)>; 2],
    /// Buffers by offsets.
    flat: Flat,
    /// The largest difference of coefficients of atoms that count as one.
    worst: f64,
}

impl Reals {
    /// A function without names.
    fn side(
        &mut self,
        side: usize,
        func: &TensorFunc,
        multiples: &HashMap<usize, f64>,
    ) -> Option<Side> {
        let params: Vec<&Buffer> = func.buffers().collect();
        let (result, inputs) = params.split_last()?;
        for (number, buffer) in inputs.iter().enumerate() {
            let factor = multiples.get(&number).copied().unwrap_or(1.0);
            self.know(side, buffer, (number, factor));
        }
        let mut normal: Vec<Normal> = Vec::new();
        for stage in inlined(func)? {
            // Factors are those of all elements.
            if self.buffers[side].contains_key(&stage.buffer) {
                return None;
            }
            let next = self.stage(side, &stage)?;
            // What is only a multiple of what is there is that, with a factor.
            let before = match (&next.sum, next.value.iter().next()) {
                (None, Some((m, c))) if next.value.len() == 1 => {
                    self.multiple(m, &next, &normal, inputs.len()).map(|k| (k, *c))
                }
                _ => None,
            };
            let (number, factor) = match before {
                Some((k, c)) => (inputs.len() + k, c),
                None => {
                    let mut next = next;
                    let is_sum = next.sum.is_none_or(|(op, first)| op == BinOp::Add && first == 0);
                    let is_sum = is_sum && next.is_exact;
                    let factor = if is_sum { *next.value.values().next()? } else { 1.0 };
                    next.value.values_mut().for_each(|c| *c /= factor);
                    normal.push(next);
                    (inputs.len() + normal.len() - 1, factor)
                }
            };
            self.know(side, &stage.buffer, (number, factor));
        }
        let result = *self.buffers[side].get(*result)?;
        let params = params.iter().map(|b| (b.dtype(), b.rank())).collect();
        Some((params, normal, result))
    }

    /// Notes what the elements of a buffer are.
    fn know(&mut self, side: usize, buffer: &Buffer, what: (usize, f64)) {
        let flat = self.flat.of(buffer);
        self.buffers[side].extend(flat.into_iter().chain([buffer.clone()]).map(|b| (b, what)));
    }

    /// The earlier stage of whose elements a stage stores multiples at the same places.
    fn multiple(
        &self,
        monomial: &Monomial,
        stage: &Normal,
        before: &[Normal],
        inputs: usize,
    ) -> Option<usize> {
        let [(atom, 1)] = monomial[..] else { return None };
        let Atom::Element(number, at) = &self.atoms[atom] else { return None };
        let k = number.checked_sub(inputs)?;
        let other = before.get(k)?;
        // It reads as many cells as were stored, and each of them is where it stores: all, then.
        let cells = |of: &Normal| {
            let spatial = of.dims.iter().filter(|(_, kind)| *kind == IterKind::Spatial);
            dim::product(spatial.map(|(n, _)| *n))
        };
        let is_same = stage.indices == *at && cells(stage) == cells(other);
        is_same.then_some(k)
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
        let named =
            named.map(|(k, (v, ..))| (v.clone(), Var::new(format!("i{k}"), v.dtype()).expr()));
        let first = single.iter().map(|(v, ..)| (v.clone(), Expr::int(0, v.dtype())));
        let mut names = Subst::vars(named.chain(first));
        let ranges = Ranges::default();
        let at: Vec<Expr> = at.iter().map(|e| simplify(&names.expr(e), &ranges)).collect();
        let buffer = self.flat.of(&stage.buffer).unwrap_or_else(|| stage.buffer.clone());
        let mut indices: Vec<String> = long(&buffer, &at).map(ToString::to_string).collect();
        let value = simplify_indices(&names.expr(&value), &ranges);
        let dims: Vec<_> = axes.into_iter().map(|(_, n, kind)| (n, kind)).collect();
        let is_exact = sum.is_none() || self.is_exact_sum(side, &value, &dims);
        if !is_exact {
            // What is added up may leave the type, and is then another number than in another type.
            indices.push(format!("in {}", value.dtype()));
        }
        Some(Normal { dims, indices, sum, value: self.poly(side, &value)?, is_exact })
    }

    /// The number of an atom.
    fn atom(&mut self, atom: Atom) -> usize {
        let known = self.atoms.iter().enumerate().find_map(|(k, other)| {
            let rounding = match (other, &atom) {
                (Atom::Text(a), Atom::Text(b)) if a == b => Some(0.0),
                (Atom::Element(n, a), Atom::Element(m, b)) if n == m && a == b => Some(0.0),
                (Atom::Of(f, p), Atom::Of(g, q)) if f == g && p.len() == q.len() => {
                    let mut all = p.iter().zip(q).map(|(p, q)| differences(p, q));
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
                let (number, factor) = *self.buffers[side].get(buffer)?;
                let at: Option<Vec<String>> =
                    long(buffer, at).map(|i| self.text(side, i)).collect();
                let element = self.of_atom(Atom::Element(number, at?));
                Some(times(&element, &constant(factor))?)
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

    /// A condition: of integers as it is written, of floats by what it compares.
    fn poly_of_condition(&mut self, side: usize, e: &Expr) -> Option<Poly> {
        match e.kind() {
            ExprKind::Binary(op, a, b) if op.is_compare() && a.dtype().is_float() => {
                let parts = vec![self.poly(side, a)?, self.poly(side, b)?];
                Some(self.of_atom(Atom::Of(format!("{op:?}"), parts)))
            }
            ExprKind::Binary(op, a, b) if op.is_logic() => {
                let parts =
                    vec![self.poly_of_condition(side, a)?, self.poly_of_condition(side, b)?];
                Some(self.of_atom(Atom::Of(format!("{op:?}"), parts)))
            }
            ExprKind::Not(a) => {
                let parts = vec![self.poly_of_condition(side, a)?];
                Some(self.of_atom(Atom::Of("not".to_owned(), parts)))
            }
            _ => self.poly(side, e),
        }
    }

    /// A choice: what the second side adds as a number, both do.
    fn choice(&mut self, c: Poly, t: Poly, f: Poly) -> Poly {
        let shift = constant(f.get(&Vec::new()).copied().unwrap_or(0.0));
        let (t, f) = (plus(t, &shift, -1.0), plus(f, &shift, -1.0));
        let chosen = self.of_atom(Atom::Of("select".to_owned(), vec![c, t, f]));
        plus(chosen, &shift, 1.0)
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
                // What is added to the one, where the other one is a number, is added to the result.
                let added = |p: &Poly| p.get(&Vec::new()).copied().unwrap_or(0.0);
                let shift = match (number(&a), number(&b)) {
                    (None, Some(_)) => added(&a),
                    (Some(_), None) => added(&b),
                    _ => 0.0,
                };
                let shift = constant(shift);
                let (a, b) = (plus(a, &shift, -1.0), plus(b, &shift, -1.0));
                // A positive factor of both goes out.
                let factor = [&a, &b].into_iter().find_map(|p| p.values().next()).map(|c| c.abs());
                let factor = factor.unwrap_or(1.0);
                let inside = constant(1.0 / factor);
                let mut parts = vec![times(&a, &inside)?, times(&b, &inside)?];
                // Which one comes first does not matter.
                parts.sort_by(|p, q| p.keys().cmp(q.keys()));
                let largest = self.of_atom(Atom::Of(format!("{op:?}"), parts));
                Some(plus(times(&largest, &constant(factor))?, &shift, 1.0))
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
        let normal = p.iter().map(|(m, c)| (m.clone(), c / factor)).collect();
        let sum = self.atom(Atom::Of("sum".to_owned(), vec![normal]));
        Some(Poly::from([(vec![(sum, -1)], 1.0 / factor)]))
    }

    fn intrin(&mut self, op: Intrin, args: Vec<Poly>) -> Option<Poly> {
        let root = |reals: &mut Reals, p: Poly| reals.of_atom(Atom::Of("Sqrt".to_owned(), vec![p]));
        match (op, &args[..]) {
            _ if op.is_hint() => args.into_iter().next(),
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
            Some((number, 1.0)) if buffer.dtype().is_int() || buffer.dtype().is_bool() => {
                texts.push(format!("{number}{at:?}"));
            }
            _ => known = false,
        });
        // Names of buffers say nothing, their numbers in order do.
        let plain =
            if texts.is_empty() { e.to_string() } else { format!("{e} of {}", texts.join(", ")) };
        known.then_some(plain)
    }
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
