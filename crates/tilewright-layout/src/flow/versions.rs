//! Versions of values: those that there are, and those that are made because a call needs them.

use std::sync::Arc;

use tilewright_ir::{
    DType, Dim, Error, Expr, GraphExpr, GraphVar, Result, Span, TensorFunc, TensorType, dim,
};

use super::{Flow, Left, Padding, TiledLayout, Version, extents};
use crate::constant::same_value;
use crate::conversion::{Conversion, Pad};
use tilewright_graph::call_sizes::outside;
use tilewright_graph::merge::{Member, Source, merge};
use tilewright_graph::normal::{needed, var};

/// Why a conversion is made.
#[derive(Clone)]
pub(super) struct Need {
    pub(super) reason: String,
    pub(super) span: Option<Span>,
}

impl Flow<'_, '_> {
    /// A value in logical layout is there.
    pub(super) fn arrive(&mut self, v: &GraphVar, expr: GraphExpr) {
        if let Some(shape) = extents(v) {
            let version = Version {
                layout: TiledLayout::identity(&shape),
                expr,
                pad: Padding::Known(None),
                own: false,
            };
            self.versions.entry(v.id()).or_default().push(version);
        }
    }

    pub(super) fn version(&self, e: &GraphExpr, layout: &TiledLayout) -> Option<Version> {
        let GraphExpr::Var(v) = e else { return None };
        let (v, layout) = self.rooted(v, layout);
        self.versions.get(&v.id())?.iter().find(|v| v.layout == layout).cloned()
    }

    /// The version from which a conversion to a layout moves the fewest bytes.
    pub(super) fn cheapest(&self, v: &GraphVar, to: &TiledLayout) -> Option<&Version> {
        self.versions.get(&v.id())?.iter().min_by_key(|version| moved_bytes(v, &version.layout, to))
    }

    /// A value as a function takes it that is not computed in another layout.
    pub(super) fn as_is(&mut self, e: &GraphExpr, why: &Need) -> Result<GraphExpr> {
        let GraphExpr::Var(v) = e else { return Ok(e.clone()) };
        if let Some((from, layout, pad, _)) = self.packs.get(&v.id()).cloned() {
            let pad = match pad {
                Pad::Value(e) => Some(e),
                Pad::None | Pad::Undef => None,
            };
            return self.obtain(&from.expr(), &layout, pad.as_ref(), why);
        }
        match extents(v) {
            Some(shape) if self.versions.contains_key(&v.id()) => {
                self.obtain(e, &TiledLayout::identity(&shape), None, why)
            }
            _ => Ok(e.clone()),
        }
    }

    /// A value in a layout, with a value in its padding or any.
    pub(super) fn obtain(
        &mut self,
        e: &GraphExpr,
        layout: &TiledLayout,
        pad: Option<&Expr>,
        why: &Need,
    ) -> Result<GraphExpr> {
        if let GraphExpr::Var(v) = e
            && let Some(permuted) = self.permuted(v)
        {
            let (root, layout) = (permuted.root.expr(), permuted.to_root(layout));
            return self.obtain(&root, &layout, pad, why);
        }
        // What is converted from another value has no version before one is asked for.
        if let GraphExpr::Var(v) = e
            && self.is_converted(v)
            && !self.versions.contains_key(&v.id())
        {
            let expr = self.as_is(e, why)?;
            self.arrive(v, expr);
        }
        let pad = pad.filter(|_| layout.is_padded());
        let logical = TiledLayout::identity(&layout.logical);
        if let Some(found) = self.version(e, layout) {
            match pad {
                Some(pad) if !self.padding(&found).is_some_and(|f| same_value(&f, pad)) => {
                    // A conversion of a conversion would be one too many.
                    if found.own || self.version(e, &logical).is_none() {
                        return self.pad_anew(e, found, pad, why);
                    }
                }
                Some(_) => return Ok(self.relied_on(found.expr)),
                None => return Ok(found.expr),
            }
        }
        if layout.is_identity()
            && !matches!(e, GraphExpr::Var(v) if self.versions.contains_key(&v.id()))
        {
            return Ok(e.clone());
        }
        let name: Arc<str> = match e {
            GraphExpr::Var(v) => v.name().clone(),
            _ => "constant".into(),
        };
        let Some(dtype) = e.ty().as_tensor().map(|t| t.dtype) else {
            return Err(Error::internal("a layout of what is no tensor"));
        };
        let from = self.version(e, &logical).or_else(|| self.cheapest(var(e)?, layout).cloned());
        let own = Version {
            layout: logical.clone(),
            expr: e.clone(),
            pad: Padding::Known(None),
            own: false,
        };
        let mut from = from.unwrap_or(own);
        let found = conversion(dtype, &from.layout, layout, pad);
        let (func, base) = match found {
            // What does not compose goes through the logical layout.
            Err(_) if !from.layout.is_identity() && !layout.is_identity() => {
                let expr = self.obtain(e, &logical, None, why)?;
                from = Version { layout: logical, expr, pad: Padding::Known(None), own: false };
                conversion(dtype, &from.layout, layout, pad)?
            }
            found => found?,
        };
        let new = GraphVar::tensor(name.clone(), typed_as(dtype, layout));
        let args = vec![from.expr.clone()];
        let made = self.functions.made((func, base), args, &new, why.span)?;
        self.bind(made);
        if let GraphExpr::Var(v) = e {
            let is_moved = moved_bytes(v, &from.layout, layout) > 0;
            if is_moved && self.constants.get(e).is_none() {
                let origin = match (self.made.contains(&v.id()), self.stays.get(&v.id())) {
                    (false, _) => format!(", and `{}` is an argument of the graph", v.name()),
                    (true, Some(why)) if from.layout.is_identity() => {
                        format!(", and `{}` is not: {why}", v.name())
                    }
                    _ => String::new(),
                };
                self.left.push(Left {
                    value: name,
                    cells: cells(&from.layout) + cells(layout),
                    width: width(v),
                    from: from.layout,
                    to: layout.clone(),
                    reason: why.reason.clone() + &origin,
                });
            }
            let (layout, expr, pad) = (layout.clone(), new.expr(), Padding::Known(pad.cloned()));
            let version = Version { layout, expr, pad, own: false };
            self.versions.entry(v.id()).or_default().insert(0, version);
        }
        Ok(new.expr())
    }

    /// A version with another value in its padding.
    fn pad_anew(
        &mut self,
        e: &GraphExpr,
        found: Version,
        pad: &Expr,
        why: &Need,
    ) -> Result<GraphExpr> {
        let (GraphExpr::Var(root), GraphExpr::Var(at)) = (e, &found.expr) else {
            return Err(Error::internal("padding of what is no variable"));
        };
        let dtype = pad.dtype();
        // The data stay, and the padding holds the value.
        let repad = relayout(dtype, &found.layout, &found.layout, Some(pad))?.to_func("pad");
        let new = self.padded_by_maker(at, &found, &repad);
        let (expr, replaced) = if new {
            (found.expr.clone(), true)
        } else {
            let var = GraphVar::tensor(at.name().clone(), typed_as(dtype, &found.layout));
            let args = vec![found.expr.clone()];
            let made = self.functions.made((repad, "pad"), args, &var, why.span)?;
            self.bind(made);
            self.left.push(Left {
                value: root.name().clone(),
                cells: cells(&found.layout) * 2,
                width: width(root),
                from: found.layout.clone(),
                to: found.layout.clone(),
                reason: format!("{}, with {pad} in the padding", why.reason),
            });
            (var.expr(), false)
        };
        let versions = self.versions.entry(root.id()).or_default();
        let (own, layout) = (found.own && replaced, found.layout);
        let pad = Padding::Known(Some(pad.clone()));
        let version = Version { layout, expr: expr.clone(), pad, own };
        match versions.iter_mut().find(|v| replaced && v.layout == version.layout) {
            Some(old) => *old = version,
            None => versions.insert(0, version),
        }
        Ok(self.relied_on(expr))
    }

    /// A version that is handed out with what its padding holds. The call that asks for it may take
    /// another one of the same value before it is bound.
    pub(super) fn relied_on(&mut self, e: GraphExpr) -> GraphExpr {
        if let GraphExpr::Var(v) = &e {
            self.relied.insert(v.id());
        }
        e
    }

    /// Lets the call that made a version select the pad value itself, if no reader relies on what
    /// its padding held before.
    fn padded_by_maker(&mut self, at: &GraphVar, found: &Version, repad: &TensorFunc) -> bool {
        let mut read = self.relied.contains(&at.id());
        for b in &self.bindings {
            needed(&b.value, &mut |v| read |= v == at);
        }
        let is_free = !read || self.padding(found).is_none();
        let Some(maker) = self.bindings.iter_mut().find(|b| b.var == *at) else { return false };
        let GraphExpr::CallTir { func, args, outs, scalars } = &mut maker.value else {
            return false;
        };
        let Some(f) = self.functions.get(func).cloned() else { return false };
        let fits = outs.len() == 1
            && found.own
            && is_free
            && tilewright_analysis::open_stages(&f).is_some()
            && Conversion::recognise(&f).is_none();
        if !fits {
            return false;
        }
        let sources = (0..args.len()).map(Source::Param).collect();
        let second = Arc::new(repad.clone());
        let members = [
            Member { func: f, sources },
            Member { func: second, sources: vec![Source::Member(0)] },
        ];
        let merged = merge(&members, args.len());
        let Ok(sizes) = merged.size_arguments() else { return false };
        let base = func.to_string();
        *func = self.functions.add(merged, &base);
        *scalars = sizes;
        let made = maker.clone();
        self.values.bound(&made, self.functions);
        true
    }
}

/// The function that takes a value from one layout to another, and what it is called.
pub fn conversion(
    dtype: DType,
    from: &TiledLayout,
    to: &TiledLayout,
    pad: Option<&Expr>,
) -> Result<(TensorFunc, &'static str)> {
    match (from.is_identity(), to.is_identity()) {
        (true, _) => return Ok((to.pack(dtype, pad), "pack")),
        (_, true) => return Ok((from.crop(dtype), "crop")),
        _ => {}
    }
    Ok((relayout(dtype, from, to, pad)?.to_func("relayout"), "relayout"))
}

/// The conversion of one layout to another, through the logical one.
fn relayout(
    dtype: DType,
    from: &TiledLayout,
    to: &TiledLayout,
    pad: Option<&Expr>,
) -> Result<Conversion> {
    let crop = Conversion::recognise(&from.crop(dtype));
    let pack = Conversion::recognise(&to.pack(dtype, pad));
    let both = crop.zip(pack).and_then(|(crop, pack)| crop.then(&pack));
    both.ok_or_else(|| Error::internal("conversions that do not compose"))
}

pub(super) fn typed(v: &GraphVar, layout: &TiledLayout) -> Option<TensorType> {
    Some(typed_as(v.ty().as_tensor()?.dtype, layout))
}

fn typed_as(dtype: DType, layout: &TiledLayout) -> TensorType {
    outside(&layout.physical(), dtype)
}

/// Bytes that a conversion reads and writes; none where both are the same memory. Estimated where
/// sizes are open.
pub(super) fn moved_bytes(v: &GraphVar, from: &TiledLayout, to: &TiledLayout) -> u64 {
    if from.is_row_major() && to.is_row_major() { 0 } else { touched(v, from, to) }
}

/// Bytes that are read and written where a value is converted by a kernel, even if it moves no cell.
pub(super) fn touched(v: &GraphVar, from: &TiledLayout, to: &TiledLayout) -> u64 {
    bytes(v, from).saturating_add(bytes(v, to))
}

/// Bytes of a value in a layout; estimated where sizes are open.
fn bytes(v: &GraphVar, layout: &TiledLayout) -> u64 {
    width(v).saturating_mul(cells(layout).estimate().unsigned_abs())
}

/// Bytes of a cell of a value.
fn width(v: &GraphVar) -> u64 {
    v.ty().as_tensor().map_or(0, |t| t.dtype.bytes() as u64)
}

/// Cells of a layout in memory.
fn cells(layout: &TiledLayout) -> Dim {
    dim::product(layout.physical())
}
