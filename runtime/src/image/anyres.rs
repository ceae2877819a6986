//! AnyRes of LLaVA-NeXT: which image features a language model reads, and in what order, where large images are tiled.
//!
//! Reference: `LlavaNextModel.pack_image_features`, `unpad_image`.

use ndarray::ArrayD;

use super::Pixels;
use super::tiles::best;
use crate::multimodal::{FeatureTokens, feature_token_indices};
use crate::{Error, Result, Value, Values};

/// More features than these no image has: what a configuration or an input says is counted before it is made.
const MOST: usize = 1 << 24;

/// AnyRes tiling (`pack_image_features`, `get_anyres_image_grid_shape`): the grids of tiles, and the patches of a tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnyRes {
    /// `image_grid_pinpoints`: the sizes that an image may be resized to, height and width, pixels.
    pub grid: Vec<Vec<usize>>,
    /// The edge of a tile, pixels.
    pub tile: usize,
    /// The edge of a tile, patches.
    pub patches: usize,
    /// Images of features of clearly more tiles than these are made smaller (`anyres_max_9` of LLaVA-OneVision).
    pub most_tiles: Option<usize>,
}

impl AnyRes {
    /// Indices of the tiles' features that are read, image by image: `[features]` i64, from `image_sizes` `[images, 2]`
    /// (height, width) and `pixel_values` `[images, tiles, …]`. The index after the last feature is `image_newline`.
    ///
    /// # Errors
    /// When either is missing, or an image would need more tiles than there are.
    pub fn rows(&self, values: &Values) -> Result<Value> {
        let rows: Vec<i64> = self.taps(values)?.into_iter().map(|[(row, _), ..]| row as i64).collect();
        Ok(array(&[rows.len()], rows))
    }

    /// The four features that each one is interpolated of, where images of features are made smaller: `[features, 4]` i64, from what
    /// [`AnyRes::rows`] takes (`LlavaOnevisionModel.pack_image_features`).
    ///
    /// # Errors
    /// As [`AnyRes::rows`].
    pub fn interpolated_rows(&self, values: &Values) -> Result<Value> {
        let rows: Vec<i64> = self.taps(values)?.iter().flatten().map(|(row, _)| *row as i64).collect();
        Ok(array(&[rows.len() / 4, 4], rows))
    }

    /// How much each of those counts: `[features, 4, 1]` f32.
    ///
    /// # Errors
    /// As [`AnyRes::rows`].
    pub fn interpolated_weights(&self, values: &Values) -> Result<Value> {
        let weights: Vec<f32> = self.taps(values)?.iter().flatten().map(|(_, weight)| *weight).collect();
        let shape = vec![weights.len() / 4, 4, 1];
        Ok(Value::F32(ArrayD::from_shape_vec(shape, weights).unwrap_or_default()))
    }

    /// The rows of the images' features that each feature is made of, and how much each counts.
    fn taps(&self, values: &Values) -> Result<Vec<[(usize, f32); 4]>> {
        let missing = |name: &str| {
            Error::input(name, "is required and was not given", "give both pixel_values and image_sizes")
        };
        let sizes = values.get("image_sizes").ok_or_else(|| missing("image_sizes"))?;
        let shape = values.get("pixel_values").ok_or_else(|| missing("pixel_values"))?.shape();
        let sizes = sizes.i64("image_sizes")?;
        let &[images, tiles, ..] = shape else {
            let problem = format!("has shape {shape:?}");
            return Err(Error::input(
                "pixel_values",
                problem,
                "give it as [images, tiles, channels, height, width]",
            ));
        };
        let end_of_line = images * tiles * self.patches * self.patches;
        let mut rows = vec![];
        for (index, size) in sizes.rows().into_iter().enumerate() {
            let size = size.iter().map(|&n| usize::try_from(n).unwrap_or_default()).collect::<Vec<_>>();
            let features = match size.as_slice() {
                &[height, width] if height > 0 && width > 0 => self.features((height, width)),
                _ => None,
            };
            let Some(features) = features else {
                let problem = format!("holds {size:?}, which no size of image_grid_pinpoints suits");
                return Err(Error::input(
                    "image_sizes",
                    problem,
                    "give height and width of each image, pixels",
                ));
            };
            if features.tiles > tiles {
                let problem = format!("has {tiles} tiles for image {index}, which needs {}", features.tiles);
                return Err(Error::input("pixel_values", problem, "make it with the checkpoint's processor"));
            }
            let first = index * tiles * self.patches * self.patches;
            let row = |row: Option<usize>| row.map_or(end_of_line, |row| first + row);
            rows.extend(features.rows.into_iter().map(|taps| taps.map(|(at, weight)| (row(at), weight))));
        }
        Ok(rows)
    }

    /// How many features the image of this index has, from `image_sizes` `[images, 2]`.
    ///
    /// # Errors
    /// When there are no sizes, or none for this image that a size of the grid suits.
    pub fn count(&self, values: &Values, image: usize) -> Result<usize> {
        let sizes = values.get("image_sizes").map(|sizes| sizes.i64("image_sizes")).transpose()?;
        let edges = |axis| {
            let edge = sizes.and_then(|sizes| sizes.get(&[image, axis][..]));
            edge.and_then(|edge| usize::try_from(*edge).ok()).filter(|edge| *edge > 0)
        };
        let features = edges(0).zip(edges(1)).and_then(|size| self.features(size));
        features.map(|features| features.rows.len()).ok_or_else(|| {
            let problem = format!("has no size for image {image} that one of image_grid_pinpoints suits");
            Error::input("image_sizes", problem, "give height and width of each image, pixels")
        })
    }

    /// Lines and columns of an image's features, fewer where it has clearly more than `most_tiles` tiles of them.
    fn fewer(&self, lines: usize, columns: usize) -> Pixels {
        let Some(most) = self.most_tiles else { return (lines, columns) };
        let ratio = ((lines * columns) as f64 / (most * self.patches * self.patches).max(1) as f64).sqrt();
        let fewer = |count: usize| ((count as f64 / ratio).floor() as usize).max(1);
        if ratio > 1.1 { (fewer(lines), fewer(columns)) } else { (lines, columns) }
    }

    /// Features of the whole image, then line by line those of its tiles without padding; `None` is `image_newline`.
    fn features(&self, (height, width): Pixels) -> Option<ImageFeatures> {
        let grid: Vec<Pixels> =
            self.grid.iter().filter_map(|size| Some((*size.first()?, *size.get(1)?))).collect();
        let target = best((height, width), &grid)?;
        let tiles = target.0.div_ceil(self.tile).checked_mul(target.1.div_ceil(self.tile))?.checked_add(1)?;
        let edge = self.patches;
        let all = edge.checked_mul(edge)?.checked_mul(tiles)?;
        if all > MOST {
            return None;
        }
        let across = target.1 / self.tile;
        let shape = (target.0 / self.tile * edge, across * edge);
        let (lines, columns) = unpadded(shape, (height, width));
        let feature = |line: usize, column: usize| {
            let (line, column) = (lines.start + line, columns.start + column);
            let tile = 1 + line / edge * across + column / edge;
            Some((tile * edge + line % edge) * edge + column % edge)
        };
        let alone = |row| [(row, 1.0), (row, 0.0), (row, 0.0), (row, 0.0)];
        let mut rows: Vec<_> = (0..edge * edge).map(|row| alone(Some(row))).collect();
        let (down, wide) = self.fewer(lines.len(), columns.len());
        for line in 0..down {
            let (above, below) = halves(line, lines.len(), down);
            rows.extend((0..wide).map(|column| {
                let (left, right) = halves(column, columns.len(), wide);
                [(above, left), (above, right), (below, left), (below, right)]
                    .map(|(y, x)| (feature(y.0, x.0), y.1 * x.1))
            }));
            rows.push(alone(None));
        }
        Some(ImageFeatures { tiles, rows })
    }
}

/// The two of `length` places that a place of fewer, `count`, lies between, and how much each counts (`interpolate` of PyTorch).
fn halves(index: usize, length: usize, count: usize) -> ((usize, f32), (usize, f32)) {
    if length == count {
        return ((index, 1.0), (index, 0.0));
    }
    let scale = length as f32 / count as f32;
    let place = ((index as f32 + 0.5) * scale - 0.5).max(0.0);
    let (first, part) = (place as usize, place - place.floor());
    ((first, 1.0 - part), ((first + 1).min(length - 1), part))
}

/// The numbers of tiles of images, each of which has as many: `[images · tiles]` i64, from `pixel_values` `[images, tiles, …]`.
///
/// # Errors
/// When there are no such images.
pub fn tile_numbers(values: &Values) -> Result<Value> {
    let Some([images, tiles, ..]) = values.get("pixel_values").map(Value::shape) else {
        let problem = "is required and was not given";
        return Err(Error::input("pixel_values", problem, "make images with the checkpoint's processor"));
    };
    Ok(array(&[images * tiles], (0..(images * tiles) as i64).collect()))
}

/// The numbers of places of feature maps that have a `stride`th of images' rows and columns, rounded up: `[images · rows · columns]` i64,
/// from `pixel_values` `[images, channels, height, width]`.
///
/// # Errors
/// When there are no such images.
pub fn map_places(values: &Values, stride: usize) -> Result<Value> {
    let Some(&[images, _, height, width]) = values.get("pixel_values").map(Value::shape) else {
        let problem = "is required and was not given";
        return Err(Error::input("pixel_values", problem, "give it as [images, channels, height, width]"));
    };
    let places = images * height.div_ceil(stride.max(1)) * width.div_ceil(stride.max(1));
    Ok(array(&[places], (0..places as i64).collect()))
}

/// Indices into the token embeddings followed by the image features, by which image tokens become features (the reference's
/// `masked_scatter`): `[batch, sequence]` i64, from `input_ids` `[batch, sequence]`. There are `each` features for every
/// element of the input `of`.
///
/// # Errors
/// When there are not as many image tokens as features.
pub fn image_token_indices(values: &Values, token: usize, of: &str, each: usize) -> Result<Value> {
    feature_token_indices(values, &[FeatureTokens { token, of, each, what: "image" }])
}

/// As [`image_token_indices`], where a mask `[batch, sequence]` i64 marks the places of features by 1 (`image_embeds_position_mask` of
/// KOSMOS-2), whatever ids stand there; -1 are the tokens around them (KOSMOS-2.5).
///
/// # Errors
/// When the mask is missing, or there are not as many marks as features.
pub fn marked_image_indices(values: &Values, mask: &str, of: &str, each: usize) -> Result<Value> {
    let missing = || Error::input(mask, "is required and was not given", "give it as i64 [batch, sequence]");
    let marks = values.get(mask).ok_or_else(missing)?.i64(mask)?;
    let features = values.get(of).and_then(|value| value.shape().first()).map_or(0, |count| count * each);
    let marked = marks.iter().filter(|&&mark| mark > 0).count();
    if marked != features {
        let problem = format!("marks {marked} places, but the images give {features} features");
        return Err(Error::input(mask, problem, "make text and images with the checkpoint's processor"));
    }
    let mut feature = marks.len() as i64;
    let place = |(position, &mark): (usize, &i64)| {
        if mark <= 0 {
            return position as i64;
        }
        feature += 1;
        feature - 1
    };
    let places: Vec<i64> = marks.iter().enumerate().map(place).collect();
    Ok(array(marks.shape(), places))
}

/// Segment ids of image tokens, counted within each sequence, -1 for text: `[batch, sequence]` i64, from `input_ids`
/// `[batch, sequence]`. Consecutive image tokens are one image (`token_type_ids_mask_function`'s groups).
///
/// # Errors
/// When there are no ids.
pub fn image_segments(values: &Values, token: usize) -> Result<Value> {
    let missing =
        || Error::input("input_ids", "is required and was not given", "give it as i64 [batch, sequence]");
    let ids = values.get("input_ids").ok_or_else(missing)?.i64("input_ids")?;
    let length = ids.shape().last().copied().unwrap_or_default().max(1);
    let mut runs = vec![-1; ids.len()];
    let ids: Vec<_> = ids.iter().copied().collect();
    for (ids, runs) in ids.chunks(length).zip(runs.chunks_mut(length)) {
        let mut begun = 0;
        for (place, id) in ids.iter().enumerate().filter(|(_, id)| **id == token as i64) {
            begun += i64::from(place == 0 || ids[place - 1] != *id);
            runs[place] = begun - 1;
        }
    }
    Ok(array(values["input_ids"].shape(), runs))
}

/// Numbers of which there are as many as the shape holds.
fn array(shape: &[usize], numbers: Vec<i64>) -> Value {
    Value::I64(ArrayD::from_shape_vec(shape, numbers).unwrap_or_else(|_| ArrayD::zeros(shape)))
}

/// The features of an image, by index.
struct ImageFeatures {
    tiles: usize,
    /// The four that each is interpolated of, and how much each counts.
    rows: Vec<[(Option<usize>, f32); 4]>,
}

/// The lines and columns of a grid of patches that show an image of this size, and not the borders around it.
fn unpadded(
    (lines, columns): Pixels,
    (height, width): Pixels,
) -> (std::ops::Range<usize>, std::ops::Range<usize>) {
    // As the reference, which rounds what floating point leaves of whole numbers.
    let whole = |x: f64| ((x * 1e7).round_ties_even() / 1e7) as usize;
    let border = |length: usize, kept: usize| length.saturating_sub(kept) / 2;
    if width as f64 / height as f64 > columns as f64 / lines as f64 {
        let border = border(lines, whole(height as f64 * (columns as f64 / width as f64)));
        (border..lines - border, 0..columns)
    } else {
        let border = border(columns, whole(width as f64 * (lines as f64 / height as f64)));
        (0..lines, border..columns - border)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_tokens_read_features_in_order() {
        let ids = ndarray::array![[7, 9, 9], [9, 7, 7]].into_dyn();
        let images = ndarray::Array4::<f32>::zeros((3, 1, 1, 1)).into_dyn();
        let values = Values::from([("input_ids".into(), ids.into()), ("pixel_values".into(), images.into())]);
        let places = image_token_indices(&values, 9, "pixel_values", 1).unwrap();
        assert_eq!(places, Value::I64(ndarray::array![[0, 6, 7], [8, 4, 5]].into_dyn()));
        let error = image_token_indices(&values, 7, "pixel_values", 2).unwrap_err().to_string();
        assert!(error.contains("3 image tokens (7), but the images give 6 features"), "{error}");
    }

    #[test]
    fn tiles_of_all_images_are_numbered() {
        let images = ndarray::Array5::<f32>::zeros((2, 3, 1, 1, 1)).into_dyn();
        let mut values = Values::from([("pixel_values".into(), images.into())]);
        assert_eq!(tile_numbers(&values).unwrap(), array(&[6], vec![0, 1, 2, 3, 4, 5]));
        values.clear();
        assert!(tile_numbers(&values).unwrap_err().to_string().contains("pixel_values: is required"));
    }

    #[test]
    fn places_of_maps_are_rounded_up() {
        let images = ndarray::Array4::<f32>::zeros((2, 3, 5, 8)).into_dyn();
        let mut values = Values::from([("pixel_values".into(), images.into())]);
        assert_eq!(map_places(&values, 4).unwrap(), array(&[8], (0..8).collect()));
        values.clear();
        assert!(map_places(&values, 4).unwrap_err().to_string().contains("pixel_values: is required"));
    }

    #[test]
    fn marked_places_read_features_in_order() {
        let marks = ndarray::array![[0, 1, 1], [1, 0, 0]].into_dyn();
        let images = ndarray::Array4::<f32>::zeros((3, 1, 1, 1)).into_dyn();
        let values = Values::from([("marks".into(), marks.into()), ("pixel_values".into(), images.into())]);
        let places = marked_image_indices(&values, "marks", "pixel_values", 1).unwrap();
        assert_eq!(places, Value::I64(ndarray::array![[0, 6, 7], [8, 4, 5]].into_dyn()));
        let error = marked_image_indices(&values, "marks", "pixel_values", 2).unwrap_err().to_string();
        assert!(error.contains("marks 3 places, but the images give 6 features"), "{error}");
        let error = marked_image_indices(&values, "others", "pixel_values", 1).unwrap_err().to_string();
        assert!(error.contains("others: is required"), "{error}");
    }

    #[test]
    fn sizes_that_no_image_has_are_refused() {
        let huge = 1 << 40;
        let of = |grid, size| {
            AnyRes { grid, tile: 4, patches: 2, most_tiles: None }.features(size).map(|found| found.tiles)
        };
        assert_eq!(of(vec![vec![huge, huge]], (4, 16)), None);
        assert_eq!(of(vec![vec![4, 8]], (huge, huge)), Some(3));
    }

    #[test]
    fn a_wide_picture_loses_the_lines_above_and_below() {
        let anyres = AnyRes { grid: vec![vec![4, 8], vec![8, 4]], tile: 4, patches: 2, most_tiles: None };
        let features = anyres.features((4, 16)).unwrap();
        assert_eq!(features.tiles, 3);
        let rows: Vec<_> = features.rows.iter().map(|taps| taps[0].0).collect();
        let lines: Vec<_> = rows.split(Option::is_none).map(<[_]>::to_vec).collect();
        assert_eq!(unpadded((2, 4), (4, 16)), (0..2, 0..4));
        assert_eq!(unpadded((4, 4), (4, 16)), (1..3, 0..4));
        assert_eq!(lines[0], [0, 1, 2, 3, 4, 5, 8, 9].map(Some));
        assert_eq!(lines[1], [6, 7, 10, 11].map(Some));
    }

    #[test]
    fn features_of_too_many_tiles_are_interpolated() {
        let anyres = AnyRes { grid: vec![vec![8, 8]], tile: 4, patches: 2, most_tiles: Some(1) };
        let features = anyres.features((8, 8)).unwrap();
        // Four lines of four become two of two: each between two lines and two columns; and an end of line for each.
        assert_eq!((features.tiles, features.rows.len()), (5, 4 + 2 * 3));
        assert_eq!(features.rows[4], [4, 5, 6, 7].map(|row| (Some(row), 0.25)));
        assert_eq!(features.rows[6][0], (None, 1.0));
        assert_eq!(anyres.fewer(2, 2), (2, 2));
        assert_eq!(halves(1, 4, 2), ((2, 0.5), (3, 0.5)));
    }
}
