//! Masks that follow from `input_ids` where the caller gives none: of padding (`DPRQuestionEncoder`, `XLMModel`) and of global
//! tokens (`LongformerForSequenceClassification`, `LongformerForQuestionAnswering`); and positions that follow from masks.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis, Ix2, s};

use crate::{Error, Result, Value, Values};

/// `attention_mask` of the tokens that are not `padding`, wherever they stand: `[batch, sequence]` i64, from `input_ids` of
/// that shape.
///
/// # Errors
/// When there is no `padding`, there are no `input_ids`, or they have not two axes.
pub fn not_padding(values: &Values, padding: Option<usize>) -> Result<Value> {
    let padding = padding_id(padding)?;
    let mask = input_ids(values)?.mapv(|id| i64::from(id != padding));
    Ok(Value::I64(mask.into_dyn()))
}

/// `attention_mask` of as many tokens from the first as are not `padding`, which is theirs only where padding is on the
/// right (`get_masks` of XLM): `[batch, sequence]` i64, from `input_ids` of that shape.
///
/// # Errors
/// When there is no `padding`, there are no `input_ids`, or they have not two axes.
pub fn token_count_mask(values: &Values, padding: Option<usize>) -> Result<Value> {
    let padding = padding_id(padding)?;
    ones_before(values, |text, _| Ok(text.iter().filter(|id| **id != padding).count()))
}

/// The `attention_mask` as numbers that embeddings of tokens are multiplied by: `[batch, sequence, 1]` f32.
///
/// # Errors
/// When there is no mask, or it has not two axes.
pub fn token_weights(values: &Values) -> Result<Value> {
    const NAME: &str = "attention_mask";
    let help = "give it as i64 [batch, sequence]";
    let mask = values.get(NAME).ok_or_else(|| Error::input(NAME, "is required and was not given", help))?;
    let mask = mask.i64(NAME)?;
    if mask.ndim() != 2 {
        return Err(Error::input(NAME, format!("has shape {:?}", mask.shape()), help));
    }
    Ok(Value::F32(mask.mapv(|seen| seen as f32).insert_axis(Axis(2))))
}

/// `position_ids` that count tokens and no padding, whose own are 1 (`IdeficsModel`): those of the last tokens `[batch, sequence]`
/// i64, as many as `input_ids` has, from the `attention_mask` `[batch, past + sequence]`.
///
/// # Errors
/// When one of them is missing or has not two axes, or the mask is shorter.
pub fn counted_positions(values: &Values) -> Result<Value> {
    const NAME: &str = "attention_mask";
    let sequence = input_ids(values)?.ncols();
    let help = "give it as i64 [batch, past + sequence]";
    let mask = values.get(NAME).ok_or_else(|| Error::input(NAME, "is required and was not given", help))?;
    let mask = mask.i64(NAME)?;
    let mut counted = mask.clone();
    if mask.ndim() != 2 || mask.len_of(Axis(1)) < sequence {
        return Err(Error::input(NAME, format!("has shape {:?}", mask.shape()), help));
    }
    counted.accumulate_axis_inplace(Axis(1), |before, count| *count += before);
    counted.zip_mut_with(mask, |count, seen| *count = if *seen == 0 { 1 } else { *count - 1 });
    let first = counted.len_of(Axis(1)) - sequence;
    Ok(Value::I64(counted.slice_axis(Axis(1), (first..).into()).to_owned()))
}

/// `global_attention_mask` with the first token of each text global: `[batch, sequence]` i64, from `input_ids` of that shape.
///
/// # Errors
/// When there are no `input_ids`, or they have not two axes.
pub fn first_token_global(values: &Values) -> Result<Value> {
    ones_before(values, |text, _| Ok(text.len().min(1)))
}

/// `global_attention_mask` with the tokens before the first `separator` global, which are a question's: `[batch, sequence]`
/// i64, from `input_ids` of that shape.
///
/// # Errors
/// When there are no `input_ids`, they have not two axes, or a text has not three separators.
pub fn question_global(values: &Values, separator: usize) -> Result<Value> {
    ones_before(values, |text, row| {
        let mut places = (0..text.len()).filter(|&place| text[place] == separator as i64);
        match (places.next(), places.count()) {
            (Some(first), 2) => Ok(first),
            (first, others) => {
                let count = others + usize::from(first.is_some());
                let problem = format!(
                    "text {row} has the separator {separator} {count} times, but question and context have it 3 times"
                );
                Err(Error::input("input_ids", problem, "give `global_attention_mask` for other texts"))
            }
        }
    })
}

/// 1 up to what `end` gives of each text's ids and its row.
fn ones_before(values: &Values, end: impl Fn(ArrayView1<'_, i64>, usize) -> Result<usize>) -> Result<Value> {
    let ids = input_ids(values)?;
    let mut mask = Array2::zeros(ids.raw_dim());
    for (row, text) in ids.axis_iter(Axis(0)).enumerate() {
        mask.slice_mut(s![row, ..end(text, row)?]).fill(1);
    }
    Ok(Value::I64(mask.into_dyn()))
}

/// The padding's id, which the attention mask follows from.
fn padding_id(padding: Option<usize>) -> Result<i64> {
    let problem = "was not given, and the configuration has no `pad_token_id` that it would follow from";
    let padding = padding
        .ok_or_else(|| Error::input("attention_mask", problem, "give it: 1 for tokens, 0 for padding"))?;
    Ok(padding as i64)
}

/// `input_ids` with their two axes.
fn input_ids(values: &Values) -> Result<ArrayView2<'_, i64>> {
    let remedy = "give it as i64 [batch, sequence]";
    let ids = values
        .get("input_ids")
        .ok_or_else(|| Error::input("input_ids", "is required and was not given", remedy))?;
    let ids = ids.i64("input_ids")?.view().into_dimensionality::<Ix2>();
    ids.map_err(|_| Error::input("input_ids", "has not two axes", remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ids: [[i64; 5]; 2]) -> Values {
        Values::from([("input_ids".into(), ndarray::arr2(&ids).into_dyn().into())])
    }

    #[test]
    fn positions_count_tokens_and_no_padding() {
        let mask = ndarray::array![[0_i64, 0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 1]].into_dyn();
        let mut values = texts([[3, 4, 5, 6, 7], [3, 4, 5, 6, 7]]);
        values.insert("attention_mask".into(), mask.into());
        let found = counted_positions(&values).unwrap();
        let want = ndarray::array![[0_i64, 1, 2, 3, 4], [2, 3, 4, 1, 5]].into_dyn();
        assert_eq!(found.i64("position_ids").unwrap(), &want);
        values.insert("attention_mask".into(), ndarray::array![[1_i64], [1]].into_dyn().into());
        let problem = counted_positions(&values).unwrap_err().to_string();
        assert!(problem.contains("has shape [2, 1]"), "{problem}");
    }

    #[test]
    fn masks_become_numbers_of_a_width_of_one() {
        let mask = ndarray::array![[1_i64, 1], [0, 1]].into_dyn();
        let values = Values::from([("attention_mask".into(), mask.into())]);
        let weights = ndarray::array![[[1.0_f32], [1.0]], [[0.0], [1.0]]].into_dyn();
        assert_eq!(token_weights(&values).unwrap(), Value::F32(weights));
        assert!(token_weights(&Values::new()).unwrap_err().to_string().contains("attention_mask"));
    }

    #[test]
    fn padding_is_masked_where_it_stands_or_by_its_count() {
        let texts = texts([[2, 7, 2, 9, 8], [5, 6, 7, 2, 2]]);
        let standing = ndarray::array![[0, 1, 0, 1, 1], [1, 1, 1, 0, 0]].into_dyn();
        assert_eq!(not_padding(&texts, Some(2)).unwrap(), Value::I64(standing));
        let counted = ndarray::array![[1, 1, 1, 0, 0], [1, 1, 1, 0, 0]].into_dyn();
        assert_eq!(token_count_mask(&texts, Some(2)).unwrap(), Value::I64(counted));
        for mask in [not_padding, token_count_mask] {
            let error = mask(&texts, None).unwrap_err().to_string();
            assert!(error.contains("attention_mask") && error.contains("no `pad_token_id`"), "{error}");
        }
    }

    #[test]
    fn the_first_token_or_those_before_the_first_separator_are_global() {
        let texts = texts([[0, 7, 2, 2, 2], [2, 2, 0, 7, 2]]);
        let first = ndarray::array![[1, 0, 0, 0, 0], [1, 0, 0, 0, 0]].into_dyn();
        assert_eq!(first_token_global(&texts).unwrap(), Value::I64(first));
        let question = ndarray::array![[1, 1, 0, 0, 0], [0, 0, 0, 0, 0]].into_dyn();
        assert_eq!(question_global(&texts, 2).unwrap(), Value::I64(question));
    }

    #[test]
    fn a_question_and_its_context_have_three_separators() {
        for (second, count) in [([0, 7, 7, 7, 7], 0), ([0, 2, 7, 2, 7], 2), ([2, 2, 2, 2, 7], 4)] {
            let error = question_global(&texts([[0, 7, 2, 2, 2], second]), 2).unwrap_err().to_string();
            assert!(error.contains(&format!("text 1 has the separator 2 {count} times")), "{error}");
        }
        let error = first_token_global(&Values::new()).unwrap_err().to_string();
        assert!(error.contains("input_ids"), "{error}");
    }
}
