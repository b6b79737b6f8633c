//! Conversions of constants, run directly: a strided copy for each cell that takes one.
//!
//! The place that a cell takes its element from must be affine in the cell's indices, as it is for
//! every layout of digits, and which cells take one is read from a table over those axes that the
//! condition looks at. All else is left to running the function.

use tilewright_ir::index::{Affine, Ranges, simplify};
use tilewright_ir::tensor::index_of;
use tilewright_ir::visit::{Subst, free_vars};
use tilewright_ir::{Expr, Fold, Tensor, dim};
use tilewright_runtime::parallel;

use super::constant::scalar;
use super::conversion::{Conversion, Pad};
use tilewright_graph::stages::buffer;

/// Most entries of the table of cells that take an element.
const MAX_TABLE: usize = 1 << 16;

/// What one core fills at a time.
const PART_BYTES: usize = 1 << 20;

/// What a conversion makes of a tensor; `None` where it has no such simple form.
pub(crate) fn apply(c: &Conversion, tensor: &Tensor) -> Option<Tensor> {
    if tensor.dtype() != c.dtype || c.from != tensor.shape() {
        return None;
    }
    let pad = match &c.pad {
        Pad::None | Pad::Undef => 0,
        Pad::Value(e) => scalar(e).ok()?.bits(),
    };
    let offset = Affine::of_access(&buffer("from", &c.from, c.dtype), &c.source)?;
    let steps: Vec<i64> = c.cells.iter().map(|v| offset.coefficient(v)).collect::<Option<_>>()?;
    let extents = dim::known(&c.to)?;
    let gather =
        Gather { steps, start: offset.constant(), inside: Inside::new(c, &extents)?, extents };
    let mut out = Tensor::zeros(c.dtype, &gather.extents).ok()?;
    let (from, to, pad) = (tensor.bytes(), out.bytes_mut(), pad.to_le_bytes());
    match c.dtype.bytes() {
        1 => gather.run::<1>(from, to, &pad)?,
        2 => gather.run::<2>(from, to, &pad)?,
        4 => gather.run::<4>(from, to, &pad)?,
        8 => gather.run::<8>(from, to, &pad)?,
        _ => return None,
    }
    Some(out)
}

/// Which cells take an element, as a table over some of the axes.
struct Inside {
    /// By how many entries of the table each axis moves.
    steps: Vec<usize>,
    table: Vec<bool>,
}

impl Inside {
    fn new(c: &Conversion, extents: &[usize]) -> Option<Inside> {
        let used = free_vars(&c.data);
        let mut steps = vec![0; extents.len()];
        let mut size = 1usize;
        for (k, v) in c.cells.iter().enumerate().rev() {
            if used.contains(v) {
                steps[k] = size;
                size = size.checked_mul(extents[k]).filter(|n| *n <= MAX_TABLE)?;
            }
        }
        let table = (0..size)
            .map(|at| {
                let values = c.cells.iter().zip(&steps).zip(extents).filter(|((_, s), _)| **s != 0);
                let values = values.map(|((v, step), n)| {
                    (v.clone(), Expr::int((at / step % n) as i64, v.dtype()))
                });
                let e = simplify(&Subst::vars(values).expr(&c.data), &Ranges::default());
                (e.is_true() || e.is_false()).then(|| e.is_true())
            })
            .collect::<Option<_>>()?;
        Some(Inside { steps, table })
    }
}

/// A copy row by row, or by blocks of rows where cells of a row lie far apart in the source.
struct Gather {
    extents: Vec<usize>,
    /// By how many elements the source moves along each axis.
    steps: Vec<i64>,
    start: i64,
    inside: Inside,
}

/// Rows of a block: as many elements as a line of the cache has.
const BLOCK_ROWS: usize = 16;

impl Gather {
    /// Fills the cells, large tensors by all cores; `None` where one would take what is outside of the
    /// source.
    fn run<const N: usize>(&self, from: &[u8], to: &mut [u8], pad: &[u8; 8]) -> Option<()> {
        let pad: [u8; N] = pad[..N].try_into().ok()?;
        let (from, _) = from.as_chunks::<N>();
        let (to, _) = to.as_chunks_mut::<N>();
        let width = self.extents.last().copied().unwrap_or(1).max(1);
        let rows = (PART_BYTES / (N * width)).max(1);
        let even = self.even_rows();
        let filled = parallel::map_parts(to, rows * width, |before, part| {
            self.fill(from, part, before / width, even, pad)
        });
        filled.into_iter().collect()
    }

    /// How many rows follow one another whose elements the source has at one distance, and this distance: the last
    /// axes but that of a row, as far as they count as one. Cells of such rows all take an element, or none does.
    fn even_rows(&self) -> (usize, i64) {
        let (mut count, mut distance) = (1, 0);
        if self.inside.steps.last().is_some_and(|step| *step != 0) {
            return (count, distance);
        }
        let axes = self.extents.iter().zip(&self.steps).zip(&self.inside.steps);
        for ((extent, step), table) in axes.rev().skip(1).filter(|((n, _), _)| **n != 1) {
            if count == 1 {
                distance = *step;
            }
            let is_next =
                i64::try_from(count).is_ok_and(|n| distance.checked_mul(n) == Some(*step));
            if *table != 0 || !is_next {
                break;
            }
            count *= extent;
        }
        (count, distance)
    }

    /// Fills whole rows, of which the first has a number; `None` as for [`Gather::run`].
    fn fill<const N: usize>(
        &self,
        from: &[[u8; N]],
        to: &mut [[u8; N]],
        first: usize,
        (even, distance): (usize, i64),
        pad: [u8; N],
    ) -> Option<()> {
        let (width, outer) = match self.extents.split_last() {
            Some((last, outer)) => ((*last).max(1), outer),
            None => (1, &[][..]),
        };
        let along = self.steps.last().copied().unwrap_or(0);
        let in_table = self.inside.steps.last().copied().unwrap_or(0);
        let (mut rest, mut row) = (to, first);
        while rest.len() >= width {
            let mut source = self.start;
            let mut entry = 0;
            let at = index_of(row, outer);
            for ((i, step), table) in at.iter().zip(&self.steps).zip(&self.inside.steps) {
                source += step * i64::try_from(*i).ok()?;
                entry += table * i;
            }
            let count = (even - row % even).min(rest.len() / width);
            let (part, after) = std::mem::take(&mut rest).split_at_mut(count * width);
            if in_table != 0 {
                for cell in part {
                    *cell = if self.inside.table[entry] {
                        *from.get(usize::try_from(source).ok()?)?
                    } else {
                        pad
                    };
                    source += along;
                    entry += in_table;
                }
            } else if !self.inside.table[entry] {
                part.fill(pad);
            } else if along == 1 {
                for cells in part.chunks_exact_mut(width) {
                    let begin = usize::try_from(source).ok()?;
                    cells.copy_from_slice(from.get(begin..begin.checked_add(width)?)?);
                    source += distance;
                }
            } else {
                for block in part.chunks_mut(BLOCK_ROWS * width) {
                    copy_block(from, block, width, source, (along, distance))?;
                    source += distance * BLOCK_ROWS as i64;
                }
            }
            (rest, row) = (after, row + count);
        }
        Some(())
    }
}

/// Fills some rows of a width by columns, with the steps of the source along a row and from row to row: what lies side
/// by side in the source is read at once.
fn copy_block<const N: usize>(
    from: &[[u8; N]],
    to: &mut [[u8; N]],
    width: usize,
    mut source: i64,
    (along, distance): (i64, i64),
) -> Option<()> {
    let rows = to.len() / width;
    for column in 0..width {
        let cells = to[column..].iter_mut().step_by(width);
        if distance == 1 {
            let begin = usize::try_from(source).ok()?;
            let read = from.get(begin..begin.checked_add(rows)?)?;
            cells.zip(read).for_each(|(cell, value)| *cell = *value);
        } else {
            let mut at = source;
            for cell in cells {
                *cell = *from.get(usize::try_from(at).ok()?)?;
                at += distance;
            }
        }
        source += along;
    }
    Some(())
}
