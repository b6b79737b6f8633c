//! `linalg.pack` of MLIR, and the encodings of IREE: `inner_dims_pos = [1] inner_tiles = [16]
//! outer_dims_perm = [0, 2, 3, 1]`.
//!
//! Axes in `inner_dims_pos` are in tiles, which lie behind all outer axes, in this order; the outer axes lie
//! in the order of `outer_dims_perm`. A whole operation may be given; the type of its source is then
//! the shape.

use std::sync::Arc;

use tilewright_ir::{Result, Source};

use super::text::Cursor;
use super::tiles::Tiles;
use super::{Notation, Spec, refused};
use crate::index_map::IndexMap;

/// A list of the text, with the place of its beginning.
type List = (Vec<i64>, usize);

/// `rank` is that of the shape, where one is given beside the text.
pub(super) fn read(source: &Arc<Source>, rank: Option<usize>) -> Result<Spec> {
    let mut cursor = Cursor::new(source);
    let (mut positions, mut tiles, mut outer) = (None::<List>, None::<List>, None::<List>);
    let mut shapes: Vec<(Vec<Option<i64>>, usize)> = Vec::new();
    while !cursor.is_at_end() {
        let at = cursor.at();
        let slot = match cursor.word() {
            "inner_dims_pos" | "innerDimsPos" => &mut positions,
            "inner_tiles" | "innerTileSizes" => &mut tiles,
            "outer_dims_perm" | "outerDimsPerm" => &mut outer,
            "tensor" | "memref" => {
                shapes.push((shape(&mut cursor)?, at));
                continue;
            }
            "" => {
                let next = cursor.peek().map_or(0, char::len_utf8);
                cursor.advance(next);
                continue;
            }
            _ => continue,
        };
        if slot.is_some() {
            return Err(cursor.wrong_since(at, "this is given twice"));
        }
        cursor.expect("=")?;
        let at = cursor.at();
        *slot = Some((cursor.numbers()?, at));
    }
    let end = source.text.trim_end().len();
    let of_type = shapes.first().map(|(s, _)| s.len());
    let given = of_type.or(outer.as_ref().map(|(o, _)| o.len())).or(rank);
    let Some(rank) = given else {
        let message = "the number of axes is not known";
        return Err(cursor
            .wrong(0, end, message)
            .help("write `outer_dims_perm` or the type of the source, or give the shape"));
    };
    let (positions, at) = positions.unwrap_or_default();
    for (k, d) in positions.iter().enumerate() {
        let twice = positions[..k].contains(d);
        if *d >= rank as i64 || twice {
            let why = if twice { "stands twice" } else { "is no axis of the source" };
            return Err(cursor.wrong(at, list_end(source, at), format!("{d} {why}")));
        }
    }
    let (tiles, at_tiles) = tiles.unwrap_or_default();
    if tiles.len() != positions.len() || tiles.contains(&0) {
        let message = if tiles.contains(&0) {
            "a tile has at least one element".to_owned()
        } else {
            format!("{} tiles for {} axes", tiles.len(), positions.len())
        };
        return Err(cursor.wrong(at_tiles, list_end(source, at_tiles), message));
    }
    let (order, at_order) = outer
        .filter(|(o, _)| !o.is_empty())
        .unwrap_or_else(|| ((0..rank as i64).collect::<Vec<_>>(), 0));
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if sorted != (0..rank as i64).collect::<Vec<_>>() {
        let message = format!("this is no order of the {rank} axes");
        return Err(cursor.wrong(at_order, list_end(source, at_order), message));
    }
    let order: Vec<usize> = order.iter().map(|d| *d as usize).collect();
    let inner: Vec<Vec<(usize, i64)>> =
        positions.iter().zip(&tiles).map(|(d, n)| vec![(*d as usize, *n)]).collect();
    let names: Vec<String> = (0..rank).map(|d| format!("d{d}")).collect();
    let mut spec = Spec::new(Notation::Linalg, Tiles::new(rank, &order, &inner).map(&names));
    let logical = shapes.first().and_then(|(s, _)| s.iter().copied().collect::<Option<Vec<_>>>());
    spec.shape = logical;
    if let (Some(shape), [_, (packed, at)]) = (&spec.shape, &shapes[..]) {
        let outer = order.iter().map(|d| {
            let tile = positions.iter().position(|p| *p == *d as i64).map_or(1, |k| tiles[k]);
            (shape[*d] + tile - 1) / tile
        });
        let expected: Vec<i64> = outer.chain(tiles.iter().copied()).collect();
        let fits = packed.len() == expected.len()
            && packed.iter().zip(&expected).all(|(p, e)| p.is_none_or(|p| p == *e));
        if !fits {
            let text: Vec<String> = expected.iter().map(i64::to_string).collect();
            let message = format!("the packed tensor is {}", text.join("x"));
            let close = source.text[*at..].find('>').map_or(end, |k| at + k + 1);
            return Err(cursor.wrong(*at, close, message));
        }
    }
    Ok(spec)
}

fn list_end(source: &Source, start: usize) -> usize {
    let rest = source.text.get(start..).unwrap_or("");
    start + rest.find(']').map_or(rest.len(), |k| k + 1)
}

/// `<4x?x16xf32>`.
fn shape(cursor: &mut Cursor<'_>) -> Result<Vec<Option<i64>>> {
    cursor.expect("<")?;
    let mut extents = Vec::new();
    loop {
        if cursor.take("?") {
            extents.push(None);
        } else if let Some(n) = cursor.number()? {
            extents.push(Some(n));
        } else {
            break;
        }
        if !cursor.take("x") {
            break;
        }
    }
    Ok(extents)
}

pub(super) fn write(map: &IndexMap) -> Result<String> {
    let tiles = Tiles::recognise(map)?;
    let (outer, inner) = tiles.outer_and_tiles()?;
    let mut digits = Vec::new();
    for group in inner {
        let [digit] = group[..] else {
            return Err(refused("`linalg.pack` joins no tiles"));
        };
        digits.push(digit);
    }
    for axis in 0..tiles.rank {
        if tiles.of_axis(axis).len() > 2 {
            return Err(refused(format!(
                "`linalg.pack` splits an axis once, axis {axis} is split twice"
            )));
        }
    }
    let positions = bracketed(digits.iter().map(|d| d.axis.to_string()).collect());
    let extents = bracketed(digits.iter().map(|d| d.extent.unwrap_or(1).to_string()).collect());
    let order = bracketed(outer.iter().map(usize::to_string).collect());
    Ok(format!("outer_dims_perm = {order} inner_dims_pos = {positions} inner_tiles = {extents}"))
}

fn bracketed(items: Vec<String>) -> String {
    format!("[{}]", items.join(", "))
}
