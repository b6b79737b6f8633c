//! The functions of the interface.

use std::fmt::Write;

use tilewright_ir::{Dim, Result};
use tilewright_runtime::OpenPort;
use tilewright_runtime::plan::program::{Block, Register};

use super::{Writer, is_decided, number, type_of};

impl Writer<'_> {
    /// What the header declares, but for what all libraries have.
    pub(super) fn run(&mut self, body: usize, block: &Block) -> Result<String> {
        let mut out = self.start_and_finish(body);
        let misfit = self.site("an output has another shape than the model says");
        let ports: Vec<(&OpenPort, &Register)> =
            self.program.signature.outputs.iter().zip(&block.results).collect();
        out += &(if is_decided(self.program) {
            self.run_to_results(&ports, &misfit)
        } else {
            self.run_to_outputs(&ports, &misfit)
        });
        Ok(out)
    }

    /// The parameter that shapes are given in, if they are, and the argument that hands it on.
    fn shapes_passed(&self) -> (&'static str, &'static str) {
        match self.library.program.plan.shapes() {
            None => ("", ""),
            Some(_) => ("const int64_t *shapes, ", "shapes, "),
        }
    }

    /// The functions that make the state of a run and call its block, and that free it.
    fn start_and_finish(&self, body: usize) -> String {
        let shapes = self.library.program.plan.shapes();
        let signature = &self.program.signature;
        let (parameter, _) = self.shapes_passed();
        let mut out = format!(
            "static int start({parameter}const void *const *inputs, run_state **to) {{
    run_state *m = calloc(1, sizeof *m);
    *to = m;
    if (m == NULL) return NO_MEMORY;
    for (int k = 0; k < {}; k++) m->s[k] = -1;
",
            self.program.sizes.len()
        );
        for (k, port) in signature.inputs.iter().enumerate() {
            let extents = Self::extents(port, shapes.map(|s| s.inputs[k].extents));
            let (ty, rank) = (type_of(port.dtype), port.shape.len());
            let _ = writeln!(
                out,
                "    TRY(tensor({ty}, {rank}, {extents}, inputs[{k}], &m->r[{k}]), 0);"
            );
        }
        for (slot, v) in signature.sizes().iter().enumerate() {
            let plain = |(k, port): (usize, &OpenPort)| {
                let axis = port.shape.iter().position(|d| *d == Dim::open(v))?;
                Some(shapes?.inputs[k].extents + axis)
            };
            if let Some(at) = signature.inputs.iter().enumerate().find_map(plain) {
                let _ = writeln!(out, "    m->s[{slot}] = shapes[{at}];");
            }
        }
        let _ = write!(
            out,
            "    (void)inputs;
    return block_{body}(m);
}}

static void finish(run_state *m) {{
    for (int k = 0; m != NULL && k < {}; k++) drop(m->r[k]);
    if (m != NULL) free(m->arena);
    free(m);
}}

",
            self.registers
        );
        out
    }

    /// The functions for outputs whose sizes data decide: a run makes results, which are asked for and freed.
    fn run_to_results(&self, ports: &[(&OpenPort, &Register)], misfit: &str) -> String {
        let (name, (parameter, passed)) = (self.name, self.shapes_passed());
        let count = ports.len();
        let mut out = format!(
            "struct {name}_results {{
    value *outputs[{count}];
}};

PUBLIC void {name}_free({name}_results *results) {{
    if (results == NULL) return;
    for (int k = 0; k < {count}; k++) drop(results->outputs[k]);
    free(results);
}}

/* A value that stays when the inputs go. */
static int keep(value *v, value **to) {{
    if (v->is_own) {{
        *to = hold(v);
        return 0;
    }}
    int failed = tensor(v->type, v->rank, v->extents, NULL, to);
    if (failed == 0 && byte_count(v) > 0) memcpy(elements(*to), v->data, (size_t)byte_count(v));
    return failed;
}}

PUBLIC int {name}_run({parameter}const void *const *inputs, {name}_results **results) {{
    run_state *m;
    {name}_results *made = NULL;
    int result = start({passed}inputs, &m);
    if (result == 0 && (made = calloc(1, sizeof *made)) == NULL) result = NO_MEMORY;
"
        );
        for (k, (port, r)) in ports.iter().enumerate() {
            let (number, rank) = (number(port.dtype), port.shape.len());
            let _ = write!(
                out,
                "    if (result == 0 && !is_tensor(m->r[{r}], {number}, {rank})) result = {misfit};
    if (result == 0) result = keep(m->r[{r}], &made->outputs[{k}]);
"
            );
        }
        let _ = write!(
            out,
            "    finish(m);
    if (result != 0) {{
        {name}_free(made);
        made = NULL;
    }}
    *results = made;
    return result;
}}

PUBLIC const void *{name}_output(const {name}_results *results, int output,
                                 const int64_t **extents) {{
    if (results == NULL || output < 0 || output >= {count}) return NULL;
    if (extents != NULL) *extents = results->outputs[output]->extents;
    return results->outputs[output]->data;
}}
"
        );
        out
    }

    /// The function that writes outputs of known shapes to the caller's memory.
    fn run_to_outputs(&self, ports: &[(&OpenPort, &Register)], misfit: &str) -> String {
        let shapes = self.library.program.plan.shapes();
        let (name, (parameter, passed)) = (self.name, self.shapes_passed());
        let mut out = format!(
            "PUBLIC int {name}_run({parameter}const void *const *inputs, void *const *outputs, void *arena) {{
    run_state *m;
    int result = start({passed}inputs, &m);
    (void)arena;
"
        );
        for (k, (port, r)) in ports.iter().enumerate() {
            let (number, rank) = (number(port.dtype), port.shape.len());
            let extents = Self::extents(port, shapes.map(|s| s.outputs[k].extents));
            let _ = write!(
                out,
                "    if (result == 0) {{
        const value *v = m->r[{r}];
        if (!is_tensor(v, {number}, {rank}) || !has_extents(v, {extents})) result = {misfit};
        else if (byte_count(v) > 0) memcpy(outputs[{k}], v->data, (size_t)byte_count(v));
    }}
"
            );
        }
        out += "    finish(m);\n    return result;\n}\n";
        out
    }
}
