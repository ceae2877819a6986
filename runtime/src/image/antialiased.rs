//! Numbers in another size, blurred before they become fewer.
//!
//! Reference: `skimage.transform.resize` with `anti_aliasing`, as `Owlv2ImageProcessor` has it: `scipy.ndimage.gaussian_filter`
//! and `zoom` of order 1, both with the mode `mirror`.

use ndarray::{Array3, Axis};

use super::Pixels;

/// `numbers` `[channels, height, width]` in another size.
pub(super) fn resize_antialiased(numbers: &Array3<f32>, (height, width): Pixels) -> Array3<f32> {
    along(&along(numbers, 1, height), 2, width)
}

/// Another length along one axis.
fn along(numbers: &Array3<f32>, axis: usize, length: usize) -> Array3<f32> {
    let axis = Axis(axis);
    let mut shape = numbers.raw_dim();
    let from = shape[axis.0];
    shape[axis.0] = length;
    let mut result = Array3::zeros(shape);
    let factor = from as f64 / length.max(1) as f64;
    let blur = gaussian(((factor - 1.0) / 2.0).max(0.0));
    for place in 0..length {
        let at = (place as f64 + 0.5) * factor - 0.5;
        let part = at - at.floor();
        for (step, share) in [(0, 1.0 - part), (1, part)] {
            for (offset, weight) in (-(blur.len() as i64 / 2)..).zip(&blur) {
                // A mirrored place is mirrored again where the line is shorter than the blur.
                let taken = mirrored(mirrored(at.floor() as i64 + step, from) as i64 + offset, from);
                let mut entry = result.index_axis_mut(axis, place);
                entry.scaled_add((share * weight) as f32, &numbers.index_axis(axis, taken));
            }
        }
    }
    result
}

/// The weights of a Gaussian filter, cut at four standard deviations.
fn gaussian(sigma: f64) -> Vec<f64> {
    let radius = (4.0 * sigma + 0.5) as i64;
    if radius == 0 {
        return vec![1.0];
    }
    let weights: Vec<f64> = (-radius..=radius).map(|x| (-0.5 * (x as f64 / sigma).powi(2)).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

/// A place beyond the ends of a line, mirrored at the middle of its first or last number.
fn mirrored(place: i64, length: usize) -> usize {
    let last = (length as i64 - 1).max(0);
    if last == 0 {
        return 0;
    }
    let place = place.rem_euclid(2 * last);
    (if place > last { 2 * last - place } else { place }) as usize
}

#[cfg(test)]
mod tests {
    use ndarray::Array3;

    use super::*;

    fn line(numbers: &[f32], to: usize) -> Vec<f32> {
        let line = Array3::from_shape_vec((1, 1, numbers.len()), numbers.to_vec()).unwrap();
        resize_antialiased(&line, (1, to)).into_raw_vec_and_offset().0
    }

    #[test]
    fn more_numbers_are_interpolated_and_mirrored_at_the_ends() {
        // At -0.25, 0.25, 0.75 and 1.25; the first and the last are mirrored at 0 and 1.
        assert_eq!(line(&[0.0, 4.0], 4), [1.0, 1.0, 3.0, 3.0]);
    }

    #[test]
    fn fewer_numbers_are_blurred() {
        // A standard deviation of 0.5 has a radius of 2: e^-2 and e^-8 beside 1, of 1.271342 in all; half of two places each.
        let found = line(&[0.0, 0.0, 0.0, 8.0], 2);
        let (one, two, sum) =
            ((-2.0f32).exp(), (-8.0f32).exp(), 1.0 + 2.0 * (-2.0f32).exp() + 2.0 * (-8.0f32).exp());
        // Blurred: 0, 8 e^-8, 8 e^-2, and 8 at the last place.
        assert!((found[0] - 4.0 * two / sum).abs() < 1e-6, "{found:?}");
        assert!((found[1] - 4.0 * (one + 1.0) / sum).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn places_are_mirrored_again_and_again() {
        assert_eq!((-3..6).map(|place| mirrored(place, 3)).collect::<Vec<_>>(), [1, 2, 1, 0, 1, 2, 1, 0, 1]);
        assert_eq!(mirrored(-4, 1), 0);
    }
}
