//! Copies whose elements are bits: several neighbours by one access, zeros where a guard is false, and copies to shared
//! memory that are under way while threads go on (`cp.async` of PTX, in memory that is filled ahead).

use tilewright_ir::{Buffer, DType, Expr, ExprKind, Result};

use super::types;
use super::vector::{cells_of_lanes, is_multiple};
use super::writer::Writer;

/// Elements that a copy moves, from the first one on.
struct Moved<'a> {
    /// Conditions, outside of which zeros are written.
    guards: Vec<&'a Expr>,
    from: &'a Buffer,
    place: &'a [Expr],
}

impl<'a> Moved<'a> {
    /// What a value moves; `None` where it is anything else than what lies in memory, or zeros.
    fn of(mut value: &'a Expr) -> Option<Moved<'a>> {
        let mut guards = Vec::new();
        while let ExprKind::IfThenElse(guard, inside, zero) = value.kind() {
            if guard.dtype().lanes != 1 || !is_zero_of_bits(zero) {
                return None;
            }
            guards.push(guard);
            value = inside;
        }
        let ExprKind::Load(from, place) = value.kind() else { return None };
        Some(Moved { guards, from, place })
    }

    /// Whether the place is a number where guards are false, too.
    fn has_place(&self) -> bool {
        let mut all = self.guards.iter().copied().chain(self.place);
        all.all(|e| !e.effects().loads && !e.effects().partial)
    }
}

impl Writer {
    /// Copies neighbours by one access of 4, 8 or 16 bytes, or writes zeros where a condition is false, in CUDA, where
    /// memory of a kernel begins at a multiple of that; whether it did.
    pub(super) fn wide_copy(
        &mut self,
        buffer: &Buffer,
        indices: &[Expr],
        value: &Expr,
    ) -> Result<bool> {
        if !self.arithmetic.is_wide() || self.lane.is_some() || self.mask.is_some() {
            return Ok(false);
        }
        let Some(moved) = Moved::of(value) else { return Ok(false) };
        let (lanes, dtype) = (value.dtype().lanes, buffer.dtype());
        let bytes = usize::from(lanes) * dtype.bytes();
        let ty = match bytes {
            4 => "uint",
            8 => "uint2",
            16 => "uint4",
            _ => return Ok(false),
        };
        if moved.from.dtype() != dtype || dtype.is_bool() {
            return Ok(false);
        }
        let (Some((to_first, 1)), Some((from_first, 1))) =
            (cells_of_lanes(buffer, indices), cells_of_lanes(moved.from, moved.place))
        else {
            return Ok(false);
        };
        let lanes = i128::from(lanes);
        if !is_multiple(buffer, &to_first, lanes) || !is_multiple(moved.from, &from_first, lanes) {
            return Ok(false);
        }
        let same = [buffer, moved.from]
            .iter()
            .all(|b| self.place(b).is_ok_and(|place| place.dtype == dtype && !place.image));
        if !same {
            return Ok(false);
        }
        let moved = Moved { place: &from_first, ..moved };
        if self.copy_ahead(buffer, &to_first, &moved, bytes)? {
            return Ok(true);
        }
        let target = self.cell(buffer, &to_first)?;
        if moved.guards.is_empty() {
            let source = self.cell(moved.from, moved.place)?;
            self.line(format_args!("*({ty}*)&{target} = *(const {ty}*)&{source};"));
            return Ok(true);
        }
        let name = self.name("v");
        self.line(format_args!("{ty} {name} = {ty}{{}};"));
        self.guarded(&moved.guards, |w| {
            let source = w.cell(moved.from, moved.place)?;
            w.line(format_args!("{name} = *(const {ty}*)&{source};"));
            Ok(())
        })?;
        self.line(format_args!("*({ty}*)&{target} = {name};"));
        Ok(true)
    }

    /// Writes what is done where all of some conditions hold.
    fn guarded(
        &mut self,
        guards: &[&Expr],
        inside: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let Some((first, rest)) = guards.split_first() else { return inside(self) };
        let guard = self.expr(first)?;
        self.braced(format_args!("if ({guard})"), |w| w.guarded(rest, inside))
    }

    /// Copies one element to memory that is filled ahead, where it has as many bytes as machines copy so; whether it did.
    pub(super) fn copy_cell(
        &mut self,
        buffer: &Buffer,
        indices: &[Expr],
        value: &Expr,
    ) -> Result<bool> {
        let dtype = buffer.dtype();
        let Some(moved) = Moved::of(value) else { return Ok(false) };
        let fits = matches!(dtype.bytes(), 4 | 8) && moved.from.dtype() == dtype;
        Ok(fits
            && self.mask.is_none()
            && self.copy_ahead(buffer, indices, &moved, dtype.bytes())?)
    }

    /// Has bytes copied to memory that is filled ahead; whether it is that.
    fn copy_ahead(
        &mut self,
        buffer: &Buffer,
        first: &[Expr],
        moved: &Moved<'_>,
        bytes: usize,
    ) -> Result<bool> {
        let from = self.place(moved.from)?;
        let is_global = from.space == "__global" && !from.image;
        if !is_global || !moved.has_place() || !self.filled_ahead.contains(&buffer.data) {
            return Ok(false);
        }
        let guards: Vec<String> =
            moved.guards.iter().map(|guard| self.expr(guard)).collect::<Result<_>>()?;
        let there = if guards.is_empty() { "true".to_owned() } else { guards.join(" && ") };
        let (target, source) = (self.cell(buffer, first)?, self.cell(moved.from, moved.place)?);
        let copy = self.helpers.name("copy", &format!("async_{bytes}"));
        self.line(format_args!("{copy}(&{target}, &{source}, {there});"));
        Ok(true)
    }

    /// The bits of halves that only move, as memory has them; `None` where anything is computed of them.
    pub(super) fn moved_halves(&mut self, e: &Expr, dtype: DType) -> Result<Option<String>> {
        if types::narrow(dtype).is_none() || !self.only_moves(e, dtype)? {
            return Ok(None);
        }
        self.moved(e).map(Some)
    }

    fn only_moves(&self, e: &Expr, dtype: DType) -> Result<bool> {
        Ok(match e.kind() {
            ExprKind::IfThenElse(_, t, f) => {
                self.only_moves(t, dtype)? && self.only_moves(f, dtype)?
            }
            ExprKind::Load(from, _) => from.dtype() == dtype && !self.place(from)?.image,
            _ => is_zero_of_bits(e),
        })
    }

    fn moved(&mut self, e: &Expr) -> Result<String> {
        match e.kind() {
            ExprKind::IfThenElse(c, t, f) => self.if_then_else("ushort", c, [t, f], &Writer::moved),
            ExprKind::Load(from, at) => self.cell(from, at),
            _ => Ok("0".to_owned()),
        }
    }
}

/// Whether all lanes are zeros all of whose bits are.
fn is_zero_of_bits(e: &Expr) -> bool {
    match e.kind() {
        ExprKind::Broadcast(e) | ExprKind::Cast(e) => is_zero_of_bits(e),
        _ => e.as_int() == Some(0) || e.as_float().is_some_and(|x| x.to_bits() == 0),
    }
}
