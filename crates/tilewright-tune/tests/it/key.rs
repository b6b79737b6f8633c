//! What two measurements share a key.

use std::sync::Arc;

use tilewright_ir::{Source, TensorFunc};
use tilewright_tune::Scope;
use tilewright_tvmscript::parse_module;

fn func(text: &str) -> Arc<TensorFunc> {
    let module = parse_module(&Source::new("f.py", text.to_owned())).expect("a module");
    let (_, func) = module.tensors().next().expect("a function");
    func.clone()
}

fn sum(name: &str, axis: &str, extent: usize) -> String {
    format!(
        "@T.prim_func
def {name}(A{name}: T.Buffer(({extent}, 4), \"float32\"), S: T.Buffer(({extent},), \"float32\")):
    t{name} = T.alloc_buffer(({extent},))
    for {axis}, k in T.grid({extent}, 4):
        with T.block(\"{name}\"):
            v{axis}, vk = T.axis.remap(\"SR\", [{axis}, k])
            with T.init():
                t{name}[v{axis}] = T.float32(0)
            t{name}[v{axis}] = t{name}[v{axis}] + A{name}[v{axis}, vk]
    for i in range({extent}):
        with T.block(\"out\"):
            v = T.axis.spatial({extent}, i)
            S[v] = t{name}[v]
"
    )
}

#[test]
fn names_do_not_count_and_all_else_does() {
    let scope = Scope { target: "a machine".to_owned(), threads: 1 };
    let key = |f: &TensorFunc, free: &[usize]| scope.function(f, free.iter().copied());
    let (a, b, c) = (func(&sum("f", "i", 7)), func(&sum("g", "j", 7)), func(&sum("f", "i", 8)));
    assert_eq!(key(&a, &[]), key(&b, &[]));
    assert_ne!(key(&a, &[]), key(&c, &[]));
    assert_ne!(key(&a, &[]), key(&a, &[0]));
    assert_eq!(key(&a, &[0]), key(&b, &[0]));
    let more = Scope { threads: 2, ..scope.clone() };
    assert_ne!(key(&a, &[]), more.function(&a, []));
    let other = Scope { target: "another".to_owned(), ..scope.clone() };
    assert_ne!(key(&a, &[]), other.function(&a, []));
    assert_ne!(scope.model("text", "nhwc"), scope.model("text", "none"));
    // Parts of a key do not run into each other.
    assert_ne!(scope.model("ab", "c"), scope.model("a", "bc"));
}
