//! Sizes for the dimensions that a model leaves open; those without one become variables.
//!
//! A size is given to a name, which stands for one extent everywhere, or to one axis of an input
//! (`x.0`). A size for an axis that has a name counts for the name. What was given and does not
//! fit, or fits nothing, is an error: a misspelt key must not go unnoticed.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use tilewright_ir::dim::SizeRange;
use tilewright_ir::{DType, Dim as Size, Error, Result, Var};

use crate::build::{Builder, identifier};
use crate::extents::MAX_RANK;
use crate::imported::Imported;
use crate::model::{Dim, ValueType};
use crate::sizes;

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
        for axis in 0..rank {
            let dim = input.dims.as_ref().map_or(&Dim::Open, |d| &d[axis]);
            let size = match dim {
                Dim::Fixed(size) => Some(*size),
                Dim::Named(name) => names.get(name.as_str()).map(|g| g.1),
                Dim::Open => axes.get(&axis).map(|g| g.1),
            };
            let range = ranges.of(named(dim), &input.name, axis);
            shape.push(match (size, range) {
                (Some(size), Some(range)) if !range.contains(size) => {
                    let axis = || format!("{}.{axis}", input.name);
                    let what = named(dim).map_or_else(axis, str::to_owned);
                    return Err(range.outside(&what, size));
                }
                (Some(size), _) => Size::from(size),
                (None, range) => {
                    let range = range.unwrap_or(SizeRange::ALL);
                    open.size(named(dim), &input.name, axis, range)
                }
            });
        }
        result.push(shape);
    }
    if unranked.is_empty() { Ok(result) } else { Err(rank_unknown(&unranked)) }
}

/// The largest number of which a size is taken to be a multiple.
const MOST_MULTIPLE: usize = 256;

/// Open sizes that others take the place of, since operators need them to be equal.
#[derive(Default)]
pub(crate) struct Equalities {
    /// Variables by their names, each with what is in its place, in variables of an earlier import.
    found: Vec<(Arc<str>, Size)>,
    /// The open sizes of the inputs.
    known: BTreeMap<Arc<str>, Var>,
    /// Open sizes, by their names, that are multiples of numbers.
    multiples: BTreeMap<Arc<str>, usize>,
    /// In this import, how often the number goes into each of these.
    parts: BTreeMap<Arc<str>, Size>,
}

impl Equalities {
    /// Takes note that two sizes are equal; false where none of them follows from the other, or where
    /// a range is stated for the one that would go.
    pub fn take(&mut self, a: Size, b: Size) -> bool {
        let free = |v: &Var| self.is_open(v) && v.range() == SizeRange::ALL;
        let solved = [(b, a), (a, b)].into_iter().find_map(|(of, with)| {
            of.vars().into_iter().filter(free).find_map(|v| {
                // `v * factor == with`
                let factor = of.floordiv(Size::open(&v));
                let exact = factor * Size::open(&v) == of && with.modulo(factor) == 0;
                let value = with.floordiv(factor);
                let vars = value.vars();
                let fits = exact
                    && !vars.contains(&v)
                    && vars.iter().all(|v| self.is_open(v))
                    && value != 0;
                fits.then(|| (v.name().clone(), value))
            })
        });
        self.found.extend(solved.clone());
        solved.is_some() || self.take_multiple(a, b)
    }

    /// Whether a variable is an open size of an input.
    fn is_open(&self, v: &Var) -> bool {
        self.known.get(v.name()).is_some_and(|k| k == v)
    }

    /// Takes note of the least number of which a size must be a multiple so that two sizes are equal, as
    /// where an image is halved, rounded up, and doubled again.
    fn take_multiple(&mut self, a: Size, b: Size) -> bool {
        let whole = |v: &Var| {
            let part = || self.parts.iter().find(|(_, part)| **part == Size::open(v));
            let of = if self.is_open(v) { Some(v.name()) } else { part().map(|(name, _)| name) };
            of.filter(|_| v.range() == SizeRange::ALL).cloned()
        };
        let found = a.vars().into_iter().chain(b.vars()).find_map(|v| {
            let name = whole(&v)?;
            let before = self.multiples.get(&name).copied().unwrap_or(1);
            let n = (2..=MOST_MULTIPLE / before).find(|n| {
                let of = |size: Size| {
                    size.substitute(&|w| (*w == v).then(|| Size::open(&v) * Size::from(*n)))
                };
                of(a) == of(b)
            })?;
            Some((name, before * n))
        });
        self.multiples.extend(found.clone());
        found.is_some()
    }

    /// An input whose sizes are written as the multiples that they must be, which a run checks.
    ///
    /// # Errors
    /// Those of making open sizes data.
    pub fn divided(&mut self, b: &mut Builder, input: Imported) -> Result<Imported> {
        let shape = input.shape();
        for v in shape.iter().flat_map(|d| d.vars()) {
            let Some(n) = self.multiples.get(v.name()) else { continue };
            if !self.parts.contains_key(v.name()) {
                b.hint = format!("{}_{n}", v.name());
                let count = sizes::list(&[Size::open(&v).floordiv(*n)])?;
                self.parts.insert(v.name().clone(), b.part_of(&count)?);
            }
        }
        let part =
            |v: &Var| Some(*self.parts.get(v.name())? * Size::from(*self.multiples.get(v.name())?));
        let shape = shape.iter().map(|d| d.substitute(&part)).collect();
        // Errors name the input.
        if let Imported::Var { var, .. } = &input {
            b.hint = var.name().to_string();
        }
        Ok(b.with_shape(&input, shape))
    }

    /// The shapes of the inputs with these sizes in the place of the others.
    pub fn apply(&mut self, mut shapes: Vec<Vec<Size>>) -> Vec<Vec<Size>> {
        let vars = |shapes: &[Vec<Size>]| -> BTreeMap<Arc<str>, Var> {
            let all = shapes.iter().flatten().flat_map(|d| d.vars());
            all.map(|v| (v.name().clone(), v)).collect()
        };
        let here = vars(&shapes);
        for (name, value) in &self.found {
            let value = value.substitute(&|v| here.get(v.name()).map(Size::open));
            let of = |v: &Var| (v.name() == name).then_some(value);
            shapes.iter_mut().flatten().for_each(|d| *d = d.substitute(&of));
        }
        self.known = vars(&shapes);
        self.parts.clear();
        shapes
    }
}

/// What dimensions may be.
struct Ranges<'a> {
    names: BTreeMap<&'a str, SizeRange>,
    axes: BTreeMap<(&'a str, usize), SizeRange>,
}

impl<'a> Ranges<'a> {
    fn new(inputs: &'a [ValueType], ranges: &BTreeMap<String, SizeRange>) -> Result<Ranges<'a>> {
        let mut found = Ranges { names: BTreeMap::new(), axes: BTreeMap::new() };
        let dims = || inputs.iter().flat_map(|v| v.dims.iter().flatten());
        for (key, &range) in ranges {
            if let Some(name) = dims().filter_map(named).find(|name| name == key) {
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

    fn of(&self, name: Option<&str>, input: &str, axis: usize) -> Option<SizeRange> {
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
    fn size(&mut self, name: Option<&str>, input: &str, axis: usize, range: SizeRange) -> Size {
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
        let size = Size::open(&Var::size(var.as_str(), DType::I64, range));
        if let Some(name) = name {
            self.by_name.insert(name.to_owned(), size);
        }
        size
    }
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
    let said = inputs
        .iter()
        .map(|input| format!("the rank of `{input}` (`{input}.0`, `{input}.1`, ...)"))
        .collect();
    let flags: Vec<String> =
        inputs.iter().take(LISTED).map(|input| format!("--dim {input}.0=SIZE")).collect();
    Error::input(format!("the model leaves open: {}", listed(said)))
        .help(format!("give each axis a size: {}; or give the inputs", flags.join(" ")))
}

fn named(dim: &Dim) -> Option<&str> {
    match dim {
        Dim::Named(name) => Some(name),
        Dim::Fixed(_) | Dim::Open => None,
    }
}

fn same(what: &str, a: &Given, b: &Given) -> Result<()> {
    match a.1 == b.1 {
        true => Ok(()),
        false => Err(Error::input(format!("two sizes for `{what}`: {} and {}", a.0, b.0))),
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
    let mut seen = HashSet::new();
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
    let note = match known.is_empty() {
        true => "the model leaves no size open".to_owned(),
        false => format!("open sizes of the model: {}", listed(known)),
    };
    Error::input(format!("no dimension of the model is called `{key}`")).note(note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ValueKind;
    use tilewright_ir::DType;

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
        let said = check(&[("N", 1), ("x.2", 1), ("free.1", 1)], &[]);
        assert!(said.contains("the rank of `free`"), "{said}");
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
    fn sizes_that_do_not_fit_are_refused() {
        for (dims, shapes, said) in [
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
            assert_eq!(check(dims, shapes), said);
        }
    }
}
