//! Lowered tensor functions to textual LLVM IR.
//!
//! What a lowered function may contain: stores, loops (serial, parallel, unrolled, vectorised),
//! conditions, bindings, sequences, small allocations of constant size, views, assumptions,
//! assertions, calls; buffers of any rank with one physical axis. Values are scalars or vectors.
//!
//! # Calling convention
//!
//! The tensor function `f` becomes `int32_t SYMBOL(const context *ctx, const uint64_t *args)`,
//! where `SYMBOL` is [`symbol`]`(PREFIX, "f")`. `args` has one slot of eight bytes for each
//! parameter in order: a pointer to the first element of a tensor, or a scalar (integers extended
//! by their sign or by zeros, floats by their bits); then one for each of
//! [`TensorFunc::shape_vars`]. The
//! result is 0, or 1 plus the position in [`assertions`] of the assertion that failed. The
//! context begins with `void (*parallel_for)(const context *, void (*task)(const context *, void
//! *closure, int64_t begin, int64_t end), void *closure, int64_t begin, int64_t end)`, which may
//! be null, as may `ctx` itself: then everything runs on the calling thread. Then come a pointer
//! for the use of `parallel_for`, and `int64_t *failure`, which may be null as well: one word that
//! is zero before the call, and [`MAX_VALUES`] more. The first assertion that fails, on whatever
//! thread, puts its result into the first word and the values of its message behind it.
//!
//! Tensors are aligned to their elements, do not overlap (unless none of those that do is written),
//! and have as many elements behind their pointer as their shape says.
//!
//! Kernels are hidden symbols: code that is linked with them can call them, and two libraries with
//! the same kernel in one process do not meet.
//!
//! # Numbers
//!
//! Results are those of the interpreter up to this: a product and the sum that accumulates it may
//! round once instead of twice, `exp` and its like have the accuracy that the `math` module states,
//! and sums are reordered where an annotation of the loop allows it (see the `stmt` module). `NaN`,
//! infinities and subnormal numbers are respected throughout. `min` and `max` of `-0.0` and `0.0`
//! is either. Integer division by zero, which is an error in the interpreter, gives some value.
//!
//! # Files
//!
//! * `code`: text under construction; `types`, `machine`, `names`: what it is made from.
//! * `func`: one tensor function; `stmt`, `parallel`, `expr`, `call`, `memory`: its parts; `grain`: which parallel loops
//!   are worth it.
//! * `arith`, `half`, `math`: operators, 16-bit floats, elementary functions.
//! * `aliases`: which memory does not overlap; `runs`, `strided`, `transpose`: accesses of vectors.
//! * `dot`: dot products of integers.
//! * `template`, `family`: functions that differ in numbers alone are one that takes them.
//!
//! **Architecture invariant:** nothing here calls LLVM; text is all that leaves.

mod address;
mod aliases;
mod arith;
mod call;
mod code;
mod dot;
mod expr;
mod extremes;
mod family;
mod free_lanes;
mod func;
mod grain;
mod half;
mod machine;
mod math;
mod memory;
mod names;
mod parallel;
mod runs;
mod scalar;
mod stmt;
mod strided;
mod template;
mod transpose;
mod types;

use std::sync::Arc;

use tilewright_ir::hash::HashSet;
use tilewright_ir::{Error, Result, TensorFunc};
use tilewright_runtime::parallel as threads;
use tilewright_target::Target;

use code::{Piece, Shared, Texts};
use family::{Family, TextParts};
use machine::MachineFeatures;
use template::{Filling, Number};

pub(crate) use expr::shared_parts;
pub(crate) use func::MAX_MESSAGES;
pub use func::{ALIGNED, Assertion, MAX_VALUES, assertions};
pub(crate) use names::check_prefix;
pub use names::{PREFIX, symbol};
pub(crate) use parallel::captured;

/// The LLVM IR of a module with these functions, each under its name, with symbols under
/// [`PREFIX`].
///
/// # Errors
/// [`Error::Unsupported`] for what native code for this target cannot do (several physical axes,
/// thread axes, memory scopes, unknown calls, large local memory); [`Error::Malformed`] for a
/// function that is not lowered or breaks a rule of the IR. The error names the function and
/// carries the place of the statement.
pub fn module(funcs: &[(Arc<str>, &TensorFunc)], target: &Target) -> Result<String> {
    module_with_prefix(PREFIX, funcs, target)
}

/// Like [`module`], with symbols under a prefix of one's own, which is a C identifier.
///
/// # Errors
/// As [`module`], and [`Error::Input`] if the prefix is not a C identifier.
pub(crate) fn module_with_prefix(
    prefix: &str,
    funcs: &[(Arc<str>, &TensorFunc)],
    target: &Target,
) -> Result<String> {
    let written = Written::new(prefix, funcs, target)?;
    Ok(written.module(&written.families()))
}

/// The same functions in as many modules as can be compiled at a time: one for those that share code.
///
/// # Errors
/// As [`module`].
pub(crate) fn modules(funcs: &[(Arc<str>, &TensorFunc)], target: &Target) -> Result<Vec<String>> {
    let written = Written::new(PREFIX, funcs, target)?;
    let families = written.families();
    Ok(families.iter().map(|family| written.module(std::slice::from_ref(family))).collect())
}

/// The functions in modules of about [`PART`] bytes, with symbols under a prefix: those of one module can be compiled
/// while others are, and which they are does not depend on the machine that compiles.
///
/// # Errors
/// As [`module_with_prefix`].
pub(crate) fn parts_with_prefix(
    prefix: &str,
    funcs: &[(Arc<str>, &TensorFunc)],
    target: &Target,
) -> Result<Vec<String>> {
    let written = Written::new(prefix, funcs, target)?;
    let families = written.families();
    let mut parts = Vec::new();
    let (mut first, mut bytes) = (0, 0);
    for (k, family) in families.iter().enumerate() {
        bytes += written.bytes(family);
        if bytes >= PART || k + 1 == families.len() {
            parts.push(written.module(&families[first..=k]));
            (first, bytes) = (k + 1, 0);
        }
    }
    Ok(parts)
}

/// Bytes of text from which on functions are a module.
const PART: usize = 1 << 17;

/// Functions whose texts are written, before it is decided which share one.
struct Written {
    machine: Arc<MachineFeatures>,
    functions: Vec<Function>,
}

/// A tensor function as text.
struct Function {
    /// The exported function, which calls the others.
    symbol: String,
    exported: String,
    piece: Piece,
}

impl Written {
    fn new(prefix: &str, funcs: &[(Arc<str>, &TensorFunc)], target: &Target) -> Result<Written> {
        check_prefix(prefix)?;
        let machine = Arc::new(MachineFeatures::new(target));
        let symbols: Vec<String> = funcs.iter().map(|(name, _)| symbol(prefix, name)).collect();
        let mut seen = HashSet::default();
        if let Some(k) = symbols.iter().position(|symbol| !seen.insert(symbol)) {
            return Err(Error::input(format!("two functions are called `{}`", funcs[k].0)));
        }
        let functions = threads::map(funcs.len(), |k| {
            let ((name, func), symbol) = (&funcs[k], symbols[k].clone());
            let shared = Shared::new(machine.clone());
            let exported = target
                .check_memory(func)
                .and_then(|()| func::tensor_func(&shared, &symbol, func))
                .map_err(|e| e.context(format!("function `{name}`")).at(func.span))?;
            Ok(Function { symbol, exported, piece: shared.finish() })
        });
        Ok(Written { machine, functions: functions.into_iter().collect::<Result<_>>()? })
    }

    fn families(&self) -> Vec<Family> {
        let forms: Vec<(TextParts<'_>, &[Number])> = self
            .functions
            .iter()
            .map(|Function { piece, .. }| {
                ((&piece.functions[..], &piece.metadata[..]), &piece.numbers[..])
            })
            .collect();
        family::group(&forms)
    }

    /// Bytes of the text that the functions of a family share.
    fn bytes(&self, family: &Family) -> usize {
        let first = family.members.first().map(|(first, _)| &self.functions[*first].piece);
        first.map_or(0, |piece| piece.functions.iter().map(|text| text.len()).sum())
    }

    /// A module with some of the families.
    fn module(&self, families: &[Family]) -> String {
        let mut globals = Texts::new();
        let mut declares = Texts::new();
        let mut helpers = Texts::new();
        let mut bodies = String::new();
        let mut metadata = String::new();
        let mut first_node = 0;
        for family in families {
            let Some((first, _)) = family.members.first() else { continue };
            let Function { symbol, piece, .. } = &self.functions[*first];
            let argument = (family.members.len() > 1).then_some("%n");
            let filling = Filling { symbol, first_node, numbers: &family.numbers, argument };
            piece.functions.iter().for_each(|f| push_line(&mut bodies, &filling.fill(f)));
            piece.metadata.iter().for_each(|node| push_line(&mut metadata, &filling.fill(node)));
            first_node += piece.metadata.len();
            for (k, number) in &family.members {
                let Function { exported, piece, .. } = &self.functions[*k];
                let number = number.to_string();
                let argument = argument.map(|_| &number[..]);
                push_line(&mut bodies, &Filling { argument, ..filling }.fill(exported));
                globals.extend(piece.globals.clone());
                declares.extend(piece.declares.clone());
                helpers.extend(piece.helpers.clone());
            }
        }
        for (k, _) in families.iter().flat_map(|family| &family.members) {
            declares.remove(&self.functions[*k].symbol);
        }
        let mut out = String::new();
        let texts = [&globals, &declares, &helpers];
        texts.into_iter().flat_map(Texts::values).for_each(|text| push_line(&mut out, text));
        out += &bodies;
        push_line(&mut out, &self.machine.attributes());
        out + &metadata
    }
}

fn push_line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}
