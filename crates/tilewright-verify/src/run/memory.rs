//! Memories of a symbolic run, and the buffers that lie in them.

use super::*;

/// Elements of which an access may mean one, by data.
const CHOICES: usize = 64;

/// The condition under which an access is of this element, if it needs one: its memory, and its place
/// there.
type Choice = (Option<Term>, (usize, usize));

impl Run<'_> {
    /// Takes the memory of a buffer, and puts the buffer there.
    pub(super) fn allocate(&mut self, b: &Buffer) -> Ran<usize> {
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
        let span = if place.dims.iter().any(|d| d.extent <= 0) {
            Some(0)
        } else {
            span.and_then(|s| s.checked_add(1))
        };
        let Some(left) = span.and_then(|s| self.shared.memory.checked_sub(s)) else {
            return undecided(format!("buffer `{}` is larger than what is allowed", b.name));
        };
        self.shared.memory = left;
        if let Some(memory) = self.memories.get_mut(number) {
            memory.cells = vec![self.shared.fresh; span.unwrap_or(0)];
        }
        Ok(number)
    }

    /// Puts a buffer into a memory by its own shape, strides and offset.
    pub(super) fn place(&mut self, b: &Buffer, memory: usize) -> Ran<Rc<BufferView>> {
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
        let place = Rc::new(BufferView { memory, dims: dims.collect(), offset });
        self.places.insert(b.id(), place.clone());
        Ok(place)
    }

    pub(super) fn place_of(&self, b: &Buffer) -> Ran<Rc<BufferView>> {
        match self.places.get(&b.id()) {
            Some(place) => Ok(place.clone()),
            None => Err(Error::internal(format!("buffer `{}` has no place", b.name)).into()),
        }
    }

    pub(super) fn view(&mut self, view: &MatchRegion) -> Ran<()> {
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
        self.places.insert(b.id(), Rc::new(BufferView { memory: source.memory, dims, offset }));
        Ok(())
    }

    /// Memory and position of an element.
    pub(super) fn locate(&mut self, b: &Buffer, indices: &[Expr]) -> Ran<(usize, usize)> {
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

    pub(super) fn cell(&self, (memory, at): (usize, usize)) -> Val {
        let memory = self.memories.get(memory);
        memory.and_then(|m| m.cells.get(at).copied()).unwrap_or_else(Terms::unwritten)
    }

    /// The elements that indices may mean on this path, each with the condition under which it is
    /// that one: one without a condition, or several of which exactly one holds.
    pub(super) fn places(&mut self, b: &Buffer, indices: &[Expr]) -> Ran<Vec<Choice>> {
        let mut choices: Vec<(Option<Term>, Vec<Expr>)> = vec![(None, Vec::new())];
        for e in indices {
            let mut each: Vec<(Option<Term>, Expr)> = Vec::new();
            match self.choice(e)? {
                None => each.push((None, e.clone())),
                Some((t, low, high)) => {
                    for i in low..=high {
                        let dtype = self.shared.terms.dtype(t);
                        let (i, bits) = (Expr::int(i, e.dtype().scalar()), Val::Known(i as u64));
                        match self
                            .make(|terms| terms.binary(BinOp::Eq, dtype, Val::Term(t), bits))?
                        {
                            Val::Known(0) => {}
                            Val::Known(_) => each.push((None, i)),
                            Val::Term(c) => each.push((Some(c), i)),
                        }
                    }
                }
            }
            let mut all = Vec::new();
            for (c, before) in &choices {
                for (d, i) in &each {
                    let both = match (c, d) {
                        (Some(c), Some(d)) => {
                            let (c, d) = (Val::Term(*c), Val::Term(*d));
                            match self.make(|terms| terms.binary(BinOp::And, DType::BOOL, c, d))? {
                                Val::Term(both) => Some(both),
                                Val::Known(0) => continue,
                                Val::Known(_) => None,
                            }
                        }
                        (c, d) => c.or(*d),
                    };
                    all.push((both, [before.as_slice(), std::slice::from_ref(i)].concat()));
                }
            }
            choices = all;
            if choices.len() > CHOICES {
                return undecided(format!("where `{}` is accessed depends on data", b.name));
            }
        }
        choices.into_iter().map(|(c, at)| Ok((c, self.locate(b, &at)?))).collect()
    }

    /// The term of an index that is no number, where the path bounds it, and its least and greatest
    /// value.
    fn choice(&mut self, e: &Expr) -> Ran<Option<(Term, i64, i64)>> {
        if e.as_int().is_some() || self.path.is_empty() {
            return Ok(None);
        }
        let v = self.eval(e)?;
        let Val::Term(t) = v else { return Ok(None) };
        let range = self.range(t).filter(|_| v != Terms::undef());
        let Some(Interval { lo: low, hi: high }) = range else {
            return Ok(None);
        };
        let few = low < high && high.saturating_sub(low) < CHOICES as i128;
        Ok(few.then_some((t, low as i64, high as i64)))
    }

    /// An element; `copying` says that its value is only stored, and may be a cell that is not written.
    pub(super) fn load(&mut self, b: &Buffer, indices: &[Expr], copying: bool) -> Ran<Val> {
        if b.border().is_some() && self.is_in_border(b, indices)? {
            return Ok(Val::Known(0));
        }
        let mut places = self.places(b, indices)?;
        for (_, at) in &places {
            self.note_load(*at, b, indices)?;
        }
        // One of the conditions holds: the last element needs none.
        let Some((_, last)) = places.pop() else {
            return undecided("no element is the one that is read");
        };
        let mut v = self.element(b, last, copying)?;
        for (c, at) in places.into_iter().rev() {
            let other = self.element(b, at, copying)?;
            let c = c.map_or(Val::Known(1), Val::Term);
            v = self.make(|terms| terms.ite(c, other, v, b.dtype().scalar()))?;
        }
        Ok(v)
    }

    /// Whether a read of a texture is out of range: it gives zero then.
    fn is_in_border(&mut self, b: &Buffer, indices: &[Expr]) -> Ran<bool> {
        let place = self.place_of(b)?;
        for (e, d) in indices.iter().zip(&place.dims) {
            if !(0..d.extent).contains(&self.number(e, "an index")?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What an element holds, which must have been written unless it is only copied.
    fn element(&mut self, b: &Buffer, at: (usize, usize), copying: bool) -> Ran<Val> {
        let v = self.given(self.cell(at))?;
        if copying {
            return Ok(v);
        }
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

    pub(super) fn write(&mut self, (memory, at): (usize, usize), v: Val) {
        if let Some(cell) = self.memories.get_mut(memory).and_then(|m| m.cells.get_mut(at)) {
            if let Some(log) = self.logs.last_mut() {
                log.push((memory, at, *cell));
            }
            *cell = v;
        }
    }

    /// Memory whose scope ended. Its cells may be named in the log of a branch, which keeps its
    /// place; the next one gets a new number.
    pub(super) fn free(&mut self, number: usize) {
        if self.logs.is_empty()
            && let Some(memory) = self.memories.get_mut(number)
        {
            self.shared.memory = self.shared.memory.saturating_add(memory.cells.len());
            memory.cells = Vec::new();
        }
    }
}
