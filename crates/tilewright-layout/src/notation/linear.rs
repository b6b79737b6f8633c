//! Layouts of Triton: `#ttg.linear<{register = [[0, 1]], lane = [[0, 2], [1, 0]], warp = [], block = []}>`.
//!
//! A linear layout gives, for each binary digit of a register, lane, warp and block, or of an offset in shared memory,
//! the element that the digit adds to the coordinates, by exclusive or. That is a map from
//! places to elements; the index map is its inverse, from elements to places. A layout in which two places hold one element
//! has no inverse, and is refused with both.
//!
//! `#ttg.blocked<...>` and `#ttg.swizzled_shared<...>`, which are older forms of some of these, are read, too.

use std::sync::Arc;

use tilewright_ir::{Expr, Intrin, Result, Source, Var};
use tilewright_polyhedral::bits::BitMap;

use super::text::Cursor;
use super::{Notation, Spec, dtype, refused};
use crate::index_map::IndexMap;

/// What is given to a key.
enum Value {
    Number(i64),
    List(Vec<Value>),
    Word,
}

/// A key with its value, and its place.
struct Entry {
    key: String,
    value: Value,
    place: (usize, usize),
}

/// Most axes of a tensor, and digits of all places.
const MOST: usize = 64;

pub(super) fn read(source: &Arc<Source>, shape: Option<&[i64]>) -> Result<Spec> {
    let mut cursor = Cursor::new(source);
    let head = cursor.at();
    let open = cursor.rest().find('{');
    let Some(open) = open else { return Err(cursor.expected("`{` and the bases")) };
    let name = cursor.rest()[..open].trim_end_matches(['<', ' ']).to_owned();
    cursor.advance(open + 1);
    let mut entries: Vec<Entry> = Vec::new();
    while !cursor.take("}") {
        if !entries.is_empty() {
            cursor.expect(",")?;
        }
        let start = cursor.at();
        let key = cursor.word().to_owned();
        if key.is_empty() {
            return Err(cursor.expected("a name"));
        }
        cursor.expect("=")?;
        let at = cursor.at();
        let value = value(&mut cursor, 0)?;
        if entries.iter().any(|e| e.key == key) {
            return Err(cursor.wrong_since(start, format!("`{key}` is given twice")));
        }
        let end = at + source.text.get(at..cursor.at()).unwrap_or("").trim_end().len();
        entries.push(Entry { key, value, place: (at, end) });
    }
    let kind = name.rsplit('.').next().unwrap_or("").trim();
    match kind {
        "blocked" => blocked(&entries, &cursor, head, shape),
        "swizzled_shared" | "shared" => swizzled(&entries, &cursor, head, shape),
        "linear" | "shared_linear" | "" => linear(&entries, &cursor, head, shape),
        _ => {
            let message = format!("`{kind}` is no layout that is read");
            let known = "linear, shared_linear, blocked and swizzled_shared are";
            Err(cursor.wrong(head, head + name.len(), message).help(known))
        }
    }
}

fn value(cursor: &mut Cursor<'_>, depth: usize) -> Result<Value> {
    if depth > 4 {
        return Err(cursor.expected("fewer brackets"));
    }
    if cursor.take("[") {
        let mut items = Vec::new();
        while !cursor.take("]") {
            if !items.is_empty() {
                cursor.expect(",")?;
            }
            items.push(value(cursor, depth + 1)?);
        }
        return Ok(Value::List(items));
    }
    match cursor.number()? {
        Some(n) => Ok(Value::Number(n)),
        None if !cursor.word().is_empty() => Ok(Value::Word),
        None => Err(cursor.expected("a number or a list")),
    }
}

impl Value {
    fn numbers(&self) -> Option<Vec<i64>> {
        let Value::List(items) = self else { return None };
        items
            .iter()
            .map(|v| match v {
                Value::Number(n) => Some(*n),
                _ => None,
            })
            .collect()
    }
}

fn linear(
    entries: &[Entry],
    cursor: &Cursor<'_>,
    head: usize,
    shape: Option<&[i64]>,
) -> Result<Spec> {
    let mut places: Vec<(String, Vec<Vec<i64>>)> = Vec::new();
    let mut rank = None;
    for Entry { key, value, place } in entries {
        let Value::List(items) = value else { continue };
        let bases: Option<Vec<Vec<i64>>> = items.iter().map(Value::numbers).collect();
        let Some(bases) = bases else {
            let message = format!("`{key}` is no list of elements, such as `[[0, 1], [0, 2]]`");
            return Err(cursor.wrong(place.0, place.1, message));
        };
        for basis in &bases {
            if *rank.get_or_insert(basis.len()) != basis.len() {
                let message = "the elements have different numbers of coordinates";
                return Err(cursor.wrong(place.0, place.1, message));
            }
        }
        places.push((key.clone(), bases));
    }
    let end = cursor.at();
    // One element has no bases, which would tell how many axes it has.
    let rank = rank.or(shape.map(<[i64]>::len)).unwrap_or(0);
    let digits: usize = places.iter().map(|(_, b)| b.len()).sum();
    if places.is_empty() || rank == 0 || rank > MOST || digits > MOST {
        return Err(cursor.wrong(head, end, "there are no bases, or too many"));
    }
    let mut spec = of_bases(&places, rank).map_err(|why| {
        let what = why.diagnostic();
        let error = cursor.wrong(head, end, what.message.clone());
        what.notes.iter().fold(error, |e, n| e.note(n.clone()))
    })?;
    spec.shape = Some(extents(&places, rank));
    Ok(spec)
}

/// The extents of the elements that bases reach.
fn extents(places: &[(String, Vec<Vec<i64>>)], rank: usize) -> Vec<i64> {
    (0..rank)
        .map(|axis| {
            let all = places.iter().flat_map(|(_, b)| b).map(|b| b[axis]);
            let digits = all.fold(0i64, |d, b| d | b);
            1i64 << (64 - digits.leading_zeros())
        })
        .collect()
}

/// The index map from elements to places.
fn of_bases(places: &[(String, Vec<Vec<i64>>)], rank: usize) -> Result<Spec> {
    let from: Vec<(Var, u32)> =
        places.iter().map(|(name, b)| (Var::new(name.as_str(), dtype()), b.len() as u32)).collect();
    let bases: Vec<Vec<u64>> =
        places.iter().flat_map(|(_, b)| b).map(|b| b.iter().map(|v| *v as u64).collect()).collect();
    let map = BitMap::from_bases(&from, &bases, rank);
    let map = map.ok_or_else(|| refused("the bases have too many digits"))?;
    let params: Vec<Var> = (0..rank).map(|d| Var::new(format!("dim{d}"), dtype())).collect();
    let Some(inverse) = map.inverse(&params) else {
        let open = vec![None; places.len()];
        let both = map.collision(&open).map(|at| {
            let at: Vec<String> = places
                .iter()
                .zip(&at)
                .filter(|(_, v)| **v != 0)
                .map(|((name, _), v)| format!("{name} {v}"))
                .collect();
            format!("the first place and that of {} hold the same element", at.join(", "))
        });
        let error = refused("two places hold one element, so that it has no index");
        return Err(both.into_iter().fold(error, |e, n| e.note(n)));
    };
    if let Some(missing) = inverse.outside.first() {
        let text = super::text_of(missing);
        return Err(refused("some elements are nowhere").note(format!("those with `{text}`")));
    }
    let map = IndexMap { params, indices: inverse.values, separators: Vec::new() };
    let mut spec = Spec::new(Notation::Linear, map);
    spec.places = match places {
        all if all.iter().any(|(name, _)| name == "offset") => Vec::new(),
        _ => places.iter().map(|(name, _)| name.as_str().into()).collect(),
    };
    Ok(spec)
}

/// The numbers that belong to a key.
fn list(entries: &[Entry], key: &str, cursor: &Cursor<'_>, head: usize) -> Result<Vec<i64>> {
    let Some(entry) = entries.iter().find(|e| e.key == key) else {
        return Err(cursor.wrong(head, cursor.at(), format!("`{key}` is missing")));
    };
    let numbers = entry.value.numbers().filter(|n| !n.is_empty());
    numbers.ok_or_else(|| {
        cursor.wrong(entry.place.0, entry.place.1, format!("`{key}` is a list of numbers"))
    })
}

fn number(entries: &[Entry], key: &str, cursor: &Cursor<'_>, head: usize) -> Result<i64> {
    let entry = entries.iter().find(|e| e.key == key);
    match entry.map(|e| (&e.value, e.place)) {
        Some((Value::Number(n), _)) if n.count_ones() == 1 => Ok(*n),
        Some((_, place)) => {
            Err(cursor.wrong(place.0, place.1, format!("`{key}` is a power of two")))
        }
        None => Err(cursor.wrong(head, cursor.at(), format!("`{key}` is missing"))),
    }
}

/// The axes from the fastest one on.
fn order(entries: &[Entry], rank: usize, cursor: &Cursor<'_>, head: usize) -> Result<Vec<usize>> {
    let order = list(entries, "order", cursor, head)?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if sorted != (0..rank as i64).collect::<Vec<_>>() {
        return Err(cursor.wrong(head, cursor.at(), format!("`order` is no order of {rank} axes")));
    }
    Ok(order.into_iter().map(|d| d as usize).collect())
}

fn blocked(
    entries: &[Entry],
    cursor: &Cursor<'_>,
    head: usize,
    shape: Option<&[i64]>,
) -> Result<Spec> {
    let keys = [("register", "sizePerThread"), ("lane", "threadsPerWarp"), ("warp", "warpsPerCTA")];
    let mut sizes = Vec::new();
    for (place, key) in keys {
        let list = list(entries, key, cursor, head)?;
        if let Some(n) = list.iter().find(|n| n.count_ones() != 1) {
            return Err(cursor.wrong(
                head,
                cursor.at(),
                format!("{n} of `{key}` is no power of two"),
            ));
        }
        sizes.push((place, list));
    }
    let rank = sizes[0].1.len();
    if sizes.iter().any(|(_, list)| list.len() != rank) || rank > MOST {
        return Err(cursor.wrong(head, cursor.at(), "the lists have different lengths"));
    }
    let order = order(entries, rank, cursor, head)?;
    let shape = match shape {
        Some(shape) if shape.len() != rank => {
            return Err(cursor.wrong(head, cursor.at(), format!("the layout has {rank} axes")));
        }
        Some(shape) => shape.to_vec(),
        None => (0..rank).map(|d| sizes.iter().map(|(_, list)| list[d]).product::<i64>()).collect(),
    };
    if let Some(n) = shape.iter().find(|n| n.count_ones() != 1) {
        return Err(refused(format!("a blocked layout of {n} elements is not linear in digits")));
    }
    let mut done = vec![1i64; rank];
    let mut places: Vec<(String, Vec<Vec<i64>>)> = Vec::new();
    for (place, list) in &sizes {
        let bases = digit_bases(&mut done, &|d, _| list[d], &order, rank, &shape);
        places.push(((*place).to_owned(), bases));
    }
    let more = digit_bases(&mut done, &|d, done| shape[d] / done, &order, rank, &shape);
    places[0].1.extend(more);
    places.push(("block".to_owned(), Vec::new()));
    let mut spec = of_bases(&places, rank)?;
    spec.shape = Some(shape);
    Ok(spec)
}

fn digit_bases(
    done: &mut [i64],
    counts: &dyn Fn(usize, i64) -> i64,
    order: &[usize],
    rank: usize,
    shape: &[i64],
) -> Vec<Vec<i64>> {
    let mut bases = Vec::new();
    for &d in order {
        let mut left = counts(d, done[d]);
        while left > 1 {
            let mut basis = vec![0; rank];
            // What is beyond the shape is there again.
            basis[d] = if done[d] < shape[d] { done[d] } else { 0 };
            bases.push(basis);
            done[d] *= 2;
            left /= 2;
        }
    }
    bases
}

fn swizzled(
    entries: &[Entry],
    cursor: &Cursor<'_>,
    head: usize,
    shape: Option<&[i64]>,
) -> Result<Spec> {
    let [vector, per_phase, phases] =
        ["vec", "perPhase", "maxPhase"].map(|key| number(entries, key, cursor, head));
    let (vector, per_phase, phases) = (vector?, per_phase?, phases?);
    let rank = list(entries, "order", cursor, head)?.len();
    let order = order(entries, rank, cursor, head)?;
    let Some(shape) = shape else {
        let message = "a swizzled layout does not say its shape";
        return Err(cursor.wrong(head, cursor.at(), message).help("give the shape"));
    };
    let [column, row, ..] = order[..] else {
        return Err(cursor.wrong(head, cursor.at(), "a swizzled layout has at least two axes"));
    };
    if shape.len() != rank {
        return Err(cursor.wrong(head, cursor.at(), format!("the layout has {rank} axes")));
    }
    let names = (0..rank).map(|d| format!("dim{d}"));
    let params: Vec<Var> = names.map(|n| Var::new(n, dtype())).collect();
    let mut phase = params[row].expr().floordiv(per_phase).floormod(phases) * vector;
    // Rows that are shorter than all phases begin again.
    if vector.saturating_mul(phases) > shape[column] {
        phase = phase.floormod(shape[column]);
    }
    let mut indices: Vec<Expr> = order.iter().rev().map(|d| params[*d].expr()).collect();
    if phases > 1 {
        indices[rank - 1] = Expr::intrin(Intrin::BitXor, vec![params[column].expr(), phase]);
    }
    let mut spec =
        Spec::new(Notation::Linear, IndexMap { params, indices, separators: Vec::new() });
    spec.shape = Some(shape.to_vec());
    Ok(spec)
}

/// A map on a shape by its bases.
///
/// # Errors
/// `Refused` where the map is not linear in digits, does not fill its box, or extents are no powers of two.
pub(super) fn write(spec: &Spec, shape: &[i64], physical: &[i64]) -> Result<String> {
    if let Some(n) = shape.iter().chain(physical).find(|n| n.count_ones() != 1) {
        return Err(refused(format!(
            "a linear layout has extents that are powers of two, {n} is none"
        )));
    }
    if shape.iter().product::<i64>() < physical.iter().product() {
        return Err(refused("the layout has padding, which a linear layout has not"));
    }
    let map = &spec.map;
    let params: Vec<(Var, u32)> =
        map.params.iter().zip(shape).map(|(p, n)| (p.clone(), n.trailing_zeros())).collect();
    let (names, indices, lengths): (Vec<Arc<str>>, Vec<Expr>, Vec<u32>) = match &spec.places[..] {
        [] => {
            let flat = map.indices.iter().zip(physical);
            let flat =
                flat.map(|(e, n)| (e.clone(), *n)).reduce(|(sum, _), (e, n)| (sum * n + e, n));
            let offset = flat.map_or_else(|| Expr::int(0, dtype()), |(e, _)| e);
            let digits = physical.iter().map(|n| n.trailing_zeros()).sum();
            (vec!["offset".into()], vec![offset], vec![digits])
        }
        places => {
            let lengths = physical.iter().map(|n| n.trailing_zeros()).collect();
            (places.to_vec(), map.indices.clone(), lengths)
        }
    };
    let linear = BitMap::from_indices(&params, &indices).ok_or_else(not_linear)?;
    let cells: Vec<Var> = names.iter().map(|n| Var::new(n.clone(), dtype())).collect();
    let inverse = linear.inverse(&cells).ok_or_else(not_linear)?;
    if !inverse.outside.is_empty() {
        return Err(refused("the layout has padding, which a linear layout has not"));
    }
    let from: Vec<(Var, u32)> = cells.into_iter().zip(lengths.iter().copied()).collect();
    let back = BitMap::from_indices(&from, &inverse.values).ok_or_else(not_linear)?;
    let mut digit = 0;
    let mut parts = Vec::new();
    for (name, length) in names.iter().zip(&lengths) {
        let bases = (digit..digit + length).map(|k| {
            let basis = back.basis(k).ok_or_else(not_linear)?;
            let basis: Vec<String> = basis.iter().map(u64::to_string).collect();
            Ok(format!("[{}]", basis.join(", ")))
        });
        let bases: Vec<String> = bases.collect::<Result<_>>()?;
        parts.push(format!("{name} = [{}]", bases.join(", ")));
        digit += length;
    }
    let kind = if spec.places.is_empty() { "shared_linear" } else { "linear" };
    Ok(format!("#ttg.{kind}<{{{}}}>", parts.join(", ")))
}

fn not_linear() -> tilewright_ir::Error {
    refused("the map is not linear in binary digits")
}
