//! Marked stages of constants are run now.
//!
//! A stage that is marked ([`PRE`]) makes something of arguments that the rest of its function reads in
//! their place: an operand in another type, or its sums. Where it depends on arguments alone that are
//! constants in every call ([`FREE_LAYOUT`]), it leaves the function, and each call is given what it
//! makes.
//!
//! ```text
//! def product(x, w, y):                           def product(x, w_moved, y):
//!     w_moved = move(w)      # marked                 y = x @ w_moved
//!     y = x @ w_moved                             product(x, const move(w))
//! ```

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use crate::marks::{FREE_LAYOUT, PRE};
use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::{
    Attr, Binding, Buffer, GraphExpr, Module, Param, Result, Stmt, StmtKind, Tensor, TensorFunc,
    TensorIdentity,
};

use tilewright_graph::functions::rewritten;
use tilewright_graph::marks::numbers;
use tilewright_graph::normal::{Constants, each_binding};

/// A function without its stages of constants.
struct Split {
    rest: Arc<str>,
    /// The arguments that it still takes.
    kept: Vec<usize>,
    /// What it takes before them: a function of some arguments each.
    made: Vec<(TensorFunc, Vec<usize>)>,
}

/// Runs functions on constants, all of them at once: the tensors that each writes, in order.
pub type EvaluateAll<'a> =
    dyn FnMut(&[(&TensorFunc, Vec<Tensor>)]) -> Result<Vec<Vec<Tensor>>> + 'a;

/// What one of the functions of a split is run on: the name of what was split, which function it is, and the constants.
type Key = (Arc<str>, usize, Vec<TensorIdentity>);

/// Runs the marked stages of constants in a module whose functions say which arguments are constants
/// ([`mark_free`](super::free::mark_free)).
///
/// # Errors
/// Those of [`normalize`](tilewright_graph::normal::normalize), and of `evaluate`.
pub fn precompute(module: &Module, evaluate: &mut EvaluateAll<'_>) -> Result<Module> {
    let mut splits: HashMap<Arc<str>, Option<Split>> = HashMap::default();
    let mut done: HashMap<Key, Tensor> = HashMap::default();
    rewritten(module, |functions, normal| {
        let constants = Constants::collect(normal);
        let mut jobs: Vec<(Key, Vec<Tensor>)> = Vec::new();
        let mut seen = HashSet::default();
        for b in normal.bindings() {
            let GraphExpr::CallTir { func, args, .. } = &b.value else { continue };
            if !splits.contains_key(func) {
                let split = functions.get(func).cloned().and_then(|f| take_apart(&f));
                let split = split.map(|(rest, split)| {
                    let rest = functions.add(rest, &format!("{func}_of_constants"));
                    Split { rest, ..split }
                });
                splits.insert(func.clone(), split);
            }
            let wanted = splits.get(func).and_then(Option::as_ref);
            let wanted = wanted.and_then(|split| split.given(func, args, &constants));
            let new = wanted.into_iter().flatten();
            jobs.extend(new.filter(|(key, _)| !done.contains_key(key) && seen.insert(key.clone())));
        }
        let functions: Vec<(&TensorFunc, Vec<Tensor>)> = jobs
            .iter()
            .filter_map(|((func, k, _), given)| {
                Some((&splits.get(func)?.as_ref()?.made.get(*k)?.0, given.clone()))
            })
            .collect();
        let results = evaluate(&functions)?;
        let made = jobs.iter().zip(results);
        done.extend(
            made.filter_map(|((key, _), all)| Some((key.clone(), all.into_iter().next()?))),
        );
        // The call without its stages of constants; `None` where it stays.
        let call = |b: &Binding| -> Option<GraphExpr> {
            let GraphExpr::CallTir { func, args, outs, scalars } = &b.value else { return None };
            let split = splits.get(func)?.as_ref()?;
            let given = split.given(func, args, &constants)?;
            let made = given.iter().map(|(key, _)| Some(GraphExpr::Const(done.get(key)?.clone())));
            let mut all = made.collect::<Option<Vec<GraphExpr>>>()?;
            all.extend(split.kept.iter().filter_map(|k| args.get(*k).cloned()));
            let (func, outs, scalars) = (split.rest.clone(), outs.clone(), scalars.clone());
            Some(GraphExpr::CallTir { func, args: all, outs, scalars })
        };
        each_binding(normal, |b, out| {
            let value = call(b).unwrap_or_else(|| b.value.clone());
            out.push(Binding { value, ..b.clone() });
            Ok(())
        })
    })
}

impl Split {
    /// What each function that makes arguments is given in a call of what was split; `None` where that is no constant.
    fn given(
        &self,
        func: &Arc<str>,
        args: &[GraphExpr],
        constants: &Constants,
    ) -> Option<Vec<(Key, Vec<Tensor>)>> {
        let each = self.made.iter().enumerate().map(|(k, (_, of))| {
            let given = of.iter().map(|k| constants.get(args.get(*k)?).cloned());
            let given = given.collect::<Option<Vec<Tensor>>>()?;
            let memory = given.iter().map(Tensor::identity).collect();
            Some(((func.clone(), k, memory), given))
        });
        each.collect()
    }
}

/// Whether a stage is marked.
fn is_marked(stage: &Stage) -> bool {
    let mark = stage.block.annotations.get(PRE);
    mark.is_some_and(|a| !matches!(a, Attr::Bool(false)))
}

/// A function without its marked stages of constants, and these; `None` where there are none.
fn take_apart(func: &TensorFunc) -> Option<(TensorFunc, Split)> {
    let free = func.attrs.get(FREE_LAYOUT).and_then(numbers)?;
    let params: Vec<Option<Buffer>> = func.params.iter().map(|p| p.buffer().cloned()).collect();
    let (allocs, body) = func.root_parts();
    let stages = open_stages(func)?;
    let mut known: Vec<Buffer> = free.iter().filter_map(|k| params.get(*k)?.clone()).collect();
    let mut leaving: Vec<&Stage> = Vec::new();
    for stage in &stages {
        let mut loads = stage.loads().into_iter().map(|(b, _)| b);
        let of_constants = loads.all(|b| b == stage.buffer || known.contains(&b));
        let writers = stages.iter().filter(|s| s.buffer == stage.buffer).count();
        let fits = stage.is_fixed() && is_marked(stage);
        if fits && of_constants && writers == 1 && allocs.contains(&stage.buffer) {
            known.push(stage.buffer.clone());
            leaving.push(stage);
        }
    }
    let list = match body.kind() {
        StmtKind::Seq(list) => list.clone(),
        _ => vec![body.clone()],
    };
    let rest: Vec<Stmt> =
        list.into_iter().filter(|s| !leaving.iter().any(|l| l.stmt.ptr_eq(s))).collect();
    let read: HashSet<Buffer> = stages
        .iter()
        .filter(|s| !leaving.iter().any(|l| l.stmt.ptr_eq(&s.stmt)))
        .flat_map(|s| s.loads().into_iter().map(|(b, _)| b).chain([s.buffer.clone()]))
        .collect();
    let given: Vec<&Stage> = leaving.iter().copied().filter(|s| read.contains(&s.buffer)).collect();
    if given.is_empty() {
        return None;
    }
    let made = given.iter().map(|s| alone(s, &leaving, &params)).collect();
    let kept: Vec<usize> = (0..params.len())
        .filter(|k| {
            let used = params[*k].as_ref().is_none_or(|b| read.contains(b));
            used || !free.contains(k)
        })
        .collect();
    let first = given.iter().map(|s| Param::tensor(&s.buffer));
    let params = first.chain(kept.iter().map(|k| func.params[*k].clone())).collect();
    let rest_allocs =
        allocs.iter().filter(|b| !leaving.iter().any(|s| s.buffer == **b)).cloned().collect();
    let mut new = TensorFunc { params, ..func.clone() }.with_root(rest_allocs, Stmt::seq(rest));
    new.attrs.remove("global_symbol");
    new.attrs.remove(FREE_LAYOUT);
    Some((new, Split { rest: "".into(), kept, made }))
}

/// The function that makes the result of one of some stages, and the arguments that it takes.
fn alone(stage: &Stage, leaving: &[&Stage], params: &[Option<Buffer>]) -> (TensorFunc, Vec<usize>) {
    let mut needed: Vec<&Stage> = vec![stage];
    let mut at = 0;
    while let Some(stage) = needed.get(at).copied() {
        for (b, _) in stage.loads() {
            let maker = leaving.iter().find(|l| l.buffer == b);
            if let Some(maker) = maker.filter(|m| needed.iter().all(|n| n.buffer != m.buffer)) {
                needed.push(maker);
            }
        }
        at += 1;
    }
    let run: Vec<&Stage> =
        leaving.iter().filter(|s| needed.iter().any(|n| n.buffer == s.buffer)).copied().collect();
    let read: Vec<Buffer> =
        run.iter().flat_map(|s| s.loads().into_iter().map(|(b, _)| b)).collect();
    let of: Vec<usize> = (0..params.len())
        .filter(|k| params[*k].as_ref().is_some_and(|b| read.contains(b)))
        .collect();
    let inputs = of.iter().filter_map(|k| params[*k].as_ref());
    let buffers = inputs.chain([&stage.buffer]).map(Param::tensor).collect();
    let allocs = run.iter().map(|s| s.buffer.clone()).filter(|b| *b != stage.buffer).collect();
    let stmts: Vec<Stmt> = run.iter().map(|s| unmarked(s)).collect();
    (TensorFunc::new(buffers, Stmt::nop()).with_root(allocs, Stmt::seq(stmts)), of)
}

/// The statement of a stage without its mark.
fn unmarked(stage: &Stage) -> Stmt {
    stage.without_annotation(PRE).stmt
}
