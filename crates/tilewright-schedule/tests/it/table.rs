//! The table of primitives.

use tilewright_schedule::table::signatures;

#[test]
fn names_are_unique_and_arguments_can_be_told_apart() {
    let mut names: Vec<&str> =
        signatures().flat_map(|p| std::iter::once(&p.name).chain(p.aliases)).copied().collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    for p in signatures() {
        assert!(p.summary().ends_with('.'), "{p:?}: {}", p.summary());
        let params = p.params.iter().flat_map(|x| x.names).chain(p.flags.iter().map(|f| &f.name));
        let mut params: Vec<&&str> = params.collect();
        let count = params.len();
        params.sort_unstable();
        params.dedup();
        assert_eq!(params.len(), count, "{p:?}");
        assert!(p.params.iter().all(|x| !x.takes().is_empty()), "{p:?}");
        assert!(p.params.iter().rev().skip(1).all(|x| !x.rest), "{p:?}");
    }
}
