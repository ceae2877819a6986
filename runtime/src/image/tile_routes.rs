//! Tiles of the images of each text, padded to as many, and the features that a connector of two paths gives for them.
//!
//! Reference: `GraniteDoclingModel.get_image_features`, `GraniteDoclingDensityRouter`.

use ndarray::{Array1, Array2, ArrayView2, Ix2};

use crate::{Error, Result, Value, Values};

const MASK: &str = "pixel_attention_mask";
const FINE: &str = "tile_fine_mask";

/// Indices of the tiles that are no padding among those of all texts: `[tiles]` i64, from `pixel_attention_mask` `[batch, tiles]`.
///
/// # Errors
/// When there is no mask, or it has other axes.
pub fn tile_rows(values: &Values) -> Result<Value> {
    let rows =
        mask(values)?.iter().enumerate().filter(|(_, shown)| **shown).map(|(row, _)| row as i64).collect();
    Ok(Value::I64(Array1::from_vec(rows).into_dyn()))
}

/// How much each of those counts for each text, so that products with it are means: `[batch, tiles]` f32, from `pixel_attention_mask`
/// `[batch, tiles]`.
///
/// # Errors
/// As [`tile_rows`].
pub fn tile_shares(values: &Values) -> Result<Value> {
    let mask = mask(values)?;
    let counts: Vec<usize> =
        mask.outer_iter().map(|tiles| tiles.iter().filter(|shown| **shown).count()).collect();
    let mut shares = Array2::<f32>::zeros((counts.len(), counts.iter().sum()));
    let mut first = 0;
    for (mut row, count) in shares.outer_iter_mut().zip(counts) {
        row.slice_mut(ndarray::s![first..first + count]).fill(1.0 / count.max(1) as f32);
        first += count;
    }
    Ok(Value::F32(shares.into_dyn()))
}

/// Rows of the features of tiles, among those of a coarse path and behind these those of a fine one, of which each tile has as many as
/// `counts` says: `[features]` i64, from `pixel_attention_mask` `[batch, tiles]`. The fine path is taken where there is a
/// `tile_fine_mask`.
///
/// # Errors
/// As [`tile_rows`]; and when the fine path is asked for and there is none.
pub fn tile_route_rows(values: &Values, [coarse, fine]: [Option<usize>; 2]) -> Result<Value> {
    let tiles = mask(values)?.iter().filter(|shown| **shown).count();
    let coarse = tiles * coarse.unwrap_or_default();
    let rows = match (values.contains_key(FINE), fine) {
        (false, _) => 0..coarse,
        (true, Some(fine)) => coarse..coarse + tiles * fine,
        (true, None) => {
            let problem =
                "asks for the connector's fine path, which this model does not have (use_fine_route)";
            return Err(Error::input(FINE, problem, "leave it out"));
        }
    };
    Ok(Value::I64(rows.map(|row| row as i64).collect::<Array1<_>>().into_dyn()))
}

fn mask(values: &Values) -> Result<ArrayView2<'_, bool>> {
    let help = "make it with the checkpoint's processor, as booleans [batch, tiles]";
    let mask = values.get(MASK).ok_or_else(|| Error::input(MASK, "is required and was not given", help))?;
    let mask = mask.bool(MASK)?;
    let shape = mask.shape().to_vec();
    let problem = || Error::input(MASK, format!("has shape {shape:?}"), help);
    mask.view().into_dimensionality::<Ix2>().map_err(|_| problem())
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayD, array};

    use super::*;

    /// Two tiles of the first text, one of the second.
    fn given() -> Values {
        let mask = array![[true, true, false], [false, true, false]];
        Values::from([(MASK.to_owned(), mask.into_dyn().into())])
    }

    #[test]
    fn tiles_that_are_no_padding_are_read_and_count_alike_in_their_text() {
        assert_eq!(tile_rows(&given()).unwrap(), Value::I64(array![0, 1, 4].into_dyn()));
        let shares = array![[0.5_f32, 0.5, 0.0], [0.0, 0.0, 1.0]].into_dyn();
        assert_eq!(tile_shares(&given()).unwrap(), Value::F32(shares));
    }

    #[test]
    fn a_text_without_tiles_has_shares_of_none() {
        let mask = array![[false, false], [true, true]];
        let values = Values::from([(MASK.to_owned(), mask.into_dyn().into())]);
        assert_eq!(tile_shares(&values).unwrap(), Value::F32(array![[0.0_f32, 0.0], [0.5, 0.5]].into_dyn()));
    }

    #[test]
    fn features_of_the_fine_path_stand_behind_those_of_the_coarse_one() {
        let rows = |values: &Values| tile_route_rows(values, [Some(1), Some(2)]).unwrap();
        let mut values = given();
        assert_eq!(rows(&values), Value::I64(array![0, 1, 2].into_dyn()));
        values.insert(FINE.to_owned(), ArrayD::from_elem(vec![2], true).into());
        assert_eq!(rows(&values), Value::I64(array![3, 4, 5, 6, 7, 8].into_dyn()));
        let error = tile_route_rows(&values, [Some(1), None]).unwrap_err().to_string();
        assert!(error.contains("tile_fine_mask: asks for the connector's fine path"), "{error}");
    }

    #[test]
    fn a_mask_of_pixels_is_none_of_tiles() {
        assert!(
            tile_rows(&Values::new()).unwrap_err().to_string().contains("pixel_attention_mask: is required")
        );
        let pixels = ArrayD::from_elem(vec![1, 2, 3, 3], true);
        let values = Values::from([(MASK.to_owned(), pixels.into())]);
        assert!(tile_rows(&values).unwrap_err().to_string().contains("has shape [1, 2, 3, 3]"));
    }
}
