//! The example that generates text: what it writes, and that the guide shows it as it is.

use std::path::Path;

#[path = "../examples/generate.rs"]
mod example;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn the_text_that_was_learned_is_generated() {
    let folder = root().join("examples/text");
    let text = std::fs::read_to_string(folder.join("text.txt")).expect("the text");
    let folder = folder.to_str().expect("a path");
    for prompt in ["A loop", "So choose", "T"] {
        let generated = example::generate(folder, prompt);
        if prompt == "T" {
            assert!(generated.expect_err("no such letter").to_string().contains("no such letter"));
            continue;
        }
        let (generated, rate) = generated.unwrap_or_else(|e| panic!("{prompt}: {e}"));
        assert!(generated.len() > 80 && text.ends_with(&generated), "{generated}");
        assert!(rate > 0.0);
    }
}

#[test]
fn the_guide_shows_the_example() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("a file");
    let page = read("docs/guide/10-generate-text.md");
    let code = read("crates/tilewright/examples/generate.rs");
    assert!(page.contains(&format!("```rust\n{code}```\n")));
}
