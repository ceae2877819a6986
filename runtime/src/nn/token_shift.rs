//! Decoder inputs made from labels: token ids shifted right by one.

use crate::Result;
use crate::graph::{Binary, Dim, Graph, Reduction, Tensor, show};

/// Token ids `[batch, sequence]` shifted right, `decoder_start_token_id` `start` first (`T5PreTrainedModel._shift_right`).
///
/// # Errors
/// When the ids have not two axes.
pub fn shift_right(g: &mut Graph, ids: &Tensor, start: i64) -> Result<Tensor> {
    let [batch, sequence] = ids.shape() else {
        return Err(g.error("shift_right", format!("{} is not [batch, sequence]", show(ids.shape()))));
    };
    let (first, end) = (crate::dims![batch, 1], sequence.clone() - Dim::Fixed(1));
    let start = g.integer(start);
    let start = g.expand(&start, first)?;
    let rest = g.slice_dims(ids, 1, Dim::Fixed(0), end)?;
    g.concat(&[&start, &rest], 1)
}

/// Token ids `[batch, sequence]` shifted right, each row's last token that is not `padding` first (`shift_tokens_right` of
/// `transformers.models.mbart`).
///
/// # Errors
/// When the ids have not two axes.
pub fn shift_tokens_right(g: &mut Graph, ids: &Tensor, padding: i64) -> Result<Tensor> {
    let [_, sequence] = ids.shape() else {
        return Err(g.error("shift_tokens_right", format!("{} is not [batch, sequence]", show(ids.shape()))));
    };
    let end = sequence.clone() - Dim::Fixed(1);
    let (padding, one, none) = (g.integer(padding), g.integer(1), g.integer(0));
    let padded = g.binary(Binary::Equal, ids, &padding)?;
    let tokens = g.select(&padded, &none, &one)?;
    let last = g.reduce(Reduction::Sum, &tokens, &[1], false)?;
    let last = g.sub(&last, &one)?;
    let start = g.gather_batched(ids, &last)?;
    let start = g.unsqueeze(&start, 1)?;
    let rest = g.slice_dims(ids, 1, Dim::Fixed(0), end)?;
    g.concat(&[&start, &rest], 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::testing::{expect, refusal};

    fn ids(g: &mut Graph) -> Result<Tensor> {
        g.integers(&[2, 4], vec![5, 6, 2, 1, 7, 8, 9, 2])
    }

    #[test]
    fn the_start_token_comes_first() {
        let build = |g: &mut Graph| {
            let ids = ids(g)?;
            shift_right(g, &ids, 3)
        };
        expect(&[], build, &[2, 4], &[3.0, 5.0, 6.0, 2.0, 3.0, 7.0, 8.0, 9.0]);
    }

    #[test]
    fn the_last_token_before_padding_comes_first() {
        let build = |g: &mut Graph| {
            let ids = ids(g)?;
            shift_tokens_right(g, &ids, 1)
        };
        expect(&[], build, &[2, 4], &[2.0, 5.0, 6.0, 2.0, 2.0, 7.0, 8.0, 9.0]);
    }

    #[test]
    fn ids_have_two_axes() {
        let of = |shift: fn(&mut Graph, &Tensor, i64) -> Result<Tensor>| {
            refusal(|g| {
                let ids = g.arange(&3.into());
                shift(g, &ids, 1)
            })
        };
        insta::assert_snapshot!(of(shift_right), @"shift_right in the root: [3] is not [batch, sequence]");
        insta::assert_snapshot!(of(shift_tokens_right), @"shift_tokens_right in the root: [3] is not [batch, sequence]");
    }
}
