//! Libraries of models with control flow: the program over pieces as tables, and `executor.c`, which
//! runs them.
//!
//! There is one lowered form of control flow, [`program::Program`]. The executor of the runtime runs it in
//! this process; `executor.c` does the same where a library must need nothing but the C library. What is
//! written here is data: operations as a table of numbers ([`table`]), pieces and their inputs and outputs
//! ([`piece`]), and the functions that the header declares.
//!
//! A result beyond those of kernels says which operation failed, for the message.

mod piece;
mod table;

use tilewright_ir::{DType, Dim, Error, Result, Tensor, TypeKind};
use tilewright_runtime::MemoryPlan;
use tilewright_runtime::plan::program::{self, Block, What};

use super::given::{Control, Library};
use crate::entry::Planned;
use crate::shape_func::{PortSizes, ShapeFunc};
use table::{Messages, Table};

/// What values are, and what runs a program.
const EXECUTOR: &str = concat!(include_str!("values.c"), "\n", include_str!("executor.c"));

/// Inputs and outputs of a program, for [`Library::program`](super::Library::program). Outputs whose sizes data decide are not
/// among them.
///
/// # Errors
/// [`Error::Unsupported`] for outputs that are lists or optionals.
pub fn signature(program: &program::Program) -> Result<Planned> {
    if let Some(port) = program.signature.outputs.iter().find(|port| port.is_item()) {
        return Err(Error::unsupported(format!(
            "the output `{}` is a sequence or optional, and a shared library gives tensors",
            port.name
        ))
        .help("join its tensors in the model, or run it in this process or as a saved model"));
    }
    let outputs = if is_decided(program) { Vec::new() } else { program.signature.outputs.clone() };
    Planned::new(&MemoryPlan { outputs, ..program.signature.clone() })
}

/// Whether data decide how large an output is.
pub(crate) fn is_decided(program: &program::Program) -> bool {
    program.signature.check().is_err()
}

/// The constants that a program puts into registers, in order.
pub(super) fn constants(block: &Block) -> Vec<&Tensor> {
    let mut all = Vec::new();
    for operation in &block.operations {
        match &operation.what {
            What::Constant(t, _) => all.push(t),
            What::If { then, otherwise, .. } => {
                all.extend(constants(then));
                all.extend(constants(otherwise));
            }
            What::Loop { body, .. } => all.extend(constants(body)),
            _ => {}
        }
    }
    all
}

/// What the rest of the C file needs to know.
pub(super) struct Code {
    /// What comes before the functions of all libraries: values, the executor, and its tables.
    pub functions: String,
    /// `NAME_run`, and what comes with it.
    pub run: String,
    /// Messages of operations, in the order of their results.
    pub messages: Vec<String>,
}

/// The code of a library's program. The first of `bases` is that of the signature, the others are those
/// of the pieces, and the last is that of the operations; `places` says where the constants of
/// operations begin.
pub(super) fn code(
    library: &Library<'_>,
    control: &Control<'_>,
    bases: &[usize],
    places: &[usize],
) -> Result<Code> {
    let program = control.program;
    let mut messages = Messages::new(bases.last().copied().unwrap_or(0));
    let misfit = messages.result("a value has another type or shape than it is used as");
    let Table { numbers, body, registers } = Table::new(program, places, &mut messages)?;
    let wrong_output = messages.result("an output has another shape than the model says");
    let pieces = piece::table(library, control, &bases[1..])?;
    let shapes = library.program.plan.shapes();
    let inputs = piece::ports("inputs", &program.signature.inputs, shapes.map(|s| &s.inputs[..]));
    let of_outputs = shapes.filter(|_| !is_decided(program)).map(|s| &s.outputs[..]);
    let outputs = piece::ports("outputs", &program.signature.outputs, of_outputs);
    let name = library.name;
    let (slots, shape_count) = (program.sizes.len(), pieces.shapes);
    let functions = format!(
        "typedef {name}_context context_type;

{EXECUTOR}
static const int64_t code[] = {{{numbers}}};

{pieces}
{inputs}{outputs}static const int64_t sizes[] = {{{sizes}}};

static const control_program program = {{
    .code = code,
    .body = {body},
    .register_count = {registers},
    .slot_count = {slots},
    .shape_count = {shape_count},
    .input_count = {input_count},
    .output_count = {output_count},
    .inputs = inputs,
    .outputs = outputs,
    .sizes = sizes,
    .pieces = pieces,
    .constants = {name}_constants,
    .context = &context,
    .misfit = {misfit},
    .wrong_output = {wrong_output},
}};

",
        numbers = numbers.join(", "),
        pieces = pieces.text,
        sizes = input_sizes(&program.signature, shapes),
        input_count = program.signature.inputs.len(),
        output_count = program.signature.outputs.len(),
    );
    Ok(Code { functions, run: run(library, program), messages: messages.all })
}

/// The sizes that inputs have as extents: a list of slots, each with its place in the shapes.
fn input_sizes(signature: &MemoryPlan, shapes: Option<&ShapeFunc>) -> String {
    let ports: &[PortSizes] = shapes.map_or(&[], |s| &s.inputs);
    let mut pairs = Vec::new();
    for (slot, v) in signature.sizes().iter().enumerate() {
        let place = signature.inputs.iter().zip(ports).find_map(|(port, at)| {
            Some(at.extents + port.shape.iter().position(|d| *d == Dim::open(v))?)
        });
        pairs.extend(place.map(|place| format!(", {slot}, {place}")));
    }
    format!("{}{}", 2 * pairs.len(), pairs.concat())
}

/// The functions of the interface, but for those that all libraries have.
fn run(library: &Library<'_>, program: &program::Program) -> String {
    let name = library.name;
    let (parameter, given) = match library.program.plan.shapes() {
        None => ("", "NULL"),
        Some(_) => ("const int64_t *shapes, ", "shapes"),
    };
    if !is_decided(program) {
        return format!(
            "PUBLIC int {name}_run({parameter}const void *const *inputs, void *const *outputs, void *arena) {{
    run_state state;
    int result = start(&state, &program, {given}, inputs);
    if (result == 0) result = write_outputs(&state, outputs);
    finish(&state);
    (void)arena;
    return result;
}}
"
        );
    }
    let count = program.signature.outputs.len();
    format!(
        "struct {name}_results {{
    value *outputs[{count}];
}};

PUBLIC void {name}_free({name}_results *results) {{
    for (int k = 0; results != NULL && k < {count}; k++) drop(results->outputs[k]);
    free(results);
}}

PUBLIC int {name}_run({parameter}const void *const *inputs, {name}_results **results) {{
    run_state state;
    {name}_results *made = calloc(1, sizeof *made);
    int result = start(&state, &program, {given}, inputs);
    if (result == 0) result = made == NULL ? NO_MEMORY : keep_outputs(&state, made->outputs);
    finish(&state);
    if (result != 0) {{
        {name}_free(made);
        made = NULL;
    }}
    *results = made;
    return result;
}}

PUBLIC const void *{name}_output(const {name}_results *results, int output,
                                 const int64_t **extents) {{
    if (results == NULL || output < 0 || output >= {count}) return NULL;
    if (extents != NULL) *extents = results->outputs[output]->extents;
    return results->outputs[output]->data;
}}
"
    )
}

/// An element type as `values.c` has it: its number, kind and bytes.
fn element_type(dtype: DType) -> [String; 3] {
    let kind = match dtype.kind {
        TypeKind::Bool => "BOOL",
        // Integers of less than a byte are no numbers of iterations, and no sizes.
        TypeKind::Int | TypeKind::UInt if dtype.bits < 8 => "OTHER",
        TypeKind::Int => "INT",
        TypeKind::UInt => "UINT",
        _ => "OTHER",
    };
    [type_number(dtype).to_string(), kind.to_owned(), dtype.bytes().to_string()]
}

/// The number of an element type.
fn type_number(dtype: DType) -> usize {
    let kind = match dtype.kind {
        TypeKind::Bool => 0,
        TypeKind::Int => 1,
        TypeKind::UInt => 2,
        TypeKind::Float => 3,
        TypeKind::BFloat => 4,
        TypeKind::Handle => 5,
        TypeKind::Void => 6,
    };
    kind * 256 + usize::from(dtype.bits)
}
