//! Shared memory that is filled an iteration ahead, and whose rows have parts exchanged, against the interpreter, which
//! refuses two threads that meet in a cell between two barriers.

use tilewright_interp::{Arg, RunOptions, run_func};
use tilewright_ir::{Buffer, Module, Remarks, Source, Tensor, TensorFunc};
use tilewright_transform::lower::PASS;
use tilewright_transform::pass::Config;
use tilewright_tvmscript::parse_module;

/// A group of `threads` sums up rows of a matrix part by part; `marks` annotate the loop over `parts`, and `inside` is
/// what each part does more.
fn sums(threads: i64, parts: i64, marks: &str, first: &str, inside: &str) -> TensorFunc {
    let columns = threads * parts;
    let text = format!(
        r#"
@T.prim_func
def f(A: T.Buffer(({threads}, {columns}), "int32"), B: T.Buffer(({threads},), "int32")):
    for g in T.thread_binding(1, thread="blockIdx.x"):
        S = T.alloc_buffer(({threads}, {threads}), "int32", scope="shared")
        sums = T.alloc_buffer(({threads},), "int32", scope="local")
        for t in T.thread_binding({threads}, thread="threadIdx.x"):
            sums[t] = 0{first}
        for k in T.serial({parts}, annotations={{{marks}}}):
            for t in T.thread_binding({threads}, thread="threadIdx.x"):
                for i in range({threads}):
                    S[i, t] = A[i, k * {threads} + t] * 3{inside}
            for t in T.thread_binding({threads}, thread="threadIdx.x"):
                for j in range({threads}):
                    sums[t] = sums[t] + S[t, j]
        for t in T.thread_binding({threads}, thread="threadIdx.x"):
            B[t] = sums[t]
"#
    );
    let module: Module = parse_module(&Source::new("test.py", text)).expect("a module");
    (**module.tensor("f").expect("a function")).clone()
}

fn lowered(func: &TensorFunc) -> (TensorFunc, Vec<String>) {
    let mut why = Remarks::new();
    let mut module = Module::new();
    module.insert("f", func.clone());
    let made = PASS.apply(&module, &Config::new(), &mut why).expect("lowers");
    let why = why.iter().map(|e| e.diagnostic().message.clone()).collect();
    ((**made.tensor("f").expect("a function")).clone(), why)
}

/// What a function stores; `A` is numbered.
fn run(func: &TensorFunc) -> Vec<i32> {
    let tensor = |b: &Buffer| {
        let shape = b.const_shape().expect("known sizes");
        let shape: Vec<usize> = shape.iter().map(|n| *n as usize).collect();
        let data: Vec<i32> = (0..shape.iter().product::<usize>()).map(|k| k as i32 % 101).collect();
        Arg::Tensor(Tensor::from_slice(&shape, &data).expect("it fits"))
    };
    let args: Vec<Arg> = func.buffers().map(tensor).collect();
    let outcome = run_func(func, &args, &RunOptions::default());
    let outputs = outcome.unwrap_or_else(|e| panic!("{}", e.render())).outputs;
    let stored = outputs.iter().find(|o| &*o.name == "B").expect("B is stored");
    stored.tensor.as_slice::<i32>().expect("int32").to_vec()
}

#[test]
fn what_is_filled_ahead_is_what_was_filled() {
    let mut seen = 0;
    for threads in [4, 8, 16] {
        for parts in [2, 3, 5] {
            let plain = sums(threads, parts, "", "", "");
            let expected = run(&plain);
            assert_eq!(run(&lowered(&plain).0), expected);
            for turned in [1, 2, threads / 2] {
                let rows = format!(r#""exchanged_rows": [["S", {threads}, 2, 1, {turned}]]"#);
                for marks in [
                    r#""double_buffer": 1"#.to_owned(),
                    rows.clone(),
                    format!(r#""double_buffer": 1, {rows}"#),
                ] {
                    let (func, why) = lowered(&sums(threads, parts, &marks, "", ""));
                    assert!(why.is_empty(), "{why:?}");
                    assert_eq!(run(&func), expected, "{threads} threads, {parts} parts, {marks}");
                    seen += 1;
                }
            }
        }
    }
    assert_eq!(seen, 81);
}

#[test]
fn memory_that_is_not_only_filled_and_read_stays_one() {
    let marks = r#""double_buffer": 1"#;
    let cases = [
        // Cells of an iteration before are read.
        (
            sums(8, 3, marks, "", "\n                if k == 1:\n                    S[0, t] = 7"),
            "may fill different cells",
        ),
        // What fills memory is what was filled before.
        (
            sums(
                8,
                3,
                marks,
                "\n            S[0, t] = 1",
                "\n                S[1, t] = S[0, t] + 1",
            ),
            "is written in it",
        ),
        // Others access it.
        (
            sums(8, 3, marks, "\n            for i in range(8):\n                S[i, t] = 1", ""),
            "others access the memory",
        ),
    ];
    for (func, expected) in cases {
        let before = run(&func);
        let (made, why) = lowered(&func);
        assert!(why.iter().any(|text| text.contains(expected)), "{expected}: {why:?}");
        assert_eq!(run(&made), before);
    }
}

#[test]
fn rows_that_are_not_whole_stay_as_they_are() {
    for rows in ["16, 2, 1, 4", "8, 3, 1, 2", "8, 2, 1, 3", "8, 2, 0, 2"] {
        let marks = format!(r#""exchanged_rows": [["S", {rows}]]"#);
        let func = sums(8, 2, &marks, "", "");
        let plain = sums(8, 2, "", "", "");
        assert_eq!(run(&lowered(&func).0), run(&plain), "{rows}");
    }
}
