//! One position out of a text.

use crate::Result;
use crate::graph::{Binary, Dtype, Graph, Reduction, Tensor, show};

/// What x `[batch, sequence, width]` holds at the last token that is not `pad`: `[batch, width]`.
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
    let positions = g.arange(sequence);
    let positions = g.unsqueeze(&positions, 0)?;
    let candidates = match pad {
        Some(pad) => {
            let pad = g.integer(pad as i64);
            let padding = g.binary(Binary::Equal, input_ids, &pad)?;
            let first = g.integer(0);
            g.select(&padding, &first, &positions)?
        }
        None => positions.clone(),
    };
    let last = g.reduce(Reduction::Max, &candidates, &[1], true)?;
    let chosen = g.binary(Binary::Equal, &positions, &last)?;
    let chosen = g.cast(&chosen, Dtype::F32);
    let chosen = g.expand(&chosen, crate::dims![batch, sequence])?;
    let chosen = g.unsqueeze(&chosen, 1)?;
    let picked = g.matmul(&chosen, x)?;
    g.reshape(&picked, crate::dims![batch, width])
}

/// What x `[batch, sequence, width]` holds at the first position where `found` `[batch, sequence]` is largest:
/// `[batch, 1, width]`.
///
/// # Errors
/// When the shapes do not go together.
pub fn argmax_pool(g: &mut Graph, x: &Tensor, found: &Tensor) -> Result<Tensor> {
    let [batch, sequence] = found.shape() else {
        return Err(g.error("argmax_pool", format!("{} is not [batch, sequence]", show(found.shape()))));
    };
    let first = g.argmax(found, 1)?;
    let first = g.reshape(&first, crate::dims![batch, 1])?;
    let positions = g.arange(sequence);
    let positions = g.unsqueeze(&positions, 0)?;
    // A product, not an operator that picks: of those with an index for every element few backends have one.
    let chosen = g.binary(Binary::Equal, &positions, &first)?;
    let chosen = g.cast(&chosen, Dtype::F32);
    let chosen = g.unsqueeze(&chosen, 1)?;
    g.matmul(&chosen, x)
}

/// What x `[batch, sequence, width]` holds where a token occurs last: `[batch, width]`; at the first position where it
/// does not occur.
///
/// # Errors
/// When the shapes do not go together.
pub fn eos_pool(g: &mut Graph, x: &Tensor, ids: &Tensor, token: i64) -> Result<Tensor> {
    let [batch, sequence, width] = x.shape() else {
        return Err(g.error("eos_pool", format!("{} is not [batch, sequence, width]", show(x.shape()))));
    };
    let positions = g.arange(sequence);
    let positions = g.unsqueeze(&positions, 0)?;
    let (token, first) = (g.integer(token), g.integer(0));
    let found = g.binary(Binary::Equal, ids, &token)?;
    let candidates = g.select(&found, &positions, &first)?;
    let last = g.reduce(Reduction::Max, &candidates, &[1], true)?;
    let chosen = g.binary(Binary::Equal, &positions, &last)?;
    let chosen = g.cast(&chosen, Dtype::F32);
    let chosen = g.unsqueeze(&chosen, 1)?;
    let picked = g.matmul(&chosen, x)?;
    g.reshape(&picked, crate::dims![batch, width])
}
