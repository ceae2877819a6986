//! Fourier features of the positions in a grid.
//!
//! Reference: `generate_fourier_features`, `build_linear_positions` of Perceiver.

use ndarray::Array2;

use crate::{Error, Result, Value, Values};

/// Fourier features of rows and columns (`PerceiverFourierPositionEncoding`): the position from -1 to 1, then sines and cosines of
/// as many frequencies as there are bands, up to the Nyquist frequency of a resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FourierFeatures {
    /// Frequencies of each axis.
    pub bands: usize,
    /// Rows and columns of the training.
    pub resolution: [usize; 2],
}

impl FourierFeatures {
    /// How many features a position has.
    pub fn width(&self) -> usize {
        2 + 4 * self.bands
    }

    /// The features of each place of a grid, row after row: `[rows · columns, width]` f32; `grid` says what the height or width of the
    /// images `name` `[…, height, width]` becomes.
    ///
    /// # Errors
    /// When there are no images.
    pub fn of(&self, values: &Values, name: &str, grid: impl Fn(usize) -> usize) -> Result<Value> {
        let missing = || Error::input(name, "is required and was not given", "give images");
        let shape = values.get(name).ok_or_else(missing)?.shape();
        let &[.., height, width] = shape else { return Err(missing()) };
        Ok(Value::F32(self.table([grid(height), grid(width)]).into_dyn()))
    }

    fn table(&self, [rows, columns]: [usize; 2]) -> Array2<f32> {
        let frequencies = self.resolution.map(|size| linspace(1.0, size as f32 / 2.0, self.bands));
        let [down, across] = [rows, columns].map(|size| linspace(-1.0, 1.0, size));
        let mut features = Vec::with_capacity(rows * columns * self.width());
        for row in &down {
            for column in &across {
                let place = [*row, *column];
                features.extend(place);
                let angles = place.iter().zip(&frequencies).flat_map(|(at, all)| {
                    all.iter().map(move |frequency| std::f32::consts::PI * (at * frequency))
                });
                let angles: Vec<f32> = angles.collect();
                features.extend(angles.iter().map(|angle| angle.sin()));
                features.extend(angles.iter().map(|angle| angle.cos()));
            }
        }
        Array2::from_shape_vec((rows * columns, self.width()), features).unwrap_or_default()
    }
}

/// Evenly spaced numbers, in single precision from both ends (`torch.linspace`).
fn linspace(start: f32, end: f32, count: usize) -> Vec<f32> {
    let step = if count > 1 { (end - start) / (count - 1) as f32 } else { 0.0 };
    let number = |index: usize| match index < count / 2 || count == 1 {
        true => start + step * index as f32,
        false => end - step * (count - 1 - index) as f32,
    };
    (0..count).map(number).collect()
}

#[cfg(test)]
mod tests {
    use ndarray::Array4;

    use super::*;

    #[test]
    fn positions_come_before_sines_and_cosines() {
        let features = FourierFeatures { bands: 2, resolution: [4, 6] };
        let table = features.table([3, 2]);
        assert_eq!(table.shape(), [6, 10]);
        // Row 1 of 3 is the middle, column 1 of 2 the end; frequencies are 1 and 2 down, 1 and 3 across.
        let place: Vec<f32> = table.row(3).to_vec();
        let want = [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, -1.0, -1.0];
        assert!(place.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-5), "{place:?}");
        assert_eq!(table.row(0).to_vec()[..2], [-1.0, -1.0]);
    }

    #[test]
    fn the_grid_is_of_the_images() {
        let features = FourierFeatures { bands: 1, resolution: [4, 4] };
        let pixels = Array4::<f32>::zeros((1, 3, 8, 4)).into_dyn();
        let values = Values::from([("pixel_values".to_owned(), pixels.into())]);
        let value = features.of(&values, "pixel_values", |size| size / 2).unwrap();
        assert_eq!(value.shape(), [8, 6]);
        let error = features.of(&Values::new(), "pixel_values", |size| size).unwrap_err();
        assert!(error.to_string().contains("is required and was not given"), "{error}");
    }
}
