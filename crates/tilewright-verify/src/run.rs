//! Running a tensor function on symbols.
//!
//! Loop variables, bounds and indices are numbers; what comes from memory is a number or a term.
//! Where a condition is a term both sides run, and every cell that either of them wrote becomes a
//! selection. What needs a number and has a term ends the run undecided.

use std::rc::Rc;
use std::sync::Arc;

use tilewright_ir::condition::CellFact;
use tilewright_ir::index::Interval;
use tilewright_ir::scalar::wrap;
use tilewright_ir::{
    AtOnce, BinOp, Block, Buffer, CallTarget, DType, Error, Expr, ExprKind, IterKind, MatchRegion,
    Param, Stmt, StmtKind, TensorFunc, Var, tensor,
};

use tilewright_interp::race::Act;
use tilewright_ir::scalar;

use super::path::Path;
use super::term::{Fast, Node, Term, Terms, Val, Wrong};

mod assume;
mod eval;
mod memory;
mod race;
mod state;

pub use state::{Argument, Cells, Ran, Run, Shared, Stop, is_data, undecided};
use state::{BufferView, Dim, Memory, Watch, offsets};

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
        left_out: Vec::new(),
        path: Path::default(),
        watches: Vec::new(),
        updating: None,
        logs: Vec::new(),
        ret: None,
        stopped: false,
        span: None,
        around: Vec::new(),
        within: None,
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
            for (stride, value) in buffer.strides.iter().zip(tensor::row_major(&c.shape)) {
                if let Some(v) = stride.as_var() {
                    self.vars.entry((v.id(), 0)).or_insert(Val::Known(value as u64));
                }
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
            for (at, v) in offsets(&place, &c.shape).zip(c.cells.iter()) {
                let cells = self.memories.get_mut(memory);
                let cell = usize::try_from(at).ok().and_then(|at| cells?.cells.get_mut(at));
                if let Some(cell) = cell {
                    *cell = *v;
                }
            }
        }
        Ok(())
    }

    /// Something illegal, with the block and the loops in which it happens.
    fn fault(&self, mut what: String) -> Stop {
        if let Some(block) = &self.within {
            what = format!("{what} in block `{block}`");
        }
        let loops = self.around.iter().map(|(name, value)| format!("{name} = {value}"));
        let loops = loops.collect::<Vec<_>>().join(", ");
        match (self.path.is_empty(), loops.is_empty()) {
            (true, true) => Stop::Error(Error::execution(what)),
            (true, false) => Stop::Error(Error::execution(what).note(format!("with {loops}"))),
            (false, _) => {
                let place =
                    if loops.is_empty() { String::new() } else { format!(", with {loops}") };
                Stop::Undecided(format!("under a condition on data: {what}{place}"), None)
            }
        }
    }

    /// Makes a term.
    fn make<T>(&mut self, make: impl FnOnce(&mut Terms) -> Result<T, Wrong>) -> Ran<T> {
        make(&mut self.shared.terms).map_err(|wrong| match wrong {
            Wrong::Fault(f) => self.fault(f.text().to_owned()),
            Wrong::Full => {
                Stop::Undecided("the programs need more terms than are allowed".to_owned(), None)
            }
        })
    }

    /// Runs what a term decides: both sides, and then every cell that changed is a selection.
    fn branch(
        &mut self,
        c: Term,
        then: impl FnOnce(&mut Self) -> Ran<()>,
        otherwise: Option<&Stmt>,
    ) -> Ran<()> {
        self.logs.push(Vec::new());
        self.path.enter(&self.shared.terms, c, true);
        let ran = then(self);
        self.path.leave();
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
            self.path.enter(&self.shared.terms, c, false);
            let ran = self.stmt(otherwise);
            self.path.leave();
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
            let v = self.make(|terms| terms.ite(Val::Term(c), then, otherwise, dtype))?;
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
            StmtKind::For { var, range, kind, body, .. } => {
                let first = self.number(&range.min, "the start of a loop")?;
                let (extent, count) = self.count(&range.extent)?;
                let how = AtOnce::from_kind(kind);
                let depth = self.watches.len();
                self.watches.extend(how.map(|how| Watch {
                    name: var.name().clone(),
                    how,
                    first,
                    iteration: 0,
                    own: self.memories.len(),
                    cells: Fast::default(),
                }));
                let around = self.around.len();
                self.around.push((var.name().clone(), first));
                for i in 0..count {
                    if let Some(watch) = self.watches.get_mut(depth) {
                        watch.iteration = watch.iteration.saturating_add(1);
                    }
                    let Some(value) = first.checked_add(i) else {
                        return Err(self.fault("a loop variable does not fit its type".to_owned()));
                    };
                    self.vars.insert((var.id(), 0), Val::Known(value as u64));
                    if let Some((_, now)) = self.around.last_mut() {
                        *now = value;
                    }
                    let runs = match extent {
                        None => Val::Known(1),
                        Some(extent) => {
                            let (i, dtype) = (Val::Known(i as u64), range.extent.dtype());
                            let extent = Val::Term(extent);
                            let runs =
                                self.make(|terms| terms.binary(BinOp::Lt, dtype, i, extent))?;
                            self.given(runs)?
                        }
                    };
                    match runs {
                        Val::Known(0) => break,
                        Val::Known(_) => self.stmt(body)?,
                        Val::Term(c) => self.branch(c, |r| r.stmt(body), None)?,
                    }
                    if self.stopped {
                        break;
                    }
                }
                self.watches.truncate(depth);
                self.around.truncate(around);
                Ok(())
            }
            StmtKind::If { cond, then, otherwise } if cond.dtype().lanes > 1 => {
                self.masked(cond, then, otherwise.as_ref())
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
            StmtKind::Assert { cond, message, .. } => match self.condition(cond)? {
                Val::Known(0) => Err(self.fault(format!("assertion failed: {message}"))),
                Val::Known(_) => Ok(()),
                Val::Term(_) => undecided("an assertion depends on data"),
            },
            StmtKind::Evaluate(e) => self.evaluate(e),
        }
    }

    /// Stores of the lanes for which a condition holds, and others of those for which it does not.
    fn masked(&mut self, cond: &Expr, then: &Stmt, otherwise: Option<&Stmt>) -> Ran<()> {
        let outer = std::mem::take(&mut self.left_out);
        let mut holds = Vec::with_capacity(usize::from(cond.dtype().lanes));
        for lane in 0..cond.dtype().lanes {
            self.lane = lane;
            match self.condition(cond)? {
                Val::Known(v) => holds.push(v != 0),
                Val::Term(_) => return undecided("a mask of lanes depends on data"),
            }
        }
        self.lane = 0;
        for (branch, side) in [(Some(then), true), (otherwise, false)] {
            let Some(branch) = branch else { continue };
            let left_out = holds.iter().enumerate().map(|(lane, holds)| {
                *holds != side || outer.get(lane).is_some_and(|left_out| *left_out)
            });
            self.left_out = left_out.collect();
            self.stmt(branch)?;
        }
        self.left_out = outer;
        Ok(())
    }

    fn store(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr) -> Ran<()> {
        let lanes = value.dtype().lanes.max(1);
        if lanes == 1 {
            let act = self.begin_store(buffer, indices, value);
            let v = self.value(value, true)?;
            self.updating = None;
            let mut places = self.places(buffer, indices)?;
            if let [(None, at)] = places[..] {
                self.note(at, act, Some(v), buffer, indices)?;
                self.write(at, v);
                return Ok(());
            }
            for (c, at) in places.drain(..) {
                let c = c.map_or(Val::Known(1), Val::Term);
                let old = self.cell(at);
                let v = self.make(|terms| terms.ite(c, v, old, buffer.dtype()))?;
                self.note(at, act, Some(v), buffer, indices)?;
                self.write(at, v);
            }
            return Ok(());
        }
        let mut cells = Vec::with_capacity(usize::from(lanes));
        for lane in 0..lanes {
            if self.left_out.get(usize::from(lane)).is_some_and(|left_out| *left_out) {
                continue;
            }
            self.lane = lane;
            let v = self.value(value, true)?;
            cells.push((self.locate(buffer, indices)?, v));
        }
        self.lane = 0;
        for (at, v) in cells {
            self.note(at, Act::Write, Some(v), buffer, indices)?;
            self.write(at, v);
        }
        Ok(())
    }

    fn block(&mut self, bindings: &[Expr], block: &Arc<Block>) -> Ran<()> {
        let outer = self.within.take();
        self.within = Some(block.name.clone()).filter(|_| !block.is_plain_root());
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
        self.within = outer;
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
}
