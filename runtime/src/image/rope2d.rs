//! Two-dimensional rotary position embeddings of patches.
//!
//! Reference: `DINOv3ViTRopePositionEmbedding`.

use std::f64::consts::TAU;

use ndarray::Array2;

use super::interpolation::patches_along;
use crate::{Result, Value, Values};

/// Cosine or sine.
pub type AngleFunction = fn(f64) -> f64;

/// Table of a 2-D rope (`DINOv3ViTRopePositionEmbedding`): cosines or sines of each position's angles,
/// `[before + patches, 2 * frequencies]` f32, rows before columns. Centres of patches have coordinates from -1 to 1 over
/// `pixel_values`, angles are 2π times coordinate times frequency; those of the `before` class and register tokens are 0.
///
/// # Errors
/// When there are no `pixel_values`, or they are too small for a patch.
pub fn rope2d_table(
    values: &Values,
    patch_size: usize,
    before: usize,
    frequencies: &[f64],
    of: AngleFunction,
) -> Result<Value> {
    let rows = patches_along(values, 2, patch_size)?;
    let columns = patches_along(values, 3, patch_size)?;
    let turn = |(place, pair): (usize, usize)| {
        let Some(patch) = place.checked_sub(before) else { return of(0.0) as f32 };
        let (at, of_all) =
            if pair < frequencies.len() { (patch / columns, rows) } else { (patch % columns, columns) };
        let middle = 2.0 * (at as f64 + 0.5) / of_all as f64 - 1.0;
        of(TAU * middle * frequencies[pair % frequencies.len()]) as f32
    };
    Ok(Value::F32(Array2::from_shape_fn((before + rows * columns, 2 * frequencies.len()), turn).into_dyn()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middles_turn_by_nothing_and_edges_by_most() {
        let values =
            Values::from([("pixel_values".into(), ndarray::ArrayD::<f32>::zeros(vec![1, 3, 4, 12]).into())]);
        let sines = rope2d_table(&values, 4, 1, &[0.25], f64::sin).unwrap();
        let (third, expected) = ((TAU / 6.0).sin() as f32, 1e-6);
        let sines = sines.f32("sines").unwrap();
        // One row of three patches behind a class token.
        let found = [[0.0, 0.0], [0.0, -third], [0.0, 0.0], [0.0, third]];
        assert_eq!(sines.shape(), [4, 2]);
        assert!(sines.iter().zip(found.as_flattened()).all(|(a, b)| (a - b).abs() < expected), "{sines}");
    }
}
