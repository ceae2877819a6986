//! Attention masks: padding, causal, sliding-window and same-segment (`transformers.masking_utils`).

use crate::Result;
use crate::graph::{Binary, Dim, Dtype, Graph, Reduction, Tensor};

/// Bidirectional padding mask: `attention_mask` `[batch, sequence]`, 1 for tokens and 0 for padding, to bool
/// `[batch, 1, 1, sequence]` (`create_bidirectional_mask`).
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

/// Causal mask with padding: `[batch, 1, sequence, sequence]`, of [`padding_mask`] what is up to each position.
///
/// # Errors
/// When the mask has not two axes.
pub fn causal_padding_mask(g: &mut Graph, attention_mask: &Tensor) -> Result<Tensor> {
    causal_mask(g, attention_mask, &Dim::Fixed(0), None)
}

/// Mask of an encoder that may serve as a decoder (`is_decoder`): [`causal_padding_mask`] where it is causal, [`padding_mask`]
/// otherwise.
///
/// # Errors
/// When the mask has not two axes.
pub fn encoder_mask(g: &mut Graph, attention_mask: &Tensor, causal: bool) -> Result<Tensor> {
    if causal { causal_padding_mask(g, attention_mask) } else { padding_mask(g, attention_mask) }
}

/// Same-segment mask: pairs of positions of one segment, such as the tokens of one image, bool
/// `[batch, 1, sequence, past + sequence]`, from segment ids `[batch, sequence]`, -1 for none (`token_type_ids_mask_function`).
///
/// # Errors
/// When there are not two axes.
pub fn same_segment_mask(g: &mut Graph, segments: &Tensor, past: &Dim) -> Result<Tensor> {
    let [batch, length] = segments.shape() else {
        return Err(g.error("Equal", "segment ids are [batch, sequence]"));
    };
    let own = g.reshape(segments, crate::dims![batch, 1, length, 1])?;
    let others = match past {
        Dim::Fixed(0) => segments.clone(),
        past => {
            let none = g.integer(-1);
            let before = g.expand(&none, crate::dims![batch, past])?;
            g.concat(&[&before, segments], 1)?
        }
    };
    let keys = others.shape()[1].clone();
    let others = g.reshape(&others, crate::dims![batch, 1, 1, keys])?;
    let same = g.binary(Binary::Equal, &own, &others)?;
    let zero = g.integer(0);
    let some = g.binary(Binary::GreaterOrEqual, &own, &zero)?;
    g.binary(Binary::And, &same, &some)
}

/// Causal mask, or with `window` sliding-window causal mask, over cached and new keys: `attention_mask`
/// `[batch, past + sequence]` to bool `[batch, 1, sequence, past + sequence]` (`create_causal_mask`,
/// `create_sliding_window_causal_mask`).
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

/// Bidirectional mask, or with `window` of keys at most that far away, over cached and new keys: `attention_mask`
/// `[batch, past + sequence]` to bool `[batch, 1, sequence, past + sequence]` (`create_bidirectional_mask`,
/// `create_bidirectional_sliding_window_mask`): of decoders with `is_causal: false`.
///
/// # Errors
/// When the mask has not two axes.
pub fn bidirectional_mask(
    g: &mut Graph,
    attention_mask: &Tensor,
    past: &Dim,
    window: Option<usize>,
) -> Result<Tensor> {
    let seen = padding_mask(g, attention_mask)?;
    let keys = seen.shape()[3].clone();
    let Some(window) = window else {
        let [batch, ..] = seen.shape() else { return Ok(seen) };
        let shape = crate::dims![batch, 1, keys.clone() - past.clone(), keys];
        return g.expand(&seen, shape);
    };
    let (own, others) = positions(g, &keys, past)?;
    let reach = g.integer(window as i64);
    let (first, last) = (g.sub(&own, &reach)?, g.add(&own, &reach)?);
    let not_before = g.binary(Binary::GreaterOrEqual, &others, &first)?;
    let not_after = g.binary(Binary::LessOrEqual, &others, &last)?;
    let near = g.binary(Binary::And, &not_before, &not_after)?;
    g.binary(Binary::And, &seen, &near)
}

/// Sliding-window mask over the keys of another model, counted from their end: `attention_mask` `[batch, keys]` to bool
/// `[batch, 1, sequence, keys]`, in which query q sees key k where `|q + k − (keys − 1)|` is at most the window
/// (`create_bidirectional_sliding_window_mask` flipped along the keys, `Gemma4AssistantForCausalLM.create_attention_masks`).
///
/// # Errors
/// When the mask has not two axes.
pub fn trailing_window_mask(
    g: &mut Graph,
    attention_mask: &Tensor,
    sequence: &Dim,
    window: usize,
) -> Result<Tensor> {
    let seen = padding_mask(g, attention_mask)?;
    let keys = seen.shape()[3].clone();
    let (queries, all) = (g.arange(sequence), g.arange(&keys));
    let last = g.slice_dims(&all, 0, keys.clone() - 1.into(), keys)?;
    let queries = g.reshape(&queries, crate::dims![sequence, 1])?;
    let before_last = g.sub(&last, &all)?;
    let distance = g.sub(&queries, &before_last)?;
    let (most, least) = (g.integer(window as i64), g.integer(-(window as i64)));
    let not_after = g.binary(Binary::LessOrEqual, &distance, &most)?;
    let not_before = g.binary(Binary::GreaterOrEqual, &distance, &least)?;
    let near = g.binary(Binary::And, &not_before, &not_after)?;
    g.binary(Binary::And, &seen, &near)
}

/// The mask of a decoder's self-attention: [`causal_mask`], or where not `is_causal` [`bidirectional_mask`]
/// (`create_causal_mask` and `create_sliding_window_causal_mask` of a configuration with `is_causal`).
///
/// # Errors
/// When the mask has not two axes.
pub fn decoder_mask(
    g: &mut Graph,
    attention_mask: &Tensor,
    past: &Dim,
    is_causal: bool,
    window: Option<usize>,
) -> Result<Tensor> {
    match is_causal {
        true => causal_mask(g, attention_mask, past, window),
        false => bidirectional_mask(g, attention_mask, past, window),
    }
}

/// The positions of queries `[sequence, 1]` and of keys `[1, past + sequence]`.
fn positions(g: &mut Graph, keys: &Dim, past: &Dim) -> Result<(Tensor, Tensor)> {
    let queries = keys.clone() - past.clone();
    let all = g.arange(keys);
    let own = match past {
        Dim::Fixed(0) => all.clone(),
        past => g.slice_dims(&all, 0, past.clone(), keys.clone())?,
    };
    Ok((g.reshape(&own, crate::dims![queries, 1])?, g.reshape(&all, crate::dims![1, keys])?))
}

/// A mask or `pairs` `[batch, 1, sequence, past + sequence]` of positions that see each other besides (`blockwise_overlay`), whatever
/// window the mask has; padding of `attention_mask` `[batch, past + sequence]` stays unseen.
///
/// # Errors
/// When the shapes do not go together.
pub fn or_mask(
    g: &mut Graph,
    mask: &Tensor,
    attention_mask: &Tensor,
    pairs: Option<&Tensor>,
) -> Result<Tensor> {
    let Some(pairs) = pairs else { return Ok(mask.clone()) };
    let seen = padding_mask(g, attention_mask)?;
    let pairs = g.binary(Binary::And, pairs, &seen)?;
    g.binary(Binary::Or, mask, &pairs)
}

/// [`causal_mask`] or `pairs` `[batch, 1, sequence, past + sequence]`, pairs of positions that see each other in both
/// directions (`or_mask_function`); a window bounds earlier keys all the same.
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
    let (own, others) = positions(g, &seen.shape()[3].clone(), past)?;
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

/// Attention's outputs `[batch, sequence, width]` with zeros for queries that see no key in a mask
/// `[batch, 1, sequence, past + sequence]`, as PyTorch's `scaled_dot_product_attention` gives them; all keys alike are seen otherwise.
///
/// # Errors
/// When the shapes do not go together.
pub fn zero_unseeing(g: &mut Graph, x: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let seeing = g.cast(mask, x.dtype());
    let seeing = g.reduce(Reduction::Max, &seeing, &[3], false)?;
    let seeing = g.squeeze(&seeing, 1)?;
    let seeing = g.unsqueeze(&seeing, 2)?;
    g.mul(x, &seeing)
}

#[cfg(test)]
mod tests;
