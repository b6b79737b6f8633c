//! Schedules of tensor expressions: the worked examples of Apache TVM RFC 0039, each against the
//! same function from text under a schedule script.

use tilewright::schedule::LambdaItem;
use tilewright::schedule::{Permissions, Schedule};
use tilewright::te::{self, AXIS_SEPARATOR};
use tilewright_driver::schedule_script;
use tilewright_driver::{Result, Sizes, parse, print};
use tilewright_ir::{DType, Expr, Source, equal};
use tilewright_transform::lower::flatten::flatten_buffers;

/// `y = x * 2` of `x = a + 1`, as text.
fn text(shape: &[usize]) -> String {
    let list = |names: Vec<String>| names.join(", ");
    let buffer =
        format!("T.Buffer(({},), \"float32\")", list(shape.iter().map(usize::to_string).collect()));
    let axes = |prefix: &str| list((0..shape.len()).map(|k| format!("{prefix}i{k}")).collect());
    let (extents, kinds) =
        (list(shape.iter().map(usize::to_string).collect()), "S".repeat(shape.len()));
    let stage = |out: &str, value: &str| {
        format!(
            "    for {i} in T.grid({extents}):\n        with T.block(\"{out}\"):\n            \
             {v} = T.axis.remap(\"{kinds}\", [{i}])\n            {out}[{v}] = {value}\n",
            i = axes(""),
            v = axes("v"),
        )
    };
    format!(
        "@T.prim_func\ndef main(a: {buffer}, y: {buffer}):\n    x = T.alloc_buffer(({extents},))\n{}{}",
        stage("x", &format!("a[{}] + 1.0", axes("v"))),
        stage("y", &format!("x[{}] * 2.0", axes("v")))
    )
}

/// Lays `x` out in both ways, and gives the flat shape of its memory.
fn flat(
    shape: &[usize],
    script: &str,
    map: impl Fn(&[Expr]) -> Vec<LambdaItem> + Send + Sync + 'static,
) -> Result<Vec<i64>> {
    let a = te::placeholder("a", shape, DType::F32);
    let x = te::compute("x", shape, |i| a.at(i) + 1.0);
    let y = te::compute("y", shape, |i| x.at(i) * 2.0);
    let mut s = te::create_schedule([&a], [&y])?;
    s.stage(&x).transform_layout(map)?;
    let built = s.into_module();

    let module = parse(&text(shape), &Sizes::new())?;
    let mut schedule = Schedule::new(module, Permissions::default());
    let script = format!("s[x].transform_layout(\"x\", lambda {script})");
    schedule_script::apply(&mut schedule, &Source::new("trace.py", script), |_, _| Ok(()))?;
    equal::modules(&built, schedule.module(), &equal::Equality::loose())
        .unwrap_or_else(|d| panic!("{d}\n{}", print(&built)));

    let mut found = None;
    let flat = flatten_buffers(&tilewright_transform::lower::blocks::lower_blocks(
        built.tensor("main")?,
    )?)?;
    struct Shapes<'a>(&'a mut Option<Vec<i64>>);
    impl tilewright_ir::Visit for Shapes<'_> {
        fn buffer_def(&mut self, b: &tilewright_ir::Buffer) {
            if &*b.name == "x" {
                *self.0 = b.const_shape();
            }
        }
    }
    tilewright_ir::visit::walk_func(&mut Shapes(&mut found), &flat);
    Ok(found.expect("`x` is allocated"))
}

/// `e // 4` and `e % 4`.
fn split(e: &Expr) -> (LambdaItem, LambdaItem) {
    (e.clone().floordiv(4).into(), e.clone().floormod(4).into())
}

#[test]
fn without_a_layout_memory_is_flat() -> Result<()> {
    let all = |i: &[Expr]| i.iter().map(LambdaItem::from).collect();
    assert_eq!(flat(&[2, 3], "i, j: [i, j]", all)?, [6]);
    Ok(())
}

#[test]
fn the_first_index_changes_fastest() -> Result<()> {
    let turned = |i: &[Expr]| vec![(&i[1]).into(), (&i[0]).into()];
    assert_eq!(flat(&[2, 3], "i, j: [j, i]", turned)?, [6]);
    Ok(())
}

#[test]
fn from_nhwc_to_nchwc() -> Result<()> {
    let map = |i: &[Expr]| {
        let (outer, inner) = split(&i[3]);
        vec![(&i[0]).into(), outer, (&i[1]).into(), (&i[2]).into(), inner]
    };
    let found = flat(&[16, 64, 64, 128], "n, h, w, c: [n, c//4, h, w, c%4]", map)?;
    assert_eq!(found, [16 * 32 * 64 * 64 * 4]);
    Ok(())
}

#[test]
fn from_nhwc_to_a_texture() -> Result<()> {
    let map = |i: &[Expr]| {
        let (outer, inner) = split(&i[3]);
        vec![(&i[0]).into(), outer, (&i[1]).into(), AXIS_SEPARATOR, (&i[2]).into(), inner]
    };
    let script = "n, h, w, c: [n, c//4, h, te.AXIS_SEPARATOR, w, c%4]";
    assert_eq!(flat(&[16, 64, 64, 128], script, map)?, [16 * 32 * 64, 64 * 4]);
    Ok(())
}

#[test]
fn separators_group_axes() -> Result<()> {
    let shape = [3, 5, 7, 8];
    let one = |i: &[Expr]| {
        vec![(&i[0]).into(), (&i[1]).into(), AXIS_SEPARATOR, (&i[2]).into(), (&i[3]).into()]
    };
    let script = "*i: [i[0], i[1], te.AXIS_SEPARATOR, i[2], i[3]]";
    assert_eq!(flat(&shape, script, one)?, [15, 56]);
    let two = |i: &[Expr]| {
        let (a, b) = (AXIS_SEPARATOR, AXIS_SEPARATOR);
        vec![(&i[0]).into(), a, (&i[1]).into(), (&i[2]).into(), b, (&i[3]).into()]
    };
    let script = "*i: [i[0], te.AXIS_SEPARATOR, i[1], i[2], te.AXIS_SEPARATOR, i[3]]";
    assert_eq!(flat(&shape, script, two)?, [3, 35, 8]);
    let reordered = |i: &[Expr]| {
        let (outer, inner) = split(&i[3]);
        vec![(&i[0]).into(), outer, (&i[1]).into(), AXIS_SEPARATOR, (&i[2]).into(), inner]
    };
    let script = "*i: [i[0], i[3]//4, i[1], te.AXIS_SEPARATOR, i[2], i[3]%4]";
    assert_eq!(flat(&shape, script, reordered)?, [30, 28]);
    Ok(())
}

/// Inputs may be laid out, since the function has no callers yet; padding holds what is asked for.
#[test]
fn inputs_and_padding() -> Result<()> {
    let a = te::placeholder("a", &[14], DType::F32);
    let y = te::compute("y", &[14], |i| a.at(i) * 2.0);
    let mut s = te::create_schedule([&a], [&y])?;
    let map = |i: &[Expr]| {
        let (outer, inner) = split(&i[0]);
        vec![outer, inner]
    };
    s.stage(&a).transform_layout(map)?;
    s.stage(&y).transform_layout_padded(map, &0.into())?;
    let shapes: Vec<_> = s.func()?.buffers().map(|b| b.const_shape()).collect();
    assert_eq!(shapes, [Some(vec![4, 4]), Some(vec![4, 4])]);
    let text = print(&s.into_module());
    assert!(text.contains("T.if_then_else(v_i0_0 == 3 and v_i0_1 >= 2, T.float32(0.0)"), "{text}");
    Ok(())
}

#[test]
fn a_tensor_that_is_not_computed_has_no_stage() {
    let a = te::placeholder("a", &[4], DType::F32);
    let y = te::compute("y", &[4], |i| a.at(i) * 2.0);
    let z = te::compute("z", &[4], |i| a.at(i) * 3.0);
    let mut s = te::create_schedule([&a], [&y]).expect("a function");
    let e = s.stage(&z).transform_layout(|i| vec![(&i[0]).into()]).map(|_| ());
    let e = e.map_err(|e| e.to_string());
    assert_eq!(e, Err("the schedule computes no tensor `z`".to_owned()));
}
