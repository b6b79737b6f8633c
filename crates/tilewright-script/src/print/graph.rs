//! Graph functions.

use std::collections::HashSet;

use tilewright_ir::control::MATCH_CAST;
use tilewright_ir::text::{self, quote};
use tilewright_ir::visit::{Visit, walk_attrs, walk_expr};
use tilewright_ir::{
    Attrs, Binding, BindingBlock, DType, Expr, ExprKind, GraphExpr, GraphFunc, GraphType,
    TensorType, Var, graph,
};

mod control;

use super::{Printer, is_identifier};
use crate::consts::{self, ConstTable};
use crate::graph::keeps_text;
use crate::ranges::with_ranges;

/// `R.*` that are not operators.
const NOT_OPERATORS: &[&str] = &[
    "Callable",
    "Object",
    "Opaque",
    "Prim",
    "Shape",
    "Tensor",
    "Tuple",
    "call",
    "call_tir",
    "const",
    "const_ref",
    "loop",
    "match_cast",
    "tuple",
];

/// Variables of shapes, in the order of the text.
#[derive(Default)]
struct Symbols {
    order: Vec<Var>,
    seen: HashSet<Var>,
}

impl Visit for Symbols {
    fn expr(&mut self, e: &Expr) {
        if let ExprKind::Var(v) = e.kind()
            && self.seen.insert(v.clone())
        {
            self.order.push(v.clone());
        }
        walk_expr(self, e);
    }

    fn var_def(&mut self, v: &Var) {
        self.seen.insert(v.clone());
    }
}

impl Symbols {
    fn ty(&mut self, t: &GraphType) {
        match t {
            GraphType::Tensor(t) => t.shape.iter().for_each(|e| self.expr(e)),
            GraphType::Tuple(items) => items.iter().for_each(|t| self.ty(t)),
            GraphType::Shape(sizes) => sizes.iter().for_each(|e| self.expr(e)),
            GraphType::Opaque(_) => {}
        }
    }

    fn value(&mut self, e: &GraphExpr) {
        match e {
            GraphExpr::Var(_) | GraphExpr::Const(_) => {}
            GraphExpr::CallTir { args, outs, scalars, .. } => {
                args.iter().for_each(|a| self.value(a));
                outs.iter().flat_map(|t| &t.shape).for_each(|e| self.expr(e));
                scalars.iter().for_each(|e| self.expr(e));
            }
            GraphExpr::Call { args, attrs, .. } => {
                args.iter().for_each(|a| self.value(a));
                walk_attrs(self, attrs);
            }
            GraphExpr::Tuple(items) => items.iter().for_each(|e| self.value(e)),
            GraphExpr::Item(e, _) => self.value(e),
            GraphExpr::If(_) | GraphExpr::Loop(_) => {
                e.operands().into_iter().for_each(|e| self.value(e));
                if let GraphExpr::Loop(l) = e {
                    l.params.iter().for_each(|p| self.ty(p.ty()));
                }
                for body in e.bodies() {
                    self.bindings(body.bindings());
                    self.value(&body.ret);
                }
            }
        }
    }

    fn bindings<'b>(&mut self, bindings: impl Iterator<Item = &'b Binding>) {
        for b in bindings {
            self.value(&b.value);
            self.ty(b.var.ty());
        }
    }
}

/// Whether a function names one of the module.
fn names_function(f: &GraphFunc) -> bool {
    let mut names = false;
    f.for_each_expr(&mut |e| {
        names |= match e {
            GraphExpr::CallTir { .. } => true,
            GraphExpr::Call { op, .. } => graph::callee(op).is_some(),
            _ => false,
        }
    });
    names
}

impl Printer {
    /// A function; `key` is its name in the module, `name` the one in the text.
    pub(super) fn graph_func(
        &mut self,
        key: &str,
        name: &str,
        f: &GraphFunc,
        mut table: Option<&mut ConstTable>,
    ) {
        let mut symbols = Symbols::default();
        f.params.iter().for_each(|p| symbols.ty(p.ty()));
        f.ret_ty.iter().for_each(|t| symbols.ty(t));
        walk_attrs(&mut symbols, &f.attrs);
        symbols.bindings(f.bindings());
        symbols.value(&f.ret);
        self.names.push();
        self.names.int = Some(DType::I64);
        let names: Vec<String> = f.params.iter().map(|p| self.names.define_graph(p)).collect();
        let declared: Vec<(String, DType)> =
            symbols.order.iter().map(|v| (self.names.define(v), v.dtype())).collect();

        let mut decorator: Vec<String> = Vec::new();
        if f.private {
            decorator.push("private=True".to_owned());
        }
        if key != name {
            decorator.push(format!("name={}", quote(key)));
        }
        let renamed: Vec<String> = f
            .params
            .iter()
            .zip(&names)
            .filter(|(p, text)| **p.name() != ***text)
            .map(|(p, text)| format!("{}: {}", quote(text), quote(p.name())))
            .collect();
        if !renamed.is_empty() {
            decorator.push(format!("names={{{}}}", renamed.join(", ")));
        }
        match decorator.is_empty() {
            true => self.line("@R.function"),
            false => self.line(&format!("@R.function({})", decorator.join(", "))),
        }
        let params: Vec<String> = f
            .params
            .iter()
            .zip(&names)
            .map(|(p, name)| format!("{name}: {}", self.graph_type(p.ty(), true)))
            .collect();
        let ret = match &f.ret_ty {
            Some(t) => format!(" -> {}", self.graph_type(t, true)),
            None => String::new(),
        };
        self.line(&format!("def {name}({}){ret}:", params.join(", ")));
        self.indent += 1;
        for (name, dtype) in declared {
            self.line(&format!("{name} = T.{dtype}()"));
        }
        let sizes = symbols.order.iter().map(|v| (v, text::Names::var(&mut self.names, v)));
        let attrs = with_ranges(&f.attrs, sizes);
        if !attrs.is_empty() {
            let attrs = self.attrs(&attrs);
            self.line(&format!("R.func_attr({attrs})"));
        }
        if names_function(f) {
            self.line("cls = Module");
        }
        self.binding_blocks(&f.blocks, table.as_deref_mut());
        let ret = self.value(&f.ret, table);
        self.line(&format!("return {ret}"));
        self.indent -= 1;
        self.names.int = None;
        self.names.pop();
    }

    fn binding_blocks(&mut self, blocks: &[BindingBlock], mut table: Option<&mut ConstTable>) {
        // Only bindings that no plain bindings come before, and that there are, need no scope.
        let mut plain_before = false;
        for b in blocks {
            let scope = match (b.dataflow, plain_before) {
                (true, _) => Some("dataflow"),
                (false, true) => Some("bindings"),
                (false, false) if b.bindings.is_empty() || !b.outputs.is_empty() => {
                    Some("bindings")
                }
                (false, false) => None,
            };
            plain_before = !b.dataflow && scope.is_none();
            if let Some(scope) = scope {
                self.line(&format!("with R.{scope}():"));
                self.indent += 1;
            }
            for binding in &b.bindings {
                self.graph_binding(binding, table.as_deref_mut());
            }
            if scope.is_some() {
                let outputs: Vec<String> = b.outputs.iter().map(|v| self.names.graph(v)).collect();
                self.line(&format!("R.output({})", outputs.join(", ")));
                self.indent -= 1;
            }
        }
    }

    fn graph_binding(&mut self, b: &Binding, mut table: Option<&mut ConstTable>) {
        let value = match &b.value {
            GraphExpr::If(branches) => return self.branches(&b.var, branches, table),
            GraphExpr::Loop(l) => self.graph_loop(l, table.as_deref_mut()),
            GraphExpr::Call { op, args, .. } if **op == *MATCH_CAST && args.len() == 1 => {
                let of = self.value(&args[0], table);
                let ty = self.graph_type(b.var.ty(), false);
                let name = self.names.define_graph(&b.var);
                return self.line(&format!("{name} = R.match_cast({of}, {ty})"));
            }
            value => self.value(value, table),
        };
        let ty = self.graph_type(b.var.ty(), false);
        let follows = matches!(b.value, GraphExpr::CallTir { .. } | GraphExpr::Const(_))
            && self.graph_type(&b.value.ty(), false) == ty;
        let name = self.names.define_graph(&b.var);
        match follows {
            true => self.line(&format!("{name} = {value}")),
            false => self.line(&format!("{name}: {ty} = {value}")),
        }
    }

    /// A type; in the header, extents that name variables are strings.
    fn graph_type(&mut self, t: &GraphType, header: bool) -> String {
        match t {
            GraphType::Tensor(t) => self.tensor_type(t, header),
            GraphType::Tuple(items) => {
                let items: Vec<String> = items.iter().map(|t| self.graph_type(t, header)).collect();
                format!("R.Tuple({})", items.join(", "))
            }
            GraphType::Shape(sizes) => {
                let sizes: Vec<String> = sizes.iter().map(|e| self.extent(e, header)).collect();
                format!("R.Shape([{}])", sizes.join(", "))
            }
            GraphType::Opaque(text) if keeps_text(text) => text.to_string(),
            GraphType::Opaque(text) => format!("R.Opaque({})", quote(text)),
        }
    }

    fn extent(&mut self, e: &Expr, header: bool) -> String {
        let mut symbols = Symbols::default();
        symbols.expr(e);
        let text = self.expr(e);
        if header && !symbols.order.is_empty() { quote(&text) } else { text }
    }

    fn tensor_type(&mut self, t: &TensorType, header: bool) -> String {
        let extents: Vec<String> = t.shape.iter().map(|e| self.extent(e, header)).collect();
        let comma = if extents.len() == 1 { "," } else { "" };
        format!("R.Tensor(({}{comma}), dtype=\"{}\")", extents.join(", "), t.dtype)
    }

    fn values(&mut self, items: &[GraphExpr], mut table: Option<&mut ConstTable>) -> String {
        match items {
            [] => "R.tuple()".to_owned(),
            [one] => format!("({},)", self.value(one, table)),
            _ => {
                let items: Vec<String> =
                    items.iter().map(|e| self.value(e, table.as_deref_mut())).collect();
                format!("({})", items.join(", "))
            }
        }
    }

    fn value(&mut self, e: &GraphExpr, mut table: Option<&mut ConstTable>) -> String {
        match e {
            GraphExpr::Var(v) => self.names.graph(v),
            GraphExpr::Const(t) => consts::print(t, table),
            GraphExpr::Tuple(items) => self.values(items, table),
            GraphExpr::Item(e, i) => format!("{}[{i}]", self.value(e, table)),
            // Values of bindings only, in a module that keeps the rules.
            GraphExpr::If(_) => "R.call(\"if\")".to_owned(),
            GraphExpr::Loop(_) => "R.call(\"loop\")".to_owned(),
            GraphExpr::CallTir { func, args, outs, scalars } => {
                let func = match self.functions.get(&**func) {
                    Some(name) => format!("cls.{name}"),
                    None => quote(func),
                };
                let args = self.values(args, table);
                let types: Vec<String> = outs.iter().map(|t| self.tensor_type(t, false)).collect();
                let outs = match types.as_slice() {
                    [one] => one.clone(),
                    several => format!("[{}]", several.join(", ")),
                };
                let scalars = match scalars.is_empty() {
                    true => String::new(),
                    false => format!(", tir_vars=R.shape([{}])", self.exprs(scalars)),
                };
                format!("R.call_tir({func}, {args}, out_sinfo={outs}{scalars})")
            }
            GraphExpr::Call { op, args, attrs } => {
                let (callee, mut parts) = self.callee(op);
                // `_2` is the third argument, where the others fill the places around it.
                let place = |key: &str| key.strip_prefix('_')?.parse::<usize>().ok();
                let places = attrs.keys().filter(|k| place(k).is_some()).count() + args.len();
                let placed = |i: usize| attrs.get_key_value(format!("_{i}").as_str());
                let positional = attrs.keys().filter_map(|k| place(k)).all(|i| i < places);
                let mut args = args.iter();
                for i in 0..if positional { places } else { args.len() } {
                    let text = match placed(i).filter(|_| positional) {
                        Some((_, a)) => self.attr(a),
                        None => args
                            .next()
                            .map_or(String::new(), |a| self.value(a, table.as_deref_mut())),
                    };
                    parts.push(text);
                }
                let mut others = Attrs::new();
                for (key, a) in attrs {
                    match is_identifier(key) {
                        _ if positional && place(key).is_some() => {}
                        true => {
                            let a = self.attr(a);
                            parts.push(format!("{key}={a}"));
                        }
                        false => {
                            others.insert(key.clone(), a.clone());
                        }
                    }
                }
                if !others.is_empty() {
                    parts.push(format!("**{}", self.attrs(&others)));
                }
                format!("{callee}({})", parts.join(", "))
            }
        }
    }

    /// The callee of an operator, and what comes before its arguments.
    fn callee(&self, op: &str) -> (String, Vec<String>) {
        if let Some(name) = graph::callee(op).and_then(|f| self.functions.get(f)) {
            return (format!("cls.{name}"), Vec::new());
        }
        if let Some(name) = op.strip_prefix("R.") {
            let plain = name.split('.').all(|part| is_identifier(part) || part == "exp");
            if plain && !NOT_OPERATORS.contains(&name) {
                return (op.to_owned(), Vec::new());
            }
        }
        ("R.call".to_owned(), vec![quote(op)])
    }
}
