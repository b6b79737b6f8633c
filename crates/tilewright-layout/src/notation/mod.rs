//! Layouts in the notations of others: each is read to an [`IndexMap`], and written from one.
//!
//! | notation | example |
//! |---|---|
//! | [`Notation::Script`] | `lambda i, j: [i // 4, j, i % 4]` |
//! | [`Notation::Cute`] | `(4,(2,8)):(1,(4,8))`, `Sw<3,3,3> o 0 o (8,64):(64,1)` |
//! | [`Notation::Linear`] | `#ttg.linear<{register = [[0, 1]], lane = [[0, 2], [1, 0]], warp = [], block = []}>` |
//! | [`Notation::Linalg`] | `inner_dims_pos = [1] inner_tiles = [16] outer_dims_perm = [0, 1, 2, 3]` |
//! | [`Notation::OneDnn`] | `aBcd16b`, `OIhw4i16o4i` |
//! | [`Notation::Tvm`] | `NCHW16c`, `OIHW[4o4i]`, `NCHW->NHWC` |
//!
//! CuTe and Triton say the shape with the layout; the others are for any shape. `tiles` is what the last three
//! have in common. [`points`] and [`facts`] say of a layout on a constant shape what it does to memory:
//! offsets, vector accesses, bank conflicts, and where two layouts differ.
//!
//! ```
//! use tilewright_layout::notation::{Notation, read, write};
//! let spec = read("nChw16c", None, &[])?;
//! assert_eq!(spec.text(), "lambda n, c, h, w: [n, c // 16, h, w, c % 16]");
//! assert_eq!(write(&spec, Notation::Tvm, None)?, "NCHW16c");
//! assert_eq!(write(&spec, Notation::Linalg, None)?, "outer_dims_perm = [0, 1, 2, 3] inner_dims_pos = [1] inner_tiles = [16]");
//! assert_eq!(write(&spec, Notation::Cute, Some(&[2, 32, 5, 5]))?, "(2,(16,2),5,5):(800,(1,400),80,16)");
//! # Ok::<(), tilewright_ir::Error>(())
//! ```

mod cute;
pub mod equal;
pub mod facts;
mod linalg;
mod linear;
mod onednn;
pub mod points;
mod script;
mod text;
mod tiles;
mod tvm;

use std::sync::Arc;

use tilewright_ir::text::{Hints, expr_to_string};
use tilewright_ir::{DType, Error, Expr, Result, Source};

use crate::index_map::IndexMap;
use points::Grid;

/// A way to write layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Notation {
    /// An index map as a lambda of TVMScript.
    Script,
    /// Nested shapes and strides of CuTe, with swizzles.
    Cute,
    /// Bases of Triton's linear layouts.
    Linear,
    /// `linalg.pack` of MLIR.
    Linalg,
    /// Memory tags of oneDNN.
    OneDnn,
    /// Layouts of TVM.
    Tvm,
}

impl Notation {
    pub const ALL: [Notation; 6] = [
        Notation::Script,
        Notation::Cute,
        Notation::Linear,
        Notation::Linalg,
        Notation::OneDnn,
        Notation::Tvm,
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Notation::Script => "lambda",
            Notation::Cute => "cute",
            Notation::Linear => "triton",
            Notation::Linalg => "linalg",
            Notation::OneDnn => "onednn",
            Notation::Tvm => "tvm",
        }
    }

    pub fn of_name(name: &str) -> Option<Notation> {
        Notation::ALL.into_iter().find(|n| n.name() == name)
    }

    /// The notation that a text is in, by its first characters.
    fn of_text(text: &str) -> Notation {
        let text = text.trim();
        let of_linalg = ["inner_dims_pos", "innerDimsPos", "linalg.pack", "tensor.pack"];
        if text.starts_with("lambda") {
            return Notation::Script;
        }
        if contains_any(&of_linalg, text)
            || contains_any(&["outer_dims_perm", "outerDimsPerm"], text)
        {
            return Notation::Linalg;
        }
        if text.starts_with(['#', '{']) {
            return Notation::Linear;
        }
        if !text.contains("->")
            && (contains_any(&[":", "(", "<"], text) || text.starts_with(['_', '(']))
        {
            return Notation::Cute;
        }
        let outer = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
        let upper = text[..outer].chars().all(|c| c.is_ascii_uppercase());
        if upper && !is_upper_tag(&text[..outer], &text[outer..]) {
            Notation::Tvm
        } else {
            Notation::OneDnn
        }
    }
}

/// Whether a text whose outer axes are all in upper case is a tag of oneDNN: two tiles of an axis, or axes that are counted
/// from `A` on, each in tiles, in another order. TVM names axes by what they are, and has one tile an axis.
fn is_upper_tag(outer: &str, inner: &str) -> bool {
    let tiles: Vec<char> = inner.chars().filter(char::is_ascii_lowercase).collect();
    let twice = (1..tiles.len()).any(|k| tiles[..k].contains(&tiles[k]));
    let sorted = |letters: &mut dyn Iterator<Item = char>| {
        let mut letters: Vec<char> = letters.map(|c| c.to_ascii_lowercase()).collect();
        letters.sort_unstable();
        letters
    };
    let axes = sorted(&mut outer.chars());
    let counted = axes.iter().copied().eq(('a'..='l').take(axes.len()));
    let moved = !outer.chars().is_sorted();
    let plain = inner.chars().all(|c| c.is_ascii_alphanumeric());
    plain && (twice || (counted && moved && sorted(&mut tiles.iter().copied()) == axes))
}

fn contains_any(words: &[&str], text: &str) -> bool {
    words.iter().any(|w| text.contains(w))
}

/// A layout as a text says it.
#[derive(Clone, Debug)]
pub struct Spec {
    /// From logical indices to physical ones, all of them `int64`.
    pub map: IndexMap,
    /// The logical extents, where the notation or the caller says them.
    pub shape: Option<Vec<i64>>,
    /// What the physical indices are, where they are no addresses: `register`, `lane`, `warp`, `block`.
    pub places: Vec<Arc<str>>,
    /// The notation that it was read from.
    pub notation: Notation,
    /// How many elements along each axis a tile has, in the notations that have only whole tiles; else 1.
    tiles: Vec<i64>,
}

impl Spec {
    fn new(notation: Notation, map: IndexMap) -> Spec {
        let tiles = match notation {
            Notation::Linalg | Notation::OneDnn | Notation::Tvm => tiles::extents(&map),
            Notation::Script | Notation::Cute | Notation::Linear => vec![1; map.params.len()],
        };
        Spec { map, shape: None, places: Vec::new(), notation, tiles }
    }

    /// Extents in which each axis has a whole tile at least: with fewer elements, `NCHW16c` has 16 cells for the
    /// channels, too, while an index map has as many as it uses.
    pub fn with_whole_tiles(&self, shape: &[i64]) -> Vec<i64> {
        shape.iter().zip(&self.tiles).map(|(n, tile)| *n.max(tile)).collect()
    }

    /// The index map as a lambda.
    pub fn text(&self) -> String {
        let names: Vec<&str> = self.map.params.iter().map(|p| &**p.name()).collect();
        let items: Vec<String> = self.map.indices.iter().map(text_of).collect();
        format!("lambda {}: [{}]", names.join(", "), items.join(", "))
    }
}

/// Reads a layout. `from` is the notation, where the text does not tell it; `shape` are logical
/// extents, empty where they are not given.
///
/// # Errors
/// `Syntax` with the place, where the text is no layout of its notation; `Input` where the shape that the text
/// says is another one than that which is given.
pub fn read(text: &str, from: Option<Notation>, shape: &[i64]) -> Result<Spec> {
    /// Longest text of a layout, in bytes.
    const LONGEST: usize = 1 << 16;
    let source = Source::new("<layout>", text);
    if text.len() > LONGEST {
        return Err(Error::input(format!("a layout has at most {LONGEST} bytes")));
    }
    let given = (!shape.is_empty()).then_some(shape);
    let mut spec = match from.unwrap_or_else(|| Notation::of_text(text)) {
        Notation::Script => script::read(&source, given.map(<[i64]>::len)),
        Notation::Cute => cute::read(&source),
        Notation::Linear => linear::read(&source, given),
        Notation::Linalg => linalg::read(&source, given.map(<[i64]>::len)),
        Notation::OneDnn => onednn::read(&source),
        Notation::Tvm => tvm::read(&source),
    }?;
    let Some(given) = given else { return Ok(spec) };
    if given.len() != spec.map.params.len() {
        let (n, m) = (spec.map.params.len(), given.len());
        return Err(Error::input(format!("the layout has {n} axes, and the shape {m}")));
    }
    match &spec.shape {
        Some(own) if own != given => {
            Err(Error::input(format!("the layout is one of the shape {own:?}, not {given:?}")))
        }
        _ => {
            spec.shape = Some(given.to_vec());
            Ok(spec)
        }
    }
}

/// Writes a layout in a notation. Those that say the shape need one, which is that of the layout
/// where no other is given.
///
/// # Errors
/// `Refused` with what the notation cannot say.
pub fn write(spec: &Spec, notation: Notation, shape: Option<&[i64]>) -> Result<String> {
    let shape = shape
        .or(spec.shape.as_deref())
        .ok_or_else(|| Error::input(format!("{} says the shape, too: give one", notation.name())));
    match notation {
        Notation::Script => Ok(spec.text()),
        Notation::Cute => check_addresses(spec).and_then(|()| cute::write(spec, shape?)),
        Notation::Linear => {
            let shape = shape?;
            let grid = Grid::new(spec, shape)?;
            linear::write(spec, shape, grid.physical())
        }
        Notation::Linalg => check_addresses(spec).and_then(|()| linalg::write(&spec.map)),
        Notation::OneDnn => check_addresses(spec).and_then(|()| onednn::write(&spec.map)),
        Notation::Tvm => check_addresses(spec).and_then(|()| tvm::write(&spec.map)),
    }
    .map_err(|e| e.context(format!("this is no layout of {}", notation.name())))
}

fn check_addresses(spec: &Spec) -> Result<()> {
    match &spec.places[..] {
        [] => Ok(()),
        places => Err(refused(format!("{} are no addresses", places.join(", ")))),
    }
}

/// The type of all indices.
fn dtype() -> DType {
    DType::I64
}

/// An index as text, in which numbers are plain.
pub fn text_of(e: &Expr) -> String {
    expr_to_string(e, &mut Hints(dtype()))
}

fn refused(why: impl Into<String>) -> Error {
    Error::refused(why)
}
