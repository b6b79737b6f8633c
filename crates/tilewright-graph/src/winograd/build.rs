//! The functions that a convolution becomes, and its transformed weights.
//!
//! All of it is in the indices that the convolution has, whatever its layout: an index of the data that
//! windows move along becomes one of tiles, an index of the weights that is a tap goes, and in front
//! there are two for the place in the transform. Stages are in canonical form; a *choice* there is a
//! chain of selections by a variable of few values, one linear combination for each.

use tilewright_ir::hash::HashMap;

use tilewright_analysis::Stage;
use tilewright_ir::tensor::row_major;
use tilewright_ir::visit::Subst;
use tilewright_ir::{
    Buffer, DType, Dim, Expr, ExprKind, Fold, IterKind, Tensor, TensorFunc, Var, dim,
};

use super::points::Matrices;
use super::recognise::{Convolution, TAPS, Window};
use crate::stages::{Iter, advance, at, cells, fresh, function, kept, param};

/// The transform of the input or of the output: a function with the arguments of the convolution's that it
/// takes. Its last parameter is what it
/// makes; one that is made before comes first.
pub(super) struct Transform {
    pub func: TensorFunc,
    pub kept: Vec<usize>,
}

/// Bytes after which addresses have the same place in a first cache.
const PAGE: i64 = 4096;
/// Bytes of a line of a cache.
const LINE: i64 = 64;
/// Lines of one place that a first cache has at least.
const WAYS: usize = 8;

/// How a convolution is cut into tiles.
pub(super) struct Tiles<'a> {
    func: &'a TensorFunc,
    conv: &'a Convolution,
    f: &'a Matrices,
}

fn size(n: i64) -> Dim {
    Dim::from(usize::try_from(n).unwrap_or(0))
}

fn spatial(name: &str, extent: Dim) -> Iter {
    (Var::new(name, DType::I32), extent, IterKind::Spatial)
}

/// A buffer of `float32`.
fn buffer(name: &str, shape: &[Dim]) -> Buffer {
    Buffer::new(name, shape.iter().map(|d| d.typed(DType::I32)).collect(), DType::F32)
}

/// The sum of some terms by their coefficients.
fn combination(row: &[f64], term: impl Fn(usize) -> Expr) -> Expr {
    let terms = row.iter().copied().zip(0..).filter(|t| t.0 != 0.0);
    // One that is added comes first, so that nothing has to be negated.
    let first = terms.clone().find(|t| t.0 > 0.0).or_else(|| terms.clone().next());
    let Some((c, first)) = first else { return Expr::float(0.0, DType::F32) };
    terms.filter(|t| t.1 != first).fold(scaled(c, term(first)), |sum, (c, k)| {
        if c < 0.0 { sum - scaled(-c, term(k)) } else { sum + scaled(c, term(k)) }
    })
}

fn scaled(c: f64, term: Expr) -> Expr {
    if c == 1.0 { term } else { Expr::float(c, DType::F32) * term }
}

/// The first of some rows where a variable is zero, the next where it is one, and so on.
fn choice(v: &Var, rows: Vec<Expr>) -> Expr {
    let mut all: Vec<(usize, Expr)> = rows.into_iter().enumerate().collect();
    let Some((_, last)) = all.pop() else { return Expr::float(0.0, DType::F32) };
    all.into_iter()
        .rev()
        .fold(last, |rest, (k, row)| Expr::select(v.expr().equal(k as i64), row, rest))
}

impl<'a> Tiles<'a> {
    pub fn new(func: &'a TensorFunc, conv: &'a Convolution, f: &'a Matrices) -> Self {
        Tiles { func, conv, f }
    }

    fn results(&self) -> i64 {
        self.f.results() as i64
    }

    fn products(&self) -> Dim {
        Dim::from(self.f.products())
    }

    /// How many tiles there are along an axis.
    fn count(&self, w: &Window) -> i64 {
        (w.extent + self.results() - 1) / self.results()
    }

    /// The extents of the data in tiles.
    fn data_tiles(&self) -> Option<Vec<Dim>> {
        let mut shape = dim::of_shape(&self.conv.data.0.shape)?;
        self.conv.windows.iter().for_each(|w| shape[w.data] = size(self.count(w)));
        Some(shape)
    }

    /// Extents with two more behind that of the later of two.
    fn inserted<T: Clone>(list: &[T], at: [usize; 2], more: [T; 2]) -> Vec<T> {
        let (before, after) = list.split_at(at[0].max(at[1]) + 1);
        [before, &more, after].concat()
    }

    /// Indices of the data in tiles as they are in the transformed data: the tiles are one axis where
    /// their two are beside one another, so that it can be made longer.
    fn as_one<T: Clone>(&self, list: &[T], one: impl Fn(&T, &T) -> T) -> Vec<T> {
        let [a, b] = self.conv.windows.each_ref().map(|w| w.data);
        if a + 1 != b {
            return list.to_vec();
        }
        [&list[..a], &[one(&list[a], &list[b])], &list[b + 1..]].concat()
    }

    /// Where the transformed data of a tile are in a plane.
    fn place(&self, list: &[Expr]) -> Vec<Expr> {
        let columns = self.count(&self.conv.windows[1]);
        self.as_one(list, |row, column| row.clone() * columns + column.clone())
    }

    /// The transformed data. Each tile writes to all planes, so that these should not share their places
    /// in the first cache: planes are made longer by what does that with the fewest bytes.
    fn transformed(&self) -> Option<Buffer> {
        let n = self.products();
        let planes = (self.f.products() * self.f.products()) as i64;
        let tiles = self.as_one(&self.data_tiles()?, |a, b| *a * *b);
        let mut all = vec![tiles.clone()];
        for d in 0..tiles.len() {
            let more = size(if d + 1 == tiles.len() { LINE / 4 } else { 1 });
            all.extend(all.clone().into_iter().map(|mut shape| {
                shape[d] = shape[d] + more;
                shape
            }));
        }
        let most = byte_count(&tiles) / 4 * 5;
        all.retain(|shape| byte_count(shape) <= most && !is_crowded(shape, planes));
        let best = all.into_iter().min_by_key(|shape| byte_count(shape)).unwrap_or(tiles);
        Some(buffer("transformed", &[&[n, n][..], &best].concat()))
    }

    /// What computes the transformed data.
    pub fn input(&self) -> Option<Transform> {
        let (conv, n, m) = (self.conv, self.products(), self.results());
        let (mut allocs, mut body) = (Vec::new(), Vec::new());
        let own = dim::of_shape(&conv.data.0.shape)?;
        let mut shape = own.clone();
        for w in &conv.windows {
            let last = w.offset + m * (self.count(w) - 1) + n.number()?;
            shape[w.data] = shape[w.data].max(size(last));
        }
        let before = &conv.stages[..conv.sum];
        let maker = before.iter().find(|s| s.buffer == conv.data.0);
        let whole = shape == own;
        let padded = match maker {
            None if whole => conv.data.0.clone(),
            _ => buffer(&format!("{}_padded", conv.data.0.name), &shape),
        };
        for stage in before.iter().filter(|s| maker.is_none_or(|m| !m.stmt.ptr_eq(&s.stmt))) {
            body.push(fresh(stage));
            allocs.push(stage.buffer.clone());
        }
        if padded != conv.data.0 {
            body.push(fresh(&self.padded(maker, &padded, &own, &shape)?));
            allocs.push(padded.clone());
        }
        let places = conv.windows.each_ref().map(|w| w.data);
        let tiles = self.data_tiles()?;
        let outer = cells("v", &tiles);
        let (x, y) = (spatial("vx", n), spatial("vy", n));
        let iters = Self::inserted(&outer, places, [x.clone(), y.clone()]);
        let extents: Vec<Dim> = iters.iter().map(|i| i.1).collect();
        let half = buffer("half", &extents);
        let tile = |i: usize, j: &Expr| {
            let mut list = at(&outer);
            for (w, inside) in conv.windows.iter().zip([Expr::i32(i as i32), j.clone()]) {
                let first = list[w.data].clone() * m;
                list[w.data] = first + (Expr::i32(w.offset as i32) + inside);
            }
            padded.load(list)
        };
        let rows = self.f.data.iter().map(|row| combination(row, |i| tile(i, &y.0.expr())));
        let value = choice(&x.0, rows.collect());
        body.push(fresh(&Stage::build(
            stage_name("half", conv),
            &iters,
            &half,
            at(&iters),
            value,
            None,
        )));
        allocs.push(half.clone());
        let result = self.transformed()?;
        let value = choice(
            &y.0,
            self.f
                .data
                .iter()
                .map(|row| {
                    combination(row, |j| {
                        half.load(Self::inserted(
                            &at(&outer),
                            places,
                            [x.0.expr(), Expr::i32(j as i32)],
                        ))
                    })
                })
                .collect(),
        );
        let store = [vec![x.0.expr(), y.0.expr()], self.place(&at(&outer))].concat();
        body.push(fresh(&Stage::build(
            stage_name("transformed", conv),
            &iters,
            &result,
            store,
            value,
            None,
        )));
        self.part(
            Vec::new(),
            |b| *b == conv.data.0 || before.iter().any(|s| reads(s, b)),
            allocs,
            body,
            result,
        )
    }

    /// The data with what tiles read beyond them, which are zeros.
    fn padded(
        &self,
        maker: Option<&Stage>,
        to: &Buffer,
        own: &[Dim],
        shape: &[Dim],
    ) -> Option<Stage> {
        let iters = cells("v", shape);
        let value = match maker {
            None => self.conv.data.0.load(at(&iters)),
            Some(maker) => {
                let axes = maker.covers_buffer()?;
                let mut map: HashMap<Var, Expr> = axes
                    .into_iter()
                    .zip(&iters)
                    .filter_map(|(v, i)| v.map(|v| (v, i.0.expr())))
                    .collect();
                for (v, ..) in maker.dims() {
                    map.entry(v.clone()).or_insert_with(|| Expr::int(0, v.dtype()));
                }
                Subst::vars(map).expr(&maker.value)
            }
        };
        let inside = (0..own.len())
            .filter(|d| own[*d] != shape[*d])
            .map(|d| iters[d].0.expr().less(own[d].typed(DType::I32)));
        let (value, inside) = match value.kind() {
            ExprKind::IfThenElse(is, value, zero) if zero.as_float() == Some(0.0) => {
                (value.clone(), Some(is.clone()).into_iter().chain(inside).reduce(Expr::and))
            }
            _ => (value, inside.reduce(Expr::and)),
        };
        let value = match inside {
            None => value,
            Some(is) => Expr::if_then_else(is, value, Expr::float(0.0, DType::F32)),
        };
        Some(Stage::build(to.name.clone(), &iters, to, at(&iters), value, None))
    }

    /// The products of all places in the transform.
    pub fn products_of_planes(&self) -> Option<TensorFunc> {
        let (conv, n) = (self.conv, self.products());
        let stage = conv.stage();
        let planes = [spatial("vx", n), spatial("vy", n)];
        let dims = stage.dims().filter(|d| !conv.windows.iter().any(|w| w.tap == *d.0)).map(
            |(v, extent, kind)| {
                let extent = window_of(v, conv).map_or(extent, |w| size(self.count(w)));
                (v.clone(), extent, kind)
            },
        );
        let iters: Vec<Iter> = planes.iter().cloned().chain(dims).collect();
        let data = self.transformed()?;
        let mut data_at = conv.data.1.clone();
        conv.windows.iter().for_each(|w| data_at[w.data] = w.pixel.expr());
        let (weights, weights_at) = (self.weights()?, self.without_taps(&conv.weights.1));
        let sums = self.sums()?;
        let data_at = self.place(&data_at);
        let store = [at(&planes), self.order().iter().map(|d| stage.indices[*d].clone()).collect()];
        let store = store.concat();
        let value = sums.load(store.clone())
            + data.load([at(&planes), data_at].concat())
                * weights.load([at(&planes), weights_at].concat());
        let zero = Some(Expr::float(0.0, DType::F32));
        let stage = Stage::build("products", &iters, &sums, store, value, zero);
        Some(function(self.func, &[data, weights, sums], Vec::new(), vec![fresh(&stage)]))
    }

    /// The sums of products, which the last transform reads.
    pub fn sums(&self) -> Option<Buffer> {
        let n = self.products();
        let mut shape = dim::of_shape(&self.conv.stage().buffer.shape)?;
        self.conv.windows.iter().for_each(|w| shape[w.sums] = size(self.count(w)));
        let shape: Vec<Dim> = self.order().iter().map(|d| shape[*d]).collect();
        Some(buffer("sums", &[&[n, n][..], &shape].concat()))
    }

    /// The axes of the sums in the order of what follows, which reads them then one behind the other.
    fn order(&self) -> Vec<usize> {
        let rank = self.conv.stage().indices.len();
        let (mut order, mut list) = (Vec::new(), Vec::new());
        if let Some(next) = self.next() {
            let read = reads_at(&next.stage, &next.sums).unwrap_or_default();
            for v in next.stage.indices.iter().filter_map(Expr::as_var) {
                list.extend(read.iter().position(|i| i.as_var() == Some(v)));
            }
        }
        order.extend((0..rank).filter(|d| !list.contains(d)));
        order.extend(list);
        order
    }

    /// Where the axes of pixels are in that order.
    fn places(&self) -> [usize; 2] {
        let order = self.order();
        self.conv
            .windows
            .each_ref()
            .map(|w| order.iter().position(|d| *d == w.sums).unwrap_or(w.sums))
    }

    fn without_taps<T: Clone>(&self, list: &[T]) -> Vec<T> {
        (0..list.len())
            .filter(|d| !self.conv.windows.iter().any(|w| w.weights == *d))
            .map(|d| list[d].clone())
            .collect()
    }

    fn weights(&self) -> Option<Buffer> {
        let n = self.products();
        let shape = self.without_taps(&dim::of_shape(&self.conv.weights.0.shape)?);
        Some(buffer("weights", &[&[n, n][..], &shape].concat()))
    }

    /// What computes the result of the sums of products, and what follows from it.
    pub fn output(&self) -> Option<Transform> {
        let (conv, m) = (self.conv, self.results());
        let sums = self.sums()?;
        let (mut allocs, mut body) = (Vec::new(), Vec::new());
        let rest = &conv.stages[conv.sum + 1..];
        let next = self.next();
        let [parts_of_first, parts_of_second] = conv.windows.each_ref().map(|w| {
            let (whole, left) = (w.extent / m, w.extent % m);
            [(0, whole, m), (whole, 1, left)].into_iter().filter(|p| p.1 > 0 && p.2 > 0)
        });
        for rows in parts_of_first {
            for columns in parts_of_second.clone() {
                self.region([rows, columns], &sums, next.as_ref(), &mut allocs, &mut body)?;
            }
        }
        let rest = &rest[usize::from(next.is_some())..];
        body.extend(rest.iter().map(fresh));
        let written = rest.iter().map(|s| &s.buffer).chain(next.as_ref().map(|n| &n.stage.buffer));
        let sums_of = next.is_none().then_some(&conv.stage().buffer);
        for b in written.chain(sums_of).filter(|b| param(self.func, b).is_none()) {
            if !allocs.contains(b) {
                allocs.push(b.clone());
            }
        }
        let result = self.func.buffers().last()?.clone();
        let after = &conv.stages[conv.sum + 1..];
        self.part(vec![sums], |b| after.iter().any(|s| reads(s, b)), allocs, body, result)
    }

    /// A part of the result, of so many tiles from the first one on, of so many pixels each.
    fn region(
        &self,
        parts: [(i64, i64, i64); 2],
        sums: &Buffer,
        next: Option<&Next>,
        allocs: &mut Vec<Buffer>,
        body: &mut Vec<tilewright_ir::Stmt>,
    ) -> Option<()> {
        let (conv, n) = (self.conv, self.products());
        let stage = conv.stage();
        let places = self.places();
        let own = dim::of_shape(&stage.buffer.shape)?;
        let mut shape: Vec<Dim> = self.order().iter().map(|d| own[*d]).collect();
        (0..2).for_each(|k| shape[places[k]] = size(parts[k].1));
        let outer = cells("v", &shape);
        let (y, x, j) =
            (spatial("vy", size(parts[0].2)), spatial("vx", size(parts[1].2)), spatial("vj", n));
        // The place of a tile among all.
        let tile = |list: &mut Vec<Expr>| {
            for (k, part) in parts.iter().enumerate().filter(|p| p.1.0 > 0) {
                list[places[k]] = list[places[k]].clone() + part.0;
            }
        };
        let iters = Self::inserted(&outer, places, [y.clone(), j.clone()]);
        let half = buffer("half", &iters.iter().map(|i| i.1).collect::<Vec<_>>());
        let rows = self.f.result.iter().take(parts[0].2 as usize).map(|row| {
            combination(row, |i| {
                let mut list = at(&outer);
                tile(&mut list);
                sums.load([vec![Expr::i32(i as i32), j.0.expr()], list].concat())
            })
        });
        let value = choice(&y.0, rows.collect());
        // Tiles at the ends that are cut have stages of their own.
        let end = match parts.map(|p| p.0 > 0) {
            [false, false] => "",
            [true, false] => "_bottom",
            [false, true] => "_right",
            [true, true] => "_corner",
        };
        body.push(fresh(&Stage::build(
            format!("{}_half{end}", stage.name()),
            &iters,
            &half,
            at(&iters),
            value,
            None,
        )));
        allocs.push(half.clone());
        let iters = Self::inserted(&outer, places, [y.clone(), x.clone()]);
        let rows = self.f.result.iter().take(parts[1].2 as usize).map(|row| {
            combination(row, |j| {
                half.load(Self::inserted(&at(&outer), places, [y.0.expr(), Expr::i32(j as i32)]))
            })
        });
        let value = choice(&x.0, rows.collect());
        let Some(next) = next else {
            let mut store = at(&outer);
            for (k, inside) in [(0, &y), (1, &x)] {
                store[places[k]] =
                    (store[places[k]].clone() + parts[k].0) * self.results() + inside.0.expr();
            }
            let name = format!("{}{end}", stage.name());
            body.push(fresh(&Stage::build(name, &iters, &stage.buffer, store, value, None)));
            return Some(());
        };
        let results = buffer(&stage.buffer.name, &iters.iter().map(|i| i.1).collect::<Vec<_>>());
        body.push(fresh(&Stage::build(
            format!("{}_results{end}", stage.name()),
            &iters,
            &results,
            at(&iters),
            value,
            None,
        )));
        allocs.push(results.clone());
        body.push(fresh(&next.tiled(
            self,
            parts,
            &results,
            [y, x],
            |k, tile, inside| (tile + parts[k].0) * self.results() + inside,
            end,
        )?));
        Some(())
    }

    /// The stage that alone reads the sums, pixel by pixel.
    fn next(&self) -> Option<Next> {
        let sums = &self.conv.stage().buffer;
        let own = param(self.func, sums).is_some();
        let (stage, others) = self.conv.stages[self.conv.sum + 1..].split_first()?;
        let alone = !own && !stage.is_reduction() && !others.iter().any(|s| reads(s, sums));
        let loads: Vec<_> = stage.loads().into_iter().filter(|l| l.0 == *sums).collect();
        let found = self.pixels_of(&loads.first()?.1)?;
        let same = loads.iter().all(|l| self.pixels_of(&l.1).as_ref() == Some(&found));
        let whole = (0..2).all(|k| {
            stage.dims().find(|d| d.0 == &found[k]).map(|d| d.1)
                == Some(size(self.conv.windows[k].extent))
        });
        let fits = alone && same && whole && found[0] != found[1];
        fits.then(|| Next { stage: stage.clone(), pixels: found, sums: sums.clone() })
    }

    fn pixels_of(&self, at: &[Expr]) -> Option<[Var; 2]> {
        let [a, b] = self.conv.windows.each_ref().map(|w| at.get(w.sums)?.as_var().cloned());
        Some([a?, b?])
    }

    /// A function of what was made before, of the arguments that are read, and of what it makes.
    fn part(
        &self,
        first: Vec<Buffer>,
        read: impl Fn(&Buffer) -> bool,
        allocs: Vec<Buffer>,
        body: Vec<tilewright_ir::Stmt>,
        result: Buffer,
    ) -> Option<Transform> {
        let (kept, given) = kept(self.func, read)?;
        let params: Vec<Buffer> = first.into_iter().chain(given).chain([result]).collect();
        Some(Transform { func: function(self.func, &params, allocs, body), kept })
    }

    /// The axes of the weights that are no taps.
    pub fn other_axes(&self, weights: &Tensor) -> Vec<usize> {
        self.without_taps(&(0..weights.shape().len()).collect::<Vec<_>>())
    }

    /// The transformed weights: `G g G^T` of each window, computed in 64 bits.
    pub fn transform(&self, weights: &Tensor) -> Option<Tensor> {
        let n = self.f.products();
        let given = weights.as_slice::<f32>()?;
        let shape = weights.shape();
        let strides = row_major(shape);
        let others = self.other_axes(weights);
        let [rows, columns] = self.conv.windows.each_ref().map(|w| strides[w.weights]);
        let extents: Vec<usize> = others.iter().map(|d| shape[*d]).collect();
        let plane: usize = extents.iter().product();
        let mut made = vec![0f32; n * n * plane];
        let mut place = vec![0usize; others.len()];
        for k in 0..plane {
            let first: usize = others.iter().zip(&place).map(|(d, i)| strides[*d] * i).sum();
            let transformed =
                sandwich(self.f.taps, &|r, s| f64::from(given[first + r * rows + s * columns]));
            for (p, value) in transformed.into_iter().enumerate() {
                made[p * plane + k] = value as f32;
            }
            advance(&mut place, &extents);
        }
        Tensor::from_slice(&[&[n, n][..], &extents].concat(), &made).ok()
    }
}

fn byte_count(shape: &[Dim]) -> i64 {
    dim::product(shape.iter().copied()).estimate() * 4
}

fn is_crowded(shape: &[Dim], planes: i64) -> bool {
    let mut lines = HashMap::default();
    for k in 0..planes {
        *lines.entry(k * byte_count(shape) % PAGE / LINE).or_insert(0) += 1;
    }
    lines.into_values().max().unwrap_or(0) > WAYS
}

fn stage_name(what: &str, conv: &Convolution) -> String {
    format!("{}_{what}", conv.stage().name())
}

fn window_of<'a>(v: &Var, conv: &'a Convolution) -> Option<&'a Window> {
    conv.windows.iter().find(|w| w.pixel == *v)
}

/// `G g G^T` by rows, for a square `g` of [`TAPS`].
pub(super) fn sandwich(taps: &[&[f64]], window: &dyn Fn(usize, usize) -> f64) -> Vec<f64> {
    let r = TAPS as usize;
    let mut all = Vec::with_capacity(taps.len() * taps.len());
    for a in taps {
        let half: Vec<f64> =
            (0..r).map(|s| (0..r).map(|k| a[k] * window(k, s)).sum::<f64>()).collect();
        all.extend(taps.iter().map(|b| (0..r).map(|k| b[k] * half[k]).sum::<f64>()));
    }
    all
}

/// Where a stage first reads a buffer.
fn reads_at(stage: &Stage, b: &Buffer) -> Option<Vec<Expr>> {
    stage.loads().into_iter().find(|l| l.0 == *b).map(|l| l.1)
}

fn reads(stage: &Stage, b: &Buffer) -> bool {
    stage.value.loads_from(|from| from == b)
}

/// The stage that follows the sums.
struct Next {
    stage: Stage,
    /// Its variables that are the pixels.
    pixels: [Var; 2],
    sums: Buffer,
}

impl Next {
    /// The stage for some tiles, which reads `results`.
    fn tiled(
        &self,
        tiles: &Tiles<'_>,
        parts: [(i64, i64, i64); 2],
        results: &Buffer,
        inside: [Iter; 2],
        pixel: impl Fn(usize, Expr, Expr) -> Expr,
        end: &str,
    ) -> Option<Stage> {
        struct Reads<'a> {
            sums: &'a Buffer,
            results: &'a Buffer,
            order: Vec<usize>,
            places: [usize; 2],
            inside: [Expr; 2],
            tiles: [Expr; 2],
        }
        impl Fold for Reads<'_> {
            fn access(&mut self, b: &Buffer, at: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
                (b == self.sums).then(|| {
                    let mut at: Vec<Expr> = self.order.iter().map(|d| at[*d].clone()).collect();
                    (0..2).for_each(|k| at[self.places[k]] = self.tiles[k].clone());
                    let at = Tiles::inserted(&at, self.places, self.inside.clone());
                    (self.results.clone(), at)
                })
            }
        }
        let (order, places) = (tiles.order(), tiles.places());
        let of: [Iter; 2] = [0, 1].map(|k| spatial(&format!("vt{k}"), size(parts[k].1)));
        let mut reads = Reads {
            sums: &self.sums,
            results,
            order,
            places,
            inside: inside.each_ref().map(|i| i.0.expr()),
            tiles: of.each_ref().map(|i| i.0.expr()),
        };
        let value = reads.expr(&self.stage.value);
        let map =
            (0..2).map(|k| (self.pixels[k].clone(), pixel(k, of[k].0.expr(), inside[k].0.expr())));
        let mut map = Subst::vars(map);
        let value = map.expr(&value);
        let store: Vec<Expr> = self.stage.indices.iter().map(|e| map.expr(e)).collect();
        let mut at = [0; 2];
        let mut iters: Vec<Iter> = Vec::new();
        for (d, (v, extent, kind)) in self.stage.dims().enumerate() {
            let k = self.pixels.iter().position(|p| p == v);
            k.into_iter().for_each(|k| at[k] = d);
            iters.push(k.map_or_else(|| (v.clone(), extent, kind), |k| of[k].clone()));
        }
        let iters = Tiles::inserted(&iters, at, inside);
        let name = format!("{}{end}", self.stage.name());
        Some(Stage::build(name, &iters, &self.stage.buffer, store, value, None))
    }
}
