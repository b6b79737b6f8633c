//! Constants of one graph that are parts of constants of another one, with axes in another order: so an optimiser
//! keeps weights that it transposes, or that it joins for several products.
//!
//! A tensor is such a *view* of a larger one where `part[i, j, ..] = whole[start + a * i + b * j + ..]`, with the elements
//! of `whole` counted as they lie in memory. The strides are sought among those of both tensors, by where the second
//! and the last element along each axis lie; a view counts after all elements were compared.

use tilewright_ir::hash::HashMap;

use tilewright_analysis::reals::{ROUNDING, rounding_of};
use tilewright_graph::stages::{advance, at, buffer, cells, one_stage};
use tilewright_ir::tensor::row_major;
use tilewright_ir::{DType, Dim, Expr, Tensor, TensorFunc};

use crate::values::{Graph, long};

/// Most places of the whole at which a view may begin that are tried.
const STARTS: usize = 4096;

/// Most choices of strides that are compared for one start.
const CHOICES: usize = 64;

/// Most elements in which places are sought where a view begins.
const SCANNED: usize = 1 << 29;

/// How often as many elements as the part has are compared at most.
const COMPARED: usize = 16;

/// Has both graphs share constants: one of which the other graph has no equal, but a larger one that holds it, becomes
/// a call that takes it out of that one. Gives the largest difference of elements that count as one, where floats are
/// real numbers.
pub(crate) fn share_constants(
    first: &mut Graph<'_>,
    second: &mut Graph<'_>,
    reals: bool,
) -> Option<f64> {
    let (mut of_first, mut of_second) = (alone(first, second, reals), alone(second, first, reals));
    let (in_second, a) = views(&of_second, &of_first, reals);
    // A constant that is taken apart is none to take from.
    of_second.retain(|(n, _)| !in_second.contains_key(n));
    of_first.retain(|(_, t)| of_second.iter().any(|(_, whole)| whole.len() > t.len()));
    let (in_first, b) = views(&of_first, &of_second, reals);
    second.take_constants(in_second);
    first.take_constants(in_first);
    a.into_iter().chain(b).reduce(f64::max)
}

/// The constants of a graph of which another one has no equal, by their nodes.
fn alone(graph: &Graph<'_>, other: &Graph<'_>, reals: bool) -> Vec<(usize, Tensor)> {
    let others: Vec<&Tensor> = other.arrays().map(|(_, t)| t).collect();
    let is_alone = |t: &Tensor| {
        let is_rounded =
            |o: &Tensor| o.reshape(t.shape()).is_ok_and(|o| rounding_of(t, &o).is_some());
        !others.iter().any(|o| {
            t.dtype() == o.dtype()
                && long(t.shape()) == long(o.shape())
                && (t.bytes() == o.bytes() || reals && is_rounded(o))
        })
    };
    graph.arrays().filter(|(_, t)| is_alone(t)).map(|(n, t)| (n, t.clone())).collect()
}

/// What a constant is taken out of, and how.
type Views = HashMap<usize, (Tensor, TensorFunc)>;

/// The views of larger constants, and the largest difference of elements.
fn views(
    parts: &[(usize, Tensor)],
    wholes: &[(usize, Tensor)],
    reals: bool,
) -> (Views, Option<f64>) {
    let (mut found, mut worst) = (Views::default(), None::<f64>);
    let mut scanned = 0;
    for (n, part) in parts {
        let view = wholes.iter().find_map(|(_, whole)| {
            scanned += whole.len();
            if scanned > SCANNED {
                return None;
            }
            let view = View::find(part, whole, reals)?;
            Some((whole.clone(), view.func(part, whole)?, view.rounding))
        });
        if let Some((whole, func, rounding)) = view {
            worst = Some(rounding).filter(|r| *r > 0.0).into_iter().chain(worst).reduce(f64::max);
            found.insert(*n, (whole, func));
        }
    }
    (found, worst)
}

/// Where the elements of a part lie in the whole.
struct View {
    start: usize,
    /// Of each axis of the part; 0 for one of a single element.
    strides: Vec<usize>,
    /// The largest difference, as a part of the largest value.
    rounding: f64,
}

impl View {
    fn find(part: &Tensor, whole: &Tensor, reals: bool) -> Option<View> {
        let is_possible = part.dtype() == whole.dtype()
            && matches!(part.dtype().bits, 8 | 16 | 32 | 64)
            && (2..=whole.len()).contains(&part.len());
        if !is_possible {
            return None;
        }
        let pair = Pair::new(part, whole, reals);
        let mut budget = COMPARED * part.len();
        let starts = (0..whole.len()).filter(|start| pair.is_same(0, *start)).take(STARTS);
        for view in starts.flat_map(|start| pair.views(start)) {
            let places = view.places(part.shape()).enumerate();
            let agreeing = places.take_while(|(i, j)| pair.is_same(*i, *j)).count();
            budget = budget.checked_sub(agreeing)?;
            if agreeing == part.len()
                && let Some(rounding) = pair.rounding(&view)
            {
                return Some(View { rounding, ..view });
            }
        }
        None
    }

    /// Where each element lies.
    fn places(&self, shape: &[usize]) -> impl Iterator<Item = usize> {
        let mut at = vec![0; shape.len()];
        (0..shape.iter().product()).map(move |_| {
            let place = at.iter().zip(&self.strides).map(|(i, step)| i * step).sum::<usize>();
            advance(&mut at, shape);
            self.start + place
        })
    }

    /// The function that takes the part out of the whole.
    fn func(&self, part: &Tensor, whole: &Tensor) -> Option<TensorFunc> {
        let dims = |t: &Tensor| t.shape().iter().map(|n| Dim::from(*n)).collect::<Vec<_>>();
        let [from, to] = [
            buffer("whole", &dims(whole), whole.dtype()),
            buffer("part", &dims(part), part.dtype()),
        ];
        let iters = cells("v", &dims(part));
        let index = at(&iters);
        let number = |n: usize| i64::try_from(n).ok().map(|n| Expr::int(n, DType::I32));
        let place = match self.along_axes(part.shape(), whole.shape()) {
            Some(axes) => axes
                .into_iter()
                .map(|(start, axis)| match axis {
                    Some(axis) if start == 0 => Some(index[axis].clone()),
                    Some(axis) => Some(index[axis].clone() + number(start)?),
                    None => number(start),
                })
                .collect::<Option<Vec<Expr>>>()?,
            None => {
                let terms = index.iter().zip(&self.strides).filter(|(_, step)| **step != 0);
                let mut flat = number(self.start)?;
                for (var, step) in terms {
                    flat = flat + var.clone() * number(*step)?;
                }
                let all = whole.shape().iter().zip(row_major(whole.shape()));
                all.map(|(n, step)| {
                    Some(flat.clone().floordiv(number(step)?).floormod(number(*n)?))
                })
                .collect::<Option<Vec<Expr>>>()?
            }
        };
        Some(one_stage("view", &iters, [&from, &to], index, from.load(place)))
    }

    /// For each axis of the whole where the part begins, and which axis of the part runs along it; `None` where an axis
    /// of the part runs along none.
    fn along_axes(&self, part: &[usize], whole: &[usize]) -> Option<Vec<(usize, Option<usize>)>> {
        let mut rest = self.start;
        let mut axes = Vec::with_capacity(whole.len());
        let mut found = 0;
        for (n, step) in whole.iter().zip(row_major(whole)) {
            let start = rest / step;
            rest %= step;
            let axis = self.strides.iter().position(|s| *s == step && *n > 1);
            if let Some(axis) = axis {
                found += 1;
                if start + part[axis] > *n {
                    return None;
                }
            }
            axes.push((start, axis));
        }
        let long = part.iter().filter(|n| **n > 1).count();
        (found == long).then_some(axes)
    }
}

/// A tensor, and one that may hold it.
struct Pair<'a> {
    part: &'a Tensor,
    whole: &'a Tensor,
    /// Bytes of an element.
    size: usize,
    /// How far apart floats may be that count as one number, where they are real numbers.
    near: Option<f64>,
    /// The strides that are tried.
    steps: Vec<usize>,
}

impl Pair<'_> {
    fn new<'a>(part: &'a Tensor, whole: &'a Tensor, reals: bool) -> Pair<'a> {
        let magnitudes = (0..part.len()).map(|k| part.get_f64(k).abs());
        let is_rounded = reals && part.dtype().is_float();
        let near = is_rounded.then(|| ROUNDING * magnitudes.fold(0.0, f64::max));
        let mut steps = [row_major(part.shape()), row_major(whole.shape())].concat();
        steps.sort_unstable();
        steps.dedup();
        Pair { part, whole, size: part.bytes().len() / part.len(), near, steps }
    }

    /// Whether an element of the part may be one of the whole.
    fn is_same(&self, i: usize, j: usize) -> bool {
        word(self.bytes(self.part, i)) == word(self.bytes(self.whole, j))
            || self
                .near
                .is_some_and(|near| (self.part.get_f64(i) - self.whole.get_f64(j)).abs() <= near)
    }

    fn bytes<'t>(&self, t: &'t Tensor, i: usize) -> &'t [u8] {
        &t.bytes()[i * self.size..(i + 1) * self.size]
    }

    /// The views that begin at a place, as far as the second and the last element along each axis say.
    fn views(&self, start: usize) -> impl Iterator<Item = View> {
        let shape = self.part.shape();
        let fitting = shape.iter().zip(row_major(shape)).map(|(&n, own)| {
            if n == 1 {
                return vec![0];
            }
            let fits = |step: &usize| {
                start + (n - 1) * step < self.whole.len()
                    && self.is_same(own, start + step)
                    && self.is_same((n - 1) * own, start + (n - 1) * step)
            };
            self.steps.iter().copied().filter(fits).collect()
        });
        let fitting: Vec<Vec<usize>> = fitting.collect();
        let choices = fitting.iter().map(Vec::len).product::<usize>().min(CHOICES);
        let all = (0..choices).map(move |mut choice| {
            let strides = fitting.iter().map(|steps| {
                let step = steps[choice % steps.len()];
                choice /= steps.len();
                step
            });
            View { start, strides: strides.collect(), rounding: 0.0 }
        });
        let last =
            |view: &View| shape.iter().zip(&view.strides).map(|(n, s)| (n - 1) * s).sum::<usize>();
        all.filter(move |view| start + last(view) < self.whole.len())
    }

    /// The largest difference of a view's elements, as a part of the largest value; `None` where they are others.
    fn rounding(&self, view: &View) -> Option<f64> {
        let places = view.places(self.part.shape());
        let bytes = places.flat_map(|j| self.bytes(self.whole, j)).copied();
        let bytes: Vec<u8> = bytes.collect();
        if bytes == self.part.bytes() {
            return Some(0.0);
        }
        let taken = Tensor::from_bytes(self.part.dtype(), self.part.shape(), &bytes).ok()?;
        self.near.and_then(|_| rounding_of(self.part, &taken))
    }
}

/// The bits of an element of whole bytes.
fn word(bytes: &[u8]) -> u64 {
    match *bytes {
        [x] => u64::from(x),
        [x, y] => u64::from(u16::from_ne_bytes([x, y])),
        [x, y, z, w] => u64::from(u32::from_ne_bytes([x, y, z, w])),
        [x, y, z, w, p, q, r, s] => u64::from_ne_bytes([x, y, z, w, p, q, r, s]),
        _ => 0,
    }
}
