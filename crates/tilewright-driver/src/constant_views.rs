//! Constants of one graph that are parts of constants of another one, with axes in another order: so an optimiser
//! keeps weights that it transposes, or that it joins for several products.
//!
//! A tensor is such a *view* of a larger one where `part[i, j, ..] = whole[start + a * i + b * j + ..]`, with the elements
//! of `whole` counted as they lie in memory. The strides are sought among those of both tensors, by where the second
//! and the last element along each axis lie; a view counts after all elements were compared.

use std::collections::HashMap;

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
    let (mut found, mut worst) = (Views::new(), None::<f64>);
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
        let size = part.bytes().len() / part.len();
        let (a, b) = (part.bytes(), whole.bytes());
        let word = |bytes: &[u8], i: usize| match bytes[i * size..(i + 1) * size] {
            [x] => u64::from(x),
            [x, y] => u64::from(u16::from_ne_bytes([x, y])),
            [x, y, z, w] => u64::from(u32::from_ne_bytes([x, y, z, w])),
            [x, y, z, w, p, q, r, s] => u64::from_ne_bytes([x, y, z, w, p, q, r, s]),
            _ => 0,
        };
        let is_rounded = reals && part.dtype().is_float();
        let near = if is_rounded { ROUNDING * largest(part) } else { 0.0 };
        let is_same = |i: usize, j: usize| {
            word(a, i) == word(b, j)
                || is_rounded && (part.get_f64(i) - whole.get_f64(j)).abs() <= near
        };
        let own = row_major(part.shape());
        let mut steps: Vec<usize> = own.iter().copied().chain(row_major(whole.shape())).collect();
        steps.sort_unstable();
        steps.dedup();
        let mut budget = COMPARED * part.len();
        let starts = (0..whole.len()).filter(|start| is_same(0, *start)).take(STARTS);
        for start in starts {
            let fitting = part.shape().iter().zip(&own).map(|(&n, &own)| {
                if n == 1 {
                    return vec![0];
                }
                let fits = |step: &usize| {
                    start + (n - 1) * step < whole.len()
                        && is_same(own, start + step)
                        && is_same((n - 1) * own, start + (n - 1) * step)
                };
                steps.iter().copied().filter(fits).collect()
            });
            let fitting: Vec<Vec<usize>> = fitting.collect();
            let choices = fitting.iter().map(Vec::len).product::<usize>();
            for mut choice in 0..choices.min(CHOICES) {
                let strides = fitting.iter().map(|steps| {
                    let step = steps[choice % steps.len()];
                    choice /= steps.len();
                    step
                });
                let view = View { start, strides: strides.collect(), rounding: 0.0 };
                if view.end(part.shape()) > whole.len() {
                    continue;
                }
                let agreeing = view.places(part.shape()).enumerate();
                let agreeing = agreeing.take_while(|(i, j)| is_same(*i, *j)).count();
                budget = budget.checked_sub(agreeing)?;
                if agreeing == part.len() {
                    let places = view.places(part.shape());
                    let bytes: Vec<u8> =
                        places.flat_map(|j| &b[j * size..(j + 1) * size]).copied().collect();
                    let taken = Tensor::from_bytes(part.dtype(), part.shape(), &bytes).ok()?;
                    if let Some(rounding) = rounding_of(part, &taken).filter(|_| is_rounded) {
                        return Some(View { rounding, ..view });
                    }
                    if taken.bytes() == a {
                        return Some(view);
                    }
                }
            }
        }
        None
    }

    /// Behind which place its elements end.
    fn end(&self, shape: &[usize]) -> usize {
        self.start + 1 + shape.iter().zip(&self.strides).map(|(n, s)| (n - 1) * s).sum::<usize>()
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

/// The largest magnitude.
fn largest(t: &Tensor) -> f64 {
    (0..t.len()).map(|k| t.get_f64(k).abs()).fold(0.0, f64::max)
}
