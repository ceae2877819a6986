//! Keypoints in heatmaps, finer than their pixels.
//!
//! Reference: `get_keypoint_predictions` and `post_dark_unbiased_data_processing` of `VitPoseImageProcessor`: the Taylor expansion of
//! a smoothed heatmap's logarithm (DARK; Zhang et al., 2020, arXiv:1910.06278).

use ndarray::{ArrayView2, ArrayView4, Axis};

/// The standard deviation of the Gaussian that heatmaps are smoothed by.
const SIGMA: f64 = 0.8;

/// For each map, across and down in its pixels, where the keypoint is, and the largest value.
pub(super) fn keypoints(maps: &ArrayView4<'_, f32>, kernel_size: usize) -> Vec<Vec<([f32; 2], f32)>> {
    let (_, _, height, width) = maps.dim();
    // One list, as places beyond a map's edge are those of the map before it, or of the last one.
    let smoothed: Vec<f32> = maps
        .outer_iter()
        .flat_map(|body| body.outer_iter().map(|map| logarithms(&map, kernel_size)).collect::<Vec<_>>())
        .flatten()
        .collect();
    let mut start = 0;
    let mut body = |maps: ndarray::ArrayView3<'_, f32>| {
        let one = |map: ArrayView2<'_, f32>| {
            let (at, score) = largest(&map);
            let place = refined(&smoothed, start, (height, width), at);
            start += (height + 2) * (width + 2);
            (place, score)
        };
        maps.outer_iter().map(one).collect()
    };
    maps.axis_iter(Axis(0)).map(&mut body).collect()
}

/// Where a map is largest, or -1 and -1 where it is nowhere above 0, and its value there.
fn largest(map: &ArrayView2<'_, f32>) -> ([f32; 2], f32) {
    let mut best = ((0, 0), f32::NEG_INFINITY);
    for (at, value) in map.indexed_iter() {
        if *value > best.1 {
            best = (at, *value);
        }
    }
    let ((y, x), score) = best;
    (if score > 0.0 { [x as f32, y as f32] } else { [-1.0, -1.0] }, score)
}

/// The logarithms of a smoothed map, its edge repeated around it, row after row.
fn logarithms(map: &ArrayView2<'_, f32>, kernel_size: usize) -> Vec<f32> {
    let kernel = gaussian((kernel_size - 1) / 2);
    let (height, width) = map.dim();
    let down = blurred(&map.t(), &kernel).reversed_axes();
    let logs = blurred(&down.view(), &kernel).mapv_into(|value| value.clamp(0.001, 50.0).ln());
    let inner = |place: usize, length: usize| place.saturating_sub(1).min(length - 1);
    let places = (0..height + 2).flat_map(|y| (0..width + 2).map(move |x| (y, x)));
    places.map(|(y, x)| logs[(inner(y, height), inner(x, width))]).collect()
}

/// `scipy.ndimage.gaussian_filter1d`'s kernel.
fn gaussian(radius: usize) -> Vec<f64> {
    let weight = |place: usize| (-0.5 / (SIGMA * SIGMA) * (place as f64 - radius as f64).powi(2)).exp();
    let weights: Vec<f64> = (0..=2 * radius).map(weight).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// Rows of a map times a kernel, mirrored at their ends with the end itself repeated.
fn blurred(map: &ArrayView2<'_, f32>, kernel: &[f64]) -> ndarray::Array2<f32> {
    let (radius, length) = ((kernel.len() / 2) as i64, map.ncols() as i64);
    let mirrored = |place: i64| {
        let place = place.rem_euclid(2 * length);
        place.min(2 * length - 1 - place) as usize
    };
    ndarray::Array2::from_shape_fn(map.dim(), |(row, column)| {
        let taps = kernel.iter().enumerate();
        let value = |(tap, weight): (usize, &f64)| {
            weight * f64::from(map[(row, mirrored(column as i64 + tap as i64 - radius))])
        };
        taps.map(value).sum::<f64>() as f32
    })
}

/// A place moved to where the derivatives say that the maximum is.
fn refined(logs: &[f32], start: usize, (_, width): (usize, usize), [x, y]: [f32; 2]) -> [f32; 2] {
    let row = width as i64 + 2;
    let middle = start as i64 + x as i64 + 1 + (y as i64 + 1) * row;
    let at = |offset: i64| logs[(middle + offset).rem_euclid(logs.len() as i64) as usize];
    let (here, right, left, below, above) = (at(0), at(1), at(-1), at(row), at(-row));
    let (dx, dy) = (0.5 * (right - left), 0.5 * (below - above));
    let (dxx, dyy) = (right - 2.0 * here + left, below - 2.0 * here + above);
    let dxy = 0.5 * (at(row + 1) - right - below + here + here - left - above + at(-row - 1));
    let epsilon = f64::from(f32::EPSILON);
    let (a, b, d) = (f64::from(dxx) + epsilon, f64::from(dxy), f64::from(dyy) + epsilon);
    let determinant = a * d - b * b;
    if determinant == 0.0 {
        return [x, y];
    }
    let (dx, dy) = (f64::from(dx), f64::from(dy));
    let step = [(d * dx - b * dy) / determinant, (a * dy - b * dx) / determinant];
    [(f64::from(x) - step[0]) as f32, (f64::from(y) - step[1]) as f32]
}

#[cfg(test)]
mod tests {
    use ndarray::Array4;

    use super::*;

    #[test]
    fn a_maximum_between_pixels_is_found() {
        let peak = |x: f32, y: f32| (-((x - 4.3).powi(2) + (y - 3.6).powi(2)) / 3.0).exp();
        let maps = Array4::from_shape_fn((1, 1, 9, 10), |(_, _, y, x)| peak(x as f32, y as f32));
        let [x, y] = keypoints(&maps.view(), 3)[0][0].0;
        assert!((x - 4.3).abs() < 0.02 && (y - 3.6).abs() < 0.02, "{x} {y}");
        assert!((keypoints(&maps.view(), 3)[0][0].1 - peak(4.0, 4.0)).abs() < 1e-6);
    }

    #[test]
    fn a_map_that_is_nowhere_above_zero_has_no_keypoint() {
        let maps = Array4::from_elem((1, 2, 4, 4), -1.0);
        let found = keypoints(&maps.view(), 11);
        assert_eq!(found[0].len(), 2);
        assert!(found[0].iter().all(|([x, y], score)| *score == -1.0 && *x < 0.0 && *y < 0.0), "{found:?}");
    }

    #[test]
    fn kernels_are_mirrored_at_the_ends() {
        let map = ndarray::array![[1.0_f32, 0.0, 0.0]];
        // scipy.ndimage.gaussian_filter1d([1., 0., 0.], 0.8, radius=1)
        let got = blurred(&map.view(), &gaussian(1));
        let want = [0.761_006, 0.238_994, 0.0];
        assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-5), "{got}");
    }
}
