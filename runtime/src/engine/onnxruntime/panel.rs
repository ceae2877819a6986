//! Sums of products of a few rows with the columns of a panel, in the processor's registers.
//!
//! A panel holds numbers of so many columns beside each other, depth by depth, so that a register of them meets one number of a
//! row at a time and no sum is added up across a register: convolutions lay windows so, and products of many rows weights.

#![allow(unsafe_code)]

pub(super) mod tiles;

use std::ops::Range;

/// The products of rows that lie `stride` apart and of a panel `[taken, columns]`, for these columns of the rows of the result.
pub(super) type Products =
    fn(left: &[f32], stride: usize, panel: &[f32], columns: Range<usize>, rows: &mut [&mut [f32]]);

/// Writes rows `[lanes, stride]`, of which `taken` numbers are there, as that many columns of a panel, from `at` on.
pub(super) type Transposed = fn(rows: &[f32], stride: usize, taken: usize, panel: &mut [f32], at: usize);

/// A way to multiply panels.
#[derive(Clone, Copy)]
pub(super) struct Kernel {
    /// Numbers in a register.
    pub(super) lanes: usize,
    /// Columns of a panel.
    pub(super) columns: usize,
    /// Rows of a tile.
    pub(super) rows: usize,
    /// In place of what was there.
    pub(super) products: Products,
    /// Added to what was there.
    pub(super) add_products: Products,
    pub(super) transposed: Transposed,
    /// Of tiles, whose products are panels too.
    pub(super) transforms: tiles::Transforms,
}

impl Kernel {
    /// Numbers that a panel of so many rows takes, with room for what copying runs of columns writes too much.
    pub(super) fn panel(self, depth: usize) -> usize {
        (depth + 1) * self.columns
    }
}

/// The fastest way that this processor has.
pub(super) fn kernel() -> Kernel {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") {
        return x86::AVX512;
    } else if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        return x86::AVX2;
    }
    PORTABLE
}

/// The way for panels of pairs of numbers in bfloat16, which multiplies both and adds both to a sum in single precision; none where
/// the processor does not compute in bfloat16.
pub(super) fn pairs() -> Option<Kernel> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512bf16") {
        return Some(x86::AVX512_BF16);
    }
    None
}

/// All ways that this processor has, the plain one first.
#[cfg(test)]
pub(super) fn kernels() -> Vec<Kernel> {
    #[allow(unused_mut)]
    let mut kernels = vec![PORTABLE];
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            kernels.push(x86::AVX2);
        }
        if std::arch::is_x86_feature_detected!("avx512f") {
            kernels.push(x86::AVX512);
        }
    }
    kernels
}

/// For processors whose instructions are not written out here.
pub(super) const PORTABLE: Kernel = plain::<[f32; 4]>();

/// A register's kernel with the plain ways to compute, for those that are written out to take the place of.
const fn plain<V: Lanes>() -> Kernel {
    Kernel {
        lanes: V::LANES,
        columns: V::LANES * V::REGISTERS,
        rows: V::ROWS,
        products: portable::<false>,
        add_products: portable::<true>,
        transposed: transposed_portable,
        transforms: tiles::PORTABLE,
    }
}

/// Sums in a register.
trait Lanes: Copy {
    const LANES: usize;
    /// Registers of columns in a panel.
    const REGISTERS: usize = 2;
    /// Rows in a tile: 6, or 12 where there are 32 registers, so that sums and what they are made of fit.
    const ROWS: usize;

    /// # Safety
    /// The processor must have the register's instructions.
    unsafe fn splat(number: f32) -> Self;

    /// # Safety
    /// As [`Lanes::splat`]; there must be [`Lanes::LANES`] numbers.
    unsafe fn load(from: *const f32) -> Self;

    /// # Safety
    /// As [`Lanes::load`].
    unsafe fn store(self, to: *mut f32);

    /// # Safety
    /// As [`Lanes::splat`].
    unsafe fn add(self, other: Self) -> Self;

    /// `self + a · b`.
    ///
    /// # Safety
    /// As [`Lanes::splat`].
    unsafe fn add_product(self, a: Self, b: Self) -> Self;

    /// Writes as many numbers of each of [`Lanes::LANES`] rows, which lie `stride` apart, into as many rows of a panel, which lie
    /// `columns` apart.
    ///
    /// # Safety
    /// As [`Lanes::splat`]; all of them must be there.
    unsafe fn transpose(from: *const f32, stride: usize, to: *mut f32, columns: usize);
}

/// # Safety
/// The processor must have the register's instructions.
#[inline(always)]
unsafe fn products<V: Lanes, const ADD: bool>(
    left: &[f32],
    stride: usize,
    panel: &[f32],
    columns: Range<usize>,
    rows: &mut [&mut [f32]],
) {
    for (left, rows) in left.chunks(V::ROWS * stride).zip(rows.chunks_mut(V::ROWS)) {
        if rows.len() == 12 {
            // SAFETY: the caller's.
            unsafe { of_rows::<V, ADD, 12>(left, stride, panel, &columns, rows) }
            continue;
        }
        for (left, rows) in left.chunks(6 * stride).zip(rows.chunks_mut(6)) {
            // SAFETY: the caller's.
            unsafe {
                match rows.len() {
                    1 => of_rows::<V, ADD, 1>(left, stride, panel, &columns, rows),
                    2 => of_rows::<V, ADD, 2>(left, stride, panel, &columns, rows),
                    3 => of_rows::<V, ADD, 3>(left, stride, panel, &columns, rows),
                    4 => of_rows::<V, ADD, 4>(left, stride, panel, &columns, rows),
                    5 => of_rows::<V, ADD, 5>(left, stride, panel, &columns, rows),
                    _ => of_rows::<V, ADD, 6>(left, stride, panel, &columns, rows),
                }
            }
        }
    }
}

/// # Safety
/// As [`products`].
#[inline(always)]
unsafe fn of_rows<V: Lanes, const ADD: bool, const R: usize>(
    left: &[f32],
    stride: usize,
    panel: &[f32],
    columns: &Range<usize>,
    rows: &mut [&mut [f32]],
) {
    // SAFETY: the caller's.
    unsafe {
        match columns.len().div_ceil(V::LANES) {
            1 => tile::<V, ADD, R, 1>(left, stride, panel, columns, rows),
            _ => tile::<V, ADD, R, 2>(left, stride, panel, columns, rows),
        }
    }
}

/// # Safety
/// As [`products`].
#[inline(always)]
unsafe fn tile<V: Lanes, const ADD: bool, const R: usize, const C: usize>(
    left: &[f32],
    stride: usize,
    panel: &[f32],
    columns: &Range<usize>,
    rows: &mut [&mut [f32]],
) {
    let width = V::LANES * V::REGISTERS;
    let taken = panel.len() / width;
    assert!(C <= V::REGISTERS && left.len() >= (R - 1) * stride + taken);
    // SAFETY: the caller's; the panel has `taken` rows of `width`, and each of the other rows as many numbers.
    let sums = unsafe {
        let mut sums = [[V::splat(0.0); C]; R];
        let (mut left, mut panel) = (left.as_ptr(), panel.as_ptr());
        for _ in 0..taken {
            let mut columns = [V::splat(0.0); C];
            for (at, columns) in columns.iter_mut().enumerate() {
                *columns = V::load(panel.add(at * V::LANES));
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                let number = V::splat(*left.add(row * stride));
                for (sum, columns) in sums.iter_mut().zip(columns) {
                    *sum = sum.add_product(number, columns);
                }
            }
            (left, panel) = (left.add(1), panel.add(width));
        }
        sums
    };
    for (row, sums) in rows.iter_mut().zip(sums) {
        for (result, sum) in row[columns.clone()].chunks_mut(V::LANES).zip(sums) {
            // SAFETY: the caller's; both have as many numbers as a register.
            unsafe {
                if result.len() == V::LANES {
                    let sum = if ADD { V::load(result.as_ptr()).add(sum) } else { sum };
                    sum.store(result.as_mut_ptr());
                } else {
                    let mut numbers = [0.0; 16];
                    sum.store(numbers.as_mut_ptr());
                    let results = result.iter_mut().zip(numbers);
                    results.for_each(|(to, sum)| *to = if ADD { *to + sum } else { sum });
                }
            }
        }
    }
}

impl Lanes for [f32; 4] {
    const LANES: usize = 4;
    const ROWS: usize = 6;

    #[inline(always)]
    unsafe fn splat(number: f32) -> Self {
        [number; 4]
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller's.
        unsafe { from.cast::<Self>().read() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller's.
        unsafe { to.cast::<Self>().write(self) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        std::array::from_fn(|lane| self[lane] + other[lane])
    }

    #[inline(always)]
    unsafe fn add_product(self, a: Self, b: Self) -> Self {
        std::array::from_fn(|lane| match cfg!(target_arch = "aarch64") {
            true => a[lane].mul_add(b[lane], self[lane]),
            false => self[lane] + a[lane] * b[lane],
        })
    }

    #[inline(always)]
    unsafe fn transpose(from: *const f32, stride: usize, to: *mut f32, columns: usize) {
        for (row, place) in (0..16).map(|at| (at / 4, at % 4)) {
            // SAFETY: the caller's.
            unsafe { *to.add(place * columns + row) = *from.add(row * stride + place) };
        }
    }
}

fn portable<const ADD: bool>(
    left: &[f32],
    stride: usize,
    panel: &[f32],
    columns: Range<usize>,
    rows: &mut [&mut [f32]],
) {
    // SAFETY: it needs no instructions of its own.
    unsafe { products::<[f32; 4], ADD>(left, stride, panel, columns, rows) }
}

fn transposed_portable(rows: &[f32], stride: usize, taken: usize, panel: &mut [f32], at: usize) {
    // SAFETY: it needs no instructions of its own.
    unsafe { transposed::<[f32; 4]>(rows, stride, taken, panel, at) }
}

/// # Safety
/// The processor must have the register's instructions.
#[inline(always)]
unsafe fn transposed<V: Lanes>(rows: &[f32], stride: usize, taken: usize, panel: &mut [f32], at: usize) {
    let columns = V::LANES * V::REGISTERS;
    let whole = taken - taken % V::LANES;
    assert!(stride >= taken && rows.len() >= (V::LANES - 1) * stride + taken);
    assert!(at + V::LANES <= columns && panel.len() >= taken * columns);
    for start in (0..whole).step_by(V::LANES) {
        // SAFETY: the caller's; each row has as many numbers as a register from `start` on, and so has each row of the panel from `at`.
        unsafe {
            let to = panel.as_mut_ptr().add(start * columns + at);
            V::transpose(rows.as_ptr().add(start), stride, to, columns);
        }
    }
    for (lane, row) in rows.chunks(stride.max(1)).take(V::LANES).enumerate() {
        let places = panel[whole * columns..].iter_mut().skip(at + lane).step_by(columns);
        places.zip(&row[whole..taken]).for_each(|(place, number)| *place = *number);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "x86_64")]
pub(super) use x86::square_avx512;
