//! Each pooling of two texts of three tokens.

use super::*;
use crate::dims;
use crate::graph::Input;
use crate::graph::dims::{BATCH, SEQUENCE};
use crate::nn::testing::{expect, refusal};

/// Hidden states 1 to 12, two wide.
fn states(g: &mut Graph) -> Result<Tensor> {
    g.constant(&[2, 3, 2], (1..=12).map(|n| n as f32).collect())
}

#[test]
fn padding_becomes_zero() {
    let build = |g: &mut Graph| {
        let (x, mask) = (states(g)?, g.integers(&[2, 3], vec![1, 1, 1, 0, 1, 1])?);
        mask_hidden_states(g, &x, &mask)
    };
    let want = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0, 0.0, 9.0, 10.0, 11.0, 12.0];
    expect(&[], build, &[2, 3, 2], &want);
}

#[test]
fn the_mean_leaves_padding_out() {
    for dtype in [Dtype::I64, Dtype::Bool] {
        let build = |g: &mut Graph| {
            let (x, mask) = (states(g)?, g.integers(&[2, 3], vec![1, 1, 1, 0, 1, 1])?);
            let mask = g.cast(&mask, dtype);
            masked_mean_pool(g, &x, &mask)
        };
        expect(&[], build, &[2, 2], &[3.0, 4.0, 10.0, 11.0]);
    }
}

#[test]
fn statistics_are_of_frames_without_padding() {
    let build = |g: &mut Graph| {
        let (x, mask) = (states(g)?, g.integers(&[2, 3], vec![1, 1, 1, 0, 1, 1])?);
        statistics_pool(g, &x, &mask)
    };
    // 1, 3, 5 and 9, 11: deviations 2 and the square root of 2.
    let root = 2_f32.sqrt();
    expect(&[], build, &[2, 4], &[3.0, 4.0, 2.0, 2.0, 10.0, 11.0, root, root]);
}

#[test]
fn the_first_token_goes_through_a_dense_layer() {
    let build = |g: &mut Graph| {
        let x = states(g)?;
        cls_dense_pool(g, &g.scope("pooler"), &x, 1, Activation::Relu)
    };
    let weights: [(&str, &[f32]); 2] = [("pooler.weight", &[1.0, 2.0]), ("pooler.bias", &[-6.0])];
    expect(&weights, build, &[2, 1], &[0.0, 17.0]);
}

#[test]
fn the_last_token_is_before_padding() {
    for (pad, want) in [(Some(0), [3.0, 4.0, 11.0, 12.0]), (None, [5.0, 6.0, 11.0, 12.0])] {
        let build = |g: &mut Graph| {
            let (x, ids) = (states(g)?, g.integers(&[2, 3], vec![7, 8, 0, 0, 7, 8])?);
            last_token_pool(g, &x, &ids, pad)
        };
        expect(&[], build, &[2, 2], &want);
    }
}

#[test]
fn the_last_occurrence_of_a_token_is_pooled_or_the_first_position() {
    let build = |g: &mut Graph| {
        let (x, ids) = (states(g)?, g.integers(&[2, 3], vec![2, 2, 5, 5, 6, 7])?);
        eos_pool(g, &x, &ids, 2)
    };
    expect(&[], build, &[2, 2], &[3.0, 4.0, 7.0, 8.0]);
}

#[test]
fn the_first_of_the_largest_is_pooled() {
    let build = |g: &mut Graph| {
        let (x, found) = (states(g)?, g.integers(&[2, 3], vec![1, 9, 9, 3, 2, 1])?);
        argmax_pool(g, &x, &found)
    };
    expect(&[], build, &[2, 1, 2], &[3.0, 4.0, 7.0, 8.0]);
}

#[test]
fn what_has_no_sequence_is_refused() {
    let of = |pool: fn(&mut Graph, &Tensor, &Tensor) -> Result<Tensor>| {
        refusal(|g| {
            let x = g.input(Input::f32("x", dims![BATCH, 4]));
            let ids = g.input(Input::i64("ids", dims![BATCH, SEQUENCE, 2]));
            pool(g, &x, &ids)
        })
    };
    insta::assert_snapshot!(of(|g, x, ids| last_token_pool(g, x, ids, None)), @"last_token_pool in the root: [batch, 4] is not [batch, sequence, width]");
    insta::assert_snapshot!(of(|g, x, ids| eos_pool(g, x, ids, 2)), @"eos_pool in the root: [batch, 4] is not [batch, sequence, width]");
    insta::assert_snapshot!(of(argmax_pool), @"argmax_pool in the root: [batch, sequence, 2] is not [batch, sequence]");
    insta::assert_snapshot!(of(masked_mean_pool), @"token_mask in the root: [batch, sequence, 2] is not [batch, sequence]");
}
