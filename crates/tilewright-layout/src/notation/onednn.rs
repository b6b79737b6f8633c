//! Memory tags of oneDNN: `aBcd16b`, `nChw16c`, `OIhw4i16o4i`.
//!
//! Letters are axes in the order of memory, an axis in upper case is in blocks, and the blocks follow as
//! a number and the axis in lower case, the innermost last. Letters from `a` on count the axes;
//! others name those of images (`n c d h w`), of weights (`g o i d h w`) and of recurrent networks.

use std::sync::Arc;

use tilewright_ir::{Result, Source};

use super::text::Cursor;
use super::tiles::Tiles;
use super::{Notation, Spec, refused};
use crate::index_map::IndexMap;

/// The logical orders of axes by name: a tag has the letters of one of them. Of those with the same
/// letters the first one is meant.
const ORDERS: [&str; 19] = [
    "x", "nc", "ncw", "nchw", "ncdhw", "oi", "oiw", "oihw", "oidhw", "goi", "goiw", "goihw",
    "goidhw", "tnc", "ldnc", "ldigo", "ldgoi", "ldgo", "ldio",
];

pub(super) fn read(source: &Arc<Source>) -> Result<Spec> {
    let mut cursor = Cursor::new(source);
    let mut letters: Vec<(char, usize)> = Vec::new();
    while let Some(c) = cursor.peek().filter(char::is_ascii_alphabetic) {
        let at = cursor.at();
        if letters.iter().any(|(l, _)| l.eq_ignore_ascii_case(&c)) {
            let message = format!("axis `{}` stands twice", c.to_ascii_lowercase());
            return Err(cursor.wrong(at, at + 1, message));
        }
        letters.push((c, at));
        cursor.advance(1);
    }
    if letters.is_empty() {
        return Err(cursor.expected("the letter of an axis"));
    }
    let names = order(&letters, &cursor)?;
    let mut tiles = Vec::new();
    while !cursor.is_at_end() {
        let start = cursor.at();
        let extent = cursor.whole_number()?;
        if extent < 1 {
            return Err(cursor.wrong_since(start, "a block has at least one element"));
        }
        let at = cursor.at();
        let letter = cursor.peek().filter(char::is_ascii_lowercase);
        let Some(found) = letter.and_then(|c| axis_of_letter(c, &names)) else {
            return Err(cursor.expected("the axis of the block in lower case"));
        };
        let outer = letters.iter().find(|(l, _)| Some(l.to_ascii_lowercase()) == letter);
        if let Some((l, _)) = outer.filter(|(l, _)| l.is_ascii_lowercase()) {
            let message = format!("axis `{l}` has a block");
            let help = format!("write `{}` in upper case", l.to_ascii_uppercase());
            return Err(cursor.wrong(at, at + 1, message).help(help));
        }
        cursor.advance(1);
        tiles.push(vec![(found, extent)]);
    }
    for (l, at) in letters.iter().filter(|(l, _)| l.is_ascii_uppercase()) {
        if !tiles.iter().flatten().any(|(t, _)| Some(*t) == axis_of_letter(*l, &names)) {
            let message = format!("`{l}` stands for an axis in blocks, and has none");
            return Err(cursor.wrong(*at, at + 1, message));
        }
    }
    let outer: Vec<usize> =
        letters.iter().filter_map(|(l, _)| axis_of_letter(*l, &names)).collect();
    let map = Tiles::new(names.len(), &outer, &tiles)
        .map(&names.iter().map(char::to_string).collect::<Vec<_>>());
    Ok(Spec::new(Notation::OneDnn, map))
}

fn axis_of_letter(c: char, names: &[char]) -> Option<usize> {
    names.iter().position(|n| *n == c.to_ascii_lowercase())
}

/// The logical order of the axes that a tag names.
fn order(letters: &[(char, usize)], cursor: &Cursor<'_>) -> Result<Vec<char>> {
    let mut sorted: Vec<char> = letters.iter().map(|(l, _)| l.to_ascii_lowercase()).collect();
    sorted.sort_unstable();
    if sorted.iter().copied().eq(('a'..='l').take(sorted.len())) {
        return Ok(sorted);
    }
    let named = ORDERS.iter().find(|names| {
        let mut of_order: Vec<char> = names.chars().collect();
        of_order.sort_unstable();
        of_order == sorted
    });
    if let Some(names) = named {
        return Ok(names.chars().collect());
    }
    let (start, end) = (letters.first().map_or(0, |l| l.1), letters.last().map_or(0, |l| l.1 + 1));
    let message = "these letters are no axes of a tensor";
    Err(cursor
        .wrong(start, end, message)
        .help("count the axes from `a` on, or use those of images (`ncdhw`) or weights (`goidhw`)"))
}

pub(super) fn write(map: &IndexMap) -> Result<String> {
    let tiles = Tiles::recognise(map)?;
    let (outer, inner) = tiles.outer_and_tiles()?;
    if tiles.rank > 12 {
        return Err(refused("a tag has at most 12 axes"));
    }
    let mut text: String = outer.iter().map(|axis| axis_letter(*axis)).collect();
    for group in inner {
        let [digit] = group[..] else {
            return Err(refused("a tag has no axis of memory that joins two blocks"));
        };
        let (name, extent) = (axis_letter(digit.axis), digit.extent.unwrap_or(1));
        text = text.replace(name, &name.to_ascii_uppercase().to_string());
        text += &format!("{extent}{name}");
    }
    // Only the letters before the first number are outer axes.
    let outer = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
    let (outer, inner) = text.split_at(outer);
    Ok(format!("{outer}{}", inner.to_ascii_lowercase()))
}

fn axis_letter(axis: usize) -> char {
    char::from(b'a' + axis as u8)
}
