//! What is said of whole matrices.

use tilewright_ir::{Buffer, DType, Error, Expr, Intrin, Result, Stmt, TensorFunc};

use crate::loops::{buffers, cells, each, get, load, one_cell, set, store, with};
use crate::operand::{Operand, call, int, require_float, unequal, working};
use crate::te;

/// The determinants of square matrices, the last two axes, by elimination with the largest pivot of a
/// column. Parameters: `x`, the result, which lacks these axes.
///
/// # Errors
/// [`Error::Input`] for matrices that are not square, [`Error::Unsupported`] for those of open sizes and for
/// other types than floats.
pub fn det(x: &Operand) -> Result<TensorFunc> {
    let name = "det";
    require_float(name, x.dtype)?;
    let [outer @ .., rows, columns] = x.shape.as_slice() else {
        return Err(Error::input(format!("{name}: {x} has no matrices")));
    };
    if rows != columns {
        let error = Error::input(format!("{name}: {x} has matrices that are not square"));
        return Err(unequal(error, [(*rows, *columns)]));
    }
    let n = rows.fixed(name)?;
    let (dtype, work) = (x.dtype, working(x.dtype));
    let [x, out] = buffers([x.placeholder("x"), te::placeholder(name, outer, dtype)])?;
    let m = Buffer::new("m", vec![int(n.max(1)), int(n.max(1))], work);
    let (product, pivot) = (one_cell("product", work), one_cell("pivot", DType::I32));
    let allocs = vec![m.clone(), product.clone(), pivot.clone()];
    cells(name, &[&x, &out], outer, allocs, |at| {
        let copy = each("i", n, |i| {
            each("j", n, |j| {
                let from = at.iter().cloned().chain([i.clone(), j.clone()]).collect();
                store(&m, &[i, j], Expr::load(&x, from).cast(work))
            })
        });
        let best = get(&pivot).max(0).min(n.max(1) as i64 - 1);
        let steps = each("k", n, |k| {
            let search = each("row", n, |row| {
                let larger = call(Intrin::Abs, load(&m, &[row, k]))
                    .greater(call(Intrin::Abs, load(&m, &[&best, k])));
                Stmt::guard(row.clone().greater(k.clone()).and(larger), set(&pivot, row.clone()))
            });
            let exchange = with("chosen", best, |chosen| {
                let swap = each("swapped", n, |s| {
                    with("kept", load(&m, &[k, s]), |kept| {
                        Stmt::seq([
                            store(&m, &[k, s], load(&m, &[chosen, s])),
                            store(&m, &[chosen, s], kept.clone()),
                        ])
                    })
                });
                let turned = set(&product, -get(&product));
                Stmt::guard(chosen.clone().not_equal(k.clone()), Stmt::seq([swap, turned]))
            });
            let grow = set(&product, get(&product) * load(&m, &[k, k]));
            let eliminate = each("other", n, |o| {
                let less = with("factor", load(&m, &[o, k]) / load(&m, &[k, k]), |factor| {
                    each("column", n, |c| {
                        let less = load(&m, &[o, c]) - factor.clone() * load(&m, &[k, c]);
                        Stmt::guard(c.clone().greater(k.clone()), store(&m, &[o, c], less))
                    })
                });
                let wanted = o.clone().greater(k.clone());
                Stmt::guard(wanted.and(load(&m, &[k, k]).not_equal(Expr::float(0.0, work))), less)
            });
            Stmt::seq([set(&pivot, k.clone()), search, exchange, grow, eliminate])
        });
        Stmt::seq([
            copy,
            set(&product, Expr::float(1.0, work)),
            steps,
            Stmt::store(&out, at.to_vec(), get(&product).cast(dtype)),
        ])
    })
}
