//! What is read of a model's outputs.

use ndarray::{Array2, ArrayD, Axis, concatenate};

use super::{LAST_HIDDEN_STATE, LOGITS};
use crate::{Error, Result, Value, Values};

/// The scores at so many of the last positions, row by row: `[rows·wanted, vocab_size]`.
pub(super) fn last(outputs: &Values, wanted: usize) -> Result<Array2<f32>> {
    let problem = |problem: &str| {
        let names: Vec<_> = outputs.keys().map(String::as_str).collect();
        Error::input(
            LOGITS,
            problem,
            format!("choose a head that generates; this one gives {}", names.join(", ")),
        )
    };
    let logits =
        outputs.get(LOGITS).ok_or_else(|| problem("the model has no scores of tokens"))?.f32(LOGITS)?;
    let &[rows, length, width] = logits.shape() else {
        return Err(problem("scores of tokens are not [batch, sequence, vocab_size]"));
    };
    if length < wanted {
        return Err(problem("there are scores of fewer positions than of tokens"));
    }
    let last = logits.slice_axis(Axis(1), (length - wanted..length).into()).as_standard_layout().into_owned();
    last.into_shape_with_order((rows * wanted, width)).map_err(|e| problem(&e.to_string()))
}

/// Whether an output holds hidden states, which drafters may ask for.
pub(super) fn is_hidden(name: &str) -> bool {
    name == LAST_HIDDEN_STATE || name.starts_with("hidden_states.")
}

/// Floating-point numbers among outputs.
pub(in crate::generation) fn taken(outputs: &mut Values, name: &str) -> Result<ArrayD<f32>> {
    match outputs.remove(name) {
        Some(Value::F32(value)) => Ok(value),
        _ => {
            Err(Error::input(name, "is not among what the model gave", "choose the assistant of this model"))
        }
    }
}

/// Rows with more behind them.
///
/// # Errors
/// When there are not as many rows.
pub(super) fn joined(before: &Array2<i64>, after: &Array2<i64>) -> Result<Array2<i64>> {
    let joined = concatenate(Axis(1), &[before.view(), after.view()]);
    joined
        .map(|all| all.as_standard_layout().into_owned())
        .map_err(|e| Error::input("input_ids", e.to_string(), "a step takes one token for each row"))
}
