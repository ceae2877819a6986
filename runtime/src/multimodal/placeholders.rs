//! Places of features in texts: which token stands for which feature of an image or a recording.
//!
//! Reference: `masked_scatter` of multimodal models, whose placeholder tokens become features in order.

use super::{LEFT_OUT, array};
use crate::{Error, Result, Value, Values};

/// Features that stand in the places of a token: `each` for every element of the input `of`.
#[derive(Clone, Copy, Debug)]
pub struct FeatureTokens<'a> {
    /// The token.
    pub token: usize,
    /// The input whose elements have features.
    pub of: &'a str,
    /// The features of each element.
    pub each: usize,
    /// What the features are of, as messages call it.
    pub what: &'a str,
}

/// Indices into the token embeddings followed by the features of each kind, by which placeholder tokens become features:
/// `[batch, sequence]` i64, from `input_ids` `[batch, sequence]`.
///
/// # Errors
/// When there are not as many tokens of a kind as features.
pub fn feature_token_indices(values: &Values, kinds: &[FeatureTokens<'_>]) -> Result<Value> {
    let missing =
        || Error::input("input_ids", "is required and was not given", "give it as i64 [batch, sequence]");
    let ids = values.get("input_ids").ok_or_else(missing)?.i64("input_ids")?;
    let mut next = vec![];
    let mut end = ids.len();
    for kind in kinds {
        let FeatureTokens { token, of, each, what } = kind;
        let features =
            values.get(*of).and_then(|value| value.shape().first()).map_or(0, |count| count * each);
        let tokens = ids.iter().filter(|&&id| id == *token as i64).count();
        if tokens != features && (tokens > 0 || !values.contains_key(LEFT_OUT)) {
            let problem =
                format!("has {tokens} {what} tokens ({token}), but the {what}s give {features} features");
            let help = format!("make text and {what}s with the checkpoint's processor");
            return Err(Error::input("input_ids", problem, help));
        }
        next.push(end as i64);
        end += features;
    }
    let place = |(position, &id): (usize, &i64)| {
        let Some(kind) = kinds.iter().position(|kind| id == kind.token as i64) else {
            return position as i64;
        };
        next[kind] += 1;
        next[kind] - 1
    };
    let places: Vec<i64> = ids.iter().enumerate().map(place).collect();
    Ok(array(ids.shape(), places))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(rows: &[&[i64]]) -> Value {
        let values = rows.concat();
        array(&[rows.len(), values.len() / rows.len()], values)
    }

    #[test]
    fn tokens_of_each_kind_become_its_features_in_order() {
        let image = FeatureTokens { token: 9, of: "pixels", each: 2, what: "image" };
        let audio = FeatureTokens { token: 8, of: "rows", each: 1, what: "recording" };
        let mut values = Values::from([("input_ids".to_owned(), ids(&[&[1, 9, 9, 8], &[8, 2, 8, 3]]))]);
        values.insert("pixels".to_owned(), array(&[1], vec![0]));
        values.insert("rows".to_owned(), array(&[3], vec![0; 3]));
        let places = feature_token_indices(&values, &[image, audio]).unwrap();
        let places: Vec<i64> = places.i64("places").unwrap().iter().copied().collect();
        assert_eq!(places, [0, 8, 9, 10, 11, 5, 12, 7]);
        let error =
            feature_token_indices(&values, &[FeatureTokens { each: 3, ..image }]).unwrap_err().to_string();
        assert!(error.contains("2 image tokens (9), but the images give 3 features"), "{error}");
    }
}
