//! Functions as C text for devices: kernels, groups of threads, textures, and what is refused. No driver is
//! asked.

use tilewright_codegen::c::{Arithmetic, HostStep, Kernels, Language, Memory, Over, kernels};
use tilewright_ir::{Buffer, DType, Expr, ForKind, Param, Range, Result, Stmt, TensorFunc, Var};

const DEVICE: Arithmetic = Arithmetic { doubles: false, fma: true, vectors: true, mma: false };

fn buffer(name: &str, shape: &[i64]) -> Buffer {
    Buffer::with_extents(name, shape, DType::F32)
}

fn made(params: &[&Buffer], body: Stmt) -> Result<Kernels> {
    let params = params.iter().map(|b| Param::tensor(b)).collect();
    kernels("f", &TensorFunc::new(params, body), DEVICE)
}

fn over(kind: ForKind, extent: i64, body: impl FnOnce(Expr) -> Stmt) -> Stmt {
    let var = Var::index("i");
    let body = body(var.expr());
    Stmt::for_loop(&var, Range::upto(Expr::int(extent, DType::I32)), kind, body)
}

fn thread(extent: i64, body: impl FnOnce(Expr) -> Stmt) -> Stmt {
    over(ForKind::ThreadBinding("threadIdx.x".into()), extent, body)
}

fn group(extent: i64, body: impl FnOnce(Expr) -> Stmt) -> Stmt {
    over(ForKind::ThreadBinding("blockIdx.x".into()), extent, body)
}

fn refused(result: Result<Kernels>) -> String {
    result.map(|k| k.text).expect_err("it is refused").to_string()
}

#[test]
fn an_iteration_of_a_parallel_loop_is_an_item_and_what_is_around_is_a_step() {
    let (a, b) = (buffer("A", &[8]), buffer("B", &[8]));
    let sum = |i: Expr| {
        let square = a.load([i.clone()]) * a.load([i.clone()]);
        Stmt::store(&b, vec![i.clone()], b.load([i]) + square)
    };
    let zero = Stmt::store(&b, vec![Expr::i32(0)], Expr::float(0.0, DType::F32));
    let twice = over(ForKind::Serial, 2, |_| over(ForKind::Parallel, 8, sum));
    let k = made(&[&a, &b], Stmt::seq([zero, twice])).expect("it has kernels");
    assert!(matches!(k.kernels[0].over, Over::One));
    assert!(matches!(&k.kernels[1].over, Over::Items(n) if n.as_int() == Some(8)));
    assert!(matches!(&k.steps[..], [HostStep::Launch(0), HostStep::Loop(_, _, inside)]
        if matches!(inside[..], [HostStep::Launch(1)])));
    // A product that is accumulated rounds once.
    assert!(k.text.contains("get_global_id(0)") && k.text.contains("fma("), "{}", k.text);
}

/// Threads write to memory that they share; then each reads what another one wrote.
fn exchange(around: impl FnOnce(Stmt, &Buffer) -> Stmt, threads: i64) -> Result<Kernels> {
    let (a, b, flags) = (buffer("A", &[4, 8]), buffer("B", &[4, 8]), buffer("F", &[1]));
    let shared = buffer("S", &[8]).derive_storage(|d| d.scope = "shared".into());
    made(
        &[&a, &b, &flags],
        group(4, |g| {
            let fill = thread(8, |t| Stmt::store(&shared, vec![t.clone()], a.load([g.clone(), t])));
            let turn = thread(threads, |t| {
                let from = Expr::i32(7) - t.clone();
                Stmt::store(&b, vec![g.clone(), t], shared.load([from]))
            });
            Stmt::allocate(&shared, Stmt::seq([fill, around(turn, &flags)]))
        }),
    )
}

#[test]
fn threads_wait_between_two_loops_over_them() {
    let k = exchange(|s, _| s, 8).expect("it has kernels");
    assert_eq!(k.text.matches("barrier(").count(), 1, "{}", k.text);
    assert!(k.text.contains("__local float S_"), "{}", k.text);
    let Over::Groups(extents) = &k.kernels[0].over else { panic!("groups") };
    assert_eq!(
        (extents.threads, extents.groups[0].as_ref().and_then(Expr::as_int)),
        ([8, 0, 0], Some(4))
    );
    // Fewer threads than the group has: the others leave it out.
    let fewer = exchange(|s, _| s, 5).expect("it has kernels").text;
    assert!(fewer.contains("if ((long)get_local_id(0) < (long)5)"), "{fewer}");
    // In a loop they wait at its end as well, before the next iteration.
    let twice = exchange(|s, _| over(ForKind::Serial, 2, |_| s), 8).expect("it has kernels").text;
    assert_eq!(twice.matches("barrier(").count(), 2, "{twice}");
}

#[test]
fn a_wait_that_some_threads_miss_is_refused() {
    let data = exchange(
        |s, flags| {
            let twice = over(ForKind::Serial, 2, |_| s);
            Stmt::guard(flags.load([Expr::i32(0)]).less(Expr::float(1.0, DType::F32)), twice)
        },
        8,
    );
    assert!(refused(data).contains("where they may not all come to"));
}

#[test]
fn unknown_axes_and_private_memory_of_groups_are_refused() {
    let a = buffer("A", &[8]);
    let one = |i: Expr| Stmt::store(&a, vec![i], Expr::float(1.0, DType::F32));
    let lane = made(&[&a], over(ForKind::ThreadBinding("warp".into()), 8, one));
    assert!(refused(lane).contains("there are no threads called `warp`"));
    let own = buffer("L", &[8]).derive_storage(|d| d.scope = "local".into());
    let fill = thread(8, |t| Stmt::store(&own, vec![t], Expr::float(1.0, DType::F32)));
    let outside = made(&[&a], group(1, |_| Stmt::allocate(&own, fill)));
    assert!(refused(outside).contains("belongs to a thread and stands outside"));
}

fn texture(name: &str) -> Buffer {
    buffer(name, &[6, 8]).derive_storage(|d| {
        d.scope = "global.texture".into();
        d.axis_separators = vec![1];
    })
}

#[test]
fn a_texel_is_written_as_a_whole_and_read_by_channel() {
    let (a, t) = (buffer("A", &[6, 8]), texture("T"));
    let write = |columns: i64, times: i64| {
        over(ForKind::Parallel, 6, |r| {
            over(ForKind::Serial, columns, |w| {
                over(ForKind::Serial, 4, |c| {
                    let at = vec![r.clone(), w * Expr::int(times, DType::I32) + c];
                    Stmt::store(&t, at.clone(), a.load(at))
                })
            })
        })
    };
    let k = made(&[&a, &t], write(2, 4)).expect("it has kernels");
    assert!(
        k.text.contains("write_imagef(") && k.text.contains("__write_only image2d_t"),
        "{}",
        k.text
    );
    assert!(
        matches!(&k.memory[1], Memory::Image(i) if (i.rows, i.columns, i.reads, i.writes) == (6, 2, false, true))
    );
    // Columns from 3 on are no texel.
    assert!(refused(made(&[&a, &t], write(2, 3))).contains("a part of a texel of `T` is written"));

    let read = over(ForKind::Parallel, 6, |r| {
        over(ForKind::Serial, 8, |c| Stmt::store(&a, vec![r.clone(), c.clone()], t.load([r, c])))
    });
    let k = made(&[&a, &t], read).expect("it has kernels");
    let text = k.program(Language::OpenCl);
    assert!(text.contains("read_imagef(") && text.contains("CLK_ADDRESS_CLAMP"), "{text}");

    let both = over(ForKind::Parallel, 6, |r| {
        over(ForKind::Serial, 4, |c| {
            let at = vec![r.clone(), c];
            Stmt::store(&t, at.clone(), t.load(at) + Expr::float(1.0, DType::F32))
        })
    });
    assert!(refused(made(&[&t], both)).contains("one kernel reads and writes the texture `T`"));
}

#[test]
fn types_that_a_device_lacks_are_named() {
    let d = Buffer::with_extents("D", &[8], DType::F64);
    let one =
        over(ForKind::Parallel, 8, |i| Stmt::store(&d, vec![i], Expr::float(1.0, DType::F64)));
    assert!(refused(made(&[&d], one)).contains("this device has no float64"));
}

/// A store of so many lanes: what is twice as far on, times a number, is added to what was there.
fn lanes(lanes: u16, step: i64) -> Stmt {
    let (a, b) = (buffer("A", &[4096]), buffer("B", &[4096]));
    over(ForKind::Parallel, 4, |i| {
        let first = i * Expr::i32(64);
        let at = Expr::ramp(first.clone(), Expr::int(step, DType::I32), lanes);
        let from = Expr::ramp(first * Expr::i32(2), Expr::i32(1), lanes);
        let half = Expr::broadcast(Expr::float(0.5, DType::F32), lanes);
        let value = b.load([at.clone()]) + a.load([from]) * half;
        Stmt::store(&b, vec![at], value)
    })
}

fn text_of(body: Stmt, arithmetic: Arithmetic) -> String {
    let (reads, writes) = tilewright_ir::visit::accessed(&body);
    let mut params = writes;
    let others: Vec<Buffer> = reads.into_iter().filter(|b| !params.contains(b)).collect();
    params.extend(others);
    let params = params.iter().map(Param::tensor).collect();
    kernels("f", &TensorFunc::new(params, body), arithmetic).expect("it has kernels").text
}

#[test]
fn lanes_are_vectors_where_the_language_has_them() {
    let whole = text_of(lanes(16, 1), DEVICE);
    assert!(
        whole.contains("VSTORE(16, float, __global, (fma(VLOAD(16, float, __global, &A_"),
        "{whole}"
    );
    assert!(!whole.contains("lane"), "{whole}");
    // Cells apart from one another are stored one by one.
    let apart = text_of(lanes(4, 3), DEVICE);
    assert!(apart.contains(")[9] = ") && apart.contains(".s3;"), "{apart}");
    // Of as many lanes as there are no vectors of, several are.
    for (count, sizes) in [(32, vec![16, 16]), (12, vec![8, 4]), (15, vec![8, 4, 2])] {
        let text = text_of(lanes(count, 1), DEVICE);
        let found: Vec<String> =
            sizes.iter().map(|n| format!("VSTORE({n}, float, __global, (fma(VLOAD({n},")).collect();
        let mut rest = &text[..];
        for store in &found {
            rest = rest.split_once(store).unwrap_or_else(|| panic!("{store}: {text}")).1;
        }
        assert!(!text.contains("lane"), "{text}");
    }
    // There are none in CUDA.
    let text = text_of(lanes(16, 1), Arithmetic { vectors: false, ..DEVICE });
    assert!(text.contains("lane") && !text.contains("VLOAD"), "{text}");
}

/// Elements that lie apart are read as vectors, of which lanes are chosen.
#[test]
fn rows_and_every_second_element_are_read_as_vectors() {
    let (a, b) = (buffer("A", &[4096]), buffer("B", &[4096]));
    let ramp = |first: Expr, step: i64| Expr::ramp(first, Expr::int(step, DType::I32), 8);
    let across = over(ForKind::Unrolled, 8, |j| {
        let read = a.load([ramp(j.clone(), 9)]);
        Stmt::store(&b, vec![ramp(j * Expr::i32(8), 1)], read)
    });
    let text = text_of(across, DEVICE);
    assert_eq!(text.matches("= VLOAD(8, float, __global, from_").count(), 8, "{text}");
    assert!(!text.contains("for (") && !text.contains("](from"), "{text}");
    let second = Stmt::store(&b, vec![ramp(Expr::i32(0), 1)], a.load([ramp(Expr::i32(1), 2)]));
    let text = text_of(second, DEVICE);
    assert!(text.contains(").even, VLOAD(8, float, __global, from_"), "{text}");
}
