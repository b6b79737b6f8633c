//! Writes the trees of a certificate: a function as `tilewright-check` reads it.
//!
//! The tree has the loops, conditions and stores of a tensor function, one by one. What stands for something
//! else goes: iteration variables of blocks and bound names are their values, a predicate and the start of a
//! reduction are conditions, and in a graph function a call is the body of what it calls, over the tensors that it
//! is given. What has no tree is refused, never left out.

use std::fmt::Write as _;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::expr::CallTarget;
use tilewright_ir::index::Ranges;
use tilewright_ir::{
    BinOp, Buffer, DType, Expr, ExprKind, GraphExpr, GraphFunc, Intrin, IterKind, Module, Stmt,
    StmtKind, TensorFunc, TensorType, Var,
};

pub(crate) type Written<T> = Result<T, String>;

/// Bytes of one function.
const LONGEST: usize = 1 << 24;
/// Elements of one constant.
const ELEMENTS: usize = 1 << 20;
/// Words of sets, which are no names in them.
const RESERVED: [&str; 8] = ["and", "or", "not", "exists", "mod", "floor", "ceil", "true"];

/// The tree of the only graph function of a module with the functions that it calls, or of its only function.
///
/// # Errors
/// What has no tree.
pub fn tree(module: &Module) -> Result<String, String> {
    let mut writer = Writer::new(module);
    let graphs: Vec<_> = module.graphs().collect();
    match (&graphs[..], module.functions.len()) {
        ([(name, graph)], _) => writer.graph(name, graph)?,
        ([], 1) => {
            let (name, func) = module.tensors().next().ok_or("there is no function")?;
            writer.function(name, func)?;
        }
        (_, count) => return Err(format!("there are {count} functions, not one")),
    }
    Ok(writer.out)
}

/// The reason that a parameter lies in another way: a map of its indices, and the inverse.
///
/// # Errors
/// An expression that has no tree.
pub fn layout(param: usize, map: (&[Var], &[Expr]), inverse: (&[Var], &[Expr])) -> Written<String> {
    let mut text = format!("(layout {param}");
    for (prefix, (vars, exprs)) in [("i", map), ("c", inverse)] {
        let module = Module::new();
        let mut writer = Writer::new(&module);
        // They are no sizes.
        writer.vars.extend(vars.iter().map(|v| (v.clone(), String::new())));
        writer.sizes(exprs, false)?;
        let mut names = Vec::new();
        for (k, v) in vars.iter().enumerate() {
            names.push(writer.fresh(&format!("{prefix}{k}")));
            writer.vars.insert(v.clone(), names[k].clone());
        }
        let exprs = writer.list(exprs)?;
        let _ = write!(text, " ({}) ({exprs})", names.join(" "));
    }
    Ok(text + ")")
}

/// A tensor of a graph: its buffer's name, and what it is.
#[derive(Clone)]
struct Memory {
    name: String,
    dtype: DType,
    shape: Vec<String>,
}

pub(crate) struct Writer<'a> {
    module: &'a Module,
    out: String,
    /// How far lines are indented.
    inside: usize,
    taken: HashSet<String>,
    /// Variables as trees.
    vars: HashMap<Var, String>,
    buffers: HashMap<Buffer, String>,
    /// The least and greatest values of variables.
    pub(crate) ranges: Ranges,
}

impl<'a> Writer<'a> {
    fn new(module: &'a Module) -> Writer<'a> {
        let taken = RESERVED.iter().map(|w| (*w).to_owned()).collect();
        let (out, inside, vars, buffers, ranges) = Default::default();
        Writer { module, out, inside, taken, vars, buffers, ranges }
    }

    /// A name that nothing else has.
    fn fresh(&mut self, hint: &str) -> String {
        let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let mut base: String = hint.chars().map(word).collect();
        if !base.starts_with(|c: char| c.is_ascii_alphabetic()) {
            base.insert(0, 'v');
        }
        let mut name = base.clone();
        let mut number = 0;
        while !self.taken.insert(name.clone()) {
            number += 1;
            name = format!("{base}_{number}");
        }
        name
    }

    fn line(&mut self, text: &str) -> Written<()> {
        if self.out.len() + text.len() > LONGEST {
            return Err("the function is too long".into());
        }
        self.out.push_str(&"  ".repeat(self.inside));
        self.out.push_str(text);
        self.out.push('\n');
        Ok(())
    }

    /// Ends an item that was left open.
    fn close(&mut self) {
        self.inside -= 1;
        self.out.truncate(self.out.trim_end().len());
        self.out.push_str(")\n");
    }

    /// Takes the variables of expressions as sizes, by their names, and writes that.
    fn sizes<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>, write: bool) -> Written<()> {
        let mut found: Vec<Var> = Vec::new();
        for e in exprs {
            e.for_each(|e| {
                found.extend(e.as_var().filter(|v| !found.contains(v)).cloned());
                true
            });
        }
        for v in found.iter().filter(|v| !self.vars.contains_key(v)).collect::<Vec<_>>() {
            let name = v.name().to_string();
            if !v.dtype().is_int() || v.dtype().lanes != 1 {
                return Err(format!("`{name}` is `{}`, which is no size", v.dtype()));
            }
            if self.fresh(&name) != name {
                return Err(format!("`{name}` is no name of a size, or that of two"));
            }
            self.vars.insert(v.clone(), name.clone());
            if write {
                self.line(&format!("(sizes {name})"))?;
            }
        }
        Ok(())
    }

    /// Memory that is defined here.
    fn memory(&mut self, item: &str, hint: &str, dtype: DType, shape: &[Expr]) -> Written<Memory> {
        let name = self.fresh(hint);
        let shape = shape.iter().map(|e| self.expr(e)).collect::<Written<Vec<_>>>()?;
        self.line(&format!("({item} {name} {dtype} {})", shape.join(" ")))?;
        Ok(Memory { name, dtype, shape })
    }

    /// A buffer that is defined here. How its axes lie is not said: no two of its cells are one.
    fn buffer(&mut self, item: &str, buffer: &Buffer) -> Written<()> {
        if !buffer.strides.is_empty() || buffer.elem_offset.is_some() {
            return Err(format!("`{}` has strides or an offset", buffer.name));
        }
        let memory = self.memory(item, &buffer.name, buffer.dtype(), &buffer.shape)?;
        self.buffers.insert(buffer.clone(), memory.name);
        Ok(())
    }

    fn function(&mut self, name: &str, func: &TensorFunc) -> Written<()> {
        if func.ret.is_some() {
            return Err("a function with a result".into());
        }
        self.head(name)?;
        self.sizes(&func.scalars().map(Var::expr).collect::<Vec<_>>(), true)?;
        self.sizes(func.buffers().flat_map(|b| &b.shape), true)?;
        for buffer in func.buffers() {
            self.buffer("param", buffer)?;
        }
        self.stmt(&func.body)?;
        self.close();
        Ok(())
    }

    fn head(&mut self, name: &str) -> Written<()> {
        let is_word = |c: char| c.is_alphanumeric() || "_.".contains(c);
        if !name.chars().all(is_word) {
            return Err(format!("`{name}` is no word"));
        }
        self.line(&format!("(function {name}"))?;
        self.inside += 1;
        Ok(())
    }

    fn graph(&mut self, name: &str, graph: &GraphFunc) -> Written<()> {
        self.head(name)?;
        let mut types: Vec<&TensorType> = Vec::new();
        for param in &graph.params {
            types.push(param.ty().as_tensor().ok_or("a parameter that is no tensor")?);
        }
        let inputs = types.len();
        for binding in graph.bindings() {
            if let GraphExpr::CallTir { outs, scalars, .. } = &binding.value {
                types.extend(outs);
                self.sizes(scalars, true)?;
            }
        }
        self.sizes(types.iter().flat_map(|t| &t.shape), true)?;
        let mut tensors: HashMap<u64, Vec<Memory>> = HashMap::default();
        for (param, of) in graph.params.iter().zip(&types[..inputs]) {
            let memory = self.memory("param", param.name(), of.dtype, &of.shape)?;
            tensors.insert(param.id(), vec![memory]);
        }
        for binding in graph.bindings() {
            let value = match &binding.value {
                GraphExpr::CallTir { func, args, outs, scalars } => {
                    let mut given = Vec::new();
                    for arg in args {
                        given.extend(self.operand(arg, &tensors)?);
                    }
                    let mut made = Vec::new();
                    for out in outs {
                        made.push(self.memory(
                            "alloc",
                            binding.var.name(),
                            out.dtype,
                            &out.shape,
                        )?);
                    }
                    given.extend(made.iter().cloned());
                    let scalars = scalars.iter().map(|e| self.expr(e));
                    let scalars = scalars.collect::<Written<Vec<_>>>()?;
                    self.call(func, &given, scalars)?;
                    made
                }
                other => self.operand(other, &tensors)?,
            };
            tensors.insert(binding.var.id(), value);
        }
        for result in self.operand(&graph.ret, &tensors)? {
            self.line(&format!("(result {})", result.name))?;
        }
        self.close();
        Ok(())
    }

    /// The tensors that an expression names.
    fn operand(
        &mut self,
        e: &GraphExpr,
        tensors: &HashMap<u64, Vec<Memory>>,
    ) -> Written<Vec<Memory>> {
        match e {
            GraphExpr::Var(v) => tensors.get(&v.id()).cloned().ok_or("an unknown tensor".into()),
            GraphExpr::Tuple(items) => {
                let mut all = Vec::new();
                for item in items {
                    all.extend(self.operand(item, tensors)?);
                }
                Ok(all)
            }
            GraphExpr::Item(of, at) => {
                let item = self.operand(of, tensors)?.get(*at).cloned();
                Ok(vec![item.ok_or("a tuple of fewer tensors")?])
            }
            GraphExpr::Const(tensor) => {
                let (dtype, name) = (tensor.dtype(), self.fresh("constant"));
                if tensor.len() > ELEMENTS {
                    return Err(format!("a constant of {} elements", tensor.len()));
                }
                let shape: Vec<String> = tensor.shape().iter().map(usize::to_string).collect();
                let mut text = format!("(constant {name} {dtype} ({})", shape.join(" "));
                for k in 0..tensor.len() {
                    let _ = match dtype.is_float() {
                        true => write!(text, " {}", float(tensor.get_f64(k))?),
                        false => write!(text, " {}", tensor.get_i128(k)),
                    };
                }
                self.line(&(text + ")"))?;
                Ok(vec![Memory { name, dtype, shape }])
            }
            _ => Err("a call that is no call of a tensor function".into()),
        }
    }

    /// The body of a function over the tensors and sizes that it is given.
    fn call(&mut self, name: &str, given: &[Memory], scalars: Vec<String>) -> Written<()> {
        let module = self.module;
        let func = module.tensor(name).map_err(|e| e.to_string())?;
        let formal: Vec<&Buffer> = func.buffers().collect();
        if formal.len() != given.len() || func.scalars().count() != scalars.len() {
            return Err(format!("`{name}` is called with another number of arguments"));
        }
        for (v, value) in func.scalars().zip(scalars) {
            self.vars.insert(v.clone(), value);
        }
        let numbers: HashSet<&Var> = func.scalars().collect();
        let mut told: HashSet<&Var> = HashSet::default();
        let mut same: Vec<(&Expr, &String)> = Vec::new();
        for (buffer, given) in formal.iter().zip(given) {
            if buffer.dtype() != given.dtype || buffer.shape.len() != given.shape.len() {
                return Err(format!("`{}` is given what has another type or rank", buffer.name));
            }
            if buffer.elem_offset.is_some() {
                return Err(format!("`{}` has an offset", buffer.name));
            }
            for (extent, actual) in buffer.shape.iter().zip(&given.shape) {
                match extent.as_var() {
                    Some(v) if !numbers.contains(v) && told.insert(v) => {
                        self.vars.insert(v.clone(), actual.clone());
                    }
                    _ => same.push((extent, actual)),
                }
            }
            self.buffers.insert((*buffer).clone(), given.name.clone());
        }
        for (extent, actual) in same {
            let extent = self.expr(extent)?;
            if extent != *actual {
                self.line(&format!("(same {extent} {actual})"))?;
            }
        }
        self.stmt(&func.body)
    }

    fn stmt(&mut self, s: &Stmt) -> Written<()> {
        match s.kind() {
            StmtKind::Store { buffer, indices, value } => {
                let (to, at) = (self.known(buffer)?, self.list(indices)?);
                let value = self.expr(value)?;
                self.line(&format!("(store {to} ({at}) {value})"))
            }
            StmtKind::For { var, range, body, .. } => {
                let (low, extent) = (self.expr(&range.min)?, self.expr(&range.extent)?);
                let high = if low == "0" { extent } else { format!("({low} + {extent})") };
                let name = self.fresh(var.name());
                self.vars.insert(var.clone(), name.clone());
                self.ranges.bind_loop(var, range);
                self.line(&format!("(for {name} {low} {high}"))?;
                self.inside += 1;
                self.stmt(body)?;
                self.close();
                Ok(())
            }
            StmtKind::If { cond, then, otherwise } => {
                let condition = self.expr(cond)?;
                self.branches(&condition, then, otherwise.as_ref())
            }
            StmtKind::Let { var, value, body } => {
                self.bind(var, value)?;
                self.stmt(body)
            }
            StmtKind::Seq(all) => all.iter().try_for_each(|s| self.stmt(s)),
            StmtKind::Allocate { buffer, body, .. } => {
                self.buffer("alloc", buffer)?;
                self.stmt(body)
            }
            StmtKind::Block { bindings, predicate, block } => {
                if !block.matches.is_empty() {
                    return Err("a view of a region".into());
                }
                let mut starts = Vec::new();
                for (iter, value) in block.iters.iter().zip(bindings) {
                    self.bind(&iter.var, value)?;
                    self.ranges.bind_loop(&iter.var, &iter.domain);
                    match iter.kind {
                        IterKind::Spatial => {}
                        IterKind::Reduce => {
                            let first = self.expr(&iter.domain.min)?;
                            starts.push(format!("({} == {first})", self.vars[&iter.var]));
                        }
                        IterKind::Opaque if block.init.is_some() => {
                            return Err("a start of an opaque axis".into());
                        }
                        IterKind::Opaque => {}
                    }
                }
                for buffer in &block.allocs {
                    self.buffer("alloc", buffer)?;
                }
                let predicate = self.expr(predicate)?;
                let guarded = predicate != "(true)";
                if guarded {
                    self.line(&format!("(if {predicate} ("))?;
                    self.inside += 1;
                }
                if let Some(init) = &block.init {
                    let all = starts.into_iter().reduce(|a, b| format!("({a} and {b})"));
                    self.branches(&all.unwrap_or_else(|| "(true)".into()), init, None)?;
                }
                self.stmt(&block.body)?;
                if guarded {
                    self.inside -= 1;
                    self.line(") ())")?;
                }
                Ok(())
            }
            StmtKind::Assume(e) => self.assume(e),
            StmtKind::Evaluate(_) if s.is_nop() => Ok(()),
            StmtKind::Evaluate(_) => Err("a call for its effects".into()),
            StmtKind::Assert { .. } => Err("an assertion".into()),
            StmtKind::Constant { .. } | StmtKind::Declare { .. } => {
                Err("another view of memory".into())
            }
        }
    }

    fn branches(&mut self, condition: &str, then: &Stmt, otherwise: Option<&Stmt>) -> Written<()> {
        self.line(&format!("(if {condition} ("))?;
        self.inside += 1;
        self.stmt(then)?;
        self.inside -= 1;
        self.line(") (")?;
        self.inside += 1;
        otherwise.map_or(Ok(()), |s| self.stmt(s))?;
        self.inside -= 1;
        self.line("))")
    }

    /// A name of a value, which takes its place.
    fn bind(&mut self, var: &Var, value: &Expr) -> Written<()> {
        let text = self.expr(value)?;
        if value.any(|e| matches!(e.kind(), ExprKind::Load(..))) || text.len() > LONGEST / 64 {
            return Err(format!("`{}` depends on data", var.name()));
        }
        self.vars.insert(var.clone(), text);
        Ok(())
    }

    /// What an assumption `... or B[i] == v` says. One of another form says nothing here.
    fn assume(&mut self, e: &Expr) -> Written<()> {
        let mut open = vec![e];
        let mut known = None;
        let mut conditions = Vec::new();
        while let Some(e) = open.pop() {
            let loads = e.any(|e| matches!(e.kind(), ExprKind::Load(..)));
            match e.kind() {
                ExprKind::Binary(BinOp::Or, a, b) => open.extend([a, b]),
                ExprKind::Binary(BinOp::Eq, a, b) if loads && known.is_none() => {
                    known = Some((a, b));
                }
                _ if loads => return Ok(()),
                _ => conditions.push(format!("(not {})", self.expr(e)?)),
            }
        }
        let Some((cell, value)) = known else { return Ok(()) };
        let ExprKind::Load(buffer, indices) = cell.kind() else { return Ok(()) };
        let reads = |e: &Expr| e.any(|e| matches!(e.kind(), ExprKind::Load(..)));
        let is_number = matches!(value.kind(), ExprKind::Int(_) | ExprKind::Float(_));
        if !is_number || indices.iter().any(reads) {
            return Ok(());
        }
        let (buffer, at) = (self.known(buffer)?, self.list(indices)?);
        let all = conditions.into_iter().reduce(|a, b| format!("({a} and {b})"));
        let (all, value) = (all.unwrap_or_else(|| "(true)".into()), self.expr(value)?);
        self.line(&format!("(assume {buffer} ({at}) {value} {all})"))
    }

    fn known(&self, buffer: &Buffer) -> Written<String> {
        let known = self.buffers.get(buffer).cloned();
        known.ok_or_else(|| format!("`{}` is not defined here", buffer.name))
    }

    fn list(&self, exprs: &[Expr]) -> Written<String> {
        let texts = exprs.iter().map(|e| self.expr(e)).collect::<Written<Vec<_>>>()?;
        Ok(texts.join(" "))
    }

    pub(crate) fn expr(&self, e: &Expr) -> Written<String> {
        let dtype = e.dtype();
        if dtype.lanes != 1 {
            return Err("a vector".into());
        }
        if e.size() > LONGEST as u32 / 64 {
            return Err("an expression is too long".into());
        }
        let plain = dtype == DType::I32 || dtype == DType::I64;
        Ok(match e.kind() {
            ExprKind::Int(v) if dtype.is_bool() => {
                if *v != 0 { "(true)" } else { "(false)" }.into()
            }
            ExprKind::Int(v) if plain => v.to_string(),
            ExprKind::Int(v) if dtype == DType::U64 => format!("(cast.{dtype} {})", *v as u64),
            ExprKind::Int(v) => format!("(cast.{dtype} {v})"),
            ExprKind::Float(v) => format!("(cast.{dtype} {})", float(*v)?),
            ExprKind::Var(v) => {
                let known = self.vars.get(v).cloned();
                known.ok_or_else(|| format!("`{}` is not known here", v.name()))?
            }
            ExprKind::Cast(of) => format!("(cast.{dtype} {})", self.expr(of)?),
            ExprKind::Binary(op, a, b) if op.is_infix() => {
                format!("({} {} {})", self.expr(a)?, op.symbol(), self.expr(b)?)
            }
            ExprKind::Binary(op, a, b) => {
                format!("({} {} {})", op.symbol(), self.expr(a)?, self.expr(b)?)
            }
            ExprKind::Not(a) => format!("(not {})", self.expr(a)?),
            ExprKind::Select(c, a, b) => {
                format!("(select {} {} {})", self.expr(c)?, self.expr(a)?, self.expr(b)?)
            }
            ExprKind::IfThenElse(c, a, b) => {
                format!("(if_then_else {} {} {})", self.expr(c)?, self.expr(a)?, self.expr(b)?)
            }
            ExprKind::Load(buffer, at) => {
                format!("(load {} {})", self.known(buffer)?, self.list(at)?)
            }
            ExprKind::Call(CallTarget::Intrin(Intrin::Likely), args) => self.list(args)?,
            ExprKind::Call(CallTarget::Intrin(op), args) => match self.digits(*op, args)? {
                Some(sum) => sum,
                None => format!("({} {})", op.name(), self.list(args)?),
            },
            ExprKind::Call(CallTarget::Reinterpret(to), args) => {
                format!("(reinterpret.{to} {})", self.list(args)?)
            }
            ExprKind::Call(..) => return Err("a call of something unknown".into()),
            ExprKind::Undef => "(undef)".into(),
            ExprKind::Str(_) => return Err("text".into()),
            ExprKind::Let(..) => return Err("a name inside of an expression".into()),
            ExprKind::Ramp(..) | ExprKind::Broadcast(_) => return Err("a vector".into()),
        })
    }
}

/// A float as a number of a tree, which begins with no letter.
fn float(v: f64) -> Written<String> {
    match v {
        v if v.is_nan() => Err("a constant that is no number".into()),
        v if v.is_infinite() => Ok(if v > 0.0 { "+inf" } else { "-inf" }.into()),
        v => Ok(format!("{v:?}")),
    }
}
