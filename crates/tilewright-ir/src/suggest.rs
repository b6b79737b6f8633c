//! Names that were meant: what "did you mean" offers.

/// The name among some that is closest to a word, if it is close: at most a third of the letters,
/// and at most three, are inserted, left out, replaced or exchanged with their neighbour. Of several
/// the first.
pub fn closest<'a>(word: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = word.chars().count();
    let most = (letters / 3).min(3);
    let near = among
        .into_iter()
        .filter(|name| most > 0 && name.chars().count().abs_diff(letters) <= most)
        .map(|name| (strsim::osa_distance(word, name), name));
    near.filter(|(d, _)| *d <= most).min_by_key(|(d, _)| *d).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_found_and_another_word_is_not() {
        let names = ["simplify", "lower_blocks", "lower", "fuse"];
        let of = |word| closest(word, names);
        assert_eq!(of("simplfiy"), Some("simplify"));
        assert_eq!(of("lower_block"), Some("lower_blocks"));
        assert_eq!(of("Lower"), Some("lower"));
        assert_eq!(of("fusé"), Some("fuse"));
        assert_eq!(of("fly"), None);
        assert_eq!(of("xyz"), None);
        assert_eq!(closest("i", ["B", "j"]), None);
        assert_eq!(closest("if_then_esle", ["serial", "if_then_else"]), Some("if_then_else"));
        assert_eq!(of(""), None);
    }
}
