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
