//! Lists and optionals of graph functions, and what is done to them.

use tilewright_ir::list::{Item, ListOp, stack};
use tilewright_ir::{Attr, Attrs, DType, Tensor};

fn ints(shape: &[usize], values: &[i64]) -> Item {
    Item::Tensor(Tensor::from_slice(shape, values).expect("a tensor"))
}

fn shapes(item: &Item) -> Vec<Vec<usize>> {
    match item {
        Item::Tensor(t) => vec![t.shape().to_vec()],
        Item::List(list) => list.iter().flat_map(shapes).collect(),
        Item::Nothing => Vec::new(),
    }
}

#[test]
fn lists_change_at_positions_that_may_count_from_the_end() {
    let none = Attrs::new();
    let list = ListOp::Of.apply(vec![ints(&[1], &[1]), ints(&[2], &[2, 3])], &none);
    let list = list.expect("a list");
    let more = ListOp::Insert
        .apply(vec![list.clone(), ints(&[0], &[]), ints(&[], &[-1])], &none)
        .expect("it fits");
    assert_eq!(shapes(&more), [vec![1], vec![0], vec![2]]);
    let less = ListOp::Erase.apply(vec![more], &none).expect("there is one");
    assert_eq!(shapes(&less), [vec![1], vec![0]]);
    for at in [2, -3, i64::MIN, i64::MAX] {
        let e = ListOp::At.apply(vec![list.clone(), ints(&[], &[at])], &none);
        let e = e.expect_err("no such position").to_string();
        assert_eq!(e, format!("there is no position {at} in a list of 2 values"));
    }
    let e = ListOp::Get.apply(vec![Item::Nothing], &none).expect_err("nothing");
    assert_eq!(e.to_string(), "the optional has no value");
}

#[test]
fn what_was_split_can_be_joined() {
    let x = Tensor::from_slice(&[2, 3, 2], &(0..12).collect::<Vec<i64>>()).expect("a tensor");
    for (axis, extent) in [(0, 2), (1, 3), (-1, 2)] {
        let attrs = Attrs::from([("axis".into(), Attr::Int(axis))]);
        for lengths in [None, Some(ints(&[], &[2])), Some(ints(&[2], &[0, extent]))] {
            let args = [Item::Tensor(x.clone())].into_iter().chain(lengths).collect();
            let parts = ListOp::Split.apply(args, &attrs).expect("parts");
            let whole = ListOp::Join.apply(vec![parts], &attrs).expect("one");
            assert!(whole.tensor().expect("a tensor").same(&x));
        }
        let single = Attrs::from([
            ("axis".into(), Attr::Int(axis)),
            ("keepdims".into(), Attr::Int(0)),
            ("new_axis".into(), Attr::Int(1)),
        ]);
        let parts = ListOp::Split.apply(vec![Item::Tensor(x.clone())], &single);
        let parts = parts.expect("parts");
        assert_eq!(shapes(&parts)[0].len(), 2);
        let whole = ListOp::Join.apply(vec![parts], &single).expect("one");
        assert!(whole.tensor().expect("a tensor").same(&x));
    }
    let wrong = vec![Item::Tensor(x), ints(&[2], &[i64::MAX, i64::MAX])];
    assert!(ListOp::Split.apply(wrong, &Attrs::new()).is_err());
}

#[test]
fn no_iterations_have_the_shape_of_the_type() {
    let t = stack(&[], DType::F32, &[3, 0]).expect("empty");
    assert_eq!(t.shape(), [0, 3, 0]);
    let one = Tensor::from_slice(&[2], &[1.0f32, 2.0]).expect("a tensor");
    let two = stack(&[one.clone(), one], DType::F32, &[]).expect("two rows");
    assert_eq!(two.shape(), [2, 2]);
}
