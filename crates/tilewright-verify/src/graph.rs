//! Running a graph function on symbols: its calls, one after the other.

use std::rc::Rc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::control::is_control_operator;
use tilewright_ir::{Error, GraphExpr, GraphFunc, GraphType, GraphVar, Module, Param, Var, graph};

use tilewright_interp::graph::{bind_extents, evaluate, extents};

use super::run::{Argument, Cells, Ran, Shared, Stop, is_data, run, undecided};
use super::term::Val;

/// Calls of graph functions inside each other.
const DEPTH: usize = 64;

/// A value of a graph function.
#[derive(Clone, Debug)]
pub enum SymbolicValue {
    /// One tensor.
    Cells(Cells),
    /// Several values.
    Tuple(Vec<SymbolicValue>),
}

impl SymbolicValue {
    /// The tensors inside, in order.
    pub fn flatten(self, out: &mut Vec<Cells>) {
        match self {
            SymbolicValue::Cells(c) => out.push(c),
            SymbolicValue::Tuple(values) => values.into_iter().for_each(|v| v.flatten(out)),
        }
    }
}

struct GraphRun<'s, 'm> {
    shared: &'s mut Shared,
    module: &'m Module,
    values: HashMap<GraphVar, SymbolicValue>,
    dims: HashMap<Var, i64>,
    depth: usize,
}

/// Runs a graph function.
pub fn run_graph(
    shared: &mut Shared,
    module: &Module,
    func: &GraphFunc,
    args: Vec<SymbolicValue>,
    depth: usize,
) -> Ran<SymbolicValue> {
    if depth > DEPTH {
        return undecided("graph functions call each other too deeply");
    }
    let mut r =
        GraphRun { shared, module, values: HashMap::default(), dims: HashMap::default(), depth };
    for (p, v) in func.params.iter().zip(args) {
        r.bind_type(p.ty(), &v);
        r.values.insert(p.clone(), v);
    }
    for b in func.bindings() {
        let v = r.eval(&b.value).map_err(|stop| match stop {
            Stop::Undecided(why, span) => Stop::Undecided(why, span.or(b.span)),
            Stop::Error(e) => Stop::Error(e.at(b.span)),
        })?;
        r.bind_type(b.var.ty(), &v);
        r.values.insert(b.var.clone(), v);
    }
    r.eval(&func.ret)
}

impl GraphRun<'_, '_> {
    /// Gives variables in shapes their values.
    fn bind_type(&mut self, ty: &GraphType, v: &SymbolicValue) {
        match (ty, v) {
            (GraphType::Tensor(ty), SymbolicValue::Cells(c)) => {
                bind_extents(&ty.shape, &c.shape, &mut self.dims);
            }
            (GraphType::Tuple(types), SymbolicValue::Tuple(values)) => {
                types.iter().zip(values).for_each(|(t, v)| self.bind_type(t, v));
            }
            _ => {}
        }
    }

    fn eval(&mut self, e: &GraphExpr) -> Ran<SymbolicValue> {
        match e {
            GraphExpr::Var(v) => match self.values.get(v) {
                Some(value) => Ok(value.clone()),
                None => Err(Error::internal(format!("`{}` has no value", v.name())).into()),
            },
            GraphExpr::Const(t) if is_data(t.dtype()) => {
                Ok(SymbolicValue::Cells(Cells::constant(t)))
            }
            GraphExpr::Const(t) => undecided(format!("a constant of type {}", t.dtype())),
            GraphExpr::Tuple(items) => {
                let items: Ran<Vec<SymbolicValue>> = items.iter().map(|e| self.eval(e)).collect();
                Ok(SymbolicValue::Tuple(items?))
            }
            GraphExpr::Item(e, i) => match self.eval(e)? {
                SymbolicValue::Tuple(mut items) if *i < items.len() => Ok(items.swap_remove(*i)),
                _ => Err(Error::input(format!("there is no item {i}")).into()),
            },
            GraphExpr::CallTir { func, args, outs, scalars } => {
                let callee = self.module.tensor(func)?.clone();
                let mut actual = Vec::new();
                for a in args {
                    match self.eval(a)? {
                        SymbolicValue::Cells(c) => actual.push(Argument::Cells(c)),
                        SymbolicValue::Tuple(_) => {
                            return Err(Error::input("an argument is a tuple").into());
                        }
                    }
                }
                for out in outs {
                    let shape = extents(&out.shape, &self.dims)?;
                    actual.push(Argument::Cells(fresh(self.shared, out.dtype, shape)?));
                }
                for e in scalars {
                    let value = evaluate(e, &self.dims)?;
                    actual.push(Argument::Scalar(Val::Known(value.bits())));
                }
                for p in callee.split_params().1 {
                    actual.push(scratch(self.shared, p)?);
                }
                let (mut cells, _) = run(self.shared, &callee, &actual)?;
                let mut given = cells.split_off(args.len().min(cells.len()));
                given.truncate(outs.len());
                let mut values: Vec<SymbolicValue> =
                    given.into_iter().map(SymbolicValue::Cells).collect();
                Ok(match values.len() {
                    1 => values.swap_remove(0),
                    _ => SymbolicValue::Tuple(values),
                })
            }
            GraphExpr::If(_) | GraphExpr::Loop(_) => {
                undecided("control flow is compared call by call")
            }
            GraphExpr::Call { op, args, .. } => {
                if is_control_operator(op) {
                    return undecided(
                        "sizes that data decide, and lists, are compared call by call",
                    );
                }
                let Some(name) = graph::callee(op) else {
                    return undecided(format!("the operator `{op}` is not known"));
                };
                let callee = self.module.graph(name)?.clone();
                let args: Ran<Vec<SymbolicValue>> = args.iter().map(|a| self.eval(a)).collect();
                run_graph(self.shared, self.module, &callee, args?, self.depth + 1)
            }
        }
    }
}

/// Scratch memory for a parameter.
pub fn scratch(shared: &Shared, param: &Param) -> Ran<Argument> {
    let Some(buffer) = param.buffer() else { return undecided("scratch that is no memory") };
    let extents = buffer.const_shape().into_iter().flatten().map(usize::try_from);
    match extents.collect::<Result<Vec<usize>, _>>() {
        Ok(shape) if shape.len() == buffer.rank() => {
            Ok(Argument::Cells(fresh(shared, buffer.dtype(), shape)?))
        }
        _ => undecided("scratch memory of an open size"),
    }
}

/// A tensor that was never written.
pub fn fresh(shared: &Shared, dtype: tilewright_ir::DType, shape: Vec<usize>) -> Ran<Cells> {
    let count = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d)).filter(|n| *n <= 1 << 28);
    let Some(count) = count else { return undecided("a tensor is larger than what is allowed") };
    Ok(Cells { dtype, shape, cells: Rc::new(vec![shared.fresh; count]) })
}
