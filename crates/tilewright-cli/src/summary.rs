//! What outputs look like, in a few lines.

use std::io::{Result, Write};

use tilewright_driver::Tensor;
use tilewright_ir::DType;
use tilewright_ir::show::visible;

/// How many elements are shown.
const SHOWN: usize = 8;
/// How many classes are shown of each row of scores.
const BEST: usize = 5;
/// Rows for which they are shown.
const ROWS: usize = 4;

/// Prints each output. Of maps, whose keys are an output of their own, each number stands beside its key.
pub fn write_all(outputs: &[(String, Tensor)], out: &mut impl Write) -> Result<()> {
    for (name, tensor) in outputs {
        let name_of_keys = format!("{name}.keys");
        let keys = outputs.iter().find(|(own, _)| *own == name_of_keys);
        match keys.and_then(|(_, keys)| keys_of(keys, tensor)) {
            Some(keys) => write_maps(name, tensor, &keys, out)?,
            None => write(name, tensor, out)?,
        }
    }
    Ok(())
}

/// The keys of maps, if there is one for each column of the numbers.
fn keys_of(keys: &Tensor, numbers: &Tensor) -> Option<Vec<String>> {
    let count = numbers.shape().last().filter(|_| numbers.shape().len() <= 2)?;
    match (keys.dtype(), keys.shape()) {
        (DType::I64, [k]) if k == count => Some((0..*k).map(|i| element(keys, i)).collect()),
        (DType::U8, [k, width]) if k == count && *width > 0 => Some(
            keys.bytes().chunks_exact(*width).map(|b| visible(&trimmed(b)).to_string()).collect(),
        ),
        _ => None,
    }
}

fn trimmed(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

/// Prints a map, or the first ones of a sequence of maps.
fn write_maps(name: &str, numbers: &Tensor, keys: &[String], out: &mut impl Write) -> Result<()> {
    writeln!(out, "{}: {} {:?}", visible(name), numbers.dtype(), numbers.shape())?;
    let rows = numbers.len().checked_div(keys.len()).unwrap_or(0);
    for row in 0..rows.min(ROWS) {
        let shown = keys.iter().enumerate().take(SHOWN);
        let pairs: Vec<String> = shown
            .map(|(k, key)| format!("{key}: {}", element(numbers, row * keys.len() + k)))
            .collect();
        let more = if keys.len() > SHOWN { ", ..." } else { "" };
        writeln!(out, "  {{{}{more}}}", pairs.join(", "))?;
    }
    if rows > ROWS {
        writeln!(out, "  ... {} more", rows - ROWS)?;
    }
    Ok(())
}

/// Prints name, type, shape and first elements of a tensor, and of a matrix of scores the best
/// classes of each row.
fn write(name: &str, tensor: &Tensor, out: &mut impl Write) -> Result<()> {
    write!(out, "{}: {} {:?}", visible(name), tensor.dtype(), tensor.shape())?;
    for i in 0..tensor.len().min(SHOWN) {
        write!(out, " {}", element(tensor, i))?;
    }
    writeln!(out, "{}", if tensor.len() > SHOWN { " ..." } else { "" })?;
    let &[rows, classes] = tensor.shape() else { return Ok(()) };
    if classes <= BEST || !tensor.dtype().is_float() {
        return Ok(());
    }
    for row in 0..rows.min(ROWS) {
        let mut best: Vec<usize> = (0..classes).collect();
        best.sort_by(|a, b| {
            score_of(b, tensor, row, classes).total_cmp(&score_of(a, tensor, row, classes))
        });
        let best: Vec<String> = best
            .iter()
            .take(BEST)
            .map(|class| format!("{class} ({})", element(tensor, row * classes + class)))
            .collect();
        writeln!(out, "  row {row}: {}", best.join(", "))?;
    }
    if rows > ROWS {
        writeln!(out, "  ... {} rows more", rows - ROWS)?;
    }
    Ok(())
}

fn score_of(class: &usize, tensor: &Tensor, row: usize, classes: usize) -> f64 {
    tensor.get_f64(row * classes + class)
}

fn element(tensor: &Tensor, i: usize) -> String {
    let dtype = tensor.dtype();
    match (dtype.is_float(), dtype.is_bool()) {
        (true, _) => tilewright_driver::compare::Number(tensor.get_f64(i)).to_string(),
        (_, true) => (tensor.get_i128(i) != 0).to_string(),
        _ => tensor.get_i128(i).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_driver::Result;

    fn text(tensor: &Tensor) -> String {
        let mut out = Vec::new();
        write("x", tensor, &mut out).expect("memory can be written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn elements_are_shown_in_few_digits() -> Result<()> {
        let t = Tensor::from_slice(&[3], &[1.0f32 / 3.0, -2e-9, f32::NAN])?;
        assert_eq!(text(&t), "x: float32 [3] 0.33333 -2e-9 NaN\n");
        let t = Tensor::from_slice(&[3, 3], &[7i64; 9])?;
        assert_eq!(text(&t), "x: int64 [3, 3] 7 7 7 7 7 7 7 7 ...\n");
        assert_eq!(text(&Tensor::from_bools(&[2], &[true, false])?), "x: bool [2] true false\n");
        assert_eq!(text(&Tensor::from_slice(&[], &[5u8])?), "x: uint8 [] 5\n");
        assert_eq!(text(&Tensor::from_slice::<f32>(&[0, 9], &[])?), "x: float32 [0, 9]\n");
        Ok(())
    }

    #[test]
    fn numbers_of_maps_stand_beside_their_keys() -> Result<()> {
        let numbers = Tensor::from_slice(&[2, 2], &[0.25f32, 0.75, 1.0, 0.0])?;
        let keys = Tensor::from_slice(&[2], &[7i64, -1])?;
        assert_eq!(
            written(&[("m", &numbers), ("m.keys", &keys)]),
            "m: float32 [2, 2]\n  {7: 0.25, -1: 0.75}\n  {7: 1, -1: 0}\nm.keys: int64 [2] 7 -1\n"
        );
        let keys = Tensor::from_slice(&[2, 3], b"no\0yes")?;
        let shown = written(&[("m", &numbers), ("m.keys", &keys)]);
        assert!(shown.contains("  {no: 0.25, yes: 0.75}\n"), "{shown}");
        let other = Tensor::from_slice(&[3], &[7i64, 8, 9])?;
        let shown = written(&[("m", &numbers), ("m.keys", &other)]);
        assert!(shown.starts_with("m: float32 [2, 2] 0.25 0.75 1 0\n"), "{shown}");
        Ok(())
    }

    fn written(outputs: &[(&str, &Tensor)]) -> String {
        let mut out = Vec::new();
        let owned: Vec<(String, Tensor)> =
            outputs.iter().map(|(name, t)| ((*name).to_owned(), (*t).clone())).collect();
        write_all(&owned, &mut out).expect("memory can be written");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn rows_of_scores_show_the_best_classes() -> Result<()> {
        let scores: Vec<f32> =
            (0..6).flat_map(|r| (0..7).map(move |c| ((r + c * 3) % 7) as f32)).collect();
        let t = Tensor::from_slice(&[6, 7], &scores)?;
        assert_eq!(
            text(&t),
            "x: float32 [6, 7] 0 3 6 2 5 1 4 1 ...\n  \
               row 0: 2 (6), 4 (5), 6 (4), 1 (3), 3 (2)\n  \
               row 1: 4 (6), 6 (5), 1 (4), 3 (3), 5 (2)\n  \
               row 2: 6 (6), 1 (5), 3 (4), 5 (3), 0 (2)\n  \
               row 3: 1 (6), 3 (5), 5 (4), 0 (3), 2 (2)\n  \
               ... 2 rows more\n"
        );
        Ok(())
    }
}
