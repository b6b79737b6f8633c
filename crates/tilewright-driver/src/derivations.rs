//! What a stage made of functions, kept by content for as long as the process lives.
//!
//! Models repeat their layers, so that many functions of a module are equal up to names, and the
//! same models are compiled again and again. What a stage makes of a function depends on the function
//! and on the options alone: of equal ones the first is derived, and the others get its result, with
//! the names of their own parameters. Functions that were read from text are derived each by itself,
//! since what may be said about them later points into the text.
//!
//! Different functions are derived at the same time, by as many threads as there are cores.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::equal::{self, fingerprint, tensor_funcs};
use tilewright_ir::visit::Subst;
use tilewright_ir::{
    Buffer, Error, Fold, Function, Module, Param, Remarks, Result, TensorFunc, Var,
};
use tilewright_runtime::parallel;
use tilewright_transform::pass::{Config, Pass};

/// Most functions that are kept; then all are forgotten.
const MOST: usize = 4096;

/// The attribute with the name that a function has outside.
const SYMBOL: &str = "global_symbol";

/// A function that was given, and what was made of it.
type Pair = (Arc<TensorFunc>, Arc<TensorFunc>);

/// By what was done, with its options, and the hash of the function.
type Derivations = HashMap<(String, u64), Vec<Pair>>;

/// All of this process.
static KEPT: LazyLock<Mutex<Derivations>> = LazyLock::new(Mutex::default);

/// Runs a pass over tensor functions on those of a module, on equal ones once.
///
/// # Errors
/// Those of the pass.
pub(crate) fn of_pass(pass: &Pass, module: &Module, config: &Config) -> Result<Module> {
    each(&format!("{} {config:?}", pass.name), module, |name, f| {
        pass.apply(&module.alone(name, f), config, &mut Remarks::new())?.tensor(name).cloned()
    })
}

/// Derives each tensor function of a module, by its name and itself, equal ones once. `what` says
/// all that the results depend on beside the function.
///
/// # Errors
/// Those of `derive`, the one of the first function that has one.
pub(crate) fn each(
    what: &str,
    module: &Module,
    derive: impl Fn(&Arc<str>, &Arc<TensorFunc>) -> Result<Arc<TensorFunc>> + Sync,
) -> Result<Module> {
    let list: Vec<(&Arc<str>, &Arc<TensorFunc>)> = module.tensors().collect();
    // Of equal functions one thread takes the first; the others are found when all are done.
    let mut seen = HashSet::default();
    let (first, rest): (Vec<usize>, Vec<usize>) = (0..list.len())
        .partition(|k| list[*k].1.span.is_some() || seen.insert(fingerprint(list[*k].1)));
    let make = |k: usize| derived(what, list[k].1, || derive(list[k].0, list[k].1));
    let mut made: HashMap<usize, Result<Arc<TensorFunc>>> = HashMap::default();
    made.extend(first.iter().copied().zip(parallel::map(first.len(), |n| make(first[n]))));
    made.extend(rest.into_iter().map(|k| (k, make(k))));
    let mut new = module.clone();
    let tensors = new.functions.values_mut().filter_map(|function| match function {
        Function::Tensor(f) => Some(f),
        Function::Graph(_) => None,
    });
    for (k, f) in tensors.enumerate() {
        *f = made
            .remove(&k)
            .unwrap_or_else(|| Err(Error::internal("a function was not derived")))?;
    }
    Ok(new)
}

/// What `derive` makes of a function: derived now, or taken from an equal function before. `what`
/// says all that the result depends on beside the function.
///
/// # Errors
/// Those of `derive`, which are not kept.
fn derived(
    what: &str,
    func: &Arc<TensorFunc>,
    derive: impl FnOnce() -> Result<Arc<TensorFunc>>,
) -> Result<Arc<TensorFunc>> {
    if func.span.is_some() {
        return derive();
    }
    let key = (what.to_owned(), fingerprint(func));

    let options = equal::Equality { names: false, ..equal::Equality::default() };
    let found = KEPT.lock().unwrap_or_else(PoisonError::into_inner).get(&key).and_then(|pairs| {
        pairs.iter().find(|pair| tensor_funcs(&pair.0, func, &options).is_ok()).cloned()
    });
    if let Some((_, made)) = found {
        return Ok(Arc::new(named_after(func, &made)));
    }
    let made = derive()?;
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.len() >= MOST {
        kept.clear();
    }
    kept.entry(key).or_default().push((func.clone(), made.clone()));
    Ok(made)
}

/// A function with the attributes of another one, and with the names of its parameters as far as
/// both have them.
fn named_after(func: &TensorFunc, made: &TensorFunc) -> TensorFunc {
    let mut subst = Subst::default();
    let mut params = made.params.clone();
    for (param, model) in params.iter_mut().zip(&func.params) {
        match (param, model) {
            (Param::Buffer { handle, buffer }, Param::Buffer { handle: h, buffer: b }) => {
                *handle = renamed(handle, h);
                if buffer.name != b.name {
                    let new: Buffer = buffer.derive(|d| {
                        d.name = b.name.clone();
                        d.data = renamed(&d.data, &b.data);
                    });
                    subst.vars.insert(buffer.data.clone(), new.data.expr());
                    subst.buffers.insert(std::mem::replace(buffer, new.clone()), new);
                }
            }
            (Param::Scalar(v), Param::Scalar(w)) => {
                let new = renamed(v, w);
                subst.vars.insert(std::mem::replace(v, new.clone()), new.expr());
            }
            _ => {}
        }
    }
    // Shapes may name scalars.
    for param in &mut params {
        if let Param::Buffer { buffer, .. } = param {
            *buffer = subst.buffer_def(buffer);
        }
    }
    let mut attrs = made.attrs.clone();
    match func.attrs.get(SYMBOL) {
        Some(value) => drop(attrs.insert(SYMBOL.into(), value.clone())),
        None => drop(attrs.remove(SYMBOL)),
    }
    let body = subst.stmt(&made.body);
    let (private, span) = (func.private, func.span);
    TensorFunc { params, body, attrs, private, span, ret: made.ret }
}

/// The variable, or one with the name of another.
fn renamed(v: &Var, model: &Var) -> Var {
    if v.name() == model.name() { v.clone() } else { Var::new(model.name().clone(), v.dtype()) }
}

#[cfg(test)]
mod tests {
    use tilewright_ir::{DType, Expr, Stmt};

    use super::*;

    /// `for i in n: X[i] = value`.
    fn fill(name: &str, n: i32, value: f64) -> Arc<TensorFunc> {
        let (i, x) = (Var::index("i"), Buffer::with_extents(name, &[i64::from(n)], DType::F32));
        let store = Stmt::store(&x, vec![i.expr()], Expr::float(value, DType::F32));
        Arc::new(TensorFunc::new(vec![Param::tensor(&x)], Stmt::serial(&i, Expr::i32(n), store)))
    }

    #[test]
    fn equal_functions_are_derived_once_and_keep_their_names() {
        let mut count = 0;
        let mut get = |what: &str, f: &Arc<TensorFunc>| {
            derived(what, f, || {
                count += 1;
                Ok(f.clone())
            })
            .expect("nothing fails")
        };
        let (a, b) = (fill("A", 7, 1.0), fill("B", 7, 1.0));
        get("test", &a);
        let again = get("test", &b);
        let Param::Buffer { buffer, .. } = &again.params[0] else { panic!("{again:?}") };
        assert_eq!(&*buffer.name, "B");
        let same = tensor_funcs(&again, &b, &equal::Equality::default());
        assert!(same.is_ok(), "{same:?}");
        // Other options, another size and another value are something else.
        get("other", &a);
        get("test", &fill("A", 8, 1.0));
        get("test", &fill("A", 7, 2.0));
        assert_eq!(count, 4);
    }

    #[test]
    fn failures_are_not_kept() {
        let f = fill("A", 5, 3.0);
        assert!(derived("failing", &f, || Err(tilewright_ir::Error::input("not today"))).is_err());
        assert!(derived("failing", &f, || Ok(f.clone())).is_ok());
    }
}
