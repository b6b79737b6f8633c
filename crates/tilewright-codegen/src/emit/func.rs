//! Functions: the interface, and the state while a body is written.
//!
//! A tensor function becomes two functions. The exported one takes the arguments as the calling
//! convention says (see the head of [`crate::emit`]) and unpacks them; the internal one has a
//! parameter for each, with what is known of pointers: that they do not overlap, how many bytes
//! lie behind them, and their alignment where the function's attribute `tilewright.aligned` says
//! that they are at 64-byte boundaries. Parallel loops become further functions, see
//! [`super::parallel`].

use std::rc::Rc;
use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_ir::{
    Attr, BinOp, DType, Error, Expr, ExprKind, Param, Result, Span, Stmt, StmtKind, TensorFunc,
    Var, text,
};

use super::aliases::Aliases;
use super::code::{Code, Scalar, Shared, Ty, Val};
use super::half;
use super::template::{ARGUMENT, ONLY_IN_FAMILIES, SYMBOL, Use};
use super::types::{element_count, is_narrow_float, is_signed, register};
use tilewright_ir::index::{self, Interval, Ranges};
use tilewright_ir::visit::{Fold, Subst};

/// Attribute of a function whose buffers all begin at 64-byte boundaries: `Int(1)`.
pub const ALIGNED: &str = "tilewright.aligned";

/// Most nodes of what a variable stands for.
const LARGEST_SIZE: u32 = 100;

/// Largest result of a function that failed: 4095 messages.
pub(crate) const MAX_MESSAGES: usize = 4095;

/// The body of one LLVM function under construction.
pub(super) struct Func<'m> {
    pub code: Code<'m>,
    /// Values of variables, pointers of buffers among them.
    pub env: HashMap<Var, Val>,
    /// Pointers that nothing else points near: those of parameters and of allocations.
    pub owned: HashSet<Var>,
    /// `int32` variables as 64-bit values.
    pub wide: HashMap<Var, Val>,
    pub ranges: Ranges,
    /// What variables stand for that are bound to index arithmetic of others.
    pub sizes: Subst,
    /// Values of nodes, and of nodes as 64-bit indices; one pair a branch.
    scopes: Vec<Scope>,
    /// The lanes that take part, inside vector conditions.
    pub mask: Option<Val>,
    /// Whether the first lane certainly does.
    pub first_lane: bool,
    /// Whether the vector in the index that is being taken apart does not wrap.
    pub steady: bool,
    /// Whether what is loaded and stored is only moved, as it lies in memory.
    pub moving: bool,
    /// Memory of this function behind whose end a vector may be read and written.
    pub padded: HashSet<Var>,
    /// Memory that holds nothing before the statement at hand, which fills it with one constant.
    pub filling: Option<Var>,
    /// Memory of which lanes that a mask leaves out are never seen.
    pub free_lanes: HashSet<Var>,
    pub aliases: Rc<Aliases>,
    /// The assertions, whose position gives the result.
    pub assertions: Rc<Vec<Assertion>>,
    /// Whether sums that accumulate may be reordered.
    pub reassoc: bool,
    /// Whether the loop around carries many minima and maxima side by side.
    pub many_extremes: bool,
    /// Whether this is the body of a parallel loop.
    pub parallel: bool,
    /// In it, the variable of that loop, and one for the first of the iterations that this call runs.
    pub task: Option<(Var, Var)>,
    /// Bytes of stack memory so far.
    pub stack: usize,
    pub depth: usize,
    /// How many loops are around.
    pub nesting: usize,
    /// Which of them variables change with: the depth of the innermost one, for those that do.
    pub nests: HashMap<Var, usize>,
    /// Nodes so far.
    pub nodes: usize,
    /// Number of calls with effects so far.
    pub effects: usize,
    /// Number of parallel loops of the tensor function so far.
    pub outlined: Rc<std::cell::Cell<usize>>,
}

/// Values by the address of the node, which is kept alive beside its value.
#[derive(Default)]
struct Scope {
    values: HashMap<usize, (Expr, Val)>,
    wide: HashMap<usize, (Expr, Val)>,
}

impl<'m> Func<'m> {
    pub fn new(
        shared: &'m Shared,
        aliases: Rc<Aliases>,
        assertions: Rc<Vec<Assertion>>,
    ) -> Func<'m> {
        Func {
            code: Code::new(shared),
            env: HashMap::default(),
            owned: HashSet::default(),
            wide: HashMap::default(),
            ranges: Ranges::default(),
            sizes: Subst::default(),
            scopes: vec![Scope::default()],
            mask: None,
            first_lane: false,
            steady: false,
            moving: false,
            padded: HashSet::default(),
            filling: None,
            free_lanes: HashSet::default(),
            aliases,
            assertions,
            reassoc: false,
            many_extremes: false,
            parallel: false,
            task: None,
            stack: 0,
            depth: 0,
            nesting: 0,
            nests: HashMap::default(),
            nodes: 0,
            effects: 0,
            outlined: Rc::default(),
        }
    }

    /// Gives a variable its value.
    pub fn bind(&mut self, var: &Var, value: Val) {
        if var.dtype() == DType::I32 && value.lanes() == 1 {
            let wide = match value.text.parse::<i64>() {
                Ok(v) => Val::int(Ty::I64, v),
                Err(_) => self.code.widen(&value, true),
            };
            self.wide.insert(var.clone(), wide);
        }
        self.env.insert(var.clone(), value);
    }

    /// Gives a variable the value of an expression.
    pub fn bind_to(&mut self, var: &Var, value: &Expr) -> Result<()> {
        let range = self.ranges.interval(value);
        self.nests.insert(var.clone(), self.nesting_of(value));
        let effects = value.effects();
        let is_index =
            value.dtype().is_int() && !effects.loads && !effects.calls && !effects.arbitrary;
        match Some(self.sizes.expr(value)).filter(|v| is_index && v.size() <= LARGEST_SIZE) {
            Some(of_others) => drop(self.sizes.vars.insert(var.clone(), of_others)),
            None => drop(self.sizes.vars.remove(var)),
        }
        let value = self.expr(value)?;
        self.ranges.bind(var, range);
        self.bind(var, value);
        Ok(())
    }

    /// A condition without the parts that certainly hold; `None` where that is all of it.
    pub fn left_to_ask(&mut self, cond: &Expr) -> Option<Expr> {
        if let ExprKind::Binary(BinOp::And, a, b) = cond.kind() {
            let parts = [a, b].map(|part| self.left_to_ask(part));
            return parts.into_iter().flatten().reduce(|a, b| a.and(b));
        }
        let holds = index::simplify(&self.sizes.expr(cond), &self.ranges).is_true();
        (!holds).then(|| cond.clone())
    }

    pub fn known(&self, e: &Expr) -> Option<Val> {
        self.scopes.iter().rev().find_map(|s| s.values.get(&e.address())).map(|(_, v)| v.clone())
    }

    pub(crate) fn known_wide(&self, e: &Expr) -> Option<Val> {
        self.scopes.iter().rev().find_map(|s| s.wide.get(&e.address())).map(|(_, v)| v.clone())
    }

    pub(crate) fn remember(&mut self, e: &Expr, v: &Val) {
        // These cost nothing to look up again.
        if matches!(e.kind(), ExprKind::Var(_) | ExprKind::Int(_) | ExprKind::Float(_)) {
            return;
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.values.insert(e.address(), (e.clone(), v.clone()));
        }
    }

    pub(crate) fn remember_wide(&mut self, e: &Expr, v: &Val) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.wide.insert(e.address(), (e.clone(), v.clone()));
        }
    }

    /// Runs a part whose values are not known after it.
    pub fn scoped<T>(&mut self, inside: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.scopes.push(Scope::default());
        let result = inside(self);
        self.scopes.pop();
        result
    }

    /// Forgets values of nodes, because memory may have changed.
    pub fn forget(&mut self) {
        self.scopes.iter_mut().for_each(|s| *s = Scope::default());
    }

    /// Notes that something with effects was called: what contains it has to be evaluated each
    /// time, and nothing that was read is still known.
    pub fn effect(&mut self) {
        self.effects += 1;
        self.forget();
    }
}

/// Most values that a failed assertion hands to its caller; those after them are not shown.
pub const MAX_VALUES: usize = 8;

/// What may be said of a run that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assertion {
    /// The message, with `{}` for each value.
    pub message: Arc<str>,
    /// How many values the kernel hands over, at most [`MAX_VALUES`].
    pub values: usize,
    /// The place in the source.
    pub span: Option<Span>,
}

impl Assertion {
    /// That of a statement; `None` where it is no assertion.
    pub(crate) fn from_stmt(s: &Stmt) -> Option<Assertion> {
        let StmtKind::Assert { message, values, .. } = s.kind() else { return None };
        let (message, values) = (message.clone(), values.len().min(MAX_VALUES));
        Some(Assertion { message, values, span: s.span() })
    }

    /// The message with the values that the kernel handed over; without any where it could not.
    pub fn text(&self, values: Option<&[i64]>) -> String {
        match (self.values, values) {
            (0, _) => self.message.to_string(),
            (n, Some(values)) => text::fill(&self.message, &values[..n.min(values.len())]),
            (_, None) => text::without_values(&self.message),
        }
    }
}

/// The assertions of a function, each once, in the order of the text. The function returns 1 plus
/// the position of the one that failed.
pub fn assertions(func: &TensorFunc) -> Vec<Assertion> {
    let mut seen: HashSet<(Arc<str>, usize, Option<Span>)> = HashSet::default();
    let mut list = Vec::new();
    func.body.for_each(|s| {
        list.extend(
            Assertion::from_stmt(s).filter(|a| seen.insert((a.message.clone(), a.values, a.span))),
        );
    });
    list
}

/// Writes a tensor function: what the exported function `symbol` calls goes to `shared`, the exported
/// function itself comes back.
pub(super) fn tensor_func(shared: &Shared, symbol: &str, func: &TensorFunc) -> Result<String> {
    if func.ret.is_some_and(|r| r != DType::VOID) {
        return Err(Error::unsupported("in native code a tensor function cannot return a value"));
    }
    let assertions = assertions(func);
    if assertions.len() > MAX_MESSAGES {
        return Err(Error::unsupported(format!(
            "{} different assertion messages; {MAX_MESSAGES} are possible",
            assertions.len()
        )));
    }
    let aliases = Rc::new(Aliases::find(func, shared));
    let mut inner = Func::new(shared, aliases, Rc::new(assertions));
    let mut outer = Code::new(shared);
    let mut params = vec!["ptr %ctx".to_owned()];
    let mut args = vec!["ptr %ctx".to_owned()];
    let aligned = matches!(func.attrs.get(ALIGNED), Some(Attr::Int(1) | Attr::Bool(true)));

    let shapes = func.shape_vars();
    for (slot, param) in func.params.iter().enumerate() {
        let (param, arg) = match param {
            Param::Scalar(var) => {
                inner.ranges.bind(var, Interval::all(var.dtype()));
                scalar_argument(var, &mut inner, &mut outer, slot)?
            }
            Param::Buffer { handle, buffer } => {
                let value = unpack(&mut outer, slot, DType::HANDLE)?;
                let name = Val::new(Ty::PTR, format!("%p{slot}"));
                inner.env.insert(handle.clone(), name.clone());
                let bytes = element_count(buffer).filter(|_| buffer.strides.is_empty());
                let bytes = bytes.map_or(0, |n| n.saturating_mul(buffer.dtype().bytes()));
                let mut attrs = " noalias noundef".to_owned();
                if bytes > 0 {
                    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
                    let bytes = shared.number(bytes, Use::Bytes);
                    attrs += &format!(" dereferenceable({bytes})");
                }
                if aligned {
                    attrs += " align 64";
                }
                (format!("ptr{attrs} {}", name.text), value.to_string())
            }
        };
        params.push(param);
        args.push(arg);
    }
    inner.ranges.bind_sizes(func);
    for (k, var) in shapes.iter().enumerate() {
        let (param, arg) = scalar_argument(var, &mut inner, &mut outer, func.params.len() + k)?;
        params.push(param);
        args.push(arg);
    }
    for (slot, param) in func.params.iter().enumerate() {
        if let Param::Buffer { buffer, .. } = param {
            let mut first = Val::new(Ty::PTR, format!("%p{slot}"));
            // The argument points to the first element, the buffer's pointer to offset zero.
            if let Some(offset) = &buffer.elem_offset {
                let at = inner.index64(offset).map_err(|e| {
                    e.note(format!("it is in the offset of parameter `{}`", buffer.name))
                })?;
                let size = buffer.dtype().bytes() * usize::from(buffer.dtype().lanes);
                let back = inner.code.mul_index(&at, &Val::int(Ty::I64, -(size as i64)), true);
                first = inner.code.emit(Ty::PTR, format_args!("getelementptr i8, {first}, {back}"));
            }
            inner.env.insert(buffer.data.clone(), first);
            inner.owned.insert(buffer.data.clone());
        }
    }

    inner.stmt(&func.body)?;
    inner.code.line(format_args!("ret i32 0"));
    let implementation = format!("{SYMBOL}.impl");
    // A copy for each member of a family is what families are there to avoid.
    let once = format!("{ONLY_IN_FAMILIES}noduplicate {ONLY_IN_FAMILIES}");
    let params = params.join(", ");
    let head =
        format!("define internal i32 @{implementation}({params}{ARGUMENT}) noinline {once}#0");
    shared.function(inner.code.finish(&head));
    let call = format_args!("call i32 @{implementation}({}{ARGUMENT})", args.join(", "));
    let result = outer.emit(Ty::I32, call);
    outer.line(format_args!("ret {result}"));
    Ok(outer.finish(&format!("define hidden i32 @{symbol}(ptr %ctx, ptr %args) #0")))
}

fn scalar_argument(
    var: &Var,
    inner: &mut Func<'_>,
    outer: &mut Code<'_>,
    slot: usize,
) -> Result<(String, String)> {
    let value = unpack(outer, slot, var.dtype())?;
    let name = Val::new(value.ty, format!("%p{slot}"));
    inner.bind(var, name.clone());
    Ok((name.to_string(), value.to_string()))
}

/// The value of one slot of the argument array.
fn unpack(c: &mut Code<'_>, slot: usize, dtype: DType) -> Result<Val> {
    let ty = register(dtype)?;
    if ty.lanes != 1 {
        return Err(Error::unsupported(format!("a parameter cannot have the type {dtype}")));
    }
    let at = Val::int(Ty::I64, slot as i64);
    let address = c.emit(Ty::PTR, format_args!("getelementptr inbounds i64, ptr %args, {at}"));
    if dtype == DType::HANDLE {
        return Ok(c.emit(Ty::PTR, format_args!("load ptr, {address}, align 8")));
    }
    let bits = c.emit(Ty::I64, format_args!("load i64, {address}, align 8"));
    Ok(match ty.scalar {
        Scalar::I1 => c.cmp("icmp ne", &bits, &Val::zero(Ty::I64)),
        Scalar::I64 => bits,
        Scalar::F64 => c.convert("bitcast", &bits, Scalar::F64),
        Scalar::F32 if is_narrow_float(dtype) => {
            let scalar = super::types::memory(dtype, c.shared.machine.half)?;
            let bits = c.convert("trunc", &bits, Scalar::I16);
            let bits = match scalar {
                Scalar::Half => c.convert("bitcast", &bits, Scalar::Half),
                _ => bits,
            };
            half::from_memory(c, &bits, dtype)
        }
        Scalar::F32 => {
            let bits = c.convert("trunc", &bits, Scalar::I32);
            c.convert("bitcast", &bits, Scalar::F32)
        }
        narrow => {
            debug_assert!(is_signed(dtype) || dtype.is_int());
            c.convert("trunc", &bits, narrow)
        }
    })
}
