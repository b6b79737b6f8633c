//! The function that runs a piece: its results are new values.

use std::fmt::Write;

use tilewright_ir::{Dim, Error, Result, Var};
use tilewright_runtime::MemoryPlan;

use super::{Writer, array, number, type_of};
use crate::entry::{self, Planned};
use crate::shape_func::PortSizes;

impl Writer<'_> {
    /// The function that runs a piece.
    pub(super) fn piece(&mut self, k: usize, plan: &Planned, base: usize) -> Result<()> {
        let inner = self.library.inner(k + 1);
        let (inputs, outputs) = plan.ports();
        let mut out = format!(
            "static int piece_{k}(run_state *m, value *const *in, const int64_t *told, value **out) {{\n"
        );
        let none: &[PortSizes] = &[];
        let (ins, outs) = plan.shapes().map_or((none, none), |s| (&s.inputs[..], &s.outputs[..]));
        let misfit = self.site("a value has another type or shape than it is used as");
        for (i, port) in inputs.iter().enumerate() {
            let (number, rank) = (number(port.dtype), port.shape.len());
            let _ =
                writeln!(out, "    if (!is_tensor(in[{i}], {number}, {rank})) return {misfit};");
        }
        // A result of the piece as one of the library.
        let result = format!("return result > 0 ? result + {base} : result;");
        let (arena, passed) = match plan {
            Planned::Fixed(plan) => (plan.arena_bytes.to_string(), ""),
            Planned::Open(open, shapes) => {
                let sizes =
                    open.sizes().iter().map(|v| told_size(v, open)).collect::<Result<Vec<_>>>()?;
                let _ = writeln!(out, "    int64_t *shapes = m->shapes;");
                let _ = writeln!(
                    out,
                    "    int result = {}(&context, {}, shapes);\n    if (result != 0) {result}",
                    entry::shapes_symbol(&inner),
                    array(sizes)
                );
                (format!("(size_t)shapes[{}]", shapes.arena_bytes), "shapes, ")
            }
        };
        for (i, port) in inputs.iter().enumerate().filter(|(_, port)| !port.shape.is_empty()) {
            let extents = Self::extents(port, extents_at(ins, i));
            let _ = writeln!(out, "    if (!has_extents(in[{i}], {extents})) return {misfit};");
        }
        let _ = writeln!(out, "    TRY(make_arena(m, {arena}), 0);");
        let _ = writeln!(out, "    value *made[{}] = {{0}};", outputs.len().max(1));
        let _ = writeln!(out, "    int failed = 0;");
        for (i, port) in outputs.iter().enumerate() {
            let extents = Self::extents(port, extents_at(outs, i));
            let (ty, rank) = (type_of(port.dtype), port.shape.len());
            let _ = writeln!(
                out,
                "    if (failed == 0) failed = tensor({ty}, {rank}, {extents}, NULL, &made[{i}]);"
            );
        }
        let declared = if plan.shapes().is_some() { "result" } else { "int result" };
        let _ = write!(
            out,
            "    if (failed != 0) {{
        for (int k = 0; k < {count}; k++) drop(made[k]);
        return failed;
    }}
    const void *inputs[] = {{{given}}};
    void *outputs[] = {{{results}}};
    {declared} = {run}(&context, {passed}inputs, outputs, constants_{program}, m->arena);
    for (int k = 0; k < {count}; k++) {{
        if (result == 0) out[k] = made[k];
        else drop(made[k]);
    }}
    (void)told;
    (void)in;
    {result}
}}

",
            count = outputs.len(),
            given = pointers(inputs.len(), &|i| format!("in[{i}]->data")),
            results = pointers(outputs.len(), &|i| format!("elements(made[{i}])")),
            run = entry::symbol(&inner),
            program = k + 1,
        );
        self.functions += &out;
        Ok(())
    }
}

fn told_size(v: &Var, open: &MemoryPlan) -> Result<String> {
    // As the runtime does: what is told comes first.
    if let Some(at) = open.given.iter().position(|g| g == v) {
        return Ok(format!("told[{at}]"));
    }
    open.inputs
        .iter()
        .enumerate()
        .find_map(|(i, port)| {
            let axis = port.shape.iter().position(|d| *d == Dim::open(v))?;
            Some(format!("in[{i}]->extents[{axis}]"))
        })
        .ok_or_else(|| Error::internal(format!("nothing says how large `{}` is", v.name())))
}

fn extents_at(places: &[PortSizes], i: usize) -> Option<usize> {
    places.get(i).map(|at| at.extents)
}

fn pointers(count: usize, one: &dyn Fn(usize) -> String) -> String {
    (0..count).map(one).chain(["NULL".to_owned()]).collect::<Vec<_>>().join(", ")
}
