//! Conversions: tensor functions that only move data from one layout to another.
//!
//! A conversion says of each cell of its result which cell of its argument it takes, or that it is
//! padding:
//!
//! ```text
//! result[c] = argument[source(c)]   where data(c)
//!             pad(c)                elsewhere
//! ```
//!
//! with a `source` that takes no cell twice. That is both directions of a layout: *packing* takes
//! every cell of the argument and pads (`i -> [i // 4, i % 4]` of 14 elements is
//! `source = 4 * c0 + c1`, `data = c0 < 3 or c1 < 2`), *cropping* has no padding and leaves cells
//! out. A transposition is both.
//!
//! [`Conversion::recognise`] finds this in the stores of a function, whatever loops, blocks or guards they
//! stand in and whether the store scatters (`P[i // 4, i % 4] = L[i]`) or the load gathers; no name
//! matters. All else is algebra on the three parts: composition, inverse, equality, identity.
//! Each answer is a proof of the set engine, and what is not proven is not so.
//!
//! Shapes may be open: their sizes are parameters of all sets, and what is proven is so for every size,
//! zero among them.
//!
//! **Limits.** Buffers are compact and have no axis separators. Products of open sizes are not linear:
//! what fuses open axes is no conversion.

use std::fmt;

use tilewright_analysis::Stage;
use tilewright_ir::equal::same_expr;
use tilewright_ir::visit::{Subst, free_vars};
use tilewright_ir::{
    Buffer, DType, Dim, Expr, ExprKind, Fold, IterKind, Param, Range, Stmt, TensorFunc, Var, dim,
};
use tilewright_polyhedral::{Domain, Engine, Known, Reason, Relation, Set};

use super::writes::{Write, Writes};
use tilewright_graph::stages::{Iter, at};

/// What the cells hold that take nothing from the argument.
#[derive(Clone, Debug)]
pub enum Pad {
    /// They are not written.
    None,
    /// Some value each.
    Undef,
    /// A value of the cell's indices.
    Value(Expr),
}

/// A movement of data from one layout to another.
#[derive(Clone)]
pub struct Conversion {
    /// Type of the elements.
    pub dtype: DType,
    /// Extents of the argument.
    pub from: Vec<Dim>,
    /// Extents of the result.
    pub to: Vec<Dim>,
    /// Names for the indices of a cell of the result.
    pub cells: Vec<Var>,
    /// The cell of the argument that a cell takes; right where `data` holds.
    pub source: Vec<Expr>,
    /// Which cells take one.
    pub data: Expr,
    /// What the others hold; [`Pad::None`] where there are none.
    pub pad: Pad,
    engine: Engine,
}

impl fmt::Debug for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Conversion {
    /// `(c0, c1) <- (c0 * 4 + c1) where c0 < 3 or c1 < 2, else 0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells = self.cells.iter().map(|c| c.name().to_string()).collect::<Vec<_>>().join(", ");
        let source = self.source.iter().map(Expr::to_string).collect::<Vec<_>>().join(", ");
        write!(f, "({cells}) <- ({source})")?;
        if self.data.is_true() {
            return Ok(());
        }
        let pad = match &self.pad {
            Pad::None => "nothing".to_owned(),
            Pad::Undef => "any value".to_owned(),
            Pad::Value(e) => e.to_string(),
        };
        write!(f, " where {}, else {pad}", self.data)
    }
}

/// Part of a result that one store writes last.
struct Piece {
    region: Set,
    leaf: Leaf,
}

enum Leaf {
    Source(Vec<Expr>),
    Pad(Pad),
}

impl Conversion {
    /// What a function of one argument and one result, and sizes of these, moves, if it only moves data and takes no
    /// element twice.
    pub fn recognise(func: &TensorFunc) -> Option<Conversion> {
        let (allocs, body) = func.root_parts();
        let buffers: Vec<&Buffer> = func.buffers().collect();
        let [from, to] = buffers[..] else { return None };
        // Other parameters are sizes.
        let sizes = func.sizes();
        let plain = func.ret.is_none() && func.scalars().all(|v| sizes.contains(v));
        if allocs.is_empty() && plain { Conversion::of_stage(body, from, to) } else { None }
    }

    /// The same for a statement that reads one buffer and writes another.
    pub(crate) fn of_stage(body: &Stmt, from: &Buffer, to: &Buffer) -> Option<Conversion> {
        let (from_shape, to_shape) = (extents(from)?, extents(to)?);
        let writes = Writes::collect(body)?;
        if from.dtype() != to.dtype()
            || !writes
                .stores
                .iter()
                .all(|w| w.buffer == *to && !w.init && leaves_move(&w.value, from))
        {
            return None;
        }
        let engine = Engine::new();
        let cells = cell_names(&to_shape);
        let sizes = sizes(from_shape.iter().chain(&to_shape));
        let found = pieces(&engine, &writes.stores, &cells, &sizes).and_then(|pieces| {
            Conversion::assemble(engine, to.dtype(), from_shape, to_shape, cells, pieces)
        });
        found.ok()
    }

    /// One conversion from the parts of a result, each with where its cells come from.
    fn assemble(
        engine: Engine,
        dtype: DType,
        from: Vec<Dim>,
        to: Vec<Dim>,
        cells: Vec<Var>,
        pieces: Vec<Piece>,
    ) -> Known<Conversion> {
        let all = boxed(&engine, &cells, &to);
        let every = all.to_set()?;
        let nothing = every.subtract(&every)?;
        let (mut data, mut undef, mut rest) = (nothing.clone(), nothing, every);
        let mut source: Option<Vec<Expr>> = None;
        let mut values: Vec<(Set, Expr)> = Vec::new();
        for Piece { region, leaf } in pieces {
            rest = rest.subtract(&region)?;
            match leaf {
                Leaf::Source(found) => {
                    let known = source.get_or_insert_with(|| found.clone());
                    if !is_same(&region.domain(), known, &found)? {
                        return Err(Reason::Mismatch("two sources".into()).into());
                    }
                    data = data.union(&region)?;
                }
                Leaf::Pad(Pad::Value(e)) => values.push((region, e)),
                Leaf::Pad(_) => undef = undef.union(&region)?,
            }
        }
        let pad = match (rest.is_void(), undef.is_void(), values.is_empty()) {
            (_, true, true) => Pad::None,
            (true, false, true) => Pad::Undef,
            (true, true, false) => Pad::Value(by_region(&all, values)?),
            // Nothing is claimed of cells that not all are the same.
            _ => return Err(Reason::Mismatch("several kinds of padding".into()).into()),
        };
        // A result that takes nothing is no conversion, but a constant.
        let source = source.ok_or(Reason::Empty)?;
        let inside = data.domain();
        let every = Expr::bool(true);
        let new = Conversion { dtype, from, to, cells, source, data: every, pad, engine };
        let new = new.of_region(&data)?;
        let fits = new.source.iter().zip(&new.from).all(|(e, n)| {
            let in_range = within(e, *n);
            inside.proves(&in_range)
        });
        if fits && new.relation()?.collision()?.is_none() {
            Ok(new)
        } else {
            Err(Reason::Mismatch("not a movement of single cells".into()).into())
        }
    }

    /// The cells of the result.
    pub fn all(&self) -> Domain {
        boxed(&self.engine, &self.cells, &self.to)
    }

    /// The cells that take one of the argument's.
    pub fn inside(&self) -> Domain {
        self.all().with_guard(&self.data)
    }

    /// The cells that take nothing.
    pub fn padding(&self) -> Domain {
        self.all().with_guard(&Expr::not_node(self.data.clone()))
    }

    /// From the cells that take one to the cells that they take.
    pub fn relation(&self) -> Known<Relation> {
        self.inside().map(&self.source)
    }

    /// Whether every cell of the result takes one of the argument's: there is no padding.
    pub fn is_total(&self) -> bool {
        self.data.is_true() || self.padding().is_void()
    }

    /// Whether every cell of the argument is taken: nothing is cropped.
    pub fn keeps_all(&self) -> bool {
        let cells = cell_names(&self.from);
        self.keeps_cells(&cells).unwrap_or(false)
    }

    fn keeps_cells(&self, cells: &[Var]) -> Known<bool> {
        let every = boxed(&self.engine, cells, &self.from).to_set()?;
        Ok(every.is_within(&self.relation()?.range(cells)?))
    }

    /// Whether the result is the argument, as far as anybody may look: same extents, every cell
    /// takes its own, and the others may hold anything.
    pub fn is_identity(&self) -> bool {
        self.takes_own_cells() && (self.is_total() || !matches!(self.pad, Pad::Value(_)))
    }

    /// Whether argument and result have the same extents and every cell that takes one takes its
    /// own.
    pub fn takes_own_cells(&self) -> bool {
        let own: Vec<Expr> = self.cells.iter().map(Var::expr).collect();
        self.from == self.to && is_same(&self.inside(), &self.source, &own).unwrap_or(false)
    }

    /// Whether the result is the argument in row-major order under another shape, so that both
    /// can be the same memory.
    pub fn is_view(&self) -> bool {
        let own: Vec<Expr> = self.cells.iter().map(Var::expr).collect();
        self.is_total()
            && dim::product(self.from.iter().copied()) == dim::product(self.to.iter().copied())
            && self
                .all()
                .equal(&flat_index(&self.source, &self.from), &flat_index(&own, &self.to))
                .is_yes()
    }

    /// First this conversion, then another one.
    ///
    /// The result holds what the two hold one after the other; where that may be any value, or is
    /// not written, it holds the other pad value, so that one value is enough. `None` where the
    /// shapes do not fit, or the engine cannot say it.
    pub fn then(&self, next: &Conversion) -> Option<Conversion> {
        if self.to != next.from || self.dtype != next.dtype {
            return None;
        }
        self.composed(next).ok()
    }

    fn composed(&self, next: &Conversion) -> Known<Conversion> {
        let place = self.cells.iter().cloned().zip(next.source.iter().cloned());
        let mut place = Subst::vars(place.map(|(c, e)| (c.clone(), e.cast(c.dtype()))));
        let inner = place.expr(&self.data);
        let both = next.data.clone().and(inner.clone());
        let mut regions = vec![(
            region_under(next.data.clone().and(!inner), next)?,
            match &self.pad {
                Pad::Value(e) => Pad::Value(place.expr(e)),
                other => other.clone(),
            },
        )];
        regions.push((region_under(Expr::not_node(next.data.clone()), next)?, next.pad.clone()));
        regions.retain(|(r, _)| !r.is_void());
        let values: Vec<(Set, Expr)> = regions
            .iter()
            .filter_map(|(r, pad)| match pad {
                Pad::Value(e) => Some((r.clone(), e.clone())),
                _ => None,
            })
            .collect();
        let pad = if !values.is_empty() {
            Pad::Value(by_region(&next.all(), values)?)
        } else if regions.iter().any(|(_, pad)| matches!(pad, Pad::Undef)) {
            Pad::Undef
        } else {
            Pad::None
        };
        let source = self.source.iter().map(|e| place.expr(e)).collect();
        let from = self.from.clone();
        Conversion { from, source, pad, ..next.clone() }.of_region(&region_under(both, next)?)
    }

    /// The same where the cells of a region take one.
    fn of_region(mut self, region: &Set) -> Known<Conversion> {
        let inside = region.domain();
        self.source = self.source.iter().map(|e| inside.simplify(e)).collect();
        self.data = region.condition(&self.all())?;
        Ok(self)
    }

    /// The conversion back: every cell that was taken gets its value from where it went; `pad`
    /// says what the cells hold that nothing took.
    pub fn inverse(&self, pad: Pad) -> Option<Conversion> {
        let cells = cell_names(&self.from);
        self.inverse_on(&cells, pad).ok()
    }

    fn inverse_on(&self, cells: &[Var], pad: Pad) -> Known<Conversion> {
        let relation = self.relation()?;
        let source = relation.inverse(cells)?;
        let (from, to) = (self.to.clone(), self.from.clone());
        let new = Conversion { from, to, cells: cells.to_vec(), source, pad, ..self.clone() };
        let new = new.of_region(&relation.range(cells)?)?;
        let pad = if new.data.is_true() { Pad::None } else { new.pad };
        Ok(Conversion { pad, ..new })
    }

    /// Whether both do the same: same cells from the same places, and the same padding.
    pub fn same_as(&self, other: &Conversion) -> bool {
        if self.dtype != other.dtype || self.from != other.from || self.to != other.to {
            return false;
        }
        let own = self.cells.iter().map(Var::expr);
        let mut rename = Subst::vars(other.cells.iter().cloned().zip(own));
        let source: Vec<Expr> = other.source.iter().map(|e| rename.expr(e)).collect();
        let same_pad = self.is_total()
            || match (&self.pad, &other.pad) {
                (Pad::None, Pad::None) | (Pad::Undef, Pad::Undef) => true,
                (Pad::Value(a), Pad::Value(b)) => same_value(&self.padding(), a, &rename.expr(b)),
                _ => false,
            };
        same_pad
            && self.all().same_condition(&self.data, &rename.expr(&other.data)).is_yes()
            && is_same(&self.inside(), &self.source, &source).unwrap_or(false)
    }

    /// The same movement with other padding.
    pub fn with_pad(&self, pad: Pad) -> Conversion {
        Conversion { pad, ..self.clone() }
    }

    /// The same movement where more cells take one; the caller knows that they hold what they
    /// held.
    pub(crate) fn with_data(&self, data: Expr) -> Conversion {
        let mut new = Conversion { data, ..self.clone() };
        if new.is_total() {
            new = Conversion { data: Expr::bool(true), pad: Pad::None, ..new };
        }
        new
    }

    /// Iteration variables for the cells of the result, and these in the place of the cells.
    pub(crate) fn iters(&self) -> (Vec<Iter>, Subst) {
        let iters: Vec<Iter> = self
            .cells
            .iter()
            .zip(&self.to)
            .map(|(c, n)| (Var::new(format!("v{}", c.name()), c.dtype()), *n, IterKind::Spatial))
            .collect();
        let to_iters = Subst::vars(self.cells.iter().cloned().zip(at(&iters)));
        (iters, to_iters)
    }

    /// The function that does it, in canonical form: one nest over the result's box, whose store
    /// selects between data and pad value. Padding that is not written leaves a condition on the
    /// block instead.
    pub fn to_func(&self, name: &str) -> TensorFunc {
        let (iters, mut to_iters) = self.iters();
        let at = at(&iters);
        let [from, to] = [("x", &self.from), ("y", &self.to)]
            .map(|(name, shape)| Buffer::new(name, extent_exprs(shape), self.dtype));
        let load = from.load(self.source.iter().map(|e| to_iters.expr(e)));
        let data = to_iters.expr(&self.data);
        let value = match &self.pad {
            _ if self.data.is_true() => load,
            Pad::None => load,
            Pad::Undef => Expr::if_then_else(data.clone(), load, Expr::undef(self.dtype)),
            Pad::Value(e) => Expr::if_then_else(data.clone(), load, to_iters.expr(e)),
        };
        let store = Stmt::store(&to, at, value);
        let body = match &self.pad {
            Pad::None => Stmt::guard(data, store),
            _ => store,
        };
        let body = Stage::nest(name, &iters, body);
        let mut func = TensorFunc::new([&from, &to].map(Param::tensor).to_vec(), body);
        func.pass_sizes(func.shape_vars());
        func
    }
}

fn flat_index(at: &[Expr], shape: &[Dim]) -> Expr {
    at.iter().zip(shape).fold(Expr::int(0, DType::I64), |sum, (i, extent)| {
        sum * extent.long() + i.clone().cast(DType::I64)
    })
}

fn region_under(guard: Expr, next: &Conversion) -> Known<Set> {
    next.all().with_guard(&guard).to_set()
}

/// Extents of a buffer whose cells are what its shape says, and nothing else.
fn extents(b: &Buffer) -> Option<Vec<Dim>> {
    let plain = b.strides.is_empty() && b.elem_offset.is_none() && b.axis_separators.is_empty();
    dim::of_shape(&b.shape).filter(|_| plain)
}

/// The type for indices of these extents; open ones are counted in `int32`.
fn index_type(shape: &[Dim]) -> DType {
    let small = shape.iter().all(|d| d.fits_int32());
    if small { DType::I32 } else { DType::I64 }
}

fn extent_exprs(shape: &[Dim]) -> Vec<Expr> {
    shape.iter().map(|d| d.typed(index_type(shape))).collect()
}

/// The open sizes of some extents, each once.
fn sizes<'a>(extents: impl IntoIterator<Item = &'a Dim>) -> Vec<Var> {
    let mut found: Vec<Var> = Vec::new();
    for v in extents.into_iter().flat_map(|d| d.vars()) {
        if !found.contains(&v) {
            found.push(v);
        }
    }
    found
}

/// Names for the indices of a cell.
pub(crate) fn cell_names(shape: &[Dim]) -> Vec<Var> {
    let dtype = index_type(shape);
    (0..shape.len()).map(|k| Var::new(format!("c{k}"), dtype)).collect()
}

/// The cells of a box, for all sizes that are not negative.
pub(crate) fn boxed(engine: &Engine, cells: &[Var], shape: &[Dim]) -> Domain {
    let ranges = cells.iter().zip(shape);
    let ranges: Vec<(Var, Range)> =
        ranges.map(|(c, n)| (c.clone(), Range::upto(n.typed(c.dtype())))).collect();
    let open: Vec<Expr> =
        sizes(shape).iter().map(|v| v.expr().greater_equal(Expr::int(0, v.dtype()))).collect();
    engine.domain_of(&ranges, &open)
}

/// Whether an index is one of an axis.
pub(crate) fn within(index: &Expr, extent: Dim) -> Expr {
    index.clone().greater_equal(0).and(index.clone().less(extent.typed(index.dtype())))
}

/// Whether two tuples of indices are equal everywhere.
fn is_same(domain: &Domain, a: &[Expr], b: &[Expr]) -> Known<bool> {
    Ok(domain.map(a)?.same_as(&domain.map(b)?).is_yes())
}

/// Whether two values are equal everywhere: the same text, or equal integers.
pub(crate) fn same_value(domain: &Domain, a: &Expr, b: &Expr) -> bool {
    same_expr(a, b) || (a.dtype() == b.dtype() && a.dtype().is_int() && domain.is_equal(a, b))
}

/// One expression for values of regions; the last region is what the others leave.
fn by_region(all: &Domain, mut values: Vec<(Set, Expr)>) -> Known<Expr> {
    let (_, last) = values.pop().ok_or(Reason::Empty)?;
    values.into_iter().rev().try_fold(last, |rest, (region, value)| {
        if same_value(&region.domain(), &value, &rest) {
            return Ok(rest);
        }
        Ok(Expr::select(region.condition(all)?, value, rest))
    })
}

/// Whether a value is elements of `from`, undefined values and expressions of indices, selected
/// by conditions on indices.
fn leaves_move(value: &Expr, from: &Buffer) -> bool {
    match value.kind() {
        ExprKind::Select(c, t, f) | ExprKind::IfThenElse(c, t, f) => {
            c.effects().constant() && leaves_move(t, from) && leaves_move(f, from)
        }
        ExprKind::Load(b, at) => b == from && at.iter().all(|e| e.effects().constant()),
        ExprKind::Undef => true,
        _ => value.effects().constant(),
    }
}

/// What each part of the result holds in the end, in terms of its cells.
fn pieces(engine: &Engine, stores: &[Write], cells: &[Var], sizes: &[Var]) -> Known<Vec<Piece>> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut later: Vec<(Set, &Write)> = Vec::new();
    for w in stores.iter().rev() {
        let mut own: Vec<(Set, &Write)> = Vec::new();
        for (guards, leaf) in leaves(&w.value) {
            let domain = guards.iter().fold(w.place.domain(engine), |d, g| d.with_guard(g));
            if domain.is_void() {
                continue;
            }
            let relation = domain.map(&w.indices)?;
            let mut region = relation.range(cells)?;
            if !region.is_exact() {
                return mismatch("a condition that is not affine");
            }
            let loops = w.place.loops.iter().map(|l| l.0.clone());
            let mut to_cells = Subst::vars(loops.zip(relation.inverse(cells)?));
            let leaf = match leaf.kind() {
                ExprKind::Load(_, at) => {
                    let at: Vec<Expr> = at.iter().map(|e| to_cells.expr(e)).collect();
                    at.iter().all(|e| mentions_only(e, cells, sizes)).then_some(Leaf::Source(at))
                }
                ExprKind::Undef => Some(Leaf::Pad(Pad::Undef)),
                _ => {
                    let value = to_cells.expr(&leaf);
                    mentions_only(&value, cells, sizes).then_some(Leaf::Pad(Pad::Value(value)))
                }
            };
            let Some(leaf) = leaf else { return mismatch("a value that the cell does not tell") };
            if own.iter().any(|(r, _)| !r.is_disjoint(&region).is_yes()) {
                return mismatch("a cell that is written twice");
            }
            own.push((region.clone(), w));
            for (r, by) in &later {
                // In one loop, which store comes last depends on the iteration.
                let outermost = w.place.loops.first().map(|l| &l.0);
                let share = outermost.is_some_and(|v| by.place.loops.iter().any(|l| l.0 == *v));
                if share && !r.is_disjoint(&region).is_yes() {
                    return mismatch("stores that overwrite each other");
                }
                region = region.subtract(r)?;
            }
            if !region.is_void() {
                pieces.push(Piece { region, leaf });
            }
        }
        later.append(&mut own);
    }
    Ok(pieces)
}

fn mismatch(what: &str) -> Known<Vec<Piece>> {
    Err(Reason::Mismatch(what.to_owned()).into())
}

fn mentions_only(e: &Expr, cells: &[Var], sizes: &[Var]) -> bool {
    free_vars(e).iter().all(|v| cells.contains(v) || sizes.contains(v))
}

/// The values that are selected between, each with the conditions that lead to it.
fn leaves(value: &Expr) -> Vec<(Vec<Expr>, Expr)> {
    match value.kind() {
        ExprKind::Select(c, t, f) | ExprKind::IfThenElse(c, t, f) => {
            let branches = [(c.clone(), t), (Expr::not_node(c.clone()), f)];
            let mut all = Vec::new();
            for (cond, branch) in branches {
                for (mut guards, leaf) in leaves(branch) {
                    guards.push(cond.clone());
                    all.push((guards, leaf));
                }
            }
            all
        }
        _ => vec![(Vec::new(), value.clone())],
    }
}
