//! The values of a graph function, each after what it is made from, and what is known of the calls that make them.

use std::rc::Rc;
use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_analysis::reals::number_made;
use tilewright_graph::call_sizes::passes_sizes;
use tilewright_graph::control::dataflow::{CAST, ENTER, LEAVE, is_value_operator};
use tilewright_graph::normal::{normalize, results, var};
use tilewright_ir::visit::{free_vars, walk_stmt};
use tilewright_ir::{
    DType, Expr, Function, GraphExpr, GraphType, Module, Stmt, StmtKind, Tensor, TensorFunc, Var,
    Visit, dim,
};

use crate::folded::Product;
use crate::lines::Lines;

/// Most elements of a value that becomes a constant because all are one number.
const MOST_OF_ONE_NUMBER: usize = 1 << 20;

/// A value of a graph.
pub(crate) struct Node {
    /// The name of the variable; empty where there is none.
    pub(crate) name: Arc<str>,
    pub(crate) value: Value,
    /// Its type, as text: sizes are named alike in both graphs.
    pub(crate) ty: String,
    /// Its type, where the graph says it.
    pub(crate) declared: Option<GraphType>,
    /// The bodies that it is in, the outermost first.
    pub(crate) bodies: Rc<Vec<EnteredBody>>,
    /// How often it is read; what a fold made has those of what it stands for.
    pub(crate) readers: usize,
}

/// A body of control flow: which one, and of which operands.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct EnteredBody {
    pub(crate) which: String,
    pub(crate) operands: Vec<usize>,
}

impl Node {
    /// The extents that its type says.
    pub(crate) fn sizes(&self) -> &[Expr] {
        match &self.declared {
            Some(GraphType::Tensor(t)) => &t.shape,
            Some(GraphType::Shape(sizes)) => sizes,
            _ => &[],
        }
    }

    /// Whether its type, or what it is made from, mentions a variable.
    pub(crate) fn mentions(&self, is_one: &dyn Fn(&Var) -> bool) -> bool {
        let scalars = match &self.value {
            Value::Call { scalars, .. } => &scalars[..],
            _ => &[],
        };
        self.sizes().iter().chain(scalars).flat_map(free_vars).any(|v| is_one(&v))
    }
}

pub(crate) enum Value {
    Param(usize),
    Constant(Tensor),
    /// One result of a call that has `outs` of them.
    Call {
        func: Arc<str>,
        args: Vec<usize>,
        /// Numbers that it is given.
        scalars: Vec<Expr>,
        /// Whether what it passes as numbers is what the function's own variables stand for.
        passes_sizes: bool,
        item: usize,
        outs: usize,
    },
    /// One value of another operator, by its name and attributes.
    Operator {
        op: String,
        args: Vec<usize>,
    },
    /// Another value, of whose type more is said.
    Cast(usize),
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
    /// Functions that the module has not.
    made: HashMap<Arc<str>, Arc<TensorFunc>>,
    /// Of calls that compute lines of a value, that value and the lines.
    lines: HashMap<usize, (usize, Lines)>,
    /// Calls that take constants out of larger ones.
    views: HashSet<usize>,
    /// The numbers that functions make of anything.
    numbers: HashMap<Arc<str>, Option<f64>>,
    /// The bodies that the next value is in.
    bodies: Rc<Vec<EnteredBody>>,
}

impl<'m> Graph<'m> {
    /// That of a name; `None` where it is no graph function. In the reals, products with constants take on what
    /// scales their results, and calls that give one number whatever they are given are constants.
    pub(crate) fn new(module: &'m Module, name: &str, reals: bool) -> Option<Graph<'m>> {
        let Some(Function::Graph(func)) = module.functions.get(name) else { return None };
        // Without a normal form there are no calls to compare.
        let Ok(normal) = normalize(module, name, func) else { return None };
        let mut graph = Graph {
            module,
            nodes: Vec::new(),
            results: Vec::new(),
            folds: false,
            made: HashMap::default(),
            lines: HashMap::default(),
            views: HashSet::default(),
            numbers: HashMap::default(),
            bodies: Rc::default(),
        };
        let mut uses = Uses::default();
        normal.bindings().for_each(|b| uses.count(&b.value));
        uses.count(&normal.ret);
        // Values by variable: one node for each item of a tuple.
        let mut known: HashMap<u64, Vec<usize>> = HashMap::default();
        for (k, p) in normal.params.iter().enumerate() {
            let at = graph.push(Value::Param(k), p.ty());
            graph.nodes[at].name = p.name().clone();
            known.insert(p.id(), vec![at]);
        }
        for b in normal.bindings() {
            if graph.enter_or_leave(&b.value, &known) {
                continue;
            }
            let mut nodes = graph.bind(&b.value, b.var.ty(), &known);
            if let [at] = nodes[..]
                && reals
                && let Some(t) = graph.number_made(at)
            {
                graph.nodes[at].value = Value::Constant(t);
                graph.folds = true;
            }
            let readers = uses.of(b.var.id());
            // Other names of a value have readers of their own.
            nodes.iter().for_each(|at| graph.nodes[*at].readers += readers);
            if let ([at], GraphExpr::CallTir { .. }) = (&nodes[..], &b.value)
                && let at = *at
                && reals
                && let Some(folded) = graph.fold(at)
            {
                // A value has one call that makes it.
                graph.nodes[at].value = Value::Opaque;
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

    /// Whether a binding says where a body begins or ends.
    fn enter_or_leave(&mut self, e: &GraphExpr, known: &HashMap<u64, Vec<usize>>) -> bool {
        let GraphExpr::Call { op, args, attrs } = e else { return false };
        let mut bodies = (*self.bodies).clone();
        match &**op {
            ENTER => {
                let operands = args.iter().flat_map(|a| self.bind(a, &a.ty(), known)).collect();
                bodies.push(EnteredBody { which: format!("{attrs:?}"), operands });
            }
            LEAVE => {
                bodies.pop();
            }
            _ => return false,
        }
        self.bodies = Rc::new(bodies);
        true
    }

    fn push(&mut self, value: Value, ty: &GraphType) -> usize {
        let at = self.add(value, text(ty), 0);
        self.nodes[at].declared = Some(ty.clone());
        at
    }

    fn add(&mut self, value: Value, ty: String, readers: usize) -> usize {
        let (name, bodies) = (Arc::default(), self.bodies.clone());
        self.nodes.push(Node { name, value, ty, declared: None, bodies, readers });
        self.nodes.len() - 1
    }

    /// Adds a value of the type of another one.
    fn add_like(&mut self, like: usize, value: Value, ty: String, readers: usize) -> usize {
        let declared = self.nodes[like].declared.clone();
        let at = self.add(value, ty, readers);
        self.nodes[at].declared = declared;
        at
    }

    /// The tensor that a call gives of anything, where all its elements are one number in the reals.
    fn number_made(&mut self, at: usize) -> Option<Tensor> {
        let f = self.single(at)?.0.clone();
        let func = self.callee(&f)?.clone();
        let number = *self.numbers.entry(f).or_insert_with(|| number_made(&func));
        let result = func.buffers().last()?;
        let shape = dim::known(&dim::of_shape(&result.shape)?)?;
        let count = shape.iter().try_fold(1usize, |n, m| n.checked_mul(*m))?;
        let is_plain = result.dtype() == DType::F32 && count <= MOST_OF_ONE_NUMBER;
        Tensor::from_slice(&shape, &vec![number.filter(|_| is_plain)? as f32; count]).ok()
    }

    /// What a call is that scales and shifts channels by constants: the product before it with other constants, or
    /// one call that does what all such calls in a row do.
    fn fold(&mut self, at: usize) -> Option<usize> {
        let (f, args) = self.single(at)?;
        let [of] = self.computed(args)[..] else { return None };
        let (x, constants) = (args[of], self.constants(args));
        // A number may be a part of anything; what else reads the value is better left what it is.
        let by_channel = constants.iter().flatten().any(|t| t.len() > 1);
        if !by_channel && self.nodes[x].readers > 1 {
            return None;
        }
        let (root, before) = match self.lines.get(&x) {
            Some((root, lines)) => (*root, Some(lines.clone())),
            None => (x, None),
        };
        let product = self.product(root);
        let channel = before.as_ref().map(|l| l.channel);
        let channel = channel.or(product.as_ref().map(|p| p.channel));
        let lines = Lines::recognise(self.callee(f)?, &constants, channel)?;
        let lines = match &before {
            Some(before) => lines.after(before)?,
            None => lines,
        };
        let readers = self.nodes[at].readers;
        let Some(product) = product else {
            return (by_channel || before.is_some()).then(|| self.line(at, root, lines))?;
        };
        let (g, parts) = self.single(root)?;
        let folded = product.fold(&self.constants(parts), &lines)?;
        let (func, ty, mut parts) = (g.clone(), self.nodes[root].ty.clone(), parts.to_vec());
        for (k, t) in folded.constants {
            let ty = self.nodes[parts[k]].ty.clone();
            parts[k] = self.add(Value::Constant(t), ty, 1);
        }
        let is_scaled = lines.each.iter().any(|(a, _)| *a != 1.0) || folded.left.is_none();
        let value = Value::Call {
            func,
            args: parts,
            scalars: vec![],
            passes_sizes: true,
            item: 0,
            outs: 1,
        };
        let root = if is_scaled { self.add_like(root, value, ty, readers) } else { root };
        match folded.left {
            Some(left) => self.line(at, root, left),
            None => Some(root),
        }
    }

    /// A call that computes lines of a value, and has the type and the readers of another one.
    fn line(&mut self, like: usize, root: usize, lines: Lines) -> Option<usize> {
        let (f, _) = self.single(like)?;
        let result = self.callee(f)?.buffers().last()?.clone();
        let shape = dim::of_shape(&result.shape).filter(|_| result.dtype() == DType::F32)?;
        let (func, constants) = lines.func(&shape).ok()?;
        let name: Arc<str> = format!("line {} of {}", lines.channel, self.nodes[like].ty).into();
        self.made.entry(name.clone()).or_insert_with(|| Arc::new(func));
        let mut args = vec![root];
        for t in constants {
            let ty = format!("float32 [{}]", t.len());
            args.push(self.add(Value::Constant(t), ty, 1));
        }
        let value =
            Value::Call { func: name, args, scalars: vec![], passes_sizes: true, item: 0, outs: 1 };
        let (ty, readers) = (self.nodes[like].ty.clone(), self.nodes[like].readers);
        let at = self.add_like(like, value, ty, readers);
        self.lines.insert(at, (root, lines));
        Some(at)
    }

    /// The product of one value with constants that a value is.
    fn product(&self, at: usize) -> Option<Product> {
        let (f, args) = self.single(at)?;
        let product = Product::recognise(self.callee(f)?)?;
        (self.computed(args).len() == 1).then_some(product)
    }

    /// The constants among arguments.
    fn constants(&self, args: &[usize]) -> Vec<Option<Tensor>> {
        let all = args.iter().map(|a| match &self.nodes[*a].value {
            Value::Constant(t) => Some(t.clone()),
            _ => None,
        });
        all.collect()
    }

    /// A call with one result: its function, and what it is given.
    pub(crate) fn single(&self, at: usize) -> Option<(&Arc<str>, &[usize])> {
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
                let passes_sizes = scalars.is_empty()
                    || self.callee(func).is_some_and(|f| passes_sizes(f, scalars));
                let each = outs.iter().enumerate().map(|(item, out)| {
                    let value = if is_whole {
                        Value::Call {
                            func: func.clone(),
                            args: nodes.clone(),
                            scalars: scalars.clone(),
                            passes_sizes,
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
            GraphExpr::Call { op, args, attrs } => {
                let mut nodes = Vec::new();
                for arg in args {
                    nodes.extend(self.bind(arg, &arg.ty(), known));
                }
                let is_whole = nodes.len() == args.len() && !matches!(ty, GraphType::Tuple(_));
                let value = match nodes[..] {
                    _ if !is_whole => Value::Opaque,
                    [of] if **op == *CAST => Value::Cast(of),
                    _ if !is_value_operator(op) => Value::Opaque,
                    _ => Value::Operator { op: format!("{op} {attrs:?}"), args: nodes },
                };
                vec![self.push(value, ty)]
            }
            _ => match ty {
                GraphType::Tuple(types) => {
                    types.iter().map(|t| self.push(Value::Opaque, t)).collect()
                }
                ty => vec![self.push(Value::Opaque, ty)],
            },
        }
    }

    /// A value in messages.
    pub(crate) fn title(&self, at: usize) -> String {
        let node = &self.nodes[at];
        match &node.value {
            Value::Call { func, .. } => format!("`{}`, of `{func}`", node.name),
            _ => format!("`{}`", node.name),
        }
    }

    /// Whether a value is the result of a call of the graph.
    pub(crate) fn is_call(&self, at: usize) -> bool {
        matches!(self.nodes[at].value, Value::Call { .. }) && !self.views.contains(&at)
    }

    /// The constants that are not one number, by their nodes.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = (usize, &Tensor)> {
        let all = self.nodes.iter().enumerate();
        all.filter_map(|(n, node)| match &node.value {
            Value::Constant(t) if literal(t).is_none() => Some((n, t)),
            _ => None,
        })
    }

    /// Has constants, by their nodes, be what functions make of others.
    pub(crate) fn take_constants(&mut self, mut views: HashMap<usize, (Tensor, TensorFunc)>) {
        let old = std::mem::take(&mut self.nodes);
        let mut places: Vec<usize> = Vec::with_capacity(old.len());
        for (n, mut node) in old.into_iter().enumerate() {
            match &mut node.value {
                Value::Call { args, .. } | Value::Operator { args, .. } => {
                    args.iter_mut().for_each(|a| *a = places[*a]);
                }
                Value::Cast(of) => *of = places[*of],
                Value::Param(_) | Value::Constant(_) | Value::Opaque => {}
            }
            if !node.bodies.is_empty() {
                let mut bodies = (*node.bodies).clone();
                bodies.iter_mut().for_each(|b| b.operands.iter_mut().for_each(|a| *a = places[*a]));
                node.bodies = Rc::new(bodies);
            }
            self.bodies = node.bodies.clone();
            if let Some((whole, func)) = views.remove(&n) {
                let ty = format!("{} {:?}", whole.dtype(), whole.shape());
                let name: Arc<str> = format!("view {n}").into();
                let args = vec![self.add(Value::Constant(whole), ty, 1)];
                self.made.insert(name.clone(), Arc::new(func));
                self.views.insert(self.nodes.len());
                node.value = Value::Call {
                    func: name,
                    args,
                    scalars: vec![],
                    passes_sizes: true,
                    item: 0,
                    outs: 1,
                };
            }
            places.push(self.nodes.len());
            self.nodes.push(node);
        }
        self.results.iter_mut().for_each(|at| *at = places[*at]);
        let lines = std::mem::take(&mut self.lines).into_iter();
        self.lines = lines.map(|(at, (root, l))| (places[at], (places[root], l))).collect();
    }

    /// Adds a call of a function that the module has not, which is no call of the graph.
    pub(crate) fn add_call(
        &mut self,
        args: &[usize],
        ty: &GraphType,
        what: &str,
        func: TensorFunc,
    ) -> usize {
        self.bodies = args.first().map(|of| self.nodes[*of].bodies.clone()).unwrap_or_default();
        let at = self.push(Value::Opaque, ty);
        self.views.insert(at);
        self.calls_made(at, args.to_vec(), format!("{what} {at}").into(), func);
        at
    }

    /// Adds a value of the type of one of another graph.
    pub(crate) fn add_copy(&mut self, of: &Node, value: Value) -> usize {
        self.bodies = Rc::default();
        let at = self.add(value, of.ty.clone(), 1);
        self.nodes[at].declared = of.declared.clone();
        at
    }

    /// Has a value be what a function that the module has not makes of another one.
    pub(crate) fn is_made(&mut self, at: usize, of: usize, func: TensorFunc) {
        self.calls_made(at, vec![of], format!("made of {of} for {at}").into(), func);
    }

    fn calls_made(&mut self, at: usize, args: Vec<usize>, name: Arc<str>, func: TensorFunc) {
        self.made.insert(name.clone(), Arc::new(func));
        self.nodes[at].value =
            Value::Call { func: name, args, scalars: vec![], passes_sizes: true, item: 0, outs: 1 };
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

    pub(crate) fn callee(&self, name: &str) -> Option<&Arc<TensorFunc>> {
        if let Some(made) = self.made.get(name) {
            return Some(made);
        }
        match self.module.functions.get(name) {
            Some(Function::Tensor(f)) => Some(f),
            _ => None,
        }
    }
}

/// A type, as text.
pub(crate) fn text(ty: &GraphType) -> String {
    match ty {
        GraphType::Tensor(t) => {
            let shape: Vec<String> = t.shape.iter().map(ToString::to_string).collect();
            format!("{} [{}]", t.dtype, shape.join(", "))
        }
        other => format!("{other:?}"),
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

/// Extents of more than one element.
pub(crate) fn long(shape: &[usize]) -> Vec<usize> {
    shape.iter().copied().filter(|n| *n != 1).collect()
}

/// The number that all elements of a tensor are, as the bits of a `float64`.
pub(crate) fn literal(t: &Tensor) -> Option<u64> {
    if let Some(floats) = t.as_slice::<f32>() {
        let (first, rest) = floats.split_first()?;
        let is_one = rest.iter().all(|v| v.to_bits() == first.to_bits());
        return is_one.then(|| f64::from(*first).to_bits());
    }
    /// Integers of this size and less are exact as `float64`.
    const EXACT: i128 = 1 << 52;
    if !(t.dtype().is_int() || t.dtype().is_bool()) || t.is_empty() {
        return None;
    }
    let first = t.get_i128(0);
    let is_one = first.abs() < EXACT && (1..t.len()).all(|k| t.get_i128(k) == first);
    is_one.then(|| (first as f64).to_bits())
}
