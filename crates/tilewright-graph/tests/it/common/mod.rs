//! Graphs of operators for tests.

#![allow(dead_code, reason = "each test file uses a part")]

use std::sync::Arc;

use tilewright_analysis::{Stage, stages};
use tilewright_graph::normal;
use tilewright_ir::{
    Attrs, Binding, BindingBlock, DType, Function, GraphExpr, GraphFunc, GraphVar, Module, Tensor,
    TensorFunc, TensorType, dim,
};
use tilewright_ops::{Operand, results};

/// A graph function that grows call by call.
#[derive(Default)]
pub struct Graph {
    pub module: Module,
    params: Vec<GraphVar>,
    bindings: Vec<Binding>,
}

impl Graph {
    pub fn input(&mut self, name: &str, shape: &[usize]) -> GraphVar {
        self.input_of(name, &Operand::f32(shape))
    }

    pub fn input_of(&mut self, name: &str, of: &Operand) -> GraphVar {
        self.input_var(GraphVar::tensor(name, fixed(of)))
    }

    pub fn input_var(&mut self, var: GraphVar) -> GraphVar {
        self.params.push(var.clone());
        var
    }

    pub fn bind(&mut self, name: &str, ty: TensorType, value: GraphExpr) -> GraphVar {
        let var = GraphVar::tensor(name, ty);
        self.bind_var(&var, value);
        var
    }

    pub fn bind_var(&mut self, var: &GraphVar, value: GraphExpr) {
        self.bindings.push(Binding { var: var.clone(), value, span: None });
    }

    /// A scalar constant with a variable of its own.
    pub fn constant(&mut self, value: f32) -> GraphVar {
        let name = match value {
            3.0 => "three",
            6.0 => "six",
            _ => "c",
        };
        let t = Tensor::from_slice(&[], &[value]).expect("small");
        self.bind(name, TensorType::fixed(&[], t.dtype()), GraphExpr::Const(t))
    }

    /// A scalar constant of a type.
    pub fn constant_of(&mut self, dtype: DType, value: f32) -> GraphVar {
        let t = match dtype {
            DType::I32 => Tensor::from_slice(&[], &[value as i32]),
            _ => Tensor::from_slice(&[], &[value]),
        };
        let t = t.expect("small");
        self.bind("c", TensorType::fixed(&[], t.dtype()), GraphExpr::Const(t))
    }

    /// Adds a function of one result and calls it.
    pub fn call(&mut self, name: &str, func: TensorFunc, args: &[&GraphVar]) -> GraphVar {
        let args = args.iter().map(|a| a.expr()).collect();
        self.call_with(name, func, args)
    }

    pub fn call_with(&mut self, name: &str, func: TensorFunc, args: Vec<GraphExpr>) -> GraphVar {
        let out = results(&func, 1).remove(0);
        let ty = fixed(&out);
        let func_name = self.module.fresh_name(name);
        self.module.insert(func_name.clone(), func);
        self.bind(name, ty.clone(), GraphExpr::call_tir(func_name, args, vec![ty]))
    }

    /// The module with the graph function `main` that returns these values.
    pub fn returns(self, outputs: &[&GraphVar]) -> Module {
        let ret = match outputs {
            [one] => one.expr(),
            many => GraphExpr::Tuple(many.iter().map(|v| v.expr()).collect()),
        };
        self.returns_expr(ret)
    }

    pub fn returns_expr(mut self, ret: GraphExpr) -> Module {
        let mut outputs = normal_outputs(&ret);
        outputs.retain(|o| self.bindings.iter().any(|b| b.var == *o));
        outputs.sort_by_key(GraphVar::id);
        outputs.dedup();
        let block = BindingBlock { dataflow: true, bindings: self.bindings, outputs };
        self.module.insert(
            "main",
            GraphFunc {
                params: self.params,
                blocks: vec![block],
                ret,
                ret_ty: None,
                attrs: Attrs::new(),
                private: false,
                span: None,
            },
        );
        self.module
    }
}

fn normal_outputs(ret: &GraphExpr) -> Vec<GraphVar> {
    match ret {
        GraphExpr::Var(v) => vec![v.clone()],
        GraphExpr::Tuple(items) => items.iter().flat_map(normal_outputs).collect(),
        _ => Vec::new(),
    }
}

/// The extents of an operand, which are numbers here.
pub fn extents(of: &Operand) -> Vec<usize> {
    dim::known(&of.shape).expect("constant")
}

fn fixed(of: &Operand) -> TensorType {
    TensorType::fixed(&extents(of), of.dtype)
}

/// Shape and type of a variable.
pub fn operand(v: &GraphVar) -> Operand {
    let ty = v.ty().as_tensor().expect("a tensor");
    Operand::new(&ty.const_shape().expect("constant"), ty.dtype)
}

/// The calls of `main`, each as `result = function(arguments)`.
pub fn calls(module: &Module) -> Vec<String> {
    let main = module.graph("main").expect("main");
    let main = normal::normalize(module, "main", main).expect("normal");
    let text = |e: &GraphExpr| match e {
        GraphExpr::Var(v) => v.name().to_string(),
        GraphExpr::Const(t) => format!("const{:?}", t.shape()),
        other => format!("{other:?}"),
    };
    main.bindings()
        .filter_map(|b| match &b.value {
            GraphExpr::CallTir { func, args, .. } => {
                let args: Vec<String> = args.iter().map(text).collect();
                Some(format!("{} = {func}({})", b.var.name(), args.join(", ")))
            }
            _ => None,
        })
        .collect()
}

/// A tensor function's stages, each as `buffer[indices] = value`.
pub fn stage_texts(module: &Module, name: &str) -> Vec<String> {
    let text = |s: &Stage| format!("{} = {}", s.buffer.load(s.indices.clone()), s.value);
    let func = module.tensor(name).expect("a tensor function");
    stages(func).expect("canonical").iter().map(text).collect()
}

/// The tensor functions of a module.
pub fn functions(module: &Module) -> Vec<(Arc<str>, Arc<TensorFunc>)> {
    let tensor = |(n, f): (&Arc<str>, &Function)| match f {
        Function::Tensor(f) => Some((n.clone(), f.clone())),
        Function::Graph(_) => None,
    };
    module.functions.iter().filter_map(tensor).collect()
}
