//! From tensors to a tensor function in the canonical form: see [`func`].

use std::borrow::Borrow;
use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::visit::{Subst, fold_func, free_vars, walk_expr};
use tilewright_ir::well_formed::check_tensor;
use tilewright_ir::{
    Block, Buffer, Dim, Error, Expr, ExprKind, IterKind, IterVar, Param, Range, Result, Stmt,
    TensorFunc, Var, Visit, dim,
};

use super::{Stage, Tensor, invalid};

/// The tensor function that computes the outputs from the inputs: parameters are the inputs in
/// order, then the outputs in order. Inputs may go unused.
///
/// The body is one nest of serial loops for each [`Stage`], around one block whose iteration
/// variables follow the loops one to one: spatial ones first, then those of a reduction. Blocks
/// are named after their tensors; a number is added where a name comes twice.
///
/// An open size that the function uses and that is no extent of a parameter by itself is a scalar
/// parameter of type `int32` behind the outputs: `m` of `x[n, m * 2]`, but not `n`.
///
/// Fails with [`Error::Input`] where an input is computed, an output is an input or comes twice,
/// a tensor that is needed is not among the inputs, a type is none of elements, an access has the wrong number of indices or
/// an index that is no integer, a stored value has the wrong type, an axis is used that the stage
/// does not run over, or a tensor has more than 2^31 - 1 elements; and with [`Error::Malformed`]
/// where an expression breaks another rule of the IR, such as one type on both sides.
pub fn func<T: Borrow<Tensor>, U: Borrow<Tensor>>(
    inputs: impl IntoIterator<Item = T>,
    outputs: impl IntoIterator<Item = U>,
) -> Result<TensorFunc> {
    let inputs = inputs.into_iter().map(|t| t.borrow().clone()).collect();
    assemble(inputs, outputs.into_iter().map(|t| t.borrow().clone()).collect())
}

/// [`func`] of lists, compiled once.
fn assemble(inputs: Vec<Tensor>, outputs: Vec<Tensor>) -> Result<TensorFunc> {
    if outputs.is_empty() {
        return Err(Error::input("a tensor function needs an output"));
    }
    let mut params = HashSet::default();
    for t in &inputs {
        if t.node.stages.is_some() {
            return Err(invalid(t, "it is computed, so it cannot be an input"));
        }
        if !params.insert(t.buffer().id()) {
            return Err(invalid(t, "it is an input twice"));
        }
        check_type(t)?;
    }
    for t in &outputs {
        if t.node.stages.is_none() {
            return Err(invalid(t, "it is an input, so it cannot be an output: copy it"));
        }
        if !params.insert(t.buffer().id()) {
            return Err(invalid(t, "it is an output twice"));
        }
    }

    let mut names = Names::default();
    names.fresh(&"root".into());
    let (mut nests, mut allocs) = (Vec::new(), Vec::new());
    for t in in_order(&outputs) {
        let Some(stages) = &t.node.stages else {
            if params.contains(&t.buffer().id()) {
                continue;
            } else {
                return Err(invalid(&t, "it is needed, but is not among the inputs"));
            }
        };
        check_type(&t)?;
        if let Some(foreign) = t.node.reads.iter().find(|b| Tensor::from_buffer(b).is_none()) {
            let what = format!("it reads `{}`, a buffer that stands for no tensor", foreign.name);
            return Err(invalid(&t, what).help("read tensors: `te::placeholder` makes an input"));
        }
        for stage in stages {
            check(&t, stage)?;
            nests.push(nest(&t, stage, names.fresh(t.name())));
        }
        if !params.contains(&t.buffer().id()) {
            allocs.push(t.buffer().clone());
        }
    }
    let mut sizes = Sizes::default();
    for t in inputs.iter().chain(&in_order(&outputs)) {
        sizes.tensor(t);
    }
    let params: Vec<Param> =
        inputs.iter().chain(&outputs).map(|t| Param::tensor(t.buffer())).collect();
    let func = TensorFunc::new(params, Stmt::nop()).with_root(allocs, Stmt::seq(nests));
    // Tensors may go into several functions, and a function owns its variables.
    let mut func = fold_func(&mut Subst::refresh(), &func);
    func.pass_sizes(sizes.0);
    check_tensor(outputs[0].name(), &func)?;
    Ok(func)
}

/// The open sizes that a function uses, by the variables that stand for them in it, each once.
#[derive(Default)]
struct Sizes(Vec<Var>);

impl Sizes {
    fn tensor(&mut self, t: &Tensor) {
        t.shape().iter().for_each(|d| self.dim(*d));
        for stage in t.node.stages.iter().flatten() {
            stage.axes.iter().for_each(|a| self.dim(a.extent));
            let all = stage.indices.iter().chain([&stage.value]).chain(&stage.init);
            all.for_each(|e| self.expr(e));
        }
    }

    fn dim(&mut self, d: Dim) {
        d.vars().iter().for_each(|v| self.add(dim::narrow(v)));
    }

    fn expr(&mut self, e: &Expr) {
        free_vars(e).into_iter().filter(|v| dim::open_size(v).is_some()).for_each(|v| self.add(v));
    }

    fn add(&mut self, var: Var) {
        if !self.0.contains(&var) {
            self.0.push(var);
        }
    }
}

/// The tensors that are needed, each after those that it reads.
fn in_order(outputs: &[Tensor]) -> Vec<Tensor> {
    let (mut done, mut order) = (HashSet::default(), Vec::new());
    // A tensor with the number of its reads that have been looked at. An explicit stack, because
    // chains of tensors may be long.
    let mut stack: Vec<(Tensor, usize)> = Vec::new();
    for output in outputs {
        stack.push((output.clone(), 0));
        while let Some((t, next)) = stack.pop() {
            if done.contains(&t.buffer().id()) {
                continue;
            }
            match t.node.reads.get(next).cloned() {
                Some(read) => {
                    stack.push((t, next + 1));
                    stack.extend(Tensor::from_buffer(&read).map(|read| (read, 0)));
                }
                None => {
                    done.insert(t.buffer().id());
                    order.push(t);
                }
            }
        }
    }
    order
}

/// Names that are given out, each with the number to try next where it is wanted again.
#[derive(Default)]
struct Names(HashMap<Arc<str>, usize>);

impl Names {
    /// `base`, `base_1`, `base_2`, ...: the first that is free.
    fn fresh(&mut self, base: &Arc<str>) -> Arc<str> {
        let mut name = base.clone();
        while self.0.contains_key(&name) {
            let next = self.0.entry(base.clone()).or_default();
            *next += 1;
            name = format!("{base}_{next}").into();
        }
        self.0.insert(name.clone(), 0);
        name
    }
}

/// Refuses a tensor that functions cannot have: by its type, or too large for `int32` indices.
pub(crate) fn check_type(t: &Tensor) -> Result<()> {
    let dtype = t.dtype();
    if dtype.lanes != 1 || !(dtype.is_bool() || dtype.is_int() || dtype.is_float()) {
        return Err(invalid(t, format!("{dtype} is no type of an element")));
    }
    // The runtime sees to it where sizes are open.
    let mut known = t.shape().iter().filter_map(|d| d.known());
    let count = known.clone().try_fold(1usize, |n, d| n.checked_mul(d));
    if known.all(fits_int32) && count.is_some_and(fits_int32) {
        Ok(())
    } else {
        let what = format!("the shape {:?} has more than 2^31 - 1 elements", t.shape());
        Err(invalid(t, what))
    }
}

fn fits_int32(n: usize) -> bool {
    i32::try_from(n).is_ok()
}

fn check(t: &Tensor, stage: &Stage) -> Result<()> {
    let value = stage.value.dtype();
    if value != t.dtype() {
        return Err(invalid(t, format!("a {value} value does not fit its type {}", t.dtype())));
    }
    if let Some(axis) = stage.axes.iter().find(|a| !a.extent.fits_int32()) {
        return Err(invalid(t, format!("the axis `{}` is longer than 2^31 - 1", axis.name)));
    }
    let mut check = Check { problem: None };
    check.access(t.buffer(), &stage.indices);
    stage.indices.iter().chain([&stage.value]).chain(&stage.init).for_each(|e| check.expr(e));
    if let Some(problem) = check.problem {
        return Err(invalid(t, problem));
    }
    let own: HashSet<&Var> = stage.axes.iter().map(|a| &a.var).collect();
    let mut used = stage.indices.iter().chain([&stage.value]).flat_map(free_vars);
    if let Some(stray) = used.find(|v| !own.contains(v) && dim::open_size(v).is_none()) {
        let name = stray.name();
        return Err(invalid(t, format!("it uses `{name}`, which is none of its axes")));
    }
    Ok(())
}

/// Finds the first access with the wrong number or type of indices.
struct Check {
    problem: Option<String>,
}

impl Check {
    fn access(&mut self, b: &Buffer, indices: &[Expr]) {
        let problem = match indices.iter().find(|i| !i.dtype().is_int() || i.dtype().lanes != 1) {
            _ if indices.len() != b.rank() => {
                format!("`{}` has {} axes, not {}", b.name, b.rank(), indices.len())
            }
            Some(i) => format!("the index `{i}` of `{}` is {}, not an integer", b.name, i.dtype()),
            None => return,
        };
        self.problem.get_or_insert(problem);
    }
}

impl Visit for Check {
    fn expr(&mut self, e: &Expr) {
        if let ExprKind::Load(b, indices) = e.kind() {
            self.access(b, indices);
        }
        walk_expr(self, e);
    }
}

/// The loops around the block of a stage.
fn nest(t: &Tensor, stage: &Stage, name: Arc<str>) -> Stmt {
    let out = t.buffer();
    let spatial = stage.axes.iter().filter(|a| a.kind != IterKind::Reduce);
    let reduce = stage.axes.iter().filter(|a| a.kind == IterKind::Reduce);
    let axes: Vec<_> = spatial.chain(reduce).collect();
    // `check` has seen that the extents fit.

    let mut block = Block::new(name, Stmt::store(out, stage.indices.clone(), stage.value.clone()));
    block.init =
        stage.init.as_ref().map(|value| Stmt::store(out, stage.indices.clone(), value.clone()));
    block.iters = axes
        .iter()
        .map(|a| IterVar { var: a.var.clone(), domain: Range::upto(a.extent.expr()), kind: a.kind })
        .collect();
    let loops: Vec<Var> = axes.iter().map(|a| Var::index(a.name.clone())).collect();
    let bindings = loops.iter().map(Var::expr).collect();
    let body = Stmt::block(bindings, Expr::bool(true), block);
    axes.iter().zip(&loops).rev().fold(body, |s, (a, v)| Stmt::serial(v, a.extent.expr(), s))
}
