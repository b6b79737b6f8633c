//! Random graph functions.

use super::*;

impl Gen<'_> {
    pub(super) fn tensor(&mut self) -> Tensor {
        let dtype = self.of(&[
            DType::F32,
            DType::I64,
            DType::BOOL,
            DType::F16,
            DType::U8,
            DType::BF16,
            DType::F64,
            DType::U64,
            DType::I8,
        ]);
        let rank = self.pick(4);
        let shape: Vec<usize> = (0..rank).map(|_| self.pick(6)).collect();
        let n = shape.iter().product::<usize>() * dtype.bytes();
        let bytes: Vec<u8> = (0..n)
            .map(|_| match dtype.kind {
                TypeKind::Bool => self.pick(3) as u8,
                _ => self.byte() as u8,
            })
            .collect();
        Tensor::from_bytes(dtype, &shape, &bytes).unwrap_or_else(|e| panic!("{e}"))
    }

    fn graph_type(&mut self, depth: usize) -> GraphType {
        match self.pick(if depth == 0 { 3 } else { 4 }) {
            0 => {
                let shape = (0..self.pick(4)).map(|_| self.small(DType::I64)).collect();
                GraphType::Tensor(TensorType { shape, dtype: self.of(FLOATS) })
            }
            1 => {
                let dims: Vec<Var> = self.vars.clone();
                let shape = (0..self.pick(3))
                    .map(|_| {
                        if dims.is_empty() {
                            Expr::int(3, DType::I32)
                        } else {
                            self.of(&dims).expr()
                        }
                    })
                    .collect();
                GraphType::Tensor(TensorType { shape, dtype: DType::F32 })
            }
            2 => {
                let texts = [
                    "R.Object",
                    "R.Tensor(dtype=\"float32\", ndim=4)",
                    "R.Shape([1, 2])",
                    "R.Tensor((1,))",
                    "nonsense (",
                    "",
                    "R.Object # x",
                    "R.Tuple",
                ];
                GraphType::Opaque(self.of(&texts).into())
            }
            _ => GraphType::Tuple((0..self.pick(3)).map(|_| self.graph_type(depth - 1)).collect()),
        }
    }

    /// The call of an operator with any arguments and attributes.
    fn graph_call(&mut self, known: &[GraphVar]) -> GraphExpr {
        let ops = [
            "R.nn.relu",
            "R.add",
            "R.exp",
            "R.call_tir",
            "R.shape",
            "weird op",
            "R.Tensor",
            "R.lambda",
            "custom",
        ];
        let op = self.of(&ops);
        let mut args = Vec::new();
        for _ in 0..self.pick(3) {
            args.push(self.graph_value(known, 1));
        }
        let mut attrs = self.attrs(2);
        for i in 0..self.pick(3) {
            let key = format!("_{}", i + self.pick(2));
            attrs.insert(key.into(), self.attr(1));
        }
        GraphExpr::Call { op: op.into(), args, attrs }
    }

    /// A call, and a type that it may be declared as: only of `R.shape` with a list of sizes is
    /// the type known to the check. A negative size is in no type: another operator stands for
    /// `R.shape` there.
    fn typed_call(&mut self, known: &[GraphVar]) -> (GraphType, GraphExpr) {
        let call = self.graph_call(known);
        match call.as_shape() {
            Some(sizes) if sizes.iter().any(|e| e.as_int().is_some_and(|v| v < 0)) => {
                let attrs = self.attrs(2);
                (
                    self.graph_type(2),
                    GraphExpr::Call { op: "custom".into(), args: Vec::new(), attrs },
                )
            }
            Some(sizes) => (GraphType::Shape(sizes), call),
            None => (self.graph_type(2), call),
        }
    }

    fn graph_value(&mut self, known: &[GraphVar], depth: usize) -> GraphExpr {
        match self.pick(if depth == 0 { 2 } else { 4 }) {
            0 if !known.is_empty() => self.of(known).expr(),
            0 | 1 => GraphExpr::Const(self.tensor()),
            2 => self.graph_call(known),
            _ => {
                let n = self.pick(3);
                GraphExpr::Tuple((0..n).map(|_| self.graph_value(known, depth - 1)).collect())
            }
        }
    }

    /// A function that calls the tensor function `copy` of `float32[4]`, operators, and more.
    pub(super) fn graph_func(&mut self, copy: &str) -> GraphFunc {
        let dims = [Var::new("n", DType::I64), Var::new(self.name(), DType::I32)];
        self.vars = dims.to_vec();
        let whole = TensorType { shape: dims.iter().map(Var::expr).collect(), dtype: DType::F32 };
        let mut params = vec![GraphVar::tensor(self.name(), whole)];
        for _ in 0..self.pick(3) {
            let ty = self.graph_type(2);
            params.push(GraphVar::new(self.name(), ty));
        }
        let mut known = params.clone();
        let four = || TensorType::fixed(&[4], DType::F32);
        let mut blocks = Vec::new();
        for _ in 0..self.pick(4) {
            let dataflow = self.chance(2);
            let mark = known.len();
            let mut bindings = Vec::new();
            for _ in 0..self.pick(4) {
                let (ty, value) = match self.pick(3) {
                    0 => {
                        let t = Tensor::zeros(DType::F32, &[4]).unwrap_or_else(|e| panic!("{e}"));
                        let args = vec![GraphExpr::Const(t)];
                        (GraphType::Tensor(four()), GraphExpr::call_tir(copy, args, vec![four()]))
                    }
                    1 => {
                        let (ty, call) = self.typed_call(&known);
                        let items = vec![GraphExpr::Const(self.tensor()), call];
                        (ty, GraphExpr::Item(Box::new(GraphExpr::Tuple(items)), 1))
                    }
                    _ => self.typed_call(&known),
                };
                let var = GraphVar::new(self.name(), ty);
                known.push(var.clone());
                bindings.push(Binding { var, value, span: None });
            }
            let bound: Vec<GraphVar> = bindings.iter().map(|b| b.var.clone()).collect();
            let mut outputs = Vec::new();
            for v in bound {
                if dataflow && self.chance(2) {
                    outputs.push(v);
                }
            }
            if dataflow {
                known.truncate(mark);
                known.extend(outputs.iter().cloned());
            }
            blocks.push(BindingBlock { dataflow, bindings, outputs });
        }
        let ret = self.graph_value(&known, 2);
        let mut attrs = self.attrs(2);
        attrs.remove("output_names");
        self.vars.clear();
        GraphFunc { params, blocks, ret, ret_ty: None, attrs, private: self.chance(3), span: None }
    }
}
