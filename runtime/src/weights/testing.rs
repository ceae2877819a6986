//! Block-quantized weights of any form, for tests.

use half::f16;

use super::{BlockQuantized, Codebook, Zeros};
use crate::Dtype;
use crate::weights::Bytes;

/// The forms that [`sample`] makes, beside those of codebooks by their names.
pub(crate) const KINDS: [&str; 4] = ["middle", "codes", "minimums", "order"];

/// A weight with codes, scales and zeros that differ from block to block.
pub(crate) fn sample(shape: [usize; 2], bits: usize, group: usize, kind: &str) -> BlockQuantized {
    let blocks = shape[1].div_ceil(group);
    let count = shape[0] * blocks;
    let mut state = 12_345_u32 + bits as u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let codes: Vec<u8> = (0..count * group * bits / 8).map(|_| next()).collect();
    let scale = |_| f16::from_f32((f32::from(next()) - 100.0) / (1_u32 << (bits + 6)) as f32).to_le_bytes();
    let scales: Vec<u8> = (0..count).flat_map(scale).collect();
    let zeros = match kind {
        "codes" => Zeros::Codes((0..count).map(|i| (i * 7 % (1 << bits)) as u8).collect()),
        "minimums" => Zeros::Minimums((0..count).map(|i| (i * 5 % 11) as f32 / 8.0 - 0.6).collect()),
        name => Codebook::named(name).map_or(Zeros::Middle, Zeros::Codebook),
    };
    let (scale_dtype, scales) = match zeros {
        // Powers of two around one.
        Zeros::Codebook(Codebook::E2m1) => {
            (Dtype::U8, (0..count).map(|block| (block * 5 % 7 + 124) as u8).collect())
        }
        _ => (Dtype::F16, scales),
    };
    let order = (kind == "order").then(|| (0..shape[1] as u32).rev().collect());
    BlockQuantized {
        shape,
        batch: None,
        bits,
        group,
        codes: Bytes::memory(codes),
        scale_dtype,
        scales: Bytes::memory(scales),
        outer: None,
        zeros,
        order,
    }
}
