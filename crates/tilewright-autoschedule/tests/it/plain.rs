//! Loops that are no stages, for a machine with groups of threads and for a processor: what is shared, and that it
//! computes the same.

use tilewright_autoschedule::others;
use tilewright_interp::run_module;
use tilewright_ir::{DType, Expr, ForKind, Module, Remarks, Source, StmtKind, Tensor, TensorFunc};
use tilewright_ops::Operand;
use tilewright_ops::elementwise::Unary;
use tilewright_ops::recurrent::{Activation, Cell, Direction, Recurrent, recurrent};
use tilewright_ops::reduce::top_k;
use tilewright_target::Target;
use tilewright_transform::lower;
use tilewright_tvmscript::parse_module;

fn run(func: &TensorFunc, inputs: &[Tensor]) -> Vec<Tensor> {
    let mut module = Module::new();
    module.insert("main", func.clone());
    run_module(&module, "main", inputs).unwrap_or_else(|e| panic!("{}", e.render()))
}

/// The extents of the parallel loops of a function behind its schedule, from front to back. What it computes is the
/// same.
fn shared(func: &TensorFunc, inputs: &[Tensor]) -> Vec<Option<i64>> {
    shared_by(&Target::new("cuda", "sm_80", ""), func, inputs)
}

/// The same for threads of a machine.
fn shared_by(target: &Target, func: &TensorFunc, inputs: &[Tensor]) -> Vec<Option<i64>> {
    let mut why = Remarks::new();
    let made = others(func, target, &mut why).expect("loops");
    let expected = run(func, inputs);
    for made in [&made, &lower(&made).expect("lowers")] {
        for (a, b) in run(made, inputs).iter().zip(&expected) {
            assert_eq!(a.bytes(), b.bytes());
        }
    }
    let mut extents = Vec::new();
    made.body.for_each(|s| {
        if let StmtKind::For { kind: ForKind::Parallel, range, .. } = s.kind() {
            extents.push(range.extent.as_int());
        }
    });
    extents
}

fn text(text: &str) -> TensorFunc {
    let module = parse_module(&Source::new("test.py", format!("@T.prim_func\n{text}")));
    let module = module.unwrap_or_else(|e| panic!("{}", e.render()));
    let (_, func) = module.tensors().next().expect("a function");
    (**func).clone()
}

fn floats(shape: &[usize], seed: usize) -> Tensor {
    let n: usize = shape.iter().product();
    let values: Vec<f32> =
        (0..n).map(|k| ((k * 37 + seed * 11) % 101) as f32 / 50.0 - 1.0).collect();
    Tensor::from_slice(shape, &values).expect("a tensor")
}

fn lstm(steps: usize, batch: usize, hidden: usize) -> Recurrent {
    let activations = [Unary::Sigmoid, Unary::Tanh, Unary::Tanh].map(Activation::Unary).to_vec();
    let direction = |backward| Direction { backward, activations: activations.clone() };
    Recurrent {
        cell: Cell::Lstm { coupled: false },
        dtype: DType::F32,
        steps: steps.into(),
        batch: batch.into(),
        hidden,
        directions: vec![direction(false), direction(true)],
        batch_first: false,
        clip: None,
        reset_bias: false,
        fed_back: true,
        initial: true,
        initial_cell: false,
        peepholes: false,
        lengths: Some(DType::I32),
    }
}

/// A processor's threads share rows that are worth it, and leave loops whose iterations follow each other.
#[test]
fn outermost_loops_are_shared_by_a_processor() {
    let processor = Target::new("x86_64-unknown-linux-gnu", "x86-64-v3", "");
    let rows = |n: usize, length: usize| {
        let x = Operand::new(&[n, 2, length], DType::F32);
        shared_by(
            &processor,
            &top_k(&x, 2, 7, true).expect("a function"),
            &[floats(&[n, 2, length], 3)],
        )
    };
    assert_eq!(rows(3, 4000), [Some(6)]);
    assert_eq!(rows(3, 40), []);
    let sums = text(
        "
def sums(A: T.Buffer((40, 3000), \"float32\"), B: T.Buffer((41, 3000), \"float32\")):
    for j in range(3000):
        B[0, j] = T.float32(0)
    for i in range(40):
        for j in range(3000):
            if A[i, j] < T.float32(0.5):
                B[i + 1, j] = B[i, j] + A[i, j]
            else:
                B[i + 1, j] = B[i, j]
",
    );
    assert_eq!(shared_by(&processor, &sums, &[floats(&[40, 3000], 5)]), []);
}

#[test]
fn steps_of_a_recurrent_network_are_shared() {
    let (steps, batch, hidden) = (3, 2, 19);
    let func = recurrent(&lstm(steps, batch, hidden)).expect("a function");
    let width = 4 * hidden;
    let inputs = [
        floats(&[steps * batch, 2 * width], 1),
        floats(&[2, hidden, width], 2),
        floats(&[2, batch, hidden], 3),
        Tensor::from_slice(&[batch], &[3i32, 2]).expect("a tensor"),
    ];
    let extents = shared(&func, &inputs);
    // All elements of a state, and all columns of the gates that are added up together.
    let state = Some((batch * hidden) as i64);
    let columns = [64, 12].map(|n| Some(batch as i64 * n));
    assert!(extents.contains(&state) && columns.iter().all(|n| extents.contains(n)), "{extents:?}");
}

/// What lies along an axis may meet; what lies across does not.
#[test]
fn a_scatter_is_shared_across_its_axis() {
    let func = text(
        "def f(A: T.Buffer((40, 70), 'int32'), B: T.Buffer((40, 70), 'float32'), C: T.Buffer((9, 70), 'float32')):
    for i, j in T.grid(9, 70):
        C[i, j] = T.float32(0)
    for i, j in T.grid(40, 70):
        C[A[i, j], j] = C[A[i, j], j] + B[i, j]
",
    );
    let at: Vec<i32> = (0..2800).map(|k| k * k % 9).collect();
    let inputs = [Tensor::from_slice(&[40, 70], &at).expect("a tensor"), floats(&[40, 70], 1)];
    assert_eq!(shared(&func, &inputs), [Some(630), Some(70)]);
}

/// Each iteration reads what the one before wrote; and the host cannot decide how far a loop runs, so that what is in it
/// stays in it.
#[test]
fn what_depends_on_the_iteration_before_stays() {
    let scan = text(
        "def f(A: T.Buffer((3000,), 'float32'), C: T.Buffer((3001,), 'float32')):
    C[0] = T.float32(0)
    for i in range(3000):
        C[i + 1] = C[i] + A[i]
",
    );
    assert_eq!(shared(&scan, &[floats(&[3000], 1)]), []);
    let decided = text(
        "def f(A: T.Buffer((1,), 'int32'), C: T.Buffer((3000,), 'float32')):
    for i in range(3000):
        C[i] = T.float32(0)
    for k in range(A[0]):
        for i in range(3000):
            C[i] = C[i] + T.float32(1)
",
    );
    let two = Tensor::from_slice(&[1], &[2i32]).expect("a tensor");
    assert_eq!(shared(&decided, &[two]), [Some(3000)]);
}

/// What one iteration does in turn is done by all in turn, where there are few.
#[test]
fn few_iterations_are_taken_apart() {
    let func = text(
        "def f(A: T.Buffer((3, 900), 'float32'), B: T.Buffer((3, 900), 'float32'), C: T.Buffer((3, 900), 'float32')):
    for p in range(3):
        for i in range(900):
            B[p, i] = A[p, i] * T.float32(2)
        for i in range(900):
            C[p, i] = B[p, 899 - i]
",
    );
    assert_eq!(shared(&func, &[floats(&[3, 900], 1)]), [Some(2700), Some(2700)]);
}

/// Of open extents the first one is shared, with all that are known.
#[test]
fn one_open_extent_is_shared() {
    let func = text(
        "def f(a: T.handle, c: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, m, 5), 'float32')
    C = T.match_buffer(c, (n, m, 5), 'float32')
    for i, j, k in T.grid(n, m, 5):
        C[i, j, k] = T.exp(A[i, j, k])
",
    );
    let target = Target::new("cuda", "sm_80", "");
    let made = others(&func, &target, &mut Remarks::new()).expect("loops");
    let mut texts = Vec::new();
    made.body.for_each(|s| {
        if let StmtKind::For { kind: ForKind::Parallel, range, .. } = s.kind() {
            texts.push(Expr::to_string(&range.extent));
        }
    });
    assert_eq!(texts, ["n * 5"]);
    let inputs = [floats(&[7, 11, 5], 2)];
    assert_eq!(run(&made, &inputs)[0].bytes(), run(&func, &inputs)[0].bytes());
}
