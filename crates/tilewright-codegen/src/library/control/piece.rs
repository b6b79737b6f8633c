//! Pieces as tables: their inputs and outputs, the functions that run them, and the sizes that these take.

use std::fmt::Write;

use tilewright_ir::{Dim, Error, Result, Var};
use tilewright_runtime::{MemoryPlan, OpenPort};

use super::super::given::{Control, Library};
use super::element_type;
use crate::entry::{self, Planned};
use crate::shape_func::PortSizes;

/// The tables of pieces.
pub(super) struct Pieces {
    pub text: String,
    /// Most numbers of a piece's shapes.
    pub shapes: usize,
}

/// The tables of a program's pieces; `bases` says what is added to the results of each.
pub(super) fn table(
    library: &Library<'_>,
    control: &Control<'_>,
    bases: &[usize],
) -> Result<Pieces> {
    let (mut text, mut all, mut count) = (String::new(), String::new(), 0);
    for (k, (piece, base)) in control.pieces.iter().zip(bases).enumerate() {
        let plan = piece.plan;
        let (inputs, outputs) = plan.ports();
        let shapes = plan.shapes();
        count = count.max(shapes.map_or(0, |s| s.count));
        text += &ports(&format!("inputs_{k}"), &inputs, shapes.map(|s| &s.inputs[..]));
        text += &ports(&format!("outputs_{k}"), &outputs, shapes.map(|s| &s.outputs[..]));
        let inner = library.inner(k + 1);
        let run = entry::symbol(&inner);
        let (sizes, functions, arena) = match plan {
            Planned::Fixed(plan) => (Vec::new(), format!(".run = {run}"), plan.arena_bytes),
            Planned::Open(open, shapes) => {
                let sizes = open.sizes().iter().map(|v| origin(v, open)).collect::<Result<_>>()?;
                let computed = entry::shapes_symbol(&inner);
                (sizes, format!(".shapes = {computed}, .run_open = {run}"), shapes.arena_bytes)
            }
        };
        let _ = writeln!(
            all,
            "    {{{}, {}, {}, inputs_{k}, outputs_{k}, (const int64_t[]){{{}0}}, {functions}, \
             .constants = constants_{}, .arena_bytes = {arena}, .base = {base}}},",
            inputs.len(),
            outputs.len(),
            sizes.len(),
            sizes.concat(),
            k + 1,
        );
    }
    let _ = write!(text, "static const piece pieces[] = {{\n{all}    {{0}}\n}};\n");
    Ok(Pieces { text, shapes: count })
}

/// A table of inputs or outputs; `shapes` says where their extents lie, where they are open.
pub(super) fn ports(name: &str, ports: &[OpenPort], shapes: Option<&[PortSizes]>) -> String {
    let mut text = format!("static const port {name}[] = {{");
    for (k, port) in ports.iter().enumerate() {
        let place = shapes.and_then(|all| all.get(k)).map(|at| at.extents);
        let extents = match place {
            None if !port.shape.is_empty() => {
                let known: Vec<String> =
                    port.shape.iter().map(|d| d.known().unwrap_or(0).to_string()).collect();
                format!("(const int64_t[]){{{}}}", known.join(", "))
            }
            _ => "NULL".to_owned(),
        };
        let _ = write!(
            text,
            "{{{{{}}}, {}, {extents}, {}}}, ",
            element_type(port.dtype).join(", "),
            port.shape.len(),
            place.unwrap_or(0),
        );
    }
    text + "{{0}}};\n"
}

/// Where a size of a piece comes from: an input and its axis, or -1 and which of the sizes that it is
/// given.
fn origin(v: &Var, open: &MemoryPlan) -> Result<String> {
    // As the runtime does: what is given comes first.
    if let Some(at) = open.given.iter().position(|g| g == v) {
        return Ok(format!("-1, {at}, "));
    }
    open.inputs
        .iter()
        .enumerate()
        .find_map(|(k, port)| {
            let axis = port.shape.iter().position(|d| *d == Dim::open(v))?;
            Some(format!("{k}, {axis}, "))
        })
        .ok_or_else(|| Error::internal(format!("nothing says how large `{}` is", v.name())))
}
