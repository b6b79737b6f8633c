//! C functions for what C's operators do not do: division that rounds down and never traps, conversions
//! that saturate, minimum and maximum with `NaN`, 16-bit floats.
//!
//! A helper has a name with its type in it (`tw_floordiv_int`), and its text is written once into the
//! program that uses it. The integer arithmetic of 16-bit floats is that of the native code
//! (`emit::half`); CUDA has instructions for it.

use std::collections::BTreeSet;
use std::fmt::Write;

/// The helpers that a program uses, by name.
#[derive(Clone, Debug, Default)]
pub struct Helpers(BTreeSet<String>);

impl Helpers {
    /// Notes that one is used, and gives its name: `tw_KIND_TYPE`.
    pub fn name(&mut self, kind: &str, ty: &str) -> String {
        let name = if ty.is_empty() { format!("tw_{kind}") } else { format!("tw_{kind}_{ty}") };
        self.0.insert(format!("{kind} {ty}"));
        name
    }

    /// Adds those of another program.
    pub fn extend(&mut self, other: &Helpers) {
        self.0.extend(other.0.iter().cloned());
    }

    /// Their definitions.
    pub fn text(&self) -> String {
        self.defined(definition)
    }

    /// The same for CUDA, whose processors convert 16-bit floats.
    pub fn cuda_text(&self) -> String {
        let text =
            self.defined(|kind, ty| converted(kind, ty).unwrap_or_else(|| definition(kind, ty)));
        text.replace("static ", "static __device__ ")
    }

    fn defined(&self, definition: impl Fn(&str, &str) -> String) -> String {
        let mut out = String::new();
        for key in &self.0 {
            let (kind, ty) = key.split_once(' ').unwrap_or((key, ""));
            let _ = writeln!(out, "{}", definition(kind, ty));
        }
        out
    }
}

/// Largest and smallest values of an integer type.
fn limits(ty: &str) -> (&'static str, &'static str) {
    match ty {
        "char" => ("(-128)", "127"),
        "uchar" => ("0", "255"),
        "short" => ("(-32768)", "32767"),
        "ushort" => ("0", "65535"),
        "int" => ("(-2147483647 - 1)", "2147483647"),
        "uint" => ("0u", "4294967295u"),
        "ulong" => ("0UL", "18446744073709551615UL"),
        _ => ("(-9223372036854775807L - 1)", "9223372036854775807L"),
    }
}

/// Conversions of 16-bit floats by instructions of PTX: to the nearest value, of two the even one, as the integer
/// arithmetic of [`other`]; but for a NaN, of which there is one. Those to `bfloat16` came with `sm_80`.
fn converted(kind: &str, ty: &str) -> Option<String> {
    let text = match (kind, ty) {
        ("get", "f16") => {
            "static __forceinline__ float tw_get_f16(ushort x)
{
    float y;
    asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(x));
    return y;
}"
        }
        ("put", "f16") => {
            "static __forceinline__ ushort tw_put_f16(float x)
{
    ushort y;
    asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(y) : \"f\"(x));
    return y;
}"
        }
        ("round", "f16") => {
            "static __forceinline__ float tw_round_f16(float x)
{
    float y;
    asm(\"{.reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h;}\" : \"=f\"(y) : \"f\"(x));
    return y;
}"
        }
        ("round", "bf16") => {
            return Some(format!(
                "#if __CUDA_ARCH__ >= 800
static __forceinline__ float tw_round_bf16(float x)
{{
    ushort y;
    asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(y) : \"f\"(x));
    return as_float((uint)y << 16);
}}
#else
{}
#endif",
                other(kind, ty)
            ));
        }
        _ => return None,
    };
    Some(text.to_owned())
}

fn definition(kind: &str, ty: &str) -> String {
    let signed = !ty.starts_with('u');
    let body = match kind {
        // Of vectors: a choice by lane.
        "vmin" => "(a < b || a != a) ? a : b",
        "vmax" => "(a > b || a != a) ? a : b",
        // Some value for a divisor of zero; the smallest integer for it divided by -1.
        "truncdiv" if signed => "b == 0 ? a : b == -1 ? (T)(0 - (ulong)a) : (T)(a / b)",
        "truncdiv" => "b == 0 ? a : (T)(a / b)",
        "truncmod" if signed => "b == 0 || b == -1 ? (T)0 : (T)(a % b)",
        "truncmod" => "b == 0 ? (T)0 : (T)(a % b)",
        "floordiv" if signed => {
            "b == 0 ? a : b == -1 ? (T)(0 - (ulong)a)
        : (T)(a / b - ((a % b != 0) & ((a % b ^ b) < 0)))"
        }
        "floordiv" => "b == 0 ? a : (T)(a / b)",
        "floormod" if signed => {
            "b == 0 || b == -1 ? (T)0 : (T)(a % b + ((a % b != 0) & ((a % b ^ b) < 0) ? b : 0))"
        }
        "floormod" => "b == 0 ? (T)0 : (T)(a % b)",
        "min" if matches!(ty, "float" | "double") => "a < b || a != a ? a : b",
        "max" if matches!(ty, "float" | "double") => "a > b || a != a ? a : b",
        "min" => "a < b ? a : b",
        "max" => "a > b ? a : b",
        // Everything is shifted out by the width of the type or more.
        "shl" => "(ulong)b < 8 * sizeof(T) ? (T)((ulong)a << b) : (T)0",
        "shr" if signed => "a >> ((ulong)b < 8 * sizeof(T) ? (int)b : (int)(8 * sizeof(T)) - 1)",
        "shr" => "(ulong)b < 8 * sizeof(T) ? (T)(a >> b) : (T)0",
        _ => return other(kind, ty),
    };
    format!(
        "static {ty} tw_{kind}_{ty}({ty} a, {ty} b)\n{{\n    return {};\n}}",
        body.replace("(T)", &format!("({ty})")).replace("sizeof(T)", &format!("sizeof({ty})"))
    )
}

fn other(kind: &str, ty: &str) -> String {
    let (least, most) = limits(ty);
    match kind {
        "mma" => super::mma::definition(ty).unwrap_or_default(),
        "ldmatrix" => super::mma::load_matrix(ty),
        "copy" => super::mma::copy(ty),
        "wait" => super::mma::wait(),
        // Towards zero; the nearest value of the type outside of its range, and zero for NaN.
        "from_float" | "from_double" => {
            let from = if kind == "from_float" { "float" } else { "double" };
            let end = match ty {
                "long" => "9223372036854775808.0",
                "ulong" => "18446744073709551616.0",
                "int" => "2147483648.0",
                "uint" => "4294967296.0",
                "short" => "32768.0",
                "ushort" => "65536.0",
                "char" => "128.0",
                _ => "256.0",
            };
            let suffix = if from == "float" { "f" } else { "" };
            format!(
                "static {ty} tw_{kind}_{ty}({from} x)\n{{\n    return x != x ? ({ty})0 : x >= {end}{suffix} ? ({ty}){most} : x <= ({from}){least} ? ({ty}){least} : ({ty})x;\n}}"
            )
        }
        // A vector that begins at any element.
        "lanes" => {
            let element = ty.trim_end_matches(|c: char| c.is_ascii_digit());
            format!("typedef {ty} tw_{ty} __attribute__((aligned(sizeof({element}))));")
        }
        "channel" => "__constant sampler_t tw_border =
    CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;

static float tw_channel(float4 texel, int k)
{
    return k == 0 ? texel.x : k == 1 ? texel.y : k == 2 ? texel.z : texel.w;
}"
        .to_owned(),
        "abs" => format!(
            "static {ty} tw_abs_{ty}({ty} x)\n{{\n    return x < 0 ? ({ty})(0 - (ulong)x) : x;\n}}"
        ),
        "pow" => format!(
            "static {ty} tw_pow_{ty}({ty} x, {ty} n)
{{
    ulong base = (ulong)x, result = 1;
    if (n < 0)
        return x == 1 ? ({ty})1 : x + 1 == 0 ? ({ty})(n % 2 == 0 ? 1 : -1) : ({ty})0;
    for (; n > 0; n /= 2) {{
        if (n % 2 != 0)
            result *= base;
        base *= base;
    }}
    return ({ty})result;
}}"
        ),
        // To odd: a further rounding to at most 22 bits is one rounding of the value.
        "odd" if ty == "double" => "static float tw_odd_double(double x)
{
    float near = (float)x;
    double back = (double)near;
    int bits = as_int(near);
    if (back < x || back > x)
        bits = (bits - (fabs(back) > fabs(x))) | 1;
    return as_float(bits);
}"
        .to_owned(),
        "odd" => format!(
            "static float tw_odd_{ty}({ty} x)
{{
    ulong size = x < 0 ? 0 - (ulong)x : (ulong)x;
    int shift = 0;
    for (; size >> shift > 0xffffff; ++shift) ;
    ulong top = size >> shift;
    float value = ldexp((float)(int)(top | (top << shift != size)), shift);
    return x < 0 ? -value : value;
}}"
        ),
        "round" if ty == "bf16" => "static float tw_round_bf16(float x)
{
    int bits = as_int(x);
    int rounded = (int)((uint)bits + 0x7fffu + ((uint)bits >> 16 & 1u)) & -0x10000;
    return as_float(x != x ? (bits & -0x10000) | 0x400000 : rounded);
}"
        .to_owned(),
        "get" if ty == "bf16" => "static float tw_get_bf16(ushort x)
{
    return as_float((int)((uint)x << 16));
}"
        .to_owned(),
        "put" if ty == "bf16" => "static ushort tw_put_bf16(float x)
{
    return (ushort)((uint)as_int(x) >> 16);
}"
        .to_owned(),
        "round" => "static float tw_round_f16(float x)
{
    int bits = as_int(x), size = bits & 0x7fffffff, sign = bits ^ size, value;
    if (x != x)
        value = (size & -0x2000) | 0x400000;
    else if (size >= 0x477ff000)
        value = 0x7f800000;
    else if (size < 0x38800000)
        value = as_int((as_float(size) + 0.5f) - 0.5f);
    else
        value = (size + 0xfff + (size >> 13 & 1)) & -0x2000;
    return as_float(value | sign);
}"
        .to_owned(),
        "get" => "static float tw_get_f16(ushort x)
{
    int size = x & 0x7fff, sign = (int)((uint)(x ^ size) << 16), value;
    if (size < 0x400)
        value = as_int((float)size * 5.9604644775390625e-8f);
    else if (size >= 0x7c00)
        value = (size << 13) | 0x7f800000;
    else
        value = (size << 13) + 0x38000000;
    return as_float(value | sign);
}"
        .to_owned(),
        _ => "static ushort tw_put_f16(float x)
{
    int bits = as_int(x), size = bits & 0x7fffffff, value;
    if (size >= 0x7f800000)
        value = (size >> 13 & 0x3ff) | 0x7c00;
    else if (size < 0x38800000)
        value = as_int(as_float(size) + 0.5f) - 0x3f000000;
    else
        value = (size - 0x38000000) >> 13;
    return (ushort)(value | ((uint)(bits ^ size) >> 16));
}"
        .to_owned(),
    }
}
