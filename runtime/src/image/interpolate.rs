//! Maps of numbers in other sizes, as PyTorch interpolates them: masks, depth, scores of classes.
//!
//! Reference: `torch.nn.functional.interpolate` without antialiasing.

use ndarray::{Array1, Array2, Array3, ArrayView3, Axis};

use super::Pixels;

/// How a map is interpolated (`mode` and `align_corners` of `interpolate`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpolation {
    /// `bilinear`.
    Bilinear,
    /// `bilinear` with `align_corners`.
    BilinearCorners,
    /// `bicubic`.
    Bicubic,
    /// `bicubic` with `align_corners`.
    BicubicCorners,
}

/// The coefficient of the cubic curves.
const CUBIC: f32 = -0.75;

/// What one place takes of others: their indices and weights.
type Taps = Vec<(usize, f32)>;

/// Maps `[channels, height, width]` in another size, computed row by row.
#[derive(Debug)]
pub struct Interpolated<'a> {
    maps: ArrayView3<'a, f32>,
    down: Vec<Taps>,
    across: Vec<Taps>,
}

impl<'a> Interpolated<'a> {
    /// `maps` in the size `height` and `width`.
    pub fn new(maps: &ArrayView3<'a, f32>, (height, width): Pixels, by: Interpolation) -> Self {
        let (_, rows, columns) = maps.dim();
        Self { maps: *maps, down: taps(rows, height, by), across: taps(columns, width, by) }
    }

    /// The row `y` of all channels: `[width, channels]`.
    pub fn row(&self, y: usize) -> Array2<f32> {
        let (channels, _, columns) = self.maps.dim();
        let lines = self.down[y].iter().map(|(row, weight)| (self.maps.index_axis(Axis(1), *row), *weight));
        let mut line = Array2::<f32>::zeros((columns, channels));
        for (source, weight) in lines {
            line.scaled_add(weight, &source.t());
        }
        let mut result = Array2::zeros((self.across.len(), channels));
        for (taps, mut pixel) in self.across.iter().zip(result.rows_mut()) {
            for (column, weight) in taps {
                pixel.scaled_add(*weight, &line.row(*column));
            }
        }
        result
    }

    /// All rows: `[channels, height, width]`.
    pub fn maps(&self) -> Array3<f32> {
        let mut maps = Array3::zeros((self.maps.dim().0, self.down.len(), self.across.len()));
        for y in 0..self.down.len() {
            maps.index_axis_mut(Axis(1), y).assign(&self.row(y).t());
        }
        maps
    }

    /// The index of the largest channel at each pixel: `[height, width]`.
    pub fn argmax(&self) -> Array2<usize> {
        let mut found = Array2::zeros((self.down.len(), self.across.len()));
        for (y, mut row) in found.rows_mut().into_iter().enumerate() {
            let best = self.row(y);
            row.assign(&Array1::from_iter(best.rows().into_iter().map(|pixel| largest(pixel.iter()))));
        }
        found
    }
}

/// The index of the first of the largest numbers.
fn largest<'a>(numbers: impl Iterator<Item = &'a f32>) -> usize {
    let better = |best: (usize, f32), (index, &number): (usize, &f32)| match number > best.1 {
        true => (index, number),
        false => best,
    };
    numbers.enumerate().fold((0, f32::NEG_INFINITY), better).0
}

/// What each of `to` places takes of `from`.
fn taps(from: usize, to: usize, by: Interpolation) -> Vec<Taps> {
    let corners = matches!(by, Interpolation::BilinearCorners | Interpolation::BicubicCorners);
    let scale = match corners {
        true if to > 1 => from.saturating_sub(1) as f32 / (to - 1) as f32,
        true => 0.0,
        false => from as f32 / to as f32,
    };
    let last = from.saturating_sub(1);
    let place = |index: usize| match corners {
        true => index as f32 * scale,
        false => (index as f32 + 0.5) * scale - 0.5,
    };
    let linear = |index: usize| {
        let at = place(index).max(0.0);
        let first = (at as usize).min(last);
        let part = at - first as f32;
        vec![(first, 1.0 - part), ((first + 1).min(last), part)]
    };
    let cubic = |index: usize| {
        let at = place(index);
        let part = at - at.floor();
        let weights = [near(part, 1.0), near(part, 0.0), near(1.0 - part, 0.0), near(1.0 - part, 1.0)];
        let taken = (-1..=2).map(|step| (at.floor() as i64 + step).clamp(0, last as i64) as usize);
        taken.zip(weights).collect()
    };
    match by {
        Interpolation::Bilinear | Interpolation::BilinearCorners => (0..to).map(linear).collect(),
        Interpolation::Bicubic | Interpolation::BicubicCorners => (0..to).map(cubic).collect(),
    }
}

/// The cubic curve's weight of a neighbour: the near one, or with `beyond` the one behind it.
fn near(part: f32, beyond: f32) -> f32 {
    let x = part + beyond;
    match beyond > 0.0 {
        true => ((CUBIC * x - 5.0 * CUBIC) * x + 8.0 * CUBIC) * x - 4.0 * CUBIC,
        false => ((CUBIC + 2.0) * x - (CUBIC + 3.0)) * x * x + 1.0,
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    fn check(by: Interpolation, size: Pixels, expected: &Array2<f32>) {
        let maps = array![[[0.0, 1.0, 4.0], [2.0, 8.0, -1.0]]];
        let found = Interpolated::new(&maps.view(), size, by).maps().index_axis_move(Axis(0), 0);
        assert!((&found - expected).iter().all(|off| off.abs() < 1e-5), "{by:?}: {found}");
    }

    #[test]
    fn maps_are_interpolated_as_torch_does() {
        // torch.nn.functional.interpolate(torch.tensor([[[[0., 1, 4], [2, 8, -1]]]]), size, mode=…, align_corners=…)
        check(
            Interpolation::Bilinear,
            (3, 5),
            &array![[0.0, 0.4, 1.0, 2.8, 4.0], [1.0, 2.4, 4.5, 2.7, 1.5], [2.0, 4.4, 8.0, 2.6, -1.0]],
        );
        check(Interpolation::BilinearCorners, (3, 2), &array![[0.0, 4.0], [1.0, 1.5], [2.0, -1.0]]);
        check(
            Interpolation::Bicubic,
            (3, 4),
            &array![
                [-0.214235, -0.255619, 1.91096, 4.72413],
                [0.748779, 3.56836, 3.80347, 1.28467],
                [1.71179, 7.39234, 5.69597, -2.15479]
            ],
        );
        check(Interpolation::BicubicCorners, (1, 5), &array![[0.0, 0.21875, 1.0, 2.59375, 4.0]]);
    }

    #[test]
    fn the_best_channel_is_found_at_each_pixel() {
        let maps = array![[[1.0, 0.0]], [[0.0, 1.0]], [[0.0, 1.0]]];
        let best = Interpolated::new(&maps.view(), (2, 4), Interpolation::Bilinear).argmax();
        assert_eq!(best, array![[0, 0, 1, 1], [0, 0, 1, 1]]);
    }
}
