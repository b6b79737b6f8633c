//! Dense tensors: where their bytes are, and when they are copied.

use std::ptr::NonNull;
use std::sync::Arc;

use memmap2::Mmap;
use tilewright_ir::tensor::{ALIGN, Origin};
use tilewright_ir::{DType, Result, Tensor};

#[test]
fn late_bytes_are_made_once() -> Result<()> {
    struct Counting(std::sync::atomic::AtomicUsize);
    impl Origin for Counting {
        fn make(&self) -> Tensor {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Tensor::from_slice(&[3], &[1.0f32, 2.0, 3.0]).expect("a tensor")
        }
    }
    let origin = Arc::new(Counting(0.into()));
    let count = || origin.0.load(std::sync::atomic::Ordering::Relaxed);
    let late = Tensor::late(DType::F32, &[3], origin.clone())?;
    let (address, mut written) = (late.memory_address(), late.reshape(&[1, 3])?);
    assert_eq!((late.byte_len(), count()), (12, 0));
    assert!(late.origin().is_some() && written.memory_address() == address);
    written.as_mut_slice::<f32>().expect("floats")[1] = 7.0;
    assert_eq!(late.as_slice::<f32>(), Some(&[1.0, 2.0, 3.0][..]));
    assert_eq!(written.as_slice::<f32>(), Some(&[1.0, 7.0, 3.0][..]));
    assert!(late.origin().is_none() && late.memory_address() == address);
    assert_eq!(count(), 1);
    Ok(())
}

#[test]
fn large_tensors_are_as_small_ones() -> Result<()> {
    for n in [(1 << 18) - 1, 1 << 18, (1 << 18) + 7, 1 << 20] {
        let mut t = Tensor::zeros(DType::F32, &[n])?;
        assert_eq!(t.bytes().as_ptr() as usize % ALIGN, 0);
        assert!(t.bytes().iter().all(|b| *b == 0));
        assert_eq!(t.bytes().len(), 4 * n);
        let before = t.clone();
        t.as_mut_slice::<f32>().expect("floats")[n - 1] = 2.0;
        assert_eq!((before.get_f64(n - 1), t.get_f64(n - 1)), (0.0, 2.0));
        assert!(!before.same(&t));
        let copy = Tensor::from_bytes(DType::F32, &[n], t.bytes())?;
        assert!(copy.same(&t));
    }
    assert!(Tensor::zeros(DType::U8, &[1 << 46]).is_err());
    Ok(())
}

#[test]
fn elements_are_aligned_and_round_trip() -> Result<()> {
    let t = Tensor::from_slice(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, -6.0])?;
    assert_eq!(t.bytes().as_ptr() as usize % ALIGN, 0);
    assert_eq!(t.get_f64(5), -6.0);
    assert_eq!(t.as_slice::<f32>().map(<[f32]>::len), Some(6));
    assert!(t.as_slice::<i32>().is_none());
    assert!(t.reshape(&[7]).is_err());
    let mut u = t.clone();
    if let Some(s) = u.as_mut_slice::<f32>() {
        s[0] = 9.0;
    }
    assert_eq!((t.get_f64(0), u.get_f64(0)), (1.0, 9.0));
    Ok(())
}

#[test]
fn memory_of_others_is_read_in_place_and_copied_before_it_is_written() -> Result<()> {
    let owner: Arc<Vec<f32>> = Arc::new((0u8..6).map(f32::from).collect());
    let start = NonNull::from(&owner[..]).cast::<u8>();
    // SAFETY: the vector holds six floats, which are not written.
    let mut t = unsafe { Tensor::from_foreign(DType::F32, &[2, 3], start, owner.clone()) }?;
    assert_eq!((t.bytes().as_ptr(), t.get_f64(5)), (start.as_ptr().cast_const(), 5.0));
    let shared = t.clone();
    assert_eq!(Arc::strong_count(&owner), 2);
    t.as_mut_slice::<f32>().expect("floats")[0] = 9.0;
    assert_eq!((t.get_f64(0), shared.get_f64(0), owner[0]), (9.0, 0.0, 0.0));
    assert_eq!(t.bytes().as_ptr() as usize % ALIGN, 0);
    let mut alone = shared;
    alone.as_mut_slice::<f32>().expect("floats")[1] = 7.0;
    assert_eq!((alone.get_f64(1), owner[1], Arc::strong_count(&owner)), (7.0, 1.0, 1));
    // SAFETY: an odd address within the vector, which is refused before it is read.
    let odd = unsafe { start.add(1) };
    // SAFETY: as above.
    let refused = unsafe { Tensor::from_foreign(DType::F32, &[1], odd, owner.clone()) };
    assert!(refused.is_err_and(|e| e.to_string().contains("not aligned")));
    Ok(())
}

#[test]
fn bytes_of_a_file_are_read_there_and_stay_after_it() -> Result<()> {
    let mut file = tempfile::tempfile().expect("a file");
    let content: Vec<u8> = (0..20_000u32).flat_map(u32::to_le_bytes).collect();
    std::io::Write::write_all(&mut file, &content).expect("written");
    // SAFETY: nothing else has the file.
    let map = Arc::new(unsafe { Mmap::map(&file) }.expect("mapped"));
    let of = |dtype, count: usize, range| Tensor::from_mapped(dtype, &[count], &map, range, false);
    let inside = |t: &Tensor| map.as_ptr_range().contains(&t.bytes().as_ptr());
    let t = of(DType::U32, 10_000, 4..40_004).expect("an aligned part");
    assert_eq!((t.get_i128(0), t.get_i128(9_999), inside(&t)), (1, 10_000, true));
    t.release();
    assert_eq!((t.get_i128(0), t.get_i128(9_999)), (1, 10_000));
    let own = t.copied_from_file();
    assert!(!inside(&own) && own.same(&t) && own.copied_from_file().same(&t));
    assert_eq!(own.bytes().as_ptr() as usize % ALIGN, 0);
    let mut written = t.clone();
    written.as_mut_slice::<u32>().expect("integers")[0] = 7;
    assert_eq!((t.get_i128(0), written.get_i128(0), inside(&written)), (1, 7, false));
    let stays = Tensor::from_mapped(DType::U8, &[9], &map, 3..12, true).expect("bytes");
    assert!(inside(&stays) && inside(&stays.copied_from_file()));
    let part = t.part(2_500, &[2, 50]).expect("a part");
    assert_eq!((part.get_i128(0), part.get_i128(99), inside(&part)), (2_501, 2_600, true));
    let copied = own.part(2_500, &[2, 50]).expect("a part");
    assert!(copied.same(&part) && !inside(&copied));
    assert!(t.part(9_950, &[51]).is_none() && t.part(usize::MAX, &[1]).is_none());
    // Not aligned: elements are read from a copy.
    let t = of(DType::U32, 10_000, 5..40_005).expect("a part");
    let in_file = |bytes: &[u8]| map.as_ptr_range().contains(&bytes.as_ptr());
    assert!(in_file(t.unaligned_bytes()) && t.unaligned_bytes() == &content[5..40_005]);
    let part = t.part(2_500, &[50]).expect("a part");
    assert!(in_file(part.unaligned_bytes()) && !inside(&part));
    assert_eq!(part.get_i128(0), t.get_i128(2_500));
    assert_eq!(t.get_i128(0), 2 << 24);
    assert!(!inside(&t) && t.bytes() == &content[5..40_005]);
    // A copy that is there serves; else it is made late.
    assert_eq!(t.copied_from_file().bytes().as_ptr(), t.bytes().as_ptr());
    let copy = of(DType::U32, 10_000, 5..40_005).expect("a part").copied_from_file();
    assert!(copy.origin().is_some() && copy.same(&t) && copy.origin().is_none());
    // Too few, behind the end, booleans.
    assert!(of(DType::U32, 9_999, 4..40_004).is_none());
    assert!(of(DType::U8, 8, 79_996..80_004).is_none());
    assert!(of(DType::BOOL, 8, 0..8).is_none());
    Ok(())
}

#[test]
fn impossible_sizes_are_errors() {
    assert!(Tensor::zeros(DType::F32, &[usize::MAX, 2]).is_err());
    assert!(Tensor::from_bytes(DType::F32, &[2], &[0; 7]).is_err());
    assert!(Tensor::zeros(DType::F32, &[0, 5]).is_ok_and(|t| t.is_empty()));
}
