//! Numbers in bfloat16, two in one of 32 bits, as products of pairs take them.

use std::ops::Range;

use super::super::matmul::narrow_pairs;
use super::super::stored::rounded;

/// Numbers of a row, rounded: pairs of neighbours, the last of an odd one out with 0.
pub(super) fn of_neighbours(row: &[f32], pairs: &mut [f32]) {
    if row.len() % 2 == 1 {
        pairs[row.len() / 2] = 0.0;
    }
    narrow_pairs(row, pairs);
}

/// Some columns of so many rows, which lie `stride` apart, as pairs of a row's number and the next one's: a panel
/// `[⌈rows / 2⌉, columns]`.
pub(super) fn of_rows(
    rows: &[f32],
    [stride, count]: [usize; 2],
    taken: Range<usize>,
    panel: &mut [f32],
    columns: usize,
) {
    #[cfg(target_arch = "x86_64")]
    if x86::is_there() {
        return x86::of_rows(rows, [stride, count], taken, panel, columns);
    }
    each_of_rows(rows, [stride, count], taken, panel, columns, |_, _, _| 0);
}

fn pair(low: f32, high: f32) -> f32 {
    let bits = |number: f32| u32::from(rounded(number).to_bits());
    f32::from_bits(bits(low) | bits(high) << 16)
}

/// With `first`, which does as many of two rows' first columns as it says.
#[inline(always)]
fn each_of_rows(
    rows: &[f32],
    [stride, count]: [usize; 2],
    taken: Range<usize>,
    panel: &mut [f32],
    columns: usize,
    first: impl Fn(&[f32], &[f32], &mut [f32]) -> usize,
) {
    for (place, panel) in panel.chunks_exact_mut(columns).enumerate().take(count.div_ceil(2)) {
        let row = |row: usize| &rows[row * stride..][taken.clone()];
        let low = row(2 * place);
        if 2 * place + 1 == count {
            panel.iter_mut().zip(low).for_each(|(panel, low)| *panel = pair(*low, 0.0));
            continue;
        }
        let high = row(2 * place + 1);
        let done = first(low, high, panel);
        let rest = low[done..].iter().zip(&high[done..]);
        panel[done..].iter_mut().zip(rest).for_each(|(panel, (low, high))| *panel = pair(*low, *high));
    }
}

/// By the processor's own instructions, which take numbers below the least normal one for 0, as products do.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod x86 {
    use std::arch::x86_64::{
        __m512i, _mm512_cvtne2ps_pbh, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_permutexvar_epi16,
        _mm512_storeu_si512,
    };

    use super::{Range, each_of_rows};

    /// Numbers of a register.
    const LANES: usize = 16;

    /// Numbers of a first and of a second register beside each other.
    const SIDE_BY_SIDE: [u16; 2 * LANES] = {
        let mut places = [0; 2 * LANES];
        let mut lane = 0;
        while lane < LANES {
            places[2 * lane] = lane as u16;
            places[2 * lane + 1] = (LANES + lane) as u16;
            lane += 1;
        }
        places
    };

    pub(super) fn is_there() -> bool {
        use std::arch::is_x86_feature_detected as has;
        has!("avx512f") && has!("avx512bw") && has!("avx512bf16")
    }

    pub(super) fn of_rows(
        rows: &[f32],
        [stride, count]: [usize; 2],
        taken: Range<usize>,
        panel: &mut [f32],
        columns: usize,
    ) {
        #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
        fn compiled(rows: &[f32], sizes: [usize; 2], taken: Range<usize>, panel: &mut [f32], columns: usize) {
            each_of_rows(rows, sizes, taken, panel, columns, |low, high, panel| {
                let (low, high) = (low.as_chunks::<LANES>().0, high.as_chunks::<LANES>().0);
                for ((low, high), panel) in low.iter().zip(high).zip(panel.as_chunks_mut::<LANES>().0) {
                    // SAFETY: the processor has the instructions, and all are so many numbers.
                    unsafe {
                        let places = _mm512_loadu_si512(SIDE_BY_SIDE.as_ptr().cast());
                        let both = _mm512_permutexvar_epi16(places, both(low.as_ptr(), high.as_ptr()));
                        _mm512_storeu_si512(panel.as_mut_ptr().cast(), both);
                    }
                }
                LANES * low.len()
            });
        }
        // SAFETY: only called where the processor has the instructions.
        unsafe { compiled(rows, [stride, count], taken, panel, columns) }
    }

    /// Two registers of numbers, rounded.
    #[inline(always)]
    unsafe fn both(first: *const f32, second: *const f32) -> __m512i {
        // SAFETY: the caller's; registers have the same bits, whatever they are numbers of.
        unsafe { std::mem::transmute(_mm512_cvtne2ps_pbh(_mm512_loadu_ps(second), _mm512_loadu_ps(first))) }
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::super::super::lanes::tests::drawn;
    use super::*;

    fn bits(pairs: &[f32]) -> Vec<[bf16; 2]> {
        let halves = |pair: &f32| [0, 16].map(|shift| bf16::from_bits((pair.to_bits() >> shift) as u16));
        pairs.iter().map(halves).collect()
    }

    #[test]
    fn neighbours_are_pairs() {
        for size in [1, 2, 31, 32, 64, 75] {
            let row = drawn(size, 1);
            let mut pairs = vec![f32::NAN; size.div_ceil(2) + 1];
            of_neighbours(&row, &mut pairs);
            let number = |at: usize| row.get(at).copied().unwrap_or(0.0);
            for (at, pair) in bits(&pairs).iter().enumerate().take(size.div_ceil(2)) {
                assert_eq!(*pair, [0, 1].map(|half| bf16::from_f32(number(2 * at + half))), "{size}");
            }
        }
    }

    #[test]
    fn columns_of_neighbouring_rows_are_pairs() {
        for (count, width) in [(1, 32), (2, 32), (7, 16), (8, 5), (9, 21)] {
            let (stride, columns, first) = (40, 32, 3);
            let rows = drawn(stride * count, 2);
            let mut panel = vec![0.0; count.div_ceil(2) * columns];
            of_rows(&rows, [stride, count], first..first + width, &mut panel, columns);
            for (place, pairs) in bits(&panel).chunks(columns).enumerate() {
                let number = |row: usize, column: usize| match row < count && column < width {
                    true => rows[row * stride + first + column],
                    false => 0.0,
                };
                for (column, pair) in pairs.iter().enumerate() {
                    let wanted = [0, 1].map(|half| bf16::from_f32(number(2 * place + half, column)));
                    assert_eq!(*pair, wanted, "{count} {width}");
                }
            }
        }
    }
}
