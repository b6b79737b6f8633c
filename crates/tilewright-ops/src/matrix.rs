//! What is said of whole matrices.

use tilewright_ir::{Buffer, DType, Error, Expr, Intrin, Result, Stmt, TensorFunc, Var};

use crate::loops::{call, cells, number};
use crate::operand::{Operand, require_float, working};
use crate::te;

/// The determinants of square matrices, the last two axes, by elimination with the largest pivot of a
/// column. Parameters: `x`, the result, which lacks these axes.
///
/// # Errors
/// [`Error::Input`] for matrices that are not square, [`Error::Unsupported`] for other types than
/// floats.
pub fn det(x: &Operand) -> Result<TensorFunc> {
    let name = "det";
    require_float(name, x.dtype)?;
    let x = x.fixed(name)?;
    let [outer @ .., rows, columns] = x.shape.as_slice() else {
        return Err(Error::input(format!("{name}: {x} has no matrices")));
    };
    if rows != columns {
        return Err(Error::input(format!("{name}: {x} has matrices that are not square")));
    }
    let n = *rows;
    let (dtype, work) = (x.dtype, working(x.dtype));
    let tensors = [x.placeholder("x"), te::placeholder(name, outer, dtype)];
    tensors.iter().try_for_each(te::check_type)?;
    let [x, out] = tensors.map(|t| t.buffer().clone());
    let m = Buffer::new("m", vec![number(n.max(1)), number(n.max(1))], work);
    let product = Buffer::with_extents("product", &[1], work);
    let pivot = Buffer::with_extents("pivot", &[1], DType::I32);
    let here = || vec![Expr::i32(0)];
    let allocs = vec![m.clone(), product.clone(), pivot.clone()];
    cells(name, &[&x, &out], &te::dims(outer), allocs, |at| {
        let float = |v: f64| Expr::float(v, work);
        let cell = |i: &Expr, j: &Expr| Expr::load(&m, vec![i.clone(), j.clone()]);
        let put = |i: &Expr, j: &Expr, v: Expr| Stmt::store(&m, vec![i.clone(), j.clone()], v);
        let size = |v: Expr| call(Intrin::Abs, v);
        let [i, j, k, row, other, column, swapped] =
            ["i", "j", "k", "row", "other", "column", "swapped"].map(Var::index);
        let load = Expr::load(&x, at.iter().cloned().chain([i.expr(), j.expr()]).collect());
        let copy = put(&i.expr(), &j.expr(), load.cast(work));
        let copy = Stmt::serial(&i, number(n), Stmt::serial(&j, number(n), copy));
        let best = Expr::load(&pivot, here()).max(0).min(n.max(1) as i64 - 1);
        let at_k = k.expr();
        let larger = size(cell(&row.expr(), &at_k)).greater(size(cell(&best, &at_k)));
        let search = Stmt::guard(
            row.expr().greater(k.expr()).and(larger),
            Stmt::store(&pivot, here(), row.expr()),
        );
        let search = Stmt::serial(&row, number(n), search);
        let chosen = Var::index("chosen");
        let exchange = {
            let kept = Var::new("kept", work);
            let s = swapped.expr();
            let swap = Stmt::seq([
                put(&at_k, &s, cell(&chosen.expr(), &s)),
                put(&chosen.expr(), &s, kept.expr()),
            ]);
            let swap = Stmt::let_in(&kept, cell(&at_k, &s), swap);
            let turned = Stmt::store(&product, here(), -Expr::load(&product, here()));
            let all = Stmt::seq([Stmt::serial(&swapped, number(n), swap), turned]);
            Stmt::guard(chosen.expr().not_equal(k.expr()), all)
        };
        let exchange = Stmt::let_in(&chosen, best, exchange);
        let grow = Expr::load(&product, here()) * cell(&at_k, &at_k);
        let grow = Stmt::store(&product, here(), grow);
        let eliminate = {
            let factor = Var::new("factor", work);
            let (o, c) = (other.expr(), column.expr());
            let less = cell(&o, &c) - factor.expr() * cell(&at_k, &c);
            let less = Stmt::guard(c.clone().greater(at_k.clone()), put(&o, &c, less));
            let less = Stmt::serial(&column, number(n), less);
            let less = Stmt::let_in(&factor, cell(&o, &at_k) / cell(&at_k, &at_k), less);
            let wanted = o.greater(at_k.clone()).and(cell(&at_k, &at_k).not_equal(float(0.0)));
            Stmt::serial(&other, number(n), Stmt::guard(wanted, less))
        };
        let step = Stmt::seq([
            Stmt::store(&pivot, here(), at_k.clone()),
            search,
            exchange,
            grow,
            eliminate,
        ]);
        Stmt::seq([
            copy,
            Stmt::store(&product, here(), float(1.0)),
            Stmt::serial(&k, number(n), step),
            Stmt::store(&out, at.to_vec(), Expr::load(&product, here()).cast(dtype)),
        ])
    })
}
