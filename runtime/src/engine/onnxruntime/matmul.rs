//! `x · wᵀ` of many rows: each block of weights is widened once, where it lies, and multiplied with all rows.
//!
//! For many rows a block's weights are laid out as panels (`panel.rs`); for fewer, which would not be worth it, products are dot
//! products of rows as they lie (`tile.rs`).
//!
//! ONNX Runtime would keep weights of 16 bits in single precision, and a second time in the order in which it multiplies them.
//! Here they stay in their mapped pages, at the speed that it has with the copies.

use std::sync::PoisonError;

use half::bf16;

use super::panel;
use super::product::{ResultRows, Slices, ask_for, slices};
use super::stored::Stored;
use super::tile::{Element, Kernel, fill_with_bias};
use crate::graph::Dtype;

/// The most rows of the weight in a block: all rows of x are read once for each block.
const LARGEST: usize = 128;

/// The fewest, which is what a panel has on the widest registers.
const SMALLEST: usize = 32;

/// Rows of the weight whose products take as long as reading x: an estimate.
const READING: usize = 3;

/// How many blocks there are to be at least, so that all threads have some.
const BLOCKS: usize = 16;

/// How much of the width is multiplied at a time: a block of weights is in the second cache, and the rows of a tile in the first.
const DEPTH: usize = 512;

/// From how many rows on panels are faster: on a processor with AVX-512, 48 rows take 1.07 times as long by panels as by dot
/// products, 132 rows 0.88 times and 640 rows 0.7 times.
const MANY: usize = 64;

/// What panels are made of.
pub(super) trait Panels: Element {
    /// The fastest way that this processor has by panels; none where it does not compute in this type.
    fn kernel_by_panels<W: Stored>() -> Option<Kernel<W, Self>>;
}

impl Panels for f32 {
    fn kernel_by_panels<W: Stored>() -> Option<Kernel<W, Self>> {
        Some(by_panels)
    }
}

impl Panels for bf16 {
    fn kernel_by_panels<W: Stored>() -> Option<Kernel<W, Self>> {
        panel::pairs().map(|_| by_panels_of_pairs::<W> as Kernel<W, Self>)
    }
}

/// The fastest way that this processor has to multiply so many rows; none where it does not compute in this type.
pub(super) fn kernel<W: Stored, E: Panels>(rows: usize) -> Option<Kernel<W, E>> {
    let by_panels = if rows >= MANY { E::kernel_by_panels() } else { None };
    by_panels.or_else(E::kernel)
}

/// As [`Kernel`], with the rows of a weight block laid out as panels.
fn by_panels<W: Stored>(
    x: &[f32],
    weights: &[W],
    width: usize,
    bias: Option<&[f32]>,
    result: &mut [&mut [f32]],
) {
    in_panels::<W, 1>(panel::kernel(), x, weights, width, W::widen, bias, result);
}

/// The same in bfloat16. Two numbers of a row are as one of 32 bits: a panel holds pairs, and a register meets pairs.
fn by_panels_of_pairs<W: Stored>(
    x: &[bf16],
    weights: &[W],
    width: usize,
    bias: Option<&[f32]>,
    result: &mut [&mut [f32]],
) {
    // SAFETY: all bits are a number in either type.
    #[allow(unsafe_code)]
    let (before, pairs, after) = unsafe { x.align_to::<f32>() };
    match panel::pairs().filter(|_| width.is_multiple_of(2) && before.is_empty() && after.is_empty()) {
        Some(kernel) => in_panels::<W, 2>(kernel, pairs, weights, width / 2, narrow_pairs, bias, result),
        None => {
            if let Some(kernel) = bf16::kernel::<W>() {
                kernel(x, weights, width, bias, result);
            }
        }
    }
}

/// Rounds weights to bfloat16, two in a number.
pub(super) fn narrow_pairs<W: Stored>(weights: &[W], pairs: &mut [f32]) {
    // SAFETY: all bits are a number in either type, and nothing is before or after: 32 bits hold two of 16 wherever they lie.
    #[allow(unsafe_code)]
    let (_, narrow, _) = unsafe { pairs.align_to_mut::<bf16>() };
    W::narrow(weights, narrow);
}

/// As [`by_panels`], of rows of so many numbers of 32 bits, which hold `PER` weights each.
fn in_panels<W: Stored, const PER: usize>(
    kernel: panel::Kernel,
    x: &[f32],
    weights: &[W],
    width: usize,
    numbers: fn(&[W], &mut [f32]),
    bias: Option<&[f32]>,
    result: &mut [&mut [f32]],
) {
    let out = weights.len() / (PER * width);
    let depth = width.div_ceil(width.div_ceil(DEPTH));
    let lying = lying::<W, PER>(weights);
    let mut wide = vec![0.0; kernel.lanes * depth];
    let mut panels = vec![0.0; out.next_multiple_of(kernel.columns) * depth];
    for start in (0..width).step_by(depth) {
        let taken = depth.min(width - start);
        let lanes = weights.chunks(kernel.lanes * width * PER).enumerate();
        for (at, weights) in lanes.map(|(part, weights)| (part * kernel.lanes, weights)) {
            let panel = &mut panels[at / kernel.columns * kernel.columns * depth..];
            let all = weights.len() == kernel.lanes * width * PER;
            if let Some(lying) = lying.filter(|_| all) {
                (kernel.transposed)(&lying[at * width + start..], width, taken, panel, at % kernel.columns);
                continue;
            }
            for (wide, weights) in wide.chunks_exact_mut(depth).zip(weights.chunks_exact(width * PER)) {
                numbers(&weights[start * PER..(start + taken) * PER], &mut wide[..taken]);
            }
            // Rows beyond the last hold what came before, and so do their columns, which nobody reads.
            (kernel.transposed)(&wide, depth, taken, panel, at % kernel.columns);
        }
        let tiles = result.len().div_ceil(kernel.rows);
        for (tile, (x, rows)) in x.chunks(kernel.rows * width).zip(result.chunks_mut(kernel.rows)).enumerate()
        {
            ask_for_next(weights, [width, start + taken, depth].map(|numbers| numbers * PER), tile, tiles);
            if start == 0 {
                fill_with_bias(bias, rows);
            }
            for (place, panel) in panels.chunks_exact(kernel.columns * depth).enumerate() {
                let first = place * kernel.columns;
                let columns = first..out.min(first + kernel.columns);
                (kernel.add_products)(&x[start..], width, &panel[..taken * kernel.columns], columns, rows);
            }
        }
    }
}

/// Weights as numbers of 32 bits, where they are such as they lie.
fn lying<W: Stored, const PER: usize>(weights: &[W]) -> Option<&[f32]> {
    let same = W::DTYPE == if PER == 1 { Dtype::F32 } else { Dtype::Bf16 };
    // SAFETY: all bits are a number in either type.
    #[allow(unsafe_code)]
    let (before, numbers, after) = unsafe { weights.align_to::<f32>() };
    (same && before.is_empty() && after.is_empty()).then_some(numbers)
}

/// Asks for a part of the weights that the next panels are made of, one of so many, while these ones are multiplied.
fn ask_for_next<W: Stored>(weights: &[W], [width, start, depth]: [usize; 3], part: usize, parts: usize) {
    let rows = weights.len() / width;
    for row in part * rows / parts..(part + 1) * rows / parts {
        let row = &weights[row * width..][..width];
        let next = &row[start..width.min(start + depth)];
        ask_for(next.as_ptr(), size_of_val(next));
    }
}

/// A product, cut into blocks of weights that threads take in any order.
pub(super) struct Matmul<'a, W, E> {
    x: &'a [E],
    weight: &'a [W],
    bias: Option<&'a [f32]>,
    width: usize,
    blocks: Vec<Slices<'a>>,
    /// Rows of the weight in a block.
    rows: usize,
    kernel: Kernel<W, E>,
}

impl<'a, W: Stored, E: Element> Matmul<'a, W, E> {
    /// Of `x` `[rows, width]` and `weight` `[out, width]`, plus `bias` `[out]`, into `result` `[rows, out]`.
    pub(super) fn new(
        kernel: Kernel<W, E>,
        x: &'a [E],
        weight: &'a [W],
        bias: Option<&'a [f32]>,
        result: impl ResultRows<'a>,
        width: usize,
    ) -> Self {
        let out = weight.len().checked_div(width).unwrap_or(0);
        let rows = rows_of_blocks(out);
        Self { x, weight, bias, width, blocks: slices(result, out, rows), rows, kernel }
    }

    /// How many blocks there are to compute.
    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn compute(&self, block: usize) {
        let mut slices = self.blocks[block].lock().unwrap_or_else(PoisonError::into_inner);
        let first = block * self.rows;
        let bias = self.bias.map(|bias| &bias[first..]);
        let end = self.weight.len().min((first + self.rows) * self.width);
        (self.kernel)(self.x, &self.weight[first * self.width..end], self.width, bias, &mut slices);
    }
}

/// Rows of the weight in a block, of so many in all.
///
/// Of the two multiples of a panel next to a share of them the one by which two threads have less to do, reading x once for each block
/// included: of 1280 rows, 14 blocks of 96 leave one thread 1.05 times its half, and 20 of 64 leave both the same.
fn rows_of_blocks(out: usize) -> usize {
    let share = (out / BLOCKS).clamp(SMALLEST, LARGEST);
    let [more, fewer] = [share.next_multiple_of(SMALLEST), share - share % SMALLEST];
    let each = |rows: usize| {
        let of_a_thread = out.div_ceil(rows).div_ceil(2) * rows;
        // What reading x adds, in products of a row with it.
        of_a_thread + of_a_thread * READING / rows
    };
    if each(fewer) < each(more) { fewer } else { more }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::super::product::testing::{numbers, wanted};
    use super::*;

    /// Compares every way that this processor has with sums in double precision, of numbers that `E` holds exactly.
    fn check<W: Stored, E: Element>(rows: usize, width: usize, of: fn(f32) -> W, most: f64) {
        check_with(E::kernel::<W>(), rows, width, of, most);
    }

    fn check_with<W: Stored, E: Element>(
        kernel: Option<Kernel<W, E>>,
        rows: usize,
        width: usize,
        of: fn(f32) -> W,
        most: f64,
    ) {
        let Some(kernel) = kernel else { return };
        let out = 37;
        let mut x = vec![E::default(); rows * width];
        E::of(&numbers(rows * width, 1), &mut x);
        let weight: Vec<W> = numbers(out * width, 2).into_iter().map(of).collect();
        let exact: Vec<f32> = x.iter().map(|x| x.single()).collect();
        for bias in [None, Some(numbers(out, 3))] {
            let mut result = vec![f32::NAN; rows * out];
            let product = Matmul::new(kernel, &x, &weight, bias.as_deref(), result.as_mut_slice(), width);
            (0..product.blocks()).rev().for_each(|block| product.compute(block));
            for (got, want) in result.iter().zip(wanted(&exact, &weight, bias.as_deref(), width)) {
                let place = format!("{:?} in {:?}, {rows} x {width}", W::DTYPE, E::DTYPE);
                assert!((f64::from(*got) - want).abs() < most, "{place}: {got} for {want}");
            }
        }
    }

    #[test]
    fn rows_and_widths_that_tiles_divide_and_that_they_do_not() {
        // Fewer rows than a tile, exactly one, some more; widths of less than a register, and of several panels.
        for (rows, width) in [(1, 5), (2, 37), (5, 64), (6, 96), (13, 40), (7, 1100)] {
            check::<f32, f32>(rows, width, |x| x, 1e-4);
            check::<bf16, f32>(rows, width, bf16::from_f32, 1e-4);
            check::<f16, f32>(rows, width, f16::from_f32, 1e-4);
            check::<bf16, bf16>(rows, width, bf16::from_f32, 1e-4);
            // Weights are rounded to 8 bits of mantissa.
            check::<f32, bf16>(rows, width, |x| x, 0.15);
        }
    }

    #[test]
    fn panels_of_any_number_of_rows_and_any_width() {
        fn nth<W: Stored, const N: usize>(
            x: &[f32],
            weights: &[W],
            width: usize,
            bias: Option<&[f32]>,
            result: &mut [&mut [f32]],
        ) {
            let kernels = panel::kernels();
            let kernel = kernels[N.min(kernels.len() - 1)];
            in_panels::<W, 1>(kernel, x, weights, width, W::widen, bias, result);
        }
        // Fewer rows than a tile, exactly one, some more; widths of less than a register, of one and more, and of several panels.
        for (rows, width) in [(1, 5), (7, 16), (12, 37), (13, 64), (25, 100), (31, 1100)] {
            for kernel in [nth::<bf16, 0>, nth::<bf16, 1>, nth::<bf16, 2>] {
                check_with::<bf16, f32>(Some(kernel), rows, width, bf16::from_f32, 1e-4);
            }
            for kernel in [nth::<f16, 0>, nth::<f16, 1>, nth::<f16, 2>] {
                check_with::<f16, f32>(Some(kernel), rows, width, f16::from_f32, 1e-4);
            }
            for kernel in [nth::<f32, 0>, nth::<f32, 1>, nth::<f32, 2>] {
                check_with::<f32, f32>(Some(kernel), rows, width, |x| x, 1e-4);
            }
            check_with::<bf16, bf16>(bf16::kernel_by_panels(), rows, width, bf16::from_f32, 1e-4);
            check_with::<f16, bf16>(bf16::kernel_by_panels(), rows, width, f16::from_f32, 0.15);
            check_with::<f32, bf16>(bf16::kernel_by_panels(), rows, width, |x| x, 0.15);
        }
        check_with::<bf16, f32>(kernel(MANY), MANY, 70, bf16::from_f32, 1e-4);
        check_with::<bf16, bf16>(kernel(MANY), MANY, 70, bf16::from_f32, 1e-4);
        check_with::<bf16, bf16>(kernel(MANY), MANY, 71, bf16::from_f32, 1e-4);
    }

    #[test]
    fn blocks_are_many_and_neither_small_nor_large() {
        let rows = |out: usize| {
            let (weight, mut result) = (vec![0.0_f32; out], vec![0.0; out]);
            Matmul::new(f32::kernel().unwrap(), &[0.0_f32], &weight, None, result.as_mut_slice(), 1).rows
        };
        assert_eq!([5, 600, 960, 1280, 1536, 2048, 40_000].map(rows), [32, 64, 32, 64, 96, 128, 128]);
    }

    #[test]
    fn the_plain_kernel_gives_the_same() {
        let (x, weight) = (numbers(5 * 70, 1), numbers(9 * 70, 2));
        let of = |kernel: Kernel<f32, f32>| {
            let mut result = vec![f32::NAN; 5 * 9];
            let product = Matmul::new(kernel, &x, &weight, None, result.as_mut_slice(), 70);
            (0..product.blocks()).for_each(|block| product.compute(block));
            result
        };
        let (plain, fastest) = (of(super::super::tile::portable), of(f32::kernel().unwrap()));
        assert!(plain.iter().zip(&fastest).all(|(a, b)| (a - b).abs() < 1e-5));
    }
}
