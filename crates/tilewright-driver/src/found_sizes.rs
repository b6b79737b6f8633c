//! Two modules whose graph functions have no control flow, and the sizes that they find in data.
//!
//! Sizes of inputs are the same where they have the same name. A size that a graph finds in data (how many elements of
//! a mask are true) is the same as one of the other graph where it is found in the same value: only comparing
//! shows that. So all have names of their own until it is known what they are. Two of one graph may be the same, too.

use tilewright_ir::hash::HashMap;

use tilewright_graph::control::dataflow::{as_dataflow, found_sizes, renamed_sizes, with_sizes};
use tilewright_ir::visit::Subst;
use tilewright_ir::{Expr, Fold, GraphExpr, GraphFunc, Module, Result, Var, graph};
use tilewright_transform::names::UniqueNames;

pub(crate) struct FoundSizes<'m> {
    modules: [Module; 2],
    names: [&'m str; 2],
    /// What the sizes are that both find: variables of no other name, or those of values of the first module.
    sizes: HashMap<Var, Expr>,
    /// By these variables, the sizes that are not known to be others.
    unknown: HashMap<Var, Var>,
}

impl<'m> FoundSizes<'m> {
    /// Those of two functions by their names; `None` where one is no graph function.
    pub(crate) fn new(a: (&Module, &'m str), b: (&Module, &'m str)) -> Option<FoundSizes<'m>> {
        let modules = [a, b].map(|(module, name)| plain(module, name));
        let (f, g) = (modules[0].graph(a.1).ok()?, modules[1].graph(b.1).ok()?);
        let mut names = UniqueNames::default();
        for size in f.params.iter().chain(&g.params).flat_map(|p| p.ty().bound_sizes()) {
            names.reserve(size.name().clone());
        }
        let mut sizes = renamed_sizes(&found_sizes(f), &mut names);
        sizes.extend(renamed_sizes(&found_sizes(g), &mut names));
        let unknown = sizes.iter().filter_map(|(v, new)| Some((new.as_var()?.clone(), v.clone())));
        let unknown = unknown.collect();
        Some(FoundSizes { modules, names: [a.1, b.1], sizes, unknown })
    }

    /// The modules with sizes of one name, as far as they are known to be the same.
    ///
    /// # Errors
    /// None: the functions have no control flow.
    pub(crate) fn modules(&self) -> Result<[Module; 2]> {
        let [a, b] = &self.modules;
        Ok([replaced(a, self.names[0], &self.sizes)?, replaced(b, self.names[1], &self.sizes)?])
    }

    /// Whether a size is found, and not known to be another one.
    pub(crate) fn is_found(&self, v: &Var) -> bool {
        self.unknown.contains_key(v)
    }

    /// Takes in what such sizes are.
    pub(crate) fn learn(&mut self, learnt: &HashMap<Var, Expr>) {
        let of = |v: &Var| self.unknown.get(v).cloned();
        let known: Vec<(Var, Expr)> = learnt
            .iter()
            .filter_map(|(v, known)| Some((of(v)?, known.clone().cast(v.dtype()))))
            .collect();
        self.unknown.retain(|v, _| !learnt.contains_key(v));
        // What others were known to be has another name now, too.
        let mut names =
            Subst::vars(learnt.iter().map(|(v, e)| (v.clone(), e.clone().cast(v.dtype()))));
        self.sizes.values_mut().for_each(|e| *e = names.expr(e));
        self.sizes.extend(known);
    }
}

/// The module without control flow, and without calls of graph functions, whose sizes have names of their own.
fn plain(module: &Module, name: &str) -> Module {
    let calls = |f: &GraphFunc| {
        let mut any = false;
        f.for_each_expr(&mut |e| {
            any |= matches!(e, GraphExpr::Call { op, .. } if graph::callee(op).is_some());
        });
        any
    };
    let is_plain = !module.has_control(name) && !module.graph(name).is_ok_and(|f| calls(f));
    let dataflow = (!is_plain).then(|| as_dataflow(module, name).ok()).flatten();
    dataflow.unwrap_or_else(|| module.clone())
}

fn replaced(module: &Module, name: &str, sizes: &HashMap<Var, Expr>) -> Result<Module> {
    let mut module = module.clone();
    if let Ok(f) = module.graph(name)
        && !sizes.is_empty()
    {
        let f = with_sizes(f, sizes)?;
        module.insert(name, f);
    }
    Ok(module)
}
