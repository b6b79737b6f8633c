//! `lift_layout`: marked conversion stages at the edges of a function become functions of their
//! own in the graph.
//!
//! ```text
//! def matmul(A, B, C):             pre(A, P)                 lv0 = pre(x)
//!     P = pack(A)       # marked   matmul_physical(P, B, Q)  lv1 = matmul_physical(lv0, w)
//!     Q = P @ B                    post(Q, C)                lv2 = post(lv1)
//!     C = unpack(Q)     # marked
//! ```
//!
//! A stage is marked by an annotation of its block ([`PRE`], [`POST`]; `meta_schedule.layout_rewrite_preproc` as TVM
//! has it). It leaves if it only moves data: a `pre` stage from an argument into a buffer that is
//! nothing but its result, a `post` stage from such a buffer into a result of the function.
//!
//! What the stage wrote into the padding is then no longer seen in the function. [`Leave`] says
//! what it is told instead:
//!
//! | | the stage writes | the function assumes | so the function |
//! |---|---|---|---|
//! | `Value` | the pad value | `data or P[c] == value` | may rely on the value |
//! | `Undef` | any value | `data or P[c] == T.undef()` | may read the padding |
//! | `Nothing` | nothing | nothing | may not look at the padding |
//!
//! The last two change what the function reads, and are for functions of whose results the padding
//! is no part: that is proven, or the stage leaves as `Value`.
//!
//! A crop may be marked with what it leaves behind, `{"postproc": ["crop", 0]}`: the function that it
//! becomes assumes that, as the text of a program may assume anything.
//!
//! Equal stages are one function, and one call where their arguments are the same.

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_analysis::Stage;
use tilewright_interp::written_params;
use tilewright_ir::visit::{Subst, accessed, fold_block_children};
use tilewright_ir::{
    Attr, BinOp, Binding, Block, Buffer, Dim, Error, Expr, Fold, GraphExpr, GraphFunc, GraphType,
    GraphVar, Intrin, Module, Param, Remarks, Result, Span, Stmt, StmtKind, TensorFunc, TensorType,
    Var,
};
use tilewright_polyhedral::Engine;
use tilewright_transform::pass::{OneOf, Pass, Run};

use super::conversion::{Conversion, Pad};
use super::taint::Taint;
use tilewright_graph::call_sizes::{outside, unify_sizes};
use tilewright_graph::functions::{Functions, rewritten};
use tilewright_graph::normal::{each_binding, needed_ids};
use tilewright_graph::stages::at;

/// What a function keeps of the padding of a lifted stage.
const PADDING: OneOf<Leave> = OneOf {
    name: "padding",
    summary: "what functions are told of it: what it holds, that it may be read, or nothing",
    of: &[("value", Leave::Value), ("undef", Leave::Undef), ("none", Leave::Nothing)],
    default: Leave::Value,
};

/// `lift_layout` by name.
pub const PASS: Pass = Pass {
    name: "lift_layout",
    summary: "move marked conversions at the edges of functions into the graph",
    options: &[&PADDING],
    run: Run::Module(|module, given, why| lift_layout(module, given.get(&PADDING)?, why)),
};

pub use crate::marks::{POST, PRE};

/// What TVM annotates stages with that convert an argument.
pub(crate) const LAYOUT_REWRITE: &str = "meta_schedule.layout_rewrite_preproc";

/// What a function is told of the padding of an argument when the stage that wrote it leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leave {
    /// Nothing: the padding may not be read.
    Nothing,
    /// That the padding may be read.
    Undef,
    /// What the padding holds.
    #[default]
    Value,
}

/// Lifts the marked stages of every function that a graph function calls. Graph functions in which
/// something changes come back in normal form.
///
/// # Errors
/// Those of [`normalize`](tilewright_graph::normal::normalize) and [`unify_sizes`].
pub fn lift_layout(module: &Module, leave: Leave, why: &mut Remarks) -> Result<Module> {
    let mut splits = Splits::default();
    rewritten(&unify_sizes(module)?, |functions, normal| {
        let mut lift = Lift {
            functions,
            splits: &mut splits,
            leave,
            results: HashMap::default(),
            made: HashMap::default(),
            why,
        };
        let whole = used_whole(normal);
        each_binding(normal, |b, out| lift.binding(b, &whole, out))
    })
}

/// A function taken apart.
#[derive(Clone)]
struct Split {
    compute: Arc<str>,
    /// What the parameters of `compute` are.
    params: Vec<Slot>,
    /// How each result of the original comes about.
    results: Vec<ConvertedResult>,
    /// The sizes that it takes as numbers behind the scalars of the original.
    sizes: Vec<Var>,
}

/// What functions were taken apart into, by name and the numbers of arguments and results.
type Splits = HashMap<(Arc<str>, usize, usize), Option<Split>>;

/// A result of the original: one of those of `compute`, and the stage that converts it.
#[derive(Clone)]
struct ConvertedResult {
    at: usize,
    post: Option<Arc<str>>,
}

/// A tensor parameter of a function without its stages.
#[derive(Clone)]
enum Slot {
    /// A parameter of the original.
    Own(usize),
    /// The result of a stage, by its function and the parameter that it converts.
    Pre(Arc<str>, usize, TensorType),
    /// What a stage converts into a result of the original.
    Post(TensorType),
}

/// A stage that leaves.
struct Found {
    /// Positions in the body.
    at: Vec<usize>,
    /// Position of the parameter.
    param: usize,
    /// The buffer inside of the function.
    buffer: Buffer,
    conversion: Conversion,
    func: TensorFunc,
    name: String,
}

struct Lift<'a, 'm> {
    functions: &'a mut Functions<'m>,
    splits: &'a mut Splits,
    leave: Leave,
    /// For variables of several results: the variable in its place, and the original's functions
    /// for results.
    results: HashMap<u64, (GraphVar, Split)>,
    /// Conversions of values that are there already, by function and value.
    made: HashMap<(Arc<str>, u64), GraphVar>,
    why: &'a mut Remarks,
}

impl Lift<'_, '_> {
    fn binding(&mut self, b: &Binding, whole: &HashSet<u64>, out: &mut Vec<Binding>) -> Result<()> {
        if let GraphExpr::Item(of, k) = &b.value
            && let GraphExpr::Var(v) = &**of
            && let Some((physical, split)) = self.results.get(&v.id())
            && let Some(made) = split.results.get(*k)
        {
            out.extend(result(self.functions, physical, made, b)?);
            return Ok(());
        }
        let GraphExpr::CallTir { func, args, outs, scalars } = &b.value else {
            out.push(b.clone());
            return Ok(());
        };
        let apart = outs.len() == 1 || !whole.contains(&b.var.id());
        let split = if apart { self.split(func, args.len(), outs.len())? } else { None };
        let Some(split) = split else {
            out.push(b.clone());
            return Ok(());
        };
        let (mut new_args, mut new_outs) = (Vec::new(), Vec::new());
        for slot in &split.params {
            match slot {
                Slot::Own(k) => match k.checked_sub(args.len()) {
                    None => new_args.push(args[*k].clone()),
                    Some(k) => new_outs.push(outs[k].clone()),
                },
                Slot::Pre(func, k, ty) => {
                    new_args.push(self.converted(func, &args[*k], ty, b, out)?);
                }
                Slot::Post(ty) => new_outs.push(ty.clone()),
            }
        }
        let (func, mut scalars) = (split.compute.clone(), scalars.clone());
        scalars.extend(split.sizes.iter().map(|v| Dim::open(v).outside().argument()));
        let value = GraphExpr::CallTir { func, args: new_args, outs: new_outs, scalars };
        let physical = match &split.results[..] {
            [ConvertedResult { post: None, .. }] => b.var.clone(),
            _ => GraphVar::new(format!("{}_physical", b.var.name()), value.ty()),
        };
        out.push(Binding { var: physical.clone(), value, span: b.span });
        match &split.results[..] {
            [ConvertedResult { post: None, .. }] => {}
            [made] => out.extend(result(self.functions, &physical, made, b)?),
            _ => {
                self.results.insert(b.var.id(), (physical, split));
            }
        }
        Ok(())
    }

    /// The variable of a converted argument.
    fn converted(
        &mut self,
        func: &Arc<str>,
        arg: &GraphExpr,
        ty: &TensorType,
        b: &Binding,
        out: &mut Vec<Binding>,
    ) -> Result<GraphExpr> {
        let (name, key) = match arg {
            GraphExpr::Var(v) => (v.name().clone(), Some((func.clone(), v.id()))),
            _ => (b.var.name().clone(), None),
        };
        if let Some(var) = key.as_ref().and_then(|k| self.made.get(k)) {
            return Ok(var.expr());
        }
        let var = GraphVar::tensor(format!("{name}_physical"), ty.clone());
        out.push(self.functions.called(func.clone(), vec![arg.clone()], &var, b.span)?);
        key.map(|k| self.made.insert(k, var.clone()));
        Ok(var.expr())
    }

    /// The parts of a function, for calls with so many arguments; `None` where no stage leaves.
    fn split(&mut self, name: &Arc<str>, inputs: usize, outs: usize) -> Result<Option<Split>> {
        let key = (name.clone(), inputs, outs);
        if let Some(known) = self.splits.get(&key) {
            return Ok(known.clone());
        }
        let split = match self.functions.get(name).cloned() {
            Some(f) if inputs_of(&f) == Some(inputs) && f.buffers().count() == inputs + outs => {
                self.take_apart(name, &f, inputs)?
            }
            _ => None,
        };
        self.splits.insert(key, split.clone());
        Ok(split)
    }

    fn take_apart(
        &mut self,
        name: &Arc<str>,
        func: &TensorFunc,
        inputs: usize,
    ) -> Result<Option<Split>> {
        let (allocs, body) = func.root_parts();
        let list: Vec<Stmt> = match body.kind() {
            StmtKind::Seq(list) => list.clone(),
            _ => vec![body.clone()],
        };
        let (mut pres, mut posts): (Vec<Found>, Vec<Found>) = (Vec::new(), Vec::new());
        for (at, s) in list.iter().enumerate() {
            let Some(mark) = marked(s) else { continue };
            if pres.iter().chain(&posts).any(|f| f.at.contains(&at)) {
                continue;
            }
            match stage(func, allocs, &list, at, &mark)? {
                Ok(found) if mark.is_pre => pres.push(found),
                Ok(found) => posts.push(found),
                Err(missing) => self.why.push(
                    Error::refused(format!("the stage `{}` stays in `{name}`", mark.block))
                        .at(s.span())
                        .note(missing),
                ),
            }
        }
        // What goes straight through stays.
        posts.retain(|p| pres.iter().all(|q| q.buffer != p.buffer));
        if pres.is_empty() && posts.is_empty() {
            return Ok(None);
        }
        let after_pre = Stmt::seq(without_stmts(&pres, &list));
        let mut assumptions = Vec::new();
        for pre in &mut pres {
            let span = pre.at.first().and_then(|k| list[*k].span());
            self.weaken(name, func, &after_pre, pre, span)?;
            assumptions.extend(assumption(&pre.conversion, &pre.buffer));
        }
        let rest = without_stmts(&posts, &list);
        let body = Stmt::seq(
            assumptions.into_iter().chain(
                rest.into_iter()
                    .filter(|s| !pres.iter().flat_map(|p| &p.at).any(|k| list[*k].ptr_eq(s))),
            ),
        );
        let (read, written) = accessed(&body);
        let (mut params, mut slots, mut results) = (Vec::new(), Vec::new(), Vec::new());
        let mut given: Vec<Buffer> = Vec::new();
        for (k, buffer) in func.buffers().enumerate() {
            for pre in pres.iter().filter(|f| f.param == k) {
                let name = self.functions.add(pre.func.clone(), &pre.name);
                params.push(Param::tensor(&pre.buffer));
                slots.push(Slot::Pre(name, k, type_of(&pre.conversion.to, &pre.buffer)));
            }
            let post = posts.iter().find(|f| f.param == k);
            let result = post.map_or(buffer, |f| &f.buffer);
            let known = given.iter().position(|b| b == result);
            if k >= inputs {
                let post = post.map(|f| self.functions.add(f.func.clone(), &f.name));
                results.push(ConvertedResult { at: known.unwrap_or(given.len()), post });
                if known.is_none() {
                    given.push(result.clone());
                }
            }
            let used = read.contains(buffer) || written.contains(buffer);
            if let (Some(post), None) = (post, known) {
                params.push(Param::tensor(result));
                slots.push(Slot::Post(type_of(&post.conversion.from, result)));
            } else if post.is_none() && (used || pres.iter().all(|f| f.param != k)) {
                params.extend(func.params.iter().find(|p| p.buffer() == Some(buffer)).cloned());
                slots.push(Slot::Own(k));
            }
        }
        params.extend(func.params.iter().filter(|p| p.buffer().is_none()).cloned());
        let allocs = allocs
            .iter()
            .filter(|b| !pres.iter().chain(&posts).any(|f| f.buffer == **b))
            .cloned()
            .collect();
        let mut compute = TensorFunc { params, ..func.clone() }.with_root(allocs, body);
        // Names another function, and counts parameters.
        compute.attrs.remove("global_symbol");
        compute.attrs.remove("layout_free_buffers");
        let before = compute.scalars().count();
        compute.pass_sizes(func.shape_vars().into_iter().chain(compute.shape_vars()));
        let sizes = compute.scalars().skip(before).cloned().collect();
        let compute = self.functions.add(compute, &format!("{name}_physical"));
        Ok(Some(Split { compute, params: slots, results, sizes }))
    }

    /// Lets the stage leave its padding as asked, if nothing depends on what it wrote there.
    fn weaken(
        &mut self,
        name: &Arc<str>,
        func: &TensorFunc,
        rest: &Stmt,
        pre: &mut Found,
        span: Option<Span>,
    ) -> Result<()> {
        let own = match &pre.conversion.pad {
            _ if pre.conversion.is_total() => return Ok(()),
            Pad::Value(_) => Leave::Value,
            Pad::Undef => Leave::Undef,
            Pad::None => Leave::Nothing,
        };
        if self.leave >= own {
            return Ok(());
        }
        let taint = Taint::analyse(&Engine::new(), rest, &pre.buffer, &pre.conversion);
        let blocked = match self.leave {
            Leave::Nothing => taint.read(),
            _ => taint.reaches(func.buffers()),
        };
        if let Err(missing) = blocked {
            let what = format!("`{name}` keeps the pad value of `{}`", pre.buffer.name);
            self.why.push(Error::refused(what).at(span).note(missing));
            return Ok(());
        }
        let pad = if self.leave == Leave::Undef { Pad::Undef } else { Pad::None };
        pre.conversion = pre.conversion.with_pad(pad);
        pre.func = pre.conversion.to_func(&pre.name);
        Ok(())
    }
}

fn without_stmts(but: &[Found], list: &[Stmt]) -> Vec<Stmt> {
    list.iter()
        .enumerate()
        .filter(|(k, _)| !but.iter().any(|f| f.at.contains(k)))
        .map(|(_, s)| s.clone())
        .collect()
}

/// A result of the original as its binding, from the value of `compute`.
fn result(
    functions: &Functions<'_>,
    physical: &GraphVar,
    made: &ConvertedResult,
    b: &Binding,
) -> Result<Vec<Binding>> {
    let mut out = Vec::new();
    let item = match physical.ty() {
        GraphType::Tuple(types) => {
            let value = GraphExpr::Item(Box::new(physical.expr()), made.at);
            let var = match (&made.post, types.get(made.at)) {
                (Some(_), Some(ty)) => {
                    GraphVar::new(format!("{}_physical", b.var.name()), ty.clone())
                }
                _ => b.var.clone(),
            };
            out.push(Binding { var: var.clone(), value, span: b.span });
            var
        }
        _ => physical.clone(),
    };
    if let Some(post) = &made.post {
        out.push(functions.called(post.clone(), vec![item.expr()], &b.var, b.span)?);
    }
    Ok(out)
}

/// Variables of several results that are used as a whole, and not item by item.
fn used_whole(func: &GraphFunc) -> HashSet<u64> {
    let values = func.bindings().map(|b| &b.value);
    needed_ids(values.filter(|e| !matches!(e, GraphExpr::Item(..))).chain([&func.ret]))
}

/// How many parameters a function only reads, where those come first, then those that it only
/// writes, then scalars.
fn inputs_of(func: &TensorFunc) -> Option<usize> {
    let written = written_params(func);
    let kinds: Vec<u8> = func
        .params
        .iter()
        .zip(&written)
        .map(|(p, written)| match p {
            Param::Scalar(_) => 2,
            Param::Buffer { .. } => u8::from(*written),
        })
        .collect();
    kinds.is_sorted().then(|| kinds.iter().filter(|k| **k == 0).count())
}

/// A marked block.
struct Mark {
    block: Arc<str>,
    /// It converts an argument.
    is_pre: bool,
    /// The value of the annotation.
    says: Attr,
}

/// The marked block that a statement is, under its loops.
fn marked(s: &Stmt) -> Option<Mark> {
    let mut found = None;
    s.for_each(|s| {
        let StmtKind::Block { block: b, .. } = s.kind() else { return };
        for (key, is_pre) in [(PRE, true), (LAYOUT_REWRITE, true), (POST, false)] {
            match b.annotations.get(key) {
                None | Some(Attr::Bool(false)) => {}
                Some(says) => {
                    let (block, says) = (b.name.clone(), says.clone());
                    found.get_or_insert(Mark { block, is_pre, says });
                }
            }
        }
    });
    found
}

/// What a crop assumes of the cells that it leaves behind, where its mark says so.
fn left_behind(mark: &Mark, crop: &Conversion, from: &Buffer) -> Option<Stmt> {
    let Attr::List(says) = &mark.says else { return None };
    let value = match &says[..] {
        [Attr::Str(what), Attr::Int(v)] if **what == *"crop" => *v as f64,
        [Attr::Str(what), Attr::Float(v)] if **what == *"crop" => *v,
        _ => return None,
    };
    let value = Pad::Value(Expr::constant(value, crop.dtype));
    (!mark.is_pre).then(|| crop.inverse(value))?.and_then(|back| assumption(&back, from))
}

/// The stage that a marked statement is, or why it is none that could leave. Other statements that
/// write the same buffer, such as its padding, are part of it.
fn stage(
    func: &TensorFunc,
    allocs: &[Buffer],
    list: &[Stmt],
    at: usize,
    mark: &Mark,
) -> Result<Result<Found, String>> {
    let is_pre = mark.is_pre;
    let (read, written) = accessed(&list[at]);
    let ([from], [to]) = (&read[..], &written[..]) else {
        return Ok(Err("it does not read one buffer and write another".into()));
    };
    let (outer, inner) = if is_pre { (from, to) } else { (to, from) };
    let Some(param) = func.buffers().position(|b| b == outer) else {
        return Ok(Err(format!("`{}` is no parameter", outer.name)));
    };
    if !allocs.contains(inner) || &*inner.scope != "global" {
        return Ok(Err(format!("`{}` is not allocated for the whole function", inner.name)));
    }
    let touched: Vec<(Vec<Buffer>, Vec<Buffer>)> = list.iter().map(accessed).collect();
    let parts: Vec<usize> = (0..list.len()).filter(|k| touched[*k].1.contains(to)).collect();
    let (first, last) = (parts[0], parts[parts.len() - 1]);
    for (k, (reads, written)) in touched.iter().enumerate() {
        let part = parts.contains(&k);
        if part && !(reads.iter().all(|b| b == from) && written.len() == 1) {
            return Ok(Err(format!("`{}` is written by another statement too", to.name)));
        }
        if !part && reads.contains(to) && (!is_pre || k < last) {
            return Ok(Err(format!("`{}` is read by another statement", to.name)));
        }
        if written.contains(from) && (is_pre || k > first) {
            return Ok(Err(format!("`{}` is changed by another statement", from.name)));
        }
    }
    let stmt = Stmt::seq(parts.iter().map(|k| list[*k].clone()));
    let Some(conversion) = Conversion::of_stage(&stmt, from, to) else {
        return Ok(Err("it does more than move data, or that is not proven".into()));
    };
    let named = mark.block.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let starts = mark.block.starts_with(|c: char| c.is_ascii_alphabetic());
    let name = if named && starts { &*mark.block } else { "convert" };
    let func = match parts.len() {
        1 => alone(
            &Stmt::seq(left_behind(mark, &conversion, from).into_iter().chain([stmt])),
            from,
            to,
        ),
        _ => conversion.to_func(name),
    };
    let (buffer, name) = (inner.clone(), name.to_owned());
    Ok(Ok(Found { at: parts, param, buffer, conversion, func, name }))
}

/// A statement as a function of its own, without the marks.
fn alone(s: &Stmt, from: &Buffer, to: &Buffer) -> TensorFunc {
    struct Unmark;
    impl Fold for Unmark {
        fn block(&mut self, b: &Arc<Block>) -> Arc<Block> {
            let b = fold_block_children(self, b);
            let mut annotations = b.annotations.clone();
            annotations.retain(|k, _| ![PRE, POST, LAYOUT_REWRITE].contains(&&**k));
            if annotations.len() == b.annotations.len() {
                b
            } else {
                Arc::new(Block { annotations, ..(*b).clone() })
            }
        }
    }
    let mut subst = Subst::refresh();
    let params = [from, to].map(|b| {
        let new = b.derive_storage(|_| {});
        subst.buffers.insert(b.clone(), new.clone());
        Param::tensor(&new)
    });
    let mut func = TensorFunc::new(params.to_vec(), Unmark.stmt(&subst.stmt(s)));
    func.pass_sizes(func.shape_vars());
    func
}

/// What a function assumes of a padded argument.
fn assumption(c: &Conversion, buffer: &Buffer) -> Option<Stmt> {
    if c.is_total() || matches!(c.pad, Pad::None) {
        return None;
    }
    let (iters, mut to_iters) = c.iters();
    let cell = buffer.load(at(&iters));
    let holds = match &c.pad {
        Pad::Value(e) if e.as_float().is_some_and(f64::is_nan) => {
            Expr::intrin(Intrin::IsNan, vec![cell])
        }
        Pad::Value(e) => Expr::binary(BinOp::Eq, cell, to_iters.expr(e)),
        _ => Expr::binary(BinOp::Eq, cell, Expr::undef(c.dtype)),
    };
    let cond = to_iters.expr(&c.data).or(holds);
    let name = format!("{}_padding", buffer.name);
    Some(Stage::nest(name, &iters, Stmt::new(StmtKind::Assume(cond))))
}

fn type_of(shape: &[Dim], buffer: &Buffer) -> TensorType {
    outside(shape, buffer.dtype())
}
