//! Registers of integers and of single precision, as kernels of quantized weights use them.

#![allow(unsafe_code)]

use super::super::stored::Stored;

/// Registers of as many 32-bit integers as of numbers in single precision. A lane of integers is the sum of four products of
/// codes with x.
///
/// # Safety
/// The processor must have the instructions, and places what is read from them or written to them.
pub(super) trait Vector {
    type Ints: Copy;
    type Floats: Copy;
    const LANES: usize;
    /// Rows of x in a tile of many rows: as many as registers hold sums beside what these are made of.
    const ROWS: usize;

    /// A register of bytes, or of integers.
    unsafe fn ints(from: *const u8) -> Self::Ints;
    /// The same four bytes in all lanes.
    unsafe fn same(integer: i32) -> Self::Ints;
    /// Sixteen bytes, as often as a register holds them.
    unsafe fn sixteen(bytes: &[u8; 16]) -> Self::Ints;
    unsafe fn store_ints(integers: Self::Ints, to: *mut u32);
    /// Sixteen bytes, `byte` behind each of the places, of which there are as many as lanes: the first four of each in its lane,
    /// then the next four.
    unsafe fn transposed(from: &[*const u8; 16], byte: usize) -> [Self::Ints; 4];
    /// The one of sixteen bytes that each byte, less than 16, is the place of.
    unsafe fn look_up(sixteen: Self::Ints, places: Self::Ints) -> Self::Ints;
    /// The codes of `BITS` bits whose lowest bit is this one in each byte.
    unsafe fn codes<const BITS: usize>(packed: Self::Ints, shift: usize) -> Self::Ints;
    /// Adds the products of unsigned codes with signed x, four to a lane; `narrow` codes are of less than 8 bits.
    unsafe fn dot(sum: Self::Ints, codes: Self::Ints, x: Self::Ints, narrow: bool) -> Self::Ints;
    unsafe fn zero() -> Self::Floats;
    unsafe fn floats(from: *const f32) -> Self::Floats;
    unsafe fn splat(number: f32) -> Self::Floats;
    unsafe fn store(numbers: Self::Floats, to: *mut f32);
    unsafe fn add(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    unsafe fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `sum + a · b`.
    unsafe fn add_product(sum: Self::Floats, a: Self::Floats, b: Self::Floats) -> Self::Floats;
    unsafe fn single(integers: Self::Ints) -> Self::Floats;
    /// `count` scales, a power of two and no more than lanes, each in as many neighbouring lanes; `places` says
    /// which of them a lane has.
    unsafe fn scales<S: Stored>(from: *const S, count: usize, places: Self::Ints) -> Self::Floats;
    /// The sum of the lanes of each.
    unsafe fn sums(of: [Self::Floats; 4]) -> [f32; 4];
}

/// For processors whose instructions are not written out here.
pub(super) struct Plain;

impl Vector for Plain {
    type Ints = [i32; 4];
    type Floats = [f32; 4];
    const LANES: usize = 4;
    const ROWS: usize = 2;

    #[inline(always)]
    unsafe fn ints(from: *const u8) -> [i32; 4] {
        // SAFETY: the caller's.
        unsafe { from.cast::<[i32; 4]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn same(integer: i32) -> [i32; 4] {
        [integer; 4]
    }

    #[inline(always)]
    unsafe fn sixteen(bytes: &[u8; 16]) -> [i32; 4] {
        // SAFETY: as many bytes.
        unsafe { Self::ints(bytes.as_ptr()) }
    }

    #[inline(always)]
    unsafe fn store_ints(integers: [i32; 4], to: *mut u32) {
        // SAFETY: the caller's.
        unsafe { to.cast::<[i32; 4]>().write(integers) }
    }

    #[inline(always)]
    unsafe fn transposed(from: &[*const u8; 16], byte: usize) -> [[i32; 4]; 4] {
        // SAFETY: the caller's.
        let rows: [[i32; 4]; 4] = std::array::from_fn(|lane| unsafe { Self::ints(from[lane].add(byte)) });
        std::array::from_fn(|word| rows.map(|row| row[word]))
    }

    #[inline(always)]
    unsafe fn look_up(sixteen: [i32; 4], places: [i32; 4]) -> [i32; 4] {
        let byte = |place: u8| sixteen[usize::from(place >> 2 & 3)].to_ne_bytes()[usize::from(place & 3)];
        places.map(|places| i32::from_ne_bytes(places.to_ne_bytes().map(byte)))
    }

    #[inline(always)]
    unsafe fn codes<const BITS: usize>(packed: [i32; 4], shift: usize) -> [i32; 4] {
        let mask = i32::from_ne_bytes([((1_u16 << BITS) - 1) as u8; 4]);
        packed.map(|lane| lane >> shift & mask)
    }

    #[inline(always)]
    unsafe fn dot(sum: [i32; 4], codes: [i32; 4], x: [i32; 4], _: bool) -> [i32; 4] {
        std::array::from_fn(|lane| {
            let products = codes[lane].to_ne_bytes().into_iter().zip(x[lane].to_ne_bytes());
            sum[lane] + products.map(|(code, x)| i32::from(code) * i32::from(x as i8)).sum::<i32>()
        })
    }

    #[inline(always)]
    unsafe fn zero() -> [f32; 4] {
        [0.0; 4]
    }

    #[inline(always)]
    unsafe fn floats(from: *const f32) -> [f32; 4] {
        // SAFETY: the caller's.
        unsafe { from.cast::<[f32; 4]>().read() }
    }

    #[inline(always)]
    unsafe fn splat(number: f32) -> [f32; 4] {
        [number; 4]
    }

    #[inline(always)]
    unsafe fn store(numbers: [f32; 4], to: *mut f32) {
        // SAFETY: the caller's.
        unsafe { to.cast::<[f32; 4]>().write(numbers) }
    }

    #[inline(always)]
    unsafe fn add(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|lane| a[lane] + b[lane])
    }

    #[inline(always)]
    unsafe fn mul(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|lane| a[lane] * b[lane])
    }

    #[inline(always)]
    unsafe fn add_product(sum: [f32; 4], a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|lane| sum[lane] + a[lane] * b[lane])
    }

    #[inline(always)]
    unsafe fn single(integers: [i32; 4]) -> [f32; 4] {
        integers.map(|integer| integer as f32)
    }

    #[inline(always)]
    unsafe fn scales<S: Stored>(from: *const S, _: usize, places: [i32; 4]) -> [f32; 4] {
        // SAFETY: the caller's; places are less than the count.
        places.map(|place| unsafe { from.add(place as usize).read().single() })
    }

    #[inline(always)]
    unsafe fn sums(of: [[f32; 4]; 4]) -> [f32; 4] {
        of.map(|lanes| (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]))
    }
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86;
