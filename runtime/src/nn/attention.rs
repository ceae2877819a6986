//! Masks of attention.

use crate::Result;
use crate::graph::{Binary, Dim, Dtype, Graph, Tensor};

/// `attention_mask` `[batch, sequence]`, 1 for tokens and 0 for padding, as a mask of attention scores
/// `[batch, 1, 1, sequence]`: every position sees all tokens and no padding.
///
/// # Errors
/// When the mask has not two axes.
pub fn padding_mask(g: &mut Graph, attention_mask: &Tensor) -> Result<Tensor> {
    let [batch, sequence] = attention_mask.shape() else {
        return Err(g.error("padding_mask", "attention_mask must be [batch, sequence]"));
    };
    let shape = crate::dims![batch, 1, 1, sequence];
    let seen = g.cast(attention_mask, Dtype::Bool);
    g.reshape(&seen, shape)
}

/// As [`padding_mask`], but every position sees only the tokens up to its own: `[batch, 1, sequence, sequence]`.
///
/// # Errors
/// When the mask has not two axes.
pub fn causal_padding_mask(g: &mut Graph, attention_mask: &Tensor) -> Result<Tensor> {
    causal_mask(g, attention_mask, &Dim::Fixed(0), None)
}

/// Which of the new positions are parts of one whole: `[batch, 1, sequence, past + sequence]`, from the whole that each
/// is a part of, `[batch, sequence]`, -1 for none.
///
/// # Errors
/// When there are not two axes.
pub fn same_segment_mask(g: &mut Graph, wholes: &Tensor, past: &Dim) -> Result<Tensor> {
    let [batch, length] = wholes.shape() else {
        return Err(g.error("Equal", "parts of wholes are [batch, sequence]"));
    };
    let own = g.reshape(wholes, crate::dims![batch, 1, length, 1])?;
    let others = match past {
        Dim::Fixed(0) => wholes.clone(),
        past => {
            let none = g.integer(-1);
            let before = g.expand(&none, crate::dims![batch, past])?;
            g.concat(&[&before, wholes], 1)?
        }
    };
    let keys = others.shape()[1].clone();
    let others = g.reshape(&others, crate::dims![batch, 1, 1, keys])?;
    let same = g.binary(Binary::Equal, &own, &others)?;
    let zero = g.integer(0);
    let some = g.binary(Binary::GreaterOrEqual, &own, &zero)?;
    g.binary(Binary::And, &same, &some)
}

/// Which keys each new position sees: tokens, not padding, up to its own position and, with a window, only that many
/// of them. `attention_mask` `[batch, past + sequence]` to `[batch, 1, sequence, past + sequence]`; the reference is
/// `transformers.masking_utils`.
///
/// # Errors
/// When the mask has not two axes.
pub fn causal_mask(
    g: &mut Graph,
    attention_mask: &Tensor,
    past: &Dim,
    window: Option<usize>,
) -> Result<Tensor> {
    causal_mask_or(g, attention_mask, past, window, None)
}

/// The same where some positions also see later ones, as `pairs` `[batch, 1, sequence, past + sequence]` says; a window
/// ends what lies before it all the same.
///
/// # Errors
/// When the mask has not two axes, or the pairs do not fit it.
pub fn causal_mask_or(
    g: &mut Graph,
    attention_mask: &Tensor,
    past: &Dim,
    window: Option<usize>,
    pairs: Option<&Tensor>,
) -> Result<Tensor> {
    let seen = padding_mask(g, attention_mask)?;
    let keys = seen.shape()[3].clone();
    let queries = keys.clone() - past.clone();
    let positions = g.arange(&keys);
    let own = match past {
        Dim::Fixed(0) => positions.clone(),
        past => g.slice_dims(&positions, 0, past.clone(), keys.clone())?,
    };
    let own = g.reshape(&own, crate::dims![&queries, 1])?;
    let others = g.reshape(&positions, crate::dims![1, &keys])?;
    let mut earlier = g.binary(Binary::LessOrEqual, &others, &own)?;
    if let Some(pairs) = pairs {
        earlier = g.binary(Binary::Or, &earlier, pairs)?;
    }
    let mask = g.binary(Binary::And, &seen, &earlier)?;
    let Some(window) = window else {
        return Ok(mask);
    };
    let reach = g.integer(window as i64);
    let first = g.sub(&own, &reach)?;
    let near = g.binary(Binary::Greater, &others, &first)?;
    g.binary(Binary::And, &mask, &near)
}
