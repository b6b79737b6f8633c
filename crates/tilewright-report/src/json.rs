//! Plans for tools: as JSON, and with one choice fixed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use tilewright_driver::layout::Port;
use tilewright_driver::pricing::Prices;
use tilewright_driver::{Error, Result};
use tilewright_layout::Left;
use tilewright_layout::flow::Planned;
use tilewright_layout::solver::{Certificate, Options, Solution, solve};
use tilewright_runtime::Stored;

/// A plan in which something is fixed.
pub struct WhatIf {
    /// The graph function that makes the value.
    pub graph: Arc<str>,
    /// `VALUE=LAYOUT`.
    pub text: String,
    /// What it costs.
    pub cost: u64,
    /// What the plan costs without.
    pub plan: u64,
}

/// Solves again with one choice fixed: `VALUE=LAYOUT`, a layout by its name or by its index map, as the
/// plan says it of the call.
///
/// # Errors
/// [`Error::Input`] for a value that no call makes, or a layout that its call cannot be computed in.
pub fn what_if(text: &str, plans: &[Planned]) -> Result<WhatIf> {
    // Names may hold `=`, layouts do not.
    let Some((value, wanted)) = text.rsplit_once('=') else {
        return Err(Error::input(format!("`{text}`: expected VALUE=LAYOUT")));
    };
    let found = plans.iter().find_map(|p| {
        let call = p.problem.calls[..p.calls()].iter().position(|c| c.name == value)?;
        Some((p, call))
    });
    let Some((planned, call)) = found else {
        let names = plans.iter().flat_map(|p| &p.problem.calls[..p.calls()]);
        let error = Error::input(format!("`{text}`: no call makes `{value}`"));
        return Err(error.did_you_mean(value, names.map(|c| &*c.name)));
    };
    let ways = &planned.problem.calls[call].alternatives;
    let name = if wanted == "none" { LOGICAL } else { wanted };
    if ways.iter().all(|a| a.name != name) {
        let all: BTreeSet<&str> = ways.iter().map(|a| &*a.name).collect();
        let all: Vec<&str> =
            all.into_iter().map(|a| if a == LOGICAL { "none" } else { a }).collect();
        let what = format!("`{text}`: `{value}` cannot be computed in `{wanted}`");
        return Err(Error::input(what).note(format!("it can be computed in: {}", all.join("; "))));
    }
    let mut costs = Vec::new();
    // An operand may keep its layout: there may be several ways of one name.
    for (way, _) in ways.iter().enumerate().filter(|(_, a)| a.name == name) {
        let options = Options { fixed: BTreeMap::from([(call, way)]), ..Options::default() };
        costs.extend(solve(&planned.problem, &options).ok().map(|plan| plan.objective));
    }
    let Some(cost) = costs.into_iter().min() else {
        let what = format!("`{text}`: nothing around `{value}` can be computed then");
        return Err(Error::input(what));
    };
    let (graph, text) = (planned.graph.clone(), text.to_owned());
    Ok(WhatIf { graph, text, cost, plan: planned.plan.objective })
}

/// What the model's own layout is called among the alternatives of a call.
pub(crate) const LOGICAL: &str = "logical";

/// A plan for tools.
pub fn object(planned: &Planned, unit: &str, left: &[Left], others: &[&WhatIf]) -> Value {
    let plan = Solution { certificate: Certificate::default(), ..planned.plan.clone() };
    let tensors = plan.tensors.iter().enumerate().map(|(k, t)| {
        let layout = &planned.layouts[k][t.layout];
        json!({"name": t.name, "layout": t.layout_name, "padding": layout.waste()})
    });
    let tensors: Vec<Value> = tensors.collect();
    let conversions = plan.conversions.iter().map(|c| {
        let tensor = &planned.problem.tensors[c.tensor];
        let (from, to) = (&tensor.layouts[c.from], &tensor.layouts[c.to]);
        json!({"value": tensor.name, "from": from, "to": to, "cost": c.cost})
    });
    let conversions: Vec<Value> = conversions.collect();
    let what_if: BTreeMap<&str, u64> = others.iter().map(|o| (&*o.text, o.cost)).collect();
    let calls = &plan.calls[..planned.calls()];
    json!({
        "graph": *planned.graph, "unit": unit, "objective": plan.objective, "bound": plan.bound, "gap": plan.gap,
        "alternatives": plan.alternatives, "calls": calls, "tensors": tensors,
        "conversions": conversions, "left": list(left), "what_if": what_if,
        "statistics": plan.statistics,
    })
}

/// Adds how the inputs and outputs of a model are stored: `null` for those in the model's own layout.
pub fn add_ports(object: &mut Value, [inputs, outputs]: &[Vec<Port>; 2]) {
    for (key, ports) in [("inputs", inputs), ("outputs", outputs)] {
        object[key] = ports
            .iter()
            .map(|port| json!({"name": *port.name, "stored": port.stored.as_deref().map(stored_json)}))
            .collect();
    }
}

fn stored_json(s: &Stored) -> Value {
    json!({
        "map": s.to_string(), "logical": s.logical, "shape": s.physical(),
        "padded": s.is_padded(), "pad": s.pad,
    })
}

/// Adds what changes of sizes would save.
pub fn add_prices(object: &mut Value, prices: &Prices) {
    let refused = prices
        .refused
        .iter()
        .map(|(value, axis, why)| json!({"value": **value, "axis": axis, "why": why}));
    object["price"] = prices
        .changes
        .iter()
        .map(|c| {
            let saved = i64::try_from(c.saved()).unwrap_or(i64::MIN);
            let ends: Vec<&str> = c.ends.iter().map(|name| &**name).collect();
            json!({
                "value": *c.value, "axis": c.axis, "role": c.role, "from": c.from, "to": c.to,
                "cost": c.cost, "saved": saved, "changes": ends,
            })
        })
        .collect();
    object["price_refused"] = refused.collect();
}

/// The conversions that are left, for tools.
pub fn list(left: &[Left]) -> Value {
    left.iter().map(|l| {
        let (from, to) = (l.from.to_string(), l.to.to_string());
        json!({"value": *l.value, "from": from, "to": to, "bytes": l.bytes(), "reason": l.reason})
    }).collect()
}
