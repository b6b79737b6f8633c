//! NumPy's `.npy` files: one array.
//!
//! A file is a magic number, a version, the length of a header, the header (the text of a Python
//! dictionary with the keys `descr`, `fortran_order` and `shape`), and the elements without gaps.
//! Reading brings every array to the form of a [`Tensor`]: row-major, little-endian. Every element
//! type of a tensor can be stored. NumPy itself has no bfloat16; the package `ml_dtypes`, which
//! adds it, stores it under the name `<V2`, and so do these functions.
//!
//! A file may be hostile. The header says how large the array is, but memory is taken only as far
//! as there are bytes to fill it.

use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::Path;

use tilewright_ir::tensor::{byte_count, positions};
use tilewright_ir::{DType, Error, Result, Tensor};

use crate::file::{self, Output};

/// The first bytes of a file.
const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Longest header that is read, in bytes; that of an array with 64 axes is shorter than 2000.
const MAX_HEADER: usize = 1 << 16;
/// Most axes an array may have; as in NumPy 2.
const MAX_RANK: usize = 64;
/// The header ends where the elements start, at a multiple of this.
const HEADER_ALIGN: usize = 64;
/// What is read at first where the length may be wrong; then twice as much each time.
const FIRST_CHUNK: usize = 1 << 20;

/// What a file says of its array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first.
    pub shape: Vec<usize>,
}

/// The header of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub info: Info,
    /// The elements are in column-major order.
    fortran: bool,
    /// The elements are big-endian.
    swapped: bool,
}

/// Reads the array of a `.npy` file.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read; [`Error::Input`] if it is not a `.npy` file, is cut
/// short or goes on behind its array; [`Error::Unsupported`] for element types that tensors do not
/// have (complex numbers, text, dates, records, objects). All name the file.
pub fn read(path: impl AsRef<Path>) -> Result<Tensor> {
    open(path.as_ref(), |mut file, len| decode(&mut file, len, None))
}

/// Reads what a `.npy` file says of its array, and not the array.
///
/// # Errors
/// As [`read`].
pub fn read_info(path: impl AsRef<Path>) -> Result<Info> {
    open(path.as_ref(), |mut file, _| Ok(decode_header(&mut file)?.info))
}

/// Reads a file, of so many bytes as its system says; errors name it.
pub(crate) fn open<T>(
    path: &Path,
    read: impl FnOnce(BufReader<File>, u64) -> Result<T>,
) -> Result<T> {
    let opened = open_with_length(path).map_err(|e: std::io::Error| Error::io(e.to_string()));
    opened.and_then(|(file, len)| read(file, len)).map_err(|e| e.context(path.display()))
}

fn open_with_length(path: &Path) -> Result<(BufReader<File>, u64), std::io::Error> {
    let file = file::open(path)?;
    let len = file.metadata()?.len();
    Ok((BufReader::new(file), len))
}

/// Writes a tensor to a `.npy` file. One that exists is replaced, or stays as it is where that
/// fails.
///
/// # Errors
/// [`Error::Io`], with the file's name.
pub fn write(path: impl AsRef<Path>, tensor: &Tensor) -> Result<()> {
    let mut output = Output::create(path, 0o666)?;
    let mut file = BufWriter::new(output.file());
    let written = encode(&mut file, tensor).and_then(|()| file.flush());
    drop(file);
    written.map_err(|e| output.failed(&e))?;
    output.commit()
}

/// Reads an array. Memory for up to `sure` bytes may be taken at once, for more only as there is
/// content for it; an array of more than `most` bytes is refused.
pub(crate) fn decode(
    from: &mut (impl Read + ?Sized),
    sure: u64,
    most: Option<u64>,
) -> Result<Tensor> {
    let header = decode_header(from)?;
    let Info { dtype, shape } = &header.info;
    let bytes = byte_count(*dtype, shape).ok_or_else(|| {
        Error::input(format!("the {dtype} array of shape {shape:?} does not fit in memory"))
    })?;
    if let Some(most) = most.filter(|most| bytes as u64 > *most) {
        return Err(Error::input(format!(
            "the {dtype} array of shape {shape:?} takes {bytes} bytes, where this part of the file \
             may hold {most}"
        ))
        .help("if the file is not damaged, write it without compression, with numpy.savez"));
    }
    let mut tensor = if bytes as u64 <= sure {
        let mut tensor = Tensor::zeros(*dtype, shape)?;
        read_exact(from, tensor.bytes_mut(), &header.info)?;
        tensor
    } else {
        Tensor::from_bytes(*dtype, shape, &read_growing(from, bytes, &header.info)?)?
    };
    // Behind the last byte, an archive checks the sum of what was read.
    match from.read(&mut [0]) {
        Ok(0) => {}
        Ok(_) => {
            return Err(Error::input(format!(
                "the file goes on behind its {dtype} array of shape {shape:?}"
            )));
        }
        Err(e) => return Err(read_error(&e)),
    }
    if header.swapped {
        tensor.bytes_mut().chunks_exact_mut(dtype.bytes()).for_each(<[u8]>::reverse);
    }
    if dtype.is_bool() {
        tensor.bytes_mut().iter_mut().for_each(|b| *b = u8::from(*b != 0));
    }
    if header.fortran { row_major(&tensor) } else { Ok(tensor) }
}

fn read_error(e: &std::io::Error) -> Error {
    match e.kind() {
        ErrorKind::UnexpectedEof => Error::input("the file is cut short"),
        // A damaged archive: a wrong checksum, or compressed data that does not decompress.
        ErrorKind::InvalidData | ErrorKind::InvalidInput => Error::input(e.to_string()),
        _ => Error::io(e.to_string()),
    }
}

fn array_error(e: &std::io::Error, info: &Info) -> Error {
    let Info { dtype, shape } = info;
    match e.kind() {
        ErrorKind::UnexpectedEof => Error::input(format!(
            "the file is cut short: it says that it holds a {dtype} array of shape {shape:?}"
        )),
        _ => read_error(e),
    }
}

fn read_exact(from: &mut (impl Read + ?Sized), to: &mut [u8], info: &Info) -> Result<()> {
    from.read_exact(to).map_err(|e| array_error(&e, info))
}

/// Reads `len` bytes, and takes memory only as they come.
fn read_growing(from: &mut (impl Read + ?Sized), len: usize, info: &Info) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while bytes.len() < len {
        let have = bytes.len();
        let more = have.max(FIRST_CHUNK).min(len - have);
        bytes
            .try_reserve_exact(more)
            .map_err(|_| Error::input(format!("no memory for an array of {len} bytes")))?;
        bytes.resize(have + more, 0);
        read_exact(from, &mut bytes[have..], info)?;
    }
    Ok(bytes)
}

/// The tensor whose elements lie in column-major order in `tensor`.
fn row_major(tensor: &Tensor) -> Result<Tensor> {
    let (shape, size) = (tensor.shape(), tensor.dtype().bytes());
    let mut result = Tensor::zeros(tensor.dtype(), shape)?;
    let mut stride = 1;
    let axes: Vec<(usize, i64)> = shape
        .iter()
        .map(|&extent| {
            stride *= extent as i64;
            (extent, stride / extent.max(1) as i64)
        })
        .collect();
    let elements = result.bytes_mut().chunks_exact_mut(size);
    for (to, from) in elements.zip(positions(axes.into_iter(), 0)) {
        to.copy_from_slice(&tensor.bytes()[from as usize * size..][..size]);
    }
    Ok(result)
}

/// Reads up to the first element.
pub(crate) fn decode_header(from: &mut (impl Read + ?Sized)) -> Result<Header> {
    let mut fixed = [0; 8];
    match from.read_exact(&mut fixed) {
        Ok(()) if fixed.starts_with(MAGIC) => {}
        Ok(()) => return Err(not_npy()),
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Err(not_npy()),
        Err(e) => return Err(read_error(&e)),
    }
    let len = match (fixed[6], fixed[7]) {
        (1, _) => {
            let mut len = [0; 2];
            from.read_exact(&mut len).map_err(header_cut_off)?;
            usize::from(u16::from_le_bytes(len))
        }
        (2 | 3, _) => {
            let mut len = [0; 4];
            from.read_exact(&mut len).map_err(header_cut_off)?;
            u32::from_le_bytes(len) as usize
        }
        (major, minor) => {
            return Err(Error::unsupported(format!(
                "version {major}.{minor} of the `.npy` format"
            ))
            .note("versions 1, 2 and 3 are read"));
        }
    };
    if len > MAX_HEADER {
        return Err(Error::input(format!(
            "a header of {len} bytes, where {MAX_HEADER} are allowed"
        )));
    }
    let mut text = vec![0; len];
    from.read_exact(&mut text).map_err(header_cut_off)?;
    parse_header(&String::from_utf8_lossy(&text))
}

fn not_npy() -> Error {
    Error::input("not a `.npy` file: it does not start with NumPy's magic number")
}

fn header_cut_off(e: std::io::Error) -> Error {
    read_error(&e).context("in the header")
}

/// Understands the text of a header.
fn parse_header(text: &str) -> Result<Header> {
    let (mut descr, mut fortran, mut shape) = (None, None, None);
    let mut tokens = Tokens { rest: text };
    tokens.expect("{").map_err(|what| bad_header(what, text))?;
    loop {
        let key = match tokens.next().map_err(|what| bad_header(what, text))? {
            Token::Symbol('}') => break,
            Token::Text(key) => key,
            other => return Err(bad_header(format!("{other} where a key should be"), text)),
        };
        tokens.expect(":").map_err(|what| bad_header(what, text))?;
        match key {
            "descr" => match tokens.next().map_err(|what| bad_header(what, text))? {
                Token::Text(name) => descr = Some(name),
                Token::Symbol('[') => {
                    return Err(Error::unsupported("an array of records (a structured data type)"));
                }
                other => return Err(bad_header(format!("{other} for `descr`"), text)),
            },
            "fortran_order" => match tokens.next().map_err(|what| bad_header(what, text))? {
                Token::Word("True") => fortran = Some(true),
                Token::Word("False") => fortran = Some(false),
                other => return Err(bad_header(format!("{other} for `fortran_order`"), text)),
            },
            "shape" => shape = Some(tokens.shape().map_err(|what| bad_header(what, text))?),
            _ => return Err(bad_header(format!("an unknown key `{key}`"), text)),
        }
        match tokens.next().map_err(|what| bad_header(what, text))? {
            Token::Symbol(',') => {}
            Token::Symbol('}') => break,
            other => return Err(bad_header(format!("{other} where `,` or `}}` should be"), text)),
        }
    }
    let descr = descr.ok_or_else(|| missing_key("descr", text))?;
    let fortran = fortran.ok_or_else(|| missing_key("fortran_order", text))?;
    let mut shape = shape.ok_or_else(|| missing_key("shape", text))?;
    if let Some(width) = text_width(descr) {
        if fortran {
            return Err(Error::unsupported("text in column-major order"));
        }
        // Byte strings are their bytes along one more axis.
        shape.push(width);
        return Ok(Header { info: Info { dtype: DType::U8, shape }, fortran, swapped: false });
    }
    let (dtype, swapped) = element_type(descr)?;
    Ok(Header { info: Info { dtype, shape }, fortran, swapped })
}

fn bad_header(what: String, text: &str) -> Error {
    Error::input(format!("a header that cannot be understood: {what}"))
        .note(format!("the header is `{}`", text.trim_end().chars().take(200).collect::<String>()))
}

fn missing_key(key: &str, text: &str) -> Error {
    bad_header(format!("the key `{key}` is missing"), text)
}

/// How many bytes each text of an array has, where it is one of byte strings.
fn text_width(descr: &str) -> Option<usize> {
    let name = descr.strip_prefix(['|', '<', '>', '=']).unwrap_or(descr);
    name.strip_prefix('S')?.parse().ok()
}

/// Element types and their names in NumPy, without the order of bytes.
const ELEMENTS: [(DType, &str); 13] = [
    (DType::BOOL, "b1"),
    (DType::I8, "i1"),
    (DType::I16, "i2"),
    (DType::I32, "i4"),
    (DType::I64, "i8"),
    (DType::U8, "u1"),
    (DType::U16, "u2"),
    (DType::U32, "u4"),
    (DType::U64, "u8"),
    (DType::F16, "f2"),
    (DType::F32, "f4"),
    (DType::F64, "f8"),
    (DType::BF16, "V2"),
];

/// The element type of this name in NumPy, and whether its bytes have to be swapped.
fn element_type(descr: &str) -> Result<(DType, bool)> {
    let (order, name) = match descr.chars().next() {
        Some(c @ ('<' | '>' | '|' | '=')) => (c, &descr[1..]),
        _ => ('=', descr),
    };
    if let Some((dtype, _)) = ELEMENTS.iter().find(|(_, known)| *known == name) {
        return Ok((*dtype, order == '>' && dtype.bytes() > 1));
    }
    let kind = match name.chars().next() {
        Some('c') => "complex numbers",
        Some('S' | 'a' | 'U' | 'T') => "text",
        Some('O') => "Python objects",
        Some('M' | 'm') => "dates or times",
        Some('V') => "raw memory",
        Some('f') => "floats of a width that no machine agrees on",
        _ => "elements of an unknown type",
    };
    Err(Error::unsupported(format!("an array of {kind} (`{descr}`)"))
        .help(match kind {
            "text" => "encode it: numpy.char.encode(array, \"utf-8\")",
            _ => "convert the array",
        })
        .note(
            "bool, int8 to int64, uint8 to uint64, float16, float32, float64 and bfloat16 are read",
        ))
}

/// The name of an element type in NumPy.
fn descr(dtype: DType) -> Option<String> {
    let (_, name) = ELEMENTS.iter().find(|(known, _)| *known == dtype)?;
    Some(format!("{}{name}", if dtype.bytes() > 1 { '<' } else { '|' }))
}

/// Writes a whole file.
pub(crate) fn encode(to: &mut impl Write, tensor: &Tensor) -> std::io::Result<()> {
    let dtype = tensor.dtype();
    let descr = descr(dtype).ok_or_else(|| {
        std::io::Error::new(ErrorKind::Unsupported, format!("NumPy has no element type {dtype}"))
    })?;
    let mut shape = String::new();
    for extent in tensor.shape() {
        shape += &format!("{extent}, ");
    }
    // A tuple of one keeps its comma, as in Python.
    let shape = match tensor.shape().len() {
        0 => "",
        1 => &shape[..shape.len() - 1],
        _ => &shape[..shape.len() - 2],
    };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    // Magic number, version and length take 10 bytes, and a line break ends the text.
    let used = MAGIC.len() + 4 + text.len() + 1;
    text.extend(std::iter::repeat_n(' ', used.next_multiple_of(HEADER_ALIGN) - used));
    text.push('\n');
    let len = u16::try_from(text.len())
        .map_err(|_| std::io::Error::new(ErrorKind::Unsupported, "an array of too many axes"))?;
    to.write_all(MAGIC)?;
    to.write_all(&[1, 0])?;
    to.write_all(&len.to_le_bytes())?;
    to.write_all(text.as_bytes())?;
    to.write_all(tensor.bytes())
}

/// A word of a header.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    Symbol(char),
    /// A string, without its quotes.
    Text(&'a str),
    /// A name or number.
    Word(&'a str),
    End,
}

impl std::fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Symbol(c) => write!(f, "`{c}`"),
            Token::Text(text) => write!(f, "the text `{text}`"),
            Token::Word(word) => write!(f, "`{word}`"),
            Token::End => f.write_str("the end"),
        }
    }
}

struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Result<Token<'a>, String> {
        self.rest = self.rest.trim_start();
        let Some(first) = self.rest.chars().next() else { return Ok(Token::End) };
        if let quote @ ('\'' | '"') = first {
            let inside = &self.rest[1..];
            let end = inside.find(quote).ok_or("a string without an end")?;
            self.rest = &inside[end + 1..];
            return Ok(Token::Text(&inside[..end]));
        }
        let end = self.rest.find(|c| !is_word_char(c)).unwrap_or(self.rest.len());
        let end = if end == 0 { first.len_utf8() } else { end };
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(if is_word_char(first) { Token::Word(token) } else { Token::Symbol(first) })
    }

    fn expect(&mut self, symbol: &str) -> Result<(), String> {
        match self.next()? {
            Token::Symbol(c) if symbol.starts_with(c) => Ok(()),
            other => Err(format!("{other} where `{symbol}` should be")),
        }
    }

    /// A tuple of extents.
    fn shape(&mut self) -> Result<Vec<usize>, String> {
        self.expect("(")?;
        let mut shape = Vec::new();
        loop {
            match self.next()? {
                Token::Symbol(')') => return Ok(shape),
                Token::Word(word) => {
                    // Python 2 wrote an `L` behind large numbers.
                    let extent = word.trim_end_matches('L').parse();
                    shape.push(extent.map_err(|_| format!("`{word}` for an extent"))?);
                }
                other => return Err(format!("{other} where an extent should be")),
            }
            if shape.len() > MAX_RANK {
                return Err(format!("more than {MAX_RANK} axes"));
            }
            match self.next()? {
                Token::Symbol(',') => {}
                Token::Symbol(')') => return Ok(shape),
                other => return Err(format!("{other} where `,` or `)` should be")),
            }
        }
    }
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '+' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    fn file(header: &str, elements: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(elements);
        bytes
    }

    fn parse(bytes: &[u8]) -> Result<Tensor> {
        decode(&mut &*bytes, bytes.len() as u64, None)
    }

    fn round_trip(tensor: &Tensor) {
        let mut bytes = Vec::new();
        encode(&mut bytes, tensor).expect("memory can be written");
        assert_eq!((bytes.len() - tensor.bytes().len()) % HEADER_ALIGN, 0);
        for sure in [0, bytes.len() as u64] {
            let back = decode(&mut &*bytes, sure, None).expect("what was written can be read");
            assert!(back.same(tensor), "{back:?} is not {tensor:?}");
        }
    }

    #[test]
    fn every_element_type_round_trips() {
        round_trip_of(Tensor::from_bools(&[3], &[true, false, true]));
        round_trip_of(Tensor::from_slice(&[2], &[i8::MIN, i8::MAX]));
        round_trip_of(Tensor::from_slice(&[2], &[i16::MIN, i16::MAX]));
        round_trip_of(Tensor::from_slice(&[2], &[i32::MIN, i32::MAX]));
        round_trip_of(Tensor::from_slice(&[2], &[i64::MIN, i64::MAX]));
        round_trip_of(Tensor::from_slice(&[2], &[0u8, u8::MAX]));
        round_trip_of(Tensor::from_slice(&[2], &[0u16, u16::MAX]));
        round_trip_of(Tensor::from_slice(&[2], &[0u32, u32::MAX]));
        round_trip_of(Tensor::from_slice(&[2], &[0u64, u64::MAX]));
        round_trip_of(Tensor::from_slice(&[3], &[f16::NAN, f16::NEG_ZERO, f16::MAX]));
        round_trip_of(Tensor::from_slice(&[3], &[f32::NAN, -0.0, f32::MIN_POSITIVE]));
        round_trip_of(Tensor::from_slice(&[3], &[f64::NAN, -0.0, f64::INFINITY]));
        round_trip_of(Tensor::from_slice(&[3], &[bf16::NAN, bf16::NEG_ZERO, bf16::MAX]));
    }

    fn round_trip_of(t: Result<Tensor>) {
        round_trip(&t.expect("a tensor"))
    }

    #[test]
    fn every_rank_and_empty_shapes_round_trip() {
        for shape in [&[][..], &[1], &[0], &[2, 3], &[2, 0, 3], &[1, 1, 2, 1, 2], &[1; 64]] {
            let n = shape.iter().product::<usize>();
            let values: Vec<i32> = (0..n as i32).collect();
            round_trip(&Tensor::from_slice(shape, &values).expect("a tensor"));
        }
    }

    #[test]
    fn column_major_order_is_converted() {
        let header = "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3, 2), }";
        let elements: Vec<u8> = (0..12i16).flat_map(i16::to_le_bytes).collect();
        let t = parse(&file(header, &elements)).expect("a file");
        let expected: Vec<i16> = (0..12)
            .map(|i| (i / 6, i / 2 % 3, i % 2))
            .map(|(a, b, c)| (a + 2 * b + 6 * c) as i16)
            .collect();
        assert_eq!(t.as_slice::<i16>(), Some(&expected[..]));
    }

    #[test]
    fn big_endian_is_converted() {
        let header = "{'descr': '>f8', 'fortran_order': False, 'shape': (2,), }";
        let elements: Vec<u8> = [1.5f64, -3.0].iter().flat_map(|v| v.to_be_bytes()).collect();
        let t = parse(&file(header, &elements)).expect("a file");
        assert_eq!(t.as_slice::<f64>(), Some(&[1.5, -3.0][..]));
    }

    #[test]
    fn any_byte_that_is_not_zero_is_true() {
        let header = "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }";
        let t = parse(&file(header, &[0, 1, 200])).expect("a file");
        assert_eq!(t.bytes(), [0, 1, 1]);
    }

    #[test]
    fn headers_of_other_writers_are_read() {
        for header in [
            "{'descr': '<i4', 'fortran_order': False, 'shape': (2L, 1L), }   \n",
            "{\"shape\":(2,1),\"fortran_order\":False,\"descr\":\"i4\"}",
            "  {'descr':'=i4' , 'fortran_order':False , 'shape':( 2 , 1 , ) , } ",
        ] {
            let t = parse(&file(header, &[1, 0, 0, 0, 2, 0, 0, 0])).expect(header);
            assert_eq!((t.shape(), t.as_slice::<i32>()), (&[2, 1][..], Some(&[1, 2][..])));
        }
        let mut second = b"\x93NUMPY\x02\x00".to_vec();
        let header = "{'descr': '<u2', 'fortran_order': False, 'shape': (), }";
        second.extend((header.len() as u32).to_le_bytes());
        second.extend(header.as_bytes());
        second.extend([7, 1]);
        assert_eq!(parse(&second).expect("version 2").as_slice::<u16>(), Some(&[263][..]));
    }

    #[test]
    fn bad_headers_are_errors_that_say_why() {
        for (header, message) in [
            ("", "the end where `{` should be"),
            ("{", "the end where a key should be"),
            ("{'descr: 3}", "a string without an end"),
            ("{'descr' '<f4'}", "the text `<f4` where `:` should be"),
            ("{'descr': 3}", "`3` for `descr`"),
            ("{'descr': '<f4', 'x': 1}", "an unknown key `x`"),
            ("{'descr': '<f4' 'shape': ()}", "where `,` or `}` should be"),
            ("{'descr': '<f4', 'shape': ()}", "the key `fortran_order` is missing"),
            ("{'fortran_order': 1}", "`1` for `fortran_order`"),
            ("{'shape': 3}", "`3` where `(` should be"),
            ("{'shape': (-1,)}", "`-1` for an extent"),
            ("{'shape': (1.5,)}", "`1.5` for an extent"),
            ("{'shape': (99999999999999999999,)}", "`99999999999999999999` for an extent"),
            ("{'shape': ((1,),)}", "`(` where an extent should be"),
            ("{'shape': (1 2)}", "`2` where `,` or `)` should be"),
            (&format!("{{'shape': ({})}}", "1,".repeat(65)), "more than 64 axes"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': ((((((((((", "`(` where an extent"),
        ] {
            let error = parse(&file(header, &[])).expect_err(header);
            assert!(matches!(error, Error::Input(_)), "{error}");
            assert!(error.to_string().contains(message), "{header}: {error}");
        }
    }

    #[test]
    fn other_element_types_are_refused_by_name() {
        for (descr, message) in [
            ("<c8", "complex numbers (`<c8`)"),
            ("<U1", "text (`<U1`)"),
            ("|O", "Python objects (`|O`)"),
            ("<M8[ns]", "dates or times"),
            ("|V8", "raw memory"),
            ("<f16", "floats of a width"),
            ("é", "elements of an unknown type"),
        ] {
            let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (1,), }}");
            let error = parse(&file(&header, &[0; 16])).expect_err(descr);
            assert!(matches!(error, Error::Unsupported(_)), "{error}");
            assert!(error.to_string().contains(message), "{error}");
        }
        let header = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }";
        let error = parse(&file(header, &[0; 4])).expect_err("a record");
        assert!(error.to_string().contains("structured"), "{error}");
    }

    #[test]
    fn sizes_that_lie_are_errors_and_take_no_memory() {
        for shape in ["(1000000000000,)", "(9223372036854775807, 9223372036854775807)", "(3,)"] {
            let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
            let bytes = file(&header, &[0; 8]);
            for sure in [0, bytes.len() as u64] {
                let error = decode(&mut &*bytes, sure, None).expect_err(shape);
                assert!(matches!(error, Error::Input(_)), "{error}");
            }
        }
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
        let error = parse(&file(header, &[0; 5])).expect_err("a byte too many");
        assert!(error.to_string().contains("goes on behind"), "{error}");
        let huge = [b"\x93NUMPY\x03\x00".as_slice(), &u32::MAX.to_le_bytes()].concat();
        let error = parse(&huge).expect_err("a header of 4 GiB");
        assert!(error.to_string().contains("a header of 4294967295 bytes"), "{error}");
        let error = parse(b"\x93NUMPY\x09\x00").expect_err("a version of the future");
        assert!(error.to_string().contains("version 9.0"), "{error}");
    }

    #[test]
    fn a_file_cut_anywhere_is_an_error() {
        let mut bytes = Vec::new();
        let tensor = Tensor::from_slice(&[3, 2], &[1i64, 2, 3, 4, 5, 6]).expect("a tensor");
        encode(&mut bytes, &tensor).expect("memory can be written");
        for len in 0..bytes.len() {
            let error = decode(&mut &bytes[..len], len as u64, None).expect_err("a part of a file");
            assert!(matches!(error, Error::Input(_)), "{error}");
        }
    }

    #[test]
    fn files_are_read_and_written_and_errors_name_them() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("x.npy");
        let tensor = Tensor::from_slice(&[2], &[1.5f32, 2.5]).expect("a tensor");
        write(&path, &tensor).expect("a file can be written");
        assert!(read(&path).expect("it is there").same(&tensor));
        let info = Info { dtype: DType::F32, shape: vec![2] };
        assert_eq!(read_info(&path).expect("it is there"), info);
        std::fs::write(&path, "x = 1").expect("a file can be written");
        let error = read(&path).expect_err("not an array");
        assert!(
            error
                .to_string()
                .ends_with("x.npy: not a `.npy` file: it does not start with NumPy's magic number"),
            "{error}"
        );
        let missing = directory.path().join("y.npy");
        for error in [read(&missing).map(drop), read_info(&missing).map(drop)] {
            let error = error.expect_err("no such file");
            assert!(
                matches!(error, Error::Io(_)) && error.to_string().contains("y.npy"),
                "{error}"
            );
        }
        let nowhere = directory.path().join("no/z.npy");
        let error = write(&nowhere, &tensor).expect_err("no such directory");
        assert!(matches!(error, Error::Io(_)) && error.to_string().contains("z.npy"), "{error}");
    }
}
