//! `x · wᵀ` of few rows: every weight is read once, where it lies, in the type it is stored in.
//!
//! A step of a decoder multiplies each weight once, so that reading them is what takes its time. ONNX Runtime copies
//! weights that lie transposed into panels before it multiplies them, unless it may keep such a copy of all; here they
//! stream from their mapped pages as they are. Half the bytes take half the time: weights of 16 bits are widened in
//! registers, which is exact, and all sums are of 32.

use std::sync::{Mutex, PoisonError};

use super::lanes::{added_up, fused};
use super::stored::Stored;

/// Sums that are added up side by side, so that one does not wait for the one before.
const LANES: usize = 32;

/// The same of what is left of a row.
const FEW: usize = 8;

/// How many blocks threads take the weights of a product in, where these are not too small or too large.
const BLOCKS: usize = 16;

/// The fewest weights of a block: memory is read ahead of a run once it has begun.
const SMALLEST: usize = 64 * 1024;

/// The most: what one thread has left to do when the others are done.
const LARGEST: usize = 256 * 1024;

/// How far ahead weights are asked for, in bytes: beyond the page that is read, which is where processors stop by themselves, and not
/// much further. On a Zen 4, a token of Llama 1.1B in bfloat16 takes 65.9 ms by this, 68.1 by 8 KiB and 70.0 by 12.
const AHEAD: usize = 5120;

/// The rows of the result that `block` holds, each as the slice that belongs to this block of weights.
pub(super) type Slices<'a> = Mutex<Vec<&'a mut [f32]>>;

/// Where the rows of a result lie: `[rows, out]` one after the other, or wherever each is.
pub(super) trait ResultRows<'a> {
    fn rows(self, out: usize) -> impl Iterator<Item = &'a mut [f32]>;
}

impl<'a> ResultRows<'a> for &'a mut [f32] {
    fn rows(self, out: usize) -> impl Iterator<Item = &'a mut [f32]> {
        self.chunks_mut(out.max(1))
    }
}

impl<'a> ResultRows<'a> for Vec<&'a mut [f32]> {
    fn rows(self, _: usize) -> impl Iterator<Item = &'a mut [f32]> {
        self.into_iter()
    }
}

/// The rows of a result, cut into blocks of so many columns.
pub(super) fn slices<'a>(result: impl ResultRows<'a>, out: usize, columns: usize) -> Vec<Slices<'a>> {
    let mut blocks: Vec<Vec<&mut [f32]>> = vec![];
    blocks.resize_with(out.div_ceil(columns), Vec::new);
    for row in result.rows(out) {
        for (block, slice) in blocks.iter_mut().zip(row.chunks_mut(columns)) {
            block.push(slice);
        }
    }
    blocks.into_iter().map(Mutex::new).collect()
}

/// A product, cut into blocks of weights that threads take in any order.
pub(super) struct Product<'a, W> {
    x: &'a [f32],
    weight: &'a [W],
    bias: Option<&'a [f32]>,
    width: usize,
    /// Rows of the weight in a block.
    rows: usize,
    blocks: Vec<Slices<'a>>,
    kernel: Kernel<W>,
}

impl<'a, W: Stored> Product<'a, W> {
    /// Of `x` `[rows, width]` and `weight` `[out, width]`, plus `bias` `[out]`, into `result` `[rows, out]`.
    pub(super) fn new(
        x: &'a [f32],
        weight: &'a [W],
        bias: Option<&'a [f32]>,
        width: usize,
        result: impl ResultRows<'a>,
    ) -> Self {
        let out = weight.len().checked_div(width).unwrap_or(0);
        let block = (weight.len() / BLOCKS).clamp(SMALLEST, LARGEST);
        // None is much smaller than the others: threads would wait for those.
        let blocks = weight.len().div_ceil(block).max(1);
        let rows = out.div_ceil(blocks).max(1);
        let blocks = slices(result, out, rows);
        Self { x, weight, bias, width, rows, blocks, kernel: fastest() }
    }

    /// How many blocks there are to compute.
    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn compute(&self, block: usize) {
        let mut slices = self.blocks[block].lock().unwrap_or_else(PoisonError::into_inner);
        let first = block * self.rows;
        let weights = &self.weight[first * self.width..];
        let bias = self.bias.map(|bias| &bias[first..]);
        (self.kernel)(self.x, weights, self.width, &mut slices);
        for slice in slices.iter_mut() {
            let Some(bias) = bias else { break };
            slice.iter_mut().zip(bias).for_each(|(sum, bias)| *sum += bias);
        }
    }
}

/// Rows of x that a row of weights meets at once: their sums are half of the registers of AVX2.
const TOGETHER: usize = 2;

/// The sums of products of rows of x with rows of weights from the first on, as many as a slice of each row of the result has; each by the
/// same steps as alone.
type Kernel<W> = fn(x: &[f32], weights: &[W], width: usize, results: &mut [&mut [f32]]);

/// The fastest that this processor has.
fn fastest<W: Stored>() -> Kernel<W> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        return with_fma::products;
    }
    if cfg!(target_feature = "fma") || cfg!(target_arch = "aarch64") {
        products::<W, true>
    } else {
        products::<W, false>
    }
}

#[cfg(target_arch = "x86_64")]
mod with_fma {
    use super::Stored;

    /// As [`super::products`], compiled for processors that multiply and add at once.
    #[allow(unsafe_code)]
    pub(super) fn products<W: Stored>(x: &[f32], weights: &[W], width: usize, results: &mut [&mut [f32]]) {
        // SAFETY: only handed out where the processor has AVX2 and FMA.
        unsafe { compiled(x, weights, width, results) }
    }

    #[target_feature(enable = "avx2,fma")]
    fn compiled<W: Stored>(x: &[f32], weights: &[W], width: usize, results: &mut [&mut [f32]]) {
        super::products::<W, true>(x, weights, width, results);
    }
}

#[inline(always)]
fn products<W: Stored, const FUSED: bool>(
    x: &[f32],
    weights: &[W],
    width: usize,
    results: &mut [&mut [f32]],
) {
    let rows = results.first().map_or(0, |result| result.len());
    // With one row of x there is nothing to decide between rows of weights.
    if let [result] = results {
        for (result, weights) in result.iter_mut().zip(weights.chunks_exact(width)) {
            *result = lanes::<W, FUSED>(x, weights);
        }
        return;
    }
    for (place, weights) in weights.chunks_exact(width).take(rows).enumerate() {
        for (results, x) in results.chunks_mut(TOGETHER).zip(x.chunks(TOGETHER * width)) {
            if let [a, b] = results {
                [a[place], b[place]] = pair::<W, FUSED>(x.split_at(width), weights);
            } else {
                results[0][place] = lanes::<W, FUSED>(x, weights);
            }
        }
    }
}

/// [`lanes`] of two rows of x, which widens weights once.
#[inline(always)]
fn pair<W: Stored, const FUSED: bool>((a, b): (&[f32], &[f32]), weights: &[W]) -> [f32; TOGETHER] {
    let (mut a_sums, mut b_sums) = ([0.0_f32; LANES], [0.0_f32; LANES]);
    let ((a_all, a_rest), (b_all, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let (w_all, w_rest) = weights.as_chunks::<LANES>();
    let ((a_few, a_rest), (b_few, b_rest)) = (a_rest.as_chunks::<FEW>(), b_rest.as_chunks::<FEW>());
    let (w_few, w_rest) = w_rest.as_chunks::<FEW>();
    for ((a, b), weights) in a_few.iter().zip(b_few).zip(w_few) {
        for lane in 0..FEW {
            let weight = weights[lane].single();
            a_sums[lane] = fused::<FUSED>(a[lane], weight, a_sums[lane]);
            b_sums[lane] = fused::<FUSED>(b[lane], weight, b_sums[lane]);
        }
    }
    for ((a, b), weights) in a_all.iter().zip(b_all).zip(w_all) {
        ask_for(weights.as_ptr().wrapping_byte_add(AHEAD), size_of_val(weights));
        for lane in 0..LANES {
            let weight = weights[lane].single();
            a_sums[lane] = fused::<FUSED>(a[lane], weight, a_sums[lane]);
            b_sums[lane] = fused::<FUSED>(b[lane], weight, b_sums[lane]);
        }
    }
    let rest = |x: &[f32]| x.iter().zip(w_rest).map(|(x, weight)| x * weight.single()).sum::<f32>();
    [added_up(a_sums) + rest(a_rest), added_up(b_sums) + rest(b_rest)]
}

#[inline(always)]
fn lanes<W: Stored, const FUSED: bool>(x: &[f32], weights: &[W]) -> f32 {
    let mut sums = [0.0_f32; LANES];
    let ((xs, x_rest), (ws, w_rest)) = (x.as_chunks::<LANES>(), weights.as_chunks::<LANES>());
    // Widths are seldom multiples of all lanes where they are small.
    let ((x_few, x_rest), (w_few, w_rest)) = (x_rest.as_chunks::<FEW>(), w_rest.as_chunks::<FEW>());
    for (x, weights) in x_few.iter().zip(w_few) {
        for ((sum, x), weight) in sums.iter_mut().zip(x).zip(weights) {
            *sum = fused::<FUSED>(*x, weight.single(), *sum);
        }
    }
    let rest: f32 = x_rest.iter().zip(w_rest).map(|(x, weight)| x * weight.single()).sum();
    for (x, weights) in xs.iter().zip(ws) {
        ask_for(weights.as_ptr().wrapping_byte_add(AHEAD), size_of_val(weights));
        for ((sum, x), weight) in sums.iter_mut().zip(x).zip(weights) {
            *sum = fused::<FUSED>(*x, weight.single(), *sum);
        }
    }
    added_up(sums) + rest
}

/// Begins to read this much from here, which need not be memory at all, into the second cache: for what is on its way to the first one
/// a processor has few places. Of a Zen 4, products of 4 bits read 23 GB/s a thread by this, and 9 by the first cache.
#[inline(always)]
#[allow(unsafe_code)]
pub(super) fn ask_for<W>(start: *const W, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..bytes).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a hint to the processor, which no address makes fail; SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(start.wrapping_byte_add(line).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, bytes);
}

#[cfg(test)]
pub(super) mod testing {
    use super::Stored;

    /// Numbers without a pattern, between -1 and 1.
    pub(in super::super) fn numbers(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        std::iter::repeat_with(next).take(count).collect()
    }

    /// The product in double precision, row by row.
    pub(in super::super) fn wanted<W: Stored>(
        x: &[f32],
        weight: &[W],
        bias: Option<&[f32]>,
        width: usize,
    ) -> Vec<f64> {
        let mut all = vec![];
        for x in x.chunks(width) {
            for (column, weight) in weight.chunks(width).enumerate() {
                let products = x.iter().zip(weight).map(|(x, w)| f64::from(*x) * f64::from(w.single()));
                all.push(products.sum::<f64>() + bias.map_or(0.0, |bias| f64::from(bias[column])));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::testing::{numbers, wanted};
    use super::*;

    /// Compares with sums in double precision.
    fn check<W: Stored>(rows: usize, width: usize, x: &[f32], weight: &[W]) {
        let out = weight.len() / width;
        for bias in [None, Some(numbers(out, 3))] {
            let mut result = vec![f32::NAN; rows * out];
            let product = Product::new(x, weight, bias.as_deref(), width, result.as_mut_slice());
            (0..product.blocks()).rev().for_each(|block| product.compute(block));
            for (got, want) in result.iter().zip(wanted(x, weight, bias.as_deref(), width)) {
                let place = format!("{:?} {rows} {width} {out}", W::DTYPE);
                assert!((f64::from(*got) - want).abs() < 1e-4, "{place}: {got} for {want}");
            }
        }
    }

    #[test]
    fn every_block_and_row_is_the_sum_of_its_products() {
        // One block and many, widths that lanes divide and that they do not, one row and several.
        for (rows, width, out) in
            [(1, 64, 5), (3, 37, 70), (1, 2048, 200), (4, 5000, 61), (8, 70, 9), (2, 1, 3)]
        {
            let (x, weight) = (numbers(rows * width, 1), numbers(out * width, 2));
            check(rows, width, &x, &weight);
            check(rows, width, &x, &weight.iter().map(|w| bf16::from_f32(*w)).collect::<Vec<_>>());
            check(rows, width, &x, &weight.iter().map(|w| f16::from_f32(*w)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_row_beside_others_is_what_it_is_alone() {
        // So that a decoder chooses the same tokens however many are run together.
        for (width, out) in [(37, 70), (2048, 20)] {
            let (x, weight) = (numbers(7 * width, 1), numbers(out * width, 2));
            let weight: Vec<bf16> = weight.iter().map(|w| bf16::from_f32(*w)).collect();
            let product = |x: &[f32]| {
                let mut result = vec![f32::NAN; x.len() / width * out];
                let product = Product::new(x, &weight, None, width, result.as_mut_slice());
                (0..product.blocks()).for_each(|block| product.compute(block));
                drop(product);
                result
            };
            let alone: Vec<f32> = x.chunks(width).flat_map(product).collect();
            for rows in 2..=7 {
                assert_eq!(product(&x[..rows * width]), alone[..rows * out], "{rows} rows");
            }
        }
    }

    #[test]
    fn nothing_to_multiply_is_nothing_to_compute() {
        let mut result = [];
        assert_eq!(Product::<f32>::new(&[], &[], None, 0, result.as_mut_slice()).blocks(), 0);
        assert_eq!(Product::<f32>::new(&[1.0], &[], None, 1, result.as_mut_slice()).blocks(), 0);
    }
}
