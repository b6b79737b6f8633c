//! The form of a module that memory planning takes.
//!
//! * Graph functions are in normal form.
//! * Every result of a graph function has memory of its own: a result that is a parameter, a
//!   constant, a view of one, or shares its memory with another result is copied, by a call of a
//!   tensor function that is made for it.
//! * Tensor functions that only relabel are marked with `tilewright.view`, and no others.
//!
//! This comes before scheduling and lowering, since the copies are tensor functions as well.

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::{
    Attr, Binding, BindingBlock, DType, Dim, Error, Function, GraphExpr, GraphFunc, GraphType,
    GraphVar, Module, Result, TensorFunc, dim,
};
use tilewright_transform::pass::{Pass, Run};

use crate::functions::{Functions, each_tensor};
use crate::marks::{COPY, VIEW};
use crate::normal::{dataflow_graphs, map_results, normalize};
use crate::stages::{at, buffer, cells, one_stage};
use crate::view::relabels;

/// `legalize` by name.
pub const PASS: Pass = Pass {
    name: "legalize",
    summary: "bring graph functions into the form that memory planning needs",
    options: &[],
    run: Run::Module(|module, _, _| legalize(module)),
};

/// Brings a module into the form that `plan_memory` takes.
///
/// # Errors
/// Those of [`normalize`]; `Input` where a result that must be copied has a shape that is not
/// constant, `Unsupported` where it is no tensor.
pub fn legalize(module: &Module) -> Result<Module> {
    let mut out = each_tensor(module, |_, f| {
        let view = !f.attrs.contains_key(COPY) && relabels(f);
        if view != f.attrs.contains_key(VIEW) {
            let attrs = &mut Arc::make_mut(f).attrs;
            if view {
                attrs.insert(VIEW.into(), Attr::Int(1))
            } else {
                attrs.remove(VIEW)
            };
        }
    });
    let mut functions = Functions::new(module);
    for (name, func) in dataflow_graphs(module) {
        let new = own_results(&out, &normalize(module, name, func)?, &mut functions)?;
        out.insert(name.clone(), new);
    }
    functions.join(&mut out);
    Ok(out)
}

/// The value whose memory a variable has: through calls of views to their input.
pub struct Origins<'m> {
    module: &'m Module,
    of: HashMap<u64, GraphVar>,
}

impl<'m> Origins<'m> {
    /// Of the values of a module's graph functions; nothing is known before bindings are visited.
    pub fn new(module: &'m Module) -> Self {
        Origins { module, of: HashMap::default() }
    }

    /// Whether a call makes a view of its only argument.
    pub fn is_view(&self, value: &GraphExpr) -> bool {
        let GraphExpr::CallTir { func, args, outs, .. } = value else { return false };
        let marked = match self.module.functions.get(func) {
            Some(Function::Tensor(f)) => f.attrs.contains_key(VIEW),
            _ => false,
        };
        marked && args.len() == 1 && outs.len() == 1
    }

    /// Takes note of the next binding in order.
    pub fn bind(&mut self, b: &Binding) {
        if self.is_view(&b.value)
            && let GraphExpr::CallTir { args, .. } = &b.value
            && let Some(GraphExpr::Var(v)) = args.first()
        {
            let origin = self.find(v);
            self.of.insert(b.var.id(), origin);
        }
    }

    /// Where the variable's memory comes from: itself, if it is no view.
    pub fn find(&self, v: &GraphVar) -> GraphVar {
        self.of.get(&v.id()).unwrap_or(v).clone()
    }
}

/// The graph function with copies of those results that have no memory of their own; `module` marks views.
fn own_results(
    module: &Module,
    func: &GraphFunc,
    functions: &mut Functions<'_>,
) -> Result<GraphFunc> {
    // The variables that calls compute; parameters and constants are not among them.
    let mut computed: HashSet<u64> = HashSet::default();
    let mut origins = Origins::new(module);
    for b in func.bindings() {
        let view_of_constant = origins.is_view(&b.value)
            && matches!(&b.value, GraphExpr::CallTir { args, .. }
                if matches!(args.first(), Some(GraphExpr::Const(_))));
        if !matches!(b.value, GraphExpr::Const(_)) && !view_of_constant {
            computed.insert(b.var.id());
        }
        origins.bind(b);
    }
    let mut owned: HashSet<u64> = HashSet::default();
    let mut copied: Vec<Binding> = Vec::new();
    let ret = map_results(&func.ret, &mut |e| {
        let name: Arc<str> = match e {
            GraphExpr::Var(v) => {
                let origin = origins.find(v).id();
                if computed.contains(&origin) && owned.insert(origin) {
                    return Ok(e.clone());
                }
                v.name().clone()
            }
            GraphExpr::Const(_) => "constant".into(),
            _ => return Ok(e.clone()),
        };
        let GraphType::Tensor(ty) = e.ty() else {
            let text = format!("`{name}` is returned and is not a tensor");
            return Err(Error::unsupported(text));
        };
        let Some(shape) = dim::of_shape(&ty.shape) else {
            return Err(Error::input(format!("the size of the result `{name}` is not known"))
                .help("give the open sizes with --dim"));
        };
        let copy = (copy_func(ty.dtype, &shape)?, "copy");
        let var = GraphVar::tensor(name, ty);
        copied.push(functions.made(copy, vec![e.clone()], &var, None)?);
        Ok(var.expr())
    })?;
    if copied.is_empty() {
        return Ok(func.clone());
    }
    let mut blocks = func.blocks.clone();
    let outputs = copied.iter().map(|b| b.var.clone()).collect();
    blocks.push(BindingBlock { dataflow: true, bindings: copied, outputs });
    Ok(GraphFunc { blocks, ret, ..func.clone() })
}

/// A function that copies a tensor, in canonical form.
pub fn copy_func(dtype: DType, shape: &[Dim]) -> Result<TensorFunc> {
    if !shape.iter().all(|d| d.fits_int32()) {
        return Err(too_large(shape));
    }
    let [from, to] = ["x", "copy"].map(|name| buffer(name, shape, dtype));
    let iters = cells("vi", shape);
    let value = from.load(at(&iters));
    let mut func = one_stage("copy", &iters, [&from, &to], at(&iters), value);
    func.attrs.insert(COPY.into(), Attr::Int(1));
    Ok(func)
}

fn too_large(shape: &[Dim]) -> Error {
    Error::unsupported(format!("a tensor of shape {shape:?} is too large to copy"))
}
