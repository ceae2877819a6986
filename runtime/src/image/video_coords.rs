//! Rotary position embeddings of places in a video that are no whole numbers: seconds, and pixels of rows and columns.
//!
//! Reference: `LTXVideoRotaryPosEmbed` of `diffusers`. Its angles reach thousands, so that they are computed here, step by step in
//! single precision as it does, and not where less precision may be chosen.

use ndarray::{Array3, Ix3};

use crate::{Error, Result, Value, Values};

/// What seconds or frames, rows and columns are divided by.
const BASE: [f32; 3] = [20.0, 2048.0, 2048.0];

/// The base of the frequencies.
const THETA: f64 = 10_000.0;

/// Cosines of each token's place for heads that are `width` together, from `video_coords` `[batch, 3, tokens]`:
/// `[batch, tokens, width / 2]` f32.
///
/// # Errors
/// When there are no places.
pub fn video_cosines(values: &Values, width: usize) -> Result<Value> {
    turned(values, width, 1.0, f32::cos)
}

/// Sines, as [`video_cosines`].
///
/// # Errors
/// As [`video_cosines`].
pub fn video_sines(values: &Values, width: usize) -> Result<Value> {
    turned(values, width, 0.0, f32::sin)
}

fn turned(values: &Values, width: usize, still: f32, of: fn(f32) -> f32) -> Result<Value> {
    let help = "give frames, rows and columns of each token: [batch, 3, tokens]";
    let wrong = |problem: &str| Error::input("video_coords", problem, help);
    let Some(Value::F32(places)) = values.get("video_coords") else { return Err(wrong("are missing")) };
    let places = places.view().into_dimensionality::<Ix3>().map_err(|error| wrong(&error.to_string()))?;
    let (batch, axes, tokens) = places.dim();
    if axes != BASE.len() {
        return Err(wrong(&format!("have {axes} axes")));
    }
    let frequencies = frequencies(width / 6);
    // What three axes do not share stays as it is.
    let first = width % 6 / 2;
    let table = Array3::from_shape_fn((batch, tokens, width / 2), |(row, token, pair)| {
        let Some(pair) = pair.checked_sub(first) else { return still };
        let place = places[[row, pair % 3, token]] / BASE[pair % 3];
        frequencies.get(pair / 3).map_or(still, |frequency| of(frequency * (place * 2.0 - 1.0)))
    });
    Ok(table.into_dyn().into())
}

/// From a quarter of a turn for the length of an axis to ten thousand of these.
fn frequencies(count: usize) -> Vec<f32> {
    let step = 1.0 / count.saturating_sub(1).max(1) as f32;
    let exponent = |index: usize| match count == 1 || index < count / 2 {
        true => step * index as f32,
        false => 1.0 - step * (count - 1 - index) as f32,
    };
    let power = |index: usize| THETA.powf(f64::from(exponent(index))) as f32;
    (0..count).map(|index| power(index) * std::f32::consts::PI / 2.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        let places = Array3::from_shape_vec((1, 3, 1), vec![20.0, 1024.0, 0.0]).unwrap_or_default();
        Values::from([("video_coords".to_owned(), places.into_dyn().into())])
    }

    #[test]
    fn ends_of_an_axis_turn_by_a_quarter_and_its_middle_does_not() {
        // Eight elements: one pair is left over, then one frequency of three axes.
        let tables = [video_cosines(&values(), 8), video_sines(&values(), 8)];
        for (table, want) in tables.into_iter().zip([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, -1.0]]) {
            let Ok(Value::F32(table)) = table else { panic!("numbers") };
            assert_eq!(table.shape(), [1, 1, 4]);
            assert!(table.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-6), "{table}");
        }
    }

    #[test]
    fn places_are_needed() {
        let problem = video_cosines(&Values::new(), 8).unwrap_err().to_string();
        assert!(problem.contains("video_coords") && problem.contains("missing"), "{problem}");
    }
}
