//! Dense tensors: element type, shape, and bytes in row-major order at a 64-byte boundary.
//!
//! One type serves constants in a module, inputs and outputs of a run, and the interpreter. An input
//! may lie in memory of another owner ([`Tensor::from_foreign`]), and then only at a boundary of its
//! elements, which is what kernels ask of inputs. A constant may lie in a file for a while
//! ([`Tensor::from_mapped`]), or have its bytes made where something first asks for them ([`Tensor::late`]).

mod memory;

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Pod;
use half::{bf16, f16};
use memmap2::Mmap;

use crate::dtype::{DType, TypeKind};
use crate::error::{Error, Result};

pub use self::memory::ALIGN;
use self::memory::{Foreign, Late, Mapped, Memory};

/// A dense row-major tensor. Cloning shares the bytes; writing copies them if they are shared.
#[derive(Clone)]
pub struct Tensor {
    dtype: DType,
    shape: Vec<usize>,
    memory: Arc<Memory>,
}

/// How a tensor gets its bytes where something first asks for them ([`Tensor::late`]).
pub trait Origin: Send + Sync {
    /// A tensor of the type and shape that were said.
    fn make(&self) -> Tensor;
}

/// A Rust type that a [`Tensor`] can hold.
pub trait Element: Pod {
    /// The element type.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($t:ty => $d:ident),*) => { $(impl Element for $t { const DTYPE: DType = DType::$d; })* };
}
elements!(i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32,
    u64 => U64, f32 => F32, f64 => F64, f16 => F16, bf16 => BF16);

/// Number of bytes of a tensor, or `None` where it does not fit `isize`.
pub fn byte_count(dtype: DType, shape: &[usize]) -> Option<usize> {
    let n = shape.iter().try_fold(dtype.bytes(), |n, &d| n.checked_mul(d))?;
    (n <= isize::MAX as usize - ALIGN).then_some(n)
}

/// The positions in memory of all elements in row-major order, given extents and strides, outermost
/// first, and the position of the first one. Positions wrap.
pub fn positions(
    mut axes: impl DoubleEndedIterator<Item = (usize, i64)>,
    first: i64,
) -> impl Iterator<Item = i64> {
    let along = |(count, stride): (usize, i64)| {
        move |at: i64| (0..count as i64).map(move |i| at.wrapping_add(i.wrapping_mul(stride)))
    };
    // Of the rows the starts are kept, of the elements nothing.
    let row = along(axes.next_back().unwrap_or((1, 0)));
    let starts = axes.fold(vec![first], |at, axis| at.into_iter().flat_map(along(axis)).collect());
    starts.into_iter().flat_map(row)
}

/// The distance of neighbours along each axis of a compact row-major tensor, in elements.
pub fn row_major(shape: &[usize]) -> Vec<usize> {
    let times = |stride: &usize, extent: &usize| Ok(stride.saturating_mul(*extent));
    row_major_with(shape, 1, times).unwrap_or_default()
}

/// The same for extents of any kind, of which `one` is the number one and `times` multiplies a stride and an extent.
///
/// # Errors
/// Those of `times`.
pub fn row_major_with<T: Clone>(
    shape: &[T],
    one: T,
    times: impl Fn(&T, &T) -> Result<T>,
) -> Result<Vec<T>> {
    let mut strides = vec![one; shape.len()];
    for k in (1..shape.len()).rev() {
        strides[k - 1] = times(&strides[k], &shape[k])?;
    }
    Ok(strides)
}

/// The index of the element of this number in row-major order.
pub fn index_of(mut at: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (i, extent) in index.iter_mut().zip(shape).rev() {
        *i = at % extent.max(&1);
        at /= extent.max(&1);
    }
    index
}

/// What tells a tensor from others ([`Tensor::identity`]).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorIdentity {
    memory: *const u8,
    shape: Vec<usize>,
    dtype: DType,
}

impl Tensor {
    /// A tensor of zeros. Fails where the size does not fit the address space.
    pub fn zeros(dtype: DType, shape: &[usize]) -> Result<Self> {
        let bytes = byte_count(dtype, shape).ok_or_else(|| {
            Error::input(format!("a {dtype} tensor of shape {shape:?} does not fit in memory"))
        })?;
        let memory = Memory::zeros(bytes).ok_or_else(|| {
            Error::input(format!("no memory for a {dtype} tensor of shape {shape:?}"))
        })?;
        Ok(Tensor { dtype, shape: shape.to_vec(), memory: Arc::new(memory) })
    }

    /// A tensor from raw little-endian bytes; their number must fit the shape.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<Self> {
        if byte_count(dtype, shape) != Some(bytes.len()) {
            return Err(Error::input(format!(
                "{} bytes do not fill a {dtype} tensor of shape {shape:?}",
                bytes.len()
            )));
        }
        let mut t = Self::zeros(dtype, shape)?;
        t.bytes_mut().copy_from_slice(bytes);
        Ok(t)
    }

    /// A tensor from elements in row-major order; their number must fit the shape.
    pub fn from_slice<T: Element>(shape: &[usize], values: &[T]) -> Result<Self> {
        Self::from_bytes(T::DTYPE, shape, bytemuck::cast_slice(values))
    }

    /// A tensor in memory of another owner, which is read and never written: writing copies it
    /// first. The owner is kept as long as a clone of the tensor is there.
    ///
    /// # Errors
    /// [`Error::Input`] where the size does not fit the address space, or the address is no multiple
    /// of the size of an element.
    ///
    /// # Safety
    /// As long as the owner is alive, there are as many bytes from `start` on as the tensor has,
    /// which any thread may read, which hold elements of the type (a `bool` is 0 or 1), and which
    /// are not written while they are read.
    pub unsafe fn from_foreign(
        dtype: DType,
        shape: &[usize],
        start: NonNull<u8>,
        owner: Arc<dyn Any + Send + Sync>,
    ) -> Result<Self> {
        let bytes = byte_count(dtype, shape).ok_or_else(|| {
            Error::input(format!("a {dtype} tensor of shape {shape:?} does not fit in memory"))
        })?;
        if !start.as_ptr().addr().is_multiple_of(dtype.bytes().max(1)) {
            return Err(Error::input(format!(
                "a {dtype} tensor at an address that is not aligned"
            )));
        }
        // SAFETY: the contract is the same.
        let memory = Memory::Foreign(unsafe { Foreign::new(start, bytes, owner) });
        Ok(Tensor { dtype, shape: shape.to_vec(), memory: Arc::new(memory) })
    }

    /// A tensor in memory of another owner, that a run may write.
    ///
    /// # Errors
    /// As [`Tensor::from_foreign`].
    ///
    /// # Safety
    /// As [`Tensor::from_foreign`]; and as long as the tensor or what it is part of is alive, nobody else reads or
    /// writes the bytes while it is written.
    pub unsafe fn from_foreign_mut(
        dtype: DType,
        shape: &[usize],
        start: NonNull<u8>,
        owner: Arc<dyn Any + Send + Sync>,
    ) -> Result<Self> {
        // SAFETY: the contract has this one in it.
        let mut tensor = unsafe { Tensor::from_foreign(dtype, shape, start, owner) }?;
        if let Some(Memory::Foreign(foreign)) = Arc::get_mut(&mut tensor.memory) {
            foreign.allow_writes();
        }
        Ok(tensor)
    }

    /// Whether its bytes can be written where they are: nothing else holds them.
    pub fn is_alone(&mut self) -> bool {
        Arc::get_mut(&mut self.memory).is_some_and(|memory| memory.is_own())
    }

    /// A tensor that is bytes of a file, which is read where something asks for them and written never: writing
    /// copies them first, and so does reading elements that lie at no multiple of their size
    /// ([`Tensor::unaligned_bytes`] does not). `None` where they are not as many as it has, or booleans, of which a
    /// file may say more than 0 and 1.
    ///
    /// Where `stays` is false, the file may change later: what is kept of it has to be [copied](Tensor::copied_from_file).
    pub fn from_mapped(
        dtype: DType,
        shape: &[usize],
        map: &Arc<Mmap>,
        range: Range<usize>,
        stays: bool,
    ) -> Option<Self> {
        let part = map.get(range.clone())?;
        let fits = byte_count(dtype, shape) == Some(part.len()) && !dtype.is_bool();
        let is_aligned = part.as_ptr().addr().is_multiple_of(dtype.bytes().max(1));
        let memory = Memory::Mapped(Mapped::new(map.clone(), range, stays, is_aligned));
        fits.then(|| Tensor { dtype, shape: shape.to_vec(), memory: Arc::new(memory) })
    }

    /// A tensor whose bytes are made where something first asks for them: constants that several conversions move one
    /// after the other are moved once, by all of them.
    ///
    /// # Errors
    /// [`Error::Input`] where the size does not fit the address space.
    pub fn late<T: Origin + 'static>(
        dtype: DType,
        shape: &[usize],
        origin: Arc<T>,
    ) -> Result<Self> {
        byte_count(dtype, shape).ok_or_else(|| {
            Error::input(format!("a {dtype} tensor of shape {shape:?} does not fit in memory"))
        })?;
        let make = origin.clone();
        let late = Late::new(origin, Box::new(move || make.make().memory));
        let memory = Arc::new(Memory::Late(late));
        Ok(Tensor { dtype, shape: shape.to_vec(), memory })
    }

    /// The [`Origin`] that the bytes will come from; `None` where they are there.
    pub fn origin(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        match &*self.memory {
            Memory::Late(late) => late.origin(),
            _ => None,
        }
    }

    /// An address that tells the memory of this tensor from that of others as long as it is there, without making its
    /// bytes: clones have the same one, and so do tensors of the same bytes of a file.
    pub fn memory_address(&self) -> *const u8 {
        match &*self.memory {
            Memory::Late(late) => std::ptr::from_ref(late).cast(),
            memory => memory.unaligned_bytes().as_ptr(),
        }
    }

    /// What tells this tensor from others as long as its memory is there, as [`Tensor::memory_address`]: tensors of one
    /// memory may have several shapes and types, and all that have no elements have one memory.
    pub fn identity(&self) -> TensorIdentity {
        TensorIdentity {
            memory: self.memory_address(),
            shape: self.shape.clone(),
            dtype: self.dtype,
        }
    }

    /// Number of bytes.
    pub fn byte_len(&self) -> usize {
        self.len() * self.dtype.bytes()
    }

    /// Lets go of memory that can be read from a file again.
    pub fn release(&self) {
        if let Memory::Mapped(mapped) = &*self.memory {
            mapped.release();
        }
    }

    /// The tensor, in memory of its own where it is bytes of a file that may change, which is made where something
    /// first asks for it ([`Tensor::origin`]).
    pub fn copied_from_file(&self) -> Self {
        let memory = match &*self.memory {
            Memory::Mapped(mapped) if !mapped.stays => match mapped.copy() {
                Some(copy) => copy,
                None => {
                    let from = self.clone();
                    let make = move || {
                        let copy = Arc::new((*from.memory).clone());
                        from.release();
                        copy
                    };
                    Arc::new(Memory::Late(Late::new(Arc::new(()), Box::new(make))))
                }
            },
            _ => self.memory.clone(),
        };
        Tensor { dtype: self.dtype, shape: self.shape.clone(), memory }
    }

    /// A `bool` tensor; one byte an element.
    pub fn from_bools(shape: &[usize], values: &[bool]) -> Result<Self> {
        let bytes: Vec<u8> = values.iter().map(|&b| u8::from(b)).collect();
        Self::from_bytes(DType::BOOL, shape, &bytes)
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, row-major, little-endian.
    pub fn bytes(&self) -> &[u8] {
        &self.memory.bytes()[..self.byte_len()]
    }

    /// The same bytes at any address: those of a file stay there, where [`Tensor::bytes`] copies elements that lie at
    /// no multiple of their size.
    pub fn unaligned_bytes(&self) -> &[u8] {
        &self.memory.unaligned_bytes()[..self.byte_len()]
    }

    /// The bytes for writing; copies them first if they are shared.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let n = self.byte_len();
        &mut Arc::make_mut(&mut self.memory).bytes_mut()[..n]
    }

    /// The elements, or `None` if `T` is not the element type.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        (T::DTYPE == self.dtype).then(|| bytemuck::cast_slice(self.bytes()))
    }

    /// The elements for writing, or `None` if `T` is not the element type.
    pub fn as_mut_slice<T: Element>(&mut self) -> Option<&mut [T]> {
        (T::DTYPE == self.dtype).then(|| bytemuck::cast_slice_mut(self.bytes_mut()))
    }

    /// The same elements under another shape of the same size.
    pub fn reshape(&self, shape: &[usize]) -> Result<Self> {
        if byte_count(self.dtype, shape) != Some(self.byte_len()) {
            return Err(Error::input(format!(
                "a tensor of shape {:?} cannot take the shape {shape:?}",
                self.shape
            )));
        }
        Ok(Tensor { shape: shape.to_vec(), ..self.clone() })
    }

    /// Element `i` in row-major order as `f64` (`bool` as 0 or 1); panics past the end.
    pub fn get_f64(&self, i: usize) -> f64 {
        let n = self.dtype.bytes();
        let b = &self.bytes()[i * n..(i + 1) * n];
        match (self.dtype.kind, n) {
            (TypeKind::Float, 2) => f64::from(bytemuck::pod_read_unaligned::<f16>(b)),
            (TypeKind::Float, 4) => f64::from(bytemuck::pod_read_unaligned::<f32>(b)),
            (TypeKind::Float, _) => bytemuck::pod_read_unaligned::<f64>(b),
            (TypeKind::BFloat, _) => f64::from(bytemuck::pod_read_unaligned::<bf16>(b)),
            _ => self.get_i128(i) as f64,
        }
    }

    /// Element `i` in row-major order of an integer or `bool` tensor; floats are truncated.
    /// Panics past the end.
    pub fn get_i128(&self, i: usize) -> i128 {
        let n = self.dtype.bytes();
        let b = &self.bytes()[i * n..(i + 1) * n];
        match (self.dtype.kind, n) {
            (TypeKind::Int, 1) => i128::from(b[0] as i8),
            (TypeKind::Int, 2) => i128::from(bytemuck::pod_read_unaligned::<i16>(b)),
            (TypeKind::Int, 4) => i128::from(bytemuck::pod_read_unaligned::<i32>(b)),
            (TypeKind::Int, _) => i128::from(bytemuck::pod_read_unaligned::<i64>(b)),
            (TypeKind::UInt | TypeKind::Bool, 1) => i128::from(b[0]),
            (TypeKind::UInt, 2) => i128::from(bytemuck::pod_read_unaligned::<u16>(b)),
            (TypeKind::UInt, 4) => i128::from(bytemuck::pod_read_unaligned::<u32>(b)),
            (TypeKind::UInt | TypeKind::Handle, _) => {
                i128::from(bytemuck::pod_read_unaligned::<u64>(b))
            }
            _ => self.get_f64(i) as i128,
        }
    }

    /// The elements from one on, in row-major order, as many as a shape has; in the same file where they lie in one
    /// ([`Tensor::from_mapped`]), and a copy otherwise. `None` where there are not so many.
    pub fn part(&self, first: usize, shape: &[usize]) -> Option<Self> {
        let bytes = byte_count(self.dtype, shape)?;
        let start = first.checked_mul(self.dtype.bytes())?;
        let range = start..start.checked_add(bytes)?;
        let elements = self.unaligned_bytes().get(range.clone())?;
        if let Memory::Mapped(Mapped { map, range: own, stays, .. }) = &*self.memory {
            let range = own.start + range.start..own.start + range.end;
            if let Some(part) = Tensor::from_mapped(self.dtype, shape, map, range, *stays) {
                return Some(part);
            }
        }
        Tensor::from_bytes(self.dtype, shape, elements).ok()
    }

    /// Whether type, shape and every byte agree (so `NaN` equals itself, and `-0.0` is not `0.0`).
    pub fn same(&self, other: &Tensor) -> bool {
        self.dtype == other.dtype
            && self.shape == other.shape
            && (Arc::ptr_eq(&self.memory, &other.memory)
                || self.unaligned_bytes() == other.unaligned_bytes())
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({}, {:?}, [", self.dtype, self.shape)?;
        for i in 0..self.len().min(8) {
            let sep = if i > 0 { ", " } else { "" };
            if self.dtype.is_float() {
                write!(f, "{sep}{}", self.get_f64(i))?
            } else {
                write!(f, "{sep}{}", self.get_i128(i))?
            }
        }
        f.write_str(if self.len() > 8 { ", ...])" } else { "])" })
    }
}
