//! Constant tensors: from a file's encoding, inside the model or in a file beside it.
//!
//! A file beside the model is mapped and not read: its weights take no memory of their own, and what
//! is not used is never loaded. So is a large model file: its weights lie there until the program has what it
//! makes of them.

use std::fs::File;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tilewright_ir::hash::HashMap;

use memmap2::Mmap;
use tilewright_ir::tensor::byte_count;
use tilewright_ir::{DType, Error, Result, Tensor};
use tilewright_runtime::file;

use crate::extents::checked_shape;
use crate::narrow::{self, Narrow};
use crate::proto::{Bytes, DataType, EXTERNAL, TensorProto};

/// Element types that a model may use.
const TYPES: [(DataType, DType); 13] = [
    (DataType::Float, DType::F32),
    (DataType::Double, DType::F64),
    (DataType::Float16, DType::F16),
    (DataType::Bfloat16, DType::BF16),
    (DataType::Bool, DType::BOOL),
    (DataType::Int8, DType::I8),
    (DataType::Int16, DType::I16),
    (DataType::Int32, DType::I32),
    (DataType::Int64, DType::I64),
    (DataType::Uint8, DType::U8),
    (DataType::Uint16, DType::U16),
    (DataType::Uint32, DType::U32),
    (DataType::Uint64, DType::U64),
];

/// The element type of this number in the file.
///
/// # Errors
/// [`Error::Unsupported`] for types that are not supported, and for [`Narrow`] ones;
/// [`Error::Model`] where there is no such number.
pub(crate) fn element_type(number: i32) -> Result<DType> {
    let known = DataType::try_from(number);
    if let Some((_, dtype)) = TYPES.iter().find(|(t, _)| Ok(*t) == known) {
        return Ok(*dtype);
    }
    match known {
        Ok(DataType::Undefined) => Err(Error::model("the element type is not given")),
        Ok(t) => Err(Error::unsupported(match Narrow::from_number(number) {
            Some(narrow) => format!("element type {} is not supported here", narrow.name()),
            None => format!("element type {} is not supported", format!("{t:?}").to_uppercase()),
        })
        .note(supported_types())),
        Err(_) => Err(Error::model(format!("there is no element type number {number}"))),
    }
}

/// An element type of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    /// One that modules have.
    Plain(DType),
    /// One that they do not have.
    Narrow(Narrow),
}

impl Element {
    /// The type of this number in the file.
    ///
    /// # Errors
    /// As [`element_type`].
    pub(crate) fn from_number(number: i32) -> Result<Element> {
        match Narrow::from_number(number) {
            Some(narrow) => Ok(Element::Narrow(narrow)),
            None => element_type(number).map(Element::Plain),
        }
    }

    /// The type in which elements are kept.
    pub(crate) fn stored(self) -> DType {
        match self {
            Element::Plain(dtype) => dtype,
            Element::Narrow(narrow) => narrow.stored(),
        }
    }

    /// The bytes that elements take in a file which take so many as they are kept.
    fn packed(self, bytes: usize) -> usize {
        match self {
            Element::Plain(_) => bytes,
            Element::Narrow(narrow) => bytes.div_ceil(8 / narrow.bits()),
        }
    }

    /// How many bits an element has.
    pub(crate) fn bits(self) -> usize {
        match self {
            Element::Plain(dtype) if dtype.is_bool() => 8,
            Element::Plain(dtype) => usize::from(dtype.bits),
            Element::Narrow(narrow) => narrow.bits(),
        }
    }

    pub(crate) fn name(self) -> String {
        match self {
            Element::Plain(dtype) => dtype.to_string(),
            Element::Narrow(narrow) => narrow.name().to_owned(),
        }
    }
}

fn supported_types() -> String {
    let names: Vec<String> = TYPES.iter().map(|(_, d)| d.to_string()).collect();
    let narrow: Vec<&str> = narrow::names().collect();
    let names = format!(
        "{}; where they are only moved, converted or quantised, {}",
        names.join(", "),
        narrow.join(", ")
    );
    format!("supported element types: {names}")
}

/// Makes the tensor that `proto` describes; `folder` is where files beside the model are looked
/// for, `None` for a model that has no place.
///
/// Nothing is allocated before the data was seen to be there.
pub(crate) fn tensor(proto: &TensorProto, folder: Option<&Folder>) -> Result<Tensor> {
    let shape = checked_shape(&proto.dims)?;
    if proto.segment.is_some() {
        return Err(Error::unsupported("tensors stored in segments are not supported"));
    }
    let element = Element::from_number(proto.data_type)?;
    let bytes = byte_count(element.stored(), &shape)
        .ok_or_else(|| Error::unsupported(format!("a tensor of shape {shape:?} is too large")))?;
    match element {
        Element::Plain(dtype) => stored(proto, folder, dtype, &shape, bytes),
        // Elements that are narrower than a byte, or floats of a byte.
        Element::Narrow(narrow) => {
            let packed = element.packed(bytes);
            let packed = stored(proto, folder, DType::U8, &[packed], packed)?;
            let elements = narrow.unpack(packed.bytes(), bytes);
            Tensor::from_bytes(narrow.stored(), &shape, &elements)
        }
    }
}

/// The elements of a tensor as the file has them.
fn stored(
    proto: &TensorProto,
    folder: Option<&Folder>,
    dtype: DType,
    shape: &[usize],
    bytes: usize,
) -> Result<Tensor> {
    match (proto.data_location == EXTERNAL, &proto.raw_data) {
        (true, _) => external(proto, folder, dtype, shape, bytes),
        (false, Some(raw)) => inline(raw, folder, dtype, shape, bytes),
        (false, None) => listed(proto, dtype, shape),
    }
}

/// Bytes from which a tensor stays in a model file that is mapped.
const LARGE: usize = 1 << 12;

/// A tensor whose elements are bytes of the model: there, where the file is mapped.
fn inline(
    raw: &Bytes,
    folder: Option<&Folder>,
    dtype: DType,
    shape: &[usize],
    bytes: usize,
) -> Result<Tensor> {
    if raw.len() != bytes {
        return Err(Error::model(format!(
            "{bytes} bytes are needed for {dtype} of shape {shape:?}, but there are {}",
            raw.len()
        )));
    }
    let own = folder.and_then(|folder| folder.own.as_ref()).filter(|_| bytes >= LARGE);
    let mapped = own.and_then(|map| {
        let from = raw.as_ptr().addr().checked_sub(map.as_ptr().addr())?;
        Tensor::from_mapped(dtype, shape, map, from..from.checked_add(bytes)?, false)
    });
    mapped.map_or_else(|| Tensor::from_bytes(dtype, shape, raw).map(clean), Ok)
}

/// A byte of a `bool` may be anything in a file; in memory it is 0 or 1.
fn clean(mut tensor: Tensor) -> Tensor {
    if tensor.dtype().is_bool() && tensor.bytes().iter().any(|&b| b > 1) {
        tensor.bytes_mut().iter_mut().for_each(|b| *b = u8::from(*b != 0));
    }
    tensor
}

/// A tensor whose elements are in a typed list.
fn listed(proto: &TensorProto, dtype: DType, shape: &[usize]) -> Result<Tensor> {
    let count = shape.iter().product::<usize>();
    macro_rules! same {
        ($field:ident) => {{
            check_length(stringify!($field), proto.$field.len(), count, shape)?;
            Tensor::from_slice(shape, &proto.$field)
        }};
    }
    macro_rules! narrow {
        ($field:ident, $t:ty) => {{
            check_length(stringify!($field), proto.$field.len(), count, shape)?;
            let values: Result<Vec<$t>> = proto
                .$field
                .iter()
                .map(|&v| <$t>::try_from(v).map_err(|_| out_of_range(v.to_string(), dtype)))
                .collect();
            Tensor::from_slice(shape, &values?)
        }};
    }
    match dtype {
        DType::F32 => same!(float_data),
        DType::F64 => same!(double_data),
        DType::I64 => same!(int64_data),
        DType::U64 => same!(uint64_data),
        DType::I32 => same!(int32_data),
        DType::BOOL => {
            check_length("int32_data", proto.int32_data.len(), count, shape)?;
            let values: Vec<bool> = proto.int32_data.iter().map(|&v| v != 0).collect();
            Tensor::from_bools(shape, &values)
        }
        DType::U32 => narrow!(uint64_data, u32),
        DType::I16 => narrow!(int32_data, i16),
        DType::I8 => narrow!(int32_data, i8),
        DType::U16 => narrow!(int32_data, u16),
        DType::U8 => narrow!(int32_data, u8),
        DType::F16 | DType::BF16 => {
            let bits = narrow!(int32_data, u16)?;
            Tensor::from_bytes(dtype, shape, bits.bytes())
        }
        _ => Err(Error::internal(format!("no list for elements of {dtype}"))),
    }
}

fn check_length(field: &str, found: usize, count: usize, shape: &[usize]) -> Result<()> {
    if found == count {
        Ok(())
    } else {
        Err(Error::model(format!(
            "a tensor of shape {shape:?} has {count} elements, but `{field}` has {found}"
        )))
    }
}

fn out_of_range(v: String, dtype: DType) -> Error {
    Error::model(format!("the element {v} does not fit {dtype}"))
}

/// A file that is mapped, as bytes to decode.
pub(crate) struct MappedFile(pub(crate) Arc<Mmap>);

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A file in memory, without reading it.
pub(crate) fn mapped(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the mapping is only read. Who changes the file while the model is in use changes the
    // model, as who changes a library does that a program has loaded; that is said in the manual.
    unsafe { Mmap::map(file) }
}

/// Where files beside a model are looked for.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    /// The model's directory, as the user named it.
    path: PathBuf,
    /// Directories that such a file may really lie in, without links: that of the path, and
    /// that of the file which the path leads to.
    inside: Vec<PathBuf>,
    /// The files that are mapped, by their real paths.
    mapped: Arc<Mutex<HashMap<PathBuf, Arc<Mmap>>>>,
    /// The model file itself, where it is mapped.
    own: Option<Arc<Mmap>>,
}

impl Folder {
    /// The folder of a model file.
    pub(crate) fn beside(model: &Path) -> Option<Folder> {
        let path = match model.parent() {
            Some(p) if p != Path::new("") => p.to_path_buf(),
            _ => PathBuf::from("."),
        };
        let mut inside = vec![path.canonicalize().ok()?];
        if let Some(real) =
            model.canonicalize().ok().and_then(|p| p.parent().map(Path::to_path_buf))
            && real != inside[0]
        {
            inside.push(real);
        }
        Some(Folder { path, inside, mapped: Arc::default(), own: None })
    }

    /// The folder of a model file that is mapped.
    pub(crate) fn of_mapped(self, own: Arc<Mmap>) -> Folder {
        Folder { own: Some(own), ..self }
    }

    /// The content of a file that the model names, which must lie below the folder.
    fn content(&self, location: &str) -> Result<Arc<Mmap>> {
        let relative = Path::new(location);
        if location.is_empty() || location.contains('\0') || !relative.components().all(is_plain) {
            return Err(outside(location));
        }
        let path = self.path.join(relative);
        let real = path.canonicalize().map_err(|e| cannot_read(e, &path))?;
        if !self.inside.iter().any(|folder| real.starts_with(folder)) {
            return Err(outside(location));
        }
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(map) = mapped.get(&real) {
            return Ok(map.clone());
        }
        let file = file::open(&real).map_err(|e| cannot_read(e, &path))?;
        let map = Arc::new(self::mapped(&file).map_err(|e| cannot_read(e, &path))?);
        mapped.insert(real, map.clone());
        Ok(map)
    }
}

fn is_plain(c: Component<'_>) -> bool {
    matches!(c, Component::Normal(_) | Component::CurDir)
}

fn cannot_read(e: std::io::Error, path: &Path) -> Error {
    Error::io(format!("cannot read the external data in `{}`: {e}", path.display()))
}

fn outside(location: &str) -> Error {
    Error::model(format!("the external data `{location}` lies outside of the model's directory"))
        .help("a model may only name files in its own directory or below, by a relative path")
}

/// Where the elements of a tensor are that lie in another file.
pub(crate) struct External<'a> {
    /// The file, relative to the folder of the model.
    pub location: &'a str,
    /// Its first byte.
    pub offset: u64,
    /// How many bytes it has, where the model says it.
    pub length: Option<u64>,
}

fn external_entry<'a>(proto: &'a TensorProto, key: &str) -> Option<&'a str> {
    proto.external_data.iter().find(|e| e.key == key).map(|e| e.value.as_str())
}

impl<'a> External<'a> {
    /// What the model says of a tensor.
    pub(crate) fn from_proto(proto: &'a TensorProto) -> Result<External<'a>> {
        let location = external_entry(proto, "location")
            .ok_or_else(|| Error::model("the external data has no location"))?;
        let [offset, length] = ["offset", "length"].map(|key| {
            let Some(text) = external_entry(proto, key) else { return Ok(None) };
            text.trim().parse::<u64>().map(Some).map_err(|_| {
                Error::model(format!("the {key} `{text}` of the external data is not a size"))
            })
        });
        Ok(External { location, offset: offset?.unwrap_or(0), length: length? })
    }
}

/// The bytes that the elements of a tensor take in a file; `None` for what is no tensor.
pub(crate) fn stored_bytes(proto: &TensorProto) -> Option<u64> {
    let element = Element::from_number(proto.data_type).ok()?;
    let bytes = byte_count(element.stored(), &checked_shape(&proto.dims).ok()?)?;
    u64::try_from(element.packed(bytes)).ok()
}

/// The bytes of ranges as ranges of which no two touch, in their order.
pub(crate) fn merged(mut parts: Vec<Range<u64>>) -> Vec<Range<u64>> {
    parts.retain(|part| !part.is_empty());
    parts.sort_by_key(|part| part.start);
    let mut all: Vec<Range<u64>> = Vec::with_capacity(parts.len());
    for part in parts {
        match all.last_mut() {
            Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
            _ => all.push(part),
        }
    }
    all
}

/// A tensor whose elements are in another file, and stay there.
fn external(
    proto: &TensorProto,
    folder: Option<&Folder>,
    dtype: DType,
    shape: &[usize],
    bytes: usize,
) -> Result<Tensor> {
    let External { location, offset, length } = External::from_proto(proto)?;
    if length.is_some_and(|l| l != bytes as u64) {
        return Err(Error::model(format!(
            "{bytes} bytes are needed for {dtype} of shape {shape:?}, but the external data has {}",
            length.unwrap_or(0)
        )));
    }
    let folder = folder.ok_or_else(|| {
        Error::input(format!("the model keeps data in `{location}`, but was not read from a file"))
    })?;
    let content = folder.content(location)?;
    let size = content.len();
    let from = usize::try_from(offset)
        .ok()
        .filter(|from| from.checked_add(bytes).is_some_and(|end| end <= size));
    let Some(from) = from else {
        return Err(Error::model(format!(
            "external data `{location}` is truncated: {bytes} bytes at offset {offset} are wanted, the file has {size}"
        )));
    };
    let range = from..from + bytes;
    match Tensor::from_mapped(dtype, shape, &content, range.clone(), true) {
        Some(tensor) if bytes > 0 => Ok(tensor),
        _ => Tensor::from_bytes(dtype, shape, &content[range]).map(clean),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::StringStringEntry;

    fn listed_as(
        data_type: DataType,
        dims: &[i64],
        edit: impl FnOnce(&mut TensorProto),
    ) -> Result<Tensor> {
        let mut proto =
            TensorProto { dims: dims.to_vec(), data_type: data_type as i32, ..Default::default() };
        edit(&mut proto);
        tensor(&proto, None)
    }

    fn message(result: Result<Tensor>) -> String {
        result.map_or_else(|e| e.to_string(), |t| format!("{t:?}"))
    }

    #[test]
    fn every_list_is_read() {
        let ints = |p: &mut TensorProto| p.int32_data = vec![0, 1, 127];
        for t in
            [DataType::Int8, DataType::Uint8, DataType::Int16, DataType::Uint16, DataType::Int32]
        {
            let got = listed_as(t, &[3], ints).map(|t| t.get_i128(2));
            assert!(matches!(got, Ok(127)), "{t:?}");
        }
        let bools = listed_as(DataType::Bool, &[3], ints);
        assert!(bools.is_ok_and(|t| t.bytes() == [0, 1, 1]));
        let half = listed_as(DataType::Float16, &[1], |p| p.int32_data = vec![0x3c00]);
        assert!(half.is_ok_and(|t| t.get_f64(0) == 1.0));
        let brain = listed_as(DataType::Bfloat16, &[1], |p| p.int32_data = vec![0xc000]);
        assert!(brain.is_ok_and(|t| t.get_f64(0) == -2.0));
        let wide = listed_as(DataType::Uint64, &[1], |p| p.uint64_data = vec![u64::MAX]);
        assert!(wide.is_ok_and(|t| t.get_i128(0) == i128::from(u64::MAX)));
        let wide = listed_as(DataType::Uint32, &[1], |p| p.uint64_data = vec![7]);
        assert!(wide.is_ok_and(|t| t.get_i128(0) == 7));
        let double = listed_as(DataType::Double, &[2, 1], |p| p.double_data = vec![1.5, 2.5]);
        assert!(double.is_ok_and(|t| t.shape() == [2, 1] && t.get_f64(1) == 2.5));
        let long = listed_as(DataType::Int64, &[], |p| p.int64_data = vec![-9]);
        assert!(long.is_ok_and(|t| t.get_i128(0) == -9));
    }

    #[test]
    fn raw_bytes_are_read_and_bools_normalised() {
        let raw = |bytes: &'static [u8]| {
            move |p: &mut TensorProto| p.raw_data = Some(Bytes::from_static(bytes))
        };
        let t = listed_as(DataType::Int16, &[2], raw(&[1, 0, 0xff, 0xff]));
        assert!(t.is_ok_and(|t| t.get_i128(0) == 1 && t.get_i128(1) == -1));
        let t = listed_as(DataType::Bool, &[3], raw(&[0, 1, 0x80]));
        assert!(t.is_ok_and(|t| t.bytes() == [0, 1, 1]));
    }

    #[test]
    fn data_that_does_not_fit_is_refused() {
        let none = |_: &mut TensorProto| {};
        for (result, expected) in [
            (
                listed_as(DataType::Float, &[2], none),
                "a tensor of shape [2] has 2 elements, but `float_data` has 0",
            ),
            (
                listed_as(DataType::Float, &[1], |p| {
                    p.raw_data = Some(Bytes::from_static(&[1, 2, 3]))
                }),
                "4 bytes are needed for float32 of shape [1], but there are 3",
            ),
            (listed_as(DataType::Float, &[-1], none), "the extent -1 is negative"),
            (
                listed_as(DataType::Float, &[i64::MAX, 4], none),
                "a tensor of shape [9223372036854775807, 4] is too large",
            ),
            (
                listed_as(DataType::Int64, &[1 << 40], none),
                "a tensor of shape [1099511627776] has 1099511627776 elements, but `int64_data` has 0",
            ),
            (
                listed_as(DataType::Uint8, &[1], |p| p.int32_data = vec![256]),
                "the element 256 does not fit uint8",
            ),
            (listed_as(DataType::String, &[1], none), "element type STRING is not supported"),
            (listed_as(DataType::Undefined, &[1], none), "the element type is not given"),
            (
                listed_as(DataType::Float, &[1], |p| p.data_type = 99),
                "there is no element type number 99",
            ),
            (
                listed_as(DataType::Float, &[1], |p| p.segment = Some(Bytes::new())),
                "tensors stored in segments are not supported",
            ),
        ] {
            assert_eq!(message(result), expected);
        }
    }

    fn outer(location: &str, more: &[(&str, &str)]) -> TensorProto {
        let pair =
            |(k, v): &(&str, &str)| StringStringEntry { key: (*k).into(), value: (*v).into() };
        let mut external_data = vec![pair(&("location", location))];
        external_data.extend(more.iter().map(pair));
        TensorProto {
            dims: vec![2],
            data_type: DataType::Int32 as i32,
            data_location: EXTERNAL,
            external_data,
            ..Default::default()
        }
    }

    #[test]
    fn ranges_are_merged_where_they_touch() {
        let parts = vec![40..50, 0..4, 4..8, 9..9, 10..30, 12..20, 45..60];
        assert_eq!(merged(parts), [0..8, 10..30, 40..60]);
        assert!(merged(Vec::new()).is_empty());
    }

    #[test]
    fn the_bytes_of_a_tensor_in_a_file_are_known() {
        assert_eq!(stored_bytes_of(DataType::Float as i32, &[3, 5]), Some(60));
        assert_eq!(stored_bytes_of(DataType::Int4 as i32, &[3, 5]), Some(8));
        assert_eq!(stored_bytes_of(DataType::Bool as i32, &[]), Some(1));
        assert_eq!(stored_bytes_of(DataType::Float as i32, &[i64::MAX, 9]), None);
        assert_eq!(stored_bytes_of(99, &[1]), None);
    }

    fn stored_bytes_of(data_type: i32, dims: &[i64]) -> Option<u64> {
        stored_bytes(&TensorProto { data_type, dims: dims.to_vec(), ..Default::default() })
    }

    #[cfg(unix)]
    #[test]
    fn weights_of_many_gigabytes_are_not_read() -> std::io::Result<()> {
        use std::os::unix::fs::FileExt;
        let root = tempfile::tempdir()?;
        let file = std::fs::File::create(root.path().join("w"))?;
        // Nothing is written but the end.
        let end = 5u64 << 30;
        file.write_all_at(&7i32.to_le_bytes(), end)?;
        let model = root.path().join("m.onnx");
        std::fs::write(&model, [])?;
        let folder = Folder::beside(&model);
        let read = |p: &TensorProto| tensor(p, folder.as_ref());
        let offset = (end - 4).to_string();
        let t = read(&outer("w", &[("offset", &offset), ("length", "8")]));
        assert!(t.is_ok_and(|t| t.get_i128(0) == 0 && t.get_i128(1) == 7));
        let all = TensorProto { dims: vec![5 << 28], ..outer("w", &[]) };
        assert!(read(&all).is_ok_and(|t| t.bytes().len() as u64 == end));
        Ok(())
    }

    #[test]
    fn external_data_is_read_from_below_the_folder_only() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        let inner = root.path().join("model");
        std::fs::create_dir_all(inner.join("data"))?;
        std::fs::write(root.path().join("secret"), [0; 64])?;
        let bytes: Vec<u8> = (0..16).collect();
        std::fs::write(inner.join("data/w"), &bytes)?;
        let model = inner.join("m.onnx");
        std::fs::write(&model, [])?;
        let folder = Folder::beside(&model);
        let read = |p: &TensorProto| tensor(p, folder.as_ref());

        let t = read(&outer("data/w", &[("offset", "4"), ("length", "8")]));
        assert!(t.is_ok_and(|t| t.bytes() == &bytes[4..12]));
        let t = read(&outer("./data/w", &[]));
        assert!(t.is_ok_and(|t| t.bytes() == &bytes[..8]));
        // At no multiple of the size of an element.
        let t = read(&outer("data/w", &[("offset", "3")]));
        assert!(t.is_ok_and(|t| t.bytes() == &bytes[3..11]));

        let absolute = root.path().join("secret").display().to_string();
        for location in ["../secret", "data/../../secret", "", "a\0b", &absolute] {
            let text = message(read(&outer(location, &[])));
            assert!(text.ends_with("lies outside of the model's directory"), "{text}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(root.path().join("secret"), inner.join("link"))?;
            let text = message(read(&outer("link", &[])));
            assert_eq!(text, "the external data `link` lies outside of the model's directory");
            // A cache of models may keep files elsewhere and link to them: both links lead to one
            // folder, which is the model's too.
            let store = root.path().join("store");
            std::fs::create_dir(&store)?;
            std::fs::write(store.join("1234"), [])?;
            std::fs::write(store.join("5678"), &bytes)?;
            let linked = inner.join("linked.onnx");
            std::os::unix::fs::symlink(store.join("1234"), &linked)?;
            std::os::unix::fs::symlink(store.join("5678"), inner.join("linked.data"))?;
            let folder = Folder::beside(&linked);
            assert!(tensor(&outer("linked.data", &[]), folder.as_ref()).is_ok());
        }
        for (proto, expected) in [
            (
                outer("data/w", &[("offset", "9")]),
                "external data `data/w` is truncated: 8 bytes at offset 9 are wanted, the file has 16",
            ),
            (
                outer("data/w", &[("offset", "18446744073709551615")]),
                "external data `data/w` is truncated: 8 bytes at offset 18446744073709551615 are wanted, the file has 16",
            ),
            (
                outer("data/w", &[("length", "4")]),
                "8 bytes are needed for int32 of shape [2], but the external data has 4",
            ),
            (
                outer("data/w", &[("offset", "-4")]),
                "the offset `-4` of the external data is not a size",
            ),
            (
                TensorProto { external_data: Vec::new(), ..outer("", &[]) },
                "the external data has no location",
            ),
        ] {
            assert_eq!(message(read(&proto)), expected);
        }
        let text = message(read(&outer("data/none", &[])));
        assert!(text.starts_with("cannot read the external data in `"), "{text}");
        let text = message(read(&outer("data", &[])));
        assert!(text.ends_with("it is a directory, not a plain file"), "{text}");
        let text = message(tensor(&outer("w", &[]), None));
        assert_eq!(text, "the model keeps data in `w`, but was not read from a file");
        Ok(())
    }
}
