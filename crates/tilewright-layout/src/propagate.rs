//! Layouts propagated through a function by its accesses.
//!
//! Some buffers of a function are given a layout; the others follow. Where a stage accesses an
//! axis of a buffer with one of its variables (`x[n, c, ...]`, or `x[n, c + 32, ...]` for a part of
//! the axis), the variable takes the digits of the axis, and so do the axes of all other buffers
//! that it indexes:
//!
//! ```text
//! for n, c, h, w:                                  for n, c_0, h, w, c_1:
//!     y[n, c, h, w] = x[n, c, h, w] + b[c]             y[n, c_0, h, w, c_1] =
//!                                                          x[n, c_0, h, w, c_1] + b[c_0, c_1]
//! ```
//!
//! Axes that keep their one digit may be indexed by anything, as the windows of a convolution do.
//! Nothing asks what the function computes: elementwise work, broadcasts, concatenation, splitting,
//! pooling, normalisation, softmax and contractions are one case. The function must be in canonical
//! form ([`mod@tilewright_analysis::stage`]), and comes back in it.
//!
//! **Padding.** The new stages also run where a digit is past the end of its axis. What they
//! compute there is found by evaluating the stored value on the pad values of what is read
//! (`super::constant`), and is the pad value of the result, if it is known. A reduction over
//! padding must not change its result: where the pad values do not see to it, the combined value
//! is selected. Extents may be open: an axis of open extent is followed where it keeps its one digit,
//! and where its blocks start is proven for all sizes. Reads that padding would carry out of range (of axes that keep their digit) are
//! selected lazily.

use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::dim::Integer;
use tilewright_ir::visit::{Subst, fold_expr_children, free_vars};
use tilewright_ir::{
    BinOp, Buffer, Dim, Error, Expr, ExprKind, Fold, IterKind, Param, Result, Stmt, TensorFunc,
    Var, dim,
};

use super::constant::{evaluate, same_value};
use super::tiled::{Split, TiledLayout};
use tilewright_graph::stages::accesses;
use tilewright_graph::view::is_compact;

/// The layouts of all buffers of a function, and what is needed to write it anew.
pub struct Propagation {
    func: Arc<TensorFunc>,
    stages: Vec<Stage>,
    layouts: HashMap<Buffer, TiledLayout>,
    /// The digits of each stage's variables.
    vars: Vec<HashMap<Var, Split>>,
}

/// A function in physical layout.
pub struct Propagated {
    /// The function.
    pub func: TensorFunc,
    /// What the padding of each parameter holds in the end, where that is known.
    pub pads: Vec<Option<Expr>>,
}

/// How an index moves with the variables of a stage.
enum Movement {
    /// `variable + shift`.
    Var(Var, i64),
    /// The same everywhere.
    Const,
    /// Anything else.
    Other,
}

impl Movement {
    fn classify(index: &Expr) -> Movement {
        if index.as_int().is_some() {
            return Movement::Const;
        }
        let (base, shift) = match index.kind() {
            ExprKind::Binary(BinOp::Add, a, b) if b.as_int().is_some() => (a, b.as_int()),
            ExprKind::Binary(BinOp::Add, a, b) if a.as_int().is_some() => (b, a.as_int()),
            ExprKind::Binary(BinOp::Sub, a, b) => (a, b.as_int().and_then(i64::checked_neg)),
            _ => (index, Some(0)),
        };
        match (base.as_var(), shift) {
            (Some(v), Some(shift)) => Movement::Var(v.clone(), shift),
            _ => Movement::Other,
        }
    }
}

fn extent_of(stage: &Stage, v: &Var) -> Option<Dim> {
    stage.dims().find(|i| i.0 == v).map(|i| i.1)
}

fn shape(b: &Buffer) -> Vec<Dim> {
    dim::of_shape(&b.shape).unwrap_or_default()
}

/// Whether cells from `shift` on, `own` of them, are the last of an axis.
fn ends(own: Dim, shift: i64, extent: Dim) -> bool {
    Integer::from(own).plus(shift) == Some(extent.into())
}

impl Propagation {
    /// Propagates the layouts of some buffers of a function to the others.
    ///
    /// # Errors
    /// `Refused`, with the access that does not follow.
    pub fn new(func: &Arc<TensorFunc>, given: &[(Buffer, TiledLayout)]) -> Result<Propagation> {
        let (allocs, _) = func.root_parts();
        // Numbers that are passed are sizes of the graph.
        let plain = func.ret.is_none() && func.size_arguments().is_ok();
        let all: Vec<Buffer> = func.buffers().chain(allocs).cloned().collect();
        let plain = plain && all.iter().all(|b| dim::of_shape(&b.shape).is_some());
        let found = open_stages(func).filter(|_| plain && all.iter().all(is_compact));
        let Some(stages) = found.filter(|s| s.iter().all(is_pure)) else {
            return Err(Error::refused("the function is not in canonical form").at(func.span));
        };
        for (b, layout) in given {
            if layout.logical != shape(b) {
                return Err(Error::refused(format!("the layout is not one of `{}`", b.name)));
            }
        }
        let mut digits = Digits::new(&all, &stages, given);
        digits.settle(&stages);
        let Digits { axes, vars } = digits;
        let mut splits: HashMap<Buffer, Vec<Split>> = HashMap::default();
        for (b, found) in axes {
            let known = found.into_iter().zip(shape(&b));
            let known = known.map(|(s, n)| s.unwrap_or_else(|| Split::plain(n))).collect();
            splits.insert(b, known);
        }
        for (stage, vars) in stages.iter().zip(&vars) {
            check(stage, &splits, vars).map_err(|e| e.at(stage.stmt.span().or(func.span)))?;
        }
        let orders = orders(&stages, &splits, given);
        let layouts = splits
            .into_iter()
            .map(|(b, splits)| {
                let order = orders.get(&b).cloned().unwrap_or_else(|| default_order(&splits));
                let logical = shape(&b);
                (b, TiledLayout { logical, splits, order })
            })
            .collect();
        Ok(Propagation { func: func.clone(), stages, layouts, vars })
    }

    /// The layout of each parameter.
    pub fn params(&self) -> Vec<TiledLayout> {
        self.func.buffers().map(|b| self.layout(b)).collect()
    }

    fn layout(&self, b: &Buffer) -> TiledLayout {
        self.layouts.get(b).cloned().unwrap_or_else(|| TiledLayout::of_buffer(b))
    }

    /// The function, given what the padding of each parameter holds that is read.
    ///
    /// # Errors
    /// `Refused` where padding cannot be computed or left out.
    pub fn build(&self, pads: &[Option<Expr>]) -> Result<Propagated> {
        let (allocs, _) = self.func.root_parts();
        let mut buffers: HashMap<Buffer, Buffer> = HashMap::default();
        for b in self.func.buffers().chain(allocs) {
            let layout = self.layout(b);
            let new = if layout.is_identity() {
                b.clone()
            } else {
                b.derive_storage(|d| {
                    d.shape = layout.physical().into_iter().map(Dim::expr).collect();
                })
            };
            buffers.insert(b.clone(), new);
        }
        let mut known: HashMap<Buffer, Written> = HashMap::default();
        for (b, pad) in self.func.buffers().zip(pads) {
            if !self.stages.iter().any(|s| s.buffer == *b) {
                let pad = pad.clone().map_or(Written::Anything, Written::Value);
                known.insert(b.clone(), pad);
            }
        }
        let mut bodies = Vec::new();
        for (n, stage) in self.stages.iter().enumerate() {
            let write = Write { propagation: self, stage, vars: &self.vars[n], buffers: &buffers };
            let (new, pad) = write.stage(&known)?;
            bodies.push(new.stmt);
            // Several stages may write parts of one buffer.
            let before = known.remove(&stage.buffer).unwrap_or(Written::Nothing);
            known.insert(stage.buffer.clone(), before.and(pad));
        }
        let params = self.func.buffers().map(|b| Param::tensor(&buffers[b]));
        let params = params.chain(self.func.scalars().cloned().map(Param::Scalar)).collect();
        let allocs = allocs.iter().map(|b| buffers[b].clone()).collect();
        let bare = TensorFunc { params, ..(*self.func).clone() };
        let mut func = bare.with_root(allocs, Stmt::seq(bodies));
        func.pass_sizes(self.func.shape_vars().into_iter().chain(func.shape_vars()));
        let pads = self.func.buffers().map(|b| known.get(b).and_then(Written::value)).collect();
        Ok(Propagated { func, pads })
    }
}

/// Whether a stage only computes: it calls nothing with effects, and carries no annotations.
fn is_pure(stage: &Stage) -> bool {
    !stage.value.effects().calls
        && !stage.value.effects().binds
        && stage.init.iter().all(|e| !e.effects().calls && !e.effects().binds)
        && stage.block.annotations.is_empty()
}

/// Digits of axes and variables as far as they are known.
struct Digits {
    axes: HashMap<Buffer, Vec<Option<Split>>>,
    vars: Vec<HashMap<Var, Split>>,
}

impl Digits {
    fn new(all: &[Buffer], stages: &[Stage], given: &[(Buffer, TiledLayout)]) -> Self {
        let mut axes: HashMap<Buffer, Vec<Option<Split>>> =
            all.iter().map(|b| (b.clone(), vec![None; b.rank()])).collect();
        for (b, layout) in given {
            axes.insert(b.clone(), layout.splits.iter().cloned().map(Some).collect());
        }
        Digits { axes, vars: vec![HashMap::default(); stages.len()] }
    }

    /// Lets axes and variables follow each other until nothing changes: everything is decided at
    /// most once.
    fn settle(&mut self, stages: &[Stage]) {
        loop {
            let mut changed = false;
            for (stage, vars) in stages.iter().zip(&mut self.vars) {
                for (b, at) in accesses(stage) {
                    let (Some(axes), shape) = (self.axes.get_mut(&b), shape(&b)) else { continue };
                    for ((index, axis), extent) in at.iter().zip(axes).zip(shape) {
                        let Movement::Var(v, shift) = Movement::classify(index) else { continue };
                        let Some(own) = extent_of(stage, &v) else { continue };
                        match (&axis, vars.get(&v)) {
                            (Some(split), None) => {
                                if let Some((split, _)) = split.window(extent, shift, own) {
                                    vars.insert(v, split);
                                    changed = true;
                                }
                            }
                            (None, Some(split)) => {
                                let found = part(split, own, -shift, extent);
                                changed |= found.is_some();
                                *axis = found.or(axis.take());
                            }
                            _ => {}
                        }
                    }
                }
            }
            if !changed {
                return;
            }
        }
    }
}

/// [`Split::window`], for an axis of which the other one may be a part.
fn part(of: &Split, own: Dim, shift: i64, extent: Dim) -> Option<Split> {
    of.window(own, shift, extent).map(|(split, _)| split)
}

/// Every access of an axis with several digits must follow its variable.
fn check(
    stage: &Stage,
    splits: &HashMap<Buffer, Vec<Split>>,
    vars: &HashMap<Var, Split>,
) -> Result<()> {
    for (k, (b, at)) in accesses(stage).into_iter().enumerate() {
        let Some(splits) = splits.get(&b) else { continue };
        for (d, (index, (split, extent))) in at.iter().zip(splits.iter().zip(shape(&b))).enumerate()
        {
            if split.is_plain(extent) {
                continue;
            }
            let follows = match Movement::classify(index) {
                Movement::Const => k > 0,
                Movement::Var(v, shift) => extent_of(stage, &v).is_some_and(|own| {
                    let found = split.window(extent, shift, own);
                    found.is_some_and(|(s, _)| vars.get(&v) == Some(&s))
                }),
                Movement::Other => false,
            };
            if !follows {
                return Err(Error::refused(format!(
                    "`{}` is accessed at `{index}` along axis {d}, which the layout splits into \
                     {:?}",
                    b.name, split.digits
                )));
            }
        }
    }
    Ok(())
}

type Order = Vec<(usize, usize)>;

/// First digits in the order of the axes, then the others.
fn default_order(splits: &[Split]) -> Order {
    let first = (0..splits.len()).map(|d| (d, 0));
    first
        .chain((0..splits.len()).flat_map(|d| (1..splits[d].digits.len()).map(move |k| (d, k))))
        .collect()
}

/// The order of the digits of each buffer: those that are given, and for the others the order in
/// which a buffer of the same stage has the digits of the same variables.
fn orders(
    stages: &[Stage],
    splits: &HashMap<Buffer, Vec<Split>>,
    given: &[(Buffer, TiledLayout)],
) -> HashMap<Buffer, Order> {
    let mut orders: HashMap<Buffer, Order> =
        given.iter().map(|(b, l)| (b.clone(), l.order.clone())).collect();
    loop {
        let before = orders.len();
        for stage in stages {
            let all = accesses(stage);
            let known = all.iter().find_map(|(b, at)| Some((at, orders.get(b)?.clone())));
            let Some((reference, order)) = known else { continue };
            let mut ranks: HashMap<(Var, usize), usize> = HashMap::default();
            for (rank, (d, k)) in order.iter().enumerate() {
                for v in reference.get(*d).map(free_vars).unwrap_or_default() {
                    ranks.entry((v, *k)).or_insert(rank);
                }
            }
            for (b, at) in &all {
                let (false, Some(splits)) = (orders.contains_key(b), splits.get(b)) else {
                    continue;
                };
                let mut own = default_order(splits);
                own.sort_by_key(|&(d, k)| {
                    let found = free_vars(&at[d]).into_iter();
                    let found = found.filter_map(|v| ranks.get(&(v, k)).copied()).min();
                    found
                        .or_else(|| {
                            order
                                .iter()
                                .position(|at| *at == (d, 0))
                                .filter(|_| at.len() == reference.len())
                        })
                        .unwrap_or(d)
                });
                orders.insert(b.clone(), own);
            }
        }
        if orders.len() == before {
            return orders;
        }
    }
}

/// What stages write to the padding of a buffer.
#[derive(Clone)]
enum Written {
    /// They write none.
    Nothing,
    /// One constant.
    Value(Expr),
    /// Nothing that is known.
    Anything,
}

impl Written {
    fn value(&self) -> Option<Expr> {
        match self {
            Written::Value(e) => Some(e.clone()),
            _ => None,
        }
    }

    fn and(self, other: Written) -> Written {
        match (self, other) {
            (Written::Nothing, one) | (one, Written::Nothing) => one,
            (Written::Value(a), Written::Value(b)) if same_value(&a, &b) => Written::Value(a),
            _ => Written::Anything,
        }
    }
}

/// One stage in physical layout.
struct Write<'a> {
    propagation: &'a Propagation,
    stage: &'a Stage,
    vars: &'a HashMap<Var, Split>,
    buffers: &'a HashMap<Buffer, Buffer>,
}

impl Write<'_> {
    /// The variables whose digits reach past the end, with the extent of each.
    fn padded(&self) -> Vec<(&Var, Dim, IterKind)> {
        self.stage
            .dims()
            .filter(|(v, n, _)| self.vars.get(v).is_some_and(|s| s.is_padded(*n)))
            .collect()
    }

    fn stage(&self, known: &HashMap<Buffer, Written>) -> Result<(Stage, Written)> {
        let stage = self.stage;
        let mut cells: HashMap<Var, Vec<Var>> = HashMap::default();
        let mut joined = Subst::default();
        for (v, extent, _) in stage.dims() {
            let split = self.vars.get(v).filter(|s| !s.is_plain(extent));
            let own = match split {
                None => vec![v.clone()],
                Some(s) => (0..s.digits.len())
                    .map(|k| Var::new(format!("{}_{k}", v.name()), v.dtype()))
                    .collect(),
            };
            if let Some(s) = split {
                let digits: Vec<Expr> = own.iter().map(Var::expr).collect();
                joined.vars.insert(v.clone(), s.join(&digits));
            }
            cells.insert(v.clone(), own);
        }
        let mut rewrite =
            Rewrite { write: self, cells: &cells, joined, reads: Vec::new(), inside: 0 };
        let indices = rewrite.access(&stage.buffer, &stage.indices);
        let padded = self.padded();
        if let Some(v) = rewrite.reads.iter().find(|v| padded.iter().any(|p| p.0 == *v)) {
            return Err(Error::refused(format!(
                "`{}` would be written out of range where `{}` is padding",
                stage.buffer.name,
                v.name()
            )));
        }
        self.writes_all()?;
        let init = stage.init.as_ref().map(|e| rewrite.expr(e));
        let reduction = stage.reduction();
        let zero = Expr::constant(0.0, stage.value.dtype());
        let (value, pad) = match (&reduction, stage.is_reduction()) {
            (Some(r), _) => {
                let mut value = rewrite.expr(&r.value);
                let neutral = neutral(r.op, stage.init.as_ref(), &value);
                for (v, extent, kind) in &padded {
                    let lazy = rewrite.reads.contains(v);
                    let there = self.at_padding(&r.value, v, known);
                    let fine = *kind == IterKind::Spatial
                        || there.is_some_and(|p| is_neutral(r.op, &p, neutral.as_ref()));
                    if lazy || !fine {
                        let Some(neutral) = neutral.clone() else {
                            return Err(Error::refused(format!(
                                "`{}` reduces over the padding of `{}`",
                                stage.buffer.name,
                                v.name()
                            )));
                        };
                        let cond = self.is_data(v, *extent, &mut rewrite);
                        value = if lazy {
                            Expr::if_then_else(cond, value, neutral)
                        } else {
                            Expr::select(cond, value, neutral)
                        };
                    }
                }
                let acc = self.buffers[&stage.buffer].load(indices.clone());
                let pad = self.agreed(|v| {
                    let init = evaluate(stage.init.as_ref()?, &|_, _| None)?;
                    if rewrite.reads.contains(v) {
                        return Some(init);
                    }
                    let there = self.at_padding(&r.value, v, known)?;
                    match r.op {
                        _ if is_neutral(r.op, &there, neutral.as_ref()) => Some(init),
                        BinOp::Min | BinOp::Max => {
                            evaluate(&Expr::binary(r.op, init, there), &|_, _| None)
                        }
                        _ => None,
                    }
                });
                (Expr::binary(r.op, acc, value), pad)
            }
            (None, true) if padded.iter().any(|p| p.2 == IterKind::Reduce) => {
                return Err(Error::refused(format!(
                    "`{}` reduces over padding in a form of its own",
                    stage.buffer.name
                )));
            }
            (None, true) => (rewrite.expr(&stage.value), self.agreed(|_| None)),
            (None, false) => {
                let mut value = rewrite.expr(&stage.value);
                for (v, extent, _) in &padded {
                    if rewrite.reads.contains(v) {
                        let cond = self.is_data(v, *extent, &mut rewrite);
                        value = Expr::if_then_else(cond, value, zero.clone());
                    }
                }
                let pad = self.agreed(|v| {
                    if rewrite.reads.contains(v) {
                        evaluate(&zero, &|_, _| None)
                    } else {
                        self.at_padding(&stage.value, v, known)
                    }
                });
                (value, pad)
            }
        };
        // A read out of range may hide in a reduction that could not be selected above.
        if let Some((v, ..)) = padded
            .iter()
            .find(|p| reduction.is_none() && stage.is_reduction() && rewrite.reads.contains(p.0))
        {
            let name = v.name();
            return Err(Error::refused(format!("the padding of `{name}` reads out of range")));
        }
        let iters = self.loops(&cells);
        let buffer = &self.buffers[&stage.buffer];
        let new = Stage::build(stage.name().clone(), &iters, buffer, indices, value, init);
        Ok((new, pad))
    }

    fn is_data(&self, v: &Var, extent: Dim, r: &mut Rewrite<'_>) -> Expr {
        self.vars[v].is_data(extent, &r.joined.expr(&v.expr()))
    }

    /// The stage together with others must still write every cell: where it writes the end of an
    /// axis it must also write the padding behind.
    fn writes_all(&self) -> Result<()> {
        let stage = self.stage;
        let layout = self.propagation.layout(&stage.buffer);
        for (d, index) in stage.indices.iter().enumerate() {
            let (split, extent) = (&layout.splits[d], layout.logical[d]);
            let Movement::Var(v, shift) = Movement::classify(index) else { continue };
            let Some(own) = extent_of(stage, &v) else { continue };
            if split.is_plain(extent) {
                continue;
            }
            let Some((part, first)) = split.window(extent, shift, own) else { continue };
            let part_first = part.digits.first().copied().unwrap_or(Dim::from(1));
            let last = ends(own, shift, extent);
            let whole = split.digits.first().is_some_and(|all| ends(part_first, first, *all));
            if last && !whole || !last && part.is_padded(own) {
                return Err(Error::refused(format!(
                    "the parts of `{}` along axis {d} do not end where blocks do",
                    stage.buffer.name
                )));
            }
        }
        Ok(())
    }

    /// The value of an expression where `v` is padding.
    fn at_padding(&self, value: &Expr, v: &Var, known: &HashMap<Buffer, Written>) -> Option<Expr> {
        let extent = extent_of(self.stage, v)?;
        evaluate(value, &|b, at| {
            let layout = self.propagation.layouts.get(b)?;
            // Where `v` ends there the axis must end too.
            let ends = at.iter().enumerate().any(|(d, index)| match Movement::classify(index) {
                Movement::Var(w, shift) => {
                    w == *v && layout.pads(d) && ends(extent, shift, layout.logical[d])
                }
                _ => false,
            });
            if ends { known.get(b).and_then(Written::value) } else { None }
        })
    }

    /// What the padding of the result holds, if it is one value.
    fn agreed(&self, at: impl Fn(&Var) -> Option<Expr>) -> Written {
        let padded = self.padded().into_iter().filter(|p| p.2 == IterKind::Spatial);
        let values = padded.map(|(v, ..)| at(v).map_or(Written::Anything, Written::Value));
        values.fold(Written::Nothing, Written::and)
    }

    /// The loops: those of the result in its order, with those that it does not have, then those
    /// of the reduction, whose order stays.
    fn loops(&self, cells: &HashMap<Var, Vec<Var>>) -> Vec<(Var, Dim, IterKind)> {
        let stage = self.stage;
        let layout = self.propagation.layout(&stage.buffer);
        let mut spatial: Vec<(Var, usize)> = Vec::new();
        for (d, k) in &layout.order {
            let used = free_vars(&stage.indices[*d]);
            for (v, ..) in stage.iters().filter(|i| used.contains(i.0)) {
                let follows = matches!(Movement::classify(&stage.indices[*d]), Movement::Var(..));
                let own = if follows { *k..*k + 1 } else { 0..cells[v].len() };
                for digit in own {
                    let item = (v.clone(), digit);
                    if digit < cells[v].len() && !spatial.contains(&item) {
                        spatial.push(item);
                    }
                }
            }
        }
        let [all_spatial, all_reduce] = [IterKind::Spatial, IterKind::Reduce].map(|wanted| {
            stage
                .iters()
                .filter(move |i| i.2 == wanted)
                .flat_map(|(v, ..)| (0..cells[v].len()).map(move |k| (v.clone(), k)))
        });
        for (at, item) in all_spatial.enumerate() {
            if !spatial.contains(&item) {
                spatial.insert(at.min(spatial.len()), item);
            }
        }
        let mut loops = self.loop_dims(IterKind::Spatial, spatial, stage, cells);
        loops.extend(self.loop_dims(IterKind::Reduce, all_reduce.collect(), stage, cells));
        loops
    }

    fn digit_extents(&self, v: &Var, extent: Dim) -> Vec<Dim> {
        self.vars.get(v).map_or_else(|| vec![extent], |s| s.digits.clone())
    }

    fn loop_dims(
        &self,
        kind: IterKind,
        list: Vec<(Var, usize)>,
        stage: &Stage,
        cells: &HashMap<Var, Vec<Var>>,
    ) -> Vec<(Var, Dim, IterKind)> {
        list.into_iter()
            .filter_map(move |(v, k)| {
                let extent = extent_of(stage, &v)?;
                Some((cells[&v][k].clone(), self.digit_extents(&v, extent)[k], kind))
            })
            .collect::<Vec<_>>()
    }
}

/// Expressions of a stage in terms of its new variables.
struct Rewrite<'a> {
    write: &'a Write<'a>,
    cells: &'a HashMap<Var, Vec<Var>>,
    joined: Subst,
    /// Variables with several digits that index an axis with one.
    reads: Vec<Var>,
    /// How many indices are around.
    inside: usize,
}

impl Rewrite<'_> {
    /// The physical indices of an access.
    fn access(&mut self, b: &Buffer, at: &[Expr]) -> Vec<Expr> {
        let layout = self.write.propagation.layout(b);
        self.inside += 1;
        let digits: Vec<Vec<Expr>> = at
            .iter()
            .zip(layout.splits.iter().zip(&layout.logical))
            .map(|(index, (split, extent))| {
                if split.is_plain(*extent) {
                    return vec![self.expr(index)];
                }
                match Movement::classify(index) {
                    Movement::Var(v, shift) => {
                        let own = extent_of(self.write.stage, &v).unwrap_or(*extent);
                        let first = split.window(*extent, shift, own).map_or(0, |w| w.1);
                        let cells = self.cells[&v].iter().enumerate();
                        cells.map(|(k, c)| c.expr() + if k == 0 { first } else { 0 }).collect()
                    }
                    _ => split.split(index),
                }
            })
            .collect();
        self.inside -= 1;
        layout.order.iter().map(|(d, k)| digits[*d][*k].clone()).collect()
    }
}

impl Fold for Rewrite<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        match e.kind() {
            ExprKind::Load(b, at) => {
                let at = self.access(b, at);
                self.write.buffers.get(b).unwrap_or(b).load(at)
            }
            ExprKind::Var(v) => {
                let Some(joined) = self.joined.vars.get(v) else { return e.clone() };
                if self.inside > 0 && !self.reads.contains(v) {
                    self.reads.push(v.clone());
                }
                joined.clone()
            }
            _ => fold_expr_children(self, e),
        }
    }
}

/// What a reduction may combine without a change.
fn neutral(op: BinOp, init: Option<&Expr>, value: &Expr) -> Option<Expr> {
    match op {
        BinOp::Add => Some(Expr::constant(0.0, value.dtype())),
        BinOp::Mul => Some(Expr::constant(1.0, value.dtype())),
        // The result starts from there, and combining that again changes nothing.
        BinOp::Min | BinOp::Max => init.and_then(|e| evaluate(e, &|_, _| None)),
        _ => None,
    }
}

fn is_neutral(op: BinOp, value: &Expr, neutral: Option<&Expr>) -> bool {
    // -0.0 in a sum is a zero too.
    let zero = op == BinOp::Add && value.as_float() == Some(0.0);
    zero || neutral.is_some_and(|n| same_value(n, value))
}
