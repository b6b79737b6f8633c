//! C code for a program over pieces: branches, loops, lists, and sizes that are found on the way.
//!
//! It does what the machine of the runtime does. A run has registers with values (`values.c`) and
//! slots with sizes; each block of the program is a function over these. A piece is called as a plan
//! is: its shape function says how large everything is, its results are new values, and all pieces of
//! a run share one arena, which grows.
//!
//! A result beyond those of kernels says which operation failed, for the message.

use std::fmt::Write;

use tilewright_ir::list::ListOp;
use tilewright_ir::plan::program::{self, Block, Operation, Register, What};
use tilewright_ir::{
    Attr, Attrs, BinOp, DType, Dim, Error, Expr, ExprKind, OpenPlan, OpenPort, Result, Tensor,
    TypeKind, Var,
};

use super::{Library, Program};
use crate::entry::{self, Planned};
use crate::shape_func::PortSizes;

/// What runs instead of a plan.
pub struct Control<'a> {
    /// Which pieces run in which order.
    pub program: &'a program::Program,
    /// The pieces.
    pub pieces: &'a [Program<'a>],
}

/// Inputs and outputs of a program, for [`Library::program`]. Outputs whose sizes data decide are not
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
    let outputs = match is_decided(program) {
        true => Vec::new(),
        false => program.signature.outputs.clone(),
    };
    Planned::new(&OpenPlan { outputs, ..program.signature.clone() })
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
    let count = |p: &Program<'_>| p.plan.shapes().map_or(0, |s| s.count);
    let shapes = control.pieces.iter().map(count).max().unwrap_or(0);
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
    match numbers.is_empty() {
        true => "NULL".to_owned(),
        false => format!("(const int64_t[]){{{}}}", numbers.join(", ")),
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

    /// The function that runs a piece.
    fn piece(&mut self, k: usize, plan: &Planned, base: usize) -> Result<()> {
        let inner = self.library.inner(k + 1);
        let (inputs, outputs) = plan.ports();
        let mut out = format!(
            "static int piece_{k}(run_state *m, value *const *in, const int64_t *told, value **out) {{\n"
        );
        let heap = |places: &[PortSizes], i: usize| places.get(i).map(|at| at.extents);
        let none: &[PortSizes] = &[];
        let (ins, outs) = plan.shapes().map_or((none, none), |s| (&s.inputs[..], &s.outputs[..]));
        let misfit = self.site("a value has another type or shape than it is used as");
        for (i, port) in inputs.iter().enumerate() {
            let (number, rank) = (number(port.dtype), port.shape.len());
            let _ =
                writeln!(out, "    if (!is_tensor(in[{i}], {number}, {rank})) return {misfit};");
        }
        // A result of the piece as one of the library.
        let result = format!("return result > 0 ? result + {base} : result;");
        let (arena, passed) = match plan {
            Planned::Fixed(plan) => (plan.arena_bytes.to_string(), ""),
            Planned::Open(open, shapes) => {
                let said = |v: &Var| -> Result<String> {
                    // As the runtime does: what is told comes first.
                    if let Some(at) = open.given.iter().position(|g| g == v) {
                        return Ok(format!("told[{at}]"));
                    }
                    let plain = |(i, port): (usize, &OpenPort)| {
                        let axis = port.shape.iter().position(|d| *d == Dim::open(v))?;
                        Some(format!("in[{i}]->extents[{axis}]"))
                    };
                    open.inputs.iter().enumerate().find_map(plain).ok_or_else(|| {
                        Error::internal(format!("nothing says how large `{}` is", v.name()))
                    })
                };
                let sizes = open.sizes().iter().map(said).collect::<Result<Vec<_>>>()?;
                let _ = writeln!(out, "    int64_t *shapes = m->shapes;");
                let _ = writeln!(
                    out,
                    "    int result = {}(&context, {}, shapes);\n    if (result != 0) {result}",
                    entry::shapes_symbol(&inner),
                    array(sizes)
                );
                (format!("(size_t)shapes[{}]", shapes.arena_bytes), "shapes, ")
            }
        };
        for (i, port) in inputs.iter().enumerate().filter(|(_, port)| !port.shape.is_empty()) {
            let extents = Self::extents(port, heap(ins, i));
            let _ = writeln!(out, "    if (!has_extents(in[{i}], {extents})) return {misfit};");
        }
        let _ = writeln!(out, "    TRY(make_arena(m, {arena}), 0);");
        let _ = writeln!(out, "    value *made[{}] = {{0}};", outputs.len().max(1));
        let _ = writeln!(out, "    int failed = 0;");
        for (i, port) in outputs.iter().enumerate() {
            let extents = Self::extents(port, heap(outs, i));
            let (ty, rank) = (type_of(port.dtype), port.shape.len());
            let _ = writeln!(
                out,
                "    if (failed == 0) failed = tensor({ty}, {rank}, {extents}, NULL, &made[{i}]);"
            );
        }
        let list = |count: usize, one: &dyn Fn(usize) -> String| -> String {
            (0..count).map(one).chain(["NULL".to_owned()]).collect::<Vec<_>>().join(", ")
        };
        let declared = if plan.shapes().is_some() { "result" } else { "int result" };
        let _ = write!(
            out,
            "    if (failed != 0) {{
        for (int k = 0; k < {count}; k++) drop(made[k]);
        return failed;
    }}
    const void *inputs[] = {{{given}}};
    void *outputs[] = {{{results}}};
    {declared} = {run}(&context, {passed}inputs, outputs, constants_{program}, m->arena);
    for (int k = 0; k < {count}; k++) {{
        if (result == 0) out[k] = made[k];
        else drop(made[k]);
    }}
    (void)told;
    (void)in;
    {result}
}}

",
            count = outputs.len(),
            given = list(inputs.len(), &|i| format!("in[{i}]->data")),
            results = list(outputs.len(), &|i| format!("elements(made[{i}])")),
            run = entry::symbol(&inner),
            program = k + 1,
        );
        self.functions += &out;
        Ok(())
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

    fn operation(&mut self, Operation { what, free }: &Operation, out: &mut String) -> Result<()> {
        let clear = |r: &Register, out: &mut String| {
            let _ = writeln!(out, "    set(&m->r[{r}], NULL);");
        };
        match what {
            What::Constant(t, to) => {
                let at = self.places.get(self.used).copied().unwrap_or(0);
                self.used += 1;
                let extents = array(t.shape().iter().map(usize::to_string));
                let _ = write!(
                    out,
                    "    {{\n        value *made;\n        TRY(tensor({}, {}, {extents}, {}_constants + {at}, &made), 0);\n        set(&m->r[{to}], made);\n    }}\n",
                    type_of(t.dtype()),
                    t.shape().len(),
                    self.name,
                );
            }
            What::Copy(from, to) => Self::copy(&[*from], &[*to], out),
            What::Piece { piece, args, sizes, outs } => {
                let list = |all: Vec<String>| -> String {
                    all.into_iter().chain(["0".to_owned()]).collect::<Vec<_>>().join(", ")
                };
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
                    list(given),
                    outs.len().max(1),
                    list(told),
                );
                for (k, r) in outs.iter().enumerate() {
                    let _ = writeln!(out, "        set(&m->r[{r}], made[{k}]);");
                }
                *out += "    }\n";
            }
            What::Bind { of, name, dtype, shape, brings } => {
                let site = self.site(format!("`{name}` is not {dtype} of shape {shape:?}"));
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
        free.iter().for_each(|r| clear(r, out));
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
        let unfit = || Error::unsupported(format!("the size `{e}` in a shared library"));
        Ok(match e.kind() {
            ExprKind::Int(n) => format!("INT64_C({n})"),
            ExprKind::Var(v) => format!("m->s[{}]", self.program.slot(v).ok_or_else(unfit)?),
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
                    _ => return Err(unfit()),
                }
            }
            _ => return Err(unfit()),
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
        let arg = |k: usize| match args.get(k) {
            Some(r) => format!("m->r[{r}]"),
            None => "NULL".to_owned(),
        };
        let is_given = |k: usize| usize::from(args.len() > k);
        let axis = attr(attrs, "axis", 0);
        let name = op.name();
        let (call, reason) = match op {
            ListOp::Of => {
                let items: Vec<String> = (0..args.len()).map(arg).collect();
                let items = match items.is_empty() {
                    true => "NULL".to_owned(),
                    false => format!("(value *[]){{{}}}", items.join(", ")),
                };
                (format!("list_of({}, {items}, 0, &made)", args.len()), "")
            }
            ListOp::At => {
                let call = format!("list_at({}, {}, &made)", arg(0), arg(1));
                (call, "there is no such position in the list")
            }
            ListOp::Insert => {
                let (placed, at) = (is_given(2), arg(2));
                let call = format!("list_insert({}, {}, {placed}, {at}, &made)", arg(0), arg(1));
                (call, "there is no such position in the list")
            }
            ListOp::Erase => {
                let call = format!("list_erase({}, {}, {}, &made)", arg(0), is_given(1), arg(1));
                (call, "there is no such position in the list")
            }
            ListOp::Length => {
                let call = format!("list_length({}, {}, &made)", arg(0), type_of(DType::I64));
                (call, "there is no list")
            }
            ListOp::Split => {
                let keeps = attr(attrs, "keepdims", 1);
                let (listed, lengths) = (is_given(1), arg(1));
                let call =
                    format!("list_split({}, {listed}, {lengths}, {axis}, {keeps}, &made)", arg(0));
                (call, "the lengths of the parts do not fit the tensor")
            }
            ListOp::Join => {
                let new = usize::from(attr(attrs, "new_axis", 0) != 0);
                let call = format!("list_join({}, {axis}, {new}, &made)", arg(0));
                (call, "the tensors cannot be joined")
            }
            ListOp::Nothing => ("0".to_owned(), ""),
            ListOp::Has => {
                let call = format!("scalar({}, {} != NULL, &made)", type_of(DType::BOOL), arg(0));
                (call, "")
            }
            ListOp::Get => {
                (format!("optional_get({}, &made)", arg(0)), "the optional has no value")
            }
        };
        let site = match reason.is_empty() {
            true => "0".to_owned(),
            false => self.site(format!("{name}: {reason}")),
        };
        let _ = write!(
            out,
            "    {{\n        value *made = NULL;\n        TRY({call}, {site});\n        set(&m->r[{to}], made);\n    }}\n"
        );
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
        for r in lost {
            let _ = writeln!(out, "    set(&m->r[{r}], NULL);");
        }
        for list in &lists {
            let _ = write!(
                out,
                "    {{\n        value *made;\n        TRY(list_of(0, NULL, 0, &made), 0);\n        set(&m->r[{list}], made);\n    }}\n"
            );
        }
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
        let is_own = |r: &&Register| {
            params.contains(r) || body.operations.iter().any(|o| o.what.writes().contains(r))
        };
        for r in body.results.iter().filter(is_own) {
            let _ = writeln!(out, "        set(&m->r[{r}], NULL);");
        }
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
            let _ = write!(
                out,
                "    {{\n        value *made;\n        TRY(stack(m->r[{list}], {}, {}, {}, &made), {site});\n        set(&m->r[{to}], made);\n    }}\n",
                type_of(*dtype),
                extents.len(),
                array(extents)
            );
        }
        for r in held.iter().chain(&lists) {
            let _ = writeln!(out, "    set(&m->r[{r}], NULL);");
        }
        *out += "    }\n";
        Ok(())
    }

    /// The functions of the interface.
    fn run(&mut self, body: usize, block: &Block) -> Result<String> {
        let name = self.name;
        let plan = self.library.program.plan;
        let shapes = plan.shapes();
        let signature = &self.program.signature;
        let parameter = shapes.map_or("", |_| "const int64_t *shapes, ");
        let passed = shapes.map_or("", |_| "shapes, ");
        let mut out = format!(
            "static int start({parameter}const void *const *inputs, run_state **to) {{
    run_state *m = calloc(1, sizeof *m);
    *to = m;
    if (m == NULL) return NO_MEMORY;
    for (int k = 0; k < {}; k++) m->s[k] = -1;
",
            self.program.sizes.len()
        );
        for (k, port) in signature.inputs.iter().enumerate() {
            let extents = Self::extents(port, shapes.map(|s| s.inputs[k].extents));
            let (ty, rank) = (type_of(port.dtype), port.shape.len());
            let _ = writeln!(
                out,
                "    TRY(tensor({ty}, {rank}, {extents}, inputs[{k}], &m->r[{k}]), 0);"
            );
        }
        for (slot, v) in signature.sizes().iter().enumerate() {
            let plain = |(k, port): (usize, &OpenPort)| {
                let axis = port.shape.iter().position(|d| *d == Dim::open(v))?;
                Some(shapes?.inputs[k].extents + axis)
            };
            if let Some(at) = signature.inputs.iter().enumerate().find_map(plain) {
                let _ = writeln!(out, "    m->s[{slot}] = shapes[{at}];");
            }
        }
        let _ = write!(
            out,
            "    (void)inputs;
    return block_{body}(m);
}}

static void finish(run_state *m) {{
    for (int k = 0; m != NULL && k < {}; k++) drop(m->r[k]);
    if (m != NULL) free(m->arena);
    free(m);
}}

",
            self.registers
        );
        let misfit = self.site("an output has another shape than the model says");
        let ports: Vec<(&OpenPort, &Register)> =
            signature.outputs.iter().zip(&block.results).collect();
        if is_decided(self.program) {
            let count = ports.len();
            let _ = write!(
                out,
                "struct {name}_results {{
    value *outputs[{count}];
}};

"
            );
            let _ = write!(
                out,
                "PUBLIC void {name}_free({name}_results *results) {{
    if (results == NULL) return;
    for (int k = 0; k < {count}; k++) drop(results->outputs[k]);
    free(results);
}}

/* A value that stays when the inputs go. */
static int keep(value *v, value **to) {{
    if (v->is_own) {{
        *to = hold(v);
        return 0;
    }}
    int failed = tensor(v->type, v->rank, v->extents, NULL, to);
    if (failed == 0 && byte_count(v) > 0) memcpy(elements(*to), v->data, (size_t)byte_count(v));
    return failed;
}}

PUBLIC int {name}_run({parameter}const void *const *inputs, {name}_results **results) {{
    run_state *m;
    {name}_results *made = NULL;
    int result = start({passed}inputs, &m);
    if (result == 0 && (made = calloc(1, sizeof *made)) == NULL) result = NO_MEMORY;
"
            );
            for (k, (port, r)) in ports.iter().enumerate() {
                let (number, rank) = (number(port.dtype), port.shape.len());
                let _ = write!(
                    out,
                    "    if (result == 0 && !is_tensor(m->r[{r}], {number}, {rank})) result = {misfit};
    if (result == 0) result = keep(m->r[{r}], &made->outputs[{k}]);
"
                );
            }
            let _ = write!(
                out,
                "    finish(m);
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
            );
            return Ok(out);
        }
        let _ = write!(
            out,
            "PUBLIC int {name}_run({parameter}const void *const *inputs, void *const *outputs, void *arena) {{
    run_state *m;
    int result = start({passed}inputs, &m);
    (void)arena;
"
        );
        for (k, (port, r)) in ports.iter().enumerate() {
            let (number, rank) = (number(port.dtype), port.shape.len());
            let extents = Self::extents(port, shapes.map(|s| s.outputs[k].extents));
            let _ = write!(
                out,
                "    if (result == 0) {{
        const value *v = m->r[{r}];
        if (!is_tensor(v, {number}, {rank}) || !has_extents(v, {extents})) result = {misfit};
        else if (byte_count(v) > 0) memcpy(outputs[{k}], v->data, (size_t)byte_count(v));
    }}
"
            );
        }
        out += "    finish(m);\n    return result;\n}\n";
        Ok(out)
    }
}
