//! A module with another size of one axis.
//!
//! What a model would cost with 64 channels instead of 65 is asked of a module in which these are 64:
//! the axis of one value changes, and with it everything that has to follow, through the functions that
//! read and make it (`function`): the loops, other axes of operands, weights, whose values are zeros
//! then, the inputs and the results of the graph. Numbers that came from the size (an average's `1 / n`)
//! stay as they are: such a module is for prices, and computes something else.
//!
//! **Limits.** Functions in canonical form, constant sizes. A change goes through windows from what is
//! read to what is made only, and by whole steps of the window.

mod function;
mod growth;

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::{
    Binding, Buffer, Error, Function, GraphExpr, GraphFunc, GraphType, GraphVar, Module, Result,
    Tensor, TensorFunc, TensorType,
};

use self::function::Resize;
use self::growth::Growth;
use crate::functions::Functions;
use crate::normal::{needed, normalize, one_block};
use crate::rewrite::GraphFold;

/// A module with another size, and what follows from it.
pub struct Resized {
    pub module: Module,
    /// The values that have another shape: name, and the axes that changed.
    pub changed: Vec<(Arc<str>, Vec<usize>)>,
    /// The inputs and results of the graph among them.
    pub ends: Vec<Arc<str>>,
}

/// Where a tensor of a call is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum ValuePlace {
    /// A value: a variable, and which one of several results.
    Value(u64, usize),
    /// A constant that is written as an argument, by call and position.
    Constant(u64, usize),
}

/// Changes the size of an axis of a value of the module's entry: cells come or go behind its last one.
///
/// # Errors
/// [`Error::Input`] for a value that is not there, or not once; [`Error::Refused`] that says where the
/// change cannot be followed.
pub fn resize(module: &Module, value: &str, axis: usize, to: i64) -> Result<Resized> {
    let entry: Arc<str> = module.entry()?.clone();
    let func = normalize(module, &entry, module.graph(&entry)?)?;
    let vars = func.params.iter().chain(func.bindings().map(|b| &b.var));
    let mut found = vars.filter(|v| **v.name() == *value);
    let (Some(seed), None) = (found.next(), found.next()) else {
        return Err(Error::input(format!("there is not one value `{value}`")));
    };
    let shape = seed.ty().as_tensor().and_then(TensorType::const_shape);
    let from = shape.as_ref().and_then(|s| s.get(axis)).and_then(|n| i64::try_from(*n).ok());
    let (Some(shape), Some(from)) = (shape, from.filter(|_| to > 0)) else {
        return Err(Error::input(format!("`{value}` has no axis {axis} of {to} cells to be")));
    };
    let mut graph =
        Graph { module, func: &func, growth: HashMap::default(), items: HashMap::default() };
    for b in func.bindings() {
        if let GraphExpr::Item(of, k) = &b.value
            && let GraphExpr::Var(of) = &**of
        {
            graph.items.insert(b.var.id(), ValuePlace::Value(of.id(), *k));
        }
    }
    let mut growth = vec![Growth::default(); shape.len()];
    growth[axis] = Growth::at(from, to - from);
    let place = graph.place(seed);
    graph.growth.insert(place, growth);
    graph.follow()?;
    graph.build(&entry)
}

struct Graph<'m> {
    module: &'m Module,
    func: &'m GraphFunc,
    growth: HashMap<ValuePlace, Vec<Growth>>,
    /// Variables that are one of several results.
    items: HashMap<u64, ValuePlace>,
}

impl Graph<'_> {
    fn place(&self, v: &GraphVar) -> ValuePlace {
        self.items.get(&v.id()).copied().unwrap_or(ValuePlace::Value(v.id(), 0))
    }

    fn is_changed(&self, v: &GraphVar) -> bool {
        self.growth.contains_key(&self.place(v))
    }

    fn tensor_func(&self, name: &str) -> Option<&Arc<TensorFunc>> {
        match self.module.functions.get(name)? {
            Function::Tensor(f) => Some(f),
            Function::Graph(_) => None,
        }
    }

    /// Passes over the calls until nothing changes any more.
    fn follow(&mut self) -> Result<()> {
        loop {
            let before = self.growth.clone();
            for b in self.func.bindings() {
                self.binding(b).map_err(|e| e.context(format!("`{}`", b.var.name())))?;
            }
            if before == self.growth {
                return Ok(());
            }
        }
    }

    fn binding(&mut self, b: &Binding) -> Result<()> {
        let GraphExpr::CallTir { func, args, outs, scalars } = &b.value else {
            let mut touched = false;
            if !matches!(b.value, GraphExpr::Item(..) | GraphExpr::Const(_)) {
                needed(&b.value, &mut |v| touched |= self.is_changed(v));
                touched |= self.is_changed(&b.var);
            }
            return if touched {
                Err(Error::refused("it is no call of a tensor function"))
            } else {
                Ok(())
            };
        };
        let places = self.places(b, args, outs.len());
        let known: Vec<_> = places.iter().map(|place| self.growth.get(place).cloned()).collect();
        if known.iter().all(Option::is_none) {
            return Ok(());
        }
        let f = self.tensor_func(func).cloned();
        let f = f.filter(|f| scalars.is_empty() && f.buffers().count() == places.len());
        let f = f.ok_or_else(|| Error::refused("it is called with more than tensors"))?;
        let resize = Resize::new(&f, &known_buffers(&f, &known))?;
        for (buffer, place) in f.buffers().zip(places) {
            let new = resize.growth(buffer);
            if new.iter().any(|g| !g.is_none()) {
                self.growth.insert(place, new.to_vec());
            }
        }
        Ok(())
    }

    /// The arguments of a call, then its results.
    fn places(&self, b: &Binding, args: &[GraphExpr], outs: usize) -> Vec<ValuePlace> {
        let args = args.iter().enumerate().map(|(k, arg)| match arg {
            GraphExpr::Var(v) => self.place(v),
            _ => ValuePlace::Constant(b.var.id(), k),
        });
        args.chain((0..outs).map(|k| ValuePlace::Value(b.var.id(), k))).collect()
    }

    /// The module with all changes made.
    fn build(&self, entry: &Arc<str>) -> Result<Resized> {
        let mut functions = Functions::new(self.module);
        let mut vars: HashMap<u64, GraphVar> = HashMap::default();
        let mut changed = Vec::new();
        let mut renew = |v: &GraphVar, vars: &mut HashMap<u64, GraphVar>| {
            let new = self.renewed(v);
            if let Some(growth) = self.growth.get(&self.place(v))
                && v.ty().as_tensor().is_some()
            {
                let axes = growth.iter().enumerate().filter(|(_, g)| !g.is_none());
                changed.push((v.name().clone(), axes.map(|(d, _)| d).collect::<Vec<_>>()));
            }
            vars.insert(v.id(), new.clone());
            new
        };
        let params: Vec<GraphVar> = self.func.params.iter().map(|p| renew(p, &mut vars)).collect();
        let mut bindings = Vec::new();
        for b in self.func.bindings() {
            let value = self.value(b, &vars, &mut functions)?;
            let var = renew(&b.var, &mut vars);
            bindings.push(Binding { var, value, span: b.span });
        }
        let ret = Renewed(&vars).expr(&self.func.ret)?;
        let mut ends: Vec<Arc<str>> = Vec::new();
        let mut at_ends: Vec<GraphVar> = self.func.params.clone();
        needed(&self.func.ret, &mut |v| at_ends.push(v.clone()));
        for v in at_ends {
            if self.is_changed(&v) && !ends.contains(v.name()) {
                ends.push(v.name().clone());
            }
        }
        let new = GraphFunc { params, ret_ty: None, ..one_block(self.func, bindings, ret) };
        let graphs = HashMap::from_iter([(entry.clone(), new)]);
        let module = functions.finish(&graphs, |_, f| f.clone());
        Ok(Resized { module, changed, ends })
    }

    /// The variable with its new type.
    fn renewed(&self, v: &GraphVar) -> GraphVar {
        let ty = match v.ty() {
            GraphType::Tuple(items) => {
                let items = items
                    .iter()
                    .enumerate()
                    .map(|(k, ty)| self.grown(ty, ValuePlace::Value(v.id(), k)));
                GraphType::Tuple(items.collect())
            }
            ty => self.grown(ty, self.place(v)),
        };
        GraphVar::new(v.name().clone(), ty)
    }

    fn grown(&self, ty: &GraphType, place: ValuePlace) -> GraphType {
        match (ty, self.growth.get(&place)) {
            (GraphType::Tensor(t), Some(growth)) => GraphType::Tensor(grown_type(t, growth)),
            (ty, _) => ty.clone(),
        }
    }

    /// The value of a binding with the new functions and constants.
    fn value(
        &self,
        b: &Binding,
        vars: &HashMap<u64, GraphVar>,
        functions: &mut Functions<'_>,
    ) -> Result<GraphExpr> {
        match &b.value {
            GraphExpr::Const(t) => match self.growth.get(&ValuePlace::Value(b.var.id(), 0)) {
                Some(growth) => zeros_of(t, growth),
                None => Ok(b.value.clone()),
            },
            GraphExpr::CallTir { func, args, outs, scalars } => {
                let places = self.places(b, args, outs.len());
                let known: Vec<_> =
                    places.iter().map(|place| self.growth.get(place).cloned()).collect();
                let Some(f) = self.tensor_func(func).filter(|_| known.iter().any(Option::is_some))
                else {
                    return Renewed(vars).expr(&b.value);
                };
                let new = Resize::new(f, &known_buffers(f, &known))?.build();
                let name = functions.add(new, &format!("{func}_resized"));
                let mut new_args = Vec::new();
                for (arg, growth) in args.iter().zip(&known) {
                    new_args.push(match (arg, growth) {
                        (GraphExpr::Const(t), Some(growth)) => zeros_of(t, growth)?,
                        _ => Renewed(vars).expr(arg)?,
                    });
                }
                let types =
                    outs.iter().zip(&known[args.len()..]).map(|(ty, growth)| match growth {
                        Some(growth) => grown_type(ty, growth),
                        None => ty.clone(),
                    });
                let outs = types.collect();
                Ok(GraphExpr::CallTir {
                    func: name,
                    args: new_args,
                    outs,
                    scalars: scalars.clone(),
                })
            }
            other => Renewed(vars).expr(other),
        }
    }
}

fn zeros_of(t: &Tensor, growth: &[Growth]) -> Result<GraphExpr> {
    Tensor::zeros(t.dtype(), &grown(t.shape(), growth)).map(GraphExpr::Const)
}

/// The buffers of a function whose changes are known.
fn known_buffers(func: &TensorFunc, known: &[Option<Vec<Growth>>]) -> Vec<(Buffer, Vec<Growth>)> {
    let all = func.buffers().zip(known);
    all.filter_map(|(buffer, growth)| Some((buffer.clone(), growth.clone()?))).collect()
}

fn grown(shape: &[usize], growth: &[Growth]) -> Vec<usize> {
    shape
        .iter()
        .zip(growth)
        .map(|(n, g)| usize::try_from(*n as i64 + g.sum()).unwrap_or(0))
        .collect()
}

fn grown_type(ty: &TensorType, growth: &[Growth]) -> TensorType {
    TensorType::fixed(&grown(&ty.const_shape().unwrap_or_default(), growth), ty.dtype)
}

/// Other variables in the place of old ones.
struct Renewed<'a>(&'a HashMap<u64, GraphVar>);

impl GraphFold for Renewed<'_> {
    fn var(&mut self, v: &GraphVar) -> GraphVar {
        self.0.get(&v.id()).unwrap_or(v).clone()
    }
}

/// The values of the module's entry that have a shape of numbers: names, each once, and shapes.
///
/// # Errors
/// Those of [`normalize`].
pub fn shapes(module: &Module) -> Result<HashMap<Arc<str>, Vec<usize>>> {
    let entry = module.entry()?;
    let func = normalize(module, entry, module.graph(entry)?)?;
    let mut shapes = HashMap::default();
    let mut twice = HashSet::default();
    for v in func.params.iter().chain(func.bindings().map(|b| &b.var)) {
        let shape = v.ty().as_tensor().and_then(TensorType::const_shape);
        if let Some(shape) = shape
            && shapes.insert(v.name().clone(), shape).is_some()
        {
            twice.insert(v.name().clone());
        }
    }
    shapes.retain(|name, _| !twice.contains(name));
    Ok(shapes)
}
