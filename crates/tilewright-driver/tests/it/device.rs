//! The same programs on a device of OpenCL and on the processor. Without a device these tests say so and
//! pass; with `TILEWRIGHT_TEST_DEVICE=1` they fail then. `TILEWRIGHT_TEST_TARGET=cuda` is for a GPU of NVIDIA
//! instead.

use std::sync::Arc;

use tilewright_driver::random::Random;
use tilewright_driver::{
    Error, Executable, LayoutPolicy, Module, Options, Sizes, Tensor, compile, load, parse,
};
use tilewright_runtime::{DeviceTensor, Operand};

/// Options for the first device; `None`, and a line, where there is none.
pub(crate) fn device() -> Option<Options> {
    let target = std::env::var("TILEWRIGHT_TEST_TARGET");
    match Options::new().cache(false).on(target.as_deref().unwrap_or("opencl")) {
        Ok(options) => Some(options),
        Err(e) if std::env::var_os("TILEWRIGHT_TEST_DEVICE").is_some() => panic!("{}", e.render()),
        Err(e) => {
            eprintln!("tests on a device did not run: {e}");
            None
        }
    }
}

/// Whether the device is one that has no textures here.
fn lacks_textures() -> bool {
    std::env::var("TILEWRIGHT_TEST_TARGET").is_ok_and(|target| target.starts_with("cuda"))
}

fn parsed(text: &str) -> Module {
    parse(text, &Sizes::new()).unwrap_or_else(|e| panic!("{}", e.render()))
}

fn compiled(module: &Module, options: &Options) -> Executable {
    compile(module, options).unwrap_or_else(|e| panic!("{}", e.render()))
}

fn inputs(executable: &Executable, seed: u64) -> Vec<Tensor> {
    let mut random = Random::new(seed);
    let ports = executable.inputs().iter();
    ports.map(|p| random.tensor(p.dtype, &p.fixed().expect("fixed")).expect("a tensor")).collect()
}

fn assert_near(a: &[Tensor], b: &[Tensor], error: f64) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()));
        for k in 0..a.len() {
            let (x, y) = (a.get_f64(k), b.get_f64(k));
            let same = x == y || (x.is_nan() && y.is_nan());
            assert!(same || (x - y).abs() <= error * (1.0 + y.abs()), "element {k}: {x} and {y}");
        }
    }
}

/// Compares device and processor on random inputs, scheduled and as written.
fn same(text: &str) {
    let Some(device) = device() else { return };
    let module = parsed(text);
    for schedule in [true, false] {
        let native = compiled(&module, &Options::new().cache(false).schedule(schedule));
        let own = compiled(&module, &device.clone().schedule(schedule));
        let inputs = inputs(&native, 5);
        let run = |e: &Executable| e.run(&inputs).unwrap_or_else(|e| panic!("{}", e.render()));
        assert_near(&run(&own), &run(&native), 1e-5);
        // A second run finds the memory of the first.
        assert_near(&run(&own), &run(&native), 1e-5);
    }
}

#[test]
fn a_ragged_product_is_the_same() {
    same(
        r#"
@T.prim_func
def f(A: T.Buffer((65, 77), "float32"), B: T.Buffer((77, 33), "float32"), C: T.Buffer((65, 33), "float32")):
    for i, j, k in T.grid(65, 33, 77):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"#,
    );
}

#[test]
fn vectors_masks_and_overlapping_stores_are_the_same() {
    same(
        r#"
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), C: T.Buffer((65,), "float32")):
    for i in range(4):
        B[T.Ramp(i * 16, 1, 16)] = A[T.Ramp(i * 16 + 15, -1, 16)] * T.Broadcast(A[i], 16)
    for i in range(8):
        C[T.Ramp(i * 8, 1, 8)] = A[T.Ramp(i * 8, 1, 8)]
    for i in range(5):
        C[T.Ramp(i * 12, 1, 12)] = T.max(A[T.Ramp(i * 12 + 1, 1, 12)], T.Broadcast(B[i], 12)) + A[T.Ramp(63 - i, -5, 12)]
    for i in range(2):
        B[T.Ramp(i * 30, 2, 15)] = B[T.Ramp(i * 30, 2, 15)] * C[T.Ramp(i, 1, 15)]
    C[64] = A[0]
    C[T.Ramp(1, 1, 64)] = C[T.Ramp(0, 1, 64)] + T.Broadcast(T.float32(1), 64)
    for i in range(8):
        if T.Ramp(i * 8, 1, 8) < T.Broadcast(61, 8):
            C[T.Ramp(i * 8, 1, 8)] = C[T.Ramp(i * 8, 1, 8)] * T.Broadcast(T.float32(2), 8)
"#,
    );
}

/// Squares that are transposed, and every second element up to the last one of a buffer.
#[test]
fn loops_across_rows_and_every_second_element_are_the_same() {
    for (rows, dtype) in
        [(4, "float32"), (8, "float32"), (16, "float32"), (8, "int32"), (4, "int64")]
    {
        let (apart, cells) = (rows + 7, 3 + rows + (rows - 1) * (rows + 7));
        let (square, pairs) = (rows * rows, 2 * rows - 1);
        same(&format!(
            r#"
@T.prim_func
def f(A: T.Buffer(({cells},), "{dtype}"), B: T.Buffer(({square},), "{dtype}"), C: T.Buffer(({pairs},), "{dtype}"), D: T.Buffer(({rows},), "{dtype}")):
    for j in T.unroll({rows}):
        B[T.Ramp(j * {rows}, 1, {rows})] = A[T.Ramp(j + 3, {apart}, {rows})] * T.Broadcast(A[j], {rows}) + A[T.Ramp(j, {apart}, {rows})]
    for i in range({pairs}):
        C[i] = A[i]
    D[T.Ramp(0, 1, {rows})] = C[T.Ramp(0, 2, {rows})] + T.Broadcast(C[1], {rows})
"#
        ));
    }
}

/// A store at an index that data say is between the two that a load may be of.
#[test]
fn what_a_kernel_stores_where_data_say_is_read_behind() {
    same(
        r#"
@T.prim_func
def f(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32"), C: T.Buffer((5,), "int32")):
    for i in range(4):
        B[i] = 0
    for i in range(4):
        B[T.max(T.min(A[i], 3), 0)] = i + 1
    for i in range(5):
        C[i] = B[0] + B[3] * 10
"#,
    );
}

#[test]
fn numbers_are_those_of_the_processor() {
    for (dtype, value) in [
        ("int8", "a * b - a"),
        ("int16", "T.shift_right(a * b, T.int16(3))"),
        ("int32", "a * b + T.bitwise_xor(a, b)"),
        ("int64", "a * b * a"),
        ("uint8", "a * b + a"),
        ("uint32", "T.max(a, b) * a"),
        ("float16", "a * b + a / (b * b + T.float16(1))"),
        ("bfloat16", "a * b + T.exp(a)"),
        ("float64", "T.min(a, b) / (T.sqrt(T.fabs(a)) + T.float64(1))"),
        ("int32", "a // (b + 7) + a % (b + 7)"),
        ("int32", "T.truncdiv(a, b) + T.truncmod(a, b + 3)"),
        ("float32", "T.Cast(\"float32\", T.Cast(\"int32\", a * T.float32(1e10)))"),
        ("float32", "T.Cast(\"float32\", T.Cast(\"uint8\", a * T.float32(300)))"),
        ("float32", "T.erf(a) + T.tanh(b) + T.sigmoid(a) + T.log1p(T.fabs(b))"),
    ] {
        same(&format!(
            r#"
@T.prim_func
def f(A: T.Buffer((97,), "{dtype}"), B: T.Buffer((97,), "{dtype}"), C: T.Buffer((97,), "{dtype}")):
    for i in range(97):
        with T.block("C"):
            v = T.axis.spatial(97, i)
            C[v] = T.Cast("{dtype}", {})
"#,
            value
                .replace("a ", "A[v] ")
                .replace("a,", "A[v],")
                .replace("a)", "A[v])")
                .replace("b ", "B[v] ")
                .replace("b)", "B[v])")
                .replace(" a", " A[v]")
                .replace(" b", " B[v]")
                .replace("(b", "(B[v]")
                .replace("A[v][v]", "A[v]"),
        ));
    }
}

#[test]
fn a_model_is_the_same_and_several_threads_run_it() {
    let Some(device) = device() else { return };
    let digits = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/digits/digits.onnx");
    for sizes in [Sizes::new().dim("N", 2), Sizes::new()] {
        let module = load(digits, &sizes).expect("the example is there");
        let native = compiled(&module, &Options::new().cache(false));
        let own = compiled(&module, &device);
        std::thread::scope(|scope| {
            for n in [2, 2, 2] {
                let (native, own) = (&native, &own);
                scope.spawn(move || {
                    let image =
                        Random::new(n as u64).tensor(tilewright_driver::DType::F32, &[n, 1, 8, 8]);
                    let image = [image.expect("a tensor")];
                    let run =
                        |e: &Executable| e.run(&image).unwrap_or_else(|e| panic!("{}", e.render()));
                    assert_near(&run(own), &run(native), 1e-4);
                });
            }
        });
    }
}

/// What is on the device is read there, at an address that kernels read vectors from or not, and results stay there.
#[test]
fn tensors_stay_on_the_device() {
    let Some(device) = device() else { return };
    let module = parsed(
        r#"
@T.prim_func
def f(A: T.Buffer((9, 16), "float32"), B: T.Buffer((9, 16), "float32"), C: T.Buffer((9, 16), "float32")):
    for i, j in T.grid(9, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * T.float32(2) + B[vi, vj]
"#,
    );
    let executable = compiled(&module, &device);
    let given = inputs(&executable, 3);
    let host = |k: usize| Operand::Host(given[k].clone());
    let run = |inputs: &[Operand]| {
        let mut outputs =
            executable.run_on_device(inputs).unwrap_or_else(|e| panic!("{}", e.render()));
        outputs.swap_remove(0)
    };
    let first = run(&[host(0), host(1)]);
    let expected = executable.run(&given).expect("it runs").swap_remove(0);
    assert!(first.to_host().expect("a copy").same(&expected));
    let there = executable.device().expect("a device");
    // The rows behind the first one, as others may hand them over: four bytes into a row.
    let (pointer, byte) = first.exported().expect("a place");
    let long =
        Tensor::from_bytes(expected.dtype(), &[10, 16], &[expected.bytes(), &[0; 64]].concat());
    let long = DeviceTensor::from_host(there, &long.expect("a tensor")).expect("memory");
    let place = long.exported().expect("a place");
    // SAFETY: ten rows are there as long as `long` is.
    let apart = unsafe {
        DeviceTensor::foreign(
            there,
            (place.0, place.1 + 4),
            expected.dtype(),
            &[9, 16],
            Arc::new(long.clone()),
        )
    };
    let apart = apart.expect("a tensor");
    assert_ne!(place, (pointer, byte));
    for operand in [first, apart] {
        let second = run(&[Operand::Device(operand.clone()), Operand::Device(operand.clone())]);
        let copy = operand.to_host().expect("a copy");
        let again = executable.run(&[copy.clone(), copy]).expect("it runs").swap_remove(0);
        assert!(second.to_host().expect("a copy").same(&again));
    }
    let native = compiled(&module, &Options::new().cache(false));
    let error = native.run_on_device(&[host(0), host(1)]).expect_err("it is on the processor");
    assert!(error.to_string().contains("runs on the processor"), "{error}");
}

#[test]
fn an_assertion_ends_the_run_with_its_place() {
    let Some(device) = device() else { return };
    let module = parsed(
        r#"
@T.prim_func
def f(A: T.Buffer((4,), "float32"), I: T.Buffer((2,), "int32"), B: T.Buffer((2,), "float32")):
    for i in range(2):
        with T.block("B"):
            vi = T.axis.spatial(2, i)
            B[vi] = A[I[vi]]
"#,
    );
    let [own, native] = [device, Options::new().cache(false)].map(|o| compiled(&module, &o));
    let a = Tensor::from_slice(&[4], &[1.0f32, 2.0, 3.0, 4.0]).expect("a tensor");
    let run = |e: &Executable, index: i32| {
        e.run(&[a.clone(), Tensor::from_slice(&[2], &[3, index]).expect("a tensor")])
    };
    let said = |e: &Executable| match run(e, 9) {
        Err(e @ Error::Execution(_)) => e.render(),
        other => panic!("{other:?}"),
    };
    assert_eq!(said(&own), said(&native));
    // The run after it is right.
    let outputs = run(&own, 0).expect("in range");
    assert_eq!(outputs[0].as_slice::<f32>(), Some(&[4.0, 1.0][..]));
}

/// Assertions about many elements are asked for together, tile by tile; the host says how many tiles there are.
#[test]
fn assertions_about_many_elements_end_the_run() {
    let Some(device) = device() else { return };
    let module = parsed(
        r#"
@T.prim_func
def f(A: T.Buffer((4,), "float32"), I: T.Buffer((5000,), "int32"), B: T.Buffer((5000,), "float32")):
    for i in T.parallel(5000):
        with T.block("B"):
            vi = T.axis.spatial(5000, i)
            B[vi] = A[I[vi]]
"#,
    );
    let [own, native] = [device, Options::new().cache(false)].map(|o| compiled(&module, &o));
    let a = Tensor::from_slice(&[4], &[1.0f32, 2.0, 3.0, 4.0]).expect("a tensor");
    let run = |e: &Executable, last: i32| {
        let mut indices: Vec<i32> = (0..5000).map(|i| i % 4).collect();
        indices[4999] = last;
        e.run(&[a.clone(), Tensor::from_slice(&[5000], &indices).expect("a tensor")])
    };
    let [on_device, here] = [&own, &native].map(|e| run(e, 2).expect("in range"));
    assert_eq!(on_device[0].bytes(), here[0].bytes());
    let [on_device, here] = [&own, &native].map(|e| run(e, 4).expect_err("4 is out of range"));
    assert_eq!(on_device.render(), here.render());
}

/// A transpose of tiles through memory that the threads of a group share.
const TRANSPOSE: &str = r#"
@T.prim_func
def f(A: T.Buffer((64, 48), "float32"), B: T.Buffer((48, 64), "float32")):
    for bi in T.thread_binding(4, thread="blockIdx.x"):
        for bj in T.thread_binding(3, thread="blockIdx.y"):
            with T.block("tile"):
                vi, vj = T.axis.remap("SS", [bi, bj])
                S = T.alloc_buffer((16, 17), "float32", scope="shared")
                for ti in T.thread_binding(16, thread="threadIdx.x"):
                    for tj in T.thread_binding(16, thread="threadIdx.y"):
                        with T.block("S"):
                            si, sj = T.axis.remap("SS", [ti, tj])
                            S[si, sj] = A[vi * 16 + si, vj * 16 + sj]
                for ti in T.thread_binding(16, thread="threadIdx.x"):
                    for tj in T.thread_binding(16, thread="threadIdx.y"):
                        with T.block("B"):
                            si, sj = T.axis.remap("SS", [ti, tj])
                            B[vj * 16 + si, vi * 16 + sj] = S[sj, si]
"#;

#[test]
fn groups_of_threads_share_memory() {
    let Some(device) = device() else { return };
    let executable = compiled(&parsed(TRANSPOSE), &device.schedule(false));
    let inputs = inputs(&executable, 3);
    let b = executable.run(&inputs).unwrap_or_else(|e| panic!("{}", e.render())).swap_remove(0);
    for (i, j) in (0..48).flat_map(|i| (0..64).map(move |j| (i, j))) {
        assert_eq!(b.get_f64(i * 64 + j), inputs[0].get_f64(j * 48 + i));
    }
}

#[test]
fn threads_wait_only_where_all_of_them_come() {
    let Some(device) = device() else { return };
    let text = TRANSPOSE.replace(
        "                for ti in T.thread_binding(16, thread=\"threadIdx.x\"):\n                    for tj in T.thread_binding(16, thread=\"threadIdx.y\"):\n                        with T.block(\"B\"):",
        "                if A[0, 0] > T.float32(0):\n                  for ti in T.thread_binding(16, thread=\"threadIdx.x\"):\n                    for tj in T.thread_binding(16, thread=\"threadIdx.y\"):\n                        for z in T.thread_binding(2, thread=\"threadIdx.z\"):\n                            T.evaluate(T.tvm_storage_sync(\"shared\"))\n                        with T.block(\"B\"):",
    );
    assert_ne!(text, TRANSPOSE);
    let error = compile(&parsed(&text), &device.schedule(false)).err().expect("it is refused");
    let said = error.render();
    assert!(said.contains("wait for one another where they may not all come to"), "{said}");
}

/// A product by tiles in shared memory, with barriers as they are written in TVM.
const TILES: &str = r#"
@T.prim_func
def f(A: T.Buffer((8, 12), "float32"), B: T.Buffer((12, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    for bi in T.thread_binding(2, thread="blockIdx.x"):
        for bj in T.thread_binding(2, thread="blockIdx.y"):
            X = T.decl_buffer((4, 4), "float32", scope="shared")
            Y = T.decl_buffer((4, 4), "float32", scope="shared")
            for ti in T.thread_binding(4, thread="threadIdx.y"):
                for tj in T.thread_binding(4, thread="threadIdx.x"):
                    acc = T.decl_buffer((1,), "float32", scope="local")
                    acc[0] = T.float32(0)
                    for ko in range(3):
                        X[ti, tj] = A[bi * 4 + ti, ko * 4 + tj]
                        Y[ti, tj] = B[ko * 4 + ti, bj * 4 + tj]
                        T.tvm_storage_sync("shared")
                        for ki in range(4):
                            acc[0] = acc[0] + X[ti, ki] * Y[ki, tj]
                        T.tvm_storage_sync("shared")
                    C[bi * 4 + ti, bj * 4 + tj] = acc[0]
"#;

#[test]
fn explicit_barriers_separate_phases() {
    let Some(device) = device() else { return };
    let options = device.schedule(false);
    let executable = compiled(&parsed(TILES), &options);
    let inputs = inputs(&executable, 3);
    let c = executable.run(&inputs).unwrap_or_else(|e| panic!("{}", e.render())).swap_remove(0);
    for (i, j) in (0..8).flat_map(|i| (0..8).map(move |j| (i, j))) {
        let products =
            (0..12).map(|k| inputs[0].get_f64(i * 12 + k) * inputs[1].get_f64(k * 8 + j));
        assert!((c.get_f64(i * 8 + j) - products.sum::<f64>()).abs() < 1e-5, "{i} {j}");
    }
    // Without the first barrier, threads read what others have not written yet.
    let first =
        "                        T.tvm_storage_sync(\"shared\")\n                        for";
    let racing = TILES.replace(first, "                        for");
    assert_ne!(racing, TILES);
    let said = compile(&parsed(&racing), &options).err().expect("it is refused").render();
    assert!(said.contains("touch one cell in different iterations"), "{said}");
}

/// A convolution along rows of an image in a texture, whose border is its padding.
fn windows(pad: &str, layout: &str) -> String {
    format!(
        r#"
@T.prim_func
def f(A: T.Buffer({layout}, "float32", scope="global.texture", axis_separators=[1]), B: T.Buffer((5, 9, 4), "float32")):
    for h, w, c in T.grid(5, 9, 4):
        with T.block("B"):
            vh, vw, vc = T.axis.remap("SSS", [h, w, c])
            B[vh, vw, vc] = T.if_then_else(1 <= vw and vw < 8, A[vh, vw - 1, vc], T.float32({pad}))
"#
    )
}

#[test]
fn the_border_of_a_texture_is_its_padding() {
    if lacks_textures() {
        return;
    }
    let Some(device) = device() else { return };
    for pad in ["0", "-1"] {
        let executable = compiled(&parsed(&windows(pad, "(5, 7, 4)")), &device);
        let inputs = inputs(&executable, 3);
        let b = executable.run(&inputs).unwrap_or_else(|e| panic!("{}", e.render())).swap_remove(0);
        for (h, w, c) in
            (0..5).flat_map(|h| (0..9).flat_map(move |w| (0..4).map(move |c| (h, w, c))))
        {
            let inside = (1..8).contains(&w);
            let expected = if inside {
                inputs[0].get_f64((h * 7 + w - 1) * 4 + c)
            } else {
                pad.parse().expect("a number")
            };
            assert_eq!(b.get_f64((h * 9 + w) * 4 + c), expected, "{h} {w} {c}");
        }
    }
}

#[test]
fn values_between_kernels_lie_in_a_texture() {
    if lacks_textures() {
        return;
    }
    let Some(device) = device() else { return };
    // RFC 0039: NHWC -> [n, c // 4, h, AXIS_SEPARATOR, w, c % 4]; 6 channels are two texels.
    let executable = compiled(
        &parsed(
            r#"
@T.prim_func
def f(A: T.Buffer((2, 5, 7, 6), "float32"), B: T.Buffer((2, 5, 7, 6), "float32")):
    X = T.alloc_buffer((2, 2, 5, 7, 4), "float32", scope="global.texture", axis_separators=[3])
    for n, co, h, w, ci in T.grid(2, 2, 5, 7, 4):
        with T.block("X"):
            vn, vo, vh, vw, vi = T.axis.remap("SSSSS", [n, co, h, w, ci])
            X[vn, vo, vh, vw, vi] = T.if_then_else(vo * 4 + vi < 6, A[vn, vh, vw, vo * 4 + vi] * T.float32(2), T.float32(0))
    for n, h, w, c in T.grid(2, 5, 7, 6):
        with T.block("B"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            B[vn, vh, vw, vc] = X[vn, vc // 4, vh, vw, vc % 4] + T.float32(1)
"#,
        ),
        &device,
    );
    let inputs = inputs(&executable, 3);
    let b = executable.run(&inputs).unwrap_or_else(|e| panic!("{}", e.render())).swap_remove(0);
    for k in 0..b.len() {
        assert_eq!(b.get_f64(k), f64::from(inputs[0].get_f64(k) as f32 * 2.0 + 1.0));
    }
}

/// What a texture holds is what its memory holds, whoever reads and writes either of them, and in whatever run.
#[test]
fn memory_and_its_texture_hold_the_same() {
    if lacks_textures() {
        return;
    }
    let Some(device) = device() else { return };
    let texture = "scope=\"global.texture\", axis_separators=[1]";
    let function = |name: &str, from: &str, to: &str, value: &str| {
        format!(
            r#"
    @T.prim_func
    def {name}(A: T.Buffer((5, 7, 4), "float32"{from}), B: T.Buffer((5, 7, 4), "float32"{to})):
        for h, w, c in T.grid(5, 7, 4):
            with T.block("B"):
                vh, vw, vc = T.axis.remap("SSS", [h, w, c])
                B[vh, vw, vc] = {value}
"#
        )
    };
    let on = format!(", {texture}");
    let text = [
        "@I.ir_module\nclass M:".to_owned(),
        function("twice", "", &on, "A[vh, vw, vc] * T.float32(2)"),
        function("plus", "", "", "A[vh, vw, vc] + T.float32(1)"),
        function("triple", &on, "", "A[vh, vw, vc] * T.float32(3)"),
        function("negative", &on, &on, "T.float32(0) - A[vh, vw, vc]"),
        r#"
    @R.function
    def main(a: R.Tensor((5, 7, 4), dtype="float32")):
        cls = M
        with R.dataflow():
            x = R.call_tir(cls.twice, (a,), out_sinfo=R.Tensor((5, 7, 4), dtype="float32"))
            y = R.call_tir(cls.plus, (x,), out_sinfo=R.Tensor((5, 7, 4), dtype="float32"))
            z = R.call_tir(cls.triple, (y,), out_sinfo=R.Tensor((5, 7, 4), dtype="float32"))
            n = R.call_tir(cls.negative, (x,), out_sinfo=R.Tensor((5, 7, 4), dtype="float32"))
            m = R.call_tir(cls.negative, (n,), out_sinfo=R.Tensor((5, 7, 4), dtype="float32"))
            w = R.call_tir(cls.triple, (m,), out_sinfo=R.Tensor((5, 7, 4), dtype="float32"))
            v = R.call_tir(cls.plus, (z,), out_sinfo=R.Tensor((5, 7, 4), dtype="float32"))
            u = R.call_tir(cls.twice, (v,), out_sinfo=R.Tensor((5, 7, 4), dtype="float32"))
            R.output(n, w, u)
        return (n, w, u)
"#
        .to_owned(),
    ]
    .concat();
    let executable = compiled(&parsed(&text), &device.fuse(false).layout(LayoutPolicy::AsWritten));
    for seed in [3, 4, 5] {
        let inputs = inputs(&executable, seed);
        let found = executable.run(&inputs).unwrap_or_else(|e| panic!("{}", e.render()));
        for k in 0..inputs[0].len() {
            let a = inputs[0].get_f64(k) as f32;
            let expected = [-(a * 2.0), a * 2.0 * 3.0, ((a * 2.0 + 1.0) * 3.0 + 1.0) * 2.0];
            for (tensor, expected) in found.iter().zip(expected) {
                assert_eq!(tensor.get_f64(k), f64::from(expected), "{seed} {k}");
            }
        }
    }
}
