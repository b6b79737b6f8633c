//! A corner of a tensor as a table of cells: what lies where in memory.

use std::fmt::Write as _;

use tilewright_ir::dim;
use tilewright_layout::TiledLayout;

/// Cells in a row of a table, and rows.
const COLUMNS: i64 = 16;
const ROWS: i64 = 5;
/// Indices past the end of an axis among which the first padding is looked for.
const MOST: i64 = 4096;

/// Tables that show a layout: the start of memory, where padding starts if that is further on, and
/// where a corner of the logical tensor lies. None where its size is open.
pub fn tables(layout: &TiledLayout) -> Vec<String> {
    let Some(layout) = Numbers::new(layout) else { return Vec::new() };
    // Places are computed without a check below.
    let size = layout.physical().iter().try_fold(1i64, |n, d| n.checked_mul(*d));
    if size.is_none_or(|n| n <= 0) {
        return Vec::new();
    }
    let memory = Memory::new(&layout);
    let mut all = vec![memory.table("The start of memory", 0, 0)];
    if let Some(address) = memory.first_padding() {
        let (row, column) = (address / memory.row, address % memory.row);
        if row >= memory.rows(0) || column >= COLUMNS {
            let first = column / COLUMNS * COLUMNS;
            all.push(memory.table("Where padding starts", row, first));
        }
    }
    all.extend(memory.corner());
    all
}

/// A layout of constant extents.
struct Numbers {
    logical: Vec<i64>,
    splits: Vec<Digits>,
    order: Vec<(usize, usize)>,
}

/// The digits of one axis.
struct Digits {
    offset: i64,
    digits: Vec<i64>,
}

impl Numbers {
    fn new(layout: &TiledLayout) -> Option<Numbers> {
        let splits = layout
            .splits
            .iter()
            .map(|s| Some(Digits { offset: s.offset, digits: numbers_of(&s.digits)? }));
        let (logical, splits) = (numbers_of(&layout.logical)?, splits.collect::<Option<_>>()?);
        Some(Numbers { logical, splits, order: layout.order.clone() })
    }

    fn physical(&self) -> Vec<i64> {
        self.order.iter().map(|(d, k)| self.splits[*d].digits[*k]).collect()
    }

    fn pads(&self, axis: usize) -> bool {
        self.splits[axis].room() != self.logical[axis]
    }
}

fn numbers_of(list: &[dim::Dim]) -> Option<Vec<i64>> {
    dim::known(list)?.into_iter().map(|n| i64::try_from(n).ok()).collect()
}

impl Digits {
    fn room(&self) -> i64 {
        self.digits.iter().fold(1, |n, d| n.saturating_mul(*d))
    }
}

/// The memory of a tensor, in rows.
struct Memory<'a> {
    layout: &'a Numbers,
    physical: Vec<i64>,
    /// Cells by which the place changes with each physical index.
    strides: Vec<i64>,
    /// Cells in a row: those of the last axis that has several; and rows along the one before.
    row: i64,
    column: i64,
}

impl<'a> Memory<'a> {
    fn new(layout: &'a Numbers) -> Self {
        let physical = layout.physical();
        let mut strides = vec![1i64; physical.len()];
        for k in (1..physical.len()).rev() {
            strides[k - 1] = strides[k] * physical[k];
        }
        let mut long = physical.iter().rev().copied().filter(|d| *d > 1);
        let (row, column) = (long.next().unwrap_or(1), long.next().unwrap_or(1));
        Memory { layout, physical, strides, row, column }
    }

    /// How many rows a table shows from one on: in them one index changes.
    fn rows(&self, from: i64) -> i64 {
        ROWS.min(self.column - from % self.column)
    }

    /// The logical index of each axis at an address, padding or not.
    fn index(&self, address: i64) -> Vec<i64> {
        let layout = self.layout;
        let mut digits: Vec<Vec<i64>> =
            layout.splits.iter().map(|s| vec![0; s.digits.len()]).collect();
        for ((d, k), (extent, stride)) in
            layout.order.iter().zip(self.physical.iter().zip(&self.strides))
        {
            digits[*d][*k] = address / stride % extent;
        }
        let joined = layout.splits.iter().zip(digits).map(|(split, digits)| {
            let value = split.digits.iter().zip(digits).fold(0, |n, (room, d)| n * room + d);
            value - split.offset
        });
        joined.collect()
    }

    fn is_data(&self, index: &[i64]) -> bool {
        index.iter().zip(&self.layout.logical).all(|(i, extent)| (0..*extent).contains(i))
    }

    /// What an axis at an index adds to the address.
    fn part(&self, axis: usize, index: i64) -> i64 {
        let split = &self.layout.splits[axis];
        let mut rest = index + split.offset;
        let mut sum = 0;
        for (k, room) in split.digits.iter().enumerate().rev() {
            let at = self.layout.order.iter().position(|place| *place == (axis, k));
            // The first digit has what is left.
            let digit = if k == 0 { rest } else { rest.rem_euclid(*room) };
            sum += digit * at.map_or(0, |at| self.strides[at]);
            rest = rest.div_euclid(*room);
        }
        sum
    }

    /// The address of a logical index.
    fn address(&self, index: &[i64]) -> i64 {
        index.iter().enumerate().map(|(axis, i)| self.part(axis, *i)).sum()
    }

    fn first_padding(&self) -> Option<i64> {
        let layout = self.layout;
        let start: i64 =
            (0..layout.logical.len()).map(|d| self.part(d, -layout.splits[d].offset)).sum();
        let padded = (0..layout.logical.len()).filter(|d| layout.pads(*d));
        let firsts = padded.filter_map(|d| {
            let (split, extent) = (&layout.splits[d], layout.logical[d]);
            if split.offset > 0 {
                return Some(start);
            }
            let end = split.room().min(extent.saturating_add(MOST));
            (extent..end).map(|index| start + self.part(d, index)).min()
        });
        firsts.min()
    }

    /// Rows of memory as a table, each cell with the logical indices that change in it; from a row and
    /// a column on.
    fn table(&self, caption: &str, from: i64, first: i64) -> String {
        let columns = (self.row - first).min(COLUMNS);
        let rows: Vec<i64> = (from..from + self.rows(from)).collect();
        let cells: Vec<Vec<Vec<i64>>> = rows
            .iter()
            .map(|r| (0..columns).map(|c| self.index(r * self.row + first + c)).collect())
            .collect();
        let shown = cells.iter().flatten().filter(|index| self.is_data(index));
        let (open, note) = changing(&shown.map(Vec::as_slice).collect::<Vec<_>>());
        let mut text =
            format!("<table class=m><caption>{caption}. {note}</caption><tr><th>address");
        let has_more = first + columns < self.row;
        for c in 0..columns {
            let _ = write!(text, "<th>+{}", first + c);
        }
        text += if has_more { "<th>…" } else { "" };
        for (r, row) in rows.iter().zip(&cells) {
            let _ = write!(text, "<tr><th>{}", r * self.row);
            for index in row {
                if self.is_data(index) {
                    let _ = write!(text, "<td>{}", label(&open, index));
                } else {
                    text += "<td class=p>"
                }
            }
            text += if has_more { "<td class=g>…" } else { "" };
        }
        text + "</table>"
    }

    /// Two axes of the logical tensor, with the address of each element; `None` for a tensor with
    /// fewer.
    fn corner(&self) -> Option<String> {
        let layout = self.layout;
        // The axis that is innermost in memory, and the last of the others that is divided or long.
        let across = layout.order.iter().rev().map(|(d, _)| *d).find(|d| layout.logical[*d] > 1)?;
        let others = (0..layout.logical.len()).rev().filter(|d| *d != across);
        let down = others
            .filter(|d| layout.logical[*d] > 1)
            .max_by_key(|d| (layout.splits[*d].digits.len() > 1, *d))?;
        let (columns, rows) = (self.samples(across), self.samples(down));
        let zeros: Vec<String> = (0..layout.logical.len())
            .filter(|d| *d != across && *d != down)
            .map(|d| format!("i{d} = 0"))
            .collect();
        let note =
            if zeros.is_empty() { String::new() } else { format!(" ({})", zeros.join(", ")) };
        let mut text = format!(
            "<table class=m><caption>Addresses of logical elements{note}</caption>\
             <tr><th>i{down} \\ i{across}"
        );
        for c in &columns {
            let _ = write!(text, "<th>{c}");
        }
        for r in &rows {
            let _ = write!(text, "<tr><th>{r}");
            for c in &columns {
                let mut index = vec![0; layout.logical.len()];
                (index[down], index[across]) = (*r, *c);
                let _ = write!(text, "<td>{}", self.address(&index));
            }
        }
        Some(text + "</table>")
    }

    /// Indices of an axis that show how it is divided: the first, those around the first block's end,
    /// the last.
    fn samples(&self, axis: usize) -> Vec<i64> {
        let (split, extent) = (&self.layout.splits[axis], self.layout.logical[axis]);
        let mut all = vec![0, 1, 2, extent - 1];
        match split.digits.get(1..) {
            Some(inner) if !inner.is_empty() => {
                let block: i64 = inner.iter().product();
                let at = block - split.offset.rem_euclid(block);
                all.extend([at - 1, at, at + 1]);
            }
            _ => all.extend([3, 4]),
        }
        all.retain(|i| (0..extent).contains(i));
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// The axes whose indices differ among these, and a sentence that says which they are.
fn changing(all: &[&[i64]]) -> (Vec<usize>, String) {
    let Some(first) = all.first() else { return (Vec::new(), String::new()) };
    let (mut open, mut fixed) = (Vec::new(), Vec::new());
    for d in 0..first.len() {
        if all.iter().all(|index| index[d] == first[d]) {
            fixed.push(format!("i{d} = {}", first[d]))
        } else {
            open.push(d)
        }
    }
    let names: Vec<String> = open.iter().map(|d| format!("i{d}")).collect();
    let mut note =
        if names.is_empty() { String::new() } else { format!("Cells hold {}", names.join(",")) };
    if !fixed.is_empty() {
        let sep = if note.is_empty() { "" } else { " at " };
        let _ = write!(note, "{sep}{}", fixed.join(", "));
    }
    (open, note)
}

fn label(open: &[usize], index: &[i64]) -> String {
    if open.is_empty() {
        "0".to_owned()
    } else {
        open.iter().map(|d| index[*d].to_string()).collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_layout::tiled::Split;

    /// Every cell of the memory holds what the layout says, and the rest is padding.
    fn check(layout: &TiledLayout) {
        let numbers = Numbers::new(layout).expect("no size is open");
        let memory = Memory::new(&numbers);
        let mut padding = None;
        let mut elements = 0;
        let size: i64 = numbers.physical().iter().product();
        for address in 0..size {
            let index = memory.index(address);
            if memory.is_data(&index) {
                assert_eq!(memory.address(&index), address, "{layout} at {index:?}");
                elements += 1;
            } else {
                padding = padding.or(Some(address))
            }
        }
        assert_eq!(elements, numbers.logical.iter().product::<i64>());
        assert_eq!(memory.first_padding(), padding, "{layout}");
        let share = 1.0 - elements as f64 / size as f64;
        assert!((layout.waste() - share).abs() < 1e-12);
        let text = tables(layout).concat();
        assert_eq!(text.contains("<td class=p>"), padding.is_some(), "{layout}: {text}");
    }

    fn blocked(shape: &[i64], axes: &[usize], blocks: &[(usize, i64)]) -> TiledLayout {
        TiledLayout::blocked(shape, axes, blocks).expect("a layout")
    }

    #[test]
    fn every_cell_is_where_the_layout_puts_it() {
        check(&TiledLayout::identity(&[0i64; 0]));
        check(&TiledLayout::identity(&[2, 3, 20]));
        check(&blocked(&[1, 5, 2, 3], &[0, 2, 3, 1], &[]));
        check(&blocked(&[2, 65, 3, 3], &[0, 1, 2, 3, 1], &[(1, 16)]));
        check(&blocked(&[5, 9], &[1, 0, 1, 0], &[(0, 4), (1, 4)]));
        check(&blocked(&[1, 7, 1, 1], &[0, 1, 2, 3, 1], &[(1, 8)]));
        let mut shifted = blocked(&[14], &[0, 0], &[(0, 8)]);
        shifted.splits[0] = Split { offset: 2, digits: dim::shape(&[3, 8]) };
        check(&shifted);
        let mut at_end = blocked(&[3, 40], &[0, 1], &[]);
        at_end.splits[1] = Split { offset: 0, digits: dim::shape(&[50]) };
        check(&at_end);
    }

    #[test]
    fn there_are_no_tables_of_nothing_or_of_too_much() {
        assert!(tables(&TiledLayout::identity(&[3i64, 0])).is_empty());
        assert!(tables(&TiledLayout::identity(&[1i64 << 40, 1 << 40])).is_empty());
    }

    #[test]
    fn tables_say_what_lies_where() {
        let layout = blocked(&[1, 6, 2, 3], &[0, 1, 2, 3, 1], &[(1, 4)]);
        let tables = tables(&layout);
        assert_eq!(tables.len(), 3);
        assert!(tables[0].contains("Cells hold i1,i3 at i0 = 0, i2 = 0"), "{}", tables[0]);
        assert!(tables[0].contains("<tr><th>4<td>0,1<td>1,1<td>2,1<td>3,1<tr>"));
        assert!(tables[0].ends_with("<tr><th>8<td>0,2<td>1,2<td>2,2<td>3,2</table>"));
        assert!(tables[1].contains("<tr><th>24<td>4,0<td>5,0<td class=p><td class=p>"));
        assert!(tables[2].contains("<tr><th>i3 \\ i1<th>0<th>1<th>2<th>3<th>4<th>5"));
        assert!(tables[2].contains("<tr><th>1<td>4<td>5<td>6<td>7<td>28<td>29"));
    }
}
