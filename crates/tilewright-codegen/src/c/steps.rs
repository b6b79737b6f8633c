//! From a function to kernels, and the steps in which the host calls them.
//!
//! A loop at the outside that is parallel, or bound to groups or threads, becomes a kernel: the iterations of a
//! parallel loop are shared by the items of its range, of which there may be as many or fewer. What stands outside of such loops becomes a kernel of one item;
//! loops and conditions around them, which read no memory, are run by the host.

use tilewright_ir::hash::HashMap;

use tilewright_ir::index::Ranges;
use tilewright_ir::visit::accessed;
use tilewright_ir::{
    Attr, Buffer, DType, Error, Expr, ForKind, Param, Range, Result, Stmt, StmtKind, Tensor,
    TensorFunc, Var,
};
use tilewright_target::EXPECTED;

use super::Language;
use super::helpers::Helpers;
use super::pairs;
use super::threads::Extents;
use super::types;
use super::writer::{Arithmetic, KernelMemory, Writer};
use crate::emit::{Assertion, PREFIX, assertions, captured, symbol};
use crate::header::comment;

/// What the host does.
#[derive(Clone, Debug)]
pub enum HostStep {
    /// Runs a kernel, by its number.
    Launch(usize),
    /// Steps for each value of a variable.
    Loop(Var, Range, Vec<HostStep>),
    /// Steps where a condition holds, and where it does not.
    If(Expr, Vec<HostStep>, Vec<HostStep>),
    /// Steps with a variable.
    Let(Var, Expr, Vec<HostStep>),
}

/// Over what a kernel runs.
#[derive(Clone, Debug)]
pub enum Over {
    /// One item.
    One,
    /// So many.
    Items(Expr),
    /// Groups of threads.
    Groups(Extents),
}

/// What a kernel takes, in order. A block of memory is two arguments: what it is a part of, and at which
/// byte of that it begins.
#[derive(Clone, Debug)]
pub enum Argument {
    /// Memory of the function, by position.
    Memory(usize),
    /// A number.
    Scalar(Var),
    /// Where the first assertion that fails leaves its code and its values: `1 + MAX_VALUES` words of 64 bits.
    Failure,
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub name: String,
    pub over: Over,
    pub arguments: Vec<Argument>,
    /// The most registers of a thread, and the bytes that a group shares, where its schedule says what it expects.
    pub expected: Option<(i64, i64)>,
}

/// Memory that kernels of a function use.
#[derive(Clone, Debug)]
pub enum Memory {
    /// A parameter of the function, by position.
    Param(usize),
    /// So many bytes while the function runs.
    Scratch(usize),
    Image(Image),
    /// What is always the same.
    Constant(Tensor),
}

/// A texture: texels of four channels. That of a parameter holds what its memory holds before the function reads it,
/// and after, where it writes it.
#[derive(Clone, Debug)]
pub struct Image {
    /// The parameter, unless only the function uses it.
    pub param: Option<usize>,
    pub rows: usize,
    /// Texels of a row.
    pub columns: usize,
    /// Whether channels are of 16 bits; else of 32.
    pub half: bool,
    pub reads: bool,
    pub writes: bool,
}

/// The memory of a parameter that a function accesses as memory.
#[derive(Clone, Debug)]
pub struct Access {
    /// The parameter, by position.
    pub param: usize,
    /// So many bytes from its address on, of the sizes of a call.
    pub bytes: Expr,
    pub writes: bool,
}

/// A function as kernels.
#[derive(Clone, Debug)]
pub struct Kernels {
    /// The C functions that they call.
    pub helpers: Helpers,
    /// The C text of all of them.
    pub text: String,
    pub kernels: Vec<Kernel>,
    pub steps: Vec<HostStep>,
    pub memory: Vec<Memory>,
    /// Of the parameters that are no textures.
    pub accesses: Vec<Access>,
    /// The variables of scalar parameters and open sizes, with their positions among the arguments.
    pub scalars: Vec<(Var, usize)>,
    /// What its assertions say, by their codes.
    pub assertions: Vec<Assertion>,
}

impl Kernels {
    /// The text of a program with them alone.
    pub fn program(&self, language: Language) -> String {
        [language.head(&self.helpers), self.text.clone()].concat()
    }

    /// The steps of the host as text for people, a line each.
    pub fn plan(&self) -> String {
        let mut out = String::new();
        self.describe(&self.steps, 1, &mut out);
        out
    }

    fn describe(&self, steps: &[HostStep], depth: usize, out: &mut String) {
        let indent = "  ".repeat(depth);
        for step in steps {
            match step {
                HostStep::Launch(k) => {
                    let Kernel { name, over, arguments, expected } = &self.kernels[*k];
                    let arguments: Vec<String> =
                        arguments.iter().map(|a| self.argument(a)).collect();
                    let (arguments, over) = (arguments.join(", "), over.text());
                    let expected = expected.map_or(String::new(), |(registers, shared)| {
                        format!(", at most {registers} registers, {shared} bytes shared")
                    });
                    *out += &format!("{indent}{name}({arguments}) {over}{expected}\n");
                }
                HostStep::Loop(var, range, body) => {
                    *out +=
                        &format!("{indent}for {var} from {}, {} times:\n", range.min, range.extent);
                    self.describe(body, depth + 1, out);
                }
                HostStep::If(cond, then, otherwise) => {
                    *out += &format!("{indent}if {cond}:\n");
                    self.describe(then, depth + 1, out);
                    *out += &format!("{indent}else:\n");
                    self.describe(otherwise, depth + 1, out);
                }
                HostStep::Let(var, value, body) => {
                    *out += &format!("{indent}{var} = {value}\n");
                    self.describe(body, depth, out);
                }
            }
        }
    }

    fn argument(&self, argument: &Argument) -> String {
        match argument {
            Argument::Memory(k) => match &self.memory[*k] {
                Memory::Param(p) => format!("argument {p}"),
                Memory::Scratch(bytes) => format!("{bytes} bytes of scratch"),
                Memory::Image(Image { rows, columns, .. }) => {
                    format!("an image of {rows} rows of {columns} texels")
                }
                Memory::Constant(tensor) => format!("a constant of shape {:?}", tensor.shape()),
            },
            Argument::Scalar(var) => var.to_string(),
            Argument::Failure => "where a failed assertion is left".to_owned(),
        }
    }
}

impl Over {
    fn text(&self) -> String {
        match self {
            Over::One => "once".to_owned(),
            Over::Items(extent) => format!("over {extent} items"),
            Over::Groups(Extents { groups, threads }) => {
                let groups =
                    groups.iter().map(|g| g.as_ref().map_or("1".to_owned(), Expr::to_string));
                let threads = threads.map(|n| n.max(1).to_string());
                let groups: Vec<String> = groups.collect();
                format!("over groups {} of threads {}", groups.join(" x "), threads.join(" x "))
            }
        }
    }
}

/// The text of a program with the kernels of several functions, each behind the steps in which the host
/// calls them, as a comment.
pub fn program<'a>(
    functions: impl Iterator<Item = (&'a str, &'a Kernels)> + Clone,
    language: Language,
) -> String {
    let mut helpers = Helpers::default();
    functions.clone().for_each(|(_, kernels)| helpers.extend(&kernels.helpers));
    let mut text = language.head(&helpers);
    for (name, kernels) in functions {
        text +=
            &format!("/* {}:\n{} */\n\n{}", comment(name), comment(&kernels.plan()), kernels.text);
    }
    text
}

/// Makes kernels of a lowered function; their names begin with its symbol.
///
/// # Errors
/// [`Error::Unsupported`] for what a device does not have, at its place.
pub fn kernels(name: &str, func: &TensorFunc, arithmetic: Arithmetic) -> Result<Kernels> {
    let cut = if arithmetic.doubles {
        cut(name, func, arithmetic)
    } else {
        pairs::without_doubles(func).and_then(|func| cut(name, &func, arithmetic))
    };
    cut.map_err(|e| e.context(format!("function `{name}`")).at(func.span))
}

fn cut(name: &str, func: &TensorFunc, arithmetic: Arithmetic) -> Result<Kernels> {
    let mut cut = Cut {
        symbol: symbol(PREFIX, name),
        arithmetic,
        assertions: assertions(func),
        ranges: Ranges::default(),
        memory: Vec::new(),
        places: HashMap::default(),
        kernels: Vec::new(),
        texts: Vec::new(),
        helpers: Helpers::default(),
    };
    let mut scalars = Vec::new();
    let mut accesses = Vec::new();
    let (_, written) = accessed(&func.body);
    for (k, param) in func.params.iter().enumerate() {
        match param {
            Param::Scalar(var) => scalars.push((var.clone(), k)),
            Param::Buffer { buffer, .. } if buffer.scope.starts_with("global.texture") => {
                let (own, _) = func.split_params();
                let image = image(buffer, func, (k < own.len()).then_some(k))?;
                cut.add(buffer, Memory::Image(image));
            }
            Param::Buffer { buffer, .. } => {
                let writes = written.iter().any(|b| b.data == buffer.data);
                accesses.push(Access { param: k, bytes: byte_count(buffer), writes });
                cut.add(buffer, Memory::Param(k));
            }
        }
    }
    let sizes = func.shape_vars().into_iter().enumerate();
    scalars.extend(sizes.map(|(k, var)| (var, func.params.len() + k)));
    for (var, _) in &scalars {
        cut.ranges.bind(var, tilewright_ir::index::Interval::all(var.dtype()));
    }
    cut.ranges.bind_sizes(func);
    let steps = cut.steps(&func.body)?;
    let Cut { kernels, memory, assertions, helpers, texts, .. } = cut;
    let text = texts.concat();
    Ok(Kernels { helpers, text, kernels, steps, memory, accesses, scalars, assertions })
}

/// Up to which byte of its memory a buffer lies.
fn byte_count(buffer: &Buffer) -> Expr {
    let long = |e: &Expr| e.clone().cast(DType::I64);
    let number = |n: i64| Expr::int(n, DType::I64);
    let cells = if buffer.strides.is_empty() {
        buffer.shape.iter().fold(number(1), |n, extent| n * long(extent))
    } else {
        let axes = buffer.shape.iter().zip(&buffer.strides);
        axes.fold(number(1), |n, (extent, stride)| n + (long(extent) - 1) * long(stride))
    };
    let offset = buffer.elem_offset.as_ref().map_or(number(0), long);
    (offset + cells) * number(buffer.dtype().bytes() as i64)
}

/// The image that a buffer is.
fn image(buffer: &Buffer, func: &TensorFunc, param: Option<usize>) -> Result<Image> {
    let half = match buffer.dtype() {
        DType::F32 => false,
        DType::F16 => true,
        other => {
            let text = format!("the texture `{}` has elements of type {other}", buffer.name);
            return Err(Error::unsupported(text).help("textures hold float32 or float16"));
        }
    };
    let (rows, columns) = match buffer.physical_shape().as_deref() {
        Some([rows, columns]) if columns % 4 == 0 => (*rows as usize, *columns as usize / 4),
        _ => {
            let text = format!("the texture `{}` has no two extents in whole texels", buffer.name);
            return Err(Error::unsupported(text));
        }
    };
    let (reads, writes) = accessed(&func.body);
    Ok(Image {
        param,
        rows,
        columns,
        half,
        reads: reads.iter().any(|b| b.data == buffer.data),
        writes: writes.iter().any(|b| b.data == buffer.data),
    })
}

/// A function while it is cut.
struct Cut {
    symbol: String,
    arithmetic: Arithmetic,
    assertions: Vec<Assertion>,
    ranges: Ranges,
    memory: Vec<Memory>,
    /// The memory behind the pointers of buffers.
    places: HashMap<Var, (usize, Buffer)>,
    kernels: Vec<Kernel>,
    texts: Vec<String>,
    helpers: Helpers,
}

/// Whether a loop that becomes a kernel is in a statement.
fn has_kernels(s: &Stmt) -> bool {
    let mut found = false;
    s.for_each(|s| {
        if let StmtKind::For { kind, .. } = s.kind() {
            found |= matches!(kind, ForKind::Parallel | ForKind::ThreadBinding(_));
        }
    });
    found
}

/// Whether a statement reads a texture that it writes.
fn mixes_textures(s: &Stmt) -> bool {
    let (read, written) = accessed(s);
    written
        .iter()
        .any(|b| b.scope.starts_with("global.texture") && read.iter().any(|r| r.data == b.data))
}

impl Cut {
    fn add(&mut self, buffer: &Buffer, memory: Memory) {
        self.places.insert(buffer.data.clone(), (self.memory.len(), buffer.clone()));
        self.memory.push(memory);
    }

    fn steps(&mut self, s: &Stmt) -> Result<Vec<HostStep>> {
        // What is always the same is memory of the program, wherever it stands.
        if let StmtKind::Constant { buffer, value, body } = s.kind() {
            self.add(buffer, Memory::Constant(value.clone()));
            return self.steps(body);
        }
        if let StmtKind::Declare { body, .. } = s.kind() {
            return self.steps(body);
        }
        if !has_kernels(s) && !mixes_textures(s) {
            return if s.is_nop() { Ok(Vec::new()) } else { self.kernel(s, Over::One) };
        }
        match s.kind() {
            StmtKind::Seq(stmts) => self.sequence(stmts),
            StmtKind::For { kind: ForKind::Parallel, range, .. } => {
                self.kernel(s, Over::Items(range.extent.clone()))
            }
            StmtKind::For { kind: ForKind::ThreadBinding(_), .. } => {
                let extents = Extents::collect(s)?;
                self.kernel(s, Over::Groups(extents))
            }
            StmtKind::For { var, range, body, .. }
                if range.min.effects().constant() && range.extent.effects().constant() =>
            {
                self.ranges.bind_loop(var, range);
                Ok(vec![HostStep::Loop(var.clone(), range.clone(), self.steps(body)?)])
            }
            StmtKind::If { cond, then, otherwise } if cond.effects().constant() => {
                let then = self.steps(then)?;
                let otherwise = otherwise.as_ref().map_or(Ok(Vec::new()), |s| self.steps(s))?;
                Ok(vec![HostStep::If(cond.clone(), then, otherwise)])
            }
            StmtKind::Let { var, value, body } if value.effects().constant() => {
                let range = self.ranges.interval(value);
                self.ranges.bind(var, range);
                Ok(vec![HostStep::Let(var.clone(), value.clone(), self.steps(body)?)])
            }
            StmtKind::Allocate { buffer, body, .. }
                if buffer.scope.starts_with("global.texture") =>
            {
                let used = TensorFunc::new(Vec::new(), body.clone());
                let image = image(buffer, &used, None).map_err(|e| e.at(s.span()))?;
                self.add(buffer, Memory::Image(image));
                self.steps(body)
            }
            StmtKind::Allocate { buffer, body, .. } => {
                let shape = buffer.const_shape().ok_or_else(|| {
                    Error::unsupported(format!(
                        "the size of buffer `{}` is not a constant",
                        buffer.name
                    ))
                    .at(s.span())
                })?;
                let count = shape.iter().product::<i64>().max(1);
                let bytes =
                    usize::try_from(count).unwrap_or(0).saturating_mul(buffer.dtype().bytes());
                self.add(buffer, Memory::Scratch(bytes));
                self.steps(body)
            }
            // A condition or a bound that memory decides: the device runs all of it as one item.
            _ => self.kernel(s, Over::One),
        }
    }

    /// Neighbours without kernels of their own are one kernel, unless one of them reads the texture that
    /// another one writes.
    fn sequence(&mut self, stmts: &[Stmt]) -> Result<Vec<HostStep>> {
        let mut steps = Vec::new();
        let mut plain: Vec<Stmt> = Vec::new();
        for s in stmts {
            let with_plain = Stmt::seq(plain.iter().cloned().chain([s.clone()]));
            if has_kernels(s) || mixes_textures(&with_plain) {
                steps.extend(self.steps(&Stmt::seq(std::mem::take(&mut plain)))?);
            }
            if has_kernels(s) || mixes_textures(s) {
                steps.extend(self.steps(s)?);
            } else {
                plain.push(s.clone());
            }
        }
        steps.extend(self.steps(&Stmt::seq(plain))?);
        Ok(steps)
    }

    /// Writes a kernel.
    fn kernel(&mut self, s: &Stmt, over: Over) -> Result<Vec<HostStep>> {
        let constants = self.constants_in(s);
        let mut w = Writer::new(self.arithmetic, self.assertions.clone());
        w.ranges = self.ranges.clone();
        std::mem::swap(&mut w.helpers, &mut self.helpers);
        let (mut params, mut arguments, mut heads) = (Vec::new(), Vec::new(), Vec::new());
        let nothing = Var::index("none");
        let (read, written) = accessed(s);
        for var in captured(&nothing, s) {
            if let Some((memory, buffer)) = self.places.get(&var) {
                let ty = types::memory(buffer.dtype()).map_err(|e| e.at(s.span()))?;
                let name = w.name(&buffer.name);
                arguments.push(Argument::Memory(*memory));
                if matches!(self.memory[*memory], Memory::Image(_)) {
                    let writes = names_data(&written, &var);
                    if writes && names_data(&read, &var) {
                        return Err(Error::unsupported(format!(
                            "one kernel reads and writes the texture `{}`",
                            buffer.name
                        ))
                        .help(
                            "write to other memory first, such as a local buffer of `cache_write`",
                        )
                        .at(s.span()));
                    }
                    params.push(format!(
                        "{} image2d_t {name}",
                        if writes { "__write_only" } else { "__read_only" }
                    ));
                    w.places.insert(
                        var,
                        KernelMemory { name, space: "", dtype: buffer.dtype(), image: true },
                    );
                    continue;
                }
                // LLVM 14, with which PoCL is built, takes a load to be of what was stored first where another store
                // between them is at an index that data say, if the pointer is a restricted one.
                let updates = names_data(&written, &var) && names_data(&read, &var);
                let alone = if updates { "" } else { " restrict" };
                params.push(format!("__global uchar*{alone} {name}_base, ulong {name}_at"));
                heads.push(format!(
                    "__global {ty}*{alone} {name} = (__global {ty}*)({name}_base + {name}_at);"
                ));
                let place =
                    KernelMemory { name, space: "__global", dtype: buffer.dtype(), image: false };
                w.places.insert(var, place);
            } else if var.dtype() == DType::HANDLE {
                return Err(Error::unsupported(format!(
                    "the pointer `{}` is no memory of the function",
                    var.name()
                ))
                .at(s.span()));
            } else {
                let name = w.name(var.name());
                let ty = types::memory(var.dtype()).map_err(|e| e.at(s.span()))?;
                params.push(format!("{ty} {name}_given"));
                let given = match types::narrow(var.dtype()) {
                    Some(kind) => format!("{}({name}_given)", w.helpers.name("get", kind)),
                    None => format!("{name}_given"),
                };
                heads.push(format!("const {} {name} = {given};", types::value(var.dtype())?));
                arguments.push(Argument::Scalar(var.clone()));
                w.vars.insert(var, name);
            }
        }
        heads.iter().for_each(|line| w.line(line));
        self.body(&mut w, s, &over)?;
        if let (true, Some(assertion)) = (w.waits, &w.asserted) {
            return Err(Error::unsupported("an assertion may end a thread for which others wait")
                .help("prove that the index is in range, or check it before the loops over threads")
                .at(assertion.span()));
        }
        if w.asserted.is_some() {
            params.push("__global long* failure".to_owned());
            arguments.push(Argument::Failure);
        }
        constants.iter().for_each(|var| drop(self.places.remove(var)));
        std::mem::swap(&mut w.helpers, &mut self.helpers);
        let name = format!("{}_{}", self.symbol, self.kernels.len());
        let shared: String = w.shared.iter().map(|line| format!("    {line}\n")).collect();
        let mut budget = None;
        let size = match &over {
            Over::Groups(Extents { threads, .. }) => {
                let [x, y, z] = threads.map(|n| n.max(1));
                let expected = expected(s).filter(|_| self.arithmetic.is_wide());
                budget = expected.map(|(most, shared)| (Budget::new(x * y * z, most), shared));
                match budget {
                    Some((Budget { at_once, .. }, _)) => {
                        format!("GROUPS_AT_ONCE({x}, {y}, {z}, {at_once}) ")
                    }
                    None => format!("GROUP_SIZE({x}, {y}, {z}) "),
                }
            }
            _ => String::new(),
        };
        let expected = budget.map(|(budget, shared)| (budget.registers, shared));
        self.texts.push(format!(
            "__kernel {size}void {name}({})\n{{\n{shared}{}}}\n\n",
            params.join(", "),
            w.out
        ));
        self.kernels.push(Kernel { name, over, arguments, expected });
        Ok(vec![HostStep::Launch(self.kernels.len() - 1)])
    }

    fn body(&mut self, w: &mut Writer, s: &Stmt, over: &Over) -> Result<()> {
        match (s.kind(), over) {
            (StmtKind::For { var, range, body, .. }, Over::Items(_)) => {
                w.ranges.bind_loop(var, range);
                let (ty, name) = (types::value(var.dtype())?, w.name(var.name()));
                let (min, extent) = (w.expr(&range.min)?, w.expr(&range.extent)?);
                let [all, end] = ["items", "end"].map(|hint| w.name(hint));
                let share =
                    |item: &str| format!("({ty})({all} * ({item}) / (long)get_global_size(0))");
                w.line(format_args!("const long {all} = {extent};"));
                let (from, to) =
                    (share("(long)get_global_id(0)"), share("((long)get_global_id(0) + 1)"));
                w.line(format_args!("const {ty} {end} = {min} + {to};"));
                w.vars.insert(var.clone(), name.clone());
                let head = format!("for ({ty} {name} = {min} + {from}; {name} < {end}; ++{name})");
                w.braced(head, |w| w.stmt(body))
            }
            (_, Over::Groups(extents)) => {
                w.extents = extents.clone();
                w.stmt(s)
            }
            _ => w.stmt(s),
        }
    }

    /// Makes memory of the constants in a statement, and gives their pointers.
    fn constants_in(&mut self, s: &Stmt) -> Vec<Var> {
        let mut found = Vec::new();
        s.for_each(|s| {
            if let StmtKind::Constant { buffer, value, .. } = s.kind() {
                found.push((buffer.clone(), value.clone()));
            }
        });
        let vars = found.iter().map(|(b, _)| b.data.clone()).collect();
        found.into_iter().for_each(|(b, value)| self.add(&b, Memory::Constant(value)));
        vars
    }
}

fn names_data(all: &[Buffer], var: &Var) -> bool {
    all.iter().any(|b| b.data == *var)
}

/// The registers that threads of a group may take on a GPU, and for how many groups at once a processor has so many (CUDA
/// C++ Programming Guide, technical specifications: 65536 registers, at most 255 of a thread, and on the smallest 1024
/// threads of a processor). The compiler keeps to that: where it is told nothing, it may spill to leave room for others.
#[derive(Clone, Copy)]
struct Budget {
    registers: i64,
    at_once: i64,
}

impl Budget {
    /// That of groups of so many threads, which are expected to take at most so many registers.
    fn new(threads: i64, most: i64) -> Budget {
        const REGISTERS: i64 = 65536;
        let at_once = (REGISTERS / (threads * most).max(1)).min(1024 / threads).clamp(1, 16);
        let registers = (REGISTERS / (threads * at_once) / 8 * 8).min(255);
        Budget { registers, at_once }
    }
}

/// What a schedule expects of a kernel, if it says so.
fn expected(s: &Stmt) -> Option<(i64, i64)> {
    let mut found = None;
    s.for_each(|s| {
        if let StmtKind::For { annotations, .. } = s.kind()
            && let Some(Attr::List(all)) = annotations.get(EXPECTED)
            && let [Attr::Int(registers), Attr::Int(shared)] = &all[..]
        {
            found = Some((*registers, *shared));
        }
    });
    found
}
