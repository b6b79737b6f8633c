//! Where the elements of a buffer are, and compiled accesses to them.

use std::sync::Arc;

use tilewright_ir::DType;

use crate::code::{Affine, Int};
use crate::machine::{Cell, Machine, UNDEF, UNWRITTEN, WRITTEN, decode, encode};
use crate::race::{Act, Watched, message};

/// A number that is known when the program is compiled, or when its scope is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ext {
    /// Known.
    Const(i64),
    /// In the frame.
    Slot(usize),
}

impl Ext {
    /// The number.
    #[inline]
    pub fn get(self, m: &Machine<'_>) -> i64 {
        match self {
            Ext::Const(v) => v,
            Ext::Slot(slot) => m.frame[slot] as i64,
        }
    }

    /// The number, where it is known when the program is compiled.
    pub fn known(self) -> Option<i64> {
        match self {
            Ext::Const(v) => Some(v),
            Ext::Slot(_) => None,
        }
    }
}

/// No memory has as many elements; a multiple by lanes and bytes does not wrap.
const FAR: usize = usize::MAX >> 12;

/// One axis of a buffer.
#[derive(Clone, Debug)]
pub struct Dim {
    /// Number of indices.
    pub extent: Ext,
    /// Distance of neighbours in elements.
    pub stride: Ext,
    /// For a view of a region: first index of the region and extent of the source, outermost
    /// source last.
    pub outer: Vec<(Ext, Ext)>,
}

/// A buffer as a part of a memory.
#[derive(Clone, Debug)]
pub struct BufferView {
    /// Name, for messages.
    pub name: Arc<str>,
    /// Number of the memory.
    pub memory: usize,
    /// Type of the elements; may have lanes.
    pub dtype: DType,
    /// The axes.
    pub dims: Vec<Dim>,
    /// Position of the first element, in elements.
    pub offset: Ext,
    /// Whether a read out of range gives zero ([`tilewright_ir::Buffer::border`]).
    pub border: bool,
}

impl BufferView {
    /// Number of elements that the memory must have, or `None` where it is no sane number.
    pub fn span(&self, m: &Machine<'_>) -> Option<usize> {
        let mut last = usize::try_from(self.offset.get(m)).ok()?;
        if self.dims.iter().any(|d| d.extent.get(m) <= 0) {
            return Some(0);
        }
        for d in self.dims.iter().filter(|d| d.extent.get(m) > 1) {
            let steps = usize::try_from(d.extent.get(m) - 1).ok()?;
            let stride = usize::try_from(d.stride.get(m)).ok()?;
            last = last.checked_add(steps.checked_mul(stride)?)?;
        }
        last.checked_add(1)
    }

    /// Bytes of the memory.
    pub fn bytes(&self, m: &Machine<'_>) -> Option<usize> {
        let element = self.dtype.bytes().checked_mul(usize::from(self.dtype.lanes))?;
        self.span(m)?.checked_mul(element).filter(|n| isize::try_from(*n).is_ok())
    }
}

/// An element of a buffer at compiled indices.
pub struct Access {
    place: Arc<BufferView>,
    indices: Vec<Int>,
    /// Position in elements, where it is known to be within bounds.
    direct: Option<Affine>,
    size: usize,
    /// Cells of an element; none where the memory does not keep their state.
    cells: Option<usize>,
    /// Loops that have to know of it.
    watch: Option<Box<Watching>>,
}

/// What loops whose iterations run at once have to know of an access.
#[derive(Clone, Debug)]
pub struct Watching {
    /// The loops, by number.
    pub loops: Vec<(usize, Watched)>,
    /// What is done to the cell.
    pub act: Act,
    /// Cells of a lane of an element.
    pub cells: usize,
}

impl Watching {
    /// Tells the loops of an access to the element at a position. `changes` says whether it gets
    /// another value, `text` what it is called.
    pub fn note(
        &self,
        m: &mut Machine<'_>,
        (memory, at): (usize, usize),
        changes: bool,
        text: &dyn Fn(&mut Machine<'_>) -> String,
    ) {
        if m.trap.is_some() {
            return;
        }
        for (number, l) in &self.loops {
            for cell in at * self.cells..(at + 1) * self.cells {
                let noted = m.watches[*number].access((memory, cell), l.how, self.act, changes);
                if let Err(pair) = noted {
                    let text = text(m);
                    return m.fail(message(&l.name, l.how, pair, &text));
                }
            }
        }
    }
}

impl Access {
    /// An access; `cell` is the size of the memory's cells where their state is kept.
    pub fn new(place: &Arc<BufferView>, indices: Vec<Int>, cell: Option<usize>) -> Self {
        let size = place.dtype.bytes();
        let direct = (place.dtype.lanes == 1).then(|| direct(place, &indices)).flatten();
        let cells = cell.map(|c| (size / c.max(1)).max(1));
        Access { place: place.clone(), indices, direct, size, cells, watch: None }
    }

    /// The same, of which loops have to know.
    pub fn watched(self, watch: Option<Box<Watching>>) -> Self {
        Access { watch, ..self }
    }

    /// What loops have to know.
    pub fn watching(&self) -> Option<&Watching> {
        self.watch.as_deref()
    }

    /// Tells the loops of a read.
    #[inline]
    pub fn note_read(&self, m: &mut Machine<'_>, at: usize) {
        if let Some(watch) = &self.watch {
            watch.note(m, (self.place.memory, at), false, &|m| self.text(m));
        }
    }

    /// Tells the loops of a write of these bytes; whether nothing is wrong with it.
    #[inline]
    pub fn note_write(&self, m: &mut Machine<'_>, at: usize, bytes: &[u8], state: u8) -> bool {
        let Some(watch) = &self.watch else { return true };
        let old = m.memories[self.place.memory].data.get(at * bytes.len()..(at + 1) * bytes.len());
        let same = old == Some(bytes) && self.states(m, at).iter().all(|s| *s == state);
        watch.note(m, (self.place.memory, at), !same, &|m| self.text(m));
        m.trap.is_none()
    }

    /// Position in elements, where it is known to be within bounds.
    pub fn direct(&self) -> Option<&Affine> {
        self.direct.as_ref()
    }

    /// Number of the memory.
    pub fn memory(&self) -> usize {
        self.place.memory
    }

    /// Cells of an element; none where the memory does not keep their state.
    pub fn cells(&self) -> Option<usize> {
        self.cells
    }

    /// Type of a lane of an element.
    pub fn dtype(&self) -> DType {
        self.place.dtype.scalar()
    }

    /// Position of the lane of the element, in lanes from the start of the memory; `None` where it is out
    /// of bounds, or something else went wrong.
    #[inline]
    pub fn position(&self, m: &mut Machine<'_>) -> Option<usize> {
        match &self.direct {
            Some(a) => Some(a.eval(m) as usize),
            None => self.check(m),
        }
    }

    fn check(&self, m: &mut Machine<'_>) -> Option<usize> {
        let lanes = usize::from(self.place.dtype.lanes);
        let lane = m.lane;
        m.lane = lane / lanes;
        let mut at = self.place.offset.get(m);
        let mut ok = m.trap.is_none();
        for (axis, (index, d)) in self.indices.iter().zip(&self.place.dims).enumerate() {
            let i = index.eval(m);
            let extent = d.extent.get(m);
            ok &= m.trap.is_none();
            if ok && !(0..extent).contains(&i) {
                self.out_of_range(m, axis, extent);
                ok = false;
            }
            let mut shifted = i;
            for (first, extent) in &d.outer {
                shifted = shifted.wrapping_add(first.get(m));
                let extent = extent.get(m);
                if ok && !(0..extent).contains(&shifted) {
                    let text = self.text(m);
                    m.fail(format!("`{text}` is out of range: it is a view of index {shifted} of an axis with extent {extent}"));
                    ok = false;
                }
            }
            at = at.wrapping_add(i.wrapping_mul(d.stride.get(m)));
        }
        m.lane = lane;
        if !ok {
            return None;
        }
        match usize::try_from(at) {
            Ok(at) if at < FAR => Some(at * lanes + lane % lanes),
            _ => {
                self.outside(m);
                None
            }
        }
    }

    /// Whether a read gives what is outside of the memory.
    fn is_in_border(&self, m: &mut Machine<'_>) -> bool {
        self.place.border
            && self.direct.is_none()
            && self.indices.iter().zip(&self.place.dims).any(|(index, d)| {
                let (i, extent) = (index.eval(m), d.extent.get(m));
                d.outer.is_empty() && !(0..extent).contains(&i)
            })
            && m.trap.is_none()
    }

    #[cold]
    fn out_of_range(&self, m: &mut Machine<'_>, axis: usize, extent: i64) {
        let text = self.text(m);
        m.fail(format!("`{text}` is out of range: axis {axis} has extent {extent}"));
    }

    #[cold]
    fn outside(&self, m: &mut Machine<'_>) {
        let text = self.text(m);
        m.fail(format!("`{text}` lies outside of the memory that it is in"));
    }

    #[cold]
    fn unwritten(&self, m: &mut Machine<'_>) {
        let text = self.text(m);
        m.fail(format!("read of uninitialised `{text}`"));
    }

    /// The access with the values of its indices.
    fn text(&self, m: &mut Machine<'_>) -> String {
        let indices: Vec<String> = self.indices.iter().map(|i| i.eval(m).to_string()).collect();
        let indices = if indices.is_empty() { "()".to_owned() } else { indices.join(", ") };
        format!("{}[{indices}]", self.place.name)
    }

    /// The states of the cells of an element; none where the memory does not keep them.
    fn states<'m>(&self, m: &'m Machine<'_>, at: usize) -> &'m [u8] {
        let states = &m.memories[self.place.memory].state;
        self.cells.and_then(|n| states.get(at * n..at * n + n)).unwrap_or_default()
    }

    /// The state of an element.
    fn state(&self, m: &Machine<'_>, at: usize) -> u8 {
        self.states(m, at).iter().copied().min().unwrap_or(WRITTEN)
    }

    /// The bytes of an element that must have been written, with a value that is not arbitrary.
    #[inline]
    pub fn read<const N: usize>(&self, m: &mut Machine<'_>) -> Option<[u8; N]> {
        if self.is_in_border(m) {
            return Some([0; N]);
        }
        let at = self.position(m)?;
        self.note_read(m, at);
        let memory = &m.memories[self.place.memory];
        let written = match self.cells {
            None => true,
            Some(1) => memory.state.get(at).is_none_or(|s| *s == WRITTEN),
            Some(_) => self.states(m, at).iter().all(|s| *s == WRITTEN),
        };
        let bytes = memory.data.get(at.wrapping_mul(N)..).and_then(|b| b.first_chunk::<N>());
        match (written, bytes) {
            (true, Some(bytes)) => Some(*bytes),
            (_, None) => {
                self.outside(m);
                None
            }
            (false, _) => {
                self.unwritten(m);
                None
            }
        }
    }

    /// The element, which must have been written.
    pub fn load(&self, m: &mut Machine<'_>) -> Cell {
        self.copy(m).unwrap_or_else(|| {
            self.unwritten(m);
            Cell::new(0)
        })
    }

    /// The element as a copy takes it: `None` where it is unwritten.
    pub fn copy(&self, m: &mut Machine<'_>) -> Option<Cell> {
        let zero = Some(Cell::new(0));
        if self.is_in_border(m) {
            return zero;
        }
        let Some(at) = self.position(m) else { return zero };
        self.note_read(m, at);
        let (memory, state) = (&m.memories[self.place.memory], self.state(m, at));
        let Some(bytes) = memory.data.get(at * self.size..(at + 1) * self.size) else {
            self.outside(m);
            return zero;
        };
        let cell = Cell { bits: decode(bytes, self.dtype()), undef: state == UNDEF };
        (state != UNWRITTEN).then_some(cell)
    }

    /// Writes an element that is not arbitrary.
    #[inline]
    pub fn write<const N: usize>(&self, m: &mut Machine<'_>, bytes: [u8; N]) {
        let Some(at) = self.position(m) else { return };
        if !self.note_write(m, at, &bytes, WRITTEN) {
            return;
        }
        let memory = &mut m.memories[self.place.memory];
        let data = memory.data.to_mut();
        let Some(to) = data.get_mut(at.wrapping_mul(N)..).and_then(|b| b.first_chunk_mut::<N>())
        else {
            return self.outside(m);
        };
        *to = bytes;
        match self.cells {
            None => {}
            Some(1) => {
                if let Some(s) = memory.state.get_mut(at) {
                    *s = WRITTEN;
                }
            }
            Some(n) => {
                if let Some(s) = memory.state.get_mut(at * n..at * n + n) {
                    s.fill(WRITTEN);
                }
            }
        }
    }

    /// Writes an element at a position of [`Access::position`]; `None` is an unwritten cell,
    /// and leaves one.
    pub fn store_at(&self, m: &mut Machine<'_>, at: usize, value: Option<Cell>) {
        let size = self.size;
        let bits = value.map_or(0, |v| v.bits);
        let state = match value {
            None => UNWRITTEN,
            Some(v) if v.undef => UNDEF,
            Some(_) => WRITTEN,
        };
        if self.watch.is_some() {
            let mut bytes = [0; 8];
            let n = size.min(8);
            encode(bits, &mut bytes[..n]);
            if !self.note_write(m, at, &bytes[..n], state) {
                return;
            }
        }
        let memory = &mut m.memories[self.place.memory];
        let Some(to) = memory.data.to_mut().get_mut(at * size..(at + 1) * size) else {
            return self.outside(m);
        };
        encode(bits, to);
        if let Some(n) = self.cells
            && let Some(s) = memory.state.get_mut(at * n..at * n + n)
        {
            s.fill(state);
        }
    }

    /// Permits reading the element: if it was never written, it becomes arbitrary.
    pub fn permit(&self, m: &mut Machine<'_>) {
        let Some(at) = self.position(m) else { return };
        if self.state(m, at) == UNWRITTEN {
            let bits = m.fill.next(self.dtype());
            self.store_at(m, at, Some(Cell { bits, undef: true }));
        }
    }
}

/// The position as a sum of multiples of variables, if all indices are such sums and within
/// bounds whatever the variables are.
fn direct(place: &BufferView, indices: &[Int]) -> Option<Affine> {
    let mut at = Affine { base: place.offset.known()?, terms: Vec::new() };
    let mut last = i128::from(at.base);
    if at.base < 0 {
        return None;
    }
    for (index, d) in indices.iter().zip(&place.dims) {
        let (extent, stride) = (d.extent.known()?, d.stride.known()?);
        if index.lo < 0 || index.hi >= extent || stride < 0 || !d.outer.is_empty() {
            return None;
        }
        at = at.plus(index.affine()?, stride)?;
        last += i128::from(extent - 1) * i128::from(stride);
    }
    (last < FAR as i128).then_some(at)
}
