//! Blocks of each quantized type into codes, scales and minimums: `w = (code − 2^(bits − 1)) · scale`,
//! `w = code · scale + minimum`, or of types with a codebook `w = codebook[code] · scale`.
//!
//! Reference: `gguf-py`'s `quants.py` and ggml's `dequantize_row_*`, whose values these give bit for bit.

use half::f16;

use crate::small_floats::e8m0;

/// Reads one block: a code for each element, a scale for each group of them, and a minimum for each where the type has them.
pub type Unpack = fn(block: &[u8], codes: &mut [u8], scales: &mut [f32], minimums: &mut [f32]);

/// Brings the codes of one block into the order that kernels take, packed as they take them; the scale stands before them.
pub type Repack = fn(block: &[u8], codes: &mut [u8]);

fn half(bytes: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32()
}

/// 32 codes of 4 bits: the low nibbles are the first half, the high ones the second.
fn nibbles(bytes: &[u8], codes: &mut [u8]) {
    let (first, second) = codes.split_at_mut(bytes.len());
    for ((byte, low), high) in bytes.iter().zip(first).zip(second) {
        (*low, *high) = (byte & 15, byte >> 4);
    }
}

/// Adds the fifth bit of 32 codes, element e's at bit e.
fn fifth_bits(bits: &[u8], codes: &mut [u8], bias: u8) {
    for (element, code) in codes.iter_mut().enumerate() {
        *code += (bits[element / 8] >> (element % 8) & 1) * 16 + bias;
    }
}

pub fn q4_0(block: &[u8], codes: &mut [u8], scales: &mut [f32], _: &mut [f32]) {
    scales[0] = half(block, 0);
    nibbles(&block[2..18], codes);
}

/// Eight codes of 4 bits, a byte each, as four bytes.
pub fn neighbours(codes: u64) -> [u8; 4] {
    // Two and two in a byte, then side by side.
    let pairs = (codes | codes >> 4) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    ((fours | fours >> 16) as u32).to_le_bytes()
}

/// Nibbles of both halves become those of neighbours.
pub fn repack_q4_0(block: &[u8], codes: &mut [u8]) {
    repack_nibbles(&block[2..], codes);
}

fn repack_nibbles(nibbles: &[u8], codes: &mut [u8]) {
    let (first, second) = codes.split_at_mut(8);
    for (index, bytes) in nibbles.as_chunks::<8>().0.iter().enumerate() {
        let bytes = u64::from_le_bytes(*bytes);
        let [low, high] = [bytes, bytes >> 4].map(|nibbles| neighbours(nibbles & 0x0f0f_0f0f_0f0f_0f0f));
        first[index * 4..][..4].copy_from_slice(&low);
        second[index * 4..][..4].copy_from_slice(&high);
    }
}

/// Signed codes become those around 128.
pub fn repack_q8_0(block: &[u8], codes: &mut [u8]) {
    for (code, byte) in codes.iter_mut().zip(&block[2..]) {
        *code = byte ^ 128;
    }
}

pub fn q4_1(block: &[u8], codes: &mut [u8], scales: &mut [f32], minimums: &mut [f32]) {
    (scales[0], minimums[0]) = (half(block, 0), half(block, 2));
    nibbles(&block[4..20], codes);
}

pub fn q5_0(block: &[u8], codes: &mut [u8], scales: &mut [f32], _: &mut [f32]) {
    scales[0] = half(block, 0);
    nibbles(&block[6..22], codes);
    fifth_bits(&block[2..6], codes, 128 - 16);
}

/// What is added to codes of five bits in eight, so that they lie around 128, which kernels take for zero: what they round is
/// then no larger than the weights.
const CENTRE: u8 = 112;

pub fn q5_1(block: &[u8], codes: &mut [u8], scales: &mut [f32], minimums: &mut [f32]) {
    let d = half(block, 0);
    (scales[0], minimums[0]) = (d, half(block, 2) - f32::from(CENTRE) * d);
    nibbles(&block[8..24], codes);
    fifth_bits(&block[4..8], codes, CENTRE);
}

pub fn q8_0(block: &[u8], codes: &mut [u8], scales: &mut [f32], _: &mut [f32]) {
    scales[0] = half(block, 0);
    repack_q8_0(block, codes);
}

/// 2 bits of each of 256 codes: 32 bytes hold 128 of them, in rounds of 32 by shifts of 0, 2, 4 and 6.
fn pairs(bytes: &[u8], codes: &mut [u8]) {
    for (bytes, codes) in bytes.chunks_exact(32).zip(codes.chunks_exact_mut(128)) {
        for (round, codes) in codes.chunks_exact_mut(32).enumerate() {
            for (code, byte) in codes.iter_mut().zip(bytes) {
                *code = byte >> (2 * round) & 3;
            }
        }
    }
}

pub fn q2_k(block: &[u8], codes: &mut [u8], scales: &mut [f32], minimums: &mut [f32]) {
    // Around 8, as kernels take codes of four bits.
    const CENTRE: u8 = 6;
    let (d, dmin) = (half(block, 80), half(block, 82));
    for (group, byte) in block[..16].iter().enumerate() {
        scales[group] = d * f32::from(byte & 15);
        minimums[group] = -(dmin * f32::from(byte >> 4)) - f32::from(CENTRE) * scales[group];
    }
    pairs(&block[16..80], codes);
    for code in codes {
        *code += CENTRE;
    }
}

pub fn q3_k(block: &[u8], codes: &mut [u8], scales: &mut [f32], _: &mut [f32]) {
    let (mask, packed, d) = (&block[..32], &block[96..108], half(block, 108));
    pairs(&block[32..96], codes);
    for (element, code) in codes.iter_mut().enumerate() {
        // A clear bit takes 4 off: q − 4 is code 4 + q of those whose zero is 8.
        *code += 4 + (mask[element % 32] >> (element / 32) & 1) * 4;
    }
    for (group, scale) in scales.iter_mut().enumerate() {
        let low = if group < 8 { packed[group] & 15 } else { packed[group - 8] >> 4 };
        let high = packed[8 + group % 4] >> (2 * (group / 4)) & 3;
        *scale = d * (f32::from(low | high << 4) - 32.0);
    }
}

/// The 6-bit scales and minimums of eight groups in twelve bytes.
fn six_bits(packed: &[u8], group: usize) -> (f32, f32) {
    let (scale, minimum) = if group < 4 {
        (packed[group] & 63, packed[group + 4] & 63)
    } else {
        let both = packed[group + 4];
        (both & 15 | packed[group - 4] >> 6 << 4, both >> 4 | packed[group] >> 6 << 4)
    };
    (f32::from(scale), f32::from(minimum))
}

/// `d`, `dmin` and the scales and minimums of a block of Q4_K or Q5_K.
fn scales_and_minimums(block: &[u8], scales: &mut [f32], minimums: &mut [f32]) {
    let (d, dmin) = (half(block, 0), half(block, 2));
    for group in 0..8 {
        let (scale, minimum) = six_bits(&block[4..16], group);
        (scales[group], minimums[group]) = (d * scale, -(dmin * minimum));
    }
}

pub fn q4_k(block: &[u8], codes: &mut [u8], scales: &mut [f32], minimums: &mut [f32]) {
    scales_and_minimums(block, scales, minimums);
    for (bytes, codes) in block[16..144].chunks_exact(32).zip(codes.chunks_exact_mut(64)) {
        nibbles(bytes, codes);
    }
}

pub fn q5_k(block: &[u8], codes: &mut [u8], scales: &mut [f32], minimums: &mut [f32]) {
    scales_and_minimums(block, scales, minimums);
    for (bytes, codes) in block[48..176].chunks_exact(32).zip(codes.chunks_exact_mut(64)) {
        nibbles(bytes, codes);
    }
    for (group, codes) in codes.chunks_exact_mut(32).enumerate() {
        for (code, high) in codes.iter_mut().zip(&block[16..48]) {
            *code = (*code | (high >> group & 1) << 4) + CENTRE;
        }
    }
    for (minimum, scale) in minimums.iter_mut().zip(scales) {
        *minimum -= f32::from(CENTRE) * *scale;
    }
}

pub fn q6_k(block: &[u8], codes: &mut [u8], scales: &mut [f32], _: &mut [f32]) {
    let (low, high, d) = (&block[..128], &block[128..192], half(block, 208));
    for (part, codes) in codes.chunks_exact_mut(128).enumerate() {
        nibbles(&low[64 * part..64 * (part + 1)], codes);
        for (round, codes) in codes.chunks_exact_mut(32).enumerate() {
            for (code, byte) in codes.iter_mut().zip(&high[32 * part..]) {
                *code = (*code | (byte >> (2 * round) & 3) << 4) + 128 - 32;
            }
        }
    }
    for (scale, byte) in scales.iter_mut().zip(&block[192..208]) {
        *scale = d * f32::from(byte.cast_signed());
    }
}

/// Its scales are whole numbers; what they are multiplied with stands first.
pub fn iq4_xs(block: &[u8], codes: &mut [u8], scales: &mut [f32], _: &mut [f32]) {
    let high = u16::from_le_bytes([block[2], block[3]]);
    for (group, scale) in scales.iter_mut().enumerate() {
        let low = block[4 + group / 2] >> (4 * (group % 2)) & 15;
        let high = (high >> (2 * group) & 3) as u8;
        *scale = f32::from(low | high << 4) - 32.0;
    }
    for (bytes, codes) in block[8..136].chunks_exact(16).zip(codes.chunks_exact_mut(32)) {
        nibbles(bytes, codes);
    }
}

pub fn mxfp4(block: &[u8], codes: &mut [u8], scales: &mut [f32], _: &mut [f32]) {
    scales[0] = e8m0(block[0]);
    nibbles(&block[1..17], codes);
}

pub fn repack_mxfp4(block: &[u8], codes: &mut [u8]) {
    repack_nibbles(&block[1..], codes);
}

/// Ternary codes of five to a byte, as a fraction of 256 in base 3: element k of a byte is its k-th digit.
fn digits(bytes: &[u8], count: usize, codes: &mut [u8]) {
    let mut power = 1_u8;
    for codes in codes.chunks_exact_mut(bytes.len()).take(count) {
        for (code, byte) in codes.iter_mut().zip(bytes) {
            *code = ((u16::from(byte.wrapping_mul(power)) * 3) >> 8) as u8 + 1;
        }
        power = power.wrapping_mul(3);
    }
}

pub fn tq1_0(block: &[u8], codes: &mut [u8], scales: &mut [f32], _: &mut [f32]) {
    scales.fill(half(block, 52));
    digits(&block[..32], 5, &mut codes[..160]);
    digits(&block[32..48], 5, &mut codes[160..240]);
    digits(&block[48..52], 4, &mut codes[240..]);
}

pub fn tq2_0(block: &[u8], codes: &mut [u8], scales: &mut [f32], minimums: &mut [f32]) {
    let d = half(block, 64);
    scales.fill(d);
    minimums.fill(-d);
    pairs(&block[..64], codes);
}

pub fn q2_0(block: &[u8], codes: &mut [u8], scales: &mut [f32], minimums: &mut [f32]) {
    let d = half(block, 0);
    (scales[0], minimums[0]) = (d, -d);
    for (element, code) in codes.iter_mut().enumerate() {
        *code = block[2 + element / 4] >> (2 * (element % 4)) & 3;
    }
}
