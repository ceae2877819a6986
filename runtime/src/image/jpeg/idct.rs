//! The inverse cosine transform, by the method of Loeffler, Ligtenberg and Moschytz in 13-bit fixed point.
//!
//! libjpeg calls it `islow`. Sixteen-bit numbers saturate and wrap where they do in libjpeg-turbo's vector code, which
//! only shows in blocks that no encoder makes.

/// Fractional bits of the constants.
const CONST_BITS: u32 = 13;
/// Fractional bits that rows keep between both passes.
const PASS1_BITS: u32 = 2;

const F_0_298: i32 = 2446;
const F_0_390: i32 = 3196;
const F_0_541: i32 = 4433;
const F_0_765: i32 = 6270;
const F_0_899: i32 = 7373;
const F_1_175: i32 = 9633;
const F_1_501: i32 = 12299;
const F_1_847: i32 = 15137;
const F_1_961: i32 = 16069;
const F_2_053: i32 = 16819;
const F_2_562: i32 = 20995;
const F_3_072: i32 = 25172;

/// Writes a block's levels into a plane whose rows are `stride` apart.
pub(super) fn inverse(coefficients: &[i16], steps: &[u16; 64], plane: &mut [u8], stride: usize) {
    let mut block = [0_i16; 64];
    for (value, (coefficient, step)) in block.iter_mut().zip(coefficients.iter().zip(steps)) {
        *value = coefficient.wrapping_mul(*step as i16);
    }
    for x in 0..8 {
        let column = std::array::from_fn(|y| block[8 * y + x]);
        for (y, value) in eight(column, CONST_BITS - PASS1_BITS).into_iter().enumerate() {
            block[8 * y + x] = value;
        }
    }
    for (row, out) in block.as_chunks::<8>().0.iter().zip(plane.chunks_mut(stride)) {
        for (value, level) in eight(*row, CONST_BITS + PASS1_BITS + 3).into_iter().zip(out) {
            *level = (value.clamp(-128, 127) + 128) as u8;
        }
    }
}

/// Eight values to eight, rounded by `shift` bits.
fn eight(s: [i16; 8], shift: u32) -> [i16; 8] {
    let [_, s1, s2, s3, _, s5, s6, s7] = s.map(i32::from);
    let even = i32::from(s[0].wrapping_add(s[4])) << CONST_BITS;
    let odd = i32::from(s[0].wrapping_sub(s[4])) << CONST_BITS;
    let low = s2 * F_0_541 + s6 * (F_0_541 - F_1_847);
    let high = s2 * (F_0_541 + F_0_765) + s6 * F_0_541;
    let (a0, a3, a1, a2) = (even + high, even - high, odd + low, odd - low);

    let (z3, z4) = (i32::from(s[7].wrapping_add(s[3])), i32::from(s[5].wrapping_add(s[1])));
    let (z3, z4) = (z3 * (F_1_175 - F_1_961) + z4 * F_1_175, z3 * F_1_175 + z4 * (F_1_175 - F_0_390));
    let b0 = s7 * (F_0_298 - F_0_899) - s1 * F_0_899 + z3;
    let b1 = s5 * (F_2_053 - F_2_562) - s3 * F_2_562 + z4;
    let b2 = s3 * (F_3_072 - F_2_562) - s5 * F_2_562 + z3;
    let b3 = s1 * (F_1_501 - F_0_899) - s7 * F_0_899 + z4;

    [a0 + b3, a1 + b2, a2 + b1, a3 + b0, a3 - b0, a2 - b1, a1 - b2, a0 - b3].map(|value| {
        let rounded = (value + (1 << (shift - 1))) >> shift;
        rounded.clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16
    })
}
