//! The text of the functions that are instructions of PTX: `mma.sync` with registers of 32 bits from the elements of a
//! lane, which are neighbours where they share one; `ldmatrix`; `cp.async`.

use tilewright_ir::DType;
use tilewright_target::{Tile, instruction};

use super::types;

/// What the names of all of them begin with.
pub(super) const PREFIX: &str = "mma_";

/// The definition of the function of an instruction, by what its name has behind that.
pub(super) fn definition(name: &str) -> Option<String> {
    let i = instruction(&format!("{PREFIX}{name}")).filter(|i| i.is_of_warp())?;
    let [a, b, c] = [i.a, i.b, i.c].map(|t| t.shape().last().copied().unwrap_or(0));
    let per = 4 / i.a.dtype.bytes() as i64;
    let (words_a, words_b) = (a / per, b / per);
    let types = [&i.a, &i.b, &i.c].map(|t| types::memory(t.dtype).unwrap_or("void"));
    let sum = if i.c.dtype.is_float() { "f" } else { "r" };
    let list = |from: i64, count: i64| {
        let names: Vec<String> = (from..from + count).map(|k| format!("%{k}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let outputs: Vec<String> = (0..c).map(|k| format!("\"+{sum}\"(c[{k}])")).collect();
    let word = |array: &str, k: i64, of: &Tile| match of.dtype.bits {
        // Rounded to what the instruction takes.
        32 => format!("tw_tf32({array}[{k}])"),
        _ => format!("*(const uint *)&{array}[{}]", k * per),
    };
    let inputs = (0..words_a).map(|k| format!("\"r\"({})", word("a", k, &i.a)));
    let inputs = inputs.chain((0..words_b).map(|k| format!("\"r\"({})", word("b", k, &i.b))));
    let kind = |d: DType| match (d.bits, d.is_float(), types::narrow(d)) {
        (32, true, _) => "tf32",
        (16, _, Some("bf16")) => "bf16",
        (16, ..) => "f16",
        (8, ..) if types::value(d).is_ok_and(|t| t == "char") => "s8",
        _ => "u8",
    };
    let total = if sum == "f" { "f32" } else { "s32" };
    let shape = name.split('_').next()?;
    let asked = format!(
        "mma.sync.aligned.{shape}.row.col.{total}.{}.{}.{total} {}, {}, {}, {};",
        kind(i.a.dtype),
        kind(i.b.dtype),
        list(0, c),
        list(c, words_a),
        list(c + words_a, words_b),
        list(0, c)
    );
    let rounding = if i.a.dtype.bits == 32 {
        "static uint tw_tf32(float x)\n{\n    uint y;\n    asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(y) : \"f\"(x));\n    return y;\n}\n\n"
    } else {
        ""
    };
    Some(format!(
        "{rounding}static __forceinline__ void tw_mma_{name}(const {} *a, const {} *b, {} *c)\n{{\n    \
         asm volatile(\"{asked}\"\n        : {}\n        : {});\n}}\n",
        types[0],
        types[1],
        types[2],
        outputs.join(", "),
        inputs.collect::<Vec<_>>().join(", ")
    ))
}

/// The definition of `ldmatrix`: so many matrices of 8 rows of 16 bytes, those of 16-bit elements turned or not.
pub(super) fn load_matrix(kind: &str) -> String {
    let (count, turned) = match kind.strip_suffix("_trans") {
        Some(count) => (count, ".trans"),
        None => (kind, ""),
    };
    let words = if count == "x4" { 4 } else { 2 };
    let list: Vec<String> = (0..words).map(|k| format!("%{k}")).collect();
    let outputs: Vec<String> = (0..words).map(|k| format!("\"=r\"(word[{k}])")).collect();
    format!(
        "static __forceinline__ void tw_ldmatrix_{kind}(void *to, const void *row)\n{{\n    uint word[{words}];\n    \
         asm volatile(\"ldmatrix.sync.aligned.m8n8.{count}{turned}.shared.b16 {{{}}}, [%{words}];\"\n        : {}\n        \
         : \"r\"((uint)__cvta_generic_to_shared(row)) : \"memory\");\n    for (int k = 0; k < {words}; ++k)\n        \
         ((uint *)to)[k] = word[k];\n}}\n",
        list.join(", "),
        outputs.join(", ")
    )
}

/// The definition of the function that has bytes copied, or zeros written, by the next wait.
pub(super) fn copy(kind: &str) -> String {
    let bytes = kind.trim_start_matches("async_");
    // Only whole sectors pass the first cache.
    let through = if bytes == "16" { "cg" } else { "ca" };
    format!(
        "static __forceinline__ void tw_copy_{kind}(void *to, const void *from, bool there)\n{{\n    \
         asm volatile(\"cp.async.{through}.shared.global [%0], [%1], {bytes}, %2;\"\n        : \n        : \
         \"r\"((uint)__cvta_generic_to_shared(to)), \"l\"(from), \"r\"(there ? {bytes} : 0) : \"memory\");\n}}\n"
    )
}

/// The definition of the function that waits for all that is copied.
pub(super) fn wait() -> String {
    "static __forceinline__ void tw_wait_copies()\n{\n    asm volatile(\"cp.async.wait_all;\" : : : \"memory\");\n}\n"
        .to_owned()
}
