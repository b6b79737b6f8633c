//! A plan as one page that needs nothing else: no network, no other file.
//!
//! The graph is drawn as SVG, the corners of tensors are tables, and `page.js` shows in a panel what is clicked. What the panel says is in the page as
//! JSON, and the script sets it as text. Names come from models: whatever is written into the page
//! goes through `html` or `json`.

use std::collections::HashMap;
use std::fmt::Write as _;

use tilewright::unstable::graph::layout::flow::Planned;
use tilewright::unstable::graph::layout::{Layout, Left, Policy};
use tilewright::unstable::graph::normal::name_outputs;
use tilewright::unstable::ir::GraphExpr;
use tilewright::unstable::plan::{Conversion, Cost, Use};
use tilewright::{Module, Target};

use crate::cells;
use crate::graph::Graph;
use crate::steps::Steps;
use crate::times::Times;
use crate::writing::{amount, html, json, plural, share, time};

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
    /// The unit of all costs.
    pub unit: &'static str,
    /// What was measured of each plan; empty where nothing was.
    pub times: &'a [Times],
}

/// Nothing is loaded, whatever the page contains.
const CONTENT_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// The most expensive calls that are listed.
const LISTED: usize = 10;

/// The page as HTML.
pub fn page(report: &Report<'_>) -> String {
    let kinds = Kinds::of(report.plans);
    let mut shared = Shared::default();
    let title = html(report.model);
    let mut text = format!(
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n\
         <meta http-equiv=Content-Security-Policy content=\"{CONTENT_POLICY}\">\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}: plan of layouts</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}: plan of layouts</h1>\n",
        include_str!("page.css")
    );
    if report.plans.is_empty() {
        text += "<p>There is no graph function, so that there is nothing to plan.</p>\n";
    }
    let module = name_outputs(report.module);
    let mut graphs = Vec::new();
    for (number, plan) in report.plans.iter().enumerate() {
        let bindings = Bindings::of(&module, plan);
        let part = Part::of(report, number, plan, bindings, &kinds);
        text += &part.section();
        let scheduled = report.after.map(|(after, target)| {
            shared.steps.of_graph(&name_outputs(after), &plan.graph, target)
        });
        graphs.push(part.data(&mut shared, &scheduled.unwrap_or_default()));
    }
    text += "</main>\n<aside id=panel role=region aria-labelledby=panel-title hidden>\n\
             <button id=close type=button>Close <kbd>Esc</kbd></button>\n\
             <h2 id=panel-title tabindex=-1></h2>\n<div id=panel-body></div>\n</aside>\n";
    for (id, table) in shared.tables.iter().enumerate() {
        let _ = writeln!(text, "<template id=m{id}>{table}</template>");
    }
    let names: Vec<String> = kinds.names.iter().map(|name| json(name)).collect();
    let _ = writeln!(
        text,
        "<script type=\"application/json\" id=data>{{\"unit\":{},\"kinds\":[{}],\n\"layouts\":[{}],\n\
         \"lines\":{},\n\"steps\":[{}],\n\"graphs\":[{}]}}</script>\n<script>\n{}</script>\n</body>\n</html>",
        json(report.unit),
        names.join(","),
        shared.layouts.join(",\n"),
        shared.steps.lines(),
        shared.steps.functions.join(",\n"),
        graphs.join(",\n"),
        include_str!("page.js")
    );
    text
}

/// The drawing of each graph function by itself, as an SVG image.
pub fn drawings(report: &Report<'_>) -> Vec<String> {
    let kinds = Kinds::of(report.plans);
    let module = name_outputs(report.module);
    let parts = report.plans.iter().enumerate().map(|(number, plan)| {
        let bindings = Bindings::of(&module, plan);
        Part::of(report, number, plan, bindings, &kinds)
    });
    parts.map(|part| Graph::new(&part).image(include_str!("page.css"))).collect()
}

/// The index maps that layouts have, whatever the extents: what has one colour.
pub(crate) struct Kinds {
    pub(crate) names: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Kinds {
    /// The kinds of layouts of these plans, the logical one first, then by how often they are chosen. A
    /// kind in which a policy computes convolutions has the policy's name.
    fn of(plans: &[Planned]) -> Kinds {
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
                if way.name.parse::<Policy>().is_err() {
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

    pub(crate) fn number(&self, layout: &Layout) -> usize {
        match layout.is_identity() {
            true => 0,
            false => self.numbers.get(&layout.to_string()).copied().unwrap_or(0),
        }
    }

    pub(crate) fn name(&self, layout: &Layout) -> &str {
        &self.names[self.number(layout)]
    }

    /// What an alternative is called: one that is named by its index map, as the kind of that.
    pub(crate) fn way<'a>(&'a self, name: &'a str) -> &'a str {
        self.numbers.get(name).map_or(name, |k| &self.names[*k])
    }
}

/// A short name of a layout: a letter for each physical axis, outermost first; a capital where the
/// axis is divided, and the block before the letter of the rest (`aBcd16b`).
fn tag(layout: &Layout) -> String {
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

/// What several tensors of the page share.
#[derive(Default)]
struct Shared {
    tables: Vec<String>,
    table_numbers: HashMap<String, usize>,
    layouts: Vec<String>,
    layout_numbers: HashMap<Layout, usize>,
    steps: Steps,
}

impl Shared {
    /// The number of a layout.
    fn layout(&mut self, layout: &Layout, kinds: &Kinds) -> usize {
        if let Some(k) = self.layout_numbers.get(layout) {
            return *k;
        }
        let tables = cells::tables(layout);
        let tables: Vec<String> = tables.into_iter().map(|t| self.table(t).to_string()).collect();
        let shape: Vec<String> = layout.physical().iter().map(|d| d.to_string()).collect();
        let shape = if shape.is_empty() { "one element".to_owned() } else { shape.join(" × ") };
        self.layouts.push(format!(
            "{{\"map\":{},\"kind\":{},\"shape\":{},\"waste\":{:.4},\"tables\":[{}]}}",
            json(&layout.to_string()),
            kinds.number(layout),
            json(&shape),
            layout.waste(),
            tables.join(",")
        ));
        self.layout_numbers.insert(layout.clone(), self.layouts.len() - 1);
        self.layouts.len() - 1
    }

    fn table(&mut self, table: String) -> usize {
        let next = self.tables.len();
        *self.table_numbers.entry(table).or_insert_with_key(|table| {
            self.tables.push(table.clone());
            next
        })
    }
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
    fn of(module: &Module, plan: &Planned) -> Bindings {
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
        Bindings { functions: found(calls, &functions), dtypes: found(tensors, &dtypes) }
    }

    pub(crate) fn function(&self, call: usize) -> &str {
        &self.functions[call]
    }
}

/// What is known under each name. Where there are more or fewer of a name, only what they share.
fn found<'a>(names: Vec<&'a str>, known: &HashMap<&str, Vec<String>>) -> Vec<String> {
    let mut count: HashMap<&str, usize> = HashMap::new();
    names.iter().for_each(|name| *count.entry(name).or_default() += 1);
    let mut next: HashMap<&'a str, usize> = HashMap::new();
    let of = |name: &'a str| {
        let k = next.entry(name).or_default();
        *k += 1;
        let all = known.get(name)?;
        let is_clear = all.len() == count[name] || all.iter().all(|one| *one == all[0]);
        all.get((*k - 1).min(all.len() - 1)).filter(|_| is_clear).cloned()
    };
    names.into_iter().map(of).map(Option::unwrap_or_default).collect()
}

/// What the page says of one graph function.
pub(crate) struct Part<'a> {
    pub(crate) number: usize,
    pub(crate) plan: &'a Planned,
    pub(crate) bindings: Bindings,
    pub(crate) kinds: &'a Kinds,
    pub(crate) left: &'a [Left],
    pub(crate) unit: &'static str,
    times: Option<&'a Times>,
}

impl<'a> Part<'a> {
    fn of(
        report: &Report<'a>,
        number: usize,
        plan: &'a Planned,
        bindings: Bindings,
        kinds: &'a Kinds,
    ) -> Part<'a> {
        let (left, unit, times) = (report.left, report.unit, report.times.get(number));
        Part { number, plan, bindings, kinds, left, unit, times }
    }
}

impl Part<'_> {
    /// The name of a tensor.
    pub(crate) fn name(&self, tensor: usize) -> &str {
        &self.plan.problem.tensors[tensor].name
    }

    /// What a layout of a tensor is called.
    pub(crate) fn kind(&self, used: Use) -> &str {
        self.kinds.name(&self.plan.layouts[used.tensor][used.layout])
    }

    /// The type of a tensor: `float32[1, 64, 56, 56]`.
    pub(crate) fn type_of(&self, tensor: usize) -> String {
        let dtype = &self.bindings.dtypes[tensor];
        format!("{dtype}{}", list(&self.plan.layouts[tensor][0].logical))
    }

    fn section(&self) -> String {
        let (g, plan, unit) = (self.number, &self.plan.plan, self.unit);
        let calls = plan.calls.len();
        let paid = plan.conversions.iter().filter(|c| c.cost > 0).count();
        let proven = match plan.is_optimal() {
            true => "It is proven that no choice costs less.".to_owned(),
            false => format!("At most {} of it could be saved.", share(plan.gap)),
        };
        let mut text = format!(
            "<section aria-labelledby=g{g}>\n<h2 id=g{g}>Graph function <code>{}</code></h2>\n\
             <p>{}, {}. The plan costs an estimated {} {unit}. {proven}</p>\n",
            html(&self.plan.graph),
            plural(calls, "call"),
            plural(paid, "conversion") + " at run time",
            amount(plan.objective)
        );
        let graph = Graph::new(self);
        let _ = writeln!(
            text,
            "{}<a class=skip href=\"#end{g}\">Skip the drawing</a>\n<div class=side>{}{}</div>\n{}{}\n\
             <p class=soft id=end{g}>Times are estimates in {unit}. Choose a box or a line \
             (click, or Tab and Enter) to see its prices or its cells; Escape closes the panel.</p>\n\
             </section>",
            self.measured(),
            self.totals(),
            self.most_expensive(),
            self.conversions(),
            graph.draw()
        );
        text
    }

    /// How predictions and measured times agree.
    fn measured(&self) -> String {
        let Some(times) = self.times else { return String::new() };
        let (near, known) = times.near();
        format!(
            "<p>A run was measured: {} in all kernels. Of {} with a price, {near} are predicted within a \
             fifth of their time.</p>\n",
            time(times.total()),
            plural(known, "kernel")
        )
    }

    /// What the plan and other choices cost.
    fn totals(&self) -> String {
        let plan = &self.plan.plan;
        let mut rows: Vec<(String, Cost, &str)> =
            vec![("plan".to_owned(), plan.objective.into(), " class=chosen")];
        let mut others: Vec<(&String, &Cost)> = plan.alternatives.iter().collect();
        others.sort_by_key(|(_, cost)| **cost);
        for (name, cost) in others {
            let name = match name.as_str() {
                "greedy" => "greedy: call by call, each the cheapest".to_owned(),
                "none" => "none: everything logical".to_owned(),
                name => format!("{name} for every convolution"),
            };
            rows.push((name, *cost, ""));
        }
        rows.push(("lower bound".to_owned(), plan.bound.into(), ""));
        let most = rows.iter().filter_map(|(_, cost, _)| cost.get()).max().unwrap_or(0).max(1);
        let mut text = format!(
            "<table><caption>Totals</caption><thead><tr><th scope=col>choice\
             <th scope=col class=n>{}<th scope=col class=n>of the plan<td class=bars><tbody>",
            self.unit
        );
        for (name, cost, class) in rows {
            let units = cost.get();
            let ratio = units.filter(|_| plan.objective > 0);
            let ratio = ratio.map(|n| share(n as f64 / plan.objective as f64)).unwrap_or_default();
            let width = units.unwrap_or(0) as f64 / most as f64 * 100.0;
            let units = units.map_or("not possible".to_owned(), amount);
            let _ = writeln!(
                text,
                "<tr{class}><th scope=row>{}<td class=n>{units}<td class=n>{ratio}\
                 <td class=bars><span class=bar style=\"width:{width:.1}%\"></span>",
                html(&name)
            );
        }
        text + "</table>"
    }

    /// The calls that cost most.
    fn most_expensive(&self) -> String {
        let plan = &self.plan.plan;
        let mut calls: Vec<usize> = (0..plan.calls.len()).collect();
        calls.retain(|c| plan.calls[*c].cost > 0);
        calls.sort_by_key(|c| std::cmp::Reverse(plan.calls[*c].cost));
        if calls.is_empty() {
            return String::new();
        }
        let head = match self.times {
            Some(_) => "<th scope=col class=n>its kernel predicted<th scope=col class=n>measured",
            None => "",
        };
        let mut text = format!(
            "<table><caption>The most expensive calls</caption><thead><tr><th scope=col>call\
             <th scope=col>runs<th scope=col>chosen<th scope=col class=n>{}\
             <th scope=col class=n>of the plan{head}<tbody>",
            self.unit
        );
        for c in calls.into_iter().take(LISTED) {
            let call = &plan.calls[c];
            let kernel = self.times.map(|times| match times.kernel(c) {
                Some((kernel, _)) => {
                    let [predicted, measured] =
                        [times.predicted(kernel.predicted), kernel.nanoseconds].map(time);
                    format!("<td class=n>{predicted}<td class=n>{measured}")
                }
                None => "<td class=n><td class=n>".to_owned(),
            });
            let _ = writeln!(
                text,
                "<tr><th scope=row><button class=link type=button data-c={}.{c}>{}</button>\
                 <td>{}<td>{}<td class=n>{}<td class=n>{}{}",
                self.number,
                html(&call.name),
                html(self.bindings.function(c)),
                html(self.kinds.way(&call.chosen)),
                amount(call.cost),
                share(call.cost as f64 / plan.objective.max(1) as f64),
                kernel.unwrap_or_default()
            );
        }
        text + "</table>"
    }

    /// The conversions that are paid, and those that run although the plan has no price for them.
    fn conversions(&self) -> String {
        let plan = &self.plan.plan;
        let paid: Vec<&Conversion> = plan.conversions.iter().filter(|c| c.cost > 0).collect();
        if paid.is_empty() {
            return "<p>No conversion is left at run time.</p>".to_owned();
        }
        let mut text = format!(
            "<div class=wide><table><caption>Conversions at run time</caption><thead><tr>\
             <th scope=col>tensor<th scope=col>from<th scope=col>to<th scope=col class=n>{}\
             <th scope=col>because<tbody>",
            self.unit
        );
        for c in paid {
            let [from, to] = [c.from, c.to].map(|k| self.kind(Use { tensor: c.tensor, layout: k }));
            let _ = writeln!(
                text,
                "<tr><th scope=row><button class=link type=button data-t={}.{}>{}</button>\
                 <td>{}<td>{}<td class=n>{}<td>{}",
                self.number,
                c.tensor,
                html(self.name(c.tensor)),
                html(from),
                html(to),
                amount(c.cost),
                html(self.reason(c).unwrap_or_default())
            );
        }
        text + "</table></div>"
    }

    /// Why a conversion is left.
    fn reason(&self, c: &Conversion) -> Option<&str> {
        let [from, to] = [c.from, c.to].map(|k| &self.plan.layouts[c.tensor][k]);
        let name = self.name(c.tensor);
        let same = |l: &&Left| *l.value == *name && l.from == *from && l.to == *to;
        self.left.iter().find(same).map(|l| &*l.reason)
    }

    /// What the panel says, as JSON.
    fn data(&self, shared: &mut Shared, scheduled: &HashMap<String, usize>) -> String {
        let (plan, problem) = (&self.plan.plan, &self.plan.problem);
        let mut text = format!("{{\"objective\":{},\"tensors\":[", plan.objective);
        for (t, layouts) in self.plan.layouts.iter().enumerate() {
            let made = plan.tensors[t].layout;
            let layouts = layouts.iter().map(|l| shared.layout(l, self.kinds));
            let layouts = list(layouts);
            let prices = &problem.tensors[t].conversions[made];
            let _ = write!(
                text,
                "{}{{\"name\":{},\"type\":{},\"layout\":{made},\"layouts\":{layouts},\"prices\":{},\
                 \"required\":{}}}",
                if t == 0 { "" } else { ",\n" },
                json(self.name(t)),
                json(&self.type_of(t)),
                list(prices.iter().map(|c| number(*c))),
                list(problem.tensors[t].required.iter())
            );
        }
        text += "],\n\"calls\":[";
        for (c, call) in problem.calls.iter().enumerate() {
            let measured = self.times.and_then(|times| {
                let (kernel, _) = times.kernel(c)?;
                let calls = list(kernel.calls.iter());
                let predicted = times.predicted(kernel.predicted);
                Some(format!("[{calls},{predicted:.0},{:.0}]", kernel.nanoseconds))
            });
            let measured = measured.unwrap_or_else(|| "null".to_owned());
            let ways = call.alternatives.iter().map(|way| {
                let uses = |uses: &[Use]| {
                    list(uses.iter().map(|u| format!("[{},{}]", u.tensor, u.layout)))
                };
                format!(
                    "{{\"name\":{},\"cost\":{},\"reads\":{},\"writes\":{}}}",
                    json(self.kinds.way(&way.name)),
                    number(way.cost),
                    uses(&way.reads),
                    uses(&way.writes)
                )
            });
            let _ = write!(
                text,
                "{}{{\"name\":{},\"func\":{},\"steps\":{},\"measured\":{measured},\"choice\":{},\
                 \"ways\":{}}}",
                if c == 0 { "" } else { ",\n" },
                json(&call.name),
                json(self.bindings.function(c)),
                scheduled.get(&call.name).map_or("null".to_owned(), usize::to_string),
                plan.calls[c].choice,
                list(ways)
            );
        }
        let conversions = plan.conversions.iter().enumerate().map(|(k, c)| {
            let reason = self.reason(c).map_or("null".to_owned(), json);
            let measured = self.times.and_then(|times| times.conversions[k]);
            let measured = measured.map_or("null".to_owned(), |time| format!("{time:.0}"));
            format!(
                "{{\"tensor\":{},\"to\":{},\"cost\":{},\"measured\":{measured},\
                 \"reason\":{reason}}}",
                c.tensor, c.to, c.cost
            )
        });
        let _ = write!(text, "],\n\"conversions\":{}}}", list(conversions));
        text
    }
}

/// A list as JSON.
fn list<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    format!("[{}]", items.join(","))
}

/// A price as JSON.
fn number(cost: Cost) -> String {
    cost.get().map_or("null".to_owned(), |n| n.to_string())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
