use tilewright_ir::visit::{Visit, walk_stmt};
use tilewright_ir::{Attr, DType, Stmt, StmtKind, Tensor};
use tilewright_ops::Operand;
use tilewright_ops::coupling::coupled;
use tilewright_ops::te::Reducer;
use tilewright_ops::trees::{Node, Trees, lay_out};

use crate::nd::{Nd, check, refused};

/// What a row of features comes to, node by node.
fn walked(p: &Trees, x: &Nd, row: usize) -> Vec<f64> {
    let nothing = match p.combine {
        Reducer::Min => f64::INFINITY,
        Reducer::Max => f64::NEG_INFINITY,
        _ => 0.0,
    };
    let mut results = vec![nothing; p.results];
    for &root in &p.roots {
        let mut at = root;
        while let Node::Test { feature, low, high, children } = &p.nodes[at] {
            let v = x.at(&[row, *feature]);
            at = children[usize::from(*low <= v && v <= *high)];
        }
        let Node::Leaf(weights) = &p.nodes[at] else { continue };
        for (to, w) in weights {
            let so_far = &mut results[*to];
            *so_far = match p.combine {
                Reducer::Min => so_far.min(*w),
                Reducer::Max => so_far.max(*w),
                _ => *so_far + w,
            };
        }
    }
    results
}

fn agrees(p: &Trees, x: &Nd) {
    let dtype = p.x.dtype;
    let expected = Nd::build(&[x.shape[0], p.results], |i| walked(p, x, i[0])[i[1]]);
    let laid = lay_out(p).unwrap_or_else(|e| panic!("{e}"));
    let inputs: Vec<Tensor> =
        [x.tensor(dtype)].into_iter().chain(laid.tables().expect("tables")).collect();
    check(laid.function(), &inputs, &[(&expected, dtype)]);
}

/// Arbitrary trees over some features: each is grown to a depth of its own.
fn grown(
    depths: &[usize],
    features: usize,
    results: usize,
    weights: usize,
) -> (Vec<Node>, Vec<usize>) {
    let mut state = 7u64;
    let mut next = |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 33) % n as u64) as usize
    };
    let (mut nodes, mut roots) = (Vec::new(), Vec::new());
    for &depth in depths {
        roots.push(nodes.len());
        nodes.push(Node::Leaf(Vec::new()));
        let mut open = vec![(nodes.len() - 1, depth)];
        while let Some((at, left)) = open.pop() {
            if left == 0 || (next(4) == 0 && left < depth) {
                let all = (0..weights).map(|_| (next(results), next(64) as f64 / 8.0 - 3.0));
                nodes[at] = Node::Leaf(all.collect());
                continue;
            }
            let value = next(64) as f64 / 8.0 - 4.0;
            let inf = f64::INFINITY;
            let (low, high) =
                [(-inf, value), (value, inf), (value, value + 2.0), (value, value)][next(4)];
            let children = [nodes.len(), nodes.len() + 1];
            nodes.extend([Node::Leaf(Vec::new()), Node::Leaf(Vec::new())]);
            nodes[at] = Node::Test { feature: next(features), low, high, children };
            // One side of a deep tree ends soon.
            open.push((children[0], if left > 6 { 1 } else { left - 1 }));
            open.push((children[1], left - 1));
        }
    }
    (nodes, roots)
}

#[test]
fn rows_walk_down_every_tree() {
    let depths = [3, 0, 5, 3, 1, 12, 2, 21];
    for combine in [Reducer::Sum, Reducer::Min, Reducer::Max] {
        for (results, weights) in [(1, 1), (3, 1), (3, 3), (9, 1)] {
            for rows in [1, 16, 37] {
                let (nodes, roots) = grown(&depths, 4, results, weights);
                let x = Operand::new(&[rows, 4], DType::F64);
                let mut data = Nd::random(&[rows, 4], 3);
                data.set(&[rows - 1, 2], f64::NAN);
                agrees(&Trees { x, nodes, roots, results, combine }, &data);
            }
        }
    }
}

/// How many loops over a set have an annotation of a value, and how many there are.
struct Loops(usize, usize);

impl Visit for Loops {
    fn stmt(&mut self, s: &Stmt) {
        if let StmtKind::For { var, annotations, .. } = s.kind()
            && var.name().starts_with("lane")
        {
            let scalar = annotations
                .iter()
                .any(|(key, value)| &**key == "pragma_vectorize" && matches!(value, Attr::Int(0)));
            self.0 += usize::from(scalar);
            self.1 += 1;
        }
        walk_stmt(self, s);
    }
}

#[test]
fn walks_are_scalar_loads_side_by_side() {
    for depth in [2, 5, 21] {
        let (nodes, roots) = grown(&[depth; 3], 4, 1, 1);
        let x = Operand::new(&[40, 4], DType::F32);
        let p = Trees { x, nodes, roots, results: 1, combine: Reducer::Sum };
        let func = lay_out(&p).and_then(|laid| laid.function()).expect("trees");
        let mut loops = Loops(0, 0);
        loops.stmt(&func.body);
        assert!(loops.0 > 0, "no walk of depth {depth} is one by one, of {} loops", loops.1);
    }
}

#[test]
fn trees_may_share_nodes_and_there_may_be_many() {
    let leaf = |v: f64| Node::Leaf(vec![(0, v)]);
    let test = |feature: usize, high: f64, children: [usize; 2]| Node::Test {
        feature,
        low: f64::NEG_INFINITY,
        high,
        children,
    };
    let nodes = vec![test(0, 0.5, [1, 2]), leaf(1.0), test(1, -1.0, [1, 3]), leaf(5.0)];
    let x = Operand::new(&[19, 2], DType::F32);
    // More trees than walk side by side.
    let roots = [0usize, 2].repeat(9);
    let p = Trees { x, nodes, roots, results: 1, combine: Reducer::Sum };
    agrees(&p, &Nd::random(&[19, 2], 5));
}

#[test]
fn what_is_no_tree_is_refused() {
    let test = |feature: usize, children: [usize; 2]| Node::Test {
        feature,
        low: 0.0,
        high: 1.0,
        children,
    };
    let of = |nodes: Vec<Node>, x: &[usize]| {
        let x = Operand::f32(x);
        let p = Trees { x, nodes, roots: vec![0], results: 2, combine: Reducer::Sum };
        refused(lay_out(&p).and_then(|laid| laid.function()))
    };
    let leaf = || Node::Leaf(vec![(1, 1.0)]);
    let messages = [
        of(vec![test(0, [1, 2]), leaf()], &[3, 2]),
        of(vec![test(2, [1, 1]), leaf()], &[3, 2]),
        of(vec![test(0, [1, 0]), leaf()], &[3, 2]),
        of(vec![test(0, [1, 2]), leaf(), test(1, [0, 1])], &[3, 2]),
        of(vec![Node::Leaf(vec![(2, 1.0)])], &[3, 2]),
        of(vec![leaf()], &[3]),
    ];
    expect_test::expect![[r#"
        input: trees: there is no node 2
        input: trees: there is no feature 2 of 2
        input: trees: node 0 leads back to itself
        input: trees: node 0 leads back to itself
        input: trees: there is no result 2 of 2
        input: trees: float32[3] is no matrix
    "#]]
    .assert_eq(&(messages.join("\n") + "\n"));
}

#[test]
fn pairs_that_agree_have_one_solution() {
    // How likely the first of two is, of classes that are this likely.
    for likely in [vec![0.2, 0.5, 0.3], vec![0.9, 0.1], vec![0.1, 0.2, 0.3, 0.4]] {
        let k = likely.len();
        let pairs = Nd::build(&[3, k, k], |i| {
            if i[1] == i[2] { 0.0 } else { likely[i[1]] / (likely[i[1]] + likely[i[2]]) }
        });
        let func = coupled(&Operand::f32(&[3, k, k])).expect("a function");
        let results = crate::nd::run(Ok(func), &[pairs.f32()]);
        assert_eq!(results[0].shape(), [3, k]);
        for at in 0..3 * k {
            let (got, want) = (results[0].get_f64(at), likely[at % k]);
            // It ends near the solution.
            assert!((got - want).abs() < 0.005, "{got}, not {want}");
        }
    }
    assert!(coupled(&Operand::f32(&[3, 2, 3])).is_err());
}
