//! Pooling of one position out of a sequence: last token, EOS token, argmax.

use crate::Result;
use crate::graph::{Binary, Dim, Graph, Reduction, Tensor, show};

/// Last-token pooling: x `[batch, sequence, width]` at the last token that is not `pad`, `[batch, width]`
/// (`GenericForSequenceClassification`).
///
/// Without a `pad` that is the last position; with nothing but padding the first.
///
/// # Errors
/// When the shapes do not go together.
pub fn last_token_pool(g: &mut Graph, x: &Tensor, input_ids: &Tensor, pad: Option<usize>) -> Result<Tensor> {
    let [batch, sequence, width] = x.shape() else {
        return Err(
            g.error("last_token_pool", format!("{} is not [batch, sequence, width]", show(x.shape())))
        );
    };
    let Some(pad) = pad else {
        let last = g.slice_dims(x, 1, sequence.clone() - Dim::Fixed(1), sequence.clone())?;
        return g.reshape(&last, crate::dims![batch, width]);
    };
    let positions = g.arange(sequence);
    let positions = g.unsqueeze(&positions, 0)?;
    let (pad, first) = (g.integer(pad as i64), g.integer(0));
    let padding = g.binary(Binary::Equal, input_ids, &pad)?;
    let candidates = g.select(&padding, &first, &positions)?;
    let last = g.reduce(Reduction::Max, &candidates, &[1], false)?;
    g.gather_batched(x, &last)
}

/// Argmax pooling: x `[batch, sequence, width]` at the first position where `found` `[batch, sequence]` is largest,
/// `[batch, 1, width]`, as CLIP pools its EOS token.
///
/// # Errors
/// When the shapes do not go together.
pub fn argmax_pool(g: &mut Graph, x: &Tensor, found: &Tensor) -> Result<Tensor> {
    if found.rank() != 2 {
        return Err(g.error("argmax_pool", format!("{} is not [batch, sequence]", show(found.shape()))));
    }
    let first = g.argmax(found, 1)?;
    let picked = g.gather_batched(x, &first)?;
    g.unsqueeze(&picked, 1)
}

/// EOS pooling: x `[batch, sequence, width]` at the last occurrence of `token`, `[batch, width]`, or at the first position
/// where it does not occur (`BartForSequenceClassification`).
///
/// # Errors
/// When the shapes do not go together.
pub fn eos_pool(g: &mut Graph, x: &Tensor, ids: &Tensor, token: i64) -> Result<Tensor> {
    let [_, sequence, _] = x.shape() else {
        return Err(g.error("eos_pool", format!("{} is not [batch, sequence, width]", show(x.shape()))));
    };
    let positions = g.arange(sequence);
    let positions = g.unsqueeze(&positions, 0)?;
    let (token, first) = (g.integer(token), g.integer(0));
    let found = g.binary(Binary::Equal, ids, &token)?;
    let candidates = g.select(&found, &positions, &first)?;
    let last = g.reduce(Reduction::Max, &candidates, &[1], false)?;
    g.gather_batched(x, &last)
}
