//! Open sizes of tensor functions, as the calls of a graph function give them.
//!
//! A tensor function has variables of its own for sizes; the shapes of its arguments and the numbers
//! that are passed say what they are. [`unify_sizes`] gives every function that a graph function calls
//! the same variable for the same size, so that functions can be compared and merged, and schedules
//! and code count in `int32`.

use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::tensor::byte_count;
use tilewright_ir::visit::{Subst, fold_buffer, fold_func};
use tilewright_ir::{
    Buffer, DType, Dim, Error, Expr, Fold, Function, GraphExpr, GraphFunc, Module, Param, Result,
    TensorFunc, TensorType, Var, dim,
};

use crate::rewrite::{GraphFold, fold_blocks};

/// What the open sizes of a tensor function are in one call.
pub struct CallSizes<'a> {
    func: &'a str,
    /// The size that each variable of the function is, in variables of the caller.
    pub values: HashMap<Var, Dim>,
}

impl<'a> CallSizes<'a> {
    /// From the types of the arguments and the numbers that are passed.
    pub fn new(
        name: &'a str,
        func: &TensorFunc,
        types: &[&TensorType],
        scalars: &[Expr],
    ) -> Result<CallSizes<'a>> {
        let mut values = HashMap::default();
        for (v, e) in func.scalars().zip(scalars) {
            let size = Dim::from_expr(e).filter(|_| v.dtype().is_int()).ok_or_else(|| {
                Error::unsupported(format!(
                    "the call of `{name}` has the scalar argument `{e}`, which is no size"
                ))
            })?;
            values.insert(v.clone(), size);
        }
        let (params, _) = func.split_params();
        for (buffer, ty) in params.iter().filter_map(Param::buffer).zip(types) {
            for (extent, given) in buffer.shape.iter().zip(&ty.shape) {
                if let (Some(v), Some(given)) = (extent.as_var(), Dim::from_expr(given)) {
                    values.entry(v.clone()).or_insert(given);
                }
            }
        }
        Ok(CallSizes { func: name, values })
    }

    /// The size that a variable of the function is.
    ///
    /// # Errors
    /// `Input` where no argument says it.
    pub fn value(&self, v: &Var) -> Result<Dim> {
        self.values.get(v).copied().ok_or_else(|| {
            Error::input(format!("no argument of `{}` says how large `{}` is", self.func, v.name()))
                .help(format!("pass it in tir_vars, or give it: --dim {}=SIZE", v.name()))
        })
    }

    /// Number of elements of a parameter, however far apart they lie.
    pub fn cells(&self, buffer: &Buffer) -> Result<Dim> {
        let own =
            cells(&buffer.shape, buffer.dtype(), || format!("the parameter `{}`", buffer.name))?;
        Ok(own.substitute(&|v| self.values.get(v).copied()))
    }

    /// Sizes of the function as those of the graph.
    pub fn outside(&self, sizes: Vec<Dim>) -> Vec<Dim> {
        sizes.into_iter().map(|d| d.substitute(&|v| self.values.get(v).copied())).collect()
    }
}

/// The call of a function that takes no numbers but sizes of the graph.
///
/// # Errors
/// `Internal` for one that takes others.
pub fn call(
    func: &TensorFunc,
    name: Arc<str>,
    args: Vec<GraphExpr>,
    outs: Vec<TensorType>,
) -> Result<GraphExpr> {
    let scalars = func.size_arguments().map_err(|v| {
        Error::internal(format!("`{}` of `{name}` is no size of the graph", v.name()))
    })?;
    Ok(GraphExpr::CallTir { func: name, args, outs, scalars })
}

/// Whether the scalars that a call passes are the sizes that the function's own variables for them
/// stand for ([`unify_sizes`]).
pub fn passes_sizes(func: &TensorFunc, scalars: &[Expr]) -> bool {
    let passed = scalars.iter().map(|e| Dim::from_expr(e).map(Dim::inside));
    func.scalars().map(|v| Some(Dim::open(v))).eq(passed)
}

/// Whether a call gives a function tensors of the types of its parameters, whose open sizes are the
/// function's own ([`unify_sizes`]), and passes these.
pub fn fits(func: &TensorFunc, call: &GraphExpr) -> bool {
    let GraphExpr::CallTir { args, outs, scalars, .. } = call else { return false };
    let (count, mut buffers) = (args.len() + outs.len(), func.buffers());
    passes_sizes(func, scalars)
        && func.buffers().count() == count
        && args
            .iter()
            .zip(&mut buffers)
            .all(|(a, b)| a.ty().as_tensor().is_some_and(|t| fits_buffer(t, b)))
        && outs.iter().zip(&mut buffers).all(|(t, b)| fits_buffer(t, b))
}

fn fits_buffer(ty: &TensorType, b: &Buffer) -> bool {
    let shape = inside(ty);
    ty.dtype == b.dtype() && shape.is_some() && shape == dim::of_shape(&b.shape)
}

/// The extents of a tensor as tensor functions have them.
pub fn inside(ty: &TensorType) -> Option<Vec<Dim>> {
    Some(dim::of_shape(&ty.shape)?.into_iter().map(Dim::inside).collect())
}

/// The type of a tensor of the graph whose extents are as tensor functions have them.
pub fn outside(shape: &[Dim], dtype: DType) -> TensorType {
    TensorType { shape: shape.iter().map(|d| d.outside().wide()).collect(), dtype }
}

/// The extents of a tensor that is to have memory.
pub fn extents(shape: &[Expr], what: impl Fn() -> String) -> Result<Vec<Dim>> {
    shape
        .iter()
        .map(|e| {
            Dim::from_expr(e).ok_or_else(|| {
                Error::input(format!("the size of {} is not known: it is `{e}`", what()))
                    .help("give the open sizes with --dim")
            })
        })
        .collect()
}

/// Number of elements of a tensor.
fn cells(shape: &[Expr], dtype: DType, what: impl Fn() -> String) -> Result<Dim> {
    let shape = extents(shape, &what)?;
    if let Some(fixed) = dim::known(&shape)
        && byte_count(dtype, &fixed).is_none()
    {
        return Err(Error::input(format!("{} does not fit in memory", what())));
    }
    Ok(dim::product(shape))
}

/// Number of elements of a tensor of this type.
pub fn type_cells(ty: &TensorType, what: impl Fn() -> String) -> Result<Dim> {
    cells(&ty.shape, ty.dtype, what)
}

/// The type of a parameter; strides and offsets need memory that a plan does not know of.
pub fn buffer_type(b: &Buffer) -> Result<TensorType> {
    if !b.is_row_major() {
        return Err(Error::unsupported(format!(
            "the parameter `{}` has strides or an offset: only compact tensors can be planned",
            b.name
        )));
    }
    Ok(TensorType { shape: b.shape.clone(), dtype: b.dtype() })
}

/// A module in which every tensor function that is called with open sizes has the variables
/// [`narrow`](dim::narrow) of the sizes of the graph function; a function that is called with
/// different ones becomes several. So does a tensor function that is the entry. Where nothing is
/// open, the module stays as it is.
///
/// # Errors
/// [`Error::Input`] where the arguments of a call do not say how large something is.
pub fn unify_sizes(module: &Module) -> Result<Module> {
    let (out, done) = (module.clone(), HashMap::default());
    let mut unify = Unify { module, out, done, changed: false };
    if let Ok(entry) = module.entry()
        && let Some(Function::Tensor(f)) = module.functions.get(entry)
    {
        let wide = f.shape_vars().into_iter().filter(|v| v.dtype() != DType::I32);
        let values: HashMap<Var, Dim> =
            wide.map(|v| (v.clone(), Dim::open(&dim::narrow(&v)))).collect();
        if !values.is_empty() {
            unify.out.insert(entry.clone(), with_values(f, &values));
        }
        return Ok(unify.out);
    }
    for (name, func) in module.graphs() {
        unify.changed = false;
        let blocks = fold_blocks(&mut unify, &func.blocks)?;
        if unify.changed {
            unify.out.insert(name.clone(), GraphFunc { blocks, ..(**func).clone() });
        }
    }
    Ok(unify.out)
}

/// A function, and what its variables are in a call, in the order of the variables.
type Called = (Arc<str>, Vec<(Var, Dim)>);

struct Unify<'m> {
    module: &'m Module,
    out: Module,
    /// The functions that were made, by the old name and what its variables are.
    done: HashMap<Called, Arc<str>>,
    /// Whether a call became another one.
    changed: bool,
}

impl GraphFold for Unify<'_> {
    fn expr(&mut self, e: &GraphExpr) -> Result<GraphExpr> {
        let new = self.called(e)?;
        self.changed |= new.is_some();
        Ok(new.unwrap_or_else(|| e.clone()))
    }
}

impl Unify<'_> {
    /// The call of a function with the variables of the graph; `None` where it stays as it is.
    fn called(&mut self, e: &GraphExpr) -> Result<Option<GraphExpr>> {
        let GraphExpr::CallTir { func: name, args, outs, scalars } = e else { return Ok(None) };
        let Some(Function::Tensor(func)) = self.module.functions.get(name) else {
            return Ok(None);
        };
        let vars: Vec<Var> = func.shape_vars().into_iter().chain(func.scalars().cloned()).collect();
        if vars.is_empty() || vars.iter().any(|v| !v.dtype().is_int()) {
            return Ok(None);
        }
        // An argument without a type says nothing of sizes.
        let types: Vec<TensorType> =
            args.iter().map(|a| a.ty().as_tensor().cloned().unwrap_or_else(unknown_type)).collect();
        let types: Vec<&TensorType> = types.iter().chain(outs).collect();
        let sizes = CallSizes::new(name, func, &types, scalars)?;
        let mut values = HashMap::default();
        for v in vars {
            let size = sizes.value(&v)?;
            values.insert(v, size.inside());
        }
        let mut key: Vec<(Var, Dim)> = values.iter().map(|(v, d)| (v.clone(), *d)).collect();
        key.sort();
        let same = key.iter().all(|(v, d)| Dim::open(v) == *d);
        let key = (name.clone(), key);
        let new = match self.done.get(&key) {
            Some(new) => new.clone(),
            None => {
                // The first takes the place of the function.
                let first = !self.done.keys().any(|(other, _)| other == name);
                let new = if first { name.clone() } else { self.out.fresh_name(name) };
                if !(first && same) {
                    self.out.insert(new.clone(), with_values(func, &values));
                }
                self.done.insert(key, new.clone());
                new
            }
        };
        if same && new == *name {
            return Ok(None);
        }
        let func = self.out.tensor(&new)?;
        call(func, new, args.clone(), outs.clone()).map(Some)
    }
}

fn unknown_type() -> TensorType {
    TensorType { shape: Vec::new(), dtype: DType::F32 }
}

/// The function with sizes in the place of its variables. Open ones that no parameter has as an
/// extent become parameters.
fn with_values(func: &TensorFunc, values: &HashMap<Var, Dim>) -> TensorFunc {
    let vars = values.iter().map(|(v, d)| (v.clone(), d.typed(v.dtype())));
    let mut func = fold_func(&mut WithValues(Subst::vars(vars)), func);
    func.params.retain(|p| p.scalar().is_none_or(|v| !values.contains_key(v)));
    let mut open: Vec<Var> = values.values().flat_map(|d| d.vars()).collect();
    open.sort();
    func.pass_sizes(open);
    func
}

/// A substitution after which extents are in normal form, so that functions can be compared.
struct WithValues(Subst);

impl Fold for WithValues {
    fn expr(&mut self, e: &Expr) -> Expr {
        self.0.expr(e)
    }

    fn buffer_def(&mut self, b: &Buffer) -> Buffer {
        if let Some(new) = self.0.buffers.get(b) {
            return new.clone();
        }
        let Some(new) = fold_buffer(self, b) else { return b.clone() };
        let new = new.derive(|d| d.shape = d.shape.iter().map(normal_extent).collect());
        self.0.buffers.insert(b.clone(), new.clone());
        new
    }

    fn buffer_use(&mut self, b: &Buffer) -> Buffer {
        self.0.buffer_use(b)
    }
}

fn normal_extent(e: &Expr) -> Expr {
    Dim::from_expr(e).map_or_else(|| e.clone(), |d| d.typed(DType::I32))
}
