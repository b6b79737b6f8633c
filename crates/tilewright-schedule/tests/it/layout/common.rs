//! Functions from text, lambdas from text, and the comparison of a function before and after.

use std::collections::BTreeMap;

use tilewright_interp::{Arg, RunOptions, State, run_func, written_params};
use tilewright_ir::{
    Buffer, DType, Error, Expr, Fold, Module, Param, Result, Source, StmtKind, Tensor, TensorFunc,
    Var, visit,
};
use tilewright_layout::index_map::IndexMap;
use tilewright_polyhedral::evaluate;
use tilewright_schedule::value::{BlockRef, Lambda, LambdaBody, LambdaItem, Value};
use tilewright_schedule::{Permissions, Schedule};
use tilewright_tvmscript::{parse_module, print_module};

/// A function called `main`.
pub fn parse(text: &str) -> Module {
    let source = Source::new("case.py", text);
    let parsed = parse_module(&source).unwrap_or_else(|e| panic!("{}", e.render()));
    let mut module = Module { source: parsed.source.clone(), ..Module::new() };
    for f in parsed.functions.into_values() {
        module.functions.insert("main".into(), f);
    }
    module
}

/// A schedule that may change the interface.
pub fn schedule(text: &str) -> Schedule {
    Schedule::new(parse(text), Permissions { change_interface: true })
}

pub fn block(sch: &mut Schedule, name: &str) -> BlockRef {
    sch.get_block(name, "main").unwrap_or_else(|e| panic!("{}", e.render()))
}

pub fn shown(sch: &Schedule) -> String {
    print_module(sch.module())
}

/// An expression over variables; of two with one name the last.
fn expression<'a>(text: &str, vars: impl Iterator<Item = &'a Var>) -> Expr {
    let named: BTreeMap<_, &Var> = vars.map(|v| (v.name(), v)).collect();
    let vars: Vec<&Var> = named.into_values().filter(|v| v.dtype().is_int()).collect();
    let params: Vec<String> =
        vars.iter().map(|v| format!("{}: T.{}", v.name(), v.dtype())).collect();
    let params = params.join(", ");
    let parsed = parse(&format!("@T.prim_func\ndef main({params}):\n    T.evaluate({text})\n"));
    let f = parsed.tensor("main").expect("a function");
    let StmtKind::Evaluate(e) = f.body.kind() else { panic!("{text} is no expression") };
    let own = f.params.iter().map(|p| match p {
        Param::Scalar(v) => v.clone(),
        Param::Buffer { handle, .. } => handle.clone(),
    });
    visit::Subst::vars(own.zip(vars.into_iter().map(Var::expr))).expr(e)
}

/// A lambda such as `i, j: i // 4, AXIS, i % 4`; names of scalar parameters may be given.
pub fn lambda_with(text: &str, outside: &[Var]) -> Lambda {
    let (params, body) = text.split_once(':').unwrap();
    let params: Vec<String> = params.split(',').map(|p| p.trim().to_owned()).collect();
    let items: Vec<String> = top_level(body);
    let outside = outside.to_vec();
    Lambda::new(format!("lambda {text}"), move |dtypes| {
        if dtypes.len() != params.len() {
            return Err(Error::input(format!("the lambda takes {} indices", params.len())));
        }
        let vars: Vec<Var> =
            params.iter().zip(dtypes).map(|(p, d)| Var::new(p.as_str(), *d)).collect();
        let item = |text: &String| match text.as_str() {
            "AXIS" => Ok(LambdaItem::Separator),
            "None" => Ok(LambdaItem::None),
            number if number.parse::<f64>().is_ok() => {
                Ok(LambdaItem::Number(number.parse().unwrap()))
            }
            text => Ok(LambdaItem::Expr(expression(text, outside.iter().chain(&vars)))),
        };
        let items = items.iter().map(item).collect::<Result<Vec<_>>>()?;
        Ok(LambdaBody { params: vars, items })
    })
}

pub fn lambda(text: &str) -> Lambda {
    lambda_with(text, &[])
}

fn top_level(text: &str) -> Vec<String> {
    let (mut out, mut depth) = (vec![String::new()], 0);
    for c in text.chars() {
        depth += i32::from("([".contains(c)) - i32::from(")]".contains(c));
        match c {
            ',' if depth == 0 => out.push(String::new()),
            c => out.last_mut().unwrap().push(c),
        }
    }
    out.iter().map(|s| s.trim().to_owned()).filter(|s| !s.is_empty()).collect()
}

/// A pad value that reads the buffer itself.
pub fn wrap(buffer: Buffer, text: &str) -> Value {
    let inner = lambda(text);
    Value::Lambda(Lambda::new(text.to_owned(), move |dtypes| {
        let body = inner.bind(dtypes)?;
        let at = body.items.into_iter().map(|i| match i {
            LambdaItem::Expr(e) => e,
            LambdaItem::Number(v) => Expr::i32(v as i32),
            _ => panic!("an index"),
        });
        let load = Expr::load(&buffer, at.collect());
        Ok(LambdaBody { params: body.params, items: vec![LambdaItem::Expr(load)] })
    }))
}

/// What the padding of a parameter holds.
#[derive(Clone, Debug)]
pub enum Pad {
    Nothing,
    Undef,
    Is(f64),
}

/// A parameter that lies in another way.
pub struct Moved {
    pub param: usize,
    pub map: Lambda,
    pub pad: Pad,
}

pub fn moved(param: usize, map: &str, pad: Pad) -> Moved {
    Moved { param, map: lambda(map), pad }
}

fn dims(b: &Buffer) -> Vec<usize> {
    b.const_shape().unwrap().iter().map(|d| *d as usize).collect()
}

fn points(shape: &[usize]) -> Vec<Vec<i64>> {
    let n: usize = shape.iter().product();
    (0..n)
        .map(|mut k| {
            let mut at: Vec<i64> = shape
                .iter()
                .rev()
                .map(|d| {
                    let x = k % d;
                    k /= d;
                    x as i64
                })
                .collect();
            at.reverse();
            at
        })
        .collect()
}

fn flat(at: &[i64], shape: &[usize]) -> usize {
    at.iter().zip(shape).fold(0, |sum, (x, d)| sum * d + *x as usize)
}

/// Where each logical cell lies.
fn places(map: &Lambda, logical: &[usize], physical: &[usize]) -> Vec<usize> {
    let map = IndexMap::bind(map, &vec![DType::I32; logical.len()]).unwrap();
    points(logical)
        .iter()
        .map(|p| {
            let env = |v: &Var| map.params.iter().position(|x| x == v).map(|k| p[k]);
            let at: Vec<i64> = map.indices.iter().map(|e| evaluate(e, &env).unwrap()).collect();
            assert!(at.iter().zip(physical).all(|(x, d)| 0 <= *x && (*x as usize) < *d));
            flat(&at, physical)
        })
        .collect()
}

fn tensor(dtype: DType, shape: &[usize], values: &[f64]) -> Tensor {
    match dtype {
        DType::I32 => {
            let v: Vec<i32> = values.iter().map(|x| *x as i32).collect();
            Tensor::from_slice(shape, &v).unwrap()
        }
        DType::F32 => {
            let v: Vec<f32> = values.iter().map(|x| *x as f32).collect();
            Tensor::from_slice(shape, &v).unwrap()
        }
        other => panic!("no test data of {other}"),
    }
}

/// Runs both functions on the same data and compares logical cells with each other, and padding
/// with what it should hold.
pub fn same(before: &TensorFunc, after: &TensorFunc, moved: &[Moved]) -> Result<(), String> {
    let written = written_params(before);
    let (old, new): (Vec<&Buffer>, Vec<&Buffer>) =
        (before.buffers().collect(), after.buffers().collect());
    let mut seed = 7u64;
    let mut next = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((seed >> 33) % 9) as f64 - 4.0
    };
    let find = |k: usize| moved.iter().find(|m| m.param == k);
    let (mut args, mut new_args) = (Vec::new(), Vec::new());
    for (k, b) in old.iter().enumerate() {
        let (shape, dtype) = (dims(b), b.dtype());
        if written[k] {
            args.push(Arg::Fresh(None));
            new_args.push(Arg::Fresh(None));
            continue;
        }
        let data: Vec<f64> = (0..shape.iter().product()).map(|_| next()).collect();
        args.push(Arg::Tensor(tensor(dtype, &shape, &data)));
        let physical = dims(new[k]);
        let Some(m) = find(k) else {
            new_args.push(Arg::Tensor(tensor(dtype, &physical, &data)));
            continue;
        };
        let n: usize = physical.iter().product();
        let (fill, state) = match m.pad {
            Pad::Nothing => (99.0, State::Unwritten),
            Pad::Undef => (99.0, State::Undef),
            Pad::Is(v) => (v, State::Value),
        };
        let (mut cells, mut states) = (vec![fill; n], vec![state; n]);
        for (at, x) in places(&m.map, &shape, &physical).into_iter().zip(&data) {
            (cells[at], states[at]) = (*x, State::Value);
        }
        new_args.push(Arg::Partial(tensor(dtype, &physical, &cells), states));
    }
    let options = RunOptions::default();
    let text = |e: Error| e.render();
    let first = run_func(before, &args, &options).map_err(text)?;
    let second = run_func(after, &new_args, &options).map_err(text)?;
    for (k, b) in old.iter().enumerate().filter(|(k, _)| written[*k]) {
        let a = first.outputs.iter().find(|o| o.param == k).ok_or("no output")?;
        let z = second.outputs.iter().find(|o| o.param == k).ok_or("no output")?;
        let (shape, physical) = (dims(b), dims(new[k]));
        let n: usize = physical.iter().product();
        let mut rest = vec![true; n];
        let at: Vec<usize> = match find(k) {
            Some(m) => places(&m.map, &shape, &physical),
            None => (0..n).collect(),
        };
        let state = |o: &tilewright_interp::Output, i: usize| {
            o.states.as_ref().map_or(State::Value, |s| s[i])
        };
        for (i, j) in at.into_iter().enumerate() {
            rest[j] = false;
            if state(a, i) != state(z, j) || a.tensor.get_f64(i) != z.tensor.get_f64(j) {
                return Err(format!("`{}` differs at {i} (now {j})", b.name));
            }
        }
        for j in (0..n).filter(|j| rest[*j]) {
            let found = state(z, j);
            let good = match find(k).map(|m| &m.pad) {
                Some(Pad::Nothing) => found == State::Unwritten,
                Some(Pad::Undef) => found == State::Undef,
                Some(Pad::Is(v)) => found == State::Value && z.tensor.get_f64(j) == *v,
                None => false,
            };
            if !good {
                return Err(format!("the padding of `{}` is {found:?} at {j}", b.name));
            }
        }
    }
    Ok(())
}

/// Compares the function of a schedule with the text it came from.
pub fn verify(text: &str, sch: &Schedule, moved: &[Moved]) {
    let before = parse(text);
    let before = before.tensor("main").unwrap().clone();
    let after = sch.func("main").unwrap();
    if let Err(why) = same(&before, after, moved) {
        panic!("{why}\n{}", shown(sch));
    }
}

/// The variables that a function takes as scalars or binds in shapes.
pub fn free_sizes(module: &Module) -> Vec<Var> {
    struct Vars(Vec<Var>);
    impl Fold for Vars {
        fn var_def(&mut self, v: &Var) -> Var {
            self.0.push(v.clone());
            v.clone()
        }
    }
    let mut vars = Vars(Vec::new());
    visit::fold_func(&mut vars, module.tensor("main").unwrap());
    for b in module.tensor("main").unwrap().buffers() {
        vars.0.extend(b.shape.iter().filter_map(|e| e.as_var().cloned()));
    }
    vars.0
}
