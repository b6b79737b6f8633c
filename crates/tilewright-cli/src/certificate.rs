//! The certificates of what `tilewright opt` does, one for each function that a step changes.
//!
//! A step that lays a parameter out in another way needs its map: it is that of a `transform_layout` of
//! the schedule that gives the shape. A map that is not the right one is refused by the checker.

use std::path::Path;

use tilewright_certify::certify;
use tilewright_driver::{Module, print};
use tilewright_ir::visit::{Fold, Subst};
use tilewright_ir::{Buffer, Expr, Param, TensorFunc, Var};
use tilewright_layout::index_map::{IndexMap, PhysicalLayout};
use tilewright_runtime::file;
use tilewright_schedule::trace::Trace;
use tilewright_schedule::value::{Lambda, Value};

use super::answer::{Answer, Outcome, talk};

/// A module after a step, with the step as text.
pub struct Step {
    pub what: String,
    pub module: Module,
}

/// Writes the certificates of all steps, of which the first one is the module as it was.
pub fn write(path: &Path, steps: &[Step], maps: &[Lambda]) -> Outcome {
    let mut text = String::new();
    for pair in steps.windows(2) {
        let [before, after] = pair else { continue };
        match certificates(&before.module, &after.module, maps) {
            Ok(certificates) => text += &certificates,
            Err(why) => {
                talk!("`{}` has no certificate: {why}", after.what);
                return Ok(Answer::Undecided);
            }
        }
    }
    if text.is_empty() {
        talk!("nothing was changed, which needs no certificate");
        return Ok(Answer::Undecided);
    }
    file::write(path, text.as_bytes())?;
    Ok(Answer::Yes)
}

/// The maps by which a schedule lays buffers out.
pub fn maps(trace: &Trace) -> Vec<Lambda> {
    let layouts = trace.instructions.iter().filter(|i| i.primitive.name == "transform_layout");
    let maps = layouts.flat_map(|i| &i.args).filter_map(|v| match v {
        Value::Lambda(l) => Some(l.clone()),
        _ => None,
    });
    maps.collect()
}

fn certificates(before: &Module, after: &Module, maps: &[Lambda]) -> Result<String, String> {
    let mut text = String::new();
    if before.graphs().map(|(n, _)| n).ne(after.graphs().map(|(n, _)| n)) {
        return Err("graph functions were changed".into());
    }
    for (name, func) in after.tensors() {
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
