//! Data that are not what a model needs of them: indices out of range, divisors of zero, lengths
//! that are too long. The run ends with the name of the node, natively and in the interpreter, and
//! so does the import where the data are constants.

use prost::Message;
use tilewright_driver::{DType, Error, Module, Options, Result, Tensor, compile};
use tilewright_interp as interp;
use tilewright_onnx::proto::{
    AttributeProto, AttributeType, DataType, DimensionProto, DimensionValue, GraphProto,
    ModelProto, NodeProto, OperatorSetId, TensorProto, TensorShapeProto, TensorTypeProto,
    TypeProto, TypeValue, ValueInfoProto,
};
use tilewright_onnx::{ImportOptions, import_bytes};

/// A node named `n`, what it reads, and what to change in that.
struct Case {
    op: &'static str,
    attributes: Vec<AttributeProto>,
    inputs: Vec<Tensor>,
    /// Which input holds the data that may lie.
    which: usize,
}

fn ints(shape: &[usize], values: &[i64]) -> Tensor {
    Tensor::from_slice(shape, values).expect("a tensor")
}

fn floats(shape: &[usize]) -> Tensor {
    let values: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| i as f32).collect();
    Tensor::from_slice(shape, &values).expect("a tensor")
}

fn attribute(name: &str, i: i64) -> AttributeProto {
    AttributeProto { name: name.into(), r#type: AttributeType::Int as i32, i, ..Default::default() }
}

impl Case {
    fn new(op: &'static str, inputs: Vec<Tensor>, which: usize) -> Case {
        Case { op, attributes: Vec::new(), inputs, which }
    }

    fn with(mut self, name: &str, value: i64) -> Case {
        self.attributes.push(attribute(name, value));
        self
    }

    /// The model, with the input in question as a constant or not. An addition before and behind
    /// the node is there to be fused.
    fn module(&self, constant: bool) -> Result<Module> {
        let kind = |t: &Tensor| match t.dtype() {
            DType::F32 => DataType::Float,
            DType::I32 => DataType::Int32,
            DType::U8 => DataType::Uint8,
            _ => DataType::Int64,
        };
        let value = |name: &str, t: &Tensor| {
            let dim = |&d: &usize| DimensionProto { value: Some(DimensionValue::Value(d as i64)) };
            let shape = Some(TensorShapeProto { dim: t.shape().iter().map(dim).collect() });
            let tensor = TensorTypeProto { elem_type: kind(t) as i32, shape };
            let r#type = Some(TypeProto { value: Some(TypeValue::Tensor(tensor)) });
            ValueInfoProto { name: name.into(), r#type }
        };
        let node = |name: &str, op: &str, input: Vec<String>, output: &str| NodeProto {
            name: name.into(),
            op_type: op.into(),
            input,
            output: vec![output.into()],
            ..Default::default()
        };
        let mut graph = GraphProto::default();
        let mut names = Vec::new();
        for (k, t) in self.inputs.iter().enumerate() {
            let name = format!("x{k}");
            if constant && k == self.which {
                graph.initializer.push(TensorProto {
                    name: name.clone(),
                    dims: t.shape().iter().map(|&d| d as i64).collect(),
                    data_type: kind(t) as i32,
                    raw_data: Some(t.bytes().to_vec().into()),
                    ..Default::default()
                })
            } else {
                graph.input.push(value(&name, t))
            }
            names.push(name);
        }
        if !constant {
            let which = &mut names[self.which];
            graph.node.push(node("before", "Abs", vec![which.clone()], "a"));
            graph.node.push(node("sign", "Sign", vec![which.clone()], "s"));
            graph.node.push(node("same", "Mul", vec!["a".into(), "s".into()], "b"));
            *which = "b".into();
        }
        let mut own = node("n", self.op, names, "y");
        own.attribute = self.attributes.clone();
        graph.node.push(own);
        graph.node.push(node("behind", "Neg", vec!["y".into()], "z"));
        graph.output.push(ValueInfoProto { name: "z".into(), r#type: None });
        let model = ModelProto {
            ir_version: 8,
            opset_import: vec![OperatorSetId { domain: String::new(), version: 16 }],
            graph: Some(graph),
            ..Default::default()
        };
        import_bytes("m.onnx", model.encode_to_vec(), &ImportOptions::default())
    }

    /// What comes of these data: natively, in the interpreter, and as a constant.
    fn outcomes(&self, data: &Tensor) -> Vec<Result<Vec<Tensor>>> {
        let mut inputs = self.inputs.clone();
        inputs[self.which] = data.clone();
        let given = Case { inputs: inputs.clone(), attributes: self.attributes.clone(), ..*self };
        let options = Options::new().threads(1).cache(false).check(true);
        let native = |module: &Module, inputs: &[Tensor]| compile(module, &options)?.run(inputs);
        let open = given.module(false);
        let fixed = given.module(true);
        let mut others = inputs.clone();
        others.remove(self.which);
        let open = open.unwrap_or_else(|e| panic!("{}: {}", self.op, e.render()));
        vec![
            native(&open, &inputs),
            interp::run_module(&open, "main", &inputs),
            fixed.and_then(|module| native(&module, &others)),
        ]
    }

    /// These data are refused, each way, with the name of the node and this text.
    #[track_caller]
    fn refuses(&self, data: &Tensor, text: &str) {
        for (k, outcome) in self.outcomes(data).into_iter().enumerate() {
            let e = outcome.err().unwrap_or_else(|| panic!("{} took {data:?} ({k})", self.op));
            let said = e.render();
            assert!(said.contains("node `n` (") && said.contains(text), "{}: {said}", self.op);
            assert!(matches!(e, Error::Execution(_) | Error::Model(_)), "{}: {e:?}", self.op);
        }
    }

    /// These data are taken, and all ways agree.
    #[track_caller]
    fn takes(&self, data: &Tensor) {
        let results: Result<Vec<_>> = self.outcomes(data).into_iter().collect();
        let results = results.unwrap_or_else(|e| panic!("{}: {}", self.op, e.render()));
        assert!(results.windows(2).all(|w| w[0][0].same(&w[1][0])), "{}: {data:?}", self.op);
    }
}

#[test]
fn indices_out_of_range_end_the_run() {
    let x = floats(&[3, 5]);
    let at = |v: &[i64]| ints(&[v.len()], v);
    for case in [
        Case::new("Gather", vec![x.clone(), at(&[0, 1])], 1).with("axis", 1),
        Case::new("ScatterND", vec![floats(&[5]), ints(&[2, 1], &[0, 1]), floats(&[2])], 1),
        Case::new("GatherND", vec![floats(&[5]), ints(&[2, 1], &[0, 1])], 1),
        Case::new("GatherElements", vec![x.clone(), ints(&[1, 2], &[0, 1])], 1).with("axis", 1),
        Case::new("ScatterElements", vec![x, ints(&[1, 2], &[0, 1]), floats(&[1, 2])], 1)
            .with("axis", 1),
    ] {
        let shape = case.inputs[1].shape().to_vec();
        let data = |v: &[i64]| ints(&shape, v);
        case.takes(&data(&[4, -5]));
        case.takes(&data(&[-1, 0]));
        for wrong in [5, -6, i64::MAX, i64::MIN + 1] {
            let last = vec!["0"; shape.len() - 1].join(", ");
            let at = match &*shape {
                [2] => "[1]".to_owned(),
                [2, _] => "[1, 0]".to_owned(),
                _ => format!("[{last}, 1]"),
            };
            let said = format!("the index {wrong} at {at} lies outside of [-5, 4]");
            case.refuses(&data(&[1, wrong]), &said);
        }
    }
}

#[test]
fn tuples_of_indices_have_bounds_for_each_axis() {
    let inputs = vec![floats(&[2, 3, 4]), ints(&[2, 2], &[0, 0, 1, 2])];
    let case = Case::new("GatherND", inputs, 1);
    case.takes(&ints(&[2, 2], &[-2, -3, 1, 2]));
    case.refuses(
        &ints(&[2, 2], &[0, 0, 2, 1]),
        "the index 2 at [1, 0] lies outside of [-2, 1] x [-3, 2]",
    );
    case.refuses(
        &ints(&[2, 2], &[0, 3, 0, 0]),
        "the index 3 at [0, 1] lies outside of [-2, 1] x [-3, 2]",
    );
    let inputs = vec![floats(&[2, 3, 4]), ints(&[2, 1], &[0, 0])];
    let case = Case::new("GatherND", inputs, 1).with("batch_dims", 1);
    case.takes(&ints(&[2, 1], &[2, -3]));
    case.refuses(&ints(&[2, 1], &[0, 3]), "lies outside of [-3, 2]");
}

#[test]
fn integers_are_not_divided_by_zero() {
    let numbers = ints(&[2, 3], &[7, -7, 8, -8, 0, 9]);
    for (op, fmod) in [("Div", None), ("Mod", None), ("Mod", Some(1))] {
        let mut case = Case::new(op, vec![numbers.clone(), ints(&[3], &[1, 2, 3])], 1);
        if let Some(fmod) = fmod {
            case = case.with("fmod", fmod);
        }
        case.takes(&ints(&[3], &[1, -1, -3]));
        case.refuses(&ints(&[3], &[1, 2, 0]), "the divisor at [2] is zero");
    }
    let halves = vec![floats(&[3]), floats(&[3])];
    // Floats have a quotient for every divisor.
    Case::new("Div", halves, 1).takes(&Tensor::from_slice(&[3], &[1.0f32, 2.0, 0.5]).expect("t"));
}

#[test]
fn sequences_are_not_longer_than_the_tensor() {
    let case = Case::new("ReverseSequence", vec![floats(&[4, 2]), ints(&[2], &[1, 2])], 1);
    case.takes(&ints(&[2], &[4, 0]));
    case.refuses(&ints(&[2], &[4, 5]), "lies outside of [0, 4]");
    case.refuses(&ints(&[2], &[-1, 1]), "lies outside of [0, 4]");
}
