//! A strided copy for each cell that takes an element.
//!
//! The place that a cell takes its element from must be affine in the cell's indices, as it is for
//! every layout of digits, and which cells take one is read from a table over those axes that the
//! condition looks at. The copy goes along the axes whose neighbours lie closest in the source.

use tilewright_graph::stages::advance;
use tilewright_ir::index::{Affine, Ranges, simplify};
use tilewright_ir::tensor::index_of;
use tilewright_ir::visit::{Subst, free_vars};
use tilewright_ir::{Buffer, DType, Expr, Fold, Tensor, Var};
use tilewright_runtime::parallel;

/// Most entries of the table of cells that take an element.
const MAX_TABLE: usize = 1 << 16;

/// What one core fills at a time.
const PART_BYTES: usize = 1 << 20;

/// Which cells take an element, as a table over some of the axes.
struct Inside {
    /// By how many entries of the table each axis moves.
    steps: Vec<usize>,
    table: Vec<bool>,
}

impl Inside {
    fn new(cells: &[Var], extents: &[usize], data: &Expr) -> Option<Inside> {
        let used = free_vars(data);
        let mut steps = vec![0; extents.len()];
        let mut size = 1usize;
        for (k, v) in cells.iter().enumerate().rev() {
            if used.contains(v) {
                steps[k] = size;
                size = size.checked_mul(extents[k]).filter(|n| *n <= MAX_TABLE)?;
            }
        }
        let table = (0..size)
            .map(|at| {
                let values = cells.iter().zip(&steps).zip(extents).filter(|((_, s), _)| **s != 0);
                let values = values.map(|((v, step), n)| {
                    (v.clone(), Expr::int((at / step % n) as i64, v.dtype()))
                });
                let e = simplify(&Subst::vars(values).expr(data), &Ranges::default());
                (e.is_true() || e.is_false()).then(|| e.is_true())
            })
            .collect::<Option<_>>()?;
        Some(Inside { steps, table })
    }
}

/// A copy row by row, or by groups of columns where cells of a row lie far apart in the source.
pub(crate) struct Gather {
    extents: Vec<usize>,
    /// By how many elements the source moves along each axis.
    steps: Vec<i64>,
    start: i64,
    inside: Inside,
    /// The bits of cells that take nothing.
    pad: u64,
}

impl Gather {
    /// That of the cells of a result with names for their indices and extents, which take the elements of a buffer at
    /// some places where `data` holds, and the bits of a pad value, or any, elsewhere. `None` where a place is not affine,
    /// an element has no whole number of bytes of a machine, or the condition looks at too many cells.
    pub fn new(
        from: &Buffer,
        places: &[Expr],
        (cells, extents): (&[Var], &[usize]),
        data: &Expr,
        pad: Option<u64>,
    ) -> Option<Gather> {
        if !matches!(from.dtype().bytes(), 1 | 2 | 4 | 8) {
            return None;
        }
        let offset = Affine::of_access(from, places)?;
        let steps: Option<Vec<i64>> = cells.iter().map(|v| offset.coefficient(v)).collect();
        Some(Gather {
            steps: steps?,
            start: offset.constant(),
            inside: Inside::new(cells, extents, data)?,
            extents: extents.to_vec(),
            pad: pad.unwrap_or(0),
        })
    }

    /// Whether all cells take one of the first elements of the source, of which there are so many.
    pub fn stays_within(&self, count: usize) -> bool {
        self.taken().is_none_or(|(least, greatest)| {
            least >= 0 && usize::try_from(greatest).is_ok_and(|k| k < count)
        })
    }

    /// The least and the greatest place that a cell takes its element from; `None` where none does. What does not fit
    /// 64 bits is the least of all.
    fn taken(&self) -> Option<(i64, i64)> {
        let axes = || self.extents.iter().zip(&self.steps).zip(&self.inside.steps);
        if self.extents.contains(&0) {
            return None;
        }
        let far = (i64::MIN, i64::MAX);
        // Along the axes that the table does not look at.
        let mut ends = Some((self.start, self.start));
        for ((extent, step), _) in axes().filter(|(_, table)| **table == 0) {
            let along = i64::try_from(extent - 1).ok().and_then(|n| step.checked_mul(n));
            ends = ends.zip(along).and_then(|((low, high), along)| {
                Some((low.checked_add(along.min(0))?, high.checked_add(along.max(0))?))
            });
        }
        let Some((low, high)) = ends else { return Some(far) };
        let entries = self.inside.table.iter().enumerate().filter(|(_, takes)| **takes);
        let offsets = entries.map(|(entry, _)| {
            axes().filter(|(_, table)| **table != 0).try_fold(
                0i64,
                |sum, ((extent, step), table)| {
                    let at = i64::try_from(entry / table % extent).ok()?;
                    sum.checked_add(step.checked_mul(at)?)
                },
            )
        });
        let places = offsets.map(|offset| {
            let offset = offset?;
            Some((low.checked_add(offset)?, high.checked_add(offset)?))
        });
        places
            .map(|ends| ends.unwrap_or(far))
            .reduce(|(a, b), (low, high)| (a.min(low), b.max(high)))
    }

    /// A tensor of the cells; `None` where there is no memory for it.
    pub fn tensor(&self, dtype: DType, from: &Tensor) -> Option<Tensor> {
        let mut out = Tensor::zeros(dtype, &self.extents).ok()?;
        let (from, to, pad) = (from.unaligned_bytes(), out.bytes_mut(), self.pad.to_le_bytes());
        match dtype.bytes() {
            1 => self.run::<1>(from, to, &pad)?,
            2 => self.run::<2>(from, to, &pad)?,
            4 => self.run::<4>(from, to, &pad)?,
            _ => self.run::<8>(from, to, &pad)?,
        }
        Some(out)
    }

    /// Fills the cells, large tensors by all cores; `None` where one would take what is outside of the
    /// source.
    fn run<const N: usize>(&self, from: &[u8], to: &mut [u8], pad: &[u8; 8]) -> Option<()> {
        let pad: [u8; N] = pad[..N].try_into().ok()?;
        let (from, _) = from.as_chunks::<N>();
        let (to, _) = to.as_chunks_mut::<N>();
        let rows = self.rows();
        let slab = rows.count * rows.inner;
        let slabs = (PART_BYTES / (N * slab).max(1)).max(1);
        let filled = parallel::map_parts(to, slabs * slab, |before, part| {
            let mut parts = part.chunks_exact_mut(slab.max(1)).enumerate();
            parts.try_for_each(|(k, part)| self.fill(from, part, before / slab + k, &rows, pad))
        });
        filled.into_iter().collect()
    }

    /// The rows that are filled together: those along the axes whose neighbours lie closest in the source, so that
    /// what is read lies side by side. Cells of such rows all take an element, or none does.
    fn rows(&self) -> Rows {
        let last = self.extents.len().saturating_sub(1);
        let may_be = |k: &usize| self.extents[*k] > 1 && self.inside.steps[*k] == 0;
        let first = (0..last).rev().filter(may_be).min_by_key(|k| self.steps[*k].unsigned_abs());
        let inner = |from: usize| self.extents[from..].iter().product::<usize>();
        let Some(axis) = first else {
            return Rows { axes: last..last, count: 1, distance: 0, inner: inner(last) };
        };
        let (mut count, distance, mut begin) = (self.extents[axis], self.steps[axis], axis);
        // Axes around it count as one with it where the last row of one is followed by the first of the next.
        while let Some(around) = begin.checked_sub(1)
            && self.inside.steps[around] == 0
            && (self.extents[around] == 1
                || i64::try_from(count)
                    .is_ok_and(|n| distance.checked_mul(n) == Some(self.steps[around])))
        {
            (begin, count) = (around, count * self.extents[around]);
        }
        Rows { axes: begin..axis + 1, count, distance, inner: inner(axis + 1) }
    }

    /// Fills the cells of some rows and of all axes inside of them, of which the first have a number; `None` as for
    /// [`Gather::run`].
    fn fill<const N: usize>(
        &self,
        from: &[[u8; N]],
        to: &mut [[u8; N]],
        number: usize,
        rows: &Rows,
        pad: [u8; N],
    ) -> Option<()> {
        let last = self.extents.len().saturating_sub(1);
        let width = self.extents.last().copied().unwrap_or(1);
        let along = self.steps.last().copied().unwrap_or(0);
        let in_table = self.inside.steps.last().copied().unwrap_or(0);
        let outer = index_of(number, &self.extents[..rows.axes.start]);
        let (start, first) = self.place((self.start, 0), 0, &outer)?;
        let between = &self.extents[rows.axes.end.min(last)..last];
        let mut at = vec![0; between.len()];
        for k in 0..rows.inner / width.max(1) {
            let (source, entry) = self.place((start, first), rows.axes.end, &at)?;
            let begin = k * width;
            let each = to[begin..].chunks_mut(rows.inner).map(|row| &mut row[..width]);
            if in_table != 0 {
                let mut source = source;
                for row in each {
                    let mut at = source;
                    for (k, cell) in row.iter_mut().enumerate() {
                        let takes = self.inside.table[entry + k * in_table];
                        *cell = if takes { *from.get(usize::try_from(at).ok()?)? } else { pad };
                        at += along;
                    }
                    source += rows.distance;
                }
            } else if !self.inside.table[entry] {
                each.for_each(|row| row.fill(pad));
            } else if along == 1 {
                let mut source = source;
                for row in each {
                    let begin = usize::try_from(source).ok()?;
                    row.copy_from_slice(from.get(begin..begin.checked_add(width)?)?);
                    source += rows.distance;
                }
            } else {
                rows.copy(from, &mut to[begin..], width, source, along)?;
            }
            advance(&mut at, between);
        }
        Some(())
    }

    /// The place in the source and the entry of the table, from those of index 0, for indices of the axes from one on.
    fn place(
        &self,
        (mut source, mut entry): (i64, usize),
        first: usize,
        at: &[usize],
    ) -> Option<(i64, usize)> {
        for (k, i) in at.iter().enumerate() {
            source += self.steps[first + k] * i64::try_from(*i).ok()?;
            entry += self.inside.steps[first + k] * i;
        }
        Some((source, entry))
    }
}

/// Rows that are filled together.
struct Rows {
    /// The axes that tell them from one another.
    axes: std::ops::Range<usize>,
    count: usize,
    /// How far one lies from the next one in the source.
    distance: i64,
    /// The cells from a row to the next one in the result.
    inner: usize,
}

/// Columns that are read together, row by row.
const COLUMNS: usize = 8;

impl Rows {
    /// Fills rows whose elements lie apart in the source, with the steps of the source along a row: a group of columns
    /// at a time, each of which is read from one end to the other.
    fn copy<const N: usize>(
        &self,
        from: &[[u8; N]],
        to: &mut [[u8; N]],
        width: usize,
        source: i64,
        along: i64,
    ) -> Option<()> {
        for column in (0..width).step_by(COLUMNS) {
            let group = COLUMNS.min(width - column);
            let mut starts = [0i64; COLUMNS];
            for (k, start) in starts.iter_mut().enumerate() {
                *start = source + along * i64::try_from(column + k).ok()?;
            }
            let mut rows = to[column..].chunks_mut(self.inner);
            if group < COLUMNS {
                for (row, k) in rows.zip(0i64..) {
                    for (cell, start) in row[..group].iter_mut().zip(starts) {
                        *cell = *from.get(usize::try_from(start + k * self.distance).ok()?)?;
                    }
                }
            } else if self.distance == 1 {
                let mut columns = [&from[..0]; COLUMNS];
                for (column, start) in columns.iter_mut().zip(starts) {
                    let begin = usize::try_from(start).ok()?;
                    *column = from.get(begin..begin.checked_add(self.count)?)?;
                }
                for k in 0..self.count {
                    let row = rows.next()?.first_chunk_mut::<COLUMNS>()?;
                    for (cell, column) in row.iter_mut().zip(&columns) {
                        *cell = column[k];
                    }
                }
            } else {
                for (row, k) in rows.zip(0i64..) {
                    let row = row.first_chunk_mut::<COLUMNS>()?;
                    for (cell, start) in row.iter_mut().zip(starts) {
                        *cell = *from.get(usize::try_from(start + k * self.distance).ok()?)?;
                    }
                }
            }
        }
        Some(())
    }
}
