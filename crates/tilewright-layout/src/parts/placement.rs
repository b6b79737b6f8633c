//! Which parts lie where: joins from the last to the first, then slices from the first to the last,
//! since a slice lies in what may be a part itself.

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_analysis::open_stages;
use tilewright_ir::index::gcd;
use tilewright_ir::{
    Binding, Buffer, DType, Dim, Error, GraphExpr, GraphVar, Module, Remarks, TensorFunc, dim,
};

use super::join::Join;
use super::slice::{Slice, Sliced};
use super::strides::{Strides, moving, reshaped, row_major, takes_strides};
use super::users::Users;
use tilewright_graph::classify::reads_own_cell;

/// Rows of a part that are shorter share cache lines with their neighbours in the whole: then they are
/// written in pieces of lines, and a copy of the part costs no more.
const ROW_BYTES: usize = 64;

/// Vectors are aligned to no more than that.
const VECTOR_BYTES: usize = 64;

/// Lines at multiples of so many bytes share a set of the first cache, which holds few of them.
const SET_BYTES: i64 = 4096;

/// Lines that a set holds on machines where it holds least.
const SET_LINES: i64 = 8;

/// What is known of the functions that move parts, by name.
#[derive(Default)]
pub(super) struct Movers {
    pub(super) joins: HashMap<Arc<str>, Join>,
    pub(super) slices: HashMap<Arc<str>, Sliced>,
}

impl Movers {
    /// Takes note of a function.
    pub(super) fn add(&mut self, name: &Arc<str>, func: &TensorFunc, why: &mut Remarks) {
        if let Some(join) = Join::recognise(func) {
            self.joins.insert(name.clone(), join);
            return;
        }
        match Sliced::recognise(func) {
            Ok(sliced) => {
                self.slices.insert(name.clone(), sliced);
            }
            Err(Some(missed)) => {
                why.push(Error::refused(format!("`{name}` copies: {missed}")).at(func.span));
            }
            Err(None) => {}
        }
    }

    /// The joins of a module.
    pub(super) fn joins(module: &Module) -> Movers {
        let joins =
            module.tensors().filter_map(|(name, f)| Some((name.clone(), Join::recognise(f)?)));
        Movers { joins: joins.collect(), ..Movers::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.joins.is_empty() && self.slices.is_empty()
    }
}

/// Where a value lies in the memory of another one.
#[derive(Clone)]
pub(super) struct Region {
    /// Elements before it.
    pub(super) offset: Dim,
    /// As the origin lies.
    pub(super) strides: Strides,
}

/// An operand of a join that needs no code: a part of the whole.
pub(super) struct JoinOperand {
    pub(super) value: GraphExpr,
    /// Its least indices in the whole.
    pub(super) corner: Vec<Dim>,
    /// Whether it is computed in its place, or must be copied there.
    pub(super) placed: bool,
}

/// Which parts lie where.
#[derive(Default)]
pub(super) struct Placement {
    /// By origin.
    pub(super) regions: HashMap<u64, Region>,
    /// By the position of the call of a join that needs no code.
    pub(super) joined: HashMap<usize, Vec<JoinOperand>>,
    /// The positions of calls of which some results lie in an argument, and whether each does.
    pub(super) sliced: HashMap<usize, Vec<bool>>,
}

pub(super) fn shape_of(v: &GraphVar) -> Option<(Vec<Dim>, DType)> {
    let ty = v.ty().as_tensor()?;
    Some((dim::of_shape(&ty.shape)?, ty.dtype))
}

/// A graph, and what decides about it.
pub(super) struct Placing<'a> {
    pub(super) graph: &'a Users<'a>,
    pub(super) bindings: Vec<&'a Binding>,
    pub(super) movers: &'a Movers,
    /// Also where that is estimated to take more time.
    pub(super) all: bool,
}

impl Placing<'_> {
    pub(super) fn place(&self, why: &mut Remarks) -> Placement {
        let mut placed = Placement::default();
        for (n, b) in self.bindings.iter().enumerate().rev() {
            let Some((name, _, args)) = self.graph.call(b) else { continue };
            if let Some(join) = self.movers.joins.get(name)
                && let Err(missed) = self.join(&mut placed, n, join, args)
            {
                let text = format!("the parts of `{}` are copied: {missed}", b.var.name());
                why.push(Error::refused(text).at(b.span));
            }
        }
        for (n, b) in self.bindings.iter().enumerate() {
            let Some((name, func, args)) = self.graph.call(b) else { continue };
            if let Some(sliced) = self.movers.slices.get(name)
                && !self.graph.kept.contains(&b.var.id())
            {
                self.slice(&mut placed, n, sliced, func, args, why);
            }
        }
        placed
    }

    /// Places the parts of a join, if that pays.
    fn join(
        &self,
        placed: &mut Placement,
        n: usize,
        join: &Join,
        args: &[GraphExpr],
    ) -> Result<(), String> {
        let graph = self.graph;
        let whole = &self.bindings[n].var;
        let (shape, dtype) = shape_of(whole).ok_or("its shape is not known")?;
        if !graph.may_hold(whole.id()) {
            return Err("it is read by something that is no call".to_owned());
        }
        let within = match placed.regions.get(&whole.id()) {
            Some(region) => region.clone(),
            None => Region { offset: Dim::from(0), strides: row_major(&shape) },
        };
        let mut found: HashMap<u64, Region> = HashMap::default();
        let (mut cells, mut most) = (0i64, 0i64);
        let mut missed = None;
        let mut parts = self.parts(placed, join, args).ok_or("the shape of a part is not known")?;
        for part in &mut parts {
            let ty = part.value.ty();
            let extents = ty.as_tensor().and_then(|t| dim::of_shape(&t.shape));
            let extents = extents.ok_or("the shape of a part is not known")?;
            let count = dim::product(extents).estimate();
            cells = cells.saturating_add(count);
            let GraphExpr::Var(v) = &part.value else { continue };
            let origin = graph.origins.find(v);
            let region = self.part(placed, &within, &part.corner, v).and_then(|region| {
                if found.contains_key(&origin.id()) {
                    Err(format!("`{}` is joined twice", v.name()))
                } else {
                    Ok(region)
                }
            });
            let region = region.and_then(|region| {
                self.pays(&region, &origin, dtype)?;
                self.fits(placed, &origin, &region, Some(n))?;
                Ok(region)
            });
            match region {
                Ok(region) => {
                    part.placed = true;
                    most = most.saturating_add(count);
                    found.insert(origin.id(), region);
                }
                Err(fact) => missed = missed.or(Some(fact)),
            }
        }
        if !is_most(most, cells) {
            return Err(missed.unwrap_or_else(|| "most of them are constants".to_owned()));
        }
        placed.regions.extend(found);
        placed.joined.insert(n, parts);
        Ok(())
    }

    /// Where a part would lie, if it may lie there.
    fn part(
        &self,
        placed: &Placement,
        within: &Region,
        corner: &[Dim],
        v: &GraphVar,
    ) -> Result<Region, String> {
        let origin = self.graph.origins.find(v);
        if !self.graph.may_move(origin.id()) {
            return Err(format!("`{}` is an input, a result, or part of something", v.name()));
        }
        if placed.regions.contains_key(&origin.id()) {
            return Err(format!("`{}` is part of something else", v.name()));
        }
        shape_of(v)
            .zip(shape_of(&origin))
            .and_then(|((shape, _), (of_origin, _))| within.part(corner, &shape, &of_origin))
            .ok_or_else(|| format!("`{}` is seen in another shape", v.name()))
    }

    /// The parts of a join. Boxes that are slices of one value, and together are it, are that value.
    fn parts(
        &self,
        placed: &Placement,
        join: &Join,
        args: &[GraphExpr],
    ) -> Option<Vec<JoinOperand>> {
        let shapes = args.iter().map(|arg| dim::of_shape(&arg.ty().as_tensor()?.shape));
        let corners = join.corners(&shapes.collect::<Option<Vec<_>>>()?)?;
        let operand = |(value, corner): (&GraphExpr, Vec<Dim>)| JoinOperand {
            value: value.clone(),
            corner,
            placed: false,
        };
        let mut parts: Vec<JoinOperand> = args.iter().zip(corners).map(operand).collect();
        // By the value and its corner, the parts that lie in it there.
        let mut whole: Vec<(GraphVar, Vec<Dim>, Vec<usize>)> = Vec::new();
        for (k, JoinOperand { value, corner, .. }) in parts.iter().enumerate() {
            let Some((source, start)) = self.box_of(value) else { continue };
            let at = corner.iter().zip(start).map(|(c, s)| match *s {
                0 => Some(*c),
                s => c.known()?.checked_sub(s).map(Dim::from),
            });
            let Some(at) = at.collect::<Option<Vec<Dim>>>() else { continue };
            match whole.iter_mut().find(|w| w.0 == source && w.1 == at) {
                Some(found) => found.2.push(k),
                None => whole.push((source, at, vec![k])),
            }
        }
        let mut gone = HashSet::default();
        for (source, corner, members) in whole {
            let source = GraphExpr::Var(source);
            let sum = members
                .iter()
                .try_fold(Dim::from(0), |sum, k| Some(sum + cell_count(&parts[*k].value)?));
            let origin = match &source {
                GraphExpr::Var(v) => self.graph.origins.find(v).id(),
                _ => continue,
            };
            // Parts are disjoint, so that as many cells are all of them.
            let free = self.graph.may_move(origin) && !placed.regions.contains_key(&origin);
            if !free || sum.is_none() || sum != cell_count(&source) {
                continue;
            }
            gone.extend(members[1..].iter().copied());
            parts[members[0]] = JoinOperand { value: source, corner, placed: false };
        }
        let mut at = 0..;
        parts.retain(|_| at.next().is_none_or(|k| !gone.contains(&k)));
        Some(parts)
    }

    /// The value that a value is a box of, and the corner of the box.
    fn box_of(&self, value: &GraphExpr) -> Option<(GraphVar, &[usize])> {
        let GraphExpr::Var(v) = value else { return None };
        let (n, k) = *self.graph.users.get(&v.id())?.iter().find(|(n, k)| {
            let b = self.bindings[*n];
            let args = self.graph.call(b).map_or(usize::MAX, |(_, _, args)| args.len());
            *k >= args
        })?;
        let (name, _, args) = self.graph.call(self.bindings[n])?;
        let (input, slice, _) = self.movers.slices.get(name)?.results.get(k - args.len())?;
        match args.get(*input)? {
            GraphExpr::Var(source) => Some((source.clone(), slice.corner()?)),
            _ => None,
        }
    }

    /// Where a result that is a slice of an argument lies in it, if that pays.
    fn sliced_region(
        &self,
        placed: &Placement,
        result: &GraphVar,
        arg: Option<&GraphExpr>,
        slice: &Slice,
    ) -> Result<Region, String> {
        let Some(arg @ GraphExpr::Var(source)) = arg else {
            return Err("it is a slice of a constant".to_owned());
        };
        let origin = self.graph.origins.find(source).id();
        if !self.graph.given.contains(&origin) && !self.graph.computed.contains(&origin) {
            return Err(format!("`{}` has no memory that others lie in", source.name()));
        }
        if !self.graph.may_move(result.id()) {
            return Err("it is a result, and has memory of its own".to_owned());
        }
        let (shape, dtype) = shape_of(result).ok_or_else(unknown_shape)?;
        let (from, _) = shape_of(source).ok_or_else(unknown_shape)?;
        let own = placed.strides(self.graph, arg);
        let own = own.unwrap_or_else(|| row_major(&from));
        let before = placed.regions.get(&origin).map_or(Dim::from(0), |r| r.offset);
        let (offset, strides) = slice.lies(&shape, &own);
        let region = Region { offset: before + offset, strides };
        self.pays(&region, result, dtype)?;
        self.shares_no_sets(result, &region, &shape, dtype)?;
        self.fits(placed, result, &region, None)?;
        Ok(region)
    }

    /// Places those results of a call that are slices, as far as that pays.
    fn slice(
        &self,
        placed: &mut Placement,
        n: usize,
        sliced: &Sliced,
        func: &TensorFunc,
        args: &[GraphExpr],
        why: &mut Remarks,
    ) {
        let b = self.bindings[n];
        let results = self.graph.results_of(b, sliced.results.len());
        let mut lies = vec![false; results.len()];
        for (k, (result, (input, slice, _))) in results.iter().zip(&sliced.results).enumerate() {
            let Some(result) = result else { continue };
            // What is a part already is copied into its place.
            if placed.regions.contains_key(&result.id()) {
                continue;
            }
            match self.sliced_region(placed, result, args.get(*input), slice) {
                Ok(region) => {
                    placed.regions.insert(result.id(), region);
                    lies[k] = true;
                }
                Err(missed) => {
                    let text = format!("`{}` is copied: {missed}", result.name());
                    why.push(Error::refused(text).at(b.span.or(func.span)));
                }
            }
        }
        if lies.contains(&true) {
            placed.sliced.insert(n, lies);
        }
    }

    /// Whether all who read and write a value can do so where it is to lie; joins need no code.
    fn fits(
        &self,
        placed: &Placement,
        origin: &GraphVar,
        region: &Region,
        join: Option<usize>,
    ) -> Result<(), String> {
        let (shape, _) = shape_of(origin).ok_or("its shape is not known")?;
        if !region.strides.iter().chain([&region.offset]).all(|n| n.fits_int32()) {
            return Err("its places leave `int32`".to_owned());
        }
        if row_major(&shape) == region.strides {
            return Ok(());
        }
        let views = self.graph.views.get(&origin.id()).into_iter().flatten();
        for v in views {
            let seen = shape_of(v).and_then(|(to, _)| reshaped(&shape, &region.strides, &to));
            seen.ok_or_else(|| format!("`{}` sees it in another shape", v.name()))?;
        }
        for (n, k) in self.graph.users.get(&origin.id()).into_iter().flatten() {
            let takes = self.is_used(*n, *k, takes_strides);
            if !takes && Some(*n) != join && !placed.joined.contains_key(n) {
                let user = self.bindings[*n].var.name();
                return Err(format!("the call of `{user}` accesses it by more than indices"));
            }
        }
        Ok(())
    }

    /// Whether who reads a slice across its rows, as transpositions do, finds them in the first cache
    /// as it would those of a compact tensor.
    fn shares_no_sets(
        &self,
        result: &GraphVar,
        region: &Region,
        shape: &[Dim],
        dtype: DType,
    ) -> Result<(), String> {
        let compact = row_major(shape);
        let mut axes = shape.iter().zip(&compact).zip(&region.strides);
        let shares = axes.any(|((extent, compact), stride)| {
            extent.estimate() > SET_LINES
                && conflicts_in_sets(stride, dtype)
                && !conflicts_in_sets(compact, dtype)
        });
        if shares && !self.all && !self.reads_along_rows(result) {
            Err(format!(
                "rows would lie at multiples of {SET_BYTES} bytes, which share a set of the cache"
            ))
        } else {
            Ok(())
        }
    }

    /// Whether all who read a value compute each element from the one at the same place.
    fn reads_along_rows(&self, v: &GraphVar) -> bool {
        let mut users = self.graph.users.get(&v.id()).into_iter().flatten();
        let alone = self.graph.views.get(&v.id()).is_none_or(|views| views.len() == 1);
        alone && users.all(|(n, k)| self.is_used(*n, *k, reads_own_cells))
    }

    /// Whether the function of a call uses one of its parameters so.
    fn is_used(&self, n: usize, k: usize, so: impl Fn(&TensorFunc, &Buffer) -> bool) -> bool {
        let func = self.graph.call(self.bindings[n]).map(|(_, func, _)| func);
        func.is_some_and(|func| func.buffers().nth(k).is_some_and(|b| so(func, b)))
    }

    /// Whether a part may lie in place, if that should pay.
    fn pays(&self, region: &Region, origin: &GraphVar, dtype: DType) -> Result<(), String> {
        if self.all {
            return Ok(());
        }
        let (shape, _) = shape_of(origin).ok_or("its shape is not known")?;
        region.pays(&shape, dtype)
    }
}

fn cell_count(e: &GraphExpr) -> Option<Dim> {
    let shape = e.ty().as_tensor().and_then(|t| dim::of_shape(&t.shape));
    shape.map(dim::product)
}

fn unknown_shape() -> String {
    "its shape is not known".to_owned()
}

fn conflicts_in_sets(stride: &Dim, dtype: DType) -> bool {
    let bytes = stride.estimate().saturating_mul(dtype.bytes() as i64);
    bytes > 0 && bytes % SET_BYTES == 0
}

fn reads_own_cells(func: &TensorFunc, buffer: &Buffer) -> bool {
    open_stages(func).is_some_and(|stages| {
        stages.iter().all(|stage| {
            let loads = stage.loads().into_iter().filter(|(b, _)| b == buffer);
            loads.into_iter().all(|(b, at)| reads_own_cell(stage, &b, &at))
        })
    })
}

/// Whether so many cells of a whole lie in place that the others are copied.
pub(super) fn is_most(placed: i64, cells: i64) -> bool {
    placed.saturating_mul(2) >= cells
}

impl Region {
    /// Where the origin of a part lies, by the shapes of both, if its elements have one place and distance
    /// in the whole.
    pub(super) fn part(&self, corner: &[Dim], shape: &[Dim], origin: &[Dim]) -> Option<Region> {
        let strides = moving(shape, &self.strides);
        let steps = corner.iter().zip(&self.strides);
        let offset = steps.fold(self.offset, |sum, (c, s)| sum + *s * *c);
        Some(Region { offset, strides: reshaped(shape, &strides, origin)? })
    }

    /// Whether a part in place is read and written as fast as a compact tensor: its rows are whole
    /// cache lines, and begin at addresses as even.
    pub(super) fn pays(&self, shape: &[Dim], dtype: DType) -> Result<(), String> {
        let compact = row_major(shape);
        let bytes = dtype.bytes() as i128;
        // The innermost axes that lie as in a compact tensor are a row.
        let own = (0..shape.len()).rev().take_while(|k| compact[*k] == self.strides[*k]);
        let row = own.fold(Dim::from(dtype.bytes()), |n, k| n * shape[k]).estimate();
        if compact != self.strides && row < ROW_BYTES as i64 {
            return Err(format!("rows of {row} bytes are less than a cache line"));
        }
        let (there, alone) = (
            common_step(self.offset, &self.strides, bytes),
            common_step(Dim::from(0), &compact, bytes),
        );
        if there >= alone {
            Ok(())
        } else {
            Err(format!("vectors would lie at multiples of {there} bytes, not {alone}"))
        }
    }
}

fn common_step(offset: Dim, strides: &[Dim], bytes: i128) -> i128 {
    let steps = strides
        .iter()
        .map(|d| i128::from(d.estimate()))
        .filter(|s| *s > 1)
        .chain([i128::from(offset.estimate())]);
    steps.fold(VECTOR_BYTES as i128, |n, s| gcd(n, s.saturating_mul(bytes)))
}

impl Placement {
    /// How a variable lies, where it is not compact.
    pub(super) fn strides(&self, graph: &Users<'_>, e: &GraphExpr) -> Option<Strides> {
        let GraphExpr::Var(v) = e else { return None };
        let origin = graph.origins.find(v);
        let region = self.regions.get(&origin.id())?;
        let ((from, _), (to, _)) = (shape_of(&origin)?, shape_of(v)?);
        let strides = reshaped(&from, &region.strides, &to)?;
        (row_major(&to) != strides).then_some(strides)
    }
}
