//! Compiling a function: variables to slots, buffers to places in memories, statements to
//! closures that say whether to go on.

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::update::update;
use tilewright_ir::{
    AtOnce, Block, Buffer, CallTarget, Error, Expr, ExprKind, IterKind, MatchRegion, Region,
    Result, Span, Stmt, StmtKind, Var,
};

use crate::RunOptions;
use crate::alias::Memories;
use crate::code::{Affine, Code, Int, ValueCode, range_of};
use crate::machine::{Cell, Location, Machine, UNDEF, UNWRITTEN};
use crate::place::{Access, BufferView, Dim, Ext, Watching};
use crate::race::{Act, Watched};

/// Nodes that may be compiled; a tree with shared parts may be larger than its memory.
const NODES: usize = 20_000_000;

/// A compiled variable.
#[derive(Clone, Debug)]
pub struct Bound {
    /// First slot; one a lane.
    pub slot: usize,
    /// A sum of multiples of other variables, where it is that instead.
    pub affine: Option<Affine>,
    /// Smallest value, of integers.
    pub lo: i64,
    /// Largest value, of integers.
    pub hi: i64,
}

/// A loop around whose iterations run at once.
struct Around {
    number: usize,
    watched: Watched,
    /// Memories that belong to one iteration.
    own: HashSet<usize>,
}

/// A compiled statement: whether to go on.
pub type Run = Code<bool>;

/// The state of compiling a function.
pub struct Compiler<'o> {
    pub options: &'o RunOptions,
    pub memories: Memories,
    pub vars: HashMap<Var, Bound>,
    pub places: HashMap<Buffer, Arc<BufferView>>,
    /// Number of slots so far.
    pub slots: usize,
    /// Whether an assumption is being compiled, in which `A[i] == T.undef()` is a permission.
    pub assuming: bool,
    /// Whether loop nests may run in batches.
    pub batching: bool,
    /// Number of loops so far whose iterations run at once.
    pub watches: usize,
    /// Those around, outermost first.
    watching: Vec<Around>,
    /// The cell that a store updates by an operator that commutes; loads of it are a part of that.
    pub updating: Option<(Buffer, Vec<Expr>)>,
    loops: Vec<(Arc<str>, usize)>,
    block: Option<Arc<str>>,
    span: Option<Span>,
    nodes: usize,
}

impl<'o> Compiler<'o> {
    /// A compiler that knows nothing yet but the memories.
    pub fn new(options: &'o RunOptions, memories: Memories) -> Self {
        Compiler {
            options,
            memories,
            vars: HashMap::default(),
            places: HashMap::default(),
            slots: 0,
            assuming: false,
            batching: options.batches,
            watches: 0,
            watching: Vec::new(),
            updating: None,
            loops: Vec::new(),
            block: None,
            span: None,
            nodes: 0,
        }
    }

    /// Counts a node.
    pub fn spend(&mut self) -> Result<()> {
        self.nodes += 1;
        if self.nodes > NODES {
            Err(Error::unsupported(format!("a function of more than {NODES} nodes")))
        } else {
            Ok(())
        }
    }

    /// Gives a variable slots.
    pub fn define(&mut self, v: &Var, lo: i64, hi: i64) -> usize {
        let slot = self.slot(usize::from(v.dtype().lanes));
        self.vars.insert(v.clone(), Bound { slot, lo, hi, affine: None });
        slot
    }

    fn slot(&mut self, count: usize) -> usize {
        let slot = self.slots;
        self.slots += count;
        slot
    }

    fn location(&self) -> Arc<Location> {
        Arc::new(Location { span: self.span, block: self.block.clone(), loops: self.loops.clone() })
    }

    /// An integer as a number that is known or computed into a slot; the code goes to `setup`.
    fn ext(&mut self, e: &Expr, setup: &mut Vec<Code<()>>) -> Result<Ext> {
        let value = self.int(e)?;
        Ok(self.store_ext(value, setup))
    }

    fn store_ext(&mut self, value: Int, setup: &mut Vec<Code<()>>) -> Ext {
        if let Some(v) = value.as_const() {
            return Ext::Const(v);
        }
        if let Some(slot) = value.affine().and_then(Affine::as_slot) {
            return Ext::Slot(slot);
        }
        let slot = self.slot(1);
        let code = value.code();
        setup.push(Box::new(move |m| m.frame[slot] = code(m) as u64));
        Ext::Slot(slot)
    }

    /// A buffer that lies in a memory by its own shape, strides and offset.
    pub fn place(
        &mut self,
        b: &Buffer,
        memory: usize,
        setup: &mut Vec<Code<()>>,
    ) -> Result<Arc<BufferView>> {
        let mut exts =
            |all: &[Expr]| -> Result<Vec<Ext>> { all.iter().map(|e| self.ext(e, setup)).collect() };
        let (extents, strides) = (exts(&b.shape)?, exts(&b.strides)?);
        let strides = if strides.is_empty() { self.compact(&extents, setup) } else { strides };
        let offset = match &b.elem_offset {
            Some(e) => self.ext(e, setup)?,
            None => Ext::Const(0),
        };
        let dims = extents.into_iter().zip(strides);
        let dims = dims.map(|(extent, stride)| Dim { extent, stride, outer: Vec::new() });
        let place = Arc::new(BufferView {
            name: b.name.clone(),
            memory,
            dtype: b.dtype(),
            dims: dims.collect(),
            offset,
            border: b.border().is_some(),
        });
        self.places.insert(b.clone(), place.clone());
        Ok(place)
    }

    /// Strides of a row-major buffer without gaps.
    pub fn compact(&mut self, extents: &[Ext], setup: &mut Vec<Code<()>>) -> Vec<Ext> {
        let mut strides = vec![Ext::Const(1); extents.len()];
        let mut stride = Ext::Const(1);
        for (to, &extent) in strides.iter_mut().zip(extents).rev() {
            *to = stride;
            stride = match (stride, extent) {
                (Ext::Const(a), Ext::Const(b)) => Ext::Const(a.saturating_mul(b)),
                (a, b) => {
                    let slot = self.slot(1);
                    setup.push(Box::new(move |m| {
                        m.frame[slot] = a.get(m).saturating_mul(b.get(m)) as u64;
                    }));
                    Ext::Slot(slot)
                }
            };
        }
        strides
    }

    /// The loops that have to know of an access to a buffer.
    pub fn watching(&self, buffer: &Buffer, act: Act) -> Option<Box<Watching>> {
        let number = self.memories.number(buffer);
        let info = self.memories.info.get(number).filter(|i| i.written)?;
        let loops = self.watching.iter().filter(|w| !w.own.contains(&number));
        let loops: Vec<(usize, Watched)> = loops.map(|w| (w.number, w.watched.clone())).collect();
        let cells = (buffer.dtype().bytes() / info.cell.max(1)).max(1);
        (!loops.is_empty()).then(|| Box::new(Watching { loops, act, cells }))
    }

    /// What a store does to its cell, for the loops that have to know of it.
    pub fn act(&self, buffer: &Buffer, indices: &[Expr], value: &Expr) -> Act {
        if self.watching.is_empty() {
            Act::Write
        } else {
            update(buffer, indices, value).map_or(Act::Write, Act::Update)
        }
    }

    /// Code that makes the memory of a buffer.
    fn allocation(&mut self, b: &Buffer) -> Result<Run> {
        let mut setup = Vec::new();
        let number = self.memories.number(b);
        self.watching.iter_mut().for_each(|w| {
            w.own.insert(number);
        });
        let place = self.place(b, number, &mut setup)?;
        let info = self.memories.info.get(number);
        let cell = info.map_or(1, |i| i.cell);
        let lenient = self.options.lenient();
        let location = self.location();
        Ok(Box::new(move |m| {
            setup.iter().for_each(|code| code(m));
            match place.bytes(m) {
                Some(bytes) => {
                    m.allocate(number, bytes, cell, if lenient { UNDEF } else { UNWRITTEN });
                    if lenient {
                        m.scramble(number, place.dtype.scalar());
                    }
                }
                None => m.fail(format!("buffer `{}` has no sane size", place.name)),
            }
            m.fine(&location)
        }))
    }

    /// Code that enters a view of a region.
    fn view(&mut self, view: &MatchRegion) -> Result<Run> {
        let Region { buffer: source, ranges } = &view.source;
        let Some(source) = self.places.get(source).cloned() else {
            return Err(Error::internal(format!("buffer `{}` has no place", source.name)));
        };
        let b = &view.buffer;
        let mut setup = Vec::new();
        let left_out = ranges.len().saturating_sub(b.rank());
        let mut dims = Vec::new();
        let mut fixed = Vec::new();
        let mut starts = Vec::new();
        for (axis, (range, d)) in ranges.iter().zip(&source.dims).enumerate() {
            let start = self.ext(&range.min, &mut setup)?;
            starts.push((start, d.stride));
            if axis < left_out {
                fixed.push((axis, start, d.clone()));
                continue;
            }
            let shape = b.shape.get(axis - left_out).unwrap_or(&range.extent);
            let extent = self.ext(shape, &mut setup)?;
            let declared = self.ext(&range.extent, &mut setup)?;
            let mut outer = vec![(start, d.extent)];
            outer.extend(d.outer.iter().copied());
            dims.push((Dim { extent, stride: d.stride, outer }, declared));
        }
        let slot = self.slot(1);
        let base = source.offset;
        setup.push(Box::new(move |m| {
            let offset = starts.iter().fold(base.get(m), |sum, (start, stride)| {
                sum.wrapping_add(start.get(m).wrapping_mul(stride.get(m)))
            });
            m.frame[slot] = offset as u64;
        }));
        let offset = Ext::Slot(slot);
        // Strides and offset of the view: variables are bound to what they are, anything else
        // must be what they are.
        let mut equal: Vec<(&str, Ext, Ext, Ext)> = Vec::new();
        let strides = dims.iter().map(|(d, _)| (d.stride, d.extent));
        let strides: Vec<(Ext, Ext)> = strides.collect();
        let given = b.strides.iter().zip(strides).map(|(e, (s, n))| ("stride", e, s, n));
        let given: Vec<_> = given.collect();
        let two = Ext::Const(2);
        let given =
            given.into_iter().chain(b.elem_offset.iter().map(|e| ("offset", e, offset, two)));
        for (what, e, actual, extent) in given {
            match e.as_var().filter(|v| !self.vars.contains_key(v)) {
                Some(v) => {
                    let (lo, hi) = range_of(v.dtype());
                    let slot = self.define(v, lo, hi);
                    setup.push(Box::new(move |m| m.frame[slot] = actual.get(m) as u64));
                }
                None => {
                    let declared = self.ext(e, &mut setup)?;
                    equal.push((what, declared, actual, extent));
                }
            }
        }
        let extents: Vec<(Ext, Ext)> = dims.iter().map(|(d, n)| (d.extent, *n)).collect();
        let place = Arc::new(BufferView {
            name: b.name.clone(),
            memory: source.memory,
            dtype: source.dtype,
            dims: dims.into_iter().map(|(d, _)| d).collect(),
            offset,
            border: false,
        });
        self.places.insert(b.clone(), place);
        let location = self.location();
        let (name, source_name) = (b.name.clone(), source.name.clone());
        Ok(Box::new(move |m| {
            setup.iter().for_each(|code| code(m));
            for (axis, start, d) in &fixed {
                let mut at = start.get(m);
                let mut inside = (0..d.extent.get(m)).contains(&at);
                for (first, extent) in &d.outer {
                    at = at.wrapping_add(first.get(m));
                    inside &= (0..extent.get(m)).contains(&at);
                }
                if !inside {
                    let at = start.get(m);
                    m.fail(format!(
                        "view `{name}` starts at index {at} of axis {axis} of `{source_name}`, which is out of range"
                    ));
                }
            }
            for (extent, declared) in &extents {
                let (a, b) = (extent.get(m), declared.get(m));
                if a != b {
                    m.fail(format!("view `{name}` has an extent of {a}, but its region has {b}"));
                }
            }
            for (what, declared, actual, extent) in &equal {
                let (declared, actual) = (declared.get(m), actual.get(m));
                if declared != actual && extent.get(m) > 1 {
                    m.fail(format!("{what} of view `{name}` is {actual}, not {declared}"));
                }
            }
            m.fine(&location)
        }))
    }

    /// Compiles a statement.
    pub fn stmt(&mut self, s: &Stmt) -> Result<Run> {
        self.spend()?;
        let outer = self.span;
        self.span = s.span().or(outer);
        let run = self.stmt_kind(s).map_err(|e| e.at(self.span));
        self.span = outer;
        run
    }

    fn stmt_kind(&mut self, s: &Stmt) -> Result<Run> {
        let location = self.location();
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => self.store(buffer, indices, value),
            StmtKind::For { .. } => {
                let nest = self.batches(s);
                // With batches, the loops only report what goes wrong.
                let inner = self.batching && nest.is_none();
                let before = std::mem::replace(&mut self.batching, inner);
                let loops = self.serial(s, location);
                self.batching = before;
                Ok(match nest {
                    Some(nest) => nest.or(loops?),
                    None => loops?,
                })
            }
            StmtKind::If { cond, then, otherwise } => {
                let lanes = usize::from(cond.dtype().lanes);
                let cond = self.int(cond)?.code();
                let then = self.stmt(then)?;
                let otherwise = otherwise.as_ref().map(|s| self.stmt(s)).transpose()?;
                if lanes > 1 {
                    return Ok(masked((lanes, cond), then, otherwise, location));
                }
                Ok(Box::new(move |m| {
                    let taken = cond(m) != 0;
                    if !m.fine(&location) {
                        return false;
                    }
                    match (taken, &otherwise) {
                        (true, _) => then(m),
                        (false, Some(otherwise)) => otherwise(m),
                        (false, None) => true,
                    }
                }))
            }
            StmtKind::Let { var, body, .. } if self.memories.numbers.contains_key(var) => {
                self.stmt(body)
            }
            StmtKind::Let { var, value, body } => {
                let lanes = usize::from(var.dtype().lanes);
                let set = self.bind(var, value)?;
                let body = self.stmt(body)?;
                Ok(Box::new(move |m| {
                    for lane in 0..lanes {
                        m.lane = lane;
                        set(m);
                    }
                    m.lane = 0;
                    m.fine(&location) && body(m)
                }))
            }
            StmtKind::Seq(stmts) => {
                let stmts: Result<Vec<Run>> = stmts.iter().map(|s| self.stmt(s)).collect();
                let stmts = stmts?;
                Ok(Box::new(move |m| stmts.iter().all(|s| s(m))))
            }
            StmtKind::Allocate { buffer, body, .. } => {
                let make = self.allocation(buffer)?;
                let body = self.stmt(body)?;
                Ok(Box::new(move |m| make(m) && body(m)))
            }
            StmtKind::Constant { buffer, value, body } => {
                let make = self.allocation(buffer)?;
                let (number, value) = (self.memories.number(buffer), value.clone());
                let body = self.stmt(body)?;
                Ok(Box::new(move |m| {
                    if !make(m) {
                        return false;
                    }
                    m.fill(number, value.bytes());
                    body(m)
                }))
            }
            StmtKind::Declare { buffer, body } => {
                let mut setup = Vec::new();
                let number = self.memories.number(buffer);
                self.place(buffer, number, &mut setup)?;
                let body = self.stmt(body)?;
                Ok(Box::new(move |m| {
                    setup.iter().for_each(|code| code(m));
                    m.fine(&location) && body(m)
                }))
            }
            StmtKind::Block { bindings, predicate, block } => {
                let outer = self.block.clone();
                let run = self.block(bindings, predicate, block);
                self.block = outer;
                run
            }
            StmtKind::Assume(e) => {
                self.assuming = true;
                let value = self.value(e);
                self.assuming = false;
                let code = value?.cell();
                let text = tilewright_ir::text::brief(e);
                Ok(Box::new(move |m| {
                    let Cell { bits, undef } = code(m);
                    if undef {
                        m.fail(format!("assumption `{text}` is about an arbitrary value"));
                    } else if bits == 0 {
                        m.fail(format!("assumption `{text}` does not hold"));
                    }
                    m.fine(&location)
                }))
            }
            StmtKind::Assert { cond, message, values } => {
                let cond = self.int(cond)?.code();
                let message = message.clone();
                let values = values.iter().map(|e| Ok(self.int(e)?.code()));
                let values = values.collect::<Result<Vec<_>>>()?;
                Ok(Box::new(move |m| {
                    if cond(m) == 0 {
                        let values: Vec<i64> = values.iter().map(|value| value(m)).collect();
                        let text = tilewright_ir::text::fill(&message, &values);
                        m.fail(format!("assertion failed: {text}"));
                    }
                    m.fine(&location)
                }))
            }
            StmtKind::Evaluate(e) => self.evaluate(e, location),
        }
    }

    /// A loop, one iteration after the other.
    fn serial(&mut self, s: &Stmt, location: Arc<Location>) -> Result<Run> {
        let StmtKind::For { var, range, kind, body, .. } = s.kind() else {
            return Err(Error::internal("a loop that is none"));
        };
        let (min, extent) = (self.int(&range.min)?, self.int(&range.extent)?);
        let watch = AtOnce::from_kind(kind).map(|how| {
            let watched = Watched { name: var.name().clone(), how };
            let number = self.watches;
            self.watches += 1;
            self.watching.push(Around { number, watched, own: HashSet::default() });
            number
        });
        let (least, most) = range_of(var.dtype());
        let hi = min.hi.saturating_add(extent.hi.saturating_sub(1).max(0)).min(most);
        let slot = self.define(var, min.lo.max(least), hi);
        self.loops.push((var.name().clone(), slot));
        let body = self.stmt(body);
        self.loops.pop();
        if watch.is_some() {
            self.watching.pop();
        }
        let (body, min, extent) = (body?, min.code(), extent.code());
        let name = var.name().clone();
        Ok(Box::new(move |m| {
            let (first, count) = (min(m), extent(m));
            if count > 0 && first.checked_add(count - 1).is_none_or(|last| last > most) {
                m.fail(format!("loop variable `{name}` does not fit its type"));
            }
            if !m.fine(&location) {
                return false;
            }
            if let Some(watch) = watch {
                m.watches[watch].begin(first);
            }
            for i in 0..count {
                if let Some(watch) = watch {
                    m.watches[watch].next();
                }
                m.frame[slot] = (first + i) as u64;
                m.step();
                if !m.fine(&location) || !body(m) {
                    return false;
                }
            }
            true
        }))
    }

    fn evaluate(&mut self, e: &Expr, location: Arc<Location>) -> Result<Run> {
        if let ExprKind::Call(CallTarget::Opaque(name), args) = e.kind()
            && &**name == "ret"
            && let [value] = args.as_slice()
        {
            let value = self.value(value)?.cell();
            return Ok(Box::new(move |m| {
                let Cell { bits, undef } = value(m);
                if undef {
                    m.fail("the result is an arbitrary value");
                }
                if m.fine(&location) {
                    m.ret = Some(bits);
                }
                false
            }));
        }
        if e.as_int().is_some() {
            return Ok(Box::new(|_| true));
        }
        let code = self.value(e)?.cell();
        let lanes = usize::from(e.dtype().lanes);
        Ok(Box::new(move |m| {
            for lane in 0..lanes {
                m.lane = lane;
                code(m);
            }
            m.lane = 0;
            m.fine(&location)
        }))
    }

    fn store(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr) -> Result<Run> {
        let location = self.location();
        let lanes = usize::from(value.dtype().lanes);
        let dtype = buffer.dtype().scalar();
        let act = self.act(buffer, indices, value);
        if let Act::Update(_) = act {
            self.updating = Some((buffer.clone(), indices.to_vec()));
        }
        let copied = if self.memories.copies(value) {
            self.copied(value).map(Ok)
        } else {
            self.value(value).map(Err)
        };
        self.updating = None;
        let copied = copied?;
        let access = self.access(buffer, indices)?.watched(self.watching(buffer, act));
        let value = match copied {
            Err(value) if lanes == 1 => value,
            Err(value) => return Ok(element_store(access, some(value), lanes, location)),
            Ok(code) => return Ok(element_store(access, code, lanes, location)),
        };
        macro_rules! write {
            ($code:expr, $v:ident => $bytes:expr) => {{
                let code = $code;
                Box::new(move |m: &mut Machine<'_>| {
                    m.step();
                    let $v = code(m);
                    if m.fine(&location) {
                        access.write(m, $bytes);
                    }
                    m.fine(&location)
                })
            }};
        }
        Ok(match value {
            ValueCode::F32(code) => write!(code, v => v.to_le_bytes()),
            ValueCode::F64(code) => write!(code, v => v.to_le_bytes()),
            ValueCode::Int(i) => {
                let code = i.code();
                match dtype.bytes() {
                    1 => write!(code, v => [v as u8]),
                    2 => write!(code, v => (v as u16).to_le_bytes()),
                    4 => write!(code, v => (v as u32).to_le_bytes()),
                    _ => write!(code, v => v.to_le_bytes()),
                }
            }
            value => element_store(access, some(value), lanes, location),
        })
    }

    fn block(&mut self, bindings: &[Expr], predicate: &Expr, block: &Block) -> Result<Run> {
        let outer_location = self.location();
        let predicate = if predicate.is_true() { None } else { Some(self.int(predicate)?.code()) };
        self.block = Some(block.name.clone()).filter(|_| !block.is_plain_root());
        let location = self.location();
        let mut enter: Vec<Run> = Vec::new();
        let mut first: Vec<(Var, Code<i64>)> = Vec::new();
        for (iter, binding) in block.iters.iter().zip(bindings) {
            let value = self.int(binding)?;
            let (min, extent) = (self.int(&iter.domain.min)?, self.int(&iter.domain.extent)?);
            let domain = min.as_const().zip(extent.as_const());
            let domain = domain.and_then(|(lo, n)| Some((lo, lo.checked_add(n)?.checked_sub(1)?)));
            let inside = domain.is_some_and(|(lo, hi)| lo <= value.lo && value.hi <= hi);
            // What is outside of the domain stops the program, so that the domain bounds the
            // variable.
            let (lo, hi) = match domain {
                Some((lo, hi)) => (value.lo.max(lo), value.hi.min(hi)),
                None => (value.lo, value.hi),
            };
            if iter.kind == IterKind::Reduce {
                let min = self.int(&iter.domain.min)?.code();
                first.push((iter.var.clone(), min));
            }
            if let Some(affine) = value.affine().filter(|_| inside).cloned() {
                let bound = Bound { slot: 0, lo, hi, affine: Some(affine) };
                self.vars.insert(iter.var.clone(), bound);
                continue;
            }
            let slot = self.define(&iter.var, lo, hi);
            let code = value.code();
            enter.push(Box::new(move |m| {
                m.frame[slot] = code(m) as u64;
                true
            }));
            if !inside {
                let (name, location) = (iter.var.name().clone(), location.clone());
                let (min, extent) = (min.code(), extent.code());
                enter.push(Box::new(move |m| {
                    let (v, lo, n) = (m.frame[slot] as i64, min(m), extent(m));
                    if v < lo || v.checked_sub(lo).is_none_or(|d| d >= n) {
                        m.fail(format!(
                            "iteration variable `{name}` is {v}, outside of its domain of {n} from {lo}"
                        ));
                    }
                    m.fine(&location)
                }));
            }
        }
        for b in &block.allocs {
            enter.push(self.allocation(b)?);
        }
        for view in &block.matches {
            enter.push(self.view(view)?);
        }
        let init = block.init.as_ref().map(|s| self.stmt(s)).transpose()?;
        let mut starts: Vec<(Code<i64>, Code<i64>)> = Vec::new();
        for (v, min) in first {
            starts.push((self.int(&v.expr())?.code(), min));
        }
        let body = self.stmt(&block.body)?;
        let inner: Run = match (enter.is_empty(), init) {
            (true, None) => body,
            (_, init) => Box::new(move |m| {
                if !enter.iter().all(|code| code(m)) {
                    return false;
                }
                if let Some(init) = &init {
                    let start = starts.iter().all(|(v, min)| v(m) == min(m));
                    if !m.fine(&location) || (start && !init(m)) {
                        return false;
                    }
                }
                body(m)
            }),
        };
        Ok(match predicate {
            None => inner,
            Some(predicate) => Box::new(move |m| {
                let holds = predicate(m) != 0;
                m.fine(&outer_location) && (!holds || inner(m))
            }),
        })
    }
}

/// A value that is there.
pub fn some(value: ValueCode) -> Code<Option<Cell>> {
    let code = value.cell();
    Box::new(move |m| Some(code(m)))
}

/// Statements for the lanes for which a condition holds, and others for those for which it does not.
fn masked(
    (lanes, cond): (usize, Code<i64>),
    then: Run,
    otherwise: Option<Run>,
    location: Arc<Location>,
) -> Run {
    Box::new(move |m| {
        let outer = std::mem::take(&mut m.left_out);
        let mut holds = Vec::with_capacity(lanes);
        for lane in 0..lanes {
            m.lane = lane;
            holds.push(cond(m) != 0);
        }
        m.lane = 0;
        let run = |m: &mut Machine<'_>, branch: &Run, side: bool| {
            let left_out = holds.iter().enumerate();
            let left_out = left_out.map(|(lane, holds)| {
                *holds != side || outer.get(lane).is_some_and(|left_out| *left_out)
            });
            m.left_out = left_out.collect();
            branch(m)
        };
        let mut fine = m.fine(&location) && run(m, &then, true);
        if let Some(otherwise) = &otherwise {
            fine = fine && run(m, otherwise, false);
        }
        m.left_out = outer;
        fine
    })
}

/// A store of a value of any type; all lanes are computed before the first is written.
fn element_store(
    access: Access,
    value: Code<Option<Cell>>,
    lanes: usize,
    location: Arc<Location>,
) -> Run {
    if lanes == 1 {
        return Box::new(move |m| {
            m.step();
            let value = value(m);
            if m.fine(&location)
                && let Some(at) = access.position(m)
            {
                access.store_at(m, at, value);
            }
            m.fine(&location)
        });
    }
    Box::new(move |m| {
        m.step();
        let mut cells = Vec::with_capacity(lanes);
        for lane in 0..lanes {
            if m.left_out.get(lane).is_some_and(|left_out| *left_out) {
                continue;
            }
            m.lane = lane;
            let value = value(m);
            cells.push((access.position(m), value));
        }
        m.lane = 0;
        if !m.fine(&location) {
            return false;
        }
        for (at, value) in cells {
            if let Some(at) = at {
                access.store_at(m, at, value);
            }
        }
        m.fine(&location)
    })
}
