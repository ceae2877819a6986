//! Blocks of numbers as codes and scales, round to nearest.

use crate::Dtype;

#[cfg(target_arch = "wasm32")]
pub(super) mod wasm;

/// A row of codes of `bits` in blocks, of which each has a scale.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounding {
    /// Levels that are used: 3 bits are stored in 4.
    pub bits: usize,
    /// Bits that a code takes.
    pub stored: usize,
    pub group: usize,
    pub symmetric: bool,
    /// Whether each block's scale is the best of several.
    pub search: bool,
    /// The type that scales are rounded to.
    pub scales: Dtype,
}

/// Adding this leaves a number's nearest integer in its low bits.
const MAGIC: f32 = 12_582_912.0;

/// The largest block.
pub(super) const MOST: usize = 256;

impl Rounding {
    /// Bytes of a block's codes.
    pub(super) fn code_bytes(&self) -> usize {
        self.group * self.stored / 8
    }

    /// Rounds a block, which may be shorter than the others at the end of a row: its codes, its scale and its zero point.
    pub(super) fn block(&self, values: &[f32], codes: &mut [u8]) -> (f32, u8) {
        let mut wide = [0_u8; MOST];
        let wide = &mut wide[..self.group];
        let (scale, zero) = self.unpacked(values, wide);
        pack(wide, self.stored, codes);
        (scale, zero)
    }

    /// As [`Rounding::block`], with a byte for each code.
    pub(super) fn unpacked(&self, values: &[f32], codes: &mut [u8]) -> (f32, u8) {
        let (scale, zero) = if self.symmetric { self.symmetric(values) } else { self.asymmetric(values) };
        self.round(values, scale, zero, codes);
        (scale, zero)
    }

    /// The nearest code to a number, and what it stands for.
    pub(super) fn nearest(&self, value: f32, scale: f32, zero: u8) -> (u8, f32) {
        let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
        let [least, most] = self.range(zero);
        let level = (value * inverse).clamp(least, most) + MAGIC - MAGIC;
        ((level + f32::from(zero)) as u8, level * scale)
    }

    /// The lowest and the highest code, counted from zero.
    fn range(&self, zero: u8) -> [f32; 2] {
        match self.symmetric {
            true => [-((1 << (self.bits - 1)) as f32), ((1 << (self.bits - 1)) - 1) as f32],
            false => [-f32::from(zero), ((1 << self.bits) - 1) as f32 - f32::from(zero)],
        }
    }

    /// The scale of which the number farthest from zero is the lowest code, as llama.cpp's Q4_0 and ONNX Runtime's quantizer.
    fn symmetric(&self, values: &[f32]) -> (f32, u8) {
        let farthest = farthest(values);
        let half = (1 << (self.bits - 1)) as f32;
        let scale = self.scale(farthest / -half);
        let zero = 1 << (self.stored - 1);
        if !self.search || scale == 0.0 {
            return (scale, zero);
        }
        let tried = (0..23).map(|step| self.scale(farthest / -half * (0.6 + 0.025 * step as f32)));
        let error = |scale: f32| self.error(values, scale, half);
        let best = tried.filter(|scale| *scale != 0.0).map(|scale| (error(scale), scale));
        let best = best.fold((error(scale), scale), |best, next| if next.0 < best.0 { next } else { best });
        (best.1, zero)
    }

    /// The scale and the zero point by which the lowest and the highest number are the first and the last code; zero is among
    /// the codes.
    fn asymmetric(&self, values: &[f32]) -> (f32, u8) {
        let least = values.iter().fold(0.0, |least: f32, x| least.min(*x));
        let most = values.iter().fold(0.0, |most: f32, x| most.max(*x));
        let last = ((1 << self.bits) - 1) as f32;
        let scale = self.scale((most - least) / last);
        let zero = if scale == 0.0 { 0.0 } else { (-least / scale).round().clamp(0.0, last) };
        (scale, zero as u8)
    }

    fn scale(&self, scale: f32) -> f32 {
        self.scales.nearest(scale)
    }

    /// The squared error of a scale.
    fn error(&self, values: &[f32], scale: f32, half: f32) -> f32 {
        let inverse = 1.0 / scale;
        let error = |x: &f32| {
            let code = (x * inverse).clamp(-half, half - 1.0) + MAGIC - MAGIC;
            let off = x - code * scale;
            off * off
        };
        values.iter().map(error).sum()
    }

    fn round(&self, values: &[f32], scale: f32, zero: u8, codes: &mut [u8]) {
        let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
        let [least, most] = self.range(zero);
        let bias = MAGIC + f32::from(zero);
        codes.fill(zero);
        #[cfg(target_arch = "wasm32")]
        let (values, codes) = {
            let (all, values) = values.as_chunks();
            wasm::round(all, inverse, [least, most], bias, codes.as_chunks_mut().0);
            (values, &mut codes[16 * all.len()..])
        };
        for (code, x) in codes.iter_mut().zip(values) {
            *code = ((x * inverse).clamp(least, most) + bias).to_bits() as u8;
        }
    }
}

/// The number farthest from zero, the first of them.
#[cfg(not(target_arch = "wasm32"))]
fn farthest(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |most: f32, x| if x.abs() > most.abs() { *x } else { most })
}

/// The number farthest from zero, the first of them.
#[cfg(target_arch = "wasm32")]
fn farthest(values: &[f32]) -> f32 {
    let (all, rest) = values.as_chunks();
    let largest = rest.iter().fold(wasm::largest(all), |most, x| most.max(x.abs()));
    values.iter().find(|x| x.abs() == largest).copied().unwrap_or_default()
}

/// Codes of a byte each as those of fewer bits, the first in the low bits.
fn pack(wide: &[u8], bits: usize, codes: &mut [u8]) {
    #[cfg(target_arch = "wasm32")]
    let (wide, codes) = if bits == 4 {
        let all = wide.as_chunks().0;
        wasm::pack(all, codes.as_chunks_mut().0);
        (&wide[32 * all.len()..], &mut codes[16 * all.len()..])
    } else {
        (wide, codes)
    };
    match bits {
        4 => {
            for (code, pair) in codes.iter_mut().zip(wide.as_chunks::<2>().0) {
                *code = pair[0] | pair[1] << 4;
            }
        }
        2 => {
            for (code, four) in codes.iter_mut().zip(wide.as_chunks::<4>().0) {
                *code = four[0] | four[1] << 2 | four[2] << 4 | four[3] << 6;
            }
        }
        _ => codes.copy_from_slice(wide),
    }
}
