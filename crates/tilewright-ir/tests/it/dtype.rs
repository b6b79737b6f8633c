//! Element types as text, and back.

use tilewright_ir::DType;

#[test]
fn text_round_trips() {
    for text in ["bool", "int8", "uint64", "float16", "bfloat16", "handle", "float32x16"] {
        assert_eq!(text.parse::<DType>().map(|d| d.to_string()).ok().as_deref(), Some(text));
    }
    for text in ["int7", "float32x", "float32x0", "x4", "f32", "int32x99999"] {
        assert!(text.parse::<DType>().is_err(), "{text}");
    }
}
