//! `tilewright layout`: what a layout does to memory, in anybody's notation.

use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

use tilewright_driver::Error;
use tilewright_ir::{DType, Expr, Var};
use tilewright_layout::PhysicalLayout;
use tilewright_layout::notation::equal::{Equality, equal, place};
use tilewright_layout::notation::facts::{Banks, collision, conflict, padding, vector};
use tilewright_layout::notation::points::Grid;
use tilewright_layout::notation::{Notation, Spec, read, text_of, write};
use tilewright_report::{Cells, layout_page};
use tilewright_runtime::file;

use super::answer::{Answer, Outcome, talk};

/// Read a layout in anybody's notation, say what it does to memory, translate it, or compare it with
/// another one: exit code 0 if they are equal, 1 and an element where they differ if not, 3 if that cannot
/// be said.
///
/// A layout is a lambda (`lambda i, j: [i // 4, j, i % 4]`), a layout of CuTe
/// (`(4,(2,8)):(1,(4,8))`, `Sw<3,3,3> o 0 o (8,64):(64,1)`), a linear layout of Triton
/// (`#ttg.linear<{...}>`), the attributes of `linalg.pack` (`inner_dims_pos = [1] inner_tiles = [16] ...`),
/// a tag of oneDNN (`aBcd16b`) or a layout of TVM (`NCHW16c`). CuTe and Triton say the shape, too; the others
/// need `--shape` for what depends on it.
///
/// What is said: the index map, the cells that are padding, the inverse, the longest vector access along
/// each axis, the worst bank conflict of a warp along each axis, and a drawing of the cells.
#[derive(clap::Args)]
pub struct Arguments {
    /// The layout.
    #[arg(value_name = "LAYOUT")]
    spec: String,
    /// The notation of the layout, where its text does not tell it: lambda, cute, triton, linalg, onednn
    /// or tvm.
    #[arg(long, value_name = "NOTATION", value_parser = notation)]
    from: Option<Notation>,
    /// Print the layout in this notation, and nothing else.
    #[arg(long = "as", value_name = "NOTATION", value_parser = notation, conflicts_with = "equal")]
    to: Option<Notation>,
    /// Compare with this layout.
    #[arg(long, value_name = "LAYOUT")]
    equal: Option<String>,
    /// The logical extents: `1,64,56,56`. A name is an extent that is open.
    #[arg(long, value_name = "N,M,...", value_parser = shape)]
    shape: Option<Shape>,
    /// Bytes of an element.
    #[arg(long, value_name = "BYTES", default_value_t = 4, value_parser = clap::value_parser!(i64).range(1..=64))]
    element: i64,
    /// Lanes that access memory together: neighbours along an axis; where it ends, they go on at its start,
    /// one step along the last of the other axes.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(i64).range(1..=1024))]
    lanes: i64,
    /// Banks of memory, each of words of four bytes.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(i64).range(1..=1024))]
    banks: i64,
    /// Write a page with the cells in colours.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["to", "equal"])]
    html: Option<PathBuf>,
}

/// Extents, of which some may be open.
#[derive(Clone, Debug)]
struct Shape(Vec<Extent>);

#[derive(Clone, Debug)]
enum Extent {
    Number(i64),
    Name(String),
}

fn notation(text: &str) -> Result<Notation, String> {
    let names = || Notation::ALL.map(Notation::name).join(", ");
    Notation::of_name(text).ok_or_else(|| format!("expected one of {}", names()))
}

fn shape(text: &str) -> Result<Shape, String> {
    text.split(',')
        .map(|part| match part.trim() {
            "" => Err("expected extents such as `1,64,56,56`".to_owned()),
            part if part.starts_with(|c: char| c.is_ascii_digit()) => match part.parse() {
                Ok(n @ 1..=0xff_ffff_ffff) => Ok(Extent::Number(n)),
                _ => Err(format!("`{part}` is no extent")),
            },
            name if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') => {
                Ok(Extent::Name(name.to_owned()))
            }
            part => Err(format!("`{part}` is no extent")),
        })
        .collect::<Result<_, _>>()
        .map(Shape)
}

impl Shape {
    /// The extents, where none is open.
    fn known(&self) -> Option<Vec<i64>> {
        self.0
            .iter()
            .map(|e| match e {
                Extent::Number(n) => Some(*n),
                Extent::Name(_) => None,
            })
            .collect()
    }

    /// The extents as expressions; the same name is the same size.
    fn exprs(&self) -> Vec<Expr> {
        let mut open: Vec<Var> = Vec::new();
        self.0
            .iter()
            .map(|e| match e {
                Extent::Number(n) => Expr::int(*n, DType::I64),
                Extent::Name(name) => match open.iter().find(|v| **v.name() == **name) {
                    Some(v) => v.expr(),
                    None => {
                        let v = Var::new(name.as_str(), DType::I64);
                        open.push(v.clone());
                        v.expr()
                    }
                },
            })
            .collect()
    }
}

pub fn execute(arguments: &Arguments, out: &mut impl Write) -> Outcome {
    let known = arguments.shape.as_ref().and_then(Shape::known).unwrap_or_default();
    let spec = read(&arguments.spec, arguments.from, &known)?;
    if let Some(other) = &arguments.equal {
        return compare(&spec, &read(other, None, &known)?, out);
    }
    if let Some(to) = arguments.to {
        writeln!(out, "{}", write(&spec, to, None)?)?;
        return Ok(Answer::Yes);
    }
    let described = describe(&spec, arguments)?;
    for (name, fact) in &described.facts {
        writeln!(out, "{name:9} {fact}")?;
    }
    for cells in &described.tables {
        writeln!(out, "\n{}", drawing(cells))?;
    }
    if let Some(path) = &arguments.html {
        let page = layout_page(&arguments.spec, &described.facts, &described.tables);
        file::write(path, page.as_bytes())?;
    }
    Ok(Answer::Yes)
}

fn compare(a: &Spec, b: &Spec, out: &mut impl Write) -> Outcome {
    match equal(a, b)? {
        Equality::Equal(shape) => {
            match shape {
                Some(shape) => talk!("equal at every element of {}", tuple(&shape)),
                None => talk!("equal for every shape"),
            }
            Ok(Answer::Yes)
        }
        Equality::Differ { shape, at, addresses: [x, y] } => {
            let (at, shape) = (tuple(&at), tuple(&shape));
            writeln!(out, "element {at} of {shape} lies at {x} and at {y}")?;
            Ok(Answer::No)
        }
        Equality::Undecided(why) => {
            writeln!(out, "undecided: {why}")?;
            Ok(Answer::Undecided)
        }
    }
}

/// What is said of a layout.
struct Described {
    facts: Vec<(String, String)>,
    tables: Vec<Cells>,
}

fn describe(spec: &Spec, arguments: &Arguments) -> Result<Described, Error> {
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut fact = |name: &str, text: String| facts.push((name.to_owned(), text));
    fact("notation", spec.notation.name().to_owned());
    fact("map", spec.text());
    if !spec.places.is_empty() {
        fact("places", spec.places.join(", "));
    }
    let extents: Option<Vec<Expr>> = match (&arguments.shape, &spec.shape) {
        (Some(shape), _) => Some(shape.exprs()),
        (None, Some(shape)) => Some(exprs(shape)),
        (None, None) => None,
    };
    let Some(extents) = extents else {
        fact("shape", "any; --shape says more".to_owned());
        return Ok(Described { facts, tables: Vec::new() });
    };
    if extents.len() != spec.map.params.len() {
        let (n, m) = (spec.map.params.len(), extents.len());
        return Err(Error::input(format!("the layout has {n} axes, and the shape {m}")));
    }
    let grid = match &spec.shape {
        Some(shape) => Some(Grid::new(spec, shape)?),
        None => None,
    };
    // An axis that is shorter than its tile is padded to a whole one.
    let whole: Vec<Expr> = match &spec.shape {
        Some(shape) => exprs(&spec.with_whole_tiles(shape)),
        None => extents.clone(),
    };
    let shared = grid.as_ref().and_then(collision);
    let mut refused = None;
    let layout = match shared {
        // Elements that share an address have no inverse.
        Some(_) => None,
        None => match (spec.map.on(&whole, false), &grid) {
            (Ok(layout), _) => Some(layout),
            // What can be counted point by point is said without the sets.
            (Err(why), Some(_)) => {
                refused = Some(why);
                None
            }
            (Err(why), None) => return Err(why),
        },
    };
    let physical = match (&layout, &grid) {
        (Some(layout), _) => tuple_text(&layout.physical),
        (None, Some(grid)) => tuple(grid.physical()),
        (None, None) => String::new(),
    };
    fact("shape", format!("{} -> {physical}", tuple_text(&extents)));
    let known = layout.as_ref().map(|l| (l, l.known.as_ref()));
    let count = grid.as_ref().map(|g| (padding(g), g.cells()));
    let holes = match (&known, count) {
        (_, Some((0, _))) => "none".to_owned(),
        (Some((_, Ok(known))), Some((n, all))) => {
            let beyond = extents.iter().zip(&whole).zip(&known.inverse);
            let beyond = beyond.filter(|((n, whole), _)| n.as_int() != whole.as_int());
            let beyond = beyond.map(|((n, _), index)| index.clone().greater_equal(n.clone()));
            let holes = beyond.fold(known.padding.clone(), |all, more| match all.is_false() {
                true => more,
                false => all.or(more),
            });
            format!("{n} of {all} cells, where {}", text_of(&holes))
        }
        (Some((_, Ok(known))), None) if known.padding.is_false() => "none".to_owned(),
        (Some((_, Ok(known))), None) => format!("where {}", text_of(&known.padding)),
        (Some((_, Err(_))) | None, Some((n, all))) => format!("{n} of {all} cells"),
        (Some((_, Err(why))), None) => format!("unknown: {why}"),
        (None, None) => "unknown".to_owned(),
    };
    fact("padding", holes);
    let inverse = match (known, &shared) {
        (Some((layout, Ok(known))), _) => {
            let cells: Vec<&str> = layout.cells.iter().map(|c| &**c.name()).collect();
            format!("lambda {}: {}", cells.join(", "), tuple_text(&known.inverse))
        }
        (Some((_, Err(why))), _) => format!("unknown: {why}"),
        (None, Some([a, b])) => {
            format!("none: {} and {} have one address", tuple(a), tuple(b))
        }
        (None, None) => refused.map_or("unknown".to_owned(), |why| format!("unknown: {why}")),
    };
    fact("inverse", inverse);
    let mut tables = Vec::new();
    if let Some(grid) = &grid {
        if spec.places.is_empty() {
            let banks = Banks {
                lanes: arguments.lanes,
                banks: arguments.banks,
                word: 4,
                element: arguments.element,
            };
            accesses(spec, grid, banks, &mut fact);
        }
        tables.push(logical(spec, grid));
        if spec.places.is_empty() && layout.is_some_and(|l: PhysicalLayout| l.physical.len() > 1) {
            tables.push(memory(grid));
        }
    }
    Ok(Described { facts, tables })
}

fn exprs(shape: &[i64]) -> Vec<Expr> {
    shape.iter().map(|n| Expr::int(*n, DType::I64)).collect()
}

fn tuple_text(all: &[Expr]) -> String {
    let all: Vec<String> = all.iter().map(text_of).collect();
    format!("({}{})", all.join(", "), if all.len() == 1 { "," } else { "" })
}

/// Vector accesses and bank conflicts along each axis.
fn accesses(spec: &Spec, grid: &Grid, banks: Banks, fact: &mut impl FnMut(&str, String)) {
    for (axis, p) in spec.map.params.iter().enumerate() {
        fact(
            "vector",
            match vector(grid, axis) {
                1 => format!("along {p}: single elements"),
                n => format!("along {p}: {n} elements, aligned"),
            },
        );
    }
    for (axis, p) in spec.map.params.iter().enumerate() {
        let found = conflict(grid, axis, banks);
        let mut text = format!("along {p}: degree {}", found.degree);
        if let (Some([a, b]), Some([x, y])) = (found.lanes, &found.elements) {
            let _ = write!(text, ", lanes {a} and {b} at {} and {}", tuple(x), tuple(y));
        }
        fact("banks", text);
    }
}

/// Most rows and columns of a drawing.
const ROWS: i64 = 32;
const COLUMNS: i64 = 32;

/// The addresses by logical index: the last two axes, where the others are zero.
fn logical(spec: &Spec, grid: &Grid) -> Cells {
    let shape = grid.shape();
    let rank = shape.len();
    let (rows, columns) =
        (extent_from_end(1, rank, shape).min(ROWS), extent_from_end(0, rank, shape).min(COLUMNS));
    let mut at = vec![0; rank];
    let mut all = Vec::new();
    let row_size = grid.physical().last().copied().unwrap_or(1).max(1);
    for i in 0..rows {
        let mut row = Vec::new();
        for j in 0..columns {
            if rank > 1 {
                at[rank - 2] = i;
            }
            if rank > 0 {
                at[rank - 1] = j;
            }
            let offset = grid.offset(&at);
            let text = short(&place(spec, grid.physical(), offset));
            // Colours by rows of memory, or by its groups of eight.
            let group = if grid.physical().len() > 1 { row_size } else { 8 };
            row.push(Some((text, (offset / group) as usize)));
        }
        all.push(row);
    }
    let names: Vec<&str> = spec.map.params.iter().map(|p| &**p.name()).collect();
    let part = if rows < extent_from_end(1, rank, shape)
        || columns < extent_from_end(0, rank, shape)
        || rank > 2
    {
        "a corner of "
    } else {
        ""
    };
    let what = if spec.places.is_empty() { "addresses" } else { "places" };
    Cells {
        title: format!("{what} by ({}): {part}the elements", names.join(", ")),
        names: [numbers(rows), numbers(columns)],
        rows: all,
    }
}

fn extent_from_end(k: usize, rank: usize, shape: &[i64]) -> i64 {
    if rank > k { shape[rank - 1 - k] } else { 1 }
}

/// `register 1, lane 3` as `r1 l3`.
fn short(place: &str) -> String {
    place
        .split(',')
        .map(|p| match p.trim().split_once(' ') {
            Some((name, n)) => format!("{}{n}", name.chars().next().unwrap_or(' ')),
            None => p.to_owned(),
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// The elements by address, in rows of the last physical axis.
fn memory(grid: &Grid) -> Cells {
    let contents = grid.contents();
    let width = grid.physical().last().copied().unwrap_or(1).max(1);
    let rows = (grid.cells() / width).min(ROWS);
    let columns = width.min(COLUMNS);
    let part = if rows * width < grid.cells() || columns < width { "the start of " } else { "" };
    Cells {
        title: format!("elements by address: {part}memory, {width} cells a row"),
        names: [(0..rows).map(|r| (r * width).to_string()).collect(), numbers(columns)],
        rows: (0..rows)
            .map(|r| (0..columns).map(|c| cell_at(r, c, &contents, width, grid)).collect())
            .collect(),
    }
}

fn cell_at(
    row: i64,
    column: i64,
    contents: &[Option<usize>],
    width: i64,
    grid: &Grid,
) -> Option<(String, usize)> {
    let number = contents.get((row * width + column) as usize).copied().flatten()?;
    let at = grid.point(number);
    let text: Vec<String> = at.iter().map(i64::to_string).collect();
    Some((text.join(","), at.last().copied().unwrap_or(0) as usize))
}

fn numbers(n: i64) -> Vec<String> {
    (0..n).map(|k| k.to_string()).collect()
}

/// A table as text.
fn drawing(cells: &Cells) -> String {
    let rows: Vec<Vec<String>> = cells
        .rows
        .iter()
        .map(|row| {
            row.iter().map(|c| c.as_ref().map_or("·".to_owned(), |(t, _)| t.clone())).collect()
        })
        .collect();
    let width = longest(rows.iter().flatten().chain(&cells.names[1]));
    let head = longest(cells.names[0].iter());
    let mut text = format!("{}\n{:head$} |", cells.title, "");
    cells.names[1].iter().for_each(|name| text += &format!(" {name:>width$}"));
    for (name, row) in cells.names[0].iter().zip(&rows) {
        let _ = write!(text, "\n{name:>head$} |");
        row.iter().for_each(|cell| text += &format!(" {cell:>width$}"));
    }
    text
}

fn longest<'t>(texts: impl Iterator<Item = &'t String>) -> usize {
    texts.map(|t| t.chars().count()).max().unwrap_or(0)
}

fn tuple(numbers: &[i64]) -> String {
    let all: Vec<String> = numbers.iter().map(i64::to_string).collect();
    format!("({}{})", all.join(", "), if all.len() == 1 { "," } else { "" })
}
