//! `tilewright layout`: what it says, exit codes, the page.

use super::{Scratch, tilewright};

#[test]
fn a_layout_is_described() {
    tilewright(&["layout", "nChw16c", "--shape", "1,20,2,1"])
        .code(0)
        .says("map       lambda n, c, h, w: [n, c // 16, h, w, c % 16]")
        .says("shape     (1, 20, 2, 1) -> (1, 2, 2, 1, 16)")
        .says("padding   24 of 64 cells, where c_0 == 1 and c_1 >= 4")
        .says("inverse   lambda n, c_0, h, w, c_1: (n, c_0 * 16 + c_1, h, w)")
        .says("vector    along c: 16 elements, aligned")
        .says("0,19,1,0        ·");
    // A tile is whole also where the axis is shorter.
    tilewright(&["layout", "OIhw8i32o2i", "--shape", "12,20,3,5"])
        .code(0)
        .says("shape     (12, 20, 3, 5) -> (1, 2, 3, 5, 8, 32, 2)")
        .says("padding   11760 of 15360 cells, where i_0 == 1 and i_1 * 2 + i_2 >= 4 or o_1 >= 12");
    tilewright(&["layout", "lambda i, j: [i, j ^ (i % 8)]", "--shape", "rows,8"])
        .code(0)
        .says("shape     (rows, 8) -> (rows, 8)")
        .says("padding   none");
    tilewright(&["layout", "(32,32):(32,1)"])
        .code(0)
        .says("banks     along i0: degree 32, lanes 0 and 1 at (0, 0) and (1, 0)");
    tilewright(&["layout", "(4,2):(1,0)"])
        .code(0)
        .says("inverse   none: (0, 0) and (0, 1) have one address");
}

#[test]
fn layouts_are_translated_and_compared() {
    tilewright(&["layout", "nChw16c", "--as", "tvm"]).code(0).says("NCHW16c\n");
    tilewright(&["layout", "OIhw4i16o4i", "--as", "tvm"]).code(2).complains("`I` has two");
    tilewright(&["layout", "nChw16c", "--as", "cute"]).code(2).complains("give one");
    tilewright(&["layout", "nChw16c", "--equal", "NCHW16c"]).code(0).complains("for every shape");
    tilewright(&["layout", "nChw16c", "--equal", "NCHW8c", "--shape", "1,20,2,1"])
        .code(1)
        .says("element (0, 0, 1, 0) of (1, 20, 2, 1) lies at 16 and at 8");
    for shape in ["12,20,3,5", "512,20,300,50"] {
        let other = "inner_dims_pos = [1] inner_tiles = [24]";
        tilewright(&["layout", "NCHW24c", "--equal", other, "--shape", shape]).code(0);
        tilewright(&["layout", "NCHW24c", "--equal", "NCHW32c", "--shape", shape])
            .code(1)
            .says(" lies at 24 and at 32");
    }
    tilewright(&["layout", "NCHW24c", "--as", "cute", "--shape", "12,20,3,5"])
        .code(0)
        .says("(12,20,3,5):(360,1,120,24)");
    tilewright(&[
        "layout",
        "lambda i, j: [i % 7, j, i // 7]",
        "--equal",
        "lambda i, j: [i % 7 + 0 * j, j, i // 7]",
    ])
    .code(0);
    tilewright(&["layout", "aBcd"]).code(2).complains("1 | aBcd\n     |  ^");
    tilewright(&["layout", "nchw", "--as", "other"])
        .code(2)
        .complains("expected one of lambda, cute");
    tilewright(&["layout", "nchw", "--shape", "1,2"]).code(2).complains("4 axes");
}

#[test]
fn a_page_shows_the_cells() {
    let scratch = Scratch::new();
    let page = scratch.path("layout.html");
    tilewright(&["layout", "Sw<2,0,2> o 0 o (4,4):(4,1)", "--html", &page]).code(0);
    let text = std::fs::read_to_string(&page).expect("a page");
    assert!(text.contains("<h1><code>Sw&lt;2,0,2&gt; o 0 o (4,4):(4,1)</code></h1>"));
    assert_eq!(text.matches("<td ").count(), 16);
    assert!(!text.contains("<script"));
}
