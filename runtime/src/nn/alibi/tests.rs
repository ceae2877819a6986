use super::*;
use crate::graph::Attention;
use crate::nn::testing::{evaluate, expect, refusal};

/// A mask `[1, 1, 1, k]`, or whichever shape, of 0 and 1.
fn mask(g: &mut Graph, shape: &[usize], of: &[i64]) -> Tensor {
    let mask = g.integers(shape, of.to_vec()).unwrap();
    g.cast(&mask, Dtype::Bool)
}

#[test]
fn slopes_are_powers_and_every_other_one_of_the_next() {
    assert_eq!(alibi_slopes(4), [0.25, 0.0625, 0.015_625, 0.003_906_25]);
    assert_eq!(alibi_slopes(3), [0.0625, 0.003_906_25, 0.25]);
    assert_eq!(alibi_slopes_with_max(4, 8.0), alibi_slopes(4));
    assert_eq!(alibi_slopes_with_max(2, 4.0), [0.25, 0.0625]);
    assert_eq!(alibi_slopes_with_max(3, 8.0), [0.0625, 0.003_906_25, 0.25]);
}

#[test]
fn biases_grow_with_positions_among_tokens_or_keys() {
    let by_token = |g: &mut Graph| {
        let attention_mask = g.integers(&[1, 3], vec![0, 1, 1])?;
        let mask = mask(g, &[1, 1, 1, 3], &[0, 1, 1]);
        alibi(g, &mask, &attention_mask, &[0.5, 0.25])
    };
    expect(&[], by_token, &[1, 2, 1, 3], &[MASKED_SCORE, 0.0, 0.5, MASKED_SCORE, 0.0, 0.25]);
    let by_key = |g: &mut Graph| {
        let mask = mask(g, &[1, 1, 1, 3], &[0, 1, 1]);
        alibi_by_key(g, &mask, &[0.5, 0.25])
    };
    expect(&[], by_key, &[1, 2, 1, 3], &[MASKED_SCORE, 0.5, 1.0, MASKED_SCORE, 0.25, 0.5]);
}

#[test]
fn falcons_biases_are_rounded_to_bfloat16() {
    let build = |g: &mut Graph| {
        let attention_mask = g.integers(&[1, 260], vec![1; 260])?;
        let mask = mask(g, &[1, 1, 1, 260], &[1; 260]);
        alibi_bfloat16(g, &mask, &attention_mask, 1, 4)
    };
    // The slope is 1/256, the scale 1/2; bfloat16 has neither 257 nor 259.
    let Some((_, biases)) = evaluate(&[], build) else { return };
    assert_eq!([biases[0], biases[2], biases[257], biases[259]], [0.0, 0.003_906_25, 0.5, 0.507_812_5]);
}

#[test]
fn keys_that_both_masks_hide_are_hidden_twice() {
    let build = |g: &mut Graph| {
        let attention_mask = g.integers(&[1, 2], vec![0, 1])?;
        let seen = causal_mask(g, &attention_mask, &Dim::Fixed(0), None)?;
        causal_and_padding_mask(g, &seen, &attention_mask, &Dim::Fixed(0), None)
    };
    let once = MASKED_SCORE / 2.0;
    expect(&[], build, &[1, 1, 2, 2], &[once, MASKED_SCORE, once, 0.0]);
    let near = |g: &mut Graph| {
        let attention_mask = g.integers(&[1, 2], vec![1, 1])?;
        let seen = causal_mask(g, &attention_mask, &Dim::Fixed(0), None)?;
        causal_and_padding_mask(g, &seen, &attention_mask, &Dim::Fixed(0), Some(1))
    };
    expect(&[], near, &[1, 1, 2, 2], &[0.0, MASKED_SCORE, once, 0.0]);
}

#[test]
fn a_sink_takes_its_share_of_attention() {
    let sinks: (&str, &[f32]) = ("sinks", &[0.0, 1.0]);
    let with_sinks = |g: &mut Graph| {
        let k = g.constant(&[1, 2, 2], vec![0.0; 4])?;
        let v = g.constant(&[1, 2, 2], vec![4.0, 8.0, 1.0, 1.0])?;
        let mask = mask(g, &[1, 1, 1, 2], &[1, 0]);
        let sinks = g.weight("sinks", &[2])?;
        attention_sinks(g, &k, &v, &mask, &sinks)
    };
    let biases = |g: &mut Graph| Ok(with_sinks(g)?.2);
    expect(&[sinks], biases, &[1, 2, 1, 3], &[0.0, 0.0, MASKED_SCORE, 1.0, 0.0, MASKED_SCORE]);
    let values = |g: &mut Graph| Ok(with_sinks(g)?.1);
    expect(&[sinks], values, &[1, 3, 2], &[0.0, 0.0, 4.0, 8.0, 1.0, 1.0]);
    let attended = |g: &mut Graph| {
        let (k, v, mask) = with_sinks(g)?;
        let q = g.constant(&[1, 1, 2], vec![1.0, 1.0])?;
        let options = Attention { heads: 2, kv_heads: 2, mask: Some(&mask), ..Attention::default() };
        g.attention(&q, &k, &v, &options)
    };
    // Scores of 0, and sinks of 0 and 1: shares of 1/2 and 1/(1 + e).
    expect(&[sinks], attended, &[1, 1, 2], &[2.0, 2.151_531_4]);
}

#[test]
fn sinks_without_an_axis_of_heads_are_refused() {
    let problem = refusal(|g| {
        let k = g.constant(&[1, 2, 2], vec![0.0; 4])?;
        let mask = mask(g, &[1, 2], &[1, 0]);
        let sinks = g.weight("sinks", &[2])?;
        attention_sinks(g, &k, &k, &mask, &sinks)
    });
    insta::assert_snapshot!(problem, @"attention_sinks in the root: the mask is [1, 2]");
}
