//! Sizes for what a module leaves open.
//!
//! A shape in TVMScript may hold variables (`T.Buffer((n, 128))`), and so may the types of a graph
//! function. Those that are given are filled in here: from the shapes of the inputs, and from sizes for
//! a variable's name or for one axis of an input (`A.0`). The others stay open, and are known when the
//! code runs. A scalar parameter of a tensor function counts as a size as well.
//!
//! Only the entry of a module has open sizes of its own. What it calls gets them from the types of
//! the arguments: a function that is called with other sizes in another place becomes two.

use std::collections::BTreeMap;
use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::dim::SizeRange;
use tilewright_ir::visit::{fold_buffer, fold_expr_children, fold_func, free_vars};
use tilewright_ir::{
    Buffer, DType, Error, Expr, ExprKind, Fold, Function, GraphExpr, GraphFunc, GraphType,
    GraphVar, Module, Param, Result, Tensor, TensorFunc, TensorType, Var, graph, operators,
};

use crate::rewrite::{GraphFold, fold_blocks, fold_children, sized};

/// What is known of the sizes that a model or module leaves open.
///
/// ```
/// use tilewright_graph::sizes::Sizes;
/// let sizes = Sizes::new().dim("N", 4).shape("x", &[4, 3]);
/// assert_eq!(sizes.dims["N"], 4);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    /// Sizes by the name of a dimension, or by input and axis as `INPUT.AXIS`.
    pub dims: BTreeMap<String, usize>,
    /// What a size may be, by the same keys: for those that stay open; one that is given has to fit.
    pub ranges: BTreeMap<String, SizeRange>,
    /// Whole shapes by the name of an input.
    pub shapes: BTreeMap<String, Vec<usize>>,
    /// Values by the name of an input. An ONNX model takes from them what its shapes depend on; such
    /// an input becomes a constant of the module.
    pub values: BTreeMap<String, Tensor>,
}

impl Sizes {
    /// Nothing is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a size, for a name or for `INPUT.AXIS`.
    pub fn dim(mut self, name: impl Into<String>, size: usize) -> Self {
        self.dims.insert(name.into(), size);
        self
    }

    /// Adds what a size may be, for a name or for `INPUT.AXIS`.
    pub fn range(mut self, name: impl Into<String>, range: SizeRange) -> Self {
        self.ranges.insert(name.into(), range);
        self
    }

    /// Adds the shape of an input.
    pub fn shape(mut self, input: impl Into<String>, shape: &[usize]) -> Self {
        self.shapes.insert(input.into(), shape.into());
        self
    }

    /// Adds the value of an input, and with it the shape.
    pub fn value(mut self, input: impl Into<String>, value: Tensor) -> Self {
        let input = input.into();
        self.values.insert(input.clone(), value.clone());
        self.shape(input, value.shape())
    }

    /// Whether no size is known.
    pub fn is_empty(&self) -> bool {
        self.dims.is_empty() && self.shapes.is_empty() && self.ranges.is_empty()
    }
}

/// What takes the places of variables: a number, or a variable with a range.
type Replaced = HashMap<Var, Expr>;

/// A number in the place of a variable.
fn number(var: Var, value: i64) -> (Var, Expr) {
    let dtype = var.dtype();
    (var, Expr::int(value, dtype))
}

/// The values of variables, each with where it is from.
type Values = HashMap<Var, (i64, String)>;

/// A tensor parameter of the entry, as its user sees it.
#[derive(Clone, Debug)]
pub struct Input {
    pub name: Arc<str>,
    /// Its extents.
    pub shape: Vec<Expr>,
    /// Type of the elements.
    pub dtype: DType,
}

/// Fills in sizes. The module's entry and what it calls are specialised; other functions stay.
///
/// # Errors
/// [`Error::Input`] if a size is given for something that is not there, twice differently, or
/// against a constant of the module.
pub fn fill(module: &Module, sizes: &Sizes) -> Result<Module> {
    let entry = match module.entry() {
        Ok(entry) => entry.clone(),
        Err(_) if sizes.is_empty() => return Ok(module.clone()),
        Err(e) => return Err(e),
    };
    let signature = Signature::read(module, &entry);
    let known = signature.solve(sizes)?;
    let mut values = signature.ranged(&sizes.ranges, &known)?;
    values.extend(known.into_iter().map(|(var, (value, _))| number(var, value)));
    let mut fill = Fill { module, out: Module::new(), done: HashMap::default(), depth: 0 };
    fill.out.attrs = module.attrs.clone();
    fill.out.source = module.source.clone();
    // In the order of the module: functions keep their places, copies come at the end.
    for (name, function) in &module.functions {
        fill.out.functions.insert(name.clone(), function.clone());
    }
    let function = fill.function(&entry, &values)?;
    fill.out.functions.insert(entry, function);
    Ok(fill.out)
}

/// The sizes that the entry of a module still leaves open.
pub fn open(module: &Module) -> Vec<Arc<str>> {
    let Ok(entry) = module.entry() else { return Vec::new() };
    let signature = Signature::read(module, entry);
    let mut names: Vec<Arc<str>> = signature.vars().map(|v| v.name().clone()).collect();
    names.sort();
    names.dedup();
    names
}

/// The tensor parameters of a function of a module, outputs of a tensor function among them.
pub fn inputs(module: &Module, function: &str) -> Vec<Input> {
    Signature::read(module, function).inputs
}

/// The sizes that one function of a module leaves open, where it is the entry. Scalars that are no
/// integers are data.
pub fn open_in(module: &Module, function: &str) -> Vec<Arc<str>> {
    let mut names = open(module);
    if let Some(Function::Tensor(f)) = module.functions.get(function) {
        names.retain(|n| !f.scalars().any(|v| v.name() == n && !v.dtype().is_int()));
    }
    names
}

/// The integers that a function takes and that none of its shapes depends on.
pub fn free_scalars(module: &Module, function: &str) -> Vec<Arc<str>> {
    let signature = Signature::read(module, function);
    let sizes: HashSet<Var> = signature.shape_vars().collect();
    signature.scalars.iter().filter(|v| !sizes.contains(v)).map(|v| v.name().clone()).collect()
}

/// Refuses a module whose entry leaves sizes open.
///
/// # Errors
/// [`Error::Input`] that names them.
pub fn check_closed(module: &Module) -> Result<()> {
    let open = open(module);
    if open.is_empty() {
        return Ok(());
    }
    let (mut said, mut flags) = (Vec::new(), String::new());
    for name in &open {
        said.push(format!("`{name}`"));
        flags += &format!(" --dim {name}=SIZE");
    }
    Err(Error::input(format!("the module leaves these sizes open: {}", said.join(", ")))
        .help(format!("give each a size:{flags}; or give the inputs")))
}

/// The parameters of a function.
struct Signature {
    inputs: Vec<Input>,
    scalars: Vec<Var>,
}

impl Signature {
    /// The tensor and the scalar parameters of a function, if it is there.
    fn read(module: &Module, name: &str) -> Signature {
        let mut inputs = Vec::new();
        let mut scalars = Vec::new();
        match module.functions.get(name) {
            Some(Function::Tensor(f)) => {
                for p in f.split_params().0 {
                    match p {
                        Param::Buffer { buffer, .. } => inputs.push(Input {
                            name: buffer.name.clone(),
                            shape: buffer.shape.clone(),
                            dtype: buffer.dtype(),
                        }),
                        Param::Scalar(var) => scalars.push(var.clone()),
                    }
                }
            }
            Some(Function::Graph(f)) => {
                for p in &f.params {
                    if let GraphType::Tensor(ty) = p.ty() {
                        let (name, shape) = (p.name().clone(), ty.shape.clone());
                        inputs.push(Input { name, shape, dtype: ty.dtype });
                    }
                }
            }
            None => {}
        }
        Signature { inputs, scalars }
    }

    /// The variables of the shapes.
    fn shape_vars(&self) -> impl Iterator<Item = Var> {
        self.inputs.iter().flat_map(|i| &i.shape).flat_map(free_vars)
    }

    /// All variables.
    fn vars(&self) -> impl Iterator<Item = Var> {
        self.shape_vars().chain(self.scalars.iter().cloned())
    }

    /// The values of the variables in the shapes of the inputs.
    fn solve(&self, sizes: &Sizes) -> Result<Values> {
        let mut values = Values::default();
        // Equations between an extent and a number that cannot be solved before other sizes are known.
        let mut later: Vec<(&Input, usize, i64, String)> = Vec::new();
        for (key, &size) in &sizes.dims {
            let from = format!("{key}={size}");
            let vars: Vec<Var> = self.named(key);
            if !vars.is_empty() {
                for var in vars {
                    set(&mut values, &var, checked_size(size)?, &from)?;
                }
                continue;
            }
            let (input, axis) = self.axis(key).ok_or_else(|| self.unknown(key))?;
            later.push((input, axis, checked_size(size)?, from));
        }
        for (name, shape) in &sizes.shapes {
            let input = self.inputs.iter().find(|i| *i.name == **name).ok_or_else(|| {
                let known: Vec<_> = self.inputs.iter().map(|i| format!("`{}`", i.name)).collect();
                Error::input(format!("there is no input `{name}`"))
                    .note(format!("the parameters are: {}", known.join(", ")))
            })?;
            if input.shape.len() != shape.len() {
                return Err(Error::input(format!(
                    "`{name}` has {} dimensions, and was given the shape {shape:?}",
                    input.shape.len()
                )));
            }
            for (axis, &size) in shape.iter().enumerate() {
                later.push((
                    input,
                    axis,
                    checked_size(size)?,
                    format!("the shape {shape:?} of `{name}`"),
                ));
            }
        }
        for (input, axis, size, from) in &later {
            if let Some(var) = input.shape[*axis].as_var() {
                set(&mut values, var, *size, from)?;
            }
        }
        for (input, axis, size, from) in &later {
            let plain =
                values.iter().map(|(var, (value, _))| number(var.clone(), *value)).collect();
            let extent = Bind::new(&plain).expr(&input.shape[*axis]);
            match extent.as_int() {
                Some(known) if known != *size => {
                    return Err(Error::input(format!(
                        "dimension {axis} of `{}` is {known}, but {from} was given",
                        input.name
                    )));
                }
                Some(_) => {}
                None => {
                    return Err(Error::input(format!(
                        "dimension {axis} of `{}` is `{}`, which {from} does not determine",
                        input.name, input.shape[*axis]
                    ))
                    .help("give the size of each variable"));
                }
            }
        }
        Ok(values)
    }

    /// Reads `INPUT.AXIS`.
    fn axis(&self, key: &str) -> Option<(&Input, usize)> {
        let (name, axis) = key.rsplit_once('.')?;
        let input = self.inputs.iter().find(|i| *i.name == *name)?;
        let axis = axis.parse().ok().filter(|axis| *axis < input.shape.len())?;
        Some((input, axis))
    }

    /// The variables of this name.
    fn named(&self, name: &str) -> Vec<Var> {
        let mut vars: Vec<Var> = self.vars().collect();
        vars.retain(|v| **v.name() == *name && v.dtype().is_int());
        vars.sort();
        vars.dedup();
        vars
    }

    fn unknown(&self, key: &str) -> Error {
        let mut names: Vec<String> = self.vars().map(|v| format!("`{}`", v.name())).collect();
        names.sort();
        names.dedup();
        Error::input(format!("there is no size `{key}` to be given")).note(if names.is_empty() {
            "no size is open".to_owned()
        } else {
            format!("open sizes: {}", names.join(", "))
        })
    }

    /// Variables with the ranges that are given, for those that stay open; sizes that are known have to be
    /// in theirs.
    fn ranged(&self, ranges: &BTreeMap<String, SizeRange>, known: &Values) -> Result<Replaced> {
        let mut found = Replaced::default();
        for (key, &range) in ranges {
            let mut vars = self.named(key);
            if vars.is_empty() {
                let (input, axis) = self.axis(key).ok_or_else(|| self.unknown(key))?;
                let extent = &input.shape[axis];
                if let Some(size) = extent.as_int().and_then(|n| usize::try_from(n).ok()) {
                    if range.contains(size) {
                        continue;
                    } else {
                        return Err(range.outside(key, size));
                    }
                }
                let var = extent.as_var().ok_or_else(|| {
                    Error::input(format!("`{key}` is `{extent}`, which can be given no range"))
                        .help("give the range of each variable")
                })?;
                vars.push(var.clone());
            }
            for var in vars {
                match known.get(&var).map(|(value, _)| usize::try_from(*value).unwrap_or(0)) {
                    Some(value) if !range.contains(value) => return Err(range.outside(key, value)),
                    Some(_) => {}
                    None => {
                        let (name, dtype) = (var.name().clone(), var.dtype());
                        let range = range.with_remainders(var.range().remainders());
                        let new = Var::usually(name, dtype, range, var.usual());
                        found.insert(var, new.expr());
                    }
                }
            }
        }
        Ok(found)
    }
}

fn checked_size(size: usize) -> Result<i64> {
    i64::try_from(size).map_err(|_| Error::input(format!("the size {size} is too large")))
}

fn set(values: &mut Values, var: &Var, value: i64, from: &str) -> Result<()> {
    match values.get(var) {
        Some((old, by)) if *old != value => {
            Err(Error::input(format!("two sizes for `{}`: {by} and {from}", var.name())))
        }
        Some(_) => Ok(()),
        None => {
            values.insert(var.clone(), (value, from.to_owned()));
            Ok(())
        }
    }
}

/// Replaces variables by numbers, and computes what becomes constant, in shapes above all.
struct Bind<'a> {
    values: &'a Replaced,
    buffers: HashMap<Buffer, Buffer>,
}

impl<'a> Bind<'a> {
    fn new(values: &'a Replaced) -> Self {
        Bind { values, buffers: HashMap::default() }
    }
}

impl Fold for Bind<'_> {
    fn expr(&mut self, e: &Expr) -> Expr {
        if let ExprKind::Var(v) = e.kind() {
            return self.values.get(v).unwrap_or(e).clone();
        }
        let folded = fold_expr_children(self, e);
        if folded.ptr_eq(e) {
            return folded;
        }
        let value = match folded.kind() {
            ExprKind::Binary(op, a, b) if a.as_int().is_some() && b.as_int().is_some() => {
                operators::fold_binary(*op, a, b)
            }
            ExprKind::Cast(a) if a.as_int().is_some() && folded.dtype().is_int() => {
                Some(a.clone().cast(folded.dtype()))
            }
            _ => None,
        };
        value.unwrap_or(folded)
    }

    fn var_def(&mut self, v: &Var) -> Var {
        self.values.get(v).and_then(Expr::as_var).unwrap_or(v).clone()
    }

    fn buffer_def(&mut self, b: &Buffer) -> Buffer {
        if let Some(new) = self.buffers.get(b) {
            return new.clone();
        }
        let Some(new) = fold_buffer(self, b) else { return b.clone() };
        self.buffers.insert(b.clone(), new.clone());
        new
    }

    fn buffer_use(&mut self, b: &Buffer) -> Buffer {
        self.buffers.get(b).cloned().unwrap_or_else(|| b.clone())
    }
}

/// Deepest chain of graph functions that call one another.
const MAX_DEPTH: usize = 100;

/// A function, and values for its variables in the order of the variables.
type Call = (Arc<str>, Vec<(Var, i64)>);

struct Fill<'a> {
    module: &'a Module,
    out: Module,
    /// Names of the callees that are specialised.
    done: HashMap<Call, Arc<str>>,
    depth: usize,
}

impl Fill<'_> {
    /// A function of the module with values for its variables.
    fn function(&mut self, name: &str, values: &Replaced) -> Result<Function> {
        match self.module.functions.get(name) {
            Some(Function::Tensor(f)) => Ok(tensor(f, values).into()),
            Some(Function::Graph(f)) => Ok(self.graph(f, values)?.into()),
            // The well-formedness check reports this with its place.
            None => self.module.tensor(name).map(|f| Function::Tensor(f.clone())),
        }
    }

    /// The name of a callee for arguments of these types and these values of scalar parameters.
    fn callee(
        &mut self,
        name: &Arc<str>,
        args: &[Option<TensorType>],
        scalars: &[Expr],
    ) -> Result<Arc<str>> {
        let Signature { inputs, scalars: params } = Signature::read(self.module, name);
        let mut values = Values::default();
        for (input, arg) in inputs.iter().zip(args) {
            let Some(arg) = arg else { continue };
            for (extent, given) in input.shape.iter().zip(&arg.shape) {
                if let (Some(var), Some(value)) = (extent.as_var(), given.as_int()) {
                    let from = format!("the arguments of a call of `{name}`");
                    set(&mut values, var, value, &from)?;
                }
            }
        }
        for (param, value) in params.iter().zip(scalars) {
            if let Some(value) = value.as_int() {
                set(&mut values, param, value, &format!("the scalars of a call of `{name}`"))?;
            }
        }
        let is_graph = matches!(self.module.functions.get(name), Some(Function::Graph(_)));
        // One that is called with open sizes as well must not lose them.
        let is_open = inputs.iter().flat_map(|i| &i.shape).any(|e| e.as_int().is_none());
        if values.is_empty() && !is_graph && !is_open && params.is_empty() {
            return Ok(name.clone());
        }
        let mut key: Vec<(Var, i64)> = values.iter().map(|(v, (n, _))| (v.clone(), *n)).collect();
        key.sort();
        let values: Replaced = values.into_iter().map(|(v, (n, _))| number(v, n)).collect();
        let key = (name.clone(), key);
        if let Some(done) = self.done.get(&key) {
            return Ok(done.clone());
        }
        if self.depth == MAX_DEPTH {
            return Err(Error::unsupported(format!(
                "graph functions that call one another {MAX_DEPTH} deep, as `{name}`"
            )));
        }
        self.depth += 1;
        let function = self.function(name, &values);
        self.depth -= 1;
        let function = function?;
        // The first takes the place of the open function, which cannot run any more.
        let first = !self.done.keys().any(|(other, _)| other == name);
        let new = if first { name.clone() } else { self.out.fresh_name(name) };
        self.out.functions.insert(new.clone(), function);
        self.done.insert(key, new.clone());
        Ok(new)
    }

    fn graph(&mut self, f: &GraphFunc, values: &Replaced) -> Result<GraphFunc> {
        let mut fold = FillGraph { fill: self, bind: Bind::new(values), vars: HashMap::default() };
        let params = f.params.iter().map(|p| fold.var_def(p)).collect();
        let blocks = fold_blocks(&mut fold, &f.blocks)?;
        let ret = fold.expr(&f.ret)?;
        let ret_ty = f.ret_ty.as_ref().map(|t| sized(t, &mut |e| fold.bind.expr(e)));
        Ok(GraphFunc { params, blocks, ret, ret_ty, ..f.clone() })
    }
}

/// One graph function, whose variables get new types.
struct FillGraph<'f, 'm> {
    fill: &'f mut Fill<'m>,
    bind: Bind<'f>,
    vars: HashMap<GraphVar, GraphVar>,
}

impl GraphFold for FillGraph<'_, '_> {
    fn var_def(&mut self, old: &GraphVar) -> GraphVar {
        let ty = sized(old.ty(), &mut |e| self.bind.expr(e));
        let new = GraphVar::new(old.name().clone(), ty);
        self.vars.insert(old.clone(), new.clone());
        new
    }

    fn var(&mut self, old: &GraphVar) -> GraphVar {
        self.vars.get(old).unwrap_or(old).clone()
    }

    fn size(&mut self, e: &Expr) -> Expr {
        self.bind.expr(e)
    }

    fn expr(&mut self, e: &GraphExpr) -> Result<GraphExpr> {
        let mut new = fold_children(self, e)?;
        match &mut new {
            GraphExpr::CallTir { func, args, outs, scalars } => {
                let types = args.iter().map(|a| a.ty().as_tensor().cloned());
                let types = types.chain(outs.iter().cloned().map(Some));
                *func = self.fill.callee(func, &types.collect::<Vec<_>>(), scalars)?;
                // Those with a value have become part of the callee.
                scalars.retain(|e| e.as_int().is_none());
            }
            GraphExpr::Call { op, args, .. } => {
                if let Some(func) = graph::callee(op) {
                    let types: Vec<_> = args.iter().map(|a| a.ty().as_tensor().cloned()).collect();
                    *op = graph::call_of(&self.fill.callee(&func.into(), &types, &[])?).into();
                }
            }
            _ => {}
        }
        Ok(new)
    }
}

/// A tensor function with values for its variables; scalar parameters with a value go.
fn tensor(f: &TensorFunc, values: &Replaced) -> TensorFunc {
    let mut f = fold_func(&mut Bind::new(values), f);
    f.params.retain(|p| p.scalar().is_none_or(|v| !values.contains_key(v)));
    f
}
