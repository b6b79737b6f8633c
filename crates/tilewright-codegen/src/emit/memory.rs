//! Loads and stores: from buffers and indices to addresses.
//!
//! An address is computed in 64 bits. In an index, sums and products of `int32` that are known to
//! stay in it are computed in 64 bits, so that a loop variable is widened once instead of each
//! index anew. Where `int32` may wrap, it does.
//!
//! A vector index is taken apart into a first element and a stride where it has one. Stride 1 is
//! one vector load or store with the alignment of an element, stride 0 a scalar, stride -1 a
//! vector in reverse; loads at constant distances are woven from runs of neighbours
//! ([`runs`]); everything else goes lane by lane, or through a gather or scatter where a
//! mask says which lanes take part.

use tilewright_ir::{BinOp, Buffer, DType, Error, Expr, ExprKind, Result, TypeKind, scalar};

use super::address::Base;
use super::code::{Code, Scalar, Ty, Val};
use super::func::Func;
use super::half;
use super::runs::{self, Rows};
use super::stmt::MASKED;
use super::types::{is_narrow_float, memory, register};

/// Where the lanes of an access lie, in elements.
enum Addresses {
    /// All at one.
    One(Val),
    /// At `base`, `base + stride`, ...
    Strided { base: Val, stride: Val },
    /// At constant distances from `base`, and from rows of which each lane is in one.
    Lanes { base: Val, apart: Vec<i64>, rows: Option<Rows> },
    /// Each at its own.
    Any(Val),
}

/// Elements of a buffer as loads and stores name them.
pub(super) struct Cells {
    /// Where the first one lies, or where each does.
    address: Val,
    /// The type of one in memory.
    pub element: Scalar,
    /// What follows an access.
    alias: String,
}

impl Cells {
    /// The alignment as intrinsics take it.
    fn align(&self) -> Val {
        Val::int(Ty::I32, self.element.bytes() as i64)
    }
}

impl Code<'_> {
    /// Loads cells that lie one behind the other, as a value of this type.
    pub(super) fn load(&mut self, ty: Ty, from: &Cells) -> Val {
        let Cells { address, element, alias } = from;
        let align = element.bytes();
        self.emit(ty, format_args!("load {ty}, {address}, align {align}{alias}"))
    }

    fn store(&mut self, v: &Val, to: &Cells) {
        let Cells { address, element, alias } = to;
        let align = element.bytes();
        self.line(format_args!("store {v}, {address}, align {align}{alias}"));
    }

    /// Loads the lanes that a mask has; `others` are what the others become.
    pub(super) fn load_masked(&mut self, from: &Cells, mask: &Val, others: &Val) -> Val {
        let (ty, at) = (others.ty, from.address.ty);
        let name = if at.lanes == 1 { "masked.load" } else { "masked.gather" };
        self.intrinsic(name, &[ty, at], ty, &[&from.address, &from.align(), mask, others])
    }

    /// Stores the lanes that a mask has. Integers are stored as floats of as many bytes: of a truncated vector under a
    /// mask of one lane LLVM 22 stores the whole of the wider element, and so a part of the next cell.
    fn store_masked(&mut self, v: &Val, to: &Cells, mask: &Val) {
        let at = to.address.ty;
        let v = &match v.ty.scalar {
            Scalar::I16 => self.convert("bitcast", v, Scalar::Half),
            Scalar::I32 => self.convert("bitcast", v, Scalar::F32),
            _ => v.clone(),
        };
        let name = if at.lanes == 1 { "masked.store" } else { "masked.scatter" };
        self.intrinsic_void(name, &[v.ty, at], &[v, &to.address, &to.align(), mask]);
    }

    /// One of several cells that have an address each.
    fn one_of(&mut self, cells: &Cells, lane: u16) -> Cells {
        let address = self.extract(&cells.address, lane);
        Cells { address, element: cells.element, alias: cells.alias.clone() }
    }
}

impl Func<'_> {
    /// The value of a 32-bit or narrower index expression as a 64-bit integer.
    pub(super) fn index64(&mut self, e: &Expr) -> Result<Val> {
        if let Some(v) = self.known_wide(e) {
            return Ok(v);
        }
        let effects = self.effects;
        let stays = self.stays_in_index(e);
        let value = match e.kind() {
            ExprKind::Int(v) => Val::int(Ty::I64, *v),
            ExprKind::Var(v) => match self.wide.get(v) {
                Some(wide) => wide.clone(),
                None => self.wide_value(e)?,
            },
            ExprKind::Binary(op @ (BinOp::Add | BinOp::Sub | BinOp::Mul), a, b)
                if stays || e.dtype() == DType::I64 =>
            {
                let (a, b) = (self.index64(a)?, self.index64(b)?);
                match op {
                    BinOp::Add => self.code.add_index(&a, &b, stays),
                    BinOp::Mul => self.code.mul_index(&a, &b, stays),
                    _ if b.is_int(0) => a,
                    _ if stays => self.code.bin_of_numbers("sub nsw", &a, &b),
                    _ => self.code.bin_of_numbers("sub", &a, &b),
                }
            }
            ExprKind::Cast(a) if e.dtype() == DType::I64 && a.dtype() == DType::I32 => {
                self.index64(a)?
            }
            _ => self.wide_value(e)?,
        };
        if self.effects == effects {
            self.remember_wide(e, &value);
        }
        Ok(value)
    }

    /// Whether an index is of a type that is computed in 64 bits, and its value is that of exact
    /// arithmetic.
    pub(super) fn stays_in_index(&mut self, e: &Expr) -> bool {
        let scalar = e.dtype().scalar();
        (scalar == DType::I32 || scalar == DType::I64) && self.ranges.stays(e)
    }

    fn wide_value(&mut self, e: &Expr) -> Result<Val> {
        let dtype = e.dtype();
        if !(dtype.is_int() || dtype.is_bool()) {
            return Err(Error::malformed(format!("the index `{e}` is not an integer")));
        }
        let v = self.expr(e)?;
        Ok(self.code.widen(&v, dtype.kind == TypeKind::Int))
    }

    /// Takes a vector index apart. Arithmetic on data wraps, in each lane, and so do the parts.
    fn place(&mut self, e: &Expr) -> Result<Addresses> {
        if e.dtype().lanes == 1 {
            return Ok(Addresses::One(self.index64(e)?));
        }
        let scalar = e.dtype().scalar();
        let stays = self.stays_in_index(e);
        // In 64 bits a first element and a stride that wrap give lanes that wrap.
        let exact = scalar == DType::I64 || stays;
        if let Some(apart) = constant_lanes(e).filter(|a| exact && !is_progression(a)) {
            return Ok(Addresses::Lanes { base: Val::int(Ty::I64, 0), apart, rows: None });
        }
        match e.kind() {
            ExprKind::Broadcast(x) => return Ok(Addresses::One(self.index64(x)?)),
            ExprKind::Ramp(base, stride) if exact || self.steady => {
                let (base, stride) = (self.index64(base)?, self.index64(stride)?);
                return Ok(Addresses::Strided { base, stride });
            }
            ExprKind::Cast(x) if scalar == DType::I64 && x.dtype().scalar() == DType::I32 => {
                return self.place(x);
            }
            ExprKind::Binary(op @ (BinOp::Add | BinOp::Sub), a, b)
                if exact && has_stride(a) && has_stride(b) =>
            {
                let (a, mut b) = (self.place(a)?, self.place(b)?);
                if *op == BinOp::Sub {
                    b = self.scaled(b, &Val::int(Ty::I64, -1), stays);
                }
                return Ok(self.sum(a, b, e.dtype().lanes, stays));
            }
            ExprKind::Binary(BinOp::Mul, a, b) if exact => match (a.kind(), b.kind()) {
                (ExprKind::Broadcast(k), _) if has_stride(b) => {
                    let (k, b) = (self.index64(k)?, self.place(b)?);
                    return Ok(self.scaled(b, &k, stays));
                }
                (_, ExprKind::Broadcast(k)) if has_stride(a) => {
                    let (a, k) = (self.place(a)?, self.index64(k)?);
                    return Ok(self.scaled(a, &k, stays));
                }
                _ => {}
            },
            _ => {}
        }
        Ok(Addresses::Any(self.wide_value(e)?))
    }

    /// Each lane times `k`. `stays` says that no lane wraps, so that the first element does not; the
    /// distance of two lanes may.
    fn scaled(&mut self, p: Addresses, k: &Val, stays: bool) -> Addresses {
        match p {
            Addresses::One(v) => Addresses::One(self.code.mul_index(&v, k, stays)),
            Addresses::Strided { base, stride } => Addresses::Strided {
                base: self.code.mul_index(&base, k, stays),
                stride: product(&mut self.code, &stride, k, false),
            },
            Addresses::Lanes { base, apart, rows } => {
                let times = constant(k).map(|k| apart.iter().map(|a| a.checked_mul(k)).collect());
                match (times, rows) {
                    (Some(Some(apart)), rows) => {
                        let base = self.code.mul_index(&base, k, stays);
                        let rows = rows.map(|Rows { distance, of }| Rows {
                            distance: product(&mut self.code, &distance, k, false),
                            of,
                        });
                        Addresses::Lanes { base, apart, rows }
                    }
                    (_, None) => Addresses::Lanes {
                        base: self.code.mul_index(&base, k, stays),
                        rows: Some(Rows { distance: k.clone(), of: apart.clone() }),
                        apart: vec![0; apart.len()],
                    },
                    (_, rows) => {
                        let lanes = apart.len() as u16;
                        let p = Addresses::Lanes { base, apart, rows };
                        let all = spread(&mut self.code, p, lanes);
                        self.scaled(Addresses::Any(all), k, stays)
                    }
                }
            }
            Addresses::Any(v) => {
                let k = self.code.splat(k, v.lanes());
                Addresses::Any(self.code.bin("mul", &v, &k))
            }
        }
    }

    /// The sum of two places, lane by lane; `stays` as for [`Func::scaled`].
    fn sum(&mut self, a: Addresses, b: Addresses, lanes: u16, stays: bool) -> Addresses {
        let c = &mut self.code;
        match (a, b) {
            (Addresses::One(a), Addresses::One(b)) => Addresses::One(c.add_index(&a, &b, stays)),
            (Addresses::One(a), Addresses::Strided { base, stride })
            | (Addresses::Strided { base, stride }, Addresses::One(a)) => {
                Addresses::Strided { base: c.add_index(&base, &a, stays), stride }
            }
            (
                Addresses::Strided { base: a, stride: s },
                Addresses::Strided { base: b, stride: t },
            ) => Addresses::Strided { base: c.add_index(&a, &b, stays), stride: total(c, &s, &t) },
            (a, b) => match (distances(&a, lanes), distances(&b, lanes)) {
                (Some((a, left, of_a)), Some((b, right, of_b)))
                    if of_a.is_none() || of_b.is_none() =>
                {
                    Addresses::Lanes {
                        base: c.add_index(&a, &b, stays),
                        apart: left.iter().zip(right).map(|(a, b)| a.wrapping_add(b)).collect(),
                        rows: of_a.or(of_b),
                    }
                }
                _ => {
                    let (a, b) = (spread(c, a, lanes), spread(c, b, lanes));
                    Addresses::Any(c.bin("add", &a, &b))
                }
            },
        }
    }

    /// Whether the lanes of an index are as far apart as its one vector in `int32` says, although that might wrap: two
    /// lanes would be 2^32 apart then, more than the buffer has elements, and both of them are accessed, or the first
    /// one is, from which the others are counted.
    fn keeps_distances(&self, buffer: &Buffer, indices: &[Expr]) -> bool {
        let [index] = indices else { return false };
        let is_small = buffer.const_shape().is_none_or(|shape| {
            let cells = shape.iter().try_fold(1i64, |n, extent| n.checked_mul(*extent));
            cells.is_some_and(|n| n <= i64::from(i32::MAX))
        });
        let first = self.mask.is_none() || self.first_lane;
        is_small && buffer.strides.is_empty() && first && narrow_ramps(index) == Some(1)
    }

    /// The place of an access in elements of the buffer's scalar type, behind its pointer. The buffer has one
    /// physical axis: the target has no other memory, and was asked.
    fn locate(&mut self, buffer: &Buffer, indices: &[Expr]) -> Result<Addresses> {
        if indices.len() != buffer.rank() {
            return Err(Error::malformed(format!(
                "buffer `{}` has {} axes and is accessed with {} indices",
                buffer.name,
                buffer.rank(),
                indices.len()
            )));
        }
        let lanes = indices.iter().map(|i| i.dtype().lanes).max().unwrap_or(1);
        // One index is in range where the access happens; lanes of a vector need not all take part.
        let stays = indices.iter().all(|i| i.dtype().lanes == 1);
        let steady = self.keeps_distances(buffer, indices);
        let outer = std::mem::replace(&mut self.steady, steady);
        let mut at = Addresses::One(Val::int(Ty::I64, 0));
        // Row-major: from the innermost axis outwards, `stride` is the product of the extents.
        let mut stride = Val::int(Ty::I64, 1);
        for (axis, index) in indices.iter().enumerate().rev() {
            let place = self.place(index)?;
            self.steady = outer;
            let factor = match buffer.strides.get(axis) {
                Some(s) => self.index64(s)?,
                None => stride.clone(),
            };
            let place = self.scaled(place, &factor, stays);
            at = self.sum(place, at, lanes, stays);
            if axis > 0 && buffer.strides.is_empty() {
                let extent = self.index64(&buffer.shape[axis])?;
                stride = product(&mut self.code, &stride, &extent, true);
            }
        }
        if let Some(offset) = &buffer.elem_offset {
            let offset = Addresses::One(self.index64(offset)?);
            at = self.sum(offset, at, lanes, stays);
        }
        match (buffer.dtype().lanes, at) {
            (1, at) => Ok(at),
            (n, Addresses::One(at)) => {
                let n = Val::int(Ty::I64, n.into());
                let base = self.code.mul_index(&at, &n, true);
                Ok(Addresses::Strided { base, stride: Val::int(Ty::I64, 1) })
            }
            _ => Err(Error::unsupported(format!(
                "buffer `{}` of type {} takes no vector index",
                buffer.name,
                buffer.dtype()
            ))),
        }
    }

    /// The element at a place behind a base of the buffer, or those at a vector of places.
    pub(super) fn cells(&mut self, buffer: &Buffer, base: &Base, at: &Val) -> Result<Cells> {
        // Floats of 16 bits that only move are integers: scalar ones lie in registers where they move faster.
        let half = self.code.shared.machine.half && !self.moving;
        let element = memory(buffer.dtype(), half)?;
        let ty = Ty::I1.with_scalar(element);
        let address = self.code.element_address(&base.pointer, ty, at, base.inside);
        Ok(Cells { address, element, alias: self.aliases.attributes(buffer).to_owned() })
    }

    /// The elements up to one, which is the last of so many lanes.
    fn cells_before(
        &mut self,
        buffer: &Buffer,
        base: &Base,
        last: &Val,
        lanes: u16,
    ) -> Result<Cells> {
        let first = self.code.add_index(last, &Val::int(Ty::I64, 1 - i64::from(lanes)), true);
        self.cells(buffer, base, &first)
    }

    /// The place of one element of a flat buffer, in elements.
    pub(super) fn element_place(&mut self, buffer: &Buffer, at: &Expr) -> Result<Val> {
        match self.locate(buffer, std::slice::from_ref(at))? {
            Addresses::One(at) => Ok(at),
            _ => Err(Error::malformed("the place of an element is a vector")),
        }
    }

    /// The places of a vector of elements, in elements, where these are evenly apart.
    pub(super) fn even_places(&mut self, buffer: &Buffer, at: &Expr) -> Result<Option<(Val, Val)>> {
        match self.locate(buffer, std::slice::from_ref(at))? {
            Addresses::Strided { base, stride } => Ok(Some((base, stride))),
            _ => Ok(None),
        }
    }

    /// The address of one element, for a call.
    pub(super) fn element_address(&mut self, buffer: &Buffer, indices: &[Expr]) -> Result<Val> {
        match self.locate(buffer, indices)? {
            Addresses::One(at) | Addresses::Strided { base: at, .. } => {
                let base = self.beginning(buffer)?;
                Ok(self.cells(buffer, &base, &at)?.address)
            }
            Addresses::Lanes { .. } | Addresses::Any(_) => {
                Err(Error::unsupported("there is no single address of a vector of elements"))
            }
        }
    }

    pub(super) fn pointer(&self, buffer: &Buffer) -> Result<Val> {
        self.env.get(&buffer.data).cloned().ok_or_else(|| {
            Error::malformed(format!("buffer `{}` is used where it has no memory", buffer.name))
        })
    }

    /// The value of a load with the register type of `dtype`.
    pub(super) fn load(&mut self, b: &Buffer, indices: &[Expr], dtype: DType) -> Result<Val> {
        let ty = register(dtype)?;
        let (start, indices) = self.approach(b, indices)?;
        let place = self.locate(b, &indices)?;
        let start = start.map_or_else(|| self.beginning(b), Ok)?;
        let raw = match (place, self.mask.clone()) {
            (Addresses::One(at), mask) => {
                let cells = self.cells(b, &start, &at)?;
                let one = Ty::I1.with_scalar(cells.element);
                let v = match mask {
                    Some(mask) if mask.lanes() != 1 && !self.first_lane => {
                        let any = self.code.any(&mask);
                        self.guarded(&any, one, |f| Ok(f.code.load(one, &cells)))?
                    }
                    _ => self.code.load(one, &cells),
                };
                let v = self.in_register(&v, b.dtype());
                return Ok(self.code.splat(&v, ty.lanes));
            }
            (Addresses::Strided { base, stride }, mask) if stride.is_int(1) => {
                let cells = self.cells(b, &start, &base)?;
                match self.lane_mask(mask, ty.lanes)? {
                    None => self.load_lanes(b, &cells, ty.lanes),
                    Some(_) if self.is_padded(b, ty.with_scalar(cells.element)) => {
                        self.code.load(ty.with_scalar(cells.element), &cells)
                    }
                    Some(mask) => {
                        let zero = Val::zero(ty.with_scalar(cells.element));
                        self.code.load_masked(&cells, &mask, &zero)
                    }
                }
            }
            (Addresses::Strided { base, stride }, None) if stride.is_int(-1) => {
                let cells = self.cells_before(b, &start, &base, ty.lanes)?;
                let v = self.code.load(ty.with_scalar(cells.element), &cells);
                self.reverse(&v)
            }
            (Addresses::Strided { base, stride }, mask)
                if let Some(step) = shuffled_step(&stride) =>
            {
                let mask = self.lane_mask(mask, ty.lanes)?;
                self.every(b, &start, (&base, step), ty, mask.as_ref())?
            }
            (Addresses::Lanes { base, apart, rows }, None)
                if let Some(runs) = runs::runs(&runs::places(&apart, rows.as_ref())) =>
            {
                let places = runs::places(&apart, rows.as_ref());
                let distance = rows.map(|rows| rows.distance);
                self.woven(b, &start, (&base, distance.as_ref()), (&places, &runs), ty)?
            }
            (place, mask) => {
                let at = spread(&mut self.code, place, ty.lanes);
                let cells = self.cells(b, &start, &at)?;
                let (all, one) = (ty.with_scalar(cells.element), Ty::I1.with_scalar(cells.element));
                match self.lane_mask(mask, ty.lanes)? {
                    Some(mask) => self.code.load_masked(&cells, &mask, &Val::zero(all)),
                    None => self.code.lane_by_lane(all, |c, lane| {
                        let cell = c.one_of(&cells, lane);
                        c.load(one, &cell)
                    }),
                }
            }
        };
        Ok(self.in_register(&raw, b.dtype()))
    }

    /// The lanes of the smallest vector that holds so many, where the machine accesses these alone by a mask; LLVM
    /// takes apart what has another number of lanes than a vector of the machine.
    /// Memory that is to be registers is accessed by plain loads and stores.
    fn covering(&self, b: &Buffer, lanes: u16, element: Scalar) -> Option<u16> {
        let wide = lanes.checked_next_power_of_two()?;
        let bytes = usize::from(wide) * element.bytes();
        let fits = self.code.shared.machine.masks.contains(&element.bytes());
        (fits && &*b.scope != "local" && lanes > 2 && wide != lanes && bytes <= 64).then_some(wide)
    }

    /// Whether a vector at any place of a buffer is inside of the function's memory.
    fn is_padded(&self, b: &Buffer, ty: Ty) -> bool {
        self.padded.contains(&b.data) && usize::from(ty.lanes) * ty.scalar.bytes() <= MASKED
    }

    /// Whether a store under a mask, inside of the function's memory, may write the other lanes too.
    fn takes_all_lanes(&self, b: &Buffer) -> bool {
        let is_filled = self.filling.as_ref() == Some(&b.data);
        // What holds for all lanes or none holds where it does for some.
        is_filled || self.first_lane && self.free_lanes.contains(&b.data)
    }

    /// So many neighbours in memory.
    pub(super) fn load_lanes(&mut self, b: &Buffer, from: &Cells, lanes: u16) -> Val {
        let ty = Ty { scalar: from.element, lanes };
        let Some(wide) = self.covering(b, lanes, from.element) else {
            return self.code.load(ty, from);
        };
        let mask = self.code.first_lanes(lanes, wide);
        let all = self.code.load_masked(from, &mask, &Val::new(ty.with_lanes(wide), "poison"));
        self.code.resized(&all, lanes)
    }

    /// The bytes from an element on as so many values of `int32`.
    pub(super) fn words(&mut self, b: &Buffer, at: &Expr, lanes: u16) -> Result<Val> {
        let at = self.element_place(b, at)?;
        let start = self.beginning(b)?;
        let cells = self.cells(b, &start, &at)?;
        Ok(self.code.load(Ty::I32.with_lanes(lanes), &cells))
    }

    /// Stores a value that has as many lanes as the indices.
    pub(super) fn store(&mut self, b: &Buffer, indices: &[Expr], value: &Val) -> Result<()> {
        let index_lanes = indices.iter().map(|i| i.dtype().lanes).max().unwrap_or(1);
        let lanes = index_lanes.saturating_mul(b.dtype().lanes);
        if lanes != value.lanes() {
            return Err(Error::malformed(format!(
                "a value of {} lanes is stored to {lanes} lanes of buffer `{}`",
                value.lanes(),
                b.name
            )));
        }
        let (start, indices) = self.approach(b, indices)?;
        let place = self.locate(b, &indices)?;
        let start = start.map_or_else(|| self.beginning(b), Ok)?;
        let raw = self.in_memory(value, b.dtype());
        let mask = self.lane_mask(self.mask.clone(), lanes)?;
        match (place, mask) {
            (Addresses::One(at), None) if lanes == 1 => {
                let cells = self.cells(b, &start, &at)?;
                self.code.store(&raw, &cells);
            }
            (Addresses::Strided { base, stride }, mask) if stride.is_int(1) => {
                let cells = self.cells(b, &start, &base)?;
                match (mask, self.covering(b, lanes, cells.element)) {
                    (Some(_), _) if self.is_padded(b, raw.ty) && self.takes_all_lanes(b) => {
                        self.code.store(&raw, &cells);
                    }
                    (Some(mask), _) if self.is_padded(b, raw.ty) => {
                        let old = self.code.load(raw.ty, &cells);
                        let new = self.code.select(&mask, &raw, &old);
                        self.code.store(&new, &cells);
                    }
                    (Some(mask), _) => self.code.store_masked(&raw, &cells, &mask),
                    (None, None) => self.code.store(&raw, &cells),
                    (None, Some(wide)) => {
                        let mask = self.code.first_lanes(lanes, wide);
                        let raw = self.code.resized(&raw, wide);
                        self.code.store_masked(&raw, &cells, &mask);
                    }
                }
            }
            (Addresses::Strided { base, stride }, None) if stride.is_int(-1) => {
                let cells = self.cells_before(b, &start, &base, lanes)?;
                let raw = self.reverse(&raw);
                self.code.store(&raw, &cells);
            }
            (place, mask) => {
                let at = spread(&mut self.code, place, lanes);
                let cells = self.cells(b, &start, &at)?;
                if let Some(mask) = mask {
                    self.code.store_masked(&raw, &cells, &mask);
                    return Ok(());
                }
                // Lane after lane, so that of several at one place the last one stays.
                for lane in 0..lanes {
                    let x = self.code.extract(&raw, lane);
                    let cell = self.code.one_of(&cells, lane);
                    self.code.store(&x, &cell);
                }
            }
        }
        Ok(())
    }

    /// Copies an element of a float of 16 bits; whether a store does no more than that.
    pub(super) fn moved(&mut self, to: &Buffer, at: &[Expr], value: &Expr) -> Result<bool> {
        let ExprKind::Load(from, indices) = value.kind() else { return Ok(false) };
        let is_plain = is_narrow_float(to.dtype()) && from.dtype() == to.dtype();
        let reads = indices.iter().chain(at).any(|i| i.effects().loads);
        if !is_plain || value.dtype().lanes != 1 || reads || self.known(value).is_some() {
            return Ok(false);
        }
        self.moving = true;
        let bits = self.load(from, indices, value.dtype());
        let stored = bits.and_then(|bits| self.store(to, at, &bits));
        self.moving = false;
        stored.map(|()| true)
    }

    /// The mask of an access with this many lanes.
    fn lane_mask(&self, mask: Option<Val>, lanes: u16) -> Result<Option<Val>> {
        match mask {
            Some(m) if m.lanes() != lanes => Err(Error::unsupported(format!(
                "an access of {lanes} lanes cannot stand under a condition of {} lanes",
                m.lanes()
            ))),
            mask => Ok(mask),
        }
    }

    fn reverse(&mut self, v: &Val) -> Val {
        let order: Vec<usize> = (0..usize::from(v.lanes())).rev().collect();
        self.code.shuffle(v, v, &order)
    }

    /// From the type of memory to that of registers.
    pub(super) fn in_register(&mut self, v: &Val, dtype: DType) -> Val {
        match dtype.kind {
            TypeKind::Bool => self.code.cmp("icmp ne", v, &Val::zero(v.ty)),
            _ if is_narrow_float(dtype) && !self.moving => {
                half::from_memory(&mut self.code, v, dtype)
            }
            _ => v.clone(),
        }
    }

    /// From the type of registers to that of memory.
    pub(super) fn in_memory(&mut self, v: &Val, dtype: DType) -> Val {
        match dtype.kind {
            TypeKind::Bool => self.code.convert("zext", v, Scalar::I8),
            _ if is_narrow_float(dtype) && !self.moving => {
                half::to_memory(&mut self.code, v, dtype)
            }
            _ => v.clone(),
        }
    }

    /// Whether an access lies inside a buffer whatever happens around it, so that reading there is
    /// never wrong.
    pub(super) fn is_inside(&mut self, buffer: &Buffer, indices: &[Expr]) -> bool {
        let Some(shape) = buffer.const_shape() else { return false };
        shape.len() == indices.len()
            && shape.iter().zip(indices).all(|(&extent, index)| {
                let range = self.ranges.interval(index);
                range.lo >= 0 && range.hi < i128::from(extent)
            })
    }
}

/// How many vectors in `int32` an index is a sum of, beside what all lanes have in common; `None` where it is more than
/// a sum.
fn narrow_ramps(e: &Expr) -> Option<usize> {
    match e.kind() {
        ExprKind::Broadcast(_) => Some(0),
        ExprKind::Ramp(_, step) if e.dtype().scalar() == DType::I32 => {
            let step = step.as_int()?.unsigned_abs();
            (step.checked_mul(u64::from(e.dtype().lanes))? < 1 << 31).then_some(1)
        }
        ExprKind::Cast(x) if matches!(x.kind(), ExprKind::Ramp(..)) => narrow_ramps(x),
        ExprKind::Binary(BinOp::Add, a, b) if e.dtype().scalar() == DType::I64 => {
            Some(narrow_ramps(a)? + narrow_ramps(b)?)
        }
        _ => None,
    }
}

/// Whether [`Func::place`] finds a stride without computing the vector.
fn has_stride(e: &Expr) -> bool {
    match e.kind() {
        ExprKind::Broadcast(_) | ExprKind::Ramp(..) => true,
        ExprKind::Cast(x) => e.dtype().bits >= x.dtype().bits && has_stride(x),
        ExprKind::Binary(BinOp::Add | BinOp::Sub, a, b) => has_stride(a) && has_stride(b),
        ExprKind::Binary(BinOp::Mul, a, b) => {
            has_stride(a)
                && has_stride(b)
                && [a, b].iter().any(|e| matches!(e.kind(), ExprKind::Broadcast(_)))
        }
        _ => constant_lanes(e).is_some(),
    }
}

/// The lanes of an index that depends on nothing but the lane.
fn constant_lanes(e: &Expr) -> Option<Vec<i64>> {
    let lanes = e.dtype().lanes;
    match e.kind() {
        ExprKind::Int(v) => Some(vec![*v; usize::from(lanes)]),
        ExprKind::Broadcast(x) => Some(vec![x.as_int()?; usize::from(lanes)]),
        ExprKind::Ramp(base, stride) => {
            let (base, stride) = (base.as_int()?, stride.as_int()?);
            (0..i64::from(lanes)).map(|l| base.checked_add(stride.checked_mul(l)?)).collect()
        }
        ExprKind::Binary(op, a, b) if lanes > 1 => {
            let dtype = a.dtype().scalar();
            constant_lanes(a)?
                .iter()
                .zip(&constant_lanes(b)?)
                .map(|(a, b)| {
                    let value = scalar::Scalar::binary(
                        *op,
                        scalar::Scalar::int(*a, dtype),
                        scalar::Scalar::int(*b, dtype),
                    );
                    i64::try_from(value.ok()?.as_i128()).ok()
                })
                .collect()
        }
        _ => None,
    }
}

/// Whether all lanes lie as far apart as the first two.
fn is_progression(lanes: &[i64]) -> bool {
    lanes.windows(2).all(|w| step_of(w) == step_of(lanes))
}

fn step_of(w: &[i64]) -> i64 {
    w[1].wrapping_sub(w[0])
}

/// The first place, and how far the lanes lie from it, where that is constant.
fn distances(p: &Addresses, lanes: u16) -> Option<(Val, Vec<i64>, Option<Rows>)> {
    match p {
        Addresses::One(v) => Some((v.clone(), vec![0; usize::from(lanes)], None)),
        Addresses::Strided { base, stride } => {
            let step = constant(stride)?;
            let apart: Option<_> = (0..i64::from(lanes)).map(|l| step.checked_mul(l)).collect();
            Some((base.clone(), apart?, None))
        }
        Addresses::Lanes { base, apart, rows } => Some((base.clone(), apart.clone(), rows.clone())),
        Addresses::Any(_) => None,
    }
}

/// The place of each lane.
fn spread(c: &mut Code<'_>, p: Addresses, lanes: u16) -> Val {
    match p {
        Addresses::Any(v) => v,
        Addresses::One(v) => c.splat(&v, lanes),
        Addresses::Lanes { base, apart, rows } => {
            let base = c.splat(&base, lanes);
            let apart = constants(base.ty, &apart);
            let all = c.bin("add", &base, &apart);
            let Some(Rows { distance, of }) = rows else { return all };
            let (distance, of) = (c.splat(&distance, lanes), constants(base.ty, &of));
            let rows = c.bin("mul", &distance, &of);
            c.bin("add", &all, &rows)
        }
        Addresses::Strided { base, stride } => {
            let (base, stride) = (c.splat(&base, lanes), c.splat(&stride, lanes));
            let steps = iota(base.ty);
            let steps = c.bin("mul", &stride, &steps);
            c.bin("add", &base, &steps)
        }
    }
}

/// `0, 1, 2, ...`
pub(super) fn iota(ty: Ty) -> Val {
    let lanes: Vec<i64> = (0..ty.lanes.into()).collect();
    constants(ty, &lanes)
}

/// A vector of constants.
fn constants(ty: Ty, lanes: &[i64]) -> Val {
    let scalar = ty.with_lanes(1);
    let lanes: Vec<String> = lanes.iter().map(|l| format!("{scalar} {l}")).collect();
    Val::new(ty, format!("<{}>", lanes.join(", ")))
}

fn constant(v: &Val) -> Option<i64> {
    (v.lanes() == 1).then(|| v.text.parse().ok()).flatten()
}

/// A product that is a constant where both factors are.
fn product(c: &mut Code<'_>, a: &Val, b: &Val, stays: bool) -> Val {
    match (constant(a), constant(b)) {
        (Some(x), Some(y)) => Val::int(Ty::I64, x.wrapping_mul(y)),
        _ => c.mul_index(a, b, stays),
    }
}

/// A sum that is a constant where both terms are.
fn total(c: &mut Code<'_>, a: &Val, b: &Val) -> Val {
    match (constant(a), constant(b)) {
        (Some(x), Some(y)) => Val::int(Ty::I64, x.wrapping_add(y)),
        _ => c.add_index(a, b, false),
    }
}

/// Whether an expression reads memory or calls something with effects.
pub(super) fn touches_memory(e: &Expr) -> bool {
    e.effects().loads || e.effects().calls
}

/// The distance of elements that whole vectors and shuffles read (`strided`).
fn shuffled_step(stride: &Val) -> Option<usize> {
    [2, 3, 4].into_iter().find(|s| stride.is_int(*s as i64))
}
