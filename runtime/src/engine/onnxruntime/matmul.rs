//! `x · wᵀ` of many rows: each block of weights is widened once, where it lies, and multiplied with all rows.
//!
//! ONNX Runtime would keep weights of 16 bits in single precision, and a second time in the order in which it multiplies them.
//! Here they stay in their mapped pages, at the speed that it has with the copies.

use std::sync::PoisonError;

use super::product::{Slices, slices};
use super::stored::Stored;
use super::tile::{COLUMNS, Element, Kernel};

/// Rows of the weight in a block: widened, they leave room for rows of x in the second-level cache.
const BLOCK: usize = 8 * COLUMNS;

/// A product, cut into blocks of weights that threads take in any order.
pub(super) struct Matmul<'a, W, E> {
    x: &'a [E],
    weight: &'a [W],
    bias: Option<&'a [f32]>,
    width: usize,
    blocks: Vec<Slices<'a>>,
    kernel: Kernel<W, E>,
}

impl<'a, W: Stored, E: Element> Matmul<'a, W, E> {
    /// Of `x` `[rows, width]` and `weight` `[out, width]`, plus `bias` `[out]`, into `result` `[rows, out]`.
    pub(super) fn new(
        kernel: Kernel<W, E>,
        x: &'a [E],
        weight: &'a [W],
        bias: Option<&'a [f32]>,
        result: &'a mut [f32],
        width: usize,
    ) -> Self {
        let out = weight.len().checked_div(width).unwrap_or(0);
        Self { x, weight, bias, width, blocks: slices(result, out, BLOCK), kernel }
    }

    /// How many blocks there are to compute.
    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn compute(&self, block: usize) {
        let mut slices = self.blocks[block].lock().unwrap_or_else(PoisonError::into_inner);
        let first = block * BLOCK;
        for slice in slices.iter_mut() {
            match self.bias {
                Some(bias) => slice.copy_from_slice(&bias[first..first + slice.len()]),
                None => slice.fill(0.0),
            }
        }
        let end = self.weight.len().min((first + BLOCK) * self.width);
        (self.kernel)(self.x, &self.weight[first * self.width..end], self.width, &mut slices);
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::super::product::testing::{numbers, wanted};
    use super::*;

    /// Compares every way that this processor has with sums in double precision, of numbers that `E` holds exactly.
    fn check<W: Stored, E: Element>(rows: usize, width: usize, of: fn(f32) -> W, most: f64) {
        let Some(kernel) = E::kernel::<W>() else { return };
        let out = 37;
        let x: Vec<E> = numbers(rows * width, 1).into_iter().map(E::of).collect();
        let weight: Vec<W> = numbers(out * width, 2).into_iter().map(of).collect();
        let exact: Vec<f32> = x.iter().map(|x| x.single()).collect();
        for bias in [None, Some(numbers(out, 3))] {
            let mut result = vec![f32::NAN; rows * out];
            let product = Matmul::new(kernel, &x, &weight, bias.as_deref(), &mut result, width);
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
    fn the_plain_kernel_gives_the_same() {
        let (x, weight) = (numbers(5 * 70, 1), numbers(9 * 70, 2));
        let of = |kernel: Kernel<f32, f32>| {
            let mut result = vec![f32::NAN; 5 * 9];
            let product = Matmul::new(kernel, &x, &weight, None, &mut result, 70);
            (0..product.blocks()).for_each(|block| product.compute(block));
            result
        };
        let (plain, fastest) = (of(super::super::tile::portable), of(f32::kernel().unwrap()));
        assert!(plain.iter().zip(&fastest).all(|(a, b)| (a - b).abs() < 1e-5));
    }

    #[test]
    fn bfloat16_is_rounded_to_the_nearest() {
        for x in numbers(10_000, 4).into_iter().chain([0.0, -0.0, 1e-40, f32::MAX, f32::INFINITY]) {
            assert_eq!(<bf16 as Element>::of(x), bf16::from_f32(x), "{x}");
        }
        assert!(<bf16 as Element>::of(f32::NAN).is_nan());
    }
}
