//! Function names as symbols.
//!
//! A function may have any name, a symbol that C can use may not. The symbol of a function is
//! `PREFIX_k_` and its name, in which each byte that is not a letter, a digit or `_` becomes `_x`
//! and two hexadecimal digits, as does a `_` before an `x`. So different names give different
//! symbols, a symbol is always a C identifier, and no name meets a function of a library.

use tilewright_ir::{Error, Result};

/// The prefix of symbols where nothing else is asked for.
pub const PREFIX: &str = "tw";

/// The symbol of the tensor function `name` under a prefix.
pub fn symbol(prefix: &str, name: &str) -> String {
    let mut out = format!("{prefix}_k_");
    let bytes = name.as_bytes();
    for (i, &b) in bytes.iter().enumerate() {
        let plain = b.is_ascii_alphanumeric() || (b == b'_' && bytes.get(i + 1) != Some(&b'x'));
        if plain { out.push(char::from(b)) } else { out.push_str(&format!("_x{b:02x}")) }
    }
    out
}

/// Checks a prefix of symbols: a C identifier.
///
/// # Errors
/// [`Error::Input`] if it is not one.
pub(crate) fn check_prefix(prefix: &str) -> Result<()> {
    if is_identifier(prefix) {
        Ok(())
    } else {
        Err(Error::input(format!("the symbol prefix `{prefix}` is not a C identifier"))
            .help("use letters, digits and `_`, and begin with a letter"))
    }
}

/// Whether a name is one that C functions can have.
pub(super) fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::hash::HashSet;

    #[test]
    fn symbols_are_identifiers_and_differ() {
        let names = [
            "main",
            "a_b",
            "a_xb",
            "a_x5fxb",
            "a x",
            "a_x20x",
            "é",
            "_xc3_xa9",
            "_",
            "",
            "_x",
            "__x",
            "gpu_0/data_0",
            "exp",
            "日本",
        ];
        let symbols: HashSet<String> = names.iter().map(|n| symbol(PREFIX, n)).collect();
        assert_eq!(symbols.len(), names.len());
        assert!(symbols.iter().all(|s| is_identifier(s)), "{symbols:?}");
        assert_eq!(symbol(PREFIX, "fused_conv_1"), "tw_k_fused_conv_1");
        assert_eq!(symbol("m", "a_x b"), "m_k_a_x5fx_x20b");
    }

    #[test]
    fn a_prefix_is_an_identifier() {
        assert!(check_prefix("net_2").is_ok());
        for bad in ["", "2net", "a-b", "é", "a b"] {
            let e = check_prefix(bad).expect_err("not an identifier");
            assert!(e.to_string().contains(&format!("`{bad}`")), "{e}");
        }
    }
}
