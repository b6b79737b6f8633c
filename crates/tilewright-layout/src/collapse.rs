//! Axes that all accesses of a function walk as one become one axis, where a size of them is open.
//!
//! ```text
//! for c, h, w:                       for c, p:                      with p in range(h * w)
//!     y[c, h, w] = x[c, h, w] + b[c]     y[c, p] = x[c, p] + b[c]
//! ```
//!
//! Tensors lie in memory as before, so that the graph passes views of them. Loops over a product of open
//! sizes have fewer ends than loops over each of them: vectors and tiles go on where a row of an image
//! ends. Axes of known extents stay apart, since schedules merge these by themselves.

use std::iter::once;
use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::index::{Linear, Ranges, simplify};
use tilewright_ir::visit::free_vars;
use tilewright_ir::{
    Binding, Buffer, DType, Dim, Error, Expr, ExprKind, Fold, GraphExpr, GraphType, GraphVar,
    Module, Param, Result, Stmt, TensorFunc, TensorType, Var, dim,
};
use tilewright_transform::pass::{Pass, Run};

use tilewright_graph::call_sizes::{fits, unify_sizes};
use tilewright_graph::functions::{Functions, rewritten};
use tilewright_graph::marks::is_placed;
use tilewright_graph::normal::each_binding;
use tilewright_graph::stages::{Access, Iter, accesses};
use tilewright_graph::view::is_compact;

use crate::grouped::{Groups, grouped, in_groups, view};
use crate::parts::{Moved, is_mover, moved};

/// `collapse_axes` by name.
pub const PASS: Pass = Pass {
    name: "collapse_axes",
    summary: "make one axis of axes of open sizes that all accesses of a function walk as one",
    options: &[],
    run: Run::Module(|module, _, _| collapse_axes(&unify_sizes(module)?)),
};

/// Collapses the axes of every function that a graph function calls.
///
/// # Errors
/// Those of [`normalize`](tilewright_graph::normal::normalize).
pub fn collapse_axes(module: &Module) -> Result<Module> {
    let mut done = HashMap::default();
    rewritten(module, |functions, normal| {
        let (forms, wholes) = (HashMap::default(), HashMap::default());
        let moved = moved(normal, functions);
        let mut calls = Calls { done: &mut done, functions, moved, forms, wholes };
        each_binding(normal, |b, out| calls.binding(b, out))
    })
}

/// What a function became: its name, and the groups of each of its tensors.
#[derive(Clone)]
struct Collapsed {
    func: Arc<str>,
    groups: Vec<Groups>,
}

/// For each parameter of a function the axes that stay apart from those before.
type Apart = Vec<Vec<usize>>;

/// The calls of a graph function.
struct Calls<'a, 'm> {
    /// What functions became, by name and what stays apart.
    done: &'a mut HashMap<(Arc<str>, Apart), Option<Collapsed>>,
    functions: &'a mut Functions<'m>,
    /// What joins and slices move: other views would keep them from lying in other values.
    moved: Moved,
    /// The variables that have the memory of a variable, in groups of its axes.
    forms: HashMap<u64, Vec<(Groups, GraphVar)>>,
    /// What the results of a call became, where it has several.
    wholes: HashMap<u64, (GraphVar, Vec<Groups>)>,
}

impl Calls<'_, '_> {
    fn binding(&mut self, b: &Binding, out: &mut Vec<Binding>) -> Result<()> {
        if let GraphExpr::Item(of, k) = &b.value
            && let GraphExpr::Var(of) = &**of
            && let Some((whole, groups)) = self.wholes.get(&of.id())
            && let Some(groups) = groups.get(*k).cloned()
        {
            let value = GraphExpr::Item(Box::new(whole.expr()), *k);
            return self.result(&b.var, groups, value, b, out);
        }
        let (Some(new), GraphExpr::CallTir { args, outs, .. }) = (self.collapsed(b), &b.value)
        else {
            out.push(b.clone());
            return Ok(());
        };
        let (of_args, of_outs) = new.groups.split_at(args.len());
        let mut given = Vec::with_capacity(args.len());
        for (arg, groups) in args.iter().zip(of_args) {
            given.push(self.argument(arg, groups, out)?);
        }
        let types: Vec<TensorType> =
            outs.iter().zip(of_outs).map(|(ty, groups)| grouped(ty, groups)).collect();
        let value = self.functions.call(new.func, given, types.clone())?;
        if let GraphType::Tuple(_) = b.var.ty() {
            let types = types.into_iter().map(GraphType::Tensor).collect();
            let var = GraphVar::new(b.var.name().clone(), GraphType::Tuple(types));
            self.wholes.insert(b.var.id(), (var.clone(), of_outs.to_vec()));
            out.push(Binding { var, value, span: b.span });
            return Ok(());
        }
        let [groups] = of_outs else {
            return Err(Error::internal("a call of one result has several"));
        };
        self.result(&b.var, groups.clone(), value, b, out)
    }

    /// What a call calls with collapsed axes; `None` where nothing collapses.
    fn collapsed(&mut self, b: &Binding) -> Option<Collapsed> {
        let value = &b.value;
        let GraphExpr::CallTir { func: name, args, outs, .. } = value else { return None };
        let func = self.functions.get(name).filter(|f| fits(f, value))?.clone();
        let mut is_moved = false;
        let mut apart = Apart::new();
        for arg in args {
            let GraphExpr::Var(v) = arg else {
                apart.push(Vec::new());
                continue;
            };
            is_moved |= self.moved.contains_key(&v.id());
            apart.push(self.apart(v.id())?);
        }
        let of_result = self.apart(b.var.id())?;
        apart.extend(outs.iter().map(|_| of_result.clone()));
        // Joins and slices are such by their axes.
        if is_moved && is_mover(&func) {
            return None;
        }
        let key = (name.clone(), apart);
        if !self.done.contains_key(&key) {
            let new = collapse(&func, &key.1).map(|(new, groups)| {
                let func = self.functions.add(new, name);
                Collapsed { func, groups }
            });
            self.done.insert(key.clone(), new);
        }
        self.done.get(&key)?.clone()
    }

    /// The axes of a value that stay apart from those before; `None` where all stay as they are.
    fn apart(&self, value: u64) -> Option<Vec<usize>> {
        match self.moved.get(&value) {
            None => Some(Vec::new()),
            Some(axes) => axes.as_ref().map(|axes| axes.iter().copied().collect()),
        }
    }

    /// An argument with groups of its axes as one.
    fn argument(
        &mut self,
        arg: &GraphExpr,
        groups: &Groups,
        out: &mut Vec<Binding>,
    ) -> Result<GraphExpr> {
        let GraphExpr::Var(v) = arg else { return Ok(arg.clone()) };
        if groups.iter().all(|n| *n == 1) {
            return Ok(arg.clone());
        }
        let forms = self.forms.entry(v.id()).or_default();
        if let Some((_, known)) = forms.iter().find(|(of, _)| of == groups) {
            return Ok(known.expr());
        }
        let Some(ty) = v.ty().as_tensor() else { return Ok(arg.clone()) };
        let new = GraphVar::tensor(v.name().clone(), grouped(ty, groups));
        forms.push((groups.clone(), new.clone()));
        out.push(self.functions.made(
            (view(ty, groups, true)?, "view"),
            vec![arg.clone()],
            &new,
            None,
        )?);
        Ok(new.expr())
    }

    /// Binds a result whose axes a call gives in groups.
    fn result(
        &mut self,
        var: &GraphVar,
        groups: Groups,
        value: GraphExpr,
        b: &Binding,
        out: &mut Vec<Binding>,
    ) -> Result<()> {
        let Some(ty) = var.ty().as_tensor().filter(|_| groups.iter().any(|n| *n > 1)) else {
            out.push(Binding { var: var.clone(), value, span: b.span });
            return Ok(());
        };
        let new = GraphVar::tensor(var.name().clone(), grouped(ty, &groups));
        out.push(Binding { var: new.clone(), value, span: b.span });
        let view = (view(ty, &groups, false)?, "view");
        out.push(self.functions.made(view, vec![new.expr()], var, b.span)?);
        self.forms.entry(var.id()).or_default().push((groups, new));
        Ok(())
    }
}

/// A function with collapsed axes, and the groups of each of its tensors; `None` where there are none, or it is
/// not in canonical form.
fn collapse(func: &TensorFunc, apart: &Apart) -> Option<(TensorFunc, Vec<Groups>)> {
    let stages = open_stages(func).filter(|_| !is_placed(func) && func.ret.is_none())?;
    let stages: Vec<Stage> = stages.iter().map(without_units).collect();
    let (allocs, _) = func.root_parts();
    let all: Vec<&Buffer> = func.buffers().chain(allocs).collect();
    let compact = all.iter().all(|b| is_compact(b));
    if !compact || func.scratch_count() > 0 || !stages.iter().all(has_no_annotations) {
        return None;
    }
    let of_params = func.buffers().zip(apart);
    let cut = of_params.flat_map(|(b, axes)| {
        axes.iter().filter_map(|axis| Some((b.clone(), axis.checked_sub(1)?)))
    });
    let groups = Joints { cut: cut.collect() }.all_groups(&stages, &all)?;
    let groups = Some(groups).filter(|all| all.values().flatten().any(|n| *n > 1))?;
    let of_params = func.buffers().map(|b| groups[b].clone()).collect();
    let mut fold =
        Collapse { groups: &groups, buffers: HashMap::default(), vars: HashMap::default() };
    let stmts = stages.iter().map(|s| fold.stage(s)).collect::<Option<Vec<Stmt>>>()?;
    let params = func.buffers().map(|b| Some(Param::tensor(&fold.buffer(b)?)));
    let params = params.collect::<Option<Vec<Param>>>()?;
    let allocs = allocs.iter().map(|b| fold.buffer(b)).collect::<Option<Vec<Buffer>>>()?;
    let mut new = TensorFunc { params, ..func.clone() }.with_root(allocs, Stmt::seq(stmts));
    new.pass_sizes(func.shape_vars().into_iter().chain(func.scalars().cloned()));
    Some((new, of_params))
}

fn has_no_annotations(s: &Stage) -> bool {
    s.block.annotations.is_empty()
}

/// A stage in whose indices variables of one value do not stand, as those of a window of one pixel.
fn without_units(stage: &Stage) -> Stage {
    struct Units<'a>(&'a Ranges, HashSet<Var>);
    impl Fold for Units<'_> {
        fn access(&mut self, b: &Buffer, at: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
            if !at.iter().any(|i| self.has_unit(i)) {
                return None;
            }
            let at: Vec<Expr> = at.iter().map(|i| self.without_unit(i)).collect();
            Some((b.clone(), at.iter().map(|i| self.expr(i)).collect()))
        }
    }

    impl Units<'_> {
        fn has_unit(&self, i: &Expr) -> bool {
            i.as_var().is_none() && i.mentions_any(&self.1)
        }

        fn without_unit(&self, i: &Expr) -> Expr {
            if self.has_unit(i) { simplify(i, self.0) } else { i.clone() }
        }
    }
    let units = stage.dims().filter(|i| i.1 == 1).map(|i| i.0.clone()).collect();
    let ranges = stage.ranges();
    let mut units = Units(&ranges, units);
    let found = units.access(&stage.buffer, &stage.indices);
    let indices = found.map_or_else(|| stage.indices.clone(), |(_, indices)| indices);
    let (value, init) = (units.expr(&stage.value), stage.init.as_ref().map(|e| units.expr(e)));
    let iters: Vec<Iter> = stage.dims().map(|(v, n, kind)| (v.clone(), n, kind)).collect();
    let new = Stage::build(stage.name().clone(), &iters, &stage.buffer, indices, value, init);
    if stage.block.annotations.is_empty() { new } else { stage.clone() }
}

/// Which neighbouring axes of buffers stay apart, by the first of both.
struct Joints {
    cut: HashSet<(Buffer, usize)>,
}

impl Joints {
    /// The groups of the axes of some buffers: neighbours are one where every access in every stage walks them as
    /// one, and no access walks them in a buffer where their extents are known.
    fn all_groups(
        mut self,
        stages: &[Stage],
        buffers: &[&Buffer],
    ) -> Option<HashMap<Buffer, Groups>> {
        loop {
            let before = self.cut.len();
            stages.iter().for_each(|s| self.cut_by(s));
            let groups = buffers.iter().map(|b| Some(((*b).clone(), self.groups(b)?)));
            let groups: HashMap<Buffer, Groups> = groups.collect::<Option<_>>()?;
            for (buffer, groups) in &groups {
                let apart = (1..buffer.shape.len()).filter(|d| is_first(groups, *d));
                self.cut.extend(apart.map(|d| (buffer.clone(), d - 1)));
            }
            if self.cut.len() == before {
                return Some(groups);
            }
        }
    }

    /// Cuts what a stage does not walk as one.
    fn cut_by(&mut self, stage: &Stage) {
        let mut all = accesses(stage);
        if let Some(init) = &stage.init {
            init.for_each_load(|b, at| all.push((b.clone(), at.to_vec())));
        }
        // For each variable the one that comes behind it, and before it, in all accesses; `None` where they differ.
        let mut behind: HashMap<Var, Option<Var>> = HashMap::default();
        let mut before: HashMap<Var, Option<Var>> = HashMap::default();
        let values = once(&stage.value).chain(&stage.init);
        let loose = values.flat_map(used_alone);
        let nested = all.iter().flat_map(|access| {
            let at = access.1.iter().enumerate();
            at.filter(|(d, i)| i.as_var().is_none() && self.pair(stage, access, *d).is_none())
                .flat_map(|(_, i)| free_vars(i))
        });
        for v in loose.chain(nested).collect::<HashSet<Var>>() {
            unify(&mut behind, &v, None);
            unify(&mut before, &v, None);
        }
        for access in &all {
            for d in 0..access.1.len() {
                let Some((v, _)) = walked(&access.1[d], &|v| is_iter(v, stage)) else { continue };
                unify(&mut behind, &v, self.pair(stage, access, d).map(|p| p.1).as_ref());
                let first = d.checked_sub(1).and_then(|d| self.pair(stage, access, d));
                unify(&mut before, &v, first.map(|p| p.0).as_ref());
            }
        }
        for access in &all {
            for d in 1..access.1.len() {
                let agreed = self.pair(stage, access, d - 1).is_some_and(|(a, b)| {
                    behind.get(&a) == Some(&Some(b.clone())) && before.get(&b) == Some(&Some(a))
                });
                if !agreed {
                    self.cut.insert((access.0.clone(), d - 1));
                }
            }
        }
    }

    /// The variables that walk an axis of an access and the next one, where these are not cut: the next one from end
    /// to end, the first one from any place on.
    fn pair(&self, stage: &Stage, (buffer, at): &Access, d: usize) -> Option<(Var, Var)> {
        let joined = d + 1 < at.len() && !self.cut.contains(&(buffer.clone(), d));
        let b = at.get(d + 1).filter(|_| joined)?.as_var()?;
        let (a, _) = walked(&at[d], &|v| is_iter(v, stage))?;
        let ((_, kind_a), (of_b, kind_b)) =
            (extent_and_kind(&a, stage)?, extent_and_kind(b, stage)?);
        let one = a != *b && kind_a == kind_b && spans_axis(d + 1, of_b, buffer);
        one.then(|| (a, b.clone()))
    }

    /// The groups of axes of a buffer that are one; axes of known extents are alone.
    fn groups(&self, buffer: &Buffer) -> Option<Groups> {
        let shape = dim::of_shape(&buffer.shape)?;
        let mut groups = Groups::new();
        let mut at = 0;
        while at < shape.len() {
            let more = (at + 1..shape.len()).find(|d| self.cut.contains(&(buffer.clone(), d - 1)));
            let end = more.unwrap_or(shape.len());
            if shape[at..end].iter().all(|d| d.known().is_some()) {
                groups.extend((at..end).map(|_| 1))
            } else {
                groups.push(end - at)
            }
            at = end;
        }
        Some(groups)
    }
}

/// Whether an axis is the first one of its group.
fn is_first(groups: &[usize], axis: usize) -> bool {
    let mut firsts = groups.iter().scan(0, |end, n| {
        *end += n;
        Some(*end - n)
    });
    firsts.any(|first| first == axis)
}

fn unify(of: &mut HashMap<Var, Option<Var>>, v: &Var, other: Option<&Var>) {
    let known = of.entry(v.clone()).or_insert_with(|| other.cloned());
    if known.as_ref() != other {
        *known = None;
    }
}

fn extent_and_kind(v: &Var, stage: &Stage) -> Option<(Dim, tilewright_ir::IterKind)> {
    stage.dims().find(|i| i.0 == v).map(|i| (i.1, i.2))
}

fn is_iter(v: &Var, stage: &Stage) -> bool {
    stage.dims().any(|i| i.0 == v)
}

/// The variable of some that an index is, with what is added to it, where that depends on none of them.
fn walked(index: &Expr, is_own: &dyn Fn(&Var) -> bool) -> Option<(Var, Option<Expr>)> {
    if let Some(v) = index.as_var() {
        return is_own(v).then(|| (v.clone(), None));
    }
    let sum = Linear::from_expr(index)?;
    let mut own = sum.terms.iter().filter(|(e, _)| free_vars(e).iter().any(is_own));
    let (Some((atom, 1)), None) = (own.next(), own.next()) else { return None };
    let var = atom.as_var()?.clone();
    let added = sum.clone().plus(&Linear::atom(var.expr()), -1)?.to_expr()?;
    Some((var, Some(added)))
}

fn spans_axis(d: usize, extent: Dim, buffer: &Buffer) -> bool {
    Dim::from_expr(&buffer.shape[d]) == Some(extent)
}

/// The variables whose values an expression uses, not only to say where it loads from.
fn used_alone(e: &Expr) -> HashSet<Var> {
    let mut used = HashSet::default();
    e.for_each(|e| {
        used.extend(e.as_var().cloned());
        !matches!(e.kind(), ExprKind::Load(..))
    });
    used
}

/// Gives accesses one index for each group of axes.
struct Collapse<'a> {
    groups: &'a HashMap<Buffer, Groups>,
    /// What buffers became.
    buffers: HashMap<Buffer, Buffer>,
    /// By the first variable of a group the one that it became.
    vars: HashMap<Var, Var>,
}

impl Collapse<'_> {
    fn buffer(&mut self, b: &Buffer) -> Option<Buffer> {
        let groups = self.groups.get(b).filter(|groups| groups.iter().any(|n| *n > 1));
        let Some(groups) = groups else { return Some(b.clone()) };
        if let Some(new) = self.buffers.get(b) {
            return Some(new.clone());
        }
        let shape = in_groups(&dim::of_shape(&b.shape)?, groups);
        let new =
            b.derive_storage(|d| d.shape = shape.iter().map(|d| d.typed(DType::I32)).collect());
        self.buffers.insert(b.clone(), new.clone());
        Some(new)
    }

    /// A stage with one loop for each group of its variables.
    fn stage(&mut self, stage: &Stage) -> Option<Stmt> {
        // By the first variable of each group the others.
        let mut groups: HashMap<Var, Vec<Var>> = HashMap::default();
        for (b, at) in accesses(stage) {
            let mut rest = &at[..];
            for n in self.groups.get(&b)? {
                let (group, behind) = rest.split_at_checked(*n)?;
                if let ([first, others @ ..], true) = (group, *n > 1) {
                    let others = others.iter().map(|i| i.as_var().cloned());
                    let (first, _) = walked(first, &|v| is_iter(v, stage))?;
                    groups.insert(first, others.collect::<Option<_>>()?);
                }
                rest = behind;
            }
        }
        let inner: HashSet<&Var> = groups.values().flatten().collect();
        let mut iters: Vec<Iter> = Vec::new();
        for (v, n, kind) in stage.dims().filter(|i| !inner.contains(i.0)) {
            iters.push(match groups.get(v) {
                None => (v.clone(), n, kind),
                Some(others) => {
                    let new = self.vars.entry(v.clone()).or_insert_with(|| v.fresh());
                    (
                        new.clone(),
                        others.iter().fold(n, |n, v| {
                            n * stage.dims().find(|i| i.0 == v).map_or(Dim::from(1), |i| i.1)
                        }),
                        kind,
                    )
                }
            });
        }
        let buffer = self.buffer(&stage.buffer)?;
        let indices = match self.access(&stage.buffer, &stage.indices) {
            Some((_, indices)) => indices,
            None => stage.indices.iter().map(|i| self.expr(i)).collect(),
        };
        let (value, init) = (self.expr(&stage.value), stage.init.as_ref().map(|e| self.expr(e)));
        Some(Stage::build(stage.name().clone(), &iters, &buffer, indices, value, init).stmt)
    }
}

impl Fold for Collapse<'_> {
    fn access(&mut self, b: &Buffer, at: &[Expr]) -> Option<(Buffer, Vec<Expr>)> {
        let groups = self.groups.get(b).filter(|groups| groups.iter().any(|n| *n > 1))?;
        let mut first = 0;
        let mut indices = Vec::with_capacity(groups.len());
        for n in groups {
            let index = at.get(first)?;
            let own = Some(*n).filter(|n| *n > 1);
            let own = own.and_then(|_| walked(index, &|v| self.vars.contains_key(v)));
            indices.push(match own {
                None => self.expr(index),
                Some((var, added)) => {
                    let new = self.vars.get(&var)?.expr();
                    let row = dim::product(dim::of_shape(b.shape.get(first + 1..first + n)?)?);
                    added.map_or(new.clone(), |by| new + by * row.typed(DType::I32))
                }
            });
            first += n;
        }
        Some((self.buffer(b)?, indices))
    }
}
