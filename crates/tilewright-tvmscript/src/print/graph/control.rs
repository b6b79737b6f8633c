//! Branches and loops.

use tilewright_ir::{Branches, GraphVar, Loop};

use super::*;

impl Printer<'_> {
    /// `if cond:`, with the variable bound at the end of both branches.
    pub(super) fn branches(&mut self, var: &GraphVar, branches: &Branches) {
        let cond = self.value(&branches.cond);
        let ty = self.graph_type(var.ty(), false);
        // The name is known after the branches, so nothing inside may have it.
        let name = self.names.define_graph(var);
        for (head, body) in
            [(format!("if {cond}:"), &branches.then), ("else:".to_owned(), &branches.otherwise)]
        {
            self.line(&head);
            self.indent += 1;
            self.names.push();
            self.binding_blocks(&body.blocks);
            let value = self.value(&body.ret);
            self.line(&format!("{name}: {ty} = {value}"));
            self.names.pop();
            self.indent -= 1;
        }
    }

    /// The function that is the body, and the call.
    pub(super) fn graph_loop(&mut self, l: &Loop) -> String {
        let body = self.names.fresh("body");
        self.names.push();
        let params = commas(l.params.iter().map(|p| {
            let name = self.names.define_graph(p);
            format!("{name}: {}", self.graph_type(p.ty(), false))
        }));
        self.line("@R.function");
        self.line(&format!("def {body}({params}):"));
        self.indent += 1;
        self.returning(&l.body.blocks, &l.body.ret);
        self.indent -= 1;
        self.names.pop();
        let mut optional =
            |e: &Option<GraphExpr>| e.as_ref().map_or("None".to_owned(), |e| self.value(e));
        let (trip, cond) = (optional(&l.trip), optional(&l.cond));
        format!("R.loop({body}, {trip}, {cond}, {})", self.values(&l.carried))
    }
}
