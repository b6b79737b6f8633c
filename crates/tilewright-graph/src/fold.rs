//! Calls whose arguments are constants are run when compiling.
//!
//! Sums of quantised weights are such calls, and whatever else depends on constants only; of
//! conversions the layout crate makes shorter work. A result may be larger than what it is made from by no more than a limit, so that a module does not grow
//! out of proportion by, say, a broadcast.

use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_interp::{Arg, RunOptions, run_func};
use tilewright_ir::{
    Binding, Error, Function, GraphExpr, GraphFunc, GraphType, GraphVar, Module, Remarks, Result,
    Tensor, TensorFunc, TensorIdentity,
};

use crate::functions::rewritten;
use crate::normal::each_binding;

/// By how many bytes a folded result may exceed the constants that it is made from, by
/// default.
pub const DEFAULT_GROWTH: u32 = 1 << 20;

/// Runs a function on constants: the tensors that it writes.
pub type Evaluate<'a> = dyn FnMut(&TensorFunc, &[Tensor]) -> Result<Vec<Tensor>> + 'a;

/// Runs a function by the reference interpreter.
///
/// # Errors
/// Those of the interpreter.
pub fn interpret(func: &TensorFunc, args: &[Tensor]) -> Result<Vec<Tensor>> {
    let results = func.params.len().saturating_sub(args.len());
    let given = args.iter().cloned().map(Arg::Tensor);
    let all: Vec<Arg> = given.chain((0..results).map(|_| Arg::Fresh(None))).collect();
    let outcome = run_func(func, &all, &RunOptions::default())?;
    let outputs = outcome.outputs.into_iter().filter(|o| o.param >= args.len());
    outputs.map(|o| o.into_tensor()).collect()
}

/// Runs calls of constants in every graph function of a module. Those in which something changes
/// come back in normal form.
///
/// # Errors
/// Those of `normalize`.
pub fn fold_constant(
    module: &Module,
    growth: usize,
    evaluate: &mut Evaluate<'_>,
    why: &mut Remarks,
) -> Result<Module> {
    Folder::new(module, growth, evaluate, why).run()
}

/// The same for all calls of some functions.
///
/// # Errors
/// As [`fold_constant`].
pub fn fold_calls(
    module: &Module,
    of: &mut Wanted<'_>,
    evaluate: &mut Evaluate<'_>,
    why: &mut Remarks,
) -> Result<Module> {
    Folder { only: Some(of), ..Folder::new(module, usize::MAX, evaluate, why) }.run()
}

/// Which functions are meant, by name and body.
pub type Wanted<'a> = dyn FnMut(&Arc<str>, &TensorFunc) -> bool + 'a;

struct Folder<'a, 'e, 'o> {
    module: &'a Module,
    growth: usize,
    /// The functions whose calls are run; all where it is missing.
    only: Option<&'a mut Wanted<'o>>,
    evaluate: &'a mut Evaluate<'e>,
    why: &'a mut Remarks,
    /// Results by function and arguments.
    done: HashMap<(Arc<str>, Vec<TensorIdentity>), Vec<Tensor>>,
}

impl<'a, 'e> Folder<'a, 'e, '_> {
    fn new(
        module: &'a Module,
        growth: usize,
        evaluate: &'a mut Evaluate<'e>,
        why: &'a mut Remarks,
    ) -> Self {
        Folder { module, growth, only: None, evaluate, why, done: HashMap::default() }
    }

    fn run(mut self) -> Result<Module> {
        rewritten(self.module, |_, normal| self.graph(normal))
    }

    fn graph(&mut self, func: &GraphFunc) -> Result<GraphFunc> {
        let mut constants: HashMap<u64, Vec<Tensor>> = HashMap::default();
        each_binding(func, |b, out| {
            match self.value(b, &constants) {
                Some(tensors) => {
                    let value = constant(&b.var, &tensors);
                    out.extend(value.map(|value| Binding { value, ..b.clone() }));
                    constants.insert(b.var.id(), tensors);
                }
                None => out.push(b.clone()),
            }
            Ok(())
        })
    }

    /// The tensors that a binding's value consists of, if they are known.
    fn value(&mut self, b: &Binding, constants: &HashMap<u64, Vec<Tensor>>) -> Option<Vec<Tensor>> {
        match &b.value {
            GraphExpr::Const(t) => Some(vec![t.clone()]),
            GraphExpr::Item(of, k) => match &**of {
                GraphExpr::Var(v) => Some(vec![constants.get(&v.id())?.get(*k)?.clone()]),
                _ => None,
            },
            GraphExpr::CallTir { func, args, outs, scalars } if scalars.is_empty() => {
                let args: Vec<Tensor> = args
                    .iter()
                    .map(|a| match a {
                        GraphExpr::Const(t) => Some(t.clone()),
                        GraphExpr::Var(v) => match &constants.get(&v.id())?[..] {
                            [one] => Some(one.clone()),
                            _ => None,
                        },
                        _ => None,
                    })
                    .collect::<Option<_>>()?;
                let Some(Function::Tensor(f)) = self.module.functions.get(func) else {
                    return None;
                };
                if self.only.as_mut().is_some_and(|of| !of(func, f)) {
                    return None;
                }
                let mut size = 0usize;
                for out in outs {
                    size = size.checked_add(
                        out.const_shape()?
                            .iter()
                            .try_fold(out.dtype.bytes(), |n, d| n.checked_mul(*d))?,
                    )?;
                }
                let given: usize = args.iter().map(Tensor::byte_len).sum();
                let missing = if f.body.effects().calls {
                    "it calls a function from outside".to_owned()
                } else if size.saturating_sub(given) > self.growth {
                    let more = size.saturating_sub(given);
                    format!(
                        "its results are {more} bytes larger than its arguments, the limit is {}",
                        self.growth
                    )
                } else {
                    let key = (func.clone(), args.iter().map(Tensor::identity).collect());
                    if let Some(done) = self.done.get(&key) {
                        return Some(done.clone());
                    }
                    match (self.evaluate)(f, &args) {
                        Ok(results) if fits(&results, outs) => {
                            self.done.insert(key, results.clone());
                            return Some(results);
                        }
                        Ok(_) => "its results have other types than the call says".to_owned(),
                        Err(e) => e.diagnostic().message.clone(),
                    }
                };
                let what = format!("the call of `{func}` for `{}` is not folded", b.var.name());
                self.why.push(Error::refused(what).at(b.span).note(missing));
                None
            }
            _ => None,
        }
    }
}

/// A constant in the place of a call of one result; several are bound where they are taken apart.
fn constant(var: &GraphVar, tensors: &[Tensor]) -> Option<GraphExpr> {
    match (tensors, var.ty()) {
        ([t], GraphType::Tensor(_)) => Some(GraphExpr::Const(t.clone())),
        _ => None,
    }
}

fn fits(results: &[Tensor], outs: &[tilewright_ir::TensorType]) -> bool {
    results.len() == outs.len()
        && results
            .iter()
            .zip(outs)
            .all(|(t, ty)| t.dtype() == ty.dtype && ty.const_shape().as_deref() == Some(t.shape()))
}
