//! Layouts of CuTe: `(4,(2,8)):(1,(4,16))`, and swizzled ones, `Sw<3,3,3> o 0 o (8,64):(64,1)`.
//!
//! A layout is a nested shape with a stride for each of its numbers, and gives the offset of a
//! coordinate in memory. A coordinate of a nested mode is one number, whose first digit is lowest
//! (CUTLASS, "CuTe Layout Algebra"). The functions of that algebra are read, too:
//! `composition(A, B)` or `A o B`, `complement(A, n)`, `coalesce(A)`, `logical_divide(A, B)` and `logical_product(A, B)`.
//!
//! `Sw<B,M,S>` adds to `B` digits of the offset, from digit `M` on, those that lie `S` places higher, modulo two.

use std::sync::Arc;

use tilewright_ir::{CallTarget, Expr, ExprKind, Intrin, Result, Source, Var};

use super::points::{Grid, MOST_POINTS};
use super::text::Cursor;
use super::{Notation, Spec, dtype, refused};
use crate::index_map::IndexMap;

/// Deepest nesting of a shape.
const MAX_DEPTH: usize = 32;

/// A number, or several of them in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Tree {
    Leaf(i64),
    Node(Vec<Tree>),
}

impl Tree {
    fn leaves(&self) -> Vec<i64> {
        match self {
            Tree::Leaf(n) => vec![*n],
            Tree::Node(parts) => parts.iter().flat_map(Tree::leaves).collect(),
        }
    }

    fn text(&self) -> String {
        match self {
            Tree::Leaf(n) => n.to_string(),
            Tree::Node(parts) => {
                let parts: Vec<String> = parts.iter().map(Tree::text).collect();
                format!("({})", parts.join(","))
            }
        }
    }
}

/// A mode: extents with their strides, the lowest digit first.
type Mode = Vec<(i64, i64)>;

/// A layout by its modes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Layout {
    modes: Vec<Mode>,
}

/// A swizzle of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Swizzle {
    bits: u32,
    base: u32,
    shift: i32,
}

impl Swizzle {
    fn apply(self, offset: i64) -> i64 {
        let ones = (1i64 << self.bits) - 1;
        if self.shift >= 0 {
            offset ^ ((offset >> self.shift) & (ones << self.base))
        } else {
            offset ^ ((offset & (ones << self.base)) << -self.shift)
        }
    }

    fn expr(self, offset: Expr) -> Expr {
        let from = self.base as i32 + self.shift.max(0);
        let to = self.base as i32 - self.shift.min(0);
        let digits = offset.clone().floordiv(1i64 << from).floormod(1i64 << self.bits);
        Expr::intrin(Intrin::BitXor, vec![offset, digits * (1i64 << to)])
    }
}

/// What a text says: the offset of a coordinate.
#[derive(Clone, Debug)]
struct Reading {
    swizzle: Option<Swizzle>,
    layout: Layout,
}

pub(super) fn read(source: &Arc<Source>) -> Result<Spec> {
    let mut cursor = Cursor::new(source);
    let reading = expression(&mut cursor, 0)?;
    cursor.end()?;
    let modes = &reading.layout.modes;
    let params: Vec<Var> = (0..modes.len()).map(|k| Var::new(format!("i{k}"), dtype())).collect();
    let digits = params.iter().zip(modes).flat_map(|(p, mode)| terms(p, mode));
    let offset = digits.reduce(|a, b| a + b).unwrap_or_else(|| Expr::int(0, dtype()));
    let offset = reading.swizzle.map_or(offset.clone(), |s| s.expr(offset));
    let map = IndexMap { params, indices: vec![offset], separators: Vec::new() };
    let mut spec = Spec::new(Notation::Cute, map);
    spec.shape = Some(modes.iter().map(|m| m.iter().map(|(n, _)| n).product()).collect());
    Ok(spec)
}

/// The digits of an index with their strides.
fn terms(p: &Var, mode: &Mode) -> Vec<Expr> {
    let mut weight = 1;
    let mut terms = Vec::new();
    for (k, (extent, stride)) in mode.iter().enumerate() {
        let mut digit = p.expr().floordiv(weight);
        if k + 1 < mode.len() {
            digit = digit.floormod(*extent);
        }
        weight *= extent;
        if *extent > 1 {
            terms.push(digit * *stride);
        }
    }
    terms
}

/// Layouts one after the other, each applied to what the next one gives.
fn expression(cursor: &mut Cursor<'_>, depth: usize) -> Result<Reading> {
    let start = cursor.at();
    if depth > MAX_DEPTH {
        return Err(cursor.wrong_since(start, "too many functions inside of each other"));
    }
    if let Some(swizzle) = swizzle(cursor)? {
        expect_then(cursor)?;
        // The offset that CuTe prints between the two.
        let at = cursor.at();
        let mut ahead = cursor.clone();
        ahead.take("_");
        if let Some(offset) = ahead.number()?
            && is_then(&ahead)
        {
            if offset != 0 {
                return Err(cursor.wrong(at, ahead.at(), "only the offset 0 is read"));
            }
            *cursor = ahead;
            expect_then(cursor)?;
        }
        let inner = expression(cursor, depth + 1)?;
        if inner.swizzle.is_some() {
            return Err(cursor.wrong_since(start, "two swizzles one after the other are not read"));
        }
        return Ok(Reading { swizzle: Some(swizzle), ..inner });
    }
    let mut reading = one(cursor, depth)?;
    while is_then(cursor) {
        expect_then(cursor)?;
        let second = one(cursor, depth)?;
        reading = composed(&reading, &second, cursor, start)?;
    }
    Ok(reading)
}

fn is_then(cursor: &Cursor<'_>) -> bool {
    let rest = cursor.rest();
    rest.strip_prefix("o").is_some_and(|r| !r.starts_with(|c: char| c.is_ascii_alphanumeric()))
        || rest.starts_with('∘')
}

fn expect_then(cursor: &mut Cursor<'_>) -> Result<()> {
    if is_then(cursor) {
        let length = cursor.peek().map_or(0, char::len_utf8);
        cursor.advance(length);
        return Ok(());
    }
    Err(cursor.expected("`o` and a layout"))
}

fn swizzle(cursor: &mut Cursor<'_>) -> Result<Option<Swizzle>> {
    let start = cursor.at();
    if !cursor.take("Sw<") && !cursor.take("Swizzle<") && !cursor.take("S<") {
        return Ok(None);
    }
    let bits = cursor.whole_number()?;
    cursor.expect(",")?;
    let base = cursor.whole_number()?;
    cursor.expect(",")?;
    let minus = cursor.take("-");
    let shift = cursor.whole_number()?;
    cursor.expect(">")?;
    if bits > 16 || base > 24 || shift > 24 {
        return Err(cursor.wrong_since(start, "a swizzle of more digits than an offset has"));
    }
    if shift < bits {
        let message =
            format!("the {bits} digits that are read and changed overlap: the shift is less");
        return Err(cursor.wrong_since(start, message));
    }
    let shift = if minus { -(shift as i32) } else { shift as i32 };
    Ok(Some(Swizzle { bits: bits as u32, base: base as u32, shift }))
}

/// A layout, or a function of layouts.
fn one(cursor: &mut Cursor<'_>, depth: usize) -> Result<Reading> {
    let start = cursor.at();
    if cursor.peek().is_some_and(|c| c.is_ascii_alphabetic()) {
        let name = cursor.word();
        let known = ["composition", "complement", "coalesce", "logical_divide", "logical_product"];
        if !known.contains(&name) {
            let message = format!("`{name}` is no function of layouts");
            return Err(cursor
                .wrong_since(start, message)
                .help(format!("known are {}", known.join(", "))));
        }
        cursor.expect("(")?;
        let first = expression(cursor, depth + 1)?;
        let found = match name {
            "coalesce" => without_swizzle(Layout {
                modes: vec![coalesced(&flat(unswizzled(&first, cursor, start)?))],
            }),
            "complement" => {
                cursor.expect(",")?;
                let size = cursor.whole_number()?;
                let mode = complement(unswizzled(&first, cursor, start)?, size);
                let mode = mode.map_err(|why| cursor.wrong_since(start, why))?;
                without_swizzle(Layout { modes: vec![mode] })
            }
            _ => {
                cursor.expect(",")?;
                let second = expression(cursor, depth + 1)?;
                match name {
                    "composition" => composed(&first, &second, cursor, start)?,
                    "logical_divide" => {
                        let (a, b) = (&first, unswizzled(&second, cursor, start)?);
                        let rest = complement(b, size(&a.layout));
                        let rest = rest.map_err(|why| cursor.wrong_since(start, why))?;
                        let tiled = Layout { modes: vec![flat(b), rest] };
                        composed(a, &without_swizzle(tiled), cursor, start)?
                    }
                    _ => {
                        let a = unswizzled(&first, cursor, start)?;
                        let b = unswizzled(&second, cursor, start)?;
                        let room = size(a).checked_mul(cosize(b)).unwrap_or(i64::MAX);
                        let rest = complement(a, room);
                        let rest = rest.map_err(|why| cursor.wrong_since(start, why))?;
                        let rest = without_swizzle(Layout { modes: vec![rest] });
                        let copies = composed(&rest, &second, cursor, start)?;
                        let modes = vec![flat(a), flat(&copies.layout)];
                        without_swizzle(Layout { modes })
                    }
                }
            }
        };
        cursor.expect(")")?;
        return Ok(found);
    }
    let shape = tree(cursor, depth)?;
    if !cursor.take(":") {
        let error = cursor.expected("`:` and the strides");
        return Err(error.help("a layout is a shape and its strides: `(4,8):(8,1)`"));
    }
    let at = cursor.at();
    let stride = tree(cursor, depth)?;
    let mut modes = Vec::new();
    let pairs: Vec<(&Tree, &Tree)> = match (&shape, &stride) {
        (Tree::Node(shapes), Tree::Node(strides)) if shapes.len() == strides.len() => {
            shapes.iter().zip(strides).collect()
        }
        (Tree::Leaf(_), Tree::Leaf(_)) => vec![(&shape, &stride)],
        _ => Vec::new(),
    };
    for (shape, stride) in &pairs {
        let Some(mode) = zipped(shape, stride) else { break };
        modes.push(mode);
    }
    if modes.len() != pairs.len() || modes.is_empty() {
        let message = format!("the strides are not nested as the shape `{}` is", shape.text());
        return Err(cursor.wrong_since(at, message));
    }
    if shape.leaves().contains(&0) {
        return Err(cursor.wrong(start, at, "a mode has at least one element"));
    }
    let points = shape.leaves().iter().try_fold(1i64, |p, n| p.checked_mul(*n));
    let last = modes
        .iter()
        .flatten()
        .try_fold(1i64, |sum, (n, d)| (n - 1).checked_mul(*d).and_then(|v| sum.checked_add(v)));
    match points.zip(last).filter(|(p, l)| *p < 1 << 40 && *l < 1 << 40) {
        Some(_) => Ok(without_swizzle(Layout { modes })),
        None => Err(cursor.wrong_since(start, "the layout is too large")),
    }
}

fn without_swizzle(layout: Layout) -> Reading {
    Reading { swizzle: None, layout }
}

/// The only layout without a swizzle that functions of strides know.
fn unswizzled<'r>(reading: &'r Reading, cursor: &Cursor<'_>, start: usize) -> Result<&'r Layout> {
    match reading.swizzle {
        None => Ok(&reading.layout),
        Some(_) => Err(cursor.wrong_since(start, "a swizzled layout has no strides")),
    }
}

/// A number, or numbers in brackets. `_8` is the same as `8`.
fn tree(cursor: &mut Cursor<'_>, depth: usize) -> Result<Tree> {
    if depth > MAX_DEPTH {
        return Err(cursor.expected("fewer brackets"));
    }
    if cursor.take("(") {
        let mut parts = vec![tree(cursor, depth + 1)?];
        while cursor.take(",") {
            if cursor.peek() == Some(')') {
                break;
            }
            parts.push(tree(cursor, depth + 1)?);
        }
        cursor.expect(")")?;
        return Ok(Tree::Node(parts));
    }
    cursor.take("_");
    match cursor.number()? {
        Some(n) => Ok(Tree::Leaf(n)),
        None => Err(cursor.expected("a number or `(`")),
    }
}

/// The extents of a mode with their strides, where both are nested in the same way.
fn zipped(shape: &Tree, stride: &Tree) -> Option<Mode> {
    match (shape, stride) {
        (Tree::Leaf(n), Tree::Leaf(d)) => Some(vec![(*n, *d)]),
        (Tree::Node(shapes), Tree::Node(strides)) if shapes.len() == strides.len() => {
            let parts = shapes.iter().zip(strides).map(|(n, d)| zipped(n, d));
            Some(parts.collect::<Option<Vec<Mode>>>()?.concat())
        }
        _ => None,
    }
}

fn flat(layout: &Layout) -> Mode {
    layout.modes.concat()
}

fn size(layout: &Layout) -> i64 {
    layout.modes.iter().flatten().map(|(n, _)| n).product()
}

fn cosize(layout: &Layout) -> i64 {
    layout.modes.iter().flatten().map(|(n, d)| (n - 1) * d).sum::<i64>() + 1
}

/// The offset of a number in a mode; what is beyond its end goes on in the last digit.
fn offset(mode: &[(i64, i64)], index: i64) -> i64 {
    let (mut rest, mut sum) = (index, 0);
    for (k, (extent, stride)) in mode.iter().enumerate() {
        let digit = if k + 1 < mode.len() { rest % extent } else { rest };
        rest /= extent;
        sum += digit * stride;
    }
    sum
}

/// The same mode in as few digits as possible.
fn coalesced(mode: &[(i64, i64)]) -> Mode {
    let mut out: Mode = Vec::new();
    for (extent, stride) in mode.iter().filter(|(n, _)| *n != 1) {
        match out.last_mut() {
            Some((n, d)) if *n * *d == *stride => *n *= extent,
            _ => out.push((*extent, *stride)),
        }
    }
    if out.is_empty() { vec![(1, 0)] } else { out }
}

/// The offsets below `size` that a layout leaves, as the layout of what is repeated there.
fn complement(layout: &Layout, size: i64) -> Result<Mode, String> {
    let mut mode: Mode = flat(layout).into_iter().filter(|(n, d)| *n != 1 && *d != 0).collect();
    mode.sort_by_key(|(_, d)| *d);
    let (mut current, mut out) = (1i64, Mode::new());
    for (extent, stride) in mode {
        if stride % current != 0 {
            return Err(format!(
                "the stride {stride} is no multiple of {current}, so that there is no complement"
            ));
        }
        out.push((stride / current, current));
        current = extent.checked_mul(stride).ok_or("the complement is too large")?;
    }
    out.push(((size + current - 1) / current, current));
    Ok(coalesced(&out))
}

/// `first` after `second`.
fn composed(
    first: &Reading,
    second: &Reading,
    cursor: &Cursor<'_>,
    start: usize,
) -> Result<Reading> {
    if second.swizzle.is_some() {
        return Err(cursor.wrong_since(start, "a layout after a swizzle is not read".to_owned()));
    }
    let outer = coalesced(&flat(&first.layout));
    let mut modes = Vec::new();
    for mode in &second.layout.modes {
        let mut parts = Mode::new();
        for &(extent, stride) in mode {
            let part = composed_with(&outer, extent, stride)
                .map_err(|why| cursor.wrong_since(start, why))?;
            parts.extend(part);
        }
        modes.push(parts);
    }
    let layout = Layout { modes };
    no_carries(&outer, &second.layout, &layout).map_err(|why| cursor.wrong_since(start, why))?;
    Ok(Reading { swizzle: first.swizzle, layout })
}

/// Whether the composition of each part by itself is that of the whole: the offsets of parts add up to no more than the digits
/// of the first layout hold.
fn no_carries(outer: &[(i64, i64)], second: &Layout, composed: &Layout) -> Result<(), String> {
    let parts = flat(second);
    let mut sorted: Vec<(i64, i64)> =
        parts.iter().copied().filter(|(n, d)| *n > 1 && *d > 0).collect();
    sorted.sort_unstable_by_key(|(_, d)| *d);
    // A stride divides digits of the first layout, or they divide it: what is less than it stays below.
    let mut below = 0i64;
    let apart = sorted.iter().all(|(n, d)| {
        let fits = below < *d;
        below = below.saturating_add((n - 1).saturating_mul(*d));
        fits
    });
    if apart {
        return Ok(());
    }
    let (made, count) = (flat(composed), size(second));
    if count > MOST_POINTS {
        return Err(
            "the parts of the second layout overlap, at more coordinates than are tried".to_owned()
        );
    }
    match (0..count).find(|i| offset(&made, *i) != offset(outer, offset(&parts, *i))) {
        None => Ok(()),
        Some(at) => Err(format!(
            "at coordinate {at} the parts of the second layout add up to more than a digit of the first one holds, so that the composition has no strides"
        )),
    }
}

/// A mode after `extent:stride`.
fn composed_with(outer: &[(i64, i64)], extent: i64, stride: i64) -> Result<Mode, String> {
    if stride == 0 {
        return Ok(vec![(extent, 0)]);
    }
    let mut out = Mode::new();
    let (mut rest, mut step) = (extent, stride);
    for (k, (n, d)) in outer.iter().enumerate() {
        let last = k + 1 == outer.len();
        if last {
            if rest != 1 || out.is_empty() {
                out.push((rest, step * d));
            }
            break;
        }
        if n % step != 0 && step % n != 0 {
            return Err(not_dividing(extent, stride));
        }
        let here = (n / step).max(1).min(rest);
        if here > 1 {
            if rest % here != 0 {
                return Err(not_dividing(extent, stride));
            }
            out.push((here, step * d));
            rest /= here;
        }
        step = (step + n - 1) / n;
    }
    // The divisions above are those of the algebra; that they give the composition is checked.
    let ends = [extent.min(1 << 16), extent];
    let tried = (0..ends[0]).chain(ends[1] - 1..ends[1]);
    for i in tried {
        if offset(&out, i) != offset(outer, i * stride) {
            return Err(not_dividing(extent, stride));
        }
    }
    Ok(out)
}

fn not_dividing(extent: i64, stride: i64) -> String {
    format!(
        "`{extent}:{stride}` does not divide the modes before it, so that the composition has no strides"
    )
}

/// Most digits of a mode that is written.
const MAX_DIGITS: usize = 40;

/// A map on a shape as a layout.
///
/// # Errors
/// `Refused` where offsets are no sum of digits with strides, swizzled or not.
pub(super) fn write(spec: &Spec, shape: &[i64]) -> Result<String> {
    let grid = Grid::new(spec, shape)?;
    if let Some(layout) = separated(&grid, |offset| offset) {
        return Ok(text(&layout));
    }
    let has_bits = spec.map.indices.iter().any(|e| {
        e.any(|part| matches!(part.kind(), ExprKind::Call(CallTarget::Intrin(Intrin::BitXor), _)))
    });
    let swizzles = (1..=5u32).flat_map(|bits| {
        let shifts = (bits as i32..=10).flat_map(|s| [s, -s]);
        shifts.flat_map(move |shift| (0..=8u32).map(move |base| Swizzle { bits, base, shift }))
    });
    let found = swizzles.filter(|_| has_bits).find_map(|s| {
        // A swizzle undoes itself.
        separated(&grid, |offset| s.apply(offset)).map(|layout| (s, layout))
    });
    match found {
        Some((s, layout)) => {
            Ok(format!("Sw<{},{},{}> o 0 o {}", s.bits, s.base, s.shift, text(&layout)))
        }
        None => Err(refused("the offsets are no sum of digits with strides, swizzled or not")),
    }
}

/// The layout whose offsets are those of a grid after a function; `None` if there is none.
fn separated(grid: &Grid, after: impl Fn(i64) -> i64) -> Option<Layout> {
    let zero = vec![0; grid.shape().len()];
    if after(grid.offset(&zero)) != 0 {
        return None;
    }
    let mut axes = Vec::new();
    for (axis, n) in grid.shape().iter().enumerate() {
        let offsets: Vec<i64> = (0..*n)
            .map(|i| {
                let mut at = zero.clone();
                at[axis] = i;
                after(grid.offset(&at))
            })
            .collect();
        axes.push(offsets);
    }
    let mut modes = Vec::new();
    for offsets in &axes {
        modes.push(factored(offsets)?);
    }
    let same = grid.points().all(|at| {
        after(grid.offset(&at)) == at.iter().zip(&axes).map(|(i, o)| o[*i as usize]).sum::<i64>()
    });
    same.then_some(Layout { modes })
}

/// The digits with strides whose sum some offsets are.
fn factored(offsets: &[i64]) -> Option<Mode> {
    let mut left = offsets.to_vec();
    let mut mode = Mode::new();
    while left.len() > 1 {
        let stride = left[1];
        let straight = left.iter().zip(0..).take_while(|(o, i)| **o == i * stride).count();
        if stride < 0 || mode.len() > MAX_DIGITS {
            return None;
        }
        let extent = (2..=straight).rev().find(|n| is_factor(*n, stride, &left))?;
        mode.push((extent as i64, stride));
        left = strided(extent, &left);
    }
    Some(if mode.is_empty() { vec![(1, 0)] } else { mode })
}

fn strided(extent: usize, left: &[i64]) -> Vec<i64> {
    left.iter().step_by(extent).copied().collect::<Vec<i64>>()
}

fn is_factor(extent: usize, stride: i64, left: &[i64]) -> bool {
    let (digit, rest) = (|i: usize| (i % extent) as i64 * stride, strided(extent, left));
    left.len().is_multiple_of(extent)
        && left.iter().enumerate().all(|(i, o)| *o == digit(i) + rest[i / extent])
}

fn text(layout: &Layout) -> String {
    format!("{}:{}", layout_text(|d| d.0, layout), layout_text(|d| d.1, layout))
}

fn mode_text(mode: &Mode, of: fn(&(i64, i64)) -> i64) -> String {
    match &mode[..] {
        [one] => of(one).to_string(),
        many => {
            let parts: Vec<String> = many.iter().map(|d| of(d).to_string()).collect();
            format!("({})", parts.join(","))
        }
    }
}

fn layout_text(of: fn(&(i64, i64)) -> i64, layout: &Layout) -> String {
    let parts: Vec<String> = layout.modes.iter().map(|m| mode_text(m, of)).collect();
    match &parts[..] {
        [one] if !one.starts_with('(') => one.clone(),
        parts => format!("({})", parts.join(",")),
    }
}
