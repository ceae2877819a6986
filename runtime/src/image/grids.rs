//! Patches of images of any size in one sequence: their rows and columns, the image and the window that each is of.
//!
//! Reference: `get_vision_position_ids`, `get_vision_cu_seqlens`, `get_vision_window_index`.

use ndarray::{Array1, Array2, Array3};

use crate::{Error, Result, Value, Values};

pub(super) const GRIDS: &str = "image_grid_thw";

/// More patches than these no images have: what an input says is counted before anything is made of it.
pub(super) const MOST: usize = 1 << 24;

/// The grid of an image or a video: frames, rows and columns of patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    pub(super) frames: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Grid {
    /// How many patches it has.
    pub(super) fn count(self) -> Option<usize> {
        self.frames.checked_mul(self.rows)?.checked_mul(self.columns)
    }

    /// Row and column of each patch of a frame, square after square of `merge` by `merge` patches.
    pub(super) fn patches(self, merge: usize) -> impl Iterator<Item = (usize, usize)> {
        let squares =
            (0..self.rows / merge).flat_map(move |row| (0..self.columns / merge).map(move |c| (row, c)));
        squares.flat_map(move |(row, column)| {
            (0..merge * merge).map(move |at| (row * merge + at / merge, column * merge + at % merge))
        })
    }
}

/// Row and column of each patch: `[2, 1, patches]` i64, from `image_grid_thw` `[images, 3]` (`get_vision_position_ids`). Patches
/// stand square after square of `merge` by `merge`.
///
/// # Errors
/// When there are no grids, or their sides are no multiples of `merge`.
pub fn patch_position_ids(values: &Values, merge: usize) -> Result<Value> {
    let mut all = [vec![], vec![]];
    for grid in grids(values, merge)? {
        for (row, column) in (0..grid.frames).flat_map(|_| grid.patches(merge)) {
            all[0].push(row as i64);
            all[1].push(column as i64);
        }
    }
    let count = all[0].len();
    let ids = Array3::from_shape_vec((2, 1, count), all.concat()).unwrap_or_default();
    Ok(Value::I64(ids.into_dyn()))
}

/// Indices of the patches of each square of `merge` by `merge` among those of all images, which stand row after row: `[patches]` i64,
/// from `image_grid_thw` `[images, 3]`.
///
/// # Errors
/// As [`patch_position_ids`].
pub fn patch_rows(values: &Values, merge: usize) -> Result<Value> {
    let (mut all, mut first) = (vec![], 0);
    for grid in grids(values, merge)? {
        for _ in 0..grid.frames {
            all.extend(grid.patches(merge).map(|(row, column)| (first + row * grid.columns + column) as i64));
            first += grid.rows * grid.columns;
        }
    }
    Ok(Value::I64(Array1::from_vec(all).into_dyn()))
}

/// The patches around each patch of its frame, row after row of a `kernel` by `kernel` square whose centre it is: `[patches, kernel²]`
/// i64, from `image_grid_thw` `[images, 3]`; what lies outside of the frame is `patches`, one behind the last.
///
/// # Errors
/// As [`patch_position_ids`].
pub fn patch_neighbours(values: &Values, merge: usize, kernel: usize) -> Result<Value> {
    let all = grids(values, merge)?;
    let count: usize = all.iter().filter_map(|grid| grid.count()).sum();
    let (mut neighbours, mut first) = (vec![], 0);
    for grid in all {
        let mut places = vec![0; grid.rows * grid.columns];
        for (index, (row, column)) in grid.patches(merge).enumerate() {
            places[row * grid.columns + column] = index;
        }
        for _ in 0..grid.frames {
            for (row, column) in grid.patches(merge) {
                for at in 0..kernel * kernel {
                    // Half a kernel is taken away behind the sum: nothing is below 0.
                    let (down, across) = (row + at / kernel, column + at % kernel);
                    let inside = |place: usize, length: usize| {
                        place.checked_sub(kernel / 2).filter(|place| *place < length)
                    };
                    let place = inside(down, grid.rows).zip(inside(across, grid.columns));
                    let place =
                        place.map_or(count, |(row, column)| first + places[row * grid.columns + column]);
                    neighbours.push(place as i64);
                }
            }
            first += grid.rows * grid.columns;
        }
    }
    let neighbours = Array2::from_shape_vec((count, kernel * kernel), neighbours).unwrap_or_default();
    Ok(Value::I64(neighbours.into_dyn()))
}

/// The frame of an image that each square of `merge` by `merge` patches is of, which attends to itself alone: `[features]` i64,
/// from `image_grid_thw` `[images, 3]` (`get_vision_cu_seqlens`).
///
/// # Errors
/// As [`patch_position_ids`].
pub fn patch_frames(values: &Values, merge: usize) -> Result<Value> {
    let mut frames = vec![];
    let mut frame = 0;
    for grid in grids(values, merge)? {
        for _ in 0..grid.frames {
            frames.extend(std::iter::repeat_n(frame, (grid.rows / merge) * (grid.columns / merge)));
            frame += 1;
        }
    }
    Ok(Value::I64(Array1::from_vec(frames).into_dyn()))
}

/// The image that each square of `merge` by `merge` patches is of: `[features]` i64, from `image_grid_thw` `[images, 3]`.
///
/// # Errors
/// As [`patch_position_ids`]; and when an image has several frames, as videos have.
pub fn patch_images(values: &Values, merge: usize) -> Result<Value> {
    let frames = grids(values, merge)?.into_iter().map(|grid| grid.frames).max().unwrap_or(1);
    if frames > 1 {
        let problem = format!("has an image of {frames} frames");
        return Err(Error::input(GRIDS, problem, "give single images: videos are not among the inputs"));
    }
    patch_frames(values, merge)
}

/// The window of a frame that each square of `merge` by `merge` patches is of: `[features]` i64, from `image_grid_thw`
/// `[images, 3]`; windows are `side` by `side` squares, smaller at the lower and right borders (`get_vision_window_index`).
///
/// # Errors
/// As [`patch_position_ids`].
pub fn patch_windows(values: &Values, merge: usize, side: usize) -> Result<Value> {
    let side = side.max(1);
    let (mut windows, mut first) = (vec![], 0);
    for grid in grids(values, merge)? {
        let (rows, columns) = (grid.rows / merge, grid.columns / merge);
        let (down, across) = (rows.div_ceil(side), columns.div_ceil(side));
        for _ in 0..grid.frames {
            windows.extend(
                (0..rows * columns).map(|square| {
                    (first + square / columns / side * across + square % columns / side) as i64
                }),
            );
            first += down * across;
        }
    }
    Ok(Value::I64(Array1::from_vec(windows).into_dyn()))
}

/// The learned positions around each patch's own in a square grid of `side` by `side`: `[patches, 4]` i64, from `image_grid_thw`
/// `[images, 3]` (`get_vision_interpolation_indices_and_weights`). Corners of an image stand on corners of the square.
///
/// # Errors
/// As [`patch_position_ids`].
pub fn bilinear_ids(values: &Values, merge: usize, side: usize) -> Result<Value> {
    let taps = taps(values, merge, side)?;
    let ids: Vec<i64> = taps.iter().flatten().map(|(position, _)| *position as i64).collect();
    let ids = Array2::from_shape_vec((taps.len(), 4), ids).unwrap_or_default();
    Ok(Value::I64(ids.into_dyn()))
}

/// How much each of those counts: `[patches, 4, 1]` f32.
///
/// # Errors
/// As [`patch_position_ids`].
pub fn bilinear_weights(values: &Values, merge: usize, side: usize) -> Result<Value> {
    let taps = taps(values, merge, side)?;
    let weights: Vec<f32> = taps.iter().flatten().map(|(_, weight)| *weight).collect();
    let weights = Array3::from_shape_vec((taps.len(), 4, 1), weights).unwrap_or_default();
    Ok(Value::F32(weights.into_dyn()))
}

/// Of each patch the four positions around it in a square grid, and their weights.
fn taps(values: &Values, merge: usize, side: usize) -> Result<Vec<[(usize, f32); 4]>> {
    let last = side.saturating_sub(1);
    let axis = |index: usize, length: usize| {
        let place = index as f32 * last as f32 / length.saturating_sub(1).max(1) as f32;
        let (first, part) = (place.floor(), place - place.floor());
        [((first as usize).min(last), 1.0 - part), ((first as usize + 1).min(last), part)]
    };
    let mut all = vec![];
    for grid in grids(values, merge)? {
        for (row, column) in (0..grid.frames).flat_map(|_| grid.patches(merge)) {
            let (down, across) = (axis(row, grid.rows), axis(column, grid.columns));
            all.push(
                [(0, 0), (0, 1), (1, 0), (1, 1)]
                    .map(|(y, x): (usize, usize)| (down[y].0 * side + across[x].0, down[y].1 * across[x].1)),
            );
        }
    }
    Ok(all)
}

pub(super) fn two_axes(values: &Values, name: &str) -> Result<Array2<i64>> {
    let value = values.get(name).ok_or_else(|| missing(name))?.i64(name)?;
    value.clone().into_dimensionality().map_err(|_| {
        let problem = format!("has shape {:?}", value.shape());
        Error::input(name, problem, "give it with two axes")
    })
}

pub(super) fn grids(values: &Values, merge: usize) -> Result<Vec<Grid>> {
    let grids = two_axes(values, GRIDS)?;
    let merge = merge.max(1);
    let grid = |row: ndarray::ArrayView1<'_, i64>| {
        let sides: Vec<usize> = row.iter().filter_map(|n| usize::try_from(*n).ok()).collect();
        match sides.as_slice() {
            &[frames, rows, columns]
                if rows.is_multiple_of(merge) && columns.is_multiple_of(merge) && rows.min(columns) > 0 =>
            {
                Ok(Grid { frames, rows, columns })
            }
            _ => {
                let problem = format!("holds {row}, which is no grid of {merge} by {merge} patches");
                Err(Error::input(GRIDS, problem, "make it with the checkpoint's processor"))
            }
        }
    };
    let grids: Vec<Grid> = grids.rows().into_iter().map(grid).collect::<Result<_>>()?;
    let said = grids
        .iter()
        .try_fold(0_usize, |sum, grid| sum.checked_add(grid.count()?))
        .filter(|said| *said <= MOST);
    // Of images that are padded to as many patches each, `unpadded_patches` counts them.
    let pixels = values.get("pixel_values").filter(|pixels| pixels.shape().len() != 3);
    let given = pixels.and_then(|pixels| pixels.shape().first().copied());
    match (said, given) {
        (Some(said), Some(given)) if said != given => {
            let problem = format!("says {said} patches, and pixel_values has {given}");
            Err(Error::input(GRIDS, problem, "make both with the checkpoint's processor"))
        }
        (Some(_), _) => Ok(grids),
        (None, _) => {
            let problem = format!("says more than {MOST} patches");
            Err(Error::input(GRIDS, problem, "make it with the checkpoint's processor"))
        }
    }
}

fn missing(name: &str) -> Error {
    Error::input(name, "is required and was not given", "give what the checkpoint's processor makes")
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayD, array};

    use super::*;
    use crate::image::{rope_deltas, rope_index};

    fn values(grids: Array2<i64>) -> Values {
        Values::from([(GRIDS.to_owned(), grids.into_dyn().into())])
    }

    fn numbers(value: &Value) -> ArrayD<i64> {
        value.i64("value").unwrap().clone()
    }

    #[test]
    fn images_of_several_frames_are_refused_where_none_are_read() {
        let still =
            Values::from([(GRIDS.into(), ndarray::array![[1_i64, 2, 4], [1, 2, 2]].into_dyn().into())]);
        let images = patch_images(&still, 2).unwrap();
        assert_eq!(images.i64("images").unwrap().iter().copied().collect::<Vec<_>>(), [0, 0, 1]);
        let filmed = Values::from([(GRIDS.into(), ndarray::array![[2_i64, 2, 2]].into_dyn().into())]);
        let problem = patch_images(&filmed, 2).unwrap_err().to_string();
        assert!(problem.contains("an image of 2 frames"), "{problem}");
    }

    #[test]
    fn patches_stand_square_after_square() {
        let values = values(array![[1, 2, 4]]);
        let ids = numbers(&patch_position_ids(&values, 2).unwrap());
        assert_eq!(ids, array![[[0, 0, 1, 1, 0, 0, 1, 1]], [[0, 1, 0, 1, 2, 3, 2, 3]]].into_dyn());
        let rows = numbers(&patch_rows(&values, 2).unwrap());
        assert_eq!(rows, array![0, 1, 4, 5, 2, 3, 6, 7].into_dyn());
    }

    #[test]
    fn frames_and_windows_are_counted_over_all_images() {
        let values = values(array![[2, 2, 2], [1, 6, 4]]);
        assert_eq!(numbers(&patch_frames(&values, 2).unwrap()), array![0, 1, 2, 2, 2, 2, 2, 2].into_dyn());
        // Two by two squares a window; the third row has windows of its own.
        assert_eq!(
            numbers(&patch_windows(&values, 2, 2).unwrap()),
            array![0, 1, 2, 2, 2, 2, 3, 3].into_dyn()
        );
        assert_eq!(
            numbers(&patch_windows(&values, 2, 1).unwrap()),
            array![0, 1, 2, 3, 4, 5, 6, 7].into_dyn()
        );
    }

    #[test]
    fn neighbours_stand_around_and_outside_of_a_frame_is_none() {
        let around = numbers(&patch_neighbours(&values(array![[1, 2, 4], [1, 2, 2]]), 2, 3).unwrap());
        assert_eq!(around.shape(), [12, 9]);
        let row = |patch: usize| around.iter().copied().skip(9 * patch).take(9).collect::<Vec<_>>();
        // Squares of two by two: the first row is 0 1 4 5, the second 2 3 6 7.
        assert_eq!(row(0), [12, 12, 12, 12, 0, 1, 12, 2, 3]);
        assert_eq!(row(3), [0, 1, 4, 2, 3, 6, 12, 12, 12]);
        assert_eq!(row(8), [12, 12, 12, 12, 8, 9, 12, 10, 11]);
    }

    #[test]
    fn corners_stand_on_corners_and_others_between() {
        let values = values(array![[1, 2, 3]]);
        let ids = numbers(&bilinear_ids(&values, 1, 2).unwrap());
        assert_eq!(ids.shape(), [6, 4]);
        assert_eq!(ids.iter().copied().take(8).collect::<Vec<_>>(), [0, 1, 2, 3, 0, 1, 2, 3]);
        let weights = bilinear_weights(&values, 1, 2).unwrap();
        let weights: Vec<f32> = weights.f32("weights").unwrap().iter().copied().collect();
        assert_eq!(weights[..8], [1.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0]);
        assert_eq!(weights[20..], [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(ids.iter().copied().skip(20).collect::<Vec<_>>(), [3, 3, 3, 3]);
    }

    #[test]
    fn text_goes_on_behind_the_longer_side_of_an_image() {
        let mut all = values(array![[1, 2, 6], [1, 2, 2]]);
        let ids = array![[7_i64, 9, 9, 9, 8, 9, 8], [0, 0, 0, 0, 0, 7, 8]];
        let mask = array![[1_i64, 1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 1, 1]];
        all.insert("input_ids".into(), ids.into_dyn().into());
        all.insert("attention_mask".into(), mask.into_dyn().into());
        let index = numbers(&rope_index(&all, 9, 2).unwrap());
        let (first, second) = ([0, 1, 1, 1, 4, 5, 6], [0, 0, 0, 0, 0, 0, 1]);
        let want = [first, second, first, second, [0, 1, 2, 3, 4, 5, 6], second].concat();
        assert_eq!(index, ArrayD::from_shape_vec(vec![3, 2, 7], want).unwrap());
        assert_eq!(numbers(&rope_deltas(&all, 9, 2).unwrap()), array![[0], [0]].into_dyn());
        let error = rope_index(&all, 8, 2).unwrap_err().to_string();
        assert!(error.contains("larger images than the image tokens"), "{error}");
    }

    #[test]
    fn fewer_positions_than_tokens_make_a_delta() {
        let mut all = values(array![[1, 4, 4]]);
        all.insert("input_ids".into(), array![[7_i64, 9, 9, 9, 9, 8]].into_dyn().into());
        all.insert("attention_mask".into(), array![[1_i64, 1, 1, 1, 1, 1]].into_dyn().into());
        assert_eq!(numbers(&rope_deltas(&all, 9, 2).unwrap()), array![[-2]].into_dyn());
        assert!(rope_index(&all, 5, 2).unwrap_err().to_string().contains("has more images"));
    }

    #[test]
    fn grids_of_half_squares_are_refused() {
        let error = patch_frames(&values(array![[1, 3, 2]]), 2).unwrap_err().to_string();
        assert!(error.contains("no grid of 2 by 2 patches"), "{error}");
    }

    #[test]
    fn more_patches_than_there_are_are_refused_before_they_are_made() {
        let refused = |grid: [i64; 3], patches: Option<usize>| {
            let mut all = values(array![grid]);
            let pixels = patches.map(|patches| ArrayD::<f32>::zeros(vec![patches, 3]).into());
            all.extend(pixels.map(|pixels| ("pixel_values".to_owned(), pixels)));
            patch_position_ids(&all, 2).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(refused([1, 2, 4], Some(8)), "");
        assert!(refused([1, 2, 4], Some(6)).contains("says 8 patches, and pixel_values has 6"));
        for grid in [[1, 1 << 40, 2], [1 << 40, 2, 2], [1, 1 << 40, 1 << 40], [i64::MAX, i64::MAX - 1, 2]] {
            assert!(refused(grid, None).contains("patches"), "{grid:?}");
            assert!(refused(grid, Some(8)).contains("patches"), "{grid:?}");
        }
    }
}
