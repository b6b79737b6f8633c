//! What `reverse_compute_at`, `rfactor` and `tensorize` refuse, by changes of one program each.

use crate::common::schedule;
use expect_test::{Expect, expect};
use tilewright_ir::Result;
use tilewright_schedule::Schedule;
use tilewright_schedule::compute::{Placement, Position};

/// The message and its notes; `accepted` where there is none.
#[track_caller]
fn check(
    source: &str,
    changes: &[(&str, &str)],
    primitive: impl FnOnce(&mut Schedule) -> Result<()>,
    expected: Expect,
) {
    let changed = changes.iter().fold(source.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "`{from}` is not in\n{text}");
        text.replace(from, to)
    });
    let mut s = schedule(&changed);
    let text = match primitive(&mut s) {
        Ok(()) => "accepted".to_owned(),
        Err(e) => {
            let d = e.diagnostic();
            std::iter::once(&d.message).chain(&d.notes).cloned().collect::<Vec<_>>().join("; ")
        }
    };
    expected.assert_eq(&text);
}

const STAGES: &str = r#"
@T.prim_func
def main(A: T.Buffer((8, 6), "int32"), C: T.Buffer((8,), "int32"), D: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8, 6), "int32")
    for d in range(8):
        with T.block("D"):
            vd = T.axis.spatial(8, d)
            D[vd] = 1
    for i, j in T.grid(8, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1
    for r, k in T.grid(8, 6):
        with T.block("C"):
            vr, vk = T.axis.remap("SR", [r, k])
            with T.init():
                C[vr] = 0
            C[vr] = C[vr] + B[vr, vk]
"#;

fn reverse(
    block: &str,
    other: &str,
    k: usize,
    at: Placement,
) -> impl FnOnce(&mut Schedule) -> Result<()> {
    move |s| {
        let (b, o) = (s.get_block(block, "main")?, s.get_block(other, "main")?);
        let l = s.get_loops(&o)?[k].clone();
        s.reverse_compute_at(&b, &l, at.preserve_unit_loops, at.position)
    }
}

#[test]
fn a_consumer_that_may_not_move() {
    let last = Placement::default();
    check(STAGES, &[], reverse("C", "B", 0, last), expect!["accepted"]);
    check(
        STAGES,
        &[],
        reverse("C", "B", 1, last),
        expect![
            "`reverse_compute_at`: the block `C` would run several times for the same values of its variables; (i=0, j=0, ax0=0) and (i=0, j=1, ax0=0) have one image"
        ],
    );
    check(
        STAGES,
        &[],
        reverse("C", "C", 0, last),
        expect!["`reverse_compute_at`: the loop `r` is around the block `C`, or in another branch"],
    );
    check(
        STAGES,
        &[],
        reverse("B", "C", 0, last),
        expect!["`reverse_compute_at`: the loop `r` comes after the block `B`"],
    );
    check(
        STAGES,
        &[],
        reverse("C", "D", 0, last),
        expect!["`reverse_compute_at`: the loop `d` writes nothing that the block `C` reads"],
    );
    let at = Placement { position: Position::At(0), ..last };
    check(
        STAGES,
        &[],
        reverse("C", "B", 0, at),
        expect![
            "`reverse_compute_at`: 0 is no position for the block in the loop, those from 1 to 1 are"
        ],
    );
    let opaque = [(
        "vr, vk = T.axis.remap(\"SR\", [r, k])",
        "vr = T.axis.opaque(8, r)\n            vk = T.axis.reduce(6, k)",
    )];
    check(
        STAGES,
        &opaque,
        reverse("C", "B", 0, last),
        expect!["`reverse_compute_at`: `vr` of `C` is opaque"],
    );
    let shifted = [(
        "vr, vk = T.axis.remap(\"SR\", [r, k])",
        "vr = T.axis.spatial(8, r)\n            vk = T.axis.reduce(6, (k + 1) % 6)",
    )];
    check(
        STAGES,
        &shifted,
        reverse("C", "B", 0, last),
        expect![
            "`reverse_compute_at`: `vk` of `C` is bound to `(k + 1) % 6`, not to a loop of its own"
        ],
    );
    let fewer = [("[r, k])", "[r, k])\n            T.where(r < 7)")];
    check(
        STAGES,
        &fewer,
        reverse("C", "B", 0, last),
        expect![
            "`reverse_compute_at`: an iteration of the loop would run, without need, the block `C` at vr=7, vk=0"
        ],
    );
    let twice = [("for r, k in T.grid(8, 6)", "for t, r, k in T.grid(2, 8, 6)")];
    check(
        STAGES,
        &twice,
        reverse("C", "B", 0, last),
        expect![
            "`reverse_compute_at`: the block `C` runs several times for the same values of its variables; (t=0, r=0, k=0) and (t=1, r=0, k=0) have one image"
        ],
    );
    let under = [(
        "    for r, k in T.grid(8, 6):\n        with",
        "    for r, k in T.grid(8, 6):\n      if r < 7:\n        with",
    )];
    check(
        STAGES,
        &under,
        reverse("C", "B", 0, last),
        expect!["`reverse_compute_at`: the block `C` runs under a condition"],
    );
    let shared = [(
        "    for r, k in T.grid(8, 6):\n",
        "    for r in range(8):\n      D[r] = 2\n      for k in range(6):\n",
    )];
    check(
        STAGES,
        &shared,
        reverse("C", "B", 0, last),
        expect!["`reverse_compute_at`: the loops of the block `C` hold other statements"],
    );
    let guarded = [(
        "    for i, j in T.grid(8, 6):\n        with",
        "    for i in range(8):\n     if i < 9:\n      for j in range(6):\n        with",
    )];
    check(
        STAGES,
        &guarded,
        reverse("C", "B", 1, last),
        expect![
            "`reverse_compute_at`: the loop `j` is in another scope than the block `C`, or under a condition"
        ],
    );
    let overlapping =
        [("C[vr] = C[vr] + B", "C[vr // 2] = C[vr // 2] + B"), ("C[vr] = 0", "C[vr // 2] = 0")];
    check(
        STAGES,
        &overlapping,
        reverse("C", "B", 0, last),
        expect![
            "`reverse_compute_at`: the write `C[i // 2]` and the write `C[i // 2]` may touch one cell in iterations whose order would change; at i=0 and at i=1"
        ],
    );
    let rows = [("for i, j in T.grid(8, 6)", "for i, j in T.grid(7, 6)")];
    check(
        STAGES,
        &rows,
        reverse("C", "B", 0, last),
        expect![
            "`reverse_compute_at`: no iteration of the loop would run the block `C` at vr=7, vk=0"
        ],
    );
}

fn rfactor(block: &str, k: usize, axis: i64) -> impl FnOnce(&mut Schedule) -> Result<()> {
    move |s| {
        let b = s.get_block(block, "main")?;
        let l = s.get_loops(&b)?[k].clone();
        s.rfactor(&l, axis).map(|_| ())
    }
}

#[test]
fn a_reduction_that_has_no_parts() {
    check(STAGES, &[], rfactor("C", 1, 0), expect!["accepted"]);
    check(
        STAGES,
        &[],
        rfactor("C", 1, 2),
        expect!["`rfactor`: 2 is no place for a new axis among the 1 of `C`"],
    );
    check(
        STAGES,
        &[],
        rfactor("C", 1, i64::MIN),
        expect!["`rfactor`: -9223372036854775808 is no place for a new axis among the 1 of `C`"],
    );
    check(
        STAGES,
        &[],
        rfactor("C", 0, 0),
        expect![
            "`rfactor`: the loop `r` is not one of the reduction of the block `C`, or holds other statements"
        ],
    );
    check(
        STAGES,
        &[],
        rfactor("B", 0, 0),
        expect!["`rfactor`: the block `B` has no initialisation"],
    );
    let bare = [("            with T.init():\n                C[vr] = 0\n", "")];
    check(
        STAGES,
        &bare,
        rfactor("C", 1, 0),
        expect!["`rfactor`: the block `C` has no initialisation"],
    );
    let late = [("[r, k])", "[r, k])\n            T.where(k >= 1)")];
    check(
        STAGES,
        &late,
        rfactor("C", 1, 0),
        expect![
            "`rfactor`: a partial result of `C` would have no first value, where `k >= 1` does not hold; at r=0, k=0"
        ],
    );
    let mixed = [(
        "vr, vk = T.axis.remap(\"SR\", [r, k])",
        "vr = T.axis.spatial(8, r)\n            vk = T.axis.reduce(6, (k + r) % 6)",
    )];
    check(
        STAGES,
        &mixed,
        rfactor("C", 1, 0),
        expect!["`rfactor`: the loop `r` is over spatial and reduction variables at once"],
    );
    let empty = [(
        "T.grid(8, 6):\n        with T.block(\"C\")",
        "T.grid(8, 0):\n        with T.block(\"C\")",
    )];
    check(
        STAGES,
        &empty,
        rfactor("C", 1, 0),
        expect!["`rfactor`: the loop `k` may run for no iteration"],
    );
    let again = [("for r, k in T.grid(8, 6)", "for r, k, t in T.grid(8, 6, 2)")];
    check(
        STAGES,
        &again,
        rfactor("C", 1, 0),
        expect!["`rfactor`: the initialisation of `C` runs for several values of the loop `t`"],
    );
    let from_one = [
        (
            "    for r, k in T.grid(8, 6):\n",
            "    for r in range(8):\n      for k in range(1, 6):\n",
        ),
        (
            "vr, vk = T.axis.remap(\"SR\", [r, k])",
            "vr = T.axis.spatial(8, r)\n            vk = T.axis.reduce(6, k - 1)",
        ),
    ];
    check(
        STAGES,
        &from_one,
        rfactor("C", 1, 0),
        expect!["`rfactor`: the loop `k` does not run from zero to a fixed end"],
    );
    let beside = [(
        "            C[vr] = C[vr] + B[vr, vk]\n",
        "            C[vr] = C[vr] + B[vr, vk]\n        D[r] = 3\n",
    )];
    check(
        STAGES,
        &beside,
        rfactor("C", 1, 0),
        expect![
            "`rfactor`: the loop `k` is not one of the reduction of the block `C`, or holds other statements"
        ],
    );
    let two = |s: &mut Schedule| {
        let b = s.get_block("B", "main")?;
        let l = s.get_loops(&b)?[0].clone();
        s.rfactor(&l, 0).map(|_| ())
    };
    let nested = [(
        "            B[vi, vj] = A[vi, vj] + 1\n",
        "            B[vi, vj] = A[vi, vj] + 1\n        with T.block(\"again\"):\n            vi, vj = T.axis.remap(\"SS\", [i, j])\n            B[vi, vj] = A[vi, vj] + 1\n",
    )];
    check(STAGES, &nested, two, expect!["`rfactor`: 2 blocks are under the loop `i`, not one"]);
}

/// An instruction of the module: what it computes, and how it is asked for.
const PAIR: &str = r#"
@T.prim_func
def row_desc(x: T.Buffer((6,), "int32"), y: T.Buffer((6,), "int32")):
    for j in range(6):
        with T.block("y"):
            vj = T.axis.spatial(6, j)
            y[vj] = x[vj] + 1

@T.prim_func
def row_impl(x: T.Buffer((6,), "int32"), y: T.Buffer((6,), "int32")):
    for j in T.unroll(6):
        y[j] = x[j] + 1
"#;

/// An instruction is found by its name, and must be a pair.
#[test]
fn instructions_of_the_module() {
    let both = format!("{STAGES}{PAIR}");
    let row = |s: &mut Schedule| {
        let b = s.get_block("B", "main")?;
        let l = s.get_loops(&b)?[1].clone();
        s.tensorize(&l, "row")?;
        s.get_block("B_o", "main").map(|_| ())
    };
    check(&both, &[], row, expect!["accepted"]);
    check(
        &both,
        &[("A[vi, vj] + 1", "A[vi, vj] + 2")],
        row,
        expect![
            "`tensorize`: it differs from the description, at loop `j`, store to `y`, value: `x[j] + 2` stands against `x[j] + 1`"
        ],
    );
    check(
        &both,
        &[("B[vi, vj] = A[vi, vj] + 1", "B[vi, vj] = A[vi, 5 - vj] + 1")],
        row,
        expect![
            "`tensorize`: the index `5 - j` of `A` moves with the loop `j` as none of `x` in the description does"
        ],
    );
    check(
        &both,
        &[("B[vi, vj] = A[vi, vj] + 1", "B[vi, vj] = B[vi, vj] + 1")],
        row,
        expect!["`tensorize`: `B` would be both `x` and `y` of the description"],
    );
    check(
        &both,
        &[(
            "y: T.Buffer((6,), \"int32\")):\n    for j in T.unroll(6)",
            "y: T.Buffer((5,), \"int32\")):\n    for j in T.unroll(5)",
        )],
        row,
        expect![
            "the description and the implementation of `row` do not have the same parameters, buffers of fixed shapes, or the implementation begins with views"
        ],
    );
}
