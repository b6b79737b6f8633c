//! Arguments of functions that are the same in every run.
//!
//! A parameter that is a constant in every call of a function may be stored in any layout: whatever
//! it is converted to can be made once. Such parameters are named in the function's attribute
//! [`FREE_LAYOUT`], where automatic schedules look.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tilewright_ir::{Attr, Function, GraphExpr, GraphFunc, Module};
use tilewright_schedule::FREE_LAYOUT;
use tilewright_transform::pass::{Pass, Run};

/// `mark_free_layout` by name.
pub const PASS: Pass = Pass {
    name: "mark_free_layout",
    summary: "say which parameters are constants in every call, for `auto_schedule` to pack",
    options: &[],
    run: Run::Module(|module, _, _| Ok(mark_free(module))),
};

/// The calls of a graph function in order, each with its function and, for each argument, whether it
/// is a constant. With `computed` the result of a call whose arguments are all constants is one, too.
pub fn constant_arguments(graph: &GraphFunc, computed: bool) -> Vec<(&Arc<str>, Vec<bool>)> {
    let mut constants: HashSet<u64> = HashSet::new();
    let mut calls = Vec::new();
    for b in graph.bindings() {
        let is_constant = |e: &GraphExpr| match e {
            GraphExpr::Const(_) => true,
            GraphExpr::Var(v) => constants.contains(&v.id()),
            _ => false,
        };
        let known = match &b.value {
            GraphExpr::CallTir { func, args, .. } => {
                let given: Vec<bool> = args.iter().map(is_constant).collect();
                let known = computed && given.iter().all(|is| *is);
                calls.push((func, given));
                known
            }
            value => is_constant(value),
        };
        if known {
            constants.insert(b.var.id());
        }
    }
    calls
}

/// The module with the attribute [`FREE_LAYOUT`] at every function that has such parameters.
pub fn mark_free(module: &Module) -> Module {
    let mut free: HashMap<Arc<str>, Vec<bool>> = HashMap::new();
    for (_, graph) in module.graphs() {
        for (func, given) in constant_arguments(graph, false) {
            let all = free.entry(func.clone()).or_insert_with(|| given.clone());
            all.iter_mut().zip(given).for_each(|(all, now)| *all &= now);
        }
    }
    let mut out = module.clone();
    for (name, function) in &mut out.functions {
        let Some(params) = free.get(name).filter(|params| params.contains(&true)) else { continue };
        if let Function::Tensor(f) = function {
            let numbers = (0i64..).zip(params).filter(|(_, is)| **is);
            let numbers = numbers.map(|(k, _)| Attr::Int(k)).collect();
            let mut new = (**f).clone();
            new.attrs.insert(FREE_LAYOUT.into(), Attr::List(numbers));
            *f = Arc::new(new);
        }
    }
    out
}

/// The module without the attribute, which means nothing once functions have their loops.
pub fn unmark(module: &Module) -> Module {
    let mut out = module.clone();
    for function in out.functions.values_mut() {
        if let Function::Tensor(f) = function
            && f.attrs.contains_key(FREE_LAYOUT)
        {
            Arc::make_mut(f).attrs.remove(FREE_LAYOUT);
        }
    }
    out
}
