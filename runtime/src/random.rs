//! The numbers that PyTorch's generator gives on the CPU, bit for bit: the same seed is the same noise.
//!
//! Source: `aten/src/ATen/core/MT19937RNGEngine.h`, `DistributionsHelper.h` and `native/cpu/DistributionTemplates.h`. 16 normal
//! numbers and more are drawn eight pairs at a time by the AVX2 path, with Cephes' `logf`, `sinf` and `cosf`, whose products and
//! sums are fused.

/// Words of the Mersenne Twister's state.
const WORDS: usize = 624;
/// How far ahead the twist reads.
const MIDDLE: usize = 397;

/// PyTorch's generator on the CPU (`torch.Generator().manual_seed(seed)`): MT19937.
#[derive(Clone)]
pub struct Generator {
    words: [u32; WORDS],
    next: usize,
    /// The second of a pair of normal numbers, which is given first the next time fewer than 16 are drawn.
    spare: Option<f64>,
}

impl std::fmt::Debug for Generator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Generator").finish_non_exhaustive()
    }
}

impl Generator {
    /// A generator with this seed, of which 32 bits count.
    pub fn new(seed: u64) -> Self {
        let mut words = [0; WORDS];
        words[0] = seed as u32;
        for index in 1..WORDS {
            let before = words[index - 1];
            words[index] = 1_812_433_253_u32.wrapping_mul(before ^ (before >> 30)).wrapping_add(index as u32);
        }
        Self { words, next: WORDS, spare: None }
    }

    /// `count` independent standard normal numbers (`torch.randn`), f32.
    pub fn randn(&mut self, count: usize) -> Vec<f32> {
        if count < LANES {
            return (0..count).map(|_| self.normal() as f32).collect();
        }
        let mut values: Vec<f32> = (0..count).map(|_| self.uniform()).collect();
        for sixteen in values.chunks_exact_mut(LANES) {
            box_muller(sixteen);
        }
        if !count.is_multiple_of(LANES) {
            let last = &mut values[count - LANES..];
            last.iter_mut().for_each(|value| *value = self.uniform());
            box_muller(last);
        }
        values
    }

    /// `count` independent standard normal numbers drawn one by one, as `torch.randn_like` draws those of a tensor whose axes
    /// were exchanged, f32.
    pub fn normals(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.normal() as f32).collect()
    }

    /// Passes over so many numbers of 53 bits.
    pub(crate) fn skip_doubles(&mut self, count: usize) {
        for _ in 0..2 * count {
            self.word();
        }
    }

    /// A number of 24 bits in `0.0..1.0`.
    fn uniform(&mut self) -> f32 {
        (self.word() & ((1 << 24) - 1)) as f32 / (1_u32 << 24) as f32
    }

    /// A number of 53 bits in `0.0..1.0`, of two words, the high one first.
    pub(crate) fn uniform_double(&mut self) -> f64 {
        let (high, low) = (u64::from(self.word()), u64::from(self.word()));
        (((high << 32) | low) & ((1 << 53) - 1)) as f64 / (1_u64 << 53) as f64
    }

    /// A standard normal number in double precision; every second one was computed with the one before.
    fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let (first, second) = (self.uniform_double(), self.uniform_double());
        let radius = (-2.0 * (-second).ln_1p()).sqrt();
        let angle = 2.0 * std::f64::consts::PI * first;
        self.spare = Some(radius * angle.sin());
        radius * angle.cos()
    }

    /// The next word of MT19937.
    fn word(&mut self) -> u32 {
        if self.next == WORDS {
            self.twist();
            self.next = 0;
        }
        let mut y = self.words[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    fn twist(&mut self) {
        for index in 0..WORDS {
            let y = (self.words[index] & 0x8000_0000) | (self.words[(index + 1) % WORDS] & 0x7fff_ffff);
            let odd = if y & 1 == 1 { 0x9908_b0df } else { 0 };
            self.words[index] = self.words[(index + MIDDLE) % WORDS] ^ (y >> 1) ^ odd;
        }
    }
}

/// How many numbers are made at once.
const LANES: usize = 16;

/// 16 uniform numbers as 16 normal ones (`normal_fill_16_AVX2`): of the first eight radii, of the others angles.
fn box_muller(values: &mut [f32]) {
    for lane in 0..LANES / 2 {
        let radius = (-2.0 * log(1.0 - values[lane])).sqrt();
        let (sin, cos) = sin_cos(std::f32::consts::TAU * values[lane + LANES / 2]);
        values[lane] = radius * cos;
        values[lane + LANES / 2] = radius * sin;
    }
}

/// Cephes' `logf` as `log256_ps` has it, for numbers above 0.
#[allow(clippy::excessive_precision, clippy::unreadable_literal, reason = "the digits of the source")]
fn log(x: f32) -> f32 {
    const POLYNOMIAL: [f32; 9] = [
        7.0376836292e-2,
        -1.1514610310e-1,
        1.1676998740e-1,
        -1.2420140846e-1,
        1.4249322787e-1,
        -1.6668057665e-1,
        2.0000714765e-1,
        -2.4999993993e-1,
        3.3333331174e-1,
    ];
    let bits = x.max(f32::MIN_POSITIVE).to_bits();
    let mut exponent = ((bits >> 23) as i32 - 0x7f) as f32 + 1.0;
    let mantissa = f32::from_bits((bits & !0x7f80_0000) | 0.5_f32.to_bits());
    let mut x = mantissa - 1.0;
    if mantissa < std::f32::consts::FRAC_1_SQRT_2 {
        exponent -= 1.0;
        x += mantissa;
    }
    let z = x * x;
    let y = POLYNOMIAL[1..].iter().fold(POLYNOMIAL[0], |y, &next| y.mul_add(x, next));
    let y = (y * x).mul_add(z, exponent * -2.12194440e-4);
    let y = y - 0.5 * z;
    exponent.mul_add(0.693359375, x + y)
}

/// Cephes' `sinf` and `cosf` as `sincos256_ps` has them, for numbers from 0 on.
#[allow(clippy::excessive_precision, clippy::unreadable_literal, reason = "the digits of the source")]
fn sin_cos(x: f32) -> (f32, f32) {
    let octant = ((x * 1.27323954473516) as i32 + 1) & !1;
    let y = octant as f32;
    let x = y.mul_add(-0.78515625, x);
    let x = y.mul_add(-2.4187564849853515625e-4, x);
    let x = y.mul_add(-3.77489497744594108e-8, x);
    let z = x * x;
    let cos = 2.443315711809948e-5_f32.mul_add(z, -1.388731625493765e-3).mul_add(z, 4.166664568298827e-2);
    let cos = (cos * z).mul_add(z, -0.5 * z) + 1.0;
    let sin = (-1.9515295891e-4_f32).mul_add(z, 8.3321608736e-3).mul_add(z, -1.6666654611e-1);
    let sin = (sin * z).mul_add(x, x);
    let (sin, cos) = if octant & 2 == 0 { (sin, cos) } else { (cos, sin) };
    let signed = |value: f32, negative: bool| if negative { -value } else { value };
    (signed(sin, octant & 4 != 0), signed(cos, (octant - 2) & 4 == 0))
}

#[cfg(test)]
mod tests;
