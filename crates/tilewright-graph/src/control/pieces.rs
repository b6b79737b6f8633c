//! Calls to pieces: the nodes of a body with a piece in the place of the calls that run together.
//!
//! Every node has a level: a call of a tensor function has that of its operands, or one more than that
//! of the control flow that gives them; control flow has the highest level of its operands. The calls
//! of a level are one piece, which runs before the control flow of that level.

use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::visit::free_vars;
use tilewright_ir::{
    Attr, Attrs, Binding, BindingBlock, Error, Expr, GraphExpr, GraphFunc, GraphType, GraphVar,
    Module, Result, Var,
};

use super::PIECE;
use super::resolve::{Kind, Node, ResolvedBody};
use crate::normal::{drop_unused, needed};

/// The nodes of a function with pieces in the place of calls; the pieces join the module.
pub(super) fn cut(
    module: &mut Module,
    entry: &str,
    params: &[GraphVar],
    resolved: ResolvedBody,
) -> Result<ResolvedBody> {
    let known = params.iter().flat_map(|p| p.ty().bound_sizes()).collect();
    Cutter { module, entry, count: 0, known }.body(resolved)
}

struct Cutter<'m> {
    module: &'m mut Module,
    entry: &'m str,
    /// How many pieces there are.
    count: usize,
    /// The sizes whose values are known.
    known: HashSet<Var>,
}

/// What a node reads: values by their identity, and sizes.
#[derive(Default)]
struct Reads {
    values: HashSet<u64>,
    sizes: HashSet<Var>,
}

impl Reads {
    fn value(&mut self, e: &GraphExpr) {
        needed(e, &mut |v| {
            self.values.insert(v.id());
        });
    }

    fn exprs<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>) {
        self.sizes.extend(exprs.into_iter().flat_map(free_vars));
    }

    fn ty(&mut self, ty: &GraphType) {
        match ty {
            GraphType::Tensor(t) => self.exprs(&t.shape),
            GraphType::Shape(sizes) => self.exprs(sizes),
            GraphType::Tuple(items) => items.iter().for_each(|t| self.ty(t)),
            GraphType::Opaque(_) => {}
        }
    }

    fn binding(&mut self, b: &Binding) {
        self.value(&b.value);
        self.ty(b.var.ty());
        if let GraphExpr::CallTir { outs, scalars, .. } = &b.value {
            outs.iter().for_each(|t| self.exprs(&t.shape));
            self.exprs(scalars);
        }
    }

    fn body(&mut self, resolved: &ResolvedBody) {
        resolved.nodes.iter().for_each(|n| self.node(n));
        resolved.results.iter().for_each(|e| self.value(e));
    }

    fn node(&mut self, node: &Node) {
        match &node.kind {
            Kind::Call(bindings) => {
                bindings.iter().for_each(|b| self.binding(b));
            }
            Kind::Cast { of, to, .. } => {
                self.value(of);
                self.ty(to.ty());
            }
            Kind::Sizes { of, shape, .. } => {
                self.value(of);
                self.exprs(shape);
            }
            Kind::List { args, to, .. } => {
                args.iter().for_each(|e| self.value(e));
                self.ty(to.ty());
            }
            Kind::Piece { sizes, args, .. } => {
                self.exprs(sizes);
                args.iter().for_each(|e| self.value(e));
            }
            Kind::If { cond, then, otherwise, outs, .. } => {
                self.value(cond);
                self.body(then);
                self.body(otherwise);
                outs.iter().for_each(|v| self.ty(v.ty()));
            }
            Kind::Loop { trip, cond, carried, params, body, outs, .. } => {
                trip.iter().chain(cond).chain(carried).for_each(|e| self.value(e));
                self.body(body);
                params.iter().chain(outs).for_each(|v| self.ty(v.ty()));
            }
        }
    }
}

/// The variables that a node defines.
fn defined(kind: &Kind) -> Vec<&GraphVar> {
    match kind {
        Kind::Call(bindings) => bindings.iter().map(|b| &b.var).collect(),
        Kind::Cast { to, .. } | Kind::List { to, .. } => vec![to],
        Kind::Sizes { .. } => Vec::new(),
        Kind::Piece { outs, .. } | Kind::If { outs, .. } | Kind::Loop { outs, .. } => {
            outs.iter().collect()
        }
    }
}

/// The sizes that a node may find: variables that stand alone in its types.
fn found_sizes(kind: &Kind) -> HashSet<Var> {
    match kind {
        Kind::Call(_) => HashSet::default(),
        Kind::Sizes { shape, .. } => shape.iter().filter_map(Expr::as_var).cloned().collect(),
        kind => defined(kind).into_iter().flat_map(|v| v.ty().bound_sizes()).collect(),
    }
}

/// A level, and whether it is that of control flow.
type Level = (usize, bool);

/// The first level at which what was defined at one can be used by a call.
fn after((level, control): Level) -> usize {
    level + usize::from(control)
}

impl Cutter<'_> {
    /// A body whose calls are in pieces.
    fn body(&mut self, resolved: ResolvedBody) -> Result<ResolvedBody> {
        let outer = self.known.clone();
        let (levels, reads) = self.levels(&resolved);
        let last = levels.iter().copied().max().unwrap_or(0);
        // Who reads each value: the calls of a level, or something else.
        let mut readers: HashMap<u64, Vec<Option<usize>>> = HashMap::default();
        for ((node, reads), level) in resolved.nodes.iter().zip(&reads).zip(&levels) {
            let reader = matches!(node.kind, Kind::Call(_)).then_some(*level);
            for id in &reads.values {
                readers.entry(*id).or_default().push(reader);
            }
        }
        for e in &resolved.results {
            needed(e, &mut |v| readers.entry(v.id()).or_default().push(None));
        }
        let mut at: Vec<(Vec<Binding>, Vec<Node>)> = Vec::new();
        at.resize_with(last + 1, Default::default);
        for (node, level) in resolved.nodes.into_iter().zip(levels) {
            match node.kind {
                Kind::Call(bindings) => at[level].0.extend(bindings),
                kind => at[level].1.push(Node { kind, span: node.span }),
            }
        }
        let mut nodes = Vec::new();
        for (level, (calls, control)) in at.into_iter().enumerate() {
            nodes.extend(self.piece(calls, |v| {
                let all = readers.get(&v.id());
                all.is_some_and(|all| all.iter().any(|reader| *reader != Some(level)))
            })?);
            for node in control {
                let kind = self.control(node.kind).map_err(|e| e.at(node.span))?;
                self.known.extend(found_sizes(&kind));
                nodes.push(Node { kind, span: node.span });
            }
        }
        self.known = outer;
        Ok(ResolvedBody { nodes, results: resolved.results })
    }

    /// A node of control flow with the calls of its bodies in pieces.
    fn control(&mut self, kind: Kind) -> Result<Kind> {
        Ok(match kind {
            Kind::If { name, cond, then, otherwise, outs } => {
                let (then, otherwise) = (self.body(then)?, self.body(otherwise)?);
                Kind::If { name, cond, then, otherwise, outs }
            }
            Kind::Loop { name, trip, cond, carried, params, body, outs } => {
                let outer = self.known.clone();
                self.known.extend(params.iter().flat_map(|v| v.ty().bound_sizes()));
                let body = self.body(body)?;
                self.known = outer;
                Kind::Loop { name, trip, cond, carried, params, body, outs }
            }
            kind => kind,
        })
    }

    /// The level of each node, and what it reads.
    fn levels(&self, resolved: &ResolvedBody) -> (Vec<usize>, Vec<Reads>) {
        let mut values: HashMap<u64, Level> = HashMap::default();
        let mut sizes: HashMap<Var, Level> = HashMap::default();
        let (mut levels, mut all) = (Vec::new(), Vec::new());
        for node in &resolved.nodes {
            let mut reads = Reads::default();
            reads.node(node);
            let before = reads.values.iter().filter_map(|id| values.get(id));
            let before = before.chain(reads.sizes.iter().filter_map(|v| sizes.get(v)));
            let control = !matches!(node.kind, Kind::Call(_));
            let level = before.map(|l| if control { l.0 } else { after(*l) }).max().unwrap_or(0);
            for v in defined(&node.kind) {
                values.insert(v.id(), (level, control));
            }
            for v in found_sizes(&node.kind) {
                if !self.known.contains(&v) {
                    sizes.entry(v).or_insert((level, true));
                }
            }
            levels.push(level);
            all.push(reads);
        }
        (levels, all)
    }

    /// A graph function of calls, and the node that calls it; its results are the variables that are
    /// read elsewhere.
    fn piece(
        &mut self,
        bindings: Vec<Binding>,
        outside: impl Fn(&GraphVar) -> bool,
    ) -> Result<Option<Node>> {
        let results: Vec<GraphVar> =
            bindings.iter().map(|b| b.var.clone()).filter(outside).collect();
        if results.is_empty() {
            return Ok(None);
        }
        // What no result needs is left out, so that it is no parameter either.
        let kept = drop_unused(bindings, results.iter().map(GraphVar::id).collect());
        let bound: HashSet<u64> = kept.iter().map(|b| b.var.id()).collect();
        let (mut params, mut seen) = (Vec::new(), HashSet::default());
        let mut reads = Reads::default();
        for b in &kept {
            needed(&b.value, &mut |v| {
                if !bound.contains(&v.id()) && seen.insert(v.id()) {
                    params.push(v.clone());
                }
            });
            reads.binding(b);
        }
        params.iter().for_each(|p| reads.ty(p.ty()));
        let args = params.iter().map(GraphVar::expr).collect();
        let plain: HashSet<Var> = params
            .iter()
            .filter_map(|p| p.ty().as_tensor())
            .flat_map(|t| t.shape.iter().filter_map(Expr::as_var).cloned())
            .collect();
        // What an extent is computed from must be known before any parameter has it as an extent.
        let mut derived = Reads::default();
        for ty in params.iter().filter_map(|p| p.ty().as_tensor()) {
            derived.exprs(ty.shape.iter().filter(|e| e.as_var().is_none()));
        }
        let mut given: Vec<Var> = reads
            .sizes
            .into_iter()
            .filter(|v| !plain.contains(v) || derived.sizes.contains(v))
            .collect();
        given.sort();
        if let Some(v) = given.iter().find(|v| !self.known.contains(v)) {
            return Err(Error::input(format!("nothing says how large `{}` is", v.name())));
        }
        let sizes: Vec<Expr> = given.iter().map(Var::expr).collect();
        if !given.is_empty() {
            // First, since the types of the others use it.
            params.insert(0, GraphVar::new("sizes", GraphType::Shape(sizes.clone())));
        }
        let ret = tuple(results.iter().map(GraphVar::expr).collect());
        let bindings = BindingBlock { dataflow: true, bindings: kept, outputs: results.clone() };
        let func = GraphFunc {
            params,
            blocks: vec![bindings],
            ret,
            ret_ty: None,
            attrs: Attrs::from([(PIECE.into(), Attr::Int(1))]),
            private: true,
            span: None,
        };
        let name = self.module.fresh_name(&format!("{}_{}", self.entry, self.count));
        self.count += 1;
        self.module.insert(name.clone(), func);
        Ok(Some(Node { kind: Kind::Piece { name, sizes, args, outs: results }, span: None }))
    }
}

/// One value, or a tuple of several.
pub(super) fn tuple(values: Vec<GraphExpr>) -> GraphExpr {
    match values.as_slice() {
        [one] => one.clone(),
        _ => GraphExpr::Tuple(values),
    }
}
