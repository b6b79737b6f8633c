//! Fragments that lanes of a warp load together, against the tables of the PTX ISA.

use tilewright_ir::{
    Attr, Attrs, Buffer, CallTarget, DType, Expr, ExprKind, ForKind, Param, Range, Stmt, StmtKind,
    TensorFunc, Var,
};
use tilewright_polyhedral::evaluate;
use tilewright_target::{LOAD_MATRIX, TENSOR_INSTRUCTION, Tile, WarpOperand};
use tilewright_transform::lower::lower;

const ROW: i64 = 40;

fn threads(var: &Var, axis: &str, count: i32, body: Stmt) -> Stmt {
    let kind = ForKind::ThreadBinding(axis.into());
    Stmt::for_loop(var, Range::upto(Expr::i32(count)), kind, body)
}

/// A group that copies a matrix of shared memory to a fragment, and stores the fragment; memory lies row after row, or
/// column after column, and neighbours lie so many elements apart. What the call is called, the address that each lane
/// gives, and the lane; `None` where no call is made.
fn loaded_by_lanes(tile: &Tile, turned: bool, apart: i64) -> Option<(String, Expr, Var)> {
    let shared = Buffer::with_extents("S", &[32 * ROW], DType::F16)
        .derive_storage(|b| b.scope = "shared".into());
    let fragment = Buffer::with_extents("F", &tile.shape(), DType::F16)
        .derive_storage(|b| b.scope = "local".into());
    let out = Buffer::with_extents("C", &tile.shape(), DType::F16);
    let [i, k, t, u, r, group] = ["i", "k", "t", "u", "r", "b"].map(Var::index);
    let fill = Stmt::serial(
        &r,
        Expr::i32(ROW as i32),
        Stmt::store(&shared, vec![t.expr() * ROW + r.expr()], Expr::float(0.0, DType::F16)),
    );
    let (slow, fast) = if turned { (&k, &i) } else { (&i, &k) };
    let place = slow.expr() * ROW + fast.expr() * apart;
    let copy = Stmt::store(&fragment, tile.layout(&i.expr(), &k.expr()), shared.load([place]));
    let mut marked = Attrs::default();
    marked.insert(TENSOR_INSTRUCTION.into(), Attr::Str(LOAD_MATRIX.into()));
    let load = Stmt::new(StmtKind::For {
        var: i,
        range: Range::upto(Expr::i32(16)),
        kind: ForKind::Serial,
        annotations: marked,
        body: Stmt::serial(&k, Expr::i32(tile.columns as i32), copy),
    });
    let registers = tile.shape()[1] as i32;
    let cell = vec![u.expr(), r.expr()];
    let store = Stmt::serial(
        &r,
        Expr::i32(registers),
        Stmt::store(&out, cell.clone(), fragment.load(cell)),
    );
    let body = Stmt::seq([
        threads(&t, "threadIdx.x", 32, fill),
        load,
        threads(&u, "threadIdx.x", 32, store),
    ]);
    let body = Stmt::allocate(&shared, Stmt::allocate(&fragment, body));
    let func = TensorFunc::new(vec![Param::tensor(&out)], threads(&group, "blockIdx.x", 1, body));
    let lowered = lower(&func).unwrap_or_else(|e| panic!("{}", e.render()));
    let (mut lane, mut call) = (None, None);
    lowered.body.for_each(|s| match s.kind() {
        StmtKind::For { var, kind, .. } if kind.thread_axis() == Some(0) => {
            lane = Some(var.clone());
        }
        StmtKind::Evaluate(e) => {
            if let ExprKind::Call(CallTarget::Extern(called), args) = e.kind()
                && let ExprKind::Load(_, at) = args[1].kind()
            {
                call = Some((called.to_string(), at[0].clone()));
            }
        }
        _ => {}
    });
    let (name, address) = call?;
    Some((name, address, lane?))
}

/// Lane `8 * r + q` gives the address of row `q` of matrix `r`, and each lane gets two neighbours of each matrix.
#[test]
fn matrices_are_spread_over_lanes_as_fragments_are() {
    for (operand, columns) in [(WarpOperand::Left, 16), (WarpOperand::Right, 8)] {
        let tile = Tile { dtype: DType::F16, rows: 16, columns, group: 1, warp: Some(operand) };
        for turned in [false, true] {
            let (name, address, lane) = loaded_by_lanes(&tile, turned, 1).expect("it is one");
            let row = |matrix: i64, q: i64| {
                let value = |v: &Var| (*v == lane).then_some(8 * matrix + q);
                evaluate(&address, &value).expect("a number")
            };
            let matrices = if columns == 16 { "ldmatrix_x4" } else { "ldmatrix_x2" };
            assert!(name.starts_with(matrices), "{name}");
            for (i, k) in (0..16).flat_map(|i| (0..columns).map(move |k| (i, k))) {
                let at = tile.layout(&Expr::i32(i as i32), &Expr::i32(k as i32));
                let [lane, number] =
                    [0, 1].map(|n| evaluate(&at[n], &|_: &Var| None).expect("a number"));
                let (matrix, first, second) = (number / 2, lane / 4, lane % 4 * 2 + number % 2);
                let got = if name.ends_with("_trans") {
                    row(matrix, second) + first
                } else {
                    row(matrix, first) + second
                };
                let wanted = if turned { k * ROW + i } else { i * ROW + k };
                assert_eq!(got, wanted, "{name} of {operand:?} at {i}, {k}");
            }
        }
        // Elements of a row must be neighbours.
        assert!(loaded_by_lanes(&tile, false, 2).is_none());
    }
}
