//! Image tokens that are each pooled of some patches.
//!
//! Reference: `Molmo2Adapter`.

use ndarray::{Array1, Axis, Ix2};

use crate::{Error, Result, Value, Values};

/// Indices of the tokens that are pooled of any patches: `[features]` i64, from `image_token_pooling` `[tokens, most]` i64, the
/// indices of the patches of each token, below 0 for none, among those of `pixel_values` `[crops, patches, values]` f32.
///
/// # Errors
/// When one of them is missing or has other axes, or an index is beyond the patches.
pub fn pooled_rows(values: &Values) -> Result<Value> {
    let pixels = values.get("pixel_values").map(Value::shape);
    let Some(&[crops, patches, _]) = pixels else {
        let problem = match pixels {
            Some(shape) => format!("has shape {shape:?}"),
            None => "is required and was not given".to_owned(),
        };
        return Err(Error::input("pixel_values", problem, "give it as f32 [crops, patches, values]"));
    };
    let name = "image_token_pooling";
    let advice = "make it with the checkpoint's processor, as i64 [tokens, patches of a token]";
    let missing = || Error::input(name, "is required and was not given", advice);
    let places = values.get(name).ok_or_else(missing)?.i64(name)?;
    let shape = || Error::input(name, format!("has shape {:?}", places.shape()), advice);
    let places = places.view().into_dimensionality::<Ix2>().map_err(|_| shape())?;
    let all = crops * patches;
    if let Some(beyond) = places.iter().find(|place| usize::try_from(**place).is_ok_and(|place| place >= all))
    {
        let problem = format!("asks for patch {beyond}, but pixel_values has {all}, counted from 0");
        return Err(Error::input(name, problem, advice));
    }
    let some = places.axis_iter(Axis(0)).enumerate().filter(|(_, row)| row.iter().any(|place| *place >= 0));
    let rows: Vec<i64> = some.map(|(row, _)| row as i64).collect();
    Ok(Value::I64(Array1::from_vec(rows).into_dyn()))
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, Array3, array};

    use super::*;

    fn values(places: Array2<i64>) -> Values {
        let pixels = Array3::<f32>::zeros((2, 3, 4)).into_dyn();
        Values::from([
            ("pixel_values".into(), pixels.into()),
            ("image_token_pooling".into(), places.into_dyn().into()),
        ])
    }

    #[test]
    fn tokens_without_patches_are_left_out() {
        let rows = pooled_rows(&values(array![[0, 1], [-1, -1], [-1, 5]])).unwrap();
        assert_eq!(rows, Value::I64(array![0, 2].into_dyn()));
    }

    #[test]
    fn places_are_those_of_patches() {
        let error = pooled_rows(&values(array![[0, 6]])).unwrap_err().to_string();
        assert!(error.contains("asks for patch 6, but pixel_values has 6"), "{error}");
        let error = pooled_rows(&Values::new()).unwrap_err().to_string();
        assert!(error.contains("pixel_values") && error.contains("[crops, patches, values]"), "{error}");
    }
}
