//! RADIO over images of any size as one list of patches: tokens before those of each image, positions along the longer side, and
//! squares of patches that become one feature.
//!
//! Reference: `RadioModel._forward_packed`, `RadioPatchEmbeddings`; `pixel_shuffle` of `NemotronH_Omni_Reasoning_V3`.

use ndarray::{Array1, Array2, Axis};

use super::centred_positions::{Lines, ids, linear, weights};
use super::grids::two_axes;
use crate::{Error, Result, Value, Values};

const GRIDS: &str = "image_grid_hw";

/// What stands before the patches of an image, and what positions are interpolated from.
#[derive(Clone, Copy, Debug)]
pub struct RadioPatches {
    /// Class and register tokens of each image.
    pub tokens: usize,
    /// Position embeddings on a side.
    pub side: usize,
}

impl RadioPatches {
    /// Which of the tokens and the patches behind them stand in each place, `tokens` before the patches of each image:
    /// `[images · tokens + patches]` i64, from `image_grid_hw` `[images, 2]`, rows and columns of patches.
    ///
    /// # Errors
    /// When the grids are missing, or have no even numbers of rows and columns.
    pub fn rows(self, values: &Values) -> Result<Value> {
        let (mut rows, mut first) = (vec![], self.tokens);
        for [down, across] in grids(values)? {
            rows.extend((0..self.tokens).chain(first..first + down * across).map(|row| row as i64));
            first += down * across;
        }
        Ok(Value::I64(Array1::from_vec(rows).into_dyn()))
    }

    /// The image of each place: `[1, images · tokens + patches]` i64, from what [`RadioPatches::rows`] takes.
    ///
    /// # Errors
    /// As [`RadioPatches::rows`].
    pub fn images(self, values: &Values) -> Result<Value> {
        let grids = grids(values)?;
        let images = grids.iter().enumerate().flat_map(|(image, [down, across])| {
            std::iter::repeat_n(image as i64, self.tokens + down * across)
        });
        Ok(Value::I64(Array1::from_iter(images).insert_axis(Axis(0)).into_dyn()))
    }

    /// The places of the two by two patches that become one feature, row by row: `[features, 4]` i64, from what
    /// [`RadioPatches::rows`] takes.
    ///
    /// # Errors
    /// As [`RadioPatches::rows`].
    pub fn squares(self, values: &Values) -> Result<Value> {
        let (mut places, mut first) = (vec![], 0);
        for [down, across] in grids(values)? {
            first += self.tokens;
            for (row, column) in
                (0..down / 2).flat_map(|row| (0..across / 2).map(move |column| (row, column)))
            {
                let place = |row: usize, column: usize| (first + row * across + column) as i64;
                let (row, column) = (2 * row, 2 * column);
                places.extend([place(row, column), place(row, column + 1)]);
                places.extend([place(row + 1, column), place(row + 1, column + 1)]);
            }
            first += down * across;
        }
        let places = Array2::from_shape_vec((places.len() / 4, 4), places).unwrap_or_default();
        Ok(Value::I64(places.into_dyn()))
    }

    /// The position embeddings around each patch, as if its grid were a square of the longer side: `[patches, 4]` i64, from what
    /// [`RadioPatches::rows`] takes.
    ///
    /// # Errors
    /// As [`RadioPatches::rows`].
    pub fn position_ids(self, values: &Values) -> Result<Value> {
        ids(&self.taps(values)?, self.side)
    }

    /// How much each of those counts: `[patches, 4, 1]` f32.
    ///
    /// # Errors
    /// As [`RadioPatches::rows`].
    pub fn position_weights(self, values: &Values) -> Result<Value> {
        weights(&self.taps(values)?)
    }

    /// The lines down and across of each patch.
    fn taps(self, values: &Values) -> Result<Vec<[Lines<2>; 2]>> {
        let mut taps = vec![];
        for [down, across] in grids(values)? {
            let line = |index: usize| linear(index, down.max(across), self.side);
            taps.extend((0..down * across).map(|patch| [line(patch / across), line(patch % across)]));
        }
        Ok(taps)
    }
}

/// Rows and columns of patches of each image.
fn grids(values: &Values) -> Result<Vec<[usize; 2]>> {
    let help = "make text and images with the checkpoint's processor";
    let grids = two_axes(values, GRIDS)?;
    let even = |length: i64| usize::try_from(length).ok().filter(|length| *length > 0 && length % 2 == 0);
    let each = |grid: ndarray::ArrayView1<'_, i64>| match (grid.len(), grid.first(), grid.get(1)) {
        (2, Some(rows), Some(columns)) => Some([even(*rows)?, even(*columns)?]),
        _ => None,
    };
    let grids: Option<Vec<_>> = grids.rows().into_iter().map(each).collect();
    grids.ok_or_else(|| Error::input(GRIDS, "must have two even numbers above 0 for each image", help))
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    fn given(grids: Array2<i64>) -> Values {
        Values::from([(GRIDS.to_owned(), grids.into_dyn().into())])
    }

    const RADIO: RadioPatches = RadioPatches { tokens: 1, side: 2 };

    #[test]
    fn tokens_stand_before_the_patches_of_each_image() {
        let values = given(array![[2, 2], [2, 4]]);
        let rows = array![0_i64, 1, 2, 3, 4, 0, 5, 6, 7, 8, 9, 10, 11, 12].into_dyn();
        assert_eq!(RADIO.rows(&values).unwrap(), rows.into());
        let images = array![[0_i64, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1]].into_dyn();
        assert_eq!(RADIO.images(&values).unwrap(), images.into());
        let squares = array![[1_i64, 2, 3, 4], [6, 7, 10, 11], [8, 9, 12, 13]].into_dyn();
        assert_eq!(RADIO.squares(&values).unwrap(), squares.into());
    }

    #[test]
    fn positions_are_those_of_a_square_of_the_longer_side() {
        let values = given(array![[2, 4]]);
        let ids = RADIO.position_ids(&values).unwrap();
        let ids = ids.i64("ids").unwrap();
        // The second patch of the first row: between the columns, at the first row.
        assert_eq!(ids.shape(), [8, 4]);
        assert_eq!(ids.iter().skip(4).take(4).copied().collect::<Vec<_>>(), [0, 1, 2, 3]);
        let weights = RADIO.position_weights(&values).unwrap();
        let weights = weights.f32("weights").unwrap();
        assert_eq!(weights.iter().skip(4).take(4).copied().collect::<Vec<_>>(), [0.75, 0.25, 0.0, 0.0]);
        assert!(RADIO.rows(&given(array![[3, 2]])).unwrap_err().to_string().contains("two even numbers"));
    }
}
