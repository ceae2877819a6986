//! Types of tokens, which say of which modality each is.
//!
//! Reference: `create_moe_mm_token_type_ids` of `Ernie4_5_VLMoeProcessor`.

use super::array;
use crate::{Error, Result, Value, Values};

/// 1 for `tokens` and 0 for all others: `[batch, sequence]` i64, from `input_ids` `[batch, sequence]`
/// (`create_moe_mm_token_type_ids`).
///
/// # Errors
/// When `input_ids` are missing.
pub fn token_types(values: &Values, tokens: &[usize]) -> Result<Value> {
    let missing =
        || Error::input("input_ids", "is required and was not given", "give it as i64 [batch, sequence]");
    let ids = values.get("input_ids").ok_or_else(missing)?.i64("input_ids")?;
    let types = ids.iter().map(|id| i64::from(tokens.iter().any(|token| *token as i64 == *id)));
    Ok(array(ids.shape(), types.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_a_list_have_a_type_of_their_own() {
        let values = Values::from([("input_ids".to_owned(), array(&[2, 3], vec![4, 9, 9, 8, 1, 9]))]);
        assert_eq!(token_types(&values, &[9, 8]).unwrap(), array(&[2, 3], vec![0, 1, 1, 1, 0, 1]));
        assert!(token_types(&Values::new(), &[9]).is_err());
    }
}
