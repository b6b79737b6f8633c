//! C code for a program over pieces: branches, loops, lists, and sizes that are found on the way.
//!
//! It does what the machine of the runtime does. A run has registers with values (`values.c`) and
//! slots with sizes; each block of the program is a function over these. A piece is called as a plan
//! is: its shape function says how large everything is, its results are new values, and all pieces of
//! a run share one arena, which grows.
//!
//! A result beyond those of kernels says which operation failed, for the message.

mod piece;
mod run;

use std::fmt::Write;

use tilewright_ir::list::ListOp;
use tilewright_ir::{
    Attr, Attrs, BinOp, DType, Dim, Error, Expr, ExprKind, Result, Tensor, TypeKind,
};
use tilewright_runtime::plan::program::{self, Block, Operation, Register, What};
use tilewright_runtime::{MemoryPlan, OpenPort};

use super::given::{Control, Library};
use crate::entry::Planned;

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
    /// Types, and the functions of blocks and pieces.
    pub functions: String,
    /// `NAME_run`, and what comes with it.
    pub run: String,
    /// Messages of operations, whose results follow `base`.
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
    let mut w = Writer {
        name: library.name,
        library,
        program: control.program,
        base: bases.last().copied().unwrap_or(0),
        functions: String::new(),
        blocks: 0,
        registers: control.program.registers,
        messages: Vec::new(),
        places,
        used: 0,
    };
    for (k, piece) in control.pieces.iter().enumerate() {
        w.piece(k, piece.plan, bases[k + 1])?;
    }
    let body = w.block(&control.program.body)?;
    let run = w.run(body, &control.program.body)?;
    let shapes =
        control.pieces.iter().map(|p| p.plan.shapes().map_or(0, |s| s.count)).max().unwrap_or(0);
    let mut functions = format!(
        "typedef struct {{
    void *arena; /* for the piece that runs */
    size_t arena_bytes;
    value *r[{}];
    int64_t s[{}];
    int64_t shapes[{}];
}} run_state;

static int make_arena(run_state *m, size_t bytes) {{
    if (bytes <= m->arena_bytes) return 0;
    free(m->arena);
    m->arena = NULL;
    m->arena_bytes = 0;
    if (posix_memalign(&m->arena, ALIGN, bytes) != 0) return NO_MEMORY;
    m->arena_bytes = bytes;
    return 0;
}}

static inline int64_t quotient(int64_t a, int64_t b) {{ return b == 0 ? -1 : a / b; }}
static inline int64_t rest(int64_t a, int64_t b) {{ return b == 0 ? -1 : a % b; }}
static inline int64_t smaller(int64_t a, int64_t b) {{ return a < b ? a : b; }}
static inline int64_t larger(int64_t a, int64_t b) {{ return a > b ? a : b; }}

",
        w.registers.max(1),
        control.program.sizes.len().max(1),
        shapes.max(1),
    );
    functions += &w.functions;
    Ok(Code { functions, run, messages: w.messages })
}

struct Writer<'a> {
    name: &'a str,
    library: &'a Library<'a>,
    program: &'a program::Program,
    /// What comes before the results of operations.
    base: usize,
    functions: String,
    /// How many functions of blocks there are.
    blocks: usize,
    /// How many registers are used, with those that loops need for themselves.
    registers: usize,
    messages: Vec<String>,
    places: &'a [usize],
    /// How many constants were taken.
    used: usize,
}

/// An element type as C code has it.
fn type_of(dtype: DType) -> String {
    let kind = match dtype.kind {
        TypeKind::Bool => "BOOL",
        TypeKind::Int => "INT",
        TypeKind::UInt => "UINT",
        _ => "OTHER",
    };
    // Integers of less than a byte are no numbers of iterations, and no sizes.
    let kind = if dtype.bits < 8 && !dtype.is_bool() { "OTHER" } else { kind };
    format!("(type){{{}, {kind}, {}}}", number(dtype), dtype.bytes())
}

/// The number of an element type.
fn number(dtype: DType) -> usize {
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

/// An array of numbers.
fn array(numbers: impl IntoIterator<Item = String>) -> String {
    let numbers: Vec<String> = numbers.into_iter().collect();
    if numbers.is_empty() {
        "NULL".to_owned()
    } else {
        format!("(const int64_t[]){{{}}}", numbers.join(", "))
    }
}

fn attr(attrs: &Attrs, key: &str, default: i64) -> i64 {
    match attrs.get(key) {
        Some(Attr::Int(n)) => *n,
        Some(Attr::Bool(b)) => i64::from(*b),
        _ => default,
    }
}

impl<'a> Writer<'a> {
    /// The result of an operation that fails, and its message.
    fn site(&mut self, message: impl Into<String>) -> String {
        let message = message.into();
        let known = self.messages.iter().position(|m| *m == message);
        let at = known.unwrap_or_else(|| {
            self.messages.push(message);
            self.messages.len() - 1
        });
        (self.base + at + 1).to_string()
    }

    fn temporary(&mut self) -> Register {
        self.registers += 1;
        self.registers - 1
    }

    /// The extents of a port: in the heap, or numbers.
    fn extents(port: &OpenPort, heap: Option<usize>) -> String {
        match heap {
            Some(at) if !port.shape.is_empty() => format!("shapes + {at}"),
            _ => array(port.shape.iter().map(|d| d.known().unwrap_or(0).to_string())),
        }
    }

    /// The function of a block, by its number.
    fn block(&mut self, block: &Block) -> Result<usize> {
        let mut out = String::new();
        for operation in &block.operations {
            self.operation(operation, &mut out)?;
        }
        let number = self.blocks;
        self.blocks += 1;
        let _ = write!(
            self.functions,
            "static int block_{number}(run_state *m) {{\n    (void)m;\n{out}    return 0;\n}}\n\n"
        );
        Ok(number)
    }

    /// Moves values from some registers to others, all at the same time.
    fn copy(from: &[Register], to: &[Register], out: &mut String) {
        if from.is_empty() {
            return;
        }
        let held: Vec<String> = from.iter().map(|r| format!("hold(m->r[{r}])")).collect();
        let _ = write!(out, "    {{\n        value *copied[] = {{{}}};\n", held.join(", "));
        for (k, r) in to.iter().enumerate() {
            let _ = writeln!(out, "        set(&m->r[{r}], copied[{k}]);");
        }
        *out += "    }\n";
    }

    /// Forgets the values of registers.
    fn clear<'r>(registers: impl IntoIterator<Item = &'r Register>, out: &mut String) {
        for r in registers {
            let _ = writeln!(out, "    set(&m->r[{r}], NULL);");
        }
    }

    /// Puts what a call makes at `made` into a register; `site` is the result where it does not fit.
    fn make(call: &str, site: &str, to: Register, out: &mut String) {
        let _ = write!(
            out,
            "    {{\n        value *made = NULL;\n        TRY({call}, {site});\n        set(&m->r[{to}], made);\n    }}\n"
        );
    }

    fn operation(&mut self, Operation { what, free }: &Operation, out: &mut String) -> Result<()> {
        match what {
            What::Constant(t, to) => {
                let at = self.places.get(self.used).copied().unwrap_or(0);
                self.used += 1;
                let extents = array(t.shape().iter().map(usize::to_string));
                let (ty, rank, name) = (type_of(t.dtype()), t.shape().len(), self.name);
                let call =
                    format!("tensor({ty}, {rank}, {extents}, {name}_constants + {at}, &made)");
                Self::make(&call, "0", *to, out);
            }
            What::Copy(from, to) => Self::copy(&[*from], &[*to], out),
            What::Piece { piece, args, sizes, outs } => {
                let given = args.iter().map(|r| format!("m->r[{r}]")).collect();
                let told = sizes.iter().map(|s| format!("m->s[{s}]")).collect();
                let _ = write!(
                    out,
                    "    {{
        value *in[] = {{{}}}, *made[{}];
        const int64_t told[] = {{{}}};
        int failed = piece_{piece}(m, in, told, made);
        if (failed != 0) return failed;
",
                    initialiser(given),
                    outs.len().max(1),
                    initialiser(told),
                );
                for (k, r) in outs.iter().enumerate() {
                    let _ = writeln!(out, "        set(&m->r[{r}], made[{k}]);");
                }
                *out += "    }\n";
            }
            What::Bind { of, name, dtype, shape, brings, why } => {
                let why = why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
                let site = self.site(format!("`{name}` is not {dtype} of shape {shape:?}{why}"));
                let (number, rank) = (number(*dtype), shape.len());
                let _ = writeln!(
                    out,
                    "    if (!is_tensor(m->r[{of}], {number}, {rank})) return {site};"
                );
                self.sizes(&format!("m->r[{of}]->extents"), shape, brings, &site, out)?;
            }
            What::Sizes { of, name, shape, brings } => {
                let site = self.site(format!("`{name}` is no shape {shape:?}"));
                let count = shape.len();
                let _ = write!(
                    out,
                    "    {{\n        int64_t found[{}];\n        TRY(sizes_of(m->r[{of}], {count}, found), {site});\n",
                    count.max(1)
                );
                self.sizes("found", shape, brings, &site, out)?;
                *out += "    }\n";
            }
            What::List { op, attrs, args, to } => self.list(*op, attrs, args, *to, out),
            What::If { cond, then, otherwise, outs } => {
                let site = self.site("a condition is no single truth value");
                let _ = write!(
                    out,
                    "    {{\n    int64_t cond;\n    TRY(integer(m->r[{cond}], &cond), {site});\n"
                );
                for (head, branch) in [("if (cond != 0)", then), ("else", otherwise)] {
                    let inner = self.block(branch)?;
                    let _ = write!(
                        out,
                        "    {head} {{\n    int failed = block_{inner}(m);\n    if (failed != 0) return failed;\n"
                    );
                    Self::copy(&branch.results, outs, out);
                    *out += "    }\n";
                }
                *out += "    }\n";
            }
            What::Loop { .. } => self.repeat(what, free, out)?,
        }
        Self::clear(free, out);
        Ok(())
    }

    /// Takes sizes from an array, and refuses other ones than those that are declared.
    fn sizes(
        &mut self,
        from: &str,
        shape: &[Dim],
        brings: &[(usize, usize)],
        site: &str,
        out: &mut String,
    ) -> Result<()> {
        for (axis, slot) in brings {
            let _ = writeln!(out, "    m->s[{slot}] = {from}[{axis}];");
        }
        for (axis, d) in shape.iter().enumerate() {
            if brings.iter().any(|(at, _)| *at == axis) {
                continue;
            }
            let slots: Vec<usize> = d.vars().iter().filter_map(|v| self.program.slot(v)).collect();
            if slots.len() != d.vars().len() {
                continue;
            }
            // As in the runtime, what depends on an unknown size may be any.
            let known: String = slots.iter().map(|s| format!("m->s[{s}] >= 0 && ")).collect();
            let size = self.size(&d.wide())?;
            let _ = writeln!(out, "    if ({known}{from}[{axis}] != {size}) return {site};");
        }
        Ok(())
    }

    /// A size as an expression of slots.
    fn size(&self, e: &Expr) -> Result<String> {
        Ok(match e.kind() {
            ExprKind::Int(n) => format!("INT64_C({n})"),
            ExprKind::Var(v) => {
                format!("m->s[{}]", self.program.slot(v).ok_or_else(|| no_size(e))?)
            }
            ExprKind::Cast(a) => self.size(a)?,
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (self.size(a)?, self.size(b)?);
                match op {
                    BinOp::Add => format!("({a} + {b})"),
                    BinOp::Sub => format!("({a} - {b})"),
                    BinOp::Mul => format!("({a} * {b})"),
                    BinOp::FloorDiv => format!("quotient({a}, {b})"),
                    BinOp::FloorMod => format!("rest({a}, {b})"),
                    BinOp::Min => format!("smaller({a}, {b})"),
                    BinOp::Max => format!("larger({a}, {b})"),
                    _ => return Err(no_size(e)),
                }
            }
            _ => return Err(no_size(e)),
        })
    }

    fn list(
        &mut self,
        op: ListOp,
        attrs: &Attrs,
        args: &[Register],
        to: Register,
        out: &mut String,
    ) {
        let given = |k: usize| usize::from(args.len() > k);
        let (a, b, c, axis) = (
            register_of(0, args),
            register_of(1, args),
            register_of(2, args),
            attr(attrs, "axis", 0),
        );
        let position = "there is no such position in the list";
        let (call, reason) = match op {
            ListOp::Of => {
                let items: Vec<String> = (0..args.len()).map(|k| register_of(k, args)).collect();
                let items = if items.is_empty() {
                    "NULL".to_owned()
                } else {
                    format!("(value *[]){{{}}}", items.join(", "))
                };
                (format!("list_of({}, {items}, 0, &made)", args.len()), "")
            }
            ListOp::At => (format!("list_at({a}, {b}, &made)"), position),
            ListOp::Insert => {
                (format!("list_insert({a}, {b}, {}, {c}, &made)", given(2)), position)
            }
            ListOp::Erase => (format!("list_erase({a}, {}, {b}, &made)", given(1)), position),
            ListOp::Length => {
                (format!("list_length({a}, {}, &made)", type_of(DType::I64)), "there is no list")
            }
            ListOp::Split => {
                let (listed, keeps) = (given(1), attr(attrs, "keepdims", 1));
                let call = format!("list_split({a}, {listed}, {b}, {axis}, {keeps}, &made)");
                (call, "the lengths of the parts do not fit the tensor")
            }
            ListOp::Join => {
                let new = usize::from(attr(attrs, "new_axis", 0) != 0);
                (format!("list_join({a}, {axis}, {new}, &made)"), "the tensors cannot be joined")
            }
            ListOp::Nothing => ("0".to_owned(), ""),
            ListOp::Has => (format!("scalar({}, {a} != NULL, &made)", type_of(DType::BOOL)), ""),
            ListOp::Get => (format!("optional_get({a}, &made)"), "the optional has no value"),
        };
        let site = if reason.is_empty() {
            "0".to_owned()
        } else {
            self.site(format!("{}: {reason}", op.name()))
        };
        Self::make(&call, &site, to, out);
    }

    fn repeat(&mut self, what: &What, free: &[Register], out: &mut String) -> Result<()> {
        let What::Loop { trip, cond, carried, params, captured, body, stacked, outs } = what else {
            return Err(Error::internal("no loop"));
        };
        let site = self.site("a condition or number of iterations is no single integer");
        let held: Vec<Register> = carried.iter().map(|_| self.temporary()).collect();
        let lists: Vec<Register> = stacked.iter().map(|_| self.temporary()).collect();
        let inner = self.block(body)?;
        *out += "    {\n    int64_t trip = INT64_MAX, go = 1;\n";
        for (register, variable) in [(trip, "trip"), (cond, "go")] {
            if let Some(r) = register {
                let _ = writeln!(out, "    TRY(integer(m->r[{r}], &{variable}), {site});");
            }
        }
        Self::copy(carried, &held, out);
        let lost = carried.iter().filter(|r| free.contains(r) && !captured.contains(r));
        Self::clear(lost, out);
        lists.iter().for_each(|list| Self::make("list_of(0, NULL, 0, &made)", "0", *list, out));
        let _ = write!(
            out,
            "    for (int64_t i = 0; go != 0 && i < trip; i++) {{\n        value *count;\n        TRY(scalar({}, i, &count), 0);\n        set(&m->r[{}], count);\n",
            type_of(DType::I64),
            params[0]
        );
        for (param, from) in params[1..].iter().zip(&held) {
            let _ = writeln!(
                out,
                "        set(&m->r[{param}], m->r[{from}]);\n        m->r[{from}] = NULL;"
            );
        }
        let _ = writeln!(
            out,
            "        int failed = block_{inner}(m);\n        if (failed != 0) return failed;"
        );
        let _ = writeln!(out, "        TRY(integer(m->r[{}], &go), {site});", body.results[0]);
        let next = &body.results[1..];
        Self::copy(&next[..carried.len()], &held, out);
        for (list, r) in lists.iter().zip(&next[carried.len()..]) {
            let _ = writeln!(out, "        TRY(append(m->r[{list}], m->r[{r}]), 0);");
        }
        Self::clear(
            body.results.iter().filter(|r| {
                params.contains(r) || body.operations.iter().any(|o| o.what.writes().contains(r))
            }),
            out,
        );
        *out += "    }\n";
        Self::copy(&held, &outs[..carried.len()], out);
        for ((list, (dtype, shape)), to) in lists.iter().zip(stacked).zip(&outs[carried.len()..]) {
            let site = self.site("what the iterations of a loop give has different shapes");
            // Without iterations, sizes that are not known count as zero.
            let mut extents = vec!["0".to_owned()];
            for d in shape {
                let slots: Option<Vec<usize>> =
                    d.vars().iter().map(|v| self.program.slot(v)).collect();
                extents.push(match slots {
                    None => "0".to_owned(),
                    Some(slots) => {
                        let known: String =
                            slots.iter().map(|s| format!("m->s[{s}] < 0 ? 0 : ")).collect();
                        format!("{known}larger(0, {})", self.size(&d.wide())?)
                    }
                });
            }
            let (ty, rank, extents) = (type_of(*dtype), extents.len(), array(extents));
            let call = format!("stack(m->r[{list}], {ty}, {rank}, {extents}, &made)");
            Self::make(&call, &site, *to, out);
        }
        Self::clear(held.iter().chain(&lists), out);
        *out += "    }\n";
        Ok(())
    }
}

fn initialiser(all: Vec<String>) -> String {
    all.into_iter().chain(["0".to_owned()]).collect::<Vec<_>>().join(", ")
}

fn no_size(e: &Expr) -> Error {
    Error::unsupported(format!("the size `{e}` in a shared library"))
}

fn register_of(k: usize, args: &[usize]) -> String {
    args.get(k).map_or("NULL".to_owned(), |r| format!("m->r[{r}]"))
}
