//! Graph functions.

use tilewright_ir::control::{MATCH_CAST, WHY};
use tilewright_ir::text::{commas, quote, tuple};
use tilewright_ir::visit::{Visit, free_vars, walk_attrs};
use tilewright_ir::{
    Attrs, Binding, BindingBlock, DType, Expr, GraphExpr, GraphFunc, GraphType, TensorType, graph,
};

mod control;

use super::func::Uses;
use super::{Printer, is_identifier};
use crate::consts;
use crate::graph::keeps_text;

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

impl Uses {
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

impl Printer<'_> {
    /// A function; `key` is its name in the module, `name` the one in the text.
    pub(super) fn graph_func(&mut self, key: &str, name: &str, f: &GraphFunc) {
        let mut symbols = Uses::default();
        f.params.iter().for_each(|p| symbols.ty(p.ty()));
        f.ret_ty.iter().for_each(|t| symbols.ty(t));
        walk_attrs(&mut symbols, &f.attrs);
        symbols.bindings(f.bindings());
        symbols.value(&f.ret);
        self.names.push();
        self.names.int = Some(DType::I64);
        let names: Vec<String> = f.params.iter().map(|p| self.names.define_graph(p)).collect();
        let sizes = symbols.free();
        let declared: Vec<(String, DType)> =
            sizes.iter().map(|v| (self.names.define(v), v.dtype())).collect();

        let params = f.params.iter().zip(&names);
        let renamed = params.clone().map(|(p, text)| (text.as_str(), &**p.name()));
        self.decorator("R.function", f.private, (key, name), renamed);
        let params =
            commas(params.map(|(p, name)| format!("{name}: {}", self.graph_type(p.ty(), true))));
        let ret = match &f.ret_ty {
            Some(t) => format!(" -> {}", self.graph_type(t, true)),
            None => String::new(),
        };
        self.line(&format!("def {name}({params}){ret}:"));
        self.indent += 1;
        for (name, dtype) in declared {
            self.line(&format!("{name} = T.{dtype}()"));
        }
        self.func_attrs("R", &f.attrs, sizes.iter());
        if names_function(f) {
            self.line("cls = Module");
        }
        self.returning(&f.blocks, &f.ret);
        self.indent -= 1;
        self.names.int = None;
        self.names.pop();
    }

    /// Bindings and what is returned after them.
    fn returning(&mut self, blocks: &[BindingBlock], ret: &GraphExpr) {
        self.binding_blocks(blocks);
        let ret = self.value(ret);
        self.line(&format!("return {ret}"));
    }

    fn binding_blocks(&mut self, blocks: &[BindingBlock]) {
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
                self.graph_binding(binding);
            }
            if scope.is_some() {
                let outputs = commas(b.outputs.iter().map(|v| self.names.graph(v)));
                self.line(&format!("R.output({outputs})"));
                self.indent -= 1;
            }
        }
    }

    fn graph_binding(&mut self, b: &Binding) {
        let value = match &b.value {
            GraphExpr::If(branches) => return self.branches(&b.var, branches),
            GraphExpr::Loop(l) => self.graph_loop(l),
            GraphExpr::Call { op, args, attrs } if **op == *MATCH_CAST && args.len() == 1 => {
                let of = self.value(&args[0]);
                let ty = self.graph_type(b.var.ty(), false);
                let name = self.names.define_graph(&b.var);
                let why = attrs.get(WHY).map(|why| format!(", {WHY}={}", self.attr(why)));
                let why = why.unwrap_or_default();
                return self.line(&format!("{name} = R.match_cast({of}, {ty}{why})"));
            }
            value => self.value(value),
        };
        let ty = self.graph_type(b.var.ty(), false);
        let follows = matches!(b.value, GraphExpr::CallTir { .. } | GraphExpr::Const(_))
            && self.graph_type(&b.value.ty(), false) == ty;
        let name = self.names.define_graph(&b.var);
        if follows {
            self.line(&format!("{name} = {value}"))
        } else {
            self.line(&format!("{name}: {ty} = {value}"))
        }
    }

    /// A type; in the header, extents that name variables are strings.
    fn graph_type(&mut self, t: &GraphType, header: bool) -> String {
        match t {
            GraphType::Tensor(t) => self.tensor_type(t, header),
            GraphType::Tuple(items) => {
                format!("R.Tuple({})", commas(items.iter().map(|t| self.graph_type(t, header))))
            }
            GraphType::Shape(sizes) => {
                format!("R.Shape([{}])", commas(sizes.iter().map(|e| self.extent(e, header))))
            }
            GraphType::Opaque(text) if keeps_text(text) => text.to_string(),
            GraphType::Opaque(text) => format!("R.Opaque({})", quote(text)),
        }
    }

    fn extent(&mut self, e: &Expr, header: bool) -> String {
        let text = self.expr(e);
        if header && !free_vars(e).is_empty() { quote(&text) } else { text }
    }

    fn tensor_type(&mut self, t: &TensorType, header: bool) -> String {
        let extents = tuple(t.shape.iter().map(|e| self.extent(e, header)));
        format!("R.Tensor({extents}, dtype=\"{}\")", t.dtype)
    }

    fn values(&mut self, items: &[GraphExpr]) -> String {
        match items {
            [] => "R.tuple()".to_owned(),
            _ => tuple(items.iter().map(|e| self.value(e))),
        }
    }

    fn value(&mut self, e: &GraphExpr) -> String {
        match e {
            GraphExpr::Var(v) => self.names.graph(v),
            GraphExpr::Const(t) => consts::print(t, self.table.as_deref_mut()),
            GraphExpr::Tuple(items) => self.values(items),
            GraphExpr::Item(e, i) => format!("{}[{i}]", self.value(e)),
            // Values of bindings only, in a module that keeps the rules.
            GraphExpr::If(_) => "R.call(\"if\")".to_owned(),
            GraphExpr::Loop(_) => "R.call(\"loop\")".to_owned(),
            GraphExpr::CallTir { func, args, outs, scalars } => {
                let func = match self.functions.get(&**func) {
                    Some(name) => format!("cls.{name}"),
                    None => quote(func),
                };
                let args = self.values(args);
                let types = commas(outs.iter().map(|t| self.tensor_type(t, false)));
                let outs = if outs.len() == 1 { types } else { format!("[{types}]") };
                let scalars = if scalars.is_empty() {
                    String::new()
                } else {
                    format!(", tir_vars=R.shape([{}])", self.exprs(scalars))
                };
                format!("R.call_tir({func}, {args}, out_sinfo={outs}{scalars})")
            }
            GraphExpr::Call { op, args, attrs } => {
                let (callee, mut parts) = self.callee(op);
                // `_2` is the third argument, where the others fill the places around it.
                let places =
                    attrs.keys().filter(|k| place_of_key(k).is_some()).count() + args.len();
                let positional = attrs.keys().filter_map(|k| place_of_key(k)).all(|i| i < places);
                let mut args = args.iter();
                for i in 0..if positional { places } else { args.len() } {
                    let text = match attrs
                        .get_key_value(format!("_{i}").as_str())
                        .filter(|_| positional)
                    {
                        Some((_, a)) => self.attr(a),
                        None => args.next().map_or(String::new(), |a| self.value(a)),
                    };
                    parts.push(text);
                }
                let mut others = Attrs::new();
                for (key, a) in attrs {
                    match is_identifier(key) {
                        _ if positional && place_of_key(key).is_some() => {}
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

fn place_of_key(key: &str) -> Option<usize> {
    key.strip_prefix('_')?.parse::<usize>().ok()
}
