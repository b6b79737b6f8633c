//! What was meant by a name that is not there.

/// The name that differs least from the one given, where it is near enough to have been meant: a
/// third of the letters may be wrong (added, missing, exchanged for others, or for neighbours).
pub(crate) fn nearest<'a>(
    given: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let near = |name: &str| strsim::damerau_levenshtein(given, name);
    let (distance, name) = names.into_iter().map(|name| (near(name), name)).min()?;
    (distance * 3 <= name.chars().count()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_seen_and_another_word_is_not() {
        let names = ["simplify", "remove_no_op", "hoist_expression"];
        assert_eq!(nearest("simplfy", names), Some("simplify"));
        assert_eq!(nearest("remove_noop", names), Some("remove_no_op"));
        assert_eq!(nearest("hoist_expresison", names), Some("hoist_expression"));
        assert_eq!(nearest("fold", names), None);
        assert_eq!(nearest("x", []), None);
    }
}
