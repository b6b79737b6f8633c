//! Which stages are computed where they are read.

use tilewright_analysis::{Stage, open_stages};
use tilewright_ir::{Buffer, DType, Expr, Intrin, IterKind, Param, Stmt, TensorFunc, Var};
use tilewright_transform::inline_spatial;

/// Buffers, and stages that are spatial over the whole buffer that they write.
#[derive(Default)]
struct Build {
    params: Vec<Buffer>,
    allocs: Vec<Buffer>,
    stages: Vec<Stmt>,
}

fn buffer(name: &str, shape: &[i64]) -> Buffer {
    Buffer::with_extents(name, shape, DType::F32)
}

impl Build {
    fn param(&mut self, name: &str, shape: &[i64]) -> Buffer {
        self.params.push(buffer(name, shape));
        buffer_of(&self.params)
    }

    fn alloc(&mut self, name: &str, shape: &[i64]) -> Buffer {
        self.allocs.push(buffer(name, shape));
        buffer_of(&self.allocs)
    }

    fn spatial(&mut self, out: &Buffer, value: impl Fn(&[Expr]) -> Expr) {
        let iters = spatial_iters(out);
        let at: Vec<Expr> = iters.iter().map(|i| i.0.expr()).collect();
        let name = out.name.clone();
        let stage = Stage::build(name, &iters, out, at.clone(), value(&at), None);
        self.stages.push(stage.stmt);
    }

    fn sum(&mut self, out: &Buffer, extent: i64, value: impl Fn(&[Expr]) -> Expr) {
        let mut iters = spatial_iters(out);
        let at: Vec<Expr> = iters.iter().map(|i| i.0.expr()).collect();
        iters.push((Var::index("k"), extent, IterKind::Reduce));
        let all: Vec<Expr> = iters.iter().map(|i| i.0.expr()).collect();
        let sum = out.load(at.clone()) + value(&all);
        let zero = Some(Expr::float(0.0, DType::F32));
        self.stages.push(Stage::build(out.name.clone(), &iters, out, at, sum, zero).stmt);
    }

    fn inlined(&self) -> Vec<String> {
        let params = self.params.iter().map(Param::tensor).collect();
        let f = TensorFunc::new(params, Stmt::nop())
            .with_root(self.allocs.clone(), Stmt::seq(self.stages.clone()));
        let f = inline_spatial(&f);
        open_stages(&f)
            .expect("still canonical")
            .iter()
            .map(|s| format!("{} = {}", s.buffer.load(s.indices.clone()), s.value))
            .collect()
    }
}

fn buffer_of(list: &[Buffer]) -> Buffer {
    list.last().expect("just pushed").clone()
}

fn spatial_iters(out: &Buffer) -> Vec<(Var, i64, IterKind)> {
    let shape = out.const_shape().expect("constant");
    let names = ["i", "j", "l"].map(Var::index);
    names.into_iter().zip(shape).map(|(v, e)| (v, e, IterKind::Spatial)).collect()
}

fn exp(e: Expr) -> Expr {
    Expr::intrin(Intrin::Exp, vec![e])
}

#[test]
fn a_chain_becomes_one_stage() {
    let mut b = Build::default();
    let (x, t, u, y) =
        (b.param("x", &[4, 6]), b.alloc("t", &[4, 6]), b.alloc("u", &[6, 4]), b.param("y", &[24]));
    b.spatial(&t, |at| exp(x.load(at.to_vec())));
    b.spatial(&u, |at| t.load([at[1].clone(), at[0].clone()]));
    b.spatial(&y, |at| u.load([at[0].clone().floordiv(4), at[0].clone().floormod(4)]) * 2.0);
    assert_eq!(b.inlined(), ["y[i] = T.exp(x[i % 4, i // 4]) * T.float32(2.0)"]);
}

#[test]
fn one_cell_is_computed_once() {
    let mut b = Build::default();
    let (x, t, y) = (b.param("x", &[4]), b.alloc("t", &[4]), b.param("y", &[4]));
    b.spatial(&t, |at| exp(x.load(at.to_vec())));
    b.spatial(&y, |at| t.load(at.to_vec()) * t.load(at.to_vec()));
    assert_eq!(b.inlined(), ["y[i] = T.Let(t * t, where={t: T.exp(x[i])})"]);
    // A few operations are repeated: the code generator shares them.
    let mut b = Build::default();
    let (x, t, y) = (b.param("x", &[4]), b.alloc("t", &[4]), b.param("y", &[4]));
    b.spatial(&t, |at| x.load(at.to_vec()) + 3.0);
    b.spatial(&y, |at| t.load(at.to_vec()) * t.load(at.to_vec()));
    let sum = "(x[i] + T.float32(3.0))";
    assert_eq!(b.inlined(), [format!("y[i] = {sum} * {sum}")]);
}

#[test]
fn a_long_chain_of_doublings_stays_bounded() {
    let mut b = Build::default();
    let mut last = b.param("x", &[4]);
    for n in 0..200 {
        let next = if n < 199 { b.alloc("t", &[4]) } else { b.param("y", &[4]) };
        b.spatial(&next, |at| last.load(at.to_vec()) * last.load(at.to_vec()));
        last = next;
    }
    let left = b.inlined();
    assert!(left.len() < 60, "{}", left.len());
    assert!(left.iter().all(|s| s.len() < 20 * 1024));
}

#[test]
fn nothing_expensive_is_computed_for_each_step_of_a_reduction() {
    let mut b = Build::default();
    let (x, w) = (b.param("x", &[4, 6]), b.param("w", &[6, 5]));
    let (t, y) = (b.alloc("t", &[4, 6]), b.param("y", &[4, 5]));
    b.spatial(&t, |at| exp(x.load(at.to_vec())));
    b.sum(&y, 6, |at| {
        t.load([at[0].clone(), at[2].clone()]) * w.load([at[2].clone(), at[1].clone()])
    });
    assert_eq!(b.inlined(), ["t[i, j] = T.exp(x[i, j])", "y[i, j] = y[i, j] + t[i, k] * w[k, j]"]);
    // Where every cell is read once, nothing is repeated.
    let mut b = Build::default();
    let (x, t, y) = (b.param("x", &[4, 6]), b.alloc("t", &[4, 6]), b.param("y", &[4]));
    b.spatial(&t, |at| exp(x.load(at.to_vec())));
    b.sum(&y, 6, |at| t.load(at.to_vec()));
    assert_eq!(b.inlined(), ["y[i] = y[i] + T.exp(x[i, k])"]);
}

#[test]
fn padding_stays_out_of_a_reduction_and_lazy_in_a_map() {
    let mut b = Build::default();
    let (x, p, y) = (b.param("x", &[4]), b.alloc("p", &[6]), b.param("y", &[2]));
    pad_of(&mut b, &x, &p);
    b.sum(&y, 3, |at| p.load([&at[0] * 3 + &at[1]]));
    assert_eq!(b.inlined().len(), 2);

    let mut b = Build::default();
    let (x, t) = (b.param("x", &[4]), b.alloc("t", &[4]));
    let (p, y) = (b.alloc("p", &[6]), b.param("y", &[6]));
    b.spatial(&t, |at| x.load(at.to_vec()) * 2.0);
    pad_of(&mut b, &t, &p);
    b.spatial(&y, |at| p.load(at.to_vec()) + 1.0);
    assert_eq!(
        b.inlined(),
        [
            "t[i] = x[i] * T.float32(2.0)",
            "y[i] = T.if_then_else(i >= 1 and i < 5, t[i - 1], T.float32(0.0)) + T.float32(1.0)"
        ]
    );
}

fn pad_of(b: &mut Build, x: &Buffer, p: &Buffer) {
    let x = x.clone();
    b.spatial(p, move |at| {
        let i = &at[0];
        let inside = i.clone().greater_equal(1).and(i.clone().less(5));
        Expr::if_then_else(inside, x.load([i - 1]), Expr::float(0.0, DType::F32))
    });
}

#[test]
fn a_reduction_keeps_its_result_for_the_stage_after_it() {
    let mut b = Build::default();
    let (x, bias, s) = (b.param("x", &[4, 6]), b.param("b", &[4]), b.alloc("s", &[4]));
    let (t, y) = (b.alloc("t", &[4]), b.param("y", &[4]));
    b.sum(&s, 6, |at| x.load(at.to_vec()));
    b.spatial(&t, |at| s.load(at.to_vec()) + bias.load(at.to_vec()));
    b.spatial(&y, |at| t.load(at.to_vec()).max(0.0));
    assert_eq!(b.inlined(), ["s[i] = s[i] + x[i, k]", "y[i] = T.max(s[i] + b[i], T.float32(0.0))"]);
}

#[test]
fn a_broadcast_of_arithmetic_is_computed_before() {
    let mut b = Build::default();
    let (x, t, y) = (b.param("x", &[4]), b.alloc("t", &[4]), b.param("y", &[4, 9]));
    b.spatial(&t, |at| x.load(at.to_vec()) * 2.0);
    b.spatial(&y, |at| t.load([at[0].clone()]) + 1.0);
    assert_eq!(b.inlined().len(), 2);
    // Moving data costs nothing.
    let mut b = Build::default();
    let (x, t, y) = (b.param("x", &[4]), b.alloc("t", &[4, 1]), b.param("y", &[4, 9]));
    b.spatial(&t, |at| x.load([at[0].clone()]));
    b.spatial(&y, |at| t.load([at[0].clone(), Expr::i32(0)]) + 1.0);
    assert_eq!(b.inlined(), ["y[i, j] = x[i] + T.float32(1.0)"]);
}

#[test]
fn cheap_values_go_to_several_readers_and_unread_stages_go() {
    let mut b = Build::default();
    let (x, t, unread) = (b.param("x", &[4]), b.alloc("t", &[4]), b.alloc("u", &[4]));
    let (y, z) = (b.param("y", &[4]), b.param("z", &[4]));
    b.spatial(&t, |at| x.load(at.to_vec()) + 1.0);
    b.spatial(&unread, |at| t.load(at.to_vec()) * 9.0);
    b.spatial(&y, |at| t.load(at.to_vec()) * 2.0);
    b.spatial(&z, |at| exp(t.load(at.to_vec())));
    let sum = "x[i] + T.float32(1.0)";
    assert_eq!(
        b.inlined(),
        [format!("y[i] = ({sum}) * T.float32(2.0)"), format!("z[i] = T.exp({sum})")]
    );
}

#[test]
fn a_buffer_of_several_writers_stays() {
    let mut b = Build::default();
    let (x, t, y) = (b.param("x", &[4]), b.alloc("t", &[8]), b.param("y", &[8]));
    for half in 0..2 {
        let i = Var::index("i");
        let at = vec![&i + half * 4];
        let value = x.load([i.expr()]);
        let iters = [(i, 4, IterKind::Spatial)];
        b.stages.push(Stage::build("t", &iters, &t, at, value, None).stmt);
    }
    b.spatial(&y, |at| t.load(at.to_vec()) * 2.0);
    assert_eq!(b.inlined().len(), 3);
}
