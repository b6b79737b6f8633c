//! An index map at every point of a constant shape: what is asked point by point, is answered exactly.

use tilewright_ir::{Expr, Result};

use super::{Spec, dtype, refused, text_of};
use crate::program::{Points, Program};

/// Most points of a shape that are looked at one by one.
pub const MOST_POINTS: i64 = 1 << 22;

/// Physical indices are below this.
const MOST_INDEX: i64 = 1 << 40;

/// The offsets in memory of all points of a shape.
pub struct Grid {
    shape: Vec<i64>,
    /// The smallest box from zero that holds all physical indices.
    physical: Vec<i64>,
    /// By the logical index, the last one fastest.
    offsets: Vec<i64>,
}

impl Grid {
    /// Each point of a shape in a layout.
    ///
    /// # Errors
    /// `Refused` for a negative index, an index that is no arithmetic of the parameters, and more than
    /// [`MOST_POINTS`] points.
    pub fn new(spec: &Spec, shape: &[i64]) -> Result<Grid> {
        let map = &spec.map;
        let count = shape.iter().try_fold(1i64, |p, n| p.checked_mul(*n));
        let count = count.filter(|n| *n <= MOST_POINTS).ok_or_else(|| {
            refused(format!("more than {MOST_POINTS} points are not looked at one by one"))
        })?;
        let programs = map.indices.iter().map(|e| {
            Program::compile(&map.params, e).map_err(|part| {
                refused(format!("`{}` is no arithmetic of indices", text_of(&part)))
            })
        });
        let programs: Vec<Program> = programs.collect::<Result<_>>()?;
        let mut indices: Vec<Vec<i64>> = Vec::with_capacity(count as usize);
        let mut physical = vec![0; programs.len()];
        let mut stack = Vec::new();
        for at in Points::new(shape, count) {
            let mut cell = Vec::with_capacity(programs.len());
            for ((program, index), extent) in programs.iter().zip(&map.indices).zip(&mut physical) {
                let value = program.execute(&at, &mut stack).and_then(|v| match v {
                    ..0 => Err("is negative"),
                    v if v >= MOST_INDEX => Err("is too large"),
                    v => Ok(v),
                });
                let value = value.map_err(|why| {
                    let text = text_of(index);
                    refused(format!("at {at:?} the index `{text}` {why}"))
                })?;
                *extent = (*extent).max(value + 1);
                cell.push(value);
            }
            indices.push(cell);
        }
        let whole = spec.with_whole_tiles(shape);
        if whole != shape {
            let whole: Vec<Expr> = whole.iter().map(|n| Expr::int(*n, dtype())).collect();
            let boxes = map.on(&whole, false)?.physical;
            for (extent, n) in physical.iter_mut().zip(&boxes) {
                *extent = n.as_int().map_or(*extent, |n| n.max(*extent));
            }
        }
        let cells = physical.iter().try_fold(1i64, |p, n| p.checked_mul(*n));
        if cells.is_none() {
            return Err(refused("the physical box is too large"));
        }
        let offsets = indices
            .iter()
            .map(|cell| cell.iter().zip(&physical).fold(0, |sum, (i, n)| sum * n + i))
            .collect();
        Ok(Grid { shape: shape.to_vec(), physical, offsets })
    }

    /// The logical extents.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// The physical extents.
    pub fn physical(&self) -> &[i64] {
        &self.physical
    }

    /// The number of cells of memory.
    pub fn cells(&self) -> i64 {
        self.physical.iter().product()
    }

    /// The offsets of all points, the last logical index fastest.
    pub fn offsets(&self) -> &[i64] {
        &self.offsets
    }

    /// All points, the last index fastest.
    pub fn points(&self) -> impl Iterator<Item = Vec<i64>> + use<> {
        Points::new(&self.shape, self.offsets.len() as i64)
    }

    /// The offset of a point of the shape.
    pub fn offset(&self, at: &[i64]) -> i64 {
        let flat = at.iter().zip(&self.shape).fold(0, |sum, (i, n)| sum * n + i);
        self.offsets.get(flat as usize).copied().unwrap_or(0)
    }

    /// The point with a number, counted with the last index fastest.
    pub fn point(&self, number: usize) -> Vec<i64> {
        let mut rest = number as i64;
        let mut at: Vec<i64> = self
            .shape
            .iter()
            .rev()
            .map(|n| {
                let digit = rest % n.max(&1);
                rest /= n.max(&1);
                digit
            })
            .collect();
        at.reverse();
        at
    }

    /// The number of the point in each cell, in the order of memory; `None` for padding. Where several
    /// points share a cell, that is the first.
    pub fn contents(&self) -> Vec<Option<usize>> {
        let mut cells = vec![None; self.cells() as usize];
        for (number, offset) in self.offsets.iter().enumerate().rev() {
            cells[*offset as usize] = Some(number);
        }
        cells
    }
}
