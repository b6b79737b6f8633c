// The page: for each thing that the command does, the fields that say it, and what comes of it. An example fills
// the fields; the link of the page keeps which one was chosen.

const PAGE = "page.html";

// The fields of a form: what they are called, how they are entered, and the name of the file that a text becomes.
const text = (name, label, file) => ({ name, label, file, kind: "text" });
const line = (name, label, hint = "") => ({ name, label, hint, kind: "line" });
const check = (name, label) => ({ name, label, kind: "check" });
const upload = (name, label, file) => ({ name, label, file, kind: "upload" });

const words = (value) => value.split(/[\s,]+/).filter(Boolean);
const option = (name, value) => (value.trim() ? [name, value.trim()] : []);

const MODES = {
  schedule: {
    title: "Lay out an operator",
    about: "A function, and the steps of its schedule: layouts, padding, loops. What comes out has a guard only where one is needed; the remarks say why a guard stays.",
    fields: [
      text("module", "Function", "function.py"),
      text("steps", "Schedule", "schedule.py"),
      line("passes", "Passes behind it", "simplify, remove_branching_through_overcompute, ..."),
      check("each", "Show the function after each step"),
    ],
    args: ({ steps, passes, each }) => [
      "opt", "function.py", "--explain",
      ...(steps.trim() ? ["--schedule", "schedule.py"] : []),
      ...option("--pass", words(passes).join(",")),
      ...(each ? ["--print-after-all"] : []),
    ],
    examples: {
      "A matrix product of 127 in tiles of 32": { module: "matmul.py", steps: "matmul_tiles.py", passes: "simplify" },
      "Tiles over a size that is not known": { module: "any_size.py", steps: "any_size_tiles.py", passes: "simplify,remove_assume,remove_store_undef" },
      "A guard that has to stay, and the point that needs it": { module: "sum.py", passes: "remove_branching_through_overcompute" },
      "A copy in tiles that do not divide it": { module: "turn.py", steps: "turn_tiles.py", passes: "simplify" },
    },
  },
  verify: {
    title: "Compare two functions",
    about: "Do both compute the same for all data? The answer is a proof, or data for which they differ.",
    fields: [
      text("first", "First", "first.py"),
      text("second", "Second", "second.py"),
      check("reassociate", "Sums of floats count as equal in any order"),
      line("sizes", "Sizes or ranges", "n=1..8"),
    ],
    args: ({ reassociate, sizes }) => [
      "verify", "first.py", "second.py",
      ...(reassociate ? ["--reassociate"] : []),
      ...words(sizes).flatMap((size) => ["--dim", size]),
    ],
    examples: {
      "Sums of rows, the second from the other end": { first: "rows.py", second: "rows_backwards.py" },
      "Sums of rows, the second without the last column": { first: "rows.py", second: "rows_wrong.py" },
    },
  },
  layout: {
    title: "Draw a layout",
    about: "A layout as a lambda, or as CuTe, Triton, linalg.pack, oneDNN or TVM write it: its cells with the padding, its inverse, and what it does to vectors and banks.",
    fields: [
      line("layout", "Layout", "lambda i, j: [i // 4, j, i % 4]"),
      line("shape", "Shape", "20,24"),
      line("other", "Is it equal to", "another layout"),
      line("as", "In the notation of", "cute, triton, linalg, onednn, tvm or lambda"),
    ],
    args: ({ layout, shape, other, as }) => [
      "layout", layout,
      ...option("--shape", words(shape).join(",")),
      ...option("--equal", other),
      ...(as.trim() ? option("--as", as) : other.trim() ? [] : ["--html", PAGE]),
    ],
    examples: {
      "Blocks of four rows, padded": { layout: "lambda i, j: [i // 4, j, i % 4]", shape: "14,6" },
      "Blocks of 16 channels, as oneDNN says it": { layout: "nChw16c", shape: "1,20,3,3" },
      "Rows of 33 words in shared memory": { layout: "(32,32):(33,1)" },
      "A swizzle of CuTe": { layout: "Sw<3,3,3> o 0 o (8,64):(64,1)" },
      "An exclusive or in the index": { layout: "lambda i, j: [i, j ^ (i % 8)]", shape: "8,8" },
      "oneDNN and TVM: the same?": { layout: "nChw16c", other: "NCHW16c" },
    },
  },
  plan: {
    title: "Plan a model",
    about: "The layouts of a whole ONNX model, each with its rivals and their cost. The model stays on this machine.",
    fields: [
      upload("model", "ONNX model", "model.onnx"),
      line("cpu", "Processor, as LLVM calls it", "znver3"),
      line("sizes", "Sizes", "N=8"),
    ],
    args: ({ cpu, sizes }) => [
      "plan", "model.onnx", "--html", PAGE, "--cpu", cpu.trim() || "x86-64-v3",
      ...words(sizes).flatMap((size) => ["--dim", size]),
    ],
    examples: {
      "A reader of handwritten digits": { model: "digits.onnx", cpu: "x86-64-v3", sizes: "N=8" },
    },
  },
};

const at = (id) => document.getElementById(id);
const tabs = document.querySelector("nav");
const [form, fields, example] = [document.querySelector("form"), at("fields"), at("example")];
let mode = "schedule";
let uploaded = {};
let worker;
let runs = 0;

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function input({ name, label, hint, kind }) {
  switch (kind) {
    case "text":
      return element("label", {}, label, element("textarea", { name, spellcheck: false }));
    case "check":
      return element("label", { className: "check" }, element("input", { type: "checkbox", name }), label);
    case "upload": {
      const file = element("input", { type: "file", accept: ".onnx", name });
      file.addEventListener("change", async () => {
        if (file.files[0]) uploaded[name] = new Uint8Array(await file.files[0].arrayBuffer());
      });
      return element("label", {}, `${label} `, file);
    }
    default:
      return element("label", {}, label, element("input", { type: "text", name, placeholder: hint, spellcheck: false }));
  }
}

/** Shows the form of a mode, with its first example or the one that is named. */
async function choose(next, wanted) {
  mode = next;
  for (const tab of tabs.children) {
    tab.setAttribute("aria-selected", tab.value === mode);
    tab.tabIndex = tab.value === mode ? 0 : -1;
  }
  at("about").textContent = MODES[mode].about;
  fields.replaceChildren(...MODES[mode].fields.map(input));
  const names = Object.keys(MODES[mode].examples);
  example.replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  example.value = names.includes(wanted) ? wanted : names[0];
  await fill();
}

/** Puts the chosen example into the fields. */
async function fill() {
  const values = MODES[mode].examples[example.value];
  uploaded = {};
  form.setAttribute("aria-busy", true);
  for (const { name, kind } of MODES[mode].fields) {
    const value = values[name] ?? "";
    if (kind === "check") form.elements[name].checked = Boolean(value);
    else if (kind === "line") form.elements[name].value = value;
    else {
      const response = value && (await fetch(`examples/${value}`));
      if (kind === "text") form.elements[name].value = response ? await response.text() : "";
      else if (response) uploaded[name] = new Uint8Array(await response.arrayBuffer());
    }
  }
  history.replaceState(null, "", `#${mode}/${encodeURIComponent(example.value)}`);
  form.setAttribute("aria-busy", false);
}

const quoted = (argument) => (/^[\w.,=:/-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`);

function show(id, content) {
  at(id).hidden = !content;
  at(id)[id === "page" ? "srcdoc" : "textContent"] = content;
}

function stop(state) {
  worker?.terminate();
  worker = undefined;
  at("stop").disabled = true;
  at("state").textContent = state;
}

function start() {
  // The example is not there yet.
  if (form.getAttribute("aria-busy") === "true") return;
  const files = {}, values = {};
  for (const { name, kind, file } of MODES[mode].fields) {
    const entry = form.elements[name];
    values[name] = kind === "check" ? entry.checked : kind === "upload" ? "" : entry.value;
    if (kind === "text") files[file] = entry.value;
    if (kind === "upload" && uploaded[name]) files[file] = uploaded[name];
  }
  const args = MODES[mode].args(values);
  at("command").textContent = ["tilewright", ...args].map(quoted).join(" ");
  for (const id of ["errors", "output", "page"]) show(id, "");
  at("state").textContent = "running ...";
  at("stop").disabled = false;
  worker ??= new Worker("worker.js", { type: "module" });
  worker.onmessage = ({ data }) => {
    if (data.id !== runs) return;
    at("stop").disabled = true;
    at("state").textContent = `exit code ${data.code}, ${(data.milliseconds / 1000).toFixed(2)} s`;
    show("errors", data.errors);
    show("output", data.output);
    show("page", data.files[PAGE] ? new TextDecoder().decode(data.files[PAGE]) : "");
  };
  worker.onerror = (event) => stop(`the command could not be started: ${event.message}`);
  worker.postMessage({ id: ++runs, args: ["tilewright", ...args], files });
}

for (const [name, { title }] of Object.entries(MODES)) {
  const tab = element("button", { type: "button", value: name }, title);
  tab.setAttribute("role", "tab");
  tab.addEventListener("click", () => choose(name));
  tabs.append(tab);
}
tabs.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step) return;
  const all = [...tabs.children];
  const next = all[(all.findIndex((tab) => tab.value === mode) + step + all.length) % all.length];
  choose(next.value);
  next.focus();
});
example.addEventListener("change", fill);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  start();
});
at("stop").addEventListener("click", () => stop("stopped"));

const [wantedMode, wantedExample] = location.hash.slice(1).split("/").map(decodeURIComponent);
await choose(wantedMode in MODES ? wantedMode : "schedule", wantedExample);
// `?run` starts the example, for links that show a result.
if (new URLSearchParams(location.search).has("run")) start();
