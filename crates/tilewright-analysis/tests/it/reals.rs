//! Whether functions are equal in the reals.

use tilewright_analysis::reals::{equal_in_reals, equal_with_constants, number_made};
use tilewright_ir::{Source, Tensor, TensorFunc};
use tilewright_tvmscript::parse_module;

/// A function of `x` and `y`, `[7, 5]`, that stores a value.
fn elementwise(value: &str) -> TensorFunc {
    func(&format!(
        "    for i, j in T.grid(7, 5):
        with T.block(\"z\"):
            vi, vj = T.axis.remap(\"SS\", [i, j])
            z[vi, vj] = {}",
        value.replace("X", "x[vi, vj]").replace("Y", "y[vi, vj]")
    ))
}

fn func(body: &str) -> TensorFunc {
    let shape = "T.Buffer((7, 5), \"float32\")";
    let text = format!("@T.prim_func\ndef f(x: {shape}, y: {shape}, z: {shape}):\n{body}\n");
    let module =
        parse_module(&Source::new("f.py", text)).unwrap_or_else(|e| panic!("{}", e.render()));
    module.tensor("f").expect("the function").as_ref().clone()
}

fn rounding(a: &str, b: &str) -> Option<f64> {
    equal_in_reals(&elementwise(a), &elementwise(b))
}

#[test]
fn sums_and_products_have_no_order_and_constants_are_rounded() {
    let halves = "X * T.float32(0.5) * (T.erf(X / T.float32(1.4142135)) + T.float32(1.0))";
    let gelu = "T.float32(0.5) * (X + X * T.erf(X * T.float32(0.70710677)))";
    assert!(rounding(halves, gelu).is_some_and(|r| r > 0.0 && r < 1e-6));
    assert_eq!(rounding("X / T.sqrt(Y)", "T.rsqrt(Y) * X"), Some(0.0));
    assert_eq!(
        rounding("X * T.sigmoid(Y)", "X / (T.exp(T.float32(0.0) - Y) + T.float32(1.0))"),
        Some(0.0)
    );
    assert_eq!(rounding("(X - Y) * (X + Y)", "X * X - Y * Y"), Some(0.0));
    assert_eq!(rounding("T.max(X, Y)", "T.max(Y, X)"), Some(0.0));
    let [inside, outside] =
        ["T.max(X * T.float32(4.0), T.float32(0.0))", "T.float32(4.0) * T.max(X, T.float32(0.0))"];
    assert_eq!(rounding(inside, outside), Some(0.0));
}

/// A comparison is one of a difference with zero; what is chosen by it may be an end, and what both values have in common
/// goes out.
#[test]
fn choices_by_comparisons_have_one_form() {
    let select = |c: &str, t: &str, f: &str| format!("T.Select({c}, {t}, {f})");
    let selu = "(T.exp(X) - T.float32(1.0)) * T.float32(1.5)";
    let scaled = "T.float32(2.0) * (T.float32(1.5) * T.exp(X) - T.float32(1.5))";
    let zero = "X < T.float32(0.0)";
    for (a, b) in [
        (select("X < Y", "X", "Y"), "T.min(X, Y)".to_owned()),
        (select("X < Y", "Y", "X"), "T.max(X, Y)".to_owned()),
        (select("X > Y", "X", "Y"), "T.max(Y, X)".to_owned()),
        (
            select("X <= Y", "X * T.float32(3.0)", "Y * T.float32(3.0)"),
            "T.float32(3.0) * T.min(X, Y)".to_owned(),
        ),
        (select(zero, "X * T.float32(0.5)", "X"), "T.max(X * T.float32(0.5), X)".to_owned()),
        (
            format!("T.float32(2.0) * {}", select(zero, selu, "X")),
            select(zero, scaled, "X * T.float32(2.0)"),
        ),
        (select("X < Y or X == Y", "X * Y", "X"), select("X <= Y", "X * Y", "X")),
        (select("not (X < Y)", "X * Y", "X"), select("Y <= X", "X * Y", "X")),
        (
            select("X + T.float32(1.0) < Y", "X * Y", "X"),
            select("Y * T.float32(4.0) > X * T.float32(4.0) + T.float32(4.0)", "X * Y", "X"),
        ),
    ] {
        assert!(rounding(&a, &b).is_some(), "{a} and {b}");
    }
    for (a, b) in [
        (select("X < Y", "X", "Y"), "T.max(X, Y)".to_owned()),
        (select("X < Y", "X", "Y + T.float32(1.0)"), "T.min(X, Y)".to_owned()),
        (select("X < Y", "X * Y", "X"), select("X <= Y", "X * Y", "X")),
        (select("X < Y", "X * Y", "X"), select("Y < X", "X * Y", "X")),
        (select("not (X < Y)", "X * Y", "X"), select("X <= Y", "X * Y", "X")),
        (select("X < Y or X == X + Y", "X * Y", "X"), select("X <= Y", "X * Y", "X")),
        (select("X == X", "X", "Y"), select("Y == Y", "X", "Y")),
        (select(zero, selu, "X"), select(zero, selu, "X * T.float32(2.0)")),
    ] {
        assert_eq!(rounding(&a, &b), None, "{a} and {b}");
    }
}

/// Minima and maxima with numbers have one form, whatever is multiplied or added between them, and rounding keeps order.
#[test]
fn what_is_held_between_numbers_has_one_form() {
    let clip = |x: &str, low: &str, high: &str| {
        format!("T.min(T.max({x}, T.float32({low})), T.float32({high}))")
    };
    let byte = |x: &str, scale: &str| {
        clip(&format!("T.nearbyint(({x}) * T.float32({scale}))"), "0.0", "255.0")
    };
    for (a, b) in [
        (clip("X", "-1.0", "2.0"), "T.max(T.min(X, T.float32(2.0)), T.float32(-1.0))".to_owned()),
        (clip(&clip("X", "0.0", "6.0"), "-1.0", "4.0"), clip("X", "0.0", "4.0")),
        (
            "T.max(T.float32(-4.0) * X + T.float32(1.0), T.float32(0.0))".to_owned(),
            "T.float32(1.0) - T.float32(4.0) * T.min(X, T.float32(0.25))".to_owned(),
        ),
        // What is clipped farther away before a quantisation, or in the same place.
        (byte(&clip("X", "0.0", "6.0"), "100.0"), byte("X", "100.0")),
        (byte("T.max(X, T.float32(-0.004))", "100.0"), byte("X", "100.0")),
    ] {
        assert_eq!(rounding(&a, &b), Some(0.0), "{a} and {b}");
    }
    for (a, b) in [
        (clip("X", "-1.0", "2.0"), clip("X", "-1.0", "2.1")),
        (clip(&clip("X", "0.0", "6.0"), "-1.0", "4.0"), clip("X", "-1.0", "4.0")),
        (byte(&clip("X", "0.0", "6.0"), "10.0"), byte("X", "10.0")),
        (byte("T.max(X, T.float32(0.006))", "100.0"), byte("X", "100.0")),
    ] {
        assert_eq!(rounding(&a, &b), None, "{a} and {b}");
    }
}

/// The largest of three neighbours, as a byte: quantised before, or behind.
fn pool(is_before: bool, pad: &str, first: &str, zero: &str) -> TensorFunc {
    let byte = |x: &str| {
        format!(
            "T.Cast(\"uint8\", T.min(T.max(T.nearbyint({x} / T.float32(0.3)) + T.float32({zero}), T.float32(0.0)), T.float32(255.0)))"
        )
    };
    let dtype = if is_before { "uint8" } else { "float32" };
    let (inside, last) = match is_before {
        true => (byte("x[vi, vj - 1]"), "m[vi, vj]".to_owned()),
        false => ("x[vi, vj - 1]".to_owned(), byte("m[vi, vj]")),
    };
    of_text(&format!(
        "@T.prim_func
def f(x: T.Buffer((7, 5), \"float32\"), z: T.Buffer((7, 5), \"uint8\")):
    p = T.alloc_buffer((7, 7), \"{dtype}\")
    m = T.alloc_buffer((7, 5), \"{dtype}\")
    for i, j in T.grid(7, 7):
        with T.block(\"p\"):
            vi, vj = T.axis.remap(\"SS\", [i, j])
            p[vi, vj] = T.if_then_else(vj >= 1 and vj < 6, {inside}, {pad})
    for i, j, k in T.grid(7, 5, 3):
        with T.block(\"m\"):
            vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])
            with T.init():
                m[vi, vj] = {first}
            m[vi, vj] = T.max(m[vi, vj], p[vi, vj + vk])
    for i, j in T.grid(7, 5):
        with T.block(\"z\"):
            vi, vj = T.axis.remap(\"SS\", [i, j])
            z[vi, vj] = {last}
"
    ))
}

/// What keeps order leaves a maximum, also where some of what is looked at lies beyond an edge.
#[test]
fn a_maximum_is_quantised_before_or_behind() {
    let nothing = "T.float32(\"-inf\")";
    let behind = pool(false, nothing, nothing, "3.0");
    let before = |pad: &str, zero: &str| pool(true, pad, "T.uint8(0)", zero);
    assert_eq!(equal_in_reals(&behind, &before("T.uint8(0)", "3.0")), Some(0.0));
    for other in [
        before("T.uint8(4)", "3.0"),
        before("T.uint8(0)", "4.0"),
        pool(false, "T.float32(0.0)", nothing, "3.0"),
        pool(false, nothing, "T.float32(0.0)", "3.0"),
    ] {
        assert_eq!(equal_in_reals(&behind, &other), None);
    }
}

/// What was rounded is an integer, however large it may be.
#[test]
fn what_is_rounded_twice_is_rounded_once() {
    let twice = "T.nearbyint(T.nearbyint(X) * T.float32(3.0) + T.float32(2.0))";
    assert_eq!(rounding(twice, "T.nearbyint(X) * T.float32(3.0) + T.float32(2.0)"), Some(0.0));
    let halves = "T.nearbyint(T.nearbyint(X) * T.float32(0.5))";
    assert_eq!(rounding(halves, "T.nearbyint(X) * T.float32(0.5)"), None);
}

#[test]
fn what_differs_in_the_reals_is_not_equal() {
    for (a, b) in [
        ("X - Y", "Y - X"),
        ("X / Y", "Y / X"),
        ("T.sqrt(X + T.float32(1e-05))", "T.sqrt(X + T.float32(1e-06))"),
        ("X * T.float32(0.5)", "X * T.float32(0.50001)"),
        ("T.erf(X)", "T.tanh(X)"),
        ("T.max(X, T.float32(0.0))", "X"),
        ("T.max(X, Y)", "T.min(X, Y)"),
        (
            "T.max(T.float32(-4.0) * X, T.float32(0.0))",
            "T.float32(-4.0) * T.max(X, T.float32(0.0))",
        ),
        ("X", "Y"),
    ] {
        assert_eq!(rounding(a, b), None, "{a} and {b}");
    }
}

/// A function `f` of a module.
fn of_text(text: &str) -> TensorFunc {
    let module =
        parse_module(&Source::new("f.py", text)).unwrap_or_else(|e| panic!("{}", e.render()));
    module.tensor("f").expect("the function").as_ref().clone()
}

/// The mean of eight bytes of each row, as one: sums of floats, or of integers that are rounded twice.
fn mean(first: &str, dtype: &str, value: &str, last: &str) -> TensorFunc {
    of_text(&format!(
        "@T.prim_func
def f(x: T.Buffer((3, 8), \"uint8\"), z: T.Buffer((3,), \"uint8\")):
    s = T.alloc_buffer((3,), \"{dtype}\")
    for i, k in T.grid(3, 8):
        with T.block(\"s\"):
            vi, vk = T.axis.remap(\"SR\", [i, k])
            with T.init():
                s[vi] = {first}
            s[vi] = s[vi] + {value}
    for i in range(3):
        with T.block(\"z\"):
            vi = T.axis.remap(\"S\", [i])
            z[vi] = T.Cast(\"uint8\", T.min(T.max({last}, T.float32(0.0)), T.float32(255.0)))
"
    ))
}

/// What was rounded is not rounded again, and a scale leaves the sum.
#[test]
fn a_mean_of_quantised_values_is_a_scaled_sum() {
    let floats = mean(
        "T.float64(0.0)",
        "float64",
        "T.Cast(\"float64\", T.Cast(\"float32\", T.Cast(\"int32\", x[vi, vk]) - 140) * T.float32(0.5))",
        "T.nearbyint(T.Cast(\"float32\", s[vi] * T.float64(0.125)) / T.float32(0.7)) + T.float32(210.0)",
    );
    let scale = 0.5 / 8.0 / 0.7;
    let whole = |zero: i32| {
        mean(
            "0",
            "int32",
            &format!("(T.Cast(\"int32\", x[vi, vk]) - {zero})"),
            &format!(
                "T.nearbyint(T.nearbyint(T.Cast(\"float32\", s[vi]) * T.float32({scale})) + T.float32(210.0))"
            ),
        )
    };
    assert!(equal_in_reals(&floats, &whole(140)).is_some());
    assert_eq!(equal_in_reals(&floats, &whole(139)), None);
}

/// A product of bytes with weights and scales by channel that are constants, of two by two.
fn dense(weights: &str, value: &str, last: &str) -> TensorFunc {
    of_text(&format!(
        "@T.prim_func
def f(x: T.Buffer((3, 2), \"uint8\"), w: T.Buffer((2, 2), \"{weights}\"), s: T.Buffer((2,), \"float32\"), z: T.Buffer((3, 2), \"float32\")):
    a = T.alloc_buffer((3, 2), \"float32\")
    for i, j, k in T.grid(3, 2, 2):
        with T.block(\"a\"):
            vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])
            with T.init():
                a[vi, vj] = T.float32(0.0)
            a[vi, vj] = a[vi, vj] + {value}
    for i, j in T.grid(3, 2):
        with T.block(\"z\"):
            vi, vj = T.axis.remap(\"SS\", [i, j])
            z[vi, vj] = T.exp({last})
"
    ))
}

/// Weights that were dequantised, or are multiplied as integers with zero points and scaled behind the sum.
#[test]
fn constants_are_compared_by_their_elements() {
    let floats = dense(
        "float32",
        "T.Cast(\"float32\", T.Cast(\"int32\", x[vi, vk]) - 7) * w[vk, vj]",
        "a[vi, vj] + s[vj]",
    );
    let integers = dense(
        "int8",
        "T.Cast(\"float32\", (T.Cast(\"int32\", x[vi, vk]) - 7) * (T.Cast(\"int32\", w[vk, vj]) - 3))",
        "(a[vi, vj] + T.float32(4.0)) * s[vj]",
    );
    // `w = (q - 3) * s`, and 4 is added before the scale.
    let tensor =
        |shape: &[usize], values: &[f32]| Tensor::from_slice(shape, values).expect("elements");
    let whole = [5i8, -9, 3, 100];
    let scales = [0.25f32, 0.1];
    let dequantised: Vec<f32> =
        whole.iter().enumerate().map(|(k, q)| (f32::from(*q) - 3.0) * scales[k % 2]).collect();
    let first = [tensor(&[2, 2], &dequantised), tensor(&[2], &[1.0, 0.4])];
    let weights = Tensor::from_slice(&[2, 2], &whole).expect("elements");
    let second = |scales: [f32; 2]| [weights.clone(), tensor(&[2], &scales)];
    let compare = |scales| equal_with_constants((&floats, &first), (&integers, &second(scales)));
    assert!(compare(scales).is_some());
    assert_eq!(compare([0.25, 0.101]), None);
    let mut other = first.clone();
    other[0] = tensor(&[2, 2], &[0.5, -1.2, 0.25, 9.7]);
    assert_eq!(equal_with_constants((&floats, &other), (&integers, &second(scales))), None);
}

/// An odd number leaves a rounding where no integer is scaled to the middle between two others.
#[test]
fn zero_points_leave_roundings_without_ties() {
    let rounded = |scale: &str, inside: &str, behind: &str| {
        of_text(&format!(
            "@T.prim_func
def f(x: T.Buffer((3,), \"uint8\"), z: T.Buffer((3,), \"float32\")):
    for i in range(3):
        with T.block(\"z\"):
            vi = T.axis.remap(\"S\", [i])
            z[vi] = T.nearbyint(T.Cast(\"float32\", x[vi]) * T.float32({scale}){inside}){behind}
"
        ))
    };
    let (three, four) = (" + T.float32(3.0)", " + T.float32(4.0)");
    let compare = |scale, by| equal_in_reals(&rounded(scale, by, ""), &rounded(scale, "", by));
    assert!(compare("0.37", three).is_some());
    // 0.5 and 3.5 are rounded to 0 and 4.
    assert_eq!(compare("0.5", three), None);
    assert!(compare("0.5", four).is_some());
}

/// `z = scale of the sum of x * y` over so many elements of each row, with factors before and behind.
fn product(count: usize, inside: &str, behind: &str) -> TensorFunc {
    func(&format!(
        "    s = T.alloc_buffer((7, 1), \"float32\")
    for i, o, k in T.grid(7, 1, {count}):
        with T.block(\"s\"):
            vi, vo, vk = T.axis.remap(\"SSR\", [i, o, k])
            with T.init():
                s[vi, vo] = T.float32(0.0)
            s[vi, vo] = s[vi, vo] + x[vi, vk] * y[vi, vk]{inside}
    for i, j in T.grid(7, 5):
        with T.block(\"z\"):
            vi, vj = T.axis.remap(\"SS\", [i, j])
            z[vi, vj] = s[vi, 0] * x[vi, vj]{behind}"
    ))
}

#[test]
fn factors_leave_sums() {
    let three = " * T.float32(3.0)";
    let [before, behind] = [product(5, three, ""), product(5, "", three)];
    assert_eq!(equal_in_reals(&before, &behind), Some(0.0));
    let other = product(5, " * T.float32(2.0)", "");
    assert_eq!(equal_in_reals(&before, &other), None);
}

#[test]
fn a_sum_of_one_product_is_that_product() {
    let sum = product(1, "", "");
    let direct = elementwise("x[vi, 0] * y[vi, 0] * X");
    assert_eq!(equal_in_reals(&sum, &direct), Some(0.0));
    assert_eq!(equal_in_reals(&product(2, "", ""), &direct), None);
}

/// A quantised product `z` of `x` and `y`: `x` in a type with a zero point, the sums in `sums`.
fn quantised(dtype: &str, zero: i32, least: i32, sums: &str, other: i32) -> TensorFunc {
    let most = least + 255;
    func(&format!(
        "    q = T.alloc_buffer((7, 7), \"{dtype}\")
    s = T.alloc_buffer((7, 5), \"{sums}\")
    for i, j in T.grid(7, 7):
        with T.block(\"q\"):
            vi, vj = T.axis.remap(\"SS\", [i, j])
            q[vi, vj] = T.if_then_else(vj >= 1 and vj < 6, T.Cast(\"{dtype}\", T.min(T.max(T.nearbyint(x[vi, vj - 1] * T.float32(8.0)) + T.float32({zero}), T.float32({least})), T.float32({most}))), T.{dtype}({zero}))
    for i, j, k in T.grid(7, 5, 3):
        with T.block(\"s\"):
            vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])
            with T.init():
                s[vi, vj] = T.{sums}(0)
            s[vi, vj] = s[vi, vj] + (T.Cast(\"{sums}\", q[vi, vj + vk]) - T.{sums}({zero})) * (T.{sums}({other}) - T.Cast(\"{sums}\", q[vk, vj]))
    for i, j in T.grid(7, 5):
        with T.block(\"z\"):
            vi, vj = T.axis.remap(\"SS\", [i, j])
            z[vi, vj] = T.Cast(\"float32\", s[vi, vj]) * T.float32(0.25) + y[vi, vj]"
    ))
}

/// A zero point moves with the range of its type; a range that ends elsewhere, or sums that leave their type, are
/// something else.
#[test]
fn quantised_values_have_no_zero_point() {
    let signed = quantised("int8", 0, -128, "int32", 3);
    let unsigned = quantised("uint8", 128, 0, "int32", 131);
    assert_eq!(equal_in_reals(&signed, &unsigned), Some(0.0));
    for other in [
        quantised("uint8", 127, 0, "int32", 130),
        quantised("uint8", 128, 0, "int32", 3),
        quantised("int8", 0, -128, "int32", 2),
    ] {
        assert_eq!(equal_in_reals(&signed, &other), None);
    }
    let narrow = quantised("int8", 0, -128, "int16", 3);
    assert_eq!(equal_in_reals(&signed, &narrow), None);
}

/// A softmax over some elements.
fn softmax(elements: usize) -> TensorFunc {
    let text = format!(
        "@T.prim_func
def f(x: T.Buffer((7, {elements}), \"float32\"), z: T.Buffer((7, {elements}), \"float32\")):
    m = T.alloc_buffer((7,), \"float32\")
    s = T.alloc_buffer((7,), \"float32\")
    for i, k in T.grid(7, {elements}):
        with T.block(\"m\"):
            vi, vk = T.axis.remap(\"SR\", [i, k])
            with T.init():
                m[vi] = T.float32(\"-inf\")
            m[vi] = T.max(m[vi], x[vi, vk])
    for i, k in T.grid(7, {elements}):
        with T.block(\"s\"):
            vi, vk = T.axis.remap(\"SR\", [i, k])
            with T.init():
                s[vi] = T.float32(0)
            s[vi] = s[vi] + T.exp(x[vi, vk] - m[vi])
    for i, k in T.grid(7, {elements}):
        with T.block(\"z\"):
            vi, vk = T.axis.remap(\"SS\", [i, k])
            z[vi, vk] = T.exp(x[vi, vk] - m[vi]) / s[vi]
"
    );
    let module =
        parse_module(&Source::new("f.py", text)).unwrap_or_else(|e| panic!("{}", e.render()));
    module.tensor("f").expect("the function").as_ref().clone()
}

#[test]
fn a_softmax_over_one_element_is_one() {
    assert_eq!(number_made(&softmax(1)), Some(1.0));
    assert_eq!(number_made(&softmax(2)), None);
}

#[test]
fn what_is_no_number_everywhere_is_none() {
    assert_eq!(number_made(&elementwise("X / X * T.float32(3.0)")), Some(3.0));
    assert_eq!(number_made(&elementwise("X / Y")), None);
    let some = "    for i, j in T.grid(6, 5):
        with T.block(\"z\"):
            vi, vj = T.axis.remap(\"SS\", [i, j])
            z[vi, vj] = T.float32(3.0)";
    assert_eq!(number_made(&func(some)), None);
}

/// What stages store in parts, one after the other, is one value where it is read.
#[test]
fn buffers_are_stored_in_parts() {
    let joined = |second: &str, at: &str| {
        func(&format!(
            "    c = T.alloc_buffer((7, 10), \"float32\")
    for i, j in T.grid(7, 5):
        with T.block(\"a\"):
            vi, vj = T.axis.remap(\"SS\", [i, j])
            c[vi, vj] = x[vi, vj] * T.float32(2.0)
    for i, j in T.grid(7, 5):
        with T.block(\"b\"):
            vi, vj = T.axis.remap(\"SS\", [i, j])
            c[vi, vj + {second}] = y[vi, vj]
    for i, j in T.grid(7, 5):
        with T.block(\"z\"):
            vi, vj = T.axis.remap(\"SS\", [i, j])
            z[vi, vj] = T.exp(c[vi, {at}])"
        ))
    };
    let of = |value: &str| elementwise(&format!("T.exp({value})"));
    let twice = "X * T.float32(2.0)";
    assert_eq!(equal_in_reals(&joined("5", "vj"), &of(twice)), Some(0.0));
    assert_eq!(equal_in_reals(&joined("5", "vj + 5"), &of("Y")), Some(0.0));
    assert_eq!(equal_in_reals(&joined("5", "vj + 5"), &of("X")), None);
    assert_eq!(equal_in_reals(&joined("5", "vj + 1"), &of(twice)), None);
    // One that is stored twice, or not as a whole, is left.
    assert_eq!(equal_in_reals(&joined("4", "vj"), &of(twice)), None);
}
