//! Ensembles of decision trees.
//!
//! A node is a test of one feature, `low <= x[feature] <= high`, which chooses one of two children. Nodes lie
//! in tables of numbers, the two children of a node side by side, and a leaf is a node that no number passes
//! and that leads to itself. So a walk takes as many steps as its tree is deep, whatever the data are; a step
//! has no branch, and walks side by side have nothing to do with each other: `LANES` rows walk down one tree,
//! and of the rows that are left each walks down so many trees.
//!
//! ```text
//! node = first[node] + (low[node] <= x[row, feature[node]] <= high[node])
//! ```
//!
//! `first` and `feature` are one number where both fit into it: what a step costs is what it gathers.
//!
//! Trees are sorted by depth, in classes of which each is walked to its greatest depth. In deep ones, where
//! most leaves lie far above the deepest, walks are asked after every few steps whether all have arrived.
//!
//! A leaf has weights for some results. Tables are filled up to powers of two, so that masked numbers are positions in them.

use tilewright_ir::{
    Attr, Block, Buffer, DType, Dim, Error, Expr, ForKind, Intrin, IterVar, Range, Result, Stmt,
    StmtKind, Tensor as Data, TensorFunc, Var, dim,
};

use crate::loops::{each, function, get, one_cell, set, with};
use crate::operand::{Operand, unsupported_type};
use crate::te::Reducer;

/// Walks side by side.
const LANES: usize = 16;

/// Steps between two questions whether all walks have arrived.
const STEPS: usize = 4;

/// Most entries of a table.
const MOST: usize = 1 << 27;

/// A node of a tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Goes to the second child where the feature lies between two bounds, both included, else to the first
    /// one. `NaN` is between none; bounds that are `NaN` have nothing between them.
    Test {
        /// The column of the data.
        feature: usize,
        /// The lower bound.
        low: f64,
        /// The upper bound.
        high: f64,
        /// The numbers of the next nodes.
        children: [usize; 2],
    },
    /// Results and what is added to them, or whatever [`Trees::combine`] says.
    Leaf(Vec<(usize, f64)>),
}

/// Trees whose leaves are combined for each row.
#[derive(Clone, Debug, PartialEq)]
pub struct Trees {
    /// `[N, F]`: a row of features for each example, `float32` or `float64`.
    pub x: Operand,
    /// The nodes of all trees. Trees may share nodes.
    pub nodes: Vec<Node>,
    /// The numbers of the nodes at which trees begin.
    pub roots: Vec<usize>,
    /// Number of results of a row.
    pub results: usize,
    /// How the weights of the leaves become a result. A result for which no leaf has a weight is what the
    /// combination of nothing is.
    pub combine: Reducer,
}

/// The tables of an ensemble, and what the function that walks through them is made from.
#[derive(Debug)]
pub struct LaidOut {
    form: TreesSignature,
    tables: Tables,
}

/// What the function depends on.
#[derive(Debug)]
pub struct TreesSignature {
    x: Operand,
    results: usize,
    combine: Reducer,
    classes: Vec<Class>,
    roots: usize,
    nodes: usize,
    /// The lowest bits of a number of [`Tables::test`] that are a feature, where the others are a node.
    feature_bits: Option<u32>,
    /// Whether there are lower bounds, and upper ones.
    bounds: [bool; 2],
    /// Weights of all leaves, and of one.
    weights: usize,
    per_leaf: usize,
    /// Whether each weight has the number of its result.
    numbered: bool,
}

/// Lays out the nodes of an ensemble.
///
/// # Errors
/// [`Error::Input`] for nodes, features and results that are not there and for nodes that form a cycle,
/// [`Error::Unsupported`] for data that are no `float32` or `float64`, and for more nodes than fit.
pub fn lay_out(p: &Trees) -> Result<LaidOut> {
    let features = match p.x.shape[..] {
        [_, f] => f.fixed(NAME)?,
        _ => return Err(Error::input(format!("{NAME}: {} is no matrix", p.x))),
    };
    if !matches!(p.x.dtype, DType::F32 | DType::F64) {
        return Err(unsupported_type(NAME, p.x.dtype, "float32 and float64"));
    }
    if features == 0 || p.results == 0 {
        return Err(Error::input(format!("{NAME}: {} and {} results", p.x, p.results)));
    }
    let depths = depths(p, features)?;
    let (classes, tables) = Tables::new(p, &depths)?;
    let form = TreesSignature {
        x: p.x.clone(),
        results: p.results,
        combine: p.combine,
        classes,
        roots: tables.roots.len(),
        nodes: tables.leaf.len(),
        feature_bits: tables.feature_bits,
        bounds: [!tables.low.is_empty(), !tables.high.is_empty()],
        weights: tables.weight.len(),
        per_leaf: tables.per_leaf,
        numbered: !tables.result.is_empty(),
    };
    Ok(LaidOut { form, tables })
}

impl LaidOut {
    /// What the function depends on; equal forms have equal functions.
    pub fn form(&self) -> &TreesSignature {
        &self.form
    }

    /// The tables, in the order in which the function takes them behind the features.
    ///
    /// # Errors
    /// Where there is no memory for them.
    pub fn tables(&self) -> Result<Vec<Data>> {
        self.tables.data(self.form.x.dtype)
    }

    /// The combined weights of leaves. Parameters: `x`, the tables, the result `[N, results]` in the type of
    /// `x`. The tables are constants that come with the function; any other value of them is another
    /// function.
    ///
    /// # Errors
    /// [`Error::Input`] for an extent that no function can have.
    pub fn function(&self) -> Result<TensorFunc> {
        self.form.function()
    }
}

const NAME: &str = "trees";

/// How many steps it is from each node to its deepest leaf, for those that a root reaches.
fn depths(p: &Trees, features: usize) -> Result<Vec<usize>> {
    let mut depth: Vec<Option<usize>> = vec![None; p.nodes.len()];
    // Whether something below is looked at.
    let mut open = vec![false; p.nodes.len()];
    for &root in &p.roots {
        let mut way = vec![(root, children(p, root, features)?)];
        while let Some((node, below)) = way.last_mut() {
            let node = *node;
            open[node] = true;
            let Some((&next, rest)) = below.split_first() else {
                let below = children(p, node, features)?.iter().filter_map(|c| depth[*c]).max();
                depth[node] = Some(below.map_or(0, |d| d + 1));
                open[node] = false;
                way.pop();
                continue;
            };
            *below = rest;
            let children = children(p, next, features)?;
            if open[next] {
                return Err(Error::input(format!("{NAME}: node {next} leads back to itself")));
            }
            if depth[next].is_none() {
                way.push((next, children));
            }
        }
    }
    Ok(depth.into_iter().map(|d| d.unwrap_or(0)).collect())
}

/// The children of a node, after a look at what it refers to.
fn children(p: &Trees, node: usize, features: usize) -> Result<&[usize]> {
    let missing = match p.nodes.get(node) {
        None => format!("node {node}"),
        Some(Node::Test { feature, .. }) if *feature >= features => {
            format!("feature {feature} of {features}")
        }
        Some(Node::Test { children, .. }) => return Ok(children),
        Some(Node::Leaf(weights)) => match weights.iter().find(|w| w.0 >= p.results) {
            Some((result, _)) => format!("result {result} of {}", p.results),
            None => return Ok(&[]),
        },
    };
    Err(Error::input(format!("{NAME}: there is no {missing}")))
}

/// The greatest depth of the class to which a depth belongs: at most a quarter more.
fn class(depth: usize) -> usize {
    match depth {
        0..=8 => depth,
        _ => depth.next_multiple_of(1 << (depth.ilog2() - 2)),
    }
}

/// Trees of one class.
#[derive(Debug)]
struct Class {
    depth: usize,
    /// Where their roots begin among all, and how many there are; roots that lead nowhere follow, up to a
    /// multiple of [`LANES`].
    first: usize,
    count: usize,
}

/// Where nodes lie: each tree by itself, level by level, and the two children of a node side by side.
struct Places {
    /// The node of each entry. One that several nodes lead to has an entry for each.
    entries: Vec<usize>,
    /// The entry of each root.
    roots: Vec<usize>,
    /// The entry of the first child of each node that is a test.
    pairs: Vec<usize>,
}

impl Places {
    fn new(p: &Trees, roots: &[usize]) -> Places {
        let unknown = usize::MAX;
        let mut places =
            Places { entries: Vec::new(), roots: Vec::new(), pairs: vec![unknown; p.nodes.len()] };
        for &root in roots {
            places.roots.push(places.entries.len());
            let mut at = places.entries.len();
            places.entries.push(root);
            while let Some(&node) = places.entries.get(at) {
                if let Node::Test { children, .. } = &p.nodes[node]
                    && places.pairs[node] == unknown
                {
                    places.pairs[node] = places.entries.len();
                    places.entries.extend(children);
                }
                at += 1;
            }
        }
        places
    }
}

/// The nodes as tables, each but the roots of a length that is a power of two.
#[derive(Debug)]
struct Tables {
    roots: Vec<i32>,
    /// The feature of each node, and above its bits, if [`Tables::feature_bits`] says how many these are, its
    /// first child; the second one lies behind that.
    test: Vec<i32>,
    feature_bits: Option<u32>,
    /// The first child of each node; empty where it stands in `test`.
    first: Vec<i32>,
    /// The number of each leaf.
    leaf: Vec<i32>,
    /// Bounds; empty where no node has such a bound.
    low: Vec<f64>,
    high: Vec<f64>,
    /// The weights of each leaf, as many for each.
    weight: Vec<f64>,
    /// Which result each weight is for; empty where there is a weight for each result.
    result: Vec<i32>,
    /// Weights of a leaf.
    per_leaf: usize,
}

impl Tables {
    fn new(p: &Trees, depths: &[usize]) -> Result<(Vec<Class>, Tables)> {
        let mut order = p.roots.clone();
        order.sort_by_key(|root| class(depths[*root]));
        let Places { entries, roots: starts, pairs } = Places::new(p, &order);
        // The last entry is a leaf that leads nowhere and has no weights.
        let nothing = entries.len();
        let size = (nothing + 1).next_power_of_two();
        let leaves: Vec<Vec<(usize, f64)>> = p
            .nodes
            .iter()
            .filter_map(|n| if let Node::Leaf(w) = n { Some(merged(w, p.combine)) } else { None })
            .collect();
        let most = leaves.iter().map(Vec::len).max().unwrap_or(0).max(1);
        // Few weights are stored with their results, many in the order of all results.
        let dense = p.results <= 2 * most;
        let per_leaf = if dense { p.results } else { most };
        let room = (leaves.len() + 1).next_power_of_two();
        if size > MOST || room.checked_mul(per_leaf).is_none_or(|cells| cells > MOST) {
            return Err(Error::unsupported(format!(
                "{NAME}: {nothing} nodes with {per_leaf} weights a leaf are too many"
            )));
        }
        let identity = match p.combine {
            Reducer::Min => f64::INFINITY,
            Reducer::Max => f64::NEG_INFINITY,
            _ => 0.0,
        };
        let mut weight = vec![identity; room * per_leaf];
        let mut result = vec![0i32; if dense { 0 } else { room * per_leaf }];
        for (leaf, weights) in leaves.iter().enumerate() {
            for (k, (to, w)) in weights.iter().enumerate() {
                let at = leaf * per_leaf + if dense { *to } else { k };
                weight[at] = *w;
                if !dense {
                    result[at] = *to as i32;
                }
            }
        }
        let mut numbers = vec![0i32; p.nodes.len()];
        for (number, node) in (0..).zip((0..p.nodes.len()).filter(|node| is_leaf(*node, p))) {
            numbers[node] = number;
        }
        let (mut feature, mut first) = (vec![0i32; size], vec![0i32; size]);
        let (mut low, mut high) = (vec![f64::NEG_INFINITY; size], vec![f64::INFINITY; size]);
        let mut leaf = vec![0i32; size];
        let (mut has_low, mut has_high) = (false, false);
        for (at, node) in entries.iter().enumerate() {
            if let Node::Test { feature: what, low: from, high: to, .. } = &p.nodes[*node] {
                (low[at], high[at]) = (*from, *to);
                has_low |= *from != f64::NEG_INFINITY;
                has_high |= *to != f64::INFINITY;
                feature[at] = *what as i32;
                first[at] = pairs[*node] as i32;
            }
        }
        // Bounds that no node has need no test, but one is needed that holds walks at leaves.
        has_high |= !has_low;
        for (at, node) in entries.iter().map(Some).chain([None]).enumerate() {
            let number = match node {
                Some(node) if is_leaf(*node, p) => numbers[*node],
                Some(_) => continue,
                None => leaves.len() as i32,
            };
            (leaf[at], first[at]) = (number, at as i32);
            *if has_high { &mut high[at] } else { &mut low[at] } = f64::NAN;
        }
        if !has_low {
            low.clear();
        }
        if !has_high {
            high.clear();
        }
        let features = feature.iter().max().map_or(0, |most| most + 1);
        let bits = features.max(1).unsigned_abs().next_power_of_two().ilog2();
        let feature_bits = (bits + size.ilog2() <= 31).then_some(bits);
        if feature_bits.is_some() {
            feature.iter_mut().zip(&first).for_each(|(f, first)| *f |= first << bits);
            first.clear();
        }
        let (mut classes, mut roots) = (Vec::new(), Vec::new());
        let mut starts = starts.into_iter();
        for trees in order.chunk_by(|a, b| class(depths[*a]) == class(depths[*b])) {
            let depth = class(depths[trees[0]]);
            classes.push(Class { depth, first: roots.len(), count: trees.len() });
            roots.extend(starts.by_ref().take(trees.len()).map(|start| start as i32));
            roots.resize(roots.len().next_multiple_of(LANES), nothing as i32);
        }
        let test = feature;
        let tables =
            Tables { roots, test, feature_bits, first, leaf, low, high, weight, result, per_leaf };
        Ok((classes, tables))
    }

    /// The tables in the order of the parameters.
    fn data(&self, dtype: DType) -> Result<Vec<Data>> {
        let mut all = vec![int_data(&self.roots)?, int_data(&self.test)?];
        if !self.first.is_empty() {
            all.push(int_data(&self.first)?);
        }
        all.push(int_data(&self.leaf)?);
        for list in [&self.low, &self.high].into_iter().filter(|v| !v.is_empty()) {
            all.push(float_data(list, dtype)?);
        }
        all.push(float_data(&self.weight, dtype)?);
        if !self.result.is_empty() {
            all.push(int_data(&self.result)?);
        }
        Ok(all)
    }
}

fn is_leaf(node: usize, p: &Trees) -> bool {
    matches!(p.nodes[node], Node::Leaf(_))
}

fn int_data(v: &[i32]) -> Result<Data> {
    Data::from_slice(&[v.len()], v)
}

fn float_data(v: &[f64], dtype: DType) -> Result<Data> {
    match dtype {
        DType::F64 => Data::from_slice(&[v.len()], v),
        _ => {
            let narrow: Vec<f32> = v.iter().map(|v| *v as f32).collect();
            Data::from_slice(&[v.len()], &narrow)
        }
    }
}

impl TreesSignature {
    fn function(&self) -> Result<TensorFunc> {
        let [n, features] = self.x.shape[..] else {
            return Err(Error::internal("a matrix of features"));
        };
        let features = features.fixed(NAME)?;
        let dtype = self.x.dtype;
        let params = Params {
            x: matrix_buffer("x", features, n, dtype),
            roots: list_buffer("roots", self.roots, DType::I32),
            test: list_buffer("test", self.nodes, DType::I32),
            first: self
                .feature_bits
                .is_none()
                .then(|| list_buffer("first", self.nodes, DType::I32)),
            leaf: list_buffer("leaf", self.nodes, DType::I32),
            low: self.bounds[0].then(|| list_buffer("low", self.nodes, dtype)),
            high: self.bounds[1].then(|| list_buffer("high", self.nodes, dtype)),
            weight: list_buffer("weight", self.weights, dtype),
            result: self.numbered.then(|| list_buffer("result", self.weights, DType::I32)),
            out: matrix_buffer("out", self.results, n, dtype),
        };

        let blocks = n.floordiv(LANES);
        let left = n - blocks * LANES;
        let mut nests = Vec::new();
        if blocks != 0 {
            let walk = Walk::new(self, &params, features);
            nests.push(walk.nest("rows", blocks, |block| walk.rows(block)));
        }
        if left != 0 {
            let walk = Walk::new(self, &params, features);
            let before = (blocks * LANES).expr();
            nests.push(walk.nest("rest", left, |row| walk.row(&(before.clone() + row))));
        }
        let sizes = n.vars();
        function(NAME, &params.all(), sizes.iter().map(dim::narrow), Stmt::seq(nests))
    }
}

fn list_buffer(name: &str, length: usize, dtype: DType) -> Buffer {
    Buffer::with_extents(name, &[length as i64], dtype)
}

fn matrix_buffer(name: &str, columns: usize, n: Dim, dtype: DType) -> Buffer {
    Buffer::new(name, vec![n.expr(), Dim::from(columns).expr()], dtype)
}

/// The weights of a leaf, one for each result that it has any for.
fn merged(weights: &[(usize, f64)], combine: Reducer) -> Vec<(usize, f64)> {
    let mut all: Vec<(usize, f64)> = Vec::with_capacity(weights.len());
    let mut sorted = weights.to_vec();
    sorted.sort_by_key(|w| w.0);
    for (result, w) in sorted {
        match all.last_mut().filter(|last| last.0 == result) {
            None => all.push((result, w)),
            Some((_, sum)) => {
                *sum = match combine {
                    Reducer::Min => sum.min(w),
                    Reducer::Max => sum.max(w),
                    Reducer::Prod => *sum * w,
                    Reducer::Sum => *sum + w,
                }
            }
        }
    }
    all
}

/// The parameters of the function.
struct Params {
    x: Buffer,
    roots: Buffer,
    test: Buffer,
    first: Option<Buffer>,
    leaf: Buffer,
    low: Option<Buffer>,
    high: Option<Buffer>,
    weight: Buffer,
    result: Option<Buffer>,
    out: Buffer,
}

impl Params {
    fn all(&self) -> Vec<&Buffer> {
        let mut all = vec![&self.x, &self.roots, &self.test];
        all.extend(self.first.iter().chain([&self.leaf]));
        all.extend(self.low.iter().chain(&self.high).chain([&self.weight]).chain(&self.result));
        all.push(&self.out);
        all
    }
}

/// A loop over walks without vectors: three scalar loads a step cost less than vectors that gather, and the
/// processor works at several walks at a time by itself.
fn one_by_one(name: &str, body: impl FnOnce(&Expr) -> Stmt) -> Stmt {
    let var = Var::index(name);
    let body = body(&var.expr());
    let annotations = [("pragma_no_unroll", 1), ("pragma_vectorize", 0)];
    Stmt::new(StmtKind::For {
        range: Range::upto(Expr::i32(LANES as i32)),
        kind: ForKind::Serial,
        annotations: annotations.map(|(key, value)| (key.into(), Attr::Int(value))).into(),
        var,
        body,
    })
}

/// The statements of walks.
struct Walk<'a> {
    form: &'a TreesSignature,
    params: &'a Params,
    /// The node of each walk.
    at: Buffer,
    /// Whether a walk has not arrived.
    going: Buffer,
    /// The results of each row.
    acc: Buffer,
    features: usize,
}

/// A number from a table as a position in another one, whose length is a power of two.
fn position(number: Expr, length: usize) -> Expr {
    Expr::intrin(Intrin::BitAnd, vec![number, Expr::i32(length as i32 - 1)])
}

impl Walk<'_> {
    fn new<'a>(form: &'a TreesSignature, params: &'a Params, features: usize) -> Walk<'a> {
        let acc = [LANES as i64, form.results as i64];
        Walk {
            form,
            params,
            at: list_buffer("at", LANES, DType::I32),
            going: one_cell("going", DType::I32),
            acc: Buffer::with_extents("acc", &acc, form.x.dtype),
            features,
        }
    }

    /// A block for each of so many things.
    fn nest(&self, name: &str, count: Dim, body: impl FnOnce(&Expr) -> Stmt) -> Stmt {
        let (inner, outer) = (Var::index("v"), Var::index("i"));
        let mut block = Block::new(name, body(&inner.expr()));
        block.allocs = vec![self.at.clone(), self.going.clone(), self.acc.clone()];
        block.iters = vec![IterVar::spatial(&inner, Range::upto(count.expr()))];
        let body = Stmt::block(vec![outer.expr()], Expr::bool(true), block);
        Stmt::serial(&outer, count.expr(), body)
    }

    /// The results of [`LANES`] rows.
    fn rows(&self, block: &Expr) -> Stmt {
        let classes = self.form.classes.iter().map(|class| {
            each("tree", class.count, |tree| {
                Stmt::seq([
                    self.start(&|_| tree.clone() + class.first as i64),
                    self.steps(class.depth, &|lane| block.clone() * LANES as i64 + lane),
                    each("lane", LANES, |lane| self.arrive(lane, lane)),
                ])
            })
        });
        let clear = each("lane", LANES, |lane| self.clear(lane));
        let store =
            each("lane", LANES, |lane| self.store(lane, &(block.clone() * LANES as i64 + lane)));
        Stmt::seq([clear].into_iter().chain(classes).chain([store]))
    }

    /// The results of one row.
    fn row(&self, row: &Expr) -> Stmt {
        let first = Expr::i32(0);
        let classes = self.form.classes.iter().map(|class| {
            each("trees", class.count.div_ceil(LANES), |trees| {
                Stmt::seq([
                    self.start(&|lane| trees.clone() * LANES as i64 + lane + class.first as i64),
                    self.steps(class.depth, &|_| row.clone()),
                    each("lane", LANES, |lane| self.arrive(lane, &first)),
                ])
            })
        });
        let (clear, store) = (self.clear(&first), self.store(&first, row));
        Stmt::seq([clear].into_iter().chain(classes).chain([store]))
    }

    /// Each walk at the root of its tree.
    fn start(&self, root: &dyn Fn(&Expr) -> Expr) -> Stmt {
        each("lane", LANES, |lane| {
            Stmt::store(&self.at, vec![lane.clone()], self.params.roots.load([root(lane)]))
        })
    }

    /// The node of a walk.
    fn node(&self, lane: &Expr) -> Expr {
        position(self.at.load([lane.clone()]), self.form.nodes)
    }

    /// So many steps of all walks.
    fn steps(&self, depth: usize, row: &dyn Fn(&Expr) -> Expr) -> Stmt {
        if depth == 0 {
            return Stmt::nop();
        }
        let plain = one_by_one("lane", |lane| self.step(lane, &row(lane), false));
        if depth <= 2 * STEPS {
            return each("step", depth, |_| plain);
        }
        let asked = one_by_one("lane", |lane| self.step(lane, &row(lane), true));
        let some =
            Stmt::seq([each("step", STEPS - 1, |_| plain), set(&self.going, Expr::i32(0)), asked]);
        let all = each("chunk", depth.div_ceil(STEPS), |_| {
            Stmt::guard(get(&self.going).greater(0), some)
        });
        Stmt::seq([set(&self.going, Expr::i32(1)), all])
    }

    /// One step of a walk; says whether it went on if that is asked.
    fn step(&self, lane: &Expr, row: &Expr, asked: bool) -> Stmt {
        let last = self.features as i64 - 1;
        with("node", self.node(lane), |node| {
            with("test", self.params.test.load([node.clone()]), |test| {
                let (feature, first) = match (self.form.feature_bits, &self.params.first) {
                    (Some(bits), _) => {
                        (position(test.clone(), 1 << bits), test.clone().floordiv(1i64 << bits))
                    }
                    (None, Some(first)) => (test.clone().max(0), first.load([node.clone()])),
                    (None, None) => (test.clone().max(0), node.clone()),
                };
                with("value", self.params.x.load([row.clone(), feature.min(last)]), |value| {
                    let above = self
                        .params
                        .low
                        .iter()
                        .map(|b| value.clone().greater_equal(bound_at(b, node)));
                    let below = self
                        .params
                        .high
                        .iter()
                        .map(|b| value.clone().less_equal(bound_at(b, node)));
                    let inside = above.chain(below).reduce(Expr::and);
                    let inside = inside.unwrap_or_else(|| value.clone().equal(value.clone()));
                    with("next", first + inside.cast(DType::I32), |next| {
                        let go = Stmt::store(&self.at, vec![lane.clone()], next.clone());
                        if !asked {
                            return go;
                        }
                        let went = next.clone().not_equal(node.clone()).cast(DType::I32);
                        Stmt::seq([go, set(&self.going, get(&self.going).max(went))])
                    })
                })
            })
        })
    }

    /// The weights of the leaf of a walk, for a row.
    fn arrive(&self, lane: &Expr, row: &Expr) -> Stmt {
        let per_leaf = self.form.per_leaf;
        let leaves = self.form.weights / per_leaf;
        let leaf = position(self.params.leaf.load([self.node(lane)]), leaves);
        with("leaf", leaf * per_leaf as i64, |leaf| {
            each("k", per_leaf, |k| {
                let at = leaf.clone() + k;
                let result = match &self.params.result {
                    Some(results) => {
                        results.load([at.clone()]).max(0).min(self.form.results as i64 - 1)
                    }
                    None => k.clone(),
                };
                with("to", result, |to| {
                    let cell = vec![row.clone(), to.clone()];
                    let so_far = Expr::load(&self.acc, cell.clone());
                    let weight = self.params.weight.load([at]);
                    Stmt::store(&self.acc, cell, self.form.combine.combine(so_far, weight))
                })
            })
        })
    }

    fn clear(&self, row: &Expr) -> Stmt {
        let nothing = self.form.combine.identity(self.acc.dtype());
        each("k", self.form.results, |k| {
            Stmt::store(&self.acc, vec![row.clone(), k.clone()], nothing)
        })
    }

    fn store(&self, row: &Expr, to: &Expr) -> Stmt {
        each("k", self.form.results, |k| {
            let value = Expr::load(&self.acc, vec![row.clone(), k.clone()]);
            Stmt::store(&self.params.out, vec![to.clone(), k.clone()], value)
        })
    }
}

fn bound_at(b: &Buffer, node: &Expr) -> Expr {
    b.load([node.clone()])
}
