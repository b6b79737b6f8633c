//! Branches and loops.

use tilewright_ir::{Body, Branches, GraphVar, Loop};

use super::*;

impl Printer {
    /// `if cond:`, with the variable bound at the end of both branches.
    pub(super) fn branches(
        &mut self,
        var: &GraphVar,
        branches: &Branches,
        mut table: Option<&mut ConstTable>,
    ) {
        let cond = self.value(&branches.cond, table.as_deref_mut());
        let ty = self.graph_type(var.ty(), false);
        // The name is known after the branches, so nothing inside may have it.
        let name = self.names.define_graph(var);
        for (head, body) in
            [(format!("if {cond}:"), &branches.then), ("else:".to_owned(), &branches.otherwise)]
        {
            self.line(&head);
            self.indent += 1;
            self.names.push();
            self.binding_blocks(&body.blocks, table.as_deref_mut());
            let value = self.value(&body.ret, table.as_deref_mut());
            self.line(&format!("{name}: {ty} = {value}"));
            self.names.pop();
            self.indent -= 1;
        }
    }

    /// The function that is the body, and the call.
    pub(super) fn graph_loop(&mut self, l: &Loop, mut table: Option<&mut ConstTable>) -> String {
        let body = self.names.fresh("body");
        self.names.push();
        let params: Vec<String> = l
            .params
            .iter()
            .map(|p| {
                let name = self.names.define_graph(p);
                format!("{name}: {}", self.graph_type(p.ty(), false))
            })
            .collect();
        self.line("@R.function");
        self.line(&format!("def {body}({}):", params.join(", ")));
        self.indent += 1;
        self.loop_body(&l.body, table.as_deref_mut());
        self.indent -= 1;
        self.names.pop();
        let mut optional = |p: &mut Self, e: &Option<GraphExpr>| match e {
            Some(e) => p.value(e, table.as_deref_mut()),
            None => "None".to_owned(),
        };
        let (trip, cond) = (optional(self, &l.trip), optional(self, &l.cond));
        let carried = self.values(&l.carried, table);
        format!("R.loop({body}, {trip}, {cond}, {carried})")
    }

    fn loop_body(&mut self, body: &Body, mut table: Option<&mut ConstTable>) {
        self.binding_blocks(&body.blocks, table.as_deref_mut());
        let ret = self.value(&body.ret, table);
        self.line(&format!("return {ret}"));
    }
}
