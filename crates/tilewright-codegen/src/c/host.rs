//! The host's side of a model on a device, as C: what compiles the kernels, keeps memory, and runs them.
//!
//! A model becomes four files: its kernels (`.cl`), its constants (`.bin`), a C header and this C code, which
//! calls OpenCL and nothing of Tilewright. `host.c` is what all models have. What is written for one
//! model is a function for each of its tensor functions ([`HostStep`]s become C), and one that calls them in the
//! order of the plan. Expressions of the host are written as those of kernels are.

use std::fmt::Write;
use std::sync::Arc;
use tilewright_ir::hash::HashMap;

use tilewright_ir::{Error, Result, Tensor, TensorFunc};

use super::Language;
use super::helpers::Helpers;
use super::steps::{self, Argument, HostStep, Image, Kernels, Memory, Over, kernels};
use super::threads::Extents;
use super::types;
use super::writer::{Arithmetic, KernelMemory, Writer};
use crate::emit::{assertions, check_prefix};
use crate::entry::{self, Call, Idle, Number, Planned};
use crate::header::{self, comment};
use crate::library::{self, Constants, c_string, cases_of_messages, check_results};

/// What all models have.
const FIXED: &str = include_str!("host.c");

/// The names that OpenCL C has and C lacks.
const NAMES: &str = "#define uchar cl_uchar
#define ushort cl_ushort
#define uint cl_uint
#define ulong cl_ulong
#define long cl_long
";

/// A model for a device.
pub struct Model<'a> {
    /// Prefix of the functions that the header declares, a C identifier.
    pub name: &'a str,
    /// What the names of the files begin with, to which `.cl`, `.bin`, `.h` and `.c` are added.
    pub stem: &'a str,
    /// The device that it is made for, for people.
    pub device: &'a str,
    /// What arithmetic that has.
    pub arithmetic: Arithmetic,
    /// The steps.
    pub plan: &'a Planned,
    /// The lowered functions that they call.
    pub funcs: &'a [(Arc<str>, &'a TensorFunc)],
}

/// The content of its files.
pub struct Files {
    /// The text of all kernels.
    pub kernels: String,
    /// The C code.
    pub code: String,
    /// The C header.
    pub header: String,
    /// Constants, one behind the other.
    pub constants: Vec<u8>,
}

/// What the functions of a model use of its memory, and where that of each begins.
#[derive(Default)]
struct Tables<'a> {
    /// Kernels before those of each function.
    kernels: Vec<usize>,
    kernel_names: Vec<&'a str>,
    /// Images, over all functions.
    images: Vec<&'a Image>,
    /// Constants of functions, over all of them.
    constants: Vec<&'a Tensor>,
    /// Bytes of the function that takes the most while it runs.
    scratch: usize,
    /// For each function, what each of its memory is.
    memory: Vec<Vec<Own>>,
}

/// Memory as a function of the host finds it.
#[derive(Clone, Copy)]
enum Own {
    Argument(usize),
    /// From a byte of the scratch memory on.
    Scratch(usize),
    Image(usize),
    Constant(usize),
}

/// The text of the kernels of a program.
///
/// # Errors
/// Those of [`kernels`].
pub fn kernel_text(
    funcs: &[(Arc<str>, &TensorFunc)],
    arithmetic: Arithmetic,
    language: Language,
) -> Result<String> {
    let made = funcs.iter().map(|(name, f)| kernels(name, f, arithmetic));
    let made = made.collect::<Result<Vec<_>>>()?;
    Ok(steps::program(funcs.iter().map(|(name, _)| &**name).zip(&made), language))
}

impl Model<'_> {
    /// Makes the files.
    ///
    /// # Errors
    /// Those of [`kernels`], [`Error::Input`] if the name is not a C identifier, and
    /// [`Error::Unsupported`] for more kernel calls than results can tell apart.
    pub fn files(&self) -> Result<Files> {
        check_prefix(self.name)?;
        let made = self.funcs.iter().map(|(name, f)| kernels(name, f, self.arithmetic));
        let made = made.collect::<Result<Vec<_>>>()?;
        let tables = Tables::collect(&made);
        let program = library::Program { plan: self.plan, funcs: self.funcs };
        let constants = Constants::new([program], tables.constants.iter().copied());
        let named = self.funcs.iter().map(|(name, _)| &**name).zip(&made);
        let kernels = steps::program(named, Language::OpenCl);
        Ok(Files {
            kernels,
            code: self.code(&made, &tables, &constants)?,
            header: header::device(self.plan, self.name, self.stem)?,
            constants: constants.bytes(),
        })
    }

    /// The C code.
    fn code(
        &self,
        made: &[Kernels],
        tables: &Tables<'_>,
        constants: &Constants<'_>,
    ) -> Result<String> {
        let (name, upper) = (self.name, self.name.to_ascii_uppercase());
        // Of constants that begin at one place, all but the last are empty.
        let numbers = constants.all.iter().enumerate().map(|(k, (at, _))| (*at, k));
        let numbers: HashMap<usize, usize> = numbers.collect();
        let number = |at: &usize| numbers.get(at).copied().unwrap_or(0);
        let of_plan: Vec<usize> = constants.of.iter().flatten().map(number).collect();
        let of_functions: Vec<usize> = constants.others.iter().map(number).collect();

        let mut helpers = Helpers::default();
        let shapes = self.shape_function(&mut helpers)?;
        let mut calls = String::new();
        for (k, kernels) in made.iter().enumerate() {
            calls += &self.function(k, kernels, tables, &of_functions, &mut helpers)?;
        }
        let (steps, failures) = self.enqueue(made, &of_plan)?;
        let mut messages = cases_of_messages(self.plan, self.funcs, 0);
        let _ = write!(
            messages,
            "    case {upper}_NO_FILES: return {};\n    case CL_BUILD_PROGRAM_FAILURE: return {};\n",
            c_string("the files of the model are not in the folder, or are others"),
            c_string("the driver does not compile the kernels"),
        );
        let shapes_given = if self.plan.shapes().is_some() { "shapes" } else { "NULL" };
        let shapes_taken =
            if self.plan.shapes().is_some() { "const int64_t *shapes, " } else { "" };
        Ok(format!(
            "/* Made by Tilewright: what runs `{stem}.cl`, whose kernels are for devices such as
   {device}. */

#include \"{include}.h\"

typedef struct {name}_program program;
typedef struct {{
    cl_mem memory;
    size_t bytes;
}} room;
/* Memory from a byte on, or a number. */
typedef struct {{
    cl_mem memory;
    size_t at;
    int64_t number;
}} argument;

{tables}
struct {name}_program {{
    cl_context context;
    cl_device_id device;
    cl_program built;
    char *log;
    cl_kernel kernels[KERNELS + 1];
    cl_mem constants[CONSTANTS + 1], images[IMAGES + 1], failures[FAILURES + 1], scratch;
    room arena, inputs[INPUTS + 1], outputs[OUTPUTS + 1];
}};

{sizes}static int enqueue(program *p, cl_command_queue queue, const int64_t *shapes, const cl_mem *inputs,
                   const cl_mem *outputs);

{FIXED}
{NAMES}
{helpers}{shapes}{calls}static int enqueue(program *p, cl_command_queue queue, const int64_t *shapes, const cl_mem *inputs,
                   const cl_mem *outputs) {{
    (void)shapes;
    (void)inputs;
    (void)outputs;
{steps}    return 0;
}}

int {name}_open(cl_context context, cl_device_id device, const char *folder, {name}_program **to) {{
    program *p = *to = calloc(1, sizeof *p);
    if (p == NULL) return CL_OUT_OF_HOST_MEMORY;
    p->context = context;
    p->device = device;
    clRetainContext(context);
    return open_all(p, folder);
}}

const char *{name}_log(const {name}_program *p) {{ return p == NULL ? NULL : p->log; }}

void {name}_close({name}_program *p) {{
    if (p != NULL) close_all(p);
}}

int {name}_enqueue({name}_program *p, cl_command_queue queue, {shapes_taken}const cl_mem *inputs,
    const cl_mem *outputs) {{
    return enqueue(p, queue, {shapes_given}, inputs, outputs);
}}

int {name}_finish({name}_program *p, cl_command_queue queue) {{ return finish(p, queue); }}

int {name}_run({name}_program *p, cl_command_queue queue, {shapes_taken}const void *const *inputs,
    void *const *outputs) {{
    return run(p, queue, {shapes_given}, inputs, outputs);
}}

const char *{name}_message(int result) {{
    switch (result) {{
{messages}    default: return NULL;
    }}
}}
",
            stem = comment(self.stem),
            include = self.stem,
            device = comment(self.device),
            tables = self.tables(tables, constants, &failures),
            sizes = self.port_bytes(),
            helpers = helpers.text(),
        ))
    }

    /// What the fixed code reads.
    fn tables(&self, tables: &Tables<'_>, constants: &Constants<'_>, failures: &[usize]) -> String {
        let (inputs, outputs) = self.plan.ports();
        let names: String =
            tables.kernel_names.iter().map(|n| format!("{}, ", c_string(n))).collect();
        let blocks = constants.all.iter().map(|(at, bytes)| format!("{{{at}, {}}}, ", bytes.len()));
        let images = tables.images.iter().map(|image| {
            format!("{{{}, {}, {}}}, ", image.rows, image.columns, i32::from(image.half))
        });
        let bases = failures.iter().map(|base| format!("{base}, "));
        format!(
            "enum {{
    NO_FILES = {upper}_NO_FILES,
    INPUTS = {inputs},
    OUTPUTS = {outputs},
    KERNELS = {kernels},
    CONSTANTS = {constant_count},
    IMAGES = {image_count},
    FAILURES = {failure_count}
}};
static const size_t CONSTANT_BYTES = {total}u, SCRATCH_BYTES = {scratch}u;
static const char KERNEL_FILE[] = {kernel_file}, CONSTANT_FILE[] = {constant_file};
static const char *const kernel_names[] = {{{names}NULL}};
static const struct {{ size_t at, bytes; }} constants[] = {{{blocks}{{0, 0}}}};
static const struct {{ size_t rows, columns; int is_half; }} images[] = {{{images}{{0, 0, 0}}}};
/* What the results of the steps begin with that may fail. */
static const int failure_bases[] = {{{bases}0}};
",
            upper = self.name.to_ascii_uppercase(),
            inputs = inputs.len(),
            outputs = outputs.len(),
            kernels = tables.kernel_names.len(),
            constant_count = constants.all.len(),
            image_count = tables.images.len(),
            failure_count = failures.len(),
            total = constants.bytes().len(),
            scratch = tables.scratch,
            kernel_file = c_string(&format!("{}.cl", self.stem)),
            constant_file = c_string(&format!("{}.bin", self.stem)),
            blocks = blocks.collect::<String>(),
            images = images.collect::<String>(),
            bases = bases.collect::<String>(),
        )
    }

    /// The functions that say how many bytes inputs and outputs have.
    fn port_bytes(&self) -> String {
        let (inputs, outputs) = self.plan.ports();
        let shapes = self.plan.shapes();
        let mut text = String::new();
        for (what, ports, places) in [
            ("input", &inputs, shapes.map(|s| &s.inputs)),
            ("output", &outputs, shapes.map(|s| &s.outputs)),
        ] {
            let numbers: String = match places {
                Some(places) => places.iter().map(|at| format!("{}, ", at.bytes)).collect(),
                None => ports
                    .iter()
                    .map(|port| {
                        let cells = tilewright_ir::dim::known(&port.shape);
                        let cells: usize = cells.into_iter().flatten().product();
                        format!("{}, ", cells * port.dtype.bytes())
                    })
                    .collect(),
            };
            let value = if places.is_some() { "(size_t)shapes[numbers[k]]" } else { "numbers[k]" };
            let _ = write!(
                text,
                "static size_t {what}_bytes(const int64_t *shapes, int k) {{
    static const size_t numbers[] = {{{numbers}0}};
    (void)shapes;
    return {value};
}}

"
            );
        }
        text
    }

    /// What computes how large everything is, where sizes are open.
    fn shape_function(&self, helpers: &mut Helpers) -> Result<String> {
        let Some(shapes) = self.plan.shapes() else { return Ok(String::new()) };
        let mut w = Writer::new(self.arithmetic, assertions(&shapes.func));
        w.is_host = true;
        w.ranges.bind_sizes(&shapes.func);
        for (buffer, name) in shapes.func.buffers().zip(["sizes", "heap"]) {
            let place = KernelMemory {
                name: name.to_owned(),
                space: "",
                dtype: buffer.dtype(),
                image: false,
            };
            w.places.insert(buffer.data.clone(), place);
        }
        w.stmt(&shapes.func.body)?;
        helpers.extend(&w.helpers);
        let name = self.name;
        let base = self.plan.called().len() * entry::STEP;
        Ok(format!(
            "static int compute_shapes(const long *sizes, long *heap) {{
    (void)sizes;
{}    return 0;
}}

int {name}_shapes(const int64_t *sizes, int64_t *shapes) {{
    int result = compute_shapes((const long *)sizes, (long *)shapes);
    return result == 0 ? 0 : result + {base};
}}

",
            w.out
        ))
    }

    /// The function that runs the kernels of one tensor function.
    fn function(
        &self,
        number: usize,
        kernels: &Kernels,
        tables: &Tables<'_>,
        constants: &[usize],
        helpers: &mut Helpers,
    ) -> Result<String> {
        let (name, f) = &self.funcs[number];
        let mut w = Writer::new(self.arithmetic, Vec::new());
        w.is_host = true;
        w.ranges.bind_sizes(f);
        for (var, at) in &kernels.scalars {
            if !var.dtype().is_int() {
                let text = format!("`{}` of `{name}` is no integer", var.name());
                return Err(Error::unsupported(text));
            }
            let (ty, given) = (types::value(var.dtype())?, w.name(var.name()));
            w.line(format_args!("const {ty} {given} = ({ty})args[{at}].number;"));
            w.line(format_args!("(void){given};"));
            w.vars.insert(var.clone(), given);
        }
        let memory = &tables.memory[number];
        let images = |w: &mut Writer, before: bool| {
            for (own, m) in memory.iter().zip(&kernels.memory) {
                let (Own::Image(image), Memory::Image(what)) = (own, m) else { continue };
                let wanted = if before { what.reads } else { what.writes };
                if let (true, Some(param)) = (wanted, what.param) {
                    w.line(format_args!(
                        "TRY(copy_image(p, queue, {image}, args[{param}], {}));",
                        i32::from(before)
                    ));
                }
            }
        };
        images(&mut w, true);
        let context = Context { kernels, first: tables.kernels[number], memory, constants };
        context.steps(&mut w, &kernels.steps)?;
        images(&mut w, false);
        helpers.extend(&w.helpers);
        Ok(format!(
            "/* {}: */
static int call_{number}(program *p, cl_command_queue queue, cl_mem failure, const argument *args) {{
    (void)p;
    (void)queue;
    (void)failure;
    (void)args;
{}    return 0;
}}

",
            comment(name),
            w.out
        ))
    }

    /// The steps of the plan, and what the results begin with of each that may fail.
    fn enqueue(&self, made: &[Kernels], constants: &[usize]) -> Result<(String, Vec<usize>)> {
        let mut out = String::new();
        let mut failures = Vec::new();
        let steps = self.plan.steps()?;
        check_results((steps.len() + 1) * entry::STEP)?;
        let arena = match self.plan {
            Planned::Fixed(plan) => plan.arena_bytes.to_string(),
            Planned::Open(_, shapes) => format!("(size_t)shapes[{}]", shapes.arena_bytes),
        };
        let _ = writeln!(out, "    TRY(grow(p, &p->arena, {arena}));");
        for (n, Call { func, args, idle, .. }) in steps.iter().enumerate() {
            let head = match idle {
                Idle::Never => String::new(),
                Idle::Always => continue,
                Idle::Heap(at) => format!("if (shapes[{at}] == 0) "),
            };
            let number = self.funcs.iter().position(|(name, _)| name == *func);
            let number = number.ok_or_else(|| {
                Error::internal(format!("a plan calls `{func}`, which is not there"))
            })?;
            let asserts = made[number]
                .kernels
                .iter()
                .any(|k| k.arguments.iter().any(|argument| matches!(argument, Argument::Failure)));
            let failure =
                if asserts { format!("p->failures[{}]", failures.len()) } else { "NULL".into() };
            if asserts {
                failures.push(n * entry::STEP);
            }
            let args: String =
                args.iter().map(|a| argument(a, constants) + ",\n            ").collect();
            let _ = write!(
                out,
                "    {head}{{
        const argument args[] = {{
            {args}{{NULL, 0, 0}}}};
        TRY(call_{number}(p, queue, {failure}, args));
    }}
"
            );
        }
        Ok((out, failures))
    }
}

/// An argument of a step.
fn argument(argument: &entry::Argument, constants: &[usize]) -> String {
    match argument {
        entry::Argument::Pointer("constants", k, at) => {
            format!("{{p->constants[{}], {}, 0}}", constants[*k], number(at))
        }
        entry::Argument::Pointer(table, k, at) => format!("{{{table}[{k}], {}, 0}}", number(at)),
        entry::Argument::Arena(at) => format!("{{p->arena.memory, {}, 0}}", number(at)),
        entry::Argument::Number(Number::Known(n)) => format!("{{NULL, 0, {n}}}"),
        entry::Argument::Number(Number::Heap(at)) => format!("{{NULL, 0, shapes[{at}]}}"),
    }
}

/// A byte.
fn number(number: &Number) -> String {
    match number {
        Number::Known(n) => n.to_string(),
        Number::Heap(at) => format!("(size_t)shapes[{at}]"),
    }
}

impl<'a> Tables<'a> {
    fn collect(made: &'a [Kernels]) -> Tables<'a> {
        let mut tables = Tables::default();
        for kernels in made {
            tables.kernels.push(tables.kernel_names.len());
            tables.kernel_names.extend(kernels.kernels.iter().map(|k| &*k.name));
            let mut scratch = 0usize;
            let mut own = Vec::new();
            for memory in &kernels.memory {
                own.push(match memory {
                    Memory::Param(k) => Own::Argument(*k),
                    Memory::Scratch(bytes) => {
                        let at = scratch;
                        scratch = scratch.saturating_add(*bytes).next_multiple_of(64);
                        Own::Scratch(at)
                    }
                    Memory::Image(image) => {
                        tables.images.push(image);
                        Own::Image(tables.images.len() - 1)
                    }
                    Memory::Constant(tensor) => {
                        tables.constants.push(tensor);
                        Own::Constant(tables.constants.len() - 1)
                    }
                });
            }
            tables.memory.push(own);
            tables.scratch = tables.scratch.max(scratch);
        }
        tables
    }
}

/// A function whose steps are written.
struct Context<'a> {
    kernels: &'a Kernels,
    /// The number of its first kernel.
    first: usize,
    memory: &'a [Own],
    /// The numbers of the constants of functions.
    constants: &'a [usize],
}

impl Context<'_> {
    fn steps(&self, w: &mut Writer, steps: &[HostStep]) -> Result<()> {
        steps.iter().try_for_each(|step| self.step(w, step))
    }

    fn step(&self, w: &mut Writer, step: &HostStep) -> Result<()> {
        match step {
            HostStep::Launch(kernel) => self.launch(w, *kernel),
            HostStep::Loop(var, range, body) => {
                w.ranges.bind_loop(var, range);
                let (ty, name) = (types::value(var.dtype())?, w.name(var.name()));
                let (min, extent) = (w.expr(&range.min)?, w.expr(&range.extent)?);
                w.vars.insert(var.clone(), name.clone());
                let head =
                    format!("for ({ty} {name} = {min}; {name} < {min} + {extent}; ++{name})");
                w.braced(head, |w| self.steps(w, body))
            }
            HostStep::If(cond, then, otherwise) => {
                let c = w.expr(cond)?;
                w.braced(format_args!("if ({c})"), |w| self.steps(w, then))?;
                if otherwise.is_empty() {
                    return Ok(());
                }
                w.braced("else", |w| self.steps(w, otherwise))
            }
            HostStep::Let(var, value, body) => {
                w.define(var, value)?;
                self.steps(w, body)
            }
        }
    }

    fn launch(&self, w: &mut Writer, number: usize) -> Result<()> {
        let kernel = &self.kernels.kernels[number];
        w.braced("", |w| {
            w.line(format_args!("cl_kernel kernel = p->kernels[{}];", self.first + number));
            let mut at = 0;
            for argument in &kernel.arguments {
                match argument {
                    Argument::Memory(k) => {
                        let (memory, byte) = match self.memory[*k] {
                            Own::Image(image) => {
                                w.line(format_args!(
                                    "TRY(set_object(kernel, {at}, p->images[{image}]));"
                                ));
                                at += 1;
                                continue;
                            }
                            Own::Argument(k) => {
                                (format!("args[{k}].memory"), format!("args[{k}].at"))
                            }
                            Own::Scratch(byte) => ("p->scratch".to_owned(), byte.to_string()),
                            Own::Constant(k) => {
                                (format!("p->constants[{}]", self.constants[k]), "0".to_owned())
                            }
                        };
                        w.line(format_args!("TRY(set_memory(kernel, {at}, {memory}, {byte}));"));
                        at += 2;
                    }
                    Argument::Scalar(var) => {
                        let name = w.vars.get(var).cloned().ok_or_else(|| {
                            Error::internal(format!("`{}` has no value on the host", var.name()))
                        })?;
                        w.line(format_args!(
                            "TRY(clSetKernelArg(kernel, {at}, sizeof {name}, &{name}));"
                        ));
                        at += 1;
                    }
                    Argument::Failure => {
                        w.line(format_args!("TRY(set_object(kernel, {at}, failure));"));
                        at += 1;
                    }
                }
            }
            let (items, group) = match &kernel.over {
                Over::One => (["1", "1", "1"].map(str::to_owned), None),
                Over::Items(extent) => ([w.expr(extent)?, "1".into(), "1".into()], None),
                Over::Groups(Extents { groups, threads }) => {
                    let mut items = ["1", "1", "1"].map(str::to_owned);
                    for (item, groups) in items.iter_mut().zip(groups) {
                        if let Some(groups) = groups {
                            *item = w.expr(groups)?;
                        }
                    }
                    (items, Some(threads.map(|n| n.max(1).to_string()).join(", ")))
                }
            };
            w.line(format_args!("const int64_t items[3] = {{{}}};", items.join(", ")));
            let group = match group {
                Some(threads) => {
                    w.line(format_args!("const size_t group[3] = {{{threads}}};"));
                    "group"
                }
                None => "NULL",
            };
            w.line(format_args!("TRY(launch(queue, kernel, items, {group}));"));
            Ok(())
        })
    }
}
