//! A cache to which rows are appended, in the memory of the cache that was there: the same results as with memory
//! of its own, the input's address, and nothing but the rows is written.

use tilewright_driver::random::Random;
use tilewright_driver::{DType, Options, Tensor, compile};
use tilewright_graph::in_place::update_of;
use tilewright_ir::{
    Attrs, Binding, BindingBlock, Dim, GraphExpr, GraphFunc, GraphVar, Module, TensorFunc,
    TensorType, Var,
};
use tilewright_ops::Operand;
use tilewright_ops::cache::{Along, append_rows};

const CACHE: [usize; 4] = [2, 3, 19, 5];
const ROWS: [usize; 4] = [2, 3, 4, 5];
const LINEAR: Along = Along { axis: 2, circular: false };

fn operand(shape: &[Dim]) -> Operand {
    Operand::new(shape, DType::F32)
}

/// `cache = append_rows(cache, rows, starts)`, and where `reads_after` something else reads the old cache behind it.
fn module(cache: &[Dim], rows: &[Dim], along: Along, reads_after: bool) -> Module {
    let f =
        append_rows(&operand(cache), &operand(rows), cache[along.axis], along).expect("it fits");
    let ty = |shape: &[Dim], dtype| TensorType {
        shape: shape.iter().map(|d| d.expr()).collect(),
        dtype,
    };
    let params = [
        GraphVar::tensor("cache", ty(cache, DType::F32)),
        GraphVar::tensor("rows", ty(rows, DType::F32)),
        GraphVar::tensor("starts", ty(&rows[..1], DType::I32)),
    ];
    let call = |args: &[&GraphVar]| {
        let args = args.iter().map(|v| v.expr()).collect();
        GraphExpr::call_tir("append", args, vec![ty(cache, DType::F32)])
    };
    let out = |name: &str| GraphVar::tensor(name, ty(cache, DType::F32));
    let [old, new, starts] = &params;
    let mut outputs = vec![out("present")];
    let mut bindings =
        vec![Binding { var: outputs[0].clone(), value: call(&[old, new, starts]), span: None }];
    if reads_after {
        outputs.push(out("again"));
        let value = call(&[old, new, starts]);
        bindings.push(Binding { var: outputs[1].clone(), value, span: None });
    }
    let results: Vec<GraphExpr> = outputs.iter().map(|v| v.expr()).collect();
    let ret = match &results[..] {
        [one] => one.clone(),
        _ => GraphExpr::Tuple(results),
    };
    let blocks = vec![BindingBlock { dataflow: true, bindings, outputs }];
    let mut module = Module::new();
    module.insert("append", f);
    let graph = GraphFunc {
        params: params.to_vec(),
        ret_ty: None,
        blocks,
        ret,
        attrs: Attrs::default(),
        private: false,
        span: None,
    };
    module.insert("main", graph);
    module
}

fn fixed(shape: &[usize]) -> Vec<Dim> {
    shape.iter().map(|n| Dim::from(*n)).collect()
}

fn inputs(starts: [i32; 2]) -> Vec<Tensor> {
    let mut random = Random::new(5);
    let mut of = |shape: &[usize]| random.tensor(DType::F32, shape).expect("memory");
    let starts = Tensor::from_slice(&[2], &starts).expect("a tensor");
    vec![of(&CACHE), of(&ROWS), starts]
}

#[test]
fn rows_are_written_where_the_cache_is() {
    let circular = Along { circular: true, ..LINEAR };
    let n = Dim::open(&Var::new("n", DType::I64));
    let open = |shape: [usize; 4]| {
        let mut shape = fixed(&shape);
        shape[0] = n;
        shape
    };
    let cases = [
        (fixed(&CACHE), fixed(&ROWS), LINEAR, [0, 15]),
        (fixed(&CACHE), fixed(&ROWS), LINEAR, [7, 17]),
        (fixed(&CACHE), fixed(&ROWS), LINEAR, [-2, 30]),
        (fixed(&CACHE), fixed(&ROWS), circular, [17, 40]),
        (open(CACHE), open(ROWS), LINEAR, [3, 11]),
    ];
    for (cache, rows, along, starts) in cases {
        let program = compile(&module(&cache, &rows, along, false), &Options::default());
        let program = program.expect("it compiles");
        assert_eq!(program.shared().count(), 1, "{along:?}");
        let given = inputs(starts);
        let expected = program.run(&given).expect("it runs");
        // What is held elsewhere stays what it is.
        let kept = given[0].clone();
        let apart = program.run_in_place(given).expect("it runs");
        assert!(apart[0].same(&expected[0]) && kept.same(&inputs(starts)[0]), "{along:?}");
        let mut given = inputs(starts);
        let address = given[0].bytes_mut().as_ptr();
        let made = program.run_in_place(given).expect("it runs");
        assert!(made[0].same(&expected[0]), "{along:?} {starts:?}");
        assert_eq!(made[0].bytes().as_ptr(), address);
        // An output that is given, and is the input.
        let mut given = inputs(starts);
        let mut memory = given[0].clone();
        let start = std::ptr::NonNull::from(memory.bytes_mut()).cast::<u8>();
        let owner = std::sync::Arc::new(memory);
        let shape = owner.shape().to_vec();
        // SAFETY: the owner keeps the bytes, which nothing else reads or writes during the run.
        given[0] = unsafe { Tensor::from_foreign(DType::F32, &shape, start, owner.clone()) }
            .expect("a tensor");
        // SAFETY: as above.
        let out = unsafe { Tensor::from_foreign_mut(DType::F32, &shape, start, owner.clone()) };
        let made = program.run_taking(given, vec![out.ok()]).expect("it runs");
        assert!(made[0].same(&expected[0]), "{along:?} {starts:?}");
        assert_eq!(made[0].bytes().as_ptr(), start.as_ptr().cast_const());
    }
}

#[test]
fn what_is_read_again_is_kept() {
    let program =
        compile(&module(&fixed(&CACHE), &fixed(&ROWS), LINEAR, true), &Options::default());
    let program = program.expect("it compiles");
    let expected = program.run(&inputs([2, 9])).expect("it runs");
    let made = program.run_in_place(inputs([2, 9])).expect("it runs");
    assert!(made.iter().zip(&expected).all(|(x, y)| x.same(y)));
}

#[test]
fn only_rows_that_stand_together_are_an_update() {
    let of = |shape: &[usize]| operand(&fixed(shape));
    let append = |old: &[usize], along| {
        append_rows(&of(old), &of(&ROWS), CACHE[2].into(), along).expect("it fits")
    };
    let input = |f: &TensorFunc| update_of(f).map(|(input, _)| input);
    assert_eq!(input(&append(&CACHE, LINEAR)), Some(0));
    assert_eq!(input(&append(&CACHE, Along { circular: true, ..LINEAR })), Some(0));
    // A cache that gets longer is another tensor.
    assert_eq!(input(&append(&[2, 3, 11, 5], LINEAR)), None);
}
