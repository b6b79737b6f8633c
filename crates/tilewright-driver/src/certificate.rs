//! Certificates of what changes a module: one for each graph function, with what it calls, that a step changes, and
//! one for each tensor function that no graph calls.
//!
//! A step that lays a parameter out in another way needs its map: it is that of a `transform_layout` of
//! the schedule that gives the shape. A map that is not the right one is refused by the checker.

use std::sync::Arc;
use tilewright_ir::hash::HashSet;

use tilewright_certify::{certify, tree};
use tilewright_ir::{Buffer, Expr, GraphExpr, Module, Param, TensorFunc};
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
    let mut inside = HashSet::default();
    for name in &names[0] {
        inside.extend(callees(after, name));
        text += &certificate([before, after].map(|m| with_callees(m, name)), &[])?;
    }
    for (name, func) in after.tensors().filter(|(name, _)| !inside.contains(*name)) {
        let Ok(old) = before.tensor(name) else {
            return Err(format!("`{name}` is new"));
        };
        let mut layouts = Vec::new();
        for (at, (x, y)) in buffers(old).zip(buffers(func)).enumerate() {
            if shown(&x.shape) != shown(&y.shape) {
                let found = maps.iter().rev().find_map(|l| layout(at, l, &x, &y));
                layouts.push(found.ok_or_else(|| format!("the map of `{x}` is not known"))?);
            }
        }
        let alone = [(before, old), (after, func)].map(|(m, f)| m.alone(name, f));
        text += &certificate(alone, &layouts)?;
    }
    Ok(text)
}

/// The certificate of one function, with what it calls; none where its text is the same.
fn certificate(modules: [Module; 2], layouts: &[String]) -> Result<String, String> {
    if print(&modules[0]) == print(&modules[1]) {
        return Ok(String::new());
    }
    certify(&tree(&modules[0])?, &tree(&modules[1])?, layouts)
}

/// The functions of a module of which certificates are written, each by its name and tree, or why it has none: graph
/// functions with what they call, and tensor functions that no graph function calls.
pub fn trees(module: &Module) -> Vec<(Arc<str>, Result<String, String>)> {
    let graphs: Vec<&Arc<str>> = module.graphs().map(|(name, _)| name).collect();
    let inside: HashSet<Arc<str>> = graphs.iter().flat_map(|name| callees(module, name)).collect();
    let whole = graphs.into_iter().map(|name| (name.clone(), with_callees(module, name)));
    let alone = module.tensors().filter(|(name, _)| !inside.contains(*name));
    let alone = alone.map(|(name, func)| (name.clone(), module.alone(name, func)));
    whole.chain(alone).map(|(name, m)| (name, tree(&m))).collect()
}

/// The tensor functions that a graph function calls.
fn callees(module: &Module, name: &Arc<str>) -> HashSet<Arc<str>> {
    let mut called = HashSet::default();
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
    tilewright_certify::layout(at, (&map.params, &map.indices), (&cells, &inverse)).ok()
}
