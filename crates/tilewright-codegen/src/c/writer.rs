//! The state while the text of a kernel is written: lines, names, and what is known of values.
//!
//! A value that several parts of an expression share gets a variable of its own, known as long as memory
//! is not written and its block is open; all else is text inside of text. An expression of several lanes is
//! written for one lane, inside of a loop over the lanes.

use std::fmt::Display;
use std::mem;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::index::Ranges;
use tilewright_ir::{Buffer, DType, Error, Expr, Result, Span, Stmt, Var};
use tilewright_target::Target;

use super::helpers::Helpers;
use super::threads::{Extents, Varying};
use super::types;
use crate::emit::Assertion;

/// What arithmetic a device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arithmetic {
    /// `float64`.
    pub doubles: bool,
    /// A product and a sum that round once, as fast as one of them.
    pub fma: bool,
    /// Types of several lanes.
    pub vectors: bool,
    /// Instructions that the lanes of a warp execute together (`mma.sync`).
    pub mma: bool,
}

impl Arithmetic {
    /// The features by which a target says so, in the order of the fields.
    const FEATURES: [&'static str; 4] = ["fp64", "fma", "vectors", "mma"];

    pub fn from_target(target: &Target) -> Arithmetic {
        let [doubles, fma, vectors, mma] =
            Self::FEATURES.map(|name| target.known_features().has(name));
        Arithmetic { doubles, fma, vectors, mma }
    }

    /// Whether memory is accessed by up to 16 bytes at once, where it begins at a multiple of that: so it is on all
    /// machines with instructions of warps.
    pub(super) fn is_wide(self) -> bool {
        self.mma
    }

    /// What [`Target::features`] is for it.
    pub fn features(self) -> String {
        let all = Self::FEATURES.iter().zip([self.doubles, self.fma, self.vectors, self.mma]);
        let there = all.filter(|(_, is_there)| *is_there).map(|(name, _)| format!("+{name}"));
        there.collect::<Vec<_>>().join(",")
    }
}

/// Memory as a kernel sees it.
#[derive(Clone, Debug)]
pub(super) struct KernelMemory {
    /// The pointer, or the image.
    pub name: String,
    /// `__global`, `__local`, or nothing.
    pub space: &'static str,
    /// The elements that the pointer points to.
    pub dtype: DType,
    /// Whether it is an image.
    pub image: bool,
}

/// The lane that is written.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    pub name: String,
    pub lanes: u16,
}

/// Whether a name stands for all lanes of a value, or for the one that is written.
type Whole = bool;

/// A kernel under construction.
pub(super) struct Writer {
    pub out: String,
    pub indent: usize,
    /// The names of variables; those of several lanes are arrays.
    pub vars: HashMap<Var, String>,
    /// The memory behind the pointers of buffers.
    pub places: HashMap<Var, KernelMemory>,
    pub ranges: Ranges,
    pub lane: Option<Lane>,
    /// An array with the lanes that take part.
    pub mask: Option<Lane>,
    /// Whether a product may round together with the sum that it goes into.
    pub contract: bool,
    pub helpers: Helpers,
    pub arithmetic: Arithmetic,
    pub assertions: Vec<Assertion>,
    /// Memory that a group shares, which is declared at the head of a kernel.
    pub shared: Vec<String>,
    /// Those of them whose writers wait for the next barrier in any case, where the machine copies meanwhile.
    pub filled_ahead: HashSet<Var>,
    /// The extents of groups and threads.
    pub extents: Extents,
    /// What differs from thread to thread.
    pub varying: Varying,
    /// Whether threads may not all come here.
    pub diverged: bool,
    /// How many loops over threads stand around.
    pub inside: usize,
    /// Whether threads wait for one another.
    pub waits: bool,
    /// Whether it is code of the host: an assertion that fails gives its code as the result.
    pub is_host: bool,
    /// An assertion, which ends a thread that fails.
    pub asserted: Option<Stmt>,
    pub depth: usize,
    pub nodes: usize,
    scopes: Vec<HashMap<(usize, Whole), (Expr, String)>>,
    count: usize,
}

/// Deepest nesting of nodes.
const MAX_DEPTH: usize = 1000;

/// Most nodes that one function evaluates.
const MAX_NODES: usize = 500_000;

impl Writer {
    pub fn new(arithmetic: Arithmetic, assertions: Vec<Assertion>) -> Writer {
        Writer {
            out: String::new(),
            indent: 1,
            vars: HashMap::default(),
            places: HashMap::default(),
            ranges: Ranges::default(),
            lane: None,
            mask: None,
            contract: false,
            helpers: Helpers::default(),
            arithmetic,
            assertions,
            shared: Vec::new(),
            filled_ahead: HashSet::default(),
            extents: Extents::default(),
            varying: Varying::default(),
            diverged: false,
            inside: 0,
            waits: false,
            is_host: false,
            asserted: None,
            depth: 0,
            nodes: 0,
            scopes: vec![HashMap::default()],
            count: 0,
        }
    }

    /// A name that nothing else has, with a hint in it.
    pub fn name(&mut self, hint: &str) -> String {
        let hint: String = hint
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .take(24)
            .collect();
        let front = if hint.starts_with(|c: char| c.is_ascii_alphabetic()) { "" } else { "v" };
        self.count += 1;
        format!("{front}{hint}_{}", self.count)
    }

    pub fn line(&mut self, text: impl Display) {
        let indent = "    ".repeat(self.indent);
        self.out += &format!("{indent}{text}\n");
    }

    /// Writes what is inside of braces behind a head.
    pub fn braced<T>(
        &mut self,
        head: impl Display,
        inside: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.line(format_args!("{head} {{"));
        let result = self.indented(inside)?;
        self.line("}");
        Ok(result)
    }

    fn indented<T>(&mut self, inside: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.indent += 1;
        self.scopes.push(HashMap::default());
        let result = inside(self);
        self.scopes.pop();
        self.indent -= 1;
        result
    }

    /// What is written before a value, apart, and the value.
    pub fn captured<T>(
        &mut self,
        value: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(String, T)> {
        let before = mem::take(&mut self.out);
        let value = self.indented(value);
        let text = mem::replace(&mut self.out, before);
        Ok((text, value?))
    }

    /// Writes a loop over lanes, and what is inside of it for the lane.
    pub fn each_lane(
        &mut self,
        lanes: u16,
        inside: impl FnOnce(&mut Self, &str) -> Result<()>,
    ) -> Result<()> {
        let name = self.name("lane");
        let old = self.lane.replace(Lane { name: name.clone(), lanes });
        let head = format!("for (int {name} = 0; {name} < {lanes}; ++{name})");
        let done = self.braced(head, |w| match w.mask.clone() {
            Some(mask) if mask.lanes != lanes => Err(Error::unsupported(format!(
                "an access of {lanes} lanes cannot stand under a condition of {} lanes",
                mask.lanes
            ))),
            Some(mask) => w.braced(format!("if ({}[{name}])", mask.name), |w| inside(w, &name)),
            None => inside(w, &name),
        });
        self.lane = old;
        done
    }

    /// The text of a value that is known.
    pub fn known(&self, e: &Expr) -> Option<String> {
        self.find_known(e, false)
    }

    /// The text of a vector that is known.
    pub fn known_vector(&self, e: &Expr) -> Option<String> {
        self.find_known(e, true)
    }

    fn find_known(&self, e: &Expr, whole: Whole) -> Option<String> {
        let key = (e.address(), whole);
        self.scopes.iter().rev().find_map(|s| s.get(&key)).map(|(_, v)| v.clone())
    }

    /// Gives a value a variable, which is known from here on.
    pub fn remember(&mut self, e: &Expr, text: &str) -> Result<String> {
        let ty = types::value(e.dtype())?;
        Ok(self.remember_as(e, ty, text, false))
    }

    /// The same for a vector, of the type of this name.
    pub fn remember_vector(&mut self, e: &Expr, ty: &str, text: &str) -> String {
        self.remember_as(e, ty, text, true)
    }

    fn remember_as(&mut self, e: &Expr, ty: &str, text: &str, whole: Whole) -> String {
        let name = self.name("t");
        self.line(format_args!("const {ty} {name} = {text};"));
        self.know(e, &name, whole);
        name
    }

    /// A vector has this name from here on.
    pub fn know_vector(&mut self, e: &Expr, name: &str) {
        self.know(e, name, true);
    }

    fn know(&mut self, e: &Expr, name: &str, whole: Whole) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert((e.address(), whole), (e.clone(), name.to_owned()));
        }
    }

    /// Forgets values, because memory may have changed.
    pub fn forget(&mut self) {
        self.scopes.iter_mut().for_each(HashMap::clear);
    }

    /// Counts nesting and nodes, so that a hostile program is an error.
    pub fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        self.nodes += 1;
        if self.depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return Err(Error::unsupported(format!(
                "the code is nested deeper than {MAX_DEPTH} nodes, or has more than {MAX_NODES}"
            )));
        }
        Ok(())
    }

    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    /// The memory of a buffer.
    pub fn place(&self, buffer: &Buffer) -> Result<&KernelMemory> {
        self.places.get(&buffer.data).ok_or_else(|| {
            Error::malformed(format!("buffer `{}` is used where it has no memory", buffer.name))
        })
    }

    /// Refuses a type that the device lacks.
    pub fn check_type(&self, dtype: DType, at: Option<Span>) -> Result<()> {
        if dtype.scalar() == DType::F64 && !self.arithmetic.doubles {
            return Err(Error::unsupported("this device has no float64").at(at));
        }
        types::value(dtype).map(drop).map_err(|e| e.at(at))
    }
}
