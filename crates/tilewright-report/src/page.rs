//! A plan as one page that needs nothing else: no network, no other file.
//!
//! The graph is drawn as SVG, the corners of tensors are tables, and `page.js` shows in a panel what is clicked. What the panel says is in the page as
//! JSON, and the script sets it as text. Names come from models: whatever is written into the page
//! goes through `html` or `json`.

use std::collections::HashMap;
use std::fmt::Write as _;

use tilewright_graph::normal::name_outputs;
use tilewright_layout::TiledLayout;
use tilewright_layout::solver::{Conversion, Cost, Use};

use crate::about;
use crate::cells;
use crate::function::{Bindings, FunctionReport, Kinds, Report};
use crate::graph::Graph;
use crate::memory;
use crate::steps::Steps;
use crate::why;
use crate::writing::{amount, html, json, list, plural, share, time};

/// Nothing is loaded, whatever the page contains.
pub(crate) const CONTENT_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// The most expensive calls that are listed.
const LISTED: usize = 10;

/// The page as HTML.
pub fn page(report: &Report<'_>) -> String {
    let kinds = Kinds::count(report.plans);
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
    text += &about::section(report.about);
    if report.plans.is_empty() {
        text += "<p>There is no graph function, so that there is nothing to plan.</p>\n";
    }
    let module = name_outputs(report.module);
    let mut graphs = Vec::new();
    for (number, plan) in report.plans.iter().enumerate() {
        let bindings = Bindings::collect(&module, plan);
        let function = FunctionReport::new(report, number, plan, bindings, &kinds);
        text += &function.section();
        let scheduled = report.after.map(|(after, target)| {
            shared.steps.of_graph(&name_outputs(after), &plan.graph, target)
        });
        graphs.push(function.data(&mut shared, &scheduled.unwrap_or_default()));
    }
    if let Some((after, target)) = report.after.filter(|_| !report.plans.is_empty()) {
        text += &memory::section(after, target);
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
    let kinds = Kinds::count(report.plans);
    let module = name_outputs(report.module);
    let parts = report.plans.iter().enumerate().map(|(number, plan)| {
        let bindings = Bindings::collect(&module, plan);
        FunctionReport::new(report, number, plan, bindings, &kinds)
    });
    parts.map(|function| Graph::new(&function).image(include_str!("page.css"))).collect()
}

/// What several tensors of the page share.
#[derive(Default)]
struct Shared {
    tables: Vec<String>,
    table_numbers: HashMap<String, usize>,
    layouts: Vec<String>,
    layout_numbers: HashMap<TiledLayout, usize>,
    steps: Steps,
}

impl Shared {
    /// The number of a layout.
    fn layout(&mut self, layout: &TiledLayout, kinds: &Kinds) -> usize {
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

impl FunctionReport<'_> {
    fn section(&self) -> String {
        let (g, plan, unit) = (self.number, &self.plan.plan, self.unit);
        let calls = plan.calls.len();
        let paid = plan.conversions.iter().filter(|c| self.plan.moves(c)).count();
        let mut proven = if plan.is_optimal() {
            "It is proven that no choice costs less.".to_owned()
        } else {
            format!("At most {} of it could be saved.", share(plan.gap))
        };
        let others = &plan.alternatives;
        // The greedy choice is often the plan; one layout for all is another matter.
        let is_tie = others.keys().any(|name| name != "greedy")
            && others.values().all(|cost| cost.get() == Some(plan.objective));
        if is_tie {
            let names: Vec<&str> = others.keys().map(|name| &**name).collect();
            let names = html(&names.join(", "));
            proven += &format!(" The others ({names}) cost the same: layouts do not matter here.");
        }
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
            "<p>A run was measured: {} in all kernels. Of {} with a price and a time \
             that a clock can tell, {near} are predicted within a fifth of it.</p>\n",
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

    /// The calls that cost most, the most expensive first.
    fn listed(&self) -> Vec<usize> {
        let plan = &self.plan.plan;
        let mut calls: Vec<usize> = (0..plan.calls.len()).collect();
        calls.retain(|c| plan.calls[*c].cost > 0);
        calls.sort_by_key(|c| std::cmp::Reverse(plan.calls[*c].cost));
        calls.truncate(LISTED);
        calls
    }

    /// The table of these calls.
    fn most_expensive(&self) -> String {
        let plan = &self.plan.plan;
        let calls = self.listed();
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
        for c in calls {
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
        let paid: Vec<&Conversion> =
            plan.conversions.iter().filter(|c| self.plan.moves(c)).collect();
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
        self.left
            .iter()
            .find(|l| *l.value == *name && l.from == *from && l.to == *to)
            .map(|l| &*l.reason)
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
        let listed = self.listed();
        for (c, call) in problem.calls.iter().enumerate() {
            let measured = self.times.and_then(|times| {
                let (kernel, _) = times.kernel(c)?;
                let calls = list(kernel.calls.iter());
                let predicted = times.predicted(kernel.predicted);
                Some(format!("[{calls},{predicted:.0},{:.0}]", kernel.nanoseconds))
            });
            let measured = measured.unwrap_or_else(|| "null".to_owned());
            let is_asked = listed.contains(&c) && call.alternatives.len() > 1;
            let totals = if is_asked { why::totals(self.plan, c) } else { Vec::new() };
            let why = if is_asked {
                json(&why::sentence(self.plan, c, &totals, self.kinds, self.unit))
            } else {
                "null".to_owned()
            };
            let ways = call.alternatives.iter().enumerate().map(|(k, way)| {
                format!(
                    "{{\"name\":{},\"cost\":{},\"total\":{},\"reads\":{},\"writes\":{}}}",
                    json(self.kinds.way(&way.name)),
                    number(way.cost),
                    totals.get(k).copied().flatten().map_or("null".to_owned(), |n| n.to_string()),
                    uses_text(&way.reads),
                    uses_text(&way.writes)
                )
            });
            let _ = write!(
                text,
                "{}{{\"name\":{},\"func\":{},\"steps\":{},\"measured\":{measured},\"why\":{why},\
                 \"choice\":{},\"ways\":{}}}",
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

fn uses_text(uses: &[Use]) -> String {
    list(uses.iter().map(|u| format!("[{},{}]", u.tensor, u.layout)))
}

/// A price as JSON.
fn number(cost: Cost) -> String {
    cost.get().map_or("null".to_owned(), |n| n.to_string())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
