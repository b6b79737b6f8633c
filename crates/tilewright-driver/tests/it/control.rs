//! Random graphs with branches, loops and sizes that data decide: compiled once, they compute at every
//! size what the interpreter computes; and their text is read back as the same module.

use std::fmt::Write;

use tilewright_driver::program::Program;
use tilewright_driver::random::Random;
use tilewright_driver::saved::{self, Content};
use tilewright_driver::{
    DType, Executable, Options, Result, Session, Sizes, Tensor, compile, parse, print,
};
use tilewright_graph::control::{self, Cut};
use tilewright_graph::normal::name_outputs;
use tilewright_interp::run_module;
use tilewright_ir::equal;
use tilewright_ir::well_formed::check_module;

/// Graphs that are tried, unless the environment variable `TILEWRIGHT_FUZZ_ITERS` says how many.
const GRAPHS: u64 = 40;

/// Functions over lists of any length. What they compute is exact, so that results are equal bit by
/// bit: `pick` takes the first elements, as many as `count` finds above one half.
const FUNCTIONS: &str = r#"
    @T.prim_func
    def turn(a: T.handle, b: T.handle):
        p = T.int64()
        A = T.match_buffer(a, (p,), "float32")
        B = T.match_buffer(b, (p,), "float32")
        for i in range(p):
            with T.block("B"):
                vi = T.axis.spatial(p, i)
                B[vi] = T.float32(1) - A[vi]
    @T.prim_func
    def half(a: T.handle, b: T.handle):
        p = T.int64()
        A = T.match_buffer(a, (p,), "float32")
        B = T.match_buffer(b, (p,), "float32")
        for i in range(p):
            with T.block("B"):
                vi = T.axis.spatial(p, i)
                B[vi] = A[vi] * T.float32(0.5)
    @T.prim_func
    def add(a: T.handle, b: T.handle, c: T.handle):
        p = T.int64()
        A = T.match_buffer(a, (p,), "float32")
        B = T.match_buffer(b, (p,), "float32")
        C = T.match_buffer(c, (p,), "float32")
        for i in range(p):
            with T.block("C"):
                vi = T.axis.spatial(p, i)
                C[vi] = A[vi] + B[vi]
    @T.prim_func
    def join(a: T.handle, b: T.handle, c: T.handle):
        p = T.int64()
        q = T.int64()
        A = T.match_buffer(a, (p,), "float32")
        B = T.match_buffer(b, (q,), "float32")
        C = T.match_buffer(c, (p + q,), "float32")
        for i in range(p + q):
            with T.block("C"):
                vi = T.axis.spatial(p + q, i)
                C[vi] = T.if_then_else(vi < p, A[vi], B[vi - p])
    @T.prim_func
    def count(a: T.handle, B: T.Buffer((1,), "int64")):
        T.func_attr({"tilewright.takes_empty": 1})
        p = T.int64()
        A = T.match_buffer(a, (p,), "float32")
        with T.block("count"):
            B[0] = T.int64(0)
            for i in range(p):
                if A[i] > T.float32(0.5):
                    B[0] = B[0] + T.int64(1)
    @T.prim_func
    def pick(a: T.handle, b: T.handle):
        p = T.int64()
        q = T.int64()
        A = T.match_buffer(a, (p,), "float32")
        B = T.match_buffer(b, (q,), "float32")
        for i in range(q):
            with T.block("B"):
                vi = T.axis.spatial(q, i)
                B[vi] = A[vi]
    @T.prim_func
    def many(A: T.Buffer((1,), "int64"), B: T.Buffer((), "bool")):
        with T.block("many"):
            B[()] = A[0] > T.int64(2)
"#;

/// A list that is known, and its length as the text says it.
#[derive(Clone)]
struct List {
    name: String,
    length: String,
}

struct Maker {
    random: Random,
    text: String,
    /// Sizes that are declared.
    sizes: Vec<String>,
    names: usize,
    depth: usize,
}

impl Maker {
    fn below(&mut self, n: usize) -> usize {
        (self.random.bits() % n as u64) as usize
    }

    fn name(&mut self, base: &str) -> String {
        self.names += 1;
        format!("{base}{}", self.names)
    }

    fn size(&mut self) -> String {
        let name = self.name("k");
        self.sizes.push(name.clone());
        name
    }

    fn line(&mut self, text: &str) {
        let indent = 8 + 4 * self.depth;
        let _ = writeln!(self.text, "{:indent$}{text}", "");
    }

    fn choose(&mut self, lists: &[List]) -> List {
        // Later ones more often, so that chains grow long.
        let n = lists.len();
        let at = self.below(n).max(self.below(n));
        lists[at].clone()
    }

    fn call(&mut self, f: &str, args: &[&List], length: &str) -> List {
        let name = self.name("v");
        let args: Vec<&str> = args.iter().map(|a| &*a.name).collect();
        let args = args.join(", ");
        self.line(&format!(
            "{name} = R.call_tir(cls.{f}, ({args},), out_sinfo=R.Tensor(({length},), \"float32\"))"
        ));
        List { name, length: length.to_owned() }
    }

    /// The number of elements that count, as a tensor.
    fn count(&mut self, of: &List) -> String {
        let name = self.name("c");
        let of = &of.name;
        self.line(&format!(
            "{name} = R.call_tir(cls.count, ({of},), out_sinfo=R.Tensor((1,), \"int64\"))"
        ));
        name
    }

    fn truth(&mut self, of: &List) -> String {
        let (count, name) = (self.count(of), self.name("t"));
        self.line(&format!(
            "{name} = R.call_tir(cls.many, ({count},), out_sinfo=R.Tensor((), \"bool\"))"
        ));
        name
    }

    /// Statements after which one more list is known.
    fn step(&mut self, lists: &mut Vec<List>) {
        let x = self.choose(lists);
        let new = match self.below(if self.depth < 3 { 9 } else { 6 }) {
            0 => self.call("turn", &[&x], &x.length.clone()),
            1 => self.call("half", &[&x], &x.length.clone()),
            2 => {
                let same: Vec<List> =
                    lists.iter().filter(|y| y.length == x.length).cloned().collect();
                let y = self.choose(&same);
                self.call("add", &[&x, &y], &x.length.clone())
            }
            3 => {
                let y = self.choose(lists);
                let length = format!("{} + {}", x.length, y.length);
                // Long sums of sizes say nothing new.
                if length.len() > 30 {
                    return;
                }
                self.call("join", &[&x, &y], &length)
            }
            4 | 5 => {
                let (count, k) = (self.count(&x), self.size());
                let shape = self.name("s");
                self.line(&format!(
                    "{shape} = R.match_cast(R.tensor_to_shape({count}), R.Shape([{k}]))"
                ));
                self.call("pick", &[&x], &k)
            }
            6 | 7 => self.branches(&x, lists),
            _ => self.repeat(&x, lists),
        };
        lists.push(new);
    }

    fn branches(&mut self, x: &List, lists: &[List]) -> List {
        let (cond, y, k) = (self.truth(x), self.name("y"), self.size());
        for head in [format!("if {cond}:"), "else:".to_owned()] {
            self.line(&head);
            self.depth += 1;
            let mut inner = lists.to_vec();
            (0..self.below(3)).for_each(|_| self.step(&mut inner));
            let last = self.choose(&inner);
            self.line(&format!("{y}: R.Tensor(({k},), \"float32\") = {}", last.name));
            self.depth -= 1;
        }
        List { name: y, length: k }
    }

    fn repeat(&mut self, x: &List, lists: &[List]) -> List {
        let trip = self.below(4);
        let (f, h, p, k) = (self.name("f"), self.name("h"), self.size(), self.size());
        let stacked = self.size();
        self.line("@R.function");
        self.line(&format!(
            "def {f}(i{h}: R.Tensor((), \"int64\"), {h}: R.Tensor(({p},), \"float32\")):"
        ));
        self.depth += 1;
        let mut inner = lists.to_vec();
        inner.push(List { name: h, length: p });
        (0..1 + self.below(2)).for_each(|_| self.step(&mut inner));
        let next = self.choose(&inner);
        let go = self.truth(&next);
        self.line(&format!("return ({go}, {}, {})", next.name, x.name));
        self.depth -= 1;
        let all = self.name("l");
        let length = &x.length;
        self.line(&format!(
            "{all}: R.Tuple(R.Tensor(({k},), \"float32\"), R.Tensor(({stacked}, {length}), \"float32\")) = R.loop({f}, R.const({trip}, \"int64\"), None, ({},))",
            x.name
        ));
        let name = self.name("y");
        self.line(&format!("{name} = {all}[0]"));
        List { name, length: k }
    }

    fn module(mut self) -> String {
        let mut lists = vec![List { name: "x".to_owned(), length: "n".to_owned() }];
        let steps = 3 + self.below(5);
        while lists.len() < 1 + steps {
            self.step(&mut lists);
        }
        let a = lists[lists.len() - 1].name.clone();
        let b = self.choose(&lists).name;
        let sizes: String =
            self.sizes.iter().map(|k| format!("        {k} = T.int64()\n")).collect();
        let body = &self.text;
        format!(
            "from tvm.script import ir as I, relax as R, tir as T\n@I.ir_module\nclass Module:{FUNCTIONS}    @R.function\n    def main(x: R.Tensor((\"n\",), \"float32\")):\n        n = T.int64()\n{sizes}        cls = Module\n{body}        return ({a}, {b})\n"
        )
    }
}

/// The program as a file holds it.
pub(crate) fn reopened(program: &Program, options: &Options) -> Result<Executable> {
    let mut file = Vec::new();
    let content = Content::new(&[&program.module], options, serde_json::Value::Null)?;
    content.write(&mut file).expect("it is written to memory");
    let file = Tensor::from_bytes(DType::U8, &[file.len()], &file)?;
    // SAFETY: the content is what was written.
    unsafe { saved::open(&file, None) }
}

/// The text of a random graph.
pub(crate) fn random_graph(seed: u64) -> String {
    let maker = Maker {
        random: Random::new(seed),
        text: String::new(),
        sizes: Vec::new(),
        names: 0,
        depth: 0,
    };
    maker.module()
}

#[test]
fn random_graphs_with_control_flow_compute_what_they_mean() {
    let asked = std::env::var("TILEWRIGHT_FUZZ_ITERS").ok().and_then(|n| n.parse().ok());
    let (mut empty, mut refused) = (0, 0);
    for seed in 0..asked.unwrap_or(GRAPHS) {
        let text = random_graph(seed);
        let fail =
            |e: tilewright_driver::Error| -> ! { panic!("graph {seed}: {}\n{text}", e.render()) };
        let module = parse(&text, &Sizes::new()).unwrap_or_else(|e| fail(e));
        let again = parse(&print(&module), &Sizes::new()).unwrap_or_else(|e| fail(e));
        if let Err(e) = equal::modules(&module, &again, &equal::Equality::default()) {
            panic!("graph {seed}: the text is another module: {e:?}\n{}", print(&module));
        }
        // What calls the pieces is a graph function as any other.
        let cut = control::cut(&name_outputs(&module), "main").unwrap_or_else(|e| fail(e));
        let cut = Cut::join(cut.module, cut.name, cut.entry);
        check_module(&cut).unwrap_or_else(|e| fail(e));
        let read = parse(&print(&cut), &Sizes::new()).unwrap_or_else(|e| fail(e));
        // Pieces share variables of sizes, which the text gives each function of its own.
        assert_eq!(print(&read), print(&cut), "graph {seed}");
        let options = Options::new().threads(1);
        let program = Session::new(options.clone())
            .lower(&module)
            .map(|lowering| lowering.program)
            .unwrap_or_else(|e| fail(e));
        let executable = program.load(&options).unwrap_or_else(|e| fail(e));
        // Linking takes longer than all of its runs.
        let saved = (seed % 4 == 0).then(|| reopened(&program, &options));
        let saved = saved.transpose().unwrap_or_else(|e| fail(e));
        for n in [1, 3, 8, 2, 17] {
            let x = Random::new(seed + 1).tensor(DType::F32, &[n]).unwrap_or_else(|e| fail(e));
            let inputs = [x];
            let meant = run_module(&again, "main", &inputs);
            let got = executable.run(&inputs);
            match (&meant, run_module(&read, "main", &inputs)) {
                (Ok(meant), Ok(again)) => meant.iter().zip(&again).for_each(|(a, b)| {
                    assert!(a.same(b), "graph {seed}, n = {n}: cut {b:?}, not {a:?}");
                }),
                // What no result needs is in no piece.
                (Err(_), _) => {}
                (Ok(_), Err(e)) => panic!("graph {seed}, n = {n}: {}\n{text}", e.render()),
            }
            if let Some(saved) = &saved {
                match (&got, saved.run(&inputs)) {
                    (Ok(got), Ok(again)) => got.iter().zip(&again).for_each(|(a, b)| {
                        assert!(a.same(b), "graph {seed}, n = {n}: saved {b:?}, not {a:?}");
                    }),
                    (Err(a), Err(b)) => assert_eq!(a.to_string(), b.to_string()),
                    _ => panic!("graph {seed}, n = {n}: saved, it runs elsewhere"),
                }
            }
            match (got, meant) {
                (Ok(got), Ok(meant)) => {
                    assert_eq!(got.len(), meant.len());
                    for (a, b) in got.iter().zip(&meant) {
                        empty += usize::from(b.is_empty());
                        assert!(a.same(b), "graph {seed}, n = {n}: {a:?} is not {b:?}\n{text}");
                    }
                }
                // The interpreter refuses what has no elements in other places.
                (Err(_), Err(_)) => refused += 1,
                (Ok(_), Err(e)) | (Err(e), Ok(_)) => {
                    panic!("graph {seed}, n = {n}: {}\n{text}", e.render())
                }
            }
        }
    }
    assert!(refused < 5 * asked.unwrap_or(GRAPHS) / 4, "{refused} runs were refused");
    assert!(empty > 0 || asked.is_some(), "nothing was empty");
}

/// Sizes that data decide inside of a function belong to each call of it.
#[test]
fn a_function_that_finds_sizes_is_called_twice() {
    let text = format!(
        r#"from tvm.script import ir as I, relax as R, tir as T
@I.ir_module
class Module:{FUNCTIONS}
    @R.function(private=True)
    def few(x: R.Tensor(("p",), "float32")):
        p = T.int64()
        k = T.int64()
        cls = Module
        c = R.call_tir(cls.count, (x,), out_sinfo=R.Tensor((1,), "int64"))
        s = R.match_cast(R.tensor_to_shape(c), R.Shape([k]))
        y = R.call_tir(cls.pick, (x,), out_sinfo=R.Tensor((k,), "float32"))
        return y
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        cls = Module
        y: R.Object = cls.few(x)
        t = R.call_tir(cls.turn, (x,), out_sinfo=R.Tensor((n,), "float32"))
        z: R.Object = cls.few(t)
        return (y, z)
"#
    );
    let fail = |e: tilewright_driver::Error| -> ! { panic!("{}\n{text}", e.render()) };
    let module = parse(&text, &Sizes::new()).unwrap_or_else(|e| fail(e));
    let executable = compile(&module, &Options::new().threads(1)).unwrap_or_else(|e| fail(e));
    let x = Tensor::from_slice(&[4], &[0.1f32, 0.9, 0.8, 0.7]).unwrap_or_else(|e| fail(e));
    let got = executable.run(std::slice::from_ref(&x)).unwrap_or_else(|e| fail(e));
    assert_eq!((got[0].shape(), got[1].shape()), (&[3][..], &[1][..]));
    let meant = run_module(&module, "main", &[x]).unwrap_or_else(|e| fail(e));
    assert!(got.iter().zip(&meant).all(|(a, b)| a.same(b)));
}

/// Means over the slowest axis: what parallel work makes on the way has an open size.
#[test]
fn parallel_work_has_memory_of_open_size() -> Result<()> {
    let text = r#"
@I.ir_module
class Module:
    @T.prim_func
    def mean(x: T.handle, y: T.handle):
        a = T.int32()
        b = T.int32()
        c = T.int32()
        X = T.match_buffer(x, (a, 8, b, c), "float32")
        Y = T.match_buffer(y, (8, b, c), "float32")
        sums = T.alloc_buffer((8, b, c), "float64")
        for i1, i2, i3, k0 in T.grid(8, b, c, a):
            with T.block("sums"):
                vi1, vi2, vi3, vk0 = T.axis.remap("SSSR", [i1, i2, i3, k0])
                with T.init():
                    sums[vi1, vi2, vi3] = T.float64(0.0)
                sums[vi1, vi2, vi3] = sums[vi1, vi2, vi3] + T.Cast("float64", X[vk0, vi1, vi2, vi3])
        for i0, i1, i2 in T.grid(8, b, c):
            with T.block("mean"):
                vi0, vi1, vi2 = T.axis.remap("SSS", [i0, i1, i2])
                Y[vi0, vi1, vi2] = T.Cast("float32", sums[vi0, vi1, vi2] / T.Cast("float64", a))
    @R.function
    def main(x: R.Tensor(("a", 8, "b", "c"), "float32")):
        a = T.int64()
        b = T.int64()
        c = T.int64()
        y = R.call_tir(Module.mean, (x,), out_sinfo=R.Tensor((8, b, c), "float32"))
        return y
"#;
    let module = parse(text, &Sizes::new())?;
    for threads in [1, 2] {
        let executable = compile(&module, &Options::new().threads(threads))?;
        for shape in [[3, 8, 5, 7], [1, 8, 1, 1], [2, 8, 33, 4]] {
            let values: Vec<f32> = (0..shape.iter().product()).map(|i| (i % 13) as f32).collect();
            let x = Tensor::from_slice(&shape, &values)?;
            let got = executable.run(std::slice::from_ref(&x))?;
            let meant = run_module(&module, "main", &[x])?;
            assert!(got[0].same(&meant[0]), "{shape:?} by {threads}");
        }
    }
    Ok(())
}

/// Sums, products and extrema over as many elements as data say, and a product of matrices: of none they are
/// what they begin with.
#[test]
fn what_is_reduced_over_nothing_is_what_it_begins_with() -> Result<()> {
    let model = |op: &str, body: &str| {
        format!(
            r#"
@I.ir_module
class M:
{FUNCTIONS}
    @T.prim_func
    def fold(a: T.handle, B: T.Buffer((3,), "float32")):
        T.func_attr({{"tir_var_lower_bound": {{"p": 0}}}})
        p = T.int64()
        A = T.match_buffer(a, (p,), "float32")
        for j, i in T.grid(3, p):
            with T.block("B"):
                vj = T.axis.spatial(3, j)
                vi = T.axis.reduce(p, i)
                with T.init():
                    B[vj] = T.float32({op})
                B[vj] = {body}
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        R.func_attr({{"tir_var_lower_bound": {{"s": 0}}}})
        cls = M
        n = T.int64()
        s = T.int64()
        c = R.call_tir(cls.count, (x,), out_sinfo=R.Tensor((1,), "int64"))
        z = R.match_cast(R.tensor_to_shape(c), R.Shape([s]))
        y = R.call_tir(cls.pick, (x,), out_sinfo=R.Tensor((s,), "float32"))
        f = R.call_tir(cls.fold, (y,), out_sinfo=R.Tensor((3,), "float32"))
        return f
"#
        )
    };
    for (start, body, of_two) in [
        ("0", "B[vj] + A[vi]", 1.5f32),
        ("1", "B[vj] * A[vi]", 0.5625),
        ("-7", "T.max(B[vj], A[vi])", 0.75),
    ] {
        let module = parse(&model(start, body), &Sizes::new())?;
        let executable = compile(&module, &Options::default())?;
        let first: f32 = start.parse().expect("a number");
        for (x, want) in [([0.25f32, 0.25], first), ([0.75, 0.75], of_two)] {
            let got = executable.run(&[Tensor::from_slice(&[2], &x)?])?;
            assert_eq!(got[0].as_slice::<f32>(), Some(&[want; 3][..]), "{body}");
        }
    }
    Ok(())
}
