//! Arithmetic on numbers side by side, which compilers bring into a processor's registers.
//!
//! `FUSED` says whether products and sums are rounded once, for processors that multiply and add at once.

/// Numbers that are computed side by side.
pub(super) const LANES: usize = 16;

/// Of a function of `FUSED`, the form that this processor is fastest with.
macro_rules! fastest {
    ($plain:ident: fn($($name:ident: $type:ty),*)) => {{
        #[cfg(target_arch = "x86_64")]
        mod compiled {
            use super::*;

            #[target_feature(enable = "avx512f")]
            pub(super) fn with_avx512($($name: $type),*) {
                $plain::<true>($($name),*);
            }

            #[target_feature(enable = "avx2,fma")]
            pub(super) fn with_fma($($name: $type),*) {
                $plain::<true>($($name),*);
            }
        }
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: only handed out where the processor has AVX-512.
            #[allow(unsafe_code)]
            return |$($name),*| unsafe { compiled::with_avx512($($name),*) };
        } else if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            // SAFETY: only handed out where the processor has AVX2 and FMA.
            #[allow(unsafe_code)]
            return |$($name),*| unsafe { compiled::with_fma($($name),*) };
        }
        if cfg!(target_feature = "fma") || cfg!(target_arch = "aarch64") { $plain::<true> } else { $plain::<false> }
    }};
}
pub(super) use fastest;

#[inline(always)]
pub(super) fn fused<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// The sum of all lanes, a power of two.
#[inline(always)]
pub(super) fn added_up<const COUNT: usize>(sums: [f32; COUNT]) -> f32 {
    by_halves(sums, |a, b| a + b)
}

/// One number of all lanes, a power of two, by halves: one after the other they would wait for each other.
#[inline(always)]
pub(super) fn by_halves<const COUNT: usize>(mut lanes: [f32; COUNT], of: impl Fn(f32, f32) -> f32) -> f32 {
    let mut half = COUNT / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = of(lanes[lane], lanes[lane + half]);
        }
        half /= 2;
    }
    lanes[0]
}

#[inline(always)]
pub(super) fn exps<const FUSED: bool>(x: &[f32], into: &mut [f32]) {
    let (chunks, rest) = x.as_chunks::<LANES>();
    let (into_chunks, into_rest) = into.as_chunks_mut::<LANES>();
    for (x, into) in chunks.iter().zip(into_chunks) {
        for lane in 0..LANES {
            into[lane] = exp::<FUSED>(x[lane]);
        }
    }
    for (x, into) in rest.iter().zip(into_rest) {
        *into = exp::<FUSED>(*x);
    }
}

/// The exponential of a number, within two units of the last place; 0 below the least normal number.
///
/// A power of two by its bits, times a polynomial of what is left (Cephes, `expf`).
#[inline(always)]
pub(super) fn exp<const FUSED: bool>(x: f32) -> f32 {
    const LEAST: f32 = -87.0;
    const MOST: f32 = 88.0;
    /// Added and taken off, it leaves a whole number.
    const WHOLE: f32 = 12_582_912.0;
    const TERMS: [f32; 6] =
        [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5.0e-1];
    let within = x.clamp(LEAST, MOST);
    let shifted = fused::<FUSED>(within, std::f32::consts::LOG2_E, WHOLE);
    let power = shifted - WHOLE;
    let left = fused::<FUSED>(power, -0.693_359_4, within);
    let left = fused::<FUSED>(power, 2.121_944_4e-4, left);
    let mut sum = TERMS[0];
    for term in &TERMS[1..] {
        sum = fused::<FUSED>(sum, left, *term);
    }
    let sum = fused::<FUSED>(sum, left * left, left + 1.0);
    // The whole number stands in the lowest bits.
    let scale = f32::from_bits((shifted.to_bits().wrapping_add(127)) << 23);
    if x < LEAST { 0.0 } else { sum * scale }
}

/// `x / (1 + e⁻ˣ)`.
#[inline(always)]
pub(super) fn silu<const FUSED: bool>(x: f32) -> f32 {
    x / (1.0 + exp::<FUSED>(-x))
}

/// GELU (Hendrycks and Gimpel, 2016, arXiv:1606.08415) by the error function: `½x · (1 + erf(x / √2))`, rounded as the reference rounds it.
#[inline(always)]
pub(super) fn gelu<const FUSED: bool>(x: f32) -> f32 {
    0.5 * x * (1.0 + erf::<FUSED>(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// The error function, within three units of the last place.
///
/// Up to 1 it is x times a polynomial of x², beyond that 1 less the exponential of one of x; both are least squares at Chebyshev's points
/// of [0, 1] and [1, 4], and at 4 it is 1 in single precision.
#[inline(always)]
pub(super) fn erf<const FUSED: bool>(x: f32) -> f32 {
    const SMALL: [f32; 7] = [
        7.882_497_4e-5,
        -8.018_855_3e-4,
        5.189_312e-3,
        -2.685_433e-2,
        1.128_359_7e-1,
        -3.761_262_7e-1,
        std::f32::consts::FRAC_2_SQRT_PI,
    ];
    const LARGE: [f32; 9] = [
        -1.614_061_7e-6,
        4.559_062_4e-5,
        -5.927_695e-4,
        4.740_222_4e-3,
        -2.636_471_8e-2,
        1.099_782_4e-1,
        6.319_371e-1,
        1.130_166_7,
        -3.032_13e-4,
    ];
    let size = x.abs();
    let square = x * x;
    let mut small = SMALL[0];
    for term in &SMALL[1..] {
        small = fused::<FUSED>(small, square, *term);
    }
    let within = if size > 4.0 { 4.0 } else { size };
    let mut large = LARGE[0];
    for term in &LARGE[1..] {
        large = fused::<FUSED>(large, within, *term);
    }
    if size < 1.0 { x * small } else { (1.0 - exp::<FUSED>(-large)).copysign(x) }
}

/// `ln(1 + eˣ)`.
#[inline(always)]
pub(super) fn softplus<const FUSED: bool>(x: &[f32], into: &mut [f32]) {
    let (chunks, rest) = x.as_chunks::<LANES>();
    let (into_chunks, into_rest) = into.as_chunks_mut::<LANES>();
    for (x, into) in chunks.iter().zip(into_chunks) {
        for lane in 0..LANES {
            into[lane] = x[lane].max(0.0) + log_plus_one::<FUSED>(exp::<FUSED>(-x[lane].abs()));
        }
    }
    for (x, into) in rest.iter().zip(into_rest) {
        *into = x.max(0.0) + log_plus_one::<FUSED>(exp::<FUSED>(-x.abs()));
    }
}

/// `ln(1 + x)` of a number between 0 and 1, within four units of the last place.
///
/// With s = x / (2 + x) it is 2·artanh(s), of which s is at most a third: a series of odd powers.
#[inline(always)]
pub(super) fn log_plus_one<const FUSED: bool>(x: f32) -> f32 {
    const TERMS: [f32; 7] = [2.0 / 13.0, 2.0 / 11.0, 2.0 / 9.0, 2.0 / 7.0, 2.0 / 5.0, 2.0 / 3.0, 2.0];
    let s = x / (2.0 + x);
    let square = s * s;
    let mut sum = 2.0 / 15.0;
    for term in TERMS {
        sum = fused::<FUSED>(sum, square, term);
    }
    s * sum
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Numbers of a rule, between -1 and 1.
    pub(in super::super) fn drawn(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed.wrapping_mul(2_654_435_761).max(1);
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as f32 / u32::MAX as f32 * 2.0 - 1.0
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn exponentials_are_exact_to_the_last_places() {
        let mut worst = 0.0_f64;
        for step in 0..=1_000_000 {
            let x = -87.0 + step as f32 * 1e-4;
            for found in [exp::<true>(x), exp::<false>(x)] {
                let wanted = f64::from(x).exp();
                worst = worst.max((f64::from(found) - wanted).abs() / wanted);
            }
        }
        assert!(worst < 2.5e-7, "{worst}");
        assert_eq!([exp::<true>(-1e4), exp::<true>(f32::NEG_INFINITY), exp::<true>(0.0)], [0.0, 0.0, 1.0]);
    }

    #[test]
    fn error_functions_are_exact_to_the_last_places() {
        // By a series, which needs no more terms up to 4.
        let series = |x: f64| {
            let terms = (0..120).scan(x, |term, n| {
                let this = *term / (2 * n + 1) as f64;
                *term *= -x * x / (n + 1) as f64;
                Some(this)
            });
            terms.sum::<f64>() * std::f64::consts::FRAC_2_SQRT_PI
        };
        for step in 0..=40_000 {
            let x = step as f32 * 1e-4;
            let wanted = series(f64::from(x));
            for found in [erf::<true>(x), erf::<false>(x), -erf::<true>(-x)] {
                let off = (f64::from(found) - wanted).abs();
                assert!(off <= 2.0e-7 * wanted, "{x}: {found} for {wanted}");
            }
        }
        assert_eq!([erf::<true>(9.0), erf::<true>(f32::NEG_INFINITY), erf::<true>(0.0)], [1.0, -1.0, 0.0]);
        assert!(erf::<true>(f32::NAN).is_nan());
        assert_eq!([gelu::<true>(-20.0), gelu::<true>(0.0), gelu::<true>(20.0)], [0.0, 0.0, 20.0]);
    }

    #[test]
    fn logarithms_are_exact_to_the_last_places() {
        let mut worst = 0.0_f64;
        for step in 1..=1_000_000 {
            let x = step as f32 * 1e-6;
            for found in [log_plus_one::<true>(x), log_plus_one::<false>(x)] {
                let wanted = f64::from(x).ln_1p();
                worst = worst.max((f64::from(found) - wanted).abs() / wanted);
            }
        }
        assert!(worst < 2.5e-7, "{worst}");
        assert_eq!([log_plus_one::<true>(0.0), log_plus_one::<true>(1e-30)], [0.0, 1e-30]);
    }
}
