//! Phrases of a text that are apart by special tokens (Grounding DINO, Liu et al., 2023, arXiv:2303.05499).

use crate::graph::{Binary, Dim, Dtype, Graph, Reduction, Tensor, show};
use crate::{Result, dims};

/// Which tokens see each other, and the position of each in its phrase (`generate_masks_with_special_tokens_and_transfer_map`):
/// `input_ids` `[batch, sequence]` to bool `[batch, 1, sequence, sequence]` and i64 `[batch, sequence]`.
///
/// A phrase ends with one of the `delimiters` and sees itself alone. A token whose next delimiter is the first or the last token of
/// all, or that has none, sees but itself, and its position is 0.
///
/// # Errors
/// When the ids have not two axes.
pub fn phrases(g: &mut Graph, input_ids: &Tensor, delimiters: &[i64]) -> Result<(Tensor, Tensor)> {
    let [batch, sequence] = input_ids.shape() else {
        return Err(g.error("phrases", format!("ids are {}, not [batch, sequence]", show(input_ids.shape()))));
    };
    let (batch, sequence) = (batch.clone(), sequence.clone());
    let mut ends = g.full(dims![&batch, &sequence], 0.0)?;
    for &delimiter in delimiters {
        let id = g.integer(delimiter);
        let is = g.binary(Binary::Equal, input_ids, &id)?;
        let is = g.cast(&is, Dtype::F32);
        ends = g.binary(Binary::Max, &ends, &is)?;
    }
    // Of one phrase are tokens with as many delimiters before them.
    let until = g.cumsum(&ends, 1)?;
    let before = g.sub(&until, &ends)?;
    let [rows, columns] = [g.unsqueeze(&before, 2)?, g.unsqueeze(&before, 1)?];
    let same = g.binary(Binary::Equal, &rows, &columns)?;
    let places = g.arange(&sequence);
    let [row, column] = [g.unsqueeze(&places, 1)?, g.unsqueeze(&places, 0)?];
    let (itself, earlier) = (g.binary(Binary::Equal, &row, &column)?, g.binary(Binary::Less, &column, &row)?);
    // Delimiters that end a phrase, which the first and the last token do not.
    let last = g.slice_dims(&places, 0, sequence.clone() - Dim::Fixed(1), sequence.clone())?;
    let first = g.integer(0);
    let [behind, ahead] =
        [g.binary(Binary::Greater, &places, &first)?, g.binary(Binary::Less, &places, &last)?];
    let inside = g.binary(Binary::And, &behind, &ahead)?;
    let inside = g.cast(&inside, Dtype::F32);
    let inner = g.mul(&ends, &inside)?;
    let inner = g.unsqueeze(&inner, 2)?;
    let shares = g.cast(&same, Dtype::F32);
    let ended = g.matmul(&shares, &inner)?;
    let zero = g.scalar(0.0);
    let is_phrase = g.binary(Binary::Greater, &ended, &zero)?;
    let seen = g.binary(Binary::And, &same, &is_phrase)?;
    let seen = g.binary(Binary::Or, &seen, &itself)?;
    let earlier = g.cast(&earlier, Dtype::F32);
    let shares = g.mul(&shares, &earlier)?;
    let is_phrase = g.cast(&is_phrase, Dtype::F32);
    let shares = g.mul(&shares, &is_phrase)?;
    let positions = g.reduce(Reduction::Sum, &shares, &[2], false)?;
    Ok((g.unsqueeze(&seen, 1)?, g.cast(&positions, Dtype::I64)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{expect, refusal};
    use super::*;

    /// [CLS] 5 6 . 7 . [SEP], and the same with a token less and padding.
    fn ids(g: &mut Graph) -> Result<Tensor> {
        g.integers(&[2, 7], vec![1, 5, 6, 3, 7, 3, 2, 1, 5, 6, 3, 7, 2, 0])
    }

    #[test]
    fn positions_begin_anew_with_each_phrase() {
        let positions = |g: &mut Graph| {
            let ids = ids(g)?;
            let (_, positions) = phrases(g, &ids, &[1, 2, 3])?;
            Ok(g.cast(&positions, Dtype::F32))
        };
        // The last token of the first text ends it; in the second a phrase ends with it.
        let want = [0.0, 0.0, 1.0, 2.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 1.0, 0.0];
        expect(&[], positions, &[2, 7], &want);
    }

    #[test]
    fn tokens_see_their_phrase() {
        let seen = |g: &mut Graph| {
            let ids = ids(g)?;
            let (seen, _) = phrases(g, &ids, &[1, 2, 3])?;
            Ok(g.cast(&seen, Dtype::F32))
        };
        let mask = |phrases: &[&[usize]]| -> Vec<f32> {
            let of = |token| phrases.iter().position(|phrase| phrase.contains(&token));
            let sees = |a: usize, b: usize| a == b || (of(a).is_some() && of(a) == of(b));
            (0..49).map(|pair| f32::from(u8::from(sees(pair / 7, pair % 7)))).collect()
        };
        // Both texts have phrases of three and of two; in the second [SEP] ends the last, since padding follows.
        let want = mask(&[&[1, 2, 3], &[4, 5]]);
        expect(&[], seen, &[2, 1, 7, 7], &[&want[..], &want].concat());
    }

    #[test]
    fn ids_need_two_axes() {
        let refused = refusal(|g| {
            let ids = g.integers(&[3], vec![1, 2, 3])?;
            Ok(phrases(g, &ids, &[1])?.0)
        });
        assert!(refused.contains("[batch, sequence]"), "{refused}");
    }
}
