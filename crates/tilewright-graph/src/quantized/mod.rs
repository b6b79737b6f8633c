//! Products of numbers that 8-bit integers stand for become products of the integers.
//!
//! A quantised model keeps its tensors as integers that stand for `(q - zero) * scale`, and computes
//! with these numbers. Where both operands of a sum of products are such numbers, and no scale changes
//! within the sum, the scales leave it:
//!
//! ```text
//! sum(((a - za) * sa) * ((w - zw) * sw))  ->  sum((a - za) * (w - zw)) * (sa * sw)
//! ```
//!
//! The sum on the right is one of integers in `int32`, as of `ConvInteger` and `MatMulInteger`. It is
//! refused where that could overflow. Both sides are the same number; the left one is rounded to
//! `float32` at every step, and the right one only behind the sum, so that it is the more exact one. It is
//! also what ONNX Runtime computes. Further:
//!
//! * An addend whose integers have the scale of the sums is added to these, as integers.
//! * A division of the result by a constant divides the scale instead, also behind `max(x, 0)`.
//! * What only selects elements, or the largest ones (reordering, joining, pooling by maxima), selects
//!   integers. That is exact: scales are positive.
//! * Quantising what was just dequantised by the same scale and zero point is nothing. That is exact.
//!
//! Scales and zero points are constants; everything is found from what functions compute. What is left of
//! a conversion of constants is folded. `recognise` finds the parts, `build` makes the functions.

mod build;
mod recognise;

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::{
    Binding, Buffer, DType, GraphExpr, GraphFunc, GraphVar, Module, Remarks, Result, Tensor,
    TensorFunc,
};
use tilewright_transform::pass::{Pass, Run};

use self::build::{Addend, Integers};
use self::recognise::{Dequantise, Division, Product, Quantise};
use crate::call_sizes::unify_sizes;
use crate::fold::{Evaluate, fold_calls, interpret};
use crate::functions::{Functions, rewritten};
use crate::normal::{Constants, needed, needed_ids, one_block, var};
use crate::rewrite::{GraphFold, fold_children};
use crate::stages::result_type;

/// `integer_products` by name.
pub const PASS: Pass = Pass {
    name: "integer_products",
    summary: "make products of numbers that 8-bit integers stand for products of these integers",
    options: &[],
    run: Run::Module(|module, _, why| integer_products(module, &mut interpret, why)),
};

/// The largest product of two 8-bit integers less their zero points.
const LARGEST: u64 = 255 * 255;

/// Computes products of dequantised numbers by their integers in every graph function of a module.
///
/// # Errors
/// Those of [`normalize`](crate::normal::normalize) and [`unify_sizes`].
pub fn integer_products(
    module: &Module,
    evaluate: &mut Evaluate<'_>,
    why: &mut Remarks,
) -> Result<Module> {
    if !module.tensors().any(|(_, f)| Dequantise::recognise(f).is_some()) {
        return Ok(module.clone());
    }
    let (mut facts, mut made) = (HashMap::default(), HashSet::default());
    let new = rewritten(&unify_sizes(module)?, |functions, normal| {
        State { functions, facts: &mut facts, made: &mut made }.graph(normal)
    })?;
    made.extend(facts.iter().filter(|f| f.1.dequantise.is_some()).map(|f| f.0.clone()));
    fold_calls(&new, &mut |name, _| made.contains(name), evaluate, why)
}

/// What is known of a function.
#[derive(Default)]
struct Facts {
    dequantise: Option<Dequantise>,
    quantise: Option<Quantise>,
    product: Option<Product>,
    division: Option<Division>,
    selects: bool,
    clips: bool,
}

/// A value whose elements integers stand for.
#[derive(Clone)]
struct Numbers {
    integers: GraphExpr,
    dtype: DType,
    scale: Tensor,
    /// Where it is not zero.
    zero: Option<Tensor>,
    /// The axis along which scale and zero point are lists.
    axis: Option<usize>,
}

impl Numbers {
    fn is_byte(&self) -> bool {
        matches!(self.dtype, DType::I8 | DType::U8)
    }

    /// Whether integers of one stand for the same numbers as those of the other.
    fn agree(&self, other: &Numbers) -> bool {
        same_zero(self.zero.as_ref(), other.zero.as_ref())
            && self.dtype == other.dtype
            && self.axis == other.axis
            && same(&self.scale, &other.scale)
    }
}

/// Whether two lists have the same elements, whatever their shape.
fn same(a: &Tensor, b: &Tensor) -> bool {
    a.dtype() == b.dtype() && a.bytes() == b.bytes()
}

/// A value that is sums of integers times factors.
struct Rescaled {
    /// The binding.
    at: usize,
    /// The factors, from the second argument on.
    factors: usize,
}

struct State<'f, 'm> {
    functions: &'f mut Functions<'m>,
    facts: &'f mut HashMap<Arc<str>, Facts>,
    /// Functions whose calls of constants are to be folded.
    made: &'f mut HashSet<Arc<str>>,
}

/// A graph function while it is rewritten.
#[derive(Default)]
struct Graph {
    bindings: Vec<Binding>,
    constants: Constants,
    readers: HashMap<u64, usize>,
    numbers: HashMap<u64, Numbers>,
    /// Values that are others.
    same: HashMap<u64, GraphExpr>,
    rescaled: HashMap<u64, Rescaled>,
    /// Values that are clipped at zero, and what of.
    clipped: HashMap<u64, u64>,
}

/// An expression whose variables may be others.
impl GraphFold for Graph {
    fn expr(&mut self, e: &GraphExpr) -> Result<GraphExpr> {
        match e {
            GraphExpr::Var(v) => Ok(self.same.get(&v.id()).unwrap_or(e).clone()),
            _ => fold_children(self, e),
        }
    }
}

impl Graph {
    fn is_read_once(&self, v: u64) -> bool {
        self.readers.get(&v) == Some(&1)
    }

    fn numbers(&self, e: &GraphExpr) -> Option<&Numbers> {
        self.numbers.get(&var(e)?.id())
    }
}

/// The call of a tensor function with one result.
struct Call {
    name: Arc<str>,
    func: Arc<TensorFunc>,
    args: Vec<GraphExpr>,
}

impl State<'_, '_> {
    fn facts(&mut self, name: &Arc<str>) -> Option<&Facts> {
        if !self.facts.contains_key(name) {
            let func = self.functions.get(name)?.clone();
            let facts = Facts {
                dequantise: Dequantise::recognise(&func),
                quantise: Quantise::recognise(&func),
                product: Product::recognise(&func),
                division: Division::recognise(&func),
                selects: recognise::selects(&func),
                clips: recognise::clips_at_zero(&func),
            };
            self.facts.insert(name.clone(), facts);
        }
        self.facts.get(name)
    }

    fn graph(&mut self, func: &GraphFunc) -> Result<GraphFunc> {
        let mut g = Graph { constants: Constants::collect(func), ..Graph::default() };
        let mut count = |v: &GraphVar| *g.readers.entry(v.id()).or_default() += 1;
        func.bindings().for_each(|b| needed(&b.value, &mut count));
        needed(&func.ret, &mut count);
        let results = needed_ids([&func.ret]);
        for b in func.bindings() {
            let b = Binding { value: g.expr(&b.value)?, ..b.clone() };
            if let GraphExpr::CallTir { func: name, args, outs, .. } = &b.value
                && outs.len() == 1
                && let Some(func) = self.functions.get(name).cloned()
            {
                let call = Call { name: name.clone(), func, args: args.clone() };
                let is_result = results.contains(&b.var.id());
                if self.rewrite(&mut g, &b, call, is_result).is_some() {
                    continue;
                }
            }
            g.bindings.push(b);
        }
        Ok(one_block(func, g.bindings, func.ret.clone()))
    }

    /// The call in another form, which binds the same variable; `None` where it stays.
    fn rewrite(&mut self, g: &mut Graph, b: &Binding, call: Call, is_result: bool) -> Option<()> {
        let facts = self.facts(&call.name)?;
        if let Some(d) = facts.dequantise.clone() {
            g.numbers.extend(numbers(g, &d, &call).map(|n| (b.var.id(), n)));
            return None;
        }
        if facts.clips
            && let [GraphExpr::Var(x)] = &call.args[..]
        {
            g.clipped.insert(b.var.id(), x.id());
        }
        if let Some(q) = facts.quantise.clone()
            && !is_result
            && let Some(integers) = undone(g, &q, &call)
        {
            g.same.insert(b.var.id(), integers);
            return Some(());
        }
        if facts.product.is_some() {
            return self.product(g, b, &call);
        }
        if facts.division.is_some()
            && let Some(()) = self.division(g, b, &call)
        {
            return Some(());
        }
        if self.facts(&call.name)?.selects {
            return self.selection(g, b, &call);
        }
        None
    }

    /// Calls a function, and binds a new value or the one that is given.
    fn call(
        &mut self,
        g: &mut Graph,
        func: TensorFunc,
        name: &str,
        args: Vec<GraphExpr>,
        bind: Option<&Binding>,
    ) -> Option<GraphExpr> {
        let (var, span) = match bind {
            None => (GraphVar::tensor(name, result_type(&func)?), None),
            Some(b) => (b.var.clone(), b.span),
        };
        g.bindings.push(self.functions.made((func, name), args, &var, span).ok()?);
        Some(var.expr())
    }

    /// A sum of products of numbers as one of their integers.
    fn product(&mut self, g: &mut Graph, b: &Binding, call: &Call) -> Option<()> {
        let Call { name, func, args } = call;
        let p = self.facts.get(name)?.product.clone()?;
        let steps = p.steps()?;
        if steps.checked_mul(LARGEST)? > i32::MAX as u64 {
            return None;
        }
        let mut factors: Vec<(Option<usize>, Tensor)> = Vec::new();
        let (mut operands, mut given) = (Vec::new(), Vec::new());
        for o in &p.operands {
            let n = g.numbers(args.get(o.param)?).filter(|n| n.is_byte())?.clone();
            let n = signed(g, &n).unwrap_or(n);
            // The axis of the sums along which the scale changes.
            let along = match n.axis {
                None => None,
                Some(d) => {
                    let at = o.at.get(d).filter(|at| o.pad.is_none() && p.is_outside(at))?;
                    Some(
                        p.stage()
                            .indices
                            .iter()
                            .position(|i| tilewright_ir::equal::same_expr(i, at))?,
                    )
                }
            };
            if !(n.axis.is_some() || n.scale.len() == 1)
                || !n.zero.as_ref().is_none_or(|t| n.axis.is_some() || t.len() == 1)
            {
                return None;
            }
            operands.push(Integers {
                dtype: n.dtype,
                zero: n.zero.as_ref().map(|t| n.axis.map(|_| t.len())),
                axis: n.axis,
            });
            given.push(n.integers);
            given.extend(n.zero.map(|z| listed(&z, n.axis.is_some())).map(GraphExpr::Const));
            factors = merged(factors, (along, listed(&n.scale, along.is_some())))?;
        }
        let operands: [Integers; 2] = operands.try_into().ok()?;
        let sums = build::sums(func, &p, &operands)?;
        let addend = Addend::recognise(func, &p)
            .and_then(|a| Some((integer_addend(g, &a, args, &factors, steps)?, a)));
        let axes: Vec<Option<usize>> = factors.iter().map(|f| f.0).collect();
        let without = addend.as_ref().map(|(_, a)| a);
        let (rest, kept, alone) = build::rescaled(func, &p, &axes, without)?;
        let biased = match &addend {
            Some((_, a)) => Some(a.build(func, &p)?),
            None => None,
        };
        let mut value = self.call(g, sums, &format!("{name}_integer"), given, None)?;
        if let (Some((integers, _)), Some(biased)) = (addend, biased) {
            value = self.call(g, biased, "add_integer", vec![value, integers], None)?;
        }
        let count = factors.len();
        let mut given = vec![value];
        given.extend(factors.into_iter().map(|f| GraphExpr::Const(f.1)));
        given.extend(kept.iter().filter_map(|k| args.get(*k).cloned()));
        self.call(g, rest, "rescaled", given, Some(b))?;
        if alone {
            g.rescaled.insert(b.var.id(), Rescaled { at: g.bindings.len() - 1, factors: count });
        }
        Some(())
    }

    /// A division of rescaled sums: their factor is divided.
    fn division(&mut self, g: &mut Graph, b: &Binding, call: &Call) -> Option<()> {
        let division = self.facts.get(&call.name)?.division.as_ref()?;
        let scale = g.constants.get(call.args.get(division.scale)?)?;
        let by = *scale.as_slice::<f32>()?.first().filter(|s| s.is_normal() && **s > 0.0)?;
        let GraphExpr::Var(x) = call.args.get(division.x)? else { return None };
        let mut from = x.id();

        while let Some(before) = g.clipped.get(&from).filter(|_| g.is_read_once(from)) {
            from = *before;
        }
        let rescaled = g.rescaled.get(&from).filter(|_| g.is_read_once(from))?;
        let new = division.without(&call.func)?;
        let mut args = call.args.clone();
        args.remove(division.scale);
        let GraphExpr::CallTir { args: given, .. } = &mut g.bindings[rescaled.at].value else {
            return None;
        };
        let factors = given.get_mut(1..=rescaled.factors)?;
        // One of them: the last, which changes the most.
        let GraphExpr::Const(factor) = factors.last_mut()? else { return None };
        let divided: Vec<f32> = factor.as_slice::<f32>()?.iter().map(|f| f / by).collect();
        if divided.iter().any(|f| !f.is_normal()) {
            return None;
        }
        *factor = Tensor::from_slice(factor.shape(), &divided).ok()?;
        self.call(g, new, &format!("{}_rounded", call.name), args, Some(b))?;
        Some(())
    }

    /// A selection of numbers as one of their integers.
    fn selection(&mut self, g: &mut Graph, b: &Binding, call: &Call) -> Option<()> {
        let all: Vec<Numbers> =
            call.args.iter().map(|a| g.numbers(a).cloned()).collect::<Option<_>>()?;
        let (first, others) = all.split_first()?;
        let axis = match first.axis {
            None => None,
            Some(axis) if others.is_empty() => Some(recognise::moved_axis(&call.func, axis)?),
            Some(_) => return None,
        };
        if !first.is_byte() || others.iter().any(|n| !n.agree(first)) {
            return None;
        }
        let numbers = build::dequantised(&call.func, first.dtype, first.zero.is_some(), axis)?;
        let on_integers = build::on_integers(&call.func, first.dtype);
        let given = all.iter().map(|n| n.integers.clone()).collect();
        let made = self.functions.add(on_integers.clone(), &format!("{}_integer", call.name));
        self.made.insert(made);
        let integers = self.call(g, on_integers, &format!("{}_integer", call.name), given, None)?;
        let scale = listed(&first.scale, axis.is_some());
        let zero = first.zero.as_ref().map(|z| listed(z, axis.is_some()));
        let mut args = vec![integers.clone(), GraphExpr::Const(scale)];
        args.extend(zero.map(GraphExpr::Const));
        let made = self.functions.add(numbers.clone(), "dequantized");
        self.made.insert(made);
        self.call(g, numbers, "dequantized", args, Some(b))?;
        g.numbers.insert(b.var.id(), Numbers { integers, axis, ..first.clone() });
        Some(())
    }
}

/// The zero point of a call among its arguments, none where it is zero; it has to be a constant.
fn zero_point<'a>(g: &'a Graph, at: Option<usize>, call: &'a Call) -> Option<Option<&'a Tensor>> {
    let Some(k) = at else { return Some(None) };
    let zero = g.constants.get(call.args.get(k)?)?;
    Some(Some(zero).filter(|z| !is_zero(z)))
}

fn is_zero(t: &Tensor) -> bool {
    t.bytes().iter().all(|b| *b == 0)
}

fn same_zero(a: Option<&Tensor>, b: Option<&Tensor>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => same(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// The numbers that a call gives, where scale and zero point are constants that all of this may rely on.
fn numbers(g: &Graph, d: &Dequantise, call: &Call) -> Option<Numbers> {
    let x: &Buffer = call.func.params.get(d.x)?.buffer()?;
    let scale = g.constants.get(call.args.get(d.scale)?)?.clone();
    let zero = zero_point(g, d.zero, call)?.cloned();
    let positive = scale.as_slice::<f32>()?.iter().all(|s| s.is_normal() && *s > 0.0);
    positive.then(|| Numbers {
        integers: call.args[d.x].clone(),
        dtype: x.dtype(),
        scale,
        zero,
        axis: d.axis,
    })
}

/// The integers that a call quantises again to what they were.
fn undone(g: &Graph, q: &Quantise, call: &Call) -> Option<GraphExpr> {
    let n = g.numbers(call.args.get(q.x)?)?;
    let scale = g.constants.get(call.args.get(q.scale)?)?;
    let zeros = same_zero(n.zero.as_ref(), zero_point(g, q.zero, call)?);
    let fits = zeros && n.dtype == q.to && n.axis.is_none() && same(&n.scale, scale);
    fits.then(|| n.integers.clone())
}

/// Constants of `uint8` as `int8`: these, and their zero point, are 128 less. A zero point of 128, which
/// is common, is none then.
fn signed(g: &Graph, n: &Numbers) -> Option<Numbers> {
    let integers = g.constants.get(&n.integers).filter(|t| t.dtype() == DType::U8)?;
    let zero = match &n.zero {
        Some(zero) => zero.clone(),
        None => Tensor::zeros(DType::U8, n.scale.shape()).ok()?,
    };
    let zero = as_signed(&zero).filter(|z| !is_zero(z));
    let integers = GraphExpr::Const(as_signed(integers)?);
    Some(Numbers { integers, dtype: DType::I8, zero, ..n.clone() })
}

fn as_signed(t: &Tensor) -> Option<Tensor> {
    let values: Vec<i8> = t.bytes().iter().map(|v| (v ^ 128) as i8).collect();
    Tensor::from_slice(t.shape(), &values).ok()
}

/// A constant as one number, or as a list.
fn listed(t: &Tensor, list: bool) -> Tensor {
    let shape = if list { vec![t.len()] } else { Vec::new() };
    t.reshape(&shape).unwrap_or_else(|_| t.clone())
}

/// Factors with one more: those along one axis, or along none, are multiplied now.
fn merged(
    mut all: Vec<(Option<usize>, Tensor)>,
    (axis, factor): (Option<usize>, Tensor),
) -> Option<Vec<(Option<usize>, Tensor)>> {
    let Some(other) = all.iter_mut().find(|f| f.0 == axis || f.0.is_none() || axis.is_none())
    else {
        all.push((axis, factor));
        return Some(all);
    };
    let (a, b) = (other.1.as_slice::<f32>()?, factor.as_slice::<f32>()?);
    let count = a.len().max(b.len());
    let product: Vec<f32> = (0..count).map(|k| a[k % a.len()] * b[k % b.len()]).collect();
    let axis = other.0.or(axis);
    let shape = if axis.is_some() { vec![count] } else { Vec::new() };
    *other = (axis, Tensor::from_slice(&shape, &product).ok()?);
    // What is no number times a number that does not underflow is not to be relied on.
    product.iter().all(|f| f.is_normal()).then_some(all)
}

/// The integers of an addend whose scale is that of the sums, and which do not make these overflow.
fn integer_addend(
    g: &Graph,
    addend: &Addend,
    args: &[GraphExpr],
    factors: &[(Option<usize>, Tensor)],
    steps: u64,
) -> Option<GraphExpr> {
    let n = g.numbers(args.get(addend.param)?)?;
    let [(axis, factor)] = factors else { return None };
    let along = match n.axis {
        Some(d) => Some(addend.axis(d)?),
        None => None,
    };
    let integers = g.constants.get(&n.integers)?;
    let room = i128::from(i32::MAX) - i128::from(steps.checked_mul(LARGEST)?);
    let fits = (0..integers.len()).all(|k| integers.get_i128(k).abs() <= room);
    let same_scale = match (along == *axis, axis) {
        (true, _) => same(&n.scale, factor),
        _ => false,
    };
    let plain = n.dtype == DType::I32 && n.zero.is_none();
    (plain && fits && same_scale).then(|| n.integers.clone())
}
