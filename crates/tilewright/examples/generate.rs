//! Goes on from a prompt as the model of `examples/text` does, letter by letter.

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Instant;

use tilewright::{DType, Options, Sizes, Tensor, compile, load};

/// The text from a prompt on, and how many letters were made in a second.
pub fn generate(folder: &str, prompt: &str) -> Result<(String, f64), Box<dyn Error>> {
    let letters: BTreeSet<char> =
        std::fs::read_to_string(format!("{folder}/text.txt"))?.chars().collect();
    let letters: Vec<char> = letters.into_iter().collect();
    let model = load(format!("{folder}/text.onnx"), &Sizes::new())?;
    let program = compile(&model, &Options::default())?;
    let empty = || Tensor::zeros(DType::F32, &[1, 1, 500, 16]);
    let (mut keys, mut values) = (empty()?, empty()?);
    let (mut text, mut new) = (prompt.to_owned(), prompt.to_owned());
    let (mut length, mut made, start) = (0, 0, Instant::now());
    while !text.ends_with('\n') && length + 1 < 500 {
        let ids = new.chars().map(|c| letters.iter().position(|l| *l == c).map(|k| k as i64));
        let ids: Vec<i64> = ids.collect::<Option<_>>().ok_or("the text has no such letter")?;
        length += ids.len() as i32;
        let ids = Tensor::from_slice(&[1, ids.len()], &ids)?;
        let count = Tensor::from_slice(&[1], &[length])?;
        // The caches are given away and come back: only the new rows are written.
        let outputs = program.run_in_place(vec![ids, count, keys, values])?;
        let [logits, new_keys, new_values] =
            <[Tensor; 3]>::try_from(outputs).map_err(|_| "three outputs")?;
        (keys, values) = (new_keys, new_values);
        let logits = logits.as_slice::<f32>().unwrap_or_default();
        let last = logits.chunks(letters.len()).next_back().unwrap_or_default();
        let best = (0..last.len()).max_by(|a, b| last[*a].total_cmp(&last[*b])).unwrap_or(0);
        new = letters[best].to_string();
        text += &new;
        made += 1;
    }
    Ok((text, f64::from(made) / start.elapsed().as_secs_f64()))
}

#[allow(dead_code, reason = "a test calls `generate`")]
fn main() -> Result<(), Box<dyn Error>> {
    let prompt = std::env::args().nth(1).unwrap_or_else(|| "A loop".into());
    let (text, rate) = generate("examples/text", &prompt)?;
    println!("{text}{rate:.0} tokens a second");
    Ok(())
}
