//! Pooling of a sequence into one vector: mean without padding, first token, last token, EOS token, argmax.

use crate::Result;
use crate::graph::{Activation, Binary, Dim, Dtype, Graph, Reduction, Scope, Tensor, Unary, show};

/// Padding as numbers to multiply hidden states by: `attention_mask` `[batch, sequence]`, i64 or bool, to 1 for tokens and 0
/// for padding, f32 `[batch, sequence, 1]`.
///
/// # Errors
/// When the mask has not two axes.
pub fn token_mask(g: &mut Graph, attention_mask: &Tensor) -> Result<Tensor> {
    if attention_mask.rank() != 2 {
        let problem = format!("{} is not [batch, sequence]", show(attention_mask.shape()));
        return Err(g.error("token_mask", problem));
    }
    let tokens = g.cast(attention_mask, Dtype::F32);
    g.unsqueeze(&tokens, 2)
}

/// Zeroes the hidden states of padding: x `[batch, sequence, width]`, `attention_mask` `[batch, sequence]`.
///
/// # Errors
/// When the shapes do not go together.
pub fn mask_hidden_states(g: &mut Graph, x: &Tensor, attention_mask: &Tensor) -> Result<Tensor> {
    let tokens = token_mask(g, attention_mask)?;
    g.mul(x, &tokens)
}

/// Mean pooling without padding (`Wav2Vec2ForSequenceClassification`, `EuroBertForSequenceClassification`): x
/// `[batch, sequence, width]`, `attention_mask` `[batch, sequence]` to `[batch, width]`.
///
/// # Errors
/// When the shapes do not go together.
pub fn masked_mean_pool(g: &mut Graph, x: &Tensor, attention_mask: &Tensor) -> Result<Tensor> {
    let tokens = token_mask(g, attention_mask)?;
    let x = g.mul(x, &tokens)?;
    let sum = g.reduce(Reduction::Sum, &x, &[1], false)?;
    let count = g.reduce(Reduction::Sum, &tokens, &[1], false)?;
    g.div(&sum, &count)
}

/// Statistics pooling without padding (`Wav2Vec2ForXVector`): mean and standard deviation, unbiased, over the frames of x
/// `[batch, frames, width]`, `frame_mask` `[batch, frames]`, to `[batch, 2·width]`.
///
/// # Errors
/// When the shapes do not go together.
pub fn statistics_pool(g: &mut Graph, x: &Tensor, frame_mask: &Tensor) -> Result<Tensor> {
    let frames = token_mask(g, frame_mask)?;
    let mean = masked_mean_pool(g, x, frame_mask)?;
    let centre = g.unsqueeze(&mean, 1)?;
    let away = g.sub(x, &centre)?;
    let away = g.mul(&away, &frames)?;
    let squares = g.mul(&away, &away)?;
    let squares = g.reduce(Reduction::Sum, &squares, &[1], false)?;
    let count = g.reduce(Reduction::Sum, &frames, &[1], false)?;
    let one = g.scalar(1.0);
    let others = g.sub(&count, &one)?;
    let variance = g.div(&squares, &others)?;
    let deviation = g.unary(Unary::Sqrt, &variance);
    g.concat(&[&mean, &deviation], 1)
}

/// Pooler of the first token (`BertPooler`): its hidden state of x `[batch, sequence, width]` through a dense layer and an
/// activation function, `[batch, out]`.
///
/// # Errors
/// When x has no sequence, or no fixed width.
pub fn cls_dense_pool(g: &mut Graph, w: &Scope, x: &Tensor, out: usize, act: Activation) -> Result<Tensor> {
    let first = g.take(x, 1, 0)?;
    let h = g.linear(w, &first, out)?;
    g.activation(act, &h)
}

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

#[cfg(test)]
mod tests;
