//! Sizes for the dimensions that a model leaves open; those without one become variables.
//!
//! A size is given to a name, which stands for one extent everywhere, or to one axis of an input
//! (`x.0`). A size for an axis that has a name counts for the name. What was given and does not
//! fit, or fits nothing, is an error: a misspelt key must not go unnoticed.

use std::collections::BTreeMap;
use tilewright_ir::hash::HashSet;

use tilewright_ir::dim::{SizeRange, USUAL_SIZE};
use tilewright_ir::signature::{Dim, ValueType};
use tilewright_ir::{DType, Dim as Size, Error, Result, Var};

use crate::build::identifier;
use crate::extents::MAX_RANK;

/// Where a size came from, and the size.
type Given = (String, usize);

/// The shapes of the inputs, in order. `dims` maps names and `INPUT.AXIS` to sizes, `shapes` maps
/// inputs to whole shapes. What has no size stays open: an `int64` variable of the dimension's name, or
/// of `INPUT_AXIS`, with the range that `ranges` gives, which has the keys of `dims`.
pub(crate) fn resolve(
    inputs: &[ValueType],
    dims: &BTreeMap<String, usize>,
    ranges: &BTreeMap<String, SizeRange>,
    shapes: &BTreeMap<String, Vec<usize>>,
) -> Result<Vec<Vec<Size>>> {
    let mut names: BTreeMap<&str, Given> = BTreeMap::new();
    for name in inputs.iter().flat_map(|v| v.dims.iter().flatten()).filter_map(named) {
        if let Some(&size) = dims.get(name) {
            names.insert(name, (format!("{name}={size}"), size));
        }
    }
    let mut axes: Vec<BTreeMap<usize, Given>> = vec![BTreeMap::new(); inputs.len()];
    for (key, &size) in dims.iter().filter(|(k, _)| !names.contains_key(k.as_str())) {
        let (input, axis) = axis_key(inputs, key).ok_or_else(|| unknown_key(inputs, key))?;
        axes[input].insert(axis, (format!("{key}={size}"), size));
    }
    for (name, shape) in shapes {
        let input = inputs.iter().position(|v| v.name == *name).ok_or_else(|| {
            let known: Vec<&str> = inputs.iter().map(|v| v.name.as_str()).collect();
            Error::input(format!("the model has no input `{name}`"))
                .note(format!("its inputs are: {}", known.join(", ")))
        })?;
        if let Some(dims) = &inputs[input].dims
            && dims.len() != shape.len()
        {
            return Err(Error::input(format!(
                "input `{name}` has {} dimensions, but {shape:?} was given",
                dims.len()
            )));
        }
        for (axis, &size) in shape.iter().enumerate() {
            let given = (format!("the shape {shape:?} of `{name}`"), size);
            if let Some(old) = axes[input].insert(axis, given.clone()) {
                same(&format!("{name}.{axis}"), &old, &given)?;
            }
        }
    }
    for (input, axes) in inputs.iter().zip(&axes) {
        for (axis, given) in axes {
            let Some(dim) = input.dims.as_ref().and_then(|d| d.get(*axis)) else { continue };
            match dim {
                Dim::Fixed(size) if *size != given.1 => {
                    return Err(Error::input(format!(
                        "dimension {axis} of input `{}` is {size} in the model, but {} was given",
                        input.name, given.0
                    )));
                }
                Dim::Named(name) => match names.get(name.as_str()) {
                    Some(old) => same(name, old, given)?,
                    None => drop(names.insert(name, given.clone())),
                },
                Dim::Fixed(_) | Dim::Open => {}
            }
        }
    }
    let mut unranked = Vec::new();
    let ranges = Ranges::new(inputs, ranges)?;
    let mut open = OpenSizes::new(inputs);
    let mut result = Vec::new();
    for (input, axes) in inputs.iter().zip(&axes) {
        let rank = match (&input.dims, shapes.get(&input.name)) {
            (Some(dims), _) => dims.len(),
            (None, Some(shape)) => shape.len(),
            // The axes that were given make up the shape.
            (None, None) => axes.len(),
        };
        let guessed = input.dims.is_none() && !shapes.contains_key(&input.name);
        if guessed && (axes.is_empty() || axes.keys().next_back() != Some(&(rank - 1))) {
            unranked.push(input.name.as_str());
            continue;
        }
        if rank > MAX_RANK {
            return Err(Error::unsupported(format!(
                "input `{}` has {rank} dimensions; at most {MAX_RANK} are supported",
                input.name
            )));
        }
        let mut shape = Vec::with_capacity(rank);
        let given = |axis: usize| {
            let dim = input.dims.as_ref().map_or(&Dim::Open, |d| &d[axis]);
            let size = match dim {
                Dim::Fixed(size) => Some(*size),
                Dim::Named(name) => names.get(name.as_str()).map(|g| g.1),
                Dim::Open => axes.get(&axis).map(|g| g.1),
            };
            (dim, size)
        };
        let open_axes: Vec<usize> = (0..rank).filter(|axis| given(*axis).1.is_none()).collect();
        let names_of_axes: Vec<Option<&str>> = (0..rank).map(|axis| named(given(axis).0)).collect();
        let batch = batch_axis(&open_axes, &names_of_axes);
        let usual = usual_extent(open_axes.iter().filter(|axis| Some(**axis) != batch).count());
        for axis in 0..rank {
            let (dim, size) = given(axis);
            let range = ranges.find(named(dim), &input.name, axis);
            shape.push(match (size, range) {
                (Some(size), Some(range)) if !range.contains(size) => {
                    let what =
                        named(dim).map_or_else(|| format!("{}.{axis}", input.name), str::to_owned);
                    return Err(range.outside(&what, size));
                }
                (Some(size), _) => Size::from(size),
                (None, range) => {
                    let range = range.unwrap_or(SizeRange::ALL);
                    let usual = if batch == Some(axis) { USUAL_BATCH } else { usual };
                    open.size(named(dim), &input.name, axis, (range, usual))
                }
            });
        }
        result.push(shape);
    }
    if unranked.is_empty() { Ok(result) } else { Err(rank_unknown(&unranked)) }
}

/// What dimensions may be.
struct Ranges<'a> {
    names: BTreeMap<&'a str, SizeRange>,
    axes: BTreeMap<(&'a str, usize), SizeRange>,
}

impl<'a> Ranges<'a> {
    fn new(inputs: &'a [ValueType], ranges: &BTreeMap<String, SizeRange>) -> Result<Ranges<'a>> {
        let mut found = Ranges { names: BTreeMap::new(), axes: BTreeMap::new() };
        let dims = inputs.iter().flat_map(|v| v.dims.iter().flatten());
        for (key, &range) in ranges {
            if let Some(name) = dims.clone().filter_map(named).find(|name| name == key) {
                found.names.insert(name, range);
                continue;
            }
            let (input, axis) = axis_key(inputs, key).ok_or_else(|| unknown_key(inputs, key))?;
            let dim = inputs[input].dims.as_ref().and_then(|dims| dims.get(axis));
            match dim.and_then(named) {
                Some(name) => drop(found.names.insert(name, range)),
                None => drop(found.axes.insert((&inputs[input].name, axis), range)),
            }
        }
        Ok(found)
    }

    fn find(&self, name: Option<&str>, input: &str, axis: usize) -> Option<SizeRange> {
        match name {
            Some(name) => self.names.get(name).copied(),
            None => self.axes.get(&(input, axis)).copied(),
        }
    }
}

/// The variables of open dimensions.
struct OpenSizes {
    /// Names that are given out, or stand for a dimension of the model.
    taken: HashSet<String>,
    by_name: BTreeMap<String, Size>,
}

impl OpenSizes {
    fn new(inputs: &[ValueType]) -> Self {
        let names = inputs.iter().flat_map(|v| v.dims.iter().flatten()).filter_map(named);
        // A name that can be a variable's is its own.
        let own = names.filter(|n| identifier(n) == **n);
        OpenSizes { taken: own.map(str::to_owned).collect(), by_name: BTreeMap::new() }
    }

    /// The size of a dimension, which is the same for all dimensions of one name.
    fn size(
        &mut self,
        name: Option<&str>,
        input: &str,
        axis: usize,
        (range, usual): (SizeRange, usize),
    ) -> Size {
        if let Some(size) = name.and_then(|name| self.by_name.get(name)) {
            return *size;
        }
        let base = match name {
            Some(name) => identifier(name),
            None => identifier(&format!("{input}_{axis}")),
        };
        let mut var = base.clone();
        if name != Some(var.as_str()) {
            let mut count = 0;
            while !self.taken.insert(var.clone()) {
                count += 1;
                var = format!("{base}_{count}");
            }
        }
        let size = Size::open(&Var::usually(var.as_str(), DType::I64, range, usual));
        if let Some(name) = name {
            self.by_name.insert(name.to_owned(), size);
        }
        size
    }
}

/// How many examples a batch is taken for in decisions about speed.
const USUAL_BATCH: usize = 2;

/// The fewest axes of an image or a volume with channels, and of a sequence with features.
const OF_IMAGE: usize = 4;
const OF_SEQUENCE: usize = 3;

/// The axis along which examples lie, for decisions about speed: one that is called so, else the first one. Where no
/// other one is open, the examples of a matrix are rows, of which there may be many, and those of a sequence may be its
/// steps.
fn batch_axis(open: &[usize], names: &[Option<&str>]) -> Option<usize> {
    let is_called_so = |axis: &&usize| {
        let name = names[**axis].map(str::to_ascii_lowercase);
        name.is_some_and(|n| ["n", "b", "bs"].contains(&n.as_str()) || n.contains("batch"))
    };
    let first = open.first().filter(|axis| **axis == 0);
    let batch = open.iter().find(is_called_so).or(first);
    let rank = names.len();
    let is_batch = open.len() > 1
        || rank >= OF_IMAGE
        || rank >= OF_SEQUENCE && open.iter().any(|axis| is_called_so(&axis));
    batch.copied().filter(|_| is_batch)
}

/// What an extent is taken for in decisions about speed, where so many of a value are open beside a batch: a
/// volume has about as many cells as an image.
fn usual_extent(open: usize) -> usize {
    let image = (USUAL_SIZE * USUAL_SIZE) as f64;
    if open > 2 { image.powf(1.0 / open as f64) as usize } else { USUAL_SIZE }
}

/// As many names as a message lists.
const LISTED: usize = 16;

/// Names, but not more than a message lists.
fn listed(mut names: Vec<String>) -> String {
    if let Some(more @ 1..) = names.len().checked_sub(LISTED) {
        names.truncate(LISTED);
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

fn rank_unknown(inputs: &[&str]) -> Error {
    let open = inputs
        .iter()
        .map(|input| format!("the rank of `{input}` (`{input}.0`, `{input}.1`, ...)"))
        .collect();
    let flags: Vec<String> =
        inputs.iter().take(LISTED).map(|input| format!("--dim {input}.0=SIZE")).collect();
    Error::input(format!("the model leaves open: {}", listed(open)))
        .help(format!("give each axis a size: {}; or give the inputs", flags.join(" ")))
}

fn named(dim: &Dim) -> Option<&str> {
    match dim {
        Dim::Named(name) => Some(name),
        Dim::Fixed(_) | Dim::Open => None,
    }
}

fn same(what: &str, a: &Given, b: &Given) -> Result<()> {
    if a.1 == b.1 {
        Ok(())
    } else {
        Err(Error::input(format!("two sizes for `{what}`: {} and {}", a.0, b.0)))
    }
}

/// Reads `INPUT.AXIS`.
fn axis_key(inputs: &[ValueType], key: &str) -> Option<(usize, usize)> {
    let (name, axis) = key.rsplit_once('.')?;
    let input = inputs.iter().position(|v| v.name == name)?;
    let axis: usize = axis.parse().ok()?;
    let rank = inputs[input].dims.as_ref().map_or(MAX_RANK, Vec::len);
    (axis < rank).then_some((input, axis))
}

fn unknown_key(inputs: &[ValueType], key: &str) -> Error {
    let mut known = Vec::new();
    let mut seen = HashSet::default();
    for input in inputs {
        for (axis, dim) in input.dims.iter().flatten().enumerate() {
            match dim {
                Dim::Named(name) if seen.insert(name) => known.push(name.clone()),
                Dim::Open => known.push(format!("{}.{axis}", input.name)),
                _ => {}
            }
        }
        if input.dims.is_none() {
            known.push(format!("{}.AXIS", input.name));
        }
    }
    let note = if known.is_empty() {
        "the model leaves no size open".to_owned()
    } else {
        format!("open sizes of the model: {}", listed(known))
    };
    Error::input(format!("no dimension of the model is called `{key}`")).note(note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::DType;
    use tilewright_ir::signature::ValueKind;

    fn input(name: &str, dims: Option<&[Dim]>) -> ValueType {
        ValueType {
            name: name.into(),
            kind: ValueKind::Tensor,
            dtype: Some(DType::F32),
            dims: dims.map(<[Dim]>::to_vec),
        }
    }

    fn n() -> Dim {
        Dim::Named("N".into())
    }

    fn inputs() -> Vec<ValueType> {
        vec![
            input("x", Some(&[n(), Dim::Fixed(3), Dim::Open])),
            input("a.b", Some(&[n()])),
            input("free", None),
        ]
    }

    fn check(dims: &[(&str, usize)], shapes: &[(&str, &[usize])]) -> String {
        let dims = dims.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
        let shapes = shapes.iter().map(|(k, v)| ((*k).to_owned(), v.to_vec())).collect();
        match resolve(&inputs(), &dims, &BTreeMap::new(), &shapes) {
            Ok(shapes) => format!("{shapes:?}"),
            Err(e) => e.render(),
        }
    }

    #[test]
    fn names_axes_and_shapes_give_sizes() {
        let all = "[[2, 3, 5], [2], [7, 8]]";
        let free: (&str, &[usize]) = ("free", &[7, 8]);
        assert_eq!(check(&[("N", 2), ("x.2", 5), ("free.0", 7), ("free.1", 8)], &[]), all);
        assert_eq!(check(&[("x.0", 2), ("x.1", 3), ("x.2", 5)], &[free]), all);
        assert_eq!(check(&[("a.b.0", 2), ("x.2", 5)], &[free]), all);
        assert_eq!(check(&[("N", 2), ("a.b.0", 2)], &[free, ("x", &[2, 3, 5])]), all);
        assert_eq!(check(&[("x.2", 0), ("N", 0)], &[("free", &[])]), "[[0, 3, 0], [0], []]");
    }

    #[test]
    fn a_rank_must_be_known() {
        assert_eq!(
            check(&[], &[]),
            "error: the model leaves open: the rank of `free` (`free.0`, `free.1`, ...)\n\
             help: give each axis a size: --dim free.0=SIZE; or give the inputs\n"
        );
        let message = check(&[("N", 1), ("x.2", 1), ("free.1", 1)], &[]);
        assert!(message.contains("the rank of `free`"), "{message}");
    }

    #[test]
    fn sizes_that_are_not_given_are_variables() {
        let free: (&str, &[usize]) = ("free", &[7]);
        assert_eq!(check(&[], &[free]), "[[N, 3, x_2], [N], [7]]");
        assert_eq!(check(&[("x.2", 4)], &[free]), "[[N, 3, 4], [N], [7]]");
        let named = |name: &str| Dim::Named(name.into());
        let inputs = [
            input("x", Some(&[named("batch size"), Dim::Open])),
            input("y", Some(&[named("batch size"), named("x_1"), named("batch_size")])),
        ];
        let shapes = resolve(&inputs, &BTreeMap::new(), &BTreeMap::new(), &BTreeMap::new())
            .expect("open sizes");
        assert_eq!(
            format!("{shapes:?}"),
            "[[batch_size_1, x_1_1], [batch_size_1, x_1, batch_size]]"
        );
        assert_eq!(shapes[0][0], shapes[1][0]);
        assert_ne!(shapes[0][1], shapes[1][1]);
    }

    #[test]
    fn volumes_are_taken_to_have_as_many_cells_as_images() {
        let open = |rank: usize| vec![Dim::Open; rank];
        let [mut image, mut volume] = [open(4), open(5)];
        (image[1], volume[1]) = (Dim::Fixed(3), Dim::Fixed(3));
        let inputs = [input("image", Some(&image)), input("volume", Some(&volume))];
        let none = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let shapes = resolve(&inputs, &none.0, &none.1, &none.2).expect("open sizes");
        let usual: Vec<Vec<i64>> =
            shapes.iter().map(|s| s.iter().map(|d| d.estimate()).collect()).collect();
        assert_eq!(usual, [vec![2, 3, 240, 240], vec![2, 3, 38, 38, 38]]);
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        for (dims, shapes, expected) in [
            (
                &[("M", 2)][..],
                &[][..],
                "error: no dimension of the model is called `M`\n\
                 note: open sizes of the model: N, x.2, free.AXIS\n",
            ),
            (
                &[("x.3", 2)],
                &[],
                "error: no dimension of the model is called `x.3`\n\
                 note: open sizes of the model: N, x.2, free.AXIS\n",
            ),
            (
                &[("x.1", 4)],
                &[],
                "error: dimension 1 of input `x` is 3 in the model, but x.1=4 was given\n",
            ),
            (&[("N", 2), ("x.0", 3)], &[], "error: two sizes for `N`: N=2 and x.0=3\n"),
            (&[("a.b.0", 2), ("x.0", 3)], &[], "error: two sizes for `N`: x.0=3 and a.b.0=2\n"),
            (
                &[("x.2", 4)],
                &[("x", &[1, 3, 5][..])],
                "error: two sizes for `x.2`: x.2=4 and the shape [1, 3, 5] of `x`\n",
            ),
            (&[], &[("x", &[1, 3])], "error: input `x` has 3 dimensions, but [1, 3] was given\n"),
            (
                &[],
                &[("y", &[1])],
                "error: the model has no input `y`\nnote: its inputs are: x, a.b, free\n",
            ),
            (
                &[("N", 1), ("x.2", 1)],
                &[("free", &[1; 40])],
                "error: input `free` has 40 dimensions; at most 32 are supported\n",
            ),
        ] {
            assert_eq!(check(dims, shapes), expected);
        }
    }
}
