//! Operators on strings, which are known when a model is imported ([`Texts`]): all of them are
//! computed then.

use tilewright_ir::hash::HashSet;

use regex::RegexBuilder;
use tilewright_ir::{Error, Result, Tensor, dim};
use tilewright_ops::broadcast_shapes;

use super::{arithmetic, one};
use crate::build::Builder;
use crate::fold::{self, View};
use crate::imported::Imported;
use crate::node::Node;
use crate::operator::{self, Operator, op};
use crate::texts::Texts;
use tilewright_ops::elementwise::Binary;

/// The operators that are imported here.
pub(crate) static OPERATORS: &[Operator] = &[
    operator::texts(op("Equal", 7, 2, equal)),
    operator::texts(op("RegexFullMatch", 20, 1, full_match)),
    operator::texts(op("StringConcat", 20, 2, concat)),
    operator::texts(op("StringNormalizer", 10, 1, normalize)),
    operator::texts(op("StringSplit", 20, 1, split)),
];

/// Most memory of a compiled regular expression, in bytes.
pub(crate) const PATTERN_BYTES: usize = 8 << 20;

/// Most strings that an operator makes, and most bytes of them: a small model could ask for any number.
const MAX_TEXTS: usize = 1 << 24;
const MAX_BYTES: usize = 1 << 30;

/// Refuses more strings than are made.
pub(crate) fn limited(count: Option<usize>, bytes: usize) -> Result<usize> {
    count.filter(|count| *count <= MAX_TEXTS && bytes <= MAX_BYTES).ok_or_else(|| {
        Error::unsupported(format!(
            "more than {MAX_TEXTS} strings, or than {MAX_BYTES} bytes of them, at import"
        ))
    })
}

/// The strings of an input.
pub(crate) fn texts<'n>(node: &'n Node, at: usize) -> Result<&'n Texts> {
    match node.input(at)? {
        Imported::Text(texts) => Ok(texts),
        Imported::Chosen { .. } => Err(Error::unsupported(
            "strings are known at import only, and here they would be values of a run",
        )),
        other => Err(Error::model(format!(
            "input {at} has elements of type {}, and strings are needed",
            other.dtype()
        ))),
    }
}

/// The shape of a broadcast, and the position in both operands of each element, in row-major order.
fn broadcast(shapes: [&[usize]; 2]) -> Result<(Vec<usize>, Vec<[usize; 2]>)> {
    let shape = broadcast_shapes("strings", &shapes.map(dim::shape))?;
    let shape = dim::fixed(&shape, "strings")?;
    limited(shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d)), 0)?;
    let [x, y] = shapes.map(|own| {
        let positions: Vec<i64> = (0..own.iter().product::<usize>() as i64).collect();
        fold::materialize(&Tensor::from_slice(own, &positions)?, &View::stretched(own, &shape))
    });
    let (x, y) = (x?, y?);
    Ok((shape, (0..x.len()).map(|k| [x.get_i128(k) as usize, y.get_i128(k) as usize]).collect()))
}

fn truths(shape: &[usize], values: &[bool]) -> Result<Vec<Imported>> {
    one(Imported::Const(Tensor::from_bools(shape, values)?))
}

/// `Equal`, of strings or of anything else.
pub(crate) fn equal(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    if !matches!(node.input(0)?, Imported::Text(_)) {
        return arithmetic::binary(node, b, "equal", Binary::Equal);
    }
    let (x, y) = (texts(node, 0)?, texts(node, 1)?);
    let (shape, places) = broadcast([x.shape(), y.shape()])?;
    truths(
        &shape,
        &places.iter().map(|[i, j]| x.values()[*i] == y.values()[*j]).collect::<Vec<_>>(),
    )
}

pub(crate) fn concat(node: &Node, _: &mut Builder) -> Result<Vec<Imported>> {
    let (x, y) = (texts(node, 0)?, texts(node, 1)?);
    let (shape, places) = broadcast([x.shape(), y.shape()])?;
    limited(
        Some(places.len()),
        places.iter().map(|[i, j]| x.values()[*i].len() + y.values()[*j].len()).sum(),
    )?;
    let values =
        places.iter().map(|[i, j]| format!("{}{}", x.values()[*i], y.values()[*j])).collect();
    one(Imported::Text(Texts::new(&shape, values)?))
}

/// The parts of a text: between delimiters, or where there is none, between runs of white space.
fn parts(text: &str, delimiter: &str, most: Option<usize>) -> Vec<String> {
    if !delimiter.is_empty() {
        let count = most.map_or(usize::MAX, |n| n.saturating_add(1));
        return text.splitn(count, delimiter).map(str::to_owned).collect();
    }
    let (mut rest, mut found) = (text.trim(), Vec::new());
    while !rest.is_empty() {
        let end = match most {
            Some(most) if found.len() >= most => None,
            _ => rest.find(char::is_whitespace),
        };
        let (part, behind) = rest.split_at(end.unwrap_or(rest.len()));
        found.push(part.to_owned());
        rest = behind.trim_start();
    }
    found
}

/// The parts of each string along a new last axis, and how many there are.
pub(crate) fn split(node: &Node, _: &mut Builder) -> Result<Vec<Imported>> {
    let x = texts(node, 0)?;
    let delimiter = node.text_or("delimiter", "")?;
    let most = match node.int("maxsplit")? {
        None => None,
        Some(n) => usize::try_from(n).ok(),
    };
    let all: Vec<Vec<String>> = x.values().iter().map(|t| parts(t, delimiter, most)).collect();
    let width = all.iter().map(Vec::len).max().unwrap_or(0);
    limited(all.len().checked_mul(width), 0)?;
    let counts: Vec<i64> = all.iter().map(|p| p.len() as i64).collect();
    let values = all
        .into_iter()
        .flat_map(|mut p| {
            p.resize(width, String::new());
            p
        })
        .collect();
    let shape = [x.shape(), &[width]].concat();
    let counts = Imported::Const(Tensor::from_slice(x.shape(), &counts)?);
    Ok(vec![Imported::Text(Texts::new(&shape, values)?), counts])
}

/// What a string becomes.
type Change = fn(&str) -> String;

/// Without stop words, and in lower or upper case.
pub(crate) fn normalize(node: &Node, _: &mut Builder) -> Result<Vec<Imported>> {
    let x = texts(node, 0)?;
    if !matches!(x.shape(), [_] | [1, _]) {
        return Err(Error::model(format!(
            "the shape is {:?}, where [C] or [1, C] is needed",
            x.shape()
        )));
    }
    // Case is that of Unicode, whatever the language.
    node.ignore("locale");
    let changes: [(&str, Change); 3] =
        [("NONE", str::to_owned), ("LOWER", str::to_lowercase), ("UPPER", str::to_uppercase)];
    let change = node.choice("case_change_action", "NONE", &changes)?;
    let key =
        if node.flag("is_case_sensitive", false)? { str::to_owned } else { str::to_lowercase };
    let stop = node.texts("stopwords")?.unwrap_or_default();
    let stop: HashSet<String> = stop.iter().map(|word| key(word)).collect();
    let kept = x.values().iter().filter(|word| !stop.contains(&key(word)));
    let mut values: Vec<String> = kept.map(|word| change(word)).collect();
    if values.is_empty() {
        values.push(String::new());
    }
    let mut shape = x.shape().to_vec();
    if let Some(last) = shape.last_mut() {
        *last = values.len();
    }
    one(Imported::Text(Texts::new(&shape, values)?))
}

/// Whether a pattern matches the whole of each string.
pub(crate) fn full_match(node: &Node, _: &mut Builder) -> Result<Vec<Imported>> {
    let x = texts(node, 0)?;
    let pattern = node.text_or("pattern", "")?;
    let whole = RegexBuilder::new(&format!(r"\A(?:{pattern})\z"))
        .size_limit(PATTERN_BYTES)
        .build()
        .map_err(|e| {
            Error::model(format!("attribute `pattern` is not a regular expression: {pattern}"))
                .note(e.to_string())
        })?;
    let matches: Vec<bool> = x.values().iter().map(|text| whole.is_match(text)).collect();
    truths(x.shape(), &matches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_split_as_in_python() {
        assert_eq!(split_text("a.b.c", ".", None), "a|b|c");
        assert_eq!(split_text("a.b.c", ".", Some(1)), "a|b.c");
        assert_eq!(split_text(".a..b", ".", None), "|a||b");
        assert_eq!(parts("", ".", None), [""]);
        assert_eq!(split_text("  a  b c ", "", None), "a|b|c");
        assert_eq!(split_text("  a  b c", "", Some(1)), "a|b c");
        assert!(parts("  ", "", None).is_empty());
    }

    fn split_text(text: &str, delimiter: &str, most: Option<usize>) -> String {
        parts(text, delimiter, most).join("|")
    }

    #[test]
    fn elements_of_a_broadcast_find_their_operands() {
        let (shape, places) = broadcast([&[2, 1], &[3]]).expect("they fit");
        assert_eq!(shape, [2, 3]);
        assert_eq!(places[1], [0, 1]);
        assert_eq!(places[5], [1, 2]);
        assert!(broadcast([&[2], &[3]]).is_err());
        assert_eq!(broadcast([&[], &[0]]).expect("they fit"), (vec![0], vec![]));
    }
}
