//! Arrays of `f64` for reference loops, and the comparison with an operator in the interpreter.

use tilewright_analysis::stage::stages;
use tilewright_interp::run_module;
use tilewright_ir::{
    Block, DType, Dim, IterKind, Module, Result, Tensor, TensorFunc, Visit, visit,
};

/// A number, or a size that is one.
pub trait Extent: Copy {
    fn count(self) -> usize;
}

impl Extent for usize {
    fn count(self) -> usize {
        self
    }
}

impl Extent for Dim {
    fn count(self) -> usize {
        self.known().expect("the sizes of these tests are numbers")
    }
}

/// A shape of numbers.
pub fn numbers<D: Extent>(shape: &[D]) -> Vec<usize> {
    shape.iter().map(|d| d.count()).collect()
}

/// A dense array.
#[derive(Clone, Debug)]
pub struct Nd {
    pub shape: Vec<usize>,
    pub data: Vec<f64>,
}

impl Nd {
    /// The array whose element at an index is what `f` says.
    pub fn build(shape: &[usize], mut f: impl FnMut(&[usize]) -> f64) -> Nd {
        let count = shape.iter().product();
        let mut index = vec![0; shape.len()];
        let mut data = Vec::with_capacity(count);
        for _ in 0..count {
            data.push(f(&index));
            for (i, &d) in index.iter_mut().zip(shape).rev() {
                *i += 1;
                if *i < d {
                    break;
                }
                *i = 0;
            }
        }
        Nd { shape: shape.to_vec(), data }
    }

    /// Sixteenths between -4 and 4, which every float type holds exactly.
    pub fn random<D: Extent>(shape: &[D], seed: u64) -> Nd {
        let shape = &numbers(shape);
        Self::integers(shape, seed, -63, 63).map(|v| v / 16.0)
    }

    /// Integers from `low` to `high`.
    pub fn integers<D: Extent>(shape: &[D], seed: u64, low: i64, high: i64) -> Nd {
        let shape = &numbers(shape);
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
        Self::build(shape, |_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let span = (high - low + 1) as u64;
            (low + ((state >> 33) % span) as i64) as f64
        })
    }

    pub fn map(&self, f: impl Fn(f64) -> f64) -> Nd {
        Nd { shape: self.shape.clone(), data: self.data.iter().map(|&v| f(v)).collect() }
    }

    fn offset(&self, index: &[usize]) -> usize {
        assert_eq!(index.len(), self.shape.len());
        index.iter().zip(&self.shape).fold(0, |o, (&i, &d)| {
            assert!(i < d, "{index:?} in {:?}", self.shape);
            o * d + i
        })
    }

    pub fn at(&self, index: &[usize]) -> f64 {
        self.data[self.offset(index)]
    }

    pub fn set(&mut self, index: &[usize], value: f64) {
        let at = self.offset(index);
        self.data[at] = value;
    }

    /// The element, or nothing outside.
    pub fn get(&self, index: &[i64]) -> Option<f64> {
        let inside = index.iter().zip(&self.shape).all(|(&i, &d)| 0 <= i && i < d as i64);
        inside.then(|| self.at(&index.iter().map(|&i| i as usize).collect::<Vec<_>>()))
    }

    /// The element of an array that broadcasts, at an index of more or wider axes.
    pub fn broadcast(&self, index: &[usize]) -> f64 {
        let skip = index.len() - self.shape.len();
        let own: Vec<usize> =
            index[skip..].iter().zip(&self.shape).map(|(&i, &d)| i.min(d - 1)).collect();
        self.at(&own)
    }

    pub fn tensor(&self, dtype: DType) -> Tensor {
        let v = &self.data;
        macro_rules! of {
            ($t:ty) => {
                Tensor::from_slice(&self.shape, &v.iter().map(|&x| x as $t).collect::<Vec<_>>())
            };
        }
        let t = match dtype {
            DType::F32 => of!(f32),
            DType::F64 => of!(f64),
            DType::I8 => of!(i8),
            DType::I32 => of!(i32),
            DType::I64 => of!(i64),
            DType::U8 => of!(u8),
            DType::U32 => of!(u32),
            DType::BOOL => {
                Tensor::from_bools(&self.shape, &v.iter().map(|&x| x != 0.0).collect::<Vec<_>>())
            }
            DType::F16 => Tensor::from_slice(
                &self.shape,
                &v.iter().map(|&x| half::f16::from_f64(x)).collect::<Vec<_>>(),
            ),
            DType::BF16 => Tensor::from_slice(
                &self.shape,
                &v.iter().map(|&x| half::bf16::from_f64(x)).collect::<Vec<_>>(),
            ),
            _ => panic!("no tests with {dtype}"),
        };
        t.unwrap()
    }

    pub fn f32(&self) -> Tensor {
        self.tensor(DType::F32)
    }
}

/// Whether a block has an axis whose order counts, which the canonical form does not know.
fn scans(func: &TensorFunc) -> bool {
    struct Scans(bool);
    impl Visit for Scans {
        fn block(&mut self, b: &Block) {
            self.0 |= !b.allocs.is_empty() || b.iters.iter().any(|i| i.kind == IterKind::Opaque);
            visit::walk_block(self, b);
        }
    }
    let mut scans = Scans(false);
    scans.stmt(&func.body);
    scans.0
}

/// Runs a tensor function in the interpreter. It must consist of stages in canonical form.
pub fn run(func: Result<TensorFunc>, inputs: &[Tensor]) -> Vec<Tensor> {
    let func = func.unwrap_or_else(|e| panic!("{}", e.render()));
    assert!(scans(&func) || stages(&func).is_some(), "not in canonical form: {:?}", func.body);
    let mut module = Module::new();
    module.insert("main", func);
    run_module(&module, "main", inputs).unwrap_or_else(|e| panic!("{}", e.render()))
}

/// Largest difference that rounding explains, relative to values of size one and above.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2e-3,
        DType::BF16 => 2e-2,
        DType::F32 => 1e-5,
        DType::F64 => 1e-12,
        _ => 0.0,
    }
}

/// Runs a tensor function and compares each result with an array in a type.
#[track_caller]
pub fn check(func: Result<TensorFunc>, inputs: &[Tensor], expected: &[(&Nd, DType)]) {
    let results = run(func, inputs);
    assert_eq!(results.len(), expected.len());
    for (result, (expected, dtype)) in results.iter().zip(expected) {
        assert_eq!((result.dtype(), result.shape()), (*dtype, expected.shape.as_slice()));
        for (at, &want) in expected.data.iter().enumerate() {
            let got = result.get_f64(at);
            let same = got == want || got.is_nan() && want.is_nan();
            let close = (got - want).abs() <= tolerance(*dtype) * want.abs().max(1.0);
            assert!(same || close, "element {at} of {:?}: {got}, not {want}", expected.shape);
        }
    }
}

/// [`check`] for one `float32` result.
#[track_caller]
pub fn check_f32(func: Result<TensorFunc>, inputs: &[Tensor], expected: &Nd) {
    check(func, inputs, &[(expected, DType::F32)]);
}

/// The message of an error, after its kind.
#[track_caller]
pub fn refused(func: Result<TensorFunc>) -> String {
    match func {
        Ok(_) => panic!("not refused"),
        Err(e) => {
            let kind = match e {
                tilewright_ir::Error::Input(_) => "input",
                tilewright_ir::Error::Unsupported(_) => "unsupported",
                _ => "other",
            };
            format!("{kind}: {e}")
        }
    }
}
