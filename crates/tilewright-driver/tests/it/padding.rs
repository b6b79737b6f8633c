//! Overcompute over padding that holds `NaN`: what is not defined may be anything, and must not
//! show in what is defined (`docs/semantics.md`, rule 7).

use tilewright_driver::passes;
use tilewright_driver::random::Random;
use tilewright_driver::{DType, Module, Options, Sizes, Tensor, compile, print};
use tilewright_interp::Arg;
use tilewright_ir::{Function, Remarks, TensorFunc};

const OVERCOMPUTE: &str = "remove_branching_through_overcompute";

fn parse(text: &str) -> Module {
    tilewright_driver::parse(text, &Sizes::new()).expect("it parses")
}

fn overcomputed(module: &Module) -> (Module, Remarks) {
    let mut why = Remarks::new();
    let pass = passes::find(OVERCOMPUTE).expect("it is there");
    let new = passes::run(pass, module, &passes::Config::new(), &mut why).expect("it runs");
    (new, why)
}

fn function(module: &Module) -> &TensorFunc {
    match module.functions.get("main") {
        Some(Function::Tensor(f)) => f,
        _ => panic!("no tensor function `main`"),
    }
}

fn guards(module: &Module) -> usize {
    print(module).lines().filter(|l| l.trim_start().starts_with("if ")).count()
}

/// Random elements, and `NaN` behind the first `defined`.
fn padded(seed: u64, shape: &[usize], defined: usize) -> Tensor {
    let full = Random::new(seed).tensor(DType::F32, shape).expect("a tensor");
    let mut values = full.as_slice::<f32>().expect("floats").to_vec();
    values[defined..].fill(f32::NAN);
    Tensor::from_slice(shape, &values).expect("a tensor")
}

/// What the interpreter and what native code make of it; the outputs come last.
fn run(module: &Module, inputs: &[Tensor], output: &[usize]) -> [Vec<f32>; 2] {
    let mut args: Vec<Arg> = inputs.iter().cloned().map(Arg::Tensor).collect();
    args.push(Arg::Fresh(Some(output.to_vec())));
    let outcome = tilewright_interp::run_func(
        function(module),
        &args,
        &tilewright_interp::RunOptions::default(),
    );
    let mut outputs = outcome.expect("it is legal").outputs;
    let tensor = outputs.pop().expect("an output").into_tensor().expect("it is written");
    let options = Options::new().threads(1).cache(false);
    let native = compile(module, &options).expect("it compiles").run(inputs).expect("it runs");
    [&tensor, &native[0]].map(|t| t.as_slice::<f32>().expect("floats").to_vec())
}

/// Both agree with the original, bit by bit, and nothing is `NaN`.
fn agree(before: &Module, after: &Module, inputs: &[Tensor], output: &[usize]) {
    let [expected, native] = run(before, inputs, output);
    let [interpreted, compiled] = run(after, inputs, output);
    assert!(expected.iter().all(|x| !x.is_nan()), "{expected:?}");
    assert_eq!(interpreted, expected);
    assert_eq!(compiled, native);
}

#[test]
fn garbage_that_is_overwritten_or_dies_does_not_show() {
    // A convolution over a padded argument into padded memory, of which the logical part is kept.
    let before = parse(
        r#"
@T.prim_func
def main(A: T.Buffer((5, 4), "float32"), F: T.Buffer((3,), "float32"), C: T.Buffer((14,), "float32")):
    B = T.alloc_buffer((4, 4), "float32")
    for i in range(4):
        T.assume(A[4, i] == T.undef(dtype="float32"))
    for io, ii in T.grid(4, 4):
        if io * 4 + ii < 14:
            B[io, ii] = 0.0
            for f in range(3):
                B[io, ii] = B[io, ii] + F[f] * A[io + (ii + f) // 4, (ii + f) % 4]
    for io, ii in T.grid(4, 4):
        if io * 4 + ii >= 14:
            B[io, ii] = T.undef(dtype="float32")
    for i in range(14):
        C[i] = B[i // 4, i % 4]
"#,
    );
    let (after, _) = overcomputed(&before);
    // The one of the padding stays.
    assert_eq!((guards(&before), guards(&after)), (2, 1), "{}", print(&after));
    let filter = Random::new(2).tensor(DType::F32, &[3]).expect("a tensor");
    agree(&before, &after, &[padded(1, &[5, 4], 16), filter], &[14]);
}

#[test]
fn zero_times_undefined_memory_is_not_zero() {
    // The weights' padding is undefined: a product with it is not zero, whatever the other side is.
    let text = |fill: &str| {
        parse(&format!(
            r#"
@T.prim_func
def main(A: T.Buffer((14,), "float32"), W: T.Buffer((4, 4), "float32"), C: T.Buffer((1,), "float32")):
    P = T.alloc_buffer((4, 4), "float32")
    Q = T.alloc_buffer((4, 4), "float32")
    for i in range(14):
        P[i // 4, i % 4] = A[i]
        Q[i // 4, i % 4] = W[i // 4, i % 4]
    for ii in range(2):
        P[3, ii + 2] = 0.0
        Q[3, ii + 2] = {fill}
    C[0] = 0.0
    for io, ii in T.grid(4, 4):
        if io * 4 + ii < 14:
            C[0] = C[0] + P[io, ii] * Q[io, ii]
"#
        ))
    };
    let arguments = [padded(3, &[14], 14), padded(4, &[4, 4], 14)];
    let undefined = text("W[3, ii + 2]");
    let (after, why) = overcomputed(&undefined);
    assert_eq!(guards(&after), 1, "{}", print(&after));
    let remark = why[0].render();
    assert!(remark.contains("C[0] is read") || remark.contains("C[0] is seen"), "{remark}");
    agree(&undefined, &after, &arguments, &[1]);
    // With zeros on both sides it is.
    let zeros = text("0.0");
    let (after, why) = overcomputed(&zeros);
    assert!(guards(&after) == 0 && why.is_empty(), "{}", print(&after));
    agree(&zeros, &after, &arguments, &[1]);
}
