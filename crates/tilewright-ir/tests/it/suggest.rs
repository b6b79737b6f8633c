//! Which name was meant.

use tilewright_ir::suggest::closest;

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
