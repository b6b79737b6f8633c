//! Whether two graph functions give the same results, call by call.
//!
//! Values of both graphs get *classes*: parameters by their positions, constants by their contents, results of
//! calls by what is called and the classes of what it is called with. Two values of one class are
//! equal for all data, since calls have no effects. That decides most of two versions of one model, at
//! a price that does not depend on the sizes of tensors.
//!
//! What an optimiser has changed has no class of the first graph. There a group of calls back to values that have
//! one is compared with groups of the first graph that begin at the same values: each group becomes one
//! tensor function, and these are compared statement by statement, by where their values come from
//! ([`equivalence`]), and, where they are small, element by element. So fused calls, transposes that were moved
//! and axes that were merged are found; a group that is proved equal takes the class of the other
//! one, and what follows is compared by calls again.
//!
//! With floats as real numbers ([`reals`](tilewright_analysis::reals)) constants may differ by how they were rounded, and groups
//! by the order of sums and products.
//!
//! A yes is a proof for all data and all sizes. The other answer says which results are left.

use std::collections::BTreeSet;
use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_analysis::equivalence::{by_flow, equivalent};
use tilewright_analysis::reals::{equal_with_constants, rounding_of};
use tilewright_graph::call_sizes::unify_sizes;
use tilewright_graph::legalize::copy_func;
use tilewright_ir::equal::{self, Equality};
use tilewright_ir::{DType, Expr, GraphType, Module, Result, Tensor, TensorFunc, Var, dim};
use tilewright_verify::{Verdict, VerifyOptions};

use crate::constant_views::share_constants;
use crate::forms::Form;
use crate::found_sizes::FoundSizes;
use crate::groups::{Group, over_same_sizes};
use crate::values::{EnteredBody, Graph, Node, Value, long, text};

/// Most groups of the first graph that one of the second graph is compared with.
const TRIED: usize = 8;

/// Most calls in a row of the first graph on top of which one of the second graph is put.
const DEPTH: usize = 3;

/// Steps and terms of a comparison of two groups element by element.
const STEPS: u64 = 400_000;
const TERMS: usize = 1 << 17;

/// The answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Congruence {
    /// All results are equal: the number of calls, and how many of them are the results of groups that were
    /// compared; and with floats as real numbers, by how much constants differ at most that count as one, as a
    /// part of the larger one.
    Equal { calls: usize, groups: usize, rounding: Option<f64> },
    /// These results could not be shown equal; and how often both graphs together store an element, at least, as
    /// far as sizes are known; and what is known of the first call of the second graph that is unlike.
    Open { results: Vec<usize>, stores: u64, unlike: Option<String> },
    /// The caller has shown that they differ ([`Refute`]).
    Refuted,
}

/// Whether the graphs are shown to differ by other means, given how often both together store an element. It is called
/// once, at the first call that equals none of the first graph: all that read a wrong one are unlike, too, and each
/// comparison takes time.
pub(crate) type Refute<'d> = dyn FnMut(u64) -> bool + 'd;

/// Compares graph functions of two modules; `None` where one of them is no graph function, or they
/// have different interfaces.
pub(crate) fn compare(
    a: (&Module, &str),
    b: (&Module, &str),
    options: &VerifyOptions,
    refute: &mut Refute<'_>,
) -> Result<Option<Congruence>> {
    let Some(mut sizes) = FoundSizes::new(a, b) else { return Ok(None) };
    let mut is_asked = false;
    let mut compared = Vec::new();
    loop {
        let modules = sizes.modules()?;
        let (a, b) = ((&modules[0], a.1), (&modules[1], b.1));
        let found = |v: &Var| sizes.is_found(v);
        let mut classes = Classes::new(options, &found, compared);
        let mut ask = |stores| !std::mem::replace(&mut is_asked, true) && refute(stores);
        let answer = classes.compare(a, b, &mut ask)?;
        let learnt = classes.learnt;
        compared = classes.compared;
        if learnt.is_empty() || answer == Some(Congruence::Refuted) {
            return Ok(answer);
        }
        sizes.learn(&learnt);
    }
}

fn param_types(g: &Graph<'_>) -> Vec<String> {
    let params = g.nodes.iter().filter(|n| matches!(n.value, Value::Param(_)));
    params.map(|n| n.ty.clone()).collect::<Vec<_>>()
}

/// What is the same for all values of a class.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Param(usize),
    /// By its extents of more than one element.
    Constant(DType, Vec<usize>, Vec<u8>),
    Call(usize, Vec<usize>, Vec<String>, usize, String),
    /// Whatever its type says: that follows from its operands.
    Operator(String, Vec<usize>),
}

/// How a walk over the second graph ended.
enum Ended {
    Whole,
    /// The graphs are known to differ.
    Refuted,
    /// Sizes are known to be the same that have other names.
    Learnt,
}

/// The first graph, to which values of the second one are compared.
struct First<'g, 'm> {
    graph: &'g Graph<'m>,
    /// A value for each of its classes.
    one: Vec<usize>,
}

/// Two groups with the constants that they end with, and how they are the same.
struct Compared {
    functions: [TensorFunc; 2],
    constants: [Vec<Tensor>; 2],
    same: Option<Same>,
}

/// How two groups are the same.
#[derive(Clone, Copy)]
enum Same {
    Exactly,
    /// With floats as real numbers, and constants that differ by at most so much.
    InReals(f64),
}

struct Classes<'o> {
    options: &'o VerifyOptions,
    /// Whether a size is one that a graph finds, and that is not known to be another one.
    is_found: &'o dyn Fn(&Var) -> bool,
    /// What such sizes are, of values of the first graph.
    learnt: HashMap<Var, Expr>,
    /// Such sizes that values say which were looked at.
    passed: HashSet<Var>,
    /// The first value of the second graph that may end a run which the first graph does not end.
    may_fail: Option<usize>,
    /// The class of each value, for both graphs.
    of: [Vec<usize>; 2],
    classes: HashMap<Key, usize>,
    count: usize,
    /// How many of them the first graph has.
    count_of_first: usize,
    /// Functions of which no two are the same but for names, with their signatures.
    functions: Vec<(String, Arc<TensorFunc>)>,
    /// Their numbers by name, for both graphs.
    names: [HashMap<Arc<str>, usize>; 2],
    /// Pairs of groups that were compared.
    compared: Vec<Compared>,
    /// Classes of values of the second graph that are known before their turn.
    early: HashMap<usize, usize>,
    /// The forms in which one graph may have the values of the other one.
    forms: Vec<Form>,
    /// Groups that were proved equal.
    groups: usize,
    /// The largest difference of constants that count as one; nothing where no proof needed it.
    rounding: Option<f64>,
}

impl<'o> Classes<'o> {
    fn new(
        options: &'o VerifyOptions,
        is_found: &'o dyn Fn(&Var) -> bool,
        compared: Vec<Compared>,
    ) -> Classes<'o> {
        Classes {
            options,
            is_found,
            learnt: HashMap::default(),
            passed: HashSet::default(),
            may_fail: None,
            of: [Vec::new(), Vec::new()],
            classes: HashMap::default(),
            count: 0,
            count_of_first: 0,
            functions: Vec::new(),
            names: [HashMap::default(), HashMap::default()],
            compared,
            early: HashMap::default(),
            forms: Vec::new(),
            groups: 0,
            rounding: None,
        }
    }

    /// Compares graph functions of two modules, as far as the sizes that they find are known to be the same.
    fn compare(
        &mut self,
        a: (&Module, &str),
        b: (&Module, &str),
        refute: &mut Refute<'_>,
    ) -> Result<Option<Congruence>> {
        let reals = self.options.reals;
        // Calls say sizes in variables of the graph, where they say all that a function needs.
        let modules = [a.0, b.0].map(|m| unify_sizes(m).unwrap_or_else(|_| m.clone()));
        let graphs = (Graph::new(&modules[0], a.1, reals), Graph::new(&modules[1], b.1, reals));
        let (Some(mut first), Some(mut second)) = graphs else {
            return Ok(None);
        };
        let is_alike = param_types(&first) == param_types(&second)
            && first.results.len() == second.results.len();
        if !is_alike {
            return Ok(None);
        }
        let rounding = share_constants(&mut first, &mut second, reals);
        rounding.into_iter().for_each(|rounding| self.count_rounding(rounding));
        self.forms = second.forms(&first);
        self.first(&first);
        if !self.learnt.is_empty() {
            return Ok(None);
        }
        let stores = first.stores().saturating_add(second.stores());
        match self.second(&first, &mut second, &mut || refute(stores))? {
            Ended::Whole => {}
            Ended::Refuted => return Ok(Some(Congruence::Refuted)),
            Ended::Learnt => return Ok(None),
        }
        let (of_a, of_b) = (&self.of[0], &self.of[1]);
        let pairs = first.results.iter().zip(&second.results).enumerate();
        let open = pairs.filter(|(_, (x, y))| of_a[**x] != of_b[**y]).map(|(k, _)| k);
        let mut open: Vec<usize> = open.collect();
        if open.is_empty() && self.may_fail.is_some() {
            open = (0..first.results.len()).collect();
        }
        let calls = (0..second.nodes.len()).filter(|at| second.is_call(*at)).count();
        Ok(Some(if open.is_empty() {
            // A product that took on a scale is equal in the reals, also where nothing was rounded.
            let folds = first.folds || second.folds;
            let rounding = self.rounding.or(folds.then_some(0.0));
            Congruence::Equal { calls, groups: self.groups, rounding }
        } else {
            let unlike = match (self.unlike(&second), self.may_fail) {
                (Some(at), _) => Some(format!(
                    "the first value of the second one that equals none of the first one is {}",
                    second.title(at)
                )),
                (None, Some(at)) => Some(format!(
                    "{} of the second one may end a run that the first one does not end",
                    second.title(at)
                )),
                (None, None) => None,
            };
            Congruence::Open { results: open, stores, unlike }
        }))
    }

    /// Whether values of the first graph are of a class.
    fn is_of_first(&self, class: usize) -> bool {
        class < self.count_of_first
    }

    fn new_class(&mut self) -> usize {
        self.count += 1;
        self.count - 1
    }

    /// The key of a value, if it has one.
    fn key(&mut self, side: usize, graph: &Graph<'_>, at: usize) -> Option<Key> {
        let node = graph.nodes.get(at)?;
        Some(match &node.value {
            Value::Param(k) => Key::Param(*k),
            Value::Constant(t) => Key::Constant(t.dtype(), long(t.shape()), t.bytes().to_vec()),
            Value::Call { func, args, scalars, item, .. } => {
                let number = self.function(side, graph, func)?;
                let args = args.iter().map(|a| self.of[side].get(*a).copied());
                let args = args.collect::<Option<Vec<usize>>>()?;
                let scalars = scalars.iter().map(ToString::to_string).collect();
                Key::Call(number, args, scalars, *item, node.ty.clone())
            }
            Value::Operator { op, args } => {
                let args = args.iter().map(|a| self.of[side].get(*a).copied());
                Key::Operator(op.clone(), args.collect::<Option<Vec<usize>>>()?)
            }
            Value::Cast(_) | Value::Opaque => return None,
        })
    }

    /// The number of a function.
    fn function(&mut self, side: usize, graph: &Graph<'_>, name: &Arc<str>) -> Option<usize> {
        if let Some(number) = self.names[side].get(name) {
            return Some(*number);
        }
        let func = graph.callee(name)?;
        let signature: Vec<String> =
            func.buffers().map(|b| format!("{} {}", b.dtype(), b.rank())).collect();
        let signature = format!("{} of {}", signature.join(", "), func.params.len());
        let number = self
            .functions
            .iter()
            .position(|(s, f)| {
                *s == signature && equal::tensor_funcs(f, func, &values_alone()).is_ok()
            })
            .unwrap_or_else(|| {
                self.functions.push((signature.clone(), func.clone()));
                self.functions.len() - 1
            });
        self.names[side].insert(name.clone(), number);
        Some(number)
    }

    /// Classes for the first graph.
    fn first(&mut self, graph: &Graph<'_>) {
        for at in 0..graph.nodes.len() {
            let key = self.key(0, graph, at);
            let class = match key {
                // More is said of it, but it is the same value.
                None if let Value::Cast(of) = graph.nodes[at].value => self.of[0][of],
                Some(key) => match self.classes.get(&key) {
                    Some(class) => *class,
                    None => {
                        let class = self.new_class();
                        self.classes.insert(key, class);
                        class
                    }
                },
                None => self.new_class(),
            };
            self.of[0].push(class);
            self.learn(0, graph, graph, at);
        }
    }

    /// Classes for the second graph: those of the first one, as far as values are equal; whether they are known to
    /// differ, see [`Refute`].
    fn second(
        &mut self,
        first: &Graph<'_>,
        graph: &mut Graph<'_>,
        differ: &mut dyn FnMut() -> bool,
    ) -> Result<Ended> {
        let mut is_asked = false;
        self.count_of_first = self.count;
        let mut one: Vec<usize> = vec![0; self.count];
        self.of[0].iter().enumerate().rev().for_each(|(at, class)| one[*class] = at);
        let first = &First { graph: first, one };
        for at in 0..graph.nodes.len() {
            if graph.nodes[at].mentions(&|v| self.learnt.contains_key(v)) {
                return Ok(Ended::Learnt);
            }
            let key = self.key(1, graph, at);
            let known = match &graph.nodes[at].value {
                Value::Cast(of) => Some(self.of[1][*of]).filter(|class| self.is_of_first(*class)),
                _ => key.as_ref().and_then(|k| self.classes.get(k).copied()),
            };
            let known = self.early.get(&at).copied().or(known);
            let known = known
                .or_else(|| self.by_rounding(first.graph, graph, at))
                .or_else(|| self.by_groups(first, graph, at));
            let is_unlike = known.is_none() && graph.is_call(at);
            if is_unlike && !std::mem::replace(&mut is_asked, true) && differ() {
                return Ok(Ended::Refuted);
            }
            let known = known.or_else(|| self.by_definitions(first, graph, at));
            let class = match known {
                Some(class) => class,
                None => {
                    self.by_forms(first, graph, at);
                    self.new_class()
                }
            };
            if let Some(key) = key {
                self.classes.entry(key).or_insert(class);
            }
            self.of[1].push(class);
            if !self.fails_no_more(first.graph, graph, at) {
                self.may_fail.get_or_insert(at);
            }
            self.learn(1, first.graph, graph, at);
        }
        Ok(if self.learnt.is_empty() { Ended::Whole } else { Ended::Learnt })
    }

    /// The class of a value that the first graph has on the way to what the second one reads.
    fn by_definitions(
        &mut self,
        first: &First<'_, '_>,
        graph: &mut Graph<'_>,
        at: usize,
    ) -> Option<usize> {
        if !graph.is_call(at) {
            return None;
        }
        let classes = self.of[1].clone();
        let known = |n: usize| classes.get(n).and_then(|c| first.one.get(*c)).copied();
        let mut calls = 0;
        for depth in 1..=DEPTH {
            let copied = graph.on_definitions(at, first.graph, &known, depth)?;
            if copied.calls == calls {
                return None;
            }
            calls = copied.calls;
            let same = copied.same.into_iter().map(|(new, n)| (new, self.of[0][n]));
            self.early.extend(same);
            let found = self.by_groups(first, graph, copied.at);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Has a value that in another form is one of the first graph be that one, in its own form.
    fn by_forms(&mut self, first: &First<'_, '_>, graph: &mut Graph<'_>, at: usize) {
        if !graph.is_call(at) {
            return;
        }
        for form in self.forms.clone() {
            let ty = graph.type_in(at, &form).map(|ty| text(&ty));
            if ty.is_none_or(|ty| first.graph.nodes.iter().all(|n| n.ty != ty)) {
                continue;
            }
            let Some(n) = graph.add_form(at, &form) else { continue };
            if let Some(class) = self.by_groups(first, graph, n)
                && graph.has_form(at, &form, n).is_some()
            {
                self.early.insert(n, class);
                return;
            }
        }
    }

    /// Whether the first graph fails wherever a value of the second one does; for calls that equal none of the first
    /// graph nothing is asked.
    fn fails_no_more(&self, first: &Graph<'_>, graph: &Graph<'_>, at: usize) -> bool {
        let (class, node) = (self.of[1][at], &graph.nodes[at]);
        let class = match &node.value {
            Value::Call { func, .. } if self.is_of_first(class) => {
                if !graph.callee(func).is_some_and(|f| f.body.effects().asserts) {
                    return true;
                }
                class
            }
            // Lists may have no such element.
            Value::Operator { .. } => class,
            Value::Cast(of) => self.of[1][*of],
            _ => return true,
        };
        let same = first.nodes.iter().zip(&self.of[0]).filter(|(_, c)| **c == class);
        // What the second graph itself knows of the value before.
        let before = match &node.value {
            Value::Cast(of) if self.says_no_more(node, &graph.nodes[*of]) => return true,
            Value::Call { .. } => None,
            _ => Some(node),
        };
        same.into_iter().any(|(known, _)| {
            let runs = known
                .bodies
                .iter()
                .all(|x| node.bodies.iter().any(|y| x.which == y.which && self.are_same(x, y)));
            runs && before.is_none_or(|node| self.says_no_more(node, known))
        })
    }

    fn are_same(&self, x: &EnteredBody, y: &EnteredBody) -> bool {
        let (x, y) = (x.operands.iter(), y.operands.iter());
        x.map(|n| self.of[0][*n]).eq(y.map(|n| self.of[1][*n]))
    }

    /// Whether the type of a value of the second graph, where sizes may be found, says no more than one that is known.
    fn says_no_more(&self, node: &Node, known: &Node) -> bool {
        let is_kind = match (&known.declared, &node.declared) {
            (Some(GraphType::Tensor(x)), Some(GraphType::Tensor(y))) => x.dtype == y.dtype,
            (Some(GraphType::Shape(_)), Some(GraphType::Shape(_))) => true,
            (_, Some(GraphType::Opaque(_))) => return true,
            _ => false,
        };
        let (x, y) = (known.sizes(), node.sizes());
        let mut met = HashSet::default();
        is_kind
            && x.len() == y.len()
            && x.iter().zip(y).all(|(x, y)| match y.as_var() {
                Some(v) if self.is_new(v) => met.insert(v.clone()),
                _ => x.to_string() == y.to_string(),
            })
    }

    /// Whether a size is one that a graph finds, and no value before says it.
    fn is_new(&self, v: &Var) -> bool {
        (self.is_found)(v) && !self.passed.contains(v)
    }

    /// Takes in what sizes are that a graph finds in a value: those of the first value of its class.
    fn learn(&mut self, side: usize, first: &Graph<'_>, graph: &Graph<'_>, at: usize) {
        let (class, sizes) = (self.of[side][at], graph.nodes[at].sizes());
        let all = sizes.iter().filter_map(Expr::as_var);
        let new: Vec<Var> = all.filter(|v| self.is_new(v)).cloned().collect();
        if new.is_empty() {
            return;
        }
        let same = first.nodes.iter().zip(&self.of[0]).filter(|(_, c)| **c == class);
        let same = same.map(|(node, _)| node.sizes()).filter(|s| s.len() == sizes.len());
        let same: Vec<&[Expr]> = same.collect();
        for (k, size) in sizes.iter().enumerate() {
            let Some(v) = size.as_var().filter(|v| new.contains(v)) else { continue };
            // A size of one name is rather taken than one that is computed.
            let is_plain = |e: &&Expr| e.as_var().is_some() || e.as_int().is_some();
            let mut known = same.iter().map(|sizes| &sizes[k]);
            let known = known.clone().find(is_plain).or_else(|| known.next());
            if let Some(known) = known.filter(|known| known.as_var() != Some(v)) {
                self.learnt.entry(v.clone()).or_insert_with(|| known.clone());
            }
        }
        self.passed.extend(new);
    }

    /// The first value that equals none of the first graph, among those that lead to such a result through such.
    fn unlike(&self, second: &Graph<'_>) -> Option<usize> {
        let is_known = |at: &usize| self.of[1].get(*at).is_some_and(|c| self.is_of_first(*c));
        let mut todo = second.results.clone();
        let (mut passed, mut first) = (HashSet::default(), None);
        while let Some(at) = todo.pop() {
            // What is one in another form is no such value.
            let is_form =
                matches!(second.single(at), Some((_, [of])) if self.early.contains_key(of));
            let is_unlike = !is_form && !is_known(&at);
            let (args, is_made) = match &second.nodes[at].value {
                Value::Call { args, .. } => (&args[..], second.is_call(at)),
                Value::Operator { args, .. } => (&args[..], true),
                Value::Cast(of) => (std::slice::from_ref(of), true),
                Value::Param(_) | Value::Constant(_) | Value::Opaque => (&[][..], false),
            };
            if is_unlike && passed.insert(at) {
                todo.extend(args);
                first = first.filter(|first| !is_made || *first < at).or(is_made.then_some(at));
            }
        }
        first.or_else(|| second.results.iter().copied().find(|at| !is_known(at)))
    }

    /// The class of a constant that is one of the first graph but for rounding.
    fn by_rounding(&mut self, first: &Graph<'_>, graph: &Graph<'_>, at: usize) -> Option<usize> {
        let Value::Constant(t) = &graph.nodes[at].value else { return None };
        if !self.options.reals {
            return None;
        }
        let all = first.nodes.iter().zip(&self.of[0]);
        let (class, rounding) = all
            .filter_map(|(node, class)| match &node.value {
                Value::Constant(other) if long(t.shape()) == long(other.shape()) => {
                    Some((*class, rounding_of(&t.reshape(other.shape()).ok()?, other)?))
                }
                _ => None,
            })
            .min_by(|a, b| a.1.total_cmp(&b.1))?;
        self.count_rounding(rounding);
        Some(class)
    }

    fn count_rounding(&mut self, rounding: f64) {
        self.rounding = Some(self.rounding.map_or(rounding, |most| most.max(rounding)));
    }

    /// The class of a value whose group is equal to one of the first graph. With floats as real numbers the elements of
    /// constants count, whatever they are called.
    fn by_groups(&mut self, first: &First<'_, '_>, graph: &Graph<'_>, at: usize) -> Option<usize> {
        if !matches!(graph.nodes[at].value, Value::Call { .. }) {
            return None;
        }
        let ways: &[bool] = if self.options.reals { &[false, true] } else { &[false] };
        ways.iter().find_map(|by_elements| self.by_groups_from(first, graph, at, *by_elements))
    }

    /// The same for groups that begin at constants, too, if these are compared by elements, or else by their classes.
    fn by_groups_from(
        &mut self,
        first: &First<'_, '_>,
        graph: &Graph<'_>,
        at: usize,
        by_elements: bool,
    ) -> Option<usize> {
        let node = &graph.nodes[at];
        let mut classes = self.of[1].clone();
        classes.resize(graph.nodes.len(), usize::MAX);
        self.early.iter().for_each(|(n, class)| classes[*n] = *class);
        let is_constant = |graph: &Graph<'_>, n: usize| {
            by_elements && matches!(graph.nodes[n].value, Value::Constant(_))
        };
        let group = Group::collect(graph, at, &|n| {
            n != at
                && (is_constant(graph, n) || classes.get(n).is_some_and(|c| self.is_of_first(*c)))
        })?;
        // The values at the edge, by their classes, in an order for both sides, then constants.
        let (known, others): (Vec<usize>, Vec<usize>) =
            group.edge.iter().partition(|n| is_constant(graph, **n));
        let edge: BTreeSet<usize> = others.iter().map(|n| classes[*n]).collect();
        let order: Vec<usize> = edge.iter().copied().collect();
        let place = |of: &[usize], known: &[usize], n: usize| {
            let constant = known.iter().position(|k| *k == n).map(|k| order.len() + k);
            constant.or_else(|| order.iter().position(|c| of.get(n) == Some(c)))
        };
        let function = group.function(graph, &|n| place(&classes, &known, n))?;
        let constants = tensors(graph, &known);
        // What only moves elements away and back is what it began with.
        if let ([class], Some(start)) = (&order[..], others.first())
            && graph.nodes[*start].ty == node.ty
            && let Some(copy) = copy_of(&function)
            && self.is_same((&copy, &[]), (&function, &constants))
        {
            self.groups += 1;
            return Some(*class);
        }
        let of_a = self.of[0].clone();
        let mut tried: Vec<(usize, usize, TensorFunc, Vec<Tensor>)> = Vec::new();
        let mut seen = HashSet::default();
        for (n, other) in first.graph.nodes.iter().enumerate() {
            let is_new = matches!(other.value, Value::Call { .. }) && seen.insert(of_a[n]);
            if other.ty != node.ty || !is_new || first.one[of_a[n]] != n || edge.contains(&of_a[n])
            {
                continue;
            }
            let Some(group) = Group::collect(first.graph, n, &|m| {
                m != n && (is_constant(first.graph, m) || edge.contains(&of_a[m]))
            }) else {
                continue;
            };
            let (constants, others): (Vec<usize>, Vec<usize>) =
                group.edge.iter().partition(|n| is_constant(first.graph, **n));
            let used: BTreeSet<usize> = others.iter().map(|m| of_a[*m]).collect();
            // By elements nothing else is known of groups without constants.
            if used != edge || by_elements && known.is_empty() && constants.is_empty() {
                continue;
            }
            if let Some(function) = group.function(first.graph, &|m| place(&of_a, &constants, m)) {
                tried.push((group.calls.len(), n, function, tensors(first.graph, &constants)));
            }
        }
        // A value that equals one of the second graph seldom equals another one.
        let taken: HashSet<usize> = self.of[1].iter().copied().collect();
        tried.sort_by_key(|(calls, n, ..)| {
            (taken.contains(&of_a[*n]), calls.abs_diff(group.calls.len()), *n)
        });
        for (_, n, other, others) in tried.into_iter().take(TRIED) {
            let is_same = self.is_same((&other, &others), (&function, &constants));
            if is_same {
                self.groups += 1;
                return Some(of_a[n]);
            }
        }
        None
    }

    /// Whether two functions are proved equal, the last inputs of which are constants; asked once for each pair.
    fn is_same(&mut self, a: (&TensorFunc, &[Tensor]), b: (&TensorFunc, &[Tensor])) -> bool {
        let functions = over_same_sizes(a.0, b.0);
        let constants = [a.1.to_vec(), b.1.to_vec()];
        let loose = values_alone();
        let are_same = |x: &[TensorFunc; 2], y: &[TensorFunc; 2]| {
            x.iter().zip(y).all(|(x, y)| equal::tensor_funcs(x, y, &loose).is_ok())
        };
        let [x, y] = &functions;
        if are_alike(&constants[0], &constants[1]) && equal::tensor_funcs(x, y, &loose).is_ok() {
            return true;
        }
        let mut known = self.compared.iter();
        let known = known.find(|c| {
            c.constants.iter().zip(&constants).all(|(x, y)| are_alike(x, y))
                && are_same(&c.functions, &functions)
        });
        let same = match known {
            Some(known) => known.same,
            None => {
                let same = self.compare_groups(&functions, &constants);
                self.compared.push(Compared { functions, constants, same });
                same
            }
        };
        if let Some(Same::InReals(rounding)) = same {
            self.count_rounding(rounding);
        }
        same.is_some()
    }

    fn compare_groups(&self, [a, b]: &[TensorFunc; 2], [x, y]: &[Vec<Tensor>; 2]) -> Option<Same> {
        let is_plain = x.is_empty() && y.is_empty();
        if is_plain && (equivalent(a, b) || by_flow(a, b)) {
            return Some(Same::Exactly);
        }
        // What takes longest comes last.
        if self.options.reals
            && let Some(rounding) = equal_with_constants((a, x), (b, y))
        {
            return Some(Same::InReals(rounding));
        }
        (is_plain && self.by_elements(a, b)).then_some(Same::Exactly)
    }

    /// Whether small functions are equal element by element.
    fn by_elements(&self, a: &TensorFunc, b: &TensorFunc) -> bool {
        let options = VerifyOptions {
            steps: STEPS.min(self.options.steps),
            terms: TERMS.min(self.options.terms),
            samples: false,
            ..self.options.clone()
        };
        let (a, b) = (module_of(a), module_of(b));
        let verdict = tilewright_verify::functions(&a, "group", &b, "group", &options);
        // A proof that uses assumptions of one side does not count here.
        matches!(verdict, Ok(Verdict::Equal(p)) if p.relied.iter().all(Vec::is_empty))
    }
}

/// What decides which values a function computes, and where it fails.
fn values_alone() -> Equality {
    Equality { messages: false, ..Equality::loose() }
}

/// The function that copies what a function takes; `None` where its shape is not known.
fn copy_of(f: &TensorFunc) -> Option<TensorFunc> {
    let input = f.buffers().next()?;
    copy_func(input.dtype(), &dim::of_shape(&input.shape)?).ok()
}

/// Whether tensors are the same, bit by bit.
fn are_alike(x: &[Tensor], y: &[Tensor]) -> bool {
    let same = |(x, y): (&Tensor, &Tensor)| {
        x.dtype() == y.dtype() && x.shape() == y.shape() && x.bytes() == y.bytes()
    };
    x.len() == y.len() && x.iter().zip(y).all(same)
}

/// The constants among values.
fn tensors(graph: &Graph<'_>, of: &[usize]) -> Vec<Tensor> {
    let all = of.iter().map(|n| match &graph.nodes[*n].value {
        Value::Constant(t) => Some(t.clone()),
        _ => None,
    });
    all.flatten().collect()
}

fn module_of(f: &TensorFunc) -> Module {
    let mut module = Module::new();
    module.insert("group", f.clone());
    module
}
