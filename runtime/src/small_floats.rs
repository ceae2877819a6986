//! Floating-point numbers of 8 bits (OCP FP8 and microscaling formats): E4M3 and E8M0. Those of 4 bits are a codebook.

/// FP8 E4M3 without infinities (`float8_e4m3fn`).
pub(crate) fn e4m3(code: u8) -> f32 {
    let (exponent, mantissa) = (i32::from(code >> 3 & 15), f32::from(code & 7));
    let magnitude = match (exponent, code & 7) {
        (15, 7) => f32::NAN,
        (0, _) => mantissa / 512.0,
        _ => (8.0 + mantissa) * 2_f32.powi(exponent - 10),
    };
    if code & 0x80 == 0 { magnitude } else { -magnitude }
}

/// The largest E8M0 code by which all values of E2M1 are finite in single precision: 6 · 2^125.
pub(crate) const E8M0_MOST: u8 = 252;

/// The power of two that an E8M0 code stands for; 255 is no number.
pub(crate) fn e8m0(code: u8) -> f32 {
    match code {
        255 => f32::NAN,
        0 => f32::from_bits(0x0040_0000),
        code => f32::from_bits(u32::from(code) << 23),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_standards() {
        assert_eq!(
            [0x38, 0xc0, 0x30, 0x7e, 0x01, 0x08].map(e4m3),
            [1.0, -2.0, 0.5, 448.0, 0.001_953_125, 0.015_625]
        );
        assert!(e4m3(0x7f).is_nan() && e4m3(0xff).is_nan());
        assert_eq!([127, 128, 126, 0, 254].map(e8m0), [1.0, 2.0, 0.5, 2_f32.powi(-127), 2_f32.powi(127)]);
        assert!(e8m0(255).is_nan());
    }
}
