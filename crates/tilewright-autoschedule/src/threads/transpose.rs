//! Copies across, through shared memory.
//!
//! What lies side by side in the result lies rows apart in what is read: threads that write neighbours would read a
//! segment of memory each.
//!
//! ```text
//! for groups of tiles of u, of tiles of v:
//!     for y, x in threads: S[v + y ..][u + x] = A[.., v + y .., u + x]       (shared)
//!     for y, x in threads: B[.., u + y .., v + x] = f(S[v + x][u + y ..])
//! ```
//!
//! Both sides then move whole segments. As it stands, the second loop meets one bank: the rows of the tile are longer
//! by a word, so that the lanes of a warp are a whole and odd number of words apart in both loops. That no bank is met
//! twice is counted when all is bound ([`shared`](crate::shared)).

use std::sync::Arc;

use tilewright_analysis::Stage;
use tilewright_ir::{Error, Result};
use tilewright_schedule::compute::Position;
use tilewright_schedule::value::Lambda;
use tilewright_schedule::{BlockRef, LoopRef, Schedule};
use tilewright_target::ThreadGroups;

use super::grid::{GROUP, WORD_BYTES, bind, known, stride};
use crate::parts::{lay_out, split};
use crate::share::fused;

/// A tile of two axes.
#[derive(Clone, Debug)]
pub(super) struct Across {
    /// What is read across.
    buffer: Arc<str>,
    /// The position of the axis along which it is read, and of the one along which the result is written.
    axes: [usize; 2],
    /// The place of both among the axes of what is read.
    of: [usize; 2],
    /// The number of axes of what is read, and the bytes of a cell.
    rank: usize,
    bytes: i64,
    /// Cells along each side: those of a warp.
    size: i64,
}

impl Across {
    /// The tile of a stage that copies across; `None` for others.
    pub fn recognise(stage: &Stage, groups: &ThreadGroups) -> Option<Across> {
        if stage.is_reduction() {
            return None;
        }
        let dims: Vec<_> = stage.dims().map(|(v, n, _)| (v.clone(), known(n))).collect();
        let size = groups.warp;
        let long = |k: &usize| dims[*k].1.is_some_and(|n| 2 * n >= size);
        let along = (0..dims.len())
            .filter(long)
            .find(|k| stride(&stage.buffer, &stage.indices, &dims[*k].0) == Some(1))?;
        let loads = stage.loads();
        loads.iter().find_map(|(buffer, at)| {
            let [v, u] = [
                along,
                (0..dims.len())
                    .filter(long)
                    .find(|k| *k != along && stride(buffer, at, &dims[*k].0) == Some(1))?,
            ];
            let far = stride(buffer, at, &dims[v].0)?;
            let place = |k: usize| at.iter().position(|i| i.as_var() == Some(&dims[k].0));
            let alone = loads.iter().filter(|(b, _)| b == buffer).count() == 1;
            (alone && far.abs() > 1).then_some(Across {
                buffer: buffer.name.clone(),
                axes: [u, v],
                of: [place(u)?, place(v)?],
                rank: at.len(),
                bytes: buffer.dtype().bytes() as i64,
                size,
            })
        })
    }

    /// Lays the shared copy out in tiles, whose rows are longer than a warp by a word.
    fn lay_out(&self, sch: &mut Schedule, copy: &BlockRef) -> Result<()> {
        let ([u, v], size) = (self.of, self.size);
        let pitch = size + (WORD_BYTES / self.bytes).max(1);
        let map = Lambda::over_indices(self.rank, move |at| {
            let others = (0..at.len()).filter(|k| *k != u && *k != v).map(|k| at[k].clone());
            let tiles = [v, u].map(|k| at[k].clone().floordiv(size));
            let [row, column] = [v, u].map(|k| at[k].clone().floormod(size));
            others.chain(tiles).chain([row * pitch + column]).collect()
        });
        lay_out(sch, copy, &map)
    }

    /// The loops of the stage.
    pub fn nest(&self, sch: &mut Schedule, block: &BlockRef) -> Result<()> {
        let copy = sch.cache_read(block, &*self.buffer, "shared", &[])?;
        let loops = sch.get_loops(block)?;
        let [u, v] = self.axes;
        let [tiles_u, row] = split(sch, &loops[u], None, self.size)?;
        let [tiles_v, column] = split(sch, &loops[v], None, self.size)?;
        let others: Vec<LoopRef> =
            (0..loops.len()).filter(|k| *k != u && *k != v).map(|k| loops[k].clone()).collect();
        let high = GROUP / self.size;
        sch.reorder(
            &[&others[..], &[tiles_u.clone(), tiles_v.clone(), row.clone(), column.clone()]]
                .concat(),
        )?;
        let mut bound = vec![(tiles_u, "blockIdx.y"), (tiles_v.clone(), "blockIdx.x")];
        sch.compute_at(&copy, &tiles_v, false, Position::default())?;
        let own = sch.get_loops(&copy)?.split_off(others.len() + 2);
        let [first, second] = &own[..] else {
            return Err(Error::refused(format!("what `{}` reads across is no square", block.name)));
        };
        // Along the rows of what is read.
        let turned = self.of[0] < self.of[1];
        let (y, x) = if turned { (second, first) } else { (first, second) };
        if turned {
            sch.reorder(&[y.clone(), x.clone()])?;
        }
        for (y, x) in [(y, x), (&row, &column)] {
            let [each, thread] = split(sch, y, None, high)?;
            sch.reorder(&[thread.clone(), x.clone(), each])?;
            bound.extend([(thread, "threadIdx.y"), (x.clone(), "threadIdx.x")]);
        }
        if !others.is_empty() {
            bound.push((fused(sch, &others)?, "blockIdx.z"));
        }
        bind(sch, &bound)?;
        self.lay_out(sch, &copy)
    }
}
