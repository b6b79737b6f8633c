//! Ensembles of decision trees of `ai.onnx.ml`, in the form of version 5 and in the older ones of
//! classifiers and regressors.
//!
//! A node of ONNX compares a feature with a number in one of seven ways; here each is an interval
//! ([`tilewright_ops::trees`]), with its children exchanged where it is outside of that. `NaN` is in no
//! interval. Where it takes the true branch, the interval is that of the other side.

use tilewright_ir::hash::HashMap;

use tilewright_ir::{DType, Error, Result, Tensor};
use tilewright_ops::te::Reducer;
use tilewright_ops::trees::{self, Node as Tree, Trees};

use super::compose::Compose;
use super::one;
use super::scores::{self, Labels, Transform};
use crate::build::Builder;
use crate::imported::{Imported, operand};
use crate::node::{Node, required};
use crate::operator::{Operator, op, until};

/// Those of the domain `ai.onnx.ml`; their versions are those of the domain.
pub(crate) static OPERATORS: &[Operator] = &[
    until(5, op("TreeEnsemble", 5, 1, tree_ensemble)),
    until(5, op("TreeEnsembleClassifier", 1, 1, classifier)),
    until(5, op("TreeEnsembleRegressor", 1, 1, regressor)),
];

/// How a node compares its feature `x` with its number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    LessEqual,
    Less,
    GreaterEqual,
    Greater,
    Equal,
    NotEqual,
}

/// What the weights of all trees become.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Aggregate {
    Sum,
    Average,
    Min,
    Max,
}

impl Aggregate {
    fn reducer(self) -> Reducer {
        match self {
            Aggregate::Sum | Aggregate::Average => Reducer::Sum,
            Aggregate::Min => Reducer::Min,
            Aggregate::Max => Reducer::Max,
        }
    }
}

/// A test with the children that it leads to: where it does not hold, and where it does.
struct Branch {
    feature: usize,
    mode: Mode,
    value: f64,
    /// Whether `NaN` counts as if the test held.
    missing: bool,
    children: [usize; 2],
}

/// The nearest number of a type that is larger; nothing is larger than infinity.
fn above(v: f64, dtype: DType) -> f64 {
    let next = match dtype {
        DType::F64 => v.next_up(),
        _ => f64::from((v as f32).next_up()),
    };
    if v == f64::INFINITY { f64::NAN } else { next }
}

/// The nearest number of a type that is smaller.
fn below(v: f64, dtype: DType) -> f64 {
    -above(-v, dtype)
}

impl Branch {
    /// The nodes of it, of which the first one has a number of its own and others stand at the end.
    fn add(self, at: usize, dtype: DType, nodes: &mut Vec<Tree>) {
        let (v, inf) = (self.value, f64::INFINITY);
        // Where the test holds, and where it does not, if one of both is an interval.
        let (holds, fails) = match self.mode {
            Mode::LessEqual => (Some((-inf, v)), Some((above(v, dtype), inf))),
            Mode::Less => (Some((-inf, below(v, dtype))), Some((v, inf))),
            Mode::GreaterEqual => (Some((v, inf)), Some((-inf, below(v, dtype)))),
            Mode::Greater => (Some((above(v, dtype), inf)), Some((-inf, v))),
            Mode::Equal => (Some((v, v)), None),
            Mode::NotEqual => (None, Some((v, v))),
        };
        let [otherwise, then] = self.children;
        // A test that no number passes fails for `NaN` too.
        let nowhere = (f64::NAN, f64::NAN);
        nodes[at] = match (holds, fails) {
            (_, Some(fails)) if self.missing || self.mode == Mode::NotEqual => {
                self.test_of(fails, [then, otherwise])
            }
            (Some(holds), None) if self.missing => {
                // Equal, or else no number at all.
                nodes.push(self.test_of((-inf, inf), [then, otherwise]));
                self.test_of(holds, [nodes.len() - 1, then])
            }
            (Some(holds), _) => self.test_of(holds, [otherwise, then]),
            (None, _) => self.test_of(nowhere, [otherwise, then]),
        };
    }

    fn test_of(&self, (low, high): (f64, f64), children: [usize; 2]) -> Tree {
        Tree::Test { feature: self.feature, low, high, children }
    }
}

/// An ensemble as a node says it.
struct Ensemble {
    nodes: Vec<Tree>,
    roots: Vec<usize>,
    results: usize,
    aggregate: Aggregate,
    /// The type in which features are compared and weights are combined.
    work: DType,
}

/// What an ensemble says of each row.
struct Outcome {
    /// `[N, results]`; zero where no leaf has a weight.
    sums: Imported,
    /// Whether a leaf has a weight, `bool[N, results]`; nothing where one always has.
    has: Option<Imported>,
}

impl Ensemble {
    /// The results for which each row meets a weight, whatever it is.
    fn always(&self) -> Vec<bool> {
        let mut always = vec![false; self.results];
        for &root in &self.roots {
            // What all leaves of the tree have.
            let mut common: Option<Vec<bool>> = None;
            let mut seen = vec![false; self.nodes.len()];
            let mut open = vec![root];
            while let Some(at) = open.pop() {
                if std::mem::replace(&mut seen[at], true) {
                    continue;
                }
                match &self.nodes[at] {
                    Tree::Test { children, .. } => open.extend(children),
                    Tree::Leaf(weights) => {
                        let mut own = vec![false; self.results];
                        weights.iter().for_each(|w| own[w.0] = true);
                        common = Some(match common {
                            None => own,
                            Some(c) => c.iter().zip(own).map(|(a, b)| *a && b).collect(),
                        });
                    }
                }
            }
            let common = common.unwrap_or_default();
            always.iter_mut().zip(common).for_each(|(all, own)| *all |= own);
            if always.iter().all(|a| *a) {
                break;
            }
        }
        always
    }

    /// The combined weights of each row of features.
    fn run(mut self, c: &mut Compose, x: &Imported) -> Result<Outcome> {
        let x = scores::features(c, x, self.work)?;
        let (count, results) = (self.roots.len(), self.results);
        let covered = self.always().iter().all(|a| *a);
        if !covered && self.aggregate.reducer() == Reducer::Sum {
            // How many weights there are is a sum as well.
            for node in &mut self.nodes {
                if let Tree::Leaf(weights) = node {
                    let counts: Vec<_> = weights.iter().map(|w| (w.0 + results, 1.0)).collect();
                    weights.extend(counts);
                }
            }
            self.results *= 2;
        }
        let params = Trees {
            x: operand(&x),
            nodes: self.nodes,
            roots: self.roots,
            results: self.results,
            combine: self.aggregate.reducer(),
        };
        let laid = trees::lay_out(&params)?;
        let tables: Vec<Imported> = laid.tables()?.into_iter().map(Imported::Const).collect();
        let args = [&x].into_iter().chain(&tables);
        let mut sums = c.b.call("trees", laid.form(), args, || laid.function())?;
        let zero = c.number(self.work, 0.0)?;
        let mut has = None;
        if !covered {
            has = Some(match self.aggregate.reducer() {
                Reducer::Sum => {
                    let counts = c.slice(&sums, 1, results, 2 * results)?;
                    sums = c.slice(&sums, 1, 0, results)?;
                    c.op("Greater", &[&counts, &zero])?
                }
                _ => {
                    let nothing = c.op("IsInf", &[&sums])?;
                    c.op("Not", &[&nothing])?
                }
            });
        }
        if self.aggregate == Aggregate::Average {
            let count = c.number(self.work, count as f64)?;
            sums = c.op("Div", &[&sums, &count])?;
        }
        if let Some(has) = &has {
            sums = c.op("Where", &[has, &sums, &zero])?;
        }
        Ok(Outcome { sums, has })
    }
}

impl Outcome {
    /// The sums and one more number for each result, where there is a weight.
    fn and(&self, c: &mut Compose, base: &[f64]) -> Result<Imported> {
        if base.is_empty() {
            return Ok(self.sums.clone());
        }
        let base = super::value::constant(self.sums.dtype(), &[1, base.len()], base)?;
        let sums = c.op("Add", &[&self.sums, &base])?;
        match &self.has {
            None => Ok(sums),
            Some(has) => c.op("Where", &[has, &sums, &self.sums]),
        }
    }
}

/// Numbers of an attribute, or of its twin that is a tensor.
fn numbers(node: &Node, list: &'static str, tensor: &'static str) -> Result<Option<Vec<f64>>> {
    match (node.floats(list)?.filter(|v| !v.is_empty()), node.tensor(tensor)?) {
        (Some(list), None) => Ok(Some(list.into_iter().map(f64::from).collect())),
        (None, t) => Ok(t.map(|t| (0..t.len()).map(|k| t.get_f64(k)).collect())),
        (Some(_), Some(_)) => Err(Error::model(format!("both `{list}` and `{tensor}` are given"))),
    }
}

/// The numbers of an attribute as positions.
fn places(node: &Node, name: &'static str) -> Result<Vec<usize>> {
    let list = required(node.ints(name)?, &format!("the attribute `{name}`"))?;
    list.iter()
        .map(|v| usize::try_from(*v))
        .collect::<std::result::Result<_, _>>()
        .map_err(|_| Error::model(format!("attribute `{name}` has negative numbers")))
}

/// Refuses a list that is not as long as another one.
fn same_length(name: &str, have: usize, need: usize) -> Result<()> {
    if have == need {
        Ok(())
    } else {
        Err(Error::model(format!("attribute `{name}` has {have} elements, not {need}")))
    }
}

/// Whether `NaN` takes the true branch, for each node.
fn missing(node: &Node, count: usize) -> Result<Vec<bool>> {
    let name = "nodes_missing_value_tracks_true";
    match node.ints(name)?.filter(|v| !v.is_empty()) {
        None => Ok(vec![false; count]),
        Some(list) => {
            same_length(name, list.len(), count)?;
            Ok(list.iter().map(|v| *v != 0).collect())
        }
    }
}

/// The type in which features of some type are compared.
fn work_type(x: &Imported, tensors: &[Option<Tensor>]) -> Result<DType> {
    let double = tensors.iter().flatten().any(|t| t.dtype() == DType::F64);
    match x.dtype() {
        DType::F64 => Ok(DType::F64),
        other if other.is_bool() => Err(Error::model("features are numbers, not bool")),
        _ => Ok(if double { DType::F64 } else { DType::F32 }),
    }
}

/// The ensemble of a classifier or a regressor: whose weights have attributes of some names.
fn listed(
    node: &Node,
    [trees, ids, results, weights, tensor]: [&'static str; 5],
    count: usize,
    aggregate: Aggregate,
) -> Result<Ensemble> {
    let tensors = [node.tensor("nodes_values_as_tensor")?, node.tensor(tensor)?];
    let work = work_type(node.input(0)?, &tensors)?;
    let (tree, id) = (node.ints("nodes_treeids")?, node.ints("nodes_nodeids")?);
    let tree = required(tree, "the attribute `nodes_treeids`")?;
    let id = required(id, "the attribute `nodes_nodeids`")?;
    let n = tree.len();
    let feature = places(node, "nodes_featureids")?;
    let modes = required(node.texts("nodes_modes")?, "the attribute `nodes_modes`")?;
    let value = numbers(node, "nodes_values", "nodes_values_as_tensor")?.unwrap_or_default();
    let branch =
        |name: &'static str| required(node.ints(name)?, &format!("the attribute `{name}`"));
    let (then, or) = (branch("nodes_truenodeids")?, branch("nodes_falsenodeids")?);
    let missing = missing(node, n)?;
    for name in ["nodes_hitrates", "nodes_hitrates_as_tensor"] {
        node.ignore(name);
    }
    let lengths = [
        ("nodes_nodeids", id.len()),
        ("nodes_featureids", feature.len()),
        ("nodes_modes", modes.len()),
        ("nodes_values", value.len()),
        ("nodes_truenodeids", then.len()),
        ("nodes_falsenodeids", or.len()),
    ];
    lengths.into_iter().try_for_each(|(name, have)| same_length(name, have, n))?;
    let mut at: HashMap<(i64, i64), usize> = HashMap::default();
    let mut roots: Vec<(i64, usize)> = Vec::new();
    let mut begun: HashMap<i64, ()> = HashMap::default();
    for k in 0..n {
        if at.insert((tree[k], id[k]), k).is_some() {
            let (tree, id) = (tree[k], id[k]);
            return Err(Error::model(format!("node {id} of tree {tree} is given twice")));
        }
        if begun.insert(tree[k], ()).is_none() {
            roots.push((tree[k], k));
        }
    }
    let find = |tree: i64, id: i64| {
        let found = at.get(&(tree, id)).copied();
        found.ok_or_else(|| Error::model(format!("there is no node {id} of tree {tree}")))
    };
    let mut nodes = vec![Tree::Leaf(Vec::new()); n];
    for k in 0..n {
        let mode = match modes[k].as_str() {
            "LEAF" => continue,
            "BRANCH_LEQ" => Mode::LessEqual,
            "BRANCH_LT" => Mode::Less,
            "BRANCH_GTE" => Mode::GreaterEqual,
            "BRANCH_GT" => Mode::Greater,
            "BRANCH_EQ" => Mode::Equal,
            "BRANCH_NEQ" => Mode::NotEqual,
            other => {
                let all =
                    "LEAF, BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, BRANCH_GT, BRANCH_EQ, BRANCH_NEQ";
                return Err(node.unsupported_value("nodes_modes", other, all));
            }
        };
        let children = [find(tree[k], or[k])?, find(tree[k], then[k])?];
        let branch =
            Branch { feature: feature[k], mode, value: value[k], missing: missing[k], children };
        branch.add(k, work, &mut nodes);
    }
    let (tree, id) = (branch(trees)?, branch(ids)?);
    let result = places(node, results)?;
    let weight = numbers(node, weights, tensor)?.unwrap_or_default();
    for (name, have) in [(ids, id.len()), (results, result.len()), (weights, weight.len())] {
        same_length(name, have, tree.len())?;
    }
    for k in 0..tree.len() {
        let at = find(tree[k], id[k])?;
        if result[k] >= count {
            return Err(Error::model(format!(
                "attribute `{results}` has {}, and there are {count} results",
                result[k]
            )));
        }
        // Nobody arrives at a node that is no leaf.
        if let Tree::Leaf(weights) = &mut nodes[at] {
            weights.push((result[k], weight[k]));
        }
    }
    let roots = roots.into_iter().map(|(_, k)| k).collect();
    Ok(Ensemble { nodes, roots, results: count, aggregate, work })
}

pub(crate) fn regressor(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let all = [
        ("SUM", Aggregate::Sum),
        ("AVERAGE", Aggregate::Average),
        ("MIN", Aggregate::Min),
        ("MAX", Aggregate::Max),
    ];
    let aggregate = node.choice("aggregate_function", "SUM", &all)?;
    let transform = Transform::read(node)?;
    let targets = node.size_or("n_targets", 1)?;
    let base = numbers(node, "base_values", "base_values_as_tensor")?.unwrap_or_default();
    if !base.is_empty() {
        same_length("base_values", base.len(), targets)?;
    }
    let names = [
        "target_treeids",
        "target_nodeids",
        "target_ids",
        "target_weights",
        "target_weights_as_tensor",
    ];
    let ensemble = listed(node, names, targets, aggregate)?;
    let outcome = ensemble.run(c, node.input(0)?)?;
    let sums = outcome.and(c, &base)?;
    let y = match targets {
        1 => transform.apply_alone(c, &sums)?,
        _ => transform.apply(c, &sums)?,
    };
    one(c.cast(&y, DType::F32)?)
}

pub(crate) fn classifier(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let transform = Transform::read(node)?;
    let labels = Labels::read(node, ["classlabels_strings", "classlabels_int64s"])?;
    let base = numbers(node, "base_values", "base_values_as_tensor")?.unwrap_or_default();
    let names =
        ["class_treeids", "class_nodeids", "class_ids", "class_weights", "class_weights_as_tensor"];
    let ensemble = listed(node, names, labels.len(), Aggregate::Sum)?;
    let weights: Vec<(usize, f64)> = ensemble
        .nodes
        .iter()
        .filter_map(|n| if let Tree::Leaf(w) = n { Some(w.clone()) } else { None })
        .flatten()
        .collect();
    let (classes, of_two) = (labels.len(), labels.len() == 2);
    let mut met = vec![false; classes];
    weights.iter().for_each(|w| met[w.0] = true);
    let outcome = ensemble.run(c, node.input(0)?)?;
    let binary = Binary {
        base,
        transform,
        // One above a half is likelier than not; other weights have no such middle.
        bound: if weights.iter().all(|w| w.1 >= 0.0) { 0.5 } else { 0.0 },
    };
    let (label, scores) = match met.iter().filter(|m| **m).count() {
        _ if classes == 1 => {
            let score = outcome.and(c, &binary.base)?;
            (numbered(c, &labels, &score, 0.0)?, transform.apply_alone(c, &score)?)
        }
        1 if of_two => binary.one_sided(c, &labels, &outcome, usize::from(met[1]))?,
        _ if of_two => binary.two_sided(c, &labels, &outcome)?,
        _ => several(c, &labels, &outcome, &binary.base, transform)?,
    };
    Ok(vec![label, c.cast(&scores, DType::F32)?])
}

/// More than two classes, or more than one: the class with the best score that has any.
fn several(
    c: &mut Compose,
    labels: &Labels,
    outcome: &Outcome,
    base: &[f64],
    transform: Transform,
) -> Result<(Imported, Imported)> {
    let (sums, has) = (&outcome.sums, &outcome.has);
    if !base.is_empty() {
        same_length("base_values", base.len(), labels.len())?;
        // A class is there by its base value.
        let outcome = Outcome { sums: sums.clone(), has: None };
        let all = outcome.and(c, base)?;
        let best = scores::best(c, &all)?;
        return Ok((labels.at(c, &best)?, transform.apply(c, &all)?));
    }
    let ranked = match has {
        None => sums.clone(),
        Some(has) => {
            let last = c.number(sums.dtype(), f64::NEG_INFINITY)?;
            c.op("Where", &[has, sums, &last])?
        }
    };
    let best = scores::best(c, &ranked)?;
    Ok((labels.at(c, &best)?, transform.apply(c, sums)?))
}

/// The label of two that a score above a bound chooses, by the numbers 0 and 1 where labels are numbers: as
/// ONNX Runtime does where weights are for both classes, or there is one class only.
fn numbered(c: &mut Compose, labels: &Labels, score: &Imported, bound: f64) -> Result<Imported> {
    let second = scores::above(c, score, bound)?;
    match labels {
        Labels::Texts(texts) if texts.values().len() > 1 => labels.at(c, &second),
        Labels::Texts(_) => {
            let first = c.number(DType::I64, 0.0)?;
            let all = c.op("Mul", &[&second, &first])?;
            labels.at(c, &all)
        }
        Labels::Numbers(_) => Ok(second),
    }
}

/// Two classes: what ONNX Runtime makes of scores, of which the specification says little.
struct Binary {
    base: Vec<f64>,
    transform: Transform,
    /// Above which the second class is chosen.
    bound: f64,
}

impl Binary {
    /// All weights are for one class.
    fn one_sided(
        &self,
        c: &mut Compose,
        labels: &Labels,
        outcome: &Outcome,
        class: usize,
    ) -> Result<(Imported, Imported)> {
        let sum = c.slice(&outcome.sums, 1, class, class + 1)?;
        let zero = c.number(sum.dtype(), 0.0)?;
        let nothing = c.op("Mul", &[&sum, &zero])?;
        let base = c.number(sum.dtype(), self.base.first().copied().unwrap_or(0.0))?;
        let (score, all) = match (class, self.base.len()) {
            (0, 0 | 1) => {
                let score = c.op("Add", &[&sum, &base])?;
                let all = self.transform.both(c, &score, self.bound > 0.0)?;
                return Ok((self.label(c, labels, &score)?, all));
            }
            (0, 2) => {
                let score = c.op("Add", &[&sum, &base])?;
                let all = c.concat(&[&score, &nothing], 1)?;
                (score, all)
            }
            (_, 0 | 1) => (sum.clone(), c.concat(&[&nothing, &sum], 1)?),
            (_, 2) => {
                // The sum of the first class, of which there is none, and the second base value.
                let base = c.number(sum.dtype(), self.base[1])?;
                let score = c.op("Add", &[&nothing, &base])?;
                let all = c.concat(&[&nothing, &score], 1)?;
                (score, all)
            }
            _ => return Err(self.too_many()),
        };
        Ok((self.label(c, labels, &score)?, self.transform.apply(c, &all)?))
    }

    fn label(&self, c: &mut Compose, labels: &Labels, score: &Imported) -> Result<Imported> {
        let second = scores::above(c, score, self.bound)?;
        labels.at(c, &second)
    }

    fn too_many(&self) -> Error {
        Error::model(format!("{} base values for two classes", self.base.len()))
    }

    /// There are weights for both classes.
    fn two_sided(
        &self,
        c: &mut Compose,
        labels: &Labels,
        outcome: &Outcome,
    ) -> Result<(Imported, Imported)> {
        let sums = &outcome.sums;
        let (first, second) = (c.slice(sums, 1, 0, 1)?, c.slice(sums, 1, 1, 2)?);
        if outcome.has.is_some() && !self.base.is_empty() {
            return Err(Error::unsupported(
                "base values of two classes are not supported where leaves have no weight for one",
            )
            .note("ONNX Runtime leaves scores undefined there"));
        }
        let (first, second) = match self.base.len() {
            0 => (first, second),
            1 => {
                let base = c.number(sums.dtype(), self.base[0])?;
                (c.op("Add", &[&first, &base])?, second)
            }
            2 => {
                let base = c.number(sums.dtype(), self.base[1])?;
                let score = c.op("Add", &[&first, &base])?;
                (c.op("Neg", &[&score])?, score)
            }
            _ => return Err(self.too_many()),
        };
        let plain = c.concat(&[&first, &second], 1)?;
        let plain = self.transform.apply(c, &plain)?;
        let Some(has) = &outcome.has else {
            return Ok((numbered(c, labels, &second, 0.0)?, plain));
        };
        // Where the second class has no weight, the first one's counts for both.
        let has = c.slice(has, 1, 1, 2)?;
        let alone = self.transform.both(c, &first, false)?;
        let score = c.op("Where", &[&has, &second, &first])?;
        let all = c.op("Where", &[&has, &plain, &alone])?;
        Ok((numbered(c, labels, &score, 0.0)?, all))
    }
}

/// The ensembles of version 5, whose tables are those of nodes and of leaves.
pub(crate) fn tree_ensemble(node: &Node, b: &mut Builder) -> Result<Vec<Imported>> {
    let c = &mut Compose::new(node, b);
    let x = node.input(0)?;
    let splits = tensor_of("nodes_splits", node)?;
    let weights = tensor_of("leaf_weights", node)?;
    let work = match x.dtype() {
        DType::F64 => DType::F64,
        _ => DType::F32,
    };
    let modes = tensor_of("nodes_modes", node)?;
    let n = splits.len();
    let feature = places(node, "nodes_featureids")?;
    let (then, or) = (places(node, "nodes_truenodeids")?, places(node, "nodes_falsenodeids")?);
    let (then_leaf, or_leaf) =
        (places(node, "nodes_trueleafs")?, places(node, "nodes_falseleafs")?);
    let missing = missing(node, n)?;
    node.ignore("nodes_hitrates");
    let lengths = [
        ("nodes_modes", modes.len()),
        ("nodes_featureids", feature.len()),
        ("nodes_truenodeids", then.len()),
        ("nodes_falsenodeids", or.len()),
        ("nodes_trueleafs", then_leaf.len()),
        ("nodes_falseleafs", or_leaf.len()),
    ];
    lengths.into_iter().try_for_each(|(name, have)| same_length(name, have, n))?;
    let results = node.size_or("n_targets", 1)?;
    let target = places(node, "leaf_targetids")?;
    same_length("leaf_weights", weights.len(), target.len())?;
    let leaves = target.len();
    let mut nodes = vec![Tree::Leaf(Vec::new()); n];
    for (k, &target) in target.iter().enumerate() {
        if target >= results {
            return Err(Error::model(format!("there is no target {target} of {results}")));
        }
        nodes.push(Tree::Leaf(vec![(target, weights.get_f64(k))]));
    }
    let members = node.tensor("membership_values")?;
    let mut sets = members.iter().flat_map(|t| (0..t.len()).map(|k| t.get_f64(k)));
    for k in 0..n {
        let children =
            [child_of(k, &or, &or_leaf, leaves, n)?, child_of(k, &then, &then_leaf, leaves, n)?];
        let mode = match modes.get_i128(k) {
            0 => Mode::LessEqual,
            1 => Mode::Less,
            2 => Mode::GreaterEqual,
            3 => Mode::Greater,
            4 => Mode::Equal,
            5 => Mode::NotEqual,
            6 => {
                // The sets of all nodes stand one after the other, each with `NaN` behind it.
                let set: Vec<f64> = sets.by_ref().take_while(|v| !v.is_nan()).collect();
                member(&mut nodes, k, feature[k], &set, missing[k], children, work);
                continue;
            }
            other => return Err(node.unsupported_value("nodes_modes", other, "0 to 6")),
        };
        let value = splits.get_f64(k);
        let missing = missing[k];
        let branch = Branch { feature: feature[k], mode, value, missing, children };
        branch.add(k, work, &mut nodes);
    }
    if sets.next().is_some() {
        return Err(Error::model("attribute `membership_values` has more sets than nodes ask for"));
    }
    let roots = places(node, "tree_roots")?;
    if let Some(root) = roots.iter().find(|r| **r >= n) {
        return Err(Error::model(format!("there is no node {root}, which is a root")));
    }
    let aggregate = match node.int_or("aggregate_function", 1)? {
        0 => Aggregate::Average,
        1 => Aggregate::Sum,
        2 => Aggregate::Min,
        3 => Aggregate::Max,
        other => return Err(node.unsupported_value("aggregate_function", other, "0 to 3")),
    };
    let transform = Transform::numbered(node)?;
    let sums = Ensemble { nodes, roots, results, aggregate, work }.run(c, x)?.sums;
    let y = match results {
        1 => transform.apply_alone(c, &sums)?,
        _ => transform.apply(c, &sums)?,
    };
    let dtype = if x.dtype().is_float() { x.dtype() } else { DType::F32 };
    one(c.cast(&y, dtype)?)
}

fn tensor_of(name: &'static str, node: &Node<'_>) -> Result<Tensor> {
    required(node.tensor(name)?, &format!("the attribute `{name}`"))
}

/// Leaves stand behind all nodes.
fn child_of(k: usize, at: &[usize], leaf: &[usize], leaves: usize, n: usize) -> Result<usize> {
    let (what, most) = if leaf[k] != 0 { ("leaf", leaves) } else { ("node", n) };
    if at[k] < most {
        Ok(if leaf[k] != 0 { n + at[k] } else { at[k] })
    } else {
        Err(Error::model(format!("there is no {what} {}", at[k])))
    }
}

/// Whether a feature is in a set: one test for each element, and the next one where it is another.
fn member(
    nodes: &mut Vec<Tree>,
    at: usize,
    feature: usize,
    set: &[f64],
    missing: bool,
    [otherwise, then]: [usize; 2],
    work: DType,
) {
    let mut here = at;
    for (k, &value) in set.iter().enumerate() {
        let last = k + 1 == set.len();
        let next = if last { otherwise } else { nodes.len() };
        if !last {
            nodes.push(Tree::Leaf(Vec::new()));
        }
        let branch = Branch {
            feature,
            mode: Mode::Equal,
            value,
            missing: missing && last,
            children: [next, then],
        };
        branch.add(here, work, nodes);
        here = next;
    }
    if set.is_empty() {
        let value = f64::NAN;
        let branch =
            Branch { feature, mode: Mode::Equal, value, missing, children: [otherwise, then] };
        branch.add(at, work, nodes);
    }
}
