//! The choice of a register tile, by a written cost model.
//!
//! A tile is `rows` values along one axis times `width` values along another, the *vector* axis,
//! which only the *vector operand* moves along; the other operand is *broadcast*. Its sums stay in
//! registers while the reduction runs:
//!
//! ```text
//! for each step of the reduction:
//!     load the vectors of one operand                 width / lanes registers
//!     for each row:
//!         broadcast one value of the other operand    one register
//!         sums[row] += value * vectors                rows * width / lanes registers
//! ```
//!
//! Where each channel has a window of its own (a convolution in groups of one channel), both operands
//! move along the vector axis: then the other operand is read in vectors, too, `n` of them for each row.
//! Where rows move the vector operand alone, its vectors are read for each row, and the broadcast
//! value serves all of them.
//!
//! The price of a tile of `r` rows and `n` vectors, in cycles, with `k` steps, of `l` loads each (`r + n`
//! of a product):
//!
//! ```text
//! step  = max(r * n * fma, l * load, latency, (r * n + l + COUNT / u) * issue) + lines * line + turn / i
//! price = k * step + r * n * store (contiguous) or r * width * scatter (not) + tile
//! ```
//!
//! where `fma` and the others are the constants of the target ([`tilewright_target::Costs`]), `u` steps
//! are unrolled, the innermost loop of several has `i`, and `lines` counts the cache lines that a step of
//! the reduction reads and the one before did not: rows that lie beside one another share theirs, and so do steps; of operands that
//! stay in the first cache none counts. The price of a contraction is that of all its tiles, ragged
//! ones included, plus `pack` for each cell that is packed at run time. Of an open number of rows, what
//! is left over runs in tiles of fewer rows ([`Tile::left_over`]). So padded work, the number of tiles
//! and bytes streamed all count, and a ragged size takes the tile that wastes least: 66 columns of few
//! steps are 3 tiles of 24 rather than 5 of 16. What is left over of the columns takes the vectors that
//! it needs: 13 vectors are 4 tiles of 3 and one of 1. Columns that are left over of whole vectors may
//! be vectors along the reduction instead (`columns`), at the price of such a tile of `r` rows and `m`
//! columns, with `k` steps of which `l` make a vector:
//!
//! ```text
//! step  = max(r * m * fma, (r + m) * load, latency, (r * m + r + m + COUNT) * issue) + r * line
//! price = k / l * step + k % l * r * m + r * m * (lanes + scatter) + tile
//! ```

use tilewright_ir::index::gcd;
use tilewright_ir::{Expr, IterKind};
use tilewright_target::Target;

use crate::contraction::{Contraction, ContractionAxis, Operand};
use crate::sides::is_of_pixels;

/// How many steps of a reduction run between two of its branches, where that many do.
const UNROLL: i64 = 4;
/// Statements between two branches above which more of them gain nothing, and LLVM takes long for the addresses.
const STRAIGHT: i64 = 30;
/// Steps of an innermost loop from which on a core does not foresee its end.
const FORESEEN: i64 = 5;
/// Rows that lie far from one another whose next lines a core reads ahead.
const FOLLOWED: f64 = 8.0;
/// Bytes from which on rows lie far from one another.
const FAR: i64 = PAGE_BYTES / 4;
/// Instructions that count a step, or several that are unrolled.
const COUNT: f64 = 3.0;
/// What a load of two lines takes beside that of one, in loads (measured: products with tiles of one and two vectors
/// of 64 bytes).
const SPLIT: f64 = 2.0;
/// Instructions that a core has begun and not finished, on processors of today at least.
const IN_FLIGHT: f64 = 320.0;
/// Cycles that the place of a pixel takes, whose number is divided by open sizes.
const DIGITS: f64 = 50.0;
/// Bytes of a page, in which the place of a line says in which set of the first cache it is.
const PAGE_BYTES: i64 = 4096;
/// Bytes of a cache line.
pub(crate) const LINE_BYTES: f64 = 64.0;
/// Most rows of a tile that has versions for each number of rows that is left over.
const MOST_ROWS: i64 = 10;
/// Most vectors of sums in all of these.
const VERSIONS: i64 = 90;
/// What vectors along a side of an image take beside others where masks are vectors themselves (measured with AVX2 at sides
/// that leave lanes out).
const MASKS: f64 = 1.25;
/// Lanes of the shortest vector.
pub(crate) const FEWEST: i64 = 4;

/// How the vectors of the vector operand are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From where they lie, one beside the other.
    Direct,
    /// From a copy in the order of the tiles; the axis of the buffer that is split is given.
    Packed { axis: usize },
}

/// How the rows are computed that whole tiles leave over of an open number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOver {
    /// By a tile for each number that they may be.
    Versions,
    /// By tiles of so many rows; the last one computes its last row for each that is not there
    /// (`tilewright_transform`'s `repeat_rows`).
    Tiles(i64),
}

/// A register tile.
#[derive(Clone, Copy, Debug)]
pub struct Tile {
    /// The axis of the rows, where there is one.
    pub row_axis: Option<usize>,
    /// How many rows.
    pub rows: i64,
    pub vector_axis: usize,
    /// How many values along it.
    pub width: i64,
    /// How many vectors these are.
    pub vectors: i64,
    /// The operand that moves along the vector axis.
    pub vector: usize,
    /// How it is read.
    pub source: Source,
    /// The axis of the reduction along which the columns that are left over are computed in vectors;
    /// `None` where they are a tile like others (`columns`).
    pub along: Option<usize>,
    /// The estimated cycles of the whole contraction.
    pub price: f64,
    /// The same in the mean of its sizes and smaller ones, by which tiles are compared with one another.
    pub mean: f64,
}

impl Tile {
    /// The axis of its rows, where that is open.
    pub fn open_rows<'c>(&self, c: &'c Contraction) -> Option<&'c ContractionAxis> {
        self.row_axis.map(|r| &c.axes[r]).filter(|axis| axis.is_open() && self.rows > 1)
    }

    /// How what whole tiles leave over of an open number of rows is computed. Where few rows may be all that there are,
    /// and a version for each number of rows is not much code, by these; else by tiles of fewer rows, as many as it takes
    /// for sums not to wait for one another: those that a tile has too many take no time.
    pub fn left_over(&self, c: &Contraction, target: &Target) -> LeftOver {
        if self.has_versions(c) && self.may_be_few(c) {
            return LeftOver::Versions;
        }
        let costs = &target.costs;
        let least = (costs.latency / (costs.fma * self.vectors as f64)).ceil() as i64;
        LeftOver::Tiles(least.clamp(1, self.rows))
    }

    /// Whether few rows may be all that there are, as those of a batch, and not those of an image.
    pub(crate) fn may_be_few(&self, c: &Contraction) -> bool {
        let pixels = self.row_axis.is_some_and(|r| is_of_pixels(c.axes[r].dim));
        !pixels && [0, 1].into_iter().all(|o| !c.slides(o))
    }

    /// Whether versions for each number of rows that is less than a tile's are together not much code.
    fn has_versions(&self, c: &Contraction) -> bool {
        // The last tile of an open number of columns has code of its own.
        let parts = if c.axes[self.vector_axis].is_open() { 2 } else { 1 };
        let vectors = self.rows * (self.rows - 1) / 2 * self.vectors * parts;
        (3..=MOST_ROWS).contains(&self.rows) && vectors <= VERSIONS
    }

    /// Its sizes and axes, for people.
    pub fn text(&self, c: &Contraction) -> String {
        let rows = self
            .row_axis
            .map_or(String::new(), |r| format!("{} of `{}` by ", self.rows, c.axes[r].var.name()));
        format!("tiles of {rows}{} of `{}`", self.width, c.axes[self.vector_axis].var.name())
    }

    /// How many whole tiles there are along the vector axis, and how many values are left over. Where
    /// there are fewer values than a tile has, they are one that is left over. Of an open axis, for
    /// decisions: any number may be left over, half of a tile on average.
    pub fn columns(&self, c: &Contraction) -> (i64, i64) {
        let axis = &c.axes[self.vector_axis];
        if axis.is_open() {
            ((axis.extent / self.width).max(1), (self.width / 2).max(1))
        } else {
            (axis.extent / self.width, axis.extent % self.width)
        }
    }

    /// The axis of the vector operand along which its copy is taken apart into tiles, where there is one.
    pub fn packed(&self) -> Option<usize> {
        match self.source {
            Source::Packed { axis } => Some(axis),
            Source::Direct => None,
        }
    }

    /// The axes of the vector operand that both operands move along, in other tiles.
    pub fn batch(&self, c: &Contraction) -> Vec<usize> {
        let other = &c.operands[1 - self.vector];
        let indices = c.operands[self.vector].indices.iter().enumerate();
        let batch =
            indices.filter(|(d, index)| self.packed() != Some(*d) && is_batch(index, c, other));
        batch.map(|(d, _)| d).collect()
    }

    /// How many columns are left over of whole vectors.
    pub fn narrow(&self, c: &Contraction, lanes: i64) -> i64 {
        c.axes[self.vector_axis].extent % lanes
    }

    /// Whether vectors are read where they lie beyond the last value of the axis, in rows that are made
    /// longer for it ([`Contraction::stretched`]). What comes of that is not stored.
    pub fn beyond(&self, c: &Contraction) -> bool {
        let whole = self.both(c) || c.axes[self.vector_axis].is_open() || self.zeros(c);
        self.source == Source::Direct && !whole && self.columns(c).1 > 0
    }

    /// Whether vectors that are read where they lie have zeros beyond the last value of the axis: the machine leaves
    /// out lanes of such loads, and sums have whole tiles. Only of operands that change from run to run, in
    /// contractions of open sizes: one code serves few rows, for which packing takes longer than the sums, and many.
    pub fn zeros(&self, c: &Contraction) -> bool {
        let operand = &c.operands[self.vector];
        let alone = c.whole(self.vector, self.vector_axis).is_some() && !self.both(c);
        let open = c.axes.iter().any(ContractionAxis::is_open);
        let lies = self.source == Source::Direct && c.out[self.vector_axis] == Some(1);
        lies && alone && open && !operand.free && !operand.made
    }

    /// Whether lanes of the last vectors are left out where what lies as it is ends at an open place.
    pub fn masked(&self, c: &Contraction) -> bool {
        self.source == Source::Direct && c.axes[self.vector_axis].is_open()
    }

    /// Whether vectors lie along an open side of an image, over which windows move.
    pub(crate) fn is_of_side(&self, c: &Contraction) -> bool {
        self.masked(c) && c.slides(self.vector)
    }

    /// Whether the last tile has as many lanes as there are values left: both operands are read in
    /// vectors where they lie, with few values or whole vectors of them behind whole tiles.
    pub fn exact(&self, c: &Contraction) -> bool {
        let (whole, rest) = self.columns(c);
        let lanes = self.width / self.vectors;
        // LLVM takes vectors of other sizes apart.
        let vector = rest >= FEWEST && (rest as u64).is_power_of_two();
        let fits = rest > 0 && (rest % lanes == 0 || rest < lanes && vector);
        let alone = c.axes[self.vector_axis].iters.len() == 1;
        let direct = self.source == Source::Direct && c.out[self.vector_axis] == Some(1);
        let known = !c.axes[self.vector_axis].is_open();
        self.both(c) && c.group.is_none() && direct && alone && whole > 0 && fits && known
    }

    /// Whether the vector axis ends inside of a tile, and is not padded.
    pub fn guarded(&self, c: &Contraction) -> bool {
        self.beyond(c) || self.along.is_some() || self.exact(c) || self.masked(c) && !self.zeros(c)
    }

    /// Whether both operands are read in vectors.
    pub fn both(&self, c: &Contraction) -> bool {
        c.operands[1 - self.vector].steps[self.vector_axis] != 0
    }

    /// How many steps of the reduction are made straight code: those that run between two branches
    /// ([`Tile::unrolled`]), fewer where the tile is large.
    pub fn straight(&self, c: &Contraction) -> i64 {
        let few = (STRAIGHT / (self.rows * self.vectors).max(1)).max(1);
        self.unrolled(c).min(1 << few.ilog2())
    }

    /// How many steps of the reduction run between two branches of its innermost loop.
    ///
    /// Several take fewer instructions each, which counts where a core shares its front end with
    /// another thread. A loop of few steps stays one: LLVM would take apart all around it, too. So
    /// does one whose steps read the same cells for different rows or vectors, as the window of a
    /// convolution does: LLVM would keep each of these for the steps that follow, and the sums no
    /// longer in registers (measured: windows of 4 to 27 cells, where four steps between branches
    /// take up to twice as long as one).
    pub fn unrolled(&self, c: &Contraction) -> i64 {
        let Some(&innermost) = c.reduction(self.vector).last() else { return 1 };
        if c.axes[innermost].extent <= 2 * UNROLL {
            return 1;
        }
        if self.both(c) {
            return 1;
        }
        // Along each operand: by how much a step moves, and how far apart what it reads lies.
        let [vector, broadcast] = [self.vector, 1 - self.vector].map(|o| &c.operands[o].steps);
        let apart = vector[self.vector_axis] * (self.width / self.vectors);
        let across = (vector[innermost], apart, self.vectors);
        let down = self.row_axis.map(|r| (broadcast[innermost], broadcast[r], self.rows));
        // What is packed lies in the order in which it is read.
        let across = Some(across).filter(|_| self.source == Source::Direct);
        if across.into_iter().chain(down).any(shares_sets) { 1 } else { UNROLL }
    }
}

fn is_batch(index: &Expr, c: &Contraction, other: &Operand) -> bool {
    c.axes.iter().zip(&other.steps).any(|(a, step)| {
        a.kind == IterKind::Spatial && *step != 0 && index.as_var() == Some(&a.var)
    })
}

fn shares_sets((step, apart, count): (i64, i64, i64)) -> bool {
    (1..UNROLL).map(|n| n * step.abs()).any(|moved| {
        apart != 0 && moved % apart.abs() == 0 && (1..count).contains(&(moved / apart.abs()))
    })
}

/// The estimated cycles of a contraction in a tile that was chosen for it, at the costs of a target.
pub(crate) fn cycles(c: &Contraction, target: &Target, t: &Tile) -> f64 {
    // A tile that was made has a price, whatever the constants.
    let (work, pack) = price(c, target, t).unwrap_or((t.price, 0.0));
    work + pack
}

/// How many rows have their partial sums of some columns in registers at once; none where they do not
/// fit.
pub(crate) fn rows_at_once(rows: i64, columns: i64, registers: i64) -> Option<i64> {
    // The vectors of the columns stay for all rows, and one of a row for all columns.
    let most = (registers - columns - 1) / columns;
    let parts = (most > 0).then(|| (rows as u64).div_ceil(most as u64))?;
    Some((rows as u64).div_ceil(parts) as i64)
}

/// The estimated cycles of a contraction in these tiles, in the mean of `price` at its sizes and of what as much work
/// costs at smaller ones.
pub(crate) fn mean(
    (c, price): (&Contraction, f64),
    smaller: &[Contraction],
    target: &Target,
    t: &Tile,
) -> Option<f64> {
    let mut sum = price;
    // Vectors along a short side are mostly empty.
    let shortest = t.is_of_side(c).then(|| c.shortest());
    let parts: Vec<&Contraction> = smaller.iter().chain(&shortest).collect();
    for part in &parts {
        let times: f64 =
            c.axes.iter().zip(&part.axes).map(|(a, b)| a.extent as f64 / b.extent as f64).product();
        let (work, pack) = self::price(part, target, t)?;
        sum += (work + pack) * times;
    }
    let masks = if t.is_of_side(c) && !target.vectors.has_mask_registers() { MASKS } else { 1.0 };
    Some(sum * masks / (1 + parts.len()) as f64)
}

/// The estimated cycles of a contraction in these tiles, and of what is packed in a run; `None` where
/// registers do not hold the columns that are left over.
pub(crate) fn price(c: &Contraction, target: &Target, t: &Tile) -> Option<(f64, f64)> {
    let price = Pricing::new(c, target, t);
    let spatial = c.axes_where(IterKind::Spatial, |k| k != t.vector_axis && Some(k) != t.row_axis);
    let (longer, packed) = (price.longer(), price.packed());
    let all = c.count(&spatial) as f64 * price.strips()?;
    Some((all + price.regrouped() + longer, packed))
}

/// A contraction in tiles, with what is the same for all of them.
struct Pricing<'a> {
    c: &'a Contraction,
    target: &'a Target,
    t: &'a Tile,
    lanes: i64,
    /// The axes of the reduction, and its steps.
    reduce: Vec<usize>,
    steps: f64,
    /// What the next line of a vector of a packed operand takes.
    panel: f64,
    /// Instructions of a step that count it.
    count: f64,
    /// What a step takes of leaving the innermost loop, whose branch is taken in all steps but the last.
    turn: f64,
    /// Whether both operands are in the first cache, whichever line is read.
    near: bool,
    /// The part of the tiles that bring rows, and columns, to the first cache.
    firsts: [f64; 2],
    /// How what whole tiles leave over of an open number of rows is computed.
    left_over: LeftOver,
}

impl<'a> Pricing<'a> {
    fn new(c: &'a Contraction, target: &'a Target, t: &'a Tile) -> Self {
        let costs = &target.costs;
        let lanes = target.vectors.lanes(c.bytes);
        let reduce = c.axes_where(IterKind::Reduce, |_| true);
        let steps = c.count(&reduce) as f64;
        let panel = (steps * t.width as f64) as usize * c.bytes;
        // A panel that is used once comes from where the operand lies, another one from where it stays meanwhile.
        let again = c
            .count(&c.axes_where(IterKind::Spatial, |k| c.operands[t.vector].steps[k] == 0))
            > t.rows;
        let far = if again {
            panel > target.caches.l2
        } else {
            c.size(t.vector) > target.caches.l2 as i64
        };
        let line = match t.source {
            Source::Packed { .. } if far => costs.panel_far,
            Source::Packed { .. } if panel > target.caches.l1 => costs.panel_second,
            _ => 0.0,
        };
        let turn = c.reduction(t.vector).last().map_or(0.0, |k| match c.axes[*k].extent {
            // Steps of groups of small integers are other ones, for which this was not measured.
            n @ FORESEEN.. if (n as f64) < steps && c.group.is_none() => costs.turn / n as f64,
            _ => 0.0,
        });
        let mut price = Pricing {
            c,
            target,
            t,
            lanes,
            reduce,
            steps,
            panel: line * lines(c, lanes),
            count: COUNT / t.unrolled(c) as f64,
            turn,
            near: [0, 1].iter().all(|o| c.size(*o) <= target.caches.l1 as i64 / 4),
            firsts: [1.0; 2],
            left_over: t.left_over(c, target),
        };
        price.firsts = price.firsts();
        price
    }

    /// A tile of so many rows and vectors.
    fn tile(&self, rows: i64, vectors: i64) -> f64 {
        if rows == 0 {
            return 0.0;
        }
        let (c, t, costs) = (self.c, self.t, &self.target.costs);
        let new_lines = self.new_lines(rows, vectors * self.lanes);
        let (rows, width, vectors) = (rows as f64, (vectors * self.lanes) as f64, vectors as f64);
        let read = [0, 1].map(|operand| {
            moved_along(operand, t.row_axis, rows, c)
                * moved_along(operand, Some(t.vector_axis), vectors, c)
        });
        let (work, loads) = (rows * vectors, read[0] + read[1] + self.split_loads(read[t.vector]));
        // A vector that is used once is an operand of the arithmetic. So is a value in all lanes, but the core issues
        // it apart, since its address has an index (measured: 28 rows of one vector take 1.4 times their arithmetic).
        let is_once =
            [0, 1].into_iter().any(|o| c.operands[o].steps[t.vector_axis] != 0 && read[o] == work);
        let folded = if is_once { work } else { 0.0 };
        let instructions = work + self.count + loads - folded;
        // The next tiles begin while short ones run: then their sums do not wait for one another, and what
        // is left of a tile beside its steps is done meanwhile.
        let begun = IN_FLIGHT / (self.steps * instructions);
        let step = step(self.target, work, loads, instructions, costs.latency / begun.max(1.0));
        let step = step + new_lines * costs.line + self.panel * vectors + self.turn;
        let alone = if t.both(c) { 1.0 } else { (1.0 - begun).max(0.0) };
        let store = match c.out[t.vector_axis] {
            Some(1) => (work * costs.store * alone).max(work * costs.issue),
            _ => rows * width * costs.scatter,
        };
        let jumps = t.row_axis.is_some_and(|r| !c.axes[r].is_even);
        let digits = if jumps { DIGITS * rows } else { 0.0 };
        self.steps * step + store + costs.tile * alone + digits
    }

    /// How many loads more so many vectors take that lie in two lines, since they are read where they lie in rows of
    /// an open length.
    fn split_loads(&self, vectors: f64) -> f64 {
        if self.t.masked(self.c) { SPLIT * vectors * lines(self.c, self.lanes) } else { 0.0 }
    }

    /// The lines that a step reads of operands that lie as they are, and the one before did not.
    fn new_lines(&self, rows: i64, width: i64) -> f64 {
        let t = self.t;
        if self.near {
            return 0.0;
        }
        if let Some(lines) = self.windows(rows, width) {
            return lines;
        }
        let [first_of_rows, first_of_columns] = self.firsts;
        let columns = match t.source {
            Source::Packed { .. } => 0.0,
            Source::Direct => first_of_columns * lines(self.c, width) * self.fresh(t.vector, width),
        };
        first_of_rows * self.lines_of_rows(1 - t.vector, rows as f64) + columns
    }

    /// All tiles of rows of so many vectors.
    fn strip(&self, vectors: i64) -> f64 {
        let (c, t) = (self.c, self.t);
        let m = t.row_axis.map_or(1, |r| c.axes[r].extent);
        if t.row_axis.is_some_and(|r| c.axes[r].is_open()) {
            // Any number of rows may be left over.
            let (whole, left) = self.open_strip(vectors);
            let parts = t.rows as f64;
            (m as f64 - (parts - 1.0) / 2.0).max(0.0) / parts * whole + left
        } else {
            (m / t.rows) as f64 * self.tile(t.rows, vectors) + self.tile(m % t.rows, vectors)
        }
    }

    /// Of an open number of rows, a whole tile, and the mean of what is left over.
    fn open_strip(&self, vectors: i64) -> (f64, f64) {
        let rows = self.t.rows;
        let left: f64 = match self.left_over {
            LeftOver::Versions => (1..rows).map(|n| self.tile(n, vectors)).sum(),
            LeftOver::Tiles(few) => {
                let tiles: u64 = (1..rows).map(|n| (n as u64).div_ceil(few as u64)).sum();
                tiles as f64 * self.tile(few, vectors)
            }
        };
        (self.tile(rows, vectors), left / rows as f64)
    }

    /// All tiles of columns. What is left over of these takes the vectors that it needs.
    fn strips(&self) -> Option<f64> {
        let (c, t) = (self.c, self.t);
        let (whole, left) = t.columns(c);
        let axis = &c.axes[t.vector_axis];
        if axis.is_open() {
            if axis.extent < t.width {
                return Some(self.strip((axis.extent as u64).div_ceil(self.lanes as u64) as i64));
            }
            // The last tile has half of its columns on average, in as many vectors as they take.
            let whole = (axis.extent as f64 / t.width as f64 - 0.5).max(0.0);
            let last = (1..=t.vectors).map(|vectors| self.strip(vectors)).sum::<f64>();
            return Some(whole * self.strip(t.vectors) + last / t.vectors as f64);
        }
        let last = match (self.vectors_left(), t.along) {
            (0, _) => 0.0,
            (rest, None) => self.strip(rest),
            (1, Some(along)) => self.narrow(along)?,
            (_, Some(along)) => self.strip(left / self.lanes) + self.narrow(along)?,
        };
        Some(whole as f64 * self.strip(t.vectors) + last)
    }

    /// How many vectors the columns take that whole tiles leave over.
    fn vectors_left(&self) -> i64 {
        let (_, left) = self.t.columns(self.c);
        (left as u64).div_ceil(self.lanes as u64) as i64
    }

    /// What an operand costs that is copied in a run.
    fn copy(&self, operand: usize) -> f64 {
        let bytes = self.c.operands[operand].buffer.dtype().bytes();
        self.c.size(operand) as f64 / bytes as f64 * self.target.costs.pack
    }

    /// What is packed in a run.
    fn packed(&self) -> f64 {
        match self.t.source {
            Source::Packed { .. } if !self.c.operands[self.t.vector].free => {
                self.copy(self.t.vector)
            }
            _ => 0.0,
        }
    }

    /// The operand that is the same in all lanes, where its groups do not lie beside one another.
    fn regrouped(&self) -> f64 {
        let at = 1 - self.t.vector;
        let other = &self.c.operands[at];
        match &self.c.group {
            Some(group) if !other.free && !group.lies_so(at, other) => self.copy(at),
            _ => 0.0,
        }
    }

    /// Longer rows, which have more cells to compute.
    fn longer(&self) -> f64 {
        let (c, t) = (self.c, self.t);
        if !t.beyond(c) {
            return 0.0;
        }
        let to = ((t.columns(c).0 + i64::from(self.vectors_left() > 0)) * t.width) as f64;
        let cells = c.size(t.vector) / c.operands[t.vector].buffer.dtype().bytes() as i64;
        (to / c.axes[t.vector_axis].extent as f64 - 1.0) * cells as f64 * self.target.costs.pack
    }

    /// The part of the tiles that bring rows and columns of their operands to the first cache, where the others find
    /// them there: tiles of the same columns follow one another.
    fn firsts(&self) -> [f64; 2] {
        let (c, t) = (self.c, self.t);
        let rows = t.row_axis.map_or(1, |r| c.axes[r].extent);
        let width = t.width.min(c.axes[t.vector_axis].extent);
        let (whole, left) = t.columns(c);
        let strips = (whole + left.min(1)).max(1).saturating_mul(cells_of_one(1 - t.vector, c, t));
        let tiles_of_rows = (rows as u64).div_ceil(t.rows as u64) as i64;
        // The extent of an open axis may be a number without end.
        let all_rows = self.fits_cache(rows.saturating_add(width), c);
        [share_of(strips, all_rows), share_of(tiles_of_rows, self.fits_cache(t.rows + width, c))]
    }

    fn fits_cache(&self, cells: i64, c: &Contraction) -> bool {
        let bytes = c.count(&self.reduce).saturating_mul(cells).saturating_mul(c.bytes as i64);
        bytes <= self.target.caches.l1 as i64 / 2
    }

    /// The estimated cycles of the columns that are left over, in vectors along an axis of the reduction;
    /// `None` where registers do not hold their sums.
    fn narrow(&self, along: usize) -> Option<f64> {
        let Pricing { c, target, t, lanes, .. } = *self;
        let costs = &target.costs;
        let columns = t.narrow(c, lanes);
        let m = t.row_axis.map_or(1, |r| c.axes[r].extent);
        let few = rows_at_once(t.rows.min(m), columns, target.vectors.registers as i64)?;
        let others = (c.count(&self.reduce) / c.axes[along].extent) as f64;
        let (whole, left) = (c.axes[along].extent / lanes, c.axes[along].extent % lanes);
        let lines = lines(c, lanes) * costs.line;
        let [tile, last] = [few, m % few].map(|rows| {
            if rows == 0 {
                return 0.0;
            }
            let (work, loads) = ((rows * columns) as f64, (rows + columns) as f64);
            let step = step(target, work, loads, work + loads + COUNT, costs.latency);
            let step = step + rows as f64 * lines;
            let single = work * costs.fma.max(2.0 * costs.load);
            others * (whole as f64 * step + left as f64 * single)
                + work * (costs.lanes + costs.scatter)
                + costs.tile
        });
        Some((m / few) as f64 * tile + last)
    }

    /// How many new lines a step reads of operands that lie as they are, of which one is used by all rows;
    /// `None` where both are used again. Steps of a window read what other rows read before.
    fn windows(&self, rows: i64, width: i64) -> Option<f64> {
        let (c, t) = (self.c, self.t);
        let data = [0, 1].into_iter().find(|o| {
            c.operands[*o].steps[t.vector_axis] != 0
                && t.row_axis.is_some_and(|k| c.operands[*o].steps[k] != 0)
        })?;
        let steps = &c.operands[data].steps;
        let row = t.row_axis.map_or(0, |r| steps[r]);
        let lines = lines(c, width);
        // Along one axis of the window a tile has several rows, along others the next tiles are.
        let shares = self.reduce.iter().map(|k| {
            let n = c.axes[*k].extent;
            let spatial = c.axes_where(IterKind::Spatial, |a| {
                a != t.vector_axis && steps[a] != 0 && steps[*k] != 0 && steps[a] % steps[*k] == 0
            });
            let stride =
                spatial.iter().map(|a| (steps[*a] / steps[*k]).abs()).filter(|s| *s < n).min();
            match stride {
                None => 1.0,
                Some(_) if row != 0 && row % steps[*k] == 0 && (row / steps[*k]).abs() < n => {
                    let last = (row / steps[*k]).abs() * (rows - 1) + n;
                    last.min(n * rows) as f64 / (n * rows) as f64
                }
                Some(stride) => stride as f64 / n as f64,
            }
        });
        Some(rows as f64 * lines * shares.product::<f64>())
    }

    /// How many lines of an operand a step of the reduction reads for some rows, without those that the
    /// step before has read and the first cache still holds.
    fn lines_of_rows(&self, operand: usize, rows: f64) -> f64 {
        let (c, target) = (self.c, self.target);
        let step = self.t.row_axis.map_or(0, |r| c.operands[operand].steps[r]);
        let apart = (step.abs() as f64 * c.bytes as f64 / LINE_BYTES).min(1.0);
        let lines = 1.0 + (rows - 1.0) * apart;
        if lines <= together(step.abs() * c.bytes as i64, target) {
            let fresh = self.fresh(operand, 1) * self.jump(operand);
            // Beyond so many rows that lie far from one another, lines are not read ahead.
            let bytes = step.abs() * c.bytes as i64;
            let apart = if bytes >= FAR { (rows - FOLLOWED).max(0.0) } else { 0.0 };
            let far = apart * (target.costs.line_unforeseen / target.costs.line - 1.0).max(0.0);
            (lines + far) * fresh
        } else {
            lines
        }
    }

    /// The steps by which the axes of the reduction move an operand, each with how many steps of this length follow
    /// one another, those of other axes that go on where it ends among them.
    fn runs(&self, operand: usize) -> Vec<(i64, i64)> {
        let (c, reduce) = (self.c, &self.reduce);
        let moving: Vec<(i64, i64)> = reduce
            .iter()
            .map(|k| (step_of(*k, c, operand), c.axes[*k].extent))
            .filter(|(step, extent)| *step != 0 && *extent > 1)
            .collect();
        let mut runs = moving.clone();
        for (step, run) in &mut runs {
            while let Some((_, extent)) = moving.iter().find(|(next, _)| *next == *step * *run) {
                *run *= extent;
            }
        }
        runs
    }

    /// Which part of the lines of `width` cells is new in a step of the reduction, as the axis of it
    /// moves that moves the least, with those that go on where it ends.
    fn fresh(&self, operand: usize, width: i64) -> f64 {
        let cells = (LINE_BYTES / self.c.bytes as f64).max(width as f64);
        self.runs(operand)
            .into_iter()
            .map(|(step, run)| (step as f64 / cells).max(1.0 / run as f64).min(1.0))
            .fold(1.0, f64::min)
    }

    /// How much longer than others a new line takes: where the reduction leaves lines before their end, it comes to
    /// lines that are far apart, which count where the first cache does not hold the operand.
    fn jump(&self, operand: usize) -> f64 {
        let (c, target) = (self.c, self.target);
        let nearest = self.runs(operand).into_iter().min();
        let cells = (LINE_BYTES / c.bytes as f64) as i64;
        let ends = nearest.is_some_and(|(step, run)| step.saturating_mul(run) < cells);
        if ends && c.size(operand) > target.caches.l1 as i64 {
            target.costs.line_apart / target.costs.line
        } else {
            1.0
        }
    }
}

fn cells_of_one(o: usize, c: &Contraction, t: &Tile) -> i64 {
    c.count(&c.axes_where(IterKind::Spatial, |k| {
        k != t.vector_axis && Some(k) != t.row_axis && c.operands[o].steps[k] == 0
    }))
}

fn moved_along(operand: usize, axis: Option<usize>, count: f64, c: &Contraction) -> f64 {
    if axis.is_some_and(|k| c.operands[operand].steps[k] != 0) { count } else { 1.0 }
}

fn share_of(of: i64, stays: bool) -> f64 {
    if stays { 1.0 / of as f64 } else { 1.0 }
}

fn step_of(k: usize, c: &Contraction, operand: usize) -> i64 {
    c.operands[operand].steps[k].abs()
}

/// A step of a tile by its arithmetic, its loads and its instructions, whichever takes longest.
pub(crate) fn step(target: &Target, work: f64, loads: f64, instructions: f64, latency: f64) -> f64 {
    let costs = &target.costs;
    let issue = instructions * costs.issue;
    (work * costs.fma).max(loads * costs.load).max(latency).max(issue)
}

/// How many cache lines so many cells of a contraction take.
fn lines(c: &Contraction, cells: i64) -> f64 {
    (cells as usize * c.bytes) as f64 / LINE_BYTES
}

/// How many lines that lie so many bytes apart the first cache holds: places a page apart share a set, which
/// holds one line of each page that fits.
fn together(bytes: i64, target: &Target) -> f64 {
    let page = i128::from(PAGE_BYTES);
    let places = (page / gcd(i128::from(bytes), page)) as f64;
    places.min(PAGE_BYTES as f64 / LINE_BYTES) * (target.caches.l1 as i64 / PAGE_BYTES) as f64
}
