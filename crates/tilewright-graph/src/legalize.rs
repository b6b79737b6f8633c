//! The form of a module that memory planning takes.
//!
//! * Graph functions are in normal form.
//! * Every result of a graph function has memory of its own: a result that is a parameter, a
//!   constant, a view of one, or shares its memory with another result is copied, by a call of a
//!   tensor function that is made for it.
//! * Tensor functions that only relabel are marked with `tilewright.view`, and no others.
//!
//! This comes before scheduling and lowering, since the copies are tensor functions as well.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tilewright_analysis::Stage;
use tilewright_ir::{
    Attr, Binding, BindingBlock, Buffer, DType, Dim, Error, Expr, Function, GraphExpr, GraphFunc,
    GraphType, GraphVar, IterKind, Module, Param, Result, TensorFunc, TensorType, Var,
};
use tilewright_transform::pass::{Pass, Run};

use crate::marks::{COPY, VIEW};
use crate::normal::{dataflow_graphs, normalize};
use crate::view::relabels;

/// `legalize` by name.
pub const PASS: Pass = Pass {
    name: "legalize",
    summary: "bring graph functions into the form that memory planning needs",
    options: &[],
    run: Run::Module(|module, _, _| legalize(module)),
};

/// Brings a module into the form that [`plan_memory`](crate::plan_memory) takes.
///
/// # Errors
/// Those of [`normalize`]; `Input` where a result that must be copied has a shape that is not
/// constant, `Unsupported` where it is no tensor.
pub fn legalize(module: &Module) -> Result<Module> {
    let mut out = module.clone();
    for func in out.functions.values_mut() {
        if let Function::Tensor(f) = func {
            let view = !f.attrs.contains_key(COPY) && relabels(f);
            if view != f.attrs.contains_key(VIEW) {
                let mut new = (**f).clone();
                match view {
                    true => new.attrs.insert(VIEW.into(), Attr::Int(1)),
                    false => new.attrs.remove(VIEW),
                };
                *f = Arc::new(new);
            }
        }
    }
    let mut copies = Copies { made: HashMap::new(), module: out };
    for (name, func) in dataflow_graphs(module) {
        let normal = normalize(module, name, func)?;
        let new = copies.own_results(&normal)?;
        copies.module.insert(name.clone(), new);
    }
    Ok(copies.module)
}

/// The value whose memory a variable has: through calls of views to their input.
pub(crate) struct Origins<'m> {
    module: &'m Module,
    of: HashMap<u64, GraphVar>,
}

impl<'m> Origins<'m> {
    pub(crate) fn new(module: &'m Module) -> Self {
        Origins { module, of: HashMap::new() }
    }

    /// Whether a call makes a view of its only argument.
    pub(crate) fn is_view(&self, value: &GraphExpr) -> bool {
        let GraphExpr::CallTir { func, args, outs, .. } = value else { return false };
        let marked = match self.module.functions.get(func) {
            Some(Function::Tensor(f)) => f.attrs.contains_key(VIEW),
            _ => false,
        };
        marked && args.len() == 1 && outs.len() == 1
    }

    /// Takes note of the next binding in order.
    pub(crate) fn bind(&mut self, b: &Binding) {
        if self.is_view(&b.value)
            && let GraphExpr::CallTir { args, .. } = &b.value
            && let Some(GraphExpr::Var(v)) = args.first()
        {
            let origin = self.of(v);
            self.of.insert(b.var.id(), origin);
        }
    }

    /// Where the variable's memory comes from: itself, if it is no view.
    pub(crate) fn of(&self, v: &GraphVar) -> GraphVar {
        self.of.get(&v.id()).unwrap_or(v).clone()
    }
}

struct Copies {
    /// Names of the copying functions by type and shape.
    made: HashMap<(DType, Vec<Dim>), Arc<str>>,
    module: Module,
}

impl Copies {
    fn own_results(&mut self, func: &GraphFunc) -> Result<GraphFunc> {
        // The variables that calls compute; parameters and constants are not among them.
        let mut computed: HashSet<u64> = HashSet::new();
        let mut origins = Origins::new(&self.module);
        for b in func.bindings() {
            let view_of_constant = origins.is_view(&b.value)
                && matches!(&b.value, GraphExpr::CallTir { args, .. }
                    if matches!(args.first(), Some(GraphExpr::Const(_))));
            if !matches!(b.value, GraphExpr::Const(_)) && !view_of_constant {
                computed.insert(b.var.id());
            }
            origins.bind(b);
        }
        let mut owned: HashSet<u64> = HashSet::new();
        let mut copied: Vec<Binding> = Vec::new();
        let origin = |v: &GraphVar| origins.of(v);
        let mut shared = |v: &GraphVar| {
            let origin = origin(v).id();
            !computed.contains(&origin) || !owned.insert(origin)
        };
        let mut plan = Vec::new();
        mark_shared(&func.ret, &mut shared, &mut plan);
        let ret = self.copy_marked(&func.ret, &mut plan.into_iter(), &mut copied)?;
        if copied.is_empty() {
            return Ok(func.clone());
        }
        let mut blocks = func.blocks.clone();
        let outputs = copied.iter().map(|b| b.var.clone()).collect();
        blocks.push(BindingBlock { dataflow: true, bindings: copied, outputs });
        Ok(GraphFunc { blocks, ret, ..func.clone() })
    }

    /// The result with copies of those values that `marks` says, in order.
    fn copy_marked(
        &mut self,
        e: &GraphExpr,
        marks: &mut dyn Iterator<Item = bool>,
        bindings: &mut Vec<Binding>,
    ) -> Result<GraphExpr> {
        if let GraphExpr::Tuple(items) = e {
            let items = items.iter().map(|i| self.copy_marked(i, marks, bindings));
            return Ok(GraphExpr::Tuple(items.collect::<Result<_>>()?));
        }
        if marks.next() != Some(true) {
            return Ok(e.clone());
        }
        let (name, ty): (Arc<str>, TensorType) = match e {
            GraphExpr::Var(v) => match v.ty() {
                GraphType::Tensor(t) => (v.name().clone(), t.clone()),
                _ => {
                    return Err(Error::unsupported(format!(
                        "`{}` is returned and is not a tensor",
                        v.name()
                    )));
                }
            },
            GraphExpr::Const(t) => ("constant".into(), TensorType::fixed(t.shape(), t.dtype())),
            _ => return Ok(e.clone()),
        };
        let shape: Option<Vec<Dim>> = ty.shape.iter().map(Dim::of).collect();
        let Some(shape) = shape else {
            return Err(Error::input(format!("the size of the result `{name}` is not known"))
                .help("give the open sizes with --dim"));
        };
        let func = self.copier(ty.dtype, &shape)?;
        let scalars = match self.module.functions.get(&func) {
            Some(Function::Tensor(f)) => f.size_arguments(),
            _ => Ok(Vec::new()),
        };
        let scalars = scalars.map_err(|_| Error::internal("a copy takes a scalar"))?;
        let var = GraphVar::tensor(name, ty.clone());
        let value = GraphExpr::CallTir { func, args: vec![e.clone()], outs: vec![ty], scalars };
        bindings.push(Binding { var: var.clone(), value, span: None });
        Ok(GraphExpr::Var(var))
    }

    /// The name of a function that copies a tensor.
    fn copier(&mut self, dtype: DType, shape: &[Dim]) -> Result<Arc<str>> {
        let key = (dtype, shape.to_vec());
        if let Some(name) = self.made.get(&key) {
            return Ok(name.clone());
        }
        let name = self.module.fresh_name("copy");
        self.module.insert(name.clone(), copy_func(dtype, shape)?);
        self.made.insert(key, name.clone());
        Ok(name)
    }
}

/// For each value of a result in order, whether it must be copied.
fn mark_shared(e: &GraphExpr, shared: &mut dyn FnMut(&GraphVar) -> bool, marks: &mut Vec<bool>) {
    match e {
        GraphExpr::Tuple(items) => items.iter().for_each(|i| mark_shared(i, shared, marks)),
        GraphExpr::Var(v) => marks.push(shared(v)),
        GraphExpr::Const(_) => marks.push(true),
        _ => marks.push(false),
    }
}

/// A function that copies a tensor, in canonical form.
pub(crate) fn copy_func(dtype: DType, shape: &[Dim]) -> Result<TensorFunc> {
    let too_big =
        || Error::unsupported(format!("a tensor of shape {shape:?} is too large to copy"));
    if !shape.iter().all(|d| d.fits_int32()) {
        return Err(too_big());
    }
    let extents: Vec<Expr> = shape.iter().map(|d| d.expr()).collect();
    let [from, to] = ["x", "copy"].map(|name| Buffer::new(name, extents.clone(), dtype));
    let iters: Vec<(Var, Dim, IterKind)> = shape
        .iter()
        .enumerate()
        .map(|(k, d)| (Var::index(format!("vi{k}")), d.inside(), IterKind::Spatial))
        .collect();
    let at: Vec<Expr> = iters.iter().map(|i| i.0.expr()).collect();
    let stage = Stage::build("copy", &iters, &to, at.clone(), from.load(at), None);
    let mut func = TensorFunc::new([&from, &to].map(Param::tensor).to_vec(), stage.stmt);
    func.pass_sizes(shape.iter().flat_map(|d| d.inside().vars()));
    func.attrs.insert(COPY.into(), Attr::Int(1));
    Ok(func)
}
