//! Certificates of what changes a module: one for each graph function, with what it calls, that a step changes, and
//! one for each tensor function that no graph calls.
//!
//! A step that lays a parameter out in another way needs its map: it is that of a `transform_layout` of
//! the schedule that gives the shape. A map that is not the right one is refused by the checker.

use std::collections::HashSet;
use std::sync::Arc;

use tilewright_certify::certify;
use tilewright_ir::visit::{Fold, Subst};
use tilewright_ir::{Buffer, Expr, GraphExpr, Module, Param, TensorFunc, Var};
use tilewright_layout::index_map::{IndexMap, PhysicalLayout};
use tilewright_schedule::trace::Trace;
use tilewright_schedule::value::{Lambda, Value};

use super::load::print;

/// The maps by which a schedule lays buffers out.
pub fn layout_maps(trace: &Trace) -> Vec<Lambda> {
    let layouts = trace.instructions.iter().filter(|i| i.primitive.name == "transform_layout");
    let maps = layouts.flat_map(|i| &i.args).filter_map(|v| match v {
        Value::Lambda(l) => Some(l.clone()),
        _ => None,
    });
    maps.collect()
}

/// The certificates, as text, that each function of a module computes what it did before; `maps` are those by
/// which parameters may have been laid out. Empty where no function differs.
///
/// # Errors
/// Why a function has none, which is no proof that it computes something else.
pub fn certificates(before: &Module, after: &Module, maps: &[Lambda]) -> Result<String, String> {
    let mut text = String::new();
    let names = [before, after].map(|m| m.graphs().map(|(n, _)| n).collect::<Vec<_>>());
    if names[0] != names[1] {
        return Err("there are other graph functions".into());
    }
    let mut inside = HashSet::new();
    for name in &names[0] {
        let texts = [before, after].map(|m| print(&with_callees(m, name)));
        inside.extend(callees(after, name));
        if texts[0] != texts[1] {
            text += &certify(&texts[0], &texts[1], &[])?;
        }
    }
    for (name, func) in after.tensors().filter(|(name, _)| !inside.contains(*name)) {
        let Ok(old) = before.tensor(name) else {
            return Err(format!("`{name}` is new"));
        };
        let texts = [(before, old), (after, func)].map(|(m, f)| print(&m.alone(name, f)));
        if texts[0] == texts[1] {
            continue;
        }
        let mut layouts = Vec::new();
        for (at, (x, y)) in buffers(old).zip(buffers(func)).enumerate() {
            if shown(&x.shape) != shown(&y.shape) {
                let found = maps.iter().rev().find_map(|l| layout(at, l, &x, &y));
                layouts.push(found.ok_or_else(|| format!("the map of `{x}` is not known"))?);
            }
        }
        text += &certify(&texts[0], &texts[1], &layouts)?;
    }
    Ok(text)
}

/// The tensor functions that a graph function calls.
fn callees(module: &Module, name: &Arc<str>) -> HashSet<Arc<str>> {
    let mut called = HashSet::new();
    if let Ok(graph) = module.graph(name) {
        graph.for_each_expr(&mut |e| {
            if let GraphExpr::CallTir { func, .. } = e {
                called.insert(func.clone());
            }
        });
    }
    called
}

/// A graph function with the tensor functions that it calls.
fn with_callees(module: &Module, name: &Arc<str>) -> Module {
    let called = callees(module, name);
    let mut out = Module { source: module.source.clone(), ..Module::new() };
    for (other, func) in module.functions.iter() {
        if other == name || called.contains(other) {
            out.functions.insert(other.clone(), func.clone());
        }
    }
    out
}

fn buffers(func: &TensorFunc) -> impl Iterator<Item = Buffer> {
    func.params.iter().filter_map(Param::buffer).cloned()
}

fn shown(list: &[Expr]) -> String {
    list.iter().map(Expr::to_string).collect::<Vec<_>>().join(", ")
}

/// The line that says how a parameter lies, if a map leads from the one shape to the other.
fn layout(at: usize, map: &Lambda, old: &Buffer, new: &Buffer) -> Option<String> {
    let dtypes: Vec<_> = old.shape.iter().map(Expr::dtype).collect();
    let layout = IndexMap::bind(map, &dtypes).ok()?.on(&old.shape, false).ok()?;
    let PhysicalLayout { map, physical, cells, known } = layout;
    if shown(&physical) != shown(&new.shape) {
        return None;
    }
    let inverse = known.ok()?.inverse;
    let named = |prefix: &str, vars: &[Var]| -> Vec<Var> {
        vars.iter().enumerate().map(|(k, v)| Var::new(format!("{prefix}{k}"), v.dtype())).collect()
    };
    let (from, to) = (named("i", &map.params), named("c", &cells));
    let indices = map.apply(&from.iter().map(Var::expr).collect::<Vec<_>>());
    let mut back = Subst::vars(cells.into_iter().zip(to.iter().map(Var::expr)));
    let inverse: Vec<Expr> = inverse.iter().map(|e| back.expr(e)).collect();
    let names =
        |vars: &[Var]| vars.iter().map(|v| v.name().to_string()).collect::<Vec<_>>().join(", ");
    Some(format!(
        "layout {at} ({}) to ({}) and back ({}) to ({})",
        names(&from),
        shown(&indices),
        names(&to),
        shown(&inverse)
    ))
}
