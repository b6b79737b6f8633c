"use strict";
// Shows in the panel what is chosen in the drawing. Names come from models: they are set as text,
// never as HTML; the tables of cells are templates of this page.
const data = JSON.parse(document.getElementById("data").textContent);
const panel = document.getElementById("panel");
const body = document.getElementById("panel-body");
const title = document.getElementById("panel-title");
let opener = null;

const amount = (n) => {
  if (n === null) return "not possible";
  for (const [unit, name] of [[1e9, " G"], [1e6, " M"], [1e3, " k"]]) {
    if (n >= unit) return (n / unit).toPrecision(3) + name;
  }
  return String(n);
};
const time = (n) => {
  for (const [unit, name] of [[1e9, " s"], [1e6, " ms"], [1e3, " us"]]) {
    if (n >= unit) return (n / unit).toPrecision(3) + name;
  }
  return `${n} ns`;
};
const node = (tag, attributes, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
};
const link = (text, kind, id) => node("button", { class: "link", type: "button", [`data-${kind}`]: id }, text);
const table = (caption, heads, rows) => {
  // Heads that end with "#" stand over numbers.
  const side = (k) => heads[k].endsWith("#") ? { class: "n" } : {};
  const head = node("tr", {}, ...heads.map((h, k) => node("th", { scope: "col", ...side(k) }, h.replace("#", ""))));
  const lines = rows.map(([cells, name]) => node("tr", name ? { class: name } : {}, ...cells.map((c, k) => node("td", side(k), c))));
  return node("div", { class: "wide" }, node("table", {}, node("caption", {}, caption), node("thead", {}, head), node("tbody", {}, ...lines)));
};
const kind = (graph, [tensor, layout]) => data.kinds[data.layouts[graph.tensors[tensor].layouts[layout]].kind];
const tensorLink = (g, [tensor, layout]) => {
  const graph = data.graphs[g];
  return [link(graph.tensors[tensor].name, "t", `${g}.${tensor}`), ` (${kind(graph, [tensor, layout])})`];
};
const list = (items, empty) => items.length ? node("ul", {}, ...items.map((i) => node("li", {}, ...i))) : node("p", { class: "soft" }, empty);

// The lines of a function after so many steps, each with what the last step did to it: "", "old" or "new".
const linesAfter = ([first, steps], count) => {
  let marked = first.map((k) => [data.lines[k], ""]);
  for (const [, hunks] of steps.slice(0, count)) {
    const lines = marked.filter(([, mark]) => mark !== "old").map(([line]) => [line, ""]);
    marked = [];
    let at = 0;
    for (const [from, removed, added] of hunks) {
      marked.push(...lines.slice(at, from), ...lines.slice(from, from + removed).map(([line]) => [line, "old"]),
        ...added.map((k) => [data.lines[k], "new"]));
      at = from + removed;
    }
    marked.push(...lines.slice(at));
  }
  return marked;
};
const derivation = (number) => {
  const all = data.steps[number];
  const count = all[1].length;
  const slider = node("input", { type: "range", min: 0, max: count, value: 0, id: "step" });
  const said = node("p", { class: "soft", "aria-live": "polite" });
  const calls = node("pre", { class: "calls" });
  const text = node("pre", { class: "script" });
  const draw = () => {
    const k = Number(slider.value);
    const marked = linesAfter(all, k);
    const number = (mark) => marked.filter(([, m]) => m === mark).length;
    said.textContent = k ? `Step ${k} of ${count}: ${number("old")} lines become ${number("new")}.` : `Before ${count} steps.`;
    calls.textContent = k ? all[1][k - 1][0] : "";
    const sign = { old: "- ", new: "+ " };
    text.replaceChildren(...marked.map(([line, mark]) => node("span", mark ? { class: mark } : {}, (sign[mark] ?? "  ") + line + "\n")));
    const changed = text.querySelector(".old, .new");
    if (changed) text.scrollTop = changed.offsetTop - text.offsetTop - 40;
  };
  slider.addEventListener("input", draw);
  draw();
  return [node("h3", {}, "How its loops are made"), node("label", { for: "step" }, "Step "), slider, said, calls, text];
};

const showCall = (g, c) => {
  const graph = data.graphs[g];
  const call = graph.calls[c];
  const best = call.ways[call.choice];
  title.textContent = `Call ${call.name}`;
  const facts = node("p", {}, call.func ? "Runs " : "", call.func ? node("code", {}, call.func) : "No tensor function is run.");
  const sum = graph.objective ? ` (${(100 * best.cost / graph.objective).toFixed(1)} % of the plan)` : "";
  const price = node("p", {}, `Chosen: ${best.name}, ${amount(best.cost)} ${data.unit}${sum}.`);
  const times = [];
  if (call.measured) {
    const [calls, predicted, measured] = call.measured;
    const others = calls.filter((k) => k !== c).flatMap((k) => [", ", link(graph.calls[k].name, "c", `${g}.${k}`)]);
    const error = measured ? ` (${predicted >= measured ? "+" : "−"}${Math.abs(100 * (predicted / measured - 1)).toFixed(0)} %)` : "";
    times.push(node("p", {}, `Measured: ${time(measured)}, predicted: ${time(predicted)}${error}`,
      ...(others.length ? [", in one kernel with ", ...others.slice(1)] : []), "."));
  }
  const uses = (list) => list.map((u) => `${graph.tensors[u[0]].name}: ${kind(graph, u)}`).join(", ") || "nothing";
  const maps = (uses) => uses.map((u) => data.layouts[graph.tensors[u[0]].layouts[u[1]]].map).join("; ") || "nothing";
  const rows = call.ways.map((way, k) => {
    const more = way.cost === null || best.cost === null ? "" : way.cost - best.cost;
    const difference = k === call.choice ? "chosen" : more === "" ? "" : (more < 0 ? "−" : "+") + amount(Math.abs(more));
    const total = call.why === null ? [] : [way.total === null ? "not possible" : amount(way.total)];
    return [[way.name, amount(way.cost), difference, ...total, uses(way.reads), uses(way.writes), node("span", { class: "map" }, maps(way.writes))],
      k === call.choice ? "chosen" : ""];
  });
  const reason = call.why === null ? [] : [node("p", { class: "why" }, call.why)];
  const whole = call.why === null ? [] : ["whole model#"];
  const note = call.ways.length > 1 ? "Prices are without conversions; a more expensive one may be chosen because it saves them." : "There is no other.";
  body.replaceChildren(facts, price, ...reason, ...times,
    table(`Alternatives, in ${data.unit}`, ["alternative", "price#", "difference#", ...whole, "reads", "writes", "index map of what it writes"], rows),
    node("p", { class: "soft" }, note),
    node("h3", {}, "Reads"), list(best.reads.map((u) => tensorLink(g, u)), "Nothing but constants."),
    node("h3", {}, "Writes"), list(best.writes.map((u) => tensorLink(g, u)), "Nothing."),
    ...(call.steps === null ? [] : derivation(call.steps)));
};

const cells = (layout) => {
  const waste = layout.waste > 0 ? `${(100 * layout.waste).toPrecision(3)} % of it is padding` : "no padding";
  const tables = layout.tables.map((id) => node("div", { class: "wide" }, document.getElementById(`m${id}`).content.cloneNode(true)));
  return [node("p", { class: "map" }, layout.map), node("p", {}, `In memory: ${layout.shape}; ${waste}.`), ...tables];
};
const layoutParts = (tensor, k, words) => {
  const layout = data.layouts[tensor.layouts[k]];
  return [node("h3", {}, `${data.kinds[layout.kind]} (${words})`), ...cells(layout)];
};

const showTensor = (g, t) => {
  const graph = data.graphs[g];
  const tensor = graph.tensors[t];
  title.textContent = `Tensor ${tensor.name}`;
  const writer = graph.calls.findIndex((c) => c.ways[c.choice].writes.some((u) => u[0] === t));
  const readers = [];
  graph.calls.forEach((c, k) => c.ways[c.choice].reads.forEach((u) => {
    if (u[0] === t) readers.push([link(c.name, "c", `${g}.${k}`), ` (${kind(graph, u)})`]);
  }));
  tensor.required.forEach((l) => readers.push([`the result of the function (${kind(graph, [t, l])})`]));
  const converted = graph.conversions.filter((c) => c.tensor === t);
  const parts = [node("p", {}, node("code", {}, tensor.type), " ", ...(writer < 0 ? ["an input"] : ["made by ", link(graph.calls[writer].name, "c", `${g}.${writer}`)]), "."),
    ...layoutParts(tensor, tensor.layout, "as it is made")];
  for (const c of converted) {
    const words = c.cost ? `converted, ${amount(c.cost)} ${data.unit}${c.measured === null ? "" : `, measured: ${time(c.measured)}`}` : "the same memory seen in another shape";
    parts.push(...layoutParts(tensor, c.to, words));
    if (c.reason) parts.push(node("p", {}, `Converted because ${c.reason}`));
  }
  parts.push(node("h3", {}, "Read by"), list(readers, "Nothing."));
  const used = new Set([tensor.layout, ...converted.map((c) => c.to)]);
  const others = tensor.layouts.map((_, k) => k).filter((k) => !used.has(k));
  if (others.length) parts.push(node("h3", {}, "Layouts that were not chosen"));
  for (const k of others) {
    const layout = data.layouts[tensor.layouts[k]];
    const cost = tensor.prices[k];
    const price = cost === null ? "not possible" : cost ? `converting to it costs ${amount(cost)} ${data.unit}` : "the same memory seen in another shape";
    parts.push(node("details", {}, node("summary", {}, `${data.kinds[layout.kind]}: ${price}`), ...cells(layout)));
  }
  body.replaceChildren(...parts);
};

const mark = (kind, id) => {
  document.querySelectorAll(".on").forEach((e) => e.classList.remove("on"));
  document.querySelectorAll(`svg [data-${kind}="${id}"]`).forEach((e) => e.classList.add("on"));
};
const show = (from) => {
  const kind = from.hasAttribute("data-c") ? "c" : "t";
  const id = from.getAttribute(`data-${kind}`);
  const [g, k] = id.split(".").map(Number);
  if (!panel.contains(from)) opener = from;
  (kind === "c" ? showCall : showTensor)(g, k);
  panel.hidden = false;
  panel.scrollTop = 0;
  document.body.classList.add("open");
  mark(kind, id);
  const drawn = document.querySelector(`svg [data-${kind}="${id}"]`);
  if (drawn) drawn.scrollIntoView({ block: "nearest", inline: "nearest" });
  title.focus({ preventScroll: true });
};
const close = () => {
  if (panel.hidden) return;
  panel.hidden = true;
  document.body.classList.remove("open");
  mark("c", "none");
  if (opener) opener.focus({ preventScroll: true });
};

document.addEventListener("click", (event) => {
  const from = event.target.closest("[data-c],[data-t]");
  if (from) show(from);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") close();
  const from = event.target.closest("g[data-c],g[data-t]");
  if (from && (event.key === "Enter" || event.key === " ")) {
    event.preventDefault();
    show(from);
  }
});
document.getElementById("close").addEventListener("click", close);
document.querySelectorAll("svg g[aria-label]").forEach((g) => {
  const tip = document.createElementNS("http://www.w3.org/2000/svg", "title");
  tip.textContent = g.getAttribute("aria-label");
  g.prepend(tip);
});
document.querySelectorAll("input[data-zoom]").forEach((input) => {
  const svg = document.getElementById(input.getAttribute("data-zoom"));
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  input.addEventListener("input", () => {
    svg.setAttribute("width", width * input.value / 100);
    svg.setAttribute("height", height * input.value / 100);
  });
});
