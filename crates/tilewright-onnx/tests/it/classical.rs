//! Operators of `ai.onnx.ml`, with the results of ONNX Runtime, and strings that a run chooses.

use prost::Message;
use tilewright_interp::run_module;
use tilewright_ir::{Attr, DType, Module, Tensor, well_formed};
use tilewright_onnx::proto::{
    AttributeProto, DataType, ElementTypeProto, MapTypeProto, TensorProto, TensorTypeProto,
    TypeProto, TypeValue, ValueInfoProto,
};
use tilewright_onnx::{ImportOptions, import_bytes};

use super::common::{
    D, M, distance, float, floats, foreign, int, ints, model, tensor, text, texts,
};

/// The outputs of a node of `ai.onnx.ml` for one input.
fn run(m: &M, version: i64, x: &Tensor) -> Vec<Tensor> {
    let bytes = foreign("ai.onnx.ml", m, &[("", 17), ("ai.onnx.ml", version)]);
    let module = import_bytes("m", bytes, &ImportOptions::default());
    let module = module.unwrap_or_else(|e| panic!("{}", e.render()));
    well_formed::check_module(&module).unwrap_or_else(|e| panic!("{}", e.render()));
    run_module(&module, "main", std::slice::from_ref(x))
        .unwrap_or_else(|e| panic!("{}", e.render()))
}

fn refused(m: &M, version: i64) -> String {
    let bytes = foreign("ai.onnx.ml", m, &[("", 17), ("ai.onnx.ml", version)]);
    let module = import_bytes("m", bytes, &ImportOptions::default());
    module.map_or_else(|e| e.render(), |_| "it was imported".into())
}

fn rows(shape: [usize; 2], values: &[f32]) -> Tensor {
    Tensor::from_slice(&shape, values).expect("as many as there are")
}

fn node<const N: usize>(
    op: &str,
    shape: [i64; 2],
    outputs: &[&str],
    attributes: [AttributeProto; N],
) -> M {
    let m = model().input("x", shape).node_with(op, &["x"], outputs, attributes);
    outputs.iter().fold(m, |m, name| m.output(name))
}

#[track_caller]
fn close(found: &Tensor, shape: [usize; 2], expected: &[f32]) {
    assert!(distance(found, &rows(shape, expected)) < 2e-4, "{found:?}, not {expected:?}");
}

/// One test of the first feature, and weights `(node, class, weight)` of its two leaves.
fn stump(
    mode: &str,
    missing: i64,
    weights: &[(i64, i64, f32)],
    of: [&'static str; 4],
) -> Vec<AttributeProto> {
    let count = weights.len();
    vec![
        ints("nodes_treeids", &[0; 3]),
        ints("nodes_nodeids", &[0, 1, 2]),
        ints("nodes_featureids", &[0; 3]),
        floats("nodes_values", &[0.0; 3]),
        texts("nodes_modes", &[mode, "LEAF", "LEAF"]),
        ints("nodes_truenodeids", &[1, 0, 0]),
        ints("nodes_falsenodeids", &[2, 0, 0]),
        ints("nodes_missing_value_tracks_true", &[missing, 0, 0]),
        ints(of[0], &vec![0; count]),
        ints(of[1], &weights.iter().map(|w| w.0).collect::<Vec<_>>()),
        ints(of[2], &weights.iter().map(|w| w.1).collect::<Vec<_>>()),
        floats(of[3], &weights.iter().map(|w| w.2).collect::<Vec<_>>()),
    ]
}

const TARGET: [&str; 4] = ["target_treeids", "target_nodeids", "target_ids", "target_weights"];
const CLASS: [&str; 4] = ["class_treeids", "class_nodeids", "class_ids", "class_weights"];

fn tree(op: &str, outputs: &[&str], attributes: Vec<AttributeProto>) -> M {
    let m = model().input("x", [-1, 1]).node_with(op, &["x"], outputs, attributes);
    outputs.iter().fold(m, |m, name| m.output(name))
}

#[test]
fn every_comparison_and_where_missing_values_go() {
    let x = rows([5, 1], &[-1.0, 0.0, -0.0, 1.0, f32::NAN]);
    for (mode, holds) in [
        ("BRANCH_LEQ", [1, 1, 1, 0]),
        ("BRANCH_LT", [1, 0, 0, 0]),
        ("BRANCH_GTE", [0, 1, 1, 1]),
        ("BRANCH_GT", [0, 0, 0, 1]),
        ("BRANCH_EQ", [0, 1, 1, 0]),
        ("BRANCH_NEQ", [1, 0, 0, 1]),
    ] {
        for missing in [0, 1] {
            let leaves = [(1, 0, 1.0), (2, 0, 0.0)];
            let m = tree("TreeEnsembleRegressor", &["y"], stump(mode, missing, &leaves, TARGET));
            let y = run(&m, 3, &x).remove(0);
            // `NaN` differs from every number.
            let nan = i32::from(missing == 1 || mode == "BRANCH_NEQ");
            let expected: Vec<f32> = holds.iter().chain([&nan]).map(|v| *v as f32).collect();
            assert_eq!(y.as_slice(), Some(&expected[..]), "{mode} {missing}");
        }
    }
}

#[test]
fn regressors_combine_and_transform() {
    let x = rows([2, 1], &[-1.0, 1.0]);
    let of = |weights: &[(i64, i64, f32)], targets: i64, more: Vec<AttributeProto>| {
        let mut all = stump("BRANCH_LEQ", 0, weights, TARGET);
        all.push(int("n_targets", targets));
        all.extend(more);
        run(&tree("TreeEnsembleRegressor", &["y"], all), 3, &x).remove(0)
    };
    let (one, two) = ([(1, 0, 0.2), (2, 0, 0.7)], [(1, 0, 0.2), (2, 1, 0.7)]);
    close(&of(&one, 1, vec![floats("base_values", &[0.1])]), [2, 1], &[0.3, 0.8]);
    // One number is not transformed but for its quantile.
    close(&of(&one, 1, vec![text("post_transform", "LOGISTIC")]), [2, 1], &[0.2, 0.7]);
    close(&of(&one, 1, vec![text("post_transform", "PROBIT")]), [2, 1], &[-0.8418, 0.5244]);
    // A base value counts where there is a weight.
    let base = floats("base_values", &[0.1, 0.2]);
    close(&of(&two, 2, vec![base.clone()]), [2, 2], &[0.3, 0.0, 0.0, 0.9]);
    let logistic = vec![base.clone(), text("post_transform", "LOGISTIC")];
    close(&of(&two, 2, logistic), [2, 2], &[0.5744, 0.5, 0.5, 0.7109]);
    let softmax = vec![base.clone(), text("post_transform", "SOFTMAX")];
    close(&of(&two, 2, softmax), [2, 2], &[0.5744, 0.4256, 0.2891, 0.7109]);
    let zero = vec![base.clone(), text("post_transform", "SOFTMAX_ZERO")];
    close(&of(&two, 2, zero), [2, 2], &[1.0, 0.0, 0.0, 1.0]);
    let least = vec![base, text("aggregate_function", "MIN")];
    close(&of(&two, 2, least), [2, 2], &[0.3, 0.0, 0.0, 0.9]);
}

#[test]
fn classifiers_of_two_classes() {
    let x = rows([2, 1], &[-1.0, 1.0]);
    let of = |weights: &[(i64, i64, f32)], more: Vec<AttributeProto>| {
        let mut all = stump("BRANCH_LEQ", 0, weights, CLASS);
        all.push(ints("classlabels_int64s", &[10, 11]));
        all.extend(more);
        let mut results = run(&tree("TreeEnsembleClassifier", &["l", "p"], all), 3, &x);
        let scores = results.remove(1);
        (results[0].as_slice::<i64>().expect("labels").to_vec(), scores)
    };
    let logistic = || vec![text("post_transform", "LOGISTIC")];
    // Weights of one class that are likelihoods, and others.
    let likely = [(1, 0, 0.2), (2, 0, 0.7)];
    let (labels, scores) = of(&likely, vec![]);
    assert_eq!(labels, [10, 11]);
    close(&scores, [2, 2], &[0.8, 0.2, 0.3, 0.7]);
    close(&of(&likely, logistic()).1, [2, 2], &[0.4502, 0.5498, 0.3318, 0.6682]);
    let mixed = [(1, 0, -0.2), (2, 0, 0.7)];
    let (labels, scores) = of(&mixed, vec![floats("base_values", &[0.1])]);
    assert_eq!(labels, [10, 11]);
    close(&scores, [2, 2], &[0.1, -0.1, -0.8, 0.8]);
    close(&of(&mixed, logistic()).1, [2, 2], &[0.5498, 0.4502, 0.3318, 0.6682]);
    // Of the second class only.
    let second = [(1, 1, 0.2), (2, 1, 0.7)];
    close(&of(&second, logistic()).1, [2, 2], &[0.5, 0.5498, 0.5, 0.6682]);
    // Of both: numbers of classes come in the place of labels.
    let both = [(1, 0, 0.2), (1, 1, 0.7), (2, 0, -0.6), (2, 1, -0.3)];
    let (labels, scores) = of(&both, vec![]);
    assert_eq!(labels, [1, 0]);
    close(&scores, [2, 2], &[0.2, 0.7, -0.6, -0.3]);
    let (_, scores) = of(&both, vec![floats("base_values", &[0.1, 0.3])]);
    close(&scores, [2, 2], &[-0.5, 0.5, 0.3, -0.3]);
    // Where a leaf has none of the second class.
    let (labels, scores) = of(&[(1, 0, -0.2), (2, 1, 0.7)], vec![]);
    assert_eq!(labels, [0, 1]);
    close(&scores, [2, 2], &[0.2, -0.2, 0.0, 0.7]);
}

#[test]
fn classifiers_of_several_classes_have_labels_of_both_kinds() {
    let x = rows([2, 1], &[-1.0, 1.0]);
    let of = |labels: AttributeProto, more: Vec<AttributeProto>| {
        let mut all = stump("BRANCH_LEQ", 0, &[(1, 0, -0.2), (2, 1, -0.7)], CLASS);
        all.push(labels);
        all.extend(more);
        run(&tree("TreeEnsembleClassifier", &["l", "p"], all), 3, &x)
    };
    // A class without a weight is none of those that are compared.
    let found = of(ints("classlabels_int64s", &[10, 11, 12]), vec![]);
    assert_eq!(found[0].as_slice(), Some(&[10i64, 11][..]));
    close(&found[1], [2, 3], &[-0.2, 0.0, 0.0, 0.0, -0.7, 0.0]);
    let base = floats("base_values", &[0.1, 0.3, 0.05]);
    let found = of(ints("classlabels_int64s", &[10, 11, 12]), vec![base]);
    assert_eq!(found[0].as_slice(), Some(&[11i64, 10][..]));
    close(&found[1], [2, 3], &[-0.1, 0.3, 0.05, 0.1, -0.4, 0.05]);
    let found = of(texts("classlabels_strings", &["no", "yes", "perhaps"]), vec![]);
    assert_eq!((found[0].dtype(), found[0].shape()), (DType::U8, &[2, 7][..]));
    assert_eq!(found[0].bytes(), b"no\0\0\0\0\0yes\0\0\0\0");
}

/// A tensor of an attribute.
fn doubles(name: &str, values: &[f64]) -> AttributeProto {
    let proto = TensorProto {
        dims: vec![values.len() as i64],
        data_type: DataType::Double as i32,
        double_data: values.to_vec(),
        ..Default::default()
    };
    tensor(name, proto)
}

#[test]
fn the_form_of_version_5() {
    let modes = |values: &[u8]| {
        let proto = TensorProto {
            dims: vec![values.len() as i64],
            data_type: DataType::Uint8 as i32,
            int32_data: values.iter().map(|v| i32::from(*v)).collect(),
            ..Default::default()
        };
        tensor("nodes_modes", proto)
    };
    // In one of 1, 3 and 5? Else at most 0?
    let attributes = [
        ints("nodes_featureids", &[0, 1]),
        doubles("nodes_splits", &[0.0, 0.0]),
        modes(&[6, 0]),
        doubles("membership_values", &[1.0, 3.0, 5.0, f64::NAN]),
        ints("nodes_truenodeids", &[0, 1]),
        ints("nodes_trueleafs", &[1, 1]),
        ints("nodes_falsenodeids", &[1, 2]),
        ints("nodes_falseleafs", &[0, 1]),
        ints("leaf_targetids", &[0, 0, 1]),
        doubles("leaf_weights", &[1.5, 2.5, 3.5]),
        ints("tree_roots", &[0, 1]),
        int("n_targets", 2),
        int("aggregate_function", 0),
    ];
    let m = model()
        .typed_input("x", DataType::Double, [-1, 2])
        .node_with("TreeEnsemble", &["x"], &["y"], attributes)
        .output("y");
    let x = Tensor::from_slice(&[3, 2], &[3.0f64, 1.0, 2.0, -1.0, f64::NAN, 0.5]).expect("rows");
    let y = run(&m, 5, &x).remove(0);
    // Means over both trees.
    assert_eq!(y.as_slice(), Some(&[0.75f64, 1.75, 2.5, 0.0, 0.0, 3.5][..]));
}

#[test]
fn trees_that_are_none_are_refused() {
    let mut all = stump("BRANCH_LEQ", 0, &[(1, 0, 1.0)], TARGET);
    all[5] = ints("nodes_truenodeids", &[7, 0, 0]);
    let said = refused(&tree("TreeEnsembleRegressor", &["y"], all), 3);
    assert!(said.contains("there is no node 7 of tree 0"), "{said}");
    let mut all = stump("BRANCH_LEQ", 0, &[(1, 0, 1.0)], TARGET);
    all[5] = ints("nodes_truenodeids", &[0, 0, 0]);
    let said = refused(&tree("TreeEnsembleRegressor", &["y"], all), 3);
    assert!(said.contains("node 0 leads back to itself"), "{said}");
    let said = refused(
        &tree("TreeEnsembleRegressor", &["y"], stump("BRANCH", 0, &[(1, 0, 1.0)], TARGET)),
        3,
    );
    assert!(said.contains("attribute `nodes_modes` = BRANCH is not supported"), "{said}");
}

#[test]
fn features_are_prepared() {
    let x = rows([3, 3], &[1.0, -2.0, 3.0, 0.0, 0.0, 0.0, -1.0, -4.0, -2.0]);
    let attributes = [floats("offset", &[1.0, 2.0, 3.0]), floats("scale", &[2.0, 3.0, 4.0])];
    let y = run(&node("Scaler", [3, 3], &["y"], attributes), 1, &x).remove(0);
    close(&y, [3, 3], &[0.0, -12.0, 0.0, -2.0, -6.0, -12.0, -4.0, -18.0, -20.0]);
    for (norm, expected) in [
        // By the largest number, not by its magnitude.
        ("MAX", [0.3333, -0.6667, 1.0, 0.0, 0.0, 0.0, 1.0, 4.0, 2.0]),
        ("L1", [0.1667, -0.3333, 0.5, 0.0, 0.0, 0.0, -0.1429, -0.5714, -0.2857]),
        ("L2", [0.2673, -0.5345, 0.8018, 0.0, 0.0, 0.0, -0.2182, -0.8729, -0.4364]),
    ] {
        let y = run(&node("Normalizer", [3, 3], &["y"], [text("norm", norm)]), 1, &x).remove(0);
        close(&y, [3, 3], &expected);
    }
    let gap = rows([1, 3], &[f32::NAN, -4.0, 2.0]);
    let attributes =
        [floats("imputed_value_floats", &[9.0, 8.0, 7.0]), float("replaced_value_float", f32::NAN)];
    let y = run(&node("Imputer", [1, 3], &["y"], attributes), 1, &gap).remove(0);
    close(&y, [1, 3], &[9.0, -4.0, 2.0]);
    let attributes = [floats("imputed_value_floats", &[9.0]), float("replaced_value_float", -4.0)];
    let y = run(&node("Imputer", [1, 3], &["y"], attributes), 1, &rows([1, 3], &[1.0, -4.0, 2.0]));
    close(&y[0], [1, 3], &[1.0, 9.0, 2.0]);
    let attributes = [ints("cats_int64s", &[1, 2]), int("zeros", 1)];
    let y =
        run(&node("OneHotEncoder", [1, 3], &["y"], attributes), 1, &rows([1, 3], &[1.5, 2.0, 5.0]));
    assert_eq!(y[0].shape(), [1, 3, 2]);
    assert_eq!(y[0].as_slice(), Some(&[1.0f32, 0.0, 0.0, 1.0, 0.0, 0.0][..]));
}

#[test]
fn linear_models() {
    let x = rows([2, 2], &[0.2, 0.3, -0.5, 0.1]);
    let two =
        || [floats("coefficients", &[1.0, -0.5, -1.0, 0.5]), floats("intercepts", &[0.1, -0.1])];
    let [c, i] = two();
    let y = run(&node("LinearRegressor", [2, 2], &["y"], [c, i, int("targets", 2)]), 1, &x);
    close(&y[0], [2, 2], &[0.15, -0.15, -0.45, 0.45]);
    for (transform, expected) in [
        ("NONE", [0.15, -0.15, -0.45, 0.45]),
        ("LOGISTIC", [0.5374, 0.4626, 0.3894, 0.6106]),
        ("SOFTMAX", [0.5744, 0.4256, 0.2891, 0.7109]),
    ] {
        let [c, i] = two();
        let labels = ints("classlabels_ints", &[7, 9]);
        let attributes = [c, i, labels, text("post_transform", transform)];
        let y = run(&node("LinearClassifier", [2, 2], &["l", "p"], attributes), 1, &x);
        assert_eq!(y[0].as_slice(), Some(&[7i64, 9][..]));
        close(&y[1], [2, 2], &expected);
    }
    // One score of two classes.
    for (transform, expected) in
        [("NONE", [0.85, 0.15, 1.45, -0.45]), ("LOGISTIC", [0.4626, 0.5374, 0.6106, 0.3894])]
    {
        let attributes = [
            floats("coefficients", &[1.0, -0.5]),
            floats("intercepts", &[0.1]),
            ints("classlabels_ints", &[7, 9]),
            text("post_transform", transform),
        ];
        let y = run(&node("LinearClassifier", [2, 2], &["l", "p"], attributes), 1, &x);
        assert_eq!(y[0].as_slice(), Some(&[9i64, 7][..]));
        close(&y[1], [2, 2], &expected);
    }
}

#[test]
fn support_vectors_by_hand() {
    let x = rows([2, 2], &[1.0, 0.0, 0.0, 2.0]);
    let vectors = [1.0f32, 1.0, 0.0, -1.0];
    let kernel =
        |kind: &str| [text("kernel_type", kind), floats("kernel_params", &[0.5, 1.0, 2.0])];
    let e = |v: f32| (-0.5 * v).exp();
    for (kind, values) in [
        ("LINEAR", [[1.0, 0.0], [2.0, -2.0]]),
        ("POLY", [[2.25, 1.0], [4.0, 0.0]]),
        ("SIGMOID", [[1.5f32.tanh(), 1f32.tanh()], [2f32.tanh(), 0.0]]),
        ("RBF", [[e(1.0), e(2.0)], [e(2.0), e(9.0)]]),
    ] {
        let [k, p] = kernel(kind);
        let attributes = [
            k,
            p,
            floats("coefficients", &[3.0, -2.0]),
            floats("support_vectors", &vectors),
            int("n_supports", 2),
            floats("rho", &[0.25]),
        ];
        let y = run(&node("SVMRegressor", [2, 2], &["y"], attributes), 1, &x);
        let expected = values.map(|[a, b]| 3.0 * a - 2.0 * b + 0.25);
        close(&y[0], [2, 1], &expected);
    }
    let [k, p] = kernel("LINEAR");
    let attributes = [
        k,
        p,
        floats("coefficients", &[1.0, -1.0]),
        floats("support_vectors", &vectors),
        ints("vectors_per_class", &[1, 1]),
        ints("classlabels_ints", &[7, 9]),
        floats("rho", &[-2.0]),
    ];
    let y = run(&node("SVMClassifier", [2, 2], &["l", "p"], attributes), 1, &x);
    assert_eq!(y[0].as_slice(), Some(&[9i64, 7][..]));
    close(&y[1], [2, 2], &[1.0, -1.0, -2.0, 2.0]);
    // Without vectors the second of two classes has it where any score is above zero.
    for (coefficients, rho, label) in
        [([1.0, -0.5, -1.0, 0.5], 0.1, 9i64), ([-1.0, -0.5, -1.5, -1.0], -0.1, 7)]
    {
        let attributes = [
            text("kernel_type", "LINEAR"),
            floats("coefficients", &coefficients),
            ints("classlabels_ints", &[7, 9]),
            floats("rho", &[rho]),
        ];
        let y = run(&node("SVMClassifier", [2, 2], &["l", "p"], attributes), 1, &x);
        assert_eq!(y[0].as_slice(), Some(&[label, label][..]));
    }
}

#[test]
fn nan_is_a_key_from_the_fourth_version_on() {
    let keys = [floats("keys_floats", &[0.5, f32::NAN]), ints("values_int64s", &[3, 4])];
    let x = rows([1, 3], &[f32::NAN, 0.5, 0.0]);
    for (version, of_nan) in [(3, -1), (4, 4)] {
        let y = run(&node("LabelEncoder", [1, 3], &["y"], keys.clone()), version, &x);
        assert_eq!(y[0].as_slice(), Some(&[of_nan, 3i64, -1][..]), "{version}");
    }
}

#[test]
fn strings_are_chosen_by_a_run() {
    let words = TensorProto {
        name: "words".into(),
        dims: vec![3],
        data_type: DataType::String as i32,
        string_data: ["a", "bc", "def"].map(|w| w.as_bytes().to_vec().into()).to_vec(),
        ..Default::default()
    };
    let m = model()
        .opset(20)
        .typed_input("at", DataType::Int64, ["n"])
        .constant(words)
        .ints("column", &[-1, 1])
        .node_with("Gather", &["words", "at"], &["w"], [int("axis", 0)])
        .node("Reshape", &["w", "column"], &["c"])
        .node_with("Cast", &["c"], &["y"], [int("to", DataType::String as i64)])
        .output("y");
    let module = m.import().unwrap_or_else(|e| panic!("{}", e.render()));
    let at = Tensor::from_slice(&[2], &[2i64, 0]).expect("a list");
    let y = run_module(&module, "main", &[at]).unwrap_or_else(|e| panic!("{}", e.render()));
    assert_eq!((y[0].shape(), y[0].bytes()), (&[2, 1, 3][..], &b"defa\0\0"[..]));
    let m = m.node("StringConcat", &["w", "w"], &["z"]).output("z");
    let said = m.refused();
    assert!(said.contains("strings are known at import only"), "{said}");
}

/// A map from keys of a type to numbers of another one.
fn map_type(keys: DataType, values: DataType) -> TypeProto {
    let tensor = TensorTypeProto { elem_type: values as i32, shape: None };
    let value_type = TypeProto { value: Some(TypeValue::Tensor(tensor)) };
    let map = MapTypeProto { key_type: keys as i32, value_type: Some(value_type) };
    TypeProto { value: Some(TypeValue::Map(map.encode_to_vec().into())) }
}

fn sequence_of(of: TypeProto) -> TypeProto {
    let sequence = ElementTypeProto { elem_type: Some(of) };
    TypeProto { value: Some(TypeValue::Sequence(sequence.encode_to_vec().into())) }
}

fn ml(m: &M, options: &ImportOptions) -> tilewright_ir::Result<Module> {
    import_bytes("m", foreign("ai.onnx.ml", m, &[("", 17), ("ai.onnx.ml", 1)]), options)
}

#[test]
fn maps_of_scores_are_rows_beside_their_keys() {
    let zip = |labels: AttributeProto, keys: DataType| {
        let mut m =
            model().input("x", [D::S("n"), D::N(2)]).node_with("ZipMap", &["x"], &["m"], [labels]);
        let r#type = Some(sequence_of(map_type(keys, DataType::Float)));
        m.graph.output.push(ValueInfoProto { name: "m".into(), r#type });
        m
    };
    let x = rows([3, 2], &[0.1, 0.9, 0.5, 0.5, 1.0, 0.0]);
    for (labels, keys, dtype, bytes) in [
        (
            texts("classlabels_strings", &["no", "yes"]),
            DataType::String,
            DType::U8,
            b"no\0yes".to_vec(),
        ),
        (
            ints("classlabels_int64s", &[7, -1]),
            DataType::Int64,
            DType::I64,
            [7i64.to_le_bytes(), (-1i64).to_le_bytes()].concat(),
        ),
    ] {
        let m = zip(labels.clone(), keys);
        let module = ml(&m, &ImportOptions::default()).unwrap_or_else(|e| panic!("{}", e.render()));
        well_formed::check_module(&module).unwrap_or_else(|e| panic!("{}", e.render()));
        let found = run_module(&module, "main", std::slice::from_ref(&x)).expect("it runs");
        assert_eq!(found[0].as_slice::<f32>(), x.as_slice());
        assert_eq!((found[1].dtype(), found[1].bytes()), (dtype, &bytes[..]));
        let names = module.graph("main").expect("the graph").attrs.get("output_names");
        let named = |name: &Attr, text: &str| matches!(name, Attr::Str(own) if **own == *text);
        let Some(Attr::List(names)) = names else { panic!("no names") };
        assert!(named(&names[0], "m") && named(&names[1], "m.keys"), "{names:?}");
        // Maps are no tensors.
        let said = ml(&m.node("Neg", &["m"], &["z"]).output("z"), &ImportOptions::default());
        let said = said.map_or_else(|e| e.render(), |_| "it was imported".into());
        assert!(said.contains("not supported"), "{said}");
    }
    let m = zip(ints("classlabels_int64s", &[7, 8, 9]), DataType::Int64);
    let said = ml(&m, &ImportOptions::default()).map_or_else(|e| e.render(), |_| "imported".into());
    assert!(said.contains("2 scores in a row, and 3 classes"), "{said}");
}

#[test]
fn numbers_of_a_map_come_in_the_order_of_a_vocabulary() {
    let of = |keys: DataType, values: DataType, vocabulary: AttributeProto| {
        let mut m = model().node_with("DictVectorizer", &["d"], &["y"], [vocabulary]).output("y");
        let r#type = Some(map_type(keys, values));
        m.graph.input.push(ValueInfoProto { name: "d".into(), r#type });
        m
    };
    let given = |keys: &Tensor, values: &Tensor| ImportOptions {
        values: [("d".into(), values.clone()), ("d.keys".into(), keys.clone())].into(),
        ..ImportOptions::default()
    };
    let values = Tensor::from_slice(&[3], &[5.0f32, 2.0, 3.0]).expect("numbers");
    let words = Tensor::from_slice(&[3, 2], b"a\0zzq\0").expect("bytes");
    let m = of(DataType::String, DataType::Float, texts("string_vocabulary", &["zz", "b", "a"]));
    let module = ml(&m, &given(&words, &values)).unwrap_or_else(|e| panic!("{}", e.render()));
    let found = run_module(&module, "main", std::slice::from_ref(&values)).expect("it runs");
    assert_eq!(
        (found[0].shape(), found[0].as_slice()),
        (&[1, 3][..], Some(&[2.0f32, 0.0, 5.0][..]))
    );
    // Strings must be known.
    let said = ml(&m, &ImportOptions::default()).map_or_else(|e| e.render(), |_| "imported".into());
    assert!(said.contains("input `d.keys` holds strings, and is not given"), "{said}");
    // Numbers need not.
    let m = of(DataType::Int64, DataType::Double, ints("int64_vocabulary", &[4, -3, 8]));
    let module = ml(&m, &ImportOptions::default()).unwrap_or_else(|e| panic!("{}", e.render()));
    let values = Tensor::from_slice(&[2], &[0.5f64, 1.5]).expect("numbers");
    let keys = Tensor::from_slice(&[2], &[8i64, 4]).expect("numbers");
    let found = run_module(&module, "main", &[values, keys]).expect("it runs");
    assert_eq!(found[0].as_slice(), Some(&[1.5f64, 0.0, 0.5][..]));
}
