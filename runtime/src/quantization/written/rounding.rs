//! Rows of numbers as codes in groups, round to nearest.

use super::Recipe;
use crate::Dtype;
use crate::quantization::gptq::Codes;
use crate::quantization::rounding::Rounding;

/// Rounds the groups of some rows; scales are numbers of this dtype. None where one is not finite.
pub(super) fn rounded(values: &[f32], recipe: Recipe, dtype: Dtype) -> Option<Codes> {
    let Recipe { bits, group, symmetric } = recipe;
    let rounding = Rounding { bits, stored: bits, group, symmetric, search: false, scales: dtype };
    let mut made = Codes { codes: vec![0; values.len()], ..Codes::default() };
    for (values, codes) in values.chunks(group).zip(made.codes.chunks_mut(group)) {
        let (scale, zero) = rounding.unpacked(values, codes);
        if !scale.is_finite() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        made.scales.push(scale);
        made.zeros.push(zero);
    }
    Some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_farthest_number_is_the_lowest_code() {
        let recipe = Recipe { bits: 4, group: 16, symmetric: true };
        let mut values = [0.0; 32];
        (values[0], values[1], values[2], values[16]) = (-4.0, 3.5, 0.6, 8.0);
        let made = rounded(&values, recipe, Dtype::F32).unwrap();
        assert_eq!((&made.scales[..], &made.zeros[..]), (&[0.5, -1.0][..], &[8, 8][..]));
        assert_eq!((made.codes[..4].to_vec(), made.codes[16]), (vec![0, 15, 9, 8], 0));
    }

    #[test]
    fn zero_points_let_codes_reach_both_ends() {
        let recipe = Recipe { bits: 8, group: 16, symmetric: false };
        let mut values = [0.0; 16];
        (values[0], values[1]) = (-0.5, 2.05);
        let made = rounded(&values, recipe, Dtype::F32).unwrap();
        assert_eq!((made.zeros[0], made.codes[..3].to_vec()), (50, vec![0, 255, 50]));
        assert!((made.scales[0] - 0.01).abs() < 1e-6);
        assert_eq!(rounded(&[0.0; 16], recipe, Dtype::F32).unwrap().scales, [0.0]);
        values[3] = f32::NAN;
        assert_eq!(rounded(&values, recipe, Dtype::F32), None);
        values[3] = 1e30;
        assert_eq!(rounded(&values, recipe, Dtype::F16), None);
    }
}
