//! Contractions, recognised from their accesses.
//!
//! A contraction is a stage `out[s] += a[..] * b[..]` of floats, or of integers of 8 or 16 bits that
//! are summed up in `int32`, whose loads are affine in the iteration variables. What an operator is called, and how many axes it has, does not matter; all
//! that a schedule needs is by how many cells each access moves along each axis:
//!
//! | | `a` | `b` | out |
//! |---|---|---|---|
//! | batch | moves | moves | moves |
//! | rows of `a` | moves | stays | moves |
//! | columns of `b` | stays | moves | moves |
//! | reduction | moves | moves | stays |
//!
//! Integers are multiplied by dot-product instructions of the target, which take several neighbours
//! along an axis of the reduction at once ([`Group`]).
//!
//! A matrix product has one axis of each of the last three kinds, a convolution has pixels as rows
//! and output channels as columns, whatever the order of axes in memory.

use std::sync::Arc;

use tilewright_analysis::Stage;
use tilewright_ir::dim::USUAL_SIZE;
use tilewright_ir::index::Affine;
use tilewright_ir::{Attr, Buffer, DType, Dim, Expr, ExprKind, IterKind, TensorFunc, Var, dim};
use tilewright_layout::marks::FREE_LAYOUT;
use tilewright_target::{Target, TensorInstruction};

use crate::halves::is_half;
use crate::sides::{MUCH_SHORTER, SHORT, SHORTER, SHORTEST};

/// An axis of a contraction: an iteration variable of its block, or several that all accesses walk
/// as if they were one.
#[derive(Clone, Debug)]
pub struct ContractionAxis {
    /// The block's variable; the last one of several.
    pub var: Var,
    /// The positions of its iteration variables in the block, the slowest first, and their extents.
    pub iters: Vec<(usize, Dim)>,
    /// The number of its values, which start at zero; for decisions, where it is open.
    pub extent: i64,
    /// The same, exactly.
    pub dim: Dim,
    /// Spatial or reduction.
    pub kind: IterKind,
    /// Whether all operands move along it by equal steps. Those of several variables that one does not walk as one
    /// move by the step of the fastest one, and jump where that begins again.
    pub is_even: bool,
}

impl ContractionAxis {
    /// The axis of the `k`-th iteration variable of a block.
    pub fn new(k: usize, var: &Var, dim: Dim, kind: IterKind) -> ContractionAxis {
        let extent = dim.estimate();
        ContractionAxis {
            var: var.clone(),
            iters: vec![(k, dim)],
            extent,
            dim,
            kind,
            is_even: true,
        }
    }

    /// Whether its extent is known only when the function runs.
    pub fn is_open(&self) -> bool {
        self.dim.known().is_none()
    }
}

/// A factor of the product.
#[derive(Clone, Debug)]
pub struct Operand {
    /// The buffer that is read.
    pub buffer: Buffer,
    /// Where, in terms of the axes.
    pub indices: Vec<Expr>,
    /// By how many cells it moves along each axis.
    pub steps: Vec<i64>,
    /// Whether its layout is free: it is the same in every run, and may be stored as the kernel
    /// reads it.
    pub free: bool,
    /// Whether a stage of the function computes it, such as its padding, so that its rows may be
    /// made longer.
    pub made: bool,
    /// Bytes that it has in all, for decisions.
    pub size: i64,
}

/// Elements along an axis of the reduction that one instruction multiplies and adds up.
#[derive(Clone, Debug)]
pub struct Group {
    /// The axis, which counts groups.
    pub axis: usize,
    /// How many elements a group has.
    pub size: i64,
    /// How many elements there are in all.
    pub extent: i64,
    /// The index of each operand that runs along the axis.
    pub dims: [usize; 2],
    /// The instruction, where the first operand is read in vectors, and where the second is.
    pub instructions: [Option<&'static TensorInstruction>; 2],
}

impl Group {
    /// Whether the elements of each group of an operand lie beside one another, and no group is
    /// smaller than others.
    pub fn lies_so(&self, operand: usize, of: &Operand) -> bool {
        self.dims[operand] + 1 == of.indices.len() && self.extent % self.size == 0
    }
}

/// A contraction.
#[derive(Clone, Debug)]
pub struct Contraction {
    /// The name of its block.
    pub block: Arc<str>,
    /// Iteration variables in the order of the loops, spatial ones first.
    pub axes: Vec<ContractionAxis>,
    /// The factors.
    pub operands: [Operand; 2],
    /// For each axis of the buffer of sums the position of the iteration variable that runs along it,
    /// where its extent is not one.
    pub dims: Vec<Option<usize>>,
    /// By how many cells the place of the finished value moves along each axis; `None` where that is
    /// not even.
    pub out: Vec<Option<i64>>,
    /// For each axis the indices of the finished value that it is as a whole, the first and the one behind the last,
    /// those of one value not counted.
    pub places: Vec<Option<(usize, usize)>>,
    /// The type of a sum.
    pub dtype: DType,
    /// Bytes of a sum, and of what is multiplied in one lane: an element, or a group of them.
    pub bytes: usize,
    /// What an instruction adds up at once.
    pub group: Option<Group>,
}

impl Operand {
    /// The load that a factor of sums of a type is, widened or not.
    fn recognise(factor: &Expr, dtype: DType, axes: &[ContractionAxis]) -> Option<Operand> {
        let (load, widened) = match factor.kind() {
            ExprKind::Cast(narrow) if matches!(dtype, DType::I32 | DType::F32) => (narrow, true),
            _ => (factor, false),
        };
        let ExprKind::Load(buffer, indices) = load.kind() else { return None };
        let fits = match dtype {
            DType::I32 => matches!(buffer.dtype(), DType::I8 | DType::U8 | DType::I16),
            DType::F32 if widened => is_half(buffer.dtype()),
            _ => !widened && buffer.dtype() == dtype,
        };
        let steps = steps(buffer, indices, axes)?;
        let shape = dim::of_shape(&buffer.shape).unwrap_or_default();
        let size = (dim::product(shape) * buffer.dtype().bytes()).estimate();
        let (buffer, indices) = (buffer.clone(), indices.clone());
        fits.then_some(Operand { buffer, indices, steps, free: false, made: false, size })
    }
}

impl Contraction {
    /// The contraction that a stage is, if it is one. `is_free` says which buffers have a free layout. Products of
    /// `float16` alone are none: no processor has dot products of them.
    pub fn recognise(stage: &Stage, is_free: impl Fn(&Buffer) -> bool) -> Option<Contraction> {
        let c = Contraction::of_any_type(stage, is_free)?;
        let halves = c.operands.iter().all(|o| o.buffer.dtype() == DType::F16);
        (!halves).then_some(c)
    }

    /// The same, products of `float16` included.
    pub fn of_any_type(stage: &Stage, is_free: impl Fn(&Buffer) -> bool) -> Option<Contraction> {
        let [a, b] = stage.factors()?;
        let dtype = stage.buffer.dtype();
        stage.init.as_ref().filter(|e| is_zero(e, dtype))?;
        let axes: Vec<ContractionAxis> = stage
            .dims()
            .enumerate()
            .map(|(k, (var, extent, kind))| ContractionAxis::new(k, var, extent, kind))
            .collect();
        let operands =
            [Operand::recognise(&a, dtype, &axes)?, Operand::recognise(&b, dtype, &axes)?]
                .map(|o| Operand { free: is_free(&o.buffer), ..o });
        // Weights may be halves that are multiplied by numbers.
        let types = operands.each_ref().map(|o| o.buffer.dtype());
        let one_is_narrow = (types[0] == dtype) != (types[1] == dtype);
        if operands[0].buffer == operands[1].buffer || one_is_narrow && dtype != DType::F32 {
            return None;
        }
        let out = steps(&stage.buffer, &stage.indices, &axes)?;
        let places = places(&stage.buffer, &stage.indices, &axes);
        let dims = stage
            .covers_buffer()?
            .into_iter()
            .map(|v| v.and_then(|v| axes.iter().position(|a| a.var == v)))
            .collect();
        let c = Contraction {
            block: stage.name().clone(),
            operands,
            dims,
            out: out.into_iter().map(Some).collect(),
            places,
            dtype,
            bytes: dtype.bytes(),
            group: None,
            axes,
        };
        Some(c.with_batch_as_rows())
    }

    /// The same with a batch taken for many examples where they are all rows that there are: a tile of several serves a
    /// few as well.
    fn with_batch_as_rows(mut self) -> Contraction {
        for operand in [0, 1] {
            let alone = self.axes_where(IterKind::Spatial, |k| {
                self.axes[k].extent > 1
                    && self.operands[operand].steps[k] != 0
                    && self.operands[1 - operand].steps[k] == 0
            });
            if let [k] = alone[..]
                && self.axes[k].is_open()
                && self.axes[k].extent < SHORTEST
            {
                let few = std::mem::replace(&mut self.axes[k].extent, USUAL_SIZE as i64);
                let size = &mut self.operands[operand].size;
                *size = size.saturating_mul(USUAL_SIZE as i64) / few;
            }
        }
        self
    }

    /// Whether both factors have fewer bits than its sums, and only dot-product instructions multiply
    /// them: integers, and `bfloat16`.
    pub fn is_widened(&self) -> bool {
        self.operands.iter().all(|o| o.buffer.dtype() != self.dtype)
    }

    /// Whether an operand is halves that are widened where they are multiplied: as a vector, which serves all rows,
    /// and not number by number.
    pub fn is_half(&self, operand: usize) -> bool {
        self.dtype == DType::F32
            && self.group.is_none()
            && is_half(self.operands[operand].buffer.dtype())
    }

    /// The same contraction by groups of what a dot-product instruction of a target takes; as it is
    /// where factors have the type of sums, and `None` where the target has no such instruction for these types, or no axis of
    /// the reduction runs along a whole axis of both operands.
    pub fn grouped(mut self, target: &Target) -> Option<Contraction> {
        if !self.is_widened() {
            return Some(self);
        }
        let lanes = target.vectors.lanes(self.bytes);
        let types = [0, 1].map(|o| self.operands[o].buffer.dtype());
        let instructions = [0, 1].map(|vector| {
            target.tensor_instructions().find(|i| {
                let fits = i.is_dot() && i.c.columns == lanes && i.c.dtype == self.dtype;
                fits && (i.a.dtype, i.b.dtype) == (types[1 - vector], types[vector])
            })
        });
        let size = instructions.iter().flatten().next()?.b.group;
        let axes = self.axes_where(IterKind::Reduce, |k| {
            !self.axes[k].is_open() && self.whole(0, k).is_some() && self.whole(1, k).is_some()
        });
        let axis = axes.into_iter().max_by_key(|k| self.axes[*k].extent)?;
        let extent = self.axes[axis].extent;
        let dims = [self.whole(0, axis)?, self.whole(1, axis)?];
        let count = (extent as u64).div_ceil(size as u64);
        self.axes[axis].extent = count as i64;
        self.axes[axis].dim = Dim::from(count as usize);
        // Steps are counted in groups, as what is packed lies.
        for o in &mut self.operands {
            o.steps.iter_mut().for_each(|s| *s = s.signum() * (s.abs() / size).max(s.abs().min(1)));
        }
        self.group = Some(Group { axis, size, extent, dims, instructions });
        Some(self)
    }

    /// The index of an operand that an axis runs along as a whole and alone; a window that slides
    /// reads cells at places that depend on two axes.
    pub fn whole(&self, operand: usize, k: usize) -> Option<usize> {
        let (o, axis) = (&self.operands[operand], &self.axes[k]);
        let alone = o.indices.iter().position(|i| i.as_var() == Some(&axis.var));
        let once = o.indices.iter().filter(|i| i.mentions(&axis.var)).count() == 1;
        alone.filter(|d| once && Dim::from_expr(&o.buffer.shape[*d]) == Some(axis.dim))
    }

    /// How long the halves of an operand's rows have to be so that vectors along an axis can be read up
    /// to a value behind its last one: the innermost index is the axis and a place in a window, and rows
    /// of two such halves have room for all of them. `None` where the operand cannot be made so.
    pub fn stretched(&self, operand: usize, k: usize, to: i64) -> Option<i64> {
        let (o, axis) = (&self.operands[operand], &self.axes[k]);
        let (last, others) = o.indices.split_last()?;
        let along = Affine::from_expr(last)?.coefficient(&axis.var) == Some(1);
        let alone = !others.iter().any(|i| i.mentions(&axis.var)) && axis.iters.len() == 1;
        let row = *o.buffer.const_shape()?.last()?;
        let half = (row + to - axis.extent + 1) / 2;
        (o.made && along && alone && !axis.is_open() && half < row).then_some(half)
    }

    /// The same contraction with fewer axes: where all accesses walk two of them as one, they are one.
    /// A convolution by a window of one pixel so has all its pixels in one axis. `None` where there is
    /// nothing to merge.
    pub fn merged(&self) -> Option<Contraction> {
        self.merged_by(Contraction::mergeable)
    }

    /// The same contraction with all pixels of open images as the rows of one axis, which the result walks as one, and
    /// the data that a window slides over does not: tiles then go on where a row of an image ends.
    pub fn flattened(&self) -> Option<Contraction> {
        let mut c = self.merged_by(Contraction::pixels)?;
        for axis in c.axes.iter_mut().filter(|a| a.iters.len() > 1) {
            axis.is_even = false;
        }
        Some(c)
    }

    fn merged_by(
        &self,
        pair: impl Fn(&Contraction) -> Option<(usize, usize)>,
    ) -> Option<Contraction> {
        let mut c = self.clone();
        while let Some((slow, fast)) = pair(&c) {
            let axis = c.axes[slow].clone();
            let into = &mut c.axes[fast];
            into.extent = into.extent.saturating_mul(axis.extent);
            into.dim = axis.dim * into.dim;
            into.iters.splice(0..0, axis.iters);
            c.places[fast] = c.places[slow].zip(c.places[fast]).map(|(s, f)| (s.0, f.1));
            c.axes.remove(slow);
            c.out.remove(slow);
            c.places.remove(slow);
            c.operands.iter_mut().for_each(|o| {
                o.steps.remove(slow);
            });
        }
        (c.axes.len() < self.axes.len()).then_some(c)
    }

    /// Two axes of open sizes that one operand moves along, in a window that slides over it, and the result walks as one.
    fn pixels(&self) -> Option<(usize, usize)> {
        let spatial = self.axes_where(IterKind::Spatial, |k| self.axes[k].dim != 1);
        let pairs = spatial.iter().flat_map(|s| spatial.iter().map(move |f| (*s, *f)));
        pairs.into_iter().find(|&(slow, fast)| {
            let moving = |k: usize| [0, 1].map(|o| self.operands[o].steps[k] != 0);
            let beside = self.places[slow].zip(self.places[fast]).is_some_and(|(s, f)| s.1 == f.0);
            let data = [0, 1].into_iter().filter(|o| moving(fast)[*o]);
            // Of multiples and sums of sizes it takes long to see that digits are in range.
            let is_size = |k: usize| self.axes[k].iters.iter().all(|(_, n)| n.is_single());
            is_size(slow)
                && is_size(fast)
                && beside
                && moving(slow) == moving(fast)
                && matches!(data.collect::<Vec<_>>()[..], [data] if self.slides(data))
        })
    }

    /// Two axes that one operand and the result walk as one, and the other operand stays along.
    fn mergeable(&self) -> Option<(usize, usize)> {
        let spatial = self.axes_where(IterKind::Spatial, |k| self.axes[k].extent > 1);
        let pairs = spatial.iter().flat_map(|s| spatial.iter().map(move |f| (*s, *f)));
        pairs.into_iter().find(|&(slow, fast)| {
            let n = self.axes[fast].extent;
            let moving = self.operands.iter().filter(|o| o.steps[fast] != 0).count();
            slow != fast
                && moving == 1
                && !self.axes[fast].is_open()
                && self.operands.iter().all(|o| as_one(o.steps[slow], o.steps[fast], n))
                && self.out[slow].zip(self.out[fast]).is_some_and(|(s, f)| as_one(s, f, n))
        })
    }

    /// The axes of a kind that satisfy a condition, by their position.
    pub fn axes_where(&self, kind: IterKind, wanted: impl Fn(usize) -> bool) -> Vec<usize> {
        (0..self.axes.len()).filter(|k| self.axes[*k].kind == kind && wanted(*k)).collect()
    }

    /// The axes of the reduction in the order in which an operand lies, the innermost last; axes of
    /// one step are outside.
    pub fn reduction(&self, operand: usize) -> Vec<usize> {
        let mut axes = self.axes_where(IterKind::Reduce, |_| true);
        let steps = &self.operands[operand].steps;
        axes.sort_by_key(|k| (self.axes[*k].extent > 1, std::cmp::Reverse(steps[*k].abs())));
        axes
    }

    /// The axes of the reduction that have several steps, in the order of an operand that lies as they follow one another:
    /// the given one if it does, or none does.
    pub(crate) fn summed(&self, operand: usize) -> Vec<usize> {
        let order = |o: usize| -> Vec<usize> {
            self.reduction(o).into_iter().filter(|k| self.axes[*k].extent > 1).collect()
        };
        let lies_so = |o: usize, axes: &[usize]| {
            let steps = &self.operands[o].steps;
            let follow = |w: &[usize]| as_one(steps[w[0]], steps[w[1]], self.axes[w[1]].extent);
            axes.windows(2).all(follow) && axes.last().is_some_and(|k| steps[*k] == 1)
        };
        let all = [operand, 1 - operand].map(|o| (o, order(o)));
        let found = all.iter().find(|(o, axes)| lies_so(*o, axes));
        found.unwrap_or(&all[0]).1.clone()
    }

    /// Whether windows slide over an operand: an index of it depends on a spatial axis and one of the
    /// reduction.
    pub fn slides(&self, operand: usize) -> bool {
        self.operands[operand]
            .indices
            .iter()
            .any(|e| self.has_kind(e, IterKind::Spatial) && self.has_kind(e, IterKind::Reduce))
    }

    /// Whether they do so along an axis, as along a side of an image, and not along its batch.
    pub fn slides_along(&self, operand: usize, axis: usize) -> bool {
        let var = &self.axes[axis].var;
        let mut indices = self.operands[operand].indices.iter();
        indices.any(|e| e.mentions(var) && self.has_kind(e, IterKind::Reduce))
    }

    fn has_kind(&self, e: &Expr, kind: IterKind) -> bool {
        self.axes.iter().any(|a| a.kind == kind && e.mentions(&a.var))
    }

    /// The axes of known extents along which the result moves with one operand alone.
    pub fn alone(&self, operand: usize) -> Vec<usize> {
        let moves = |o: usize, k: usize| self.operands[o].steps[k] != 0;
        self.axes_where(IterKind::Spatial, |k| {
            let axis = &self.axes[k];
            axis.extent > 1 && !axis.is_open() && moves(operand, k) && !moves(1 - operand, k)
        })
    }

    /// The axis of one operand alone along which results are nearest to one another, and that operand.
    pub fn columns(&self) -> Option<(usize, usize)> {
        let all = [0, 1].into_iter().flat_map(|o| self.alone(o).into_iter().map(move |k| (o, k)));
        all.min_by_key(|(_, k)| {
            (self.out[*k].map_or(i64::MAX, i64::abs), std::cmp::Reverse(self.axes[*k].extent))
        })
    }

    /// The longest axis of the other operand alone.
    pub fn rows(&self, columns_of: usize) -> Option<usize> {
        self.alone(1 - columns_of).into_iter().max_by_key(|k| self.axes[*k].extent)
    }

    /// The same at smaller open sizes, for decisions: an image that is a quarter and a sixteenth as wide and high,
    /// as those of later layers are. Short axes stay; none where all do.
    pub fn smaller(&self) -> Vec<Contraction> {
        let is_long = |a: &ContractionAxis| {
            let longest = a.iters.iter().map(|(_, n)| n.estimate()).max();
            a.is_open() && longest.filter(|_| !a.is_even).unwrap_or(a.extent) > SHORT
        };
        let long = self.axes.iter().any(is_long);
        if long { SHORTER.map(|part| self.at(part, SHORT)).to_vec() } else { Vec::new() }
    }

    /// The same with the shortest open sizes that are usual.
    pub fn shortest(&self) -> Contraction {
        self.at(MUCH_SHORTER, SHORTEST)
    }

    /// The same at open sizes that are so many times smaller; those that are short by then, at the shortest.
    fn at(&self, part: i64, short: i64) -> Contraction {
        let mut c = self.clone();
        for (k, axis) in c.axes.iter_mut().enumerate().filter(|(_, a)| a.is_open()) {
            let usual = axis.extent as f64;
            let smaller = |n: i64| (n / part).max(short).min(n);
            axis.extent = if axis.is_even {
                smaller(axis.extent)
            } else {
                axis.iters.iter().map(|(_, n)| smaller(n.estimate())).product()
            };
            for o in c.operands.iter_mut().filter(|o| o.steps[k] != 0) {
                o.size = (o.size as f64 / usual * axis.extent as f64) as i64;
            }
        }
        c
    }

    /// How many iteration variables its block has.
    pub fn rank(&self) -> usize {
        self.axes.iter().map(|a| a.iters.len()).sum()
    }

    /// The product of the extents of some axes.
    pub fn count(&self, axes: &[usize]) -> i64 {
        axes.iter().map(|k| self.axes[*k].extent).fold(1, i64::saturating_mul)
    }

    /// Bytes that an operand has in all, for decisions.
    pub fn size(&self, operand: usize) -> i64 {
        self.operands[operand].size
    }
}

fn is_zero(e: &Expr, dtype: DType) -> bool {
    match dtype {
        DType::I32 => e.as_int() == Some(0),
        _ => dtype.is_float() && e.as_float() == Some(0.0),
    }
}

/// Whether what moves by such steps along two axes walks them as one.
pub(crate) fn as_one(slow: i64, fast: i64, extent: i64) -> bool {
    fast.checked_mul(extent) == Some(slow)
}

/// A step of an open number of cells, which is taken to be longer than any other.
const OPEN_STEP: i64 = 1 << 40;

/// For each axis the index of a tensor that it is as a whole, and the next one; those of one value are not counted.
pub(crate) fn places(
    buffer: &Buffer,
    indices: &[Expr],
    axes: &[ContractionAxis],
) -> Vec<Option<(usize, usize)>> {
    let whole = indices.iter().zip(&buffer.shape).filter(|(_, n)| n.as_int() != Some(1));
    let whole: Vec<_> = whole.collect();
    let place = |a: &ContractionAxis| {
        let alone = whole.iter().filter(|(i, _)| i.mentions(&a.var)).count() == 1;
        let at = whole
            .iter()
            .position(|(i, n)| i.as_var() == Some(&a.var) && Dim::from_expr(n) == Some(a.dim));
        at.filter(|_| alone).map(|at| (at, at + 1))
    };
    axes.iter().map(place).collect()
}

/// Whether an index moves by a known number along a variable.
fn is_even(index: &Expr, v: &Var) -> bool {
    Affine::from_expr(index).is_some_and(|index| index.coefficient(v).is_some())
}

/// By how many cells an access moves along each axis; `None` where that is not even.
pub fn steps(buffer: &Buffer, indices: &[Expr], axes: &[ContractionAxis]) -> Option<Vec<i64>> {
    let offset = Affine::of_access(buffer, indices)?;

    axes.iter()
        .map(|a| match offset.coefficient(&a.var) {
            // It moves indices evenly, along which cells are an open number apart.
            None if indices.iter().filter(|i| i.mentions(&a.var)).all(|i| is_even(i, &a.var)) => {
                Some(OPEN_STEP)
            }
            step => step,
        })
        .collect()
}

/// Whether a buffer is an argument whose layout is free.
pub(crate) fn is_free(func: &TensorFunc, buffer: &Buffer) -> bool {
    let Some(Attr::List(free)) = func.attrs.get(FREE_LAYOUT) else { return false };
    let at = func.params.iter().position(|p| p.buffer() == Some(buffer));
    at.is_some_and(|at| {
        free.iter().any(|f| matches!(f, Attr::Int(k) if usize::try_from(*k) == Ok(at)))
    })
}
