//! Keypoints among the scores of an image's pixels: as many as there are, which no graph can say before it runs.
//!
//! Reference: `SuperPointInterestPointDecoder._extract_keypoints`.

use ndarray::{ArrayD, ArrayView2, Axis, Ix2, IxDyn};

use crate::{Error, Result, Value, Values};

/// Which pixels are keypoints.
#[derive(Clone, Copy, Debug)]
pub struct KeypointSelection {
    /// Keypoints have a larger score.
    pub threshold: f32,
    /// How many rows above and columns on the left have none.
    pub border: usize,
    /// The most of an image, those with the largest scores, in their order; all, row after row, where there is no such bound or
    /// they are no more.
    pub most: Option<usize>,
}

impl KeypointSelection {
    /// Of each map of `pixel_scores` `[…, rows, columns]` f32 the keypoints, `[…, keypoints]` i64: the place of each pixel, row
    /// after row, and -1 behind those of an image that has fewer than another one. One place at least, which is -1 where no image
    /// has any.
    ///
    /// # Errors
    /// When there are no such scores.
    pub fn places(&self, values: &Values) -> Result<Value> {
        let scores = values.get("pixel_scores").map(|scores| scores.f32("pixel_scores")).transpose()?;
        let Some(scores) = scores.filter(|scores| scores.ndim() > 2) else {
            let help = "give what the graph before gives";
            return Err(Error::input("pixel_scores", "is no map of scores for each image", help));
        };
        let mut shape = scores.shape().to_vec();
        let (lead, size) = shape.split_at(shape.len() - 2);
        let (lead, size) = (lead.to_vec(), [size[0], size[1]]);
        let images = lead.iter().product::<usize>();
        let maps = scores.view().into_shape_with_order(IxDyn(&[images, size[0], size[1]]));
        let Ok(maps) = maps else {
            return Err(Error::input("pixel_scores", "does not lie in one piece", "copy it"));
        };
        let found: Vec<Vec<i64>> = maps
            .axis_iter(Axis(0))
            .filter_map(|map| Some(self.of(&map.into_dimensionality::<Ix2>().ok()?)))
            .collect();
        let most = found.iter().map(Vec::len).max().unwrap_or_default().max(1);
        shape = lead;
        shape.push(most);
        let padded = |places: Vec<i64>| places.into_iter().chain(std::iter::repeat(-1)).take(most);
        let all: Vec<i64> = found.into_iter().flat_map(padded).collect();
        let all = ArrayD::from_shape_vec(IxDyn(&shape), all);
        all.map(Value::I64)
            .map_err(|e| Error::input("pixel_scores", e.to_string(), "give a map for each image"))
    }

    /// The keypoints of an image.
    fn of(&self, scores: &ArrayView2<'_, f32>) -> Vec<i64> {
        let (rows, columns) = scores.dim();
        // As the reference has it, the other edges are eight times as far away as they are.
        let inside = |at: usize, length: usize| at >= self.border && at + self.border < 8 * length;
        let mut found: Vec<(i64, f32)> = scores
            .indexed_iter()
            .filter(|((row, column), score)| {
                **score > self.threshold && inside(*row, rows) && inside(*column, columns)
            })
            .map(|((row, column), score)| ((row * columns + column) as i64, *score))
            .collect();
        if let Some(most) = self.most.filter(|most| *most < found.len()) {
            found.sort_by(|(_, a), (_, b)| b.total_cmp(a));
            found.truncate(most);
        }
        found.into_iter().map(|(place, _)| place).collect()
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    fn places(selection: KeypointSelection, scores: ArrayD<f32>) -> ArrayD<i64> {
        let values = Values::from([("pixel_scores".to_owned(), Value::F32(scores))]);
        let Value::I64(places) = selection.places(&values).unwrap() else { unreachable!() };
        places
    }

    const ALL: KeypointSelection = KeypointSelection { threshold: 0.5, border: 0, most: None };

    #[test]
    fn images_with_fewer_keypoints_are_padded() {
        let scores = array![[[0.6, 0.5], [0.1, 0.9]], [[0.0, 0.7], [0.2, 0.3]]].into_dyn();
        assert_eq!(places(ALL, scores), array![[0, 3], [1, -1]].into_dyn());
        assert_eq!(places(ALL, array![[[0.1, 0.2]]].into_dyn()), array![[-1]].into_dyn());
    }

    #[test]
    fn the_strongest_come_first_where_not_all_are_kept() {
        let scores = array![[[[0.6, 0.8, 0.7]]]].into_dyn();
        let some = |most: usize| KeypointSelection { most: Some(most), ..ALL };
        assert_eq!(places(some(2), scores.clone()), array![[[1, 2]]].into_dyn());
        assert_eq!(places(some(3), scores.clone()), array![[[0, 1, 2]]].into_dyn());
        assert_eq!(places(some(0), scores), array![[[-1]]].into_dyn());
    }

    #[test]
    fn borders_above_and_on_the_left_have_none() {
        let scores = array![[[0.9, 0.9], [0.9, 0.9]]].into_dyn();
        assert_eq!(places(KeypointSelection { border: 1, ..ALL }, scores), array![[3]].into_dyn());
    }

    #[test]
    fn scores_of_no_map_are_refused() {
        let error = ALL.places(&Values::new()).unwrap_err().to_string();
        assert!(error.contains("pixel_scores"), "{error}");
    }
}
