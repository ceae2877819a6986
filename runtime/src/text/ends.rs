//! Where texts end.

use std::cmp::Reverse;

use ndarray::{Array1, Axis};

use crate::{Error, Result, Value, Values};

/// The place of each text's end among the tokens of all texts, row by row: `[batch]` i64, from `input_ids`
/// `[batch, sequence]`. A text ends with the first `end`, or with the largest id where none is named; one without an end
/// at its first token, as in the reference.
///
/// # Errors
/// When there are no `input_ids`.
pub fn ends(values: &Values, end: Option<usize>) -> Result<Value> {
    let missing =
        || Error::input("input_ids", "is required and was not given", "give it as i64 [batch, sequence]");
    let ids = values.get("input_ids").ok_or_else(missing)?.i64("input_ids")?;
    let places = ids.axis_iter(Axis(0)).enumerate().map(|(row, text)| {
        let place = match end {
            Some(end) => text.iter().position(|&id| id == end as i64),
            // The first of equals.
            None => {
                let places = text.iter().enumerate();
                places.max_by_key(|&(place, id)| (*id, Reverse(place))).map(|(place, _)| place)
            }
        };
        (row * text.len() + place.unwrap_or_default()) as i64
    });
    Ok(Value::I64(Array1::from_iter(places).into_dyn()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_end_or_the_largest_id_ends_a_text() {
        let ids = ndarray::array![[5, 9, 2, 2], [7, 3, 9, 9]].into_dyn();
        let values = Values::from([("input_ids".into(), ids.into())]);
        let of = |end| ends(&values, end).unwrap();
        assert_eq!(of(Some(2)), Value::I64(ndarray::array![2, 4].into_dyn()));
        assert_eq!(of(None), Value::I64(ndarray::array![1, 6].into_dyn()));
    }
}
