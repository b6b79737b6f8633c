//! Running a tensor function on symbols.
//!
//! Loop variables, bounds and indices are numbers; what comes from memory is a number or a term.
//! Where a condition is a term both sides run, and every cell that either of them wrote becomes a
//! selection. What needs a number and has a term ends the run undecided.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use tilewright_ir::expr::wrap;
use tilewright_ir::{
    BinOp, Block, Buffer, CallTarget, DType, Error, Expr, ExprKind, IterKind, MatchRegion, Param,
    Span, Stmt, StmtKind, Tensor, TensorFunc, TypeKind, Var,
};

use crate::alias::permission;
use crate::scalar;

use super::term::{Fast, Node, Term, Terms, Val, Wrong};

/// Why a run ended early.
#[derive(Debug)]
pub enum Stop {
    /// Whether the functions agree cannot be said.
    Undecided(String, Option<Span>),
    /// The program does something illegal whatever the inputs are, or breaks a rule.
    Error(Error),
}

impl Stop {
    fn at(self, span: Option<Span>) -> Stop {
        match self {
            Stop::Undecided(why, at) => Stop::Undecided(why, at.or(span)),
            Stop::Error(e) => Stop::Error(e.at(span)),
        }
    }
}

impl From<Error> for Stop {
    fn from(e: Error) -> Self {
        Stop::Error(e)
    }
}

/// A result, or why there is none.
pub type Ran<T> = Result<T, Stop>;

/// Ends a run undecided.
pub fn undecided<T>(why: impl Into<String>) -> Ran<T> {
    Err(Stop::Undecided(why.into(), None))
}

/// A tensor of terms, in row-major order.
#[derive(Clone, Debug)]
pub struct Cells {
    /// Type of the elements.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<usize>,
    /// The elements.
    pub cells: Rc<Vec<Val>>,
}

impl Cells {
    /// The cells of a tensor that is known.
    pub fn constant(t: &Tensor) -> Self {
        let size = t.dtype().bytes().max(1);
        let chunks = t.bytes().chunks_exact(size).take(t.len());
        let cells = chunks.map(|b| Val::Known(crate::machine::decode(b, t.dtype()))).collect();
        Cells { dtype: t.dtype(), shape: t.shape().to_vec(), cells: Rc::new(cells) }
    }
}

/// An argument of a tensor function.
#[derive(Clone, Debug)]
pub enum Argument {
    /// A tensor.
    Cells(Cells),
    /// A scalar.
    Scalar(Val),
}

/// What the runs of both sides share.
pub struct Shared {
    /// The terms.
    pub terms: Terms,
    /// Expressions that may still be evaluated.
    pub steps: u64,
    /// Elements of memory that may still be allocated.
    pub memory: usize,
    /// Conditions on the inputs that both programs are told to rely on.
    pub constraints: Vec<Term>,
    /// Inputs whose value is assumed.
    pub assumed: Fast<Term, u64>,
    /// Texts of the assumptions on inputs of the side that runs.
    pub relied: Vec<String>,
    /// Names and shapes of the inputs: the parameters, then variables that nothing defines.
    pub names: Vec<(String, Vec<usize>)>,
    /// Symbols of variables that nothing defines.
    pub free: HashMap<(Arc<str>, DType), Val>,
}

impl Shared {
    /// The symbol of a variable that nothing defines: one for each name and type.
    fn free(&mut self, v: &Var) -> Result<Val, Wrong> {
        let key = (v.name().clone(), v.dtype());
        if let Some(value) = self.free.get(&key) {
            return Ok(*value);
        }
        let number = u32::try_from(self.names.len()).map_err(|_| Wrong::Full)?;
        let value = self.terms.input(number, 0, v.dtype())?;
        self.names.push((v.name().to_string(), Vec::new()));
        self.free.insert(key, value);
        Ok(value)
    }
}

struct Memory {
    dtype: DType,
    cells: Vec<Val>,
}

struct Dim {
    extent: i64,
    stride: i64,
    /// First index of a viewed region and extent of the source, outermost source last.
    outer: Vec<(i64, i64)>,
}

struct Place {
    memory: usize,
    dims: Vec<Dim>,
    offset: i64,
}

/// One run of a tensor function.
pub struct Run<'s> {
    shared: &'s mut Shared,
    vars: Fast<(u64, u16), Val>,
    pointers: Fast<u64, usize>,
    places: Fast<u64, Rc<Place>>,
    memories: Vec<Memory>,
    lane: u16,
    /// Conditions under which this code runs, each with its value.
    path: Vec<(Term, bool)>,
    /// For each open branch, the cells that it wrote with what was there before.
    logs: Vec<Vec<(usize, usize, Val)>>,
    ret: Option<Val>,
    stopped: bool,
    span: Option<Span>,
}

/// Runs a function; gives the tensors of its parameters afterwards, and its scalar result.
pub fn run(
    shared: &mut Shared,
    func: &TensorFunc,
    args: &[Argument],
) -> Ran<(Vec<Cells>, Option<Val>)> {
    let mut r = Run {
        shared,
        vars: Fast::default(),
        pointers: Fast::default(),
        places: Fast::default(),
        memories: Vec::new(),
        lane: 0,
        path: Vec::new(),
        logs: Vec::new(),
        ret: None,
        stopped: false,
        span: None,
    };
    r.arguments(func, args)?;
    if let Err(stop) = r.stmt(&func.body) {
        let span = r.span;
        return Err(stop.at(span));
    }
    let mut out = Vec::new();
    for (p, arg) in func.params.iter().zip(args) {
        if let (Some(b), Argument::Cells(c)) = (p.buffer(), arg) {
            let place = r.place_of(b)?;
            let mut cells = Vec::with_capacity(c.cells.len());
            for at in offsets(&place, &c.shape) {
                let memory = r.memories.get(place.memory);
                let cell = usize::try_from(at).ok().and_then(|at| memory?.cells.get(at).copied());
                cells.push(cell.unwrap_or_else(Terms::unwritten));
            }
            out.push(Cells { cells: Rc::new(cells), ..c.clone() });
        }
    }
    Ok((out, r.ret))
}

impl Run<'_> {
    fn arguments(&mut self, func: &TensorFunc, args: &[Argument]) -> Ran<()> {
        if func.params.len() != args.len() {
            let (n, m) = (func.params.len(), args.len());
            return Err(Error::input(format!("{m} arguments for {n} parameters")).into());
        }
        // Sizes first: the shape of one parameter may use a variable of a later one.
        for (p, arg) in func.params.iter().zip(args) {
            match (p, arg) {
                (Param::Scalar(v), Argument::Scalar(value)) => {
                    self.vars.insert((v.id(), 0), *value);
                }
                (Param::Buffer { buffer, .. }, Argument::Cells(c)) => {
                    if buffer.shape.len() != c.shape.len() || buffer.dtype() != c.dtype {
                        let name = &buffer.name;
                        let e = format!("argument `{name}` has another type or rank");
                        return Err(Error::input(e).into());
                    }
                    for (e, n) in buffer.shape.iter().zip(&c.shape) {
                        if let Some(v) = e.as_var() {
                            self.vars.entry((v.id(), 0)).or_insert(Val::Known(*n as u64));
                        }
                    }
                }
                _ => return Err(Error::input("a tensor and a scalar do not fit").into()),
            }
        }
        for (p, arg) in func.params.iter().zip(args) {
            let (Param::Buffer { handle, buffer }, Argument::Cells(c)) = (p, arg) else {
                continue;
            };
            // Strides and offset that nothing gives a value are those of a compact tensor.
            let mut stride = 1i64;
            for (axis, n) in c.shape.iter().enumerate().rev() {
                if let Some(v) = buffer.strides.get(axis).and_then(Expr::as_var) {
                    self.vars.entry((v.id(), 0)).or_insert(Val::Known(stride as u64));
                }
                stride = stride.saturating_mul(i64::try_from(*n).unwrap_or(i64::MAX));
            }
            if let Some(v) = buffer.elem_offset.as_ref().and_then(Expr::as_var) {
                self.vars.entry((v.id(), 0)).or_insert(Val::Known(0));
            }
            let memory = self.allocate(buffer)?;
            self.pointers.insert(handle.id(), memory);
            let place = self.place_of(buffer)?;
            let extents = place.dims.iter().map(|d| usize::try_from(d.extent).ok());
            if extents.collect::<Option<Vec<usize>>>().as_ref() != Some(&c.shape) {
                let (name, shape) = (&buffer.name, &c.shape);
                let e = format!("argument `{name}` has shape {shape:?}, and another is declared");
                return Err(Error::input(e).into());
            }
            for (at, v) in offsets(&place, &c.shape).into_iter().zip(c.cells.iter()) {
                let cells = self.memories.get_mut(memory);
                let cell = usize::try_from(at).ok().and_then(|at| cells?.cells.get_mut(at));
                if let Some(cell) = cell {
                    *cell = *v;
                }
            }
        }
        Ok(())
    }

    fn fault(&self, what: String) -> Stop {
        match self.path.is_empty() {
            true => Stop::Error(Error::execution(what)),
            false => Stop::Undecided(format!("under a condition on data: {what}"), None),
        }
    }

    fn made<T>(&self, made: Result<T, Wrong>) -> Ran<T> {
        made.map_err(|wrong| match wrong {
            Wrong::Fault(f) => self.fault(f.text().to_owned()),
            Wrong::Full => {
                Stop::Undecided("the programs need more terms than are allowed".to_owned(), None)
            }
        })
    }

    /// Takes the memory of a buffer, and puts the buffer there.
    fn allocate(&mut self, b: &Buffer) -> Ran<usize> {
        if b.dtype().lanes > 1 {
            return undecided(format!("buffer `{}` has elements that are vectors", b.name));
        }
        let number = self.memories.len();
        self.pointers.insert(b.data.id(), number);
        self.memories.push(Memory { dtype: b.dtype(), cells: Vec::new() });
        let place = self.place(b, number)?;
        let mut span = Some(usize::try_from(place.offset).unwrap_or(0));
        for d in &place.dims {
            let step = d.extent.checked_sub(1).and_then(|n| n.checked_mul(d.stride));
            let step = step.and_then(|s| usize::try_from(s.max(0)).ok());
            span = span.zip(step).and_then(|(a, b)| a.checked_add(b));
        }
        let span = match place.dims.iter().any(|d| d.extent <= 0) {
            true => Some(0),
            false => span.and_then(|s| s.checked_add(1)),
        };
        let Some(left) = span.and_then(|s| self.shared.memory.checked_sub(s)) else {
            return undecided(format!("buffer `{}` is larger than what is allowed", b.name));
        };
        self.shared.memory = left;
        if let Some(memory) = self.memories.get_mut(number) {
            memory.cells = vec![Terms::unwritten(); span.unwrap_or(0)];
        }
        Ok(number)
    }

    /// Puts a buffer into a memory by its own shape, strides and offset.
    fn place(&mut self, b: &Buffer, memory: usize) -> Ran<Rc<Place>> {
        let mut extents = Vec::new();
        for e in &b.shape {
            extents.push(self.number(e, "an extent")?);
        }
        let mut strides = vec![1i64; extents.len()];
        let mut stride = 1i64;
        for (to, n) in strides.iter_mut().zip(&extents).rev() {
            *to = stride;
            stride = stride.saturating_mul(*n);
        }
        for (to, e) in strides.iter_mut().zip(&b.strides) {
            *to = self.number(e, "a stride")?;
        }
        let offset = match &b.elem_offset {
            Some(e) => self.number(e, "an offset")?,
            None => 0,
        };
        let dims = extents.into_iter().zip(strides);
        let dims = dims.map(|(extent, stride)| Dim { extent, stride, outer: Vec::new() });
        let place = Rc::new(Place { memory, dims: dims.collect(), offset });
        self.places.insert(b.id(), place.clone());
        Ok(place)
    }

    fn place_of(&self, b: &Buffer) -> Ran<Rc<Place>> {
        match self.places.get(&b.id()) {
            Some(place) => Ok(place.clone()),
            None => Err(Error::internal(format!("buffer `{}` has no place", b.name)).into()),
        }
    }

    fn view(&mut self, view: &MatchRegion) -> Ran<()> {
        let source = self.place_of(&view.source.buffer)?;
        let b = &view.buffer;
        let left_out = view.source.ranges.len().saturating_sub(b.rank());
        let mut offset = source.offset;
        let mut dims = Vec::new();
        for (axis, (range, d)) in view.source.ranges.iter().zip(&source.dims).enumerate() {
            let start = self.number(&range.min, "a region")?;
            offset = offset.wrapping_add(start.wrapping_mul(d.stride));
            let mut outer = vec![(start, d.extent)];
            outer.extend(d.outer.iter().copied());
            if axis < left_out {
                let mut at = 0i64;
                for (first, extent) in &outer {
                    at = at.wrapping_add(*first);
                    if !(0..*extent).contains(&at) {
                        return Err(self.fault(format!("view `{}` starts out of range", b.name)));
                    }
                }
                continue;
            }
            let shape = b.shape.get(axis - left_out).unwrap_or(&range.extent);
            let extent = self.number(shape, "an extent")?;
            dims.push(Dim { extent, stride: d.stride, outer });
        }
        let given = b.strides.iter().zip(dims.iter().map(|d| d.stride));
        let given: Vec<(&Expr, i64)> =
            given.chain(b.elem_offset.iter().map(|e| (e, offset))).collect();
        for (e, actual) in given {
            match e.as_var() {
                Some(v) if !self.vars.contains_key(&(v.id(), 0)) => {
                    self.vars.insert((v.id(), 0), Val::Known(actual as u64));
                }
                _ => {
                    if self.number(e, "a stride")? != actual && e.as_int() != Some(1) {
                        return undecided(format!("view `{}` has strides of its own", b.name));
                    }
                }
            }
        }
        self.places.insert(b.id(), Rc::new(Place { memory: source.memory, dims, offset }));
        Ok(())
    }

    fn spend(&mut self) -> Ran<()> {
        match self.shared.steps.checked_sub(1) {
            Some(left) => self.shared.steps = left,
            None => return undecided("the programs take more steps than are allowed"),
        }
        Ok(())
    }

    /// An integer that must be known.
    fn number(&mut self, e: &Expr, what: &str) -> Ran<i64> {
        if let Some(v) = e.as_int() {
            return Ok(v);
        }
        match self.eval(e)? {
            Val::Known(bits) => Ok(bits as i64),
            v if v == Terms::undef() => Err(self.fault(format!("{what} is an arbitrary value"))),
            Val::Term(_) => {
                undecided(format!("{what} depends on data: `{}`", tilewright_ir::text::brief(e)))
            }
        }
    }

    /// A condition, resolved as far as the path does.
    fn condition(&mut self, e: &Expr) -> Ran<Val> {
        let v = self.eval(e)?;
        let v = self.given(v)?;
        match v == Terms::undef() {
            true => Err(self.fault("a condition is an arbitrary value".to_owned())),
            false => Ok(v),
        }
    }

    /// A value where the conditions of the path hold.
    fn given(&mut self, v: Val) -> Ran<Val> {
        let mut v = v;
        while let Val::Term(t) = v {
            if self.path.is_empty() {
                break;
            }
            let truth = |c: Term| self.path.iter().find(|(d, _)| *d == c).map(|(_, truth)| *truth);
            v = match (truth(t), self.shared.terms.node(t)) {
                (Some(truth), _) => return Ok(Val::Known(u64::from(truth))),
                (None, Node::Not(a)) => match truth(a) {
                    Some(truth) => return Ok(Val::Known(u64::from(!truth))),
                    None => break,
                },
                (None, Node::Ite(c, a, b)) => match truth(c) {
                    Some(truth) => self.shared.terms.val(if truth { a } else { b }),
                    None => break,
                },
                _ => break,
            };
        }
        Ok(v)
    }

    /// Goes into a branch on a term.
    fn enter(&mut self, c: Term, truth: bool) {
        let (c, truth) = match self.shared.terms.node(c) {
            Node::Not(a) => (a, !truth),
            _ => (c, truth),
        };
        self.path.push((c, truth));
    }

    /// Evaluates the current lane.
    fn eval(&mut self, e: &Expr) -> Ran<Val> {
        self.spend()?;
        let dtype = e.dtype().scalar();
        Ok(match e.kind() {
            ExprKind::Int(v) => Val::Known(*v as u64),
            ExprKind::Float(v) => Val::Known(scalar::from_f64(*v, dtype)),
            ExprKind::Str(_) => return undecided("text as a value"),
            ExprKind::Var(v) => return self.variable(v),
            ExprKind::Cast(a) => {
                let v = self.eval(a)?;
                let made = self.shared.terms.cast(a.dtype().scalar(), dtype, v);
                self.made(made)?
            }
            ExprKind::Binary(op, a, b) => return self.binary(*op, a, b),
            ExprKind::Not(a) => {
                let v = self.eval(a)?;
                let made = self.shared.terms.not(v);
                self.made(made)?
            }
            ExprKind::Select(c, t, f) => {
                let c = self.eval(c)?;
                let c = self.given(c)?;
                let (t, f) = (self.eval(t)?, self.eval(f)?);
                let made = self.shared.terms.ite(c, t, f, dtype);
                self.made(made)?
            }
            ExprKind::IfThenElse(c, t, f) => match self.condition(c)? {
                Val::Known(0) => return self.eval(f),
                Val::Known(_) => return self.eval(t),
                Val::Term(c) => {
                    let mut sides = Vec::new();
                    for (e, truth) in [(t, true), (f, false)] {
                        self.enter(c, truth);
                        let v = self.eval(e);
                        self.path.pop();
                        sides.push(v?);
                    }
                    let made = match sides.as_slice() {
                        [t, f] => self.shared.terms.ite(Val::Term(c), *t, *f, dtype),
                        _ => Ok(Terms::undef()),
                    };
                    self.made(made)?
                }
            },
            ExprKind::Load(b, indices) => return self.load(b, indices),
            ExprKind::Call(CallTarget::Intrin(op), args) => {
                let Some(first) = args.first() else {
                    return Err(Error::internal("an intrinsic without arguments").into());
                };
                let a = self.eval(first)?;
                let b = match args.get(1) {
                    Some(b) => self.eval(b)?,
                    None => a,
                };
                let made = self.shared.terms.intrin(*op, first.dtype().scalar(), a, b);
                self.made(made)?
            }
            ExprKind::Call(CallTarget::Extern(name), _) => {
                return undecided(format!("`{name}` is a function outside of the program"));
            }
            ExprKind::Call(CallTarget::Opaque(name), _) => {
                return undecided(format!("what T.{name} does is not known"));
            }
            ExprKind::Let(v, value, body) => {
                let value = self.eval(value)?;
                let lane = if v.dtype().lanes > 1 { self.lane } else { 0 };
                self.vars.insert((v.id(), lane), value);
                return self.eval(body);
            }
            ExprKind::Ramp(base, stride) => {
                let (base, stride) = (self.eval(base)?, self.eval(stride)?);
                let lane = Val::Known(wrap(i64::from(self.lane), dtype) as u64);
                let made = self.shared.terms.binary(BinOp::Mul, dtype, stride, lane);
                let step = self.made(made)?;
                let made = self.shared.terms.binary(BinOp::Add, dtype, base, step);
                self.made(made)?
            }
            ExprKind::Broadcast(a) => return self.eval(a),
            ExprKind::Undef => Terms::undef(),
        })
    }

    fn variable(&mut self, v: &Var) -> Ran<Val> {
        let lane = if v.dtype().lanes > 1 { self.lane } else { 0 };
        if let Some(value) = self.vars.get(&(v.id(), lane)) {
            return Ok(*value);
        }
        if !is_data(v.dtype()) {
            return undecided(format!("`{}` has no value that computes", v.name()));
        }
        let made = self.shared.free(v);
        let value = self.made(made)?;
        self.vars.insert((v.id(), lane), value);
        Ok(value)
    }

    fn binary(&mut self, op: BinOp, a: &Expr, b: &Expr) -> Ran<Val> {
        let dtype = a.dtype().scalar();
        let x = self.eval(a)?;
        if let (true, Val::Known(bits)) = (op.is_logic(), x)
            && (bits != 0) == (op == BinOp::Or)
        {
            return Ok(x);
        }
        let y = match (op.is_logic(), x) {
            (true, Val::Term(c)) if x != Terms::undef() => {
                self.enter(c, op == BinOp::And);
                let y = self.eval(b);
                self.path.pop();
                y?
            }
            _ => self.eval(b)?,
        };
        let made = self.shared.terms.binary(op, dtype, x, y);
        self.made(made)
    }

    /// Memory and position of an element.
    fn locate(&mut self, b: &Buffer, indices: &[Expr]) -> Ran<(usize, usize)> {
        let place = self.place_of(b)?;
        let mut at = place.offset;
        for (axis, (e, d)) in indices.iter().zip(&place.dims).enumerate() {
            let i = self.number(e, "an index")?;
            let mut inside = (0..d.extent).contains(&i);
            let mut absolute = i;
            for (first, extent) in &d.outer {
                absolute = absolute.wrapping_add(*first);
                inside &= (0..*extent).contains(&absolute);
            }
            if !inside {
                let (name, n) = (&b.name, d.extent);
                return Err(self.fault(format!(
                    "index {i} is out of range for axis {axis} of `{name}`, which has {n}"
                )));
            }
            at = at.wrapping_add(i.wrapping_mul(d.stride));
        }
        let Some(memory) = self.memories.get(place.memory) else {
            return Err(Error::internal("a memory that is none").into());
        };
        if memory.dtype != b.dtype().scalar() {
            let (name, a, b) = (&b.name, b.dtype(), memory.dtype);
            return undecided(format!("`{name}` views memory of {b} as {a}"));
        }
        match usize::try_from(at).ok().filter(|at| *at < memory.cells.len()) {
            Some(at) => Ok((place.memory, at)),
            None => Err(self.fault(format!("access to `{}` outside of its memory", b.name))),
        }
    }

    fn cell(&self, (memory, at): (usize, usize)) -> Val {
        let memory = self.memories.get(memory);
        memory.and_then(|m| m.cells.get(at).copied()).unwrap_or_else(Terms::unwritten)
    }

    fn load(&mut self, b: &Buffer, indices: &[Expr]) -> Ran<Val> {
        let at = self.locate(b, indices)?;
        let v = self.given(self.cell(at))?;
        if v == Terms::unwritten() {
            return Err(
                self.fault(format!("an element of `{}` is read that was never written", b.name))
            );
        }
        if let Val::Term(t) = v
            && self.perhaps_unwritten(t)
        {
            let name = &b.name;
            return undecided(format!(
                "whether an element of `{name}` was written depends on data"
            ));
        }
        Ok(v)
    }

    /// Whether a selection leads to memory that was never written.
    fn perhaps_unwritten(&self, t: Term) -> bool {
        let mut left = vec![t];
        // Selections that are larger than this are taken for written: what never was stays in the
        // term, and makes it differ.
        for _ in 0..16 {
            match left.pop().map(|t| self.shared.terms.node(t)) {
                Some(Node::Ite(_, a, b)) => left.extend([a, b]),
                Some(Node::Unwritten) => return true,
                Some(_) => {}
                None => return false,
            }
        }
        false
    }

    fn write(&mut self, (memory, at): (usize, usize), v: Val) {
        if let Some(cell) = self.memories.get_mut(memory).and_then(|m| m.cells.get_mut(at)) {
            if let Some(log) = self.logs.last_mut() {
                log.push((memory, at, *cell));
            }
            *cell = v;
        }
    }

    /// Runs what a term decides: both sides, and then every cell that changed is a selection.
    fn branch(
        &mut self,
        c: Term,
        then: impl FnOnce(&mut Self) -> Ran<()>,
        otherwise: Option<&Stmt>,
    ) -> Ran<()> {
        self.logs.push(Vec::new());
        self.enter(c, true);
        let ran = then(self);
        self.path.pop();
        let first = self.logs.pop().unwrap_or_default();
        ran?;
        // What the first side left, by cell, and what was there before.
        let mut left: Fast<(usize, usize), (Val, Val)> = Fast::default();
        for (memory, at, old) in first.into_iter().rev() {
            let now = self.cell((memory, at));
            let entry = left.entry((memory, at)).or_insert((now, old));
            entry.1 = old;
            // Each step back shows what the earlier write found.
            if let Some(cell) = self.memories.get_mut(memory).and_then(|m| m.cells.get_mut(at)) {
                *cell = old;
            }
        }
        self.logs.push(Vec::new());
        if let Some(otherwise) = otherwise {
            self.enter(c, false);
            let ran = self.stmt(otherwise);
            self.path.pop();
            if ran.is_err() {
                self.logs.pop();
                return ran;
            }
        }
        let second = self.logs.pop().unwrap_or_default();
        for (memory, at, old) in second {
            // The first entry of a cell is what was there before.
            left.entry((memory, at)).or_insert((old, old));
        }
        let mut cells: Vec<((usize, usize), (Val, Val))> = left.into_iter().collect();
        cells.sort_unstable_by_key(|(at, _)| *at);
        for (place, (then, old)) in cells {
            let otherwise = self.cell(place);
            let dtype = self.memories.get(place.0).map_or(DType::VOID, |m| m.dtype);
            let made = self.shared.terms.ite(Val::Term(c), then, otherwise, dtype);
            let v = self.made(made)?;
            // The log of the branch around must hold what was there before both sides.
            if let Some(cell) =
                self.memories.get_mut(place.0).and_then(|m| m.cells.get_mut(place.1))
            {
                *cell = old;
            }
            self.write(place, v);
        }
        Ok(())
    }

    fn stmt(&mut self, s: &Stmt) -> Ran<()> {
        if self.stopped {
            return Ok(());
        }
        self.spend()?;
        let outer = self.span;
        self.span = s.span().or(outer);
        let ran = self.stmt_kind(s);
        match ran {
            Ok(()) => {
                self.span = outer;
                Ok(())
            }
            Err(stop) => Err(stop.at(self.span)),
        }
    }

    fn stmt_kind(&mut self, s: &Stmt) -> Ran<()> {
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => self.store(buffer, indices, value),
            StmtKind::For { var, range, body, .. } => {
                let first = self.number(&range.min, "the start of a loop")?;
                let count = self.number(&range.extent, "the extent of a loop")?;
                for i in 0..count {
                    let Some(value) = first.checked_add(i) else {
                        return Err(self.fault("a loop variable does not fit its type".to_owned()));
                    };
                    self.vars.insert((var.id(), 0), Val::Known(value as u64));
                    self.stmt(body)?;
                    if self.stopped {
                        break;
                    }
                }
                Ok(())
            }
            StmtKind::If { cond, then, otherwise } => match self.condition(cond)? {
                Val::Known(0) => otherwise.as_ref().map_or(Ok(()), |s| self.stmt(s)),
                Val::Known(_) => self.stmt(then),
                Val::Term(c) => self.branch(c, |r| r.stmt(then), otherwise.as_ref()),
            },
            StmtKind::Let { var, value, body } => {
                let pointer = value.as_var().and_then(|v| self.pointers.get(&v.id()).copied());
                if let Some(memory) = pointer {
                    self.pointers.insert(var.id(), memory);
                    return self.stmt(body);
                }
                let lanes = var.dtype().lanes.max(1);
                for lane in 0..lanes {
                    self.lane = lane;
                    let v = self.eval(value)?;
                    self.vars.insert((var.id(), lane), v);
                }
                self.lane = 0;
                self.stmt(body)
            }
            StmtKind::Seq(stmts) => stmts.iter().try_for_each(|s| self.stmt(s)),
            StmtKind::Allocate { buffer, body, .. } => {
                let number = self.allocate(buffer)?;
                self.stmt(body)?;
                self.free(number);
                Ok(())
            }
            StmtKind::Constant { buffer, value, body } => {
                let number = self.allocate(buffer)?;
                if let Some(memory) = self.memories.get_mut(number) {
                    memory.cells = Cells::constant(value).cells.to_vec();
                }
                self.stmt(body)?;
                self.free(number);
                Ok(())
            }
            StmtKind::Declare { buffer, body } => {
                let Some(number) = self.pointers.get(&buffer.data.id()).copied() else {
                    return undecided(format!("`{}` views memory that is not known", buffer.name));
                };
                self.place(buffer, number)?;
                self.stmt(body)
            }
            StmtKind::Block { bindings, predicate, block } => {
                if predicate.is_true() {
                    return self.block(bindings, block);
                }
                match self.condition(predicate)? {
                    Val::Known(0) => Ok(()),
                    Val::Known(_) => self.block(bindings, block),
                    Val::Term(c) => self.branch(c, |r| r.block(bindings, block), None),
                }
            }
            StmtKind::Assume(e) => self.assume(e, e),
            StmtKind::Assert { cond, message } => match self.condition(cond)? {
                Val::Known(0) => Err(self.fault(format!("assertion failed: {message}"))),
                Val::Known(_) => Ok(()),
                Val::Term(_) => undecided("an assertion depends on data"),
            },
            StmtKind::Evaluate(e) => self.evaluate(e),
        }
    }

    /// Memory whose scope ended. Its cells may be named in the log of a branch, which keeps its
    /// place; the next one gets a new number.
    fn free(&mut self, number: usize) {
        if self.logs.is_empty()
            && let Some(memory) = self.memories.get_mut(number)
        {
            self.shared.memory = self.shared.memory.saturating_add(memory.cells.len());
            memory.cells = Vec::new();
        }
    }

    fn store(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr) -> Ran<()> {
        let lanes = value.dtype().lanes.max(1);
        if lanes == 1 {
            let v = self.eval(value)?;
            let at = self.locate(buffer, indices)?;
            self.write(at, v);
            return Ok(());
        }
        let mut cells = Vec::with_capacity(usize::from(lanes));
        for lane in 0..lanes {
            self.lane = lane;
            let v = self.eval(value)?;
            cells.push((self.locate(buffer, indices)?, v));
        }
        self.lane = 0;
        for (at, v) in cells {
            self.write(at, v);
        }
        Ok(())
    }

    fn block(&mut self, bindings: &[Expr], block: &Arc<Block>) -> Ran<()> {
        let mut first = true;
        for (iter, binding) in block.iters.iter().zip(bindings) {
            let value = self.number(binding, "an iteration variable of a block")?;
            let min = self.number(&iter.domain.min, "the domain of a block")?;
            let extent = self.number(&iter.domain.extent, "the domain of a block")?;
            if value < min || value.checked_sub(min).is_none_or(|d| d >= extent) {
                let name = iter.var.name();
                return Err(self.fault(format!(
                    "iteration variable `{name}` is {value}, outside of its domain of {extent} from {min}"
                )));
            }
            first &= iter.kind != IterKind::Reduce || value == min;
            self.vars.insert((iter.var.id(), 0), Val::Known(value as u64));
        }
        let mut memories = Vec::new();
        for b in &block.allocs {
            memories.push(self.allocate(b)?);
        }
        for view in &block.matches {
            self.view(view)?;
        }
        if let Some(init) = block.init.as_ref().filter(|_| first) {
            self.stmt(init)?;
        }
        self.stmt(&block.body)?;
        memories.into_iter().for_each(|m| self.free(m));
        Ok(())
    }

    fn evaluate(&mut self, e: &Expr) -> Ran<()> {
        if let ExprKind::Call(CallTarget::Opaque(name), args) = e.kind()
            && &**name == "ret"
            && let [value] = args.as_slice()
        {
            let v = self.eval(value)?;
            if !self.path.is_empty() {
                return undecided("whether the function returns here depends on data");
            }
            if v == Terms::undef() {
                return Err(self.fault("the result is an arbitrary value".to_owned()));
            }
            self.ret = Some(v);
            self.stopped = true;
            return Ok(());
        }
        if e.as_int().is_some() {
            return Ok(());
        }
        for lane in 0..e.dtype().lanes.max(1) {
            self.lane = lane;
            self.eval(e)?;
        }
        self.lane = 0;
        Ok(())
    }

    /// An assumption, or a part of one: `whole` is what the user wrote.
    fn assume(&mut self, e: &Expr, whole: &Expr) -> Ran<()> {
        if let Some((b, indices)) = permission(e) {
            let at = self.locate(b, indices)?;
            if self.given(self.cell(at))? == Terms::unwritten() {
                self.write(at, Terms::undef());
            }
            return Ok(());
        }
        match e.kind() {
            ExprKind::Binary(BinOp::And, a, b) => {
                self.assume(a, whole)?;
                return self.assume(b, whole);
            }
            ExprKind::Binary(BinOp::Or, a, b) => {
                // A side that is known to be false leaves the other one.
                for (known, other) in [(a, b), (b, a)] {
                    if touches_memory(known) {
                        continue;
                    }
                    return match self.condition(known)? {
                        Val::Known(0) => self.assume(other, whole),
                        Val::Known(_) => Ok(()),
                        Val::Term(c) => {
                            self.enter(c, false);
                            let done = self.assume(other, whole);
                            self.path.pop();
                            done
                        }
                    };
                }
            }
            ExprKind::Binary(BinOp::Eq, a, b) => {
                for (cell, value) in [(a, b), (b, a)] {
                    if let ExprKind::Load(buffer, indices) = cell.kind() {
                        let at = self.locate(buffer, indices)?;
                        let old = self.given(self.cell(at))?;
                        if old == Terms::unwritten() {
                            break;
                        }
                        let v = self.eval(value)?;
                        return self.assume_cell(at, buffer.dtype(), old, v, whole);
                    }
                }
            }
            _ => {}
        }
        match self.eval(e)? {
            Val::Known(0) => {
                let text = tilewright_ir::text::brief(whole);
                Err(self.fault(format!("assumption `{text}` does not hold")))
            }
            Val::Known(_) => Ok(()),
            v if v == Terms::undef() => {
                let text = tilewright_ir::text::brief(whole);
                Err(self.fault(format!("assumption `{text}` is about an arbitrary value")))
            }
            v => self.rely(v, whole),
        }
    }

    /// A cell that is assumed to hold a value.
    fn assume_cell(
        &mut self,
        at: (usize, usize),
        dtype: DType,
        old: Val,
        v: Val,
        whole: &Expr,
    ) -> Ran<()> {
        let text = || tilewright_ir::text::brief(whole);
        if old == Terms::undef() || v == Terms::undef() {
            return Err(self.fault(format!("assumption `{}` is about an arbitrary value", text())));
        }
        let made = self.shared.terms.binary(BinOp::Eq, dtype, old, v);
        match self.made(made)? {
            Val::Known(0) => Err(self.fault(format!("assumption `{}` does not hold", text()))),
            Val::Known(_) => Ok(()),
            equal => {
                if let (Val::Term(t), Val::Known(bits), true) = (old, v, self.path.is_empty())
                    && matches!(self.shared.terms.node(t), Node::Input(..))
                {
                    self.shared.assumed.entry(t).or_insert(bits);
                }
                self.rely(equal, whole)?;
                self.write(at, v);
                Ok(())
            }
        }
    }

    /// Notes a condition that the program relies on.
    fn rely(&mut self, v: Val, whole: &Expr) -> Ran<()> {
        let mut v = v;
        for (c, truth) in self.path.clone().into_iter().rev() {
            let c = Val::Term(c);
            let (t, f) = if truth { (v, Val::Known(1)) } else { (Val::Known(1), v) };
            let made = self.shared.terms.ite(c, t, f, DType::BOOL);
            v = self.made(made)?;
        }
        if let Val::Term(t) = v {
            self.shared.constraints.push(t);
            let text = tilewright_ir::text::brief(whole);
            if !self.shared.relied.contains(&text) {
                self.shared.relied.push(text);
            }
        }
        Ok(())
    }
}

/// Whether an expression reads memory.
fn touches_memory(e: &Expr) -> bool {
    struct Find(bool);
    impl tilewright_ir::Visit for Find {
        fn expr(&mut self, e: &Expr) {
            self.0 |= matches!(e.kind(), ExprKind::Load(..));
            tilewright_ir::visit::walk_expr(self, e);
        }
    }
    let mut find = Find(false);
    tilewright_ir::Visit::expr(&mut find, e);
    find.0
}

/// Positions of the elements of a parameter in its memory, in row-major order.
fn offsets(place: &Place, shape: &[usize]) -> Vec<i64> {
    let count: usize = shape.iter().product();
    let mut all = Vec::with_capacity(count);
    for i in 0..count {
        let (mut rest, mut at) = (i, place.offset);
        for (n, d) in shape.iter().zip(&place.dims).rev() {
            at = at.wrapping_add(((rest % n) as i64).wrapping_mul(d.stride));
            rest /= n;
        }
        all.push(at);
    }
    all
}

/// Whether a type can be a symbol.
pub fn is_data(dtype: DType) -> bool {
    dtype.lanes == 1 && !matches!(dtype.kind, TypeKind::Handle | TypeKind::Void)
}
