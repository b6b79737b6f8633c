//! Layouts of TVM: `NCHW16c`, `OIHW4i4o`, `OIHW[4o4i]`, `NCHW->NHWC8c`.
//!
//! Axes are upper-case letters; a number and a letter in lower case is a tile of that axis, and what is in
//! brackets is joined to one axis of memory. The logical order is that of the upper-case letters,
//! unless one is given before an arrow.

use std::sync::Arc;

use tilewright_ir::{Result, Source};

use super::text::Cursor;
use super::tiles::Tiles;
use super::{Notation, Spec, refused};
use crate::index_map::IndexMap;

pub(super) fn read(source: &Arc<Source>) -> Result<Spec> {
    let mut cursor = Cursor::new(source);
    let start = cursor.at();
    let first = primal(&mut cursor)?;
    let (names, outer) = if cursor.take("->") {
        let start = cursor.at();
        let outer = primal(&mut cursor)?;
        if sorted(&first) != sorted(&outer) {
            let message = "the axes differ from those before the arrow";
            return Err(cursor.wrong_since(start, message));
        }
        (first, outer)
    } else {
        (first.clone(), first)
    };
    if names.is_empty() {
        return Err(cursor.wrong(start, start, "expected an axis, a letter in upper case"));
    }
    let mut tiles: Vec<Vec<(usize, i64)>> = Vec::new();
    let mut seen = Vec::new();
    while !cursor.is_at_end() {
        let joined = cursor.take("[");
        let mut group = Vec::new();
        loop {
            let start = cursor.at();
            let extent = cursor.whole_number()?;
            if extent < 1 {
                return Err(cursor.wrong_since(start, "a tile has at least one element"));
            }
            let at = cursor.at();
            let Some(c) = cursor.peek().filter(char::is_ascii_lowercase) else {
                return Err(cursor.expected("the axis of the tile in lower case"));
            };
            let Some(found) = position_of(c.to_ascii_uppercase(), &names) else {
                let message = format!("there is no axis `{}`", c.to_ascii_uppercase());
                return Err(cursor.wrong(at, at + 1, message));
            };
            if seen.contains(&c) {
                let message = format!("axis `{c}` has two tiles");
                return Err(cursor.wrong(at, at + 1, message));
            }
            seen.push(c);
            cursor.advance(1);
            group.push((found, extent));
            if !joined || cursor.take("]") {
                break;
            }
        }
        tiles.push(group);
    }
    let outer: Vec<usize> = outer.iter().filter_map(|c| position_of(*c, &names)).collect();
    let params: Vec<String> = names.iter().map(|c| c.to_ascii_lowercase().to_string()).collect();
    Ok(Spec::new(Notation::Tvm, Tiles::new(names.len(), &outer, &tiles).map(&params)))
}

fn sorted(names: &[char]) -> Vec<char> {
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    sorted
}

fn position_of(c: char, names: &[char]) -> Option<usize> {
    names.iter().position(|n| *n == c)
}

/// Upper-case letters, each once.
fn primal(cursor: &mut Cursor<'_>) -> Result<Vec<char>> {
    let mut names = Vec::new();
    while let Some(c) = cursor.peek().filter(char::is_ascii_uppercase) {
        if names.contains(&c) {
            let at = cursor.at();
            return Err(cursor.wrong(at, at + 1, format!("axis `{c}` stands twice")));
        }
        names.push(c);
        cursor.advance(1);
    }
    Ok(names)
}

pub(super) fn write(map: &IndexMap) -> Result<String> {
    let tiles = Tiles::recognise(map)?;
    let (outer, inner) = tiles.outer_and_tiles()?;
    let letters = letters(map)?;
    let mut text = String::new();
    if !outer.is_sorted() {
        text.extend(&letters);
        text += "->";
    }
    text.extend(outer.iter().map(|axis| letters[*axis]));
    let twice = (0..tiles.rank).find(|axis| tiles.of_axis(*axis).len() > 2);
    if let Some(axis) = twice {
        let name = letters[axis];
        return Err(refused(format!("a layout of TVM has one tile an axis, `{name}` has two")));
    }
    for group in inner {
        let parts = group
            .iter()
            .map(|d| format!("{}{}", d.extent.unwrap_or(1), letters[d.axis].to_ascii_lowercase()));
        let parts: String = parts.collect();
        text += &if group.len() > 1 { format!("[{parts}]") } else { parts };
    }
    Ok(text)
}

/// Letters for the axes: the names of parameters where these are such, or those from `A` on.
fn letters(map: &IndexMap) -> Result<Vec<char>> {
    let named = map.params.iter().map(|p| {
        let mut name = p.name().chars();
        match (name.next(), name.next()) {
            (Some(c), None) if c.is_ascii_alphabetic() => Some(c.to_ascii_uppercase()),
            _ => None,
        }
    });
    let named: Option<Vec<char>> = named.collect();
    if let Some(names) =
        named.filter(|names| (1..names.len()).all(|k| !names[..k].contains(&names[k])))
    {
        return Ok(names);
    }
    let counted: Vec<char> = ('A'..='Z').take(map.params.len()).collect();
    if counted.len() == map.params.len() {
        Ok(counted)
    } else {
        Err(refused("there are more axes than letters"))
    }
}
