//! What a page says of one graph function: its plan, and the names under which readers see its layouts,
//! tensors and calls.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use tilewright_driver::{Module, Target};
use tilewright_ir::GraphExpr;
use tilewright_layout::flow::Planned;
use tilewright_layout::solver::Use;
use tilewright_layout::{ConvLayout, Left, TiledLayout};

use crate::about::About;
use crate::times::Times;
use crate::writing::list;

/// What a page shows.
pub struct Report<'a> {
    /// What the model is called.
    pub model: &'a str,
    /// The model before anything is planned.
    pub module: &'a Module,
    /// The same in the layouts of the plan, and the machine: where they are given, the page shows how
    /// the loops of calls are made.
    pub after: Option<(&'a Module, &'a Target)>,
    /// The plan of each of its graph functions.
    pub plans: &'a [Planned],
    /// The conversions that run when the model runs.
    pub left: &'a [Left],
    /// The values that lie in other memory than buffers, with its scope.
    pub scopes: &'a BTreeMap<Arc<str>, Arc<str>>,
    /// The unit of all costs.
    pub unit: &'static str,
    /// What was measured of each plan; empty where nothing was.
    pub times: &'a [Times],
    /// What the plan was made for.
    pub about: &'a About,
}

/// What the page says of one graph function.
pub(crate) struct FunctionReport<'a> {
    pub(crate) number: usize,
    pub(crate) plan: &'a Planned,
    pub(crate) bindings: Bindings,
    pub(crate) kinds: &'a Kinds,
    pub(crate) left: &'a [Left],
    pub(crate) scopes: &'a BTreeMap<Arc<str>, Arc<str>>,
    pub(crate) unit: &'static str,
    pub(crate) times: Option<&'a Times>,
}

impl<'a> FunctionReport<'a> {
    pub(crate) fn new(
        report: &Report<'a>,
        number: usize,
        plan: &'a Planned,
        bindings: Bindings,
        kinds: &'a Kinds,
    ) -> FunctionReport<'a> {
        let Report { left, scopes, unit, .. } = *report;
        let times = report.times.get(number);
        FunctionReport { number, plan, bindings, kinds, left, scopes, unit, times }
    }
}

impl FunctionReport<'_> {
    /// The name of a tensor.
    pub(crate) fn name(&self, tensor: usize) -> &str {
        &self.plan.problem.tensors[tensor].name
    }

    /// What a layout of a tensor is called.
    pub(crate) fn kind(&self, used: Use) -> &str {
        self.kinds.name(&self.plan.layouts[used.tensor][used.layout])
    }

    /// The type of a tensor, and its memory where that is no buffer: `float32[1, 64, 56, 56] in global.texture`.
    pub(crate) fn type_of(&self, tensor: usize) -> String {
        let dtype = &self.bindings.dtypes[tensor];
        let scope = self.scopes.get(self.name(tensor)).map(|scope| format!(" in {scope}"));
        let shape = list(&self.plan.layouts[tensor][0].logical);
        format!("{dtype}{shape}{}", scope.unwrap_or_default())
    }
}

/// The index maps that layouts have, whatever the extents: what has one colour.
pub(crate) struct Kinds {
    pub(crate) names: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Kinds {
    /// The kinds of layouts of these plans, the logical one first, then by how often they are chosen. A
    /// kind in which a policy computes convolutions has the policy's name.
    pub(crate) fn count(plans: &[Planned]) -> Kinds {
        let mut counts: HashMap<String, usize> = HashMap::new();
        let mut found: Vec<(String, String)> = Vec::new();
        let mut policies: HashMap<String, String> = HashMap::new();
        for plan in plans {
            for (layouts, chosen) in plan.layouts.iter().zip(&plan.plan.tensors) {
                for (k, layout) in layouts.iter().enumerate() {
                    if layout.is_identity() {
                        continue;
                    }
                    let map = layout.to_string();
                    let count = counts.entry(map.clone()).or_insert_with(|| {
                        found.push((map, tag(layout)));
                        0
                    });
                    *count += usize::from(chosen.layout == k);
                }
            }
            for way in plan.problem.calls.iter().flat_map(|call| &call.alternatives) {
                if way.name.parse::<ConvLayout>().is_err() {
                    continue;
                }
                for used in &way.writes {
                    let layout = &plan.layouts[used.tensor][used.layout];
                    if !layout.is_identity() {
                        policies.entry(layout.to_string()).or_insert_with(|| way.name.clone());
                    }
                }
            }
        }
        found.sort_by_key(|(map, _)| std::cmp::Reverse(counts[map]));
        let mut kinds = Kinds { names: vec!["logical".into()], numbers: HashMap::new() };
        for (map, tag) in found {
            let policy = policies.get(&map).filter(|name| !kinds.names.contains(name));
            kinds.numbers.insert(map, kinds.names.len());
            kinds.names.push(policy.cloned().unwrap_or(tag));
        }
        kinds
    }

    pub(crate) fn number(&self, layout: &TiledLayout) -> usize {
        if layout.is_identity() {
            0
        } else {
            self.numbers.get(&layout.to_string()).copied().unwrap_or(0)
        }
    }

    pub(crate) fn name(&self, layout: &TiledLayout) -> &str {
        &self.names[self.number(layout)]
    }

    /// What an alternative is called: one that is named by its index map, as the kind of that.
    pub(crate) fn way<'a>(&'a self, name: &'a str) -> &'a str {
        self.numbers.get(name).map_or(name, |k| &self.names[*k])
    }
}

/// A short name of a layout: a letter for each physical axis, outermost first; a capital where the
/// axis is divided, and the block before the letter of the rest (`aBcd16b`).
pub(crate) fn tag(layout: &TiledLayout) -> String {
    let mut text = String::new();
    for (d, k) in &layout.order {
        let letter = char::from_digit(*d as u32 + 10, 36).unwrap_or('?');
        let split = &layout.splits[*d];
        match k {
            0 if split.digits.len() > 1 => text.push(letter.to_ascii_uppercase()),
            0 => text.push(letter),
            _ => {
                let _ = write!(text, "{}{letter}", split.digits[*k]);
            }
        }
    }
    text
}

/// What the model says of the calls and tensors of a plan. They are found by their names; of several
/// of one name, in their order.
pub(crate) struct Bindings {
    /// The tensor function that each call runs; empty where it is none, or not known.
    functions: Vec<String>,
    /// The element type of each tensor; empty where it is not known.
    dtypes: Vec<String>,
}

impl Bindings {
    pub(crate) fn collect(module: &Module, plan: &Planned) -> Bindings {
        let mut functions: HashMap<&str, Vec<String>> = HashMap::new();
        let mut dtypes: HashMap<&str, Vec<String>> = HashMap::new();
        let graph = module.graph(&plan.graph);
        for b in graph.iter().flat_map(|graph| graph.bindings()) {
            let function = match &b.value {
                GraphExpr::CallTir { func, .. } => func.to_string(),
                _ => String::new(),
            };
            functions.entry(b.var.name()).or_default().push(function);
        }
        for graph in graph.iter() {
            for var in graph.params.iter().chain(graph.bindings().map(|b| &b.var)) {
                let dtype = var.ty().as_tensor().map(|t| t.dtype.to_string()).unwrap_or_default();
                dtypes.entry(var.name()).or_default().push(dtype);
            }
        }
        let calls = plan.problem.calls.iter().map(|call| &*call.name).collect();
        let tensors = plan.problem.tensors.iter().map(|t| &*t.name).collect();
        Bindings { functions: find_all(calls, &functions), dtypes: find_all(tensors, &dtypes) }
    }

    pub(crate) fn function(&self, call: usize) -> &str {
        &self.functions[call]
    }
}

/// What is known under each name. Where there are more or fewer of a name, only what they share.
fn find_all<'a>(names: Vec<&'a str>, known: &HashMap<&str, Vec<String>>) -> Vec<String> {
    let mut count: HashMap<&str, usize> = HashMap::new();
    names.iter().for_each(|name| *count.entry(name).or_default() += 1);
    let mut next: HashMap<&'a str, usize> = HashMap::new();
    names
        .into_iter()
        .map(|name| {
            let k = next.entry(name).or_default();
            *k += 1;
            let all = known.get(name)?;
            let is_clear = all.len() == count[name] || all.iter().all(|one| *one == all[0]);
            all.get((*k - 1).min(all.len() - 1)).filter(|_| is_clear).cloned()
        })
        .map(Option::unwrap_or_default)
        .collect()
}
