//! Operators of `ai.onnx.ml` that look up, select and compare, and counts of n-grams.

use std::ops::RangeInclusive;
use tilewright_ir::hash::HashMap;

use tilewright_ir::{DType, Dim, Error, Result, Tensor};

use super::compose::{Compose, int, text as text_attribute};
use super::{one, text, value};
use crate::build::Builder;
use crate::fold;
use crate::imported::{Imported, operand};
use crate::node::{Node, required};
use crate::operator::{Operator, moves, op, texts, until};
use crate::texts::Texts;

/// Those of the domain `ai.onnx.ml`; their versions are those of the domain.
pub(crate) static ML: &[Operator] = &[
    until(5, moves(op("ArrayFeatureExtractor", 1, 2, array_feature_extractor))),
    until(5, op("Binarizer", 1, 1, binarizer)),
    until(5, texts(op("LabelEncoder", 1, 1, label_encoder))),
];

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[texts(op("TfIdfVectorizer", 9, 1, tf_idf))];

/// Values of one kind: strings or numbers.
enum Values {
    Texts(Texts),
    Numbers(Tensor),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Texts(t) => t.values().len(),
            Values::Numbers(t) => t.len(),
        }
    }
}

/// The one list of keys or values of a `LabelEncoder`, which has an attribute for each type.
fn listed(node: &Node, names: [&'static str; 4]) -> Result<Values> {
    let [texts, ints, floats, tensor] = names;
    let given = [
        node.texts(texts)?.map(|t| Texts::new(&[t.len()], t).map(Values::Texts)).transpose()?,
        node.ints(ints)?
            .map(|v| Tensor::from_slice(&[v.len()], &v).map(Values::Numbers))
            .transpose()?,
        node.floats(floats)?
            .map(|v| Tensor::from_slice(&[v.len()], &v).map(Values::Numbers))
            .transpose()?,
        node.text_tensor(tensor)?.map(Values::Texts),
        node.number_tensor(tensor)?.map(Values::Numbers),
    ];
    let mut given = given.into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(values), None) => Ok(values),
        _ => Err(Error::model(format!(
            "exactly one of {} is needed",
            names.map(|n| format!("`{n}`")).join(", ")
        ))),
    }
}

/// What stands for a value that no key has.
fn default_value(node: &Node, values: &Values) -> Result<Values> {
    let tensor = [
        node.text_tensor("default_tensor")?.map(Values::Texts),
        node.number_tensor("default_tensor")?.map(Values::Numbers),
    ];
    let (text, whole, float) = (
        node.text_or("default_string", "_Unused")?,
        node.int_or("default_int64", -1)?,
        node.float_or("default_float", -0.0)?,
    );
    if let Some(given) = tensor.into_iter().flatten().next() {
        return match (&given, values) {
            _ if given.len() != 1 => {
                Err(Error::model("attribute `default_tensor` is not one value"))
            }
            (Values::Texts(_), Values::Texts(_)) => Ok(given),
            (Values::Numbers(a), Values::Numbers(b)) if a.dtype() == b.dtype() => Ok(given),
            _ => Err(Error::model("attribute `default_tensor` has another type than the values")),
        };
    }
    let Values::Numbers(t) = values else {
        return Texts::new(&[1], vec![text.to_owned()]).map(Values::Texts);
    };
    let default = if t.dtype().is_float() {
        Tensor::from_slice(&[1], &[float])?
    } else {
        Tensor::from_slice(&[1], &[whole])?
    };
    fold::cast(&default, t.dtype()).map(Values::Numbers)
}

/// The value at the position of the key that an element equals, the last one of equal keys.
pub(crate) fn label_encoder(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    if node.opset < 2 {
        let texts = required(node.texts("classes_strings")?, "the attribute `classes_strings`")?;
        let numbers = (0..texts.len() as i64).collect();
        return categories(node, b, texts, numbers);
    }
    let keys = listed(node, ["keys_strings", "keys_int64s", "keys_floats", "keys_tensor"])?;
    let values =
        listed(node, ["values_strings", "values_int64s", "values_floats", "values_tensor"])?;
    if keys.len() != values.len() {
        return Err(Error::model(format!("{} keys and {} values", keys.len(), values.len())));
    }
    let default = default_value(node, &values)?;
    // Positions among the default value and the values.
    let places = match &keys {
        Values::Texts(keys) => places_of_texts(node, b, keys)?,
        Values::Numbers(keys) => places_of(node, b, node.input(0)?, keys)?,
    };
    match (values, default) {
        (Values::Texts(values), Values::Texts(default)) => {
            let all: Vec<String> =
                default.values().iter().chain(values.values()).cloned().collect();
            one(Imported::chosen(&places, &Texts::new(&[all.len()], all)?)?)
        }
        (Values::Numbers(values), Values::Numbers(default)) => {
            let mut c = Compose::new(node, b);
            let table = c.concat(&[&flat(default)?, &flat(values)?], 0)?;
            one(picked(node, b, &places, &table)?)
        }
        _ => Err(Error::internal("a default value of another kind")),
    }
}

fn flat(t: Tensor) -> Result<Imported> {
    t.reshape(&[t.len()]).map(Imported::Const)
}

/// Numbers for strings, or strings for numbers.
pub(crate) fn categories(
    node: &Node,
    b: &mut Builder,
    texts: Vec<String>,
    numbers: Vec<i64>,
) -> Result<Vec<Imported>> {
    let (text, number) =
        (node.text_or("default_string", "_Unused")?, node.int_or("default_int64", -1)?);
    if texts.len() != numbers.len() {
        return Err(Error::model(format!(
            "{} strings and {} numbers of categories",
            texts.len(),
            numbers.len()
        )));
    }
    match node.input(0)? {
        Imported::Text(_) | Imported::Chosen { .. } => {
            let places = places_of_texts(node, b, &Texts::new(&[texts.len()], texts)?)?;
            let all: Vec<i64> = [number].into_iter().chain(numbers).collect();
            one(picked(node, b, &places, &value::list(&all)?)?)
        }
        x => {
            let keys = Tensor::from_slice(&[numbers.len()], &numbers)?;
            let places = places_of(node, b, x, &keys)?;
            let all: Vec<String> = [text.to_owned()].into_iter().chain(texts).collect();
            one(Imported::chosen(&places, &Texts::new(&[all.len()], all)?)?)
        }
    }
}

/// The elements of a table at some places.
pub(crate) fn picked(
    node: &Node,
    b: &mut Builder,
    places: &Imported,
    table: &Imported,
) -> Result<Imported> {
    Compose::new(node, b).with("Gather", &[table, places], [int("axis", 0)])
}

/// For each string of the first input one more than the position of the last key that it equals, or zero.
pub(crate) fn places_of_texts(node: &Node, b: &mut Builder, keys: &Texts) -> Result<Imported> {
    let (chosen, texts) = match node.input(0)? {
        Imported::Chosen { at, of } => (Some(at), of),
        _ => (None, text::texts(node, 0)?),
    };
    let at: HashMap<&String, i64> = keys.values().iter().zip(1..).collect();
    let found: Vec<i64> = texts.values().iter().map(|v| at.get(v).copied().unwrap_or(0)).collect();
    let found = Tensor::from_slice(texts.shape(), &found).map(Imported::Const)?;
    match chosen {
        Some(at) => picked(node, b, at, &found),
        None => Ok(found),
    }
}

/// For each number one more than the position of the last key that it equals, or zero.
pub(crate) fn places_of(
    node: &Node,
    b: &mut Builder,
    x: &Imported,
    keys: &Tensor,
) -> Result<Imported> {
    let is_text = matches!(x, Imported::Text(_) | Imported::Chosen { .. });
    if is_text || x.dtype() != keys.dtype() {
        return Err(Error::model(format!(
            "the input has elements of type {}, the keys are {}",
            if is_text { "string".into() } else { x.dtype().to_string() },
            keys.dtype()
        )));
    }
    let mut c = Compose::new(node, b);
    let count = keys.len();
    let positions: Vec<i64> = (1..=count as i64).collect();
    if count == 0 {
        let none = c.number(DType::I64, 0.0)?;
        return c.expand(&none, &x.shape());
    }
    let wide: Vec<Dim> = x.shape().into_iter().chain([Dim::from(1)]).collect();
    let column = c.reshape(x, &wide)?;
    let keys = Imported::Const(keys.reshape(&[count])?);
    let mut same = c.op("Equal", &[&column, &keys])?;
    // From the fourth version on NaN is a key as well.
    if x.dtype().is_float() && node.opset >= 4 {
        let (a, b) = (c.op("IsNaN", &[&column])?, c.op("IsNaN", &[&keys])?);
        let both = c.op("And", &[&a, &b])?;
        same = c.op("Or", &[&same, &both])?;
    }
    let zero = c.number(DType::I64, 0.0)?;
    let places = c.op("Where", &[&same, &value::list(&positions)?, &zero])?;
    c.reduce("ReduceMax", &places, &[wide.len() - 1], false)
}

/// One where an element is above a threshold, zero elsewhere.
pub(crate) fn binarizer(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let x = node.input(0)?;
    let threshold = f64::from(node.float_or("threshold", 0.0)?);
    let mut c = Compose::new(node, b);
    // An integer is above a number if it is above what is left without the fraction.
    let bound = if x.dtype().is_int() { threshold.floor() } else { threshold };
    let bound = c.number(x.dtype(), bound)?;
    let above = c.op("Greater", &[x, &bound])?;
    one(c.cast(&above, x.dtype())?)
}

/// Positions of the last axis.
pub(crate) fn array_feature_extractor(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let (x, at) = (node.input(0)?, node.input(1)?);
    if x.rank() == 0 {
        return Err(Error::model("there is no axis to select from"));
    }
    let mut c = Compose::new(node, b);
    let count = tilewright_ir::dim::product(at.shape());
    let list = c.reshape(at, &[count])?;
    let z = c.with("Gather", &[x, &list], [int("axis", -1)])?;
    one(match x.rank() {
        1 => c.reshape(&z, &[Dim::from(1), count])?,
        _ => z,
    })
}

/// The n-grams that a node counts.
struct NGrams {
    /// The shortest and the longest that count, by the number of elements.
    lengths: RangeInclusive<usize>,
    /// Most elements between two neighbours of an n-gram.
    skips: usize,
    /// The elements of all n-grams, the shortest ones first.
    pool: Vec<i64>,
    /// Where those of each length begin in the pool.
    starts: Vec<usize>,
    /// The place of each n-gram in the result.
    places: Vec<usize>,
}

/// How often each n-gram of a pool occurs in a sequence, or in each row.
pub(crate) fn tf_idf(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let shortest = gram_size(node.int("min_gram_length")?, "min_gram_length")?.max(1);
    let longest = gram_size(node.int("max_gram_length")?, "max_gram_length")?;
    let skips = gram_size(node.int("max_skip_count")?, "max_skip_count")?;
    let (starts, places) =
        (positions_of("ngram_counts", node)?, positions_of("ngram_indexes", node)?);
    let mode = node.text_or("mode", "TF")?;
    let weights = node.floats("weights")?;
    let (pool, x) = numbered(node, b)?;
    let grams = NGrams { lengths: shortest..=longest, skips, pool, starts, places };
    let (rows, length) = match x.shape()[..] {
        [length] => (Dim::from(1), length),
        [rows, length] => (rows, length),
        _ => return Err(Error::model(format!("{} has neither one axis nor two", operand(&x)))),
    };
    let length = length.fixed(node.op())?;
    let mut c = Compose::new(node, b);
    let flat = c.reshape(&x, &[rows, Dim::from(length)])?;
    let width = grams.places.iter().max().map_or(0, |m| m + 1);
    if width > MAX_PLACES {
        return Err(Error::unsupported(format!(
            "a result of {width} counts is not supported; at most {MAX_PLACES} are"
        )));
    }
    let (counts, counted) = grams.counts(&mut c, &flat, rows, length)?;
    let zero = c.number(DType::F32, 0.0)?;
    let mut y = c.expand(&zero, &[rows, Dim::from(width)])?;
    if !counts.is_empty() {
        let counts = c.concat(&counts.iter().collect::<Vec<_>>(), 1)?;
        let into: Vec<i64> = counted.iter().map(|g| grams.places[*g] as i64).collect();
        let into = c.expand(&value::list(&into)?, &[rows, Dim::from(counted.len())])?;
        let attributes = [int("axis", 1), text_attribute("reduction", "add")];
        y = c.with("ScatterElements", &[&y, &into, &counts], attributes)?;
    }
    if mode != "TF" {
        let scale = grams.scale(weights.as_deref(), width)?;
        if mode == "IDF" {
            let most = c.number(DType::F32, 1.0)?;
            y = c.op("Min", &[&y, &most])?;
        } else if mode != "TFIDF" {
            return Err(node.unsupported_value("mode", mode, "TF, IDF, TFIDF"));
        }
        let scale = value::constant(DType::F32, &[width], &scale)?;
        y = c.op("Mul", &[&y, &scale])?;
    }
    one(match x.rank() {
        1 => c.reshape(&y, &[width])?,
        _ => y,
    })
}

fn positions_of(name: &'static str, node: &Node<'_>) -> Result<Vec<usize>> {
    let list = node.ints(name)?.ok_or_else(|| Error::model(format!("`{name}` is missing")))?;
    list.iter()
        .map(|v| usize::try_from(*v).ok())
        .collect::<Option<_>>()
        .ok_or_else(|| Error::model(format!("attribute `{name}` has negative numbers")))
}

fn gram_size(v: Option<i64>, name: &str) -> Result<usize> {
    match v.map(usize::try_from) {
        Some(Ok(v)) if v <= MAX_GRAM => Ok(v),
        _ => Err(Error::model(format!("attribute `{name}` is missing or out of range"))),
    }
}

/// The pool and the input as numbers. Strings become numbers: those of the pool by their place there,
/// others one that it has not.
fn numbered(node: &Node, b: &mut Builder) -> Result<(Vec<i64>, Imported)> {
    match (node.ints("pool_int64s")?, node.texts("pool_strings")?) {
        (Some(pool), None) => {
            let x = node.input(0)?;
            if !matches!(x.dtype(), DType::I32 | DType::I64) {
                return Err(Error::model(format!("the input has elements of type {}", x.dtype())));
            }
            Ok((pool, Compose::new(node, b).cast(x, DType::I64)?))
        }
        (None, Some(pool)) => {
            let mut number: HashMap<&str, i64> = HashMap::default();
            for word in &pool {
                let next = number.len() as i64;
                number.entry(word).or_insert(next);
            }
            let x = text::texts(node, 0)?;
            let found: Vec<i64> =
                x.values().iter().map(|w| number.get(w.as_str()).copied().unwrap_or(-1)).collect();
            let x = Imported::Const(Tensor::from_slice(x.shape(), &found)?);
            Ok((pool.iter().map(|w| number[w.as_str()]).collect(), x))
        }
        _ => Err(Error::model("one of `pool_int64s` and `pool_strings` is needed")),
    }
}

impl NGrams {
    /// How often n-grams occur in each row of so many elements: a tensor for each length and each number of
    /// elements that are skipped, and the n-grams of all of them, by number.
    fn counts(
        &self,
        c: &mut Compose,
        flat: &Imported,
        rows: Dim,
        length: usize,
    ) -> Result<(Vec<Imported>, Vec<usize>)> {
        let (starts, pool) = (&self.starts, &self.pool);
        // The n-grams of each length lie one after the other.
        let (mut counts, mut counted, mut first) = (Vec::new(), Vec::new(), 0);
        for n in 1..=starts.len() {
            let (from, to) = (starts[n - 1], starts.get(n).copied().unwrap_or(pool.len()));
            let grams = match to.checked_sub(from) {
                Some(size) if size % n == 0 && to <= pool.len() => size / n,
                _ => return Err(Error::model(format!("attribute `ngram_counts` = {starts:?}"))),
            };
            let own = first..first + grams;
            first = own.end;
            if grams == 0 || !self.lengths.contains(&n) {
                continue;
            }
            // One element has nothing to skip.
            for step in 1..=if n == 1 { 1 } else { self.skips + 1 } {
                let Some(windows) = length.checked_sub((n - 1) * step).filter(|w| *w > 0) else {
                    continue;
                };
                let mut all: Option<Imported> = None;
                for k in 0..n {
                    let part = c.slice(flat, 1, k * step, k * step + windows)?;
                    let part = c.reshape(&part, &[rows, windows.into(), Dim::from(1)])?;
                    let wanted: Vec<i64> = (0..grams).map(|g| pool[from + g * n + k]).collect();
                    let same = c.op("Equal", &[&part, &value::list(&wanted)?])?;
                    all = Some(c.also(all, same)?);
                }
                let Some(all) = all else { continue };
                let found = c.cast(&all, DType::F32)?;
                counts.push(c.reduce("ReduceSum", &found, &[1], false)?);
                counted.extend(own.clone());
            }
        }
        if first == self.places.len() {
            Ok((counts, counted))
        } else {
            Err(Error::model(format!(
                "{} n-grams have {} places in the result",
                first,
                self.places.len()
            )))
        }
    }

    /// What each place of the result is multiplied by.
    fn scale(&self, weights: Option<&[f32]>, width: usize) -> Result<Vec<f64>> {
        let mut scale = vec![1.0; width];
        if let Some(weights) = weights {
            if weights.len() != self.places.len() {
                return Err(Error::model(format!(
                    "{} n-grams have {} weights",
                    self.places.len(),
                    weights.len()
                )));
            }
            self.places.iter().zip(weights).for_each(|(at, w)| scale[*at] = f64::from(*w));
        }
        Ok(scale)
    }
}

/// Most counts in a result.
const MAX_PLACES: usize = 1 << 24;

/// Longest n-gram, and most elements between two of its elements.
const MAX_GRAM: usize = 64;
