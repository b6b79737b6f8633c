//! The drawing of a graph function: inputs, calls, conversions and results as boxes; a tensor in a
//! layout as the lines from where it is made to where it is read.

use std::collections::HashMap;
use std::fmt::Write as _;

use tilewright_layout::solver::{Alternative, Problem, Solution, Use};

use crate::function::FunctionReport;
use crate::layers::{self, HEIGHT, Line, Net};
use crate::writing::{amount, html, share};

/// Shades for the time of calls that take any.
const SHADES: usize = 6;
/// Colours of lines; more kinds of layouts start over.
const COLOURS: usize = 8;
/// The widest text of a box, in characters.
const LETTERS: usize = 24;

/// The width of most boxes.
const NARROWEST: f64 = 130.0;

/// A box.
#[derive(Clone, Copy)]
enum Node {
    Input(usize),
    Call(usize),
    /// The conversion of this number.
    Conversion(usize),
    /// A result of the function.
    Output(usize),
}

pub struct Graph<'a> {
    function: &'a FunctionReport<'a>,
    nodes: Vec<Node>,
    /// The tensor, its layout, and who makes and reads it.
    nets: Vec<(Use, Net)>,
}

impl<'a> Graph<'a> {
    pub fn new(function: &'a FunctionReport<'a>) -> Self {
        let (plan, problem) = (&function.plan.plan, &function.plan.problem);
        let mut nodes = Vec::new();
        let mut nets: Vec<(Use, Net)> = Vec::new();
        let mut makers: HashMap<Use, usize> = HashMap::new();
        let mut makes = |used: Use, from: usize| {
            makers.insert(used, nets.len());
            nets.push((used, Net { from, to: Vec::new() }));
        };
        for t in (0..problem.tensors.len()).filter(|t| problem.tensors[*t].given.is_some()) {
            makes(use_of(t, plan), nodes.len());
            nodes.push(Node::Input(t));
        }
        let first_call = nodes.len();
        for c in 0..problem.calls.len() {
            chosen_of(c, problem, plan).writes.iter().for_each(|used| makes(*used, nodes.len()));
            nodes.push(match chosen_of(c, problem, plan).writes.first() {
                Some(given) if c >= function.plan.calls() => Node::Input(given.tensor),
                _ => Node::Call(c),
            });
        }
        let first_conversion = nodes.len();
        for (k, c) in plan.conversions.iter().enumerate() {
            makes(Use { tensor: c.tensor, layout: c.to }, nodes.len());
            nodes.push(Node::Conversion(k));
        }
        let mut reads = |used: Use, node: usize| {
            if let Some(net) = makers.get(&used) {
                let to = &mut nets[*net].1.to;
                if !to.contains(&node) {
                    to.push(node);
                }
            }
        };
        for c in 0..problem.calls.len() {
            chosen_of(c, problem, plan).reads.iter().for_each(|used| reads(*used, first_call + c));
        }
        for (k, c) in plan.conversions.iter().enumerate() {
            reads(use_of(c.tensor, plan), first_conversion + k);
        }
        for (tensor, t) in problem.tensors.iter().enumerate() {
            for layout in &t.required {
                reads(Use { tensor, layout: *layout }, nodes.len());
                nodes.push(Node::Output(tensor));
            }
        }
        for tensor in &function.plan.free_results {
            reads(use_of(*tensor, plan), nodes.len());
            nodes.push(Node::Output(*tensor));
        }
        Graph { function, nodes, nets }
    }

    /// The drawing with its legend.
    pub fn draw(&self) -> String {
        format!(
            "{}<p><label>Zoom <input type=range min=10 max=200 value=100 data-zoom=s{}></label></p>\n\
             <div class=graph>{}</div>\n",
            self.legend(),
            self.function.number,
            self.svg()
        )
    }

    /// The drawing as an image, in the colours of a style sheet.
    pub fn image(&self, style: &str) -> String {
        let svg = self.svg();
        match svg.split_once('\n') {
            Some((start, rest)) => {
                let paper = "svg { background: var(--paper); font-family: sans-serif; }";
                format!("{start}\n<style>\n{style}{paper}\n</style>\n{rest}\n")
            }
            None => svg,
        }
    }

    /// The drawing alone. It is XML, and so can be an image.
    fn svg(&self) -> String {
        let words: Vec<[String; 2]> = self.nodes.iter().map(|n| self.words(*n)).collect();
        // Boxes of one width stand in straight columns.
        let widths: Vec<f64> = words.iter().map(|w| box_width(w).max(NARROWEST)).collect();
        let nets: Vec<Net> =
            self.nets.iter().map(|(_, n)| Net { from: n.from, to: n.to.clone() }).collect();
        let drawing = layers::draw(&widths, &nets);
        let (w, h) = (drawing.width.ceil(), drawing.height.ceil());
        let mut text = format!(
            "<svg id=\"s{}\" xmlns=\"http://www.w3.org/2000/svg\" role=\"group\" \
             aria-label=\"The graph, from top to bottom\" width=\"{w}\" height=\"{h}\" \
             viewBox=\"0 0 {w} {h}\">\n",
            self.function.number
        );
        // From top to bottom, each box with the lines that leave it: the order of the Tab key.
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by(|a, b| {
            drawing.nodes[*a]
                .1
                .total_cmp(&drawing.nodes[*b].1)
                .then(drawing.nodes[*a].0.total_cmp(&drawing.nodes[*b].0))
        });
        let mut leaving: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        self.nets.iter().enumerate().for_each(|(k, (_, net))| leaving[net.from].push(k));
        for n in order {
            self.draw_box(&mut text, self.nodes[n], &words[n], drawing.nodes[n], widths[n]);
            for k in &leaving[n] {
                self.draw_net(&mut text, self.nets[*k].0, &drawing.nets[*k]);
            }
        }
        text + "</svg>"
    }

    /// What stands in a box.
    fn words(&self, node: Node) -> [String; 2] {
        let plan = &self.function.plan.plan;
        match node {
            Node::Input(t) => [short(self.function.name(t)), "input".to_owned()],
            Node::Output(t) => [short(self.function.name(t)), "result".to_owned()],
            Node::Call(c) => {
                let call = &plan.calls[c];
                let second = match call.cost {
                    0 => "no time".to_owned(),
                    cost => {
                        let part = share(cost as f64 / plan.objective.max(1) as f64);
                        format!("{} · {part}", short(self.function.kinds.way(&call.chosen)))
                    }
                };
                let first = match self.function.bindings.function(c) {
                    "" => call.name.clone(),
                    function => format!("{} · {function}", call.name),
                };
                [short(&first), second]
            }
            Node::Conversion(k) => {
                let c = &plan.conversions[k];
                let second = match c.cost {
                    0 => "the same memory".to_owned(),
                    cost => format!("{} {}", amount(cost), self.function.unit),
                };
                [
                    format!(
                        "to {}",
                        short(self.function.kind(Use { tensor: c.tensor, layout: c.to }))
                    ),
                    second,
                ]
            }
        }
    }

    fn draw_box(
        &self,
        text: &mut String,
        node: Node,
        words: &[String; 2],
        at: (f64, f64),
        width: f64,
    ) {
        let (g, plan, unit) = (self.function.number, &self.function.plan.plan, self.function.unit);
        let (class, target, label) = match node {
            Node::Input(t) => {
                ("b io", format!("data-t=\"{g}.{t}\""), format!("Input {}", self.function.name(t)))
            }
            Node::Output(t) => {
                ("b io", format!("data-t=\"{g}.{t}\""), format!("Result {}", self.function.name(t)))
            }
            Node::Call(c) => {
                let call = &plan.calls[c];
                let (chosen, cost) = (self.function.kinds.way(&call.chosen), amount(call.cost));
                let label = match self.function.bindings.function(c) {
                    "" => format!("Call {}: {chosen}, {cost} {unit}", call.name),
                    f => format!("Call {} of {f}: {chosen}, {cost} {unit}", call.name),
                };
                ("b", format!("data-c=\"{g}.{c}\""), label)
            }
            Node::Conversion(k) => {
                let c = &plan.conversions[k];
                let [from, to] = [c.from, c.to]
                    .map(|layout| self.function.kind(Use { tensor: c.tensor, layout }));
                let cost = amount(c.cost);
                let label = format!(
                    "Conversion of {} from {from} to {to}: {cost} {unit}",
                    self.function.name(c.tensor)
                );
                (
                    if c.cost > 0 { "b v" } else { "b io" },
                    format!("data-t=\"{g}.{}\"", c.tensor),
                    label,
                )
            }
        };
        let shade = match node {
            Node::Call(c) => format!(" class=\"t{}\"", self.shade(plan.calls[c].cost)),
            _ => String::new(),
        };
        let round = if matches!(node, Node::Call(_)) { 3 } else { 18 };
        let (x, y) = at;
        let _ = writeln!(
            text,
            "<g class=\"{class}\" {target} tabindex=\"0\" role=\"button\" aria-label=\"{}\">\
             <rect{shade} x=\"{:.0}\" y=\"{y:.0}\" width=\"{width:.0}\" height=\"{HEIGHT}\" \
             rx=\"{round}\" /><text x=\"{x:.0}\" y=\"{:.0}\">{}</text>\
             <text class=\"s\" x=\"{x:.0}\" y=\"{:.0}\">{}</text></g>",
            html(&label),
            x - width / 2.0,
            y + 16.0,
            html(&words[0]),
            y + 30.0,
            html(&words[1])
        );
    }

    fn draw_net(&self, text: &mut String, used: Use, lines: &[Line]) {
        if lines.is_empty() {
            return;
        }
        let layout = &self.function.plan.layouts[used.tensor][used.layout];
        let mut path = String::new();
        for Line { from, to, goes_on } in lines {
            let middle = (from.1 + to.1) / 2.0;
            let _ = write!(path, "M{:.0} {:.0}", from.0, from.1);
            (if (from.0 - to.0).abs() < 1.0 {
                write!(path, "V{:.0}", to.1)
            } else {
                write!(
                    path,
                    "C{:.0} {middle:.0} {:.0} {middle:.0} {:.0} {:.0}",
                    from.0, to.0, to.0, to.1
                )
            })
            .unwrap_or_default();
            if *goes_on {
                let _ = write!(path, "V{:.0}", to.1 + HEIGHT);
            }
        }
        let label = format!(
            "Tensor {}: {}, {}",
            self.function.name(used.tensor),
            self.function.kinds.name(layout),
            self.function.type_of(used.tensor)
        );
        let _ = writeln!(
            text,
            "<g class=\"e k{}\" data-t=\"{}.{}\" tabindex=\"0\" role=\"button\" aria-label=\"{}\">\
             <path class=\"h\" d=\"{path}\" /><path d=\"{path}\" /></g>",
            colour(self.function.kinds.number(layout)),
            self.function.number,
            used.tensor,
            html(&label)
        );
    }

    /// How dark a call is: 0 for no time, then by the square root of its share of the longest.
    fn shade(&self, cost: u64) -> usize {
        let most = self.longest().max(1) as f64;
        ((cost as f64 / most).sqrt() * SHADES as f64).ceil() as usize
    }

    fn longest(&self) -> u64 {
        self.function.plan.plan.calls.iter().map(|call| call.cost).max().unwrap_or(0)
    }

    fn legend(&self) -> String {
        let mut text = "<ul class=keys aria-label=\"Colours of lines: layouts\">".to_owned();
        let mut kinds: Vec<(usize, String)> = Vec::new();
        for (used, net) in &self.nets {
            let layout = &self.function.plan.layouts[used.tensor][used.layout];
            let kind = self.function.kinds.number(layout);
            if !net.to.is_empty() && kinds.iter().all(|(k, _)| *k != kind) {
                kinds.push((kind, if kind == 0 { String::new() } else { layout.to_string() }));
            }
        }
        kinds.sort();
        for (kind, map) in kinds {
            let _ = write!(
                text,
                "<li class=e><svg width=46 height=12 aria-hidden=true><path class=k{} d=\"M1 6H45\" />\
                 </svg>{} <code class=soft>{}</code>",
                colour(kind),
                html(&self.function.kinds.names[kind]),
                html(&map)
            );
        }
        let _ = write!(
            text,
            "</ul>\n<ul class=keys aria-label=\"Colours of boxes: time\"><li>{} up to",
            self.function.unit
        );
        let longest = self.longest();
        for shade in 0..=SHADES {
            let up_to = (shade * shade) as f64 / (SHADES * SHADES) as f64 * longest as f64;
            let _ = write!(
                text,
                "<li class=b><svg width=22 height=14 aria-hidden=true>\
                 <rect class=t{shade} x=1 y=1 width=20 height=12 /></svg>{}",
                amount(up_to as u64)
            );
        }
        text + "<li class=\"b v\"><svg width=30 height=14 aria-hidden=true>\
                <rect x=1 y=1 width=28 height=12 rx=6 /></svg>conversion</ul>\n"
    }
}

fn use_of(tensor: usize, plan: &Solution) -> Use {
    Use { tensor, layout: plan.tensors[tensor].layout }
}

fn chosen_of<'a>(c: usize, problem: &'a Problem, plan: &Solution) -> &'a Alternative {
    &problem.calls[c].alternatives[plan.calls[c].choice]
}

fn box_width(w: &[String; 2]) -> f64 {
    let letters = w.iter().map(|w| w.chars().count()).max().unwrap_or(0);
    letters as f64 * 6.6 + 18.0
}

/// The colour of a kind of layout; the first is the logical one's alone.
fn colour(kind: usize) -> usize {
    match kind {
        0 => 0,
        kind => 1 + (kind - 1) % (COLOURS - 1),
    }
}

/// A name that fits into a box: its end says more than its start.
fn short(name: &str) -> String {
    let count = name.chars().count();
    if count > LETTERS {
        "…".chars().chain(name.chars().skip(count + 1 - LETTERS)).collect()
    } else {
        name.to_owned()
    }
}
