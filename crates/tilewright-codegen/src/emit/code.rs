//! Textual LLVM IR under construction: types, values, the body of one function, and what all
//! functions of a module share.
//!
//! Nothing here folds or checks; LLVM does both. Instructions that LLVM 16 does not know are
//! avoided, and so are spellings that a later one dropped.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::rc::Rc;
use std::sync::Arc;

use super::machine::MachineFeatures;
pub(super) use super::scalar::Scalar;
use super::template::{self, Filling, Number, ONLY_IN_FAMILIES, PROLOGUE, Use};

/// A scalar type, or a vector of two or more lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ty {
    pub scalar: Scalar,
    pub lanes: u16,
}

impl Ty {
    pub const I1: Ty = Ty { scalar: Scalar::I1, lanes: 1 };
    pub const I32: Ty = Ty { scalar: Scalar::I32, lanes: 1 };
    pub const I64: Ty = Ty { scalar: Scalar::I64, lanes: 1 };
    pub const PTR: Ty = Ty { scalar: Scalar::Ptr, lanes: 1 };

    /// The same lanes of another scalar.
    pub fn with_scalar(self, scalar: Scalar) -> Ty {
        Ty { scalar, ..self }
    }

    /// Other lanes of the same scalar.
    pub fn with_lanes(self, lanes: u16) -> Ty {
        Ty { lanes, ..self }
    }

    pub fn is_float(self) -> bool {
        matches!(self.scalar, Scalar::F32 | Scalar::F64 | Scalar::Half)
    }

    /// As in the names of overloaded intrinsics, such as `v4f32`.
    pub fn suffix(self) -> String {
        match self.lanes {
            1 => self.scalar.suffix().to_owned(),
            n => format!("v{n}{}", self.scalar.suffix()),
        }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lanes {
            1 => f.write_str(self.scalar.name()),
            n => write!(f, "<{n} x {}>", self.scalar.name()),
        }
    }
}

/// An operand: a constant, or the result of an instruction.
#[derive(Clone, Debug)]
pub(super) struct Val {
    pub ty: Ty,
    pub text: Rc<str>,
}

impl Val {
    pub fn new(ty: Ty, text: impl Into<Rc<str>>) -> Val {
        Val { ty, text: text.into() }
    }

    /// The same constant in each lane.
    fn splat(ty: Ty, text: String) -> Val {
        if ty.lanes == 1 {
            return Val::new(ty, text);
        }
        let lane = format!("{} {text}", ty.scalar.name());
        Val::new(ty, format!("<{}>", vec![lane; usize::from(ty.lanes)].join(", ")))
    }

    /// An integer constant, in each lane.
    pub fn int(ty: Ty, value: i64) -> Val {
        match (ty.scalar, value) {
            (Scalar::I1, v) => Val::splat(ty, if v & 1 != 0 { "true" } else { "false" }.to_owned()),
            (_, v) => Val::splat(ty, v.to_string()),
        }
    }

    /// A floating-point constant that the type holds exactly, in each lane.
    pub fn float(ty: Ty, value: f64) -> Val {
        Val::splat(ty, format!("0x{:016X}", value.to_bits()))
    }

    /// Zero, false or null.
    pub fn zero(ty: Ty) -> Val {
        let text = match (ty.lanes, ty.scalar) {
            (2.., _) => "zeroinitializer",
            (_, Scalar::Ptr) => "null",
            (_, Scalar::F32 | Scalar::F64 | Scalar::Half) => "0.0",
            (_, Scalar::I1) => "false",
            _ => "0",
        };
        Val::new(ty, text)
    }

    pub fn lanes(&self) -> u16 {
        self.ty.lanes
    }

    /// Whether this is the scalar integer constant.
    pub fn is_int(&self, value: i64) -> bool {
        self.ty.lanes == 1 && self.text.parse() == Ok(value)
    }
}

/// Type and name, as an argument is written.
impl fmt::Display for Val {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.ty, self.text)
    }
}

/// Texts by what makes each of them unique.
pub(super) type Texts = BTreeMap<String, String>;

/// What is written of one tensor function: templates of LLVM functions, and what they use. Each part is
/// keyed by what makes it unique.
pub(super) struct Shared {
    pub machine: Arc<MachineFeatures>,
    /// Declarations of intrinsics and functions from outside, by name.
    declares: RefCell<Texts>,
    /// Internal functions that are made on request, by name.
    helpers: RefCell<Texts>,
    /// Constants, by name.
    globals: RefCell<Texts>,
    /// Nodes in order of their number.
    metadata: RefCell<Vec<String>>,
    /// Function definitions in the order in which they were finished.
    functions: RefCell<Vec<String>>,
    /// The numbers that templates leave open.
    numbers: RefCell<Vec<Number>>,
}

/// The text of one tensor function: what [`Shared`] collected.
pub(super) struct Piece {
    pub declares: Texts,
    pub helpers: Texts,
    pub globals: Texts,
    /// Templates.
    pub metadata: Vec<String>,
    /// Templates; they are internal.
    pub functions: Vec<String>,
    pub numbers: Vec<Number>,
}

impl Shared {
    pub fn new(machine: Arc<MachineFeatures>) -> Shared {
        Shared {
            machine,
            declares: RefCell::default(),
            helpers: RefCell::default(),
            globals: RefCell::default(),
            metadata: RefCell::default(),
            functions: RefCell::default(),
            numbers: RefCell::default(),
        }
    }

    /// Declares a function, unless one of this name is.
    pub fn declare(&self, name: &str, declaration: impl FnOnce() -> String) {
        once(&self.declares, name, declaration);
    }

    /// Makes a helper function, unless it is there. `build` may ask for further ones.
    pub fn helper(&self, name: &str, build: impl FnOnce(&Shared) -> String) {
        once(&self.helpers, name, || {
            let template = build(self);
            let numbers = template::fixed(&self.numbers.borrow());
            Filling { symbol: name, first_node: 0, numbers: &numbers, argument: None }
                .fill(&template)
        });
    }

    /// The mark for a number that may be another one in functions that are alike.
    pub fn number(&self, value: i64, what: Use) -> String {
        let mut numbers = self.numbers.borrow_mut();
        numbers.push((value, what));
        template::number(numbers.len() - 1)
    }

    /// Makes a constant, unless it is there.
    pub fn global(&self, name: &str, build: impl FnOnce() -> String) {
        once(&self.globals, name, build);
    }

    /// Adds a function definition.
    pub fn function(&self, text: String) {
        self.functions.borrow_mut().push(text);
    }

    /// Adds a metadata node; the text is made from the mark of its number, which comes back.
    pub fn node(&self, text: impl FnOnce(&str) -> String) -> String {
        let mut metadata = self.metadata.borrow_mut();
        let id = template::node(metadata.len());
        let text = text(&id);
        metadata.push(format!("!{id} = {text}"));
        id
    }

    /// What was written.
    pub fn finish(self) -> Piece {
        Piece {
            declares: self.declares.into_inner(),
            helpers: self.helpers.into_inner(),
            globals: self.globals.into_inner(),
            metadata: self.metadata.into_inner(),
            functions: self.functions.into_inner(),
            numbers: self.numbers.into_inner(),
        }
    }
}

/// From how many iterations on LLVM compiles a loop in the same way whether it knows their number or not.
const LONG_LOOP: i64 = 65;

/// Makes a text, unless one of this name is there.
fn once(texts: &RefCell<Texts>, name: &str, build: impl FnOnce() -> String) {
    if !texts.borrow().contains_key(name) {
        let text = build();
        texts.borrow_mut().insert(name.to_owned(), text);
    }
}

/// The body of one function.
pub(super) struct Code<'m> {
    pub shared: &'m Shared,
    body: String,
    /// Stack memory, which belongs at the start of the entry block.
    allocas: String,
    next: u32,
    /// Label of the block that is being written.
    label: Rc<str>,
    /// Whether a product and the sum that it goes into may round once.
    pub contract: bool,
}

impl<'m> Code<'m> {
    pub fn new(shared: &'m Shared) -> Code<'m> {
        Code {
            shared,
            body: String::new(),
            allocas: String::new(),
            next: 0,
            label: "entry".into(),
            contract: false,
        }
    }

    /// The definition, from `define` up to and including the parameters and attributes.
    pub fn finish(self, head: &str) -> String {
        format!("{head} {{\nentry:\n{}{PROLOGUE}{}}}\n", self.allocas, self.body)
    }

    /// An instruction that is there only where the function is that of a family.
    pub fn line_in_families(&mut self, text: fmt::Arguments<'_>) {
        let _ = write!(self.body, "{ONLY_IN_FAMILIES}  {text}\n{ONLY_IN_FAMILIES}");
    }

    fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    /// A name for a value that is defined later, such as the next value of a loop variable.
    pub fn name(&mut self, ty: Ty) -> Val {
        let n = self.fresh();
        Val::new(ty, format!("%v{n}"))
    }

    pub fn new_label(&mut self, hint: &str) -> Rc<str> {
        format!("{hint}{}", self.fresh()).into()
    }

    /// The label of the block that is being written.
    pub fn label(&self) -> Rc<str> {
        self.label.clone()
    }

    /// Starts a block.
    pub fn begin(&mut self, label: &Rc<str>) {
        let _ = writeln!(self.body, "{label}:");
        self.label = label.clone();
    }

    /// An instruction without a result.
    pub fn line(&mut self, text: fmt::Arguments<'_>) {
        let _ = writeln!(self.body, "  {text}");
    }

    /// An instruction with a result.
    pub fn emit(&mut self, ty: Ty, text: fmt::Arguments<'_>) -> Val {
        let v = self.name(ty);
        let _ = writeln!(self.body, "  {} = {text}", v.text);
        v
    }

    /// An instruction with a result whose name was given out before.
    pub fn define(&mut self, v: &Val, text: fmt::Arguments<'_>) {
        let _ = writeln!(self.body, "  {} = {text}", v.text);
    }

    pub fn jump(&mut self, to: &str) {
        self.line(format_args!("br label %{to}"));
    }

    pub fn branch(&mut self, cond: &Val, then: &str, otherwise: &str) {
        self.line(format_args!("br {cond}, label %{then}, label %{otherwise}"));
    }

    /// The address of a constant of these bytes, of which there is one in the module.
    pub fn bytes(&mut self, kind: &str, align: usize, bytes: &[u8]) -> Val {
        let name = format!("tw.{kind}.{}", blake3::hash(bytes).to_hex());
        self.shared.global(&name, || {
            let mut escaped = String::with_capacity(bytes.len());
            for b in bytes {
                match b {
                    b' '..=b'~' if !matches!(b, b'"' | b'\\') => escaped.push(char::from(*b)),
                    _ => escaped.push_str(&format!("\\{b:02X}")),
                }
            }
            let n = bytes.len();
            format!(
                "@{name} = private unnamed_addr constant [{n} x i8] c\"{escaped}\", align {align}"
            )
        });
        Val::new(Ty::PTR, format!("@{name}"))
    }

    /// Stack memory of `bytes` at a 64-byte boundary, for the whole run of the function.
    pub fn alloca(&mut self, element: Scalar, count: usize) -> Val {
        let v = self.name(Ty::PTR);
        let element = element.name();
        let _ = writeln!(self.allocas, "  {} = alloca [{count} x {element}], align 64", v.text);
        v
    }

    /// Stack memory of a type that is written out.
    pub fn alloca_struct(&mut self, ty: &str) -> Val {
        let v = self.name(Ty::PTR);
        let _ = writeln!(self.allocas, "  {} = alloca {ty}, align 64", v.text);
        v
    }

    /// `op a, b`, with a result of the operands' type.
    pub fn bin(&mut self, op: &str, a: &Val, b: &Val) -> Val {
        self.emit(a.ty, format_args!("{op} {a}, {}", b.text))
    }

    /// `icmp` or `fcmp`.
    pub fn cmp(&mut self, op: &str, a: &Val, b: &Val) -> Val {
        self.emit(a.ty.with_scalar(Scalar::I1), format_args!("{op} {a}, {}", b.text))
    }

    pub fn select(&mut self, cond: &Val, t: &Val, f: &Val) -> Val {
        self.emit(t.ty, format_args!("select {cond}, {t}, {f}"))
    }

    /// `t` where a comparison of `a` and `b` holds, `f` elsewhere.
    pub fn select_cmp(&mut self, op: &str, a: &Val, b: &Val, t: &Val, f: &Val) -> Val {
        let cond = self.cmp(op, a, b);
        self.select(&cond, t, f)
    }

    /// A conversion instruction.
    pub fn convert(&mut self, op: &str, v: &Val, to: Scalar) -> Val {
        let ty = v.ty.with_scalar(to);
        self.emit(ty, format_args!("{op} {v} to {ty}"))
    }

    /// `a` converted to 64 bits, with its sign or with zeros.
    pub fn widen(&mut self, v: &Val, signed: bool) -> Val {
        match (v.ty.scalar, signed) {
            (Scalar::I64, _) => v.clone(),
            (Scalar::I1, _) | (_, false) => self.convert("zext", v, Scalar::I64),
            (_, true) => self.convert("sext", v, Scalar::I64),
        }
    }

    /// A bound of a loop in 64 bits, with its sign.
    pub fn widen_bound(&mut self, v: &Val) -> Val {
        match v.text.parse() {
            Ok(value) => Val::int(Ty::I64, value),
            Err(_) => self.widen(v, true),
        }
    }

    /// Lanes of two vectors of one type, by their places in both.
    pub fn shuffle(&mut self, a: &Val, b: &Val, lanes: &[usize]) -> Val {
        let order: Vec<String> = lanes.iter().map(|l| format!("i32 {l}")).collect();
        let ty = Ty::I32.with_lanes(a.lanes());
        let text = format_args!("shufflevector {a}, {b}, {ty} <{}>", order.join(", "));
        self.emit(a.ty, text)
    }

    /// The first lanes of a vector, and lanes without a value behind where it has fewer.
    pub fn resized(&mut self, v: &Val, lanes: u16) -> Val {
        let has = v.lanes();
        let order: Vec<String> = (0..lanes)
            .map(|l| if l < has { format!("i32 {l}") } else { "i32 poison".to_owned() })
            .collect();
        let (from, ty) = (v.ty, Ty::I32.with_lanes(lanes));
        let text = format_args!("shufflevector {v}, {from} poison, {ty} <{}>", order.join(", "));
        self.emit(v.ty.with_lanes(lanes), text)
    }

    /// A mask of the first lanes.
    pub fn first_lanes(&self, count: u16, lanes: u16) -> Val {
        let each = (0..lanes).map(|l| format!("i1 {}", l < count));
        let text = format!("<{}>", each.collect::<Vec<_>>().join(", "));
        Val::new(Ty::I1.with_lanes(lanes), text)
    }

    /// `a + b` in 64 bits, without the trivial cases. `stays` says that the exact sum is known to fit.
    pub fn add_index(&mut self, a: &Val, b: &Val, stays: bool) -> Val {
        match () {
            () if a.is_int(0) => b.clone(),
            () if b.is_int(0) => a.clone(),
            () if stays => self.bin_of_numbers("add nsw", a, b),
            () => self.bin_of_numbers("add", a, b),
        }
    }

    /// An operator whose operands, where they are constants, may be others in functions that are alike.
    pub fn bin_of_numbers(&mut self, op: &str, a: &Val, b: &Val) -> Val {
        let [a, b] = [a, b].map(|v| self.left_open(v));
        self.bin(op, &a, &b)
    }

    /// A constant with a mark in the place of its text; any other value as it is.
    fn left_open(&self, v: &Val) -> Val {
        match (v.ty, v.text.parse()) {
            (Ty::I64 | Ty::I32, Ok(value)) => {
                let ty = v.ty.scalar.name();
                Val::new(v.ty, self.shared.number(value, Use::Operand(ty)))
            }
            _ => v.clone(),
        }
    }

    /// The end of a loop. LLVM unrolls short loops, for which it has to know how long they are.
    pub fn end_of_loop(&self, end: &Val) -> Val {
        match end.text.parse::<i64>() {
            Ok(LONG_LOOP..) => self.left_open(end),
            _ => end.clone(),
        }
    }

    /// `a * b` in 64 bits, without the trivial cases. `stays` says that the exact product is known to
    /// fit.
    pub fn mul_index(&mut self, a: &Val, b: &Val, stays: bool) -> Val {
        match () {
            () if a.is_int(0) || b.is_int(1) => a.clone(),
            () if b.is_int(0) || a.is_int(1) => b.clone(),
            () if stays => self.bin_of_numbers("mul nsw", a, b),
            () => self.bin_of_numbers("mul", a, b),
        }
    }

    /// The address of an element of a type, or of several; `inside` says that both this address and the pointer lie
    /// within the same memory.
    pub fn element_address(&mut self, pointer: &Val, element: Ty, at: &Val, inside: bool) -> Val {
        let bounds = if inside { " inbounds" } else { "" };
        let ty = Ty::PTR.with_lanes(at.lanes());
        self.emit(ty, format_args!("getelementptr{bounds} {element}, {pointer}, {at}"))
    }

    /// A scalar in each lane.
    pub fn splat(&mut self, v: &Val, lanes: u16) -> Val {
        if lanes == 1 || v.ty.lanes != 1 {
            return v.clone();
        }
        let ty = v.ty.with_lanes(lanes);
        let one = self.emit(ty, format_args!("insertelement {ty} poison, {v}, i64 0"));
        let zeros = Val::zero(Ty::I32.with_lanes(lanes));
        self.emit(ty, format_args!("shufflevector {one}, {ty} poison, {zeros}"))
    }

    /// One lane of a vector; a scalar is its own only lane.
    pub fn extract(&mut self, v: &Val, lane: u16) -> Val {
        match v.lanes() {
            1 => v.clone(),
            _ => self.emit(v.ty.with_lanes(1), format_args!("extractelement {v}, i64 {lane}")),
        }
    }

    /// A value whose lanes are made one after the other.
    pub fn lane_by_lane(&mut self, ty: Ty, mut make: impl FnMut(&mut Self, u16) -> Val) -> Val {
        if ty.lanes == 1 {
            return make(self, 0);
        }
        let mut all = Val::new(ty, "poison");
        for lane in 0..ty.lanes {
            let v = make(self, lane);
            all = self.emit(ty, format_args!("insertelement {all}, {v}, i64 {lane}"));
        }
        all
    }

    /// A number that is not below one bound and not above another, which may be `NaN`.
    pub fn clamp(&mut self, x: &Val, low: &Val, high: &Val) -> Val {
        let x = self.select_cmp("fcmp ogt", low, x, low, x);
        self.select_cmp("fcmp olt", high, &x, high, &x)
    }

    /// A call of an overloaded intrinsic; `over` are the types in its name.
    pub fn intrinsic(&mut self, base: &str, over: &[Ty], ret: Ty, args: &[&Val]) -> Val {
        let name = self.declare_intrinsic(base, over, &ret.to_string(), args);
        self.call(&name, ret, args)
    }

    /// Minimum or maximum of floats, `NaN` if either is, and either of `-0.0` and `0.0`.
    pub fn extreme(&mut self, base: &str, a: &Val, b: &Val) -> Val {
        let (ty, args) = (a.ty, [a, b]);
        let name = self.declare_intrinsic(base, &[ty], &ty.to_string(), &args);
        let args = arguments(&args);
        self.emit(ty, format_args!("call nsz {ty} @{name}({args})"))
    }

    /// A call of an intrinsic without a result.
    pub fn intrinsic_void(&mut self, base: &str, over: &[Ty], args: &[&Val]) {
        let name = self.declare_intrinsic(base, over, "void", args);
        let args = arguments(args);
        self.line(format_args!("call void @{name}({args})"));
    }

    fn declare_intrinsic(&self, base: &str, over: &[Ty], ret: &str, args: &[&Val]) -> String {
        let suffix: String = over.iter().map(|t| format!(".{}", t.suffix())).collect();
        let name = format!("llvm.{base}{suffix}");
        self.shared.declare(&name, || {
            let args: Vec<String> = args.iter().map(|a| a.ty.to_string()).collect();
            format!("declare {ret} @{name}({})", args.join(", "))
        });
        name
    }

    /// A math intrinsic that is overloaded on the type of its operands and result.
    pub fn math(&mut self, base: &str, args: &[&Val]) -> Val {
        let ty = args.first().map_or(Ty::I32, |a| a.ty);
        self.intrinsic(base, &[ty], ty, args)
    }

    /// `a * b + c`, with one rounding where the machine does that in one instruction.
    pub fn fma(&mut self, a: &Val, b: &Val, c: &Val) -> Val {
        self.math("fmuladd", &[a, b, c])
    }

    /// A call of a function by name.
    pub fn call(&mut self, name: &str, ret: Ty, args: &[&Val]) -> Val {
        let args = arguments(args);
        self.emit(ret, format_args!("call {ret} @{name}({args})"))
    }

    /// Whether any lane is true.
    pub fn any(&mut self, v: &Val) -> Val {
        match v.lanes() {
            1 => v.clone(),
            _ => self.intrinsic("vector.reduce.or", &[v.ty], Ty::I1, &[v]),
        }
    }

    /// Complement of a truth value.
    pub fn not(&mut self, v: &Val) -> Val {
        self.bin("xor", v, &Val::int(v.ty, 1))
    }

    /// The value by the way that was taken here: one value for each predecessor.
    pub fn phi(&mut self, ways: &[(&Val, &str)]) -> Val {
        let ty = ways.first().map_or(Ty::I32, |(v, _)| v.ty);
        let list: Vec<String> = ways.iter().map(|(v, l)| format!("[ {}, %{l} ]", v.text)).collect();
        self.emit(ty, format_args!("phi {ty} {}", list.join(", ")))
    }
}

/// Arguments as they are written in a call.
pub(super) fn arguments(args: &[&Val]) -> String {
    args.iter().map(|a| a.to_string()).collect::<Vec<_>>().join(", ")
}
