//! Which buffer of a block a layout primitive speaks of.

use std::sync::Arc;

use tilewright_ir::visit::walk_func;
use tilewright_ir::{
    Block, Buffer, Error, Function, GraphExpr, Module, Param, Region, Result, TensorFunc, Visit,
};
use tilewright_transform::regions::declared_or_inferred;

use crate::schedule::Permissions;
use crate::trace::{Args, Value};

/// A buffer as an argument: `("read", 0)`, `("write", 1)`, or its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BufferArg {
    /// By position among the regions that the block reads.
    Read(usize),
    /// By position among the regions that the block writes.
    Write(usize),
    /// By name: of the block, or else of the function.
    Name(Arc<str>),
}

impl From<&str> for BufferArg {
    fn from(name: &str) -> Self {
        BufferArg::Name(name.into())
    }
}

impl From<&BufferArg> for Value {
    fn from(b: &BufferArg) -> Value {
        let pair = |side: &str, k: usize| {
            Value::List(vec![side.into(), Value::Int(i64::try_from(k).unwrap_or(i64::MAX))])
        };
        match b {
            BufferArg::Read(k) => pair("read", *k),
            BufferArg::Write(k) => pair("write", *k),
            BufferArg::Name(n) => Value::Str(n.clone()),
        }
    }
}

impl BufferArg {
    /// The argument `buffer` of a call.
    pub(crate) fn take(args: &mut Args) -> Result<BufferArg> {
        let value = args.required(&["buffer"])?;
        let expected = "`(\"read\", n)`, `(\"write\", n)` or a name";
        match &value {
            Value::Str(name) => Ok(BufferArg::Name(name.clone())),
            Value::List(items) => match items.as_slice() {
                [Value::Str(side), Value::Int(k)] => {
                    let at = usize::try_from(*k).map_err(|_| {
                        Error::refused(format!("a block has no buffer of number {k}"))
                    })?;
                    match &**side {
                        "read" => Ok(BufferArg::Read(at)),
                        "write" => Ok(BufferArg::Write(at)),
                        _ => Err(args.wrong("buffer", expected, &value)),
                    }
                }
                _ => Err(args.wrong("buffer", expected, &value)),
            },
            _ => Err(args.wrong("buffer", expected, &value)),
        }
    }

    /// The buffer.
    ///
    /// # Errors
    /// `Refused` where the block has no such buffer, with those that it has.
    pub(crate) fn find(&self, func: &TensorFunc, block: &Block) -> Result<Buffer> {
        let (reads, writes) = declared_or_inferred(block);
        let (list, at, does): (&[Region], usize, &str) = match self {
            BufferArg::Read(k) => (&reads, *k, "reads"),
            BufferArg::Write(k) => (&writes, *k, "writes"),
            BufferArg::Name(name) => return by_name(func, &reads, &writes, name),
        };
        list.get(at).map(|r| r.buffer.clone()).ok_or_else(|| {
            let names: Vec<&str> = list.iter().map(|r| &*r.buffer.name).collect();
            Error::refused(format!("the block `{}` {does} no buffer of number {at}", block.name))
                .note(format!("it {does}: {}", names.join(", ")))
        })
    }
}

fn by_name(func: &TensorFunc, reads: &[Region], writes: &[Region], name: &str) -> Result<Buffer> {
    let mut near = reads.iter().chain(writes).map(|r| &r.buffer);
    if let Some(b) = near.find(|b| &*b.name == name) {
        return Ok(b.clone());
    }
    let all = buffers(func);
    let mut same = all.iter().filter(|b| &*b.name == name);
    match (same.next(), same.next()) {
        (Some(b), None) => Ok(b.clone()),
        (Some(_), Some(_)) => {
            Err(Error::refused(format!("the function has several buffers called `{name}`")))
        }
        (None, _) => {
            let names: Vec<&str> = all.iter().map(|b| &*b.name).collect();
            Err(Error::refused(format!("there is no buffer `{name}`"))
                .note(format!("the function has the buffers: {}", names.join(", "))))
        }
    }
}

/// Every buffer that a function defines, in the order of the text.
pub(crate) fn buffers(func: &TensorFunc) -> Vec<Buffer> {
    #[derive(Default)]
    struct All(Vec<Buffer>);
    impl Visit for All {
        fn buffer_def(&mut self, b: &Buffer) {
            self.0.push(b.clone());
        }
    }
    let mut all = All::default();
    walk_func(&mut all, func);
    all.0
}

/// Whether the buffer is a parameter.
pub(crate) fn is_param(func: &TensorFunc, buffer: &Buffer) -> bool {
    func.params.iter().filter_map(Param::buffer).any(|b| b == buffer)
}

/// Refuses to change how an argument lies in memory where the interface must stay.
pub(crate) fn check_interface(
    func: &TensorFunc,
    buffer: &Buffer,
    name: &str,
    permissions: &Permissions,
    caller: Option<&Arc<str>>,
) -> Result<()> {
    if !is_param(func, buffer) {
        return Ok(());
    }
    let refuse = |why: String| {
        Err(Error::refused(format!("`{}` is an argument of `{name}`, {why}", buffer.name))
            .help("transform a copy instead: `cache_read` or `cache_write` outside of any loop"))
    };
    match caller {
        Some(caller) => refuse(format!("which `{caller}` calls with the present layout")),
        None if !permissions.change_interface => refuse("whose interface must stay".into()),
        None => Ok(()),
    }
}

/// A graph function of the module that calls a tensor function.
pub(crate) fn caller(module: &Module, callee: &str) -> Option<Arc<str>> {
    fn calls(e: &GraphExpr, callee: &str) -> bool {
        match e {
            GraphExpr::CallTir { func, args, .. } => {
                &**func == callee || args.iter().any(|a| calls(a, callee))
            }
            GraphExpr::Call { args, .. } | GraphExpr::Tuple(args) => {
                args.iter().any(|a| calls(a, callee))
            }
            GraphExpr::Item(e, _) => calls(e, callee),
            GraphExpr::Var(_) | GraphExpr::Const(_) => false,
        }
    }
    module.functions.iter().find_map(|(name, f)| match f {
        Function::Graph(g) => {
            let uses = g.bindings().any(|b| calls(&b.value, callee)) || calls(&g.ret, callee);
            uses.then(|| name.clone())
        }
        Function::Tensor(_) => None,
    })
}

impl From<(&str, usize)> for BufferArg {
    /// `("read", n)` or `("write", n)`; any other side is taken for a name, which is not found.
    fn from((side, at): (&str, usize)) -> Self {
        match side {
            "read" => BufferArg::Read(at),
            "write" => BufferArg::Write(at),
            _ => BufferArg::Name(side.into()),
        }
    }
}
