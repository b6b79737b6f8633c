//! Constants that functions make of constants, when a module is compiled: that may need a compilation of
//! its own. Constants that are bytes of the model's file, which a program is not to be.

use tilewright_ir::hash::HashMap;

use tilewright_graph::fold::interpret;
use tilewright_graph::rewrite::{GraphFold, fold_blocks, fold_children};
use tilewright_ir::equal::{Equality, fingerprint, tensor_funcs};
use tilewright_ir::{
    Error, GraphExpr, GraphFunc, Module, Result, Tensor, TensorFunc, TensorIdentity,
};
use tilewright_runtime::{Executable, parallel};

use super::options::{LayoutPolicy, Options};
use super::session::compile;

/// Constants of fewer bytes are made by the interpreter, before a backend would be done compiling.
const SMALL: usize = 1 << 18;

/// Runs a function on constants: natively where that pays. Those that lie in a file are most often needed once: their
/// pages are let go of.
pub(super) fn evaluate(func: &TensorFunc, args: &[Tensor]) -> Result<Vec<Tensor>> {
    let made = if is_small(args) { interpret(func, args) } else { compiled(func)?.run(args) };
    args.iter().for_each(Tensor::release);
    made
}

/// Runs functions on constants as [`evaluate`] does. Layers repeat their functions: equal ones are compiled once, and
/// different ones at the same time.
///
/// # Errors
/// Those of [`compile`] and of the runs, the one of the first function that has one.
pub(super) fn evaluate_all(jobs: &[(&TensorFunc, Vec<Tensor>)]) -> Result<Vec<Vec<Tensor>>> {
    let options = Equality { names: false, ..Equality::default() };
    let mut different: Vec<(u64, &TensorFunc)> = Vec::new();
    // Of each job the place of its code.
    let places: Vec<Option<usize>> = jobs
        .iter()
        .map(|(func, args)| {
            if is_small(args) {
                return None;
            }
            let hash = fingerprint(func);
            let is_same = |known: &(u64, &TensorFunc)| {
                known.0 == hash && tensor_funcs(known.1, func, &options).is_ok()
            };
            let known = different.iter().position(is_same);
            Some(known.unwrap_or_else(|| {
                different.push((hash, func));
                different.len() - 1
            }))
        })
        .collect();
    let code = parallel::map(different.len(), |k| compiled(different[k].1));
    // What is small is run by one core a job, and native code by all.
    let mut small = parallel::map(jobs.len(), |k| {
        places[k].is_none().then(|| interpret(jobs[k].0, &jobs[k].1))
    });
    let runs = jobs.iter().zip(&places).zip(&mut small).map(|(((_, args), place), small)| {
        let made = match place.and_then(|place| code.get(place)) {
            Some(Ok(code)) => code.run(args),
            Some(Err(error)) => Err(error.clone()),
            None => small.take().unwrap_or_else(|| Err(Error::internal("a job that was not run"))),
        };
        args.iter().for_each(Tensor::release);
        made
    });
    runs.collect()
}

fn is_small(args: &[Tensor]) -> bool {
    args.iter().map(Tensor::byte_len).sum::<usize>() < SMALL
}

fn compiled(func: &TensorFunc) -> Result<Executable> {
    let mut module = Module::new();
    module.insert("main", func.clone());
    compile(&module, &Options::new().layout(LayoutPolicy::AsWritten))
}

/// The module with constants of its own in the place of bytes of the model's file. Those whose bytes are made late are
/// made now, as many at a time as there are cores.
///
/// # Errors
/// None of its own.
pub(super) fn copy_mapped_constants(module: &Module) -> Result<Module> {
    let mut copied = module.clone();
    let mut fold = CopyMapped::default();
    for (name, func) in module.graphs() {
        let blocks = fold_blocks(&mut fold, &func.blocks)?;
        let ret = fold.expr(&func.ret)?;
        copied.insert(name.clone(), GraphFunc { blocks, ret, ..(**func).clone() });
    }
    let late: Vec<&Tensor> = fold.done.values().filter(|t| t.origin().is_some()).collect();
    parallel::map(late.len(), |k| late[k].bytes().len());
    Ok(copied)
}

/// Puts constants of their own in the place of others; what shares memory does so afterwards.
#[derive(Default)]
struct CopyMapped {
    done: HashMap<TensorIdentity, Tensor>,
}

impl GraphFold for CopyMapped {
    fn expr(&mut self, e: &GraphExpr) -> Result<GraphExpr> {
        let GraphExpr::Const(t) = e else { return fold_children(self, e) };
        let copied = self.done.entry(t.identity()).or_insert_with(|| t.copied_from_file());
        Ok(GraphExpr::Const(copied.clone()))
    }
}

#[cfg(test)]
mod tests {
    use tilewright_ir::{BinOp, Buffer, DType, Expr, Param, Stmt, Var};

    use super::*;

    /// `for i in n: Y[i] = X[i] * factor`.
    fn scaled(name: &str, n: usize, factor: f64) -> TensorFunc {
        let (i, n) = (Var::index("i"), n as i64);
        let (x, y) = (
            Buffer::with_extents(name, &[n], DType::F32),
            Buffer::with_extents("Y", &[n], DType::F32),
        );
        let value = Expr::binary(
            BinOp::Mul,
            Expr::load(&x, vec![i.expr()]),
            Expr::float(factor, DType::F32),
        );
        let body =
            Stmt::serial(&i, Expr::int(n, DType::I32), Stmt::store(&y, vec![i.expr()], value));
        TensorFunc::new(vec![Param::tensor(&x), Param::tensor(&y)], body)
    }

    fn filled(n: usize, value: f32) -> Tensor {
        Tensor::from_slice(&[n], &vec![value; n]).expect("a tensor")
    }

    #[test]
    fn constants_without_elements_keep_their_types() {
        let empty = |dtype| Tensor::zeros(dtype, &[0, 6]).expect("a tensor");
        let mut fold = CopyMapped::default();
        for dtype in [DType::I64, DType::F32, DType::I64] {
            let GraphExpr::Const(t) = fold.expr(&GraphExpr::Const(empty(dtype))).expect("no error")
            else {
                panic!("a constant")
            };
            assert_eq!((t.dtype(), t.shape()), (dtype, &[0, 6][..]));
        }
    }

    #[test]
    fn jobs_have_their_own_results_in_order() {
        let large = SMALL / 4 + 3;
        let (a, b) = (scaled("A", large, 2.0), scaled("B", large, 2.0));
        let (c, d) = (scaled("C", large, 3.0), scaled("D", 5, 4.0));
        let jobs = [
            (&a, vec![filled(large, 1.0)]),
            (&d, vec![filled(5, 1.0)]),
            (&c, vec![filled(large, 1.0)]),
            (&b, vec![filled(large, 5.0)]),
            (&d, vec![filled(5, 2.0)]),
        ];
        let made = evaluate_all(&jobs).expect("nothing fails");
        let found: Vec<(usize, f32)> = made
            .iter()
            .map(|all| {
                let values = all[0].as_slice::<f32>().unwrap_or_default();
                assert!(values.iter().all(|v| *v == values[0]));
                (values.len(), values[0])
            })
            .collect();
        assert_eq!(found, [(large, 2.0), (5, 4.0), (large, 3.0), (large, 10.0), (5, 8.0)]);
    }

    #[test]
    fn the_first_job_that_fails_says_so() {
        let large = SMALL / 4 + 3;
        let (a, d) = (scaled("A", large, 2.0), scaled("D", 5, 4.0));
        let wrong = [(&a, vec![filled(large, 1.0)]), (&d, vec![filled(6, 1.0)])];
        assert!(evaluate_all(&wrong).is_err());
    }
}
