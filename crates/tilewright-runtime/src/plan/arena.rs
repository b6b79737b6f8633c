//! Offsets in one arena, from sizes and lifetimes.
//!
//! *Greedy by size* (Pisarchyk and Lee, "Efficient memory management for deep neural net
//! inference", 2020): blocks are placed from the largest to the smallest, each into the smallest
//! gap that fits between the blocks that are alive at the same time, else behind them. Ties go to
//! the block that is born first, so the result depends on nothing but the input.

/// Offsets and sizes are multiples of this many bytes: a cache line, a 512-bit vector.
pub const ALIGN: usize = tilewright_ir::tensor::ALIGN;

/// Memory that is needed from one step to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Size in bytes.
    pub bytes: usize,
    /// First step.
    pub first: usize,
    /// Last step.
    pub last: usize,
}

impl Block {
    /// Whether both are needed during some step.
    pub fn meets(&self, other: &Block) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// An offset for each block, a multiple of [`ALIGN`], such that blocks that are needed at the same
/// time do not overlap; and the size of the arena. `None` where the size does not fit `isize`.
/// Blocks without bytes lie at zero.
pub fn place(blocks: &[Block]) -> Option<(Vec<usize>, usize)> {
    let mut order: Vec<usize> = (0..blocks.len()).filter(|b| blocks[*b].bytes > 0).collect();
    order.sort_by_key(|b| (std::cmp::Reverse(blocks[*b].bytes), blocks[*b].first, *b));
    let mut offsets = vec![0; blocks.len()];
    // Start, end and block of what is placed, by start.
    let mut placed: Vec<(usize, usize, usize)> = Vec::new();
    let mut arena = 0;
    for b in order {
        let bytes = blocks[b].bytes.checked_next_multiple_of(ALIGN)?;
        let (mut free_from, mut best) = (0, None);
        for (start, end, other) in &placed {
            if !blocks[b].meets(&blocks[*other]) {
                continue;
            }
            let gap = start.saturating_sub(free_from);
            if gap >= bytes && best.is_none_or(|(g, _)| gap < g) {
                best = Some((gap, free_from));
            }
            free_from = free_from.max(*end);
        }
        let start = best.map_or(free_from, |b| b.1);
        let end = start.checked_add(bytes).filter(|end| *end <= isize::MAX as usize)?;
        offsets[b] = start;
        arena = arena.max(end);
        let at = placed.partition_point(|p| p.0 < start);
        placed.insert(at, (start, end, b));
    }
    Some((offsets, arena))
}

/// The most bytes that are needed during one step: no arena can be smaller.
pub fn lower_bound(blocks: &[Block]) -> usize {
    let mut changes: Vec<(usize, isize)> = Vec::new();
    for b in blocks {
        let bytes = b.bytes.next_multiple_of(ALIGN) as isize;
        changes.extend([(b.first, bytes), (b.last + 1, -bytes)]);
    }
    // What ends before a step goes before what begins with it.
    changes.sort_unstable();
    let live = changes.iter().scan(0, |live, c| {
        *live += c.1;
        Some(*live)
    });
    live.max().map_or(0, |most| most.max(0) as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block(bytes: usize, first: usize, last: usize) -> Block {
        Block { bytes, first, last }
    }

    #[test]
    fn blocks_of_different_times_share_memory() {
        let chain: Vec<Block> = (0..10).map(|n| block(1000, n, n + 1)).collect();
        let (offsets, arena) = place(&chain).expect("fits");
        assert_eq!(arena, 2 * 1024);
        assert_eq!(offsets, [0, 1024, 0, 1024, 0, 1024, 0, 1024, 0, 1024]);
        assert_eq!(lower_bound(&chain), arena);
    }

    #[test]
    fn the_smallest_gap_is_taken() {
        // At step 2, gaps of 128 and of 64 bytes lie between blocks that stay.
        let blocks = [
            block(640, 0, 2),
            block(576, 0, 2),
            block(512, 0, 2),
            block(128, 0, 1),
            block(64, 2, 2),
        ];
        let (offsets, arena) = place(&blocks).expect("fits");
        assert_eq!(arena, 640 + 576 + 512 + 128);
        assert_eq!(offsets[4], offsets[3]);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let huge = block(usize::MAX / 3, 0, 0);
        assert_eq!(place(&[huge, huge, huge]), None);
        assert_eq!(place(&[block(usize::MAX, 0, 0)]), None);
        assert_eq!(place(&[block(0, 0, 5)]), Some((vec![0], 0)));
    }

    proptest! {
        #[test]
        fn live_blocks_never_overlap(
            blocks in prop::collection::vec((0usize..5000, 0usize..30, 0usize..12), 0..60)
        ) {
            let blocks: Vec<Block> =
                blocks.into_iter().map(|(n, first, len)| block(n, first, first + len)).collect();
            let (offsets, arena) = place(&blocks).expect("fits");
            prop_assert!(arena >= lower_bound(&blocks));
            for (i, a) in blocks.iter().enumerate() {
                prop_assert_eq!(offsets[i] % ALIGN, 0);
                prop_assert!(offsets[i] + a.bytes <= arena);
                for (j, b) in blocks.iter().enumerate().skip(i + 1) {
                    let apart = offsets[i] + a.bytes <= offsets[j]
                        || offsets[j] + b.bytes <= offsets[i];
                    prop_assert!(!a.meets(b) || apart || a.bytes == 0 || b.bytes == 0);
                }
            }
        }
    }
}
