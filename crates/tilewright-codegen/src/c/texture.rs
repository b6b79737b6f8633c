//! Textures: images of texels with four channels.
//!
//! A buffer with two physical axes is an image: the first axis is the row, four neighbours along the second
//! are the channels of a texel. An element is read as its texel and one channel of it, with a sampler that
//! gives zero out of range. A texel is written as a whole: by a loop over its four channels, or by a vector
//! of four lanes.

use tilewright_ir::index::Linear;
use tilewright_ir::visit::free_vars;
use tilewright_ir::{Buffer, DType, Error, Expr, ExprKind, Range, Result, Stmt, StmtKind, Var};

use super::types;
use super::vector::{Text, lanes_of_index};
use super::writer::Writer;

/// Channels of a texel.
const CHANNELS: u16 = 4;

impl Writer {
    /// The value of an element.
    pub(super) fn channel(&mut self, buffer: &Buffer, indices: &[Expr]) -> Result<String> {
        let [row, column] = indices else { return Err(not_flat(buffer)) };
        let (row, column) = (self.expr(row)?, self.expr(column)?);
        let at = texel_place(&row, &column);
        let name = self.place(buffer)?.name.clone();
        let channel = self.helpers.name("channel", "");
        Ok(format!("{channel}(read_imagef({name}, tw_border, {at}), (int)(({column}) & 3))"))
    }

    /// The channels of a texel as a vector of a type, or one of them in all lanes; `None` where lanes are others.
    pub(super) fn texel(&mut self, buffer: &Buffer, indices: &[Expr], ty: &str) -> Text {
        let [row, column] = indices else { return Err(not_flat(buffer)) };
        let (Some((row, 0)), Some((column, step))) = (lanes_of_index(row), lanes_of_index(column))
        else {
            return Ok(None);
        };
        if step == 0 {
            return Ok(Some(format!("({ty})({})", self.channel(buffer, &[row, column])?)));
        }
        let whole = Linear::from_expr(&column).is_some_and(|c| is_whole(&c));
        let lanes = indices.iter().map(|i| i.dtype().lanes).max();
        if step != 1 || lanes != Some(CHANNELS) || !whole || buffer.dtype() != DType::F32 {
            return Ok(None);
        }
        let at = texel_place(&self.expr(&row)?, &self.expr(&column)?);
        self.helpers.name("channel", "");
        Ok(Some(format!("read_imagef({}, tw_border, {at})", self.place(buffer)?.name)))
    }

    /// Whether a loop writes the channels of a texel, or of several in a row.
    pub(super) fn is_texel_loop(&self, range: &Range, body: &Stmt) -> bool {
        let StmtKind::Store { buffer, value, .. } = body.kind() else { return false };
        value.dtype().lanes == 1
            && range.extent.as_int().is_some_and(|n| n % i64::from(CHANNELS) == 0)
            && self.places.get(&buffer.data).is_some_and(|place| place.image)
    }

    /// Whether a loop writes the channels of a texel under a condition that does not depend on the channel.
    pub(super) fn is_guarded_texel(&self, var: &Var, s: &Stmt) -> bool {
        let StmtKind::For { range, body, .. } = s.kind() else { return false };
        let StmtKind::If { cond, then, otherwise: None } = body.kind() else { return false };
        !cond.mentions(var) && cond.dtype().lanes == 1 && self.is_texel_loop(range, then)
    }

    /// Writes texels, a channel for each iteration.
    pub(super) fn texel_loop(&mut self, var: &Var, range: &Range, body: &Stmt) -> Result<()> {
        let StmtKind::Store { buffer, indices, value } = body.kind() else {
            return Err(Error::internal("a loop over channels without a store"));
        };
        let [row, column] = indices.as_slice() else { return Err(not_flat(buffer)) };
        // The column is that of the variable, behind one that begins a texel.
        let before = Linear::from_expr(column).and_then(|c| c.plus(&Linear::atom(var.expr()), -1));
        let before = before
            .filter(|c| c.coefficient(var) == Some(0) && free_vars(row).iter().all(|v| v != var));
        let first = before.clone().and_then(|c| c.plus(&Linear::from_expr(&range.min)?, 1));
        let whole = first.is_some_and(|c| is_whole(&c));
        let before = before.filter(|_| whole).and_then(|c| c.to_expr());
        let before = before.ok_or_else(|| partial(buffer, column))?;
        self.ranges.bind_loop(var, range);
        let [name, from, texel] = [&**var.name(), "from", "texel"].map(|hint| self.name(hint));
        let ty = types::value(var.dtype())?;
        let (min, extent) = (self.expr(&range.min)?, self.expr(&range.extent)?);
        self.vars.insert(var.clone(), name.clone());
        let head =
            format!("for ({ty} {from} = {min}; {from} < {min} + {extent}; {from} += {CHANNELS})");
        self.braced(head, |w| {
            w.line(format_args!("float {texel}[{CHANNELS}];"));
            w.line("#pragma unroll");
            let head =
                format!("for ({ty} {name} = {from}; {name} < {from} + {CHANNELS}; ++{name})");
            w.braced(head, |w| {
                let text = w.expr(value)?;
                w.line(format_args!("{texel}[{name} - {from}] = {text};"));
                Ok(())
            })?;
            let before = w.expr(&before)?;
            w.write_texel(buffer, row, &format!("{before} + {from}"), &texel)
        })
    }

    /// Writes a texel from a vector of four lanes.
    pub(super) fn texel_store(
        &mut self,
        buffer: &Buffer,
        indices: &[Expr],
        value: &Expr,
    ) -> Result<()> {
        let [row, column] = indices else { return Err(not_flat(buffer)) };
        let ExprKind::Ramp(first, step) = column.kind() else {
            return Err(partial(buffer, column));
        };
        let whole = Linear::from_expr(first).is_some_and(|c| is_whole(&c));
        if !whole
            || step.as_int() != Some(1)
            || column.dtype().lanes != CHANNELS
            || self.mask.is_some()
        {
            return Err(partial(buffer, column));
        }
        let row = match row.kind() {
            ExprKind::Broadcast(row) => row.clone(),
            _ if row.dtype().lanes == 1 => row.clone(),
            _ => return Err(partial(buffer, column)),
        };
        if self.has_vectors() && buffer.dtype() == DType::F32 {
            let (before, text) = self.captured(|w| match w.vector(value)? {
                Some(text) => Ok(Some((text, texel_place(&w.expr(&row)?, &w.expr(first)?)))),
                None => Ok(None),
            })?;
            if let Some((text, at)) = text {
                let name = self.place(buffer)?.name.clone();
                return self.braced("", |w| {
                    w.out += &before;
                    w.line(format_args!("write_imagef({name}, {at}, {text});"));
                    Ok(())
                });
            }
        }
        let texel = self.name("texel");
        self.line(format_args!("float {texel}[{CHANNELS}];"));
        self.each_lane(CHANNELS, |w, lane| {
            let text = w.expr(value)?;
            w.line(format_args!("{texel}[{lane}] = {text};"));
            Ok(())
        })?;
        let first = self.expr(first)?;
        self.write_texel(buffer, &row, &first, &texel)
    }

    fn write_texel(
        &mut self,
        buffer: &Buffer,
        row: &Expr,
        column: &str,
        texel: &str,
    ) -> Result<()> {
        let row = self.expr(row)?;
        let name = self.place(buffer)?.name.clone();
        let at = texel_place(&row, column);
        let channels =
            (0..CHANNELS).map(|k| format!("{texel}[{k}]")).collect::<Vec<_>>().join(", ");
        self.line(format_args!("write_imagef({name}, {at}, (float4)({channels}));"));
        Ok(())
    }
}

/// The coordinates of the texel with a channel.
fn texel_place(row: &str, column: &str) -> String {
    format!("(int2)((int)(({column}) >> 2), (int)({row}))")
}

/// Whether an index is a multiple of the channels wherever it stands.
fn is_whole(index: &Linear) -> bool {
    let channels = i128::from(CHANNELS);
    index.constant % channels == 0 && index.terms.iter().all(|(_, k)| k % channels == 0)
}

fn not_flat(buffer: &Buffer) -> Error {
    Error::malformed(format!("the texture `{}` is not accessed by two indices", buffer.name))
}

fn partial(buffer: &Buffer, column: &Expr) -> Error {
    Error::unsupported(format!(
        "a part of a texel of `{}` is written; a texture is written by texels of {CHANNELS} channels",
        buffer.name
    ))
    .note(format!("its column is {}", tilewright_ir::text::brief(column)))
    .help("let the innermost loop run over the four channels, and nothing else be in it")
}
