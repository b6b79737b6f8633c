//! Constants in the metadata that TVM's printer puts after a module.
//!
//! The metadata is a JSON graph: `root_index` names a map from `"relax.expr.Constant"` to an
//! array of constants, each of which names a tensor: base 64 of a header (magic number, device,
//! rank, type, shape, size) and the bytes. JSON without `true`, `false` and `null` is Python, and
//! those three read as names, so Python's parser reads it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ruff_python_ast as ast;
use tilewright_ir::{DType, Error, Result, Tensor};

use crate::args::string;
use crate::expr::ExprParser;
use crate::syntax;

/// First bytes of a tensor.
const MAGIC: u64 = 0xDD5E_40F0_96B4_A13F;

/// The constants, in order, of `tvm.ir.load_json("...")`.
pub(crate) fn read(x: &ExprParser, e: &ast::Expr) -> Result<Vec<Tensor>> {
    let text = match e {
        ast::Expr::Call(c) => c.arguments.args.first(),
        _ => None,
    };
    let text = text.ok_or_else(|| Error::syntax("expected `tvm.ir.load_json(\"...\")`"));
    let text = text.and_then(string).map_err(|err| err.at(x.span(e)))?;
    let wrong = || x.error(e, "the metadata cannot be understood");
    let json = syntax::parse_expression(text).map_err(|_| wrong())?;
    constants(&json).ok_or_else(wrong)?.into_iter().map(|c| tensor(c).ok_or_else(wrong)).collect()
}

fn get<'a>(e: &'a ast::Expr, key: &str) -> Option<&'a ast::Expr> {
    let ast::Expr::Dict(d) = e else { return None };
    d.items
        .iter()
        .find(|i| i.key.as_ref().is_some_and(|k| string(k).is_ok_and(|s| s == key)))
        .map(|i| &i.value)
}

fn list(e: &ast::Expr) -> Option<&[ast::Expr]> {
    match e {
        ast::Expr::List(l) => Some(&l.elts),
        _ => None,
    }
}

fn index(e: &ast::Expr) -> Option<usize> {
    match e {
        ast::Expr::NumberLiteral(n) => match &n.value {
            ast::Number::Int(v) => v.as_usize(),
            _ => None,
        },
        _ => None,
    }
}

/// The tensors' texts.
fn constants(json: &ast::Expr) -> Option<Vec<&str>> {
    let nodes = list(get(json, "nodes")?)?;
    let root = node_at(get(json, "root_index")?, nodes)?;
    let entries = list(get(root, "data")?)?;
    let array = entries.chunks_exact(2).find(|pair| is_constants(&pair[0], nodes))?;
    let array = list(get(node_at(&array[1], nodes)?, "data")?)?;
    array
        .iter()
        .map(|e| {
            let constant = get(node_at(e, nodes)?, "data")?;
            string(get(node_at(get(constant, "data")?, nodes)?, "data")?).ok()
        })
        .collect()
}

fn node_at<'a>(e: &ast::Expr, nodes: &'a [ast::Expr]) -> Option<&'a ast::Expr> {
    nodes.get(index(e)?)
}

fn is_constants(key: &ast::Expr, nodes: &[ast::Expr]) -> bool {
    let key = node_at(key, nodes).and_then(|n| string(get(n, "data")?).ok());
    key == Some("relax.expr.Constant")
}

/// Reads fixed numbers of bytes from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }
}

fn tensor(text: &str) -> Option<Tensor> {
    let bytes = STANDARD.decode(text).ok()?;
    let mut at = Bytes(&bytes);
    let magic = u64::from_le_bytes(at.take()?);
    let (_reserved, _device) = (at.take::<8>()?, at.take::<8>()?);
    let rank = usize::try_from(i32::from_le_bytes(at.take()?)).ok()?;
    let [code, bits, lanes, lanes_high] = at.take()?;
    let dtype = match (code, bits) {
        (0, 8) => DType::I8,
        (0, 16) => DType::I16,
        (0, 32) => DType::I32,
        (0, 64) => DType::I64,
        (1, 1) => DType::BOOL,
        (1, 8) => DType::U8,
        (1, 16) => DType::U16,
        (1, 32) => DType::U32,
        (1, 64) => DType::U64,
        (2, 16) => DType::F16,
        (2, 32) => DType::F32,
        (2, 64) => DType::F64,
        (4, 16) => DType::BF16,
        (6, 8) => DType::BOOL,
        _ => return None,
    };
    let mut shape = Vec::new();
    for _ in 0..rank {
        shape.push(usize::try_from(i64::from_le_bytes(at.take()?)).ok()?);
    }
    let size = usize::try_from(i64::from_le_bytes(at.take()?)).ok()?;
    let valid = magic == MAGIC && lanes == 1 && lanes_high == 0 && size == at.0.len();
    Tensor::from_bytes(dtype, &shape, at.0).ok().filter(|_| valid)
}
