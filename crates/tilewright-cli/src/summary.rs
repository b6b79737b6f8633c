//! What an output looks like, in a few lines.

use std::io::{Result, Write};

use tilewright_driver::Tensor;
use tilewright_ir::show::visible;

/// How many elements are shown.
const SHOWN: usize = 8;
/// How many classes are shown of each row of scores.
const BEST: usize = 5;
/// Rows for which they are shown.
const ROWS: usize = 4;

/// Prints name, type, shape and first elements of a tensor, and of a matrix of scores the best
/// classes of each row.
pub fn write(name: &str, tensor: &Tensor, out: &mut impl Write) -> Result<()> {
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
        let score = |class: &usize| tensor.get_f64(row * classes + class);
        best.sort_by(|a, b| score(b).total_cmp(&score(a)));
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
