//! Attributes of tensor functions that passes over graphs leave for memory planning.

use tilewright_ir::{Attr, TensorFunc};

/// Attribute of a tensor function whose result is its input under another shape: memory planning
/// gives both the same memory, and the function is not called. Set by `legalize`.
pub const VIEW: &str = "tilewright.view";

/// Attribute of a tensor function whose inputs lie in its result: for each, where the box that it is
/// there begins along each axis, an index, or `[k]` where the box of input `k` ends. Memory planning
/// places them so, and the function is not called. Set by `place_parts`.
pub const PARTS: &str = "tilewright.parts";

/// Attribute of a tensor function whose result lies in its input: the indices of its first cell, and for
/// each axis of it how far a step goes along each axis of the input. Memory planning places it so, and
/// the function is not called. Set by `place_parts`.
pub const SLICE: &str = "tilewright.slice";

/// Whether memory planning places what a tensor function computes, so that nothing calls it.
pub fn is_placed(func: &TensorFunc) -> bool {
    [VIEW, PARTS, SLICE].iter().any(|key| func.attrs.contains_key(*key))
}

/// Attribute of a tensor function that copies because the copy is needed. Set by `legalize`;
/// such a function is neither a view nor fused.
pub const COPY: &str = "tilewright.copy";

/// Attribute of a tensor function that keeps most of an input: the place of that among the parameters, and the
/// name of the function that writes what differs ([`in_place`](crate::in_place)).
pub const IN_PLACE: &str = "tilewright.in_place";

/// Numbers as an attribute.
pub fn list(numbers: &[usize]) -> Attr {
    Attr::List(numbers.iter().map(|n| Attr::Int(*n as i64)).collect())
}

/// The items of a list, each as `item` reads it.
pub fn items<T>(a: &Attr, item: impl Fn(&Attr) -> Option<T>) -> Option<Vec<T>> {
    match a {
        Attr::List(list) => list.iter().map(item).collect(),
        _ => None,
    }
}

/// The numbers that an attribute lists.
pub fn numbers(a: &Attr) -> Option<Vec<usize>> {
    items(a, |a| match a {
        Attr::Int(n) => usize::try_from(*n).ok(),
        _ => None,
    })
}
