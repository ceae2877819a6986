//! Rows of numbers as codes in groups, round to nearest.

use half::{bf16, f16};

use super::Recipe;
use crate::Dtype;

/// The codes of some rows, a byte each, with the scales and zero points of their groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rounded {
    pub codes: Vec<u8>,
    pub scales: Vec<f32>,
    pub zeros: Vec<u8>,
}

/// Rounds the groups of some rows; scales are numbers of this dtype. None where one is not finite.
pub(super) fn rounded(values: &[f32], recipe: Recipe, dtype: Dtype) -> Option<Rounded> {
    let mut made = Rounded::default();
    made.codes.reserve(values.len());
    for group in values.chunks(recipe.group) {
        let (scale, zero) =
            if recipe.symmetric { symmetric(group, recipe) } else { asymmetric(group, recipe) };
        let scale = nearest(scale, dtype);
        if !scale.is_finite() || group.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let (inverse, last) = (if scale == 0.0 { 0.0 } else { 1.0 / scale }, (1 << recipe.bits) as f32 - 1.0);
        let code =
            |value: &f32| ((value * inverse).round_ties_even() + f32::from(zero)).clamp(0.0, last) as u8;
        made.codes.extend(group.iter().map(code));
        made.scales.push(scale);
        made.zeros.push(zero);
    }
    Some(made)
}

/// The scale of which the number farthest from zero is the lowest code.
fn symmetric(group: &[f32], recipe: Recipe) -> (f32, u8) {
    let farthest = group.iter().fold(0.0, |most: f32, x| if x.abs() > most.abs() { *x } else { most });
    let half = 1_u8 << (recipe.bits - 1);
    (farthest / -f32::from(half), half)
}

/// The scale and the zero point by which the lowest and the highest number are the first and the last code.
fn asymmetric(group: &[f32], recipe: Recipe) -> (f32, u8) {
    let least = group.iter().fold(0.0, |least: f32, x| least.min(*x));
    let most = group.iter().fold(0.0, |most: f32, x| most.max(*x));
    let last = (1 << recipe.bits) as f32 - 1.0;
    let scale = (most - least) / last;
    let zero = if scale == 0.0 { 0.0 } else { (-least / scale).round().clamp(0.0, last) };
    (scale, zero as u8)
}

fn nearest(value: f32, dtype: Dtype) -> f32 {
    match dtype {
        Dtype::F16 => f16::from_f32(value).to_f32(),
        Dtype::Bf16 => bf16::from_f32(value).to_f32(),
        _ => value,
    }
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
