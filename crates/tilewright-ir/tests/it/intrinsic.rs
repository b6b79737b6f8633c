//! The table of built-in functions: its rows fit one another, and what the functions compute.

use tilewright_ir::demand::demand;
use tilewright_ir::intrinsic::OfFloats;
use tilewright_ir::{CallTarget, DType, Expr, Intrin, Var};

#[test]
fn names_are_unique_and_rows_fit_what_they_compute() {
    let mut names: Vec<&str> = Vec::new();
    for op in Intrin::ALL {
        assert_eq!(Intrin::from_name(op.name()), Some(*op));
        names.push(op.name());
        names.extend(op.aliases());
        let takes = |t: DType| op.operands().admit(t);
        assert_eq!(takes(DType::F32), op.of_floats().is_some(), "{op:?}");
        assert_eq!(takes(DType::I32) || takes(DType::BOOL), op.of_ints().is_some(), "{op:?}");
        let keeps_type = [DType::F32, DType::F64].iter().all(|t| op.result(*t) == *t);
        match op.of_floats() {
            Some(OfFloats::One(_)) => assert_eq!((op.arity(), keeps_type), (1, true), "{op:?}"),
            Some(OfFloats::Two(_)) => assert_eq!((op.arity(), keeps_type), (2, true), "{op:?}"),
            Some(OfFloats::Is(_)) => assert!(op.arity() == 1 && op.is_predicate(), "{op:?}"),
            None => assert!(!op.is_predicate(), "{op:?}"),
        }
        // Two arguments, whatever it takes: what it needs of the second one.
        let args = vec![Var::index("x").expr(), Var::index("y").expr()];
        let need = demand(&Expr::call(CallTarget::Intrin(*op), args, DType::I32));
        assert!(!(op.commutes() || need.is_some()) || op.arity() == 2, "{op:?}");
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn bounds_and_directions_are_those_of_the_functions() {
    let points: Vec<f64> = (-40..=40).map(|k| f64::from(k) * 0.25).collect();
    for op in Intrin::ALL {
        let Some(f) = op.of_float() else { continue };
        for (x, next) in points.iter().zip(&points[1..]) {
            if let Some(bound) = op.bound(x.abs()) {
                assert!(f(*x).abs() <= bound * (1.0 + 1e-9), "{op:?} of {x}");
            }
            if op.rises_from(*x) {
                assert!(f(*x) <= f(*next), "{op:?} between {x} and {next}");
            }
            if op.is_exact() {
                assert_eq!(f64::from(f(*x) as f32), f(*x), "{op:?} of {x}");
            }
        }
    }
}
