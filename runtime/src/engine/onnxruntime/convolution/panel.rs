//! Sums of products of a few rows of weights with the columns of a panel, in the processor's registers.

#![allow(unsafe_code)]

use std::ops::Range;

/// How much of the depth is multiplied at a time: a panel of it and the rows of a tile are in the first cache.
pub(super) const WIDE: usize = 256;

/// The products of rows of weights `[rows, WIDE]` and of a panel `[taken, columns]`, for these columns of the rows of the
/// result.
pub(super) type Products = fn(weights: &[f32], panel: &[f32], columns: Range<usize>, rows: &mut [&mut [f32]]);

/// A way to multiply panels.
#[derive(Clone, Copy)]
pub(super) struct Kernel {
    /// Numbers in a register.
    pub(super) lanes: usize,
    /// Columns of a panel.
    pub(super) columns: usize,
    /// In place of what was there.
    pub(super) products: Products,
    /// Added to what was there.
    pub(super) add_products: Products,
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
        return Kernel {
            lanes: 16,
            columns: 32,
            products: x86::avx512::<false>,
            add_products: x86::avx512::<true>,
        };
    } else if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        return Kernel {
            lanes: 8,
            columns: 16,
            products: x86::avx2::<false>,
            add_products: x86::avx2::<true>,
        };
    }
    PORTABLE
}

/// For processors whose instructions are not written out here.
pub(super) const PORTABLE: Kernel =
    Kernel { lanes: 4, columns: 8, products: portable::<false>, add_products: portable::<true> };

/// Sums in a register.
trait Lanes: Copy {
    const LANES: usize;
    /// Registers of columns in a panel.
    const REGISTERS: usize = 2;
    /// Rows of weights in a tile: 6, or 12 where there are 32 registers, so that sums and what they are made of fit.
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
}

/// # Safety
/// The processor must have the register's instructions.
#[inline(always)]
unsafe fn products<V: Lanes, const ADD: bool>(
    weights: &[f32],
    panel: &[f32],
    columns: Range<usize>,
    rows: &mut [&mut [f32]],
) {
    for (weights, rows) in weights.chunks(V::ROWS * WIDE).zip(rows.chunks_mut(V::ROWS)) {
        if rows.len() == 12 {
            // SAFETY: the caller's.
            unsafe { of_rows::<V, ADD, 12>(weights, panel, &columns, rows) }
            continue;
        }
        for (weights, rows) in weights.chunks(6 * WIDE).zip(rows.chunks_mut(6)) {
            // SAFETY: the caller's.
            unsafe {
                match rows.len() {
                    1 => of_rows::<V, ADD, 1>(weights, panel, &columns, rows),
                    2 => of_rows::<V, ADD, 2>(weights, panel, &columns, rows),
                    3 => of_rows::<V, ADD, 3>(weights, panel, &columns, rows),
                    4 => of_rows::<V, ADD, 4>(weights, panel, &columns, rows),
                    5 => of_rows::<V, ADD, 5>(weights, panel, &columns, rows),
                    _ => of_rows::<V, ADD, 6>(weights, panel, &columns, rows),
                }
            }
        }
    }
}

/// # Safety
/// As [`products`].
#[inline(always)]
unsafe fn of_rows<V: Lanes, const ADD: bool, const R: usize>(
    weights: &[f32],
    panel: &[f32],
    columns: &Range<usize>,
    rows: &mut [&mut [f32]],
) {
    // SAFETY: the caller's.
    unsafe {
        match columns.len().div_ceil(V::LANES) {
            1 => tile::<V, ADD, R, 1>(weights, panel, columns, rows),
            _ => tile::<V, ADD, R, 2>(weights, panel, columns, rows),
        }
    }
}

/// # Safety
/// As [`products`].
#[inline(always)]
unsafe fn tile<V: Lanes, const ADD: bool, const R: usize, const C: usize>(
    weights: &[f32],
    panel: &[f32],
    columns: &Range<usize>,
    rows: &mut [&mut [f32]],
) {
    let width = V::LANES * V::REGISTERS;
    let taken = panel.len() / width;
    assert!(C <= V::REGISTERS && taken <= WIDE && weights.len() >= (R - 1) * WIDE + taken);
    // SAFETY: the caller's; the panel has `taken` rows of `width`, and each row of weights as many numbers.
    let sums = unsafe {
        let mut sums = [[V::splat(0.0); C]; R];
        let (mut weight, mut x) = (weights.as_ptr(), panel.as_ptr());
        for _ in 0..taken {
            let mut columns = [V::splat(0.0); C];
            for (at, columns) in columns.iter_mut().enumerate() {
                *columns = V::load(x.add(at * V::LANES));
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                let weight = V::splat(*weight.add(row * WIDE));
                for (sum, columns) in sums.iter_mut().zip(columns) {
                    *sum = sum.add_product(weight, columns);
                }
            }
            (weight, x) = (weight.add(1), x.add(width));
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
}

fn portable<const ADD: bool>(weights: &[f32], panel: &[f32], columns: Range<usize>, rows: &mut [&mut [f32]]) {
    // SAFETY: it needs no instructions of its own.
    unsafe { products::<[f32; 4], ADD>(weights, panel, columns, rows) }
}

#[cfg(target_arch = "x86_64")]
mod x86;
