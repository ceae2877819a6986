//! Images whose squares of patches stand row after row in the text, with a learned newline behind each row and learned marks around
//! all of them, and positions by their columns, rows and images.
//!
//! Reference: `HunYuanVLVisionPatchMerger`, `get_rope_index` of `HunYuanVLModel`.

use ndarray::{Array1, Array3, Axis};

use super::grids::{Grid, grids, two_axes};
use crate::{Error, Result, Value, Values};

/// The token of images' features (`image_token_id`), the edge of the squares of patches that become one, and the axes that positions
/// have; the last three are columns, rows and images.
#[derive(Clone, Copy, Debug)]
pub struct NewlineRows {
    /// `image_token_id`.
    pub token: usize,
    /// `spatial_merge_size`.
    pub merge: usize,
    /// How many `mrope_section` says.
    pub axes: usize,
}

impl NewlineRows {
    /// For each token of each image its row among the squares of all images and, behind these, the newline, the beginning and the end:
    /// `[tokens]` i64, from `image_grid_thw` `[images, 3]`.
    ///
    /// # Errors
    /// When there are no grids, or their sides are no multiples of the squares.
    pub fn feature_rows(self, values: &Values) -> Result<Value> {
        let grids = self.grids(values)?;
        let all: i64 = grids.iter().map(|[rows, columns]| rows * columns).sum();
        let (mut found, mut first) = (vec![], 0);
        for [rows, columns] in grids {
            found.push(all + 1);
            for row in 0..rows {
                found.extend((0..columns).map(|column| first + row * columns + column));
                found.push(all);
            }
            found.push(all + 2);
            first += rows * columns;
        }
        Ok(Value::I64(Array1::from_vec(found).into_dyn()))
    }

    /// Positions along each axis: `[axes, batch, sequence]` i64, from `input_ids` and `attention_mask` `[batch, sequence]` and
    /// `image_grid_thw` `[images, 3]`. Tokens count on through images; between its marks, a square also has the number of its column,
    /// of its row and of the image among all.
    ///
    /// # Errors
    /// When one of them is missing, or there are other image tokens than the grids have.
    pub fn rope_index(self, values: &Values) -> Result<Value> {
        Ok(Value::I64(self.positions(values)?.0.into_dyn()))
    }

    /// What is added to the number of tokens before it for the position of the next token of each text: `[batch, 1]` i64.
    ///
    /// # Errors
    /// As [`NewlineRows::rope_index`].
    pub fn rope_deltas(self, values: &Values) -> Result<Value> {
        let deltas = Array1::from_vec(self.positions(values)?.1);
        Ok(Value::I64(deltas.insert_axis(Axis(1)).into_dyn()))
    }

    fn positions(self, values: &Values) -> Result<(Array3<i64>, Vec<i64>)> {
        let (ids, seen) = (two_axes(values, "input_ids")?, two_axes(values, "attention_mask")?);
        let mut images = (0_i64..).zip(self.grids(values)?);
        let (batch, sequence) = ids.dim();
        let mut all = Array3::zeros((self.axes, batch, sequence));
        let mut deltas = vec![];
        for (text, (ids, seen)) in ids.rows().into_iter().zip(seen.rows()).enumerate() {
            let places: Vec<usize> =
                (0..sequence).filter(|place| seen.get(*place).is_none_or(|seen| *seen != 0)).collect();
            let mut at = 0;
            while let Some(place) = places.get(at) {
                (0..self.axes).for_each(|axis| all[(axis, text, *place)] = at as i64);
                if ids[*place] != self.token as i64 {
                    at += 1;
                    continue;
                }
                let tokens =
                    places[at..].iter().take_while(|place| ids[**place] == self.token as i64).count();
                let (image, [rows, columns]) =
                    images.next().ok_or_else(|| mismatched("more images than grids"))?;
                let across = columns as usize + 1;
                let count = rows as usize * across;
                let before = match tokens.checked_sub(count) {
                    Some(0) => 0,
                    Some(2) => 1,
                    _ => return Err(mismatched("images of other lengths than their grids")),
                };
                for (within, place) in places[at..at + tokens].iter().enumerate() {
                    (0..self.axes).for_each(|axis| all[(axis, text, *place)] = (at + within) as i64);
                    let Some(square) = within.checked_sub(before).filter(|square| *square < count) else {
                        continue;
                    };
                    let own = [(square % across) as i64, (square / across) as i64, image];
                    for (axis, position) in (self.axes.saturating_sub(3)..self.axes).zip(own) {
                        all[(axis, text, *place)] = position;
                    }
                }
                at += tokens;
            }
            let positions =
                places.iter().flat_map(|place| (0..self.axes).map(|axis| all[(axis, text, *place)]));
            let most = positions.max().unwrap_or(-1);
            deltas.push(most + 1 - places.len() as i64);
        }
        match images.next() {
            Some(_) => Err(mismatched("fewer images than grids")),
            None => Ok((all, deltas)),
        }
    }

    /// Rows and columns of squares of each image.
    fn grids(self, values: &Values) -> Result<Vec<[i64; 2]>> {
        let side = |Grid { rows, columns, .. }: Grid| {
            [rows, columns].map(|length| (length / self.merge.max(1)) as i64)
        };
        Ok(grids(values, self.merge)?.into_iter().map(side).collect())
    }
}

fn mismatched(problem: &str) -> Error {
    Error::input(
        "input_ids",
        format!("has {problem}"),
        "make texts and images with the checkpoint's processor",
    )
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, array};

    use super::*;

    const ROWS: NewlineRows = NewlineRows { token: 9, merge: 2, axes: 4 };

    fn given(ids: Array2<i64>) -> Values {
        Values::from([
            ("attention_mask".to_owned(), Array2::<i64>::ones(ids.dim()).into_dyn().into()),
            ("input_ids".to_owned(), ids.into_dyn().into()),
            ("image_grid_thw".to_owned(), array![[1_i64, 4, 2], [1, 2, 4]].into_dyn().into()),
        ])
    }

    #[test]
    fn rows_end_with_newlines_between_marks() {
        let values = given(array![[7]]);
        let rows = ROWS.feature_rows(&values).unwrap();
        let rows: Vec<i64> = rows.i64("rows").unwrap().iter().copied().collect();
        assert_eq!(rows, [5, 0, 4, 1, 4, 6, 5, 2, 3, 4, 6]);
    }

    #[test]
    fn squares_have_columns_rows_and_images_as_positions() {
        let values = given(array![[7, 9, 9, 9, 9, 9, 9, 7], [9, 9, 9, 9, 9, 7, 7, 7]]);
        let found = ROWS.rope_index(&values).unwrap();
        let found = found.i64("positions").unwrap();
        let axis = |axis, text| {
            found.index_axis(Axis(0), axis).index_axis(Axis(0), text).iter().copied().collect::<Vec<_>>()
        };
        assert_eq!(axis(0, 0), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(axis(1, 0), [0, 1, 0, 1, 0, 1, 6, 7]);
        assert_eq!(axis(2, 0), [0, 1, 0, 0, 1, 1, 6, 7]);
        assert_eq!(axis(3, 0), [0, 1, 0, 0, 0, 0, 6, 7]);
        assert_eq!(axis(1, 1), [0, 0, 1, 2, 4, 5, 6, 7]);
        assert_eq!(axis(3, 1), [0, 1, 1, 1, 4, 5, 6, 7]);
        let deltas = ROWS.rope_deltas(&values).unwrap();
        assert_eq!(deltas.i64("deltas").unwrap().iter().copied().collect::<Vec<_>>(), [0, 0]);
    }

    #[test]
    fn other_numbers_of_tokens_than_the_grids_have_are_refused() {
        let problem = |ids| ROWS.rope_index(&given(ids)).unwrap_err().to_string();
        assert!(problem(array![[9, 9, 9, 7]]).contains("other lengths than their grids"));
        assert!(problem(array![[9, 9, 9, 9, 7]]).contains("fewer images than grids"));
    }
}
