//! Sums of products of a few rows of x with a few rows of the weight, in the processor's registers.
//!
//! A block of weights is widened into the processor's cache, where all rows of x meet it: what is stored in 16 bits stays so
//! in memory, and widening it costs little beside the products.

#![allow(unsafe_code)]

use half::bf16;

use super::stored::Stored;

/// Rows of the weight in a tile.
pub(super) const COLUMNS: usize = 4;

/// What a product of many rows is computed in.
pub(super) trait Element: Stored + Default {
    /// The nearest ones.
    fn of<W: Stored>(stored: &[W], numbers: &mut [Self]);

    /// The fastest way that this processor has for a few rows; none where it does not compute in this type.
    fn kernel<W: Stored>() -> Option<Kernel<W, Self>>;
}

/// Brings the products of all rows of x with the rows of a weight block, plus the block's bias where there is one, to the block's part of
/// each row of the result.
pub(super) type Kernel<W, E> =
    fn(x: &[E], weights: &[W], width: usize, bias: Option<&[f32]>, result: &mut [&mut [f32]]);

/// Writes what products of a few rows are added to, the bias or 0: row by row, so that it is in the first cache still when they are.
#[inline(always)]
pub(super) fn fill_with_bias(bias: Option<&[f32]>, rows: &mut [&mut [f32]]) {
    for row in rows {
        match bias {
            Some(bias) => row.copy_from_slice(&bias[..row.len()]),
            None => row.fill(0.0),
        }
    }
}

impl Element for f32 {
    #[inline(always)]
    fn of<W: Stored>(stored: &[W], numbers: &mut [Self]) {
        W::widen(stored, numbers);
    }

    fn kernel<W: Stored>() -> Option<Kernel<W, Self>> {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx512f") {
            return Some(x86::avx512);
        } else if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            return Some(x86::avx2);
        }
        Some(portable)
    }
}

impl Element for bf16 {
    #[inline(always)]
    fn of<W: Stored>(stored: &[W], numbers: &mut [Self]) {
        W::narrow(stored, numbers);
    }

    fn kernel<W: Stored>() -> Option<Kernel<W, Self>> {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512bf16")
        {
            return Some(x86::avx512bf16);
        }
        None
    }
}

/// Partial sums in a register.
trait Vector: Copy {
    type Element: Element;
    /// Elements that are multiplied at once.
    const LANES: usize;
    /// Rows of x in a tile: as many as registers hold sums beside what these are made of.
    const ROWS: usize;

    /// # Safety
    /// As [`Vector::add_products`].
    unsafe fn zero() -> Self;

    /// # Safety
    /// The processor must have the vector's instructions, and both places [`Vector::LANES`] elements.
    unsafe fn add_products(self, x: *const Self::Element, weights: *const Self::Element) -> Self;

    /// The sum of each.
    ///
    /// # Safety
    /// As [`Vector::add_products`].
    unsafe fn sums(of: [Self; COLUMNS]) -> [f32; COLUMNS];
}

/// How much of the width is widened at a time: of x the rows of a tile, and of the weight its columns, are in the first cache.
const DEPTH: usize = 1024;

#[inline(always)]
unsafe fn block<W: Stored, V: Vector>(
    x: &[V::Element],
    weights: &[W],
    width: usize,
    bias: Option<&[f32]>,
    result: &mut [&mut [f32]],
) {
    let columns = weights.len() / width;
    let depth = width.div_ceil(width.div_ceil(DEPTH)).next_multiple_of(V::LANES);
    // Columns beyond the last are zeros.
    let mut panel = vec![V::Element::default(); columns.next_multiple_of(COLUMNS) * depth];
    for start in (0..width).step_by(depth) {
        let taken = depth.min(width - start);
        for (wide, stored) in panel.chunks_exact_mut(depth).zip(weights.chunks_exact(width)) {
            V::Element::of(&stored[start..start + taken], &mut wide[..taken]);
        }
        for (rows, result) in x.chunks(V::ROWS * width).zip(result.chunks_mut(V::ROWS)) {
            let rows = &rows[start..];
            if start == 0 {
                fill_with_bias(bias, result);
            }
            // SAFETY: the caller's; the rows are `width` long, and `taken` of them from `start` on are there.
            unsafe {
                match result.len() {
                    1 => tiles::<V, 1>(rows, width, &panel, depth, taken, result),
                    2 => tiles::<V, 2>(rows, width, &panel, depth, taken, result),
                    3 => tiles::<V, 3>(rows, width, &panel, depth, taken, result),
                    4 => tiles::<V, 4>(rows, width, &panel, depth, taken, result),
                    5 => tiles::<V, 5>(rows, width, &panel, depth, taken, result),
                    _ => tiles::<V, 6>(rows, width, &panel, depth, taken, result),
                }
            }
        }
    }
}

/// The tiles of `R` rows of x with all columns of a panel.
#[inline(always)]
unsafe fn tiles<V: Vector, const R: usize>(
    x: &[V::Element],
    width: usize,
    panel: &[V::Element],
    depth: usize,
    taken: usize,
    result: &mut [&mut [f32]],
) {
    let x: [&[V::Element]; R] = std::array::from_fn(|row| &x[row * width..][..taken]);
    for (place, weights) in panel.chunks_exact(COLUMNS * depth).enumerate() {
        let weights: [&[V::Element]; COLUMNS] =
            std::array::from_fn(|column| &weights[column * depth..][..taken]);
        // SAFETY: the caller's; all slices are `taken` long.
        let sums = unsafe { tile::<V, R>(x, weights, taken) };
        for (result, sums) in result.iter_mut().zip(sums) {
            let columns = &mut result[place * COLUMNS..];
            // Of a length that the compiler knows, all but at the end.
            if let Some(columns) = columns.first_chunk_mut::<COLUMNS>() {
                columns.iter_mut().zip(sums).for_each(|(result, sum)| *result += sum);
            } else {
                columns.iter_mut().zip(sums).for_each(|(result, sum)| *result += sum);
            }
        }
    }
}

#[inline(always)]
unsafe fn tile<V: Vector, const R: usize>(
    x: [&[V::Element]; R],
    weights: [&[V::Element]; COLUMNS],
    taken: usize,
) -> [[f32; COLUMNS]; R] {
    let whole = taken - taken % V::LANES;
    // SAFETY: the caller says that the processor has the instructions and that all slices are `taken` long.
    // A closure would be compiled without them, and called.
    let mut totals = [[0.0; COLUMNS]; R];
    unsafe {
        let mut sums = [[V::zero(); COLUMNS]; R];
        for start in (0..whole).step_by(V::LANES) {
            for (sums, x) in sums.iter_mut().zip(x) {
                for (sum, weights) in sums.iter_mut().zip(weights) {
                    *sum = sum.add_products(x.as_ptr().add(start), weights.as_ptr().add(start));
                }
            }
        }
        for (total, sums) in totals.iter_mut().zip(sums) {
            *total = V::sums(sums);
        }
    }
    if whole == taken {
        return totals;
    }
    for (sums, x) in totals.iter_mut().zip(x) {
        for (sum, weights) in sums.iter_mut().zip(weights) {
            *sum +=
                x[whole..].iter().zip(&weights[whole..]).map(|(x, w)| x.single() * w.single()).sum::<f32>();
        }
    }
    totals
}

/// For processors whose instructions are not written out here.
impl Vector for [f32; 4] {
    type Element = f32;
    const LANES: usize = 4;
    const ROWS: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> Self {
        [0.0; 4]
    }

    #[inline(always)]
    unsafe fn add_products(self, x: *const f32, weights: *const f32) -> Self {
        // SAFETY: the caller's.
        let (x, weights) = unsafe { (x.cast::<Self>().read(), weights.cast::<Self>().read()) };
        std::array::from_fn(|lane| match cfg!(target_arch = "aarch64") {
            true => x[lane].mul_add(weights[lane], self[lane]),
            false => self[lane] + x[lane] * weights[lane],
        })
    }

    #[inline(always)]
    unsafe fn sums(of: [Self; COLUMNS]) -> [f32; COLUMNS] {
        of.map(|lanes| lanes.iter().sum())
    }
}

pub(super) fn portable<W: Stored>(
    x: &[f32],
    weights: &[W],
    width: usize,
    bias: Option<&[f32]>,
    result: &mut [&mut [f32]],
) {
    // SAFETY: it needs no instructions of its own.
    unsafe { block::<W, [f32; 4]>(x, weights, width, bias, result) }
}

#[cfg(target_arch = "x86_64")]
mod x86;
