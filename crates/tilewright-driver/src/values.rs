//! The values of a graph function, each after what it is made from, and what is known of the calls that make them.

use std::collections::HashMap;
use std::sync::Arc;

use tilewright_graph::normal::{normalize, results, var};
use tilewright_ir::visit::walk_stmt;
use tilewright_ir::{
    Function, GraphExpr, GraphType, Module, Stmt, StmtKind, Tensor, TensorFunc, Visit,
};

use crate::folded::folded;

/// A value of a graph.
pub(crate) struct Node {
    /// The name of the variable; empty where there is none.
    pub(crate) name: Arc<str>,
    pub(crate) value: Value,
    /// Its type, as text: sizes are named alike in both graphs.
    pub(crate) ty: String,
    /// How often it is read; what a fold made has those of what it stands for.
    pub(crate) readers: usize,
}

pub(crate) enum Value {
    Param(usize),
    Constant(Tensor),
    /// One result of a call that has `outs` of them.
    Call {
        func: Arc<str>,
        args: Vec<usize>,
        scalars: Vec<String>,
        item: usize,
        outs: usize,
    },
    /// Anything else.
    Opaque,
}

/// The values of a graph function, each after what it is made from.
pub(crate) struct Graph<'m> {
    pub(crate) module: &'m Module,
    pub(crate) nodes: Vec<Node>,
    pub(crate) results: Vec<usize>,
    /// Whether products took on scales.
    pub(crate) folds: bool,
}

impl<'m> Graph<'m> {
    /// That of a name; `None` where it is no graph function. In the reals, products with constants take on what
    /// scales their results.
    pub(crate) fn new(module: &'m Module, name: &str, reals: bool) -> Option<Graph<'m>> {
        let Some(Function::Graph(func)) = module.functions.get(name) else { return None };
        // Without a normal form there are no calls to compare.
        let Ok(normal) = normalize(module, name, func) else { return None };
        let mut graph = Graph { module, nodes: Vec::new(), results: Vec::new(), folds: false };
        let mut uses = Uses::default();
        normal.bindings().for_each(|b| uses.count(&b.value));
        uses.count(&normal.ret);
        // Values by variable: one node for each item of a tuple.
        let mut known: HashMap<u64, Vec<usize>> = HashMap::new();
        for (k, p) in normal.params.iter().enumerate() {
            let at = graph.push(Value::Param(k), p.ty());
            graph.nodes[at].name = p.name().clone();
            known.insert(p.id(), vec![at]);
        }
        for b in normal.bindings() {
            let mut nodes = graph.bind(&b.value, b.var.ty(), &known);
            let readers = uses.of(b.var.id());
            // Other names of a value have readers of their own.
            nodes.iter().for_each(|at| graph.nodes[*at].readers += readers);
            if let [at] = nodes[..]
                && reals
                && let Some(folded) = graph.fold(at)
            {
                nodes = vec![folded];
                graph.folds = true;
            }
            for at in &nodes {
                graph.nodes[*at].name = b.var.name().clone();
            }
            known.insert(b.var.id(), nodes);
        }
        for result in results(&normal.ret) {
            let nodes = graph.bind(result, &result.ty(), &known);
            graph.results.extend(nodes);
        }
        Some(graph)
    }

    fn push(&mut self, value: Value, ty: &GraphType) -> usize {
        let ty = match ty {
            GraphType::Tensor(t) => {
                let shape: Vec<String> = t.shape.iter().map(ToString::to_string).collect();
                format!("{} [{}]", t.dtype, shape.join(", "))
            }
            other => format!("{other:?}"),
        };
        self.add(value, ty, 0)
    }

    fn add(&mut self, value: Value, ty: String, readers: usize) -> usize {
        self.nodes.push(Node { name: Arc::default(), value, ty, readers });
        self.nodes.len() - 1
    }

    /// The call of a product with other constants that a call is which scales its result, where nothing else
    /// reads that.
    fn fold(&mut self, at: usize) -> Option<usize> {
        let (f, args) = self.single(at)?;
        let [of] = self.computed(args)[..] else { return None };
        let (g, parts) = self.single(args[of])?;
        if self.computed(parts).len() != 1 || self.nodes[args[of]].readers > 1 {
            return None;
        }
        let constants = |args: &[usize]| {
            let tensors = args.iter().map(|a| match &self.nodes[*a].value {
                Value::Constant(t) => Some(t.clone()),
                _ => None,
            });
            tensors.collect::<Vec<Option<Tensor>>>()
        };
        let folded =
            folded((self.callee(f)?, &constants(args)), (self.callee(g)?, &constants(parts)))?;
        let (func, ty, mut parts) = (g.clone(), self.nodes[at].ty.clone(), parts.to_vec());
        for (k, t) in folded {
            let ty = self.nodes[parts[k]].ty.clone();
            parts[k] = self.add(Value::Constant(t), ty, 1);
        }
        let readers = self.nodes[at].readers;
        let value = Value::Call { func, args: parts, scalars: Vec::new(), item: 0, outs: 1 };
        Some(self.add(value, ty, readers))
    }

    /// A call with one result: its function, and what it is given.
    fn single(&self, at: usize) -> Option<(&Arc<str>, &[usize])> {
        match &self.nodes[at].value {
            Value::Call { func, args, scalars, outs: 1, .. } if scalars.is_empty() => {
                Some((func, args))
            }
            _ => None,
        }
    }

    /// The places of arguments that are no constants.
    fn computed(&self, args: &[usize]) -> Vec<usize> {
        let all = args.iter().enumerate();
        let all = all.filter(|(_, a)| !matches!(self.nodes[**a].value, Value::Constant(_)));
        all.map(|(k, _)| k).collect()
    }

    /// The nodes of an expression: one, or one for each result of a call.
    fn bind(
        &mut self,
        e: &GraphExpr,
        ty: &GraphType,
        known: &HashMap<u64, Vec<usize>>,
    ) -> Vec<usize> {
        match e {
            GraphExpr::Var(v) => known.get(&v.id()).cloned().unwrap_or_default(),
            GraphExpr::Const(t) => vec![self.push(Value::Constant(t.clone()), &e.ty())],
            GraphExpr::Item(of, k) => {
                let of = var(of).and_then(|v| known.get(&v.id()));
                match of.and_then(|nodes| nodes.get(*k)) {
                    Some(node) => vec![*node],
                    None => vec![self.push(Value::Opaque, ty)],
                }
            }
            GraphExpr::CallTir { func, args, outs, scalars } => {
                let mut nodes = Vec::new();
                for arg in args {
                    nodes.extend(self.bind(arg, &arg.ty(), known));
                }
                let is_whole = nodes.len() == args.len();
                let texts: Vec<String> = scalars.iter().map(ToString::to_string).collect();
                let each = outs.iter().enumerate().map(|(item, out)| {
                    let value = if is_whole {
                        Value::Call {
                            func: func.clone(),
                            args: nodes.clone(),
                            scalars: texts.clone(),
                            item,
                            outs: outs.len(),
                        }
                    } else {
                        Value::Opaque
                    };
                    (value, GraphType::Tensor(out.clone()))
                });
                let each: Vec<(Value, GraphType)> = each.collect();
                each.into_iter().map(|(value, ty)| self.push(value, &ty)).collect()
            }
            _ => match ty {
                GraphType::Tuple(types) => {
                    types.iter().map(|t| self.push(Value::Opaque, t)).collect()
                }
                ty => vec![self.push(Value::Opaque, ty)],
            },
        }
    }

    /// How often its calls store an element.
    pub(crate) fn stores(&self) -> u64 {
        self.nodes
            .iter()
            .filter_map(|n| match &n.value {
                Value::Call { func, item: 0, .. } => self.callee(func).map(|f| stores(f)),
                _ => None,
            })
            .fold(0, u64::saturating_add)
    }

    pub(crate) fn callee(&self, name: &str) -> Option<&'m Arc<TensorFunc>> {
        match self.module.functions.get(name) {
            Some(Function::Tensor(f)) => Some(f),
            _ => None,
        }
    }
}

/// How often variables are read.
#[derive(Default)]
struct Uses(HashMap<u64, usize>);

impl Uses {
    fn of(&self, id: u64) -> usize {
        self.0.get(&id).copied().unwrap_or(0)
    }

    /// Counts the variables of an expression in normal form; control flow, whose bodies are not looked at, is no
    /// part of a group.
    fn count(&mut self, e: &GraphExpr) {
        match e {
            GraphExpr::Var(v) => *self.0.entry(v.id()).or_default() += 1,
            GraphExpr::CallTir { args, .. } | GraphExpr::Call { args, .. } => {
                args.iter().for_each(|a| self.count(a));
            }
            GraphExpr::Tuple(items) => items.iter().for_each(|i| self.count(i)),
            GraphExpr::Item(of, _) => self.count(of),
            GraphExpr::Const(_) | GraphExpr::If(_) | GraphExpr::Loop(_) => {}
        }
    }
}

/// How often a function stores an element; loops of open extents count once.
pub(crate) fn stores(func: &TensorFunc) -> u64 {
    struct Stores {
        loops: u64,
        count: u64,
    }
    impl Visit for Stores {
        fn stmt(&mut self, s: &Stmt) {
            let outside = self.loops;
            match s.kind() {
                StmtKind::For { range, .. } => {
                    let extent = range.extent.as_int().and_then(|n| u64::try_from(n).ok());
                    self.loops = self.loops.saturating_mul(extent.unwrap_or(1));
                }
                StmtKind::Store { .. } => self.count = self.count.saturating_add(self.loops),
                _ => {}
            }
            walk_stmt(self, s);
            self.loops = outside;
        }
    }
    let mut all = Stores { loops: 1, count: 0 };
    all.stmt(&func.body);
    all.count
}
