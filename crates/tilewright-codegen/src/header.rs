//! C headers for compiled plans.
//!
//! Two kinds: for a shared library, which holds its constants and allocates what it needs, and for
//! an object file with the bare function of [`crate::entry`], whose caller provides both. Where sizes
//! are open, a function comes before the one that runs: it says how large everything is. Where data
//! decide how large outputs are, a run of a library gives these, and their extents are asked for.

use std::fmt::Write;

use tilewright_ir::dim::SizeRange;
use tilewright_ir::{DType, Dim, Error, Result, TypeKind, Var, dim};
use tilewright_runtime::{MemoryPlan, OpenPort, Stored};

use crate::emit::check_prefix;
use crate::entry::Planned;
use crate::shape_func::{PortSizes, ShapeFunc};

/// A program for some sizes, beside the one for all.
pub struct Version {
    /// The extents of inputs that it is for, by their positions among the numbers of the program for
    /// all sizes.
    pub(crate) extents: Vec<(usize, usize)>,
    /// Where among these numbers the sizes lie that it leaves open.
    pub(crate) sizes: Vec<usize>,
    /// How many numbers of its own it has.
    count: usize,
    /// The extents, for people.
    what: String,
}

impl Version {
    /// The version of a plan for all sizes that another one is.
    ///
    /// # Errors
    /// [`Error::Input`] if inputs or outputs are others, or nothing sets the version apart;
    /// [`Error::Unsupported`] if a size that it leaves open, or one of the plan for all sizes, is no extent of an input.
    pub fn new(plan: &Planned, version: &Planned) -> Result<Version> {
        let ((inputs, outputs), (own, own_outputs)) = (plan.ports(), version.ports());
        let same = same_kinds(&inputs, &own) && same_kinds(&outputs, &own_outputs);
        let Some(shapes) = plan.shapes().filter(|_| same) else {
            return Err(Error::input("a version has other inputs or outputs than the model"));
        };
        if let Planned::Open(plan, _) = plan {
            plan.check_versions()?;
        }
        let (mut extents, mut what, mut open) = (Vec::new(), Vec::new(), Vec::new());
        for ((all, own), first) in inputs.iter().zip(&own).zip(&shapes.inputs) {
            for (k, (all, own)) in all.shape.iter().zip(&own.shape).enumerate() {
                let at = first.extents + k;
                match own.known() {
                    Some(extent) if all.known().is_none() => {
                        extents.push((at, extent));
                        let text = format!("{all} = {extent}");
                        if !what.contains(&text) {
                            what.push(text);
                        }
                    }
                    Some(_) => {}
                    None => open.push((*own, at)),
                }
            }
        }
        if extents.is_empty() {
            return Err(Error::input("a version is for all sizes, as the model itself"));
        }
        let sizes = match version {
            Planned::Fixed(_) => Vec::new(),
            Planned::Open(plan, _) => {
                plan.sizes().iter().map(|v| axis_of_size(v, &open)).collect::<Result<_>>()?
            }
        };
        let count = version.shapes().map_or(0, |own| own.count);
        Ok(Version { extents, sizes, count, what: what.join(", ") })
    }
}

/// Whether ports have the same names, element types, ranks and layouts.
fn same_kinds(a: &[OpenPort], b: &[OpenPort]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| {
            (&a.name, a.dtype, a.shape.len()) == (&b.name, b.dtype, b.shape.len())
                && a.stored == b.stored
        })
}

fn axis_of_size(v: &Var, open: &[(Dim, usize)]) -> Result<usize> {
    let found = open.iter().find(|(dim, _)| *dim == Dim::open(v)).map(|(_, at)| *at);
    found.ok_or_else(|| {
        Error::unsupported(format!("the size `{}` of a version is no extent of an input", v.name()))
    })
}

/// The header of a shared library under the symbol prefix `name`, see [`crate::library`]; with control
/// flow a run allocates what it needs on the way.
///
/// # Errors
/// [`Error::Input`] if the name is not a C identifier.
pub fn library(
    plan: &Planned,
    versions: &[Version],
    has_control: bool,
    name: &str,
) -> Result<String> {
    let upper = name.to_ascii_uppercase();
    let mut out = start(plan, versions, name)?;
    outputs(&mut out, &upper, plan);
    let arena = if has_control {
        "`arena` is not used, and may be NULL: branches and loops allocate what they need. Any number
   of runs may happen at the same time."
            .to_owned()
    } else {
        format!(
            "`arena` is {} of memory at a 64-byte boundary for intermediate results, or
   NULL: then it is allocated for this run. Runs with different arenas may happen at the same time.",
            arena(plan, &upper)
        )
    };
    let (shapes, heap) = sized(plan, name, "int", "");
    let filled = filled(plan, name) + &shared(plan, versions);
    let _ = write!(
        out,
        "/* Result where there was no memory for intermediate results. */
#define {upper}_NO_MEMORY (-1)

{types}
{shapes}/* Runs the model on `inputs`, in the order above, and writes `outputs`. All are dense and
   row-major, aligned to their elements, and do not overlap.{filled}

   {arena}

   Returns 0, {upper}_NO_MEMORY, or a positive number where an assertion of the model failed. */
int {name}_run({heap}const void *const *inputs, void *const *outputs, void *arena);

",
        types = types(name),
    );
    out += &common_functions(name);
    end(&mut out, name);
    Ok(out)
}

/// The declaration of the function that fills `shapes`, with a result of this type and what comes before
/// its sizes, and that argument of others, where there are open sizes.
fn sized(plan: &Planned, name: &str, result: &str, before: &str) -> (String, &'static str) {
    let upper = name.to_ascii_uppercase();
    match plan.shapes() {
        Some(_) => (
            format!(
                "/* Fills `shapes`, {upper}_SHAPES numbers, for these sizes: how large everything is.
   Returns 0, or a positive number where something does not fit. */
{result} {name}_shapes({before}const int64_t *sizes, int64_t *shapes);

"
            ),
            "const int64_t *shapes, ",
        ),
        None => (String::new(), ""),
    }
}

/// The header of a shared library under the symbol prefix `name` for a model with control flow whose
/// data decide how large outputs are; `plan` has its inputs.
///
/// # Errors
/// [`Error::Input`] if the name is not a C identifier.
pub fn results(plan: &Planned, decided: &[OpenPort], name: &str) -> Result<String> {
    let upper = name.to_ascii_uppercase();
    let mut out = start(plan, &[], name)?;
    let _ = write!(
        out,
        "/* Outputs, with extents that are known after a run. `shapes` says nothing of them. */
#define {upper}_OUTPUTS {}
",
        decided.len()
    );
    for (k, port) in decided.iter().enumerate() {
        let _ = write!(
            out,
            "
/* output {k}: {} */
#define {upper}_OUTPUT_{k}_RANK {}
#define {upper}_OUTPUT_{k}_ELEMENT_BYTES {}
",
            describe(port),
            port.shape.len(),
            port.dtype.bytes()
        );
    }
    let (shapes, heap) = sized(plan, name, "int", "");
    let filled = filled(plan, name);
    let _ = write!(
        out,
        "
/* Result where there was no memory. */
#define {upper}_NO_MEMORY (-1)

{types}
/* The outputs of a run. */
typedef struct {name}_results {name}_results;

{shapes}/* Runs the model on `inputs`, in the order above. All are dense and row-major, and aligned to
   their elements.{filled}

   Returns 0 and sets `*results`, which the caller gives to {name}_free; or {upper}_NO_MEMORY, or a
   positive number where an assertion of the model failed, and sets it to NULL. Any number of runs
   may happen at the same time. */
int {name}_run({heap}const void *const *inputs, {name}_results **results);

/* The elements of an output, dense and row-major at a 64-byte boundary, until {name}_free. Where
   `extents` is not NULL, `*extents` are its extents, as long as the elements are there; an extent
   may be 0. */
const void *{name}_output(const {name}_results *results, int output, const int64_t **extents);

/* Frees the outputs of a run; NULL is allowed. */
void {name}_free({name}_results *results);

",
        types = types(name),
    );
    out += &common_functions(name);
    end(&mut out, name);
    Ok(out)
}

/// What is declared in every library: messages, and threads.
fn common_functions(name: &str) -> String {
    format!(
        "/* What a positive result says; NULL for other numbers. */
const char *{name}_message(int result);

/* Makes later runs share their parallel loops among threads: `parallel_for` calls `task` for
   disjoint parts of begin..end, from as many threads as it likes, and returns when all are done.
   It finds `user` in the context. NULL: run on the calling thread, as at the start. Not to be
   called while a run is going on. */
void {name}_set_parallel({name}_parallel_for parallel_for, void *user);
"
    )
}

/// The header of an object file with [`crate::entry::program`].
///
/// # Errors
/// As [`library`].
pub fn object(plan: &Planned, name: &str) -> Result<String> {
    let upper = name.to_ascii_uppercase();
    let mut out = start(plan, &[], name)?;
    outputs(&mut out, &upper, plan);
    let _ = writeln!(out, "/* Constants, each at a 64-byte boundary. */");
    let _ = writeln!(out, "#define {upper}_CONSTANTS {}", plan.constants().len());
    for (k, c) in plan.constants().iter().enumerate() {
        let _ = writeln!(out, "#define {upper}_CONSTANT_{k}_BYTES {}", c.bytes().len());
    }
    let arena = arena(plan, &upper);
    let context = format!("const {name}_context *context, ");
    let (shapes, heap) = sized(plan, name, "int32_t", &context);
    let filled = filled(plan, name) + &shared(plan, &[]);
    let _ = write!(
        out,
        "
{types}
{shapes}/* Runs the model on `inputs`, in the order above, and writes `outputs`. All are dense and
   row-major, aligned to their elements, and do not overlap.{filled} `arena` is {arena} of
   memory at a 64-byte boundary. `context` may be NULL: then everything runs on the calling thread.
   Returns 0, or a positive number where an assertion of the model failed. */
int32_t {name}_run(const {name}_context *context, {heap}const void *const *inputs,
                   void *const *outputs, const void *const *constants, void *arena);
",
        types = types(name),
    );
    end(&mut out, name);
    Ok(out)
}

/// The header of a model for a device of OpenCL, see [`crate::c::host`]; its files are called `stem`.
///
/// # Errors
/// As [`library`].
pub fn device(plan: &Planned, name: &str, stem: &str) -> Result<String> {
    let upper = name.to_ascii_uppercase();
    let mut out = start(plan, &[], name)?;
    outputs(&mut out, &upper, plan);
    let (shapes, heap) = sized(plan, name, "int", "");
    let filled = filled(plan, name);
    let stem = comment(stem);
    let _ = write!(
        out,
        "#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#ifdef __APPLE__
#include <OpenCL/opencl.h>
#else
#include <CL/cl.h>
#endif

/* Result where `{stem}.cl` or `{stem}.bin` is not in the folder, or is another one. Other results below
   zero are those of OpenCL. */
#define {upper}_NO_FILES (-20000)

/* The model on a device: its kernels, constants, and memory for what it computes. */
typedef struct {name}_program {name}_program;

/* Opens the model on a device of a context: compiles `{stem}.cl` and copies `{stem}.bin`, which are in
   `folder`. `*program` is given to {name}_close in any case; it is NULL where there was no memory. */
int {name}_open(cl_context context, cl_device_id device, const char *folder, {name}_program **program);

/* What the compiler of the driver says where it fails; else NULL. */
const char *{name}_log(const {name}_program *program);

void {name}_close({name}_program *program);

{shapes}/* Runs the model on `inputs` in memory of the host, in the order above, and writes `outputs`. All are
   dense and row-major, and do not overlap.{filled} `queue` is of the
   context and runs in order.

   Returns 0, a number below zero, or a positive number where an assertion of the model failed. A
   program is used by one thread at a time; open several to run at the same time. */
int {name}_run({name}_program *program, cl_command_queue queue, {heap}const void *const *inputs,
    void *const *outputs);

/* The same on memory of the device, without waiting: {name}_finish waits, and gives the result. */
int {name}_enqueue({name}_program *program, cl_command_queue queue, {heap}const cl_mem *inputs,
    const cl_mem *outputs);
int {name}_finish({name}_program *program, cl_command_queue queue);

/* What a result says; NULL for other numbers. */
const char *{name}_message(int result);
"
    );
    end(&mut out, name);
    Ok(out)
}

/// How the header says the size of the arena.
fn arena(plan: &Planned, upper: &str) -> String {
    match plan.shapes() {
        Some(_) => format!("shapes[{upper}_SHAPES_ARENA_BYTES] bytes"),
        None => format!("{upper}_ARENA_BYTES"),
    }
}

/// Where the numbers come from that a run takes.
fn filled(plan: &Planned, name: &str) -> String {
    plan.shapes()
        .map(|_| format!(" `shapes` is what {name}_shapes has filled;\n   it may serve many runs."))
        .unwrap_or_default()
}

/// Which outputs may be inputs. Versions say nothing of theirs.
fn shared(plan: &Planned, versions: &[Version]) -> String {
    let all = if versions.is_empty() { plan.shared() } else { Vec::new() };
    let pairs: Vec<String> = all
        .iter()
        .map(|shared| format!("`outputs[{}]` may be `inputs[{}]`", shared.output, shared.input))
        .collect();
    if pairs.is_empty() {
        return String::new();
    }
    let pairs = pairs.join(",\n   ");
    format!(" But\n   {pairs}: then what stays the same there is not copied.")
}

/// The head of a header: sizes and inputs.
fn start(plan: &Planned, versions: &[Version], name: &str) -> Result<String> {
    check_prefix(name)?;
    let upper = name.to_ascii_uppercase();
    let mut out = format!(
        "/* Made by Tilewright. */
#ifndef {upper}_H
#define {upper}_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {{
#endif

"
    );
    if let Planned::Open(plan, shapes) = plan {
        sizes(&mut out, &upper, plan, shapes, versions);
    }
    let places = plan.shapes().map(|shapes| &shapes.inputs[..]);
    ports(&mut out, &upper, "INPUT", &plan.ports().0, places);
    Ok(out)
}

/// The outputs, and the memory for intermediate results.
fn outputs(out: &mut String, upper: &str, plan: &Planned) {
    let places = plan.shapes().map(|shapes| &shapes.outputs[..]);
    ports(out, upper, "OUTPUT", &plan.ports().1, places);
    match plan {
        Planned::Fixed(plan) => {
            let _ = writeln!(out, "/* Memory for intermediate results. */");
            let _ = writeln!(out, "#define {upper}_ARENA_BYTES {}\n", plan.arena_bytes);
        }
        Planned::Open(_, shapes) => {
            let _ = writeln!(out, "/* Where `shapes` holds bytes for intermediate results. */");
            let _ = writeln!(out, "#define {upper}_SHAPES_ARENA_BYTES {}\n", shapes.arena_bytes);
        }
    }
}

/// The inputs or outputs; `places` says where numbers of them lie.
fn ports(
    out: &mut String,
    upper: &str,
    what: &str,
    ports: &[OpenPort],
    places: Option<&[PortSizes]>,
) {
    let _ = writeln!(out, "#define {upper}_{what}S {}", ports.len());
    for (k, port) in ports.iter().enumerate() {
        let _ = writeln!(out, "\n/* {} {k}: {} */", what.to_ascii_lowercase(), describe(port));
        if let Some(stored) = &port.stored {
            *out += &storage(what, stored);
        }
        if let Some(shape) = dim::known(&port.shape) {
            let count: usize = shape.iter().product();
            let _ = writeln!(out, "#define {upper}_{what}_{k}_ELEMENTS {count}");
            let bytes = count * port.dtype.bytes();
            let _ = writeln!(out, "#define {upper}_{what}_{k}_BYTES {bytes}");
        }
        if let Some(at) = places.and_then(|places| places.get(k)) {
            let rank = port.shape.len();
            let _ = writeln!(out, "#define {upper}_{what}_{k}_RANK {rank}");
            let _ = writeln!(out, "#define {upper}_SHAPES_{what}_{k} {}", at.extents);
            let _ = writeln!(out, "#define {upper}_SHAPES_{what}_{k}_BYTES {}", at.bytes);
        }
    }
    out.push('\n');
}

/// The open sizes, and the array of what depends on them.
fn sizes(
    out: &mut String,
    upper: &str,
    plan: &MemoryPlan,
    shapes: &ShapeFunc,
    versions: &[Version],
) {
    let vars = plan.sizes();
    let _ = writeln!(
        out,
        "/* Sizes that are known when the model runs, by position. Each is at least 1 and at most 2^31 - 2^16. */"
    );
    let _ = writeln!(out, "#define {upper}_SIZES {}", vars.len());
    for (k, v) in vars.iter().enumerate() {
        let range = match v.range() {
            SizeRange::ALL => String::new(),
            range => format!(", {}", range.limits()),
        };
        let name = comment(v.name());
        let _ = writeln!(out, "#define {upper}_SIZE_{k} {k} /* `{name}`{range} */");
    }
    if !versions.is_empty() {
        *out +=
            "\n/* There are versions for some extents of the inputs, which run where they fit:\n";
        for version in versions {
            let _ = writeln!(out, "   {}", comment(&version.what));
        }
        *out += "   The bytes of intermediate results are those of the version. */\n";
    }
    let most = versions.iter().map(|v| v.count).max().unwrap_or(0);
    let _ = writeln!(
        out,
        "
/* What depends on them, as an array: how many numbers it has; below, for each input and output
   where its extents begin, and where its bytes are. */
#define {upper}_SHAPES {}
",
        shapes.count + most
    );
}

fn types(name: &str) -> String {
    let words = crate::emit::MAX_VALUES + 1;
    format!(
        "typedef struct {name}_context {name}_context;
typedef void (*{name}_task)(const {name}_context *context, void *closure, int64_t begin,
                            int64_t end);
typedef void (*{name}_parallel_for)(const {name}_context *context, {name}_task task, void *closure,
                                    int64_t begin, int64_t end);
struct {name}_context {{
    {name}_parallel_for parallel_for; /* may be NULL */
    void *user;
    int64_t *failure; /* NULL, or {words} words of which the first is 0: an assertion that fails
                         sets it, and puts the values of its message behind it */
}};
"
    )
}

fn end(out: &mut String, name: &str) {
    let upper = name.to_ascii_uppercase();
    let _ = write!(
        out,
        "
#ifdef __cplusplus
}}
#endif

#endif /* {upper}_H */
"
    );
}

/// Name, C type and shape, such as `` `image`: float [1][28][28] ``.
fn describe(port: &OpenPort) -> String {
    let shape: String = port.shape.iter().map(|d| format!("[{d}]")).collect();
    let shape = if shape.is_empty() { "(one element)".to_owned() } else { shape };
    format!("`{}`: {} {shape}", comment(&port.name), c_type(port.dtype))
}

/// How a tensor lies in an input or output that is not in the model's own layout.
fn storage(what: &str, stored: &Stored) -> String {
    let shape: String = stored.logical.iter().map(|d| format!("[{d}]")).collect();
    let padding = match (stored.is_padded(), stored.pad, what) {
        (false, ..) => String::new(),
        (true, Some(pad), "INPUT") => {
            format!("\n   All cells that no element has must hold {pad}: the code relies on it.")
        }
        (true, Some(pad), _) => format!("\n   Cells that no element has hold {pad}."),
        (true, None, _) => "\n   Cells that no element has hold anything.".to_owned(),
    };
    format!(
        "/* It stores a tensor of shape {shape}; an element has the cell\n   {stored}{padding} */\n"
    )
}

/// Text that neither ends a comment nor breaks its line.
pub(crate) fn comment(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.replace("*/", "* /").replace("/*", "/ *").replace("??/", "?? /")
}

fn c_type(dtype: DType) -> String {
    match (dtype.kind, dtype.bits) {
        (TypeKind::Bool, _) => "bool (a byte, 0 or 1)".to_owned(),
        (TypeKind::Int, bits) => format!("int{bits}_t"),
        (TypeKind::UInt, bits) => format!("uint{bits}_t"),
        (TypeKind::Float, 32) => "float".to_owned(),
        (TypeKind::Float, 64) => "double".to_owned(),
        _ => format!("{dtype} (the bits, as uint{}_t)", dtype.bits),
    }
}
