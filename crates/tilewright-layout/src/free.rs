//! Arguments of functions that are the same in every run.
//!
//! A parameter that is a constant in every call of a function may be stored in any layout: whatever
//! it is converted to can be made once. Such parameters are named in the function's attribute
//! [`FREE_LAYOUT`], where automatic schedules look.

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use crate::marks::FREE_LAYOUT;
use tilewright_ir::{GraphExpr, GraphFunc, Module};
use tilewright_transform::pass::{Pass, Run};

use tilewright_graph::functions::each_tensor;
use tilewright_graph::marks::list;

/// `mark_free_layout` by name.
pub const PASS: Pass = Pass {
    name: "mark_free_layout",
    summary: "say which parameters are constants in every call, for `auto_schedule` to pack",
    options: &[],
    run: Run::Module(|module, _, _| Ok(mark_free(module))),
};

/// The variables of a graph function that are bound to constants. With `computed` what depends on
/// constants only is one, too: it is made when compiling.
pub fn constants(graph: &GraphFunc, computed: bool) -> HashSet<u64> {
    let mut all: HashSet<u64> = HashSet::default();
    for b in graph.bindings() {
        let known = match &b.value {
            GraphExpr::CallTir { args, .. } => {
                computed && args.iter().all(|a| is_constant(a, &all))
            }
            GraphExpr::Item(of, _) => computed && is_constant(of, &all),
            value => is_constant(value, &all),
        };
        if known {
            all.insert(b.var.id());
        }
    }
    all
}

/// The bytes of the constants that stand in a graph function.
pub fn constant_bytes(graph: &GraphFunc) -> u64 {
    fn bytes(e: &GraphExpr) -> u64 {
        match e {
            GraphExpr::Const(t) => t.byte_len() as u64,
            _ => e.operands().into_iter().map(bytes).sum(),
        }
    }
    graph.bindings().map(|b| bytes(&b.value)).sum()
}

/// Whether an argument is a constant, given the variables that are.
pub fn is_constant(e: &GraphExpr, constants: &HashSet<u64>) -> bool {
    match e {
        GraphExpr::Const(_) => true,
        GraphExpr::Var(v) => constants.contains(&v.id()),
        _ => false,
    }
}

/// The module with the attribute [`FREE_LAYOUT`] at every function that has such parameters.
pub fn mark_free(module: &Module) -> Module {
    let mut free: HashMap<Arc<str>, Vec<bool>> = HashMap::default();
    for (_, graph) in module.graphs() {
        let constants = constants(graph, false);
        for b in graph.bindings() {
            let GraphExpr::CallTir { func, args, .. } = &b.value else { continue };
            let given: Vec<bool> = args.iter().map(|a| is_constant(a, &constants)).collect();
            let all = free.entry(func.clone()).or_insert_with(|| given.clone());
            all.iter_mut().zip(given).for_each(|(all, now)| *all &= now);
        }
    }
    each_tensor(module, |name, f| {
        if let Some(params) = free.get(name).filter(|params| params.contains(&true)) {
            let numbers: Vec<usize> = (0..params.len()).filter(|k| params[*k]).collect();
            Arc::make_mut(f).attrs.insert(FREE_LAYOUT.into(), list(&numbers));
        }
    })
}

/// The module without the attribute, which means nothing once functions have their loops.
pub fn unmark(module: &Module) -> Module {
    each_tensor(module, |_, f| {
        if f.attrs.contains_key(FREE_LAYOUT) {
            Arc::make_mut(f).attrs.remove(FREE_LAYOUT);
        }
    })
}
