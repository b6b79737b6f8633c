//! Native code against the interpreter: every operator, through the whole pipeline, at ragged
//! sizes around the tiles that schedules choose.

mod bad_data;
mod contraction;
mod dynamic;
mod elementwise;
mod graphs;
mod movement;
mod norm;
mod parts;
mod pool;
mod recurrent;
mod reduce;
mod sample;

use tilewright_driver::compare::{Tolerance, compare};
use tilewright_driver::pipeline::PipelineStage;
use tilewright_driver::random::Random;
use tilewright_driver::{DType, Options, Result, Session, Tensor, compile};
use tilewright_interp as interp;
use tilewright_ir::visit::{walk_expr, walk_stmt};
use tilewright_ir::{
    Binding, BindingBlock, GraphExpr, GraphFunc, GraphType, GraphVar, Module, Param, TensorFunc,
    TensorType, TypeKind,
};
use tilewright_ir::{Expr, ExprKind, Stmt, StmtKind, Visit};
use tilewright_transform::lower::bounds;

/// Extents around the widths of vectors and tiles.
const RAGGED: [usize; 14] = [1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 48, 65];

/// An input that a test chooses by name and shape; `None` for a random one.
type Choice<'a> = &'a dyn Fn(&str, &[usize]) -> Option<Tensor>;

/// Random numbers of both signs, and a few that are special.
fn input(random: &mut Random, dtype: DType, shape: &[usize]) -> Result<Tensor> {
    let len: usize = shape.iter().product();
    let float = |random: &mut Random| match random.bits() % 64 {
        0 => 0.0,
        1 => -0.0,
        _ => random.unit() * 3.0,
    };
    let int = |random: &mut Random| (random.bits() % 19) as i64 - 9;
    macro_rules! make {
        ($t:ty, $value:expr) => {{
            let values: Vec<$t> = (0..len).map(|_| $value).collect();
            Tensor::from_slice(shape, &values)
        }};
    }
    match (dtype.kind, dtype.bits) {
        (TypeKind::Float, 64) => make!(f64, float(random)),
        (TypeKind::Float, 32) => make!(f32, float(random) as f32),
        (TypeKind::Float, _) => make!(half::f16, half::f16::from_f64(float(random))),
        (TypeKind::BFloat, _) => make!(half::bf16, half::bf16::from_f64(float(random))),
        (TypeKind::Int, 64) => make!(i64, int(random)),
        (TypeKind::Int, 32) => make!(i32, int(random) as i32),
        (TypeKind::Int, 16) => make!(i16, int(random) as i16),
        (TypeKind::Int, _) => make!(i8, int(random) as i8),
        (TypeKind::UInt, 64) => make!(u64, random.bits() % 19),
        (TypeKind::UInt, 32) => make!(u32, (random.bits() % 19) as u32),
        (TypeKind::UInt, 16) => make!(u16, (random.bits() % 19) as u16),
        (TypeKind::UInt, _) => make!(u8, (random.bits() % 19) as u8),
        _ => random.tensor(dtype, shape),
    }
}

/// What rounding in another order may make of a result.
fn tolerance(dtype: DType) -> Tolerance {
    let both = |t| Tolerance { relative: t, absolute: t };
    match (dtype.kind, dtype.bits) {
        (TypeKind::Float, 64) => both(1e-10),
        (TypeKind::Float, 16) => both(2e-3),
        (TypeKind::BFloat, _) => both(1.6e-2),
        _ => both(2e-5),
    }
}

/// Compiles a function and runs it on random inputs, natively and in the interpreter.
#[track_caller]
fn check(what: &str, func: Result<TensorFunc>) {
    check_with(what, func, &|_, _| None);
}

/// The same, where some inputs are chosen.
#[track_caller]
fn check_with(what: &str, func: Result<TensorFunc>, choice: Choice<'_>) {
    let func = func.unwrap_or_else(|e| panic!("{what}: {}", e.render()));
    if let Err(e) = compare_runs(what, func, choice) {
        panic!("{what}: {}", e.render());
    }
}

fn compare_runs(what: &str, func: TensorFunc, choice: Choice<'_>) -> Result<()> {
    let written = interp::written_params(&func);
    let mut random = Random::new(what.len() as u64);
    let mut inputs = Vec::new();
    for (p, _) in func.params.iter().zip(written).filter(|(_, written)| !written) {
        let Param::Buffer { buffer, .. } = p else { panic!("{what}: a scalar parameter") };
        let shape = buffer.const_shape().unwrap_or_default();
        let shape: Vec<usize> = shape.iter().map(|d| *d as usize).collect();
        inputs.push(match choice(&buffer.name, &shape) {
            Some(tensor) => tensor,
            None => input(&mut random, buffer.dtype(), &shape)?,
        });
    }
    compare_module(what, &calling(func)?, &inputs)
}

/// A module whose graph function calls the function.
fn calling(func: TensorFunc) -> Result<Module> {
    let written = interp::written_params(&func);
    let (mut params, mut outs) = (Vec::new(), Vec::new());
    for (buffer, written) in func.buffers().zip(written) {
        let ty = TensorType { shape: buffer.shape.clone(), dtype: buffer.dtype() };
        if written { outs.push(ty) } else { params.push(GraphVar::tensor(buffer.name.clone(), ty)) }
    }
    let mut graph = Graph::new(params.clone());
    let results = graph.call(func, &params, &outs);
    Ok(graph.returning(results.iter().map(GraphVar::expr).collect()))
}

/// A module with a graph function, under construction.
struct Graph {
    module: Module,
    params: Vec<GraphVar>,
    bindings: Vec<Binding>,
}

impl Graph {
    fn new(params: Vec<GraphVar>) -> Self {
        Graph { module: Module::new(), params, bindings: Vec::new() }
    }

    fn bind(&mut self, ty: GraphType, value: GraphExpr) -> GraphVar {
        let var = GraphVar::new(format!("v{}", self.bindings.len()), ty);
        self.bindings.push(Binding { var: var.clone(), value, span: None });
        var
    }

    /// Calls a function, and gives its results.
    fn call(&mut self, func: TensorFunc, args: &[GraphVar], outs: &[TensorType]) -> Vec<GraphVar> {
        let name = self.module.fresh_name("f");
        // Open sizes that no argument has as an extent are passed as numbers.
        let scalars = func.size_arguments().expect("scalars are sizes");
        self.module.insert(name.clone(), func);
        let args = args.iter().map(GraphVar::expr).collect();
        let call = GraphExpr::CallTir { func: name, args, outs: outs.to_vec(), scalars };
        let tensors: Vec<GraphType> = outs.iter().cloned().map(GraphType::Tensor).collect();
        if let [one] = &tensors[..] {
            return vec![self.bind(one.clone(), call)];
        }
        let tuple = self.bind(GraphType::Tuple(tensors.clone()), call);
        let item = |i| GraphExpr::Item(Box::new(tuple.expr()), i);
        tensors.into_iter().enumerate().map(|(i, ty)| self.bind(ty, item(i))).collect()
    }

    fn returning(mut self, mut values: Vec<GraphExpr>) -> Module {
        let ret = if values.len() == 1 { values.remove(0) } else { GraphExpr::Tuple(values) };
        let graph = GraphFunc {
            params: self.params,
            blocks: vec![BindingBlock {
                dataflow: false,
                bindings: self.bindings,
                outputs: Vec::new(),
            }],
            ret,
            ret_ty: None,
            attrs: Default::default(),
            private: false,
            span: None,
        };
        self.module.insert("main", graph);
        self.module
    }
}

/// Runs a module in the interpreter, and what was made of it natively, on the same inputs.
#[track_caller]
fn compare_runs_of(what: &str, module: &Module, made: &Module) {
    let mut random = Random::new(what.len() as u64);
    let params = &module.graph("main").expect(what).params;
    let ports = params.iter().map(|p| p.ty().as_tensor().expect(what));
    let inputs = ports.map(|ty| input(&mut random, ty.dtype, &ty.const_shape().expect(what)));
    let inputs: Result<Vec<Tensor>> = inputs.collect();
    if let Err(e) = inputs.and_then(|inputs| compare_modules(what, module, made, &inputs)) {
        panic!("{what}: {}", e.render());
    }
}

/// Runs a module both ways.
fn compare_module(what: &str, module: &Module, inputs: &[Tensor]) -> Result<()> {
    compare_modules(what, module, module, inputs)
}

fn compare_modules(what: &str, module: &Module, made: &Module, inputs: &[Tensor]) -> Result<()> {
    if !reads_indices(module) {
        let options = Options::new().check(true);
        let lowered = Session::new(options.clone())
            .stages(made, PipelineStage::Lower)
            .map(|staged| staged.module)?;
        let checks = lowered.tensors().map(|(_, f)| bounds::count(f)).sum::<usize>();
        assert_eq!(checks, 0, "{what}: accesses that are not proved to be in range");
    }
    let expected = interp::run_module(module, "main", inputs)?;
    let options = Options::new().threads(2).cache(false).check(true);
    let got = compile(made, &options)?.run(inputs)?;
    assert_eq!(got.len(), expected.len(), "{what}");
    for (got, expected) in got.iter().zip(&expected) {
        let comparison = compare(got, expected, tolerance(expected.dtype()));
        assert!(comparison.agrees(), "{what}: {comparison}");
    }
    Ok(())
}

/// Positions in an axis of this extent, some counted from the end.
fn indices(shape: &[usize], extent: usize) -> Tensor {
    let mut random = Random::new(extent as u64);
    let len = shape.iter().product();
    let values: Vec<i64> =
        (0..len).map(|_| (random.bits() % (2 * extent as u64)) as i64 - extent as i64).collect();
    Tensor::from_slice(shape, &values).expect("a tensor")
}

/// Whether an index somewhere is read from memory: what no proof can know.
fn reads_indices(module: &Module) -> bool {
    #[derive(Default)]
    struct Find {
        inside: bool,
        found: bool,
    }
    impl Visit for Find {
        fn expr(&mut self, e: &Expr) {
            let load = matches!(e.kind(), ExprKind::Load(..));
            self.found |= load && self.inside;
            let inside = self.inside || load;
            let outside = std::mem::replace(&mut self.inside, inside);
            walk_expr(self, e);
            self.inside = outside;
        }
        fn stmt(&mut self, s: &Stmt) {
            // A number from memory that has a name is used in an index, or decides one.
            if let StmtKind::Let { value, .. } = s.kind() {
                self.found |= value.dtype().is_int() && value.effects().loads;
            }
            walk_stmt(self, s);
        }
    }
    module.tensors().any(|(_, f)| {
        let mut find = Find::default();
        find.stmt(&f.body);
        find.found
    })
}
