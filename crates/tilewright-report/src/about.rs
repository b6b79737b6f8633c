//! What a plan was made for: the machine, the threads, the sizes, and where its costs come from.

use tilewright_driver::timings::{Basis, Timings};
use tilewright_driver::{Module, Target};
use tilewright_ir::GraphVar;

use crate::writing::{html, list};

/// Facts, each with its name.
pub type About = Vec<(&'static str, String)>;

/// Where costs come from, in words.
pub fn source(basis: Basis) -> String {
    match basis {
        Basis::Written => "as written in the cost model; `tune` fits and measures them".to_owned(),
        Basis::Calibrated => "by the cost model, calibrated on this machine".to_owned(),
        Basis::Measured(count) => {
            format!("measured, of {count} functions; estimated of the others")
        }
    }
}

/// What a plan of a module was made for.
pub fn about(module: &Module, timings: &Timings) -> About {
    let mut facts = vec![
        ("Machine", machine(timings.target())),
        ("Threads", timings.scope().threads.to_string()),
    ];
    let graph = module.entry().and_then(|entry| module.graph(entry)).ok();
    let inputs =
        graph.map(|graph| graph.params.iter().filter_map(input).collect::<Vec<_>>().join(", "));
    if let Some(inputs) = inputs.filter(|inputs| !inputs.is_empty()) {
        facts.push(("Inputs", inputs));
    }
    facts.push(("Costs", source(timings.basis())));
    facts
}

/// An input in words: its name, element type and sizes; `None` for what is no tensor.
fn input(var: &GraphVar) -> Option<String> {
    let ty = var.ty().as_tensor()?;
    let sizes =
        ty.shape.iter().map(|e| e.as_int().map_or_else(|| e.to_string(), |n| n.to_string()));
    Some(format!("{}: {}{}", var.name(), ty.dtype, list(sizes)))
}

/// A machine in words: its processor, and how wide its vectors are.
fn machine(target: &Target) -> String {
    format!("{} ({}), vectors of {} bits", target.cpu, target.triple, 8 * target.vectors.lanes(1))
}

/// Facts as a list of a page.
pub(crate) fn section(about: &About) -> String {
    if about.is_empty() {
        return String::new();
    }
    let facts = about.iter().map(|(name, fact)| format!("<dt>{name}<dd>{}", html(fact)));
    format!("<dl class=about>{}</dl>\n", facts.collect::<String>())
}
