//! Arbitrary texts: an error or a module, and never a panic, a hang or memory without bound.
//!
//! Inputs are mutations of small texts that use every part of the language, made from a fixed
//! seed. `TILEWRIGHT_FUZZ_ITERS` sets their number, `TILEWRIGHT_FUZZ_SEED` the seed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use tilewright_ir::{Source, equal, random, well_formed};
use tilewright_tvmscript::{parse_module, print_module};

const TEXTS: &[&str] = &[
    r#"from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script import relax as R

@I.ir_module
class Module:
    I.module_attrs({"a": [1, 2.5, None, {"b": True}]})

    @T.prim_func(private=True, names={"A": "gpu/0"})
    def f(A: T.Buffer((128, 128), "float32", strides=(128, 1)), b: T.handle, n: T.int32) -> T.int32:
        m = T.int64()
        B = T.match_buffer(b, (m, 4), "int8", elem_offset=0, axis_separators=[1])
        T.func_attr({"global_symbol": "f", "tir.noalias": True})
        C = T.alloc_buffer((128,), "float32", scope="local")
        for i, j in T.grid(128, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SR", [i, j])
                T.where(i * 4 + j < n and not j == 3)
                T.reads(A[vi, 0:128])
                T.writes(C[vi])
                T.block_attr({"pragma": 1})
                with T.init():
                    C[vi] = T.float32(0.0)
                C[vi] = C[vi] + A[vi, vj] * T.float32(2.0)
        return 0

    @T.prim_func
    def copy(x: T.Buffer((2, 2), "float32"), y: T.Buffer((4,), "float32"), k: T.int64):
        for i in range(4):
            y[i] = x[i // 2, i % 2]

    @R.function
    def main(x: R.Tensor(("k", 4), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
        k = T.int64()
        R.func_attr({"num_input": 1})
        cls = Module
        with R.dataflow():
            c = R.const([[0.5, -1.0], [float("inf"), 2.0]], "float32")
            lv = R.call_tir(cls.copy, (c,), out_sinfo=[R.Tensor((4,), dtype="float32")], tir_vars=R.shape([k]))
            gv: R.Tuple(R.Tensor((4,), dtype="float32")) = (R.nn.relu(lv, axis=[1, 2]),)
            R.output(gv)
        return gv[0]
"#,
    r#"@T.prim_func
def g(A: T.Buffer[(16,), "int32"], B: T.Buffer(("n", "n + 1"), "float16"), x: T.float32):
    y: T.int32 = T.Cast("int32", x) // 4 % 3
    with T.LetStmt(y * 2 - 1) as z:
        A[z] = T.if_then_else(0 <= z < 14, A[z], T.undef())
    for i in T.serial(y, y + 8, annotations={"k": "v"}):
        for t in T.thread_binding(4, thread="threadIdx.x"):
            if i < 3:
                A[i] += 1
            elif i == 4 or A[t] != 2:
                A[0:4] = T.Broadcast(1, 4) + T.Ramp(i, 2, 4)
            else:
                assert i > 3, "message"
    D = T.decl_buffer((4, 4), "int32", data=A.data)
    E = T.allocate([16], "float32", "shared")
    T.assume(D[0, 0] == 0)
    E[0] = T.Let(u + T.exp(u), where={u: T.min(x, T.float32("nan"))})
    T.evaluate(T.call_extern("int32", "f", E.data, "s", ~y << 2 & 1))
"#,
    r#"from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def h(A: T.Buffer((16,), "float32")):
    B = T.sblock_alloc_buffer((16,))
    v: T.let[T.bool] = A[0] < 3
    C = T.alloc_buffer((4,), annotations={"a": []})
    tx = T.launch_thread("threadIdx.x", 16)
    V = A.view(4, 4)
    with T.sblock("b"):
        vi = T.axis.spatial((2, 14), tx)
        W = T.match_buffer(A[vi:vi + 2], (2,), offset_factor=1)
        T.sblock_attr("preproc", ["pad", T.undef()])
        B[vi] = T.Select(v, V[0, vi], W[0] + W.elem_offset)
"#,
    r#"@T.func
def pad(A: T.Buffer[16, "float32"], B: T.Buffer[(4, 4), "float32"]):
    with block():
        for i, j in grid(4, 4):
            B[i, j] = A[4*i + j]

@R.func
def main(x: R.Tensor[16], y: T.Tensor[(4, 4), "int32"], z: R.Object):
    lv0 = call_tir(pad, [x], (4, 4))
    a = R.const(b64="AAAAAAAAgD8=", shape=(2,), dtype="float32")
    b = R.call("odd name", lv0, **{"an attr": 1}, index_map=T.index_map(lambda i, j: (i // 4, j)))
    with R.bindings():
        c = R.add(a, b)
    ...
"#,
];

/// Pieces that mean something somewhere.
const PIECES: &[&str] = &[
    "T.",
    "R.",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "=",
    "==",
    "<",
    "+",
    "-",
    "*",
    "**",
    "//",
    "%",
    " and ",
    " not ",
    " if ",
    " else ",
    "lambda ",
    "for i in range(4):\n",
    "with ",
    "None",
    "True",
    "\"",
    "'",
    "\"\"\"",
    "\\",
    "\n",
    "\t",
    "    ",
    "#",
    "0",
    "1",
    "9999999999999999999999",
    "1e999",
    "-1",
    "0x",
    "T.int64(",
    "T.undef()",
    "T.block(\"b\")",
    "A[",
    "A.data",
    ".elem_offset",
    "n",
    "i",
    "é",
    "\u{0}",
    "\u{2028}",
    "f\"",
    "@",
    ";",
    "...",
    "return ",
    "T.Ramp(",
    "T.Let(",
    "import tirx as T\n",
    "T.grid(",
    "\"n + 1\"",
    "metadata[\"relax.expr.Constant\"][0]",
    "**",
    "*",
];

/// A small generator of random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        random::bits(&mut self.0)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// A place in a text.
    fn place(&mut self, text: &[u8]) -> usize {
        self.below(text.len() + 1)
    }

    fn range(&mut self, text: &[u8]) -> std::ops::Range<usize> {
        let start = self.place(text);
        start..(start + self.below(40)).min(text.len())
    }

    /// A line with its end.
    fn line(&mut self, text: &[u8]) -> Vec<u8> {
        let lines: Vec<&[u8]> = text.split_inclusive(|b| *b == b'\n').collect();
        lines.get(self.below(lines.len())).map_or(Vec::new(), |l| l.to_vec())
    }
}

/// The places of names and numbers.
fn words(text: &[u8]) -> Vec<std::ops::Range<usize>> {
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let mut words = Vec::new();
    let mut start = None;
    for (i, b) in text.iter().chain(b" ").enumerate() {
        match (is_word(b), start) {
            (true, None) => start = Some(i),
            (false, Some(s)) => {
                words.push(s..i);
                start = None;
            }
            _ => {}
        }
    }
    words
}

fn mutate(random: &mut Random, text: &mut Vec<u8>, words_only: bool) {
    match if words_only { 9 } else { random.below(10) } {
        9 => {
            // One word for another: often still a module.
            let words = words(text);
            let (a, b) = (random.below(words.len()), random.below(words.len()));
            if let (Some(a), Some(b)) = (words.get(a), words.get(b)) {
                let word = text[b.clone()].to_vec();
                text.splice(a.clone(), word);
            }
        }
        0 => {
            let range = random.range(text);
            text.drain(range);
        }
        1 => {
            let at = random.place(text);
            let piece = PIECES[random.below(PIECES.len())];
            text.splice(at..at, piece.bytes());
        }
        2 => {
            let (range, piece) = (random.range(text), PIECES[random.below(PIECES.len())]);
            text.splice(range, piece.bytes());
        }
        3 => {
            let copy = text[random.range(text)].to_vec();
            let at = random.place(text);
            text.splice(at..at, copy);
        }
        4 => {
            // The same again, many times: depth.
            let copy = text[random.range(text)].repeat(1 + random.below(300));
            let at = random.place(text);
            text.splice(at..at, copy.into_iter().take(4000));
        }
        5 => {
            let other = TEXTS[random.below(TEXTS.len())];
            let line = random.line(other.as_bytes());
            let at = random.place(text);
            let at = text[..at].iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
            text.splice(at..at, line);
        }
        6 => {
            let line = random.line(text);
            if let Some(at) = text.windows(line.len().max(1)).position(|w| w == line) {
                text.drain(at..at + line.len());
            }
        }
        7 => {
            let at = random.place(text);
            if let Some(b) = text.get_mut(at) {
                *b = random.next() as u8;
            }
        }
        _ => {
            let at = random.place(text);
            text.truncate(at);
        }
    }
}

/// What the crate does with a text; says whether it is a module.
fn run(text: &str) -> bool {
    let source = Source::new("fuzz", text);
    let module = match parse_module(&source) {
        Ok(module) => module,
        Err(e) => {
            let _ = e.render();
            return false;
        }
    };
    let printed = print_module(&module);
    assert!(
        printed.len() < 10_000 + 200 * text.len(),
        "the printed text is {} bytes",
        printed.len()
    );
    if well_formed::check_module(&module).is_ok() {
        let again = parse_module(&Source::new("printed", printed.clone()));
        let again = again.unwrap_or_else(|e| panic!("{}\n{printed}", e.render()));
        // The check leaves variables of `tir_vars` alone, which may be free.
        let options = equal::Equality { free: equal::Free::Paired, ..Default::default() };
        if let Err(d) = equal::modules(&module, &again, &options) {
            panic!("{d}\n{printed}");
        }
    }
    true
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

#[test]
fn the_texts_are_well_formed_modules() {
    // Mutations of texts that are refused would test little.
    for text in TEXTS {
        let source = Source::new("a.py", *text);
        let result = parse_module(&source).and_then(|m| well_formed::check_module(&m));
        if let Err(e) = result {
            panic!("{}", e.in_source(&source).render());
        }
    }
}

#[test]
fn mutated_texts() {
    let iterations = setting("TILEWRIGHT_FUZZ_ITERS", 6000);
    let mut random = Random(setting("TILEWRIGHT_FUZZ_SEED", 1));
    let mut modules = 0;
    for i in 0..iterations {
        let mut text = TEXTS[random.below(TEXTS.len())].as_bytes().to_vec();
        let words_only = random.below(2) == 0;
        for _ in 0..=random.below(4) {
            mutate(&mut random, &mut text, words_only);
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let start = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| run(&text))) {
            Ok(module) => modules += u64::from(module),
            Err(_) => panic!("iteration {i} of this text:\n{text}"),
        }
        let took = start.elapsed();
        assert!(took < Duration::from_secs(10), "{took:?} for this text:\n{text}");
    }
    // Some mutations leave a module a module: otherwise only the errors are tested.
    assert!(
        iterations < 1000 || modules * 50 > iterations,
        "{modules} of {iterations} are modules"
    );
}

#[test]
fn arbitrary_bytes() {
    let mut random = Random(setting("TILEWRIGHT_FUZZ_SEED", 2));
    for _ in 0..setting("TILEWRIGHT_FUZZ_ITERS", 6000) / 4 {
        let n = random.below(200);
        let bytes: Vec<u8> = match random.below(2) {
            0 => (0..n).map(|_| random.next() as u8).collect(),
            _ => (0..n).flat_map(|_| PIECES[random.below(PIECES.len())].bytes()).collect(),
        };
        run(&String::from_utf8_lossy(&bytes));
    }
}
