//! Values that are no tensors of numbers: sequences and optionals as inputs and outputs of a model,
//! and strings; and operators of other domains than ONNX's own.

use prost::Message;
use tilewright_interp::run_module;
use tilewright_ir::{Attr, DType, Tensor, well_formed};
use tilewright_onnx::proto::{
    DataType, ElementTypeProto, ModelProto, OperatorSetId, TensorProto, TensorTypeProto, TypeProto,
    TypeValue, ValueInfoProto,
};
use tilewright_onnx::{ImportOptions, import_bytes};

use super::common::{M, float, foreign, graph, int, ints, model, text, texts};

fn floats(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).expect("a tensor")
}

/// A tensor type of one axis.
fn tensor_type() -> TypeProto {
    let tensor = TensorTypeProto { elem_type: DataType::Float as i32, shape: None };
    TypeProto { value: Some(TypeValue::Tensor(tensor)) }
}

fn of(elem: TypeProto) -> prost::bytes::Bytes {
    ElementTypeProto { elem_type: Some(elem) }.encode_to_vec().into()
}

fn typed(name: &str, value: TypeValue) -> ValueInfoProto {
    ValueInfoProto { name: name.into(), r#type: Some(TypeProto { value: Some(value) }) }
}

fn sequence(name: &str) -> ValueInfoProto {
    typed(name, TypeValue::Sequence(of(tensor_type())))
}

fn options(values: &[(&str, Tensor)]) -> ImportOptions {
    ImportOptions {
        values: values.iter().map(|(name, t)| ((*name).to_owned(), t.clone())).collect(),
        ..Default::default()
    }
}

fn rendered(m: &M, given: &ImportOptions) -> String {
    m.import_with(given).map_or_else(|e| e.render(), |_| "it was imported".to_owned())
}

/// The outputs of a model for inputs that are given at import.
fn run(m: &M, values: &[(&str, Tensor)]) -> Vec<Tensor> {
    let module = m.import_with(&options(values)).unwrap_or_else(|e| panic!("{}", e.render()));
    well_formed::check_module(&module).unwrap_or_else(|e| panic!("{}", e.render()));
    let main = module.graph("main").expect("it is there");
    let taken: Vec<Tensor> = main
        .params
        .iter()
        .map(|p| values.iter().find(|(name, _)| **name == **p.name()).expect("given").1.clone())
        .collect();
    run_module(&module, "main", &taken).unwrap_or_else(|e| panic!("{}", e.render()))
}

fn numbers(t: &Tensor) -> Vec<f64> {
    (0..t.len()).map(|k| t.get_f64(k)).collect()
}

#[test]
fn nan_is_one_element_among_others_and_the_last() {
    let m = model().opset(11).input("x", [5]).node("Unique", &["x"], &["y", "i", "r", "n"]);
    let m = ["y", "i", "r", "n"].into_iter().fold(m, |m, name| m.output(name));
    let outputs = run(&m, &[("x", floats(&[f32::NAN, 5.0, 1.0, f32::NAN, 1.0]))]);
    let all: Vec<Vec<f64>> = outputs.iter().map(numbers).collect();
    assert_eq!(all[0][..2], [1.0, 5.0]);
    assert!(all[0].len() == 3 && all[0][2].is_nan(), "{all:?}");
    assert_eq!(all[1..], [vec![2.0, 1.0, 0.0], vec![2.0, 1.0, 0.0, 2.0, 0.0], vec![2.0, 1.0, 2.0]]);
    // In the order of the list.
    let m =
        model().opset(11).input("x", [3]).node_with("Unique", &["x"], &["y"], [int("sorted", 0)]);
    let outputs = run(&m.output("y"), &[("x", floats(&[f32::NAN, 2.0, f32::NAN]))]);
    assert!(outputs[0].get_f64(0).is_nan() && numbers(&outputs[0])[1..] == [2.0]);
}

#[test]
fn the_tensors_of_a_sequence_are_inputs() {
    let mut m = model();
    m.graph.input.push(sequence("s"));
    let m = m
        .ints("one", &[1])
        .node("SequenceAt", &["s", "one"], &["at"])
        .node("SequenceLength", &["s"], &["n"])
        .output("at")
        .output("n");
    let given = [("s.0", floats(&[1.0])), ("s.1", floats(&[2.0, 3.0]))];
    let outputs = run(&m, &given);
    assert_eq!(outputs[0].as_slice(), Some(&[2.0f32, 3.0][..]));
    assert_eq!(outputs[1].get_i128(0), 2);
    let gap = [("s.0", floats(&[1.0])), ("s.2", floats(&[2.0]))];
    let said = rendered(&m, &options(&gap));
    assert!(said.contains("the model has no input `s.2`"), "{said}");
    let wide = [("s.0", Tensor::from_slice(&[1], &[1i64]).expect("a tensor"))];
    let said = rendered(&m, &options(&wide));
    assert!(
        said.contains("input `s.0` has elements of type float32, and was given int64"),
        "{said}"
    );
}

#[test]
fn an_optional_that_is_not_given_has_no_value() {
    let mut m = model().opset(18);
    m.graph.input.push(typed("o", TypeValue::Optional(of(tensor_type()))));
    let m = m.node("OptionalHasElement", &["o"], &["has"]).output("has");
    assert_eq!(run(&m, &[])[0].get_i128(0), 0);
    assert_eq!(run(&m, &[("o", floats(&[1.0]))])[0].get_i128(0), 1);
}

#[test]
fn a_sequence_may_be_an_output() {
    let mut m = model().input("x", [3]).node("SplitToSequence", &["x"], &["s"]);
    m.graph.output.push(sequence("s"));
    let module = m.import().unwrap_or_else(|e| panic!("{}", e.render()));
    well_formed::check_module(&module).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut m = model().input("x", [3]).node("SplitToSequence", &["x"], &["s"]);
    m.graph.output.push(super::common::value("s", DataType::Float, [3]));
    let said = m.refused();
    assert!(said.contains("declared as a tensor, but is computed as a sequence"), "{said}");
    let map = typed("m", TypeValue::Map(Default::default()));
    let mut m = model();
    m.graph.input.push(map);
    let said = m.node("Identity", &["m"], &["y"]).output("y").refused();
    assert!(said.contains("it is a map whose keys are neither int64 nor strings"), "{said}");
    let maps = TypeProto { value: Some(TypeValue::Map(Default::default())) };
    let mut m = model().input("x", [3]).node("Neg", &["x"], &["s"]);
    m.graph.output.push(typed("s", TypeValue::Sequence(of(maps))));
    let said = m.refused();
    assert!(said.contains("it is a map whose keys are neither int64 nor strings"), "{said}");
}

/// Strings as a model is given them.
fn bytes(shape: &[usize], words: &[&str]) -> Tensor {
    let width = words.iter().map(|w| w.len()).max().unwrap_or(0).max(1);
    let mut all = vec![0u8; words.len() * width];
    for (to, word) in all.chunks_exact_mut(width).zip(words) {
        to[..word.len()].copy_from_slice(word.as_bytes());
    }
    Tensor::from_slice(&[shape, &[width]].concat(), &all).expect("a tensor")
}

fn of_texts(shape: [i64; 1]) -> M {
    model().opset(20).typed_input("x", DataType::String, shape)
}

#[test]
fn strings_are_computed_at_import() {
    let suffix = TensorProto {
        name: "suffix".into(),
        data_type: DataType::String as i32,
        string_data: vec!["!".as_bytes().to_vec().into()],
        ..Default::default()
    };
    let m = of_texts([2])
        .constant(suffix)
        .node("StringConcat", &["x", "suffix"], &["y"])
        .node_with("RegexFullMatch", &["x"], &["m"], [text("pattern", "[a-c]+")])
        .node("Equal", &["x", "x"], &["e"])
        .output("y")
        .output("m")
        .output("e");
    let given = [("x", bytes(&[2], &["abc", "d"]))];
    let outputs = run(&m, &given);
    let expected = bytes(&[2], &["abc!", "d!"]);
    assert_eq!((outputs[0].shape(), outputs[0].bytes()), (expected.shape(), expected.bytes()));
    assert_eq!(outputs[1].bytes(), [1, 0]);
    assert_eq!(outputs[2].bytes(), [1, 1]);
    let module = m.import_with(&options(&given)).expect("it is fine");
    let fixed = module.graph("main").expect("it is there").attrs.get("fixed_inputs").cloned();
    let Some(Attr::List(names)) = fixed else { panic!("{fixed:?}") };
    assert!(matches!(&names[..], [Attr::Str(name)] if **name == *"x"), "{names:?}");
    let said = rendered(&m, &ImportOptions::default());
    assert!(said.contains("input `x` holds strings, and is not given"), "{said}");
    let said = rendered(&m, &options(&[("x", super::common::sample(&[2, 1], 1))]));
    assert!(said.contains("has elements of type uint8, and was given float32"), "{said}");
    let m = of_texts([2]).node("Neg", &["x"], &["y"]).output("y");
    let said = rendered(&m, &options(&given));
    assert!(said.contains("holds strings, which the operator does not take here"), "{said}");
    let bad = [text("pattern", "(")];
    let m = of_texts([2]).node_with("RegexFullMatch", &["x"], &["y"], bad).output("y");
    let said = rendered(&m, &options(&given));
    assert!(said.contains("`pattern` is not a regular expression: ("), "{said}");
}

#[test]
fn stop_words_go() {
    let attributes = [
        texts("stopwords", &["MONDAY"]),
        text("case_change_action", "UPPER"),
        int("is_case_sensitive", 0),
    ];
    let m = of_texts([3]).node_with("StringNormalizer", &["x"], &["y"], attributes).output("y");
    let outputs = run(&m, &[("x", bytes(&[3], &["monday", "a", "Monday"]))]);
    assert_eq!((outputs[0].shape(), outputs[0].bytes()), (&[1, 1][..], &b"A"[..]));
    let outputs = run(&m, &[("x", bytes(&[3], &["monday", "Monday", "Monday"]))]);
    assert_eq!((outputs[0].shape(), outputs[0].bytes()), (&[1, 1][..], &[0u8][..]));
}

#[test]
fn texts_are_taken_apart_into_tokens() {
    // What ONNX Runtime says of the same strings; `|` stands between tokens.
    let tokens = |attribute, given: &[&str], mark, least| {
        let attributes =
            [attribute, int("mark", mark), int("mincharnum", least), text("pad_value", "#")];
        let m = of_texts([given.len() as i64])
            .node_with("Tokenizer", &["x"], &["y"], attributes)
            .output("y");
        let m = foreign("com.microsoft", &m, &[("", 17), ("com.microsoft", 1)]);
        let x = bytes(&[given.len()], given);
        let module = import_bytes("m", m, &options(&[("x", x)]))?;
        let y = run_module(&module, "main", &[]).expect("it runs").remove(0);
        let width = *y.shape().last().expect("an axis of bytes");
        let tokens: Vec<String> = y
            .bytes()
            .chunks(width)
            .map(|t| String::from_utf8_lossy(t).trim_end_matches('\0').to_owned())
            .collect();
        Ok::<_, tilewright_ir::Error>(tokens.join("|"))
    };
    let of = |attribute, given: &[&str], mark, least| {
        tokens(attribute, given, mark, least).unwrap_or_else(|e| panic!("{}", e.render()))
    };
    let by = |patterns: &[&str]| texts("separators", patterns);
    let like = |pattern: &str| text("tokenexp", pattern);
    assert_eq!(of(by(&[" ", ","]), &["a b,c", "d"], 0, 1), "a|b|c|d|#|#");
    assert_eq!(of(by(&[" "]), &["", "a b"], 1, 1), "\u{2}|\u{3}|#|#|\u{2}|a|b|\u{3}");
    assert_eq!(of(by(&[" "]), &[" ", ""], 1, 1), "", "no token, and no mark");
    assert_eq!(of(by(&["X|XY"]), &["aXYbXc"], 0, 1), "a|b|c");
    assert_eq!(of(by(&[""]), &["a\u{e9} c", ""], 0, 1), "a|\u{e9}| |c|#|#|#|#");
    // The longest match, whatever comes first; classes of ASCII.
    assert_eq!(of(like("a|ab"), &["abab ab"], 0, 1), "ab|ab|ab");
    assert_eq!(of(like(r"\w+"), &["h\u{e9}llo w"], 0, 2), "llo");
    assert_eq!(of(like(r"\b\w\w+\b"), &["ab  cd e"], 0, 1), "ab|cd");
    assert_eq!(of(like("[[a]"), &["a[b"], 0, 1), "a|[");
    assert_eq!(of(like("[^]a ]+"), &["a]bc d"], 0, 1), "bc|d");
    assert_eq!(of(like("b*a?"), &["aab"], 0, 1), "a|a|b");
    assert_eq!(of(like("."), &["a\nb"], 0, 1), "a|\n|b");
    for (attribute, least, expected) in [
        (by(&[]), 1, "neither attribute `separators` nor `tokenexp`"),
        (by(&["("]), 1, "`separators` is not a regular expression: ("),
        (by(&["a", "x*"]), 1, "`x*`, which separates by nothing"),
        (by(&[" "]), 0, "`mincharnum` is 0, and at least 1 is needed"),
        (by(&[""]), 2, "where each character is a token"),
        (like(""), 1, "`tokenexp` is empty"),
    ] {
        let said = tokens(attribute, &["a"], 0, least).expect_err("it is refused").render();
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn operators_of_other_domains_have_versions_of_their_own() {
    let m = model().input("x", [3]).node_with(
        "LabelEncoder",
        &["x"],
        &["y"],
        [
            super::common::floats("keys_floats", &[1.0, f32::NAN, 1.0]),
            ints("values_int64s", &[5, 6, 7]),
            int("default_int64", -2),
        ],
    );
    let m = m.output("y");
    let none = ImportOptions::default();
    let bytes = foreign("ai.onnx.ml", &m, &[("ai.onnx.ml", 4)]);
    let module = import_bytes("m", bytes, &none).unwrap_or_else(|e| panic!("{}", e.render()));
    let y = run_module(&module, "main", &[floats(&[1.0, 2.0, f32::NAN])]).expect("it runs");
    assert_eq!((y[0].dtype(), y[0].as_slice()), (DType::I64, Some(&[7i64, -2, 6][..])));
    let said = |versions: &[(&str, i64)]| {
        let bytes = foreign("ai.onnx.ml", &m, versions);
        import_bytes("m", bytes, &none).map_or_else(|e| e.render(), |_| "imported".to_owned())
    };
    let missing = said(&[("", 13)]);
    assert!(missing.contains("which version of the operators of `ai.onnx.ml`"), "{missing}");
    let new = said(&[("ai.onnx.ml", 6)]);
    assert!(new.contains("it is in opsets 1 to 5"), "{new}");
    let m = model().input("x", [1]).node("Binarizer", &["x"], &["y"]).output("y");
    let bytes = foreign("elsewhere", &m, &[("", 13)]);
    let said = import_bytes("m", bytes, &none).map_or_else(|e| e.render(), |_| String::new());
    assert!(said.contains("operators of the domain `elsewhere` are not supported"), "{said}");
}

#[test]
fn n_grams_are_counted_in_each_row() {
    let attributes = |mode: &str| {
        [
            text("mode", mode),
            int("min_gram_length", 1),
            int("max_gram_length", 2),
            int("max_skip_count", 1),
            ints("ngram_counts", &[0, 2]),
            ints("ngram_indexes", &[1, 0, 2]),
            ints("pool_int64s", &[7, 9, 7, 9]),
            super::common::floats("weights", &[2.0, 3.0, 0.5]),
        ]
    };
    let run = |mode| {
        let m = model()
            .typed_input("x", DataType::Int64, [2, 4])
            .node_with("TfIdfVectorizer", &["x"], &["y"], attributes(mode))
            .output("y");
        let module = m.import().unwrap_or_else(|e| panic!("{}", e.render()));
        let x = Tensor::from_slice(&[2, 4], &[7i64, 9, 9, 7, 1, 7, 1, 9]).expect("a tensor");
        let y = run_module(&module, "main", &[x]).expect("it runs").remove(0);
        assert_eq!(y.shape(), [2, 3]);
        y.as_slice::<f32>().expect("floats").to_vec()
    };
    // 9 twice, 7 twice, 7 9 next to each other and with one between.
    assert_eq!(run("TF"), [2.0, 2.0, 2.0, 1.0, 1.0, 1.0]);
    assert_eq!(run("IDF"), [3.0, 2.0, 0.5, 3.0, 2.0, 0.5]);
    assert_eq!(run("TFIDF"), [6.0, 4.0, 1.0, 3.0, 2.0, 0.5]);
}

#[test]
fn bits_change_their_type() {
    for (from, to, x, y) in [
        (DataType::Float, DataType::Uint32, floats(&[1.0]), 0x3f80_0000),
        (DataType::Bool, DataType::Int8, Tensor::from_bools(&[1], &[true]).expect("a tensor"), 1),
        (DataType::Int4, DataType::Uint4, Tensor::from_slice(&[1], &[-1i8]).expect("a tensor"), 15),
        (
            DataType::Uint8,
            DataType::Float8e5m2,
            Tensor::from_slice(&[1], &[200u8]).expect("a tensor"),
            200,
        ),
    ] {
        let m = model()
            .opset(26)
            .typed_input("x", from, [1])
            .node_with("BitCast", &["x"], &["y"], [int("to", to as i64)])
            .output("y");
        let module = m.import().unwrap_or_else(|e| panic!("{}", e.render()));
        let out = run_module(&module, "main", &[x]).expect("it runs");
        assert_eq!(out[0].get_i128(0), y, "{from:?} as {to:?}");
    }
    let m = model()
        .opset(26)
        .input("x", [1])
        .node_with("BitCast", &["x"], &["y"], [int("to", DataType::Int8 as i64)])
        .output("y");
    let said = m.refused();
    assert!(
        said.contains("an element of type float32 has 32 bits, one of type int8 has 8"),
        "{said}"
    );
}

#[test]
fn a_crop_is_resized_and_what_lies_outside_has_a_value() {
    let m = model()
        .opset(13)
        .input("x", [1, 1, 3, 3])
        .floats("roi", &[8], &[0.0, 0.0, 0.5, 0.0, 1.0, 1.0, 1.5, 1.0])
        .floats("none", &[0], &[])
        .ints("sizes", &[1, 1, 3, 3])
        .node_with(
            "Resize",
            &["x", "roi", "none", "sizes"],
            &["y"],
            [
                text("mode", "linear"),
                text("coordinate_transformation_mode", "tf_crop_and_resize"),
                float("extrapolation_value", 9.0),
            ],
        )
        .output("y");
    let module = m.import().unwrap_or_else(|e| panic!("{}", e.render()));
    let x: Vec<f32> = (0..9).map(|v| v as f32).collect();
    let x = Tensor::from_slice(&[1, 1, 3, 3], &x).expect("a tensor");
    let y = run_module(&module, "main", &[x]).expect("it runs").remove(0);
    let expected = [3.0f32, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 9.0, 9.0];
    assert_eq!(y.as_slice(), Some(&expected[..]));
}

#[test]
fn graphs_change_scores_and_probabilities() {
    let scores = model().input("s", ["B", "H", "L", "S"]).floats("k", &[], &[0.0]);
    let scores = scores.node("Mul", &["s", "k"], &["t"]).output("t");
    let query = model()
        .input("q", [1, 2, 3, 4])
        .input("k", [1, 1, 5, 4])
        .input("v", [1, 1, 5, 6])
        .node_with("FlexAttention", &["q", "k", "v"], &["y"], [graph("score_mod", scores)])
        .output("y");
    let bytes = foreign("ai.onnx.preview", &query, &[("", 26), ("ai.onnx.preview", 1)]);
    let module = import_bytes("m", bytes, &ImportOptions::default());
    // The operators of the inner graph are ONNX's own.
    let module = module.unwrap_or_else(|e| panic!("{}", e.render()));
    let sample = super::common::sample;
    let (q, k, v) = (sample(&[1, 2, 3, 4], 1), sample(&[1, 1, 5, 4], 2), sample(&[1, 1, 5, 6], 3));
    let y = run_module(&module, "main", &[q, k, v.clone()]).expect("it runs").remove(0);
    assert_eq!(y.shape(), [1, 2, 3, 6]);
    // All keys count the same.
    let mean = (0..5).map(|s| v.get_f64(s * 6)).sum::<f64>() / 5.0;
    assert!((y.get_f64(0) - mean).abs() < 1e-6);
}

#[test]
fn functions_of_the_model_may_have_branches() {
    use tilewright_onnx::proto::{FunctionProto, NodeProto};
    let node = |op: &str, domain: &str, inputs: &[&str], output: &str| NodeProto {
        op_type: op.into(),
        domain: domain.into(),
        input: inputs.iter().map(|s| (*s).into()).collect(),
        output: vec![output.into()],
        ..Default::default()
    };
    // The names of the branches are those of the graph around the call, which they do not mean.
    let mut then = model();
    then.graph.node.push(node("Double", "own", &["a"], "x"));
    let otherwise = model().node("Neg", &["a"], &["c"]).output("c");
    let mut choice = node("If", "", &["go"], "b");
    choice.attribute =
        vec![graph("then_branch", then.output("x")), graph("else_branch", otherwise)];
    let function = |name: &str, inputs: &[&str], inner: NodeProto| FunctionProto {
        domain: "own".into(),
        name: name.into(),
        input: inputs.iter().map(|s| (*s).into()).collect(),
        output: inner.output.clone(),
        node: vec![inner],
        ..Default::default()
    };
    let m = model()
        .input("x", [2])
        .typed_input("c", DataType::Bool, [1])
        .node("Choose", &["x", "c"], &["y"])
        .output("y");
    let mut proto = ModelProto::decode(m.bytes().as_slice()).expect("a model");
    proto.graph.as_mut().expect("a graph").node[0].domain = "own".into();
    proto.functions = vec![
        function("Choose", &["a", "go"], choice),
        function("Double", &["v"], node("Add", "", &["v", "v"], "w")),
    ];
    let module = import_bytes("m", proto.encode_to_vec(), &ImportOptions::default());
    let module = module.unwrap_or_else(|e| panic!("{}", e.render()));
    for (go, expected) in [(true, [2.0f32, 4.0]), (false, [-1.0, -2.0])] {
        let c = Tensor::from_bools(&[1], &[go]).expect("a tensor");
        let y = run_module(&module, "main", &[floats(&[1.0, 2.0]), c]).expect("it runs");
        assert_eq!(y[0].as_slice(), Some(&expected[..]));
    }
}

#[test]
fn a_function_uses_the_operators_of_its_own_version() {
    use tilewright_onnx::proto::{FunctionProto, NodeProto};
    let node = |op: &str, domain: &str, input: &str, output: &str| NodeProto {
        op_type: op.into(),
        domain: domain.into(),
        input: vec![input.into()],
        output: vec![output.into()],
        ..Default::default()
    };
    let function = |name: &str, version: Option<i64>, inner: NodeProto| FunctionProto {
        domain: "own".into(),
        name: name.into(),
        input: inner.input.clone(),
        output: inner.output.clone(),
        opset_import: version
            .map(|version| OperatorSetId { domain: String::new(), version })
            .into_iter()
            .collect(),
        node: vec![inner],
        ..Default::default()
    };
    // Before opset 13, `Softmax` takes all axes from the second on as one, later the last one alone.
    let sums = |version, inner| {
        let m = model().input("x", [1, 2, 2]).node("Outer", &["x"], &["y"]).output("y");
        let mut proto = ModelProto::decode(m.bytes().as_slice()).expect("a model");
        proto.graph.as_mut().expect("a graph").node[0].domain = "own".into();
        proto.functions = vec![
            function("Outer", version, node("Inner", "own", "a", "b")),
            function("Inner", inner, node("Softmax", "", "a", "b")),
        ];
        let module = import_bytes("m", proto.encode_to_vec(), &ImportOptions::default());
        let module = module.unwrap_or_else(|e| panic!("{}", e.render()));
        let x = Tensor::from_slice(&[1, 2, 2], &[0.0f32; 4]).expect("a tensor");
        run_module(&module, "main", &[x]).expect("it runs")[0].get_f64(0)
    };
    assert_eq!(sums(None, None), 0.5, "the model is of opset 13");
    assert_eq!(sums(None, Some(12)), 0.25);
    assert_eq!(sums(Some(12), Some(17)), 0.5);
    assert_eq!(sums(Some(17), Some(11)), 0.25);
}

#[test]
fn products_of_integers_are_floats_by_their_scales_and_zero_points() {
    let integers = |name: &str, data_type: DataType, dims: &[i64], values: &[i32]| TensorProto {
        name: name.into(),
        dims: dims.to_vec(),
        data_type: data_type as i32,
        int32_data: values.to_vec(),
        ..Default::default()
    };
    let names = ["x", "w", "xs", "ws", "xz", "wz", "b"];
    let m = model()
        .constant(integers("x", DataType::Uint8, &[1, 2], &[3, 5]))
        .constant(integers("w", DataType::Int8, &[2, 2], &[1, -2, 4, 6]))
        .constant(integers("xz", DataType::Uint8, &[], &[1]))
        .constant(integers("wz", DataType::Int8, &[2], &[0, 2]))
        .floats("xs", &[], &[0.5])
        .floats("ws", &[2], &[0.25, 2.0])
        .input("b", [2])
        .node_with("MatMulIntegerToFloat", &names, &["y"], [])
        .output("y");
    let of = foreign("com.microsoft", &m, &[("", 17), ("com.microsoft", 1)]);
    let module = import_bytes("m", of, &ImportOptions::default());
    let module = module.unwrap_or_else(|e| panic!("{}", e.render()));
    let y = run_module(&module, "main", &[floats(&[10.0, 20.0])])
        .unwrap_or_else(|e| panic!("{}", e.render()));
    // (3 - 1) * 1 + (5 - 1) * 4 = 18, and 2 * (-2 - 2) + 4 * (6 - 2) = 8.
    assert_eq!(y[0].as_slice::<f32>(), Some(&[18.0 * 0.125 + 10.0, 8.0 + 20.0][..]));
}

/// A constant of `uint8`.
fn packed(name: &str, dims: &[i64], values: &[i32]) -> TensorProto {
    TensorProto {
        name: name.into(),
        dims: dims.to_vec(),
        data_type: DataType::Uint8 as i32,
        int32_data: values.to_vec(),
        ..Default::default()
    }
}

#[test]
fn packed_weights_are_integers_less_zero_points_times_scales() {
    // Two rows of one block of 16, of which the first three count: 1, 2, 3 and 15, 0, 9.
    let mut values = [0i32; 16];
    values[0..2].copy_from_slice(&[0x21, 0xf3]);
    values[8..10].copy_from_slice(&[0x0f, 0x09]);
    let sizes = || [int("K", 3), int("N", 2), int("bits", 4), int("block_size", 16)];
    for level in [0, 4] {
        let level_of = [int("accuracy_level", level)];
        let m = model()
            .input("x", [1, 3])
            .constant(packed("w", &[2, 1, 8], &values))
            .floats("s", &[2], &[0.5, 2.0])
            .constant(packed("z", &[2], &[4, 1]))
            .floats("b", &[2], &[10.0, 20.0])
            .node_with(
                "MatMulNBits",
                &["x", "w", "s", "z", "", "b"],
                &["y"],
                sizes().into_iter().chain(level_of),
            )
            .output("y");
        let of = foreign("com.microsoft", &m, &[("", 17), ("com.microsoft", 1)]);
        let module = import_bytes("m", of, &ImportOptions::default());
        let module = module.unwrap_or_else(|e| panic!("{}", e.render()));
        let x = Tensor::from_slice(&[1, 3], &[127.0f32, -2.0, 5.0]).expect("a tensor");
        // Multiples of a part in 127 of the largest one are what they are as integers, too.
        let y = run_module(&module, "main", &[x]).unwrap_or_else(|e| panic!("{}", e.render()));
        // (1-4, 2-4, 3-4) / 2, and (15-1, 0-1, 9-1) * 2.
        let expected =
            [-381.0 / 2.0 + 4.0 / 2.0 - 5.0 / 2.0 + 10.0, (1778.0 + 2.0 + 40.0) * 2.0 + 20.0];
        for (at, expected) in expected.iter().enumerate() {
            let got = y[0].get_f64(at);
            assert!((got - expected).abs() < 1e-3, "level {level}: {got} for {expected} at {at}");
        }
    }
}

#[test]
fn rows_of_packed_weights_have_an_order() {
    // Even rows are of the first group, odd ones of the second.
    let value = |k: usize| (k * 7 + 3) % 16;
    let values: Vec<i32> =
        (0..16).map(|at| (value(2 * at) | value(2 * at + 1) << 4) as i32).collect();
    let groups = |of: fn(usize) -> i64| (0..32).map(of).collect::<Vec<i64>>();
    let run = |groups: &[i64]| {
        let m = model()
            .input("x", [1, 32])
            .constant(packed("w", &[1, 2, 8], &values))
            .floats("s", &[2], &[0.5, 2.0])
            .ints("g", groups)
            .node_with(
                "MatMulNBits",
                &["x", "w", "s", "", "g"],
                &["y"],
                [int("K", 32), int("N", 1), int("bits", 4), int("block_size", 16)],
            )
            .output("y");
        let of = foreign("com.microsoft", &m, &[("", 17), ("com.microsoft", 1)]);
        import_bytes("m", of, &ImportOptions::default())
    };
    let module = run(&groups(|k| k as i64 % 2)).unwrap_or_else(|e| panic!("{}", e.render()));
    let x: Vec<f32> = (0..32).map(|k| k as f32 - 11.0).collect();
    let given = Tensor::from_slice(&[1, 32], &x).expect("a tensor");
    let y = run_module(&module, "main", &[given]).unwrap_or_else(|e| panic!("{}", e.render()));
    let scale = |k: usize| if k.is_multiple_of(2) { 0.5 } else { 2.0 };
    let expected: f64 = (0..32).map(|k| f64::from(x[k]) * (value(k) as f64 - 8.0) * scale(k)).sum();
    assert!((y[0].get_f64(0) - expected).abs() < 1e-3, "{} for {expected}", y[0].get_f64(0));
    let other = run(&groups(|k| i64::from(k > 20))).expect_err("groups that fill no blocks");
    assert!(other.to_string().contains("g_idx"), "{other}");
}

#[test]
fn heads_of_queries_share_keys_that_follow_those_of_before() {
    // Two heads of queries, one of keys; two examples with one and two keys before a query.
    let (heads, size, cache) = (2, 2, 3);
    let spread = |count: usize, by: usize| -> Vec<f32> {
        (0..count).map(|k| ((k * by) % 13) as f32 / 4.0 - 1.5).collect()
    };
    let (q, k, v) = (spread(2 * heads * size, 5), spread(2 * size, 7), spread(2 * size, 3));
    let (pk, pv) = (spread(2 * cache * size, 11), spread(2 * cache * size, 6));
    let last = TensorProto {
        name: "last".into(),
        dims: vec![2],
        data_type: DataType::Int32 as i32,
        int32_data: vec![1, 2],
        ..Default::default()
    };
    let total = TensorProto {
        name: "total".into(),
        data_type: DataType::Int32 as i32,
        int32_data: vec![3],
        ..Default::default()
    };
    let names = ["q", "k", "v", "pk", "pv", "last", "total"];
    let of = [int("num_heads", 2), int("kv_num_heads", 1), int("local_window_size", 2)];
    let m = model()
        .input("q", [2, 1, 4])
        .input("k", [2, 1, 2])
        .input("v", [2, 1, 2])
        .input("pk", [2, 1, 3, 2])
        .input("pv", [2, 1, 3, 2])
        .constant(last)
        .constant(total)
        .node_with("GroupQueryAttention", &names, &["y", "nk", "nv"], of)
        .output("y")
        .output("nk")
        .output("nv");
    let of = foreign("com.microsoft", &m, &[("", 17), ("com.microsoft", 1)]);
    let module = import_bytes("m", of, &ImportOptions::default());
    let module = module.unwrap_or_else(|e| panic!("{}", e.render()));
    let shaped =
        |shape: &[usize], values: &[f32]| Tensor::from_slice(shape, values).expect("a tensor");
    let inputs = [
        shaped(&[2, 1, 4], &q),
        shaped(&[2, 1, 2], &k),
        shaped(&[2, 1, 2], &v),
        shaped(&[2, 1, 3, 2], &pk),
        shaped(&[2, 1, 3, 2], &pv),
    ];
    let got = run_module(&module, "main", &inputs).unwrap_or_else(|e| panic!("{}", e.render()));
    let row = |old: &[f32], new: &[f32], example: usize, at: usize| -> [f32; 2] {
        let before = example + 1;
        let (from, k) = match at.cmp(&before) {
            std::cmp::Ordering::Equal => (new, example * size),
            _ => (old, (example * cache + at) * size),
        };
        [from[k], from[k + 1]]
    };
    for example in 0..2 {
        let before = example + 1;
        for at in 0..cache {
            let place = (example * cache + at) * size;
            for (d, (key, value)) in
                row(&pk, &k, example, at).iter().zip(row(&pv, &v, example, at)).enumerate()
            {
                assert_eq!(got[1].get_f64(place + d) as f32, *key);
                assert_eq!(got[2].get_f64(place + d) as f32, value);
            }
        }
        for head in 0..heads {
            let at = (example * heads + head) * size;
            // The window leaves the query's own key and the one before it.
            let seen: Vec<usize> = (before - 1..=before).collect();
            let score = |j: &usize| {
                let key = row(&pk, &k, example, *j);
                f64::from(q[at] * key[0] + q[at + 1] * key[1]) / (size as f64).sqrt()
            };
            let weights: Vec<f64> = seen.iter().map(|j| score(j).exp()).collect();
            let sum: f64 = weights.iter().sum();
            for d in 0..size {
                let part =
                    |(j, w): (&usize, &f64)| f64::from(row(&pv, &v, example, *j)[d]) * w / sum;
                let expected: f64 = seen.iter().zip(&weights).map(part).sum();
                assert!((got[0].get_f64(at + d) - expected).abs() < 1e-5, "{example} {head} {d}");
            }
        }
    }
}

#[test]
fn a_quantised_lstm_is_near_the_one_of_floats() {
    let bytes = |name: &str, dims: &[i64], values: &[i8]| TensorProto {
        name: name.into(),
        dims: dims.to_vec(),
        data_type: DataType::Int8 as i32,
        int32_data: values.iter().map(|v| i32::from(*v)).collect(),
        ..Default::default()
    };
    let spread = |count: usize, by: usize| -> Vec<i8> {
        (0..count).map(|k| ((k * by) % 251) as i64 - 125).map(|v| v as i8).collect()
    };
    // Two directions, three features, two elements.
    let (w, r) = (spread(2 * 3 * 8, 37), spread(2 * 2 * 8, 59));
    let (w_scale, r_scale) = (0.004f32, 0.006f32);
    let lengths = TensorProto {
        name: "l".into(),
        dims: vec![2],
        data_type: DataType::Int32 as i32,
        int32_data: vec![4, 2],
        ..Default::default()
    };
    let names = ["x", "w", "r", "", "l", "", "", "", "ws", "z", "rs", "z"];
    let direction = || [text("direction", "bidirectional"), int("hidden_size", 2)];
    let m = model()
        .input("x", [4, 2, 3])
        .constant(bytes("w", &[2, 3, 8], &w))
        .constant(bytes("r", &[2, 2, 8], &r))
        .constant(bytes("z", &[2], &[0, 0]))
        .constant(lengths.clone())
        .floats("ws", &[2], &[w_scale; 2])
        .floats("rs", &[2], &[r_scale; 2])
        .node_with("DynamicQuantizeLSTM", &names, &["y", "h", "c"], direction())
        .output("y")
        .output("h")
        .output("c");
    let of = foreign("com.microsoft", &m, &[("", 17), ("com.microsoft", 1)]);
    let module = import_bytes("m", of, &ImportOptions::default());
    let module = module.unwrap_or_else(|e| panic!("{}", e.render()));
    // The weights of floats lie the other way round.
    let turned = |values: &[i8], rows: usize, scale: f32| -> Vec<f32> {
        let at = |k: usize| {
            let (d, rest) = (k / (8 * rows), k % (8 * rows));
            f32::from(values[d * 8 * rows + (rest % rows) * 8 + rest / rows]) * scale
        };
        (0..values.len()).map(at).collect()
    };
    let plain = model()
        .opset(17)
        .input("x", [4, 2, 3])
        .floats("w", &[2, 8, 3], &turned(&w, 3, w_scale))
        .floats("r", &[2, 8, 2], &turned(&r, 2, r_scale))
        .constant(lengths)
        .node_with("LSTM", &["x", "w", "r", "", "l"], &["y", "h", "c"], direction())
        .output("y")
        .output("h")
        .output("c");
    let x = super::common::sample(&[4, 2, 3], 5);
    let quantised = run_module(&module, "main", std::slice::from_ref(&x)).expect("it runs");
    let floats = run_module(&plain.import().expect("a model"), "main", &[x]).expect("it runs");
    for (a, b) in quantised.iter().zip(&floats) {
        let far = super::common::distance(a, b);
        assert!(far < 0.01, "{far}");
        assert!(b.as_slice::<f32>().expect("floats").iter().any(|v| v.abs() > 0.05));
    }
}
